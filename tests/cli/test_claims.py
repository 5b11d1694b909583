"""``bayesrisk claims`` as a user runs it: files, resuming, an interrupt, refusals."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from studies import run_claims

import bayesrisk.experiments
from bayesrisk import PublishedTables, tabulate
from bayesrisk import datasets as samples
from bayesrisk.cli.app import main
from bayesrisk.exceptions import ArgumentError, DataError, OutputError
from bayesrisk.experiments.reconstruction import ClaimsStudy
from bayesrisk.experiments.runs.folder import RunFolder
from bayesrisk.reconstruction import find_claims
from bayesrisk.tables import Workload


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    data = samples.load_microdata("fifty-blocks")
    chosen = data.blocks.loc[data.blocks["chosen"], "block"].to_numpy(dtype="U15")[:5]
    own = data.households.take(np.flatnonzero(np.isin(data.households.geoids, chosen)))
    folder = tmp_path_factory.mktemp("tables") / "T"
    tabulate(own, Workload.named("household-dhc")).write(folder)
    return folder


@pytest.fixture
def run(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["bayesrisk", "claims", *map(str, arguments)])
        try:
            main()
            status = 0
        except SystemExit as stop:
            status = stop.code or 0
        out, err = capsys.readouterr()
        return status, out, err

    return call


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
    assert f"{summary['claims']} verified claims" in text
    covered = found.covered().groupby("columns")["covered"].sum()
    assert [line["singleton_records"] for line in summary["coverage"]] == covered.tolist()


@pytest.mark.slow
def test_shards_and_workers_do_not_matter(tables, tmp_path):
    one = run_claims(tables, tmp_path / "a", max_columns=3)
    many = run_claims(tables, tmp_path / "b", max_columns=3, blocks_per_shard=2, workers=2)
    assert (one.shards, many.shards) == (5, 3)
    a, b = (pd.read_parquet(tmp_path / name / "claims.parquet") for name in "ab")
    assert a.equals(b)
    assert one.coverage == many.coverage


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


def test_an_interrupted_run_goes_on_where_it_was(tables, tmp_path, monkeypatch):
    work, done = ClaimsStudy.compute, []

    def interrupted(*arguments):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(work(*arguments))
        return done[-1]

    out = tmp_path / "out"
    options = {"columns": ["size", "race"], "blocks_per_shard": 2}
    monkeypatch.setattr(ClaimsStudy, "compute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_claims(tables, out, **options)
    monkeypatch.setattr(ClaimsStudy, "compute", work)
    assert not (out / "claims.parquet").exists()
    with pytest.raises(OutputError, match="holds 2 shards of this run; add --resume"):
        run_claims(tables, out, **options)
    rest = run_claims(tables, out, resume=True, **options)
    assert (rest.computed, rest.resumed, rest.complete) == (1, 2, True)
    run_claims(tables, tmp_path / "whole", **options)
    a, b = (pd.read_parquet(f / "claims.parquet") for f in (out, tmp_path / "whole"))
    assert a.equals(b)
    with pytest.raises(OutputError, match=r"belongs to another configuration \(other columns\)"):
        run_claims(tables, out, columns=["size"], blocks_per_shard=2, resume=True)


def test_an_interrupt_says_how_to_go_on(tables, tmp_path, monkeypatch, run):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(bayesrisk.experiments, "run", interrupted)
    status, _, err = run(tables, "-o", tmp_path / "out", "-q")
    assert status == 130
    assert "go on with --resume" in err


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--columns", "colour"], "columns must be one of tenure"),
        (["--max-columns", "0"], "--max-columns must be"),
        (["--tenure", "half"], "tenure must be one of"),
        (["--solver", "abacus"], "solver must be"),
        (["--workers", "0"], "--workers must be"),
        (["--time-limit", "0"], "--time-limit must be"),
    ],
)
def test_options_out_of_range(tables, tmp_path, run, arguments, message):
    status, _, err = run(tables, "-o", tmp_path / "out", *arguments)
    assert status != 0
    assert message in err
    assert not (tmp_path / "out").exists()


def test_folders_that_are_none(tables, tmp_path):
    with pytest.raises(DataError, match="must be a folder of tables"):
        run_claims(tmp_path / "nowhere", tmp_path / "out")
    with pytest.raises(ArgumentError, match="solver must be a name"):
        run_claims(tables, tmp_path / "out", solver=3)
