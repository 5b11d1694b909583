"""Checks of an audit: the release against its law, and beliefs against truth, theory and proofs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy.optimize import brentq, minimize_scalar
from scipy.special import bdtr, bdtrc, stdtrit

from bayesrisk import _validation as check
from bayesrisk._validation import FloatArray
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.reconstruction import count_bounds
from bayesrisk.reconstruction.registry import Status
from bayesrisk.release import (
    Likelihood,
    MechanismSpec,
    NoiseSpec,
    RangeSpec,
    Release,
    RoundingSpec,
    SuppressedCounts,
    TrueCounts,
)
from bayesrisk.risk.audit import measures
from bayesrisk.risk.audit.adversaries import READINGS
from bayesrisk.risk.audit.population import AuditQuestion
from bayesrisk.risk.audit.spot_checks import SPOTS
from bayesrisk.risk.intervals import clustered_interval
from bayesrisk.risk.statements.claims import OPEN
from bayesrisk.tables import PublishedTables, Workload
from bayesrisk.tables.likelihoods import UNBOUNDED
from bayesrisk.tables.published import select_rows

# -----------------------------------------------------------------------------
# Released counts against the law that is stated of them: the custodian holds both sides.


Row = dict[str, Any]
#: A row of :func:`release_differences` is about the counts that have all of these in common.
DIFFERENCES = ["level", "table", "given", "difference", "possible"]
#: Differences of no release.
NO_DIFFERENCES = measures.empty_frame(
    ["release", *DIFFERENCES, "cells"],
    dict.fromkeys(["release", "given", "difference", "cells"], "int64")
    | {"level": "str", "table": "str", "possible": "bool"},
)
#: Standard deviations: in nine audits of ten.
USUALLY = 1.2815515655446004
_FARTHEST = 12.0  # logarithm of how many times larger or smaller noise may be than stated


def release_differences(release: Release, truth: PublishedTables) -> pd.DataFrame:
    """Return the distances of published counts from the true ones, and how many cells have each.

    Columns are ``level``, ``table``, ``given`` (what the law of the difference depends on: of
    rounding the remainder of the true count), ``difference`` (published less true), whether that is
    ``possible`` by the stated law, and ``cells``, how many have all of these.  Withheld counts and
    tables without a law are left out; a released rate of swaps is a row of its own, without level.
    Sums of ``cells`` over parts of a population and over releases, by all other columns, are the
    rows of the whole.
    """
    spec, parts = release.spec, []
    for (level, name), counts in release.tables.counts.items():
        law = spec.likelihood(level, name)
        if not law.exact and law.probability(0, 0) is None:
            continue
        visible = ~release.tables.hidden(level, name).toarray()
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
        part = {"given": remainder, "difference": out - true, "possible": possible}
        parts.append(pd.DataFrame({"level": level, "table": name} | part))
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
    groups = differences.groupby(["protection", "level", "table"], sort=False)
    for key, rows in groups:
        name, level, table = map(str, cast(tuple[str, str, str], key))
        if name in specs:
            law = specs[name].likelihood(level, table)
            parts.append((name, f"{level} {table}", law, rows))
            tests.append(_p_values(rows, law))
    p = np.sort(list(itertools.chain(*tests)))
    accepted = np.append(p > alpha / np.arange(p.size, 0, -1), True)
    limit = np.append(p, math.inf)[accepted.argmax()]  # the least p-value that Holm does not reject
    for (name, table, law, rows), p_values in zip(parts, tests, strict=True):
        cells = int(rows["cells"].sum())
        wrong = int(rows.loc[~rows["possible"].astype(bool), "cells"].sum())
        failed = wrong + sum(one < limit for one in p_values)
        columns = {"value": wrong / cells, "bound": 0.0}
        power, unit = 1.0 - 0.1 ** (1.0 / cells), "share of counts that cannot be"
        if isinstance(law, NoiseSpec):
            scale = float(law.scale)
            stated = float(law.to_law().var()) if _power(law) == 2 else 1.0 / math.sinh(1.0 / scale)
            columns = {"value": _mean(rows, law) / stated, "bound": 1.0}
            power, unit = _least_ratio(law, cells, alpha / p.size), "times the stated variance"
        yield {
            "check": "law", "protection": name, "against": table,
            "compared": cells, "failed": failed, "power": power, "power_unit": unit,
            "verdict": "not as stated" if failed else "as stated",
        } | columns  # fmt: skip


def _p_values(rows: pd.DataFrame, law: object) -> list[float]:
    """Return p-values, or bounds of them, of what a law says of the differences of a table."""
    if isinstance(law, NoiseSpec):
        return [_scale_p(rows, law), _shape_p(rows, law)]
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
    ratio = brentq(lambda u: u - 1.0 - math.log(u) - needed, 1.0, far)
    rest = 1.0 - USUALLY / math.sqrt(worth)
    return float((ratio / rest) ** (2.0 / _power(law))) if rest > 0.0 else math.inf


# What counts prove by themselves, whatever an adversary believed before.

#: Columns of :func:`release_proofs`, each a number.
PROOFS = [
    "counts", "limited", "coarsened", "recovered", "empty", "small", "small_recovered",
    "at_least_one", "decided", "people", "width_stated", "width", "records",
]  # fmt: skip
_WHOLE = len(PROOFS) - 3  # of them whole numbers
#: Proofs of no release.
NO_PROOFS = measures.empty_frame(
    ["release", "place", *PROOFS],
    dict.fromkeys(["release", *PROOFS[:_WHOLE]], "int64") | {"place": "str"},
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

    ``places`` are codes of the finest level, in order: the tables of each are read by themselves.
    Columns are those of ``proofs.csv`` on the reference page of audits, but sums instead of means
    of widths.  ``records`` is missing where ``whole``, the attributes that a whole record has, have
    more than 2,048 combinations.
    """
    level, schema = tables.workload.levels[-1], tables.workload.schema
    rows = np.searchsorted(tables.geoids[level], np.asarray(places))
    names = [*tables.workload.at(level)]
    exact = TrueCounts()
    read = [name for name in names if tables.laws.get((level, name), exact).limiting]
    ends, true = [], []
    for name in names:
        low, high = tables.support(level, name, rows)
        ends.append(np.stack([low, high] if name in read else [0 * low, 0 * low + UNBOUNDED]))
        true.append(truth.counts[level, name][rows].toarray())
    stated, actual = np.concatenate(ends, axis=2), np.concatenate(true, axis=1)
    proved, sure = stated.copy(), np.ones(actual.shape, np.bool_)
    records = np.zeros(len(places))
    if read:
        work = tables.workload.select(levels=[level], tables=read)
        selected = select_rows(tables, {level: rows}, work)
        column = np.repeat([name in read for name in names], [part.shape[1] for part in true])
        frame = count_bounds(selected, node_limit=_NODES).counts
        shape = len(places), int(column.sum())
        for side, end in enumerate(("low", "high")):
            proved[side][:, column] = frame[end].fillna(UNBOUNDED).to_numpy(np.int64).reshape(shape)
        sure[:, column] = (frame["status"] == Status.PROVED).to_numpy().reshape(shape)
        if math.prod(schema.attribute(name).size for name in whole) > _MOST_CELLS:
            records[:] = np.nan
        elif whole:
            cross = Workload.of(schema, [tuple(whole)], levels=[level])
            least = count_bounds(selected, queries=cross, node_limit=_NODES).counts["low"]
            records = least.to_numpy(np.float64).reshape(len(places), -1).sum(axis=1)
    width, left = stated[1] - stated[0], proved[1] - proved[0]
    wide = width > 0
    recovered, small = wide & (left == 0), wide & (actual > 0) & (actual <= 2)
    columns = {
        "counts": np.ones_like(wide), "limited": (stated[0] > 0) | (stated[1] < UNBOUNDED),
        "coarsened": wide, "recovered": recovered,
        "empty": recovered & (proved[1] == 0), "small": small, "small_recovered": small & recovered,
        "at_least_one": wide & (stated[0] == 0) & (proved[0] > 0), "decided": sure | ~wide,
        "width_stated": np.where(stated[1] < UNBOUNDED, width, np.inf),
        "width": np.where(proved[1] < UNBOUNDED, left, np.inf),
    }  # fmt: skip
    sums = {name: part.sum(axis=1) for name, part in columns.items()}
    return pd.DataFrame({"place": np.asarray(places, dtype=object), **sums, "records": records})


