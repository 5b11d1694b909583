"""Forms of offices, each with a known truth: whatever is accepted, nothing false is stated."""

import numpy as np
import openpyxl
import pandas as pd
import pytest
from random_layouts import Layout
from true_statements import Statements

from bayesrisk import PublishedTables, TableReading
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.reconstruction import count_bounds
from bayesrisk.tables.reading.reading import read
from bayesrisk.tables.sheets.sheet import file_sheet

REGIONS, SEXES, AGES = (
    ("Nordia", "Sudland", "Ostmark"),
    ("Male", "Female"),
    ("0-17", "18-64", "65+"),
)
TRUTH = np.array([[[2, 6, 9], [4, 3, 8]], [[7, 5, 1], [6, 0, 11]], [[1, 12, 5], [9, 4, 3]]])
ALL = slice(None)
MARKS = (
    "/", ".", "–", "·", "#", "(D)", "S", ":c", "z", "~", "[z]", "…", "≤4", "k.A.", "n.d.",
    "Fewer than 5", "less than 5", "**", "^", "nd", "weniger als 5", "moins de 5", "menos de 5",
    "meno di 5", "minder dan 5", "1 bis 4", "1 à 4", "< 5", "-", "(s)", "conf", "SUPP", "<=4",
    "0-4", "1 - 4", "b", "M", "$", "•", "not shown", "Below 5", "5 or fewer",
)  # fmt: skip
#: How offices write thousands, with a total and headings of both sexes.
FORMATS = {
    "de": (".", "Insgesamt", "männlich", "weiblich"), "ch": ("'", "Totale", "Maschi", "Femmine"),
    "fr": ("\u202f", "Ensemble", "Hommes", "Femmes"), "es": (" ", "Total", "Hombres", "Mujeres"),
    "pt": ("\u00a0", "Total geral", "Homens", "Mulheres"),
    "nl": (",", "Totaal", "Mannen", "Vrouwen"),
}  # fmt: skip
GROUPS = {
    "nested": {"0-17": [0], "0-64": [0, 1], "18-64": [1], "18+": [1, 2], "65+": [2],
               "All ages": ALL},
    "german": {"unter 18": [0], "18 bis unter 65": [1], "65 und mehr": [2], "Insgesamt": ALL},
    "french": {"moins de 18 ans": [0], "18 à 64 ans": [1], "65 ans et plus": [2],
               "moins de 65 ans": [0, 1], "Ensemble": ALL},
    "spanish": {"Menores de 18": [0], "18 a 64 años": [1], "65 y más años": [2], "Total": ALL},
    "cumulative": {"At least one": [0, 1], "Fully": [1], "None": [2]},
    "of which": {"Persons": ALL, "of which children": [0], "of which pensioners": [2]},
    "subtotal": {"Children": [0], "Adults": [1], "Sub-total": [0, 1], "Pensioners": [2],
                 "All": ALL},
    "others": {"Children": [0], "Adults": [1], "Total": ALL},
    "nonsense": {"0-17": [0], "18-64": [1], "65+": [2], "Zzz": ALL},
}  # fmt: skip


def check(tmp_path, text, truth, who):
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8")
    names = ["region", "sex", "age"][: truth.ndim]
    sizes = truth.shape
    sets = [{x: frozenset(np.arange(n)[c].ravel().tolist()) for x, c in labels.items()}
            for labels, n in zip(who, sizes, strict=True)]  # fmt: skip
    layout = Layout(truth, names, sets, {}, "exact", {"t.csv": text})
    Statements(layout, read([file_sheet(file)], {})).check_all()


def labels(names, **more):
    return {name: [i] for i, name in enumerate(names)} | more


@pytest.mark.parametrize("mark", MARKS)
def test_marks_of_offices(mark, tmp_path):
    def shown(count):
        return mark if 1 <= count <= 4 else count

    rows = ["Region,Age,Male,Female,Total"]
    for r, region in enumerate(REGIONS):
        for age, a in [*zip(AGES, range(3), strict=True), ("Total", ALL)]:
            men, women = (int(TRUTH[r, s, a].sum()) for s in (0, 1))
            rows.append(f"{region},{age},{shown(men)},{shown(women)},{men + women}")
    who = (labels(REGIONS), labels(SEXES, Total=ALL), labels(AGES, Total=ALL))
    check(tmp_path, "\n".join(rows) + "\n", TRUTH, who)


