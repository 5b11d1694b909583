"""Reports of commands: the answer in front, its numbers those of the files, and fragments."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from browser import FINE, Browser, needs_browser
from typer.testing import CliRunner

import bayesrisk as br
from bayesrisk.cli.app import app
from bayesrisk.experiments.pages import fragment
from bayesrisk.experiments.reconstruction import read_reconstruction

COMMANDS = {
    "reconstruct": "attack --only records {}/tables -o {}/reconstruct --scope block "
    "--variability block",
    "claims": "attack --only claims {}/households -o {}/claims --max-columns 3",
    "risk": "census measurements sample:noisy-measurements -o {}/risk --prior 1/10",
    "counts": "census measurements sample:noisy-measurements -o {}/counts --posterior counts",
    "release": "release {}/people.csv -o {}/release --protection rounding --tables sf1-block "
    "--set base=5 --set method=nearest --places occupied",
}
PEOPLE = pd.DataFrame(
    {
        "block": ["990010001001001"] * 3 + ["990010001001002"] * 5,
        "sex": [0, 1, 1, 0, 1, 0, 1, 0],
        "age": [30, 41, 5, 22, 22, 67, 35, 8],
        "race": [1, 1, 1, 1, 1, 3, 1, 1],
        "hisp": [0, 0, 0, 1, 0, 0, 0, 0],
    }
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages by command, and the fragment of each."""
    folder = tmp_path_factory.mktemp("reports")
    PEOPLE.to_csv(folder / "people.csv", index=False)
    PEOPLE.assign(person=np.arange(len(PEOPLE))).to_csv(folder / "known.csv", index=False)
    records = br.Records.from_frame(PEOPLE, schema=br.Schema.named("sf1-person"))
    br.tabulate(records, br.Workload.named("sf1-block").select(tables=["P8", "P12"])).write(
        folder / "tables"
    )
    data = br.datasets.load_microdata("fifty-blocks")
    homes = data.households.take(np.arange(40))
    br.tabulate(homes, br.Workload.named("household-dhc")).write(folder / "households")
    found = {}
    for name, line in COMMANDS.items():
        words = [word.format(folder) for word in line.split()]
        done = CliRunner().invoke(app, [*words, "--quiet", "--fragment"])
        assert done.exit_code == 0, done.output
        at = folder / name
        files = [at / f"{kind}.html" for kind in ("report", "fragment")]
        if name == "release":
            files = [folder / f"release-{kind}.html" for kind in ("report", "fragment")]
        found[name] = [file.read_text("utf-8") for file in files]
    return folder, found


def lead(page):
    return re.search('<p class="lead">(.*?)</p>', page)[1]


def numbers(text):
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?![\d.]*\.\d)", text)]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_answer_stands_in_front_of_one_figure(pages, name):
    page = pages[1][name][0]
    main = page.split("<main>")[1]
    assert main.index('class="answer"') < main.index("<figure") < main.index("Where this comes")
    assert main.count('<figure class="drawn">') == 1
    assert '<details class="screen">' in main  # the settings, which print leaves out
    assert str(pages[0]) not in page


def test_numbers_of_a_reconstruction_are_those_of_its_files(pages):
    made = read_reconstruction(pages[0] / "reconstruct")
    sure = made.blocks[made.blocks["status"] == "unique"]
    people = int(sure["population"].sum())
    assert numbers(lead(pages[1]["reconstruct"][0])) == [len(PEOPLE), people]


def test_numbers_of_claims_are_those_of_their_files(pages):
    claims = pd.read_parquet(pages[0] / "claims" / "claims.parquet")
    claims = claims[claims["status"] == "verified"]
    found = numbers(lead(pages[1]["claims"][0]))
    assert found[0] <= len(claims)
    assert 0 < found[1] <= found[0]


def test_numbers_of_measurements_are_those_of_the_cells(pages):
    cells = pd.read_parquet(pages[0] / "risk" / "risk.parquet")
    cells = cells[cells["noisy_count"].notna()]
    above = int((cells["risk_ratio"] > 1.5).sum())
    assert f"{above:,} of {len(cells):,}" in lead(pages[1]["risk"][0])
    counts = pd.read_parquet(pages[0] / "counts" / "counts.parquet")
    assert numbers(lead(pages[1]["counts"][0]))[0] == len(counts)


