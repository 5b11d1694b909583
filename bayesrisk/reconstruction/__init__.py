"""Records from published tables: systems, solvers, reconstruction and its variability.

Code of the adversary: it sees published tables, never what holds records.
"""

from bayesrisk.reconstruction.claims import Claims, claim_sentences, find_claims, verify_claims
from bayesrisk.reconstruction.linkage import Persons, age_bin, match_records
from bayesrisk.reconstruction.occupancy import (
    HouseholdLaw,
    detect_occupancy,
    occupancy_statistics,
    occupancy_variability,
    reconstruct_occupancy,
)
from bayesrisk.reconstruction.proofs import Proofs, prove
from bayesrisk.reconstruction.records.bounds import count_bounds
from bayesrisk.reconstruction.records.reconstruction import (
    Reconstruction,
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

__all__ = [
    "Claims",
    "HouseholdLaw",
    "Persons",
    "Proofs",
    "Reconstruction",
    "Status",
    "age_bin",
    "available_attacks",
    "claim_sentences",
    "count_bounds",
    "detect_occupancy",
    "find_claims",
    "make_attack",
    "match_records",
    "occupancy_statistics",
    "occupancy_variability",
    "prove",
    "reconstruct",
    "reconstruct_occupancy",
    "record_form",
    "register_attack",
    "solution_variability",
    "verify_claims",
]
