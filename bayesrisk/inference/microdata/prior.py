"""Prior of an adversary about the records of a place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, ShapeError, quote
from bayesrisk.tables import PopulationChange
from bayesrisk.tables.schema import Schema

_MAX_CELLS = 2**24
_MAX_SIZE = 2**24
_SELDOM = 0.01  # of what is more probable on either side: a chain of small steps goes there rarely


@displayed
@dataclass(frozen=True, eq=False)
class RecordPrior:
    r"""Prior of the counts x of the cells of one place, given how many records there are.

    Without a concentration, the n records are drawn independently with the shares theta of a
    composition, P(x | n) = n! prod theta_c**x_c / x_c!.  With a concentration A, the shares are
    themselves unknown, Dirichlet with parameters A theta_c, and integrated out: records of one
    place are then alike.  Places are independent.

    Attributes
    ----------
    schema : Schema
        What the records are.
    shares : ndarray of float, shape (cells of the schema,), or None
        The composition, with sum 1; None for equal shares.
    concentration : float or None
        Concentration A > 0; None where the shares are known.
    size : ndarray of float, or None
        Probability of n = 0, 1, ... records, where no table says how many there are; None gives
        every number the same weight.
    name : str
        How the prior is called in results.
    """

    schema: Schema
    shares: FloatArray | None = None
    concentration: float | None = None
    size: FloatArray | None = None
    name: str = "uniform on data sets"

    def __post_init__(self) -> None:
        check.instance(self.schema, Schema, "schema")
        check.text(self.name, "name")
        if self.shares is not None:
            object.__setattr__(self, "shares", _composition(self.shares, self.schema))
        if self.concentration is not None:
            value = check.scalar(self.concentration, "concentration", lower=0.0, bounds="(]")
            object.__setattr__(self, "concentration", value)
        if self.size is not None:
            size = check.probability_vector(self.size, "size")
            if size.size > _MAX_SIZE:
                raise ArgumentError(f"size must have at most {_MAX_SIZE} entries, got {size.size}")
            object.__setattr__(self, "size", size)

    @classmethod
    def uniform_data_sets(cls, schema: Schema, *, size: ArrayLike | None = None) -> Self:
        """Return the prior under which every list of n records is equally probable.

        Records are independent, with equal shares; ``size`` is P(n), if it is known.
        """
        return cls(schema, size=_size(size))

    @classmethod
    def uniform_histograms(cls, schema: Schema, *, size: ArrayLike | None = None) -> Self:
        """Return the prior under which every histogram of n records is equally probable.

        Every cell of the schema has concentration 1; ``size`` is P(n), if it is known.
        """
        return cls(
            schema,
            concentration=float(schema.size),
            size=_size(size),
            name="uniform on histograms",
        )

    @classmethod
    def composition(
        cls,
        schema: Schema,
        counts: ArrayLike,
        *,
        concentration: float | None = None,
        more: float = 0.0,
        size: ArrayLike | None = None,
        name: str = "composition",
    ) -> Self:
        """Return the prior with the composition of a larger place or of a public sample.

        Parameters
        ----------
        schema : Schema
            What the records are.
        counts : array_like of float, shape (cells of the schema,)
            Counts or shares, >= 0, not all 0.
        concentration : float, optional
            Concentration A > 0, in records: with n records a share has the variance of
            n A / (n + A) independent ones.
        more : float, default 0
            Number of records that are added in equal parts to all cells: with 0, a record that
            the counts do not have is impossible.
        size : array_like of float, optional
            Probability of n = 0, 1, ... records.
        name : str, default "composition"
            How the prior is called in results.

        Returns
        -------
        RecordPrior
            Shares proportional to ``counts + more / cells``.
        """
        extra = check.scalar(more, "more", lower=0.0)
        values = check.real_array(counts, "counts", lower=0.0)
        if values.shape != (check.instance(schema, Schema, "schema").size,):
            raise ShapeError(f"counts must have shape ({schema.size},), got {values.shape}")
        total = float(values.sum()) + extra
        if not total > 0.0:
            raise ArgumentError("counts must not all be 0")
        shares = (values + extra / schema.size) / total
        return cls(schema, shares, concentration, _size(size), name)

    @classmethod
    def trajectories(
        cls, change: PopulationChange, counts: ArrayLike, *, concentration: float | None = None
    ) -> Self:
        r"""Return the prior of the records of a place in two years under a law of change.

        Numbers of records of the first year, of arrivals and of births are Poisson. So the number n
        of trajectories is Poisson, and given n they have the composition of the law: whatever the
        mean of the first year is, given its number each of its records stays, leaves and changes as
        :class:`~bayesrisk.tables.PopulationChange` says, and arrivals are Poisson still.

        Parameters
        ----------
        change : PopulationChange
            The law of change.
        counts : array_like of float, shape (cells of its schema,)
            Expected number of records of every cell in the first year, not all 0: the number of
            people of the place times a composition.
        concentration : float, optional
            Concentration A > 0 of the composition of trajectories.
        """
        from scipy.stats import poisson  # slow to import

        expected = check.instance(change, PopulationChange, "change").trajectories(counts)
        mean = float(expected.sum())
        # Numbers that are left out have a probability of at most 1e-15.
        most = int(poisson.isf(1e-15, mean)) + 1
        if most >= _MAX_SIZE:
            raise ArgumentError(f"counts must add up to less than {_MAX_SIZE}, got {mean:.0f}")
        size = poisson.pmf(np.arange(most + 1), mean)
        schema = change.schema_of_both
        prior = cls.composition(schema, expected, size=size / size.sum(), name="law of change")
        return prior if concentration is None else replace(prior, concentration=concentration)

    def log_size(self, n: IntArray) -> FloatArray:
        """Return log P(n) of numbers of records; 0 where every number has the same weight."""
        if self.size is None:
            return np.zeros(n.shape)
        with np.errstate(divide="ignore"):
            log_pmf = np.log(self.size[np.minimum(n, self.size.size - 1)])
        return np.where(n < self.size.size, log_pmf, -np.inf)

    @property
    def shares_of_cells(self) -> FloatArray:
        """Expected share of the records in each cell."""
        if self.shares is not None:
            return self.shares
        if self.schema.size > _MAX_CELLS:
            raise ArgumentError(
                "schema", f"must have at most {_MAX_CELLS} cells for this", shown=self.schema.size
            )
        return np.full(self.schema.size, 1.0 / self.schema.size)


def fit_concentration(counts: ArrayLike, shares: ArrayLike) -> float:
    r"""Return the concentration under which histograms of several places are most probable.

    Maximises sum over places of log Dirichlet-multinomial(x_p | n_p, A theta) over A in
    (1e-3, 1e9); the largest value stands for independent records.

    Parameters
    ----------
    counts : array_like of int, shape (places, cells)
        Public counts of places, such as block groups.
    shares : array_like of float, shape (cells,)
        The composition theta around them, > 0 where a count is.

    Examples
    --------
    >>> counts = [[9, 1], [2, 8], [7, 3], [1, 9]]
    >>> round(fit_concentration(counts, [0.5, 0.5]), 2)
    2.18
    """
    x = check.count_array(counts, "counts", lower=0).astype(np.float64)
    theta = check.real_array(shares, "shares", lower=0.0)
    if x.ndim != 2 or theta.shape != x.shape[1:]:
        raise ShapeError(
            f"counts and shares must be (places, cells) and (cells,), got {x.shape} and "
            f"{theta.shape}"
        )
    if np.any((theta == 0.0) & (x.sum(axis=0) > 0)):
        raise ArgumentError("shares must be > 0 for every cell that is counted")
    positive = theta > 0.0
    x, theta = x[:, positive], theta[positive] / theta.sum()
    n = x.sum(axis=1)

    def loss(log_a: float) -> float:
        a = float(np.exp(log_a))
        rise = gammaln(a * theta + x) - gammaln(a * theta)
        return -float(rise.sum() + np.sum(gammaln(a) - gammaln(a + n)))

    optimum = minimize_scalar(loss, bounds=(np.log(1e-3), np.log(1e9)), method="bounded")
    return float(np.exp(optimum.x))


def pieces(size: FloatArray) -> IntArray:
    """Return first and last number of the runs that a law of numbers has most of its weight on.

    Between two runs every number has less than a hundredth of the weight of some number below, and
    of some number above: mostly none at all.
    """
    below = np.maximum.accumulate(size)
    above = np.maximum.accumulate(size[::-1])[::-1]
    inside = (size > 0.0) & (size >= _SELDOM * np.minimum(below, above))
    edges = np.diff(np.concatenate([[0], inside.astype(np.int64), [0]]))
    return np.stack([np.flatnonzero(edges > 0), np.flatnonzero(edges < 0) - 1], axis=1)


def _composition(shares: ArrayLike, schema: Schema) -> FloatArray:
    composition = check.real_array(shares, "shares", lower=0.0, upper=1.0)
    if composition.shape != (schema.size,):
        raise ShapeError(f"shares must have shape ({schema.size},), got {composition.shape}")
    if abs(float(composition.sum()) - 1.0) > 1e-9:
        raise ArgumentError(f"shares must have sum 1, got {quote(float(composition.sum()))}")
    shared: FloatArray = composition / composition.sum()
    shared.setflags(write=False)
    return shared


def _size(size: ArrayLike | None) -> FloatArray | None:
    return None if size is None else check.probability_vector(size, "size")