def proof_totals(proofs: pd.DataFrame) -> pd.DataFrame:
    """Return the sums of proofs over places, and mean widths of coarsened counts, by protection."""
    sums = proofs.groupby("protection", sort=False)[PROOFS].sum(skipna=False)
    for name in ("width_stated", "width"):
        sums[name] /= sums["coarsened"]
    sums.insert(0, "places", proofs.groupby("protection", sort=False).size())
    return sums.reset_index()


#: What is checked, in the order of the rows.
CHECKS = ("law", "spot", "calibration", "ordering", "theory", "agreement")
_COLUMNS = [
    "check", "protection", "against", "attack", "adversary", "belief", "compared", "failed",
    "value", "lower", "upper", "bound", "lost", "lost_before", "power", "power_unit", "verdict",
]  # fmt: skip
_LIKELIHOOD = READINGS[0]
_MOVED = {"add-remove": 2.0, "change-one": 1.0}  # times epsilon: one record for another
_SURE = 4.0  # standard errors of an estimate, so that thousands of them fail no check by chance
_ROUNDING = 1e-12
_BEYOND = 1e-9  # of a sum of probabilities beyond 1, by rounding
#: Scales s and t add up to noise whose law is off by a relative 1e-6 at most where s t / (s + t) is
#: this or more: of thousands of counts together that is less than a score can show.
_SMOOTH = math.log(2.0 / 1e-6) / (2.0 * math.pi**2)
_SHARED = ["adversary", "release", "target", "statement"]
_LEVELS = 4  # kinds of checks that chance could fail share what a valid audit may fail
_BATCHES = 20  # that the error of an estimate is from
_AGAIN = 1e-6  # two exact ways differ by less
_LEAK = 0.1  # share of targets about whom the truth leaks, for the power of spot checks


