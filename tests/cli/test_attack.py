"""``bayesrisk attack``: from published files to proofs and a report."""

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesrisk as br
from bayesrisk import PublishedTables
from bayesrisk.reconstruction import check_proof

pytestmark = pytest.mark.usefixtures("quick_figures")

LAYOUTS = Path(__file__).parents[1] / "files" / "layouts"
CLINIC = [str(LAYOUTS / "clinic-age.csv"), str(LAYOUTS / "clinic-diagnosis.csv")]
READ = ["counts=exact", "totals=complete", "columns.age group=age", "columns.category 1=diagnosis"]
SET = [word for text in READ for word in ("--set", text)]


def test_bounds_alone_are_of_each_count_of_a_file_once(run, tmp_path):
    """A count below 10 is of a table of its own; no cell of it is a hidden count elsewhere."""
    rng, file = np.random.default_rng(5), tmp_path / "t.csv"
    counts = rng.integers(0, 30, (25, 2))
    rows = [[*pair, sum(pair)] for pair in counts.tolist()]
    lines = [",".join([f"town {i}", *(str(n) if n > 9 else "<10" for n in row)])
             for i, row in enumerate(rows)]  # fmt: skip
    file.write_text("\n".join(["town,men,women,total", *lines]) + "\n")
    frames = []
    for extra in ((), ("--only", "bounds")):
        out = tmp_path / f"out {len(frames)}"
        assert run("attack", file, "--accept", "--set", "counts=exact", *extra, "-o", out)[0] == 0
        frames.append(pd.read_csv(out / "bounds.csv"))
    whole, alone = frames
    assert len(whole) == len(alone) == 75
    ends = ["low", "high"]
    assert sorted(map(tuple, whole[ends].to_numpy())) == sorted(map(tuple, alone[ends].to_numpy()))
    assert (alone["low_stated"] < alone["high_stated"]).sum() == sum(
        r < 10 for x in rows for r in x
    )


