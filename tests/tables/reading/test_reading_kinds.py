"""Kinds of misreading that random layouts and published files showed, each in a small table."""

import datetime

import numpy as np
import openpyxl
import pandas as pd
import pytest

from bayesrisk import PublishedTables, TableReading
from bayesrisk.exceptions import DataError
from bayesrisk.reconstruction import count_bounds
from bayesrisk.tables.reading.headings import heading_kind
from bayesrisk.tables.reading.reading import read as read_layouts
from bayesrisk.tables.sheets.sheet import file_sheet, frame_sheets
from bayesrisk.tables.sheets.texts import interval, number_range

WARDS = ("Ash", "Beech", "Cedar", "Elm", "Fir", "Oak")


def sheet_of(tmp_path, text):
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8")
    return file_sheet(file)


def variables_of(said):
    """Return the labels of each variable, without those that count all."""
    names = [n for n in said.cells.columns if n not in ("place", "table", "cell", "stated", "file")]
    return {n: {*said.cells[n]} - {"all"} for n in names if n != "row"}


@pytest.mark.parametrize(
    ("text", "options", "labels"),
    [
        # Rows that hold marks alone are rows of the table, not notes below it.
        (
            "drug,n\nHeroin,0\nOpioids,*\nCocaine,*\n",
            {},
            {"drug": {"Heroin", "Opioids", "Cocaine"}},
        ),
        # A column of withheld counts is one of counts, whatever the word.
        (
            "area,Male,Female,Total\nA,Data suppressed,0,7\nB,Data suppressed,Data suppressed,5\n",
            {},
            {"area": {"A", "B"}, "sex": {"Male", "Female"}},
        ),
        # So is one whose counts are all the same range.
        (
            "area,Male,Female,Total\nA,1-4,7,10\nB,1-4,1-4,5\n",
            {},
            {"area": {"A", "B"}, "sex": {"Male", "Female"}},
        ),
        # Codes beside blank labels are codes all the same.
        (
            "cause code,cause,sex,n\n01,Falls,M,4\n01,,F,5\n02,Burns,M,3\n02,,F,9\n",
            {"blank": "above"},
            {"cause": {"Falls", "Burns"}, "sex": {"M", "F"}},
        ),
        # Units beside the labels of headings are no part of them.
        ("area,M ('000),F ('000)\nX,4,5\nY,6,7\n", {}, {"area": {"X", "Y"}, "sex": {"M", "F"}}),
        # Letters above labels are no row of codes where they stand above several columns.
        (
            ",M,,F,\nhome,Owned,Rented,Owned,Rented\nX,1,2,3,4\nY,5,6,7,8\n",
            {},
            {"home": {"X", "Y"}, "sex": {"M", "F"}, "category 2": {"Owned", "Rented"}},
        ),
        # Numbers of places are their codes; what is called so is no count.
        (
            "Ward Number,Ward,Cases\n"
            + "".join(f"{7 - i},{w},{i * i}\n" for i, w in enumerate(WARDS, 1)),
            {},
            {"ward": {*WARDS}},
        ),
        # Numbers alone tell the rows apart, and their heading says that they are places.
        (
            "region,2021-04-28\n" + "".join(f"{i},{i * i}.0\n" for i in range(1, 8)),
            {},
            {"region": {*"1234567"}},
        ),
        # A word for a total in a name is no total where another label exceeds it.
        (
            "area,Total Care,Grammar,All\nX,4,5,9\nY,6,7,13\n",
            {},
            {"area": {"X", "Y"}, "category 1": {"Total Care", "Grammar"}},
        ),
        # A letter that stands for a label in a second row of headings is no mark.
        (
            ";Ard;;Erne;\nage;M;F;M;F\n0-17;1;2;3;4\n18+;5;6;7;8\n",
            {},
            {"age": {"0-17", "18+"}, "category 1": {"Ard", "Erne"}, "sex": {"M", "F"}},
        ),
        # Nor is it where the headings stand again among the rows.
        (
            ",Owned,,Rented,\nid,C,C10,C,C10\nX,9,1,8,2\n,Owned,,Rented,\nid,C,C10,C,C10\nY,7,3,6,4\n",
            {},
            {"id": {"X", "Y"}, "category 1": {"Owned", "Rented"}, "category 2": {"C", "C10"}},
        ),
        # A number among words is a label of the headings.
        (
            ",Owned,,,Rented,,\narea,Hill,9,Lake,Hill,9,Lake\nX,1,2,4,8,3,5\nY,5,6,7,8,9,6\n",
            {},
            {
                "area": {"X", "Y"},
                "category 1": {"Owned", "Rented"},
                "category 2": {"Hill", "9", "Lake"},
            },
        ),
        # A gap that the row below does not fill makes it no row of headings.
        ("sex,,Cases\nMen,,1-4\nWomen,,7\n", {}, {"sex": {"Men", "Women"}}),
        # Headings without gaps, of which some rows say the same of all; notes after a line.
        # A column that says the same in all rows is not used, with a heading or without.
        (
            "T 1\n;;Sex;Sex;Sex;Sex\n;;male;male;female;female\n;;Age;Age;Age;Age\n"
            ";;young;old;young;old\n"
            + "".join(f"{n};Falls;1;2;3;{n}\n" for n in range(1980, 1986))
            + '______\n"Cause:\nas coded\nthen."\nAs of 1.1.2022\n',
            {},
            {
                "year": {str(n) for n in range(1980, 1986)},
                "sex": {"male", "female"},
                "category 2": {"young", "old"},
            },
        ),
        # The name of the labels in a row of its own.
        (
            '"A",,\n"Sex","Male","Female",\n"Marital Status",\n"Single",4,5,\n"Widowed",6,7,\n',
            {},
            {"marital status": {"Single", "Widowed"}, "sex": {"Male", "Female"}},
        ),
        # A heading of the labels alone.
        (
            '"RA (UR)",\n"Cities",1344,\n"Inner",175,\n"Remote",43,\n',
            {},
            {"ra (ur)": {"Cities", "Inner", "Remote"}},
        ),
        # A heading of the counts alone; below the table what is too long for a label.
        (
            '"","Total"\n"1991Q1",3481501\n"1991Q2",3491502\n"Table information:"\n"Units:"\n'
            '"Number, units"\n',
            {},
            {"category": {"1991Q1", "1991Q2"}},
        ),
        # Names of areas and of upper towns are labels.
        (
            "year,Great Barrier Area,Rodney Area,Upper Hutt,Lower Hutt\n"
            "2001,1,2,3,4\n2002,5,6,7,8\n",
            {},
            {
                "year": {"2001", "2002"},
                "category 1": {"Great Barrier Area", "Rodney Area", "Upper Hutt", "Lower Hutt"},
            },
        ),
        # Few counts that happen to rise are no codes.
        (
            "group,BK_CASE_COUNT,BK_RATE,BX_CASE_COUNT\nF,37462,2.5,28838\nM,37822,3.5,27626\n"
            "All,75509,4.5,56521\n",
            {},
            {"group": {"F", "M"}, "category 1": {"BK_CASE_COUNT", "BX_CASE_COUNT"}},
        ),
        # Rows of percentages count nobody.
        (
            "year,Indicator,Count\n2015,Reviews lodged,46\n2015,Percentage upheld,91.3\n"
            "2016,Reviews lodged,31\n2016,Percentage upheld,x\n",
            {},
            {"year": {"2015", "2016"}},  # the indicator is the same in all others
        ),
        # Rows of one text are headings of those below, where an empty row stands before each.
        (
            ",Yes,,No,\n,no.,%,no.,%\nNorth,,,,\nAsh,3,30.5,7,69.5\nElm,5,50.5,4,49.5\n,,,,\n"
            "South,,,,\nFir,2,20.5,8,79.5\nOak,6,60.5,3,39.5\n",
            {},
            {
                "section": {"North", "South"},
                "category": {"Ash", "Elm", "Fir", "Oak"},
                "category 1": {"Yes", "No"},
            },
        ),
        # Or where a label stands below two of them.
        (
            "group,n\nNorth,\nMale,3\nFemale,4\nSouth,\nMale,5\nFemale,6\n",
            {},
            {"section": {"North", "South"}, "group": {"Male", "Female"}},
        ),
        # A share of hours in a heading counts those who have it; a heading "%" counts nobody.
        (
            "area,Present 80% or more of hours,Present for less,% Present\n"
            "X,*,4,71.5\nY,7,*,>95%\nZ,>=9,3,>95%\n",
            {},
            {
                "area": {"X", "Y", "Z"},
                "category 1": {"Present 80% or more of hours", "Present for less"},
            },
        ),
        # Hours and percentiles are no periods and no counts.
        (
            "job,Men,Part_time,P25th\n"
            + "".join(f"{w},{i * i},{301 + 7 * i},{20000 + 9 * i}\n" for i, w in enumerate(WARDS)),
            {},
            {"job": {*WARDS}, "category 1": {"Men", "Part_time"}},
        ),
        # Columns of codes with one heading; numbers below 0 count nobody.
        (
            "Code,Code,Area,In,Out,Balance\n01,001,Ash,3,4,-1\n01,002,Elm,5,9,-4\n"
            "02,001,Fir,8,2,6\n02,002,Oak,7,1,6\n",
            {},
            {
                "code": {"01", "02"},
                "code 2": {"001", "002"},
                "area": {"Ash", "Elm", "Fir", "Oak"},
                "category 1": {"In", "Out"},
            },
        ),
        # Lines of dots part the rows.
        (
            "year: area\tAlone\tOther\n2012: Ash\t4\t5\n2012: Elm\t6\t7\n..\t\t\n"
            "2013: Ash\t8\t9\n2013: Elm\t3\t2\n",
            {},
            {
                "year: area": {"2012: Ash", "2012: Elm", "2013: Ash", "2013: Elm"},
                "category 1": {"Alone", "Other"},
            },
        ),
        # Numbers that repeat tell rows apart; what a row of percentages alone needs is no label.
        (
            "week,group,dose,form,n\n"
            + "".join(
                f"{w},{g},{d},{f},{n}\n"
                for w, g, d, n in [
                    ("7 May", "A", 1, 30),
                    ("7 May", "A", 2, 4),
                    ("7 May", "B", 1, 12),
                    ("14 May", "A", 1, 25),
                    ("14 May", "A", 2, 9),
                    ("14 May", "B", 1, 17),
                    ("21 May", "A", 1, 18),
                    ("21 May", "B", 1, 22),
                    ("21 May", "B", 2, 3),
                ]
                for f, n in (("Number", n), ("Percent", n / 7))
            ),
            {},
            {
                "week": {"7 May", "14 May", "21 May"},
                "group": {"A", "B"},
                "dose": {"1", "2"},
            },
        ),
        # An age group by its short name; years without counts at the end.
        (
            "Age_Grp,Sex,n\n0,M,872\n1-4,M,91\n0,F,735\n1-4,F,80\n",
            {},
            {"age grp": {"0", "1-4"}, "sex": {"M", "F"}},
        ),
        (
            "year,In,Out\n2020,4,5\n2021,6,7\n2022,,\n2023,,\n",
            {},
            {"year": {"2020", "2021"}, "category 1": {"In", "Out"}},
        ),
        # A third row that says what each heading means: a tree, since no label stands twice.
        (
            "Area,Homes,,Ages,\nArea,Owned,Let,Young,Old\n"
            "Area,in own hands,for rent,of few years,of many\n"
            "Ash,3,4,5,6\nElm,7,8,9,1\n",
            {},
            {
                "area": {"Ash", "Elm"},
                "category 1": {
                    "Homes: Owned: in own hands",
                    "Homes: Let: for rent",
                    "Ages: Young: of few years",
                    "Ages: Old: of many",
                },
            },
        ),
    ],
)
def test_kinds_of_misreading(tmp_path, text, options, labels):
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"} | options)
    assert variables_of(said) == labels


