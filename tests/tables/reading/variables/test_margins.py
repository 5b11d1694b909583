"""Columns of counts side by side: margins of several variables, under whatever names."""

import itertools

import numpy as np
import pandas as pd
import pytest

from bayesrisk import PublishedTables, TableReading
from bayesrisk.reconstruction import count_bounds
from bayesrisk.tables.reading.variables import margins
from bayesrisk.tables.sheets.sheet import Sheet

NAMES = (
    *("alba", "bern", "cora", "dora", "elba", "fino", "gala", "hugo"),
    *("iris", "jena", "kilo", "lima", "mora", "nola", "oslo"),
)


def random_margins(seed):
    """Return a table of places by the margins of some attributes, its truth, and the margins."""
    rng = np.random.default_rng(seed)
    names, total = [*rng.permutation(NAMES)], rng.choice(["Total", "All persons", "quux"])
    sizes = rng.integers(2, 5, rng.integers(1, 4))
    attributes = [[names.pop() for _ in range(size)] for size in sizes]
    rows, mean, places = [], rng.choice([6, 30, 200]), int(rng.integers(3, 9))
    crossed = len(sizes) > 1 and rng.random() < 0.3
    for _ in range(places):
        people = rng.poisson(mean)
        codes = [rng.choice(size, people, p=rng.dirichlet(np.ones(size) * 2)) for size in sizes]
        row = {total: people}
        for labels, code in zip(attributes, codes, strict=True):
            row |= {label: int((code == k).sum()) for k, label in enumerate(labels)}
        for i, a in enumerate(attributes[0] if crossed else ()):
            for j, b in enumerate(attributes[1]):
                row[f"{a} {b}"] = int(((codes[0] == i) & (codes[1] == j)).sum())
        rows.append(row)
    frame = pd.DataFrame(rows)
    if rng.random() < 0.3:
        frame = frame[[*rng.permutation(frame.columns)]]
    truth = frame.to_numpy()
    hidden = (truth > 0) & (truth < rng.choice([3, 5, 11])) & (rng.random(truth.shape) < 0.8)
    return frame, hidden, total


def bounds_of(frame, hidden, total):
    """Return the true and the proved least and most of the counts of each row and column."""
    stated = frame.astype(str).where(~hidden, "*")
    stated.insert(0, "area", [f"place {k}" for k in range(len(frame))])
    reading = TableReading.from_frame(stated, counts="exact").accepted()
    bounds = count_bounds(PublishedTables(*reading.parts))
    assert not bounds.conflict
    cells = reading.cells.merge(
        bounds.counts.rename(columns={"geoid": "place"}), on=["place", "table", "cell"]
    )
    kept = ("place", "table", "cell", "area", "row", "stated", "file", "low", "high", "level")
    results = {}
    for cell in cells[cells["file"] != ""].to_dict("records"):
        parts = {k.removeprefix("parts of "): v for k, v in cell.items() if k[:9] == "parts of "}
        cell |= {k: v for k, v in parts.items() if v != "all"}  # in place of their tree
        labels = {str(v) for k, v in cell.items() if k not in kept}
        heads = [head for head in frame.columns if head in labels] or [total]
        assert len(heads) == 1
        high = 2**40 if pd.isna(cell["high"]) else cell["high"]
        results[cell["row"] - 1, heads[0]] = (
            frame.loc[cell["row"] - 1, heads[0]],
            cell["low"],
            high,
        )
    return results


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_margins_side_by_side_make_nothing_false(first):
    for seed in range(first * 100, first * 100 + 40 + 60 * bool(first)):
        for at, (count, low, high) in bounds_of(*random_margins(seed)).items():
            assert low <= count <= high, (seed, at)


def test_each_margin_adds_up_to_the_total():
    """A count that is withheld in each of three margins follows from the total of its place."""
    rng = np.random.default_rng(3)
    rows = []
    for _ in range(6):
        a, b = rng.integers(100, 400, 2)
        parts = rng.multinomial(a + b, [0.3, 0.3, 0.4])
        halves = rng.multinomial(a + b, [0.5, 0.5])
        rows.append([a + b, a, b, *parts, *halves])
    frame = pd.DataFrame(rows, columns=["quux", *NAMES[:7]])
    hidden = np.zeros(frame.shape, dtype=bool)
    for row, column in ((0, 1), (1, 4), (2, 7)):
        hidden[row, column] = True
    found = bounds_of(frame, hidden, "quux")
    for row, column in zip(*np.nonzero(hidden), strict=True):
        count = frame.iloc[row, column]
        assert found[row, frame.columns[column]] == (count, count, count)


