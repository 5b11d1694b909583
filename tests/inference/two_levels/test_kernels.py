"""Compiled evidence against 40-digit sums over the whole range of budgets, and as plain Python."""

import numba
import numpy as np
import pytest
from mpmath import mp, mpf

from bayesrisk.distributions.kernels import REACH
from bayesrisk.inference.two_levels import _kernels as kernels


def evidence(n, total, b, c):
    """Return log A_1 - log A_0 by summing s = 0, 1, ... with 40 digits."""
    with mp.workdps(40):
        n, total, b, c = map(mpf, (n, total, b, c))
        sums = []
        for i in (0, 1):
            centre = (b * (n - i) + c * total) / (b + c)
            reach = mp.sqrt(90 / (b + c)) + 2
            first = max(0, int(mp.floor(centre - reach)))
            last = max(0, int(mp.ceil(centre))) + int(reach) + 1
            terms = (
                mp.exp(-b * (n - i - s) ** 2 - c * (total - s) ** 2) for s in range(first, last + 1)
            )
            sums.append(mp.fsum(terms))
        return mp.log(sums[1] / sums[0])


def cases(count, low, high, spread):
    rng = np.random.default_rng(11)
    for _ in range(count):
        b, c = 10.0 ** rng.uniform(low, high, 2)
        s = int(rng.integers(0, 60) * rng.choice([0.1, 1, 30]))
        n = int(np.rint(s + rng.normal() * spread / np.sqrt(2 * b)))
        total = int(np.rint(s + rng.normal() * spread / np.sqrt(2 * c)))
        yield n, total, b, c


@pytest.mark.parametrize(("low", "high"), [(-3, 0), (-1.5, 2.5)])
@pytest.mark.parametrize("spread", [1.0, 4.0])
def test_evidence(low, high, spread):
    for n, total, b, c in cases(120, low, high, spread):
        expected = float(evidence(n, total, b, c))
        value = kernels.group_evidence(float(n), float(total), b, c)
        scale = 1.0 + abs(expected) + max(b, c) * abs(n - total)
        assert abs(value - expected) < 2e-14 * scale, (n, total, b, c)


@pytest.mark.parametrize("b", [1e-4, 2.4e-3, 2.6e-3, 0.119, 0.121])
@pytest.mark.parametrize("n", [-300, -40, -3, 0, 2, 11, 60, 400])
def test_evidence_on_both_sides_of_every_switch(b, n):
    for total in (-200, -20, 0, 7, 90, 300):
        expected = float(evidence(n, total, b, b))
        value = kernels.group_evidence(float(n), float(total), b, b)
        assert abs(value - expected) < 2e-14 * (1.0 + abs(expected) + b * abs(n - total))


def test_evidence_without_a_release():
    assert kernels.group_evidence(3.0, 5.0, 0.0, 0.4) == 0.0
    assert kernels.group_evidence(3.0, 5.0, 0.0, 0.0) == 0.0
    assert kernels.group_evidence(0.0, 5.0, 0.3, 0.0) == pytest.approx(
        float(evidence(0, 0, 0.3, mpf("1e-60"))), rel=1e-14
    )


def test_the_table_kernel_agrees_with_the_closed_one():
    rng = np.random.default_rng(4)
    n, total = (rng.integers(-9, 30, 50).astype(float) for _ in range(2))
    b, c = (10.0 ** rng.uniform(-3, 1, 50) for _ in range(2))
    out, work = np.empty(50), np.empty((6, 2000))
    releases = kernels.Releases(n, total, b, c, np.zeros(50, np.int64))
    args = (releases, kernels.Laws(np.zeros(1), np.empty(0), REACH), work)
    kernels.table_evidence(*args, out)
    np.testing.assert_allclose(out, kernels.group_evidence(n, total, b, c), rtol=1e-11, atol=1e-11)
    plain = np.empty(50)
    kernels.table_evidence.py_func(*args, plain)
    np.testing.assert_allclose(plain, out, rtol=1e-13, atol=1e-13)


def test_plain_python_gives_the_same():
    # The functions behind the compiled ones, one after the other.
    assert kernels._erfcx(2.0) == pytest.approx(0.2553956763105057, rel=1e-14)
    for z in (5.0, 5.5, 9.0, 80.0, 1e6):
        with mp.workdps(40):
            exact = mp.exp(mpf(z) ** 2) * mp.erfc(mpf(z))
        assert kernels._erfcx(z) == pytest.approx(float(exact), rel=3e-15)
    for arguments in [(0.3, 5.0, 0.4), (-0.5, 0.0, 2.0), (7.0, 0.0, 0.01)]:
        assert kernels._term_by_term(*arguments) == numba.njit(kernels._term_by_term)(*arguments)
    assert kernels._from_edge(-3.0, 1e-3) == pytest.approx(
        numba.njit(kernels._from_edge)(-3.0, 1e-3), rel=1e-14
    )


def test_published_kernels_as_plain_python_and_in_the_deep_tails(monkeypatch):
    flat, none = np.zeros(1), np.empty(0)
    rows = [
        (2.0, 1.0, -1.0, 0.25, 0.0037),
        (900.0, 4.0, 9.0, 0.3, 0.01),
        (-900.0, 4.0, 9.0, 0.3, 0.01),
        (0.0, 1.0, 40.0, 300.0, 290.0),
        (1.0, -30.0, 700.0, 8.0, 5.0),
        (0.3, 0.0, 0.0, 0.0, 0.0),
    ]
    odds, n, total, b, c = (np.array(column) for column in zip(*rows, strict=True))
    start, work = np.zeros(len(rows), np.int64), np.empty((6, 400))
    out, plain = np.empty(len(rows)), np.empty(len(rows))
    args = (odds, kernels.Releases(n, total, b, c, start), kernels.Laws(flat, none, REACH), work)
    kernels.published_log_odds(*args, out)
    for name in ("_prepare", "_stationary_log_odds"):  # exp(900) is an error in plain Python
        compiled = numba.njit(getattr(kernels, name), error_model="numpy")
        monkeypatch.setattr(kernels, name, compiled)
    with np.errstate(all="ignore"):
        kernels.published_log_odds.py_func(*args, plain)
    assert np.isfinite(out).all()
    np.testing.assert_allclose(plain, out, rtol=1e-12)
    assert out[1] > 500.0
    assert out[2] < -500.0
    assert out[5] == 0.3


@pytest.mark.parametrize(("logit", "a"), [(0.0, 0.1), (-3.0, 0.02), (4.0, 1.5), (-200.0, 0.3)])
def test_published_thresholds_are_where_the_odds_change_sign(logit, a):
    rng = np.random.default_rng(5)
    n, total = (rng.integers(-9, 30, 40).astype(float) for _ in range(2))
    b, c = np.full(40, 0.3), np.full(40, a / 5)
    releases = kernels.Releases(n, total, b, c, np.zeros(40, np.int64))
    common = (releases, kernels.Laws(np.zeros(1), np.empty(0), REACH))
    out, work = np.empty(40), np.empty((6, 400))
    kernels.published_thresholds(logit, a, *common, work, out)
    odds = np.empty(40)
    for d, sign in ((out, 1.0), (out - 1.0, -1.0)):
        kernels.published_log_odds(logit + a * (2.0 * d - 1.0), *common, work, odds)
        assert (sign * odds > -1e-9).all()
    plain = np.empty(40)
    kernels.published_thresholds.py_func(logit, a, *common, work, plain)
    np.testing.assert_array_equal(plain, out)
