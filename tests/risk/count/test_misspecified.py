"""An adversary with the wrong law: against sums written out, the right law, and draws."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bayesrisk import (
    ArgumentError,
    DiscreteGaussian,
    DiscreteLaplace,
    FiniteLaw,
    Noise,
    marginal_risk,
    posterior_probability,
)
from bayesrisk.risk import misspecified_risk

scales = st.floats(-0.5, 1.5).map(lambda t: 10.0**t)
priors = st.floats(0.001, 0.95)


def by_hand(true, believed, prior, reach=80):
    """Return expected risk, mean belief and mean error, from two probability functions."""
    risk = mean = error = 0.0
    for y in range(-reach, reach + 2):
        there, without = true(y - 1), true(y)
        said, other = prior * believed(y - 1), (1 - prior) * believed(y)
        if said + other == 0.0:
            continue
        belief = said / (said + other)
        weight = prior * there + (1 - prior) * without
        risk += there * belief / prior
        mean += weight * belief
        error += abs(weight * belief - prior * there)
    return risk, mean, error


def gaussian(s2):
    z = math.fsum(math.exp(-j * j / (2 * s2)) for j in range(-200, 201))
    return lambda x: math.exp(-x * x / (2 * s2)) / z


def laplace(scale):
    return lambda x: math.tanh(0.5 / scale) * math.exp(-abs(x) / scale)


@pytest.mark.parametrize("prior", [0.5, 0.1, 1 / 864])
@pytest.mark.parametrize(
    ("true", "believed", "laws"),
    [
        (gaussian(10.0), gaussian(5.0), (DiscreteGaussian(10.0), DiscreteGaussian(5.0))),
        (gaussian(2.0), gaussian(20.0), (DiscreteGaussian(2.0), DiscreteGaussian(20.0))),
        (gaussian(5.0), laplace(1.5), (DiscreteGaussian(5.0), DiscreteLaplace(1.5))),
        (laplace(2.0), gaussian(8.0), (DiscreteLaplace(2.0), DiscreteGaussian(8.0))),
    ],
)
def test_against_sums_written_out(true, believed, laws, prior):
    result = misspecified_risk(true_noise=laws[0], believed_noise=laws[1], prior=prior)
    risk, mean, error = by_hand(true, believed, prior)
    # Beyond 80 the heaviest tail here, Laplace of scale 2, has 4e-18.
    assert result.expected_risk == pytest.approx(risk, rel=1e-12, abs=2e-15 / prior)
    assert result.mean_belief == pytest.approx(mean, abs=1e-13)
    assert result.mean_error == pytest.approx(error, abs=1e-13)
    assert result.left_out == 1e-15


@given(scales, priors)
def test_the_right_law_is_calibrated(sigma2, prior):
    law = DiscreteGaussian(sigma2)
    result = misspecified_risk(true_noise=law, believed_noise=law, prior=prior)
    assert result.expected_risk == pytest.approx(
        marginal_risk(sigma2=sigma2, prior=prior), rel=1e-12
    )
    assert result.mean_error == 0.0
    assert result.mean_belief == pytest.approx(prior, rel=1e-12)
    table = result.calibration()
    np.testing.assert_allclose(table["share_there"], table["believed"], rtol=1e-11)


@given(scales, scales, priors)
def test_what_the_wrong_law_can_do(true, believed, prior):
    result = misspecified_risk(
        true_noise=DiscreteGaussian(true), believed_noise=DiscreteGaussian(believed), prior=prior
    )
    noise = DiscreteGaussian(true)
    # Beliefs follow the formula with the believed scale, truths with the true one.
    expected = posterior_probability(result.release, sigma2=believed, prior=prior)
    np.testing.assert_allclose(result.believed, expected, rtol=1e-9)
    correct = posterior_probability(result.release, sigma2=true, prior=prior)
    np.testing.assert_allclose(result.correct, correct, rtol=1e-9)
    np.testing.assert_allclose(
        result.probability_if_there, noise.pmf(result.release - 1), rtol=1e-12
    )
    table = result.calibration()
    assert table["believed"].is_monotonic_increasing
    assert table["probability"].sum() == pytest.approx(1.0, abs=2e-15 + 1e-12)
    there = (table["probability"] * table["share_there"]).sum()
    assert there == pytest.approx(prior, rel=1e-11)


def test_too_little_noise_in_mind_is_too_sure_and_too_much_too_timid():
    sure = misspecified_risk(
        true_noise=Noise(rho=0.1, sensitivity=2**0.5), believed_noise=Noise(rho=0.1), prior=0.1
    )
    timid = misspecified_risk(
        true_noise=Noise(rho=0.1), believed_noise=Noise(rho=0.1, sensitivity=2**0.5), prior=0.1
    )
    assert sure.expected_risk > sure.correct_risk
    assert timid.expected_risk < timid.correct_risk
    for result, sign in ((sure, 1), (timid, -1)):
        table = result.calibration()
        high = table[table["believed"] > 0.1]
        assert (sign * (high["believed"] - high["share_there"]) > 0).all()


def test_against_simulation():
    true, believed, prior = DiscreteLaplace(2.0), DiscreteGaussian(4.0), 0.3
    result = misspecified_risk(true_noise=true, believed_noise=believed, prior=prior)
    draws, rng = 200_000, np.random.default_rng(3)
    there = rng.random(draws) < prior
    release = there + true.rvs(draws, rng)
    belief = posterior_probability(release, sigma2=4.0, prior=prior)

    def agrees(values, exact):
        # Six standard errors: a false alarm has probability 2e-9.
        return abs(values.mean() - exact) < 6 * values.std() / math.sqrt(values.size)

    assert agrees(belief, result.mean_belief)
    assert agrees(belief[there] / prior, result.expected_risk)
    table = result.calibration()
    for row in table[table["probability"] > 0.05].itertuples():
        same = np.abs(belief - row.believed) < 1e-9
        assert agrees(there[same].astype(float), row.share_there)
        assert agrees(same.astype(float), row.probability)


def test_certainty_that_is_wrong_costs_without_bound():
    # Believed noise within 1 of 0: a release of 2 proves the target, if that were the law.
    believed, true = FiniteLaw(-2, [0.2] * 5), FiniteLaw(-2, [0.1, 0.2, 0.4, 0.2, 0.1])
    fine = misspecified_risk(true_noise=true, believed_noise=believed, prior=0.5)
    assert fine.mean_error > 0.0
    narrow = FiniteLaw(-2, [0.0, 0.5, 0.0, 0.5, 0.0])
    only = FiniteLaw(-1, [0.3, 0.4, 0.3])
    wrong = misspecified_risk(true_noise=only, believed_noise=narrow, prior=0.5)
    assert np.isinf(wrong.believed_log_odds).any()
    assert "believed" in wrong.to_frame()
    assert "is true" in repr(wrong)


def test_arguments_are_checked():
    noise, few = Noise(rho=0.1), FiniteLaw(-1, [0.25, 0.5, 0.25])
    with pytest.raises(ArgumentError, match="every release of true_noise possible, got none for"):
        misspecified_risk(true_noise=noise, believed_noise=few, prior=0.1)
    with pytest.raises(ArgumentError, match="true_noise must have logpmf"):
        misspecified_risk(true_noise=0.1, believed_noise=noise, prior=0.1)
    with pytest.raises(ArgumentError, match="believed_noise must be a single law"):
        misspecified_risk(true_noise=noise, believed_noise=Noise(rho=[0.1, 0.2]), prior=0.1)
    with pytest.raises(ArgumentError, match="at most 4194304 releases"):
        misspecified_risk(true_noise=Noise(rho=1e-20), believed_noise=noise, prior=0.1)
    with pytest.raises(ArgumentError, match="left_out"):
        misspecified_risk(true_noise=noise, believed_noise=noise, prior=0.1, left_out=0.0)


def test_equal_beliefs_are_one_row():
    # A believed law that is flat but for one step says the same of many releases.
    believed = FiniteLaw(-60, np.full(121, 1 / 121))
    true = FiniteLaw(-2, np.full(5, 0.2))
    result = misspecified_risk(true_noise=true, believed_noise=believed, prior=0.25)
    table = result.calibration()
    assert result.release.tolist() == [-2, -1, 0, 1, 2, 3]
    assert table["believed"].tolist() == pytest.approx([0.25])
    assert table["share_there"].tolist() == pytest.approx([0.25])
    assert result.expected_risk == pytest.approx(1.0)
