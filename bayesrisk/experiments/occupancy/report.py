"""Files of the study of occupancy: households and samples in, figures out."""

from pathlib import Path
from typing import Any

import pandas as pd

from bayesrisk import _files
from bayesrisk._files.parquet import opened, read_frame
from bayesrisk.exceptions import DataError
from bayesrisk.experiments.occupancy.pooled import OccupancyResults
from bayesrisk.experiments.runs.folder import CONFIDENTIAL
from bayesrisk.tables import Microdata, Records, Schema

__all__ = ["column_names", "read_households", "read_sample", "write_occupancy_figures"]

_OCCUPANCY = "household-occupancy"
_TOTALS = ("blocks",)  # figures of totals over all blocks
_HUD = ("children", "bedrooms", "subsidised")


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