@pytest.mark.parametrize("office", FORMATS)
@pytest.mark.parametrize("hidden", [False, True])
def test_thousands_of_offices(office, hidden, tmp_path):
    mark, total, male, female = FORMATS[office]
    truth = TRUTH.sum(axis=2) * 397

    def shown(count):
        return f"{count:,}".replace(",", mark)

    rows = [f"Land;{male};{female};{total};Anteil %"]
    for r, region in enumerate(REGIONS):
        both = ["x", "x"] if hidden and not r else [shown(n) for n in truth[r]]
        rows.append(";".join([region, *both, shown(truth[r].sum()), f"{50 + r},{r + 1}"]))
    ends = [*truth.sum(axis=0), truth.sum()]
    rows.append(";".join([total, *map(shown, ends), "100,0"]))
    who = (labels(REGIONS) | {total: ALL}, {male: [0], female: [1], total: ALL})
    check(tmp_path, "\n".join(rows) + "\n", truth, who)


@pytest.mark.parametrize("kind", GROUPS)
def test_groups_of_offices(kind, tmp_path):
    rows = ["Region;Group;Male;Female"]
    for r, region in enumerate(REGIONS):
        for group, codes in GROUPS[kind].items():
            counts = [int(TRUTH[r, s][codes].sum()) for s in (0, 1)]
            texts = [":c" if 1 <= n <= 4 else str(n) for n in counts]
            rows.append(";".join([region, group, *texts]))
    check(tmp_path, "\n".join(rows) + "\n", TRUTH, (labels(REGIONS), labels(SEXES), GROUPS[kind]))


FIRST = "Area,Men,Women,Total\nNorth,3,4,7\nSouth,5,*,9\nTotal,8,8,16\n"
SCHOOLS = "School,Boys,Girls,All\nElm,1,2,3\nOak,2,*,6\nAll,3,6,9\n"
CROSSED = ",Old,,New,\nSchool,In,Out,In,Out\nElm,1,2,3,4\nOak,2,3,5,6\n"
YEARS = "Area,2019,2020\nNorth,3,4\nSouth,5,6\n"
STACKED = {
    "an empty row": (FIRST, "\n", SCHOOLS),
    "a title": (FIRST, "\nTable 2: by school\n\n", SCHOOLS),
    "nothing": (FIRST, "", SCHOOLS),
    "the same headings, and a title": (FIRST, "\n2020\n", FIRST.replace("North,3", "North,4")),
    "another name of the labels": (FIRST, "\n", FIRST.replace("Area", "Share").replace("8", "9")),
    "one column": (FIRST, "\n", "Age,Number\n0-17,1\n18+,*\nAll,9\n"),
    "years": (YEARS, "\n", YEARS.replace("Area", "School")),
    "two rows of headings": (FIRST, "\n", CROSSED),
}  # fmt: skip


@pytest.mark.parametrize("case", STACKED)
def test_of_stacked_tables_the_first_is_read_and_another_may_be(case, tmp_path):
    first, between, second = STACKED[case]
    for name, text in (("both", first + between + second), ("a", first), ("b", second)):
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    both, a, b = (tmp_path / f"{name}.csv" for name in ("both", "a", "b"))
    sheet = file_sheet(both)
    assert (sheet.heads, sheet.rows) == (file_sheet(a).heads, file_sheet(a).rows)
    start = (first + between).count("\n") + 1
    left = {row: why for row, _, why in sheet.left}
    assert any("#2" in why and row <= start for row, why in left.items())
    other = file_sheet(both, "#2")
    assert other.heads == file_sheet(b).heads
    assert [row for _, row in other.rows] == [row for _, row in file_sheet(b).rows]
    assert other.rows[0][0] == file_sheet(b).rows[0][0] + start - 1
    with pytest.raises(ArgumentError, match="#3"):
        file_sheet(both, "#3")


