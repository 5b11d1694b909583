"""All checks of arguments, each once: messages name the argument, its bound and the value."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sized
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import islice
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, TypeGuard, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrisk._base.disk.objects import at_url, is_object
from bayesrisk._base.frames import pandas as pd
from bayesrisk.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    DataError,
    ShapeError,
    did_you_mean as did_you_mean,
    name_list,
    number_advice,
    quote,
)

# -----------------------------------------------------------------------------
# Arrays by what they hold: one name for each type, in the whole package.


#: Counts, rows, positions.
IntArray = NDArray[np.int64]
#: Probabilities, logarithms, weights.
FloatArray = NDArray[np.float64]
#: Masks.
BoolArray = NDArray[np.bool_]
#: Identifiers of places and records.
TextArray = NDArray[np.str_]
#: Small codes, where there are many of them.
CodeArray = NDArray[np.int16]
#: Sets of up to 64 things, a bit for each.
WordArray = NDArray[np.uint64]
#: Characters of a file.
ByteArray = NDArray[np.uint8]


T = TypeVar("T")

#: What a real-valued argument may be.
Number = ArrayLike | Fraction

#: Largest count: differences are exact in a double, and half-integers below it.
MAX_COUNT = 2**52
#: Most elements of an argument, those that a broadcast view repeats included: 8 GiB of doubles.
MAX_ELEMENTS = 2**30
#: Most items that are taken of an iterable without a length.
MAX_ITEMS = 2**22
#: A fraction, or a decimal; no exponent makes more digits than a double has room for.
_TEXT = re.compile(
    r"[0-9]{1,18}/0*[1-9][0-9]{0,17}|[+-]?[0-9]{1,18}(\.[0-9]{1,18})?(e[+-]?[0-9]{1,2})?"
)
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_TEXTS = "; text must be a decimal such as '0.1' or a fraction such as '1/10'"
#: L2 sensitivity of a histogram by what a neighbour does: one cell moves by one, or two do.
SENSITIVITIES = {"add-remove": 1.0, "change-one": 2.0**0.5}
#: Records that such a neighbour adds, takes away or (one of each) exchanges.
MOVED = {"add-remove": 1, "change-one": 2}
ULP = 2.0**-52  # relative distance of neighbouring doubles, at most
_SHORT = 40  # characters of a value that advice repeats
_BLOCK = 8192  # doubles that stay in the first-level cache

Bounds = Literal["[]", "()", "(]", "[)"]

#: What a function of numbers or arrays returns: a float where all were numbers, else an array.
FloatAnswer = float | FloatArray
#: The same of whole numbers.
IntAnswer = int | IntArray


def as_array(value: object, name: str) -> NDArray[Any]:
    """Return ``value`` as an array of any type: rectangular, bounded, with nothing masked."""
    _bounded(value, name)
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ArgumentError(name, "must have no masked entry", got=value)
    try:
        return np.asarray(value)
    # What numpy asks of a foreign object may fail in any way.
    except (ValueError, TypeError, ArithmeticError, LookupError, RuntimeError) as error:
        raise ShapeError(name, "must be a rectangular array", got=value) from error


def _bounded(value: object, name: str) -> None:
    """Refuse an array of more elements than fit, by its shape and before anything is made."""
    size = getattr(value, "size", 0)
    if isinstance(size, (int, np.integer)) and size > MAX_ELEMENTS:
        raise ShapeError(name, f"must have at most {MAX_ELEMENTS} elements", shown=size)


#: What an argument must be that may have axes, and one that may have none.
_ANY = "must be a number or an array of them"
_ONE, _ONE_WHOLE = "must be a number", "must be a whole number"


def _raw_array(value: object, name: str, texts: str = "", rule: str = _ANY) -> NDArray[Any]:
    """Return ``value`` as an array of numbers, or raise an error that names the argument.

    ``texts`` are the texts that it may be, and ``rule`` says what it must be.
    """
    if value is None or isinstance(value, (str, bytes, bool, np.bool_, Mapping)):
        advice = ""
        if isinstance(value, str):
            whole = f": write {value}, without quotes" if _WHOLE.fullmatch(value) else texts
            advice = number_advice(value, rule) or whole
        raise ArgumentTypeError(name, rule, got=value, advice=advice)
    if isinstance(value, Integral) and not -(2**63) <= int(value) < 2**63:
        raise ArgumentError(name, "must fit in 64 bits", got=value)
    array = as_array(value, name)
    if array.size == 0:
        raise ShapeError(name, "must not be empty", shown=f"shape {array.shape}")
    if array.dtype == object:
        array = _from_objects(array, name, texts)
    if array.dtype.kind not in "iuf":
        text = f"dtype {array.dtype}"
        if array.dtype.kind == "U":
            bad = (text for text in array.flat if not _TEXT.fullmatch(text))
            text = f"{quote(str(next(bad, array.flat[0])))}{texts}"
        raise ArgumentTypeError(name, "must be a real number or an array of them", shown=text)
    return array.astype(np.float64, copy=False) if array.dtype.kind == "f" else array


def _from_objects(array: NDArray[Any], name: str, texts: str) -> NDArray[Any]:
    """Convert an array of Fraction, Decimal or mixed Python numbers to a numeric dtype."""
    for item in array.flat:
        if isinstance(item, (bool, np.bool_)) or not isinstance(item, (Real, Decimal)):
            advice = f": write list({name})" if isinstance(item, Iterator) else ""
            advice = texts if isinstance(item, str) else advice
            raise ArgumentTypeError(name, "must hold real numbers", got=item, advice=advice)
    if all(isinstance(item, Integral) for item in array.flat):
        try:
            return array.astype(np.int64)
        except OverflowError as error:
            raise ArgumentError(name, "must fit in 64 bits", got=array.tolist()) from error
    try:
        return np.array([float(item) for item in array.flat], dtype=float).reshape(array.shape)
    except (OverflowError, ValueError) as error:
        raise ArgumentError(name, "must be finite", got=array.tolist()) from error


def describe_first(array: NDArray[Any], bad: NDArray[np.bool_]) -> str:
    """Describe the first offending element: its value, and its index when there are several."""
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    position = f" at index {index if len(index) > 1 else index[0]}" if array.size > 1 else ""
    return f"{array[index]!s}{position}"


def _check_bounds(
    array: NDArray[Any], name: str, lower: float | None, upper: float | None, bounds: Bounds
) -> None:
    if lower is not None:
        bad = array < lower if bounds[0] == "[" else array <= lower
        if bad.any():
            sign = ">=" if bounds[0] == "[" else ">"
            rule = f"must be {sign} {_bound(lower)}"
            raise ArgumentError(name, rule, shown=describe_first(array, bad))
    if upper is not None:
        bad = array > upper if bounds[1] == "]" else array >= upper
        if bad.any():
            rule = f"must be {'<=' if bounds[1] == ']' else '<'} {_bound(upper)}"
            advice = number_advice(f"{float(array[bad][0]):g}", rule) if lower == 0.0 else ""
            raise ArgumentError(name, rule, shown=describe_first(array, bad), advice=advice)


def _bound(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def real_array(
    value: ArrayLike | Fraction,
    name: str,
    *,
    lower: float | None = None,
    upper: float | None = None,
    bounds: Bounds = "[]",
    rule: str = _ANY,
) -> FloatArray:
    """Return ``value`` as finite float64 within its bounds.

    Accepts Python and NumPy numbers, ``Fraction``, ``Decimal`` and (nested) sequences of them, and
    fractions and decimals as text, such as ``"1/10"`` and ``"0.1"``, alone or in a list.
    """
    if isinstance(value, str) and _TEXT.fullmatch(value):
        value = Fraction(value)
    elif isinstance(value, list | tuple):
        texts = (isinstance(entry, str) and _TEXT.fullmatch(entry) for entry in value)
        value = cast(Any, [Fraction(v) if f else v for v, f in zip(value, texts, strict=True)])
    array = _raw_array(value, name, _TEXTS, rule).astype(np.float64, copy=False)
    bad = ~np.isfinite(array)
    if bad.any():
        raise ArgumentError(name, "must be finite", shown=describe_first(array, bad))
    _check_bounds(array, name, lower, upper, bounds)
    return array


def whole_array(
    value: ArrayLike,
    name: str,
    *,
    lower: int = -MAX_COUNT,
    upper: int = MAX_COUNT,
    rule: str = _ANY,
) -> NDArray[Any]:
    """Return ``value`` as an array of whole numbers, in the integer or float dtype it has.

    Sound values cost one pass over memory: the slow search for the culprit runs on failure only.
    """
    if isinstance(value, str) and _TEXT.fullmatch(value) and not _WHOLE.fullmatch(value):
        advice = number_advice(value, _ONE_WHOLE) if Fraction(value) > lower else ""
        raise ArgumentTypeError(name, _ONE_WHOLE, shown=repr(value), advice=advice)
    array = _raw_array(value, name, rule=rule)
    flat = array.reshape(-1)
    if array.dtype.kind == "f":
        blocks = (flat[i : i + _BLOCK] for i in range(0, flat.size, _BLOCK))
        # A NaN differs from its own rounding; infinities fail the bounds.
        if all(
            np.array_equal(np.rint(part), part) and lower <= part.min() and part.max() <= upper
            for part in blocks
        ):
            return array
        bad = ~np.isfinite(array)
        if bad.any():
            raise ArgumentError(name, "must be finite", shown=describe_first(array, bad))
        bad = array != np.rint(array)
        if bad.any():
            words, first = describe_first(array, bad), array[bad][0]
            advice = number_advice(str(first), _ONE_WHOLE) if first > lower else ""
            raise ArgumentError(name, _ONE_WHOLE, shown=words, advice=advice)
    elif lower <= int(flat.min()) and int(flat.max()) <= upper:
        return array
    _check_bounds(array, name, lower, upper, "[]")
    return array


def count_array(value: ArrayLike, name: str, **limits: Any) -> IntArray:
    """Return ``value`` as int64; floats pass when they are whole numbers."""
    return whole_array(value, name, **limits).astype(np.int64, copy=False)


def points(value: ArrayLike, name: str) -> NDArray[Any]:
    """Return evaluation points of a law, as int64 or float64; NaN and infinities are allowed."""
    array = _raw_array(value, name)
    if array.dtype.kind == "i" and int(array.min()) > -(2**62) and int(array.max()) < 2**62:
        return array.astype(np.int64, copy=False)
    return array.astype(np.float64, copy=False)  # beyond that a difference might overflow


def probability(value: ArrayLike | Fraction, name: str) -> FloatArray:
    """Return a probability strictly between 0 and 1."""
    return real_array(value, name, lower=0.0, upper=1.0, bounds="()")


def probability_vector(value: ArrayLike, name: str) -> FloatArray:
    """Return pmfs along the last axis: non-negative and summing to 1 within rounding."""
    array = real_array(value, name, lower=0.0, upper=1.0)
    if array.ndim == 0:
        raise ShapeError(name, "must have at least one axis", shown="a scalar")
    total = array.sum(axis=-1)
    bad = np.abs(total - 1.0) > array.shape[-1] * 2**-50
    if bad.any():
        raise ArgumentError(
            name, "must sum to 1 along its last axis", shown=describe_first(total, bad)
        )
    return array


def scalar(value: Any, name: str, **limits: Any) -> float:
    """Return one real number within its bounds."""
    array = real_array(value, name, rule=_ONE, **limits)
    if array.ndim:
        raise ShapeError(name, "must be one number", shown=f"shape {array.shape}")
    return float(array)


def by_neighbour(value: Any) -> Any:
    """Return a sensitivity as a number, also if given by the neighbours' name."""
    if not isinstance(value, str) or _TEXT.fullmatch(value):
        return value
    if value not in SENSITIVITIES:
        rule = f"must be a number or one of {', '.join(SENSITIVITIES)}"
        advice = did_you_mean(value, SENSITIVITIES)
        raise ArgumentTypeError("sensitivity", rule, got=value, advice=advice)
    return SENSITIVITIES[value]


