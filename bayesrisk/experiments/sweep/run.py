"""The sweep as a study: what a shard of it is, and what all of them come to."""

import io
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyarrow import csv as pa_csv

from bayesrisk._files.parse import shown
from bayesrisk._show import displayed
from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.experiments.runs.folder import PartFolder
from bayesrisk.experiments.runs.study import Outcome, Study
from bayesrisk.experiments.sweep.config import SweepConfig
from bayesrisk.experiments.sweep.folder import SweepFolder
from bayesrisk.experiments.sweep.shard import compute_shard


@displayed
@dataclass(frozen=True)
class SweepSummary:
    """What a run of a sweep did.

    Attributes
    ----------
    folder : str
        The output folder.
    config : str
        Digest of the configuration.
    shards, computed, resumed : int
        Shards of the sweep, those computed by this run, and those found finished.
    complete : bool
        Whether every shard is there (with ``shard`` given, others may be missing).
    rows : int
        Rows of the results of a complete sweep; else 0.
    """

    folder: str
    config: str
    shards: int
    computed: int
    resumed: int
    complete: bool
    rows: int


@dataclass(frozen=True)
class SweepStudy(Study[SweepSummary]):
    """Disclosure risk over a grid of settings, for :func:`~bayesrisk.run`.

    A complete run has ``results.csv``.  Memory: a shard's rows in each worker, and all rows (at
    most 2**24) at the end.

    Parameters
    ----------
    settings : SweepConfig
        What to run; see :func:`load_config`.
    """

    settings: SweepConfig

    def __post_init__(self) -> None:
        """Check the type."""
        if not isinstance(self.settings, SweepConfig):
            raise ArgumentTypeError(f"settings must be a SweepConfig, got {shown(self.settings)}")

    @property
    def config(self) -> SweepConfig:
        """The settings: they say all."""
        return self.settings

    def open(self, folder: str | Path) -> SweepFolder:
        """Return the folder of a sweep."""
        return SweepFolder(folder)

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return the rows of a shard."""
        return {"part": compute_shard(self.config, shard)}

    def results(self, folder: PartFolder) -> dict[str, bytes]:
        """Return the rows of all shards as CSV."""
        buffer = io.BytesIO()
        pa_csv.write_csv(SweepFolder(folder.path).read(self.config), buffer)
        return {"results.csv": buffer.getvalue()}

    def summary(self, folder: PartFolder, outcome: Outcome) -> SweepSummary:
        """Return what was done."""
        rows = self.config.rows if outcome.complete else 0
        return SweepSummary(str(folder.path), self.config.digest, *outcome, rows)


def read_results(folder: str | Path) -> tuple[SweepConfig, pd.DataFrame]:
    """Return the configuration and the results of a finished sweep.

    Parameters
    ----------
    folder : path-like
        Its folder.

    Returns
    -------
    config : SweepConfig
        The resolved configuration.
    results : pandas.DataFrame
        One row for each quantity at each point; ``standard_error`` is missing where the value
        is exact.

    Raises
    ------
    OutputError
        If the folder holds no sweep.
    PartFileError
        If a part is missing, truncated or foreign.
    """
    store = SweepFolder(folder)
    config = store.load_config()
    frame = store.read(config).to_pandas()
    for column in ("levels", "group_count", "n_siblings", "known_count", "noisy_count"):
        frame[column] = frame[column].astype("Int64")
    texts = ("rho_name", "prior_text", "conditionals", "target")
    return config, frame.fillna(dict.fromkeys(texts, ""))
