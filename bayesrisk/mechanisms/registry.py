"""Mechanisms by name or recipe, such as ``swapping:rate=0.05``.

A plug-in is a class in the entry-point group ``bayesrisk.mechanisms``. Its constructor takes
keyword parameters and checks them, and it follows the protocol
:class:`bayesrisk.interfaces.Mechanism`. A plug-in that fails to load is skipped with a warning.
"""

from __future__ import annotations

import inspect
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.disk.text import toml_document
from bayesrisk._base.display import displayed
from bayesrisk._base.plugins import STATED, Registry, check_names
from bayesrisk.accounting import census_2020_budget
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, quote
from bayesrisk.interfaces import Mechanism
from bayesrisk.mechanisms.base import Dial, Protected
from bayesrisk.release import MechanismSpec, Release
from bayesrisk.tables import Microdata, Records, Schema, Workload
from bayesrisk.tables.microdata import as_microdata

_CLASSES = {
    "none": "bayesrisk.mechanisms.coarsening:Identity",
    "discrete-gaussian": "bayesrisk.mechanisms.noise:DiscreteGaussianMechanism",
    "discrete-laplace": "bayesrisk.mechanisms.noise:DiscreteLaplaceMechanism",
    "rounding": "bayesrisk.mechanisms.coarsening:Rounding",
    "ranges": "bayesrisk.mechanisms.coarsening:Ranges",
    "threshold": "bayesrisk.mechanisms.coarsening:Threshold",
    "cms-11": "bayesrisk.mechanisms.coarsening:cms_11",
    "nearest-5": "bayesrisk.mechanisms.coarsening:nearest_5",
    "ons-10-5": "bayesrisk.mechanisms.coarsening:ons_10_5",
    "opensafely-midpoint-6": "bayesrisk.mechanisms.coarsening:opensafely_midpoint_6",
    "cell-key": "bayesrisk.mechanisms.cell_key:CellKey",
    "recode": "bayesrisk.mechanisms.recode:Recode",
    "suppression": "bayesrisk.mechanisms.suppression.mechanism:Suppression",
    "swapping": "bayesrisk.mechanisms.swapping.mechanism:Swapping",
    "topdown": "bayesrisk.mechanisms.topdown.mechanism:TopDown",
    "bottom-up": "bayesrisk.mechanisms.bottom_up:BottomUp",
    "composition": "bayesrisk.mechanisms.composition:ReleaseComposition",
    "rules-by-table": "bayesrisk.mechanisms.rules:RulesByTable",
}
REGISTRY: Registry[Mechanism] = Registry(
    "mechanism",
    builtin=_CLASSES,
    protocol=Mechanism,
    needs="spec and release()",
    results={"release": Release, "_protect": Protected, "_protect_tables": Protected},
)


def register_mechanism(name: str, factory: Callable[..., Mechanism]) -> None:
    """Make a mechanism available under a name, for this process.

    Parameters
    ----------
    name : str
        Name to choose it by; it may replace a plug-in, but no mechanism of the package.
    factory : callable
        Class of the mechanism, or a function that takes its keyword parameters.

    Examples
    --------
    >>> from bayesrisk.mechanisms import Identity
    >>> register_mechanism("as-it-is", Identity)
    >>> make_mechanism("as-it-is").spec.mechanism
    'none'
    """
    REGISTRY.register(name, factory)


def available_mechanisms() -> list[str]:
    """Return the names of all mechanisms: built-in, registered, and from plug-ins.

    Examples
    --------
    >>> {"none", "swapping", "topdown"} <= set(available_mechanisms())
    True
    """
    return REGISTRY.available()


# A recipe names a mechanism and what matters; the rest has usual values, which follow from the
# published tables and the records alone, so that the same line means the same everywhere.

_NEXT = re.compile(r',(?=\s*["A-Za-z_][^,=\[\]{}]*=)')
#: A name on the way to a setting, and what comes after it.
_STEP = re.compile(r'\s*(?:"([^"]+)"|([^".=\s](?:[^".=]*[^".=\s])?))\s*([.=])')
#: What a recipe gives first, of one mechanism or another.
_GIVEN = ("rate", "base", "threshold", "rho", "epsilon", "least", "edges")
_NUMBER = re.compile(r"[0-9./]+%?")
_SHARES = ("level_shares", "table_shares")
_BUDGETS = ("budgets", "allocation", "budget")
#: Usual values of parameters that must be given, whatever the tables: never how much is protected.
_CONSTANT = {"sensitivity": "add-remove", "method": "random"}
#: Those that follow from tables and records.
_DEPENDENT = (*_SHARES, "swap_key", "unique_by", "within", "unique_within", "unit")
_KNOWN, _STATED = ("sex", "age", "votingage"), ("race", "hisp", "hispanic", "cenrace")


