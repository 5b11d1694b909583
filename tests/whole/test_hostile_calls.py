"""What constructors and functions say of arguments that nobody means to pass."""

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import bayesrisk as br
from bayesrisk._base import validation as check
from bayesrisk.census.occupancy.statistics import OccupancyStatistics
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, BayesRiskError, ShapeError, quote
from bayesrisk.experiments import Protection
from bayesrisk.experiments.by_place import split_by_place
from bayesrisk.experiments.sweep_document import parse_config
from bayesrisk.reconstruction.claims.verification import ClaimOptions
from bayesrisk.reconstruction.persons import Persons

PLACES = br.tables.Geography("towns", ("county", "block"), (1, 3))
SEX = br.tables.Attribute("sex", 2)
SCHEMA = br.Schema("people", (SEX, br.tables.Attribute("age", 3)), PLACES)
TABLE = br.tables.Table("sex", ("men", "women"), {"sex": np.eye(2, dtype=np.int64)})
WORKLOAD = br.Workload(SCHEMA, {("block", "sex"): TABLE})
RECORDS = br.Records.from_frame(
    pd.DataFrame({"block": ["100", "101", "101"], "sex": [0, 1, 1], "age": [0, 1, 2]}),
    schema=SCHEMA,
)
TABLES = br.tabulate(RECORDS, WORKLOAD)
SPEC = br.release.MechanismSpec("identity", {}, {("block", "sex"): br.release.TrueCounts()})
TREE = br.Tree.from_frame(
    pd.DataFrame({"node": ["g"], "parent": [""], "noisy_count": [3], "rho": [0.1]})
)
COLUMNS = {"block": [1, 2]}
STATEMENTS = pd.DataFrame(
    {
        "attack": "claims",
        "adversary": "outsider",
        "protection": "identity",
        "target": ["1"],
        "statement": ["a"],
        "people": [1],
        "prior": [0.5],
        "posterior": 1.0,
        "lower": 1.0,
        "upper": 1.0,
        "ratio": [2.0],
        "status": "proved",
    }
)


def _cyclic():
    found = []
    found.append(found)
    return found


def _deep():
    found = []
    for _ in range(20_000):
        found = [found]
    return found


def _view(value=1):
    return np.broadcast_to(value, (2**40,))