def test_dates_are_no_sums_of_later_ones(tmp_path):
    counts = [9, 4, 5, 18, 8, 10, 40, 20, 20, 2, 1, 1]
    rows = "".join(f"2021-{i:02d}-01,{n},{2 * n}\n" for i, n in enumerate(counts, 1))
    said = read_layouts([sheet_of(tmp_path, "week,Deaths,Cases\n" + rows)], {"counts": "exact"})
    assert not any(" = " in line for line in said.lines)


def test_labels_that_no_sum_shows_are_taken_each_by_itself(tmp_path):
    """Uplands may be the sum of the others: then Ben and Corrie have five people, and not none."""
    text = "district,n\nUplands,5\nBen,*\nTotal,5\nCorrie,*\n"
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"}).accepted()
    assert said.separate == ("district",)
    bounds = count_bounds(PublishedTables(*said.parts)).counts
    assert (bounds.loc[bounds["high_stated"].isna(), "high"] == 5).all()  # as the total


def test_headings_of_two_files_are_not_one_variable():
    first = pd.DataFrame({"area": ["X", "Y"], "Owned": [4, 5], "Rented": [6, 7]})
    second = pd.DataFrame({"area": ["X", "Y"], "Falls": [1, 2], "Burns": [3, 4]})
    said = read_layouts(frame_sheets([first, second]), {"counts": "exact"})
    assert variables_of(said)["category 1"] == {"Owned", "Rented"}
    assert variables_of(said)["category 2"] == {"Falls", "Burns"}


def test_headings_that_are_perhaps_totals_tell_two_files_apart():
    first = pd.DataFrame({"area": ["X", "Y"], "Mother": [4, 5], "Father": [6, 7]})
    second = pd.DataFrame({"area": ["X", "Y"], "All Saints": [1, 2], "Total Care": [3, 4]})
    said = read_layouts(frame_sheets([first, second]), {"counts": "exact"})
    assert variables_of(said)["category 2"] == {"All Saints", "Total Care"}


def test_rows_without_counts_are_no_sections(tmp_path):
    """North may be a row whose counts are absent: then South is not below it."""
    with pytest.raises(DataError, match="row 2: must be a row of the table"):
        sheet_of(tmp_path, "region,M,F\nNorth,,\nSouth,3,4\nMid,5,6\nEast,,\nWest,4,4\n")


def test_a_cell_merged_with_those_below_stands_in_each(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["Table 1"], ["Area", "Sex", "Cases"], ["North", "M", 3], [None, "F", 4],
                ["South", "M", 5], [None, "F", 6]):  # fmt: skip
        sheet.append(row)
    sheet.merge_cells("A3:A4")
    sheet.merge_cells("A5:A6")
    book.create_sheet("Notes").append(["none"])
    book.save(tmp_path / "t.xlsx")
    said = read_layouts([file_sheet(tmp_path / "t.xlsx")], {"counts": "exact"})
    assert said.lines[0].startswith("t.xlsx (sheet 'Sheet' of 2; sheet=NAME reads another)")
    rows = said.cells[["area", "sex", "stated"]].to_numpy().tolist()
    assert sorted(rows) == [["North", "F", "4"], ["North", "M", "3"], ["South", "F", "6"],
                            ["South", "M", "5"]]  # fmt: skip


def test_a_first_row_of_numbers_is_no_row_of_headings(tmp_path):
    with pytest.raises(DataError, match="row 1: must be a row of headings"):
        sheet_of(tmp_path, "North,3\nSouth,4\nEast,5\n")


def test_a_note_says_that_counts_are_changed(tmp_path):
    note = "INFO,Cells in this table have been randomly adjusted to avoid the release of data.\n"
    said = read_layouts([sheet_of(tmp_path, "sex,n\nM,4\nF,5\nTotal,9\n\n" + note)], {})
    assert said.questions["counts"][0] == "perturbed-5"


@pytest.mark.parametrize("largest", [1, 2, 5])
def test_the_guess_of_the_largest_change_is_never_below_the_truth(largest):
    """The largest change is at most three standard deviations of it, if it is uniform."""
    rng = np.random.default_rng(largest)
    for _ in range(20):
        true = rng.integers(20, 90, (8, 3))
        table = np.c_[np.r_[true, [true.sum(axis=0)]], np.r_[true.sum(axis=1), true.sum()]]
        table = table + rng.integers(-largest, largest + 1, table.shape)
        frame = pd.DataFrame(table, columns=["a", "b", "c", "Total"])
        frame.insert(0, "area", [*"defghijk", "Total"])
        guess = read_layouts(frame_sheets(frame), {}).questions["counts"][0]
        assert guess.startswith("perturbed-")
        assert largest <= int(guess.removeprefix("perturbed-")) <= 3 * largest + 1


