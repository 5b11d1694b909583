"""What a protected version of microdata repeats: unique people, and what keys tell about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._show import displayed, number
from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.risk.microdata._keys import Source, classes, coded, key_names
from bayesrisk.tables import Records


@displayed
@dataclass(frozen=True)
class RepeatedMicrodata:
    """Shares of original records, in per cent, that a protected version still gives away.

    Attributes
    ----------
    keys : tuple of str
        Columns that an intruder is assumed to know.
    target : str or None
        Column that the intruder wants to learn; measures about it are None without one.
    n_original, n_protected : int
        Records in either.
    unique_original : float
        Original records with keys that no other one has (UiO).
    unique_protected : float
        The same of protected ones, in per cent of those (UiS).
    unique_original_found : float
        Unique original records whose keys occur in the protected data (UiOiS).
    replicated_uniques : float
        Original records whose keys occur once in each (repU).
    disclosive_original : float or None
        Original records whose keys have one value of the target in the original (Dorig).
    found : float or None
        Original records whose keys occur in the protected data (iS).
    disclosive_protected : float or None
        Original records whose keys have one value of the target in the protected data (DiS).
    disclosive_correct : float or None
        The same where that value is the record's own (DiSCO).
    disclosive_both : float or None
        The same where the original keys have one value of the target, too (DiSDiO).
    """

    keys: tuple[str, ...]
    target: str | None
    n_original: int
    n_protected: int
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
        by = ", ".join(self.keys)
        lines = [
            f"{number(self.replicated_uniques)} % of {self.n_original:,} original records are the "
            f"only ones with their {by} and appear once in the protected data, too (repU); "
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
        """Return one row for each measure.

        Returns
        -------
        pandas.DataFrame
            ``measure`` and ``percent``; those about the target only where there is one.
        """
        names = [f.name for f in fields(self)[4:]]
        rows = [(name, getattr(self, name)) for name in names]
        return pd.DataFrame(
            [row for row in rows if row[1] is not None], columns=["measure", "percent"]
        )


def repeated_microdata(
    original: Source, protected: Source, *, keys: Sequence[str], target: str | None = None
) -> RepeatedMicrodata:
    r"""Return replicated uniques, and what is disclosive in protected data and correct.

    With :math:`d_{tq}` original and :math:`s_{tq}` protected records with target t and keys q,

    .. math:: \mathrm{repU} = \frac{100}{N_d} \sum_q 1[d_{.q} = 1, s_{.q} = 1], \quad
       \mathrm{DiSCO} = \frac{100}{N_d} \sum_q \sum_t d_{tq}\, 1[s_{tq} = s_{.q} > 0]

    Parameters
    ----------
    original, protected : Records or pandas.DataFrame
        Confidential microdata, and what is published instead: swapped records, or a file made from
        noisy tables.  They need not have the same number of rows.
    keys : sequence of str
        Columns of both that an intruder is assumed to know (quasi-identifiers); of
        :class:`Records` also levels of the geography.
    target : str, optional
        Column of both that the intruder wants to learn, none of the keys.

    Returns
    -------
    RepeatedMicrodata
        In per cent of the original records, exactly; ``unique_protected`` of the protected ones.

    Raises
    ------
    ArgumentError
        If there are no keys, the target is one of them, or either has no record.
    DataError
        If a column is missing.

    References
    ----------
    Raab, Nowok and Dibben (2024, arXiv:2406.16826), whose names are in brackets above.

    Examples
    --------
    >>> truth = pd.DataFrame({"age": [30, 30, 41, 52], "ill": ["no", "yes", "no", "yes"]})
    >>> released = pd.DataFrame({"age": [30, 41, 52, 52], "ill": ["no", "no", "yes", "no"]})
    >>> found = repeated_microdata(truth, released, keys=["age"], target="ill")
    >>> found.unique_original, found.replicated_uniques, found.disclosive_correct
    (50.0, 25.0, 50.0)
    """
    pair = {"original": original, "protected": protected}
    for who, source in pair.items():
        if not isinstance(source, (pd.DataFrame, Records)):
            raise ArgumentTypeError(
                f"{who} must be Records or a DataFrame, got {type(source).__name__}"
            )
        if not len(source):
            raise ArgumentError(f"{who} must have at least one record, got none")
    names = key_names(keys, "keys")
    n = len(original)
    every = classes(coded(pair, names, "keys"))[0]
    key = np.unique(every, return_inverse=True)[1].reshape(-1).astype(np.int64)
    d, s = _by_class(key, n)
    at = key[:n]
    found: dict[str, float] = {
        "unique_original": _percent(d[at] == 1),
        "unique_protected": _percent(s[key[n:]] == 1),
        "unique_original_found": _percent((d[at] == 1) & (s[at] > 0)),
        "replicated_uniques": _percent((d[at] == 1) & (s[at] == 1)),
    }
    if target is not None:
        if check.text(target, "target") in names:
            raise ArgumentError(f"target must be none of the keys, got {shown(target)}")
        both = classes([key, coded(pair, [target], "target")[0]])[0]
        cell = np.unique(both, return_inverse=True)[1].reshape(-1).astype(np.int64)
        dt, st = _by_class(cell, n)
        single = np.zeros(len(s), np.bool_)  # one value of the target, in the protected data
        single[key[n:][st[cell[n:]] == s[key[n:]]]] = True
        own, correct = cell[:n], (st[cell[:n]] == s[at]) & (s[at] > 0)
        found |= {
            "disclosive_original": _percent(dt[own] == d[at]),
            "found": _percent(s[at] > 0),
            "disclosive_protected": _percent(single[at]),
            "disclosive_correct": _percent(correct),
            "disclosive_both": _percent(correct & (dt[own] == d[at])),
        }
    return RepeatedMicrodata(tuple(names), target, n, len(protected), **found)


def _by_class(key: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Return how many original and how many protected records each class has."""
    size = int(key.max()) + 1
    return np.bincount(key[:n], minlength=size), np.bincount(key[n:], minlength=size)


def _percent(flags: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float:
    return 100.0 * float(np.count_nonzero(flags)) / len(flags)
