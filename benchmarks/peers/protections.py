"""Microdata before protection beside sdcMicro in R, and cell keys beside those of the ONS."""

import contextlib
import io
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from peers.comparison import Case, Comparison
from peers.worker import Worker
from test_microdata import KEYS, people

from bayesrisk.mechanisms import make_mechanism
from bayesrisk.risk import first_look
from bayesrisk.tables import Attribute, Geography, Records, Schema, Table, Workload

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

    # The keys that a seed leads to, in the order of the records.
    keyed = frame.assign(record_key=np.random.default_rng(7).integers(_KEYS, size=SOME))

    def theirs():
        with contextlib.redirect_stdout(io.StringIO()):
            return create_perturbed_table(
                keyed, table, ["area"], ["sex", "age"], "record_key", threshold=0
            )

    found = ours().tables.counts["area", "sex * age"].toarray().ravel()
    assert found.tolist() == theirs()["count"].astype(int).tolist()
    return Case(ours, theirs)


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
]
