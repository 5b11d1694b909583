"""Pages: every text escaped, no control characters, nothing loaded, templates in the package."""

import base64
import hashlib
import re
import struct
import subprocess
import sys
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from jinja2 import Template, UndefinedError, meta
from report_pages import FROM, HOSTILE, hostile_report

from bayesrisk import plotting
from bayesrisk.experiments import pages as page

TEMPLATES = files("bayesrisk.experiments") / "templates"
SCRIPT = (TEMPLATES / "report.js").read_text(encoding="utf-8")
PROSE = [f"audit_{name}.html" for name in ("question", "words", "checks")]
PROSE += [f"sweep_{name}.html" for name in ("levels", "noises", "reading")]
PROSE += ["attack_reading.html"]
PROSE += [
    f"{report}_{name}.html"
    for report in ("occupancy", "reidentification")
    for name in ("question", "reading")
]


class Attributes(HTMLParser):
    """Names of the attributes of a page, in lower case."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def handle_starttag(self, tag, attrs):
        self.found |= {name for name, _ in attrs}


def hostile_page():
    frame = pd.DataFrame({HOSTILE: [HOSTILE, "b"], "x": [1.0, np.nan]})
    drawn = page.Figure(HOSTILE, 900, "AAAA", 450, "BBBB")
    table = page.table(frame, HOSTILE)
    panels, downloads = (
        ("panels", HOSTILE, [drawn]),
        ("downloads", {HOSTILE: "AAAA"}),
    )
    return hostile_report(
        [drawn], [table], [panels, ("cards", table), ("advice", HOSTILE), downloads]
    )


def test_no_text_becomes_markup():
    page = hostile_page()
    assert re.findall("<script.*", page) == ["<script>" + SCRIPT.splitlines()[0]]
    assert 'onload="' not in page
    assert not re.search("[\x00\x1b\u202e]", page)
    assert "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;" in page
    assert "49" not in page.split("</style>")[1].split("<script>")[0]
    # Each place that takes a text took this one: title twice, caption and its alternative, ...
    assert page.count("&lt;script&gt;") >= 30


def test_recipes_on_a_phone_break_after_their_signs():
    table = page.table(pd.DataFrame({"protection": ["swapping:rate=0.1", "<a:b>"]}), "names")
    html = hostile_report([], [], [("cards", table)])
    assert '<td data-head="protection">swapping:<wbr>rate=<wbr>0.1</td>' in html
    assert ">&lt;a:<wbr>b&gt;</td>" in html


def test_commands_of_advice_break_between_their_words():
    html = hostile_report([], [], [page.what_to_do("<b>", step="Type `bayesrisk x --y`.")])
    code = "<code><span>bayesrisk</span> <span>x</span> <span>--y</span></code>"
    assert code in html
    assert "&lt;b&gt;" in html


def test_the_escaping_can_be_missed():
    """The same page from an environment that does not escape fails the first test."""
    assert "<script" in Template("{{ name }}").render(name=HOSTILE)


def test_no_template_leaves_texts_as_they_are():
    texts = [file.read_text("utf-8") for file in TEMPLATES.iterdir() if file.name.endswith("html")]
    assert len(texts) == 2 + len(PROSE)
    assert not any(re.search(r"\|\s*safe|autoescape", text) for text in texts)


def test_a_piece_that_no_macro_makes_is_an_error():
    with pytest.raises(UndefinedError, match="headline"):
        page.render(HOSTILE, [("headline", HOSTILE)], [], **FROM)


def test_the_page_loads_nothing_and_prints_whole():
    page = hostile_page()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1)
    style, script = (re.search(f"<{tag}>(.*?)</{tag}>", page, re.S) for tag in ("style", "script"))
    digests = [
        base64.b64encode(hashlib.sha256(found.group(1).encode()).digest()).decode()
        for found in (style, script)
    ]
    assert policy == (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digests[0]}'; "
        f"script-src 'sha256-{digests[1]}'; base-uri 'none'; form-action 'none'"
    )
    names = Attributes()
    names.feed(page)
    assert "alt" in names.found
    assert not any(name == "style" or name.startswith("on") for name in names.found)
    assert not re.search(r"https?:|fetch|XMLHttp|import\(|innerHTML|insertAdjacent|eval", SCRIPT)
    assert SCRIPT.count("\n") < 150
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert 'name="viewport"' in page
    print_style = page[page.index("@media print") : page.index("</style>")]
    assert "overflow: visible" in print_style  # no scroll bars, no cut table
    assert "details::details-content { content-visibility: visible" in print_style
    assert page.index('class="answer"') < page.index("<img") < page.index("<table")


def test_a_name_that_nobody_gave_is_an_error():
    with pytest.raises(UndefinedError, match="hierarchy"):
        page.render(HOSTILE, [], [("prose", "sweep_reading.html", {})], **FROM)


def test_templates_are_part_of_the_package():
    names = {file.name for file in TEMPLATES.iterdir()}
    assert {"page.html", "pieces.html", "style.css", "report.js", *PROSE} <= names
    environment = page._environment()
    for name in sorted(n for n in names if n.endswith(".html")):
        source = environment.loader.get_source(environment, name)[0]
        parsed = environment.parse(source)
        # None is the prose that a page names: those are in the list above.
        assert set(meta.find_referenced_templates(parsed)) <= names | {None}


def test_a_figure_is_as_wide_as_it_was_drawn(tmp_path):
    """On a phone its panels are one below the other."""
    rows = [(n, p, p, 1.0) for n in (0, 1) for p in (0.1, 0.5)]
    names = ["noisy_count", "prior", "posterior", "risk_ratio"]
    two_counts = pd.DataFrame(rows, columns=names)

    def draw():
        return plotting.plot_risk(two_counts, against="noisy_count")

    made = page.figure(draw, tmp_path / "f", "c")
    assert (made.caption, made.width, made.phone_width) == ("c", 900, 450)
    for data, inches in ((made.data, (7.2, 3.1)), (made.phone, (3.6, 6.2))):
        image = base64.b64decode(data)
        assert image.startswith(b"\x89PNG")
        assert struct.unpack(">II", image[16:24]) == tuple(round(200 * n) for n in inches)
    assert {file.name for file in tmp_path.iterdir()} == {"f.png", "f.svg"}


def test_only_a_report_loads_the_templates():
    code = (
        "import sys; import bayesrisk.experiments as e; e.write_report; "
        "assert 'jinja2' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_caption_that_is_the_title_above_it_is_not_shown_twice():
    tables = [page.table(pd.DataFrame({"a": [1]}), caption) for caption in ("Costs", "Errors")]
    html = page.render("x", [], [("folded", "Costs", tables)], **FROM).decode()
    assert "<summary>Costs</summary>" in html
    assert re.findall(r"<figcaption( hidden)?>(\w+)", html) == [
        (" hidden", "Costs"),
        ("", "Errors"),
    ]


def test_nothing_is_a_dash_in_a_table():
    frame = pd.DataFrame({"a": pd.array([1, None], "Int64"), "b": [0.5, np.nan]})
    assert page.table(frame, "t").rows == [["1", "0.5"], ["–", "–"]]


def test_columns_of_sentences_wrap_and_no_others():
    law = "the true count plus noise of one size in every cell"
    frame = pd.DataFrame({"level": ["ward", "town"], "law": ["none", law], "counts": [304, 12]})
    table = page.table(frame.assign(name="discrete-gaussian:rho=0.0992264,sensitivity=add"), "t")
    assert table.words == {1}
    html = page.render("x", [], [("table", table)], **FROM).decode()
    found = re.findall(r'<t[hd] class="words">(.*?)</t[hd]>', html)
    assert found == ["law", "none", law]
