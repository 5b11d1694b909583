"""Commands on files with columns of their own; typical mistakes name the thing and the way out."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayesrisk as br
from bayesrisk.cli.app import app
from bayesrisk.experiments import AuditStudy, Protection
from bayesrisk.release import Release
from bayesrisk.tables import PublishedTables

pytestmark = pytest.mark.usefixtures("quick_figures")


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def patients():
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "patient": [f"P{i:03d}" for i in range(70)],
            "clinic": rng.choice(["St Mary", "Mercy"], 70),
            "age": rng.integers(0, 95, 70),
            "sex": rng.choice(["M", "F"], 70),
            "diagnosis": rng.choice(["injury", "heart", "lung"], 70),
        }
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "patients.csv"
    patients().to_csv(path, index=False)
    return path


def test_tables_of_any_columns(file, tmp_path):
    done = run(
        "release", "--protection", "none", file, "--place", "clinic", "--cut", "age=18,65", "-o",
        tmp_path / "t",
    )  # fmt: skip
    assert done.exit_code == 0, done.exception
    counts = PublishedTables.read(tmp_path / "t").to_frame()
    frame = patients()
    ages = np.digitize(frame["age"], [18, 65])
    for code, label in enumerate(("under 18", "18-64", "65 and over")):
        for clinic in ("Mercy", "St Mary"):
            rows = counts[(counts["table"] == "age") & (counts["cell"] == label)]
            rows = rows[rows["geoid"] == clinic]
            assert rows["count"].sum() == ((ages == code) & (frame["clinic"] == clinic)).sum()
    said = done.stderr
    assert all(word in said for word in ("2 places", "under 18, 18-64", "left out: patient"))
    quiet = run(
        "release", "--protection", "none", file, "--place", "clinic", "-o", tmp_path / "q",
        "--quiet",
    )  # fmt: skip
    assert quiet.stderr == ""


def test_parquet_is_read_as_csv_is(file, tmp_path):
    """Ages in Parquet are ages, not codes of groups."""
    patients().to_parquet(tmp_path / "patients.parquet", index=False)
    for source, out in ((file, "a"), (tmp_path / "patients.parquet", "b")):
        done = run(
            "release", "--protection", "none", source, "--place", "clinic", "-o", tmp_path / out,
            "--quiet",
        )  # fmt: skip
        assert done.exit_code == 0, done.exception
    assert PublishedTables.read(tmp_path / "a") == PublishedTables.read(tmp_path / "b")


def test_a_first_look_without_keys(file):
    done = run("audit", file, "--place", "clinic", "--cut", "age=18,65", "--json")
    assert done.exit_code == 0, done.exception
    found = json.loads(done.stdout)
    frame = patients()
    keys = [frame["clinic"], np.digitize(frame["age"], [18, 65]), frame["sex"]]
    sizes = frame.groupby(keys)["diagnosis"].transform("size")
    assert found["keys"] == ["clinic", "age", "sex"]
    assert (found["sensitive"], found["unique"]) == ("diagnosis", int((sizes == 1).sum()))


def test_records_of_a_frame_are_audited_in_ten_lines(tmp_path):
    frame = patients()
    schema = br.Schema.from_frame(frame, place="clinic")
    br.Records.from_frame(frame, schema=schema).write(tmp_path / "patients.parquet")
    who = [br.risk.Adversary.named("linker", known=["age", "sex"])]
    what = [Protection("identity"), Protection("swapping:rate=0.2")]
    study = AuditStudy(tmp_path / "patients.parquet", br.Workload.of(schema), protections=what,
        adversaries=who, stated=["diagnosis"], targets=3, releases=1)  # fmt: skip
    done = br.run(study, tmp_path / "audit")
    assert done.complete
    assert len(done.brief) == 3


def rare(frame, keys):
    """Return how many people are alone with their keys, counted one by one."""
    rows = [tuple(row) for row in frame[keys].to_numpy().tolist()]
    return sum(rows.count(row) == 1 for row in rows)


def test_the_page_and_the_screen_of_an_audit_have_its_rare_records(file, tmp_path):
    words = [file, "--place", "clinic", "--cut", "age=18,65", "--known", "sex,age"]
    words += ["--stated", "diagnosis", "--protection", "none", "--adversary", "outsider"]
    done = run("audit", *words, "--targets", "2", "-o", tmp_path / "audit", "--json")
    assert done.exit_code == 0, done.exception
    frame = patients().assign(age=np.digitize(patients()["age"], [18, 65]))
    alone = rare(frame, ["clinic", "sex", "age"])
    found = json.loads(done.stdout)["rare_records"]
    assert (found["unique"], found["records"]) == (alone, 70)
    page = (tmp_path / "audit" / "report.html").read_text(encoding="utf-8")
    head = page[: page.index("Tables</h2>")]
    assert page.count("Rare records.") == 1
    assert f"{alone} of 70 records" in head.partition("Rare records.")[2][:200]
    assert "Confidential" in head
    assert str(found["classes"][0]["records"]) in page.partition("Rare records: by how many")[2]


def test_the_page_of_several_populations_has_the_rare_records_of_each(tmp_path):
    frames = {"north": patients(), "south": patients().iloc[:31]}
    schema = br.Schema.from_frame(frames["north"], place="clinic", cuts={"age": [18, 65]})
    who = [br.risk.Adversary.named("linker", known=["age"])]
    study = AuditStudy(frames, br.Workload.of(schema), protections=[Protection("none")],
        adversaries=who, stated=["diagnosis"], schema=schema, targets=2)  # fmt: skip
    br.run(study, tmp_path / "audit")
    page = (tmp_path / "audit" / "report.html").read_text(encoding="utf-8")
    for people, frame in zip((70, 31), frames.values(), strict=True):
        binned = frame.assign(age=np.digitize(frame["age"], [18, 65]))
        assert f"{rare(binned, ['clinic', 'age'])} of {people} records" in page


def test_what_an_audit_recommends_is_released(file, tmp_path):
    """The first line of its answer names protections as the release takes them."""
    done = run(
        "audit", file, "--place", "clinic", "--columns", "sex,diagnosis",
        "--protection", "identity", "--protection", "rounding:base=5,method=nearest",
        "--adversary", "linker", "--targets", 3, "--json",
        "-o", tmp_path / "audit",
    )  # fmt: skip
    assert done.exit_code == 0, done.exception
    name = json.loads(done.stdout)["brief"][-1].rpartition(": ")[0]
    out = tmp_path / "out"
    made = run("release", file, "--from-audit", tmp_path / "audit", "--protection", name, "-o", out)
    assert made.exit_code == 0, made.exception
    release = Release.read(out)
    assert release.spec.parameters == {"base": 5, "method": "nearest"}
    truth = PublishedTables.read  # the true tables, once more and by another command
    more = ("--place", "clinic", "--columns", "sex,diagnosis", "--quiet")
    run("release", "--protection", "none", file, *more, "-o", tmp_path / "t")
    for key, counts in truth(tmp_path / "t").counts.items():
        rounded = release.tables.counts[key].toarray()
        assert np.array_equal(rounded, 5 * ((counts.toarray() + 2) // 5))


def test_what_was_audited_is_released_by_a_vetted_sampler(file, tmp_path):
    pytest.importorskip("opendp", reason="the sampler is an extra")
    protection, out = "discrete-gaussian:rho=1", tmp_path / "out"
    columns = ("--place", "clinic", "--columns", "sex,diagnosis")
    done = run("audit", file, *columns, "--protection", "none", "--protection", protection,
               "--adversary", "linker", "--targets", 3, "-o", tmp_path / "audit")  # fmt: skip
    assert done.exit_code == 0, done.exception
    options = ("--from-audit", tmp_path / "audit", "--protection", protection)
    made = run("release", file, *options, "--set", "sampler=opendp", "-o", out)
    assert made.exit_code == 0, made.exception
    assert Release.read(out).spec.parameters["sampler"].startswith("opendp")
    refused = run("verify", tmp_path / "audit")  # it has proofs of its own, and is no attack
    assert refused.exit_code
    assert "verify checks releases and attacks" in str(refused.exception)


AUDIT = ("audit", "FILE", "--place", "clinic", "-o", "OUT")


def test_files_side_by_side_have_one_schema(file, tmp_path):
    """A category that only one file has is a category of both; columns must be the same."""
    other = patients().assign(diagnosis="burn")
    other.to_csv(tmp_path / "south.csv", index=False)
    done = run(
        "audit", file, tmp_path / "south.csv", "--place", "clinic", "--protection", "identity",
        "--adversary", "linker", "--targets", 2, "-o", tmp_path / "audit", "--quiet",
    )  # fmt: skip
    assert done.exit_code == 0, done.exception
    about = json.loads((tmp_path / "audit" / "protections.json").read_text())["schema"]
    labels = next(a["labels"] for a in about["attributes"] if a["name"] == "diagnosis")
    assert labels == ["burn", "heart", "injury", "lung"]
    other.drop(columns="sex").to_csv(tmp_path / "south.csv", index=False)
    done = run(
        *AUDIT[:1], file, tmp_path / "south.csv", "--protection", "none", "-o", tmp_path / "b"
    )
    assert "lacks 'sex'" in str(done.exception)


def test_places_of_the_file_are_a_fact_about_its_records(file, tmp_path):
    """Its list of clinics is published because somebody is there, and the release says so."""
    words = ("release", file, "--place", "clinic", "--protection", "rounding:base=5")
    assert run(*words, "-o", tmp_path / "own").exit_code == 0
    assert Release.read(tmp_path / "own").spec.places == "occupied"
    schema = br.Schema.from_frame(patients(), place="clinic", columns=["sex"])
    stated = br.Schema.from_dict(
        schema.to_dict() | {"geography": schema.to_dict()["geography"] | {"name": "clinics"}}
    )
    for about, places in ((schema, "occupied"), (stated, "public")):
        records = br.Records.from_frame(patients(), schema=about)
        release = br.make_mechanism("rounding:base=5").release(
            records, workload=br.Workload.of(about), rng=1
        )
        assert release.spec.places == places
