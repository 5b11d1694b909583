"""Bodies of tables: repeated headings, labels over two rows, sections, notes below them."""

import numpy as np
import pytest

from bayesrisk.exceptions import DataError
from bayesrisk.tables.reading.reading import TableReading, read
from bayesrisk.tables.sheets.lines import CountColumns
from bayesrisk.tables.sheets.sections import section_headings, with_totals_first
from bayesrisk.tables.sheets.sheet import file_sheet


def sheet_of(folder, text):
    file = folder / "t.csv"
    file.write_text(text, encoding="utf-8")
    return file_sheet(file)


def labels_of(sheet):
    return [row[0] for _, row in sheet.rows]


def test_headings_again_may_have_lost_some(tmp_path):
    text = (
        "State,Year,Age,Unit,Births\nOhio,1990,15-17,per 1000,422\nUtah,1990,15-17,per 1000,33\n"
        "State,Year,Age,Unit,0\n"
    )
    sheet = sheet_of(tmp_path, text)
    assert labels_of(sheet) == ["Ohio", "Utah"]
    assert [(row, reason) for row, _, reason in sheet.left] == [(4, "the headings again")]
    # Numbers that are those of headings by chance repeat nothing.
    text = "Land,Jahr,1,2,3,4\nBremen,2018,1,2,3,4\nHessen,2018,5,2,3,6\n"
    assert labels_of(sheet_of(tmp_path, text)) == ["Bremen", "Hessen"]


WEEKS = "Week,2 Jan,9 Jan,16 Jan\n"


def test_a_long_label_may_go_on_in_the_next_row(tmp_path):
    lines = (
        "Deaths with a mention of influenza,12,15,9\nand of pneumonia,,,\nAll other deaths,7,8,6\n"
    )
    sheet = sheet_of(tmp_path, WEEKS + lines)
    assert labels_of(sheet) == [
        "Deaths with a mention of influenza and of pneumonia",
        "All other deaths",
    ]
    # After a short label, or with a colon, it is a heading, or nobody knows what.
    for label, below in (("Influenza", "and of pneumonia"), ("", "and of pneumonia:")):
        text = lines.replace("and of pneumonia", below)
        text = text.replace("Deaths with a mention of influenza", label) if label else text
        try:
            labels = labels_of(sheet_of(tmp_path, WEEKS + text))
        except DataError:
            continue
        assert not any("influenza and" in name.lower() for name in labels)


@pytest.mark.parametrize("letters", ["M,F", "n,x"])
def test_headings_of_letters_that_stand_again_are_no_withheld_counts(letters, tmp_path):
    text = f"Persons by area\n\nArea,{letters}\nKent,3,4\nDeal,5,6\nArea,{letters}\nEssex,7,8\n"
    sheet = sheet_of(tmp_path, text)
    assert sheet.heads == ["Area", *letters.split(",")]
    assert labels_of(sheet) == ["Kent", "Deal", "Essex"]


@pytest.mark.parametrize("indent", ["", "  "])
def test_a_heading_in_small_letters_below_a_long_label_is_one(indent, tmp_path):
    """Labels stand below each heading again, or are indented."""
    again = "" if indent else "Injuries and other consequences of external causes,4,5,6\n"
    text = (
        f"Cause,2019,2020,2021\ndiseases of all kinds,,,\n{indent}Influenza,12,15,9\n{again}"
        f"{indent}Injuries and other consequences of accidents,7,8,6\n"
        f"assaults and other violence,,,\n{indent}{'Knives' if indent else 'Influenza'},3,4,5\n"
        f"{indent}Guns,1,2,3\n"
    )
    sheet = sheet_of(tmp_path, text)
    assert "assaults and other violence" in {row[0].partition("!!")[0] for _, row in sheet.rows}
    assert not any("accidents assaults" in text for _, row in sheet.rows for text in row)


