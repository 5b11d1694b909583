"""Tests of released counts against their stated laws, with the truth known."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq, minimize_scalar
from scipy.special import bdtr, bdtrc

from bayesrisk._base.validation import FloatArray
from bayesrisk.release import MechanismSpec, NoiseSpec, Release, RoundingSpec, SuppressedCounts
from bayesrisk.risk.audit.measures import empty_frame
from bayesrisk.tables import PublishedTables

Row = dict[str, Any]
#: A row of :func:`release_differences` is about the counts that have all of these in common.
DIFFERENCES = ["level", "table", "place", "cell", "given", "difference", "possible"]
#: Places of a release whose noise is told apart by place and cell.
PLACES = 256
#: Differences of no release.
NO_DIFFERENCES = empty_frame(
    ["release", *DIFFERENCES, "cells"],
    dict.fromkeys(["release", "cell", "given", "difference", "cells"], "int64")
    | {"level": "str", "table": "str", "place": "str", "possible": "bool"},
)
#: Standard deviations: in nine audits of ten.
USUALLY = 1.2815515655446004
_FARTHEST = 12.0  # logarithm of how many times larger or smaller noise may be than stated


def release_differences(
    release: Release, truth: PublishedTables, *, places: int = PLACES
) -> pd.DataFrame:
    """Return the number of cells for each difference of published and true count.

    Rows are groups of cells that agree in all columns but ``cells``, their number. Columns are
    ``level``, ``table``, ``place`` and ``cell``; the latter two are set for noise in the first
    ``places`` of a level, else empty and -1. ``difference`` is published less true, and
    ``possible`` says whether the stated law allows it. The law of the difference depends on
    ``given``. For rounding that is the remainder of the true count. For the sum of noise over all
    cells of a place, a row with cell -1, it is their number. For other noise it is 0. Withheld
    counts and tables without a law are left out. A released rate of swaps is a row of its own,
    without level. Sums of ``cells`` over parts of a population and over releases, by all other
    columns, are the rows of the whole.
    """
    spec, parts = release.spec, []
    for (level, name), counts in release.tables.counts.items():
        law = spec.likelihood(level, name)
        if not law.exact and law.probability(0, 0) is None:
            continue
        visible = ~release.tables.hidden(level, name).toarray()
        off = counts.toarray() - truth.counts[level, name].toarray()
        out, true = counts.toarray()[visible], truth.counts[level, name].toarray()[visible]
        remainder, possible = np.zeros_like(true), out == true
        if isinstance(law, RoundingSpec):
            remainder, possible = true % law.base, law.probability(out, true) > 0.0
        elif isinstance(law, NoiseSpec):
            possible = np.ones_like(possible)
        elif not law.exact:
            possible = np.asarray(law.probability(out, true), np.float64) > 0.0
        elif isinstance(law, SuppressedCounts):  # small counts are withheld, zeros are not
            possible &= (true == 0) | (true >= int(spec.parameters.get("threshold", 0)))
        part: dict[str, Any] = {"given": remainder, "difference": out - true, "possible": possible}
        part |= {"level": level, "table": name, "place": "", "cell": -1}
        if isinstance(law, NoiseSpec):
            codes = np.asarray(release.tables.geoids[level], dtype=object)
            codes[places:] = ""
            row, cell = np.nonzero(visible)
            part |= {"place": codes[row], "cell": np.where(row < places, cell, -1)}
            whole = np.flatnonzero(visible.all(axis=1))[: places if visible.shape[1] > 1 else 0]
            sums = {"place": codes[whole], "cell": -1, "given": visible.shape[1]}
            sums |= {"difference": off[whole].sum(axis=1), "possible": True}
            parts.append(pd.DataFrame({"level": level, "table": name} | sums))
        parts.append(pd.DataFrame(part))
    every = pd.concat(parts) if parts else pd.DataFrame(columns=DIFFERENCES)
    return every.groupby(DIFFERENCES).size().rename("cells").reset_index()


_Sums = tuple[NoiseSpec, int, float]  # a law, the number of its draws, the mean of their statistic
_Test = tuple[Row, list[float]]  # what is held against a law, and p-values


def law_checks(
    differences: pd.DataFrame, specs: Mapping[str, MechanismSpec], *, alpha: float
) -> Iterator[Row]:
    """Yield, for each protection and table, a check that published counts follow the stated law.

    For noise, the mean of d**2 (Gaussian) or of abs(d) (Laplace), the sufficient statistic of its
    scale, is compared with the stated one. So is the empirical distribution with the law, and for
    random rounding the share of counts rounded up, for every remainder. For noise there are more
    rows: all tables together, each place alone, each cell over its releases, and the sums over
    places. Holm's procedure over all p-values, which are exact or upper bounds, keeps tables to the
    level ``alpha / 2`` for all protections together, and their parts to the same.
    """
    tables: list[_Test] = []
    parts: list[_Test] = []
    for name, mine in differences.groupby("protection", sort=False):
        if name not in specs:
            continue
        first: Row = {"check": "law", "protection": name}
        noisy: list[tuple[NoiseSpec, pd.DataFrame]] = []
        every: list[_Sums] = []
        totals: list[tuple[NoiseSpec, int, pd.DataFrame]] = []
        for (level, table), rows in mine.groupby(["level", "table"], sort=False):
            law = specs[str(name)].likelihood(str(level), str(table))
            line = first | {"against": f"{level} {table}"}
            if isinstance(law, NoiseSpec):
                single = rows[rows["given"] == 0]
                noisy.append((law, single))
                summed = rows.loc[rows["given"] > 0, "given"].unique().tolist()
                totals += [(law, k, rows[rows["given"] == k]) for k in summed]
                sums = _sums(law, single, [])
                every += sums
                tables.append((line | _ratio(sums), [_scale_p(sums), _shape_p(single, law)]))
                continue
            cells = int(rows["cells"].sum())
            wrong = int(rows.loc[~rows["possible"].astype(bool), "cells"].sum())
            line |= {
                "compared": cells, "failed": wrong, "value": wrong / cells, "bound": 0.0,
                "power": 1.0 - 0.1 ** (1.0 / cells), "power_unit": "share of counts that cannot be",
            }  # fmt: skip
            tables.append((line, _rounding_p(rows, law)))
        if len(noisy) > 1:
            tables.append((first | {"against": "all tables"} | _ratio(every), [_scale_p(every)]))
        places = [[one] for law, rows in noisy for one in _sums(law, rows, ["place"])]
        single_cells = [one for law, rows in noisy for one in _sums(law, rows, ["place", "cell"])]
        tests = [_place_test(places), _cell_test(single_cells)] if places else []
        tests += [_total_test(totals)] if totals else []
        parts += [(first | row, p_values) for row, p_values in tests]
    for group in (tables, parts):
        p = np.sort([one for _, p_values in group for one in p_values])
        accepted = np.append(p > alpha / 2.0 / np.arange(p.size, 0, -1), True)
        limit = np.append(p, math.inf)[accepted.argmax()]  # the least that Holm does not reject
        for line, p_values in group:
            failed = int(line.get("failed", 0)) + sum(one < limit for one in p_values)
            if callable(line["power"]):
                line["power"] = line["power"](alpha / 2.0 / p.size)
            verdict = "not as stated" if failed else "as stated"
            yield line | {"failed": failed, "verdict": verdict}


def _sums(law: NoiseSpec, rows: pd.DataFrame, keys: list[str]) -> list[_Sums]:
    """Return the number of cells and the mean statistic of each part."""
    cells = rows["cells"].to_numpy(np.int64)
    statistic = np.abs(rows["difference"].to_numpy(np.float64)) ** _power(law) * cells
    if not keys:
        return [(law, int(cells.sum()), float(statistic.sum()) / int(cells.sum()))]
    named = rows["place"].ne("").to_numpy()
    if not named.any():
        return []
    sums = (
        rows.assign(statistic=statistic)[named]
        .groupby(keys, sort=False)[["cells", "statistic"]]
        .sum()
    )
    return [(law, int(n), float(t) / int(n)) for n, t in sums.itertuples(index=False)]


def _ratio(sums: Sequence[_Sums]) -> Row:
    """Return the mean statistic relative to the stated one, and the deviation it can detect."""
    cells = sum(n for _, n, _ in sums)
    worth = sum(n / _power(law) for law, n, _ in sums)
    power = max(_power(law) for law, _, _ in sums)
    return {
        "compared": cells, "bound": 1.0,
        "value": sum(n * mean / _expected(law) for law, n, mean in sums) / cells,
        "power": lambda level: _least_ratio(worth, level) ** (2.0 / power),
        "power_unit": "times the stated variance",
    }  # fmt: skip


def _place_test(places: Sequence[list[_Sums]]) -> _Test:
    """Return a test of the noise in each place, with the p-values of all places."""
    p_values = [_scale_p(one) for one in places]
    row = _ratio(places[int(np.argmin(p_values))])
    power = _ratio(min(places, key=lambda one: one[0][1] / _power(one[0][0])))["power"]
    unit = "times the stated variance, in a table of one place"
    row |= {"against": "places", "compared": len(places), "power": power, "power_unit": unit}
    return row, p_values


def _cell_test(cells: Sequence[_Sums]) -> _Test:
    """Return a test of the number of cells with too small errors in all releases."""
    number = len(cells)
    p, nothing = np.zeros(number), 0.0
    for law in {law for law, _, _ in cells}:
        mine = np.array([one == law for one, _, _ in cells])
        n, mean = np.array([one[1:] for one in cells], np.float64)[mine].T
        p[mine] = _small_p(law, n, mean)
        nothing = max(nothing, float(_small_p(law, n, 0.0 * n).max()))

    def power(level: float) -> float:
        x = min((x for x in _SMALL if x >= nothing), default=1.0)
        enough = bdtrc(np.arange(number), number, x) <= level
        return float(np.argmax(np.append(enough, True)) + 1) / number

    row = {"against": "cells", "compared": number, "value": float((p <= _SMALL[1]).mean())}
    row |= {"bound": _SMALL[1], "power": power, "power_unit": "share of cells without noise"}
    # Bounds of p-values are x or less in Bin(n, x) of n cells, or in fewer.
    counts = [(float((p <= x).sum()), x) for x in _SMALL]
    return row, [float(bdtrc(count - 1.0, number, x)) if count else 1.0 for count, x in counts]


def _small_p(law: NoiseSpec, n: FloatArray, mean: FloatArray) -> FloatArray:
    """Return bounds of p-values for means that are too small, as :func:`_scale_p` does."""
    start, slope = _less_noise(law)
    exponent = n * (start[:, None] - slope[:, None] * mean)
    return np.asarray(np.exp(exponent.min(axis=0)), np.float64)


@functools.cache
def _less_noise(law: NoiseSpec) -> tuple[FloatArray, FloatArray]:
    """Return log f(0) - log f_s(0) and the slopes eta - eta_s for smaller scales s."""
    s = float(law.scale) * np.exp(np.linspace(-_FARTHEST, 0.0, 121))
    top = np.array([NoiseSpec(law.law, Fraction(one)).to_law().logpmf(0) for one in s.tolist()])
    start = np.asarray(law.to_law().logpmf(0) - top, np.float64)
    return start, np.asarray((1.0 / float(law.scale) - 1.0 / s) / _power(law), np.float64)


def _total_test(totals: Sequence[tuple[NoiseSpec, int, pd.DataFrame]]) -> _Test:
    """Return a test of squared sums of k draws; totals kept exact show too small ones."""
    p_values, number, ratio = [], 0, 0.0
    for law, k, rows in totals:
        n, (variance, rate, mean) = int(rows["cells"].sum()), _squares(law, k)
        square = float((rows["difference"].to_numpy(np.float64) ** 2 * rows["cells"]).sum())
        # By Chernoff exp(l sum S**2) E(exp(-l S**2))**n is a bound for each l > 0.
        exponent = rate * square + n * mean
        p_values.append(math.exp(max(min(float(exponent.min()), 0.0), -700.0)))
        number, ratio = number + n, ratio + square / variance
    row = {"against": "sums over places", "compared": number, "value": ratio / number}
    row |= {"bound": 1.0, "power_unit": "times the stated variance, or less"}
    return row | {"power": lambda level: _least_ratio(number / 2.0, level, -1.0)}, p_values


_SMALL = (0.1, 0.01, 0.001)  # chances of errors as small as those of a cell


@functools.cache
def _squares(law: NoiseSpec, k: int) -> tuple[float, FloatArray, FloatArray]:
    """Return the variance of a sum S of k draws, rates l, and log E(exp(-l S**2)) for each."""
    s, mass = _sum_law(law, k)
    variance = float(mass @ s**2)
    rate = np.exp(np.linspace(-6.0, 6.0, 49)) / variance
    mean = [np.exp(-one * s**2) @ mass for one in rate]
    return variance, rate, np.asarray(np.log(mean), np.float64)


_REACH, _STATES = 40.0, 2**17  # standard deviations to each side of a sum's law; values at most


def _sum_law(law: NoiseSpec, k: int) -> tuple[FloatArray, FloatArray]:
    """Return values of a sum of k draws on a grid, and their probabilities."""
    deviation = math.sqrt(float(law.to_law().var()) * k)
    step = max(1, int(2.0 * _REACH * deviation / _STATES))
    half = int(_REACH * deviation / step) + 8
    s = np.arange(-half, half) * step
    draw = np.exp(law.to_law().logpmf(s))
    transform = np.fft.rfft(np.fft.ifftshift(draw / draw.sum()))
    mass = np.fft.fftshift(np.fft.irfft(transform**k, s.size)).clip(0.0)
    return s.astype(np.float64), np.asarray(mass / mass.sum(), np.float64)


def _rounding_p(rows: pd.DataFrame, law: object) -> list[float]:
    """Return exact p-values of a table's random rounding, one for each remainder."""
    p_values = []
    if isinstance(law, RoundingSpec) and law.method == "random":
        for _, group in rows[rows["given"] > 0].groupby("given"):
            # Of n counts with remainder r, Bin(n, r / b) go up.
            up = int(group.loc[group["difference"] > 0, "cells"].sum())
            n = int(group["cells"].sum())
            share = float(group["given"].to_numpy(np.float64)[0]) / law.base
            tails = (f(k, n, share) for f, k in ((bdtr, up), (bdtrc, up - 1)))
            p_values.append(min(1.0, 2.0 * float(min(tails))))
    return p_values


