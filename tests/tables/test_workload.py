import json
from fractions import Fraction
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from oracles.tables import (
    brute_sensitivity,
    by_name as attributes_of,
    direct_counts,
    every_record,
    weights,
)
from table_strategies import documents, records

from bayesrisk.exceptions import ArgumentError, ShapeError
from bayesrisk.tables import (
    Attribute,
    Geography,
    Records,
    Schema,
    Table,
    Workload,
    tabulate,
    workload as search,
)

TOY = Schema(
    "toy",
    (Attribute("a", 2), Attribute("b", 3, first=1)),
    Geography("toy", ("all", "town", "street"), (0, 1, 3)),
)


@settings(max_examples=30)
@given(st.data())
def test_rows_equal_direct_counting(data):
    document = data.draw(documents())
    rows = data.draw(records(document["schema"]))
    made = Workload.from_dict(document)
    columns = [*made.schema.names, "street"]
    frame = pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(made.schema.names, "int64"))
    frame["street"] = frame["street"].astype(str)
    tables = tabulate(Records.from_frame(frame, schema=made.schema), made)
    for entry in document["tables"]:
        for level in entry["levels"]:
            direct = direct_counts(document, entry, level, rows)
            assert tables.geoids[level].tolist() == sorted(direct)
            counts = tables.counts[level, entry["name"]].toarray()
            for place, row in zip(tables.geoids[level], counts, strict=True):
                assert row.tolist() == direct[place].tolist()


@settings(max_examples=40)
@given(documents())
def test_incidence_of_every_cell(document):
    made = Workload.from_dict(document)
    attributes = attributes_of(document["schema"])
    everybody = list(every_record(document["schema"]))
    for entry in document["tables"]:
        level = entry["levels"][0]
        matrix = made.tables[level, entry["name"]].incidence(
            made.schema, np.arange(made.schema.size)
        )
        assert matrix.dtype == np.int64
        expected = [weights(entry, attributes, record) for record in everybody]
        assert matrix.toarray().T.tolist() == expected


@pytest.mark.parametrize("kind", ["add-remove", "change-one", "change-in-place"])
@pytest.mark.parametrize("norm", [1, 2])
@settings(max_examples=40)
@given(documents(largest=3))
def test_sensitivity_equals_brute_force(kind, norm, document):
    made = Workload.from_dict(document)
    brute = brute_sensitivity(document, kind, norm)
    assert made.largest_change(kind, norm=norm) == brute
    answer = made.sensitivity(kind, norm=norm)
    assert answer == (Fraction(brute) if norm == 1 else brute**0.5)


@settings(max_examples=40)
@given(documents(), st.permutations(range(3)))
def test_round_trip_of_the_grammar(document, order):
    document["tables"] = [document["tables"][i] for i in order if i < len(document["tables"])]
    made = Workload.from_dict(document)
    text = json.dumps(made.to_dict())
    again = Workload.from_dict(json.loads(text))
    assert again == made
    assert json.dumps(again.to_dict()) == text


@settings(max_examples=50)
@given(documents())
def test_round_trip_of_tables_made_from_factors(document):
    made = Workload.from_dict(document)
    plain = {key: Table(t.name, t.cells, t.factors) for key, t in made.tables.items()}
    bare = Workload(made.schema, plain)
    assert bare == made
    again = Workload.from_dict(json.loads(json.dumps(bare.to_dict())))
    # An attribute whose weights are all 1 may be left out of a description.
    for key, table in again.tables.items():
        every = np.arange(made.schema.size)
        ours, theirs = table.incidence(made.schema, every), plain[key].incidence(made.schema, every)
        assert (ours != theirs).nnz == 0


@pytest.mark.parametrize(
    ("name", "tables", "cells"),
    [
        ("sf1-block", 18, 775),
        ("sf1-tract", 16, 3296),
        ("pl94", 66, 6 * (1 + 63 + 2 + 2 + 3 + 8 + 126 + 126 + 4 + 252 + 2016)),
        ("pl94-units", 6, 12),
        ("pl94-tables", 5, 63 + 64 + 63 + 64 + 7),
        ("pl94-unit-tables", 1, 2),
        ("dhc-block", 18 + 3, 775 + 7 + 2 + 14),
        ("dhc-tract", 16, 3296),
        ("sf1-tables", 77 - 16, 4657 - 16 * 209),
        ("sf1-tract-tables", 16, 16 * 209),
        ("census-1940", 55, 5 * (1 + 9 + 6 + 2 + 3 + 8 + 54 + 18 + 12 + 108 + 864)),
        ("household-dhc", 79, 626),
        ("household-occupancy", 10, 36),
    ],
)
def test_sizes(name, tables, cells):
    made = Workload.named(name)
    assert (len(made.tables), made.n_cells) == (tables, cells)
    assert name in Workload.available()
    assert Workload.from_dict(json.loads(json.dumps(made.to_dict()))) == made


