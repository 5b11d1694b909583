"""Columns that count what columns below other headings do, and columns of marks alone."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk.exceptions import DataError
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


def sexes(total, *, least=0, ages=True):
    """Return men and women of four towns, and a total below the second heading."""
    counts = np.random.default_rng(2).integers(1, 60, (4, 2, 3))
    wholes = counts[:, 1].sum(axis=1) if total == "of women" else counts.sum(axis=(1, 2))
    texts = [[n if n >= least else "*" for n in one.ravel()] for one in counts]
    labels = ["0-17", "18-64", "65+"]
    rows = [["Town", "Men", "", "", "Women", "", "", ""], ["", *labels, *labels, "Total"]]
    if not ages:
        texts = [[*one.sum(axis=1)] for one in counts]
        rows = [["Town", "Men", "Women", ""], ["", "", "", "Total"]]
    return [*rows, *([p, *t, n] for p, t, n in zip(PLACES, texts, wholes, strict=False))]


@pytest.mark.parametrize("ages", [True, False])
@pytest.mark.parametrize("least", [0, 15])
def test_a_total_below_the_last_heading_counts_all_where_sums_say_so(tmp_path, ages, least):
    cells = read(tmp_path, sexes("of all", least=least, ages=ages)).cells
    assert {*cells["sex"]} == {"Men", "Women", "all"}
    assert (cells["sex"] == "all").sum() == 4
    if ages:
        cells = read(tmp_path, sexes("of women", least=least)).cells
        assert (cells["sex"] == "Women").sum() == 16


def test_a_total_below_the_last_heading_is_left_out_where_no_sum_says_what_it_counts(tmp_path):
    rows = sexes("of all")
    rows = [*rows[:2], *([*row[:4], "*", "*", "*", row[-1]] for row in rows[2:])]
    assert {*read(tmp_path, rows).cells["sex"]} == {"Men", "Women"}
    assert not {str(row[-1]) for row in rows[2:]} & {*read(tmp_path, rows).cells["stated"]}


def test_a_second_total_below_the_last_heading_counts_all(tmp_path):
    rows = sexes("of all")
    heads = [["Town", "Men", "", "", "", "Women", *[""] * 4],
             ["", *rows[1][1:4], "Total", *rows[1][4:], "Total"]]  # fmt: skip
    body = [[t, *n[:3], sum(n[:3]), *n[3:6], sum(n[3:6]), n[6]] for t, *n in rows[2:]]
    cells = read(tmp_path, heads + body).cells
    assert [(cells["sex"] == x).sum() for x in ("Men", "Women", "all")] == [16, 16, 4]


def test_places_that_stand_in_several_groups_are_parts_of_each(tmp_path):
    """Three groups: a sum of two of them is no second way to count the third's people."""
    groups = {"Union": "Ash Elm Fir", "Other": "Oak Yew", "League": "Ash Fir Oak"}
    counts = {"Ash": (9, 8), "Elm": (15, 7), "Fir": (12, 31), "Oak": (4, 3), "Yew": (21, 2)}
    rows = [["Place", "Jan", "Feb", "Jan-Feb"], ["Total", 61, 51, 112]]
    for group, places in groups.items():
        whole = [sum(counts[p][k] for p in places.split()) for k in range(2)]
        rows.append([group, *whole, sum(whole)])
        rows += [[f"  {p}", *counts[p], sum(counts[p])] for p in places.split()]
    reading = read(tmp_path, rows)
    names = [n for n in reading.cells
             if n.startswith("place ") and {"Ash", "Oak"} & {*reading.cells[n]}]  # fmt: skip
    assert [(reading.cells[n] == "Ash").sum() for n in names] == [2 * 3]


def districts(last="Country", *, gap=True, hide=False):
    """Return pupils of seven districts below three headings, with the total of all at the end."""
    groups, counts = ("AAA", "BB", "CC"), np.random.default_rng(3).integers(9, 90, (7, 2))
    rows, k = [["District", "First", "Second", "Total"], []], 0
    for group in groups:
        rows += [[f"Province {group[0]}", "", "", ""]]
        for _ in group:
            n = [*counts[k]]
            rows.append([f"d{k}", *("*" if hide and x < 20 else x for x in n), sum(n)])
            k += 1
        rows += [[]] * gap
    n = counts.sum(axis=0) if last == "Country" else counts[-2:].sum(axis=0)
    return [*rows, ["Total", *n, n.sum()]]