def _power(law: NoiseSpec) -> int:
    """Return 2 for Gaussian and 1 for Laplace: the power of abs(d) in the sufficient statistic."""
    return 2 if law.law == "discrete-gaussian" else 1


def _expected(law: NoiseSpec) -> float:
    """Return the statistic's expectation under the stated law."""
    return float(law.to_law().var()) if _power(law) == 2 else 1.0 / math.sinh(1.0 / law.scale)


def _scale_p(sums: Sequence[_Sums]) -> float:
    r"""Return a bound of the two-sided p-value of the mean sufficient statistic t.

    The laws of all scales s are an exponential family, log f_s(d) = log f_s(0) + eta_s t(d). By
    Chernoff, the mean of N cells is as far from its expectation, on its side, with probability

    .. math:: p \le \exp(-N \sup_s \{ \log f_s(0) - \log f(0) + (\eta_s - \eta) \bar t \}).

    For several laws the exponents add up, with one ratio of s to the stated scale for all.
    """
    stated = [float(law.to_law().logpmf(0)) for law, _, _ in sums]

    def loss(log_ratio: float) -> float:
        total = 0.0
        for (law, n, mean), start in zip(sums, stated, strict=True):
            s = float(law.scale) * math.exp(log_ratio)
            top = float(NoiseSpec(law.law, Fraction(s)).to_law().logpmf(0))
            total += n * (start - top - (1.0 / float(law.scale) - 1.0 / s) / _power(law) * mean)
        return total

    least = minimize_scalar(loss, bounds=(-_FARTHEST, _FARTHEST), method="bounded").fun
    return min(1.0, 2.0 * math.exp(max(float(least), -700.0)))


