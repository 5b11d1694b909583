"""The schema: attributes and places that a record can have, from a name, a file or a frame."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed, several
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.old_names import moved
from bayesrisk._base.plugins import Registry
from bayesrisk._base.validation import IntArray, TextArray
from bayesrisk.exceptions import ArgumentError, ConfigError, ShapeError, quote

# Attributes: what is said of a record, and with which codes.


#: The label of an empty value, where it is a category of its own.
MISSING = "missing"


@dataclass(frozen=True)
class Attribute:
    """A coded attribute of a record.

    Attributes
    ----------
    name : str
        Name of the attribute and of its column.
    size : int
        Number of codes, at least 1.
    first : int
        The smallest code; the codes are ``first`` to ``first + size - 1``.
    labels : tuple of str
        Meaning of each code, in order; or empty. The label "missing" is that of an empty value.
    cuts : tuple of float
        Numbers that begin another group, increasing; or empty. A number in a file of records gets
        the code of its group. The first group has the numbers below all cuts.
    """

    name: str
    size: int
    first: int = 0
    labels: tuple[str, ...] = ()
    cuts: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        name = check.text(self.name, "name")
        size = check.integer(self.size, f"size of {name!r}", lower=1, upper=2**31 - 1)
        first = check.integer(self.first, f"first of {name!r}", lower=-(2**31), upper=2**31 - 1)
        labels = check.texts(self.labels, f"labels of {name!r}")
        if labels and len(labels) != size:
            raise ShapeError(
                f"labels of {name!r} must be one for each of {size} codes, got {len(labels)}"
            )
        cuts = tuple(check.scalar(cut, f"cuts of {name!r}") for cut in self.cuts)
        groups = len(cuts) + 1 + (MISSING in labels)
        if cuts and (len(labels) != groups or any(a >= b for a, b in pairwise(cuts))):
            raise ArgumentError(
                "cuts",
                f"of {name!r} must increase, with a label for each of {groups} groups",
                got=list(cuts),
                advice=f" and {len(labels)} labels",
            )
        for key, value in (("size", size), ("first", first), ("labels", labels), ("cuts", cuts)):
            object.__setattr__(self, key, value)

    @property
    def last(self) -> int:
        """The largest code."""
        return self.first + self.size - 1

    def code(self, label: str) -> int:
        """Return the code of a label; an error for an unknown label names the known ones."""
        return self.first + self.labels.index(check.choice(label, self.name, self.labels))


# Geographies: the levels of places, and the definition files that name those of the package.


_MAX_WIDTH = 1000
_DEFINITIONS = resources.files("bayesrisk.tables") / "definitions"


def definition(name: str) -> dict[str, Any]:
    """Return a definition file of the package."""
    return tomllib.loads((_DEFINITIONS / f"{name}.toml").read_text(encoding="utf-8"))


def definition_names() -> list[str]:
    """Return the names of the definition files that hold a schema."""
    names = (file.name for file in _DEFINITIONS.iterdir())
    return sorted(n.removesuffix(".toml") for n in names if n != "geographies.toml")


@dataclass(frozen=True)
class Geography:
    """A hierarchy of places whose codes begin with those of the enclosing places.

    Attributes
    ----------
    name : str
        Name of the geography.
    levels : tuple of str
        Names of the levels, coarse to fine.
    widths : tuple of int
        Digits of a code at each level, strictly increasing and at most 1000; 0 is the root, whose
        code is empty.
    names : tuple of (str, str)
        Code and name of each place with a name, which stands for the code in files of records; or
        empty. The codes of the finest level, all of them, are the public list of places.
    """

    name: str
    levels: tuple[str, ...]
    widths: tuple[int, ...]
    names: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check.text(self.name, "name")
        levels = check.texts(self.levels, "levels")
        widths = tuple(
            check.integer(width, "widths", upper=_MAX_WIDTH)
            for width in check.items(self.widths, "widths")
        )
        if not levels or len(levels) != len(widths):
            raise ShapeError(
                "levels",
                "and widths must be as many and at least one",
                shown=f"{len(levels)} and {len(widths)}",
            )
        check.each_once(levels, "levels")
        if widths[0] < 0 or any(a >= b for a, b in pairwise(widths)):
            raise ArgumentError("widths", "must increase from 0 or more", shown=widths)
        names = tuple((str(code), str(name)) for code, name in self.names)
        for code, _ in names:
            if len(code) not in widths or not code.isdigit():
                raise ArgumentError("names", "must be of codes of the widths", got=code)
        for key, value in (("levels", levels), ("widths", widths), ("names", names)):
            object.__setattr__(self, key, value)

    @property
    def codes(self) -> dict[str, str]:
        """Codes of the finest level by the names of its places; empty without names."""
        return {name: code for code, name in self.names if len(code) == self.widths[-1]}

    def named(self, codes: Iterable[str]) -> list[str]:
        """Return the names of places, and the codes of those without a name."""
        names = dict(self.names)
        return [names.get(code, code) for code in codes]

    @property
    def finest(self) -> str:
        """The finest level."""
        return self.levels[-1]

    def rank(self, level: str) -> int:
        """Return the position of a level, coarsest 0."""
        return self.levels.index(check.choice(level, "level", self.levels))

    def width(self, level: str) -> int:
        """Return the number of digits of a code at a level."""
        return self.widths[self.rank(level)]

    def ancestors(self, geoids: ArrayLike, level: str) -> TextArray:
        """Return each place's enclosing place at a coarser level (or the same)."""
        codes = check.text_array(geoids, "geoids")
        width = self.width(level)
        if codes.size and int(np.strings.str_len(codes).min()) < width:
            raise ArgumentError("geoids", f"must have at least {width} digits for level {level!r}")
        if width == 0:
            return np.full(codes.shape, "", dtype="<U1")
        return codes.astype(f"<U{width}")


