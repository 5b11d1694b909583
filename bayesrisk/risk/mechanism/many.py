"""The risk of many targets of one population under one protection, one row each.

Work that does not depend on the target is done once: the utility, the releases of the truth, and
the geography. All else uses the target's surroundings, not the whole population, but for the
releases without the target, which are drawn for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.randomness import as_finished, generator, seeded
from bayesrisk._base.validation import IntArray, TextArray
from bayesrisk._version import __version__
from bayesrisk.answers import Estimate
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, quote
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import MechanismSpec
from bayesrisk.risk.mechanism.hypotheses import (
    MechanismOptions,
    MechanismQuestion,
    Target,
    TargetHypotheses,
    ask,
    hypothesis,
    read_options,
    target_rows,
    unit_records,
)
from bayesrisk.risk.mechanism.posterior import (
    Assessment,
    MechanismRisk,
    cell_laws,
    exact_average,
    mechanism_risk,
)
from bayesrisk.risk.mechanism.simulation import TruthDraws
from bayesrisk.tables import Microdata, Records, Workload
from bayesrisk.tables.microdata import UNITS, read_microdata

#: Targets that one worker takes at a time; each piece draws the releases of the truth again.
_PIECE = 64


def mechanism_risk_of_many(
    population: Microdata | Records,
    mechanism: Mechanism,
    question: MechanismQuestion,
    *,
    targets: ArrayLike | None = None,
    unit: str = "persons",
    draws: int,
    rng: np.random.Generator | int,
    options: MechanismOptions | None = None,
) -> pd.DataFrame:
    """Return the risk of many targets under a protection, one row per person or household.

    Every row is that of :func:`mechanism_risk` for this target with the same seed. The random
    streams are the same, and so are the releases of the truth, which are drawn once.

    Columns are ``target`` (the row) and those of ``MechanismRisk.to_frame()``; rows are in the
    order of ``targets``.

    Parameters
    ----------
    population, mechanism, question : Microdata or Records, Mechanism, MechanismQuestion
        As for :func:`mechanism_risk`; the same for every target.
    targets : array_like of int, optional
        Rows of the targets; by default all rows of the unit.
    unit : {"persons", "households"}, default "persons"
        Unit of the rows; a target is one row, a household without its persons.
    draws, rng, options : int, Generator or int, MechanismOptions
        As for :func:`mechanism_risk`; ``progress(done, targets)`` counts targets here.

    Notes
    -----
    If releases are simulated, each target needs ``draws`` releases of the population without it. A
    mechanism whose ``prepare`` offers ``observed(rng, cells)``, such as swapping, gives the counts
    of the observed cells without making the tables.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesrisk.mechanisms import make_mechanism
    >>> from bayesrisk.tables import Schema
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 3, "sex": [0, 1, 1],
    ...                        "age": [30, 4, 5], "race": [1, 3, 1], "hisp": 0})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> rounding = make_mechanism("rounding:base=3,method=random")
    >>> tables = Workload.named("sf1-block").select(tables=["P1"])
    >>> question = MechanismQuestion(tables, [("block", "P1")], alternatives=[None], prior=0.2)
    >>> risks = mechanism_risk_of_many(records, rounding, question, draws=100, rng=1)
    >>> risks[["target", "prior"]].values.tolist()
    [[0.0, 0.2], [1.0, 0.2], [2.0, 0.2]]
    """
    settings = read_options(options)
    check.instance(question, MechanismQuestion, "question")
    check.choice(unit, "unit", UNITS)
    data = read_microdata(population, "population")
    records = unit_records(data, unit)
    if targets is None:
        rows = np.arange(len(records), dtype=np.int64)
    else:
        rows = check.count_array(targets, "targets", lower=0, upper=len(records) - 1).reshape(-1)
    executor, progress = settings.executor, settings.progress
    local = replace(settings, executor=None, progress=None)
    shared = Assessment.start(data, mechanism, question.workload, draws, local, rng)
    work = _Work(data, question, unit, shared)
    pieces = [rows[i : i + _PIECE] for i in range(0, rows.size, _PIECE)]
    numbered = list(enumerate(pieces))
    frames: dict[int, pd.DataFrame] = {}
    n_done = 0
    results = map(work, numbered) if executor is None else as_finished(executor, work, numbered)
    for number, frame in results:
        frames[number] = frame
        n_done += len(frame)
        if progress is not None:
            progress(n_done, rows.size)
    return pd.concat([frames[i] for i in range(len(pieces))], ignore_index=True)


@dataclass(eq=False)
class _Work:
    """Computes the risk of some targets in one process."""

    data: Microdata
    question: MechanismQuestion
    unit: str
    shared: Assessment
    truth: TruthDraws | None = None

    def __getstate__(self) -> dict[str, object]:
        """Return the state without the drawn releases, which are drawn again where needed."""
        return {**self.__dict__, "truth": None}

    def __call__(self, piece: tuple[int, IntArray]) -> tuple[int, pd.DataFrame]:
        number, rows = piece
        if self.truth is None:
            workload, tables = self.question.workload, self.question.tables()
            self.truth = TruthDraws(self.shared.mechanism, self.data, workload, tables)
            self.near = _Surroundings(self.data, self.question, self.unit)
        frames = []
        for row in rows.tolist():
            try:
                question = self.near.ask(row)
                if self.shared.laws(question) is None:
                    target = target_rows(self.data, {self.unit: row})
                    worlds = (hypothesis(self.data, target, a) for a in self.question.alternatives)
                    question = replace(question, datasets=(self.data, *worlds))
                frame = self.shared.risks([question], truth=self.truth)[0].to_frame()
            except ArgumentError as error:
                raise type(error)(f"target {row} of {self.unit}: {error}") from error
            frame.insert(0, "target", row)
            frames.append(frame)
        return number, pd.concat(frames, ignore_index=True)


class _Surroundings:
    """The part of a population that matters for one target's question."""

    def __init__(self, data: Microdata, question: MechanismQuestion, unit: str) -> None:
        self._data, self._question, self._unit = data, question, unit
        self._geography = question.workload.schema.geography
        # Elsewhere a target may leave its place, or cells of other places are asked for.
        finest = self._geography.finest
        moves = any(a is not None and finest in a for a in question.alternatives)
        entries = (*question.observed, *question.known_totals)
        self._whole = moves or any(len(entry) == 4 for entry in entries)
        level = min((entry[0] for entry in entries), key=self._geography.rank)
        self._codes: dict[str, TextArray] = {}
        for name in UNITS:
            records: Records | None = getattr(data, name)
            if records is not None:
                places, place = records.places()
                self._codes[name] = self._geography.ancestors(places, level)[place]
        if data.blocks is not None:
            codes = data.blocks["block"].to_numpy(dtype=np.str_)
            self._codes["blocks"] = self._geography.ancestors(codes, level)
        # Rows by code, found without a pass over all of them
        self._rows = {name: pd.Series(c).groupby(c).indices for name, c in self._codes.items()}

    def ask(self, row: int) -> TargetHypotheses:
        """Return the question about one target, on its surroundings only."""
        if self._whole:
            return ask(self._data, {self._unit: row}, self._question)
        code = str(self._codes[self._unit][row])
        empty = np.empty(0, dtype=np.int64)
        rows = {name: indices.get(code, empty) for name, indices in self._rows.items()}
        units = {u: getattr(self._data, u).take(rows[u]) if u in rows else None for u in UNITS}
        blocks = None if self._data.blocks is None else self._data.blocks.iloc[rows["blocks"]]
        local = Microdata(units["persons"], units["households"], blocks)
        position = int(np.searchsorted(rows[self._unit], row))
        return ask(local, {self._unit: position}, self._question)


