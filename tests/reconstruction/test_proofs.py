"""Certificates of random small releases: true, accepted, and refused once they are false.

The oracle (``oracles/proofs.py``) knows nothing of the package: it adds up every sum for each kind
of record that a certificate names, and lists all data sets of few records that its counts allow.
"""

import copy
import json
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from oracles.proofs import KINDS, is_false, is_proof, kinds_of, weights_of, within
from proof_cases import BLOCK_KINDS, certificates, damaged
from range_cases import publish, range_case

from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.mechanisms import Rounding
from bayesrisk.reconstruction import check_proof, count_bounds, find_claims, prove, reconstruct
from bayesrisk.tables import (
    Attribute,
    Geography,
    PublishedTables,
    Records,
    Schema,
    Table,
    Workload,
    tabulate,
)
from bayesrisk.tables.likelihoods import Likelihood


def is_refused(certificate):
    """Return whether the checker refuses a certificate, its sentence in words as it must be."""
    try:
        certificate["sentence"] = check_proof.sentence(certificate)
        check_proof.check(check_proof.read(json.dumps(certificate).encode()))
    except check_proof.RefusedError:
        return True
    return False


def stronger(certificate):
    """Yield copies that say one record more, or one fewer, of each part."""
    for at, part in enumerate(certificate["says"]):
        for end, step in (("least", 1), ("most", -1)):
            if part[end] is not None:
                changed = copy.deepcopy(certificate)
                changed["says"][at][end] += step
                yield changed


def shifted(certificate):
    """Yield copies in which a published count is one more, or one less."""
    for at, count in enumerate(certificate["counts"]):
        for step in (1, -1):
            changed = copy.deepcopy(certificate)
            for end in ("published", "low", "high"):
                if count[end] is not None:
                    changed["counts"][at][end] += step
            yield changed


def answers(seed):
    """Return a random case, and the certificates of its claims, bounds and records."""
    case = range_case(seed)
    cells, tables = case[2], case[3]
    claims = prove(tables, find_claims(tables, cells=cells), cells=cells)
    others = [
        prove(tables, count_bounds(tables)),
        prove(tables, reconstruct(tables, scope="block")),
    ]
    return case, [claims, *others]


def compared(seeds):
    """Compare the certificates of random cases with both oracles; return numbers by what it is."""
    seen = dict.fromkeys(("statements", "certificates", "false"), 0)
    for seed in seeds:
        (schema, _, cells, _, data_sets, _), answered = answers(seed)
        codes = np.array(np.unravel_index(cells, schema.shape)).T
        for certificate in (c for proofs in answered for c in proofs.certificates):
            seen["statements"] += 1
            if not certificate:
                continue
            seen["certificates"] += 1
            assert not is_refused(certificate)
            # True of all data sets of the release ...
            everything = {a.name: [0, a.size - 1] for a in schema.attributes}
            for part in certificate["says"]:
                named = {"places": ["001"], "attributes": everything}
                w = weights_of([part], named)[0].reshape(schema.shape)[tuple(codes.T)]
                assert within(data_sets @ w, part["least"], part["most"]).all()
            # ... and of all small ones that the counts of the certificate alone allow.
            if len(kinds_of(certificate)) <= KINDS:
                assert not is_false(certificate)
                for changed in (*stronger(certificate), *shifted(certificate)):
                    if is_false(changed):
                        seen["false"] += 1
                        assert is_refused(changed)
    return seen


@pytest.mark.parametrize(
    "first",
    [*range(0, 16, 4), *(pytest.param(n, marks=pytest.mark.slow) for n in range(16, 32, 4))],
)
def test_certificates_are_true_and_false_ones_are_refused(first):
    seen = compared(range(first, first + 4))
    assert seen["certificates"] == seen["statements"] > 5
    assert seen["false"] > 20


def judged(kind, number):
    """Compare the checker with the oracle on certificates of a kind of block and damaged copies.

    A copy is damaged if the oracle, which adds up every sum for each kind of record, finds that it
    proves nothing; others are proofs of a true statement, and must be accepted.
    Returns how many certificates were accepted and damaged copies refused, by what they are.
    """
    seen = Counter()
    for at, (_, certificate) in enumerate(certificates(kind, number)):
        seen["certificates"] += 1
        seen[certificate["kind"]] += 1
        seen["branched"] += any("branch" in t for t in certificate["refutations"].values())
        assert is_proof(certificate)
        assert not is_refused(certificate)
        few = len(kinds_of(certificate)) <= KINDS
        seen["enumerated"] += few
        assert not (few and is_false(certificate))
        for name, changed in damaged(certificate, at):
            if is_proof(changed):
                seen["still proofs"] += 1
                assert not is_refused(changed)
                assert not (few and is_false(changed))
            else:
                seen[name] += 1
                seen["damaged"] += 1
                assert is_refused(changed)
    return seen


