"""Released counts against the law that is stated of them: the custodian holds both sides."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy.optimize import brentq, minimize_scalar
from scipy.special import bdtr, bdtrc

from bayesrisk.reconstruction import count_bounds
from bayesrisk.reconstruction.registry import Status
from bayesrisk.release import MechanismSpec, NoiseSpec, Release, RoundingSpec, SuppressedCounts
from bayesrisk.tables import PublishedTables, Workload
from bayesrisk.tables.likelihoods import UNBOUNDED, TrueCounts

Row = dict[str, Any]
#: A row of :func:`release_differences` is about the counts that have all of these in common.
DIFFERENCES = ["level", "table", "given", "difference", "possible"]
#: Differences of no release.
NO_DIFFERENCES = pd.DataFrame(
    {
        "release": pd.Series(dtype="int64"),
        **{name: pd.Series(dtype="str") for name in DIFFERENCES[:2]},
        **{name: pd.Series(dtype="int64") for name in DIFFERENCES[2:4]},
        "possible": pd.Series(dtype="bool"),
        "cells": pd.Series(dtype="int64"),
    }
)
#: Standard deviations: in nine audits of ten.
USUALLY = 1.2815515655446004
_FARTHEST = 12.0  # logarithm of how many times larger or smaller noise may be than stated


def release_differences(release: Release, truth: PublishedTables) -> pd.DataFrame:
    """Return the distances of published counts from the true ones, and how many cells have each.

    Parameters
    ----------
    release : Release
        Published tables, with the law of each.
    truth : PublishedTables
        The true ones.

    Returns
    -------
    pandas.DataFrame
        ``level``, ``table``, ``given`` (what the law of the difference depends on: of rounding the
        remainder of the true count), ``difference`` (published less true), whether that is
        ``possible`` by the stated law, and ``cells``, how many have all of these.  Withheld counts
        and tables without a law are left out; a released rate of swaps is a row of its own, without
        level.  Sums of ``cells`` over parts of a population and over releases, by all other
        columns, are the rows of the whole.
    """
    spec, parts = release.spec, []
    for (level, name), counts in release.tables.counts.items():
        law = spec.likelihood(level, name)
        if not law.exact and law.probability(0, 0) is None:
            continue
        seen = ~release.tables.hidden(level, name).toarray()
        out, true = counts.toarray()[seen], truth.counts[level, name].toarray()[seen]
        given, possible = np.zeros_like(true), out == true
        if isinstance(law, RoundingSpec):
            given, possible = true % law.base, law.probability(out, true) > 0.0
        elif isinstance(law, NoiseSpec):
            possible = np.ones_like(possible)
        elif not law.exact:
            possible = np.asarray(law.probability(out, true), np.float64) > 0.0
        elif isinstance(law, SuppressedCounts):  # small counts are withheld, zeros are not
            possible &= (true == 0) | (true >= int(spec.parameters.get("threshold", 0)))
        part = {"given": given, "difference": out - true, "possible": possible}
        parts.append(pd.DataFrame({"level": level, "table": name} | part))
    rate, stated = release.diagnostics.get("realised_rate"), spec.parameters.get("rate")
    if rate is not None and stated is not None:
        # Of n units as many pairs p change places as bring 2 p / n next to the stated rate, or
        # fewer where partners are lacking.  Of households n is a multiple of a denominator.
        realised = Fraction(rate).limit_denominator(10**6)
        units = realised.denominator
        if spec.parameters.get("unit") == "person":
            units = max(1, min(int(counts.sum()) for counts in truth.counts.values()))
        fits = bool(0 <= realised <= Fraction(str(stated)) + Fraction(1, units))
        parts.append(pd.DataFrame([("", "realised rate", 0, 0, fits)], columns=DIFFERENCES))
    every = pd.concat(parts) if parts else pd.DataFrame(columns=DIFFERENCES)
    return every.groupby(DIFFERENCES).size().rename("cells").reset_index()


def law_checks(
    differences: pd.DataFrame, specs: Mapping[str, MechanismSpec], *, alpha: float
) -> Iterator[Row]:
    """Yield a row for each protection and table: whether published counts are as stated.

    Of noise the mean of d**2 (Gaussian) or of abs(d) (Laplace), the sufficient statistic of its
    scale, is held against the stated one, and the empirical distribution against the law; of random
    rounding the share of counts that went up, for every remainder.  Holm's procedure over all
    p-values, which are exact or bounds from above, keeps to the level ``alpha`` for all protections
    and tables together.
    """
    parts, tests = [], []
    by = differences.groupby(["protection", "level", "table"], sort=False)
    for key, rows in by:
        name, level, table = map(str, cast(tuple[str, str, str], key))
        if name in specs:
            law = specs[name].likelihood(level, table) if level else None
            parts.append((name, f"{level} {table}".strip(), law, rows))
            tests.append(_p_values(rows, law))
    p = np.sort([one for some in tests for one in some])
    kept = np.append(p > alpha / np.arange(p.size, 0, -1), True)
    limit = np.append(p, math.inf)[kept.argmax()]  # the least p-value that Holm does not reject
    for (name, table, law, rows), some in zip(parts, tests, strict=True):
        cells = int(rows["cells"].sum())
        wrong = int(rows.loc[~rows["possible"].astype(bool), "cells"].sum())
        failed = wrong + sum(one < limit for one in some)
        found = {"value": wrong / cells, "bound": 0.0}
        power, unit = 1.0 - 0.1 ** (1.0 / cells), "share of counts that cannot be"
        if isinstance(law, NoiseSpec):
            scale = float(law.scale)
            stated = float(law.to_law().var()) if _power(law) == 2 else 1.0 / math.sinh(1.0 / scale)
            found = {"value": _mean(rows, law) / stated, "bound": 1.0}
            power, unit = _least_ratio(law, cells, alpha / p.size), "times the stated variance"
        yield {
            "check": "law", "protection": name, "against": table,
            "compared": cells, "failed": failed, "power": power, "power_unit": unit,
            "verdict": "not as stated" if failed else "as stated",
        } | found  # fmt: skip


def _p_values(rows: pd.DataFrame, law: object) -> list[float]:
    """Return p-values, or bounds of them, of what a law says of the differences of a table."""
    if isinstance(law, NoiseSpec):
        return [_scale_p(rows, law), _shape_p(rows, law)]
    found = []
    if isinstance(law, RoundingSpec) and law.method == "random":
        for _, mine in rows[rows["given"] > 0].groupby("given"):
            # Of n counts with remainder r, Bin(n, r / b) go up.
            up, n = int(mine.loc[mine["difference"] > 0, "cells"].sum()), int(mine["cells"].sum())
            share = float(mine["given"].to_numpy(np.float64)[0]) / law.base
            tails = (f(k, n, share) for f, k in ((bdtr, up), (bdtrc, up - 1)))
            found.append(min(1.0, 2.0 * float(min(tails))))
    return found


def _power(law: NoiseSpec) -> int:
    """Return the power of abs(d) that is the sufficient statistic of the scale."""
    return 2 if law.law == "discrete-gaussian" else 1


def _mean(rows: pd.DataFrame, law: NoiseSpec) -> float:
    t = np.abs(rows["difference"].to_numpy(np.float64)) ** _power(law)
    return float(np.average(t, weights=rows["cells"]))


def _scale_p(rows: pd.DataFrame, law: NoiseSpec) -> float:
    r"""Return a bound of the two-sided p-value of the mean of the sufficient statistic t.

    The laws of all scales s are an exponential family, log f_s(d) = log f_s(0) + eta_s t(d).  By
    Chernoff the mean of N cells is as far from its expectation, on its side, with probability

    .. math:: p \le \exp(-N \sup_s \{ \log f_s(0) - \log f(0) + (\eta_s - \eta) \bar t \}).
    """
    scale, mean, start = float(law.scale), _mean(rows, law), float(law.to_law().logpmf(0))

    def loss(log_ratio: float) -> float:
        s = scale * math.exp(log_ratio)
        top = float(NoiseSpec(law.law, Fraction(s)).to_law().logpmf(0))
        return start - top - (1.0 / scale - 1.0 / s) / _power(law) * mean

    least = minimize_scalar(loss, bounds=(-_FARTHEST, _FARTHEST), method="bounded").fun
    return min(1.0, 2.0 * math.exp(max(float(least) * int(rows["cells"].sum()), -700.0)))


def _shape_p(rows: pd.DataFrame, law: NoiseSpec) -> float:
    r"""Return Massart's bound 2 exp(-2 N D**2) of the largest distance D to the law."""
    counts = rows.groupby("difference")["cells"].sum()
    d, share = counts.index.to_numpy(np.int64), counts.to_numpy() / counts.sum()
    after = np.cumsum(share)
    far = np.abs([after - law.to_law().cdf(d), after - share - law.to_law().cdf(d - 1)]).max()
    return float(min(1.0, 2.0 * np.exp(-2.0 * counts.sum() * far**2)))


