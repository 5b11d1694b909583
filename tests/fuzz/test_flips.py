"""A bit of a stored file changes: an error of our tree that names it, or the same results.

``--fuzz-flips`` says how many for each reader and command.  A find is printed with its seed and
case; ``--fuzz-seed SEED`` makes the same ones again.
"""

import re

import pytest
from fuzz.flips import Subject, make, names
from fuzz.quick import quick_results
from writing_cases import SWEEP, inputs

from bayesrisk.exceptions import DataError

_LONG = (
    "resume-sweep",
    "resume-occupancy-study",
    "resume-occupancy-attack-by",
    "resume-audit-by",
    "resume-nmf-counts",
    "resume-simulate-nation",
    "report-sweep",
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
    [pytest.param(n, marks=[pytest.mark.slow] if n in _LONG else []) for n in names()],
)
def test_a_flipped_bit_is_told_or_does_nothing(name, share, at, quick_path, request):
    seed, cases = request.config.getoption("--fuzz-seed"), range(share.start, share.stop)
    with quick_results():
        subject = make(name, at, quick_path)
        found = [find for case in cases if (find := subject.flip(seed, case))]
    assert found == [], "\n".join([f"{name}: {dict(subject.counts)}", *found[:5]])
    assert subject.counts["same" if subject.heals else "errors"] > 0
    assert subject.counts.total() == len(cases)


def test_a_reader_that_trusts_its_files_is_found(at, tmp_path, monkeypatch):
    """Without the seal of the document that says how a release was made, and what binds it."""
    monkeypatch.setattr("bayesrisk._files.writing.document_digest", lambda _: "")
    monkeypatch.setattr("bayesrisk.release.release.check_bound", lambda file, document: None)
    subject = make("read-release", at, tmp_path)
    subject.files = [file for file in subject.files if file.name == "_release.json"]
    assert any("another result" in (subject.flip(1, case) or "") for case in range(200))


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
