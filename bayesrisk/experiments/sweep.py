"""Sweeps of exact disclosure risk over all combinations of budgets, priors and noise laws.

A setting is a noise law, a sensitivity and a budget. Its points are the priors, released counts,
levels and groups on which a quantity depends.
"""

from __future__ import annotations

import io
import json
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv as pa_csv
from pydantic import TypeAdapter, ValidationError

from bayesrisk import risk
from bayesrisk._base.disk.delimited import guarded_table
from bayesrisk._base.disk.limits import as_config_error
from bayesrisk._base.display import displayed
from bayesrisk._base.validation import FloatArray
from bayesrisk._version import __version__
from bayesrisk.accounting import census_2020_budget
from bayesrisk.accounting.privacy_loss import PrivacyLoss
from bayesrisk.distributions import Noise
from bayesrisk.exceptions import (
    ConfigError,
    IncompatibleConditionalsWarning,
    OutputError,
    PartFileError,
)
from bayesrisk.experiments.runs.engine import Study, evenly
from bayesrisk.experiments.runs.folder import Layout, RunFolder, config_digest
from bayesrisk.risk.count.question import LAWS, NoiseRisk

_TEXTS = ("scenario", "noise", "rho_name", "prior_text", "conditionals", "target", "quantity")
_WHOLE = ("levels", "group_count", "n_siblings", "known_count", "noisy_count")
#: Columns of the results, one row for each quantity at each point of the grid.
SCHEMA = pa.schema(
    (name, pa.string() if name in _TEXTS else pa.int64() if name in _WHOLE else pa.float64())
    for name in (
        "scenario", "noise", "sensitivity", "rho_name", "rho",
        "noise_parameter",  # sigma2 of a Gaussian, scale of a Laplace law
        "prior_text", "prior", "levels", "rho_group", "group_count", "n_siblings", "conditionals",
        "target", "known_count", "noisy_count", "quantity", "value",
        "standard_error", "effective_releases",  # that make this error; null: exact
    )
)  # fmt: skip
_NUMBERS = ("value", "standard_error", "effective_releases")
_AVERAGES = (
    "marginal_posterior", "marginal_risk", "decision_threshold", "correct_decision_probability",
    "decision_accuracy", "decision_baseline",
)  # fmt: skip
_IN_GROUP: dict[str, Callable[..., Any]] = {
    "hierarchical_correct_decision_probability": risk.TwoLevels.correct_decision,
    "hierarchical_decision_accuracy": risk.TwoLevels.accuracy,
    "hierarchical_marginal_posterior": risk.TwoLevels.average,
}
#: Averages over a whole release, whose budgets add up to the setting's rho.
_OF_RELEASE = ("whole_release_posterior", "whole_release_risk")
#: Every quantity, with the axes of its points in a setting, and the section or key it needs.
QUANTITIES: dict[str, tuple[tuple[str, ...], str]] = {
    **dict.fromkeys(("posterior", "risk_ratio"), (("prior", "released"), "grid.released")),
    "release_probability": (("released",), "grid.released"),
    **dict.fromkeys(_AVERAGES, (("prior",), "")),
    "multilevel_marginal_posterior": (("levels", "prior"), "levels"),
    "multilevel_marginal_risk": (("levels", "prior"), "levels"),
    **dict.fromkeys(_IN_GROUP, (("hierarchy", "prior"), "hierarchy")),
    "simulated_marginal_posterior": (("prior",), "simulation"),
    "epsilon": ((), "accounting"),
    **dict.fromkeys(_OF_RELEASE, (("prior",), "release")),
    "whole_release_epsilon": ((), "release"),
}
#: Noise laws; the first, the Gaussian, is the default, and alone has levels and hierarchies.
NOISES = tuple(LAWS)
GAUSSIAN_ONLY = ("levels", "hierarchy", "release")
_DELTA = 1e-10  # of a whole release, without accounting


