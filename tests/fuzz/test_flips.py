"""A bit of a stored file changes: an error of our tree that names it, or the same results.

A subject is a folder, and all files of a run that goes on from it, which it makes as they were;
only where its configuration is damaged, it says so.  Readers of stored files are in ``test_files``.
``--fuzz-flips`` says how many bits for each; a find is printed with its seed and case,
``--fuzz-seed SEED`` makes the same ones again.
"""

import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from fuzz.quick import quick_results
from writing_cases import SWEEP, commands, content, inputs, run

from bayesrisk.exceptions import BayesRiskError, DataError


@dataclass
class Subject:
    """A folder whose bits are flipped; ``answer`` raises an error of ours or returns a value."""

    folder: Path
    answer: Callable[[], object]
    heals: bool = False  # whether it goes on from its own folder
    counts: Counter = field(default_factory=Counter)

    def __post_init__(self):
        self.kept = content(self.folder)
        self.sound = self.answer()
        self.restore()
        files = (path for path in self.folder.rglob("*") if path.is_file())
        self.files = sorted(file for file in files if file.stat().st_size)

    def restore(self):
        """Make the folder what it was, whatever was made of it."""
        now = content(self.folder)
        for name in now.keys() - self.kept.keys():
            (self.folder / name).unlink()
        for name, data in self.kept.items():
            if now.get(name) != data:
                (self.folder / name).write_bytes(data)

    def flip(self, seed, case):
        """Flip one bit, the same for the same seed and case; return what is wrong, if anything."""
        rng = np.random.default_rng([seed, case])
        file = self.files[case % len(self.files)]
        data = bytearray(file.read_bytes())
        place, bit = int(rng.integers(len(data))), int(rng.integers(8))
        data[place] ^= 1 << bit
        file.write_bytes(data)
        found = self._judge(file)
        self.restore()
        return found and f"seed {seed}, case {case}: bit {bit} of byte {place} of {file}: {found}"

    def _judge(self, file):
        try:
            same = self.answer() == self.sound
        except BayesRiskError as error:
            self.counts["errors"] += 1
            told = str(error)
            if self.heals and file.name.lstrip("_") != "config.json":
                return f"the folder is not made as it was: {told}"
            return None if _is_named(file, told) else f"the error does not name the file: {told}"
        except Exception as error:
            self.counts["crashes"] += 1
            return f"{type(error).__name__}: {error}"
        self.counts["same" if same else "different"] += 1
        return None if same else "another result, and not a word"


def _is_named(file, told):
    """Return whether a message names a file, or a folder above it that is not everything."""
    return file.name in told or any(f"{folder}: " in told for folder in file.parents[:4])


#: Commands that go on from their own folder.
RESUMED = (
    *("sweep", "reconstruct", "claims", "occupancy-attack", "occupancy-study", "tabulate-by"),
    *("release-by", "simulate-nation", "audit-by", "occupancy-attack-by", "nmf-counts"),
)


NAMES = [*(f"resume-{name}" for name in RESUMED), "report-sweep"]


def make(name, at, place):
    """Return a subject by its name, in a new folder; ``at`` holds the inputs of the commands."""
    way, _, what = name.partition("-")
    folder = _made(what, at, place)
    line = ["report", folder] if way == "report" else commands(at)[what].line(folder, again=True)
    # A report is made of the parts: files that it neither reads nor writes may stay damaged.
    written = "report.html" if way == "report" else ""

    def goes_on():
        _checked(*run(*line))
        return {name: data for name, data in content(folder).items() if written in name}

    return Subject(folder, goes_on, heals=way == "resume")


def _made(maker, at, place):
    """Return a folder that a command made, or a copy of one of the inputs."""
    folder = place / "made"
    if (at / maker).is_dir():
        shutil.copytree(at / maker, folder)
        return folder
    status, told = run(*commands(at)[maker].line(folder))
    assert status == 0, told
    return folder


def _checked(status, told):
    """Raise what a command says as an error of ours, if it says one in one line."""
    if status == 0:
        return
    if status in (2, 3) and told.startswith("bayesrisk: ") and told.count("\n") == 1:
        raise BayesRiskError(told)
    raise RuntimeError(f"exit status {status}: {told}")


_LONG = (
    *("resume-sweep", "resume-occupancy-study", "resume-occupancy-attack-by", "resume-audit-by"),
    *("resume-nmf-counts", "resume-simulate-nation", "report-sweep"),
)
SHARES = ("--fuzz-flips", 500, 1)


@pytest.fixture(scope="module")
def at(tmp_path_factory):
    folder = inputs(tmp_path_factory.mktemp("inputs"))
    few = 'quantities = ["posterior", "marginal_risk"]\nsettings_per_shard'  # and few panels
    (folder / "sweep.toml").write_text(SWEEP.replace("settings_per_shard", few))
    return folder


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] if n in _LONG else []) for n in NAMES],
)
def test_a_flipped_bit_is_told_or_does_nothing(name, share, at, quick_path, request):
    seed, cases = request.config.getoption("--fuzz-seed"), range(share.start, share.stop)
    with quick_results():
        subject = make(name, at, quick_path)
        found = [find for case in cases if (find := subject.flip(seed, case))]
    assert found == [], "\n".join([f"{name}: {dict(subject.counts)}", *found[:5]])
    assert subject.counts["same" if subject.heals else "errors"] > 0
    assert subject.counts.total() == len(cases)


def test_answers_are_judged(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(b"abc")

    def subject(answer):
        return Subject(tmp_path, answer)

    assert subject(lambda: 1).flip(1, 0) is None
    assert "another result" in subject(file.read_bytes).flip(1, 0)

    def refuse(error):
        def answer():
            if file.read_bytes() != b"abc":
                raise error

        return answer

    assert subject(refuse(DataError(f"{file}: is damaged"))).flip(1, 0) is None
    assert "does not name" in subject(refuse(DataError("is damaged"))).flip(1, 0)
    assert "KeyError" in subject(refuse(KeyError("x"))).flip(1, 0)
    again = [subject(file.read_bytes).flip(5, 3) for _ in range(2)]
    assert again[0] == again[1]
    assert re.match(r"seed 5, case 3: bit \d of byte \d of ", again[0])
    assert file.read_bytes() == b"abc"
