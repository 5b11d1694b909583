"""The occupancy attack on several protections of the same households, and judged.

Shards are a protection of a population, or of a place of households by place; all together make
rates with intervals and blind guesses, figures and a page (Steed, Qing and Wu 2024, section 4).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk import _validation as check
from bayesrisk._files.delimited import csv_bytes
from bayesrisk._files.text import shown
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.accounting.budget import exact_number
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.experiments.by_place import (
    check_reach,
    forget_index,
    level_of_parts,
    open_index,
    read_place,
)
from bayesrisk.experiments.occupancy_attack import SCHEMA
from bayesrisk.experiments.runs.engine import Study
from bayesrisk.experiments.runs.folder import (
    CONFIDENTIAL,
    Layout,
    RunFolder,
    arrow_table,
)
from bayesrisk.interfaces import Mechanism
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.population import occupancy_violation, population_spec, simulate_population
from bayesrisk.reconstruction import (
    HouseholdLaw,
    detect_occupancy,
    occupancy_statistics,
    occupancy_variability,
    reconstruct_occupancy,
)
from bayesrisk.reconstruction.occupancy.detection import OccupancyDetection
from bayesrisk.reconstruction.occupancy.statistics import OccupancyStatistics
from bayesrisk.reconstruction.registry import Status
from bayesrisk.risk import occupancy_linkage, occupancy_ranking
from bayesrisk.risk.intervals import binomial_interval
from bayesrisk.risk.occupancy import MATCH_KEYS, sampling_ranking
from bayesrisk.tables import Microdata, Records, Schema, Workload
from bayesrisk.tables.microdata import OCCUPIED

#: The reading of the paper that the study repeats, sigma2 = 1 / budget in every table: it spends
#: more than its budget on tables of people and children (see ``BottomUp``).
_PAPER = "steed-2024"
#: Protections, and their names in reports.  ``das``: noise of the 2020 system's budget on census
#: tables; ``uniform``: a budget in equal parts over them; ``-hud``: HUD's tables have noise too.
PROTECTION_WORDS = {
    "none": "no protection",
    "swapping": "swapping",
    "das": "noise of the 2020 system's budget",
    "uniform": "noise of a uniform budget",
    "das-hud": "noise of the 2020 system's budget, also in HUD's tables",
    "uniform-hud": "noise of a uniform budget, also in HUD's tables",
}
PROTECTIONS = tuple(PROTECTION_WORDS)
_NOISY = PROTECTIONS[2:]
_SYNTHETIC = "synthetic"  # stands for households, or a sample, that nobody gave
#: Budgets of census tables in the 2020 system: share, its parts, and the total of the unit.
_CENSUS = {
    "H13": ("0.0002", 3360, "7.70"),
    "P15": ("0.0002", 2, "7.70"),
    "P16": ("0.0002", 2, "4.96"),
}
_HUD = ("HUD-households", "HUD-people", "HUD-race", "HUD-children", "HUD-bedrooms")
_COLUMNS = ("block", "size", "race_ethnicity", "children", "bedrooms", "subsidised")
_PER_PROPERTY = 2.6  # blocks for each that has a property: the others are too small for one
#: Where streams of random numbers part.
_POPULATION, _SAMPLE, _RELEASE, _ATTACK, _BASELINE = range(5)
_SAMPLING = "sampling"  # the attack that knows a share of the truth, in place of a protection
_POINTS = 200  # of a curve that are kept
#: Totals over all blocks; and frames with rows for a block, or for an entry of a ranking.
_TOTALS, _SINGLE = ("table", "seeds", "ends"), ("blocks", "curves", "variability")
_READINGS = {"apart": (Status.VIOLATION,), "violation": (Status.VIOLATION, Status.INFEASIBLE)}
#: Real settings, and their ranges.
_RANGES = {
    "alpha": (1.0, "(]"),
    "scale": (100.0, "(]"),
    "smoothing": (1e6, "(]"),
    "sampling_rate": (1.0, "(]"),
    "confidence": (1.0, "()"),
}


@displayed
@dataclass(frozen=True)
class OccupancyConfig:
    """Settings of a study of occupancy violations.

    Attributes
    ----------
    seeds : tuple of int
        One synthetic population for each; with given households the first is the only one.
    blocks : int
        Blocks with a subsidised property in each population.
    protections : tuple of str
        ``none``, ``swapping``, ``das``, ``uniform``, ``das-hud``, ``uniform-hud``.
    alpha : float
        Weight of a violation where synthetic households get their bedrooms, in (0, 1]: the larger,
        the more violations.
    solutions, noisy_solutions : int
        Reconstructions of a block, from exact and from noisy tables.
    scale : float
        Noise of the objectives of reconstructions, in nats.
    swap_rate, rho : str
        Share of households that are swapped, and budget of ``uniform``.
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
    """

    seeds: tuple[int, ...]
    blocks: int = 300
    protections: tuple[str, ...] = PROTECTIONS
    alpha: float = 1e-4
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
    confidence: float = 0.95

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
        for name, (upper, bounds) in _RANGES.items():
            check.scalar(getattr(self, name), name, lower=0.0, upper=upper, bounds=bounds)
        if not 0 <= exact_number(self.swap_rate, "swap_rate") <= 1:
            raise ArgumentError(f"swap_rate must be in [0, 1], got {shown(self.swap_rate)}")
        check.choice(self.hud, "hud", ("counts", "percentages"))
        if self.time_limit is not None:
            check.scalar(self.time_limit, "time_limit", lower=0.0, bounds="(]")
        for name in self.protections:
            self.mechanism(name)

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
        noise = functools.partial(make_mechanism, "bottom-up", sensitivity=_PAPER)
        if protection == "das":
            return noise(allocation="das-2020")
        if protection == "uniform":
            return noise(allocation="uniform", rho=self.rho)
        total = exact_number("7.70" if protection == "das-hud" else self.rho, "rho")
        budget: dict[str, Any] = dict.fromkeys(_CENSUS, total / len(_CENSUS))
        if protection == "das-hud":
            for table, (share, parts, whole) in _CENSUS.items():
                budget[table] = exact_number(share) / parts * exact_number(whole)
        budget |= dict.fromkeys(_HUD, total / len(_HUD))
        return noise(budget=budget, exact=(), bounds={"P16": "P1", "HUD-households": "H3"})


def _rng(seed: int, *stream: int) -> np.random.Generator:
    """Return the generator of one stream of one population."""
    return np.random.default_rng([seed, *stream])


class StudyPart(NamedTuple):
    """Findings under one protection of one population; nothing of the truth but the swap rate.

    Rows of blocks, with the number of households that were protected together; entries of every
    ranking; and, without protection only, the variability of blocks.
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
    population = simulate_population(spec, rng=_rng(seed, _POPULATION))
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
    other = simulate_population(spec, rng=_rng(seed, _SAMPLE))
    frame = other.for_schema(Schema.named(SCHEMA)).to_frame()
    return HouseholdLaw.from_sample(frame, smoothing=config.smoothing)


