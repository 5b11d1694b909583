"""What two releases ten years apart give away about people of both; the tables of the docs.

``python benchmarks/two_years.py [TOWNS]`` follows the children of 0 to 9 years of so many made-up
towns (10 by default) for ten years by a stated law of change, publishes sex by age by race and
ethnicity of every block in both years, and

- links the published tables of both years as Flaxman and Keyes do: where one child is the only one
  of its age, race and ethnicity in its block, and one again ten years later, and the sexes differ.
  It counts these links, and how many are one child whose recorded sex changed.  The control is the
  same towns with nobody whose recorded sex changes.
- asks about children who are there in both years: what does somebody who knows age, race and
  ethnicity of one believe about a change of its recorded sex?  Records are independent under the
  law that this adversary knows, so that the belief without the child's own record is the prior one.
"""

import csv
import sys
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse, stats

import bayesrisk as br
from bayesrisk.census import simulate_later
from bayesrisk.inference import RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.tables import Attribute, PopulationChange, Records, Schema, Table, Workload

FOLDER = Path(__file__).parents[1] / "docs/explanation/protections"
YEARS, GROWN = 10, 20
RATE = 0.02  # of children whose recorded sex is another one ten years later: made up
STAYING = 0.5  # made up
BLOCKS, LEAST, MOST = 120, 5, 40  # blocks of a town, and children of each
UNCHANGED = 40  # children of a town whose sex is the same, who are asked about
PEOPLE = Schema(
    "children",
    (
        Attribute("race", 3, labels=("White", "Black", "another")),
        Attribute("hisp", 2, labels=("not Hispanic", "Hispanic")),
        Attribute("age", GROWN),
        Attribute("sex", 2, labels=("male", "female")),
    ),
    Schema.named("sf1-person").geography,
)
TABLES = Workload.of(PEOPLE, [["race", "hisp", "age", "sex"]], levels=["block"])
KEY = next(iter(TABLES.tables))
SWAPPING = ("swapping", {"rate": 0.05, "within": "county", "unique_within": "county",
                         "unit": "person", "swap_key": ["age"], "unique_by": ["race"]})  # fmt: skip
ROUNDING = ("rounding", {"base": 3, "method": "random"})
NOISE = ("discrete-gaussian", {"rho": "1", "sensitivity": "add-remove"})
#: Mechanism of the first year and of the later one.
RULES = {
    "no protection": (("identity", {}), ("identity", {})),
    "swapping, 5 %": (SWAPPING, SWAPPING),
    "swapping, then noise": (SWAPPING, NOISE),
    "random rounding to 3": (ROUNDING, ROUNDING),
    "noise, rho 1 each year": (NOISE, NOISE),
}


def law(first, rate):
    """Return the law of change of a town, of whose children as many arrive as leave."""
    ages = np.arange(GROWN)
    arrivals = np.bincount(first.cells(), minlength=PEOPLE.size).reshape(PEOPLE.shape)
    arrivals = np.roll(arrivals, YEARS, axis=2) / len(first)
    return PopulationChange(
        PEOPLE, YEARS, age="age", staying=np.where(ages < YEARS, STAYING, 0.0),
        changes={"sex": rate}, arrivals=(1.0 - STAYING) * arrivals.ravel(),
    )  # fmt: skip


def town(seed, rate):
    """Return the children of a town in the first year and ten years later."""
    people = br.simulate_population("county", rng=seed).persons
    race = people.codes("race")
    frame = pd.DataFrame({
        "block": people.geoids, "sex": people.codes("sex"), "age": people.codes("age"),
        "race": np.select([race == 1, race == 2], [0, 1], 2), "hisp": people.codes("hisp"),
        "person": np.arange(len(people)),
    })  # fmt: skip
    for name, labels in ((a.name, a.labels) for a in PEOPLE.attributes if a.labels):
        frame[name] = np.array(labels)[frame[name]]
    frame = frame[frame["age"] < YEARS]
    size = frame.groupby("block").size()
    fit = size[size.between(LEAST, MOST)].index.to_numpy(str)
    chosen = np.random.default_rng(seed).choice(fit, BLOCKS, replace=False)
    first = Records.from_frame(frame[frame["block"].isin(chosen)], schema=PEOPLE)
    return first, simulate_later(first, law(first, rate), rng=seed)


