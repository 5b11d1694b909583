"""Certificates of safety: accepted where plans are safe, refused where they are damaged."""

import copy
import functools
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from oracles.plans import data_sets
from support.plan_worlds import small_world

from bayesrisk.mechanisms import Identity
from bayesrisk.reconstruction import check_proof, check_safety
from bayesrisk.risk.planning.ladders import PlanLimits
from bayesrisk.risk.planning.release_plan import plan
from bayesrisk.risk.planning.safety import safety_certificates, write_certificates
from bayesrisk.tables import Records


@functools.cache
def planned(seed):
    """Return the plan of a world with limits of records and counts, its release, and its places."""
    rng = np.random.default_rng(seed)
    records, work, codes, ladders, *_ = small_world(rng)
    limits = PlanLimits(recovered=0, proved=0)
    result = plan(records, work, limits=limits, ladders=ladders, places=codes)
    if not result.rules or {t for one in result.rules.values() for t in one.values()} == {
        "unpublished"
    }:
        return None
    release = result.mechanism.release(records, workload=work, places=codes)
    return result, release, limits, work


@functools.cache
def certified(seed):
    """Return the certificates of a planned release by place, which no test changes."""
    case = planned(seed)
    if case is None:
        return []
    result, release, limits, work = case
    return list(safety_certificates(release.tables, work, limits, result.places))


def certificates(seeds):
    for seed in seeds:
        for code, document in certified(seed):
            yield seed, code, document


def test_plans_of_small_worlds_have_certificates():
    documents = [document for _, _, document in certificates(range(30))]
    assert len(documents) > 15
    for document in documents:
        assert document["limits"] == {"recovered": 0, "proved": 0}
        lines = check_safety.report(check_proof.read(json.dumps(document).encode()))
        assert "the limit is 0" in lines[1]


def test_each_data_set_of_a_certificate_makes_the_same_release():
    """Made records, tabulated and published by the rules, it is the release byte for byte."""
    compared = 0
    for seed in range(12):
        case = planned(seed)
        if case is None:
            continue
        result, release, _, work = case
        places = result.places
        documents = [document for _, document in certified(seed)]
        for change in range(max(len(d["changes"]) for d in documents) + 1):
            rows = []
            for document in documents:
                number = {(b, k): n for b, k, n in document["start"]}
                for b, k, n in dict(enumerate(document["changes"], 1)).get(change, ()):
                    number[b, k] = number.get((b, k), 0) + n
                for (b, k), n in number.items():
                    rows += [{"block": document["places"][b], **document["kinds"][k]}] * n
            frame = pd.DataFrame(rows, columns=["block", "a", "b"])
            frame = frame.astype({"block": str, "a": int, "b": int})
            other = result.mechanism.release(
                Records.from_frame(frame, schema=work.schema), workload=work, places=places
            )
            assert other.tables == release.tables
            compared += 1
    assert compared > 30


def test_limits_that_are_exceeded_have_no_certificate():
    """Under no protection counts of 1 and 2 are known: no file says otherwise."""
    exceeded = 0
    for seed in range(10):
        records, work, codes, *_ = small_world(np.random.default_rng(seed))
        release = Identity().release(records, workload=work, places=codes)
        small = any(np.isin(c.toarray(), (1, 2)).any() for c in release.tables.counts.values())
        found = [d for _, d in safety_certificates(release.tables, work, PlanLimits(recovered=0))]
        assert any(document is None for document in found) == small
        exceeded += small
    assert exceeded > 5


def damages(document, rng):
    """Yield damaged copies: another number, a missing data set, another end, fewer records."""
    for name in ("low", "published", "high"):
        one = copy.deepcopy(document)
        entry = one["counts"][int(rng.integers(len(one["counts"])))]
        entry[name] = (entry[name] or 0) + 7
        yield one
    one = copy.deepcopy(document)
    one["start"][0][2] += 40
    yield one
    one = copy.deepcopy(document)
    one["start"][0][2] = -1
    yield one
    one = copy.deepcopy(document)
    one["asked"][0]["cell"] = "words that nothing ties to its labels"
    yield one
    one = copy.deepcopy(document)
    one["kinds"].append(one["kinds"][0])
    yield one
    one = copy.deepcopy(document)
    one["limits"]["proved"] = -1
    yield one
    one = copy.deepcopy(document)
    one["changes"] = []
    yield one


def test_damaged_certificates_are_refused():
    rng = np.random.default_rng(5)
    refused = accepted = 0
    for _, _, document in certificates(range(12)):
        if not document["start"]:
            continue
        for damaged in damages(document, rng):
            try:
                check_safety.report(damaged)
                accepted += 1
                # A start without changes is no proof, unless it has nothing that could be known.
                assert not damaged["changes"] or damaged == document
            except check_proof.RefusedError:
                refused += 1
    assert refused > 60
    assert accepted < refused / 10


@pytest.mark.parametrize("seed", range(6))
def test_a_lying_checker_would_be_seen(seed):
    """The numbers of the checker are never below those of all data sets that fit."""
    case = planned(seed)
    if case is None:
        return
    result, release, limits, work = case
    for _, document in safety_certificates(release.tables, work, limits, result.places):
        numbers, frame, _ = check_safety.limits_kept(document)
        kinds, places = len(document["kinds"]), len(frame.places)
        if kinds * places > 6:
            continue
        sums = check_safety.CellSums(
            document, frame, check_safety.read_kinds(document, frame, [*frame.attributes.items()])
        )
        fitting = []
        for row in data_sets(kinds * places, 9):
            counts = sums.counts({divmod(i, kinds): int(n) for i, n in enumerate(row) if n})
            if all(sums.fit(i, counts.get(i, 0)) for i in range(sums.published)):
                fitting.append(row)
        assert np.min(fitting, axis=0).sum() <= numbers["proved"]


def test_the_checker_needs_only_the_file_beside_it(tmp_path):
    case = next(case for case in map(planned, range(10)) if case is not None)
    result, release, limits, work = case
    written, total, missing = write_certificates(
        tmp_path, release.tables, work, limits, result.places
    )
    assert written == total
    assert set(missing.values()) == {0}
    files = sorted(str(f) for f in tmp_path.glob("safety-*.json"))
    command = [sys.executable, "-I", str(tmp_path / "check_safety.py"), *files]
    command[1:2] = ["-S"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("accepted") == len(files)