def test_numbers_of_a_release_are_those_of_its_tables(pages):
    made = br.Release.read(pages[0] / "release")
    cells = sum(table.shape[0] * table.shape[1] for table in made.tables.counts.values())
    assert numbers(lead(pages[1]["release"][0])) == [cells, len(made.tables.counts)]
    assert "multiple of 5" in pages[1]["release"][0]


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_fragment_is_no_page_and_has_the_same_words(pages, name):
    page, part = pages[1][name]
    tags = Tags()
    tags.feed(part)
    assert {"html", "head", "body", "script", "meta", "title"}.isdisjoint(tags.found)
    assert tags.found[:2] == ["div", "style"]
    inside = page.split("<main>")[1].split("</main>")[0]
    assert inside in part
    assert fragment(page) == part
    style = part.split("<style>")[1].split("</style>")[0]
    assert style.startswith(".bayesrisk-report {")
    assert style.count("{") == style.count("}")
    assert not re.search(r"(?m)^\s*(body|html)\b", style)
    assert "@page" not in style


@needs_browser
@pytest.mark.slow
def test_the_style_of_a_fragment_stays_inside_of_it(pages, tmp_path):
    file = tmp_path / "host.html"
    host = "<!doctype html><body><h2>Host</h2><table><tr><td>1</td></tr></table>{}</body>"
    looks = []
    with Browser(tmp_path / "profile") as browser:
        for part in ("", pages[1]["claims"][1]):
            file.write_text(host.format(part), encoding="utf-8")
            browser.open(file)
            script = "(s => [s.fontFamily, s.marginTop, s.padding])(getComputedStyle({}))"
            looks.append(
                [
                    browser.run(script.format(f"document.querySelector('{name}')"))
                    for name in ("body", "h2", "td")
                ]
            )
        inside = browser.run(
            "getComputedStyle(document.querySelector('.bayesrisk-report .answer')).borderLeftWidth"
        )
    assert looks[0] == looks[1]
    assert float(inside.removesuffix("px")) > 3.0


def looks_opened(browser, file):
    """Yield what is seen of a page with all details open, on a phone and on a screen."""
    for width in (390, 1280):
        browser.open(file, width=width)
        browser.run("document.querySelectorAll('details').forEach(d => (d.open = true))")
        wide, found = browser.look()
        assert wide <= width
        yield found


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_pages_fit_a_phone_a_screen_and_paper(pages, name, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(pages[1][name][0], encoding="utf-8")
    with Browser(tmp_path / "profile") as browser:
        for found in looks_opened(browser, file):
            assert found == FINE
        browser.ask("Emulation.setEmulatedMedia", media="print")
        settings = "getComputedStyle(document.querySelector('details.screen')).display"
        assert browser.run(settings) == "none"
        assert browser.look()[1] == FINE
        assert browser.faults == []


#: Reports of studies, which have several figures and no fragment here.
STUDIES = (
    "sweep sample:dare-county-sweep",
    "attack --only links {}/reconstruct --adversary {}/known.csv --truth {}/known.csv --dialect "
    "schema",
    "audit sample:small-town-audit --targets 5 --releases 2",
    "census occupancy study --seeds 1 --blocks 30 --protection none --protection swapping "
    "--solutions 2",
)


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("line", STUDIES)
def test_reports_of_studies_fit_a_phone_a_screen_and_paper(pages, line, tmp_path):
    words = [word.format(pages[0]) for word in line.split()]
    done = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "out"), "--quiet"])
    assert done.exit_code == 0, done.output
    file = tmp_path / "out" / "report.html"
    with Browser(tmp_path / "profile") as browser:
        for found in looks_opened(browser, file):
            # On a phone the rows of the first table are cards; heads are a matter of paper.
            assert found | {"heads": 0} == FINE
        browser.open(file, width=740)
        browser.ask("Emulation.setEmulatedMedia", media="print")
        wide, found = browser.look()
        assert wide <= 740
        assert found == FINE
        assert browser.faults == []
