"""Numbers testify what a column is: sums beside it, few texts, codes of one digit number."""

import numpy as np
import pytest

from bayesrisk.tables.reading.reading import TableReading

CARE = (
    "foster_care",
    "study",
    "shelter",
    "kin",
    "ward",
    "home",
    "centre",
    "school",
    "group",
    "own",
)


def read_text(tmp_path, text, **settings):
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8")
    return TableReading.read(file, **settings)


def table(heads, rows):
    return "\n".join(",".join(map(str, row)) for row in (heads, *rows)) + "\n"


def few_numbers(size, columns, most, seed=1):
    return np.random.default_rng(seed).integers(0, most, (size, columns))


def test_few_numbers_in_many_rows_are_counts_where_they_add_up_with_ten_others(tmp_path):
    counts = few_numbers(120, len(CARE), 3)
    rows = [[f"area {k}", *row, row.sum()] for k, row in enumerate(counts)]
    said = read_text(tmp_path, table(["area", *CARE, "in_care"], rows))
    assert said.questions["counts"][0] == "exact"
    assert {*said.cells["category 1"]} == {*CARE, "all"}
    assert len(said.cells) == 120 * (len(CARE) + 1)


def test_few_numbers_before_a_sum_that_miss_it_are_codes(tmp_path):
    counts = few_numbers(120, 4, 40)
    rows = [[f"area {k}", k % 3, *row, row.sum()] for k, row in enumerate(counts)]
    said = read_text(tmp_path, table(["area", "kind", *"abcd", "all of them"], rows))
    assert {*said.cells["category 1"]} == {*"abcd", "all"}


@pytest.mark.parametrize("step", [2, 3, 4])
def test_columns_in_turn_add_up_to_totals_after_them(tmp_path, step):
    counts = few_numbers(90, 3 * step, 3)
    heads = [f"{kind}{part}" for part in "abc" for kind in "uvwx"[:step]]
    pairs = zip(counts, counts.reshape(90, 3, step).sum(axis=1), strict=True)
    rows = [[f"area {k}", *row, *whole] for k, (row, whole) in enumerate(pairs)]
    said = read_text(tmp_path, table(["area", *heads, *(f"{k}*" for k in "uvwx"[:step])], rows))
    assert (said.cells["file"] != "").sum() == 90 * 4 * step


def test_sexes_before_ages_have_totals_of_both(tmp_path):
    text = (
        "place,Boys young,Girls young,Boys old,Girls old,Total boys,Total girls,Grand total\n"
        "A,31,12,15,43,46,55,101\nB,24,31,20,50,44,81,125\n"
        "C,17,8,11,9,28,17,45\nD,12,40,33,21,45,61,106\n"
    )
    cells = read_text(tmp_path, text).cells.set_index(["place label", "category 1", "sex"])[
        "stated"
    ]
    assert cells["A", "young", "Boys"] == "31"
    assert cells["C", "all", "Girls"] == "17"
    assert cells["D", "all", "all"] == "106"
    assert len(cells) == 4 * 7


def test_sexes_that_are_not_with_each_label_are_no_variable(tmp_path):
    text = "place,Boys young,Girls old,Total\nA,31,12,43\nB,24,31,55\nC,17,8,25\n"
    cells = read_text(tmp_path, text).cells
    assert {*cells["category 1"]} == {"Boys young", "Girls old", "all"}


@pytest.mark.parametrize("head", ["lga_code16", "ward_code21"])
def test_codes_with_the_year_of_their_edition_spell_names(tmp_path, head):
    rows = [[10050 + 80 * k, f"area {k}", 3 + k, 9 + 2 * k % 7] for k in range(12)]
    said = read_text(tmp_path, table([head, "area", "men", "women"], rows))
    assert {*said.cells["sex"]} == {"men", "women"}
    assert any(f"{head} (the same as 'area')" in line for line in said.lines)


