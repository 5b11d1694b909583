"""The folder of a run: its parts (whole or absent), merged results, and manifest.

A run that is killed at any moment leaves only whole parts. A shard counts once its record exists, a
small file that is written last. The record has the checksums of the parts and the digest of the
configuration. The manifest says ``complete`` once every result made from the parts is in place.
"""

import errno
import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bayesrisk._base import disk, validation as check
from bayesrisk._base.calls import caller_level
from bayesrisk._base.disk.parquet import STORAGE, parquet_bytes
from bayesrisk._base.disk.text import named, read_json
from bayesrisk._base.randomness import as_finished
from bayesrisk._version import __version__
from bayesrisk.exceptions import (
    BayesRiskError,
    BayesRiskWarning,
    DataError,
    OutputError,
    PartFileError,
    ShardError,
    quote,
)

#: Results below this folder are for whoever holds the confidential records, and nobody else.
CONFIDENTIAL = "confidential"
#: What to do where a part is damaged.
ADVICE = "run with --resume to compute it again"
#: Rows that a results file has together at least: its footer names every group of them, and grew
#: beyond what a reader takes when each of many thousand parts was a group.
_GROUP = 2**16
#: Failures after which a run stops of which no shard was ever finished.
_HOPELESS = 10
_NAMED = 5  # shards that a message names


