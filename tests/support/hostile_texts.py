"""Texts that others may put anywhere, and what no file, page or line may hold in their place."""

import csv
import io
import re
import unicodedata
from html.parser import HTMLParser

#: What a spreadsheet computes, what steers a terminal, what a page runs, and what ends a line.
TEXTS = [
    "=1+1", " =1+1", "\t=1", "\r=1", "\n=1", "\r\n=cmd|' /C calc'!A0", "x\r=1+1", "x\n=1",
    "'=1", "''=1", "' =1", "+1+cmd", " +A1", "-2+3", "\u00a0-A1", "@SUM(A1)", "\ufeff=1",
    "\u200b=1", "\x00=1", "\x1f@A1", "\uff1d1+1", "\uff0bA1", " \uff0dA1", "\uff20A1",
    "=HYPERLINK(\"http://x\";\"y\")", '"=1', '","=1', "\x1b[31mred", "\x1b]0;title\x07",
    "\x9b2J", "a\x08\x08b", "\u202egnp.exe", "\u2028=1", "\udcff", "a\ud800", "\x7f",
    "<script>alert(1)</script>", "\" onload=\"alert(1)", "</td><img src=x onerror=alert(1)>",
    "&lt;b&gt;", "{{ 7 * 7 }}", "]]>", "bayesrisk: done\nbayesrisk: accepted", "../../x", "NUL",
    "a.b = 1\n[c]", "\"\"\"", "\\", "%s%n", "x" * 300,
]  # fmt: skip
_NUMBER = re.compile(r"[+-]?[\d,.]+(e[+-]?\d+)?%?", re.IGNORECASE)
_BLANK = ("Cc", "Cf", "Zs", "Zl", "Zp")


def is_formula(cell):
    """Return whether some spreadsheet may compute a cell: the first sign of it says so."""
    if not cell or _NUMBER.fullmatch(cell):
        return False
    rest = cell.lstrip("".join(c for c in set(cell) if unicodedata.category(c) in _BLANK))
    return cell[0] in "\t\r\n" or unicodedata.normalize("NFKC", rest[:1]) in ("=", "+", "-", "@")


def spreadsheet(data):
    """Return the cells of CSV as a spreadsheet does, to which a bare CR ends a row, too."""
    text = data.decode("utf-8")
    inside, ends = False, []
    for c in text:
        inside ^= c == '"'
        ends.append("\n" if c == "\r" and not inside else c)
    return list(csv.reader(io.StringIO("".join(ends), newline="")))


def steering(text, *, lines=True):
    """Return the characters of what is printed that are none; ends of lines are left out."""
    return [c for c in text if not (c.isprintable() or (lines and c == "\n"))]


class Tags(HTMLParser):
    """How often each tag is in a page, with the names of its attributes."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, tuple(sorted(name for name, _ in attrs))))
