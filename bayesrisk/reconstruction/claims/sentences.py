"""Claims in plain English, as Table 1 of Liu et al. words them."""

from collections.abc import Mapping

import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk.reconstruction.claims.result import Claims
from bayesrisk.reconstruction.claims.search.space import HOUSEHOLD
from bayesrisk.tables.schema import Schema

_TENURE = {
    1: "owned with a mortgage",
    2: "owned free and clear",
    3: "rented",
    4: "occupied without payment of rent",
}
_TYPE = {
    1: "a married couple",
    2: "another family with a male householder",
    3: "another family with a female householder",
    4: "a man living alone",
    5: "a nonfamily household with a male householder who does not live alone",
    6: "a woman living alone",
    7: "a nonfamily household with a female householder who does not live alone",
}
_DETAIL = {
    1: "a married couple with own children under 18",
    2: "a married couple without own children under 18",
    3: "a cohabiting couple with own children under 18",
    4: "a cohabiting couple without own children under 18",
    5: "a woman living alone",
    6: "a female householder without spouse or partner, with own children under 18",
    7: "a female householder without spouse or partner, with relatives, no own children under 18",
    8: "a female householder without spouse or partner, with nonrelatives only",
    9: "a man living alone",
    10: "a male householder without spouse or partner, with own children under 18",
    11: "a male householder without spouse or partner, with relatives, no own children under 18",
    12: "a male householder without spouse or partner, with nonrelatives only",
}
_AGE = {
    1: "15 to 24 years old",
    2: "25 to 34 years old",
    3: "35 to 44 years old",
    4: "45 to 54 years old",
    5: "55 to 59 years old",
    6: "60 to 64 years old",
    7: "65 to 74 years old",
    8: "75 to 84 years old",
    9: "85 years old or older",
}
_RACE = {
    1: "White",
    2: "Black",
    3: "American Indian or Alaska Native",
    4: "Asian",
    5: "Native Hawaiian or Pacific Islander",
    6: "of some other race",
    7: "of two or more races",
}
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
    schema = claims.schema
    lines = []
    for row in rows.to_dict("records"):
        times, more = int(row["multiplicity"]), bool(row.get("at_least", False))
        values = {n: _codes(claims, n, int(row[n])) for n in claims.columns if not pd.isna(row[n])}
        if schema.name == HOUSEHOLD:
            lines.append(_household(_number(times, more=more), times, values))
        else:
            lines.append(_record(_number(times, more=more), times, values, schema))
    return lines


def _codes(claims: Claims, name: str, code: int) -> tuple[int, ...]:
    """Return the codes that a code stands for."""
    return next((g for g in claims.grouped.get(name, ()) if code in g), (code,))


def _number(times: int, *, more: bool) -> str:
    number = _NUMBER[times] if times < len(_NUMBER) else str(times)
    return f"At least {number.lower()}" if more else number


def _alternatives(words: Mapping[int, str], codes: tuple[int, ...]) -> str:
    return " or ".join(words[code] for code in codes if code in words) or "not in universe"


def _household(number: str, times: int, values: Mapping[str, tuple[int, ...]]) -> str:
    one = times == 1
    start = f"{number} household{'' if one else 's'}"
    if "size" in values:
        size = values["size"][0]
        people = "person" if size == 1 else "people"
        start += f" of {size}{' or more' if size == 7 else ''} {people}"
    sentences = [start]
    subject = "It is" if one else "Each is"
    detail = values.get("detailed_type", (0,))
    if detail != (0,):
        sentences.append(f"{subject} {_alternatives(_DETAIL, detail)}")
    # The type follows from the detailed type, but for cohabiting couples.
    if "type" in values and detail[0] in (0, 3, 4):
        sentences.append(f"{subject} {_alternatives(_TYPE, values['type'])}")
    if "tenure" in values:
        sentences.append(f"The home is {_alternatives(_TENURE, values['tenure'])}")
    sentences += _presence_sentences(values)
    householder = []
    if "race" in values:
        householder.append(_alternatives(_RACE, values["race"]))
    if "hispanic" in values:
        origin = "of Hispanic or Latino origin"
        householder.append(origin if values["hispanic"][0] == 2 else f"not {origin}")
    if "hhage" in values:
        householder.append(_alternatives(_AGE, values["hhage"]))
    if householder:
        sentences.append("The householder is " + _listed(householder))
    if len(sentences) == 1 and "size" not in values:
        sentences = [f"{start}, occupied"]
    return ". ".join(sentences) + "."


def _presence_sentences(values: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Return the sentence about children and seniors."""
    words = {"under_18": "under 18", "over_65": "65 or over"}
    sentences = []
    for code, start in ((2, "Somebody in it is "), (1, "Nobody in it is ")):
        parts = [words[n] for n in words if n in values and values[n][0] == code]
        if parts:
            sentences.append(start + (", and somebody " if code == 2 else " or ").join(parts))
    return sentences


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + ", and " + parts[-1]


def _record(number: str, times: int, values: Mapping[str, tuple[int, ...]], schema: Schema) -> str:
    parts = []
    for name, codes in values.items():
        labels, first = schema.attribute(name).labels, schema.attribute(name).first
        words = [labels[c - first] if labels else str(c) for c in codes]
        if len(codes) > 2 and not labels and codes == tuple(range(codes[0], codes[-1] + 1)):
            words = [f"{codes[0]} to {codes[-1]}"]
        parts.append(f"{name} {' or '.join(words)}")
    return f"{number} record{'' if times == 1 else 's'} with {', '.join(parts)}."
