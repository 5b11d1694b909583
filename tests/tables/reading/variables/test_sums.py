"""Sums between labels: those of one label alone cost nothing, and change nothing."""

import itertools

import numpy as np
import pytest

from bayesrisk.tables.reading.reading import TableReading
from bayesrisk.tables.reading.variables.judgements import SumInGroups
from bayesrisk.tables.reading.variables.searches import SumSearch
from bayesrisk.tables.reading.variables.sums import CodedLabels


@pytest.mark.parametrize("alone", [0, 50, 400])
def test_groups_of_one_label_take_no_room_and_say_nothing(alone):
    """Two groups add up; each of many labels more stands in a group of its own."""
    rows = [
        ({"age": age, "place": place}, count)
        for place, counts in {"A": (30, 10, 20), "B": (70, 45, 25)}.items()
        for age, count in zip(("all", "young", "old"), counts, strict=True)
    ]
    rows += [({"age": f"code {i}", "place": f"P{i}"}, i) for i in range(alone)]
    coded = CodedLabels([labels for labels, _ in rows], [(n, n) for _, n in rows])
    sums = SumSearch("age", coded, {})
    assert sums.low.shape == (2, 3 + alone)
    groups = sums.adding_up(["young", "old"])("all")
    assert (groups.telling, groups.good, groups.above, groups.exact) == (2, 2, 0, 2)
    assert sums.adding_up(["all", "old"])("young").good == 0
    assert sums.exceeded() == {"young", "old"}


@pytest.mark.parametrize(("bias", "balanced"), [(0.0, True), (1.2, True), (3.0, False)])
def test_many_rounded_sums_may_miss_their_total_by_a_little(bias, balanced):
    """Of 48 sums of 17 rounded counts one in twenty misses by 2 standard errors, by chance."""
    rng, rows, ends = np.random.default_rng(6), [], []
    noise = rng.normal(0, 4, 48)
    noise = np.round(noise - noise.mean() - bias)
    for group, miss in enumerate(noise.astype(int).tolist()):
        parts = rng.integers(1000, 90000, 17).tolist()
        for label, count in [("all", sum(parts) + miss), *enumerate(parts)]:
            rows.append({"area": str(label), "group": str(group)})
            ends.append((count - 2, count + 2))
    sums = SumSearch("area", CodedLabels(rows, ends), {})
    groups = sums.adding_up([str(k) for k in range(17)])("all")
    assert (groups.good, groups.telling) == (48, 48)
    assert groups.fitting
    assert groups.balanced == balanced


@pytest.mark.parametrize("nowhere", [False, True])
def test_a_label_that_stands_nowhere_keeps_no_group_out(nowhere):
    rng, rows, ends = np.random.default_rng(8), [], []
    for group, miss in enumerate([-3, 2, 4, -1, 0, -2, 3, -4, 1, 0, 2, -2]):
        parts = rng.integers(1000, 90000, 4).tolist()
        counts = [("all", sum(parts) + miss), *enumerate(parts), *[("none", 0)] * nowhere]
        for label, count in counts:
            rows.append({"area": str(label), "group": str(group)})
            ends.append((max(count - 2, 0), count + 2))
    sums = SumSearch("area", CodedLabels(rows, ends), {})
    groups = sums.adding_up([*"0123", *["none"] * nowhere])("all")
    assert groups.balanced
    assert groups.fitting


@pytest.mark.parametrize(("others", "balanced"), [(0, True), (60, False)])
def test_withheld_counts_are_small_and_no_sign_that_a_total_counts_others(others, balanced):
    """Of those from 1 to 4 most are 1, so that totals are below the sum of their middles."""
    rng, rows, ends = np.random.default_rng(9), [], []
    for group in range(30):
        hidden = rng.choice([1, 2, 3, 4], 40, p=[0.4, 0.3, 0.2, 0.1]).tolist()
        parts = rng.integers(1000, 9000, 10).tolist()
        total = sum(parts) + sum(hidden) + others
        counts = [("all", total, 2), *((str(k), n, 2) for k, n in enumerate(parts))]
        for label, count, off in counts:
            rows.append({"area": label, "group": str(group)})
            number = count + int(rng.integers(-off, off + 1))
            ends.append((number - off, number + off))
        for k in range(len(hidden)):
            rows.append({"area": f"small {k}", "group": str(group)})
            ends.append((1, 4))
    sums = SumSearch("area", CodedLabels(rows, ends), {})
    groups = sums.adding_up([k for k in sums.column if k != "all"])("all")
    assert groups.fitting
    assert groups.balanced == balanced


