"""Averages over the releases of two levels: against a triple sum, against draws, and refusals."""

import functools

import numpy as np
import pytest
import two_level_questions as questions
from hypothesis import given, settings, strategies as st
from oracles import two_levels as oracle

from bayesrisk import (
    ArgumentError,
    DiscreteGaussian,
    FiniteLaw,
    correct_decision_probability,
    hierarchical_posterior,
    marginal_posterior,
)
from bayesrisk.exceptions import IncompatibleConditionalsWarning

GRANVILLE = {"n_siblings": 27, "rho_block": 0.0992264, "rho_group": 0.2464845, "prior": 0.5}
FUNCTIONS = [questions.correct_decision, questions.average]
NOISY = pytest.mark.filterwarnings("ignore::bayesrisk.exceptions.IncompatibleConditionalsWarning")


@NOISY
@pytest.mark.parametrize("conditionals", ["coherent", "as-published"])
@pytest.mark.parametrize(("k", "x", "N", "p"), [(0, 1, 1, 0.5), (1, 1, 2, 0.3), (2, 3, 6, 0.6)])
def test_against_a_triple_sum(conditionals, k, x, N, p):
    m, a, b = 3, 0.8, 0.5
    twin = {"m": m, "a": a, "b": b, "p": p, "k": k}
    solver = oracle.coherent if conditionals == "coherent" else oracle.published
    flat = dict.fromkeys(range(40), 0.0)

    @functools.cache
    def solve(y, n, S):
        return solver(y, n, S, group_log_prior=flat, **twin)[0]

    correct, mean = oracle.correct_decision(N, x, solve=solve, reach=(6, 8, 6), **twin)
    arguments = {
        "n_siblings": m, "rho_block": a, "rho_group": b, "prior": p, "group_count": N,
        "block_count": x, "known_count": k, "conditionals": conditionals,
    }  # fmt: skip
    # Beyond the reach are 2 exp(-0.8 * 49) and 2 exp(-0.5 * 81) of each law, and the releases
    # below 1e-15, of which there are at most 13 * 17 * 37.
    slack = 1e-10
    for function, expected in zip(FUNCTIONS, (correct, mean), strict=True):
        assert float(function(**arguments).value) == pytest.approx(expected, abs=slack)


@NOISY
@pytest.mark.parametrize("conditionals", ["coherent", "as-published"])
def test_against_every_release_of_smooth_noise(conditionals):
    # rho below 1/8: the sum is the discrete Gaussian, so agreement is to rounding.
    arguments = {"n_siblings": 2, "rho_block": 0.12, "rho_group": 0.6, "prior": 0.45}
    y, n, S = np.meshgrid(np.arange(-16, 19), np.arange(-5, 11), np.arange(-22, 25), indexing="ij")
    laws = [
        DiscreteGaussian(v, c).pmf(z)
        for v, c, z in ((0.5 / 0.12, 1, y), (0.5 / 0.6, 3, n), (2 * 0.5 / 0.12, 2, S))
    ]
    weight = laws[0] * laws[1] * laws[2]
    posterior = hierarchical_posterior(
        y, n, S, **arguments, conditionals=conditionals
    ).target_probability
    for function, value in zip(FUNCTIONS, (posterior >= 0.5, posterior), strict=True):
        result = function(**arguments, group_count=3, conditionals=conditionals)
        missing = 1.0 - weight.sum()
        assert float(result.value) == pytest.approx((weight * value).sum(), abs=missing + 1e-12)
        assert 0.0 < result.truncation_bound < 1e-15


@NOISY
@pytest.mark.parametrize("conditionals", ["coherent", "as-published"])
@pytest.mark.parametrize("rho_block", [0.0992264, 0.7])
def test_draws_agree_within_their_error(conditionals, rho_block):
    arguments = GRANVILLE | {
        "rho_block": rho_block,
        "n_siblings": 6,
        "conditionals": conditionals,
        "sibling_noise": "exact",
    }
    noise = {"m": 6, "a": rho_block, "b": GRANVILLE["rho_group"], "releases": 20_000, "seed": 7}
    for N, x in ((1, 1), (4, 0)):
        truth = {"group_count": N, "block_count": x}
        there = hierarchical_posterior(*oracle.drawn(N, x, **noise), **arguments)
        there = there.target_probability
        right = there if x else 1.0 - there
        decided = np.where(right == 0.5, 0.5, right > 0.5)
        for function, values in zip(FUNCTIONS, (decided, right), strict=True):
            drawn, error = values.mean(), values.std() / np.sqrt(values.size)
            assert error > 0.0
            assert abs(drawn - float(function(**arguments, **truth).value)) < 4.0 * error
            # The control: another truth is told apart.
            other = function(**arguments, group_count=9 if x else 1, block_count=x)
            assert abs(drawn - float(other.value)) > 4.0 * error


