"""Layouts of published sheets: titles, merged headings, blocks of rows, marks and estimates."""

import openpyxl
import pytest

from bayesrisk.exceptions import DataError
from bayesrisk.tables.reading.headings import heading_kind
from bayesrisk.tables.reading.reading import TableReading, read
from bayesrisk.tables.sheets.sheet import file_sheet
from bayesrisk.tables.sheets.texts import interval

AREAS = ("Ash", "Beech", "Cedar", "Elm")
HEADS = (
    "Key,Offence,Area,Cases,Tried,,Place,,,Armed with,,Suspects,,\n"
    ",,,,,,small,middle,large,,,,,\n"
    ",,,,,,,,,threat,shot,all,men,women\n"
    ",,,,number,in %,,,,,,,,\n"
)
BREAK = "\n"
TITLES = "Statistics of the police,,,,,,,,,Table 1,,,,\nBasic table,,,,,,,,,Areas,,,,\n"


def sheet_of(tmp_path, text):
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8")
    return file_sheet(file)


def workbook_of(tmp_path, tabs):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in tabs.items():
        tab = book.create_sheet(name)
        for row in rows:
            tab.append(row)
    book.save(tmp_path / "t.xlsx")
    return tmp_path / "t.xlsx"


def offences():
    """Return rows of 30 offences in four areas, with sums in places and in suspects."""
    rows = []
    for k in range(30):
        for j, area in enumerate(AREAS):
            small, middle, large = 7 * k + 3 * j + 11, 5 * k + j * j + 4, 3 * k + 2 * j
            men, women = 9 * k + 4 * j + 2, 2 * k + 5 * j + 1
            total = small + middle + large
            share = f"{100 * (k + 1) / total:.3f}1"
            rows.append(
                f"{k:04d}*,Offence {k},{area},{total},{k + 1},{share},{small},{middle},{large},"
                f"{(k + j) % 4},{(k + 2 * j) % 3},{men + women},{men},{women}\n"
            )
    return "".join(rows)


def counts_of(reading):
    cells = reading.cells
    return cells[cells["file"] != ""]


@pytest.mark.parametrize(
    "titles", ["", TITLES, f"Table 4: cases{TITLES[24:].partition(BREAK)[0]}{BREAK}"]
)
def test_titles_above_merged_headings_are_none(tmp_path, titles):
    reading = read([sheet_of(tmp_path, titles + HEADS + offences())], {})
    sheet = reading.sheets[0]
    assert sheet.heads == [
        "Key", "Offence", "Area", "Cases", "Tried", "Tried!!in %",
        "Place!!small", "Place!!middle", "Place!!large", "Armed with!!threat", "Armed with!!shot",
        "Suspects!!all", "Suspects!!men", "Suspects!!women",
    ]  # fmt: skip
    assert [reason for _, _, reason in sheet.left] == ["above the table"] * titles.count("\n")
    # Threats and shots, of few and repeated numbers, are counts as their neighbours are.
    stated = counts_of(reading)
    assert len(stated) == 120 * 10
    shots = stated[(stated == "shot").any(axis=1)]
    assert [*shots["stated"]] == [str((k + 2 * j) % 3) for k in range(30) for j in range(4)]


def test_a_row_of_merged_headings_above_several_counts_is_no_title(tmp_path):
    text = "Area,Men,,Women,\nName,young,old,young,old\n"
    text += "".join(f"{a},{k + 3},{k + 9},{2 * k + 1},{k + 5}\n" for k, a in enumerate(AREAS))
    heads = sheet_of(tmp_path, text).heads
    assert heads == ["Area!!Name", "Men!!young", "Men!!old", "Women!!young", "Women!!old"]
    one = "Area,Total,Men,\n,,young,old\nA,9,4,5\nB,12,7,5\nC,30,11,19\n"
    assert sheet_of(tmp_path, one).heads[1:] == ["Total", "young", "old"]


def test_numbers_of_few_texts_without_a_merged_heading_are_labels(tmp_path):
    rows = "".join(
        f"{area},{ward},{7 * k + 11 * ward + 3},{k + ward},{8 * k + 12 * ward + 3}\n"
        for k, area in enumerate("abcdefghij") for ward in range(1, 5)
    )  # fmt: skip
    reading = read([sheet_of(tmp_path, f"area,ward,men,women,all\n{rows}")], {})
    assert {*counts_of(reading)["ward"]} == {"1", "2", "3", "4"}


