"""A group total that is known with and without the target, and truths that a prior excludes."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from oracles import two_levels as oracle
from paths import path_posterior, sample_path

from bayesrisk import ArgumentError, FiniteLaw, Tree, TwoLevels
from bayesrisk.inference import target_posteriors

SMALL = {"n_siblings": 1, "rho_block": 0.4, "rho_group": 0.5, "prior": 0.5}


def table(N, question):
    """Return all releases with their laws and who is believed to be there, by enumeration."""
    arguments = {"m": question.n_siblings, "a": question.rho_block, "k": question.known_count}
    law = oracle.known_total(N, **arguments)
    y, S = np.array(list(law)).T
    without, there = np.array(list(law.values())).T
    p, k = question.prior, question.known_count
    alone = p / (p + (1 - p) * np.exp(-question.rho_block * (2 * (y - k) - 1)))
    posterior = p * there / (p * there + (1 - p) * without)
    decided, before = (
        np.where(np.abs(belief - 0.5) < 1e-11, 0.5, belief > 0.5) for belief in (posterior, alone)
    )
    return y, S, without, there, posterior, decided, before


def question(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(0, 3))
    return TwoLevels(
        n_siblings=int(rng.integers(1, 4)), rho_block=float(rng.choice([0.3, 0.4, 0.8, 1.7])),
        rho_group=float(rng.choice([0.0, 0.5])), prior=float(rng.choice([0.5, 0.2, 0.05, 0.7])),
        known_count=k, known_total=k + 1 + int(rng.integers(0, 4)), sibling_noise="exact",
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_every_answer_against_enumeration(seed):
    asked = question(seed)
    N, k, p = asked.known_total, asked.known_count, asked.prior
    y, S, without, there, posterior, decided, before = table(N, asked)
    near = without + there > 1e-12
    found = asked.posterior(y[near], 0, S[near]).target_probability
    np.testing.assert_allclose(found, posterior[near], atol=1e-10)
    truths = {"group_count": N, "block_count": [k, k + 1]}

    def close(value, *expected):
        np.testing.assert_allclose(value, np.squeeze(expected), rtol=0.0, atol=1e-10)

    close(asked.average(**truths).value, without @ (1 - posterior), there @ posterior)
    close(asked.correct_decision(**truths).value, without @ (1 - decided), there @ decided)
    accuracy = asked.accuracy(N)
    close(accuracy.value, np.maximum(p * there, (1 - p) * without).sum())
    close(accuracy.without_hierarchy, p * there @ before + (1 - p) * without @ (1 - before))
    gain = asked.gain(**truths)
    close(
        gain.gain,
        without @ np.maximum(before - decided, 0),
        there @ np.maximum(decided - before, 0),
    )
    close(
        gain.loss,
        without @ np.maximum(decided - before, 0),
        there @ np.maximum(before - decided, 0),
    )
    ratio = posterior / p
    for weight, law in (
        (without, asked.distribution(N, block_count=k)),
        (there, asked.distribution(N)),
        (p * there + (1 - p) * without, asked.distribution()),
    ):
        assert law.mean == pytest.approx(weight @ ratio, abs=1e-10 / p)
        for limit in np.quantile(ratio[near], [0.1, 0.4, 0.6, 0.9]) * (1 + 1e-7):
            close(law.exceeds(limit), weight[ratio > limit].sum())
    assert asked.distribution().mean == pytest.approx(1.0, abs=1e-10 / p)


def test_an_exact_total_informs_where_a_point_prior_could_not():
    # The figures of the enumeration: 0.6784 from the block alone, 0.7294 with the total.
    known = TwoLevels(**SMALL, known_total=3).accuracy(3)
    *_, without, there, _, _, _ = table(3, TwoLevels(**SMALL))
    assert float(known.value) == pytest.approx(np.maximum(without, there).sum() / 2, abs=1e-12)
    assert float(known.value) == pytest.approx(0.7294451, abs=1e-7)
    assert float(known.without_hierarchy) == pytest.approx(0.6784124, abs=1e-7)


@given(
    st.integers(0, 3),
    st.integers(0, 6),
    st.integers(1, 9),
    st.floats(0.05, 3.0),
    st.floats(0.001, 0.999),
)
@settings(max_examples=30)
def test_a_known_total_never_makes_the_best_guess_worse(k, others, m, rho, p):
    N = k + 1 + others
    shared = {"n_siblings": m, "rho_block": rho, "rho_group": 0.0, "prior": p, "known_count": k}
    right = TwoLevels(**shared, known_total=N, sibling_noise="exact").accuracy(N)
    assert right.value >= right.without_hierarchy - 1e-12
    assert right.value >= right.without_release - 1e-12


def test_chains_agree():
    asked = TwoLevels(**SMALL, known_total=3)
    samples = asked.sample(1, 0, 2, draws=4000, warmup=50, chains=2, rng=1)
    there = float(asked.posterior(1, 0, 2).target_probability)
    assert abs(samples.target_probability - there) < 5 * samples.target_error
    assert (samples.counts[:, :, 1] == 3).all()


@pytest.mark.parametrize("N", [1, 2, 5])
def test_two_levels_a_path_and_a_tree_say_the_same(N):
    question = {"n_siblings": 1, "prior": 0.3, "known_total": N}
    there = TwoLevels(rho_block=0.4, rho_group=0.0, **question).posterior(2, 0, 1)
    path = path_posterior([2, 0], [1], n_siblings=1, rho=[0.4, 0.0], prior=0.3, known_totals=[N])
    frame = pd.DataFrame(
        {
            "node": ["group", "a", "b"],
            "parent": [None, "group", "group"],
            "noisy_count": [0, 2, 1],
            "rho": [0.0, 0.4, 0.4],
            "exact_count": [N, None, None],
            "known_count": [None, 0, None],
            "prior": [None, 0.3, None],
        }
    )
    tree = target_posteriors(Tree.from_frame(frame), leaf_prior="flat")
    expected = float(there.target_probability)
    assert path.target_probability == pytest.approx(expected, abs=1e-12)
    assert tree.posterior[0] == pytest.approx(expected, abs=1e-12)
    assert path.pmf(1).to_dict() == there.group_pmf.to_dict() == {N: 1.0}


PRIORS = {"group_prior": FiniteLaw(2, [0.3, 0.0, 0.7])}


@pytest.mark.parametrize(
    ("settings", "method", "arguments", "said"),
    [
        (
            {"group_prior": FiniteLaw.point(3)},
            "accuracy",
            {"group_count": 3},
            ("group_count - 1", 2),
        ),
        ({"group_prior": FiniteLaw.point(28)}, "average", {"group_count": 5}, ("group_count", 5)),
        (
            {"group_prior": FiniteLaw.point(28)},
            "gain",
            {"group_count": [28, 5]},
            ("group_count", 5),
        ),
        (PRIORS, "correct_decision", {"group_count": 3}, ("group_count", 3)),
        (PRIORS, "distribution", {"group_count": 9}, ("group_count", 9)),
        (PRIORS, "distribution", {"group_count": 1, "block_count": 0}, ("group_count", 1)),
        ({"known_total": 28}, "accuracy", {"group_count": 5}, ("group_count", 5)),
        ({"known_total": 28}, "average", {"group_count": [28, 29]}, ("group_count", 29)),
        ({"known_total": 28}, "distribution", {"group_count": 27}, ("group_count", 27)),
    ],
)
def test_impossible_truths_are_refused(settings, method, arguments, said):
    name, value = said
    with pytest.raises(ArgumentError, match=f"^{name}.* must be .*got .*{value}"):
        getattr(TwoLevels(**SMALL, **settings), method)(**arguments)


@pytest.mark.parametrize(
    ("settings", "bound", "value"),
    [
        ({"known_total": 0}, "above known_count = 0", 0),
        ({"known_total": 2, "known_count": [0, 2]}, "above known_count = 2", 2),
        ({"known_total": 3, **PRIORS}, "2 to 4", 3),
        ({"known_total": -1}, ">= 0", -1),
        ({"known_total": 1.5}, "whole number", 1.5),
    ],
)
def test_impossible_totals_are_refused(settings, bound, value):
    with pytest.raises(ArgumentError, match=rf"^known_total must be .*{bound}.*got {value}"):
        TwoLevels(**SMALL, **settings)


@pytest.mark.parametrize(
    ("totals", "changes", "name", "value"),
    [
        ([1, None], {}, "known_totals\\[0\\] must be at least 2", 1),
        ([5, 4], {}, "known_totals\\[1\\] must be at least 5", 4),
        ([4, 9], {"n_siblings": [0, 2]}, "known_totals\\[0\\] must be that of a group", 4),
        ([7, None], {"count_priors": [FiniteLaw(2, [0.5, 0.5]), None]}, "\\(2 to 3\\)", 7),
        ([4, None, None], {}, "known_totals must have one entry for each of the 2 levels", 3),
    ],
)
def test_impossible_totals_of_a_path_are_refused(totals, changes, name, value):
    arguments = {"n_siblings": [2, 3], "rho": [0.3, 0.2, 0.4], "prior": 0.3, "known_count": 1}
    draws = {"draws": 10, "warmup": 1, "chains": 1, "rng": 1}
    for function, more in ((path_posterior, {}), (sample_path, draws)):
        with pytest.raises(ArgumentError, match=f"{name}.*got {value}"):
            function([3, 4, 8], [2, 5], known_totals=totals, **arguments | changes, **more)
