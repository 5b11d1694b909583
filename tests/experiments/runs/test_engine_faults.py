"""What goes wrong on the way: nothing finished is lost or done twice, and what failed is named."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from faulty import FaultyStudy, done
from studies import contents

from bayesrisk import run
from bayesrisk.exceptions import ArgumentError, OutputError, ShardError, WorkerError

TESTS = Path(__file__).parents[2] / "support"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX systems")


@pytest.fixture
def notes(tmp_path):
    (tmp_path / "notes").mkdir()
    return tmp_path / "notes"


@pytest.fixture
def expected(tmp_path):
    """What a run without faults comes to."""
    (tmp_path / "no-faults").mkdir()
    run(FaultyStudy(str(tmp_path / "no-faults")), tmp_path / "expected")
    return contents(tmp_path / "expected")


@pytest.mark.parametrize("threads", [1, 3])
def test_a_poisoned_shard_is_set_aside_and_the_rest_ends(tmp_path, notes, expected, threads):
    (notes / "poison-3").touch()
    out, seen = tmp_path / "out", []
    words = r"set aside \(in .*failed\): 3; .* shard 3: Arith"
    study = FaultyStudy(str(notes))
    with ThreadPoolExecutor(threads) as pool, pytest.raises(ShardError, match=words) as e:
        run(study, out, executor=pool, progress=lambda *call: seen.append(call))
    assert isinstance(e.value.__cause__, ArithmeticError)
    assert seen[-1] == (11, 12)
    assert done(notes) == [n for n in range(12) if n != 3]
    listed = json.loads((out / "manifest.json").read_text())
    aside = {"shard": 3, "error": "ArithmeticError: shard 3 does not add up"}
    assert (listed["complete"], listed["failed"]) == (False, [aside])
    assert json.loads((out / "failed" / "shard-000003.json").read_text()).items() >= aside.items()
    with pytest.raises(ShardError, match="shard 3"):  # still poisoned: nothing else is computed
        run(FaultyStudy(str(notes)), out, resume=True)
    assert done(notes) == [n for n in range(12) if n != 3]
    (notes / "poison-3").unlink()
    assert run(FaultyStudy(str(notes)), out, resume=True).complete
    assert done(notes) == list(range(12))
    assert contents(out) == expected


def test_a_study_that_always_fails_is_not_tried_to_the_end(tmp_path, notes):
    for shard in range(50):
        (notes / f"poison-{shard}").touch()
    with pytest.raises(ArithmeticError, match="shard 0 does not add up"):
        run(FaultyStudy(str(notes), shards=50), tmp_path / "out")
    assert len(list((tmp_path / "out" / "failed").iterdir())) == 10


def test_another_machine_leaves_what_failed_alone(tmp_path, notes):
    (notes / "poison-2").touch()
    with pytest.raises(ShardError, match="shard 2"):
        run(FaultyStudy(str(notes)), tmp_path / "out", shard=(1, 2))
    run(FaultyStudy(str(notes)), tmp_path / "out", shard=(2, 2))
    listed = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert [entry["shard"] for entry in listed["failed"]] == [2]


def test_a_full_disk_stops_the_run_and_keeps_what_is_finished(tmp_path, notes, expected):
    (notes / "full-5").touch()
    sync = os.fsync
    try:
        with pytest.raises(OutputError, match=r"part-000005.*No space left on device"):
            run(FaultyStudy(str(notes)), tmp_path / "out")
        assert done(notes) == list(range(6))
        (notes / "full-5").unlink()
        assert run(FaultyStudy(str(notes)), tmp_path / "out", resume=True).computed == 7
    finally:
        os.fsync = sync
    assert done(notes) == sorted([*range(12), 5])  # what could not be written, and no other
    assert contents(tmp_path / "out") == expected


def test_what_is_finished_is_not_computed_again_when_asked_twice(tmp_path, notes):
    from bayesrisk.experiments.runs.engine import _work

    study = FaultyStudy(str(notes))
    study.open(tmp_path / "out").prepare(range(12), resume=False)
    assert [_work(study, str(tmp_path / "out"), 4) for _ in range(2)] == [4, 4]
    assert done(notes) == [4]


@pytest.mark.slow
def test_a_worker_process_that_is_killed_once_costs_nothing(tmp_path, notes, expected):
    for fault in ("kill-once-0", "torn-3"):
        (notes / fault).touch()
    assert run(FaultyStudy(str(notes)), tmp_path / "out", workers=2).complete
    assert [note.name for note in notes.iterdir()] == ["done"]
    assert done(notes) == sorted([*range(12), 3])  # what could not be written, and no other
    assert contents(tmp_path / "out") == expected


@pytest.mark.slow
def test_a_shard_that_always_kills_its_worker_process_is_set_aside(tmp_path, notes, expected):
    (notes / "kill-3").touch()
    (notes / "poison-7").touch()
    study, out = FaultyStudy(str(notes)), tmp_path / "out"
    words = r"2 of the .*failed\): 3, 7; .* shard 3: a worker process ended .* 3 times"
    with pytest.raises(ShardError, match=words) as e:
        run(study, out, workers=2)
    assert isinstance(e.value.__cause__, WorkerError)
    assert done(notes) == [n for n in range(12) if n not in (3, 7)]
    assert [n["shard"] for n in json.loads((out / "manifest.json").read_text())["failed"]] == [3, 7]
    (notes / "kill-3").unlink()
    (notes / "poison-7").unlink()
    assert run(study, out, resume=True).computed == 2
    assert done(notes) == list(range(12))
    assert contents(out) == expected


_UNGUARDED = """
import sys
from faulty import FaultyStudy
from bayesrisk import run

