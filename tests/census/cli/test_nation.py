"""``bayesrisk census nation`` as a user runs it."""

import json
import uuid

import pandas as pd
from upath import UPath

from bayesrisk.census.studies.nation_attack import EXACT

COMMAND = ("census", "nation")
SMALL = ("--seed", 1, "--scale", "1/20000", "--share", "0.1", "--protection", "nearest-5")


def test_options_reach_the_study(run, tmp_path):
    status, out, _ = run("-o", tmp_path / "run", *SMALL, "--claims", 0)
    assert status == 0
    assert "Made-up data" in out
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["blocks"], config["rules"], config["share"]) == (554, ["nearest-5"], 0.1)
    rows = pd.read_parquet(tmp_path / "run" / "blocks.parquet")
    counts = rows["rule"].value_counts()
    assert set(counts.index) == {EXACT, "nearest-5"}
    assert counts["nearest-5"] == round(0.1 * counts[EXACT])


def test_a_folder_may_be_a_url(run, tmp_path):
    url = f"memory://{uuid.uuid4().hex}/run"
    status, out, _ = run("-o", url, *SMALL, "--json")
    assert (status, json.loads(out)["folder"]) == (0, url)
    run("-o", tmp_path / "run", *SMALL)
    here = (tmp_path / "run" / "blocks.parquet").read_bytes()
    assert (UPath(url) / "blocks.parquet").read_bytes() == here
    status, _, err = run("-o", url, *SMALL)
    assert status == 2
    assert url in err
    assert "--resume" in err
