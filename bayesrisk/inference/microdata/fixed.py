"""Means of sums of records that exact counts alone determine."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.validation import FloatArray
from bayesrisk.constraints.ends import FormEnds
from bayesrisk.constraints.propagation import narrowed
from bayesrisk.constraints.solvers import Deadline
from bayesrisk.exceptions import DataError
from bayesrisk.inference.microdata.system import MicrodataSystem, presolve

_NODES = 200  # linear programs of one question, so that no answer depends on the machine


def mean_ends(
    system: MicrodataSystem, position: int, shares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest mean of sums of records that agree with the counts.

    ``shares`` (classes, sums) gives the contribution to a sum of a record of a class in the place
    at ``position``.
    """
    # A sum is sum_s s f_s, where f_s counts the records of the classes with share s.
    pairs = [(v, s) for v, column in enumerate(shares.T) for s in np.unique(column[column > 0.0])]
    start = position * system.classes.size
    counted = np.zeros((len(pairs), system.size), np.int64)
    for form, (v, s) in zip(counted, pairs, strict=True):
        form[start : start + system.classes.size] = shares[:, v] == s
    small, forms = presolve(system, sp.csr_array(counted))
    least, most = np.zeros((2, shares.shape[1]))
    model = narrowed(small.model)
    if model is None:
        raise DataError("release contradicts itself: no records have its counts")
    from bayesrisk.constraints.highs import Sifted  # loads a compiled solver

    deadline = Deadline(nodes=_NODES)
    linear = Sifted(model, np.arange(model.low.size), deadline=deadline)
    ends = forms @ model.low, forms @ model.high
    questions = FormEnds(model, linear, forms, ends, None, deadline=deadline)
    questions.settle()
    high, low = np.split(questions.goal, 2)
    for (v, s), a, b in zip(pairs, (-low).tolist(), high.tolist(), strict=True):
        least[v] += s * a
        most[v] += s * b
    return least, most
