"""HTML pages of reports: title, answer, sections, quotations and origin.

The macros of ``templates/pieces.html`` make the parts. Every text is escaped, and figures are
embedded. A page holds no date and no path. It is complete without its script, which lets readers
sort and filter tables.
"""

import base64
import functools
import hashlib
import json
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pandas as pd

from bayesrisk import plotting
from bayesrisk._version import __version__
from bayesrisk.tables.exchange import MADE_UP

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_NAME = 30  # letters of a name that a cell of a table holds in one line
_PIXELS_PER_INCH = 125

#: The warning of a page that is made of confidential records.
CONFIDENTIAL = (
    "<b>Confidential:</b> computed from confidential records; not to be passed on before a review "
    "of what it discloses."
)


class Figure(NamedTuple):
    """A figure on a page: caption, width and PNG in base 64, with a version for phones."""

    caption: str
    width: int
    data: str
    phone_width: int
    phone: str


class PageTable(NamedTuple):
    """A table on a page, with every cell as text."""

    caption: str
    heads: list[str]
    rows: list[list[str]]

    @property
    def words(self) -> set[int]:
        """Columns that wrap, as words do: some cell is longer than a number or a name."""
        cells = (pair for row in self.rows for pair in enumerate(row))
        return {number for number, cell in cells if " " in cell[_NAME:]}


class Quotes(NamedTuple):
    """Sentences from a report that may be quoted, and wrong ones with the reason."""

    may: Sequence[str]
    may_not: Mapping[str, str]


class PageCell(str):
    """Text of a table cell, with a value to sort by or a link to the file that proves it."""

    sort: object
    href: str

    def __new__(cls, text: object, **attributes: object) -> Self:
        """Return the cell with its attributes, ``sort`` or ``href`` (empty without a file)."""
        cell = super().__new__(cls, text)
        vars(cell).update(attributes)
        return cell


#: A part of a page: a text alone is a paragraph; a macro of ``templates/pieces.html`` by its name,
#: with what it shows, is such as ``("heading", "Who asked")``.
Part = str | Figure | tuple[object, ...]


