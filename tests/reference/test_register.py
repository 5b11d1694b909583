"""The register of published numbers is whole: no row without status or place, checks exist."""

import ast
import re
from collections import Counter
from functools import cache
from types import SimpleNamespace

import pytest
from printed import ROOT, ROWS, cells, number, register, rows

#: Rows and columns of every table of Abowd et al. that holds results.
SIZES = {
    "S4": (20, 5), "S5": (7, 7), "S6": (48, 6), "S7": (16, 6), "S8": (16, 7), "S9": (48, 6),
    "S10": (40, 5), "S11": (40, 6), "S12": (40, 6), "S13": (40, 6),
}  # fmt: skip
TESTS = re.compile(r"^(tests/[\w/]+\.py)::(test_\w+)$")


@cache
def functions(path):
    return {
        node.name
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }


def test_every_row_has_what_it_must():
    assert len({row["paper"] for row in ROWS}) == 5
    for row in ROWS:
        assert tuple(row) == register.COLUMNS
        for name in ("paper", "place", "what", "value", "status", "checked"):
            assert row[name].strip() == row[name] != "", row
        assert row["status"] in register.STATUSES, row
        assert max(map(len, row.values())) <= 140, row  # short descriptions, no sentences
    places = Counter(
        (row["paper"], row["place"], row["row"], row["column"], row["what"]) for row in ROWS
    )
    assert [place for place, n in places.items() if n > 1] == []


def test_every_value_is_a_number():
    for row in ROWS:
        if row["value"] == "?":
            assert "lost" in row["note"]
        elif not re.fullmatch(r"\d+-\d+", row["value"]):
            number(row["value"])


def test_every_check_exists():
    for row in ROWS:
        test = TESTS.match(row["checked"])
        if test:
            path, name = test.groups()
            assert name in functions(path), row
        else:
            assert (ROOT / row["checked"]).is_file(), row


def test_what_is_said_to_be_reproduced_is_asserted():
    for row in ROWS:
        asserted = TESTS.match(row["checked"]) or row["checked"].startswith("notebooks/")
        if row["status"] in {"reproduced", "same contrast on synthetic data"}:
            assert asserted, row
        if row["status"] == "corrected":
            assert asserted, row
            assert row["ours"], row
            assert row["note"], row
        if row["status"] == "contradicts itself":
            assert row["note"], row


@pytest.mark.parametrize("name", SIZES)
def test_tables_are_whole(name):
    found = cells("Abowd et al.", f"Table {name}")
    lines, columns = ({key[i] for key in found} for i in (0, 1))
    assert (len(lines), len(columns)) == SIZES[name]
    assert len(found) == len(rows("Abowd et al.", f"Table {name}")) == len(lines) * len(columns)


def test_the_page_counts_as_the_register_does():
    page = register.page(ROWS)
    title, _, first = page.splitlines()[:3]
    assert title == "# Published numbers"
    assert first.startswith(f"{len(ROWS)} printed numbers.")
    for paper in {row["paper"] for row in ROWS}:
        counts = Counter(row["status"] for row in rows(paper))
        (part,) = re.findall(rf"\*\*{re.escape(paper)}\*\* ([^;]*)", first)
        total, _, shown = part.rstrip(".").partition(": ")
        assert int(total) == counts.total()
        found = {status: int(n) for n, status in re.findall(r"(\d+) ([a-z ]+)", shown)}
        assert found == counts
    # The tables of places add up to the same.
    for paper in {row["paper"] for row in ROWS}:
        section = page.partition(f"## {paper}\n")[2].partition("\n## ")[0].partition("\n###")[0]
        assert sum(map(int, re.findall(r"(?<=\| )\d+(?= \|)", section))) == len(rows(paper))


def test_the_page_lists_what_differs():
    page = register.page(ROWS)
    for row in ROWS:
        if row["status"] in {"corrected", "contradicts itself"}:
            assert f"| {register.where(row)} | {row['what']} |".replace("$", "\\$") in page


def test_a_row_without_a_status_would_be_seen(monkeypatch):
    broken = [ROWS[0] | {"status": ""}, *ROWS[1:]]
    monkeypatch.setitem(globals(), "ROWS", broken)
    with pytest.raises(AssertionError):
        test_every_row_has_what_it_must()
    monkeypatch.setitem(globals(), "ROWS", [ROWS[0] | {"checked": "tests/none.py"}])
    with pytest.raises(AssertionError):
        test_every_check_exists()


def test_the_site_makes_the_page_from_the_register():
    read = []
    app = SimpleNamespace(env=SimpleNamespace(note_dependency=read.append))
    source, other = ["anything"], ["kept"]
    register.source_read(app, register.DOCNAME, source)
    register.source_read(app, "explanation/findings", other)
    assert (source, other) == ([register.page(ROWS)], ["kept"])
    assert len(read) == 5
    assert "published_numbers.source_read" in (ROOT / "docs" / "conf.py").read_text()
