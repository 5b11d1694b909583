"""``bayesrisk census read``: every form, refusals, and nothing half-written."""

import json
import zipfile

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from agency_forms import write_ipums_1940, write_nhgis, write_sf1
from oracles import readers as oracle
from typer.testing import CliRunner

from bayesrisk import DataError
from bayesrisk.census import write_ppmf, write_ppmf_units, write_record_form
from bayesrisk.census.readers.forms import READERS
from bayesrisk.cli.app import app
from bayesrisk.exceptions import ArgumentError, OutputError
from bayesrisk.tables import PublishedTables, Records, Schema, Workload, tabulate

RNG = np.random.default_rng(7)


def run(*arguments, fails=None):
    result = CliRunner().invoke(app, ["census", "read", *map(str, arguments)])
    if fails is None:
        assert result.exit_code == 0, result.output + repr(result.exception)
        return result.stdout
    assert isinstance(result.exception, fails[0]), repr(result.exception)
    assert fails[1] in str(result.exception)
    return ""


def test_records_of_every_form(tmp_path):
    people = oracle.person_records(RNG, 20)
    persons_1940 = oracle.records_1940(RNG, 5)
    write_ppmf(oracle.pl94_records(RNG, 9), tmp_path / "p.csv", vintage="2010-demonstration")
    write_ppmf_units(oracle.household_records(RNG, 9), tmp_path / "u.csv", vintage="2020")
    write_record_form(people, tmp_path / "r.csv", dialect="schema")
    write_ipums_1940(persons_1940, tmp_path / "EXT1940USCB.dat")
    write_ipums_1940(persons_1940, tmp_path / "usa.dat", ddi=tmp_path / "usa.xml")
    for form, file, options, name, rows in (
        ("ppmf", "p.csv", [], "pl94", 9),
        ("ppmf-units", "u.csv", [], "household-dhc", 9),
        ("records", "r.csv", ["--dialect", "schema"], "sf1-person", 20),
        ("ipums-1940", "EXT1940USCB.dat", [], "census-1940", len(persons_1940)),
        ("ipums-1940", "usa.dat", ["--codebook", tmp_path / "usa.xml"], "census-1940", None),
    ):
        output = tmp_path / f"{form}-{file}.parquet"
        text = run(tmp_path / file, "--from", form, "-o", output, "--json", *options)
        assert json.loads(text)["rows"] == (rows or len(persons_1940))
        assert len(Records.read(output, schema=Schema.named(name))) == (rows or len(persons_1940))
    found = Records.read(tmp_path / "records-r.csv.parquet", schema=Schema.named("sf1-person"))
    assert oracle.same(found, people)


def clinic(path, *, state=None, chunk=2):
    """A reader of one's own: visits of a clinic, two at a time."""
    frame = pd.read_csv(path)
    for start in range(0, len(frame), chunk):
        yield frame[start : start + chunk].assign(state=state)


def test_a_form_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setattr(READERS, "_registered", {"clinic": clinic})
    visits = pd.DataFrame({"ward": ["a", "b", "a"], "days": [3, 1, 2]})
    visits.to_csv(tmp_path / "v.csv", index=False)
    asked = (tmp_path / "v.csv", "-o", tmp_path / "v.parquet")
    for words in ((), ("--from", "clinics")):
        run(*asked, *words, fails=(ArgumentError, "one of clinic, dhc"))
    run(
        *asked,
        "--from",
        "ipums",
        "--state",
        "VT",
        fails=(ArgumentError, "goes with --from clinic or "),
    )
    text = run(*asked, "--from", "clinic", "--state", "VT", "--json")
    assert json.loads(text)["rows"] == 3
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "v.parquet"), visits.assign(state="VT"), check_dtype=False
    )


def test_tables(tmp_path):
    blocks = ["500010001001000", "500010001001001"] * 10
    people = oracle.person_records(RNG, 20).replace(block=blocks)
    tables = tabulate(people, Workload.named("sf1-block"))
    write_sf1(tables, tmp_path / "vt2010.sf1.zip")
    write_nhgis(tables, tmp_path / "nhgis.zip", described=True)
    for form, file in (("sf1", "vt2010.sf1.zip"), ("nhgis", "nhgis.zip")):
        options = ["--from", form, "--workload", "sf1-block", "-o", tmp_path / form, "-q"]
        assert run(tmp_path / file, *options).startswith("2 places in")
        assert PublishedTables.read(tmp_path / form) == tables
    options = ["--from", "sf1", "--workload", "sf1-block", "--table", "P1", "--level", "block"]
    run(tmp_path / "vt2010.sf1.zip", *options, "-o", tmp_path / "few")
    frame = pd.read_parquet(tmp_path / "few")
    assert frame["table"].unique().tolist() == ["P1"]
    assert frame["count"].tolist() == [10, 10]