def test_the_change_of_counts_is_measured_on_sums_without_overlaps(tmp_path):
    """People have several ancestries, which do not add up, and live in one city."""
    rng = np.random.default_rng(7)
    true = rng.integers(800, 30_000, (4, 2))
    table = np.c_[np.r_[true, [true.sum(axis=0) * 9 // 10]], [0] * 5]
    table[:, 2] = table[:, :2].sum(axis=1)
    table += rng.integers(-5, 6, table.shape)
    frame = pd.DataFrame(table, columns=["Sydney", "Perth", "Total"])
    frame.insert(0, "ancestry", [*"abcd", "Total"])
    text = frame.to_csv(index=False) + "\nCounts have been randomly adjusted for privacy.\n"
    guess = read_layouts([sheet_of(tmp_path, text)], {}).questions["counts"][0]
    name, _, largest = guess.partition("-")
    assert name == "perturbed"
    assert 5 <= int(largest) <= 3 * 5 + 1


@pytest.mark.parametrize("base", [5, 10, 100])
@pytest.mark.parametrize("wide", [True, False])
def test_totals_rounded_beside_true_parts_have_a_law_of_their_own(base, wide):
    rng = np.random.default_rng(base)
    true = rng.integers(base, 12 * base, (6, 3))
    totals = true.sum(axis=1)
    stated = (2 * totals + base) // (2 * base) * base
    frame = pd.DataFrame(np.c_[true, stated], columns=["Men", "Women", "Unknown", "Total"])
    frame.insert(0, "area", [*"abcdef"])
    if not wide:
        frame = frame.melt("area", var_name="sex", value_name="n")
    reading = read_layouts(frame_sheets(frame), {})
    laws = {n: guess for n, (guess, _) in reading.questions.items() if n.endswith(".counts")}
    assert [*laws.values()] == [f"nearest-{base}"]
    assert reading.questions["counts"][0] == "exact"
    for text, total in zip(stated, totals, strict=True):
        bounds = stated_bounds(reading).loc[[str(text)]]
        assert (bounds["low_stated"] <= total).any()
        assert (bounds["high_stated"] >= total).any()


def test_rounded_totals_without_a_label_stand_in_the_guess():
    true = np.random.default_rng(3).integers(10, 90, (6, 4))
    heads = ["Men!!0-17", "Men!!18+", "Women!!0-17", "Women!!18+"]
    frame = pd.DataFrame(true, columns=heads)
    frame["Total!!0-17"], frame["Total!!18+"] = (
        (2 * (true[:, k] + true[:, k + 2]) + 10) // 20 * 10 for k in (0, 1)
    )
    frame.insert(0, "area", [*"abcdef"])
    guess, reason = read_layouts(frame_sheets(frame), {}).questions["counts"]
    assert guess == "exact"
    assert "rounded" in reason


def test_totals_that_are_multiples_of_ten_by_their_parts_are_true():
    men = np.array([13, 24, 31, 47, 52, 66])
    frame = pd.DataFrame({"area": [*"abcdef"], "Men": men, "Women": 90 - men, "Total": [90] * 6})
    frame["Total"] += [0, 10, 20, 30, 40, 50]
    frame["Women"] = frame["Total"] - frame["Men"]
    reading = read_layouts(frame_sheets(frame), {})
    assert not any(name.endswith(".counts") for name in reading.questions)
    frame["Women"] += [9, -8, 7, 0, -9, 8]  # by more than half of ten
    reading = read_layouts(frame_sheets(frame), {})
    assert not any(name.endswith(".counts") for name in reading.questions)


SMALL = {
    "area": [*"abcdefg", "Total"],
    "M": [9, 2, 11, 0, 4, 8, 1, 35],
    "F": [7, 8, 3, 9, 6, 5, 12, 50],
}


@pytest.mark.parametrize(
    ("publish", "name", "guess"),
    [
        (lambda n: 0 if n < 5 else n, "marks.0", "0-4"),
        (lambda n: 3 if n in (1, 2) else n, "counts", "stats-nz"),
    ],
)
def test_small_counts_that_stand_as_another_number(publish, name, guess):
    true = pd.DataFrame(SMALL).assign(Total=lambda t: t["M"] + t["F"])
    frame = true.assign(**{c: true[c].map(publish) for c in ("M", "F", "Total")})
    said = read_layouts(frame_sheets(frame), {})
    assert said.questions[name][0] == guess
    tables = PublishedTables(*said.accepted().parts)
    found = count_bounds(tables)
    assert not found.conflict
    rows = said.cells.merge(found.counts.rename(columns={"geoid": "place"}))
    for row in rows.to_dict("records"):
        column = {"Male": "M", "Female": "F"}.get(
            row["sex"], "Total" if row["sex"] == "all" else row["sex"]
        )
        area = "Total" if row["area"] == "all" else row["area"]
        count = true.set_index("area").loc[area, column]
        assert row["low"] <= count <= row["high"], row


def test_labels_in_a_path_below_an_unnamed_heading(tmp_path):
    text = "code,,M,F\n1,a!!b,3,4\n2,a!!c,5,6\n3,d,7,8\n"
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert {*said.cells["stated"]} == {*"345678"}


def test_a_label_may_be_called_as_a_variable():
    frame = pd.DataFrame(
        {"area": ["X", "X", "Y", "Y"], "kind": ["area", "b"] * 2, "n": [1, 2, 3, 4]}
    )
    assert read_layouts(frame_sheets(frame), {}).screen()


def test_ranges_and_ages_in_other_languages():
    texts = {
        "weniger als 5": (0, 4), "moins de 5": (0, 4), "menos de 5": (0, 4), "meno di 5": (0, 4),
        "1 bis 4": (1, 4), "1 à 4": (1, 4), "1 a 4": (1, 4), "1 tot 4": (1, 4),
    }  # fmt: skip
    assert {text: number_range(text) for text in texts} == texts
    ages = {
        "unter 15 Jahre": (0, 14), "15 bis unter 20 Jahre": (15, 19), "moins de 18 ans": (0, 17),
        "18 à 64 ans": (18, 64), "Menores de 18": (0, 17), "18 a 64 años": (18, 64),
    }  # fmt: skip
    assert {text: interval(text) for text in ages} == ages
    for text in ("65 und mehr", "65 ans et plus", "65 y más años", "65 anni e oltre"):
        assert interval(text)[0] == 65
        assert interval(text)[1] > 10**6


def test_ages_from_0_on_count_people_of_unknown_age_too(tmp_path):
    rows = [(4, 7, 11), (3, 5, 9), (6, 2, 8)]  # in the second week the age of one is not known
    text = "".join(
        f"2020-W{w},00-17,{a}\n2020-W{w},18+,{b}\n2020-W{w},00+,{n}\n"
        for w, (a, b, n) in enumerate(rows, 11)
    )
    said = read_layouts([sheet_of(tmp_path, "week,age,n\n" + text)], {"counts": "exact"})
    assert variables_of(said)["age"] == {"00-17", "18+"}
    assert not count_bounds(PublishedTables(*said.accepted().parts)).conflict


@pytest.mark.parametrize(
    "title", ["[Numbers in thousands]", "Angaben in Tausend", "Population ('000)"]
)
def test_a_title_says_the_unit_of_all_counts(tmp_path, title):
    said = read_layouts([sheet_of(tmp_path, f"{title},\n\nsex,n\nM,4\nF,5\nTotal,9\n")], {})
    assert said.questions["counts"][0] == "nearest-1000"
    bounds = count_bounds(PublishedTables(*said.accepted().parts)).counts
    assert bounds["high_stated"].tolist() == [4499, 5499, 9499]


def test_a_note_on_rates_says_no_unit(tmp_path):
    note = "\nNote: rates are per 1,000 people; thousands of visits are not shown.\n"
    said = read_layouts([sheet_of(tmp_path, "sex,n\nM,4\nF,5\nTotal,9\n" + note)], {})
    assert said.questions["counts"][0] == "exact"


def test_a_file_of_rates_is_refused_with_its_headings(tmp_path):
    sheet = sheet_of(tmp_path, "race,AGE_0_17,AGE_18_64\nA,2.78,4.06\nB,6.43,21.86\nC,3.1,1.5\n")
    with pytest.raises(DataError, match=r"AGE_18_64.*AGE_0_17: numbers with decimals"):
        read_layouts([sheet], {})


def test_most_rows_have_labels_of_their_own_so_that_no_count_is_one(tmp_path):
    rows = "".join(f"{w},{97 * i * i},{i}\n" for i, w in enumerate(WARDS, 3))
    sheet = sheet_of(tmp_path, f"area,Men,Women\n{rows}Oak,5000,77\n")
    said = read_layouts([sheet], {})
    assert {"Oak (row 7)", "Oak (row 8)"} <= variables_of(said)["area"]
    assert {"97", "1164", "3", "15"} & {*said.cells["stated"]}


def test_labels_that_exceed_their_total_overlap_without_a_question(tmp_path):
    text = "group,n\nCitywide,9\nMen,4\nWomen,5\nYoung,3\nOld,6\n"
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert said.separate == ("group",)
    assert not said.questions


def test_long_labels_stand_apart_in_the_corner():
    heads = [f"Inside the regular class of {n}" for n in ("all", "most", "some")]
    frame = pd.DataFrame({"area": ["X", "Y"]} | {h: [i, 9 - i] for i, h in enumerate(heads, 2)})
    screen = "\n".join(read_layouts(frame_sheets(frame), {}).screen())
    assert "    X " in screen
    assert all(number in screen.split("X ", 1)[1].splitlines()[0] for number in "234")


@pytest.mark.parametrize("total", ["All ages", "All", "Total", "all people"])
def test_a_column_of_totals_is_one_by_whatever_name_and_settles_hidden_counts(tmp_path, total):
    """19 - 3 - 14 = 2 and 17 - 9 - 6 = 2; no two rows have the same total."""
    rows = "North,3,14,<5,19\nSouth,<5,9,6,17\nWest,1,1,1,3\n"
    sheet = sheet_of(tmp_path, f"Region,Age 0-17,18-64,65+,{total}\n{rows}")
    said = read_layouts([sheet], {"counts": "exact"}).accepted()
    bounds = count_bounds(PublishedTables(*said.parts)).counts
    hidden = bounds[bounds["low_stated"] != bounds["high_stated"]]
    ages = hidden[hidden["high"] < 5]
    assert (ages["low"] == 2).all()
    assert (ages["high"] == 2).all()
    assert len(ages) >= 2


def test_an_age_group_of_which_every_count_is_withheld_is_no_label(tmp_path):
    """7 - 3, 6 - 2 and 9 - 5 are 4, the largest count that is withheld."""
    rows = "North,<5,3,7\nSouth,<5,2,6\nWest,<5,5,9\n"
    sheet = sheet_of(tmp_path, f"Region,Age 0-17,18 and over,All ages\n{rows}")
    said = read_layouts([sheet], {"counts": "exact", "totals": "complete"}).accepted()
    bounds = count_bounds(PublishedTables(*said.parts)).counts
    hidden = bounds[bounds["low_stated"] != bounds["high_stated"]]
    assert len(hidden[hidden["high"] == 4]) >= 3
    assert (hidden["low"] == hidden["high"]).all()


def test_counts_are_no_codes_of_a_label_that_they_spell_by_chance(tmp_path):
    text = "tenure,way,Falls,Burns,Cuts\nRent,a,6,6,5\nRent,b,7,12,5\nOwn,a,4,4,6\nOwn,b,6,5,6\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert {"Falls", "Burns", "Cuts"} in variables_of(said).values()


def test_years_stand_above_counts_that_are_all_withheld(tmp_path):
    said = read_layouts([sheet_of(tmp_path, "marital,2020,2021\nMarried,*,*\nSingle,*,*\n")], {})
    assert variables_of(said) == {"marital": {"Married", "Single"}, "year": {"2020", "2021"}}


def test_a_row_that_says_what_is_counted_is_one_of_headings(tmp_path):
    heads = ",2020,2020,2021,2021\n,Male,Female,Male,Female\nArea,Deaths,Deaths,Deaths,Deaths\n"
    text = heads + "North,3,4,5,6\nSouth,7,1,9,10\nTotal,10,5,14,16\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert {*said.cells["stated"]} == {"3", "4", "5", "6", "7", "1", "9", "10", "14", "16"}
    assert variables_of(said)["area"] == {"North", "South"}


def test_rows_without_labels_are_refused_by_what_they_are(tmp_path):
    with pytest.raises(DataError, match=r"rows 2 and 3.*without labels"):
        read_layouts([sheet_of(tmp_path, "Sex,Count\nTotal,3\nTotal,4\n")], {})


def test_an_invented_label_is_taken_for_granted(tmp_path):
    rows = [(211, 305, 516), (423, 187, 610), (309, 276, 590), (150, 99, 249)]
    rows = zip(WARDS, rows, strict=False)
    text = "ward,M,F,All\n" + "".join("{},{},{},{}\n".format(w, *ns) for w, ns in rows)
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert any("others" in line for line in said.lines)
    assert said.questions["totals.sex"][0] == "partial"


def test_a_region_and_a_place_in_it_may_have_one_name(tmp_path):
    places = [f"Place {i:02d}" for i in range(20)]
    rows = [
        ("Midlands", 47, 30),
        *((p, 2 * i, i) for i, p in enumerate(places)),
        ("Midlands", 5, 9),
    ]
    text = "Force,Fired,Aimed\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows)
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert variables_of(said)["force"] == {*places, "Midlands (row 2)", "Midlands (row 23)"}


def test_cells_of_a_workbook_may_hold_lines_dates_and_a_source_aside(tmp_path):
    book = openpyxl.Workbook()
    day = [datetime.datetime(year, 9, 30) for year in (2014, 2015)]
    for row in [["Table 1\nOfficers"], ["Force", *day, "Note"], ["North", 4, 5, "a\nb"],
                ["South", 7, 9, ""], ["", "", "", "Source: office"], ["1 Revised."]]:  # fmt: skip
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    said = read_layouts([file_sheet(tmp_path / "t.xlsx")], {})
    assert {"2014-09-30", "2015-09-30"} in variables_of(said).values()
    assert {*said.cells["stated"]} == {"4", "5", "7", "9"}


@pytest.mark.parametrize(
    ("note", "law"),
    [
        ("NOTE: figures have been adjusted for late reports.", "exact"),
        ("NOTE: figures have been adjusted to protect confidentiality.", "perturbed-5"),
    ],
)
def test_counts_are_changed_where_a_note_says_why(tmp_path, note, law):
    text = f"ward,cause,n\nA,x,4\nA,y,7\nB,x,9\nB,y,31\n{note}\n"
    assert read_layouts([sheet_of(tmp_path, text)], {}).rules["counts"] == law


def test_a_figure_beside_a_heading_is_a_note(tmp_path):
    text = "state,Population2,Murder,Robbery\nA,5000,4,50\nB,7000,9,81\nC,6400,2,77\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert {"Murder", "Robbery"} in variables_of(said).values()


def test_a_region_in_several_label_columns_is_named_by_its_row(tmp_path):
    rows = [("Tools", f"Tool {i:02d}", i) for i in range(20)]
    rows = [("Tools", "Not stated", 4), *rows, ("Tools", "Not stated", 9)]
    text = "Kind,Tool,Uses\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows)
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert {"Not stated (row 2)", "Not stated (row 23)"} <= variables_of(said)["tool"]


def test_a_number_with_decimals_among_counts_may_be_any(tmp_path):
    rows = "".join(f"{w},{7 * n % 11},{n * n + 3}\n" for n, w in enumerate(WARDS))
    said = read_layouts([sheet_of(tmp_path, f"ward,2019,2020\n{rows}Seconded,311.2075,387\n")], {})
    assert said.questions["marks.311.2075"][0] == "withheld"


def test_ages_from_one_to_under_the_next_share_no_year(tmp_path):
    ages = {"under 3 Jahre": 4, "3 -  6 Jahre": 7, "6 - 10 Jahre": 11, "10 und mehr Jahre": 20}
    rows = [(w, a, n * k) for k, w in enumerate(WARDS, 1) for a, n in ages.items()]
    rows += [(w, "Insgesamt", 42 * k) for k, w in enumerate(WARDS, 1)]
    text = "Ort,Alter von bis unter,Personen\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows)
    said = read_layouts([sheet_of(tmp_path, text)], {}).accepted()
    sizes = {a.name: a.size for a in said.parts[0].schema.attributes}
    assert sizes["alter von bis unter"] == 4


def test_unknown_ages_stand_among_ages_in_headings(tmp_path):
    ages = ("unter 1 Jahr", "1 bis unter 15 Jahre", "15 Jahre und mehr", "Alter unbekannt")
    heads = ["", *("männlich" for _ in ages), *("weiblich" for _ in ages)]
    text = ";".join(heads) + "\n;" + ";".join(ages * 2) + "\n"
    text += "1980;5;109;458;-;2;88;301;-\n1981;4;117;549;1;7;70;325;-\n"
    assert {*ages} in variables_of(read_layouts([sheet_of(tmp_path, text)], {})).values()


def test_estimates_are_refused_under_codes_with_dots(tmp_path):
    text = "GEO.id,GEO.id2,HD01_VD01,HD02_VD01\nId,Id2,Estimate; Total:,Margin of Error; Total:\n"
    with pytest.raises(DataError, match="margins of error"):
        read_layouts([sheet_of(tmp_path, f"{text}1A,09,3593,12\n1B,10,1924,60\n")], {})


def test_rows_of_numbers_alone_have_no_headings(tmp_path):
    with pytest.raises(DataError, match=r"row 1.*headings"):
        sheet_of(tmp_path, "1,2021,1,0,14,172\n1,2021,2,0,14,116\n1,2021,3,0,14,153\n")


def test_what_a_count_is_called_decides_where_it_has_decimals(tmp_path):
    births = enumerate((700, 400, 900, 300, 800, 200, 1100, 600, 500), 1990)
    rows = "".join(f"{y},Births,{n},\n{y},Net change,-{n}.5,Revised\n" for y, n in births)
    said = read_layouts([sheet_of(tmp_path, f"Year ended June,Measure,Value,Metadata\n{rows}")], {})
    assert {*said.cells["stated"]} == {f"{100 * i}" for i in range(2, 10)} | {"1100"}
    assert said.rules["counts"] == "random-100"
    with pytest.raises(DataError, match="Value: numbers with decimals"):
        read_layouts([sheet_of(tmp_path, "Run,Kind,Value\n12,a,1.5\n17,b,2.5\n11,c,3.25\n")], {})


def test_rows_may_end_before_their_last_columns(tmp_path):
    text = "ward,sex,n,Metadata\nA,M,5\nA,F,6\nB,M,7,Provisional\nB,F,9\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert variables_of(said) == {"ward": {"A", "B"}, "sex": {"M", "F"}}


def test_threes_alone_are_no_rounding(tmp_path):
    rows = "".join(f"{2000 + i},3,{400 + 31 * i},{900 + 7 * i}\n" for i in range(6))
    said = read_layouts([sheet_of(tmp_path, f"year,homes,places,users\n{rows}")], {})
    assert said.rules["counts"] == "exact"


def test_points_part_thousands_where_other_columns_hold_years(tmp_path):
    text = 'Year;State;Deaths;Rate\n2012;Vermont;21;"2,6"\n2012;Texas;6.001;"1.061,2"\n'
    text += '2013;Vermont;30;"3,7"\n2013;Texas;325;"4,1"\n'
    said = read_layouts([sheet_of(tmp_path, text)], {})
    bound = said.accepted().parts[2]
    assert sum(int(one.sum()) for one in bound.values()) == 21 + 6001 + 30 + 325


def test_a_total_of_another_year_counts_not_all_of_the_headings_beside_it(tmp_path):
    text = "Country,Applications,,Jan-Feb,Jan-Feb,Total\n,Jan.,Feb.,2015,2014,2014**\n"
    text += "Ash,2,3,5,67,428\nElm,39,30,69,90,2806\nFir,24,25,49,43,1658\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    names = [n for n, labels in variables_of(said).items() if labels & {"Jan-Feb", "2014**"}]
    rows = said.cells.set_index("stated")[names]
    whole = rows.loc["428"]
    assert (whole != "all").any()  # a label of its own
    assert not any((rows.loc[n] == whole).all() for n in ("5", "67"))
    text = "Country,Men!!2014,Men!!2015,Total!!2014,Total!!2015\nAsh,2,3,5,7\nElm,39,30,69,90\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert {"2014", "2015"} == variables_of(said)["year"]  # a total of both headings
    assert {"Men"} == variables_of(said)["sex"]  # a part of the total of both


@pytest.mark.parametrize("label", ["2014**", "2014 †", "2014(a)", "2014 (p)", "2014 1)", "2014"])
def test_a_year_with_a_note_is_a_year(label):
    assert heading_kind(label, 1) == "year"
    assert heading_kind(f"{label} to date", 1) == "category 1"


POINTED = "Country,Jan,Feb\nA,3,5\nB,2,9\nUSA,83.144,75.484\n"


def test_sums_show_whether_points_part_thousands(tmp_path):
    said = read_layouts([sheet_of(tmp_path, POINTED + "Total,83.149,75.498\n")], {})
    assert {"83144", "75498"} <= {*said.cells["stated"]}
    assert "thousands" not in said.questions
    with pytest.raises(DataError, match="numbers with decimals"):
        read_layouts([sheet_of(tmp_path, POINTED + "Total,88.144,89.484\n")], {})
    beside = "Country,Jan,Feb,Total\nA,300,1.205,1.505\nB,2.104,9,2.113\nC,4,5,9\n"
    said = read_layouts([sheet_of(tmp_path, beside)], {})
    assert {"1205", "2113"} <= {*said.cells["stated"]}
    assert "thousands" not in said.questions


def test_points_that_no_sum_explains_are_a_guess(tmp_path):
    said = read_layouts([sheet_of(tmp_path, POINTED)], {})
    assert said.questions["thousands"][0] == "point"
    assert "83144" in {*said.cells["stated"]}
    said = read_layouts([sheet_of(tmp_path, POINTED.replace("B,2,", "B,1.200.300,"))], {})
    assert "thousands" not in said.questions


def test_weeks_are_no_counts_and_a_year_alone_is_no_heading(tmp_path):
    text = "year,rate_per_100k,cases\n2010,,\n2011,138.5,27\n2012,126.2,91\n2013,99.5,106\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert variables_of(said) == {"year": {"2011", "2012", "2013"}}
    with pytest.raises(DataError, match="column of counts"):
        read_layouts([sheet_of(tmp_path, "Jahr,Kw,Tote\n2018,37,144.5\n2019,38,128.5\n")], {})


def test_columns_may_have_laws_of_their_own(tmp_path):
    rows = [(2000 + i, 211 + 13 * i, 5 * (99 + 7 * i), 5 * (21 + 3 * i)) for i in range(7)]
    text = "year,schools,pupils,excluded\n" + "".join("{},{},{},{}\n".format(*r) for r in rows)
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert said.rules == {"counts": "random-5", "columns.schools.counts": "exact"}
    laws = said.accepted().parts[4]
    assert (len(said.accepted().parts[0].tables), len(laws)) == (2, 1)
    again = read_layouts([sheet_of(tmp_path, text)], said.rules)
    assert (again.rules, again.questions) == (said.rules, {})


def test_one_column_that_is_called_a_count_is_one_of_several(tmp_path):
    heads = "group,inst_count,cohort,overall,education,other\n"
    text = heads + "".join(
        f"{w},{n},{90 + n},{70 + n},{40 + n},{30}\n" for n, w in enumerate(WARDS, 3)
    )
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert {"inst_count", "cohort", "overall", "education"} <= set().union(
        *variables_of(said).values()
    )


def test_an_adjustment_below_zero_may_be_any(tmp_path):
    text = "year,births,adjustment\n2013,1493,12\n2014,1422,-2\n2016,1480,22\n2017,1494,16\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert said.questions["marks.-2"][0] == "withheld"


def test_counts_that_rise_with_the_years_are_counts(tmp_path):
    rows = "".join(f'\t"{y}"\t"{y}"\t{n}\n' for y, n in enumerate(range(37000, 42900, 997), 2018))
    text = f'"Notes"\t"Year"\t"Year Code"\tDeaths\n{rows}"---"\n"Made, of this, and that"\n'
    said = read_layouts(
        [sheet_of(tmp_path, text + '"More: ""x"", y, z, and, so, on, to, an, end"\n')], {}
    )
    assert {*said.cells["stated"]} == {str(n) for n in range(37000, 42900, 997)}


def test_headings_stand_above_an_empty_row(tmp_path):
    book = openpyxl.Workbook()
    for row in [["Labour force", "2005"], [], ["", "State", ""], ["Code", "Name", "Force"], [],
                ["A1", "Ash, AL", 41], ["A2", "Elm, AL", 57], ["A3", "Fir, AL", 12]]:  # fmt: skip
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    said = read_layouts([file_sheet(tmp_path / "t.xlsx")], {})
    assert {*said.cells["stated"]} == {"41", "57", "12"}


def test_a_text_of_several_lines_is_one_label(tmp_path):
    said = read_layouts(
        [sheet_of(tmp_path, 'year,cause,n\n2015,Home,4\n2015,"Work\nlife",7\n')], {}
    )
    assert variables_of(said)["cause"] == {"Home", "Work life"}


def test_many_numbers_with_decimals_are_no_counts(tmp_path):
    rows = "".join(f"Place {i},{1 if i % 3 else i / 1000 + 0.1}\n" for i in range(90))
    with pytest.raises(DataError, match="numbers with decimals"):
        read_layouts([sheet_of(tmp_path, f"place,Data\n{rows}Place 90,#DIV/0!\n")], {})


def test_a_label_may_be_called_as_a_column_of_results_is(tmp_path):
    said = read_layouts([sheet_of(tmp_path, "Place,n\nAsh,4\nBeech,5\n")], {})
    assert variables_of(said) == {"place label": {"Ash", "Beech"}}


@pytest.mark.parametrize(
    ("heads", "law"),
    [
        ("Industry,Full time,Part time,Total", "sums"),
        ("Industry,First time,Again,Number", "sums"),
        ("Industry,First year,Second year,All", "sums"),
        ("Industry,Owned,Rented,All households", "sums"),
        ("Industry,Own years,Other years,All years", "sums"),
        ("Industry,Full time,Part time,Elsewhere", "no sums"),
    ],
)
def test_counts_are_no_times_because_of_a_word_of_their_heading(tmp_path, heads, law):
    """Worked out by hand: 8 - 1 = 7 and 62 - 10 - 23 - 22 = 7, where the columns add up."""
    rows = [("Farming", 10, 5, 15), ("Mining", "*", 1, 8), ("Services", 23, 16, 39)]
    rows = [*rows, ("Total", 40, 22, 62)]
    if law == "no sums":  # nothing but words and the mark say what the columns are
        rows = [("Farming", 50, 51, 4), ("Mining", "*", 31, 8), ("Services", 23, 6, 39)]
    lines = [heads, *(",".join(map(str, row)) for row in rows)]
    said = read_layouts([sheet_of(tmp_path, "\n".join(lines) + "\n")], {})
    counted = {x for texts in variables_of(said).values() for x in texts}
    parts = heads.split(",")[1:]
    assert set(parts[:2]) <= counted
    found = count_bounds(PublishedTables(*said.accepted().parts)).counts
    hidden = found[found["published"].isna()]
    assert len(hidden) == 1
    settled = hidden[["low", "high"]].eq(7).fillna(value=False).to_numpy()
    assert settled.all() == (law == "sums")


@pytest.mark.parametrize(
    ("head", "values"),
    [
        ("School year", (2019, 2020)),
        ("Week", (1, 2)),
        ("ISO week", (7, 8)),
        ("Admission year", (1950, 1960)),
        ("Decision date", (20200101, 20200301)),
    ],
)
def test_years_and_weeks_are_labels_still(tmp_path, head, values):
    counts = zip(np.repeat(values, 2), "FMFM", (10, 4, 6, 7), strict=True)
    rows = "".join(f"{value},{sex},{count}\n" for value, sex, count in counts)
    said = read_layouts([sheet_of(tmp_path, f"{head},Sex,Pupils\n{rows}")], {})
    assert {str(value) for value in values} in variables_of(said).values()


def test_ranges_from_zero_are_no_zeros_that_stand_for_small_counts(tmp_path):
    text = "diagnosis,Male,Female,Total\nCancer,12,<5,15\n  of which: lung,<5,<5,5\nHeart,7,6,13\n"
    said = read_layouts([sheet_of(tmp_path, text + "All diagnoses,19,9,28\n")], {})
    assert "marks.0" not in said.rules


def test_a_part_of_a_count_is_no_sign_that_zeros_stand_for_small_counts(tmp_path):
    rows = "Cancer,12,8,20\n  of which: lung,0,5,5\nHeart,7,6,13\nSkin,0,9,9\nEye,8,0,8\n"
    text = f"diagnosis,Male,Female,Total\n{rows}All diagnoses,27,23,50\n"
    assert "marks.0" not in read_layouts([sheet_of(tmp_path, text)], {}).rules


@pytest.mark.parametrize(
    ("counts", "guess"),
    [
        (["3", "*", "9"], "exact"),
        (["5", "10", "15"], "exact"),
        (["5", "10", "15", "40"], "random-5"),
        (["3", "6", "9", "12", "3", "33"], "random-3"),
    ],
)
def test_a_base_is_guessed_from_enough_numbers(counts, guess):
    labels = [*"abcdef"[: len(counts) - 1], "Total"]
    frame = pd.DataFrame({"ward": labels, "n": counts})
    assert read_layouts(frame_sheets(frame), {}).rules["counts"] == guess


def stated_bounds(said):
    """Return the bounds of counts, with the text of each."""
    bounds = count_bounds(PublishedTables(*said.accepted().parts))
    assert not bounds.conflict
    counts = bounds.counts.rename(columns={"geoid": "place"})
    return said.cells.merge(counts, on=["place", "table", "cell"]).set_index("stated")


def test_thousands_with_decimals_are_written_out(tmp_path):
    text = "area,Men ('000),Women ('000),Persons ('000)\nX,1.2,1.3,2.5\nY,2.0,2.2,4.2\n"
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "nearest-100"})
    # 1.2 thousand is rounded from 1,150 to 1,249.
    ends = stated_bounds(said)[["low_stated", "high_stated"]]
    assert ends.loc["1200"].tolist() == [1150, 1249]
    assert ends.loc["2500"].tolist() == [2450, 2549]


@pytest.mark.parametrize("mark", ["n<10", "N<10", "n < 10", "n<=9"])
def test_marks_that_count_n_are_ranges(mark):
    assert number_range(mark) == (0, 9)


@pytest.mark.parametrize(
    "heading", ["CONF_STATUS", "OBS_CONF", "Data status", "suppression status"]
)
def test_flags_beside_counts_are_no_labels(heading, tmp_path):
    text = f"sex,OBS_VALUE,{heading}\nF,3,F\nM,,C\nTotal,5,F\n"
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert variables_of(said) == {"sex": {"F", "M"}}
    assert stated_bounds(said).loc["C", ["low", "high"]].tolist() == [2, 2]


def test_headings_are_a_tree_where_each_part_has_its_whole(tmp_path):
    heads = ["Total: All people", "Asian", "Asian: Indian", "Asian: Other", "White"]
    rows = [(20, 12, 8, 100), (8, 3, 5, 80), (41, 22, 19, 60), (33, 31, 2, 54), (16, 9, 7, 81)]
    text = "area," + ",".join(f"Group: {h}" for h in heads) + "\n"
    text += "".join(
        f"{n},{r[0] + r[3]},{','.join(map(str, r))}\n" for n, r in zip(WARDS, rows, strict=False)
    )
    said = read_layouts([sheet_of(tmp_path, text.replace(",16,9,7,", ",16,9,..,"))], {})
    assert variables_of(said)["group"] == {"Asian", "Asian: Indian", "Asian: Other", "White"}
    assert stated_bounds(said).loc["..", ["low", "high"]].tolist() == [7, 7]


def test_a_heading_that_begins_all_others_counts_all(tmp_path):
    text = "area,Home,Home: Owned,Home: Rented\nX,12,5,7\nY,30,13,17\nZ,50,22,..\n"
    said = read_layouts([sheet_of(tmp_path, text)], {"totals": "complete"})
    assert stated_bounds(said).loc["..", ["low", "high"]].tolist() == [28, 28]


def test_headings_are_no_tree_where_a_whole_is_missing(tmp_path):
    text = "area,G: Total,G: Asian: Indian,G: White: Irish,G: White\nX,20,12,8,9\nY,30,3,5,7\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert variables_of(said)["g"] >= {"G: Asian: Indian", "G: White: Irish"}


BLANK = """work,sex,home,n
Paid,Male,North,104
,,South,88
,Female,North,97
,,South,..
Unpaid,Male,North,23
,,South,17
,Female,North,31
,,South,22
"""


def test_blank_labels_repeat_those_above_where_rows_are_equal_else(tmp_path):
    said = read_layouts([sheet_of(tmp_path, BLANK)], {"counts": "exact"})
    assert said.questions["blank"][0] == "above"
    cells = said.accepted().cells.set_index("stated")
    assert cells.loc["..", ["work", "sex", "home"]].tolist() == ["Paid", "Female", "South"]
    assert cells.loc["23", ["work", "sex", "home"]].tolist() == ["Unpaid", "Male", "North"]


AGES = "Code,State,Age,Men,Women\n25,North,0 to 4,30,32\n,,0,10,12\n,,1 to 4,20,20\n"
AGES += "26,South,0 to 4,33,32\n,,0,13,12\n,,1 to 4,20,20\n"


def test_blank_labels_repeat_those_above_ages_that_are_numbers(tmp_path):
    said = read_layouts([sheet_of(tmp_path, AGES)], {"counts": "exact"})
    assert said.questions["blank"][0] == "above"
    cells = said.cells.set_index("stated")
    assert cells.loc["13", ["state", "age", "sex"]].tolist() == ["South", "0", "Men"]
    other = AGES.replace(",,0,13", ",,7,13").replace(",,1 to 4,20,20\n26", ",,3,20,20\n26")
    assert read_layouts([sheet_of(tmp_path, other)], {}).questions["blank"][0] == "label"


@pytest.mark.parametrize(
    ("row", "name"), [("Paid,,North,201\n", "sex"), (",Male,North,104\n", "work")]
)
def test_blank_labels_that_may_count_all_are_not_filled(row, name, tmp_path):
    text = "work,sex,home,n\nPaid,Male,North,104\nPaid,Female,North,97\nUnpaid,Male,North,23\n"
    said = read_layouts([sheet_of(tmp_path, text + row)], {})
    assert "(blank)" in variables_of(said)[name]
    assert said.questions["blank"][0] == "label"
    assert name in said.separate
    again = read_layouts(said.sheets, {"reading": said})
    assert again.cells.equals(said.cells)


def flu_year(order):
    """Return a table of weeks, areas and ages, all of one year, as its columns are ordered."""
    rows = [("week", "area", "age", "epiyear", "deaths")]
    for week, area, ages in [
        (5, "Ash", (3, 41, 112)), (5, "Elm", (7, 58, 201)), (6, "Ash", (4, 39, 120)),
        (6, "Elm", (9, 66, 187)), (7, "Ash", (2, 44, 131)), (7, "Elm", (8, 71, 190)),
    ]:  # fmt: skip
        texts = [*map(str, ages), str(sum(ages))]
        texts[0] = "" if (week, area) == (6, "Ash") else texts[0]
        labels = ["0-17 years", "18-64 years", "65+ years", "All Ages"]
        rows += [(str(week), area, age, "2020", n) for age, n in zip(labels, texts, strict=True)]
    return "".join(",".join(row[i] for i in order) + "\n" for row in rows)


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (3, 0, 1, 2, 4), (0, 1, 2, 4, 3)])
def test_a_number_that_is_the_same_in_all_rows_is_no_count(order, tmp_path):
    """163 - 39 - 120 = 4, which a year among the counts hid."""
    said = read_layouts([sheet_of(tmp_path, flu_year(order))], {"counts": "exact"})
    assert {*variables_of(said)} == {"week", "area", "age"}
    assert "epiyear (always '2020')" in "\n".join(said.screen())
    assert stated_bounds(said).loc["", ["low", "high"]].tolist() == [4, 4]