#: The geography of records that have none: one place, whose code is empty.
EVERYWHERE = Geography("everywhere", ("all",), (0,))
#: Name of a geography whose places are those of a frame of records: a fact about these.
FRAME_PLACES = "places"


@cache
def built_in_geographies() -> dict[str, Geography]:
    """Return the built-in geographies by name."""
    return {
        name: Geography(name, tuple(entry["levels"]), tuple(entry["widths"]))
        for name, entry in definition("geographies").items()
    }


def _geography(name: str) -> Geography:
    geographies = built_in_geographies()
    return geographies[check.choice(name, "geography", tuple(sorted(geographies)))]


@displayed
@dataclass(frozen=True)
class Schema:
    """The attributes of a record, and the geography that places it.

    Attributes
    ----------
    name : str
        Name of the schema.
    attributes : tuple of Attribute
        The attributes, in the order of the cells: the last runs fastest.
    geography : Geography
        The hierarchy of places; a record has the code of a place at its finest level. By default
        there is one level, ``all``, with one place, and records need no column for it.
    """

    name: str
    attributes: tuple[Attribute, ...]
    geography: Geography = EVERYWHERE

    def __post_init__(self) -> None:
        check.text(self.name, "name")
        attributes = check.instances(self.attributes, Attribute, "attributes")
        object.__setattr__(self, "attributes", attributes)
        names = [*self.names, check.instance(self.geography, Geography, "geography").finest]
        check.each_once(names, "columns and places")
        if self.size >= 2**62:
            raise ArgumentError(f"cells of {self.name!r} must be fewer than 2**62, got {self.size}")

    def _answer(self) -> list[str]:
        levels, places = self.geography.levels, len(self.geography.codes)
        number = f" ({places:,} named)" if places else ""
        return [
            f"{self.name}: records of {self.size:,} kinds; places by {several(levels)}{number}.",
            *(
                f"{a.name}: {several(a.labels or (a.first, '...', a.last))}."
                for a in self.attributes
            ),
        ]

    @cached_property
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
        """Return the flat cell numbers, in [0, size), of records given by their codes, C order.

        The codes of all attributes broadcast.
        """
        if not hasattr(codes, "keys"):  # a data frame has them too
            check.mapping(codes, "codes")
        if set(codes.keys()) != set(self.names):
            raise ArgumentError(
                "codes", f"must be of {', '.join(self.names)}", got=list(codes.keys())
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
        indices = {}
        rest = cells
        for a in reversed(self.attributes):
            rest, indices[a.name] = np.divmod(rest, a.size)
        return {name: indices[name] for name in self.names}

    def labelled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a data frame with labels in place of codes, if there are labels.

        The columns are named after attributes, as in ``to_frame()`` of records, of a reconstruction
        or of claims. Other columns, attributes without labels and missing values are kept.

        Examples
        --------
        >>> import pandas as pd
        >>> ward = Schema("ward", (Attribute("sex", 2, labels=("F", "M")),))
        >>> ward.labelled(pd.DataFrame({"sex": [1, 0]}))["sex"].tolist()
        ['M', 'F']
        """
        output: pd.DataFrame = check.frame(frame, "frame").copy()
        for level in {*self.geography.levels} & {*output.columns} if self.geography.names else ():
            output[level] = self.geography.named(output[level])
        for a in self.attributes:
            if a.labels and a.name in output and len(output):
                present = output[a.name].notna().to_numpy()
                words = np.full(len(output), pd.NA, dtype=object)
                if present.any():
                    values = output.loc[present, a.name]
                    codes = check.count_array(values, a.name, lower=a.first, upper=a.last)
                    words[present] = np.array(a.labels, dtype=object)[codes - a.first]
                output[a.name] = words
        return output

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain values, for JSON."""
        entries = (
            {**vars(a), "labels": list(a.labels), "cuts": list(a.cuts)} for a in self.attributes
        )
        # What is as by default, 0 or empty, is left out.
        attributes = [{k: value for k, value in entry.items() if value} for entry in entries]
        place = self.geography
        names = {"names": dict(place.names)} if place.names else {}
        return {
            "name": self.name,
            "attributes": attributes,
            "geography": {
                "name": place.name,
                "levels": list(place.levels),
                "widths": list(place.widths),
                **names,
            },
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Schema:
        """Return the schema of :meth:`to_dict`."""
        try:
            attributes = tuple(
                Attribute(**{**a, **{k: tuple(a.get(k) or ()) for k in ("labels", "cuts")}})
                for a in values["attributes"]
            )
            return cls(values["name"], attributes, _place(values["geography"]))
        except (LookupError, TypeError, AttributeError) as error:
            raise ArgumentError(
                "schema", f"must hold name, attributes, geography: {error}"
            ) from error

    @classmethod
    def read(cls, path: str | Path) -> Schema:
        r"""Return the schema in a TOML file: a name, attributes, and optionally a geography.

        Parameters
        ----------
        path : path-like
            The file, of at most 256 KiB. It has ``name`` and ``[[attributes]]``, each with ``name``
            and ``labels`` or ``size``, the number of codes. ``first``, the smallest code, is 0 by
            default. ``geography`` is one of :meth:`named`. Or ``[geography]`` has ``levels``
            (coarse to fine) and ``widths`` (digits of a code at each). Without it there is one
            place.

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
            return cls.from_dict(values)
        except ArgumentError as error:
            raise ConfigError(f"{file}: {error}") from error

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        name: str = "records",
        columns: Sequence[str] | None = None,
        geography: Geography | str | None = None,
        place: str | Sequence[str] | None = None,
        cuts: Mapping[str, Sequence[float]] | None = None,
    ) -> Schema:
        """Return the schema whose codes are the values in the columns of a data frame.

        Parameters
        ----------
        frame : pandas.DataFrame
            Records. A column of few whole numbers has the codes from its smallest to its largest;
            one of many numbers has groups between round ones. A text column has its sorted values
            as labels. A categorical one has its categories, in order, with groups of ``pandas.cut``
            as shown, ``[18, 40)``. A logical one has "False" and "True". If values are missing,
            "missing" is a label too.
        name : str, default "records"
            Name of the schema.
        columns : sequence of str, optional
            Columns that become attributes, in this order. By default all but those of places and
            identifiers: text or whole numbers that differ in all of at least 20 rows.
        geography : Geography or str, optional
            Hierarchy of places, or the name of one of :meth:`named`. The frame then needs a column
            named after its finest level. Without it there is one place.
        place : str or sequence of str, optional
            In place of a geography, the column with the names of places, or several, coarse to
            fine. Places get codes in the order of their names.
        cuts : mapping of str to sequence of float, optional
            Numbers at which the groups of a column begin, such as ``{"age": [18, 40, 65]}``.

        Notes
        -----
        The schema tells which values occur, and tables are published with it. If that is
        confidential, list the possible codes in a file (:meth:`read`).

        Numbers are many if more than 20 different ones occur, if they are decimals, or 100 or more
        apart. Their cuts are multiples of 1, 2, 5, 10, 20, ...: of the smallest one that divides
        the range between the quantiles 0.05 and 0.95 into at most nine steps. The first and the
        last group are open.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"region": ["North", "South"], "age": [30, 34]})
        >>> schema = Schema.from_frame(frame)
        >>> schema.shape, schema.attribute("region").labels, schema.attribute("age").first
        ((2, 5), ('North', 'South'), 30)
        >>> Schema.from_frame(frame, cuts={"age": [18, 32]}).attribute("age").labels
        ('under 18', '18-31', '32 and over')
        """
        from bayesrisk.tables import _documents  # pydantic is slow to import

        data = check.frame(frame, "frame")
        if place is not None and not len(data):
            raise ArgumentError("frame", "must have a row to have places", shown="none")
        if place is not None:
            if geography is not None:
                raise ArgumentError(
                    "place", "must not be given with a geography, which names its own"
                )
            levels = (place,) if isinstance(place, str) else check.texts(place, "place")
            check.frame(data, "frame", levels)
            geography = Geography(FRAME_PLACES, *_documents.frame_places(data, levels))
        places = EVERYWHERE if geography is None else geography
        places = _geography(places) if isinstance(places, str) else places
        check.instance(places, Geography, "geography")
        if columns is None:
            columns = _documents.frame_columns(data, places.levels)
        wanted = check.texts(columns, "columns")
        needed = wanted if places is EVERYWHERE else (places.finest, *wanted)
        edges = {} if cuts is None else check.mapping(cuts, "cuts")
        for column in edges:
            check.choice(column, "cuts", wanted)
        data = check.frame(frame, "frame", needed)
        attributes = tuple(Attribute(**a) for a in _documents.frame_attributes(data, wanted, edges))
        return cls(check.text(name, "name"), attributes, places)

    @staticmethod
    def available() -> list[str]:
        """Return the names of the built-in schemas, sorted."""
        return definition_names()

    @classmethod
    def named(cls, name: str, *, geography: str | None = None) -> Schema:
        """Return a built-in schema, one of :meth:`available`.

        ``geography`` is ``census``, ``spine-2020`` or ``enumeration-1940``, in place of the
        default.

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
            _geography(geography)
        return _built_in_schema(name, geography)