@dataclass(frozen=True)
class Target:
    """A person in a cell: its label, and its count including the person."""

    label: str
    count: int

    @property
    def known_count(self) -> int:
        """Count of the other people in the cell, which the adversary knows."""
        return self.count - 1


@dataclass(frozen=True)
class Budget:
    """A value of rho, with an optional name.

    ``census`` marks a budget of the 2020 Census, whose rho means one noise in the literature and
    another in production.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    name: str
    value: float
    census: bool = False


@dataclass(frozen=True)
class Hierarchy:
    """Settings of an adversary who also reads counts of a group and the other blocks in it.

    They are budgets of the group's count (the setting's rho is that of the blocks), its true counts
    with the target, and numbers of other blocks. The last is ``"coherent"`` or ``"as-published"``.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    rho_group: tuple[Budget, ...] = ()
    group_count: tuple[int, ...] = ()
    n_siblings: tuple[int, ...] = ()
    conditionals: tuple[str, ...] = ()

    @property
    def points(self) -> int:
        """Number of combinations of the settings."""
        axes = (self.rho_group, self.group_count, self.n_siblings, self.conditionals)
        return math.prod(len(axis) for axis in axes)


@displayed
@dataclass(frozen=True)
class SweepStudy(Study):
    """Disclosure risk over a grid of settings, for :func:`sweep` and :func:`~bayesrisk.run`.

    :func:`load_config` and :func:`parse_config` make one. A complete run has ``results.csv``. Each
    worker holds a shard's rows in memory; at the end all rows are held (at most 2**24).
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
    settings_per_shard: int
    version: str = __version__  # of bayesrisk that resolved it
    release: str = ""  # product of 2020 whose allocation rho is spent by

    layout: ClassVar[Layout] = Layout("sweep")  # type: ignore[misc]
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    @classmethod
    def from_dict(cls, values: object, *, source: str = "config") -> Self:
        """Return the study stored in a dictionary by :meth:`to_dict`."""
        try:
            return TypeAdapter(cls).validate_json(json.dumps(values), strict=True)
        except ValidationError as error:
            raise as_config_error(error, source) from error

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain containers, for JSON; with ``release`` if there is one."""
        values = asdict(self)
        return {name: value for name, value in values.items() if name != "release" or value}

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form of the fields."""
        return config_digest(self.to_dict())

    @property
    def config(self) -> dict[str, Any]:
        """The fields as plain values, with the number of shards."""
        return {**self.to_dict(), "shards": self.shards}

    @property
    def settings(self) -> list[tuple[str, Budget, Budget]]:
        """All (noise, sensitivity, rho) combinations, in the order of the results."""
        return [(n, s, r) for n in self.noise for s in self.sensitivity for r in self.rho]

    @property
    def shards(self) -> int:
        """Number of shards."""
        return -(-len(self.settings) // self.settings_per_shard)

    @property
    def rows(self) -> int:
        """Number of rows of the results."""
        sizes = {
            "prior": len(self.prior),
            "released": len(self.released) * len(self.targets),
            "levels": len(self.levels),
            "hierarchy": self.hierarchy.points,
        }
        points = (math.prod(sizes[a] for a in QUANTITIES[name][0]) for name in self.quantities)
        return sum(points) * len(self.settings)

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return the rows of a shard with schema ``SCHEMA``, in the order of the settings."""
        return {"part": _table(self, self._numbers(shard))}

    def _numbers(self, shard: int) -> range:
        first = shard * self.settings_per_shard
        return range(len(self.settings))[first : first + self.settings_per_shard]

    def work(self, shard: int) -> float:
        """Return the number of settings in a shard."""
        return len(self._numbers(shard))

    def pilot(self, shard: int, amount: float) -> float:
        """Compute some settings, evenly spaced over the shard; return their number."""
        numbers = self._numbers(shard)
        settings = [numbers[place] for place in evenly(len(numbers), amount)]
        _table(self, settings)
        return len(settings)

    def results(self, folder: RunFolder) -> dict[str, bytes]:
        """Return the rows of all shards as one CSV file."""
        buffer = io.BytesIO()
        pa_csv.write_csv(guarded_table(_all_rows(folder)), buffer)
        return {"results.csv": buffer.getvalue()}

    def facts(self, folder: RunFolder, *, complete: bool) -> dict[str, Any]:
        """Return the digest of the configuration and the number of rows of a complete sweep."""
        return {"config": self.digest, "rows": self.rows if complete else 0}


