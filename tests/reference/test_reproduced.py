"""Every row of the register that says ``reproduced`` or ``corrected``, computed by the package.

``ANSWERS`` maps a paper and a place to a function that computes the numbers printed there, by row
and column.  A row with such a status that no answer covers fails, unless it names another test.
"""

import warnings
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from printed import ROWS, number, rounded

import bayesrisk as br
from bayesrisk.tables.schema import AGE_BIN_STARTS

HERE = "tests/reference/test_reproduced.py"
EXACT = "test_the_package_gives_the_printed_number"
OTHER = "test_the_package_gives_another_number"
RHO = Fraction("2.56") * Fraction(165, 4099) * Fraction(3945, 4097)
PRIORS = {"1/2": 1 / 2, "1/5": 1 / 5, "1/10": 1 / 10, "1/50": 1 / 50, "1/864": 1 / 864}
GRANVILLE = {"n_siblings": 27, "rho_block": 0.0992264, "rho_group": 0.2464845, "prior": 0.5}
ALONE = ("", "")  # a number of the text: no row, no column


def of_what(place_rows):
    """Answers to numbers of a text, which have no row or column but say what they are."""
    return {(what, ""): value for what, value in place_rows.items()}


# --- Kazan and Reiter -----------------------------------------------------------------------------


def budget():
    frame = br.accounting.census_2020_budget("pl94", total_rho="2.56")
    return frame, frame[frame["query"] == "detailed"].set_index("level")


def pl94():
    return dict(zip(br.Schema.named("pl94").names, br.Schema.named("pl94").shape, strict=True))


def section_2_3():
    frame, detailed = budget()
    return of_what(
        {
            "geographic levels": len(detailed),
            "cells of the detailed query": np.prod(list(pl94().values())),
            "queries that share the budget of a level": frame.groupby("level").size().max(),
        }
    )


def table_2():
    _, detailed = budget()
    return {
        (level, column): detailed.loc[level, name]
        for level in detailed.index
        for column, name in (
            ("level share", "level_share"),
            ("query share", "query_share"),
            ("rho", "rho"),
        )
    }


def section_4_1():
    size = pl94()
    assert size["votingage"] == size["hispanic"]
    return {
        ("2020", "votingage, hispanic"): size["hispanic"],
        ("2020", "hhgq"): size["hhgq"],
        ("2020", "cenrace"): size["cenrace"],
        ("2020", "cells"): np.prod(list(size.values())),
    }


def table_3():
    counts = br.datasets.load("dare-county-28-21")["count"]
    return {(str(i), "count"): count for i, count in enumerate(counts)}


def section_4_2_kazan():
    law = br.DiscreteGaussian.from_rho(RHO, loc=1)
    people = br.datasets.load("dare-county-28-21")["count"].sum()
    share = {(str(y), "share"): 100 * float(law.pmf(y)) for y in (4, 5)}
    return share | of_what({"people of the district": people})


def table_4():
    law = br.DiscreteGaussian.from_rho(RHO, loc=1)
    found = {}
    for y in range(1, 6):
        found[str(y), "mass"] = law.pmf(y)
        for name, prior in PRIORS.items():
            found[str(y), f"posterior {name}"] = br.posterior_probability(y, rho=RHO, prior=prior)
            found[str(y), f"risk {name}"] = br.risk_ratio(y, rho=RHO, prior=prior)
    return found


def table_5():
    found = {}
    for name, prior in PRIORS.items():
        found[name, "posterior"] = br.marginal_posterior(rho=RHO, prior=prior)
        found[name, "risk"] = br.marginal_risk(rho=RHO, prior=prior)
    return found


