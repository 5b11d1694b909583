"""Reports in a browser: tables sort, filter and become CSV, points are told, nothing is wide."""

import csv
import io
import re
import urllib.parse

import numpy as np
import pandas as pd
import pytest
from browser import Browser, needs_browser
from report_pages import HOSTILE, hostile_report

from bayesrisk import plotting
from bayesrisk.experiments import pages as html

pytestmark = [needs_browser, pytest.mark.slow]

NAMES = [HOSTILE, 'two "quotes", a comma', "</script><b>$\\bad$", "line\nbreak", "=plain"]
FRAME = pd.DataFrame(
    {
        "name": NAMES,
        "number": [10.0, 9.0, np.nan, -1.5, 1000.0],
        "share": ["1/864", "1/2", "1/10", "–", "0.3"],
        "interval": ["0.2 to 0.4", "-1 to 3", "+0.1 to 9", "10 to 11", "2 to –"],
        "mixed": ["2020 block", "10", "9", "a", ""],
    }
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report with a hostile table, a wide one, a long one, and a figure of hostile names."""
    folder = tmp_path_factory.mktemp("page")
    measures = pd.DataFrame(
        {
            "protection": [NAMES[0], NAMES[2]],
            "attack": "likelihood",
            "adversary": NAMES[1],
            "answers_posterior": [1.25, 2.0],
            "answers_posterior_lower": [1.125, 1.75],
            "answers_posterior_upper": [1.375, 2.25],
            "error_releases": 0.01,
            "releases": 5,
            "randomised": True,
        }
    )
    costs = pd.DataFrame({"protection": [NAMES[0], NAMES[2]], "error": [0.0, 2.0]})
    wide = pd.DataFrame(np.arange(60.0).reshape(3, 20), columns=[f"column {i}" for i in range(20)])
    text = hostile_report(
        [html.figure(lambda: plotting.plot_audit(measures, costs), folder / "f", HOSTILE)],
        [html.table(frame, HOSTILE) for frame in (FRAME, wide, FRAME.iloc[:1])],
    )
    file = folder / "report.html"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as one:
        yield one
        assert one.faults == []


def column(browser, at, table=0):
    return browser.run(
        f"[...document.querySelectorAll('table')[{table}].tBodies[0].rows]"
        f".filter(r => r.getClientRects().length).map(r => r.cells[{at}].textContent)"
    )


def press(browser, at, table=0):
    browser.run(
        f"document.querySelectorAll('table')[{table}].querySelectorAll('button')[{at}].click()"
    )


def unfold(browser):
    browser.run("document.querySelectorAll('details').forEach(d => (d.open = true))")


def test_columns_sort_as_numbers_where_all_are_numbers(browser, page):
    browser.open(page)
    unfold(browser)
    first = column(browser, 0)
    press(browser, 1)
    assert column(browser, 1) == ["-1.5", "9", "10", "1000", "–"]
    press(browser, 1)
    assert column(browser, 1) == ["1000", "10", "9", "-1.5", "–"]  # missing ones stay last
    press(browser, 1)
    assert column(browser, 0) == first
    press(browser, 2)
    assert column(browser, 2) == ["1/864", "1/10", "0.3", "1/2", "–"]
    press(browser, 3)
    assert column(browser, 3) == ["-1 to 3", "+0.1 to 9", "0.2 to 0.4", "2 to –", "10 to 11"]
    press(browser, 4)
    assert column(browser, 4) == ["10", "2020 block", "9", "a", ""]  # words, not numbers
    assert browser.run("document.querySelectorAll('[aria-sort]').length") == 1


def test_rows_are_filtered_by_all_words(browser, page):
    browser.open(page)
    unfold(browser)

    def keep(text):
        browser.run(
            f"(() => {{ const f = document.querySelector('input'); f.value = {text!r};"
            "f.dispatchEvent(new Event('input')) })()"
        )
        return column(browser, 1)

    assert keep("COMMA quotes") == ["9"]
    assert keep("comma plain") == []
    assert keep("") == ["10", "9", "–", "-1.5", "1000"]
    assert keep("b") == ["10", "–", "-1.5"]


def saved(browser, table=0):
    """Return the CSV that the button would save, and its name."""
    found = browser.run(
        "(() => { let got; const click = HTMLAnchorElement.prototype.click;"
        "HTMLAnchorElement.prototype.click = function () { got = [this.download, this.href] };"
        f"document.querySelectorAll('.tools')[{table}].querySelector(':scope > button').click();"
        "HTMLAnchorElement.prototype.click = click; return got })()"
    )
    name, address = found
    kind, _, data = address.partition(",")
    assert kind == "data:text/csv;charset=utf-8"
    return name, urllib.parse.unquote(data)


def test_csv_is_what_the_table_says(browser, page):
    browser.open(page)
    unfold(browser)
    told = html.table(FRAME, "")
    name, text = saved(browser)
    assert re.fullmatch(r"[a-z0-9-]+\.csv", name)
    rows = list(csv.reader(io.StringIO(text, newline="")))
    shown = [[str(html._printable(cell)) for cell in row] for row in (told.heads, *told.rows)]
    assert shown[5][0] == "=plain"
    shown[5][0] = "'=plain"  # which no spreadsheet computes
    assert rows == shown
    press(browser, 1)
    browser.run("document.querySelector('input').value = '9'")
    browser.run("document.querySelector('input').dispatchEvent(new Event('input'))")
    rows = list(csv.reader(io.StringIO(saved(browser)[1], newline="")))
    assert [row[1] for row in rows[1:]] == column(browser, 1)  # rows shown, as they are sorted
    assert 0 < len(rows) - 1 < len(FRAME)
    single = list(csv.reader(io.StringIO(saved(browser, 2)[1], newline="")))
    assert single == shown[:2]  # a table of one row has nothing to sort, and is saved all the same


def test_csv_is_saved_as_a_file(browser, page, tmp_path):
    browser.open(page)
    unfold(browser)
    browser.ask("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    name, text = saved(browser)
    browser.run("document.querySelector('.tools > button').click()")
    browser.wait_until(lambda: (tmp_path / name).is_file() and (tmp_path / name).stat().st_size)
    assert (tmp_path / name).read_bytes().decode() == text


@pytest.mark.parametrize("scripts", [True, False])
def test_nothing_is_wider_than_a_phone(browser, page, scripts):
    browser.open(page, width=390, scripts=scripts)
    browser.ask("Emulation.setScriptExecutionDisabled", value=False)
    unfold(browser)
    assert browser.run("document.scrollingElement.scrollWidth") <= 390
    assert browser.run("innerWidth") == 390
    # Tables and figures scroll within themselves, and hold all that they have.
    assert browser.run("document.querySelectorAll('table')[1].rows[0].cells.length") == 20
    assert (browser.run("document.querySelectorAll('.tools').length") > 0) == scripts


def test_folded_tables_are_printed(browser, page):
    browser.open(page)
    assert browser.run("document.querySelectorAll('details[open]').length") == 0
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.run("document.querySelectorAll('details:not([open])').length") == 0
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.run("document.querySelectorAll('details[open]').length") == 0
    # Without a script, by style alone.
    browser.open(page, scripts=False)
    browser.ask("Emulation.setEmulatedMedia", media="print")
    browser.ask("Emulation.setScriptExecutionDisabled", value=False)
    tall = browser.run("document.querySelector('table').getBoundingClientRect().height")
    browser.ask("Emulation.setEmulatedMedia", media="")
    assert tall > 50


def test_no_other_script_runs(browser, page, tmp_path):
    text = page.read_text(encoding="utf-8")
    bad = text.replace("</main>", "<script>document.title = 'run'</script></main>", 1)
    bad = bad.replace("<h1>", "<h1 onclick=\"document.title = 'run'\">", 1)
    file = tmp_path / "bad.html"
    file.write_text(bad, encoding="utf-8")
    browser.open(file)
    browser.run("document.querySelector('h1').click()")
    assert browser.run("document.title") != "run"
    refused, browser.faults[:] = list(browser.faults), []
    assert refused
    assert all("Content Security Policy" in fault for fault in refused)
