"""The schema: what a record can be, from a name, a file or a data frame."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._show import displayed
from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError, ConfigError
from bayesrisk.tables.schema.attribute import Attribute
from bayesrisk.tables.schema.geography import (
    EVERYWHERE,
    Geography,
    built_in_geographies,
    definition,
    definition_names,
    geography_names,
)

if TYPE_CHECKING:
    import pandas as pd


@displayed
@dataclass(frozen=True)
class Schema:
    """What a record can be: its attributes, and the geography that places it.

    Attributes
    ----------
    name : str
        Its name.
    attributes : tuple of Attribute
        The attributes, in the order of the cells: the last runs fastest.
    geography : Geography
        The hierarchy of places; a record carries the code of its finest level.  By default
        there is one level, ``all``, with one place: records need no column for it.
    """

    name: str
    attributes: tuple[Attribute, ...]
    geography: Geography = EVERYWHERE

    def __post_init__(self) -> None:
        check.text(self.name, "name")
        attributes = check.instances(self.attributes, Attribute, "attributes")
        object.__setattr__(self, "attributes", attributes)
        names = [*self.names, check.instance(self.geography, Geography, "geography").finest]
        if len(set(names)) != len(names):
            raise ArgumentError(f"names of columns must differ, got {', '.join(names)}")
        if self.size >= 2**62:
            raise ArgumentError(f"cells of {self.name!r} must be fewer than 2**62, got {self.size}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes."""
        return tuple(a.name for a in self.attributes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of codes of each attribute."""
        return tuple(a.size for a in self.attributes)

    @property
    def size(self) -> int:
        """Number of cells: the product of the shape."""
        return prod(self.shape)

    def attribute(self, name: str) -> Attribute:
        """Return the attribute of a name."""
        check.choice(name, "attribute", self.names)
        return self.attributes[self.names.index(name)]

    def cell_index(self, codes: Mapping[str, ArrayLike]) -> IntArray:
        """Return the flat cell number of records given by their codes, C order.

        Parameters
        ----------
        codes : mapping of str to array_like of int
            The code of every attribute; shapes broadcast.

        Returns
        -------
        ndarray of int64
            Cell numbers in [0, size).
        """
        if not hasattr(codes, "keys"):  # a data frame has them too
            check.mapping(codes, "codes")
        if set(codes.keys()) != set(self.names):
            raise ArgumentError(
                f"codes must be of {', '.join(self.names)}, got {shown(list(codes.keys()))}"
            )
        arrays = {
            a.name: check.count_array(codes[a.name], a.name, lower=a.first, upper=a.last)
            for a in self.attributes
        }
        cells = np.zeros(check.broadcast(**arrays), dtype=np.int64)
        for a in self.attributes:
            cells = cells * a.size + (arrays[a.name] - a.first)
        return cells

    def codes(self, cells: ArrayLike) -> dict[str, IntArray]:
        """Return the codes of cells, the inverse of :meth:`cell_index`."""
        flat = check.count_array(cells, "cells", lower=0, upper=self.size - 1)
        return {name: i + self.attribute(name).first for name, i in self.indices(flat).items()}

    def indices(self, cells: IntArray) -> dict[str, IntArray]:
        """Return the codes of cells counted from 0, without checks."""
        found = {}
        rest = cells
        for a in reversed(self.attributes):
            rest, found[a.name] = np.divmod(rest, a.size)
        return {name: found[name] for name in self.names}

    def labelled(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        """Return a data frame with labels instead of codes, where there are labels.

        Parameters
        ----------
        frame : pandas.DataFrame
            Codes, in columns named after attributes: ``Records.to_frame()``, or the records of a
            reconstruction.  Other columns, and attributes without labels, are kept.

        Returns
        -------
        pandas.DataFrame
            A copy; :meth:`Records.from_frame` reads it back.

        Examples
        --------
        >>> import pandas as pd
        >>> ward = Schema("ward", (Attribute("sex", 2, labels=("F", "M")),))
        >>> ward.labelled(pd.DataFrame({"sex": [1, 0]}))["sex"].tolist()
        ['M', 'F']
        """
        made: pd.DataFrame = check.frame(frame, "frame").copy()
        for a in self.attributes:
            if a.labels and a.name in made and len(made):
                codes = check.count_array(made[a.name], a.name, lower=a.first, upper=a.last)
                made[a.name] = np.array(a.labels, dtype=object)[codes - a.first]
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain values, for JSON."""
        attributes = []
        for a in self.attributes:
            entry: dict[str, Any] = {"name": a.name, "size": a.size}
            if a.first:
                entry["first"] = a.first
            if a.labels:
                entry["labels"] = list(a.labels)
            attributes.append(entry)
        place = self.geography
        return {
            "name": self.name,
            "attributes": attributes,
            "geography": {
                "name": place.name,
                "levels": list(place.levels),
                "widths": list(place.widths),
            },
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Schema":
        """Return the schema of :meth:`to_dict`."""
        try:
            attributes = tuple(
                Attribute(**{**a, "labels": tuple(a.get("labels", ()))})
                for a in values["attributes"]
            )
            return cls(values["name"], attributes, _place(values["geography"]))
        except (LookupError, TypeError, AttributeError) as error:
            raise ArgumentError(f"schema must hold name, attributes, geography: {error}") from error

    @classmethod
    def read(cls, path: str | Path) -> "Schema":
        r"""Return the schema in a TOML file: a name, attributes, and a geography if there is one.

        Parameters
        ----------
        path : path-like
            The file, of at most 256 KiB.  ``name``; ``[[attributes]]``, each with ``name`` and
            ``labels`` or ``size`` (how many codes; ``first``, the smallest, is 0 by default);
            ``geography``, the name of one of :meth:`named`, or ``[geography]`` with ``levels``
            (coarse to fine) and ``widths`` (digits of a code at each); without it there is one
            place.

        Returns
        -------
        Schema
            What it says.

        Raises
        ------
        ConfigError
            If the file cannot be read, or a key is unknown, missing or out of range: file, key,
            bound and value are named.  A label that is a number must be the code itself, because
            a number in a file of records is a code.

        Examples
        --------
        >>> import tempfile
        >>> text = 'name = "ward"\nattributes = [{ name = "sex", labels = ["F", "M"] }]'
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "ward.toml"
        ...     _ = file.write_text(text)
        ...     Schema.read(file).shape
        (2,)
        """
        from bayesrisk.tables import _documents  # pydantic is slow to import

        file = check.path(path, "path")
        values = _documents.read_schema(file)
        try:
            if isinstance(values["geography"], str):
                check.choice(values["geography"], "geography", tuple(geography_names()))
            return cls.from_dict(values)
        except ArgumentError as error:
            raise ConfigError(f"{file}: {error}") from error

    @classmethod
    def from_frame(
        cls,
        frame: "pd.DataFrame",
        *,
        name: str = "records",
        columns: Sequence[str] | None = None,
        geography: Geography | str | None = None,
    ) -> "Schema":
        """Return the schema whose codes are what the columns of a data frame hold.

        Parameters
        ----------
        frame : pandas.DataFrame
            Records.  A column of whole numbers has the codes from its smallest to its largest; one
            of text has its values as labels, sorted; a categorical one its categories, in order:
            groups of ``pandas.cut`` as they are shown, ``[18, 40)``; a logical one "False" and
            "True".
        name : str, default "records"
            Name of the schema.
        columns : sequence of str, optional
            Columns that become attributes, in this order; by default all but that of the place.
        geography : Geography or str, optional
            Hierarchy of places, or the name of one of :meth:`named`; the frame then needs a column
            named after its finest level.  Without it there is one place.

        Returns
        -------
        Schema
            For :meth:`Records.from_frame` and :meth:`Workload.of`.

        Raises
        ------
        DataError
            If a column is missing, has a missing value, more than 10,000 codes, or values that are
            neither whole numbers nor text.

        Notes
        -----
        The schema says which values occur, and tables of it are published with it: where that is
        itself confidential, write the codes that can occur into a file (:meth:`read`).

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"region": ["North", "South"], "age": [30, 34]})
        >>> schema = Schema.from_frame(frame)
        >>> schema.shape, schema.attribute("region").labels, schema.attribute("age").first
        ((2, 5), ('North', 'South'), 30)
        """
        from bayesrisk.tables import _documents  # pydantic is slow to import

        if isinstance(geography, str):
            check.choice(geography, "geography", tuple(geography_names()))
            geography = built_in_geographies()[geography]
        place = check.instance(
            EVERYWHERE if geography is None else geography, Geography, "geography"
        )
        about = check.frame(frame, "frame")
        if columns is None:
            columns = [str(c) for c in about.columns if c != place.finest]
        wanted = check.texts(columns, "columns")
        needed = wanted if place is EVERYWHERE else (place.finest, *wanted)
        found = _documents.frame_attributes(check.frame(frame, "frame", needed), wanted)
        attributes = tuple(Attribute(**a) for a in found)
        return cls(check.text(name, "name"), attributes, place)

    @staticmethod
    def available() -> list[str]:
        """Return the names of the built-in schemas.

        Returns
        -------
        list of str
            Sorted names.

        Examples
        --------
        >>> Schema.available()[:3]
        ['census-1940', 'household-dhc', 'household-occupancy']
        """
        return definition_names()

    @classmethod
    def named(cls, name: str, *, geography: str | None = None) -> "Schema":
        """Return a built-in schema.

        Parameters
        ----------
        name : str
            One of :meth:`available`.
        geography : str, optional
            ``census``, ``spine-2020`` or ``enumeration-1940``, instead of the usual one.

        Returns
        -------
        Schema
            Its attributes and geography.

        Examples
        --------
        >>> pl94 = Schema.named("pl94")
        >>> pl94.shape, pl94.size, pl94.geography.finest
        ((8, 2, 2, 63), 2016, 'block')
        >>> int(pl94.cell_index({"hhgq": 0, "votingage": 1, "hispanic": 0, "cenrace": 2}))
        128
        """
        check.choice(name, "name", tuple(definition_names()))
        if geography is not None:
            check.choice(geography, "geography", tuple(geography_names()))
        return _built_in(name, geography)


def _place(values: Any) -> Geography:
    """Return a geography: by name, as a document has it, or the one place where there is none."""
    if values is None:
        return EVERYWHERE
    if isinstance(values, str):
        return built_in_geographies()[values]
    return Geography(
        values["name"],
        _all(values["levels"], "levels", str),
        _all(values["widths"], "widths", int),
    )


def _all(values: Any, name: str, kind: type) -> tuple[Any, ...]:
    """Return entries of a document that are all of one type."""
    for value in values:
        if not isinstance(value, kind) or isinstance(value, bool):
            raise TypeError(f"{name} must be of type {kind.__name__}, got {shown(value)}")
    return tuple(values)


@cache
def _built_in(name: str, geography: str | None) -> Schema:
    values = definition(name)
    attributes = tuple(
        Attribute(**{**a, "labels": tuple(a.get("labels", ()))}) for a in values["attributes"]
    )
    return Schema(name, attributes, built_in_geographies()[geography or values["geography"]])