def groups(counts, *, later):
    """Return counts (blocks, race and ethnicity and age at first, sex) of a year's table."""
    shaped = np.asarray(counts).reshape(-1, 6, GROWN, 2)
    ages = slice(YEARS, GROWN) if later else slice(0, YEARS)
    return shaped[:, :, ages].reshape(len(shaped), -1, 2)


def released(records, made, places, seed):
    """Return the release of a year, and a reader's best values: none is below 0."""
    name, options = made
    release = make_mechanism(name, **options).release(
        records, workload=TABLES, rng=seed, places=places
    )
    return release, np.maximum(release.tables.counts[KEY].toarray(), 0)


def children(first, later, places):
    """Return who is there in both years: block, group, sex at first and later; -1 if away."""
    sides = []
    for records, grown in ((first, 0), (later, YEARS)):
        codes = {n: records.codes(n) for n in PEOPLE.names}
        group = (codes["race"] * 2 + codes["hisp"]) * YEARS + codes["age"] - grown
        sides.append(pd.DataFrame({
            "person": records.table.column("person").to_numpy(), "group": group,
            "block": np.searchsorted(places, records.geoids), "sex": codes["sex"],
        }))  # fmt: skip
    return sides[0].merge(sides[1], on=["person", "block", "group"], suffixes=("", " later"))


def links(first, later):
    """Return the groups (block, group) that are linked with another sex, and the first sex."""
    one = (first.sum(axis=2) == 1) & (later.sum(axis=2) == 1)
    block, group = np.nonzero(one & (first.argmax(axis=2) != later.argmax(axis=2)))
    return pd.DataFrame({"block": block, "group": group, "sex": first[block, group].argmax(axis=1)})


SEX = Schema("group", (Attribute("sex", 2),))
OF_SEX = Table("sex", ("0", "1"), {"sex": np.eye(2, dtype=np.int64)})
CHANGE = PopulationChange(
    SEX, YEARS, staying=STAYING, changes={"sex": RATE}, arrivals=1.0 - STAYING
)
CHANGED = RecordQuestion(CHANGE.condition(changed=["sex"]), CHANGE.condition(present="both"))


def belief(laws, counts, expected):
    """Return the beliefs that the sex of a child of a group changed: prior, and posterior."""
    parts = {}
    for year, law_, given in zip(("first", "later"), laws, counts, strict=True):
        tables = br.PublishedTables(
            Workload(SEX, {("all", "sex"): OF_SEX}), {"all": np.array([""])},
            {("all", "sex"): sparse.csr_array(given[None, :])},
        )  # fmt: skip
        parts[year] = br.Release(
            br.release.MechanismSpec("year", {}, {("all", "sex"): law_}), tables
        )
    joint = br.Release.combine(parts, change=CHANGE)
    prior = RecordPrior.trajectories(CHANGE, expected)
    found = microdata_posterior(joint, [CHANGED], level="all", place="", prior=prior)
    return found.answers["prior"].iloc[0], found.answers["posterior"].iloc[0]


def read_as(release):
    """Return the law of a release's counts, and the chance that a record is counted elsewhere."""
    found = release.spec.likelihood(*KEY)
    if found.closed:
        return found, 0.0
    return br.release.TrueCounts(), float(Fraction(release.spec.parameters["rate"]))


