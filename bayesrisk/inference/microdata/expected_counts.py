r"""Expected numbers of people of rare groups by the Mecke equation.

Take a part of a place with n people and counts y, where n is not fixed. Every list with a person of
class c is a list without that person, plus the person. So the mean number of such people is

.. math::
    E[x_c] = E\left[(n + 1) \frac{P(n + 1)}{P(n)} s_c(y) \frac{L(y + e_c)}{L(y)}\right]

with P the prior weight of the number of people and L the likelihood of all noisy counts. It is the
equation of Mecke, and of Georgii, Nguyen and Zessin. The share s_c of the class is fixed, or (a_c +
y_c) / (A + n) for Dirichlet parameters a of sum A. The terms are positive in every draw of a chain,
even if the group is empty there. The equation needs that a list without the person is possible
whenever that with the person is. So P has no gap from 0 on, and no count is exact. It is not used
for almost exact counts: their likelihood ratio is large only in rare draws, which would hide an
error.

Terms that are still undecided are looked at more often. Between two draws only the people of its
places change, several times, and the terms are averaged. If nothing else is undecided, the chains
go on for half as many draws, spaced as before, of which only these terms are kept. Otherwise, or if
that is not enough, this happens in the next round.

Whether further draws are made depends on the effective sizes of earlier ones. A question is then
answered from the further draws alone, without those that led to them. So every answer is the mean
of a number of draws fixed in advance. No answer is extended until it seems good enough.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bayesrisk._base.compiling import lean_kernel
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.inference.microdata.chains import LEAST_ESS, Draws, PeopleChain
from bayesrisk.inference.microdata.people_model import ChainState, ModelArrays
from bayesrisk.inference.microdata.people_moves import rows_delta, size_delta, weight
from bayesrisk.inference.microdata.questions import (
    AnswerDraws,
    QuestionFunctions,
    RecordQuestion,
    estimate_answer,
    share_draws,
)
from bayesrisk.inference.microdata.system import MicrodataSystem
from bayesrisk.inference.sampling.chains import Step, run_chains
from bayesrisk.release import NoiseSpec

# Of a count with noise of variance v, the logarithm of the likelihood ratio has a variance of at
# most about 1 / v: where the sum over the counts is larger, rare draws weigh too much.
_MOST_PRECISION = 1.5
_SAME = 1e-12  # relative difference that rounding explains
_LOOKS, _ROUNDS = 16, 2  # most looks at places between two draws; proposals a slot before each
_NEAR = 2.0  # answers worth up to so many times the least draws are asked again
_PART = 8  # these cost at most such a part of the sweeps between two draws
_EXTENSION_PART = 2  # or such a part between draws that are made for them alone
_HOPELESS = LEAST_ESS / 4.0  # what all draws were worth where half as many will not be enough


@lean_kernel
def mecke_terms(
    model: ModelArrays, state: ChainState, parts: IntArray, classes: IntArray, out: FloatArray
) -> None:
    """Fill ``out`` with the Mecke estimator of each expected count for the current state."""
    for j in range(parts.size):
        part, cls = parts[j], classes[j]
        law, n = model.law[part], state.people[part]
        # s_c, or (a_c + y_c) / (A + n)
        share, a = weight(model, law, cls, state.x[part, cls]), model.concentration[law]
        share = share / (a + n) if a > 0.0 else share
        # log P(n + 1) - log P(n) + log L(y + e_c) - log L(y)
        change = size_delta(model, part, n, 1) + rows_delta(model, state, part, cls, 1, -1)
        # (n + 1) s_c P(n + 1) / P(n) L(y + e_c) / L(y)
        out[j] = (n + 1) * share * math.exp(change)


class TermView:
    """Functions of counts, computed as sums of Mecke terms of classes and parts."""

    def __init__(self, rows: IntArray, functions: sp.csr_array, classes: int) -> None:
        self.rows = np.unique(rows)
        columns = np.unique(functions[self.rows, :].indices).astype(np.int64)
        self._cells = sp.csr_array(functions[self.rows, :][:, columns])
        self.parts, self._classes = np.divmod(columns, classes)
        self.places = np.unique(self.parts)

    def terms(self, chain: PeopleChain) -> FloatArray:
        """Return every function's sum of Mecke terms at a chain's current state."""
        terms = np.empty(self.parts.size)
        mecke_terms(chain.model.arrays, chain.state, self.parts, self._classes, terms)
        sums: FloatArray = self._cells @ terms
        return sums

    def average(self, chain: PeopleChain, terms: FloatArray, looks: int) -> FloatArray:
        """Return the mean of the terms over this state and ``looks`` more states of the places."""
        for _ in range(looks):
            chain.advance_parts(self.places, _ROUNDS)
            terms = terms + self.terms(chain)
        return terms / (looks + 1)

    def looks(self, first: IntArray, room: int) -> int:
        """Return the number of further looks that cost at most ``room`` proposals."""
        slots = int((first[self.places + 1] - first[self.places]).sum())
        cost = _ROUNDS * slots + self.parts.size
        return min(_LOOKS, room // cost) if cost else 0


class TermRecord(NamedTuple):
    """Mecke terms of a round's kept draws (chains, draws, functions), and their number.

    The terms of ``short`` questions are averages of more looks.
    """

    view: TermView
    short: TermView
    looks: int
    values: FloatArray
    position: list[int]


class ExpectedCounts:
    """Answers undecided questions by Mecke terms recorded during a run of chains.

    Which questions these are is known when chains agree.  Before, those are recorded whose groups
    have the fewest expected people, as many as cost no more than the sweeps between two draws.
    """

    def __init__(
        self,
        system: MicrodataSystem,
        questions: Sequence[RecordQuestion],
        functions: QuestionFunctions,
        chains: Sequence[PeopleChain],
        draws: int,
    ) -> None:
        self._model, self._chains, self._draws = chains[0].model, chains, draws
        self._functions = functions
        self._state_cells = sp.csr_array(functions.cells[:, self._model.unknown_cell])
        self.possible = np.array([q.among is not None for q in questions], np.bool_)
        if self.possible.any():
            self.possible &= self._holds(system)
        self._selected: BoolArray | None = None  # after the first round
        self._short = np.zeros_like(self.possible)
        self._worth = np.full(self.possible.size, np.inf)
        self._sweep_size = self._room = min(chain.sweep_size for chain in chains)
        self.used = 0

    def _holds(self, system: MicrodataSystem) -> BoolArray:
        """Return for each question whether the Mecke equation holds in all of its parts."""
        arrays, strata = self._model.arrays, self._model.strata
        if not np.isfinite(arrays.table).all():
            return np.zeros_like(self.possible)
        noisy = _precision(system) <= _MOST_PRECISION
        parts = np.array([_no_gap(arrays, part) for part in range(len(strata))], np.bool_)
        never = np.concatenate([s.mass == 0.0 for s in strata])
        fine = (np.repeat(parts, self._model.classes) & np.tile(noisy, parts.size)) | never
        bad = np.asarray(self._state_cells @ (~fine).astype(np.int64)).ravel() > 0
        return np.asarray(~bad[self._functions.row].any(axis=1))

    def _rarest(self) -> BoolArray:
        """Return a mask of the possible questions about the rarest groups, as many as fit."""
        model = self._model
        shares = np.array([s.mass / max(s.mass.sum(), _SAME) for s in model.strata])
        group = self._functions.row[:, 1]
        people = (self._state_cells @ (model.likely[:, None] * shares).ravel())[group]
        width = np.diff(self._state_cells.indptr)[group]
        order = np.flatnonzero(self.possible)
        order = order[np.argsort(people[order], kind="stable")]
        _, first = np.unique(group[order], return_index=True)  # a group costs once
        cost = np.zeros(order.size, np.int64)
        cost[first] = width[order[first]]
        rarest = np.zeros_like(self.possible)
        rarest[order[np.cumsum(cost) <= self._room]] = True
        return rarest

    def _view(self, questions: BoolArray) -> TermView:
        return TermView(self._functions.row[questions], self._state_cells, self._model.classes)

    def reset(self) -> None:
        """Begin a new record, for draws twice as far apart."""
        self._recorded = self._rarest() if self._selected is None else self._selected
        view, short = self._view(self._recorded), self._view(self._short)
        looks = short.looks(self._model.arrays.first, self._room // _PART)
        values = np.zeros((len(self._chains), self._draws, view.rows.size))
        self._record = TermRecord(view, short, looks, values, [0] * len(self._chains))
        self._room *= 2

    def record(self, number: int) -> None:
        """Record the terms at a chain's state, averaged over more looks for some questions."""
        view, short, looks, values, position = self._record
        if not view.rows.size:
            return
        chain, terms = self._chains[number], values[number, position[number]]
        terms[:] = view.terms(chain)
        if looks:
            i = np.searchsorted(view.rows, short.rows)
            terms[i] = short.average(chain, terms[i], looks)
        position[number] += 1

    def terms(self, question: int) -> tuple[FloatArray, FloatArray]:
        """Return the terms of a recorded question's two numbers, each (chains, draws)."""
        return self._terms(self._record.view, self._record.values, question)

    def _terms(
        self, view: TermView, values: FloatArray, question: int
    ) -> tuple[FloatArray, FloatArray]:
        i, j = np.searchsorted(view.rows, self._functions.row[question])
        part, whole = self._functions.constants[question]
        return values[:, :, i] + part, values[:, :, j] + whole

    def answer_undecided(self, frame: pd.DataFrame, draws: Draws) -> pd.DataFrame:
        """Return the answers, with undecided ones replaced where recorded terms decide them.

        An answer of terms of unequal size is worth no more draws than (sum w)^2 / sum w^2, for the
        mean numbers w of people of the group.
        """
        undecided = frame["status"].to_numpy() == "undecided"
        self.used = 0
        self._worth[:] = np.inf  # not known of what was not recorded
        record, chosen = self._record, undecided & self._recorded
        answered = self._answered(frame, chosen, record.view, record.values, draws)
        near = frame["ess"].to_numpy() < _NEAR * LEAST_ESS  # other draws may have fewer
        self._selected = (undecided | near) & self.possible
        self._short = self._selected & (answered["status"].to_numpy() == "undecided")
        return answered

    def extend_chains(self, frame: pd.DataFrame, states: Draws) -> pd.DataFrame:
        """Return the answers, with undecided ones replaced where extended chains decide them.

        The chains go on only under three conditions. Nothing else is undecided; more looks do not
        cost too much; and the draws so far have a quarter of the needed effective size.
        """
        undecided = frame["status"].to_numpy() == "undecided"
        view = self._view(self._short)
        room = self._sweep_size * states.thin // _EXTENSION_PART
        looks = view.looks(self._model.arrays.first, room)
        fit = self._short & (self._worth >= _HOPELESS)
        if looks <= self._record.looks or (undecided & ~fit).any():
            return frame  # a whole round is needed
        draws = max(4, self._draws // 2)
        values = np.zeros((len(self._chains), draws, view.rows.size))

        def begin(number: int) -> Step:
            chain, rows = self._chains[number], iter(values[number])

            def step(_: int, out: IntArray) -> None:
                for _ in range(len(out)):
                    chain.advance(states.thin)
                    next(rows)[:] = view.average(chain, view.terms(chain), looks)

            return step

        run_chains(begin, np.zeros((*values.shape[:2], 0), np.int64), 0, None)
        answered = self._answered(frame, undecided, view, values, states)
        self._short &= answered["status"].to_numpy() == "undecided"
        return answered

    def _answered(
        self,
        frame: pd.DataFrame,
        chosen: BoolArray,
        view: TermView,
        values: FloatArray,
        states: Draws,
    ) -> pd.DataFrame:
        """Return the answers, with those ``chosen`` replaced where Mecke terms decide them."""
        rows = frame.to_dict("split")["data"]
        for i in np.flatnonzero(chosen):
            part, whole = self._terms(view, values, int(i))
            draws = _without_rounding(share_draws(part, whole))
            row = estimate_answer(draws, states, most=effective_draws(whole))
            self._worth[i] = row[6]
            if row[4] == "sampled":
                rows[i] = list(row)
                self.used += 1
        return pd.DataFrame(rows, columns=frame.columns)


def _precision(system: MicrodataSystem) -> FloatArray:
    """Return each class's sum of w^2 / variance over the counts that include it with weight w."""
    precision = np.zeros(system.classes.size)
    for layer in system.layers:
        laws = {law for law in layer.likelihoods if isinstance(law, NoiseSpec)}
        precision_by_law: dict[object, float] = {
            law: 1.0 / float(law.to_law().var()) for law in laws
        }
        square = layer.weights.astype(float) ** 2
        precision += square.T @ np.array(
            [precision_by_law.get(law, np.inf) for law in layer.likelihoods]
        )
    return precision


def _no_gap(arrays: ModelArrays, part: int) -> bool:
    """Return whether every number of people from 0 to the part's largest is possible."""
    if not arrays.open[part]:
        return False
    slots = int(arrays.first[part + 1] - arrays.first[part])
    start = int(arrays.size_ptr[part])
    possible = np.isfinite(arrays.log_size[start : start + slots + 1])
    return bool(np.all(possible[: np.flatnonzero(possible)[-1] + 1])) if possible.any() else False


def effective_draws(weights: FloatArray) -> float:
    """Return the number of equally weighted draws of the same worth: (sum w)^2 / sum w^2."""
    square = float(np.sum(weights**2))
    return float(weights.sum()) ** 2 / square if square > 0.0 else 0.0


def _without_rounding(share: AnswerDraws) -> AnswerDraws:
    """Return the draws of a share, made equal if they differ by rounding only."""
    constant = np.abs(share.draws - share.value).max() <= _SAME
    return replace(share, draws=np.full_like(share.draws, share.value)) if constant else share
