"""Notes around a table say the law of its counts and marks, unless the numbers speak against it."""

import pandas as pd
import pytest

from bayesrisk.exceptions import DataError
from bayesrisk.reconstruction import count_bounds
from bayesrisk.tables import PublishedTables
from bayesrisk.tables.reading.reading import TableReading

BELOW_FIVE = [
    "Counts below 5 are suppressed.",
    "Values fewer than 5 have been withheld",
    "Note: cells with less than five people are not shown",
    "Numbers of 4 or fewer are suppressed to protect confidentiality.",
    "* = fewer than 5",
    "* represents a count of less than 5",
    "'*' indicates numbers under 5",
    "Figures smaller than 5 are replaced by an asterisk.",
    "Small numbers (<5) are suppressed",
    "Suppression: counts <= 4 are masked.",
]
ONE_TO_FOUR = [
    "Counts between 1 and 4 are suppressed",
    "* = 1 to 4",
    "*, 1-4",
    "Counts of 1, 2, 3 or 4 are withheld",
    "* denotes between one and four patients",
    "* = Numbers greater than zero but less than five",
    "Method, * = counts more than 0 and fewer than 5",
    "Data with counts from 1 to 4 are suppressed for privacy",
]
ANY = [
    "* = suppressed",
    "*: confidential",
    "* .. not available for publication, but included in totals",
    "Rates based on counts below 5 are suppressed",
    "Percentages may not add up. Source: records below 5 km",
    "Counts below 5 are suppressed; others are suppressed so that these cannot be derived",
    "Secondary suppression was applied. Counts below 5 are suppressed.",
    "Counts below 5 are in 12 of 30 places",
]
NO_COUNT = [
    "* .. not available",
    "*, not applicable",
    "* not available for a specific reference period",
    "Legend: * not yet published",
    "* = no data",
]
TABLE = "area,Men,Women,Total\nAsh,*,12,15\nElm,*,*,*\nOak,0,6,6\n"


def guess(tmp_path, note, table=TABLE, name="marks.*"):
    file = tmp_path / "t.csv"
    file.write_text(f'{table}\n"{note}"\n', encoding="utf-8")
    return TableReading.read(file).questions.get(name)


@pytest.mark.parametrize(
    ("note", "law"),
    [(n, "0-4") for n in BELOW_FIVE]
    + [(n, "1-4") for n in ONE_TO_FOUR]
    + [(n, "withheld") for n in ANY]
    + [(n, "missing") for n in NO_COUNT],
)
def test_a_note_says_what_is_withheld(note, law, tmp_path):
    found, text = guess(tmp_path, note)
    assert found == law
    assert ("row 6" in text) == (law != "withheld" or note.startswith("*"))


@pytest.mark.parametrize(
    "table",
    [
        TABLE.replace("*,12,15", "*,12,17"),  # the one that is withheld is 5
        TABLE.replace("0,6,6", "3,6,9"),  # one of 3 is shown
        TABLE.replace("0,6,6", "*,6,6\nFir,1,2,3"),
    ],
)
def test_numbers_speak_against_a_note(table, tmp_path):
    assert guess(tmp_path, "Counts below 5 are suppressed", table)[0] == "withheld"


def test_a_note_that_is_not_of_all_marks_says_nothing_of_others(tmp_path):
    table = TABLE.replace("*,*,*", "*,c,*")
    note = "* = below 5"
    assert guess(tmp_path, note, table)[0] == "0-4"
    assert guess(tmp_path, note, table, "marks.c")[0] == "withheld"
    assert guess(tmp_path, "Counts below 5 are suppressed", table)[0] == "withheld"


LEGEND = """area;Men;Women;Children
Ash;x;12;-
Elm;19;..;14
Oak;17;z;16

Legend
x;fewer than 10
-;nil
..;not available
z;not applicable
"""


