"""Reports of commands: the answer in front, its numbers those of the files, and fragments."""

import html
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from audits import homes as small_homes
from browser import FINE, Browser, needs_browser
from label_boxes import drawn_labels, label_faults
from matplotlib.figure import Figure
from typer.testing import CliRunner

import bayesrisk as br
from bayesrisk.cli.app import app
from bayesrisk.experiments.pages import fragment
from bayesrisk.experiments.reconstruction import read_reconstruction

LAYOUTS = Path(__file__).parents[1] / "files" / "layouts"
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
    homes = small_homes(3, 30, 6)
    br.tabulate(homes, br.Workload.named("household-occupancy")).write(folder / "occupancy")
    found, faults = {}, {}
    for name, line in COMMANDS.items():
        words = [word.format(folder) for word in line.split()]
        with drawn_labels() as faults[name]:
            done = CliRunner().invoke(app, [*words, "--quiet", "--fragment"])
        assert done.exit_code == 0, done.output
        at = folder / name
        files = [at / f"{kind}.html" for kind in ("report", "fragment")]
        if name == "release":
            files = [folder / f"release-{kind}.html" for kind in ("report", "fragment")]
        found[name] = [file.read_text("utf-8") for file in files]
    return folder, found, faults


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
    found = numbers(lead(pages[1]["reconstruct"][0]))
    assert found[:2] == [len(PEOPLE), people]
    kinds = made.records[made.records["block"].isin(sure["block"])].value_counts()
    assert found[2] == kinds.groupby("block").max().sum()  # the commonest record of each place


def test_numbers_of_claims_are_those_of_their_files(pages):
    claims = pd.read_parquet(pages[0] / "claims" / "claims.parquet")
    claims = claims[claims["status"] == "verified"]
    found = numbers(lead(pages[1]["claims"][0]))
    assert found[0] <= len(claims)
    assert found[1] == 40
    assert 0 < found[2] <= found[0]


def test_numbers_of_measurements_are_those_of_the_cells(pages):
    cells = pd.read_parquet(pages[0] / "risk" / "risk.parquet")
    cells = cells[cells["noisy_count"].notna()]
    above = int((cells["risk_ratio"] > 1.5).sum())
    assert numbers(lead(pages[1]["risk"][0]))[1] == len(cells)
    assert f"{above:,} noisy counts make it more than 1.5 times as probable" in first_screen(
        pages[1]["risk"][0]
    )
    counts = pd.read_parquet(pages[0] / "counts" / "counts.parquet")
    counts = counts[counts["level"] == "Block"]
    exact = int((counts["sd"] == 0.0).sum())
    assert numbers(lead(pages[1]["counts"][0]))[:2] == [len(counts), exact]


def test_numbers_of_a_release_are_those_of_its_tables(pages):
    made = br.Release.read(pages[0] / "release")
    cells = sum(table.shape[0] * table.shape[1] for table in made.tables.counts.values())
    places = len(made.tables.geoids["block"])
    assert numbers(lead(pages[1]["release"][0])) == [len(made.tables.counts), places, 5, 2]
    assert f"None of {cells:,} counts is stated exactly" in pages[1]["release"][0]
    assert "multiple of 5" in pages[1]["release"][0]


def first_screen(page):
    """Return the text of a page up to its first figure or table."""
    main = re.split("<figure|<table", page.split("<main>")[1])[0]
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", main)).split())


