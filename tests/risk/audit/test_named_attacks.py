"""Attacks on whole releases as methods of an audit: what is believed, by hand, and what fails."""

import functools
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from audits import EVERYBODY, WORKLOAD, town

from bayesrisk.exceptions import ArgumentError, PluginError
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.reconstruction.records.reconstruction import ReconstructionAttack
from bayesrisk.reconstruction.registry import REGISTRY
from bayesrisk.risk.audit import AuditedPopulation, AuditQuestion, audit_checks

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "bayesrisk-homogeneous"
CODES = ["100", "101", "102"]


class Says:
    """An attack that says what it is given, of the place that it is handed."""

    name = "says"

    def __init__(self, told, *, proof=False):
        self._told, self.proof = told, proof

    def run(self, release):
        block = str(release.tables.geoids["block"][0])
        return self._told(block, release) if callable(self._told) else self._told


@pytest.fixture
def told(monkeypatch):
    """Return the statements of an audit of a town by an attack, which is registered for it."""

    def ask(factory, recipe="mine", protection="none", people=None, adversaries=EVERYBODY[:2]):
        monkeypatch.setattr(REGISTRY, "_registered", {"mine": factory, "homogeneous": factory})
        question = AuditQuestion(WORKLOAD, ("race",), adversaries, 3.0, (recipe,))
        of = AuditedPopulation(town(2, 12, CODES) if people is None else people, question, seed=1)
        mechanism = make_mechanism(protection)
        release = of.release("m", 0, mechanism)
        rows = np.arange(len(of.records))
        said = of.statements("m", "m", 0, mechanism, release, rows)
        return said.assign(release=0), of, release

    return ask


def test_an_attack_by_its_name_believes_what_the_package_does_of_the_same_attack(told):
    """Records of a foreign attack lead to the beliefs that the same records lead to at home."""
    attack = functools.partial(
        ReconstructionAttack, scope="block", nearest=True, taken_as_true=True
    )
    said, of, release = told(attack, adversaries=EVERYBODY)
    mechanism = make_mechanism("none")
    home = AuditQuestion(WORKLOAD, ("race",), EVERYBODY, 3.0, ("reconstruction",))
    own = AuditedPopulation(of.data, home, seed=1)
    expected = own.statements("m", "m", 0, mechanism, release, np.arange(12))
    names = ["adversary", "target", "statement"]
    both = said.merge(expected, on=names, suffixes=("", "_home"))
    assert len(both) == len(said) == len(expected) > 100
    for name in ("prior", "without", "posterior"):
        np.testing.assert_allclose(both[name], both[f"{name}_home"], atol=1e-12)
    assert set(said["status"]) == {"believed"}  # it does not say that it proves anything


def test_rows_that_leave_open_who_it_is_are_shared_as_in_the_prior(told):
    """Two women, race open, and one person of race c: 2 p_r + [r = c] of whom sex is unknown."""
    rows = {"sex": [0, None], "race": [None, 2], "people": [2, 1]}
    said, of, _ = told(lambda: Says(lambda block, _: pd.DataFrame({"block": block, **rows})))
    one = said[said["adversary"] == "outsider"]
    for target, mine in one.groupby("target"):
        shares = of.prior(int(of.place[int(target)])).shares_of_cells.reshape(2, 3)
        women = 2 * shares[0] / shares[0].sum() + np.array([0, 0, 1])
        by_value = mine.set_index("statement")["posterior"]
        labels = of.question.values
        np.testing.assert_allclose(by_value[labels], women / 3, atol=1e-12)
    linker = said[said["adversary"] == "linker"].set_index(["target", "statement"])["posterior"]
    for row in range(12):
        place, sex = int(of.place[row]), int(of.cells[row]) // 3
        shares = of.prior(place).shares_of_cells.reshape(2, 3)
        mine = np.array([0, 0, 1]) * shares[sex, 2] / shares[:, 2].sum()
        mine = mine + (2 * shares[0] / shares[0].sum() if sex == 0 else 0)
        got = linker[str(row)].reindex(of.question.values).fillna(0)
        np.testing.assert_allclose(got, mine / mine.sum(), atol=2e-3)


@pytest.fixture
def homogeneous(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLE)
    from bayesrisk_homogeneous import Homogeneous

    yield Homogeneous
    sys.modules.pop("bayesrisk_homogeneous", None)


