"""Forged certificates: a false sentence is refused, or what is printed with it is plainly false.

The truth is a small town whose records are listed, and what is published of it.  A certificate
deceives if the checker accepts it, all that is printed of counts, places and labels is as
published, and the sentence is false of the records.  What is printed is read from the lines alone
(``oracles/printed_proofs.py``).
"""

import contextlib
import copy
import itertools
import json
from collections import Counter
from functools import cache

import pytest
from hypothesis import given, settings, strategies as st
from oracles.printed_proofs import read_lines
from oracles.proofs import KINDS, ends_by_law, is_false, kinds_of, may_become
from proof_cases import BLOCK_KINDS, certificates

from bayesrisk.reconstruction import check_proof

#: Records of the town: block (its ward is the first digit), sex, age.
TOWN = [
    *[("11", "F", 0)] * 2,
    *[("11", "M", 1)] * 3,
    *[("12", "F", 30)],
    *[("21", "M", 2)] * 2,
    *[("21", "F", 40)],
]
LEVELS, BLOCKS = {"all": 0, "ward": 1, "block": 2}, ["11", "12", "21"]
NAMES = {"1": "North", "2": "South"}
LABELS = {"sex": ["F", "M"], "age": [0, 99]}
EXACT, ROUNDED = {"law": "exact"}, {"law": "nearest", "base": 5}


def number_of(place, sets):
    """Return how many records of the town are at a place and have labels, by weight."""
    total = 0
    for block, sex, age in TOWN:
        weight = int(block.startswith(place))
        for name, label in (("sex", sex), ("age", age)):
            chosen = sets.get(name, {label: 1})
            if isinstance(chosen, list):
                chosen = {code: w for first, last, w in chosen for code in range(first, last + 1)}
            weight *= chosen.get(label, 0)
        total += weight
    return total


def published(level, place, sets, law=EXACT):
    """Return a count of the town as it is published."""
    (number,) = may_become(law, number_of(place, sets))
    low, high = (number, number) if law == EXACT else (max(number - 2, 0), number + 2)
    ends = {"published": number, "law": law, "low": low, "high": high}
    named = {"level": level, "place": place, "table": "sex"}
    return {**named, **ends, "sets": sets}


def part(level, place, sets, least, most):
    return {"level": level, "place": place, "sets": sets, "least": least, "most": most}


def whole(says, counts, trees, kind="count"):
    """Return a certificate about the town, with its sentence."""
    made = {
        "format": check_proof.FORMAT, "kind": kind, "sentence": "", "levels": dict(LEVELS),
        "places": list(BLOCKS), "names": dict(NAMES), "attributes": copy.deepcopy(LABELS),
        "says": says, "counts": counts, "assumed": [], "refutations": trees,
    }  # fmt: skip
    return copy.deepcopy(made) | {"sentence": check_proof.sentence(made)}


WOMEN, MEN = {"sex": {"F": 1}}, {"sex": {"M": 1}}
IN_WARD_1 = [
    published("ward", "1", {}),
    published("ward", "1", MEN),
    published("all", "", MEN, ROUNDED),
]


def sound():
    """Return a proof that three women live in ward 1: six people, less three men."""
    trees = {
        "fewer 1": {"sum": {"count 1": 1, "count 2": -1, "not": -1}},
        "more 1": {"sum": {"count 1": -1, "count 2": 1, "not": 1}},
    }
    return whole([part("ward", "1", WOMEN, 3, 3)], IN_WARD_1, trees)


def listed():
    """Return a proof of all records of block 21, by sex."""
    counts = [
        published("block", "21", WOMEN),
        published("block", "21", MEN),
        published("block", "21", {}),
    ]
    says = [
        part("block", "21", WOMEN, 1, None),
        part("block", "21", MEN, 2, None),
        part("block", "21", {}, None, 3),
    ]
    trees = {
        "fewer 1": {"sum": {"count 1": 1, "not": -1}},
        "fewer 2": {"sum": {"count 2": 1, "not": -1}},
        "more 3": {"sum": {"count 3": -1, "not": 1}},
    }
    return whole(says, counts, trees, kind="records")


def text_of(certificate):
    return certificate if isinstance(certificate, bytes) else json.dumps(certificate).encode()


def lines_of(certificate):
    """Return the lines of an accepted certificate, None where it is refused."""
    try:
        return check_proof.report(check_proof.read(text_of(certificate)), everything=True)
    except (check_proof.RefusedError, ValueError):
        return None