# -----------------------------------------------------------------------------
# Several protections of one population side by side, and one before and after post-processing.


_DRAWS_BEFORE = 2**17  # a draw costs a few dozen additions: the error is below 0.0015


@seeded
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
    """Return a frame of risk and utility of several protections for several targets.

    Columns are ``protection``, ``target``, then those of :meth:`MechanismRisk.to_frame`.

    Parameters
    ----------
    population : Microdata or Records
        As for :func:`mechanism_risk`.
    mechanisms : mapping of str to Mechanism
        Protections by their names in the frame.
    targets : mapping of str to target
        Targets by name; each as in :func:`mechanism_risk`.
    question : MechanismQuestion
        Published tables, observed cells and prior, as seen from each target's place.
    draws : int
        Releases under each hypothesis, at least 40; those of the truth are shared by all targets.
    rng : Generator or int
        Source of randomness. Every protection starts from the same seed, so a row does not depend
        on the other protections.
    options : MechanismOptions, optional
        As for :func:`mechanism_risk`.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesrisk.mechanisms import make_mechanism
    >>> from bayesrisk.tables import Schema
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 3, "sex": [0, 1, 1],
    ...                        "age": [30, 4, 5], "race": [1, 3, 1], "hisp": 0})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> tables = Workload.named("sf1-block").select(tables=["P1"])
    >>> question = MechanismQuestion(tables, [("block", "P1")], alternatives=[None], prior=0.2)
    >>> frame = compare_mechanisms(
    ...     records,
    ...     {"none": make_mechanism("none"),
    ...      "rounded": make_mechanism("rounding", base=3, method="random")},
    ...     {"first": 0}, question, draws=100, rng=1,
    ... )
    >>> frame[["protection", "marginal_risk", "mean_absolute_error"]].round(3)
      protection  marginal_risk  mean_absolute_error
    0       none          5.000                  0.0
    1    rounded          1.364                  0.0
    """
    for name, value in (("mechanisms", mechanisms), ("targets", targets)):
        if not check.mapping(value, name):
            raise ArgumentError(name, "must have at least one", shown="none")
    details = read_options(options)
    seed = int(generator(rng).integers(2**63))
    hypotheses = []
    for name, record in targets.items():
        try:
            hypotheses.append(ask(population, record, question))
        except ArgumentError as error:
            raise type(error)(f"targets, {quote(name)}: {error}") from error
    frames = []
    for protection, mechanism in mechanisms.items():
        shared = Assessment.start(
            hypotheses[0].datasets[0], mechanism, question.workload, draws, details, seed
        )
        for target, result in zip(targets, shared.risks(hypotheses), strict=True):
            frame = result.to_frame()
            frame.insert(0, "target", target)
            frame.insert(0, "protection", protection)
            frames.append(frame)
    return pd.concat(frames, ignore_index=True)


