"""Notes at headings and beside counts, shares beside numbers, and codes without a heading."""

import pandas as pd
import pytest

from bayesrisk.exceptions import DataError
from bayesrisk.tables.reading.reading import TableReading, read
from bayesrisk.tables.sheets.sheet import file_sheet

PONDS = ("Ash", "Bay", "Elm", "Oak", "Yew")


def sheet_of(folder, text):
    (folder / "t.csv").write_text(text, encoding="utf-8")
    return file_sheet(folder / "t.csv")


@pytest.mark.parametrize("year", ["1997", "1997(1)", "1997 /1", "1997[1]", "1997*", "1997\\1\\"])
def test_a_year_above_an_empty_row_may_have_a_note(year, tmp_path):
    text = f"Fish caught\nYEARS 1995-1997\n\nPond,1995,1996,{year}\n\nAsh,1,2,3\nBay,4,5,6\n"
    assert sheet_of(tmp_path, text).heads == ["Pond", "1995", "1996", year]


@pytest.mark.parametrize("note", ["\\1\\", "(2)", "[note 3]", "²"])
def test_a_column_of_notes_without_a_heading_is_none_of_the_table(note, tmp_path):
    rows = "".join(f"{p},{n},{note * (n > 3)},{n + 1}\n" for n, p in enumerate(PONDS))
    sheet = sheet_of(tmp_path, f"Pond,Carp,,Trout\n{rows}")
    assert sheet.heads == ["Pond", "Carp", "Trout"]
    assert sheet.rows[4][1] == ["Yew", "4", "5"]


@pytest.mark.parametrize("heads", ["Pond,Carp,Kind,Trout", "Pond,Carp,,Trout"])
def test_a_column_of_words_or_with_a_heading_stays(heads, tmp_path):
    note = "(2)" if "Kind" in heads else "wild"
    rows = "".join(f"{p},{n},{note},{n + 1}\n" for n, p in enumerate(PONDS))
    assert len(sheet_of(tmp_path, f"{heads}\n{rows}").heads) == 4


@pytest.mark.parametrize("note", ["\\1\\As of April 1.", "1/ Revised.", "¹ Revised."])
def test_a_line_that_begins_with_the_number_of_a_note_is_one(note, tmp_path):
    rows = "".join(f"A pond with a long name {p},{n},{n}\n" for n, p in enumerate(PONDS))
    sheet = sheet_of(tmp_path, f"Pond,Carp,Trout\n{rows}{note}\n")
    assert (7, note, "a note below the table") in sheet.left


SHARED = "Pond,Old,Young,,Newborn,,Total\n,,{0},{1},{0},{1},\n"
COUNTS = "Ash,3,4,20%,6,30%,13\nBay,1,2,10%,7,55%,10\nElm,8,8,30%,9,20%,25\n"


@pytest.mark.parametrize(("number", "share"), [("Number", "%"), ("No.", "% of all"), ("n", "Rate")])
def test_number_beside_a_share_is_no_label(number, share, tmp_path):
    """Counts with a share beside them and others without one make up one total."""
    sheet = sheet_of(tmp_path, SHARED.format(number, share) + COUNTS)
    assert [h for h in sheet.heads if "!!" not in h] == ["Pond", "Old", "Young", "Newborn", "Total"]
    lines = TableReading.read(tmp_path / "t.csv").lines
    assert any("the sums hold in 3 of 3 groups" in line for line in lines)


def test_a_label_beside_a_share_stays_and_so_does_number_beside_another_count(tmp_path):
    heads = sheet_of(tmp_path, SHARED.format("Wild", "%") + COUNTS).heads
    assert "Young!!Wild" in heads
    counts = "Ash,3,4,2,6,3,18\nBay,1,2,1,7,5,16\nElm,8,8,3,9,2,30\n"
    heads = sheet_of(tmp_path, SHARED.format("Number", "Lost") + counts).heads
    assert "Young!!Number" in heads


def frame(**columns):
    return pd.DataFrame({"pond": PONDS, **columns}).astype(str)


FULL_TIME = ("12.5", "7.25", "3.1", "8.75", "6.2")


def test_one_number_with_decimals_is_enough_beside_a_column_of_such():
    """They are not people, such as full-time equivalents, of which most are 0."""
    columns = {"keepers": FULL_TIME, "divers": ("0", "0", "0.5", "1", "0")}
    reading = TableReading.from_frame(frame(**columns, fish=("2", "1", "7", "5", "4")))
    assert any("divers (numbers with decimals" in line for line in reading.lines)
    assert {*reading.cells["stated"]} == {"2", "1", "7", "5", "4"}


