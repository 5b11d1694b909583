"""Beliefs and estimates: what they hold, refuse and say."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bayesrisk import ArgumentError, Belief, Estimate
from bayesrisk.exceptions import ArgumentTypeError, ShapeError

SHARES = st.floats(0.0, 1.0)


@given(st.floats(1e-300, 1.0), SHARES)
def test_the_ratio_is_posterior_over_prior(prior, posterior):
    belief = Belief(prior, posterior)
    assert belief.ratio == posterior / prior
    assert type(belief.ratio) is type(belief.posterior) is float
    assert belief.log_ratio == (math.log(belief.ratio) if belief.ratio else -math.inf)


def test_beliefs_broadcast():
    belief = Belief([0.1, 0.5], [[0.2], [1.0], [0.0]])
    assert belief.prior.shape == belief.posterior.shape == (3, 2)
    assert belief.ratio.tolist() == [[2.0, 0.4], [10.0, 2.0], [0.0, 0.0]]
    frame = belief.to_frame()
    assert list(frame) == ["prior", "posterior", "ratio"]
    assert frame["ratio"].tolist() == belief.ratio.ravel().tolist()


def test_a_belief_cannot_be_changed():
    source = np.array([0.1, 0.2])
    belief = Belief(source, 0.5)
    source[0] = 0.9
    assert belief.prior.tolist() == [0.1, 0.2]
    with pytest.raises(ValueError, match="read-only"):
        belief.prior[0] = 0.3
    with pytest.raises(dataclasses.FrozenInstanceError):
        belief.prior = 0.3


def test_what_was_held_impossible_has_no_ratio():
    belief = Belief([0.0, 0.0, 0.5], [0.0, 0.5, 0.0])
    assert np.isnan(belief.ratio[:2]).all()
    assert belief.ratio[2] == 0.0
    assert np.isnan(belief.log_ratio[:2]).all()
    assert belief.log_ratio[2] == -np.inf
    assert repr(Belief(0.0, 0.5)).endswith("(unknown times as probable)")


def test_a_belief_says_its_answer():
    assert repr(Belief(0.5, 0.62)) == (
        "Belief: 0.5 before the release, 0.62 after it (1.24 times as probable)"
    )
    assert repr(Belief(0.1, [0.05, 0.2])) == (
        "Belief of shape (2,): 0.1 before the release, 0.05 to 0.2 after it "
        "(0.5 to 2 times as probable)"
    )
    page = Belief(0.1, np.linspace(0.1, 0.9, 25))._repr_html_()
    assert page.count("<tr") == 9
    assert "and 17 more" in page


@pytest.mark.parametrize("name", ["prior", "posterior"])
@pytest.mark.parametrize("bad", [-0.1, math.nan, "half", [0.5, 2.0]])
def test_beliefs_are_probabilities(name, bad):
    with pytest.raises(ArgumentError, match=f"{name} must"):
        Belief(**({"prior": 0.5, "posterior": 0.5} | {name: bad}))


def test_beliefs_of_other_shapes_are_refused():
    with pytest.raises(ShapeError, match="do not broadcast"):
        Belief([0.1, 0.2], [0.1, 0.2, 0.3])


def test_an_estimate_formats_itself():
    share = Estimate(0.62, 0.02, 0.58, 0.66, confidence=0.95, method="monte-carlo")
    assert str(share) == f"{share}" == "0.62 (0.58-0.66)"
    assert f"{share:.3f}" == "0.620 (0.580-0.660)"
    assert f"{share:.0%}" == "62% (58%-66%)"
    assert float(share) == 0.62
    assert repr(share) == "Estimate 0.62 (0.58-0.66), confidence 0.95, monte-carlo"
    net = Estimate(-0.1, 0.1, -0.3, 0.1, confidence=0.95, method="monte-carlo")
    assert str(net) == "-0.1 (-0.3 to 0.1)"
    assert str(Estimate(0.25, 0.0, 0.25, 0.25, confidence=0.95, method="exact")) == "0.25"
    two = Estimate([0.5, 0.6], 0.1, [0.3, 0.4], [0.7, 0.8], confidence=0.9, method="draws")
    assert str(two) == "[0.5 (0.3-0.7), 0.6 (0.4-0.8)]"
    assert two.to_frame()["method"].tolist() == ["draws", "draws"]
    assert "of shape (2,)" in two._repr_html_()


def test_the_interval_of_the_normal_law():
    one = Estimate.normal(10.0, 2.0, confidence=0.95, method="monte-carlo")
    assert one.upper == pytest.approx(10.0 + 2.0 * 1.959963984540054, rel=1e-12)
    assert one.lower == pytest.approx(10.0 - 2.0 * 1.959963984540054, rel=1e-12)
    near = Estimate.normal(0.99, 0.1, confidence=0.95, method="draws", limits=(0.0, 1.0))
    assert near.upper == 1.0
    beyond = Estimate.normal(1.0 + 2**-52, 0.1, confidence=0.5, method="draws", limits=(0.0, 1.0))
    assert beyond.upper == beyond.value


def test_the_interval_covers_as_often_as_it_says():
    draws = np.random.default_rng(3).normal(0.0, 1.0, (4000, 25))
    error = draws.std(axis=1, ddof=1) / 5.0
    means = Estimate.normal(draws.mean(axis=1), error, confidence=0.8, method="draws")
    covered = np.mean((means.lower <= 0.0) & (means.upper >= 0.0))
    # Student's law with 24 degrees of freedom lies outside 1.2816 with probability 0.212.
    assert abs(covered - 0.788) < 4.0 * math.sqrt(0.788 * 0.212 / 4000)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"error": -1.0}, ArgumentError, "error must be >= 0"),
        ({"lower": 0.7}, ArgumentError, r"lower must be <= value, got 0\.7 and 0\.6"),
        ({"upper": [0.9, 0.5]}, ArgumentError, r"value must be <= upper, got 0\.6 .* and 0\.5"),
        ({"confidence": 1.0}, ArgumentError, "confidence must be < 1"),
        ({"confidence": [0.5]}, ShapeError, "confidence must be one number"),
        ({"method": ""}, ArgumentTypeError, "method must be a text"),
        ({"value": math.nan}, ArgumentError, "value must be finite"),
        ({"value": [0.6, 0.6], "error": [0.1] * 3}, ShapeError, "do not broadcast"),
    ],
)
def test_bad_estimates(change, error, message):
    good = {"value": 0.6, "error": 0.1, "lower": 0.5, "upper": 0.7}
    with pytest.raises(error, match=message):
        Estimate(**({**good, "confidence": 0.95, "method": "draws"} | change))


@pytest.mark.parametrize("limits", [np.datetime64("2020"), (0.0,), (1.0, 0.0), (np.nan, 1.0)])
def test_limits_are_two_bounds(limits):
    with pytest.raises(ArgumentError, match="limits must be"):
        Estimate.normal(0.5, 0.1, confidence=0.9, method="draws", limits=limits)


def test_an_estimate_stands_for_its_value():
    share = Estimate(0.625, 0.02, 0.58, 0.66, confidence=0.95, method="draws")
    assert (share + 1, 1 - share, abs(-share), round(share, 1)) == (1.625, 0.375, 0.625, 0.6)
    assert share < 0.63
    assert share > np.float64(0.62)
    assert share == 0.625
    assert not isinstance(share - 0.5, Estimate)
    two = Estimate([0.25, 0.5], 0.1, 0.0, 1.0, confidence=0.95, method="draws")
    assert np.log2(two).tolist() == [-2.0, -1.0]
    assert np.asarray(two).tolist() == [0.25, 0.5]
    assert (two - share).tolist() == [-0.375, -0.125]
    assert np.mean([share, 0.375]) == 0.5
    with pytest.raises(ShapeError, match=r"float\(\) needs one estimate, got shape \(2,\)"):
        float(two)


def test_an_estimate_over_its_baseline():
    share = Estimate(0.6, 0.02, 0.5, 0.75, confidence=0.9, method="draws")
    ratio = share.ratio(0.5)
    assert (ratio.value, ratio.error, ratio.lower, ratio.upper) == (1.2, 0.04, 1.0, 1.5)
    assert (ratio.confidence, ratio.method) == (0.9, "draws")
    assert share.columns("x") == {"x": 0.6, "x_error": 0.02, "x_lower": 0.5, "x_upper": 0.75}
    for bad in (0.0, -1.0, math.inf):
        with pytest.raises(ArgumentError, match="baseline must"):
            share.ratio(bad)
