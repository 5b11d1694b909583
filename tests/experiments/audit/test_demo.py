"""The audit of ``make demo``: what its report says is so, found again from its statements."""

import json
import re
from collections import Counter

import pandas as pd
import pytest
from browser import Browser, needs_browser
from first_screen import check_screen, screens, texts
from typer.testing import CliRunner

from bayesrisk import datasets
from bayesrisk.accounting import census_2020_budget
from bayesrisk.cli.app import app


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "audit"
    done = CliRunner().invoke(app, ["audit", "sample:small-town-audit", "-o", str(folder)])
    assert done.exit_code == 0, done.exception
    return folder, done.output


@pytest.mark.slow
def test_the_first_screen_is_that_of_the_statements(demo):
    folder, output = demo
    page = (folder / "report.html").read_text(encoding="utf-8")
    (screen,) = screens(page)
    statements, errors = (
        pd.read_parquet(folder / f"{name}.parquet") for name in ("statements", "errors")
    )
    costs = pd.read_csv(folder / "costs.csv").set_index("protection")
    check_screen(screen, statements, errors, 248, words=costs["meaning"].to_dict())
    clauses = screen["lead"].partition(".")[0].split("; ")
    assert clauses[0] == (
        "Noise of the 2020 census's size doubles the chance of being guessed right for nobody"
    )
    assert clauses[1].startswith("swapping 5 % of people doubles it for ")
    first = page.partition("</h1>")[2].partition("<table")[0]
    assert "Made-up data" in texts(first)
    assert len(texts(first).split()) <= 120
    assert screen["lead"] in output
    for row in screen["rows"]:
        name = row["protection"].partition(" (")[0]
        assert f"{name}: remaining answers {row['remaining answers before']} before" in output


@needs_browser
@pytest.mark.slow
def test_the_page_is_no_wider_than_a_phone(demo, tmp_path):
    with Browser(tmp_path) as browser:
        for width in (390, 1000):
            browser.open(demo[0] / "report.html", width=width)
            browser.run("document.querySelectorAll('details').forEach(d => (d.open = true))")
            assert browser.run("document.scrollingElement.scrollWidth") <= width
        assert browser.faults == []


def test_the_town_is_made_by_its_recipe():
    known = datasets.catalogue()["small-town"]["recipe"]
    people = datasets.load_microdata(known["sample"]).persons.to_frame()
    made = []
    for tract, some in enumerate(sorted({b[:11] for b in people["block"]}), 1):
        number = 0
        for _, rows in people[people["block"].str.startswith(some)].groupby("block"):
            low, high = known["people"]
            if not low <= len(rows) <= high or rows["race"].nunique() < known["races"]:
                continue
            number += 1
            for row in rows.to_dict("records"):
                race = {1: "White", 2: "Black"}.get(row["race"], "another")
                age = "18+" if row["age"] >= known["adult"] else "0-17"
                sex = ("male", "female")[row["sex"]]
                made.append((f"{tract:02d}{number:02d}", sex, age, race))
            if number == known["blocks_of_tract"]:
                break
    town = pd.read_csv(datasets.path("small-town") / "records.csv", dtype=str)
    assert Counter(made) == Counter(town.itertuples(index=False, name=None))
    assert len(town) == 248  # as README says
    assert town["block"].nunique() == 16


def test_its_budget_is_one_of_the_bureau():
    text = (datasets.path("small-town-audit")).read_text(encoding="utf-8")
    budget = json.loads(re.search(r'parameters = \{ rho = ("0\.\d+") \}', text).group(1))
    rows = census_2020_budget("pl94", total_rho="2.56").set_index(["level", "query"])
    assert float(budget) == pytest.approx(rows.loc[("Block", "detailed"), "rho_float"], rel=1e-6)
