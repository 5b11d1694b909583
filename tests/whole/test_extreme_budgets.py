"""Posteriors of hierarchies for every budget: they end, and are right or refused."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings, strategies as st
from paths import path_posterior

from bayesrisk import ArgumentError, BayesRiskError, Tree, hierarchical_posterior, tree_posterior
from bayesrisk.inference.tree import (
    _kernels as kernels,
    _sum_product as engine,
    _sum_product as tilts,
)

# The wide windows of budgets between these are slow in a tree, not endless.
budgets = st.one_of(st.floats(-300, -40), st.floats(-3, 300)).map(lambda t: 10.0**t)
every_budget = st.floats(-300, 300).map(lambda t: 10.0**t)
wide = st.floats(-9, -3).map(lambda t: 10.0**t)
counts = st.integers(-300, 300)
probabilities = st.floats(1e-6, 1 - 1e-6)


def attempt(call):
    """Return what a call gives, or None for an error of our own; fail where tilts do not end."""
    own, taken = kernels.newton_direction, itertools.count(1)

    def counted(*arguments):
        assert next(taken) <= 200 * (1 + engine._IMPROVEMENTS), "the tilts are still improving"
        return own(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "newton_direction", counted)
        try:
            return call()
        except BayesRiskError:
            return None


@example([2, 5, 9], [3, 4], [2, 3], [3e18] * 3, 0.3)
@example([2, 5, 9], [3, 4], [2, 3], [1e7] * 3, 0.3)
@example([2, 5, 10**9], [30, -4], [2, 3], [1e7] * 3, 0.3)
@settings(max_examples=15)
@given(
    st.lists(counts, min_size=3, max_size=3),
    st.lists(counts, min_size=2, max_size=2),
    st.lists(st.integers(0, 3), min_size=2, max_size=2),
    st.lists(every_budget, min_size=3, max_size=3),
    probabilities,
)
def test_paths(noisy, siblings, n_siblings, rho, prior):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "MAX_ENTRIES", 2**20)  # a second of work, as a rule
        found = attempt(
            lambda: path_posterior(noisy, siblings, n_siblings=n_siblings, rho=rho, prior=prior)
        )
    if found is not None:
        assert 0.0 <= found.target_probability <= 1.0
        assert np.isfinite(found.mean).all()


@settings(max_examples=15)
@given(st.lists(counts, min_size=3, max_size=3), st.integers(1, 30), wide, wide, probabilities)
def test_wide_windows_agree_with_the_closed_form(noisy, n_siblings, rho_block, rho_group, prior):
    block, group, siblings = noisy
    found = path_posterior(
        [block, group], [siblings], n_siblings=n_siblings, rho=[rho_block, rho_group], prior=prior
    )
    closed = hierarchical_posterior(
        *noisy, n_siblings=n_siblings, rho_block=rho_block, rho_group=rho_group, prior=prior
    )
    # Sums of up to a million terms: half an ulp each, and what was cut off.
    size = sum(found.pmf(level).size for level in range(len(found.levels)))
    assert found.target_probability == pytest.approx(
        float(closed.target_probability), rel=0, abs=size * 2.0**-52 + 1e-14
    )


@pytest.mark.parametrize("rho", [1e-12, 1e-40, [1e-14, 1e-3], [1e-13, 0.0]])
def test_windows_of_a_path_that_are_too_wide_are_refused_by_name(rho):
    with pytest.raises(ArgumentError, match="leaf 'siblings_0' needs a release"):
        path_posterior([2, 1], [-1], n_siblings=27, rho=rho, prior=0.5, sibling_rho=1e-13)


@settings(max_examples=15)
@example([-9, 0, 0, 0, 0, 0], [1e64, 1e-243, 1e-40, 1.0, 1.0, 1.0])  # a slope beyond doubles
@given(st.lists(counts, min_size=6, max_size=6), st.lists(budgets, min_size=6, max_size=6))
def test_trees(noisy, rho):
    frame = pd.DataFrame(
        {
            "node": list("rabcde"),
            "parent": ["", "r", "r", "a", "a", "b"],
            "noisy_count": noisy,
            "rho": rho,
        }
    )
    found = attempt(lambda: tree_posterior(Tree.from_frame(frame), leaf_prior="flat"))
    if found is not None:
        assert np.isfinite(found.to_frame()[["mean", "sd"]].to_numpy()).all()


@given(st.lists(counts, min_size=3, max_size=3), st.integers(0, 9), budgets, budgets, probabilities)
def test_two_levels(noisy, n_siblings, rho_block, rho_group, prior):
    found = attempt(
        lambda: hierarchical_posterior(
            *noisy, n_siblings=n_siblings, rho_block=rho_block, rho_group=rho_group, prior=prior
        )
    )
    if found is not None:
        assert 0.0 <= float(found.target_probability) <= 1.0


@pytest.mark.parametrize("rho", [1e2, 1e5, 1e8])
@pytest.mark.parametrize("prior", [0.5, 0.01])
def test_contradictions_that_tie(rho, prior):
    # Block 0, group 1 and sibling 0 cannot all be right.  One of them is wrong by one in three
    # sets of counts, equally far: two of them have the block at 0, and every other is at least
    # 3 rho worse.
    found = path_posterior([0, 1], [0], n_siblings=1, rho=rho, prior=prior)
    truth = prior / (prior + 2 * (1 - prior))
    # Tilts of about rho are rounded, as is documented: 2**-52 of them, in each of three factors.
    assert found.target_probability == pytest.approx(truth, rel=1e-14 + 2**-49 * rho, abs=0)


def test_tilts_that_doubles_cannot_hold_are_refused():
    with pytest.raises(ArgumentError, match=r"releases must agree to within a tilt of 4.29e\+09"):
        path_posterior([0, 1], [0], n_siblings=1, rho=1e15, prior=0.5)
    # The same budget is fine for counts that agree.
    agreeing = path_posterior([0, 1], [1], n_siblings=1, rho=1e15, prior=0.5)
    assert agreeing.target_probability == 0.0
    assert agreeing.mean.tolist() == [0.0, 1.0]


def test_steps_that_run_out_leave_valid_tilts(monkeypatch):
    kept = path_posterior([0, 4], [1], n_siblings=2, rho=3.0, prior=0.3)
    monkeypatch.setattr(tilts, "_MAX_STEPS", 0)
    found = path_posterior([0, 4], [1], n_siblings=2, rho=3.0, prior=0.3)
    assert found.status == "exact"
    assert found.target_probability == pytest.approx(kept.target_probability, rel=1e-13, abs=0)


@pytest.mark.parametrize("lam", [1e-300, 1e-40, 1e-20])
def test_endless_windows_are_refused_at_once(lam):
    law = np.array([0.0, 1.0, 0.0])
    leaf = kernels.Leaf(5, 0.0, lam, law, 0.0)
    assert kernels.leaf_window(leaf, -43.0, 0, 2**52)[2] == 0
    assert kernels.rough_moments(leaf) == (math.inf, math.inf)
    # A tilt that only a count beyond every double would outweigh.
    assert kernels.leaf_window(leaf._replace(theta=1e-15), -43.0, 0, 2**52)[2] == 0
    assert kernels.leaf_window(leaf._replace(lam=1e-6), -43.0, 0, 2**52)[2] > 0
