"""Every page of the documentation in a browser: nothing overflows, images are whole and told.

The pages are those that ``make docs`` left, or those of the folder ``BUILT_DOCS``.
"""

import os
from pathlib import Path

import pytest
from browser import Browser, needs_browser

ROOT = Path(os.environ.get("BUILT_DOCS", Path(__file__).parents[1] / "docs" / "_build" / "html"))
pytestmark = [
    pytest.mark.slow,
    needs_browser,
    pytest.mark.skipif(not ROOT.is_dir(), reason=f"no pages in {ROOT}: make docs"),
]
#: Width of a page, images without an alternative text, images that were not found, and tables
#: whose heads do not repeat on the next sheet of paper.
LOOK = """(() => {
  const images = [...document.images];
  const heads = [...document.querySelectorAll('table thead')];
  return {
    width: document.scrollingElement.scrollWidth,
    silent: images.filter(i => !(i.getAttribute('alt') || '').trim()).map(i => i.src),
    broken: images.filter(i => i.complete && !i.naturalWidth).map(i => i.src),
    heads: heads.filter(h => getComputedStyle(h).display !== 'table-header-group').length,
  }
})()"""
FINE = {"silent": [], "broken": [], "heads": 0}


def look(browser):
    found = browser.run(LOOK)
    return found.pop("width"), found


def test_every_page_fits_a_phone_a_screen_and_paper(tmp_path):
    pages = sorted(p for p in ROOT.rglob("*.html") if "_static" not in p.parts)
    assert len(pages) > 50
    wrong = []
    with Browser(tmp_path / "profile") as browser:
        for page in pages:
            for width in (390, 1280):
                browser.open(page, width=width)
                wide, found = look(browser)
                if wide > width or found != FINE:
                    wrong.append((page.relative_to(ROOT), width, wide, found))
            # A sheet of paper of 8.5 inches with margins of 0.4 is 740 pixels wide.
            browser.open(page, width=740)
            browser.ask("Emulation.setEmulatedMedia", media="print")
            wide, found = look(browser)
            browser.ask("Emulation.setEmulatedMedia", media="")
            if found != FINE or wide > 740:
                wrong.append((page.relative_to(ROOT), "print", wide, found))
    assert wrong == []


def test_what_is_wrong_is_found(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        '<style>thead { display: table-row-group }</style><p style="width: 900px">x</p>'
        '<img src="none.png"><table><thead><tr><th>x</th></tr></thead></table>',
        encoding="utf-8",
    )
    with Browser(tmp_path / "profile") as browser:
        browser.open(page, width=390)
        wide, found = look(browser)
    assert wide >= 900
    assert [len(found[name]) for name in ("silent", "broken")] == [1, 1]
    assert found["heads"] == 1
