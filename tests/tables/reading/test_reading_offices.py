"""Files as offices publish them: divisions named in a column, notes among counts, few errors."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk.exceptions import DataError
from bayesrisk.reconstruction import count_bounds
from bayesrisk.tables import PublishedTables
from bayesrisk.tables.reading import reading as reading_module
from bayesrisk.tables.reading.reading import TableReading
from bayesrisk.tables.sheets.texts import interval


def read_rows(heads, rows, **settings):
    return TableReading.from_frame(pd.DataFrame(rows, columns=heads.split()), **settings)


def bounds_of(reading, **labels):
    """Return the proved least and most of the one count of a file that has some labels."""
    reading = reading.accepted()
    bounds = count_bounds(PublishedTables(*reading.parts))
    assert not bounds.conflict
    found = bounds.counts.rename(columns={"geoid": "place"})
    cells = reading.stated_cells.merge(found, on=["place", "table", "cell"])
    for name, label in labels.items():
        parts = cells.get(f"parts of {name}", cells[name])
        cells = cells[(cells[name] == label) | (parts == label)]
    [cell] = cells.to_dict("records")
    return cell["low"], cell["high"]


def divisions(young="*", total=("All", "")):
    counts = [("Age", "0-4", young, 40), ("Age", "5-17", "*", 90), ("Age", "0-17", 7, 130),
              ("Age", "18+", 512, 870), ("Sex", "Female", 288, 520), ("Sex", "Male", 230, 479),
              ("Ward", "Ash", 201, 301), ("Ward", "Elm", 318, 698),
              (*total, 519, 1001)]  # fmt: skip
    return read_rows("group subgroup deaths cases", [tuple(map(str, row)) for row in counts])


def test_a_column_names_divisions_of_the_same_people():
    reading = divisions()
    assert {"Age", "Sex", "Ward"} <= {*reading.cells}
    assert "group" not in reading.cells
    assert bounds_of(reading, Age="0-4", Sex="all", Ward="all", **{"category 1": "deaths"}) == (
        0, 7,
    )  # fmt: skip


def test_districts_and_their_wards_are_no_divisions_of_the_same_people():
    rows = [("East", "Ash", 201, 301), ("East", "Elm", 18, 98), ("West", "Oak", 200, 402),
            ("West", "Fir", 100, 200), ("All", "", 519, 1001)]  # fmt: skip
    reading = read_rows("district ward deaths cases", [tuple(map(str, row)) for row in rows])
    assert {"East", "West"}.isdisjoint(reading.cells)


def test_divisions_may_each_have_their_own_total():
    rng, rows = np.random.default_rng(5), []
    for kind in ("day", "night", "week"):
        a, b, c = map(int, rng.integers(50, 900, 3))
        d = int(rng.integers(1, a + b + c))
        rows += [("race", "red", kind, a), ("race", "blue", kind, b), ("race", "grey", kind, c),
                 ("sex", "women", kind, d), ("sex", "men", kind, a + b + c - d)]  # fmt: skip
        rows += [(name, "total", kind, a + b + c) for name in ("race", "sex")]
    rows[-3] = (*rows[-3][:3], "*")  # men of the week
    reading = read_rows("dimension subgroup kind count", [(*r[:3], str(r[3])) for r in rows])
    assert {"race", "sex"} <= {*reading.cells}
    truth = a + b + c - d
    assert bounds_of(reading, sex="men", kind="week") == (truth, truth)
    rows[-1] = (*rows[-1][:3], a + b + c + 40)  # the totals of the divisions differ
    other = read_rows("dimension subgroup kind count", [(*r[:3], str(r[3])) for r in rows])
    assert "race" not in other.cells


NOTED = """,town,first,second,third,year
1,Ash,40,12,9,17/18
2,Elm,*,14,19,17/18
3,Oak,17,*,12,17/18
4,Footnotes:,,NA,NA,17/18
5,Last update,{},NA,NA,17/18
6,Ash,41,15,18,18/19
7,Elm,13,*,20,18/19
8,Oak,22,31,16,18/19
"""


def test_notes_that_stand_in_a_column_of_counts_are_left_out(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(NOTED.format("* = Numbers greater than zero but less than five."))
    reading = TableReading.read(file)
    assert len(reading.stated_cells) == 18
    assert reading.questions["marks.*"][0] == "1-4"


@pytest.mark.parametrize("text", ["*", "17"])
def test_a_row_with_a_mark_or_a_number_is_no_note(text, tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(NOTED.format(text))
    assert "Last update" in {*TableReading.read(file).stated_cells["town"]}


def test_ranges_of_counts_are_no_labels_of_rates():
    rng = np.random.default_rng(3)
    rows = [(f"2021-01-{d:02d}", *(("0", "0") if d % 3 else ("<15", f"{rng.random():.3f}")),
             "8", f"{rng.random():.2f}") for d in range(1, 31)]  # fmt: skip
    rows = [(*row[:3], "0" if row[1] == "0" else "1.5", row[4]) for row in rows]
    reading = read_rows("date sick rate growth share", rows)
    assert reading.stated_cells["stated"].tolist().count("<15") == 10


@pytest.mark.parametrize(("zero", "guess"), [("11", "0"), ("0", "withheld")])
def test_a_dash_is_0_where_ranges_stand_for_small_counts(zero, guess):
    rows = [(f"place {k}", t) for k, t in enumerate(["<= 10"] * 9 + ["-", "40", "17", zero])]
    reading = read_rows("area people", rows)
    assert reading.questions["marks.-"][0] == guess


def offices(seed=7, off=0):
    rng, rows = np.random.default_rng(seed), []
    place = {f"town {k}": (f"region {k % 3}", f"office {k % 4}") for k in range(12)}
    for kind in ("a", "b", "c"):
        counts = dict(zip(place, map(int, rng.integers(20, 900, 12)), strict=True))
        rows.append(("ALL", "NULL", "Statewide", kind, sum(counts.values()) + off))
        rows += [(*place[town], town, kind, n) for town, n in counts.items()]
    return rows


def test_towns_of_offices_and_regions_that_make_no_tree_add_up():
    rows = offices()
    truth = rows[-1][-1]
    hidden = [*rows[:-1], (*rows[-1][:-1], "*")]
    reading = read_rows("region office town kind people", [(*r[:4], str(r[4])) for r in hidden])
    assert bounds_of(reading, town="town 11", kind="c") == (truth, truth)
    wrong = [(*r[:4], str(r[4])) for r in [*offices(off=-3)[:-1], hidden[-1]]]
    assert "office" in read_rows("region office town kind people", wrong).cells


@pytest.mark.parametrize(
    ("whole", "part", "most"),
    [("Total pupils", "Pupils with aid", 90), ("Total births", "Deaths", None)],
)
def test_a_label_is_no_more_than_the_total_of_its_noun(whole, part, most):
    rows = [("Ash", "120", "14"), ("Elm", "90", "*"), ("Oak", "77", "5"), ("Fir", "81", "13")]
    frame = pd.DataFrame(rows, columns=["area", whole, part])
    reading = TableReading.from_frame(frame, counts="exact")
    low, high = bounds_of(reading, area="Elm", **{"category 1": part})
    assert low == 0
    assert high == most or (most is None and not high < 2**30)


def added(groups, errors):
    rng, rows = np.random.default_rng(11), []
    for k in range(groups):
        a, b, c = map(int, rng.integers(20, 400, 3))
        rows.append((f"2020-{k:03d}", a, b, c, a + b + c + errors.get(k, 0)))
    rows[9] = (*rows[9][:3], "*", rows[9][4])
    return [tuple(map(str, row)) for row in rows], a, b


def test_few_errors_among_exact_sums_are_no_changed_counts():
    rows, *_ = added(240, {3: 1, 40: -1, 77: 2, 90: -2})
    reading = read_rows("week north south west patients", rows)
    assert reading.rules["counts"] == "exact"
    assert "counts" not in reading.open
    assert {4, 41, 78, 91}.isdisjoint(reading.cells["row"])
    many, *_ = added(120, {k: (-1) ** k for k in range(0, 120, 5)})
    changed = read_rows("week north south west patients", many)
    assert changed.rules["counts"].startswith("perturbed")
    assert "counts" in changed.open


def eras(missing=0):
    rows = []
    for k, year in enumerate(["S59", "S60", "S61", "S62", "H1", "H2", "H3", "H4"]):
        a, b, c = 1200 + 31 * k, 2300 - 17 * k, 900 + k
        parts = (a, b + c, "") if k < 4 else (a, "", c) if k == 4 else (a, b, c)
        total = sum(p for p in parts if p) + missing * (k == 1)
        rows += [(year, age, f"{n:,}" if n else "") for age, n in
                 zip(("young", "grown", "old", "all"), (*parts, total), strict=True)]  # fmt: skip
    return read_rows("year age people", rows)


def test_blanks_of_labels_that_early_years_do_not_have_are_not_used():
    blank = eras().stated_cells
    assert {*blank[blank["stated"] == ""]["year"]} == {"H1"}
    blank = eras(missing=5).stated_cells
    assert {*blank[blank["stated"] == ""]["year"]} == {"S59", "S60", "S61", "S62", "H1"}


@pytest.mark.parametrize(
    ("label", "ends"),
    [("01-2015", None), ("12/2015", None), ("1-20", (1, 20)), ("13-2000", (13, 2000))],
)  # fmt: skip
def test_a_month_of_a_year_is_no_range(label, ends):
    assert interval(label) == ends


@pytest.mark.parametrize(("total", "guess"), [(521, "partial"), (515, "separate")])
def test_a_total_counts_others_than_ages_unless_these_are_more(total, guess):
    rows = [("0-4", "*", 40), ("5-17", "*", 90), ("0-17", 7, 130), ("18+", 512, 870),
            ("All", total, 1001)]  # fmt: skip
    reading = read_rows("age deaths cases", [tuple(map(str, row)) for row in rows])
    choice = reading.rules.get("totals.age", reading.rules.get("totals", "separate"))
    assert choice == guess or "age" in reading.separate


def test_counts_in_thousands_may_be_said_by_a_sign(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(
        "area;households x 1 000;wealth 1 000 euro\nAsh;8,1;4,2\nElm;16,3;7,7\nOak;3,9;1,4\n"
    )
    reading = TableReading.read(file)
    assert reading.rules["counts"] == "nearest-100"
    assert reading.stated_cells["stated"].tolist() == ["8100", "16300", "3900"]


def test_two_names_of_each_column_are_one_label(tmp_path):
    file = tmp_path / "t.csv"
    names = [("Wien", "Vienna"), ("Graz", "Graz city"), ("Linz", "Linz city")]
    rows = [("kind", *(a for a, _ in names)), ("-", *(b for _, b in names)), ("red", 5, 9, 14),
            ("blue", 3, 8, 22), ("grey", 11, 2, 7)]  # fmt: skip
    file.write_text("\n".join(",".join(map(str, row)) for row in rows))
    reading = TableReading.read(file)
    [name] = {n for n in reading.cells if "Wien: Vienna" in {*reading.cells[n]}}
    assert {*reading.cells[name]} == {f"{a}: {b}" for a, b in names}


def balances(sign):
    rng = np.random.default_rng(2)
    rows = [(f"land {k}", *map(int, sign * rng.integers(1, 99, 4)), int(rng.integers(1, 99)))
            for k in range(6)]  # fmt: skip
    rows = [(a, *(n * (-1) ** (i + k) if sign < 0 else n for i, n in enumerate(b)), c)
            for k, (a, *b, c) in enumerate(rows)]  # fmt: skip
    return [tuple(map(str, row)) for row in rows]


def test_columns_of_differences_leave_no_column_of_counts():
    with pytest.raises(DataError, match="must have a column of counts"):
        read_rows("land north south west east centre", balances(-1))
    assert len(read_rows("land north south west east centre", balances(1)).stated_cells) == 30


def test_trees_of_too_many_labels_are_not_used(monkeypatch):
    rng = np.random.default_rng(8)
    rows = []
    for region in ("A", "B", "C"):
        parts = rng.integers(5, 300, (4, 3))
        rows += [
            (f"{region}", *parts.sum(axis=0)),
            *((f"{region}{k}", *p) for k, p in enumerate(parts)),
        ]
    rows = [tuple(map(str, row)) for row in rows]
    assert "parts of area" in read_rows("area births deaths moves", rows).cells
    monkeypatch.setattr(reading_module, "MOST_WEIGHTS", 100)
    assert "parts of area" not in read_rows("area births deaths moves", rows).cells


UNDER_UNITS = """Topic;Recorded crimes;Recorded crimes
Periods;2023;{}
Regions;number;{}
Ash;1222;1301
Elm;476;512
Oak;*;333
"""


def test_rows_up_to_the_unit_of_counts_are_headings(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(UNDER_UNITS.format("2024", "number"))
    cells = TableReading.read(file).stated_cells
    assert sorted(cells["stated"]) == sorted(["1222", "476", "*", "1301", "512", "333"])
    assert {*cells["regions"]} == {"Ash", "Elm", "Oak"}
    assert {*cells["year"]} == {"2023", "2024"}


def test_a_word_in_place_of_one_count_begins_no_table(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(UNDER_UNITS.format("2024", "1800").replace("number", "*"))
    assert "1800" in {*TableReading.read(file).stated_cells["stated"]}


@pytest.mark.parametrize(("more", "guess"), [(23, "partial"), (-23, "separate")])
def test_labels_that_make_up_one_total_exactly_exclude_each_other_in_others(more, guess):
    parts = {"day": (4108, 2090, 377), "night": (6292, 5007, 1652)}
    totals = {"day": sum(parts["day"]), "night": sum(parts["night"]) + more}
    rows = [(kind, name, str(n)) for kind, counts in parts.items()
            for name, n in zip(("red", "blue", "grey", "Total"), (*counts, totals[kind]),
                               strict=True)]  # fmt: skip
    reading = read_rows("kind colour people", rows, counts="exact")
    assert reading.rules.get("totals.colour", "separate") == guess


@pytest.mark.parametrize(("total", "guess"), [(0, "partial"), (-60, "separate")])
def test_ranges_beside_counts_that_fit_in_many_groups_exclude_each_other(total, guess):
    rng, rows = np.random.default_rng(4), []
    for week in range(12):
        counts = rng.integers(900, 4000, 3)
        rows += [(f"w{week}", name, str(n)) for name, n in zip("abc", counts, strict=True)]
        rows += [(f"w{week}", "d", "<= 10"), (f"w{week}", "Total", str(counts.sum() + 6 + total))]
    reading = read_rows("week colour people", rows, counts="exact")
    assert reading.rules.get("totals.colour", "separate") == guess
