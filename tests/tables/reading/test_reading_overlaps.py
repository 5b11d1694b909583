"""Labels that may overlap beside a total: a sum that holds by chance makes nothing false."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from bayesrisk.reconstruction import count_bounds
from bayesrisk.tables import PublishedTables
from bayesrisk.tables.reading.reading import TableReading

ILLNESSES = ("heart", "lung", "liver", "kidney", "intensive care", "died")
WORDS = ("Total", "Total", "All cases", "Patients", "Cases", "admissions")


def random_table(seed):
    """Return a table of people who may have several illnesses or none, and its true counts."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 5))
    names = [str(name) for name in rng.permutation(ILLNESSES)[:size]]
    areas = ["north", "south", "east", "west"][: int(rng.integers(2, 5))]
    people = rng.choice([3.0, 8.0, 25.0, 80.0])
    word = str(rng.choice(WORDS))
    share = rng.uniform(0.1, 0.7, size) if rng.random() < 0.5 else rng.dirichlet(np.ones(size))
    truth = {}
    for area in areas:
        has = rng.random((rng.poisson(people), size)) < share
        truth |= {(area, name): int(n) for name, n in zip(names, has.sum(axis=0), strict=True)}
        truth[area, word] = len(has)
    labels = [word, *names] if rng.random() < 0.5 else [*names, word]
    if rng.random() < 0.4:
        truth |= {("Total", x): sum(truth[area, x] for area in areas) for x in labels}
        areas.append("Total")
    least = rng.choice([2, 4, 6])
    rows = [
        (area, x, "*" if 0 < truth[area, x] < least and rng.random() < 0.8 else truth[area, x])
        for area in areas for x in labels
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["area", "condition", "n"]).astype(str), truth, word


def false_bounds(seed):
    """Return the counts that lie outside of what is stated of them, all guesses accepted."""
    frame, truth, word = random_table(seed)
    reading = TableReading.from_frame(frame, counts="exact").accepted()
    bounds = count_bounds(PublishedTables(*reading.parts))
    if bounds.conflict:
        return ["a contradiction"]
    found = reading.cells.merge(
        bounds.counts.rename(columns={"geoid": "place"}), on=["place", "table", "cell"]
    )
    false = []
    for row in found.fillna({"high": 2**40}).to_dict("records"):
        label = word if row["condition"] == "all" else row["condition"]
        count = truth["Total" if row["area"] == "all" else row["area"], label]
        if not row["low"] <= count <= row["high"]:
            false.append(row)
    return false


@pytest.mark.parametrize("first", range(0, 200, 100))
def test_sums_that_hold_by_chance_make_nothing_false(first):
    assert [s for s in range(first, first + 100) if false_bounds(s)] == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200, 3600, 200))
def test_sums_that_hold_by_chance_make_nothing_false_in_many_tables(first):
    assert [s for s in range(first, first + 200) if false_bounds(s)] == []


CHANCE = """
area,condition,n
east,All cases,9
east,died,*
east,heart,0
east,lung,4
north,All cases,5
north,died,2
north,heart,2
north,lung,1
"""


def test_a_sum_in_one_group_alone_does_not_make_labels_exclusive():
    rows = [line.split(",") for line in CHANCE.strip().splitlines()]
    reading = TableReading.from_frame(pd.DataFrame(rows[1:], columns=rows[0]), counts="exact")
    assert reading.rules["totals.condition"] == "separate"
    many = [[a, c, n if n in "0*" else f"{n}000"] for a, c, n in rows[1:]]
    sure = TableReading.from_frame(pd.DataFrame(many, columns=rows[0]), counts="exact")
    assert "totals.condition" not in sure.rules


def test_sexes_exclude_each_other_whatever_their_total_is_called():
    rows = zip("AAABBBCCC", ["M", "F", "MF"] * 3, [3, 4, 7, 5, 1, 6, "*", 2, 6], strict=True)
    reading = TableReading.from_frame(pd.DataFrame(rows, columns=["area", "sex", "n"]))
    assert len(reading.accepted().parts[0].schema.attribute("sex").labels) == 2


def test_ages_that_share_a_year_are_not_exclusive_where_their_sum_exceeds_the_total():
    ages, counts = ["3-6", "6-10", "All"] * 2, ["4", "5", "8", "2", "x", "6"]
    frame = pd.DataFrame({"centre": ["Oak"] * 3 + ["Elm"] * 3, "age": ages, "n": counts})
    reading = TableReading.from_frame(frame)
    assert reading.rules["totals.age"] == "separate"
    bounds = count_bounds(PublishedTables(*reading.accepted().parts))
    assert not bounds.conflict
    stated = bounds.counts[~bounds.counts["table"].str.contains("at most")]
    assert sorted(stated["low"]) == [0, 2, 4, 5, 6, 8]  # 0 for the one that is withheld


