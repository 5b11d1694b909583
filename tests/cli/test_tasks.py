"""What newcomers came for, in the few lines that pages give; other tests have the rest.

Own noisy measurements are in ``test_measurements.py``, own columns in ``test_own_records.py``,
published files in ``test_attack.py``, a plug-in in ``tests/mechanisms/test_plug_in.py``, and frames
of other libraries and an audit's release in ``tests/mechanisms/test_recipes.py``.
"""

import json

import numpy as np
import pandas as pd
import pytest

import bayesrisk as br
from bayesrisk.risk import mechanism_risk_of_many, rho_for_risk

FRAME = pd.DataFrame(
    {"clinic": list("AAABBBCC"), "age": [0, 0, 1, 1, 0, 1, 0, 1], "ill": list("xxyxyyxy")}
)


def test_the_posterior_of_one_count():
    found = br.posterior_probability([1, 3, 5], rho=0.0992264, prior=1 / 10)
    # The count is the noise, or one more: the discrete Gaussian's ratio is exp((2k - 1) rho).
    odds = np.exp((2 * np.array([1, 3, 5]) - 1) * 0.0992264) / 9
    np.testing.assert_allclose(found, odds / (1 + odds), rtol=1e-12)


def test_the_risk_of_each_of_many_people():
    schema = br.Schema.from_frame(FRAME, place="clinic")
    work = br.Workload.of(schema, [["ill"]])
    records = br.Records.from_frame(FRAME, schema=schema)
    level, table = next(iter(work.tables))
    question = br.MechanismQuestion(work, [(level, table)], alternatives=[{"ill": "y"}], prior=0.25)
    people = np.flatnonzero(FRAME["ill"] == "x")
    exact = mechanism_risk_of_many(
        records, br.Identity(), question, targets=people, draws=40, rng=1
    )
    assert exact["target"].tolist() == people.tolist()
    assert exact["prior"].tolist() == [0.25] * len(people)
    assert exact["marginal_posterior"].tolist() == pytest.approx([1.0] * len(people))
    rounded = mechanism_risk_of_many(
        records, br.make_mechanism("rounding:base=100,method=nearest"), question,
        targets=people, draws=40, rng=1,
    )  # fmt: skip
    assert rounded["marginal_posterior"].tolist() == pytest.approx([0.25] * len(people))


def test_the_budget_of_a_limit(run):
    rho = rho_for_risk(1.5, prior=1 / 10)
    assert br.marginal_risk(rho=rho, prior=1 / 10) == pytest.approx(1.5, rel=1e-6)
    status, said, _ = run("convert", "--max-risk", "1.5", "--prior", "1/10", "--json")
    assert status == 0
    assert json.loads(said)["rho"] == pytest.approx(rho, rel=1e-9)
