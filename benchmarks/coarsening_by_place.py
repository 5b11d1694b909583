"""Coarsened tables of many blocks of a made-up nation: what they cost, and what they prove.

``python benchmarks/coarsening_by_place.py cost BLOCKS OUT`` reconstructs the records of so many
blocks, county by county in shards of 250, from exact tables and from those of each rule, and
writes a line of processor seconds by county to OUT.  ``proofs BLOCKS OUT NODES [EVERY [ROUNDED]]``
bounds all counts under the rules that publish zeros as they are, of every EVERY-th block (the fifth
by default), with so many NODES of the solver for each component; and under rules that round, of
every ROUNDED-th (500) with 400 nodes.  ``table OUT`` prints a file of such lines.
"""

import json
import resource
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
from coarsening import RULES, UNITS, released, share

import bayesrisk as br
from bayesrisk.census.population.nation import Nation
from bayesrisk.experiments.by_place import select_rows
from bayesrisk.reconstruction import count_bounds, reconstruct
from bayesrisk.tables import PublishedTables

SHARD, SEED, ENOUGH = 250, 1, 400
COST = ["exact", "nearest 3", "nearest 5", "random 3", "ranges", "10-5 rule", "midpoint 6",
        "1 and 2 withheld", "1 to 4 withheld", "1 to 10 withheld"]  # fmt: skip
PROOFS = ["ranges", "midpoint 6", "1 and 2 withheld", "1 to 4 withheld", "1 to 10 withheld"]
STATUSES = ["unique", "feasible", "infeasible", "unknown"]
ROUNDED = ["nearest 3", "nearest 5", "random 3", "10-5 rule"]
WORK = UNITS["persons"][0]


def counties(blocks):
    """Yield the records of counties drawn from a nation, of so many blocks with people in all."""
    nation, left = Nation.scaled(1.0), blocks
    for number in np.random.default_rng(SEED).permutation(nation.counties - 1):
        people = nation.county(int(number), seed=SEED).persons
        codes = np.unique(people.geoids)[:left]
        yield people.take(np.isin(people.geoids, codes))
        left -= codes.size
        if not left:
            return


def shards(tables: PublishedTables):
    """Yield the tables of some blocks after those of others."""
    size = len(tables.geoids["block"])
    for first in range(0, size, SHARD):
        yield select_rows(tables, {"block": np.arange(first, min(first + SHARD, size))})


def made(people, rule):
    """Return the tables of a rule; those of true counts without one."""
    return br.tabulate(people, WORK) if rule == "exact" else released("persons", people, rule, SEED)


def cost(people, rule):
    """Return seconds of the processor, and how many blocks there are of each status."""
    tables, statuses = made(people, rule), Counter()
    start = time.process_time()
    for part in shards(tables):
        statuses.update(reconstruct(part, scope="block").status)
    return {"seconds": time.process_time() - start, **statuses}


