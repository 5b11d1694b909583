"""The comparisons with other tools: what is checked, left out and written, without the tools."""

import csv
import functools
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pairs import Pairs, in_turn
from peers import comparison as machinery, linked
from peers.__main__ import ALL, main
from peers.comparison import Case, Comparison, LeftOutError, compare
from peers.report import HEADER, line, write
from peers.worker import Worker

import bayesrisk

DOCS = Path(__file__).parents[1] / "docs" / "reference"


def read(file: Path) -> list[list[str]]:
    return list(csv.reader(file.read_text(encoding="utf-8").splitlines()))


def sums() -> Case:
    assert sum([1, 2]) == 1 + 2
    return Case(lambda: sum([1, 2]), lambda: 1 + 2, rounds=3)


SOME = Comparison("A sum", "sum", "plus", ("numpy",), "exactly", "nothing", sums)


def test_units_and_medians():
    pairs = Pairs((1.0, 2.0, 30.0), (10.0, 10.0, 10.0))
    assert pairs.ratio == 0.2
    assert pairs.ratios == [0.1, 0.2, 3.0]
    calls = []
    found = in_turn(
        lambda: calls.append("ours"), lambda: calls.append("theirs"), rounds=2, ours_units=1e9
    )
    assert calls == ["ours", "theirs"] * 3
    assert max(found.ours) < 1e-6 * min(found.theirs)


def test_an_absent_peer_is_left_out_with_the_reason(monkeypatch):
    absent = compare(replace(SOME, needs=("no-such-tool",)))
    assert line(absent) == "sums: A sum; plus: left out: no-such-tool is not installed"
    monkeypatch.setattr(machinery.shutil, "which", lambda name: None)
    without = compare(replace(SOME, needs=("R:sdcMicro",)))
    assert without.times == "left out: sdcMicro needs R, and there is no Rscript here"

    def unable() -> Case:
        raise LeftOutError("no room")

    assert compare(replace(SOME, make=unable)).times == "left out: no room"


def test_unequal_answers_are_an_error_and_nothing_is_timed():
    timed = []

    def wrong() -> Case:
        assert sum([1, 2]) == 4
        return Case(lambda: timed.append(1), lambda: timed.append(2))

    with pytest.raises(AssertionError):
        compare(replace(SOME, make=wrong))
    assert timed == []


def test_tables_are_written(tmp_path):
    write([compare(SOME), compare(replace(SOME, needs=("no-such-tool",)))], tmp_path)
    rows = read(tmp_path / "beside-peers.csv")
    assert tuple(rows[0]) == HEADER
    assert rows[1][:2] == ["A sum", "`sum`"]
    assert rows[1][4] == "exactly"
    assert rows[2][3:5] == ["left out: no-such-tool is not installed", "not checked"]
    ran = dict(read(tmp_path / "beside-peers-run.csv"))
    assert ran["Python"] == ".".join(map(str, sys.version_info[:3]))


def test_the_page_shows_every_comparison_there_is():
    rows = read(DOCS / "beside-peers.csv")
    assert tuple(rows[0]) == HEADER
    shown = [(row[0], row[1], row[2].split(" (")[0], row[5]) for row in rows[1:]]
    assert shown == [(c.question, f"`{c.ours}`", c.peer.split(" (")[0], c.differs) for c in ALL]
    assert len({c.name for c in ALL}) == len(ALL)


def test_what_is_compared_has_its_present_name():
    assert "readers" not in dir(bayesrisk)  # an old name, which still leads to the census
    for compared in ALL:
        first, *rest = re.match(r"[\w.]+", compared.ours)[0].split(".")
        assert first in dir(bayesrisk)
        assert callable(functools.reduce(getattr, rest, getattr(bayesrisk, first)))


def test_the_page_shows_every_way_to_protect_linked_tables():
    rows = read(DOCS / "beside-peers-linked.csv")
    assert tuple(rows[0]) == linked.HEADER
    assert [row[0] for row in rows[1:]] == list(linked.WAYS)
    # What comes back is part of what is withheld, and more to who knows more.
    assert all(int(row[2]) <= int(row[4]) <= int(row[1]) for row in rows[1:])


def test_a_comparison_that_is_not_there_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["peers", "no_such_comparison"])
    with pytest.raises(SystemExit):
        main()
    assert "no comparison is called 'no_such_comparison'" in capsys.readouterr().err


def test_a_worker_answers_line_by_line_and_its_end_is_an_error():
    code = "import sys\nfirst = input()\nprint(first, input(), flush=True)"
    worker = Worker([sys.executable, "-c", code], "one")
    assert worker.ask("two") == "one two\n"
    with pytest.raises((RuntimeError, BrokenPipeError)):
        worker.ask("three")
