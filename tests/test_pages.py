"""Every page of the documentation in a browser: nothing overflows, images are whole and told.

The pages are those that ``make docs`` left, or those of the folder ``BUILT_DOCS``.
"""

import os
from pathlib import Path

import pytest
from browser import FINE, Browser, needs_browser

ROOT = Path(os.environ.get("BUILT_DOCS", Path(__file__).parents[1] / "docs" / "_build" / "html"))
pytestmark = [
    pytest.mark.slow,
    needs_browser,
    pytest.mark.skipif(not ROOT.is_dir(), reason=f"no pages in {ROOT}: make docs"),
]


def test_every_page_fits_a_phone_a_screen_and_paper(tmp_path):
    pages = sorted(p for p in ROOT.rglob("*.html") if "_static" not in p.parts)
    assert len(pages) > 50
    wrong = []
    with Browser(tmp_path / "profile") as browser:
        for page in pages:
            for width in (390, 1280):
                browser.open(page, width=width)
                wide, found = browser.look()
                if wide > width or found != FINE:
                    wrong.append((page.relative_to(ROOT), width, wide, found))
            # A sheet of paper of 8.5 inches with margins of 0.4 is 740 pixels wide.
            browser.open(page, width=740)
            browser.ask("Emulation.setEmulatedMedia", media="print")
            wide, found = browser.look()
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
        wide, found = browser.look()
    assert wide >= 900
    assert [len(found[name]) for name in ("silent", "broken")] == [1, 1]
    assert found["heads"] == 1
