"""The core knows no wing: by syntax, and by what a process that does not ask for one loads."""

import json
import subprocess
import sys
from pathlib import Path

import bayesrisk
from bayesrisk._base.wings import wing_points
from bayesrisk.risk.audit import METHODS

ROOT = Path(bayesrisk.__file__).parent
#: Commands call the package by its public names, as users do; the last zone.
CORE = sorted(
    ".".join(("bayesrisk", *file.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for file in ROOT.rglob("*.py")
    if file.relative_to(ROOT).parts[0] not in ("census", "cli", "__main__.py")
)
TABLE = "sex,age,count\nF,young,3\nF,old,1\nF,Total,4\nM,young,2\nM,old,0\nM,Total,2\n"

PROGRAM = """
import importlib, json, sys
from pathlib import Path
import numpy as np, pandas as pd

names, table, folder = json.loads(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
for name in names:
    importlib.import_module(name)
import bayesrisk as br
from bayesrisk.tables.reading.reading import read
from bayesrisk.tables.sheets.sheet import file_sheet

def loaded():
    return sorted(n for n in sys.modules if n.startswith("bayesrisk.census"))

steps = {"imports": loaded()}
reading = read([file_sheet(Path(table))], {"counts": "exact"}).accepted()
br.attack(reading, folder / "attack", seed=1, time_limit=60.0, proofs=1)
steps["attack"] = loaded()
frame = pd.DataFrame({"place": list("aabb") * 4, "sex": list("FM") * 8, "ill": list("NNNY") * 4})
schema = br.Schema.from_frame(frame, place="place")
study = br.experiments.AuditStudy(
    br.Records.from_frame(frame, schema=schema), br.Workload.of(schema),
    protections=[br.experiments.Protection(t) for t in ("identity", "rounding:base=3")],
    adversaries=[br.risk.audit.Adversary("linker", ("sex",))], stated=["ill"], releases=2,
    methods=("posterior", "reconstruction", "majority", "claims"),
)
summary = br.experiments.run(study, folder / "audit")
assert summary.complete and summary.statements > 0
steps["audit"] = loaded()
br.reconstruction.make_attack("occupancy")
steps["by name"] = loaded()
print(json.dumps(steps))
"""


def test_the_core_runs_without_a_wing(tmp_path):
    """Every module, an attack on a small CSV and an audit of records; then the wing by a name."""
    table = tmp_path / "table.csv"
    table.write_text(TABLE)
    arguments = [json.dumps(CORE), str(table), str(tmp_path)]
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    steps = json.loads(ran.stdout.splitlines()[-1])
    assert {name: steps[name] for name in ("imports", "attack", "audit")} == {
        "imports": [], "attack": [], "audit": [],
    }  # fmt: skip
    assert "bayesrisk.census.occupancy.detection" in steps["by name"]
    assert len(CORE) > 150


def test_a_wing_is_chosen_by_names_alone():
    assert METHODS[:4] == ("posterior", "reconstruction", "majority", "claims")
    assert set(wing_points()["bayesrisk.methods"]) <= set(METHODS[4:])
    for file in ROOT.rglob("*.py"):
        if file.relative_to(ROOT).parts[0] != "census":
            text = file.read_text(encoding="utf-8")
            assert "import bayesrisk.census" not in text, file
            assert "from bayesrisk.census" not in text, file
            assert "br.census" not in text, file
