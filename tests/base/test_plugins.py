"""The one registry of mechanisms, attacks, executors and solvers, and plug-ins that are broken."""

import copy
import os
import subprocess
import sys
import tomllib
from concurrent.futures import Executor
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Protocol, runtime_checkable

import hostile_plugins
import pandas as pd
import pytest
from hostile_plugins import FAILING, released

from bayesrisk import Records, Release, Workload
from bayesrisk._base import plugins
from bayesrisk._base.plugins import Registry
from bayesrisk.constraints.solvers import REGISTRY as SOLVERS, make_solver
from bayesrisk.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    BayesRiskError,
    BayesRiskWarning,
    PluginError,
)
from bayesrisk.experiments.audit.populations import REGISTRY as POPULATIONS
from bayesrisk.experiments.runs.executors import REGISTRY as EXECUTORS, ProcessExecutor
from bayesrisk.mechanisms.registry import REGISTRY as MECHANISMS
from bayesrisk.mechanisms.samplers import REGISTRY as SAMPLERS
from bayesrisk.reconstruction.registry import REGISTRY as ATTACKS
from bayesrisk.risk.audit.attacks import REGISTRY as METHODS, STATEMENTS

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
CONCLUSIONS = [METHODS, STATEMENTS, POPULATIONS]
ALL = [MECHANISMS, SAMPLERS, ATTACKS, EXECUTORS, SOLVERS, *CONCLUSIONS]
MADE = {
    "mechanism": "release", "sampler": "draw", "attack": "run", "executor": "submit",
    "solver": "solve", "method": "weights", "statement": "labels", "population": "__call__",
}  # fmt: skip


@runtime_checkable
class Runner(Protocol):
    def run(self, task, items): ...


class Runs:
    def run(self, task, items):
        return map(task, items)


class Point:
    dist = SimpleNamespace(name="evilpkg", version="1.0")

    def __init__(self, name, found):
        self.name, self.found = name, found

    def load(self):
        if isinstance(self.found, BaseException):
            raise self.found
        return self.found


@pytest.fixture
def points(monkeypatch):
    """Return a list that stands for the plug-ins of other packages, of every kind."""
    listed = []
    monkeypatch.setattr(plugins, "entry_points", lambda **_: listed)
    return listed


@pytest.fixture
def runners():
    own = {"slow": f"{__name__}:Runs"}
    return Registry("runner", builtin=own, protocol=Runner, needs="run()")


def test_the_packages_own_are_listed_once():
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    assert not {each.group for each in ALL} & set(project.get("entry-points", {}))


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.kind)
def test_the_packages_own_load_without_an_installation(each, points):
    assert each.available() == sorted(each.builtin)
    for name in each.builtin:
        factory = EntryPoint(name, each.builtin[name], each.group).load()
        # A rule of an agency is made by a function without parameters.
        made = factory if isinstance(factory, type) or each is POPULATIONS else factory()
        assert hasattr(made, MADE[each.kind])


def test_the_packages_own_are_made_without_a_look_at_other_packages(runners, monkeypatch):
    """Every call that solves something makes a solver, and a look takes longer than many calls."""

    def looked(**_):
        raise AssertionError("read the metadata of every installed package")

    monkeypatch.setattr(plugins, "entry_points", looked)
    runners.register("mine", Runs)
    assert isinstance(runners.make("slow"), Runs)
    assert isinstance(runners.make("mine"), Runs)
    with pytest.raises(AssertionError, match="metadata"):
        runners.make("other")


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.kind)
def test_a_slip_is_answered_with_what_may_be_meant(each):
    name = max(each.builtin, key=len)
    with pytest.raises(ArgumentError, match=rf"{each.kind} must be one of .*Did you mean '{name}'"):
        each.make(name[:-2] + name[-1])
    with pytest.raises(ArgumentError, match=rf"{each.kind} must be one of .*got 'nobody'"):
        each.make("nobody")


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.kind)
def test_a_broken_plug_in_is_skipped_with_a_warning(each, points):
    points.append(Point("broken", RuntimeError("boom")))
    assert "broken" in each.available()
    with (
        pytest.warns(
            BayesRiskWarning, match=r"'broken' \(evilpkg 1\.0\) is skipped: RuntimeError: boom"
        ),
        pytest.raises(ArgumentError, match="cannot be loaded"),
    ):
        each.make("broken")


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.kind)
def test_what_does_not_follow_the_protocol_is_refused(each, points):
    points.append(Point("dictionary", dict))
    with pytest.raises(ArgumentTypeError, match=r"'dictionary' \(evilpkg 1.0\) must have"):
        each.make("dictionary")