def test_a_legend_explains_marks(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(LEGEND, encoding="utf-8")
    questions = TableReading.read(file).questions
    marks = {mark: questions[f"marks.{mark}"][0] for mark in ("x", "-", "..", "z")}
    assert marks == {"x": "0-9", "-": "0", "..": "missing", "z": "missing"}
    assert "row 7" in questions["marks.x"][1]


def test_a_cell_without_a_count_is_left_out_and_no_claim_is_made_of_it(tmp_path):
    table = "cause,2019,2020,2021\nTotal,90,86,97\nAlpha,41,30,38\nBeta,49,21,33\nGamma,..,35,26\n"
    for legend, stated in ((".., not available for the period", 11), (".., suppressed", 12)):
        file = tmp_path / "t.csv"
        file.write_text(f'{table}\n"{legend}"\n', encoding="utf-8")
        reading = TableReading.read(file)
        assert len(reading.cells) == stated
        assert (".." in {*reading.cells["stated"]}) == (stated == 12)
        assert "Gamma" in {*reading.cells["cause"]}
    file.write_text("cause,Men,Women\nAlpha,..,..\nBeta,..,..\n", encoding="utf-8")
    with pytest.raises(DataError, match="none but those that are left out"):
        TableReading.read(file, marks={"..": "missing"})


PLAIN = "area,Men,Women,Total\nAsh,7,12,19\nElm,4,11,15\nOak,11,23,34\n"
ROUNDED = "area,Men,Women,Total\nAsh,5,10,20\nElm,25,30,50\n"


@pytest.mark.parametrize(
    ("note", "table", "law"),
    [
        ("Counts are rounded to the nearest 5.", ROUNDED, "nearest-5"),
        ("Figures have been rounded to the nearest multiple of five", ROUNDED, "nearest-5"),
        ("All other values are rounded to the closest multiple of 5", ROUNDED, "nearest-5"),
        ("All counts are randomly rounded to base 5", ROUNDED, "random-5"),
        ("Random rounding to multiples of 5 is applied", ROUNDED, "random-5"),
        ("Counts are randomly rounded to base 3", "sex,n\nM,3\nF,9\nTotal,12\n", "random-3"),
        ("Rounded to the nearest ten.", "sex,n\nM,20\nF,30\nTotal,50\n", "nearest-10"),
        # A sum is off by more than numbers of the nearest 5 are.
        ("Rounded to the nearest 5.", ROUNDED.replace("30,50", "30,70"), "random-5"),
        ("Rounded to the nearest 5.", ROUNDED.replace("30,50", "31,56"), "exact"),
        ("Rates are rounded to the nearest 5.", "sex,n\nM,15\nF,25\nTotal,40\n", "exact"),
    ],
)
def test_a_note_says_how_counts_are_rounded(note, table, law, tmp_path):
    assert guess(tmp_path, note, table, "counts")[0] == law


def test_a_column_of_notes_says_what_is_withheld():
    rows = [("Ash", "", "Counts between 1-9 are suppressed"), ("Elm", "17", ""), ("Oak", "0", "")]
    frame = pd.DataFrame(rows, columns=["area", "deaths", "Footnote"])
    said = TableReading.from_frame(frame).questions["marks."]
    assert said[0] == "1-9"
    assert "row 1 says" in said[1]


def read_text(tmp_path, text):
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8")
    return TableReading.read(file)


ROUNDED = (
    "Name,Owed,16-17,18+\nENGLAND,230,70,170\nNorth,41,10,31\nSouth,52,22,30\nEast,61,16,45\n"
    "West,83,20,63\n"
)


def test_a_note_on_rounding_is_of_the_labels_whose_counts_are_rounded(tmp_path):
    note = "Total figures are presented rounded to the nearest 10 households.,,,\n"
    reading = read_text(tmp_path, ROUNDED + note)
    laws = {n: guess for n, (guess, _) in reading.questions.items() if n.endswith(".counts")}
    assert laws == {"labels.name.ENGLAND.counts": "nearest-10"}
    tables = reading.cells.groupby("table")["stated"].agg(set)
    exact = {t for t, texts in tables.items() if texts & {"41", "52"}}
    assert not any({"230", "170"} & tables[t] for t in exact)  # true parts stand by themselves
    assert not read_text(tmp_path, ROUNDED).questions.keys() & laws.keys()


def test_a_note_on_rounding_that_no_label_shows_stands_in_the_guess(tmp_path):
    text = ROUNDED.replace("230,70,170", "234,68,169")
    reading = read_text(tmp_path, text + "All figures are rounded to the nearest 10.,,,\n")
    guess, reason = reading.questions["counts"]
    assert guess == "exact"
    assert "rounded to the nearest 10" in reason


@pytest.mark.parametrize(
    "note",
    [
        "Actual series are counts from a sample of records until 1997",
        "Numbers may contain sampling error.",
        "Results before the census were grossed up to all households.",
        "Figures marked (e) are estimated.",
        "Counts of Men are weighted.",
        "ESTIMACIONES Y PROYECCIONES DE POBLACIÓN",
    ],
)
def test_a_note_on_a_sample_stands_in_the_guess(note, tmp_path):
    _, reason = guess(tmp_path, note, PLAIN, "counts")
    assert f"row 6 says {note!r}" in reason


@pytest.mark.parametrize(
    "note",
    [
        "All figures are estimates based on a sample survey.",
        "Data are weighted.",
        "Note: the numbers in this table are grossed to population totals.",
        "Figures shown are derived from a 5% sample of households.",
    ],
)
def test_estimates_are_refused_by_a_note_on_all_counts(note, tmp_path):
    with pytest.raises(DataError, match="row 6 says"):
        guess(tmp_path, note, PLAIN, "counts")


@pytest.mark.parametrize(
    ("title", "heads", "said"),
    [
        ("Number of deaths", "Men,Women", False),
        ("Table 2", "Deaths of men,Deaths of women", False),
        ("Number of deaths", "Deaths,Population in age", True),
        ("Table 2", "Men,Women", True),
        ("Population", "Men,Women", True),
    ],
)
def test_estimates_of_a_population_are_none_of_its_deaths(title, heads, said, tmp_path):
    note = "Sources: Vital statistics and population estimates"
    rows = "Ash,7,12\nElm,4,11\nOak,11,23\n"
    _, reason = guess(tmp_path, note, f"{title}\n\narea,{heads}\n{rows}", "counts")
    assert (note in reason) == said
    other = "Figures marked (e) are estimated."
    assert other in guess(tmp_path, other, f"{title}\n\narea,{heads}\n{rows}", "counts")[1]


@pytest.mark.parametrize(
    "note",
    [
        "Rates are weighted by age.",
        "Counts are unweighted.",
        "Counts are not subject to sampling error.",
        "A blood sample of each patient was tested.",
        "Data are provisional.",
    ],
)
def test_notes_on_other_things_are_on_no_sample(note, tmp_path):
    _, reason = guess(tmp_path, note, PLAIN, "counts")
    assert "row 6" not in reason


def test_a_note_on_a_mark_is_of_no_shorter_mark(tmp_path):
    text = "area,Men,Women\nAsh,.,12\nElm,..,14\nOak,13,16\n.. = fewer than 5\n"
    reading = read_text(tmp_path, text)
    assert reading.questions["marks..."][0] == "0-4"
    assert reading.questions["marks.."][0] == "withheld"


@pytest.mark.parametrize(
    ("legend", "answer"),
    [
        ("Legend: – = 1 to 4", "1-4"),
        ("Key: '-' = counts under 5", "0-4"),
        ("A dash indicates a count from 1 to 4", "1-4"),
        ("Dashes represent counts below 5", "0-4"),
        ("Note: - indicates that the count is zero", "0"),
        ("Symbols: - nil; * suppressed", "0"),
        ("A dash (-) means suppressed", "withheld"),
    ],
)
@pytest.mark.parametrize("mark", ["-", "–"])
def test_legends_of_a_dash_say_what_it_stands_for(legend, answer, mark, tmp_path):
    count = 0 if answer == "0" else 3
    rows = [f"North,{mark},7,{7 + count}", "South,14,9,23", f"Total,{14 + count},16,{30 + count}"]
    file = tmp_path / "t.csv"
    file.write_text("\n".join(["region,Male,Female,Total", *rows, "", f'"{legend}"', ""]))
    reading = TableReading.read(file)
    guess, text = reading.questions[f"marks.{mark}"]
    assert guess == answer
    assert "row 6 says" in text


def test_estimates_may_be_named_inside_the_path_of_a_heading(tmp_path):
    file = tmp_path / "t.csv"
    text = ",All!!Estimate!!Men,All!!Estimate!!Women\nAsh,41,17\nElm,32,28\n"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="estimates of a survey"):
        TableReading.read(file)
    file.write_text(text.replace("Estimate", "Counted"), encoding="utf-8")
    assert len(TableReading.read(file).cells) == 4