@pytest.mark.parametrize(
    ("heading", "labels", "tree"),
    [
        ("Place", ["Kent", "Kent -> Dover", "Kent -> Deal", "Essex"], True),
        ("Move", ["Kent -> Essex", "Essex -> Kent", "Kent -> Kent"], False),
        ("Move", ["Rural -> Urban", "Urban -> Abroad"], False),
        ("Origin -> destination", ["Kent -> Dover", "Essex -> Deal"], False),
    ],
)
def test_arrows_from_origins_to_destinations_make_no_tree(heading, labels, tree, tmp_path):
    rows = "".join(f"{label},{7 + 3 * k},{k + 4}\n" for k, label in enumerate(labels))
    sheet = sheet_of(tmp_path, f"{heading},Men,Women\n{rows}")
    stated = [label.replace(" -> ", "!!") if tree else label for label in labels]
    assert labels_of(sheet) == stated
    columns = sheet_of(tmp_path, f"Sex,{','.join(labels)}\nMen{',7' * len(labels)}\n")
    if heading != "Origin -> destination":
        assert columns.heads[1:] == stated


def nested(gap):
    """Return ages below sexes, and regions after a gap that no heading of ages has."""
    ages = "Deaths by age group,,,\n0-64,{},4,5\n65+,7,8,{}\n"
    groups = "".join(
        f"{sex},,,\n{ages.format(n, n + 3)}" for n, sex in ((3, "Males"), (6, "Females"))
    )
    return WEEKS + groups + gap + "Deaths by region,,,\nNorth,9,10,13\nSouth,14,14,6\n"


def test_a_heading_after_an_empty_row_is_below_no_other(tmp_path):
    sheet = sheet_of(tmp_path, nested(",,,\n"))
    sections = {row[sheet.heads.index("section")] for _, row in sheet.rows}
    assert sections == {
        "Males!!Deaths by age group",
        "Females!!Deaths by age group",
        "Deaths by region",
    }
    with pytest.raises(DataError):  # perhaps of females alone
        sheet_of(tmp_path, nested(""))


def areas(total):
    return (
        f"Area,Both,Men,Women\nScotland,{total},20,25\nCouncil areas,,,\n"
        "Angus,21,12,9\nFife,24,8,16\n"
    )


def test_words_between_a_total_and_its_parts_are_left_out(tmp_path):
    sheet = sheet_of(tmp_path, areas(45))
    assert labels_of(sheet) == ["Scotland", "Angus", "Fife"]
    assert ("Council areas", "words before parts") in {(t, why) for _, t, why in sheet.left}
    with pytest.raises(DataError, match="Council areas"):  # it may be the heading of a section
        sheet_of(tmp_path, areas(46))


@pytest.mark.parametrize(
    ("total", "words", "most"),
    [
        ("Total deaths", "Causes of death", 39),
        ("Deaths", "Causes of death", 0),  # what the first row is does not show
        ("Total deaths", "Men", 0),  # of whom the rows below may be
        ("Total deaths", "Causes of death", 46),  # more than the total
    ],
)
def test_words_below_a_total_that_other_rows_do_not_make_up_are_left_out(
    total, words, most, tmp_path
):
    text = f"Cause,Men,Women\n{total},40,45\n{words},,\nHeart,21,{most}\nLung,4,3\nStroke,2,1\n"
    with pytest.raises(DataError, match=words):  # ages make up all who have an illness
        sheet_of(tmp_path, text.replace("Lung", "0-64").replace("Stroke", "65 and over"))
    if 0 < most < 45:
        sheet = sheet_of(tmp_path, text)
        assert labels_of(sheet) == [total, "Heart", "Lung", "Stroke"]
        notes = f"{text}\n1, Includes visitors\n2, Deaths by year\n"
        assert sheet_of(tmp_path, notes).left_out().startswith(f"row 3 {words!r}")
    else:
        with pytest.raises(DataError, match=words):
            sheet_of(tmp_path, text)