def is_as_published(printed):
    """Return whether all that is printed of counts, places, names and labels is true."""
    attributes = {name: LABELS.get(name) for name in printed["attributes"]}
    right = printed["places"] == BLOCKS and printed["attributes"] == attributes
    right = right and not printed["assumed"]
    for entry in (*printed["counts"], *printed["says"]):
        level, place = entry["level"], entry["place"]
        right = right and (not level or LEVELS.get(level) == len(place))
        right = right and entry.get("name", printed["name"]) == NAMES.get(place, "")
    for count in printed["counts"]:
        right = right and count["law"] in (EXACT, ROUNDED)
        right = right and set(count["sets"]) <= set(LABELS)
        number = number_of(count["place"], count["sets"])
        right = right and count["published"] in may_become(count["law"], number)
    return right


def is_true(printed):
    """Return whether a sentence is true of the town, as it is printed."""
    numbers = [number_of(p["place"], p["sets"]) for p in printed["says"]]
    inside = [
        (p["least"] is None or n >= p["least"]) and (p["most"] is None or n <= p["most"])
        for n, p in zip(numbers, printed["says"], strict=True)
    ]
    if printed["kind"] == "records":
        inside.append(sum(numbers[:-1]) == number_of(printed["says"][-1]["place"], {}))
    return bool(inside) and all(inside)


def deceives(certificate):
    lines = lines_of(certificate)
    if lines is None:
        return False
    printed = read_lines(lines)
    return is_as_published(printed) and not is_true(printed)


@pytest.mark.parametrize("made", [sound, listed])
def test_sound_certificates_are_accepted_and_printed_as_they_are(made):
    certificate = made()
    printed = read_lines(lines_of(certificate))
    assert is_as_published(printed)
    assert is_true(printed)
    assert [p["sets"] for p in printed["says"]] == [p["sets"] for p in certificate["says"]]
    for name in ("low", "high", "sets", "place", "law", "published"):
        assert [c[name] for c in printed["counts"]] == [c[name] for c in certificate["counts"]]


def test_the_truth_tells_true_sentences_from_false_ones():
    """The judge of forgeries sees a false sentence, and a count that is not as published."""
    printed = read_lines(lines_of(sound()))
    printed["says"][0]["least"] = printed["says"][0]["most"] = 4
    assert not is_true(printed)
    printed = read_lines(lines_of(listed()))
    printed["counts"][0]["sets"] = MEN
    assert not is_as_published(printed)


# -----------------------------------------------------------------------------
# Forgeries by hand.  Each says of the women of ward 1, or of all records, what is false.


def saying(least, most, **changes):
    """Return the sound proof with another sentence, and refutations that name one count."""
    made = sound() | copy.deepcopy(changes)
    made["says"] = [part("ward", "1", WOMEN, least, most)]
    return made


def worded(made):
    """Give a certificate the sentence that its parts make, where they make one."""
    try:
        made["sentence"] = check_proof.sentence(made)
    except (check_proof.RefusedError, TypeError, KeyError, ValueError):
        made["sentence"] = "Number of records in 'ward' '1': exactly 5 with 'sex' 'F'."
    return made


def ends_that(low, high, law=None):
    """Return five women proved by a count that contradicts itself, with such ends."""
    made = saying(5, 5, refutations={g: {"none": "count 3"} for g in ("fewer 1", "more 1")})
    made["counts"][2] |= {"low": low, "high": high, **({} if law is None else {"law": law})}
    return worded(made)


def five_by(**terms):
    """Return five women proved by one sum of each side."""
    names = {name.replace("_", " "): m for name, m in terms.items()}
    trees = {"fewer 1": {"sum": {**names, "not": -1}}, "more 1": sound()["refutations"]["more 1"]}
    return worded(saying(5, None, refutations={"fewer 1": trees["fewer 1"]}))


def with_sets(number, sets, least):
    """Return a proof of at least so many women, of a count whose sets are others."""
    made = five_by(count_1=1, count_2=-1)
    made["says"][0]["least"] = least
    made["counts"][number]["sets"] = sets
    return worded(made)


def raw(old, new, made=None):
    """Return a certificate as bytes, with one text exchanged for another."""
    text = text_of(five_by(count_1=1, count_2=-1) if made is None else made)
    assert old in text
    return text.replace(old, new, 1)


def stale_branch():
    """A branch that is known on the other side only: more than nine women."""
    made = worded(saying(5, None))
    women = {"branch": [{"place": "1", "sets": WOMEN}]}
    few = {"sum": {"count 1": 1, "count 2": -1, "branch 1": -1}}
    many = {"sum": {"branch 2": 1, "branch 1": -1}}
    tree = {**women, "most": 2, "below": {**women, "most": 9, "below": few, "above": many}}
    made["refutations"] = {"fewer 1": {**tree, "above": {"sum": {"branch 2": 1, "not": -1}}}}
    return made


