"""Headings of workbooks whose cells are merged, and cells that are merged in data."""

import openpyxl
import pytest

from bayesrisk.tables.reading.reading import read
from bayesrisk.tables.sheets.sheet import file_sheet


def sheet_of(folder, text, *merged):
    book = openpyxl.Workbook()
    for line in text.splitlines():
        book.active.append([int(t) if t.isdecimal() else t or None for t in line.split(",")])
    for cells in merged:
        book.active.merge_cells(cells)
    book.save(folder / "t.xlsx")
    return file_sheet(folder / "t.xlsx")


LEVELS = "Fish in ponds,,,,\n,,,,\nPond,Kind,,,\n,carp,,trout,\n,Age,,Age,\n,0,1,0,1\n"
PONDS = "Ash,4,7,2,9\nBay,12,0,8,5\nElm,3,6,6,1\n"
WIDE = ("A3:A6", "B3:E3", "B4:C4", "D4:E4", "B5:C5", "D5:E5")


def test_levels_of_merged_headings_are_variables_and_names_above_all_are_none(tmp_path):
    """The last level may be numbers: the merged cell of the labels says where headings end."""
    sheet = sheet_of(tmp_path, LEVELS + PONDS, *WIDE)
    assert sheet.heads == ["Pond", "carp!!0", "carp!!1", "trout!!0", "trout!!1"]
    assert [row for _, row in sheet.rows] == [x.split(",") for x in PONDS.splitlines()]
    assert "Fish in ponds" in sheet.captions


@pytest.mark.parametrize("gap", ["", ",,,,\n", ",,,,\n,,,,\n"])
def test_empty_rows_stand_between_merged_headings_and_their_counts(gap, tmp_path):
    """A total that stands apart from the other rows is one of them."""
    heads = f"Fish in ponds,,,,\n,carp,,trout,\n{gap}Pond,F,M,F,M\n"
    text = f"{heads}{gap}Total,19,13,16,15\n{gap}{PONDS}"
    sheet = sheet_of(tmp_path, text, "B2:C2", "D2:E2")
    assert sheet.heads == ["Pond", "carp!!F", "carp!!M", "trout!!F", "trout!!M"]
    cells = read([sheet], {}).cells
    assert {*cells["pond"]} == {"all", "Ash", "Bay", "Elm"}


def test_a_year_above_some_columns_is_theirs_alone(tmp_path):
    text = ",,,2012,,\nPond,2010,2011,F,M,Total\nAsh,3,4,2,1,3\nBay,7,6,4,4,8\n"
    sheet = sheet_of(tmp_path, text, "D1:F1")
    assert sheet.heads == ["Pond", "2010", "2011", "2012!!F", "2012!!M", "2012!!Total"]


def test_lines_of_a_heading_that_reach_over_no_other_are_one(tmp_path):
    """Numbers of columns below them are none of the headings."""
    text = "Pond,Still/,Carp,,Trout,\ncode,,,,,\n,Running,F,M,F,M\n1,2,3,4,5,6\n,,,,,\n"
    rows = "01,Still,3,4,7,1\n01,Running,5,2,2,9\n02,Still,1,8,6,4\n02,Running,2,2,5,7\n"
    sheet = sheet_of(tmp_path, text + rows, "C1:D1", "E1:F1")
    heads = ["Pond code", "Still/Running", "Carp!!F", "Carp!!M", "Trout!!F", "Trout!!M"]
    assert sheet.heads == heads
    assert len(sheet.rows) == 4


@pytest.mark.parametrize(
    ("text", "merged"),
    [
        (f"Pond,carp,trout,perch,eel\n{PONDS}", "B2:C2"),  # a count of two columns
        (f"Fish,,,,\nPond,carp,trout,perch,eel\nNorth,,,,\n{PONDS}South,,,,\n{PONDS}", "A3:E3"),
        (f"Fish in ponds,,,,\nPond,carp,trout,perch,eel\n{PONDS}", "A1:E1"),
    ],
)
def test_merged_cells_of_counts_sections_and_titles_are_no_headings(text, merged, tmp_path):
    sheet = sheet_of(tmp_path, text, merged)
    assert sheet.heads[-5:] == ["Pond", "carp", "trout", "perch", "eel"]
    assert len(sheet.rows) == text.count("Ash") * 3


def test_counts_without_headings_below_a_merged_cell_are_none(tmp_path):
    """The last cell of numbers may be counts where no merged cell of the labels reaches to it."""
    text = "Pond,carp,,trout,\nAsh,4,7,2,9\nBay,12,0,8,5\nElm,3,6,6,1\n"
    sheet = sheet_of(tmp_path, text, "B1:C1", "D1:E1")
    assert len(sheet.rows) == 3


def test_merged_cells_are_counted_from_the_first_column_that_is_not_empty(tmp_path):
    text = "".join(f",{line}\n" for line in (LEVELS + PONDS).splitlines())
    merged = ("B3:B6", "C3:F3", "C4:D4", "E4:F4", "C5:D5", "E5:F5")
    plain = sheet_of(tmp_path, LEVELS + PONDS, *WIDE)
    sheet = sheet_of(tmp_path, text, *merged)
    assert sheet.heads == plain.heads
    assert sheet.rows == plain.rows


@pytest.mark.parametrize("number", [1965, 65])
def test_merged_numbers_that_look_like_years_are_counts_as_others_are(number, tmp_path):
    rows = f"Kind,{number},7,9\ncarp,,,\ntrout,5,6,2\nTotal,{number + 5},13,11\n,,,\n,,,\n"
    text = "".join(f"Fish in {pond},,,\n,F,M,O\n{rows}" for pond in ("Ash", "Bay"))
    sheet = sheet_of(tmp_path, text, *(f"{j}{i}:{j}{i + 1}" for i in (3, 11) for j in "BCD"))
    assert sheet.heads == ["section", "Kind", "F", "M", "O"]
    assert sheet.rows[0][1] == ["Fish in Ash", "carp", str(number), "7", "9"]
