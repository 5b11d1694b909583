"""The study of occupancy violations: all populations and protections, pooled and written."""

import functools
import io
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.experiments.executors import make_executor
from bayesrisk.experiments.occupancy_study import OccupancyConfig, StudyPart, study_part
from bayesrisk.experiments.parts import write_atomically
from bayesrisk.population import occupancy_violation
from bayesrisk.risk import MATCH_KEYS, occupancy_linkage
from bayesrisk.risk._panels import binomial_interval
from bayesrisk.tables import Records

__all__ = ["OccupancyStudy", "run_occupancy"]

_POINTS = 200  # of a curve that are kept
_TABLES = ("table", "seeds", "blocks", "curves", "ends", "variability")
_READINGS = {"apart": ("violation",), "violation": ("violation", "infeasible")}


@dataclass(frozen=True, eq=False)
class OccupancyStudy:
    """Results of a study, as frames.

    Attributes
    ----------
    config : OccupancyConfig
        What was done.
    table : pandas.DataFrame
        A row for each protection and reading of blocks without reconstruction: block counts,
        precision and recall with intervals and blind guesses, all populations together.
    seeds : pandas.DataFrame
        The same for each population.
    blocks : pandas.DataFrame
        Every block: status, violations, and mean violations of its reconstructions.
    curves : pandas.DataFrame
        Precision, recall and match rate along k, by protection, match key, and all households or
        uniques; ``sampling`` is the baseline that knows a sample of the truth.
    ends : pandas.DataFrame
        The curves at their largest k: all putative violations.
    variability : pandas.DataFrame
        Solution variability of blocks without protection, full and binned attributes.
    """

    config: OccupancyConfig
    table: pd.DataFrame
    seeds: pd.DataFrame
    blocks: pd.DataFrame
    curves: pd.DataFrame
    ends: pd.DataFrame
    variability: pd.DataFrame

    def write(self, folder: str | Path) -> list[Path]:
        """Write the frames as CSV files, and the configuration as JSON.

        Parameters
        ----------
        folder : path-like
            Output folder; it is made.

        Returns
        -------
        list of pathlib.Path
            The files.

        Raises
        ------
        OutputError
            If a file cannot be written.
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        files = []
        for name in _TABLES:
            text = io.StringIO()
            getattr(self, name).to_csv(text, index=False, lineterminator="\n")
            files.append(path / f"{name}.csv")
            write_atomically(files[-1], text.getvalue().encode())
        files.append(path / "config.json")
        settings = json.dumps(asdict(self.config), indent=2) + "\n"
        write_atomically(files[-1], settings.encode())
        return files


def run_occupancy(
    config: OccupancyConfig,
    *,
    households: Records | None = None,
    sample: pd.DataFrame | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> OccupancyStudy:
    """Run the attack on several protections of the same households, and judge it.

    Parameters
    ----------
    config : OccupancyConfig
        What to do.
    households : Records, optional
        Confidential households of schema ``household-occupancy`` (or ``household-dhc`` with
        columns ``children``, ``bedrooms`` and ``subsidised``) instead of synthetic ones.
    sample : pandas.DataFrame, optional
        Public sample of households, for :func:`household_law`; a synthetic one by default.
    workers : int, default 1
        Processes; the results do not depend on their number.
    progress : callable, optional
        Called with the parts done and all parts.

    Returns
    -------
    OccupancyStudy
        Frames of results.

    Raises
    ------
    ArgumentError
        If a setting is out of range.
    ArgumentTypeError
        If an argument has the wrong type.
    DataError
        If households lack a column or none is subsidised.

    References
    ----------
    Steed, Qing and Wu (2024), section 4.

    Examples
    --------
    >>> config = OccupancyConfig(seeds=(1,), blocks=10, protections=("none",), solutions=2,
    ...                          sample_blocks=200)
    >>> study = run_occupancy(config)
    >>> study.table[["protection", "blocks"]].values.tolist()[0]
    ['none', 10]
    """
    if not isinstance(config, OccupancyConfig):
        raise ArgumentTypeError(f"config must be an OccupancyConfig, got {type(config).__name__}")
    if households is not None and not isinstance(households, Records):
        raise ArgumentTypeError(f"households must be Records, got {type(households).__name__}")
    seeds = config.seeds if households is None else config.seeds[:1]
    tasks = [(seed, name) for seed in seeds for name in config.protections]
    executor = make_executor("serial" if workers == 1 else "processes", workers)
    work = functools.partial(_work, config, households, sample)
    parts: dict[tuple[int, str], StudyPart] = {}
    for part in executor.run(work, tasks):
        parts[part.seed, part.protection] = part
        if progress is not None:
            progress(len(parts), len(tasks))
    return _study(config, [parts[task] for task in tasks])


def _work(
    config: OccupancyConfig,
    households: Records | None,
    sample: pd.DataFrame | None,
    task: tuple[int, str],
) -> StudyPart:
    return study_part(config, *task, households, sample)


def _study(config: OccupancyConfig, parts: list[StudyPart]) -> OccupancyStudy:
    """Return what all parts say together."""
    truth = _pooled({part.seed: part.truth for part in parts})
    breach = occupancy_violation(truth["size"], truth["bedrooms"]) & (truth["subsidised"] == 1)
    violations = breach.groupby([truth["seed"], truth["place"]]).sum()
    blocks = pd.concat([part.blocks for part in parts], ignore_index=True)
    keys = pd.MultiIndex.from_arrays([blocks["seed"], blocks["block"]])
    blocks["violations"] = violations.reindex(keys, fill_value=0).to_numpy()
    rates = {(p.seed, p.protection): p.realised_rate for p in parts}
    by_seed = [
        _row(frame, config.level, reading).assign(
            protection=name, seed=seed, realised_rate=rates[seed, name]
        )
        for (seed, name), frame in blocks.groupby(["seed", "protection"], sort=False)
        for reading in _READINGS
    ]
    pooled = [
        _row(frame, config.level, reading).assign(
            protection=name,
            realised_rate=float(np.mean([r for (_, p), r in rates.items() if p == name])),
        )
        for name, frame in blocks.groupby("protection", sort=False)
        for reading in _READINGS
    ]
    curves, ends = _curves(config, parts, truth)
    variability = pd.concat([part.variability for part in parts], ignore_index=True)
    return OccupancyStudy(
        config,
        _first(pd.concat(pooled, ignore_index=True), "protection"),
        _first(pd.concat(by_seed, ignore_index=True), "protection", "seed"),
        _first(blocks, "seed", "protection", "block"),
        curves,
        ends,
        variability,
    )


def _first(frame: pd.DataFrame, *names: str) -> pd.DataFrame:
    return frame[[*names, *(c for c in frame.columns if c not in names)]]


def _row(blocks: pd.DataFrame, level: float, reading: str) -> pd.DataFrame:
    """Return the counts of a set of blocks, and precision and recall with their intervals."""
    said = blocks["status"].isin(_READINGS[reading]).to_numpy()
    true = blocks["violations"].to_numpy() > 0
    counts = {
        "infeasible_as": reading,
        "blocks": len(blocks),
        "violating": int(true.sum()),
        "putative": int(said.sum()),
        "confirmed": int((said & true).sum()),
        "infeasible": int((blocks["status"] == "infeasible").sum()),
        "undecided": int((blocks["status"] == "undecided").sum()),
    }
    measures: dict[str, float] = {}
    for name, of, blind in (
        ("precision", counts["putative"], counts["violating"]),
        ("recall", counts["violating"], counts["putative"]),
    ):
        low, high = binomial_interval(counts["confirmed"], of, level=level)
        measures[name] = counts["confirmed"] / of if of else np.nan
        measures[f"{name}_lower"], measures[f"{name}_upper"] = float(low), float(high)
        measures[f"{name}_baseline"] = blind / counts["blocks"]
    return pd.DataFrame([{**counts, **measures}])


def _pooled(frames: dict[int, pd.DataFrame]) -> pd.DataFrame:
    """Return frames of several populations, blocks named apart; ``place`` is the block."""
    found = [
        frame.assign(place=frame["block"], block=f"{seed}:" + frame["block"].astype("str"))
        for seed, frame in frames.items()
    ]
    return pd.concat(found, ignore_index=True)


def _curves(
    config: OccupancyConfig, parts: list[StudyPart], truth: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return precision and recall along k of all populations together, and where they end."""
    curves, ends = [], []
    for name in (*config.protections, "sampling"):
        prefix = "sampling " if name == "sampling" else ""
        own = [p for p in parts if p.protection == ("none" if prefix else name)]
        for key, columns in MATCH_KEYS.items():
            if not own:
                continue
            ranking = _pooled({p.seed: p.rankings[f"{prefix}{key}"] for p in own})
            for unique in (False, True):
                curve = occupancy_linkage(
                    ranking, truth, key=columns, unique=unique, level=config.level
                )
                about = {"protection": name, "key": key, "unique": unique}
                frame = curve.to_frame().assign(**about)
                kept = np.unique(np.linspace(0, len(frame) - 1, _POINTS).astype(int))
                frame = _first(frame, *about)
                curves.append(frame.iloc[kept[kept >= 0]] if len(frame) else frame)
                ends.append(frame.iloc[-1:])
    return pd.concat(curves, ignore_index=True), pd.concat(ends, ignore_index=True)