def listed(names: Sequence[str]) -> str:
    """Return names as a list in words: "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def marked(text: str, *values: object, **names: object) -> "Markup":
    """Return text with HTML markup, filled with escaped values."""
    from markupsafe import Markup

    clean = {name: _printable(value) for name, value in names.items()}
    return Markup(text).format(*map(_printable, values), **clean)  # noqa: S704


def what_to_do(
    finding: str = "", *, undecided: str | bool = "", basis: str = "", step: str = ""
) -> Part:
    """Return the paragraph of what to do, by the one rule of all reports.

    A ``finding`` speaks against publishing; what is ``undecided`` (True: what only a publisher
    can judge), neither for nor against. Else nothing does, on a ``basis``. ``step`` is the next
    step, with commands in backticks.
    """
    if undecided and not isinstance(undecided, str):  # a truth value, of NumPy perhaps
        undecided = "whether this may be known is yours to judge"
    text = f"Nothing here speaks against publishing; that rests on {basis}"
    if finding or undecided:
        start = "Do not publish these tables as they are" if finding else "This decides nothing yet"
        text = f"{start}: {finding or undecided}"
    return ("advice", f"{text.rstrip('.')}. {step}".strip())


# The writer.


def render(
    title: str,
    answer: Sequence[Part],
    parts: Sequence[Part],
    *,
    quotes: Quotes,
    source: str,
    settings: str,
    settings_title: str = "Settings",
    warning: str = "",
    made_up: bool = False,
) -> bytes:
    """Return a report as an HTML page, with all values escaped.

    The answer stands in a box, with the parts below it, and the quotations at the end. A page about
    ``made_up`` people begins with this fact, and each of its quotations ends with it.
    """
    page = _environment().get_template("page.html")
    return page.render(
        title=title, answer=answer, parts=parts, quotes=quotes, source=source, versions=_versions(),
        settings=settings, settings_title=settings_title, warning=warning, made_up=made_up,
    ).encode()  # fmt: skip


@functools.cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined  # only reports need it
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("bayesrisk.experiments", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    for name, file in (("style", "style.css"), ("script", "report.js")):
        text = files("bayesrisk.experiments").joinpath("templates", file).read_text("utf-8")
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
        # The package's own, and so no text to be escaped: a policy lets in exactly these bytes.
        environment.globals |= {name: Markup(text), f"{name}_digest": f"sha256-{digest}"}  # noqa: S704
    return environment


def _printable(value: object) -> object:
    """Return a value as text without control characters; markup and numbers unchanged."""
    if hasattr(value, "__html__") or isinstance(value, (int, float)):
        return value
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def _versions() -> str:
    packages = ["numpy", "scipy", "numba", "pandas", "pyarrow", "matplotlib"]
    versions = {package: version(package) for package in packages}
    versions |= {"bayesrisk": __version__, "python": platform.python_version()}
    return ", ".join(f"{k} {v}" for k, v in sorted(versions.items()))


def findings(
    title: str,
    answer: Sequence[str],
    *,
    advice: Part,
    quotes: Quotes,
    source: str,
    settings: Mapping[str, object],
    figures: Sequence[Figure] = (),
    tables: Sequence[PageTable] = (),
    words: Mapping[str, str] | None = None,
    warning: str = "",
) -> bytes:
    """Return a page that opens with the answer in sentences, the first in large type.

    ``advice`` on what to do stands after the first.

    The settings say whether the people are made up.
    """
    meanings = [("heading", "Words of this page"), ("words", words)] if words else []
    numbers = ("folded", "The numbers", [rows for rows in tables if rows.rows])
    return render(
        title,
        [("sentence", answer[0], "lead"), advice, ("points", answer[1:])],
        [*figures, numbers, *meanings],
        quotes=quotes, source=source, warning=warning, made_up=bool(settings.get(MADE_UP, False)),
        settings=json.dumps(settings, indent=2, sort_keys=True, default=str),
    )  # fmt: skip


def origin(config: Mapping[str, Any], content: str) -> str:
    """Return a sentence on the published data behind a report, and on the files beside it."""
    sources = ("tables", "measurements", "blocks")
    digest = str(next(config[name] for name in sources if config.get(name)))[:16]
    return (
        f"Made by bayesrisk {config['version']} from nothing but what was published, of digest "
        f"{digest}…; the {content} themselves are in the files beside this page."
    )


_CLASS = "bayesrisk-report"


def fragment(page: str) -> str:
    """Return a page as an HTML fragment for embedding, as in Quarto or Jupyter.

    The style holds inside of it alone, by nested rules, and there is no script.
    """
    style = _environment().globals["style"]
    rules = re.sub(r"@page \{[^}]*\}", "", re.sub(r"(?m)^(\s*)body \{", r"\1& {", str(style)))
    inside = page.split("<main>", 1)[1].rsplit("</main>", 1)[0]
    return (
        f'<div class="{_CLASS}">\n<style>.{_CLASS} {{\n{rules}}}</style>\n'
        f"<main>{inside}</main>\n</div>\n"
    )


# Figures and tables of frames.


def drawing(draw: Callable[[], Any], caption: str) -> Figure:
    """Return a figure for a page, without keeping files of it."""
    with TemporaryDirectory() as folder:
        return figure(draw, Path(folder) / "figure", caption)


def figure(draw: Callable[[], Any], stem: Path, caption: str) -> Figure:
    """Save a figure beside the page; return it for the page, with a version for phones."""
    from bayesrisk.plotting.attacks import phone_png  # slow to import

    axes = draw()
    png = plotting.save_figure(axes, stem)[0]
    wide = float(plotting.parent_figure(axes).get_figwidth())
    phone, narrow = phone_png(draw)
    pixels = [round(inches * _PIXELS_PER_INCH) for inches in (wide, narrow)]
    data = [base64.b64encode(image).decode("ascii") for image in (png.read_bytes(), phone)]
    return Figure(caption, pixels[0], data[0], pixels[1], data[1])


def table(frame: pd.DataFrame, caption: str) -> PageTable:
    """Return a data frame as a table; numbers have five significant digits, missing ones a dash."""
    heads = [str(name).replace("_", " ") for name in frame.columns]
    rows = [[_cell(value) for value in row] for row in frame.itertuples(index=False)]
    return PageTable(caption, heads, rows)


def rounded(table: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with rates to three decimals, and each interval in one column."""
    numbers = [str(c) for c in table if table[c].dtype.kind == "f"]
    text = {
        name: table[name].map(lambda value: "–" if pd.isna(value) else f"{value:.3f}").astype("str")
        for name in numbers
    }
    wide = table.assign(**text)
    for name in [c.removesuffix("_lower") for c in numbers if c.endswith("_lower")]:
        low, high = f"{name}_lower", f"{name}_upper"
        # None is a dash alone: a column sorts as numbers where all others are.
        wide[low] = (wide[low] + " to " + wide[high]).replace("– to –", "–")
        wide = wide.drop(columns=high).rename(columns={low: f"{name} interval"})
    return wide


def _cell(value: object) -> str:
    if value is pd.NA:
        return "–"
    if isinstance(value, float):
        if np.isnan(value):
            return "–"
        return f"{value:.0f}" if value == np.rint(value) and abs(value) >= 1.5 else f"{value:.5g}"
    return value if isinstance(value, PageCell) else str(value)
