"""An output folder that says of which run it is, and takes no other."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.text import named, read_json
from bayesrisk.exceptions import BayesRiskError, ConfigError, OutputError, PartFileError, ShardError

# -----------------------------------------------------------------------------
# What a run in shards is told: plain settings, and the digest that makes two runs the same run.


class RunConfig(Protocol):
    """What a run in shards is told, complete enough to do it again."""

    @property
    def digest(self) -> str:
        """What makes two runs the same run."""

    @property
    def shards(self) -> int:
        """Number of shards."""

    @property
    def version(self) -> str:
        """Version of bayesrisk."""

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain containers, for JSON."""


class RunSettings:
    """What configurations of studies have in common: dataclasses that pydantic reads back.

    Whoever makes one has checked its values by the names of the arguments; what is read from a file
    is checked here, by the bounds that the fields name.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    @classmethod
    def from_dict(cls, values: Any, *, source: str = "config") -> Self:
        """Return the configuration that :meth:`to_dict` wrote.

        Parameters
        ----------
        values : mapping
            Field names and values.
        source : str, default "config"
            How messages call it.

        Returns
        -------
        object
            The configuration.

        Raises
        ------
        ConfigError
            If a field is missing, unknown, of another type or out of range; the message names the
            source, the key, the bound and the value.
        """
        from pydantic import TypeAdapter, ValidationError  # slow to import

        from bayesrisk._files.limits import as_config_error

        try:
            return TypeAdapter(cls).validate_json(json.dumps(values), strict=True)
        except ValidationError as error:
            raise as_config_error(error, source) from error

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain containers, for JSON."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


# -----------------------------------------------------------------------------
# Shards that were set aside: each with its error, in a small file of its own.
#
# One shard that always fails must not keep the others from being done.  So its error is written
# down, the rest goes on, and the run ends with an error that names it.


#: Failures after which a run stops of which no shard was ever finished.
_HOPELESS = 10
_NAMED = 5  # shards that a message names


class SetAside:
    """The shards that failed in a folder.

    Parameters
    ----------
    folder : Path
        Where their files are; made for the first one.
    begun : bool, default False
        Whether another shard was ever finished: else what fails is the study, and no shard of it.
    """

    def __init__(self, folder: Path, *, begun: bool = False) -> None:
        self.folder, self.begun = folder, begun
        self._errors: dict[int, Exception] = {}

    def add(self, shard: int, error: Exception) -> None:
        """Write down that a shard failed.

        Raises
        ------
        OutputError
            If it failed because nothing can be written, as on a full disk: then no other can.
        Exception
            The first error, where many shards failed and none was ever finished.
        """
        if isinstance(error, OutputError) and not isinstance(error, PartFileError):
            raise error
        self._errors[shard] = error
        _files.make_folder(self.folder)
        document = {"shard": shard, "error": _told(error)}
        _files.write_bytes(self._file(shard), _files.sealed(document))
        if not self.begun and len(self._errors) >= _HOPELESS:
            raise self._first()

    def forget(self, shards: Sequence[int]) -> None:
        """Remove the files of shards that are to be tried again."""
        if self.folder.is_dir():
            with _files.explained(self.folder):
                for shard in shards:
                    self._file(shard).unlink(missing_ok=True)
                if not any(self.folder.iterdir()):
                    self.folder.rmdir()

    def known(self) -> list[dict[str, object]]:
        """Return shard and error of all that are set aside, also by other machines."""
        files = sorted(self.folder.glob("shard-*.json"))
        return [_files.read_document(file, PartFileError) for file in files]

    def tell(self) -> None:
        """Raise what went wrong, if anything did.

        Raises
        ------
        ShardError
            Names the shards, and says what happened to the first.
        Exception
            The first error, where no shard was ever finished.
        """
        if not self._errors:
            return
        first = self._first()
        if not self.begun:
            raise first
        numbers = sorted(self._errors)
        named = ", ".join(map(str, numbers[:_NAMED])) + (", ..." if len(numbers) > _NAMED else "")
        raise ShardError(
            f"{len(numbers)} of the shards could not be computed and were set aside (in "
            f"{self.folder}): {named}; the others are finished, and --resume tries these again; "
            f"shard {numbers[0]}: {_told(first)}"
        ) from first

    def _first(self) -> Exception:
        return self._errors[min(self._errors)]

    def _file(self, shard: int) -> Path:
        return self.folder / f"shard-{shard:06d}.json"


def _told(error: Exception) -> str:
    """Return an error in one line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, BayesRiskError) else f"{type(error).__name__}: {text}"