def time_limit(value: object) -> float | None:
    """Return a limit in seconds, > 0, or None."""
    return None if value is None else scalar(value, "time_limit", lower=0.0, bounds="(]")


def integer(value: Any, name: str, *, lower: int = -MAX_COUNT, upper: int = MAX_COUNT) -> int:
    """Return one whole number within its bounds."""
    if isinstance(value, int) and value > upper:
        raise ArgumentError(name, f"must be <= {upper}", got=value)  # which may take over 64 bits
    array = count_array(value, name, lower=lower, upper=upper, rule=_ONE_WHOLE)
    if array.ndim:
        raise ShapeError(name, "must be one number", shown=f"shape {array.shape}")
    return int(array)


def refuse_row(
    bad: ArrayLike,
    values: ArrayLike,
    source: object,
    column: str,
    must: str,
    advice: str = "",
    *,
    rows: IntArray | None = None,
) -> None:
    """Raise for the first bad value of a column, if there is one, with its row from 1.

    ``rows`` says which rows of the file the values are of, by default the first ones.
    """
    wrong = np.flatnonzero(np.asarray(bad))
    if wrong.size:
        value = np.asarray(values)[wrong[0]]
        text = quote(value.item() if isinstance(value, np.generic) else value)
        row = (wrong if rows is None else rows[wrong])[0] + 1
        raise DataError(f"{source}: row {row}, column {column!r}: must {must}, got {text}{advice}")


