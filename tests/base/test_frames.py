"""Frames of other libraries go in where one of pandas does, and results come out as Arrow."""

import importlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import bayesrisk as br
from bayesrisk.inference import KnownRecords, diagnose
from bayesrisk.reconstruction import match_records
from bayesrisk.tables import Attribute, Geography


def _polars(frame):
    return importlib.import_module("polars").from_pandas(frame)


def _duckdb(frame):
    connection = importlib.import_module("duckdb").connect()
    return connection.from_arrow(pa.Table.from_pandas(frame, preserve_index=False))


FOREIGN = {"pyarrow": pa.Table.from_pandas, "polars": _polars, "duckdb": _duckdb}


@pytest.fixture(params=FOREIGN)
def foreign(request):
    pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    return FOREIGN[request.param]


PEOPLE = pd.DataFrame(
    {"ward": ["1", "1", "2", "2", "2"], "sex": [0, 1, 1, 0, 1], "old": [1, 0, 1, 1, 0]}
)


def ward():
    sizes = (Attribute("sex", 2, labels=("F", "M")), Attribute("old", 2))
    return br.Schema("ward", sizes, Geography("g", ("ward",), (1,)))


def test_records_of_any_library_are_the_same(foreign):
    plain = br.Records.from_frame(PEOPLE, schema=ward())
    found = br.Records.from_frame(foreign(PEOPLE), schema=ward())
    assert found.table.equals(plain.table)
    labelled = PEOPLE.assign(sex=np.array(["F", "M"])[PEOPLE["sex"]])
    assert br.Records.from_frame(foreign(labelled), schema=ward()).table.equals(plain.table)
    schema = br.Schema.from_frame(foreign(labelled), columns=["sex", "old"])
    assert schema.attribute("sex").labels == ("F", "M")


def test_trees_known_people_and_matches_take_any_frame(foreign):
    nodes = pd.DataFrame(
        {"node": ["g", "a", "b"], "parent": ["", "g", "g"], "noisy_count": [3, 2, 0], "rho": 0.2}
    )
    plain, found = br.Tree.from_frame(nodes), br.Tree.from_frame(foreign(nodes))
    assert list(found.names) == list(plain.names)
    np.testing.assert_array_equal(found.noisy, plain.noisy)
    known = KnownRecords.from_frame(foreign(PEOPLE), place="ward")
    assert [(k.place, k.count) for k in known] == [
        (k.place, k.count) for k in KnownRecords.from_frame(PEOPLE, place="ward")
    ]
    pairs = match_records(foreign(PEOPLE), PEOPLE, keys=[["ward", "sex", "old"]], rng=1)
    assert len(pairs.left) == len(PEOPLE)


def test_statements_of_any_library_are_the_same(foreign):
    rows = pd.DataFrame(
        {
            "attack": "a", "adversary": "x", "protection": "none",
            "target": ["1", "2"],
            "statement": "s", "people": 1, "prior": 0.5, "posterior": [1.0, 0.25],
            "status": "believed", "correct": [True, False],
        }
    )  # fmt: skip
    plain = br.Statements(rows).frame
    pd.testing.assert_frame_equal(br.Statements(foreign(rows)).frame, plain)


def results():
    question = br.TwoLevels(n_siblings=27, rho_block=0.1, rho_group=0.25, prior=0.5)
    samples = question.sample(2, 1, -1, draws=50, warmup=5, chains=2, rng=1)
    records = br.Records.from_frame(PEOPLE, schema=ward())
    return {
        "belief": br.answers.Belief([0.1, 0.5], 0.5),
        "estimate": br.answers.Estimate(0.5, 0.1, 0.4, 0.6, confidence=0.95, method="draws"),
        "records": records,
        "samples": samples,
        "diagnosis": diagnose(samples, max_rhat=2.0),
        "posterior": question.posterior(2, 1, -1),
        "risk": question.average(group_count=3),
    }


@pytest.mark.parametrize("name", results())
def test_results_come_out_as_arrow(name):
    result = results()[name]
    frame = result.to_frame()
    named = [n for n in frame.index.names if n is not None]
    expected = frame.reset_index(named).reset_index(drop=True)
    table = result.to_arrow()
    assert table.column_names == [str(c) for c in expected.columns]
    assert table.num_rows == len(expected)
    for column in expected:
        assert table[str(column)].to_pylist() == pytest.approx(
            [None if pd.isna(v) else v for v in expected[column].tolist()]
        )
    assert pa.table(result).equals(table)


def test_polars_reads_a_result_itself():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = polars.DataFrame(br.answers.Belief([0.1, 0.5], 0.5))
    assert frame["ratio"].to_list() == [5.0, 1.0]
