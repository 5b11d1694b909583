"""The page of limits says what the code refuses."""

from pathlib import Path

import numpy as np
import pytest
import two_level_questions as questions

import bayesrisk as br
from bayesrisk._base import validation
from bayesrisk._base.disk import text as _parse
from bayesrisk.distributions import sums as convolution
from bayesrisk.inference.sampling import chains, tree as path_gibbs
from bayesrisk.inference.tree import _sum_product as _tree_engine
from bayesrisk.inference.two_levels import model as _two_levels
from bayesrisk.risk.two_levels import averages as _two_level_grid, averages as _two_level_question

PAGE = Path(__file__).resolve().parents[1] / "docs/reference/errors.md"
ROWS = {
    "a whole number": (validation.MAX_COUNT,),
    "the true count of a group": (_two_level_question.MAX_GROUP,),
    "elements of an array": (validation.MAX_ELEMENTS,),
    "items that are taken": (validation.MAX_ITEMS,),
    "entries of a tabulated": (convolution.MAX_TABLE,),
    "convolved or truncated": (convolution.MAX_TABLE,),
    "terms of a sum over": (_two_levels.MAX_TERMS,),
    "releases that an exact": (_two_level_grid.MAX_CELLS,),
    "probabilities in the messages": (_tree_engine.MAX_ENTRIES,),
    "draws of all chains": (chains.MAX_VALUES,),
    "a JSON document": (_parse.JSON_BYTES, _parse.JSON_VALUES),
    "a TOML document": (_parse.TOML_BYTES,),
}


@pytest.mark.parametrize("what", ROWS)
def test_the_page_has_the_limits_of_the_code(what):
    (row,) = (line for line in PAGE.read_text(encoding="utf-8").splitlines() if what in line)
    for limit in ROWS[what]:
        exponent = limit.bit_length() - 1
        assert 2**exponent == limit
        assert f"2^{exponent}" in row
    assert path_gibbs.LEAST_PRECISION == 1e-30
    assert chains.MAX_SWEEPS == 10**8


SETTINGS = {"n_siblings": 27, "rho_block": 0.0992264, "rho_group": 0.2464845, "prior": 0.5}


def test_a_large_group_is_answered_or_refused():
    # Far from zero the group's count does not matter: a theta sum over all whole numbers.
    far = questions.gain(**SETTINGS, group_count=10**6).gain
    assert questions.gain(**SETTINGS, group_count=2**51).gain == far
    with pytest.raises(br.ArgumentError, match=r"group_count must be <= 2251799813685248, got"):
        questions.gain(**SETTINGS, group_count=2**51 + 1)
    with pytest.raises(br.ArgumentError, match="n_siblings must leave at most 16777216 releases"):
        questions.gain(**(SETTINGS | {"n_siblings": 10**9}), group_count=10)


def test_the_largest_counts_are_answered():
    largest = 2**52
    assert float(br.block_risk(largest, rho=0.1, prior=0.5).posterior) == 1.0
    # From a noisy count that fits the k others, the same as with none.
    for fewer in (0, 1):
        k = largest - fewer
        ratio = br.risk_ratio(k, rho=0.1, prior=0.5, known_count=k)
        assert ratio == br.risk_ratio(0, rho=0.1, prior=0.5)
    law = br.distributions.FiniteLaw(largest, [0.25, 0.75])
    assert law.mean() - largest == pytest.approx(0.75, abs=0.5)  # a double has no more digits
    np.testing.assert_array_equal(law.cdf([largest - 1, largest, largest + 1]), [0.0, 0.25, 1.0])
    assert law.ppf(0.25) == largest
