"""Independent integer noise in every cell of every table and place."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from bayesrisk._base import validation as check
from bayesrisk._base.validation import IntArray
from bayesrisk.accounting import census_2020_budget
from bayesrisk.accounting.budget import positive
from bayesrisk.exceptions import ArgumentError, quote
from bayesrisk.mechanisms.base import (
    Dial,
    Protected,
    TableMechanism,
    by_level,
    census_level,
    filled_mapping,
    most_cells,
    positive_parts,
)
from bayesrisk.mechanisms.samplers import CheckedSampler, SeenDraws, vetted_sampler
from bayesrisk.release import MechanismSpec, NoiseSpec
from bayesrisk.tables import PublishedTables, Workload

# Budgets of a noise mechanism: one exact fraction for each table at each level.


#: Budget of every (level, table).
Budgets = dict[tuple[str, str], Fraction]


def resolve_budgets(
    budgets: object,
    total: object,
    level_shares: object,
    table_shares: object,
    allocation: object,
    *,
    name: str,
) -> Budgets:
    """Return every table's budget, from whichever form of budget is given.

    ``name`` is how messages call the total: rho or epsilon.
    """
    shares = level_shares is not None or table_shares is not None
    forms = sum((budgets is not None, shares, allocation is not None))
    if forms != 1:
        if forms == 0 and total is None:
            law = {"rho": "gaussian", "epsilon": "laplace"}[name]
            usual = f"; with usual shares it is the recipe discrete-{law}:{name}=1, or yours"
            raise ArgumentError(name, f"or budgets must be given{usual}")
        raise ArgumentError(
            f"budgets must be given in one form: budgets, or {name} with level_shares and "
            f"table_shares, or allocation; got {forms} of them"
        )
    if budgets is not None:
        if total is not None:
            raise ArgumentError(name, "is the sum of budgets: leave it out", got=total)
        return _nested(budgets, "budgets")
    if allocation is not None:
        return _census(allocation, total)
    if total is None or level_shares is None or table_shares is None:
        raise ArgumentError(f"level_shares and table_shares go together, with {name}")
    return _shared(positive(total, name), level_shares, table_shares)


def _nested(value: object, name: str) -> Budgets:
    """Return budgets as a flat mapping of exact fractions by (level, table)."""
    flat: Budgets = {}
    for key, item in filled_mapping(value, name).items():
        if isinstance(key, tuple) and len(key) == 2:
            flat[str(key[0]), str(key[1])] = positive(item, f"{name}[{key!r}]")
            continue
        parts = positive_parts(item, f"{name}[{key!r}]")
        flat.update({(str(key), table): budget for table, budget in parts.items()})
    return flat


def _shared(total: Fraction, level_shares: object, table_shares: object) -> Budgets:
    """Return each table's budget: total times the level's share times the table's share."""
    levels = positive_parts(level_shares, "level_shares")
    _check_shares(levels, "level_shares")
    tables = filled_mapping(table_shares, "table_shares")
    if any(isinstance(item, Mapping) for item in tables.values()):
        by_level = _nested(tables, "table_shares")
        if {level for level, _ in by_level} != set(levels):
            raise ArgumentError(
                f"table_shares must have the levels of level_shares, {', '.join(levels)}, "
                f"got {', '.join(map(str, tables))}"
            )
    else:
        common = positive_parts(tables, "table_shares")
        by_level = {(level, table): share for level in levels for table, share in common.items()}
    for level in levels:
        inside = {table: share for (n, table), share in by_level.items() if n == level}
        _check_shares(inside, f"table_shares of {level}")
    return {key: total * levels[key[0]] * share for key, share in by_level.items()}


def _check_shares(shares: Mapping[str, Fraction], name: str) -> None:
    """Raise if shares sum to more than 1; a remainder stays unspent."""
    whole = sum(shares.values())
    if whole > 1:
        raise ArgumentError(name, "must sum to at most 1", shown=whole)


def _census(allocation: object, total: object) -> Budgets:
    """Return a production allocation of 2020, rescaled to the total if one is given."""
    choice = {"product": allocation} if isinstance(allocation, str) else allocation
    choice = {**filled_mapping(choice, "allocation")}
    for key in sorted(map(str, set(choice) - {"product", "region", "universe"})):
        raise ArgumentError(f"allocation may hold product, region and universe, got {quote(key)}")
    if "product" not in choice:
        raise ArgumentError("allocation", "must name its product, pl94 or dhc")
    product = choice.pop("product")
    try:
        frame = census_2020_budget(product, total_rho=total, **choice)
    except ArgumentError as error:
        raise type(error)(f"allocation: {error}") from error
    rows = zip(frame["level"], frame["query"], frame["rho"], strict=True)
    return {(census_level(level), str(query)): rho for level, query, rho in rows}