def audit_checks(
    statements: pd.DataFrame,
    *,
    question: AuditQuestion | None = None,
    specs: Mapping[str, MechanismSpec] | None = None,
    differences: pd.DataFrame | None = None,
    spots: pd.DataFrame | None = None,
    confidence: float = 0.99,
) -> pd.DataFrame:
    r"""Return the checks of an audit, each with what it would have seen.

    Parameters
    ----------
    statements : pandas.DataFrame
        Statements of an audit.
    question : AuditQuestion, optional
        What was published, and who asked.
    specs : mapping of str to MechanismSpec, optional
        How each protection protects, by its name; goes with the question.  Without both only
        calibration, agreement and spots are checked.
    differences : pandas.DataFrame, optional
        Published less true counts (:func:`~bayesrisk.risk.audit.release_differences`), with a
        column ``protection``; needs ``specs``.
    spots : pandas.DataFrame, optional
        Statements beside what the plain way finds
        (:func:`~bayesrisk.risk.audit.spot_comparisons`).
    confidence : float, default 0.99
        Probability that no check fails by chance in an audit whose data are drawn from its prior.

    Returns
    -------
    pandas.DataFrame
        A row for each check, with the columns of ``checks.csv`` on the reference page of audits:

        - ``law``: published counts of a table are held against their stated law.
        - ``spot``: beliefs about targets against what the plain way finds, estimates within
          Student's errors.
        - ``calibration``: probabilities of statements against the share that is true.  Places are
          the units, for any number of releases.
        - ``ordering``: the mean log score of targets, averaged over releases, against that under a
          protection that can be made from it (see ``constructions``); reversed where even ``upper``
          is below 0.
        - ``theory``: odds of a statement after the release against those without the target's
          record, less four standard errors where they are estimates.
        - ``agreement``: statements that disagree with what is proved: posteriors of 0 and 1 with
          the truth; posteriors with ``claims`` and with unique ``reconstruction`` where the audit
          has them.

    Notes
    -----
    With epsilon for one record in exchange for another the likelihoods of two records of the target
    differ by :math:`e^{\varepsilon}` at most given all others, which bounds the odds of who knows
    them; for others numerator and denominator move by that factor each: :math:`2 \varepsilon`.
    Calibration and ordering hold for data drawn from the adversary's prior.

    Examples
    --------
    >>> rows = pd.DataFrame({
    ...     "protection": "none", "attack": "likelihood", "adversary": "outsider", "release": 0,
    ...     "target": ["7", "7"], "statement": ["a", "b"], "prior": [0.5, 0.5],
    ...     "without": [0.4, 0.6], "posterior": [1.0, 0.0], "correct": [False, True],
    ...     "without_error": 0.0, "posterior_error": 0.0,
    ...     "status": "calculated", "place": "1", "place_size": 12, "alike": 3, "nonmodal": False,
    ... })
    >>> checks = audit_checks(rows)
    >>> checks[["check", "against", "compared", "failed", "verdict"]].values.tolist()[-1]
    ['agreement', 'truth', 2, 2, 'disagree']
    """
    level = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    alpha = (1.0 - level) / _LEVELS
    if (question is None) != (specs is None):
        names = ("question", "specs") if question is None else ("specs", "question")
        raise ArgumentError("{} must be given where {} is".format(*names))
    if question is not None and specs is not None:
        check.instance(question, AuditQuestion, "question")
        for name, spec in check.mapping(specs, "specs").items():
            check.text(name, "name of a protection in specs")
            check.instance(spec, MechanismSpec, f"specs[{name!r}]")
    texts = (*measures.KEYS, "target", "statement", "status", "place")
    numbers = (*measures.THREE, "without_error", "posterior_error", "correct", "release")
    whole = measures.whole_columns(statements, "statements", texts, numbers)
    decided = whole[~whole["status"].isin(OPEN)]
    _check_beliefs(decided)
    rows: list[Row] = []
    if differences is not None:
        differences = check.frame(differences, "differences", ["protection", *DIFFERENCES, "cells"])
        rows += law_checks(differences, specs or {}, alpha=alpha)
    if spots is not None:
        spots = check.frame(spots, "spots", SPOTS)
        rows += _spots(spots, alpha)
    rows += _calibration(decided, alpha)
    exact: set[str] = set()
    if question is not None and specs is not None:
        published = {n: s for n, s in specs.items() if (decided["protection"] == n).any()}
        rows += _ordering(decided, published, question.workload, alpha)
        exact = {
            name
            for name, spec in published.items()
            if all(spec.likelihood(*key).exact for key in question.workload.tables)
        }
        informed = {one.name for one in question.adversaries if one.neighbours == 1.0}
        rows += _theory(decided, published, question.workload, informed)
    rows += _agreement(decided, exact)
    if not rows:
        return measures.empty_frame(_COLUMNS, measures.TEXTS)
    return pd.DataFrame(rows, columns=_COLUMNS)