#: Regions and sexes, a number of each region, and counts of which one is withheld.
OF_REGIONS = [("North", 12, 11, 39), ("South", 41, 57, 54), ("East", 7, 51, 7),
              ("West", 41, 19, 10), ("Mid", 88, 34, 51)]  # fmt: skip


@pytest.mark.parametrize("head", ["Region no", "Zone", "Persons aged 5 and over", "Total cases"])
def test_a_number_of_each_label_is_no_count(head, tmp_path):
    """Two regions share a number, and so do both sexes of each; nothing follows from it."""
    text = f"Region,{head},Sex,Cases\n" + "".join(
        f"{r},{number},Male,{m}\n{r},{number},Female,{f}\n" for r, number, m, f in OF_REGIONS
    )
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert variables_of(said) == {
        "region": {"North", "South", "East", "West", "Mid"}, "sex": {"Male", "Female"},
    }  # fmt: skip
    assert {*said.cells["stated"]} == {str(n) for row in OF_REGIONS for n in row[2:]}


def test_a_number_of_labels_of_two_columns_is_no_count(tmp_path):
    """Each district numbers its schools from 22 on, and two schools have one name."""
    schools = [
        ("Alba", "Hill", 22),
        ("Alba", "Lake", 31),
        ("Bern", "Hill", 41),
        ("Bern", "Sea", 22),
    ]
    text = "District,School,Discipline Place,Action,White,Black\n" + "".join(
        f"{d},{s},{n},{action},{n % 7 + i * k},{n % 5 + i + k}\n"
        for k, (d, s, n) in enumerate(schools)
        for i, action in enumerate(["Warned", "Sent home", "Moved"])
    )
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert {"White", "Black"} in variables_of(said).values()


