"""Uniqueness in microdata, and what a protected version repeats and discloses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed, number
from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, quote
from bayesrisk.tables import Records
from bayesrisk.tables.cells import joint_codes, joint_kinds, renumbered

Source = pd.DataFrame | Records
DENSE = 2**22  # combinations that are counted in a table of all of them
_LARGEST = 2**62


def checked_source(source: Source, label: str) -> Source:
    """Return the source if it is records or a data frame, else raise."""
    if not isinstance(source, (pd.DataFrame, Records)):
        raise ArgumentTypeError(
            label, "must be Records or a DataFrame", shown=type(source).__name__
        )
    return source


def key_names(keys: Iterable[str]) -> list[str]:
    """Return the column names, checked: at least one, and all different."""
    return list(check.column_names([keys] if isinstance(keys, str) else keys, "keys"))


def coded(sources: Mapping[str, Source], names: Sequence[str], role: str) -> list[IntArray]:
    """Return, for each column, the codes of all sources' records, concatenated.

    Equal values have one code; codes count from 0.  Messages call the sources by their names, and
    the columns by their ``role``, the argument that they come from.
    """
    columns = [
        [_column(source, name, label, role) for label, source in sources.items()] for name in names
    ]
    return [
        pd.factorize(pd.concat(parts, ignore_index=True), use_na_sentinel=False)[0].astype(np.int64)
        for parts in columns
    ]


def _column(source: Source, name: str, label: str, role: str) -> pd.Series:
    if isinstance(source, Records):
        place = source.schema.geography
        if name in place.levels and name not in source.columns:
            return pd.Series(place.ancestors(source.geoids, name), dtype=object)
        if name not in source.columns:
            columns = ", ".join(dict.fromkeys((*source.columns, *place.levels)))
            raise DataError(
                f"{label}: must have a column {quote(name)} (named by {role}), got {columns}"
            )
        values: pd.Series = source.table.column(name).to_pandas()
        return values
    if (times := source.columns.tolist().count(name)) != 1:
        raise DataError(
            f"{label}: must have the column {quote(name)} (named by {role}) once, got {times}"
        )
    column: pd.Series = source[name]
    try:
        column.iloc[:0].map(hash)
        pd.factorize(column)
    except TypeError as error:
        raise DataError(f"{label}: column {name!r}: must hold single values: {error}") from error
    return column


def classes(codes: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Return each record's class by several columns, and the number of records in each class.

    Time is linear in the records if there are few combinations; else the records are sorted.
    """
    flat, span = joint_codes(codes, _LARGEST)
    if span > max(DENSE, 4 * len(flat)):
        flat = renumbered(flat)
    return flat, np.bincount(flat, minlength=1)


_MOST_SUBSETS = 20_000
_MOST_FLAGS = 2**31  # bytes that say who is unique on which columns


