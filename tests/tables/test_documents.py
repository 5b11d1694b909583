"""Schemas and workloads of one's own: from files, a data frame or margins, with labels as codes."""

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from bayesrisk import datasets as samples
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ConfigError, DataError
from bayesrisk.tables import (
    Attribute,
    Geography,
    PublishedTables,
    Records,
    Schema,
    Workload,
    iter_records,
    tabulate,
)

WARD = """
name = "ward"
attributes = [
    { name = "sex", labels = ["F", "M"] },
    { name = "age", size = 4, first = 1 },
]
"""
TABLES = """
schema = "ward.toml"
tables = [{}, { cross = ["sex", "age"] }, { name = "young", where = { age = "1-2" } }]
"""
FRAME = pd.DataFrame({"sex": ["M", "F", "M"], "age": [1, 4, 1]})


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ward.toml").write_text(WARD, encoding="utf-8")
    (tmp_path / "tables.toml").write_text(TABLES, encoding="utf-8")
    return tmp_path


def test_two_short_files(folder):
    work = Workload.read(folder / "tables.toml")
    assert work.schema == Schema(
        "ward", (Attribute("sex", 2, 0, ("F", "M")), Attribute("age", 4, 1))
    )
    assert list(work.tables) == [("all", "total"), ("all", "sex * age"), ("all", "young")]
    assert work.tables["all", "sex * age"].cells[:5] == ("F, 1", "F, 2", "F, 3", "F, 4", "M, 1")
    made = tabulate(Records.from_frame(FRAME, schema=work.schema), work)
    assert made.count("all", "total", "").tolist() == [3]
    assert made.count("all", "sex * age", "").tolist() == [0, 0, 0, 1, 2, 0, 0, 0]
    assert made.count("all", "young", "").tolist() == [2]
    made.write(folder / "made")
    assert PublishedTables.read(folder / "made") == made
    assert Workload.from_dict(json.loads(json.dumps(work.to_dict()))) == work


def test_a_geography_in_the_file(tmp_path):
    place = 'geography = { levels = ["region", "ward"], widths = [1, 3] }\n'
    (tmp_path / "ward.toml").write_text('name = "w"\n' + place + WARD.split("\n", 2)[2])
    file = tmp_path / "tables.toml"
    file.write_text('schema = "ward.toml"\nlevels = ["region"]\ntables = [{ cross = ["sex"] }]')
    work = Workload.read(file)
    frame = FRAME.assign(ward=["101", "102", "201"])
    made = tabulate(Records.from_frame(frame, schema=work.schema), work)
    assert made.geoids["region"].tolist() == ["1", "2"]
    assert made.counts["region", "sex"].toarray().tolist() == [[1, 1], [0, 1]]
    assert Workload.read(file, levels=["ward"]).levels == ("ward",)
    assert Workload.read(file, schema=Schema.read(tmp_path / "ward.toml")) == work


def test_a_built_in_schema_and_geography(tmp_path):
    file = tmp_path / "tables.toml"
    file.write_text('schema = "pl94-units"\ntables = [{ cross = ["h1"] }]')
    assert Workload.read(file).tables.keys() == {("block", "h1")}
    (tmp_path / "own.toml").write_text(
        'name = "own"\ngeography = "census"\n' + WARD.split("\n", 2)[2]
    )
    assert Schema.read(tmp_path / "own.toml").geography == Schema.named("pl94").geography


