"""What noise promises, tested from outside: nobody can tell too well whether a record is there.

Of two data sets that differ by a record of each place, one release of many places is as many tests
of the presence of one record.  The threshold is chosen on half of the places; on the other half
Clopper-Pearson bounds of both errors, a false alarm f and a miss m, give a lower bound on epsilon,

    epsilon >= log((1 - delta - m) / f)  and  epsilon >= log((1 - delta - f) / m).
"""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from bayesrisk.accounting import rho_to_epsilon
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.tables import Attribute, Geography, Records, Schema, Table, Workload

PLACES = 9500
SCHEMA = Schema(
    "people", (Attribute("sex", 2), Attribute("race", 3)), Geography("towns", ("block",), (4,))
)
WORKLOAD = Workload(
    SCHEMA,
    {
        ("block", "S"): Table("S", ("m", "f"), {"sex": np.eye(2, dtype=int)}),
        ("block", "R"): Table("R", ("a", "b", "c"), {"race": np.eye(3, dtype=int)}),
    },
)
SHARES = {
    "sensitivity": "add-remove", "level_shares": {"block": 1},
    "table_shares": {"S": "1/3", "R": "2/3"},
}  # fmt: skip


def population(people):
    """Return as many places, each with these people (sex, race)."""
    sex, race = zip(*people, strict=True)
    codes = [f"{i:04d}" for i in range(PLACES)]
    return Records.from_frame(
        pd.DataFrame(
            {
                "sex": np.tile(sex, PLACES),
                "race": np.tile(race, PLACES),
                "block": np.repeat(codes, len(people)),
            }
        ),
        schema=SCHEMA,
    )


OTHERS = [(0, 0), (1, 2)]
WITH, WITHOUT = population([*OTHERS, (1, 1)]), population(OTHERS)


def scores(mechanism, told, seed):
    """Return the log likelihood ratio of presence in every place, with and without the record."""
    rng = np.random.default_rng(seed)
    found = []
    for data in (WITH, WITHOUT):
        release = mechanism.release(
            data, workload=WORKLOAD, rng=int(rng.integers(2**62)), places=WITH.geoids
        )
        total = np.zeros(PLACES)
        for (_, name), counts in release.tables.counts.items():
            law = told.spec.law("block", name)
            cell = 1  # of both tables the record has the second
            rest = sum(person[0 if name == "S" else 1] == cell for person in OTHERS)
            noisy = counts.toarray()[:, cell]
            total += law.logpmf(noisy - rest - 1) - law.logpmf(noisy - rest)
        found.append(total)
    return found


def errors_at(there, absent, threshold, alpha):
    """Return upper bounds of false alarm and miss where presence is claimed above a threshold."""
    alarms, misses = int((absent > threshold).sum()), int((there <= threshold).sum())
    return tuple(
        1.0 if k == n else beta.ppf(1.0 - alpha / 2.0, k + 1, n - k)
        for k, n in ((alarms, absent.size), (misses, there.size))
    )


def bound(f, m, delta):
    parts = [(1.0 - delta - m, f), (1.0 - delta - f, m)]
    return max((float(np.log(a / b)) for a, b in parts if a > 0.0), default=0.0)


def lower_bound(there, absent, delta, alpha=1e-3):
    """Return a bound that is too large with probability alpha at most."""
    half = PLACES // 2
    best, threshold = -np.inf, 0.0
    for one in np.quantile(np.r_[there[:half], absent[:half]], np.linspace(0.002, 0.998, 80)):
        here = bound(*errors_at(there[:half], absent[:half], one, alpha), delta)
        if here > best:
            best, threshold = here, one
    return max(bound(*errors_at(there[half:], absent[half:], threshold, alpha), delta), 0.0)


#: Name, parameters, those of a mechanism with half the noise, epsilon and delta of the first.
MECHANISMS = {
    "discrete-laplace": ({"epsilon": 1}, {"epsilon": 2}, 1.0, 0.0),
    "discrete-gaussian": ({"rho": "1/2"}, {"rho": 2}, float(rho_to_epsilon(0.5, 0.01)), 0.01),
}


def bounds(name, broken, seeds):
    stated, halved, _, delta = MECHANISMS[name]
    told = make_mechanism(name, **stated, **SHARES)
    mechanism = make_mechanism(name, **halved, **SHARES) if broken else told
    return np.array([lower_bound(*scores(mechanism, told, seed), delta) for seed in seeds])


@pytest.mark.parametrize("name", MECHANISMS)
def test_presence_is_never_told_better_than_promised(name):
    epsilon = MECHANISMS[name][2]
    found = bounds(name, False, range(6))
    # Each of 6 is too large with probability 1/1000 at most: more than one in 66,000 runs.
    assert (found > epsilon).sum() <= 1
    assert np.median(found) > 0.4 * epsilon  # and the test is not blind


@pytest.mark.parametrize("name", MECHANISMS)
def test_half_the_noise_is_found_out(name):
    """Negative control."""
    assert (bounds(name, True, range(3)) > MECHANISMS[name][2]).all()


def test_an_overlap_that_is_understated_is_found_out():
    """Both tables with the whole budget: twice epsilon is spent, whatever each law says."""
    told = make_mechanism("discrete-laplace", epsilon=1, **SHARES)
    budgets = {"block": {"S": 1, "R": 1}}
    broken = make_mechanism("discrete-laplace", budgets=budgets, sensitivity="add-remove")
    found = [lower_bound(*scores(broken, told, seed), 0.0) for seed in range(2)]
    assert min(found) > 1.0


def test_bounds_by_hand():
    assert bound(0.01, 0.5, 0.0) == pytest.approx(np.log(50))
    assert bound(0.5, 0.01, 0.0) == pytest.approx(np.log(50))
    assert bound(1.0, 1.0, 0.0) == 0.0
    f, m = errors_at(np.ones(10), np.zeros(10), 0.5, 0.05)
    assert f == m == pytest.approx(1.0 - 0.025 ** (1 / 10))
