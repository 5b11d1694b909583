"""What runs on noisy measurement files are told."""

from dataclasses import dataclass

from bayesrisk._version import __version__
from bayesrisk.experiments.runs.config import RunSettings


@dataclass(frozen=True)
class MeasurementsConfig(RunSettings):
    """What a run does, and to which folder.

    Attributes
    ----------
    measurements : str
        Digest of the folder's files.
    level, query : str
        Units and cells.
    combine : bool
        Whether all noisy values of the same count are used, or those of the query alone.
    prior : float
        Belief before the release, in every cell.
    known_count : int
        Others known to be in the cell, in every cell.
    exceeds : tuple of float
        Risk ratios above which cells are counted.
    budget : str or None
        Production budget with the exact scales of the noise.
    ranges : tuple of (str, str)
        First and last unit of each shard.
    version : str
        Version of bayesrisk.
    """

    measurements: str
    level: str
    query: str
    combine: bool
    prior: float
    known_count: int
    exceeds: tuple[float, ...]
    budget: str | None
    ranges: tuple[tuple[str, str], ...]
    version: str = __version__

    @property
    def shards(self) -> int:
        """Number of shards."""
        return len(self.ranges)


@dataclass(frozen=True)
class MeasurementCountsConfig(RunSettings):
    """What a run does, and to which folder.

    Attributes
    ----------
    measurements : str
        Digest of the folder's files.
    query : str
        Query whose counts are asked for.
    level, top : str
        Finest and coarsest level of the trees.
    budget : str or None
        Production budget with the exact scales of the noise.
    parts : tuple of (str, int, int)
        For each shard its unit of the top level, first cell and first cell after it.
    version : str
        Version of bayesrisk.
    """

    measurements: str
    query: str
    level: str
    top: str
    budget: str | None
    parts: tuple[tuple[str, int, int], ...]
    version: str = __version__

    @property
    def shards(self) -> int:
        """Number of shards."""
        return len(self.parts)
