"""The warmup command: every kernel is compiled, once, and kept; or one line says why not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayesrisk._base import compiling
from bayesrisk.cli.app import app
from bayesrisk.cli.setup import EXAMPLES

#: Runs the examples, then loads every module: a kernel that no example uses is in one of them.
EVERY_KERNEL = """
import importlib, json, pkgutil, sys
import bayesrisk
from bayesrisk._base import compiling
from bayesrisk.cli.setup import EXAMPLES

sys.path.insert(0, FOLDER)
from test_warmup import unused_kernels

for call in EXAMPLES.values():
    call()
for module in pkgutil.walk_packages(bayesrisk.__path__, "bayesrisk."):
    if module.name != "bayesrisk.__main__":
        importlib.import_module(module.name)
print(json.dumps([len(compiling.DECLARED), unused_kernels()]))
"""
REFUSED = """
import sys
from numba.core import caching

def refuse(self):
    raise OSError("read-only file system")

for name, locator in vars(caching).items():
    if "ensure_cache_path" in getattr(locator, "__dict__", {}):
        locator.ensure_cache_path = refuse
sys.argv = ["bayesrisk", "warmup"]
from bayesrisk.cli.app import main
main()
"""


def python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


def unused_kernels():
    """Return the names of what was declared, and neither called here nor part of what was.

    Whoever compiles a kernel compiles those that it calls.
    """
    called = [python_of(made) for made in compiling.DECLARED if is_ready(made)]
    ready = {id(python_of(part)) for made in called for part in compiling.parts(made)}
    functions = [python_of(made) for made in compiling.DECLARED]
    missing = [function for function in functions if id(function) not in ready]
    return [f"{function.__module__}.{function.__qualname__}" for function in missing]


def is_ready(made):
    if isinstance(made, compiling._Elementwise):
        return "_ufunc" in vars(made)
    return bool(getattr(made, "overloads", True))  # True where Numba is switched off


def python_of(made):
    if isinstance(made, compiling._Elementwise):
        return made._function
    return getattr(made, "py_func", made)


@pytest.mark.slow
def test_no_kernel_of_the_package_is_left_out():
    done = python(f"FOLDER = {str(Path(__file__).parent)!r}\n{EVERY_KERNEL}")
    assert done.returncode == 0, done.stderr
    declared, unused = json.loads(done.stdout)
    assert unused == []
    assert declared > 50


def test_a_kernel_that_nobody_calls_is_named_and_its_parts_with_it(monkeypatch):
    monkeypatch.setattr(compiling, "DECLARED", [])
    monkeypatch.setitem(globals(), "part", compiling.kernel(one_more))
    monkeypatch.setitem(globals(), "other", compiling.elementwise("float64(float64)")(one_less))
    whole = compiling.kernel(twice_one_more)
    here = f"{__name__}."
    all_three = [here + "one_more", here + "one_less", here + "twice_one_more"]
    assert unused_kernels() == all_three
    assert whole(3) == 8
    assert unused_kernels() == [here + "one_less"]
    assert other(3.0) == 2.0  # noqa: F821 - set above
    assert unused_kernels() == []


def one_more(x):
    return x + 1


def one_less(x):
    return x - 1


def twice_one_more(x):
    return 2 * part(x)  # noqa: F821 - set by the test


@pytest.fixture
def two_kernels(monkeypatch):
    """Let warmup compile a law alone: seconds instead of a minute."""
    monkeypatch.setattr("bayesrisk.cli.setup.EXAMPLES", {"noise": EXAMPLES["noise"]})


def test_the_second_time_nothing_is_left(two_kernels):
    runner = CliRunner()
    first = json.loads(runner.invoke(app, ["warmup", "--json"]).stdout)
    assert set(first) == {"kernels", "compiled", "seconds", "folder"}
    again = runner.invoke(app, ["warmup"])
    assert again.exit_code == 0
    assert again.stdout.startswith("nothing was left to compile: ")
    assert again.stdout.endswith(f"kept in {first['folder']}\n")
    assert "warmup: 1 of 1 groups" in again.stderr
    assert runner.invoke(app, ["warmup", "--quiet"]).stderr == ""


@pytest.mark.slow
def test_kernels_are_kept_where_they_are_asked_to_be(tmp_path):
    code = (
        "import sys; sys.argv = ['bayesrisk', 'warmup', '--json']\n"
        "from bayesrisk.cli.app import main\n"
        "from bayesrisk.cli.setup import EXAMPLES\n"
        "[EXAMPLES.pop(name) for name in list(EXAMPLES) if name != 'noise']; main()\n"
    )
    runs = [json.loads(python(code, NUMBA_CACHE_DIR=str(tmp_path)).stdout) for _ in range(2)]
    assert [run["compiled"] > 0 for run in runs] == [True, False]
    assert all(run["folder"].startswith(str(tmp_path)) for run in runs)
    assert runs[0]["compiled"] == len(list(tmp_path.rglob("*.nbc")))


def test_where_nothing_can_be_kept_one_line_says_so_and_nothing_is_compiled_in_vain():
    done = python(REFUSED)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "nothing was compiled ahead: compiled kernels cannot be kept\n"
    lines = [line for line in done.stderr.splitlines() if "groups" not in line]
    assert len(lines) == 1
    assert lines[0].startswith("bayesrisk: warning: compiled kernels cannot be written to disk")
    assert "NUMBA_CACHE_DIR" in lines[0]
