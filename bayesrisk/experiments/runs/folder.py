"""An output folder of parts that are whole or absent, and a manifest of them.

A run killed at any moment leaves only whole parts.  Each carries its kind, its shard number, the
digest of its configuration and that of its own bytes in its footer: the folder explains itself, and
the manifest can be rebuilt from the parts by any process.  The manifest says ``complete`` only once
every result that is made of the parts is in place.
"""

import base64
import functools
import hashlib
import platform
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bayesrisk import _files, plotting
from bayesrisk._random import as_finished
from bayesrisk._version import __version__
from bayesrisk.exceptions import (
    BayesRiskError,
    BayesRiskWarning,
    DataError,
    OutputError,
    PartFileError,
)
from bayesrisk.experiments.runs.parts import (
    PartFile,
    PartSummary,
    RunConfig,
    SetAside,
    SettledFolder,
    look_at,
    pack,
    unpack,
)

if TYPE_CHECKING:
    from jinja2 import Environment

#: Rows that a results file has together at least: its footer names every group of them, and grew
#: beyond what a reader takes when each of many thousand parts was a group.
_GROUP = 2**16
#: What to do where a part is damaged.
ADVICE = "run with --resume to compute it again"


def arrow_table(frame: pd.DataFrame) -> pa.Table:
    """Return a frame as a table; all texts of one type, also where there are none."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    fields = []
    for field in table.schema:
        text = pa.types.is_large_string(field.type) or pa.types.is_null(field.type)
        fields.append(field.with_type(pa.string()) if text else field)
    return table.cast(pa.schema(fields))


def _footer(config: RunConfig, shard: int, kind: str) -> dict[str, str]:
    """Return what a part says of itself."""
    return {
        "bayesrisk.config": config.digest,
        "bayesrisk.kind": kind,
        "bayesrisk.shard": str(shard),
    }


def _number(file: Path) -> int:
    """Return the shard number in the name of a part; -1 for another name."""
    text = file.stem.rpartition("-")[2]
    return int(text) if text.isascii() and text.isdigit() else -1


class PartFolder(SettledFolder):
    """The folder of one run; subclasses say of what kind.

    Parameters
    ----------
    path : path-like
        The folder; :meth:`prepare` makes it.
    """

    #: Files of a shard; the last one is written last, and stands for all.
    kinds: tuple[str, ...] = ("part",)
    #: Where the parts are.
    parts: ClassVar[str] = "parts"
    #: Where the errors of shards are that were set aside.
    aside: ClassVar[str] = "failed"

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self._read: dict[Path, tuple[tuple[int, ...], PartSummary]] = {}

    @property
    def _foreign(self) -> str:
        return f"is not a part of this {self.what}; delete it and {ADVICE}"

    def part(self, shard: int, kind: str | None = None) -> Path:
        """Return the path of a part, by default of the one that is written last."""
        return self.state / self.parts / f"{kind or self.kinds[-1]}-{shard:06d}.parquet"

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
            Finished shards, each read back and checked.  With ``resume`` those with a damaged part
            are not among them, and a warning names it: they are to be computed again.

        Raises
        ------
        OutputError
            If the folder belongs to another configuration, holds parts of this run and ``resume``
            is false, or holds other files.
        PartFileError
            If a part is foreign; if one is truncated or altered and ``resume`` is false, or it is
            another machine's.
        """
        with _files.explained(self.path):
            self._settle(config)
        self._check_owner(config)
        if resume:
            self._forget_damaged(config, mine)
        done = self.finished(config)
        if not resume and not done.isdisjoint(mine):
            raise OutputError(
                f"{self.path}: holds {len(done.intersection(mine))} shards of this run; "
                "add --resume to go on, or choose another folder; nothing was changed"
            )
        self._make_folder(self.state / self.parts)
        self._tidy(mine)
        SetAside(self.state / self.aside).forget(mine)
        return done

    def _forget_damaged(self, config: RunConfig, shards: Sequence[int]) -> None:
        """Remove what stands for shards that are not as they were written."""
        for shard in shards:
            if self.part(shard).exists():
                try:
                    self._check_whole(shard)
                except (PartFileError, DataError) as error:
                    self._compute_again(config, error)
                    self.part(shard).unlink()

    def _check_whole(self, shard: int) -> None:
        """Refuse a shard any byte of which is not as it was written."""
        for kind in self.kinds:
            self._about(self.part(shard, kind))

    def _compute_again(self, config: RunConfig, error: BayesRiskError) -> None:
        """Say that a damaged shard is computed again."""
        text = f"{error}: computed again"
        warnings.warn(text.replace(f"; {ADVICE}", ""), BayesRiskWarning, stacklevel=2)

    def _tidy(self, shards: Sequence[int]) -> None:
        """Remove what killed processes left of the parts of shards."""
        files = [self.part(shard, kind) for shard in shards for kind in self.kinds]
        if files:
            _files.clear(*files)

    def has(self, config: RunConfig, shard: int) -> bool:
        """Return whether a shard's parts are there, each checked against its footer."""
        files = [(self.part(shard, kind), kind) for kind in self.kinds]
        if not files[-1][0].exists():
            return False
        return all(self._check(file, config, kind) == shard for file, kind in files)

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
        folder, last = self.state / self.parts, self.kinds[-1]
        if not folder.is_dir():
            return set()
        found = {
            self._check(file, config, last) for file in sorted(folder.glob(f"{last}-*.parquet"))
        }
        for shard in found:
            for kind in self.kinds[:-1]:
                self._check(self.part(shard, kind), config, kind)
        return found

    def _check(self, file: Path, config: RunConfig, kind: str) -> int:
        """Return the shard number of a part that is whole and belongs to the run."""
        footer = self._about(file).footer
        shard = _number(file)
        known = 0 <= shard < config.shards and file == self.part(shard, kind)
        if not known or footer != _footer(config, shard, kind):
            raise PartFileError(
                f"{file}: is not a part of this {self.what}; delete it and {ADVICE}"
            )
        return shard

    def _about(self, file: Path) -> PartSummary:
        """Return what a part says of itself, looked at again if it changed."""
        try:
            now = file.stat()
        except OSError as error:
            raise PartFileError(
                f"{file}: is not a whole part ({error.strerror}); {ADVICE}"
            ) from error
        state = (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
        if file not in self._read or self._read[file][0] != state:
            self._read[file] = (state, look_at(file, ADVICE))
        return self._read[file][1]

    def write_parts(self, config: RunConfig, shard: int, tables: Mapping[str, Any]) -> None:
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
        OutputError
            If they cannot be written.
        """
        for kind in self.kinds:
            file = self.part(shard, kind)
            data = pack(tables[kind], _footer(config, shard, kind))
            _files.write_bytes(file, data, private=self._private(file), tidy=False)

    def run(
        self,
        config: RunConfig,
        work: Callable[[int], int],
        runner: Executor,
        todo: Sequence[int],
        *,
        stages: Sequence[range] = (),
        progress: Callable[[int, int], None] | None = None,
        merged: tuple[str, ...] = (),
        results: Callable[[], Mapping[str, bytes]] | None = None,
    ) -> bool:
        """Compute shards, and keep those that are finished whatever happens.

        A shard that fails is set aside with its error, and the others go on.

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
        stages : sequence of range, optional
            Shards that must all be there before those of the next stage begin.
        progress : callable, optional
            Called with the shards computed and those to compute, after each.
        merged : tuple of str
            Kinds that a complete run has in one file each.
        results : callable, optional
            Makes the other files of a complete run, by name.

        Returns
        -------
        bool
            Whether every shard is there.

        Raises
        ------
        OutputError
            If a file cannot be written.
        PartFileError
            If a part is truncated, altered or foreign.
        ShardError
            If shards were set aside.
        """
        aside = SetAside(self.state / self.aside, begun=bool(self.finished(config)))
        try:
            staged = self._staged(config, work, runner, todo, stages, aside.add)
            for count, _ in enumerate(staged, start=1):
                aside.begun = True
                if progress is not None:
                    progress(count, len(todo))
        except BaseException:
            with suppress(OutputError):  # what stopped the work is to be told
                self.write_manifest(config)
            raise
        self._tidy(todo)  # workers may have died meanwhile
        if self.missing(config):
            self.write_manifest(config)
            aside.tell()
            if self.missing(config):  # else another machine has finished the rest meanwhile
                return False
        files = {f"{kind}.parquet": self._merge(config, kind) for kind in merged}
        for name, data in ({} if results is None else results()).items():
            file = self.path / name
            self._make_folder(file.parent)
            _files.write_bytes(file, data, private=self._private(file))
            files[name] = {"sha256": hashlib.sha256(data).hexdigest()}
        self.write_manifest(config, files=files)
        return True

    def _staged(
        self,
        config: RunConfig,
        work: Callable[[int], int],
        runner: Executor,
        todo: Sequence[int],
        stages: Sequence[range],
        failed: Callable[[int, Exception], None],
    ) -> Iterator[int]:
        """Yield shards as they are finished, stage after stage."""
        for stage in stages or (range(config.shards),):
            mine = [shard for shard in todo if shard in stage]
            if mine and stage.start and any(n < stage.start for n in self.missing(config)):
                return  # another machine's, or set aside
            yield from as_finished(runner, work, mine, failed)

    def _merge(self, config: RunConfig, kind: str) -> dict[str, Any]:
        """Write one file from the parts, some of them at a time; return its rows and checksum."""
        target = self.path / f"{kind}.parquet"
        part, rows = self.read_part(0, kind), 0
        columns = part.schema
        with (
            _files.whole_file(target, private=self._private(target)) as stream,
            pq.ParquetWriter(
                stream, columns, compression="zstd", write_page_checksum=True
            ) as writer,
        ):
            held: list[pa.Table] = []
            for shard in range(config.shards):
                part = self.read_part(shard, kind) if shard else part
                rows += part.num_rows
                try:
                    held.append(part.cast(columns))
                except (ValueError, pa.ArrowException) as error:
                    raise PartFileError(
                        f"{self.part(shard, kind)}: has other columns than the first part: {error}"
                    ) from error
                if sum(map(len, held)) >= _GROUP or shard == config.shards - 1:
                    writer.write_table(pa.concat_tables(held))
                    held = []
        return {"rows": rows, "sha256": _files.digest(target)}

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
        part: PartFile = unpack(file, ADVICE)
        own = (part.footer.get("bayesrisk.kind"), part.footer.get("bayesrisk.shard"))
        if own != (kind or self.kinds[-1], str(shard)):
            raise PartFileError(
                f"{file}: is not a part of this {self.what}; delete it and {ADVICE}"
            )
        return part.table

    def write_manifest(
        self, config: RunConfig, files: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Write and return the list of parts, with their checksums.

        Parameters
        ----------
        config : RunConfig
            The run.
        files : mapping, optional
            What was made of the parts of a complete run, by name.

        Returns
        -------
        dict
            ``config`` (digest), ``version``, ``shards``, ``complete`` and ``parts``; where shards
            were set aside, ``failed``.

        Raises
        ------
        PartFileError
            If a part is truncated, altered or foreign.
        """
        parts = []
        done = self.finished(config)
        failed = SetAside(self.state / self.aside).known()
        for shard, kind in ((shard, kind) for shard in sorted(done) for kind in self.kinds):
            file = self.part(shard, kind)
            about = self._about(file)
            name = f"{self.parts}/{file.name}"
            parts.append({"shard": shard, "file": name, "rows": about.rows, "sha256": about.sha256})
        manifest = {
            "config": config.digest,
            "version": config.version,
            "shards": config.shards,
            "complete": files is not None,
            "parts": parts,
            **({} if files is None else {"files": files}),
            **({"failed": failed} if failed else {}),
        }
        listing = self.state / self.listing
        _files.write_bytes(listing, _files.sealed(manifest), private=self._private(listing))
        return manifest


# -----------------------------------------------------------------------------
# Reports as self-contained pages: templates filled in, every text escaped, figures embedded.
#
# The templates are in ``bayesrisk/experiments/templates``.  A page holds no date and no path.  It
# is whole without its script, which lets tables be sorted and filtered.


_PIXELS_PER_INCH = 125


class Figure(NamedTuple):
    """A figure for a template: width in pixels, PNG in base 64."""

    caption: str
    width: int
    data: str


class Table(NamedTuple):
    """A table for a template, every cell as text."""

    caption: str
    heads: list[str]
    rows: list[list[str]]


def render(template: str, **values: Any) -> str:
    """Return a template of the package filled in: all that is no markup of its own is escaped.

    A name that the template uses and nobody gave is an error.
    """
    return _environment().get_template(template).render(versions=_versions(), **values)


@functools.cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined  # only reports need it
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("bayesrisk.experiments", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    for name, file in (("style", "style.css"), ("script", "report.js")):
        text = files("bayesrisk.experiments").joinpath("templates", file).read_text("utf-8")
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
        # The package's own, and so no text to be escaped: a policy lets in exactly these bytes.
        environment.globals |= {name: Markup(text), f"{name}_digest": f"sha256-{digest}"}  # noqa: S704
    return environment


def _printable(value: Any) -> Any:
    """Return a value as text without control characters, which HTML may not hold; markup as is."""
    if hasattr(value, "__html__"):
        return value
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def _versions() -> str:
    """Return the versions of what computed and drew."""
    packages = ["numpy", "scipy", "numba", "pandas", "pyarrow", "matplotlib"]
    found = {package: version(package) for package in packages}
    found |= {"bayesrisk": __version__, "python": platform.python_version()}
    return ", ".join(f"{k} {v}" for k, v in sorted(found.items()))


def figure(drawn: Any, stem: Path, caption: str) -> Figure:
    """Write a figure beside the page and return it for the page."""
    png = plotting.save_figure(drawn, stem)[0]
    width = round(float(plotting.figure_of(drawn).get_figwidth()) * _PIXELS_PER_INCH)
    data = base64.b64encode(png.read_bytes()).decode("ascii")
    return Figure(caption, width, data)


def table(frame: pd.DataFrame, caption: str) -> Table:
    """Return a frame for the page; numbers to five significant digits, none as a dash."""
    heads = [str(name).replace("_", " ") for name in frame.columns]
    rows = [[_cell(value) for value in row] for row in frame.itertuples(index=False)]
    return Table(caption, heads, rows)


def rounded(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose rates have three decimals, and whose intervals are one column each."""
    numbers = [str(c) for c in table if table[c].dtype.kind == "f"]
    text = {
        name: table[name].map(lambda value: "–" if pd.isna(value) else f"{value:.3f}").astype("str")
        for name in numbers
    }
    wide = table.assign(**text)
    for name in [c.removesuffix("_lower") for c in numbers if c.endswith("_lower")]:
        low, high = f"{name}_lower", f"{name}_upper"
        wide[low] = wide[low] + " to " + wide[high]
        wide = wide.drop(columns=high).rename(columns={low: f"{name} interval"})
    return wide


def _cell(value: Any) -> str:
    if isinstance(value, float):
        if np.isnan(value):
            return "–"
        return f"{value:.0f}" if value == np.rint(value) and abs(value) >= 1.5 else f"{value:.5g}"
    return str(value)