def read_recipe(text: str, name: str = "protection") -> tuple[str, dict[str, Any]]:
    """Return the mechanism's name and the parameters in a recipe."""
    mechanism, _, rest = check.text(text, name).strip().partition(":")
    parts = _NEXT.split(rest) if rest.strip() else []
    mechanism, equals, value = (part.strip() for part in mechanism.partition("="))
    if not equals and parts and _NUMBER.fullmatch(parts[0].strip()):
        value = parts[0].strip()
    if value and mechanism in REGISTRY.available():
        raise ArgumentError(
            name, "must be MECHANISM:KEY=VALUE", got=text,
            advice=f": write {mechanism}:{_first_key(mechanism)}={value}",
        )  # fmt: skip
    head, *more = re.split(r"[\s,;]+", text.strip(), maxsplit=1)
    if more and ":" not in head and head in REGISTRY.available():
        advice = f": write {head}:{more[0]}"
        raise ArgumentError(name, "must be MECHANISM:KEY=VALUE", got=text, advice=advice)
    check.each_once((part.partition("=")[0].strip() for part in parts), name)
    chosen = mechanism.strip()
    chosen = "none" if chosen == "identity" else chosen  # its name in the version before
    return chosen, with_settings({}, parts, "parameters of a protection")


def given_once(recipe: Mapping[str, Any], more: Mapping[str, Any], name: str = "") -> None:
    """Refuse a parameter that a recipe states otherwise; ``name`` says where others are given."""
    for key in more:
        if key in recipe and not isinstance(recipe[key], Mapping) and recipe[key] != more[key]:
            rule = f"must be given once: the recipe has {key}={recipe[key]}"
            raise ArgumentError(f"{name} {key}".strip(), rule, got=more[key])


def _first_key(mechanism: str) -> str:
    """Return the parameter that users most often give for a mechanism, or ``KEY``."""
    parameters = inspect.signature(REGISTRY.factory(mechanism)).parameters
    needed = [n for n, one in parameters.items() if one.default is one.empty and n in _GIVEN]
    return next(iter([*needed, *(n for n in _GIVEN if n in parameters)]), "KEY")


def with_settings(
    parameters: Mapping[str, Any], settings: Iterable[str], name: str
) -> dict[str, Any]:
    """Return parameters updated by settings ``KEY=VALUE``, with values read as TOML or text.

    ``3``, ``true``, ``["size", "adults"]`` and ``"text"`` are as in TOML. Anything that is no TOML
    value (``1/10``, ``county``) is text, and so is a decimal, which stays exact. Dots in the key
    lead into mappings; put a name with a dot or ``=`` in double quotes.
    """
    result = dict(parameters)
    for setting in settings:
        path, position = [], 0
        while step := _STEP.match(setting, position):
            path.append(step[1] or step[2])
            position = step.end()
            if step[3] == "=":
                break
        text = setting[position:].strip()
        if step is None or not text:
            key, _, content = setting.strip().rstrip("=").partition(":")
            advice = f": write {key}={content or STATED.get(key, 'VALUE')}"
            raise ArgumentError(name, "must be KEY=VALUE", got=setting, advice=advice)
        inside = result
        for part in path[:-1]:
            below = inside.get(part, {})
            if not isinstance(below, Mapping):
                key = ".".join(path)
                raise ArgumentError(f"{name} {key}: {part!r} is already {below!r}")
            inside[part] = dict(below)
            inside = inside[part]
        inside[path[-1]] = _value(text)
    return result


def _value(text: str) -> object:
    """Return a text's TOML value; invalid TOML and decimals stay text."""
    try:
        value = text if "\n" in text or "\r" in text else toml_document(f"value = {text}")["value"]
    except ValueError:
        return text
    return text if isinstance(value, float) else value


def usual_roles(schema: Schema) -> tuple[list[str], list[str]]:
    """Return the attributes usually known about a person, and those usually secret.

    If records have race or ethnic origin, these are secret, and sex and age are known.  Otherwise
    the last attribute is secret, and all others are known.
    """
    names = list(schema.names)
    identifiers, sensitive = ([n for n in names if n in choices] for choices in (_KNOWN, _STATED))
    return (identifiers, sensitive) if sensitive else (names[:-1], names[-1:])


