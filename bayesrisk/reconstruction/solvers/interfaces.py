"""What a solver must offer."""

from typing import Protocol, runtime_checkable

from bayesrisk._types import IntArray
from bayesrisk.reconstruction.solvers.model import IntegerModel, Limits, SolverResult


@runtime_checkable
class SolverBackend(Protocol):
    """Maximises a linear objective over an integer program, and says how sure the answer is.

    The model, its limits and the answer are those of ``bayesrisk.reconstruction.solvers``.
    """

    name: str

    def solve(
        self, model: IntegerModel, objective: IntArray, *, limits: Limits | None = None
    ) -> SolverResult:
        """Return the status, values, objective and bound, checked in integer arithmetic."""
