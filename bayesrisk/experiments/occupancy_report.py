"""Figures and the page of a study of occupancy violations: totals, and no single block."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from bayesrisk import _files, plotting
from bayesrisk.experiments.occupancy_study import PROTECTION_WORDS, OccupancyResults
from bayesrisk.experiments.runs import page as html
from bayesrisk.experiments.runs.folder import CONFIDENTIAL, digest_of

_PUBLIC_FIGURE = "blocks"  # of totals over all blocks
#: Columns of the tables in the page, and their heads there.
_BLOCKS = {
    "protection": "protection",
    "infeasible_as": "blocks that nothing fits are read as",
    "blocks": "blocks",
    "violating": "with a violation",
    "putative": "flagged",
    "confirmed": "flagged and right",
    "infeasible": "nothing fits",
    "undecided": "undecided",
    "precision": "precision",
    "recall": "recall",
}


def write_occupancy_figures(study: OccupancyResults, folder: str | Path) -> list[Path]:
    """Draw every figure of a study.

    Parameters
    ----------
    study : OccupancyResults
        Results.
    folder : path-like
        Where PNG and SVG files go; it is made.  Those that show single blocks, or entries of a
        ranking, go to ``confidential/`` in it, which only its owner may read.

    Returns
    -------
    list of pathlib.Path
        The files.
    """
    path = Path(folder)
    _files.make_folder(path)
    _files.make_folder(path / CONFIDENTIAL, private=True)
    figures: dict[str, Any] = {"blocks": plotting.plot_occupancy_blocks(study.table)}
    if len(study.curves):
        shown = study.curves[["key", "unique"]].drop_duplicates()
        for key, unique in shown.itertuples(index=False):
            name = f"linkage-{key}-{'unique' if unique else 'all'}"
            for against in ("recall", "k"):
                figures[f"{name}-{against}"] = plotting.plot_occupancy_linkage(
                    study.curves, key=key, unique=unique, against=against
                )
    for protection in study.config["protections"]:
        figures[f"counts-{protection}"] = plotting.plot_occupancy_counts(
            study.blocks, protection=protection
        )
    if len(study.variability):
        figures["variability"] = plotting.plot_occupancy_variability(study.variability)
    written: list[Path] = []
    for name, figure in figures.items():
        private = name != _PUBLIC_FIGURE
        place = path / CONFIDENTIAL if private else path
        written += plotting.save_figure(figure, place / name, private=private)
    return written


def write_occupancy_report(study: OccupancyResults, folder: str | Path) -> Path:
    """Write the figures of a study, and ``report.html`` of its totals over all blocks.

    Parameters
    ----------
    study : OccupancyResults
        Results.
    folder : path-like
        The folder of the study; figures go to its ``figures``.

    Returns
    -------
    pathlib.Path
        The page; it needs no other file and no network.  It shows no single block: figures that do
        are in ``figures/confidential``.
    """
    path = Path(folder)
    write_occupancy_figures(study, path / "figures")
    confidence = f"{study.config['confidence']:.0%}"
    drawn = plotting.plot_occupancy_blocks(study.table)
    caption = (
        "Precision and recall of flagged blocks under each protection; intervals of "
        f"{confidence}; a blind guess beside them."
    )
    page = html.render(
        "occupancy.html",
        title="Blocks with households above the occupancy limit",
        confidence=confidence,
        rows=study.table[study.table["infeasible_as"] == "apart"].to_dict(orient="records"),
        words=PROTECTION_WORDS,
        parts=study.config["parts"],
        figures=[html.figure(drawn, path / "figures" / "blocks", caption)],
        tables=[
            html.table(_totals(study.table), "Flagged blocks, " + _pooled_label(study.config)),
            html.table(html.rounded(_plain(study.ends)), "Linkage of all flagged households"),
        ],
        source=f"Configuration {digest_of(study.config)}.",
        settings_title="The study",
        settings=json.dumps(study.config, indent=2),
    )
    _files.write_bytes(path / "report.html", page.encode())
    return path / "report.html"


def _pooled_label(config: Mapping[str, Any]) -> str:
    """Return a label for the places or populations that the totals are of."""
    if config["parts"] > 1:
        return f"all {config['parts']:,} places together"
    populations = len(config["seeds"])
    return "one population" if populations == 1 else f"all {populations:,} populations together"


def _plain(ends: pd.DataFrame) -> pd.DataFrame:
    """Return the ends of the curves with truth values as words, and counts as counts."""
    words = ends["unique"].map({True: "yes", False: "no"}).astype("str")
    expected = {
        name: ends[name].map("{:.1f}".format).astype("str") for name in ("putative", "hits")
    }
    return ends.assign(unique=words, **expected)


def _totals(table: pd.DataFrame) -> pd.DataFrame:
    """Return the totals as the page shows them: rates with their intervals and blind guesses."""
    shown = table.assign(
        **{
            name: [
                f"{value:.3f} ({low:.3f} to {high:.3f}); blind {blind:.3f}"
                for value, low, high, blind in table[
                    [name, f"{name}_lower", f"{name}_upper", f"{name}_baseline"]
                ].itertuples(index=False)
            ]
            for name in ("precision", "recall")
        }
    )
    return shown[list(_BLOCKS)].rename(columns=_BLOCKS)
