"""A folder in memory, where there is one: files of a few bytes are written thousands of times."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

_MEMORY = "/dev/shm"  # noqa: S108  # the folder in it is one's own, with a random name


@contextlib.contextmanager
def quick_folder():
    """Make a folder, and delete it at the end."""
    place = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
