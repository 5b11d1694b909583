"""Solvers by name: the package's own, and plug-ins in the group ``bayesrisk.solvers``."""

from typing import Any

from bayesrisk._files.text import shown
from bayesrisk._plugins import Registry
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction.solvers.model import SolverBackend

_OWN = {  # loaded when asked for: both are slow to import
    "highs": "bayesrisk.reconstruction.solvers.highs:HighsSolver",
    "pulp": "bayesrisk.reconstruction.solvers._pulp:PulpSolver",
}
REGISTRY: Registry[SolverBackend] = Registry(
    "solver", own=_OWN, protocol=SolverBackend, needs="name and solve()"
)


def make_solver(name: str | SolverBackend = "highs", **options: Any) -> SolverBackend:
    """Return the solver of that name.

    Parameters
    ----------
    name : str or SolverBackend, default "highs"
        ``"highs"`` for HiGHS without a modelling layer; ``"pulp:NAME"`` for a solver that PuLP
        drives, such as ``"pulp:highs"`` or ``"pulp:cbc"`` or any name that PuLP lists; a solver
        object is returned as it is.  Other names are those of plug-ins: classes that take options
        as keywords, and what stands behind a colon, if anything does.
    **options : object
        Options of the solver, passed on.

    Examples
    --------
    >>> make_solver("highs").name
    'highs'
    """
    if not isinstance(name, str):
        if not isinstance(name, SolverBackend):
            raise ArgumentError(
                f"name of the solver must be text or have a solve method, got {shown(name)}"
            )
        return name
    kind, _, inner = name.partition(":")
    if kind in _OWN and (kind == "pulp") != bool(inner):
        raise ArgumentError(f"solver must be highs or pulp:NAME, got {shown(name)}")
    return REGISTRY.make(kind, *([inner] if inner else []), **options)
