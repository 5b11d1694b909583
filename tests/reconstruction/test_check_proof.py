"""The checker as a command, and its limits: hostile files are refused in little time and memory."""

import itertools
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from oracles.proofs import kinds_of, labels_in, labels_of, weights_of
from proof_cases import certificates

from bayesrisk.reconstruction import check_proof

CHECKER = Path(check_proof.__file__)


def run(*arguments, memory=None):
    """Run the checker alone, with at most so many bytes of memory."""

    def limit():
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    return subprocess.run(
        [sys.executable, "-I", str(CHECKER), *map(str, arguments)],
        capture_output=True, text=True, check=False, preexec_fn=limit, timeout=120,
    )  # fmt: skip


def proof(**changes):
    """Return a proof that at least one record is there, with other keys."""
    made = {
        "format": check_proof.FORMAT, "kind": "count", "sentence": "", "levels": {"all": 0},
        "places": [""], "names": {}, "attributes": {},
        "says": [{"level": "all", "place": "", "sets": {}, "least": 1, "most": None}],
        "counts": [{
            "level": "all", "place": "", "table": "N", "published": 1,
            "law": {"law": "exact"}, "low": 1, "high": 1, "sets": {},
        }],
        "assumed": [], "refutations": {"fewer 1": {"sum": {"count 1": 1, "not": -1}}},
    }  # fmt: skip
    made["sentence"] = "Number of records: at least 1 in all."
    return made | changes


def test_branches_are_accepted_up_to_their_limit():
    def chain(depth):
        leaf = {"sum": {"count 1": 1, "not": -1}}
        tree = leaf
        for _ in range(depth):
            part = [{"place": "", "sets": {}}]
            tree = {"branch": part, "most": 9, "below": tree, "above": leaf}
        return {"fewer 1": tree}

    assert check_proof.check(proof(refutations=chain(50)))
    for depth in (51, 400):
        with pytest.raises(check_proof.RefusedError):
            check_proof.check(proof(refutations=chain(depth)))


def wide(axes, terms=60):
    """Return a proof whose sum has many states: random weights of many attributes."""
    rng = np.random.default_rng(axes)
    attributes = {f"a{i}": ["x", "y"] for i in range(axes)}
    count, sums = proof()["counts"][0], {"count 1": 10**6, "not": -1}
    counts = [count]
    for number in range(2, terms + 2):
        sets = {
            n: {"x": int(rng.integers(1, 50)), "y": int(rng.integers(1, 50))} for n in attributes
        }
        counts.append({**count, "published": 0, "low": 0, "high": 0, "sets": sets})
        sums[f"count {number}"] = int(rng.integers(1, 10**6)) * (-1) ** number
    return proof(attributes=attributes, counts=counts, refutations={"fewer 1": {"sum": sums}})


