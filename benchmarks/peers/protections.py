"""Protections beside sdcMicro in R, the cell keys of the ONS, and the audit of tau-Argus."""

import contextlib
import io
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from peers.comparison import Case, Comparison
from peers.worker import Worker
from test_microdata import KEYS, people

from bayesrisk.mechanisms import make_mechanism
from bayesrisk.reconstruction import count_bounds
from bayesrisk.release import SuppressedCounts
from bayesrisk.risk import first_look
from bayesrisk.tables import Attribute, Geography, PublishedTables, Records, Schema, Table, Workload

SOME = 200_000


def uniques_sdcmicro() -> Case:
    frame = people(SOME)
    script = Path(__file__).parent / "uniques.R"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "keys.csv"
        frame[KEYS].to_csv(file, index=False)
        worker = Worker([shutil.which("Rscript"), str(script)], str(file))
        found = int(worker.ask("count"))

    def ours():
        return first_look(frame, keys=KEYS)

    assert int(ours().unique.sum()) == found
    return Case(ours, lambda: worker.ask("count"))


_AGES, _KEYS, _ROWS, _CYCLE = 90, 256, 750, 250
_PLACES = Geography("areas", ("area",), (3,))
_SCHEMA = Schema("people", (Attribute("sex", 2), Attribute("age", _AGES)), _PLACES)


def cell_keys_ons() -> Case:
    from cell_key_perturbation.create_perturbed_table import create_perturbed_table

    rng = np.random.default_rng(1)
    sexes, ages, areas = 2, _AGES, 100
    frame = pd.DataFrame(
        {
            "area": [f"{area:03d}" for area in rng.integers(areas, size=SOME)],
            "sex": rng.integers(sexes, size=SOME),
            "age": rng.integers(ages, size=SOME),
        }
    )
    changes = np.maximum(
        rng.integers(-4, 5, size=(_ROWS, _KEYS)), -np.arange(1, _ROWS + 1)[:, None]
    )
    count, key = (part.ravel() for part in np.indices(changes.shape))
    table = pd.DataFrame({"pcv": count + 1, "ckey": key, "pvalue": changes.ravel()})
    cells = tuple(f"{sex} {age}" for sex in range(sexes) for age in range(ages))
    factors = {
        "sex": np.repeat(np.eye(sexes, dtype=int), ages, axis=0),
        "age": np.tile(np.eye(ages, dtype=int), (sexes, 1)),
    }
    asked = Workload(_SCHEMA, {("area", "sex * age"): Table("sex * age", cells, factors)})
    records = Records.from_frame(frame, schema=_SCHEMA)
    mechanism = make_mechanism("cell-key", ptable=table, keys=_KEYS, repeat=_CYCLE)

    def ours():
        return mechanism.release(records, workload=asked, rng=7, places="occupied")

    # The keys that a seed leads to, in the order of places and kinds.
    keyed = frame.sort_values(["area", "sex", "age"], kind="stable")
    keyed["record_key"] = np.random.default_rng(7).integers(_KEYS, size=SOME)

    def theirs():
        with contextlib.redirect_stdout(io.StringIO()):
            return create_perturbed_table(
                keyed, table, ["area"], ["sex", "age"], "record_key", threshold=0
            )

    found = ours().tables.counts["area", "sex * age"].toarray().ravel()
    assert found.tolist() == theirs()["count"].astype(int).tolist()
    return Case(ours, theirs)


def intervals_tau_argus() -> Case:
    return _intervals((6, 8), 120)


def more_intervals_tau_argus() -> Case:
    return _intervals((8, 10), 200)


def still_more_intervals_tau_argus() -> Case:
    return _intervals((10, 12), 300)


def many_intervals_tau_argus() -> Case:
    return _intervals((25, 40), 3000)


def _intervals(sizes: tuple[int, int], number: int) -> Case:
    from pytauargus import protect

    rng, names = np.random.default_rng(1), ("industry", "region")
    people: dict[str, list] = {
        name: [f"{code:02d}" for code in rng.integers(size, size=number)]
        for name, size in zip(names, sizes, strict=True)
    }
    people["one"] = [1.0] * number
    with tempfile.TemporaryDirectory() as folder:
        # Counts below 3 are withheld, and as few others as it takes.
        made = protect(people, list(names), response="one", safety_rules="FREQ(3,30)",
                       suppress="OPT(1)", workdir=folder)  # fmt: skip
        rows = made.tables[0].rows
    shape = tuple(size + 1 for size in sizes)
    counts = np.array([row["one"] for row in rows], int).reshape(shape)
    withheld = np.array([row["status"] in ("U", "M") for row in rows]).reshape(shape)
    # The least that theirs expects of a cell is the least count of the table: here 0, as in ours.
    assert counts.min() == 0
    schema = Schema("p", tuple(map(Attribute, names, sizes)), Geography("g", ("area",), (1,)))
    work = Workload.of(schema, [(), *[(name,) for name in names], names])

    def parts(whole):
        pieces = whole[:1, :1], whole[1:, 0], whole[0, 1:], whole[1:, 1:]
        return [piece.reshape(1, -1) for piece in pieces]

    def stored(whole):
        return dict(zip(work.tables, map(sp.csr_array, parts(whole)), strict=True))

    laws = dict.fromkeys(work.tables, SuppressedCounts())
    hidden = np.where(withheld, 0, counts)
    tables = PublishedTables(work, {"area": ["1"]}, stored(hidden), stored(withheld), laws)

    def ours():
        return count_bounds(tables)

    found = ours().counts
    at = np.concatenate([part.ravel() for part in parts(np.arange(counts.size).reshape(shape))])
    ends = dict(zip(at.tolist(), zip(found["low"], found["high"], strict=True), strict=True))
    audited = {row["cell"]: (row["min"], row["max"]) for row in made.engine.audit(0)}
    assert set(audited) == set(np.flatnonzero(withheld).tolist())
    assert all(ends[cell] == interval for cell, interval in audited.items())
    return Case(ours, lambda: made.engine.audit(0))


ALL = [
    Comparison(
        "Records that are alone with their keys",
        "risk.first_look",
        "sdcMicro, `freqCalc`",
        ("R:sdcMicro",),
        "as many records",
        "ours also looks at every smaller set of keys",
        uniques_sdcmicro,
    ),
    Comparison(
        "Counts perturbed by cell keys",
        'make_mechanism("cell-key")',
        "cell-key-perturbation of the ONS, `create_perturbed_table`",
        ("cell-key-perturbation",),
        "every count, from the same keys and table",
        "theirs also withholds counts below a threshold; ours makes any number of tables together",
        cell_keys_ons,
    ),
    *(
        Comparison(
            f"Intervals of the {number} cells withheld from a table of {size} counts",
            "reconstruction.count_bounds",
            "tau-Argus, `OPT` and then its audit",
            ("pytauargus",),
            "both ends of every withheld cell",
            "theirs audits one table by linear programs, and chose the cells; ours bounds the "
            "counts of any tables together, in whole numbers, and checks every end",
            make,
        )
        for number, size, make in (
            (23, "6 by 8", intervals_tau_argus),
            (42, "8 by 10", more_intervals_tau_argus),
            (59, "10 by 12", still_more_intervals_tau_argus),
            (374, "25 by 40", many_intervals_tau_argus),
        )
    ),
]