def test_two_places_of_one_name_have_two_numbers(tmp_path):
    """Of 40 schools with 3 rows each two have one name; the numbers are no counts all the same."""
    names = ["Hill" if n in (3, 4) else f"School {n}" for n in range(41)]
    text = "School,Unit,Action,White,Black\n" + "".join(
        f"{names[n]},{37 * n % 83},{action},{n % 7 + i},{n % 5 * i}\n"
        for n in range(1, 41)
        for i, action in enumerate(["Warned", "Sent home", "Moved"])
    )
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert {"White", "Black"} in variables_of(said).values()


def test_years_of_many_rows_are_no_counts(tmp_path):
    """One school has two rows of a year, so that the years alone do not tell rows apart."""
    cohorts = ["2003", "2004", "2005", "2006", "2006 Aug"]
    rows = [(f"School {n}", c, n * 7 + i, n * 3 + i) for n in range(1, 9)
            for i, c in enumerate(cohorts)]  # fmt: skip
    text = "School,Cohort,Grads,Left\n" + "".join(
        ",".join(map(str, row)) + "\n" for row in [*rows, ("School 3", "2005", 9, 4)]
    )
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert {"Grads", "Left"} in variables_of(said).values()


def test_years_of_birth_of_many_rows_are_no_counts(tmp_path):
    rows = "".join(f"Person {i},{1921 + i * 7 % 60},{i * 13 % 97}\n" for i in range(64))
    said = read_layouts([sheet_of(tmp_path, f"who,born,votes\n{rows}")], {"counts": "exact"})
    assert "1921" in variables_of(said)["born"]
    assert {*said.cells["stated"]} == {str(i * 13 % 97) for i in range(64)}


def test_codes_with_decimals_that_two_labels_share_are_no_counts(tmp_path):
    """Numbers are written with decimals, and 4.0 is the code of two provinces."""
    areas = [("Lazio", 12), ("Bolzano", 4), ("Trento", 4), ("Puglia", 16)]
    text = "day,area,m,f,ISTAT\n" + "".join(
        f"2020-12-{day},{area},{day * k % 13}.0,{day * (k + 3) % 11}.0,{code}.0\n"
        for day in range(20, 31)
        for k, (area, code) in enumerate(areas, 2)
    )
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert variables_of(said)["sex"] == {"m", "f"}
    assert {*variables_of(said)} == {"day", "area", "sex"}


@pytest.mark.parametrize(
    "heads",
    [
        "Kommune_(id);Kommune_(navn)",
        "Ward no.;Ward",
        "PlaceID;Town",
        "Nr.;Stadtteil",
        "Wahlkreisnummer;Ort",
    ],
)
def test_numbers_of_places_are_codes_by_a_word_of_their_heading(heads, tmp_path):
    numbers = [101, 147, 153, 151, 187, 155]
    text = f"{heads};Tested;Found\n" + "".join(
        f"{n};{ward};{n * 7 % 90};{n * 3 % 20}\n" for n, ward in zip(numbers, WARDS, strict=True)
    )
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert {"Tested", "Found"} in variables_of(said).values()


def test_a_word_among_codes_beside_a_total_is_no_withheld_count(tmp_path):
    text = (
        "county,code,district,asian,black\nstatewide,wa,Washington (statewide),15,24\n"
        + "".join(
            f"C{n % 2},{17001 * n % 9973},{ward},{n % 4 + 1},{n}\n"
            for n, ward in enumerate(WARDS, 1)
        )
    )
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert "marks.wa" not in said.questions
    assert {"asian", "black"} in variables_of(said).values()


@pytest.mark.parametrize(
    ("text", "heads"),
    [
        # Nobody of unknown sex is a count, too.
        ("area,Men,Women,Unknown\n" + "".join(f"{w},{i + 3},{i * i},0\n"
         for i, w in enumerate(WARDS)), {"Men", "Women", "Unknown"}),
        # Few small counts are the same by chance.
        ("area,sex,Falls,Burns\nAsh,M,4,2\nAsh,F,4,7\nElm,M,3,1\nElm,F,3,5\nFir,M,4,9\nFir,F,4,3\n",
         {"Falls", "Burns"}),
        # A column that is one of a sum is a count, the same or not.
        ("area,sex,Young,Old,Total\n" + "".join(f"{w},{s},88,{i * 5 + k},{88 + i * 5 + k}\n"
         for i, w in enumerate(WARDS) for k, s in enumerate("MF")), {"Young", "Old"}),
    ],
)  # fmt: skip
def test_counts_that_are_the_same_in_several_rows_are_counts(text, heads, tmp_path):
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert any(heads <= labels for labels in variables_of(said).values())


def monthly(rows, dash):
    """Return a table of months and their total by place, with dashes for 0, and the sums below."""
    text = "place,Jan,Feb,Mar,Total\n"
    for place, counts in [
        *rows,
        ("Total", [sum(c) for c in zip(*(c for _, c in rows), strict=True)]),
    ]:
        text += ",".join([place, *(str(c or dash) for c in [*counts, sum(counts)])]) + "\n"
    return text


@pytest.mark.parametrize("dash", ["-", "–"])
def test_a_dash_is_0_where_all_rows_add_up_without_it(dash, tmp_path):
    rows = [(w, (i % 3, i, i * i % 4)) for i, w in enumerate(WARDS, 1)]
    said = read_layouts([sheet_of(tmp_path, monthly(rows, dash))], {"counts": "exact"})
    assert said.questions[f"marks.{dash}"][0] == "0"
    assert stated_bounds(said).loc[[dash], ["low", "high"]].to_numpy().max() == 0