@pytest.mark.parametrize("kind", BLOCK_KINDS)
def test_the_checker_agrees_with_the_oracle_on_blocks_of_all_kinds(kind):
    seen = judged(kind, 12)
    assert seen["certificates"] == 12
    assert min(seen["a count"], seen["a name"], seen["a sign"]) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("kind", BLOCK_KINDS)
def test_ten_thousand_certificates_and_more_damaged_ones(kind, record_property):
    """1,000 certificates of each of ten kinds of blocks; at least 2,000 damaged ones of each."""
    seen = judged(kind, 1000)
    record_property("numbers", dict(seen))
    assert seen["certificates"] == 1000
    assert seen["damaged"] >= 2000


def town():
    """Return records of two blocks of a tract, a total and a table of each attribute."""
    geography = Geography("g", ("tract", "block"), (1, 2))
    schema = Schema("town", (Attribute("sex", 2), Attribute("age", 2)), geography)
    people = {"block": ["11"] * 3 + ["12"] * 2, "sex": [0, 0, 1, 0, 0], "age": [0, 0, 1, 1, 0]}
    records = Records.from_frame(pd.DataFrame(people), schema=schema)
    one = {n: Table(n, ("0", "1"), {n: np.eye(2, dtype=int)}) for n in schema.names}
    return records, Table("N", ("all",), {}), one


def test_two_levels():
    records, total, one = town()
    tracts = {("tract", name): table for name, table in one.items()}
    tables = tabulate(records, Workload(records.schema, {**tracts, ("block", "N"): total}))
    asked = Workload(records.schema, {("block", name): table for name, table in one.items()})
    bounds = count_bounds(tables, scope="tract", queries=asked)
    levels = []
    for certificate in prove(tables, bounds, queries=asked).certificates:
        assert not is_refused(certificate)
        assert not is_false(certificate)
        changed = [c for c in (*stronger(certificate), *shifted(certificate)) if is_false(c)]
        assert changed
        assert all(is_refused(c) for c in changed)
        levels.append({count["level"] for count in certificate["counts"]})
    assert {"tract", "block"} in levels


def test_two_releases_of_the_same_people():
    records, total, one = town()
    work = Workload(records.schema, {("tract", t.name): t for t in (total, *one.values())})
    given = {
        f"by {base}": Rounding(base=base, method="nearest")
        .release(records, workload=work, places=["11", "12"], rng=1)
        .tables
        for base in (2, 3)
    }
    tables = PublishedTables.combine(given)
    releases = []
    for certificate in prove(tables, count_bounds(tables, scope="tract")).certificates:
        assert not is_refused(certificate)
        assert not is_false(certificate)
        changed = [c for c in stronger(certificate) if is_false(c)]
        assert all(is_refused(c) for c in changed)
        releases.append({c["table"].partition(":")[0] for c in certificate["counts"]})
    assert {"by 2", "by 3"} in releases


@pytest.mark.parametrize("counts", [(3, 1, 1), (2, 3, 0)])
def test_counts_that_contradict_each_other(counts):
    schema = Schema("s", (Attribute("sex", 2),), Geography("flat", ("block",), (3,)))
    tables = [Table("N", ("all",), {}), Table("sex", ("0", "1"), {"sex": np.eye(2, dtype=int)})]
    published = publish(schema, tables, [None, None], counts, [False] * 3)
    records = reconstruct(published, scope="block")
    for result in (find_claims(published), count_bounds(published), records):
        (certificate,) = prove(published, result).certificates
        assert certificate["kind"] == "impossible"
        assert not is_refused(certificate)
        assert not is_false(certificate)
        changed = [c for c in shifted(certificate) if is_false(c)]
        assert changed
        assert all(is_refused(c) for c in changed)


