"""A synthetic nation as a study, and attacks on its exact and coarsened tables with their cost.

A shard is a county, which is drawn, counted, and attacked block by block. Nothing is read, so
workers share only the folder of the run, which may be a URL.
"""

import functools
import hashlib
import json
import math
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.stats import t as student

from bayesrisk._base import validation as check
from bayesrisk._base.display import arrow_table
from bayesrisk._version import __version__
from bayesrisk.census.population.nation import Nation
from bayesrisk.census.population.summary import population_sums, summary_of_sums
from bayesrisk.experiments.by_place import PLACES, PlaceFolder, PlacePart
from bayesrisk.experiments.runs.engine import Study
from bayesrisk.experiments.runs.folder import Layout, RunFolder
from bayesrisk.mechanisms import BaseMechanism, make_mechanism
from bayesrisk.reconstruction import count_bounds, find_claims, reconstruct, solution_variability
from bayesrisk.tables import PublishedTables, Records, Workload, tabulate
from bayesrisk.tables.exchange import made_up_mark
from bayesrisk.tables.published import select_rows


def _people_settings(nation: Nation, seed: int) -> dict[str, Any]:
    """Return the settings that people are drawn by: number of blocks, their digest, and seed."""
    check.instance(nation, Nation, "nation")
    text = json.dumps(asdict(nation.spec), sort_keys=True)
    settings = hashlib.sha256(text.encode()).hexdigest()
    seed = check.integer(seed, "seed", lower=0)
    return {"blocks": nation.blocks, "settings": settings, "seed": seed}


class _NationFolder(PlaceFolder):
    holds: ClassVar[str] = "microdata"


@dataclass(frozen=True)
class NationStudy(Study):
    """A synthetic nation drawn county by county, for :func:`~bayesrisk.run`.

    ``nation`` gives the number of blocks and their law. A complete run is microdata by place.
    :class:`TabulationStudy` counts them part by part, and :meth:`Microdata.read` reads them as a
    whole. The summary has ``population``, a
    :class:`~bayesrisk.census.population.summary.PopulationSummary` beside the published figures.
    Each worker holds one county in memory.
    """

    nation: Nation
    seed: int

    layout = replace(PLACES, kinds=("sums", "index"))
    _store: ClassVar = _NationFolder

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """Number of blocks, digest of the settings, seed, and number of counties."""
        return {
            **_people_settings(self.nation, self.seed),
            "shards": self.nation.counties,
            "version": __version__,
            **made_up_mark(True),
        }

    def compute(self, shard: int) -> dict[str, Any]:
        """Return a county, and its contribution to the nation's figures."""
        county = self.nation.county(shard, seed=self.seed)
        code = self.nation.code(shard)
        part = PlacePart(code, county, np.asarray(county.geoids()), len(code))
        sums = population_sums(cast(Records, county.persons), county)
        return {"part": part, "sums": arrow_table(pd.DataFrame([sums]))}

    def results(self, folder: RunFolder) -> dict[str, bytes]:
        """Return the index of the parts."""
        return cast(PlaceFolder, folder).index("county", None)

    def facts(self, folder: RunFolder, *, complete: bool) -> dict[str, Any]:
        """Return the nation's figures once it is complete."""
        if not complete:
            return {"population": None}
        sums = pa.concat_tables([folder.read_part(n, "sums") for n in range(self.shards)])
        return {"population": summary_of_sums(sums.to_pandas().sum(skipna=False).to_dict())}


_T = TypeVar("_T")
EXACT, CLAIMS = "exact", "claims"
#: Rules that are tried unless others are named: recipes of mechanisms.
RULES = (
    "nearest-5",
    "opensafely-midpoint-6",
    "ranges:edges=[0,1,3,6,10,20,50]",
    "suppression:threshold=5,complementary=false",
)
#: Tables of persons by block, of the 2010 Summary File 1, and of households.
PERSONS = Workload.named("sf1-block", levels=["block"]).select(
    tables=["P1", *(f"P{n}" for n in (8, 9, 10, 11, 12, 14)), *(f"P12{c}" for c in "ABCDEFGHI")]
)
HOMES = Workload.named("household-dhc").select(levels=["block"])
_PIECE = 250  # blocks that are attacked together
_SMALL = 2  # the largest count that is small
_LIMIT = 60.0  # seconds for the claims of a county
_NUMBERS = ("blocks", "people", "proved", "coarsened", "recovered", "small", "small_recovered")


