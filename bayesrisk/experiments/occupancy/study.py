"""One set of households, several protections: what the occupancy attack finds in each."""

import functools
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.experiments.occupancy.config import NOISY, PROTECTIONS, OccupancyConfig
from bayesrisk.population import population_spec, simulate_population
from bayesrisk.reconstruction import (
    HouseholdLaw,
    OccupancyDetection,
    OccupancyStatistics,
    detect_occupancy,
    occupancy_statistics,
    occupancy_variability,
    reconstruct_occupancy,
)
from bayesrisk.risk import MATCH_KEYS, occupancy_ranking, sampling_ranking
from bayesrisk.tables import Microdata, Records, Schema, Workload
from bayesrisk.tables.microdata import OCCUPIED

SCHEMA = "household-occupancy"
_COLUMNS = ("block", "size", "race_ethnicity", "children", "bedrooms", "subsidised")
_PER_PROPERTY = 2.6  # blocks for each that has a property: the others are too small for one
#: Where streams of random numbers part.
_POPULATION, _SAMPLE, _RELEASE, _ATTACK, _BASELINE = range(5)


class StudyPart(NamedTuple):
    """What one protection of one population gives; nothing of the truth but the swap rate.

    ``blocks`` has a row for each block, with the number of households that were protected together,
    ``rankings`` the entries of every ranking by its name,
    ``variability`` rows of blocks (without protection only).
    """

    blocks: pd.DataFrame
    rankings: pd.DataFrame
    variability: pd.DataFrame


def synthetic_households(config: OccupancyConfig, seed: int) -> tuple[Microdata, np.ndarray]:
    """Return a synthetic population and the blocks of it that are looked at."""
    wanted = int(np.ceil(config.blocks * _PER_PROPERTY)) + 50
    spec = population_spec(
        "county",
        n_blocks=wanted,
        occupied_blocks=1.0,
        quarters_blocks=0.0,
        subsidised_blocks=1.0,
        alpha=config.alpha,
    )
    population = simulate_population(spec, rng=config.rng(seed, _POPULATION))
    records = population.for_schema(Schema.named(SCHEMA))
    blocks = np.unique(records.geoids[records.codes("subsidised") == 1])
    if blocks.size < config.blocks:
        raise ArgumentError(
            f"blocks must be at most {blocks.size} for seed {seed}, got {config.blocks}"
        )
    return Microdata(None, records, population.blocks), blocks[: config.blocks]


@functools.lru_cache(maxsize=1)
def _sample_law(config: OccupancyConfig, seed: int) -> HouseholdLaw:
    """Return the law of a public sample: households of another population."""
    spec = population_spec("county", n_blocks=config.sample_blocks, occupied_blocks=1.0)
    other = simulate_population(spec, rng=config.rng(seed, _SAMPLE))
    frame = other.for_schema(Schema.named(SCHEMA)).to_frame()
    return HouseholdLaw.from_sample(frame, smoothing=config.smoothing)


def given_households(records: Records) -> tuple[Microdata, np.ndarray]:
    """Return given households, and their blocks with subsidised ones, if there are any."""
    if records.schema.name == "household-dhc":
        records = Microdata(None, records, None).for_schema(Schema.named(SCHEMA))
    if records.schema.name != SCHEMA:
        raise ArgumentError(
            f"households must be of schema {SCHEMA!r}, got {shown(records.schema.name)}"
        )
    blocks = np.unique(records.geoids[records.codes("subsidised") == 1])
    return Microdata(None, records, None), blocks


def true_households(
    config: OccupancyConfig, seed: int, given: Records | None
) -> tuple[Microdata, np.ndarray, pd.DataFrame]:
    """Return confidential data, the blocks that are looked at, and the households in them."""
    data, places = synthetic_households(config, seed) if given is None else given_households(given)
    if data.households is None:
        raise DataError("households: must hold records, got none")
    truth = data.households.to_frame()[list(_COLUMNS)]
    truth = truth[truth["block"].isin(places)].reset_index(drop=True)
    return data, places, truth