def test_gains_and_losses_add_up():
    result = questions.gain(**GRANVILLE, group_count=[1, 4, 30], block_count=[1, 0, 1])
    risk = questions.correct_decision(**GRANVILLE, group_count=[1, 4, 30], block_count=[1, 0, 1])
    np.testing.assert_allclose(result.with_hierarchy, risk.value, rtol=1e-14)
    np.testing.assert_allclose(result.without_hierarchy, risk.without_hierarchy, rtol=1e-12)
    np.testing.assert_allclose(result.net, risk.value - risk.without_hierarchy, atol=1e-14)
    alone = correct_decision_probability(rho=0.0992264, prior=0.5)
    assert result.without_hierarchy[0] == pytest.approx(float(alone), rel=1e-13)
    noise = {"m": 27, "a": GRANVILLE["rho_block"], "b": GRANVILLE["rho_group"]}
    drawn = oracle.drawn(1, 1, **noise, releases=20_000, seed=2)
    found = hierarchical_posterior(*drawn, **GRANVILLE)
    there, alone = (p > 0.5 for p in (found.target_probability, found.block_probability))
    for hits, value in ((there & ~alone, result.gain[0]), (~there & alone, result.loss[0])):
        assert abs(hits.mean() - value) < 4 * hits.std() / np.sqrt(hits.size)
    assert set(result.to_frame()) >= {"gain", "loss", "net"}


@pytest.mark.parametrize("block_count", [2, 3])
def test_the_decision_map_is_made_of_posteriors(block_count):
    result = questions.gain(**GRANVILLE, group_count=6, block_count=block_count, known_count=2)
    ranges = (range(-2, 8), range(0, 9), range(-12, 20, 3))
    frame = result.decision_map(*ranges)
    assert len(frame) == 10 * 9 * 11
    posterior = hierarchical_posterior(
        frame["block"], frame["group"], frame["siblings"], **GRANVILLE, known_count=2
    )
    np.testing.assert_array_equal(frame["decision"], 2 + (posterior.target_probability >= 0.5))
    np.testing.assert_array_equal(
        frame["decision_without"], 2 + (posterior.block_probability >= 0.5)
    )
    right, before = frame["decision"] == block_count, frame["decision_without"] == block_count
    assert ((frame["change"] == "gain") == (right & ~before)).all()
    assert ((frame["change"] == "loss") == (~right & before)).all()
    assert {"gain", "loss"} <= set(frame["change"])
    wide = result.decision_map(range(-30, 36), range(-14, 28), range(-110, 115))
    assert wide["probability"].sum() == pytest.approx(1.0, abs=1e-12)
    shares = wide.groupby("change")["probability"].sum()
    assert shares["gain"] == pytest.approx(float(result.gain), abs=1e-12)
    assert shares["loss"] == pytest.approx(float(result.loss), abs=1e-12)


def test_a_silent_level_changes_nothing():
    for function, alone in (
        (questions.correct_decision, correct_decision_probability),
        (questions.average, marginal_posterior),
    ):
        expected = float(alone(rho=0.4, prior=0.3))
        result = function(n_siblings=5, rho_block=0.4, rho_group=0, prior=0.3, group_count=[1, 9])
        assert result.value.tolist() == pytest.approx([expected] * 2, rel=1e-12)
        assert result.without_hierarchy.tolist() == pytest.approx([expected] * 2, rel=1e-12)
    nothing = questions.average(
        n_siblings=5, rho_block=0, rho_group=0, prior=0.3, group_count=1, block_count=[0, 1]
    )
    assert nothing.value.tolist() == pytest.approx([0.7, 0.3])
    decided = questions.correct_decision(
        n_siblings=5, rho_block=0, rho_group=0.4, prior=0.3, group_count=3, block_count=[0, 1]
    )
    assert decided.value.tolist() == [1.0, 0.0]


def test_the_order_of_settings_is_kept():
    rho = np.array([[0.02], [0.5], [0.1]])
    table = questions.correct_decision(
        n_siblings=[3, 9], rho_block=0.1, rho_group=rho, prior=0.4, group_count=[2, 5]
    )
    assert table.value.shape == (3, 2)
    for i, j in np.ndindex(3, 2):
        one = questions.correct_decision(
            n_siblings=[3, 9][j],
            rho_block=0.1,
            rho_group=rho[i, 0],
            prior=0.4,
            group_count=[2, 5][j],
        )
        assert table.value[i, j] == pytest.approx(float(one.value), rel=1e-13)
    frame = table.to_frame()
    assert frame["rho_group"].to_list() == np.repeat(rho.ravel(), 2).tolist()
    assert frame["value"].to_list() == table.value.ravel().tolist()


