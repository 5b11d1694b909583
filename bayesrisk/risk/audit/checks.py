"""Checks of an audit: releases against their laws; beliefs against truth, theory and proofs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from bayesrisk._base import validation as check
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.constraints.model import Status
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.reconstruction import count_bounds
from bayesrisk.release import MechanismSpec, NoiseSpec, TrueCounts
from bayesrisk.risk.audit import measures
from bayesrisk.risk.audit.attacks import METHODS
from bayesrisk.risk.audit.constructions import constructions
from bayesrisk.risk.audit.population import AuditQuestion
from bayesrisk.risk.audit.reading import READINGS
from bayesrisk.risk.audit.release_law import DIFFERENCES, USUALLY, Row, law_checks
from bayesrisk.risk.audit.spot_checks import MISSING, PUBLIC, SPOTS
from bayesrisk.risk.intervals import clustered_interval
from bayesrisk.risk.statements.statements import OPEN
from bayesrisk.tables import PublishedTables, Workload
from bayesrisk.tables.likelihoods import UNBOUNDED
from bayesrisk.tables.published import select_rows

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
    """Return, for each place, the number of counts that its tables together prove.

    ``places`` are codes of the finest level, in order; the tables of each are read alone. Columns
    are those of ``proofs.csv`` on the reference page of audits, with sums in place of mean widths.
    ``whole`` names the attributes of a whole record. ``records`` is missing if they have more than
    2,048 combinations.
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
    """Return sums of proofs over places and mean widths of coarsened counts, by protection."""
    sums = proofs.groupby("protection", sort=False)[PROOFS].sum(skipna=False)
    for name in ("width_stated", "width"):
        sums[name] /= sums["coarsened"]
    sums.insert(0, "places", proofs.groupby("protection", sort=False).size())
    return sums.reset_index()


