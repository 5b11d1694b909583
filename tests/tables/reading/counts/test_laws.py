"""Laws of counts and marks that numbers, units and levels of places show, and where they do not."""

import itertools

import numpy as np
import pandas as pd
import pytest

import bayesrisk as br
from bayesrisk import TableReading

AGES = ("under 1", *(str(age) for age in range(1, 12)))


@pytest.mark.parametrize(
    ("head", "text", "law"),
    [
        ("Item", "Population (thousand persons)", "nearest-1000"),
        ("表章項目", "人口【千人】", "nearest-1000"),
        ("UNIT_MULT", "3", "nearest-1000"),
        ("表章項目", "人口【人】", "exact"),
        ("UNIT_MULT", "0", "exact"),
        ("Item", "Income (thousand dollars)", "exact"),
    ],
)
def test_a_column_that_is_constant_says_the_unit_of_counts(head, text, law):
    rng = np.random.default_rng(3)
    parts = rng.integers(20_000, 90_000, 40)
    people = np.append(parts, parts.sum())
    people = (people + 500) // 1000 if law != "exact" else people
    names = [*(f"Town {k}" for k in range(40)), "Total"]
    frame = pd.DataFrame({"Town": names, head: text, "Persons": people.astype(str)})
    reading = TableReading.from_frame(frame)
    assert reading.rules["counts"] == law


def deaths(*, hidden=False, contradictions=0):
    """Return deaths by age, sex and year; a dash stands for 0, or for what is hidden.

    The total of men and women is wrong by one in some years.
    """
    rng, rows = np.random.default_rng(8), list[dict[str, object]]()
    for year in range(1980, 2020):
        counts = rng.integers(11, 60, (len(AGES), 2))
        small = rng.random(counts.shape) < 0.05
        counts[small] = rng.integers(11, 25, small.sum()) if hidden else 0
        texts = np.where(small, "-", counts.astype(str))
        for age, row, text in zip(AGES, counts, texts, strict=True):
            wrong = int(year - 1980 < contradictions and age == "5")
            total = row.sum() + wrong
            rows.append({"year": str(year), "age": age, "men": text[0], "women": text[1],
                         "Total": str(total) if total else "-"})  # fmt: skip
    return pd.DataFrame(rows)


def test_a_dash_is_0_although_the_agency_contradicts_itself_in_few_sums():
    reading = TableReading.from_frame(deaths(contradictions=1))
    assert reading.rules["marks.-"] == "0"
    assert reading.rules["counts"] == "exact"
    assert not reading.open
    assert "miss" not in TableReading.from_frame(deaths()).questions["marks.-"][1]


@pytest.mark.parametrize(("hidden", "contradictions"), [(True, 0), (False, 40)])
def test_a_dash_whose_sums_miss_is_not_0(hidden, contradictions):
    frame = deaths(hidden=hidden, contradictions=contradictions)
    frame.loc[frame["age"] == "5", ["men", "women"]] = ["-", "30"]
    assert TableReading.from_frame(frame).rules["marks.-"] == "withheld"


def test_a_total_below_a_part_in_one_of_many_groups_counts_all_and_that_group_is_left_out():
    frame = deaths()
    row = frame.index[frame["age"] == "3"][7]
    frame.loc[row, ["men", "women", "Total"]] = ["31", "12", "9"]
    reading = TableReading.from_frame(frame)
    assert reading.rules["totals.sex"] == "complete"
    stated = {(c.row, c.stated) for c in reading.stated_cells.itertuples()}
    assert not stated & {(row + 1, text) for text in ("31", "12", "9")}
    frame.loc[frame["age"] == "3", "Total"] = "9"  # of all years: no total of these
    reading = TableReading.from_frame(frame)
    assert reading.rules.get("totals.sex") != "complete"