def choice(value: object, name: str, options: tuple[str, ...], listing: str = "") -> str:
    """Return ``value`` if it is one of ``options``; ``listing`` says where to find all of many."""
    if not isinstance(value, str) or value not in options:
        near = did_you_mean(value, options)
        names = name_list(options, near)
        advice = near or listing * (names != ", ".join(map(str, options)))
        raise ArgumentError(name, f"must be one of {names}", got=value, advice=advice)
    return value


def known_options(options: object, names: Iterable[str], function: str) -> None:
    """Raise if a mapping has a key that is no argument of a function with these names."""
    for option in mapping(options, "options"):
        if option not in (arguments := tuple(names)):
            near = did_you_mean(option, arguments)
            rule = f"is no argument of {function}"
            rule += "" if near else f", which takes {name_list(arguments)}"
            raise ArgumentTypeError(str(option), rule, got=option, advice=near)


def text(value: object, name: str) -> str:
    """Return a text that is not empty and can be written as UTF-8."""
    if not isinstance(value, str) or not value:
        raise ArgumentTypeError(name, "must be a text that is not empty", got=value)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(name, "must be text of Unicode", got=value) from error
    return value


def is_path(value: object) -> TypeGuard[str | Path]:
    """Return whether a value is a text, a URL or a path-like object."""
    return isinstance(value, str | PathLike) or is_object(value)


