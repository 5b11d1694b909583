"""Marks of tests by where they stand and by what they call, so that none is given by hand.

``fuzz`` and ``whole`` are given to folders, ``whole`` also to what runs a study from end to end,
and ``command`` to what starts the command line or another process.
"""

import functools
import os
import subprocess
import types
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parents[1]
FOLDERS = {"fuzz": "fuzz", "real": "whole", "whole": "whole"}
#: Modules whose names are the command line, or start it.
COMMANDS = {"bayesrisk.cli.app", "subprocess", "typer.testing"}
ENGINE = "bayesrisk.experiments.runs.engine"


def give(items):
    """Give each test its marks."""
    for item in items:
        if mark := FOLDERS.get(item.path.relative_to(TESTS).parts[0]):
            item.add_marker(mark)
        if isinstance(item, pytest.Function):
            fixtures = [known[-1].func for known in item._fixtureinfo.name2fixturedefs.values()]
            for mark in set().union(*map(of_function, [item.function, *fixtures])):
                item.add_marker(mark)


@functools.cache
def of_function(function):
    """Return the marks of what a function names, and of what functions of the tests in it name."""
    marks, todo, known = set(), [function], set()
    while todo:
        function = todo.pop()
        function = getattr(getattr(function, "hypothesis", None), "inner_test", function)
        if id(function) in known or not isinstance(function, types.FunctionType):
            continue
        known.add(id(function))
        names = names_in(function.__code__)
        values = [function.__globals__[name] for name in names & set(function.__globals__)]
        if names & COMMANDS or any(map(starts_command, values)):
            marks.add("command")
        if any(getattr(v, "__module__", "") == ENGINE and v.__name__ == "run" for v in values):
            marks.add("whole")
        todo += [v for v in values if isinstance(v, types.FunctionType) and is_of_tests(v)]
    return marks


def names_in(code):
    """Return the names in a function's code, in those of functions within it too."""
    inner = (part for part in code.co_consts if isinstance(part, types.CodeType))
    return set(code.co_names).union(*map(names_in, inner))


def is_of_tests(function):
    return Path(function.__code__.co_filename).is_relative_to(TESTS)


def starts_command(value):
    """Return whether a value is the command line, or something that starts it or a process."""
    own = getattr(value, "__module__", "") if isinstance(value, type | types.FunctionType) else ""
    return value is subprocess or own in COMMANDS or type(value).__module__.startswith("typer")


def lower_examples(function, most):
    """Let a test of Hypothesis that asks for more examples have the most, and no more."""
    given = function._hypothesis_internal_use_settings
    number = min(given.max_examples, most)
    function._hypothesis_internal_use_settings = settings(given, max_examples=number)


def leave_out_late(item, seconds):
    """Let no test begin where the process, and those it started, used a processor for so long."""
    if seconds is not None and sum(os.times()[:4]) > seconds:
        pytest.skip(f"{item.path.relative_to(TESTS)}: not reached in time; make test runs it")
