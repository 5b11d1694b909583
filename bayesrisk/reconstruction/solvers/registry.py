"""Solvers by name."""

from typing import Any

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError
from bayesrisk.interfaces import SolverBackend

__all__ = ["make_solver"]


def make_solver(name: str | SolverBackend = "highs", **options: Any) -> SolverBackend:
    """Return the solver of that name.

    Parameters
    ----------
    name : str or SolverBackend, default "highs"
        ``"highs"`` for HiGHS without a modelling layer; ``"pulp:NAME"`` for a solver that PuLP
        drives, such as ``"pulp:highs"`` or ``"pulp:cbc"`` or any name that PuLP lists; a solver
        object is returned as it is.
    **options : object
        Options of the solver, passed on.

    Returns
    -------
    SolverBackend
        It serves one thread at a time.

    Raises
    ------
    ArgumentError
        If there is no such solver.
    MissingDependencyError
        If it is not installed.

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
    check.choice(kind, "name of the solver", ("highs", "pulp"))
    if kind == "highs" and not inner:
        from bayesrisk.reconstruction.solvers.highs import HighsSolver  # loads a compiled solver

        return HighsSolver(**options)
    if kind == "pulp" and inner:
        from bayesrisk.reconstruction.solvers._pulp import PulpSolver  # slow to import

        return PulpSolver(inner, **options)
    raise ArgumentError(f"solver must be highs or pulp:NAME, got {shown(name)}")