def sweep(study: SweepStudy) -> pd.DataFrame:
    """Return one row for each quantity at each point of every setting, as :func:`read_results`.

    Examples
    --------
    >>> from bayesrisk.experiments.sweep_document import parse_config
    >>> study = parse_config({
    ...     "quantities": ["marginal_risk"], "grid": {"rho": [0.1, 1.0], "prior": [0.1]},
    ... })
    >>> sweep(study)[["rho", "prior", "value"]].round(4).values.tolist()
    [[0.1, 0.1, 1.169], [1.0, 0.1, 2.9219]]
    """
    return _frame(_table(study, range(len(study.settings))))


def read_results(folder: str | Path) -> tuple[SweepStudy, pd.DataFrame]:
    """Return a finished sweep from its folder, and one row for each quantity at each point.

    ``standard_error`` is missing where the value is exact.
    """
    store = RunFolder.existing(folder, SweepStudy.layout)
    values = {name: value for name, value in store.config.items() if name != "shards"}
    page = store.path / "report.html"
    if "title" not in values and page.is_file():
        raise OutputError(f"{folder} holds no sweep, but another run: its report is {page}")
    source = f"{store.state / store.layout.settings}: is not the configuration of a sweep"
    try:
        study = SweepStudy.from_dict(values, source=source)
    except ConfigError as error:
        raise OutputError(str(error)) from error
    return study, _frame(_all_rows(store))