def usual_parameters(
    recipe: str, workload: Workload | None = None, *, households: bool = False, **parameters: object
) -> dict[str, Any]:
    """Return a recipe's parameters, with missing ones set to their usual values.

    Parameters
    ----------
    recipe : str
        Mechanism, then a colon and parameters ``KEY=VALUE`` separated by commas, such as
        ``swapping:rate=0.05``. Values are TOML; anything else is text.
    workload : Workload, optional
        Published tables. Without them, parameters that depend on them stay open.
    households : bool, default False
        Whether the records are households with their persons, which move together.
    **parameters : Any
        Further parameters, which override those of the recipe.

    Returns
    -------
    dict
        For noise: ``sensitivity`` "add-remove", and equal shares of levels and tables. For
        swapping: ``unit`` household if there are households, else person; ``unique_by`` race and
        Hispanic origin, else the last attribute; ``swap_key`` size and adults of a household, else
        the first attribute that is not at risk; ``within`` a county and ``unique_within`` a tract,
        else the coarsest level and the one above the tables. ``method`` is random. A rate, a base,
        a threshold or a budget has no usual value.

    Examples
    --------
    >>> usual_parameters("swapping:rate=0.05", Workload.named("sf1-block"))["swap_key"]
    ['sex']
    """
    name, settings = read_recipe(recipe, "recipe")
    settings |= parameters
    usual = dict(_CONSTANT) if workload is None else _CONSTANT | _dependent(workload, households)
    return {n: usual[n] for n in _open(name, settings) if n in usual} | settings


def _open(mechanism: str, parameters: Mapping[str, Any]) -> list[str]:
    """Return the names of missing parameters that have a usual value."""
    possible = REGISTRY.parameters(mechanism)
    usual = {*_CONSTANT, *_DEPENDENT} - {*_SHARES}  # whether or not a class finds them by itself
    names = [n for n, needed in possible.items() if needed or n in usual]
    names = [n for n in names if n not in parameters]
    total = {"rho", "epsilon"} & set(parameters) and not has_budget(parameters)
    if total and {*_SHARES} <= set(possible):
        names += [n for n in _SHARES if n not in parameters]
    return [n for n in names if n in _CONSTANT or n in _DEPENDENT]


def _dependent(workload: Workload, households: bool) -> dict[str, Any]:
    check.instance(workload, Workload, "workload")
    levels = workload.schema.geography.levels
    finest = levels.index(workload.levels[-1])
    regions = [n for n in ("county", "tract") if n in levels[:finest]]
    tables = sorted({name for _, name in workload.tables})
    identifiers, sensitive = usual_roles(workload.schema)
    return {
        "level_shares": {n: str(Fraction(1, len(workload.levels))) for n in workload.levels},
        "table_shares": {n: str(Fraction(1, len(tables))) for n in tables},
        "swap_key": ["size", "adults"] if households else (identifiers or sensitive)[:1],
        "unique_by": sensitive,
        "within": regions[0] if regions else levels[0],
        "unique_within": regions[-1] if regions else levels[max(finest - 1, 0)],
        "unit": "household" if households else "person",
    }


def has_budget(parameters: Mapping[str, Any]) -> bool:
    """Return whether the parameters state every table's budget, not just a total."""
    return any(name in parameters for name in _BUDGETS)


@displayed
@dataclass(frozen=True)
class UsualMechanism:
    """A mechanism whose missing parameters are set once records and tables are known."""

    name: str
    parameters: Mapping[str, Any]

    @property
    def spec(self) -> MechanismSpec:
        """Specification with the given parameters; that of a release has all of them."""
        return MechanismSpec(self.name, self.parameters)

    def completed(self, microdata: Microdata | Records, workload: Workload) -> Mechanism:
        """Return the mechanism with all parameters, for these records and tables."""
        data = as_microdata(microdata)
        households = data.persons is not None and data.households is not None
        return self._mechanism(workload, households=households)

    def _mechanism(self, workload: Workload, *, households: bool) -> Mechanism:
        parameters = usual_parameters(self.name, workload, households=households, **self.parameters)
        return REGISTRY.make(self.name, **parameters)

    def acts_within(self, workload: Workload) -> str | None:
        """Return the completed mechanism's level of independent places, or None."""
        acts: Callable[[Workload], str | None] | None
        acts = getattr(self._mechanism(workload, households=False), "acts_within", None)
        return None if acts is None else acts(workload)

    def release(
        self,
        microdata: Microdata | Records,
        *,
        workload: Workload,
        rng: np.random.Generator | int | None = None,
        places: ArrayLike | None = None,
    ) -> Release:
        """Return the tables of the workload, protected."""
        options = {} if places is None else {"places": places}
        mechanism = self.completed(microdata, workload)
        return mechanism.release(microdata, workload=workload, rng=rng, **options)