def test_hud(tmp_path):
    (tmp_path / "a.csv").write_text("code,number_reported,pct_bed1\n1003010100,40,95\n")
    output = tmp_path / "hud.parquet"
    run(tmp_path / "a.csv", "--from", "hud", "--level", "tract", "-o", output)
    row = pq.read_table(output).to_pylist()[0]
    assert (row["code"], row["pct_bed1_low"], row["pct_bed1_high"]) == ("01003010100", 38, 38)


def test_values_that_cannot_be_are_missing_where_the_option_says_so(tmp_path):
    """One warning on standard error; the summary counts by column and reason."""
    file, output = tmp_path / "COUNTY_2017.csv", tmp_path / "hud.parquet"
    file.write_text("code,total_units,latitude\n1001,-13,-1\n1003,40,32.5\n1005,-7,32.5\n")
    options = [file, "--from", "hud", "--level", "county", "-o", output]
    run(*options, fails=(DataError, "row 1, column 'total_units': must be a number >= 0"))
    run(*options, fails=(DataError, "got '-13'; --on-error missing keeps such values"))
    run(*options, "--on-error", "keep", fails=(ArgumentError, "--on-error must be one of"))
    assert not output.exists()
    arguments = [*map(str, options), "--on-error", "missing", "--json"]
    result = CliRunner().invoke(app, ["census", "read", *arguments])
    assert json.loads(result.stdout)["missing"] == [
        {"column": "total_units", "reason": "below 0", "values": 2},
    ]
    assert "column 'total_units': below 0 (2 rows)" in result.stderr
    assert pq.read_table(output)["total_units"].to_pylist() == [None, 40, None]
    assert pq.read_table(output)["latitude"].to_pylist() == [None, 32.5, 32.5]


def test_counts_that_cannot_be_are_suppressed_where_the_option_says_so(tmp_path):
    people = oracle.person_records(RNG, 9).replace(block=["500010001001000"] * 9)
    write_nhgis(tabulate(people, Workload.named("sf1-block").select(tables=["P1"])),
                tmp_path / "n.zip")  # fmt: skip
    with zipfile.ZipFile(tmp_path / "n.zip") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data.replace(b",9\n", b",-9\n"))
    options = [tmp_path / "b.zip", "--from", "nhgis", "--workload", "sf1-block", "--table", "P1"]
    run(*options, "-o", tmp_path / "no", fails=(DataError, "--on-error missing keeps such values"))
    result = CliRunner().invoke(
        app, ["census", "read", *map(str, options), "-o", str(tmp_path / "t"), "--on-error",
              "missing", "--json"])  # fmt: skip
    (missing,) = json.loads(result.stdout)["missing"]
    assert (missing["column"], missing["values"]) == ("H7V001", 1)
    tables = PublishedTables.read(tmp_path / "t")
    assert tables.hidden("block", "P1").toarray().tolist() == [[True]]


def test_refusals_leave_nothing(tmp_path):
    file = tmp_path / "r.csv"
    write_record_form(oracle.person_records(RNG, 20), file, dialect="schema")
    text = file.read_text()
    file.write_text(text[:-2] + "x\n")
    before = sorted(tmp_path.iterdir())
    out = tmp_path / "out.parquet"
    schema = ["--from", "records", "--dialect", "schema", "-o"]
    for options, error, message in (
        ([*schema, out], DataError, "row 20, column"),
        (["--from", "ppmf", "-o", out], DataError, "known vintage"),
        ([*schema, tmp_path / "out.csv"], ArgumentError, ".parquet"),
        ([*schema, file], OutputError, "exists already"),
    ):
        run(file, *options, fails=(error, message))
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_progress_in_lines(tmp_path, monkeypatch, seconds):
    monkeypatch.setattr("bayesrisk.cli.printing._SECONDS", seconds)
    write_record_form(oracle.person_records(RNG, 20), tmp_path / "r.csv", dialect="schema")
    result = CliRunner().invoke(
        app,
        ["census", "read", str(tmp_path / "r.csv"), "--from", "records", "--dialect", "schema",
         "-o", str(tmp_path / "o.parquet")],
    )  # fmt: skip
    assert result.stderr.count("20 rows\n") == 1  # at the end, if no line was due before


