"""Claims about the records of a place that hold in every data set with the published counts."""

from bayesrisk.reconstruction.claims.options import ClaimOptions
from bayesrisk.reconstruction.claims.result import Claims
from bayesrisk.reconstruction.claims.sentences import claim_sentences
from bayesrisk.reconstruction.claims.verification import (
    ClaimsAttack,
    find_claims,
    generate_claims,
    verify_claims,
)

__all__ = [
    "ClaimOptions",
    "Claims",
    "ClaimsAttack",
    "claim_sentences",
    "find_claims",
    "generate_claims",
    "verify_claims",
]
