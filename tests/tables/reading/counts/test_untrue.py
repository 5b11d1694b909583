"""Numbers that count nobody as they stand, and sums that notes deny: asked about, never proved."""

import pytest

from bayesrisk.reconstruction import count_bounds
from bayesrisk.tables import PublishedTables
from bayesrisk.tables.reading.reading import TableReading

PLAIN = "area,Male,Female,Total\nAsh,12,15,27\nElm,30,8,38\nOak,7,6,13\n"
#: In Ash one person of neither sex is in the total alone: 3 men are hidden, not 4.
SEXES = "area,Male,Female,Total\nAsh,*,15,19\nElm,30,8,38\nOak,7,16,23\nYew,9,12,21\n"
REASONS = "area,Debt,Health,Total\nAsh,*,15,19\nElm,30,8,38\nOak,7,16,23\nYew,9,12,21\n"


def read(tmp_path, text, **settings):
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8")
    return TableReading.read(file, **settings)


def ends(reading):
    """Return the bounds of each published text by row, with all guesses confirmed."""
    reading = reading.accepted()
    bounds = count_bounds(PublishedTables(*reading.parts)).counts
    keys = ["place", "table", "cell"]
    frame = reading.stated_cells.merge(bounds.rename(columns={"geoid": "place"}), on=keys)
    rows = zip(frame["row"], frame["stated"], frame["low"], frame["high"], strict=True)
    return {(row, text): (low, high) for row, text, low, high in rows}


@pytest.mark.parametrize(
    "title",
    [
        "Employed persons (hundreds)", "Subscribers, millions", "就業者数（万人）",
        "Median length of stay in days", "Deaths per thousand persons", "Smokers, per cent",
        "Average daily population of prisons", "Beschäftigte im Jahresdurchschnitt",
        "Taux de mortalité pour 1 000 habitants", "Suicides, rate per 100,000 population",
        "Records have been swapped between areas.",
    ],
)  # fmt: skip
def test_a_title_by_which_numbers_count_nobody_leaves_their_law_open(tmp_path, title):
    assert "counts" in read(tmp_path, f'"{title}",,,\n{PLAIN}').open


@pytest.mark.parametrize(
    "title", ["Deaths", "Prisoners by area", "Hundreds Lane surgery: patients"]
)
def test_other_titles_leave_nothing_open(tmp_path, title):
    assert not read(tmp_path, f'"{title}",,,\n{PLAIN}').open


def test_a_title_on_rates_is_of_the_columns_that_are_called_so(tmp_path):
    text = "area,Deaths,Death rate\nAsh,12,15\nElm,30,8\nOak,7,6\n"
    heading = "Number of deaths and death rates,,\n"
    assert read(tmp_path, heading + text).questions.keys() == {"counts"}
    assert not read(tmp_path, heading + text).open


@pytest.mark.parametrize(("units", "asked"), [("236", True), ("000", False), ("033", True)])
def test_exponents_and_units_that_are_not_of_all_rows_are_asked_about(tmp_path, units, asked):
    rows = zip(("Ash", "Elm", "Oak"), (12, 30, 7), units, strict=True)
    text = "".join(f"{area},{n},{unit}\n" for area, n, unit in rows)
    reading = read(tmp_path, f"area,OBS_VALUE,UNIT_MULT\n{text}")
    assert ("unit mult" in reading.questions["counts"][1]) == asked


@pytest.mark.parametrize(
    ("note", "table", "guess"),
    [
        ("Total includes persons of unknown sex.", SEXES, "partial"),
        ("Persons of indeterminate sex are included in the total only.", SEXES, "partial"),
        ("Insgesamt einschließlich Personen ohne Angabe", SEXES, "partial"),
        ("Clients may have more than one reason.", REASONS, "separate"),
        ("Persons are counted once for each reason.", REASONS, "separate"),
        ("Components may not add to totals.", REASONS, "separate"),
        ("Because of rounding and non-response, parts may not add up.", REASONS, "separate"),
        ("Parts may not add to totals due to rounding and unknowns.", REASONS, "separate"),
        ("Totals exclude suppressed counts.", REASONS, "separate"),
    ],
)
def test_a_note_that_denies_sums_asks_about_them(tmp_path, note, table, guess):
    name = "sex" if table is SEXES else "category 1"
    reading = read(tmp_path, f"{table}\n* 1 to 4\n{note}\n")
    assert reading.questions[f"totals.{name}"][0] == guess
    low, high = ends(reading)[2, "*"]
    assert low <= 3 <= high


@pytest.mark.parametrize(
    "note", ["* 1 to 4", "Totals may not add due to rounding of rates",
             "As a result of rounding rates may not sum to totals.", "* included in the totals,"
             " suppressed"],
)  # fmt: skip
def test_other_notes_leave_sums_as_numbers_show_them(tmp_path, note):
    reading = read(tmp_path, f'{SEXES}\n"{note}"\n', marks={"*": "1-4"})
    assert ends(reading)[2, "*"] == (4, 4)