_CHUNK = 2**22  # cells drawn at a time: bounds the memory beyond the tables themselves


class _NoiseMechanism(TableMechanism):
    """Base of both noise mechanisms: budgets, checks against the workload, and draws."""

    grain = 0
    _name: ClassVar[str]
    _unit: ClassVar[str]  # of the budgets
    # Power p of the norm: overlap is the L1 sensitivity, or the square of the L2 one, and the scale
    # of the noise (b, or sigma**2) is Delta**p / (p budget)
    _norm: ClassVar[int]

    def __init__(
        self,
        sensitivity: str,
        overlap: int | Mapping[str, int],
        sampler: str | None,
        *stated: object,
    ) -> None:
        budgets = resolve_budgets(*stated, name=self._unit)
        check.choice(sensitivity, "sensitivity", tuple(check.SENSITIVITIES))
        self._budgets = budgets
        self._overlap = _overlaps(overlap, budgets)
        parameters = {"budgets": by_level(budgets), "sensitivity": sensitivity, "overlap": overlap}
        noise = {
            key: NoiseSpec(
                self._name,
                Fraction(check.MOVED[sensitivity] * self._overlap[key]) / (self._norm * part),
            )
            for key, part in budgets.items()
        }
        self._sampler: CheckedSampler | None = None
        if sampler is not None:
            parameters["sampler"], self._sampler = vetted_sampler(sampler)
            noise = {key: self._sampler.law(law) for key, law in noise.items()}
        super().__init__(MechanismSpec(self._name, parameters, noise))
        self._laws = noise

    def _protect_tables(self, tables: PublishedTables, rng: np.random.Generator) -> Protected:
        vetted = None if self._sampler is None else self._sampler.draws()
        noisy = {
            key: _with_noise(counts, _draws(self._laws[key], vetted, rng))
            for key, counts in tables.counts.items()
        }
        spent = sum((self._budgets[key] for key in noisy), Fraction(0))
        return Protected(replace(tables, counts=noisy), diagnostics={self._unit: float(spent)})

    def _check(self, workload: Workload) -> None:
        """Raise if a table has no budget or exceeds the sensitivity that the noise assumes."""
        check.instance(workload, Workload, "workload")
        for level, name in workload.tables:
            if (level, name) not in self._budgets:
                raise ArgumentError(
                    f"budgets must hold every table of the workload, got none for table "
                    f"{name!r} at level {level!r}"
                )
        for table, levels in workload.distinct():
            cells = most_cells(workload.schema, table, norm=self._norm)
            for level in levels:
                if cells > self._overlap[level, table.name]:
                    raise ArgumentError(
                        f"overlap of table {table.name!r} at level {level!r} must be >= {cells}, "
                        f"the cells that one record counts in, "
                        f"got {self._overlap[level, table.name]}"
                    )


class DiscreteGaussianMechanism(_NoiseMechanism):
    r"""Add discrete Gaussian noise to every cell, with zCDP budgets.

    .. math:: \sigma^2 = \Delta^2 / (2 \rho), \quad \Delta^2 = (1 \text{ or } 2) \times
       \text{overlap}

    The budgets are exact. They are given as ``budgets`` of every table, as ``rho`` with shares of
    levels and tables, or in proportion to a production ``allocation`` of the 2020 Census. Source:
    Canonne, Kamath and Steinke (2020, arXiv:2004.00010); Abowd et al. (2022, arXiv:2204.08986),
    section 8.2, whose noise has ``sensitivity="change-one"``.

    Every cell gets noise, zeros included, so counts may be negative. Every table of the workload
    needs a budget; ``diagnostics["rho"]`` of a release is their sum.

    Parameters
    ----------
    sensitivity : {"add-remove", "change-one"}
        The neighbours: one record's cells change (added or removed), or two records' cells.
    budgets : mapping, optional
        ``{level: {table: rho}}`` or ``{(level, table): rho}``, each > 0; see
        :func:`bayesrisk.exact_number` for their forms.
    rho : number, optional
        Total, > 0.
    level_shares : mapping, optional
        ``{level: share}``; the sum is at most 1, and the rest is not spent.
    table_shares : mapping, optional
        ``{table: share}`` for every level, or ``{level: {table: share}}``; likewise.
    allocation : str or mapping, optional
        ``"pl94"``, ``"dhc"``, or ``{"product": ..., "region": ..., "universe": ...}`` as
        :func:`bayesrisk.census_2020_budget` takes them.
    overlap : int or mapping of str to int, default 1
        Number of cells of a table in which one record may count, at least 1, for all tables or by
        table (1 for those not named). If it is too small, the release breaks its guarantee.
    sampler : str, optional
        Name of a vetted sampler that draws the noise, such as ``"opendp"``. A release then takes no
        seed, and its spec states the sampler, its version, and its law. By default NumPy draws, for
        simulation.

    Examples
    --------
    >>> mechanism = DiscreteGaussianMechanism(allocation="pl94", sensitivity="change-one")
    >>> print(float(mechanism.spec.noise["block", "detailed"].scale))
    10.092848490022675
    >>> mechanism.spec.law("block", "detailed")
    DiscreteGaussian(sigma2=10.092848490022675, loc=0)
    """

    dial = Dial("rho", 0.001, 1000.0)
    _name = "discrete-gaussian"
    _unit = "rho"
    _norm = 2

    def __init__(
        self,
        *,
        sensitivity: str,
        budgets: Mapping[Any, object] | None = None,
        rho: object = None,
        level_shares: Mapping[str, object] | None = None,
        table_shares: Mapping[str, object] | None = None,
        allocation: str | Mapping[str, str] | None = None,
        overlap: int | Mapping[str, int] = 1,
        sampler: str | None = None,
    ) -> None:
        stated = budgets, rho, level_shares, table_shares, allocation
        super().__init__(sensitivity, overlap, sampler, *stated)