def exclusions(*, rounded=True):
    """Return counts by region, town and school: those of regions are rounded, small ones hidden."""
    rng, rows = np.random.default_rng(12), list[dict[str, str]]()
    for year, region in itertools.product(range(2010, 2016), ("North", "South", "West")):
        counts = rng.integers(0, 40, (8, 3))
        for k, (row, kind) in itertools.product(range(8), enumerate(("pri", "sec", "special"))):
            n = counts[k, row]
            rows.append({"year": str(year), "region": region, "town": f"{region} town {k}",
                         "school": kind, "pupils": "x" if 0 < n < 3 else str(n)})  # fmt: skip
        for row, kind in enumerate(("pri", "sec", "special")):
            n = counts[:, row].sum()
            n = (n + 2) // 5 * 5 if rounded else n
            rows.append({"year": str(year), "region": region, "town": "", "school": kind,
                         "pupils": str(n)})  # fmt: skip
    return pd.DataFrame(rows)


def test_counts_of_regions_may_be_rounded_where_those_of_towns_are_exact():
    reading = TableReading.from_frame(exclusions())
    assert reading.rules["counts"] == "exact"
    assert reading.rules["labels.town.(blank).counts"] == "nearest-5"
    assert not reading.open
    reading = TableReading.from_frame(exclusions(rounded=False))
    assert reading.rules["counts"] == "exact"
    assert not any(name.endswith("(blank).counts") for name in reading.rules)


def test_the_screen_says_what_ranges_are():
    frame = pd.DataFrame({"day": ["1 May", "2 May", "3 May"], "cases": ["<5", "10+", "36"]})
    lines = TableReading.from_frame(frame).lines
    assert any("'<5' is 0-4" in line and "'10+' is 10+" in line for line in lines)
    frame["cases"] = ["<5", "0", "36"]
    assert any("marks.<5=1-4" in line for line in TableReading.from_frame(frame).lines)
    frame["cases"] = ["5", "10", "36"]
    assert not any(" is 5" in line for line in TableReading.from_frame(frame).lines)


@pytest.mark.parametrize("text", ["<5", "0"])
def test_a_range_says_why_no_count_is_small(text):
    rng = np.random.default_rng(4)
    cases = rng.poisson(6, (60, 2))
    texts = np.where((cases > 0) & (cases < 5), text, cases.astype(str))
    frame = pd.DataFrame(texts, columns=["Men", "Women"])
    frame.insert(0, "Town", [f"Town {k}" for k in range(60)])
    assert ("counts" in TableReading.from_frame(frame).open) is (text == "0")
    assert "counts" not in TableReading.from_frame(frame, **{"marks.0": "0-4"}).open


def test_one_count_that_stands_on_many_days_is_no_evidence_of_rounding():
    days = [f"{k} May" for k in range(1, 31)]
    rng = np.random.default_rng(2)
    other = rng.integers(60, 900, 30).astype(str)
    frame = pd.DataFrame({"day": days * 2, "town": ["Ash"] * 30 + ["Elm"] * 30,
                          "cases": ["50"] * 30 + [*other]})  # fmt: skip
    assert not TableReading.from_frame(frame).open
    frame["cases"] = [str(50 * k) for k in range(2, 32)] + [*other]
    assert "multiples of" in TableReading.from_frame(frame).questions["counts"][1]


@pytest.mark.parametrize(
    ("columns", "asked"),
    [
        ({"Unit": "osoba", "Wartosc": "number"}, False),
        ({"Unit": "cow", "Wartosc": "number"}, True),
    ],
)
def test_a_column_that_is_constant_says_whom_a_value_counts(columns, asked):
    numbers = [str(211 + 37 * k) for k in range(12)]
    frame = pd.DataFrame({"Kraj": [f"Kraj {k}" for k in range(12)]})
    frame = frame.assign(**{n: numbers if t == "number" else t for n, t in columns.items()})
    assert bool(TableReading.from_frame(frame).open) is asked