def path(value: object, name: str) -> Path:
    """Return a path, from a text, a URL or a path-like object."""
    if is_object(value):
        return cast(Path, value)
    place = fspath(value) if isinstance(value, str | PathLike) else None
    if not isinstance(place, str) or not place or "\0" in place:
        raise ArgumentTypeError(name, "must be a path, as text or a pathlib.Path", got=value)
    text(place, name)
    return at_url(place, name) or Path(place)


def paths(value: object, name: str) -> list[Path]:
    """Return the paths of one file or of several."""
    one = is_path(value) or isinstance(value, bytes) or not isinstance(value, Iterable)
    return [path(file, name) for file in ([value] if one else items(value, name))]


def function(value: object, name: str) -> None:
    """Refuse a value that is neither None nor callable."""
    if value is not None and not callable(value):
        raise ArgumentTypeError(name, "must be a function", got=value)


def flag(value: object, name: str) -> bool:
    """Return True or False; numbers are refused."""
    if not isinstance(value, (bool, np.bool_)):
        advice = "; in a recipe write true or false" * isinstance(value, str)
        raise ArgumentTypeError(name, "must be True or False", got=value, advice=advice)
    return bool(value)


def instance(value: object, kind: type[T], name: str) -> T:
    """Return ``value`` if it is of a class."""
    if not isinstance(value, kind):
        advice = _MADE.get(kind.__name__, "")
        raise ArgumentTypeError(name, f"must be a {kind.__name__}", got=value, advice=advice)
    return value


#: How objects are made that people have otherwise.
_MADE = {
    "Tree": ": write Tree.from_frame(frame)",
    "Records": ": write Records.from_frame(frame), or Records.read(file, schema=...)",
    "Schema": ": write Schema.from_frame(frame) for that of a frame",
    "Workload": ": write Workload.of(schema, columns)",
    "Samples": ": give what TwoLevels.sample or inference.sample_tree returns",
    "Release": ": write Release.read(folder)",
    "PublishedTables": ": write PublishedTables.read(file), or tabulate(records, workload)",
}


#: Mappings that people give, each with an example.
_MAPPED = {
    "among": "{'sex': ['F']}",
    "cuts": "{'age': [18, 65]}",
    "limits": "{'recovered': 0}",
    "parameters": "{'rate': '0.05'}",
}


def mapping(value: object, name: str) -> Mapping[Any, Any]:
    """Return ``value`` if it is a mapping."""
    if not isinstance(value, Mapping):
        advice = f": write {name}={_MAPPED[name]}, say" if name in _MAPPED else ""
        raise ArgumentTypeError(name, "must be a mapping", got=value, advice=advice)
    return value


