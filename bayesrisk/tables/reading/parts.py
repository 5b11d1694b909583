"""Parts of other labels, called so: "of which: lung" is a part of what stands before it."""

from collections.abc import Sequence
from itertools import pairwise

from bayesrisk.tables.reading.rules import ReadingRules
from bayesrisk.tables.reading.sheet import Sheet
from bayesrisk.tables.reading.texts import PATH, SOME, interval, listing, number_range, sex


def with_parts(sheet: Sheet, rules: ReadingRules) -> Sheet:
    """Return a sheet whose parts of other labels ("of which: lung") are paths below these."""
    rows = [row for _, row in sheet.rows]
    for j in range(len(sheet.heads)):
        texts, name = [row[j] for row in rows], sheet.heads[j]
        settled = f"totals.{name}" in rules.choices or rules.section(f"labels.{name}")
        called = not settled and any(map(SOME.match, texts))
        if called and (paths := part_paths(texts, rows, rules)):
            rows = [[*row[:j], paths.get(i, row[j]), *row[j + 1 :]] for i, row in enumerate(rows)]
    numbers = [number for number, _ in sheet.rows]
    return sheet._replace(rows=list(zip(numbers, rows, strict=True)))


def part_paths(
    texts: Sequence[str], numbers: Sequence[Sequence[str]], rules: ReadingRules
) -> dict[int, str]:
    """Return paths of texts such as "of which: lung", below the last other text before them.

    Empty where these cannot be parts of that: a number beside one is larger, or texts stand in
    the order of the alphabet.  ``numbers`` has the texts beside each one.
    """
    paths, above, before = dict[int, str](), "", list[str]()
    for position, text in enumerate(texts):
        if not text or not SOME.match(text):
            above, before = (text, list(numbers[position])) if text else (above, before)
        elif above and not (interval(above) and interval(text)):  # ages within others
            paths[position] = f"{above}{PATH}{text}"
            ends = [
                (number_range(a), number_range(b))
                for a, b in zip(numbers[position], before, strict=True)
            ]
            if any(a and b and a[0] > b[1] for a, b in ends):
                return {}
    spelled = list(dict.fromkeys(map(str.casefold, texts)))
    several = len({*spelled} - {texts[position].casefold() for position in paths}) > 1
    if not paths or (several and spelled == sorted(spelled)):
        return {}
    chains = [path.split(PATH)[::-1] for path in dict.fromkeys(paths.values())]
    pairs = [" of ".join(map(repr, chain)) for chain in chains]
    text = f"each is a part of what stands before it: {listing(pairs, 60)}"
    return paths if rules.ask("parts", "above", text) == "above" else {}


def exclusive(parts: Sequence[str]) -> bool:
    """Return whether parts exclude each other by what they mean: sexes, or groups of ages."""
    ends = sorted(end for part in parts if (end := interval(part)) and end[0] < end[1])
    disjoint = len(ends) == len(parts) and all(a[1] < b[0] for a, b in pairwise(ends))
    sexes = {sex(SOME.sub("", part).strip(" :,")) for part in parts}
    return disjoint or len(sexes - {None}) == len(parts)