def true_households(
    config: OccupancyConfig, seed: int, given: Records | None
) -> tuple[Microdata, np.ndarray, pd.DataFrame]:
    """Return confidential data, the blocks that are looked at, and the households in them."""
    if given is None:
        data, places = synthetic_households(config, seed)
    else:
        if given.schema.name == "household-dhc":
            given = Microdata(None, given, None).for_schema(Schema.named(SCHEMA))
        if given.schema.name != SCHEMA:
            raise ArgumentError(
                f"households must be of schema {SCHEMA!r}, got {shown(given.schema.name)}"
            )
        data = Microdata(None, given, None)
        places = np.unique(given.geoids[given.codes("subsidised") == 1])
    if data.households is None:
        raise DataError("households: must hold records, got none")
    truth = data.households.to_frame()[list(_COLUMNS)]
    return data, places, truth[truth["block"].isin(places)].reset_index(drop=True)


def study_part(
    config: OccupancyConfig,
    seed: int,
    protection: str,
    given: Records | None = None,
    sample: pd.DataFrame | None = None,
    *,
    place: str = "",
) -> StudyPart:
    """Return the findings under one protection of one population, or of households of one place.

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
        listed, workload=Workload.named(SCHEMA), rng=_rng(seed, _RELEASE, stream, *own)
    )
    # The attack takes published counts as true: the study measures how often that misleads.
    statistics = occupancy_statistics(release.tables, hud=config.hud, taken_as_true=True)
    statistics = statistics.take(np.isin(statistics.geoids, places))
    detection = detect_occupancy(statistics, open_end=config.open_end, time_limit=config.time_limit)
    rng = _rng(seed, _ATTACK, stream, *own)
    rankings, mean = _rankings(config, statistics, detection, law, protection, rng)
    variability = pd.DataFrame()
    if protection == "none":
        rng = _rng(seed, _ATTACK, len(PROTECTIONS), *own)
        variability = _variability(config, statistics, law, rng).assign(seed=seed)
    frame = detection.to_frame().assign(seed=seed, protection=protection)
    frame["reconstructed"] = frame["block"].map(mean).astype(float)
    frame["protected"] = 0 if data.households is None else len(data.households)
    frame["realised_rate"] = float(release.diagnostics.get("realised_rate", 0.0))
    return StudyPart(frame, _together(rankings).assign(seed=seed), variability)


def _sampled_rankings(config: OccupancyConfig, seed: int, truth: pd.DataFrame) -> pd.DataFrame:
    """Return the rankings of the sampling attack, which knows a share of the truth."""
    pick = _rng(seed, _BASELINE).random(len(truth)) < config.sampling_rate
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
    noisy = protection in _NOISY
    made = reconstruct_occupancy(
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
        occupancy_ranking(made, key=columns).assign(ranking=key)
        for key, columns in MATCH_KEYS.items()
    ]
    breach = made.households * made.violation
    total = np.bincount(made.block, breach, minlength=made.geoids.size)
    with np.errstate(invalid="ignore"):
        mean = total / made.solutions
    return rankings, pd.Series(mean, index=made.geoids.astype(object))


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


@displayed
@dataclass(frozen=True, eq=False)
class OccupancyResults:
    """Results of a study, as frames.

    Attributes
    ----------
    config : dict
        Settings, digests of the inputs, and number of ``parts``.
    table, seeds : pandas.DataFrame
        A row for each protection and reading of blocks without reconstruction: block counts,
        precision and recall with intervals and blind guesses, of all populations and of each.
    blocks : pandas.DataFrame
        Every block: status, violations, and mean violations of its reconstructions.
    curves, ends : pandas.DataFrame
        Precision, recall and match rate along k, by protection, match key, and all households or
        uniques, and at the largest k; ``sampling`` is the baseline that knows a sample of the
        truth.
    variability : pandas.DataFrame
        Solution variability of blocks without protection, full and binned attributes.
    """

    config: Mapping[str, Any]
    table: pd.DataFrame
    seeds: pd.DataFrame
    blocks: pd.DataFrame
    curves: pd.DataFrame
    ends: pd.DataFrame
    variability: pd.DataFrame


def pooled_results(
    config: OccupancyConfig,
    parts: Mapping[tuple[int, str], StudyPart],
    truths: Mapping[int, pd.DataFrame],
) -> dict[str, pd.DataFrame]:
    """Return the frames of all parts, by population and protection, against the true households."""
    truth = pd.concat(
        (
            frame.assign(seed=seed, place=frame["block"], block=_names(seed, frame["block"]))
            for seed, frame in truths.items()
        ),
        ignore_index=True,
    )
    breach = occupancy_violation(truth["size"], truth["bedrooms"])
    truth["breach"] = breach & (truth["subsidised"] == 1).to_numpy()
    violations = truth.groupby(["seed", "place"])["breach"].sum()
    blocks = pd.concat([part.blocks for part in parts.values()], ignore_index=True)
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
    attacks = [part.rankings.assign(protection=name) for (_, name), part in parts.items()]
    attacks += [
        _sampled_rankings(config, seed, homes).assign(protection=_SAMPLING)
        for seed, homes in truths.items()
    ]
    curves, ends = _curves(config, pd.concat(attacks, ignore_index=True), truth)
    return {
        "table": pd.DataFrame(pooled),
        "seeds": pd.DataFrame(by_seed),
        "blocks": _first(blocks.drop(columns="realised_rate"), "seed", "protection", "block"),
        "curves": curves,
        "ends": ends,
        "variability": pd.concat([p.variability for p in parts.values()], ignore_index=True),
    }


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
    for name, trials, blind in (
        ("precision", putative, violating),
        ("recall", violating, putative),
    ):
        low, high = binomial_interval(confirmed, trials, confidence=confidence)
        row[name] = confirmed / trials if trials else np.nan
        row[f"{name}_lower"], row[f"{name}_upper"] = float(low), float(high)
        row[f"{name}_baseline"] = blind / n
    return row


def _names(seed: Any, block: pd.Series) -> pd.Series:
    """Return names that tell blocks of several populations apart."""
    return pd.Series(seed, index=block.index).astype("str") + ":" + block.astype("str")


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


# -----------------------------------------------------------------------------
# The study: parts in shards, and the results of all.


@dataclass(frozen=True, eq=False)
class OccupancyStudy(Study):
    """The attack on several protections of the same households, judged; for :func:`~bayesrisk.run`.

    The fact ``results`` of a complete run is an :class:`OccupancyResults`.  In the folder, rows of
    single blocks, and what adversaries find in tables without protection, are below
    ``confidential/``, which only its owner may read.

    Parameters
    ----------
    settings : OccupancyConfig
        What to do.
    households : Records or path-like, optional
        Confidential households of schema ``household-occupancy`` (or ``household-dhc`` with
        columns ``children``, ``bedrooms`` and ``subsidised``) instead of synthetic ones; or a
        folder of microdata by place with them.
    sample : pandas.DataFrame, optional
        Public sample of households, for :meth:`HouseholdLaw.from_sample`; a synthetic one by
        default.

    Raises
    ------
    ArgumentError
        When it runs: if a protection needs more than the households of a part.
    DataError
        When it runs: if households lack a column or none is subsidised, or a folder is damaged.

    Notes
    -----
    Of a folder by place a shard is one protection of one part, which is protected and attacked by
    itself, with random numbers that its code chooses; the rate of swaps is that of each part.
    Statements that are certain are the same as of all households at once.  Memory: one part in
    every worker; and to judge them all, the households of blocks with subsidised ones, and the
    findings there.

    References
    ----------
    Steed, Qing and Wu (2024, arXiv:2407.04776), section 4.

    Examples
    --------
    >>> config = OccupancyConfig(seeds=(1,), blocks=10, protections=("none",), solutions=2,
    ...                          sample_blocks=200)
    >>> results = OccupancyStudy(config).in_memory()
    >>> results.table[["protection", "blocks"]].values.tolist()[0]
    ['none', 10]
    """

    settings: OccupancyConfig
    _: KW_ONLY
    households: Records | str | Path | None = None
    sample: pd.DataFrame | None = None

    layout = Layout(
        "study of occupancy",
        kinds=("rankings", "variability", "blocks"),
        # They are found in tables as exact as the confidential records, for comparison.
        parts=f"{CONFIDENTIAL}/parts",
    )

    def __post_init__(self) -> None:
        """Check the types."""
        check.instance(self.settings, OccupancyConfig, "settings")
        if not isinstance(self.households, Records | str | Path | None):
            raise ArgumentTypeError(
                "households must be Records or a folder of microdata by place, got "
                f"{type(self.households).__name__}"
            )
        if self.sample is not None:
            check.frame(self.sample, "sample", ("size", "race_ethnicity", "children"))

    @functools.cached_property
    def config(self) -> Mapping[str, Any]:
        """The settings, digests of households and sample, and the number of parts."""
        settings, homes = self.settings, self.households
        digest, parts = _SYNTHETIC, 1
        if isinstance(homes, str | Path):
            index, workload = open_index(homes), Workload.named(SCHEMA)
            digest, parts = index.digest, len(index.codes)
            level = level_of_parts(index, workload)
            advice = "make larger parts, or give all households in one file"
            for name in settings.protections:
                check_reach(settings.mechanism(name), workload, level, whole=advice)
        elif homes is not None:
            digest = _frame_digest(homes.to_frame())
        seeds = settings.seeds if homes is None else settings.seeds[:1]
        for seed in seeds:
            places = (self._place(number, digest)[1] for number in range(parts))
            truths = [true_households(settings, seed, records)[2] for records in places]
            truths = [truth for truth in truths if len(truth)]
            if not truths:
                given = homes if isinstance(homes, str | Path) else "households"
                raise DataError(f"{given}: must hold subsidised households, got none")
            self._truths[seed] = pd.concat(truths, ignore_index=True)
        return {
            **asdict(settings),
            "seeds": seeds,
            "households": digest,
            "sample": _SYNTHETIC if self.sample is None else _frame_digest(self.sample),
            "parts": parts,
            "shards": len(seeds) * len(settings.protections) * parts,
            "version": __version__,
        }

    @property
    def _tasks(self) -> list[tuple[int, str]]:
        """Population and protection of every shard, or of as many as there are parts."""
        return [(seed, name) for seed in self.config["seeds"] for name in self.settings.protections]

    def _place(self, number: int, digest: str) -> tuple[str, Records | None]:
        """Return code and households of a place; whole data are one place without a code."""
        homes = self.households
        if not isinstance(homes, str | Path):
            return "", homes
        code, data = read_place(homes, number, digest)
        if data.households is None:
            raise DataError(f"{homes}: part {code} must hold households, got persons only")
        return code, data.households

    @functools.cached_property
    def _truths(self) -> dict[int, pd.DataFrame]:
        """Households of the blocks that are looked at, by population: not for workers."""
        return {}

    @functools.cached_property
    def _results(self) -> dict[str, OccupancyResults]:
        """Results by folder, from the making of files to the summary: not for workers."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes that a worker needs."""
        own = {"_truths", "_results"}
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return the findings under one protection of one population, or of one place."""
        task, number = divmod(shard, self.config["parts"])
        place, homes = self._place(number, self.config["households"])
        seed, protection = self._tasks[task]
        part = study_part(self.settings, seed, protection, homes, self.sample, place=place)
        return {kind: arrow_table(getattr(part, kind)) for kind in self.layout.kinds}

    def results(self, folder: RunFolder) -> Mapping[str, bytes]:
        """Return the frames as CSV files; those with rows of blocks or households in private."""
        self._results[str(folder.path)] = results = self._judged(folder)
        names = {name: f"{name}.csv" for name in _TOTALS}
        names |= {name: f"{CONFIDENTIAL}/{name}.csv" for name in _SINGLE}
        return {file: csv_bytes(getattr(results, name)) for name, file in names.items()}

    def facts(self, folder: RunFolder, *, complete: bool) -> Mapping[str, Any]:
        """Return the results of a complete run."""
        if not complete:
            return {"results": None}
        return {"results": self._results.pop(str(folder.path), None) or self._judged(folder)}

    def _judged(self, folder: RunFolder | None = None) -> OccupancyResults:
        """Return the results, from the shards in a folder or else computed in order."""
        config, kinds = self.config, self.layout.kinds
        shards = (
            self.compute(shard)
            if folder is None
            else {kind: folder.read_part(shard, kind) for kind in kinds}
            for shard in range(self.shards)
        )
        places = map(_study_part, shards)
        parts = {
            task: _joined([next(places) for _ in range(config["parts"])]) for task in self._tasks
        }
        return OccupancyResults(config, **pooled_results(self.settings, parts, self._truths))

    def in_memory(self) -> OccupancyResults:
        """Return the results without a folder, computed one shard after the other."""
        results = self._judged()
        self.close()
        return results

    def close(self) -> None:
        """Forget the index of households by place."""
        forget_index()


def _joined(parts: list[StudyPart]) -> StudyPart:
    """Return the findings of all places under one protection, from those of each.

    The rate of swaps is that of all households of the parts that have blocks to look at.
    """
    held = [part for part in parts if len(part.blocks)]
    rates = [float(part.blocks["realised_rate"].iloc[0]) for part in held]
    homes = [int(part.blocks["protected"].iloc[0]) for part in held]
    rate = float(np.average(rates, weights=homes)) if len(held) > 1 else rates[0]
    blocks, rankings, variability = (
        pd.concat(frames, ignore_index=True) if len(held) > 1 else frames[0]
        for frames in zip(*held, strict=True)
    )
    return StudyPart(
        blocks.drop(columns="protected").assign(realised_rate=rate), rankings, variability
    )


def _frame_digest(frame: pd.DataFrame) -> str:
    """Return a digest of the rows of a frame in their order."""
    rows = pd.util.hash_pandas_object(frame, index=False).to_numpy(np.uint64)
    names = ",".join(map(str, frame.columns)).encode()
    return hashlib.sha256(names + rows.astype("<u8").tobytes()).hexdigest()


def _study_part(tables: dict[str, pa.Table]) -> StudyPart:
    """Return a part as frames, texts as text and missing whole numbers as missing."""
    frames = {}
    for kind in OccupancyStudy.layout.kinds:
        frame = tables[kind].to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
        whole = [n for n in frame if frame[n].dtype == "Int64" and not frame[n].hasnans]
        texts = [n for n in frame if pd.api.types.is_string_dtype(frame[n])]
        frames[kind] = frame.astype(
            {**dict.fromkeys(whole, np.int64), **dict.fromkeys(texts, "str")}
        )
    return StudyPart(**frames)