def test_a_note_on_sums_of_one_variable_is_not_of_others(tmp_path):
    table = f"{SEXES}Total,50,51,101\n"
    reading = read(tmp_path, f"{table}\nTotal includes persons of unknown sex.\n")
    assert [name for name in reading.questions if name.startswith("totals")] == ["totals.sex"]


def test_a_note_on_unknown_labels_asks_nothing_where_all_is_stated(tmp_path):
    note = "Total includes persons of unknown sex."
    assert "totals.sex" not in read(tmp_path, f"{PLAIN}\n{note}\n").questions


SHOWN = "age,Deaths\n0-14,16\n15-24,*\n25-44,14\n45-64,*\n65+,20\nTotal,50\n"


def test_the_total_of_what_is_shown_does_not_make_marks_0(tmp_path):
    reading = read(tmp_path, f"{SHOWN}* suppressed (1-4)\n")
    assert reading.rules["marks.*"] == "1-4"
    assert ends(reading)[3, "*"] == (1, 4)
    other = read(tmp_path, SHOWN.replace("Total,50", "Total,55") + "* suppressed (1-4)\n")
    assert not any("separate" in guess for guess in other.rules.values())


def test_totals_of_what_is_shown_are_no_limits_of_what_is_not(tmp_path):
    text = "area,Falls,Burns,Total\nAsh,*,*,0\nElm,12,*,12\nOak,0,9,9\n"
    reading = read(tmp_path, f"{text}\n* fewer than 5\n")
    assert ends(reading)[2, "*"] == (0, 4)


@pytest.mark.parametrize(
    ("note", "number", "setting"),
    [
        ("Counts of 1 to 4 are shown as 3", "3", "1-4"),
        ("Counts below 5 have been replaced by 5", "5", "0-5"),
        ("Values below 5 are shown as 0", "0", "0-4"),
        ("0 means fewer than 5", "0", "0-4"),
        ("0 means 0 to 4", "0", "0-4"),
        ("Counts of fewer than five are published as zero", "0", "0-4"),
        ("Small numbers have been set to zero", "0", "withheld"),
    ],
)
def test_numbers_that_stand_for_small_counts_are_read_from_notes(tmp_path, note, number, setting):
    table = f"area,Male,Female\nAsh,{number},12\nElm,6,{number}\nOak,9,7\n"
    assert read(tmp_path, f"{table}\n{note}\n").questions[f"marks.{number}"][0] == setting
    other = "Counts of 10 or more are shown in full"
    assert f"marks.{number}" not in read(tmp_path, f"{table}\n{other}\n").questions


def test_a_range_from_0_of_a_mark_is_no_meaning_of_0(tmp_path):
    table = "area,Male,Female\nAsh,--,12\nElm,6,0\nOak,9,7\n"
    reading = read(tmp_path, f"{table}\nAll values between 0 and 5 are shown as “--”.\n")
    assert reading.questions["marks.--"][0] == "0-5"
    assert "marks.0" not in reading.questions


@pytest.mark.parametrize(
    ("law", "text", "expected"),
    [
        ("perturbed-2", "1-4", (0, 6)),
        ("nearest-5", "<=5", (0, 7)),
        ("nearest-5", "<5", (0, 4)),
        ("random-5", "<=5", (0, 9)),
        ("exact", "<=5", (0, 5)),
    ],
)
def test_ranges_are_of_counts_after_they_were_changed(tmp_path, law, text, expected):
    table = f"area,patients\nAsh,{text}\nElm,30\nOak,15\n"
    assert ends(read(tmp_path, table, counts=law))[2, text] == expected


def test_a_count_beside_a_letter_of_estimates_may_be_any(tmp_path):
    table = "area,Male,Female\nAsh,10{0},12\nElm,6,30{0}\nOak,9,7\n"
    estimates = read(tmp_path, table.format("x") + "\nx Estimated\n")
    assert estimates.rules["marks.x"] == "withheld"
    assert read(tmp_path, table.format("e")).rules["marks.e"] == "withheld"
    assert read(tmp_path, table.format("r") + "\nr Revised\n").rules["marks.r"] == "note"


@pytest.mark.parametrize(
    ("note", "law"),
    [
        ("Counts are rounded down to a multiple of 5", "random-5"),
        ("Data rounded to base 5", "random-5"),
        ("Data rounded to the nearest 5", "nearest-5"),
        ("Counts are rounded up or down to a multiple of 5 or 10", "perturbed-9"),
        ("Die Werte wurden zufällig verändert", "perturbed-5"),
        ("Noise infusion was used to protect respondents", "perturbed-5"),
    ],
)
def test_the_way_in_which_counts_are_changed_is_read_from_notes(tmp_path, note, law):
    table = "area,Male,Female\nAsh,10,15\nElm,60,30\nOak,95,70\n"
    table = table if "rounded" in note else table.replace("95", "94")
    assert read(tmp_path, f"{table}\n{note}\n").rules["counts"] == law


