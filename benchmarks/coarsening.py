"""What coarsened tables of the same people give away together, by rule; the tables of the docs.

``python benchmarks/coarsening.py [TRACTS]`` coarsens the sixteen tables of persons of the 2010
Summary File 1 of three blocks of 5 to 120 people of each of so many made-up tracts (10 by default),
every count by itself, and writes what :func:`bayesrisk.reconstruction.count_bounds` and
:func:`bayesrisk.reconstruction.find_claims` prove; and the same of twenty tables of households of
the 2020 census and blocks of 10 to 60 households.  Then it audits as many made-up towns, of two
tables of small blocks each, and writes what somebody who knows sex and age learns about race.
"""

import csv
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from scipy import stats

import bayesrisk as br
from bayesrisk import datasets
from bayesrisk.experiments import Protection
from bayesrisk.experiments.audit.populations import PopulationInParts
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.reconstruction import count_bounds, find_claims
from bayesrisk.risk import count_claims
from bayesrisk.risk.audit import Adversary, AuditQuestion, audit_measures, audit_targets, costs
from bayesrisk.tables import Records, Schema, Workload

FOLDER = Path(__file__).parents[1] / "docs/explanation/protections"
BLOCKS = 3
#: Tables, the table of the total, and records of a block, least and most.
UNITS = {
    "persons": (
        Workload.named("sf1-block", levels=["block"]).select(
            tables=["P1", *(f"P{n}" for n in (8, 9, 10, 11, 12, 14)),
                    *(f"P12{c}" for c in "ABCDEFGHI")]
        ), "P1", 5, 120,
    ),
    "households": (
        Workload.named("household-dhc").select(
            tables=["H1", "H4", "H9", "H10",
                    *(f"H{n}{c}" for n in (12, 13) for c in ["", *"ABCDEFG"])]
        ), "H1", 10, 60,
    ),
}  # fmt: skip
RANGES = [0, 1, 3, 6, 10, 20, 50]
#: By name the mechanism, whether the total of a block stays exact, and the change that is tried.
RULES = {
    "nearest 3": ("rounding", {"base": 3, "method": "nearest"}, False),
    "nearest 3, exact totals": ("rounding", {"base": 3, "method": "nearest"}, True),
    "nearest 5": ("nearest-5", {}, False),
    "random 3": ("rounding", {"base": 3, "method": "random"}, False),
    "ranges": ("ranges", {"edges": RANGES}, False),
    "ranges, exact totals": ("ranges", {"edges": RANGES}, True),
    "wider ranges": ("ranges", {"edges": [0, 5, 10, 20, 50]}, False),
    "10-5 rule": ("ons-10-5", {}, False),
    "midpoint 6": ("opensafely-midpoint-6", {}, False),
    "1 and 2 withheld": ("suppression", {"threshold": 3, "complementary": False}, False),
    "1 to 4 withheld": ("suppression", {"threshold": 5, "complementary": False}, False),
    "1 to 10 withheld": ("cms-11", {}, False),
    "1 and 2 and complementary cells withheld": ("suppression", {"threshold": 3}, False),
}


def places(unit, seed):
    """Return the records of some blocks of a made-up tract."""
    work, _, smallest, largest = UNITS[unit]
    tract = br.simulate_population("tract", rng=seed).for_schema(work.schema)
    codes, sizes = np.unique(tract.geoids, return_counts=True)
    fit = codes[(sizes >= smallest) & (sizes <= largest)]
    chosen = np.random.default_rng(seed).choice(fit, BLOCKS, replace=False)
    return tract.take(np.isin(tract.geoids, chosen))


def released(unit, records: Records, rule, seed):
    """Return the coarsened tables of records, the totals of blocks exact if the rule says so."""
    work, total, *_ = UNITS[unit]
    name, options, exact = RULES[rule]
    tables = make_mechanism(name, **options).release(records, workload=work, rng=seed,
                                                     places="occupied").tables  # fmt: skip
    if not exact:
        return tables
    truth, total = br.tabulate(records, work), ("block", total)
    laws = {key: law for key, law in tables.laws.items() if key != total}
    counts = {**tables.counts, total: truth.counts[total]}
    return br.PublishedTables(work, tables.geoids, counts, tables.suppressed, laws)