def other_labels():
    """The count of men under the name of that of women."""
    trees = {
        "fewer 1": {"sum": {"count 1": 1, "not": -1}},
        "more 1": {"sum": {"count 1": -1, "not": 1}},
    }
    counts = [published("all", "", WOMEN) | {"sets": MEN}]
    return whole([part("all", "", MEN, 4, 4)], counts, trees)


def twice_as_many():
    """Each woman counts twice, so that three are at most one."""
    counts = [published("ward", "1", WOMEN) | {"sets": {"sex": {"F": 2}}}]
    trees = {"more 1": {"sum": {"count 1": -1, "not": 2}}}
    return whole([part("ward", "1", WOMEN, None, 1)], counts, trees)


def without_men(**changes):
    """All of ward 1 are women, as there are no men."""
    made = saying(5, None, **changes)
    made["counts"] = made["counts"][:1]
    more = {"assumed 1": -1} if "assumed" in changes else {}
    made["refutations"] = {"fewer 1": {"sum": {"count 1": 1, **more, "not": -1}}}
    return worded(made)


def other_places():
    """Parts of several places under the name of the last one."""
    made = listed()
    made["says"][0] = part("block", "11", WOMEN, 1, None)
    made["says"][2]["most"] = 3
    return worded(made)


def fewer_places():
    """Blocks of the ward are left out, so that all of the town are in it."""
    made = saying(None, 2, places=["12", "21"], counts=[published("all", "", WOMEN)])
    made["says"] = [part("ward", "2", WOMEN, 4, None)]
    made["places"] = ["21"]
    made["names"] = {"2": "South"}
    made["refutations"] = {"fewer 1": {"sum": {"count 1": 1, "not": -1}}}
    return worded(made)


def no_others():
    """All women are listed, and the sentence would say that there are no others."""
    made = listed()
    made["says"] = [made["says"][0], part("block", "21", WOMEN, None, 1)]
    made["refutations"] = {
        "fewer 1": {"sum": {"count 1": 1, "not": -1}},
        "more 2": {"sum": {"count 1": -1, "not": 1}},
    }
    return worded(made)


def renamed(**changes):
    made = sound() | changes
    return worded(made)


def in_level(level):
    """A level whose name says something."""
    made = sound()
    made["levels"] = {"all": 0, level: 1, "block": 2}
    for entry in (*made["says"], *made["counts"][:2]):
        entry["level"] = level
    return worded(made)


def whole_town_as_ward():
    """A count of all places, called one of a ward."""
    made = five_by(count_1=1)
    made["counts"][0] = published("all", "", WOMEN) | {"level": "ward"}
    return worded(made)


def cut_goal():
    """Only one side of "exactly" is refuted."""
    made = worded(saying(2, 2))
    made["refutations"] = {"fewer 1": sound()["refutations"]["fewer 1"]}
    return made


def labelled():
    """A count of men that is said to be of women, in words that nothing ties to its labels."""
    made = sound()
    made["counts"][1]["cell"] = "F"
    return made


