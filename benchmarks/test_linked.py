"""Two linked releases of a place beside one of them: years apart, and persons with households.

Chains of equal numbers of draws are compared; the pages say what an effective draw takes.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from targets import as_long

import bayesrisk as br
from bayesrisk.census import simulate_later
from bayesrisk.inference import MemberQuestion, RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.tables import (
    Attribute,
    Geography,
    HouseholdLink,
    PopulationChange,
    Records,
    Schema,
    Workload,
)


@pytest.mark.parametrize("rho", ["1/10", "1"])
def test_two_years(compare, rho):
    """A place of 1,000 people, tables of three attributes; questions about race by sex and age."""
    labels = tuple(f"{10 * i}-{10 * i + 9}" for i in range(8))
    schema = Schema(
        "place", (Attribute("sex", 2), Attribute("age", 8, labels=labels), Attribute("race", 4))
    )
    change = PopulationChange(
        schema, 10, age="age", starts=[10 * i for i in range(8)],
        staying=[0.6, 0.3, 0.3, 0.6, 0.7, 0.7, 0.7, 0.7],
        dying=[0, 0, 0.01, 0.02, 0.04, 0.1, 0.2, 0.5],
        changes={"sex": 0.01, "race": 0.03}, arrivals=0.35, births=0.12,
    )  # fmt: skip
    rng = np.random.default_rng(1)
    shares = rng.dirichlet(np.full(schema.size, 5.0))
    codes = schema.codes(rng.choice(schema.size, 1000, p=shares))
    frame = pd.DataFrame({**codes, "age": np.array(labels)[codes["age"]]})
    first = Records.from_frame(frame, schema=schema)
    work = Workload.of(schema, ["sex", "age", "race"])
    size = np.diff(stats.poisson(1000).cdf(np.arange(-1, 1300)))
    one = RecordPrior.composition(schema, shares, size=size / size.sum())
    two = RecordPrior.trajectories(change, 1000 * shares)
    noise = make_mechanism(f"discrete-gaussian:rho={rho}")
    years = first, simulate_later(first, change, rng=2)
    parts = [noise.release(r, workload=work, rng=3 + at) for at, r in enumerate(years)]
    joint = br.Release.combine(parts, change=change)
    known = {"sex": [1], "age": [3]}
    now = [RecordQuestion({"race": [r]}, known) for r in range(4)]
    then = [
        RecordQuestion(change.condition(later={"race": [r]}), change.condition(known))
        for r in range(4)
    ]
    where = {"level": "all", "place": "", "rng": 1, "engine": "people"}
    compare(
        lambda: microdata_posterior(joint, then, prior=two, **where),
        lambda: microdata_posterior(parts[0], now, prior=one, **where),
        aims={f"two releases of two years, rho {rho}, beside one release": as_long(3)},
        rounds=3,
    )


def test_persons_and_households(compare):
    """A block of 100 households of up to three members, of one noisy release and of both."""
    place = Geography("town", ("block",), (1,))
    persons = Schema("persons", (Attribute("sex", 2), Attribute("age", 2)), place)
    homes = Schema("homes", (Attribute("rented", 2), Attribute("size", 3, 1)), place)
    link = HouseholdLink.enumerate(
        persons, homes, most=3, derived={"size": lambda members: members.sum(axis=1)}
    )
    shares = link.shares([0.12, 0.38, 0.12, 0.38], [0.4, 0.35, 0.25])
    works = {
        "persons": Workload.of(persons, ["sex", "age"]),
        "homes": Workload.of(homes, ["size", "rented"]),
    }
    prior = RecordPrior(link.schema, shares, None, np.full(201, 1 / 201))
    cells = np.random.default_rng(0).choice(link.schema.size, 100, p=shares)
    records = Records.from_frame(
        pd.DataFrame({"block": "1", **link.schema.codes(cells)}), schema=link.schema
    )
    asked = [MemberQuestion({"age": [0]}, {"sex": [1]}, link=link)]
    release = {}
    for chosen in (("persons",), ("persons", "homes")):
        work = link.workload({name: works[name] for name in chosen})
        noise = make_mechanism(
            "discrete-gaussian", sensitivity="add-remove", overlap=9,
            budgets={"block": {table: "1" for _, table in work.tables}},
        )  # fmt: skip
        release[len(chosen)] = noise.release(records, workload=work, rng=1, places=["1"])
    where = {"level": "block", "place": "1", "prior": prior, "rng": 1, "draws": 500}
    compare(
        lambda: microdata_posterior(release[2], asked, **where),
        lambda: microdata_posterior(release[1], asked, **where),
        aims={"releases of persons and households, beside that of persons": as_long(3)},
        rounds=3,
    )
