"""Sheets: several rows of headings, and columns beside a table."""

import numpy as np
import pytest

from bayesrisk.exceptions import DataError
from bayesrisk.tables.reading.reading import read
from bayesrisk.tables.sheets.sheet import file_sheet


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


@pytest.mark.parametrize(
    ("row", "codes"),
    [("1 3 4 5 7 8 10", True), ("1 2 3 4 5 6 7", True), ("1 3 4 7 5 8 10", False),
     ("1 3 4 5 7 8 14", False), ("2 3 4 5 7 8 10", False)],
)  # fmt: skip
def test_numbers_that_rise_below_names_are_codes_of_these(tmp_path, row, codes):
    names = ["Ash", "Birch", "Elm", "Fir", "Oak", "Yew", "Hazel"]
    text = f"Day,Place,,,,,,\n,{','.join(names)}\nDAY,{row.replace(' ', ',')}\n"
    text += "1 May,24,27,21,25,9,8,30\n2 May,21,29,20,25,8,6,22\n3 May,2,7,21,5,9,8,3\n"
    sheet = sheet_of(tmp_path, text)
    assert [row[0] for _, row in sheet.rows] == ["DAY"] * (not codes) + ["1 May", "2 May", "3 May"]
    assert [head.rpartition("!!")[2] for head in sheet.heads[1:]] == names


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


def heads_and_rows(folder, text):
    sheet = sheet_of(folder, text)
    return sheet.heads, [row for _, row in sheet.rows]


def test_columns_without_labels_to_the_left_are_no_part_of_a_table(tmp_path):
    text = "Title\nFilters:\nRooms,,One,Two\n,Zone of homes,,\n,S01,3,4\n,S02,5,6\n"
    assert heads_and_rows(tmp_path, text) == (
        ["Zone of homes", "One", "Two"],
        [["S01", "3", "4"], ["S02", "5", "6"]],
    )


def test_notes_below_a_table_may_stand_in_any_column(tmp_path):
    note = "1 Counts of 2016 are by place of residence"
    text = f"Land,Year,1,2,3\nA,2016,5,6,7\nB,2016,8,9,1\n\n,,{note},,{note}\n"
    assert [row[0] for row in heads_and_rows(tmp_path, text)[1]] == ["A", "B"]


PLACES = {"North": "37", "North!!Ash": "25", "North!!Elm": "12", "South": "9", "South!!Oak": "9"}


@pytest.mark.parametrize("order", ["above", "below"])
def test_labels_in_one_of_several_columns_are_a_tree(order, tmp_path):
    rows = [[*path.split("!!"), n] for path, n in PLACES.items()]
    if order == "below":
        rows = [*rows[1:3], rows[0], rows[4], rows[3]]
    lines = [f"{row[0]},,{row[1]}" if len(row) == 2 else f",{row[1]},{row[2]}" for row in rows]
    heads, rows = heads_and_rows(tmp_path, "Region,Town,People\n" + "\n".join(lines) + "\n")
    assert heads == ["Region/Town", "People"]
    assert dict(rows) == PLACES


CHARACTERISTICS = (
    "Characteristic,Total,Female,Male\nTotal,20,12,8\nAge,,,\n0-17,6,4,2\n18+,14,8,6\n"
    "Marital status,,,\nMarried,9,{},3\nSingle,7,{},4\nUnknown,4,3,1\n"
)


def test_sections_that_each_make_up_the_total_are_variables(tmp_path):
    cells = read([sheet_of(tmp_path, CHARACTERISTICS.format("*", "*"))], {"counts": "exact"}).cells
    counts = cells.set_index(["age", "marital status", "sex"])["stated"]
    assert counts["all", "all", "all"] == "20"
    assert counts["0-17", "all", "Female"] == "4"
    assert counts["all", "Single", "Female"] == "*"
    assert len(counts) == 18


def test_sections_that_miss_the_total_are_none(tmp_path):
    text = CHARACTERISTICS.format(6, 3).replace("Married,9", "Married,8")
    cells = read([sheet_of(tmp_path, text.replace("Unknown", "0-17"))], {}).cells
    assert {*cells["section"]} == {"Total", "Age", "Marital status"}


def test_a_heading_between_others_reaches_to_the_next_but_not_over_a_total_of_more(tmp_path):
    text = (
        "Place,2015,,,,,,,2016,,\n,Q1,,,Q2,,,2015 Total,Q1,,\n"
        ",Jan,Feb,Q1 Total,Apr,May,Q2 Total,,Jan,Feb,Q1 Total\n"
        "A,1,2,3,4,5,9,12,1,1,2\nB,2,2,4,3,3,6,10,3,4,7\n"
    )
    assert heads_and_rows(tmp_path, text)[0] == [
        "Place", "2015!!Q1!!Jan", "2015!!Q1!!Feb", "2015!!Q1!!Q1 Total", "2015!!Q2!!Apr",
        "2015!!Q2!!May", "2015!!Q2!!Q2 Total", "2015!!2015 Total", "2016!!Q1!!Jan",
        "2016!!Q1!!Feb", "2016!!Q1!!Q1 Total",
    ]  # fmt: skip


def test_signs_below_headings_say_what_is_counted(tmp_path):
    text = "Region,Grade 8,Grade 9,\n,Number,#,%\nA,40,30,75\nB,20,5,25\n"
    assert heads_and_rows(tmp_path, text)[0] == [
        "Region", "Grade 8!!Number", "Grade 9!!#", "Grade 9!!%",
    ]  # fmt: skip