@pytest.mark.parametrize(
    ("case", "off", "holds"), [("older", 0, 1), ("older", 1, 0), ("men", 0, 0)]
)
def test_labels_that_no_group_has_together_make_up_the_total_where_they_stand(case, off, holds):
    """The first class is called otherwise from 2020 on, so that each year has two of three.

    Years that have no label in common are of two variables: 2019 by age, and later ones by sex.
    """
    names = {2019: "under 19", 2020: "under 20", 2021: "under 20"}
    rows, ends = list[dict[str, str]](), list[tuple[int, int]]()
    for year, name in names.items():
        first, second = year % 97 + 30, year % 89 + 60
        other = "older" if year == 2019 else case
        counts = {name: first, other: second, "all": first + second + off * (year == 2021)}
        for label, count in counts.items():
            rows.append({"age": label, "year": str(year)})
            ends.append((count, count))
    sums = SumSearch("age", CodedLabels(rows, ends), {})
    groups = sums.adding_up([k for k in sums.column if k != "all"])("all")
    assert (groups.telling, groups.good) == ((3, 3) if holds else (0, 0))


def table_of(rows):
    """Return sums of the labels of the columns of a table, in a group for each row."""
    pairs = [({"kind": k, "row": str(i)}, n) for i, row in enumerate(rows) for k, n in row.items()]
    coded = CodedLabels([labels for labels, _ in pairs], [(n, n) for _, n in pairs])
    return SumSearch("kind", coded, {})


@pytest.mark.parametrize(("off", "nearly"), [([], False), ([1], True), ([1, 2, 3], False)])
def test_a_sum_may_hold_but_in_few_groups(off, nearly):
    """One group in 24 denies a sum by 1; three are too many for a fault of printing."""
    rng = np.random.default_rng(3)
    rows = [{"a": int(a), "b": int(b), "t": int(a + b)} for a, b in rng.integers(5, 90, (24, 2))]
    for group in off:
        rows[group]["t"] -= 1
    sums = table_of(rows)
    assert sums.adding_up(["a", "b"])("t").nearly == nearly
    one = sums.in_groups("t", ["a", "b"])
    assert len(one.contradicting) == 3 * len(off)
    assert one.holding.numbers[1].sum() == 24 - len(off)


def test_sums_are_found_wherever_their_parts_stand():
    rng = np.random.default_rng(5)
    rows = []
    for a, b, c, d in rng.integers(0, 70, (30, 4)).tolist():
        rows.append({"all": a + b + c, "d": d, "c": c, "ab": a + b, "a": a, "b": b})
    tree = table_of(rows).combined(["all", "d", "c", "ab", "a", "b"], {}, 20.0)
    assert {k: {*v} for k, v in tree.items()} == {"ab": {"a", "b"}, "all": {"ab", "c"}}
    # Of as many groups as labels every column is some combination of the others.
    assert table_of(rows[:4]).combined(["all", "d", "c", "ab", "a", "b"], {}, 20.0) == {}


