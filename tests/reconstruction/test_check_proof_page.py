"""The page that checks certificates: the answers and the lines of ``check_proof.py``, to the byte.

Both are written from one specification, in two languages.  The page is run by Node, and in a
browser as a reader has it.
"""

import base64
import contextlib
import json
from collections import Counter

import pytest
from browser import Browser, needs_browser
from hypothesis import given, settings
from oracles.printed_proofs import read_lines
from oracles.proofs import KINDS, is_false, kinds_of
from proof_cases import BLOCK_KINDS, answered, certificates, damaged
from second_checker import PAGE, python_lines, script, verdicts
from test_check_proof import HOSTILE, proof, steps_of, wide
from test_check_proof_forgeries import FORGERIES, NOT_READ, forgeries, listed, sound, text_of

from bayesrisk.reconstruction import check_proof


def worded(certificate):
    """Give a certificate the sentence of its parts, where they make one."""
    with contextlib.suppress(*NOT_READ):
        certificate["sentence"] = check_proof.sentence(certificate)
    return certificate


def drawn(number):
    """Return files that the forger makes."""
    files = []

    @settings(max_examples=number, deadline=None, derandomize=True, database=None)
    @given(forgeries())
    def keep(made):
        files.append(text_of(made))

    keep()
    return files


def samples(number, copies, forged):
    """Return files: so many certificates, damaged copies of them, and forgeries."""
    made = [
        (seed, c)
        for kind in BLOCK_KINDS
        for seed, c in certificates(kind, number // len(BLOCK_KINDS))
    ]
    broken = [worded(b) for seed, c in made for _, b in damaged(c, seed)]
    broken = broken[:: len(broken) // copies][:copies]
    return {
        "certificates": [json.dumps(c).encode() for _, c in made],
        "damaged copies": [json.dumps(b).encode() for b in broken],
        "by hand": [text_of(make()) for make in (sound, listed, *FORGERIES.values())],
        "a forger": drawn(forged),
    }


def compared(files):
    """Return how many files both accept and refuse, by their kind; nothing false is accepted."""
    seen = Counter()
    for kind, entries in files.items():
        for file, page in zip(entries, verdicts(entries, everything=True), strict=True):
            lines = python_lines(file, everything=True)
            assert lines == page, file
            answer = "refused" if lines is None else "accepted"
            seen[f"{kind}, {answer}"] += 1
            if lines is None or kind == "by hand":
                continue
            printed = read_lines(lines)
            if len(kinds_of(printed)) <= KINDS:
                seen[f"{kind}, enumerated"] += 1
                assert not is_false(printed), file
    return seen


def test_both_checkers_say_the_same():
    seen = compared(samples(10 * len(BLOCK_KINDS), 200, 100))
    assert seen["certificates, accepted"] == 10 * len(BLOCK_KINDS)
    assert seen["damaged copies, refused"] > 100
    assert seen["damaged copies, accepted"] > 10
    assert seen["by hand, refused"] > 40
    assert seen["a forger, refused"] > 20


@pytest.mark.slow
def test_both_checkers_say_the_same_many_times(record_property):
    seen = compared(samples(500 * len(BLOCK_KINDS), 10_000, 5000))
    record_property("numbers", dict(seen))
    assert seen["certificates, accepted"] == 500 * len(BLOCK_KINDS)
    assert seen["damaged copies, refused"] + seen["damaged copies, accepted"] == 10_000


# -----------------------------------------------------------------------------
# Bytes, nesting, names and numbers at their limits.


def named(name):
    """Return a proof in which a level, an attribute, its labels and their names are one text."""
    made = proof(levels={name: 0}, attributes={name: [name, "other"]})
    for entry in (*made["says"], *made["counts"]):
        entry |= {"level": name, "sets": {name: {name: 2, "other": 1}}}
    return worded(made)


def chain(depth):
    """Return a proof with so many branches within one another."""
    leaf = tree = {"sum": {"count 1": 1, "not": -1}}
    for _ in range(depth):
        part = [{"place": "", "sets": {}}]
        tree = {"branch": part, "most": 9, "below": tree, "above": leaf}
    return proof(refutations={"fewer 1": tree})


def many_boxes(number):
    """Return a branch of so many boxes, which are at most as many records and never used."""
    leaf = {"sum": {"count 1": 1, "not": -1}}
    boxes = [{"place": "", "sets": {}}] * number
    above = {"sum": {"branch 1": 1, "count 1": -number}}
    tree = {"branch": boxes, "most": number, "below": leaf, "above": above}
    return proof(refutations={"fewer 1": tree})


def many_sums(goals, labels=300):
    """Return a proof of records whose goals each print a count of many long labels.

    A sum has some 1,000 characters for each label of the attribute ``a``.
    """
    long, short = [f"{i:04d}" + "x" * 990 for i in range(labels)], [str(i) for i in range(goals)]
    made = proof(attributes={"a": long, "b": short}, kind="records")
    (count,), (says,) = made["counts"], made["says"]
    none = count | {"published": 0, "low": 0, "high": 0, "sets": {"a": dict.fromkeys(long, 1)}}
    each = [count | {"sets": {"b": {b: 1}}} for b in short]
    all_ = count | {"published": goals, "low": goals, "high": goals}
    parts = [says | {"sets": {"b": {b: 1}}, "least": 1} for b in short]
    sums = {
        f"fewer {i}": {"sum": {f"count {i + 1}": 1, "count 1": -1, "not": -1}}
        for i in range(1, goals + 1)
    }
    sums[f"more {goals + 1}"] = {"sum": {f"count {goals + 2}": -1, "count 1": -1, "not": 1}}
    made |= {"counts": [none, *each, all_], "refutations": sums}
    made["says"] = [*parts, says | {"least": None, "most": goals}]
    return made | {"sentence": check_proof.sentence(made)}


def many_names(number):
    """Return a proof of so many counts at a place whose name is printed in 10,000 characters."""
    made = proof(levels={"all": 0, "ward": 1}, places=["1"], names={"1": "\U0001f600" * 1000})
    (count,) = made["counts"]
    made["counts"] += [count | {"level": "ward", "place": "1"}] * number
    return worded(made)


def raw(old, new):
    """Return the bytes of a proof with others in their place."""
    text = json.dumps(proof()).encode()
    assert old in text
    return text.replace(old, new, 1)


def with_law(law, y, low, high):
    """Return a proof with one more count of a law."""
    made = proof()
    made["counts"].append(
        made["counts"][0] | {"law": law, "published": y, "low": low, "high": high}
    )
    return made


KEYED = {"law": "cell-key", "changes": [[0], [0, -1, 1], [-2, 2]], "repeat": 2}
CHANGED = {"law": "perturbed", "largest": 3}
RANGED = {"law": "ranges", "edges": [0, 3], "values": [0, 5], "step": 5}
ACCEPTED = {
    "a plain one": proof(),
    **{f"a name {name!a}": named(name) for name in (
        "__proto__", "constructor", "toString", "hasOwnProperty", "2", "", "\u00e4", "\U0001f600",
        "\u2028", "\x00\x7f", "'\\", "not", "count 1",
    )},
    "keys that look like numbers": worded(proof(attributes={"10": ["b"], "2": ["10", "2", "1"]})),
    "50 branches": chain(50),
    "many boxes": many_boxes(130_000),
    "a text of 1,000 characters": named("\U0001f600" * 1000),
    "white space": b" \t\r\n" + json.dumps(proof(), indent=1).encode() + b"\n ",
    "escapes": raw(b'"format"', b'"\\u0066orm\\u0061t"'),
    "a number of 18 digits": with_law({"law": "exact"}, 10**18 - 1, 10**18 - 1, 10**18 - 1),
    "a negative number": with_law({"law": "exact"}, -5, -5, -5),
    "a cell key": with_law(KEYED, 100, 98, 102),
    "a change": with_law(CHANGED, 5, 2, 8),
    "a change to 0 or more": with_law(CHANGED, -2, 0, 1),
    "a change that cannot be": with_law(CHANGED, -4, 1, 0),
    "a range that goes on": with_law(RANGED, 20, 18, 22),
    "never published": with_law(RANGED, 4, 1, 0),
    "long sums": many_sums(2),
    "a long name of many places": many_names(1000),
    "as large as may be": json.dumps(proof()).encode().ljust(4_000_000),
}  # fmt: skip

REFUSED = {
    "a list as a kind": proof(kind=["count"]), "a kind of all objects": proof(kind="constructor"),
    "a law of all objects": with_law({"law": "constructor"}, 1, 1, 1),
    "a text too long": named("\U0001f600" * 1001), "half a character": named("\ud800"),
    "the other half": named("\udc00x"), "halves that do not fit": named("\udc00\ud800"),
    "a byte order mark": b"\xef\xbb\xbf" + json.dumps(proof()).encode(),
    "no UTF-8": raw(b'"N"', b'"\xff"'), "a surrogate in UTF-8": raw(b'"N"', b'"\xed\xa0\x80"'),
    "a long form": raw(b'"N"', b'"\xc1\x81"'),
    "another encoding": json.dumps(proof()).encode("utf-16"),
    "one byte too many": json.dumps(proof()).encode().ljust(4_000_001),
    "a line break in a text": raw(b'"N"', b'"\n"'), "an unknown escape": raw(b'"N"', b'"\\x41"'),
    "a comma at the end": raw(b'"assumed": []', b'"assumed": [,]'),
    "another comma at the end": raw(b'"names": {}', b'"names": {"":"",}'),
    "a plus": raw(b'"published": 1', b'"published": +1'),
    "zeros in front": raw(b'"published": 1', b'"published": 01'),
    "a fraction": raw(b'"published": 1', b'"published": 1.0'),
    "a fraction of nothing": raw(b'"published": 1', b'"published": 1.'),
    "hexadecimal": raw(b'"published": 1', b'"published": 0x1'),
    "19 digits": raw(b'"published": 1', b'"published": 1000000000000000000'),
    "white space of others": raw(b'"names": {}', b'"names":\xc2\xa0{}'),
    "a key twice by an escape": raw(b'"names": {}', b'"names": {}, "n\\u0061mes": {}'),
    "two texts": json.dumps(proof()).encode() * 2, "brackets": b"[" * 4_000_000,
    "objects": b'{"a":' * 700_000, "a string of 4 MB": b'"' + b"a" * 3_999_998 + b'"',
    "an open string": b'"' + b"\\u0061" * 600_000,
    "deep values": proof(names={"": json.loads("[" * 500 + "]" * 500)}), "51 branches": chain(51),
    "many states": wide(24), "sums longer than may be printed": many_sums(3),
    "counts longer than may be printed": many_names(1200),
}  # fmt: skip


def bytes_of(made):
    return made if isinstance(made, bytes) else json.dumps(made).encode()


def test_what_is_right_at_its_limits_is_accepted_by_both():
    files = [bytes_of(made) for made in ACCEPTED.values()]
    answers = verdicts(files)
    assert [name for name, page in zip(ACCEPTED, answers, strict=True) if not page] == []
    for name, file, page in zip(ACCEPTED, files, answers, strict=True):
        assert python_lines(file) == page, name


def test_what_is_wrong_beyond_a_limit_is_refused_by_both():
    hostile = {name: text.encode() for name, text in HOSTILE.items()}
    files = {name: bytes_of(made) for name, made in {**REFUSED, **hostile}.items()}
    page = verdicts([*files.values()])
    assert [name for name, lines in zip(files, page, strict=True) if lines] == []
    assert [name for name, file in files.items() if python_lines(file)] == []


def test_both_count_the_steps_of_the_specification(monkeypatch):
    # Sums without an axis cost something, too: each of their boxes one step.
    made = [(proof(), 2), (many_boxes(1000), 2 + 1001)]
    for kind in ("rounded", "two levels", "ranges"):
        made += [(c, steps_of(c)) for _, c in certificates(kind, 6)]
    for certificate, steps in made:
        file = json.dumps(certificate).encode()
        for number in (steps, steps - 1) if steps else (0,):
            monkeypatch.setattr(check_proof, "STEPS", number)
            lines = python_lines(file)
            assert (lines is None) == (number < steps)
            monkeypatch.undo()
            assert verdicts([file], steps=number) == [lines]


def test_long_lists_are_cut_alike():
    labels = [f"label {i}" for i in range(30)]
    file = json.dumps(proof(attributes={"a": labels})).encode()
    for everything in (False, True):
        (page,) = verdicts([file], everything=everything)
        assert page == python_lines(file, everything=everything)
        assert any("'label 29'" in line for line in page) == everything


# -----------------------------------------------------------------------------
# The page in a browser, as it lies beside the certificates.


def test_the_script_is_short():
    lines = script().splitlines()
    assert len(lines) <= 300
    assert max(map(len, lines)) <= 160


def test_the_page_lies_beside_the_proofs(tmp_path):
    answered("exact", 0)[1][0].write(tmp_path / "proofs")
    for name in ("check_proof.html", "check_proof.py"):
        assert (tmp_path / "proofs" / name).read_bytes() == PAGE.with_name(name).read_bytes()


#: Gives files to the page: dropped on it, or chosen.
GIVE = """((files, dropped) => {
  const given = new DataTransfer();
  for (const [name, data] of files) {
    given.items.add(new File([Uint8Array.from(atob(data), c => c.charCodeAt(0))], name));
  }
  const input = document.getElementById('files');
  if (dropped) {
    const drop = document.getElementById('drop');
    drop.dispatchEvent(new DragEvent('drop', {dataTransfer: given, bubbles: true}));
  } else {
    input.files = given.files;
    input.dispatchEvent(new Event('change'));
  }
})"""
ANSWERS = """[...document.querySelectorAll('article')].map(a => [
  a.className, a.querySelector('h2').textContent,
  ...[...a.querySelectorAll('p')].map(p => p.textContent)])"""


@needs_browser
def test_a_certificate_that_is_dropped_or_chosen_is_read_in_the_browser(tmp_path):
    made, name = sound(), "<img src=x onerror=alert(1)>\nproof-2.json: accepted"
    forged = {name: text_of(FORGERIES["a weight of 0"]()), "other.json": text_of(made)}
    files = {"proof-0001.json": text_of(made), **forged}
    given = [[name, base64.b64encode(file).decode()] for name, file in files.items()]
    with Browser(tmp_path / "profile") as browser:
        for width, dropped in ((1280, False), (390, True)):
            browser.open(PAGE, width=width)
            assert browser.run(ANSWERS) == []
            browser.run(f"{GIVE}({json.dumps(given)}, {json.dumps(dropped)})")
            browser.wait_until(lambda: len(browser.run(ANSWERS)) == 3)
            other, wrong, first = browser.run(ANSWERS)
            assert first[:3] == ["accepted", "proof-0001.json: accepted", made["sentence"]]
            assert first[2:] == other[2:] == python_lines(text_of(made))
            assert wrong[0] == "refused"
            assert wrong[1].endswith(r"alert(1)>\u{a}proof-2.json: accepted': refused")
            assert "\n" not in wrong[1]
            assert browser.run("document.scrollingElement.scrollWidth") <= width
        # Nothing leaves the page, whatever is asked for.
        assert browser.faults == []
        assert browser.run("performance.getEntriesByType('resource').length") == 0
        browser.run("fetch('x').then(() => 'left', () => 'kept').then(t => (document.title = t))")
        browser.wait_until(lambda: browser.run("document.title") in ("left", "kept"))
        assert browser.run("document.title") == "kept"
        assert any("Content Security Policy" in fault for fault in browser.faults)
