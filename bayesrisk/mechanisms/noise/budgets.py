"""Budgets of a noise mechanism: one exact fraction for each table at each level."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from bayesrisk._files.parse import shown
from bayesrisk.accounting import census_2020_budget, exact_number
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError

#: Budget of every (level, table).
Budgets = dict[tuple[str, str], Fraction]

#: Names of the levels in the allocations of 2020, and in the geographies of this package.
CENSUS_LEVELS = {
    "US": "nation",
    "State": "state",
    "County": "county",
    "Prim": "prim",
    "Tract_Subset_Group": "tract_subset_group",
    "Tract_Subset": "tract_subset",
    "Tract": "tract",
    "Block_Group": "block_group",
    "Block": "block",
}


def resolve_budgets(
    *, budgets: Any, total: Any, level_shares: Any, table_shares: Any, allocation: Any, name: str
) -> Budgets:
    """Return the budget of every table from whichever of the three forms is given.

    ``name`` is how messages call the total: rho or epsilon.
    """
    shares = level_shares is not None or table_shares is not None
    forms = sum((budgets is not None, shares, allocation is not None))
    if forms != 1:
        raise ArgumentError(
            f"budgets must be given in one form: budgets, or {name} with level_shares and "
            f"table_shares, or allocation; got {forms} of them"
        )
    if budgets is not None:
        if total is not None:
            raise ArgumentError(f"{name} is the sum of budgets: leave it out, got {shown(total)}")
        return _nested(budgets, "budgets")
    if allocation is not None:
        return _census(allocation, total)
    if total is None or level_shares is None or table_shares is None:
        raise ArgumentError(f"level_shares and table_shares go together, with {name}")
    return _shared(_positive(total, name), level_shares, table_shares)


def _positive(value: Any, name: str) -> Fraction:
    number = exact_number(value, name)
    if number <= 0:
        raise ArgumentError(f"{name} must be > 0, got {shown(value)}")
    return number


def _mapping(value: Any, name: str) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise ArgumentTypeError(f"{name} must be a mapping, got {shown(value)}")
    if not value:
        raise ArgumentError(f"{name} must not be empty")
    return value


def _nested(value: Any, name: str) -> Budgets:
    """Return ``{level: {table: budget}}`` or ``{(level, table): budget}``, flat and exact."""
    flat: Budgets = {}
    for key, item in _mapping(value, name).items():
        if isinstance(key, tuple) and len(key) == 2:
            flat[str(key[0]), str(key[1])] = _positive(item, f"{name}[{key!r}]")
            continue
        for table, budget in _mapping(item, f"{name}[{key!r}]").items():
            flat[str(key), str(table)] = _positive(budget, f"{name}[{key!r}][{table!r}]")
    return flat


def _shared(total: Fraction, level_shares: Any, table_shares: Any) -> Budgets:
    """Return total times share of the level times share of the table in it."""
    levels = {
        str(level): _positive(share, f"level_shares[{level!r}]")
        for level, share in _mapping(level_shares, "level_shares").items()
    }
    _at_most_one(levels, "level_shares")
    tables = _mapping(table_shares, "table_shares")
    if any(isinstance(item, Mapping) for item in tables.values()):
        by_level = _nested(tables, "table_shares")
        if {level for level, _ in by_level} != set(levels):
            raise ArgumentError(
                f"table_shares must have the levels of level_shares, {', '.join(levels)}, "
                f"got {', '.join(map(str, tables))}"
            )
    else:
        same = {str(t): _positive(s, f"table_shares[{t!r}]") for t, s in tables.items()}
        by_level = {(level, table): share for level in levels for table, share in same.items()}
    for level in levels:
        inside = {table: share for (at, table), share in by_level.items() if at == level}
        _at_most_one(inside, f"table_shares of {level}")
    return {key: total * levels[key[0]] * share for key, share in by_level.items()}


def _at_most_one(shares: Mapping[str, Fraction], name: str) -> None:
    """Check that shares do not spend more than there is; what they leave is not spent."""
    whole = sum(shares.values())
    if whole > 1:
        raise ArgumentError(f"{name} must sum to at most 1, got {whole}")


def _census(allocation: Any, total: Any) -> Budgets:
    """Return a production allocation of 2020, rescaled where a total is given."""
    choice = {"product": allocation} if isinstance(allocation, str) else allocation
    choice = {**_mapping(choice, "allocation")}
    for key in sorted(map(str, set(choice) - {"product", "region", "universe"})):
        raise ArgumentError(f"allocation may hold product, region and universe, got {shown(key)}")
    if "product" not in choice:
        raise ArgumentError("allocation must name its product, pl94 or dhc")
    product = choice.pop("product")
    try:
        frame = census_2020_budget(product, total_rho=total, **choice)
    except ArgumentError as error:
        raise type(error)(f"allocation: {error}") from error
    rows = zip(frame["level"], frame["query"], frame["rho"], strict=True)
    return {(CENSUS_LEVELS[level], str(query)): rho for level, query, rho in rows}