@pytest.mark.parametrize("mark", ["-", "*"])
def test_a_mark_is_no_0_where_a_row_does_not_add_up_or_offices_withhold_by_it(mark, tmp_path):
    rows = [(w, (i % 3, i, i * i % 4)) for i, w in enumerate(WARDS, 1)]
    text = monthly(rows, mark)
    if mark == "-":
        text = text.replace("Cedar,-,3,1,4", "Cedar,-,3,1,5")
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert said.questions[f"marks.{mark}"][0] == "withheld"


def test_places_too_many_for_one_table_are_taken_each_by_itself(tmp_path, monkeypatch):
    """With the row of all places 7 places have 8 x 4 counts of 8 labels, and alone 4 of 3."""
    rows = [(w, (i % 3 + 1, i, i * i % 5 + 1)) for i, w in enumerate([*WARDS, "Yew"], 1)]
    text = monthly(rows, "-").replace("Fir,3,5,1,9", "Fir,3,..,1,9")
    whole = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert whole.separate == ()
    monkeypatch.setattr("bayesrisk.tables.reading.reading.MOST_WEIGHTS", 32)
    monkeypatch.setattr("bayesrisk.tables._grammar.MOST_WEIGHTS", 32)
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert said.separate == ("place label",)
    assert said.questions["totals.place label"][0] == "separate"
    assert stated_bounds(said).loc["..", ["low", "high"]].tolist() == [5, 5]


def test_sums_say_that_a_population_is_counted_and_se_is_a_word_of_labels(tmp_path):
    """The population of one place has others, too; those in special education are whole numbers."""
    text = "place,population,asian_pop,black_pop,se_pop\n" + "".join(
        f"{w},{i * 9 + 4 * i + (i == 3)},{i * 9},{4 * i},{i % 4}\n" for i, w in enumerate(WARDS, 2)
    )
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert {"population", "asian_pop", "black_pop", "se_pop"} in variables_of(said).values()


@pytest.mark.parametrize("heads", ["people,SE", "people,SE people", "people,people (SE)"])
def test_standard_errors_are_no_counts(heads, tmp_path):
    text = f"place,{heads}\n" + "".join(f"{w},{i * 91},{i * 3 + 5}\n" for i, w in enumerate(WARDS))
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert {*said.cells["stated"]} == {str(i * 91) for i in range(6)}


def test_a_population_beside_a_difference_is_no_count(tmp_path):
    text = "place,cases,others,population\n" + "".join(
        f"{w},{i * 3},{i * i},{i * 101 + 7}\n" for i, w in enumerate(WARDS, 2)
    )
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert {"cases", "others"} in variables_of(said).values()


def levels(*, rest=0):
    """Return a table of a nation, regions and towns with blanks, where ``rest`` have no town."""
    towns = {
        "North": {"Leeds": (148, 152, 31), "York": ("c", 126, 45)},
        "South": {"Kent": (21, 19, 8)},
    }
    rows = [
        ("Regional", "North", "", 272 + rest, 278, 76),
        ("Regional", "South", "", 21, 19 + rest, 8),
    ]
    rows += [("Local", r, t, *n) for r, ts in towns.items() for t, n in ts.items()]
    rows.append(("National", "", "", 293 + rest, 297 + rest, 84))
    lines = [",".join(map(str, row)) for row in rows]
    return "Level,region_name,town_name,0-4,5-9,10-14\n" + "\n".join(lines) + "\n"


def test_a_blank_that_is_the_sum_of_those_beside_it_counts_all(tmp_path):
    said = read_layouts([sheet_of(tmp_path, levels())], {"counts": "exact"})
    assert "blank" not in said.questions
    assert variables_of(said)["region"] == {
        "North", "North: Leeds", "North: York", "South: Kent",
    }  # fmt: skip
    assert stated_bounds(said).loc["c", ["low", "high"]].tolist() == [124, 124]


def test_a_blank_that_is_no_sum_is_by_itself(tmp_path):
    said = read_layouts([sheet_of(tmp_path, levels(rest=5))], {"counts": "exact"})
    assert said.questions["blank"][0] == "label"
    assert {"town", "region"} & {*said.separate}
    assert "(blank)" in variables_of(said)["town"]
    bounds = stated_bounds(said).loc["c", ["low", "high"]].tolist()
    assert bounds[0] == 0
    assert pd.isna(bounds[1]) or bounds[1] > 129
    total = read_layouts(said.sheets, {"counts": "exact", "blank": "total"})
    assert "(blank)" not in variables_of(total)["region"]


def rows_alike(several):
    """Return a table of 40 places, so many of which stand in two rows with other counts."""
    places = [f"{100 + i}" for i in range(40)] + [f"{100 + 3 * i}" for i in range(several)]
    lines = [f"{p},{i % 7 + 1},{i},{i % 7 + 1 + i}" for i, p in enumerate(places, 1)]
    return "area_id,Men,Women,Total\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize("several", [1, 2, 9])
def test_rows_of_one_label_are_each_by_itself(several, tmp_path):
    said = read_layouts([sheet_of(tmp_path, rows_alike(several))], {"counts": "exact"})
    labels = variables_of(said)["area"]
    assert len(labels) == 40 + several
    assert {"100 (row 2)", "100 (row 42)"} <= labels
    assert ("rows" in said.questions) == (several > 2)
    assert said.separate == ("area",)


def test_many_rows_of_one_label_are_refused_with_a_way_out_that_works(tmp_path):
    sheet = sheet_of(tmp_path, "kind,Men,Women\nOld,4,5\nOld,4,7\nNew,3,8\nNew,3,2\n")
    with pytest.raises(DataError, match=r"rows 2 and 3: .*'Old' twice.*rows=separate"):
        read_layouts([sheet], {})
    said = read_layouts([sheet], {"rows": "separate"})
    rows = [("Old", 2), ("Old", 3), ("New", 4), ("New", 5)]
    assert variables_of(said)["kind"] == {f"{k} (row {i})" for k, i in rows}


@pytest.mark.parametrize(
    ("ages", "labels"),
    [
        (["0-17", "18-74", ">75"], {"0-17", "18-74", ">75"}),
        (["<5", "6-17", "18+"], {"<5", "6-17", "18+"}),
        (["0-17", "18-75", ">75"], {"0-17", "18-75", ">75"}),
        (["<5", "5-17", "18+"], {"<5", "5-17", "18+"}),
        (["0-17", "18-72", ">75"], {"0-17", "18-72", "73-75", ">75"}),  # a gap of years
    ],
)
def test_ages_above_or_below_a_year_leave_no_gap_of_that_year(ages, labels):
    rows = [*zip(ages, ["4", "*", "7"], strict=True), ("All ages", "20")]
    frame = pd.DataFrame(rows, columns=["age", "n"])
    reading = TableReading.from_frame(frame, totals="complete").accepted()
    assert {*reading.parts[0].schema.attribute("age").labels} == labels


SERIES = """REF_DATE,Sex,Age group,VECTOR,DATA_QUALITY_FLAG,VALUE
2019,Both sexes,Total,v10{},0,30
2019,Both sexes,0-17,v11{},0,10
2019,Both sexes,18+,v12{},0,20
2019,Males,Total,v13{},0,16
2019,Males,0-17,v14{},0,x
2019,Males,18+,v15{},0,11
2019,Females,Total,v16{},0,14
2019,Females,0-17,v17{},0,x
2019,Females,18+,v18{},0,9
"""


@pytest.mark.parametrize("end", ["", ".1.2", ".7"])
def test_a_number_of_a_series_and_flags_of_digits_are_no_labels(end, tmp_path):
    said = read_layouts([sheet_of(tmp_path, SERIES.replace("{}", end))], {"counts": "exact"})
    assert {*variables_of(said)} == {"sex", "age group"}
    assert stated_bounds(said).loc["x", ["low", "high"]].to_numpy().tolist() == [[5, 5], [5, 5]]


def test_a_digit_beside_a_blank_count_is_not_the_count(tmp_path):
    text = "sex,Flag,n\nMales,0,6\nFemales,1,\nTotal,0,11\n"
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert stated_bounds(said).loc["", ["low", "high"]].tolist() == [5, 5]


LEVELS = """geographic_level,region_name,sex,n
National,,Total,120
National,,Girls,58
National,,Boys,62
Regional,North,Total,50
Regional,North,Girls,c
Regional,North,Boys,28
Regional,South,Total,70
Regional,South,Girls,36
Regional,South,Boys,c
"""


def test_a_level_that_says_which_labels_are_blank_is_no_label(tmp_path):
    said = read_layouts([sheet_of(tmp_path, LEVELS)], {"counts": "exact", "blank": "total"})
    assert {*variables_of(said)} == {"region", "sex"}
    assert stated_bounds(said).loc["c", ["low", "high"]].to_numpy().tolist() == [[22, 22], [34, 34]]


def test_what_is_counted_stays_a_label_where_others_are_blank(tmp_path):
    text = LEVELS.replace("geographic_level", "measure")
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact", "blank": "total"})
    assert {*variables_of(said)} == {"measure", "region", "sex"}


def test_names_are_labels_rather_than_their_numbers(tmp_path):
    text = "Kod,Nazwa,mężczyźni,kobiety\n01,POLSKA,9,8\n02,ŁÓDŹ,4,5\n03,OPOLE,5,3\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert {*variables_of(said)} == {"nazwa", "sex"}


@pytest.mark.parametrize("note", ["[note 2]", "[Note 2, 3]", "[footnote a]", "[notes 1 and 2]"])
def test_a_reference_to_a_note_is_no_part_of_a_heading(note, tmp_path):
    text = f"code;Home {note};Men {note};Women\nE1;Ash;4;5\nE2;Elm;6;7\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert variables_of(said) == {"home": {"Ash", "Elm"}, "sex": {"Men", "Women"}}


def test_a_code_in_a_heading_above_several_columns_makes_none_of_them_codes(tmp_path):
    text = """Place,Electors,,Candidate ID and Name,,
Part,Men,Women,1 - KHAN,2 - YADAV,Votes
Bhood,635,505,38,428,466
Kuanrera,697,589,192,594,786
Danpur,500,*,192,*,700
Todarpur,739,621,11,428,439
"""
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert {"1 - KHAN", "2 - YADAV"} <= variables_of(said)["category 2"]
    hidden = [n for n in said.cells["stated"] if n == "*"]
    assert len(hidden) == 2


def test_a_heading_that_names_households_counts_as_its_tree_says(tmp_path):
    heads = ["All categories: Tenure", "Owned", "Rented: Total", "Rented: Employer of a household"]
    heads = [f"Tenure: {head}; measures: Value" for head in [*heads, "Rented: Other"]]
    rows = [(60, 12, 28), (150, 17, 63), (51, 5, 34), (200, 44, 57), (90, 21, ".."), (77, 9, 13)]
    text = ";".join(["place", *[f'"{head}"' for head in heads]]) + "\n"
    wholes = [40, 80, 39, 101, 61, 22]
    text += "".join(
        f"{ward};{owned + whole};{owned};{whole};{employer};{other}\n"
        for ward, whole, (owned, employer, other) in zip(WARDS, wholes, rows, strict=True)
    )
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert stated_bounds(said).loc["..", ["low", "high"]].tolist() == [40, 40]


@pytest.mark.parametrize("sign", ["Schl #", "#"])
def test_a_number_of_places_is_no_count_beside_several_others(sign, tmp_path):
    text = f"""District,{sign},School,White,Black,Asian,Total
ALACHUA,22,LEARNING,12,4,1,17
ALACHUA,31,FINLEY,32,3,3,38
ALACHUA,41,FOSTER,30,*,2,33
BAKER,22,GIRLS,8,6,1,15
BAKER,31,KELLER,11,2,*,14
BAY,31,GIRLS,9,5,2,16
"""
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert stated_bounds(said).loc["*", ["low", "high"]].to_numpy().tolist() == [[1, 1], [1, 1]]


