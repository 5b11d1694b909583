"""The cheap first look at microdata: who is unique on what, and how well classes hide values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._show import displayed
from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.risk.microdata._keys import Source, classes, coded, key_names
from bayesrisk.tables import Records

_MOST_SUBSETS = 20_000
_MOST_FLAGS = 2**31  # bytes that say who is unique on which columns


@displayed
@dataclass(frozen=True, eq=False)
class FirstLook:
    """How rare records are among themselves.

    Attributes
    ----------
    keys : tuple of str
        Columns that an intruder is assumed to know.
    class_size : ndarray of int64, shape (records,)
        How many records have the same keys, the record itself counted.
    minimal_uniques : ndarray of int64, shape (records, max_size)
        How many minimal sample uniques of 1, 2, ... keys each record has: sets of keys on which it
        is unique while it is not on any part of them.
    sensitive : str or None
        Column whose values the classes should hide.
    distinct : ndarray of int64 or None, shape (records,)
        How many different sensitive values the record's class has.
    """

    keys: tuple[str, ...]
    class_size: IntArray
    minimal_uniques: IntArray
    sensitive: str | None
    distinct: IntArray | None

    @property
    def k(self) -> int:
        """The least class size: the data are k-anonymous in these keys; 0 without records."""
        return int(self.class_size.min()) if self.class_size.size else 0

    @property
    def l(self) -> int | None:  # noqa: E743
        """The least number of sensitive values in a class: (distinct) l-diversity."""
        if self.distinct is None:
            return None
        return int(self.distinct.min()) if self.distinct.size else 0

    @property
    def unique(self) -> NDArray[np.bool_]:
        """Which records are sample uniques: nobody else has their keys."""
        return np.asarray(self.class_size == 1)

    @property
    def special(self) -> NDArray[np.bool_]:
        """Which are special uniques: unique on some of the keys already, of at most max_size."""
        size = self.minimal_uniques.shape[1]
        fewer = self.minimal_uniques[:, : min(size, len(self.keys) - 1)]
        return np.asarray(fewer.sum(axis=1) > 0)

    def _answer(self) -> list[str]:
        n = self.class_size.size
        by = ", ".join(self.keys)
        lines = [
            f"{n:,} records are {self.k}-anonymous in {by}: each shares them with at least "
            f"{max(self.k - 1, 0)} others.",
            f"{int(self.unique.sum()):,} are unique ({_percent(self.unique)}), "
            f"{int(self.special.sum()):,} of them on fewer keys already (special uniques).",
        ]
        if self.l is not None and self.distinct is not None:
            alone = self.distinct == 1
            lines.append(
                f"{self.l} different values of {self.sensitive} at least in each class; "
                f"{int(alone.sum()):,} records ({_percent(alone)}) are in one with a single value."
            )
        return [*lines, "These are counts of rare records, not of people found. See to_frame()."]

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each record, in the order of the data.

        Returns
        -------
        pandas.DataFrame
            ``class_size``; ``minimal_uniques_1`` and so on; ``fewest_keys``, the size of the
            smallest of them (0 for none); ``distinct`` where there is a sensitive column.
        """
        sets = self.minimal_uniques
        columns = {"class_size": self.class_size}
        columns |= {f"minimal_uniques_{i + 1}": sets[:, i] for i in range(sets.shape[1])}
        there = sets > 0
        columns["fewest_keys"] = np.where(there.any(axis=1), there.argmax(axis=1) + 1, 0)
        if self.distinct is not None:
            columns["distinct"] = self.distinct
        return pd.DataFrame(columns)

    def summary(self) -> pd.DataFrame:
        """Return one row for each class size from 1 to 5, and one for larger ones.

        Returns
        -------
        pandas.DataFrame
            ``class_size`` (``"1"`` to ``"5"``, ``"6+"``), ``classes``, ``records``, and their
            ``share`` of all records.
        """
        size = np.minimum(self.class_size, 6)
        records = np.bincount(size, minlength=7)[1:]
        number = np.bincount(size, 1.0 / self.class_size, minlength=7)[1:]
        return pd.DataFrame(
            {
                "class_size": ["1", "2", "3", "4", "5", "6+"],
                "classes": np.rint(number).astype(np.int64),
                "records": records,
                "share": records / max(self.class_size.size, 1),
            }
        )


def _percent(flags: NDArray[np.bool_]) -> str:
    return f"{100.0 * flags.mean():.1f} %" if flags.size else "0.0 %"