def test_a_number_beside_its_standard_error_is_an_estimate(tmp_path):
    file = tmp_path / "t.csv"
    text = "field,staff_number,staff_se,posts_number\nArt,16350,400,212\nLaw,6900,325,75\n"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="estimates of a survey"):
        TableReading.read(file)
    file.write_text(text.replace("staff_se", "house_se"), encoding="utf-8")  # of something else
    assert {*TableReading.read(file).cells["stated"]} >= {"16350", "75"}


@pytest.mark.parametrize(
    ("heads", "refused"),
    [
        ("Workers!!Nombre,Workers!!IC ± (en %),Owners!!Nombre,Owners!!IC ± (en %)", True),
        ("Workers!!N,Workers!!95% CI lower,Owners!!N,Owners!!Confidence interval", True),
        ("Workers!!N,Workers!!95% CI,Workers!!Share,Owners!!N", True),
        ("Deaths!!N,Deaths!!Rate,Deaths!!95% CI,Births!!N", False),  # of the rate
        ("Workers!!N,Workers!!Icy,Owners!!N,Owners!!Cider", False),
    ],
)
def test_a_number_beside_its_interval_alone_is_an_estimate(heads, refused, tmp_path):
    file = tmp_path / "t.csv"
    rows = "\nAsh,16350,4,212,3\nLaw,6900,3,75,9\nOak,811,2,17,5\n"
    file.write_text(f"field,{heads}{rows}", encoding="utf-8")
    if refused:
        with pytest.raises(DataError, match="estimates of a survey"):
            TableReading.read(file)
    else:
        assert len(TableReading.read(file).cells) >= 3


