import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from bayesrisk.census import household_cells
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, OutputError
from bayesrisk.tables import Attribute, Geography, Microdata, Records, Schema, Workload, tabulate
from bayesrisk.tables.microdata import as_microdata

BLOCK = "500010101001000"
PERSON, UNIT = Schema.named("sf1-person"), Schema.named("household-dhc")


def persons(**changes):
    columns = {
        "block": [BLOCK, BLOCK, "500010101001001"],
        "household": [0, 0, 1],
        "sex": [0, 1, 1],
        "age": [17, 18, 80],
        "race": [1, 3, 63],
        "hisp": [0, 1, 0],
        "gq": [0, 0, 3],
    }
    return Records.from_frame(pd.DataFrame({**columns, **changes}), schema=PERSON)


def households(count=50, **changes):
    rng = np.random.default_rng(1)
    cells = rng.choice(household_cells(), count)
    cells[0] = UNIT.cell_index({**dict.fromkeys(UNIT.names, 0), "vacancy": 2})
    columns = {"block": [BLOCK] * count, "household": np.arange(count), **UNIT.codes(cells)}
    columns |= {"children": rng.integers(0, 9, count), "bedrooms": rng.integers(0, 4, count)}
    columns["subsidised"] = rng.integers(0, 2, count)
    return Records.from_frame(pd.DataFrame({**columns, **changes}), schema=UNIT)


def blocks():
    names = [BLOCK, "500010101001002", "500010101001001"]
    return pd.DataFrame({"block": names, "x": [0.0, 1.0, 2.5], "y": [1.0, 1.0, -3.0]})


def content(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())}