# -----------------------------------------------------------------------------
# A result part as one file that can tell whether it is whole, and what it is.
#
# The footer names the part (kind, shard, digest of the configuration) and carries a seal: the
# SHA-256 of the file's own bytes, the place of the seal blank.  So any bit that changes is noticed
# without a second file, whatever the reader makes of it.


_KEY = "bayesrisk.seal"
_NOT_SAID = (_KEY.encode(), b"ARROW:schema")
_BLANK = b"0" * 64
_SEAL = re.compile(rb"bayesrisk\.seal.{1,8}?([0-9a-f]{64})", re.DOTALL)


class PartFile(NamedTuple):
    """What a part holds: its rows, its footer, and the SHA-256 of the file."""

    table: pa.Table
    footer: dict[str, str]
    sha256: str


class PartSummary(NamedTuple):
    """What a part says of itself: its number of rows, its footer, and the SHA-256 of the file."""

    rows: int
    footer: dict[str, str]
    sha256: str


def pack(table: pa.Table, footer: Mapping[str, str]) -> bytes:
    """Return the bytes of a part."""
    sink = pa.BufferOutputStream()
    named = table.replace_schema_metadata(dict(footer))
    with pq.ParquetWriter(
        sink, named.schema, compression="zstd", write_page_checksum=True
    ) as writer:
        writer.write_table(named)
        writer.add_key_value_metadata({_KEY: _BLANK.decode()})
    data: bytes = sink.getvalue().to_pybytes()
    start, stop = _place(data)
    return data[:start] + hashlib.sha256(data).hexdigest().encode() + data[stop:]


def unpack(file: Path, advice: str) -> PartFile:
    """Return a part after checking its seal.

    Parameters
    ----------
    file : Path
        The part.
    advice : str
        What to do where it is damaged, for the message.

    Raises
    ------
    PartFileError
        If it cannot be read, or is not as it was written: the file is named.
    """
    with _named(file, advice):
        part, data = _opened(file)
        # Arrow's threads let go of Python's bytes some time after: a process that ends then aborts.
        table = part.read(use_threads=False).replace_schema_metadata(None)
        return PartFile(table, _footer(part), hashlib.sha256(data).hexdigest())


def look_at(file: Path, advice: str) -> PartSummary:
    """Return what a part says of itself after checking its seal, without decoding its rows.

    The seal is over every byte of the file, so a part that is whole here is whole.

    Parameters
    ----------
    file : Path
        The part.
    advice : str
        What to do where it is damaged, for the message.

    Raises
    ------
    PartFileError
        If it cannot be read, or is not as it was written: the file is named.
    """
    with _named(file, advice):
        part, data = _opened(file)
        return PartSummary(part.metadata.num_rows, _footer(part), hashlib.sha256(data).hexdigest())


@contextmanager
def _named(file: Path, advice: str) -> Iterator[None]:
    """Name the file in every error of reading it."""
    try:
        yield
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or error
        raise PartFileError(f"{file}: is not a whole part ({reason}); {advice}") from error


def _opened(file: Path) -> tuple[pq.ParquetFile, bytes]:
    """Return a part whose seal fits, and its bytes."""
    data = file.read_bytes()
    _check_seal(data)
    return pq.ParquetFile(pa.BufferReader(data)), data


def _footer(part: pq.ParquetFile) -> dict[str, str]:
    about = part.metadata.metadata
    return {k.decode(): v.decode() for k, v in about.items() if k not in _NOT_SAID}


def _check_seal(data: bytes) -> None:
    start, stop = _place(data)
    blank = data[:start] + _BLANK + data[stop:]
    if hashlib.sha256(blank).hexdigest().encode() != data[start:stop]:
        raise ValueError("its bytes do not fit its seal")


def _place(data: bytes) -> tuple[int, int]:
    """Return where the seal stands: in the last key of that name, which is in the footer."""
    start = data.rfind(_KEY.encode())
    found = _SEAL.match(data, start) if start >= 0 else None
    if found is None:
        raise ValueError("it has no seal")
    return found.span(1)


