"""The occupancy attack under several protections of the same households, judged and reported.

A shard is a protection of a population, or of a part of households by place. Together they give
rates with intervals and blind guesses, figures and a page (Steed, Qing and Wu 2024, section 4).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.disk.delimited import csv_bytes
from bayesrisk._base.display import arrow_table, displayed
from bayesrisk.accounting.budget import exact_number
from bayesrisk.census.occupancy.detection import detect_occupancy
from bayesrisk.census.occupancy.household_law import HouseholdLaw
from bayesrisk.census.occupancy.solutions import reconstruct_occupancy
from bayesrisk.census.occupancy.statistics import occupancy_statistics
from bayesrisk.census.occupancy.variability import occupancy_variability
from bayesrisk.census.population.simulate import simulate_population
from bayesrisk.census.population.spec import population_spec
from bayesrisk.census.studies import occupancy_risk, occupancy_risk as risk
from bayesrisk.census.studies.occupancy_attack import HOUSEHOLD, SAMPLED, SCHEMA, mean_violations
from bayesrisk.census.studies.occupancy_results import PROTECTION_WORDS, OccupancyResults
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, quote
from bayesrisk.experiments import by_place
from bayesrisk.experiments.runs.engine import Study
from bayesrisk.experiments.runs.folder import CONFIDENTIAL, Layout, RunFolder
from bayesrisk.interfaces import Mechanism
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.tables import Microdata, Records, Schema, Workload
from bayesrisk.tables.exchange import made_up_mark
from bayesrisk.tables.microdata import OCCUPIED

#: The reading of the paper that the study repeats, sigma2 = 1 / budget in every table: it spends
#: more than its budget on tables of people and children (see ``BottomUp``).
_PAPER = "steed-2024"
PROTECTIONS = tuple(PROTECTION_WORDS)
#: Settings of protections in a recipe, and the fields of the study that have them.
SETTINGS = {
    "swapping": {"rate": "swap_rate"},
    "uniform": {"rho": "rho"},
    "uniform-hud": {"rho": "rho"},
}
_SYNTHETIC = "synthetic"  # stands for households, or a sample, that nobody gave
#: Budgets of census tables in the 2020 system: share, its parts, and the total of the unit.
_CENSUS = {
    "H13": ("0.0002", 3360, "7.70"),
    "P15": ("0.0002", 2, "7.70"),
    "P16": ("0.0002", 2, "4.96"),
}
_HUD_TABLES = ("HUD-households", "HUD-people", "HUD-race", "HUD-children", "HUD-bedrooms")
_SWAPPING: dict[str, Any] = {
    "swap_key": ["size", "children"], "unique_by": ["size", "race_ethnicity"],
    "within": "county", "unique_within": "tract", "unit": "household",
}  # fmt: skip
_PER_PROPERTY = 2.6  # blocks for each that has a property: the others are too small for one
#: Where streams of random numbers part.
_POPULATION, _SAMPLE, _RELEASE, _ATTACK, _BASELINE = range(5)
_SAMPLING = "sampling"  # the attack that knows a share of the truth, in place of a protection
#: Totals over all blocks; and frames with rows for a block, or for an entry of a ranking.
_TOTALS, _SINGLE = ("table", "seeds", "ends"), ("blocks", "curves", "variability")
#: Real settings, and their ranges.
_RANGES = {
    "alpha": (1.0, "(]"),
    "scale": (100.0, "(]"),
    "smoothing": (1e6, "(]"),
    "sampling_rate": (1.0, "(]"),
    "confidence": (1.0, "()"),
}
#: Frames of one protection of one population: rows of ``blocks``, with the number of households
#: that were protected together; entries of every one of the ``rankings``; and, without protection
#: only, the ``variability`` of blocks.  Nothing of the truth but the swap rate.
Part = Mapping[str, pd.DataFrame]


def _rng(seed: int, *stream: int) -> np.random.Generator:
    return np.random.default_rng([seed, *stream])


def synthetic_households(study: OccupancyStudy, seed: int) -> tuple[Microdata, NDArray[np.str_]]:
    """Return a synthetic population, and its blocks under study."""
    spec = population_spec(
        "county",
        n_blocks=int(np.ceil(study.blocks * _PER_PROPERTY)) + 50,
        occupied_blocks=1.0,
        quarters_blocks=0.0,
        subsidised_blocks=1.0,
        alpha=study.alpha,
    )
    population = simulate_population(spec, rng=_rng(seed, _POPULATION))
    records = population.for_schema(Schema.named(SCHEMA))
    blocks = np.unique(records.geoids[records.codes("subsidised") == 1])
    if blocks.size < study.blocks:
        raise ArgumentError(
            "blocks", f"must be at most {blocks.size} for seed {seed}", shown=study.blocks
        )
    return Microdata(None, records, population.blocks), blocks[: study.blocks]


@functools.lru_cache(maxsize=1)
def _sample_law(blocks: int, smoothing: float, seed: int) -> HouseholdLaw:
    """Return the law of households in a public sample of another population."""
    spec = population_spec("county", n_blocks=blocks, occupied_blocks=1.0)
    other = simulate_population(spec, rng=_rng(seed, _SAMPLE))
    frame = other.for_schema(Schema.named(SCHEMA)).to_frame()
    return HouseholdLaw.from_sample(frame, smoothing=smoothing)


def true_households(
    study: OccupancyStudy, seed: int, homes: Records | None
) -> tuple[Microdata, NDArray[np.str_], pd.DataFrame]:
    """Return the confidential data, the blocks under study, and their households."""
    if homes is None:
        data, places = synthetic_households(study, seed)
    else:
        if homes.schema.name == "household-dhc":
            homes = Microdata(None, homes, None).for_schema(Schema.named(SCHEMA))
        if homes.schema.name != SCHEMA:
            raise ArgumentError(
                f"households must be of schema {SCHEMA!r}, got {quote(homes.schema.name)}"
            )
        data = Microdata(None, homes, None)
        places = np.unique(homes.geoids[homes.codes("subsidised") == 1])
    if data.households is None:
        raise DataError("households: must hold records, got none")
    truth = data.households.to_frame()[["block", *HOUSEHOLD[:-1]]]
    return data, places, truth[truth["block"].isin(places)].reset_index(drop=True)


def study_part(
    study: OccupancyStudy, seed: int, protection: str, homes: Records | None, *, place: str = ""
) -> Part:
    """Return the result frames for one protection of one population or place.

    The random numbers of a place do not depend on the other places.
    """
    data, places, truth = true_households(study, seed, homes)
    if truth.empty:
        return {kind: pd.DataFrame() for kind in study.layout.kinds}
    if study.sample is not None:
        law = HouseholdLaw.from_sample(study.sample, smoothing=study.smoothing)
    else:
        law = _sample_law(study.sample_blocks, study.smoothing, seed)
    stream_place = [int(place)] if place else []
    stream, limit = PROTECTIONS.index(protection), study.time_limit
    listed = data if data.blocks is not None else data.with_places(OCCUPIED)
    mechanism, draws = study.mechanism(protection), (seed, _RELEASE, stream, *stream_place)
    release = mechanism.release(listed, workload=Workload.named(SCHEMA), rng=_rng(*draws))
    swap = getattr(mechanism, "swap", None)
    rate = 0.0 if swap is None else swap(listed, rng=_rng(*draws)).realised_rate
    # The attack takes published counts as true: the study measures how often that misleads.
    statistics = occupancy_statistics(release.tables, hud=study.hud, taken_as_true=True)
    statistics = statistics.take(np.isin(statistics.geoids, places))
    detection = detect_occupancy(statistics, open_end=study.open_end, time_limit=limit)
    noisy = protection not in ("none", "swapping")
    solutions = reconstruct_occupancy(
        statistics.take(detection.violation),
        law,
        rng=_rng(seed, _ATTACK, stream, *stream_place),
        count=study.noisy_solutions if noisy else study.solutions,
        method="perturbed",
        scale=study.scale,
        error="absolute" if noisy else "none",
        time_limit=limit,
    )
    variability = pd.DataFrame()
    if protection == "none":
        rng = _rng(seed, _ATTACK, len(PROTECTIONS), *stream_place)
        best = reconstruct_occupancy(statistics, law, rng=rng, time_limit=limit)
        vary = functools.partial(occupancy_variability, statistics, best, law, time_limit=limit)
        frames = [vary(attributes=kind).to_frame() for kind in ("full", "binned")]
        variability = pd.concat(frames, ignore_index=True).assign(seed=seed)
    mean = pd.Series(mean_violations(solutions), index=solutions.geoids.astype(object))
    frame = detection.to_frame().assign(seed=seed, protection=protection)
    frame["reconstructed"] = frame["block"].map(mean).astype(float)
    frame["protected"] = 0 if data.households is None else len(data.households)
    frame["realised_rate"] = rate
    rankings = _rankings(functools.partial(risk.occupancy_ranking, solutions), seed)
    return {"blocks": frame, "rankings": rankings, "variability": variability}


def _rankings(ranking: Callable[..., pd.DataFrame], seed: int) -> pd.DataFrame:
    """Return rankings by every match key in one frame, with absent columns missing."""
    frames = [
        ranking(key=columns).astype(dict.fromkeys(columns, "Int64")).assign(ranking=name)
        for name, columns in occupancy_risk.MATCH_KEYS.items()
    ]
    frame = pd.concat(frames, ignore_index=True)
    return frame[["ranking", "block", *occupancy_risk.KEY_COLUMNS, "score"]].assign(seed=seed)


def pooled_results(
    study: OccupancyStudy, frames: Mapping[str, pd.DataFrame], truths: Mapping[int, pd.DataFrame]
) -> dict[str, pd.DataFrame]:
    """Return all shards' frames pooled and compared with the true households."""
    truth = pd.concat(
        (
            frame.assign(seed=seed, place=frame["block"], block=_names(seed, frame["block"]))
            for seed, frame in truths.items()
        ),
        ignore_index=True,
    )
    truth["breach"] = occupancy_risk.household_frame(truth, source="truth")["violation"]
    violations = truth.groupby(["seed", "place"])["breach"].sum()
    blocks = frames["blocks"]
    keys = pd.MultiIndex.from_arrays([blocks["seed"], blocks["block"]])
    blocks = blocks.assign(violations=violations.reindex(keys, fill_value=0).to_numpy())
    by_seed, pooled = [], []
    for name in study.protections:
        mine = blocks[blocks["protection"] == name]
        rates = {seed: _swap_rate(rows) for seed, rows in mine.groupby("seed", sort=False)}
        mean = float(np.mean(list(rates.values())))
        for reading in risk.INFEASIBLE_AS:
            protection_keys: dict[str, Any] = {"protection": name, "infeasible_as": reading}
            row = _rates(mine, study.confidence, reading)
            pooled.append({**protection_keys, **row, "realised_rate": mean})
            for seed, rate in rates.items():
                row = _rates(mine[mine["seed"] == seed], study.confidence, reading)
                by_seed.append({**protection_keys, "seed": seed, **row, "realised_rate": rate})
    rankings = [frames["rankings"]]
    for seed, homes in truths.items():
        sampled_homes = homes[_rng(seed, _BASELINE).random(len(homes)) < study.sampling_rate]
        places = np.unique(homes["block"].to_numpy(dtype=str))
        sampled = _rankings(functools.partial(risk.sampling_ranking, sampled_homes, places), seed)
        rankings.append(sampled.assign(protection=_SAMPLING))
    curves, ends = _curves(study, pd.concat(rankings, ignore_index=True), truth)
    blocks = blocks.drop(columns=["protected", "realised_rate", "shard"])
    return {
        "table": pd.DataFrame(pooled),
        "seeds": pd.DataFrame(by_seed),
        "blocks": _first(blocks, "seed", "protection", "block"),
        "curves": curves,
        "ends": ends,
        "variability": frames["variability"],
    }


