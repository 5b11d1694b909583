"""An output folder of parts that are whole or absent, and a manifest of them.

A part is written under a temporary name and then renamed, so that a run killed at any moment
leaves only whole parts.  Each carries the digest of its configuration and its shard number in its
footer: the folder explains itself, and the manifest can be rebuilt from the parts by any process.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bayesrisk._parquet import read_table
from bayesrisk._parse import read_json
from bayesrisk.exceptions import OutputError, PartFileError
from bayesrisk.experiments.settings import RunConfig
from bayesrisk.interfaces import Executor

__all__ = ["PartFolder", "arrow_table", "write_atomically"]

_MANIFEST = "manifest.json"
_CONFIG = "config.json"
_PARTS = "parts"


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that it is either whole or as it was before."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def arrow_table(frame: pd.DataFrame) -> pa.Table:
    """Return a frame as a table; all texts of one type, also where there are none."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    fields = []
    for field in table.schema:
        text = pa.types.is_large_string(field.type) or pa.types.is_null(field.type)
        fields.append(field.with_type(pa.string()) if text else field)
    return table.cast(pa.schema(fields))


class PartFolder:
    """The folder of one run; subclasses say of what kind.

    Parameters
    ----------
    path : path-like
        The folder; :meth:`prepare` makes it.
    """

    #: What the folder holds, for messages.
    what: ClassVar[str]
    #: Files of a shard; the last one is written last, and stands for all.
    kinds: tuple[str, ...] = ("part",)

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def part(self, shard: int, kind: str | None = None) -> Path:
        """Return the path of a part, by default of the one that is written last."""
        return self.path / _PARTS / f"{kind or self.kinds[-1]}-{shard:06d}.parquet"

    def prepare(self, config: RunConfig, mine: range, *, resume: bool) -> set[int]:
        """Make the folder ready for a run and return the shards that are already there.

        Parameters
        ----------
        config : RunConfig
            What is to be run.
        mine : range
            The shards of this run; others may be another machine's.
        resume : bool
            Whether finished shards among them are welcome.

        Returns
        -------
        set of int
            Finished shards, each read back and checked.

        Raises
        ------
        OutputError
            If the folder belongs to another configuration, holds parts of this run and ``resume``
            is false, or holds other files.
        PartFileError
            If a part is truncated, altered or foreign.
        """
        if self.path.exists() and not self.path.is_dir():
            raise OutputError(f"{self.path}: must be a folder, but is a file")
        settings = self.path / _CONFIG
        if not settings.exists():
            # Leftovers of a run killed before its configuration was in place do not count.
            others = (
                []
                if not self.path.exists()
                else sorted(p.name for p in self.path.iterdir() if not p.name.endswith(".tmp"))
            )
            if others:
                raise OutputError(
                    f"{self.path}: must be empty or hold a {self.what}, but holds {others[0]!r}; "
                    "nothing was changed"
                )
            self.path.mkdir(parents=True, exist_ok=True)
            text = json.dumps(config.to_dict(), indent=2, sort_keys=True) + "\n"
            write_atomically(settings, text.encode())
        self._check_owner(config)
        done = self.finished(config)
        if not resume and not done.isdisjoint(mine):
            raise OutputError(
                f"{self.path}: holds {len(done.intersection(mine))} shards of this run; "
                "add --resume to go on, or choose another folder; nothing was changed"
            )
        (self.path / _PARTS).mkdir(exist_ok=True)
        return done

    def _check_owner(self, config: RunConfig) -> None:
        file = self.path / _CONFIG
        theirs = read_json(file, OutputError)
        ours = json.loads(json.dumps(config.to_dict()))
        if theirs != ours:
            other = theirs if isinstance(theirs, dict) else {}
            keys = ", ".join(k for k in ours if k not in other or other[k] != ours[k])
            raise OutputError(
                f"{self.path}: belongs to another configuration (other {keys or 'keys'}); "
                "nothing was changed"
            )

    def finished(self, config: RunConfig) -> set[int]:
        """Return the shards whose parts are there, each checked against its footer.

        Parameters
        ----------
        config : RunConfig
            The run they must belong to.

        Returns
        -------
        set of int
            Shard numbers.

        Raises
        ------
        PartFileError
            If a part is truncated, altered or foreign.
        """
        folder = self.path / _PARTS
        if not folder.is_dir():
            return set()
        files = sorted(folder.glob(f"{self.kinds[-1]}-*.parquet"))
        found = {self._check(file, config, self.kinds[-1]) for file in files}
        for shard in found:
            for kind in self.kinds[:-1]:
                self._check(self.part(shard, kind), config, kind)
        return found

    def _check(self, file: Path, config: RunConfig, kind: str) -> int:
        """Return the shard number of a part that is whole and belongs to the sweep."""
        advice = "delete this file and run with --resume to compute it again"
        try:
            metadata = pq.read_schema(file).metadata or {}
            shard = int(metadata[b"bayesrisk.shard"])
            digest = metadata[b"bayesrisk.config"].decode()
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            raise PartFileError(f"{file}: is not a whole part ({error}); {advice}") from error
        known = 0 <= shard < config.shards and file == self.part(shard, kind)
        if digest != config.digest or not known:
            raise PartFileError(f"{file}: is not a part of this {self.what}; {advice}")
        return shard

    def write_parts(self, config: RunConfig, shard: int, tables: Mapping[str, pa.Table]) -> None:
        """Write the parts of a shard, each whole or not at all.

        Parameters
        ----------
        config : RunConfig
            The run.
        shard : int
            Its number.
        tables : mapping of str to pyarrow.Table
            Rows of every kind.

        Raises
        ------
        OSError
            If they cannot be written.
        """
        footer = {"bayesrisk.config": config.digest, "bayesrisk.shard": str(shard)}
        for kind in self.kinds:
            sink = pa.BufferOutputStream()
            pq.write_table(
                tables[kind].replace_schema_metadata(footer),
                sink,
                compression="zstd",
                write_page_checksum=True,
            )
            write_atomically(self.part(shard, kind), sink.getvalue().to_pybytes())

    def run(
        self,
        config: RunConfig,
        work: Callable[[int], int],
        runner: Executor,
        todo: Sequence[int],
        *,
        progress: Callable[[int, int], None] | None = None,
        merged: tuple[str, ...] = (),
    ) -> bool:
        """Compute shards, and keep those that are finished whatever happens.

        Parameters
        ----------
        config : RunConfig
            The run.
        work : callable
            Computes a shard, writes its parts and returns its number.
        runner : Executor
            Where it is computed.
        todo : sequence of int
            The shards to compute.
        progress : callable, optional
            Called with the shards computed and those to compute, after each.
        merged : tuple of str
            Kinds that a complete run has in one file each.

        Returns
        -------
        bool
            Whether every shard is there.

        Raises
        ------
        PartFileError
            If a part is truncated, altered or foreign.
        """
        try:
            for count, _ in enumerate(runner.run(work, todo), start=1):
                if progress is not None:
                    progress(count, len(todo))
        finally:
            manifest = self.write_manifest(config)  # also after an interrupt: what is there
        if manifest["complete"] and merged:
            files = {f"{kind}.parquet": self._merge(config, kind) for kind in merged}
            self.write_manifest(config, files=files)
        return bool(manifest["complete"])

    def _merge(self, config: RunConfig, kind: str) -> dict[str, Any]:
        """Write one file from the parts, a shard at a time; return its rows and checksum."""
        target = self.path / f"{kind}.parquet"
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        columns, rows = self.read_part(0, kind).schema, 0
        try:
            with pq.ParquetWriter(
                temporary, columns, compression="zstd", write_page_checksum=True
            ) as writer:
                for shard in range(config.shards):
                    part = self.read_part(shard, kind)
                    rows += part.num_rows
                    writer.write_table(part.cast(columns))
            with temporary.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        return {"rows": rows, "sha256": digest}

    def missing(self, config: RunConfig) -> list[int]:
        """Return the shards whose parts are not there."""
        return sorted(set(range(config.shards)) - self.finished(config))

    def read_part(self, shard: int, kind: str | None = None) -> pa.Table:
        """Return the rows of a part.

        Parameters
        ----------
        shard : int
            Its number.
        kind : str, optional
            Which of the shard's parts, by default the one that is written last.

        Returns
        -------
        pyarrow.Table
            Its rows, without the footer.

        Raises
        ------
        PartFileError
            If it cannot be read.
        """
        file = self.part(shard, kind)
        return read_table(file, fault=PartFileError)

    def write_manifest(
        self, config: RunConfig, files: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Write and return the list of parts, with their checksums.

        Parameters
        ----------
        config : RunConfig
            The run.
        files : mapping, optional
            What was made of the parts, by name.

        Returns
        -------
        dict
            ``config`` (digest), ``version``, ``shards``, ``complete`` and ``parts``.

        Raises
        ------
        PartFileError
            If a part is truncated, altered or foreign.
        """
        parts = []
        done = self.finished(config)
        for shard, kind in ((shard, kind) for shard in sorted(done) for kind in self.kinds):
            file = self.part(shard, kind)
            parts.append(
                {
                    "shard": shard,
                    "file": f"{_PARTS}/{file.name}",
                    "rows": pq.read_metadata(file).num_rows,
                    "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
                }
            )
        manifest = {
            "config": config.digest,
            "version": config.version,
            "shards": config.shards,
            "complete": len(done) == config.shards,
            "parts": parts,
            **({} if files is None else {"files": files}),
        }
        text = json.dumps(manifest, indent=2, sort_keys=True) + "\n"
        write_atomically(self.path / _MANIFEST, text.encode())
        return manifest

    def load_settings(self) -> Any:
        """Return the document that the folder was made with.

        Returns
        -------
        object
            What the configuration's ``to_dict`` gave.

        Raises
        ------
        OutputError
            If the folder holds no run of this kind, or a damaged one.
        """
        file = self.path / _CONFIG
        if not file.exists():
            raise OutputError(f"{self.path}: holds no {self.what} (no {_CONFIG})")
        return read_json(file, OutputError)

    def no_settings(self, error: Exception) -> OutputError:
        """Return the error that says why the configuration cannot be used."""
        file = self.path / _CONFIG
        return OutputError(f"{file}: is not the configuration of a {self.what}: {error}")