def test_a_first_row_of_counts_is_no_row_of_headings(tmp_path):
    with pytest.raises(DataError, match="must be a row of headings"):
        sheet_of(tmp_path, "Tokens,761,1020,930,1110\nTickets,3,4,5,6\nCash,7,8,8,9\n")


def test_all_rows_of_headings_stand_above_empty_rows(tmp_path):
    text = (
        "Title,,back to contents\n\nPlace,People,,Homes\n,Men,Women,Let\n\n\nA,3,4,7\nB,5,1,6\n"
        "Notes:\n1 Of those who live there\n"
    )
    assert heads_and_rows(tmp_path, text) == (
        ["Place", "People!!Men", "People!!Women", "Homes!!Let"],
        [["A", "3", "4", "7"], ["B", "5", "1", "6"]],
    )


def test_the_name_of_labels_may_stand_between_rows_of_headings(tmp_path):
    text = ",Rates,,Numbers,\nDeaths,,,,\n,Men,Women,Men,Women\n0-17,1.5,2.5,3,4\n18+,2.5,3.5,5,6\n"
    heads, rows = heads_and_rows(tmp_path, text)
    assert heads == ["Deaths", "Rates!!Men", "Rates!!Women", "Numbers!!Men", "Numbers!!Women"]
    assert len(rows) == 2


def test_labels_that_stand_beside_withheld_counts_alone_are_no_margin(tmp_path):
    text = "area,sex,count\nNorth,men,*\n,women,7\nSouth,men,*\n,women,9\n"
    assert heads_and_rows(tmp_path, text) == (
        ["area", "sex", "count"],
        [["North", "men", "*"], ["", "women", "7"], ["South", "men", "*"], ["", "women", "9"]],
    )
    margin = "North,,\n,men,*\n,women,7\nSouth,,\n,men,*\n,women,9\n"
    assert heads_and_rows(tmp_path, f",sex,count\n{margin}") == (
        ["section", "sex", "count"],
        [["North", "men", "*"], ["North", "women", "7"], ["South", "men", "*"],
         ["South", "women", "9"]],
    )  # fmt: skip


def test_codes_above_names_may_stand_beside_the_name_of_the_labels(tmp_path):
    text = "Country,K02,E92,W92\nCountry,Both,England,Wales\n\nAll,9,5,4\n0-17,5,3,2\n18+,4,2,2\n"
    assert heads_and_rows(tmp_path, text)[0] == ["Country", "Both", "England", "Wales"]


def test_a_heading_merged_with_an_empty_column_is_that_of_the_counts(tmp_path):
    text = "Place,2019,2020,Year to date,\nA,3,4,,7\nB,5,1,,6\n"
    assert heads_and_rows(tmp_path, text)[0] == ["Place", "2019", "2020", "Year to date"]


@pytest.mark.parametrize("between", ["", "\n"])
def test_rows_before_the_first_section_are_of_none(between, tmp_path):
    text = (
        f"Group,Men,Women\nDeaths,9,8\n{between}Under 65,,\nNorth,3,2\nSouth,1,1\n"
        f"{between}65 and over,,\nNorth,4,3\nSouth,1,2\n"
    )
    assert heads_and_rows(tmp_path, text) == (
        ["section", "Group", "Men", "Women"],
        [["", "Deaths", "9", "8"], ["Under 65", "North", "3", "2"], ["Under 65", "South", "1", "1"],
         ["65 and over", "North", "4", "3"], ["65 and over", "South", "1", "2"]],
    )  # fmt: skip


def test_sections_in_two_levels(tmp_path):
    text = (
        "Age,n\nEngland,\nMen,\n0-17,3\n18+,4\nWomen,\n0-17,5\n18+,6\nWales,\nMen,\n0-17,1\n18+,2\n"
        "Women,\n0-17,7\n18+,8\n"
    )
    sections = [row[0] for row in heads_and_rows(tmp_path, text)[1]]
    assert sections[::2] == ["England!!Men", "England!!Women", "Wales!!Men", "Wales!!Women"]
    regions = text.replace("Women,\n0-17,5\n18+,6", "Regions,\nEast,5\nWest,6", 1)
    with pytest.raises(DataError, match="must be a row of the table"):  # are they of men?
        sheet_of(tmp_path, regions)


@pytest.mark.parametrize("end", ["", ",,,,and detail,,,income\n"])
@pytest.mark.parametrize("of", ["of", "of the"])
def test_headings_that_go_on_below_in_small_letters_are_one_name(of, end, tmp_path):
    text = (
        "Migration into,,Migration from,,Flow,Number,Number,Aggregate\n,,,,,of,of,adjusted\n"
        f"State,County,State,County,State totals,returns,exemptions,gross\n{end}"
        "02,013,96,000,Total Migration,115,200,3313\n02,013,97,001,Same State,30,51,952\n"
        "02,013,97,003,Different State,85,149,2361\n02,016,96,000,Total Migration,259,415,6827\n"
        "02,016,97,001,Same State,100,180,2500\n02,016,97,003,Different State,159,235,4327\n"
    ).replace("of,of,", f"{of},{of},")
    heads = [f"Number {of} returns", f"Number {of} exemptions", "Aggregate adjusted gross"]
    heads[2] += " income" * bool(end)
    sheet = sheet_of(tmp_path, text)
    assert sheet.heads[5:] == heads
    assert sheet.heads[:4] == [
        "Migration into!!State", "Migration into!!County",
        "Migration from!!State", "Migration from!!County",
    ]  # fmt: skip
    if end:
        assert {*read([sheet], {}).cells["stated"]} == {
            *["115", "200", "30", "51", "85", "149", "259", "415", "100", "180", "159", "235"]
        }


