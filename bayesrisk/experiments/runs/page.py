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
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pandas as pd

from bayesrisk import plotting
from bayesrisk._show import number
from bayesrisk._version import __version__
from bayesrisk.plotting import plot_noisy_measurements
from bayesrisk.plotting.attacks import draw_numbers

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


class Linked(str):
    """A text with a file beside the page that proves it; ``""`` where there is none."""

    href: str

    def __new__(cls, text: object, href: str) -> Self:
        """Return the text with its file."""
        linked = super().__new__(cls, text)
        linked.href = href
        return linked


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
        # None is a dash alone: a column sorts as numbers where all others are.
        wide[low] = (wide[low] + " to " + wide[high]).replace("– to –", "–")
        wide = wide.drop(columns=high).rename(columns={low: f"{name} interval"})
    return wide


def _cell(value: object) -> str:
    if isinstance(value, float):
        if np.isnan(value):
            return "–"
        return f"{value:.0f}" if value == np.rint(value) and abs(value) >= 1.5 else f"{value:.5g}"
    return value if isinstance(value, Linked) else str(value)


# Reports of reconstructions, claims, noisy measurements and releases: the answer first.

Row = Mapping[str, Any]
_ROWS = 50  # of a table in a report
_NAIVE = (
    "The counts are taken as true here, although their protection may have changed them: what "
    "is proved would only be so if they were true."
)
_MEANINGS = {
    "unique": "no other records fit, which is proved",
    "feasible": "these records fit, and others do, or might",
    "nearest": "no records fit, and these deviate least from the tables",
    "infeasible": "no records fit, because the counts contradict each other",
    "contradictory": "no records fit, because the counts contradict each other",
    "unknown": "nothing is decided, because the solver stopped at its limit",
    "none": "nothing was looked for",
    "undecided": "at least one claim is open, because the solver stopped at its limit",
    "decided": "every claim is decided",
    "empty": "nobody is there",
}


def _by_status(statuses: Mapping[str, int], level: str) -> list[str]:
    """Return a sentence for each status of places."""
    every = sum(statuses.values())
    return [
        f"In {number:,} of {every:,} places ({level}) {_MEANINGS.get(status, status)}."
        for status, number in sorted(statuses.items(), key=lambda pair: -pair[1])
    ]


def _source(config: Row, content: str) -> str:
    """Return where a report comes from."""
    digest = str(config.get("tables") or config["measurements"])[:16]
    return (
        f"Made by bayesrisk {config['version']} from nothing but what was published, of digest "
        f"{digest}…; the {content} themselves are in the files beside this page."
    )


def reconstruction_page(
    blocks: Iterable[pd.DataFrame], bounds: Iterable[pd.DataFrame] | None, facts: Row, config: Row
) -> bytes:
    """Return the report of a reconstruction; ``bounds`` are those of the variability.

    Frames come a shard at a time, so that places of a nation are never held together.
    """
    people: Counter[str] = Counter()
    for part in blocks:
        level = str(part.columns[0])
        counted = part.groupby("status")["population"].sum()
        people.update({str(name): int(n) for name, n in counted.items()})
    every, proved = people.total(), people["unique"]
    answer = [
        f"Of {every:,} reconstructed records {proved:,} are proved: no others fit the published "
        "tables."
        if proved
        else f"None of {every:,} reconstructed records is proved: others may fit, too.",
        *_by_status(facts["statuses"], level),
    ]
    tables = [table(pd.DataFrame({"cells": facts["conflicts"]}), "Cells that contradict")]
    if bounds is not None:
        sums, most = np.zeros(3), pd.DataFrame()
        for part in bounds:
            sizes = part["population"].to_numpy(dtype=float)
            sums += [sizes.sum(), *(sizes @ part[end].to_numpy() for end in ("lower", "upper"))]
            most = pd.concat([most, part[part["upper"] > 0]]).nlargest(_ROWS, "upper")
        ends = dict.fromkeys(f"{share:.1%}" for share in sums[1:] / max(sums[0], 1.0))
        answer.append(
            f"The records that fit and are least like these differ in {' to '.join(ends)} of the "
            f"people, on average over people ({config['variability']})."
        )
        caption = f"Places with other records that fit, at most {_ROWS}"
        tables.append(table(most.drop(columns="seconds", errors="ignore"), caption))
    drawn = draw_numbers(facts["statuses"], f"places ({level})")
    return findings(
        "Reconstruction: which records published tables give away",
        answer,
        source=_source(config, "records"),
        settings=config,
        figures=[drawing(drawn, "Places by what is known of their records.")],
        tables=tables,
        words={
            **{name: f"{_MEANINGS.get(name, name)}." for name in facts["statuses"]},
            "other records": "those that differ in what the tables tell apart: two ages that are "
            "one group in every table are the same here.",
        },
        warning=_NAIVE if facts["taken_as_true"] else "",
    )


def claims_page(facts: Row, config: Row) -> bytes:
    """Return the report of a run of claims."""
    coverage = pd.DataFrame(facts["coverage"])
    figures = []
    if facts["singletons"]:
        some = coverage[coverage["singleton_records"] > 0].set_index("columns")
        bars = {f"{n} columns": int(size) for n, size in some["singleton_records"].items()}
        caption = "Records that a claim about one record describes, by the columns of the claim."
        figures = [drawing(draw_numbers(bars, "records"), caption)]
    return findings(
        "Claims: what must be true of the records behind published tables",
        [
            f"{facts['claims']:,} statements that no table makes must be true of these records; "
            f"{facts['singletons']:,} of them are about one record alone.",
            *(f"For example, {example}" for example in facts["examples"]),
            *_by_status(facts["statuses"], "finest level"),
            *(f"No records fit: {conflict}" for conflict in facts["conflicts"]),
        ],
        source=_source(config, "claims"),
        settings=config,
        figures=figures,
        tables=[table(coverage, "Records and claims by columns")],
        words={
            "claim": "a statement that some records have certain values in some columns.",
            "must be true": "all records that have the published counts have it, not most of them.",
            "about one record": "exactly one record of the place has these values.",
        },
        warning=_NAIVE if facts["taken_as_true"] else "",
    )


