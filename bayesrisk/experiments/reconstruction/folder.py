"""The output folder of a reconstruction: its configuration, its parts, and what is made of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bayesrisk import _files
from bayesrisk._files.limits import Count, Positive, choice
from bayesrisk._files.parquet import opened, read_batches, read_frame
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.exceptions import PartFileError
from bayesrisk.experiments.runs.config import RunSettings
from bayesrisk.experiments.runs.folder import PartFolder
from bayesrisk.experiments.runs.settled import MANIFEST

_BATCH = 2**16  # rows that are read at a time
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
    node_limit : int or None
        Nodes that the solver may look at for the variability of a component.
    nearest : bool
        Whether blocks without a solution get the records of the least deviation.
    blocks_per_shard : int
        Blocks after which a shard ends.
    shards : int
        Number of shards.
    version : str
        Version of bayesrisk.
    taken_as_true : bool
        Whether counts are taken as true that need not be.
    """

    tables: str
    scope: str
    variability: Annotated[str, choice(VARIABILITIES)] | None
    unit: str
    solver: str
    time_limit: Positive | None
    node_limit: Count | None
    nearest: bool
    blocks_per_shard: Count
    shards: Count
    version: str = __version__
    taken_as_true: bool = False


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
    found = FinishedReconstruction(folder)
    frames = {kind: read_frame(file, fault=PartFileError) for kind, file in found.files.items()}
    return ReconstructionOutput(
        found.config, frames["records"], frames["blocks"], frames.get("variability")
    )


class FinishedReconstruction:
    """The files of a finished run, each the one that the manifest lists.

    Attributes
    ----------
    config : ReconstructionConfig
        What the run did.
    files : dict of str to Path
        ``records``, ``blocks`` and, if it was asked for, ``variability``.

    Raises
    ------
    OutputError
        If the folder holds no reconstruction.
    PartFileError
        If the run is not finished, or a file is not the one that the manifest lists.
    """

    def __init__(self, folder: str | Path) -> None:
        store = ReconstructionFolder(folder, variability=True)
        self.config = store.load_settings(ReconstructionConfig)
        listed = store.check_settings(self.config).get("files", {})
        if not listed:
            raise PartFileError(
                f"{store.path}: is not finished; run the reconstruction with --resume"
            )
        kinds = ("records", "blocks", *(("variability",) if self.config.variability else ()))
        self.files = {kind: _listed(store.path, kind, listed) for kind in kinds}

    def columns(self, kind: str) -> list[str]:
        """Return the names of the columns of a file."""
        with opened(self.files[kind], PartFileError) as (_, schema):
            return list(schema.names)

    def rows(self, kind: str, digits: int) -> "RowsByPlace":
        """Return the rows of a file, place after place, a place being so many first digits."""
        return RowsByPlace(self.files[kind], digits)


class RowsByPlace:
    """Rows of a file in the order of the codes in its first column, read as they are asked for."""

    def __init__(self, file: Path, digits: int) -> None:
        self._file, self._digits = file, digits
        self._batches = read_batches(file, _BATCH, fault=PartFileError)
        self._held = next(self._batches)

    def of(self, place: str) -> pd.DataFrame:
        """Return the rows of a place; those of places before it are passed over.

        Raises
        ------
        PartFileError
            If the places are not in order.
        """
        pieces = []
        while True:
            codes = pc.utf8_slice_codeunits(self._held.column(0), 0, self._digits)
            codes = codes.to_numpy(zero_copy_only=False).astype(str)
            if (codes[1:] < codes[:-1]).any():
                raise PartFileError(f"{self._file}: rows must be in the order of the places")
            start, stop = np.searchsorted(codes, place), np.searchsorted(codes, place, "right")
            pieces.append(self._held.slice(start, stop - start))
            if stop < len(codes):
                self._held = self._held.slice(stop)
                break
            following = next(self._batches, None)
            if following is None:
                self._held = self._held.slice(stop)
                break
            self._held = following
        frame: pd.DataFrame = pa.concat_tables(pieces).to_pandas()
        return frame

    def places(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield all places that are left, with their rows."""
        while self._next():
            place = str(self._held.column(0)[0].as_py())[: self._digits]
            yield place, self.of(place)

    def _next(self) -> bool:
        while not len(self._held):
            following = next(self._batches, None)
            if following is None:
                return False
            self._held = following
        return True


def _listed(folder: Path, kind: str, files: Mapping[str, Any]) -> Path:
    """Return the path of a file after comparing it with the manifest."""
    file = folder / f"{kind}.parquet"
    known = files.get(file.name) if isinstance(files, Mapping) else None
    if not isinstance(known, Mapping) or not isinstance(known.get("sha256"), str):
        raise PartFileError(f"{file}: is not listed in the manifest; run with --resume")
    _files.check_digest(file, known["sha256"], MANIFEST, PartFileError)
    return file
