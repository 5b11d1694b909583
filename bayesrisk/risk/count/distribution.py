"""The distribution of the risk ratio over releases, beyond its average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed, number
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.validation import FloatAnswer, FloatArray, IntArray
from bayesrisk._version import __version__
from bayesrisk.distributions import CountLaw, DiscreteGaussian, Noise
from bayesrisk.distributions.discrete_laplace import noise_precision
from bayesrisk.distributions.kernels import LogTable, log_table
from bayesrisk.exceptions import ArgumentError, ShapeError
from bayesrisk.risk.count.evidence import TIE, EvidenceLaw, levels_law, unknown_others_law
from bayesrisk.risk.count.several_levels import (
    average_ratio,
    multilevel_marginal_posterior,
    ratio_of_others,
)

if TYPE_CHECKING:
    from bayesrisk.plotting import Axes

_DRAWN = 256  # ratios of a curve
GIVEN = ("target", "other", "prior")


def ratio_evidence(ratio: FloatArray, prior: float) -> FloatArray:
    """Return the evidence at which the risk ratio is ``ratio``; infinite for ratios >= 1 / p."""
    # log((1 - p) / (1 / r - p)), in r - 1: near 1 the ratio and the prior would cancel.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        share = prior / (1.0 - prior) * (ratio - 1.0)
        inside = np.log(ratio) - np.log1p(-share)
    return np.where(share < 1.0, inside, np.inf)


def evidence_ratio(evidence: FloatArray, prior: float) -> FloatArray:
    """Return the risk ratio that corresponds to given evidence."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(1.0 / (prior + (1.0 - prior) * np.exp(-evidence)))


