"""Readers against the shared data folder: every position of a cell, and real records."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from agency_forms import write_sf1

from bayesrisk import DataError
from bayesrisk.census import read_record_form, read_sf1, write_record_form
from bayesrisk.census.readers.summary_files.segments import cell_number, sf1_codebook
from bayesrisk.tables import Workload, tabulate

DATA = Path(__file__).parents[3] / "shared" / "data"

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"needs the shared data folder, {DATA} is absent"
)
FILES = ["rhdf_dev", "rmdf_dev"]


def rows(name):
    with (DATA / "formats" / name).open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def test_every_position_of_a_cell():
    checked = 0
    for row in rows("sf1_2010_cells.csv"):
        if row["table"] in ("P13", "P17", "H12"):  # medians and averages
            assert row["table"] not in sf1_codebook()
            continue
        table, number = cell_number(row["cell"])
        place = sf1_codebook()[table]
        assert table == row["table"]
        assert place.segment == int(row["segment"])
        assert place.column + number - 1 == int(row["column_1based_in_segment"])
        assert 1 <= number <= place.cells
        checked += 1
    assert checked == sum(place.cells for place in sf1_codebook().values()) > 4600


@pytest.mark.parametrize("name", FILES)
def test_real_records_there_and_back(name, tmp_path):
    source = DATA / "person" / f"{name}.parquet"
    records = read_record_form(source, dialect="schema")
    frame = pd.read_parquet(source)
    assert records.codes("age").tolist() == frame["age"].tolist()
    assert records.table.column("block").to_pylist() == [f"{b:015d}" for b in frame["block"]]
    for ending in ("csv", "parquet"):
        file = tmp_path / f"a.{ending}"
        write_record_form(records, file, dialect="schema")
        again = read_record_form(file, dialect="schema")
        for column in ("block", "sex", "age", "race", "hisp"):
            assert again.table.column(column).equals(records.table.column(column))
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "a.parquet"), frame)


@pytest.mark.slow
def test_tables_of_real_records_there_and_back(tmp_path):
    source = DATA / "person" / "rhdf_dev.parquet"
    with pytest.raises(DataError, match="column 'block': must be in state 01"):
        read_record_form(source, state="AL", dialect="schema")
    records = read_record_form(source, dialect="schema")
    records = records.take(np.strings.startswith(records.geoids, "01"))
    tables = tabulate(records, Workload.named("sf1-block").union(Workload.named("sf1-tract")))
    write_sf1(tables, tmp_path / "al2010.sf1.zip")
    assert read_sf1(tmp_path / "al2010.sf1.zip", workload=tables.workload) == tables
    total = sum(int(v) for v in np.asarray(tables.counts["block", "P1"].sum(axis=0)).ravel())
    assert total == len(records)
