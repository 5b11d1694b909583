"""Sheets: several rows of headings, and columns beside a table."""

import pytest

from bayesrisk.tables.reading.reading import read
from bayesrisk.tables.reading.sheet import file_sheet


def sheet_of(folder, text):
    file = folder / "t.csv"
    file.write_text(text, encoding="utf-8")
    return file_sheet(file)


def test_years_below_a_merged_heading_are_headings(tmp_path):
    text = (
        "Day,Year,,,Average,,,,\nDay and month,2018,2019,2020,2018-2019,-,Sort,Day,Month\n"
        "1 May,24,27,21,25.5,,101,1,May\n2 May,21,29,20,25.0,,102,2,May\n"
        "3 June,9,2,3,5.5,,201,3,June\n"
    )
    reading = read([sheet_of(tmp_path, text)], {})
    counts = reading.cells.set_index(["day and month", "year"])["stated"]
    assert dict(counts) == {
        (day, year): count
        for day, row in (("1 May", "24 27 21"), ("2 May", "21 29 20"), ("3 June", "9 2 3"))
        for year, count in zip(("2018", "2019", "2020"), row.split(), strict=True)
    }


def test_names_of_counts_may_go_on_below_them_and_have_codes(tmp_path):
    text = (
        "Day,Year,County,,,,\n,,Ash,Birch-,Elm,Fir,Oak\n,,,land,,,Hill\n"
        "DAY,YEAR,01,03,04,05,07\n1 May,2019,24,27,21,25,9\n1 May,2020,21,29,20,25,8\n"
    )
    counties = ["Ash", "Birchland", "Elm", "Fir", "Oak Hill"]
    assert sheet_of(tmp_path, text).heads == ["Day!!DAY", "Year!!YEAR", *counties]


def test_dates_below_the_numbers_of_weeks_are_headings_and_scratch_numbers_are_not(tmp_path):
    weeks = range(1, 6)
    text = (
        f"Week number,,Year to date,{','.join(map(str, weeks))},,,\n"
        f"Week ended,,,{','.join(f'2020-01-{7 * w:02}' for w in weeks)},,,\n"
        "Deaths,All,20,6,5,4,3,2,,,\n,0-64,9,2,3,1,2,1,,,\n,65+,11,4,2,3,1,1,,,\n"
        "Male,All,10,3,2,2,2,1,,,\n,0-64,4,1,1,0,1,1,,1,0\n,65+,6,2,1,2,1,0,,1,1\n"
        "Female,All,10,3,3,2,1,1,,,\n,0-64,5,1,2,1,1,0,,1,2\n,65+,5,2,1,1,0,1,,3,4\n"
        ",,,,,,,,,6,7\n"
    )
    reading = read([sheet_of(tmp_path, text)], {})
    names = ["week ended", "week number", "category 1"]
    counts = reading.cells.set_index(names)["stated"]
    assert len(counts) == 9 * 6
    assert counts["Female", "65+", "2020-01-14"] == "1"
    assert counts["all", "0-64", "2020-01-21"] == "1"
    assert counts["Male", "all", "all"] == "10"


def test_a_heading_ends_at_an_empty_column(tmp_path):
    text = "Area,Men,,,,Other\n,In,Out,,In,Out\nA,1,2,,3,4\nB,5,6,,7,8\n"
    heads = ["Area", "Men!!In", "Men!!Out", "In", "Other!!Out"]
    assert sheet_of(tmp_path, text).heads == heads


def test_a_heading_reaches_over_empty_columns_that_part_all(tmp_path):
    text = "Area,Men,,,,Women,,\n,In,,Out,,In,,Out\nA,1,,2,,3,,4\nB,5,,6,,7,,8\n"
    heads = ["Area", "Men!!In", "Men!!Out", "Women!!In", "Women!!Out"]
    assert sheet_of(tmp_path, text).heads == heads


@pytest.mark.parametrize("first", ["A,closed,closed", "A,3,closed", ",1,2"])
def test_a_first_row_of_words_or_numbers_is_no_heading(first, tmp_path):
    text = f"Area,Men,Women\n{first}\nB,5,6\nC,6,7\nD,1,1\n"
    assert sheet_of(tmp_path, text).heads == ["Area", "Men", "Women"]


def test_a_label_with_a_word_of_rates_is_left_out_only_where_counts_have_decimals(tmp_path):
    text = (
        "School,Website,Pupils,Latitude,Change\n"
        "Ash,a.org/index,12,48.14,-3\nElm,elm.org,15,48.18,2\nOak,oak.org,9,47,-1\n"
        "Fir,fir.org,7,46.5,4\n"
    )
    reading = read([sheet_of(tmp_path, text)], {"columns.Latitude": "ignored"})
    assert {*reading.cells["stated"]} == {"12", "15", "9", "7"}
    text = "Year,Kind,n\n2019,Deaths,12\n2019,Rate,3.5\n2020,Deaths,9\n2020,Rate,2\n"
    assert {*read([sheet_of(tmp_path, text)], {}).cells["stated"]} == {"12", "9"}
