"""What damaged files did before: each cause once, by the error that names it now."""

import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from fuzz.file_kinds import BLOCKS, HUD_ROWS, KINDS, people, write_workbook
from fuzz.page_headers import lie
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import bayesrisk as br
from bayesrisk.exceptions import BayesRiskError, ConfigError, DataError, OutputError
from bayesrisk.experiments import load_config, read_results
from bayesrisk.readers.text.tables import parse_whole
from bayesrisk.release.likelihoods import plain
from bayesrisk.tables import Attribute, PublishedTables, Records, Schema
from bayesrisk.tables._grammar import codes_of

PERSON = Schema.named("sf1-person")


@pytest.fixture
def example(tmp_path):
    """Return the files of an example by their names, and the call that reads them."""

    def make(kind):
        made = KINDS[kind](tmp_path)
        return {file.name: file for file in made.files}, made.read

    return make


TEXTS = [
    "ppmf-csv", "ppmf-mdf", "form-csv", "ipums-fixed", "ipums-csv", "sf1-folder", "nhgis-folder",
    "hud-csv", "records-csv", "releases-csv", "known-csv", "sweep-table-csv",
]  # fmt: skip


@pytest.mark.parametrize("end", [b"\r", b"\r\n"])
@pytest.mark.parametrize("kind", TEXTS)
def test_lines_may_end_otherwise(kind, end, example):
    files, read = example(kind)
    before = read()
    for file in files.values():
        file.write_bytes(file.read_bytes().replace(b"\n", end))
    after = read()
    if isinstance(before, pd.DataFrame):
        pd.testing.assert_frame_equal(after, before)
    else:
        assert after == before


@given(text=st.binary(max_size=40), sizes=st.lists(st.integers(1, 7), min_size=1, max_size=8))
def test_line_ends_wherever_a_piece_ends(text, sizes):
    import io

    from bayesrisk._files.delimited import TextStream

    data = text.replace(b"a", b"\r\n").replace(b"\0", b"\r")
    stream = TextStream(io.BytesIO(data), "x")
    found, turn = b"", 0
    while piece := stream.read(sizes[turn % len(sizes)]):
        assert len(piece) <= sizes[turn % len(sizes)]
        found, turn = found + piece, turn + 1
    # The standard library's own universal newlines say the same.
    with io.TextIOWrapper(io.BytesIO(data), encoding="latin-1", newline=None) as lines:
        assert found == lines.read().encode("latin-1")
    again = TextStream(io.BytesIO(data), "x")
    assert b"".join(iter(again.readline, b"")) == found


@given(text=st.binary(max_size=40), sizes=st.lists(st.integers(1, 7), min_size=1, max_size=8))
def test_comments_wherever_a_piece_ends(text, sizes):
    import io

    from bayesrisk._files.delimited import TextStream, WithoutComments

    data = text.replace(b"a", b"\n#").replace(b"\r", b"#").replace(b"\0", b"\n")
    stream = WithoutComments(TextStream(io.BytesIO(data), "x"), b"#")
    found, turn = b"", 0
    while piece := stream.read(sizes[turn % len(sizes)]):
        assert len(piece) <= sizes[turn % len(sizes)]
        found, turn = found + piece, turn + 1
    lines = io.BytesIO(data).readlines()
    assert found == b"".join(line for line in lines if not line.startswith(b"#"))


def test_rows_that_are_no_text_among_comments(example, capfd):
    """They are told of in the error, and not on standard error as well."""
    files, read = example("ppmf-mdf")
    (file,) = files.values()
    before, lines = read(), file.read_bytes().splitlines(keepends=True)
    lines[3:3] = [b"# one | two\n", b"#\n", b"#" + lines[3]]
    file.write_bytes(b"".join(lines))
    assert read() == before
    lines.insert(6, b"\xff|1\n")
    file.write_bytes(b"".join(lines))
    with pytest.raises(DataError, match=rf"{file.name}: row 2: must have \d+ columns, got 2"):
        read()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("kind", ["form-csv", "records-csv", "hud-csv", "releases-csv"])
def test_a_field_longer_than_the_csv_module_reads(kind, example):
    files, read = example(kind)
    (file,) = files.values()
    file.write_bytes(b"x" * 140_000 + file.read_bytes())
    with pytest.raises(DataError, match=rf"{file.name}: the header cannot be read: field larger"):
        read()