HOSTILE = {
    "a long range": json.dumps(proof(attributes={"age": [0, 99_999_999_999]})),
    "a longer range": json.dumps(proof(attributes={"age": [0, 10**40]})),
    "many ranges": json.dumps(proof(attributes={f"a{i}": [0, 99_999] for i in range(5000)})),
    "many levels": json.dumps(
        proof(
            levels={f"l{i}": i for i in range(1001)},
            places=[f"{i:01000d}" for i in range(3000)],
        )
    ),
    "many bytes": json.dumps(proof()) + " " * 4_000_000,
    "many brackets": "[" * 1_000_000,
    "many lists": "[" + "[]," * 1_300_000 + "[]]",
    "many objects": '{"a":' * 100_000,
    "many states": json.dumps(wide(24)),
    "many digits": json.dumps(proof(assumed=[])).replace('"low": 1', '"low": ' + "9" * 3_000_000),
    "a long kind": json.dumps(proof(kind="k" * 1_000_000)),
    "a long sentence": json.dumps(proof(sentence="\x1b[31m accepted: \n" * 10_000)),
    "half a character": '{"format": "\\ud800"}',
    "no JSON": "accepted",
    "nothing": "",
    "a list": "[1]",
    "a first key": '{"format": "bayesrisk-proof-1"}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_in_little_time_memory_and_print(name, tmp_path):
    file = tmp_path / "proof.json"
    file.write_text(HOSTILE[name], encoding="utf-8")
    start = time.perf_counter()
    done = run(file, memory=1_000_000_000)
    assert time.perf_counter() - start < 60
    assert (done.returncode in (1, 2), done.stderr) == (True, "")
    assert len(done.stdout) <= 201
    assert done.stdout.isascii()
    assert done.stdout.count("\n") == 1
    assert "accepted:" not in done.stdout


def test_what_is_no_regular_file_cannot_be_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe{}")
    (tmp_path / "mark").write_bytes(b"\xef\xbb\xbf" + json.dumps(proof()).encode())
    for name in ("/dev/zero", tmp_path / "pipe", tmp_path, tmp_path / "none", tmp_path / "bytes"):
        done = run(name)
        assert (done.returncode, done.stderr) == (2, "")
        assert "cannot be read" in done.stdout
    assert run(tmp_path / "mark").returncode == 2


def test_names_of_files_cannot_write_lines(tmp_path):
    file = tmp_path / "x\nproof-0001.json: accepted: Number of records: exactly 5."
    file.write_text(json.dumps(proof()), encoding="utf-8")
    done = run(file)
    assert done.returncode == 0
    assert not any(line.startswith("proof-0001") for line in done.stdout.splitlines())


def test_without_a_file_it_says_what_it_is():
    for arguments, status in (((), 2), (("--help",), 0), (("-h",), 0)):
        done = run(*arguments)
        assert (done.returncode, done.stderr) == (status, "")
        assert "python check_proof.py proof-0001.json" in done.stdout


def test_long_lists_are_cut_unless_all_is_asked_for(tmp_path):
    file = tmp_path / "proof.json"
    labels = [f"label {i}" for i in range(30)]
    file.write_text(json.dumps(proof(attributes={"a": labels})), encoding="utf-8")
    assert "'a', 30 in all: 'label 0'," in run(file).stdout
    assert "'label 19', and 10 more (--all)\n" in run(file).stdout
    assert "'label 29'\n" in run("--all", file).stdout


def test_a_sentence_may_be_long():
    labels = [f"label {i}" for i in range(2000)]
    made = proof(attributes={"a": labels})
    made["says"][0]["sets"] = made["counts"][0]["sets"] = {"a": dict.fromkeys(labels, 1)}
    made["sentence"] = check_proof.sentence(made)
    assert len(check_proof.check(made)) > 10_000


# -----------------------------------------------------------------------------
# Steps, counted as the page says, level by level and with no code of the checker.


def steps_of_sum(tree, known, certificate):
    """Return the steps of one sum."""
    terms = [(m, box) for name, m in tree["sum"].items() for box in known[name]]
    places = certificate["places"]
    axes = []
    if any(not all(p.startswith(box["place"]) for p in places) for _, box in terms):
        rows = [[int(p.startswith(box["place"])) for p in places] for _, box in terms]
        axes.append(rows)
    for name, given in certificate["attributes"].items():
        if any(name in box["sets"] for _, box in terms):
            labels, rows = labels_of(given), []
            for _, box in terms:
                chosen = labels_in(box["sets"][name], given) if name in box["sets"] else None
                rows.append([1 if chosen is None else chosen.get(x, 0) for x in labels])
            axes.append(rows)
    steps = len(terms) * (1 + sum(len(rows[0]) for rows in axes))
    states = {tuple(m for m, _ in terms)}
    for depth in range(len(axes) + 1):
        later = axes[depth:]
        high = [np.prod([max(r[t]) for r in later], dtype=object) for t in range(len(terms))]
        low = [np.prod([min(r[t]) for r in later], dtype=object) for t in range(len(terms))]
        states = {
            s
            for s in states
            if sum(n * (h if n > 0 else w) for n, h, w in zip(s, high, low, strict=True)) > 0
        }
        if depth == len(axes):
            assert not states
            return steps
        classes = set(zip(*axes[depth], strict=True))
        steps += len(states) * len(terms) * len(classes)
        states = {
            tuple(n * w for n, w in zip(s, c, strict=True))
            for s, c in itertools.product(states, classes)
        }
    return steps


def steps_of(certificate):
    """Return the steps of a certificate."""
    says = certificate["says"]
    known = {f"count {i}": [count] for i, count in enumerate(certificate["counts"], 1)}
    known |= {f"assumed {i}": [{"place": "", **a}] for i, a in enumerate(certificate["assumed"], 1)}

    def inside(tree, here, depth=1):
        if "branch" not in tree:
            return steps_of_sum(tree, here, certificate) if "sum" in tree else 0
        there = here | {f"branch {depth}": tree["branch"]}
        return sum(inside(tree[side], there, depth + 1) for side in ("below", "above"))

    total = 0
    for goal, tree in certificate["refutations"].items():
        part = [says[int(goal.split()[1]) - 1]] if says else []
        total += inside(tree, known | {"not": part})
    if certificate["kind"] == "records":
        *parts, last = says
        names = {"last": -1, **{f"part {i}": 1 for i in range(len(parts))}}
        boxes = {"last": [last], **{f"part {i}": [p] for i, p in enumerate(parts)}}
        total += steps_of_sum({"sum": names}, boxes, certificate)
    return total


@pytest.mark.parametrize("kind", ["rounded", "two levels", "persons and households", "ranges"])
def test_steps_are_those_of_the_page(kind, monkeypatch):
    for _, certificate in certificates(kind, 25):
        steps = steps_of(certificate)
        monkeypatch.setattr(check_proof, "STEPS", steps)
        assert check_proof.check(certificate)
        if steps:
            monkeypatch.setattr(check_proof, "STEPS", steps - 1)
            with pytest.raises(check_proof.RefusedError, match="steps"):
                check_proof.check(certificate)
        monkeypatch.undo()


def test_sums_of_many_labels_are_right():
    """Sums over long ranges: a weight at the end, in the middle or nowhere."""
    rng = np.random.default_rng(1)
    for _ in range(60):
        attributes = {"a": [-3, 4], "b": ["x", "y", "z"]}
        boxes = []
        for _ in range(3):
            first, last = sorted(rng.integers(-3, 5, 2).tolist())
            sets = {"a": [[first, last, int(rng.integers(1, 4))]]} if rng.random() < 0.8 else {}
            if rng.random() < 0.6:
                sets["b"] = {
                    str(x): int(rng.integers(1, 3)) for x in rng.choice(list("xyz"), 2, False)
                }
            boxes.append({"place": str(rng.choice(["", "1", "12"])), "sets": sets})
        made = {"levels": {"t": 1, "b": 2}, "places": ["11", "12", "21"], "names": {}}
        made["attributes"] = attributes
        frame = check_proof.read_frame(made)
        multiples = rng.integers(-3, 4, 3).tolist()
        terms = [
            (m, check_proof.read_box(box["place"], box["sets"], frame, ""))
            for m, box in zip(multiples, boxes, strict=True)
        ]
        sums = multiples @ weights_of(boxes, made)
        found = check_proof.excess(terms, frame)
        assert (found is None) == bool((sums <= 0).all())
        if found is not None:
            kinds = kinds_of(made)
            names = [None, *attributes]
            chosen = [
                value
                for kind, value in zip(kinds, sums, strict=True)
                if all(k == found[n] for n, k in zip(names, kind, strict=True) if n in found)
            ]
            assert chosen
            assert min(chosen) > 0


@pytest.mark.parametrize("name", ["check_proof.py", "check_safety.py"])
@pytest.mark.parametrize("words", [["--help"], ["absent.json"], ["absent.json"] * 2000])
def test_a_checker_ends_silently_with_the_reader_of_its_lines(name, words):
    command = [sys.executable, str(CHECKER.with_name(name)), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141