def test_sizes_of_places_are_no_ages():
    assert interval("20.000 bis unter 100.000") == (20000, 99999)
    assert heading_kind("20.000 bis unter 100.000", 2) == "category 2"
    assert heading_kind("20 bis unter 100", 2) == "age"


def blocks(names, gap=",,,,\n"):
    """Return a block of counts and one of rates for each name, with marks in its first row."""
    parts = []
    for k, name in enumerate(names):
        for j, place in enumerate(("City", "Town", "Country")):
            parts.append(f"{name},Number,{place},{30 * (k + 1) + j},{41 * (k + 1) + 2 * j}\n")
        parts.append(f"{name},,,,\n")
        rates = [(". .", ". .") if k and not j else (f"{k}.{j}1", f"{k}.{j}7") for j in range(3)]
        for place, (a, b) in zip(("City", "Town", "Country"), rates, strict=True):
            parts.append(f"{name},Rate(per 1 000),{place},{a},{b}\n")
        parts.append(gap)
    return "".join(parts)


def test_blocks_below_blank_rows_go_on_with_the_table(tmp_path):
    names = ('"Alba3, 6"', "Bern", "Cork2", "Dover")
    sheet = sheet_of(tmp_path, "State,Count,Place,2019,2020\n" + blocks(names))
    assert sheet.part == ""
    reading = read([sheet], {})
    stated = counts_of(reading)
    assert {*stated["state"]} == {"Alba3, 6", "Bern", "Cork2", "Dover"}
    assert len(stated) == 4 * 3 * 2
    line = next(line for line in reading.lines if "left out" in line)
    assert "12 with numbers (rows 6, 7, 8, " in line  # the rates, and no label with note numbers


def test_a_block_with_headings_of_its_own_is_another_table(tmp_path):
    first = "State,Count,Place,2019,2020\n" + blocks(("Bern", "Cork2"))
    second = (
        first.replace("2019,2020", "men,women").replace("Place", "Part").replace("City", "Hall")
    )
    assert sheet_of(tmp_path, f"{first}Cases by sex,,,,\n{second}").part == "1 of 2 tables is read"


def years(place, size=12, total="總　計"):
    """Return a table of years of three rows, whose label stands in one of these, or nowhere."""
    rows = [f"年別,性別,{total},0,1,2\n"]
    for k in range(size):
        men, women = (31 + 7 * k, 5 + k, 4 + k % 3), (22 + 5 * k, 3 + k % 4, 2 + k)
        parts = {"計": [a + b for a, b in zip(men, women, strict=True)], "男": men, "女": women}
        for j, (sex, counts) in enumerate(parts.items()):
            label = f"民國{64 + k}年" if j == place else ""
            rows.append(",".join([label, sex, str(sum(counts)), *map(str, counts)]) + "\n")
    return "".join(rows)


@pytest.mark.parametrize("place", [1, 2])
@pytest.mark.parametrize("total", ["總　計", "n1"])
def test_a_label_inside_a_block_of_rows_is_that_of_all(tmp_path, place, total):
    reading = read([sheet_of(tmp_path, years(place, total=total))], {})
    stated = counts_of(reading)
    assert reading.questions["blank"][0] == "block"
    assert {*stated["年別"]} == {f"民國{64 + k}年" for k in range(12)}
    assert len(stated) == 12 * 3 * 4
    # The column of sums is the total of the ages, whatever it is called.
    assert {"n1", "總 計"}.isdisjoint(stated.columns)
    of_ages = next(line for line in reading.lines if line.strip().startswith("category 1"))
    assert "counts all (the sums hold in 36 of 36 groups)" in of_ages
    assert "性別: 男, 女; '計' counts all (the sums hold in 48 of 48 groups)" in "".join(
        reading.lines
    )


def test_labels_that_stand_in_no_regular_blocks_are_not_filled(tmp_path):
    lines = years(1).splitlines(keepends=True)
    lines[2], lines[3] = lines[2].replace("民國64年", ""), f"民國64年{lines[3]}"
    with pytest.raises(DataError, match="different labels where their counts differ"):
        read([sheet_of(tmp_path, "".join(lines))], {})


def levels(*marks):
    rows = [f"School {k},{3 * k + 5},{2 * k + 9},{5 * k + 14}\n" for k in range(9)]
    rows += [f"School {k},{mark},{k},{k + 30}\n" for k, mark in enumerate(marks, 9)]
    return "School,Passed,Failed,Sat\n" + "".join(rows)


