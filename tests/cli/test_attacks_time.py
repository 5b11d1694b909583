"""``bayesrisk attack`` ends with its time, whatever runs then, and keeps what was proved."""

import json
import shutil
import subprocess
import sys
import time

import pandas as pd
import pytest

TABLE = "sex,age,count\n" + "\n".join(
    f"{sex},{age},{text}"
    for sex, texts in (("F", "3 * 5 12"), ("M", "* * 6 15"), ("Total", "7 9 11 27"))
    for age, text in zip(("0-17", "18-64", "65+", "Total"), texts.split(), strict=True)
)
#: What hangs, as the last part of a module's name that holds it.
HANGS = {
    "a step": "bayesrisk.reconstruction.find_claims",
    "proofs": "bayesrisk.reconstruction.prove",
    "bounds": "bayesrisk.reconstruction.count_bounds",
    "reading": "bayesrisk.tables.reading.reading.read",
}
RUN = """
import sys, threading, time
from importlib import import_module
module, _, name = {hangs!r}.rpartition(".")
if module:
    setattr(import_module(module), name, lambda *a, **k: threading.Event().wait(600))
from bayesrisk.cli.app import main
sys.argv = ["bayesrisk", "attack", "table.csv", "-o", "out", "--accept", *{options!r}]
main()
"""


def run(folder, hangs, *options):
    (folder / "table.csv").write_text(TABLE)
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(hangs=hangs, options=options)],
        cwd=folder, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    return done, time.monotonic() - begun


def test_it_may_take_all_the_time(tmp_path):
    done, _ = run(tmp_path, "", "--json", "--time-limit", "none")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "claims.csv").is_file()


@pytest.mark.parametrize(
    "kind", ["a step", *(pytest.param(kind, marks=pytest.mark.slow) for kind in [*HANGS][1:])]
)
def test_it_ends_with_its_time_whatever_hangs_and_keeps_what_was_proved(tmp_path, kind):
    whole = tmp_path / "whole"
    whole.mkdir()
    done, usual = run(whole, "", "--json")
    assert done.returncode == 0
    limit = int(usual) + 3  # on a slow machine loading takes longer, too
    done, seconds = run(tmp_path, HANGS[kind], "--json", "--time-limit", str(limit))
    assert seconds < limit + 10 + usual
    assert done.returncode == 4
    if kind in ("bounds", "reading"):
        assert not (tmp_path / "out" / "bounds.csv").exists()
        return
    names = ["sex", "age", "stated", "low", "high", "status"]
    one, other = (
        pd.read_csv(place / "out" / "bounds.csv", dtype=str)[names].fillna("")
        for place in (whole, tmp_path)
    )
    pd.testing.assert_frame_equal(one.iloc[: len(other)], other)
    answer = json.loads(done.stdout)
    assert answer["bounds"] == len(other) == 12
    assert any("claims" in text for text in answer["sentences"])
    assert "claims" in (tmp_path / "out" / "report.html").read_text("utf-8")
    assert not list((tmp_path / "out").glob(".*"))


def test_one_step_alone_ends_with_its_time_and_goes_on_from_what_was_kept(tmp_path):
    done, usual = run(tmp_path, "", "--only", "bounds")
    assert done.returncode == 0
    whole = (tmp_path / "out" / "bounds.csv").read_bytes()
    shutil.rmtree(tmp_path / "out")
    limit = str(int(usual) + 3)
    late, seconds = run(tmp_path, HANGS["bounds"], "--only", "bounds", "--time-limit", limit)
    assert seconds < int(limit) + 10 + usual
    assert late.returncode == 4
    assert "--time-limit is over" in late.stderr
    assert late.stderr.splitlines()[-1].endswith("finished shards are kept, go on with --resume")
    assert {path.name for path in tmp_path.iterdir()} == {"table.csv", "out"}
    again, _ = run(tmp_path, "", "--only", "bounds", "--time-limit", "300", "--resume")
    assert again.returncode == 0
    assert "--time-limit" not in again.stderr
    assert (tmp_path / "out" / "bounds.csv").read_bytes() == whole