NAMED = 'name = "w"\nattributes = '
SCHEMAS = [
    ("nam = 1", "unknown key nam; known: name, geography, attributes"),
    ("name = 1\nattributes = []", "name must be of type str, got 1"),
    ('name = "w"', "attributes must be given"),
    (NAMED + "[3]", r"\[attributes\[0\]\] must be a table, got 3"),
    (NAMED + '[{ name = "a" }]', r"attributes\[0\]\.size must be given .* got None"),
    (NAMED + '[{ name = "a", size = 3, labels = ["x", "y"] }]', r"\[0\]\.size must be 2, .* got 3"),
    (NAMED + '[{ name = "a", labels = ["x", "x"] }]', r"\[0\]\.labels must be different, got 'x'"),
    (NAMED + '[{ name = "a", labels = ["1", "2"] }]', r"\[0\]\.labels must be .* code.*, 0: .*'1'"),
    (NAMED + '[{ name = "c", size = 2 }]\ngeography = "moon"', "moon"),
    (
        NAMED + '[{ name = "c", size = 2 }]\ngeography = { levels = ["a", "b"], widths = [3, 1] }',
        r"widths must increase from 0 or more, got \(3, 1\)",
    ),
    (NAMED + '[{ name = "a", size = 2 }, { name = "a", size = 2 }]', "once, got 'a' more"),
    ("name = ", "cannot be read as TOML"),
]