def test_headings_of_which_each_goes_on_otherwise_are_one_name_each(tmp_path):
    text = "Area,Claims,Persons\nof,made,known\nA,5,6\nB,7,8\n"
    assert sheet_of(tmp_path, text).heads == ["Area of", "Claims made", "Persons known"]


@pytest.mark.parametrize("gap", ["", "Sent to"])
def test_small_letters_below_headings_of_several_columns_are_labels(gap, tmp_path):
    came = "Come from" if gap else ""
    text = f"Area,Sent to,{gap},Come from,{came}\n,home,work,home,work\nA,1,2,3,4\nB,5,6,7,8\n"
    said = read([sheet_of(tmp_path, text)], {})
    assert said.sheets[0].heads[1:] == [
        "Sent to!!home", "Sent to!!work", "Come from!!home", "Come from!!work",
    ]  # fmt: skip


def test_headings_that_repeat_in_runs_are_told_apart_by_the_first_of_each(tmp_path):
    text = "Day,2019,Men,Women,2020,Men,Women\n1,7,3,4,9,5,4\n2,5,1,4,8,3,5\n"
    years = [[f"{y}", f"{y}!!Men", f"{y}!!Women"] for y in (2019, 2020)]
    assert heads_and_rows(tmp_path, text)[0] == ["Day", *years[0], *years[1]]


def test_headings_that_repeat_stand_below_those_before_an_empty_row(tmp_path):
    text = (
        "Weekly deaths\nWeek,11,,,,12,,,\n\n,England,,Wales,,England,,Wales,\n"
        ",All,Covid,All,Covid,All,Covid,All,Covid\nHome,9,1,8,2,7,3,6,4\nHospital,9,8,7,6,5,4,3,2\n"
    )
    heads = heads_and_rows(tmp_path, text)[0]
    assert heads[1:4] == ["11!!England!!All", "11!!England!!Covid", "11!!Wales!!All"]
    assert heads[-1] == "12!!Wales!!Covid"
    assert len({*heads}) == 9


def test_numbers_below_a_repeated_heading_need_no_block_above(tmp_path):
    text = (
        "As By me,,,,,,,\n\n,,All,,,All,,\n\nLand,Age from,Week,,,Week,,\n,to,1,2,3,4,5,6\n"
        "A,0-65,3,4,5,6,7,8\nA,All,5,6,7,8,9,9\nB,0-65,2,2,2,2,2,2\nB,All,4,4,4,4,4,5\n"
    )
    heads = heads_and_rows(tmp_path, text)[0]
    assert [head.rpartition("!!")[2] for head in heads[2:]] == ["1", "2", "3", "4", "5", "6"]
    assert not any("All" in head for head in heads)


@pytest.mark.parametrize("gap", [0, 2])
@pytest.mark.parametrize("row", ["A,B,1,2,3", "А,Б,1,2,3", "1,2,3,4,5"])
def test_a_row_that_numbers_the_columns_is_no_row_of_counts(row, gap, tmp_path):
    numbers = ",,,,\n" * gap + f"{row}\n" + ",,,,\n" * gap
    text = f"Crime,Row,Known,Solved,Sent\n{numbers}Theft,1,9,4,3\nFraud,2,8,5,1\nArson,3,7,6,2\n"
    sheet = sheet_of(tmp_path, text)
    assert [row[0] for _, row in sheet.rows] == ["Theft", "Fraud", "Arson"]
    assert sheet.heads == ["Crime", "Row", "Known", "Solved", "Sent"]
    assert (2 + gap, row.replace(",", ", "), "numbers of columns") in sheet.left


def test_labels_of_one_letter_number_no_columns(tmp_path):
    text = "Area,Known,Solved,Sent\nA,1,2,3\nB,9,4,3\n"
    assert [row[0] for _, row in sheet_of(tmp_path, text).rows] == ["A", "B"]


def test_a_heading_of_signs_above_a_total_is_read(tmp_path):
    text = "Area,:,:,B,B\n,Men,Total,Men,Total\nA,1,3,2,5\nB,2,6,3,9\n"
    assert len(read([sheet_of(tmp_path, text)], {"counts": "exact"}).cells) == 8


def test_a_row_below_headings_may_name_several_columns_of_labels(tmp_path):
    rows = "North,0-4,3,5\n,5-9,6,2\nSouth,0-4,0,9\n,5-9,4,1\n"
    heads = ["State", "Age", "Male", "Female"]
    assert sheet_of(tmp_path, f",Sex,Male,Female,\nState,Age,,,\n{rows}").heads == heads
    assert sheet_of(tmp_path, f",Sex,Male,Female,\nState,Age\n{rows}").heads == heads
    # A row whose labels stand below again is one of the table, withheld as it is.
    again = sheet_of(tmp_path, f"State,,Male,Female\nNorth,5-9,,\n{rows}")
    assert again.heads[0] == "State"
    assert again.rows[0][1] == ["North", "5-9", "", ""]