def items(value: object, name: str) -> list[Any]:
    """Return the items of a sequence or another iterable; texts and mappings are refused."""
    _bounded(value, name)
    try:
        if not isinstance(value, (str, bytes, Mapping)) and isinstance(value, Iterable):
            if isinstance(value, Sized):
                return list(value)
            entries = list(islice(value, MAX_ITEMS + 1))  # it may have no end
            if len(entries) > MAX_ITEMS:
                raise ShapeError(name, f"must have at most {MAX_ITEMS} items", shown="more")
            return entries
    except TypeError:
        pass  # an array without an axis
    advice = f": write {name}={_MAPPED[name]}, say" if name in _MAPPED else ""
    text = isinstance(value, str) and len(value) <= _SHORT
    if text or (isinstance(value, float | int) and abs(value) < 10.0**_SHORT):
        advice = f": write [{value!r}]"
    raise ArgumentTypeError(name, "must be a sequence", got=value, advice=advice)


def instances(value: object, kind: type[T], name: str) -> tuple[T, ...]:
    """Return the items of a sequence, each of a class."""
    return tuple(instance(v, kind, f"{name}[{i}]") for i, v in enumerate(items(value, name)))


def texts(value: object, name: str) -> tuple[str, ...]:
    """Return the texts of a sequence; they may be empty."""
    entries = items(value, name)
    for i, entry in enumerate(entries):
        if not isinstance(entry, str):
            raise ArgumentTypeError(f"{name}[{i}]", "must be a text", got=entry)
    return tuple(str(entry) for entry in entries)


def column_names(value: object, name: str) -> tuple[str, ...]:
    """Return the names of at least one column, each once."""
    names = texts(value, name)
    if not names:
        raise ArgumentError(name, "must name a column", shown="none")
    each_once(names, name)
    return names


def each_once(values: Iterable[object], name: str, *, filled: bool = False) -> None:
    """Refuse a value that stands there again, and if ``filled`` none at all."""
    counts = Counter([*values])
    if filled and not counts:
        raise ArgumentError(name, "must be at least one", shown="none")
    if twice := [value for value, times in counts.items() if times > 1]:
        raise ArgumentError(name, "must give each once", shown=f"{quote(twice[0])} more than once")


def text_array(value: object, name: str) -> NDArray[np.str_]:
    """Return an array of text; whole numbers are written in digits."""
    array = as_array(value, name)
    if array.dtype == object:
        for entry in array.flat:
            if not isinstance(entry, (str, int)) or isinstance(entry, bool):
                raise ArgumentTypeError(name, "must hold text", got=entry)
    elif array.size and array.dtype.kind not in "UiuT":
        raise ArgumentTypeError(name, "must hold text", shown=f"dtype {array.dtype}")
    try:
        return array.astype(np.str_)
    except (ValueError, MemoryError) as error:  # numbers of more digits than Python writes
        raise ArgumentError(name, "must hold short text", got=value) from error


def frame(value: object, name: str, columns: Iterable[str] = ()) -> "pd.DataFrame":
    """Return a pandas data frame that has each of the columns once.

    Any object with the Arrow PyCapsule interface is converted: a Polars frame, an Arrow table, a
    DuckDB relation.
    """
    if not isinstance(value, pd.DataFrame):
        value = _arrow_frame(value, name)
    names = value.columns.tolist()
    for wrong, fault in ((0, "lacks"), (2, "repeats")):
        faulty = [column for column in columns if min(names.count(column), 2) == wrong]
        if faulty:
            like = did_you_mean(faulty[0], set(names).difference(columns))
            like = like.replace(". Did you mean", "; is it called")
            parts = [part.strip() for part in str(faulty[0]).split(",")]
            if len(parts) > 1 and {*parts} <= {*names}:
                like = f": write a list, {parts}"
            elif faulty[0] in value.index.names:
                like = ": it is an index; write frame.reset_index()"
            elif faulty[0] in map(str, names):
                like = ": names must be texts; write frame.rename(columns=str)"
            raise DataError(
                f"{name}: must have the columns {list(columns)}, it {fault} {faulty}; "
                f"it has {quote(names)}{like}"
            )
    try:
        value.loc[:, [kind.kind == "O" for kind in value.dtypes]].isna()
    except InvalidOperation as error:  # of decimal: no question about such a number is answered
        raise DataError(f"{name}: must hold no signalling NaN, got Decimal('sNaN')") from error
    return value


