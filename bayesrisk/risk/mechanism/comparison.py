"""Several protections of one population side by side, and one before and after post-processing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._random import generator
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.answers import Estimate
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import MechanismSpec
from bayesrisk.risk.mechanism._closed_form import cell_laws, exact_average
from bayesrisk.risk.mechanism._estimate import Settings
from bayesrisk.risk.mechanism._hypotheses import ask
from bayesrisk.risk.mechanism.posterior import MechanismRisk, assess, mechanism_risk
from bayesrisk.risk.mechanism.question import (
    MechanismOptions,
    MechanismQuestion,
    read_options,
)
from bayesrisk.tables import Microdata, Records, Workload

if TYPE_CHECKING:
    import pandas as pd

_DRAWS_BEFORE = 2**17  # a draw costs a few dozen additions: the error is below 0.0015
Target = int | Mapping[str, Any]


def compare_mechanisms(
    population: Microdata | Records,
    mechanisms: Mapping[str, Mechanism],
    targets: Mapping[str, Target],
    question: MechanismQuestion,
    *,
    draws: int,
    rng: np.random.Generator | int,
    options: MechanismOptions | None = None,
) -> pd.DataFrame:
    """Return risk and utility of several protections for several targets, as one frame.

    Parameters
    ----------
    population : Microdata or Records
        The truth; where it has no ``blocks``, the places of its records are taken as a public
        list.
    mechanisms : mapping of str to Mechanism
        Protections by the name they get in the frame.
    targets : mapping of str to target
        Targets by name; each as in :func:`mechanism_risk`.
    question : MechanismQuestion
        What is published, read and believed, seen from each target's place.
    draws : int
        Releases under each hypothesis, at least 40; those of the truth serve every target.
    rng : Generator or int
        Source of randomness; every protection starts from the same seed, so that a row does not
        depend on which others there are.
    options : MechanismOptions, optional
        Method, confidence and other details.

    Returns
    -------
    pandas.DataFrame
        One row for each protection and target: columns ``protection``, ``target``, then those of
        :meth:`MechanismRisk.to_frame`.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesrisk.mechanisms import make_mechanism
    >>> from bayesrisk.tables import Records, Schema, Workload
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 3, "sex": [0, 1, 1],
    ...                        "age": [30, 4, 5], "race": [1, 3, 1], "hisp": [0, 0, 0]})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> question = MechanismQuestion(
    ...     Workload.named("sf1-block").select(tables=["P1"]),
    ...     observed=[("block", "P1")], alternatives=[None], prior=0.2,
    ... )
    >>> frame = compare_mechanisms(
    ...     records,
    ...     {"none": make_mechanism("identity"),
    ...      "rounded": make_mechanism("rounding", base=3, method="random")},
    ...     {"first": 0}, question, draws=100, rng=1,
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
    settings = Settings(draws, read_options(options))
    seed = int(generator(rng).integers(2**63))
    asked = []
    for name, who in targets.items():
        try:
            asked.append(ask(population, who, question))
        except ArgumentError as error:
            raise type(error)(f"targets, {shown(name)}: {error}") from error
    frames = []
    for protection, mechanism in mechanisms.items():
        found = assess(asked, mechanism, question.workload, settings, seed)
        for target, result in zip(targets, found, strict=True):
            frame = result.to_frame()
            frame.insert(0, "target", target)
            frame.insert(0, "protection", protection)
            frames.append(frame)
    return pd.concat(frames, ignore_index=True)


@displayed
@dataclass(frozen=True, eq=False)
class PostprocessingEffect:
    """What post-processing of a whole noisy histogram takes from the adversary.

    Attributes
    ----------
    measured_cells : int
        Noisy counts that differ between hypotheses.
    before : Estimate
        Average posterior to who sees every noisy count, with the exact likelihood.
    published : MechanismRisk
        The answer for the published cells.
    version : str
        Version of bayesrisk.
    """

    measured_cells: int
    before: Estimate
    published: MechanismRisk
    version: str = __version__

    @property
    def prior(self) -> float:
        """Belief in the truth."""
        return self.published.prior

    @property
    def after(self) -> Estimate:
        """Average posterior to who sees the published cells; bias is in the interval."""
        return self.published.marginal_posterior

    @property
    def margin(self) -> Estimate:
        """``before`` less ``after``, never negative but for the error.

        The interval runs from the least difference of their ends to the greatest: it holds the
        difference whenever both of theirs hold their numbers.
        """
        before, after = self.before, self.after
        return Estimate(
            before - after,
            np.hypot(before.error, after.error),
            before.lower - after.upper,
            before.upper - after.lower,
            before.confidence,
            f"{before.method}; {after.method}",
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row.

        Returns
        -------
        pandas.DataFrame
            A column for each number; an estimate ``x`` has ``x``, ``x_error``, ``x_lower`` and
            ``x_upper``.
        """
        import pandas as pd  # slow to import

        row = {
            "prior": self.prior,
            "measured_cells": self.measured_cells,
            **self.before.columns("before"),
            **self.after.columns("after"),
            **self.margin.columns("margin"),
            "version": self.version,
        }
        return pd.DataFrame([row])


def postprocessing_effect(
    population: Microdata | Records,
    mechanism: Mechanism,
    target: Target,
    question: MechanismQuestion,
    *,
    draws: int,
    rng: np.random.Generator | int,
    measurements: Workload | None = None,
    options: MechanismOptions | None = None,
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
    question : MechanismQuestion
        What is published, the published cells that the adversary reads, the other hypotheses and
        the beliefs.
    draws : int
        Releases under each hypothesis, at least 40.
    rng : Generator or int
        Source of randomness.
    measurements : Workload, optional
        Definitions of the measured tables, where they are not those published.
    options : MechanismOptions, optional
        Method for the published cells, confidence and other details; by default the utility is
        measured over two releases only.

    Returns
    -------
    PostprocessingEffect
        Both averages, and their difference.

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
    >>> question = MechanismQuestion(
    ...     published, observed=[("block", "colour")], alternatives=[{"colour": 2}], prior=0.5
    ... )
    >>> effect = postprocessing_effect(
    ...     Records.from_frame(people, schema=hair), make_mechanism("topdown", rho="1/2"), 0,
    ...     question, draws=60, rng=1,
    ... )
    >>> effect.measured_cells, bool(effect.margin > -3 * effect.margin.error)
    (2, True)
    """
    noise_of = getattr(mechanism, "measurement_noise", None)
    if not callable(noise_of):
        raise ArgumentTypeError(f"mechanism must have measurement_noise(), got {shown(mechanism)}")
    check.instance(question, MechanismQuestion, "question")
    details = read_options(options, utility_draws=2)
    workload = question.workload
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
    asked = ask(population, target, replace(question, workload=known, observed=list(noise)))
    spec = MechanismSpec("measurements", tables=noise)
    laws = cell_laws(spec, asked.counts, [cell[:2] for cell in asked.cells])
    before = exact_average(
        laws or [],
        asked.prior,
        0,
        draws=max(draws, _DRAWS_BEFORE),
        rng=np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,))),
        confidence=details.confidence,
    )
    published = mechanism_risk(
        population, mechanism, target, question, draws=draws, rng=seed, options=details
    )
    return PostprocessingEffect(
        measured_cells=len(asked.cells),
        before=before.posterior,
        published=published,
    )