@displayed
@dataclass(frozen=True, eq=False)
class RiskDistribution(Tabular):
    """The exact distribution of the risk ratio over the possible releases.

    Attributes
    ----------
    prior : float
        Prior probability p that the target is in the cell.
    given : str
        The releases averaged over: ``"target"`` (the target is in the cell), ``"other"`` (it is
        not), ``"prior"`` (either, with the adversary's prior), or the true counts.
    mean : float
        Expectation of the ratio; given the target it is the marginal risk.
    left_out : float
        Bound on the probability of the releases left out, hence on the error of probabilities.
    laws, version : tuple of (float, EvidenceLaw), str
        Mixture law of the adversary's evidence, and the version of bayesrisk.
    """

    prior: float
    given: str
    mean: float
    left_out: float
    laws: tuple[tuple[float, EvidenceLaw], ...]
    version: str = __version__

    def _answer(self) -> list[str]:
        low, middle, high = (number(self.quantile(q)) for q in (0.05, 0.5, 0.95))
        return [
            f"Risk ratio over releases ({self.given}): mean {number(self.mean)}, median {middle}, "
            f"90 % between {low} and {high}; at prior {number(self.prior)} never above "
            f"{number(1.0 / self.prior)}.",
            f"Exact up to {number(self.left_out)}.",
        ]

    def _tail(self, ratio: ArrayLike, *, above: bool) -> FloatAnswer:
        limits = check.real_array(ratio, "ratio", lower=0.0)
        evidence = ratio_evidence(limits, self.prior)
        out = np.empty(evidence.shape)
        for i, value in enumerate(evidence.flat):
            parts = (w * law.tail(value, above=above) for w, law in self.laws)
            out.flat[i] = min(sum(parts), 1.0)
        return check.answer(out)

    def exceeds(self, ratio: ArrayLike) -> FloatAnswer:
        """Return the probability that the risk ratio of a release exceeds ``ratio`` (>= 0).

        The error is ``left_out`` and rounding (1e-13 relative). A ratio whose evidence is within
        1e-10 (1 + its size) of that of ``ratio`` counts as equal to it.
        """
        return self._tail(ratio, above=True)

    def cdf(self, ratio: ArrayLike) -> FloatAnswer:
        """Return the probability that the risk ratio of a release is at most ``ratio`` (>= 0)."""
        return self._tail(ratio, above=False)

    def quantile(self, probability: ArrayLike) -> FloatAnswer:
        """Return the smallest ratio r with P(ratio <= r) >= ``probability``, which is in (0, 1).

        Within ``left_out`` of 0 or 1 it is the end of the enumerated range.
        """
        levels = check.probability(probability, "probability")
        flat = [self._quantile(float(level)) for level in levels.flat]
        evidence = np.reshape(flat, levels.shape)
        ratio = evidence_ratio(evidence, self.prior)
        for _ in range(3):  # next to 1 / p a rounded ratio may stand for less evidence: not below
            short = ratio_evidence(ratio, self.prior) < evidence
            ratio = np.where(short, np.nextafter(ratio, np.inf), ratio)
        return check.answer(ratio)

    def _quantile(self, level: float) -> float:
        """Return the evidence at a probability level, by bisection and then exactly."""
        ends = np.array([law.ends for _, law in self.laws])
        low, high = float(ends[:, 0].min()) - 1.0, float(ends[:, 1].max())
        # Whichever tail is the smaller keeps its digits.
        upper = level > 0.5

        def reached(value: float) -> bool:
            parts = [w * law.tail(value, above=upper) for w, law in self.laws]
            return sum(parts) <= 1.0 - level if upper else sum(parts) >= level

        while high - low > 0.25 * TIE * (1.0 + abs(high)):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if reached(middle) else (middle, high)
        # Ties of ``low`` do not reach the level, those of ``high`` do: one value lies between.
        least = min(law.next_above(low) for _, law in self.laws)
        return min(least, float(ends[:, 1].max()))

    def to_frame(self) -> pd.DataFrame:
        """Return 256 ratios and the probability of exceeding each, as the plot shows them."""
        low, high = np.log(np.asarray(self.quantile([1e-4, 1.0 - 1e-4])))
        ratio = np.exp(np.linspace(low, high, _DRAWN))
        return pd.DataFrame({"risk_ratio": ratio, "exceeds": self.exceeds(ratio)})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the probability that each ratio is exceeded."""
        from bayesrisk.plotting.counts import plot_risk_distribution

        return plot_risk_distribution(self.to_frame(), mean=self.mean, ax=ax)


def risk_distribution(
    *,
    noise: Noise | DiscreteGaussian,
    prior: float,
    given: str = "target",
    others: Sequence[CountLaw | None] | None = None,
    true_others: ArrayLike | None = None,
    left_out: float = 1e-15,
) -> RiskDistribution:
    r"""Return the distribution of the risk ratio over releases of one or several counts.

    .. math:: P\Big(\frac{\pi}{p} > r\Big) = P\Big(\sum_l \rho_l (2 \eta_l + s) >
        \log\frac{1 - p}{1/r - p}\Big), \quad \eta_l \sim N_\mathbb{Z}(0, 1 / 2\rho_l)

    Here s = 1 if the target is in the cell and s = -1 if not; known counts cancel. The numbers
    :math:`J_l` of other people that a level adds may be unknown (``others``). Then
    :math:`y_l = X + J_0 + \dots + J_l + \eta_l`, and the evidence is

    .. math:: \log \frac{\sum_J \prod_l P(J_l)\, P(\eta_l = y_l - 1 - J_0 - \dots - J_l)}
        {\sum_J \prod_l P(J_l)\, P(\eta_l = y_l - J_0 - \dots - J_l)} .

    Source: Kazan and Reiter (arXiv:2204.04253), equation (3.2) and supplement S1.3, for the ratio.

    Parameters
    ----------
    noise : Noise or DiscreteGaussian, shape () or (levels,)
        Noise of the count, or of each level that counts the target, smallest area first: a zCDP
        budget, ``Noise(rho=[...])``, or a law.
    prior : float
        Prior probability p that the target is in the cell, in (0, 1).
    given : {"target", "other", "prior"}, default "target"
        Releases with the target in the cell (the data holder's view), without it, or of either with
        the adversary's prior.
    others : sequence of CountLaw or None, length levels, optional
        Prior on the number of other people that each level adds to the one below: those of the
        block, of the rest of its group, of the rest of the tract, and so on. They are independent,
        with finite support; None if known. By default all are known.
    true_others : array_like of int, shape (levels,), optional
        True values of these numbers, possible under ``others``; ignored where that is None.
        Releases then have this truth. By default it follows ``others``.
    left_out : float, default 1e-15
        Largest probability of releases that are left out, in (0, 1e-3].

    Returns
    -------
    RiskDistribution
        Tail probabilities, quantiles and mean of the ratio of posterior to prior. It is exact but
        for ``left_out`` and rounding. At most 2**22 values are listed, for half of the levels or,
        with ``others``, for all from the first unknown number on.

    Notes
    -----
    Given the target, the mean is that of :func:`multilevel_marginal_posterior`; given the other it
    is summed in the same way; under the adversary's prior it is 1. With ``others`` it is summed
    over the listed releases and too low by at most ``left_out / p``. Levels from the first unknown
    number on share unknown people, so the product of their ranges (by default 8 standard deviations
    either side) is listed. Two such levels take milliseconds, three a second.

    Examples
    --------
    >>> from bayesrisk import Noise
    >>> levels = Noise(rho=[0.0992264, 0.2464845])
    >>> law = risk_distribution(noise=levels, prior=1 / 10)
    >>> print(round(law.exceeds(2), 4), round(law.quantile(0.95), 3))
    0.2975 3.849

    The same if the rest of the group has three to five others, in unknown number:

    >>> from bayesrisk.distributions import FiniteLaw
    >>> law = risk_distribution(
    ...     noise=levels, prior=1 / 10, others=[None, FiniteLaw(3, [0.25, 0.5, 0.25])]
    ... )
    >>> print(round(law.exceeds(2), 4), round(law.quantile(0.95), 3))
    0.2602 3.334
    """
    precision = noise_precision(noise)
    if precision.ndim > 1:
        raise ShapeError(f"noise must be one number or a list of levels, got {precision.shape}")
    p = check.scalar(prior, "prior", lower=0.0, upper=1.0, bounds="()")
    check.choice(given, "given", GIVEN)
    cut = check.scalar(left_out, "left_out", lower=0.0, upper=1e-3, bounds="(]")
    levels = np.atleast_1d(precision)
    shares = {"target": [(1.0, True)], "other": [(1.0, False)]}
    parts = shares.get(given, [(p, True), (1.0 - p, False)])
    tables = _level_tables(others, levels.size)
    if others is None and true_others is not None:
        raise ArgumentError("true_others belongs with others, got None for these")
    if all(table is None for table in tables):
        laws = tuple((w, levels_law(levels, present=present, left_out=cut)) for w, present in parts)
        mean = 1.0  # on average over the adversary's prior
        if given == "target":
            noise = DiscreteGaussian(0.5 / levels)
            mean = float(multilevel_marginal_posterior(noise=noise, prior=p).ratio)
        elif given == "other":
            mean = ratio_of_others(levels, p)
        return RiskDistribution(p, given, mean, cut, laws)
    truth = _truth(true_others, tables)
    laws = tuple(
        (w, unknown_others_law(levels, tables, present=present, left_out=cut, truth=truth))
        for w, present in parts
    )
    mean = sum(w * average_ratio(law, p) for w, law in laws)
    label = given if truth is None else f"{given}, others {', '.join(map(str, truth.tolist()))}"
    return RiskDistribution(p, label, mean, cut, laws)


def _level_tables(entries: Sequence[CountLaw | None] | None, levels: int) -> list[LogTable | None]:
    """Return the law of the number of others that each level adds, None where known."""
    laws = [None] * levels if entries is None else check.items(entries, "others")
    if len(laws) != levels:
        raise ShapeError(
            f"others must have one entry for each of {levels} levels of noise, got {len(laws)}"
        )
    return [None if law is None else log_table(law, "others").trimmed() for law in laws]


def _truth(true_others: ArrayLike | None, tables: Sequence[LogTable | None]) -> IntArray | None:
    """Return the checked true numbers of others that levels add."""
    if true_others is None:
        return None
    truth = check.count_array(true_others, "true_others", lower=0)
    if truth.shape != (len(tables),):
        raise ShapeError(
            f"true_others must have one number for each of {len(tables)} levels, got shape "
            f"{truth.shape}"
        )
    for level, (number_, table) in enumerate(zip(truth.tolist(), tables, strict=True)):
        if table is not None and not np.isfinite(table.log_probability(number_)):
            raise ArgumentError(
                f"true_others must be possible under others, got {number_} at level {level}"
            )
    return np.where([table is None for table in tables], 0, truth)