def make_mechanism(recipe: str, /, **parameters: object) -> Mechanism:
    """Return a mechanism by its name or its recipe.

    Parameters
    ----------
    recipe : str
        One of :func:`available_mechanisms`, optionally with parameters: ``swapping:rate=0.05``.
    **parameters : Any
        Parameters of the mechanism; its class documents them.

    Returns
    -------
    Mechanism
        A mechanism ready to release. Open parameters get their usual values
        (:func:`usual_parameters`); some follow from the records and tables of a release.

    Examples
    --------
    >>> make_mechanism("rounding:base=5,method=nearest").spec.parameters
    {'base': 5, 'method': 'nearest'}
    >>> make_mechanism("swapping:rate=0.05").spec.parameters
    {'rate': '0.05'}
    """
    name, settings = read_recipe(recipe, "recipe")
    given_once(settings, parameters)
    settings |= parameters
    if name not in REGISTRY.builtin:  # a registered one or a plug-in, which may be none
        REGISTRY.factory(name)
    dependent = [n for n in _open(name, settings) if n in _DEPENDENT]
    if not dependent:
        return REGISTRY.make(name, **usual_parameters(name, **settings))
    usual = usual_parameters(name, **settings)
    if name in REGISTRY.builtin:  # wrong values are refused now, and not by a release
        REGISTRY.make(name, **{n: {"any": 1} for n in dependent if n in _SHARES}, **usual)
    whole = dict.fromkeys(dependent) | usual
    check_names("mechanism", name, inspect.signature(REGISTRY.factory(name)), (), whole)
    return UsualMechanism(name, settings)


def mechanism_dial(name: str) -> Dial | None:
    """Return the parameter of a named mechanism that a search may vary, or None."""
    dial = getattr(REGISTRY.factory(name), "dial", None)
    if dial is not None and not isinstance(dial, Dial):
        raise ArgumentTypeError(f"dial of mechanism {name!r} must be a Dial, got {quote(dial)}")
    return dial


NOTHING = "no protection"
_MOST_RANGES = 5  # that a sentence names


def shown_name(name: str) -> str:
    """Return a protection's name for display."""
    return NOTHING if name in ("none", "identity", NOTHING) else name


def meaning(mechanism: str, parameters: Mapping[str, Any], error: str) -> str:
    """Return a description of a mechanism and its settings in words, or an empty text.

    ``error`` is the error of a count, as text, which describes the size of noise.
    """
    write = _WORDS.get(mechanism)
    try:
        return "" if write is None else write(parameters, error)
    except (KeyError, TypeError, ValueError):  # a setting that is stated in another way
        return ""


def _noise(parameters: Mapping[str, Any], error: str) -> str:
    budget = census_2020_budget("pl94", total_rho="2.56")
    census = budget.query("level == 'Block' and query == 'detailed'")["rho_float"].item()
    rho = float(Fraction(parameters.get("rho", 0)))
    if math.isclose(rho, census, rel_tol=0.01):
        return "noise of the 2020 census's size"
    return _sized("noise", error)


def _sized(noise: str, error: str) -> str:
    return f"{noise} of {error} a count" if error else noise


def _swapping(parameters: Mapping[str, Any], error: str) -> str:
    units = {"person": "people", "household": "households"}[parameters["unit"]]
    return f"swapping {100.0 * float(Fraction(parameters['rate'])):.3g} % of {units}"


def _rounding(parameters: Mapping[str, Any], error: str) -> str:
    rule = "at random to" if parameters["method"] == "random" else "to the nearest"
    return f"rounding {rule} multiples of {int(parameters['base'])}"


def _ranges(parameters: Mapping[str, Any], error: str) -> str:
    edges = [int(edge) for edge in parameters["edges"]]
    if len(edges) > _MOST_RANGES or parameters.get("step"):
        return f"publishing ranges with an error of {error} a count"
    pairs = itertools.pairwise(edges)
    ends = [f"{a} to {b - 1}" if b - a > 1 else str(a) for a, b in pairs]
    return f"publishing ranges {', '.join([*ends, f'{edges[-1]} or more'])}"


def _threshold(parameters: Mapping[str, Any], error: str) -> str:
    least = 0 if parameters.get("zeros") == "within" else 1
    return f"hiding counts of {least} to {int(parameters['least']) - 1}"


def _suppression(parameters: Mapping[str, Any], error: str) -> str:
    more = " and what gives them away" if parameters.get("complementary", True) else ""
    return f"hiding counts of 1 to {int(parameters['threshold']) - 1}{more}"


_WORDS: dict[str, Callable[[Mapping[str, Any], str], str]] = {
    "none": lambda _, __: NOTHING,
    "identity": lambda _, __: NOTHING,  # in files of the version before
    "discrete-gaussian": _noise,
    "discrete-laplace": lambda _, error: _sized("noise", error),
    "topdown": lambda _, error: _sized("consistent noise", error),
    "bottom-up": lambda _, error: _sized("consistent noise", error),
    "swapping": _swapping,
    "rounding": _rounding,
    "ranges": _ranges,
    "threshold": _threshold,
    "suppression": _suppression,
}
