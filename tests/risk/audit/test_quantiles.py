"""A quantile of what is learned from own records: by hand, and how often its interval covers."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

from bayesrisk.risk.audit import audit_quantiles
from bayesrisk.risk.audit.summary import _quantile


def targets(ratio, places, status="calculated"):
    return pd.DataFrame(
        {
            "protection": "p", "attack": "likelihood", "adversary": "outsider", "status": status,
            "place": [str(p) for p in places], "truth_without": 0.125,
            "truth_posterior": 0.125 * np.asarray(ratio, float),
        }
    )  # fmt: skip


@pytest.mark.parametrize(("number", "share"), [(60, 0.5), (150, 0.9), (400, 0.99), (30, 0.9)])
def test_of_independent_targets_the_ends_are_those_of_order_statistics(number, share):
    """The ranks by scipy's binomial law: each end is missed with at most 2.5 %."""
    values = np.arange(1.0, number + 1)
    one = audit_quantiles(targets(values, range(number)), quantile=share).iloc[0]
    ranks = np.arange(1, number + 1)
    low = ranks[binom.cdf(ranks - 1, number, share) <= 0.025]
    high = ranks[binom.sf(ranks - 1, number, share) <= 0.025]
    assert one["ratio"] == np.ceil(share * number)
    assert one["lower"] == (low[-1] if low.size else 0.0)
    assert one["upper"] == (high[0] if high.size else np.inf)


def test_targets_of_one_place_count_as_fewer():
    values, apart = np.arange(200.0), np.arange(200)
    alone, together = (
        audit_quantiles(targets(values, places), quantile=0.5).iloc[0]
        for places in (apart, apart // 10)
    )
    assert alone["ratio"] == together["ratio"]
    assert together["lower"] < alone["lower"] < alone["upper"] < together["upper"]
    single = audit_quantiles(targets(values, apart * 0), quantile=0.5).iloc[0]
    assert (single["lower"], single["upper"]) == (0.0, np.inf)


def covered(rng, share, places, size, alike, runs):
    """Return how often the interval has the quantile, and how often as if all were independent."""
    truth, found = norm.ppf(share) + 10.0, np.zeros(2)
    of = np.repeat(np.arange(places), size)
    for _ in range(runs):
        place = np.repeat(rng.normal(size=places), size)
        ratio = 10.0 + np.sqrt(alike) * place + np.sqrt(1 - alike) * rng.normal(size=of.size)
        for i, units in enumerate((of, np.arange(of.size))):
            _, low, high = _quantile(ratio, np.zeros(of.size, bool), units, share, 0.05)
            found[i] += low <= truth <= high
    return found / runs


def test_the_interval_covers_with_places_as_units():
    rng = np.random.default_rng(7)
    for share, places in ((0.5, 40), (0.9, 60)):
        places_, people = covered(rng, share, places, 6, 0.9, 400)
        # 95 %, less 4 standard errors, and 2 points for a design effect that is estimated.
        assert places_ > 0.93 - 4 * np.sqrt(0.05 * 0.95 / 400)
        assert people < 0.85  # negative control


def test_infinite_and_missing_ratios():
    frame = targets([1.0, 2.0, 3.0, 4.0], range(4))
    frame.loc[3, "truth_without"] = 0.0
    one = audit_quantiles(frame, quantile=0.9).iloc[0]
    assert (one["ratio"], one["upper"], one["undecided"]) == (np.inf, np.inf, 0)
    frame.loc[3, "truth_posterior"] = 0.0  # 0 over 0 is no ratio
    one = audit_quantiles(frame, quantile=0.9).iloc[0]
    assert (one["ratio"], one["undecided"]) == (3.0, 1)
    none = audit_quantiles(frame.assign(status="undecided")).iloc[0]
    assert np.isnan(none["ratio"])
    assert (none["targets"], none["undecided"]) == (4, 4)