def test_bounds_with_a_percent_sign_among_counts_are_marks_all_at_once(tmp_path):
    reading = read([sheet_of(tmp_path, levels("< 5.0%", "> 95.0%", "≥99 %"))], {})
    for mark in ("< 5.0%", "> 95.0%", "≥99 %"):
        assert reading.questions[f"marks.{mark}"][0] == "withheld"
    assert reading.accepted().parts  # nothing else is refused
    with pytest.raises(DataError, match=r"row 11, column 'Passed'.*got '5\.0%'"):
        read([sheet_of(tmp_path, levels("5.0%"))], {})


def survey(numbers, unit):
    head = [
        ["Long-term conditions by region"],
        [None, "Condition"],
        [None, "Asthma", "Cancer", "All"],
    ]
    rows = [*head, [None, unit], ["Region of birth"]]
    rows += [[a, *row] for a, row in zip(AREAS, numbers, strict=True)]
    return [*rows, [], ["Language"], ["One", *numbers[0]], ["Other", *numbers[1]]]


ESTIMATES = [
    [2547.2, 332.3, 17368.4],
    [94.5, 5.8, 715.4],
    [326.8, 27.9, 1183.8],
    [86.2, 14.7, 369.1],
]
COUNTS = [[2547, 332, 17368], [94, 5, 715], [326, 27, 1183], [86, 14, 369]]
ERRORS = [[2.1, 7.5, 0.4], [11.3, 41.2, 3.3], [5.2, 17.8, 2.2], [12.9, 23.1, 4.8]]


@pytest.mark.parametrize(
    ("numbers", "unit", "second", "words"),
    [
        (ESTIMATES, "ESTIMATE ('000)", "Notes", r"row 4 says \"ESTIMATE \('000\)\""),
        (ESTIMATES, "", "T1_RSEs", r"sheet 'T1_RSEs' holds their errors"),
        (COUNTS, "", "Margins of error", r"sheet 'Margins of error' holds their errors"),
    ],
)
def test_estimates_of_a_survey_are_refused_for_that_whatever_the_layout(
    tmp_path, numbers, unit, second, words
):
    tabs = {"T1_Numbers": survey(numbers, unit), second: survey(ERRORS, "RSE (%)" if unit else "")}
    file = workbook_of(tmp_path, tabs)
    with pytest.raises(DataError, match=f"estimates of a survey .{words}"):
        read([file_sheet(file)], {})


def test_sheets_of_counts_are_no_estimates_for_their_neighbours(tmp_path):
    table = [
        ["Area", "Men", "Women", "All"],
        *([a, 3 + k, 5 + k, 8 + 2 * k] for k, a in enumerate(AREAS)),
    ]
    errors = [["Question", "Share"], ["Trust", 1.25], ["Hope", 2.5], ["Faith", 0.75]]
    file = workbook_of(
        tmp_path, {"Counts": table, "Standard errors": errors, "Medical errors": table}
    )
    assert len(counts_of(read([file_sheet(file, "Counts")], {}))) == 12


def test_a_legend_of_signs_is_no_part_of_the_table(tmp_path):
    names = [*"ABCDE", "A town whose name is longer than the source below it"]
    towns = "".join(f'"{town}","{31 + i}","{17 + 3 * i}"\n' for i, town in enumerate(names))
    legend = '"Sign","Meaning"\n"-","none at all,\nand not by rounding"\n"0","none by rounding"\n'
    file = tmp_path / "towns.csv"
    notes = f'"Fonte: made up"\n\n"Notes"\n"1 - Provisional."\n""\n"Legend"\n{legend}'
    file.write_text(f'"town","men","women"\n{towns}{notes}"X","withheld"\n')
    reading = read([file_sheet(file)], {})
    assert len(reading.cells) == 2 * len(names)
    assert {*reading.cells["town"]} == {*names}


@pytest.mark.parametrize("lower", [("Total", "Men", "Women"), ("Beds", "Rooms", "Halls")])
def test_headings_that_name_each_column_once_more_are_left_out(tmp_path, lower):
    text = f"Place,Column1,Column2,Column3\nPlace,{','.join(lower)}\nAsh,71,30,41\nElm,83,40,43\n"
    cells = sheet_cells(tmp_path, text)
    assert ("category 1" in cells) == (lower[0] != "Total")
    if lower[0] == "Total":
        assert {*cells["sex"]} == {"all", "Men", "Women"}


def sheet_cells(tmp_path, text):
    return read([sheet_of(tmp_path, text)], {}).cells


