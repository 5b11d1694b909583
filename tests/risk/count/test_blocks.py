"""The labelled result holds what the single functions say, in one shape."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import bayesrisk as br
from bayesrisk.risk.count.blocks import SCENARIOS

Y, K, PRIOR = np.array([[3], [-1]]), np.array([0, 2]), np.array([0.1, 0.5])


@pytest.mark.parametrize("noise", [{"rho": 0.3}, {"sigma2": 5.0}, {"rho": 0.3, "sensitivity": 2}])
def test_columns_are_the_functions(noise):
    result = br.block_risk(Y, known_count=K, prior=PRIOR, **noise)
    settings = {"prior": PRIOR, **noise}
    expected = {
        "posterior": br.posterior_probability(Y, known_count=K, **settings),
        "risk_ratio": br.risk_ratio(Y, known_count=K, **settings),
        "decision": br.inference.bayes_decision(Y, known_count=K, **settings),
        "decision_threshold": br.inference.decision_threshold(known_count=K, **settings),
        "marginal_posterior": br.marginal_posterior(**settings),
        "marginal_risk": br.marginal_risk(**settings),
        "correct_decision_probability": br.correct_decision_probability(**settings),
        "decision_accuracy": br.risk.decision_accuracy(**settings).accuracy,
        "decision_baseline": br.risk.decision_accuracy(**settings).baseline,
        "noisy_count": Y,
        "known_count": K,
        "prior": PRIOR,
    }
    frame = result.to_frame()
    assert result.posterior.shape == result.prior.shape == result.decision.shape == (2, 2)
    for name, values in expected.items():
        assert frame[name].tolist() == np.broadcast_to(values, (2, 2)).ravel().tolist(), name
    sigma2 = br.DiscreteGaussian.from_rho(0.3, noise.get("sensitivity", 1)).sigma2
    assert result.sigma2.ravel() == pytest.approx(noise.get("sigma2", sigma2))


def test_frame():
    frame = br.block_risk(Y, known_count=K, prior=PRIOR, rho=0.3).to_frame()
    assert len(frame) == 4
    assert frame["noisy_count"].tolist() == [3, 3, -1, -1]
    assert frame["prior"].tolist() == [0.1, 0.5, 0.1, 0.5]
    assert br.block_risk(3, rho=0.1, prior=0.5).to_frame().shape == (1, len(frame.columns))


def test_labels():
    result = br.block_risk(3, rho=0.1, prior=0.5, scenario_name="membership")
    assert result.scenario is SCENARIOS["membership"]
    assert result.posterior.shape == ()
    with pytest.raises(FrozenInstanceError):
        result.posterior = 1.0


def test_rows_are_those_of_the_frame():
    found = br.block_risk([[3], [-1]], rho=0.1, prior=[0.1, 0.2])
    assert found.to_rows() == found.to_frame().to_dict(orient="records")
    assert len(found.to_rows()) == 4