def _place(values: Mapping[str, Any] | str | None) -> Geography:
    """Return a geography: by name, from a document, or the single place if there is none."""
    if values is None:
        return EVERYWHERE
    if isinstance(values, str):
        return _geography(values)
    return Geography(
        values["name"],
        _all(values["levels"], "levels", str),
        _all(values["widths"], "widths", int),
        tuple((values.get("names") or {}).items()),
    )


def _all(values: Iterable[object], name: str, kind: type) -> tuple[Any, ...]:
    """Return entries of a document that are all of one type."""
    for value in values:
        if not isinstance(value, kind) or isinstance(value, bool):
            raise TypeError(f"{name} must be of type {kind.__name__}, got {quote(value)}")
    return tuple(values)


@cache
def _built_in_schema(name: str, geography: str | None) -> Schema:
    values = definition(name)
    return Schema.from_dict({**values, "geography": geography or values["geography"]})


#: First ages of the 38 groups that the block tables of the 2010 Summary File 1 tell apart (Abowd et
#: al. 2023, Table S3): single years to 21, then those of table P12.
AGE_BIN_STARTS = (*range(23), 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85)


def age_group(ages: ArrayLike) -> IntArray:
    """Return the group, 0 to 37, of each age."""
    return np.searchsorted(AGE_BIN_STARTS, np.asarray(ages), side="right") - 1


#: Functions that return the cells which records of a schema can be in, by its name; of others all.
CELL_RULES: Registry[IntArray] = Registry(
    "cell-rule", builtin={}, protocol=np.ndarray, needs="numbers of cells"
)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return moved(__name__, name)
