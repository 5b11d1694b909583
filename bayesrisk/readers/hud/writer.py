"""Writing frames in the form of HUD's Picture of Subsidized Households, for small samples."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pyarrow as pa

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError
from bayesrisk.readers.hud import _columns as known
from bayesrisk.readers.hud._values import NO_PLACE
from bayesrisk.readers.text.write import write_table


def write_hud(frame: pd.DataFrame | Iterable[pd.DataFrame], path: str | Path) -> None:
    """Write frames in the form of HUD's Picture of Subsidized Households.

    Parameters
    ----------
    frame : pandas.DataFrame or iterable of them
        Columns as :func:`iter_hud` yields; bounds of counts are left out, missing values get the
        code of their reason.
    path : path-like
        CSV file to be made; it must not exist.

    Raises
    ------
    ArgumentError
        If the path does not end in ``.csv``, or there is no frame.
    DataError
        If a column is missing or there twice, in any of the frames.
    OutputError
        If the file exists or cannot be written.

    Examples
    --------
    >>> from bayesrisk import ArgumentError
    >>> from bayesrisk.readers import write_hud
    >>> try:
    ...     write_hud([], "TRACT_2020.xlsx")
    ... except ArgumentError as error:
    ...     print(error)
    path must end in .csv, got 'TRACT_2020.xlsx'
    """
    if check.path(path, "path").suffix.lower() != ".csv":
        raise ArgumentError(f"path must end in .csv, got {shown(str(path))}")
    frames = [frame] if isinstance(frame, pd.DataFrame) else check.items(frame, "frame")
    if not frames:
        raise ArgumentError("frame must be at least one data frame, got none")
    held = [check.text(name, "frame: a column") for name in check.frame(frames[0], "frame")]
    names = [name for name in held if not known.is_derived(name)]
    reasons = [f"{name}_reason" for name in names if not known.is_text(name)]
    for piece in frames:
        check.frame(piece, "frame", (*names, *reasons))
    tables = (pa.table({n: _shown(piece, n) for n in names}) for piece in frames)
    write_table(path, names, tables, quotes=True)


def _shown(frame: pd.DataFrame, name: str) -> pa.Array:
    """Return a column as text, with the codes of what is missing."""
    if known.is_text(name):
        missing = NO_PLACE if name == "code" else ""
        return pa.array(frame[name].fillna(missing).astype(str).tolist(), pa.string())
    codes = {text: str(code) for code, text in known.REASONS.items()}
    reason = frame[f"{name}_reason"].tolist()
    texts = [
        codes.get(why, "") if pd.isna(value) else f"{float(value):.15g}"
        for value, why in zip(frame[name].tolist(), reason, strict=True)
    ]
    return pa.array(texts, pa.string())