FORGERIES = {
    "a label beside its sets": labelled,
    "ends as texts": lambda: ends_that("8", "12"),
    "ends as texts of other digits": lambda: ends_that("\u0669", "10"),
    "ends with fractions": lambda: ends_that(5.5, 5.25),
    "ends that are true": lambda: ends_that(True, False),
    "ends that are no numbers": lambda: ends_that(float("nan"), float("-inf")),
    "ends against the law": lambda: ends_that(6, 4),
    "a law without a name": lambda: ends_that(6, 4, law={}),
    "a law in words": lambda: ends_that(6, 4, law="rounded, so 6 to 4"),
    "a law with more keys": lambda: ends_that(3, 7, law={"law": "nearest", "base": 5, "low": 9}),
    "a base of 0": lambda: ends_that(6, 4, law={"law": "nearest", "base": 0}),
    "a base as a text": lambda: ends_that(6, 4, law={"law": "nearest", "base": "5"}),
    "another base": lambda: ends_that(1, 0, law={"law": "nearest", "base": 4}),
    "withheld, with a number": lambda: ends_that(
        6, 4, law={"law": "withheld", "least": 6, "most": 4}
    ),
    "ranges that do not begin at 0": lambda: ends_that(
        9, 9, law={"law": "ranges", "edges": [9], "values": [5], "step": None}
    ),
    "other labels than the cell": other_labels,
    "a negative weight": lambda: with_sets(0, {"sex": {"F": 1, "M": -1}}, 5),
    "a weight of 0": lambda: with_sets(1, {"sex": {"M": 0}}, 5),
    "a weight with a fraction": lambda: with_sets(1, {"sex": {"M": 0.5}}, 5),
    "a larger weight": twice_as_many,
    "no labels": lambda: with_sets(1, {"sex": {}}, 5),
    "a list of labels": lambda: with_sets(1, {"sex": ["M", "M"]}, 5),
    "an attribute in other letters": lambda: with_sets(1, {"Sex": {"M": 1}}, 5),
    "a label that looks alike": lambda: with_sets(1, {"sex": {"\u041c": 1}}, 5),
    "ranges that overlap": lambda: with_sets(1, {"age": [[0, 3, 1], [1, 5, 1]]}, 5),
    "a range that runs backwards": lambda: with_sets(1, {"age": [[3, 0, 1]]}, 5),
    "a range beyond the attribute": lambda: with_sets(1, {"age": [[90, 100, 1]]}, 5),
    "a range as a text": lambda: with_sets(1, {"age": {"007": 1}}, 5),
    "a key twice": lambda: raw(b'"M": 1}', b'"M": 2, "M": 1}'),
    "ends twice": lambda: raw(b'"low": 6', b'"low": 9, "low": 6'),
    "an unknown key": lambda: raw(b'"low": 6', b'"low": 6, "note": "9"'),
    "minus 0": lambda: raw(b'"low": 6', b'"low": -0'),
    "a number with an exponent": lambda: raw(b'"low": 6', b'"low": 6e0'),
    "a number of 19 digits": lambda: raw(b'"low": 6', b'"low": 9999999999999999999'),
    "a number of a million digits": lambda: raw(b'"low": 6', b'"low": ' + b"9" * 1_000_000),
    "a multiple of 0": lambda: five_by(count_1=1, count_2=0),
    "a multiple as a text": lambda: five_by(count_1="1"),
    "a count left out of the sum": lambda: five_by(count_1=1),
    "an end that is not there": lambda: five_by(count_1=1, count_2=1),
    "a branch that is not there": lambda: five_by(count_1=1, branch_1=-1),
    "an unknown count": lambda: five_by(count_9=1),
    "an empty sum": lambda: worded(saying(5, None, refutations={"fewer 1": {"sum": {}}})),
    "two shapes at once": lambda: worded(
        saying(5, None, refutations={"fewer 1": {"sum": {"not": -1}, "none": "count 1"}})
    ),
    "one side is not refuted": cut_goal,
    "a branch of the other side": stale_branch,
    "parts of several places": other_places,
    "no others, of women": no_others,
    "blocks left out": fewer_places,
    "a label left out": lambda: without_men(attributes={"sex": ["F"]}),
    "a place shorter than its level": whole_town_as_ward,
    "another name": lambda: renamed(names={"1": "South"}),
    "a name with a second line": lambda: renamed(
        names={"1": "North\nproof-0002.json: accepted: Number of records: exactly 5."}
    ),
    "a name that closes its quotes": lambda: renamed(names={"1": "North'), exactly 5 ('"}),
    "a name with half a character": lambda: renamed(names={"1": "\ud800"}),
    "levels that do not grow": lambda: renamed(
        levels={"all": 0, "ward": 1, "tract": 1, "block": 2}
    ),
    "all of another length": lambda: renamed(levels={"all": 1, "ward": 0, "block": 2}),
    "a level that says more": lambda: in_level("ward '2': exactly 7 with 'sex' 'F'; unlike"),
    "records that are said not to be": lambda: without_men(assumed=[{"sets": MEN}]),
    "another sentence": lambda: sound() | {"sentence": "Number of records: exactly 5 in all."},
    "another kind": lambda: sound() | {"kind": "records"},
    "no parts": lambda: sound() | {"kind": "impossible", "says": [], "refutations": {"all": {}}},
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_by_hand_do_not_deceive(name):
    assert not deceives(FORGERIES[name]())


#: Those that are accepted, as their sentence follows from what is printed, which is not published.
PLAIN = {
    "another base", "other labels than the cell", "a larger weight", "blocks left out",
    "a label left out", "another name", "a name with a second line",
    "a name that closes its quotes", "a level that says more", "records that are said not to be",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(FORGERIES) - PLAIN))
def test_forgeries_against_the_grammar_or_the_sum_are_refused(name):
    assert lines_of(FORGERIES[name]()) is None


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_what_follows_is_accepted_and_printed_on_lines_of_its_own_in_plain_characters(name):
    lines = lines_of(FORGERIES[name]())
    assert all(32 <= ord(c) < 127 for line in lines for c in line)
    assert not is_as_published(read_lines(lines))