TENS = "area,A,B,C,Total\nAsh,60,25,40,130\nElm,20,35,10,60\nOak,15,30,15,60\nYew,35,10,75,120\n"


def test_totals_that_are_rounded_to_more_are_asked_about(tmp_path):
    note = "\nFigures are rounded to the nearest 5\n"
    reading = read(tmp_path, f"{TENS}Total,130,100,140,370\n{note}")
    assert reading.rules["labels.area.Total.counts"] == "nearest-10"
    assert ends(reading)[2, "130"] == (125, 134)
    other = read(tmp_path, f"{TENS}Total,130,105,140,375\n{note}")
    assert "labels.area.Total.counts" not in other.rules


def test_totals_stay_rounded_where_the_law_of_others_is_said(tmp_path):
    text = "area,A,B,Total\nAsh,27,69,100\nElm,29,36,70\nOak,23,7,30\nYew,11,14,30\n"
    note = "\nTotals are rounded to the nearest 10\n"
    reading = read(tmp_path, text + note, counts="exact")
    assert ends(reading)[3, "70"] == (65, 74)


LAND = "{}\n{}\narea,2020,2021\nAsh,120,131\nElm,307,311\nOak,96,101\nYew,44,47\n"


@pytest.mark.parametrize(
    ("title", "asked"),
    [
        ("Measure - area planted (Hectares)", True),
        ("Output (tonnes)", True),
        ("Persons employed (annual averages)", True),
        ("Persons on farms of 5 hectares", False),
        ("Persons (headcount)", False),
    ],
)
def test_a_title_in_units_of_land_or_on_averages_is_asked_about(tmp_path, title, asked):
    reading = read(tmp_path, LAND.format("Persons", title))
    assert ("counts" in reading.open) == asked
    rated = LAND.replace("2021", "Rate (%)").format("Persons", title)
    assert ("counts" in read(tmp_path, rated).open) == ("averages" in title)


HEADS = (
    "Einwohner je km2", "Einwohnerdichte", "Habitants par km²", "Densidad", "Fläche (ha)",
    "Price", "Median prices", "Land (hectares)",
)  # fmt: skip


@pytest.mark.parametrize("head", HEADS)
def test_densities_areas_and_prices_count_nobody_beside_persons(tmp_path, head):
    text = f"area,Persons,{head}\nAsh,120,31\nElm,307,11\nOak,96,54\nYew,44,8\n"
    reading = read(tmp_path, text)
    assert {*reading.cells["stated"]} == {"120", "307", "96", "44"}
    assert not reading.open


@pytest.mark.parametrize(
    "head", ["Low income", "Free", "Fee paying", "Farms under 5 ha", "Premium"]
)
def test_words_that_only_resemble_these_count_people(tmp_path, head):
    text = f"area,Total persons,Others,{head}\nAsh,120,89,31\nElm,307,296,11\nOak,96,42,54\n"
    assert {"31", "11", "54"} <= {*read(tmp_path, text).cells["stated"]}


def test_labels_of_sizes_in_hectares_stay_labels(tmp_path):
    text = "area,Size (ha),Farms\nAsh,0-5,12\nAsh,5-10,25\nElm,0-5,7\nElm,5-10,31\n"
    assert {*read(tmp_path, text).cells["size (ha)"]} == {"0-5", "5-10"}


@pytest.mark.parametrize(
    ("total", "partial"),
    [
        ("Persons (incl. sex unknown)", True),
        ("Total including not stated", True),
        ("Insgesamt (einschl. divers)", True),
        ("Persons", False),
        ("Total", False),
    ],
)
def test_a_total_that_says_it_includes_others_is_no_sum_of_the_rest(tmp_path, total, partial):
    """Sums that hold in three areas say nothing of Ash, where one person of neither sex is."""
    reading = read(tmp_path, SEXES.replace("Total", total)).accepted()
    assert (ends(reading)[2, "*"] == (4, 4)) is not partial
    assert ends(reading)[2, "*"][1] == 4


@pytest.mark.parametrize(
    ("unit", "asked"),
    [("Bin TL, cari fiyatlarla", True), ("Million EUR", True), ("1 000 Kč", True),
     ("Persons", False), ("EUR loans", False), ("Bin Talal", False)],
)  # fmt: skip
def test_amounts_of_money_in_labels_are_asked_about(tmp_path, unit, asked):
    text = "area,unit,Male,Female,Total\nAsh,{0},12,15,27\nElm,{0},30,8,38\nOak,{0},7,6,13\n"
    assert bool(read(tmp_path, text.format(unit)).open) == asked


@pytest.mark.parametrize("head", ["GDP", "Bruttoinlandsprodukt", "PIB: produit intérieur brut"])
def test_a_gross_product_counts_nobody_beside_persons(tmp_path, head):
    text = f"area,{head},persons\nAsh,1200,15\nElm,3001,8\nOak,717,6\n"
    assert {text for _, text in ends(read(tmp_path, text, counts="exact"))} == {"15", "8", "6"}