@displayed
@dataclass(frozen=True, eq=False)
class FirstLook(Tabular):
    """Class sizes and uniqueness of records in a data set.

    Attributes
    ----------
    keys : tuple of str
        Columns that an intruder is assumed to know.
    class_size : ndarray of int64, shape (records,)
        Number of records with the same keys, the record itself included.
    minimal_uniques : ndarray of int64, shape (records, max_size)
        Number of minimal sample uniques of 1, 2, ... keys of each record: sets of keys on which it
        is unique, while it is not on any part of them.
    sensitive : str or None
        Column whose values the classes should hide.
    distinct : ndarray of int64 or None, shape (records,)
        Number of different sensitive values in the record's class.
    by_chance : float
        Expected number of uniques among as many records if the keys were independent, each with its
        own shares of values. Missing for more than 4 million combinations.
    """

    keys: tuple[str, ...]
    class_size: IntArray
    minimal_uniques: IntArray
    sensitive: str | None
    distinct: IntArray | None
    by_chance: float

    @property
    def k(self) -> int:
        """The smallest class size: the data are k-anonymous in these keys (0 without records)."""
        return int(self.class_size.min()) if self.class_size.size else 0

    @property
    def l(self) -> int | None:  # noqa: E743
        """The smallest number of distinct sensitive values in a class: (distinct) l-diversity."""
        if self.distinct is None:
            return None
        return int(self.distinct.min()) if self.distinct.size else 0

    @property
    def unique(self) -> BoolArray:
        """Whether each record is a sample unique: no other record has its keys."""
        return np.asarray(self.class_size == 1)

    @property
    def special(self) -> BoolArray:
        """Whether each record is a special unique: unique already on at most max_size keys."""
        size = self.minimal_uniques.shape[1]
        fewer = self.minimal_uniques[:, : min(size, len(self.keys) - 1)]
        return np.asarray(fewer.sum(axis=1) > 0)

    def _answer(self) -> list[str]:
        n, alone = self.class_size.size, int(self.unique.sum())
        chance = "" if np.isnan(self.by_chance) else (
            f"; were these columns independent, about {self.by_chance:,.0f} would be"
        )  # fmt: skip
        special = int(self.special.sum())
        are = "is" if special == 1 else "are"
        number_words = f"{special:,} of them" if special else "None of them"
        fewer = f" {number_words} {are} alone by fewer of these columns already (special uniques)."
        lines = [
            f"{alone:,} of {n:,} records ({_percent(self.unique)}) are alone with their "
            f"{', '.join(self.keys)}{chance}.{fewer if alone else ''}",
        ]
        if self.k > 1:
            lines.append(f"At least {self.k:,} records share each of these ({self.k}-anonymous).")
        if self.distinct is not None:
            single = self.distinct == 1
            lines.append(
                f"{int(single.sum()):,} records ({_percent(single)}) are in a group that has a "
                f"single {self.sensitive}."
            )
        return [*lines, "These are counts of rare records, not of people found."]

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each record, in the order of the data."""
        sets = self.minimal_uniques
        columns = {"class_size": self.class_size}
        columns |= {f"minimal_uniques_{i + 1}": sets[:, i] for i in range(sets.shape[1])}
        present = sets > 0
        columns["fewest_keys"] = np.where(present.any(axis=1), present.argmax(axis=1) + 1, 0)
        if self.distinct is not None:
            columns["distinct"] = self.distinct
        return pd.DataFrame(columns)

    def summary(self) -> pd.DataFrame:
        """Return ``classes``, ``records`` and their ``share`` by class size: 1 to 5, and 6+."""
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


def _percent(flags: BoolArray) -> str:
    return f"{100.0 * flags.mean():.1f} %" if flags.size else "0.0 %"


def first_look(
    records: Source, *, keys: Sequence[str], sensitive: str | None = None, max_size: int = 3
) -> FirstLook:
    """Return class sizes, sample uniques and special uniques of microdata.

    Parameters
    ----------
    records : Records or pandas.DataFrame
        Microdata, one row for each record; a missing value is a value like others.
    keys : sequence of str
        Columns that an intruder is assumed to know; of :class:`Records` also levels of the
        geography.
    sensitive : str, optional
        Column whose values the classes should hide; none of the keys.
    max_size : int, default 3
        Most keys of a minimal sample unique, at least 1; at most 20,000 sets of keys are tried.

    Notes
    -----
    *k-anonymity*: every record shares its keys with at least k - 1 others (Samarati and Sweeney
    1998). *Sample unique*: class of one. *Minimal sample unique*: a set of keys on which a record
    is unique, while it is not on any part of them. *Special unique*: a record with a minimal sample
    unique smaller than all keys together (Elliot, Manning and Ford 2002; Manning, Haglin and Keane
    2008, whose algorithm SUDA2 finds them in very wide data). *Distinct l-diversity*: every class
    has l different sensitive values (Machanavajjhala et al. 2007).

    A record that is unique among those collected may have doubles in the population, and one that
    is not unique may still be revealed: nothing here is a probability. Every set of keys is counted
    in one pass. A record unique on a set is unique on all larger sets, so only sets with one key
    less are checked.

    Examples
    --------
    >>> people = pd.DataFrame({"sex": [0, 0, 1, 1], "age": [3, 3, 3, 9], "ill": [0, 1, 1, 1]})
    >>> look = first_look(people, keys=["sex", "age"], sensitive="ill")
    >>> look.k, look.l, look.unique.tolist(), look.special.tolist()
    (1, 1, [False, False, True, True], [False, False, False, True])
    """
    checked_source(records, "records")
    names = key_names(keys)
    size = min(check.integer(max_size, "max_size", lower=1, upper=len(names) + 64), len(names))
    sets = sum(comb(len(names), i) for i in range(1, size + 1))
    flags = len(records) * comb(len(names), max(size - 1, 0))
    if sets > _MOST_SUBSETS or flags > _MOST_FLAGS:
        raise ArgumentError(
            "max_size",
            f"must give at most {_MOST_SUBSETS} sets of keys (and {_MOST_FLAGS} records "
            "times sets)",
            shown=f"{sets} (and {flags}) at {size}",
        )
    codes = coded({"records": records}, names, "keys")
    whole, counts = classes(codes)
    minimal = np.zeros((len(records), size), dtype=np.int64)
    before: dict[tuple[int, ...], BoolArray] = {}
    for width in range(1, size + 1):
        current = {}
        for chosen in combinations(range(len(names)), width):
            flat, number = classes([codes[i] for i in chosen])
            alone = number[flat] == 1
            new = alone.copy()
            for part in combinations(chosen, width - 1):
                if part:
                    new &= ~before[part]
            minimal[:, width - 1] += new
            if width < size:
                current[chosen] = alone
        before = current
    distinct = None
    if sensitive is not None:
        if check.text(sensitive, "sensitive") in names:
            raise ArgumentError("sensitive", "must be none of the keys", got=sensitive)
        distinct = _distinct(whole, coded({"records": records}, [sensitive], "sensitive")[0])
    chance = _independent_uniques(codes)
    return FirstLook(tuple(names), counts[whole], minimal, sensitive, distinct, chance)


def _independent_uniques(codes: Sequence[IntArray]) -> float:
    """Return the expected number of uniques if the columns were independent.

    Of n draws the cell c, with share p(c), is drawn once with probability
    n p(c) (1 - p(c))^(n - 1); the sum is over all cells.
    """
    n, cells, times = len(codes[0]), np.ones(1), np.ones(1)
    for column in codes:
        counts, groups = np.unique(np.unique(column, return_counts=True)[1], return_counts=True)
        if cells.size * counts.size > DENSE:
            return float("nan")
        cells, times = (np.outer(a, b).ravel() for a, b in ((cells, counts / n), (times, groups)))
    return float(n * (times * cells * (1.0 - cells) ** (n - 1)).sum()) if n else 0.0


def _distinct(whole: IntArray, values: IntArray) -> IntArray:
    """Return, for each record, the number of different values in its class."""
    owner = renumbered(whole)
    first = np.unique(classes([owner, values])[0], return_index=True)[1]
    number: IntArray = np.bincount(owner[first], minlength=1)
    return number[owner] if len(owner) else np.zeros(0, np.int64)


@displayed
@dataclass(frozen=True)
class RepeatedMicrodata(Tabular):
    """Shares of original records, in per cent, that a protected version repeats or discloses.

    Attributes
    ----------
    keys : tuple of str
        Columns that an intruder is assumed to know.
    target : str or None
        Column that the intruder wants to learn; without it, measures about it are None.
    n_original : int
        Number of original records.
    unique_original, unique_protected : float
        Share of original records whose keys no other has (UiO), and of protected records in per
        cent of those (UiS).
    unique_original_found, replicated_uniques : float
        Unique original records whose keys occur in the protected data (UiOiS), or occur once in
        both (repU).
    disclosive_original, found : float or None
        Original records whose keys have one value of the target in the original (Dorig), and
        original records whose keys occur in the protected data (iS).
    disclosive_protected, disclosive_correct, disclosive_both : float or None
        Original records whose keys have one value of the target in the protected data (DiS); those
        where it is the record's own (DiSCO); and those of the latter whose keys also have one value
        in the original (DiSDiO).
    """

    keys: tuple[str, ...]
    target: str | None
    n_original: int
    unique_original: float
    unique_protected: float
    unique_original_found: float
    replicated_uniques: float
    disclosive_original: float | None = None
    found: float | None = None
    disclosive_protected: float | None = None
    disclosive_correct: float | None = None
    disclosive_both: float | None = None

    def _answer(self) -> list[str]:
        keys = ", ".join(self.keys)
        lines = [
            f"{number(self.replicated_uniques)} % of {self.n_original:,} original records are the "
            f"only ones with their {keys} and appear once in the protected data, too (repU); "
            f"{number(self.unique_original)} % are unique in the original."
        ]
        if self.target is not None:
            lines.append(
                f"For {number(self.disclosive_correct)} % the protected data have one value of "
                f"{self.target} with their keys, and it is theirs (DiSCO); from the original it "
                f"would be {number(self.disclosive_original)} %."
            )
        return [*lines, "A match is no proof that the person's own record is why: see inference."]

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each measure."""
        names = [f.name for f in fields(self)[3:]]
        rows = [(name, getattr(self, name)) for name in names]
        return pd.DataFrame(
            [row for row in rows if row[1] is not None], columns=["measure", "percent"]
        )


