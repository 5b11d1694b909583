"""Integer programs through HiGHS, or any solver that PuLP drives, with answers that are checked."""

from bayesrisk.reconstruction.solvers.model import (
    BOUND_ERROR,
    IntegerModel,
    Limits,
    Raw,
    SolverBackend,
    SolverResult,
    make_solver,
    settle_answer,
)

__all__ = [
    "BOUND_ERROR",
    "IntegerModel",
    "Limits",
    "Raw",
    "SolverBackend",
    "SolverResult",
    "make_solver",
    "settle_answer",
]