@pytest.mark.parametrize(
    ("change", "guess"),
    [((), "0"), (("1,7", "0,7"), "withheld"), (("2,", "9,"), "withheld"),
     (("4,-", "*,-"), "withheld"), (("4,-", "..,-"), "0"),
     (("-,11", "-,11\nAll,15,33"), "withheld")],
)  # fmt: skip
def test_a_dash_beside_many_small_counts_is_nothing_where_no_zero_stands(change, guess, tmp_path):
    """A zero, few small counts, another mark or a sum that would not hold speak against it."""
    rows = ["Ash,1,7", "Bay,2,1", "Elm,4,-", "Fir,1,2", "Hay,2,9", "Oak,1,1", "Yew,-,11"]
    text = "\n".join(["area,men,women", *rows]).replace(*(change or ("", "")))
    (tmp_path / "t.csv").write_text(text + "\n", encoding="utf-8")
    asked = TableReading.read(tmp_path / "t.csv").questions["marks.-"]
    assert asked[0] == guess
    assert "marks.-=0" in asked[1] or guess == "0"


BELOW = '"Table information:"\n"Units:"\n"{}, Magnitude = {}"\n""\n"Footnotes:"\n"Some words."\n'


def infoshare(tmp_path, unit, magnitude="Units"):
    file = tmp_path / "t.csv"
    rows = "".join(f"{1990 + k},{31 + k * k % 50},{29 + 7 * k % 40}\n" for k in range(12))
    text = f'"Some title",""\n" ","Bzzk","Qrrt"\n{rows}{BELOW.format(unit, magnitude)}'
    file.write_text(text, encoding="utf-8")
    return TableReading.read(file)


def test_a_unit_below_the_table_says_what_its_numbers_are(tmp_path):
    assert infoshare(tmp_path, "Number").open == frozenset()
    assert infoshare(tmp_path, "Stk").open == {"counts"}
    for unit in ("$", "Percent", "Ratio"):
        with pytest.raises(DataError, match="must hold counts"):
            infoshare(tmp_path, unit)
    thousands = infoshare(tmp_path, "Number", "Thousands")
    assert thousands.questions["counts"][0] == "nearest-1000"


PAID = "area,Returns,Persons\nAsh,4565,8086\nElm,4421,7805\nOak,143,281\n"


@pytest.mark.parametrize(
    "note",
    [
        "(Aggregate Money Amounts Are In Thousands)",
        "(Money amounts are in thousands of dollars)",
        "Income figures in thousands; numbers are counts of returns",
        "[Geldbeträge in Tausend]",
        "Angaben zum Umsatz in Tsd. Euro",
        "(Montants en milliers)",
        "(importi in migliaia)",
        "(доходы в тыс.)",
        "Numbers of persons, money (in thousands)",
    ],
)
def test_a_unit_of_money_is_no_unit_of_counts(note, tmp_path):
    assert guess(tmp_path, note, PAID, "counts")[0] == "exact"


@pytest.mark.parametrize(
    "note",
    [
        "(Aggregate Numbers Are In Thousands)",
        "(Numbers in thousands; money amounts are in dollars)",
        "Persons by income, in thousands",
        "Angaben in Tausend",
        "(Personen in Tausend)",
        "Effectifs (en milliers)",
        "(dati in migliaia)",
        "Число человек (тыс.)",
        "単位：千人",
    ],
)
def test_counts_in_thousands_stay_so_whatever_is_said_of_money(note, tmp_path):
    assert guess(tmp_path, note, PAID, "counts")[0] == "nearest-1000"