# -----------------------------------------------------------------------------


S = TypeVar("S", bound=RunSettings)
#: Results below this folder are for whoever holds the confidential records, and nobody else.
CONFIDENTIAL = "confidential"
MANIFEST = "manifest.json"


class SettledFolder:
    """The folder of one run: its configuration, and who may read what is in it.

    Parameters
    ----------
    path : path-like
        The folder.
    """

    #: What the folder holds, for messages.
    what: ClassVar[str]
    #: Names of the files of the configuration and of the list of parts.
    settings: ClassVar[str] = "config.json"
    listing: ClassVar[str] = MANIFEST

    def __init__(self, path: str | Path) -> None:
        self.path = check.path(path, "folder")
        self.state = self.path  # where the configuration, the parts and their list are

    def _settle(self, config: RunConfig) -> None:
        """Write the configuration into a folder that is new or empty; refuse any other."""
        if self.path.exists() and not self.path.is_dir():
            raise OutputError(f"{self.path}: must be a folder, but is a file")
        settings = self.state / self.settings
        if settings.exists():
            if not self.path.exists():
                raise OutputError(
                    f"{self.state}: belongs to {self.path}, which is gone; remove it to begin again"
                )
            return
        within = (folder for folder in {self.path, self.state} if folder.exists())
        found = [path.name for folder in within for path in folder.iterdir()]
        # Leftovers of a run killed before its configuration was in place do not count.
        others = sorted(n for n in found if not _files.is_leftover(n))
        if others:
            raise OutputError(
                f"{self.path}: must be empty or hold a {self.what}, but holds {others[0]!r}; "
                "nothing was changed"
            )
        _files.make_folder(self.path)
        self._make_folder(settings.parent)
        text = json.dumps(config.to_dict(), indent=2, sort_keys=True) + "\n"
        _files.write_bytes(settings, text.encode(), private=self._private(settings))

    def _private(self, file: Path) -> bool:
        """Return whether only the owner may read a file of this folder."""
        return CONFIDENTIAL in file.relative_to(self.path).parts

    def _make_folder(self, folder: Path) -> None:
        """Make a folder in or beside this one; one for confidential files is its owner's alone."""
        within = self.state if folder.is_relative_to(self.state) else self.path
        inside = folder.relative_to(within)
        for below in (*reversed(inside.parents), inside):
            _files.make_folder(within / below, private=self._private(within / below))

    def _check_owner(self, config: RunConfig) -> None:
        file = self.state / self.settings
        theirs = read_json(file, OutputError)
        ours = json.loads(json.dumps(config.to_dict()))
        if theirs != ours:
            other = theirs if isinstance(theirs, dict) else {}
            keys = ", ".join(k for k in ours if k not in other or other[k] != ours[k])
            raise OutputError(
                f"{self.path}: belongs to another configuration (other {keys or 'keys'}); "
                "nothing was changed"
            )

    def load_settings(self, kind: type[S]) -> S:
        """Return the configuration that the folder was made with.

        Parameters
        ----------
        kind : type
            The configuration's class.

        Returns
        -------
        RunSettings
            The configuration.

        Raises
        ------
        OutputError
            If the folder holds no run of this kind, or a damaged one: the message names the file,
            the key, the bound and the value.
        """
        file = self.state / self.settings
        with named(str(file), OutputError):
            if not file.exists():
                raise OutputError(f"{self.path}: holds no {self.what} (no {self.settings})")
        values = read_json(file, OutputError)
        try:
            return kind.from_dict(
                values, source=f"{file}: is not the configuration of a {self.what}"
            )
        except ConfigError as error:
            raise OutputError(str(error)) from error

    def check_settings(self, config: RunConfig) -> dict[str, Any]:
        """Return the manifest, which must be that of the configuration; empty if there is none.

        Else a configuration that was changed would make every part look foreign.

        Raises
        ------
        PartFileError
            If the manifest is damaged, or belongs to another configuration.
        """
        file = self.state / self.listing
        manifest = _files.read_document(file, PartFileError) if file.exists() else {}
        if manifest and manifest.get("config") != config.digest:
            raise PartFileError(f"{file}: belongs to another configuration than {self.settings}")
        return manifest
