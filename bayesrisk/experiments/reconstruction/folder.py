"""The output folder of a reconstruction: its configuration, its parts, and what is made of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pandas as pd

from bayesrisk import _files
from bayesrisk._files.parquet import read_frame
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.exceptions import PartFileError
from bayesrisk.experiments.runs.config import RunSettings
from bayesrisk.experiments.runs.folder import MANIFEST, PartFolder
from bayesrisk.experiments.runs.limits import Count, Positive, choice

__all__ = [
    "VARIABILITIES",
    "ReconstructionConfig",
    "ReconstructionFolder",
    "ReconstructionOutput",
    "read_reconstruction",
]

#: Scopes of the solution variability.
VARIABILITIES = ("block", "tract-bounds", "tract-joint")


@dataclass(frozen=True)
class ReconstructionConfig(RunSettings):
    """What a run does, and to which tables.

    Attributes
    ----------
    tables : str
        Digest of the input folder's files.
    scope : str
        Level whose tables are solved together.
    variability : str or None
        Scope of the solution variability: ``block``, ``tract-bounds``, ``tract-joint``; None for
        none.
    unit : str
        Level of the places that stay together in a shard.
    solver : str
        For what search does not settle.
    time_limit : float or None
        Seconds that the solver may take for a component.
    nearest : bool
        Whether blocks without a solution get the records of the least deviation.
    blocks_per_shard : int
        Blocks after which a shard ends.
    shards : int
        Number of shards.
    version : str
        Version of bayesrisk.
    """

    tables: str
    scope: str
    variability: Annotated[str, choice(VARIABILITIES)] | None
    unit: str
    solver: str
    time_limit: Positive | None
    nearest: bool
    blocks_per_shard: Count
    shards: Count
    version: str = __version__


class ReconstructionFolder(PartFolder):
    """The folder of one reconstruction; blocks are written last and stand for a whole shard."""

    what: ClassVar[str] = "reconstruction"

    def __init__(self, path: str | Path, *, variability: bool) -> None:
        super().__init__(path)
        self.kinds = ("records", "variability", "blocks") if variability else ("records", "blocks")


@displayed
@dataclass(frozen=True)
class ReconstructionOutput:
    """What a finished run wrote.

    Attributes
    ----------
    config : ReconstructionConfig
        What it did.
    records : pandas.DataFrame
        Reconstructed records.
    blocks : pandas.DataFrame
        Population, status, deviation and conflict of every block.
    variability : pandas.DataFrame or None
        Bounds of the solution variability, if it was asked for.
    """

    config: ReconstructionConfig
    records: pd.DataFrame
    blocks: pd.DataFrame
    variability: pd.DataFrame | None


def read_reconstruction(folder: str | Path) -> ReconstructionOutput:
    """Return what a finished reconstruction wrote.

    Parameters
    ----------
    folder : path-like
        Its folder.

    Returns
    -------
    ReconstructionOutput
        Configuration, records, blocks and variability.

    Raises
    ------
    OutputError
        If the folder holds no reconstruction.
    PartFileError
        If the run is not finished, or a file is not the one that the manifest lists.
    """
    store = ReconstructionFolder(folder, variability=True)
    config = store.load_settings(ReconstructionConfig)
    files = store.check_settings(config).get("files", {})
    if not files:
        raise PartFileError(f"{store.path}: is not finished; run the reconstruction with --resume")
    return ReconstructionOutput(
        config,
        _listed(store.path, "records", files),
        _listed(store.path, "blocks", files),
        _listed(store.path, "variability", files) if config.variability else None,
    )


def _listed(folder: Path, kind: str, files: Mapping[str, Any]) -> pd.DataFrame:
    """Return a file after comparing it with the manifest."""
    file = folder / f"{kind}.parquet"
    known = files.get(file.name) if isinstance(files, Mapping) else None
    if not isinstance(known, Mapping) or not isinstance(known.get("sha256"), str):
        raise PartFileError(f"{file}: is not listed in the manifest; run with --resume")
    _files.check_digest(file, known["sha256"], MANIFEST, PartFileError)
    return read_frame(file, fault=PartFileError)