def _least_ratio(law: NoiseSpec, cells: int, alpha: float) -> float:
    """Return about the least ratio of variances, above 1, that nine audits of ten would see.

    For large scales the mean statistic u, in units of the stated one, has an exponent of
    N k (u - 1 - log u) and a relative variance of 1 / (N k), with k = 1/2 of Gaussian and 1 of
    Laplace noise.
    """
    worth = cells / _power(law)  # N k
    needed = math.log(2.0 / alpha) / worth
    far = 2.0 + 2.0 * needed + 2.0 * math.sqrt(needed)
    seen = brentq(lambda u: u - 1.0 - math.log(u) - needed, 1.0, far)
    rest = 1.0 - USUALLY / math.sqrt(worth)
    return float((seen / rest) ** (2.0 / _power(law))) if rest > 0.0 else math.inf


# What counts prove by themselves, whatever an adversary believed before.

#: Columns of :func:`release_proofs`, each a number.
PROOFS = [
    "counts", "limited", "coarsened", "recovered", "empty", "small", "small_recovered",
    "at_least_one", "decided", "people", "width_stated", "width", "records",
]  # fmt: skip
_WHOLE = len(PROOFS) - 3  # of them whole numbers
#: Proofs of no release.
NO_PROOFS = pd.DataFrame(
    {"release": pd.Series(dtype="int64"), "place": pd.Series(dtype="str")}
    | {name: pd.Series(dtype="int64") for name in PROOFS[:_WHOLE]}
    | {name: pd.Series(dtype="float64") for name in PROOFS[_WHOLE:]}
)
_NODES = 1000  # for each place, so that the answer does not depend on the machine
_MOST_CELLS = 2**11


