"""Targeted record swapping: risky households exchange places with similar ones."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk._base.randomness import generator
from bayesrisk._base.validation import IntArray, TextArray
from bayesrisk.accounting.budget import exact_number
from bayesrisk.exceptions import ArgumentError
from bayesrisk.mechanisms.base import BasePrepared, Dial, PreparingMechanism, Protected
from bayesrisk.mechanisms.registry import usual_parameters
from bayesrisk.mechanisms.swapping.pairs import (
    TIERS,
    PartnerSearch,
    Units,
    canonical_order,
    moved,
    pairs_of_tiers,
    parse_tiers,
    points,
    risk_tiers,
    swap_geography,
    swap_units,
)
from bayesrisk.release import MechanismSpec, TrueCounts
from bayesrisk.tables import Microdata, PublishedTables, Records, Table, Workload, tabulate
from bayesrisk.tables.cells import class_sizes, renumbered
from bayesrisk.tables.microdata import as_microdata

# Many swapped releases of one truth: all that chance does not touch is done once.


#: Level, table, cell, geographic code.
Cell = tuple[str, str, str, str]


@dataclass(frozen=True, eq=False)
class SwapPlan:
    """The units that may be swapped, and the traits that determine their partners."""

    data: Microdata  # the records
    units: Units  # all units
    eligible: IntArray  # those that have persons
    # region; how many share what makes it unique; persons of its block; region and swap key
    region: IntArray
    frequency: IntArray
    block_persons: IntArray
    group: IntArray
    points: NDArray[np.float64]  # coordinates of the places of the units
    # blocks of each group by distance, filled when first needed
    nearest: dict[int, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PreparedSwapping(BasePrepared):
    """Swapped releases of one truth, ready to be drawn many times."""

    mechanism: Swapping
    plan: SwapPlan  # units and what decides of their swaps
    spec: MechanismSpec  # of releases: which tables do not change
    workload: Workload  # published tables
    records: Records  # the records that the workload counts
    _watched: dict[tuple[Cell, ...], Any] = field(default_factory=dict)

    def _draw(self, rng: np.random.Generator) -> Protected:
        partner, _ = self.mechanism._partners(self.plan, rng)
        counting, plan = self._counting, self.plan
        if counting is not None:
            tables = counting.tables(counting.places(plan.units.place, partner))
        else:
            after = moved(plan.data, plan.units, partner, self.mechanism._unit)
            tables = tabulate(after, self.workload)
        return Protected(tables, self.spec)

    @functools.cached_property
    def _counting(self) -> _Counting | None:
        """Data for counting records in their new places, or None if records match no units."""
        unit, listed = self._unit_of_records(), self.plan.data.geoids()
        if unit is None or listed is None:
            return None
        workload, (record_codes, position) = self.workload, self.records.places()
        geography, level = workload.schema.geography, workload.levels[-1]
        codes = np.unique(geography.ancestors(listed, level))
        sites, record_sites = (
            np.searchsorted(codes, geography.ancestors(places, level))
            for places in (self.plan.units.places, record_codes)
        )
        cells, kind = np.unique(self.records.cells(), return_inverse=True)
        geoids = {name: np.unique(geography.ancestors(codes, name)) for name in workload.levels}
        above = {
            name: np.searchsorted(nodes, geography.ancestors(codes, name))
            for name, nodes in geoids.items()
        }
        weights = {
            key: sparse.csr_array(table.incidence(workload.schema, cells).T)
            for key, table in workload.tables.items()
        }
        place = record_sites[position].astype(np.int64)
        return _Counting(workload, geoids, above, weights, kind, cells.size, place, sites, unit)

    def observed(self, rng: np.random.Generator, cells: Sequence[Cell]) -> IntArray | None:
        """Return the counts of some cells in one release, without building its tables.

        Cells are (level, table, cell, place).  None, and nothing is drawn, if the workload's
        records are not the swapped records, row by row.
        """
        counting, key = self._counting, tuple(cells)
        if counting is None:
            return None
        if key not in self._watched:
            self._watched[key] = [counting.watch(*cell) for cell in key]
        partner, _ = self.mechanism._partners(self.plan, rng)
        place = counting.places(self.plan.units.place, partner)
        counts = [weight @ inside[place[rows]] for rows, weight, inside in self._watched[key]]
        return np.array(counts, np.int64)

    def _unit_of_records(self) -> IntArray | None:
        """Return the unit of each counted record, -1 for none; None if they match no file.

        Recoding may leave out records; their places then show that the rows differ.
        """
        units, data, records = self.plan.units, self.plan.data, self.records
        files = [one for one in (data.persons, data.households) if one is not None]
        matches = [one for one in files if one is records] or [
            r for r in files if len(r) == len(records) and np.array_equal(r.geoids, records.geoids)
        ]
        if len(matches) != 1:
            return None
        if matches[0] is data.persons:
            return units.member
        moves = self.mechanism._unit == "household"
        return np.arange(len(records)) if moves else np.full(len(records), -1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Counting:
    """The part of tabulating swapped records that does not depend on their new places."""

    workload: Workload
    geoids: dict[str, TextArray]  # places of every level
    above: dict[str, IntArray]  # for each place of the finest level the one around it
    weights: dict[tuple[str, str], sparse.csr_array]  # (kinds of records, cells of a table)
    kind: IntArray  # kind of every record, and how many there are
    kinds: int
    place: IntArray  # place of every record
    place_of_units: IntArray  # for each place of the units the one of the finest level
    unit: IntArray  # unit that every record moves with, -1 for none

    def places(self, place: IntArray, partner: IntArray) -> IntArray:
        """Return every record's place after the swaps."""
        moves = self.unit >= 0
        moves[moves] = partner[self.unit[moves]] >= 0
        position = self.place.copy()
        position[moves] = self.place_of_units[place[partner[self.unit[moves]]]]
        return position

    def watch(self, level: str, table: str, cell: str, code: str) -> tuple[IntArray, ...]:
        """Return the records that a cell counts, their weights, and its place's finest places."""
        column = self.workload.tables[level, table].cells.index(cell)
        weight = self.weights[level, table][:, [column]].toarray()[:, 0][self.kind]
        inside = self.geoids[level][self.above[level]] == code
        rows = np.flatnonzero(weight)
        return rows, weight[rows], inside.astype(np.int64)

    def tables(self, place: IntArray) -> PublishedTables:
        counts = {}
        for level in self.workload.levels:
            # counts of the kinds of records in every place: n[p, k] = #{i: p_i = p, k_i = k}
            shape = self.geoids[level].size, self.kinds
            ones, coords = np.ones(place.size, np.int64), (self.above[level][place], self.kind)
            number = sparse.csr_array((ones, coords), shape=shape)
            for name in self.workload.at(level):
                counts[level, name] = sparse.csr_array(number @ self.weights[level, name])
        return PublishedTables(self.workload, self.geoids, counts)


