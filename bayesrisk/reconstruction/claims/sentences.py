"""Claims in plain English, as Table 1 of Liu et al. words them."""

from collections.abc import Mapping

import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.plugins import Registry
from bayesrisk.reconstruction.claims.result import Claims
from bayesrisk.tables.schema import Schema

#: Functions that word a claim about records of a schema, by its name, as :func:`_record` does.
WORDS: Registry[str] = Registry("claim-word", builtin={}, protocol=str, needs="a text")
_NUMBER = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


def claim_sentences(claims: Claims, frame: pd.DataFrame | None = None) -> list[str]:
    """Return claims in words: a few sentences for each about households, else one.

    Parameters
    ----------
    claims : Claims
        Where they are from.
    frame : pandas.DataFrame, optional
        Some of its claims; the verified ones by default.

    Examples
    --------
    >>> from bayesrisk.reconstruction import find_claims
    >>> from bayesrisk.tables import Records, Schema, Workload, tabulate
    >>> unit = pd.DataFrame({"block": ["500010101001000"], "tenure": 3, "vacancy": 0, "size": 2,
    ...     "type": 7, "detailed_type": 8, "under_18": 1, "over_65": 1, "hispanic": 1, "hhage": 2,
    ...     "race": 2})
    >>> records = Records.from_frame(unit, schema=Schema.named("household-dhc"))
    >>> tables = tabulate(records, Workload.named("household-dhc"))
    >>> print(claim_sentences(find_claims(tables, columns=["size", "over_65", "race"]))[-1])
    One household of 2 people. Nobody in it is 65 or over. The householder is Black.
    """
    check.instance(claims, Claims, "claims")
    rows = claims.to_frame() if frame is None else frame
    rows = check.frame(rows, "frame", ("multiplicity", *claims.columns))
    schema, lines = claims.schema, []
    word = WORDS.factory(schema.name) if schema.name in WORDS.builtin else _record
    for row in rows.to_dict("records"):
        times, more = int(row["multiplicity"]), bool(row.get("at_least", False))
        values = {n: _codes(claims, n, int(row[n])) for n in claims.columns if not pd.isna(row[n])}
        lines.append(word(_number(times, more=more), times, values, schema))
    return lines


def _codes(claims: Claims, name: str, code: int) -> tuple[int, ...]:
    return next((g for g in claims.grouped.get(name, ()) if code in g), (code,))


def _number(times: int, *, more: bool) -> str:
    number = _NUMBER[times] if times < len(_NUMBER) else str(times)
    return f"At least {number.lower()}" if more else number


def _record(number: str, times: int, values: Mapping[str, tuple[int, ...]], schema: Schema) -> str:
    parts = []
    for name, codes in values.items():
        labels, first = schema.attribute(name).labels, schema.attribute(name).first
        words = [labels[c - first] if labels else str(c) for c in codes]
        if len(codes) > 2 and not labels and codes == tuple(range(codes[0], codes[-1] + 1)):
            words = [f"{codes[0]} to {codes[-1]}"]
        parts.append(f"{name} {' or '.join(words)}")
    return f"{number} record{'' if times == 1 else 's'} with {', '.join(parts)}."
