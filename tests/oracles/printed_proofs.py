"""What the lines that a checker prints say, read from the lines alone.

Nothing of the package, of its checker or of the certificate is used: the lines are taken apart as a
reader would, and become what ``oracles.proofs`` counts, or what is compared with the truth.
"""

import re

Q = r"'(?:[^'\\]|\\u\{[0-9a-f]+\})*'"
N = r"-?\d+"
NAMED = rf"(?: \(named {Q}\))?"
PLACE = rf"( in all places| in {Q} {Q}{NAMED})?"
LABEL = rf"(?:{Q}|{N}(?: to {N})?)(?: times {N})?"
ATTRIBUTE = rf"{Q} {LABEL}(?: or {LABEL})*"
KINDS = rf"in all|with {ATTRIBUTE}(?:, {ATTRIBUTE})*"
ENDS = rf"({N})(?: (or more)| to ({N}))?"
PART = rf"(?:(exactly) ({N})|at least ({N})(?: and at most ({N}))?|at most ({N})) ({KINDS})"


def text_of(quoted):
    """Return the text that stands between quotes."""
    return re.sub(r"\\u\{([0-9a-f]+)\}", lambda m: chr(int(m[1], 16)), quoted[1:-1])


def place_of(text):
    """Return the level, the code and the name of a place."""
    found = [text_of(q) for q in re.findall(Q, text or "")]
    return (*found, *("", "", "")[len(found) :])


def sets_of(text):
    """Return labels or ranges with their weights, by attribute."""
    sets = {}
    for attribute in re.findall(ATTRIBUTE, text.removeprefix("in all").removeprefix("with ")):
        name = re.match(Q, attribute)[0]
        rest, found = attribute[len(name) + 1 :], []
        for label in re.findall(LABEL, rest):
            quoted = re.match(Q, label)
            times = int(label.rsplit(" times ", 1)[1]) if " times " in label.split("'")[-1] else 1
            if quoted:
                found.append((text_of(quoted[0]), times))
            else:
                ends = [int(n) for n in label.split(" times ")[0].split(" to ")]
                found.append([ends[0], ends[-1], times])
        sets[text_of(name)] = dict(found) if isinstance(found[0], tuple) else found
    return sets


def ends_of(low, more, high):
    """Return the smallest and the largest number."""
    return int(low), None if more else int(high or low)


def law_of(text):
    """Return a law from its words."""
    numbers = [int(n) for n in re.findall(N, text)]
    if text == "exact":
        return {"law": "exact"}
    if found := re.fullmatch(rf"withheld, {ENDS}", text):
        low, high = ends_of(*found.groups())
        return {"law": "withheld", "least": low, "most": high}
    if found := re.fullmatch(rf"rounded (to the nearest|at random to a) multiple of ({N})", text):
        return {"law": "nearest" if "nearest" in found[1] else "random", "base": int(found[2])}
    if found := re.fullmatch(
        r"ranges from ([\d, ]+) as ([\d, ]+?)(, further ones every \d+)?", text
    ):
        edges, values = ([int(n) for n in part.split(", ")] for part in found.groups()[:2])
        step = int(found[3].split()[-1]) if found[3] else None
        return {"law": "ranges", "edges": edges, "values": values, "step": step}
    if re.fullmatch(rf"changed by {N} at most", text):
        return {"law": "perturbed", "largest": numbers[0]}
    found = re.fullmatch(r"changed by cell key, from 0 on by (.*), the last (\d+) in turn", text)
    changes = [[int(n) for n in row.split(", ")] for row in found[1].split("; ")]
    return {"law": "cell-key", "changes": changes, "repeat": numbers[-1]}


def part_of(text):
    """Return a part of a sentence."""
    exactly, same, least, and_most, most, kinds = re.fullmatch(PART, text).groups()
    least, most = (same, same) if exactly else (least, and_most or most)
    ends = {"least": least, "most": most}
    return {**{k: None if n is None else int(n) for k, n in ends.items()}, "sets": sets_of(kinds)}


def read_lines(lines):
    """Return what the lines about one accepted certificate say."""
    says, kind, level, place, name = [], "impossible", "", "", ""
    if lines[0] != "No records fit these counts.":
        found = re.fullmatch(
            rf"Number of records(?P<where>{PLACE}): (?P<parts>{PART}(?:; {PART})*)"
            r"(?P<others>, and no others)?\.",
            lines[0],
        )
        where, parts, no_others = found["where"], found["parts"], found["others"]
        level, place, name = place_of(where)
        texts = [m[0] for m in re.finditer(PART, parts)]
        if "; ".join(texts) != parts:
            raise ValueError(f"no parts of a sentence: {parts}")
        says = [{"place": place, "level": level, **part_of(text)} for text in texts]
        kind = "records" if no_others else "count"
    made = {"kind": kind, "says": says, "name": name, "counts": [], "assumed": []}
    made |= {"attributes": {}, "places": [], "names": {}}
    for line in lines[1:-1]:
        if found := re.fullmatch(
            rf"count \d+{PLACE}: {ENDS} ({KINDS}); published (?:({N}), )?(.*); "
            rf"table ({Q})",
            line,
        ):
            where, low, more, high, kinds, number, law, table = found.groups()
            level, place, name = place_of(where)
            low, high = ends_of(low, more, high)
            made["counts"].append({
                "level": level, "place": place, "name": name, "low": low, "high": high,
                "sets": sets_of(kinds), "published": None if number is None else int(number),
                "law": law_of(law), "table": text_of(table),
            })  # fmt: skip
        elif found := re.fullmatch(rf"assumed \d+: 0 ({KINDS}); such records cannot be", line):
            made["assumed"].append({"place": "", "sets": sets_of(found[1])})
        elif found := re.fullmatch(rf"({Q}): whole numbers from ({N}) to ({N})", line):
            made["attributes"][text_of(found[1])] = [int(found[2]), int(found[3])]
        elif found := re.fullmatch(
            rf"(places|{Q}), (\d+) in all: ({Q}{NAMED}(?:, {Q}{NAMED})*)", line
        ):
            entries = re.findall(rf"({Q})(?: \(named ({Q})\))?", found[3])
            labels = [text_of(label) for label, _ in entries]
            if int(found[2]) != len(labels):
                raise ValueError(f"not so many: {line}")
            if found[1] == "places":
                made["places"] = labels
                made["names"] = {text_of(c): text_of(n) for c, n in entries if n}
            else:
                made["attributes"][text_of(found[1])] = labels
        elif not re.match(rf"at least {N} |at most {N} |a contradiction: ", line):
            raise ValueError(f"unknown line: {line}")
    return made