@pytest.mark.parametrize(
    "text",
    [
        FIRST.replace("South", "Area,Men,Women,Total\nSouth"),  # the headings again, of a page
        FIRST.replace("South", "\nTable 1 (continued)\nArea,Men,Women,Total\nSouth"),
        FIRST.replace("South", "East,closed,closed,closed\nSouth"),
        FIRST + "\nLegend\nE,use with care\nF,too few to be shown\n",
    ],
)
def test_a_table_that_goes_on_is_one(text, tmp_path):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    sheet = file_sheet(tmp_path / "t.csv")
    assert {"North", "South", "Total"} <= {row[0] for _, row in sheet.rows}
    assert not any("#2" in why for _, _, why in sheet.left)


def test_a_table_of_a_workbook_sheet_is_named_with_it(tmp_path):
    book = openpyxl.Workbook()
    book.active.title = "One"
    for line in (FIRST + "\n" + SCHOOLS).splitlines():
        book.active.append([int(t) if t.isdecimal() else t for t in line.split(",")])
    book.save(tmp_path / "t.xlsx")
    assert file_sheet(tmp_path / "t.xlsx").rows[0][1][0] == "North"
    assert file_sheet(tmp_path / "t.xlsx", "One#2").rows[0][1][0] == "Elm"
    assert "sheet 'One#2'" in file_sheet(tmp_path / "t.xlsx", "#2").part


def test_a_row_of_a_unit_is_no_count_and_years_are_written_whole(tmp_path):
    text = "Area,2019.0,2020.0\n,Persons,\nNorth,3,4\nSouth,5,6\n"
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    sheet = file_sheet(tmp_path / "t.csv")
    assert sheet.heads == ["Area", "2019", "2020"]
    assert [row for _, row in sheet.rows] == [["North", "3", "4"], ["South", "5", "6"]]
    assert (2, "Persons", "what is counted") in sheet.left


def test_years_stand_below_what_is_counted(tmp_path):
    text = "Place,,People,People\nLevel,Name,1981,2020\nCity,Ash,3,4\nCity,Elm,5,6\nTown,Oak,5,9\n"
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    sheet = file_sheet(tmp_path / "t.csv")
    assert sheet.heads == ["Level", "Name", "1981", "2020"]
    assert [row[1] for _, row in sheet.rows] == ["Ash", "Elm", "Oak"]


def test_marks_after_an_empty_row_explain_symbols(tmp_path):
    text = "Area,2019,2020\nNorth,3,4\nSouth,5,6\n\nNumber of people\nx,not there,half a unit\n"
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    assert [row[0] for _, row in file_sheet(tmp_path / "t.csv").rows] == ["North", "South"]


def test_numbers_of_footnotes_are_no_counts(tmp_path):
    notes = "".join(f"{i},Footnote {i} says that counts are what they are.,\n" for i in range(1, 9))
    text = f"Area,Kind,n\nNorth,a,3\n,b,7\nSouth,a,5\n,b,6\n,,\nFootnotes:,,\n{notes}"
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    sheet = file_sheet(tmp_path / "t.csv")
    assert [row[2] for _, row in sheet.rows] == ["3", "7", "5", "6"]
    assert len(sheet.left) == 9


def test_estimates_that_are_too_unreliable_to_be_published_are_refused(tmp_path):
    notes = "E,use with caution\nF,too unreliable to be published\n"
    (tmp_path / "t.csv").write_text(f"Area,n\nNorth,300E\nSouth,F\nWest,71\n\n{notes}")
    with pytest.raises(DataError, match="survey"):
        read([file_sheet(tmp_path / "t.csv")], {})
    said = read([file_sheet(tmp_path / "t.csv")], {"columns": {"n": "count"}})
    assert {*said.cells["stated"]} == {"300E", "F", "71"}


