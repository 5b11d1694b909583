"""Executors: built-in and registered."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType

import pytest

from bayesrisk._base.randomness import as_finished
from bayesrisk.exceptions import ArgumentTypeError, MissingDependencyError, WorkerError
from bayesrisk.experiments.runs.executors import REGISTRY, DaskExecutor, SerialExecutor


def _double(x):
    return 2 * x


def do(name, workers, task, items):
    with REGISTRY.make(name, workers) as executor:
        return list(as_finished(executor, task, items))


def test_serial_keeps_the_order():
    assert do("serial", 1, _double, [3, 1, 2]) == [6, 2, 4]


def test_serial_does_the_next_when_the_last_was_taken():
    begun = []
    results = as_finished(SerialExecutor(), begun.append, [1, 2, 3])
    next(results)
    assert begun == [1]


def test_an_executor_of_concurrent_futures_will_do():
    with ThreadPoolExecutor(2) as pool:
        assert sorted(as_finished(pool, _double, range(9))) == list(range(0, 18, 2))
        assert pool.submit(_double, 1).result() == 2  # it is left open


def test_what_has_not_begun_is_cancelled_on_leaving():
    begun, release = [], threading.Event()

    def work(number):
        begun.append(number)
        if number:
            release.wait(60)

    with ThreadPoolExecutor(1) as pool:
        results = as_finished(pool, work, range(5))
        next(results)
        threading.Timer(0.2, release.set).start()
        results.close()
    assert len(begun) < 5


def test_a_lost_scheduler_does_not_hold_up_its_client():
    """Futures whose end nobody tells of: one is said to be cancelled, the other to be nothing."""
    futures = []

    class Lost(Executor):
        def submit(self, fn, /, *args, **kwargs):
            futures.append(Future())
            if len(futures) == 2:
                futures[0].cancel()
                futures[0].set_running_or_notify_cancel()
            return futures[-1]

    left = threading.Event()

    def client():
        with pytest.raises(WorkerError, match="was lost before"):
            list(as_finished(Lost(), _double, [1, 2]))
        left.set()

    threading.Thread(target=client, daemon=True).start()
    assert left.wait(20)
    assert futures[1].cancelled()


def test_an_error_is_raised_where_results_are_taken():
    with pytest.raises(ZeroDivisionError):
        do("serial", 1, divide, [0])


def divide(by):
    return 1 / by


@pytest.mark.parametrize(
    ("task", "items", "match"),
    [
        (lambda x: x, [1, 2], "task and items must be something that can be sent"),
        (MappingProxyType({}).get, [1], "must be .*mappingproxy"),
        (abs, [1, lambda: 2, 3], "must be something that can be sent"),
    ],
)
def test_what_cannot_be_sent_is_named(task, items, match):
    with pytest.raises(ArgumentTypeError, match=match):
        do("processes", 2, task, items)


def test_registered_executor(monkeypatch):
    monkeypatch.setattr(REGISTRY, "_registered", {})
    REGISTRY.register("mine", SerialExecutor)
    assert do("mine", 1, _double, [1]) == [2]


def test_dask_says_which_extra_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match=r"bayesrisk-disclosure\[dask\]"):
        DaskExecutor(1)


def _die(_):
    os._exit(9)


def test_a_worker_that_dies_is_an_error_of_ours():
    with pytest.raises(WorkerError, match="ended before its work was done"):
        do("processes", 1, _die, [1, 2])


_PARENT = """
import os, sys, time
from bayesrisk._base.randomness import as_finished
from bayesrisk.experiments.runs.executors import REGISTRY

def work(folder):
    open(os.path.join(folder, str(os.getpid())), "w").close()
    time.sleep(120)

if __name__ == "__main__":
    with REGISTRY.make("processes", 2) as pool:
        list(as_finished(pool, work, [sys.argv[1]] * 4))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is a signal of POSIX systems")
def test_workers_end_with_their_parent(tmp_path):
    script, folder = tmp_path / "parent.py", tmp_path / "pids"
    script.write_text(_PARENT, encoding="utf-8")
    folder.mkdir()
    parent = subprocess.Popen([sys.executable, str(script), str(folder)])
    try:
        wait_until(lambda: len(list(folder.iterdir())) == 2, seconds=120)
    finally:
        parent.kill()
        parent.wait()
    workers = [int(file.name) for file in folder.iterdir()]
    assert len(workers) == 2
    wait_until(lambda: not any(alive(worker) for worker in workers), seconds=30)


def wait_until(condition, *, seconds):
    """Wait for a condition, at most so long; asking again is not what makes it true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


_DASK = """
import pathlib, urllib.error, urllib.request
import distributed
from bayesrisk._base.randomness import as_finished
from bayesrisk.experiments.runs.executors import REGISTRY

if __name__ == "__main__":
    pool = REGISTRY.make("dask", 1)
    results = as_finished(pool, abs, [-1, -2])
    first = next(results)
    client = distributed.get_client()
    [port] = client.run_on_scheduler(lambda dask_scheduler: [dask_scheduler.http_server.port])
    try:
        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/status").status
    except urllib.error.HTTPError as error:
        page = error.code
    print(port, page, sorted([first, *results]))
    pool.shutdown()
"""


@pytest.mark.slow
def test_a_dask_cluster_of_our_own_shows_no_pages(tmp_path):
    script = tmp_path / "cluster.py"
    script.write_text(_DASK, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=200
    )
    port, page, first, second = done.stdout.split()
    assert port != "8787"
    assert page == "404"
    assert (first, second) == ("[1,", "2]")
