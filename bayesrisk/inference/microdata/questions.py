"""Questions about a place's records, answers from draws with errors, and rankings of records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy import special

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk._base.validation import FloatArray, IntArray, TextArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.microdata.chains import LEAST_ESS, MOST_R_HAT, Draws
from bayesrisk.inference.microdata.prior import (
    Condition,
    check_codes,
    class_indicator,
    condition_factors,
)
from bayesrisk.inference.microdata.system import MicrodataSystem, Stratum, log_rising
from bayesrisk.inference.sampling.chains import Samples, effective_size, mean_r_hat
from bayesrisk.tables import HouseholdLink, Table
from bayesrisk.tables.cells import CellSpace
from bayesrisk.tables.linked import MEMBERS
from bayesrisk.tables.schema import Schema


@dataclass(frozen=True, eq=False)
class RecordQuestion:
    r"""A question about the records of a place: their number, or whether the target is among them.

    - ``among``: does the target, known to satisfy ``among``, also satisfy ``where``? Let X records
      satisfy both, and G satisfy ``among``: the answer is E[X] / E[G]. A place with more such
      records is more probably the target's. If the release gives G, the answer is E[X / G]. Records
      known in full (:class:`KnownRecords`) are other people's, and do not count.
    - ``at_least`` m: do m or more records satisfy ``where``?
    - neither: how many records satisfy it? The answer is the expected number.

    Attributes
    ----------
    where : mapping of str to iterable of int
        Codes that a record may have, for some of the attributes.
    among : mapping of str to iterable of int, optional
        Known attributes of the target, in the same form; an empty mapping if only the place is
        known.
    at_least : int, optional
        Number of records, at least 1.
    place : str, optional
        Code of a finest place; by default all finest places together.
    name : str, optional
        Name of the question in results.
    """

    where: Condition
    among: Condition | None = None
    at_least: int | None = None
    place: str | None = None
    name: str = ""

    def __post_init__(self) -> None:
        for name in ("where", "among"):
            condition = getattr(self, name)
            if condition is not None:
                object.__setattr__(self, name, check_codes(condition, name))
        if self.at_least is not None:
            if self.among is not None:
                raise ArgumentError("at_least must not be given together with among")
            object.__setattr__(self, "at_least", check.integer(self.at_least, "at_least", lower=1))
        if self.place is not None:
            check.text(self.place, "place")
        if not isinstance(self.name, str) or self.name:
            check.text(self.name, "name")

    def __str__(self) -> str:
        if self.name:
            return self.name
        text = _condition_text(self.where)
        if self.among is not None:
            return f"{text} among {_condition_text(self.among)}"
        return text if self.at_least is None else f"at least {self.at_least}: {text}"

    def weights(self, classes: CellSpace) -> tuple[IntArray, IntArray]:
        """Return two indicators for each class: its records are counted, and are in the group."""
        group = class_indicator(self.among or {}, classes)
        return class_indicator(self.where, classes) * group, group

    @property
    def _texts(self) -> tuple[str, str]:
        """The two conditions as text, to recognise equal ones."""
        return str(self.where), str(self.among or {})

    def tables(self, schema: Schema) -> list[Table]:
        """Return each condition of the question as a table with one cell."""
        conditions = [self.where] if self.among is None else [self.where, self.among]
        return [
            Table("condition", ("fulfilled",), condition_factors(condition, schema))
            for condition in conditions
        ]


@dataclass(frozen=True, eq=False)
class MemberQuestion(RecordQuestion):
    r"""A question about the persons who live in the households of a place.

    The three questions are those of :class:`RecordQuestion`, asked about persons. ``where`` and
    ``among`` are conditions on attributes of persons, and a household counts with as many members
    as satisfy them. The answer about a target is E[X] / E[G] with X and G numbers of persons. Given
    the households, each person of the group is equally probably the target.

    Attributes
    ----------
    where, among, at_least, place, name
        As for :class:`RecordQuestion`, with conditions on attributes of persons.
    link : HouseholdLink
        Link of persons to the households of the release.
    """

    link: HouseholdLink = field(kw_only=True, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check.instance(self.link, HouseholdLink, "link")
        for condition in (self.where, self.among or {}):
            condition_factors(condition, self.link.persons)

    def __str__(self) -> str:
        return self.name or f"members: {super().__str__()}"

    @property
    def _texts(self) -> tuple[str, str]:
        where, group = super()._texts
        return f"members {where}", f"members {group}"

    def kinds(self) -> tuple[IntArray, IntArray]:
        """Return for each kind of person 1 if counted, and 1 if in the group."""
        cells = self.link.persons.codes(np.arange(self.link.persons.size))
        target, group = np.ones((2, self.link.persons.size), np.int64)
        for indicator, condition in ((target, self.where), (group, self.among or {})):
            for name, codes in condition.items():
                indicator *= np.isin(cells[name], list(codes))
        return target * group, group

    def weights(self, classes: CellSpace) -> tuple[IntArray, IntArray]:
        """Return for each class the household members counted, and those in the group."""
        code = classes.schema.indices(classes.representatives())[MEMBERS]
        part, group = (self.link.members @ kinds for kinds in self.kinds())
        return part[code], group[code]

    def tables(self, schema: Schema) -> list[Table]:
        """Return one table that counts the household members counted and those in the group."""
        if schema != self.link.schema:
            raise ArgumentError(f"link must be of the schema of the release, {schema.name!r}")
        counts = np.array([self.link.members @ kinds for kinds in self.kinds()])
        return [Table("members", ("asked", "group"), {MEMBERS: counts})]


def _condition_text(condition: Condition) -> str:
    return ", ".join(f"{a} {'/'.join(map(str, v))}" for a, v in condition.items()) or "anybody"


# Questions as linear functions of the unknown counts, and their answers before the release.


_SAME = 1e-12  # relative difference of shares that rounding explains


@dataclass(frozen=True)
class QuestionFunctions:
    """Questions as linear functions of counts: the records asked for, and their group."""

    cells: sp.csr_array  # (functions, places * classes): the functions, each once
    # (questions, 2): the functions of every question: the records that it counts, and those among
    # which
    row: IntArray
    constants: IntArray  # (questions, 2): what known people of a known class add to them


def question_functions(
    questions: Sequence[RecordQuestion], system: MicrodataSystem
) -> QuestionFunctions:
    """Return the questions as linear functions of all classes' counts in all places."""
    places, width = [str(p) for p in system.places], system.classes.size
    number = {p: i for i, p in enumerate(places)}
    function_numbers: dict[tuple[str, ...], int] = {}
    columns: list[IntArray] = []
    values: list[IntArray] = []
    row = np.zeros((len(questions), 2), np.int64)
    for i, question in enumerate(questions):
        if question.place is not None:
            check.choice(question.place, "place", tuple(places))
        kind, group = question._texts
        keys = [(*texts, question.place or "") for texts in ((kind, group), (group, group))]
        if any(key not in function_numbers for key in keys):
            place_numbers = (
                range(len(places)) if question.place is None else [number[question.place]]
            )
            for key, weights in zip(keys, question.weights(system.classes), strict=True):
                if key in function_numbers:
                    continue
                function_numbers[key] = len(columns)
                kinds = np.flatnonzero(weights)
                columns.append(np.concatenate([p * width + kinds for p in place_numbers]))
                values.append(np.tile(weights[kinds], len(place_numbers)))
        row[i] = [function_numbers[key] for key in keys]
    ends = np.cumsum([0, *(c.size for c in columns)])
    flat, multiplicity = (
        np.concatenate([*part, np.zeros(0, np.int64)]) for part in (columns, values)
    )
    cells = sp.csr_array((multiplicity, flat, ends), shape=(len(columns), len(places) * width))
    settled = system.settled(cells)
    anonymous = settled - np.asarray(cells @ system.knowledge.named.toarray().ravel(), np.int64)
    target = np.array([q.among is not None for q in questions], np.bool_)
    return QuestionFunctions(cells, row, np.where(target[:, None], anonymous[row], settled[row]))


