"""Every command that writes, its inputs, and ways to stop it: shared by tests and by fuzzing.

``Stopped`` stands for a kill: from one change of a file on, nothing under a folder can be changed
any more, not even by what tidies up.
"""

import contextlib
import io
import json
import os
import posixpath
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from bayesrisk import datasets as samples
from bayesrisk._base import disk
from bayesrisk.census import write_nmf
from bayesrisk.census.studies.occupancy import OccupancyStudy, synthetic_households
from bayesrisk.cli.app import main
from bayesrisk.tables import Workload, tabulate

SWEEP = """
title = "small"
settings_per_shard = 1
[grid]
rho = ["0.1", "0.5"]
prior = ["1/2"]
released = {from = -1, to = 1}
"""
#: Changes of files, and which of their arguments is the open folder that a name is relative to.
_CHANGES = {"os.rename": 2, "os.remove": 1, "os.mkdir": 2, "os.rmdir": 1, "os.chmod": 2}


@dataclass(frozen=True)
class Command:
    """A command line without its output; what may stand there before; whether it goes on."""

    words: tuple
    before: tuple | None = None  # the command line that made what is there
    resume: bool = False
    replace: tuple = ()
    name: str = "out"
    folder: bool = True
    listing: str = "manifest.json"
    late: str = ""  # a report that is written last: without it the output is whole

    def line(self, output, *, again=False):
        more = (*self.replace, *(("--resume",) if again and self.resume else ()))
        place = (output,) if self.words[0] == "report" else ("-o", output)
        return [*map(str, (*self.words, *place, *more))]