def _check_beliefs(decided: pd.DataFrame) -> None:
    """Refuse decided statements without a belief: they would keep whatever is checked."""
    for name in measures.THREE:
        bad = ~decided[name].between(-_BEYOND, 1.0 + _BEYOND).to_numpy(np.bool_)
        if bad.any():
            row = decided.iloc[int(bad.argmax())]
            subject = f"{row['statement']} of target {row['target']}"
            raise DataError(
                f"statements: column {name!r} must be in [0, 1] where the status is "
                f"{row['status']}, got {row[name]:g} for {quote(subject)}"
            )


def _spots(spots: pd.DataFrame, alpha: float) -> Iterator[Row]:
    """Yield whether statements agree with the plain way, estimates within Student's errors."""
    error = spots["error"].to_numpy(np.float64)
    reach = float(stdtrit(_BATCHES - 1, 1.0 - alpha / 2.0 / max((error > 0.0).sum(), 1)))
    off = np.abs(spots["stated"].to_numpy(np.float64) - spots["again"].to_numpy(np.float64))
    # One with an error of 0 is exact; an estimate is never that exact by luck.
    wrong = ~(off <= max(reach, _SURE) * error + _AGAIN)
    for key, rows in spots.assign(off=off, wrong=wrong).groupby(measures.KEYS, sort=False):
        targets = rows.groupby("target", sort=False)
        failed, n_drawn = int(targets["wrong"].any().sum()), int(targets["drawn"].any().sum())
        yield dict(zip(measures.KEYS, key, strict=True)) | {
            "check": "spot", "against": "plain way", "compared": targets.ngroups, "failed": failed,
            "value": float(rows["off"].max()), "bound": 0.0,
            "power": 1.0 - (1.0 - _LEAK) ** n_drawn,
            "power_unit": f"chance to see what leaks about {_LEAK:.0%} of targets",
            "verdict": "disagree" if failed else "agree",
        }  # fmt: skip