def measurement_sentences(facts: Row) -> list[str]:
    """Return the answer of a run on the risk of every cell."""
    k, units = facts["known_count"], f"{facts['units']:,} units ({facts['level']})"
    kinds = "; ".join(f"{cells:,} by {name}" for name, cells in facts["settled"].items())
    known, one_more = (
        [
            f"{number(row[f'expected_{n}'])} +- {row[f'error_{n}']:.3g}"
            for row in facts["exceedance"]
        ]
        for n in ("known", "one_more")
    )
    sentences = [
        f"{row['cells']:,} of {facts['cells']:,} noisy counts make it more than "
        f"{row['risk_ratio']:g} times as probable that one more person is in the cell, where noise "
        f"alone makes it {a} if nobody is (a true count of {k}) and {b} if somebody always is. "
        f"Of them {row['proved_empty']:,} are proved empty by constraints; with constraints "
        f"{row['cells_with_constraints']:,} are above."
        for row, a, b in zip(facts["exceedance"], known, one_more, strict=True)
    ]
    sentences.append(f"Cells whose count constraints fix: {kinds or 'none'}.")
    if facts["combine"]:
        sentences.append(f"Several noisy values add up in {facts['strengthened']:,} cells.")
    if facts["contradicted"]:
        sentences.append(
            f"In {facts['contradicted']:,} cells constraints say that more than {k + 1} are there."
        )
    if facts["ignored"]:
        unused = ", ".join(facts["ignored"])
        sentences.append(f"Constraints with recodes not known are not used: {unused}.")
    without = f"; {facts['unmeasured']:,} more have no noisy answer" if facts["unmeasured"] else ""
    sentences.append(f"{units}, {facts['query']}, prior {facts['prior']:g}{without}.")
    return sentences


def measurements_page(facts: Row, config: Row) -> bytes:
    """Return the report of the risk of every cell of noisy measurements."""
    k, rows = facts["known_count"], facts["exceedance"]
    drawn = plot_noisy_measurements(pd.DataFrame(facts["curve"]), [r["risk_ratio"] for r in rows])
    return findings(
        "Noisy measurements: what each noisy count says about one more person",
        measurement_sentences(facts),
        source=_source(config, "posteriors"),
        settings=config,
        figures=[drawing(drawn, "Cells above a risk ratio, and what noise alone would give.")],
        tables=[table(pd.DataFrame(rows), "Cells above each risk ratio")],
        words={
            "risk ratio": "the probability that one more person than is known is in the cell, "
            "after the release over before it. 1 says that nothing was learned.",
            "known count": f"people of the cell whom the adversary knows: {k}.",
        },
    )


def counts_page(facts: Row, config: Row) -> bytes:
    """Return the report of the posterior of counts of noisy measurements."""
    rows = [
        {
            "level": level,
            "counts": size,
            "known exactly": facts["exact"][level],
            "standard deviation": facts["sd"][level],
            "of its own noise": facts["noise_sd"][level] or np.nan,
        }
        for level, size in facts["counts"].items()
    ]
    drawn = draw_numbers(facts["counts"], "counts")
    return findings(
        "Noisy measurements: what all levels together say about each count",
        [
            f"{sum(facts['counts'].values()):,} counts of {facts['query']} have a posterior, from "
            f"{facts['top']} to {facts['level']}.",
            *(
                f"{row['level']}: the standard deviation is {number(row['standard deviation'])}, "
                f"that of its own noise {number(row['of its own noise'])}."
                for row in rows
            ),
        ],
        source=_source(config, "posteriors"),
        settings=config,
        figures=[drawing(drawn, "Counts that have a posterior, by level.")],
        tables=[table(pd.DataFrame(rows), "Counts of each level")],
    )


def release_page(release: Row, version: str) -> bytes:
    """Return the report of a release, of what may be published alone."""
    tables = pd.DataFrame(release["tables"])
    exact, every = int(tables.loc[tables["exact"], "cells"].sum()), int(tables["cells"].sum())
    alike = tables.groupby(["level", "is"], sort=False).agg(
        tables=("table", ", ".join), counts=("cells", "sum"), withheld=("withheld", "sum")
    )
    laws = tables.groupby(["is"], sort=False)["cells"].sum()
    sizes = tables.groupby("level", sort=False)["cells"].sum()
    drawn = draw_numbers({str(name): int(n) for name, n in sizes.items()}, "counts")
    return findings(
        "Release: what is published, and how it is protected",
        [
            f"{every:,} counts in {len(tables):,} tables are released, {exact:,} of them exactly; "
            f"the protection is {release['mechanism']}.",
            *(f"{n:,} of them: {law}." for law, n in laws.items()),
            *(f"{name.replace('_', ' ')}: {v:.6g}." for name, v in release["diagnostics"].items()),
        ],
        source=f"Made by bayesrisk {version} from the release alone.",
        settings={name: release[name] for name in ("mechanism", "parameters", "places")},
        figures=[drawing(drawn, "Counts that are released, by level.")],
        tables=[table(alike.reset_index().rename(columns={"is": "published"}), "Tables")],
        warning="A simulation: whoever guesses the seed takes the protection off."
        if release["simulation"]
        else "",
    )