def inputs(folder):
    """Make the inputs of all commands, small ones."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sweep.toml").write_text(SWEEP)
    data = samples.load_microdata("fifty-blocks")
    chosen = data.blocks.loc[data.blocks["chosen"], "block"].to_numpy(dtype="U15")[0]
    own = data.households.take(np.flatnonzero(data.households.geoids == chosen))
    own.write(folder / "households.parquet")
    tabulate(own, Workload.named("household-dhc")).write(folder / "household-tables")
    rng = np.random.default_rng(2)
    people = pd.DataFrame(
        {
            "block": rng.choice([10010201001000, 10010201001001], 20),
            "sex": rng.integers(0, 2, 20),
            "age": rng.integers(0, 90, 20),
            "race": rng.choice([1, 2], 20),
            "hisp": rng.integers(0, 2, 20),
            "person": [f"p{i}" for i in range(20)],
        }
    )
    people.to_parquet(folder / "truth.parquet", index=False)
    people[["block", "sex", "age", "person"]].to_parquet(folder / "known.parquet", index=False)
    people.drop(columns="person").to_parquet(folder / "people.parquet", index=False)
    homes = synthetic_households(OccupancyStudy(seeds=(5,), blocks=4), 5)[0].households
    homes.write(folder / "homes.parquet")
    tabulate(homes, Workload.named("household-occupancy")).write(folder / "occupancy-tables")
    run("release", "--protection", "none", folder / "homes.parquet",
        "--schema", "household-occupancy", "--tables",
        "household-occupancy", "--by", "tract", "-q", "-o", folder / "occupancy-by")  # fmt: skip
    run(
        "census", "simulate", "--nation", "--scale", "0.00001", "--seed", "1", "-q", "-o",
        folder / "nation",
    )  # fmt: skip
    released = ("--protection", "identity", "--tables", "household-occupancy")
    run("release", folder / "homes.parquet", *released, "-o", folder / "occupancy-release")
    write_nmf(folder / "nmf", rng=41, states=("057",), counties=1, tracts=(1, 1), blocks=(1, 2))
    run(
        "release", "--protection", "none", folder / "people.parquet", "--tables", "sf1-block", "-o",
        folder / "tables",
    )  # fmt: skip
    run(
        "attack", "--only", "records", folder / "tables", "--scope", "block", "-q", "-o",
        folder / "records",
    )  # fmt: skip
    return folder


def commands(at):
    """Return every command that writes, by a short name."""
    simulate = ("census", "simulate", "--preset", "tract", "--blocks", "30", "--seed")
    tabulate = ("release", "--protection", "none", at / "people.parquet", "-q", "--tables")
    study = ("--seeds", 1, "--blocks", 4, "--protection", "none", "--solutions", 2, "-q")
    return {
        "simulate": Command((*simulate, "1")),
        "simulate-again": Command(
            (*simulate, "1"), before=(*simulate, "2"), replace=("--replace",)
        ),
        "tabulate": Command((*tabulate, "sf1-block")),
        "tabulate-again": Command(
            (*tabulate, "sf1-block"), before=(*tabulate, "sf1-tract"), replace=("--replace",)
        ),
        "tabulate-by": Command(
            (*tabulate, "sf1-block", "--by", "tract"), resume=True, listing="_run.json"
        ),
        "simulate-nation": Command(
            ("census", "simulate", "--nation", "--scale", "0.00001", "--seed", "1", "-q"),
            resume=True,
            listing="_run.json",
        ),
        "release": Command(
            ("release", at / "people.parquet", "--protection", "identity", "--tables", "sf1-block"),
            late="out-report.html",
        ),
        "release-by": Command(
            ("release", at / "people.parquet", "--protection", "rounding", "--set", "base=3",
             "--set", "method=random", "--tables", "sf1-block", "--by", "tract",
             "--places", at / "people.parquet", "--simulation-seed", "5", "-q"),
            resume=True,
            listing="../out.confidential/run.json",
        ),
        "audit-by": Command(
            ("audit", at / "nation", "--protection", "identity", "--method", "majority",
             "--targets", "3", "-q"),
            resume=True,
        ),
        "occupancy-attack-by": Command(
            ("census", "occupancy", "attack", at / "occupancy-by", "-q"), resume=True
        ),
        "convert-file": Command(
            ("census", "read", at / "people.parquet", "--from", "records", "--dialect", "schema",
             "-q"),
            name="out.parquet",
            folder=False,
        ),
        "nmf": Command(
            ("census", "measurements", at / "nmf", "--prior", "1/10", "-q"), resume=True
        ),
        "nmf-counts": Command(
            ("census", "measurements", at / "nmf", "--posterior", "counts", "-q"), resume=True
        ),
        "sweep": Command(("sweep", at / "sweep.toml", "-q"), resume=True),
        "report": Command(("report",), before=("sweep", at / "sweep.toml", "-q")),
        "reconstruct": Command(
            ("attack", "--only", "records", at / "tables", "--scope", "block", "-q"), resume=True
        ),
        "claims": Command(
            ("attack", "--only", "claims", at / "household-tables", "--columns", "size", "-q"),
            resume=True
        ),
        "reidentify": Command(
            ("attack", "--only", "links", at / "records", "--adversary", at / "known.parquet",
             "--truth", at / "truth.parquet", "--dialect", "schema", "-q")
        ),
        "occupancy-attack": Command(
            ("census", "occupancy", "attack", at / "occupancy-tables", "-q"), resume=True
        ),
        "occupancy-study": Command(
            ("census", "occupancy", "study", *study, "--no-figures"), resume=True
        ),
        "occupancy-figures": Command(("census", "occupancy", "study", *study), resume=True),
    }  # fmt: skip


def run(*words):
    """Run a command in this process; return its exit status and what it says of errors."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["bayesrisk", *map(str, words)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as stop:
        return stop.code or 0, err.getvalue()
    finally:
        sys.argv = before
    return 0, err.getvalue()


class KilledError(BaseException):
    """The process is gone."""