run(FaultyStudy(sys.argv[1]), sys.argv[2], workers=2)
"""


@pytest.mark.slow
def test_workers_that_cannot_begin_end_the_run(tmp_path, notes):
    """A script that starts workers whenever it is imported: no shard is to blame."""
    script = tmp_path / "unguarded.py"
    script.write_text(_UNGUARDED, encoding="utf-8")
    _, said = start(script, notes, tmp_path / "out", stderr=subprocess.PIPE).communicate(
        timeout=200
    )
    assert "WorkerError: a worker process ended" in said
    assert "kept: no worker process could be started" in said
    assert done(notes) == []
    assert not (tmp_path / "out" / "failed").exists()


_RUN = """
import sys
from faulty import FaultyStudy
from bayesrisk import run
from bayesrisk.exceptions import BayesRiskError
from bayesrisk.experiments.runs.executors import DaskExecutor

if __name__ == "__main__":
    address, notes, out, pause, resume = sys.argv[1:]
    study = FaultyStudy(notes, pause=float(pause))
    try:
        with DaskExecutor(2, address=address) as pool:
            run(study, out, executor=pool, resume=resume == "resume")
    except BayesRiskError as error:
        print(type(error).__name__, error)
"""


def start(*command, **options):
    path = os.pathsep.join([str(TESTS), str(TESTS.parents[1]), os.environ.get("PYTHONPATH", "")])
    known = {**os.environ, "PYTHONPATH": path, "DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH": "0"}
    return subprocess.Popen([sys.executable, *map(str, command)], env=known, text=True, **options)


class Cluster:
    """A scheduler and two workers in processes of their own."""

    def __init__(self, folder):
        self.file, self.folder, self.processes = folder / "scheduler.json", folder, []
        self.port = 0

    def begin(self):
        self.file.unlink(missing_ok=True)
        places = ("--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", self.file)
        self.scheduler = self._start("dask_scheduler", "--port", self.port, *places)
        wait_for(lambda: self.file.exists() and self.file.read_text().endswith("}"))
        self.address = json.loads(self.file.read_text())["address"]
        self.port = int(self.address.rpartition(":")[2])  # the same when it comes back
        for number in (1, 2):
            own = self.folder / f"worker-{number}"
            options = ("--nthreads", 1, "--no-dashboard", "--local-directory", own)
            self._start("dask_worker", self.address, *options, "--death-timeout", 10)

    def _start(self, name, *options):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = start("-m", f"distributed.cli.{name}", *options, **quiet, start_new_session=True)
        self.processes.append(process)
        return process

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # with what it started: workers of a nanny
            process.wait()
        self.processes = []


@contextmanager
def cluster(folder):
    made = Cluster(folder)
    try:
        made.begin()
        yield made
    finally:
        made.end()


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def run_on(made, notes, out, *, pause=0.0, resume=""):
    """Run the study on a cluster, and return what it said."""
    script = notes.parent / "run.py"
    script.write_text(_RUN, encoding="utf-8")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return start(script, made.address, notes, out, pause, resume, **pipes)


@pytest.mark.slow
def test_a_shard_that_always_kills_its_worker_is_set_aside(tmp_path, notes, expected):
    (notes / "kill-3").touch()
    (notes / "poison-7").touch()
    with cluster(tmp_path) as made:
        said, _ = run_on(made, notes, tmp_path / "out").communicate(timeout=300)
        assert said.startswith("ShardError 2 of the shards")
        assert "failed): 3, 7; " in said
        assert "shard 3: KilledWorker" in said
        assert done(notes) == [n for n in range(12) if n not in (3, 7)]
        (notes / "kill-3").unlink()
        (notes / "poison-7").unlink()
        client = run_on(made, notes, tmp_path / "out", resume="resume")
        assert client.communicate(timeout=200)[0] == ""
    assert done(notes) == list(range(12))
    assert contents(tmp_path / "out") == expected


@pytest.mark.slow
def test_a_scheduler_that_is_lost_and_comes_back(tmp_path, notes, expected):
    out = tmp_path / "out"
    with cluster(tmp_path) as made:
        client = run_on(made, notes, out, pause=1.0)
        wait_for(lambda: len(done(notes)) >= 3)
        made.end()
        said, log = client.communicate(timeout=200)
        assert said.startswith("WorkerError ")
        assert "Traceback" not in log
        assert "what was finished is kept" in " ".join(said.split())
        kept = done(notes)
        assert 3 <= len(kept) < 12
        made.begin()
        assert run_on(made, notes, out, resume="resume").communicate(timeout=200)[0] == ""
    assert sorted(set(done(notes))) == list(range(12))
    parts = [file.name for file in (out / "parts").iterdir()]
    assert len(parts) == 24  # a shard has its rows and its record
    # A shard may have been computed, and killed before it was written: at most one of each worker.
    assert len(done(notes)) <= 12 + 2
    assert contents(out) == expected


def test_a_scheduler_goes_with_dask(tmp_path):
    from bayesrisk.cli.options import RunOptions

    how = RunOptions(executor="serial", scheduler="tcp://127.0.0.1:1")
    with pytest.raises(ArgumentError, match="--scheduler goes with --executor dask"):
        how.run(FaultyStudy(str(tmp_path)), tmp_path / "out", "faults")