def test_parts_of_a_margin_are_a_tree_of_its_variable():
    """Urban and rural people, and poor and rich ones of each: no second variable."""
    rng = np.random.default_rng(5)
    parts = rng.integers(50, 500, (6, 4))
    frame = pd.DataFrame(parts, columns=["urban poor", "urban rich", "rural poor", "rural rich"])
    frame.insert(0, "urban", parts[:, :2].sum(axis=1))
    frame.insert(1, "rural", parts[:, 2:].sum(axis=1))
    frame.insert(0, "Total", parts.sum(axis=1))
    hidden = np.zeros(frame.shape, dtype=bool)
    hidden[2, 1] = hidden[2, 5] = True
    found = bounds_of(frame, hidden, "Total")
    assert found[2, "urban"][1:] == (frame.loc[2, "urban"],) * 2
    assert found[2, "rural poor"][1:] == (frame.loc[2, "rural poor"],) * 2


def reading_of(heads, rows, **options):
    """Return the reading of a table with rows of headings above its counts."""
    sheet = pd.DataFrame([*heads, *rows]).astype(str)
    frame = sheet.iloc[len(heads) :].reset_index(drop=True)
    frame.columns = ["!!".join(dict.fromkeys(filter(None, c))) for c in zip(*heads, strict=True)]
    return TableReading.from_frame(frame, counts="exact", **options)


def labels_by_variable(reading):
    schema = reading.accepted().parts[0].schema
    return {name: schema.attribute(name).labels for name in schema.names}


VARIABLES = {"Sex": ["Male", "Female"], "Group": ["15", "15-19", "20+", "Not stated"],
             "Home": ["rural", "urban"]}  # fmt: skip


def profile(own, short=0):
    """Return headings and rows of three variables below their names, in six places.

    ``own`` adds a total to each of them; ``short`` people have no home.
    """
    rng, rows, heads = np.random.default_rng(8), [], [["Area"], [""]]
    if not own:
        heads = [["Area", "Total"], ["", ""]]
    for name, labels in VARIABLES.items():
        labels_here = ["Total", *labels] if own else labels
        heads[0] += [name] * len(labels_here)
        heads[1] += labels_here
    for place in range(6):
        people = int(rng.integers(300, 900))
        row = [f"p{place}"] + [people] * (not own)
        for name, labels in VARIABLES.items():
            number = people - short * (name == "Home")
            parts = rng.multinomial(number, np.ones(len(labels)) / len(labels))
            row += [number] * own + parts.tolist()
        rows.append(row)
    return heads, rows


@pytest.mark.parametrize("own", [False, True])
def test_headings_above_columns_that_add_up_name_variables(own):
    """All labels of a group are of one variable, whether or not each of them looks like an age."""
    reading = reading_of(*profile(own))
    found = labels_by_variable(reading)
    assert {*found} == {"sex", "age", "home"}
    assert {*found["age"]} == {*VARIABLES["Group"]}
    assert {*found["home"]} == {"rural", "urban"}
    assert not reading.questions


@pytest.mark.parametrize("own", [False, True])
def test_a_heading_above_columns_that_count_fewer_names_no_variable_of_all(own):
    found = labels_by_variable(reading_of(*profile(own, short=7)))
    assert "home" not in found
    assert "rural" not in found.get("category 1", ())


@pytest.mark.parametrize("short", [0, 7])
@pytest.mark.parametrize("kept", [0, 1])
def test_named_groups_share_the_total_of_one_of_them_or_one_sum(kept, short):
    """A group whose sum is another one is of other people, and is no variable of all."""
    heads, rows = profile(own=True, short=short)
    totals = [j for j, text in enumerate(heads[1]) if text == "Total"][kept:]
    cut = [[t for j, t in enumerate(row) if j not in totals] for row in (*heads, *rows)]
    reading = reading_of(cut[:2], cut[2:])
    assert ({"sex", "age", "home"} <= {*reading.cells.columns}) is (not short)
    if kept and not short:
        assert {*labels_by_variable(reading)} == {"sex", "age", "home"}


@pytest.mark.parametrize("off", [0, 1])
def test_what_sexes_add_up_to_in_each_group_is_their_total(off):
    heads = [["Area", *["Total"] * 3, *["Rural"] * 3, *["Urban"] * 3],
             ["", *["Persons", "Males", "Females"] * 3]]  # fmt: skip
    rng, rows = np.random.default_rng(2), []
    for place in range(5):
        rural, urban = rng.integers(100, 900, (2, 2))
        groups = [(g.sum(), *g) for g in (rural + urban, rural, urban)]
        rows.append([f"p{place}", *(n for group in groups for n in group)])
    rows[3][4] += off
    reading = reading_of(heads, rows)
    assert {*reading.accepted().parts[0].schema.names} >= {"sex"}
    assert ("category 2" in reading.separate) == bool(off)