_UNITS = ("household", "person")


@displayed
@dataclass(frozen=True, eq=False)
class SwappedMicrodata:
    """Records after swapping, with each unit's partner and tier; confidential.

    Not for publication: ``partner`` undoes the protection.

    Attributes
    ----------
    microdata : Microdata
        The records, in their order, some at other places.
    partner : ndarray of int64
        For each household (or person) the position of its partner; -1 for those that stayed.
    tier : ndarray of int64
        Tier of each unit, 0 the riskiest.
    stated_rate, realised_rate : float
        Requested and attained share of swapped households.
    tier_rates : tuple of float
        Share of swapped households in each tier; 0 for an empty tier.
    """

    microdata: Microdata
    partner: IntArray
    tier: IntArray
    stated_rate: float
    realised_rate: float
    tier_rates: tuple[float, ...]


class Swapping(PreparingMechanism[PreparedSwapping]):
    """Exchange the places of risky households with those of similar households nearby.

    Households are ranked by risk within each region. Those with the rarest characteristics in their
    tract come first, then those in blocks with the fewest persons, then by chance. Ranks form
    tiers, each with a probability of selection. These probabilities are rescaled, by largest
    remainder, so that the stated rate is the share of households that are swapped, selected or as
    partner. A partner is drawn from the nearest households with the same swap key, in another block
    of the region and not yet swapped. The whole record moves with its persons; nobody is swapped
    twice.

    Counts of households by block and swap key do not change, nor any count of a geography that
    consists of whole regions. Source: Steed, Qing and Wu (2024, arXiv:2407.04776), section 4.2 and
    note 6, after Kim (2015) and Christ et al. (2022). It has the tiers, and the five nearest
    partners with equal size and number of adults.

    Parameters
    ----------
    rate : number
        Share of swapped households, in [0, 1].
    swap_key : sequence of str, optional
        Columns in which partners agree. They may be columns of the households; ``size``, ``adults``
        and ``children``, which can also be counted from the persons (adults are 18 or older); or
        columns of the persons, in whose multiset of values households must agree.
    unique_by : sequence of str, optional
        Columns whose combination may be rare, named as above.
    within : str, optional
        Level of the geography whose places are the regions.
    unique_within : str, optional
        Level within which a combination is counted: ``within`` or finer.
    unit : {"household", "person"}, optional
        The swapped unit. A person takes the other's place and household.
    neighbours : int, default 5
        Number of nearest candidates from which a partner is drawn, as in the source.
    tiers : sequence of (share, probability), default TIERS
        Riskiest first; shares sum to 1, and probabilities are in [0, 1]. The default is that of the
        source.

    Notes
    -----
    Open parameters have their usual values (:func:`usual_parameters`), which follow from the
    records and the tables of a release.

    "Nearest" is by distance of block centres, or without coordinates by position in the sorted list
    of blocks. Persons whose household has no record (group quarters) stay. If persons are given,
    households without persons stay too. The realised rate is below the stated one only if too few
    households have a partner. In small data it reveals the number of households, so a release omits
    it; :meth:`swap`, for the custodian alone, returns it for the same ``rng``. The spec of a
    release names the tables that swapping cannot change; the likelihood of the others has no closed
    form.

    Examples
    --------
    >>> mechanism = Swapping(
    ...     rate="1/10",
    ...     swap_key=["size", "adults"],
    ...     unique_by=["race"],
    ...     within="county",
    ...     unique_within="tract",
    ...     unit="household",
    ... )
    >>> mechanism.spec.parameters["rate"]
    '1/10'
    """

    dial = Dial("rate", 0.5, 0.001)

    def __init__(
        self,
        *,
        rate: object,
        swap_key: Sequence[str] | None = None,
        unique_by: Sequence[str] | None = None,
        within: str | None = None,
        unique_within: str | None = None,
        unit: str | None = None,
        neighbours: int = 5,
        tiers: Sequence[Sequence[object]] = TIERS,
    ) -> None:
        self._rate = exact_number(rate, "rate")
        if not 0 <= self._rate <= 1:
            raise ArgumentError("rate", "must be in [0, 1]", got=rate)
        self._key, self._unique = (
            () if columns is None else check.column_names(columns, name)
            for name, columns in (("swap_key", swap_key), ("unique_by", unique_by))
        )
        self._region, self._unique_within = (
            "" if level is None else check.text(level, name)
            for name, level in (("within", within), ("unique_within", unique_within))
        )
        self._unit = "" if unit is None else check.choice(unit, "unit", _UNITS)
        self._neighbours = check.integer(neighbours, "neighbours", lower=1, upper=10_000)
        self._shares, self._weights = parse_tiers(tiers)
        parameters = {
            "rate": self._rate,
            "swap_key": self._key,
            "unique_by": self._unique,
            "within": self._region,
            "unique_within": self._unique_within,
            "unit": self._unit,
            "neighbours": self._neighbours,
            "tiers": list(zip(self._shares, self._weights, strict=True)),
        }
        self._open = [name for name, value in parameters.items() if value in ((), "")]
        stated = {name: value for name, value in parameters.items() if name not in self._open}
        super().__init__(MechanismSpec("swapping", stated))

    def _completed(self, workload: Workload, *, households: bool) -> Swapping:
        """Return the mechanism with missing parameters set to their usual values."""
        stated = self.spec.parameters
        usual = usual_parameters("swapping", workload, households=households, **stated)
        return Swapping(**usual)

    def swap(
        self, microdata: Microdata | Records, *, rng: np.random.Generator | int | None = None
    ) -> SwappedMicrodata:
        """Return the records after swapping, with partners and rates; confidential.

        Raises
        ------
        DataError
            If persons and households do not fit together.
        """
        if self._open:
            raise ArgumentError(self._open[0], "must be given to swap without tables", got=None)
        random = generator(rng, optional=True)
        plan = self._plan(as_microdata(microdata))
        partner, tier = self._partners(plan, random)
        eligible = plan.eligible
        swapped = partner[eligible] >= 0
        sizes = np.bincount(tier[eligible], minlength=len(self._shares))
        rates = np.bincount(tier[eligible][swapped], minlength=len(sizes)) / np.maximum(sizes, 1)
        return SwappedMicrodata(
            moved(plan.data, plan.units, partner, self._unit),
            partner,
            tier,
            float(self._rate),
            float(swapped.mean()) if eligible.size else 0.0,
            tuple(rates.tolist()),
        )

    def _prepare(self, microdata: Microdata, workload: Workload) -> PreparedSwapping:
        if self._open:
            households = microdata.persons is not None and microdata.households is not None
            return self._completed(workload, households=households)._prepare(microdata, workload)
        plan = self._plan(microdata)
        records = plan.data.for_schema(workload.schema)
        coarse = workload.schema.geography.rank(self._region)
        invariants = [
            (level, name)
            for (level, name), table in workload.tables.items()
            if workload.schema.geography.rank(level) <= coarse
            or self._keeps(table, microdata, workload)
        ]
        spec = replace(self.spec, tables=dict.fromkeys(invariants, TrueCounts()))
        return PreparedSwapping(self, plan, spec.for_tables(workload.tables), workload, records)

    def _plan(self, data: Microdata) -> SwapPlan:
        """Return the units and all their traits that are not random."""
        geography = swap_geography(data)
        if geography.rank(self._unique_within) < geography.rank(self._region):
            raise ArgumentError(
                "unique_within", f"must be {self._region!r} or finer", got=self._unique_within
            )
        units = swap_units(data, unit=self._unit, swap_key=self._key, unique_key=self._unique)
        order = canonical_order(data, unit=self._unit)
        eligible = order[units.persons[order] > 0]
        place = units.place[eligible]
        regions = renumbered(geography.ancestors(units.places, self._region))
        tracts = renumbered(geography.ancestors(units.places, self._unique_within))
        region = regions[place]
        population = np.bincount(units.place, weights=units.persons, minlength=len(regions))
        filled = eligible.size > 0
        return SwapPlan(
            data=data,
            units=units,
            eligible=eligible,
            region=region,
            frequency=class_sizes(tracts[place], units.unique[eligible]),
            block_persons=population.astype(np.int64)[place],
            group=region * (int(units.key.max()) + 1) + units.key[eligible] if filled else eligible,
            points=points(units.places, data) if filled else np.empty((0, 1)),
        )

    def _partners(self, plan: SwapPlan, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Return the partner of each unit (-1: none), and its tier."""
        count, eligible = len(plan.units.place), plan.eligible
        partner = np.full(count, -1, dtype=np.int64)
        tier = np.full(count, len(self._shares) - 1, dtype=np.int64)
        if not eligible.size:
            return partner, tier
        tier[eligible] = eligible_tier = risk_tiers(
            plan.region,
            frequency=plan.frequency,
            block_persons=plan.block_persons,
            shares=self._shares,
            rng=rng,
        )
        search = PartnerSearch(
            plan.group,
            plan.units.place[eligible],
            plan.points,
            neighbours=self._neighbours,
            rng=rng,
            nearest=plan.nearest,
        )
        self._choose(search, plan.region, eligible_tier, rng)
        swapped = search.partner >= 0
        partner[eligible[swapped]] = eligible[search.partner[swapped]]
        return partner, tier

    def acts_within(self, workload: Workload) -> str | None:
        """Return the level of the regions; partners come from the same region.

        The rate is shared over all regions released together. If a release is made place by place,
        each place has the rate.
        """
        levels = check.instance(workload, Workload, "workload").schema.geography.levels
        if not self._region:
            return self._completed(workload, households=False).acts_within(workload)
        return check.choice(self._region, "within", levels)

    def _keeps(self, table: Table, data: Microdata, workload: Workload) -> bool:
        """Return whether a table depends only on the block, the swap key and numbers of units."""
        records = data.households if self._unit == "household" else data.persons
        if records is not None and records.schema == workload.schema:
            return set(table.factors) <= set(self._key)
        # Recoded, or of the other unit: only totals, which sizes or persons one by one keep.
        return not table.factors and (self._unit == "person" or "size" in self._key)

    def _choose(
        self, search: PartnerSearch, region: IntArray, tier: IntArray, rng: np.random.Generator
    ) -> None:
        """Swap as many units of each region and tier as the rate requires, riskiest tiers first."""
        tiers = len(self._weights)
        cells = region * tiers + tier
        sizes = np.bincount(cells, minlength=(int(region.max()) + 1) * tiers).tolist()
        wanted = pairs_of_tiers(self._rate, tuple(sizes), self._weights)
        queue = rng.permutation(len(region))
        queue = queue[np.argsort(cells[queue], kind="stable")].tolist()
        start = missing = 0
        for i, size in enumerate(sizes):
            missing = (missing if i % tiers else 0) + wanted[i]  # a region answers for its own
            for unit in queue[start : start + size] if self._weights[i % tiers] else []:
                if not missing:
                    break
                missing -= search.swap(unit)
            start += size
