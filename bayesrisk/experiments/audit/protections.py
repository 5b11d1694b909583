"""Protections of an audit: a mechanism with its parameters, and what is taken where one is missing.

An audit compares protections of which little is said: "swapping, 5 %".  What else a mechanism needs
follows from the population and the published tables, by the name of the parameter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown, toml_document
from bayesrisk.exceptions import ArgumentError
from bayesrisk.interfaces import Mechanism
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.mechanisms.registry import mechanism_parameters
from bayesrisk.tables import Workload

_NEXT = re.compile(r",(?=\s*[A-Za-z_]+\s*=)")
_SHARES = ("level_shares", "table_shares")
_BUDGETS = ("budgets", "allocation", "budget")


@dataclass(frozen=True)
class Protection:
    """A protection by name.

    Attributes
    ----------
    name : str
        How it is called in results.
    mechanism : str
        Name of the mechanism.
    parameters : mapping of str to object
        Its parameters, plain values; those that are missing are the usual ones.
    """

    name: str
    mechanism: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check.text(self.name, "name of the protection")
        check.text(self.mechanism, "name of the mechanism")
        given = dict(check.mapping(self.parameters, "parameters"))
        object.__setattr__(self, "parameters", given)

    def make(self, usual: Usual) -> Mechanism:
        """Return the mechanism."""
        return make_mechanism(self.mechanism, **usual.completed(self.mechanism, self.parameters))


@dataclass(frozen=True)
class Usual:
    """What parameters are where nothing is said.

    Attributes
    ----------
    workload : Workload
        Published tables.
    stated : sequence of str
        Attributes that statements are about: what is rare in them is at risk.
    households : bool
        Whether persons come in households, which then change places whole.
    """

    workload: Workload
    stated: Sequence[str]
    households: bool

    def completed(self, mechanism: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters with the usual values of those that must be given and are not."""
        possible = mechanism_parameters(mechanism)
        usual = self._values()
        missing = [n for n, needed in possible.items() if needed and n not in given]
        found = {n: usual[n] for n in missing if n in usual} | dict(given)
        whole = "rho" in given or "epsilon" in given
        if whole and not has_budget(given):
            shares = [n for n in _SHARES if n in possible and n not in given]
            found |= {n: usual[n] for n in shares}
        return found

    def _values(self) -> dict[str, Any]:
        workload = self.workload
        levels = workload.schema.geography.levels
        finest = levels.index(workload.levels[-1])
        regions = [n for n in ("county", "tract") if n in levels[:finest]]
        coarse = regions[0] if regions else levels[0]
        fine = regions[-1] if regions else levels[max(finest - 1, 0)]
        tables = sorted({name for _, name in workload.tables})
        others = [a for a in workload.schema.names if a not in self.stated]
        return {
            "sensitivity": "add-remove",
            "level_shares": {n: str(Fraction(1, len(workload.levels))) for n in workload.levels},
            "table_shares": {n: str(Fraction(1, len(tables))) for n in tables},
            "swap_key": ["size", "adults"] if self.households else others[:1],
            "unique_by": list(self.stated),
            "within": coarse,
            "unique_within": fine,
            "unit": "household" if self.households else "person",
            "threshold": 3,
            "base": 3,
            "method": "random",
        }


def has_budget(given: Mapping[str, Any]) -> bool:
    """Return whether parameters state the budget of every table, and not only their total."""
    return any(name in given for name in _BUDGETS)


def parse_protection(text: str) -> Protection:
    """Return the protection of a text such as ``swapping:rate=0.05,neighbours=3``.

    Parameters
    ----------
    text : str
        Mechanism, and after a colon parameters ``KEY=VALUE`` with commas between them; values as
        in TOML, and text where they are none.

    Returns
    -------
    Protection
        Called by the text.

    Raises
    ------
    ArgumentError
        If a parameter has no value, or comes twice.

    Examples
    --------
    >>> parse_protection("swapping:rate=0.05,neighbours=3").parameters
    {'rate': '0.05', 'neighbours': 3}
    """
    whole = check.text(text, "protection").strip()
    mechanism, _, rest = whole.partition(":")
    parameters: dict[str, Any] = {}
    for part in _NEXT.split(rest) if rest.strip() else []:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key or not value:
            raise ArgumentError(
                f"protection must be MECHANISM:KEY=VALUE,KEY=VALUE..., got {shown(text)}"
            )
        if key in parameters:
            raise ArgumentError(f"protection must give each parameter once, got {shown(text)}")
        parameters[key] = _value(value)
    return Protection(whole, mechanism.strip(), parameters)


def _value(text: str) -> Any:
    """Return a TOML value, the text of a fraction as it is so that it stays exact."""
    try:
        found = toml_document(f"value = {text}")["value"]
    except ValueError:
        return text
    return text if isinstance(found, float) else found
