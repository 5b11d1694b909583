"""``bayesrisk attack``: from published files to proofs and a report."""

import json
from pathlib import Path

import pandas as pd
import pytest
from browser import Browser, needs_browser

from bayesrisk import PublishedTables

LAYOUTS = Path(__file__).parents[1] / "files" / "layouts"
CLINIC = [str(LAYOUTS / "clinic-age.csv"), str(LAYOUTS / "clinic-diagnosis.csv")]
READ = ["counts=exact", "totals=complete", "columns.age group=age", "columns.category 1=diagnosis"]
SET = [word for text in READ for word in ("--set", text)]


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
    assert run("attack", file, "-o", tmp_path / "partial", *words)[0] == 0
    assert len(pd.read_csv(tmp_path / "partial" / "records.csv")) == 12


def test_what_is_not_understood_is_named_and_nothing_written(run, tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("sex,count\nF,about five\nM,5\n", encoding="utf-8")
    status, _, error = run("attack", file, "-o", tmp_path / "out", "--set", "columns.count=count")
    assert status == 3
    assert "row 2, column 'count'" in error
    assert "about five" in error
    assert not (tmp_path / "out").exists()


def test_large_counts_are_only_bounded(run, tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("sex,count\nF,40000\nM,*\nTotal,40002\n", encoding="utf-8")
    words = ["--set", "counts=exact", "--set", "marks.*=1-4", "--set", "totals=complete"]
    assert run("attack", file, "-o", tmp_path / "out", *words)[0] == 0
    bounds = pd.read_csv(tmp_path / "out" / "bounds.csv")
    assert bounds.loc[bounds["stated"] == "*", ["low", "high"]].to_numpy().tolist() == [[2, 2]]
    assert not (tmp_path / "out" / "records.csv").exists()


@needs_browser
@pytest.mark.slow
def test_the_report_is_no_wider_than_a_phone(run, tmp_path):
    run("attack", *CLINIC, "-o", tmp_path / "out", *SET)
    with Browser(tmp_path / "profile") as browser:
        for width in (390, 1280):
            browser.open(tmp_path / "out" / "report.html", width=width)
            browser.run("document.querySelectorAll('details').forEach(d => (d.open = true))")
            assert browser.run("document.scrollingElement.scrollWidth") <= width
        assert browser.run("[...document.images].every(i => i.alt && i.naturalWidth > 0)")
        assert browser.run("document.images.length") == 1