def test_facts_about_a_table_are_no_table_and_short_tables_are(tmp_path):
    table = "Age,Men,Women\n0-15,11,9\n16+,30,32\n"
    facts = "population,All residents\nunits,Persons\ndate,2021\n"
    sheet = sheet_of(tmp_path, f"Sex by age\n\n{facts}\n{table}")
    assert sheet.heads == ["Age", "Men", "Women"]
    assert [row for _, row in sheet.rows] == [["0-15", "11", "9"], ["16+", "30", "32"]]
    assert {i for i, _, _ in sheet.left} == {1, 3, 4, 5}
    # Withheld counts are no facts.
    small = sheet_of(tmp_path, f"Town,Cases\nA,*\nB,*\nC,2\n\n\n{table}")
    assert small.heads == ["Town", "Cases"]


MERGED = "Title,,,,\nCode,State,Age,Year by sex,\n{0}2010,{1}\n{0}Men,Women\n{0}Total,Total\n{2}"


@pytest.mark.parametrize("number", [6, 40])
@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize("gap", ["", ",,,,\n"])
def test_a_year_below_merged_headings_is_a_heading_however_long_the_table_is(
    number, merged, gap, tmp_path
):
    rows = [["25", "North", f"{k} years", str(7 * k), str(k * k)] for k in range(number)]
    again, same = ("Code,State,Age,", "2010") if merged else (",,,", "")
    text = MERGED.format(again, same, gap + "".join(f"{','.join(row)}\n" for row in rows))
    heads, read_rows = heads_and_rows(tmp_path, text)
    assert heads[:3] == ["Code", "State", "Age"]
    assert ["Men" in heads[3].split("!!"), "Women" in heads[4].split("!!")] == [True, True]
    assert read_rows == rows


@pytest.mark.parametrize("first", ["Total,2010,2011", "All,2010,2010", "Code,State,4,5"])
def test_a_first_row_with_a_label_or_another_number_is_no_heading(first, tmp_path):
    heads = "Code,State,Men,Women" if first.startswith("Code") else "Area,Men,Women"
    text = f"{heads}\n{first}\nA,{'B,' * ('State' in heads)}5,6\nC,{'D,' * ('State' in heads)}6,7\n"
    sheet = sheet_of(tmp_path, text)
    assert sheet.heads == heads.split(",")
    assert sheet.rows[0][1] == first.split(",")


def test_lines_of_headings_below_labels_are_joined_with_them(tmp_path):
    text = (
        "State,District,Place/,Age,All,,,Rural,,\nCode,Code,Area,,,,,,,\n"
        ",,,,People,Men,Women,People,Men,Women\n,,,1,2,3,4,5,6,7\n\n"
        "01,007,North,All ages,9,4,5,7,3,4\n01,007,North,0-14,4,2,2,3,1,2\n"
    )
    heads, rows = heads_and_rows(tmp_path, text)
    sexes = ["People", "Men", "Women"]
    assert heads == [
        "State Code", "District Code", "Place/Area", "Age",
        *(f"{place}!!{sex}" for place in ("All", "Rural") for sex in sexes),
    ]  # fmt: skip
    assert [row[0] for row in rows] == ["01", "01"]
    one = "State,Area,Age,All,,Rural,\nCode,,,,,,\n,,,Men,Women,Men,Women\n1,North,0-14,4,5,3,4\n"
    assert heads_and_rows(tmp_path, one)[0][3:] == [
        f"{p}!!{s}" for p in ("All", "Rural") for s in sexes[1:]
    ]
    last = "Area,Total/,Age,n,n\nName,Rural/,,Men,Women\n,Urban,,,\nNorth,Rural,0-14,4,5\n"
    assert heads_and_rows(tmp_path, last)[0][:2] == ["Area Name", "Total/Rural/Urban"]


def test_a_year_below_one_heading_is_a_heading_and_a_section_below_a_label_is_none(tmp_path):
    text = 'Place,Area,Year\n"","",2010\nAlfa,Urban,40\nAlfa,Rural,10\n'
    assert heads_and_rows(tmp_path, text)[1] == [["Alfa", "Urban", "40"], ["Alfa", "Rural", "10"]]
    regions = "Code,Area,n\n,North,\n1,A,4\n2,B,5\n,South,\n3,A,7\n"
    heads, rows = heads_and_rows(tmp_path, regions)
    assert heads == ["section", "Code", "Area", "n"]
    assert rows[2] == ["South", "3", "A", "7"]


@pytest.mark.parametrize("first", [",,1,2,3,4", ",1,2,3,4,5", "1,2,3,4,5,6"])
def test_numbers_of_columns_begin_in_any_column(first, tmp_path):
    head = "Code,Area,Age,People,Men,Women\n"
    text = f"{head}{first}\n1,North,All ages,9,4,5\n1,North,0-14,4,2,2\n12,South,0-14,4,3,1\n"
    assert [row[1] for row in heads_and_rows(tmp_path, text)[1]] == ["North", "North", "South"]


def test_a_total_in_both_of_two_rows_leaves_one_variable(tmp_path):
    text = (
        "State,Total,{0},{0},{0},{0}\nState,Total,15,15 - 19,20 and over,Unknown\n"
        "Total,20,2,8,9,1\nSingle,14,2,7,5,0\nMarried,6,0,1,4,1\n"
    ).format("Age of the mother")
    heads = ["State", "Total", "15", "15 - 19", "20 and over", "Unknown"]
    assert heads_and_rows(tmp_path, text)[0] == heads


TOWNS = "Place,Code,Young,Old\nAsh,1,5,6\nBirch,2,3,4\n{}Fir,4,1,2\nOak,5,8,3\n"


