"""What an adversary knows of a block and the group around it, before any release."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrisk import _validation as check
from bayesrisk._validation import Number
from bayesrisk.distributions import CountLaw
from bayesrisk.inference.two_levels import model


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoLevelSettings:
    """Settings of the two-level model, checked once; arrays broadcast against each other.

    Attributes
    ----------
    n_siblings : int or ndarray
        Number m of other blocks in the group.
    rho_block, rho_group : float or ndarray
        zCDP budgets of every block count and of the group count; 0 where nothing is released.
    prior : float or ndarray
        Probability p that the target has the characteristics.
    known_count : int or ndarray
        Others in the block known to have them, k.
    group_prior : CountLaw or None
        Prior on the group count; None is flat on 0, 1, 2, ...
    known_total : int or None
        Group count that is known exactly, with and without the target.
    sensitivity : float or ndarray
        L2 sensitivity that both budgets refer to.
    conditionals, sibling_noise : str
        As for :func:`hierarchical_posterior`.
    """

    n_siblings: ArrayLike
    rho_block: Number
    rho_group: Number
    prior: Number
    known_count: ArrayLike = 0
    group_prior: CountLaw | None = None
    known_total: int | None = None
    sensitivity: Number = 1.0
    conditionals: str = "coherent"
    sibling_noise: str = "approximate"

    def __post_init__(self) -> None:
        """Check the settings, and keep numbers and read-only arrays of them."""
        settings = model.read_settings(**{f.name: getattr(self, f.name) for f in fields(self)})
        arrays: dict[str, NDArray[Any]] = {
            "n_siblings": settings.n_siblings,
            "rho_block": check.real_array(self.rho_block, "rho_block"),
            "rho_group": check.real_array(self.rho_group, "rho_group"),
            "prior": settings.prior,
            "known_count": settings.known_count,
            "sensitivity": check.real_array(self.sensitivity, "sensitivity"),
        }
        check.broadcast(**arrays)
        for name, array in arrays.items():
            value = np.array(array)
            value.flags.writeable = False
            object.__setattr__(self, name, value if value.ndim else value.item())
        object.__setattr__(self, "_checked", settings)

    @property
    def checked(self) -> model.Settings:
        """The settings as precisions and tables, which the computations take."""
        settings: model.Settings = vars(self)["_checked"]
        return settings

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The settings that may be arrays, by name."""
        names = ("n_siblings", "known_count", "rho_block", "rho_group", "sensitivity", "prior")
        return {name: np.asarray(getattr(self, name)) for name in names}
