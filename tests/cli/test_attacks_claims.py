"""``bayesrisk attack --only claims`` as a user runs it: files, resuming, an interrupt, refusals."""

import json

import numpy as np
import pandas as pd
import pytest
from studies import run_claims

from bayesrisk import PublishedTables, datasets as samples, tabulate
from bayesrisk.experiments.runs.folder import RunFolder
from bayesrisk.reconstruction import find_claims
from bayesrisk.tables import Workload

pytestmark = pytest.mark.usefixtures("quick_figures")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    data = samples.load_microdata("fifty-blocks")
    chosen = data.blocks.loc[data.blocks["chosen"], "block"].to_numpy(dtype="U15")[:5]
    own = data.households.take(np.flatnonzero(np.isin(data.households.geoids, chosen)))
    folder = tmp_path_factory.mktemp("tables") / "T"
    tabulate(own, Workload.named("household-dhc")).write(folder)
    return folder


COMMAND = (
    "attack",
    "--only",
    "claims",
)


def test_the_files_hold_what_the_function_returns(tables, tmp_path, run):
    out = tmp_path / "out"
    status, text, _ = run(tables, "-o", out, "--columns", "size, race", "-q")
    assert status == 0
    found = find_claims(PublishedTables.read(tables), columns=["size", "race"])
    stored = pd.read_parquet(out / "claims.parquet")
    assert stored["multiplicity"].tolist() == found.claims["multiplicity"].tolist()
    assert stored["size"].astype("Int16").equals(found.claims["size"])
    assert stored["status"].unique().tolist() == ["verified"]
    blocks = pd.read_parquet(out / "blocks.parquet")
    assert blocks["records"].tolist() == found.blocks["records"].tolist()
    summary = json.loads((out / "summary.json").read_text())
    assert summary["complete"]
    assert summary["claims"] == len(found.to_frame(readable="here"))
    assert f"{summary['claims']} claims are proved" in text
    covered = found.covered().groupby("columns")["covered"].sum()
    assert [line["singleton_records"] for line in summary["coverage"]] == covered.tolist()


def test_a_complete_run_counts_its_parts_once(tables, tmp_path, monkeypatch):
    read, kinds = RunFolder.read_part, []

    def counted(folder, shard, kind):
        kinds.append(kind)
        return read(folder, shard, kind)

    monkeypatch.setattr(RunFolder, "read_part", counted)
    summary = run_claims(tables, tmp_path / "out", max_columns=3)
    assert kinds.count("coverage") == kinds.count("examples") == summary.shards
    told = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert {name: getattr(summary, name) for name in told} == told
    assert [line["columns"] for line in told["coverage"]] == [1, 2, 3]  # more were not searched


def test_contradictions_are_shown(tables, tmp_path, run):
    frame = PublishedTables.read(tables)
    counts = dict(frame.counts)
    wrong = counts["block", "H6"].tolil()
    race = int(wrong[[0]].toarray().argmax())
    wrong[0, race] = wrong[0, race] + 1
    counts["block", "H6"] = wrong.tocsr()
    folder = tmp_path / "T"
    PublishedTables(frame.workload, frame.geoids, counts).write(folder)
    status, text, _ = run(folder, "-o", tmp_path / "out", "--max-columns", 2, "-q")
    assert status == 0
    assert "1 contradictory, 4 decided" in text
    assert "no records fit: contradict each other: " in text
    assert "H6_0" in text


def test_json(tables, tmp_path, run):
    status, text, err = run(
        tables, "-o", tmp_path / "o", "--json", "--max-columns", 2, "--time-limit", "1/1000000"
    )
    assert (status, err) == (0, "")
    document = json.loads(text)
    assert document["shards"] == 5  # a block each, so that a bar moves and workers help
    assert set(document["statuses"]) <= {"decided", "undecided", "unknown"}


def test_a_rule_of_withholding_is_used_unless_it_is_not_known(tmp_path, run):
    """Three women in all and one of them withheld because she is one or two."""
    from range_cases import publish

    from bayesrisk.release import SuppressedCounts
    from bayesrisk.tables import Attribute, Geography, Schema, Table

    schema = Schema("flat", (Attribute("sex", 2),), Geography("flat", ("block",), (3,)))
    total = Table("N", ("N_0",), {})
    cells = Table("A", ("A_0", "A_1"), {"sex": np.eye(2, dtype=int)})
    laws, hidden = [None, SuppressedCounts(1, 2)], [False, True, True]
    publish(schema, [total, cells], laws, [3, 0, 0], hidden).write(tmp_path / "T")
    for options, verified in (([], 2), (["--no-rule"], 0)):
        out = tmp_path / f"out{verified}"
        status, _, _ = run(tmp_path / "T", "-o", out, "-q", *options)
        assert status == 0
        claims = pd.read_parquet(out / "claims.parquet")
        assert len(claims) == verified
        assert json.loads((out / "config.json").read_text())["known_rule"] == (not options)
    stored = pd.read_parquet(tmp_path / "out2" / "claims.parquet")
    assert stored["at_least"].tolist() == [True, True]
    assert stored["multiplicity"].tolist() == [1, 1]