def _swap_rate(blocks: pd.DataFrame) -> float:
    places = blocks.drop_duplicates("shard")
    if len(places) == 1:
        return float(places["realised_rate"].iloc[0])
    return float(np.average(places["realised_rate"], weights=places["protected"]))


def _first(frame: pd.DataFrame, *names: str) -> pd.DataFrame:
    return frame[[*names, *(c for c in frame.columns if c not in names)]]


def _rates(blocks: pd.DataFrame, confidence: float, reading: str) -> dict[str, Any]:
    """Return counts of blocks, with precision and recall and their intervals."""
    status, true = blocks["status"].to_numpy(), blocks["violations"].to_numpy() > 0
    counts = risk.count_blocks(status, true, infeasible=reading, confidence=confidence)
    row = asdict(counts)
    del row["confidence"]
    for rate in counts.to_frame().to_dict(orient="records"):
        name = rate["measure"]
        row[name] = rate["value"]
        row |= {f"{name}_{end}": rate[end] for end in ("lower", "upper", "baseline")}
    return row


def _names(seed: object, block: pd.Series) -> pd.Series:
    """Return block names that are distinct between populations."""
    return pd.Series(seed, index=block.index).astype("str") + ":" + block.astype("str")


def _curves(
    study: OccupancyStudy, rankings: pd.DataFrame, truth: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return precision and recall at 200 values of k, over all populations, and at the last k."""
    rankings = rankings.assign(block=_names(rankings["seed"], rankings["block"]))
    curves, ends = [], []
    for name in (*study.protections, _SAMPLING):
        for key, columns in occupancy_risk.MATCH_KEYS.items():
            mine = rankings[(rankings["protection"] == name) & (rankings["ranking"] == key)]
            ranking = mine.astype(dict.fromkeys(columns, np.int64)).reset_index(drop=True)
            for unique in (False, True):
                curve = risk.occupancy_linkage(
                    ranking, truth, key=columns, unique=unique, confidence=study.confidence
                )
                keys = {"protection": name, "key": key, "unique": unique}
                frame = _first(curve.to_frame().assign(**keys), *keys)
                points = np.unique(np.linspace(0, len(frame) - 1, 200).astype(int))
                curves.append(frame.iloc[points[points >= 0]] if len(frame) else frame)
                ends.append(frame.iloc[-1:])
    return pd.concat(curves, ignore_index=True), pd.concat(ends, ignore_index=True)


@displayed
@dataclass(frozen=True, eq=False)
class OccupancyStudy(Study):
    """The occupancy attack under several protections, as a study for :func:`~bayesrisk.run`.

    The fact ``results`` of a complete run is an :class:`OccupancyResults`. Rows of single blocks,
    and findings in unprotected tables, are in the folder's ``confidential/``, which only its owner
    may read.

    Parameters
    ----------
    seeds : tuple of int
        One synthetic population for each seed; with given households only the first seed is used.
    blocks : int
        Blocks with a subsidised property in each population.
    protections : tuple of str
        ``none``, ``swapping``, ``das``, ``uniform``, ``das-hud``, ``uniform-hud``.
    alpha : float
        Weight of a violation when synthetic households get their bedrooms, in (0, 1]; the larger,
        the more violations.
    solutions, noisy_solutions : int
        Numbers of reconstructions of a block, from exact and from noisy tables.
    scale : float
        Noise of the objectives of reconstructions, in nats.
    swap_rate, rho : str
        Share of swapped households, and budget of ``uniform``.
    hud : str
        Reading of HUD's tables: ``counts`` or ``percentages``.
    open_end : bool
        For detection: whether households of 7 people or more can be of any size.
    sample_blocks : int
        Blocks of the other synthetic population from which the public sample of households is
        drawn.
    smoothing : float
        Households of every kind that are added to the sample.
    sampling_rate : float
        Share of the truth that the sampling attack knows.
    time_limit : float or None
        Seconds for a block.
    confidence : float
        Confidence of the intervals, between 0 and 1.
    households : Records or path-like, optional
        Confidential households of schema ``household-occupancy`` (or ``household-dhc`` with columns
        ``children``, ``bedrooms`` and ``subsidised``) in place of synthetic ones; or a folder of
        microdata by place with them.
    sample : pandas.DataFrame, optional
        Public sample of households, for :meth:`HouseholdLaw.from_sample`; by default a synthetic
        one.
    made_up : bool, default False
        Whether the households do not exist; always true for synthetic ones, and for folders that
        say so.

    Notes
    -----
    For a folder by place, a shard is one protection of one part, which is protected and attacked
    alone. The code of the part selects the random numbers. The swap rate is that of each part, and
    no protection may need more than the households of a part. Certain statements are the same as
    for all households at once. Each worker holds one part in memory. The final judgement holds the
    households of blocks with subsidised ones, and the findings there.

    References
    ----------
    Steed, Qing and Wu (2024, arXiv:2407.04776), section 4.

    Examples
    --------
    >>> study = OccupancyStudy(seeds=(1,), blocks=10, protections=("none",), solutions=2,
    ...                        sample_blocks=200)
    >>> study.in_memory().table[["protection", "blocks"]].values.tolist()[0]
    ['none', 10]
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
    _: KW_ONLY
    households: Records | str | Path | None = None
    sample: pd.DataFrame | None = None
    made_up: bool = False

    inputs: ClassVar = ("households",)
    layout = Layout(
        "study of occupancy",
        kinds=("rankings", "variability", "blocks"),
        # They are found in tables as exact as the confidential records, for comparison.
        parts=f"{CONFIDENTIAL}/parts",
    )

    def __post_init__(self) -> None:
        """Check every setting."""
        numbers = check.items(self.seeds, "seeds")
        seeds = tuple(check.integer(seed, "seeds", lower=0) for seed in numbers)
        check.each_once(seeds, "seeds", filled=True)
        object.__setattr__(self, "seeds", seeds)
        names = dict.fromkeys(check.texts(self.protections, "protections"))
        check.each_once(names, "protections", filled=True)
        for name in names:
            check.choice(name, "protections", PROTECTIONS)
        object.__setattr__(self, "protections", tuple(names))
        for name in ("blocks", "solutions", "noisy_solutions", "sample_blocks"):
            check.integer(getattr(self, name), name, lower=1, upper=10**6)
        for name, (upper, bounds) in _RANGES.items():
            check.scalar(getattr(self, name), name, lower=0.0, upper=upper, bounds=bounds)
        if not 0 <= exact_number(self.swap_rate, "swap_rate") <= 1:
            raise ArgumentError("swap_rate", "must be in [0, 1]", got=self.swap_rate)
        check.choice(self.hud, "hud", ("counts", "percentages"))
        check.time_limit(self.time_limit)
        for name in self.protections:
            self.mechanism(name)
        if not isinstance(self.households, Records | str | PathLike | None):
            raise ArgumentTypeError(
                "households must be Records or a folder of microdata by place, got "
                f"{type(self.households).__name__}"
            )
        if self.sample is not None:
            object.__setattr__(self, "sample", check.frame(self.sample, "sample", SAMPLED))

    def mechanism(self, protection: str) -> Mechanism:
        """Return a protection's mechanism."""
        if protection == "none":
            return make_mechanism("none")
        if protection == "swapping":
            return make_mechanism("swapping", rate=self.swap_rate, **_SWAPPING)
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
        budget |= dict.fromkeys(_HUD_TABLES, total / len(_HUD_TABLES))
        return noise(budget=budget, exact=(), bounds={"P16": "P1", "HUD-households": "H3"})

    @functools.cached_property
    def config(self) -> Mapping[str, Any]:
        """The settings, digests of households and sample, and the number of parts."""
        homes, digest, parts = self.households, _SYNTHETIC, 1
        if isinstance(homes, str | PathLike):
            index, workload = by_place.open_index(homes), Workload.named(SCHEMA)
            digest, parts = index.digest, len(index.codes)
            level = by_place.level_of_parts(index, workload)
            advice = "make larger parts, or give all households in one file"
            for name in self.protections:
                by_place.check_reach(self.mechanism(name), workload, level, whole=advice)
        elif homes is not None:
            digest = _frame_digest(homes.to_frame())
        seeds = self.seeds if homes is None else self.seeds[:1]
        for seed in seeds:  # households are refused before a folder is made
            self.truth(seed, digest, parts)
        return self.configuration(
            **made_up_mark(homes is None),
            seeds=seeds,
            households=digest,
            sample=_SYNTHETIC if self.sample is None else _frame_digest(self.sample),
            parts=parts,
            shards=len(seeds) * len(self.protections) * parts,
        )

    def task(self, shard: int) -> tuple[int, str]:
        """Return the population and the protection of a shard."""
        name = divmod(shard // self.config["parts"], len(self.protections))
        return self.config["seeds"][name[0]], self.protections[name[1]]

    def _place(self, number: int, digest: str) -> tuple[str, Records | None]:
        """Return a place's code and households; data in one piece are a place without code."""
        homes = self.households
        if not isinstance(homes, str | PathLike):
            return "", homes
        code, data = by_place.read_place(homes, number, digest)
        if data.households is None:
            raise DataError(f"{homes}: part {code} must hold households, got persons only")
        return code, data.households

    def truth(self, seed: int, digest: str, parts: int) -> pd.DataFrame:
        """Return the true households of the blocks under study."""
        places = (self._place(number, digest)[1] for number in range(parts))
        truths = [true_households(self, seed, records)[2] for records in places]
        if not any(map(len, truths)):
            source = (
                self.households if isinstance(self.households, str | PathLike) else "households"
            )
            raise DataError(f"{source}: must hold subsidised households, got none")
        return pd.concat([truth for truth in truths if len(truth)], ignore_index=True)

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return the result frames for one protection of one population or place."""
        place, homes = self._place(shard % self.config["parts"], self.config["households"])
        part = study_part(self, *self.task(shard), homes, place=place)
        return {kind: arrow_table(part[kind]) for kind in self.layout.kinds}

    def work(self, shard: int) -> float:
        """Return the number of synthetic blocks, or 0 (no pilot) for given households."""
        return 0.0 if self.households is not None else float(self.blocks)

    def group(self, shard: int) -> str:
        """Return the shard's protection."""
        return self.task(shard)[1]

    def pilot(self, shard: int, amount: float) -> float:
        """Attack a synthetic population of a few blocks."""
        few = replace(self, blocks=int(amount))
        study_part(few, *self.task(shard), None)
        return float(few.blocks)

    def results(self, folder: RunFolder) -> Mapping[str, bytes]:
        """Return the frames as CSV files; those about single blocks are confidential."""
        results = _judged(self, folder)
        names = {name: f"{name}.csv" for name in _TOTALS}
        names |= {name: f"{CONFIDENTIAL}/{name}.csv" for name in _SINGLE}
        return {file: csv_bytes(getattr(results, name)) for name, file in names.items()}

    def facts(self, folder: RunFolder, *, complete: bool) -> Mapping[str, Any]:
        """Return the results of a complete run."""
        return {"results": _judged(self, folder) if complete else None}

    def in_memory(self) -> OccupancyResults:
        """Return the results computed shard by shard, without a folder."""
        results = _judged(self, None)
        self.close()
        return results

    def close(self) -> None:
        """Clear the cached index of households by place, and the cached results."""
        _judged.cache_clear()
        by_place.open_index.cache_clear()


@functools.lru_cache(maxsize=1)
def _judged(study: OccupancyStudy, folder: RunFolder | None) -> OccupancyResults:
    """Return the results from a folder's shards, or computed in order; cached."""
    config, kinds = study.config, study.layout.kinds
    frames: dict[str, list[pd.DataFrame]] = {kind: [] for kind in kinds}
    for shard in range(config["shards"]):
        if folder is None:
            tables = study.compute(shard)
        else:
            tables = {kind: folder.read_part(shard, kind) for kind in kinds}
        if not tables["blocks"].num_rows:  # a place may have nothing to look at
            continue
        keys: dict[str, dict[str, Any]] = {
            "blocks": {"shard": shard},
            "rankings": {"protection": study.task(shard)[1]},
        }
        for kind, table in tables.items():
            if table.num_columns:
                frames[kind].append(_frame(table).assign(**keys.get(kind, {})))
    whole = {
        kind: pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
        for kind, parts in frames.items()
    }
    source = config["households"], config["parts"]
    truths = {seed: study.truth(seed, *source) for seed in config["seeds"]}
    return OccupancyResults(config, **pooled_results(study, whole, truths))


def _frame_digest(frame: pd.DataFrame) -> str:
    rows = pd.util.hash_pandas_object(frame, index=False).to_numpy(np.uint64)
    names = ",".join(map(str, frame.columns)).encode()
    return hashlib.sha256(names + rows.astype("<u8").tobytes()).hexdigest()


def _frame(table: pa.Table) -> pd.DataFrame:
    """Return a part as a frame, with text columns and nullable integers."""
    frame: pd.DataFrame = table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    whole = [n for n in frame if frame[n].dtype == "Int64" and not frame[n].hasnans]
    texts = [n for n in frame if pd.api.types.is_string_dtype(frame[n])]
    return frame.astype({**dict.fromkeys(whole, np.int64), **dict.fromkeys(texts, "str")})
