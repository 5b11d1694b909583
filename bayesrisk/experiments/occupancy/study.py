"""One set of households, several protections: what the occupancy attack finds in each."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.delimited import csv_bytes
from bayesrisk._files.limits import Count, Positive, Seed, choice
from bayesrisk._files.text import shown
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.accounting import exact_number
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, OutputError
from bayesrisk.experiments.runs.folder import CONFIDENTIAL, RunSettings
from bayesrisk.interfaces import Mechanism
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.population import occupancy_violation, population_spec, simulate_population
from bayesrisk.reconstruction import (
    HouseholdLaw,
    OccupancyDetection,
    OccupancyStatistics,
    detect_occupancy,
    occupancy_statistics,
    occupancy_variability,
    reconstruct_occupancy,
)
from bayesrisk.reconstruction.registry import Status
from bayesrisk.risk import MATCH_KEYS, occupancy_linkage, occupancy_ranking
from bayesrisk.risk.intervals import binomial_interval
from bayesrisk.risk.occupancy import sampling_ranking
from bayesrisk.tables import Microdata, Records, Schema, Workload
from bayesrisk.tables.microdata import OCCUPIED

# -----------------------------------------------------------------------------
# Settings of a study of occupancy violations, and the protections that it compares.


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


# -----------------------------------------------------------------------------


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


# -----------------------------------------------------------------------------
# All populations and protections of a study of occupancy violations together.


_SAMPLING = "sampling"  # the attack that knows a share of the truth, in place of a protection
_POINTS = 200  # of a curve that are kept
#: Totals over all blocks; and what has rows for a block, or for an entry of a ranking.
_TOTALS, _SINGLE = ("table", "seeds", "ends"), ("blocks", "curves", "variability")
_READINGS = {"apart": (Status.VIOLATION,), "violation": (Status.VIOLATION, Status.INFEASIBLE)}


@displayed
@dataclass(frozen=True, eq=False)
class OccupancyResults:
    """Results of a study, as frames.

    Attributes
    ----------
    config : OccupancyConfig
        What was done.
    table : pandas.DataFrame
        A row for each protection and reading of blocks without reconstruction: block counts,
        precision and recall with intervals and blind guesses, all populations together.
    seeds : pandas.DataFrame
        The same for each population.
    blocks : pandas.DataFrame
        Every block: status, violations, and mean violations of its reconstructions.
    curves : pandas.DataFrame
        Precision, recall and match rate along k, by protection, match key, and all households or
        uniques; ``sampling`` is the baseline that knows a sample of the truth.
    ends : pandas.DataFrame
        The curves at their largest k: all putative violations.
    variability : pandas.DataFrame
        Solution variability of blocks without protection, full and binned attributes.
    """

    config: OccupancyConfig
    table: pd.DataFrame
    seeds: pd.DataFrame
    blocks: pd.DataFrame
    curves: pd.DataFrame
    ends: pd.DataFrame
    variability: pd.DataFrame

    def files(self) -> dict[str, bytes]:
        """Return the frames as CSV files, by name.

        Returns
        -------
        dict of str to bytes
            Totals over all blocks (``table.csv``, ``seeds.csv``, ``ends.csv``), and below
            ``confidential/`` what has rows for a block or for an entry of a ranking
            (``blocks.csv``, ``curves.csv``, ``variability.csv``): they say where violations are.
        """
        names = {name: f"{name}.csv" for name in _TOTALS}
        names |= {name: f"{CONFIDENTIAL}/{name}.csv" for name in _SINGLE}
        return {file: csv_bytes(getattr(self, name)) for name, file in names.items()}

    def write(self, folder: str | Path) -> list[Path]:
        """Write the frames as CSV files (see :meth:`files`), and the configuration as JSON.

        Parameters
        ----------
        folder : path-like
            Output folder; it is made.  What is below ``confidential/`` only its owner may read.

        Returns
        -------
        list of pathlib.Path
            The files.

        Raises
        ------
        OutputError
            If the folder holds another study, or a file cannot be written.
        """
        path = Path(folder)
        settings = (json.dumps(self.config.to_dict(), indent=2, sort_keys=True) + "\n").encode()
        about = path / "config.json"
        with _files.explained(path):
            if about.exists() and about.read_bytes() != settings:
                raise OutputError(f"{path}: holds another study; nothing was changed")
        files = {"config.json": settings, **self.files()}
        for name, data in files.items():
            private = name.startswith(CONFIDENTIAL)
            _files.make_folder((path / name).parent, private=private)
            _files.write_bytes(path / name, data, private=private)
        return [path / name for name in files]


def pooled_results(
    config: OccupancyConfig, parts: list[StudyPart], truths: dict[int, pd.DataFrame]
) -> OccupancyResults:
    """Return what all parts, in the order of the tasks, say of the true households."""
    truth = _pooled(truths)
    breach = occupancy_violation(truth["size"], truth["bedrooms"])
    truth["breach"] = breach & (truth["subsidised"] == 1).to_numpy()
    violations = truth.groupby(["seed", "place"])["breach"].sum()
    blocks = pd.concat([part.blocks for part in parts], ignore_index=True)
    keys = pd.MultiIndex.from_arrays([blocks["seed"], blocks["block"]])
    blocks["violations"] = violations.reindex(keys, fill_value=0).to_numpy()
    by_seed, pooled = [], []
    for name in config.protections:
        own = blocks[blocks["protection"] == name]
        rates = own.groupby("seed", sort=False)["realised_rate"].first().to_dict()
        for reading in _READINGS:
            about: dict[str, Any] = {"protection": name, "infeasible_as": reading}
            mean = float(np.mean(list(rates.values())))
            pooled.append({**about, **_row(own, config.confidence, reading), "realised_rate": mean})
            for seed, rate in rates.items():
                row = _row(own[own["seed"] == seed], config.confidence, reading)
                by_seed.append({**about, "seed": seed, **row, "realised_rate": rate})
    attacks = [
        part.rankings.assign(protection=name)
        for (_, name), part in zip(config.tasks, parts, strict=True)
    ]
    attacks += [
        sampled_rankings(config, seed, homes).assign(protection=_SAMPLING)
        for seed, homes in truths.items()
    ]
    curves, ends = _curves(config, pd.concat(attacks, ignore_index=True), truth)
    variability = pd.concat([part.variability for part in parts], ignore_index=True)
    return OccupancyResults(
        config,
        pd.DataFrame(pooled),
        pd.DataFrame(by_seed),
        _first(blocks.drop(columns="realised_rate"), "seed", "protection", "block"),
        curves,
        ends,
        variability,
    )


def _first(frame: pd.DataFrame, *names: str) -> pd.DataFrame:
    return frame[[*names, *(c for c in frame.columns if c not in names)]]


def _row(blocks: pd.DataFrame, confidence: float, reading: str) -> dict[str, Any]:
    """Return the counts of a set of blocks, and precision and recall with their intervals."""
    said = blocks["status"].isin(_READINGS[reading]).to_numpy()
    true = blocks["violations"].to_numpy() > 0
    n, violating, putative = len(blocks), int(true.sum()), int(said.sum())
    confirmed = int((said & true).sum())
    row: dict[str, Any] = {
        "blocks": n,
        "violating": violating,
        "putative": putative,
        "confirmed": confirmed,
        "infeasible": int((blocks["status"] == Status.INFEASIBLE).sum()),
        "undecided": int((blocks["status"] == Status.UNDECIDED).sum()),
    }
    for name, of, blind in (("precision", putative, violating), ("recall", violating, putative)):
        low, high = binomial_interval(confirmed, of, confidence=confidence)
        row[name] = confirmed / of if of else np.nan
        row[f"{name}_lower"], row[f"{name}_upper"] = float(low), float(high)
        row[f"{name}_baseline"] = blind / n
    return row


def _names(seed: Any, block: pd.Series) -> pd.Series:
    """Return names that tell blocks of several populations apart."""
    return pd.Series(seed, index=block.index).astype("str") + ":" + block.astype("str")


def _pooled(truths: dict[int, pd.DataFrame]) -> pd.DataFrame:
    """Return households of several populations; ``place`` is the block in its own."""
    found = [
        frame.assign(seed=seed, place=frame["block"], block=_names(seed, frame["block"]))
        for seed, frame in truths.items()
    ]
    return pd.concat(found, ignore_index=True)


def _curves(
    config: OccupancyConfig, rankings: pd.DataFrame, truth: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return precision and recall along k of all populations together, and where they end."""
    rankings = rankings.assign(block=_names(rankings["seed"], rankings["block"]))
    curves, ends = [], []
    for name in (*config.protections, _SAMPLING):
        for key, columns in MATCH_KEYS.items():
            own = rankings[(rankings["protection"] == name) & (rankings["ranking"] == key)]
            ranking = own.astype(dict.fromkeys(columns, np.int64)).reset_index(drop=True)
            for unique in (False, True):
                curve = occupancy_linkage(
                    ranking, truth, key=columns, unique=unique, confidence=config.confidence
                )
                about = {"protection": name, "key": key, "unique": unique}
                frame = _first(curve.to_frame().assign(**about), *about)
                kept = np.unique(np.linspace(0, len(frame) - 1, _POINTS).astype(int))
                curves.append(frame.iloc[kept[kept >= 0]] if len(frame) else frame)
                ends.append(frame.iloc[-1:])
    return pd.concat(curves, ignore_index=True), pd.concat(ends, ignore_index=True)
