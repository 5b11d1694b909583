"""Counts that stand for ranges: bounds, uniqueness and contradictions against enumeration."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from oracles.reconstruction import people, person_tables, solutions
from typer.testing import CliRunner

from bayesrisk.cli.app import app
from bayesrisk.constraints.solvers import make_solver
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.reconstruction import count_bounds, reconstruct, solution_variability
from bayesrisk.reconstruction.records import bounds as bounds_module
from bayesrisk.reconstruction.records.solve import nearest_records
from bayesrisk.release import RangeSpec, RoundingSpec, SimulationOnly, SuppressedCounts
from bayesrisk.tables import Attribute, Geography, PublishedTables, Schema, Table, Workload

OPEN = 2**52
LAWS = {
    "nearest 3": RoundingSpec(3, "nearest"), "random 3": RoundingSpec(3, "random"),
    "nearest 2": RoundingSpec(2, "nearest"), "open top": RangeSpec((0, 1, 3), (0, 1, 3)),
    "threshold": RangeSpec((0, 1, 3), (0, 1, 3), 1), "steps": RangeSpec((0, 2), (0, 2), 2),
    "withheld 1-2": SuppressedCounts(1, 2), "withheld from 2": SuppressedCounts(2), "exact": None,
}  # fmt: skip
SIZES = (2, 2, 2)
NAMES = ("a", "b", "c")


def schema(levels):
    geography = Geography("g", levels, (1, 2)[: len(levels)])
    return Schema("s", tuple(Attribute(n, k) for n, k in zip(NAMES, SIZES, strict=True)), geography)


def table(names):
    """Return the table that crosses some attributes."""
    sizes = [SIZES[NAMES.index(n)] for n in names]
    if not names:
        return Table("ALL", ("ALL0",), {})
    index = np.indices(sizes).reshape(len(names), -1)
    factors = {n: np.eye(k, dtype=int)[i] for n, k, i in zip(names, sizes, index, strict=True)}
    name = "".join(names).upper()
    return Table(name, tuple(f"{name}{at}" for at in range(index.shape[1])), factors)


def published(rng, true, law):
    """Return published counts and which are withheld."""
    hidden = np.zeros(true.shape, bool)
    if isinstance(law, RoundingSpec):
        base = law.base
        below = true // base * base
        up = rng.random(true.shape) < (true - below) / base
        given = (
            below + base * up if law.method == "random" else (2 * true + base) // (2 * base) * base
        )
    elif isinstance(law, RangeSpec):
        given = law.publish(true)
    elif isinstance(law, SuppressedCounts):
        low, high = law.withheld
        hidden = (true >= low) & (true <= high) & (rng.random(true.shape) < 0.8)
        given = np.where(hidden, 0, true)
    else:
        given = true
    return given, hidden


def release(rng, *, blocks, levels=("block",), laws=tuple(LAWS), broken=0.0):
    """Return tables of random blocks, and (level, name, weights, law, published, hidden)."""
    about = schema(levels)
    if len(levels) == 1:
        about = Schema("s", about.attributes, Geography("g", ("block",), (2,)))
        geoids = {"block": np.array([f"{at:02d}" for at in range(blocks)])}
    else:
        codes = [f"{at // 2}{at % 2}" for at in range(blocks)]
        geoids = {"tract": np.unique([code[:1] for code in codes]), "block": np.array(codes)}
    size = int(np.prod(SIZES))
    x = rng.poisson(0.35 if len(levels) == 1 else 0.2, (blocks, size))
    every = [c for n in range(4) for c in itertools.combinations(NAMES, n)]
    tables, counts, hiddens, known = {}, {}, {}, {}
    for level in levels:
        above = np.array(
            [list(geoids[level]).index(g[: len(geoids[level][0])]) for g in geoids["block"]]
        )
        group = np.zeros((len(geoids[level]), blocks), int)
        group[above, np.arange(blocks)] = 1
        for at in rng.choice(8, int(rng.integers(2, 5)), replace=False):
            made = table(every[at])
            weights = made.incidence(about, np.arange(size)).toarray()
            true = group @ x @ weights.T
            law = LAWS[laws[rng.integers(len(laws))]]
            given, hidden = published(rng, true, law)
            if rng.random() < broken:
                given = np.where(hidden, 0, np.maximum(given + rng.integers(-1, 2, given.shape), 0))
            key = level, made.name
            tables[key], counts[key] = made, sp.csr_array(given)
            if hidden.any():
                hiddens[key] = sp.csr_array(hidden)
            if law is not None:
                known[key] = law
    order = {key: tables[key] for level in levels for key in tables if key[0] == level}
    made = PublishedTables(Workload(about, order), geoids, counts, hiddens, known)
    return made, x


def ends(tables, key, known_rule=True):
    """Return the counts that published ones allow, written from the rules again."""
    law = tables.laws.get(key)
    given, hidden = tables.counts[key].toarray(), tables.hidden(*key).toarray()
    low, high = given.copy(), given.copy()
    tried = np.arange(60)
    if isinstance(law, (RoundingSpec, RangeSpec)):
        base = getattr(law, "base", None)
        for at in np.ndindex(given.shape):
            if base is None:
                fits = tried[law.publish(tried) == given[at]]
            elif law.method == "nearest":
                fits = tried[(2 * tried + base) // (2 * base) * base == given[at]]
            else:
                fits = (
                    tried[np.abs(tried - given[at]) < base] if given[at] % base == 0 else tried[:0]
                )
            low[at], high[at] = (fits[0], fits[-1]) if fits.size else (1, 0)
            high[at] = OPEN if high[at] == 59 else high[at]
    rule = law.withheld if law is not None and known_rule else (0, OPEN)
    return np.where(hidden, rule[0], low), np.where(hidden, rule[1], high)


def enumerated(matrix, low, high):
    """Return all histograms, cells without an upper end up to what is asked for; None for many."""
    closed = np.where((matrix > 0) & (high < OPEN)[:, None], np.maximum(high, 0)[:, None], OPEN)
    asked = ((matrix > 0) * np.maximum(low, 0)[:, None]).max(axis=0)
    most = closed.min(axis=0)
    most = np.where(most == OPEN, np.maximum(asked, 1), most)
    try:
        least = np.zeros(most.size, int)
        return solutions(matrix, least, most, low, np.minimum(high, 10**6), most=20_000)
    except MemoryError:
        return None


def system(tables, *, level="block", place=0, known_rule=True):
    """Return rows and ends of one place with all of its blocks."""
    about = tables.workload.schema
    size = int(np.prod(SIZES))
    code = tables.geoids[level][place]
    blocks = [b for b, g in enumerate(tables.geoids["block"]) if g.startswith(code)]
    rows, lows, highs, names = [], [], [], []
    for key, made in tables.workload.tables.items():
        if level == "block" and key[0] != "block":
            continue
        weights = made.incidence(about, np.arange(size)).toarray()
        low, high = ends(tables, key, known_rule)
        for at, g in enumerate(tables.geoids[key[0]]):
            if not g.startswith(code):
                continue
            inside = [tables.geoids["block"][b].startswith(g) for b in blocks]
            for cell in range(len(made.cells)):
                rows.append(np.concatenate([weights[cell] * i for i in inside]))
                lows.append(low[at, cell])
                highs.append(high[at, cell])
                names.append((key[0], g, key[1], made.cells[cell]))
    return np.array(rows), np.array(lows), np.array(highs), names


def check_bounds(tables, found, *, level="block", known_rule=True):
    """Compare bounds with all histograms; return how many counts became narrower."""
    frame = found.counts.set_index(["level", "geoid", "table", "cell"])
    narrower, infeasible = 0, 0
    for place in range(len(tables.geoids[level])):
        matrix, low, high, names = system(tables, level=level, place=place, known_rule=known_rule)
        every = enumerated(matrix, low, high)
        if every is None:
            continue
        part = frame.loc[names]
        if not every:
            assert (part["status"] == "infeasible").all()
            infeasible += 1
            continue
        sums = np.array(every) @ matrix.T
        # A cell in no row with an upper end can hold any number.
        endless = (matrix[high < OPEN] == 0).all(axis=0)
        top = np.where(matrix[:, endless].any(axis=1), OPEN, sums.max(axis=0))
        assert part["low"].tolist() == sums.min(axis=0).tolist()
        assert part["high"].fillna(OPEN).tolist() == top.tolist()
        assert (part["status"] == "proved").all()
        assert part["low_stated"].tolist() == low.tolist()
        assert part["high_stated"].fillna(OPEN).tolist() == high.tolist()
        narrower += int(((sums.min(axis=0) > low) | (top < high)).sum())
    return narrower, infeasible


def check_solutions(tables, *, level="block", known_rule=True):
    """Compare statuses, conflicts and variability with all histograms; return the statuses."""
    how = {"known_rule": known_rule}
    made = reconstruct(tables, scope=level, **how)
    scope = "block" if level == "block" else "tract-joint"
    far = solution_variability(tables, scope=scope, solution=made, **how)
    held, seen = made.histogram().toarray(), []
    for place, code in enumerate(tables.geoids[level]):
        blocks = [b for b, g in enumerate(tables.geoids["block"]) if g.startswith(code)]
        matrix, low, high, names = system(tables, level=level, place=place, known_rule=known_rule)
        every = enumerated(matrix, low, high)
        if every is None:
            continue
        status = {made.status[b] for b in blocks}
        seen += list(status)
        endless = (matrix[high < OPEN] == 0).all(axis=0)
        if not every:
            assert status == {"infeasible"}
            assert far.status[place] == "infeasible"
            if made.problem.coarsened:
                check_conflict(made.conflict[blocks[0]], matrix, low, high, names)
            continue
        if "unknown" in status:
            nobody = (matrix[:, endless] * (low > 0)[:, None]).any(axis=0)
            assert not nobody.all()
            continue
        # Histograms over the cells that the tables tell apart.
        space = made.problem.space
        groups = cells_of(space)
        merged = np.zeros((len(every), len(blocks), held.shape[1]), int)
        for at, x in enumerate(np.reshape(every, (len(every), len(blocks), -1))):
            for b in range(len(blocks)):
                np.add.at(merged[at, b], groups, x[b])
        distinct = np.unique(merged.reshape(len(every), -1), axis=0)
        star = held[blocks].ravel()
        assert (distinct == star).all(axis=1).any() or endless.any()
        unique = len(distinct) == 1 and not endless.any()
        if level == "block":
            assert status == {"unique" if unique else "feasible"}
        else:
            assert ("unique" in status) or not unique
            assert "feasible" in status or unique
        if endless.any():
            assert (far.lower[place], far.upper[place]) == (0.0, 1.0)
            continue
        total = np.maximum(distinct.sum(axis=1) + star.sum(), 1)
        ratio = (np.abs(distinct - star).sum(axis=1) / total).max()
        assert far.lower[place] <= ratio + 1e-12
        assert far.upper[place] >= ratio - 1e-12
        if far.status[place] == "proved":
            assert far.lower[place] == pytest.approx(ratio, abs=1e-12)
    return seen


def cells_of(space):
    """Return the cell of a problem that each cell of the schema is in."""
    index = np.indices(SIZES).reshape(3, -1)
    bins = [space.bins[n][i] for n, i in zip(NAMES, index, strict=True)]
    return np.ravel_multi_index(bins, space.shape)


def check_conflict(text, matrix, low, high, names):
    """Check that the cells that are named clash, and that none of them can be left out."""
    assert text
    if "more" in text or "adds up" in text:
        return
    listed = text.removeprefix("together without a solution: ").split("; ")
    chosen = []
    for one in listed:
        place, cell = one.split(": ")
        level, geoid = place.split(" ")
        chosen += [at for at, n in enumerate(names) if (n[0], n[1], n[3]) == (level, geoid, cell)]
    assert len(chosen) == len(listed)
    rest = [chosen, *(chosen[:at] + chosen[at + 1 :] for at in range(len(chosen)))]
    for at, rows in enumerate(rest):
        wide = np.where(np.isin(np.arange(low.size), rows), high, OPEN)
        deep = np.where(np.isin(np.arange(low.size), rows), low, 0)
        every = enumerated(matrix, deep, wide)
        assert every is None or bool(every) == (at > 0)


def compared(rng, *, blocks, levels=("block",), broken=0.05):
    """Compare all answers about one release with enumeration; return facts about it."""
    tables, _ = release(rng, blocks=blocks, levels=levels, broken=broken)
    known_rule = bool(rng.integers(2))
    found = count_bounds(tables, scope=levels[0], known_rule=known_rule)
    narrower, infeasible = check_bounds(tables, found, level=levels[0], known_rule=known_rule)
    return narrower, infeasible, check_solutions(tables, level=levels[0], known_rule=known_rule)


@pytest.mark.parametrize("margins", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_blocks_equal_enumeration(seed, margins, monkeypatch):
    if margins:
        monkeypatch.setattr(bounds_module, "_LARGER", 0)
    rng = np.random.default_rng(seed)
    facts = [compared(rng, blocks=16) for _ in range(3)]
    assert sum(narrower for narrower, *_ in facts) > 0
    assert {"unique", "feasible"} <= {status for *_, statuses in facts for status in statuses}


@pytest.mark.parametrize("margins", [False, True])
def test_two_levels_equal_enumeration(margins, monkeypatch):
    if margins:
        monkeypatch.setattr(bounds_module, "_LARGER", 0)
    rng = np.random.default_rng(7)
    facts = [compared(rng, blocks=8, levels=("tract", "block")) for _ in range(2)]
    assert sum(narrower for narrower, *_ in facts) > 0
    assert "feasible" in {status for *_, statuses in facts for status in statuses}


@pytest.mark.slow
@pytest.mark.parametrize("margins", [False, True])
def test_thousands_of_releases_equal_enumeration(margins, monkeypatch):
    if margins:
        monkeypatch.setattr(bounds_module, "_LARGER", 0)
    rng = np.random.default_rng(50 + margins)
    facts = [compared(rng, blocks=40, broken=0.02) for _ in range(125)]
    facts += [compared(rng, blocks=8, levels=("tract", "block")) for _ in range(20)]
    assert sum(len(statuses) for *_, statuses in facts) > 4500
    assert min(sum(counts) for counts in zip(*((n, m) for n, m, _ in facts), strict=True)) > 0
    seen = {status for *_, statuses in facts for status in statuses}
    assert {"unique", "feasible", "infeasible"} <= seen


def test_a_wrong_support_is_seen(monkeypatch):
    right = RoundingSpec.support

    def narrower(law, released):
        low, high = right(law, released)
        return low, np.maximum(high - 1, low)

    monkeypatch.setattr(RoundingSpec, "support", narrower)
    rng = np.random.default_rng(1)
    tables, _ = release(rng, blocks=20, laws=("nearest 3",))
    with pytest.raises(AssertionError):
        check_bounds(tables, count_bounds(tables))


def test_width_one_gives_the_answers_of_true_counts():
    rng = np.random.default_rng(2)
    tables, _ = release(rng, blocks=20, laws=("exact",))
    exact = RangeSpec((0,), (0,), 1)
    for law in (RoundingSpec(1, "nearest"), RoundingSpec(1, "random"), exact):
        same = replace(tables, laws=dict.fromkeys(tables.counts, law))
        for call in (
            lambda t: reconstruct(t, scope="block").to_frame(),
            lambda t: reconstruct(t, scope="block").blocks(),
            lambda t: solution_variability(t, scope="block").to_frame().drop(columns="seconds"),
            lambda t: count_bounds(t).counts,
        ):
            pd.testing.assert_frame_equal(call(tables), call(same))
        assert not reconstruct(same, scope="block").problem.coarsened


def test_an_open_top_is_never_unique_and_has_no_largest_count():
    tables = PublishedTables(
        Workload(Schema("s", (Attribute("a", 2),), Geography("g", ("block",), (1,))),
                 {("block", "A"): Table("A", ("x", "y"), {"a": np.eye(2, dtype=int)})}),
        {"block": ["1"]}, {("block", "A"): sp.csr_array([[3, 0]])},
        laws={("block", "A"): RangeSpec((0, 1, 3), (0, 1, 3))},
    )  # fmt: skip
    found = count_bounds(tables).counts
    assert found["low"].tolist() == [3, 0]
    assert found["high"].isna().tolist() == [True, False]
    assert found["status"].tolist() == ["proved", "proved"]
    made = reconstruct(tables, scope="block")
    assert (made.status, made.population.tolist()) == (("feasible",), [3])
    far = solution_variability(tables, scope="block")
    assert (far.status, far.upper.tolist()) == (("unknown",), [1.0])


@pytest.mark.parametrize(("weight", "least"), [(2, 3), (2, 4), (3, 4), (3, 5), (3, 7)])
def test_a_cell_without_a_bound_may_hold_as_many_as_its_row_needs(weight, least):
    """A weighted count with an open top: so many times a whole number, the least one or more."""
    about = Schema("s", (Attribute("a", 2),), Geography("g", ("block",), (1,)))
    asked = Workload(about, {("block", "W"): Table("W", ("w",), {"a": np.array([[weight] * 2])})})
    laws = {("block", "W"): RangeSpec((0, least), (0, least))}
    counts = {("block", "W"): sp.csr_array([[least]])}
    tables = PublishedTables(asked, {"block": ["1"]}, counts, laws=laws)
    found = count_bounds(tables).counts
    smallest = min(weight * x for x in range(least + 1) if weight * x >= least)
    assert found["low"].tolist() == [smallest]
    assert found["high"].isna().all()
    assert found["status"].tolist() == ["proved"]


def test_what_a_larger_place_bounds_is_not_endless():
    """Of a block's two kinds the tract counts one, and only the block's open total the other."""
    about = Schema("s", (Attribute("a", 2),), Geography("g", ("tract", "block"), (1, 2)))
    kind = Table("A0", ("a0",), {"a": np.array([[1, 0]])})
    asked = Workload(about, {("block", "ALL"): Table("ALL", ("all",), {}), ("tract", "A0"): kind})
    counts = {("block", "ALL"): sp.csr_array([[3]]), ("tract", "A0"): sp.csr_array([[4]])}
    laws = {("block", "ALL"): RangeSpec((0, 3), (0, 3)), ("tract", "A0"): RoundingSpec(2, "random")}
    geoids = {"block": ["11"], "tract": ["1"]}
    tables = PublishedTables(asked, geoids, counts, laws=laws)
    found = count_bounds(tables, scope="tract").counts.set_index("cell")
    # A count of 4 is one of 3 to 5, and anybody may be of the other kind.
    assert found.loc["a0", ["low", "high"]].tolist() == [3, 5]
    assert found.loc["all", "low"] == 3
    assert pd.isna(found.loc["all", "high"])
    assert found["status"].eq("proved").all()


def test_queries_are_bounded_by_tables_that_do_not_have_them():
    rng = np.random.default_rng(4)
    tables, x = release(rng, blocks=12, laws=("nearest 3", "exact"))
    asked = Workload(tables.workload.schema, {("block", "ABC"): table(NAMES)})
    found = count_bounds(tables, queries=asked).counts
    assert set(found["table"]) == {"ABC"}
    assert found["published"].isna().all()
    low, high = (found[n].fillna(OPEN).to_numpy(int).reshape(12, -1) for n in ("low", "high"))
    assert np.all((low <= x) & (x <= high))
    for place in range(12):
        matrix, least, most, _ = system(tables, place=place)
        every = enumerated(matrix, least, most)
        if every is not None:
            bounded = high[place] < OPEN
            assert np.array_equal(np.min(every, axis=0), low[place])
            assert np.array_equal(np.max(every, axis=0)[bounded], high[place][bounded])


def test_nearest_records_deviate_by_what_lies_outside_the_ranges():
    rng = np.random.default_rng(5)
    seen = 0
    for _ in range(60):
        matrix = rng.integers(0, 2, (5, 4))
        matrix = matrix[matrix.any(axis=1)]
        low = rng.integers(-1, 4, len(matrix))
        high = np.where(rng.random(len(matrix)) < 0.2, OPEN, low + rng.integers(0, 3, len(matrix)))
        found = nearest_records(
            sp.csr_array(matrix), low, high, solver=make_solver("highs"), seconds=None
        )
        sums = np.indices((6,) * 4).reshape(4, -1).T @ matrix.T
        least = (np.maximum(low - sums, 0) + np.maximum(sums - high, 0)).sum(axis=1).min()
        assert (found.status, found.deviation, found.bound) == ("proved", least, least)
        x = np.zeros(4, int)
        x[found.cell] = found.count
        own = matrix @ x
        assert (np.maximum(low - own, 0) + np.maximum(own - high, 0)).sum() == least
        seen += least > 0
    assert seen > 5


def coarse(tables, law):
    """Return person tables with every count under a law."""
    rng, counts = np.random.default_rng(3), {}
    for key, part in tables.counts.items():
        counts[key] = sp.csr_array(published(rng, part.toarray(), law)[0])
    return replace(tables, counts=counts, laws=dict.fromkeys(counts, law))


@pytest.mark.parametrize("name", ["nearest 3", "open top"])
def test_person_tables_keep_the_true_counts_within_their_bounds(name):
    rng = np.random.default_rng(6)
    true = person_tables(people(rng, [4, 7], spread=0.5), tract=False)
    found = count_bounds(coarse(true, LAWS[name]))
    counts = np.concatenate([part.toarray() for part in true.counts.values()], axis=1).ravel()
    frame = found.counts
    assert (frame["low"] <= counts).all()
    assert (frame["high"].fillna(OPEN) >= counts).all()
    assert (frame["status"] == "proved").all()
    known = found.facts
    assert known["recovered"] > 0
    assert f"{known['recovered']:,} follow exactly" in " ".join(repr(found).split())


@pytest.mark.parametrize("name", ["nearest 3", "open top"])
def test_chosen_counts_have_the_bounds_that_all_have(name):
    rng = np.random.default_rng(6)
    tables = coarse(person_tables(people(rng, [4, 7], spread=0.5), tract=False), LAWS[name])
    every = count_bounds(tables).counts
    chosen = every[rng.random(len(every)) < 0.1]
    cells = chosen[["geoid", "table", "cell"]].assign(more=1)
    elsewhere = cells.assign(geoid="elsewhere")  # of places that these tables do not have
    found = count_bounds(tables, cells=pd.concat([elsewhere, cells.iloc[::-1]])).counts
    pd.testing.assert_frame_equal(found, chosen.reset_index(drop=True))
    assert 0 < len(found) < len(every) / 5


def test_a_limit_of_time_leaves_bounds_that_hold():
    rng = np.random.default_rng(6)
    true = person_tables(people(rng, [20], spread=0.5), tract=False)
    given = coarse(true, LAWS["nearest 3"])
    found = count_bounds(given, time_limit=1e-3).counts
    counts = np.concatenate([part.toarray() for part in true.counts.values()], axis=1).ravel()
    assert (found["status"] == "undecided").any()
    assert (found["low"] <= counts).all()
    assert (found["high"] >= counts).all()


@pytest.mark.parametrize("nodes", [20, 10_000])
def test_a_limit_of_nodes_leaves_bounds_that_hold_the_same_each_time(nodes):
    rng = np.random.default_rng(6)
    true = person_tables(people(rng, [12], spread=0.5), tract=False)
    tables = coarse(true, LAWS["nearest 3"])
    every, found = count_bounds(tables).counts, count_bounds(tables, node_limit=nodes).counts
    pd.testing.assert_frame_equal(found, count_bounds(tables, node_limit=nodes).counts)
    assert (found["low"] <= every["low"]).all()
    assert (found["high"] >= every["high"]).all()
    decided = (found["status"] == "proved").to_numpy()
    ends = ["low", "high"]
    pd.testing.assert_frame_equal(found.loc[decided, ends], every.loc[decided, ends])
    assert decided.all() == (nodes == 10_000)


def test_the_command_writes_bounds_and_says_what_is_recovered(tmp_path):
    rng = np.random.default_rng(6)
    true = person_tables(people(rng, [5, 8, 9], spread=0.5), tract=False)
    given = coarse(true, LAWS["threshold"])
    given.write(tmp_path / "tables")
    words = [
        "attack", "--only", "bounds", str(tmp_path / "tables"), "-o", str(tmp_path / "out"), "-q",
    ]  # fmt: skip
    runner = CliRunner()
    done = runner.invoke(app, words)
    assert done.exit_code == 0, done.output
    expected = count_bounds(given)
    assert f"{expected.facts['recovered']:,} follow exactly" in done.stdout
    written = pd.read_csv(tmp_path / "out" / "bounds.csv", dtype={"geoid": str})
    pd.testing.assert_frame_equal(written, expected.counts, check_dtype=False, check_exact=True)
    again = json.loads(runner.invoke(app, [*words, "--resume", "--json"]).stdout)
    assert again["recovered"] == expected.facts["recovered"]
    assert json.loads((tmp_path / "out" / "config.json").read_text())["known_rule"] is True


def test_bad_arguments_are_named():
    tables, _ = release(np.random.default_rng(1), blocks=3)
    noisy = replace(tables, laws=dict.fromkeys(tables.counts, SimulationOnly()))
    other = replace(tables.workload.schema, name="other")
    for match, call in {
        "tables must be": lambda: count_bounds("tables"),
        "scope must be one of": lambda: count_bounds(tables, scope="tract"),
        "time_limit must be > 0": lambda: count_bounds(tables, time_limit=0.0),
        "node_limit must be >= 1": lambda: count_bounds(tables, node_limit=0),
        "known_rule must be": lambda: count_bounds(tables, known_rule=1),
        "queries must be of schema 's'": lambda: count_bounds(
            tables, queries=Workload(other, {("block", "A"): table(("a",))})
        ),
        "'simulation'": lambda: count_bounds(noisy),
    }.items():
        with pytest.raises((ArgumentError, ArgumentTypeError), match=match):
            call()


def test_sentences_count_one_as_one():
    from bayesrisk.reconstruction.records.bounds import bounds_sentences

    facts = {"counts": 5, "decided": 4, "coarsened": 1, "recovered": 1, "empty": 1}
    lines = bounds_sentences(facts | {"at_least_one": 1}, {"A": "more men than people"})
    assert len(lines) == 4
    few = bounds_sentences(facts | {"coarsened": 3, "at_least_one": 0, "decided": 5}, {})
    assert len(few) == 1
    assert not any(f" 1 {word}" in line or line.startswith("1 ") for line in lines + few
                   for word in ("counts", "of these", "places"))  # fmt: skip