@pytest.mark.parametrize(("bits", "exact", "certain"), [(2, 1, False), (9, 1, True), (9, 0, False)])
def test_sums_of_small_counts_in_two_groups_hold_by_chance(bits, exact, certain):
    """1 = 0 + 1 twice says next to nothing; 812 = 300 + 512 twice is no chance."""
    group = [1, 1, 0, 0, exact, 0, bits]
    one = SumInGroups(np.array([group, group]).T, np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert one.certain == certain


def places(rng, number, columns):
    """Return labels of a random tree in order, each before its parts, its parts, and counts."""
    parents = [-1, *(int(rng.integers(max(0, k - 4), k)) for k in range(1, number))]
    inner = {p: [k for k in range(1, number) if parents[k] == p] for p in range(number)}
    order, stack = [], [0]
    while stack:
        order.append(stack.pop())
        stack += inner[order[-1]][::-1]
    counts = {k: rng.integers(200, 90000, columns) for k in order if not inner[k]}
    for k in reversed(order):
        counts[k] = counts.get(k, sum(counts[p] for p in inner[k]))
    tree = {str(k): [str(p) for p in inner[k]] for k in order if inner[k]}
    return [str(k) for k in order], tree, {str(k): counts[k] for k in order}


def outline(labels, counts):
    rows = [({"place": k, "year": str(y)}, int(n)) for k in labels for y, n in enumerate(counts[k])]
    coded = CodedLabels([x for x, _ in rows], [(n, n) for _, n in rows])
    return SumSearch("place", coded, {}).outline(labels, 8)


@pytest.mark.parametrize("seed", range(12))
def test_a_tree_in_order_is_told_from_its_sums_alone(seed):
    rng = np.random.default_rng(seed)
    labels, tree, counts = places(rng, int(rng.integers(6, 90)), int(rng.integers(3, 6)))
    assert outline(labels, counts) == tree
    leaf = next(k for k in labels if k not in tree)
    counts[leaf] = counts[leaf] + np.eye(len(counts[leaf]), dtype=np.int64)[0]
    assert outline(labels, counts) == {}


def test_small_counts_that_add_up_in_several_ways_are_no_tree():
    counts = {k: np.array([n]) for k, n in zip("abcdefg", (6, 3, 1, 2, 3, 1, 2), strict=True)}
    assert outline([*"abcdefg"], counts) == {}


@pytest.mark.parametrize("size", [300, 3000])
def test_steps_of_an_outline_grow_as_its_labels(size, monkeypatch):
    labels, tree, counts = places(np.random.default_rng(size), size, 3)
    steps, below = [], SumSearch._sums_below

    def counted(self, label, rest):
        steps.append(label)
        return below(self, label, rest)

    monkeypatch.setattr(SumSearch, "_sums_below", counted)
    assert outline(labels, counts) == tree
    assert len(steps) <= 2 * size


@pytest.mark.parametrize("joined", [True, False])
def test_lists_of_few_labels_each_are_one_variable_where_they_share_labels(joined):
    """Of many faiths each place has a few.  Ages and sexes have only *unknown* in common."""
    rng, rows = np.random.default_rng(4), list[dict[str, int]]()
    for place in range(40):
        if joined:
            faiths = rng.choice([f"faith {k}" for k in range(9)], 3, replace=False).tolist()
        else:
            faiths = [["young", "old", "unknown"], ["men", "women", "unknown"]][place % 2]
        counts = dict(zip(faiths, rng.integers(5, 90, 3).tolist(), strict=True))
        rows.append(counts | {"all": sum(counts.values())})
    sums = table_of(rows)
    groups = sums.adding_up([k for k in sums.column if k != "all"])("all")
    assert (groups.telling, groups.good) == ((40, 40) if joined else (0, 0))
    rows[7]["all"] += 1  # one sum that misses
    groups = table_of(rows).adding_up([k for k in sums.column if k != "all"])("all")
    assert groups.good == 0


@pytest.mark.parametrize(("off", "complete"), [(0, True), (1, False), (-40, False)])
def test_one_total_of_several_variables_shows_that_labels_of_each_make_it_up(
    off, complete, tmp_path
):
    rng, people = np.random.default_rng(3), list(itertools.product("AB", ("Men", "Women"), "xyz"))
    counts = rng.integers(20, 900, (len(people), 4))
    rows = [[*labels, *map(str, n)] for labels, n in zip(people, counts, strict=True)]
    rows[5][-1] = "*"  # a count that follows from all others
    sums = np.add(counts.sum(axis=0), [off, 0, 0, 0])
    rows += [["Total", "Total", "Total", *map(str, sums)]]
    text = "\n".join(map(",".join, [["Group", "Sex", "Kind", "Y1", "Y2", "Y3", "Y4"], *rows]))
    file = tmp_path / "t.csv"
    file.write_text(text + "\n", encoding="utf-8")
    reading = TableReading.read(file)
    assert ("group" in reading.separate) is not complete
    assert any("hold in 3 of 3 groups" in line for line in reading.lines) is complete
