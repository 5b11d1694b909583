"""What a nation costs: processor time of each step by size class of blocks, and of all together.

Run it by itself; nothing is written but the table::

    python benchmarks/nation.py --batches 12 --tracts 60
    python benchmarks/nation.py --claims 12

The second is about verified claims in household tables, instead of records.
Blocks of each size class of the published table are drawn from a synthetic nation and solved in
batches, which are the units of the intervals (95 %, Student's t); tracts are drawn by county.
Seconds are those of the processor in one process.  What one process does in a row is summed up to
the 11,078,297 blocks of 2010, class by class; the interval of a sum is that of independent parts.
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from bayesrisk.census.population import figures
from bayesrisk.census.population.nation import Nation
from bayesrisk.reconstruction import find_claims, reconstruct, solution_variability
from bayesrisk.tables import PublishedTables, Workload, tabulate

BATCH = 10  # blocks of a class that are solved in one call
BOTH = Workload.named("sf1-block").union(Workload.named("sf1-tract"))
BLOCK = BOTH.select(levels=["block"])
HOMES = Workload.named("household-dhc").select(levels=["block"])
SINGLE = 100  # people from which on a block is a unit of its own when claims are looked for
LIMIT = 120.0  # seconds for the claims of a block
EMPTY = figures.ALL_BLOCKS - sum(figures.CLASS_BLOCKS)
CLASSES = ["0", *(f"{a}-{b}" if b else f"{a}+" for a, b in figures.SIZE_CLASSES)]
IN_NATION = np.array([EMPTY, *figures.CLASS_BLOCKS])
STARTS = np.array([0, *(low for low, _ in figures.SIZE_CLASSES)])


@dataclass
class Cost:
    """Seconds for one of a kind, with the standard error of their mean, and how many there are."""

    name: str
    in_nation: float
    seconds: np.ndarray

    @property
    def mean(self):
        return float(self.seconds.mean())

    @property
    def error(self):
        return float(self.seconds.std(ddof=1) / np.sqrt(self.seconds.size))

    def interval(self):
        half = student.isf(0.025, self.seconds.size - 1) * self.error
        return max(0.0, self.mean - half), self.mean + half


def timed(work):
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def some(tables, level, places):
    """Return the tables of some places of a level, with the blocks inside them."""
    geography = tables.workload.schema.geography
    blocks = tables.geoids["block"]
    inside = blocks[np.isin(geography.ancestors(blocks, level), places)]
    levels = tables.workload.levels[tables.workload.levels.index(level) :]
    rows = {
        name: np.searchsorted(tables.geoids[name], np.unique(geography.ancestors(inside, name)))
        for name in levels
    }
    workload = tables.workload.select(levels=levels)
    return PublishedTables(
        workload,
        {name: tables.geoids[name][at] for name, at in rows.items()},
        {key: tables.counts[key][rows[key[0]]] for key in workload.tables},
    )


def solve_blocks(tables):
    found = reconstruct(tables, scope="block")
    solution_variability(tables, scope="block", solution=found)


def solve_tracts(tables):
    found = reconstruct(tables, scope="tract")
    solution_variability(tables, scope="tract-bounds", solution=found)


def measure(seed, batches, tracts):
    """Return the costs of counties, of blocks by class, and of tracts."""
    nation = Nation.scaled(1.0)
    order = np.random.default_rng(seed).permutation(nation.counties - 1)
    drawn, counted, by_class = [], [], {name: [] for name in CLASSES}
    waiting = {name: [] for name in CLASSES}
    of_tracts = []
    each = max(1, tracts // 20)
    for number, county in enumerate(order):
        data, seconds = timed(lambda c=int(county): nation.county(c, seed=seed))
        drawn.append(seconds)
        tables, seconds = timed(lambda d=data: tabulate(d, BOTH))
        counted.append(seconds)
        sizes = np.asarray(tables.counts["block", "P1"].sum(axis=1)).ravel()
        of = np.searchsorted(STARTS, sizes, side="right") - 1
        for code, name in enumerate(CLASSES):
            places = tables.geoids["block"][of == code]
            for start in range(0, len(places) - BATCH + 1, BATCH):
                if len(by_class[name]) >= batches or start >= 2 * BATCH:
                    break
                few = some(tables, "block", places[start : start + BATCH])
                if number == 0 and start == 0:
                    solve_blocks(few)  # compiled, and warm
                by_class[name].append(timed(lambda f=few: solve_blocks(f))[1] / BATCH)
            rest = places[: BATCH - 1] if len(places) < BATCH else []
            waiting[name] += [some(tables, "block", [place]) for place in rest]
            if len(waiting[name]) >= BATCH and len(by_class[name]) < batches:
                few = waiting[name][:BATCH]
                waiting[name] = waiting[name][BATCH:]
                seconds = timed(lambda f=few: [solve_blocks(t) for t in f])[1]
                by_class[name].append(seconds / BATCH)
        chosen = np.random.default_rng([seed, int(county)]).choice(tables.geoids["tract"], each)
        for tract in np.unique(chosen):
            if len(of_tracts) < tracts:
                own = some(tables, "tract", [tract])
                if number == 0:
                    solve_tracts(own)
                of_tracts.append(timed(lambda o=own: solve_tracts(o))[1])
        if min(map(len, by_class.values())) >= batches and len(of_tracts) >= tracts:
            break
    counties = [
        Cost("a county drawn", nation.counties, np.array(drawn[1:])),
        Cost("a county counted", nation.counties, np.array(counted[1:])),
    ]
    classes = [
        Cost(name, count, np.array(by_class[name]))
        for name, count in zip(CLASSES, IN_NATION, strict=True)
    ]
    per_tract = nation.spec.blocks_per_group * nation.spec.groups_per_tract
    return counties, classes, Cost("a tract", nation.blocks / per_tract, np.array(of_tracts))


def measure_claims(seed, units):
    """Return the costs of claims of blocks by class, and how many blocks a limit left undecided."""
    nation = Nation.scaled(1.0)
    order = np.random.default_rng(seed).permutation(nation.counties - 1)
    of_class, late, warm = [[] for _ in CLASSES], 0, False
    for county in order:
        data = nation.county(int(county), seed=seed)
        tables = tabulate(data.households, HOMES)
        places, blocks = np.unique(data.persons.geoids, return_counts=True)
        at = np.minimum(np.searchsorted(places, tables.geoids["block"]), places.size - 1)
        people = np.where(places[at] == tables.geoids["block"], blocks[at], 0)
        of = np.searchsorted(STARTS, people, side="right") - 1
        rng = np.random.default_rng([seed, int(county)])
        for code in range(1, len(CLASSES)):
            size = BATCH if STARTS[code] < SINGLE else 1
            here = rng.permutation(np.flatnonzero(of == code))
            # A third of what is wanted from one county at most.
            most = min(here.size // size, -(-units // 3), units - len(of_class[code]))
            for unit in range(most):
                chosen = tables.geoids["block"][np.sort(here[unit * size : (unit + 1) * size])]
                few = some(tables, "block", chosen)
                if not warm:
                    find_claims(few)
                    warm = True
                found, seconds = timed(lambda f=few: find_claims(f, time_limit=LIMIT))
                late += int((found.blocks["status"] != "decided").sum())
                of_class[code].append(seconds / size)
        if min(map(len, of_class[1:])) >= units:
            break
    costs = [
        Cost(name, count, np.array(seconds))
        for name, count, seconds in zip(CLASSES, IN_NATION, of_class, strict=True)
    ]
    return costs[1:], late


def row(cost):
    low, high = (1e3 * bound for bound in cost.interval())
    hours = cost.mean * cost.in_nation / 3600
    print(
        f"| {cost.name} | {cost.in_nation:,.0f} | {cost.seconds.size} | {1e3 * cost.mean:.2f} "
        f"| {low:.2f} to {high:.2f} | {hours:.2f} |"
    )


def total(name, costs):
    hours = sum(cost.mean * cost.in_nation for cost in costs) / 3600
    error = np.sqrt(sum((cost.error * cost.in_nation) ** 2 for cost in costs)) / 3600
    fewest = min(cost.seconds.size for cost in costs)
    half = student.isf(0.025, fewest - 1) * error
    print(f"| {name} | | | | | {hours:.2f} ({hours - half:.2f} to {hours + half:.2f}) |")


def print_claims():
    costs, late = measure_claims(ARGUMENTS.seed, ARGUMENTS.claims)
    print("| people of the block | blocks | measured | ms each | 95 % interval | core-hours |")
    print("|---|---|---|---|---|---|")
    for cost in costs:
        row(cost)
    total("verified claims, all blocks with people", costs)
    print(f"blocks that a limit of {LIMIT:g} s left undecided: {late}")


def main():
    if ARGUMENTS.claims:
        print_claims()
        return
    counties, classes, tract = measure(ARGUMENTS.seed, ARGUMENTS.batches, ARGUMENTS.tracts)
    print("| what | in the nation | measured | ms each | 95 % interval | core-hours |")
    print("|---|---|---|---|---|---|")
    for cost in (*counties, *classes, tract):
        row(cost)
    total("blocks alone: reconstruct, bounds", classes)
    total("all steps, blocks alone", [*counties, *classes])
    total("all steps, by tract", [*counties, tract])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=12, help="of ten blocks, of each class")
    parser.add_argument("--tracts", type=int, default=60)
    parser.add_argument("--claims", type=int, default=0, help="only claims: units of each class")
    parser.add_argument("--seed", type=int, default=1)
    ARGUMENTS = parser.parse_args()
    main()
