"""Records from published tables: systems, solvers, reconstruction and its variability.

Code of the adversary: it sees published tables, never what holds records.
"""

from bayesrisk.reconstruction.age_bins import AGE_BIN_STARTS, age_bin
from bayesrisk.reconstruction.attack import ReconstructionAttack, record_form
from bayesrisk.reconstruction.guessers import modal_cells, modal_guess, proportional_guess
from bayesrisk.reconstruction.matching import Matching, match_records
from bayesrisk.reconstruction.reconstruct import Reconstruction, reconstruct
from bayesrisk.reconstruction.registry import available_attacks, make_attack, register_attack
from bayesrisk.reconstruction.solvers import (
    IntegerModel,
    Limits,
    SolverResult,
    make_solver,
)
from bayesrisk.reconstruction.variability import SolutionVariability, solution_variability

__all__ = [
    "AGE_BIN_STARTS",
    "IntegerModel",
    "Limits",
    "Matching",
    "Reconstruction",
    "ReconstructionAttack",
    "SolutionVariability",
    "SolverResult",
    "age_bin",
    "available_attacks",
    "make_attack",
    "make_solver",
    "match_records",
    "modal_cells",
    "modal_guess",
    "proportional_guess",
    "reconstruct",
    "record_form",
    "register_attack",
    "solution_variability",
]