def proved_records(tables, records):
    """Return how many records are proved with all that the tables tell of them, and how.

    ``together`` are those that no published count states by itself.
    """
    told = sorted({name for table in tables.workload.tables.values() for name in table.factors})
    found = find_claims(tables, columns=told, time_limit=20.0)
    whole = found.claims[found.claims["n_columns"] == len(told)]
    number = whole["multiplicity"].to_numpy(int)
    assert (count_claims(found, whole, records) >= number).all()
    alone = whole["readable_here"].to_numpy(bool)
    return {
        "proved": int(number.sum()),
        "together": int(number[~alone].sum()),
        "blocks undecided": int((found.blocks["status"] != "decided").sum()),
    }


def studied(unit, seed):
    """Return for every rule the numbers of counts of one tract, and of what is proved of them."""
    records, work, lines = places(unit, seed), UNITS[unit][0], []
    truth = br.tabulate(records, work)
    true = np.concatenate([truth.counts[key].toarray().ravel() for key in work.tables])
    occupied = records.codes("vacancy") == 0 if unit == "households" else np.ones(len(records))
    for rule in RULES:
        tables = released(unit, records, rule, seed)
        found = count_bounds(tables, time_limit=20.0).counts
        order = {key: at for at, key in enumerate(work.tables)}
        rank = [order["block", name] for name in found["table"]]
        cells = [list(work.tables["block", t].cells).index(c)
                 for t, c in zip(found["table"], found["cell"], strict=True)]  # fmt: skip
        found = found.iloc[np.lexsort((cells, found["geoid"], rank))]
        # A count without a largest one has none in the table.
        low, high = found["low"].to_numpy(int), found["high"].fillna(2**52).to_numpy(int)
        assert ((low <= true) & (true <= high)).all(), (seed, rule)
        coarse = (found["low_stated"] < found["high_stated"].fillna(2**52)).to_numpy()
        positive = coarse & (true > 0)
        one = positive & (found["low_stated"] == 0).to_numpy()
        lines.append(
            {
                "coarsened": int(positive.sum()),
                "recovered": int((positive & (low == high)).sum()),
                "small": int((positive & (true <= 2)).sum()),
                "small recovered": int((positive & (true <= 2) & (low == high)).sum()),
                "unstated": int(one.sum()),
                "at least one": int((one & (low >= 1)).sum()),
                "zeros": int((coarse & (true == 0)).sum()),
                "empty": int((coarse & (high == 0)).sum()),
                "records": int(occupied.sum()),
                "undecided": int((found["status"] != "proved").sum()),
                **proved_records(tables, records),
            }
        )
    return lines


def share(lines, part, whole, scale=100, digits=1):
    """Return a ratio of sums over tracts with its interval (Student, tract by tract)."""
    up, down = (np.array([line[name] for line in lines], float) for name in (part, whole))
    if not up.sum():  # no interval: tracts without any say little about how rare it is
        return "none" if down.sum() else ""
    mean = up.sum() / down.sum()
    # The linearised error of a ratio of sums over independent tracts.
    error = np.sqrt(((up - mean * down) ** 2).sum() / (len(up) - 1) * len(up)) / down.sum()
    width = stats.t.ppf(0.975, len(up) - 1) * error
    low, high = max(mean - width, 0.0), min(mean + width, 1.0 if scale == 100 else np.inf)
    mean, low, high = (f"{scale * value:.{digits}f}" for value in (mean, low, high))
    return f"{mean} ({low} to {high})"


# What is learned about people of small blocks.


TOWN = Workload.read(datasets.path("small-town") / "tables.toml")
AUDITED = {
    "no protection": ("identity", {}),
    **{rule: made for rule, (*made, exact) in RULES.items() if not exact},
    "noise, rho 1": ("discrete-gaussian", {"rho": "1"}),
}
RELEASES = 4  # of those in which chance has a part