def test_round_trip_byte_for_byte(tmp_path):
    made = Microdata(persons(), households(), blocks())
    made.write(tmp_path / "a")
    again = Microdata.read(tmp_path / "a")
    assert again.persons.schema == PERSON
    assert again.households.schema == UNIT
    assert again.persons.table.equals(made.persons.table)
    assert again.households.table.equals(made.households.table)
    pd.testing.assert_frame_equal(again.blocks, made.blocks)
    again.write(tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert again.geoids().tolist() == sorted(blocks()["block"])


def test_a_smaller_population_replaces_the_larger(tmp_path):
    Microdata(persons(), households(), blocks()).write(tmp_path)
    Microdata(persons()).write(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["_microdata.json", "persons.parquet"]
    only = Microdata.read(tmp_path)
    assert only.households is None
    assert only.geoids() is None


def test_blocks_without_people_are_published_zeros():
    made = tabulate(Microdata(persons(), blocks=blocks()), Workload.named("sf1-block"))
    assert made.geoids["block"].tolist() == sorted(blocks()["block"])
    assert made.count("block", "P1", "500010101001002").tolist() == [0]


def test_persons_of_the_redistricting_file():
    records = Microdata(persons()).for_schema(Schema.named("pl94"))
    assert records.codes("hhgq").tolist() == [0, 0, 3]
    assert records.codes("votingage").tolist() == [0, 1, 1]
    assert records.codes("hispanic").tolist() == [0, 1, 0]
    assert records.codes("cenrace").tolist() == [0, 6, 62]
    assert set(records.columns) == {"block", "household", *Schema.named("pl94").names, "gq"}
    same = Microdata(persons())
    assert same.for_schema(PERSON) is same.persons


@settings(max_examples=8)
@given(st.lists(st.integers(1, 63), min_size=1, max_size=20))
def test_race_codes_agree_with_the_race_tables(masks):
    """A cell of P8 and the code of the redistricting file name the same combination."""
    columns = {name: [0] * len(masks) for name in ("sex", "age", "hisp", "gq")}
    frame = pd.DataFrame({"block": [BLOCK] * len(masks), "race": masks, **columns})
    data = Microdata(Records.from_frame(frame, schema=PERSON))
    block_tables = tabulate(data, Workload.named("sf1-block"))
    redistricting = tabulate(data, Workload.named("pl94", levels=["block"]))
    p8 = block_tables.count("block", "P8", BLOCK)
    assert p8.tolist() == redistricting.count("block", "cenrace", BLOCK).tolist()


def test_units_and_occupancy():
    source = households()
    units = Microdata(households=source).for_schema(Schema.named("pl94-units"))
    occupied = source.codes("vacancy") == 0
    assert units.codes("h1").tolist() == occupied.astype(int).tolist()
    found = Microdata(households=source).for_schema(Schema.named("household-occupancy"))
    frame = source.to_frame()[occupied].reset_index(drop=True)
    assert len(found) == len(frame)
    assert found.codes("size").tolist() == frame["size"].tolist()
    assert found.codes("children").tolist() == frame["children"].clip(upper=6).tolist()
    expected = frame["race"] - 1 + 7 * (frame["hispanic"] - 1)
    assert found.codes("race_ethnicity").tolist() == expected.tolist()
    tables = tabulate(found, Workload.named("household-occupancy"))
    subsidised = frame[frame["subsidised"] == 1]
    assert tables.count("block", "P1", BLOCK).tolist() == [frame["size"].sum()]
    assert tables.count("block", "P16", BLOCK).tolist() == [frame["children"].clip(upper=6).sum()]
    assert tables.count("block", "H3", BLOCK).tolist() == [len(frame)]
    sizes = [(frame["size"] == s).sum() for s in range(1, 8)]
    assert tables.count("block", "H13", BLOCK).tolist() == sizes
    assert tables.count("block", "HUD-people", BLOCK).tolist() == [subsidised["size"].sum()]
    assert tables.count("block", "HUD-households", BLOCK).tolist() == [len(subsidised)]
    assert tables.count("block", "HUD-children", BLOCK) == (subsidised["children"] > 0).sum()
    bedrooms = [(subsidised["bedrooms"] == b).sum() for b in (1, 2, 3)]
    assert tables.count("block", "HUD-bedrooms", BLOCK).tolist() == bedrooms
    code = subsidised["race"].where(subsidised["hispanic"] == 1, 8)
    races = [code.isin(group).sum() for group in ((1,), (2,), (3,), (4, 5), (7,), (8,))]
    assert tables.count("block", "HUD-race", BLOCK).tolist() == races


def test_a_schema_of_ones_own_is_found_where_it_is():
    about = Schema("rooms", (Attribute("rooms", 9),), PERSON.geography)
    rooms = Records.from_frame(pd.DataFrame({"block": [BLOCK], "rooms": [3]}), schema=about)
    assert Microdata(persons(), rooms).for_schema(about) is rooms
    assert as_microdata(rooms).for_schema(about) is rooms


def test_what_cannot_be_recoded():
    only = Microdata(persons())
    with pytest.raises(ArgumentError, match="households must be given for schema 'household-dhc'"):
        only.for_schema(UNIT)
    with pytest.raises(ArgumentError, match="cannot be counted as 'census-1940'"):
        only.for_schema(Schema.named("census-1940"))
    with pytest.raises(ArgumentError, match="cannot be counted as 'pl94' \\(spine-2020\\)"):
        only.for_schema(Schema.named("pl94", geography="spine-2020"))
    bare = Microdata(Records(PERSON, persons().table.drop_columns(["gq"])))
    with pytest.raises(DataError, match="must have a column 'gq'"):
        bare.for_schema(Schema.named("pl94"))
    with pytest.raises(DataError, match=r"row 2, column 'gq': must be in \[0, 7\], got 8"):
        Microdata(persons(gq=[0, 8, 0])).for_schema(Schema.named("pl94"))
    with pytest.raises(DataError, match="column 'children': must be >= 0, got -1"):
        Microdata(households=households(children=[-1] * 50)).for_schema(
            Schema.named("household-occupancy")
        )


def test_units_are_told_apart():
    assert as_microdata(persons()).households is None
    assert as_microdata(households()).persons is None
    made = Microdata(persons())
    assert as_microdata(made) is made
    with pytest.raises(ArgumentTypeError, match="data must be Records or Microdata"):
        as_microdata(3)
    with pytest.raises(ArgumentError, match="got neither"):
        Microdata()


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (blocks().drop(columns="x"), "must be a table with columns block, x, y"),
        (blocks().assign(block=[BLOCK] * 3), f"row 2, column 'block': .* got '{BLOCK}' again"),
        (blocks().assign(y=[0.0, np.nan, 1.0]), "row 2, column 'y': must be a finite number"),
        (blocks().assign(y=["a", "b", "c"]), "column 'y': must be numbers"),
    ],
)
def test_bad_blocks(frame, message, tmp_path):
    with pytest.raises(DataError, match=f"blocks: .*{message}"):
        Microdata(persons(), blocks=frame)
    Microdata(persons()).write(tmp_path)
    (tmp_path / "_microdata.json").unlink()  # as if put together by hand
    frame.to_parquet(tmp_path / "blocks.parquet")
    with pytest.raises(DataError, match=f"blocks.parquet: .*{message}"):
        Microdata.read(tmp_path)


WARD = Schema(
    "ward",
    (Attribute("sex", 2, labels=("F", "M")), Attribute("ward", 3, first=1)),
    Geography("land", ("region", "village"), (1, 3)),
)