def _frame(table: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas().astype(dict.fromkeys(_WHOLE, "Int64"))
    return frame.fillna(dict.fromkeys(_TEXTS, ""))


def _all_rows(folder: RunFolder) -> pa.Table:
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


# All settings: their product with the points of one, and a value for each.


def _table(study: SweepStudy, numbers: Sequence[int]) -> pa.Table:
    points = _points(study)
    settings, values = [], []
    priors = np.array([prior.value for prior in study.prior])
    for number in numbers:
        noise, sensitivity, rho = study.settings[number]
        law = LAWS[noise](rho.value, sensitivity.value, priors)
        settings.append((noise, sensitivity.value, rho.name or None, rho.value, law.parameter))
        for name, rows in zip(study.quantities, points, strict=True):
            # A value alone, or also its error and what that rests on.
            block = np.asarray(_value(study, number, law, name), dtype=float)
            block = block.reshape(-1, len(rows))
            values.append(np.pad(block, ((0, 3 - len(block)), (0, 0)), constant_values=np.nan))
    columns = ["noise", "sensitivity", "rho_name", "rho", "noise_parameter"]
    frame = pd.DataFrame(settings, columns=columns)
    grid = frame.merge(pd.concat(points), how="cross").assign(scenario=study.scenario)
    grid[[*_NUMBERS]] = np.concatenate(values, axis=1).T
    grid = grid.reindex(columns=SCHEMA.names)
    return pa.Table.from_pandas(grid, SCHEMA, preserve_index=False).replace_schema_metadata()


def _points(study: SweepStudy) -> list[pd.DataFrame]:
    """Return the points at which each quantity is computed in a setting."""
    others_count = np.repeat([target.known_count for target in study.targets], len(study.released))
    group = study.hierarchy
    axes = {
        "prior": pd.DataFrame({
            "prior": [prior.value for prior in study.prior],
            "prior_text": [prior.name for prior in study.prior],
        }),
        "released": pd.DataFrame({
            "target": np.repeat([target.label for target in study.targets], len(study.released)),
            "known_count": others_count,
            "noisy_count": others_count + np.tile(study.released, len(study.targets)),
        }),
        "levels": pd.DataFrame({"levels": np.arange(1, len(study.levels) + 1)}),
        "hierarchy": pd.MultiIndex.from_product(
            [group.conditionals, group.n_siblings, [rho.value for rho in group.rho_group],
             group.group_count],
            names=["conditionals", "n_siblings", "rho_group", "group_count"],
        ).to_frame(index=False),
    }  # fmt: skip
    every = []
    for name in study.quantities:
        every.append(pd.DataFrame({"quantity": [name]}))
        for axis in QUANTITIES[name][0]:
            every[-1] = every[-1].merge(axes[axis], how="cross")
    return every


def _value(study: SweepStudy, number: int, law: NoiseRisk, name: str) -> object:
    _, sensitivity, rho = study.settings[number]
    priors, offsets = np.array([prior.value for prior in study.prior]), np.array(study.released)
    if name in ("decision_accuracy", "decision_baseline"):
        return getattr(law.question.accuracy(), name.removeprefix("decision_"))
    if name in _AVERAGES:
        return getattr(law.question, name.removesuffix("_probability"))()
    if name == "epsilon":
        return law.epsilon(study.delta or 0.5)
    if name == "simulated_marginal_posterior":
        seed = np.random.SeedSequence(study.seed, spawn_key=(number,))
        mean, error = law.simulated(study.releases, np.random.default_rng(seed))
        return mean, error, law.effective_releases(study.releases)
    if name.startswith("whole_release"):
        whole = _whole_release(study.release, rho.value, sensitivity.name)
        if name == "whole_release_epsilon":
            return whole.epsilon(study.delta or _DELTA).upper
        belief = whole.posterior(priors)
        return (belief.mean if name == _OF_RELEASE[0] else belief.ratio).value
    if name in _IN_GROUP:
        return [_two_levels(study, number, name, kind) for kind in study.hierarchy.conditionals]
    if name.startswith("multilevel"):
        # The levels share rho in the proportions of the configuration, the first having all of it.
        rhos = rho.value * np.array([level.value for level in study.levels])
        noises = [
            Noise(rho=rhos[:n], sensitivity=sensitivity.value) for n in range(1, len(rhos) + 1)
        ]
        beliefs = [risk.multilevel_marginal_posterior(noise=one, prior=priors) for one in noises]
        return [one.ratio if name.endswith("risk") else one.posterior for one in beliefs]
    # Only y - k matters, and so every target has the same.
    if name == "release_probability":
        return np.tile(law.noise.pmf(offsets - 1), len(study.targets))
    posterior = law.posteriors(offsets)
    posterior = posterior / priors[:, None] if name == "risk_ratio" else posterior
    return np.tile(posterior, len(study.targets))


@lru_cache(maxsize=4)
def _whole_release(product: str, rho: float, sensitivity: str) -> PrivacyLoss:
    """Return the privacy loss of a 2020 Census product with total budget rho."""
    return PrivacyLoss.of(census_2020_budget(product, total_rho=rho), sensitivity=sensitivity)


def _two_levels(study: SweepStudy, number: int, name: str, conditionals: str) -> FloatArray:
    """Return the mean of a quantity over two-level releases, for all hierarchy settings."""
    _, sensitivity, rho = study.settings[number]
    axes, priors = study.hierarchy, [prior.value for prior in study.prior]
    budgets = [budget.value for budget in axes.rho_group]
    siblings, rho_group, group_count, prior = np.meshgrid(
        axes.n_siblings, budgets, axes.group_count, priors, indexing="ij"
    )
    with warnings.catch_warnings():  # the configuration asks for them by name
        warnings.simplefilter("ignore", IncompatibleConditionalsWarning)
        question = risk.TwoLevels(
            n_siblings=siblings, rho_block=rho.value, rho_group=rho_group, prior=prior,
            sensitivity=sensitivity.value, conditionals=conditionals,
        )  # fmt: skip
        average: FloatArray = _IN_GROUP[name](question, group_count).value
        return average