@pytest.mark.parametrize(
    "notes",
    [
        'Notes,c,"1 to 4, not shown"\n,..,not available\n,1,Includes visitors at sea\n',
        ',1,Includes visitors at sea\n,c,"1 to 4, not shown"\n',
        ',"c: 1 to 4, not shown"\n,Source: the office\n',
    ],
)
def test_notes_below_a_table_may_begin_in_a_column_of_counts(notes, tmp_path):
    rows = "area,Male,Female,Total\nAsh,14,15,29\nBay,16,c,18\nElm,17,18,35\nFir,c,12,14\n"
    (tmp_path / "t.csv").write_text(f"{rows}\n{notes}", encoding="utf-8")
    said = TableReading.read(tmp_path / "t.csv")
    assert {*said.cells["area"]} == {"Ash", "Bay", "Elm", "Fir"}
    assert said.questions["marks.c"][0] == "1-4"


@pytest.mark.parametrize("row", ["Note,1,2,3", ",1,2,3"])
def test_a_row_of_numbers_is_no_note_whatever_it_is_called(row, tmp_path):
    (tmp_path / "t.csv").write_text(f"area,Male,Female,Total\nAsh,14,15,29\nBay,16,2,18\n{row}\n")
    assert len(TableReading.read(tmp_path / "t.csv").cells) == 9


KINDS = "Fish,M,F,Total\nAll fish,300,400,700\nKind\ncarp,100,250,350\ntrout,200,150,350\neel{}\n"
MARKED = "Mark\nwith a ring,30,40,70\nwith a tag,35,50,85\nwith either,60,80,140\n"


def test_a_heading_is_one_if_the_first_rows_below_it_make_up_the_row_above_all(tmp_path):
    """Then others are headings, too: rows below them may overlap."""
    sheet = sheet_of(tmp_path, KINDS.format(",7,9,16") + MARKED)
    assert {row[0] for _, row in sheet.rows} == {"All fish", "Kind", "Mark"}
    reading = TableReading.read(tmp_path / "t.csv")
    assert any("Mark: with a tag" in label for label in map(str, reading.cells.to_numpy().ravel()))


@pytest.mark.parametrize("change", [("100", "101"), ("Kind\n", "Kind\nbream,1,1,2\n")])
def test_a_row_of_one_text_is_no_heading_if_no_sum_shows_it(change, tmp_path):
    text = (KINDS.format(",7,9,16") + MARKED).replace(*change)
    with pytest.raises(DataError, match="must be a row of the table, with counts, got 'Kind'"):
        sheet_of(tmp_path, text)


@pytest.mark.parametrize(
    "note",
    [
        "Fonte: IBGE",
        "Quelle: Amt",
        "Fuente: Oficina",
        "---Not available.",
        "(r38234)",
        "(2) Census",
    ],
)
def test_a_source_in_another_language_or_a_sign_with_its_meaning_is_a_note(note, tmp_path):
    rows = "".join(f"A pond with a long name {n},{n},{n}\n" for n in range(5))
    assert (7, note, "a note below the table") in sheet_of(
        tmp_path, f"Pond,M,F\n{rows}{note}\n"
    ).left


@pytest.mark.parametrize("label", ["Fontaine", "Quellental", "- North"])
def test_a_label_like_a_note_is_a_row(label, tmp_path):
    sheet = sheet_of(tmp_path, f"Place,M,F\nAsh,1,2\nBay,3,4\n{label},5,*\n")
    assert len(sheet.rows) == 3


def test_a_label_goes_on_below_its_counts_where_labels_stand_in_two_columns(tmp_path):
    text = (
        "Week,,1,2\nAll deaths,,12,15\nDeaths as an average of the same,,11,14\n"
        "week in five years before,,,\n,By age,,\n,young,5,7\n,old,7,8\n"
    )
    labels = [" ".join(filter(None, row[:-2])) for _, row in sheet_of(tmp_path, text).rows]
    assert any("average of the same week in five years before" in label for label in labels)


def test_the_number_of_a_note_in_the_place_of_a_count_is_a_mark(tmp_path):
    sheet = sheet_of(tmp_path, "Year,All,Read\n1920,30,20\n1940,(2),(2)\n1950,50,40\n1960,60,55\n")
    reading = read([sheet], {})
    assert reading.questions["marks.(2)"][0] == "withheld"