def test_a_place_without_counts_in_a_list_is_left_out(tmp_path):
    sheet = sheet_of(tmp_path, TOWNS.format("Elm,,,\n"))
    assert [row[0] for _, row in sheet.rows] == ["Ash", "Birch", "Fir", "Oak"]
    assert [(i, text) for i, text, _ in sheet.left] == [(4, "Elm")]


def test_a_heading_in_a_list_of_another_order_is_that_of_a_section(tmp_path):
    heads, rows = heads_and_rows(tmp_path, TOWNS.format("Villages,,,\n"))
    assert heads[0] == "section"
    assert [row[:2] for row in rows] == [
        ["", "Ash"], ["", "Birch"], ["Villages", "Fir"], ["Villages", "Oak"],
    ]  # fmt: skip


GROSSED = (
    "Code,Place,Ill,Old,Total\nE1,Ash,0,5,5\nE2,Fir,5,6,11\nE3,Elm,7,9,16\n{},Total,12,20,32\n"
)


@pytest.mark.parametrize("column", [0, 1])
def test_rows_below_a_heading_of_their_own_do_not_add_to_those_above(column, tmp_path):
    heading = ["", "", "", "", ""]
    heading[column] = "Grossed data"
    text = (
        GROSSED.format("")
        + f",,,,\n{','.join(heading)}\n,England,30,40,70\n,,,,\n.. = no data,,,,\n"
    )
    sheet = sheet_of(tmp_path, text)
    assert [row[1] for _, row in sheet.rows] == ["Ash", "Fir", "Elm", "Total"]
    assert {7, 8} < {i for i, _, _ in sheet.left}
    cells = read([sheet], {}).cells
    assert {*cells.loc[cells["place label"] == "all", "stated"]} == {"12", "20", "32"}


def test_rows_below_a_heading_that_add_up_to_a_total_above_stay(tmp_path):
    text = "Trait,A,B\nTotal,10,9\nMen,4,4\nWomen,6,5\n\nAge,,\n0-17,3,2\n18+,7,7\n"
    counts = [row[-2:] for _, row in sheet_of(tmp_path, text).rows]
    assert counts == [["10", "9"], ["4", "4"], ["6", "5"], ["3", "2"], ["7", "7"]]


def test_days_without_counts_stand_between_headings_and_a_range(tmp_path):
    days = "2020-01-22,,\n2020-01-23,,\n"
    text = f"date,cases,deaths\n{days}2020-01-24,<5,1\n2020-01-25,14,<5\n2020-01-26,15,<5\n"
    sheet = sheet_of(tmp_path, text)
    assert sheet.heads == ["date", "cases", "deaths"]
    assert [row for _, row in sheet.rows] == [
        ["2020-01-24", "<5", "1"], ["2020-01-25", "14", "<5"], ["2020-01-26", "15", "<5"],
    ]  # fmt: skip
    assert [(i, why) for i, _, why in sheet.left] == [(i, "a row without counts") for i in (2, 3)]


@pytest.mark.parametrize("title", ["Legend", "Key:", "Notes"])
@pytest.mark.parametrize("above", [True, False])
def test_a_title_of_notes_above_or_below_a_table_is_none_of_it(above, title, tmp_path):
    rows = "region,men,women\nNorth,12,14\nSouth,5,9\n"
    words = "*,not stated,not stated\n**,as of May,as of May\n***,rounded,rounded\n"
    text = f"{title},,\n{rows}" if above else f"{rows}{title},,\n{words}"
    sheet = sheet_of(tmp_path, text)
    assert sheet.heads == ["region", "men", "women"]
    assert [row for _, row in sheet.rows] == [["North", "12", "14"], ["South", "5", "9"]]
    first, why = (1, "above the table") if above else (4, "a note below the table")
    assert sheet.left[0] == (first, title, why)
    assert len(sheet.left) == (1 if above else 4)


@pytest.mark.parametrize("line", ["-----", "==="])
def test_a_line_of_signs_is_no_name_and_no_row_and_parts_notes_from_the_table(line, tmp_path):
    rows = f"region,men,women\n{line},,\nNorth,12,14\nSouth,5,9\n{line},,\nTotal,17,23\n"
    sheet = sheet_of(tmp_path, f"{rows}{line},,\nBy me,,\nSee 5,,\n")
    assert sheet.heads == ["region", "men", "women"]
    assert [row for _, row in sheet.rows] == [
        ["North", "12", "14"], ["South", "5", "9"], ["Total", "17", "23"],
    ]  # fmt: skip
    notes = [(7, line), (8, "By me"), (9, "See 5")]
    assert sheet.left == [(i, text, "a note below the table") for i, text in notes]
    with pytest.raises(DataError, match="row 7: must be a row of the table, with counts"):
        sheet_of(tmp_path, f"{rows}By me,,\nSee 5,,\n")


def test_a_row_of_one_sign_parts_no_section(tmp_path):
    text = "Area,Children,Share\n2016,,\nA,5,93.2\nB,7,94\nAll,12,93\n2015,,\nA,4,.\nB,8,.\n,,.\n"
    text += "All,12,.\n"
    heads, rows = heads_and_rows(tmp_path, text)
    assert heads[0] == "section"
    assert [row[:2] for row in rows] == [
        [y, a] for y in ("2016", "2015") for a in ("A", "B", "All")
    ]