@pytest.mark.parametrize("indent", ["", "  "])
@pytest.mark.parametrize("total", [True, False])
@pytest.mark.parametrize("gap", ["", ",,\n"])
def test_sections_whose_labels_make_up_one_total_are_variables(tmp_path, indent, total, gap):
    """*Sex* above *Male* and *Female*, *Age* above three groups: one withheld count follows."""
    rows = ["Sex,,", "Male,600,650", "Female,631,*", "Age,,", "0-17,217,220", "18-64,904,980",
            "65+,110,100", "Work,,", "At work,800,900", "At home,100,150"]  # fmt: skip
    lines = [row if row.endswith(",,") else indent + row for row in rows]
    text = "Table 2\n\nCharacteristic,2019,2020\n" + "Total,1231,1300\n" * total
    text += "".join(gap * row.endswith(",,") + row + "\n" for row in lines)
    file = tmp_path / "t.csv"
    file.write_text(text)
    said = TableReading.read(file, counts="exact").accepted()
    labels = {n: {*said.cells[n]} - {"all", "Total"} for n in ("sex", "age", "work")}
    assert labels == {
        "sex": {"Male", "Female"},
        "age": {"0-17", "18-64", "65+"},
        "work": {"At work", "At home"},
    }
    if total:
        bounds = count_bounds(PublishedTables(*said.parts)).counts
        hidden = said.cells.query("stated == '*'").merge(
            bounds.rename(columns={"geoid": "place"}), on=["place", "table", "cell"]
        )
        assert hidden[["low", "high"]].to_numpy().tolist() == [[650, 650]]


def test_sections_whose_labels_make_up_other_totals_are_labels(tmp_path):
    text = "Ward,n,m\nTotal,90,80\nNorth,,\n  Ash,30,20\n  Elm,20,25\n"
    text += "South,,\n  Fir,10,5\n  Oak,30,30\n"
    file = tmp_path / "t.csv"
    file.write_text(text)
    said = TableReading.read(file, counts="exact").accepted()
    assert {"north", "south"}.isdisjoint(said.cells.columns)
    assert "North" in {*said.cells["section"]} or any("North" in x for x in said.cells["section"])


@pytest.mark.parametrize("labels", [("0-17", "18+"), ("Ash", "Elm", "Total")])
def test_the_same_section_below_each_of_two_is_of_both(labels, tmp_path):
    """North, with *Wards* and its rows below it, and South with as many."""
    counts = {"North": [5, 7, 12], "South": [9, 8, 17]}
    text = "Item,n\n"
    for name, numbers in counts.items():
        rows = zip(labels, numbers, strict=False)
        text += f"{name},\nGroup,\n" + "".join(f"{x},{n}\n" for x, n in rows)
    (tmp_path / "t.csv").write_text(text)
    cells = TableReading.read(tmp_path / "t.csv", counts="exact").cells
    whole = cells.astype(str).agg(" ".join, axis=1)
    for name, numbers in counts.items():
        mine = cells["stated"][whole.str.contains(name)].astype(int)
        assert sorted(mine) == sorted(numbers[: len(labels)])
    assert len(cells) == 2 * len(labels)


UNDERSCORES = {
    "2012년_거주자_총인구수": (2012, "all", "all"), "2012년_거주자_0~9세": (2012, "all", 0),
    "2012년_거주자_10세이상": (2012, "all", 1), "2012년_남_거주자_총인구수": (2012, "m", "all"),
    "2012년_남_거주자_0~9세": (2012, "m", 0), "2012년_남_거주자_10세이상": (2012, "m", 1),
    "2012년_여_거주자_총인구수": (2012, "f", "all"), "2012년_여_거주자_0~9세": (2012, "f", 0),
    "2012년_여_거주자_10세이상": (2012, "f", 1),
}  # fmt: skip


@pytest.mark.parametrize("years", [("2012",), ("2012", "2013")])
def test_headings_with_underscores_are_of_sexes_ages_and_years(tmp_path, years):
    """Who is of no sex in a heading is of both: 30 in all, of whom 10 + 4 are male."""
    counts = {("m", 0): 10, ("m", 1): 4, ("f", 0): 7, ("f", 1): 9}
    totals = {"m": 14, "f": 16, "all": 30, 0: 17, 1: 13}
    heads = [head.replace("2012", year) for year in years for head in UNDERSCORES]
    numbers = [
        counts.get((sex, age)) or (totals[sex] if age == "all" else totals[age])
        for _, sex, age in UNDERSCORES.values()
    ] * len(years)  # fmt: skip
    rows = [[place, *(n * k for n in numbers)] for k, place in ((1, "Gam"), (2, "Nam"), (4, "Dol"))]
    text = "".join(f"{','.join(map(str, row))}\n" for row in [["place", *heads], *rows])
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    cells = TableReading.read(tmp_path / "t.csv").cells
    assert {*cells["sex"]} == {"남", "여", "all"}
    assert {*cells["age"]} == {"0~9세", "10세이상", "all"}
    assert ("year" in cells) == (len(years) > 1)
    found = cells[(cells["place label"] == "Dol") & (cells["sex"] == "남")]
    assert {*found.loc[found["age"] == "all", "stated"]} == {"56"}


