"""Records from published tables: systems, solvers, reconstruction and its variability.

Code of the adversary: it sees published tables, never what holds records.
"""

from bayesrisk.reconstruction.claims import (
    ClaimOptions,
    Claims,
    ClaimsAttack,
    claim_sentences,
    find_claims,
    generate_claims,
    verify_claims,
)
from bayesrisk.reconstruction.linkage import (
    AGE_BIN_STARTS,
    Guesses,
    Matching,
    Persons,
    age_bin,
    match_records,
    modal_cells,
    modal_guess,
    proportional_guess,
)
from bayesrisk.reconstruction.occupancy import (
    OCCUPANCY_STATUS,
    HouseholdLaw,
    OccupancyAttack,
    OccupancyDetection,
    OccupancyReconstruction,
    OccupancyStatistics,
    OccupancyVariability,
    detect_occupancy,
    occupancy_statistics,
    occupancy_variability,
    reconstruct_occupancy,
)
from bayesrisk.reconstruction.records.reconstruction import (
    Reconstruction,
    ReconstructionAttack,
    SolutionVariability,
    reconstruct,
    record_form,
    solution_variability,
)
from bayesrisk.reconstruction.registry import (
    Status,
    available_attacks,
    make_attack,
    register_attack,
)
from bayesrisk.reconstruction.solvers import (
    IntegerModel,
    Limits,
    SolverBackend,
    SolverResult,
    make_solver,
)

__all__ = [
    "AGE_BIN_STARTS",
    "OCCUPANCY_STATUS",
    "ClaimOptions",
    "Claims",
    "ClaimsAttack",
    "Guesses",
    "HouseholdLaw",
    "IntegerModel",
    "Limits",
    "Matching",
    "OccupancyAttack",
    "OccupancyDetection",
    "OccupancyReconstruction",
    "OccupancyStatistics",
    "OccupancyVariability",
    "Persons",
    "Reconstruction",
    "ReconstructionAttack",
    "SolutionVariability",
    "SolverBackend",
    "SolverResult",
    "Status",
    "age_bin",
    "available_attacks",
    "claim_sentences",
    "detect_occupancy",
    "find_claims",
    "generate_claims",
    "make_attack",
    "make_solver",
    "match_records",
    "modal_cells",
    "modal_guess",
    "occupancy_statistics",
    "occupancy_variability",
    "proportional_guess",
    "reconstruct",
    "reconstruct_occupancy",
    "record_form",
    "register_attack",
    "solution_variability",
    "verify_claims",
]
