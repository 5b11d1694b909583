"""Damaged files: a result or an error of our own that names the file, in bounded time and memory.

``--fuzz-files`` says how many; a find is printed with its seed and case, and
``python -m fuzz.files --seed 1 --only CASE`` (PYTHONPATH=.:tests) shows it again.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fuzz.file_kinds import KINDS
from fuzz.files import Bench

SEED = 1
SHARES = ("--fuzz-files", 5000, 2)
TESTS = Path(__file__).parents[1]


def test_damaged_files(share):
    count = share.stop - share.start
    command = [sys.executable, "-m", "fuzz.files", "--seed", str(SEED)]
    command += ["--first", str(share.start), "--count", str(count)]
    path = {"PYTHONPATH": f"{TESTS.parent}:{TESTS}"}
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=TESTS, env={**os.environ, **path}
    )
    assert run.returncode == 0, f"seed {SEED}, {run.stderr[-2000:]}"
    finds = [json.loads(line) for line in run.stdout.splitlines()]
    assert finds == [], "\n".join(map(str, finds[:20]))
    assert run.stderr.count("case ") >= count


@pytest.mark.parametrize("kind", list(KINDS))
def test_examples_are_sound(kind, tmp_path):
    bench = Bench(tmp_path)
    made, sound = bench.example(kind)
    made.read()
    assert all(len(data) > 20 for data in sound.values())


def test_what_is_wrong_is_found(tmp_path, monkeypatch):
    """An error that is not ours, and one that names no file, are finds."""
    bench = Bench(tmp_path)
    made, _ = bench.example("release-toml")
    (file,) = made.files

    def raises(error):
        def read():
            raise error

        return bench._answer(read, file)

    from bayesrisk import DataError

    assert "KeyError" in raises(KeyError("x"))
    assert "names no file" in raises(DataError("x must be 1"))
    assert raises(DataError(f"{file}: x must be 1")) is None
    monkeypatch.setattr("fuzz.files.KILOBYTES", 10_000)
    assert "MB" in bench._answer(lambda: np.ones(10**7).sum(), file)


def test_cases_are_the_same_again(tmp_path):
    found = []
    for turn in ("a", "b"):
        (tmp_path / turn).mkdir()
        bench = Bench(tmp_path / turn)
        for case in range(12):
            about = bench.run(SEED, case, keep=tmp_path / "kept")[1]
            found.append((turn, about, (tmp_path / "kept").stat().st_size))
    first = [entry[1:] for entry in found if entry[0] == "a"]
    assert first == [entry[1:] for entry in found if entry[0] == "b"]