@pytest.mark.parametrize(("text", "message"), SCHEMAS)
def test_files_of_schemas_are_refused(text, message, tmp_path):
    (tmp_path / "bad.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"bad\.toml: .*{message}"):
        Schema.read(tmp_path / "bad.toml")


@pytest.mark.parametrize(
    ("schema", "text", "message"),
    [
        ("ward.toml", "tables = []", r"tables must .* at least one entry, got \[\]"),
        (None, "tables = [{}]", "schema must be a .toml file or one of census-1940"),
        ("moon", "tables = [{}]", r"schema must be a \.toml file or one of .* got 'moon'"),
        ("moon.toml", "tables = [{}]", "cannot be read"),
        ("ward.toml", 'tables = [{ cross = ["x"] }]', "attribute must be one of sex, age"),
        ("ward.toml", "tables = [{ crss = [] }]", r"unknown key tables\[0\]\.crss"),
        ("ward.toml", 'levels = ["town"]\ntables = [{}]', "level must be one of all"),
        ("ward.toml", "tables = [{}, {}]", "'total' must be defined once at 'all'"),
        ("ward.toml", 'tables = [{ where = { sex = "0" } }]', r"tables\[0\]\.name .* where"),
        ("ward.toml", "tables = [{ cross = 3 }]", r"tables\[0\]\.cross .* list, got 3"),
        ("ward.toml", 'tables = [{ cross = ["sex", 3] }]', "cross must hold .*, got 3"),
    ],
)
def test_files_of_tables_are_refused(schema, text, message, folder):
    first = "" if schema is None else f'schema = "{schema}"\n'
    (folder / "bad.toml").write_text(first + text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        Workload.read(folder / "bad.toml")


def test_a_schema_from_a_frame():
    frame = FRAME.assign(kind=pd.Categorical(["b", "a", "b"], categories=["b", "c", "a"]))
    about = Schema.from_frame(frame, name="x")
    assert about.name == "x"
    assert about.attribute("sex").labels == ("F", "M")
    assert (about.attribute("age").first, about.attribute("age").size) == (1, 4)
    assert about.attribute("kind").labels == ("b", "c", "a")
    records = Records.from_frame(frame, schema=about)
    assert records.codes("kind").tolist() == [0, 2, 0]
    back = about.labelled(records.to_frame())
    assert back["sex"].tolist() == ["M", "F", "M"]
    assert back["kind"].tolist() == ["b", "a", "b"]
    assert Schema.from_frame(frame, columns=["age"]).names == ("age",)
    place = Geography("g", ("town",), (2,))
    assert Schema.from_frame(frame.assign(town="01"), geography=place).names == (
        "sex",
        "age",
        "kind",
    )
    census = Schema.from_frame(frame.assign(block="1" * 15), geography="census")
    assert census.geography.finest == "block"


@pytest.mark.parametrize(
    ("frame", "more", "error", "message"),
    [
        (FRAME.assign(x=1j), {}, DataError, "column 'x': must hold numbers or text"),
        (FRAME.assign(x=[0.5, 1, float("inf")]), {}, DataError, "'x': must hold finite numbers"),
        (FRAME, {"cuts": {"y": [1]}}, ArgumentError, "cuts must be one of sex, age"),
        (FRAME, {"cuts": {"age": [2, 2]}}, ArgumentError, r"cuts.* must increase: write .2"),
        (FRAME, {"cuts": {"sex": [1]}}, DataError, "column 'sex': must hold numbers to have cuts"),
        (FRAME, {"place": "town"}, DataError, r"it lacks \['town'\]"),
        (FRAME.assign(town=["a", None, "b"]), {"place": "town"}, DataError, "row 2, column 'town'"),
        (
            FRAME.assign(region=["N", "S", "S"], town=["a", "a", "b"]),
            {"place": ["region", "town"]},
            DataError,
            "column 'town': places must lie in one 'region' each, got 'a' in several",
        ),
        (FRAME, {"place": "sex", "geography": "census"}, ArgumentError, "place must not be given"),
        (FRAME.assign(x=["1", "2", "3"]), {}, DataError, "labels must be no number but the code"),
        (
            FRAME.assign(all=1),
            {"columns": ["all"]},
            ArgumentError,
            "places must give each once, got 'all'",
        ),
        (FRAME, {"columns": ["y"]}, DataError, r"frame: must have the columns \['y'\], it lacks"),
        (FRAME, {"geography": "census"}, DataError, r"it lacks \['block'\]"),
        (FRAME, {"geography": "moon"}, ArgumentError, "geography must be one of census"),
        (FRAME, {"geography": 3}, ArgumentTypeError, "geography"),
    ],
)
def test_frames_are_refused(frame, more, error, message):
    with pytest.raises(error, match=message):
        Schema.from_frame(frame, **more)


def test_margins():
    about = Schema.from_frame(FRAME)
    work = Workload.of(about, [(), "sex", ["age", "sex"]])
    assert [name for _, name in work.tables] == ["total", "sex", "age * sex"]
    assert work.tables["all", "age * sex"].cells[:3] == ("1, F", "1, M", "2, F")
    for margins, message in (
        ([], "at least one table"),
        ([("sex", "x")], r"margins\[0\] must be one of sex, age, got 'x'"),
        (["sex", "sex"], "must be defined once"),
        ([3], r"margins\[0\]"),
        (3, "margins"),
    ):
        with pytest.raises(ArgumentError, match=message):
            Workload.of(about, margins)
    with pytest.raises(ArgumentError, match="level must be one of all, got 'block'"):
        Workload.of(about, ["sex"], levels=["block"])


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(-3, 3), st.sampled_from(["x y", "é", "z"])),
        min_size=1,
        max_size=30,
    )
)
def test_margins_count_what_a_loop_counts(rows):
    frame = pd.DataFrame(rows, columns=["p", "q", "r"])
    about = Schema.from_frame(frame)
    chosen = [(), ("p",), ("q", "r"), ("p", "q", "r")]
    made = tabulate(Records.from_frame(frame, schema=about), Workload.of(about, chosen))
    values = {n: sorted(set(frame[n])) for n in "pr"} | {"q": range(min(frame.q), max(frame.q) + 1)}
    for names in chosen:
        key = "all", " * ".join(names) or "total"
        wanted = {
            ", ".join(map(str, cell)) or "total": sum(
                all(row["pqr".index(n)] == v for n, v in zip(names, cell, strict=True))
                for row in rows
            )
            for cell in product(*(values[n] for n in names))
        }
        cells = made.workload.tables[key].cells
        assert dict(zip(cells, made.count(*key, "").tolist(), strict=True)) == wanted


