"""Several releases of the same records by one mechanism."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk import Release, tabulate
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.release import MechanismSpec, RoundingSpec, SimulationOnly, TrueCounts
from bayesrisk.risk.audit.reading import readings
from bayesrisk.tables import Attribute, Geography, Records, Schema, Workload

#: Parameters for the test of neighbours.
EXAMPLE = {
    "composition": {
        "releases": {
            "a": {"mechanism": "rounding", "parameters": {"base": 3, "method": "random"}},
            "b": {"mechanism": "rounding", "parameters": {"base": 5, "method": "nearest"}},
        }
    }
}
SCHEMA = Schema(
    "town", (Attribute("sex", 2), Attribute("age", 2)), Geography("g", ("block",), (1,))
)
WORK = Workload.of(SCHEMA, ["sex", "age"])


def composed(**parts):
    return make_mechanism("composition", releases=parts)


NEAREST = {"mechanism": "rounding", "parameters": {"base": 3, "method": "nearest"}}
RANDOM = {"mechanism": "rounding", "parameters": {"base": 3, "method": "random"}}


def records(n=200):
    """Return people of four blocks, by chance of a fixed seed."""
    rng = np.random.default_rng(5)
    schema = SCHEMA
    frame = pd.DataFrame({name: rng.integers(0, 2, n) for name in schema.names})
    frame["block"] = rng.choice(list("1234"), n)
    return Records.from_frame(frame, schema=schema)


def test_composition_releases_each_with_its_own_chance():
    people, work, mechanism = records(), WORK, composed(a=RANDOM, b=RANDOM)
    release = mechanism.release(people, workload=work, rng=3, places=list("1234"))
    a, b = (release.tables.counts["block", f"{name}: sex"].toarray() for name in "ab")
    true = tabulate(people, work).counts["block", "sex"].toarray()
    assert (a != b).any()
    assert (np.abs(a - true) < 3).all()
    assert (np.abs(b - true) < 3).all()
    assert release.spec.likelihood("block", "b: age") == RoundingSpec(3, "random")
    again = mechanism.release(people, workload=work, rng=3, places=list("1234"))
    assert again.tables == release.tables


def test_composition_publishes_chosen_tables():
    mechanism = composed(ages=NEAREST | {"tables": ["age"]}, truth={"mechanism": "identity"})
    release = mechanism.release(records(), workload=WORK, rng=1, places=list("1234"))
    assert [name for _, name in release.tables.workload.tables] == [
        "ages: age", "truth: sex", "truth: age",
    ]  # fmt: skip
    assert release.spec.places == "public"


def test_composition_is_written_and_made_again(tmp_path):
    mechanism = composed(a=NEAREST, b=RANDOM | {"tables": ["sex"]})
    release = mechanism.release(records(), workload=WORK, rng=1, places=list("1234"))
    release.write(tmp_path / "out")
    read = Release.read(tmp_path / "out")
    assert read.spec == release.spec
    again = make_mechanism(read.spec.mechanism, **read.spec.parameters)
    made = again.release(records(), workload=WORK, rng=1, places=list("1234"))
    assert made.tables == release.tables


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ({}, "releases"),
        ({"a": {"parameters": {}}}, "releases['a']"),
        ({"a": NEAREST | {"rate": 1}}, "rate"),
        ({"a": {"mechanism": "roundng"}}, "roundng"),
        ({"a": NEAREST | {"tables": 3}}, "tables"),
    ],
)
def test_what_is_no_composition_is_refused(parts, name):
    with pytest.raises((ArgumentError, ArgumentTypeError)) as caught:
        composed(**parts)
    assert name in str(caught.value)


def test_audits_refuse_what_has_no_likelihood():
    tables = tabulate(records(), WORK)
    laws = {"a": SimulationOnly(), "b": TrueCounts()}
    made = Release.combine(
        {name: Release(MechanismSpec("stated", others=law), tables) for name, law in laws.items()}
    )
    with pytest.raises(ArgumentError, match="a: sex"):
        readings(made, {("block", "sex"): 1.0, ("block", "age"): 1.0})
