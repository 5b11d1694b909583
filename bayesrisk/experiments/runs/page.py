"""Reports as self-contained pages: templates filled in, every text escaped, figures embedded.

The templates are in ``bayesrisk/experiments/templates``.  A page holds no date and no path.  It is
whole without its script, which lets tables be sorted and filtered.
"""

import base64
import functools
import hashlib
import json
import platform
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pandas as pd

from bayesrisk import plotting
from bayesrisk._version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

_PIXELS_PER_INCH = 125


class Figure(NamedTuple):
    """A figure for a template: caption or what it is made of, width in pixels, PNG in base 64."""

    caption: str | dict[str, object]
    width: int
    data: str


class PageTable(NamedTuple):
    """A table for a template, every cell as text."""

    caption: str
    heads: list[str]
    rows: list[list[str]]


class Sorted(str):
    """A cell whose text says more than the value that it is sorted by."""

    sort: object

    def __new__(cls, text: object, sort: object) -> Self:
        """Return the text with its value."""
        cell = super().__new__(cls, text)
        cell.sort = sort
        return cell


def render(template: str, **values: Any) -> str:
    """Return a template of the package filled in: all that is no markup of its own is escaped.

    A name that the template uses and nobody gave is an error.
    """
    return _environment().get_template(template).render(versions=_versions(), **values)


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
    """Return a value as text without control characters, which HTML may not hold; markup as is."""
    if hasattr(value, "__html__"):
        return value
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def _versions() -> str:
    """Return the versions of what computed and drew."""
    packages = ["numpy", "scipy", "numba", "pandas", "pyarrow", "matplotlib"]
    found = {package: version(package) for package in packages}
    found |= {"bayesrisk": __version__, "python": platform.python_version()}
    return ", ".join(f"{k} {v}" for k, v in sorted(found.items()))


def findings(
    title: str,
    answer: Sequence[str],
    *,
    source: str,
    settings: Mapping[str, object],
    figures: Sequence[Figure] = (),
    tables: Sequence[PageTable] = (),
    words: Mapping[str, str] = MappingProxyType({}),
    warning: str = "",
) -> bytes:
    """Return a page that begins with the answer in sentences, the first of them large."""
    text = json.dumps(settings, indent=2, sort_keys=True, default=str)
    return render(
        "findings.html", title=title, answer=answer, source=source, figures=figures,
        tables=[rows for rows in tables if rows.rows], words=words, warning=warning,
        settings_title="Settings", settings=text,
    ).encode()  # fmt: skip


_CLASS = "bayesrisk-report"


def fragment(page: str) -> str:
    """Return a page as a part of another one, such as of Quarto or Jupyter.

    The style holds inside of it alone, by nested rules, and there is no script.
    """
    style = _environment().globals["style"]
    rules = re.sub(r"@page \{[^}]*\}", "", re.sub(r"(?m)^(\s*)body \{", r"\1& {", str(style)))
    inside = page.split("<main>", 1)[1].rsplit("</main>", 1)[0]
    return (
        f'<div class="{_CLASS}">\n<style>.{_CLASS} {{\n{rules}}}</style>\n'
        f"<main>{inside}</main>\n</div>\n"
    )


def drawing(drawn: Any, caption: str) -> Figure:
    """Return a figure for a page that alone shows it."""
    with TemporaryDirectory() as folder:
        return figure(drawn, Path(folder) / "figure", caption)


def figure(drawn: Any, stem: Path, caption: str | dict[str, object]) -> Figure:
    """Write a figure beside the page and return it for the page."""
    png = plotting.save_figure(drawn, stem)[0]
    width = round(float(plotting.figure_of(drawn).get_figwidth()) * _PIXELS_PER_INCH)
    data = base64.b64encode(png.read_bytes()).decode("ascii")
    return Figure(caption, width, data)


def table(frame: pd.DataFrame, caption: str) -> PageTable:
    """Return a frame for the page; numbers to five significant digits, none as a dash."""
    heads = [str(name).replace("_", " ") for name in frame.columns]
    rows = [[_cell(value) for value in row] for row in frame.itertuples(index=False)]
    return PageTable(caption, heads, rows)


def rounded(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose rates have three decimals, and whose intervals are one column each."""
    numbers = [str(c) for c in table if table[c].dtype.kind == "f"]
    text = {
        name: table[name].map(lambda value: "–" if pd.isna(value) else f"{value:.3f}").astype("str")
        for name in numbers
    }
    wide = table.assign(**text)
    for name in [c.removesuffix("_lower") for c in numbers if c.endswith("_lower")]:
        low, high = f"{name}_lower", f"{name}_upper"
        wide[low] = wide[low] + " to " + wide[high]
        wide = wide.drop(columns=high).rename(columns={low: f"{name} interval"})
    return wide


def _cell(value: object) -> str:
    if isinstance(value, float):
        if np.isnan(value):
            return "–"
        return f"{value:.0f}" if value == np.rint(value) and abs(value) >= 1.5 else f"{value:.5g}"
    return str(value)
