"""Lines around and between the rows of a table: filters, names of labels, sentences, totals."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk import PublishedTables, TableReading
from bayesrisk.exceptions import DataError
from bayesrisk.reconstruction import count_bounds
from bayesrisk.tables.reading.reading import read
from bayesrisk.tables.sheets.sheet import file_sheet


def reading_of(tmp_path, text, **settings):
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8")
    return read([file_sheet(file)], settings)


def stated(said):
    """Return the texts of the counts with their labels, without those of totals."""
    names = [n for n in said.cells if n not in ("place", "table", "cell", "stated", "file", "row")]
    rows = said.cells[said.cells["file"] != ""]
    return {
        frozenset({*labels} - {"all", "All", "Total"}): text
        for *labels, text in rows[[*names, "stated"]].itertuples(index=False, name=None)
    }


FILTERS = 'SuperWEB2(tm)\n\n"Counting: Individuals"\n\nFilters:\n"Summation","Individuals"\n{}\n'
ZONES = '"Data Zone 2011",\n"S01",969,930,39,\n"S02",758,711,47,\n"S03",542,503,39,\n'


@pytest.mark.parametrize("more", ["", '"Sex","Both"\n', '"Sex","Both","of all ages"\n'])
@pytest.mark.parametrize("name", ["Data Zone 2011", "Age", "Zone - 2"])
def test_the_name_of_the_labels_below_headings_and_filters(more, name, tmp_path):
    head = '"Ethnic Group","All People","White","Asian",\n'
    text = FILTERS.format(more) + head + ZONES.replace("Data Zone 2011", name)
    said = reading_of(tmp_path, text + '\n\n"INFO","Data has been perturbed"\n')
    assert said.sheets[0].heads == [name, "All People", "White", "Asian"]
    assert stated(said)[frozenset({"S02", "Asian"})] == "47"
    assert len(stated(said)) == 9


def test_two_rows_of_headings_below_filters(tmp_path):
    head = '"Sex","Male",,"Female",,\n"Age","0-15","16+","0-15","16+",\n'
    rows = '"Data Zone 2011",\n"S01",69,30,39,7,\n"S02",58,11,47,8,\n"S03",42,53,39,9,\n'
    said = reading_of(tmp_path, FILTERS.format("") + head + rows)
    assert stated(said)[frozenset({"S02", "Female", "0-15"})] == "47"
    assert len(stated(said)) == 12


OFFICES = """Office and province,,2015,,,,2016,,,
,,Jan,Feb,Mar,2015 Total,Jan,Feb,Mar,2016 Total
,Nova Scotia,0,--,5,5,0,0,--,--
,Quebec,10,35,30,75,40,35,30,105
,Ontario,65,160,165,390,215,365,210,790
Airport - Total,,75,195,200,470,255,400,240,895
,Nova Scotia,0,0,0,0,0,--,--,5
,Quebec,40,90,100,230,140,95,90,325
,Ontario,185,230,310,725,270,255,260,785
Border - Total,,225,320,410,955,410,350,355,"1,115"
Total,,300,515,610,"1,425",665,750,595,"2,010"

