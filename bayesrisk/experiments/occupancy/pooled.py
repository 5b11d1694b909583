"""All populations and protections of a study of occupancy violations together."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk import _files
from bayesrisk._files.delimited import csv_bytes
from bayesrisk._show import displayed
from bayesrisk.exceptions import OutputError
from bayesrisk.experiments.occupancy.config import OccupancyConfig
from bayesrisk.experiments.occupancy.study import StudyPart, sampled_rankings
from bayesrisk.experiments.runs.settled import CONFIDENTIAL
from bayesrisk.population import occupancy_violation
from bayesrisk.reconstruction.status import Status
from bayesrisk.risk import MATCH_KEYS, occupancy_linkage
from bayesrisk.risk.intervals import binomial_interval

_SAMPLING = "sampling"  # the attack that knows a share of the truth, in place of a protection
_POINTS = 200  # of a curve that are kept
#: Totals over all blocks; and what has rows for a block, or for an entry of a ranking.
_TOTALS, _SINGLE = ("table", "seeds", "ends"), ("blocks", "curves", "variability")
_READINGS = {"apart": (Status.VIOLATION,), "violation": (Status.VIOLATION, Status.INFEASIBLE)}


@displayed
@dataclass(frozen=True, eq=False)
class OccupancyResults:
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

    def files(self) -> dict[str, bytes]:
        """Return the frames as CSV files, by name.

        Returns
        -------
        dict of str to bytes
            Totals over all blocks (``table.csv``, ``seeds.csv``, ``ends.csv``), and below
            ``confidential/`` what has rows for a block or for an entry of a ranking
            (``blocks.csv``, ``curves.csv``, ``variability.csv``): they say where violations are.
        """
        names = {name: f"{name}.csv" for name in _TOTALS}
        names |= {name: f"{CONFIDENTIAL}/{name}.csv" for name in _SINGLE}
        return {file: csv_bytes(getattr(self, name)) for name, file in names.items()}

    def write(self, folder: str | Path) -> list[Path]:
        """Write the frames as CSV files (see :meth:`files`), and the configuration as JSON.

        Parameters
        ----------
        folder : path-like
            Output folder; it is made.  What is below ``confidential/`` only its owner may read.

        Returns
        -------
        list of pathlib.Path
            The files.

        Raises
        ------
        OutputError
            If the folder holds another study, or a file cannot be written.
        """
        path = Path(folder)
        settings = (json.dumps(self.config.to_dict(), indent=2, sort_keys=True) + "\n").encode()
        about = path / "config.json"
        with _files.explained(path):
            if about.exists() and about.read_bytes() != settings:
                raise OutputError(f"{path}: holds another study; nothing was changed")
        files = {"config.json": settings, **self.files()}
        for name, data in files.items():
            private = name.startswith(CONFIDENTIAL)
            _files.make_folder((path / name).parent, private=private)
            _files.write_bytes(path / name, data, private=private)
        return [path / name for name in files]


def pooled_results(
    config: OccupancyConfig, parts: list[StudyPart], truths: dict[int, pd.DataFrame]
) -> OccupancyResults:
    """Return what all parts, in the order of the tasks, say of the true households."""
    truth = _pooled(truths)
    breach = occupancy_violation(truth["size"], truth["bedrooms"])
    truth["breach"] = breach & (truth["subsidised"] == 1).to_numpy()
    violations = truth.groupby(["seed", "place"])["breach"].sum()
    blocks = pd.concat([part.blocks for part in parts], ignore_index=True)
    keys = pd.MultiIndex.from_arrays([blocks["seed"], blocks["block"]])
    blocks["violations"] = violations.reindex(keys, fill_value=0).to_numpy()
    by_seed, pooled = [], []
    for name in config.protections:
        own = blocks[blocks["protection"] == name]
        rates = own.groupby("seed", sort=False)["realised_rate"].first().to_dict()
        for reading in _READINGS:
            about: dict[str, Any] = {"protection": name, "infeasible_as": reading}
            mean = float(np.mean(list(rates.values())))
            pooled.append({**about, **_row(own, config.confidence, reading), "realised_rate": mean})
            for seed, rate in rates.items():
                row = _row(own[own["seed"] == seed], config.confidence, reading)
                by_seed.append({**about, "seed": seed, **row, "realised_rate": rate})
    attacks = [
        part.rankings.assign(protection=name)
        for (_, name), part in zip(config.tasks, parts, strict=True)
    ]
    attacks += [
        sampled_rankings(config, seed, homes).assign(protection=_SAMPLING)
        for seed, homes in truths.items()
    ]
    curves, ends = _curves(config, pd.concat(attacks, ignore_index=True), truth)
    variability = pd.concat([part.variability for part in parts], ignore_index=True)
    return OccupancyResults(
        config,
        pd.DataFrame(pooled),
        pd.DataFrame(by_seed),
        _first(blocks.drop(columns="realised_rate"), "seed", "protection", "block"),
        curves,
        ends,
        variability,
    )


def _first(frame: pd.DataFrame, *names: str) -> pd.DataFrame:
    return frame[[*names, *(c for c in frame.columns if c not in names)]]


def _row(blocks: pd.DataFrame, confidence: float, reading: str) -> dict[str, Any]:
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
        "infeasible": int((blocks["status"] == Status.INFEASIBLE).sum()),
        "undecided": int((blocks["status"] == Status.UNDECIDED).sum()),
    }
    for name, of, blind in (("precision", putative, violating), ("recall", violating, putative)):
        low, high = binomial_interval(confirmed, of, confidence=confidence)
        row[name] = confirmed / of if of else np.nan
        row[f"{name}_lower"], row[f"{name}_upper"] = float(low), float(high)
        row[f"{name}_baseline"] = blind / n
    return row


def _names(seed: Any, block: pd.Series) -> pd.Series:
    """Return names that tell blocks of several populations apart."""
    return pd.Series(seed, index=block.index).astype("str") + ":" + block.astype("str")


def _pooled(truths: dict[int, pd.DataFrame]) -> pd.DataFrame:
    """Return households of several populations; ``place`` is the block in its own."""
    found = [
        frame.assign(seed=seed, place=frame["block"], block=_names(seed, frame["block"]))
        for seed, frame in truths.items()
    ]
    return pd.concat(found, ignore_index=True)


def _curves(
    config: OccupancyConfig, rankings: pd.DataFrame, truth: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return precision and recall along k of all populations together, and where they end."""
    rankings = rankings.assign(block=_names(rankings["seed"], rankings["block"]))
    curves, ends = [], []
    for name in (*config.protections, _SAMPLING):
        for key, columns in MATCH_KEYS.items():
            own = rankings[(rankings["protection"] == name) & (rankings["ranking"] == key)]
            ranking = own.astype(dict.fromkeys(columns, np.int64)).reset_index(drop=True)
            for unique in (False, True):
                curve = occupancy_linkage(
                    ranking, truth, key=columns, unique=unique, confidence=config.confidence
                )
                about = {"protection": name, "key": key, "unique": unique}
                frame = _first(curve.to_frame().assign(**about), *about)
                kept = np.unique(np.linspace(0, len(frame) - 1, _POINTS).astype(int))
                curves.append(frame.iloc[kept[kept >= 0]] if len(frame) else frame)
                ends.append(frame.iloc[-1:])
    return pd.concat(curves, ignore_index=True), pd.concat(ends, ignore_index=True)
