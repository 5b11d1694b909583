"""Questions as linear functions of the unknown counts, and their answers before the release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bayesrisk import _validation as check
from bayesrisk._types import FloatArray, IntArray
from bayesrisk.inference.microdata._strata import Stratum
from bayesrisk.inference.microdata.classes import of_classes
from bayesrisk.inference.microdata.questions import RecordQuestion
from bayesrisk.inference.microdata.system import MicrodataSystem

_SAME = 1e-12  # relative difference of shares that rounding explains


@dataclass(frozen=True)
class Asked:
    """What every question counts, and among what.

    Attributes
    ----------
    cells : scipy.sparse.csr_array of int64, shape (functions, places * classes)
        The functions, each once.
    row : ndarray of int64, shape (questions, 2)
        The functions of every question: the records that it counts, and those among which.
    known : ndarray of int64, shape (questions, 2)
        What known people of a known class add to them.
    """

    cells: sp.csr_array
    row: IntArray
    known: IntArray


def asked_of(questions: Sequence[RecordQuestion], system: MicrodataSystem) -> Asked:
    """Return the questions as functions of the counts of all classes in all places."""
    places, width = [str(p) for p in system.places], system.classes.size
    number = {p: i for i, p in enumerate(places)}
    vectors: dict[str, IntArray] = {}
    seen: dict[tuple[str, ...], int] = {}
    columns: list[IntArray] = []
    row = np.zeros((len(questions), 2), np.int64)
    for i, question in enumerate(questions):
        if question.place is not None:
            check.choice(question.place, "place", tuple(places))
        where, group = str(question.where), str(question.among or {})
        for text, condition in ((where, question.where), (group, question.among or {})):
            if text not in vectors:
                vectors[text] = of_classes(condition, system.classes)
        for j, texts in enumerate(((where, group), (group, group))):
            key = (*texts, question.place or "")
            if key not in seen:
                seen[key] = len(columns)
                kinds = np.flatnonzero(vectors[texts[0]] * vectors[texts[1]])
                at = range(len(places)) if question.place is None else [number[question.place]]
                columns.append(np.concatenate([p * width + kinds for p in at]))
            row[i, j] = seen[key]
    ends = np.cumsum([0, *(c.size for c in columns)])
    flat = np.concatenate([*columns, np.zeros(0, np.int64)])
    cells = sp.csr_array(
        (np.ones(flat.size, np.int64), flat, ends), shape=(len(columns), len(places) * width)
    )
    every = system.settled(cells)
    others = every - np.asarray(cells @ system.known.named.toarray().ravel(), np.int64)
    target = np.array([q.among is not None for q in questions], np.bool_)
    return Asked(cells, row, np.where(target[:, None], others[row], every[row]))


def before(
    questions: Sequence[RecordQuestion],
    asked: Asked,
    system: MicrodataSystem,
    strata: list[list[Stratum]] | None,
) -> FloatArray:
    """Return the answers given what is known alone; NaN where that does not say."""
    if strata is None:
        return np.full(len(questions), np.nan)
    width = system.classes.size
    sizes: list[list[FloatArray | None]] = [
        [_size_law(s, system) for s in of_place] for of_place in strata
    ]
    number = {str(p): i for i, p in enumerate(system.places)}
    found = np.empty(len(questions))
    for i, question in enumerate(questions):
        at = range(len(strata)) if question.place is None else [number[question.place]]
        part, whole = (_indices(asked.cells, r) % width for r in asked.row[i])
        if question.place is None:
            part, whole = np.unique(part), np.unique(whole)
        both = [
            (float(s.mass[part].sum()), float(s.mass[whole].sum()), float(s.mass.sum()), law)
            for p in at
            for s, law in zip(strata[p], sizes[p], strict=True)
        ]
        if question.among is not None:
            found[i] = _share(both, asked.known[i])
        elif any(law is None for *_, law in both):
            found[i] = np.nan
        elif question.at_least is None:
            found[i] = asked.known[i, 0] + sum(
                a / s * _mean(law) for a, _, s, law in both if law is not None and s
            )
        else:
            need = max(question.at_least - int(asked.known[i, 0]), 0)
            found[i] = _tail(both, need, dirichlet=system.prior.concentration is not None)
    return found


def _indices(matrix: sp.csr_array, r: int) -> IntArray:
    found = matrix.indices[matrix.indptr[r] : matrix.indptr[r + 1]].astype(np.int64)
    return found


def _size_law(stratum: Stratum, system: MicrodataSystem) -> FloatArray | None:
    """Return the law of the number of people of a stratum; None where there is none."""
    size = system.prior.size
    if stratum.count is not None:
        certain: FloatArray = np.eye(1, stratum.count + 1, stratum.count)[0]
        return certain
    if not stratum.mass.any():
        return np.ones(1)
    if size is None:
        return None
    total = float(system.classes.mass(system.prior.shares).sum())
    if system.prior.concentration is not None:
        settled = system.known.settled[[stratum.place], :].sum()
        total = total * system.prior.concentration + float(settled)
    most = size.size - 1 - stratum.known
    if most < 0:
        return None
    value = stratum.log_size(most, system.prior, total)
    law: FloatArray = np.exp(value - value.max())
    law /= law.sum()
    return law


def _mean(law: FloatArray) -> float:
    return float(np.arange(law.size) @ law)


def _share(both: list[tuple[float, float, float, FloatArray | None]], known: IntArray) -> float:
    """Return the share of a target's kind among its group."""
    inside = [(a / w, law, w / s) for a, w, s, law in both if w > 0.0]
    if any(law is None for _, law, _ in inside):  # the same share, however many they are
        first = inside[0][0]
        same = all(abs(share - first) <= _SAME * first for share, _, _ in inside)
        return first if same and not known[1] else float("nan")
    group = known[1] + sum(w * _mean(law) for _, law, w in inside if law is not None)
    part = known[0] + sum(a * w * _mean(law) for a, law, w in inside if law is not None)
    return float(part / group) if group > 0.0 else float("nan")


def _tail(
    both: list[tuple[float, float, float, FloatArray | None]], need: int, *, dirichlet: bool
) -> float:
    """Return the probability of so many people or more."""
    from scipy.stats import betabinom, binom  # slow to import

    every = np.ones(1)[:need]
    for a, _, s, size in both:  # no more than the question needs
        if size is None or not s or not need:
            continue
        part, n = min(a / s, 1.0), np.flatnonzero(size)
        counts = np.arange(min(need, int(n[-1]) + 1))[:, None]
        if not dirichlet or part in (0.0, 1.0):
            one = binom.pmf(counts, n, part)
        else:
            one = betabinom.pmf(counts, n, a, s - a)
        every = np.convolve(every, np.asarray(one) @ size[n])[:need]
    return float(max(0.0, 1.0 - every.sum()))
