import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bayesrisk.cli.app import app
from bayesrisk.exceptions import ArgumentError, DataError, OutputError
from bayesrisk.experiments.by_place import split_by_place
from bayesrisk.release import Release
from bayesrisk.tables import Microdata, PublishedTables, Records, Schema, Workload, tabulate

pytestmark = pytest.mark.usefixtures("quick_figures")

RUNNER = CliRunner()


def people(count=300):
    rng = np.random.default_rng(8)
    return pd.DataFrame(
        {
            "block": rng.choice([10730051031000, 500010101001000], count),
            "sex": rng.integers(0, 2, count),
            "age": rng.integers(0, 111, count),
            "race": rng.integers(1, 64, count),
            "hisp": rng.integers(0, 2, count),
            "gq": rng.integers(0, 8, count),
        }
    )


def records():
    return Records.from_frame(people(), schema=Schema.named("sf1-person"))


def run(*arguments):
    return RUNNER.invoke(app, ["release", "--protection", "none", *map(str, arguments)])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "people.parquet"
    people().to_parquet(path, index=False)
    return path


def test_tables_of_a_file(file, tmp_path):
    done = run(file, "--tables", "sf1-block,sf1-tract", "-o", tmp_path / "t")
    assert done.exit_code == 0
    assert "34 tables of 4071 cells" in done.stdout
    assert "300 records" in done.stderr
    both = Workload.named("sf1-block").union(Workload.named("sf1-tract"))
    assert PublishedTables.read(tmp_path / "t") == tabulate(records(), both)


def test_csv_and_microdata_give_the_same(file, tmp_path):
    people().assign(block=people()["block"].map("{:015d}".format)).to_csv(
        tmp_path / "people.csv", index=False
    )
    Microdata(records()).write(tmp_path / "m")
    for i, source in enumerate((file, tmp_path / "people.csv", tmp_path / "m")):
        done = run(source, "--tables", "sf1-block", "-o", tmp_path / f"t{i}", "--quiet")
        assert (done.exit_code, done.stderr) == (0, "")
    contents = [{p.name: p.read_bytes() for p in (tmp_path / f"t{i}").iterdir()} for i in range(3)]
    assert contents[0] == contents[1] == contents[2]


def test_options(file, tmp_path):
    options = ["--level", "county", "--schema", "sf1-person", "--without", "detailed", "--json"]
    done = run(file, "--tables", "pl94", "-o", tmp_path / "t", *options)
    summary = json.loads(done.stdout)
    assert (done.stderr, summary["places"], summary["tables"]) == ("", {"county": 2}, 10)
    made = PublishedTables.read(tmp_path / "t")
    assert made.count("county", "total", "01073").sum() == (people()["block"] < 10**14).sum()
    assert summary["rows"] == len(made.to_frame())


def test_folders_in_use(file, tmp_path):
    assert run(file, "--tables", "sf1-block", "-o", tmp_path / "t").exit_code == 0
    again = run(file, "--tables", "sf1-tract", "-o", tmp_path / "t")
    assert isinstance(again.exception, OutputError)
    assert "add --replace" in str(again.exception)
    assert PublishedTables.read(tmp_path / "t").workload == Workload.named("sf1-block")
    assert run(file, "--tables", "sf1-tract", "-o", tmp_path / "t", "--replace").exit_code == 0
    assert PublishedTables.read(tmp_path / "t").workload == Workload.named("sf1-tract")
    for replace in ([], ["--replace"]):
        foreign = run(file, "--tables", "sf1-tract", "-o", tmp_path, *replace)
        assert isinstance(foreign.exception, OutputError)
        assert "nothing was changed" in str(foreign.exception)
    (tmp_path / "t" / "_release.json").write_text("{}")
    release = run(file, "--tables", "sf1-tract", "-o", tmp_path / "t", "--replace")
    assert isinstance(release.exception, OutputError)


def test_bad_records_write_nothing(file, tmp_path):
    people().assign(age=200).to_parquet(file, index=False)
    done = run(file, "--tables", "sf1-block", "-o", tmp_path / "t")
    assert isinstance(done.exception, DataError)
    assert "people.parquet: row 1, column 'age'" in str(done.exception)
    assert not (tmp_path / "t").exists()
    Microdata(records()).write(tmp_path / "m")
    done = run(tmp_path / "m", "--tables", "pl94", "--schema", "pl94", "-o", tmp_path / "t")
    assert isinstance(done.exception, ArgumentError)