def test_ages_with_underscores_stand_below_sexes_and_a_total_in_any_letters(tmp_path):
    heads = [f"{s}_{a}" for s in "FMT" for a in ("TL", "00_04", "05_09", "10Plus")]
    rows = []
    for k, place in enumerate(("Ash", "Elm", "Oak")):
        women, men = ([31 + 7 * k + s, 45 - 5 * k, 23 + k * k + s] for s in (0, 9))
        both = [a + b for a, b in zip(women, men, strict=True)]
        numbers = [n for one in (women, men, both) for n in (sum(one), *one)]
        rows.append(f"{place},{','.join(map(str, numbers))}")
    cells = sheet_cells(tmp_path, "Place," + ",".join(heads) + "\n" + "\n".join(rows) + "\n")
    assert {*cells["sex"]} == {"F", "M", "all"}
    assert {*cells["age"]} == {"00-04", "05-09", "10Plus", "all"}


@pytest.mark.parametrize("columns", [2, 1])
def test_words_that_stand_alone_among_numbers_of_several_columns_are_marks(tmp_path, columns):
    """In one column alone they may be a label, as *unknown* is."""
    words = [
        [str(28 + j), "unasked", "unasked", "unasked", "unasked", str(17 + j)] for j in range(2)
    ]
    plain = [str(40 + 3 * k) for k in range(6)]
    table = [[f"Town {k}", *(words[j][k] if j < columns else plain[k] for j in range(2))]
             for k in range(6)]  # fmt: skip
    text = "Place,Cats,Dogs,Birds\n"
    text += "".join(f"{','.join(row)},{31 + 5 * k}\n" for k, row in enumerate(table))
    reading = read([sheet_of(tmp_path, text)], {})
    assert ("marks.unasked" in reading.questions) == (columns == 2)


@pytest.mark.parametrize("coded", [True, False])
def test_sections_have_codes_before_their_headings(tmp_path, coded):
    text = "Code,Age,Men,Women\n"
    for k, place in enumerate(("Ash", "Elm", "Oak")):
        text += f"{k:02},{place},,\n" if coded else ""
        text += f"{'' if coded else place},Total,{71 + 4 * k},{65 + 2 * k}\n"
        text += f",0-17,{30 + k},{25 + 3 * k}\n,18+,{41 + 3 * k},{40 - k}\n"
    cells = sheet_cells(tmp_path, text)
    assert {*cells["age"]} == {"0-17", "18+", "all"}
    assert ("section" in cells) == coded
    assert any({"Ash", "Elm", "Oak"} <= {*cells[name]} for name in cells)


@pytest.mark.parametrize("off", [0, 1])
def test_sections_begin_with_their_total_by_the_name_of_the_section(tmp_path, off):
    rows = {"North": (14, 16, 20, 21), "South": (20, 31, 30, 32), "East": (22, 25, 31, 20)}
    text = "Place,Births,Deaths\n"
    for place, (a, b, c, d) in rows.items():
        text += f"{place},{a + b + off},{c + d}\nBoys,{a},{c}\nGirls,{b},{d}\n"
    if off:  # rows of one label each, whatever they are
        with pytest.raises(DataError, match="Boys"):
            sheet_cells(tmp_path, text)
        return
    cells = sheet_cells(tmp_path, text)
    assert {*cells["section"]} == {*rows}
    assert {*cells["place label"]} == {"Boys", "Girls", "all"}


def test_persons_above_rows_of_places_are_the_total_of_men_and_women(tmp_path):
    numbers = {"MEN": (31, 42, 25), "WOMEN": (40, 37, 29)}
    numbers["PERSONS"] = tuple(a + b for a, b in zip(*numbers.values(), strict=True))
    text = "Place,2019,2020\n\n"
    for group, counts in numbers.items():
        places = zip(("Ash", "Elm", "Oak"), counts, strict=True)
        rows = [f"{place},{n},{2 * n}\n" for place, n in places]
        text += f"{group},,\nCoast,,\n{''.join(rows[:2])}Hills,,\n{''.join(rows[1:])}"
    cells = sheet_cells(tmp_path, text)
    assert {*cells["sex"]} == {"MEN", "WOMEN", "all"}


