"""Settings of a study of occupancy violations, and the protections that it compares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from bayesrisk import _validation as check
from bayesrisk._files.limits import Count, Positive, Seed, choice
from bayesrisk._files.parse import shown
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.accounting import exact_number
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.experiments.runs.config import RunSettings
from bayesrisk.interfaces import Mechanism
from bayesrisk.mechanisms import make_mechanism

#: The reading of the paper that the study repeats, sigma2 = 1 / budget in every table: it spends
#: more than its budget on tables of people and children (see ``BottomUp``).
PAPER = "steed-2024"
#: ``das``: noise of the 2020 system's budget on census tables; ``uniform``: a budget in equal parts
#: over them; ``-hud``: HUD's tables have noise too.
PROTECTIONS = ("none", "swapping", "das", "uniform", "das-hud", "uniform-hud")
NOISY = PROTECTIONS[2:]
#: What reports call them.
PROTECTION_WORDS = {
    "none": "no protection",
    "swapping": "swapping",
    "das": "noise of the 2020 system's budget",
    "uniform": "noise of a uniform budget",
    "das-hud": "noise of the 2020 system's budget, also in HUD's tables",
    "uniform-hud": "noise of a uniform budget, also in HUD's tables",
}
#: Stands for households, or a sample, that nobody gave.
SYNTHETIC = "synthetic"
_CENSUS = ("H13", "P15", "P16")
_HUD = ("HUD-households", "HUD-people", "HUD-race", "HUD-children", "HUD-bedrooms")


@displayed
@dataclass(frozen=True)
class OccupancyConfig(RunSettings):
    """What a study of occupancy violations does.

    Attributes
    ----------
    seeds : tuple of int
        One synthetic population for each; with given households the first is the only one.
    blocks : int
        Blocks with a subsidised property in each population.
    protections : tuple of str
        Of ``PROTECTIONS``.
    alpha : float
        Weight of a violation where synthetic households get their bedrooms, in (0, 1]: the larger,
        the more violations.
    solutions, noisy_solutions : int
        Reconstructions of a block, from exact and from noisy tables.
    scale : float
        Noise of the objectives of reconstructions, in nats.
    swap_rate : str
        Share of households that are swapped.
    rho : str
        Budget of ``uniform``.
    hud : str
        How HUD's tables are read: ``counts`` or ``percentages``.
    open_end : bool
        Whether households of 7 people or more can be of any size, in detection.
    sample_blocks : int
        Blocks of the other synthetic population that the public sample of households is from.
    smoothing : float
        Households of every kind that are added to the sample.
    sampling_rate : float
        Share of the truth that the sampling attack knows.
    time_limit : float or None
        Seconds for a block.
    confidence : float
        Confidence of the intervals, between 0 and 1.
    households, sample : str
        ``synthetic``, or the digest of those given; set by :class:`OccupancyStudy`.
    parts : int
        Parts of households by place, else 1; set by :class:`OccupancyStudy`.
    version : str
        Version of bayesrisk.
    """

    seeds: tuple[Seed, ...]
    blocks: Count = 300
    protections: tuple[Annotated[str, choice(PROTECTIONS)], ...] = PROTECTIONS
    alpha: Positive = 1e-4
    solutions: Count = 100
    noisy_solutions: Count = 10
    scale: Positive = 0.1
    swap_rate: str = "1/10"
    rho: str = "0.1"
    hud: str = "counts"
    open_end: bool = True
    sample_blocks: Count = 2000
    smoothing: Positive = 0.5
    sampling_rate: Positive = 0.2
    time_limit: Positive | None = None
    confidence: Positive = 0.95
    households: str = SYNTHETIC
    sample: str = SYNTHETIC
    parts: Count = 1
    version: str = __version__

    def __post_init__(self) -> None:
        """Check every setting."""
        if not isinstance(self.seeds, tuple | list):
            raise ArgumentTypeError(f"seeds must be whole numbers, got {shown(self.seeds)}")
        seeds = tuple(check.integer(seed, "seeds", lower=0) for seed in self.seeds)
        if not seeds or len(set(seeds)) != len(seeds):
            raise ArgumentError(
                f"seeds must be different, and at least one, got {shown(self.seeds)}"
            )
        object.__setattr__(self, "seeds", seeds)
        if not isinstance(self.protections, tuple | list) or not self.protections:
            raise ArgumentTypeError(f"protections must be names, got {shown(self.protections)}")
        for name in self.protections:
            check.choice(name, "protections", PROTECTIONS)
        object.__setattr__(self, "protections", tuple(dict.fromkeys(self.protections)))
        for name in ("blocks", "solutions", "noisy_solutions", "sample_blocks"):
            check.integer(getattr(self, name), name, lower=1, upper=10**6)
        check.scalar(self.alpha, "alpha", lower=0.0, upper=1.0, bounds="(]")
        check.scalar(self.scale, "scale", lower=0.0, upper=100.0, bounds="(]")
        check.scalar(self.smoothing, "smoothing", lower=0.0, upper=1e6, bounds="(]")
        check.scalar(self.sampling_rate, "sampling_rate", lower=0.0, upper=1.0, bounds="(]")
        if not 0 <= exact_number(self.swap_rate, "swap_rate") <= 1:
            raise ArgumentError(f"swap_rate must be in [0, 1], got {shown(self.swap_rate)}")
        check.scalar(self.confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
        check.choice(self.hud, "hud", ("counts", "percentages"))
        if self.time_limit is not None:
            check.scalar(self.time_limit, "time_limit", lower=0.0, bounds="(]")
        for name in self.protections:
            self.mechanism(name)

    def rng(self, seed: int, *stream: int) -> np.random.Generator:
        """Return the generator of one stream of one population."""
        return np.random.default_rng([seed, *stream])

    @property
    def tasks(self) -> list[tuple[int, str]]:
        """Population and protection of every shard, or of as many as there are parts."""
        return [(seed, name) for seed in self.seeds for name in self.protections]

    @property
    def shards(self) -> int:
        """Number of shards."""
        return len(self.tasks) * self.parts

    def mechanism(self, protection: str) -> Mechanism:
        """Return the mechanism of a protection."""
        if protection == "none":
            return make_mechanism("identity")
        if protection == "swapping":
            return make_mechanism(
                "swapping",
                rate=self.swap_rate,
                swap_key=["size", "children"],
                unique_by=["size", "race_ethnicity"],
                within="county",
                unique_within="tract",
                unit="household",
            )
        if protection == "das":
            return make_mechanism("bottom-up", sensitivity=PAPER, allocation="das-2020")
        if protection == "uniform":
            return make_mechanism(
                "bottom-up", sensitivity=PAPER, allocation="uniform", rho=self.rho
            )
        rho = exact_number(self.rho, "rho")
        census = {"H13": "0.0002/3360", "P15": "0.0002/2", "P16": "0.0002/2"}
        total = {"H13": "7.70", "P15": "7.70", "P16": "4.96"}
        budget: dict[str, Any] = {}
        for table in _CENSUS:
            share, of = census[table].split("/")
            das = exact_number(share, table) / int(of) * exact_number(total[table], table)
            budget[table] = das if protection == "das-hud" else rho / len(_CENSUS)
        whole = exact_number("7.70", "rho") if protection == "das-hud" else rho
        budget |= {table: whole / len(_HUD) for table in _HUD}
        bounds = {"P16": "P1", "HUD-households": "H3"}
        return make_mechanism(
            "bottom-up", sensitivity=PAPER, budget=budget, exact=(), bounds=bounds
        )