class Stopped:
    """Lets some changes of files in a folder happen, and none after that."""

    def __init__(self):
        self.folder, self.left, self.count, self.error = None, 0, 0, None
        sys.addaudithook(self._look)  # for good: Python has no way to remove one

    @contextlib.contextmanager
    def after(self, changes, folder, error=None):
        """Stop after so many changes: by a kill, or by an error of the system."""
        self.folder, self.left, self.count, self.error = str(folder), changes, 0, error
        try:
            yield self
        finally:
            self.folder = None

    def _look(self, event, arguments):
        folder = self.folder  # another thread may look while the stop ends
        if folder is None or not self._changes(event, arguments, folder):
            return
        self.count += 1
        if self.count == self.left + 1 and self.error is None:
            raise KilledError
        if self.count > self.left:
            raise self.error or OSError(5, "nothing can be written any more")

    @staticmethod
    def _changes(event, arguments, watched):
        if event != "open" and event not in _CHANGES:
            return False
        path, *_, flags = arguments
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        place = Path(os.fsdecode(path))
        if event == "open":
            if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                return False
        elif (handle := arguments[_CHANGES[event]]) >= 0:
            # A name in a folder that is being deleted: by another thread it may be any folder.
            place = Path(f"/proc/self/fd/{handle}").readlink() / place
        return str(place).startswith(watched)


def content(place):
    """Return every file in a folder by its path and bytes, but for unfinished ones."""
    files = (path for path in sorted(Path(place).rglob("*")) if path.is_file())
    found = {path.relative_to(place).as_posix(): path for path in files}
    return {
        name: path.read_bytes()
        for name, path in found.items()
        if not any(disk.is_leftover(part) for part in Path(name).parts)
    }


def leftovers(place):
    return [path for path in Path(place).rglob("*") if disk.is_leftover(path.name)]


class Case:
    """One command: what stands before it, what it makes, and whether a stop leaves either."""

    def __init__(self, command, place):
        self.command, self.place = command, place
        self.output = place / "here" / command.name
        self.start = place / "start"
        (self.start).mkdir(parents=True)
        if command.before is not None:
            status, told = run(*command.before, "-o", self.start / command.name)
            assert status == 0, told
        self.old = content(self.start)
        self._restore()
        self.points = self._undisturbed() + 1  # before each change of a file, and after the last
        self.new = content(place / "here")
        assert self.new
        assert not leftovers(place / "here")

    def _restore(self):
        shutil.rmtree(self.place / "here", ignore_errors=True)
        shutil.copytree(self.start, self.place / "here")

    def _undisturbed(self):
        with STOP.after(10**9, self.place / "here") as seen:
            status, told = run(*self.command.line(self.output))
            changes = seen.count
        assert status == 0, told
        return changes

    def check(self, point):
        """Stop after some changes, none to all; see that all is old or new, and try once more."""
        self._restore()
        with contextlib.suppress(KilledError), STOP.after(point, self.place / "here"):
            run(*self.command.line(self.output))
        now = content(self.place / "here")
        if self.command.resume:
            assert not self._complete() or now.items() >= self._results().items(), point
            assert now.items() <= self.new.items() or not self._complete(), point
        else:  # a folder that is being replaced may be moved away until the next start
            absent = ({},) if self.command.replace else ()
            whole = {name: held for name, held in self.new.items() if name != self.command.late}
            assert now in (self.old, self.new, whole, *absent), (point, sorted(now))
            if now == whole != self.new:
                return
        if now == self.new and not self.command.resume and not self.command.replace:
            return
        status, told = run(*self.command.line(self.output, again=True))
        assert status == 0, (point, told)
        assert content(self.place / "here") == self.new, point
        assert not leftovers(self.place / "here"), point

    def _complete(self):
        manifest = self.output / self.command.listing
        return manifest.exists() and json.loads(manifest.read_bytes())["complete"]

    def _results(self):
        """Return what the manifest of a complete run promises."""
        listing = posixpath.normpath(f"{self.command.name}/{self.command.listing}")
        listed, beside = json.loads(self.new[listing]), posixpath.dirname(listing)
        names = [f"{self.command.name}/{name}" for name in listed["files"]]
        names += [f"{beside}/{part['file']}" for part in listed["parts"]]
        return {name: self.new[name] for name in names}


STOP = Stopped()