def test_tables_of_2020_and_an_attack_on_them(tmp_path):
    """Segments of both files and an extract of NHGIS become folders that the attacks take."""
    from agency_forms import write_dhc, write_nhgis, write_pl94

    blocks = [f"50001000100{b}" for b in RNG.integers(1000, 1003, 12)]
    voters = oracle.pl94_records(RNG, 12).replace(block=blocks)
    people = oracle.person_records(RNG, 12).replace(block=blocks)
    redistricting = tabulate(voters, Workload.named("pl94-tables"))
    persons = tabulate(people, Workload.named("dhc-block"))
    write_pl94(redistricting, tmp_path / "vt2020.pl.zip")
    write_dhc(persons, tmp_path / "vt2020.dhc.zip")
    write_nhgis(redistricting, tmp_path / "n.zip", dataset="2020_PL94171")
    for form, file, name, tables, more in (
        ("pl94", "vt2020.pl.zip", "pl94-tables", redistricting, []),
        ("dhc", "vt2020.dhc.zip", "dhc-block", persons, []),
        ("nhgis", "n.zip", "pl94-tables", redistricting, ["--dataset", "ds248"]),
    ):
        run(tmp_path / file, "--from", form, "--workload", name, "-o", tmp_path / form, *more)
        assert PublishedTables.read(tmp_path / form) == tables
    attack = CliRunner().invoke(
        app,
        [
            "attack",
            "--only",
            "records",
            str(tmp_path / "pl94"),
            "-o",
            str(tmp_path / "out"),
            "--scope",
            "block",
        ],
    )
    assert attack.exit_code == 0
    assert "12 records" in attack.stdout
    run(
        tmp_path / "vt2020.pl.zip", "--from", "pl94", "--workload", "dhc-block",
        "-o", tmp_path / "no", fails=(ArgumentError, "of the 2020 redistricting file"),
    )  # fmt: skip


def test_a_survey_with_other_kinds_of_lines(run, tmp_path):
    """Two persons, whatever their kind is called; none without a word."""
    names = [("KIND", 1, 1, "1 2 3"), ("ID", 2, 4, "1 2 3"), ("STATE", 5, 6, "1"),
             ("YEARS", 5, 7, "2"), ("ACT", 5, 9, "3")]  # fmt: skip
    variables = "".join(
        f'<var name="{name}" rectype="{has}"><location StartPos="{a}" EndPos="{b}"/></var>'
        for name, a, b, has in names
    )
    groups = "".join(f'<recGrp recidvar="KIND" rectype="{k}" keyvar="ID"/>' for k in "123")
    (tmp_path / "tus.xml").write_text(
        f'<codeBook><fileStrc type="hierarchical">{groups}</fileStrc>{variables}</codeBook>'
    )
    (tmp_path / "tus.dat").write_text("100106\n2001035\n300101001\n100236\n2002070\n")
    words = ("census", "read", tmp_path / "tus.dat", "--from", "ipums")
    words += ("--codebook", tmp_path / "tus.xml", "-o", tmp_path / "p.parquet")
    status, _, said = run(*words)
    assert (status, (tmp_path / "p.parquet").exists()) == (2, False)
    assert "--person-kind must be the kind of records of persons, one of 1, 2, 3" in said
    status, _, said = run(*words, "--person-kind", "2")
    assert status == 0
    assert "are left out, with ACT" in said
    frame = pd.read_parquet(tmp_path / "p.parquet")
    assert frame[["STATE", "YEARS"]].to_numpy().tolist() == [[6, 35], [36, 70]]


def test_a_file_without_its_form_is_refused_with_all_forms(tmp_path):
    (tmp_path / "people.csv").write_text("sex\n1\n", encoding="utf-8")
    words = ["census", "read", str(tmp_path / "people.csv"), "-o", str(tmp_path / "out.parquet")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code != 0
    assert isinstance(done.exception, ArgumentError)
    for form in ("ppmf", "sf1", "hud"):
        assert form in str(done.exception)
    assert not (tmp_path / "out.parquet").exists()