#: An argument, and a call that takes it.
CALLS = {
    "Attribute name": ("name", lambda v: br.tables.Attribute(v, 2)),
    "Attribute size": ("size", lambda v: br.tables.Attribute("sex", v)),
    "Geography levels": ("levels", lambda v: br.tables.Geography("towns", v, (1, 3))),
    "Schema attributes": ("attributes", lambda v: br.Schema("people", v, PLACES)),
    "Table cells": ("cells", lambda v: br.tables.Table("sex", v, {})),
    "Workload schema": ("schema", lambda v: br.Workload(v, {("block", "sex"): TABLE})),
    "Workload tables": ("tables", lambda v: br.Workload(SCHEMA, v)),
    "Histogram schema": ("schema", lambda v: br.tables.Histogram(v, "block", ["100"], np.eye(1))),
    "Histogram counts": ("counts", lambda v: br.tables.Histogram(SCHEMA, "block", ["100"], v)),
    "PublishedTables workload": ("workload", lambda v: br.PublishedTables(v, {}, {})),
    "PublishedTables geoids": ("geoids", lambda v: br.PublishedTables(WORKLOAD, v, {})),
    "PublishedTables counts": (
        "counts",
        lambda v: br.PublishedTables(WORKLOAD, TABLES.geoids, v),
    ),
    "tabulate records": ("records", lambda v: br.tabulate(v, WORKLOAD)),
    "tabulate workload": ("workload", lambda v: br.tabulate(RECORDS, v)),
    "Records.from_frame": ("frame", lambda v: br.Records.from_frame(v, schema=SCHEMA)),
    "Records.replace": ("age", lambda v: RECORDS.replace(age=v)),
    "MechanismSpec tables": ("tables", lambda v: br.release.MechanismSpec("identity", {}, v)),
    "Release diagnostics": ("diagnostics", lambda v: br.Release(SPEC, TABLES, v)),
    "match_records left": (
        "left",
        lambda v: br.reconstruction.match_records(v, COLUMNS, keys=[("block",)], rng=1),
    ),
    "claims among": ("among", lambda v: br.reconstruction.find_claims(TABLES, among={"sex": v})),
    "find_claims tables": ("tables", lambda v: br.reconstruction.find_claims([v])),
    "tree_posterior tree": ("tree", lambda v: br.tree_posterior([v], leaf_prior="flat")),
    "compare audit": ("audit", lambda v: br.risk.compare(v)),
    "Statements frame": ("statements", lambda v: br.Statements(v)),
    "Statements.summary thresholds": (
        "thresholds",
        lambda v: br.Statements(STATEMENTS).summary(thresholds=v),
    ),
    "parse_config document": ("document", lambda v: parse_config(v, folder=".")),
    "sample_tree nodes": (
        "node",
        lambda v: br.inference.sample_tree(
            TREE, leaf_prior="flat", nodes=v, rng=1, draws=4, warmup=1, chains=1
        ),
    ),
    "sample_tree leaf_prior": (
        "leaf_prior",
        lambda v: br.inference.sample_tree(TREE, leaf_prior=v, rng=1, draws=4, warmup=1, chains=1),
    ),
    "Workload.select levels": ("levels", lambda v: WORKLOAD.select(levels=v)),
    "Workload.sensitivity norm": ("norm", lambda v: WORKLOAD.sensitivity("add-remove", norm=v)),
    "Workload.from_dict values": ("workload", lambda v: br.Workload.from_dict(v)),
    "Table.incidence schema": ("schema", lambda v: TABLE.incidence(v, [0])),
    "Microdata.for_schema target": (
        "target",
        lambda v: br.tables.Microdata(persons=RECORDS).for_schema(v),
    ),
    "MechanismSpec.likelihood level": ("level", lambda v: SPEC.likelihood(v, "sex")),
    "RecordQuestion name": ("name", lambda v: br.inference.RecordQuestion({}, name=v)),
    "split_by_place records": ("records", lambda v: split_by_place(v, "nowhere")),
    "ClaimOptions.from_options options": (
        "options",
        lambda v: ClaimOptions.from_options(v),
    ),
}
#: Values that none of these arguments takes.
WRONG = {
    "a number": lambda: 0.5,
    "a whole number that Python does not print": lambda: 10**5000,
    "a masked entry": lambda: np.ma.masked,
    "a missing value": lambda: pd.NA,
    "a view of 2**40 numbers": _view,
    "a list in itself": _cyclic,
    "an iterator without end": lambda: iter(int, 1),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_is_wrong_is_named(call):
    argument, function = CALLS[call]
    for wrong, make in WRONG.items():
        with pytest.raises(BayesRiskError) as caught:
            function(make())
        assert argument in str(caught.value), wrong
        assert len(str(caught.value)) < 2000, wrong


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("start", lambda v: br.distributions.FiniteLaw(v, [1.0])),
        ("x", lambda v: br.DiscreteGaussian(sigma2=1.0).cdf(v)),
        ("sigma2", lambda v: br.DiscreteGaussian(sigma2=v)),
        ("released", lambda v: br.release.RoundingSpec(3, "nearest").probability(v, 3)),
        ("size", lambda v: br.DiscreteGaussian(sigma2=1.0).rvs(size=(2**20, 2**20))),
    ],
)
def test_views_are_refused_by_their_shape(argument, call):
    """Before anything of their size is made: the limit is a number of elements."""
    with pytest.raises(ArgumentError, match=argument) as caught:
        call(_view())
    assert str(check.MAX_ELEMENTS) in str(caught.value)