@pytest.mark.parametrize("heads", ["new_a,total_a,new_b,total_b", "m_a_4,f_a_4,m_b_9,f_b_9"])
def test_headings_with_underscores_of_unknown_kinds_are_names(tmp_path, heads):
    (tmp_path / "t.csv").write_text(f"place,{heads}\nAsh,3,5,8,2\nElm,4,1,7,9\n", encoding="utf-8")
    cells = TableReading.read(tmp_path / "t.csv").cells
    assert {*heads.split(",")} == {*cells["category 1"]}


@pytest.mark.parametrize("unknown", [0, 3])
def test_a_total_of_totals_counts_all_below_it_although_its_heading_was_merged(tmp_path, unknown):
    """Three people of no stated sex are in the total of Elm alone: sums of both sexes miss it."""
    counts = {"Ash": (4, 9, 6, 2), "Elm": (7, 3, 5, 8), "Oak": (1, 6, 9, 9), "Yew": (12, 5, 3, 6)}
    text = "Place,Male,Male,Male,Female,Female,Female,Total,Total,Total\n"
    text += f",{','.join(['National,Foreign,Total'] * 3)}\n"
    for place, (a, b, c, d) in counts.items():
        rest = unknown if place == "Elm" else 0
        row = (a, b, a + b, c, d, c + d, a + c, b + d, a + b + c + d + rest)
        text += f"{place},{','.join(map(str, row))}\n"
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    reading = TableReading.read(tmp_path / "t.csv", counts="exact")  # which is asked before
    assert ("totals.sex" in reading.questions) == bool(unknown)
    if unknown:
        guess, question = reading.questions["totals.sex"]
        assert guess == "partial"
        assert "in 1 of 12 groups" in question


def test_ages_with_underscores_are_whole(tmp_path):
    text = "cause,Celkem,Y_LT15,Y15-64,Y_GE65\nBites,26,9,11,6\nCuts,18,7,5,6\n"
    (tmp_path / "t.csv").write_text(text)
    cells = TableReading.read(tmp_path / "t.csv").cells
    assert {*cells["age"]} == {"all", "Y_LT15", "Y15-64", "Y_GE65"}
    assert "category 1" not in cells


@pytest.mark.parametrize("month", ["2024.06", "2024M06"])
def test_months_beside_years_in_headings_are_of_one_variable(tmp_path, month):
    text = f"Place,{month},{month},2023,2023\nPlace,Total,0-17,Total,0-17\n"
    text += "Ash,30,10,28,12\nElm,21,6,24,5\nOak,9,4,7,2\n"
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    reading = TableReading.read(tmp_path / "t.csv")
    assert {*reading.cells["year"]} == {month, "2023"}


def test_ages_with_underscores_stay_whole_beside_a_total_in_any_words(tmp_path):
    file = tmp_path / "t.csv"
    text = "industry,Y_LT15,Y_GE65,Y15-64,Alles\nMaking,4,7,2,13\nSteel,2,4,1,7\nFood,9,3,8,20\n"
    file.write_text(text, encoding="utf-8")
    reading = read([file_sheet(file)], {})
    assert {*reading.cells["category 1"]} == {"Y_LT15", "Y_GE65", "Y15-64", "all"}