def test_a_range_is_no_published_number(run, tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("town,cases\nAsh,<5\nBirch,7\nCedar,*\nDale,0\n")
    arguments = ("--only", "bounds", "--accept", "--set", "counts=exact", "--set", "marks.*=1-4")
    assert run("attack", file, *arguments, "-o", tmp_path / "out")[0] == 0
    bounds = pd.read_csv(tmp_path / "out" / "bounds.csv").set_index("name")
    assert bounds["published"].dropna().to_dict() == {"Birch": 7, "Dale": 0}
    ends = bounds.loc[["Ash", "Cedar"], ["low", "high"]].to_numpy().tolist()
    assert ends == [[0, 4], [1, 4]]


def test_bounds_alone_are_of_published_counts_alone(run, tmp_path):
    """Some towns have no count of a group: it is not published, and nothing is hidden there."""
    rng, file = np.random.default_rng(6), tmp_path / "t.csv"
    counts = rng.integers(0, 30, (12, 3))
    rows = [(f"town {i}", sex, str(n) if n > 4 else "*")
            for i, one in enumerate(counts.tolist())
            for sex, n in zip(("men", "women", "total"), (*one[:2], sum(one[:2])), strict=True)
            if (i + n) % 3 or sex == "men"]  # fmt: skip
    lines = [",".join(row) for row in rows]
    file.write_text("\n".join(["town,sex,count", *lines, "Total,total,900"]) + "\n")
    frames, said = [], []
    for name, source, extra in (
        ("whole", file, ()), ("alone", file, ("--only", "bounds")),
        ("again", tmp_path / "whole" / "tables", ("--only", "bounds")),
    ):  # fmt: skip
        reading = () if name == "again" else ("--accept", "--set", "counts=exact")
        status, text, _ = run("attack", source, *reading, *extra, "-o", tmp_path / name)
        assert status == 0
        frames.append(pd.read_csv(tmp_path / name / "bounds.csv"))
        said.append(text)
    whole, *rest = frames
    whole = whole[whole["file"].notna()]
    assert len(whole) == len(rows) + 1
    ends = ["low_stated", "high_stated", "low", "high"]
    stated = sorted(map(tuple, whole[ends].fillna(-1).to_numpy().tolist()))
    for alone in rest:
        assert sorted(map(tuple, alone[ends].fillna(-1).to_numpy().tolist())) == stated
        assert alone["published"].isna().sum() == sum(text == "*" for *_, text in rows)
    hidden = (whole["low_stated"] != whole["high_stated"]).sum()
    assert f"{hidden} counts that are not stated exactly" in said[1]


def test_a_folder_and_a_release_are_attacked_as_on_the_command_line(run, tmp_path):
    frame = pd.DataFrame({"sex": ["F", "M"] * 10, "ill": ["no"] * 17 + ["yes"] * 3})
    made = br.release(frame, protection="rounding:base=5,method=nearest", folder=tmp_path / "R")
    made.tables.write(tmp_path / "T")
    status, said, _ = run("attack", tmp_path / "R", "-o", tmp_path / "cli")
    assert status == 0
    files = ("bounds/bounds.csv", "records/records.parquet", "claims/claims.parquet")
    for number, tables in enumerate(
        (made, made.tables, [made.tables], tmp_path / "R", str(tmp_path / "R"), tmp_path / "T")
    ):
        steps, lines, out = [], [], tmp_path / f"out {number}"
        found = br.attack(
            tables, out, say=lines.append, progress=lambda *step, to=steps: to.append(step)
        )
        for file in files:
            assert (out / file).read_bytes() == (tmp_path / "cli" / file).read_bytes()
        assert steps == [(1, 3), (2, 3), (3, 3)]
        assert lines == found.sentences
        assert lines[0] in said
        assert found.reading is None
        bounds = br.count_bounds(made.tables).counts
        assert found.frames["bounds"]["low"].tolist() == bounds["low"].tolist()
        assert found.frames["bounds"]["geoid"].tolist() == bounds["geoid"].tolist()
        # Of the counts 20, 17 and 3 of 20 people some are changed by rounding to fives.
        assert found.facts["coarsened"] == int((bounds["low_stated"] < bounds["high_stated"]).sum())
        assert 16 <= found.facts["records"] == len(found.frames["records"]) <= 24


def test_a_release_is_answered_by_the_names_of_its_places_and_labels(run, tmp_path):
    frame = pd.DataFrame({"ward": ["Hill"] * 4 + ["=Lake"], "sex": [*"FFFM", "M"]})
    made = br.release(frame, place="ward", protection="none", folder=tmp_path / "R")
    assert run("attack", tmp_path / "R", "-o", tmp_path / "out")[0] == 0
    bounds = pd.read_csv(tmp_path / "out" / "bounds" / "bounds.csv", dtype=str)
    assert [*bounds][:4] == ["level", "geoid", "name", "table"]
    of_sex = bounds[bounds["table"] == "sex"].set_index(["name", "cell"])["high"]
    assert of_sex.to_dict() == {
        ("Hill", "F"): "3", ("Hill", "M"): "1", ("'=Lake", "F"): "0", ("'=Lake", "M"): "1"
    }  # fmt: skip
    records = pd.read_csv(tmp_path / "out" / "records" / "records.csv")
    assert records.value_counts(["ward", "sex"]).to_dict() == {
        ("Hill", "F"): 3, ("Hill", "M"): 1, ("'=Lake", "M"): 1
    }  # fmt: skip
    claims = pd.read_csv(tmp_path / "out" / "claims" / "claims.csv")
    assert set(claims["ward"]) == {"Hill", "'=Lake"}
    frames = br.attack(made).frames
    assert set(frames["bounds"]["name"]) == set(frames["records"]["ward"]) == {"Hill", "=Lake"}
    assert set(frames["records"]["sex"]) == {"F", "M"}


def test_two_files_become_proofs_and_a_report(run, tmp_path):
    out = tmp_path / "attack"
    status, said, _ = run("attack", *CLINIC, "-o", out, *SET, "--json")
    found = json.loads(said)
    assert status == 0
    # Five patients are in the South, eight in the North; 3 and 2 in the South are adults.
    assert found["recovered"] == 2
    assert found["claims"] > 0
    assert found["records"] == 13
    bounds = pd.read_csv(out / "bounds.csv", keep_default_na=False)
    ours = (
        (bounds["region"] == "all") & (bounds["age"] == "0-17") & (bounds["diagnosis"] == "Asthma")
    )
    row = bounds[ours].iloc[0]
    assert (row["stated"], row["low"], row["high"]) == ("<3", 1, 1)
    north = bounds[(bounds["region"] == "North") & (bounds["diagnosis"] == "Injury")]
    child = north[north["age"] == "0-17"].iloc[0]
    assert (child["stated"], child["low"], child["high"]) == ("", 1, 1)
    claims = pd.read_csv(out / "claims.csv")["sentence"].tolist()
    assert "One record with region North, age 0-17, diagnosis Asthma." in claims
    likely = pd.read_csv(out / "likely.csv")
    assert likely["probability"].between(0, 1 + 1e-9).all()
    assert (likely["probability"] > 1 - 1e-9).sum() >= 2
    page = (out / "report.html").read_text()
    assert "One record with region North, age 0-17, diagnosis Asthma." in page
    assert str(tmp_path) not in page
    again = PublishedTables.read(CLINIC, assume=out / "reading.toml")
    assert again == PublishedTables.read(out / "tables")


class Links(HTMLParser):
    """Files that a page links, each with the text before it in the same element."""

    def __init__(self, page):
        super().__init__()
        self.found, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.found.append((dict(attrs)["href"], self.text.strip()))
        self.text = ""

    def handle_data(self, data):
        self.text += data


def checked(folder, *files):
    """Run the checker of a folder alone, without the package."""
    command = [sys.executable, "-I", "check_proof.py", *files]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_certain_sentences_are_linked_to_proofs_that_the_checker_accepts(run, tmp_path):
    out = tmp_path / "attack"
    status, said, _ = run("attack", *CLINIC, "-o", out, *SET, "--proofs", "3", "--json")
    assert status == 0
    folder = out / "proofs"
    files = sorted(path.name for path in folder.glob("*.json"))
    # Three claims and three bounds; the records are not unique.
    assert len(files) == 6
    done = checked(folder, *files)
    assert (done.returncode, done.stdout.count(": accepted:"), done.stderr) == (0, 6, "")
    claims = pd.read_csv(out / "claims.csv", keep_default_na=False)
    bounds = pd.read_csv(out / "bounds.csv", keep_default_na=False)
    assert (claims["proof"] != "").tolist() == [True] * 3 + [False] * (len(claims) - 3)
    chosen = bounds[bounds["proof"] != ""]
    assert len(chosen) == 3
    links = Links((out / "report.html").read_text())
    linked = [file for file, _ in links.found]
    checker = "proofs/check_proof.html"
    assert {*claims["proof"], *chosen["proof"], checker} - {""} == set(linked)
    assert all((out / file).is_file() for file in linked)
    # Each row, and each sentence of the first screen, is what its own proof says.
    names = ["region", "age", "diagnosis"]
    for row in (*claims.head(3).to_dict("records"), *chosen.to_dict("records")):
        (part,) = json.loads((out / row["proof"]).read_text())["says"]
        least, most = (
            (row["records"], None if row["at_least"] else row["records"])
            if "records" in row
            else (int(row["low"]) or None, int(row["high"]))
        )
        assert (part["least"], part["most"]) == (least, most)
        labels = {n: {row[n]: 1} for n in names if row[n] not in ("any", "all")}
        labels |= {"age": {"18-64": 1, "65+": 1}} if row["age"] == "18+" else {}
        assert part["sets"] == labels
    texts = dict(zip(claims["proof"], claims["sentence"], strict=True))
    assert [(f, t) for f, t in links.found if t in set(texts.values())] == list(texts.items())[:3]
    # Damaged, it is refused, and the checker says where.
    first = json.loads((folder / files[0]).read_text())
    tree = first["refutations"]["fewer 1"]
    tree["sum"]["not"] *= -1
    (folder / files[0]).write_text(json.dumps(first))
    done = checked(folder, *files)
    assert (done.returncode, done.stdout.count(": accepted:"), done.stderr) == (1, 5, "")
    assert f"{files[0]}: refused: " in done.stdout
    assert "fewer 1" in done.stdout
    assert any(text.startswith("6 ") for text in json.loads(said)["sentences"])


def test_contradictions_and_unique_records_have_a_proof(run, tmp_path):
    file = tmp_path / "table.csv"
    words = ["--set", "counts=exact", "--set", "totals=complete", "--proofs", "1"]
    for total, kind in ((12, "impossible"), (9, "records")):
        file.write_text(f"sex,count\nF,4\nM,5\nTotal,{total}\n", encoding="utf-8")
        out = tmp_path / kind
        assert run("attack", file, "-o", out, *words)[0] == 0
        made = [json.loads(path.read_text()) for path in (out / "proofs").glob("*.json")]
        assert kind in {one["kind"] for one in made}
        assert all(check_proof.check(one) for one in made)
        ours = next(one for one in made if one["kind"] == kind)
        says = {"impossible": "No records fit", "records": "no others fit: proved."}[kind]
        linked = Links((out / "report.html").read_text()).found
        (proof,) = {link for link, text in linked if says in text}
        assert json.loads((out / proof).read_text()) == ours


def test_no_proofs_where_none_are_asked_for_and_bad_numbers_leave_nothing(run, tmp_path):
    out = tmp_path / "attack"
    assert run("attack", *CLINIC, "-o", out, *SET, "--proofs", "0")[0] == 0
    assert not (out / "proofs").exists()
    assert "proof" not in pd.read_csv(out / "claims.csv")
    assert "<a " not in (out / "report.html").read_text()
    again = tmp_path / "again"
    status, _, error = run("attack", *CLINIC, "-o", again, *SET, "--proofs", "-1")
    assert (status, again.exists()) == (2, False)
    assert "proofs must be" in error
    assert "-1" in error


def test_values_of_settings_may_hold_equals_signs(run, tmp_path):
    """The name of a setting is one about the file, whatever stands behind it."""
    (tmp_path / "heads.csv").write_text(
        "Town,my,mo,a=b,fo,age\nA,3,4,5,<=9,x=y\nB,2,2,1,7,z=w\nTotal,5,6,6,13,\n"
    )
    texts = {
        "counts": "exact",
        "totals": "complete",
        "columns.my": "sex=Male, age=0-17",
        "columns.mo": "sex=Male, age=18+",
        "columns.a=b": "sex=Female, age=0-17",
        "columns.fo": "sex=Female, age=18+",
        "columns.age": "ignored",
        "marks.<=9": "<=4",
    }
    words = [word for name, value in texts.items() for word in ("--set", f"{name}={value}")]
    file = tmp_path / "reading.toml"
    status, _, said = run("attack", tmp_path / "heads.csv", *words, "--save-assumptions", file)
    assert status == 0, said
    assert tomllib.loads(file.read_text()) == texts
    tables = PublishedTables.read(tmp_path / "heads.csv", **texts)
    part = next(t for t in tables.workload.tables if t[1] == "town * sex * age (0-4)")
    assert tables.support(*part)[1].tolist() == [[4]]


def test_tables_of_which_no_sentence_names_a_variable_have_results(run, tmp_path):
    (tmp_path / "t.csv").write_text(
        "Region,Age,People\nNorth,0-17,<5\nNorth,65+,5+\nNorth,All ages,12\n"
        "South,0-17,2\nSouth,65+,8\nSouth,All ages,10\n"
    )
    words = ["--set", "counts=exact", "--set", "totals=complete", "--json"]
    status, said, errors = run("attack", tmp_path / "t.csv", "-o", tmp_path / "o", *words)
    assert status == 0, errors
    claims = pd.read_csv(tmp_path / "o" / "claims.csv", keep_default_na=False)
    assert len(claims) == json.loads(said)["claims"]
    bounds = pd.read_csv(tmp_path / "o" / "bounds.csv", keep_default_na=False)
    north = bounds[bounds["region"] == "North"].set_index("age")[["low", "high"]]
    # Twelve people, those from 18 to 64 among them, of whom no row tells.
    assert north.loc["0-17"].tolist() == [0, 4]
    assert north.loc["65+"].tolist() == [5, 12]


def test_guesses_stop_the_command_until_they_are_confirmed(run, tmp_path):
    out, file = tmp_path / "attack", tmp_path / "reading.toml"
    status, _, error = run("attack", *CLINIC, "-o", out)
    assert (status, out.exists()) == (2, False)
    assert all(text in error for text in READ[:3])
    status, said, _ = run("attack", *CLINIC, "--save-assumptions", file)
    assert status == 0
    assert all(f"--set '{text}'" in said for text in READ[:3])
    status, _, _ = run("attack", *CLINIC, "-o", out, "--assume", file, "--set", "marks.<3=1-2")
    assert status == 0
    assert '"marks.<3" = "1-2"' in (out / "reading.toml").read_text()


def test_tables_that_contradict_say_which_cells(run, tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("sex,count\nF,4\nM,5\nTotal,12\n", encoding="utf-8")
    out = tmp_path / "attack"
    words = ["--set", "counts=exact"]
    status, said, _ = run("attack", file, "-o", out, *words, "--set", "totals=complete")
    assert status == 0
    assert "No records fit" in said
    assert "total" in said
    assert not (out / "records.csv").exists()
    # With others in the total nothing contradicts.
    words += ["--set", "totals.sex=partial"]
    assert run("attack", file, "-o", tmp_path / "partial", *words)[0] == 0
    assert len(pd.read_csv(tmp_path / "partial" / "records.csv")) == 12


def test_what_is_not_understood_is_named_and_nothing_written(run, tmp_path):
    file, out = tmp_path / "table.csv", tmp_path / "out"
    words = ["-o", out, "--set", "columns.count=count"]
    file.write_text("sex,count\nF,5 or so\nM,5\n", encoding="utf-8")
    status, _, error = run("attack", file, *words)
    assert status == 3
    assert "row 2, column 'count'" in error
    assert "5 or so" in error
    # Words without a number may be withheld counts: that is asked, and never taken for granted.
    file.write_text("sex,count\nF,about five\nM,5\n", encoding="utf-8")
    status, _, error = run("attack", file, *words)
    assert status == 2
    assert "marks.about five=withheld" in error
    assert not out.exists()


def test_withheld_counts_without_a_total_prove_nothing(run, tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("sex,count\nF,*\nM,*\n", encoding="utf-8")
    words = ["--set", "counts=exact", "--set", "marks.*=withheld", "--set", "columns.count=count"]
    status, said, _ = run("attack", file, "-o", tmp_path / "out", *words)
    assert status == 0
    assert "Nothing is proved" in said
    bounds = pd.read_csv(tmp_path / "out" / "bounds.csv")
    assert bounds["low"].tolist() == [0, 0]
    assert bounds["high"].isna().all()


def test_large_counts_are_answered_as_small_ones(run, tmp_path):
    """The same table with all counts times a prime: the same sentences about as many times more."""
    rows = ["North,F,*", "North,M,*", "North,Total,31", "South,F,14", "South,M,*", "South,Total,25",
            "Total,F,30", "Total,M,26", "Total,Total,56"]  # fmt: skip
    found = {}
    for times in (1, 99_999_989):
        text = "\n".join(re.sub(r"\d+", lambda m, t=times: str(int(m[0]) * t), row) for row in rows)
        file = tmp_path / f"times-{times}.csv"
        file.write_text(f"region,sex,count\n{text}\n", encoding="utf-8")
        words = ["--set", "counts=exact", "--set", "totals=complete", "--accept"]
        assert run("attack", file, "-o", tmp_path / f"out-{times}", *words)[0] == 0
        frames = {n: pd.read_csv(tmp_path / f"out-{times}" / f"{n}.csv")
                  for n in ("bounds", "claims", "records")}  # fmt: skip
        bounds, claims, records = frames.values()
        labels = ["region", "sex"]
        if times == 1:
            records = records.value_counts().rename("records").reset_index()
        found[times] = (
            bounds[[*labels, "low", "high"]],
            claims[[*labels, "records"]],
            records.sort_values(labels)[[*labels, "records"]].reset_index(drop=True),
        )
    for small, large in zip(*found.values(), strict=True):
        numbers = small.select_dtypes("number").columns
        pd.testing.assert_frame_equal(small.assign(**small[numbers] * 99_999_989), large)
    assert found[1][1]["records"].tolist() == [16, 15, 11]


@pytest.mark.parametrize("name", ["reading.toml", "table.csv"])
def test_assumptions_are_written_over_no_file(run, tmp_path, name):
    """Least of all over the table that is read."""
    table = tmp_path / "table.csv"
    table.write_text("sex,count\nF,4\nM,5\n", encoding="utf-8")
    (tmp_path / "reading.toml").write_text("mine", encoding="utf-8")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    words = ("--set", "counts=exact", "--save-assumptions", tmp_path / name)
    status, _, error = run("attack", table, *words, "-o", tmp_path / "out")
    assert status == 2
    assert name in error
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


ONE_HIDDEN = "sex,count\nF,*\nM,6\nTotal,7\n"


def test_the_function_answers_as_the_command(run, tmp_path):
    file = tmp_path / "one.csv"
    file.write_text(ONE_HIDDEN, encoding="utf-8")
    reading = br.tables.TableReading.read(file, counts="exact").accepted()
    said = []
    found = br.attack(reading, tmp_path / "a", say=said.append)
    status, printed, _ = run(
        "attack", file, "--set", "counts=exact", "--accept", "-o", tmp_path / "b"
    )
    assert status == 0
    assert said == [text for text in found.sentences if text not in found.last]
    assert all(text in printed for text in said)
    for name, frame in found.frames.items():
        rows = [(tmp_path / folder / f"{name}.csv").read_bytes() for folder in "ab"]
        assert rows[0] == rows[1]
        assert len(frame) == len(rows[0].splitlines()) - 1
    bounds = found.frames["bounds"].set_index("sex")
    assert bounds.loc["F", ["low", "high"]].tolist() == [1, 1]
    # Every proof names the reading that it holds for, by the digest of its file.
    digest = hashlib.sha256((tmp_path / "a" / "reading.toml").read_bytes()).hexdigest()
    proofs = pd.read_csv(tmp_path / "a" / "proofs" / "proofs.csv")
    assert {*proofs["reading"]} == {digest} == {reading.digest}


@pytest.mark.parametrize(("limit", "quiet", "times"), [(2, (), 0), (1, (), 1), (1, ("-q",), 0)])
def test_how_much_is_read_is_said_first_of_large_tables(
    run, tmp_path, monkeypatch, limit, quiet, times
):
    monkeypatch.setattr("bayesrisk.cli.attacks._MANY", limit)
    (tmp_path / "t.csv").write_text("sex,n\nF,3\nM,*\nTotal,9\n")
    assert run("attack", *quiet, tmp_path / "t.csv")[2].count("2 numbers are read") == times


@pytest.mark.slow
def test_places_of_more_than_131_072_counts_are_attacked_each_by_itself(tmp_path):
    """Of every other school one count is withheld, and follows from the total of its row."""
    names = ["White", "Black", "Hispanic", "Asian", "Two or more"]
    counts = np.random.default_rng(1).integers(1, 40, (22_000, 5))
    frame = pd.DataFrame(counts, columns=names).astype(str)
    frame.insert(0, "school", [f"School {i}" for i in range(len(frame))])
    frame["Total"] = counts.sum(axis=1)
    hidden = np.where(np.arange(len(frame)) % 2, np.arange(len(frame)) % 5, -1)
    for i, name in enumerate(names):
        frame.loc[hidden == i, name] = "*"
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = br.attack(tmp_path / "t.csv", accept=True, counts="exact")
    assert found.facts["recovered"] == 11_000
    bounds = found.frames["bounds"]
    rows = bounds[bounds["stated"] == "*"].sort_values("row")
    known = counts[np.arange(22_000), hidden][hidden >= 0]
    assert (rows["low"].to_numpy() == known).all()
    assert (rows["high"].to_numpy() == known).all()