def test_settings_say_that_counts_are_in_no_unit(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(f"(Numbers in thousands),,\n\n{PAID}", encoding="utf-8")

    def stated(**settings):
        reading = TableReading.read(file, **settings).accepted()
        bounds = count_bounds(PublishedTables(*reading.parts)).counts
        return {*zip(bounds["low_stated"], bounds["high_stated"], strict=True)}

    assert {(4_564_500, 4_565_499), (142_500, 143_499)} <= stated()
    assert {(4565, 4565), (143, 143), (281, 281)} <= stated(counts="exact")
    mixed = stated(columns={"Returns": {"counts": "exact"}})
    assert {(4565, 4565), (143, 143), (280_500, 281_499)} <= mixed


def test_a_column_in_thousands_beside_others_has_a_law_of_its_own(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("area,Pupils ('000),Teachers\nAsh,13,457\nElm,21,802\n", encoding="utf-8")
    reading = TableReading.read(file)
    laws = {name: one for name, (one, _) in reading.questions.items()}
    assert laws == {"counts": "nearest-1000", "columns.Teachers.counts": "exact"}
    bounds = count_bounds(PublishedTables(*reading.accepted().parts)).counts
    ends = {*zip(bounds["low_stated"], bounds["high_stated"], strict=True)}
    assert ends >= {(12_500, 13_499), (20_500, 21_499), (457, 457), (802, 802)}


@pytest.mark.parametrize(
    ("text", "guess"),
    [("Opened in 18-19", "withheld"), ("New 2018/19", "withheld"), ("from 1-4 pupils", "1-4")],
)
def test_school_years_are_no_small_counts(text, guess, tmp_path):
    rows = f"Ash,10,9\nBay,{text},8\nElm,7,6\nOak,5,{text}\n"
    (tmp_path / "t.csv").write_text(f"School,Girls,Boys\n{rows}", encoding="utf-8")
    reading = TableReading.read(tmp_path / "t.csv")
    assert reading.questions[f"marks.{text}"][0] == guess


@pytest.mark.parametrize(
    ("note", "name", "count", "words"),
    [
        ("s = fewer than 5", "marks.s", "35", "although row"),
        ("s = fewer than 5", "marks.s", "39", ""),
        ("Counts are rounded to the nearest 5", "counts", "30", "deny that row"),
        ("Counts are rounded to the nearest 5", "counts", "40", ""),
    ],
)
def test_a_note_that_numbers_deny_is_told(tmp_path, note, name, count, words):
    """35 and more than 5 make up 40; of rounded counts 10 and 30 are not 55."""
    rounded = name == "counts"
    rows = f"Ash,{'10' if rounded else 's'},{count},{50 if rounded else 40}\n"
    odd = 0 if rounded else 1
    rows += "".join(f"Town {k},{5 * k + odd},{10 * k},{15 * k + odd}\n" for k in range(6, 14))
    _, text = guess(tmp_path, note, f"area,Men,Women,Total\n{rows}", name)
    assert words in text
    assert bool(words) == ("deny" in text)


@pytest.mark.parametrize(
    ("heads", "numbers", "refused"),
    [
        ("Poor,Lower bound,Upper bound", [(120, 101, 140), (90, 70, 112), (57, 40, 70)], True),
        ("Poor,90% CI low,90% CI high", [(120, 101, 140), (90, 70, 112), (57, 40, 70)], True),
        ("Poor,Borne inférieure,Borne supérieure", [(120, 101, 140), (90, 70, 112)], True),
        ("Poor,Lower bound,Upper bound", [(120, 101, 140), (90, 91, 112), (57, 40, 70)], False),
        ("Primary,Lower school,Upper school", [(120, 101, 140), (90, 70, 112)], False),
        ("Rate,Lower limit,Upper limit", [(12, 10, 14), (9, 7, 11), (8, 6, 10)], False),
    ],
)
def test_ends_of_whole_numbers_that_enclose_another_show_an_estimate(
    heads, numbers, refused, tmp_path
):
    rows = [f"a{k},{300 + k},{x},{y},{z}" for k, (x, y, z) in enumerate(numbers)]
    file = tmp_path / "t.csv"
    file.write_text("\n".join([f"area,Persons,{heads}", *rows]), encoding="utf-8")
    if not refused:
        assert len(TableReading.read(file).cells)
        return
    with pytest.raises(DataError, match="estimates of a survey with margins of error"):
        TableReading.read(file)
