"""Files of the occupancy attack: households or tables in, frames and figures out."""

import io
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from bayesrisk.exceptions import DataError
from bayesrisk.experiments.occupancy_run import OccupancyStudy
from bayesrisk.experiments.parts import write_atomically
from bayesrisk.reconstruction import (
    OccupancyDetection,
    detect_occupancy,
    occupancy_statistics,
)
from bayesrisk.tables import PublishedTables, Records, schema

__all__ = ["detect_in_tables", "read_households", "read_sample", "write_occupancy_figures"]

_SCHEMAS = {"household-occupancy": "race_ethnicity", "household-dhc": "tenure"}


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
    columns = _columns(path)
    for name, mark in _SCHEMAS.items():
        if mark in columns and {"bedrooms", "subsidised", "children"} <= set(columns):
            return Records.read(path, schema=schema(name))
    raise DataError(
        f"{path}: must have columns block, size, race_ethnicity, children, bedrooms, subsidised "
        f"(or those of household-dhc), got {', '.join(columns)}"
    )


def read_sample(path: str | Path) -> pd.DataFrame:
    """Read a public sample of households from a Parquet file.

    Parameters
    ----------
    path : path-like
        File with columns ``size``, ``race_ethnicity``, ``children`` and perhaps ``weight``.

    Returns
    -------
    pandas.DataFrame
        Those columns.

    Raises
    ------
    DataError
        If the file cannot be read, or lacks a column.
    """
    columns = _columns(path)
    wanted = ["size", "race_ethnicity", "children"]
    for name in wanted:
        if name not in columns:
            raise DataError(f"{path}: must have a column {name!r}, got {', '.join(columns)}")
    more = ["weight"] if "weight" in columns else []
    return pd.read_parquet(path, columns=[*wanted, *more])


def _columns(path: str | Path) -> list[str]:
    if not Path(path).is_file():
        raise DataError(f"{path}: no such file")
    try:
        return list(pq.read_schema(path).names)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: must be a Parquet file: {error}") from error


def detect_in_tables(
    tables: str | Path,
    output: str | Path,
    *,
    level: str,
    hud: str,
    open_end: bool,
    time_limit: float | None,
) -> OccupancyDetection:
    """Read published tables, and write which blocks must hold a violation.

    Parameters
    ----------
    tables : path-like
        Folder of tables of the workload ``household-occupancy``, or of a release.
    output : path-like
        Folder for ``blocks.parquet``; it is made.
    level, hud
        As for :func:`occupancy_statistics`.
    open_end, time_limit
        As for :func:`detect_occupancy`.

    Returns
    -------
    OccupancyDetection
        What was written.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or a table is missing.
    DataError
        If the tables cannot be read.
    OutputError
        If the file cannot be written.
    """
    published = PublishedTables.read(tables)
    blocks = occupancy_statistics(published, level=level, hud=hud)
    found = detect_occupancy(blocks, open_end=open_end, time_limit=time_limit)
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    data = io.BytesIO()
    found.to_frame().to_parquet(data, index=False)
    write_atomically(folder / "blocks.parquet", data.getvalue())
    return found


def write_occupancy_figures(study: OccupancyStudy, folder: str | Path) -> list[Path]:
    """Draw every figure of a study.

    Parameters
    ----------
    study : OccupancyStudy
        Results.
    folder : path-like
        Where PNG and SVG files go; it is made.

    Returns
    -------
    list of pathlib.Path
        The files.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    from bayesrisk import plotting  # slow to import

    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    figures = {"blocks": plotting.plot_occupancy_blocks(study.table)}
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
        for draft in plotting.save_figure(figure, path / f".{name}"):
            final = draft.with_name(draft.name[1:])
            written.append(draft.replace(final))
    return written
