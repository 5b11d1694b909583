"""What is believed of one target: before a release, after it, and after one without its record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrisk._types import FloatArray, IntArray
from bayesrisk.inference import RecordPrior
from bayesrisk.inference.microdata.classes import Classes
from bayesrisk.inference.microdata.law import RecordLaw

_WORTH = 0.2  # of the draws, for weights to be used
_FAR = 4.0  # standard deviations of how often a record is alone
_BATCHES = 20  # of all chains together at least, for the Monte Carlo error


@dataclass(frozen=True)
class Asked:
    """What is asked of a target.

    Attributes
    ----------
    possible : ndarray of bool, shape (cells of the schema,)
        Cells that agree with what is known of the target.
    value : ndarray of int64, shape (cells of the schema,)
        Which statement, 0, 1, ..., is true of a record of the cell.
    values : int
        Number of statements.
    """

    possible: NDArray[np.bool_]
    value: IntArray
    values: int

    def sums(self, cells: FloatArray) -> FloatArray:
        """Return the sums over the possible cells of every value."""
        weights: FloatArray = cells[self.possible].astype(np.float64)
        sums = np.bincount(self.value[self.possible], weights, minlength=self.values)
        return sums.astype(np.float64)

    def shares(self, classes: Classes, cells: FloatArray) -> FloatArray:
        """Return (classes, values): how many records of a class are of a value, on average."""
        of = classes.of_cells(np.flatnonzero(self.possible))
        flat = of * self.values + self.value[self.possible]
        parts = np.bincount(flat, cells[self.possible], minlength=classes.size * self.values)
        whole = classes.mass(cells)[:, None]
        table = parts.reshape(classes.size, self.values)
        found: FloatArray = np.divide(table, whole, out=np.zeros_like(table), where=whole > 0)
        return found


@dataclass(frozen=True)
class Belief:
    """Probabilities of all statements about a target, with their Monte Carlo standard errors."""

    probability: FloatArray
    error: FloatArray

    @classmethod
    def exact(cls, parts: FloatArray) -> Belief:
        """Return probabilities proportional to parts; NaN where there is nothing to share."""
        whole = parts.sum()
        value = parts / whole if whole > 0 else np.full(parts.shape, np.nan)
        return cls(value, np.zeros(parts.shape))


def before(prior: RecordPrior, asked: Asked) -> Belief:
    """Return what is believed of a target of a place before anything is released."""
    return Belief.exact(asked.sums(prior.shares_of_cells))


def after(law: RecordLaw, place: int, shares: FloatArray) -> Belief:
    r"""Return what is believed of a target who is one of the records, E[X_r] / E[G]."""
    of = _by_group(law, place, shares)
    if law.draws is None:
        return Belief.exact(law.mean @ of)
    return _ratio(law.draws @ of, np.ones(law.draws.shape[:2]))


def without(
    law: RecordLaw, place: int, shares: FloatArray, prior: RecordPrior, asked: Asked
) -> Belief:
    r"""Return what is believed of somebody who is none of the records of a law.

    .. math:: P(r) \propto E[(A \theta_r + x_r) / (A + n)],

    the predictive probability of one more record.

    Parameters
    ----------
    law : RecordLaw
        Law of the other records, under :func:`prior_of_others`.
    place : int
        Position of the place.
    shares : ndarray of float, shape (classes, values)
        Records of every value in a record of a class.
    prior : RecordPrior
        Of the place; without a concentration other records say nothing.
    asked : Asked
        What is asked.
    """
    if prior.concentration is None:
        return before(prior, asked)
    base = prior.concentration * asked.sums(prior.shares_of_cells)
    of = _by_group(law, place, shares)
    if law.draws is None:
        return Belief.exact(base + law.mean @ of)
    n = (law.draws @ _by_group(law, place, np.ones((len(shares), 1))))[..., 0]
    # Equal weights for all sizes have no law of the others' number: n + 1 times as probable.
    more = n + 1.0 if prior.size is None else 1.0
    return _ratio(base + law.draws @ of, more / (prior.concentration + n))


def without_by_weights(
    law: RecordLaw,
    place: int,
    shares: FloatArray,
    prior: RecordPrior,
    asked: Asked,
    record: int,
) -> Belief | None:
    r"""Return the same from draws of the law *with* the record, where released counts are sums.

    If what is released of the others is R less the record's part, the law of the others is that of
    all with the record taken off and weighed, and the predictive probability of one more record is

    .. math:: P(r) \propto E[w(x) (A \theta_r + x_r - 1_{t \in r})], \quad
        w(x) = \frac{x_t}{A \theta_t + x_t - 1},

    where t is the group of the record: 0 where there is no such record.

    Parameters
    ----------
    law : RecordLaw
        Law of all records, with draws.
    place, shares, prior, asked : object
        As for :func:`without`.
    record : int
        Class of the record.

    Returns
    -------
    Belief or None
        None without draws, and where their weights are worth less than a fifth of the draws, or
        would be with as many more or fewer draws of such a record alone as may well be by chance:
        of a rare record these weigh most.  There the law of the others must be found.
    """
    if prior.concentration is None:
        return before(prior, asked)
    group = int(law.group[place * len(shares) + record])
    if law.draws is None or group < 0:
        return None
    of = _by_group(law, place, shares)
    x, mass = law.draws[..., group], law.mass[group]
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(x > 0, x / (mass + x - 1.0), 0.0)
    # Whether a record is often enough alone is not decided by how often it happens to be: else
    # draws would be kept that by chance have it too rarely.
    alone, rest = np.count_nonzero(x == 1), np.where(x > 1, weight, 0.0)
    maybe = np.maximum(alone + np.linspace(-_FAR, _FAR, 33) * np.sqrt(alone + 1.0), 0.0)
    square = (rest**2).sum() + maybe / mass**2
    worth = (rest.sum() + maybe / mass) ** 2 / np.maximum(square, 1e-300)
    if not worth.min() >= _WORTH * weight.size:
        return None
    base = prior.concentration * asked.sums(prior.shares_of_cells)
    unseen = 0.0 if alone else 1.0 / mass
    return _ratio(base + law.draws @ of - of[group], weight, float(unseen))


def _by_group(law: RecordLaw, place: int, values: FloatArray) -> FloatArray:
    """Return values of the classes (classes, columns) in a place, by groups of the law."""
    start = place * len(values)
    group = law.group[start : start + len(values)]
    weight = law.weight[start : start + len(values)]
    there = group >= 0
    found = np.zeros((law.mean.size, values.shape[1]))
    np.add.at(found, group[there], weight[there, None] * values[there])
    return found


def _ratio(parts: FloatArray, weight: FloatArray, unseen: float = 0.0) -> Belief:
    """Return shares of weighted means of parts (chains, draws, values), with errors.

    ``unseen`` is a larger weight than that of any draw, which one in as many may have.
    """
    mean = np.einsum("cd,cdv->v", weight, parts) / weight.size
    whole = mean.sum()
    if not whole > 0:
        return Belief.exact(np.zeros(mean.size))
    value = mean / whole
    # Linearised: the error of a ratio of means is that of the mean of these.
    line = weight[..., None] * (parts - value * parts.sum(axis=-1, keepdims=True)) / whole
    chains, draws, values = line.shape
    batches = min(draws, -(-_BATCHES // chains))
    size = draws // batches
    means = line[:, : size * batches].reshape(chains * batches, size, values).mean(axis=1)
    # Of so few batches it is a Student law's scale, whose deviation is larger.
    number = chains * batches
    error = means.std(axis=0, ddof=1) * np.sqrt((number - 1) / max(number - 3, 1) / number)
    # Draws that all say the same say nothing about what one in as many would have said.
    return Belief(value, np.hypot(error, max(1.0 / weight.size, unseen / float(weight.sum()))))