def town(seed):
    """Return sixteen blocks of 8 to 20 people of two races or more, as the sample small-town."""
    people = br.simulate_population("county", rng=seed).for_schema(Schema.named("sf1-person"))
    frame = pd.DataFrame({
        "block": people.geoids, "sex": np.where(people.codes("sex") == 0, "male", "female"),
        "age": np.where(people.codes("age") < 18, "0-17", "18+"),
        "race": np.select([people.codes("race") == n for n in (1, 2)], ["White", "Black"],
                          "another"),
    })  # fmt: skip
    by_block = frame.groupby("block")["race"].agg(["size", "nunique"])
    fit = by_block[by_block["size"].between(8, 20) & (by_block["nunique"] >= 2)].index[:16]
    code = {block: f"01{at:02d}" for at, block in enumerate(fit, 1)}
    return frame[frame["block"].isin(fit)].replace({"block": code})


def audited(seed):
    """Return for every rule what an audit of one town says of everybody."""
    linker, lines = Adversary.named("linker", known=["sex", "age"]), []
    with TemporaryDirectory() as folder:
        town(seed).to_csv(f"{folder}/records.csv", index=False)
        question = AuditQuestion(TOWN, ("race",), (linker,))
        people = PopulationInParts(
            f"{folder}/records.csv", question, TOWN.schema, seed=seed, targets=None
        )
        for rule, (name, options) in AUDITED.items():
            protection = Protection(rule, name, options)
            numbers = range(RELEASES if people.randomised(protection) else 1)
            targets = audit_targets(people.statements(protection, numbers, people.survey.targets))
            row = audit_measures(targets).query("group == 'everybody'").iloc[0]
            errors = [people.counts(protection, number)[0] for number in numbers]
            cost = costs(pd.concat(errors).assign(protection=rule)).iloc[0]
            lines.append({
                "answers": row["answers_posterior"], "people": row["people"],
                "doubled": row["doubled"], "proved": row["proved"], "error": cost["error"],
            })  # fmt: skip
    return lines


def mean(lines, name, form="{:.1f}"):
    """Return the mean over towns with its interval (Student)."""
    values = np.array([line[name] for line in lines])
    width = stats.t.ppf(0.975, values.size - 1) * stats.sem(values)
    centre, *ends = (form.format(values.mean() + off) for off in (0.0, -width, width))
    return f"{centre} ({' to '.join(ends)})"


def write(name, header, rows):
    """Write a table of the documentation."""
    with (FOLDER / name).open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])


#: Of counts and records that are proved, by rule.
HEADER = ["rule", "positive counts coarsened", "recovered exactly, %",
          "counts of 1 and 2 recovered, %", "proved to be at least 1, %", "zeros proved empty, %",
          "records proved, %", "by no count alone, %", "undecided"]  # fmt: skip


def proofs(by_tract):
    """Return the rows of a table of what is proved, of all tracts together."""
    rows = []
    for at, rule in enumerate(RULES):
        lines = [tract[at] for tract in by_tract]
        rows.append([
            rule, sum(line["coarsened"] for line in lines), share(lines, "recovered", "coarsened"),
            share(lines, "small recovered", "small"), share(lines, "at least one", "unstated"),
            share(lines, "empty", "zeros"), share(lines, "proved", "records"),
            share(lines, "together", "records"),
            sum(line["undecided"] + line["blocks undecided"] for line in lines),
        ])  # fmt: skip
    return rows


def main(tracts=10):
    """Write all tables."""
    with ProcessPoolExecutor(2) as pool:
        by_town = list(pool.map(audited, range(1, tracts + 1)))
        for unit in UNITS:
            made = pool.map(studied, [unit] * tracts, range(1, tracts + 1))
            write(f"coarsening-{unit}.csv", HEADER, proofs(list(made)))
    rows = []
    for at, rule in enumerate(AUDITED):
        lines = [one[at] for one in by_town]
        rows.append([
            rule, mean(lines, "answers", form="{:.2f}"), share(lines, "doubled", "people"),
            share(lines, "proved", "people"), f"{np.mean([line['error'] for line in lines]):.2f}",
        ])  # fmt: skip
    header = ["rule", "remaining answers", "people doubled, %", "people proved, %",
              "error of a count"]  # fmt: skip
    write("coarsening-audits.csv", header, rows)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
