"""Posterior of an adversary who uses the block, its group and the group's other blocks.

The model is that of Kazan and Reiter, section 3.2. The block count X is known up to one person, and
N is the group count. Releases are the noisy counts of block and group, and the noisy total S of the
other m blocks, whose true total is N - X.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Required, TypedDict, Unpack

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed, number, span
from bayesrisk._base.doors import door
from bayesrisk._base.validation import FloatArray, IntArray, Number
from bayesrisk.answers import Belief
from bayesrisk.distributions import CountLaw
from bayesrisk.distributions.kernels import REACH
from bayesrisk.distributions.sums import NO_RIPPLE, sum_ripple
from bayesrisk.exceptions import ArgumentError, ShapeError
from bayesrisk.inference.count.measurements import SIBLING_NOISE
from bayesrisk.inference.two_levels import _kernels as kernels, model


class TwoLevelArguments(TypedDict, total=False):
    """Unchecked arguments of :class:`TwoLevelSettings`."""

    n_siblings: Required[ArrayLike]
    rho_block: Required[Number]
    rho_group: Required[Number]
    prior: Required[Number]
    known_count: ArrayLike
    group_prior: CountLaw | None
    known_total: int | None
    sensitivity: Number
    conditionals: str
    sibling_noise: str


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoLevelSettings:
    """Checked settings of the two-level model: see :class:`bayesrisk.TwoLevels`."""

    n_siblings: ArrayLike
    rho_block: Number
    rho_group: Number
    prior: Number
    known_count: ArrayLike = 0
    group_prior: CountLaw | None = None
    known_total: int | None = None
    sensitivity: Number = 1.0
    conditionals: str = "coherent"
    sibling_noise: str = "approximate"

    def __post_init__(self) -> None:
        """Check the settings, and store numbers and read-only arrays."""
        delta = check.real_array(
            check.by_neighbour(self.sensitivity), "sensitivity", lower=0.0, bounds="()"
        )
        k = check.count_array(self.known_count, "known_count", lower=0)
        total = self.known_total
        total = None if total is None else check.integer(total, "known_total", lower=0)
        table = model.read_group_prior(self.group_prior, total, k)
        published = check.choice(self.conditionals, "conditionals", model.CONDITIONALS)
        if published == "as-published" and not table.flat and table.allowed[-1] <= k.max():
            raise ArgumentError(
                "group_prior",
                "must allow a group count > known_count with conditionals='as-published'",
                shown=f"at most {table.allowed[-1]}",
            )
        noise = check.choice(self.sibling_noise, "sibling_noise", SIBLING_NOISE)
        settings = model.Settings(
            block=model.level_precision(self.rho_block, "rho_block", delta),
            group=model.level_precision(self.rho_group, "rho_group", delta),
            n_siblings=check.count_array(self.n_siblings, "n_siblings", lower=1, upper=10**9),
            prior=check.probability(self.prior, "prior"),
            known_count=k,
            group_prior=table,
            known_total=total,
            published=published == "as-published",
            exact_noise=noise == "exact",
        )
        arrays: dict[str, NDArray[Any]] = {
            "n_siblings": settings.n_siblings,
            "rho_block": check.real_array(self.rho_block, "rho_block"),
            "rho_group": check.real_array(self.rho_group, "rho_group"),
            "prior": settings.prior,
            "known_count": k,
            "sensitivity": delta,
        }
        check.broadcast(**arrays)
        for name, array in arrays.items():
            value = np.array(array)
            value.flags.writeable = False
            object.__setattr__(self, name, value if value.ndim else value.item())
        object.__setattr__(self, "_checked", settings)

    @property
    def checked(self) -> model.Settings:
        """The settings as precisions and tables for the computations."""
        settings: model.Settings = vars(self)["_checked"]
        return settings

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The settings that may be arrays, by name."""
        names = ("n_siblings", "known_count", "rho_block", "rho_group", "sensitivity", "prior")
        return {name: np.asarray(getattr(self, name)) for name in names}


def _window(settings: model.Settings, n: float, total: float, reach: float) -> tuple[int, int]:
    """Return the first relevant group count minus k, and how many follow."""
    k, table = settings.known_count.item(), settings.group_prior
    if not table.flat:
        return table.start - k, table.log_pmf.size
    b, c = settings.group.item(), settings.total.item()
    if b + c == 0.0:
        raise ArgumentError(
            "group_pmf needs a release or a proper group_prior: with rho_block = rho_group = 0 "
            "the flat prior has no posterior that sums to 1"
        )
    width = np.sqrt(reach / (b + c)) + 2.0
    if not 2.0 * width <= model.MAX_TERMS:
        raise ArgumentError(
            "group_pmf", f"must have at most {model.MAX_TERMS} entries", shown=f"{2 * width:g}"
        )
    centre = n * (b / (b + c)) + total * (c / (b + c))
    first = int(max(0.0, np.floor(centre - width)))
    return first, int(max(0.0, np.ceil(centre)) + np.ceil(width)) + 1 - first


