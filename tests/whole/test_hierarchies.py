"""Two levels are a path, and a path is a tree: closed forms and the sums of trees over a grid."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from paths import path_posterior

from bayesrisk import FiniteLaw, TwoLevels

COUNTS = st.integers(-12, 30)
BUDGETS = st.floats(-2.5, 1.0).map(lambda t: 10.0**t)
WEIGHTS = st.lists(st.floats(0.001, 1.0), min_size=6, max_size=14)


@st.composite
def questions(draw):
    """Return settings of two levels; the prior of the group is flat, a table, or a known total."""
    k = draw(st.integers(0, 4))
    about = {
        "n_siblings": draw(st.integers(1, 60)),
        "rho_block": draw(BUDGETS),
        "rho_group": draw(st.one_of(st.just(0.0), BUDGETS)),
        "prior": draw(st.one_of(st.floats(0.02, 0.98), st.floats(-4, -1).map(lambda t: 10.0**t))),
        "known_count": k,
        "sensitivity": draw(st.sampled_from([1.0, 2**0.5])),
        "sibling_noise": draw(st.sampled_from(["approximate", "exact"])),
    }
    kind = draw(st.sampled_from(["flat", "table", "total"]))
    if kind == "table":
        weights = np.array(draw(WEIGHTS))
        start = k + draw(st.integers(-2, 3))
        about["group_prior"] = FiniteLaw(max(start, 0), weights / weights.sum())
    elif kind == "total":
        about["known_total"] = k + draw(st.integers(1, 12))
    return about


def both(about, y, n, S):
    """Return P(target) and the law of the group, by the closed form and by the sums of a tree."""
    two = TwoLevels(**about).posterior(y, n, S)
    changed = dict(about)
    path = {"rho": [changed.pop("rho_block"), changed.pop("rho_group")]}
    path["count_priors"] = [changed.pop("group_prior", None)]
    path["known_totals"] = [changed.pop("known_total", None)]
    tree = path_posterior([y, n], [S], **changed, **path)
    gap = two.group_pmf.subtract(tree.pmf(1), fill_value=0.0).abs().max()
    return float(two.target_probability), tree.target_probability, gap


@given(questions(), COUNTS, COUNTS, COUNTS)
@settings(max_examples=40, deadline=None)
def test_closed_forms_of_two_levels_are_sums_of_a_tree(about, y, n, S):
    closed, summed, gap = both(about, y, n, S)
    assert closed == pytest.approx(summed, abs=1e-12)
    assert gap < 1e-12


@given(questions(), COUNTS, COUNTS, COUNTS)
@settings(max_examples=10, deadline=None)
def test_another_prior_would_be_seen(about, y, n, S):
    closed, _, _ = both(about, y, n, S)
    _, other, _ = both(about | {"prior": about["prior"] * (1 + 1e-6)}, y, n, S)
    if 1e-5 < closed < 1 - 1e-5:
        assert abs(closed - other) > 1e-12
