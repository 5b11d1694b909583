"""The audit of ``make demo``: what its report says is so, found again from its statements."""

import json
import math
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from browser import Browser, needs_browser
from figures import quick_figures
from first_screen import check_screen, screens, texts
from typer.testing import CliRunner

from bayesrisk import datasets
from bayesrisk.accounting import census_2020_budget
from bayesrisk.cli.app import app
from bayesrisk.experiments import AuditStudy, Protection, run
from bayesrisk.risk import Adversary
from bayesrisk.tables import Workload


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
    advice = re.search('<p class="advice">.*?</p>', first)[0]
    assert len(texts(first.replace(advice, "")).split()) <= 120
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
            # A phone shows every column, too.
            cells = "[...document.querySelectorAll('table.cards td')].map(c => c.offsetHeight)"
            assert min(browser.run(cells)) > 0
        browser.open(demo[0] / "report.html", width=660)  # of A4 within its margins
        browser.ask("Emulation.setEmulatedMedia", media="print")
        box = "document.querySelector('.answer').getBoundingClientRect().bottom"
        assert browser.run(box) < 980  # on the first page
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


def test_a_finer_table_is_not_called_safer_than_the_same_made_coarser(tmp_path):
    """Every edge of the second is one of the first; the gain rises all the same."""
    town = datasets.path("small-town")
    edges = {"fine ranges": [0, 1, 3, 6, 10, 20, 50], "the same, coarser": [0, 1, 6, 20, 50]}
    study = AuditStudy(
        town / "records.csv",
        Workload.read(town / "tables.toml"),
        protections=[Protection(name, "ranges", {"edges": edge}) for name, edge in edges.items()],
        adversaries=[Adversary.named("linker", known=["sex", "age"])],
        stated=["race"],
    )
    with quick_figures():
        brief = " ".join(run(study, tmp_path / "out").facts["brief"])
    measures = pd.read_csv(tmp_path / "out/measures.csv").query("group == 'everybody'")
    rows = measures.set_index("protection")
    assert rows["gain"].tolist() == pytest.approx([0.0604, 0.0700], abs=5e-5)
    assert rows["believed_posterior"].tolist() == pytest.approx([0.780, 0.757], abs=5e-4)
    answers = rows["answers_posterior"].tolist()
    assert answers == pytest.approx(np.exp([0.372, 0.399]), abs=1e-3)
    (pair,) = pd.read_csv(tmp_path / "out/comparisons.csv").to_dict("records")
    assert (pair["protection"], pair["verdict"]) == ("the same, coarser", "no more")
    assert math.isnan(pair["p"])
    assert pair["factor"] == pytest.approx(answers[1] / answers[0])
    assert not re.search(r"fine ranges”? lets|ranges 0, 1 to 2, .* can tell no more", brief)
    assert "can tell no more, by construction" in brief
