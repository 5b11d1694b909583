"""Pieces of a self-contained page: every text escaped, figures embedded, no date and no path."""

import base64
import platform
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk import plotting
from bayesrisk._version import __version__

__all__ = ["figure", "page", "table", "text", "versions"]

_PIXELS_PER_INCH = 125
#: A report shows its own figures and style, and nothing else: no script, no form, no network.
_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'"
)

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #1a1a1a; background: #fff; }
h1, h2, h3 { line-height: 1.25; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
caption { caption-side: top; text-align: left; font-weight: 600; padding-bottom: .3rem; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; } td { white-space: nowrap; }
thead th { border-bottom: 2px solid #555; }
figure { margin: 1.5rem 0; } figure img { max-width: 100%; height: auto; }
figcaption { color: #444; font-size: .92rem; }
pre { background: #f5f5f5; padding: .8rem; overflow-x: auto; font-size: .85rem; }
.wide { overflow-x: auto; }
@media print {
  @page { margin: 1.5cm; }
  body { font-size: 10pt; max-width: none; margin: 0; padding: 0; }
  .wide, pre { overflow: visible; }
  table { width: 100%; font-size: 8pt; page-break-inside: auto; }
  th, td { padding: .1rem .25rem; white-space: normal; overflow-wrap: anywhere; }
  thead { display: table-header-group; }
  tr, figure, figcaption { break-inside: avoid; }
  h1, h2, h3, caption { break-after: avoid; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  figure img { max-height: 20cm; }
  details > * { display: block; }
}
"""


def text(value: Any) -> str:
    """Return a value as text for HTML: escaped, control characters replaced."""
    keep = "\n\t"
    shown = "".join(
        c if c.isprintable() or c in keep else "\N{REPLACEMENT CHARACTER}" for c in str(value)
    )
    return escape(shown, quote=True)


def page(title: str, body: str) -> str:
    """Return a whole page."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def versions() -> str:
    """Return the versions of what computed and drew, escaped."""
    packages = ["numpy", "scipy", "numba", "pandas", "pyarrow", "matplotlib"]
    found = {package: version(package) for package in packages}
    found |= {"bayesrisk": __version__, "python": platform.python_version()}
    return ", ".join(f"{text(k)} {text(v)}" for k, v in sorted(found.items()))


def figure(drawn: Any, stem: Path, caption: str) -> str:
    """Write a figure beside the page and return it embedded in the page."""
    png = plotting.save_figure(drawn, stem)[0]
    width = round(float(plotting.figure_of(drawn).get_figwidth()) * _PIXELS_PER_INCH)
    data = base64.b64encode(png.read_bytes()).decode("ascii")
    return (
        f'<figure><img width="{width}" alt="{text(caption)}" '
        f'src="data:image/png;base64,{data}">'
        f"<figcaption>{text(caption)}</figcaption></figure>"
    )


def table(frame: pd.DataFrame, caption: str) -> str:
    """Return a table with every cell escaped; numbers to five significant digits."""
    heads = "".join(f"<th>{text(str(c).replace('_', ' '))}</th>" for c in frame.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{text(_cell(value))}</td>" for value in row) + "</tr>"
        for row in frame.itertuples(index=False)
    )
    return (
        f'<div class="wide"><table><caption>{text(caption)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if value == np.rint(value) and abs(value) >= 1.5 else f"{value:.5g}"
    return str(value)
