"""The common form of person records, with a bit mask or flags, and what must not pass."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st
from oracles import readers as oracle

from bayesrisk import ArgumentError, DataError
from bayesrisk.census import iter_record_form, read_record_form, write_record_form

GOLDEN = """\
geoid_block,sex,age,white,black,aian,asian,nhopi,sor,hisp,pik
010730051031000,0,4,0,1,0,0,0,0,0,A1
010730051031000,1,110,1,1,0,0,0,1,1,B2
"""


@pytest.mark.parametrize("dialect", ["schema", "archive", "pums", "labels"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@settings(max_examples=4)
@given(seed=st.integers(0, 2**32), n=st.integers(0, 40), chunk=st.integers(1, 50))
def test_there_and_back(dialect, ending, seed, n, chunk, tmp_path_factory):
    file = tmp_path_factory.mktemp("records") / f"a.{ending}"
    extra = {"pik": [f"p{i}" for i in range(n)]} if seed % 2 else {}
    people = oracle.person_records(np.random.default_rng(seed), n, **extra)
    write_record_form(people, file, dialect=dialect)
    assert oracle.same(read_record_form(file, dialect=dialect), people)
    pieces = list(iter_record_form(file, dialect=dialect, chunk=chunk))
    assert sum(len(piece) for piece in pieces) == n
    assert all(len(piece) <= chunk for piece in pieces)
    if ending == "parquet":  # it says its coding itself
        assert oracle.same(read_record_form(file), people)
        other = "pums" if dialect != "pums" else "archive"
        with pytest.raises(ArgumentError, match=rf"dialect must be '{dialect}', which .*a.parquet"):
            read_record_form(file, dialect=other)


def test_a_file_by_hand(tmp_path):
    (tmp_path / "a.csv").write_text(GOLDEN)
    assert read_record_form(tmp_path / "a.csv", dialect="schema").table.to_pylist() == [
        {"block": "010730051031000", "sex": 0, "age": 4, "race": 2, "hisp": 0, "pik": "A1"},
        {"block": "010730051031000", "sex": 1, "age": 110, "race": 35, "hisp": 1, "pik": "B2"},
    ]


def test_flags_against_a_slow_reader(tmp_path):
    people = oracle.person_records(np.random.default_rng(1), 100)
    write_record_form(people, tmp_path / "a.csv", dialect="schema")
    slow = [
        sum(2**i for i, race in enumerate(oracle.RACES) if row[race] == "1")
        for row in oracle.rows_of(tmp_path / "a.csv")
    ]
    assert people.codes("race").tolist() == slow


def test_blocks_that_lost_a_zero(tmp_path):
    frame = pd.DataFrame({"block": [10730051031000], "sex": 0, "age": 4, "race": 2, "hisp": 0})
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    for file in ("a.parquet", "a.csv"):
        blocks = (
            read_record_form(tmp_path / file, dialect="schema").table.column("block").to_pylist()
        )
        assert blocks == ["010730051031000"]


def test_groups_of_ages(tmp_path):
    people = oracle.person_records(np.random.default_rng(1), 111).replace(age=np.arange(111))
    write_record_form(people, tmp_path / "a.parquet", dialect="schema")
    groups = pq.read_table(tmp_path / "a.parquet").column("agebin").to_pylist()
    # The block tables: single years to 21, 22-24, then those of table P12.
    bounds = [*range(22), 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85]
    assert groups == [sum(age >= b for b in bounds) - 1 for age in range(111)]
    assert "agebin" in read_record_form(tmp_path / "a.parquet", dialect="schema").table.column_names
    table = pq.read_table(tmp_path / "a.parquet")
    wrong = table.set_column(3, "agebin", pa.array(np.zeros(111, dtype=np.int8)))
    pq.write_table(wrong, tmp_path / "b.parquet")
    with pytest.raises(DataError, match="row 2, column 'agebin': must be the group of the age"):
        read_record_form(tmp_path / "b.parquet", dialect="schema")


BAD = [
    ("010730051031000,0", "0107300510310001,0", "row 1, column 'geoid_block': must be 15 digits"),
    ("010730051031000,0", "990730051031000,0", "row 1, column 'geoid_block': must be in a state"),
    (",0,4,", ",2,4,", r"row 1, column 'sex': must be one of 0, 1 \(dialect 'schema'\), got '?2"),
    (",0,4,", ",0,111,", r"row 1, column 'age': .*\[0, 110\], got '?111"),
    ("0,1,0,0,0,0,0,A1", "0,0,0,0,0,0,0,A1", "row 1, column 'white': .*yes where no other race"),
    ("0,1,0,0,0,0,0,A1", "0,1,0,0,0,0,A1", "row 1: must have 11 columns, got 10"),
    ("pik", "name", "column 'name': must be one of block, .*, sex, .*, each once"),
    ("sor,hisp", "hisp,hispanic", "column 'hispanic': must be one of"),
    (GOLDEN, "", "must have a header line"),
]


@pytest.mark.parametrize(("old", "new", "message"), BAD)
def test_bad_files(old, new, message, tmp_path):
    assert old in GOLDEN
    (tmp_path / "a.csv").write_text(GOLDEN.replace(old, new, 1))
    with pytest.raises(DataError, match=message):
        read_record_form(tmp_path / "a.csv", dialect="schema")


def test_missing_columns_and_types(tmp_path):
    (tmp_path / "a.csv").write_text("block,sex,race,hisp\n")
    with pytest.raises(DataError, match="must have a column 'age'; has block, sex"):
        read_record_form(tmp_path / "a.csv", dialect="schema")
    frame = pd.DataFrame({"block": [1.5], "sex": 0, "age": 4, "race": 2, "hisp": 0})
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="column 'block': must be digits, got type double"):
        read_record_form(tmp_path / "a.parquet", dialect="schema")
    frame = frame.assign(block="010730051031000", age=[None])
    frame.to_parquet(tmp_path / "b.parquet")
    with pytest.raises(DataError, match="row 1, column 'age'"):
        read_record_form(tmp_path / "b.parquet", dialect="schema")
    with pytest.raises(ArgumentError, match="at least one piece"):
        write_record_form([], tmp_path / "d.csv", dialect="schema")
    with pytest.raises(ArgumentError, match="at least one piece"):
        write_record_form([], tmp_path / "d.parquet", dialect="schema")
    people = oracle.person_records(np.random.default_rng(1), 1, pik=["a,b"])
    with pytest.raises(ArgumentError, match="no text with ','"):
        write_record_form(people, tmp_path / "d.csv", dialect="schema")
    assert not (tmp_path / "d.csv").exists()


# By hand: what the two persons of GOLDEN are called in each coding.
IN_WORDS = """\
geoid_tract,geoid_block,sex,age,white,black,aian,asian,nhopi,sor,hispanic
01073005103,010730051031000,Male,4,N,Y,N,N,N,N,N
1073005103,10730051031000,female,110,Y,Y,n,N,N,Y,y
"""
CODED = {
    "schema": GOLDEN,
    "archive": GOLDEN.replace("1000,0,4", "1000,1,4").replace("1000,1,110", "1000,0,110"),
    "pums": GOLDEN.replace("1000,0,4", "1000,1,4")
    .replace("1000,1,110", "1000,2,110")
    .replace("0,0,A1", "0,1,A1")
    .replace("1,1,B2", "1,24,B2"),
    "labels": IN_WORDS,
}


@pytest.mark.parametrize("dialect", list(CODED))
def test_the_same_persons_in_every_dialect(dialect, tmp_path):
    (tmp_path / "a.csv").write_text(CODED[dialect])
    found = read_record_form(tmp_path / "a.csv", dialect=dialect)
    assert [found.codes(n).tolist() for n in ("sex", "age", "race", "hisp")] == [
        [0, 1], [4, 110], [2, 35], [0, 1],
    ]  # fmt: skip
    assert found.geoids.tolist() == ["010730051031000"] * 2
    assert "geoid_tract" not in found.columns


def test_a_coding_that_is_not_said(tmp_path):
    (tmp_path / "a.csv").write_text(GOLDEN)
    with pytest.raises(ArgumentError) as refused:
        read_record_form(tmp_path / "a.csv")
    for part in ("a.csv does not say", "'schema': sex 0 male, 1 female", "'archive': sex 1 male",
                 "'pums': sex 1 male, 2 female", "'labels': sex male, female"):  # fmt: skip
        assert part in str(refused.value)
    frame = pd.DataFrame({"block": ["010730051031000"], "sex": 0, "age": 4, "race": 2, "hisp": 0})
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ArgumentError, match=r"dialect must be said, .*a.parquet"):
        read_record_form(tmp_path / "a.parquet")
    with pytest.raises(ArgumentError, match="dialect must be one of schema, archive, pums, labels"):
        read_record_form(tmp_path / "a.csv", dialect="other")
    with pytest.raises(ArgumentError, match="dialect must be said, the file to be made"):
        write_record_form([], tmp_path / "b.csv", dialect=None)


@pytest.mark.parametrize(
    ("old", "new", "dialect", "message"),
    [
        ("", "", "labels", "row 1, column 'sex': must be one of male, female .* got '0'"),
        ("", "", "pums", r"row 1, column 'sex': must be one of 1, 2 \(dialect 'pums'\), got '?0"),
        ("Male", "man", "labels", "row 1, column 'sex': must be one of male, female .* got 'man'"),
        ("N,Y", "N,1", "labels", "row 1, column 'black': must be one of N, Y .* got '1'"),
        (
            "01073005103,",
            "01073005104,",
            "labels",
            "row 1, column 'geoid_tract': must be the first",
        ),
        ("N,Y,N", "N,N,N", "labels", "row 1, column 'white': must be yes where no other race is"),
    ],
)
def test_values_of_another_dialect(old, new, dialect, message, tmp_path):
    text = IN_WORDS.replace(old, new, 1) if old else GOLDEN
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_record_form(tmp_path / "a.csv", dialect=dialect)
    pd.read_csv(tmp_path / "a.csv", dtype=str).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=message):
        read_record_form(tmp_path / "a.parquet", dialect=dialect)
