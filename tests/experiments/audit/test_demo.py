"""The audit of ``make demo``: what its report says is so, found again from its statements."""

import html
import json
import re
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from browser import Browser, needs_browser
from scipy.stats import t as student
from typer.testing import CliRunner

from bayesrisk import datasets
from bayesrisk.accounting import census_2020_budget
from bayesrisk.cli.app import app

WHO = re.compile(r"<li>An? (outsider|linker)(.*?) \(([\d.]+)% right before any release\)")
LINE = re.compile(
    r"<i>(.*?)</i>: ([\d.]+)% right, ([\d.]+)% without their own records: ([+-][\d.]+) points(.*?);"
    r" of the (\d+) unlike their place ([\d.]+)% and ([\d.]+)%\."
)
INTERVAL = re.compile(r" \(([+-][\d.]+) to ([+-][\d.]+)\)")
READ = {
    "weighing all possible records": "likelihood",
    "taking the tables as true": "as-true",
    "reckoning with how many records changed places": "swap-aware",
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "audit"
    done = CliRunner().invoke(app, ["audit", "sample:small-town-audit", "-o", str(folder)])
    assert done.exit_code == 0, done.exception
    return folder, done.output


def told(section):
    """Return the words and numbers of each line, once for each reading that it is about."""
    parts = WHO.split(section)[1:]
    for who, knows, before, lines in zip(*(parts[i::4] for i in range(4)), strict=True):
        for reads, *numbers in LINE.findall(lines):
            for read in reads.split(" or "):
                yield who, knows, before, *numbers, READ[read]


def right(rows, belief):
    """Return for each target the share of its most probable statements that are true."""
    found = {}
    for target, some in rows.groupby("target"):
        best = [c for b, c in zip(some[belief], some["correct"], strict=True)
                if b > some[belief].max() - 1e-12]  # fmt: skip
        found[target] = Fraction(sum(best), len(best))
    return found


@pytest.mark.slow
def test_every_sentence_is_true_of_the_statements(demo):
    folder, output = demo
    page = html.unescape((folder / "report.html").read_text(encoding="utf-8"))
    frame = pd.read_parquet(folder / "statements.parquet")
    frame = frame[frame["status"] != "undecided"]
    sections = re.split(r"<p><b>(.*?)</b> \(mean absolute error", page.split('class="answer"')[1])
    assert sections[1::2] == list(dict.fromkeys(frame["protection"]))
    said = 0
    for protection, section in zip(sections[1::2], sections[2::2], strict=True):
        for who, knows, before, after, less, own, reach, number, *rest, read in told(section):
            assert ("who knows sex and age" in knows) == (who == "linker")
            same = (frame["protection"] == protection) & (frame["adversary"] == who)
            rows = frame[same & (frame["attack"] == read)]
            three = [right(rows, name) for name in ("posterior", "without", "prior")]
            for text, found in zip((after, less, before), three, strict=True):
                assert float(text) == pytest.approx(
                    100 * float(sum(found.values()) / len(found)), abs=0.0501
                )
            gain = {k: float(three[0][k] - three[1][k]) for k in three[0]}
            mean = np.mean(list(gain.values()))
            assert float(own) == pytest.approx(100 * mean, abs=0.0501)
            place = rows.groupby("target")["place"].first()
            off = pd.Series(gain).sub(mean).groupby(place).sum()
            half = student.ppf(0.975, len(off) - 1) * np.sqrt(
                (off**2).sum() * len(off) / (len(off) - 1)
            ) / len(gain)  # fmt: skip
            if interval := INTERVAL.fullmatch(reach):
                ends = [float(end) for end in interval.groups()]
                assert ends == pytest.approx([100 * (mean - half), 100 * (mean + half)], abs=0.0501)
            else:
                assert reach == " (the same in every place)"
                assert half == 0.0
            unlike = set(rows[rows["nonmodal"]]["target"])
            assert int(number) == len(unlike) > 5
            for text, found in zip(rest, three[:2], strict=True):
                share = 100 * float(sum(found[k] for k in unlike) / len(unlike))
                assert float(text) == pytest.approx(share, abs=0.0501)
            said += 1
    assert said == 2 * 5
    assert "(10 answers in the report):" in output
    assert len(re.findall(": right about", output)) == len(sections[1::2]) == 4
    assert "all 10 calibration curves within their bands, all 6 other checks" in output
    progress = re.compile(r"\d\d:\d\d:\d\d audit: ")  # on the other stream
    assert sum(not progress.match(line) for line in output.splitlines()) == 8
    assert "For " not in page.split("Who guesses race")[1].split("<figure")[0]  # nobody left out


@pytest.mark.slow
def test_one_figure_first_and_a_line_through_the_noises(demo):
    page = (demo[0] / "report.html").read_text(encoding="utf-8")
    order = [
        page.index(text) for text in ('class="answer"', "Who guesses race", "<img", "<details")
    ]
    assert order == sorted(order)
    assert page.split("<details")[0].count("<img") == 1
    assert "a grey line joins" in page


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
