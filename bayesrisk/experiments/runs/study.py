"""What a study is: a configuration, shards that are computed one by one, and what they come to."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from bayesrisk.experiments.runs.config import RunConfig
from bayesrisk.experiments.runs.folder import PartFolder

S = TypeVar("S", covariant=True)


class Outcome(NamedTuple):
    """What a run did: shards in all, computed, found finished; and whether every one is there."""

    shards: int
    computed: int
    resumed: int
    complete: bool


class Study(ABC, Generic[S]):
    """A computation in shards, for :func:`run`: everything but where and how it runs.

    A study is sent to workers, so it holds settings and paths rather than open files.  What a
    shard comes to depends on the study and the number of the shard, on nothing else.
    """

    #: Kinds of parts that a complete run has in one file each.
    merged: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def config(self) -> RunConfig:
        """The checked configuration, the same for every run of this study."""

    @abstractmethod
    def open(self, folder: str | Path) -> PartFolder:
        """Return the folder of this kind of study at a path."""

    @abstractmethod
    def compute(self, shard: int) -> Mapping[str, Any]:
        """Return the parts of a shard, tables of Arrow: what a worker does.

        A folder of another kind may take other things too, which its ``write_parts`` knows.
        """

    @property
    def stages(self) -> Sequence[range]:
        """Shards in stages, one after the other: a later one may read what earlier ones found."""
        return (range(self.config.shards),)

    def compute_after(self, shard: int, folder: PartFolder) -> Mapping[str, Any]:
        """Return the parts of a shard, where a folder holds those of all earlier stages."""
        return self.compute(shard)

    def results(self, folder: PartFolder) -> Mapping[str, bytes]:
        """Return further files of a complete run, by name."""
        return {}

    @abstractmethod
    def summary(self, folder: PartFolder, outcome: Outcome) -> S:
        """Return what a run did and what the folder holds."""

    def close(self) -> None:
        """Forget what this process keeps between shards."""
