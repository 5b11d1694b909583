"""Fuzzing is shared out, so that every worker of pytest has something to do until the end."""

import itertools
import math
import os
import shutil
import tempfile
from pathlib import Path

import pytest

_MEMORY = "/dev/shm"  # noqa: S108  # the folder in it is one's own, with a random name


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
    """Make a folder in memory, where there is one: its files are written thousands of times."""
    place = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=place))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