@pytest.mark.parametrize(
    ("name", "add_remove", "change_one", "in_place"),
    [
        # Per level and query of the redistricting file: one cell, two when a record changes; of
        # the total none when it stays, and at the nation a move changes nothing.
        ("pl94", 66, 5 * 22 + 20, 6 * 20),
        ("census-1940", 55, 4 * 22 + 20, 5 * 20),
        ("pl94-units", 6, 12, 12),
        # PCT12, one of A to G, and one of H to O.
        ("sf1-tract", 3, 6, 6),
        # A child of six races: P1, P6 and P7 (6 each), P8, P9, P12, P12G, P14 (2) and with
        # Hispanic origin P12H; an adult has P10 and P11 instead of P14.
        ("sf1-block", 1 + 6 + 6 + 1 + 1 + 1 + 1 + 2 + 1 + 2, 44, 30),
    ],
)
def test_known_sensitivities(name, add_remove, change_one, in_place):
    made = Workload.named(name)
    assert made.sensitivity("change-one", norm=1) == change_one
    assert made.sensitivity("change-in-place", norm=1) == in_place
    assert made.sensitivity("add-remove", norm=1) == add_remove


@pytest.mark.parametrize("name", ["sf1-block", "census-1940"])
@pytest.mark.parametrize("kind", ["add-remove", "change-in-place"])
def test_sensitivity_of_real_tables_by_enumeration(name, kind):
    """Every cell of the schema (for pairs: a sample of them against all others)."""
    made = Workload.named(name, levels=Workload.named(name).levels[-1:])
    matrix = made.incidence(np.arange(made.schema.size), level=made.levels[0]).tocsc()
    sums = np.asarray(matrix.sum(axis=0)).ravel()
    if kind == "add-remove":
        assert made.largest_change(kind, norm=1) == sums.max()
        return
    best = made.largest_change(kind, norm=1)
    distinct = np.random.default_rng(1).choice(matrix.shape[1], 400, replace=False)
    distances = sums[distinct][:, None] + sums - 2 * (matrix[:, distinct].T @ matrix).toarray()
    assert distances.max() <= best
    if name == "census-1940":
        assert distances.max() == best


def test_the_order_of_attributes_does_not_matter(monkeypatch):
    names = ["H4", "H6", "H7", "P16", "P19", "H3", "H5"]
    small, plain = Workload.named("household-dhc").select(tables=names), search._order
    forward = small.largest_change("change-in-place", norm=1)
    monkeypatch.setattr(search, "_order", lambda *a: plain(*a)[::-1])
    assert small.largest_change("change-in-place", norm=1) == forward


def test_too_many_classes_to_compare(monkeypatch):
    made = Workload.named("pl94", levels=["block"]).select(tables=["detailed"])
    assert made.largest_change("change-in-place", norm=1) == 2
    monkeypatch.setattr(search, "_MAX_ENTRIES", 2016**2 - 1)
    assert made.largest_change("change-one", norm=1) == 2
    with pytest.raises(ArgumentError, match=r"at most 4064255 .* got 4064256"):
        made.largest_change("change-in-place", norm=1)


def test_union_and_select():
    both = Workload.named("sf1-block").union(
        Workload.named("sf1-tract"), Workload.named("sf1-block")
    )
    assert both.levels == ("tract", "block")
    assert list(both.at("block")) == list(Workload.named("sf1-block").at("block"))
    assert both.select(levels=["tract"]) == Workload.named("sf1-tract")
    few = both.select(tables=["P1", "P6"], without=["P6"])
    assert list(few.tables) == [("block", "P1")]
    switchable = Workload.named("household-dhc").select(without=["H1", "H11", "H15"])
    assert switchable.n_cells == 626 - 9
    with pytest.raises(ArgumentError, match="schemas must be the same"):
        both.union(Workload.named("pl94"))
    with pytest.raises(ArgumentError, match="tables must be one of"):
        both.select(without=["P99"])
    with pytest.raises(ArgumentError, match="at least one table"):
        few.select(without=["P1"])
    changed = Table("P1", ("P0010001",), {"sex": np.array([[1, 0]])})
    with pytest.raises(ArgumentError, match="table 'P1' at 'block' differs"):
        both.union(Workload(both.schema, {("block", "P1"): changed}))


def test_levels_and_geography_can_be_chosen():
    spine = Workload.named("pl94", levels=["block", "state"], geography="spine-2020")
    assert spine.levels == ("state", "block")
    assert spine.schema.geography.widths[-1] == 31
    assert Workload.named("pl94").tables["block", "total"].cells == ("0",)
    assert Workload.named("pl94").tables["block", "cenrace"].cells[7] == "07"
    assert Workload.named("pl94").tables["block", "detailed"].cells[7] == "0007"
    with pytest.raises(ArgumentError, match="level must be one of"):
        Workload.named("pl94", levels=["street"])
    with pytest.raises(ArgumentError, match="name must be one of"):
        Workload.named("sf2")


