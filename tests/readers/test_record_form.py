"""The common form of person records, with a bit mask or flags, and what must not pass."""

import gzip
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import readers as oracle

from bayesrisk import ArgumentError, DataError
from bayesrisk.readers import iter_record_form, read_record_form, write_record_form

GOLDEN = """\
geoid_block,sex,age,white,black,aian,asian,nhopi,sor,hisp,pik
010730051031000,0,4,0,1,0,0,0,0,0,A1
010730051031000,1,110,1,1,0,0,0,1,1,B2
"""


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32), n=st.integers(0, 40), chunk=st.integers(1, 50), pik=st.booleans()
)
def test_there_and_back(ending, seed, n, chunk, pik, tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    extra = {"pik": [f"p{i}" for i in range(n)]} if pik else {}
    people = oracle.person_records(np.random.default_rng(seed), n, **extra)
    write_record_form(people, folder / f"a.{ending}")
    assert oracle.same(read_record_form(folder / f"a.{ending}"), people)
    pieces = list(iter_record_form(folder / f"a.{ending}", chunk=chunk))
    assert sum(len(piece) for piece in pieces) == n
    assert all(len(piece) <= chunk for piece in pieces)


def test_a_file_by_hand(tmp_path):
    (tmp_path / "a.csv").write_text(GOLDEN)
    assert read_record_form(tmp_path / "a.csv").table.to_pylist() == [
        {"block": "010730051031000", "sex": 0, "age": 4, "race": 2, "hisp": 0, "pik": "A1"},
        {"block": "010730051031000", "sex": 1, "age": 110, "race": 35, "hisp": 1, "pik": "B2"},
    ]


def test_flags_against_a_slow_reader(tmp_path):
    people = oracle.person_records(np.random.default_rng(1), 100)
    write_record_form(people, tmp_path / "a.csv")
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
        blocks = read_record_form(tmp_path / file).table.column("block").to_pylist()
        assert blocks == ["010730051031000"]


def test_groups_of_ages(tmp_path):
    people = oracle.person_records(np.random.default_rng(1), 111).replace(age=np.arange(111))
    write_record_form(people, tmp_path / "a.parquet")
    groups = pq.read_table(tmp_path / "a.parquet").column("agebin").to_pylist()
    # The block tables: single years to 21, 22-24, then those of table P12.
    bounds = [*range(22), 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85]
    assert groups == [sum(age >= b for b in bounds) - 1 for age in range(111)]
    assert "agebin" in read_record_form(tmp_path / "a.parquet").table.column_names
    table = pq.read_table(tmp_path / "a.parquet")
    wrong = table.set_column(3, "agebin", pa.array(np.zeros(111, dtype=np.int8)))
    pq.write_table(wrong, tmp_path / "b.parquet")
    with pytest.raises(DataError, match="row 2, column 'agebin': must be the group of the age"):
        read_record_form(tmp_path / "b.parquet")


def test_compressed_files(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(GOLDEN.encode()))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("folder/a.csv", GOLDEN)
        archive.writestr("readme.txt", "x")
    for file in ("a.csv.gz", "a.zip"):
        assert len(read_record_form(tmp_path / file)) == 2
    whole = (tmp_path / "a.csv.gz").read_bytes()
    (tmp_path / "b.csv.gz").write_bytes(whole[:-12])
    with pytest.raises(DataError, match=r"b.csv.gz: cannot be read"):
        read_record_form(tmp_path / "b.csv.gz")


BAD = [
    ("010730051031000,0", "0107300510310001,0", "row 1, column 'geoid_block': must be 15 digits"),
    ("010730051031000,0", "1073005103100,0", "row 1, column 'geoid_block': must be 15 digits"),
    ("010730051031000,0", "990730051031000,0", "row 1, column 'geoid_block': must be in a state"),
    (",0,4,", ",2,4,", r"row 1, column 'sex': .*\[0, 1\], got '?2"),
    (",0,4,", ",0,111,", r"row 1, column 'age': .*\[0, 110\], got '?111"),
    (",0,4,", ",0,4.5,", "row 1, column 'age': .*4.5"),
    ("0,1,0,0,0,0,0,A1", "0,0,0,0,0,0,0,A1", "row 1, column 'white': .*no other race"),
    ("0,1,0,0,0,0,0,A1", "0,1,0,0,0,0,A1", "row 1: must have 11 columns, got 10"),
    ("pik", "name", "column 'name': must be one of block, sex, .*, each once"),
    ("white", "race", "must have a column 'race' or the flags"),
    ("hisp", "hisp2", "column 'hisp2'"),
    ("sor,hisp", "hisp,hispanic", "column 'hispanic': must be one of"),
    (GOLDEN, "", "must have a header line"),
]


@pytest.mark.parametrize(("old", "new", "message"), BAD)
def test_bad_files(old, new, message, tmp_path):
    assert old in GOLDEN
    (tmp_path / "a.csv").write_text(GOLDEN.replace(old, new, 1))
    with pytest.raises(DataError, match=message):
        read_record_form(tmp_path / "a.csv")


def test_missing_columns_and_types(tmp_path):
    (tmp_path / "a.csv").write_text("block,sex,race,hisp\n")
    with pytest.raises(DataError, match="must have a column 'age'; has block, sex"):
        read_record_form(tmp_path / "a.csv")
    frame = pd.DataFrame({"block": [1.5], "sex": 0, "age": 4, "race": 2, "hisp": 0})
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="column 'block': must be digits, got type double"):
        read_record_form(tmp_path / "a.parquet")
    frame = frame.assign(block="010730051031000", age=[None])
    frame.to_parquet(tmp_path / "b.parquet")
    with pytest.raises(DataError, match="row 1, column 'age'"):
        read_record_form(tmp_path / "b.parquet")
    raw = (tmp_path / "b.parquet").read_bytes()
    (tmp_path / "c.parquet").write_bytes(raw[:-30])
    with pytest.raises(DataError, match=r"c.parquet: cannot be read"):
        read_record_form(tmp_path / "c.parquet")
    with pytest.raises(ArgumentError, match="at least one piece"):
        write_record_form([], tmp_path / "d.csv")
    with pytest.raises(ArgumentError, match="at least one piece"):
        write_record_form([], tmp_path / "d.parquet")
    people = oracle.person_records(np.random.default_rng(1), 1, pik=["a,b"])
    with pytest.raises(ArgumentError, match="no text with ','"):
        write_record_form(people, tmp_path / "d.csv")
    assert not (tmp_path / "d.csv").exists()