def test_a_total_in_a_column_of_one_label_is_of_the_blank_labels_beside_it(tmp_path):
    rows = [["2019", f"area {k}", 3 + k, 9 + k * k % 7] for k in range(6)]
    whole = ["Grand Total", "", *(sum(row[j] for row in rows) for j in (2, 3))]
    said = read_text(tmp_path, table(["school year", "area", "men", "women"], [*rows, whole]))
    assert "school year" not in said.cells
    assert (said.cells["area"] == "all").sum() == 2
    assert said.questions["counts"][1].endswith("sums hold exactly in 2 groups)")


def test_a_total_beside_two_labels_leaves_its_column(tmp_path):
    rows = [[2018 + k % 2, f"area {k}", 3 + k, 9 + k * k % 7] for k in range(6)]
    whole = ["Grand Total", "", *(sum(row[j] for row in rows) for j in (2, 3))]
    said = read_text(tmp_path, table(["school year", "area", "men", "women"], [*rows, whole]))
    assert {*said.cells["school year"]} >= {"2018", "2019"}


def test_counts_of_few_people_are_no_running_sums_of_each_other(tmp_path):
    rows = []
    for k in range(10):
        few = [("1", "-"), ("2", "1")] if k < 4 else [("-", "-"), ("-", "-")]
        rows += [[f"region {k}", area, 30 + k, *few[j]] for j, area in enumerate("ab")]
    said = read_text(tmp_path, table(["region", "area", "aged 75", "aged 76", "aged 77"], rows))
    assert not any("running sum" in line for line in said.lines)


@pytest.mark.parametrize("told", [True, False])
def test_all_people_of_a_place_and_year_are_no_label(tmp_path, told):
    """They are, where they alone tell rows apart."""
    rows = [
        [f"area {k}" if told else "area", 2018 + y, 900 + 71 * k + 13 * y, kind, (7 * k + y) % 11]
        for k in range(12) for y in range(3) for kind in ("theft", "fraud")
    ]  # fmt: skip
    said = read_text(tmp_path, table(["area", "year", "insee_log", "offence", "n"], rows))
    assert ("insee log" in said.cells) != told
    assert {*said.cells["offence"]} == {"theft", "fraud"}


def test_headings_without_letters_stand_beside_sexes(tmp_path):
    text = "place,*,Boys young,Girls young,Boys old,Girls old\nA,9,1,2,3,4\nB,8,5,6,7,8\n"
    cells = read_text(tmp_path, text).cells
    assert {*cells["category 1"]} >= {"Boys young", "Girls old"}


@pytest.mark.parametrize(
    ("name", "total"), [("Total for", True), ("All", True), ("All day", False), ("All in", False)]
)
def test_only_what_says_so_is_the_total_of_labels_beside_sexes(tmp_path, name, total):
    """Other words that a total may have need sums, which these numbers deny."""
    heads = [
        f"{sex} {label}" for label in (name, "Half day", "No place") for sex in ("Boys", "Girls")
    ]
    rows = [[f"area {k}", *(31 + k * j % 17 for j in range(6))] for k in range(4)]
    said = read_text(tmp_path, table(["area", *heads], rows), totals="separate")
    name_of = next(n for n in said.cells if n.startswith("category"))
    assert ("all" in {*said.cells[name_of]} or "Total" in {*said.cells[name_of]}) == total


def test_columns_of_the_same_ages_are_labels_and_no_counts(tmp_path):
    ages = ("NONE", "0 to 10", "11 to 15", "16", "17", "18 to 24")
    numbers = np.random.default_rng(5).integers(2, 99, (8, len(ages))) * 5
    rows = [(f"trust {k}", age, age, n) for k, row in enumerate(numbers)
            for age, n in zip(ages, row, strict=True)]  # fmt: skip
    said = read_text(tmp_path, table(["trust", "level", "level description", "value"], rows))
    assert {*said.cells["stated"]} == {str(n) for n in numbers.ravel()}
    assert {*said.cells["level"]} == {*ages}
    # Counts that happen to be the same are counts.
    rows = [(t, "*" if n < 50 else n, "*" if n < 50 else n) for t, _, _, n in rows[::6]]
    said = read_text(tmp_path, table(["trust", "cases", "persons"], rows))
    assert {*said.cells["category 1"]} >= {"cases", "persons"}