def test_ties_are_shared_or_decided_for_one_more():
    # With the total known and p = 1/2 the log odds are whole multiples of rho / m: at exact ties
    # rounding must not decide.  Integers tell where they are.
    a, m, N = 0.0992264, 27, 28
    y, S = np.meshgrid(np.arange(-60, 62), np.arange(-400, 401), indexing="ij")
    weight = DiscreteGaussian(0.5 / a, 1).pmf(y) * DiscreteGaussian(m * 0.5 / a, N - 1).pmf(S)
    balance = m * (2 * y - 1) + 2 * (N - S) - 1
    question = GRANVILLE | {"group_count": N, "known_total": N}
    above, tied = weight[balance > 0].sum(), weight[balance == 0].sum()
    assert tied > 0.004  # ties matter
    for ties, share in (("shared", 0.5), ("as-published", 1.0)):
        risk = questions.correct_decision(**question, ties=ties)
        assert float(risk.value) == pytest.approx(above + share * tied, rel=1e-12)
        gain = questions.gain(**question, ties=ties)
        assert float(gain.with_hierarchy) == pytest.approx(float(risk.value), rel=1e-12)
        shown = gain.decision_map(range(-20, 23), [1], range(-123, 178))
        assert ("tie" in set(shown["change"])) == (ties == "shared")
        assert risk.question.ties == ties
    default = questions.correct_decision(**question)
    assert float(default.value) == pytest.approx(above + 0.5 * tied, rel=1e-12)
    with pytest.raises(ArgumentError, match="ties must be one of shared, as-published"):
        questions.correct_decision(**question, ties="mine")


@NOISY
@pytest.mark.parametrize("conditionals", ["coherent", "as-published"])
def test_where_nothing_is_released_a_coin_decides(conditionals):
    question = {"n_siblings": 3, "rho_block": 0, "rho_group": 0, "prior": 0.5, "group_count": 4}
    for ties, found, cleared in (("shared", 0.5, 0.5), ("as-published", 1.0, 0.0)):
        risk = questions.correct_decision(
            **question, block_count=[1, 0], ties=ties, conditionals=conditionals
        )
        assert risk.without_hierarchy.tolist() == [found, cleared]
        assert risk.without_release.tolist() == [found, cleared]
        if conditionals == "as-published":  # nothing is known of the group: one law, as the other
            assert risk.value.tolist() == [found, cleared]


@given(
    st.integers(0, 3),
    st.integers(0, 6),
    st.integers(1, 12),
    st.floats(0.05, 0.9),
    st.floats(0.05, 2.0),
    st.floats(0.05, 0.95),
)
@settings(max_examples=25)
def test_averages_over_both_truths_obey_the_martingale(k, others, m, a, b, p):
    # Averaged over the truths as the adversary believes them, a proper posterior keeps the prior.
    N = k + 1 + others
    law = FiniteLaw(N, [1.0])
    values = {
        x: float(
            questions.average(
                n_siblings=m,
                rho_block=a,
                rho_group=b,
                prior=p,
                group_count=N,
                block_count=x,
                known_count=k,
                group_prior=law,
                sibling_noise="exact",
            ).value
        )
        for x in (k, k + 1)
    }
    average = p * values[k + 1] + (1.0 - p) * (1.0 - values[k])
    assert average == pytest.approx(p, abs=1e-11)


@pytest.mark.parametrize("function", [*FUNCTIONS, questions.gain])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"group_count": 0}, "group_count must be >= block_count"),
        ({"block_count": 2}, "block_count must be known_count or one more"),
        ({"group_count": -1}, "group_count"),
        ({"rho_block": 1e-40}, "rho_block"),
        ({"rho_block": 1e-9, "rho_group": 1e-9}, "16777216"),
    ],
)
def test_bad_questions_are_refused(function, change, message):
    with pytest.raises(ArgumentError, match=message):
        function(**(GRANVILLE | {"group_count": 1} | change))


def test_other_refusals():
    with pytest.raises(ArgumentError, match="one setting"):
        questions.gain(**GRANVILLE, group_count=[1, 2]).decision_map([0], [0], [0])
    with pytest.warns(IncompatibleConditionalsWarning):
        questions.gain(**GRANVILLE, group_count=1, conditionals="as-published")
