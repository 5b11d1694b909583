"""Functions of one count, of post-processing and of two levels ask the objects they point to."""

from dataclasses import fields, replace

import numpy as np
import pytest

import bayesrisk as br
from bayesrisk import ArgumentError, Noise, inference, risk
from bayesrisk.inference.count.posterior import CountArguments
from bayesrisk.inference.count.postprocessed import PostprocessedArguments
from bayesrisk.inference.two_levels.posterior import TwoLevelArguments

ONE = {"rho": [0.1, 0.7], "prior": [[0.3], [0.02]], "known_count": 2, "sensitivity": 2**0.5}
GROUP = {"group_count": [4, 9], "n_siblings": 3, "noise": Noise(rho=0.4), "prior": 0.3}
BOTH = {"n_siblings": 3, "rho_block": 0.4, "rho_group": [0.2, 0.9], "prior": 0.3}


@pytest.mark.parametrize(
    ("question", "arguments"),
    [
        (inference.NoisyCount, CountArguments),
        (risk.CountRisk, CountArguments),
        (inference.PostprocessedCount, PostprocessedArguments),
        (risk.PostprocessingRisk, PostprocessedArguments),
        (br.TwoLevels, TwoLevelArguments),
    ],
)
def test_arguments_of_a_function_are_those_of_its_question(question, arguments):
    named = {f.name: f for f in fields(question) if f.init}
    assert list(arguments.__annotations__) == list(named)
    needed = {name for name, f in named.items() if f.default is f.default_factory}
    required = {name for name, kind in arguments.__annotations__.items() if "Required" in str(kind)}
    assert required == needed


@pytest.mark.parametrize(
    ("function", "question", "method", "arguments"),
    [
        (br.posterior_probability, inference.NoisyCount, "posterior", ([[[3]], [[-1]]],)),
        (br.risk_ratio, inference.NoisyCount, "risk_ratio", (3,)),
        (br.inference.bayes_decision, inference.NoisyCount, "decision", (3,)),
        (inference.decision_threshold, inference.NoisyCount, "decision_threshold", ()),
        (br.marginal_risk, risk.CountRisk, "marginal_risk", ()),
        (br.marginal_posterior, risk.CountRisk, "marginal_posterior", ()),
        (br.correct_decision_probability, risk.CountRisk, "correct_decision", ()),
        (br.risk.decision_accuracy, risk.CountRisk, "accuracy", ()),
        (br.block_risk, risk.CountRisk, "summary", ([[[3]], [[-1]]],)),
        (inference.postprocessed_posterior, inference.PostprocessedCount, "posterior", (2,)),
        (risk.compare_postprocessing, risk.PostprocessingRisk, "compare", ()),
        (br.hierarchical_posterior, br.TwoLevels, "posterior", (2, 1, -1)),
    ],
)
def test_a_function_answers_as_its_question_does(function, question, method, arguments):
    about = {"posterior": ONE, "compare": GROUP}.get(method, ONE)
    about = {inference.PostprocessedCount: GROUP, br.TwoLevels: BOTH}.get(question, about)
    found, wanted = function(*arguments, **about), getattr(question(**about), method)(*arguments)
    if hasattr(found, "to_frame"):
        assert found.to_frame().equals(wanted.to_frame())
    elif hasattr(found, "posterior"):
        np.testing.assert_array_equal(found.posterior, wanted.posterior)
    else:
        np.testing.assert_array_equal(found, wanted)
        assert np.shape(found) in {(2, 2), (2, 2, 2)}


@pytest.mark.parametrize("kind", [inference.NoisyCount, risk.CountRisk])
def test_what_is_stated_does_not_change_with_its_array(kind):
    prior = np.array([0.2, 0.5])
    question = kind(rho=0.3, prior=prior)
    before = question.posterior(3)
    prior[:] = 7.0
    np.testing.assert_array_equal(question.posterior(3), before)
    with pytest.raises(ArgumentError, match=r"prior must be .*got 7"):
        replace(question, prior=prior)


def test_a_question_of_an_adversary_holds_no_average():
    assert not hasattr(inference.NoisyCount, "marginal_risk")
    assert issubclass(risk.CountRisk, inference.NoisyCount)
    assert risk.CountRisk(rho=0.3, prior=0.2).risk_ratio(3) == br.risk_ratio(3, rho=0.3, prior=0.2)