def _calibration(decided: pd.DataFrame, alpha: float) -> Iterator[Row]:
    # What is kept for its truth alone would count as a miss of a belief that nobody holds.
    believed = decided[decided[list(measures.THREE)].max(axis=1) >= measures.FLOOR]
    groups = list(believed.groupby(measures.KEYS, sort=False))
    level = 1.0 - alpha / max(2 * len(groups), 1)
    for key, rows in groups:
        before = _curve(rows, "prior", level)[0]
        for belief in ("posterior", "without"):
            lost, outside, parts = _curve(rows, belief, level)
            promise, low, high, power = _promise(rows, belief, 1.0 - (1.0 - level) / (parts + 1))
            failed = outside + int(low > 0.0 or high < 0.0)
            yield dict(zip(measures.KEYS, key, strict=True)) | {
                "check": "calibration",
                "against": "truth",
                "belief": belief,
                "compared": len(rows),
                "failed": failed,
                "value": promise,
                "lower": low,
                "upper": high,
                "bound": 0.0,
                "lost": lost,
                "lost_before": before,
                "power": power,
                "power_unit": "promised more or less than is true",
                "verdict": "outside" if failed else "inside",
            }


def _curve(rows: pd.DataFrame, belief: str, level: float) -> tuple[float, int, int]:
    """Return the calibration that is lost, how many parts are outside of the band, and all parts.

    The band has an interval for each part and one more for what is promised, by Bonferroni.
    """
    parts = measures.binned(rows[belief])
    lost, outside = 0.0, 0
    for _, members in parts:
        q, hit = rows.loc[members, belief], rows.loc[members, "correct"]
        low, high = clustered_interval(
            hit, rows.loc[members, "place"], confidence=1.0 - (1.0 - level) / (len(parts) + 1)
        )
        outside += not low - _ROUNDING <= q.mean() <= high + _ROUNDING
        lost += abs(float((q - hit).sum()))
    return lost / len(rows), outside, len(parts)


def _promise(rows: pd.DataFrame, belief: str, level: float) -> tuple[float, float, float, float]:
    """Return the mean excess of promised over true statements, its interval, and what it can show.

    Its variance is that between places, and never less than what it is where all is calibrated.
    """
    q = rows[belief].to_numpy()
    sign = np.sign(q - 0.5)
    off = sign * (q - rows["correct"].to_numpy())
    mean, places = float(off.mean()), measures.place_numbers(rows["place"])
    number = int(places.max()) + 1
    if number < 2:
        return mean, -math.inf, math.inf, math.inf
    # sum_v a_v (q_v - y_v) of one target, whose y are one in all releases; Var = E a**2 - (E a)**2
    statements = rows.assign(q=q, sign=sign).groupby(["target", "statement"], sort=False)
    a, p = statements["sign"].sum(), statements["q"].mean()
    moments = pd.DataFrame({"square": a**2 * p, "mean": a * p}).groupby("target").sum()
    expected = np.maximum(moments["square"] - moments["mean"] ** 2, 0.0).sum()
    place_sums = np.bincount(places, off - mean)
    error = math.sqrt(max((place_sums**2).sum() * number / (number - 1), expected)) / q.size
    reach = float(stdtrit(number - 1, 0.5 + level / 2.0)) * error
    return mean, mean - reach, mean + reach, reach + USUALLY * error


def _ordering(
    decided: pd.DataFrame, specs: Mapping[str, MechanismSpec], workload: Workload, alpha: float
) -> list[Row]:
    true = decided[(decided["attack"] == _LIKELIHOOD) & (decided["correct"] == 1.0)]
    true = true.assign(
        score=measures.log_score(true.rename(columns={"posterior": "truth_posterior"}))
    )
    scores = true.groupby(["protection", "adversary", "target", "place"], sort=False)["score"]
    targets = scores.mean().reset_index()
    tables = dict(list(targets.groupby(["protection", "adversary"], sort=False)))
    pairs = []
    for clear, faint in _neighbours(constructions(specs, workload)):
        for adversary in dict.fromkeys(targets["adversary"]):
            if (clear, adversary) in tables and (faint, adversary) in tables:
                pair = tables[clear, adversary].merge(
                    tables[faint, adversary], on=["target", "place"]
                )
                if len(pair):
                    pairs.append((clear, faint, adversary, pair))
    lines = []
    for clear, faint, adversary, pair in pairs:
        one, other = pair["score_x"].to_numpy(), pair["score_y"].to_numpy()
        with np.errstate(invalid="ignore"):
            gain = np.where(one == other, 0.0, one - other)  # even where both are infinite
        places = measures.place_numbers(pair["place"])
        mean, low, high = measures.clustered_mean(
            gain, places, 1.0 - alpha / len(pairs), bound=np.inf
        )
        reversed_ = mean == -np.inf or high < 0.0
        lines.append(
            _row("ordering", clear, faint, _LIKELIHOOD, adversary)
            | {
                "compared": len(pair), "failed": int(reversed_), "value": mean, "lower": low,
                "upper": high, "bound": 0.0, "verdict": "reversed" if reversed_ else "in order",
                "power": high - mean if np.isfinite(mean) else math.inf,
                "power_unit": "of the mean log score, reversed, in one audit of two",
            }
        )  # fmt: skip
    return lines


