"""Noise in every cell: its law, its exact scale, and budgets in their three forms."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from oracles.mechanisms import AGES, SEX, TOTAL, people_workload, population
from scipy import stats

from bayesrisk._base.validation import SENSITIVITIES
from bayesrisk.accounting import census_2020_budget
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.mechanisms import Identity, make_mechanism, noise
from bayesrisk.mechanisms.base import census_level, most_cells
from bayesrisk.mechanisms.registry import REGISTRY
from bayesrisk.tables import Schema, Table, Workload

WEIGHTED = Table("weighted", ("a", "b"), {"sex": np.array([[2, 0], [1, 3]])})
GAUSS, LAPLACE = "discrete-gaussian", "discrete-laplace"


def differences(name, tables, *, runs=40, **parameters):
    """Return released minus true counts of all cells, over several runs."""
    data = population(3, blocks=20)
    asked = people_workload(*tables, levels=("block",))
    truth = Identity().release(data, workload=asked, rng=0).tables
    mechanism = make_mechanism(name, **parameters)
    found = {key: [] for key in truth.counts}
    for seed in range(runs):
        made = mechanism.release(data, workload=asked, rng=seed)
        for key, counts in made.tables.counts.items():
            found[key].append((counts - truth.counts[key]).toarray().ravel())
    return mechanism.spec, {key: np.concatenate(parts) for key, parts in found.items()}


def chi_square(sample, law):
    """Return the p-value of a sample under a law, cells of at least five expected."""
    low, high = int(law.ppf(5 / len(sample))), int(law.isf(5 / len(sample)))
    inner = np.arange(low + 1, high)
    expected = [law.cdf(low), *law.pmf(inner), law.sf(high - 1)]
    observed = [
        (sample <= low).sum(),
        *((sample == x).sum() for x in inner),
        (sample >= high).sum(),
    ]
    return stats.chisquare(observed, np.array(expected) * len(sample)).pvalue


@pytest.mark.parametrize(
    ("name", "unit"), [(GAUSS, {"block": {"ages": "1/10"}}), (LAPLACE, {"block": {"ages": "1/2"}})]
)
def test_noise_follows_its_law(name, unit):
    spec, found = differences(name, [AGES], budgets=unit, sensitivity="add-remove", runs=80)
    sample = found["block", "ages"]
    assert len(sample) == 80 * 20 * 3
    assert chi_square(sample, spec.law("block", "ages")) > 1e-3
    # Negative control: the same noise is not that of twice the budget.
    double = {level: {t: 2 * Fraction(b) for t, b in part.items()} for level, part in unit.items()}
    other = make_mechanism(name, budgets=double, sensitivity="add-remove").spec
    assert chi_square(sample, other.law("block", "ages")) < 1e-6


def test_every_cell_gets_its_own_noise():
    parameters = {"budgets": {"block": {"ages": 1, "sex": 1}}, "sensitivity": "change-one"}
    _, found = differences(GAUSS, [SEX, AGES], overlap={"sex": 2}, **parameters)
    sex, ages = found["block", "sex"], found["block", "ages"]
    assert abs(np.corrcoef(sex, ages)[0, 1]) < 4 / np.sqrt(len(sex))
    assert abs(np.corrcoef(sex[:-1], sex[1:])[0, 1]) < 4 / np.sqrt(len(sex))


def test_empty_blocks_get_noise_too():
    data = population(0, blocks=25, households=1)
    made = make_mechanism(LAPLACE, budgets={"block": {"total": "1/9"}}, sensitivity="add-remove")
    tables = made.release(data, workload=people_workload(TOTAL, levels=("block",)), rng=0).tables
    counts = tables.counts["block", "total"].toarray()
    assert counts.shape == (25, 1)
    assert (counts != 0).sum() > 15
    assert tables.signed


@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=10),
    st.sampled_from(sorted(SENSITIVITIES)),
    st.integers(1, 5),
)
def test_scales_are_exact(budget, kind, overlap):
    moved = {"add-remove": 1, "change-one": 2}[kind]
    parameters = {"budgets": {"b": {"t": budget}}, "sensitivity": kind, "overlap": overlap}
    scale = make_mechanism(GAUSS, **parameters).spec.noise["b", "t"].scale
    assert scale == Fraction(moved * overlap, 1) / (2 * budget)
    assert float(moved) == pytest.approx(SENSITIVITIES[kind] ** 2)
    scale = make_mechanism(LAPLACE, **parameters).spec.noise["b", "t"].scale
    assert scale == Fraction(moved * overlap, 1) / budget


def test_shares_are_exact():
    mechanism = make_mechanism(
        GAUSS,
        rho="293764/114921",
        level_shares={"block": "165/4099", "tract": "687/4099"},
        table_shares={"block": {"detailed": "3945/4097"}, "tract": {"detailed": "241/2051"}},
        sensitivity="change-one",
    )
    budgets = census_2020_budget("pl94").set_index(["level", "query"])["rho"]
    for level, name in (("block", "Block"), ("tract", "Tract")):
        assert mechanism.spec.noise[level, "detailed"].scale == 1 / budgets[name, "detailed"]


@pytest.mark.parametrize("product", ["pl94", "dhc"])
def test_named_allocations(product):
    spec = make_mechanism(GAUSS, allocation=product, sensitivity="change-one").spec
    frame = census_2020_budget(product)
    assert len(spec.noise) == len(frame)
    for row in frame.itertuples():
        assert spec.noise[census_level(row.level), row.query].scale == 1 / row.rho


def test_allocations_are_rescaled():
    chosen = {"product": "pl94", "region": "PR"}
    spec = make_mechanism(GAUSS, allocation=chosen, rho=2, sensitivity="add-remove").spec
    assert sum(1 / (2 * noise.scale) for noise in spec.noise.values()) == 2
    spec = make_mechanism(LAPLACE, allocation="pl94", epsilon=3, sensitivity="add-remove").spec
    assert sum(1 / noise.scale for noise in spec.noise.values()) == 3


def test_the_release_says_what_it_spent():
    mechanism = make_mechanism(
        GAUSS, budgets={"block": {"total": "1/4", "ages": "1/2"}}, sensitivity="add-remove"
    )
    asked = people_workload(TOTAL, levels=("block",))
    made = mechanism.release(population(0), workload=asked, rng=1)
    assert made.diagnostics == {"rho": 0.25}
    assert set(made.spec.noise) == {("block", "total")}


def test_drawing_in_pieces_changes_nothing(monkeypatch):
    mechanism = make_mechanism(GAUSS, budgets={"block": {"ages": 1}}, sensitivity="add-remove")
    asked = people_workload(AGES, levels=("block",))
    whole = mechanism.release(population(0), workload=asked, rng=1).tables
    monkeypatch.setattr(noise, "_CHUNK", 7)
    assert mechanism.release(population(0), workload=asked, rng=1).tables == whole


@pytest.mark.parametrize(
    ("table", "norm", "expected"),
    [(SEX, 1, 2), (SEX, 2, 2), (AGES, 1, 1), (TOTAL, 2, 1), (WEIGHTED, 1, 3), (WEIGHTED, 2, 9)],
)
def test_cells_of_one_record(table, norm, expected):
    people = people_workload(table).schema
    assert most_cells(people, table, norm=norm) == expected


def test_cells_of_one_record_in_published_tables():
    tables = Workload.named("sf1-block")
    for table in tables.tables.values():
        cells = np.arange(Schema.named("sf1-person").size)
        direct = table.incidence(tables.schema, cells).sum(axis=0).max()
        assert most_cells(tables.schema, table, norm=1) == direct


def test_a_wrong_sensitivity_is_an_error():
    mechanism = make_mechanism(GAUSS, budgets={"block": {"sex": 1}}, sensitivity="add-remove")
    with pytest.raises(ArgumentError, match="overlap of table 'sex' at level 'block' must be >= 2"):
        mechanism.release(population(0), workload=people_workload(SEX, levels=("block",)), rng=1)
    with pytest.raises(ArgumentError, match="got none for table 'ages'"):
        mechanism.release(population(0), workload=people_workload(AGES, levels=("block",)), rng=1)
    with pytest.raises(ArgumentTypeError, match="workload must be"):
        mechanism.release(population(0), workload="sf1-block", rng=1)


@pytest.mark.parametrize(
    ("name", "parameters", "match"),
    [
        (GAUSS, {"budgets": {"b": {"t": 1}}, "allocation": "pl94"}, "one form"),
        (GAUSS, {"budgets": {"b": {"t": 1}}, "rho": 1}, "leave it out"),
        (GAUSS, {"budgets": {"b": {"t": 0}}}, r"\['t'\] must be > 0"),
        (GAUSS, {"budgets": [1]}, "must be a mapping"),
        (GAUSS, {"budgets": {"b": {"t": 1}}, "overlap": 0}, "overlap must be >= 1"),
        (GAUSS, {"budgets": {"b": {"t": 1}}, "overlap": {"u": 2}}, "no budget"),
        (GAUSS, {"budgets": {"b": {"t": 1}}, "sensitivity": "both"}, "sensitivity must be one of"),
        (GAUSS, {"rho": 1, "level_shares": {"b": 1}}, "go together"),
        (GAUSS, {"rho": 1, "level_shares": {"b": "2/3", "c": "1/2"}, "table_shares": {"t": 1}},
         "level_shares must sum to at most 1, got 7/6"),
        (GAUSS, {"rho": 1, "level_shares": {"b": 1}, "table_shares": {"t": 1, "u": "1/2"}},
         "table_shares of b must sum to at most 1"),
        (GAUSS, {"rho": 1, "level_shares": {"b": 1}, "table_shares": {"c": {"t": 1}}},
         "must have the levels"),
        (GAUSS, {"allocation": {"product": "pl94", "year": 2020}}, "'year'"),
        (GAUSS, {"allocation": {"region": "US"}}, "must name its product"),
        (LAPLACE, {"allocation": "pl94"}, "needs epsilon"),
    ],
)  # fmt: skip
def test_parameters_are_checked(name, parameters, match):
    with pytest.raises(ArgumentError, match=match):
        REGISTRY.factory(name)(**{"sensitivity": "add-remove", **parameters})
