"""The least coarse safe rules of the ten towns of the coarsening study, and of a larger town.

    python benchmarks/least_coarse.py towns         the ten towns
    python benchmarks/least_coarse.py towns 10 4    the same under the fourth set of limits alone
    python benchmarks/least_coarse.py hospital      counts withheld from the hospital and resamples
    python benchmarks/least_coarse.py large 60000   so many people (10,000), five tables, two levels

Prints a line for each town and set of limits: the error of a count under the plan, what it proves,
and the gain from the own record; beside it the 10-5 rule.
"""

import sys
import time

import numpy as np
import pandas as pd
from coarsening import TOWN, town

import bayesrisk as br
from bayesrisk.reconstruction import count_bounds
from bayesrisk.risk import Adversary, Ladder, PlanLimits
from bayesrisk.tables import Records, Workload

NEAREST = [f"rounding:base={base},method=nearest" for base in (2, 3, 4, 5, 6, 7, 8, 10)]
RANGES = [f"ranges:edges={edges}" for edges in ([0, 2, 4, 8, 12], [0, 3, 6, 12], [0, 4, 8], [0, 6])]
COUNTS = ["identity", *NEAREST, *RANGES]
MERGED = ["recode:groups.race=[[1,2]] + ", "recode:groups.race=[[0,1,2]] + "]
LADDERS = [
    Ladder((("block", "sex * age"),), (*COUNTS, "unpublished")),
    Ladder((("block", "age * race"),),
           (*COUNTS, *(m + c for m in MERGED for c in COUNTS), "unpublished")),
]  # fmt: skip
LIMITS = {
    "0 records proved, 0 recovered": PlanLimits(proved=0, recovered=0),
    "0 recovered, gain 3.5": PlanLimits(recovered=0, gain=3.5),
    "gain 3.5": PlanLimits(gain=3.5),
    "0 records proved, 0 recovered, gain 3.5": PlanLimits(proved=0, recovered=0, gain=3.5),
}


def towns(number, limit=None):
    linker = Adversary.named("linker", known=["sex", "age"])
    lines = []
    for seed in range(1, number + 1):
        frame = town(seed)
        records = Records.from_frame(frame, schema=TOWN.schema)
        codes = sorted(set(frame["block"]))
        for name, limits in [*LIMITS.items()][slice(limit and limit - 1, limit)]:
            begun = time.perf_counter()
            plan = br.plan(records, TOWN, limits=limits, ladders=LADDERS, adversaries=[linker],
                           stated=["race"], places=codes)  # fmt: skip
            chosen, rows = plan.chosen, plan.frontier.set_index("rule")
            line = {"town": seed, "limits": name, "error": chosen["error"],
                    "withheld": chosen["withheld"], "gain": chosen.get("gain"),
                    "10-5 error": rows.loc["ons-10-5", "error"],
                    "10-5 gain": rows.loc["ons-10-5"].get("gain"),
                    "10-5 proved": rows.loc["ons-10-5", "proved"],
                    "settings": plan.settings, "tried": len(plan.frontier),
                    "seconds": time.perf_counter() - begun, "rules": plan.rules}  # fmt: skip
            lines.append(line)
            print(line, flush=True)
    frame = pd.DataFrame(lines)
    print(frame.drop(columns=["town", "rules"]).groupby("limits", sort=False).mean().to_string())


def hospital():
    """Plan for the hospital and twenty resamples of it: which counts are withheld, all together."""
    from peers.linked import WORK, data_sets, records

    withheld, back, seconds = [], 0, time.perf_counter()
    ladder = {"rules": ["identity", "suppression:threshold=3,fewest=true", "unpublished"]}
    for number, codes in enumerate(data_sets()):
        people = records(codes)
        plan = br.plan(people, WORK, limits={"recovered": 0}, ladders=[ladder])
        tables = plan.release(people).tables
        found = count_bounds(tables).counts
        hidden = np.concatenate([tables.hidden(*key).toarray().ravel() for key in WORK.tables])
        back += int((found["low"] == found["high"]).to_numpy()[hidden].sum())
        withheld.append(int(hidden.sum()))
        print(number, plan.rules["all"]["total"], withheld[-1], "withheld", flush=True)
    print(
        sum(withheld), "counts withheld,", back, "come back to who knows that zeros are published"
    )
    print(f"{time.perf_counter() - seconds:.0f} s")


def large(size=10_000):
    """Plan for a town of so many people, five tables, two levels, four ladders."""
    people = br.simulate_population("county", rng=1).for_schema(br.Schema.named("sf1-person"))
    _, index = people.places()
    sizes = np.bincount(index)
    last = int(np.searchsorted(np.cumsum(sizes), size)) + 1
    home = np.char.add("1", np.char.zfill((np.arange(last) + 1).astype(str), 3))
    rows = np.flatnonzero(index < last)
    frame = pd.DataFrame({
        "block": home[index[rows]], "sex": people.codes("sex")[rows],
        "age": np.minimum(people.codes("age")[rows] // 5, 17),
        "race": np.minimum(people.codes("race")[rows], 3) - 1,
        "hisp": people.codes("hisp")[rows],
    })  # fmt: skip
    from bayesrisk.tables import Attribute, Geography, Schema

    schema = Schema("large town", (
        Attribute("sex", 2), Attribute("age", 18), Attribute("race", 3), Attribute("hisp", 2),
    ), Geography("large town", ("town", "block"), (1, 4)))  # fmt: skip
    records = Records.from_frame(frame, schema=schema)
    tables = [(), ("sex", "age"), ("race", "hisp"), ("age", "race"), ("sex", "race")]
    work = Workload.of(schema, tables, levels=["town", "block"])
    names = [n for level, n in work.tables if level == "block"]
    ladders = [
        {"levels": ["town"], "rules": ["identity", "rounding:base=3,method=nearest", "nearest-5",
                                       "rounding:base=10,method=nearest", "unpublished"]},
        *({"levels": ["block"], "tables": part,
           "rules": ["identity", "rounding:base=3,method=nearest", "nearest-5",
                     *(["recode:groups.age=[0,3,6,9,12,15] + nearest-5"] * ("age" in part[0])),
                     "rounding:base=10,method=nearest", "unpublished"]}
          for part in (names[:1], [n for n in names[1:] if "age" in n],
                       [n for n in names[1:] if "age" not in n])),
    ]  # fmt: skip
    print(len(frame), "people,", last, "blocks,", work, flush=True)
    begun = time.perf_counter()

    def told(tried, left, seconds):
        print(f"{tried} settings, at most {left} left, {seconds:.0f} s", flush=True)

    plan = br.plan(records, work, limits=["recovered=0"], ladders=ladders,
                   places=sorted(home), workers=2, report=told)  # fmt: skip
    print(plan.sentence)
    print(plan.frontier.drop(columns=["rule"]).T.to_string())
    print(f"{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    if sys.argv[1] == "towns":
        towns(*map(int, sys.argv[2:4] or (10,)))
    else:
        {"large": large, "hospital": hospital}[sys.argv[1]](*map(int, sys.argv[2:]))
