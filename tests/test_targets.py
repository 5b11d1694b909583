"""The table of what the benchmarks aim at."""

import ast
import csv
import re
from pathlib import Path

import pytest
from targets import HEADS, Aim, Measured, a_second, as_long, faster, seconds_each, value_of

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("aim", "value", "met"),
    [
        (faster(10), 10.0, True),
        (faster(10), 9.9, False),
        (as_long(2), 2.0, True),
        (as_long(2), 2.1, False),
        (seconds_each(100e-9, "cell"), 99e-9, True),
        (a_second(1e6, "steps"), 9e5, False),
        (Aim(1.5, "s"), 1.6, False),
    ],
)
def test_a_target_is_met_or_not(aim, value, met):
    assert aim.met(value) == met


def test_the_number_that_a_target_is_about():
    about = {"ratio": 0.25, "each": 2e-9}
    assert value_of(faster(10), **about) == 4.0
    assert value_of(as_long(1), **about) == 0.25
    assert value_of(seconds_each(5e-9, "row"), **about) == 2e-9
    assert value_of(a_second(1, "rows"), **about) == pytest.approx(5e8)


def test_rows_of_an_earlier_run_are_kept_until_they_are_measured_again(tmp_path):
    file = tmp_path / "targets.csv"
    first, second = Measured(), Measured()
    first.add("start", Aim(0.3, "s"), 0.4)
    first.add("walk", faster(3), 5.0)
    first.update(file)
    assert "met: yes" in second.add("start", Aim(0.3, "s"), 0.2)
    second.update(file)
    assert table(file) == [
        list(HEADS),
        ["start", "at most 0.3 s", "0.2 s", "yes"],
        ["walk", "at least 3 times faster", "5 times faster", "yes"],
    ]


def test_two_targets_have_two_names():
    measured = Measured()
    measured.add("start", Aim(0.3, "s"), 0.4)
    with pytest.raises(AssertionError, match="two targets are named 'start'"):
        measured.add("start", faster(3), 4.0)


def table(file):
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


def words(tree):
    """Yield patterns of the texts of a program; what is put into them may be anything."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
            if sum(len(part or "") for part in parts) > 10:
                yield "".join(".+" if part is None else re.escape(part) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.escape(node.value)


def test_every_row_of_the_table_is_measured_by_a_benchmark():
    """A target whose benchmark goes, or gets another name, goes from the table."""
    known = {
        pattern
        for file in (ROOT / "benchmarks").glob("test_*.py")
        for pattern in words(ast.parse(file.read_text(encoding="utf-8")))
    }
    names = [row[0] for row in table(ROOT / "docs/explanation/targets.csv")[1:]]
    assert len(names) == len(set(names)) > 80
    stale = [n for n in names if not any(re.fullmatch(pattern, n) for pattern in known)]
    assert stale == []