@pytest.mark.parametrize("off", [0, 1])
def test_each_of_two_subtotals_has_its_place_in_the_tree(off):
    """A column that is no sum in one row is a variable by itself."""
    parts = np.random.default_rng(9).integers(50, 900, (8, 6))
    frame = pd.DataFrame(parts, columns=[*NAMES[:6]])
    frame.insert(3, "Total alba", parts[:, :3].sum(axis=1))
    frame["Total dora"] = parts[:, 3:].sum(axis=1) + off * (np.arange(8) == 2)
    frame["Total"] = parts.sum(axis=1)
    frame = frame.astype(str)
    frame.insert(0, "area", [f"place {k}" for k in range(len(frame))])
    reading = TableReading.from_frame(frame, counts="exact")
    names = labels_by_variable(reading)
    assert names["category 1"] == NAMES[:6]
    assert ("category 2" in reading.cells) == bool(off)


def test_a_block_below_its_own_head_is_a_variable_and_many_blocks_are_read():
    """Thirty variables have more combinations than fit in one table: some are by themselves."""
    rng, sizes = np.random.default_rng(4), [2 + k % 9 for k in range(30)]
    people = rng.integers(3000, 9000, 12)
    columns = {"Total": people}
    for k, size in enumerate(sizes):
        columns[f"head {k}"] = people
        parts = np.array([rng.multinomial(n, rng.dirichlet(np.ones(size) * 3)) for n in people])
        columns |= {f"label {k} {NAMES[j]}": parts[:, j] for j in range(size)}
    frame = pd.DataFrame(columns).astype(str)
    frame.insert(0, "area", [f"place {k}" for k in range(len(frame))])
    reading = TableReading.from_frame(frame, counts="exact")
    variables = [name for name in reading.cells if name.startswith("category ")]
    asked = [name for name in reading.questions if name.startswith("totals.category ")]
    assert len(variables) == 30
    assert 0 < len(asked) < 6
    found = labels_by_variable(reading)
    assert sorted(map(len, found.values())) == sorted(sizes)[: 30 - len(asked)]


WORDS = {  # headings of levels by sex, and of ages by sex
    "words": [f"{g} {s} pupils" for g in ("Lower", "Upper", "Total") for s in ("male", "female")],
    "first": [f"{s} {g}" for g in ("5 - 9", "10 - 14", "Total") for s in ("Boys", "Girls")],
    "dashes": [f"{g} - {s}" for g in ("0 - 4", "5 - 9", "Total") for s in ("Male", "Female")],
    "minors": ["Minors - Boys", "Minors - Girls", "18 to 29 - Male", "18 to 29 - Female",
               "Total - Male", "Total - Female"],
}  # fmt: skip


def test_headings_that_cross_totals_with_sexes_are_two_variables():
    frame = pd.DataFrame({f"{g} {s}": ["7"] for g in ("Total", "Rural", "Urban")
                          for s in ("Persons", "Males", "Females")})  # fmt: skip
    frame.iloc[0] = ["30", "14", "16", "12", "5", "7", "18", "9", "9"]
    names = labels_by_variable(TableReading.from_frame(frame, counts="exact"))
    assert [*map(list, names.values())][-2:] == [["Rural", "Urban"], ["Males", "Females"]]


@pytest.mark.parametrize("heads", WORDS.values(), ids=WORDS)
@pytest.mark.parametrize("hidden", [False, True])
def test_headings_that_cross_sexes_with_other_labels_are_two_variables(heads, hidden):
    parts = np.random.default_rng(3).integers(10, 900, (6, 4))
    counts = np.hstack([parts, parts[:, :2] + parts[:, 2:]])
    frame = pd.DataFrame(counts.astype(str), columns=heads)
    if hidden:
        frame.iloc[2, 3] = "*"
    frame.insert(0, "school", [f"s{k}" for k in range(6)])
    reading = TableReading.from_frame(frame, counts="exact").accepted()
    schema = reading.parts[0].schema
    assert [len(schema.attribute(name).labels) for name in schema.names[-2:]] == [2, 2]
    found = count_bounds(PublishedTables(*reading.parts))
    rows = reading.cells.merge(
        found.counts.rename(columns={"geoid": "place"}), on=["place", "table", "cell"]
    ).query("stated == '*'")
    assert rows[["low", "high"]].to_numpy().tolist() == [[parts[2, 3]] * 2] * hidden


