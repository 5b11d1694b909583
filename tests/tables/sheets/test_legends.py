"""Sheets of a workbook that say what marks stand for, and sheets that withhold counts."""

import openpyxl
import pytest

from bayesrisk.tables.reading.reading import TableReading
from bayesrisk.tables.sheets.sheet import file_sheet

FISH = "Fish caught\nPond,F,M,Total\nAsh,12,c,15\nBay,8,9,17\nElm,c,7,10\nAll,23,19,42\n"
OPEN = "Fish seen\nPond,F,M,Total\nAsh,12,3,15\nBay,8,9,17\nElm,3,7,10\nOak,4,4,8\nAll,27,23,50\n"


def workbook(folder, **texts):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, text in texts.items():
        page = book.create_sheet(name)
        for line in text.splitlines():
            page.append([int(t) if t.isdecimal() else t or None for t in line.split(",")])
    book.save(folder / "t.xlsx")
    return folder / "t.xlsx"


@pytest.mark.parametrize(
    ("notes", "meaning"),
    [
        ("Shorthand\nc = 1 to 4\nx = not available\n", "1-4"),
        ("Symbol,Meaning\n[c],Suppressed as fewer than 5\n", "0-4"),
        ("The symbol 'c' represents a count that is not shown\n", "withheld"),
        ("c = 1 to 4\nElsewhere\nc = 1 to 9\n", "withheld"),  # two meanings: none is taken
        ("c = 1 to 2\n", "withheld"),  # sums deny it
        ("c,17\nx,28\n", "withheld"),  # counts
    ],
)
def test_a_sheet_of_notes_says_what_a_mark_stands_for(notes, meaning, tmp_path):
    reading = TableReading.read(workbook(tmp_path, Fish=FISH, Notes=notes))
    guess, text = reading.questions["marks.c"]
    assert guess == meaning
    said = notes.startswith(("Short", "Symbol", "The")) or notes.endswith("1 to 2\n")
    assert ("of sheet 'Notes'" in text) is said


def test_another_table_says_nothing_of_marks(tmp_path):
    other = FISH.replace("caught", "seen") + ",,,\nc = 1 to 4,,,\n"
    plain = FISH.replace("Oak,4,4,8\n", "")
    file = workbook(tmp_path, Fish=plain, Seen=other)
    assert file_sheet(file, "Fish").legend == ()


@pytest.mark.parametrize("mark", ["c", "*", "<5", "[c]"])
def test_a_sheet_that_withholds_counts_is_read_before_one_that_does_not(mark, tmp_path):
    sheet = file_sheet(workbook(tmp_path, Seen=OPEN, Caught=FISH.replace("c,", f"{mark},")))
    assert sheet.tab == "Caught"
    assert file_sheet(tmp_path / "t.xlsx", "Seen").tab == "Seen"


@pytest.mark.parametrize("mark", ["-", "..", "n/a", "z", "not applicable"])
def test_marks_of_no_count_withhold_none(mark, tmp_path):
    text = FISH.replace("c,", f"{mark},")
    assert file_sheet(workbook(tmp_path, Seen=OPEN, Caught=text)).tab == "Seen"


def test_each_sheet_before_that_which_is_read_is_said(tmp_path):
    bad = "Pond,F,F,M\nAsh,1,2,*\nBay,3,*,4\nElm,*,6,5\nOak,1,2,3\n"
    file = workbook(tmp_path, One=bad, Two=bad + "Yew,1,2,3\n", Good=OPEN)
    reading = TableReading.read(file)
    unread = [line for line in reading.lines if line.startswith("not read")]
    assert len(unread) == 2
    assert any("'One'" in line for line in unread)
    assert any("'Two'" in line for line in unread)
    assert "'Good'" in reading.lines[2]


@pytest.mark.parametrize(
    ("notes", "law"),
    [
        ("About\nFigures are rounded to the nearest ten.\n", "nearest-10"),
        ("About\nPercentages are rounded to the nearest ten.\n", "random-10"),  # a guess
        ("About\nFigures are rounded to the nearest 25.\n", "random-10"),  # numbers deny it
    ],
)
def test_a_sheet_of_notes_says_how_counts_are_rounded(notes, law, tmp_path):
    rows = [f"{pond},{10 * k},{30 + 20 * k},{20 * (k % 3)}" for k, pond in enumerate("ABCDEFGHIJK")]
    fish = "Fish caught\nPond,Pike,Carp,Tench\n" + "\n".join(rows) + "\n"
    reading = TableReading.read(workbook(tmp_path, Fish=fish, Notes=notes))
    assert reading.questions["counts"][0] == law