@pytest.mark.parametrize("blank", ["first years", "one year between", "one row stated"])
def test_blanks_of_ages_that_whole_years_do_not_have_are_no_hidden_counts(blank, tmp_path):
    """Ages end at 95 in the first years of a table, which stand beside those that end at 96."""
    text = "year,sex,Total,0-94,95,96\n"
    for year in range(2001, 2006):
        for sex, k in (("F", 9), ("M", 4)):
            last = (20 + k, str(year % 7 + k))
            none = year < 2004 if blank != "one year between" else year == 2003
            if none and not (blank == "one row stated" and (year, sex) == (2001, "M")):
                last = (20 + k + year % 7 + k, "")
            text += f"{year},{sex},{year % 7 + 120 + 2 * k},{100},{last[0]},{last[1]}\n"
    (tmp_path / "t.csv").write_text(text)
    reading = TableReading.read(tmp_path / "t.csv")
    assert ("marks." in reading.questions) == (blank != "first years")
    ages = [{*c["category 1"]} for _, c in reading.cells.groupby("year")]
    assert ["96" in one for one in ages] == (
        [False] * 3 + [True] * 2 if blank == "first years" else [True] * 5
    )


def test_ages_may_end_later_twice(tmp_path):
    text = "year,sex,Total,0-84,85-89,90-94,95+\n"
    for year in range(2001, 2008):
        for sex, k in (("F", 9), ("M", 4)):
            parts = [100 + k * year % 17, 20 + k, 7 + year % 5, 3 + year % 4]
            ends = 2 + (year > 2002) + (year > 2004)
            texts = [*map(str, parts[:ends]), *[""] * (4 - ends)]
            text += f"{year},{sex},{sum(parts[:ends])},{','.join(texts)}\n"
    (tmp_path / "t.csv").write_text(text)
    reading = TableReading.read(tmp_path / "t.csv")
    assert "marks." not in reading.questions
    assert not (reading.cells["stated"] == "").any()


@pytest.mark.parametrize("most", [3, 4])
def test_1_and_2_become_3_only_where_3_stands_more_often_than_4(most):
    counts = [*[3, 4, *[most] * 2], *range(5, 25)]
    frame = pd.DataFrame({"area": [f"a{k}" for k in range(len(counts))], "n": counts})
    counts_question = TableReading.from_frame(frame).questions["counts"]
    assert (counts_question[0] == "stats-nz") == (most == 3)


TWO_LANGUAGES = """Γεννήσεις,Θάνατοι,Γάμοι,
Births,Deaths,Marriages,
ALL FAITHS,,Όλες,
40,31,12,2001
44,35,17,(5)2002
39,28,15,2003
47,36,11,2004
"""


def test_headings_in_two_scripts_are_one_and_rows_in_both_are_of_sections(tmp_path):
    (tmp_path / "t.csv").write_text(TWO_LANGUAGES, encoding="utf-8")
    reading = TableReading.read(tmp_path / "t.csv")
    assert {*reading.cells["year"]} == {"2001", "2002", "2003", "2004"}
    assert {*reading.cells["category 1"]} == {
        "Γεννήσεις Births", "Θάνατοι Deaths", "Γάμοι Marriages"
    }  # fmt: skip
    assert any("row 3 'ALL FAITHS' (the same of all rows)" in line for line in reading.lines)


def test_headings_in_two_scripts_that_cross_are_two_variables(tmp_path):
    text = "Year,Births,Births,Deaths,Deaths\n,Πόλη,Χωριά,Πόλη,Χωριά\n"
    text += "2001,40,31,12,22\n2002,44,35,17,19\n2003,39,28,15,25\n"
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    cells = TableReading.read(tmp_path / "t.csv").cells
    assert {*cells["category 1"]} == {"Births", "Deaths"}
    assert {*cells["category 2"]} == {"Πόλη", "Χωριά"}


@pytest.mark.parametrize("row", ["ALL FAITHS,,Alle,", "ALL FAITHS,Όλες,,"])
def test_rows_of_two_texts_in_one_script_or_side_by_side_are_of_no_section(row, tmp_path):
    text = TWO_LANGUAGES.replace("ALL FAITHS,,Όλες,", row)
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    reading = TableReading.read(tmp_path / "t.csv")
    assert not any("the same of all rows" in line for line in reading.lines)


