"""One set of households, several protections: what the occupancy attack finds in each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.interfaces import Mechanism
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.population import population_spec, simulate_population
from bayesrisk.reconstruction import (
    HouseholdLaw,
    OccupancyDetection,
    OccupancyStatistics,
    detect_occupancy,
    household_law,
    occupancy_statistics,
    occupancy_variability,
    reconstruct_occupancy,
)
from bayesrisk.risk import MATCH_KEYS, occupancy_ranking, sampling_ranking
from bayesrisk.tables import Microdata, Records, schema, workload

__all__ = ["PROTECTIONS", "OccupancyConfig", "StudyPart", "study_part", "synthetic_households"]

#: ``das``: noise of the 2020 system's budget on census tables; ``uniform``: a budget in equal parts
#: over them; ``-hud``: HUD's tables have noise too.
PROTECTIONS = ("none", "swapping", "das", "uniform", "das-hud", "uniform-hud")
_NOISY = PROTECTIONS[2:]
_SCHEMA = "household-occupancy"
_COLUMNS = ("block", "size", "race_ethnicity", "children", "bedrooms", "subsidised")
_CENSUS = ("H13", "P15", "P16")
_HUD = ("HUD-households", "HUD-people", "HUD-race", "HUD-children", "HUD-bedrooms")
_PER_PROPERTY = 2.6  # blocks for each that has a property: the others are too small for one
#: Where streams of random numbers part.
_POPULATION, _SAMPLE, _RELEASE, _ATTACK, _BASELINE = range(5)


@dataclass(frozen=True)
class OccupancyConfig:
    """What a study of occupancy violations does.

    Attributes
    ----------
    seeds : tuple of int
        One synthetic population for each; with given households the first is the only one.
    blocks : int
        Blocks with a subsidised property in each population.
    protections : tuple of str
        Of ``PROTECTIONS``.
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
    level : float
        Level of the intervals.
    version : str
        Version of bayesrisk.
    """

    seeds: tuple[int, ...]
    blocks: int = 300
    protections: tuple[str, ...] = PROTECTIONS
    solutions: int = 100
    noisy_solutions: int = 10
    scale: float = 0.1
    swap_rate: str = "1/10"
    rho: str = "0.1"
    hud: str = "counts"
    open_end: bool = True
    sample_blocks: int = 2000
    smoothing: float = 0.5
    sampling_rate: float = 0.2
    time_limit: float | None = None
    level: float = 0.95
    version: str = __version__

    def __post_init__(self) -> None:
        """Check every setting."""
        if not isinstance(self.seeds, tuple | list):
            raise ArgumentTypeError(f"seeds must be whole numbers, got {self.seeds!r}")
        seeds = tuple(check.integer(seed, "seeds", lower=0) for seed in self.seeds)
        if not seeds or len(set(seeds)) != len(seeds):
            raise ArgumentError(f"seeds must be different, and at least one, got {self.seeds!r}")
        object.__setattr__(self, "seeds", seeds)
        if not isinstance(self.protections, tuple | list) or not self.protections:
            raise ArgumentTypeError(f"protections must be names, got {self.protections!r}")
        for name in self.protections:
            check.choice(name, "protections", PROTECTIONS)
        object.__setattr__(self, "protections", tuple(dict.fromkeys(self.protections)))
        for name in ("blocks", "solutions", "noisy_solutions", "sample_blocks"):
            check.integer(getattr(self, name), name, lower=1, upper=10**6)
        check.scalar(self.scale, "scale", lower=0.0, upper=100.0, bounds="(]")
        check.scalar(self.smoothing, "smoothing", lower=0.0, upper=1e6, bounds="(]")
        check.scalar(self.sampling_rate, "sampling_rate", lower=0.0, upper=1.0, bounds="(]")
        check.scalar(self.level, "level", lower=0.0, upper=1.0, bounds="()")
        check.choice(self.hud, "hud", ("counts", "percentages"))
        if self.time_limit is not None:
            check.scalar(self.time_limit, "time_limit", lower=0.0, bounds="(]")
        for name in self.protections:
            _mechanism(name, self)

    def rng(self, seed: int, *stream: int) -> np.random.Generator:
        """Return the generator of one stream of one population."""
        return np.random.default_rng([seed, *stream])


class StudyPart(NamedTuple):
    """What one protection of one population gives.

    ``blocks`` has a row for each block, ``rankings`` the entries of each match key,
    ``variability`` rows of blocks (without protection only).
    """

    seed: int
    protection: str
    blocks: pd.DataFrame
    rankings: Mapping[str, pd.DataFrame]
    variability: pd.DataFrame
    truth: pd.DataFrame
    realised_rate: float


def _mechanism(name: str, config: OccupancyConfig) -> Mechanism:
    """Return the mechanism of a protection."""
    if name == "none":
        return make_mechanism("identity")
    if name == "swapping":
        return make_mechanism(
            "swapping",
            rate=config.swap_rate,
            swap_key=["size", "children"],
            unique_by=["size", "race_ethnicity"],
            within="county",
            unique_within="tract",
            unit="household",
        )
    if name == "das":
        return make_mechanism("bottom-up", allocation="das-2020")
    if name == "uniform":
        return make_mechanism("bottom-up", allocation="uniform", rho=config.rho)
    from bayesrisk.accounting import exact_number

    rho = exact_number(config.rho, "rho")
    census = {
        "H13": "0.0002/3360",
        "P15": "0.0002/2",
        "P16": "0.0002/2",
    }
    total = {"H13": "7.70", "P15": "7.70", "P16": "4.96"}
    budget: dict[str, Any] = {}
    for table in _CENSUS:
        share, of = census[table].split("/")
        das = exact_number(share, table) / int(of) * exact_number(total[table], table)
        budget[table] = das if name == "das-hud" else rho / len(_CENSUS)
    whole = exact_number("7.70", "rho") if name == "das-hud" else rho
    budget |= {table: whole / len(_HUD) for table in _HUD}
    bounds = {"P16": "P1", "HUD-households": "H3"}
    return make_mechanism("bottom-up", budget=budget, exact=(), bounds=bounds)


def synthetic_households(config: OccupancyConfig, seed: int) -> tuple[Microdata, np.ndarray]:
    """Return a synthetic population and the blocks of it that are looked at."""
    wanted = int(np.ceil(config.blocks * _PER_PROPERTY)) + 50
    spec = population_spec(
        "county",
        n_blocks=wanted,
        occupied_blocks=1.0,
        quarters_blocks=0.0,
        subsidised_blocks=1.0,
    )
    population = simulate_population(spec, rng=config.rng(seed, _POPULATION))
    records = population.for_schema(schema(_SCHEMA))
    blocks = np.unique(records.geoids[records.codes("subsidised") == 1])
    if blocks.size < config.blocks:
        raise ArgumentError(
            f"blocks must be at most {blocks.size} for seed {seed}, got {config.blocks}"
        )
    return Microdata(None, records, population.blocks), blocks[: config.blocks]


def _sample_law(config: OccupancyConfig, seed: int) -> HouseholdLaw:
    """Return the law of a public sample: households of another population."""
    spec = population_spec("county", n_blocks=config.sample_blocks, occupied_blocks=1.0)
    other = simulate_population(spec, rng=config.rng(seed, _SAMPLE))
    frame = other.for_schema(schema(_SCHEMA)).to_frame()
    return household_law(frame, smoothing=config.smoothing)


def given_households(records: Records) -> tuple[Microdata, np.ndarray]:
    """Return given households, and their blocks with subsidised ones."""
    if records.schema.name == "household-dhc":
        records = Microdata(None, records, None).for_schema(schema(_SCHEMA))
    if records.schema.name != _SCHEMA:
        raise ArgumentError(
            f"households must be of schema {_SCHEMA!r}, got {records.schema.name!r}"
        )
    blocks = np.unique(records.geoids[records.codes("subsidised") == 1])
    if not blocks.size:
        raise DataError("households: must hold subsidised ones, got none")
    return Microdata(None, records, None), blocks


def study_part(
    config: OccupancyConfig,
    seed: int,
    protection: str,
    given: Records | None = None,
    sample: pd.DataFrame | None = None,
) -> StudyPart:
    """Return what one protection of one population gives."""
    made = synthetic_households(config, seed) if given is None else given_households(given)
    data, places = made
    if data.households is None:
        raise DataError("households: must hold records, got none")
    if sample is not None:
        law = household_law(sample, smoothing=config.smoothing)
    else:
        law = _sample_law(config, seed)
    stream = PROTECTIONS.index(protection)
    release = _mechanism(protection, config).release(
        data, workload=workload(_SCHEMA), rng=config.rng(seed, _RELEASE, stream)
    )
    statistics = occupancy_statistics(release.tables, hud=config.hud)
    statistics = statistics.take(np.isin(statistics.geoids, places))
    detection = detect_occupancy(statistics, open_end=config.open_end, time_limit=config.time_limit)
    truth = data.households.to_frame()[list(_COLUMNS)]
    truth = truth[truth["block"].isin(places)].reset_index(drop=True)
    truth["seed"] = seed
    rng = config.rng(seed, _ATTACK, stream)
    rankings, mean = _rankings(config, statistics, detection, law, protection, rng)
    if protection == "none":
        pick = config.rng(seed, _BASELINE).random(len(truth)) < config.sampling_rate
        for key, columns in MATCH_KEYS.items():
            rankings[f"sampling {key}"] = sampling_ranking(truth[pick], places, key=columns)
    variability = pd.DataFrame()
    if protection == "none":
        variability = _variability(config, statistics, law, seed)
    frame = detection.to_frame().assign(seed=seed, protection=protection)
    frame["reconstructed"] = frame["block"].map(mean)
    return StudyPart(
        seed,
        protection,
        frame,
        rankings,
        variability,
        truth,
        float(release.diagnostics.get("realised_rate", 0.0)),
    )


def _rankings(
    config: OccupancyConfig,
    statistics: OccupancyStatistics,
    detection: OccupancyDetection,
    law: HouseholdLaw,
    protection: str,
    rng: np.random.Generator,
) -> tuple[dict[str, pd.DataFrame], pd.Series]:
    """Return rankings, and the mean violations of reconstructions, in blocks that must hold one."""
    noisy = protection in _NOISY
    found = reconstruct_occupancy(
        statistics.take(detection.violation),
        law,
        rng=rng,
        count=config.noisy_solutions if noisy else config.solutions,
        method="perturbed",
        scale=config.scale,
        error="absolute" if noisy else "none",
        time_limit=config.time_limit,
    )
    rankings = {key: occupancy_ranking(found, key=columns) for key, columns in MATCH_KEYS.items()}
    breach = found.households * found.violation
    total = np.bincount(found.block, breach, minlength=found.geoids.size)
    with np.errstate(invalid="ignore"):
        mean = total / found.solutions
    return rankings, pd.Series(mean, index=found.geoids.astype(object))


def _variability(
    config: OccupancyConfig, statistics: OccupancyStatistics, law: HouseholdLaw, seed: int
) -> pd.DataFrame:
    """Return the variability of the most likely reconstruction of every block."""
    rng = config.rng(seed, _ATTACK, len(PROTECTIONS))
    best = reconstruct_occupancy(statistics, law, rng=rng, time_limit=config.time_limit)
    frames = [
        occupancy_variability(
            statistics, best, law, attributes=attributes, time_limit=config.time_limit
        ).to_frame()
        for attributes in ("full", "binned")
    ]
    return pd.concat(frames, ignore_index=True).assign(seed=seed)