@displayed
@dataclass(frozen=True, eq=False)
class PostprocessingEffect(Tabular):
    """Reduction of risk by the post-processing of a noisy histogram.

    Attributes
    ----------
    measured_cells : int
        Noisy counts that differ between hypotheses.
    before : Estimate
        Average posterior of an adversary who sees every noisy count, with the exact likelihood.
    published : MechanismRisk
        The risk for the published cells.
    version : str
        Version of bayesrisk.
    """

    measured_cells: int
    before: Estimate
    published: MechanismRisk
    version: str = __version__

    @property
    def prior(self) -> float:
        """Prior probability of the truth."""
        return self.published.prior

    @property
    def after(self) -> Estimate:
        """Average posterior given the published cells; its interval allows for bias."""
        return self.published.marginal_posterior

    @property
    def margin(self) -> Estimate:
        """``before`` minus ``after``, which is >= 0 up to simulation error.

        The interval runs from the smallest difference of the two intervals' ends to the largest. It
        holds the difference whenever both intervals hold their values.
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
        """Return one row."""
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
    """Return the average posterior from all noisy counts and from the published ones.

    No function of the noisy counts has a larger average posterior of the truth (data-processing
    inequality). The published counts are such a function if the mechanism's invariants are the same
    under every hypothesis.

    Parameters
    ----------
    population : Microdata or Records
        As for :func:`mechanism_risk`.
    mechanism : Mechanism
        A mechanism that measures with noise and post-processes. Its method
        ``measurement_noise(workload)`` gives the law of every measured table.
    target : int or mapping
        As in :func:`mechanism_risk`.
    question : MechanismQuestion
        Published tables, published cells that the adversary reads, other hypotheses and prior.
    draws, rng
        As for :func:`mechanism_risk`.
    measurements : Workload, optional
        Definitions of the measured tables, if they differ from the published ones.
    options : MechanismOptions, optional
        Method for the published cells, confidence and other settings. By default the utility is
        measured over two releases only.

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
    measurement_noise = getattr(mechanism, "measurement_noise", None)
    if not callable(measurement_noise):
        raise ArgumentTypeError("mechanism", "must have measurement_noise()", got=mechanism)
    check.instance(question, MechanismQuestion, "question")
    details = read_options(MechanismOptions(utility_draws=2) if options is None else options)
    workload = question.workload
    seed = int(generator(rng).integers(2**63))
    if measurements is not None:
        check.instance(measurements, Workload, "measurements")
    draws = check.integer(draws, "draws", lower=2)
    definitions = workload if measurements is None else measurements.union(workload)
    noise = measurement_noise(workload)
    missing = sorted(set(noise) - set(definitions.tables))
    if missing:
        raise ArgumentError(
            "measurements", "must define every measured table", shown=f"none for {missing[0]}"
        )
    measurable = replace(question, workload=definitions, observed=list(noise))
    measured = ask(population, target, measurable)
    spec = MechanismSpec("measurements", tables=noise)
    before = exact_average(
        cell_laws(spec, measured) or [],
        measured.prior,
        draws=max(draws, _DRAWS_BEFORE),
        rng=np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,))),
        confidence=details.confidence,
    )
    published = mechanism_risk(
        population, mechanism, target, question, draws=draws, rng=seed, options=details
    )
    return PostprocessingEffect(
        measured_cells=len(measured.cells), before=before.marginal_posterior, published=published
    )