def _shape_p(rows: pd.DataFrame, law: NoiseSpec) -> float:
    r"""Return Massart's bound 2 exp(-2 N D**2) of the largest distance D to the law."""
    counts = rows.groupby("difference")["cells"].sum()
    d, share = counts.index.to_numpy(np.int64), counts.to_numpy() / counts.sum()
    after = np.cumsum(share)
    far = np.abs([after - law.to_law().cdf(d), after - share - law.to_law().cdf(d - 1)]).max()
    return float(min(1.0, 2.0 * np.exp(-2.0 * counts.sum() * far**2)))


def _least_ratio(worth: float, alpha: float, side: float = 1.0) -> float:
    """Return roughly the ratio nearest to 1 that nine audits of ten would detect.

    For large scales, u is the mean statistic in units of the stated one. Its exponent is N k (u - 1
    - log u) and its relative variance 1 / (N k). Here k is 1/2 for Gaussian and 1 for Laplace
    noise, and ``worth`` is N k.
    """
    needed = math.log((2.0 if side > 0.0 else 1.0) / alpha) / worth
    far = 2.0 + 2.0 * needed + 2.0 * math.sqrt(needed) if side > 0.0 else math.exp(-2.0 - needed)
    ratio = brentq(lambda u: u - 1.0 - math.log(u) - needed, min(1.0, far), max(1.0, far))
    rest = 1.0 - side * USUALLY / math.sqrt(worth)
    return float(ratio / rest) if rest > 0.0 else math.inf