@pytest.mark.parametrize(
    ("most_off", "law", "asked"),
    [(2, "perturbed-", True), (0, "exact", False), (900, "exact", True)],
)
def test_a_column_that_misses_the_others_by_little_is_their_total(most_off, law, asked):
    """Means of years are rounded, each by itself; no word says which column counts all."""
    rng = np.random.default_rng(4)
    kinds = pd.DataFrame(
        rng.integers(20, 900, (60, 4)), columns=["theft", "fraud", "arson", "harm"]
    )
    every = kinds.sum(axis=1) + rng.integers(-most_off, most_off + 1, 60)
    frame = kinds.assign(offences=every + 900 * (most_off > 2)).astype(str)
    frame.insert(0, "place", [f"Place {k}" for k in range(60)])
    reading = TableReading.from_frame(frame)
    assert reading.rules["counts"].startswith(law)
    assert ("counts" in reading.open) == asked
    counts_all = any("'offences' counts all" in line for line in reading.lines)
    assert counts_all == (most_off < 900)


def moves(*, base, note="", years=12):
    """Return moves into towns, rounded to 10, and those of all, rounded to a base; the truth."""
    truth = np.random.default_rng(5).integers(300, 4000, (9, years))
    land = truth.sum(axis=0, keepdims=True)
    rows = np.concatenate([(land + base // 2) // base * base, (truth + 5) // 10 * 10])
    names = ["LAND", *(f"Town {k}" for k in range(9))]
    heads = [f"{1990 + k}" for k in range(years)]
    lines = [["Persons who moved", *[""] * years], ["Area", *heads]]
    lines += [[name, *map(str, row)] for name, row in zip(names, rows, strict=True)]
    lines += [[note, *[""] * years]] * bool(note)
    return lines, land[0]


def read_lines(lines, tmp_path, **settings):
    file = tmp_path / "t.csv"
    file.write_text("\n".join(",".join(row) for row in lines), encoding="utf-8")
    return TableReading.read(file, **settings)


@pytest.mark.parametrize(
    ("base", "years", "note", "law"),
    [
        (100, 12, "", "random-100"),
        (10, 12, "", ""),  # of 12 totals some are no multiples of 100
        (100, 2, "", ""),  # too few to show it
        (100, 2, "Rounded to the nearest ten for towns. All: nearest 100", "nearest-100"),
        (100, 2, "Rounded to the nearest ten and nearest hundred for all", "nearest-100"),
    ],
)  # fmt: skip
def test_a_label_is_rounded_to_a_larger_base_than_others_if_its_counts_or_a_note_say_so(
    base, years, note, law, tmp_path
):
    lines, land = moves(base=base, years=years, note=note)
    reading = read_lines(lines, tmp_path).accepted()
    assert reading.rules.get("labels.area.LAND.counts", "") == law
    if base == 100 and law:
        bounds = br.reconstruction.count_bounds(br.PublishedTables(*reading.parts)).counts
        cells = reading.stated_cells.reset_index(drop=True)
        row = bounds.merge(cells.rename(columns={"place": "geoid"}), on=["geoid", "table", "cell"])
        row = row[row["row"] == 3]
        assert (row["low"].to_numpy() <= land).all()
        assert (land <= row["high"].to_numpy()).all()


@pytest.mark.parametrize("finer", [1, 6])
def test_few_labels_may_be_rounded_to_a_smaller_base_than_most(finer):
    rng = np.random.default_rng(3)
    rows = [{"area": f"area {k}", "age": f"{age}-{age + 9}", "Persons": str(count)}
            for k in range(20) for age in range(0, 90, 10)
            for count in [rng.integers(1, 400) * (5 if k < finer else 10)]]  # fmt: skip
    reading = TableReading.from_frame(pd.DataFrame(rows))
    assert reading.rules["counts"] == "random-10"
    fine = {n for n, rule in reading.rules.items() if rule == "random-5"}
    assert fine == {f"labels.area.area {k}.counts" for k in range(finer)}
    assert not reading.open


def test_counts_of_many_labels_that_are_multiples_of_more_are_asked_about():
    rng = np.random.default_rng(3)
    rows = [{"area": f"area {k}", "age": f"{age}-{age + 9}", "Persons": str(count)}
            for k in range(40) for age in range(0, 90, 10)
            for count in [rng.integers(1, 400) * (5 if k % 2 else 10)]]  # fmt: skip
    reading = TableReading.from_frame(pd.DataFrame(rows))
    assert reading.open == {"counts"}
