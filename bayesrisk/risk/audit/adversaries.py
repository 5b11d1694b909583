"""Adversaries: the prior knowledge of each, and the prior that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.inference import RecordPrior
from bayesrisk.inference.microdata.posterior import RecordLaw
from bayesrisk.inference.microdata.system import MicrodataSystem
from bayesrisk.release import NoiseSpec
from bayesrisk.tables.cells import CellSpace

_WORTH = 0.2  # of the draws, for weights to be used
_TELLING = 10  # draws that tell what others like them weigh
_FAR = 4.0  # standard deviations of how often a record is alone
_ROUNDING = 1e-12  # of a probability whose ends are the same
_BATCHES = 20  # of all chains together at least, for the Monte Carlo error
# Of removals: numbers that are kept, that are held at once, and products that are summed
_ROOM, _PIECE, _MOST = 2**25, 2**22, 2**34


@dataclass(frozen=True)
class TargetQuestion:
    """The possible statements about a target, and the schema cells its record may be in."""

    possible: BoolArray  # (cells of the schema,): agrees with what is known of the target
    value: IntArray  # (cells of the schema,): which statement is true of a record of the cell
    values: int  # number of statements

    def sums(self, cells: FloatArray) -> FloatArray:
        """Return the sum of ``cells`` over the possible cells of each statement."""
        weights: FloatArray = cells[self.possible].astype(np.float64)
        sums = np.bincount(self.value[self.possible], weights, minlength=self.values)
        return sums.astype(np.float64)

    def shares(self, classes: CellSpace, cells: FloatArray) -> FloatArray:
        """Return the mean indicator of each statement in a class's records (classes, values)."""
        index = classes.labels(np.flatnonzero(self.possible))
        flat = index * self.values + self.value[self.possible]
        parts = np.bincount(flat, cells[self.possible], minlength=classes.size * self.values)
        mass = classes.mass(cells)[:, None]
        table = parts.reshape(classes.size, self.values)
        return np.divide(table, mass, out=np.zeros_like(table), where=mass > 0)


@dataclass(frozen=True)
class TargetBelief:
    """Probabilities of all statements about a target, with Monte Carlo standard errors."""

    probability: FloatArray
    error: FloatArray

    @classmethod
    def exact(cls, parts: FloatArray) -> TargetBelief:
        """Return probabilities proportional to parts, or NaN where all parts are 0."""
        whole = parts.sum()
        value = parts / whole if whole > 0 else np.full(parts.shape, np.nan)
        return cls(value, np.zeros(parts.shape))

    @classmethod
    def middle_of_ends(cls, least: FloatArray, most: FloatArray) -> TargetBelief:
        """Return probabilities proportional to parts that are known only within bounds.

        The probabilities are those of the middles of the parts. Their error is the distance to the
        farther end, which no standard error of such a value exceeds.
        """
        middle = cls.exact((least + most) / 2.0)
        if not most.any():
            return middle
        # Ends of p_v = x_v / (x_v + sum of x_w): the others are as many, or as few, as can be.
        fewest, rest = (np.maximum(ends.sum() - ends, 0.0) for ends in (least, most))
        low = np.divide(least, least + rest, out=(most > 0.0) * 1.0, where=rest > 0.0)
        high = np.divide(most, most + fewest, out=np.zeros_like(most), where=most > 0.0)
        error = np.maximum(high - middle.probability, middle.probability - low)
        return cls(middle.probability, np.where(error > _ROUNDING, error, 0.0))


def prior_belief(prior: RecordPrior, question: TargetQuestion) -> TargetBelief:
    """Return the belief about a target before anything is released."""
    return TargetBelief.exact(question.sums(prior.shares_of_cells))


def posterior_belief(law: RecordLaw, place: int, shares: FloatArray) -> TargetBelief:
    r"""Return the belief about a target whose record is included, E[X_r] / E[G]."""
    by_group = _by_group(law, place, shares)
    if law.draws is None:
        return TargetBelief.exact(law.mean @ by_group)
    return _ratio(law.draws @ by_group, np.ones(law.draws.shape[:2]))


def belief_without_record(
    law: RecordLaw, place: int, shares: FloatArray, prior: RecordPrior, question: TargetQuestion
) -> TargetBelief:
    r"""Return the belief about a person whose record is outside the data of a law.

    .. math:: P(r) \propto E[(A \theta_r + x_r) / (A + n)],

    the predictive probability of one more record.  The law is that of the other records, under
    :func:`prior_of_others`, which has the factor 1 / (A + n) in it; ``shares`` is (classes,
    values).
    """
    if prior.concentration is None:
        return prior_belief(prior, question)
    base = prior.concentration * question.sums(prior.shares_of_cells)
    by_group = _by_group(law, place, shares)
    if law.draws is None:
        return TargetBelief.exact(base + law.mean @ by_group)
    weight = np.ones(law.draws.shape[:2])
    if prior.size is None:  # equal weights for all sizes have no law of the others' number
        n = (law.draws @ _by_group(law, place, np.ones((len(shares), 1))))[..., 0]
        weight = (n + 1.0) / (prior.concentration + n)
    return _ratio(base + law.draws @ by_group, weight)


