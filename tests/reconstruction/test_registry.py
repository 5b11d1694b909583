"""Attacks by name, and reconstruction as one of them."""

import pandas as pd
import pytest

from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.interfaces import Attack
from bayesrisk.mechanisms import Identity
from bayesrisk.reconstruction import (
    Reconstruction,
    available_attacks,
    make_attack,
    reconstruct,
    record_form,
    register_attack,
    registry,
)
from bayesrisk.reconstruction.records.reconstruction import ReconstructionAttack
from bayesrisk.tables import PublishedTables, Records, Schema, Workload, tabulate
from bayesrisk.tables.schema import AGE_BIN_STARTS


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    monkeypatch.setattr(registry.REGISTRY, "_registered", {})


def release(ages=(7, 31, 52)):
    people = pd.DataFrame({"block": "010010201001000", "sex": 0, "age": ages, "race": 1, "hisp": 0})
    records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    both = Workload.named("sf1-block").union(Workload.named("sf1-tract"))
    return Identity().release(records, workload=both, rng=1)


def test_reconstruction_reads_a_release():
    attack = make_attack("reconstruction", scope="block")
    assert isinstance(attack, Attack)
    found = attack.run(release())
    assert isinstance(found, Reconstruction)
    assert found.status == ("unique",)
    same = reconstruct(release().tables, scope="block")
    assert (found.histogram() != same.histogram()).nnz == 0


def test_registered_attack():
    class Nothing:
        name = "nothing"

        def run(self, release):
            return None

    register_attack("nothing", Nothing)
    assert "nothing" in available_attacks()
    assert make_attack("nothing").run(None) is None
    register_attack("dictionary", dict)
    with pytest.raises(ArgumentTypeError, match=r"must have name and run\(\)"):
        make_attack("dictionary")


@pytest.mark.parametrize(
    ("name", "parameters", "error", "words"),
    [
        ("guess", {}, ArgumentError, "attack must be one of"),
        ("reconstruction", {}, ArgumentError, "needs scope: write reconstruction:scope="),
        ("reconstruction", {"scope": "block", "speed": 1}, ArgumentError, "'speed'"),
        ("reconstruction", {"scope": ""}, ArgumentError, "scope must be a level"),
        ("reconstruction", {"scope": "block", "time_limit": 0}, ArgumentError, "time_limit"),
        ("reconstruction", {"scope": "block", "solver": "abacus"}, ArgumentError, "solver"),
    ],
)
def test_making_is_checked(name, parameters, error, words):
    with pytest.raises(error, match=words):
        make_attack(name, **parameters)


@pytest.mark.parametrize(
    ("name", "factory", "error", "words"),
    [
        ("reconstruction", dict, ArgumentError, "package's own attacks"),
        ("mine", 3, ArgumentTypeError, "factory must be callable"),
        (None, dict, ArgumentTypeError, "name must be a text"),
    ],
)
def test_registering_is_checked(name, factory, error, words):
    with pytest.raises(error, match=words):
        register_attack(name, factory)


def test_only_a_release_is_read():
    with pytest.raises(ArgumentTypeError, match="release must be a Release, got"):
        ReconstructionAttack(scope="block").run(release().tables)


def test_records_in_the_common_form():
    tables = release().tables
    alone = record_form(reconstruct(tables, scope="block"))
    assert list(alone) == ["block", "sex", "age", "agebin", "race", "hisp"]
    assert alone["age"].tolist() == [7, 30, 50]
    assert alone["age"].isin(AGE_BIN_STARTS).all()
    assert record_form(reconstruct(tables, scope="tract"))["age"].tolist() == [7, 31, 52]
    with pytest.raises(ArgumentTypeError, match="reconstruction must be a Reconstruction"):
        record_form(tables)


def test_groups_of_races_become_their_first():
    people = pd.DataFrame(
        {"block": "010010201001000", "sex": [0, 1], "age": 4, "race": [1, 7], "hisp": 0}
    )
    records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    six = Workload.named("sf1-block").select(tables=["P1", "P12", "P12A", "P12B", "P12G"])
    made = record_form(reconstruct(tabulate(records, six), scope="block"))
    assert {"race", "hisp", "age"} <= set(made)
    assert made["race"].between(1, 63).all()
    assert made.loc[made["sex"] == 0, "race"].item() == 1


def test_no_records_keep_their_columns():
    tables = tabulate(
        Records.from_frame(
            pd.DataFrame({"block": ["010010201001000"], "sex": 0, "age": 4, "race": 1, "hisp": 0}),
            schema=Schema.named("sf1-person"),
        ),
        Workload.named("sf1-block"),
    )
    empty = PublishedTables(
        tables.workload, dict(tables.geoids), {k: v * 0 for k, v in tables.counts.items()}
    )
    made = record_form(reconstruct(empty, scope="block"))
    assert list(made) == ["block", "sex", "age", "agebin", "race", "hisp"]
    assert made.empty