def proofs(people, rule, nodes, every=5, rounded=500):
    """Return how many counts there are, and what is proved of them."""
    nodes, every = (ENOUGH, rounded) if rule in ROUNDED else (nodes, every)
    codes = np.unique(people.geoids)[::every]
    people = people.take(np.isin(people.geoids, codes))
    tables, truth, found = made(people, rule), made(people, "exact"), Counter()
    start = time.process_time()
    for part, true in zip(shards(tables), shards(truth), strict=True):
        frame = count_bounds(part, node_limit=nodes).counts
        column = {(key[1], cell): (key, at) for key, table in WORK.tables.items()
                  for at, cell in enumerate(table.cells)}  # fmt: skip
        size = len(part.geoids["block"])
        names = zip(frame["table"][: len(frame) // size], frame["cell"], strict=False)
        dense = {key: counts.toarray() for key, counts in true.counts.items()}
        right = np.stack([dense[key][:, at] for key, at in map(column.get, names)], axis=1).ravel()
        low, high = frame["low"].to_numpy(int), frame["high"].fillna(2**52).to_numpy(int)
        assert ((low <= right) & (right <= high)).all()
        stated = frame["low_stated"].to_numpy(int), frame["high_stated"].fillna(2**52).to_numpy(int)
        coarse = stated[0] < stated[1]
        positive, small = coarse & (right > 0), coarse & (right > 0) & (right <= 2)
        found["coarsened"] += int(positive.sum())
        found["recovered"] += int((positive & (low == high)).sum())
        found["small"] += int(small.sum())
        found["small recovered"] += int((small & (low == high)).sum())
        found["unstated"] += int((positive & (stated[0] == 0)).sum())
        found["at least one"] += int((positive & (stated[0] == 0) & (low > 0)).sum())
        found["zeros"] += int((coarse & (right == 0)).sum())
        found["empty"] += int((coarse & (high == 0)).sum())
        found["undecided"] += int((frame["status"] != "proved").sum())
        once = reconstruct(part, scope="block")
        alone = np.array(once.status) == "unique"
        found["records"] += int(dense["block", "P1"].sum())
        found["proved"] += int(dense["block", "P1"][alone].sum())
        found["blocks"] += size
        found["counts"] += len(frame)
    return {**found, "seconds": time.process_time() - start}


def table(lines):
    """Print what lines say, by rule, of all counties together."""
    rules = dict.fromkeys(line["rule"] for line in lines)
    for rule in rules:
        own = [line for line in lines if line["rule"] == rule]
        seconds = sum(line["seconds"] for line in own)
        if "coarsened" in own[0]:
            own = [line | {"sets": line["coarsened"] + line["zeros"]} for line in own]
            print(rule, *(sum(line[n] for line in own) for n in ("blocks", "coarsened")),
                  share(own, "recovered", "coarsened"), share(own, "small recovered", "small"),
                  share(own, "proved", "records"), share(own, "undecided", "sets"),
                  round(seconds), sep=" | ")  # fmt: skip
        else:
            exact = {line["county"]: line["seconds"] for line in lines if line["rule"] == "exact"}
            own = [line | {"exact": exact[line["county"]], "unique": line.get("unique", 0),
                           "blocks": sum(line.get(name, 0) for name in STATUSES)}
                   for line in own]  # fmt: skip
            blocks = sum(line["blocks"] for line in own)
            print(rule, f"{1000 * seconds / blocks:.2f}", share(own, "seconds", "exact", 1),
                  share(own, "unique", "blocks", 100, 2), blocks, sep=" | ")  # fmt: skip
    print("counties", len({line["county"] for line in lines}), "largest memory, MB",
          max(line["memory"] for line in lines))  # fmt: skip


def main(what, *rest):
    """Measure, or print."""
    if what == "table":
        text = Path(rest[0]).read_text(encoding="utf-8")
        lines = [json.loads(line) for line in text.splitlines()]
        whole = min(Counter(line["rule"] for line in lines).values())  # counties of every rule
        table([line for line in lines if line["county"] < whole])
        return
    blocks, out, *nodes = rest
    measure, rules = cost, COST
    if what == "proofs":
        names = dict(zip(("nodes", "every", "rounded"), map(int, nodes), strict=False))
        measure, rules = partial(proofs, **names), [*PROOFS, *ROUNDED]
    with Path(out).open("w", encoding="utf-8") as stream:
        for county, people in enumerate(counties(int(blocks))):
            for rule in rules:
                if county == 0:  # compiled, and warm
                    some = np.unique(people.geoids)[:10]
                    measure(people.take(np.isin(people.geoids, some)), rule)
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                line = {"county": county, "rule": rule, **measure(people, rule), "memory": memory}
                print(json.dumps(line), file=stream, flush=True)


assert {*COST[1:], *PROOFS, *ROUNDED} <= RULES.keys()
if __name__ == "__main__":
    main(*sys.argv[1:])