@given(
    cuts=st.lists(st.integers(1, 90), min_size=1, max_size=5, unique=True),
    extra=st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), max_size=3),
    ages=st.lists(st.integers(0, 99), min_size=60, max_size=90),
)
def test_groups_of_ages_that_follow_each_other_make_up_the_total(cuts, extra, ages):
    """However other groups overlap, one withheld group is the total less the others."""
    starts = [0, *sorted(cuts)]
    groups = [(a, b - 1) for a, b in pairwise(starts)] + [(starts[-1], 999)]
    others = [(a, b) for a, b in extra if a < b and (a, b) not in groups]
    count = {(a, b): sum(a <= age <= b for age in ages) for a, b in [*groups, *others]}
    text = {(a, b): f"{a}+" if b == 999 else f"{a}-{b}" for a, b in count}
    frame = pd.DataFrame(
        [("north", text[g], str(n)) for g, n in count.items()]
        + [("north", "Total", str(len(ages)))]
        + [("south", text[g], "*" if g == groups[-1] else str(n)) for g, n in count.items()]
        + [("south", "Total", str(len(ages)))],
        columns=["area", "age", "n"],
    ).drop_duplicates(["area", "age"])
    reading = TableReading.from_frame(frame, counts="exact").accepted()
    bounds = count_bounds(PublishedTables(*reading.parts)).counts
    bounds = bounds.rename(columns={"geoid": "place"})
    hidden = reading.cells.query("stated == '*'").merge(bounds, on=["place", "table", "cell"])
    assert hidden[["low", "high"]].to_numpy().tolist() == [[count[groups[-1]]] * 2]


@pytest.mark.parametrize("off", [0, 1])
def test_groups_of_ages_that_contradict_each_other_are_no_parts_of_a_total(off):
    """85+ is known where 85-89 and 90+ are not: its sums count as well."""
    counts = {"0-64": 50, "65-84": 30, "85-89": 7, "90+": 4, "65+": 41, "85+": 11, "All": 91}
    rows = [("north", age, str(n)) for age, n in counts.items()]
    hidden = counts | {"85-89": "na", "90+": "na", "85+": 11 + off}
    rows += [("south", age, str(n)) for age, n in hidden.items()]
    frame = pd.DataFrame(rows, columns=["area", "age", "n"])
    reading = TableReading.from_frame(frame, counts="exact")
    assert ("totals.age" in reading.questions) == bool(off)
    assert not count_bounds(PublishedTables(*reading.accepted().parts)).conflict


def with_a_year(inside, total=True, others=0):
    """Return a reading of counts of 15 (under 15, or of 15-19), 15-19 and 20+, and the counts."""
    rng = np.random.default_rng(11)
    counts = rng.integers(20, 400, (6, 3))
    counts[:, 1] += inside * counts[:, 0]
    rows = []
    for place, (year, group, rest) in enumerate(counts.tolist()):
        every = group + rest + (not inside) * year + others * (place > 3)
        texts = {"15": year, "15-19": "*" if place == 1 else group, "20+": rest}
        texts |= {"Total": every} if total else {}
        rows += [(f"p{place}", label, str(n)) for label, n in texts.items()]
    frame = pd.DataFrame(rows, columns=["area", "age", "n"])
    return frame, counts


@pytest.mark.parametrize("inside", [False, True])
def test_numbers_say_whether_a_year_lies_in_the_range_beside_it(inside):
    frame, counts = with_a_year(inside)
    reading = TableReading.from_frame(frame, counts="exact")
    assert "totals.age" not in reading.questions
    bounds = count_bounds(PublishedTables(*reading.accepted().parts)).counts
    found = reading.accepted().cells.merge(
        bounds.rename(columns={"geoid": "place"}), on=["place", "table", "cell"]
    )
    hidden = found.query("stated == '*'")
    assert hidden[["low", "high"]].to_numpy().tolist() == [[counts[1, 1]] * 2]


def test_ranges_that_share_ages_by_name_alone_exclude_each_other_beside_others():
    frame, _counts = with_a_year(inside=False, others=9)
    reading = TableReading.from_frame(frame, counts="exact")
    assert reading.rules["totals.age"] == "partial"
    bounds = count_bounds(PublishedTables(*reading.accepted().parts))
    assert not bounds.conflict
    assert {*reading.accepted().parts[0].schema.attribute("age").labels} == {
        "15", "15-19", "20+", "others",
    }  # fmt: skip