def _arrow_frame(value: object, name: str) -> "pd.DataFrame":
    """Return the table of another library as a pandas data frame."""
    column = hasattr(value, "to_frame") and hasattr(value, "dtype")
    if column or not hasattr(value, "__arrow_c_stream__") or isinstance(value, type):
        kind = type(value)
        called = f"{kind.__module__.partition('.')[0]}.{kind.__name__}".removeprefix("builtins.")
        advice = "; use .collect()" if hasattr(value, "collect") else ""
        if column:
            advice = f": write {name}.to_frame()"
        elif is_path(value) or hasattr(value, "read"):
            advice = ": write pandas.read_csv(file)"
        elif isinstance(value, Iterator):
            advice = f": write list({name})"
        elif isinstance(value, list | tuple | dict | np.ndarray):
            advice = f": write pandas.DataFrame({name}, columns=[...])"
        rule = "must be a DataFrame of pandas, polars or another library that gives its columns to "
        rule += "Arrow (__arrow_c_stream__)"
        raise ArgumentTypeError(name, rule, shown=called, advice=advice)
    import pyarrow as pa  # slow to import

    try:
        table: pd.DataFrame = pa.table(value).to_pandas()
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{name}: cannot be read from Arrow: {quote(str(error))}") from error
    return table


def groups_as_text(column: "pd.Series") -> "pd.Series":
    """Return groups of numbers, as ``pandas.cut`` makes them, and yes or no as text, in order."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        if isinstance(column.cat.categories, pd.IntervalIndex):
            return column.cat.rename_categories(str)
    elif pd.api.types.is_bool_dtype(column.dtype):
        texts = column.map({False: "False", True: "True"})
        return texts.astype(pd.CategoricalDtype(["False", "True"]))
    return column


#: What messages call a precision: whoever gave one of these must know which.
NOISE = "noise (rho or sigma2, sensitivity)"


def broadcast(**arrays: NDArray[Any]) -> tuple[int, ...]:
    """Return the common shape of the named arrays."""
    try:
        return np.broadcast_shapes(*(a.shape for a in arrays.values()))
    except ValueError as error:
        shapes = ", ".join(f"{name} {a.shape}" for name, a in arrays.items())
        raise ShapeError(f"shapes do not broadcast: {shapes}") from error


def answer(value: object) -> FloatAnswer:
    """Return an array, or the number in one without axes."""
    result: FloatAnswer = np.asarray(value)[()]
    return result


def whole_answer(value: object) -> IntAnswer:
    """Return an array of whole numbers, or the number in one without axes."""
    result: IntAnswer = np.asarray(value)[()]
    return result


def cell_precision(
    rho: ArrayLike | Fraction | None,
    sigma2: ArrayLike | Fraction | None,
    sensitivity: ArrayLike | Fraction,
) -> FloatArray:
    """Return ``1 / (2 sigma2)``, the evidence per unit of squared distance.

    Exactly one of ``rho`` (with its ``sensitivity``: ``sigma2 = sensitivity**2 / (2 rho)``) and
    ``sigma2`` is given.
    """
    delta = real_array(by_neighbour(sensitivity), "sensitivity", lower=0.0, bounds="()")
    if rho is not None and sigma2 is None:
        budget = real_array(rho, "rho", lower=0.0, bounds="()")
        broadcast(rho=budget, sensitivity=delta)
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            precision = budget / delta**2
        return _settled(precision, "rho / sensitivity**2")
    if sigma2 is not None and rho is None:
        if np.any(delta != 1.0):
            raise ArgumentError(
                "sensitivity", "belongs with rho; with sigma2 leave it at 1", got=sensitivity
            )
        scale2 = real_array(sigma2, "sigma2", lower=0.0, bounds="()")
        with np.errstate(over="ignore"):
            precision = 0.5 / scale2
        return _settled(precision, "1 / (2 sigma2)")
    raise ArgumentError(
        f"exactly one of rho and sigma2 must be given, got rho={quote(rho)}, sigma2={quote(sigma2)}"
    )


def _settled(precision: FloatArray, name: str) -> FloatArray:
    """Return a positive precision, cut where no count can make the evidence overflow.

    An evidence of a thousand settles every question, so nothing changes at 1e280.
    """
    return np.minimum(real_array(precision, name, lower=0.0, bounds="()"), 1e280)
