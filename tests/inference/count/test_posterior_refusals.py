"""What functions of one or several counts refuse: the error names the argument and its value."""

import math

import pytest
from refusals import NOT_COUNTS, NOT_POSITIVE, NOT_PRIORS, refuses

import bayesrisk as br
from bayesrisk import ArgumentError, DiscreteGaussian, Noise, inference
from bayesrisk.exceptions import ArgumentTypeError, ShapeError

ONE = {"rho": 0.1, "prior": 0.5}
#: Each function with usual arguments.
FUNCTIONS = {
    "decision_threshold": (inference.decision_threshold, ONE),
    "bayes_decision": (br.inference.bayes_decision, {"noisy_count": 1, **ONE}),
    "posterior_probability": (br.posterior_probability, {"noisy_count": 1, **ONE}),
    "risk_ratio": (br.risk_ratio, {"noisy_count": 1, **ONE}),
    "multilevel_posterior": (
        inference.multilevel_posterior,
        {"noisy_counts": [1, 2], "noise": Noise(rho=0.1), "prior": 0.5},
    ),
    "count_posterior": (
        br.count_posterior,
        {"noisy_count": 1, "noise": DiscreteGaussian(1.0), "prior_pmf": [0.5, 0.5]},
    ),
    "postprocessed_posterior": (
        inference.postprocessed_posterior,
        {"released": 1, "group_count": 3, "n_siblings": 2, "noise": Noise(rho=0.1), "prior": 0.5},
    ),
    "postprocess": (inference.postprocess, {"block": 0, "siblings": 0, "group_count": 1}),
}
NEGATIVE = [*NOT_COUNTS, -1]
NOT_ARGUMENTS = {
    **dict.fromkeys(("noisy_count", "noisy_counts", "block", "siblings"), NOT_COUNTS),
    **dict.fromkeys(("rho", "sigma2", "sensitivity"), NOT_POSITIVE),
    **dict.fromkeys(("known_count", "released", "group_count", "n_siblings"), NEGATIVE),
    "prior": NOT_PRIORS,
}
WITH_NOISE = [name for name, (_, usual) in FUNCTIONS.items() if "rho" in usual]


def ask(name, **given):
    function, usual = FUNCTIONS[name]
    if "sigma2" in given:
        usual = {argument: value for argument, value in usual.items() if argument != "rho"}
    return function(**usual | given)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bad_values_are_named(name):
    arguments = {*FUNCTIONS[name][1], "known_count"}
    arguments |= {"sigma2", "sensitivity"} if name in WITH_NOISE else set()
    arguments -= {"known_count"} if name == "postprocess" else set()
    for argument in arguments & NOT_ARGUMENTS.keys():
        for bad in NOT_ARGUMENTS[argument]:
            assert refuses(lambda v, a=argument: ask(name, **{a: v}), argument, bad)
    if name == "postprocessed_posterior":
        for argument in ("group_count", "n_siblings"):
            assert refuses(lambda v, a=argument: ask(name, **{a: v}), argument, 0)


@pytest.mark.parametrize("name", WITH_NOISE)
def test_noise_is_given_exactly_once(name):
    for noise in ({"rho": None}, {"rho": 0.1, "sigma2": 5.0}):
        with pytest.raises(ArgumentError, match="exactly one of rho and sigma2"):
            ask(name, **noise)
    with pytest.raises(ArgumentError, match=r"sensitivity belongs with rho.* got 2"):
        ask(name, sigma2=5.0, sensitivity=2)
    with pytest.raises(ShapeError, match="do not broadcast"):
        ask(name, rho=[0.1, 0.2, 0.3], prior=[0.1, 0.2])


LEVELS, GENERAL, AFTER = "multilevel_posterior", "count_posterior", "postprocessed_posterior"
THREE = [0.1, 0.2, 0.3]
NO_LAWS = [0.5, 0.6], [0.5], [1.5, -0.5], [math.nan, 1], [], 1.0, "ab", None, [[1.0], [0.5]]


@pytest.mark.parametrize(
    ("name", "given", "error", "match"),
    [
        ("risk_ratio", {"noisy_count": [[1, 2], [3, 4]], "prior": THREE}, ShapeError, "broadcast"),
        (LEVELS, {"noisy_counts": 1}, ShapeError, "noisy_counts must have an axis of levels"),
        (LEVELS, {"noise": Noise(rho=THREE)}, ShapeError, "broadcast"),
        (LEVELS, {"noisy_counts": [[1, 2], [3, 4]], "prior": THREE}, ShapeError, "broadcast"),
        (GENERAL, {"noisy_count": [1, 2], "prior_pmf": [[1.0]] * 3}, ShapeError, "broadcast"),
        (GENERAL, {"noisy_count": [1, 2], "noise": DiscreteGaussian(THREE)}, ShapeError, "not"),
        (AFTER, {"released": [1, 2], "prior": THREE}, ShapeError, "broadcast"),
        (AFTER, {"released": 4}, ArgumentError, "released must be <= group_count, got 4"),
        (AFTER, {"known_count": 3}, ArgumentError, "known_count must be < group_count, 3, got 3"),
        (AFTER, {"sibling_noise": "none"}, ArgumentError, "sibling_noise must be one of"),
        (AFTER, {"n_siblings": 10**6, "noise": Noise(rho=0.3), "sibling_noise": "exact"},
         ArgumentError, "n_siblings must be small enough"),
        *((GENERAL, {"noise": bad}, ArgumentTypeError, "noise must") for bad in (None, 3, "law")),
        *((GENERAL, {"prior_pmf": bad}, ArgumentError, "prior_pmf must") for bad in NO_LAWS),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(name, given, error, match):
    with pytest.raises(error, match=match):
        ask(name, **given)