def prior_answers(
    questions: Sequence[RecordQuestion], functions: QuestionFunctions, system: MicrodataSystem
) -> FloatArray:
    """Return the answers under the prior and knowledge alone, NaN where these do not decide."""
    strata = system.strata
    if strata is None:
        return np.full(len(questions), np.nan)
    width = system.classes.size
    sizes: list[list[FloatArray | None]] = [
        [_size_law(s, system) for s in place_strata] for place_strata in strata
    ]
    number = {str(p): i for i, p in enumerate(system.places)}
    answers = np.empty(len(questions))
    for i, question in enumerate(questions):
        place_numbers = range(len(strata)) if question.place is None else [number[question.place]]
        part, whole = (_class_weights(functions.cells, r, width) for r in functions.row[i])
        terms = [
            (float(s.mass @ part), float(s.mass @ whole), float(s.mass.sum()), law)
            for p in place_numbers
            for s, law in zip(strata[p], sizes[p], strict=True)
        ]
        if question.among is not None:
            answers[i] = _share(terms, functions.constants[i])
        elif any(law is None for *_, law in terms):
            answers[i] = np.nan
        elif question.at_least is None:
            answers[i] = functions.constants[i, 0] + sum(
                a / s * _mean(law) for a, _, s, law in terms if law is not None and s
            )
        elif part.max(initial=0) > 1:  # no binomial law
            answers[i] = np.nan
        else:
            need = max(question.at_least - int(functions.constants[i, 0]), 0)
            answers[i] = _tail(terms, need, dirichlet=system.prior.concentration is not None)
    return answers