@cache
def published():
    """The two levels of Granville County with the conditionals as published."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", br.exceptions.IncompatibleConditionalsWarning)
        posterior = br.hierarchical_posterior(2, 1, -1, **GRANVILLE, conditionals="as-published")
        question = br.TwoLevels(**GRANVILLE, conditionals="as-published")
        return posterior, question.gain(1), question.correct_decision([60])


def found_with(ties="as-published", *, block_count=1, **change):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", br.exceptions.IncompatibleConditionalsWarning)
        question = br.TwoLevels(**GRANVILLE | {"conditionals": "as-published"} | change)
        return 100 * float(question.correct_decision(1, block_count=block_count, ties=ties).value)


def table_7():
    target = 100 * float(published()[0].target_probability)
    return {("", "0"): 100 - target, ("", "1"): target}


def table_8():
    group = 100 * published()[0].group_pmf
    return {("", str(n)): group.loc[n] for n in range(8)}


def section_4_3():
    posterior = published()[0]
    return of_what(
        {
            "posterior of a group count of 1": 100 * posterior.group_pmf.loc[1],
            "posterior of the block alone": 100 * float(posterior.block_probability),
        }
    )


def figure_4():
    gain = published()[1]
    return {
        (name, ""): 100 * float(value)
        for name, value in (("gain", gain.gain), ("loss", gain.loss), ("net", gain.net))
    }


def figure_5():
    return {ALONE: 100 * float(published()[2].value[0])}


def figure_6():
    alone = 100 * float(published()[2].without_hierarchy[0])
    return {("block alone", ""): alone, ("limit", ""): found_with(rho_group=100.0)}


def section_s4():
    point = {n: br.distributions.FiniteLaw(n, [1.0]) for n in (1, 28)}
    return {
        ("flat to an end", ""): found_with(
            group_prior=br.distributions.FiniteLaw(0, np.full(101, 1 / 101))
        ),
        ("N = 1", ""): found_with(group_prior=point[1]),
        ("N = 28", ""): found_with(group_prior=point[28]),
        ("N = 28, absent", ""): found_with(group_prior=point[28], block_count=0),
    }


# --- Abowd et al. ---------------------------------------------------------------------------------


def persons():
    schema = br.Workload.named("sf1-block").schema
    return dict(zip(schema.names, schema.shape, strict=True))


def abowd_materials():
    geography = br.Workload.named("sf1-block").schema.geography
    digits = dict(zip(geography.levels, geography.widths, strict=True))
    return of_what(
        {
            "digits of a block code": digits["block"],
            "digits of a tract code": digits["tract"],
            "age groups of the block tables": len(AGE_BIN_STARTS),
        }
    )


def abowd_methods():
    ten = br.risk.inference_without_record(nine_of_ten()).to_frame().iloc[0]
    shape = persons()
    return of_what(
        {
            "ages of the exact-age schema, last": shape["age"] - 1,
            "cells of race and ethnicity": shape["race"] * shape["hisp"],
            "example: accuracy of the modal guesser": 100 * ten["modal"],
            "example: accuracy of the proportional guesser": 100 * ten["proportional"],
            "example: probability of a right guess for one of the nine": ten["proportional"] / 0.9,
            "example: probability that one of the nine is taken for the tenth": (
                1 - ten["proportional"] / 0.9
            ),
        }
    )


def nine_of_ten():
    return pd.DataFrame({"block": "010010201001000", "race": [1] * 9 + [8], "hisp": [0] * 10})


def abowd_discussion():
    simple = br.rho_to_epsilon(15, 1e-10, method="bun-steinke")
    return of_what({"epsilon at that rho and delta 1e-10, above": np.floor(simple)})


def first_age(text):
    return int(text.partition("-")[0])


def table_s2():
    ages = br.Workload.named("sf1-block").at("block")["P12"].factors["age"]
    groups = [np.flatnonzero(row) for row in np.unique(ages, axis=0)]
    starts = sorted((group[0], group[-1]) for group in groups)
    found = {}
    for index, (low, high) in enumerate(starts):
        found[str(low) if low == high else f"{low}-{high}", ""] = index
    return found


def table_s3():
    ages = np.arange(111)
    bins = br.reconstruction.age_bin(ages)
    found = {}
    for index in np.unique(bins):
        inside = ages[bins == index]
        low, high = inside[0], inside[-1]
        found[str(low) if low == high else f"{low}-{high}", ""] = index
    return found


# --- Francis, Liu et al., Steed et al. ------------------------------------------------------------


def francis_section_2():
    shape = persons()
    return {
        ("", "hispanic"): shape["hisp"],
        ("", "race"): shape["race"],
        ("", "basic"): np.log2(shape["race"] + 1),
        ("", "cells"): shape["race"] * shape["hisp"],
    }


def francis_section_3():
    block = "010010201001000"
    truth = pd.DataFrame({"block": block, "race": [1, 2], "hisp": 0, "count": [51, 49]})
    noisy = truth.assign(count=[49, 51])
    people = truth.loc[truth.index.repeat(truth["count"]), ["block", "race", "hisp"]]
    other = noisy.loc[noisy.index.repeat(noisy["count"]), ["block", "race", "hisp"]]
    counts = {"true": people, "second": other}
    releases = {name: br.risk.race_ethnicity_counts(frame) for name, frame in counts.items()}
    found = br.risk.majority_inference(releases, truth=br.risk.race_ethnicity_counts(people))
    table = found.summary(threshold=5, precisions=[0.5]).set_index("release")
    return {("example", name): 100 * table.loc[name, "mean_precision"] for name in counts}


def liu_section_1():
    block, tract = (
        len(br.Workload.named(f"sf1-{level}").at(level)) for level in ("block", "tract")
    )
    return of_what({"person tables of the study cited": block + tract})


def liu_section_4():
    schema = br.Schema.named("household-dhc")
    tables = br.Workload.named("household-dhc").at("block").values()
    found = {("", name): size - 1 for name, size in zip(schema.names, schema.shape, strict=True)}
    found["", "statistics"] = sum(len(table.cells) for table in tables)
    return found | of_what(
        {
            "columns of a household": len(schema.names),
            "columns of the person data of earlier work": len(persons()),
        }
    )


def steed_section_3_1():
    sizes = np.arange(1, 8)
    allowed = {
        ("", str(b)): sizes[~br.census.occupancy_violation(sizes, np.full(7, code))].max()
        for b, code in ((1, 1), (2, 2))
    }
    return allowed | {("t", ""): br.census.OccupancyStudy(seeds=(1,)).solutions}


def steed_section_4_1():
    return {("t", ""): br.census.OccupancyStudy(seeds=(1,)).solutions}


def steed_section_4_2():
    swapping = br.make_mechanism(
        "swapping", rate="1/10", swap_key=["size"], unique_by=["size"], within="county",
        unique_within="tract", unit="household",
    )  # fmt: skip
    parameters = swapping.spec.parameters
    found = {("partners", ""): parameters["neighbours"]}
    for i, (share, probability) in enumerate(parameters["tiers"]):
        found[str(i), "share"] = 100 * Fraction(share)
        found[str(i), "probability"] = 100 * Fraction(probability)
    total = {
        universe: sum(br.accounting.census_2020_budget("dhc", universe=universe)["rho"])
        for universe in ("person", "household", "unit")
    }
    found["persons", ""] = total["person"]
    found["households", ""] = total["household"] + total["unit"]
    return found


ANSWERS = {
    ("Kazan and Reiter", "Section 2.3"): section_2_3,
    ("Kazan and Reiter", "Table 2"): table_2,
    ("Kazan and Reiter", "Section 4.1"): section_4_1,
    ("Kazan and Reiter", "Table 3"): table_3,
    ("Kazan and Reiter", "Section 4.2"): section_4_2_kazan,
    ("Kazan and Reiter", "Table 4"): table_4,
    ("Kazan and Reiter", "Table 5"): table_5,
    ("Kazan and Reiter", "Table 7"): table_7,
    ("Kazan and Reiter", "Table 8"): table_8,
    ("Kazan and Reiter", "Section 4.3"): section_4_3,
    ("Kazan and Reiter", "Figure 4"): figure_4,
    ("Kazan and Reiter", "Figure 5"): figure_5,
    ("Kazan and Reiter", "Figure 6"): figure_6,
    ("Kazan and Reiter", "Section S4"): section_s4,
    ("Abowd et al.", "Materials"): abowd_materials,
    ("Abowd et al.", "Methods"): abowd_methods,
    ("Abowd et al.", "Discussion"): abowd_discussion,
    ("Abowd et al.", "Table S2"): table_s2,
    ("Abowd et al.", "Table S3"): table_s3,
    ("Francis", "Section 2"): francis_section_2,
    ("Francis", "Section 3"): francis_section_3,
    ("Liu et al.", "Section 1"): liu_section_1,
    ("Liu et al.", "Section 4"): liu_section_4,
    ("Steed et al.", "Section 3.1"): steed_section_3_1,
    ("Steed et al.", "Section 4.1"): steed_section_4_1,
    ("Steed et al.", "Section 4.2"): steed_section_4_2,
}
cached = cache(lambda paper, place: ANSWERS[paper, place]())


def name_of(row):
    return "-".join(filter(None, (row["paper"], row["place"], row["row"], row["column"])))


def rows_of(test):
    own = [row for row in ROWS if row["checked"] == f"{HERE}::{test}"]
    return pytest.mark.parametrize("row", own, ids=name_of)


def answer(row):
    found = cached(row["paper"], row["place"])
    key = (row["row"], row["column"])
    return float(found[key] if key != ALONE or key in found else found[row["what"], ""])


def agrees(value, text):
    """Whether a number rounds to a printed one; shares printed as fractions are exact."""
    if "/" in text:
        return value == pytest.approx(float(number(text)), rel=1e-12)
    low, high = (float(bound) for bound in rounded(text))
    return low * (1 - 1e-12) <= value <= high * (1 + 1e-12)


@rows_of(EXACT)
def test_the_package_gives_the_printed_number(row):
    assert row["status"] == "reproduced"
    assert agrees(answer(row), row["value"])


@rows_of(OTHER)
def test_the_package_gives_another_number(row):
    assert row["status"] in {"corrected", "contradicts itself"}
    assert agrees(answer(row), row["ours"])
    assert not agrees(answer(row), row["value"])


def test_a_wrong_number_would_be_seen():
    assert not agrees(0.5256, "0.525")
    assert agrees(0.5254, "0.525")
    assert not agrees(104 / 4100, "104/4,099")
    changed = ROWS[0] | {"paper": "Kazan and Reiter", "place": "Table 4", "row": "1"}
    assert not agrees(answer(changed | {"column": "posterior 1/2"}), "0.526")