def test_the_checker_alone(tmp_path):
    """It runs without the package, and says by its status what became of the files."""
    people = pd.DataFrame({"sex": ["F", "F", "F", "M"], "ward": ["A", "A", "B", "A"]})
    schema = Schema.from_frame(people)
    records = Records.from_frame(people, schema=schema)
    tables = tabulate(records, Workload.of(schema, [(), ["sex"], ["ward"]]))
    asked = Workload.of(schema, [["sex", "ward"]])
    proofs = prove(tables, count_bounds(tables, queries=asked), queries=asked)
    folder = tmp_path / "proofs"
    proofs.write(folder)
    names = proofs.statements["file"].tolist()
    assert sorted(p.name for p in folder.iterdir()) == sorted(
        [*names, "check_proof.html", "check_proof.py", "proofs.csv"]
    )

    def run(*files):
        command = [sys.executable, "-I", "check_proof.py", *files]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    done = run(*names)
    assert (done.returncode, done.stdout.count("accepted"), done.stderr) == (0, len(names), "")
    assert all(f"{name}: accepted" in done.stdout for name in names)
    assert "3 with 'ward' 'A'; published 3, exact" in done.stdout
    assert "3 with 'ward' 'A' (count 1), less 1 with 'sex' 'M' (count 2), leaves 2" in done.stdout
    copied = json.loads((folder / names[0]).read_text())
    copied["says"][0]["least"] += 1
    copied["sentence"] = check_proof.sentence(copied)
    (folder / "copy.json").write_text(json.dumps(copied))
    (folder / "half.json").write_text(json.dumps(copied)[:100])
    done = run("copy.json", names[0])
    assert (done.returncode, done.stdout.count("accepted"), done.stderr) == (1, 1, "")
    assert "copy.json: refused" in done.stdout
    for files in ((), ("half.json",), ("nothing.json",), ("copy.json", "nothing.json")):
        done = run(*files)
        assert (done.returncode, done.stderr) == (2, "")


def test_other_answers_are_refused():
    tables = range_case(0)[3]
    with pytest.raises(ArgumentTypeError, match="result"):
        prove(tables, "claims")
    assert prove(tables, find_claims(tables), most=1).to_frame().shape[0] == 1


@pytest.mark.parametrize("limit", ["STEPS", "BYTES", "LABELS", "CHARACTERS", "LEVELS"])
def test_what_the_checker_does_not_read_stays_undecided(limit, monkeypatch):
    monkeypatch.setattr(check_proof, limit, 0)
    tables = range_case(0)[3]
    for result in (find_claims(tables), count_bounds(tables)):
        found = prove(tables, result)
        assert set(found.statements["status"]) == {"undecided"}
        assert not any(found.certificates)


class OneMoreOrLess(Likelihood):
    """Counts change by at most one: a law that no checker knows."""

    kind = "one-more-or-less"
    bounded = True

    def support(self, released):
        out = np.asarray(released, dtype=np.int64)
        return np.maximum(out - 1, 0), out + 1


def test_counts_under_a_law_of_ones_own_prove_nothing():
    schema = Schema("s", (Attribute("sex", 2),), Geography("flat", ("block",), (3,)))
    tables = [Table("N", ("all",), {}), Table("sex", ("0", "1"), {"sex": np.eye(2, dtype=int)})]
    # Of two people, one or two are of the second sex, as at most one is of the first.
    published = publish(schema, tables, [None, OneMoreOrLess()], (2, 0, 1), [False] * 3)
    bounds = count_bounds(published)
    assert bounds.counts.set_index("cell").loc["1", "low"] == 1
    assert set(prove(published, bounds).statements["status"]) == {"undecided"}
    # What the exact counts alone prove has a certificate, which names no other.
    published = publish(schema, tables, [OneMoreOrLess(), None], (3, 1, 1), [False] * 3)
    (certificate,) = prove(published, count_bounds(published)).certificates
    assert {count["table"] for count in certificate["counts"]} == {"sex"}


def test_a_place_of_zeros_that_contradicts_a_larger_one_has_a_certificate():
    geography = Geography("town", ("tract", "block"), (1, 2))
    schema = Schema("s", (Attribute("sex", 2),), geography)
    levels = ("tract", "block")
    work = Workload(schema, {(level, "N"): Table("N", ("all",), {}) for level in levels})
    counts = {("tract", "N"): np.array([[1]]), ("block", "N"): np.array([[0]])}
    places = {"tract": ["1"], "block": ["11"]}
    tables = PublishedTables(work, places, {key: sp.csr_array(c) for key, c in counts.items()})
    (certificate,) = prove(tables, count_bounds(tables, scope="tract")).certificates
    assert certificate["kind"] == "impossible"
    assert is_proof(certificate)


def test_statements_that_the_time_does_not_reach_stay_without_a_certificate():
    tables = range_case(3)[3]
    bounds = count_bounds(tables)
    every = prove(tables, bounds)
    late = prove(tables, bounds, time_limit=1e-9)
    assert len(late.statements) == len(every.statements) > 0
    assert not any(late.certificates)
    assert (late.statements["status"] == "undecided").all()
    assert prove(tables, bounds, time_limit=600.0).certificates == every.certificates
