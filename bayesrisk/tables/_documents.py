"""Schemas and workloads of one's own, from short TOML files or a data frame, as plain values.

What is returned is in the grammar of the definition files; names of other schemas, geographies and
attributes are looked up by who asked.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

import pandas as pd
from pydantic import Discriminator, Field, Tag, ValidationError, model_validator

from bayesrisk import _validation as check
from bayesrisk._files.limits import Bound, Section, Several, as_config_error, refuse, whole
from bayesrisk._files.text import read_toml, shown
from bayesrisk.exceptions import DataError

#: Codes of an attribute that is made from a column: beyond, it is a number of its own.
_MOST_CODES = 10_000
_LONGEST = 200
_CODE = re.compile(r"[+-]?[0-9]{1,18}")
_File = TypeVar("_File", bound=Section)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST:
        raise refuse(f"text of 1 to {_LONGEST} characters", indexed=True)
    return value


_TEXT = Bound(f"text of 1 to {_LONGEST} characters", _text, {"type": "string"})


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise refuse("a list of attributes")
    return value


_ANY = Bound("given", lambda value: value, {})
_LIST = Bound("a list of attributes", _list, {"type": "array"})
_SIZE = whole(1, 2**31 - 1)
_FIRST = whole(-(2**31), 2**31 - 1)
_WIDTH = whole(0, 1000)
_Texts = Annotated[list[Annotated[str, _TEXT]], Several()]


class _Place(Section):
    """A hierarchy of places, coarse to fine, with the digits of their codes."""

    name: Annotated[str, _TEXT] = "own"
    levels: _Texts
    widths: Annotated[list[Annotated[int, _WIDTH]], Several()]


_Geography = Annotated[
    Annotated[str, _TEXT, Tag("<name>")] | Annotated[_Place, Tag("<place>")],
    Discriminator(lambda value: "<name>" if isinstance(value, str) else "<place>"),
]


class _Attribute(Section):
    """A coded column: labels, or a number of codes, or both."""

    name: Annotated[str, _TEXT]
    size: Annotated[int, _SIZE] | None = None
    first: Annotated[int, _FIRST] = 0
    labels: _Texts | None = None

    @model_validator(mode="after")
    def _codes_are_known(self) -> Self:
        labels = self.labels
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
        labels = self.labels or []
        size = len(labels) if self.size is None else self.size
        return {"name": self.name, "size": size, "first": self.first, "labels": labels}


class _SchemaFile(Section):
    """A schema: the attributes of a record, and its geography."""

    name: Annotated[str, _TEXT]
    geography: _Geography | None = None
    attributes: Annotated[list[_Attribute], Several()]


class _TableEntry(Section):
    """A table in the grammar of :mod:`bayesrisk.tables._grammar`, which checks it."""

    name: Annotated[str, _TEXT] | None = None
    levels: _Texts | None = None
    cross: Annotated[list[Any], _LIST] = Field(default_factory=list)
    where: Annotated[Any, _ANY] = None
    weight: Annotated[Any, _ANY] = None
    cells: Annotated[Any, _ANY] = None
    parts: Annotated[Any, _ANY] = None

    @model_validator(mode="after")
    def _is_named(self) -> Self:
        given = self.model_fields_set
        if self.name is None and given & {"where", "weight", "parts"}:
            raise refuse("given where a table has where, weight or parts", key=".name", value=None)
        return self


class _WorkloadFile(Section):
    """A workload: the tables that are counted."""

    schema_: Annotated[str, _TEXT] | None = Field(None, alias="schema")
    levels: _Texts | None = None
    recodes: Annotated[Any, _ANY] = None
    tables: Annotated[list[_TableEntry], Several()]


def ambiguous(labels: Sequence[str], first: int) -> tuple[str, str] | None:
    """Return the reason why a label is like a code or another label, and the label; or None."""
    seen = set[str]()
    for code, label in enumerate(labels, first):
        if _CODE.fullmatch(label) and int(label) != code:
            return f"no number but the code itself, {code}: a number in a file is a code", label
        if label in seen:
            return "different", label
        seen.add(label)
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


def frame_attributes(frame: pd.DataFrame, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return attributes that hold what the columns of a frame hold."""
    return [_of_column(check.groups_as_text(frame[name]), str(name)) for name in names]


def _of_column(column: pd.Series, name: str) -> dict[str, Any]:
    missing = column.isna().to_numpy()
    if missing.any():
        row = int(missing.argmax()) + 1
        raise DataError(f"frame: row {row}, column {name!r}: must have a value, got none")
    if pd.api.types.is_integer_dtype(column.dtype):
        first, last = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        _few(last - first + 1, name)
        return {"name": name, "size": last - first + 1, "first": first}
    if isinstance(column.dtype, pd.CategoricalDtype):
        labels = column.cat.categories.tolist()
    else:
        labels = column.drop_duplicates().tolist()
    for label in labels:
        if not isinstance(label, str) or not label:
            raise DataError(
                f"frame: column {name!r}: must hold whole numbers or text, got {shown(label)}; "
                "other numbers become groups with pandas.cut"
            )
    if not isinstance(column.dtype, pd.CategoricalDtype):
        labels.sort()
    _few(len(labels), name)
    if problem := ambiguous(labels, 0):
        raise DataError(
            f"frame: column {name!r}: labels must be {problem[0]}, got {shown(problem[1])}"
        )
    return {"name": name, "size": max(len(labels), 1), "labels": labels}


def _few(size: int, name: str) -> None:
    if size > _MOST_CODES:
        raise DataError(
            f"frame: column {name!r}: must have at most {_MOST_CODES} codes, got {size}; leave it "
            "out with columns=, or group its values"
        )


def completed(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with a name, and cells named by labels, where it did not say otherwise."""
    made = dict(entry)
    if made.get("name") is None:
        cross = made.get("cross") or []
        # What is no attribute gets a name too: the grammar refuses it.
        parts = [str(item[0] if isinstance(item, list) and item else item) for item in cross]
        made["name"] = " * ".join(parts) or "total"
    if "parts" not in made:
        made.setdefault("cells", "labels")
    return made
