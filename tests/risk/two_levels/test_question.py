"""The question as an object: checked once, frozen, and asked in several ways."""

import dataclasses

import numpy as np
import pytest

from bayesrisk import ArgumentError, TwoLevels, hierarchical_posterior
from bayesrisk.exceptions import IncompatibleConditionalsWarning, ShapeError

GRANVILLE = {"n_siblings": 27, "rho_block": 0.0992264, "rho_group": 0.2464845, "prior": 0.5}


def test_the_posterior_is_that_of_the_function():
    one = TwoLevels(**GRANVILLE).posterior([2, 0], 1, -1)
    other = hierarchical_posterior([2, 0], 1, -1, **GRANVILLE)
    assert one.target_probability.tolist() == other.target_probability.tolist()
    assert one.belief.ratio.tolist() == other.risk_ratio.tolist()


def test_settings_are_checked_and_kept():
    source = np.array([0.1, 0.2])
    question = TwoLevels(**(GRANVILLE | {"prior": source}))
    source[0] = 0.9
    assert question.prior.tolist() == [0.1, 0.2]
    assert type(question.rho_block) is float
    assert type(question.n_siblings) is int
    with pytest.raises(dataclasses.FrozenInstanceError):
        question.prior = 0.5
    assert dataclasses.replace(question, prior=0.5).prior == 0.5
    with pytest.raises(ArgumentError, match="prior must"):
        TwoLevels(**(GRANVILLE | {"prior": 1.5}))
    with pytest.raises(ShapeError, match="do not broadcast"):
        TwoLevels(**(GRANVILLE | {"prior": [0.1, 0.2], "rho_group": [0.1, 0.2, 0.3]}))


def test_published_conditionals_warn_at_every_question():
    question = TwoLevels(**GRANVILLE, conditionals="as-published")
    for ask in (lambda: question.posterior(2, 1, -1), lambda: question.gain(1)):
        with pytest.warns(IncompatibleConditionalsWarning) as seen:
            ask()
        assert [warning.filename for warning in seen] == [__file__]