def constructions(specs: Mapping[str, MechanismSpec], workload: Workload) -> list[tuple[str, str]]:
    """Return the pairs of protections of which the second can be made from the first.

    From true counts that is whatever has a likelihood given these, and what withholds some; from
    noise the same noise with larger scales, where it is that of the first and more; from a table
    whose cells are protected one by one that table.  From counts some of which are withheld nothing
    can be made: what is withheld depends on all of them.
    """
    pairs = []
    for clear, faint in itertools.permutations(specs, 2):
        laws = [
            (specs[clear].likelihood(*key), specs[faint].likelihood(*key))
            for key in workload.tables
        ]
        if all(_constructible(a, b) for a, b in laws) and any(a != b for a, b in laws):
            pairs.append((clear, faint))
    return pairs


def _constructible(clear: Likelihood, faint: Likelihood) -> bool:
    """Return True if a table can be made from one that is protected less."""
    if isinstance(clear, TrueCounts):
        return faint.closed
    if isinstance(clear, NoiseSpec) and isinstance(faint, NoiseSpec):
        return _adds_noise(clear, faint)
    return isinstance(clear, RoundingSpec | RangeSpec) and clear == faint


def _neighbours(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the pairs without those that follow from two others."""
    names = {name for pair in pairs for name in pair}
    return [(a, b) for a, b in pairs if not any((a, c) in pairs and (c, b) in pairs for c in names)]


def _adds_noise(clear: NoiseSpec, faint: NoiseSpec) -> bool:
    """Return True if one noise has the law of the other plus independent noise.

    Discrete Laplace noise of a larger scale is such noise and nothing, mixed.  The sum of discrete
    Gaussians is no discrete Gaussian: by Poisson summation it is one but for a factor that is at
    most 2 exp(-2 pi^2 s t / (s + t)) off 1, for scales s and t.
    """
    if clear.law != faint.law or clear.scale > faint.scale:
        return False
    if clear.law != "discrete-gaussian" or clear.scale == faint.scale:
        return True
    return clear.scale * (faint.scale - clear.scale) / faint.scale >= _SMOOTH


def _theory(
    decided: pd.DataFrame,
    specs: Mapping[str, MechanismSpec],
    workload: Workload,
    informed: set[str],
) -> Iterator[Row]:
    read = decided[decided["attack"] == _LIKELIHOOD]
    for name, spec in specs.items():
        laws = [spec.likelihood(*key) for key in workload.tables]
        if not all(isinstance(law, NoiseSpec) for law in laws):
            continue
        epsilon = _exchange(spec, workload)
        if epsilon is None:
            row = _row("theory", name, "without", _LIKELIHOOD, "")
            yield row | {"compared": 0, "failed": 0, "verdict": "no bound"}
            continue
        for adversary, rows in read[read["protection"] == name].groupby("adversary", sort=False):
            bound = epsilon if adversary in informed else 2.0 * epsilon
            ratio = _sure_log_odds(rows)
            failed, most = int((ratio > bound * (1.0 + 1e-9)).sum()), float(ratio.max())
            yield _row("theory", name, "without", _LIKELIHOOD, str(adversary)) | {
                "compared": len(rows), "failed": failed, "value": most, "bound": bound,
                "power": bound / most if most else math.inf, "power_unit": "times what is spent",
                "verdict": "broken" if failed else "kept",
            }  # fmt: skip


def _exchange(spec: MechanismSpec, workload: Workload) -> float | None:
    """Return epsilon of one record in exchange for another; None where privacy is not pure."""
    laws = [spec.likelihood(*key) for key in workload.tables]
    moved = _MOVED.get(str(spec.parameters.get("sensitivity")))
    budgets = spec.parameters.get("budgets")
    pure = all(isinstance(one, NoiseSpec) and one.law == "discrete-laplace" for one in laws)
    if not pure or moved is None or not isinstance(budgets, Mapping):
        return None
    # As it is stated, and not as the noise has it: noise that is too small shall be found.
    try:
        parts = (Fraction(budgets[level][table]) for level, table in workload.tables)
        return moved * float(sum(parts))
    except (LookupError, TypeError, ValueError):  # another mechanism's, which means something else
        return None


def _sure_log_odds(rows: pd.DataFrame) -> FloatArray:
    """Return the least distance of log odds within their errors; 0 where these may be all."""
    ends = {}
    for name in ("posterior", "without"):
        value = rows[name].to_numpy()
        error = np.maximum(_SURE * rows[f"{name}_error"].to_numpy(), _ROUNDING)
        low, high = np.clip(value - error, 0.0, 1.0), np.clip(value + error, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            ends[name] = [np.log(p) - np.log1p(-p) for p in (low, high)]
    (low, high), (below, above) = ends["posterior"], ends["without"]
    with np.errstate(invalid="ignore"):
        return np.asarray(np.fmax(np.fmax(low - above, below - high), 0.0))


def _agreement(decided: pd.DataFrame, exact: set[str]) -> Iterator[Row]:
    groups = {str(n): rows for n, rows in decided.groupby("protection", sort=False)}
    provers: dict[str, Callable[[pd.DataFrame], tuple[int, int]]] = {
        "claims": _against_claims,
        "reconstruction": _against_records,
    }
    for name, rows in groups.items():
        posteriors = rows[rows["attack"] == _LIKELIHOOD]
        attacks = {str(a): r for a, r in rows.groupby("attack", sort=False)}
        proved = name in exact or (rows["status"] == "proved").any()  # of true counts alone
        for adversary, statements in posteriors.groupby("adversary", sort=False):
            results = {"truth": _against_truth(statements)}
            for method, compare in provers.items():
                if method in attacks and proved:
                    results[method] = compare(statements.merge(attacks[method], on=_SHARED))
            for against, (compared, failed) in results.items():
                if not compared and against == "truth":
                    continue
                yield _row("agreement", name, against, _LIKELIHOOD, str(adversary)) | {
                    "compared": compared, "failed": failed, "bound": 0.0,
                    "power": 1.0 - 0.1 ** (1.0 / compared) if compared else 1.0,
                    "power_unit": "share of statements that disagree",
                    "verdict": "disagree" if failed else "agree" if compared else "nothing proved",
                }  # fmt: skip


def _against_truth(rows: pd.DataFrame) -> tuple[int, int]:
    """Return the numbers of calculated posteriors that are 0 or 1, and of those that are wrong."""
    calculated = rows[rows["status"] == "calculated"]
    q, true = calculated["posterior"].to_numpy(), calculated["correct"].to_numpy()
    sure = (q == 0.0) | (q >= 1.0 - _ROUNDING)
    return int(sure.sum()), int((sure & (np.round(q) != true)).sum())


def _against_claims(pairs: pd.DataFrame) -> tuple[int, int]:
    """Hold posteriors against proofs: 0 and 1 there are 0 and 1 here, and what is 0 is refuted."""
    q, proof = pairs["posterior_x"].to_numpy(), pairs["posterior_y"].to_numpy()
    stated = (pairs["status_y"] != "unstated").to_numpy()
    sure = stated & ((proof == 0.0) | (proof >= 1.0 - _ROUNDING))
    wrong = sure & (np.abs(q - proof) > _ROUNDING)
    calculated = (pairs["status_x"] == "calculated").to_numpy()
    # One that is 1 has all others at 0, so that these tell it as well, and without rounding.
    wrong |= calculated & (q == 0.0) & ~(stated & (proof == 0.0))
    return len(pairs), int(wrong.sum())


def _against_records(pairs: pd.DataFrame) -> tuple[int, int]:
    """Hold posteriors against shares of records that are proved to be the only ones that fit."""
    proved = pairs[pairs["status_y"] == "proved"]
    off = np.abs(proved["posterior_x"].to_numpy() - proved["posterior_y"].to_numpy())
    error = _SURE * proved["posterior_error_x"].to_numpy() + 1e-9
    return len(proved), int((off > error).sum())


def _row(name: str, protection: str, against: str, attack: str, adversary: str) -> Row:
    """Return the names of a check; numbers that it has not are missing."""
    names = (name, protection, against, attack, adversary)
    return dict(zip(_COLUMNS[:5], names, strict=True))
