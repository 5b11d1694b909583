"""Averages over releases against direct summation in 40 digits, their limits, and bad input."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from mpmath import mp
from oracles import laws as oracles
from refusals import NOT_POSITIVE, NOT_PRIORS, finite_or_refused, refuses

from bayesrisk import (
    ArgumentError,
    DiscreteGaussian,
    DiscreteLaplace,
    FiniteLaw,
    Noise,
    correct_decision_probability,
    marginal_posterior,
    marginal_risk,
    posterior_probability,
    risk_ratio,
)
from bayesrisk.exceptions import ShapeError
from bayesrisk.inference import multilevel_posterior
from bayesrisk.risk import compose_risk, marginal_count_posterior
from bayesrisk.risk.count import averages as _kernels

EPS = 2**-52
rhos = st.floats(-6, 3).map(lambda t: 10.0**t)
priors = st.one_of(st.floats(1e-12, 1 - 1e-12), st.floats(-300, -1).map(lambda t: 10.0**t))


def bound(rho, prior):
    """Return the documented relative error of the marginal risk."""
    return (16 + 3 * min(rho, -math.log(prior))) * EPS


def grid(seed, n):
    rng = np.random.default_rng(seed)
    prior = np.where(rng.random(n) < 0.5, rng.random(n), 10 ** rng.uniform(-12, 0, n))
    return list(zip((10 ** rng.uniform(-2, 2.5, n)).tolist(), prior.tolist(), strict=True))


def test_against_direct_summation():
    for rho, prior in grid(1, 120):
        truth = oracles.marginal_risk(rho, prior)
        value = marginal_risk(rho=rho, prior=prior)
        assert oracles.relative_error(value, truth) <= bound(rho, prior), (rho, prior)
        posterior = marginal_posterior(rho=rho, prior=prior)
        assert oracles.relative_error(posterior, truth * prior) <= bound(rho, prior) + EPS


@pytest.mark.parametrize("rho", [0.15, 0.17, 0.1799, 0.18, 0.1801, 0.2, 0.3])
@pytest.mark.parametrize("prior", [1e-9, 0.01, 0.5, 0.99])
def test_where_the_sum_becomes_coarser(rho, prior):
    # Below 0.18 the kernel sums with a step of 0.6 deviations, above it over whole numbers.
    truth = oracles.marginal_risk(rho, prior)
    value = marginal_risk(rho=rho, prior=prior)
    assert oracles.relative_error(value, truth) <= bound(rho, prior)


@pytest.mark.parametrize("rho", [1e-300, 1e-6, 50.0, 1e4, 1e6])
@pytest.mark.parametrize("prior", [1e-300, 0.3, 1 - 2**-53])
def test_extremes(rho, prior):
    truth = oracles.marginal_risk(rho, prior)
    value = marginal_risk(rho=rho, prior=prior)
    assert oracles.relative_error(value, truth) <= bound(rho, prior)
    assert 1 - bound(rho, prior) <= value <= (1 + bound(rho, prior)) / prior


@given(rhos, priors)
def test_the_kernel_without_its_compiler(rho, prior):
    plain = _kernels.marginal_ratio.__wrapped__(rho, prior)
    assert plain == pytest.approx(float(_kernels.marginal_ratio(rho, prior)), rel=4 * EPS, abs=0)


def test_slips_are_seen():
    # Negative controls: half the budget, the truth one off, or the variance for the scale.
    rho, prior = 0.5, 0.1
    right = oracles.marginal_risk(rho, prior)
    assert oracles.relative_error(marginal_risk(rho=rho / 2, prior=prior), right) > 0.1
    assert oracles.relative_error(oracles.marginal_risk(rho, prior, truth=0), right) > 0.1
    assert oracles.relative_error(oracles.marginal_risk(rho, prior, truth=2), right) > 0.1
    variance = float(DiscreteGaussian(0.2).var())
    wrong = marginal_risk(sigma2=variance, prior=prior)
    assert oracles.relative_error(wrong, oracles.marginal_risk(2.5, prior)) > 0.01


@given(rhos, priors)
def test_bounds(rho, prior):
    risk, slack = marginal_risk(rho=rho, prior=prior), 2 * bound(rho, prior)
    posterior = marginal_posterior(rho=rho, prior=prior)
    assert 1 - slack <= risk <= (1 + slack) / prior
    assert prior * (1 - slack) <= posterior <= 1.0
    # E[exp(E)] under the truth is exp(2 rho): no average ratio can be larger.
    assert risk <= math.exp(min(2 * rho, 700)) * (1 + slack)


@given(rhos.filter(lambda r: r <= 0.06), priors, st.floats(1.01, 3.0))
def test_less_noise_is_more_risk(rho, prior, factor):
    risk, slack = marginal_risk(rho=rho, prior=prior), 2 * bound(rho, prior)
    assert marginal_risk(rho=factor * rho, prior=prior) >= risk * (1 - slack)


def test_the_average_of_the_posteriors_is_the_marginal():
    law = DiscreteGaussian.from_rho(0.3, loc=1)
    y = np.arange(-40, 43)
    mean = math.fsum(law.pmf(y) * posterior_probability(y, rho=0.3, prior=0.2))
    assert marginal_posterior(rho=0.3, prior=0.2) == pytest.approx(mean, rel=1e-14, abs=0)
    # Averaged over releases under the adversary's own prior, beliefs do not move.
    prior_law = 0.2 * law.pmf(y) + 0.8 * DiscreteGaussian.from_rho(0.3).pmf(y)
    assert math.fsum(prior_law * risk_ratio(y, rho=0.3, prior=0.2)) == pytest.approx(
        1.0, rel=1e-14, abs=0
    )


def test_correct_decisions():
    checked = 0
    for rho, prior in grid(2, 150):
        truth = oracles.correct_decision_probability(rho, prior)
        if truth is not None and truth > 2.3e-308:
            value = correct_decision_probability(rho=rho, prior=prior)
            assert oracles.relative_error(value, truth) < 1e-13, (rho, prior)
            checked += 1
    assert checked > 60


def test_correct_decisions_are_not_monotone():
    # Documented: the chance falls while the threshold stays and the noise shrinks.
    values = correct_decision_probability(rho=np.linspace(0.05, 1.0, 400), prior=0.2)
    assert (np.diff(values) < 0).any()
    assert values[-1] > values[0]


@pytest.mark.parametrize(
    "function", [marginal_risk, marginal_posterior, correct_decision_probability]
)
def test_broadcasting_and_kinds(function):
    rho, prior = np.array([[0.05], [0.3], [4.0]]), np.array([0.01, 0.5])
    table = function(rho=rho, prior=prior)
    loop = [[function(rho=r, prior=p) for p in prior] for r in rho[:, 0]]
    assert table.tolist() == loop
    value = function(rho=Fraction(1, 10), prior=Fraction(1, 5))
    assert isinstance(value, float)
    assert value == function(rho=0.1, prior=0.2)
    assert function(sigma2=5.0, prior=0.2) == pytest.approx(value, rel=1e-13, abs=0)
    assert function(rho=0.2, sensitivity=2**0.5, prior=0.2) == pytest.approx(
        value, rel=1e-13, abs=0
    )
    assert function(rho=pd.Series([0.1, 0.3]), prior=[0.2, 0.2]).tolist() == [
        value,
        function(rho=0.3, prior=0.2),
    ]


@pytest.mark.parametrize(
    "function", [marginal_risk, marginal_posterior, correct_decision_probability]
)
def test_bad_arguments(function):
    for bad in NOT_PRIORS:
        assert refuses(lambda v: function(rho=0.1, prior=v), "prior", bad)
    for bad in NOT_POSITIVE:
        assert refuses(lambda v: function(rho=v, prior=0.5), "rho", bad)
        assert refuses(lambda v: function(sigma2=v, prior=0.5), "sigma2", bad)
        assert refuses(lambda v: function(rho=0.1, prior=0.5, sensitivity=v), "sensitivity", bad)
    for noise in ({}, {"rho": 1, "sigma2": 1}):
        with pytest.raises(ArgumentError, match="exactly one of rho and sigma2"):
            function(prior=0.5, **noise)
    with pytest.raises(ArgumentError, match="sensitivity belongs with rho"):
        function(prior=0.5, sigma2=1, sensitivity=2)
    with pytest.raises(ShapeError, match="do not broadcast"):
        function(prior=[0.1, 0.2], rho=[1, 2, 3])


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=6))
def test_composition_is_the_product(ratios):
    product = math.prod(ratios)
    assert compose_risk(*ratios) == pytest.approx(product, rel=1e-14, abs=0)
    assert compose_risk(ratios) == pytest.approx(product, rel=1e-14, abs=0)
    table = compose_risk([ratios, ratios], [[2.0] * len(ratios), ratios])
    assert table.tolist() == [[2.0 * r for r in ratios], [r * r for r in ratios]]
    assert compose_risk([ratios, ratios]).tolist() == [r * r for r in ratios]
    assert compose_risk(ratios[0]) == ratios[0]


def test_composition_of_sequential_releases_is_the_joint_ratio():
    prior, rho, y = 0.1, 0.3, [2, -1, 3]
    ratios, belief = [], prior
    for release in y:
        ratios.append(risk_ratio(release, rho=rho, prior=belief))
        belief *= ratios[-1]
    joint = multilevel_posterior(y, noise=Noise(rho=rho), prior=prior).ratio
    assert compose_risk(*ratios) == pytest.approx(joint, rel=1e-14, abs=0)


def count_matrix(pmf, mass, reach):
    """Return M[i][j] by its definition, in 40 digits."""
    u = len(pmf)
    with mp.workdps(40):
        weights = [oracles.exact(w) for w in pmf]
        matrix = [[mp.mpf(0)] * u for _ in range(u)]
        for y in range(-reach, reach + u):
            likelihood = [mass(y - i) for i in range(u)]
            joint = [w * f for w, f in zip(weights, likelihood, strict=True)]
            total = mp.fsum(joint)
            for i in range(u):
                for j in range(u):
                    matrix[i][j] += likelihood[i] * joint[j] / total
        return np.array(matrix, dtype=float)


@pytest.mark.parametrize("pmf", [[0.8, 0.2], [0.2, 0.0, 0.8], [0.1, 0.2, 0.3, 0.4]])
def test_general_marginals(pmf):
    for noise, mass, reach in (
        (DiscreteGaussian(5.0), lambda x: oracles.gaussian_pmf(x, 5.0), 50),
        (DiscreteLaplace(1.5), lambda x: oracles.laplace_pmf(x, 1.5), 160),
    ):
        matrix = marginal_count_posterior(noise=noise, prior_pmf=pmf)
        # Documented: 2 tail plus rounding, here that of about a hundred terms.
        assert matrix == pytest.approx(count_matrix(pmf, mass, reach), abs=2 * 2**-60 + 100 * EPS)
        assert matrix.sum(axis=1) == pytest.approx(np.ones(len(pmf)), abs=1e-13)
        weighted = np.array(pmf) @ matrix
        assert weighted == pytest.approx(pmf, abs=1e-13)  # beliefs do not move on average


def test_coarser_tails_cost_what_they_say():
    law = DiscreteGaussian(5.0)
    fine = marginal_count_posterior(noise=law, prior_pmf=[0.5, 0.5])
    for tail in (1e-3, 1e-6):
        coarse = marginal_count_posterior(noise=law, prior_pmf=[0.5, 0.5], tail=tail)
        assert 0 < np.abs(fine - coarse).max() <= 2 * tail


def test_noise_that_cannot_explain_every_release():
    rounding = FiniteLaw(-1, [0.5, 0.0, 0.5])
    matrix = marginal_count_posterior(noise=rounding, prior_pmf=[0.5, 0.5])
    assert matrix.tolist() == [[1.0, 0.0], [0.0, 1.0]]  # parity gives the truth away
    blind = marginal_count_posterior(noise=rounding, prior_pmf=[0.5, 0.0, 0.5])
    assert blind[0].tolist() == [0.75, 0.0, 0.25]
    impossible = marginal_count_posterior(noise=rounding, prior_pmf=[0.0, 0.5, 0.0, 0.5])
    assert impossible.shape == (4, 4)


@pytest.mark.parametrize("rho", [1e-307, 1e-17, 1e300])
@pytest.mark.parametrize("prior", [1e-300, 0.2, 0.5, 1 - 2**-53])
def test_budgets_at_the_end_of_the_doubles(rho, prior):
    # A budget without any meaning may be refused, but not warn.
    settings = {"rho": rho, "prior": prior}
    for function in (marginal_risk, marginal_posterior, correct_decision_probability):
        assert finite_or_refused(lambda f=function: f(**settings)), function.__name__
    for function in (risk_ratio, posterior_probability):
        assert finite_or_refused(lambda f=function: f([-(2**52), 0, 2**52], **settings))
