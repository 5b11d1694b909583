"""A study whose shards fail as they are told: it must be importable where its workers are."""

import errno
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from bayesrisk._base.display import arrow_table
from bayesrisk.experiments.runs.engine import Study
from bayesrisk.experiments.runs.folder import Layout


@dataclass(frozen=True)
class FaultyStudy(Study):
    """Squares of the numbers of shards, and what goes wrong with some of them.

    ``notes`` is a folder of notes: ``done`` has a line for each shard that was computed.  A shard
    goes wrong while the note is there that says so: ``poison-3`` raises, ``kill-3`` ends the
    worker, ``kill-once-3`` only the first time, ``torn-3`` when its part is half written,
    ``full-3`` fills the disk for whoever computes it.
    """

    notes: str
    shards: int = 12
    pause: float = 0.0

    layout = Layout("run of faults", merged=("part",))

    @property
    def config(self):
        return {"shards": self.shards, "version": "1"}

    def compute(self, shard):
        notes = Path(self.notes)
        time.sleep(self.pause)
        if (notes / f"kill-once-{shard}").exists():
            (notes / f"kill-once-{shard}").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        if (notes / f"kill-{shard}").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        if (notes / f"torn-{shard}").exists():
            (notes / f"torn-{shard}").unlink()
            os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        if (notes / f"poison-{shard}").exists():
            raise ArithmeticError(f"shard {shard} does not add up")
        if (notes / f"full-{shard}").exists():
            fill_disk(notes / f"full-{shard}")
        with (notes / "done").open("a", encoding="ascii") as log:
            log.write(f"{shard}\n")
        return {"part": arrow_table(pd.DataFrame({"square": [shard**2]}))}


def fill_disk(note):
    """Let nothing reach the disk from this process any more, while there is the note."""
    sync = os.fsync

    def full(handle):
        if note.exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    os.fsync = full


def done(notes):
    """Return the shards that were computed, each as often as it was."""
    log = Path(notes) / "done"
    return sorted(map(int, log.read_text().split())) if log.exists() else []


@dataclass(frozen=True)
class StuckStudy(FaultyStudy):
    """A study whose workers say who they are, and hold their interpreter for ever."""

    def compute(self, shard):
        (Path(self.notes) / f"stuck-{shard}").write_text(str(os.getpid()), encoding="ascii")
        return {"part": sum(range(10**14))}