def config_digest(config: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON form of a configuration."""
    text = json.dumps(config, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Layout:
    """Names and kinds of the files of a run.

    A complete run has the ``merged`` kinds of parts in one file each.  All of a ``confidential``
    run may be read by its owner only.
    """

    label: str
    kinds: tuple[str, ...] = ("part",)
    merged: tuple[str, ...] = ()
    confidential: bool = False
    parts: str = "parts"
    settings: str = "config.json"
    listing: str = "manifest.json"
    failures: str = "failed"


class RunFolder:
    """The folder of a run with its configuration; call :meth:`prepare` before writing."""

    def __init__(self, path: str | Path, config: Mapping[str, Any], layout: Layout) -> None:
        self.path = check.path(path, "folder")
        self.state = self.path  # where the configuration, the parts and their list are
        self.config, self.layout = config, layout
        self._digest = config_digest(config)
        # Of a file what changes when it does, with its checksum or what it says.
        self._sums: dict[Path, tuple[Any, str]] = {}
        self._records: dict[Path, tuple[Any, dict[str, dict[str, Any]]]] = {}
        self._copies: TemporaryDirectory[str] | None = None  # results of a store, on this machine
        self._begun = False
        self._errors: dict[int, Exception] = {}

    @classmethod
    def existing(cls, path: str | Path, layout: Layout) -> Self:
        """Return the folder of an existing run, with the configuration stored in it."""
        folder = cls(path, {}, layout)
        file = folder.state / layout.settings
        with named(str(file), OutputError):
            if not file.exists():
                exists = folder.path.exists()
                fault = (
                    f"holds no {layout.label} (no {layout.settings})" if exists else "is not there"
                )
                advice = f": give the output folder of a {layout.label}"
                raise OutputError(f"{folder.path}: {fault}", advice=advice)
        config = read_json(file, OutputError)
        if not isinstance(config, dict) or not isinstance(config.get("shards"), int):
            writer = config.get("version", __version__) if isinstance(config, dict) else __version__
            other = f", which bayesrisk {quote(writer)} wrote: run it again"
            raise OutputError(
                f"{file}: is not the configuration of a {layout.label}"
                f"{other if writer != __version__ else ''}"
            )
        folder.config, folder._digest = config, config_digest(config)
        if folder.manifest and folder.manifest.get("config") != folder._digest:
            raise PartFileError(
                f"{folder.state / layout.listing}: belongs to another configuration than "
                f"{layout.settings}"
            )
        return folder

    @property
    def shards(self) -> int:
        """Number of shards."""
        return int(self.config["shards"])

    @property
    def manifest(self) -> dict[str, Any]:
        """The list of parts and results; empty if there is none yet."""
        file = self.state / self.layout.listing
        return disk.read_document(file, PartFileError) if file.exists() else {}

    def result(self, name: str) -> Path:
        """Return the path of a result, after verifying its checksum.

        A run that ended early may have results of what was done (:meth:`write_so_far`).
        """
        files = self.manifest.get("files") or self.manifest.get("so_far", {})
        if not files:
            raise PartFileError(f"{self.path}: is not finished; run it with --resume")
        entry, file = files.get(name), self.path / name
        if not isinstance(entry, Mapping) or not isinstance(entry.get("sha256"), str):
            raise PartFileError(f"{file}: is not listed in the manifest; run with --resume")
        if disk.is_object(file):
            file = self._copy(file)
        listing, digest = self.layout.listing, entry["sha256"]
        disk.check_digest(file, digest, listing, PartFileError, most=disk.MAX_FILE)
        return file

    def _copy(self, file: Path) -> Path:
        if self._copies is None:
            self._copies = TemporaryDirectory(prefix="bayesrisk-")
        copy = Path(self._copies.name) / file.name
        with named(str(file), PartFileError), disk.local_copy(file) as download:
            download.replace(copy)
        return copy

    # The parts of a shard.

    def part(self, shard: int, kind: str | None = None) -> Path:
        """Return the path of a shard's part, by default of the last kind."""
        name = f"{kind or self.layout.kinds[-1]}-{shard:06d}.parquet"
        return self.state / self.layout.parts / name

    def _record(self, shard: int) -> Path:
        return self.state / self.layout.parts / f"shard-{shard:06d}.json"

    def write_parts(self, shard: int, tables: Mapping[str, Any]) -> None:
        """Write the tables of a shard by kind, each file atomically, then their record."""
        parts = {}
        for kind in self.layout.kinds:
            file, data = self.part(shard, kind), parquet_bytes(tables[kind])
            disk.write_bytes(file, data, private=self._private(file), tidy=False)
            digest = hashlib.sha256(data).hexdigest()
            parts[kind] = {"rows": tables[kind].num_rows, "sha256": digest}
        file = self._record(shard)
        record = disk.sealed({"config": self._digest, "shard": shard, "parts": parts})
        disk.write_bytes(file, record, private=self._private(file), tidy=False)

    def read_part(self, shard: int, kind: str | None = None) -> pa.Table:
        """Return the rows of a part, verified by checksum; by default of the last kind."""
        kind = kind or self.layout.kinds[-1]
        file = self.part(shard, kind)
        with _whole(file):
            data = disk.read_bytes(file, disk.MAX_HELD)
            if hashlib.sha256(data).hexdigest() != self._recorded(shard)[kind]["sha256"]:
                raise ValueError("its bytes do not fit its checksum")
            # Arrow's threads let go of Python's bytes some time after: a process that ends then
            # aborts.
            return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)

    def frame(self, kind: str, shards: Sequence[int] | None = None) -> pd.DataFrame:
        """Return the rows of one kind, of given shards or all, in their order."""
        numbers = range(self.shards) if shards is None else shards
        # Each by itself: a part without rows has no types of its own.
        parts = [self.read_part(shard, kind).to_pandas() for shard in numbers]
        rows: pd.DataFrame = pd.concat(parts, ignore_index=True)
        return rows

    def has(self, shard: int, states: Mapping[str, Any] | None = None) -> bool:
        """Return whether the parts of a shard are present; raise if one has been changed.

        ``states`` are those of all parts, if they were listed already.
        """
        record = self._record(shard)
        if not (record.exists() if states is None else record.name in states):
            return False
        states = self._states() if states is None else states
        for kind, entry in self._recorded(shard, states).items():
            file = self.part(shard, kind)
            # A list made while the shard was written may miss a part.
            if file.name not in states and file.exists():
                states = self._states()
            with _whole(file):
                if self._sha256(file, states) != entry["sha256"]:
                    raise ValueError("its bytes do not fit its checksum")
        return True

    def _states(self) -> Mapping[str, Any]:
        """Return names of all parts and records, each with a value that changes with the file."""
        return disk.listing(self.state / self.layout.parts)

    def finished(self) -> list[int]:
        """Return the numbers of the finished shards; raise if a part has been changed."""
        states = self._states()
        names = sorted(n for n in states if n.startswith("shard-") and n.endswith(".json"))
        numbers = [int(n) if (n := name[6:-5]).isdecimal() else -1 for name in names]
        for name, number in zip(names, numbers, strict=True):
            if not 0 <= number < self.shards:
                raise self._foreign(self.state / self.layout.parts / name)
            self.has(number, states)
        return numbers

    def missing(self) -> list[int]:
        """Return the numbers of the shards that are not finished."""
        return sorted(set(range(self.shards)).difference(self.finished()))

    def _recorded(
        self, shard: int, states: Mapping[str, Any] | None = None
    ) -> dict[str, dict[str, Any]]:
        """Return rows and checksum of each part of a shard; raise if it is of another run."""
        file = self._record(shard)
        state = None if states is None else states.get(file.name)
        if state is not None and self._records.get(file, ("",))[0] == state:
            return self._records[file][1]
        with _whole(file):
            record = disk.read_document(file, PartFileError)
        parts: dict[str, dict[str, Any]] = record.pop("parts", {})
        if record != {"config": self._digest, "shard": shard} or set(parts) != set(
            self.layout.kinds
        ):
            raise self._foreign(file)
        if state is not None:
            self._records[file] = (state, parts)
        return parts

    def _foreign(self, file: Path) -> PartFileError:
        return PartFileError(
            f"{file}: is not a part of this {self.layout.label}; delete it and {ADVICE}"
        )

    def _sha256(self, file: Path, states: Mapping[str, Any]) -> str:
        """Return the checksum of a file, cached until the file changes."""
        if file.name not in states:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        state = states[file.name]
        if file not in self._sums or self._sums[file][0] != state:
            self._sums[file] = (state, disk.digest(file, disk.MAX_HELD))
        return self._sums[file][1]

    # A run, from the first look at the folder to its results.

    def prepare(self, shards: range, *, resume: bool) -> set[int]:
        """Prepare the folder for the shards of a run; return those already finished.

        With ``resume`` a shard with a damaged part is to be computed again, and a warning names it.
        """
        with disk.explained(self.path):
            self._settle()
        if resume:
            states = self._states()
            for shard in shards:
                try:
                    self._check_whole(shard, states)
                except (PartFileError, DataError) as error:
                    self._compute_again(error)
                    self._record(shard).unlink()
        finished = set(self.finished())
        if not resume and not finished.isdisjoint(shards):
            files = self.manifest.get("files", {})
            report = next((f" (see {name})" for name in files if "report" in name), "")
            state = (
                f"holds this run, finished{report}; add --resume to keep it"
                if files
                else f"holds {len(finished.intersection(shards))} shards of this run; add --resume "
                "to go on"
            )
            raise OutputError(
                f"{self.path}: {state}, or choose another folder; nothing was changed"
            )
        self._make_folder(self.state / self.layout.parts)
        self._tidy(shards)
        folder = self.state / self.layout.failures
        if folder.is_dir():
            with disk.explained(folder):
                for shard in shards:
                    self._failure(shard).unlink(missing_ok=True)
                if not disk.is_object(folder) and not any(folder.iterdir()):
                    folder.rmdir()
        return finished

    def _settle(self) -> None:
        """Write the configuration into an empty folder; raise if the folder holds another run."""
        if self.path.exists() and not self.path.is_dir():
            raise OutputError(f"{self.path}: must be a folder, but is a file; nothing was changed")
        file = self.state / self.layout.settings
        ours = json.loads(json.dumps(self.config))
        if file.exists():
            if not self.path.exists():
                raise OutputError(
                    f"{self.state}: belongs to {self.path}, which is gone; remove it to begin again"
                )
            theirs = read_json(file, OutputError)
            if theirs != ours:
                other = theirs if isinstance(theirs, dict) else {}
                keys = ", ".join(k for k in ours if k not in other or other[k] != ours[k])
                raise OutputError(
                    f"{self.path}: belongs to another configuration (other {keys or 'keys'}); "
                    "nothing was changed"
                )
            disk.clear(file, self.state / self.layout.listing)
            return
        folders = (folder for folder in {self.path, self.state} if folder.exists())
        names = [path.name for folder in folders for path in folder.iterdir()]
        # Leftovers of a run killed before its configuration was in place do not count.
        strangers = sorted(name for name in names if not disk.is_leftover(name))
        if strangers:
            raise OutputError(
                f"{self.path}: must be empty or hold a {self.layout.label}, but holds "
                f"{strangers[0]!r}; nothing was changed"
            )
        disk.make_folder(self.path, private=self.layout.confidential)
        self._make_folder(file.parent)
        text = json.dumps(ours, indent=2, sort_keys=True) + "\n"
        disk.write_bytes(file, text.encode(), private=self._private(file))

    def _check_whole(self, shard: int, states: Mapping[str, Any]) -> None:
        """Raise if any byte of a shard has changed since it was written."""
        self.has(shard, states)

    def _compute_again(self, error: BayesRiskError) -> None:
        text = f"{error}: computed again"
        warnings.warn(text.replace(f"; {ADVICE}", ""), BayesRiskWarning, stacklevel=caller_level())

    def _tidy(self, shards: Sequence[int]) -> None:
        """Remove temporary files that killed processes left."""
        files = [self.part(shard, kind) for shard in shards for kind in self.layout.kinds]
        if files:
            disk.clear(*files, *map(self._record, shards))

    def _private(self, file: Path) -> bool:
        """Return whether a file of this folder may be read by its owner only."""
        return self.layout.confidential or CONFIDENTIAL in file.relative_to(self.path).parts

    def _make_folder(self, folder: Path) -> None:
        """Create a folder in or beside this one, readable by its owner only if confidential."""
        top = self.state if folder.is_relative_to(self.state) else self.path
        inside = folder.relative_to(top)
        for below in (*reversed(inside.parents), inside):
            disk.make_folder(top / below, private=self._private(top / below))

    def run(
        self,
        work: Callable[[int], int],
        executor: Executor,
        todo: Sequence[int],
        *,
        stages: Sequence[range] = (),
        progress: Callable[[int, int], None] | None = None,
        results: Callable[[], Mapping[str, bytes]] | None = None,
    ) -> bool:
        """Compute shards, keep the finished ones even after an error, and make the results.

        A shard that fails is set aside with its error, and the others continue. Shards of a stage
        begin when all earlier stages are complete. ``work`` computes a shard, writes its parts and
        returns its number. ``progress`` is called with the numbers of shards computed and to
        compute. ``results`` makes files of a complete run besides those of merged parts. The result
        is True if every shard is there.
        """
        self._begun = bool(self.finished())
        try:
            count = 0
            for stage in stages or (range(self.shards),):
                mine = [shard for shard in todo if shard in stage]
                if mine and stage.start and any(n < stage.start for n in self.missing()):
                    break  # another machine's, or set aside
                for _ in as_finished(executor, work, mine, self._set_aside):
                    self._begun, count = True, count + 1
                    if progress is not None:
                        progress(count, len(todo))
        except BaseException:
            with suppress(OutputError):  # what stopped the work is to be told
                self._write_manifest()
            raise
        self._tidy(todo)  # workers may have died meanwhile
        if self.missing():
            self._write_manifest()
            self._raise_failures()
            if self.missing():  # else another machine has finished the rest meanwhile
                return False
        files = {f"{kind}.parquet": self._merge(kind) for kind in self.layout.merged}
        self._write_manifest(files | self._result_entries({} if results is None else results()))
        return True

    def write_so_far(self, files: Mapping[str, bytes]) -> None:
        """Write results of what is done of a run that ended early; going on forgets them."""
        self._write_manifest(so_far=self._result_entries(files))

    def _result_entries(self, files: Mapping[str, bytes]) -> dict[str, Any]:
        """Write result files, and return their entries of the manifest."""
        for name, data in files.items():
            file = self.path / name
            self._make_folder(file.parent)
            disk.write_bytes(file, data, private=self._private(file))
        return {n: {"sha256": hashlib.sha256(data).hexdigest()} for n, data in files.items()}

    def _merge(self, kind: str) -> dict[str, Any]:
        """Merge the parts of a kind into one file; return its number of rows and checksum."""
        target = self.path / f"{kind}.parquet"
        part, rows = self.read_part(0, kind), 0
        columns = part.schema
        with (
            disk.whole_file(target, private=self._private(target)) as stream,
            pq.ParquetWriter(stream, columns, **STORAGE) as writer,
        ):
            parts: list[pa.Table] = []
            for shard in range(self.shards):
                part = self.read_part(shard, kind) if shard else part
                rows += part.num_rows
                try:
                    parts.append(part.cast(columns))
                except (ValueError, pa.ArrowException) as error:
                    raise PartFileError(
                        f"{self.part(shard, kind)}: has other columns than the first part: {error}"
                    ) from error
                if sum(map(len, parts)) >= _GROUP or shard == self.shards - 1:
                    writer.write_table(pa.concat_tables(parts))
                    parts = []
        return {"rows": rows, "sha256": disk.digest(target)}

    def _write_manifest(
        self, files: Mapping[str, Any] | None = None, *, so_far: Mapping[str, Any] | None = None
    ) -> None:
        """Write the list of parts, and of result files of a complete run or of what is done."""
        failed = sorted((self.state / self.layout.failures).glob("shard-*.json"))
        failures = [disk.read_document(file, PartFileError) for file in failed]
        states = self._states()
        manifest = {
            "config": self._digest,
            "version": self.config.get("version"),
            "shards": self.shards,
            "complete": files is not None,
            "parts": [
                {"shard": shard, "file": f"{self.layout.parts}/{self.part(shard, kind).name}"}
                | entry
                for shard in self.finished()
                for kind, entry in self._recorded(shard, states).items()
            ],
            **({} if files is None else {"files": files}),
            **({} if so_far is None else {"so_far": so_far}),
            **({"failed": failures} if failures else {}),
        }
        listing = self.state / self.layout.listing
        disk.write_bytes(listing, disk.sealed(manifest), private=self._private(listing))

    # Shards that were set aside: one that always fails must not keep the others from being done.

    def _failure(self, shard: int) -> Path:
        return self.state / self.layout.failures / f"shard-{shard:06d}.json"

    def _set_aside(self, shard: int, error: Exception) -> None:
        """Record that a shard failed; raise instead if no other shard can succeed either.

        The error is raised where nothing can be written, as on a full disk, and where many shards
        failed and none was ever finished.
        """
        if isinstance(error, OutputError) and not isinstance(error, PartFileError):
            raise error
        self._errors[shard] = error
        file = self._failure(shard)
        self._make_folder(file.parent)
        document = {"shard": shard, "error": _in_one_line(error)}
        disk.write_bytes(file, disk.sealed(document), private=self._private(file))
        if not self._begun and len(self._errors) >= _HOPELESS:
            raise self._errors[min(self._errors)]

    def _raise_failures(self) -> None:
        """Raise an error for the failed shards: the first one's own if none ever finished."""
        if not self._errors:
            return
        numbers = sorted(self._errors)
        first = self._errors[numbers[0]]
        if not self._begun:
            raise first
        names = ", ".join(map(str, numbers[:_NAMED])) + (", ..." if len(numbers) > _NAMED else "")
        raise ShardError(
            f"{len(numbers)} of the shards could not be computed and were set aside (in "
            f"{self.state / self.layout.failures}): {names}; the others are finished, and --resume "
            f"tries these again; shard {numbers[0]}: {_in_one_line(first)}"
        ) from first


def _in_one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, BayesRiskError) else f"{type(error).__name__}: {text}"


@contextmanager
def _whole(file: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or error
        raise PartFileError(f"{file}: is not a whole part ({reason}); {ADVICE}") from error
