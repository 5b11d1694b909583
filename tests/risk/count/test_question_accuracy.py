"""How often the best guess is right: against every release, and the decision that is best there."""

import numpy as np
import pytest
import two_level_questions as questions
from hypothesis import given, strategies as st
from oracles import two_levels as oracle
from refusals import NOT_POSITIVE, NOT_PRIORS, refuses

import bayesrisk as br

GRANVILLE = {"n_siblings": 27, "rho_block": 0.0992264, "rho_group": 0.2464845, "prior": 0.5}


def enumerated(rho, prior):
    """Return the accuracy, found and cleared by a plain sum over releases, from their weights."""
    reach = int(9.0 / np.sqrt(2.0 * rho)) + 4
    eta = np.arange(-reach, reach + 1)
    total = np.exp(-rho * eta.astype(float) ** 2).sum()
    y = np.arange(-reach, reach + 2)
    there, not_there = (np.exp(-rho * (y - x).astype(float) ** 2) / total for x in (1, 0))
    joint, other = prior * there, (1.0 - prior) * not_there
    guess = joint >= other
    return np.maximum(joint, other).sum(), there[guess].sum(), not_there[~guess].sum()


@pytest.mark.parametrize("rho", [0.003, 0.0992264, 0.7, 3.0, 40.0])
@pytest.mark.parametrize("prior", [1 / 864, 0.2, 0.5, 0.97])
def test_against_every_release(rho, prior):
    result = br.risk.decision_accuracy(rho=rho, prior=prior)
    right, found, cleared = enumerated(rho, prior)
    assert result.accuracy == pytest.approx(right, abs=1e-12)
    assert result.found == pytest.approx(found, abs=1e-12)
    assert result.cleared == pytest.approx(cleared, abs=1e-12)
    assert result.baseline == max(prior, 1.0 - prior)
    assert result.found == br.correct_decision_probability(rho=rho, prior=prior)


def test_hardly_found_and_mostly_right():
    """Rarely found is no protection of the guess: "no" is right for four in five anyway."""
    result = br.risk.decision_accuracy(rho=0.0992264, prior=1 / 5)
    assert result.found == pytest.approx(0.0017522, abs=5e-8)
    assert result.baseline == 0.8
    assert result.accuracy == pytest.approx(0.8000483, abs=5e-8)


@given(st.floats(1e-6, 200.0), st.floats(1e-9, 1.0 - 1e-9))
def test_no_release_makes_a_worse_guess(rho, prior):
    result = br.risk.decision_accuracy(rho=rho, prior=prior)
    assert result.baseline <= result.accuracy <= 1.0
    mirrored = br.risk.decision_accuracy(rho=rho, prior=1.0 - prior)
    # Being there or not is a matter of names, up to the rounding of 1 - prior.
    assert result.accuracy == pytest.approx(mirrored.accuracy, abs=1e-9)


def test_shapes_conventions_and_frames():
    result = br.risk.decision_accuracy(rho=[0.1, 1.0], prior=[[0.5], [0.1], [0.01]])
    assert result.accuracy.shape == result.baseline.shape == result.cleared.shape == (3, 2)
    frame = result.to_frame()
    assert list(frame) == ["prior", "accuracy", "baseline", "found", "cleared"]
    assert len(frame) == 6
    rebuilt = frame["prior"] * frame["found"] + (1 - frame["prior"]) * frame["cleared"]
    np.testing.assert_allclose(frame["accuracy"], rebuilt, atol=1e-15)
    produced = br.risk.decision_accuracy(rho=0.0992264, prior=0.5, sensitivity=2**0.5)
    twin = br.risk.decision_accuracy(sigma2=1 / 0.0992264, prior=0.5)
    assert produced.accuracy == pytest.approx(float(twin.accuracy), rel=1e-13)
    assert produced.accuracy < br.risk.decision_accuracy(rho=0.0992264, prior=0.5).accuracy


def test_bad_arguments():
    for bad in NOT_PRIORS:
        assert refuses(lambda v: br.risk.decision_accuracy(rho=0.1, prior=v), "prior", bad)
    for bad in NOT_POSITIVE:
        assert refuses(lambda v: br.risk.decision_accuracy(rho=v, prior=0.5), "rho", bad)
    with pytest.raises(br.ArgumentError, match="exactly one of rho and sigma2"):
        br.risk.decision_accuracy(prior=0.5)
    with pytest.raises(br.exceptions.ShapeError, match="do not broadcast"):
        br.risk.decision_accuracy(rho=[0.1, 0.2], prior=[0.1, 0.2, 0.3])


def test_two_levels_against_a_triple_sum():
    m, a, b, p, k, N = 2, 0.8, 0.5, 0.3, 1, 3
    twin = {"m": m, "a": a, "b": b, "p": p, "k": k}
    flat = dict.fromkeys(range(40), 0.0)

    def solve(y, n, S):
        return oracle.coherent(y, n, S, group_log_prior=flat, **twin)[0]

    found, cleared = (
        oracle.correct_decision(group, block, solve=solve, reach=(6, 8, 6), **twin)[0]
        for block, group in ((k + 1, N), (k, N - 1))  # the same people in the other blocks
    )
    result = questions.accuracy(
        n_siblings=m, rho_block=a, rho_group=b, prior=p, known_count=k, group_count=N
    )
    assert float(result.value) == pytest.approx(p * found + (1 - p) * cleared, abs=1e-10)
    assert float(result.without_release) == 0.7
    alone = br.risk.decision_accuracy(rho=a, prior=p)
    assert float(result.without_hierarchy) == pytest.approx(float(alone.accuracy), abs=1e-12)
    assert "block_count" not in result.to_frame()


def test_two_levels_broadcast():
    question = GRANVILLE | {"prior": [[0.5], [0.2]], "group_count": [1, 3, 10]}
    exact = questions.accuracy(**question)
    assert exact.value.shape == (2, 3)
    assert exact.quantity == "decision accuracy"
    # What misleads about the one who is there pays for those who are not: right more often.
    found = questions.correct_decision(**GRANVILLE, group_count=1)
    assert float(found.value) < 0.32
    assert exact.value[0, 0] == pytest.approx(0.603731, abs=1e-6)
    assert exact.value[0, 0] > exact.without_hierarchy[0, 0] > exact.without_release[0, 0] == 0.5
