"""Small worlds to plan for: a few people, three tables and ladders; also as an oracle sees them."""

import numpy as np

from bayesrisk.risk.planning.ladders import Ladder
from bayesrisk.tables import Attribute, Geography, Records, Schema, Table, Workload

RULES = {
    "identity": ("identity", 0), "rounding:base=2,method=nearest": ("nearest", 2),
    "rounding:base=3,method=nearest": ("nearest", 3), "nearest-5": ("nearest", 5),
    "threshold:least=3": ("below", 3), "ranges:edges=[0,1,3,6]": ("ranges", (0, 1, 3, 6)),
    "ranges:edges=[0,3]": ("ranges", (0, 3)), "unpublished": ("nothing", 0),
}  # fmt: skip


def small_world(rng):
    """Return records, workload, places, ladders, limits, and the world and ladders of an oracle."""
    two_levels = rng.random() < 0.4
    places = 2 if two_levels or rng.random() < 0.3 else 1
    sizes = (2, 1) if places == 2 and rng.random() < 0.3 else ((3, 1) if places == 2 else (3, 2))
    if places == 1 and rng.random() < 0.5:
        sizes = (2, 2)
    levels = ("town", "block") if two_levels else ("block",)
    widths = (1, 2) if two_levels else (2,)
    geography = Geography("made up", levels, widths)
    schema = Schema(
        "small", tuple(Attribute(n, s) for n, s in zip("ab", sizes, strict=True)), geography
    )
    kinds = sizes[0] * sizes[1]
    truth = np.zeros((places, kinds), np.int64)
    people = int(rng.integers(1, 9 if places * kinds <= 4 else 7))
    np.add.at(truth, (rng.integers(places, size=people), rng.integers(kinds, size=people)), 1)
    codes = [f"1{i}" for i in range(places)]
    place, kind = (np.repeat(axis, truth.ravel()) for axis in
                   np.divmod(np.arange(truth.size), kinds))  # fmt: skip
    frame = {"block": [codes[i] for i in place], "a": kind // sizes[1], "b": kind % sizes[1]}
    import pandas as pd

    records = Records.from_frame(pd.DataFrame(frame), schema=schema)
    margins = {
        "all": ({}, [set(range(kinds))]),
        "a": ({"a": np.eye(sizes[0], dtype=np.int64)},
              [{i * sizes[1] + j for j in range(sizes[1])} for i in range(sizes[0])]),
        "b": ({"b": np.eye(sizes[1], dtype=np.int64)},
              [{i * sizes[1] + j for i in range(sizes[0])} for j in range(sizes[1])]),
        "ab": ({"a": np.repeat(np.eye(sizes[0], dtype=np.int64), sizes[1], axis=0),
                "b": np.tile(np.eye(sizes[1], dtype=np.int64), (sizes[0], 1))},
               [{i} for i in range(kinds)]),
    }  # fmt: skip
    possible = [(level, name) for level in levels for name in margins]
    chosen = [possible[i] for i in rng.choice(len(possible), size=3, replace=False)]
    if two_levels and not any(level == "block" for level, _ in chosen):
        chosen[0] = "block", "ab"
    factors = {n: (f or {"a": np.ones((1, sizes[0]), np.int64)})
               for n, (f, _) in margins.items()}  # fmt: skip
    work = Workload(schema, {
        (level, name): Table(name, tuple(f"c{i}" for i in range(len(margins[name][1]))),
                             factors[name])
        for level, name in dict.fromkeys(chosen)
    })  # fmt: skip
    ladders, oracle_ladders, tables = [], [], []
    for level, name in work.tables:
        cells = margins[name][1]
        tables.append((cells, level == "town"))
        texts = [str(t) for t in rng.choice(list(RULES)[:-1], size=3, replace=False)]
        texts.append("unpublished")
        rules = [(RULES[text], np.arange(len(cells))) for text in texts]
        if sizes[0] == 3 and name in ("a", "ab"):  # the first two codes of a are one
            groups = np.array([max(min(c) // sizes[1] - 1, 0) for c in cells])
            if name == "ab":
                groups = groups * sizes[1] + np.array([min(c) % sizes[1] for c in cells])
            for text in ("identity", "rounding:base=3,method=nearest"):
                texts.append(f"recode:groups.a=[[0,1]] + {text}")
                rules.append((RULES[text], groups))
        order = rng.permutation(len(texts))
        ladders.append(Ladder(((level, name),), tuple(texts[i] for i in order)))
        oracle_ladders.append([rules[i] for i in order])
    names = [n for n in ("recovered", "sentences", "proved") if rng.random() < 0.6] or ["proved"]
    limits = {n: int(rng.integers(3)) * int(rng.random() < 0.3) for n in names}
    return records, work, codes, ladders, limits, {"truth": truth, "tables": tables}, oracle_ladders