@dataclass(frozen=True)
class NationAttackStudy(Study):
    """An attack on the tables of a synthetic nation, for :func:`~bayesrisk.run`.

    Parameters
    ----------
    nation : Nation
        Number and law of the blocks.
    seed : int
        Seed of the people and of all draws of the protections; >= 0.
    every : int, default 1
        Interval of attacked counties: the first, and then every so many.
    rules : sequence of str
        Recipes of protections, each used alone. They must work inside a block.
    share : float, default 0.2
        Share of the inhabited blocks that are attacked under each rule, in [0, 1].
    claims : int, default 1
        Largest number of blocks of a county whose household tables are searched for claims.

    Notes
    -----
    ``blocks.parquet`` has a row for each block and rule: its people, and the proved records (all if
    no others fit, else none). It counts coarsened counts above 0 that are recovered, and separately
    those of 1 and 2. Proofs use one node of the solver on each component, so these numbers are
    lower bounds. In the rows of claims, ``proved`` is the number of claims about one household
    alone that no table states. ``cost.parquet`` has processor seconds by county and step, which
    differ between runs.
    """

    nation: Nation
    seed: int
    every: int = 1
    rules: Sequence[str] = RULES
    share: float = 0.2
    claims: int = 1

    layout = Layout("attack on a nation", kinds=("cost", "blocks"), merged=("blocks", "cost"))
    summary: ClassVar = True

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """Settings, with the digest of the nation's settings, and the number of counties."""
        people = _people_settings(self.nation, self.seed)
        every = check.integer(self.every, "every", lower=1)
        for rule in check.items(self.rules, "rules"):
            make_mechanism(rule)
        return {
            **people,
            "every": every,
            "rules": list(self.rules),
            "share": check.scalar(self.share, "share", lower=0.0, upper=1.0),
            "claims": check.integer(self.claims, "claims", lower=0),
            "shards": -(-self.nation.counties // every),
            "version": __version__,
            **made_up_mark(True),
        }

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return the rows of a county's blocks, and the seconds of each step."""
        number, clock = shard * self.every, _Timer()
        data = clock("draw", lambda: self.nation.county(number, seed=self.seed))
        people, units = cast(Records, data.persons), cast(Records, data.households)
        rng = np.random.default_rng([self.seed, number])
        codes = np.unique(people.geoids)
        chosen = np.sort(rng.permutation(codes)[: round(self.share * codes.size)])
        truth = clock("tabulate", lambda: tabulate(people, PERSONS), codes.size)
        parts = [clock(EXACT, lambda: _exact(truth), codes.size)]
        few = people.take(np.isin(people.geoids, chosen))
        for rule in self.rules if chosen.size else ():
            mechanism = cast(BaseMechanism, make_mechanism(rule))
            release = mechanism.release(few, workload=PERSONS, rng=rng, places="occupied")
            true = select_rows(truth, {"block": np.searchsorted(truth.geoids["block"], chosen)})
            work = functools.partial(_coarsened, release.tables, true)
            parts.append(clock(rule, work, chosen.size).assign(rule=rule))
        for block in rng.choice(chosen, min(self.claims, chosen.size), replace=False):
            homes = units.take(units.geoids == block)
            if len(homes):
                parts.append(clock(CLAIMS, functools.partial(_claimed, homes), 1))
        county = self.nation.code(number)
        rows = pd.concat(parts, ignore_index=True).fillna(0)
        rows = rows.astype(dict.fromkeys(_NUMBERS[1:], np.int64))
        cost = pd.DataFrame(clock.rows).groupby("step", sort=False, as_index=False).sum()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
        cost = cost.assign(county=county, peak_mb=peak)
        return {
            "cost": arrow_table(cost),
            "blocks": arrow_table(rows[["block", "rule", *_NUMBERS[1:]]]),
        }

    def results(self, folder: RunFolder) -> Mapping[str, bytes]:
        """Return the two tables as CSV files."""
        shares, cost = self.tables(folder)
        return {
            "given-away.csv": shares.to_csv(index=False).encode(),
            "core-hours.csv": cost.to_csv(index=False).encode(),
        }

    def facts(self, folder: RunFolder, *, complete: bool) -> Mapping[str, Any]:
        """Return the answer in sentences."""
        if not complete:
            return {}
        shares, cost = self.tables(folder)
        by_rule, exact = shares.set_index("rule"), cost.iloc[-1]
        first = cast(pd.Series, by_rule.loc[EXACT])
        brief = [
            f"Exact tables of {first['blocks']:,.0f} blocks fit no other records in blocks with "
            f"{_percent(first, 'proved')} of the people."
        ]
        for rule in by_rule.index.intersection(list(self.rules), sort=False):
            row = cast(pd.Series, by_rule.loc[rule])
            brief.append(
                f"Under {rule} this is so for at least {_percent(row, 'proved')}, and at least "
                f"{_percent(row, 'recovered')} of the coarsened counts come back."
            )
        low, high = exact["hours_low"], exact["hours_high"]
        interval = "" if math.isnan(low) else f" ({3600 * low:,.0f} to {3600 * high:,.0f})"
        brief.append(
            f"All {self.nation.blocks:,} blocks take {3600 * exact['hours']:,.0f} seconds of a "
            f"processor under exact tables{interval}."
        )
        return {"brief": brief, "peak_mb": float(cost["peak_mb"].max())}

    def work(self, shard: int) -> float:
        """Return the number of tracts of a county."""
        return self.nation.spec.tracts_per_county

    def pilot(self, shard: int, amount: float) -> float:
        """Attack a small county of a few tracts, drawn for this purpose."""
        spec = replace(self.nation.spec, tracts_per_county=int(amount))
        tract_blocks = spec.blocks_per_group * spec.groups_per_tract
        blocks = min(self.nation.blocks, tract_blocks * spec.tracts_per_county)
        replace(self, nation=Nation(blocks, spec)).compute(0)
        return blocks / tract_blocks

    def tables(self, folder: RunFolder) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return shares by rule and core-hours by step, with intervals over counties."""
        shares, cost = [], []
        for shard in range(self.shards):
            rows = folder.read_part(shard, "blocks").to_pandas()
            sums = rows.assign(blocks=1).groupby("rule", sort=False)[list(_NUMBERS)].sum()
            shares.append(sums.reset_index())
            cost.append(folder.read_part(shard, "cost").to_pandas())
        return _given_away(pd.concat(shares)), _core_hours(pd.concat(cost), self)


def _percent(row: pd.Series, name: str) -> str:
    """Return a share in per cent, with its interval if there is one."""
    share, low, high = (100.0 * row[f"{name}{end}"] for end in ("", "_low", "_high"))
    alone = math.isnan(low) or not share  # what was never seen has no such interval
    return f"{share:.2f} %" + ("" if alone else f" ({low:.2f} to {high:.2f})")


class _Timer:
    """Processor seconds of each step."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def __call__(self, step: str, work: Callable[[], _T], blocks: int = 0) -> _T:
        start = time.process_time()
        result = work()
        seconds = time.process_time() - start
        self.rows.append({"step": step, "blocks": blocks, "seconds": seconds})
        return result


def _pieces(tables: PublishedTables) -> Iterator[tuple[PublishedTables, np.ndarray]]:
    size = len(tables.geoids["block"])
    for first in range(0, size, _PIECE):
        rows = np.arange(first, min(first + _PIECE, size))
        yield select_rows(tables, {"block": rows}), rows


def _exact(tables: PublishedTables) -> pd.DataFrame:
    """Return each block's number of records, and how many are proved by exact tables."""
    parts = []
    for piece, _ in _pieces(tables):
        solution = reconstruct(piece, scope="block")
        bound = solution_variability(piece, scope="block", solution=solution)
        proved = np.where(bound.upper == 0.0, bound.population, 0)
        frame = {"block": bound.geoids, "people": bound.population, "proved": proved}
        parts.append(pd.DataFrame(frame))
    return pd.concat(parts).assign(rule=EXACT)


def _coarsened(tables: PublishedTables, truth: PublishedTables) -> pd.DataFrame:
    """Return each block's numbers of proved records and of recovered counts."""
    dense = {key: counts.toarray() for key, counts in truth.counts.items()}
    parts = []
    for piece, rows in _pieces(tables):
        unique = np.array(reconstruct(piece, scope="block").status) == "unique"
        frame = count_bounds(piece, node_limit=1).counts
        cells = frame.iloc[: len(frame) // rows.size]
        columns = [
            dense["block", table][rows, list(PERSONS.tables["block", table].cells).index(cell)]
            for table, cell in zip(cells["table"], cells["cell"], strict=True)
        ]
        true = np.stack(columns, axis=1)
        proved = _equal(frame, "low", "high").reshape(true.shape)
        coarse = ~_equal(frame, "low_stated", "high_stated").reshape(true.shape) & (true > 0)
        small = coarse & (true <= _SMALL)
        people = dense["block", "P1"][rows].sum(axis=1)
        parts.append(
            pd.DataFrame(
                {
                    "block": piece.geoids["block"],
                    "people": people,
                    "proved": np.where(unique, people, 0),
                    "coarsened": coarse.sum(axis=1),
                    "recovered": (coarse & proved).sum(axis=1),
                    "small": small.sum(axis=1),
                    "small_recovered": (small & proved).sum(axis=1),
                }
            )
        )
    return pd.concat(parts)


def _equal(frame: pd.DataFrame, low: str, high: str) -> np.ndarray:
    equal: np.ndarray = (frame[low] == frame[high]).fillna(False).to_numpy(bool)
    return equal


def _claimed(homes: Records) -> pd.DataFrame:
    """Return a block's number of households, and of claims about a single household."""
    claims = find_claims(tabulate(homes, HOMES), time_limit=_LIMIT).claims
    alone = (claims["multiplicity"] == 1) & ~claims["readable_here"].astype(bool)
    numbers = {"people": len(homes), "proved": int(alone.sum())}
    row = {"block": homes.geoids[:1], "rule": CLAIMS} | numbers
    return pd.DataFrame(row)


def _given_away(counts: pd.DataFrame) -> pd.DataFrame:
    """Return shares, by rule, of records proved, coarsened counts and small counts recovered."""
    rows = []
    for rule, group in counts[counts["rule"] != CLAIMS].groupby("rule", sort=False):
        row: dict[Any, Any] = {"rule": rule, **group[["blocks", "people", "coarsened"]].sum()}
        for name, part, whole in (
            ("proved", "proved", "people"),
            ("recovered", "recovered", "coarsened"),
            ("small_recovered", "small_recovered", "small"),
        ):
            row |= _interval(name, group[part].to_numpy(float), group[whole].to_numpy(float))
        rows.append(row)
    return pd.DataFrame(rows)


def _interval(name: str, parts: np.ndarray, wholes: np.ndarray) -> dict[str, float]:
    r"""Return a ratio of totals over counties, with its 95 % interval.

    .. math:: \hat R = \sum_i y_i / \sum_i x_i, \qquad
        s^2 = \frac{n \sum_i (y_i - \hat R x_i)^2}{(n - 1) (\sum_i x_i)^2}

    Student's t with n - 1 degrees of freedom; Cochran (1977, Sampling Techniques), Eq. 6.13.
    """
    total, n = wholes.sum(), len(wholes)
    ratio = float(parts.sum() / total) if total else math.nan
    half = math.nan
    if total and n > 1:
        spread = n * ((parts - ratio * wholes) ** 2).sum() / (n - 1)
        half = float(student.isf(0.025, n - 1) * math.sqrt(spread) / total)
    low = ratio - half if math.isnan(half) else max(0.0, ratio - half)
    return {name: ratio, f"{name}_low": low, f"{name}_high": ratio + half}


def _core_hours(cost: pd.DataFrame, study: NationAttackStudy) -> pd.DataFrame:
    by_step = cost.groupby("step", sort=False)
    rows = []
    blocks = by_step["blocks"].sum()
    for step, part in [*by_step, ("all steps under exact tables", None)]:
        if part is None:
            part = cost[cost["step"].isin(["draw", "tabulate", EXACT])].groupby("county")
            part = part[["seconds"]].sum().assign(peak_mb=cost["peak_mb"].max(), blocks=0)
        seconds = part["seconds"].to_numpy(float)
        # Under a rule, seconds of some blocks of a county stand for those of all of them.
        scale = blocks[EXACT] / blocks[step] if blocks.get(step, 0) else 1.0
        hours = _interval("hours", seconds * scale, np.ones(seconds.size))
        times = study.nation.counties / 3600.0
        row = {key: value * times for key, value in hours.items()}
        row |= {"blocks": int(part["blocks"].sum()), "seconds": seconds.sum()}
        rows.append({"step": step, **row, "peak_mb": part["peak_mb"].max()})
    return pd.DataFrame(rows)