def test_a_plug_in_behind_a_broken_one_is_found(runners, points):
    points += [Point("two", RuntimeError("boom")), Point("two", Runs)]
    with pytest.warns(BayesRiskWarning, match="boom"):
        assert isinstance(runners.make("two"), Runs)


def test_a_plug_in_does_not_replace_the_packages_own(points):
    points.append(Point("serial", dict))
    assert EXECUTORS.make("serial", 1).submit(abs, -1).result() == 1


def test_what_is_registered_comes_before_plug_ins(runners, points):
    points.append(Point("mine", dict))
    runners.register("mine", Runs)
    assert isinstance(runners.make("mine"), Runs)


@pytest.mark.parametrize(
    ("name", "factory", "error", "match"),
    [
        ("mine", None, ArgumentTypeError, "factory must be callable"),
        ("", Runs, ArgumentTypeError, "name must be a text"),
        ("slow", Runs, ArgumentError, "package's own runners"),
    ],
)
def test_registering_is_checked(runners, name, factory, error, match):
    with pytest.raises(error, match=match):
        runners.register(name, factory)


def test_arguments_are_checked_before_anything_is_made(runners):
    runners.register("mine", Runs)
    with pytest.raises(ArgumentError, match=r"runner 'mine': too many positional arguments"):
        runners.make("mine", 2)
    with pytest.raises(ArgumentError, match=r"runner mine has no 'speed'; possible: none"):
        runners.make("mine", speed=1)


class Dropping(Runs):
    def __init__(self, drop: float = 0.5, name: str = "", share=0):
        self.drop, self.name, self.share = drop, name, share


def test_decimals_of_a_recipe_are_numbers_where_a_plug_in_asks_for_them(runners):
    runners.register("dropping", Dropping)
    made = runners.make("dropping", drop="0.25", name="0.25", share="0.25")
    assert (made.drop, made.name, made.share) == (0.25, "0.25", "0.25")
    assert runners.make("dropping", drop="half").drop == "half"  # which the plug-in may refuse


def test_a_solver_of_another_package_is_chosen_by_name(points):
    class Guess:
        name = "guess"

        def __init__(self, inner="", *, depth=1):
            self.inner, self.depth = inner, depth

        def solve(self, model, objective, *, limits=None):
            raise NotImplementedError

    points.append(Point("guess", Guess))
    assert make_solver("guess", depth=3).depth == 3
    assert make_solver("guess:well").inner == "well"


# What plug-ins do wrong is named, typed and caught.


def people():
    records = Records.from_frame(pd.DataFrame({"sex": list("FMF") * 4}))
    return records, Workload.of(records.schema, ["sex"])


@pytest.mark.parametrize("name", FAILING)
def test_a_plug_in_that_fails_is_named(name, points):
    factory, message = FAILING[name]
    points.append(Point(name, factory))
    with pytest.raises(BayesRiskError) as found:
        released(MECHANISMS.make(name), *people())
    text = str(found.value)
    assert f"mechanism {name!r} (evilpkg 1.0)" in text
    assert text.count("evilpkg") == 1
    assert message in text
    assert text.isprintable()


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(0),
        hostile_plugins.Stop(),
        hostile_plugins.Gone(),
        StopIteration(),
        GeneratorExit(),
    ],
)
def test_a_plug_in_that_ends_while_it_loads_is_skipped(error, points):
    points.append(Point("ends", error))
    with (
        pytest.warns(BayesRiskWarning, match=rf"'ends' \(.*\) is skipped: {type(error).__name__}"),
        pytest.raises(ArgumentError, match="cannot be loaded"),
    ):
        MECHANISMS.make("ends")


def test_who_is_asked_to_end_ends(points):
    points.append(Point("asked", hostile_plugins.raising(KeyboardInterrupt())))
    with pytest.raises(KeyboardInterrupt):
        released(MECHANISMS.make("asked"), *people())


