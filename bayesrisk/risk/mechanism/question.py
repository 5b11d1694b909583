"""Questions about a protection, and settings of their answers."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.validation import FloatArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ShapeError, quote
from bayesrisk.tables import Workload

METHODS = ("auto", "closed-form", "simulated")
#: Releases that are drawn in one go: the error of a mean of so many is a thousandth of one's.
MAX_RELEASES = 10**6
Alternative = Mapping[str, int | str] | None


@dataclass(frozen=True, eq=False)
class MechanismQuestion:
    """The adversary's view and prior: the same for every target and every protection.

    Attributes
    ----------
    workload : Workload
        Published tables.
    observed : sequence of tuple
        What the adversary reads: ``(level, table)``, all cells that differ between hypotheses;
        ``(level, table, cell)``, at the target's place; ``(level, table, cell, place)``.
    alternatives : sequence of mapping or None
        Hypotheses beside the truth: None, the target is absent; ``{column: value}``, its record
        differs so (a code, or the label of one).
    prior : array_like
        Belief in the truth, in (0, 1), where there is one alternative; else in every hypothesis,
        the truth first.
    known_totals : sequence of tuple, optional
        Counts that the adversary knows exactly (invariants), named as in ``observed``.  They hold
        under every hypothesis: one that changes them is refused, as an absent target does unless
        others make up the total (``{"block": ...}`` says that it is elsewhere in the group).
    """

    workload: Workload
    observed: Sequence[tuple[str, ...]]
    alternatives: Sequence[Alternative]
    prior: ArrayLike
    known_totals: Sequence[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        check.instance(self.workload, Workload, "workload")
        named = isinstance(self.alternatives, (Mapping, str, bytes))
        if named or not isinstance(self.alternatives, Sequence):
            raise ArgumentTypeError("alternatives", "must be a sequence", got=self.alternatives)
        for one in self.alternatives:
            if one is not None and not (isinstance(one, Mapping) and one):
                raise ArgumentTypeError(
                    "alternatives", "must be None (absent) or columns with values", got=one
                )
        if not self.alternatives:
            raise ArgumentError("alternatives", "must have at least one hypothesis", shown="none")
        self.tables()
        self._named_tables(self.known_totals, "known_totals")
        self.prior_pmf()

    def tables(self) -> list[tuple[str, str]]:
        """Return the (level, table) observed, and those of known totals, each once."""
        names = self._named_tables(self.observed, "observed")
        return list(dict.fromkeys(names + self._named_tables(self.known_totals, "known_totals")))

    def _named_tables(self, entries: object, name: str) -> list[tuple[str, str]]:
        """Return the tables that entries name."""
        workload = self.workload
        if (
            not isinstance(entries, Sequence)
            or isinstance(entries, (str, bytes))
            or (name == "observed" and not entries)
        ):
            raise ArgumentError(name, "must be a sequence of (level, table, ...)", got=entries)
        keys: dict[tuple[str, str], None] = {}
        for entry in entries:
            if (
                not isinstance(entry, tuple)
                or not 2 <= len(entry) <= 4
                or not all(isinstance(part, str) for part in entry)
            ):
                raise ArgumentError(
                    f"{name} must hold (level, table), (level, table, cell) or "
                    f"(level, table, cell, geoid), got {quote(entry)}"
                )
            key = entry[0], entry[1]
            if key not in workload.tables:
                raise ArgumentError(
                    name, f"must name tables of the workload, {quote([*workload.tables])}", got=key
                )
            if len(entry) > 2 and entry[2] not in workload.tables[key].cells:
                raise ArgumentError(name, f"must name cells of {key!r}", got=entry[2])
            keys[key] = None
        return list(keys)

    def prior_pmf(self) -> FloatArray:
        """Return the belief in each hypothesis, the truth first; sums to 1."""
        alternatives = len(self.alternatives)
        beliefs = check.real_array(self.prior, "prior")
        if beliefs.ndim == 0:
            p = float(check.probability(self.prior, "prior"))
            if alternatives != 1:
                raise ShapeError(
                    f"prior must hold {alternatives + 1} beliefs, the truth first, "
                    f"got {quote(self.prior)}"
                )
            return np.array([p, 1.0 - p])
        pmf = check.probability_vector(self.prior, "prior")
        if pmf.shape != (alternatives + 1,):
            raise ShapeError("prior", f"must have shape ({alternatives + 1},)", shown=pmf.shape)
        if not 0.0 < pmf[0] < 1.0:
            raise ArgumentError("prior[0]", "must be in (0, 1)", shown=pmf[0])
        return pmf


@dataclass(frozen=True)
class MechanismOptions:
    """Method and details of finding the risk of a protection.

    Attributes
    ----------
    method : {"auto", "closed-form", "simulated"}, default "auto"
        Closed form where the spec gives the likelihood of every observed cell.
    utility_draws : int, default 20
        Releases over which the error of the tables is measured, at least 2.
    confidence, smoothing : float, default 0.95 and 1/2
        Of the intervals, in (0, 1); and pseudo-count of the simulated likelihood, > 0
        (:func:`simulated_likelihood`).
    executor, progress : Executor and callable, optional
        Runs the draws, results do not depend on it; ``progress(done, draws)``, from 0 again for
        every protection that is simulated.
    """

    method: str = "auto"
    utility_draws: int = 20
    confidence: float = 0.95
    smoothing: float = 0.5
    executor: Executor | None = None
    progress: Callable[[int, int], None] | None = None

    def __post_init__(self) -> None:
        check.choice(self.method, "method", METHODS)
        check.integer(self.utility_draws, "utility_draws", lower=2, upper=MAX_RELEASES)
        check.scalar(self.confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
        check.scalar(self.smoothing, "smoothing", lower=0.0, bounds="()")
        check.function(self.progress, "progress")


def read_options(options: MechanismOptions | None) -> MechanismOptions:
    """Return options that were given, or the usual ones."""
    options = MechanismOptions() if options is None else options
    return check.instance(options, MechanismOptions, "options")
