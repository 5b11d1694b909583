"""Text and HTML of results: the answer first, at most ten lines; in a notebook a small table.

A class decorated with :func:`displayed` prints its method ``_answer``, one sentence a line. Without
that method it prints a line of its fields, with arrays as shape and range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from html import escape
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bayesrisk._base.frames import pandas as pd

if TYPE_CHECKING:
    import pyarrow as pa

_LINES, _WIDTH, _ROWS = 10, 100, 8
_Class = TypeVar("_Class", bound=type)


def number(value: Any) -> str:
    """Return a number with four significant digits, whole numbers with all of theirs."""
    if isinstance(value, (int, np.integer, np.bool_)):
        return f"{int(value):,}"
    return f"{float(value):.4g}"


def span(values: object) -> str:
    """Return a number, or the least and the greatest of several."""
    array = np.asarray(values)
    numbers = array[~np.isnan(array)] if array.dtype.kind == "f" else array.ravel()
    if not numbers.size:
        return "unknown" if array.size else "none"
    low, high = number(numbers.min()), number(numbers.max())
    return low if low == high else f"{low} to {high}"


#: Numbers of each unit that a time is told in, and the seconds of one.
_TIMES = (
    ("second", 1.0, (10, 20, 30, 40, 50)),
    ("minute", 60.0, (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 35, 40, 45, 50)),
    ("hour", 3600.0, range(1, 100)),
)


def spoken(seconds: float) -> str:
    """Return a time as people say it: the nearest of few."""
    if seconds < 7.0:
        return "a few seconds" if seconds >= 1.0 else "less than a second"
    steps = [(n * size, n, unit) for unit, size, numbers in _TIMES for n in numbers]
    _, n, unit = min(steps, key=lambda step: abs(step[0] - seconds))
    return f"about {n} {unit}s" if n > 1 else f"about {'an' if unit == 'hour' else 'a'} {unit}"


def _array(value: np.ndarray[Any, Any]) -> str:
    if not value.ndim and value.dtype.kind in "iufb":
        return number(value[()])
    text = "array of " + " x ".join(f"{n:,}" for n in value.shape)
    return f"{span(value)} ({text})" if value.dtype.kind in "iuf" and value.size else text


def short(value: object) -> str:
    """Return a value in a few words on one line."""
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, (bool, type(None))):
        return str(value)
    if isinstance(value, (int, float, np.number)):
        return number(value)
    if hasattr(value, "shape") and len(getattr(value, "shape", ())) == 2:  # frames, sparse matrices
        return f"{value.shape[0]:,} rows x {value.shape[1]:,} columns"
    if isinstance(value, (Mapping, tuple, list, frozenset, set)) and len(value) > 4:
        return f"{len(value):,} entries"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {short(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(short(item) for item in value) + ")"
    return _line(repr(value), 72)


def several(names: Iterable[object], most: int = 8) -> str:
    """Return names separated by commas; of many names, the first ones and their number."""
    listing = [str(name) for name in names]
    rest = len(listing) - most
    return ", ".join(listing[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def _line(text: str, width: int) -> str:
    """Return text on one line, without characters that have no glyph."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return shorten(plain, width, placeholder=" …") if " " in plain else plain[:width]


def _sentences(result: object) -> list[str]:
    answer: list[str] = result._answer() if hasattr(result, "_answer") else []
    return [line for sentence in answer for line in wrap(_line(sentence, 3 * _WIDTH), _WIDTH - 2)]


def _fields(result: Any) -> list[tuple[str, str]]:
    names = [f.name for f in fields(result) if f.repr and f.name != "version"]
    return [(name, short(getattr(result, name))) for name in names]


def _text(result: object) -> str:
    name = type(result).__name__
    lines = _sentences(result)
    if lines:
        lines = [f"{name}:", *(f"  {line}" for line in lines)]
    else:
        pairs = ", ".join(f"{key}={value}" for key, value in _fields(result))
        lines = wrap(f"{name}({pairs})", _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], f"  and {len(lines) - _LINES + 1} more lines"]
    return "\n".join(lines)


def html(result: Any) -> str:
    """Return the HTML of a result in a notebook: its sentences, or its fields, and first rows."""
    name, sentences = escape(type(result).__name__), _sentences(result)
    if not sentences:
        rows = "".join(
            f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>"
            for key, value in _fields(result)
        )
        return f"<div><strong>{name}</strong><table>{rows}</table></div>"
    frame = result._shown_frame() if hasattr(result, "_shown_frame") else None
    return f"<div><strong>{name}</strong>{page(result._answer(), frame)}</div>"


def page(lines: Sequence[str], frame: Any = None, *, whole: str = "to_frame()") -> str:
    """Return lines and the first rows of a frame as HTML; ``whole`` tells how to get all rows."""
    paragraph = f"<p>{'<br>'.join(map(escape, lines))}</p>"
    if frame is None:
        return paragraph
    head = frame.head(_ROWS).to_html(
        index=False, escape=True, border=0, float_format="{:.4g}".format
    )
    left = len(frame) - _ROWS
    more = f"<p>and {left:,} more rows: <code>{escape(whole)}</code></p>" if left > 0 else ""
    return f"{paragraph}{head}{more}"


def arrow_table(frame: pd.DataFrame) -> pa.Table:
    """Return a frame as a table; all texts of one type, also where there are none."""
    import pyarrow as pa  # slow to import

    table = pa.Table.from_pandas(frame, preserve_index=False)
    fields = []
    for field in table.schema:
        text = pa.types.is_large_string(field.type) or pa.types.is_null(field.type)
        fields.append(field.with_type(pa.string()) if text else field)
    return table.cast(pa.schema(fields))


class Tabular:
    """Results with a frame, which other libraries read as Arrow: ``polars.DataFrame(result)``."""

    def to_arrow(self) -> pa.Table:
        """Return the rows of ``to_frame()`` as a table of Arrow; a named index is a column."""
        frame: pd.DataFrame = self.to_frame()  # type: ignore[attr-defined]
        named = [name for name in frame.index.names if name is not None]
        return arrow_table(frame.reset_index(named)).replace_schema_metadata(None)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as a stream of the Arrow PyCapsule interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def displayed(cls: _Class) -> _Class:
    """Let a class of results print its answer, as text and in a notebook."""
    cls.__repr__ = _text  # type: ignore[method-assign,assignment]
    cls._repr_html_ = html  # type: ignore[attr-defined]
    return cls