class DiscreteLaplaceMechanism(_NoiseMechanism):
    r"""Add discrete Laplace noise to every cell, with budgets of pure differential privacy.

    .. math:: b = \Delta / \varepsilon, \quad \Delta = (1 \text{ or } 2) \times \text{overlap}

    Parameters
    ----------
    sensitivity, budgets, epsilon, level_shares, table_shares, allocation, overlap, sampler
        As for :class:`DiscreteGaussianMechanism`, with epsilon in place of rho, also in
        ``diagnostics``. An ``allocation`` needs ``epsilon``, because its own total is of zCDP.

    Examples
    --------
    >>> mechanism = DiscreteLaplaceMechanism(
    ...     budgets={"block": {"total": "1/2"}}, sensitivity="add-remove"
    ... )
    >>> mechanism.spec.law("block", "total")
    DiscreteLaplace(scale=2.0, loc=0)
    """

    dial = Dial("epsilon", 0.01, 1000.0)
    _name = "discrete-laplace"
    _unit = "epsilon"
    _norm = 1

    def __init__(
        self,
        *,
        sensitivity: str,
        budgets: Mapping[Any, object] | None = None,
        epsilon: object = None,
        level_shares: Mapping[str, object] | None = None,
        table_shares: Mapping[str, object] | None = None,
        allocation: str | Mapping[str, str] | None = None,
        overlap: int | Mapping[str, int] = 1,
        sampler: str | None = None,
    ) -> None:
        if allocation is not None and epsilon is None:
            raise ArgumentError("allocation needs epsilon: its own total is of zCDP")
        stated = budgets, epsilon, level_shares, table_shares, allocation
        super().__init__(sensitivity, overlap, sampler, *stated)


def _draws(
    law: NoiseSpec, vetted: SeenDraws | None, rng: np.random.Generator
) -> Callable[[int], IntArray]:
    if vetted is not None:
        return partial(vetted.draw, law)
    noise = law.to_law()
    return lambda size: np.asarray(noise.rvs(size, random_state=rng), np.int64)


def _overlaps(overlap: object, budgets: Budgets) -> dict[tuple[str, str], int]:
    if not isinstance(overlap, Mapping):
        number = check.integer(overlap, "overlap", lower=1, upper=2**20)
        return dict.fromkeys(budgets, number)
    tables = {table for _, table in budgets}
    for table in overlap:
        if table not in tables:
            raise ArgumentError(f"overlap names table {table!r}, which has no budget")
    numbers = {
        table: check.integer(number, f"overlap[{table!r}]", lower=1, upper=2**20)
        for table, number in overlap.items()
    }
    return {key: numbers.get(key[1], 1) for key in budgets}


def _with_noise(counts: sparse.csr_array, draw: Callable[[int], IntArray]) -> sparse.csr_array:
    """Return the counts with noise added to every cell, some rows at a time."""
    rows, cells = counts.shape
    step = max(1, _CHUNK // max(1, cells))
    parts = []
    for start in range(0, rows, step):
        dense: IntArray = counts[start : start + step].toarray().astype(np.int64)
        dense += draw(dense.size).reshape(dense.shape)
        parts.append(sparse.csr_array(dense))
    return sparse.csr_array(sparse.vstack(parts, format="csr")) if parts else counts
