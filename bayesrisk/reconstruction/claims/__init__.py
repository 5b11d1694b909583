"""Claims about records that hold in every data set with the published counts."""

from bayesrisk.reconstruction.claims.result import Claims, claim_sentences
from bayesrisk.reconstruction.claims.verification import (
    ClaimOptions,
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