def _class_weights(matrix: sp.csr_array, r: int, width: int) -> IntArray:
    """Return the weight of every class in one row, which is the same in all its places."""
    part = slice(matrix.indptr[r], matrix.indptr[r + 1])
    weights = np.zeros(width, np.int64)
    weights[matrix.indices[part] % width] = matrix.data[part]
    return weights


def _size_law(stratum: Stratum, system: MicrodataSystem) -> FloatArray | None:
    """Return the law of a stratum's number of people, or None if the prior has none."""
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
        settled = system.knowledge.settled[[stratum.place], :].sum()
        total = total * system.prior.concentration + float(settled)
    most = size.size - 1 - stratum.complement
    if most < 0:
        return None
    value = stratum.log_size(most, system.prior, total)
    law: FloatArray = np.exp(value - value.max())
    law /= law.sum()
    return law


def _mean(law: FloatArray) -> float:
    return float(np.arange(law.size) @ law)


def _share(
    terms: list[tuple[float, float, float, FloatArray | None]], constants: IntArray
) -> float:
    """Return the expected share of the asked-for kind in the group; NaN if undetermined."""
    inside = [(a / w, law, w / s) for a, w, s, law in terms if w > 0.0]
    if any(law is None for _, law, _ in inside):  # the same share, however many they are
        first = inside[0][0]
        equal = all(abs(share - first) <= _SAME * first for share, _, _ in inside)
        return first if equal and not constants[1] else float("nan")
    group = constants[1] + sum(w * _mean(law) for _, law, w in inside if law is not None)
    part = constants[0] + sum(a * w * _mean(law) for a, law, w in inside if law is not None)
    return float(part / group) if group > 0.0 else float("nan")


def _tail(
    terms: list[tuple[float, float, float, FloatArray | None]], need: int, *, dirichlet: bool
) -> float:
    """Return the probability that at least ``need`` people fulfil a condition."""
    from scipy.stats import binom  # slow to import

    every = np.ones(1)[:need]
    for a, _, s, size in terms:  # no more than the question needs
        if size is None or not s or not need:
            continue
        part, n = min(a / s, 1.0), np.flatnonzero(size)
        counts = np.arange(min(need, int(n[-1]) + 1))
        if not dirichlet or part in (0.0, 1.0):
            one = np.asarray(binom.pmf(counts, n[:, None], part))
        else:
            one = _beta_binomial(counts.size, n, np.array([a]), np.array([s - a]))[0]
        every = np.convolve(every, size[n] @ one)[:need]
    return float(max(0.0, 1.0 - every.sum()))