Notes: all values between 0 and 5 are shown as “--”. All others are rounded to the nearest 5.
"""


@pytest.mark.parametrize("word", ["{} - Total", "{} Total", "Total {}"])
def test_groups_whose_name_stands_below_them_and_totals_of_a_heading(word, tmp_path):
    text = OFFICES
    for name in ("Airport", "Border"):
        text = text.replace(f"{name} - Total", word.format(name))
    for year in ("2015", "2016"):
        text = text.replace(f"{year} Total", word.format(year))
    said = reading_of(tmp_path, text)
    assert said.questions["counts"][0] == "nearest-5"
    assert said.questions["marks.--"][0] == "0-5"
    counts = stated(said)
    airport, border = word.format("Airport"), word.format("Border")
    assert counts[frozenset({airport, "Ontario", "2015", "Feb"})] == "160"
    assert counts[frozenset({border, "Ontario", "2015", "Feb"})] == "230"
    assert counts[frozenset({border, "2016"})] == "1,115"
    assert counts[frozenset({border, "Nova Scotia", "2016"})] == "5"
    assert len(counts) == 72


@pytest.mark.parametrize("text", ['"1,234"', "--"])
def test_numbers_with_thousands_apart_or_marks_are_no_labels(text, tmp_path):
    rows = f"A,{text},10\nA,6,11\nA,7,12\nB,{text},13\nB,6,14\nB,7,15\n"
    with pytest.raises(DataError, match="different labels"):
        reading_of(tmp_path, f"area,men,women\n{rows}")


def test_blank_labels_are_of_the_total_that_ends_their_group(tmp_path):
    text = "Office,Province,Year,Claims\n" + "".join(
        f"{office},{province},{year},{count + 2 * (year - 2015)}\n"
        for office, province, count in (
            ("", "Ash", 12), ("", "Elm", 40), ("Airport - Total", "All", 52),
            ("", "Ash", 11), ("", "Elm", 30), ("Border - Total", "All", 41), ("Mail", "All", 9),
        )
        for year in (2015, 2016)
    )  # fmt: skip
    said = reading_of(tmp_path, text)
    assert said.questions["blank"][0] == "below"
    counts = stated(said)
    assert counts[frozenset({"Airport - Total", "Elm", "2015"})] == "40"
    assert counts[frozenset({"Border - Total", "Elm", "2016"})] == "32"
    assert counts[frozenset({"Border - Total", "2016"})] == "43"
    assert counts[frozenset({"Mail", "2015"})] == "9"


DISTRICTS = """County Code,County,District Code,District,Absent
01,Adams,0010,Mapleton,2296
01,Adams,0020,Northglenn,8551
02,Alamosa,0100,Sangre,{}
03,Arapahoe,0120,Englewood,1113
{},,,,12260
"""


@pytest.mark.parametrize(
    ("hidden", "word"), [("300", "STATE TOTALS"), ("*", "STATE TOTALS"), ("300", "99")]
)
def test_a_row_without_labels_that_is_the_sum_of_all_is_the_total(hidden, word, tmp_path):
    said = reading_of(tmp_path, DISTRICTS.format(hidden, word))
    assert "blank" not in said.questions
    assert stated(said)[frozenset()] == "12260"
    if hidden == "*":
        said = read(said.sheets, {"totals.district": "complete"}).accepted()
        counts = count_bounds(PublishedTables(*said.parts)).counts
        assert {(300, 300)} < {*zip(counts["low"], counts["high"], strict=True)}


def test_a_row_without_labels_that_is_no_sum_is_by_itself(tmp_path):
    said = reading_of(tmp_path, DISTRICTS.format("301", "99"))
    assert said.questions["blank"][0] == "label"


@pytest.mark.parametrize(
    "words", ["Merged with No. {}", "Fusionné avec le bureau {}", "see district {} (below)"]
)
@pytest.mark.parametrize("place", [0, 1])
def test_words_in_the_place_of_counts_say_nothing_of_them(place, words, tmp_path):
    text = "Poll,Dalton,Efford,Total,Electors\nCove,17,54,71,162\nHead,1,24,25,108\n"
    for k, electors in enumerate((20, 19, 7)):
        votes = ["", "", ""]
        votes[place] = words.format(k + 1)
        text += f"Mobile {k},{','.join(votes)},{electors}\n"
    said = reading_of(tmp_path, text + "Perlican,23,103,126,361\nAdvance,7,36,43,150\n")
    assert not any("Merged" in name or "istrict" in name for name in said.questions)
    assert len(said.questions) < 5
    bounds = count_bounds(PublishedTables(*said.accepted().parts)).counts
    cells = said.cells.merge(bounds.rename(columns={"geoid": "place"}), how="left")
    none = cells[cells["stated"] == words.format(1)]
    assert len(none) == 1
    assert none["low"].item() == 0
    assert none["high"].fillna(10**6).item() > 100
    chosen = read(said.sheets, {f"marks.{words.format(1)}": "1-4"})
    assert chosen.rules[f"marks.{words.format(1)}"] == "1-4"


@pytest.mark.parametrize("last", ["", "\nSource: made up,,"])
def test_a_number_alone_below_a_table_is_the_total_of_all(tmp_path, last):
    rows = ["Male,0-17,37", "Male,18+,9", "Female,0-17,14", "Female,18+,7"]
    file = tmp_path / "t.csv"
    file.write_text("\n".join(["Sex,Age,Cases", *rows, ",,67"]) + last)
    reading = TableReading.read(file)
    total = reading.cells[reading.cells["stated"] == "67"]
    assert total[["sex", "age"]].to_numpy().tolist() == [["all", "all"]]


def test_a_number_alone_that_is_no_sum_is_refused(tmp_path):
    rows = ["Male,0-17,37", "Male,18+,9", "Female,0-17,14", "Female,18+,7"]
    file = tmp_path / "t.csv"
    file.write_text("\n".join(["Sex,Age,Cases", *rows, ",,68"]))
    with pytest.raises(DataError, match="row 6: must be a row of the table"):
        TableReading.read(file)


@pytest.mark.parametrize(
    ("label", "counts"),
    [
        ("Average of the last 5 years", "28,40,35"),
        ("5-year average", "28,40,35"),
        ("Moyenne des cinq ans", "28,40,35"),
        ("Per cent of all fish", "28,40,35"),
        ("Rate per 1,000", "28,40,35"),
    ],
)
def test_rows_of_means_and_shares_in_whole_numbers_count_nobody(label, counts, tmp_path):
    rows = f'All fish,30,41,37\n"{label}",{counts}\nAsh,12,17,20\nBay,18,24,17\n'
    said = reading_of(tmp_path, f"Pond,one,two,three\n{rows}")
    assert [reason for _, _, reason in said.sheets[0].left] == []
    assert not any(label in row for row in stated(said))
    assert len(stated(said)) == 9
    assert any("no count" in line for line in said.lines)


@pytest.mark.parametrize("label", ["Fish of average size or more", "Average", "Higher rate"])
def test_labels_of_a_size_or_a_rate_count_where_sums_need_them(label, tmp_path):
    rows = f"All fish,40,52,44\n{label},10,11,7\nAsh,12,17,20\nBay,18,24,17\n"
    said = reading_of(tmp_path, f"Pond,one,two,three\n{rows}")
    assert stated(said)[frozenset({label, "two"})] == "11"


def test_places_with_decimals_beside_a_column_of_decimals_are_no_means(tmp_path):
    rows = "Ash,14.8,3.2,0\nBay,19.3,0,0\nElm,6.8,12,0\nFir,6.4,0,1.5\nYew,6.7,26.7,1\n"
    with pytest.raises(DataError, match="must have a column of counts"):
        reading_of(tmp_path, f"Pond,one,two,three\n{rows}")
    means = "Ash,14,3,0\nBay,19,0,0\nElm,6,12,0\nFir,6,0,3\nMean depth,11.2,3.8,0.8\n"
    assert len(stated(reading_of(tmp_path, f"Pond,one,two,three\n{means}"))) == 12


@pytest.mark.parametrize(
    ("title", "refused"),
    [
        ("Keepers by pond, full-time equivalents", True),
        ("Keepers (FTE)", True),
        ("Keepers by pond, headcount and FTE", False),
        ("Keepers by pond, full time", False),
    ],
)
def test_full_time_equivalents_count_nobody(title, refused, tmp_path):
    text = f'"{title}"\nPond,F,M\nAsh,12,7\nBay,9,3\nElm,4,8\n'
    if refused:
        with pytest.raises(DataError, match=r"got full-time equivalents.*HEADING=count"):
            reading_of(tmp_path, text)
        text = text.replace("F,M", "FTE,M")
    assert frozenset({"Bay", "M"} if not refused else {"Bay"}) in stated(reading_of(tmp_path, text))


ROWS = "Ash,F,7,9\nAsh,M,4,2\nBay,F,1,8\nBay,M,6,3\n"


@pytest.mark.parametrize(("last", "labels"), [(",,18,22", {"all"}), (",,18,23", set())])
def test_numbers_below_all_labels_are_a_total_where_each_is_the_sum(last, labels, tmp_path):
    """One number that is no sum leaves it open what the row counts."""
    said = reading_of(tmp_path, f"Pond,Sex,carp,trout\n{ROWS}{last}\n")
    rows = said.cells[(said.cells["row"] == 6) & (said.cells["file"] != "")]
    assert {*rows["pond"], *rows["sex"]} & {"all"} == labels


@pytest.mark.parametrize(
    ("line", "heads"),
    [("Kind,Way,,", ["Kind", "Way", "F", "M"]), ("Tench,net,,", ["", "", "F", "M"])],
)
def test_a_line_of_words_alone_names_the_labels_that_have_no_headings(line, heads, tmp_path):
    """A text that is a label elsewhere names none."""
    rows = "All fish,,30,41\n{}\nCarp,hook,12,17\nCarp,net,8,4\nTench,net,3,9\nTench,hook,7,11\n"
    said = reading_of(tmp_path, f",,F,M\n{rows.format(line)}")
    assert said.sheets[0].heads == heads
    assert len(said.sheets[0].rows) == 5 + (heads[0] == "")


def test_numbers_in_one_row_of_each_block_are_no_labels_of_the_block():
    """Births stand beside *register of births* alone; a year may stand in the middle of a block."""
    rng, rows = np.random.default_rng(2), []
    for year in range(1990, 2002):
        deaths, births = map(str, rng.integers(2000, 9000, 2))
        rows += [[str(year), "register of deaths", "", deaths],
                 [str(year), "register of births", births, ""]]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["year", "register", "births", "deaths"])
    stated = TableReading.from_frame(frame).cells["stated"]
    assert sorted(stated) == sorted(n for _, _, *counts in rows for n in counts if n)
    frame["year"] = [year * (k % 2) for k, year in enumerate(frame["year"])]
    frame["births"] = frame["deaths"] = rng.integers(20, 900, 24).astype(str)
    assert TableReading.from_frame(frame).rules["blank"] == "block"


def test_notes_beside_counts_are_listed_in_one_line(tmp_path):
    """Each keeps a setting of its own, and a number may be followed by several notes."""
    marks = ["1)", "2)", "a)", "a,b)", "¹", "(c)"]
    rows = [
        ["town", "men", "women"],
        *([f"t{k}", 20 + k, f"{9 + k} {m}"] for k, m in enumerate(marks)),
    ]
    notes = [f"{mark} The borders were drawn anew." for mark in marks]
    text = "\n".join(
        [*(",".join(f'"{x}"' for x in row) for row in rows), "", *(f'"{n}"' for n in notes)]
    )
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    reading = TableReading.read(tmp_path / "t.csv")
    settings = {name for name, (guess, _) in reading.questions.items() if guess == "note"}
    assert settings == {f"marks.{mark}" for mark in ("1", "2", "a", "a,b", "¹", "c")}
    assert sum("marks." in line for line in reading.screen()) == 1
    (tmp_path / "t.csv").write_text(text.replace("9 1)", "91)"), encoding="utf-8")
    with pytest.raises(DataError):  # 9 with a note, or 91
        TableReading.read(tmp_path / "t.csv")


@pytest.mark.parametrize(("filled", "rows"), [(2, 4), (6, 7)])
def test_rows_below_a_total_and_an_empty_row_are_of_another_table_if_most_counts_lack(
    filled, rows, tmp_path
):
    """Their empty cells are no hidden counts; rows with all counts belong to the table."""
    draw = np.random.default_rng(6)
    counts = draw.integers(20, 900, (3, 6))
    below = [[*[""] * (6 - filled), *draw.integers(20, 900, filled)] for _ in range(3)]
    lines = ["district,men ill,women ill,men well,women well,men,women"]
    lines += [",".join(map(str, row)) for row in (
        *(["East", *counts[0]], ["West", *counts[1]], ["South", *counts[2]]),
        ["Sum", *counts.sum(axis=0)], [""] * 7,
        *([name, *row] for name, row in zip(("Army", "Police", "Others"), below, strict=True)),
    )]  # fmt: skip
    reading = reading_of(tmp_path, "\n".join(lines))
    assert len(reading.sheets[0].rows) == rows
    assert "marks." not in reading.rules