def one_part(**entry):
    return {"schema": TOY.to_dict(), "tables": [{"name": "T", "levels": ["town"], **entry}]}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (one_part(cross=["a:fine"]), r"recode of 'a' must be one of \[\], got 'fine'"),
        (one_part(cross=[["b", ["0-2"]]]), r"group of 'b' must lie in \[1, 3\], got '0-2'"),
        (one_part(cross=[["b", ["1-x"]]]), "must be ranges such as '0-4,7', got '1-x'"),
        (one_part(cross=[["b", "1-2"]]), "recode of 'b' must be a list"),
        (one_part(cross=["a", "a"]), "must cross an attribute once"),
        (one_part(cells="T{1-2}"), r"cells of 'T' must be 1, got 2 names"),
        (one_part(weight={"a": [1]}), "weight of 'a' must be 'code' or 2 numbers"),
        (one_part(filter="a"), "table 'T' must not have 'filter'"),
        (one_part(parts=[], cross=["a"]), "must have parts or 'cross'"),
        (one_part(iterate="races"), "must follow the grammar"),
        (one_part(cross=[3]), "cross must hold attributes, .* got 3"),
        ({"schema": TOY.to_dict(), "tables": []}, "at least one table"),
        ({"schema": {"name": "x"}, "tables": []}, "schema must hold name, attributes, geography"),
    ],
)
def test_broken_grammar_is_refused(document, message):
    with pytest.raises(ArgumentError, match=message):
        Workload.from_dict(document)


def test_a_table_is_defined_once_a_level():
    document = one_part()
    document["tables"] *= 2
    with pytest.raises(ArgumentError, match="'T' must be defined once at 'town'"):
        Workload.from_dict(document)


def test_tables_are_checked():
    cells = ("x", "y")
    with pytest.raises(ArgumentError, match="named, each once"):
        Table("T", ("x", "x"), {})
    with pytest.raises(ShapeError, match=r"factor 'a' of 'T' must be \(2 cells, codes\)"):
        Table("T", cells, {"a": [[1, 0]]})
    with pytest.raises(ArgumentError, match="must be >= 0, got -1"):
        Table("T", cells, {"a": [[1, 0], [-1, 0]]})
    narrow = Table("T", cells, {"b": [[1, 0], [0, 1]]})
    with pytest.raises(ShapeError, match="must have 3 codes, got 2"):
        Workload(TOY, {("town", "T"): narrow})
    with pytest.raises(ArgumentError, match="filed by name, got 'T' as 'U'"):
        Workload(TOY, {("town", "U"): Table("T", cells, {})})
    sound = Table("T", cells, {"a": [[1, 0], [0, 1]]})
    with pytest.raises(ArgumentError, match="cells must be <= 5, got 6"):
        sound.incidence(TOY, [0, 6])
    with pytest.raises(ShapeError, match="one axis"):
        sound.incidence(TOY, [[0]])
    assert sound.incidence(TOY, np.zeros(0, dtype=int)).shape == (2, 0)
    with pytest.raises(ValueError, match="read-only"):
        sound.factors["a"][0, 0] = 2
    assert sound != Table("T", cells, {"a": [[1, 0], [0, 0]]})
    assert sound != "T"


def test_a_part_of_a_large_table_in_slices(monkeypatch):
    from bayesrisk.tables import _grammar

    made = Workload.named("pl94", levels=["block"])
    cells = np.random.default_rng(2).integers(0, made.schema.size, 500)
    whole = made.incidence(cells, level="block")
    monkeypatch.setattr(_grammar, "_DENSE", 5000)
    assert (made.incidence(cells, level="block") != whole).nnz == 0


def test_the_races_of_the_redistricting_file_are_in_the_order_of_the_tables():
    from bayesrisk.tables.records import CENRACE

    p8 = Workload.named("sf1-block").tables["block", "P8"]
    assert p8.factors["race"].argmax(axis=1).tolist() == (CENRACE - 1).tolist()
    assert Schema.named("pl94").attribute("cenrace").size == len(CENRACE)


def through_a_pickle(value):
    """Return what another process would get."""
    return ForkingPickler.loads(ForkingPickler.dumps(value))


@given(documents())
def test_a_workload_can_be_sent_to_another_process(document):
    made = Workload.from_dict(document)
    sent = through_a_pickle(made)
    assert sent == made
    assert sent.to_dict() == made.to_dict()  # the compact description travels along


def test_a_table_of_factors_can_be_sent_to_another_process():
    made = Table("t", ("x", "y"), {"a": np.array([[1, 0], [0, 2]])})
    made.classes  # noqa: B018  # what is cached stays behind
    sent = through_a_pickle(made)
    assert sent == made
    assert not sent.factors["a"].flags.writeable
    assert Workload(TOY, {("all", "t"): made}) == through_a_pickle(
        Workload(TOY, {("all", "t"): made})
    )
