"""Executors: built-in, registered, and plug-ins that are broken."""

from types import MappingProxyType

import pytest

from bayesrisk.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    BayesRiskWarning,
    MissingDependencyError,
)
from bayesrisk.experiments import executors


def _double(x):
    return 2 * x


def test_serial_keeps_the_order():
    assert list(executors.make_executor("serial", 1).run(_double, [3, 1, 2])) == [6, 2, 4]


@pytest.mark.slow
def test_processes_do_all_the_work():
    runner = executors.make_executor("processes", 2)
    assert sorted(runner.run(abs, range(-20, 0))) == list(range(1, 21))


@pytest.mark.parametrize(
    ("task", "items", "match"),
    [
        (lambda x: x, [1, 2], "task must be something that can be sent"),
        (MappingProxyType({}).get, [1], "task must be .*mappingproxy"),
        (abs, [1, lambda: 2, 3], "item 1 must be something that can be sent"),
    ],
)
def test_what_cannot_be_sent_is_named(task, items, match):
    with pytest.raises(ArgumentTypeError, match=match):
        list(executors.make_executor("processes", 2).run(task, items))


def test_registered_executor(monkeypatch):
    monkeypatch.setattr(executors, "_registered", {})
    executors.register("mine", executors.SerialExecutor)
    assert "mine" in executors.available()
    assert list(executors.make_executor("mine", 1).run(_double, [1])) == [2]
    with pytest.raises(ArgumentError, match="factory must be callable"):
        executors.register("bad", None)


def test_broken_plug_in_is_skipped_with_a_warning(monkeypatch):
    class Broken:
        name = "broken"

        def load(self):
            raise RuntimeError("boom")

    monkeypatch.setattr(executors, "entry_points", lambda **_: [Broken()])
    with (
        pytest.warns(BayesRiskWarning, match="executor 'broken' is skipped: boom"),
        pytest.raises(ArgumentError, match="cannot be loaded"),
    ):
        executors.make_executor("broken", 1)


def test_dask_says_which_extra_it_needs(monkeypatch):
    import sys

    from bayesrisk.experiments.executors_dask import DaskExecutor

    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match=r"bayesrisk\[dask\]"):
        DaskExecutor(1)
