import signal

from hypothesis import settings

# A shell that starts the tests in the background ignores Ctrl-C for all below it: commands that
# tests interrupt must hear it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples every time: a failure must be one that anybody can run again.
settings.register_profile("bayesrisk", derandomize=True, deadline=None, database=None)
settings.load_profile("bayesrisk")


def pytest_addoption(parser):
    parser.addoption("--fuzz-files", type=int, default=2000, help="damaged files to read")
    parser.addoption("--fuzz-calls", type=int, default=400, help="hostile calls to make")
    parser.addoption("--fuzz-flips", type=int, default=12, help="bits to flip, per command")
    parser.addoption("--fuzz-kills", default="3", help="points to stop at, per command; or all")
    parser.addoption("--fuzz-seed", type=int, default=1, help="which bits, and which points")