@pytest.mark.parametrize("words", ["of which:", "в том числе:", "davon", "darunter :", "dont"])
def test_words_before_parts_are_no_rows_of_the_table(tmp_path, words):
    lines = ["cause,men,women", "All,122,65", f"{words},,", "Heart,50,21", f"{words},,",
             "Stroke,30,12", "Cancer,42,32", f"{words},,", "Lung,10,3"]  # fmt: skip
    file = tmp_path / "parts.csv"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    sheet = file_sheet(file)
    assert [row[0] for _, row in sheet.rows] == ["All", "Heart", "Stroke", "Cancer", "Lung"]
    assert [i for i, row in sheet.rows] == [2, 4, 6, 7, 9]
    assert [i for i, *_ in sheet.left] == [3, 5, 8]


def test_another_row_of_one_text_is_refused_still(tmp_path):
    file = tmp_path / "parts.csv"
    file.write_text("cause,men\nAll,122\nof which: lung,\nHeart,50\n", "utf-8")
    with pytest.raises(DataError, match="row 3"):
        file_sheet(file)


def test_sections_beside_a_total_and_an_average_are_variables(tmp_path):
    """Weekly deaths: ages and sexes each make up the total; the average of other years does not."""
    rng = np.random.default_rng(2)
    ages = rng.integers(20, 90, (3, 6))
    women = ages.sum(axis=0) // 2
    rows = [
        ("Week number", *range(1, 7)),
        ("Total deaths", *ages.sum(axis=0)),
        ("Total deaths: average of five years", *(ages.sum(axis=0) - 9)),
        ("Deaths by age", *[""] * 6),
        *((age, *line) for age, line in zip(("0-17", "18-64", "65+"), ages, strict=True)),
        ("Deaths by sex", *[""] * 6),
        ("Women", *women),
        ("Men", *(ages.sum(axis=0) - women)),
    ]
    file = tmp_path / "weekly.csv"
    file.write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n", "utf-8")
    sheet = file_sheet(file)
    average = "Total deaths: average of five years"
    assert sheet.heads[:3] == [average, "Deaths by age", "Deaths by sex"]
    labels = [tuple(row[:3]) for _, row in sheet.rows]
    assert labels[0] == ("Total", "Total", "Total")
    assert labels[1][1:] == ("Total", "Total")
    assert labels[2:] == [("Total", age, "Total") for age in ("0-17", "18-64", "65+")] + [
        ("Total", "Total", sex) for sex in ("Women", "Men")
    ]
    # Sections that make up another total are none: who they are of is not known.
    rows[5] = ("18-64", *(ages[1] + 31))
    file.write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n", "utf-8")
    with pytest.raises(DataError, match="row 4"):
        file_sheet(file)


@pytest.mark.parametrize(
    ("title", "corner", "unit"),
    [
        ("RIDES BY FARE (000'S)", "Fare", 1000),
        ("Rides (000s)", "Fare", 1000),
        ("Rides by fare, in '000", "Fare", 1000),
        ("Rides", "('000s)", 1000),
        ("Rides of towns of 10,000s (000 to 999)", "Fare", 1),
        ("Rides since the 2000s", "Fare over 1,000", 1),
    ],
)
def test_a_title_says_that_counts_are_thousands(title, corner, unit, tmp_path):
    text = f'"{title}",,\n"{corner}",2017,2016\nToken,76,102\nPass,175,194\nTotal,251,296\n'
    reading = read([sheet_of(tmp_path, text)], {})
    assert reading.questions["counts"][0] == ("exact" if unit == 1 else f"nearest-{unit}")


@pytest.mark.parametrize(("head", "law"), [("Rides (000's)", "nearest-1000"), ("Rides", "exact")])
def test_a_heading_says_that_counts_are_thousands(head, law, tmp_path):
    text = f"Fare,{head}\nToken,76\nPass,175\nTotal,251\n"
    assert read([sheet_of(tmp_path, text)], {}).questions["counts"][0] == law


def test_the_name_of_a_section_may_hold_the_counts_of_its_first_label(tmp_path):
    text = (
        "Benefit,Job,Parent,Total\nGender,656,57,713\nMale,,,\nFemale,524,634,1158\n"
        "Age,,236,\n18-39,545,,781\n40-64,635,455,1090\nTotal of all,1180,691,1871\n"
    )
    cells = read([sheet_of(tmp_path, text)], {}).cells
    counts = cells.set_index(["gender", "age", "category 1"])["stated"]
    assert len(counts) == 5 * 3
    assert counts["Male", "all", "Job"] == "656"
    assert counts["all", "18-39", "Parent"] == "236"
    assert counts["all", "all", "all"] == "1871"


def test_a_name_whose_section_misses_the_total_has_no_counts_of_others(tmp_path):
    text = (
        "Cancer,Men,Women,All\nProstate,656,,656\nOvary,,634,\nBowel,524,634,1158\n"
        "Testis,236,,236\nBreast,,545,\nLung,635,455,1090\n"
    )
    labels = ["Prostate", "Ovary", "Bowel", "Testis", "Breast", "Lung"]
    assert [row[0] for _, row in sheet_of(tmp_path, text).rows] == labels