@pytest.mark.parametrize("last", ["Men", "Staff"])
def test_words_written_as_one_are_parted_at_sexes(tmp_path, last):
    heads = [
        f"{group}{word}" for group in ("Primary", "Upper") for word in ("Total", "Women", last)
    ]
    rows = [(30 + k, 17 + k, 13, 44 + 2 * k, 20 + k, 24 + k) for k in range(3)]
    text = f"Place,{','.join(heads)}\n"
    text += "".join(f"Town {'abc'[k]},{','.join(map(str, row))}\n" for k, row in enumerate(rows))
    cells = sheet_cells(tmp_path, text)
    assert ("sex" in cells) == (last == "Men")
    if last == "Men":
        assert {*cells["sex"]} == {"all", "Women", "Men"}


def test_labels_that_all_begin_with_total_have_one_that_counts_all(tmp_path):
    text = "Place,Total cats,Total dogs,TOTAL\nAsh,246,288,534\nElm,74,82,156\nOak,51,52,103\n"
    assert {*sheet_cells(tmp_path, text)["category 1"]} == {"Total cats", "Total dogs", "all"}


@pytest.mark.parametrize("last", ["Series ID", "Remarks"])
def test_names_of_series_stand_above_facts_about_them(tmp_path, last):
    groups = [(s, a) for s in ("Men", "Women", "Persons") for a in ("0", "1", "2 and over")]
    lines = ["," + ",".join(f"Residents ;  {s} ;  {a} ;" for s, a in groups)]
    lines += [f"Unit{',Persons' * 9}", f"Frequency{',Annual' * 9}"]
    lines.append(f"{last}," + ",".join(f"X{k}" for k in range(9)))
    for year in (2019, 2020, 2021):
        men, women = ([year % 100 + s + 5 * k for k in range(3)] for s in (11, 30))
        both = [a + b for a, b in zip(men, women, strict=True)]
        lines.append(f"{year}-06-01," + ",".join(map(str, men + women + both)))
    text = "\n".join(lines) + "\n"
    if last == "Remarks":
        with pytest.raises(DataError):
            read([sheet_of(tmp_path, text)], {}).accepted().confirmed()
        return
    cells = sheet_cells(tmp_path, text)
    assert {*cells["sex"]} == {"Men", "Women", "all"}
    assert {*cells["age"]} == {"0", "1", "2 and over"}


def test_headings_of_blocks_may_be_words_that_results_have(tmp_path):
    """*Number* above all counts is no variable, and *Status* is called otherwise."""
    file = tmp_path / "t.csv"
    ages = [("10-17", 29, 1, 29), ("18-20", 22, 22, 4), ("21-24", 6, 7, 38), ("25+", 15, 24, 40)]
    rows = [f"{age},{','.join(map(str, n))},{','.join(f'{100 * k // sum(n)}' for k in n)}"
            for age, *n in ages]  # fmt: skip
    heads = ",Number,,,Percentage,,\nAge,Custody,Order,Fine,Custody,Order,Fine\n"
    file.write_text(heads + "\n".join(rows) + "\n", encoding="utf-8")
    reading = TableReading.read(file)
    assert {*reading.cells["category 1"]} == {"Custody", "Order", "Fine"}
    assert {*reading.cells["stated"]} == {str(k) for _, *n in ages for k in n}
    rows = [f"{area},{a + b},{a},{b},{a - 1},{b + 1}" for area, a, b, _ in ages]
    heads = "Area,Total,Sex,,Status,\n,,Male,Female,Active,Closed\n"
    file.write_text(heads + "\n".join(rows) + "\n", encoding="utf-8")
    assert {*TableReading.read(file).cells["status label"]} == {"Active", "Closed", "all"}


@pytest.mark.parametrize("last", ["Total F,M,Total", "Total F,Total M,Total", "Total: F,M,Total"])
def test_a_total_beside_a_label_of_the_second_level_counts_all_of_the_first(last, tmp_path):
    """Of one level it is a label: there is nothing below it."""
    rows = "".join(
        f"{area},{a},{b},{c},{d},{a + c},{b + d},{a + b + c + d}\n"
        for area, a, b, c, d in zip(
            AREAS, (4, 9, 2, 7), (3, 8, 1, 5), (6, 0, 3, 2), (1, 4, 4, 9), strict=True
        )
    )
    heads = f"Pond,carp!!F,carp!!M,trout!!F,trout!!M,{last}\n"
    cells = read([sheet_of(tmp_path, heads + rows)], {}).cells
    assert {*cells["sex"]} == {"F", "M", "all"}
    one = cells[(cells["stated"] == "10") & (cells["row"] == 2)]
    assert [*one["sex"]] == ["F"]