@pytest.mark.parametrize("gap", [True, False])
@pytest.mark.parametrize("hide", [True, False])
def test_a_total_below_the_last_group_counts_all_groups_where_it_is_their_sum(tmp_path, gap, hide):
    reading = read(tmp_path, districts(gap=gap, hide=hide))
    total = reading.cells[reading.cells["row"] == len(districts(gap=gap))]
    assert len(total) == 3
    assert not any("Province" in str(x) for x in total.iloc[0])
    if not gap:  # nothing shows that rows of one text are headings
        with pytest.raises(DataError, match="Province A"):
            read(tmp_path, districts("own", gap=False, hide=hide))
        return
    own = read(tmp_path, districts("own", hide=hide)).cells
    assert "Province C" in " ".join(map(str, own[own["row"] == own["row"].max()].iloc[0]))


def causes(*, other=0, note=""):
    """Return cases by town and illness with row totals, and small counts left blank."""
    counts = np.random.default_rng(11).poisson((5, 9, 14, 3), (9, 4))
    counts[range(9), np.arange(9) % 4] = 1 + np.arange(9) % 4  # one in each row at least
    rows = [["town", "flu", "measles", "mumps", "rubella", "Total"]]
    rows += [[p, *("" if 1 <= n <= 4 else n for n in one), one.sum() + other]
             for p, one in zip(PLACES, counts, strict=False)]  # fmt: skip
    return [*rows, [], [note]] if note else rows


def test_blanks_by_which_others_miss_their_total_by_little_are_small_counts(tmp_path):
    reading = read(tmp_path, causes(), counts="exact")
    assert reading.questions["totals.category 1"][0] == "complete"
    assert reading.questions["marks."][0] == "withheld"
    texts = [text for row in causes()[1:] for text in row]
    ends = [end for (_, text), end in all_bounds(reading) if text == ""]
    assert len(ends) == texts.count("") > 9
    assert max(high for _, high in ends) <= 8
    far = read(tmp_path, causes(other=40), counts="exact")
    assert far.rules.get("totals.category 1") != "complete"


@pytest.mark.parametrize(
    ("note", "meaning"),
    [
        ("Cells with fewer than 5 cases are left blank.", "0-4"),
        ("Blank cells: not available", "missing"),
        ("A blank means 1 to 4 cases", "1-4"),
        ("Ages of fewer than 5 years are in another table.", "withheld"),
    ],
)
def test_a_note_says_what_blanks_are(tmp_path, note, meaning):
    assert read(tmp_path, causes(note=note)).questions["marks."][0] == meaning


@pytest.mark.parametrize("name", ["Freedonia", "Total"])
@pytest.mark.parametrize("more", [0, 1])
def test_a_country_below_the_last_group_is_all_groups_if_it_is_the_sum_of_their_totals(
    tmp_path, name, more
):
    rows = districts()[:-1]
    counts = np.array([row[1:] for row in rows[1:] if row and "" not in row])
    sizes, done = iter((3, 2, 2)), 0
    for i in range(len(rows) - 1, 0, -1):
        if not rows[i] and i > 1:
            rows.insert(i, ["All"])
    for row in rows:
        if row == ["All"]:
            size = next(sizes)
            row += [*counts[done : done + size].sum(axis=0)]
            done += size
    n = counts.sum(axis=0) + np.array([more, 0, more])
    cells = read(tmp_path, [*rows, [name, *n]]).cells
    last = " ".join(map(str, cells[cells["row"] == cells["row"].max()].iloc[0]))
    assert ("Province C" in last) == (name != "Total" and more > 0)