def test_masked_entries_do_not_become_numbers():
    masked = np.ma.masked_array([1, 2, 3], mask=[False, True, False])
    with pytest.raises(ArgumentError, match="x must have no masked entry"):
        br.DiscreteGaussian(sigma2=1.0).pmf(masked)
    sound = np.ma.masked_array([1, 2, 3], mask=False)
    expected = br.DiscreteGaussian(sigma2=1.0).pmf([1, 2, 3])
    np.testing.assert_array_equal(br.DiscreteGaussian(sigma2=1.0).pmf(sound), expected)


@pytest.mark.parametrize("value", [pd.NA, pd.NaT, None])
def test_missing_values_are_named(value):
    with pytest.raises(ArgumentTypeError, match="x must hold real numbers, got"):
        br.DiscreteGaussian(sigma2=1.0).pmf(np.array([1, value], dtype=object))


@pytest.mark.parametrize("value", [_cyclic(), ["a", _deep()], [(1,), 2, 3]])
def test_columns_hold_single_values(value):
    """Arrow follows a list into itself, and ends the interpreter."""
    with pytest.raises(BayesRiskError, match="remark"):
        RECORDS.replace(remark=value)
    frame = RECORDS.to_frame().assign(remark=pd.Series([value] * 3, dtype=object))
    with pytest.raises(BayesRiskError, match="remark"):
        br.Records.from_frame(frame, schema=SCHEMA)


def test_columns_of_text_and_missing_values_are_kept():
    changed = RECORDS.replace(remark=["a", None, "b"], age=np.array([1, 1, 2]))
    assert changed.table.column("remark").to_pylist() == ["a", None, "b"]
    assert changed.codes("age").tolist() == [1, 1, 2]


@pytest.mark.parametrize("total", [Fraction(10**400), Fraction(1, 10**400), 10**400])
def test_budgets_of_the_census_are_doubles(total):
    with pytest.raises(ArgumentError, match=r"total_rho must be in \[1e-100, 1e100\]"):
        br.accounting.census_2020_budget("pl94", total_rho=total)


@pytest.mark.parametrize("rho", [1e-300, 1e-320])
def test_releases_of_a_path_say_something(rho):
    """Counts beyond 2**61 were drawn for ever, or did not fit an integer."""
    path = br.Tree.path([2, 1], [-1], n_siblings=3, rho=rho, prior=0.5)
    with pytest.raises(ArgumentError, match=r"rho / sensitivity\*\*2 must be 0 or >= 1e-30"):
        br.inference.sample_tree(path, leaf_prior="flat", draws=9, warmup=1, chains=1, rng=1)


def test_no_places_are_no_places_of_the_records():
    with pytest.raises(ArgumentError, match="records must lie in geoids"):
        br.tabulate(RECORDS, WORKLOAD, geoids=[])


def test_sequences_of_the_constructors_become_tuples():
    made = br.Schema("people", [SEX], br.tables.Geography("towns", ["block"], [np.int64(3)]))
    assert hash(made) == hash(
        br.Schema("people", (SEX,), br.tables.Geography("towns", ("block",), (3,)))
    )
    assert br.tables.Attribute("sex", np.int64(2), labels=["m", "f"]).labels == ("m", "f")


def test_messages_quote_whatever_they_can():
    assert quote(10**5000) == "a value of type int"
    assert quote(_deep()) == "a value of type list"
    assert len(quote("9" * 10**6)) < 300
    with pytest.raises(ShapeError, match="x must be a rectangular array"):
        check.real_array([[1], [1, 2]], "x")


def _with_parents(parent, nodes=("g", "a")):
    frame = {"node": list(nodes), "parent": parent, "noisy_count": [3, 2], "rho": [0.2, 0.1]}
    return br.Tree.from_frame(pd.DataFrame(frame))


