"""The two-level posterior against enumeration, its invariances, and what it refuses."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from oracles import two_levels as oracle
from refusals import NOT_COUNTS, NOT_PRIORS, NOT_REAL, refuses

from bayesrisk import (
    ArgumentError,
    DiscreteGaussian,
    FiniteLaw,
    hierarchical_posterior,
    posterior_probability,
)
from bayesrisk.exceptions import IncompatibleConditionalsWarning, ShapeError

GRANVILLE = {"n_siblings": 27, "rho_block": 0.0992264, "rho_group": 0.2464845, "prior": 0.5}
FLAT = dict.fromkeys(range(400), 0.0)


def published(*args, **kwargs):
    with pytest.warns(IncompatibleConditionalsWarning, match="no joint law"):
        return hierarchical_posterior(*args, **kwargs, conditionals="as-published")


def model(**change):
    base = {"m": 27, "a": 0.0992264, "b": 0.2464845, "p": 0.5, "k": 0, "group_log_prior": FLAT}
    return base | change


def random_case(rng):
    k, m = int(rng.integers(0, 4)), int(rng.integers(1, 40))
    a, b = 10 ** rng.uniform(-1.5, 0.7, 2)
    true = k + int(rng.integers(0, 9))
    y, n, S = (
        int(np.rint(centre + rng.normal() * 2.0 * math.sqrt(0.5 * v)))
        for centre, v in ((k + 1, 1 / a), (true, 1 / b), (true - k, m / a))
    )
    p = float(rng.uniform(0.02, 0.98))
    arguments = {"n_siblings": m, "rho_block": a, "rho_group": b, "prior": p, "known_count": k}
    return (y, n, S), arguments, model(m=m, a=a, b=b, p=p, k=k)


@pytest.mark.parametrize("seed", range(25))
def test_flat_prior_against_enumeration(seed):
    releases, arguments, twin = random_case(np.random.default_rng(seed))
    for solve, ask in ((oracle.coherent, hierarchical_posterior), (oracle.published, published)):
        target, group = solve(*releases, **twin)
        result = ask(*releases, **arguments)
        assert float(result.target_probability) == pytest.approx(target, rel=0, abs=1e-12)
        pmf = result.group_pmf
        assert pmf.sum() == pytest.approx(1.0, abs=1e-13)
        assert pmf.to_numpy() == pytest.approx([group.get(N, 0.0) for N in pmf.index], abs=1e-12)
        assert 0.0 < result.truncation_bound < 1e-17


@pytest.mark.parametrize("seed", range(15))
def test_any_prior_against_enumeration(seed):
    rng = np.random.default_rng(1000 + seed)
    releases, arguments, twin = random_case(rng)
    k = twin["k"]
    start, size = int(rng.integers(0, k + 2)), int(rng.integers(k + 2, 30))
    weights = rng.exponential(size=size) * (rng.random(size) < 0.8)
    weights[-1] = 1.0  # allows a count above k
    weights /= weights.sum()
    law = FiniteLaw(start, weights)
    twin["group_log_prior"] = {
        start + i: math.log(w) if w else -math.inf for i, w in enumerate(weights)
    }
    for solve, ask in ((oracle.coherent, hierarchical_posterior), (oracle.published, published)):
        if solve is oracle.published and not any(w for w in weights[max(k + 1 - start, 0) :]):
            continue
        target, group = solve(*releases, **twin)
        result = ask(*releases, **arguments, group_prior=law)
        assert float(result.target_probability) == pytest.approx(target, rel=0, abs=1e-12)
        pmf = result.group_pmf
        assert pmf.to_numpy() == pytest.approx([group.get(N, 0.0) for N in pmf.index], abs=1e-12)
        assert result.truncation_bound == 0.0


@pytest.mark.parametrize(("rho", "m"), [(0.3, 4), (1.0, 2), (1.0, 5), (3.0, 3), (6.0, 7)])
def test_exact_sibling_noise_against_enumeration(rho, m):
    noise = oracle.sum_pmf(rho, m, 12)
    twin = model(m=m, a=rho, p=0.3, noise=noise)
    arguments = GRANVILLE | {"n_siblings": m, "rho_block": rho, "prior": 0.3}
    differs = False
    for releases in [(1, 1, 0), (1, 4, 1), (0, 2, -1), (2, 5, 6), (-1, -2, -2)]:
        for solve, ask in (
            (oracle.coherent, hierarchical_posterior),
            (oracle.published, published),
        ):
            target, group = solve(*releases, **twin)
            result = ask(*releases, **arguments, sibling_noise="exact")
            assert float(result.target_probability) == pytest.approx(target, rel=0, abs=1e-12)
            pmf = result.group_pmf
            expected = [group.get(N, 0.0) for N in pmf.index]
            assert pmf.to_numpy() == pytest.approx(expected, abs=1e-12)
            close = ask(*releases, **arguments)
            differs |= abs(float(close.target_probability) - target) > 1e-6
    assert differs or rho < 0.5


def test_many_releases_are_the_releases_one_by_one():
    rng = np.random.default_rng(3)
    y, n, S = rng.integers(-4, 9, 20), rng.integers(-3, 9, 20), rng.integers(-20, 30, 20)
    m, k = rng.integers(1, 30, 20), rng.integers(0, 4, 20)
    prior, a, b = rng.uniform(0.1, 0.9, 20), rng.uniform(0, 1, 20), rng.uniform(0, 1, 20)
    a[:3] = b[2:5] = 0.0
    law = FiniteLaw(0, np.full(40, 1 / 40))
    names = ("n_siblings", "rho_block", "rho_group", "prior", "known_count")
    known = dict(zip(names, (m, a, b, prior, k), strict=True))
    for change in ({}, {"group_prior": law}, {"sibling_noise": "exact"}):
        for ask in (hierarchical_posterior, published):
            many = ask(y, n, S, **known, **change).target_probability
            own = [{name: values[i] for name, values in known.items()} for i in range(20)]
            one = [ask(y[i], n[i], S[i], **own[i], **change).target_probability for i in range(20)]
            np.testing.assert_allclose(many, np.array(one, float), rtol=1e-14, atol=1e-15)


def test_broadcasting_and_frames():
    result = hierarchical_posterior([[0], [2]], [1, 4, 9], -1, **GRANVILLE)
    assert result.target_probability.shape == (2, 3)
    frame = result.to_frame()
    assert list(frame["group"]) == [1, 4, 9] * 2
    np.testing.assert_array_equal(frame["target_probability"], result.target_probability.ravel())
    np.testing.assert_allclose(frame["risk_ratio"], frame["target_probability"] / 0.5)
    long = result.group_frame()
    assert long.groupby("release")["probability"].sum().to_list() == pytest.approx([1.0] * 6)
    with pytest.raises(ShapeError, match="group_frame"):
        _ = result.group_pmf


counts = st.integers(-60, 60)
rhos = st.floats(0.01, 5.0)


@given(counts, st.integers(-200, 200), st.integers(1, 60), rhos)
def test_without_group_release_the_flat_prior_gives_the_block_posterior(y, S, m, a):
    settings = {"n_siblings": m, "rho_block": a, "prior": 0.3}
    alone = posterior_probability(y, rho=a, prior=0.3)
    silent = hierarchical_posterior(y, 12345, S, rho_group=0, **settings)
    assert float(silent.target_probability) == pytest.approx(float(alone), rel=1e-14)
    assert silent.block_probability == silent.target_probability
    # And as the limit.
    tiny = hierarchical_posterior(y, 3, S, rho_group=1e-13, **settings)
    assert float(tiny.target_probability) == pytest.approx(float(alone), abs=1e-9)


def test_without_group_release_a_proper_prior_still_couples_block_and_siblings():
    # N - x has another law for x = 0 than for x = 1, so S speaks of x: not the block's posterior.
    settings = GRANVILLE | {"rho_group": 0}
    proper = hierarchical_posterior(2, 0, -9, **settings, group_prior=FiniteLaw(3, [1.0]))
    alone = posterior_probability(2, rho=0.0992264, prior=0.5)
    assert abs(float(proper.target_probability) - alone) > 0.01
    # Nor is it under the published conditionals.
    replica = published(2, 0, -1, **settings)
    assert abs(float(replica.target_probability) - alone) > 0.005


def test_without_block_release_the_group_alone_speaks():
    settings = GRANVILLE | {"rho_block": 0}
    result = hierarchical_posterior(77, 0, -55, **settings)
    # N >= 1 against N >= 0, given n = 0.
    weights = np.exp(-0.2464845 * np.arange(60.0) ** 2)
    expected = weights[1:].sum() / (weights.sum() + weights[1:].sum())
    assert float(result.target_probability) == pytest.approx(expected, rel=1e-13)
    assert float(result.block_probability) == 0.5
    replica = published(77, 0, -55, **settings)
    assert float(replica.target_probability) == pytest.approx(0.5, rel=1e-14)


def test_nothing_released():
    result = hierarchical_posterior(1, 1, 1, n_siblings=3, rho_block=0, rho_group=0, prior=0.3)
    assert float(result.target_probability) == 0.3
    with pytest.raises(ArgumentError, match="proper group_prior"):
        _ = result.group_pmf
    law = FiniteLaw(0, [0.25] * 4)
    proper = hierarchical_posterior(
        1, 1, 1, n_siblings=3, rho_block=0, rho_group=0, prior=0.5, group_prior=law
    )
    assert float(proper.target_probability) == pytest.approx(3 / 7)
    assert proper.group_pmf.to_list() == pytest.approx([1 / 7, 2 / 7, 2 / 7, 2 / 7])


def test_sensitivity_scales_both_budgets():
    wide = hierarchical_posterior(2, 1, -1, **GRANVILLE, sensitivity=2**0.5)
    halved = GRANVILLE | {"rho_block": 0.0992264 / 2, "rho_group": 0.2464845 / 2}
    assert float(wide.target_probability) == pytest.approx(
        float(hierarchical_posterior(2, 1, -1, **halved).target_probability), rel=1e-14
    )


@pytest.mark.parametrize("a", [1e-300, 1e-6, 0.5, 1e3, 1e90])
@pytest.mark.parametrize("b", [0.0, 1e-300, 1e-6, 0.5, 1e3, 1e90])
def test_extreme_releases_under_every_option(a, b):
    big = 2**50
    law = FiniteLaw(0, np.full(50, 1 / 50))
    releases = np.array([(0, 0, 0), (big, -big, big), (-big, big, -big), (0, big, -big)]).T
    for change in ({}, {"group_prior": law}, {"sibling_noise": "exact"}):
        settings = {"n_siblings": 9, "rho_block": a, "rho_group": b, "prior": 0.2}
        endless = max(a, b) < 1e-9 and "group_prior" not in change  # sums of the published law
        for ask in (hierarchical_posterior, published)[: 1 if endless else 2]:
            values = ask(*releases, **settings, **change).target_probability
            assert ((values >= 0.0) & (values <= 1.0)).all(), (ask, change, values)


def test_point_prior_at_the_known_count_settles_it():
    result = hierarchical_posterior(9, 9, 0, **GRANVILLE, group_prior=FiniteLaw(0, [1.0]))
    assert float(result.target_probability) == 0.0
    assert result.group_pmf.to_list() == [1.0]
    with pytest.raises(ArgumentError, match="as-published"):
        hierarchical_posterior(
            9, 9, 0, **GRANVILLE, group_prior=FiniteLaw(0, [1.0]), conditionals="as-published"
        )


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("block", NOT_COUNTS),
        ("group", NOT_COUNTS),
        ("siblings", NOT_COUNTS),
        ("n_siblings", [*NOT_COUNTS, 0, -3]),
        ("known_count", [*NOT_COUNTS, -1]),
        ("prior", NOT_PRIORS),
        ("rho_block", [*NOT_REAL, None, -1, 1e101]),
        ("rho_group", [*NOT_REAL, None, -1, 1e101]),
        ("sensitivity", [*NOT_REAL, None, 0, -1]),
        ("conditionals", ["gibbs", None, 1]),
        ("sibling_noise", ["none", None]),
    ],
)
def test_bad_arguments_are_named(name, bad):
    for value in bad:

        def call(v):
            arguments = {"block": 2, "group": 1, "siblings": -1, **GRANVILLE, name: v}
            releases = [arguments.pop(r) for r in ("block", "group", "siblings")]
            return hierarchical_posterior(*releases, **arguments)

        if value == 1e101:
            with pytest.raises(ArgumentError, match=name):
                call(value)
        else:
            assert refuses(call, name, value)


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (FiniteLaw(-5, [0.5, 0.5]), "count >= 0"),
        (FiniteLaw(0, [0.5, 0.5]), "known_count = 4"),
        (FiniteLaw(3, [1.0, 0.0, 0.0]), "known_count = 4"),
        (DiscreteGaussian(1.0), "values >= 0"),
        (DiscreteGaussian([1.0, 2.0]), "single law"),
        ([0.5, 0.5], "CountLaw"),
    ],
)
def test_bad_priors_are_refused(law, message):
    with pytest.raises(ArgumentError, match=message):
        hierarchical_posterior(5, 5, 1, **GRANVILLE, known_count=4, group_prior=law)


def test_sums_that_would_never_end_are_refused():
    tiny = GRANVILLE | {"rho_block": 1e-20, "rho_group": 1e-20}
    with pytest.raises(ArgumentError, match="rho_group"):
        published_without_match(tiny)
    value = hierarchical_posterior(2, 1, -1, **tiny).target_probability
    assert float(value) == pytest.approx(0.5)


def published_without_match(settings):
    with pytest.warns(IncompatibleConditionalsWarning):
        hierarchical_posterior(2, 1, -1, **settings, conditionals="as-published")
