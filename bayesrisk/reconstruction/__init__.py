"""Records reconstructed from published tables: systems, solvers, proofs and variability.

This is code of the adversary: it sees published tables, and never the records.
"""

from typing import TYPE_CHECKING

from bayesrisk._base.old_names import moved as _moved
from bayesrisk.constraints.model import Status
from bayesrisk.reconstruction.claims import Claims, claim_sentences, find_claims, verify_claims
from bayesrisk.reconstruction.matching import match_records
from bayesrisk.reconstruction.persons import Persons, age_bin
from bayesrisk.reconstruction.proofs import Proofs, prove
from bayesrisk.reconstruction.records.bounds import count_bounds
from bayesrisk.reconstruction.records.reconstruction import Reconstruction, reconstruct, record_form
from bayesrisk.reconstruction.records.variability import solution_variability
from bayesrisk.reconstruction.registry import available_attacks, make_attack, register_attack

__all__ = [
    "Claims",
    "Persons",
    "Proofs",
    "Reconstruction",
    "Status",
    "age_bin",
    "available_attacks",
    "claim_sentences",
    "count_bounds",
    "find_claims",
    "make_attack",
    "match_records",
    "prove",
    "reconstruct",
    "record_form",
    "register_attack",
    "solution_variability",
    "verify_claims",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return _moved(__name__, name)
