"""A sweep as a study: disclosure risk over a grid of budgets, priors and noise laws; its report.

The report has figures as PNG and SVG, and one self-contained page.
"""

from __future__ import annotations

import io
import json
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv as pa_csv
from pydantic import TypeAdapter, ValidationError

from bayesrisk import plotting, risk
from bayesrisk._base import disk, validation as check
from bayesrisk._base.disk.delimited import guarded_table
from bayesrisk._base.disk.limits import as_config_error
from bayesrisk._base.display import displayed
from bayesrisk._base.validation import FloatArray
from bayesrisk._version import __version__
from bayesrisk.accounting.budget import SENSITIVITIES
from bayesrisk.distributions import Noise
from bayesrisk.exceptions import (
    ConfigError,
    IncompatibleConditionalsWarning,
    OutputError,
    PartFileError,
)
from bayesrisk.experiments.runs import engine
from bayesrisk.experiments.runs.engine import Study
from bayesrisk.experiments.runs.folder import Layout, RunFolder, config_digest
from bayesrisk.risk.count.blocks import Scenario
from bayesrisk.risk.count.noise_laws import LAWS, NoiseRisk

_Columns = dict[str, Any]

#: Columns of the results, one row for each quantity at each point of the grid.
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
NOISES = tuple(LAWS)


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
        return config_digest(self.to_dict())

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
        pa_csv.write_csv(guarded_table(_all_rows(folder)), buffer)
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


