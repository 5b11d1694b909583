"""Schemas and workloads of your own, from short TOML files or a data frame, as plain values.

Results are in the grammar of the definition files. The caller looks up names of other schemas,
geographies and attributes.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

import numpy as np
import pandas as pd
from pydantic import Discriminator, Field, Tag, ValidationError, model_validator

from bayesrisk._base import validation as check
from bayesrisk._base.disk.limits import Section, Several, as_config_error, refuse
from bayesrisk._base.disk.text import read_toml
from bayesrisk.exceptions import ArgumentError, DataError, quote

#: Codes of an attribute that is made from a column: beyond, it is a number of its own.
_MOST_CODES = 10_000
_LONGEST = 200
_CODE = re.compile(r"[+-]?[0-9]{1,18}")
_DATE = re.compile(r"[0-9]{1,4}([-./])[0-9]{1,2}\1[0-9]{2,4}([T ][0-9:.]+)?")
_File = TypeVar("_File", bound=Section)


_Text = Annotated[str, Field(min_length=1, max_length=_LONGEST, pattern=r"\S", strict=True)]
_Texts = Annotated[list[_Text], Several()]


class _Place(Section):
    """A hierarchy of places, coarse to fine, with the digits of their codes."""

    name: _Text = "own"
    levels: _Texts
    widths: Annotated[list[Annotated[int, Field(ge=0, le=1000, strict=True)]], Several()]
    names: dict[str, str] = Field(default_factory=dict)


_Geography = Annotated[
    Annotated[_Text, Tag("<name>")] | Annotated[_Place, Tag("<place>")],
    Discriminator(lambda value: "<name>" if isinstance(value, str) else "<place>"),
]


class _Attribute(Section):
    """A coded column: labels, or a number of codes, or both."""

    name: _Text
    size: Annotated[int, Field(ge=1, lt=2**31, strict=True)] | None = None
    first: Annotated[int, Field(ge=-(2**31), lt=2**31, strict=True)] = 0
    labels: _Texts | None = None
    cuts: list[float] | None = None

    @model_validator(mode="after")
    def _codes_are_known(self) -> Self:
        labels = self.labels
        if labels is None and self.cuts:
            return self
        if labels is None:
            if self.size is None:
                raise refuse("given where there are no labels", key=".size", value=None)
            return self
        if self.size not in (None, len(labels)):
            raise refuse(f"{len(labels)}, the number of labels", key=".size", value=self.size)
        if problem := ambiguous(labels, self.first):
            raise refuse(problem[0], key=".labels", value=problem[1])
        return self

    def values(self) -> dict[str, Any]:
        """Return the attribute in the grammar of the definition files."""
        labels, cuts = self.labels or [], self.cuts or []
        if cuts and not labels:
            labels = _group_labels(cuts, whole=all(cut.is_integer() for cut in cuts))
        if cuts:
            return {"name": self.name, "size": len(labels), "labels": labels, "cuts": cuts}
        size = len(labels) if self.size is None else self.size
        return {"name": self.name, "size": size, "first": self.first, "labels": labels}


class _SchemaFile(Section):
    """A schema: the attributes of a record, and its geography."""

    name: _Text
    geography: _Geography | None = None
    attributes: Annotated[list[_Attribute], Several()]


class _TableEntry(Section):
    """A table in the grammar of :mod:`bayesrisk.tables._grammar`, which checks it."""

    name: _Text | None = None
    levels: _Texts | None = None
    cross: list[Any] = Field(default_factory=list)
    where: Any = None
    weight: Any = None
    cells: Any = None
    parts: Any = None

    @model_validator(mode="after")
    def _is_named(self) -> Self:
        stated = self.model_fields_set
        if self.name is None and stated & {"where", "weight", "parts"}:
            raise refuse("given where a table has where, weight or parts", key=".name", value=None)
        return self


class _WorkloadFile(Section):
    """A workload: the tables that are counted."""

    schema_: _Text | None = Field(None, alias="schema")
    levels: _Texts | None = None
    recodes: Any = None
    tables: Annotated[list[_TableEntry], Several()]


def ambiguous(labels: Sequence[str], first: int) -> tuple[str, str] | None:
    """Return the reason why a label is like a code or another label, and the label; or None."""
    distinct = set[str]()
    for code, label in enumerate(labels, first):
        if _CODE.fullmatch(label) and int(label) != code:
            return f"no number but the code itself, {code}: a number in a file is a code", label
        if label in distinct:
            return "different", label
        distinct.add(label)
    return None


def read_schema(file: Path) -> dict[str, Any]:
    """Return the schema in a file; its geography may be a name or None."""
    read = _validated(_SchemaFile, file)
    attributes = [attribute.values() for attribute in read.attributes]
    place = read.geography.model_dump() if isinstance(read.geography, _Place) else read.geography
    return {"name": read.name, "geography": place, "attributes": attributes}


def read_workload(file: Path) -> dict[str, Any]:
    """Return the workload in a file; ``schema`` is the name or path that it says, or None."""
    read = _validated(_WorkloadFile, file)
    tables = [table.model_dump(exclude_unset=True) for table in read.tables]
    values: dict[str, Any] = {"schema": read.schema_, "levels": read.levels, "tables": tables}
    return values | ({} if read.recodes is None else {"recodes": read.recodes})


def _validated(kind: type[_File], file: Path) -> _File:
    try:
        return kind.model_validate(read_toml(file))
    except ValidationError as error:
        raise as_config_error(error, str(file)) from error


#: Different whole numbers that stay codes, how far apart they may be, and steps between quantiles.
_MOST_NUMBERS, _FAR, _STEPS = 20, 100, 9
_MISSING = "missing"


def frame_columns(frame: pd.DataFrame, levels: Sequence[str]) -> list[str]:
    """Return the columns of a frame that are no place and do not identify."""
    return [str(name) for name in frame.columns if name not in levels and not _is_key(frame[name])]


def _is_key(column: pd.Series) -> bool:
    """Return whether a column of text or whole numbers has another value in each of many rows."""
    kinds = pd.api.types
    nominal = kinds.is_integer_dtype(column.dtype) or kinds.is_string_dtype(column.dtype)
    return bool(nominal and len(column) >= _MOST_NUMBERS and column.is_unique)


def frame_places(
    frame: pd.DataFrame, columns: Sequence[str]
) -> tuple[tuple[str, ...], tuple[int, ...], tuple[tuple[str, str], ...]]:
    """Return levels, widths and names of the places that columns name, coarse to fine."""
    for name in columns:
        check.refuse_row(frame[name].isna(), frame[name], "frame", name, "be a place")
    places = frame[list(columns)].astype(str).drop_duplicates().sort_values(list(columns))
    twice = places[places[columns[-1]].duplicated()]
    if len(twice):
        raise DataError(
            f"frame: column {columns[-1]!r}: places must lie in one {columns[-2]!r} each, got "
            f"{quote(str(twice[columns[-1]].iloc[0]))} in several"
        )
    codes, widths, names = pd.Series("", places.index, dtype=object), [0], dict[str, str]()
    for name in columns:
        inside = places[name].groupby(codes.to_numpy()).transform(lambda g: pd.factorize(g)[0])
        width = len(str(int(inside.max()) + 1))
        # No name may look like the code of another place.
        while any(n.isdigit() and len(n) == widths[-1] + width for n in places[name]):
            width += 1
        codes = codes + (inside.astype(int) + 1).astype(str).str.zfill(width)
        names |= dict(zip(codes, places[name], strict=True))
        widths.append(widths[-1] + width)
    return ("all", *columns), tuple(widths), tuple(sorted(names.items()))


def frame_attributes(
    frame: pd.DataFrame, names: Sequence[str], cuts: Mapping[str, Sequence[float]]
) -> list[dict[str, Any]]:
    """Return attributes for the values in the columns of a frame."""
    return [_column_attribute(check.groups_as_text(frame[n]), str(n), cuts.get(n)) for n in names]


def _column_attribute(column: pd.Series, name: str, cuts: Sequence[float] | None) -> dict[str, Any]:
    missing = [_MISSING] * bool(column.isna().any())
    column = column.dropna()
    if pd.api.types.is_numeric_dtype(column.dtype) and column.dtype.kind != "c":
        return _number_attribute(column, name, cuts, missing)
    if cuts is not None:
        raise DataError(f"frame: column {name!r}: must hold numbers to have cuts, got text")
    if isinstance(column.dtype, pd.CategoricalDtype):
        labels = column.cat.categories.tolist()
    else:
        labels = column.drop_duplicates().tolist()
    for label in labels:
        if isinstance(label, date):
            raise DataError(
                f"frame: column {name!r}: must hold no dates, got {quote(str(label))}: "
                "years are frame[name].dt.year"
            )
        if not isinstance(label, str) or not label:
            advice = "; other values become groups with pandas.cut"
            if isinstance(label, Real):
                advice = " as an object: frame.infer_objects() gives columns of numbers their type"
            rule = f"must hold numbers or text, got {quote(label)}"
            raise DataError(f"frame: column {name!r}: {rule}", advice=advice)
    if not isinstance(column.dtype, pd.CategoricalDtype):
        labels.sort()
        if len(labels) > _MOST_NUMBERS and all(map(_DATE.fullmatch, labels)):
            raise DataError(
                f"frame: column {name!r}: must hold no dates, got {quote(labels[0])} and "
                f"{len(labels) - 1} more: write years or months, such as 2021 or 2021-04, or name "
                "the other columns as columns"
            )
    labels += [label for label in missing if label not in labels]
    if len(labels) > _MOST_CODES:
        raise DataError(
            f"frame: column {name!r}: must have at most {_MOST_CODES} codes, got {len(labels)}; "
            "leave it out with columns=, or group its values"
        )
    if problem := ambiguous(labels, 0):
        raise DataError(
            f"frame: column {name!r}: labels must be {problem[0]}, got {quote(problem[1])}; "
            "numbers that came as text become numbers with pandas.to_numeric"
        )
    return {"name": name, "size": max(len(labels), 1), "labels": labels}


def _number_attribute(
    column: pd.Series, name: str, cuts: Sequence[float] | None, missing: list[str]
) -> dict[str, Any]:
    values = np.unique(column.to_numpy(np.float64))
    whole = bool((values == np.rint(values)).all())
    first, last = (int(values[0]), int(values[-1])) if whole and len(values) else (0, 0)
    coded = whole and bool(missing or pd.api.types.is_integer_dtype(column.dtype))
    if cuts is None and coded and len(values) <= _MOST_NUMBERS and last - first < _FAR:
        codes = range(first, last + 1)
        labels = [*map(str, codes), *missing] if missing else []
        return {"name": name, "size": len(codes) + len(missing), "first": first, "labels": labels}
    if not np.isfinite(values).all():
        raise DataError(f"frame: column {name!r}: must hold finite numbers, got infinity")
    if cuts is None:
        edges = usual_cuts(column.to_numpy(np.float64))
    else:
        edges = check.real_array(check.items(cuts, f"cuts[{name!r}]"), f"cuts[{name!r}]").tolist()
        if edges != sorted({*edges}):
            order = ", ".join(f"{edge:g}" for edge in sorted({*edges}))
            raise ArgumentError(f"cuts[{name!r}]", f"must increase: write [{order}]", got=edges)
    whole = whole and all(cut.is_integer() for cut in edges)
    labels = [*_group_labels(edges, whole=whole), *missing]
    return {"name": name, "size": len(labels), "labels": labels, "cuts": edges}


def usual_cuts(values: np.ndarray) -> list[float]:
    """Return the round numbers that cut numbers into groups (:meth:`Schema.from_frame`)."""
    low, high = np.quantile(values, [0.05, 0.95])
    if low == high:
        low, high = values.min(), values.max()
    least = Decimal(repr(float(high - low))) / _STEPS
    unit = Decimal(1).scaleb(least.adjusted())
    step = next(unit * size for size in (1, 2, 5, 10) if unit * size >= least)
    if (values == np.rint(values)).all():
        step = max(step, Decimal(2))  # a group of one number would look like a code
    first, last = (int(np.floor(end / float(step))) for end in (low, high))
    return [float(step * number) for number in range(first + 1, last + 1)] or [float(high)]


def _group_labels(cuts: Sequence[float], *, whole: bool) -> list[str]:
    """Return the labels of groups: of whole numbers with both ends, else half-open ranges."""
    texts = [f"{cut:.12g}" for cut in cuts]
    if whole:
        lasts = [f"{cut - 1:.12g}" for cut in cuts[1:]]
        middle = [
            (f"{a}-{b}" if not a.startswith("-") else f"{a} to {b}") if a != b else f"only {a}"
            for a, b in zip(texts, lasts, strict=False)
        ]
    else:
        middle = [f"{a} to under {b}" for a, b in pairwise(texts)]
    return [f"under {texts[0]}", *middle, f"{texts[-1]} and over"]


def completed(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with a name, and cells named by labels, where it did not say otherwise."""
    table = dict(entry)
    if table.get("name") is None:
        cross = table.get("cross") or []
        # What is no attribute gets a name too: the grammar refuses it.
        parts = [str(item[0] if isinstance(item, list) and item else item) for item in cross]
        table["name"] = " * ".join(parts) or "total"
    if "parts" not in table:
        table.setdefault("cells", "labels")
    return table
