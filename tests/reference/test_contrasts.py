"""What the papers show of people whom nobody here has, shown with people of ours.

Rows of the register with the status ``same contrast on synthetic data`` name a test of this file
and hold the 95 % interval of the mean over seeds.  Each test asserts the contrast itself, with
intervals over seeds, and that its means lie in the intervals of the register.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from printed import compare, falls, interval, surely_less

import bayesrisk as br
from bayesrisk.risk.linkage.variability import unique_sums, unique_table

pytestmark = pytest.mark.slow
HERE = "tests/reference/test_contrasts.py"
SIZES = ("1-9", "10-49", "50-99", "100-249")
PERSON = ["block", "sex", "age", "race", "hisp"]


# --- people: reconstruction and links -------------------------------------------------------------


def tract_of(seed):
    """Tables of one tract attacked with and without noise, and the links of an insider."""
    tract = br.simulate_population(br.census.population_spec("tract", n_blocks=90), rng=seed)
    people = tract.persons.to_frame()[PERSON]
    truth = people.assign(person=np.arange(len(people)))
    workload = br.Workload.named("sf1-block").union(br.Workload.named("sf1-tract"))
    measured = br.Workload.named("sf1-block", levels=["tract", "block"]).select(
        tables=["P8", "P9", "P12", "P14"]
    )
    noise = br.make_mechanism(
        "topdown", rho="2.56", measurements=measured.to_dict(), invariants=[("block", "P1")]
    )
    plain = br.make_mechanism("identity").release(tract, workload=workload, rng=1)
    noisy = noise.release(tract, workload=workload, rng=1)

    def attack(release, scope):
        naive = br.reconstruction.make_attack("reconstruction", scope=scope, taken_as_true=True)
        return naive.run(release)

    joint = attack(plain, "tract")
    sources = {
        name: br.reconstruction.record_form(found)
        for name, found in (
            ("rHDF_b,t", joint),
            ("rHDF_b", attack(plain, "block")),
            ("rMDF_b,t", attack(noisy, "tract")),
        )
    }
    bounds = br.solution_variability(plain.tables, scope="tract-bounds", solution=joint).to_frame()
    zero = sorted(bounds.loc[bounds["upper"] == 0, "block"])
    links = br.risk.reidentify(
        sources,
        {"insider": truth[["block", "sex", "age", "person"]]},
        truth=truth,
        baseline_from="rHDF_b,t",
        rng=1,
        zero_variability_blocks=zero,
    )
    agreement = br.risk.compare_with_truth(sources, truth=truth, baseline_from="rHDF_b,t", rng=1)
    alone = ~people.duplicated(["block", "sex", "age"], keep=False)
    return {
        "unique by age": 100 * alone.mean(),
        "sizes": unique_table(unique_sums(people, variability=bounds)),
        "links": pd.concat(
            links.to_frame(panel=panel, zero_variability=certain).assign(
                panel=panel, certain=certain
            )
            for panel in ("all", "modal", "nonmodal", "nonmodal-unique")
            for certain in (False, True)
        ),
        "agreement": agreement.tally,
    }


@cache
def tracts():
    return [tract_of(seed) for seed in range(1, 13)]


def precision(source, size="All", panel="all", *, certain=False):
    """Precision of links in each tract, in percent."""
    rates = []
    for tract in tracts():
        table = tract["links"]
        at = (table["source"] == source) & (table["block_size"] == size)
        at &= (table["panel"] == panel) & (table["certain"] == certain)
        row = table[at]
        rates.append(100 * row["confirmed"].sum() / row["putative"].sum() if len(row) else np.nan)
    return rates


def by_size(column, size):
    tables = (tract["sizes"].set_index("block_size") for tract in tracts())
    return [table[column].get(size, np.nan) for table in tables]


def sizes():
    """Uniques, and blocks with a single solution, are fewer the larger the blocks."""
    found = {
        ("Abowd et al.", "Methods", "exact age", "unique"): [t["unique by age"] for t in tracts()]
    }
    columns = {
        "unique": "unique_percentage",
        "zero blocks share": "zero_block_percentage",
        "zero population share": "zero_population_percentage",
    }
    for name, column in columns.items():
        values = [by_size(column, size) for size in SIZES]
        assert surely_less(values[3], values[1])
        assert surely_less(values[2], values[0])
        if name == "unique":
            assert falls(values)
        for size, value in zip(SIZES, values, strict=True):
            found["Abowd et al.", "Table S5", size, name] = value
    return found


def links_by_size():
    """Links are right less often in larger blocks."""
    found = {}
    for source in ("rHDF_b,t", "rHDF_b"):
        values = [precision(source, size) for size in SIZES]
        assert falls(values)
        for size, value in zip(("All", *SIZES), [precision(source), *values], strict=True):
            for table in ("S6", "S12"):
                place = ("Abowd et al.", f"Table {table}", f"{source} {size}")
                found[(*place, "CEF precision")] = value
    return found


def noise():
    """Noise hides people whom the others of their block do not tell."""
    found = {}
    for source in ("rHDF_b,t", "rMDF_b,t"):
        for table, panel in (("S11", "nonmodal"), ("S13", "modal")):
            place = ("Abowd et al.", f"Table {table}", f"{source} All", "CEF precision")
            found[place] = precision(source, panel=panel)
    for panel in ("modal", "nonmodal"):
        assert surely_less(precision("rMDF_b,t", panel=panel), precision("rHDF_b,t", panel=panel))
    # Noise takes more from the nonmodal: they are what the others do not tell.
    lost = {
        panel: np.divide(precision("rMDF_b,t", panel=panel), precision("rHDF_b,t", panel=panel))
        for panel in ("modal", "nonmodal")
    }
    assert surely_less(lost["nonmodal"], lost["modal"])
    return found


def guessers():
    """About modal people a modal guesser is right more often than a link."""
    found = {
        ("Abowd et al.", "Table S9", f"{source} All", "CEF precision"): precision(
            source, panel="modal"
        )
        for source in ("rHDF_b,t", "MDG", "PRG")
    }
    linked, modal, proportional = found.values()
    assert surely_less(linked, modal)
    assert surely_less(proportional, linked)
    return found


def certain_links():
    """Where the records are proved, links of nonmodal uniques are right, and guesses are not."""
    found = {}
    for source in ("rHDF_b,t", "rHDF_b", "MDG", "PRG", "rMDF_b,t"):
        for panel, name in (("A", "nonmodal"), ("B", "nonmodal-unique")):
            place = ("Abowd et al.", "Table S8", f"{panel} {source}", "CEF precision")
            found[place] = precision(source, panel=name, certain=True)
    table = {key[2]: value for key, value in found.items()}
    assert table["B rHDF_b,t"] == [100.0] * len(tracts())  # a proof is never wrong
    for panel in "AB":
        for guess in ("MDG", "PRG", "rMDF_b,t"):
            assert surely_less(table[f"{panel} {guess}"], table[f"{panel} rHDF_b,t"])
    return found


def agreement():
    """Noise of one size changes most in small blocks."""
    found = {}
    for source in ("rHDF_b,t", "rMDF_b,t"):
        for size in ("All", *SIZES):
            shares = []
            for tract in tracts():
                tally = tract["agreement"].set_index(["source", "block_size"]).loc[(source, size)]
                shares.append(100 * tally["binned"] / tally["population"])
            found["Abowd et al.", "Table S10", f"{source} {size}", "binned share"] = shares
    noisy = [found["Abowd et al.", "Table S10", f"rMDF_b,t {s}", "binned share"] for s in SIZES]
    assert falls(noisy[::-1])  # noise of one size changes most in small blocks
    plain = [found["Abowd et al.", "Table S10", f"rHDF_b,t {s}", "binned share"] for s in SIZES]
    assert all(surely_less(one, other) for one, other in zip(noisy, plain, strict=True))
    return found


def test_people_reconstructed_and_linked():
    parts = (sizes, links_by_size, noise, guessers, certain_links, agreement)
    found = {key: value for part in parts for key, value in part().items()}
    assert all(len(values) == len(tracts()) for values in found.values())
    compare(f"{HERE}::test_people_reconstructed_and_linked", found)


# --- people: the majority of the block ------------------------------------------------------------


@cache
def counties():
    """Majority inference from a swapped and a noisy release of ten counties."""
    spec = br.census.population_spec("county", n_blocks=120)
    tables = br.Workload.named("sf1-block", levels=["county", "block"]).select(tables=["P8", "P9"])
    mechanisms = {
        "swapped": br.make_mechanism(
            "swapping",
            rate="1/10",
            swap_key=["size", "adults"],
            unique_by=["race"],
            within="county",
            unique_within="tract",
            unit="household",
        ),
        "noisy": br.make_mechanism("topdown", rho="1", invariants=[("county", "P8")]),
    }
    found = []
    for seed in range(1, 11):
        county = br.simulate_population(spec, rng=seed)
        people = county.persons.to_frame()[PERSON]
        releases = {
            name: br.risk.race_ethnicity_counts(
                mechanism.release(county, workload=tables, rng=2).tables
            )
            for name, mechanism in mechanisms.items()
        }
        truth = br.risk.race_ethnicity_counts(people)
        found.append(br.risk.majority_inference(releases, truth=truth))
    return found


def points(column, release="noisy", threshold=5):
    tables = (
        found.summary(threshold=threshold, precisions=[0.95, 1.0]).set_index("release")
        for found in counties()
    )
    return 100 * np.array([table.loc[release, column] for table in tables])


def test_majorities_after_swapping_and_noise():
    columns = {
        ("mean", "precision"): "mean_precision",
        ("mean", "recall"): "inferred_share",
        ("95", "recall"): "recall_at_0.95",
        ("100", "recall"): "recall_at_1",
    }
    found = {}
    for place in ("Abstract", "Section 1", "Table 1", "Section 3"):
        for key, column in columns.items():
            found[("Francis", place, *key)] = points(column)
    # Few points separate the two protections, in every measure.
    for column in columns.values():
        difference = interval(points(column) - points(column, "swapped"))
        assert -2 < difference[1] <= difference[2] < 2
    # "Even with a threshold of 20" a part of the people can be inferred with certainty.
    assert surely_less(points("recall_at_1", threshold=20), points("recall_at_1"))
    assert points("recall_at_1", threshold=20).min() > 2
    found |= errors_of_majorities()
    compare(f"{HERE}::test_majorities_after_swapping_and_noise", found)


def errors_of_majorities():
    """Noise changes the count of the majority by one or two people, in blocks of every size."""
    tables = [
        county.by_block_size(threshold=1).query("release == 'noisy'").set_index("block_size")
        for county in counties()
    ]
    for size in SIZES:
        low, high = interval([table["sd_error"][size] for table in tables])[1:]
        assert 0.75 < low <= high < 2
    near = []
    for county in counties():
        blocks = county.blocks.query("release == 'noisy'")
        near.append(100 * ((blocks["released"] - blocks["true"]).abs() <= 10).mean())
    found = {("Francis", "Figure 4", "most", ""): near}
    assert min(near) > 75
    return found
