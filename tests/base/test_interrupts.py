"""Commands that are asked to end at any moment: while modules load, kernels compile, shards run."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from figures import quick_figures
from writing_cases import SWEEP, commands, content, inputs, leftovers, run

from bayesrisk._base import interrupts
from bayesrisk.experiments.sweep import SweepStudy

_ROOT = Path(__file__).parents[2]


class Drops:
    """Something whose end is a callback from C: what is raised there is dropped."""

    def __init__(self, number):
        self.number = number

    def __del__(self):
        signal.raise_signal(self.number)


def becomes_an_error(number):
    try:
        signal.raise_signal(number)
    except KeyboardInterrupt as error:
        raise TypeError("Cannot compare structured arrays") from error


def is_caught(number):
    with contextlib.suppress(BaseException):
        signal.raise_signal(number)


def test_what_numpy_prints_of_a_request_is_dropped_and_nothing_else(capsys, monkeypatch):
    """As PyErr_Print does where NumPy's C interface cannot be loaded."""
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)

    def loads():
        sys.excepthook(ValueError, ValueError("another"), None)
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            sys.excepthook(*sys.exc_info())
            raise ImportError("numpy._core.multiarray failed to import") from None

    with pytest.raises(SystemExit) as end, interrupts.heeded():
        loads()
    assert end.value.code == 128 + signal.SIGTERM
    assert capsys.readouterr().err == "ValueError: another\nbayesrisk: interrupted\n"
    assert sys.excepthook is sys.__excepthook__


@pytest.mark.parametrize(
    ("happens", "number"),
    [
        (becomes_an_error, signal.SIGTERM),
        (is_caught, signal.SIGINT),
        (Drops, signal.SIGTERM),
    ],
)
def test_what_became_of_a_request_is_no_failure_of_a_shard(happens, number, tmp_path, monkeypatch):
    (tmp_path / "sweep.toml").write_text(SWEEP)
    line = ["sweep", tmp_path / "sweep.toml", "-q", "-o"]
    compute = SweepStudy.compute

    def asked(self, shard):
        if shard == 0:
            happens(number)
        return compute(self, shard)

    monkeypatch.setattr(SweepStudy, "compute", asked)
    with quick_figures():
        status, told = run(*line, tmp_path / "out")
    assert status == 128 + number
    assert told == "bayesrisk: interrupted; finished shards are kept, go on with --resume\n"
    assert not (tmp_path / "out" / "failed").exists()
    kept = [file.name for file in (tmp_path / "out" / "parts").glob("*.parquet")]
    assert kept == ([] if happens is becomes_an_error else ["part-000000.parquet"])
    monkeypatch.setattr(SweepStudy, "compute", compute)
    with quick_figures():
        assert run(*line, tmp_path / "out", "--resume") == (0, "")
        assert run(*line, tmp_path / "whole") == (0, "")
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_a_request_that_was_dropped_is_repeated(monkeypatch):
    def waits(*_, **__):
        is_caught(signal.SIGTERM)
        for _ in range(300):
            time.sleep(0.1)
        raise AssertionError("nothing happened")

    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]
    monkeypatch.setattr("bayesrisk.census.population_spec", waits)
    status, told = run("census", "simulate", "--preset", "tract", "-o", "nowhere", "--seed", "1")
    assert (status, told) == (143, "bayesrisk: interrupted\n")
    after = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]
    assert after == before


