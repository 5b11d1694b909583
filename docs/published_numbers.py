"""The page of published numbers, made from the register in ``tests/reference/*.csv``."""

import csv
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REGISTER = ROOT / "tests" / "reference"
DOCNAME = "explanation/published-numbers"
COLUMNS = (
    "paper",
    "place",
    "row",
    "column",
    "what",
    "value",
    "unit",
    "status",
    "ours",
    "checked",
    "note",
)
#: Each status, and what it says of a number.
STATUSES = {
    "reproduced": "the package, or the paper's own arithmetic, gives every digit printed",
    "corrected": "other digits are right; the note says why",
    "contradicts itself": "other numbers of the same paper, or its own text, say otherwise",
    "same contrast on synthetic data": "people of ours show what it shows, not the number itself",
    "needs national data": "counts of files that nobody here has; sums and rates are checked",
    "input": "a setting or a cited number, not a result",
}


def read() -> list[dict[str, str]]:
    """Return every row of the register, paper by paper in the order of the files."""
    rows = []
    for file in sorted(REGISTER.glob("*.csv")):
        with file.open(encoding="utf-8", newline="") as stream:
            rows += csv.DictReader(stream)
    return rows


def first_line(rows: list[dict[str, str]]) -> str:
    """Return the counts per paper and status in one line."""
    parts = []
    for paper in dict.fromkeys(row["paper"] for row in rows):
        counts = Counter(row["status"] for row in rows if row["paper"] == paper)
        shown = ", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status])
        parts.append(f"**{paper}** {counts.total()}: {shown}")
    return f"{len(rows)} printed numbers. " + "; ".join(parts) + "."


def table(rows: list[dict[str, str]], columns: dict[str, str]) -> str:
    """Return rows as a Markdown table with the given headings."""
    lines = ["| " + " | ".join(columns.values()) + " |", "|---" * len(columns) + "|"]
    for row in rows:
        cells = (row[name].replace("|", "\\|").replace("$", "\\$") for name in columns)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def by_place(rows: list[dict[str, str]]) -> str:
    """Return how many numbers of each status each table or section has."""
    counts = {}
    for row in rows:
        counts.setdefault(row["place"], Counter())[row["status"]] += 1
    some = [status for status in STATUSES if any(count[status] for count in counts.values())]
    lines = ["| place | " + " | ".join(some) + " |", "|---" * (len(some) + 1) + "|"]
    for place, count in counts.items():
        numbers = (str(count[status] or "") for status in some)
        lines.append(f"| {place} | " + " | ".join(numbers) + " |")
    return "\n".join(lines)


def where(row: dict[str, str]) -> str:
    """Return the place of a number: table, row and column."""
    return " · ".join(filter(None, (row["place"], row["row"], row["column"])))


def page(rows: list[dict[str, str]]) -> str:
    """Return the page: counts first, then what differs, then every table counted."""
    told = [
        row | {"where": where(row), "printed": f"{row['value']} {row['unit']}".strip()}
        for row in rows
    ]
    text = ["# Published numbers", "", first_line(rows), ""]
    text += [
        "Every number that the five papers print as a result, and the settings behind them, with",
        "what became of it here. The register itself is `tests/reference/*.csv`: a row for each",
        "number, with the test, page or notebook that checks it. Tests compare every row that says",
        "`reproduced` or `corrected` with what the package or the paper's own arithmetic gives,",
        "and add up every table. Numbers that only name things (years, tables, places, the ages of",
        "an example) have no row.",
        "",
        table(
            [{"status": name, "meaning": meaning} for name, meaning in STATUSES.items()],
            {"status": "status", "meaning": "it means"},
        ),
        "",
    ]
    for paper in dict.fromkeys(row["paper"] for row in rows):
        own = [row for row in told if row["paper"] == paper]
        text += [f"## {paper}", "", by_place(own), ""]
        for status in ("corrected", "contradicts itself"):
            some = [row for row in own if row["status"] == status]
            if some:
                headings = {
                    "where": "place",
                    "what": "number",
                    "printed": "printed",
                    "ours": "right, or printed elsewhere",
                    "note": "why",
                }
                text += [f"### {paper}: {status}", "", table(some, headings), ""]
        some = [row for row in own if row["status"] == "same contrast on synthetic data"]
        if some:
            headings = {
                "where": "place",
                "what": "number",
                "printed": "printed",
                "ours": "ours",
                "note": "note",
                "checked": "shown by",
            }
            text += [f"### {paper}: the same contrast", "", table(some, headings), ""]
    return "\n".join(text) + "\n"


def source_read(app: object, docname: str, source: list[str]) -> None:
    """Put the page in the place of its short file, when Sphinx reads that."""
    if docname == DOCNAME:
        source[0] = page(read())
        for file in REGISTER.glob("*.csv"):  # a changed register makes the page anew
            app.env.note_dependency(str(file))  # type: ignore[attr-defined]