def release_proofs(
    tables: PublishedTables,
    truth: PublishedTables,
    places: Sequence[str],
    *,
    whole: Sequence[str] = (),
) -> pd.DataFrame:
    """Return for each place the numbers of counts that its tables prove together.

    Parameters
    ----------
    tables, truth : PublishedTables
        Tables of a release, and the true ones.
    places : sequence of str
        Codes of places of the finest level, in order: the tables of each are read by themselves.
    whole : sequence of str
        Attributes that a whole record has.

    Returns
    -------
    pandas.DataFrame
        A row for each ``place``.  Of its ``counts`` some are ``limited``, that is, exclude some
        true ones, which noisy ones do not; those that stand for several true ones are
        ``coarsened``.  Of these one true count is left of those that are ``recovered``, some of
        them ``empty`` (it is 0); ``small`` are truly 1 or 2, and ``small_recovered`` come back;
        ``at_least_one`` could be 0 by themselves and are not; ``width_stated`` and ``width`` are
        sums of the largest less the smallest true count, by itself and by all counts together.
        ``decided`` are counts whose ends are known to be reached.  ``records`` is how many records
        are proved with all of ``whole``; missing where it has more than 2,048 combinations.
    """
    level, schema = tables.workload.levels[-1], tables.workload.schema
    at = np.searchsorted(tables.geoids[level], np.asarray(places))
    names = [*tables.workload.at(level)]
    exact = TrueCounts()
    read = [name for name in names if tables.laws.get((level, name), exact).limiting]
    ends, true = [], []
    for name in names:
        low, high = tables.support(level, name, at)
        seen = name in read
        ends.append(np.stack([low, high] if seen else [0 * low, 0 * low + UNBOUNDED]))
        true.append(truth.counts[level, name][at].toarray())
    stated, actual = np.concatenate(ends, axis=2), np.concatenate(true, axis=1)
    known, sure = stated.copy(), np.ones(actual.shape, np.bool_)
    records = np.zeros(len(places))
    if read:
        work = tables.workload.select(levels=[level], tables=read)
        some = PublishedTables(
            work,
            {level: tables.geoids[level][at]},
            {key: tables.counts[key][at] for key in work.tables},
            {key: part[at] for key, part in tables.suppressed.items() if key in work.tables},
            {key: law for key, law in tables.laws.items() if key in work.tables},
        )
        column = np.repeat([name in read for name in names], [part.shape[1] for part in true])
        frame = count_bounds(some, node_limit=_NODES).counts
        shape = len(places), int(column.sum())
        for side, end in enumerate(("low", "high")):
            known[side][:, column] = frame[end].fillna(UNBOUNDED).to_numpy(np.int64).reshape(shape)
        sure[:, column] = (frame["status"] == Status.PROVED).to_numpy().reshape(shape)
        if math.prod(schema.attribute(name).size for name in whole) > _MOST_CELLS:
            records[:] = np.nan
        elif whole:
            cross = Workload.of(schema, [tuple(whole)], levels=[level])
            least = count_bounds(some, queries=cross, node_limit=_NODES).counts["low"]
            records = least.to_numpy(np.float64).reshape(len(places), -1).sum(axis=1)
    width, left = stated[1] - stated[0], known[1] - known[0]
    wide = width > 0
    found, small = wide & (left == 0), wide & (actual > 0) & (actual <= 2)
    each = {
        "counts": np.ones_like(wide), "limited": (stated[0] > 0) | (stated[1] < UNBOUNDED),
        "coarsened": wide, "recovered": found,
        "empty": found & (known[1] == 0), "small": small, "small_recovered": small & found,
        "at_least_one": wide & (stated[0] == 0) & (known[0] > 0), "decided": sure | ~wide,
        "width_stated": np.where(stated[1] < UNBOUNDED, width, np.inf),
        "width": np.where(known[1] < UNBOUNDED, left, np.inf),
    }  # fmt: skip
    sums = {name: part.sum(axis=1) for name, part in each.items()}
    return pd.DataFrame({"place": np.asarray(places, dtype=object), **sums, "records": records})


def proof_totals(proofs: pd.DataFrame) -> pd.DataFrame:
    """Return the sums of proofs over places, and mean widths of coarsened counts, by protection."""
    sums = proofs.groupby("protection", sort=False)[PROOFS].sum(skipna=False)
    for name in ("width_stated", "width"):
        sums[name] /= sums["coarsened"]
    sums.insert(0, "places", proofs.groupby("protection", sort=False).size())
    return sums.reset_index()