def test_labels_in_files(folder, tmp_path):
    about = Schema.read(folder / "ward.toml")
    FRAME.to_csv(tmp_path / "r.csv", index=False)
    FRAME.to_parquet(tmp_path / "r.parquet", index=False)
    (tmp_path / "c.csv").write_text("sex,age\n1,1\nF,4\nM,1\n")  # a number is a code
    for name in ("r.csv", "r.parquet", "c.csv"):
        found = Records.read(tmp_path / name, schema=about)
        assert found.codes("sex").tolist() == [1, 0, 1]
        assert found.codes("age").tolist() == [1, 4, 1]
        assert found.geoids.tolist() == [""] * 3
    pieces = iter_records(tmp_path / "r.csv", schema=about, chunk=2)
    assert [piece.codes("sex").tolist() for piece in pieces] == [[1, 0], [1]]
    FRAME.assign(sex=["M", "F", "X"]).to_csv(tmp_path / "bad.csv", index=False)
    FRAME.assign(sex=["M", "F", "X"]).to_parquet(tmp_path / "bad.parquet", index=False)
    known = r"must be a whole number in \[0, 1\] or one of 'F', 'M', got 'X'"
    for name in ("bad.csv", "bad.parquet"):
        with pytest.raises(DataError, match=rf"{name}: row 3, column 'sex': {known}"):
            Records.read(tmp_path / name, schema=about)
    (tmp_path / "n.csv").write_text("sex,age\n7,1\n")
    with pytest.raises(DataError, match=r"row 1, column 'sex': must be .* \[0, 1\], got 7"):
        Records.read(tmp_path / "n.csv", schema=about)
    with pytest.raises(DataError, match=r"row 2, column 'sex': must be .*, got None"):
        Records.from_frame(FRAME.assign(sex=["M", None, "F"]), schema=about)
    many = Schema("m", (Attribute("a", 50, 0, tuple(f"l{i}" for i in range(50))),))
    with pytest.raises(DataError, match="'l19' and 30 more, got 'x'"):
        Records.from_frame(pd.DataFrame({"a": ["l1", "x"]}), schema=many)


def test_the_one_place_needs_no_column():
    about = Schema.from_frame(FRAME)
    assert Records.from_frame(FRAME.assign(all=""), schema=about).geoids.tolist() == [""] * 3
    with pytest.raises(
        DataError, match="row 1, column 'all': must be a place of 0 digits, got '1'"
    ):
        Records.from_frame(FRAME.assign(all="1"), schema=about)
    with pytest.raises(DataError, match="must have one column 'block'"):
        Records.from_frame(
            FRAME, schema=Schema.from_frame(FRAME.assign(block="1"), geography="census")
        )


def test_labels_are_codes_and_back():
    sex = Attribute("sex", 2, 1, ("F", "M"))
    assert [sex.code("F"), sex.code("M")] == [1, 2]
    with pytest.raises(ArgumentError, match="sex must be one of F, M, got 'X'"):
        sex.code("X")
    about = Schema("s", (sex,))
    assert about.labelled(pd.DataFrame({"sex": [2, 1], "x": [0, 1]}))["sex"].tolist() == ["M", "F"]
    with pytest.raises(ArgumentError, match="sex must be <= 2, got 3"):
        about.labelled(pd.DataFrame({"sex": [3]}))
    some = about.labelled(pd.DataFrame({"sex": pd.array([2, None], dtype="Int64")}))["sex"]
    assert some[0] == "M"
    assert pd.isna(some[1])
    assert len(about.labelled(pd.DataFrame({"sex": []}))) == 0
    none = about.labelled(pd.DataFrame({"sex": pd.array([None, None], dtype="Int64")}))["sex"]
    assert none.isna().tolist() == [True, True]


def drawn(recipe, schema):
    """Return the sample's patients: codes by inverting cumulated weights at uniform draws."""
    uniform = np.random.default_rng(recipe["rng"]).random((3, recipe["people"]))

    def codes(weights, at):
        ends = np.cumsum(np.atleast_2d(weights), axis=1)
        return (at[:, None] * ends[:, -1:] >= ends).sum(axis=1)

    age = codes(recipe["age"], uniform[1])
    diagnosis = codes(np.array(recipe["diagnosis"])[age], uniform[2])
    frame = {"region": codes(recipe["region"], uniform[0]), "age": age, "diagnosis": diagnosis}
    return schema.labelled(pd.DataFrame(frame))


def test_the_sample_is_made_by_its_recipe():
    folder = samples.path("hospital")
    patients = pd.read_csv(folder / "records.csv")
    made = drawn(samples.catalogue()["hospital"]["recipe"], Schema.read(folder / "schema.toml"))
    assert patients.equals(made.astype(patients.dtypes.to_dict()))