@pytest.mark.parametrize(
    ("module", "number"),
    [
        ("typer", signal.SIGINT),
        ("numpy", signal.SIGTERM),
        ("llvmlite", signal.SIGTERM),
    ],
)
def test_while_modules_are_being_loaded(module, number):
    code = (
        "import signal, sys\n"
        "class Asks:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        f"            signal.raise_signal({int(number)})\n"
        "sys.meta_path.insert(0, Asks())\n"
        "sys.argv = ['bayesrisk', 'risk', '--rho', '0.1', '--prior', '0.1', '3']\n"
        "from bayesrisk.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (128 + number, "")
    assert done.stderr == "bayesrisk: interrupted\n"


def test_a_second_request_ends_at_once():
    code = (
        "import signal, sys, threading, time\n"
        "from bayesrisk._base import interrupts\n"
        "with interrupts.heeded():\n"
        "    try:\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    finally:\n"
        "        signal.raise_signal(signal.SIGINT)\n"  # sent twice, as some programs do
        "        print('tidies up', flush=True)\n"
        "        threading.Timer(1.5, signal.raise_signal, [signal.SIGINT]).start()\n"
        "        time.sleep(60)\n"
    )
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert time.monotonic() - began < 30
    assert (done.returncode, done.stdout) == (130, "tidies up\n")
    assert done.stderr == "bayesrisk: ended at once\n"


STUCK = """
import sys
from faulty import StuckStudy
from bayesrisk import run
from bayesrisk._base import interrupts
if __name__ == "__main__":
    with interrupts.heeded():
        run(StuckStudy(sys.argv[1], shards=4), sys.argv[2], workers=2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_workers_that_hold_their_interpreter_end_with_the_command(number, tmp_path):
    """Not even the thread that waits for the end of the parent runs in these workers."""
    (tmp_path / "study.py").write_text(STUCK, encoding="ascii")
    paths = os.pathsep.join(map(str, (_ROOT, _ROOT / "tests" / "support")))
    command = subprocess.Popen(
        [sys.executable, tmp_path / "study.py", tmp_path, tmp_path / "out"],
        env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    workers = []
    try:
        soon(lambda: len([*tmp_path.glob("stuck-*")]) == 2, 120)
        soon(lambda: all(file.read_text() for file in tmp_path.glob("stuck-*")), 5)
        workers = [int(file.read_text()) for file in tmp_path.glob("stuck-*")]
        assert all(map(is_running, workers))
        command.send_signal(number)
        _, text = command.communicate(timeout=20)
        soon(lambda: not any(map(is_running, workers)), 5)
        assert command.returncode == (-number if number == signal.SIGKILL else 128 + number)
        if number != signal.SIGKILL:
            assert text == "bayesrisk: interrupted\n"
    finally:
        for process in filter(is_running, (command.pid, *workers)):
            os.kill(process, signal.SIGKILL)


def soon(question, seconds):
    """Wait until a question is answered by yes."""
    end = time.monotonic() + seconds
    while not question():
        assert time.monotonic() < end
        time.sleep(0.05)


def is_running(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state.split()[0] != "Z"


def started(line, cache):
    """Start a command with kernels of its own to compile."""
    return subprocess.Popen(
        [sys.executable, "-m", "bayesrisk", *line],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(_ROOT), "NUMBA_CACHE_DIR": str(cache)},
    )


@pytest.fixture(scope="module")
def at(tmp_path_factory):
    return inputs(tmp_path_factory.mktemp("inputs"))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", ["sweep", "audit-by", "release-by", "simulate"])
def test_at_any_moment_with_nothing_compiled(name, workers, at, tmp_path):
    command, rng = commands(at)[name], np.random.default_rng([workers, len(name)])
    if not command.resume and workers > 1:
        pytest.skip("it has no workers")
    more = ["--workers", str(workers)] if command.resume else []
    began = time.monotonic()
    process = started([*command.line(tmp_path / "whole"), *more], tmp_path / "compiled")
    assert (process.communicate()[1].count("Traceback"), process.returncode) == (0, 0)
    lasts, whole = time.monotonic() - began, content(tmp_path / "whole")
    ends = []
    for case, moment in enumerate(np.linspace(0.1, lasts, 9)):
        out = tmp_path / f"out-{case}"
        number = [signal.SIGINT, signal.SIGTERM][case % 2]
        process = started([*command.line(out), *more], tmp_path / f"cache-{case}")
        time.sleep(moment * rng.uniform(0.8, 1.0))
        os.killpg(process.pid, number)  # as a terminal and batch systems do
        told = process.communicate(timeout=60)[1]
        # Python itself ends by the signal before the first line of ours, and after the last.
        assert process.returncode in (0, 128 + number, -number), told
        assert "Traceback" not in told or (case == 0 and process.returncode == -number), told
        assert "ignored" not in told
        assert not list(out.rglob("failed"))
        ends.append(process.returncode)
        if command.resume or not out.exists():
            again = started(command.line(out, again=True), tmp_path / "compiled")
            assert (again.communicate()[1].count("Traceback"), again.returncode) == (0, 0)
        assert content(out) == whole
        assert not leftovers(tmp_path)
    assert sum(end != 0 for end in ends) >= 4