def test_members_by_other_methods(example, tmp_path):
    files, read = example("ppmf-zip")
    (file,) = files.values()
    with zipfile.ZipFile(file) as archive:
        name = archive.namelist()[0]
        data = archive.read(name)
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(file, "w", method) as archive:
            archive.writestr(name, data)
        with pytest.raises(DataError, match="must be packed by DEFLATE or not at all, got method"):
            read()


def xlsx(example, part, change):
    files, read = example("hud-xlsx")
    (file,) = files.values()
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            changed = change(data) if name == part else data
            if changed is not None:
                archive.writestr(name, changed)
    return read


SHEET = "xl/worksheets/sheet1.xml"


@pytest.mark.parametrize(
    ("part", "change", "words"),
    [
        (SHEET, lambda data: data[:-20], "sheet1.xml: cannot be read: unclosed token"),
        (SHEET, lambda data: b"<!DOCTYPE a>" + data[data.find(b"<w") :], "no document type"),
        (SHEET, lambda data: data.replace(b"<v>", b"<v>9", 1), "one of .* shared texts"),
        (SHEET, lambda data: data.replace(b'r="2"', b'r="1"', 1), "must be row 2 or one after"),
        (SHEET, lambda data: data.replace(b'"B2"', b'"A2"', 1), "must be the next"),
        (SHEET, lambda data: None, "is not in the archive"),
        ("xl/workbook.xml", lambda data: None, "is not in the archive"),
        ("xl/workbook.xml", lambda data: data.replace(b"<sheet ", b"<x "), "must have a sheet"),
        ("_rels/.rels", lambda data: None, "must be an Excel workbook"),
    ],
)
def test_parts_of_a_workbook(part, change, words, example):
    with pytest.raises(DataError, match=words):
        xlsx(example, part, change)()


def test_a_workbook_of_shared_texts(tmp_path):
    """Another program reads the same cells, and we read what the CSV file says."""
    import openpyxl

    file = write_workbook(tmp_path / "a.xlsx", HUD_ROWS)
    book = openpyxl.load_workbook(file)
    cells = list(book.worksheets[0].iter_rows(values_only=True))
    shown = [["" if value is None else str(value) for value in row] for row in cells]
    assert shown == [
        [text.lstrip("0") if text.isdigit() else text for text in row] for row in HUD_ROWS
    ]
    (tmp_path / "a.csv").write_text("".join(",".join(row) + "\n" for row in HUD_ROWS))
    expected = br.readers.read_hud(tmp_path / "a.csv", level="tract")
    pd.testing.assert_frame_equal(br.readers.read_hud(file, level="tract"), expected)


DEEP = "[" * 100_000


@pytest.mark.parametrize("text", [DEEP, "[" * 70 + "]" * 70, '{"a": 1e999}', "[NaN]", "1" * 30])
def test_json_that_no_one_writes(text, tmp_path):
    (tmp_path / "_manifest.json").write_text(text)
    with pytest.raises(DataError, match=r"_manifest.json: cannot be read as JSON: "):
        PublishedTables.read(tmp_path)
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(OutputError, match=r"config.json: cannot be read as JSON: "):
        read_results(tmp_path)


@pytest.mark.parametrize(
    "text", [f"a = {DEEP}", "a." * 1000 + "a = 1", f"a = {'{a=' * 70}1{'}' * 70}"]
)
def test_toml_that_no_one_writes(text, tmp_path):
    (tmp_path / "sweep.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"sweep.toml: cannot be read as TOML: .* (deep|points)"):
        load_config(tmp_path / "sweep.toml")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"settings_per_shard": 0}, "settings_per_shard must be >= 1"),
        ({"settings_per_shard": 0.5}, "settings_per_shard must be of type int"),
        ({"settings_per_shard": "4"}, "settings_per_shard must be of type int"),
        ({"seed": True}, "seed must be of type int"),
        ({"quantities": ["x"]}, "quantities must be one of posterior, "),
        ({"rho": [{"name": "", "value": "x"}]}, r"rho\[0\].value must be of type float, got 'x'"),
        ({"noise": 3}, "noise must be a list, got 3"),
    ],
)
def test_settings_of_another_type(change, words, example):
    files, read = example("run")
    file = files["config.json"]
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(OutputError, match=rf"config.json: .*{words}"):
        read()


PARQUET = [
    "form-parquet", "records-parquet", "releases-parquet", "sweep-table-parquet", "known-parquet",
    "homes", "sample", "statistics",
]  # fmt: skip


NOT_READ = {"sample": ("block", "bedrooms", "subsidised"), "releases-parquet": ("code",)}