def group_pmf(
    settings: model.Settings, block: float, group: float, siblings: float
) -> tuple[int, FloatArray]:
    """Return the smallest group count, and the posterior probabilities from there on.

    Given the block count N follows A_i(t); the two laws are mixed by the posterior of the block
    count, under the coherent model and, by stationarity, under the published conditionals.
    """
    k = settings.known_count.item()
    ripple = NO_RIPPLE
    if settings.exact_noise:
        ripple = sum_ripple(settings.block.item(), settings.n_siblings.item())
    n, total = group - k, siblings
    pi = float(model.target_probability(settings, *map(np.array, (block - k, n, total))))
    reach = REACH + float(np.ptp(ripple))
    window = _window(settings, n, total, reach)
    # Copies: what may not be written would be compiled apart.
    laws = kernels.Laws(np.array(ripple), np.array(settings.group_prior.log_pmf), reach)
    b, c = settings.group.item(), settings.total.item()
    work = np.empty((6, window[1]))
    kernels.fill(n, total, b, c, laws, window, work)
    impossible = max(-window[0], 0)
    without, with_target = work[3:5, impossible:]
    pmf = (1.0 - pi) * (without / without.sum())
    if pi > 0.0:
        pmf = pmf + pi * (with_target / with_target.sum())
    return max(window[0], 0) + k, pmf


@displayed
@dataclass(frozen=True)
class HierarchicalPosterior(Tabular):
    """Posterior of the target and of the group count, given releases of two levels.

    It is exact but for the stated truncation; arrays have one common shape.

    ``settings`` are budgets, priors and number of siblings. Releases are the noisy counts of the
    ``block`` and of the ``group``, and ``siblings``, the total over the other blocks.
    ``target_probability`` is the posterior probability that the target has the characteristics.
    ``block_probability`` is the same given the block's count alone, to compare the hierarchy with.
    """

    settings: TwoLevelSettings
    block: IntArray
    group: IntArray
    siblings: IntArray
    target_probability: FloatArray
    block_probability: FloatArray

    @property
    def prior(self) -> FloatArray:
        """Probability of the target before the releases: the baseline."""
        return self._columns()["prior"]

    @property
    def truncation_bound(self) -> float:
        """Bound on the share of each sum left out, and so on every probability's error."""
        return model.TRUNCATION if self.settings.checked.group_prior.flat else 0.0

    @property
    def status(self) -> str:
        """Always ``"exact"``."""
        return "exact"

    @property
    def risk_ratio(self) -> FloatArray:
        """Posterior over prior."""
        return np.asarray(self.target_probability / self.prior)

    @property
    def belief(self) -> Belief:
        """Belief that the target is there, before and after the releases."""
        return Belief(self.prior, self.target_probability)

    def _answer(self) -> list[str]:
        return [
            f"The belief that the target is there goes from {span(self.prior)} to "
            f"{span(self.target_probability)}; the block's count alone makes it "
            f"{span(self.block_probability)}.",
            f"Exact up to {number(self.truncation_bound)} ({self.settings.conditionals} "
            "conditionals).",
        ]

    def _columns(self) -> dict[str, NDArray[Any]]:
        shape = self.target_probability.shape
        return {name: np.broadcast_to(a, shape) for name, a in self.settings.arrays.items()}

    @property
    def group_pmf(self) -> pd.Series:
        """Posterior of the group count of a single release, indexed by ``group_count``."""
        if self.target_probability.ndim:
            raise ShapeError(
                "group_pmf belongs to one release, got shape "
                f"{self.target_probability.shape}; use group_frame()"
            )
        return self.group_pmf_of(0)

    def group_pmf_of(self, i: int) -> pd.Series:
        """Return the posterior of the group count of the i-th release, in the order of a frame."""
        i = check.integer(i, "i", lower=0, upper=self.target_probability.size - 1)
        one = {name: column.flat[i] for name, column in self._columns().items()}
        releases = (float(array.flat[i]) for array in (self.block, self.group, self.siblings))
        start, pmf = group_pmf(replace(self.settings, **one).checked, *releases)
        index = pd.RangeIndex(start, start + pmf.size, name="group_count")
        return pd.Series(pmf, index=index, name="probability")

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each release."""
        releases = {"block": self.block, "group": self.group, "siblings": self.siblings}
        answers = {
            "target_probability": self.target_probability,
            "block_probability": self.block_probability,
            "risk_ratio": self.risk_ratio,
        }
        columns = releases | self._columns() | answers
        return pd.DataFrame({name: np.ravel(column) for name, column in columns.items()})

    def group_frame(self) -> pd.DataFrame:
        """Return the posterior of the group count of every release, in long form.

        Columns are ``release`` (its position in :meth:`to_frame`), ``group_count`` and
        ``probability``.
        """
        parts = [self.group_pmf_of(i) for i in range(self.target_probability.size)]
        long = pd.concat(parts, keys=range(len(parts)), names=["release"])
        return pd.DataFrame(long.reset_index())


@door(TwoLevelSettings)
def hierarchical_posterior(
    block: ArrayLike, group: ArrayLike, siblings: ArrayLike, **question: Unpack[TwoLevelArguments]
) -> HierarchicalPosterior:
    """Return the posterior of the target given releases: :meth:`bayesrisk.TwoLevels.posterior`."""
    settings = TwoLevelSettings(**question)
    model.warn_if_published(settings.checked)
    return settings_posterior(settings, block, group, siblings)


def settings_posterior(
    question: TwoLevelSettings, block: ArrayLike, group: ArrayLike, siblings: ArrayLike
) -> HierarchicalPosterior:
    """Return the posterior under checked settings, without a warning."""
    counts = {"block": block, "group": group, "siblings": siblings}
    releases = {name: check.count_array(value, name) for name, value in counts.items()}
    shape = check.broadcast(**releases, **question.arrays)
    settings = question.checked
    d, n, total = model.relative_releases(settings, **releases)
    arrays: dict[str, Any] = releases | {
        "target_probability": model.target_probability(settings, d, n, total),
        "block_probability": model.block_probability(settings, d),
    }
    full: dict[str, Any] = {name: np.broadcast_to(a, shape) for name, a in arrays.items()}
    return HierarchicalPosterior(settings=question, **full)