class Removals(NamedTuple):
    r"""Each record of every draw removed in turn, and how well another would fit in its place.

    Removing a record of group d, drawn at random, from all records x leaves others y with density

    .. math:: Q(y) \propto P(y) \sum_d (A \theta_d + y_d) L(R \mid y + 1_d),

    P being :func:`prior_of_others`. Without a record of group t the others have the density
    :math:`P(y) L(R \mid y + 1_t)`: the ratio is a weight of at most :math:`1 / (A \theta_t + y_t)`.
    """

    draw: IntArray  # (pairs,): draw and group of each removed record, and how many are like it
    group: IntArray
    number: IntArray
    cells: FloatArray  # (cells, groups): which of the noisy cells count a record
    gain: FloatArray  # (pairs, cells): log likelihood that one more record in a cell adds
    whole: FloatArray  # (pairs,): log of the sum of Q

    @classmethod
    def make(cls, system: MicrodataSystem, law: RecordLaw) -> Self | None:
        """Return the removals of a law's draws; None where counts other than a total are exact.

        None also where there would be too many, or where a record counts more than once.
        """
        (layer,) = system.layers
        noises = {
            c: law.to_law()
            for c, law in enumerate(layer.likelihoods)
            if isinstance(law, NoiseSpec) and not layer.hidden[0, c]
        }
        cells = layer.weights[[*noises], :].toarray().astype(np.float64)
        if law.draws is None or law.engine != "people" or cells.max(initial=0.0) > 1.0:
            return None
        flat = law.draws.reshape(-1, law.mass.size)
        draw, group = np.nonzero(flat)
        size = draw.size * len(cells)
        if size > _ROOM or size * law.mass.size > _MOST:
            return None
        error = layer.counts[0, [*noises]] - (flat @ cells.T)[draw] + cells.T[group]
        gain, whole = np.zeros(error.shape), np.zeros(draw.size)
        for noise in dict.fromkeys(noises.values()):
            mine = [one is noise for one in noises.values()]
            difference = error[:, mine].astype(np.int64)
            low = int(difference.min())
            log_law = noise.logpmf(np.arange(low - 1, int(difference.max()) + 1))
            gain[:, mine] = -np.diff(log_law)[difference - low]
        for piece in np.array_split(np.arange(draw.size), 1 + draw.size * law.mass.size // _PIECE):
            mass = law.mass + flat[draw[piece]]
            mass[np.arange(piece.size), group[piece]] -= 1.0
            fit = gain[piece] @ cells
            peak = fit.max(axis=1)
            whole[piece] = peak + np.log((mass * np.exp(fit - peak[:, None])).sum(axis=1))
        return cls(draw, group, flat[draw, group], cells, gain, whole)

    def weights(
        self, record: int, by_group: FloatArray, shape: tuple[int, ...]
    ) -> tuple[FloatArray, FloatArray]:
        """Return each draw's weight without a record, and the mean value of what is removed."""
        weight = self.number * np.exp(self.gain @ self.cells[:, record] - self.whole)
        size = int(np.prod(shape))
        total = np.bincount(self.draw, weight, size)
        values = [np.bincount(self.draw, weight * v, size) for v in by_group[self.group].T]
        removed = np.stack(values, axis=-1) / np.where(total > 0.0, total, 1.0)[:, None]
        return np.reshape(total, shape), np.reshape(removed, (*shape, -1))


def reweighted_belief(
    law: RecordLaw,
    place: int,
    shares: FloatArray,
    prior: RecordPrior,
    question: TargetQuestion,
    record: int,
    removals: Removals | None = None,
) -> TargetBelief | None:
    r"""Return the belief without the target's record, by reweighting draws that include it.

    Let R less the record's part be the release of the others. Its law is that of all records with
    this one removed and weighted. One more record then has the predictive probability

    .. math:: P(r) \propto E[w(x) (A \theta_r + x_r - 1_{t \in r})], \quad
        w(x) = \frac{x_t}{A \theta_t + x_t - 1},

    where t is the group of the record, and 0 if there is no such record. With ``removals`` any
    other record may be removed instead, with the weight that they give. It is None without draws,
    or if their weights are worth less than a fifth of the draws. It is also None if slightly more
    or fewer draws of such a record alone would have this effect. Draws with a rare record weigh
    most.
    """
    if prior.concentration is None:
        return prior_belief(prior, question)
    group = int(law.group[place * len(shares) + record])
    if law.draws is None or group < 0:
        return None
    by_group = _by_group(law, place, shares)
    x, mass = law.draws[..., group], law.mass[group]
    removed = by_group[group]
    if removals is None:
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = np.where(x > 0, x / (mass + x - 1.0), 0.0)
    else:
        weight, removed = removals.weights(group, by_group, x.shape)
    # Whether a record is often enough alone, or absent, is not decided by how often it happens to
    # be: else draws would be kept that by chance have it too rarely.
    few = weight[(x <= 1) & (weight > 0.0)]
    known = few.size >= _TELLING  # else each may weigh as much as can be
    one, square = (few.mean(), (few**2).mean()) if known else (1.0 / mass, 1.0 / mass**2)
    more = np.maximum(np.linspace(-_FAR, _FAR, 33) * np.sqrt(few.size + 1.0), -few.size)
    squares = (weight**2).sum() + more * square
    worth = (weight.sum() + more * one) ** 2 / np.maximum(squares, 1e-300)
    if not worth.min() >= _WORTH * weight.size:
        return None
    base = prior.concentration * question.sums(prior.shares_of_cells)
    unseen = 0.0 if few.size else 1.0 / float(mass)
    return _ratio(base + law.draws @ by_group - removed, weight, unseen)


def _by_group(law: RecordLaw, place: int, values: FloatArray) -> FloatArray:
    """Return the values of a place's classes (classes, columns), summed by groups of the law."""
    start = place * len(values)
    group = law.group[start : start + len(values)]
    weight = law.weight[start : start + len(values)]
    present = group >= 0
    totals = np.zeros((law.mean.size, values.shape[1]))
    np.add.at(totals, group[present], weight[present, None] * values[present])
    return totals


def _ratio(parts: FloatArray, weight: FloatArray, unseen: float = 0.0) -> TargetBelief:
    """Return ratios of weighted means of parts (chains, draws, values), with errors.

    ``unseen`` is a larger weight than that of any draw, which one in as many may have.
    """
    mean = np.einsum("cd,cdv->v", weight, parts) / weight.size
    whole = mean.sum()
    if not whole > 0:
        return TargetBelief.exact(np.zeros(mean.size))
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
    return TargetBelief(
        value, np.hypot(error, max(1.0 / weight.size, unseen / float(weight.sum())))
    )


#: Share of the other people of the place whose records an adversary of this name knows.
ADVERSARIES = {"outsider": 0.0, "linker": 0.0, "insider": 0.5, "knows-all-but-one": 1.0}


@displayed
@dataclass(frozen=True)
class Adversary:
    """An adversary's prior knowledge of the target and of other people in its place.

    Every adversary knows the target's place and the composition of all other places.

    Attributes
    ----------
    name : str
        Name of the adversary in results.
    known : tuple of str
        Attributes of the target that are known, besides its place.
    neighbours : float, default 0
        Share, in [0, 1], of the other people of the place whose whole records are known.
    """

    name: str
    known: tuple[str, ...] = ()
    neighbours: float = 0.0

    def __post_init__(self) -> None:
        check.text(self.name, "name")
        object.__setattr__(self, "known", check.texts(self.known, "known"))
        share = check.scalar(self.neighbours, "neighbours", lower=0.0, upper=1.0)
        object.__setattr__(self, "neighbours", share)

    @classmethod
    def named(cls, name: str, *, known: Sequence[str] = ()) -> Self:
        """Return one of the four named adversaries, who knows the target's attributes ``known``.

        ``outsider`` and ``linker`` know nobody else's record. ``insider`` knows half of the others
        in the place, and ``knows-all-but-one`` knows all of them.
        """
        check.choice(name, "name", tuple(ADVERSARIES))
        return cls(name, check.texts(known, "known"), ADVERSARIES[name])


def prior_knowing(prior: RecordPrior, records: FloatArray, remaining: int | None) -> RecordPrior:
    r"""Return the prior of a place's other records, given some known records.

    With a concentration A the known records k say what people of the place are like,

    .. math:: A' = A + |k|, \quad \theta'_c = (A \theta_c + k_c) / A';

    without one they say nothing about others.

    With ``MicrodataSystem.without_records``, which takes the known records off the counts, this
    says the same as :class:`~bayesrisk.inference.KnownRecords` of relation ``at least`` for each of
    them.  One system then serves all targets of a place, and an adversary who knows all other
    records also knows their number (``remaining``), which no condition on records says.
    """
    size = prior.size
    n_known = int(records.sum())
    if remaining is not None:
        size = np.zeros(remaining + 1)
        size[remaining] = 1.0
    elif size is not None and n_known:
        size = size[n_known:] / size[n_known:].sum()
    if prior.concentration is None or not n_known:
        return replace(prior, size=size)
    more = prior.concentration + n_known
    shares = (prior.concentration * prior.shares_of_cells + records) / more
    return replace(prior, shares=shares / shares.sum(), concentration=more, size=size)


def prior_of_others(prior: RecordPrior) -> RecordPrior:
    """Return the prior of the other records in a target's place.

    A place with more people is the more probably the target's: with n of them it has m = n - 1
    others with probability proportional to (m + 1) P(m + 1).  With a concentration A there is a
    factor 1 / (A + m), so that means of the others' counts give the predictive probability of one
    more record.
    """
    if prior.size is None:
        return prior
    m = np.arange(prior.size.size - 1)
    size = prior.size[1:] * (m + 1.0)
    if prior.concentration is not None:
        size /= prior.concentration + m
    return replace(prior, size=size / size.sum())