@pytest.mark.parametrize("kind", PARQUET)
def test_columns_there_twice(kind, example):
    files, read = example(kind)
    (file,) = files.values()
    table = parquet.read_table(file)
    parquet.write_table(table.append_column(table.column_names[0], table.column(0)), file)
    with pytest.raises(DataError, match=rf"{file.name}: column .*: must stand in the file once"):
        read()


@pytest.mark.parametrize("kind", PARQUET)
def test_columns_of_lists(kind, example):
    files, read = example(kind)
    (file,) = files.values()
    table = parquet.read_table(file)
    for place, name in enumerate(table.column_names):
        if name in NOT_READ.get(kind, ()):
            continue
        lists = pa.array([[1]] * table.num_rows)
        parquet.write_table(table.set_column(place, name, lists), file)
        with pytest.raises(DataError, match=rf"{file.name}: "):
            read()


@pytest.mark.parametrize("about", [b"{}", b"[]", b'{"columns": [{}]}', b"\xff"])
@pytest.mark.parametrize("kind", PARQUET)
def test_metadata_of_pandas_is_not_read(kind, about, example):
    files, read = example(kind)
    (file,) = files.values()
    table = parquet.read_table(file)
    before = read()
    parquet.write_table(table.replace_schema_metadata({b"pandas": about}), file)
    after = read()
    assert type(after) is type(before)
    if isinstance(before, pd.DataFrame):
        pd.testing.assert_frame_equal(after, before)


@pytest.mark.parametrize(
    "kind",
    ["exchange-by-hand", "form-labels-parquet", "records-parquet", "microdata-by-hand", "nmf"],
)
def test_pages_longer_than_their_file(kind, example):
    """Memory was taken for all that a page said of itself: 1.5 GB for a file of 2 KB."""
    files, read = example(kind)
    read()
    file = next(file for name, file in files.items() if name.endswith(".parquet"))
    sound = file.read_bytes()
    for number, words in ((1, "pages must be at most"), (2, "cannot be 1500000000 bytes long")):
        file.write_bytes(lie(sound, 4, number, 1_500_000_000))
        with pytest.raises(DataError, match=rf"{file.name}: .*{words}"):
            read()


def test_text_that_is_no_text(tmp_path):
    """Indices outside their dictionary, and bytes that are no UTF-8."""
    people().write(tmp_path / "a.parquet")
    table = parquet.read_table(tmp_path / "a.parquet")
    bad = pa.StringArray.from_buffers(
        len(table), *(b for b in pa.array([b"\xff" * 15] * len(table)).buffers()[1:])
    )
    parquet.write_table(table.set_column(0, "block", bad), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"b.parquet: cannot be read: .*UTF8"):
        Records.read(tmp_path / "b.parquet", schema=PERSON)


def test_whole_numbers_beyond_64_bits(tmp_path, example):
    files, read = example("exchange-by-hand")
    file = files["part-00000.parquet"]
    table = parquet.read_table(file)
    counts = pa.array([2**64 - 1] * len(table), pa.uint64())
    parquet.write_table(table.set_column(4, "count", counts), file)
    with pytest.raises(DataError, match=r"row 1, column 'count': must be below 2\*\*63, got 18446"):
        read()


def test_fields_wider_than_a_number():
    """Digits beyond 64 bits are no number that has come round to a small one."""
    import numpy as np

    def parsed(text):
        field = np.frombuffer(text.encode(), np.uint8).reshape(1, -1)
        values, good = parse_whole(field)
        return int(values[0]), bool(good[0])

    assert parsed("18446744073709551617") == (1, False)  # 2**64 + 1
    assert parsed("00000000000000000017") == (17, True)
    assert parsed("                  17") == (17, True)


def test_blocks_without_a_place(tmp_path, example):
    files, read = example("microdata-by-hand")
    file = files["blocks.parquet"]
    pd.DataFrame({"block": [None, BLOCKS[0]], "x": 1.0, "y": 2.0}).to_parquet(file)
    with pytest.raises(DataError, match=r"blocks.parquet: row 1, column 'block': must be a place"):
        read()


def test_a_row_with_more_fields_than_the_header(tmp_path, example):
    files, read = example("releases-csv")
    file = files["releases.csv"]
    file.write_text(file.read_text().rstrip() + ",7\n")
    with pytest.raises(DataError, match=r"releases.csv: .*Expected 6 columns, got 7"):
        read()


