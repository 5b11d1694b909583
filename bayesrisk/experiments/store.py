"""The output folder of a sweep: parts that are whole or absent, and a manifest of them.

A part is written under a temporary name and then renamed, so that a run killed at any moment
leaves only whole parts.  Each carries the digest of its configuration and its shard number in its
footer: the folder explains itself, and the manifest can be rebuilt from the parts by any process.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bayesrisk.exceptions import OutputError, PartFileError
from bayesrisk.experiments.compute import SCHEMA
from bayesrisk.experiments.config import SweepConfig

__all__ = ["SweepFolder", "write_atomically"]

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


class SweepFolder:
    """The folder of one sweep.

    Parameters
    ----------
    path : path-like
        The folder; :meth:`prepare` makes it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def part(self, shard: int) -> Path:
        """Return the path of a part."""
        return self.path / _PARTS / f"part-{shard:06d}.parquet"

    def prepare(self, config: SweepConfig, mine: range, *, resume: bool) -> set[int]:
        """Make the folder ready for a run and return the shards that are already there.

        Parameters
        ----------
        config : SweepConfig
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
                    f"{self.path}: must be empty or hold a sweep, but holds {others[0]!r}; "
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

    def _check_owner(self, config: SweepConfig) -> None:
        file = self.path / _CONFIG
        try:
            theirs = json.loads(file.read_bytes())
        except (OSError, ValueError) as error:
            raise OutputError(f"{file}: cannot be read: {error}; nothing was changed") from error
        ours = json.loads(json.dumps(config.to_dict()))
        if theirs != ours:
            other = theirs if isinstance(theirs, dict) else {}
            keys = ", ".join(k for k in ours if k not in other or other[k] != ours[k])
            raise OutputError(
                f"{self.path}: belongs to another configuration (other {keys or 'keys'}); "
                "nothing was changed"
            )

    def finished(self, config: SweepConfig) -> set[int]:
        """Return the shards whose parts are there, each checked against its footer.

        Parameters
        ----------
        config : SweepConfig
            The sweep they must belong to.

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
        return {self._check(file, config) for file in sorted(folder.glob("part-*.parquet"))}

    def _check(self, file: Path, config: SweepConfig) -> int:
        """Return the shard number of a part that is whole and belongs to the sweep."""
        advice = "delete this file and run with --resume to compute it again"
        try:
            metadata = pq.read_schema(file).metadata or {}
            shard = int(metadata[b"bayesrisk.shard"])
            digest = metadata[b"bayesrisk.config"].decode()
        except (OSError, ValueError, KeyError, pa.ArrowInvalid) as error:
            raise PartFileError(f"{file}: is not a whole part ({error}); {advice}") from error
        if digest != config.digest or file != self.part(shard) or not 0 <= shard < config.shards:
            raise PartFileError(f"{file}: is not a part of this sweep; {advice}")
        return shard

    def write_part(self, config: SweepConfig, shard: int, table: pa.Table) -> None:
        """Write one part, whole or not at all.

        Parameters
        ----------
        config : SweepConfig
            The sweep.
        shard : int
            Its number.
        table : pyarrow.Table
            Its rows.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        footer = {"bayesrisk.config": config.digest, "bayesrisk.shard": str(shard)}
        sink = pa.BufferOutputStream()
        pq.write_table(
            table.replace_schema_metadata(footer),
            sink,
            compression="zstd",
            write_page_checksum=True,
        )
        write_atomically(self.part(shard), sink.getvalue().to_pybytes())

    def read(self, config: SweepConfig) -> pa.Table:
        """Return the rows of all parts, in the order of the shards.

        Parameters
        ----------
        config : SweepConfig
            The sweep.

        Returns
        -------
        pyarrow.Table
            All rows.

        Raises
        ------
        PartFileError
            If a part is missing, truncated or foreign.
        """
        missing = sorted(set(range(config.shards)) - self.finished(config))
        if missing:
            raise PartFileError(
                f"{self.path}: {len(missing)} of {config.shards} shards are missing, "
                f"the first is {missing[0]}; run the sweep with --resume"
            )
        tables = []
        for shard in range(config.shards):
            try:
                part = pq.ParquetFile(self.part(shard), page_checksum_verification=True)
                tables.append(part.read().cast(SCHEMA))
            except (OSError, ValueError, pa.ArrowException) as error:
                raise PartFileError(f"{self.part(shard)}: cannot be read: {error}") from error
        return pa.concat_tables(tables)

    def write_manifest(self, config: SweepConfig) -> dict[str, Any]:
        """Write and return the list of parts, with their checksums.

        Parameters
        ----------
        config : SweepConfig
            The sweep.

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
        for shard in sorted(self.finished(config)):
            data = self.part(shard).read_bytes()
            parts.append(
                {
                    "shard": shard,
                    "file": f"{_PARTS}/{self.part(shard).name}",
                    "rows": pq.read_metadata(self.part(shard)).num_rows,
                    "sha256": hashlib.sha256(data).hexdigest(),
                }
            )
        manifest = {
            "config": config.digest,
            "version": config.version,
            "shards": config.shards,
            "complete": len(parts) == config.shards,
            "parts": parts,
        }
        text = json.dumps(manifest, indent=2, sort_keys=True) + "\n"
        write_atomically(self.path / _MANIFEST, text.encode())
        return manifest

    def load_config(self) -> SweepConfig:
        """Return the configuration that the folder was made with.

        Returns
        -------
        SweepConfig
            The resolved configuration.

        Raises
        ------
        OutputError
            If the folder holds no sweep, or one that this version cannot read.
        """
        file = self.path / _CONFIG
        try:
            return SweepConfig.from_dict(json.loads(file.read_bytes()))
        except FileNotFoundError as error:
            raise OutputError(f"{self.path}: holds no sweep (no {_CONFIG})") from error
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise OutputError(f"{file}: is not the configuration of a sweep: {error}") from error