def test_the_attack_of_the_page_proves_where_all_are_alike_and_believes_noise(told, homogeneous):
    recipe = "homogeneous:level=block,table=R"
    people = town(5, 9, ["100", "101", "102", "103"])
    said, of, _ = told(homogeneous, recipe, people=people, adversaries=EVERYBODY[:1])
    race = of.cells % 3
    alike = {p for p in range(of.codes.size) if len(set(race[of.place == p])) == 1}
    assert 0 < len(alike) < of.codes.size
    sure = said[said["status"] == "proved"]
    assert {int(of.place[int(t)]) for t in sure["target"]} == alike
    assert (sure["posterior"] == sure["correct"]).all()
    rest = said[said["status"] != "proved"]
    assert set(rest["status"]) == {"unstated"}
    assert (rest["posterior"] == rest["prior"]).all()
    # Of counts that need not be true it is asked as of true ones, and proves nothing.
    rounding = "rounding:base=3,method=nearest"
    said, *_ = told(homogeneous, recipe, rounding, people, EVERYBODY[:1])
    assert set(said["status"]) == {"believed", "unstated"}


def test_a_false_proof_of_a_foreign_attack_disagrees_with_the_truth(told):
    wrong = functools.partial(
        Says, lambda block, _: pd.DataFrame({"block": [block], "race": [1]}), proof=True
    )
    said, of, release = told(wrong, adversaries=EVERYBODY[:1])
    assert set(said["status"]) == {"proved"}
    found = audit_checks(said, question=of.question, specs={"m": release.spec})
    row = found[found["check"] == "agreement"].iloc[0]
    assert (row["attack"], row["against"], row["verdict"]) == ("mine", "truth", "disagree")
    sure = said[said["posterior"].isin([0.0, 1.0])]
    assert row["failed"] == (sure["posterior"] != sure["correct"]).sum() > 0
    assert row["compared"] == len(sure)


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        ([1, 2], "data frame"),
        (pd.DataFrame({"race": [1]}), "columns block"),
        (pd.DataFrame({"block": ["100"], "person": [1]}), "race"),
        (pd.DataFrame({"block": ["100"], "cell": [0]}), "table and cell"),
        (lambda block, _: pd.DataFrame({"block": [block], "race": [9]}), "race, got 9"),
        (lambda block, _: pd.DataFrame({"block": [block], "race": ["white"]}), "'white'"),
        (lambda b, _: pd.DataFrame({"block": [b], "race": [1], "people": [-1]}), ">= 0"),
        (lambda b, _: pd.DataFrame({"block": [b], "race": [1], "people": ["x"]}), "'x'"),
        (lambda b, _: pd.DataFrame({"block": [b], "table": ["R"], "cell": [3]}), "('R', 3)"),
        (lambda b, _: pd.DataFrame({"block": [b], "table": ["T"], "cell": [0]}), "('T', 0)"),
        (lambda b, r: 1 / 0, "ZeroDivisionError"),
        (lambda b, r: sys.exit(0), "SystemExit"),
    ],
)
def test_what_an_attack_may_not_return_is_named_with_the_attack(told, answer, part):
    with pytest.raises(PluginError) as raised:
        told(lambda: Says(answer))
    assert "attack 'mine'" in str(raised.value)
    assert part in str(raised.value)


class Weighs:
    """A method that returns what it is given."""

    engine, proof = "weighs", False

    def __init__(self, tables):
        pass

    def weights(self, question, prior):
        return self.returned


@pytest.mark.parametrize("returned", [[1.0], [1, -1, 1], [np.nan, 1, 1], [0, 0, 0], "abc"])
def test_weights_that_are_none_are_refused_with_the_name_of_the_method(monkeypatch, returned):
    from bayesrisk.risk.audit import attacks

    kind = type("Weighs", (Weighs,), {"returned": returned})
    monkeypatch.setattr(attacks.REGISTRY, "_registered", {"weighs": kind})
    question = AuditQuestion(WORKLOAD, ("race",), EVERYBODY[:1], 3.0, ("weighs",))
    of = AuditedPopulation(town(2, 6, CODES), question, seed=1)
    none = make_mechanism("none")
    with pytest.raises(PluginError, match="method 'weighs' failed"):
        of.statements("m", "m", 0, none, of.release("m", 0, none), np.arange(6))


def test_recipes_are_checked_before_anything_is_computed(monkeypatch, homogeneous):
    monkeypatch.setattr(REGISTRY, "_registered", {"homogeneous": homogeneous})
    for recipe, part in (
        ("homogeneus", "Did you mean 'homogeneous'"),
        ("homogeneous:level=block", "needs table"),
        ("reconstruction:scope=block", "methods must be one of"),
    ):
        with pytest.raises(ArgumentError, match=part):
            AuditQuestion(WORKLOAD, ("race",), EVERYBODY[:1], 3.0, (recipe,))
