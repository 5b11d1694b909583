from hypothesis import settings

# The same examples every time: a failure must be one that anybody can run again.
settings.register_profile("bayesrisk", derandomize=True, deadline=None, database=None)
settings.load_profile("bayesrisk")


def pytest_addoption(parser):
    parser.addoption("--fuzz-files", type=int, default=2000, help="damaged files to read")
    parser.addoption("--fuzz-calls", type=int, default=400, help="hostile calls to make")