def test_shares_with_decimals_beside_a_count_leave_it_one():
    reading = TableReading.from_frame(frame(fish=("2", "1", "7.5", "5", "4"), percent=FULL_TIME))
    assert "7.5" in {*reading.cells["stated"]}


def test_a_code_without_a_heading_is_no_count(tmp_path):
    rows = "2019,1,Male,138,16\n2019,2,Female,125,14\n2020,1,Male,164,17\n2020,2,Female,129,12\n"
    sheet = sheet_of(tmp_path, f"Year,,Sex,young,old\n{rows}")
    reading = read([sheet], {})
    assert len(reading.cells) == 8
    assert not {"1", "2"} & {*reading.cells["stated"]}


@pytest.mark.parametrize("note", ["[Note 1]", "[note 12]", "[Note 1][Note 2]", "(r)", "*"])
def test_years_with_notes_below_a_title_are_headings(note, tmp_path):
    heads = f"Fish of the ponds\n\nTable 8a: fish\nPond,2018,2019 {note},2020 {note}\n"
    sheet = sheet_of(tmp_path, f"{heads}Ash,1,2,3\nBay,4,5,6\n")
    assert len(sheet.rows) == 2
    assert sheet.heads[:2] == ["Pond", "2018"]


GAPS = "Fish by age{},,,,,T 1\n,Total,Age,,,Mean age\n,,,,,\n,,0-1,2-3,4+,\nAll,30,9,10,11,2.5\n"
SEXES = "Carp,18,5,6,7,2.5\nMale,10,3,3,4,2.6\nFemale,8,2,3,3,2.4\n"
OTHERS = "Trout,12,4,4,4,2.1\nMale,6,2,2,2,2.2\nFemale,6,2,2,2,2.3\n"


def test_headings_fill_the_gaps_of_those_below_an_empty_row(tmp_path):
    """A title with its number at the other end is none; sections begin with their totals."""
    sheet = sheet_of(tmp_path, GAPS.format("") + SEXES + OTHERS)
    assert sheet.heads == ["section", "", "Total", "0-1", "2-3", "4+", "Mean age"]
    cells = read([sheet], {}).cells
    assert {*cells["section"]} == {"all", "Carp", "Trout"}
    assert len(cells) == 28


def test_a_first_row_that_is_no_sum_of_sections_makes_none(tmp_path):
    text = GAPS.format("").replace("All,30", "All,31") + SEXES + OTHERS
    assert "section" not in sheet_of(tmp_path, text).heads


def test_a_count_with_its_share_is_a_count(tmp_path):
    text = 'Month,Here,Elsewhere\nJanuary,675 (8.84%),61 (.80%)\nFebruary,"1,622 (18.1%)",* (*%)\n'
    rows = sheet_of(tmp_path, text.replace("* (*%)", "* (1%)")).rows
    assert [row for _, row in rows] == [["January", "675", "61"], ["February", "1,622", "*"]]


@pytest.mark.parametrize("other", ["675 (8.84)", "675 (of 900)"])
def test_a_count_with_another_number_stays(other, tmp_path):
    text = f"Month,Here,There\nJanuary,{other},7\nFebruary,9,8\nMarch,5,6\n"
    assert sheet_of(tmp_path, text).rows[0][1][1] == other


@pytest.mark.parametrize("note", ["Source: the ministry", "Italy by sea"])
def test_sources_above_columns_are_no_headings(tmp_path, note):
    rows = [
        "Arrivals,,,,," + note + ",,",
        "Country,Port,Jan,Feb,Mar,Apr,May,Jun",
        *(f"Land {k % 2},Port {k},{k},4,{2 * k},3,{k},{k * k}" for k in range(2, 9)),
    ]
    file = tmp_path / "t.csv"
    file.write_text("\n".join(rows) + "\n")
    sheet = file_sheet(file)
    if note.startswith("Source"):
        assert sheet.heads == ["Country", "Port", "Jan", "Feb", "Mar", "Apr", "May", "Jun"]
        assert any(note in text for _, text, _ in sheet.left)
    else:
        assert any("!!" in head for head in sheet.heads)


