"""Calls of public functions with other names of arguments say what to write."""

import inspect
import sys

import pandas as pd
import pytest

import bayesrisk as br
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError

ASKED = {"key": "sex", "secret": "ill"}
FRAME = pd.DataFrame({"sex": ["F", "M"] * 10, "ill": ["no"] * 17 + ["yes"] * 3})
WRONG = [
    (lambda: br.marginal_risk(epsilon=1, prior=0.1), ["epsilon", "1", "rho=", "epsilon_to_rho(1,"]),
    (lambda: br.marginal_risk(eps=1, prior=0.1), ["eps", "epsilon_to_rho"]),
    (lambda: br.marginal_risk(sigma=3, prior=0.1), ["sigma", "3", "sigma2=sigma**2"]),
    (lambda: br.marginal_risk(rho=0.1, priors=0.1), ["priors", "0.1", "'prior'"]),
    (lambda: br.marginal_risk(0.1, 0.1), ["marginal_risk", "2", "rho=..., prior=..."]),
    (lambda: br.marginal_risk(rho=0.1), ["marginal_risk", "prior=..."]),
    (lambda: br.risk_curve(epsilon=1, prior=0.1), ["epsilon", "epsilon_to_rho"]),
    (lambda: br.risk_curve([0.1, 1.0]), ["risk_curve", "prior=..."]),
    (lambda: br.rho_for_risk(risk=0.5, prior=0.1), ["risk", "0.5", "limit=..."]),
    (lambda: br.rho_to_epsilon(rho=0.1), ["rho_to_epsilon", "delta=..."]),
    (lambda: br.DiscreteGaussian(sigma=2), ["DiscreteGaussian", "sigma2=sigma**2"]),
    (lambda: br.DiscreteGaussian(rho=0.1), ["rho", "sigma2_from_rho(0.1)"]),
    (lambda: br.Noise(epsilon=1), ["Noise", "rho=", "epsilon_to_rho"]),
    (lambda: br.Rounding(bse=5), ["bse", "5", "'base'"]),
    (lambda: br.Rounding(5), ["Rounding", "base=..."]),
    (lambda: br.Swapping(percent=5), ["percent", "5", "rate=0.05"]),
    (lambda: br.audit(FRAME, keys="sex", secret="ill", protections="none"), ["key", "keys"]),
    (
        lambda: br.audit(FRAME, key="sex", sensitive="ill", protections="none"),
        ["secret", "sensitive"],
    ),
    (lambda: br.audit(FRAME, **ASKED, protection="none"), ["protections", "protection"]),
    (lambda: br.audit(FRAME, **ASKED, protections="noise"), ["'discrete-gaussian'"]),
    (
        lambda: br.audit(FRAME, **ASKED, protections="discrete-gaussian:epsilon=1"),
        ["`bayesrisk convert --epsilon 1 --delta 1e-10`", "write discrete-gaussian:rho=RHO"],
    ),
    (lambda: br.release(FRAME, mechanism="none"), ["mechanism", "protection=..."]),
    (lambda: br.release(FRAME, protection="none", places="ill"), ["places", "place="]),
    (lambda: br.plan(FRAME, limit="gain=5"), ["plan", "limits", "limit"]),
    (lambda: br.attack(), ["attack", "tables=..."]),
    (lambda: br.attack(FRAME, timelimit=5), ["timelimit", "5", "'time_limit'"]),
    (lambda: br.count_bounds(FRAME), ["tables", "DataFrame", "tabulate", "PublishedTables.read"]),
    (lambda: br.tabulate(FRAME), ["tabulate", "workload=..."]),
    (lambda: br.Workload.of(FRAME, ["sex"]), ["schema", "20 x 2", "Schema.from_frame"]),
    (lambda: br.Records.from_frame(FRAME, scheme=3), ["scheme", "3", "'schema'"]),
    (lambda: br.diagnose([1, 2]), ["samples", "[1, 2]", "sample_tree"]),
    (lambda: br.run(folder="x"), ["run", "study=..."]),
]  # fmt: skip


@pytest.mark.parametrize(("call", "words"), WRONG)
def test_wrong_calls_say_what_to_write(call, words):
    with pytest.raises(ArgumentError) as refused:
        call()
    text = str(refused.value)
    assert [word for word in words if word not in text] == []
    assert "\n" not in text


def test_errors_from_within_a_call_stay_as_they_are():
    with pytest.raises(ArgumentTypeError, match="rho must be a number"):
        br.marginal_risk(rho="a", prior=0.1)

    def fails(*_):
        raise TypeError("of somebody else")

    frame = pd.DataFrame({"sex": ["F", "Total"], "count": ["*", "7"]})
    with pytest.raises(TypeError, match=r"^of somebody else$"):
        br.attack(frame, accept=True, progress=fails)


def test_a_public_function_is_one_object_with_its_signature():
    home = sys.modules[br.marginal_risk.__module__]  # where pickle looks for it
    assert home.marginal_risk is br.marginal_risk
    assert br.risk.marginal_risk is br.marginal_risk
    assert br.reconstruction.count_bounds is br.count_bounds
    assert [*inspect.signature(br.Rounding).parameters] == ["base", "method"]
    assert "prior" in inspect.signature(br.marginal_risk).parameters
