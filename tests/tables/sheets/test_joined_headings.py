"""Rows of headings: years below what is counted, and counts near 2,000."""

import pytest

from bayesrisk.tables.reading.reading import TableReading
from bayesrisk.tables.sheets.joined_headings import joined_headings
from bayesrisk.tables.sheets.sheet import file_sheet

HEAD = ["region", "Sample", "Sample"]


@pytest.mark.parametrize(
    ("row", "below", "years"),
    [
        (["", "2010", "2011"], {1: ["50", "10"], 2: ["77", "2050"]}, True),
        (["", "2010", "2011"], {1: ["1950", "2010"], 2: ["1977", "2050"]}, True),  # one step
        (["North", "1980", "2011", "1995"], {1: ["1950"], 2: ["1977"], 3: ["2050"]}, False),
        (["", "1991", "2001", "2021"], {1: ["50"], 2: ["1977"], 3: ["9"]}, True),
    ],
)
def test_counts_near_2000_are_no_years_below_a_heading(row, below, years):
    head = [*HEAD, *["Sample"] * (len(row) - 3)]
    assert bool(joined_headings(head, [head], row, below, set())) is years


def test_a_number_below_under_ends_the_heading_of_a_group():
    """Then "and" and "over" are one heading, too; below "Under" alone numbers may be counts."""
    head = ["", "All", "Under", "30 to 39", "40 and"]
    below = {1: ["695", "29"], 2: ["25", "17"], 3: ["112", "8"], 4: ["30", "4"]}
    joined = joined_headings(head, [head], ["", "ages", "30", "", "over"], below, set())
    assert [j.replace("!!", " ") for j in joined[1:]] == [
        "All ages", "Under 30", "30 to 39", "40 and over"]  # fmt: skip
    assert joined_headings(head, [head], ["", "695", "25", "112", "30"], below, set()) == []
    one = ["place", "Under"]
    assert joined_headings(one, [one], ["North", "25"], {1: ["25", "7"]}, set()) == []


@pytest.mark.parametrize(("name", "some"), [("Age", ""), ("of which", "of which: ")])
@pytest.mark.parametrize("gap", ["", ",,,,,,\n"])
def test_a_heading_beside_totals_names_the_labels_below_it(name, some, gap, tmp_path):
    heads = f"Area,Men,,,Women,,\n,Total,{name},,Total,{name},\n,,young,old,,young,old\n{gap}"
    rows = "Ash,7,5,2,12,3,9\nBay,23,11,12,27,13,14\nElm,43,21,22,47,23,24\n"
    (tmp_path / "t.csv").write_text(heads + rows, encoding="utf-8")
    cells = TableReading.read(tmp_path / "t.csv").cells
    labels = {*cells.drop(columns=["stated", "file", "row"]).to_numpy().ravel()}
    assert {"Men", "Women", f"{some}young", f"{some}old"} <= labels
    assert name not in labels


def test_two_headings_beside_totals_are_labels(tmp_path):
    heads = "Area,Men,,,Women,,\n,Total,Kent,Essex,Total,Kent,Essex\n,,young,old,,young,old\n"
    (tmp_path / "t.csv").write_text(heads + "Ash,7,5,2,12,3,9\nBay,23,11,12,27,13,14\n")
    cells = TableReading.read(tmp_path / "t.csv").cells
    assert any("Kent" in label for label in cells.astype(str).to_numpy().ravel())


def test_one_merged_heading_with_a_total_of_its_own_stays(tmp_path):
    text = (
        "Area,Anthrax,Botulism,,,Plague\n,,{},Foodborne,Infant,\n"
        "North,0,8,4,4,3\nSouth,0,7,1,6,4\nEast,1,4,1,3,2\n"
    )
    file = tmp_path / "t.csv"
    file.write_text(text.format("Total"), encoding="utf-8")
    parts = ["Botulism!!Total", "Botulism!!Foodborne", "Botulism!!Infant"]
    assert file_sheet(file).heads == ["Area", "Anthrax", *parts, "Plague"]
    file.write_text(text.format("Wound"), encoding="utf-8")  # it may name what they are parts of
    assert "Infant" in file_sheet(file).heads


@pytest.mark.parametrize(("last", "joined"), [("", True), ("%", True), ("7", False)])
def test_years_that_stand_again_are_headings_beside_a_column_without_one(last, joined, tmp_path):
    head = "Jobs,,Place,Beds 31 December,,Change\n"
    rows = "83,84,Ash,318,314,4\n64,62,Elm,416,414,2\n12,19,Oak,202,204,-2\n"
    file = tmp_path / "t.csv"
    file.write_text(f"{head}2020,2019,,2020,2019,{last}\n{rows}", encoding="utf-8")
    heads = file_sheet(file).heads
    names = ["Jobs!!2020", "Jobs!!2019", "Place", "Beds 31 December!!2020"]
    assert (heads[:4] == names) is joined


@pytest.mark.parametrize("label", ["Place", ""])
def test_a_row_of_years_below_merged_headings_may_name_the_labels(label, tmp_path):
    file = tmp_path / "t.csv"
    rows = "Ash,1 546,519,1 473,718,3 019,1 237\nElm,772,1 552,1 732,1 702,2 504,3 254\n"
    head = f"{'' if label else 'Place'},Men,,Women,,All,\n{label},2019,2020,2019,2020,2019,2020\n"
    file.write_text(head + rows, encoding="utf-8")
    names = [f"{sex}!!{year}" for sex in ("Men", "Women", "All") for year in (2019, 2020)]
    assert file_sheet(file).heads == ["Place", *names]


@pytest.mark.parametrize(
    ("last", "levels"), [("{} 0-64 years,{} 65 years", 2), ("{} young,{} old", 3)]
)
def test_headings_that_say_again_what_stands_above_them_are_no_level(last, levels, tmp_path):
    file = tmp_path / "t.csv"
    names = ",".join(last.format(x, x) for x in "MF")
    head = f"Day,Men,,Women,\n,0-64 years,65 years,0-64 years,65 years\nDate,{names}\n"
    file.write_text(head + "1 May,14,25,36,47\n2 May,21,33,45,50\n", encoding="utf-8")
    heads = file_sheet(file).heads
    assert [head.count("!!") for head in heads[1:]] == [levels - 1] * 4


@pytest.mark.parametrize(("change", "joined"), [(("", ""), True), ((",8,9", ",9,8"), False)])
def test_months_that_begin_again_are_headings(change, joined, tmp_path):
    """So is 9, which may be a word for a total elsewhere."""
    months = ",".join(map(str, range(1, 13)))
    rows = "".join(f"Pond {k}" + "".join(f",{k + j}" for j in range(24)) + "\n" for k in range(9))
    quarters = "".join(f",{q} quarter,," for q in ("First", "Second", "Third", "Fourth")) * 2
    years = ",2019,,,,,,,,,,,,2020,,,,,,,,,,,"
    text = f"{years}\n{quarters}\nPlace,{months},{months}\n{rows}"
    (tmp_path / "t.csv").write_text(text.replace(*change), encoding="utf-8")
    heads = file_sheet(tmp_path / "t.csv").heads
    named = ["2019!!Third quarter!!9", "2020!!First quarter!!1"]
    assert ([heads[9], heads[13]] == named) is joined
