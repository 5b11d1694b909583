"""``bayesrisk plan``: rules, certificates and report, resumed and with any workers."""

import json
import subprocess
import sys
import tomllib

import pandas as pd
import pytest

import bayesrisk as br
from bayesrisk.cli.protect.plan import time_left

pytestmark = pytest.mark.usefixtures("quick_figures")

TOWN = ["sample:small-town", "--tables", "sample:small-town"]
RULES = ["--rule", "identity", "--rule", "nearest-5", "--rule", "rounding:base=7,method=nearest",
         "--rule", "unpublished"]  # fmt: skip


def files(folder):
    return {
        str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()
    }


@pytest.fixture
def planned(run, tmp_path):
    status, out, err = run(
        "plan", *TOWN, "-o", tmp_path / "plan", "--limit", "proved=0", "--limit", "recovered=0",
        *RULES, "--write-release",
    )  # fmt: skip
    assert status == 0, err
    return tmp_path / "plan", out, err


def test_the_folder_has_rules_release_certificates_and_report(planned, run, tmp_path):
    folder, out, err = planned
    assert (
        "All limits are kept by publishing"
        in out.splitlines()[1 if out.startswith("Made-up") else 0]
    )
    assert "settings" in err
    assert folder.stat().st_mode & 0o077 == 0  # settings and leaks tell of the records
    document = tomllib.loads((folder / "plan.toml").read_text())
    frontier = pd.read_csv(folder / "frontier.csv")
    (chosen,) = frontier[frontier["role"] == "chosen"].to_dict("records")
    assert chosen["proved"] == chosen["proved_most"] == chosen["recovered_most"] == 0
    cheaper = frontier[frontier["cost"] < chosen["cost"]]
    assert (cheaper["verdict"] == "unsafe").all()
    # The recipe makes the release, by the command and in Python.
    written = br.Release.read(folder / "release")
    mechanism = br.make_mechanism(document["protection"], **document["parameters"])
    town = br.datasets.path("small-town")
    work = br.Workload.read(town / "tables.toml")
    people = br.Records.read(town / "records.csv", schema=work.schema)
    again = mechanism.release(people, workload=work, places="occupied")
    assert again.tables == written.tables
    status, _, err = run(
        "release", *TOWN, "-o", tmp_path / "again", "--config", folder / "plan.toml",
        "--places", "occupied",
    )  # fmt: skip
    assert status == 0, err
    assert br.Release.read(tmp_path / "again").tables == written.tables
    # Nobody needs the package to check it.
    certificates = sorted(map(str, (folder / "certificates").glob("*.json")))
    assert len(certificates) == 16
    check = [sys.executable, "-S", str(folder / "certificates" / "check_safety.py"), *certificates]
    done = subprocess.run(check, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.count("accepted") == 16
    page = (folder / "report.html").read_text()
    assert br.datasets.MADE_UP.partition(":")[0] in page
    assert "All limits are kept by publishing" in page
    # All finer steps are told of, and the rules of each setting stand in words.
    finer = frontier[(frontier["role"] == "finer") & (frontier["verdict"] != "safe")]
    name = "proved" if (finer["proved"] > 0).any() else "recovered"
    numbers = finer.loc[finer[name] > 0, name].astype(int)
    ends = " to ".join(f"{n:,}" for n in sorted({numbers.min(), numbers.max()}))
    assert f"One step finer, {ends} " in out
    assert ">all tables as they are<" in page
    assert ">identity<" not in page


def test_a_run_that_was_ended_goes_on_and_workers_change_no_byte(planned, run):
    folder, *_ = planned
    before = files(folder)
    memory = folder / "places.jsonl"
    lines = memory.read_bytes().splitlines(keepends=True)
    memory.write_bytes(b"".join(lines[: len(lines) // 2]) + lines[-1][:9])
    common = ["plan", *TOWN, "--limit", "proved=0", "--limit", "recovered=0", *RULES,
              "--write-release", "-q"]  # fmt: skip
    assert run(*common, "-o", folder, "--resume", "--workers", "2")[0] == 0
    after = files(folder)
    assert {k for k in before if before[k] != after[k]} <= {"places.jsonl"}
    assert run(*common, "-o", folder.with_name("third"), "--workers", "3")[0] == 0
    assert files(folder.with_name("third")) == before


def test_another_question_is_not_resumed(planned, run):
    folder, *_ = planned
    status, _, err = run("plan", *TOWN, "-o", folder, "--limit", "proved=1", *RULES, "--resume")
    assert status == 2
    assert "resume" in err


def test_where_no_rule_keeps_the_limits_the_answer_says_which_blocks(run, tmp_path):
    status, out, _ = run(
        "plan", *TOWN, "-o", tmp_path, "--limit", "proved=3", "--rule", "identity", "--json"
    )
    answer = json.loads(out)
    assert status == 0
    assert answer["rules"] == {}
    assert answer["blocking"] == {"proved": 182.0}
    assert not (tmp_path / "plan.toml").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "--limit"),
        (["--limit", "lost=0"], "lost"),
        (["--limit", "proved=none"], "NAME=NUMBER"),
        (["--limit", "proved=0", "--rule", "swapping:rate=0.1"], "chance"),
        (["--limit", "proved=0", "--weight", "P99=1"], "P99"),
        (["--limit", "proved=0", "--rule", "identity", "--ladders", "x.toml"], "--ladders"),
    ],
)
def test_wrong_words_are_refused(run, tmp_path, words, text):
    status, _, err = run("plan", *TOWN, "-o", tmp_path / "out", *words)
    assert status == 2
    assert text in err
    assert not (tmp_path / "out" / "report.html").exists()


def test_ladders_of_a_file_and_a_limit_of_gain(run, tmp_path):
    (tmp_path / "ladders.toml").write_text(
        '[[ladder]]\ntables = ["sex * age"]\nrules = ["identity", "unpublished"]\n'
        '[[ladder]]\ntables = ["age * race"]\nrules = ["nearest-5", "unpublished"]\n'
    )
    words = ["--limit", "gain=20", "--limit", "doubled=248", "--adversary", "linker",
             "--known", "sex,age", "--stated", "race"]  # fmt: skip
    status, _, err = run(
        "plan", *TOWN, "-o", tmp_path / "plan", "--ladders", tmp_path / "ladders.toml", *words, "-q"
    )
    assert status == 0, err
    frontier = pd.read_csv(tmp_path / "plan" / "frontier.csv")
    (chosen,) = frontier[frontier["role"] == "chosen"].to_dict("records")
    assert chosen["block: sex * age"] == "identity"
    assert 0 < chosen["gain"] < 20
    tight = run(
        "plan", *TOWN, "-o", tmp_path / "tight", "--ladders", tmp_path / "ladders.toml",
        "--limit", "gain=0", *words[4:], "-q", "--json",
    )  # fmt: skip
    assert json.loads(tight[1])["rules"]["block"]["age * race"] == "unpublished"


@pytest.mark.parametrize(
    ("tried", "left", "first", "words"),
    # Each of ten looks left 0.707 of all: as many again leave one.
    [(10, 32, 1024, "about 20 seconds"),
     (10, 1024, 1024, "about 35 minutes"),  # none was left out: all of them, two seconds each
     (10, 4, 4096, "a few seconds"), (4, 1, 50, "less than a second")],
)  # fmt: skip
def test_the_time_left_follows_from_what_looks_have_left_out(tried, left, first, words):
    assert time_left(tried, left, first, 2.0 * tried) == words


PATIENTS = [
    f"{clinic},{age},{job},{edu}"
    for clinic in "NS"
    for age, job, edu in [(15, "a", "x"), (17, "b", "y"), (30, "a", "x"), (44, "c", "y"),
                          (68, "b", "x"), (71, "a", "y"), (71, "a", "y"), (30, "b", "x")]
]  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        ["--place", "clinic", "--only", "job"],
        ["--place", "clinic", "--columns", "age,job", "--cut", "age=18,65"],
        ["--columns", "job,edu", "--only", "total,job"],
    ],
)
def test_the_recipe_publishes_the_tables_that_were_planned_and_no_others(run, tmp_path, options):
    (tmp_path / "patients.csv").write_text("\n".join(["clinic,age,job,edu", *PATIENTS]) + "\n")
    status, _, err = run(
        "plan", tmp_path / "patients.csv", "-o", tmp_path / "plan", *options,
        "--limit", "recovered=0", *RULES, "--write-release",
    )  # fmt: skip
    assert status == 0, err
    status, _, err = run(
        "release", tmp_path / "patients.csv", "-o", tmp_path / "again",
        "--config", tmp_path / "plan" / "plan.toml",
    )  # fmt: skip
    assert status == 0, err
    written, again = (br.Release.read(tmp_path / f) for f in ("plan/release", "again"))
    assert again.tables == written.tables
    assert {name for _, name in again.tables.workload.tables} == {
        name for tables in tomllib.loads((tmp_path / "plan" / "plan.toml").read_text())[
            "parameters"
        ]["rules"].values() for name, text in tables.items() if text != "unpublished"
    }  # fmt: skip


def test_a_folder_of_another_plan_is_refused(planned, run):
    folder, _, _ = planned
    before = files(folder)
    status, _, err = run("plan", *TOWN, "-o", folder, "--limit", "proved=0", *RULES)
    assert status == 2
    assert "--output" in err
    assert files(folder) == before


def test_what_is_said_to_be_known_is_what_the_screen_says(run, tmp_path):
    (tmp_path / "patients.csv").write_text("\n".join(["clinic,age,job,edu", *PATIENTS]) + "\n")
    _, _, err = run(
        "plan", tmp_path / "patients.csv", "-o", tmp_path / "plan", "--place", "clinic",
        "--known", "job", "--stated", "age", "--limit", "recovered=0", "--rule", "unpublished",
    )  # fmt: skip
    assert "others may know job (--known); at risk is age (--stated)" in err