def repeated_microdata(
    original: Source, protected: Source, *, keys: Sequence[str], target: str | None = None
) -> RepeatedMicrodata:
    r"""Return the shares of unique records that a protected file repeats, and that it discloses.

    Let :math:`d_{tq}` and :math:`s_{tq}` be the numbers of original and protected records with
    target t and keys q:

    .. math:: \mathrm{repU} = \frac{100}{N_d} \sum_q 1[d_{.q} = 1, s_{.q} = 1], \quad
       \mathrm{DiSCO} = \frac{100}{N_d} \sum_q \sum_t d_{tq}\, 1[s_{tq} = s_{.q} > 0]

    Source: Raab, Nowok and Dibben (2024, arXiv:2406.16826); the result's class lists their names.

    All shares are exact, in per cent of the original records; only ``unique_protected`` is of the
    protected ones.

    Parameters
    ----------
    original, protected : Records or pandas.DataFrame
        Confidential microdata and its published substitute: swapped records, or a file made from
        noisy tables. Their numbers of rows may differ.
    keys : sequence of str
        Columns of both that an intruder is assumed to know (quasi-identifiers); of
        :class:`Records` also levels of the geography.
    target : str, optional
        Column of both that the intruder wants to learn; none of the keys.

    Examples
    --------
    >>> truth = pd.DataFrame({"age": [30, 30, 41, 52], "ill": ["no", "yes", "no", "yes"]})
    >>> released = pd.DataFrame({"age": [30, 41, 52, 52], "ill": ["no", "no", "yes", "no"]})
    >>> shares = repeated_microdata(truth, released, keys=["age"], target="ill")
    >>> shares.unique_original, shares.replicated_uniques, shares.disclosive_correct
    (50.0, 25.0, 50.0)
    """
    pair = {"original": original, "protected": protected}
    for label, source in pair.items():
        if not len(checked_source(source, label)):
            raise ArgumentError(label, "must have at least one record", shown="none")
    names = key_names(keys)
    n = len(original)
    key = joint_kinds(coded(pair, names, "keys"))
    d, s = _by_class(key, n)
    q = key[:n]
    measures: dict[str, float] = {
        "unique_original": _share(d[q] == 1),
        "unique_protected": _share(s[key[n:]] == 1),
        "unique_original_found": _share((d[q] == 1) & (s[q] > 0)),
        "replicated_uniques": _share((d[q] == 1) & (s[q] == 1)),
    }
    if target is not None:
        if check.text(target, "target") in names:
            raise ArgumentError("target", "must be none of the keys", got=target)
        cell = joint_kinds([key, coded(pair, [target], "target")[0]])
        dt, st = _by_class(cell, n)
        single = np.zeros(len(s), np.bool_)  # one value of the target, in the protected data
        single[key[n:][st[cell[n:]] == s[key[n:]]]] = True
        tq, correct = cell[:n], (st[cell[:n]] == s[q]) & (s[q] > 0)
        measures |= {
            "disclosive_original": _share(dt[tq] == d[q]),
            "found": _share(s[q] > 0),
            "disclosive_protected": _share(single[q]),
            "disclosive_correct": _share(correct),
            "disclosive_both": _share(correct & (dt[tq] == d[q])),
        }
    return RepeatedMicrodata(tuple(names), target, n, **measures)


def _by_class(key: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Return each class's numbers of original and of protected records."""
    size = int(key.max()) + 1
    return np.bincount(key[:n], minlength=size), np.bincount(key[n:], minlength=size)


def _share(flags: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float:
    return 100.0 * float(np.count_nonzero(flags)) / len(flags)
