"""Files of the study of occupancy: households and samples in, figures and a report out."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from bayesrisk import _files
from bayesrisk._files.parquet import opened, read_frame
from bayesrisk.exceptions import DataError
from bayesrisk.experiments.occupancy.study import (
    PROTECTION_WORDS,
    OccupancyConfig,
    OccupancyResults,
)
from bayesrisk.experiments.runs.folder import CONFIDENTIAL
from bayesrisk.tables import Microdata, Records, Schema

_OCCUPANCY = "household-occupancy"
_TOTALS = ("blocks",)  # figures of totals over all blocks
_HUD = ("children", "bedrooms", "subsidised")
#: Columns of the tables in the page, and what the reader calls them.
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


def read_households(path: str | Path) -> Records:
    """Read confidential households from a Parquet file.

    Parameters
    ----------
    path : path-like
        File with the columns of schema ``household-occupancy``, or of ``household-dhc`` with
        ``children``, ``bedrooms`` and ``subsidised``, such as ``bayesrisk simulate`` writes.

    Returns
    -------
    Records
        The households.

    Raises
    ------
    DataError
        If the file cannot be read, or lacks a column.
    """
    columns = column_names(path)
    if _is_simulated(columns):
        return Records.read(path, schema=Schema.named("household-dhc"))
    if {"race_ethnicity", *_HUD} <= set(columns):
        return Records.read(path, schema=Schema.named(_OCCUPANCY))
    raise DataError(
        f"{path}: must have columns block, size, race_ethnicity, children, bedrooms, subsidised "
        f"(or those of household-dhc), got {', '.join(columns)}"
    )


def read_sample(path: str | Path) -> pd.DataFrame:
    """Read a public sample of households from a Parquet file.

    Parameters
    ----------
    path : path-like
        File with columns ``size``, ``race_ethnicity``, ``children`` and perhaps ``weight``; or of
        households such as ``bayesrisk simulate`` writes.

    Returns
    -------
    pandas.DataFrame
        Those columns.

    Raises
    ------
    DataError
        If the file cannot be read, or lacks a column.
    """
    columns = column_names(path)
    wanted = ["size", "race_ethnicity", "children"]
    if "race_ethnicity" not in columns and _is_simulated(columns):
        homes = Microdata(None, read_households(path), None).for_schema(Schema.named(_OCCUPANCY))
        return homes.to_frame()[wanted]
    for name in wanted:
        if name not in columns:
            raise DataError(f"{path}: must have a column {name!r}, got {', '.join(columns)}")
    more = ["weight"] if "weight" in columns else []
    return read_frame(Path(path), dict.fromkeys([*wanted, *more], ("number",)))


def _is_simulated(columns: list[str]) -> bool:
    """Return whether these are columns of ``household-dhc``, and HUD's."""
    return {"tenure", *_HUD} <= set(columns)


def column_names(path: str | Path) -> list[str]:
    """Return the names of the columns of a Parquet file."""
    if Path(path).is_dir():
        raise DataError(f"{path}: must be a file of households, got a folder without them")
    if not Path(path).is_file():
        raise DataError(f"{path}: no such file")
    with opened(Path(path)) as (_, columns):
        return list(columns.names)


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

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    from bayesrisk import plotting  # slow to import

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
    for protection in study.config.protections:
        figures[f"counts-{protection}"] = plotting.plot_occupancy_counts(
            study.blocks, protection=protection
        )
    if len(study.variability):
        figures["variability"] = plotting.plot_occupancy_variability(study.variability)
    written: list[Path] = []
    for name, figure in figures.items():
        private = name not in _TOTALS
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

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    from bayesrisk import plotting  # slow to import
    from bayesrisk.experiments.runs import page as html

    path = Path(folder)
    write_occupancy_figures(study, path / "figures")
    drawn = plotting.plot_occupancy_blocks(study.table)
    caption = (
        "Precision and recall of flagged blocks under each protection; intervals of "
        f"{study.config.confidence:.0%}; a blind guess beside them."
    )
    page = html.render(
        "occupancy.html",
        title="Blocks with households above the occupancy limit",
        confidence=f"{study.config.confidence:.0%}",
        rows=study.table[study.table["infeasible_as"] == "apart"].to_dict(orient="records"),
        words=PROTECTION_WORDS,
        parts=study.config.parts,
        figures=[html.figure(drawn, path / "figures" / "blocks", caption)],
        tables=[
            html.table(_totals(study.table), "Flagged blocks, " + _together(study.config)),
            html.table(html.rounded(_plain(study.ends)), "Linkage of all flagged households"),
        ],
        source=f"Configuration {study.config.digest}.",
        settings_title="The study",
        settings=json.dumps(study.config.to_dict(), indent=2),
    )
    _files.write_bytes(path / "report.html", page.encode())
    return path / "report.html"


def _together(config: OccupancyConfig) -> str:
    """Return what the totals are totals of."""
    if config.parts > 1:
        return f"all {config.parts:,} places together"
    populations = len(config.seeds)
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