def test_no_lines_make_no_sections():
    """As of a damaged file, whose headings have nothing below them."""
    columns = CountColumns({1}, [0], numbers=True, marks=frozenset())
    assert with_totals_first([], columns) == ([], {})
    assert section_headings([], [], columns) == {}


def test_a_total_without_a_label_is_called_so_where_labels_stand(tmp_path):
    text = (
        "Kind,Sex,2019,2020,,\nA,Men,5,6,,\nA,Women,7,9,,\nB,Men,2,3,,\nB,Women,1,4,,\n,,15,22,,\n"
    )
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8")
    sheet = file_sheet(file)
    assert sheet.heads == ["Kind", "Sex", "2019", "2020"]
    assert sheet.rows[-1][1] == ["Total", "Total", "15", "22"]


def test_headings_of_several_sections_that_a_blank_row_leaves_open_are_left_out(tmp_path):
    """*South* stands before the sections of the south; whether *Total* is one of them is open."""
    rng, lines = np.random.default_rng(3), ["age,men,women", "North,,"]
    for town in ("Ash", "Birch", "South", "Cedar", "Dale", "Total"):
        lines.append(f"{town},,")
        if town != "South":
            counts = zip(("0-17", "18-64", "65+"), rng.integers(5, 90, (3, 2)), strict=True)
            lines += [f"{age},{a},{b}" for age, (a, b) in counts]
            lines.append(",,")
    file = tmp_path / "t.csv"
    file.write_text("\n".join(lines) + "\n")
    sheet = file_sheet(file)
    assert sheet.heads[0] == "section"
    assert {row[0] for _, row in sheet.rows} == {"Ash", "Birch", "Cedar", "Dale", "Total"}
    reasons = {text: reason for _, text, reason in sheet.left}
    assert {text for text, reason in reasons.items() if "several sections" in reason} == {
        "North",
        "South",
    }
    file.write_text("\n".join(lines).replace("Dale", "Ash") + "\n")  # which Ash is it?
    with pytest.raises(DataError, match="North"):
        file_sheet(file)


TOWNS = [
    ("A1", "101", "Capital", 70), ("", "", "", 0), ("B1", "201", "Elm", 31),
    ("B1", "202", "Oak", 18), ("", "", "", 0), ("C1", "301", "Ash", 25), ("C1", "302", "Elm", 9),
    ("C1", "303", "Fir", 14),
]  # fmt: skip


def towns_in_districts(codes=None):
    """Return a table of towns whose districts stand in rows of their own, and have a code."""
    rows, names = ["Code,Town code,Town,Residents,Men,Women"], iter(["District B", "District C"])
    for k, (code, town, name, count) in enumerate(TOWNS):
        code = code if codes is None or not code else codes[k]
        counts = f"{count},{count // 2},{count - count // 2}"
        rows.append(f"{code},{town},{name},{counts}" if town else f"{next(names)},,,,,")
    return "\n".join(rows) + "\n"


def test_rows_of_one_text_are_headings_if_each_has_a_code_of_its_own_below_it(tmp_path):
    sheet = sheet_of(tmp_path, towns_in_districts())
    assert [row for _, row in sheet.rows] == [
        [section, code, town, name, str(n), str(n // 2), str(n - n // 2)]
        for section, (code, town, name, n) in zip(
            ["", *["District B"] * 2, *["District C"] * 3],
            [one for one in TOWNS if one[0]],
            strict=True,
        )
    ]


@pytest.mark.parametrize("wrong", [5, 7])
def test_codes_that_cross_rows_of_one_text_show_no_headings(wrong, tmp_path):
    """A code of the district before stands below a heading, or a row has a third code."""
    codes = [code for code, *_ in TOWNS]
    codes[wrong] = {5: "B1", 7: "D1"}[wrong]
    with pytest.raises(DataError, match="row 3: must be a row of the table"):
        sheet_of(tmp_path, towns_in_districts(codes))