def first_look(
    records: Source,
    *,
    keys: Sequence[str],
    sensitive: str | None = None,
    max_size: int = 3,
) -> FirstLook:
    """Return class sizes, sample uniques and special uniques of microdata.

    Parameters
    ----------
    records : Records or pandas.DataFrame
        Microdata, one row each; missing values are values like others.
    keys : sequence of str
        Columns that an intruder is assumed to know; of :class:`Records` also levels of the
        geography.
    sensitive : str, optional
        Column whose values the classes should hide, none of the keys.
    max_size : int, default 3
        Most keys of a minimal sample unique, at least 1; at most 20,000 sets of keys are tried.

    Returns
    -------
    FirstLook
        For every record, and in all.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or too many sets of keys would be tried.
    DataError
        If a column is missing.

    Notes
    -----
    *k-anonymity*: every record has the keys of at least k - 1 others (Samarati and Sweeney 1998).
    *Sample unique*: class of one.  *Minimal sample unique*: a set of keys on which a record is
    unique and no part of which makes it so; a *special unique* has one that is smaller than all
    keys together (Elliot, Manning and Ford 2002; Manning, Haglin and Keane 2008, whose algorithm
    SUDA2 finds them in very wide data).  *Distinct l-diversity*: every class has l different
    sensitive values (Machanavajjhala et al. 2007).

    A record that is unique among those that were collected may have doubles in the population, and
    one that is not unique may be revealed all the same: nothing here is a probability.  Scores
    that weigh minimal uniques into one number are left out, because definitions of them differ.

    Every set of keys is counted in one pass, linear in the records where it has few combinations
    and by sorting otherwise.  A record is unique on all that contains a set on which it is unique,
    so that it is enough to look at the sets with one key less.

    Examples
    --------
    >>> people = pd.DataFrame({"sex": [0, 0, 1, 1], "age": [3, 3, 3, 9], "ill": [0, 1, 1, 1]})
    >>> look = first_look(people, keys=["sex", "age"], sensitive="ill")
    >>> look.k, look.l, look.unique.tolist(), look.special.tolist()
    (1, 1, [False, False, True, True], [False, False, False, True])
    """
    if not isinstance(records, (pd.DataFrame, Records)):
        raise ArgumentTypeError(
            f"records must be Records or a DataFrame, got {type(records).__name__}"
        )
    names = key_names(keys, "keys")
    size = min(check.integer(max_size, "max_size", lower=1, upper=len(names) + 64), len(names))
    sets = sum(comb(len(names), i) for i in range(1, size + 1))
    flags = len(records) * comb(len(names), max(size - 1, 0))
    if sets > _MOST_SUBSETS or flags > _MOST_FLAGS:
        raise ArgumentError(
            f"max_size must give at most {_MOST_SUBSETS} sets of keys (and {_MOST_FLAGS} records "
            f"times sets), got {sets} (and {flags}) at {size}"
        )
    codes = coded({"records": records}, names, "keys")
    whole, counts = classes(codes)
    minimal = np.zeros((len(records), size), dtype=np.int64)
    before: dict[tuple[int, ...], NDArray[np.bool_]] = {}
    for width in range(1, size + 1):
        now = {}
        for chosen in combinations(range(len(names)), width):
            flat, number = classes([codes[i] for i in chosen])
            alone = number[flat] == 1
            new = alone.copy()
            for part in combinations(chosen, width - 1):
                if part:
                    new &= ~before[part]
            minimal[:, width - 1] += new
            if width < size:
                now[chosen] = alone
        before = now
    distinct = None
    if sensitive is not None:
        if check.text(sensitive, "sensitive") in names:
            raise ArgumentError(f"sensitive must be none of the keys, got {shown(sensitive)}")
        distinct = _distinct(whole, coded({"records": records}, [sensitive], "sensitive")[0])
    return FirstLook(tuple(names), counts[whole], minimal, sensitive, distinct)


def _distinct(whole: IntArray, values: IntArray) -> IntArray:
    """Return how many different values the class of every record has."""
    pair = classes([np.unique(whole, return_inverse=True)[1].reshape(-1), values])[0]
    first = np.unique(pair, return_index=True)[1]
    owner = np.unique(whole, return_inverse=True)[1].reshape(-1)
    number: IntArray = np.bincount(owner[first], minlength=1)
    return number[owner] if len(owner) else np.zeros(0, np.int64)
