"""Broken folders and files: the message names the file, and row and column where it can."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

import bayesrisk as br
from bayesrisk import ArgumentError, DataError
from bayesrisk.census.readers.nmf.reader import rows_between

STATE = ("Block.parquet", "DPQuery", "State=057")


@pytest.fixture
def sample(tmp_path):
    return br.census.write_nmf(
        tmp_path / "US_Person_PL_PROD", rng=2, states=["057", "058"], counties=1, tracts=(1, 1),
        block_groups=(2, 2), blocks=(3, 3)
    )  # fmt: skip


@pytest.fixture
def file(sample):
    (path,) = sample.folder.joinpath(*STATE).iterdir()
    return path


def read_all(sample, level="Block", query="detailed", budget=None):
    source = br.census.NoisyMeasurements.open(sample.folder, budget=budget)
    return sum(batch.values.shape[0] for batch in source.iter_values(level, query))


def change(file, column, edit, kind=None):
    """Write a file again with one column edited as a list."""
    table = parquet.read_table(file, partitioning=None)
    values = table.column(column).to_pylist()
    edit(values)
    place = table.schema.get_field_index(column)
    array = pa.array(values, kind or table.schema.field(column).type)
    parquet.write_table(table.set_column(place, column, array), file)


def detailed_row(file, nth):
    """Return the place of the nth row of the detailed query."""
    names = parquet.read_table(file, partitioning=None).column("query_name")
    places = pc.indices_nonzero(pc.equal(names, "detailed_dpq"))
    return places[nth].as_py()


def refused(sample, file, row, column, text, **settings):
    with pytest.raises(DataError) as caught:
        read_all(sample, **settings)
    message = str(caught.value)
    where = f"{file}: row {row + 1}, column {column!r}: " if row is not None else f"{file}: "
    assert message.startswith(where), message
    assert text in message
    return True


def test_the_sample_is_sound(sample):
    assert read_all(sample) == 6  # two states, a group of three blocks each; the other is alone


def edit_at(row, value):
    def edit(values):
        values[row] = value(values[row]) if callable(value) else value

    return edit


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("geocode", lambda code: code[:30], "a Block must have 31 characters, got"),
        ("geocode", lambda code: "9" + code[1:], "a tribal flag 0 or 1 in front"),
        ("geocode", lambda code: "058" + code[3:15] + "58" + code[17:], "must start with '057'"),
        ("geocode", lambda code: "058" + code[3:], "the same state in its spine"),
        ("geocode", None, "must not be null"),
        ("query_shape", [8, 2, 2], "one entry for each of the 4 axes, got 3"),
        ("query_shape", [8, 2, 2, 0], "must be >= 1, got [8, 2, 2, 0]"),
        ("query_shape", [8, 2, 1, 126], "must be [8, 2, 2, 63] as in the query's other rows"),
        ("value", lambda v: v[:-1], "numbers for query_shape [8, 2, 2, 63], got 2015"),
        ("value", lambda v: [None, *v[1:]], "must hold no nulls"),
        ("value", lambda v: [2**60, *v[1:]], "between -2**52 and 2**52"),
        ("variance", 0.0, "must be > 0, got 0.0"),
        ("variance", float("nan"), "must be > 0, got nan"),
        ("variance", 1.5e30, "must be <= 1e+30, got"),
    ],
)  # fmt: skip
def test_bad_values(sample, file, column, value, text):
    row = detailed_row(file, 1)
    kind = pa.list_(pa.int64()) if column == "value" else None
    change(file, column, edit_at(row, value), kind)
    assert refused(sample, file, row, column, text)


def test_a_whole_query_of_the_wrong_shape(sample, file):
    def swap(values):
        values[:] = [[8, 2, 63, 2] if v == [8, 2, 2, 63] else v for v in values]

    change(file, "query_shape", swap)
    row = detailed_row(file, 0)
    assert refused(sample, file, row, "query_shape", "must be 2 for hispanic = 'detailed', got 63")


def test_shapes_that_differ_between_files(sample, file):
    """An answer of no known recode may have any shape, but the same in every file."""

    def other(values):
        values[:] = ["strange" if v == "detailed" else v for v in values]

    for axis in ("hispanic", "cenrace"):
        change(file, axis, other)

    def swap(values):
        values[:] = [[8, 2, 63, 2] if v == [8, 2, 2, 63] else v for v in values]

    change(file, "query_shape", swap)
    second = sample.folder / "Block.parquet" / "DPQuery" / "State=058" / file.name
    row = detailed_row(second, 0)
    assert refused(sample, second, row, "query_shape", "must be [8, 2, 63, 2] as in")


@pytest.mark.parametrize("group", ["1", "9"])  # of the spine: the published block is the same
def test_duplicated_blocks(sample, file, group):
    row, codes = detailed_row(file, 2), parquet.read_table(file, partitioning=None)["geocode"]
    code = codes[detailed_row(file, 0)].as_py()
    change(file, "geocode", edit_at(row, code[:14] + group + code[15:]))
    assert refused(sample, file, row, "geocode", "must occur once for the query, got")


def test_duplicates_in_another_part(sample, file):
    file.with_name("part-00001.parquet").write_bytes(file.read_bytes())
    row = detailed_row(file, 0)
    assert refused(sample, file.with_name("part-00001.parquet"), row, "geocode", "once")


@pytest.mark.parametrize("column", ["geocode", "variance"])
def test_missing_columns(sample, file, column):
    table = parquet.read_table(file, partitioning=None).drop_columns(column)
    parquet.write_table(table, file)
    assert refused(sample, file, None, None, f"has no column {column!r}; columns: ")


@pytest.mark.parametrize(
    ("column", "kind", "text"),
    [
        ("value", pa.list_(pa.float64()), "must hold lists of integers, got list"),
        ("variance", pa.string(), "must hold floating-point numbers, got string"),
        ("geocode", pa.int64(), "must hold strings, got int64"),
    ],
)
def test_columns_of_another_type(sample, file, column, kind, text):
    table = parquet.read_table(file, partitioning=None)
    place = table.schema.get_field_index(column)
    nulls = pa.nulls(table.num_rows, kind)
    parquet.write_table(table.set_column(place, column, nulls), file)
    assert refused(sample, file, None, None, f"column {column!r}: {text}")


def test_other_axes_in_one_file(sample, file):
    table = parquet.read_table(file, partitioning=None)
    parquet.write_table(table.drop_columns("cenrace"), file)
    assert refused(sample, file, None, None, "of the other files, got hhgq, votingage, hispanic")
    parquet.write_table(table.append_column("age", table.column("cenrace")), file)
    assert refused(
        sample, file, None, None, "must have the axes hhgq, votingage, hispanic, cenrace"
    )


def test_names_that_do_not_end_as_they_should(sample, file):
    change(file, "query_name", edit_at(4, "detailed_con"))
    assert refused(sample, file, 4, "query_name", "must end in '_dpq', got 'detailed_con'")
    change(file, "query_name", edit_at(4, None))
    assert refused(sample, file, 4, "query_name", "must not be null")


def test_unknown_queries_and_levels(sample):
    with pytest.raises(
        ArgumentError, match=r"query must be one of cenrace; detailed; .* got 'age'"
    ):
        read_all(sample, query="age")
    with pytest.raises(ArgumentError, match=r"level must be one of US, State, .* got 'Prim'"):
        read_all(sample, level="Prim")


def test_a_variance_that_the_budget_does_not_give(sample, file):
    budget = br.accounting.census_2020_budget("pl94")
    assert read_all(sample, budget=budget) == 6
    row = detailed_row(file, 1)
    change(file, "variance", edit_at(row, 10.0))
    assert refused(
        sample, file, row, "variance", "must be one that the budget gives, ", budget=budget
    )


def test_constraints_with_another_sign(sample):
    (file,) = (sample.folder / "Block.parquet" / "Constraint" / "State=057").iterdir()
    change(file, "sign", edit_at(0, "<"))
    source = br.census.NoisyMeasurements.open(sample.folder)
    with pytest.raises(DataError, match=r"row 1, column 'sign': must be one of =, <=, >=, got '<'"):
        rows_between(source, "Block", "Constraint", "", "")
    change(file, "geocode", edit_at(0, "058"))
    with pytest.raises(DataError, match=r"column 'geocode': a Block must have 31 characters"):
        source.units("Block")


def test_folders_that_are_none(tmp_path, sample):
    open_ = br.census.NoisyMeasurements.open
    with pytest.raises(DataError, match="must be a folder of noisy measurements"):
        open_(tmp_path / "nowhere")
    with pytest.raises(DataError, match="got none; the folder 'US_Person_PL_PROD' in it does"):
        open_(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"must hold folders such as Block.parquet, got none$"):
        open_(tmp_path / "empty")
    (tmp_path / "empty" / "Block.parquet").mkdir()
    with pytest.raises(DataError, match="must hold Parquet files in its levels, got none"):
        open_(tmp_path / "empty")
    (sample.folder / "Village.parquet").mkdir()
    with pytest.raises(DataError, match=r"named after the levels US, .* got 'Village'"):
        open_(sample.folder)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Region=5", "folders below DPQuery must be State=... or County=..., got 'Region=5'"),
        ("State=50", "State= must have 3 digits, a tribal flag and the FIPS code, got '50'"),
    ],
)
def test_partitions_with_other_names(sample, file, name, text):
    file.parent.rename(file.parent.with_name(name))
    with pytest.raises(DataError) as caught:
        read_all(sample)
    assert text in str(caught.value)
