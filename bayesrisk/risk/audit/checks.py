"""Checks of an audit: calibration, ordering, privacy bounds and agreement with proofs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._validation import FloatArray
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.release import MechanismSpec, NoiseSpec, TrueCounts
from bayesrisk.risk.audit.adversaries import READINGS, is_readable
from bayesrisk.risk.audit.population import AuditQuestion
from bayesrisk.risk.audit.summary import (
    BINS,
    FLOOR,
    KEYS,
    THREE,
    audit_targets,
    clustered_mean,
    empty_frame,
    log_score,
    place_numbers,
    whole_columns,
)
from bayesrisk.risk.intervals import clustered_interval
from bayesrisk.risk.statements.claims import OPEN
from bayesrisk.tables import Workload

#: What is checked, in the order of the rows.
CHECKS = ("calibration", "ordering", "theory", "agreement")
_COLUMNS = [
    "check", "protection", "against", "attack", "adversary", "compared", "failed",
    "value", "lower", "upper", "bound", "lost", "lost_before", "verdict",
]  # fmt: skip
_LIKELIHOOD = READINGS[0]
_MOVED = {"add-remove": 2.0, "change-one": 1.0}  # times epsilon: one record for another
_SURE = 4.0  # standard errors of an estimate, so that thousands of them fail no check by chance
_ROUNDING = 1e-12
_BEYOND = 1e-9  # of a sum of probabilities beyond 1, by rounding
#: Scales s and t add up to noise whose law is off by a relative 1e-6 at most where s t / (s + t) is
#: this or more: of thousands of counts together that is less than a score can show.
_SMOOTH = math.log(2.0 / 1e-6) / (2.0 * math.pi**2)
_SHARED = ["adversary", "target", "statement"]
Row = dict[str, Any]


def audit_checks(
    statements: pd.DataFrame,
    *,
    question: AuditQuestion | None = None,
    specs: Mapping[str, MechanismSpec] | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    r"""Return the checks of an audit: calibration, ordering, privacy bounds and proofs.

    Parameters
    ----------
    statements : pandas.DataFrame
        Statements of an audit.
    question : AuditQuestion, optional
        What was published, and who asked.
    specs : mapping of str to MechanismSpec, optional
        How each protection protects, by its name; goes with the question.  Without both only
        calibration and agreement are checked, which need no more than the statements.
    confidence : float, default 0.95
        Of each calibration curve's band as a whole, and of all intervals of the ordering together;
        places are the units of both.

    Returns
    -------
    pandas.DataFrame
        ``check``, ``protection``, ``against`` (what it is held against), ``attack``,
        ``adversary``, ``compared`` (how many), ``failed`` (how many of them, or of the parts of a
        curve, are not as they should be), ``value`` with ``lower`` and ``upper``, ``bound``, and
        ``verdict``.

        - ``calibration``: ``compared`` statements; ``value`` is the mean of probability less truth
          of statements held probable (over 1/2), and of truth less probability of the others:
          above 0 where statements promise too much.  ``lost`` is the mean absolute difference of
          probability and share of true statements over the parts of the curve, weighed by their
          statements, and ``lost_before`` that of the prior.  ``inside`` or ``outside``.
        - ``ordering``: the mean log score under a protection less that under one that can be made
          from it (``against``; discrete Gaussian noise only where the rest is so large that the sum
          has the law of the other within a relative 1e-6), of the same ``compared`` targets.
          ``in order``, or ``reversed`` where even ``upper`` is below 0.
        - ``theory``: ``value`` is the largest logarithm, either way, of the odds of a statement
          after the release over those without the target's record, less four standard errors where
          they are estimates; ``bound`` is what pure differential privacy allows, and ``failed``
          statements exceed it.  ``kept`` or ``broken``; ``no bound`` of other noise.
        - ``agreement``: ``compared`` statements, ``failed`` of which disagree with what is proved:
          posteriors of 0 and 1 with the truth; posteriors with ``claims`` and with unique
          ``reconstruction`` where the audit has them.  ``agree`` or ``disagree``.

    Notes
    -----
    With epsilon in total for one record in exchange for another (twice that for one added or
    removed) the likelihoods of two records of the target differ by a factor of
    :math:`e^{\varepsilon}` at most, given all other records, which bounds the odds of an adversary
    who knows them.  For others numerator and denominator of the odds move by that factor each: the
    bound is :math:`2 \varepsilon`.  Noise of zCDP bounds no single statement.  Calibration and
    ordering hold for data drawn from the adversary's prior; of real data some loss is expected.

    Examples
    --------
    >>> rows = pd.DataFrame({
    ...     "protection": "none", "attack": "likelihood", "adversary": "outsider",
    ...     "target": ["7", "7"], "statement": ["a", "b"], "prior": [0.5, 0.5],
    ...     "without": [0.4, 0.6], "posterior": [1.0, 0.0], "correct": [False, True],
    ...     "without_error": 0.0, "posterior_error": 0.0,
    ...     "status": "calculated", "place": "1", "place_size": 12, "alike": 3, "nonmodal": False,
    ... })
    >>> found = audit_checks(rows)
    >>> found[["check", "against", "compared", "failed", "verdict"]].values.tolist()[-1]
    ['agreement', 'truth', 2, 2, 'disagree']
    """
    level = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    _check_published(question, specs)
    texts = (*KEYS, "target", "statement", "status", "place")
    numbers = (*THREE, "without_error", "posterior_error", "correct")
    whole = whole_columns(statements, "statements", texts, numbers)
    decided = whole[~whole["status"].isin(OPEN)]
    _check_beliefs(decided)
    rows = list(_calibration(decided, level))
    exact: set[str] = set()
    if question is not None and specs is not None:
        published = {n: s for n, s in specs.items() if (decided["protection"] == n).any()}
        rows += _ordering(statements, published, question.workload, level)
        exact = {n for n, spec in published.items() if _exact(spec, question.workload)}
        informed = {one.name for one in question.adversaries if one.neighbours == 1.0}
        rows += _theory(decided, published, question.workload, informed)
    rows += _agreement(decided, exact)
    return pd.DataFrame(rows, columns=_COLUMNS) if rows else empty_frame(_COLUMNS)


def _check_beliefs(decided: pd.DataFrame) -> None:
    """Refuse decided statements without a belief: they would keep whatever is checked."""
    for name in THREE:
        bad = ~decided[name].between(-_BEYOND, 1.0 + _BEYOND).to_numpy(np.bool_)
        if bad.any():
            row = decided.iloc[int(bad.argmax())]
            about = f"{row['statement']} of target {row['target']}"
            raise DataError(
                f"statements: column {name!r} must be in [0, 1] where the status is "
                f"{row['status']}, got {row[name]:g} for {shown(about)}"
            )


def _check_published(
    question: AuditQuestion | None, specs: Mapping[str, MechanismSpec] | None
) -> None:
    """Check what is said of the protections: both arguments, or none."""
    if (question is None) != (specs is None):
        there, other = ("specs", "question") if question is None else ("question", "specs")
        raise ArgumentError(f"{other} must be given where {there} is")
    if question is not None and specs is not None:
        check.instance(question, AuditQuestion, "question")
        for name, spec in check.mapping(specs, "specs").items():
            check.text(name, "name of a protection in specs")
            check.instance(spec, MechanismSpec, f"specs[{name!r}]")


def _calibration(decided: pd.DataFrame, level: float) -> Iterator[Row]:
    # What is kept for its truth alone would count as a miss of a belief that nobody holds.
    kept = decided[decided[list(THREE)].max(axis=1) >= FLOOR]
    for key, rows in kept.groupby(KEYS, sort=False):
        lost, outside, parts = _curve(rows, "posterior", level)
        promise, low, high = _promise(rows, 1.0 - (1.0 - level) / (parts + 1))
        failed = outside + int(low > 0.0 or high < 0.0)
        yield dict(zip(KEYS, key, strict=True)) | {
            "check": "calibration",
            "against": "truth",
            "compared": len(rows),
            "failed": failed,
            "value": promise,
            "lower": low,
            "upper": high,
            "bound": 0.0,
            "lost": lost,
            "lost_before": _curve(rows, "prior", level)[0],
            "verdict": "outside" if failed else "inside",
        }


def _curve(rows: pd.DataFrame, belief: str, level: float) -> tuple[float, int, int]:
    """Return the calibration that is lost, how many parts are outside of the band, and all parts.

    The band has an interval for each part and one more for what is promised, by Bonferroni.
    """
    q, hit = rows[belief].to_numpy(), rows["correct"].to_numpy()
    at = np.searchsorted(BINS[1:-1], q, side="right")
    parts = np.unique(at)
    lost, outside = 0.0, 0
    for part in parts:
        mine = at == part
        mean = float(q[mine].mean())
        low, high = clustered_interval(
            hit[mine], rows["place"][mine], confidence=1.0 - (1.0 - level) / (parts.size + 1)
        )
        outside += not low - _ROUNDING <= mean <= high + _ROUNDING
        lost += abs(float((q - hit)[mine].sum()))
    return lost / q.size, outside, parts.size


def _promise(rows: pd.DataFrame, level: float) -> tuple[float, float, float]:
    """Return the mean excess of promised over true statements, with an interval.

    Its variance is that between places, and never less than what it is where all is calibrated.
    """
    q = rows["posterior"].to_numpy()
    sign = np.sign(q - 0.5)
    off = sign * (q - rows["correct"].to_numpy())
    mean, places = float(off.mean()), place_numbers(rows["place"])
    number = int(places.max()) + 1
    if number < 2:
        return mean, -math.inf, math.inf
    target = place_numbers(rows["target"])
    expected = np.bincount(target, q) - np.bincount(target, sign * q) ** 2
    between = np.bincount(places, off - mean)
    variance = max((between**2).sum() * number / (number - 1), np.maximum(expected, 0.0).sum())
    reach = float(stdtrit(number - 1, 0.5 + level / 2.0) * np.sqrt(variance)) / q.size
    return mean, mean - reach, mean + reach


def _ordering(
    statements: pd.DataFrame, specs: Mapping[str, MechanismSpec], workload: Workload, level: float
) -> list[Row]:
    read = statements[statements["attack"].astype("str") == _LIKELIHOOD]
    if read.empty:
        return []
    targets = audit_targets(read)
    targets["score"] = log_score(targets)
    by = dict(list(targets.groupby(["protection", "adversary"], sort=False)))
    found = []
    for clear, faint in _pairs(specs, workload):
        for adversary in dict.fromkeys(targets["adversary"]):
            if (clear, adversary) in by and (faint, adversary) in by:
                both = by[clear, adversary].merge(by[faint, adversary], on=["target", "place"])
                both = both[~both["status_x"].isin(OPEN) & ~both["status_y"].isin(OPEN)]
                if len(both):
                    found.append((clear, faint, adversary, both))
    lines = []
    for clear, faint, adversary, both in found:
        one, other = both["score_x"].to_numpy(), both["score_y"].to_numpy()
        with np.errstate(invalid="ignore"):
            gain = np.where(one == other, 0.0, one - other)  # even where both are infinite
        mean, low, high = clustered_mean(
            gain, place_numbers(both["place"]), 1.0 - (1.0 - level) / len(found), bound=np.inf
        )
        reversed_ = mean == -np.inf or high < 0.0
        lines.append(
            _row("ordering", clear, faint, _LIKELIHOOD, adversary)
            | {
                "compared": len(both), "failed": int(reversed_), "value": mean, "lower": low,
                "upper": high, "bound": 0.0, "verdict": "reversed" if reversed_ else "in order",
            }
        )  # fmt: skip
    return lines


def _pairs(specs: Mapping[str, MechanismSpec], workload: Workload) -> list[tuple[str, str]]:
    """Return the pairs of protections the second of which can be made from the first.

    From true counts that is whatever has a likelihood given these, and from noise the same noise
    with larger scales, where it is that of the first and more.  From counts some of which are
    withheld nothing can be made.  Of a row of such pairs only neighbours are held against each
    other.
    """
    more: set[tuple[str, str]] = set()
    for clear, faint in itertools.permutations(specs, 2):
        laws = [
            (specs[clear].likelihood(*key), specs[faint].likelihood(*key))
            for key in workload.tables
        ]
        noisier = all(
            (isinstance(a, TrueCounts) and is_readable(b))
            or (isinstance(a, NoiseSpec) and isinstance(b, NoiseSpec) and _adds_noise(a, b))
            for a, b in laws
        )
        if noisier and any(a != b for a, b in laws):
            more.add((clear, faint))
    return [
        (a, b) for a, b in sorted(more, key=lambda p: [*map(list(specs).index, p)])
        if not any((a, c) in more and (c, b) in more for c in specs)
    ]  # fmt: skip


def _adds_noise(less: NoiseSpec, more: NoiseSpec) -> bool:
    """Return True if one noise has the law of the other plus independent noise.

    Discrete Laplace noise of a larger scale is such noise and nothing, mixed.  The sum of discrete
    Gaussians is no discrete Gaussian: by Poisson summation it is one but for a factor that is at
    most 2 exp(-2 pi^2 s t / (s + t)) off 1, for scales s and t.
    """
    if less.law != more.law or less.scale > more.scale:
        return False
    if less.law != "discrete-gaussian" or less.scale == more.scale:
        return True
    return less.scale * (more.scale - less.scale) / more.scale >= _SMOOTH


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
            failed = int((ratio > bound * (1.0 + 1e-9)).sum())
            yield _row("theory", name, "without", _LIKELIHOOD, str(adversary)) | {
                "compared": len(rows), "failed": failed, "value": float(ratio.max()),
                "bound": bound, "verdict": "broken" if failed else "kept",
            }  # fmt: skip


def _exact(spec: MechanismSpec, workload: Workload) -> bool:
    return all(spec.likelihood(*key).exact for key in workload.tables)


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
        return moved * float(sum(Fraction(budgets[at][table]) for at, table in workload.tables))
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
        found: FloatArray = np.fmax(np.fmax(low - above, below - high), 0.0)
    return found


def _agreement(decided: pd.DataFrame, exact: set[str]) -> Iterator[Row]:
    by = {str(n): rows for n, rows in decided.groupby("protection", sort=False)}
    provers: dict[str, Callable[[pd.DataFrame], tuple[int, int]]] = {
        "claims": _against_claims,
        "reconstruction": _against_records,
    }
    for name, rows in by.items():
        mine = rows[rows["attack"] == _LIKELIHOOD]
        attacks = {str(a): r for a, r in rows.groupby("attack", sort=False)}
        proved = name in exact or (rows["status"] == "proved").any()  # of true counts alone
        for adversary, asked in mine.groupby("adversary", sort=False):
            found = {"truth": _against_truth(asked)}
            for method, compare in provers.items():
                if method in attacks and proved:
                    found[method] = compare(asked.merge(attacks[method], on=_SHARED))
            for against, (compared, failed) in found.items():
                if not compared and against == "truth":
                    continue
                yield _row("agreement", name, against, _LIKELIHOOD, str(adversary)) | {
                    "compared": compared, "failed": failed, "bound": 0.0,
                    "verdict": "disagree" if failed else "agree" if compared else "nothing proved",
                }  # fmt: skip


def _against_truth(rows: pd.DataFrame) -> tuple[int, int]:
    """Return the numbers of calculated posteriors that are 0 or 1, and of those that are wrong."""
    some = rows[rows["status"] == "calculated"]
    q, true = some["posterior"].to_numpy(), some["correct"].to_numpy()
    sure = (q == 0.0) | (q >= 1.0 - _ROUNDING)
    return int(sure.sum()), int((sure & (np.round(q) != true)).sum())


def _against_claims(both: pd.DataFrame) -> tuple[int, int]:
    """Hold posteriors against proofs: 0 and 1 there are 0 and 1 here, and what is 0 is refuted."""
    q, proof = both["posterior_x"].to_numpy(), both["posterior_y"].to_numpy()
    stated = (both["status_y"] != "unstated").to_numpy()
    sure = stated & ((proof == 0.0) | (proof >= 1.0 - _ROUNDING))
    wrong = sure & (np.abs(q - proof) > _ROUNDING)
    calculated = (both["status_x"] == "calculated").to_numpy()
    # One that is 1 has all others at 0, so that these tell it as well, and without rounding.
    wrong |= calculated & (q == 0.0) & ~(stated & (proof == 0.0))
    return len(both), int(wrong.sum())


def _against_records(both: pd.DataFrame) -> tuple[int, int]:
    """Hold posteriors against shares of records that are proved to be the only ones that fit."""
    some = both[both["status_y"] == "proved"]
    off = np.abs(some["posterior_x"].to_numpy() - some["posterior_y"].to_numpy())
    error = _SURE * some["posterior_error_x"].to_numpy() + 1e-9
    return len(some), int((off > error).sum())


def _row(name: str, protection: str, against: str, attack: str, adversary: str) -> Row:
    """Return the names of a check; numbers that it has not are missing."""
    names = (name, protection, against, attack, adversary)
    return dict(zip(_COLUMNS[:5], names, strict=True))
