"""Runs with two workers, stopped in the middle: workers end, parts are whole, the rest is the same.

KILL is what a machine out of memory does to the main process, TERM what a batch system does.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from writing_cases import SWEEP, content, leftovers, run

from bayesrisk import datasets as samples
from bayesrisk.experiments.occupancy_study import OccupancyStudy, synthetic_households
from bayesrisk.tables import Workload, tabulate

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc"),
]
_TESTS = Path(__file__).parents[1]
_SECONDS = 120  # for a start, or an end, on a busy machine

# The command line in small shards, so that there is a middle to stop in; figures are not drawn.
_MAIN = """
import functools

if __name__ == "__main__":
    from writing_cases import quick_figures

    from bayesrisk import experiments
    from bayesrisk.cli.app import main

    for name in ("ClaimsStudy", "ReconstructionStudy", "OccupancyAttackStudy"):
        whole = getattr(experiments, name)
        setattr(experiments, name, functools.partial(whole, blocks_per_shard=1))
    with quick_figures():
        main()
"""


@pytest.fixture(scope="module")
def at(tmp_path_factory):
    """Inputs of some dozens of shards each."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "main.py").write_text(_MAIN)
    (folder / "sweep.toml").write_text(
        SWEEP.replace('["0.1", "0.5"]', "[{log = [0.001, 1.0], points = 60}]")
    )
    households = samples.load_microdata("fifty-blocks").households
    blocks, sizes = np.unique(households.geoids, return_counts=True)
    small = blocks[np.argsort(sizes, kind="stable")[:24]]  # claims about larger ones take long
    chosen = households.take(np.flatnonzero(np.isin(households.geoids, small)))
    tabulate(chosen, Workload.named("household-dhc")).write(folder / "household-tables")
    homes = synthetic_households(OccupancyStudy(seeds=(5,), blocks=60), 5)[0].households
    tabulate(homes, Workload.named("household-occupancy")).write(folder / "occupancy-tables")
    made = folder / "microdata"
    assert run("simulate", "--preset", "tract", "--blocks", "60", "--seed", "1", "-o", made)[0] == 0
    tables = ("--tables", "sf1-block", "-q", "-o", folder / "tables")
    assert run("tabulate", made, *tables)[0] == 0
    return folder


def words(name, at):
    """Return a command line without its output and its workers."""
    study = ("--seeds", "12", "--blocks", "4", "--protection", "none", "--solutions", "2")
    return {
        "sweep": ("sweep", at / "sweep.toml", "-q"),
        "reconstruct": ("reconstruct", at / "tables", "--scope", "block", "-q"),
        "claims": ("claims", at / "household-tables", "--columns", "size", "-q"),
        "occupancy-attack": ("occupancy", "attack", at / "occupancy-tables", "-q"),
        "occupancy-study": ("occupancy", "study", *study, "-q", "--no-figures"),
    }[name]


def started(at, *line):
    """Start a command in a session of its own, by which its workers are known."""
    return subprocess.Popen(
        [sys.executable, str(at / "main.py"), *map(str, line)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": f"{_TESTS.parent}:{_TESTS}"},
    )


def living(session):
    """Return the processes of a session that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, own = stat.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        if int(own) == session and state != "Z":
            found.append(int(stat.parent.name))
    return found


def wait_until(condition):
    end = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def parts(out):
    return [path for path in out.rglob("parts/*.parquet") if path.is_file()]


@pytest.fixture(scope="module", params=["sweep", "reconstruct", "claims", "occupancy-attack",
                                        "occupancy-study"])  # fmt: skip
def undisturbed(request, at, tmp_path_factory):
    """A command, and what it makes when nothing happens."""
    out = tmp_path_factory.mktemp(request.param) / "out"
    process = started(at, *words(request.param, at), "-o", out)
    _, err = process.communicate()
    assert process.returncode == 0, err
    return words(request.param, at), content(out)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_group_that_is_stopped_in_the_middle(undisturbed, at, tmp_path, number):
    line, whole = undisturbed
    out = tmp_path / "out"
    process = started(at, *line, "-o", out, "--workers", "2")
    wait_until(lambda: len(parts(out)) >= 3 or process.poll() is not None)
    workers = set(living(process.pid)) - {process.pid}
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=_SECONDS)
    wait_until(lambda: not living(process.pid))
    assert len(workers) >= 2
    if number == signal.SIGTERM:
        assert process.returncode == 143
        assert "interrupted; finished shards are kept" in err
        assert "Traceback" not in err
    else:
        assert process.returncode == -number
    left = content(out)
    kept = {name for name in left if "/part" in f"/{name}" and name.endswith(".parquet")}
    assert 3 <= len(kept) < sum(name.endswith(".parquet") and "parts/" in name for name in whole)
    assert all(left[name] == whole[name] for name in left if name != "manifest.json")
    again = started(at, *line, "-o", out, "--workers", "2", "--resume")
    _, err = again.communicate(timeout=10 * _SECONDS)
    assert again.returncode == 0, err
    assert content(out) == whole
    assert not leftovers(out)