def test_a_range_in_another_by_name_alone_is_a_guess_that_a_setting_changes():
    frame, _counts = with_a_year(inside=True, total=False)
    reading = TableReading.from_frame(frame, counts="exact")
    assert reading.questions["totals.age"][0] == "partial"
    labels = reading.accepted().parts[0].schema.attribute("age").labels
    assert labels == ("15", "16-19", "20+")
    own = TableReading.from_frame(frame, counts="exact", labels={"age": {"15": "15"}})
    assert {*own.accepted().parts[0].schema.attribute("age").labels} == {"15", "15-19", "20+"}
    apart = TableReading.from_frame(frame, counts="exact", totals={"age": "separate"})
    assert "age" in apart.separate


@pytest.mark.parametrize("larger", [False, True])
def test_a_range_that_counts_more_than_one_around_it_is_by_itself(larger):
    """Under no total: 0-9 is shown to be 0-4 and 5-9, or it counts fewer than one of these."""
    parts = np.random.default_rng(3).integers(20, 90, (5, 2)).tolist()
    rows = []
    for place, (a, b) in enumerate(parts):
        counts = {"0-4": a, "5-9": b, "0-9": (a // 2 if larger else a + b)}
        rows += [(f"p{place}", label, str(n)) for label, n in counts.items()]
    frame = pd.DataFrame(rows, columns=["area", "age", "n"])
    reading = TableReading.from_frame(frame, counts="exact")
    assert "totals.age" not in reading.questions
    assert ("age" in reading.separate) == larger
    assert not count_bounds(PublishedTables(*reading.accepted().parts)).conflict


@pytest.mark.parametrize("off", [0, -1])
def test_counts_of_the_few_groups_that_deny_a_total_are_left_out(off):
    """In one place of 40 the sexes are one more than their total: its counts say nothing."""
    rng, rows = np.random.default_rng(6), []
    for place, (f, m) in enumerate(rng.integers(9, 90, (40, 2)).tolist()):
        whole = f + m + (off if place == 7 else 0)
        rows += [(f"P{place}", s, n) for s, n in (("F", f), ("M", m), ("T", whole))]
    frame = pd.DataFrame(rows, columns=["place", "sex", "count"])
    truth = frame.loc[1, "count"]
    frame = frame.astype(str)
    frame.loc[1, "count"] = "*"
    reading = TableReading.from_frame(frame, counts="exact")
    assert len(reading.cells) == 120 - 3 * (off < 0)
    assert ("totals.sex" in reading.questions) == (off < 0)
    bounds = count_bounds(PublishedTables(*reading.accepted().parts))
    assert not bounds.conflict
    counts = reading.cells.merge(
        bounds.counts.rename(columns={"geoid": "place"}), on=["place", "table", "cell"],
        suffixes=("_label", ""),
    )  # fmt: skip
    hidden = counts[counts["stated"] == "*"]
    assert hidden[["low", "high"]].to_numpy().tolist() == [[truth, truth]]


@pytest.mark.parametrize(("number", "off", "summed"), [(200, 0, 1), (200, 1, 0), (3, 0, 0)])
def test_the_first_of_many_labels_may_be_their_sum(number, off, summed):
    """One group shows a total of many digits; of small numbers it may be chance."""
    parts = np.random.default_rng(1).integers(100, 9000, number) // (1 if number > 9 else 90)
    labels = ["Landia", *(f"Town {i} (X)" for i in range(number))]
    frame = pd.DataFrame({"land": labels, "persons": [int(parts.sum()) + off, *parts.tolist()]})
    reading = TableReading.from_frame(frame, counts="exact")
    assert ("land" not in reading.separate) == bool(summed)


@pytest.mark.parametrize(("others", "complete"), [(0, True), (20, False)])
def test_parts_that_are_rounded_to_0_say_as_much_as_others(others, complete):
    """Totals and parts are rounded to 5, one part mostly to 0: sums hold within rounding."""
    rng, rows = np.random.default_rng(2), []
    for town in range(100):
        counts = [*rng.integers(40, 900, 3).tolist(), int(rng.choice([0, 0, 0, 0, 1, 4, 6]))]
        whole = sum(counts) + others // 3 * 2
        rows.append([f"Town {town}", *(5 * round(n / 5) for n in (*counts, whole))])
    frame = pd.DataFrame(rows, columns=["town", "A", "B", "C", "Not known", "Total"]).astype(str)
    reading = TableReading.from_frame(frame, counts="random-5")
    answers = [reading.rules.get(name) for name in ("totals", "totals.category 1")]
    assert ("complete" if complete else "partial") in answers


def sexes_with(off):
    """Return counts of two sexes and their total in 60 places, off by so much in some."""
    rows = []
    for place, (f, m) in enumerate(np.random.default_rng(6).integers(9, 90, (60, 2)).tolist()):
        counts = {"red": f, "blue": m, "T": f + m + off.get(place, 0)}
        rows += [(f"P{place}", label, str(n)) for label, n in counts.items()]
    return pd.DataFrame(rows, columns=["place", "kind", "count"])


@pytest.mark.parametrize(
    ("off", "guess", "left_out"),
    [
        ({7: 1}, "partial", 0),
        ({7: 1, 30: 9}, "partial", 0),
        ({7: 1, 30: -1}, "complete", 6),
        ({7: -1}, "complete", 3),
        ({}, None, 0),
    ],
)
def test_a_total_that_exceeds_its_parts_in_few_groups_may_count_others(off, guess, left_out):
    frame = sexes_with(off)
    reading = TableReading.from_frame(frame, counts="exact")
    assert reading.questions.get("totals.kind", (None,))[0] == guess
    assert len(reading.cells) == len(frame) - left_out
    assert not count_bounds(PublishedTables(*reading.accepted().parts)).conflict


@pytest.mark.parametrize(("off", "number"), [((3, 9, 21, 30), "56 of 60"), ((3, 9), "58 of 60")])
def test_sums_that_hold_in_most_groups_are_told_beside_no_total(off, number):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.integers(30, 900, (60, 5)), columns=["QA", "QB", "QX", "QC", "QD"])
    slips = np.isin(np.arange(60), off) * np.where(np.arange(60) % 2, 20, -7)
    frame.insert(2, "QT", frame["QA"] + frame["QB"] + slips)
    frame.insert(0, "month of admission", [f"M{i}" for i in range(60)])
    reading = TableReading.from_frame(frame.astype(str))
    assert any(f"'QT' is QA + QB in {number} groups" in line for line in reading.lines)
    assert "category 1" in reading.separate
    unknown = reading.questions["counts"][1].split("sum", 1)[1]
    assert [head in unknown for head in ("'QA'", "'QB'", "'QT'")] == [False] * 3
    assert [head in unknown for head in ("'QX'", "'QC'", "'QD'")] == [True] * 3
    assert not any(" of 60 groups" in line for line in TableReading.from_frame(
        frame.assign(QT=rng.permutation(frame["QT"])).astype(str)).lines)  # fmt: skip


def test_no_sum_is_said_to_hold_in_no_group():
    rng, rows = np.random.default_rng(2), []
    whole = np.zeros(3, int)
    for section in ("North", "South"):
        parts = rng.integers(2000, 90000, (7, 3))
        rows += [[section, f"{section[0]}{'abcdefg'[i]}x", *part] for i, part in enumerate(parts)]
        rows.append([section, f"{section} (Total)", *parts.sum(axis=0)])
        whole += parts.sum(axis=0)
    rows.append(["Country", "Total", *whole])
    frame = pd.DataFrame(rows, columns=["section", "division", "Men", "Women", "Not stated"])
    texts = [text for _, text in TableReading.from_frame(frame.astype(str)).questions.values()]
    assert not any(" in 0 groups" in text or "of ranges" in text for text in texts)


def graduates(seed, *, wrong=0):
    """Return a total with its sexes, and numbers of others that exceed it in some rows."""
    rng, rows = np.random.default_rng(seed), list[tuple[object, ...]]()
    for k in range(12):
        men, women = (int(n) for n in rng.integers(20, 900, 2))
        jobs, hours = (int(n) for n in rng.integers(10, 2500, 2))
        total = men + women + wrong * (k % 3 == 0)
        rows.append((f"s{k}", total, men, women, jobs, hours))
    columns = ["subject", "Total", "Men", "Women", "College jobs", "Other jobs"]
    return pd.DataFrame(rows, columns=columns).astype(str)


def test_a_total_of_sexes_is_their_sum_beside_numbers_of_others():
    reading = TableReading.from_frame(graduates(3))
    assert any("'Total' = Men + Women" in line for line in reading.lines)
    assert not any(name.startswith("totals") for name in reading.questions)


def test_sexes_that_do_not_make_up_a_total_are_not_its_sum():
    reading = TableReading.from_frame(graduates(3, wrong=9))
    assert not any("'Total' = Men + Women" in line for line in reading.lines)


def test_a_group_of_ages_beside_the_total_of_all_ages_is_a_part_of_it():
    rows = [(f"t{k}", age, n) for k in range(9) for age, n in (("under18", 10 + k), ("total", 50))]
    frame = pd.DataFrame(rows, columns=["town", "ages", "population"]).astype(str)
    reading = TableReading.from_frame(frame)
    assert reading.rules["totals.ages"] == "partial"
    assert not reading.open
    frame["ages"] = frame["ages"].replace("under18", "tested")  # of whatever else
    assert "totals.ages" not in TableReading.from_frame(frame).questions
