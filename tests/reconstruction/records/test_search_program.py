"""Programs of blocks: which totals are fixed."""

import numpy as np
from row_cases import source_of

from bayesrisk.constraints.propagation import mark_even
from bayesrisk.reconstruction.records.search import build_program


def test_totals_that_are_fixed_make_distances_even():
    balanced = source_of(np.array([[1, 1, 1]]), np.array([2]))
    loose = source_of(np.array([[1, 2, 1]]), np.array([2]))
    for source, expected in ((balanced, [True]), (loose, [False])):
        program = build_program(
            [source], np.zeros(3, np.int64), np.arange(3), np.zeros(3, np.int64), np.full(3, 2)
        )
        for kernel in (mark_even, mark_even.py_func):
            even = np.zeros(1, np.bool_)
            kernel(program.arrays, program.work(), even)
            assert even.tolist() == expected
