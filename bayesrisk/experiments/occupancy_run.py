"""The study of occupancy violations: all populations and protections, pooled and written."""

import functools
import io
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
    breach = occupancy_violation(truth["size"], truth["bedrooms"])
    truth["breach"] = breach & (truth["subsidised"] == 1).to_numpy()
    violations = truth.groupby(["seed", "place"])["breach"].sum()
    blocks = pd.concat([part.blocks for part in parts], ignore_index=True)
    keys = pd.MultiIndex.from_arrays([blocks["seed"], blocks["block"]])
    blocks["violations"] = violations.reindex(keys, fill_value=0).to_numpy()
    by_seed, pooled = [], []
    for name in config.protections:
        own = blocks[blocks["protection"] == name]
        rates = {p.seed: p.realised_rate for p in parts if p.protection == name}
        for reading in _READINGS:
            about: dict[str, Any] = {"protection": name, "infeasible_as": reading}
            mean = float(np.mean(list(rates.values())))
            pooled.append({**about, **_row(own, config.level, reading), "realised_rate": mean})
            for seed, rate in rates.items():
                row = _row(own[own["seed"] == seed], config.level, reading)
                by_seed.append({**about, "seed": seed, **row, "realised_rate": rate})
    curves, ends = _curves(config, parts, truth)
    variability = pd.concat([part.variability for part in parts], ignore_index=True)
    return OccupancyStudy(
        config,
        pd.DataFrame(pooled),
        pd.DataFrame(by_seed),
        _first(blocks, "seed", "protection", "block"),
        curves,
        ends,
        variability,
    )


def _first(frame: pd.DataFrame, *names: str) -> pd.DataFrame:
    return frame[[*names, *(c for c in frame.columns if c not in names)]]


def _row(blocks: pd.DataFrame, level: float, reading: str) -> dict[str, Any]:
    """Return the counts of a set of blocks, and precision and recall with their intervals."""
    said = blocks["status"].isin(_READINGS[reading]).to_numpy()
    true = blocks["violations"].to_numpy() > 0
    n, violating, putative = len(blocks), int(true.sum()), int(said.sum())
    confirmed = int((said & true).sum())
    row: dict[str, Any] = {
        "blocks": n,
        "violating": violating,
        "putative": putative,
        "confirmed": confirmed,
        "infeasible": int((blocks["status"] == "infeasible").sum()),
        "undecided": int((blocks["status"] == "undecided").sum()),
    }
    for name, of, blind in (("precision", putative, violating), ("recall", violating, putative)):
        low, high = binomial_interval(confirmed, of, level=level)
        row[name] = confirmed / of if of else np.nan
        row[f"{name}_lower"], row[f"{name}_upper"] = float(low), float(high)
        row[f"{name}_baseline"] = blind / n
    return row


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