@pytest.mark.parametrize("factory", [hostile_plugins.Based, hostile_plugins.own])
def test_a_plug_in_behind_the_wall_is_as_before(factory, points):
    points.append(Point("fine", factory))
    made = MECHANISMS.make("fine")
    bare = factory()
    assert isinstance(made, type(bare))
    assert repr(made) == repr(bare)
    assert made.spec == copy.deepcopy(made).spec == bare.spec
    found, wanted = (m.release(people()[0], workload=people()[1], rng=1) for m in (made, bare))
    assert isinstance(found, Release)
    assert found == wanted


def test_the_wall_goes_with_a_plug_in_to_workers(points):
    points.append(Point("praises", hostile_plugins.Praises))
    made = MECHANISMS.make("praises")
    pool = ProcessExecutor(1)
    try:
        future = pool.submit(released, made, *people())
        with pytest.raises(PluginError, match=r"mechanism 'praises' \(evilpkg 1\.0\) failed"):
            future.result()
    finally:
        pool.shutdown()


@pytest.mark.parametrize("factory", [hostile_plugins.Forks, hostile_plugins.ForksAndRaises])
def test_only_one_process_comes_back(factory, points, tmp_path):
    points.append(Point("forks", factory))
    made, process, records = MECHANISMS.make("forks"), os.getpid(), people()
    try:
        made.release(records[0], workload=records[1], rng=1)
        (tmp_path / str(os.getpid())).touch()
    finally:
        if os.getpid() != process:  # a child of a fault: pytest must not run twice
            (tmp_path / str(os.getpid())).touch()
            os._exit(0)
    assert os.waitpid(made.child, 0)[1] != 0
    assert [file.name for file in tmp_path.iterdir()] == [str(process)]


class Takes(Executor):
    def __init__(self, workers):
        self.workers = workers

    def submit(self, fn, /, *args, **kwargs):
        return fn(*args, **kwargs)


class Solves:
    name = "solves"

    def solve(self, model, objective, *, limits=None):
        return {}


class Attacks:
    def __init__(self):
        self.name = "attacks"

    def run(self, release):
        raise SystemExit(0)


@pytest.mark.parametrize(
    ("each", "factory", "call", "message"),
    [
        (EXECUTORS, Takes, lambda made: made.submit(len, ()), "submit.. must return a Future"),
        (
            SOLVERS,
            Solves,
            lambda made: made.solve(None, None),
            "must return a SolverResult",
        ),
        (ATTACKS, Attacks, lambda made: made.run(None), "failed: SystemExit: 0"),
    ],
)
def test_the_wall_is_around_every_kind(each, factory, call, message, points):
    points.append(Point("mine", factory))
    made = each.make("mine", *([1] if each is EXECUTORS else []))
    assert isinstance(made, factory)
    with pytest.raises(PluginError, match=rf"{each.kind} 'mine' \(evilpkg 1\.0\) .*{message}"):
        call(made)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["praises", "exits", "stops", "exhausted", "closed", "deep", "nothing", "alone", "forks"],
)
def test_the_command_names_a_plug_in_and_leaves_nothing(name, tmp_path):
    about = tmp_path / "evilpkg-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: evilpkg\nVersion: 1.0\n")
    attribute = "Forks" if name == "forks" else f"FAILING_{name}"
    (about / "entry_points.txt").write_text(f"[bayesrisk.mechanisms]\n{name} = evil:{attribute}\n")
    (tmp_path / "evil.py").write_text(
        "from hostile_plugins import *\n"
        "globals().update({f'FAILING_{name}': given[0] for name, given in FAILING.items()})\n"
    )
    (tmp_path / "r.csv").write_text("block,sex\n" + "1,F\n2,M\n" * 9)
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1] / "support")])
    command = [sys.executable, "-m", "bayesrisk", "release", "r.csv", "--protection", name]
    done = subprocess.run(
        [*command, "-o", "out", "-q"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": paths},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if name == "forks":
        assert done.returncode == 0
        assert Release.read(tmp_path / "out").tables.counts["block", "sex"].sum() == 18
        assert done.stdout.count("report:") == 1
        return
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"mechanism '{name}' (evilpkg 1.0) failed: " in done.stderr
    assert "defect" not in done.stderr
    assert {file.name for file in tmp_path.iterdir()} == {"evil.py", about.name, "r.csv"}