def _setting(
    study: SweepStudy, index: int, noise: str, sensitivity: Budget, rho: Budget
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one (noise, sensitivity, rho), whatever its place among the shards."""
    law = LAWS[noise](
        rho.value, sensitivity.value, np.array([prior.value for prior in study.prior])
    )
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
    study: SweepStudy, law: NoiseRisk, quantity: str, shared: _Columns, rng: np.random.Generator
) -> Iterator[_Columns]:
    """Yield the columns of one quantity that are not the same for the whole setting."""
    offsets = np.array(study.released)
    by_prior: _Columns = {
        "prior": np.array([prior.value for prior in study.prior]),
        "prior_text": [prior.name for prior in study.prior],
    }
    if quantity == "epsilon":
        yield {"value": [float(law.epsilon(study.delta or 0.5))]}
    elif quantity == "release_probability":
        yield _released(study, np.asarray(law.noise.pmf(offsets - 1)))
    elif quantity in ("posterior", "risk_ratio"):
        for prior, value in zip(study.prior, law.posteriors(offsets), strict=True):
            if quantity == "risk_ratio":
                value = value / prior.value
            columns = {"prior": prior.value, "prior_text": prior.name}
            yield {**columns, **_released(study, value)}
    elif quantity.startswith("multilevel"):
        yield from _by_levels(study, shared, quantity, by_prior)
    elif quantity.startswith("hierarchical"):
        yield from _by_hierarchy(study, shared, quantity)
    elif quantity == "simulated_marginal_posterior":
        mean, error = law.simulated(study.releases, rng)
        effective = law.effective_releases(study.releases)
        columns = {"standard_error": error, "effective_releases": effective}
        yield {**by_prior, "value": mean, **columns}
    elif quantity in ("decision_accuracy", "decision_baseline"):
        value = getattr(law.question.accuracy(), quantity.removeprefix("decision_"))
        yield {**by_prior, "value": np.asarray(value, dtype=float)}
    else:
        value = getattr(law.question, quantity.removesuffix("_probability"))()
        yield {**by_prior, "value": np.asarray(value, dtype=float)}


def _released(study: SweepStudy, value: FloatArray) -> _Columns:
    """Return a value at every released count, for every target: only y - k matters to it."""
    targets = study.targets
    known_counts = np.repeat([target.known_count for target in targets], len(study.released))
    return {
        "target": [target.label for target in targets for _ in study.released],
        "known_count": known_counts,
        "noisy_count": known_counts + np.tile(study.released, len(targets)),
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


# -----------------------------------------------------------------------------
# The report.

#: Names of the two noises of a rho of the 2020 Census, by the sensitivity that it refers to.
_CONVENTIONS = {"add-remove": "as in the paper", "change-one": "as produced"}
_ENOUGH = 30.0  # releases that a standard error must rest on to be judged
_MEANINGS = {
    "add-remove": "neighbours add or remove one record",
    "change-one": "neighbours change one record",
}


class SweepPanel(NamedTuple):
    """The results under one noise law and sensitivity, of all budgets or of the one ``label``."""

    study: SweepStudy
    noise: str
    sensitivity: Budget
    frame: pd.DataFrame
    images: Path
    label: str = ""
    end: str = ""  # of the names of its files

    @property
    def title(self) -> str:
        """Noise law and sensitivity."""
        name, value = self.sensitivity.name, self.sensitivity.value
        law = "Discrete Gaussian" if self.noise == NOISES[0] else "Discrete Laplace"
        meaning = _MEANINGS.get(name, f"sensitivity {name}")
        return f"{law} noise; {meaning} (sensitivity {value:.4g})"

    def named(self, budgets: tuple[Budget, ...]) -> dict[str, float]:
        """Return the named budgets; those of the census with the convention of the panel."""
        spoken = ""
        if self.noise == NOISES[0]:
            conventions = (n for n, v in SENSITIVITIES.items() if v == self.sensitivity.value)
            spoken = _CONVENTIONS.get(next(conventions, ""), "")
        return {
            f"{budget.name}, {spoken}" if budget.census and spoken else budget.name: budget.value
            for budget in budgets
            if budget.name
        }

    @property
    def focus(self) -> list[tuple[str, float]]:
        """Budgets of tables and single-budget figures: the named ones, or else the middle one."""
        rhos = self.study.rho
        middle = rhos[len(rhos) // 2].value
        return list(self.named(rhos).items()) or [(f"rho = {middle:.4g}", middle)]

    def figure(self, axes: Any, kind: str, **words: object) -> engine.Figure:
        """Write a figure; the template makes its caption of the kind and what it is about."""
        stem = f"{kind}-{self.noise}-{self.sensitivity.value:.6g}{self.end}"
        return engine.figure(axes, self.images / stem, {"kind": kind, "label": self.label, **words})


def _answer(panel: SweepPanel) -> dict[str, Any] | None:
    """Return the marked budget and the prior at which the release says most, if there are averages.

    With either the posterior on average and its ratio to the prior, or how often the best guess is
    right with the release and without; ``group`` is its range with the counts of a group too.
    """
    focus = pd.DataFrame(panel.focus, columns=["label", "rho"])
    marked, axes = panel.frame.merge(focus, on="rho"), ["label", "prior"]
    averages = _wide(marked, ["marginal_posterior", "marginal_risk"], axes).dropna()
    decisions = _wide(marked, ["decision_accuracy", "decision_baseline"], axes).dropna()
    if len(averages):
        row = averages.iloc[int(averages["marginal_risk"].to_numpy().argmax())]
        texts = {
            "posterior": _percent(row["marginal_posterior"]),
            "ratio": f"{row['marginal_risk']:.3g}",
        }
    elif len(decisions):
        gain = decisions["decision_accuracy"] - decisions["decision_baseline"]
        row = decisions.iloc[int(gain.to_numpy().argmax())]
        texts = {
            "ratio": "",
            "right": _percent(row["decision_accuracy"]),
            "baseline": _percent(row["decision_baseline"]),
        }
    else:
        return None
    mine = (marked["label"] == row["label"]) & (marked["prior"] == row["prior"])
    coherent = mine & (marked["conditionals"] == "coherent")
    group = marked.loc[coherent & (marked["quantity"] == "hierarchical_decision_accuracy"), "value"]
    text = next(prior.name for prior in panel.study.prior if prior.value == row["prior"])
    return {
        "title": panel.title,
        "label": str(row["label"]),
        "prior": f"{text} ({_percent(row['prior'])})" if "/" in text else text,
        "budgets": marked["label"].nunique(),
        "priors": marked["prior"].nunique(),
        **texts,
        "group": (_percent(group.min()), _percent(group.max())) if len(group) else (),
    }


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g}%"


def question(study: SweepStudy) -> dict[str, Any]:
    """Return the question, the adversary and the targets."""
    scenario = Scenario.named(study.scenario)
    targets = pd.DataFrame(
        [(t.label, t.count, t.known_count) for t in study.targets[:20]],
        columns=["target in the cell", "true count", "known count of others"],
    )
    return {
        "about": scenario,
        "targets": engine.table(targets, "Targets"),
        "more_targets": len(study.targets) - len(targets),
        "two_levels": study.hierarchy.points > 0,
    }


def _census_conventions(study: SweepStudy) -> engine.PageTable | None:
    """Return the risk under each of the two noises that a rho of the 2020 Census stands for."""
    budgets = [budget for budget in study.rho if budget.census and budget.name]
    if not budgets or NOISES[0] not in study.noise:
        return None
    table = pd.DataFrame({"prior": [prior.name for prior in study.prior]})
    for budget in budgets:
        for name, sensitivity in SENSITIVITIES.items():
            sigma2 = sensitivity**2 / (2.0 * budget.value)
            table[f"{budget.name}, {_CONVENTIONS[name]} (sigma2 {sigma2:.4g})"] = [
                float(risk.marginal_risk(sigma2=sigma2, prior=prior.value)) for prior in study.prior
            ]
    return engine.table(table, "Marginal risk (posterior / prior on average, if in the cell)")


def simulation_check(study: SweepStudy, results: pd.DataFrame) -> dict[str, Any] | None:
    """Compare the simulated averages with the exact ones, where their error can be judged."""
    keys = ["noise", "sensitivity", "rho", "prior"]
    simulated = results[results["quantity"] == "simulated_marginal_posterior"].drop_duplicates(keys)
    exact = results[results["quantity"] == "marginal_posterior"].drop_duplicates(keys)
    joined = simulated.merge(exact, on=keys, suffixes=("", "_exact"))
    if joined.empty:
        return None
    judged = joined[joined["effective_releases"] >= _ENOUGH]
    equal = int((joined["effective_releases"] == 0.0).sum())
    scores = (judged["value"] - judged["value_exact"]) / judged["standard_error"]
    return {
        "settings": len(joined),
        "judged": len(judged),
        "rare": len(joined) - len(judged) - equal,
        "same": equal,
        "enough": int(_ENOUGH),
        "releases": study.releases,
        "median": float(scores.median()),
        "within": float((scores.abs() < 2).mean()),
        "groups": judged.groupby(keys[:3]).ngroups,
    }


_MAX_TABLE_ROWS = 40
#: Quantities in the table of a budget, and what the reader calls them.
_COLUMNS = {
    "marginal_posterior": "marginal posterior",
    "marginal_risk": "marginal risk",
    "decision_threshold": "decision threshold",
    "correct_decision_probability": "found, if in the cell",
    "decision_baseline": "right without a release",
    "decision_accuracy": "right with it",
}
#: Figures against rho: quantities, function of :mod:`bayesrisk.plotting`, kind of figure.
_AGAINST_RHO = (
    (["marginal_posterior", "marginal_risk"], "plot_risk", "marginal-risk"),
    (["correct_decision_probability"], "plot_correct_decision", "correct-decision"),
    (["decision_accuracy", "decision_baseline"], "plot_decision_accuracy", "decision-accuracy"),
)
#: Of two levels: the quantity, its twin for the block alone, the kind, the vertical axis.
_TWO_LEVELS = (
    (
        "hierarchical_correct_decision_probability",
        "correct_decision_probability",
        "found",
        "probability of being found,\nif in the cell",
    ),
    ("hierarchical_decision_accuracy", "decision_accuracy", "accuracy", "best guess is right"),
)


def write_report(folder: str | Path, *, progress: Callable[[int, int], None] | None = None) -> Path:
    """Return ``report.html`` of a finished sweep, written with its figures; it needs no other file.

    Parameters
    ----------
    folder : path-like
        The folder of the sweep; figures go to its ``figures``.
    progress : callable, optional
        Called with the steps done and all steps: reading, a section for each noise law and
        sensitivity, and writing.

    Notes
    -----
    The page holds no date and no path: the same sweep under the same versions gives the same
    bytes.
    """
    check.function(progress, "progress")
    study, results = read_results(folder)
    path = check.path(folder, "folder")
    images = path / "figures"
    disk.make_folder(images)
    panels = _panels(study, results, images)
    sections = []
    for number, panel in enumerate(panels, start=1):
        if progress is not None:
            progress(number, len(panels) + 2)
        sections.append(_section(panel))
    page = engine.render(
        "sweep.html",
        title=study.title,
        answers=[reply for panel in panels if (reply := _answer(panel)) is not None],
        sections=sections,
        question=question(study),
        conventions=_census_conventions(study),
        reading={
            "releases": study.releases,
            "two_levels": study.hierarchy.points > 0,
            "as_published": "as-published" in study.hierarchy.conditionals,
        },
        check=simulation_check(study, results),
        source=f"Configuration {study.digest}, seed {study.seed}.",
        settings_title="Resolved configuration",
        settings=_settings(study),
    )
    disk.write_bytes(path / "report.html", page.encode())
    if progress is not None:
        progress(len(panels) + 2, len(panels) + 2)
    return path / "report.html"


def _settings(study: SweepStudy) -> str:
    """Return the configuration as JSON, long lists of budgets cut."""
    settings = study.to_dict()
    if len(settings["rho"]) > 40:
        settings["rho"] = [*settings["rho"][:20], "...", *settings["rho"][-20:]]
    return json.dumps(settings, indent=2)


def _panels(study: SweepStudy, results: pd.DataFrame, images: Path) -> list[SweepPanel]:
    """Split the results by noise law and sensitivity."""
    return [
        SweepPanel(study, noise, sensitivity, results[chosen], images)
        for noise in study.noise
        for sensitivity in study.sensitivity
        if (
            chosen := (results["noise"] == noise) & (results["sensitivity"] == sensitivity.value)
        ).any()
    ]


def _wide(frame: pd.DataFrame, quantities: list[str], axes: list[str]) -> pd.DataFrame:
    """Return one row for each point, a column for each quantity."""
    chosen = frame[frame["quantity"].isin(quantities)]
    if chosen["quantity"].nunique() < len(quantities):
        return pd.DataFrame()
    wide = chosen.pivot(index=axes, columns="quantity", values="value").reset_index()
    wide.columns.name = None
    return wide


def _section(panel: SweepPanel) -> dict[str, Any]:
    """Draw the figures against rho, and those of each marked budget."""
    figures: list[engine.Figure] = []
    tables = _tables(panel)
    budgets = panel.named(panel.study.rho)
    for quantities, plot, kind in _AGAINST_RHO:
        wide = _wide(panel.frame, quantities, ["rho", "prior"])
        if len(wide) and len(panel.study.rho) > 1:
            figures.append(panel.figure(getattr(plotting, plot)(wide, budgets=budgets), kind))
    for i, (label, rho) in enumerate(panel.focus, start=1):
        frame = panel.frame[panel.frame["rho"] == rho]
        section = panel._replace(frame=frame, label=label, end=f"-budget-{i}")
        budget_figures, listed = _budget_section(section)
        figures += budget_figures
        tables += listed
    return {"title": panel.title, "figures": figures, "tables": tables}


def _budget_section(panel: SweepPanel) -> tuple[list[engine.Figure], list[engine.PageTable]]:
    """Draw and list one budget: risk by released count and by levels."""
    figures: list[engine.Figure] = []
    tables: list[engine.PageTable] = []
    axes = ["target", "prior", "noisy_count"]
    wide = _wide(panel.frame, ["posterior", "risk_ratio"], axes)
    if len(wide):
        target = wide["target"].iloc[0]
        wide = wide[wide["target"] == target].astype({"noisy_count": "int64"})
        tables = _released_tables(panel, target)
        figure_axes = plotting.plot_risk(wide, against="noisy_count")
        figures.append(panel.figure(figure_axes, "released-count", target=target))
    names = ["multilevel_marginal_posterior", "multilevel_marginal_risk"]
    wide = _wide(panel.frame, names, ["levels", "prior"])
    if len(wide):
        wide = wide.rename(columns=lambda c: c.removeprefix("multilevel_"))
        figure_axes = plotting.plot_risk(wide.astype({"levels": "int64"}), against="levels")
        figures.append(panel.figure(figure_axes, "levels"))
    for quantity in _TWO_LEVELS:
        figures += _hierarchy_figures(panel, *quantity)
    return figures, tables


def _hierarchy_figures(
    panel: SweepPanel, name: str, twin: str, kind: str, axis: str
) -> list[engine.Figure]:
    """Draw an average of decisions with two levels, at the prior nearest 1/2 and the first m."""
    quantity = panel.frame["quantity"]
    alone = panel.frame[quantity == twin].set_index("prior")["value"]
    rows = panel.frame[quantity == name]
    if rows.empty or alone.empty:
        return []
    prior = min(alone.index, key=lambda p: abs(p - 0.5))
    siblings = int(rows["n_siblings"].min())
    rows = rows[(rows["prior"] == prior) & (rows["n_siblings"] == siblings)]
    rows = rows.astype({"group_count": "int64"}).assign(without_hierarchy=alone[prior])
    if kind == "accuracy":
        rows = rows.assign(baseline=max(prior, 1.0 - prior))
    words = {"siblings": siblings, "prior": rows["prior_text"].iloc[0]}
    budgets = panel.study.hierarchy.rho_group
    named = panel.named(budgets)
    figures = []
    if rows["rho_group"].nunique() > 1:
        axes = plotting.plot_group(rows, against="rho_group", budgets=named, quantity=axis)
        figures.append(panel.figure(axes, f"group-budget-{kind}", **words))
    if rows["group_count"].nunique() > 1:
        rho = next(iter(named.values()), budgets[len(budgets) // 2].value)
        one = rows[rows["rho_group"] == rho].drop(columns="standard_error")
        axes = plotting.plot_group(one, quantity=axis)
        figures.append(panel.figure(axes, f"group-count-{kind}", rho=f"{rho:.4g}", **words))
    return figures


def _released_tables(panel: SweepPanel, target: str) -> list[engine.PageTable]:
    """Return posteriors, and ratios, by released count: Kazan and Reiter's Table 4 in two."""
    frame = panel.frame[panel.frame["target"] == target]
    priors = sorted(panel.study.prior, key=lambda budget: -budget.value)
    by_count = frame.set_index("noisy_count")
    mass = by_count.loc[by_count["quantity"] == "release_probability", "value"]
    tables = []
    for quantity, name in (("posterior", "posterior"), ("risk_ratio", "posterior / prior")):
        rows = frame[frame["quantity"] == quantity]
        wide = rows.pivot(index="noisy_count", columns="prior", values="value")
        wide = wide[[prior.value for prior in priors]].head(_MAX_TABLE_ROWS)
        wide.columns = pd.Index([f"prior {prior.name}" for prior in priors])
        if len(mass):
            wide.insert(0, "probability if the target is in the cell", mass.loc[wide.index])
        wide.insert(0, "released count", [str(count) for count in wide.index])
        tables.append(engine.table(wide, f"{panel.label}: {name} after each release"))
    return tables


def _tables(panel: SweepPanel) -> list[engine.PageTable]:
    """Return a table for each marked budget: one row for each prior."""
    study, frame = panel.study, panel.frame
    columns = [*_COLUMNS, "simulated_marginal_posterior"]
    tables = []
    text = {budget.value: budget.name for budget in study.prior}
    for label, rho in panel.focus:
        rows = frame[(frame["rho"] == rho) & frame["quantity"].isin(columns)]
        if rows.empty:
            continue
        wide = rows.pivot(index="prior", columns="quantity", values="value")
        order = [column for column in columns if column in wide.columns]
        wide = wide[order].sort_index(ascending=False)
        wide = wide.rename(columns=_COLUMNS)
        wide.insert(0, "prior", [text[p] for p in wide.index])
        if "simulated_marginal_posterior" in order:
            errors = rows.set_index(["quantity", "prior"])["standard_error"]
            wide["± standard error"] = errors["simulated_marginal_posterior"].loc[wide.index]
        parameter = "sigma2" if panel.noise == NOISES[0] else "scale"
        caption = f"{label}: rho = {rho:.7g}, {parameter} = {rows['noise_parameter'].iloc[0]:.5g}"
        epsilon = frame[(frame["rho"] == rho) & (frame["quantity"] == "epsilon")]
        if len(epsilon):
            caption += f", epsilon = {epsilon['value'].iloc[0]:.5g} at delta = {study.delta:g}"
        tables.append(engine.table(wide, caption))
    return tables