def _persons(column):
    people = {"block": ["500010101001000"], "sex": [0], "age": [21], "person": ["x"]}
    return Persons(pd.DataFrame(people | {column: [Decimal("sNaN")]}, dtype=object), "known")


def _statistics(name):
    shapes = {"sizes": 7, "race": 14, "hud_race": 7, "hud_children": 2, "hud_bedrooms": 3}
    given = {
        n: np.zeros((1, shapes[n]) if n in shapes else 1, np.int64)
        for n in (
            "households", "population", "sizes", "race", "children", "hud_households",
            "hud_people", "hud_race", "hud_children", "hud_bedrooms",
        )
    }  # fmt: skip
    return OccupancyStatistics(np.array(["500010101001000"]), **(given | {name: None}))


def _leaf_prior(name, value):
    given = dict.fromkeys(("log_jump", "size", "log_ratio"), 0.5) | {name: value}
    return br.inference.LeafPrior(name="x", **given)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (
            lambda: br.risk.MechanismQuestion(
                WORKLOAD, pd.DataFrame({"a": [1]}), alternatives=[None], prior=0.5
            ),
            "observed",
        ),
        (lambda: _with_parents([None, slice(1)]), "row 1: column 'parent'"),
        (lambda: _with_parents([None, ["g"]]), "row 1: column 'parent'"),
        (lambda: _with_parents([None, "g"], nodes=["g", {}]), "row 1: column 'node'"),
        *((lambda c=c: _persons(c), "known: frame") for c in ("age", "person", "block", "sex")),
        *((lambda n=n: _statistics(n), n) for n in ("children", "households", "hud_people")),
        *(
            (lambda n=n, v=v: _leaf_prior(n, v), n)
            for n in ("log_jump", "size", "log_ratio")
            for v in (np.nan, [0.5, np.nan], None, "x")
        ),
        (lambda: br.census.read_hud(_deep(), level="tract"), "path"),
        (lambda: Protection("x", mechanism="\ud800"), "mechanism"),
    ],
)
def test_what_was_a_raw_error_or_kept_is_refused_by_name(call, named):
    with pytest.raises(BayesRiskError, match=named):
        call()


def test_numbers_that_no_square_holds_are_answered_or_refused_without_a_warning():
    law = br.DiscreteGaussian(5.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (1e300, 1e308):
            assert law.logsf(x) == law.logpmf(x) == law.logcdf(-x) == -np.inf
            assert law.sf(x) == law.pmf(x) == law.cdf(-x) == law.logcdf(x) == law.logsf(-x) == 0.0
        levels = {"rho_block": 0.1, "rho_group": 0.2, "prior": 0.5, "sensitivity": 1e-320}
        with pytest.raises(ArgumentError, match=r"rho_block / sensitivity\*\*2 must be finite"):
            br.inference.hierarchical_posterior(2, 1, -1, n_siblings=27, **levels)
        for zero in (0.0, -0.0):
            # P(found) = 0 and P(not cleared) > 0: no epsilon bounds their ratio.
            assert br.risk.decision_epsilon(found=zero, cleared=0.5) == np.inf
            assert br.risk.decision_epsilon(found=0.6, cleared=zero) == np.inf


@pytest.mark.parametrize("text", ["0,1", "1%", ".5", "x", "1/0", ["0,1"], ["0.1", "x"]])
def test_text_that_is_no_number_is_refused_with_what_to_write(text):
    written = {"0,1": "0[.]1", "1%": "0[.]01", ".5": "0[.]5"}.get(str(text))
    advice = "such as '1/10'" if written is None else f"write {written}"
    for name in ("prior", "rho"):
        with pytest.raises(ArgumentTypeError, match=rf"{name} must .*{advice}"):
            br.risk_ratio(3, **({"prior": 0.5, "rho": 1} | {name: text}))
    assert br.risk_ratio(3, rho="1/1", prior="1/10") == br.risk_ratio(3, rho=1, prior=0.1)