def _beta_binomial(many: int, n: IntArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the beta-binomial probabilities of 0, 1, ... ``many - 1`` records of a kind.

    The shape is (kinds, n, many); a are the Dirichlet parameters of kinds, b those of the rest.
    """
    k, most = np.arange(many), int(n.max(initial=0))
    rest, log = n[:, None] - k, special.gammaln(np.arange(most + 1.0) + 1.0)
    fits = rest >= 0
    rest = np.where(fits, rest, 0)
    value = log_rising(a, most)[:, np.minimum(k, most)][:, None] + log_rising(b, most)[:, rest]
    value = value - log_rising(a + b, most)[:, n][..., None]
    value = value + log[n][:, None] - log[np.minimum(k, most)] - log[rest]
    probability: FloatArray = np.where(fits, np.exp(value), 0.0)
    return probability


# Answers of draws: their errors and intervals, and which are undecided.
#
# An answer is a mean of draws, or a ratio E[X] / E[G] of two means, whose error is that of the mean
# of the linearised draws.  Its effective size is the smaller of two: of the draws of that mean,
# without ranks, and of the looks at the target, p (1 - p) / error^2, the number of independent
# people of the group who would tell as much.  Where every draw says yes or no both are the same;
# in a group that is empty in most draws, few of them are looks.


_COLUMNS = ["posterior", "error", "lower", "upper", "status", "r_hat", "ess"]


@dataclass(frozen=True)
class AnswerDraws:
    """Draws of one question, whose error is the answer's, and the answer."""

    draws: FloatArray
    value: float
    relevance: float  # part of the draws that is about the question at all
    share: bool


def estimate_answers(
    questions: Sequence[RecordQuestion], functions: QuestionFunctions, draws: Draws
) -> pd.DataFrame:
    """Return a frame of each answer with error, interval, status, R-hat and effective size."""
    rows = zip(questions, functions.row, functions.constants, strict=True)
    return pd.DataFrame(
        [estimate_answer(_answer_draws(*row, draws.counts), draws) for row in rows],
        columns=_COLUMNS,
    )


def _answer_draws(
    question: RecordQuestion, row: IntArray, constants: IntArray, counts: IntArray
) -> AnswerDraws:
    part, whole = (counts[:, :, r] + k for r, k in zip(row, constants, strict=True))
    if question.among is not None:
        return share_draws(part.astype(float), whole.astype(float))
    draws: FloatArray = part.astype(float)
    if question.at_least is not None:
        draws = (part >= question.at_least).astype(float)
    return AnswerDraws(draws, float(draws.mean()), 1.0, question.at_least is not None)


def share_draws(part: FloatArray, whole: FloatArray) -> AnswerDraws:
    """Return a share's value and draws from draws of part and whole, each (chains, draws)."""
    mean = float(whole.mean())
    value, relevance = ratio(float(part.mean()), mean), float(np.mean(whole > 0))
    # Linearised: the error of a ratio of means is that of these draws.
    draws = value + (part - value * whole) / mean if relevance else 0.0 * whole
    return AnswerDraws(draws, value, relevance, True)


def estimate_answer(
    answer: AnswerDraws, draws: Draws, *, most: float = math.inf
) -> tuple[float, float, float, float, str, float, float]:
    """Return an answer's value, error, interval, status, R-hat and effective size (<= ``most``)."""
    diagnostics, error = draws.watched, 0.0
    if np.isfinite(answer.value) and not np.all(answer.draws == answer.draws.flat[0]):
        r_hat, ess = mean_r_hat(answer.draws), float(effective_size(answer.draws))
        error = float(answer.draws.std(ddof=1)) / math.sqrt(ess)
        if answer.share:
            ess = min(ess, answer.value * (1.0 - answer.value) / error**2)
    else:  # it never changed: nothing but the state's own numbers says how much that means
        r_hat = max((n.r_hat for n in diagnostics), default=np.nan)
        ess = answer.relevance * min((min(n.bulk, n.tail) for n in diagnostics), default=0.0)
    ess = min(ess, most)
    agree = r_hat <= MOST_R_HAT or error == 0.0  # of what is watched, if nothing changed
    if not (draws.agreed and agree and ess >= LEAST_ESS):
        return np.nan, np.nan, np.nan, np.nan, "undecided", r_hat, ess
    low, high = answer_interval(answer.value, error, ess, share=answer.share, leap=draws.leap)
    return answer.value, error, low, high, "sampled", r_hat, ess


def answer_interval(
    value: float, error: float, ess: float, *, share: bool, level: float = 0.95, leap: int = 1
) -> tuple[float, float]:
    """Return the interval of an answer, given its standard error and effective draws.

    A normal law is wrong for rare events. So the interval of a share is Clopper and Pearson's, for
    as many trials as have this error. These are the effective draws, if every draw is 0 or 1. Draws
    that all agree still leave room for an event that so many trials may miss. It changes a share by
    1 and a number by ``leap``.
    """
    tail = 0.5 * (1.0 - level)
    if error == 0.0:
        rest = float(-np.expm1(np.log(tail) / ess)) * (1 if share else leap)
        return max(value - rest, 0.0), min(value + rest, 1.0) if share else value + rest
    if not share:
        reach = float(-special.ndtri(tail)) * error
        return max(value - reach, 0.0), value + reach
    p = min(value, 1.0)
    trials = p * (1.0 - p) / error**2
    events, failures = p * trials, (1.0 - p) * trials
    low = float(special.betaincinv(events, failures + 1.0, tail)) if events else 0.0
    high = float(special.betaincinv(events + 1.0, failures, 1.0 - tail)) if failures else 1.0
    return low, high


def ratio(part: float, whole: float) -> float:
    """Return part / whole, or NaN if the whole is 0."""
    return float(part / whole) if whole > 0.0 else float("nan")


# Which records are there most probably, and how many to expect.


_ROOM = 2**25  # numbers that the tallies of all chains may hold


@dataclass(frozen=True)
class GroupLaws:
    """Distributions of the counts of groups of exchangeable records."""

    # for every chain (one if exact) and group, the probability of 0, 1, ... records
    laws: list[list[FloatArray]]
    group: IntArray  # group of every unknown; -1 where there is nobody
    mass: FloatArray  # share or Dirichlet parameter of every group
    weight: FloatArray  # part of it that every unknown has
    dirichlet: bool  # whether these are Dirichlet parameters

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.group.size

    def at_least(self, k: int, unknowns: IntArray) -> FloatArray:
        """Return P(x >= k) for some unknowns, shape (chains, unknowns)."""
        probability = np.zeros((len(self.laws), unknowns.size))
        order = np.argsort(self.group[unknowns], kind="stable")
        groups, starts = np.unique(self.group[unknowns][order], return_index=True)
        for g, members in zip(groups, np.split(order, starts[1:]), strict=True):
            if g < 0:
                continue
            n = np.arange(k, max(laws[g].size for laws in self.laws))
            weights, inverse = np.unique(self.weight[unknowns[members]], return_inverse=True)
            tails = self._tails(k, n, weights, float(self.mass[g]))
            for chain, laws in enumerate(self.laws):
                law = laws[g][k:]
                probability[chain, members] = (law @ tails[: law.size])[inverse]
        return probability

    def _tails(self, k: int, n: IntArray, weights: FloatArray, mass: float) -> FloatArray:
        """Return P(x >= k | n) for unknowns with these weights in a group of n records."""
        from scipy.stats import binom  # slow to import

        probability = np.ones((n.size, weights.size))
        part = np.flatnonzero(weights < 1.0)
        if part.size and n.size:
            w = weights[part]
            if self.dirichlet:
                below = _beta_binomial(k, n, mass * w, mass * (1.0 - w)).sum(axis=-1)
                probability[:, part] = np.maximum(0.0, 1.0 - below.T)
            else:
                probability[:, part] = binom.sf(k - 1, n[:, None], w)
        return probability


@dataclass
class Tally:
    """For every unknown, the number of draws of each chain with 1, 2, ... records or more."""

    chains: int  # number of chains and of unknowns
    size: int

    def __post_init__(self) -> None:
        self._exceedances: list[list[IntArray]] = [[] for _ in range(self.chains)]
        self._draws = [0] * self.chains
        self._most = max(1, _ROOM // (self.chains * max(self.size, 1)))
        self._total = np.zeros((self.chains, self.size))

    @property
    def mean(self) -> FloatArray:
        """Mean count of every unknown."""
        average: FloatArray = self._total.sum(axis=0) / sum(self._draws)
        return average

    def add(self, chain: int, counts: IntArray) -> None:
        """Add the draws (states, unknowns) of a chain to the tally."""
        self._draws[chain] += len(counts)
        self._total[chain] += counts.sum(axis=0)
        exceedances, unknowns, k = self._exceedances[chain], np.flatnonzero(counts.any(axis=0)), 0
        values = counts[:, unknowns]
        while unknowns.size and k < self._most:
            if k == len(exceedances):
                exceedances.append(np.zeros(self.size, np.int32))
            exceedances[k][unknowns] += (values > k).sum(axis=0, dtype=np.int32)
            k += 1
            more = (values > k).any(axis=0)
            unknowns, values = unknowns[more], values[:, more]

    def at_least(self, k: int, unknowns: IntArray) -> FloatArray:
        """Return P(x >= k) for some unknowns, shape (chains, unknowns)."""
        probability = np.zeros((self.chains, unknowns.size))
        for chain, exceedances in enumerate(self._exceedances):
            if k <= len(exceedances):
                probability[chain] = exceedances[k - 1][unknowns] / self._draws[chain]
        return probability


def rank_records(
    law: GroupLaws | Tally,
    system: MicrodataSystem,
    unknown_cell: IntArray,
    names: list[str],
    top: int,
) -> pd.DataFrame:
    """Return the most probable records: class, number, probability and standard error."""
    left = np.arange(law.size)
    parts: list[tuple[IntArray, IntArray, FloatArray, FloatArray]] = []
    best, k = np.zeros(0), 1
    while left.size:
        probabilities = law.at_least(k, left)
        value = probabilities.mean(axis=0)
        error = np.zeros(value.size)
        if len(probabilities) > 1:
            error = probabilities.std(axis=0, ddof=1) / np.sqrt(len(probabilities))
        positive = np.flatnonzero(value > 0.0)
        parts.append((left[positive], np.full(positive.size, k), value[positive], error[positive]))
        best = np.sort(np.concatenate([best, value[positive]]))[-top:]
        # One more of a kind is never the more probable.
        limit = best[0] if best.size == top else 0.0
        left, k = left[value > limit], k + 1
    unknown, number, value, error = (np.concatenate([part[i] for part in parts]) for i in range(4))
    order = np.lexsort((number, unknown, -value))[:top]
    frame = _frame(system, unknown_cell[unknown[order]])
    frame["known"] = [names[u] for u in unknown[order]]
    return frame.assign(number=number[order], probability=value[order], error=error[order])


def expected_frame(
    system: MicrodataSystem, unknown_cell: IntArray, mean: FloatArray
) -> pd.DataFrame:
    """Return a row for each possible class, with its expected number of records."""
    means = np.bincount(unknown_cell, mean, minlength=system.cells)
    means += system.knowledge.settled.toarray().ravel()
    possible = np.flatnonzero(means > 0.0)
    return _frame(system, possible).assign(expected=means[possible])


def _frame(system: MicrodataSystem, cells: IntArray) -> pd.DataFrame:
    classes = system.classes
    place, cls = np.divmod(cells, classes.size)
    places: TextArray = system.places[place]
    frame = pd.DataFrame({"place": places})
    for name, bins in zip(classes.schema.names, np.unravel_index(cls, classes.shape), strict=True):
        frame[name] = np.array(_codes(classes, name))[bins]
    return frame


def _codes(classes: CellSpace, name: str) -> list[str]:
    attribute = classes.schema.attribute(name)
    texts = []
    for b in range(int(classes.bins[name].max()) + 1):
        codes = np.flatnonzero(classes.bins[name] == b) + attribute.first
        runs = np.split(codes, np.flatnonzero(np.diff(codes) > 1) + 1)
        texts.append(",".join(str(r[0]) if r.size == 1 else f"{r[0]}-{r[-1]}" for r in runs))
    return texts


# What a release says about the records of a place, as it is returned.


@dataclass(frozen=True)
class PosteriorLaw:
    """Every unknown's law, with its place, class and name of known people."""

    ranking: GroupLaws | Tally
    system: MicrodataSystem
    unknown_cell: IntArray
    names: list[str]
    agreed: bool = True


@displayed
@dataclass(frozen=True)
class MicrodataPosterior:
    """Posterior of the records of a place given a release.

    Attributes
    ----------
    answers : pandas.DataFrame
        One row for each question: ``question``, ``prior``, ``posterior``, ``error`` (0 if exact),
        ``lower``, ``upper``, ``status``, ``r_hat`` and ``ess``. The ends are the 95 % interval of
        the Monte Carlo error, Clopper and Pearson's for probabilities. The status is ``exact``,
        ``sampled``, or ``undecided`` if chains do not agree, without a posterior.
    expected : pandas.DataFrame
        One row for each possible class of records: ``place``, a column for each attribute (its
        codes, ``a-b`` for a range), and ``expected``, the posterior mean of their number. That is
        NaN if chains do not agree.
    engine : str
        ``exact``, ``people`` or ``lattice``.
    reason : str
        Reason for this engine.
    points : int
        Pairs of sums weighed for an exact law; otherwise 0.
    samples : Samples or None
        Draws of the numbers in the questions, for ArviZ; None if the law is exact, or if they would
        be more than 2^25 numbers.
    """

    answers: pd.DataFrame
    expected: pd.DataFrame
    engine: str
    reason: str
    points: int
    samples: Samples | None
    _law: PosteriorLaw = field(repr=False)

    def ranked_records(self, top: int = 100) -> pd.DataFrame:
        """Return the ``top`` most probable records.

        For each class c of a place and k = 1, 2, ..., it is the probability that the place has at
        least k records of the class. An adversary who lists records of probability at least q is
        right at that rate for each. Columns are ``place``, one for each attribute as in
        ``expected``, ``known``, ``number`` k, ``probability`` and ``error``. ``known`` gives the
        known attributes of known people and is empty for others. ``error`` is 0 if exact, else the
        standard error between chains. People whose class is known are left out, and do not count in
        k. Draws of chains that do not agree are refused. Chains count up to k = 2^25 / (chains *
        classes of all places), at least 1.
        """
        check.integer(top, "top", lower=1)
        if not self._law.agreed:
            raise ArgumentError("draws must be more for a ranking: the chains do not agree")
        law = self._law
        return rank_records(law.ranking, law.system, law.unknown_cell, law.names, top)

    def _answer(self) -> list[str]:
        lines = [f"{len(self.answers)} questions answered, {self.engine}: {self.reason}."]
        if not self._law.agreed:
            lines.append("The chains do not agree: take more draws.")
        for row in self.answers.head(6).itertuples():
            lines.append(
                f"{row.question}: {row.posterior:.4g} ({row.status}), before {row.prior:.4g}"
            )
        return lines
