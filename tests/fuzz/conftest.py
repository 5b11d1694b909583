"""Fuzzing is shared out, so that every worker of pytest has something to do until the end."""

import itertools
import math

import pytest
from fuzz.memory import quick_folder


def pytest_generate_tests(metafunc):
    """Cut what an option asks for into shares; ``SHARES`` is the option, a size, and the least."""
    if "share" not in metafunc.fixturenames:
        return
    option, size, least = metafunc.module.SHARES
    wanted = metafunc.config.getoption(option)
    if wanted == "all":
        shares = [slice(first, None, size) for first in range(size)]  # every so many points
    else:
        parts = max(least, math.ceil(int(wanted) / size))
        ends = [int(wanted) * part // parts for part in range(parts + 1)]
        shares = [slice(*pair) for pair in itertools.pairwise(ends)]
    metafunc.parametrize("share", shares, ids=[f"from{share.start}" for share in shares])


@pytest.fixture
def quick_path():
    with quick_folder() as folder:
        yield folder
