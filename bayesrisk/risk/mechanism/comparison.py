"""Several protections of one population side by side, and one before and after post-processing."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._random import generator
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import MechanismSpec
from bayesrisk.risk.mechanism._closed_form import cell_laws, exact_average
from bayesrisk.risk.mechanism._estimate import Settings
from bayesrisk.risk.mechanism._hypotheses import ask
from bayesrisk.risk.mechanism.posterior import MechanismRisk, assess, mechanism_risk
from bayesrisk.tables import Microdata, Records, Workload

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PostprocessingEffect", "compare_mechanisms", "postprocessing_effect"]

_DRAWS_BEFORE = 2**17  # a draw costs a few dozen additions: the error is below 0.0015
Target = int | Mapping[str, Any]


def compare_mechanisms(
    population: Microdata | Records,
    mechanisms: Mapping[str, Mechanism],
    targets: Mapping[str, Target],
    *,
    workload: Workload,
    observed: Sequence[tuple[str, ...]],
    alternatives: Sequence[Mapping[str, Any] | None],
    prior: ArrayLike,
    draws: int,
    rng: np.random.Generator | int,
    method: str = "auto",
    utility_draws: int = 20,
    confidence: float = 0.95,
    smoothing: float = 0.5,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> "pd.DataFrame":
    """Return risk and utility of several protections for several targets, as one frame.

    Parameters
    ----------
    population : Microdata or Records
        The truth.
    mechanisms : mapping of str to Mechanism
        Protections by the name they get in the frame.
    targets : mapping of str to target
        Targets by name; each as in :func:`mechanism_risk`.
    workload : Workload
        Published tables.
    observed : sequence of tuple
        What the adversary reads, seen from each target's place; as :func:`mechanism_risk`.
    alternatives : sequence of mapping or None
        Other hypotheses, the same for every target.
    prior : array_like
        Belief in the truth, or in every hypothesis.
    draws : int
        Releases under each hypothesis, at least 40; those of the truth serve every target.
    rng : Generator or int
        Source of randomness; every protection starts from the same seed, so that a row does not
        depend on which others there are.
    method : {"auto", "closed-form", "simulated"}, default "auto"
        As :func:`mechanism_risk`.
    utility_draws : int, default 20
        Releases over which the error of the tables is measured.
    confidence : float, default 0.95
        Of the intervals.
    smoothing : float, default 1/2
        Pseudo-count of the simulated likelihood.
    executor : concurrent.futures.Executor, optional
        Runs the draws.
    progress : callable, optional
        ``progress(done, draws)``, from 0 again for every protection that is simulated.

    Returns
    -------
    pandas.DataFrame
        One row for each protection and target: columns ``protection``, ``target``, then those of
        :meth:`MechanismRisk.to_frame`.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or there is no mechanism or no target.
    ArgumentTypeError
        If ``mechanisms`` or ``targets`` is not a mapping.
    ShapeError
        If ``prior`` has another length than the hypotheses.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesrisk.mechanisms import make_mechanism
    >>> from bayesrisk.tables import Records, Schema, Workload
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 3, "sex": [0, 1, 1],
    ...                        "age": [30, 4, 5], "race": [1, 3, 1], "hisp": [0, 0, 0]})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> frame = compare_mechanisms(
    ...     records,
    ...     {"none": make_mechanism("identity"),
    ...      "rounded": make_mechanism("rounding", base=3, method="random")},
    ...     {"first": 0},
    ...     workload=Workload.named("sf1-block").select(tables=["P1"]), observed=[("block", "P1")],
    ...     alternatives=[None], prior=0.2, draws=100, rng=1,
    ... )
    >>> frame[["protection", "marginal_risk", "mean_absolute_error"]].round(3)
      protection  marginal_risk  mean_absolute_error
    0       none          5.000                  0.0
    1    rounded          1.364                  0.0
    """
    import pandas as pd  # slow to import

    for name, value in (("mechanisms", mechanisms), ("targets", targets)):
        if not isinstance(value, Mapping):
            raise ArgumentTypeError(f"{name} must map names to {name}, got {shown(value)}")
        if not value:
            raise ArgumentError(f"{name} must have at least one, got none")
    settings = Settings(draws, method, confidence, smoothing, executor, progress)
    seed = int(generator(rng).integers(2**63))
    questions = [
        ask(
            population,
            target,
            workload=workload,
            observed=observed,
            alternatives=alternatives,
            prior=prior,
        )
        for target in targets.values()
    ]
    frames = []
    for protection, mechanism in mechanisms.items():
        found = assess(questions, mechanism, workload, settings, utility_draws, seed)
        for target, result in zip(targets, found, strict=True):
            frame = result.to_frame()
            frame.insert(0, "target", target)
            frame.insert(0, "protection", protection)
            frames.append(frame)
    return pd.concat(frames, ignore_index=True)


@dataclass(frozen=True, eq=False)
class PostprocessingEffect:
    """What post-processing of a whole noisy histogram takes from the adversary.

    Attributes
    ----------
    prior : float
        Belief in the truth.
    measured_cells : int
        Noisy counts that differ between hypotheses.
    before, before_error : float
        Average posterior to who sees every noisy count, with the exact likelihood; its standard
        error.
    before_lower, before_upper : float
        Ends of its interval.
    after, after_error : float
        Average posterior to who sees the published cells, with the simulated likelihood.
    after_lower, after_upper : float
        Ends of its interval, bias included.
    margin, margin_error : float
        ``before - after``, never negative but for the error, which is given beside.
    published : MechanismRisk
        The answer for the published cells.
    version : str
        Version of bayesrisk.
    """

    prior: float
    measured_cells: int
    before: float
    before_error: float
    before_lower: float
    before_upper: float
    after: float
    after_error: float
    after_lower: float
    after_upper: float
    margin: float
    margin_error: float
    published: MechanismRisk
    version: str = __version__

    def to_frame(self) -> "pd.DataFrame":
        """Return one row.

        Returns
        -------
        pandas.DataFrame
            A column for each number.
        """
        import pandas as pd  # slow to import

        names = [f.name for f in fields(self) if f.name != "published"]
        return pd.DataFrame({name: [getattr(self, name)] for name in names})


def postprocessing_effect(
    population: Microdata | Records,
    mechanism: Mechanism,
    target: Target,
    *,
    workload: Workload,
    observed: Sequence[tuple[str, ...]],
    alternatives: Sequence[Mapping[str, Any] | None],
    prior: ArrayLike,
    draws: int,
    rng: np.random.Generator | int,
    measurements: Workload | None = None,
    confidence: float = 0.95,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PostprocessingEffect:
    """Return the average posterior from all noisy counts, and from what is published of them.

    No function of the noisy counts has a larger average posterior of the truth (data-processing
    inequality).  The published counts are such a function as far as what the mechanism keeps exact
    is the same under every hypothesis.

    Parameters
    ----------
    population : Microdata or Records
        The truth.
    mechanism : Mechanism
        One that measures with noise and post-processes, with a method
        ``measurement_noise(workload)`` that gives the law of every measured table.
    target : int or mapping
        As in :func:`mechanism_risk`.
    workload : Workload
        Published tables.
    observed : sequence of tuple
        Published cells that the adversary reads.
    alternatives : sequence of mapping or None
        Other hypotheses.
    prior : array_like
        Belief in the truth, or in every hypothesis.
    draws : int
        Releases under each hypothesis, at least 40.
    rng : Generator or int
        Source of randomness.
    measurements : Workload, optional
        Definitions of the measured tables, where they are not those published.
    confidence : float, default 0.95
        Of the intervals.
    executor : concurrent.futures.Executor, optional
        Runs the draws.
    progress : callable, optional
        ``progress(done, draws)``.

    Returns
    -------
    PostprocessingEffect
        Both averages, and their difference.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or a measured table is not defined.
    ArgumentTypeError
        If the mechanism says nothing about its measurements.
    ShapeError
        If ``prior`` has another length than the hypotheses.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesrisk.mechanisms import make_mechanism
    >>> from bayesrisk.tables import Attribute, Records, Schema, Workload
    >>> hair = Schema("hair", (Attribute("colour", 3),), Schema.named("sf1-person").geography)
    >>> table = {"name": "colour", "cross": ["colour"]}
    >>> published = Workload.from_dict(
    ...     {"schema": hair.to_dict(), "levels": ["block"], "tables": [table]}
    ... )
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 3, "colour": [0, 1, 0]})
    >>> effect = postprocessing_effect(
    ...     Records.from_frame(people, schema=hair), make_mechanism("topdown", rho="1/2"), 0,
    ...     workload=published, observed=[("block", "colour")], alternatives=[{"colour": 2}],
    ...     prior=0.5, draws=60, rng=1,
    ... )
    >>> effect.measured_cells, bool(effect.margin > -3 * effect.margin_error)
    (2, True)
    """
    noise_of = getattr(mechanism, "measurement_noise", None)
    if not callable(noise_of):
        raise ArgumentTypeError(f"mechanism must have measurement_noise(), got {shown(mechanism)}")
    level = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    seed = int(generator(rng).integers(2**63))
    if measurements is not None:
        check.instance(measurements, Workload, "measurements")
    draws = check.integer(draws, "draws", lower=2)
    known = workload if measurements is None else measurements.union(workload)
    noise = noise_of(workload)
    missing = sorted(set(noise) - set(known.tables))
    if missing:
        raise ArgumentError(
            f"measurements must define every measured table, got none for {missing[0]}"
        )
    hypotheses: dict[str, Any] = {"alternatives": alternatives, "prior": prior}
    question = ask(population, target, workload=known, observed=list(noise), **hypotheses)
    spec = MechanismSpec("measurements", tables=noise)
    laws = cell_laws(spec, question.counts, [cell[:2] for cell in question.cells])
    before = exact_average(
        laws or [],
        question.prior,
        0,
        draws=max(draws, _DRAWS_BEFORE),
        rng=np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,))),
        confidence=level,
    )
    after = mechanism_risk(
        population,
        mechanism,
        target,
        workload=workload,
        observed=observed,
        draws=draws,
        rng=seed,
        utility_draws=2,
        confidence=level,
        executor=executor,
        progress=progress,
        **hypotheses,
    )
    return PostprocessingEffect(
        prior=after.prior,
        measured_cells=len(question.cells),
        before=before.posterior,
        before_error=before.posterior_error,
        before_lower=before.posterior_ends[0],
        before_upper=before.posterior_ends[1],
        after=after.marginal_posterior,
        after_error=after.marginal_posterior_error,
        after_lower=after.marginal_posterior_lower,
        after_upper=after.marginal_posterior_upper,
        margin=before.posterior - after.marginal_posterior,
        margin_error=float(np.hypot(before.posterior_error, after.marginal_posterior_error)),
        published=after,
    )