def study_part(
    config: OccupancyConfig,
    seed: int,
    protection: str,
    given: Records | None = None,
    sample: pd.DataFrame | None = None,
    *,
    place: str = "",
) -> StudyPart:
    """Return what one protection of one population gives, or of the households of one place.

    A place has random numbers of its own, whatever other places there are.
    """
    data, places, truth = true_households(config, seed, given)
    if truth.empty:
        return StudyPart(pd.DataFrame(), pd.DataFrame(), pd.DataFrame())
    if sample is not None:
        law = HouseholdLaw.from_sample(sample, smoothing=config.smoothing)
    else:
        law = _sample_law(config, seed)
    own = [int(place)] if place else []
    stream = PROTECTIONS.index(protection)
    listed = data if data.blocks is not None else data.with_places(OCCUPIED)
    release = config.mechanism(protection).release(
        listed, workload=Workload.named(SCHEMA), rng=config.rng(seed, _RELEASE, stream, *own)
    )
    # The attack takes what is published as true: how often that misleads is what is measured.
    statistics = occupancy_statistics(release.tables, hud=config.hud, taken_as_true=True)
    statistics = statistics.take(np.isin(statistics.geoids, places))
    detection = detect_occupancy(statistics, open_end=config.open_end, time_limit=config.time_limit)
    rng = config.rng(seed, _ATTACK, stream, *own)
    rankings, mean = _rankings(config, statistics, detection, law, protection, rng)
    variability = pd.DataFrame()
    if protection == "none":
        rng = config.rng(seed, _ATTACK, len(PROTECTIONS), *own)
        variability = _variability(config, statistics, law, rng).assign(seed=seed)
    frame = detection.to_frame().assign(seed=seed, protection=protection)
    frame["reconstructed"] = frame["block"].map(mean).astype(float)
    frame["protected"] = 0 if data.households is None else len(data.households)
    frame["realised_rate"] = float(release.diagnostics.get("realised_rate", 0.0))
    return StudyPart(frame, _together(rankings).assign(seed=seed), variability)


def sampled_rankings(config: OccupancyConfig, seed: int, truth: pd.DataFrame) -> pd.DataFrame:
    """Return the rankings of the sampling attack, which knows a share of the truth."""
    pick = config.rng(seed, _BASELINE).random(len(truth)) < config.sampling_rate
    places = np.unique(truth["block"].to_numpy(dtype=str))
    rankings = [
        sampling_ranking(truth[pick], places, key=columns).assign(ranking=key)
        for key, columns in MATCH_KEYS.items()
    ]
    return _together(rankings).assign(seed=seed)


def _together(rankings: list[pd.DataFrame]) -> pd.DataFrame:
    """Return rankings by different columns as one frame: columns that one lacks are missing."""
    names = dict.fromkeys(name for columns in MATCH_KEYS.values() for name in columns)
    whole = [r.astype({n: "Int64" for n in names if n in r}) for r in rankings]
    frame = pd.concat(whole, ignore_index=True)
    return frame[["ranking", "block", *names, "score"]]


def _rankings(
    config: OccupancyConfig,
    statistics: OccupancyStatistics,
    detection: OccupancyDetection,
    law: HouseholdLaw,
    protection: str,
    rng: np.random.Generator,
) -> tuple[list[pd.DataFrame], pd.Series]:
    """Return rankings, and the mean violations of reconstructions, in blocks that must hold one."""
    noisy = protection in NOISY
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
    rankings = [
        occupancy_ranking(found, key=columns).assign(ranking=key)
        for key, columns in MATCH_KEYS.items()
    ]
    breach = found.households * found.violation
    total = np.bincount(found.block, breach, minlength=found.geoids.size)
    with np.errstate(invalid="ignore"):
        mean = total / found.solutions
    return rankings, pd.Series(mean, index=found.geoids.astype(object))


def _variability(
    config: OccupancyConfig,
    statistics: OccupancyStatistics,
    law: HouseholdLaw,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Return the variability of the most likely reconstruction of every block."""
    best = reconstruct_occupancy(statistics, law, rng=rng, time_limit=config.time_limit)
    frames = [
        occupancy_variability(
            statistics, best, law, attributes=attributes, time_limit=config.time_limit
        ).to_frame()
        for attributes in ("full", "binned")
    ]
    return pd.concat(frames, ignore_index=True)