#: What six readers ask of each report, and where its first screen says so.
QUESTIONS = {
    "reconstruct": {
        "how many records were found": "Of 8 reconstructed records",
        "how many are certain": r"records \d+ are proved",
        "why are they": "no others fit the published tables",
        "what would a guess have": r"commonest record of the place would be right for \d+",
        "is that so everywhere": r"In \d of \d places",
        "what of the others": r"differ in [\d.]+%.* of the people",
    },
    "claims": {
        "how many statements": r"[\d,]+ statements that no table makes must be true",
        "about how many people": "of these 40 records",
        "about single people": r"[\d,]+ of them are about one record alone",
        "which, for example": r"For example, \d+: One household",
        "is that all": r"In \d+ of \d+ places .* every claim is decided",
        "what does it mean": "what must be true of the records behind published tables",
    },
    "risk": {
        "whose data": "Made-up data",
        "are people seen": r"(At least [\d,]+ of [\d,]+ cells hold|Noise alone can explain)",
        "how sure": r"95 % sure|none surely",
        "what noise alone makes": r"Noise alone makes [\d,]+ \(give or take",
        "what constraints say": r"Constraints prove [\d,]+ of these cells empty",
        "what was believed before": "with a probability of 0.1",
    },
    "counts": {
        "whose data": "Made-up data",
        "how many counts": r"Of [\d,]+ Block counts",
        "how many are exact": r"counts [\d,]+ are exact",
        "how sure are the others": "all levels together leave a count uncertain by",
        "what noise alone leaves": "its own noise alone by",
        "and of larger places": r"State counts 2 are exact",
    },
    "release": {
        "which tables": r"^.*\d+ tables of 2 places \(block\)",
        "how are they protected": "rounded to multiples of 5",
        "what does it cost": "a count is off by 2 at most",
        "what is exact": r"Published exactly: the list of places \(2 at block\)",
        "how is that list made": "a fact about the records",
        "what is the law": "the true count rounded to a multiple of 5, the nearest",
    },
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_first_screen_answers_six_questions(pages, name):
    text = first_screen(pages[1][name][0])
    assert len(QUESTIONS[name]) == 6
    missing = [asked for asked, said in QUESTIONS[name].items() if not re.search(said, text)]
    assert missing == [], text
    assert len(text.split()) < 260


def quotations(page):
    """Return the sentences that may be quoted, and those that may not."""
    return [
        re.findall("<li>(.*?)</li>", page.split(f'<ul class="{kind}">')[1].split("</ul>")[0])
        for kind in ("may", "may-not")
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_three_sentences_may_be_quoted_and_three_may_not(pages, name):
    page = pages[1][name][0]
    may, may_not = quotations(page)
    assert (len(may), len(may_not)) == (3, 3)
    assert may[0].removesuffix(" (Made-up data.)") in lead(page)
    made_up = "Made-up data:" in page
    assert all(one.endswith("(Made-up data.)") == made_up for one in may)
    assert made_up == (name in ("risk", "counts"))
    assert page.index('class="may-not"') < page.index("Where this comes from")


@pytest.mark.parametrize("name", COMMANDS)
def test_no_label_of_a_figure_lies_over_another_or_under_a_line(pages, name):
    assert pages[2][name] == []


def test_labels_over_each_other_are_seen():
    figure = Figure(figsize=(3.0, 2.0))
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], label="line")
    axes.text(0.5, 0.5, "crossed", ha="center", va="center")
    axes.text(0.02, 0.9, "one", va="center")
    axes.text(0.03, 0.9, "other", va="center")
    axes.text(0.9, 0.2, "far too long for this figure")
    faults = label_faults(figure)
    assert any("crosses 'crossed'" in fault for fault in faults)
    assert "'one' lies over 'other'" in faults
    assert any("leaves the figure" in fault for fault in faults)
    axes.set_visible(False)
    assert label_faults(figure) == []


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
    for width, height in ((390, 844), (1280, 800)):
        browser.open(file, width=width)
        end = "document.querySelector('p.advice').getBoundingClientRect().bottom"
        assert browser.run(end) <= height  # what to do stands on the first screen
        browser.run("document.querySelectorAll('details').forEach(d => (d.open = true))")
        wide, found = browser.look()
        assert wide <= width
        # A phone has the figures that were drawn for it, whole: nothing scrolls.
        for end, phone in browser.run(_FIGURES):
            assert end <= width
            assert phone == (width == 390)
        yield found


_FIGURES = """[...document.querySelectorAll('figure.drawn img, figure.panels img')].map(i => [
  i.getBoundingClientRect().right,
  i.currentSrc === i.closest('picture').querySelector('source').srcset,
])"""
#: On paper two figures find room on a page.
_TALLEST = """Math.max(0, ...[...document.querySelectorAll('figure.drawn img')].map(
  i => i.getBoundingClientRect().height))"""


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
        assert browser.run(_TALLEST) < 260
        assert browser.look()[1] == FINE
        assert browser.faults == []


#: Reports of studies, which have several figures and no fragment here.
STUDIES = (
    "sweep sample:dare-county-sweep",
    "attack --only links {}/reconstruct --adversary {}/known.csv --truth {}/known.csv --dialect "
    "schema",
    "audit sample:small-town-audit --targets 5 --releases 2",
    "plan sample:hospital --limit recovered=0",
    f"attack {LAYOUTS}/clinic-age.csv {LAYOUTS}/clinic-diagnosis.csv --accept",
    "census occupancy study --seeds 1 --blocks 30 --protection none --protection swapping:rate=0.1 "
    "--solutions 2",
    "census occupancy attack {}/occupancy",
)


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("line", STUDIES)
def test_reports_of_studies_fit_a_phone_a_screen_and_paper(pages, line, tmp_path):
    words = [word.format(pages[0]) for word in line.split()]
    with drawn_labels() as faults:
        done = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "out"), "--quiet"])
    assert done.exit_code == 0, done.output
    assert faults == []
    file = tmp_path / "out" / "report.html"
    assert [len(part) for part in quotations(file.read_text("utf-8"))] == [3, 3]
    with Browser(tmp_path / "profile") as browser:
        for found in looks_opened(browser, file):
            # On a phone the rows of the first table are cards; heads are a matter of paper.
            assert found | {"heads": 0} == FINE
        browser.open(file, width=740)
        browser.ask("Emulation.setEmulatedMedia", media="print")
        wide, found = browser.look()
        assert wide <= 740
        assert browser.run(_TALLEST) < 260
        assert found == FINE
        assert browser.faults == []