def test_a_number_of_all_rows_is_no_count_beside_others(tmp_path):
    counts = np.random.default_rng(8).integers(3, 90, (6, 2))
    rows = [(n, 1, f"area {k}", sex) for k, row in enumerate(counts)
            for sex, n in zip(("Men", "Women"), row, strict=True)]  # fmt: skip
    said = read_text(tmp_path, table(["data", "of schools", "area", "sex"], rows))
    assert {*said.cells["stated"]} == {str(n) for n in counts.ravel()}
    # In a few rows it may count, and 0 may anywhere: nobody has what is rare.
    for number, some in ((1, rows[:6]), (0, rows)):
        some = [(n, number, area, sex) for n, _, area, sex in some]
        said = read_text(tmp_path, table(["data", "rabies", "area", "sex"], some))
        assert str(number) in {*said.cells["stated"]}


@pytest.mark.parametrize("measure", ["AreaInSqKm", "DensityPerSqKm", "BirthRate", "area in km2"])
def test_words_written_as_one_say_what_is_no_count(tmp_path, measure):
    rows = [(f"t{k}", 900 + 37 * k * k, 5 + 3 * k) for k in range(8)]
    reading = read_text(tmp_path, table(["Town", "Deaths", measure], rows))
    assert {*reading.stated_cells["stated"]} == {str(n) for _, n, _ in rows}
    reading = read_text(tmp_path, table(["Town", "Deaths", "MarriedMen"], rows))
    assert len(reading.stated_cells) == 2 * len(rows)


@pytest.mark.parametrize("missed", [0, 1])
def test_counts_that_rise_beside_one_text_a_row_are_parts_of_their_total(tmp_path, missed):
    counts = [(1100 * k, 1300 * k + k * k, 2100 * k) for k in range(1, 8)]
    rows = [(f"page {k}", *n, sum(n) + missed * (k == 6)) for k, n in enumerate(counts)]
    reading = read_text(tmp_path, table(["source", "North", "South", "West", "total"], rows))
    assert len(reading.stated_cells) == 4 * len(rows)
    rows = [(f"page {k}", *n, 99 * k + 7) for k, n in enumerate(counts)]  # numbers of pages
    reading = read_text(tmp_path, table(["source", "North", "South", "West", "total"], rows))
    assert len(reading.stated_cells) == len(rows)


@pytest.mark.parametrize("measure", ["AreaInSqKm", "PopulationDensity"])
def test_people_count_where_all_other_numbers_are_measures(tmp_path, measure):
    rows = [(f"t{k}", 9000 + 371 * k * k, 5 + 3 * k) for k in range(8)]
    reading = read_text(tmp_path, table(["Town", "Population", measure], rows))
    assert {*reading.stated_cells["stated"]} == {str(n) for _, n, _ in rows}


@pytest.mark.parametrize(("total", "left"), [("1,027", [5, 6]), ("1,026", [])])
def test_rows_of_one_number_for_several_columns_are_left_out(tmp_path, total, left):
    """A number over both sexes stands below the first of them: sums show it, not blanks alone."""
    file = tmp_path / "t.csv"
    file.write_text(
        ",North,,South,\n,Male,Female,Male,Female\n"
        + f'Kindergarten,"1,012",15,30,8\nGrade 1,4,6,13,10\nBoth sexes,"{total}",,38,\n'
        + "Both sexes last year,25,,31,\n",
        encoding="utf-8",
    )
    reading = TableReading.read(file)
    assert [row for row in left if f"row {row} " in " ".join(reading.screen())] == left
    assert ({*reading.stated_cells["row"]} == {3, 4}) == bool(left)