def test_a_coding_that_nobody_says(tmp_path):
    """Columns of other codings are refused with the choices; what a file says of itself holds."""
    from bayesrisk.census import write_record_form

    for ending in ("csv", "parquet"):
        write_record_form(records(), tmp_path / f"a.{ending}", dialect="archive")
    done = run(tmp_path / "a.csv", "--tables", "sf1-block", "-o", tmp_path / "a")
    assert isinstance(done.exception, ArgumentError)
    assert str(done.exception).startswith(f"--dialect must be said, {tmp_path / 'a.csv'} does not")
    assert "'archive': sex 1 male, 0 female" in str(done.exception)
    assert not (tmp_path / "a").exists()
    done = run(tmp_path / "a.parquet", "--tables", "sf1-block", "-o", tmp_path / "a")
    assert done.exit_code == 0
    assert PublishedTables.read(tmp_path / "a") == tabulate(
        Microdata(records()), Workload.named("sf1-block")
    )
    done = run(
        tmp_path / "a.parquet", "--dialect", "schema", "--tables", "sf1-block", "-o", tmp_path / "b"
    )
    assert "--dialect must be 'archive', which" in str(done.exception)
    with pytest.raises(DataError, match="codes are of the dialect 'archive', not those of the sch"):
        Records.read(tmp_path / "a.parquet", schema=Schema.named("sf1-person"))


def test_tables_by_place(file, tmp_path):
    """Of a file, and of microdata by place: the same as those of the whole."""
    both = ["--tables", "sf1-block,sf1-tract"]
    done = run(file, *both, "--by", "county", "-o", tmp_path / "t")
    assert (done.exit_code, "in 2 parts" in done.stdout) == (0, True)
    expected = tabulate(records(), Workload.named("sf1-block").union(Workload.named("sf1-tract")))
    assert PublishedTables.read(tmp_path / "t") == expected
    assert sorted(p.name for p in tmp_path.iterdir()) == ["people.parquet", "t"]  # nothing is left
    split_by_place(records(), tmp_path / "m")
    again = run(tmp_path / "m", *both, "--by", "tract", "-o", tmp_path / "v")
    assert "--by goes with records that are not by place" in str(again.exception)
    done = run(tmp_path / "m", *both, "-o", tmp_path / "u", "--json")
    assert json.loads(done.stdout)["places"] == 2
    names = ("_partitions.json", "_places.parquet", "part-01073/_manifest.json")
    for name in names:
        assert (tmp_path / "t" / name).read_bytes() == (tmp_path / "u" / name).read_bytes()


LAND = """
name = "ward"
geography = { name = "land", levels = ["region", "village"], widths = [1, 3] }
attributes = [{ name = "sex", labels = ["F", "M"] }, { name = "room", size = 3 }]
"""
COUNTED = """
schema = "schema.toml"
levels = ["village"]
tables = [{ name = "total" }, { name = "both", cross = ["sex", "room"] }]
"""


def test_a_schema_of_ones_own_by_place(tmp_path):
    """Tables, a release and an audit of records by place, as of the whole."""
    rng = np.random.default_rng(2)
    (tmp_path / "schema.toml").write_text(LAND)
    (tmp_path / "tables.toml").write_text(COUNTED)
    frame = pd.DataFrame({"village": rng.choice([101, 102, 205, 301], 90), "room": 2})
    frame.assign(sex=rng.choice(["F", "M"], 90)).to_csv(tmp_path / "r.csv", index=False)
    asked = [tmp_path / "r.csv", "--tables", tmp_path / "tables.toml"]
    assert run(*asked, "--by", "region", "-o", tmp_path / "parts").exit_code == 0
    assert run(*asked, "-o", tmp_path / "whole").exit_code == 0
    whole = PublishedTables.read(tmp_path / "whole")
    assert PublishedTables.read(tmp_path / "parts") == whole

    def also(*words):
        return CliRunner().invoke(app, [str(w) for w in words])

    released = ["--protection", "identity", "--by", "region", "-o", tmp_path / "released"]
    done = also("release", *asked, *released, "--schema", tmp_path / "schema.toml")
    assert done.exit_code == 0, done.output
    assert Release.read(tmp_path / "released").tables == whole
    records_ = Records.read(tmp_path / "r.csv", schema=Schema.read(tmp_path / "schema.toml"))
    split_by_place(records_, tmp_path / "people", level="region")
    done = also(
        "audit", tmp_path / "people", *asked[1:], "--protection", "identity", "--known", "room",
        "--stated", "sex", "--targets", 10, "-o", tmp_path / "audit",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert (tmp_path / "audit" / "report.html").exists()
