"""Certificates of what counts prove: how large they are, and how long a check takes."""

import json
import time

import numpy as np
import pytest
from targets import Aim, faster, lasting
from test_claims import county_blocks

from bayesrisk.reconstruction import check_proof, find_claims, prove

SENTENCES = 60


@pytest.fixture(scope="module")
def proved():
    """Return tables of 40 blocks, claims about households, and certificates of the first ones."""
    tables = county_blocks()[0]
    claims = find_claims(tables)
    return tables, claims, prove(tables, claims, most=SENTENCES)


def test_checks_beside_proofs_made_anew(compare, proved):
    """Aim: a check is 3 times faster than making the proof from the counts."""
    tables, claims, proofs = proved
    assert len(proofs.certificates) == SENTENCES
    assert all(proofs.certificates)
    compare(
        lambda: [check_proof.check(given) for given in proofs.certificates],
        lambda: prove(tables, claims, most=SENTENCES),
        aims={"certificates about households: a check, beside making the proof": faster(3)},
        rounds=2,
    )


def test_sizes_and_seconds(measured, proved):
    """Aim: the median certificate has 30 kB and is checked in 50 ms, 90 % in 150 ms."""
    sizes, seconds = [], []
    for given in proved[2].certificates:
        sizes.append(len(json.dumps(given, indent=1)) / 1000)
        start = time.process_time()
        check_proof.check(given)
        seconds.append(time.process_time() - start)
    assert len(sizes) == SENTENCES
    name = f"certificates of {SENTENCES} claims about ten households"
    half, most = np.quantile(sizes, [0.5, 0.9])
    measured(f"{name}: median size", Aim(30, "kB"), half)
    measured(f"{name}: 90 % are no larger", Aim(50, "kB"), most)
    half, most = np.quantile(seconds, [0.5, 0.9])
    measured(f"{name}: median check", lasting(0.050), half)
    measured(f"{name}: 90 % are checked within", lasting(0.150), most)