def test_a_row_of_groups_below_the_headings_is_none_of_them(tmp_path):
    text = (
        ",Fare,2017,2016\nWHO,ADULT,,\n,Token,76,102\n,Cash,36,41\n,SUB-TOTAL,112,143\n"
        ",CHILDREN,,\n,Cash,25,21\n,SUB-TOTAL,25,21\n,ALL TOTAL,137,164\n"
        "WHERE,Bus,61,52\n,Rail,76,112\n,ALL TOTAL,137,164\n"
    )
    sheet = sheet_of(tmp_path, text)
    assert sheet.heads == ["section", "", "Fare", "2017", "2016"]
    assert [tuple(row[:3]) for _, row in sheet.rows] == [
        ("ADULT", "WHO", "Token"), ("ADULT", "WHO", "Cash"), ("ADULT", "WHO", "SUB-TOTAL"),
        ("CHILDREN", "WHO", "Cash"), ("CHILDREN", "WHO", "SUB-TOTAL"), ("", "WHO", "ALL TOTAL"),
        ("", "WHERE", "Bus"), ("", "WHERE", "Rail"), ("", "WHERE", "ALL TOTAL"),
    ]  # fmt: skip


def test_a_section_ends_where_a_group_begins_to_its_left(tmp_path):
    text = (
        ",Fare,2017,2016\n,ADULT,,\nWHO,Token,76,102\n,Cash,36,41\n"
        ",CHILDREN,,\n,Cash,25,21\n,Token,4,2\nWHERE,Bus,61,52\n,Rail,76,112\n"
    )
    rows = [row[0] for _, row in sheet_of(tmp_path, text).rows]
    assert rows == ["ADULT"] * 2 + ["CHILDREN"] * 2 + [""] * 2
    # A code in each row is the name of no group.
    codes = (str(k) for k in range(9))
    lines = [(line if line.count(",,") else next(codes) + line[line.index(",") :])
             for line in text.splitlines()[1:]]  # fmt: skip
    sheet = sheet_of(tmp_path, "\n".join([text.splitlines()[0], *lines]))
    assert [row[0] for _, row in sheet.rows] == ["ADULT"] * 2 + ["CHILDREN"] * 4


def test_labels_of_blank_counts_are_no_groups(tmp_path):
    text = "Area,Age,Men,Women\nNorth,0-4,,\nNorth,5-9,6,2\nSouth,0-4,,\nSouth,5-9,4,1\n"
    rows = [row for _, row in sheet_of(tmp_path, text).rows]
    assert rows == [line.split(",") for line in text.splitlines()[1:]]


def test_a_section_ends_at_its_total_where_a_total_of_all_follows(tmp_path):
    text = (
        "Fare,2017,2016\nADULT,,\nToken,76,102\nCash,36,41\nSubtotal,112,143\n"
        "CHILDREN,,\nCash,{0},{1}\nSubtotal,{0},{1}\nTotal,137,164\n"
    )
    sections = [row[0] for _, row in sheet_of(tmp_path, text.format(25, 21)).rows]
    assert sections == ["ADULT"] * 3 + ["CHILDREN"] * 2 + ["Total"]
    again = text.replace("Subtotal,{0},{1}", "Total boys,{0},9").format(25, 21)  # no sum of those
    assert [row[0] for _, row in sheet_of(tmp_path, again).rows][-1] == "CHILDREN"


@pytest.mark.parametrize("titles", [10, 1])
def test_rows_with_numbers_that_are_left_out_are_named_first(titles, tmp_path):
    lines = [f"Title {k} of 2016,,\n\n" for k in range(titles)]
    text = "Country,Jan,Feb\nA,3,5\nB,2,9\nUSA,8369.144,7505.48\nC,4,1\nD,6,5\nE,8,1\n"
    text += "All,8392.144,7526.48\n"
    reading = read([sheet_of(tmp_path, "".join(lines) + text)], {})
    line = next(line for line in reading.lines if "left out" in line)
    first = 2 * titles + 4
    assert line.index(f"row {first} ") < line.index(f"row {first + 4} ") < line.index("row 1 ")
    assert (f"2 with numbers (rows {first}, {first + 4})" in line) == (titles > 1)


def test_a_title_and_its_number_above_years_are_no_headings(tmp_path):
    text = "Farms,,,T 7\n,2018,2020,{}\nAll,98,92,50\nsmall,58,56,30\nlarge,40,36,20\n"
    sheet = sheet_of(tmp_path, text.format(2022))
    assert sheet.heads == ["", "2018", "2020", "2022"]
    assert sheet.captions == ("Farms, T 7",)
    with pytest.raises(DataError) as fault:
        read([sheet_of(tmp_path, text.format(2020))], {})
    assert "columns 3 and 4 " in str(fault.value)
    # Other headings below the first row are joined with it.
    assert sheet_of(tmp_path, text.format("other")).heads[-1] == "T 7!!other"


@pytest.mark.parametrize("gap", ["", ","])
def test_years_may_stand_again_below_each_of_several_headings(gap, tmp_path):
    rows = f"Ash,233,412,{gap}891,304\nElm,749,811,{gap}450,609\nOak,306,322,{gap}459,519\n"
    text = f"Pupils by group,,,,,\n,White,,{gap}Other,\n,2012,2013,{gap}2012,2013\n{rows}"
    heads = ["White!!2012", "White!!2013", "Other!!2012", "Other!!2013"]
    assert sheet_of(tmp_path, text).heads[1:] == heads
    counts = (
        f"Area,White,,{gap}Other,\n,2012,2013,{gap}2012,2012\n{rows}"  # no years: a count again
    )
    assert sheet_of(tmp_path, counts).heads[1:] != heads


