import numpy as np
import pytest
from hypothesis import given, strategies as st
from small_records import PERSON, SMALL, TOY, people, tables, toy
from table_strategies import records as rows_of

from bayesrisk.exceptions import ArgumentError, ShapeError
from bayesrisk.tables import Histogram, Records, Schema, Workload, tabulate


def test_counts_against_pandas():
    frame, made = people(), tables()
    for level, width in (("tract", 11), ("block", 15)):
        places = frame["block"].str[:width]
        assert made.geoids[level].tolist() == sorted(places.unique())
        for geoid, group in frame.groupby(places):
            assert made.count(level, "P1", geoid).tolist() == [len(group)]
            expected = [int((group["race"] & bit > 0).sum()) for bit in (1, 2, 4, 8, 16, 32)]
            assert made.count(level, "P6", geoid).tolist() == expected
            ages = made.count(level, "P12", geoid).reshape(2, 23)
            assert ages.sum(axis=1).tolist() == [int((group["sex"] == s).sum()) for s in (0, 1)]
            assert ages[1, 5] == ((group["sex"] == 1) & (group["age"] == 20)).sum()


def test_the_order_of_the_records_does_not_matter():
    shuffled = people().sample(frac=1.0, random_state=1)
    again = tabulate(Records.from_frame(shuffled, schema=PERSON), SMALL)
    assert again == tables()
    pieces = [Records.from_frame(shuffled.iloc[i::7], schema=PERSON) for i in range(7)]
    assert tabulate(iter(pieces), SMALL) == tables()


def test_places_without_records():
    blocks = ["500010101001001", "500010101001000", "010730051031000", "010730051031001"]
    records = Records.from_frame(people(), schema=PERSON)
    made = tabulate(records, SMALL, geoids=[*blocks, "600010101001001"])
    assert made.geoids["block"].tolist() == sorted([*blocks, "600010101001001"])
    assert made.geoids["tract"].tolist() == ["01073005103", "50001010100", "60001010100"]
    assert made.count("block", "P12", "600010101001001").sum() == 0
    assert made.count("tract", "P1", "60001010100").tolist() == [0]
    assert (
        made.count("block", "P1", blocks[1]).tolist()
        == tables().count("block", "P1", blocks[1]).tolist()
    )
    with pytest.raises(ArgumentError, match="must lie in geoids, got tract '50001010100'"):
        tabulate(records, SMALL, geoids=blocks[2:])
    with pytest.raises(ArgumentError, match="geoids must have 15 digits"):
        tabulate(records, SMALL, geoids=["01"])
    with pytest.raises(ArgumentError, match="records must be of schema 'pl94'"):
        tabulate(records, Workload.named("pl94"))


@given(rows_of(TOY), st.integers(1, 5))
def test_histograms(rows, pieces):
    records = toy(rows)
    histogram = Histogram.from_records(records)
    expected = {}
    for place, cell in zip(records.geoids.tolist(), records.cells().tolist(), strict=True):
        expected[place, cell] = expected.get((place, cell), 0) + 1
    found = histogram.counts.tocoo()
    assert expected == {
        (str(histogram.geoids[r]), int(c)): int(v)
        for r, c, v in zip(*found.coords, found.data, strict=True)
    }
    assert histogram.geoids.tolist() == sorted(set(records.geoids.tolist()))
    split = [records.take(np.arange(i, len(records), pieces)) for i in range(pieces)]
    parts = Histogram.from_records(split)
    assert parts.geoids.tolist() == histogram.geoids.tolist()
    assert (parts.counts != histogram.counts).nnz == 0
    for level in ("all", "town", "street"):
        direct, coarse = Histogram.from_records(records, level=level), histogram.aggregate(level)
        assert direct.geoids.tolist() == coarse.geoids.tolist()
        assert (direct.counts != coarse.counts).nnz == 0


def test_waiting_pairs_are_merged(monkeypatch):
    from bayesrisk.tables import tabulation

    records = toy([{"a": 1 + i % 3, "b": i % 2, "street": f"{i % 7:03d}"} for i in range(200)])
    whole = Histogram.from_records(records)
    monkeypatch.setattr(tabulation, "_PENDING", 3)
    parts = Histogram.from_records([records.take([i]) for i in range(200)])
    assert (parts.counts != whole.counts).nnz == 0


def test_histograms_are_checked():
    about = Schema.from_dict(TOY)
    good = np.array(["001", "002"])
    counts = np.ones((2, about.size), dtype=int)
    assert Histogram(about, "street", good, counts).counts.nnz == 2 * about.size
    with pytest.raises(ArgumentError, match="sorted places, each once"):
        Histogram(about, "street", good[::-1], counts)
    with pytest.raises(ArgumentError, match="3 digits"):
        Histogram(about, "street", np.array(["01", "02"]), counts)
    with pytest.raises(ShapeError, match=r"counts must have shape \(2, 6\)"):
        Histogram(about, "street", good, counts[:, :2])
    town = Histogram(about, "town", np.array(["0", "1"]), counts)
    with pytest.raises(ArgumentError, match="'town' or coarser"):
        town.aggregate("street")
    with pytest.raises(ArgumentError, match="at least one piece"):
        Histogram.from_records([])
    with pytest.raises(ArgumentError, match="must be of schema"):
        Histogram.from_records([toy([]), Records.from_frame(people(), schema=PERSON)])
