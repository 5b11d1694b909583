"""Columns that count what columns below other headings do, and columns of marks alone."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk.reconstruction import count_bounds
from bayesrisk.tables import PublishedTables, TableReading

PLACES = [f"place {k}" for k in range(12)]


def read(tmp_path, rows, **settings):
    file = tmp_path / "t.csv"
    file.write_text("\n".join(",".join(map(str, row)) for row in rows), encoding="utf-8")
    return TableReading.read(file, **settings)


def bounds_of(reading):
    """Return the bounds of each published text by its row and text."""
    return dict(all_bounds(reading))


def all_bounds(reading):
    """Return the row and the text of all counts, with their bounds."""
    reading = reading.accepted()
    keys = ["place", "table", "cell"]
    bounds = count_bounds(PublishedTables(*reading.parts)).counts.rename(columns={"geoid": "place"})
    frame = reading.stated_cells.merge(bounds, on=keys)
    rows = zip(frame["row"], frame["stated"], frame["low"], frame["high"], strict=True)
    return [((row, text), (low, high)) for row, text, low, high in rows]


def beds(*, off=0):
    """Return beds by department below two headings, their total, and hospitals beside them."""
    counts = np.random.default_rng(4).integers(20, 900, (len(PLACES), 5))
    rows = [
        ["", "hospitals", "beds", *["beds on average"] * 5],
        ["", "", "", *["General"] * 3, *["Mental"] * 2],
        ["", "", "", "Eyes", "Heart", "Skin", "Children", "Adults"],
        ["", *["number"] * 7],
    ]
    for name, few in zip(PLACES, counts, strict=True):
        rows.append([name, 1 + few[0] // 90, few.sum() + off, *few])
    rows[7][4] = "*"  # follows from the total of beds
    return rows, counts[3, 1]


def test_a_column_that_counts_what_all_two_level_columns_do_is_their_total(tmp_path):
    rows, truth = beds()
    assert bounds_of(read(tmp_path, rows).changed({"counts": "exact"}))[8, "*"] == (truth, truth)


def test_a_column_beside_two_level_columns_that_counts_others_is_no_total(tmp_path):
    rows, _ = beds(off=3)
    reading = read(tmp_path, rows).changed({"counts": "exact"})
    assert bounds_of(reading)[8, "*"][0] == 0


def prisoners(*, off=0):
    """Return a pivot of men and women by kind, with *Men Total*, *Women Total* and all."""
    counts = np.random.default_rng(5).integers(1, 60, (len(PLACES), 4))
    rows = [
        ["", "Muž", "", "Muž Celkem", "Žena", "", "Žena Celkem", "Celkový součet"],
        ["town", "remand", "sentence", "", "remand", "sentence", "", ""],
    ]
    for name, (a, b, c, d) in zip(PLACES, counts, strict=True):
        rows.append([name, a, b, a + b, c, d, c + d, a + b + c + d + off])
    rows[4][1] = "*"  # follows from its sex
    rows[7][6] = "*"  # follows from all
    return rows, counts[2, 0], counts[5, 2:].sum()


def test_totals_of_groups_stand_beside_their_columns_and_add_up_to_the_last(tmp_path):
    rows, one, both = prisoners()
    bounds = bounds_of(read(tmp_path, rows))
    assert bounds[5, "*"] == (one, one)
    assert bounds[8, "*"] == (both, both)


def test_a_last_column_that_group_totals_do_not_add_up_to_is_none_of_them(tmp_path):
    rows, one, _ = prisoners(off=2)
    bounds = bounds_of(read(tmp_path, rows).changed({"counts": "exact"}))
    assert bounds[5, "*"] == (one, one)


def towns(*, whole):
    """Return reports by kind, with `-` in few places, and throughout one column."""
    counts = np.random.default_rng(6).integers(1, 9, (len(PLACES), 4))
    rows = [["town", "accepted", "physical", "medical", "at risk"]]
    rows += [[name, *few, "-" if whole else last]
             for name, (*few, last) in zip(PLACES, counts, strict=True)]  # fmt: skip
    rows[2][2] = rows[4][3] = "-"
    return rows


@pytest.mark.parametrize("whole", [True, False])
def test_a_dash_that_fills_a_column_is_not_guessed_to_be_0(tmp_path, whole):
    reading = read(tmp_path, towns(whole=whole)).changed({"counts": "exact"})
    ends = [end for (_, text), end in bounds_of(reading).items() if text == "-"]
    assert len(ends) > 1
    assert all(high is pd.NA if whole else high == 0 for _, high in ends)


@pytest.mark.parametrize("whole", [True, False])
def test_sums_of_other_columns_say_nothing_of_a_column_of_dashes(tmp_path, whole):
    """Towns add up to the county if dashes are 0; one column has dashes alone, or sums as well."""
    counts = 10 + np.random.default_rng(9).integers(0, 900, (6, 16, 3))
    counts[:, ::3, 0] = counts[:, 1::4, 1] = counts[:, 2::4, 2] = 0
    rows = [["year", "town", "deaths", "births", "moves"]]
    for year, towns in enumerate(counts.tolist(), 2010):
        every = [["All", *np.sum(towns, axis=0)], *([f"t{k}", *few] for k, few in enumerate(towns))]
        rows += [[year, name, a or "-", b or "-", "-" if whole else c or "-"]
                 for name, a, b, c in every]  # fmt: skip
    bounds = bounds_of(read(tmp_path, rows).changed({"counts": "exact"}))
    last = [bounds[number, "-"] for number, row in enumerate(rows, 1) if row[2:].count("-") == 1
            and row[4] == "-"]  # fmt: skip
    assert len(last) > 4
    assert [high is pd.NA or bool(high > 0) for _, high in last] == [whole] * len(last)


def test_a_heading_above_one_column_alone_is_no_sign_that_all_share(tmp_path):
    rows = [["place", "rural", "urban!!towns", "other"]]
    rows += [[name, 5 + k, 9 + 2 * k, 7 * k] for k, name in enumerate(PLACES)]
    labels = {*read(tmp_path, rows).changed({"counts": "exact"}).cells.stack()}
    assert any("towns" in str(label) for label in labels)


def test_headings_that_begin_with_the_word_for_counts_are_counts(tmp_path):
    """A word that only begins alike, such as *County* beside *Count*, is another one."""
    frame = pd.DataFrame(np.random.default_rng(7).integers(0, 2000, (40, 3)))
    for heads, counted in (
        (["Anzahl", "AnzahlTot", "AnzEinwohner"], {"Anzahl", "AnzahlTot"}),
        (["Count", "CountMen", "Counties"], {"Count", "CountMen"}),
    ):
        rows = [["Bezirk", *heads]]
        rows += [[f"b{k}", *few] for k, few in enumerate(frame.to_numpy())]
        assert {*read(tmp_path, rows).cells["category 1"]} == counted


@pytest.mark.parametrize("off", [0, 4])
def test_a_column_beside_numbers_and_shares_of_others_is_their_sum_if_they_add_up(tmp_path, off):
    counts = np.random.default_rng(8).integers(20, 400, (len(PLACES), 3))
    rows = [
        ["", "enrolled", "vaccinated", "", "exempt", "", "unknown", ""],
        ["school", "", "#", "%", "#", "%", "#", "%"],
    ]
    for name, few in zip(PLACES, counts, strict=True):
        whole = int(few.sum()) + off
        rows.append([name, whole, *(x for n in few for x in (n, f"{100 * n / whole:.1f}"))])
    rows[5][2] = rows[5][3] = "*"
    bounds = bounds_of(read(tmp_path, rows).changed({"counts": "exact"}))
    assert (bounds[6, "*"] == (counts[3, 0], counts[3, 0])) is (off == 0)


def wards(mark="-", *, column=True):
    """Return wards with men, women, ages and one column of marks alone; no woman is in ward 3."""
    counts = np.random.default_rng(6).integers(20, 300, (8, 2, 2))
    counts[::3, 1] = counts[5, 0] = counts[2, :, 0] = counts[4, :, 1] = 0
    counts = np.concatenate([counts, counts.sum(axis=0, keepdims=True)])
    rows = [["ward", "All", "Men", "Women", "Under 40", "40 and over", *["Foreigners"] * column]]
    for k, few in enumerate(counts):
        numbers = [few.sum(), *few.sum(axis=1), *few.sum(axis=0)]
        name = "Total" if k == 8 else f"ward {k}"
        rows.append([name, *(n or "-" for n in numbers), *[mark] * column])
    return rows


def test_a_column_of_dashes_alone_is_by_itself_where_sums_show_that_others_are_0(tmp_path):
    reading = read(tmp_path, wards())
    assert reading.rules["counts"] == "exact"
    assert not reading.open
    assert reading.rules["marks.-"] == "0"
    assert reading.rules["columns.Foreigners.marks"] == "withheld"
    stated = reading.cells[reading.cells["stated"] == "-"]
    assert len(stated) > 9
    ends = [end for (_, text), end in all_bounds(reading) if text == "-"]
    assert [high == 0 for _, high in ends if high is not pd.NA] == [True] * (len(ends) - 9)
    said = read(tmp_path, wards(), **{"columns.Foreigners.marks": "1-4"})
    assert (1, 4) in bounds_of(said).values()
    assert "columns.Foreigners.marks" not in read(tmp_path, wards(), **{"marks.-": "0"}).rules
    assert "columns.Foreigners.marks" not in read(tmp_path, wards(column=False)).rules


def test_another_mark_alone_in_a_column_is_no_dash(tmp_path):
    reading = read(tmp_path, wards("*"))
    assert (reading.rules["marks.-"], reading.rules["marks.*"]) == ("0", "withheld")
    assert "columns.Foreigners.marks" not in reading.rules


@pytest.mark.parametrize("mark", ["*", "-"])
def test_a_column_withheld_everywhere_may_be_a_part_where_another_is_withheld(tmp_path, mark):
    """Sums hold without it in five rows; in the sixth it is 3, and hides behind a small count."""
    counts = np.random.default_rng(7).integers(20, 300, (6, 2))
    rows = [["area", "All", "Births", "Deaths", "Adoptions"]]
    rows += [[f"a{k}", a + b, a, b, mark] for k, (a, b) in enumerate(counts)]
    rows[2][1], rows[2][3] = counts[1, 0] + 7, "x"  # 4 deaths and 3 adoptions
    low, high = bounds_of(read(tmp_path, rows).changed({"counts": "exact"}))[3, "x"]
    assert low <= 4
    assert high is pd.NA or high >= 7
