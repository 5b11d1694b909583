"""Claims about the records of a place that hold in every data set with the published counts."""

from bayesrisk.reconstruction.claims.result import (
    ClaimOptions,
    Claims,
    ClaimsAttack,
    find_claims,
    generate_claims,
    verify_claims,
)
from bayesrisk.reconstruction.claims.sentences import claim_sentences

__all__ = [
    "ClaimOptions",
    "Claims",
    "ClaimsAttack",
    "claim_sentences",
    "find_claims",
    "generate_claims",
    "verify_claims",
]
