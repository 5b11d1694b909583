"""Laws of counts as tables of logarithms."""

import numpy as np
import pytest

from bayesrisk import DiscreteGaussian
from bayesrisk.distributions import FiniteLaw
from bayesrisk.distributions.kernels import FLAT, LogTable, log_table
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError

LAW = FiniteLaw(2, [0.0, 0.25, 0.5, 0.0, 0.25, 0.0])


def test_the_table_of_a_law():
    table = log_table(LAW, "prior")
    assert (table.start, table.stop) == (2, 8)
    assert table.allowed.tolist() == [3, 4, 6]
    log_pmf = [table.log_probability(c) for c in (1, 2, 3, 4, 9)]
    assert np.exp(log_pmf).tolist() == [0.0, 0.0, 0.25, 0.5, 0.0]
    short = table.trimmed()
    assert (short.start, short.stop) == (3, 7)
    assert short.allowed.tolist() == table.allowed.tolist()
    assert log_table(LAW, "prior", largest=4).stop == 5


def test_products():
    first, second = LogTable(0, np.log([0.5, 0.25, 0.25])), LogTable(1, np.log([0.1, 0.2, 0.7]))
    both = first.times(second)
    assert both.start == 1
    np.testing.assert_allclose(np.exp(both.log_pmf), [0.025, 0.05])
    assert first.times(FLAT) is FLAT.times(first) is first
    assert FLAT.log_probability(7) == 0.0
    nothing = first.times(LogTable(5, np.zeros(2)))
    assert nothing.allowed.size == 0
    assert not nothing.flat


def test_a_count_known_but_for_the_target():
    table = LogTable.target_count(3, 0.2)
    np.testing.assert_allclose(np.exp(table.log_pmf), [0.8, 0.2])
    assert table.allowed.tolist() == [3, 4]


def test_negative_counts_are_refused_or_left_out():
    law = FiniteLaw(-1, [0.5, 0.25, 0.25])
    with pytest.raises(ArgumentError, match="prior must give no mass to negative counts"):
        log_table(law, "prior")
    assert log_table(law, "prior", negative=True).allowed.tolist() == [0, 1]
    assert log_table(FiniteLaw(-1, [0.0, 1.0]), "prior").allowed.tolist() == [0]


@pytest.mark.parametrize(
    ("law", "error", "message"),
    [
        (FiniteLaw(-3, [1.0]), ArgumentError, "prior must allow a count >= 0 and <= 5, got"),
        (FiniteLaw(9, [1.0]), ArgumentError, "prior must allow a count >= 0 and <= 5"),
        (FiniteLaw(0, [1.0], error_bound=0.0).pmf, ArgumentTypeError, "prior must be a CountLaw"),
        (DiscreteGaussian([1.0, 2.0]), ArgumentError, "prior must be a single law, got parameters"),
        (None, ArgumentTypeError, "prior must be a CountLaw, got None"),
    ],
)
def test_refusals(law, error, message):
    with pytest.raises(error, match=message):
        log_table(law, "prior", negative=True, largest=5)


def test_laws_without_end_are_refused():
    with pytest.raises(ArgumentError, match=r"at most 16777216 values >= 0 .* -inf to inf"):
        log_table(DiscreteGaussian(2.0), "prior", negative=True)
    assert log_table(DiscreteGaussian(2.0), "prior", negative=True, largest=9).stop == 10
