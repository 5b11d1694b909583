"""Tables of a grid: below and beside each other, and several that are one."""

import zipfile

import openpyxl
import pytest

from bayesrisk.exceptions import DataError
from bayesrisk.tables.reading.reading import read
from bayesrisk.tables.sheets.sheet import file_sheet

WAFER = 'Place,Alex,Bel,Total\n"Place of work",\nCity,{},{},{}\nValley,{},{},{}\nTotal,{},{},{}\n'
TECHNICIANS = WAFER.format(25, 19, 44, 5, 4, 9, 30, 23, 53)
LABOURERS = WAFER.format(12, 8, 20, 3, 6, 9, 15, 14, 29)
BOTH = WAFER.format(37, 27, 64, 8, 10, 18, 45, 37, 82)


def sheet_of(folder, text, name=None):
    file = folder / "t.csv"
    file.write_text(text, encoding="utf-8")
    return file_sheet(file, name)


def workbook(file, **sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, text in sheets.items():
        page = book.create_sheet(name)
        for line in text.splitlines():
            page.append([int(t) if t.isdecimal() else t or None for t in line.split(",")])
    book.save(file)
    return file


def test_wafers_are_labels_of_a_further_variable(tmp_path):
    text = f"Bureau\n\nTechnicians\n{TECHNICIANS}\n\nLabourers\n{LABOURERS}\n\nTotal\n{BOTH}"
    sheet = sheet_of(tmp_path, text)
    cells = read([sheet], {}).cells.set_index(["section", "place of work", "category 1"])["stated"]
    assert len(cells) == 3 * 3 * 3
    assert cells["Labourers", "Valley", "Bel"] == "6"
    assert cells["Technicians", "all", "all"] == "53"
    assert cells["all", "City", "Alex"] == "37"
    assert [row for _, row in sheet_of(tmp_path, text, "#2").rows] == [
        ["City", "12", "8", "20"], ["Valley", "3", "6", "9"], ["Total", "15", "14", "29"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    "second",
    [
        LABOURERS.replace("Valley", "Hill"),  # of other places
        LABOURERS.replace("12", "12.5").replace("6", "6.5"),  # of percentages
        LABOURERS.replace("Alex", "Ann"),
    ],
)
def test_tables_of_other_labels_or_numbers_are_no_wafers(second, tmp_path):
    sheet = sheet_of(tmp_path, f"Technicians\n{TECHNICIANS}\n\nLabourers\n{second}")
    assert sheet.heads == ["Place of work", "Alex", "Bel", "Total"]
    assert len(sheet.rows) == 3
    assert any("#2" in why for _, _, why in sheet.left)


SEXES = ("Everybody,In,Out\nAsh,5,4\nElm,7,9\n", "Men,In,Out\nAsh,2,3\nElm,4,4\n")


@pytest.mark.parametrize("last", ["Women,In,Out\nAsh,3,1\nElm,3,5\n", "Women,In,Out\nAsh,3,1\n"])
def test_headings_of_labels_that_differ_are_labels_of_a_further_variable(last, tmp_path):
    cells = read([sheet_of(tmp_path, "Who was there\n\n" + "\n".join([*SEXES, last]))], {}).cells
    label = next(n for n in cells.columns if set(cells[n]) == {"Ash", "Elm"})
    assert len(cells) == 8 + 2 * last.count("\n") - 2
    assert {*cells["section"]} >= {"Men", "Women"}
    assert label not in ("Everybody", "everybody")


@pytest.mark.parametrize(
    "last", ["Women,In,Gone\nAsh,3,1\nElm,3,5\n", "Age,In,Out\nYoung,3,1\nOld,3,5\n"]
)
def test_headings_of_other_labels_or_counts_are_no_labels(last, tmp_path):
    sheet = sheet_of(tmp_path, f"Who was there\n\n{SEXES[1]}\n{last}")
    assert sheet.heads == ["Men", "In", "Out"]
    assert len(sheet.rows) == 2


def test_a_note_below_a_table_is_none_of_the_next_one(tmp_path):
    first = "Table 1: men\n,Year,,Sum\nForce,04/05,05/06,\nAvon,3,4,7\nKent,5,6,11\n"
    second = "Table 2: women\n,Year,,Sum\nGroup,04/05,05/06,\nYoung,1,4,5\nOld,5,2,7\n"
    text = f"{first}\n* Change in what is counted since 04/05\n\n{second}"
    sheet = sheet_of(tmp_path, text)
    assert [row for _, row in sheet.rows] == [["Avon", "3", "4", "7"], ["Kent", "5", "6", "11"]]
    other = sheet_of(tmp_path, text, "#2")
    assert [row for _, row in other.rows] == [["Young", "1", "4", "5"], ["Old", "5", "2", "7"]]


@pytest.mark.parametrize("heads", ["Area,0-64,65+", ",2019,2020", "Area,2019,2020"])
def test_headings_of_a_table_below_another_may_be_numbers(heads, tmp_path):
    first = "Table 1a: sex\nArea,Males,Females\nA,11,12\nB,15,<5\n"
    text = f"{first}\nTable 1b\n{heads}\nA,20,3\nB,10,9\n"
    assert len(sheet_of(tmp_path, text).rows) == 2
    other = sheet_of(tmp_path, text, "#2")
    assert other.heads == heads.split(",")
    assert [row for _, row in other.rows] == [["A", "20", "3"], ["B", "10", "9"]]


def test_of_tables_side_by_side_the_first_is_read_and_another_may_be(tmp_path):
    text = "Area,M,F,,Area,Young,Old\nA,1,2,,A,2,1\nB,5,4,,B,3,6\nC,5,4,,,,\n"
    sheet = sheet_of(tmp_path, text)
    assert sheet.heads == ["Area", "M", "F"]
    assert [row for _, row in sheet.rows] == [["A", "1", "2"], ["B", "5", "4"], ["C", "5", "4"]]
    assert any("#2" in why for _, _, why in sheet.left)
    other = sheet_of(tmp_path, text, "#2")
    assert other.heads == ["Area", "Young", "Old"]
    assert [row for _, row in other.rows] == [["A", "2", "1"], ["B", "3", "6"]]


def test_an_empty_column_after_the_labels_parts_no_labels_from_their_counts(tmp_path):
    text = "Area,,M,F,,Zone,,Area,M,F\nA,,1,2,,Low,,C,3,4\nB,,5,4,,Low,,D,2,1\n,,,,,High,,E,7,7\n"
    sheet = sheet_of(tmp_path, text)
    assert [row for _, row in sheet.rows] == [["A", "1", "2"], ["B", "5", "4"]]
    assert [row for _, row in sheet_of(tmp_path, text, "#2").rows][2] == ["High", "E", "7", "7"]
    flags = "Area,,M,,Flag,,F\nA,,1,,x,,2\nB,,5,,x,,4\n"  # they tell no rows apart
    assert sheet_of(tmp_path, flags).heads == ["Area", "M", "Flag", "F"]


def test_a_list_that_goes_on_at_its_side_is_one_table(tmp_path):
    text = "County,Births,Deaths,,County,Births,Deaths\nAsh,1,2,,Elm,7,1\nBirch,5,4,,Fir,3,6\n"
    sheet = sheet_of(tmp_path, text)
    assert sheet.heads == ["County", "Births", "Deaths"]
    assert [row[0] for _, row in sheet.rows] == ["Ash", "Birch", "Elm", "Fir"]


def test_titles_side_by_side_are_labels_of_a_further_variable(tmp_path):
    text = "Men,,,,Women,,\nAge,In,Out,,Age,In,Out\n0-17,1,2,,0-17,7,1\n18+,5,4,,18+,3,6\n"
    cells = read([sheet_of(tmp_path, text)], {}).cells
    assert {*zip(cells["section"], cells["age"], strict=True)} == {
        (sex, age) for sex in ("Men", "Women") for age in ("0-17", "18+")
    }


@pytest.mark.parametrize(
    "text",
    [
        "Area,M,F,,2019,2020\nA,1,2,,2,1\nB,5,4,,3,6\n",
        "Area,M,,F,,All\nA,1,,2,,3\nB,5,,4,,9\n",
        "id,name,,kind,count\n1,A,,x,5\n2,B,,x,7\n3,C,,y,8\n",
    ],
)
def test_an_empty_column_parts_no_table_without_labels_of_its_own(text, tmp_path):
    sheet = sheet_of(tmp_path, text)
    assert sheet.heads == [head for head in text.splitlines()[0].split(",") if head]
    assert len(sheet.rows) == text.count("\n") - 1


BAD, GOOD = "Area,n,n\nA,11,12\nB,15,14\nC,15,19\n", "Area,n\nA,20\nB,10\n"


def test_where_a_sheet_cannot_be_read_another_is_and_that_is_said(tmp_path):
    file = workbook(tmp_path / "t.xlsx", Bad=BAD, Good=GOOD, Words="Only,words\nare,here\n")
    reading = read([file_sheet(file)], {})
    assert {*reading.cells["stated"]} == {"20", "10"}
    said = "\n".join(reading.lines)
    assert "Bad" in said
    assert "Good" in said
    with pytest.raises(DataError, match=r"\(sheet 'Bad'\).*sheet=Good can be read"):
        read([file_sheet(file, "Bad")], {"sheet": "Bad"})
    with pytest.raises(DataError, match=r"\(sheet 'Words'\).*sheet=Good can be read"):
        read([file_sheet(file, "Words")], {"sheet": "Words"})


YEAR = "People\nPart,All,Women,Men\nTotal,16,9,7\nYoung,5,3,2\nOld,11,6,5\n"
MADE = "People\nPart,All,Women,Men,F%\nTotal,21,9,12,0.43\n,0,0,0,\nYoung,9,5,4,0.56\nOld,12,4,8,\n"


@pytest.mark.parametrize("order", [("2016", "2017", "made"), ("made", "2017", "2016")])
def test_the_first_of_several_sheets_of_one_form_is_read(order, tmp_path):
    text = {"2016": YEAR, "2017": YEAR.replace("11,6", "12,7").replace("16,9", "17,10")}
    pages = {name: text.get(name, MADE) for name in order}
    file = workbook(tmp_path / "t.xlsx", Notes="Contents,1\n", **pages)
    assert file_sheet(file).tab == order[0]
    assert file_sheet(file, "2017").tab == "2017"


def test_a_sheet_of_another_form_comes_first_if_it_has_more_counts(tmp_path):
    other = "Town,All,Women,Men\n" + "".join(f"T{k},{3 * k},{k},{2 * k}\n" for k in range(1, 9))
    assert file_sheet(workbook(tmp_path / "t.xlsx", Year=YEAR, Towns=other)).tab == "Towns"


def test_sheets_of_the_same_places_have_other_headings(tmp_path):
    towns = {f"Town of {name}": k for k, name in enumerate("ABCDEFGH", 1)}
    two = "Town,Old,Young\n" + "".join(f"{t},{k},{2 * k}\n" for t, k in towns.items())
    more = "Town,Men,Women,All\n" + "".join(f"{t},{k},{2 * k},{3 * k}\n" for t, k in towns.items())
    assert file_sheet(workbook(tmp_path / "t.xlsx", Age=two, Sex=more)).tab == "Sex"


AREA = "AREA # {},{},,\n,,,\nAge,Sex,,\n,Women,Men,Total\n{}Total,{},{},{}\n,,,\n"


def areas(*rows):
    """Return tables of areas as a text: number and name of each, and labels with counts."""
    parts = []
    for number, name, ages in rows:
        lines = "".join(f"{age},{w},{m},{w + m}\n" for age, w, m in ages)
        women, men = (sum(column) for column in list(zip(*ages, strict=True))[1:])
        parts.append(AREA.format(number, name, lines, women, men, women + men))
    return "".join(parts)


def test_titles_of_several_texts_are_labels_and_a_label_may_be_absent(tmp_path):
    head = "Base,\nFilter,age > 14\nTable,\nof ages,\n,,,\n"
    north, south = (
        [("15-19", 9, 4), ("20-24", 5, 2), ("25+", 1, 3)],
        [("15-19", 3, 4), ("25+", 7, 1)],
    )
    sheet = sheet_of(tmp_path, head + areas(("02", "North", north), ("06", "South", south)))
    counts = {tuple(row[:2]): row[2:] for _, row in sheet.rows}
    assert sheet.heads == ["section", "Age", "Women", "Men", "Total"]
    assert len(counts) == 4 + 3
    assert counts["AREA # 02, North", "20-24"] == ["5", "2", "7"]
    assert counts["AREA # 06, South", "Total"] == ["10", "5", "15"]
    assert sheet.part == ""


def test_of_tables_with_other_labels_the_number_that_is_read_is_said_first(tmp_path):
    first, other = [("15-19", 9, 4), ("20-24", 5, 2)], [("single", 9, 4), ("married", 5, 2)]
    text = areas(("1", "Age", first), ("2", "State", other), ("3", "All", other))
    sheet = sheet_of(tmp_path, text)
    assert len(sheet.rows) == 3
    assert "1 of 3 tables is read" in read([sheet], {}).lines[0]
    assert sheet_of(tmp_path, text, "#2").part == ""


def test_where_a_sheet_cannot_be_read_the_other_names_how_many_there_are(tmp_path):
    file = workbook(tmp_path / "t.xlsx", Bad=BAD, Good=GOOD, Words="Only,words\nare,here\n")
    said = read([file_sheet(file)], {}).lines
    assert any("'Good' of 3; sheet=NAME reads another" in line for line in said)


def test_the_first_line_names_the_other_sheets_with_tables_the_next_best_first(tmp_path):
    large = "area,n\n" + "\n".join(f"area {k},{k * k + 7}" for k in range(30)) + "\n"
    file = workbook(tmp_path / "t.xlsx", Words="Only,words\nare,here\n", Few=GOOD, Large=large)
    first = next(line for line in read([file_sheet(file)], {}).lines if "rows, counts" in line)
    assert "(sheet 'Large' of 3; sheet=NAME reads another: 'Few')" in first
    chosen = next(line for line in read([file_sheet(file, "Few")], {}).lines if "rows, c" in line)
    assert "sheet 'Few'" in chosen


def test_a_workbook_that_cannot_be_opened_names_what_to_save_it_as(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", "<a>\n  <b/>\n</a>")
    with pytest.raises(DataError, match=r"t\.ods.*save it as \.xlsx, or its sheets as CSV"):
        file_sheet(tmp_path / "t.ods")


@pytest.mark.parametrize("sections", [2, 1])
def test_numbers_merged_over_rows_are_of_the_first_label_of_a_section(sections, tmp_path):
    rows = [
        ("Benefit", "Job", "Parent"),
        ("Gender", 656, 57), ("Male", None, None), ("Female", 524, 634),
        ("Age", 545, 236), ("18-39", None, None), ("40-64", 635, 455),
    ]  # fmt: skip
    book = openpyxl.Workbook()
    for row in rows[: 1 + 3 * sections]:
        book.active.append(row)
    for place in ["B2:B3", "C2:C3", "B5:B6", "C5:C6"][: 2 * sections]:
        book.active.merge_cells(place)
    book.save(tmp_path / "t.xlsx")
    sheet = file_sheet(tmp_path / "t.xlsx")
    counts = {label: row[-2:] for _, row in sheet.rows for label in row}
    assert counts["Female"] == ["524", "634"]
    if sections == 2:
        assert counts["Male"] == ["656", "57"]
        assert counts["18-39"] == ["545", "236"]
        assert {"Gender", "Age"}.isdisjoint(counts)
    else:  # perhaps of both rows: of neither alone
        assert "656" not in counts
        assert "57" not in counts


def test_where_a_table_of_a_file_cannot_be_read_the_largest_other_is(tmp_path):
    text = (
        "Council election;;;;\nvalid;3000;;;\nblank;12;;;\nshare;0,40 %;;;\nvotes;3012;;;\n;;;;\n"
        "Party;Votes;Share;Seats;\nLocal;1600;53,33 %;9;\nOther;1400;46,67 %;7;\n;;;;\n"
        "Name;Valid;Blank;Local;Other\nA;1230;5;700;530\nB;900;4;500;400\nC;870;3;400;470\n"
    )
    sheet = sheet_of(tmp_path, text)
    reading = read([sheet], {})
    assert dict(reading.cells.groupby("name")["stated"].first()) == {
        "A": "1230", "B": "900", "C": "870",
    }  # fmt: skip
    assert any("sheet '#1'" in line for line in reading.lines if line.startswith("not read: "))
    with pytest.raises(DataError):  # which is asked for
        read([sheet_of(tmp_path, text, "#1")], {"sheet": "#1"})
    assert read([sheet_of(tmp_path, text.replace("0,40 %", "4"))], {}).cells["stated"][0] == "3000"


PERMITS = "code,year,country,All,North,South\n260,2024,Alba,30,10,20\n260,2024,Bela,12,7,5\n"


@pytest.mark.parametrize(
    "above", ["", ",,code,50000,50010,50090\n", ",,code,50000,50010,50090\n,,,-,-,-\n"]
)
def test_codes_above_headings_are_left_out(tmp_path, above):
    sheet = sheet_of(tmp_path, above + PERMITS)
    assert sheet.heads == ["code", "year", "country", "All", "North", "South"]
    assert len(sheet.rows) == 2
    assert [reason for _, _, reason in sheet.left] == ["codes above headings"] * above.count("\n")


@pytest.mark.parametrize("first", ["", "Kent,300,200,500\n"])
def test_counts_above_headings_that_stand_again_are_no_codes(tmp_path, first):
    again = "Area,Men,Women,All\n"
    text = f"{again}{first}Dover,114,132,246\n{again}Deal,120,110,230\nHythe,300,200,500\n"
    sheet = sheet_of(tmp_path, text)
    assert [row[0] for _, row in sheet.rows] == ["Kent"] * bool(first) + ["Dover", "Deal", "Hythe"]
    assert [reason for _, _, reason in sheet.left] == ["the headings again"]


def test_counts_above_another_table_are_no_codes(tmp_path):
    above = "Area,Men,Women\nKent,300,200\nDover,114,132\n"
    sheet = sheet_of(tmp_path, f"{above}Ward,Beds,Chairs\nI,300,140\nII,520,930\n")
    assert [row[0] for _, row in sheet.rows][:2] == ["Kent", "Dover"]


def test_years_above_headings_are_no_codes(tmp_path):
    sheet = sheet_of(tmp_path, ",2019,2020\ncountry,North,South\nAlba,10,20\nBela,7,5\n")
    assert [reason for _, _, reason in sheet.left] == []
    assert sheet.heads[1].startswith("2019")


def test_a_legend_of_signs_is_about_the_table(tmp_path):
    legend = '"table:","permits"\n"year:","2024","-"\n\n"***","no data"\n"0","nobody at all"\n\n'
    sheet = sheet_of(tmp_path, legend + PERMITS)
    assert len(sheet.rows) == 2
    assert "about the table" in {reason for _, _, reason in sheet.left}


@pytest.mark.parametrize("mark", ["..", "n.a.", "Data suppressed"])
def test_a_table_of_marks_ends_where_one_with_more_columns_begins(mark, tmp_path):
    second = "Ward;Beds;Chairs\nI;3;14\nII;5;9\n"
    text = f"sex;n\nMen;{mark}\nWomen;{mark}\nAll;6\n\nTable 2: of beds\n{second}"
    sheet = sheet_of(tmp_path, text)
    assert [row[1] for _, row in sheet.rows] == [mark, mark, "6"]
    assert sheet_of(tmp_path, text, "#2").heads == ["Ward", "Beds", "Chairs"]


def test_letters_above_numbers_begin_no_table(tmp_path):
    text = "Table 1\n,M,,F,\nage,a,b,a,b\n0-17,1,2,3,4\n18+,5,6,7,8\n"
    assert [row[0] for _, row in sheet_of(tmp_path, text).rows] == ["0-17", "18+"]


def test_tiny_fractions_that_a_spreadsheet_leaves_are_none_of_counts(tmp_path):
    book = openpyxl.Workbook()
    rows = (
        ("Place", "2020", "Mean"),
        ("Ash", 11095.999999999993, 2.25),
        ("Elm", 29942.00000000009, 3),
    )
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    sheet = file_sheet(tmp_path / "t.xlsx")
    assert [row for _, row in sheet.rows] == [["Ash", "11096", "2.25"], ["Elm", "29942", "3"]]


@pytest.mark.parametrize(("times", "first"), [("2015-2020", "Fish"), ("15-20", "Ponds")])
def test_times_in_headings_withhold_nothing(times, first, tmp_path):
    """A sheet that withholds counts comes first; 2015-2020 is none of these, and no range."""
    fish = "Kind,2015,2020\n" + "".join(f"Kind {k},{3 * k},{4 * k}\n" for k in range(1, 12))
    head = f"Pond,2015,2020,{times},{times.replace('5', '0')}\n"
    ponds = head + "".join(f"Pond {k},{k},{2 * k},{k},{k}\n" for k in range(1, 6))
    assert file_sheet(workbook(tmp_path / "t.xlsx", Fish=fish, Ponds=ponds)).tab == first


def test_headings_that_stand_again_begin_no_table(tmp_path):
    years = [*map(str, range(1991, 1997))]
    blocks = "".join(
        f",,{','.join(years)}\nPond {k},new,{k},2,3,4,5,9\n,lost,1,2,7,8,{k},6\n" for k in range(5)
    )
    text = f"Place,Fish,{','.join(years)}\n{blocks.partition(chr(10))[2]}"
    sheet = sheet_of(tmp_path, text)
    assert len(sheet.rows) == 10
    assert [r for _, _, r in sheet.left] == ["the headings again"] * 4
    other = sheet_of(tmp_path, text.replace("1996\nPond 3", "1997\nPond 3"))
    assert len(other.rows) != 10 or not other.left


def test_headings_that_stand_again_below_a_title_begin_a_table(tmp_path):
    part = "Fish of {0}\nPond,2016,2017,2018,2019,2020\nAsh,{1},2,7,4,9\nBay,8,{1},3,6,5\n"
    sheet = sheet_of(tmp_path, part.format("North", 31) + part.format("South", 42))
    assert [row[0] for _, row in sheet.rows] == ["Fish of North"] * 2 + ["Fish of South"] * 2
