"""The exact law of a small system: every point of every component is visited and weighed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from bayesrisk._types import FloatArray, IntArray
from bayesrisk.exceptions import DataError
from bayesrisk.inference.microdata._enumeration import Component, Search, search
from bayesrisk.inference.microdata._presolve import SmallSystem

__all__ = ["ExactLaw", "TooManyPointsError", "weigh"]

_NODES = 2**22  # visited before the search comes back to Python, some tenths of a second
_NODES_A_POINT = 64  # that are visited at most: a search may find little and never end


class TooManyPointsError(Exception):
    """There are more points than may be visited."""


@dataclass(frozen=True)
class ExactLaw:
    """What the visit of all points found.

    Attributes
    ----------
    laws : tuple of ndarray
        Probability of the counts 0, 1, ... of every group.
    answers : tuple of ndarray
        Probability of the values 0, 1, ... of every linear function.
    points : int
        Points visited, of all components together.
    log_evidence : float
        Log of the sum of all weights.
    """

    laws: tuple[FloatArray, ...]
    answers: tuple[FloatArray, ...]
    points: int
    log_evidence: float


def weigh(system: SmallSystem, asked: sp.csr_array, max_points: int) -> ExactLaw:
    """Return the exact laws of the groups, and of linear functions of them.

    Parameters
    ----------
    system : SmallSystem
        Rows by groups.
    asked : scipy.sparse.csr_array of int64, shape (functions, groups)
        Weights >= 0.
    max_points : int
        Most points that are visited.

    Raises
    ------
    TooManyPointsError
        If there are more, or the search visits 64 times as many nodes of its tree.
    DataError
        If there is no point.
    """
    n_groups = system.matrix.shape[1]
    laws: list[FloatArray] = [np.ones(1)] * n_groups
    answers: list[FloatArray] = [np.ones(1)] * asked.shape[0]
    blocks: Any = [[None, system.matrix.T], [system.matrix, None]]
    graph = sp.block_array(blocks)
    _, label = connected_components(graph, directed=False)
    label = label[:n_groups]
    columns, of_rows = sp.csc_array(system.matrix), system.matrix
    points, nodes, evidence = 0, 0, system.constant
    most_nodes = max(_NODES, _NODES_A_POINT * max_points)
    for part in np.unique(label):
        members = np.flatnonzero(label == part)
        rows = np.unique(columns[:, members].indices).astype(np.int64)
        order = members[_order(of_rows[rows, :][:, members], system, rows)]
        component, state = _prepared(system, order, rows, asked)
        while not search(component, state, _NODES):
            nodes_now = nodes + int(state.number[2])
            if points + int(state.number[1]) > max_points or nodes_now > most_nodes:
                raise TooManyPointsError
        points, nodes = points + int(state.number[1]), nodes + int(state.number[2])
        total = float(state.scale[1])
        if not total > 0.0:
            raise DataError(
                "release contradicts itself or the prior: no counts agree with all of it"
            )
        evidence += float(state.scale[0]) + np.log(total)
        for i, group in enumerate(order):
            laws[group] = state.law[state.law_ptr[i] : state.law_ptr[i + 1]] / total
        for i, f in enumerate(_asked_of(asked, members)):
            found = state.answer_law[state.answer_ptr[i] : state.answer_ptr[i + 1]] / total
            answers[f] = np.convolve(answers[f], found)
    return ExactLaw(tuple(laws), tuple(answers), points, evidence)


def _asked_of(asked: sp.csr_array, members: IntArray) -> IntArray:
    """Return the functions that depend on a component."""
    found: IntArray = np.flatnonzero(np.diff(sp.csr_array(asked[:, members]).indptr))
    return found


def _order(rows: sp.csr_array, system: SmallSystem, numbers: IntArray) -> IntArray:
    """Return an order in which rows are complete early, hard ones first."""
    matrix, columns = sp.csr_array(rows), sp.csc_array(rows)
    left = np.diff(matrix.indptr).astype(np.int64)
    penalty = np.where(system.hard[numbers], 0, matrix.shape[1])
    done = np.zeros(matrix.shape[1], np.bool_)
    order: list[int] = []
    while len(order) < matrix.shape[1]:
        open_rows = np.flatnonzero(left)
        if not open_rows.size:
            order += [int(c) for c in np.flatnonzero(~done)]
            break
        row = open_rows[np.argmin(left[open_rows] + penalty[open_rows])]
        members = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        for column in members[~done[members]]:
            done[column] = True
            order.append(int(column))
            left[columns.indices[columns.indptr[column] : columns.indptr[column + 1]]] -= 1
    return np.array(order, np.int64)


def _prepared(
    system: SmallSystem, order: IntArray, rows: IntArray, asked: sp.csr_array
) -> tuple[Component, Search]:
    """Return the arrays of a component, and a search at its beginning."""
    top = system.top[order]
    small = sp.csc_array(system.matrix[rows, :][:, order])
    small.sort_indices()
    ptr, row, coef = (a.astype(np.int64) for a in (small.indptr, small.indices, small.data))
    after = np.zeros(row.size, np.int64)
    last = np.zeros(row.size, np.bool_)
    rest, seen = np.zeros(rows.size, np.int64), np.zeros(rows.size, np.bool_)
    for c in range(order.size - 1, -1, -1):
        for k in range(ptr[c], ptr[c + 1]):
            after[k], last[k] = rest[row[k]], not seen[row[k]]
            rest[row[k]] += coef[k] * top[c]
            seen[row[k]] = True
    soft = [system.soft[r] for r in rows]
    functions = _asked_of(asked, order)
    chosen = sp.csc_array(sp.csr_array(asked[functions, :])[:, order])
    chosen.sort_indices()
    most = chosen @ top if functions.size else np.zeros(0, np.int64)
    priors = [system.priors[g] for g in order]
    component = Component(
        top=top,
        prior_ptr=_starts([p.size for p in priors]),
        prior=np.concatenate(priors),
        ptr=ptr,
        row=row,
        coef=coef,
        after=after,
        last=last,
        hard=system.hard[rows].copy(),
        most=np.array(
            [system.given[r] if system.hard[r] else system.soft[r].size - 1 for r in rows]
        ),
        soft_ptr=_starts([s.size for s in soft]),
        soft=np.concatenate([*soft, np.zeros(1)]),
        asked_ptr=chosen.indptr.astype(np.int64),
        asked=chosen.indices.astype(np.int64),
        asked_coef=chosen.data.astype(np.int64),
    )
    n = order.size
    law_ptr, answer_ptr = _starts(top + 1), _starts(np.asarray(most) + 1)
    state = Search(
        x=np.zeros(n, np.int64),
        high=np.zeros(n, np.int64),
        path=np.zeros(n),
        below=np.zeros(n),
        sums=np.zeros(rows.size, np.int64),
        answers=np.zeros(functions.size, np.int64),
        law_ptr=law_ptr,
        law=np.zeros(int(law_ptr[-1])),
        answer_ptr=answer_ptr,
        answer_law=np.zeros(int(answer_ptr[-1])),
        number=np.array([0, 0, 0, 1], np.int64),
        scale=np.array([-np.inf, 0.0]),
    )
    return component, state


def _starts(sizes: Sequence[int] | IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, np.int64))]).astype(np.int64)