def test_two_columns_that_are_named_counts_are_labels_of_one_variable(tmp_path):
    text = "place,score,Men,Women,weight\nAsh,5,6,7,9\nElm,8,9,4,3\n"
    settings = {"columns": {"Men": "count", "Women": "count"}}
    said = read_layouts([sheet_of(tmp_path, text)], settings)
    assert variables_of(said)["sex"] == {"Men", "Women"}


def test_a_blank_label_may_be_one_of_its_own(tmp_path):
    text = "home,children,women\nNorth,0,29\nNorth,,10\nSouth,0,30\nSouth,,9\n"
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact", "blank": "label"})
    assert variables_of(said)["children"] == {"0", "(blank)"}
    assert "children" in said.separate


def test_amounts_of_money_are_no_counts(tmp_path):
    text = "Area,Males,Females,Average income of men,Purchasing power of all,Below average\n"
    text += "Ash,25,24,27547,103437344,7\nElm,41,42,31769,684228585,9\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert {*said.cells["stated"]} == {"25", "24", "7", "41", "42", "9"}


@pytest.mark.parametrize(
    "money",
    ["wages", "taxable_qtrly_wages", "qtrly_contributions", "Adjusted gross income", "AGI",
     "Aggregate income (in dollars)", "Grant amount", "Annual payroll ($1,000)"],
)  # fmt: skip
def test_wages_and_incomes_beside_counts_are_no_counts(money, tmp_path):
    text = f'Area,Men,Women,"{money}"\nAsh,25,24,27547\nElm,41,42,31769\nOak,*,9,8877\n'
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert {*said.cells["stated"]} == {"25", "24", "41", "42", "9", "*"}


def test_people_by_income_are_counts(tmp_path):
    text = "Area,Persons with wages,Workers with earnings\nAsh,25,24\nElm,41,42\n"
    assert len(read_layouts([sheet_of(tmp_path, text)], {}).cells) == 4
    text = "Area,Low income,High income,Total income\nAsh,25,24,49\nElm,41,42,83\nOak,6,9,15\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert len(said.cells) == 9


def test_a_code_that_some_labels_lack_is_a_spelling(tmp_path):
    text = "Country,ISO3,Year,People\nAlba,ALB,2020,5\nVarious,,2020,7\nBern,BER,2020,9\n"
    text += text.split("\n", 1)[1].replace("2020", "2021")
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert variables_of(said)["country"] == {"Alba", "Various", "Bern"}
    assert "iso3" not in variables_of(said)


def test_numbers_beside_a_table_are_not_of_it(tmp_path):
    text = "area,Men,Women,,,\nAsh,4,5,,8,1\nElm,6,7,,9,2\nOak,3,1,,4,4\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert {*said.cells["stated"]} == {"4", "5", "6", "7", "3", "1"}
    assert variables_of(said) == {"area": {"Ash", "Elm", "Oak"}, "sex": {"Men", "Women"}}


def test_what_is_below_zero_in_thousands_is_no_count(tmp_path):
    text = "area,Men ('000),Women ('000)\nX,-1.2,1.3\nY,2.5,2.2\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert {*said.cells["stated"]} == {"-1.2", "1300", "2500", "2200"}


@pytest.mark.parametrize(("more", "law"), [("1.23", "nearest-10"), ("1.2", "nearest-100")])
def test_two_counts_in_thousands_are_rounded_to_their_last_digit(more, law, tmp_path):
    text = f"sex,Number ('000)\nMen,{more}\nWomen,2.1\n"
    assert read_layouts([sheet_of(tmp_path, text)], {}).questions["counts"][0] == law


def test_columns_in_thousands_have_the_law_of_their_digits(tmp_path):
    text = "area;Men ('000);Women ('000);Others\nX;1.25;1.3;7\nY;2.51;2.2;4\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    laws = {name: guess for name, (guess, _) in said.questions.items()}
    assert laws["counts"] == "nearest-10"
    assert laws["columns.Women ('000).counts"] == "nearest-100"
    assert laws["columns.Others.counts"] == "exact"
    ends = stated_bounds(said)[["low_stated", "high_stated"]]
    assert ends.loc["1300"].tolist() == [1250, 1349]
    assert ends.loc["1250"].tolist() == [1245, 1254]
    assert ends.loc["7"].tolist() == [7, 7]


def test_three_digits_after_each_point_may_be_thousands_of_thousands(tmp_path):
    text = "area,Men ('000),Women ('000)\nX,1.234,1.300\nY,2.512,2.200\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert stated_bounds(said).loc["1234", "high_stated"] == 1_234_499


@pytest.mark.parametrize("words", [("Final", "Withheld"), ("Normal value", "Not published")])
def test_flags_in_words_are_notes_beside_counts(words, tmp_path):
    held, hidden = words
    text = f"sex,OBS_VALUE,Observation status\nMale,5,{held}\nFemale,,{hidden}\nTotal,9,{held}\n"
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact", "totals": "complete"})
    assert said.questions[f"marks.{held}"][0] == "note"
    assert said.questions[f"marks.{hidden}"][0] == "withheld"
    assert stated_bounds(said).loc[hidden, ["low", "high"]].tolist() == [4, 4]


def test_codes_called_as_their_labels_are_no_counts(tmp_path):
    head = "SEX,Sex,FREQUENCY,Frequency,DECIMALS,Decimals,OBS_VALUE\n"
    rows = [("1", "Male", 4), ("2", "Female", 5), ("3", "Persons", 9)]
    text = "".join(f"{c},{x},A,Zero,0,Zero,{n}\n" for c, x, n in rows)
    said = read_layouts([sheet_of(tmp_path, head + text)], {}).accepted()
    assert variables_of(said) == {"sex": {"Male", "Female"}}
    assert said.cells["stated"].tolist() == ["4", "5", "9"]


def test_a_year_at_the_start_of_a_heading_is_no_percentile(tmp_path):
    text = "CODGEO;LIBGEO;REG;P19_POP;P19_POPH;P19_POPF\n1001;Ars;84;7;3;4\n1002;Bey;84;11;5;6\n"
    said = read_layouts([sheet_of(tmp_path, text)], {}).accepted()
    assert said.cells["stated"].tolist() == ["7", "3", "4", "11", "5", "6"]
    earnings = "area,n,earnings p19,P5\nA,3,700,650\nB,4,800,610\n"
    said = read_layouts([sheet_of(tmp_path, earnings)], {}).accepted()
    assert said.cells["stated"].tolist() == ["3", "4"]


@pytest.mark.parametrize(
    "head",
    [
        'area,Now,"Now, flag",Before,"Before, flag"',  # as a count is called
        "area,Now,flag,Before,flag",  # behind it
    ],
)
def test_a_flag_belongs_to_its_own_count(tmp_path, head):
    text = head + "\nA,5,,,c\nB,,c,7,\nC,4,,8,e\n"
    said = read_layouts([sheet_of(tmp_path, text)], {}).accepted()
    assert said.cells["stated"].tolist() == ["5", "c", "c", "7", "4", "8 e"]


def test_one_flag_belongs_to_all_counts_of_its_row(tmp_path):
    said = read_layouts([sheet_of(tmp_path, "area,M,F,flag\nA,5,6,\nB,,,c\n")], {}).accepted()
    assert sorted(said.cells["stated"]) == ["5", "6", "c", "c"]


CENSUS = """GEO_NAME,DIM: Age (in single years) and average age (5),\
Member ID: Age (in single years) and average age (5),\
Notes: Age (in single years) and average age (5),\
Dim: Sex (3): Member ID: [1]: Total - Sex,Dim: Sex (3): Member ID: [2]: Male,\
Dim: Sex (3): Member ID: [3]: Female
Alba,Total - Age,1,,103,55,48
Alba,0 to 98 years,2,,80,40,40
Alba,99,3,,20,*,8
Alba,100 years and over,4,,3,3,0
Alba,Average age,5,,43.5,42.1,44.8
Bern,Total - Age,1,,200,90,110
Bern,0 to 98 years,2,,150,70,80
Bern,99,3,,30,14,16
Bern,100 years and over,4,,20,6,14
Bern,Average age,5,,41.5,40.1,42.8
"""


def test_dimensions_and_their_members_are_one_variable_each(tmp_path):
    said = read_layouts([sheet_of(tmp_path, CENSUS)], {"counts": "exact"})
    variables = variables_of(said)
    assert variables.pop("sex") == {"Male", "Female"}
    assert variables.pop("geo") == {"Alba", "Bern"}
    ((name, ages),) = variables.items()
    assert name.startswith("age")
    assert ages == {"0 to 98 years", "99", "100 years and over"}
    assert stated_bounds(said).loc["*", ["low", "high"]].tolist() == [12, 12]


@pytest.mark.parametrize(
    ("heads", "name"),
    [
        (["Tenure: Owned", "Tenure: Rented", "Tenure: Free"], "tenure"),
        (["Mode of travel: Bus", "Mode of travel: Car", "Mode of travel: Foot"], "mode of travel"),
        (["Total: Owned", "Total: Rented", "Total: Free"], "category 1"),
    ],
)
def test_what_all_headings_begin_with_names_their_variable(heads, name, tmp_path):
    text = f"area,{','.join(heads)}\nAsh,14,25,36\nElm,47,58,69\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    assert variables_of(said)[name] == {head.partition(": ")[2] for head in heads}


def test_counts_below_a_year_are_no_spelling_of_a_label_by_chance(tmp_path):
    text = "sex,age,2019,2020\nM,Total,600,650\nF,Total,600,660\nTotal,0-17,200,220\n"
    said = read_layouts([sheet_of(tmp_path, text + "Total,18+,1000,1090\n")], {})
    assert variables_of(said)["year"] == {"2019", "2020"}


def test_rows_with_neither_all_labels_nor_counts_are_left_out(tmp_path):
    text = "Age Group,,M,\n,,M,Male\n0-4,North,M,8\n0-4,South,M,*\n0-4,Both,M,11\n"
    text += ",,F,\n0-4,North,F,7\n0-4,South,F,\n0-4,Both,F,9\n"
    rows = "".join(f"2018,{row}\n" for row in text.splitlines())
    said = read_layouts([sheet_of(tmp_path, f"year,age,region,sex,n\n{rows}")], {}).accepted()
    assert said.stated_cells["stated"].tolist() == ["8", "*", "11", "7", "", "9"]
    assert variables_of(said)["age"] == {"0-4"}


@pytest.mark.parametrize("head", ["disclosure_code", "Suppression flag", "OBS_STATUS"])
def test_a_zero_is_withheld_where_its_flag_stands_beside_zeros_alone(tmp_path, head):
    text = f"area,trade,{head},employees\nA,Farms,,907\nA,Mines,N,0\nA,Shops,,20\n"
    text += "B,Farms,,100\nB,Mines,N,0\nB,Shops,e,30\n"
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"}).accepted()
    assert said.cells["stated"].tolist() == ["907", "N", "20", "100", "N", "30 e"]
    assert (stated_bounds(said).loc["N", "low"] == 0).all()
    assert stated_bounds(said).loc["N", "high"].isna().all()


def test_windows_of_years_that_overlap_are_no_sums_of_years(tmp_path):
    counts = {"1997-2001": 4, "1998-2002": 1, "1999-2003": 3, "2001-2005": 9, "2002-2006": "*"}
    text = "period,zone,n\n" + "".join(f"{p},{z},{n}\n" for z in "AB" for p, n in counts.items())
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    bounds = stated_bounds(said)
    assert bounds["low"].tolist().count(0) == 2
    assert "period" in said.separate


@pytest.mark.parametrize(
    ("head", "codes"),
    [
        ("Nr.,Teil", ["101,Ash", "102,Elm", "201,Fir", "202,Oak"]),
        ("Rank,Teil", ["17,Ash", "12,Elm", "31,Fir", "45,Oak"]),  # before labels, in no sum
        ("CDS,D", ["0161119,11", "0161259,12", "0310033,00", "0761648,16"]),  # of a longer code
        ("TERYT,Gmina", ["20101,Ash", "20102,Elm", ",Irak", "20104,Oak"]),  # blank in some rows
    ],
)
def test_numbers_of_places_are_no_counts(tmp_path, head, codes):
    counts = ["9,4,5", "7,6,1", "12,5,7", "8,6,2"]
    text = f"{head},All,M,F\n" + "".join(map("{},{}\n".format, codes, counts))
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"}).accepted()
    assert sorted(said.cells["stated"]) == sorted(",".join(counts).split(","))