#: What is checked, in the order of the rows.
CHECKS = ("law", "spot", "missing", "calibration", "ordering", "theory", "agreement")
_COLUMNS = [
    "check", "protection", "against", "attack", "adversary", "belief", "compared", "failed",
    "value", "lower", "upper", "bound", "lost", "lost_before", "power", "power_unit", "verdict",
]  # fmt: skip
_LIKELIHOOD = READINGS[0]
_MOVED = {"add-remove": 2.0, "change-one": 1.0}  # times epsilon: one record for another
_SURE = 4.0  # standard errors of an estimate, so that thousands of them fail no check by chance
_ROUNDING = 1e-12
_BEYOND = 1e-9  # of a sum of probabilities beyond 1, by rounding
_ABOUT = ("nonmodal", "place_size")  # of who has no answer, where it is known
_SHARED = ["adversary", "release", "target", "statement"]
_LEVELS = 5  # kinds of checks that chance could fail share what a valid audit may fail
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
    r"""Return the checks of an audit, each with the smallest fault that it can detect.

    Parameters
    ----------
    statements : pandas.DataFrame
        Statements of an audit.
    question : AuditQuestion, optional
        What was published, and the adversaries.
    specs : mapping of str to MechanismSpec, optional
        How each protection protects, by its name; to be given with ``question``. Without both, only
        calibration, agreement and spots are checked.
    differences : pandas.DataFrame, optional
        Published less true counts (:func:`~bayesrisk.risk.audit.release_differences`), with a
        column ``protection``; needs ``specs``.
    spots : pandas.DataFrame, optional
        Statements beside their plain recomputation
        (:func:`~bayesrisk.risk.audit.spot_comparisons`).
    confidence : float, default 0.99
        Probability that no check fails by chance in an audit whose data are drawn from the prior.

    Returns
    -------
    pandas.DataFrame
        A row for each check, with the columns of ``checks.csv`` on the reference page of audits:

        - ``law``: published counts of a table are tested against their stated law.
        - ``spot``: beliefs about targets are compared with their plain recomputation; estimates
          must agree within Student's errors.
        - ``calibration``: probabilities of statements are compared with the share that is true. The
          units are places, for any number of releases.
        - ``ordering``: the mean log score of targets over releases is compared with that under a
          protection that can be made from it (see ``constructions``). The order is reversed if even
          ``upper`` is below 0.
        - ``theory``: odds of a statement after the release are compared with those without the
          target's record, less four standard errors of estimates.
        - ``agreement``: statements that contradict proofs are counted: posteriors of 0 and 1
          against the truth, and posteriors against ``claims`` and unique ``reconstruction``, if the
          audit has them.

    Notes
    -----
    Let epsilon be that for one record exchanged for another. Given all others, the likelihoods of
    two records of the target differ by a factor of at most :math:`e^{\varepsilon}`. This bounds the
    odds of an adversary who knows all others. For other adversaries, numerator and denominator each
    move by that factor, so the bound is :math:`2 \varepsilon`. Calibration and ordering hold for
    data drawn from the adversary's prior.

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
    more = [name for name in _ABOUT if name in getattr(statements, "columns", ())]
    whole = measures.whole_columns(statements, "statements", texts, (*numbers, *more))
    whole = whole.reset_index(drop=True)
    decided = whole[~whole["status"].isin(OPEN)]
    _check_beliefs(decided)
    rows: list[Row] = []
    if differences is not None:
        differences = check.frame(differences, "differences", ["protection", *DIFFERENCES, "cells"])
        rows += law_checks(differences, specs or {}, alpha=alpha)
    if spots is not None:
        spots = check.frame(spots, "spots", SPOTS)
        rows += _spots(spots, alpha)
    rows += _missing(whole, pd.DataFrame(columns=SPOTS) if spots is None else spots, alpha)
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
    """Raise if a decided statement has a belief outside [0, 1] or none."""
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
    """Yield checks of beliefs against the plain computation, within Monte Carlo errors."""
    error = spots["error"].to_numpy(np.float64)
    reach = float(stdtrit(_BATCHES - 1, 1.0 - alpha / 2.0 / max((error > 0.0).sum(), 1)))
    off = np.abs(spots["stated"].to_numpy(np.float64) - spots["again"].to_numpy(np.float64))
    # One with an error of 0 is exact; an estimate is never that exact by luck.
    wrong = ~(off <= max(reach, _SURE) * error + _AGAIN)
    against = np.where(spots["belief"].isin(PUBLIC), "public inputs", "plain way")
    spots = spots.assign(off=off, wrong=wrong, against=against)[spots["belief"] != MISSING]
    for (*key, way), rows in spots.groupby([*measures.KEYS, "against"], sort=False):
        targets = rows.groupby("target", sort=False)
        failed, n_drawn = int(targets["wrong"].any().sum()), int(targets["drawn"].any().sum())
        yield dict(zip(measures.KEYS, key, strict=True)) | {
            "check": "spot", "against": way, "compared": targets.ngroups, "failed": failed,
            "value": float(rows["off"].max()), "bound": 0.0,
            "power": 1.0 - (1.0 - _LEAK) ** n_drawn,
            "power_unit": f"chance to see what is wrong of {_LEAK:.0%} of targets",
            "verdict": "disagree" if failed else "agree",
        }  # fmt: skip


def _missing(whole: pd.DataFrame, spots: pd.DataFrame, alpha: float) -> Iterator[Row]:
    """Yield checks that people without an answer resemble those with one.

    Among n people m have no answer.  The number of them in the quarter that gains most, or unlike
    their places, is hypergeometric by chance, within places for the latter.
    """
    from scipy.stats import hypergeom  # slow to import

    read = whole[whole["attack"] == _LIKELIHOOD].assign(away=whole["status"].isin(OPEN))
    plain = spots[(spots["belief"] == MISSING) & (spots["attack"] == _LIKELIHOOD)]
    groups = list(read.groupby(["protection", "adversary"], sort=False))
    for (protection, adversary), rows in groups:
        people = rows.groupby("target", sort=False)
        missing = people["away"].any().to_numpy()
        gains = plain[(plain["protection"] == protection) & (plain["adversary"] == adversary)]
        true = rows[rows["correct"].eq(1.0) & ~rows["away"]]
        if len(gains):
            true = true[true["release"].isin(gains["release"])]
        gain = (true["posterior"] - true["without"]).groupby(true["target"]).mean().to_numpy()
        gain = np.append(gain, gains["again"].to_numpy(np.float64))
        most = gain >= np.sort(gain)[-max(gain.size // 4, 1) :].min(initial=math.inf)
        last = np.arange(gain.size) >= gain.size - len(gains)
        tests = {"gain": (most, last, np.zeros(gain.size, np.int64))}
        if "nonmodal" in rows and missing.any():
            unlike = people["nonmodal"].first().to_numpy(np.bool_)
            tests["rarity"] = unlike, missing, measures.place_numbers(people["place"].first())
        line = _row("missing", str(protection), "", _LIKELIHOOD, str(adversary))
        level = alpha / (2 * len(groups))
        for against, (marked, out, strata) in tests.items():
            p, m = _more_among(marked, out, strata), np.arange(1, marked.sum() + 1)
            enough = m[hypergeom.sf(m - 1, marked.size, marked.sum(), m) <= level]
            verdict = ("unlike" if p <= level else "alike") if out.any() else "found none"
            yield line | {
                "against": against, "compared": out.size, "failed": int(p <= level) * out.sum(),
                "value": float(marked[out].mean()) if out.any() else math.nan,
                "bound": float(marked.mean()) if marked.size else math.nan,
                "power": float(min(enough.tolist(), default=math.inf)),
                "power_unit": "people without an answer, all of the fourth that gains most"
                if against == "gain" else "people or so without an answer, all unlike their place",
                "verdict": verdict if missing.any() else "nobody",
            }  # fmt: skip
        if "place_size" in rows and missing.any():  # places that are too large have no answers
            size = people["place_size"].first().to_numpy(np.float64)
            yield line | {
                "against": "size of place", "compared": size.size, "failed": 0,
                "value": size[missing].mean(), "bound": size.mean(), "verdict": "told",
            }  # fmt: skip


def _more_among(marked: BoolArray, out: BoolArray, strata: IntArray) -> float:
    """Return the chance that as many of ``out`` are marked as here, or more, within strata."""
    from scipy.stats import hypergeom  # slow to import

    law = np.ones(1)
    for one in np.unique(strata[out]):
        inside = strata == one
        n, k, m = int(inside.sum()), int(marked[inside].sum()), int(out[inside].sum())
        law = np.convolve(law, hypergeom.pmf(np.arange(min(k, m) + 1), n, k, m))
    return float(law[int(marked[out].sum()) :].sum())


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
    """Return the calibration loss, the number of bins outside the band, and the number of bins.

    The band has an interval for each part and one more for the promised level, by Bonferroni.
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
    """Return the mean excess of promised over true statements, its interval, and detectable size.

    The variance is that between places, and at least the variance under calibration.
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


def _neighbours(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the pairs that do not follow from two others, without pairs of equals."""
    pairs = [(a, b) for a, b in pairs if (b, a) not in pairs]
    names = {name for pair in pairs for name in pair}
    return [(a, b) for a, b in pairs if not any((a, c) in pairs and (c, b) in pairs for c in names)]


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
    """Return the epsilon of exchanging one record, or None unless privacy is pure."""
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
    """Return the smallest change of log odds that the errors allow, or 0."""
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
        foreign = rows[~rows["attack"].isin([_LIKELIHOOD, *METHODS, *READINGS])]
        for (attack, adversary), statements in pd.concat([posteriors, foreign]).groupby(
            ["attack", "adversary"], sort=False
        ):
            results = {"truth": _against_truth(statements)}
            for method, compare in provers.items() if attack == _LIKELIHOOD else ():
                if method in attacks and proved:
                    results[method] = compare(statements.merge(attacks[method], on=_SHARED))
            for against, (compared, failed) in results.items():
                if not compared and against == "truth":
                    continue
                yield _row("agreement", name, against, str(attack), str(adversary)) | {
                    "compared": compared, "failed": failed, "bound": 0.0,
                    "power": 1.0 - 0.1 ** (1.0 / compared) if compared else 1.0,
                    "power_unit": "share of statements that disagree",
                    "verdict": "disagree" if failed else "agree" if compared else "nothing proved",
                }  # fmt: skip


