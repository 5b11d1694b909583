"""A sweep as a study: disclosure risk over a grid of budgets, priors and noise laws."""

from __future__ import annotations

import io
import json
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv as pa_csv
from pydantic import TypeAdapter, ValidationError

from bayesrisk import risk
from bayesrisk._files.limits import as_config_error
from bayesrisk._show import displayed
from bayesrisk._validation import FloatArray, IntArray
from bayesrisk._version import __version__
from bayesrisk.accounting import rho_to_epsilon
from bayesrisk.distributions import DiscreteGaussian, DiscreteLaplace, Noise
from bayesrisk.exceptions import (
    ConfigError,
    IncompatibleConditionalsWarning,
    OutputError,
    PartFileError,
)
from bayesrisk.experiments.runs.engine import Study
from bayesrisk.experiments.runs.folder import Layout, RunFolder, digest_of
from bayesrisk.inference import count_posterior, decision_threshold, posterior_probability
from bayesrisk.risk.count.accuracy import (
    laplace_accuracy,
    laplace_correct_decision,
    laplace_marginal_posterior,
    laplace_threshold,
)

_Columns = dict[str, Any]
_DRAWS_AT_ONCE = 2**20  # 8 MiB
_TAIL = 2.0**-60  # of the noise left out on each side
_VALUES = 2**13
_ROUNDING = 1e-11  # relative standard errors below it are rounding, not chance

#: _Columns of the results, one row for each quantity at each point of the grid.
SCHEMA = pa.schema(
    [
        ("scenario", pa.string()),
        ("noise", pa.string()),
        ("sensitivity", pa.float64()),
        ("rho_name", pa.string()),
        ("rho", pa.float64()),
        ("noise_parameter", pa.float64()),  # sigma2 of a Gaussian, scale of a Laplace law
        ("prior_text", pa.string()),
        ("prior", pa.float64()),
        ("levels", pa.int64()),
        ("rho_group", pa.float64()),
        ("group_count", pa.int64()),
        ("n_siblings", pa.int64()),
        ("conditionals", pa.string()),
        ("target", pa.string()),
        ("known_count", pa.int64()),
        ("noisy_count", pa.int64()),
        ("quantity", pa.string()),
        ("value", pa.float64()),
        ("standard_error", pa.float64()),  # null: exact
        ("effective_releases", pa.float64()),  # that make the standard error; null: exact
    ]
)

#: Every quantity, with the section or key it needs besides rho and prior.
QUANTITIES = {
    "posterior": "grid.released",
    "risk_ratio": "grid.released",
    "release_probability": "grid.released",
    "marginal_posterior": "",
    "marginal_risk": "",
    "decision_threshold": "",
    "correct_decision_probability": "",
    "decision_accuracy": "",
    "decision_baseline": "",
    "multilevel_marginal_posterior": "levels",
    "multilevel_marginal_risk": "levels",
    "hierarchical_correct_decision_probability": "hierarchy",
    "hierarchical_decision_accuracy": "hierarchy",
    "hierarchical_marginal_posterior": "hierarchy",
    "simulated_marginal_posterior": "simulation",
    "epsilon": "accounting",
}
#: Quantities that do not depend on the prior.
FREE_OF_PRIOR = ("release_probability", "epsilon")
#: Sections that only the first noise law, the Gaussian, offers.
GAUSSIAN_ONLY = ("levels", "hierarchy")
#: Noise laws; the first is the default.
NOISES = ("discrete-gaussian", "discrete-laplace")


@dataclass(frozen=True)
class Target:
    """Someone in a cell: its label, and its count with the target included."""

    label: str
    count: int

    @property
    def known_count(self) -> int:
        """Count of the others in the cell, which the adversary knows."""
        return self.count - 1