def test_years_are_headings_of_rows_that_stand_apart(tmp_path):
    rows = "TOTAL,55,56,57\n,,,\n0-4,30,31,31\n,,,\n0,17,16,16\n1,13,15,15\n"
    sheet = sheet_of(tmp_path, f"Age,1995,1996,1997\n,,,\n{rows}")
    assert sheet.heads == ["Age", "1995", "1996", "1997"]
    assert [row[0] for _, row in sheet.rows] == ["TOTAL", "0-4", "0", "1"]
    # Years above words are none.
    other = sheet_of(tmp_path, f"Reports,1995,1996,1997\n,,,\nAge,Men,Women,All\n{rows}")
    assert other.heads == ["Age", "Men", "Women", "All"]


@pytest.mark.parametrize("months", [("2024.06", "2024.07"), ("2024-06", "2024-07")])
def test_months_in_merged_headings_are_no_counts(tmp_path, months):
    first = ",".join(month for month in months for _ in range(3))
    text = (
        f"Place,Item,{first}\nPlace,Item,{'Total,0-4 years,5+ years,' * 2}\n"
        "All,People,30,10,20,33,12,21\nAll,Male,14,4,10,15,5,10\nAsh,People,20,7,13,21,8,13\n"
    )
    heads = sheet_of(tmp_path, text).heads
    ages = ("Total", "0-4 years", "5+ years")
    assert heads == ["Place", "Item", *(f"{month}!!{age}" for month in months for age in ages)]


def test_a_label_without_counts_among_others_of_its_form_is_no_heading(tmp_path):
    text = (
        "age,men,women\n0_to_under_1,43,58\n1_to_under_2,63,51\n2_to_under_3,,\n"
        "3_to_under_4,13,21\n4_to_under_5,,\n5,,\n"
    )
    sheet = sheet_of(tmp_path, text)
    assert [row[0] for _, row in sheet.rows] == ["0_to_under_1", "1_to_under_2", "3_to_under_4"]
    assert {(i, reason) for i, _, reason in sheet.left} == {
        (i, "a row without counts") for i in (4, 6, 7)
    }


def test_a_range_in_the_first_cell_is_no_markup(tmp_path):
    file = tmp_path / "t.tsv"
    file.write_text("\t<5\t5-14\tAll\nMen\t7\t9\t16\nWomen\t8\t3\t11\n", encoding="utf-8")
    assert file_sheet(file).heads == ["", "<5", "5-14", "All"]
    file.write_text("<table><tr><td>7\n", encoding="utf-8")
    with pytest.raises(DataError, match="web page or XML"):
        file_sheet(file)


def test_counts_that_fall_are_no_headings(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("Alba;1933;1567;441;101\nBela;512;248;43;5\nCeta;949;744;132;18\n")
    with pytest.raises(DataError, match="row 1: must be a row of headings"):
        file_sheet(file)


@pytest.mark.parametrize("heads", ["1;2;3", "2019;2021;2020", "101;204;333;350", "4;3;2;1"])
def test_numbers_that_rise_and_years_are_headings(tmp_path, heads):
    file = tmp_path / "t.csv"
    numbers = ["512", "248", "43", "5"][: heads.count(";") + 1]
    file.write_text(f"Place;{heads}\nBela;{';'.join(numbers)}\nCeta;{';'.join(numbers)}\n")
    sheet = file_sheet(file)
    assert sheet.heads == ["Place", *heads.split(";")]
    assert len(sheet.rows) == 2


@pytest.mark.parametrize(("inside", "paths"), [(40, 3), (4, 0)])
def test_blanks_before_labels_are_indents_unless_parts_exceed_their_whole(tmp_path, inside, paths):
    """Of the rows that begin with a blank some are parts of the row above, or none of them is."""
    rows = [f"Offence {k},{50 if inside == 40 else 5},{60}\n {'x' * (k + 1)},{44 - inside},{9}\n"
            for k in range(3)]  # fmt: skip
    file = tmp_path / "t.csv"
    file.write_text("offence,men,women\n" + "".join(rows))
    labels = [row[0] for _, row in file_sheet(file).rows]
    assert sum("!!" in label for label in labels) == paths


@pytest.mark.parametrize(
    ("title", "law", "rows"),
    [
        ("Thousands, unless otherwise stated", "nearest-1000", 5),
        ("Fish (thousands, except where stated)", "nearest-1000", 5),
        ("Fish of thousands of ponds", "exact", 6),
    ],
)
def test_a_unit_may_have_exceptions(title, law, rows, tmp_path):
    """A heading or a label that states a unit of its own is none of thousands."""
    lines = [f"Pond {k},{3 * k + 40},{5 * k + 20},{60 - k}" for k in range(5)]
    text = f'"{title}",,,\nPlace,Carp,Trout,Boats (number)\n' + "\n".join(lines)
    reading = read([sheet_of(tmp_path, f"{text}\nBoats (no.),12,14,15\n")], {})
    assert reading.rules["counts"] == law
    assert len(reading.stated_cells) == 3 * rows
    own = reading.rules.get("columns.Boats (number).counts", reading.rules["counts"])
    assert own == "exact"


@pytest.mark.parametrize(("number", "counted"), [("12", 6), ("12.4", 6)])
def test_whole_numbers_among_decimals_are_in_thousands_too(number, counted, tmp_path):
    rows = f"Ash,{number},9.1\nBay,7.3,8.2\nElm,5.5,6.4\n"
    reading = read([sheet_of(tmp_path, f"Fish (thousands)\nPlace,Carp,Trout\n{rows}")], {})
    assert len(reading.stated_cells) == counted
    assert {"9100", "7300", str(int(float(number) * 1000))} <= {*reading.stated_cells["stated"]}