def thefts(seed, *, gone=(), hidden=None):
    """Return thefts by year, with those of bicycles and of cars not recorded in the first years.

    ``gone`` are other rows without those of bicycles. In ``hidden``, one was, and is in the total.
    """
    counts = np.random.default_rng(seed).integers(3, 4000, (30, 7))
    counts[:14, 3] = counts[:9, 4] = 0
    rows = [["year", "shops thefts", "home thefts", "other thefts", "bicycle thefts", "car thefts",
             "all thefts", "threats cases", "other crimes"]]  # fmt: skip
    for k, row in enumerate(counts):
        row[3] = (k == hidden) if k in gone or k < 14 else row[3]
        texts = [*row[:3], row[3] * (k > 13 and k not in gone) or "", row[4] or ""]
        rows.append([1980 + k, *texts, row[:5].sum(), row[5] * (k < 20) or "", row[6]])
    return rows


@pytest.mark.parametrize("seed", range(6))
def test_blanks_at_one_end_are_no_counts_in_columns_of_sums_alone(tmp_path, seed):
    """Threats are in no sum, so that nothing is known of those of the last years."""
    reading = read(tmp_path, thefts(seed))
    names = {name: text for name, text in reading.rules.items() if "marks" in name}
    gone = {f"columns.{what} thefts.marks": "missing" for what in ("bicycle", "car")}
    assert names == gone | {"marks.": "withheld"}
    assert sum(not text for (_, text), _ in all_bounds(reading)) == 10
    numbers = {(row, text) for (row, text), (low, high) in all_bounds(reading)
               if text and not low == high == int(text)}  # fmt: skip
    assert not numbers


@pytest.mark.parametrize("change", [{"gone": (17, 22, 25)}, {"hidden": 4}, {"hidden": 13}])
def test_blanks_that_may_hide_counts_are_withheld(tmp_path, change):
    """They stand among stated counts, as withheld ones do, or the total has one more."""
    rules = read(tmp_path, thefts(3, **change)).rules
    assert "columns.bicycle thefts.marks" not in rules
    assert rules["marks."] == "withheld"


def test_the_meaning_of_marks_in_a_column_is_not_that_of_its_numbers(tmp_path):
    rows = [["ward", "men", "women"], ["a", 7, 9], ["b", "*", "*"], ["c", 15, 12]]
    reading = read(tmp_path, rows, counts="exact", **{"columns.men.marks": "1-4"})
    assert {(7, 7), (15, 15), (1, 4)} <= {*bounds_of(reading).values()}


@pytest.mark.parametrize("off", [0, 1])
def test_a_part_of_a_sum_may_be_0_in_many_first_rows(tmp_path, off):
    counts = np.random.default_rng(8).integers(3, 4000, (420, 6))
    counts[:300, 3] = 0
    counts[:, 2] = counts[:, [0, 3, 5]].sum(axis=1)
    counts[410, 2] += off
    heads = ["day", "robbery", "fraud", "robbery and theft", "theft", "arson", "theft of cars"]
    rows = [heads, *([f"day {k}", *row] for k, row in enumerate(counts))]
    assert bool(read(tmp_path, rows).trees) is (off == 0)


@pytest.mark.parametrize("apart", [14, 25])
def test_districts_that_add_up_to_the_last_row_in_most_columns_say_that_counts_are_exact(apart):
    """Moves within a city are none of the city, so its sums miss."""
    draw = np.random.default_rng(3)
    counts = draw.integers(500, 9000, (12, 38))
    total = counts[-5:].sum(axis=0) - np.where(np.arange(38) < apart, 77 + 31 * np.arange(38), 0)
    frame = pd.DataFrame(
        {f"{noun} {i}": [*column, n] for i, (noun, column, n) in
         enumerate(zip(["Persons", "Pupils"] * 19, counts.T, total, strict=True))}
    )  # fmt: skip
    frame.insert(0, "Place", [f"Quarter {x}" for x in "abcdefg"] + [*"PQRST"] + ["Upton"])
    reading = TableReading.from_frame(frame)
    near = any(f"{38 - apart} of 38 groups" in text for _, text in reading.questions.values())
    assert near == (apart == 14)