def test_a_row_number_that_is_part_of_a_sum_is_a_count(tmp_path):
    text = "area,Men,Women,All\n" + "".join(
        f"{w},{k},{k * k},{k + k * k}\n" for k, w in enumerate(WARDS, 1)
    )
    said = read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"})
    assert variables_of(said)["sex"] == {"Men", "Women"}


def test_nines_that_are_common_are_withheld(tmp_path):
    rows = [("9999", "4", "12"), ("7", "9999", "30"), ("5", "6", "11"), ("9999", "9999", "40")]
    text = "area,M,F,All\n" + "".join(
        f"{w},{','.join(row)}\n" for w, row in zip(WARDS, rows, strict=False)
    )
    bounds = stated_bounds(read_layouts([sheet_of(tmp_path, text)], {"counts": "exact"}))
    nines = bounds.loc["9999", ["low", "high"]].to_numpy().tolist()
    assert sorted(nines) == [[0, 40], [0, 40], [8, 8], [23, 23]]


def test_sums_that_hold_within_rounding_make_one_guess(tmp_path):
    rng = np.random.default_rng(1)
    lines = ["provider,mode,n"]
    for k in range(12):
        full, part = map(int, rng.integers(100, 4000, 2))
        counts = {"Full": full, "Part": part, "All": full + part}
        lines += [f"U{k},{mode},{5 * round(n / 5)}" for mode, n in counts.items()]
    said = read_layouts([sheet_of(tmp_path, "\n".join(lines) + "\n")], {})
    assert said.questions["totals"][0] == "complete"
    assert {*said.questions} == {"counts", "totals"}


def stated(reading, *names):
    return dict(reading.cells.set_index(list(names))["stated"])


def test_the_total_of_a_label_is_a_total_beside_it(tmp_path):
    # Sums of a spreadsheet: blanks after the label that is summed up, and blanks below labels.
    text = (
        "Region,District,Sex,Cases\nNorth,Alpha,Male,12\n,,Female,9\n,Alpha Total,,21\n"
        ",Beta,Male,*\n,,Female,7\n,Beta Total,,11\nNorth Total,,,32\nGrand Total,,,46\n"
        "South,Gamma,Male,8\n,,Female,6\n,Gamma Total,,14\nSouth Total,,,14\n"
    )
    apart = {"totals": {"region": "separate", "district": "separate"}}
    counts = stated(read_layouts([sheet_of(tmp_path, text)], apart), "region", "district", "sex")
    assert counts["North", "North: Alpha", "all"] == "21"
    assert counts["North", "all", "all"] == "32"
    assert counts["Grand Total", "all", "all"] == "46"
    assert counts["North", "North: Beta", "Male"] == "*"
    # The label that is summed up may stand in a column before.
    text = "Region,District,n\nN,A,21\nN,B,11\nN,Total N,32\nS,C,14\nS,D,*\nS,Total S,19\n"
    counts = stated(read_layouts([sheet_of(tmp_path, text)], apart), "region", "district")
    assert counts["N", "all"] == "32"
    assert counts["S", "all"] == "19"
    # Rows of one column of labels stay apart: each label would stand twice.
    counts = stated(read_layouts([sheet_of(tmp_path, "Town,n\nA,4\nA Total,9\nB,3\n")], {}), "town")
    assert counts == {"A": "4", "A Total": "9", "B": "3"}


def test_numbers_of_a_series_that_other_labels_tell_apart_are_not_used(tmp_path):
    rows = [(y, s, a) for y in (2019, 2020) for s in ("M", "F") for a in ("0-14", "15+")]
    series = {pair: f"v{k}" for k, pair in enumerate(dict.fromkeys(r[1:] for r in rows), 17)}
    text = "year,sex,age,vector,n\n" + "".join(
        f"{y},{s},{a},{series[s, a]},{3 * k + 2}\n" for k, (y, s, a) in enumerate(rows)
    )
    assert [*variables_of(read_layouts([sheet_of(tmp_path, text)], {}))] == ["year", "sex", "age"]
    # A code that tells rows apart stays.
    text = "year,sex,code,n\n" + "".join(
        f"{y},{s},{k % 3},{3 * k + 2}\n" for k, (y, s, _) in enumerate(rows)
    )
    assert "code" in variables_of(read_layouts([sheet_of(tmp_path, text)], {}))


@pytest.mark.parametrize(
    "mean", ["평균연령", "平均年齢", "Durchschnittsalter", "edad media", "xyz"]
)
def test_rows_with_decimals_of_one_label_count_nobody(mean, tmp_path):
    rows = [
        f"{p},{age},{a + b},{a},{b}" if age != mean else f"{p},{age},38.1,37.0,39.3"
        for p, age, a, b in (
            (p, age, 3 + 5 * k + j, 4 + 7 * j + k)
            for k, p in enumerate("ABC") for j, age in enumerate(("young", "old", mean, "oldest"))
        )
    ]  # fmt: skip
    text = "place,group,Persons,Men,Women\n" + "\n".join(rows) + "\n"
    sheet = sheet_of(tmp_path, text)
    said = read_layouts([sheet], {})
    assert variables_of(said)["group"] == {"young", "old", "oldest"}
    assert not any("." in text for text in said.cells["stated"])
    whole = text.replace("38.1,37.0,39.3", "38,37,39")
    assert mean in variables_of(read_layouts([sheet_of(tmp_path, whole)], {}))["group"]


@pytest.mark.parametrize("extra", [0, 1])
def test_few_numbers_of_sexes_are_no_ages_where_sums_show_their_total(extra, tmp_path):
    pairs = [(31, 22), (40, 33), (11, 20), (27, 9)]
    rows = [f"T{k},{code},{n}" for k, (a, b) in enumerate(pairs)
            for code, n in ((0, a + b + extra * k), (1, a), (2, b))]  # fmt: skip
    sheet = sheet_of(tmp_path, "town,gender,pupils\n" + "\n".join(rows) + "\n")
    said = any("'0' counts all" in line for line in read_layouts([sheet], {}).lines)
    assert said == (not extra)


@pytest.mark.parametrize("extra", [0, 3])
def test_groups_may_have_totals_of_different_names(extra, tmp_path):
    towns, rows = [("Ash", 41, 17), ("Elm", 32, 28), ("Fir", 52, 9)], list[str]()
    for k, total in enumerate(("Total", "Grand total")):
        counts = [(town, men + 11 * k, women + 7 * k) for town, men, women in towns]
        sums = [sum(column) + extra * k for column in list(zip(*counts, strict=True))[1:]]
        rows += [f"{k}x,{town},{men},{women}" for town, men, women in [*counts, (total, *sums)]]
    sheet = sheet_of(tmp_path, "year,town,men,women\n" + "\n".join(rows) + "\n")
    line = next(x for x in read_layouts([sheet], {}).lines if x.startswith("  town: "))
    assert "'Grand total', 'Total' counts all" in line
    assert ("sums hold" in line) == (not extra)


@pytest.mark.parametrize("other", ["Total deaths", "Deaths"])
def test_totals_of_different_nouns_beside_each_other_count_not_all(other, tmp_path):
    counts = [("Total births", 940), ("Births at home", 31), (other, 610), ("At work", 7)]
    rows = [f"{q},{label},{n + q * len(label)}" for q in range(1, 5) for label, n in counts]
    sheet = sheet_of(tmp_path, "quarter,metric,value\n" + "\n".join(rows) + "\n")
    line = next(x for x in read_layouts([sheet], {}).lines if x.startswith("  metric: "))
    assert ("counts all" in line) == (other == "Deaths")


@pytest.mark.parametrize("more", [0, 2])
@pytest.mark.parametrize("mark", [".", "n/a"])
def test_marks_without_which_totals_are_sums_are_no_counts(mark, more, tmp_path):
    """A place that did not report is in no total; one that did and is withheld is in all."""
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 60, (6, 5))
    lines = [f"{place},{','.join(map(str, row))}" for place, row in zip(WARDS, counts, strict=True)]
    lines.insert(3, "Lime," + ",".join([mark] * 5))
    lines.append("Total," + ",".join(map(str, counts.sum(axis=0) + more)))
    text = "ward,flu,measles,mumps,rubella,polio\n" + "\n".join(lines) + "\n"
    said = read_layouts([sheet_of(tmp_path, text)], {})
    guess, _ = said.questions[f"marks.{mark}"]
    if more:
        assert guess == "withheld"
        return
    assert guess == "missing"
    assert mark not in set(said.cells["stated"])
    assert "totals.ward" not in said.questions


@pytest.mark.parametrize("head", ["flu: lower 95% CI", "flu, upper CL", "confidence interval"])
def test_bounds_of_confidence_count_nobody(head, tmp_path):
    rows = "\n".join(f"{2000 + k},{10 + k * k % 7},{5 + k if k > 9 else '.'}" for k in range(14))
    said = read_layouts([sheet_of(tmp_path, f"year,deaths,{head.replace(',', '')}\n{rows}\n")], {})
    assert {*said.cells["stated"]} == {str(10 + k * k % 7) for k in range(14)}
    assert "marks.." not in said.questions
    few = "\n".join(",".join(line.split(",")[::2]) for line in rows.split("\n"))
    alone = sheet_of(tmp_path, f"year,{head.replace(',', '')}\n{few}\n")
    with pytest.raises(DataError):
        read_layouts([alone], {})


def test_lower_schools_count_pupils(tmp_path):
    rows = "\n".join(f"{2000 + k},{10 + k * k % 7},{5 + k % 3}" for k in range(14))
    said = read_layouts([sheet_of(tmp_path, f"year,upper school,lower school\n{rows}\n")], {})
    assert len(said.cells) == 28


def test_years_before_one_and_after_one_have_no_gaps_that_are_labels(tmp_path):
    heads = ["<1975", "1981", "1985", "1996", "1999", "Total"]
    rows = [f"Town {k},{k % 3},{k % 4},1,{k},7,{k % 3 + k % 4 + 8 + k}" for k in range(2, 9)]
    text = "\n".join([",".join(["town", *heads]), *rows]) + "\n"
    lines = "\n".join(read_layouts([sheet_of(tmp_path, text)], {}).lines)
    assert "<1975, 1981, 1985, 1996, 1999" in lines
    text = text.replace("<1975,1981,1985,1996,1999", "<5 years,8 years,12 years,20 years,21+ years")
    lines = "\n".join(read_layouts([sheet_of(tmp_path, text)], {}).lines)
    assert "<5 years, 5-7, 8 years" in lines  # nobody of 5 to 7 is known of


@pytest.mark.parametrize("apart", [1, 0])
def test_a_country_is_the_sum_of_all_states_but_one(tmp_path, apart):
    rng, rows = np.random.default_rng(5), list[str]()
    for year in range(2000, 2012):
        counts = rng.integers(20, 900, 9).tolist()
        total = sum(counts) - apart * counts[5]
        named = zip(["Union", *(f"State {k}" for k in range(9))], [total, *counts], strict=True)
        rows += [f"{year},{name},{n}" for name, n in named]
    reading = read_layouts(
        [sheet_of(tmp_path, "\n".join(["year,region,births", *rows]) + "\n")], {}
    )
    line = next(line for line in reading.lines if line.startswith("  region:"))
    if apart:
        parts = line.partition("'Union' = ")[2]
        assert "State 5" not in parts
        assert all(f"State {k}" in parts for k in (0, 4, 6, 8))
    else:
        assert "'Union' counts all" in line
    rows[3] = rows[3].rpartition(",")[0] + ",1"  # one sum that misses
    reading = read_layouts(
        [sheet_of(tmp_path, "\n".join(["year,region,births", *rows]) + "\n")], {}
    )
    assert not any("'Union' = " in line for line in reading.lines)
