import gc
import os
import signal

import marks
import pytest
from hypothesis import is_hypothesis_test, settings

# A shell that starts the tests in the background ignores Ctrl-C for all below it: commands that
# tests interrupt must hear it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test cuts the power: what files are worth after that is the disk's affair, and to wait for it a
# few thousand times takes longer than most of what is tested.
os.fsync = lambda _: None

# The same examples every time: a failure must be one that anybody can run again.  Tests that do not
# say how many they need have fewer here than in ``make check-all``; in ``make near`` none has more
# than ten.
QUICK = 10
for name, number in (("bayesrisk", 40), ("thorough", 100), ("quick", QUICK)):
    settings.register_profile(
        name, derandomize=True, deadline=None, database=None, max_examples=number
    )
settings.load_profile("bayesrisk")


def pytest_addoption(parser):
    parser.addoption("--fuzz-files", type=int, default=600, help="damaged files to read")
    parser.addoption("--fuzz-readings", type=int, default=300, help="damaged tables to read")
    parser.addoption("--fuzz-calls", type=int, default=400, help="hostile calls to make")
    parser.addoption("--fuzz-flips", type=int, default=12, help="bits to flip, per command")
    parser.addoption("--fuzz-kills", default="3", help="points to stop at, per command; or all")
    parser.addoption("--seconds", type=float, help="of a processor: after them no test begins")
    parser.addoption("--fuzz-seed", type=int, default=1, help="which bits, and which points")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(config, items):
    marks.give(items)
    if config.getoption("hypothesis_profile", None) == "quick":
        for item in filter(is_hypothesis_test_item, items):
            marks.lower_examples(item.function, QUICK)


def pytest_collection_finish():
    # Modules and ten thousand tests stay.  To look through them for what can go takes a third of a
    # second each time.
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before fixtures are made
def pytest_runtest_setup(item):
    marks.leave_out_late(item, item.config.getoption("seconds"))


def is_hypothesis_test_item(item):
    return isinstance(item, pytest.Function) and is_hypothesis_test(item.function)


@pytest.fixture(scope="module")
def quick_figures():
    """Let the figures of reports be a few bytes: a module whose tests look at none asks for it."""
    from figures import quick_figures

    with quick_figures():
        yield
