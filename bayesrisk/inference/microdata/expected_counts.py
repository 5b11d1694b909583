r"""Shares of groups in which there is mostly nobody, from what one more person would change.

Of the list of a part of a place with n people and counts y, whose number of people is open, every
list with a person of class c is one without, and one person more.  So the mean number of these is

.. math::
    E[x_c] = E\left[(n + 1) \frac{P(n + 1)}{P(n)} s_c(y) \frac{L(y + e_c)}{L(y)}\right]

with s_c the share of the class, or (a_c + y_c) / (A + n) for Dirichlet parameters a of sum A, P the
prior weight of the number of people and L the likelihood of all noisy counts (the equation of
Mecke, and of Georgii, Nguyen and Zessin).  The terms are positive in every draw of a chain, also
in those in which the group is empty.  It holds if no list without the person is impossible while
that with the person is not: if P has no gap from 0 on, and no count is exact.  Where counts are
almost exact, the ratio of the likelihoods is large in rare draws only, and an error would not be
seen: it is not used there.

What is still undecided then is looked at more often: between two draws only the people of its
places change, several times, and the terms are averaged.  Where nothing else is undecided, the
chains go on for half as many draws, as far apart as before, of which only these terms are kept.
Otherwise, or if that is not enough, it is done in the next round.

That there are further draws depends on the effective sizes of those before.  A question is then
answered from the further ones alone, not together with those that were the reason for them.  So
every answer is the mean of a number of draws that was fixed before they were made, and no answer
is added to until it seems good enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bayesrisk._numba import lean_kernel
from bayesrisk._validation import FloatArray, IntArray
from bayesrisk.inference.microdata.chains import LEAST_ESS, Draws, PeopleChain
from bayesrisk.inference.microdata.people_model import Model, PeopleModel, State
from bayesrisk.inference.microdata.questions import (
    Asked,
    RecordQuestion,
    Tracked,
    answer_of,
    share_of,
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
_FURTHER_PART = 2  # or such a part between draws that are made for them alone
_HOPELESS = LEAST_ESS / 4.0  # what all draws were worth where half as many will not be enough


@lean_kernel
def gains(of: Model, at: State, parts: Any, classes: Any, out: Any) -> None:
    """Write what the mean of every count, a class of a part, is the mean of."""
    for j in range(parts.size):
        part, cls = parts[j], classes[j]
        law, n = of.law[part], at.people[part]
        share = of.mass[law, cls]
        a = of.concentration[law]
        if a > 0.0:
            share = (of.mass[law, cls] + at.x[part, cls]) / (a + n)
        at_size = of.size_ptr[part] + n
        change = of.log_size[at_size + 1] - of.log_size[at_size]
        for level in range(of.base.shape[0]):
            base = of.base[level, part]
            for k in range(of.cell.shape[2]):
                c = of.cell[level, cls, k]
                if c >= 0:
                    old = at.spot[base + c]
                    change += of.table[old + of.coef[level, cls, k]] - of.table[old]
        out[j] = (n + 1) * share * math.exp(change)


class OneMore:
    """What one more person would change, of the questions that draws themselves leave undecided.

    Which these are is known when chains agree.  Before, those are recorded of whose groups the
    fewest people are expected, as many as cost no more than the sweeps between two draws.

    Parameters
    ----------
    system : MicrodataSystem
        What is published.
    of : PeopleModel
        What does not change.
    of_state : scipy.sparse.csr_array of int64, shape (functions, numbers of a state)
        What questions count.
    asked : sequence of RecordQuestion
        The questions.
    functions : Asked
        Which functions are theirs.
    chains : sequence of PeopleChain
        Whose states are looked at.
    draws : int
        Draws kept of each chain.

    Attributes
    ----------
    possible : ndarray of bool, shape (questions,)
        Questions that can be answered so.
    used : int
        How many of the answers were found so.
    """

    def __init__(
        self,
        system: MicrodataSystem,
        of: PeopleModel,
        of_state: sp.csr_array,
        asked: Sequence[RecordQuestion],
        functions: Asked,
        chains: Sequence[PeopleChain],
        draws: int,
    ) -> None:
        self._system, self._of = system, of
        self._of_state, self._functions = of_state, functions
        self._chains, self._draws = chains, draws
        self.possible = np.array([q.among is not None for q in asked], np.bool_)
        if self.possible.any():
            self.possible &= self._holds()
        self._asked = np.zeros_like(self.possible)
        self._short = np.zeros_like(self.possible)
        self._worth = np.full(self.possible.size, np.inf)
        self._sweep = min(chain.sweep for chain in chains)
        self._narrowed, self._room = False, self._sweep
        self.used = 0

    def _holds(self) -> Any:
        """Return whether all that a question counts is of parts for which the equation holds."""
        model = self._of.model
        if not np.isfinite(model.table).all():
            return False
        coarse = _precision(self._system) <= _MOST_PRECISION
        parts = np.array([_no_gap(model, part) for part in range(len(self._of.strata))], np.bool_)
        never = np.concatenate([s.mass == 0.0 for s in self._of.strata])
        fine = (np.repeat(parts, self._of.classes) & np.tile(coarse, parts.size)) | never
        bad = np.asarray(self._of_state @ (~fine).astype(np.int64)).ravel() > 0
        return ~bad[self._functions.row].any(axis=1)

    def _rarest(self) -> Any:
        """Return which of the possible questions are about the rarest groups, as many as fit."""
        shares = np.array([s.mass / max(s.mass.sum(), _SAME) for s in self._of.strata])
        group = self._functions.row[:, 1]
        people = (self._of_state @ (self._of.likely[:, None] * shares).ravel())[group]
        width = np.diff(self._of_state.indptr)[group]
        order = np.flatnonzero(self.possible)
        order = order[np.argsort(people[order], kind="stable")]
        _, first = np.unique(group[order], return_index=True)  # a group costs once
        cost = np.zeros(order.size, np.int64)
        cost[first] = width[order[first]]
        found = np.zeros_like(self.possible)
        found[order[np.cumsum(cost) <= self._room]] = True
        return found

    def fresh(self) -> None:
        """Forget what was recorded: other draws come, twice as far apart."""
        if not self._narrowed:
            self._asked = self._rarest()
        self._every = _View(self._functions.row[self._asked], self._of_state, self._of.classes)
        self._often, self._looks = self._closer(self._room // _PART)
        self._seen = np.zeros((len(self._chains), self._draws, self._every.rows.size))
        self._done = [0] * len(self._chains)
        self._room *= 2

    def _closer(self, room: int) -> tuple[_View, int]:
        """Return what short questions count, and how many more looks at it cost no more."""
        view = _View(self._functions.row[self._short], self._of_state, self._of.classes)
        first = self._of.model.first
        slots = int((first[view.places + 1] - first[view.places]).sum())
        cost = _ROUNDS * slots + view.parts.size
        return view, min(_LOOKS, room // cost) if cost else 0

    def note(self, chain: int) -> None:
        """Record the state of a chain; where questions are short of draws, look more often."""
        if not self._every.rows.size:
            return
        of, here = self._of.model, self._chains[chain]
        seen = self._seen[chain, self._done[chain]]
        seen[:] = self._every.look(of, here.state)
        if self._looks:
            at = np.searchsorted(self._every.rows, self._often.rows)
            seen[at] = self._often.average(here, seen[at], self._looks)
        self._done[chain] += 1

    def terms(self, question: int) -> tuple[FloatArray, FloatArray]:
        """Return what the two numbers of a recorded question are the means of, (chains, draws)."""
        return self._terms(self._every, self._seen, question)

    def _terms(self, view: _View, seen: FloatArray, question: int) -> tuple[FloatArray, FloatArray]:
        at = np.searchsorted(view.rows, self._functions.row[question])
        part, whole = self._functions.known[question]
        return seen[:, :, at[0]] + part, seen[:, :, at[1]] + whole

    def mend(self, frame: pd.DataFrame, drawn: Draws) -> pd.DataFrame:
        """Return the answers, with those that were undecided and need not be.

        An answer of terms of unequal size is worth no more draws than (sum w)^2 / sum w^2, for the
        mean numbers w of people of the group.
        """
        undecided = frame["status"].to_numpy() == "undecided"
        self.used = 0
        self._worth[:] = np.inf  # not known of what was not recorded
        mended = self._answered(frame, undecided & self._asked, self._every, self._seen, drawn)
        self._narrowed = True
        near = frame["ess"].to_numpy() < _NEAR * LEAST_ESS  # other draws may have fewer
        self._asked = (undecided | near) & self.possible
        self._short = self._asked & (mended["status"].to_numpy() == "undecided")
        return mended

    def further(self, mended: pd.DataFrame, drawn: Draws) -> pd.DataFrame:
        """Return answers that were mended, with those that further draws decide.

        The chains go on only where nothing else is undecided, more looks do not cost too much, and
        the draws that there are were worth a quarter of what is needed.
        """
        undecided = mended["status"].to_numpy() == "undecided"
        view, looks = self._closer(self._sweep * drawn.thin // _FURTHER_PART)
        fit = self._short & (self._worth >= _HOPELESS)
        if looks <= self._looks or (undecided & ~fit).any():
            return mended  # a whole round is needed
        draws = max(4, self._draws // 2)
        seen = np.zeros((len(self._chains), draws, view.rows.size))

        def begin(at: int) -> Step:
            here, each = self._chains[at], iter(seen[at])

            def step(_: int, out: IntArray) -> None:
                for _ in range(len(out)):
                    here.go(drawn.thin)
                    next(each)[:] = view.average(here, view.look(self._of.model, here.state), looks)

            return step

        run_chains(begin, np.zeros((*seen.shape[:2], 0), np.int64), 0, None)
        found = self._answered(mended, undecided, view, seen, drawn)
        self._short &= found["status"].to_numpy() == "undecided"
        return found

    def _answered(
        self, frame: pd.DataFrame, which: Any, view: _View, seen: FloatArray, drawn: Draws
    ) -> pd.DataFrame:
        """Return the answers, with those that terms decide of the questions ``which``."""
        rows = frame.to_dict("split")["data"]
        for i in np.flatnonzero(which):
            part, whole = self._terms(view, seen, int(i))
            row = answer_of(_steady(share_of(part, whole)), drawn, most=_alike(whole))
            self._worth[i] = row[6]
            if row[4] == "sampled":
                rows[i] = list(row)
                self.used += 1
        return pd.DataFrame(rows, columns=frame.columns)


class _View:
    """What is looked at for some questions: their functions, and the classes of parts in these."""

    def __init__(self, row: IntArray, of_state: sp.csr_array, classes: int) -> None:
        self.rows = np.unique(row)
        columns = np.unique(of_state[self.rows, :].indices).astype(np.int64)
        self._cells = sp.csr_array(of_state[self.rows, :][:, columns])
        self.parts, self._classes = np.divmod(columns, classes)
        self.places = np.unique(self.parts)

    def look(self, of: Model, at: State) -> FloatArray:
        """Return for every function what its mean is the mean of."""
        gain = np.empty(self.parts.size)
        gains(of, at, self.parts, self._classes, gain)
        found: FloatArray = self._cells @ gain
        return found

    def average(self, chain: PeopleChain, found: FloatArray, looks: int) -> FloatArray:
        """Return the mean of what was found and of so many looks, people of the places changed."""
        for _ in range(looks):
            chain.stay(self.places, _ROUNDS)
            found = found + self.look(chain.of.model, chain.state)
        return found / (looks + 1)


def _precision(system: MicrodataSystem) -> FloatArray:
    """Return for every class the sum of w^2 / variance of the counts that see it with weight w."""
    found = np.zeros(system.classes.size)
    for layer in system.layers:
        laws = [law for law in layer.likelihoods if isinstance(law, NoiseSpec)]
        each: dict[object, float] = {law: 1.0 / float(law.to_law().var()) for law in set(laws)}
        square = layer.weights.astype(float) ** 2
        found += square.T @ np.array([each.get(law, np.inf) for law in layer.likelihoods])
    return found


def _no_gap(model: Model, part: int) -> bool:
    """Return whether a part may have any number of people from 0 up to a largest."""
    if not model.open[part]:
        return False
    slots = int(model.first[part + 1] - model.first[part])
    start = int(model.size_ptr[part])
    possible = np.isfinite(model.log_size[start : start + slots + 1])
    return bool(np.all(possible[: np.flatnonzero(possible)[-1] + 1])) if possible.any() else False


def _alike(weights: FloatArray) -> float:
    """Return how many equal weights would tell as much."""
    square = float(np.sum(weights**2))
    return float(weights.sum()) ** 2 / square if square > 0.0 else 0.0


def _steady(of: Tracked) -> Tracked:
    """Return draws of a share that differ by rounding errors alone as equal."""
    same = np.abs(of.draws - of.value).max() <= _SAME
    return replace(of, draws=np.full_like(of.draws, of.value)) if same else of
