"""The law of the one record that is not known, against every record that it may be."""

import numpy as np
import pytest
from audits import EVERYBODY, SCHEMA, WORKLOAD, town_frame

from bayesrisk.mechanisms import make_mechanism
from bayesrisk.risk.audit import AuditedPopulation, AuditQuestion
from bayesrisk.tables import Records

CODES = ["100", "101"]
PROTECTIONS = [
    "none",
    "rounding:base=3,method=random",
    "rounding:base=5,method=nearest",
    "suppression:threshold=2",
    "discrete-gaussian:rho=0.3",
]


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_whoever_knows_all_but_one_believes_what_every_record_in_turn_gives(protection):
    """P(c | R) is in proportion to the share of c times the product of P(R_q | known + c)."""
    people = Records.from_frame(town_frame(7, 14, CODES), schema=SCHEMA)
    question = AuditQuestion(WORKLOAD, ("race",), EVERYBODY[3:], 3.0)
    of = AuditedPopulation(people, question, seed=1)
    mechanism = make_mechanism(protection)
    release = of.release("m", 0, mechanism)
    said = of.statements("m", "m", 0, mechanism, release, np.arange(14))
    assert set(said["status"]) == {"calculated"}
    told = said.set_index(["target", "statement"])["posterior"]
    compared = 0
    for row in range(14):
        place = int(of.place[row])
        others = np.bincount(of.cells[of.place == place], minlength=6)
        others[of.cells[row]] -= 1
        weight = 3.0 * of.prior(place).shares_of_cells + others  # what the others are like
        for cell in range(6):
            true = (others + (np.arange(6) == cell)).reshape(2, 3)
            for name, axis in (("R", 0), ("S", 1)):
                law = release.spec.likelihood("block", name)
                hidden = release.tables.hidden("block", name).toarray()[place]
                published = release.tables.count("block", name, CODES[place])
                for count, was, away in zip(published, true.sum(axis=axis), hidden, strict=True):
                    if not away:  # a count that is withheld says nothing here
                        chance = law.probability(int(count), int(was))
                        weight[cell] *= float(count == was) if chance is None else chance
        race = weight.reshape(2, 3).sum(axis=0) / weight.sum()
        for value, expected in zip(question.values, race, strict=True):
            assert told.get((str(row), value), 0.0) == pytest.approx(expected, abs=1e-3)
            if (str(row), value) in told:
                assert told[str(row), value] == pytest.approx(expected, abs=1e-12)
                compared += 1
    assert compared > 14