def test_headings_that_miss_a_sex_of_a_level_stay_as_they_are():
    heads = ["Lower male", "Lower female", "Upper male", "Upper female", "Old male"]
    rows = np.random.default_rng(4).integers(10, 900, (6, 5)).astype(str)
    frame = pd.DataFrame(rows, columns=heads)
    frame.insert(0, "school", [f"s{k}" for k in range(6)])
    assert {*TableReading.from_frame(frame, counts="exact").cells["category 1"]} == {*heads}


def cut_table(seed, sizes, rows=40, extra=2, largest=400):
    """Return columns of a total, of several cuts of it, and of some others, and the cuts."""
    rng = np.random.default_rng(seed)
    total = rng.integers(largest // 2, largest, rows)
    columns = {"ZTOT": total}
    cuts = []
    for k, size in enumerate(sizes):
        shares = rng.multinomial(total, rng.dirichlet(np.ones(size)))
        cuts.append({f"X{k}Q{i}" for i in range(size)})
        columns |= {f"X{k}Q{i}": shares[:, i] for i in range(size)}
    columns |= {f"W{i}": rng.integers(0, total // 2 + 1) for i in range(extra)}
    return columns, cuts, rng


def cut_reading(columns, order):
    frame = pd.DataFrame({name: columns[name] for name in order}).astype(str)
    frame.insert(0, "town", [f"T{i}" for i in range(len(frame))])
    return TableReading.from_frame(frame, counts="exact")


@pytest.mark.parametrize("seed", range(6))
def test_columns_that_stand_apart_are_cuts_of_one_total(seed):
    columns, cuts, rng = cut_table(seed, (2, 5), extra=seed % 3)
    order = ["ZTOT", *rng.permutation([*columns][1:])]
    said = cut_reading(columns, order if seed % 2 else order[::-1])
    by_variable = [{*labels} for labels in labels_by_variable(said).values()]
    assert all(cut in by_variable for cut in cuts)
    hidden = {k: v.astype(str) for k, v in columns.items()}
    hidden["X0Q1"][3] = hidden["X1Q2"][5] = "*"
    bounds = count_bounds(PublishedTables(*cut_reading(hidden, order).accepted().parts))
    assert not bounds.conflict


@pytest.mark.parametrize("seed", range(4))
def test_sums_that_fail_in_one_row_or_whose_columns_have_twins_are_no_cuts(seed):
    columns, cuts, rng = cut_table(seed, (3, 4), extra=1)
    order = ["ZTOT", *rng.permutation([*columns][1:])]
    columns["X0Q1"] = columns["X0Q1"] + (np.arange(40) == 7)
    columns["X1Q1"] = columns["X1Q1"] + (np.arange(40) == 9)
    by_variable = [{*labels} for labels in labels_by_variable(cut_reading(columns, order)).values()]
    assert not any(cut in by_variable for cut in cuts)


def test_many_columns_of_a_total_are_cut_in_four_ways():
    columns, _, _ = cut_table(3, (90, 8, 2, 2), rows=120, extra=0, largest=900)
    columns["X0Q44"] = columns["X0Q44"] + columns["X0Q45"]
    columns["X0Q45"] = 0 * columns["X0Q45"]  # nobody has this label
    said = cut_reading(columns, [*columns])
    assert sorted(map(len, labels_by_variable(said).values())) == [2, 2, 8, 90]
    assert "counts" not in said.open


@pytest.mark.parametrize("seed", range(8))
def test_each_set_that_adds_up_is_one_that_enumeration_finds(seed):
    """Small numbers: sets of equal sums are many, and none is taken that is not the only one."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, (12, 7))
    chosen = rng.choice(7, 3, replace=False)
    total = counts[:, chosen].sum(axis=1)
    rows = [
        (i, [*map(str, row), str(n)]) for i, (row, n) in enumerate(zip(counts, total, strict=True))
    ]
    columns = margins.CountedColumns.from_sheet(Sheet("t", list("abcdefgz"), rows, []), range(8))
    every = [
        {*one} for size in range(2, 8) for one in itertools.combinations(range(7), size)
        if (counts[:, one].sum(axis=1) == total).all()
    ]  # fmt: skip
    sets, rest = columns.partitions(range(7), 7, 0)
    assert [*map(set, sets)] in ([], every[:1])
    assert len(every) > 1 or sets
    assert sorted([*itertools.chain(*sets), *rest]) == [*range(7)]


def rows_of(seed, *, extra=0, places=7):
    """Return rows of a total, of its parts and their parts, and of another way to make it up."""
    rng, rows = np.random.default_rng(seed), list[tuple[str, str, int]]()
    for place in range(places):
        parts = rng.integers(3, 200, 4)
        total = int(parts.sum())
        cut = np.sort(rng.choice(np.arange(1, total), 2, replace=False))
        other = np.diff([0, *cut, total])
        other[0] += extra
        counts = [total, parts[:2].sum(), *parts[:2], parts[2:].sum(), *parts[2:], *other]
        labels = ["Total", "alba", "bern", "cora", "dora", "elba", "fino", "gala", "hugo", "iris"]
        rows += [(f"p{place}", k, int(n)) for k, n in zip(labels, counts, strict=True)]
    return pd.DataFrame(rows, columns=["Place", "Kind", "Number of people"]).astype(str)


def test_two_ways_to_make_up_a_total_in_rows_are_two_variables():
    frame = rows_of(3)
    frame.loc[2, "Number of people"] = "*"
    reading = TableReading.from_frame(frame)
    assert any("kind: each way to make up its total" in line for line in reading.lines)
    assert {*reading.accepted().parts[0].schema.names} == {"kind", "kind 2"}
    tables = PublishedTables(*reading.accepted().parts)
    bounds = count_bounds(tables)
    assert not bounds.conflict
    cell = reading.cells[reading.cells["stated"] == "*"].iloc[0]
    (low,) = bounds.counts.loc[
        (bounds.counts["geoid"] == cell["place"]) & (bounds.counts["cell"] == cell["cell"]), "low"
    ]
    truth = rows_of(3).loc[2, "Number of people"]
    assert low == int(truth)
    again = TableReading.from_frame(frame, reading=reading)
    assert again.cells.equals(reading.cells)


def test_labels_that_exceed_the_total_are_no_way_to_make_it_up():
    reading = TableReading.from_frame(rows_of(3, extra=1))
    assert "kind 2" not in reading.cells


@pytest.mark.parametrize("last", ["90", "90+"])
@pytest.mark.parametrize("places", [3, 12])
def test_single_years_of_age_beside_groups_of_them_are_one_variable(last, places):
    rng = np.random.default_rng(7)
    counts = rng.integers(5, 60, (places, 91))
    heads = ["aged_0_to_15", "aged_16_to_64", "aged_65_and_over"]
    rows = [
        [f"p{p}", n.sum(), n[:16].sum(), n[16:65].sum(), n[65:].sum(), *n]
        for p, n in enumerate(counts)
    ]
    columns = ["area", "all_ages", *heads, *map(str, range(90)), last]
    frame = pd.DataFrame(rows, columns=columns).astype(str)
    frame.loc[1, "70"] = "*"
    reading = TableReading.from_frame(frame)
    variables = reading.accepted().parts[0].schema.names
    assert len(variables) == 1
    assert not reading.open
    assert any("sums hold in" in line for line in reading.lines)


@pytest.mark.parametrize("change", [0, 1])
def test_a_total_of_a_heading_counts_columns_of_several_depths(change, tmp_path):
    """Columns below another heading make up nothing of it."""
    numbers = np.random.default_rng(5).integers(3, 90, (9, 5)).tolist()
    heads = "Place,Asked,,Rulings,,,\n,All,again,Total answers,Merits,,Closed\n,,,,Yes,No,"
    rows = [f"Pond {k},{a + b},{b},{c + d + e + change * (k == 5)},{c},{d},{e}"
            for k, (a, b, c, d, e) in enumerate(numbers)]  # fmt: skip
    (tmp_path / "t.csv").write_text("\n".join([heads, *rows]) + "\n")
    labels = {*TableReading.read(tmp_path / "t.csv", counts="exact").cells["category 1"]}
    assert ({"Rulings: Merits: No", "Rulings: Closed"} <= labels) is not bool(change)
    assert not any(label.startswith("Asked: All") for label in labels)


@pytest.mark.parametrize("shown", [True, False])
def test_a_total_that_labels_beside_it_do_not_make_up_is_a_label(shown, tmp_path):
    """Labels below another heading do not stand beside it, and say nothing about it."""
    numbers = np.random.default_rng(8).integers(3, 90, (9, 4)).tolist()
    heads = "Place,Claims,,,Groups,\n,Total new claims,Second claims,Taken up again,Asked,Granted"
    rows = [f"Pond {k},{a + b + 90},{a},{b if shown else '*'},{c},{d}"
            for k, (a, b, c, d) in enumerate(numbers)]  # fmt: skip
    (tmp_path / "t.csv").write_text("\n".join([heads, *rows]) + "\n")
    lines = TableReading.read(tmp_path / "t.csv").lines
    assert any("'Total new claims' counts all" in line for line in lines) is not shown