@dataclass(frozen=True)
class Budget:
    """A value of rho, with its name where it has one.

    ``census`` marks a budget of the 2020 Census, whose rho stands for one noise in the literature
    and for another in production.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    name: str
    value: float
    census: bool = False


@dataclass(frozen=True)
class Hierarchy:
    """Axes of the adversary who also reads a group's count and those of the siblings.

    Budgets of the group's count (the setting's rho is that of the blocks), its true counts with
    the target, numbers of other blocks in it, and ``"coherent"`` or ``"as-published"``.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    rho_group: tuple[Budget, ...] = ()
    group_count: tuple[int, ...] = ()
    n_siblings: tuple[int, ...] = ()
    conditionals: tuple[str, ...] = ()

    @property
    def points(self) -> int:
        """Number of combinations."""
        axes = (self.rho_group, self.group_count, self.n_siblings, self.conditionals)
        return math.prod(len(axis) for axis in axes)


@displayed
@dataclass(frozen=True)
class SweepStudy(Study):
    """Disclosure risk over a grid of settings, for :func:`~bayesrisk.run`.

    :func:`load_config` and :func:`parse_config` make one.  A complete run has ``results.csv``.
    Memory: a shard's rows in each worker, and all rows (at most 2**24) at the end.
    """

    title: str  # of the report
    scenario: str  # the question of the adversary
    seed: int  # of the simulation
    targets: tuple[Target, ...]  # people whose risk is computed
    rho: tuple[Budget, ...]  # the named ones are marked in figures and tables
    prior: tuple[Budget, ...]  # by the text they were written with
    sensitivity: tuple[Budget, ...]  # L2, of Laplace noise L1
    noise: tuple[str, ...]
    released: tuple[int, ...]  # counts, as differences from the known count
    levels: tuple[Budget, ...]  # from the target's upwards, as multiples of the rho of the first
    hierarchy: Hierarchy  # empty where the file has none
    quantities: tuple[str, ...]
    delta: float | None  # probability of failure for ``epsilon``
    releases: int  # simulated for each setting, or 0
    settings_per_shard: int  # settings are (noise, sensitivity, rho)
    version: str = __version__  # of bayesrisk that resolved it

    layout: ClassVar[Layout] = Layout("sweep")  # type: ignore[misc]
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    @classmethod
    def from_dict(cls, values: object, *, source: str = "config") -> Self:
        """Return the study that :meth:`to_dict` wrote."""
        try:
            return TypeAdapter(cls).validate_json(json.dumps(values), strict=True)
        except ValidationError as error:
            raise as_config_error(error, source) from error

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain containers, for JSON."""
        return asdict(self)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form of the fields."""
        return digest_of(self.to_dict())

    @property
    def config(self) -> dict[str, Any]:
        """The fields as plain values, with the number of shards."""
        return {**self.to_dict(), "shards": self.shards}

    @property
    def settings(self) -> list[tuple[str, Budget, Budget]]:
        """Every (noise, sensitivity, rho), in the order of the results."""
        return [(n, s, r) for n in self.noise for s in self.sensitivity for r in self.rho]

    @property
    def shards(self) -> int:
        """Number of shards."""
        return -(-len(self.settings) // self.settings_per_shard)

    @property
    def rows(self) -> int:
        """Number of rows of the results."""
        points = {
            "grid.released": len(self.released) * len(self.targets),
            "levels": len(self.levels),
            "hierarchy": self.hierarchy.points,
        }
        per_setting = sum(
            points.get(QUANTITIES[name], 1) * (1 if name in FREE_OF_PRIOR else len(self.prior))
            for name in self.quantities
        )
        return per_setting * len(self.settings)

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return the rows of a shard, of schema ``SCHEMA``, in the order of the settings."""
        first = shard * self.settings_per_shard
        chosen = self.settings[first : first + self.settings_per_shard]
        batches = [
            batch
            for i, (noise, sensitivity, rho) in enumerate(chosen)
            for batch in _setting(self, first + i, noise, sensitivity, rho)
        ]
        return {"part": pa.Table.from_batches(batches, schema=SCHEMA).combine_chunks()}

    def results(self, folder: RunFolder) -> dict[str, bytes]:
        """Return the rows of all shards as CSV."""
        buffer = io.BytesIO()
        pa_csv.write_csv(_all_rows(folder), buffer)
        return {"results.csv": buffer.getvalue()}

    def facts(self, folder: RunFolder, *, complete: bool) -> dict[str, Any]:
        """Return the digest of the configuration and the number of rows of a complete sweep."""
        return {"config": self.digest, "rows": self.rows if complete else 0}


def read_results(folder: str | Path) -> tuple[SweepStudy, pd.DataFrame]:
    """Return a finished sweep from its folder, and one row for each quantity at each point.

    ``standard_error`` is missing where the value is exact.
    """
    store = RunFolder.existing(folder, SweepStudy.layout)
    values = {name: value for name, value in store.config.items() if name != "shards"}
    source = f"{store.state / store.layout.settings}: is not the configuration of a sweep"
    try:
        study = SweepStudy.from_dict(values, source=source)
    except ConfigError as error:
        raise OutputError(str(error)) from error
    frame = _all_rows(store).to_pandas()
    for column in ("levels", "group_count", "n_siblings", "known_count", "noisy_count"):
        frame[column] = frame[column].astype("Int64")
    texts = ("rho_name", "prior_text", "conditionals", "target")
    return study, frame.fillna(dict.fromkeys(texts, ""))


def _all_rows(folder: RunFolder) -> pa.Table:
    """Return the rows of all parts, in the order of the shards."""
    missing = folder.missing()
    if missing:
        raise PartFileError(
            f"{folder.path}: {len(missing)} of {folder.shards} shards are missing, "
            f"the first is {missing[0]}; run the sweep with --resume"
        )
    try:
        return pa.concat_tables(folder.read_part(s).cast(SCHEMA) for s in range(folder.shards))
    except (ValueError, pa.ArrowException) as error:
        raise PartFileError(f"{folder.path}: a part has other columns: {error}") from error


# -----------------------------------------------------------------------------
# The rows of a shard: the same for the same study and shard.


class _Law(NamedTuple):
    """A noise law of one setting, for counts measured from the known one.

    Its parameter; functions of released counts and a prior, of priors by quantity, and of delta.
    """

    parameter: float
    noise: DiscreteGaussian | DiscreteLaplace
    posterior: Callable[..., Any]
    averages: dict[str, Callable[..., Any]]
    epsilon: Callable[[float], Any]


def gaussian_law(rho: float, sensitivity: float) -> _Law:
    """Return discrete Gaussian noise of a zCDP budget."""
    sigma2 = sensitivity**2 / (2.0 * rho)
    given = {"rho": rho, "sensitivity": sensitivity}
    averages: dict[str, Callable[..., Any]] = {
        "marginal_posterior": risk.marginal_posterior,
        "marginal_risk": risk.marginal_risk,
        "decision_threshold": decision_threshold,
        "correct_decision_probability": risk.correct_decision_probability,
        "accuracy": risk.decision_accuracy,
    }
    return _Law(
        sigma2,
        DiscreteGaussian(sigma2),
        partial(posterior_probability, **given),
        {name: partial(function, **given) for name, function in averages.items()},
        partial(rho_to_epsilon, rho),
    )


def _laplace(rho: float, sensitivity: float) -> _Law:
    """Return discrete Laplace noise of the same zCDP budget: epsilon = sqrt(2 rho), delta = 0."""
    epsilon = float(np.sqrt(2.0 * rho))
    scale = sensitivity / epsilon
    noise = DiscreteLaplace(scale)

    def posterior(noisy: IntArray, *, prior: float) -> FloatArray:
        return np.asarray(count_posterior(noisy, noise=noise, prior_pmf=[1.0 - prior, prior]))[
            ..., 1
        ]

    averages: dict[str, Callable[..., Any]] = {
        "marginal_posterior": partial(laplace_marginal_posterior, scale),
        "marginal_risk": lambda prior: laplace_marginal_posterior(scale, prior) / prior,
        "decision_threshold": partial(laplace_threshold, scale),
        "correct_decision_probability": partial(laplace_correct_decision, scale),
        "accuracy": partial(laplace_accuracy, scale),
    }
    return _Law(scale, noise, posterior, averages, lambda _: epsilon)


def _setting(
    study: SweepStudy, index: int, noise: str, sensitivity: Budget, rho: Budget
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one (noise, sensitivity, rho), whatever its place among the shards."""
    law = (gaussian_law if noise == NOISES[0] else _laplace)(rho.value, sensitivity.value)
    rng = np.random.default_rng(np.random.SeedSequence(study.seed, spawn_key=(index,)))
    shared = {
        "scenario": study.scenario,
        "noise": noise,
        "sensitivity": sensitivity.value,
        "rho_name": rho.name or None,
        "rho": rho.value,
        "noise_parameter": law.parameter,
    }
    for quantity in study.quantities:
        for columns in _rows(study, law, quantity, shared, rng):
            yield _batch({**shared, "quantity": quantity, **columns})


def _batch(columns: _Columns) -> pa.RecordBatch:
    """Return rows from columns, single values repeated, absent columns null."""
    rows = len(columns["value"])
    arrays = []
    for field in SCHEMA:
        value = columns.get(field.name)
        if isinstance(value, (list, np.ndarray)):
            arrays.append(pa.array(value, field.type))
        else:
            arrays.append(pa.repeat(pa.scalar(value, field.type), rows))
    return pa.record_batch(arrays, schema=SCHEMA)


def _rows(
    study: SweepStudy, law: _Law, quantity: str, shared: _Columns, rng: np.random.Generator
) -> Iterator[_Columns]:
    """Yield the columns of one quantity that are not the same for the whole setting."""
    priors = np.array([prior.value for prior in study.prior])
    offsets = np.array(study.released)
    by_prior: _Columns = {"prior": priors, "prior_text": [prior.name for prior in study.prior]}
    if quantity == "epsilon":
        yield {"value": [float(law.epsilon(study.delta or 0.5))]}
    elif quantity == "release_probability":
        yield _released(study, np.asarray(law.noise.pmf(offsets - 1)))
    elif quantity in ("posterior", "risk_ratio"):
        for prior in study.prior:
            value = law.posterior(offsets, prior=prior.value)
            if quantity == "risk_ratio":
                value = value / prior.value
            about = {"prior": prior.value, "prior_text": prior.name}
            yield {**about, **_released(study, value)}
    elif quantity.startswith("multilevel"):
        yield from _by_levels(study, shared, quantity, by_prior)
    elif quantity.startswith("hierarchical"):
        yield from _by_hierarchy(study, shared, quantity)
    elif quantity == "simulated_marginal_posterior":
        yield {**by_prior, **_simulated(law, priors, study.releases, rng)}
    elif quantity in ("decision_accuracy", "decision_baseline"):
        value = getattr(law.averages["accuracy"](prior=priors), quantity.removeprefix("decision_"))
        yield {**by_prior, "value": np.asarray(value, dtype=float)}
    else:
        value = law.averages[quantity](prior=priors)
        yield {**by_prior, "value": np.asarray(value, dtype=float)}


def _released(study: SweepStudy, value: FloatArray) -> _Columns:
    """Return a value at every released count, for every target: only y - k matters to it."""
    targets = study.targets
    known = np.repeat([target.known_count for target in targets], len(study.released))
    return {
        "target": [target.label for target in targets for _ in study.released],
        "known_count": known,
        "noisy_count": known + np.tile(study.released, len(targets)),
        "value": np.tile(value, len(targets)),
    }


def _by_levels(
    study: SweepStudy, shared: _Columns, quantity: str, by_prior: _Columns
) -> Iterator[_Columns]:
    """Yield the marginal posterior or risk from the first 1, 2, ... levels.

    The levels share the rho of the setting in the proportions of the configuration, the first
    having all of it.
    """
    rhos = shared["rho"] * np.array([level.value for level in study.levels])
    for n in range(1, len(rhos) + 1):
        noise = Noise(rho=rhos[:n], sensitivity=shared["sensitivity"])
        belief = risk.multilevel_marginal_posterior(noise=noise, prior=by_prior["prior"])
        as_ratio = quantity == "multilevel_marginal_risk"
        yield {**by_prior, "levels": n, "value": belief.ratio if as_ratio else belief.posterior}


def _by_hierarchy(study: SweepStudy, shared: _Columns, quantity: str) -> Iterator[_Columns]:
    """Yield an average over the releases of two levels at every point of the hierarchy's axes."""
    averages: dict[str, Any] = {
        "hierarchical_marginal_posterior": risk.TwoLevels.average,
        "hierarchical_correct_decision_probability": risk.TwoLevels.correct_decision,
        "hierarchical_decision_accuracy": risk.TwoLevels.accuracy,
    }
    axes = study.hierarchy
    grid = np.meshgrid(
        np.array(axes.n_siblings),
        np.array([budget.value for budget in axes.rho_group]),
        np.array(axes.group_count),
        np.arange(len(study.prior)),
        indexing="ij",
    )
    siblings, rho_group, group_count, prior = (values.ravel() for values in grid)
    priors = np.array([budget.value for budget in study.prior])[prior]
    for conditionals in axes.conditionals:
        with warnings.catch_warnings():  # the configuration asks for them by name
            warnings.simplefilter("ignore", IncompatibleConditionalsWarning)
            question = risk.TwoLevels(
                n_siblings=siblings,
                rho_block=shared["rho"],
                rho_group=rho_group,
                prior=priors,
                sensitivity=shared["sensitivity"],
                conditionals=conditionals,
            )
            result = averages[quantity](question, group_count)
        yield {
            "prior": priors,
            "prior_text": [study.prior[i].name for i in prior],
            "rho_group": rho_group,
            "group_count": group_count,
            "n_siblings": siblings,
            "conditionals": conditionals,
            "value": result.value.ravel(),
        }


def _simulated(law: _Law, priors: FloatArray, releases: int, rng: np.random.Generator) -> _Columns:
    """Return the posterior averaged over simulated releases, and its standard error."""
    seen: Counter[int] = Counter()
    for start in range(0, releases, _DRAWS_AT_ONCE):
        draws = 1 + law.noise.rvs(min(_DRAWS_AT_ONCE, releases - start), rng)
        values, repeats = np.unique(draws, return_counts=True)
        seen.update(dict(zip(values.tolist(), repeats.tolist(), strict=True)))
    noisy, times = np.array(sorted(seen.items())).T
    posterior = np.array([law.posterior(noisy, prior=prior) for prior in priors])
    mean = posterior @ times / releases
    variance = ((posterior - mean[:, None]) ** 2) @ times / (releases - 1)
    return {
        "value": mean,
        "standard_error": np.sqrt(variance / releases),
        "effective_releases": effective_releases(law, priors, releases),
    }


def effective_releases(law: _Law, priors: FloatArray, releases: int) -> FloatArray:
    """Return the number of simulated releases on which the standard error rests.

    With d the distance of the posterior from its average, n E[d^2]^2 / E[d^4]: n/3 for a normal
    d, the expected number of rare releases where these make all of it.  It is computed from the
    law and not from the draws: a release so rare that it was not drawn is what the draws cannot
    tell.  0 where the posterior is the same to rounding for every release.
    """
    first, last = int(law.noise.ppf(_TAIL)), int(law.noise.isf(_TAIL))
    # Noise that is spread over more values than these is smooth: some of them will do.
    noisy = 1 + np.arange(first, last + 1, 1 + (last - first) // _VALUES)
    mass = np.asarray(law.noise.pmf(noisy - 1))
    mass = mass / mass.sum()
    posterior = np.array([law.posterior(noisy, prior=prior) for prior in priors])
    distance = np.abs(posterior / (posterior @ mass)[:, None] - 1.0)
    second, fourth = distance**2 @ mass, distance**4 @ mass
    with np.errstate(invalid="ignore", divide="ignore"):
        effective = releases * second**2 / fourth
    return np.where(np.sqrt(second / releases) > _ROUNDING, effective, 0.0)
