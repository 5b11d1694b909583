"""Certificates of random small releases: the checker accepts each, and no changed sentence."""

import copy

import pytest
from range_cases import range_case

from bayesrisk.reconstruction import check_proof, count_bounds, find_claims, reconstruct
from bayesrisk.reconstruction.proofs import prove


def test_certificates_are_accepted_and_stronger_sentences_are_not():
    accepted, refused = 0, 0
    for seed in range(8):
        _, _, cells, tables, _, _ = range_case(seed)
        made = [prove(tables, find_claims(tables, cells=cells), cells=cells)]
        made += [
            prove(tables, f) for f in (count_bounds(tables), reconstruct(tables, scope="block"))
        ]
        for certificate in (c for proofs in made for c in proofs.certificates):
            assert check_proof.check(certificate) == certificate["sentence"]
            accepted += 1
            for name in certificate["refutations"]:
                damaged = copy.deepcopy(certificate)
                del damaged["refutations"][name]
                with pytest.raises(check_proof.RefusedError):
                    check_proof.check(damaged)
                refused += 1
    assert accepted > 20
    assert refused > 20
