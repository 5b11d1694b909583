"""Budgets as exact fractions, which add up (Bun and Steinke 2016, Lemma 1.7); the 2020 Census."""

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from importlib import resources
from numbers import Rational
from typing import Any, overload

from bayesrisk._base import validation as check
from bayesrisk._base.frames import pandas as pd
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError

_UNIVERSES = {"pl94": ("person", "unit"), "dhc": ("person", "household", "unit")}
_MAX_DIGITS = 400
_LEAST_RHO = Fraction(1, 10**100)  # beyond it a variance is no double


def exact_number(value: object, name: str = "value") -> Fraction:
    """Return a number as an exact fraction.

    Parameters
    ----------
    value : int, Fraction, Decimal, float or str
        A string is a decimal ("0.0992", "1e-10") or a fraction ("165/4099"). A float means its
        printed decimal.
    name : str, default "value"
        Name of the value in messages.

    Examples
    --------
    >>> exact_number("1/864"), exact_number(2.56)
    (Fraction(1, 864), Fraction(64, 25))
    """
    check.text(name, "name")
    if isinstance(value, bool):
        raise ArgumentTypeError(name, "must be a number", got=value)
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if not isinstance(value, (str, Decimal)):
        check.scalar(value, name)  # rejects other types, NaN and infinities
    text = str(value)
    try:
        parts = [Decimal(part.strip()) for part in text.split("/", 1)]
    except InvalidOperation:
        parts = [Decimal("nan")]
    # An exponent of millions would make integers of as many digits.
    sound = all(part.is_finite() and abs(part.adjusted()) < _MAX_DIGITS for part in parts)
    if not sound or (len(parts) == 2 and parts[1] == 0):
        advice = "; nothing is divided by 0" if len(parts) == 2 and parts[1] == 0 else ""
        rule = "must be a finite number, such as 0.1 or 1/10"
        raise ArgumentError(name, rule, got=value, advice=advice)
    number = Fraction(parts[0])
    return number / Fraction(parts[1]) if len(parts) == 2 else number


@overload
def split_rho(rho: object, weights: Mapping[str, Any]) -> dict[str, Fraction]: ...
@overload
def split_rho(rho: object, weights: Iterable[Any]) -> list[Fraction]: ...
def split_rho(rho: object, weights: object) -> dict[str, Fraction] | list[Fraction]:
    """Split a budget in proportion to weights; the parts sum to it exactly.

    Parameters
    ----------
    rho : int, Fraction, Decimal, float or str
        Budget to split, > 0; see :func:`exact_number`.
    weights : mapping or iterable
        Weights, each > 0; they need not sum to 1.

    Returns
    -------
    dict or list of Fraction
        One part for each weight, in the form of ``weights``.

    Examples
    --------
    >>> split_rho("2.56", {"block": 165, "rest": 3934})
    {'block': Fraction(2112, 20495), 'rest': Fraction(251776, 102475)}
    """
    total = positive(rho, "rho")
    if isinstance(weights, Mapping):
        return dict(zip(weights, split_rho(total, list(weights.values())), strict=True))
    entries = check.items(weights, "weights")
    parts = [positive(weight, f"weights[{i}]") for i, weight in enumerate(entries)]
    if not parts:
        raise ArgumentError("weights", "must not be empty")
    whole = sum(parts)
    return [total * part / whole for part in parts]


def positive(value: object, name: str) -> Fraction:
    """Return an exact number > 0."""
    number = exact_number(value, name)
    if number <= 0:
        raise ArgumentError(name, "must be > 0", got=value)
    return number


def census_2020_budget(
    product: str, *, region: str = "US", universe: str = "person", total_rho: object = None
) -> "pd.DataFrame":
    """Return the privacy-loss budget of a 2020 Census product, query by query, exactly.

    Source: configurations of the production runs in the Census Bureau's public code of the 2020
    Disclosure Avoidance System; Abowd et al. (2022, arXiv:2204.08986), section 8.2.

    Parameters
    ----------
    product : {"pl94", "dhc"}
        Redistricting data (PL 94-171), or Demographic and Housing Characteristics.
    region : {"US", "PR"}, default "US"
        Fifty states and the District of Columbia, or Puerto Rico.
    universe : {"person", "household", "unit"}, default "person"
        Persons, households (DHC only), or housing units and group quarters.
    total_rho : number, optional
        Total to which the allocation is rescaled; by default the production total.

    Returns
    -------
    pandas.DataFrame
        One row for each level and query, from the nation down: ``level``, ``query``, ``rho``
        (``Fraction``), ``rho_float``, and ``sigma2`` of the published noise (``1 / rho``, as a
        changed record moves two cells). PL94 also has ``level_share`` and ``query_share``, whose
        product with the total is ``rho``.

    Examples
    --------
    >>> budget = census_2020_budget("pl94")
    >>> sum(budget.rho)
    Fraction(293764, 114921)
    >>> print(budget.query("level == 'Block' and query == 'detailed'").sigma2.item())
    10.092848490022675
    """
    check.choice(product, "product", tuple(_UNIVERSES))
    check.choice(region, "region", ("US", "PR"))
    check.choice(universe, "universe", _UNIVERSES[product])
    source = resources.files("bayesrisk.accounting") / "census_2020.csv"
    with source.open(encoding="utf-8") as lines:
        table = pd.read_csv(lines, dtype=str, keep_default_na=False)
    keep = (table["product"] == product) & (table["region"] == region)
    table = table[keep & (table["universe"] == universe)].reset_index(drop=True)
    rho = [Fraction(text) for text in table["rho"]]
    if total_rho is not None:
        total = positive(total_rho, "total_rho")
        if not _LEAST_RHO <= total <= 1 / _LEAST_RHO:
            raise ArgumentError("total_rho", "must be in [1e-100, 1e100]", got=total_rho)
        scale = total / sum(rho)
        rho = [part * scale for part in rho]
    frame = table[["level", "query"]].assign(
        rho=pd.Series(rho, dtype=object),
        rho_float=[float(part) for part in rho],
        sigma2=[float(1 / part) for part in rho],
    )
    if product == "pl94":
        for column in ("level_share", "query_share"):
            frame[column] = pd.Series([Fraction(s) for s in table[column]], dtype=object)
    return frame