def _against_truth(rows: pd.DataFrame) -> tuple[int, int]:
    """Return the numbers of computed posteriors that are 0 or 1, and of wrong ones among them."""
    calculated = rows[rows["status"].isin(["calculated", "proved"])]
    q, true = calculated["posterior"].to_numpy(), calculated["correct"].to_numpy()
    sure = (q == 0.0) | (q >= 1.0 - _ROUNDING)
    return int(sure.sum()), int((sure & (np.round(q) != true)).sum())


def _against_claims(pairs: pd.DataFrame) -> tuple[int, int]:
    """Return the numbers of posteriors with a proof to compare, and of contradictions."""
    q, proof = pairs["posterior_x"].to_numpy(), pairs["posterior_y"].to_numpy()
    stated = (pairs["status_y"] != "unstated").to_numpy()
    sure = stated & ((proof == 0.0) | (proof >= 1.0 - _ROUNDING))
    wrong = sure & (np.abs(q - proof) > _ROUNDING)
    calculated = (pairs["status_x"] == "calculated").to_numpy()
    # One that is 1 has all others at 0, so that these tell it as well, and without rounding.
    wrong |= calculated & (q == 0.0) & ~(stated & (proof == 0.0))
    return len(pairs), int(wrong.sum())


def _against_records(pairs: pd.DataFrame) -> tuple[int, int]:
    """Return the numbers of posteriors about proved unique records, and of those that differ."""
    proved = pairs[pairs["status_y"] == "proved"]
    off = np.abs(proved["posterior_x"].to_numpy() - proved["posterior_y"].to_numpy())
    error = _SURE * proved["posterior_error_x"].to_numpy() + 1e-9
    return len(proved), int((off > error).sum())


def _row(name: str, protection: str, against: str, attack: str, adversary: str) -> Row:
    """Return a row that names a check; numbers that it lacks stay missing."""
    names = (name, protection, against, attack, adversary)
    return dict(zip(_COLUMNS[:5], names, strict=True))