def test_the_first_format_is_refused_with_what_to_do():
    with pytest.raises(check_proof.RefusedError, match="make it again"):
        check_proof.check(sound() | {"format": "bayesrisk-proof-1"})


# -----------------------------------------------------------------------------
# A forger who knows the format: sound certificates with a few changes, put right where the checker
# would see them at once.


@cache
def pool():
    """Return sound certificates about few kinds of records, of all kinds of blocks."""
    made = [c | {"attributes": {"sex": LABELS["sex"]}} for c in (sound(), listed())]
    for kind in BLOCK_KINDS:
        found = (c for _, c in certificates(kind, 40) if len(kinds_of(c)) <= KINDS)
        made += itertools.islice(found, 6)
    return made


def nodes(value, above=()):
    """Yield where each value of a certificate stands."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*above, key)
        if isinstance(inner, (dict, list)):
            yield from nodes(inner, (*above, key))


def at(certificate, path):
    for key in path:
        certificate = certificate[key]
    return certificate


ODD = [
    *(
        None,
        True,
        "",
        "0",
        "007",
        -1,
        0,
        1,
        2,
        10**17,
        10**18,
        0.5,
        1e300,
        [],
        {},
        "count 1",
        "not",
    ),
    *({"law": "exact"}, {"law": "withheld", "least": 0, "most": None}),
    *({"law": "random", "base": 3}, {"law": "nearest", "base": 4}),
    {"law": "perturbed", "largest": 2},
]


def change(draw, made):
    """Change one value of a certificate, or one key."""
    paths = list(nodes(made))
    wanted = draw(st.sampled_from(["says", "counts", "refutations", "attributes", "places", "any"]))
    paths = [p for p in paths if p[0] == wanted] or paths
    path = draw(st.sampled_from(paths))
    parent, key, value = at(made, path[:-1]), path[-1], at(made, path)
    way = draw(st.sampled_from([*("step", "other") * 3, "odd", "drop", "again", "key"]))
    if way == "step" and type(value) is int:
        parent[key] = value + draw(st.sampled_from([-2, -1, 1, 2])) * draw(
            st.sampled_from([1, 1, 9])
        )
    elif way == "odd":
        parent[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
    elif way == "drop":
        del parent[key]
    elif way == "again" and isinstance(parent, list):
        parent.append(copy.deepcopy(value))
    elif way == "key" and isinstance(parent, dict):
        names = [p[-1] for p in paths if isinstance(p[-1], str)]
        parent[draw(st.sampled_from(names))] = parent.pop(key)
    else:
        alike = [p for p in paths if type(at(made, p)) is type(value)]
        parent[key] = copy.deepcopy(at(made, draw(st.sampled_from(alike))))


NOT_READ = (check_proof.RefusedError, TypeError, KeyError, ValueError, AttributeError)


@st.composite
def forgeries(draw):
    """Draw a sound certificate with one to three changes, its ends and its sentence put right."""
    made = copy.deepcopy(draw(st.sampled_from(pool())))
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        change(draw, made)
    counts = made.get("counts")
    for count in counts if isinstance(counts, list) else ():
        with contextlib.suppress(*NOT_READ):
            count["low"], count["high"] = check_proof.read_law(
                count["law"], count["published"], ""
            )[1:]
    with contextlib.suppress(
        check_proof.RefusedError, TypeError, KeyError, ValueError, AttributeError
    ):
        made["sentence"] = check_proof.sentence(made)
    return made


def judged_forgeries(examples):
    """Return how many drawn forgeries are accepted; each follows from what is printed of it."""
    seen = Counter()

    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @given(forgeries())
    def judge(made):
        lines = lines_of(made)
        seen["refused" if lines is None else "accepted"] += 1
        if lines is None:
            return
        printed = read_lines(lines)
        for count in printed["counts"]:
            assert (count["low"], count["high"]) == ends_by_law(count)
        if len(kinds_of(printed)) <= KINDS:
            seen["enumerated"] += 1
            seen["new"] += made not in pool()
            assert not is_false(printed)

    judge()
    return seen


def test_what_a_forger_makes_follows_from_what_is_printed():
    seen = judged_forgeries(1000)
    assert seen["refused"] > 200
    assert seen["new"] > 30


@pytest.mark.slow
def test_what_a_forger_makes_follows_from_what_is_printed_many_times(record_property):
    seen = judged_forgeries(20_000)
    record_property("numbers", dict(seen))
    assert seen["new"] > 500
