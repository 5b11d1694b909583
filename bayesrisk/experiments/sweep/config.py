"""The configuration of a sweep, resolved: nothing left to look up, nothing left to check."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from bayesrisk._files.limits import Count, Positive, Seed, choice
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.experiments.runs.config import RunSettings
from bayesrisk.experiments.sweep.targets import Target

#: Every quantity, with the section or key it needs besides rho and prior.
QUANTITIES = {
    "posterior": "grid.released",
    "risk_ratio": "grid.released",
    "release_probability": "grid.released",
    "marginal_posterior": "",
    "marginal_risk": "",
    "decision_threshold": "",
    "correct_decision_probability": "",
    "decision_accuracy": "",
    "decision_baseline": "",
    "multilevel_marginal_posterior": "levels",
    "multilevel_marginal_risk": "levels",
    "hierarchical_correct_decision_probability": "hierarchy",
    "hierarchical_decision_accuracy": "hierarchy",
    "hierarchical_marginal_posterior": "hierarchy",
    "simulated_marginal_posterior": "simulation",
    "epsilon": "accounting",
}
#: Quantities that do not depend on the prior.
FREE_OF_PRIOR = ("release_probability", "epsilon")
#: What only the first noise law, the Gaussian, offers.
GAUSSIAN_ONLY = ("levels", "hierarchy")
#: Noise laws; the first is the default.
NOISES = ("discrete-gaussian", "discrete-laplace")


@dataclass(frozen=True)
class Budget:
    """A value of rho: its name where it has one, and the number.

    ``census`` marks a budget of the 2020 Census, whose rho stands for one noise in the literature
    and for another in production.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    name: str
    value: float
    census: bool = False


@dataclass(frozen=True)
class Hierarchy:
    """Axes of the adversary who also reads a group's count and those of the siblings.

    Attributes
    ----------
    rho_group : tuple of Budget
        Budgets of the group's count; the setting's rho is that of the blocks.
    group_count : tuple of int
        True counts of the group, the target included.
    n_siblings : tuple of int
        Numbers of other blocks in the group.
    conditionals : tuple of str
        ``"coherent"``, ``"as-published"``.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    rho_group: tuple[Budget, ...] = ()
    group_count: tuple[int, ...] = ()
    n_siblings: tuple[int, ...] = ()
    conditionals: tuple[str, ...] = ()

    @property
    def points(self) -> int:
        """Number of points that the axes span."""
        axes = (self.rho_group, self.group_count, self.n_siblings, self.conditionals)
        return math.prod(len(axis) for axis in axes)


@displayed
@dataclass(frozen=True)
class SweepConfig(RunSettings):
    """A resolved sweep: nothing left to look up, nothing left to check.

    Attributes
    ----------
    title, scenario : str
        What the report is called and what the adversary wants to know.
    seed : int
        Seed of the simulation.
    targets : tuple of Target
        Whose risk is computed: label and count of the cell, the target included.
    rho : tuple of Budget
        Budgets; the named ones are marked in figures and tables.
    prior : tuple of Budget
        Priors, by the text they were written with.
    sensitivity : tuple of Budget
        L2 sensitivities (L1 for Laplace noise).
    noise : tuple of str
        Noise laws.
    released : tuple of int
        Released counts, as differences from the known count.
    levels : tuple of Budget
        Levels from the target's upwards, as multiples of the rho of the first.
    hierarchy : Hierarchy
        Axes of the adversary who uses two levels; empty where the file has none.
    quantities : tuple of str
        What is computed.
    delta : float or None
        Probability of failure for ``epsilon``.
    releases : int
        Simulated releases for each setting, or 0.
    settings_per_shard : int
        Settings (noise, sensitivity, rho) in a shard.
    version : str
        Version of bayesrisk that resolved it.
    """

    title: str
    scenario: str
    seed: Seed
    targets: tuple[Target, ...]
    rho: tuple[Budget, ...]
    prior: tuple[Budget, ...]
    sensitivity: tuple[Budget, ...]
    noise: tuple[Annotated[str, choice(NOISES)], ...]
    released: tuple[int, ...]
    levels: tuple[Budget, ...]
    hierarchy: Hierarchy
    quantities: tuple[Annotated[str, choice(QUANTITIES)], ...]
    delta: Positive | None
    releases: Seed
    settings_per_shard: Count
    version: str = __version__

    @property
    def settings(self) -> list[tuple[str, Budget, Budget]]:
        """Every (noise, sensitivity, rho), in the order of the results."""
        return [(n, s, r) for n in self.noise for s in self.sensitivity for r in self.rho]

    @property
    def shards(self) -> int:
        """Number of shards."""
        return -(-len(self.settings) // self.settings_per_shard)

    @property
    def rows(self) -> int:
        """Number of rows of the results."""
        per_setting = 0
        for quantity in self.quantities:
            rows = 1 if quantity in FREE_OF_PRIOR else len(self.prior)
            if QUANTITIES[quantity] == "grid.released":
                rows *= len(self.released) * len(self.targets)
            elif QUANTITIES[quantity] == "levels":
                rows *= len(self.levels)
            elif QUANTITIES[quantity] == "hierarchy":
                rows *= self.hierarchy.points
            per_setting += rows
        return per_setting * len(self.settings)