def test_a_base_beyond_64_bits(example):
    files, read = example("hud-csv")
    (file,) = files.values()
    file.write_text(file.read_text().replace(",40,95,38,", ",40,95,1e300,"))
    with pytest.raises(DataError, match=r"row 1, column 'Number_Reported': must be at most"):
        read()


@pytest.mark.parametrize("change", [{"levels": [1, 2, 3, 4, 5, 6]}, {"widths": ["0"] * 6}])
def test_levels_of_another_type(change, example):
    files, read = example("exchange-by-hand")
    file = files["_manifest.json"]
    document = json.loads(file.read_text())
    document["workload"]["schema"]["geography"].update(change)
    file.write_text(json.dumps(document))
    with pytest.raises(DataError, match=r"_manifest.json: workload: .*must be of type"):
        read()


def test_counts_of_half_width(example):
    files, read = example("exchange-by-hand")
    file = files["part-00000.parquet"]
    table = parquet.read_table(file)
    counts = pa.array(np.full(len(table), 1.5, np.float16))
    parquet.write_table(table.set_column(4, "count", counts), file)
    with pytest.raises(DataError, match=r"column 'count': must be of type int64, got .*1.5"):
        read()


def two_records():
    return Records.from_frame(PERSONS.drop(columns="person"), schema=PERSON)


def statements(**changes):
    release = br.Identity().release(two_records(), workload=br.Workload.named("sf1-block"), rng=1)
    found = br.reconstruction.make_attack("claims", columns=["sex", "age"]).run(release)
    return br.Statements.of(
        found, spec=release.spec, records=two_records(), level="tract", **changes
    )


def _deep():
    found = []
    for _ in range(20_000):
        found = [found]
    return found


PERSONS = pd.DataFrame(
    {"block": "010010201001000", "sex": [0, 1], "age": [30, 41], "race": [1, 2], "hisp": 0}
).assign(person=[7, 8])
NAMED = {
    "zero_variability_blocks": lambda: br.reidentify(
        {"records": PERSONS},
        {"all": PERSONS},
        truth=PERSONS,
        baseline_from="records",
        rng=1,
        zero_variability_blocks=br.DiscreteGaussian(1.0),
    ),
    "releases": lambda: br.risk.majority_inference(_deep(), truth=pd.DataFrame()),
    "universe": lambda: plain(_deep(), "universe"),
    "parameters": lambda: plain(iter(int, 1), "parameters"),
    "leave_out": lambda: statements(leave_out=pd.Series([1, 2])),
    "levels": lambda: br.inference.sample_path(
        [2, 1],
        [0],
        n_siblings=3,
        rho=0.2,
        prior=0.5,
        draws=9,
        warmup=9,
        chains=1,
        rng=1,
        levels=1e308,
    ),
    "schema": lambda: list(br.tables.iter_records("records.csv", schema=float("nan"))),
    "p": lambda: br.distributions.total_variation(3, br.DiscreteGaussian(1.0)),
    "q": lambda: br.distributions.total_variation(br.DiscreteGaussian(1.0), 3),
    "name of the mechanism": lambda: br.make_mechanism("9" * 100_000),
    "name of the attack": lambda: br.reconstruction.make_attack("9" * 100_000),
    "name of the solver": lambda: br.reconstruction.make_solver("9" * 100_000),
    "name of the scenario": lambda: br.risk.Scenario.named("9" * 100_000),
    "scenario_name": lambda: br.block_risk(1, rho=0.1, prior=0.5, scenario_name="9" * 100_000),
    "population": lambda: br.population.population_summary("9" * 100_000),
    "document": lambda: br.MechanismSpec.from_dict("9" * 100_000),
    "source": lambda: br.risk.race_ethnicity_counts(pd.DataFrame({"9" * 100_000: [1]})),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_is_refused_is_named_and_quoted_in_short(name):
    with pytest.raises(br.BayesRiskError, match=name) as caught:
        NAMED[name]()
    assert len(str(caught.value)) < 1000


def test_no_message_quotes_a_value_of_any_length():
    package = Path(br.__file__).parent
    for file in package.rglob("*.py"):
        found = re.findall(r"got [^\n]*\{[^{}]*!r\}", file.read_text(encoding="utf-8"))
        assert not found, f"{file}: {found}: take shown(...)"


def test_a_range_longer_than_len_can_say():
    with pytest.raises(BayesRiskError, match="must have at most"):
        codes_of("0-99999999999999999999999", Attribute("sex", 2))
