"""Runs: killed and resumed, split, damaged, for any number of workers."""

import json
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
from pyarrow import csv
from studies import contents, run_sweep

from bayesrisk.exceptions import BayesRiskWarning, OutputError, PartFileError
from bayesrisk.experiments import read_results
from bayesrisk.experiments.sweep import sweep
from bayesrisk.experiments.sweep_document import parse_config


@pytest.fixture
def config(document):
    return parse_config(document)


def test_a_run_and_its_results(config, tmp_path):
    calls = []
    summary = run_sweep(config, tmp_path / "out", progress=lambda *call: calls.append(call))
    assert (summary.computed, summary.resumed, summary.complete) == (3, 0, True)
    assert calls == [(1, 3), (2, 3), (3, 3)]
    again, frame = read_results(tmp_path / "out")
    assert again == config
    assert len(frame) == config.rows == summary.rows
    pd.testing.assert_frame_equal(sweep(config), frame, check_exact=True)  # without a folder
    table = csv.read_csv(tmp_path / "out" / "results.csv").to_pandas()  # every digit
    pd.testing.assert_series_equal(table["value"], frame["value"], check_exact=True)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["complete"] is True
    assert sum(part["rows"] for part in manifest["parts"]) == config.rows
    assert not list((tmp_path / "out").rglob("*.tmp"))


@pytest.mark.slow
def test_same_bytes_for_any_number_of_workers(config, tmp_path):
    run_sweep(config, tmp_path / "one")
    run_sweep(config, tmp_path / "two", workers=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.slow
def test_same_bytes_on_dask(config, document, tmp_path):
    run_sweep(config, tmp_path / "one")
    # In a process of its own: Dask's threads and sockets outlive their cluster.
    code = (
        "import json, sys\n"
        "from bayesrisk.experiments import run\n"
        "from bayesrisk.experiments.sweep_document import parse_config\n"
        "if __name__ == '__main__':\n"
        "    study = parse_config(json.loads(sys.argv[1]))\n"
        "    run(study, sys.argv[2], workers=2, executor='dask')\n"
    )
    script = tmp_path / "run.py"
    script.write_text(code, encoding="utf-8")
    subprocess.run(
        [sys.executable, str(script), json.dumps(document), str(tmp_path / "dask")],
        check=True,
        capture_output=True,
        timeout=300,
    )
    assert contents(tmp_path / "one") == contents(tmp_path / "dask")


def test_resume_computes_what_is_missing_and_nothing_else(config, tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run_sweep(config, whole)

    class KilledError(Exception):
        pass

    def kill(done, total):
        raise KilledError

    with pytest.raises(KilledError):
        run_sweep(config, broken, progress=kill)
    kept = broken / "parts" / "part-000000.parquet"
    assert kept.exists()
    assert not (broken / "results.csv").exists()
    assert json.loads((broken / "manifest.json").read_text())["complete"] is False
    stamp = kept.stat().st_mtime_ns
    summary = run_sweep(config, broken, resume=True)
    assert (summary.computed, summary.resumed) == (2, 1)
    assert kept.stat().st_mtime_ns == stamp
    assert contents(whole) == contents(broken)


@pytest.mark.slow
def test_a_process_killed_while_it_works_loses_nothing(document, tmp_path):
    document["settings_per_shard"] = 1
    document["grid"]["rho"] = [{"log": [0.001, 1.0], "points": 400}]
    config = parse_config(document)
    code = (
        "import json, sys\n"
        "from bayesrisk.experiments import run\n"
        "from bayesrisk.experiments.sweep import SweepStudy\n"
        "run(SweepStudy.from_dict(json.loads(sys.argv[1])), sys.argv[2])\n"
    )
    out = tmp_path / "out"
    command = [sys.executable, "-c", code, json.dumps(config.to_dict()), str(out)]
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 120.0
    while len(list((out / "parts").glob("*.parquet"))) < 5:
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = config.open(out).finished()
    assert 4 <= len(finished) < config.shards
    summary = run_sweep(config, out, resume=True)
    assert summary.resumed == len(finished)
    assert summary.complete


class TestRefusals:
    """Nothing is overwritten."""

    @pytest.fixture
    def done(self, config, tmp_path):
        run_sweep(config, tmp_path / "done")
        return tmp_path / "done"

    def test_folder_of_another_configuration(self, document, done):
        before = contents(done)
        other = parse_config(document, seed=8)
        for resume in (False, True):
            with pytest.raises(OutputError, match=r"another configuration \(other seed\)"):
                run_sweep(other, done, resume=resume)
        assert contents(done) == before

    def test_folder_with_other_files(self, config, tmp_path):
        (tmp_path / "thesis.txt").write_text("precious", encoding="utf-8")
        with pytest.raises(OutputError, match=r"holds 'thesis.txt'"):
            run_sweep(config, tmp_path, resume=True)
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
        with pytest.raises(OutputError, match="is a file"):
            run_sweep(config, tmp_path / "thesis.txt")

    @pytest.mark.parametrize("keep", [0, 3, 100, -1])
    def test_truncated_part(self, config, done, keep):
        part, sound = done / "parts" / "part-000001.parquet", contents(done)
        part.write_bytes(part.read_bytes()[:keep])
        damaged = contents(done)
        for action in (lambda: run_sweep(config, done), lambda: read_results(done)):
            with pytest.raises(PartFileError, match=r"part-000001\.parquet: is not a whole part"):
                action()
        assert contents(done) == damaged
        with pytest.warns(BayesRiskWarning, match=r"part-000001\.parquet: is not a whole part"):
            assert run_sweep(config, done, resume=True).computed == 1
        assert contents(done) == sound

    def test_foreign_part(self, config, done):
        parts, sound = done / "parts", contents(done)
        (parts / "shard-000001.json").write_bytes((parts / "shard-000002.json").read_bytes())
        with pytest.raises(PartFileError, match="not a part of this sweep"):
            read_results(done)
        with pytest.warns(BayesRiskWarning, match="not a part of this sweep"):
            run_sweep(config, done, resume=True)
        assert contents(done) == sound

    def test_folder_without_a_sweep(self, tmp_path):
        with pytest.raises(OutputError, match="holds no sweep"):
            read_results(tmp_path)
        (tmp_path / "config.json").write_text('{"title": 1}', encoding="utf-8")
        with pytest.raises(OutputError, match=r"not the configuration of a sweep$"):
            read_results(tmp_path)
        (tmp_path / "config.json").write_text('{"title": 1, "version": "0.1.0"}', encoding="utf-8")
        with pytest.raises(OutputError, match=r"config\.json.*'0.1.0' wrote: run it again"):
            read_results(tmp_path)

    def test_damaged_configuration(self, config, done):
        (done / "config.json").write_text("{", encoding="utf-8")
        with pytest.raises(OutputError, match="cannot be read"):
            run_sweep(config, done, resume=True)