def of_two_forms(letter="F", *, more=0):
    """Return a table with ages of 5 to 17, or those of 5 to 11 and 12 to 17, in each row."""
    ages = ("0-4", "5-11", "5-17", "12-17", "18+")
    heads = [f"{word} {x}" for word in ("Female", "Male") for x in ages]
    for place, (sex, short) in ((5, ("F", letter)), (12, ("M", "M"))):
        heads[place:place] = [f"{short}: Unknown", f"{short}: Total"]
        assert heads[place - 1].startswith("Female" if sex == "F" else "Male")
    text = f"place,{','.join(heads)}\n"
    for k in range(12):
        row = [f"Camp {k}"]
        for s in (3, 11):
            a, b, c, d = k * 7 % 11 + s, k * 5 % 13 + s, k * 3 % 17 + 2, 20 + k * s
            u = (k * k + s) * 7 % 13
            middle = [str(b), "", str(c)] if k % 2 else ["", str(b + c), ""]
            row += [str(a), *middle, str(d), str(u), str(a + b + c + d + u + more * (k % 4))]
        text += ",".join(row) + "\n"
    return text


@pytest.mark.parametrize("more", [0, 1])
def test_a_letter_for_a_sex_is_the_word_that_other_headings_have(more, tmp_path):
    (tmp_path / "t.csv").write_text(of_two_forms(more=more))
    reading = TableReading.read(tmp_path / "t.csv")
    assert {*reading.cells["sex"]} == {"Female", "Male"}
    age = next(line for line in reading.lines if line.startswith("  age: "))
    assert age.startswith("  age: 0-4, 5-11, 12-17, 18+, Unknown")
    assert ("(the sums hold in 12 groups)" in age) == (not more)
    assert (reading.questions["totals.age"][0] == "complete") == (not more)
    if not more:
        tables = PublishedTables(*reading.accepted().parts)
        found = count_bounds(tables)
        assert not found.conflict
        rows = reading.cells.merge(found.counts.rename(columns={"geoid": "place"}))
        blank = rows[(rows["stated"] == "") & (rows["age"] == "5-17")]
        assert len(blank) == 12
        assert (blank["low"] == blank["high"]).all()


def test_a_letter_that_is_no_sex_stays_as_it_is(tmp_path):
    (tmp_path / "t.csv").write_text(of_two_forms("P"))
    reading = TableReading.read(tmp_path / "t.csv")
    assert not any("the sums hold" in line for line in reading.lines)


def test_an_empty_heading_beside_sexes_is_told_apart(tmp_path):
    (tmp_path / "t.csv").write_text("place,Male 0-17,,Female 0-17\nAsh,30,13,28\nElm,21,6,24\n")
    cells = TableReading.read(tmp_path / "t.csv").cells
    assert {*cells["category 1"]} == {"Male 0-17", "", "Female 0-17"}


def test_a_unit_beside_a_title_is_no_row_of_headings(tmp_path):
    file = tmp_path / "t.csv"
    for unit, read_unit in (("Unit: persons", True), ("United kingdom", False)):
        file.write_text(f"Deaths,,,\n,by day,,{unit}\narea,0-17,18+,Total\nAsh,3,7,10\nElm,2,6,8\n")
        left = [reason for _, _, reason in file_sheet(file).left]
        assert ("what is counted" in left) == read_unit


@pytest.mark.parametrize("means", [1, 3])
def test_rows_below_a_mean_are_not_lost_with_it(means, tmp_path):
    """Labels are those above, but for a mean above counts; means of several rows are left out."""
    rows = ["All,All,52,48,61", "Mean of five years,Young,20.4,19.5,22.1"]
    rows += [",Mid,9.5,8.1,7.2", ",Old,11.25,8.5,9.5"] if means > 1 else []
    rows += [",Young,20,19,22", ",Mid,32,29,39"] if means == 1 else []
    rows += ["North,Young,11,9,12", ",Mid,14,15,19", "South,Young,9,10,10", ",Mid,18,14,20"]
    file = tmp_path / "t.csv"
    file.write_text("Area,Age,2011,2012,2013\n" + "\n".join(rows) + "\n", encoding="utf-8")
    reading = TableReading.read(file, blank="above")
    size = {1: 7, 3: 5}[means]
    assert len(reading.cells[reading.cells["row"] > 0]) == 3 * size
    assert "20.4" not in {*reading.cells["stated"]}