def studied(seed):
    """Return for every rule the links of one town and the beliefs about its children."""
    lines = []
    for rate in (RATE, 0.0):
        first, later = town(seed, rate)
        places = np.unique(first.geoids)
        both = children(first, later, places)
        changed = (both["sex"] != both["sex later"]).to_numpy()
        rng = np.random.default_rng([seed, 1])
        same = rng.choice(np.flatnonzero(~changed), UNCHANGED, replace=False)
        true = br.tabulate(first, TABLES).counts[KEY].toarray()
        true = groups(true, later=False).astype(float)
        size = true.sum(axis=(1, 2))
        for number, (rule, made) in enumerate(RULES.items()):
            parts = [
                released(r, m, places, 100 * seed + 2 * number + y)
                for y, (r, m) in enumerate(zip((first, later), made, strict=True))
            ]
            counts = [groups(best, later=bool(y)) for y, (_, best) in enumerate(parts)]
            given = [
                groups(release.tables.counts[KEY].toarray(), later=bool(y))
                for y, (release, _) in enumerate(parts)
            ]
            said = links(*counts)
            right = said.merge(both[changed], on=["block", "group", "sex"])
            right = len(right.drop_duplicates(["block", "group"]))
            line = {
                "rule": rule, "control": rate == 0.0, "children": len(first),
                "stayed": len(both), "changed": int(changed.sum()), "links": len(said),
                "right": right,
            }  # fmt: skip
            if rate:
                laws, moved = zip(*(read_as(release) for release, _ in parts), strict=True)
                elsewhere = 1.0 - np.prod(1.0 - np.array(moved))
                for who, rows in (("changed", np.flatnonzero(changed)), ("same", same)):
                    priors, posteriors = [], []
                    for block, group in both.loc[rows, ["block", "group"]].to_numpy():
                        # The composition of the other blocks, as many children as live here.
                        others = true.sum(axis=0) - true[block] + 1.0 / true[0].size
                        expected = size[block] * others[group] / others.sum()
                        old, new = belief(laws, [g[block, group] for g in given], expected)
                        priors.append(old)
                        posteriors.append(elsewhere * old + (1.0 - elsewhere) * new)
                    line |= {
                        f"prior {who}": np.nanmean(priors),
                        f"posterior {who}": np.nanmean(posteriors),
                        f"unstated {who}": int(np.isnan(posteriors).sum()),
                    }  # fmt: skip
            lines.append(line)
    return lines


def share(lines, part, whole):
    """Return a share over towns with its interval (linearised, Student), in per cent."""
    up, down = (np.array([line[name] for line in lines], float) for name in (part, whole))
    if not up.sum():
        return "none"
    mean = up.sum() / down.sum()
    error = np.sqrt(((up - mean * down) ** 2).sum() / (len(up) - 1) * len(up)) / down.sum()
    width = stats.t.ppf(0.975, len(up) - 1) * error
    return (
        f"{100 * mean:.0f} ({100 * max(mean - width, 0):.0f} to {100 * min(mean + width, 1):.0f})"
    )


def gain(lines, who):
    """Return the mean gain of the belief in a change over towns, in points, with its interval."""
    value = 100 * np.array([line[f"posterior {who}"] - line[f"prior {who}"] for line in lines])
    width = stats.t.ppf(0.975, value.size - 1) * stats.sem(value)
    return f"{value.mean():.1f} ({value.mean() - width:.1f} to {value.mean() + width:.1f})"


def main(towns=10):
    """Write the table."""
    with ProcessPoolExecutor(2) as pool:
        lines = [line for one in pool.map(studied, range(1, towns + 1)) for line in one]
    rows = []
    for rule in RULES:
        own = [line for line in lines if line["rule"] == rule and not line["control"]]
        control = [line for line in lines if line["rule"] == rule and line["control"]]
        total = {n: sum(line[n] for line in own) for n in ("changed", "links", "right")}
        rows.append([
            rule, total["links"], total["right"], share(own, "right", "links"),
            share(own, "right", "changed"), sum(line["links"] for line in control),
            f"{100 * np.mean([line['posterior changed'] for line in own]):.1f}",
            gain(own, "changed"), gain(own, "same"),
        ])  # fmt: skip
    header = ["rule", "links", "right", "right, % of links", "right, % of the changed",
              "links if nobody changes", "belief in a change, %, of the changed",
              "gain from own record, points", "gain about the unchanged, points"]  # fmt: skip
    with (FOLDER / "two-years.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])
    own = [line for line in lines if line["rule"] == "no protection" and not line["control"]]
    print({n: sum(line[n] for line in own) for n in ("children", "stayed", "changed")})
    print("unstated", {w: sum(line.get(f"unstated {w}", 0) for line in lines)
                       for w in ("changed", "same")})  # fmt: skip


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