@pytest.mark.parametrize("name", ["ward", "sf1-person"])
def test_a_schema_of_ones_own_is_written_and_read_in_full(tmp_path, name):
    """Also one that is called as a built-in one, and is another."""
    own = Schema(name, WARD.attributes, WARD.geography)
    frame = pd.DataFrame({"village": ["101", "202"], "sex": ["M", "F"], "ward": [3, 1]})
    made = Microdata(Records.from_frame(frame, schema=own))
    made.write(tmp_path / "a")
    again = Microdata.read(tmp_path / "a")
    assert again.persons.schema == own
    assert again.persons.table == made.persons.table
    again.write(tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        (b"{", "schema: cannot be read as JSON"),
        (b"[1]", "schema must hold name, attributes, geography"),
        (b"[" * 100_000, "schema: cannot be read as JSON"),
        (b'{"name": "ward", "attributes": [{"name": "sex"}], "geography": null}', "schema must"),
        (b'{"name": "a", "attributes": [{"name": "b", "size": -1}], "geography": null}', "size"),
    ],
)
def test_a_damaged_schema_is_named(tmp_path, definition, words):
    about = {
        "bayesrisk.schema": "ward",
        "bayesrisk.geography": "land",
        "bayesrisk.definition": definition,
    }
    table = persons().table.replace_schema_metadata(about)
    pq.write_table(table, tmp_path / "persons.parquet")
    with pytest.raises(DataError, match=rf"persons.parquet: .*{words}"):
        Microdata.read(tmp_path)


def test_bad_folders(tmp_path):
    with pytest.raises(DataError, match=r"must hold persons.parquet or households.parquet"):
        Microdata.read(tmp_path)
    Microdata(persons()).write(tmp_path)
    (tmp_path / "_microdata.json").unlink()  # as if put together by hand
    file = tmp_path / "persons.parquet"
    sound = file.read_bytes()
    file.write_bytes(sound[:-10])
    with pytest.raises(DataError, match=r"persons.parquet: cannot be read"):
        Microdata.read(tmp_path)
    pq.write_table(persons().table, file)
    with pytest.raises(DataError, match=r"persons.parquet: must name its schema"):
        Microdata.read(tmp_path)
    about = {"bayesrisk.schema": "sf9", "bayesrisk.geography": "census"}
    pq.write_table(persons().table.replace_schema_metadata(about), file)
    with pytest.raises(DataError, match=r"persons.parquet: .*name must be one of.*'sf9'"):
        Microdata.read(tmp_path)
    bad = persons().table.set_column(3, "age", pa.array([1, 2, 111]))
    about["bayesrisk.schema"] = "sf1-person"
    pq.write_table(bad.replace_schema_metadata(about), file)
    with pytest.raises(DataError, match=r"persons.parquet: row 3, column 'age'"):
        Microdata.read(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"holds 'notes.txt'; nothing was changed"):
        Microdata(persons()).write(tmp_path)


def test_files_that_the_manifest_does_not_list_are_refused(tmp_path):
    Microdata(persons(), households(), blocks()).write(tmp_path)
    Microdata(persons(), households(5), blocks()).write(tmp_path / "other")
    for name in ("households.parquet", "blocks.parquet"):
        sound = (tmp_path / name).read_bytes()
        (tmp_path / name).unlink()
        with pytest.raises(DataError, match=f"must hold the files of its manifest.*{name}"):
            Microdata.read(tmp_path)
        (tmp_path / name).write_bytes(sound)
    (tmp_path / "households.parquet").write_bytes(
        (tmp_path / "other" / "households.parquet").read_bytes()
    )
    with pytest.raises(DataError, match=r"households.parquet: is not the file that _microdata"):
        Microdata.read(tmp_path)


def test_microdata_are_replaced_only_where_that_is_wanted(tmp_path):
    Microdata(persons(), households()).write(tmp_path / "m", replace=False)
    before = content(tmp_path / "m")
    with pytest.raises(OutputError, match="holds microdata already; nothing was changed"):
        Microdata(persons()).write(tmp_path / "m", replace=False)
    assert content(tmp_path / "m") == before
    Microdata(persons()).write(tmp_path / "m")
    assert Microdata.read(tmp_path / "m").households is None


@pytest.mark.parametrize(
    "text", ["[]", "{}", "[" * 100_000, '{"format": "bayesrisk microdata 1", "files": {"a": 1}}']
)
def test_bad_manifests_are_refused(text, tmp_path):
    Microdata(persons()).write(tmp_path)
    (tmp_path / "_microdata.json").write_text(text)
    with pytest.raises(DataError, match=r"_microdata.json: "):
        Microdata.read(tmp_path)