@pytest.mark.parametrize("unit", ["no.", "Number"])
def test_a_row_of_the_name_of_labels_and_of_units_is_one_of_headings(unit, tmp_path):
    text = f",2019,2020,Growth\nPond,{unit},{unit},%\nAsh,4,5,12\nBay,8,9,13\nElm,7,6,-14\n"
    sheet = sheet_of(tmp_path, text)
    assert sheet.heads == ["Pond", "2019", "2020", "Growth %"]
    assert [row[0] for _, row in sheet.rows] == ["Ash", "Bay", "Elm"]


def test_a_row_of_marks_is_none_of_headings(tmp_path):
    text = ",2019,2020\nPond,*,*\nAsh,4,5\nBay,8,9\nElm,*,6\n"
    assert len(sheet_of(tmp_path, text).rows) == 4


def test_units_of_several_sections_are_no_headings(tmp_path):
    """The first text would be lost, which says whom the rows below it count."""
    rows = "{},no.,no.\nAsh,{},5\nBay,8,{}\nElm,7,6\n"
    text = ",2019,2020\n" + rows.format("Men", 4, 9) + rows.format("Women", 3, 1)
    assert "Men" not in "".join(sheet_of(tmp_path, text).heads)


GROUPS = "Fish of 2012,County,{},,\n,Kind,lake,lake,pond,pond\nCode,Name \\ Index,{}\n"
CAUGHT = "1,Carp,1,0,4,2\n2,Not used,0,0,0,0\n3,Eel,3,5,2,2\n4,Not used,0,1,0,0\n5,Pike,9,1,7,8\n"


def test_codes_of_groups_stand_above_names_of_columns(tmp_path):
    heads = GROUPS.replace("{},,", "01,01,02,02", 1).format("Ash,Bay,Elm,Oak")
    sheet = sheet_of(tmp_path, heads + CAUGHT)
    assert [head.split("!!") for head in sheet.heads[2:]] == [
        ["01", "lake", "Ash"], ["01", "lake", "Bay"], ["02", "pond", "Elm"], ["02", "pond", "Oak"],
    ]  # fmt: skip
    cells = read([sheet], {}).cells
    assert len(cells) == 20
    assert cells["category 1"].nunique() == 4
    assert "category 2" not in cells
    assert {*cells[cells["category 1"] == "02: pond: Elm"]["stated"]} == {"4", "0", "2", "7"}


@pytest.mark.parametrize(
    ("codes", "names"),
    [
        ("01,02,01,02", "Ash,Bay,Elm,Oak"),
        ("01,01,02,02", "Ash,Bay,Ash,Oak"),
        ("1,1,2,2", "1,2,3,4"),
    ],
)
def test_numbers_that_group_no_names_are_no_headings(codes, names, tmp_path):
    """They stand in no runs, or above names that repeat, or above other numbers."""
    heads = GROUPS.replace("{},,", codes, 1).format(names)
    with pytest.raises(DataError, match="row 1"):
        sheet_of(tmp_path, heads + CAUGHT)


@pytest.mark.parametrize(
    ("heads", "above"),
    [
        ("town,2019,2020,Change in %", ""),
        ("town,All,0-14,15 and over", ""),
        ("town,All,0-14,15 and over", "People by age\n"),
        ("town,4,9,15", None),  # counts of another table
    ],
)
def test_headings_of_ages_or_years_may_stand_above_an_empty_row(tmp_path, heads, above):
    rows = "Ash,41,30,11\nElm,57,40,17\nFir,33,21,12\n"
    (tmp_path / "t.csv").write_text(f"Table 1\n\n{above or ''}{heads}\n\n{rows}", encoding="utf-8")
    if above is None:
        with pytest.raises(DataError):
            file_sheet(tmp_path / "t.csv")
        return
    sheet = file_sheet(tmp_path / "t.csv")
    assert sheet.heads == heads.split(",")
    assert [row[0] for _, row in sheet.rows] == ["Ash", "Elm", "Fir"]


@pytest.mark.parametrize("label", ["", "Ivy"])
def test_ages_are_headings_above_columns_of_marks_if_no_label_stands_beside_them(tmp_path, label):
    heads = f"town,Men,,,Women,,\n{label},0-4,5-9,10-17,0-4,5-9,10-17\n"
    rows = "Ash,9,*,*,*,*,*\nElm,*,*,*,12,*,*\nFir,*,*,*,*,*,*\n"
    (tmp_path / "t.csv").write_text(heads + rows, encoding="utf-8")
    sheet = file_sheet(tmp_path / "t.csv")
    assert [row[0] for _, row in sheet.rows] == [label, "Ash", "Elm", "Fir"][not label :]
