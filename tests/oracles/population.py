"""Slow twins for synthetic populations: rules of housing units, person by person and by hand."""

from collections import Counter
from itertools import product

# Classes of householder's age, in the order of the household tables.
AGE_CLASSES = [(15, 24), (25, 34), (35, 44), (45, 54), (55, 59), (60, 64), (65, 74), (75, 84)]
MARRIED, MALE_FAMILY, FEMALE_FAMILY, MALE_ALONE, MALE_OTHER, FEMALE_ALONE, FEMALE_OTHER = range(
    1, 8
)


def age_code(age):
    """Return the class 1..9 of a householder's age."""
    return next((i for i, (low, high) in enumerate(AGE_CLASSES, 1) if low <= age <= high), 9)


def race_code(mask):
    """Return 1..6 for one race alone, 7 for more."""
    bits = [i for i in range(6) if mask >> i & 1]
    return bits[0] + 1 if len(bits) == 1 else 7


def types_of(detailed):
    """Return the household types that go with a detailed type."""
    return {
        1: {MARRIED},
        2: {MARRIED},
        3: {MALE_FAMILY, FEMALE_FAMILY},
        4: {MALE_FAMILY, FEMALE_FAMILY, MALE_OTHER, FEMALE_OTHER},
        5: {FEMALE_ALONE},
        6: {FEMALE_FAMILY},
        7: {FEMALE_FAMILY},
        8: {FEMALE_OTHER},
        9: {MALE_ALONE},
        10: {MALE_FAMILY},
        11: {MALE_FAMILY},
        12: {MALE_OTHER},
    }[detailed]


def people_needed(kind, detailed, minors, elders, age):
    """Return the fewest people that a combination needs; None if it is impossible.

    The householder (and spouse or partner) are adults of any age; a member besides them is a
    minor, an elder (65 and over), or neither.
    """
    if kind not in types_of(detailed):
        return None
    old = age >= 7
    if old and not elders:
        return None
    if detailed in (5, 9):  # alone
        return None if minors or elders != old else 1
    couple = detailed <= 4
    base = 2 if couple else 1
    own = detailed in (1, 3, 6, 10)
    if own and not minors:
        return None
    # a spouse or partner can be the elder; else it takes somebody besides
    outside_elder = elders and not old and not couple
    if own:
        others = 1 + outside_elder
    elif couple:
        relative = detailed == 4 and kind in (MALE_FAMILY, FEMALE_FAMILY)
        others = max(1 if relative else 0, 1 if minors else 0)
    else:
        others = max(1, minors + outside_elder)
    return base + others


def combinations():
    """Return every possible (size, type, detailed type, under 18, over 65, age)."""
    found = set()
    for kind, detailed, minors, elders, age in product(
        range(1, 8), range(1, 13), (False, True), (False, True), range(1, 10)
    ):
        least = people_needed(kind, detailed, minors, elders, age)
        if least is not None:
            sizes = [1] if detailed in (5, 9) else range(least, 8)
            found |= {(n, kind, detailed, 1 + minors, 1 + elders, age) for n in sizes}
    return found


def household_faults(unit, members):
    """Return what is wrong with one housing unit, given its members (dicts), householder first."""
    named = {
        **dict.fromkeys(("tenure", "size", "type", "detailed_type", "under_18", "over_65"), 0),
        **dict.fromkeys(("hispanic", "hhage", "race", "people", "children", "bedrooms"), 0),
        "subsidised": 0,
    }
    if unit["vacancy"]:
        wrong = [n for n in named if unit[n]]
        return wrong + (["members of a vacant unit"] if members else [])
    if not members:
        return ["an occupied unit without members"]
    holder, others = members[0], members[1:]
    roles = Counter(m["relationship"] for m in members)
    minors = sum(m["age"] < 18 for m in members)
    own = any(m["relationship"] == 3 and m["age"] < 18 for m in members)
    family = roles[1] + roles[3] + roles[4] > 0
    male = holder["sex"] == 0
    if roles[1]:
        kind, detailed = MARRIED, 1 if own else 2
    elif roles[2]:
        detailed = 3 if own else 4
        kind = (MALE_FAMILY if male else FEMALE_FAMILY) if family else 0
        kind = kind or (MALE_OTHER if male else FEMALE_OTHER)
    else:
        place = 0 if not others else 1 if own else 2 if family else 3
        detailed = (9 if male else 5) + place
        names = (
            (MALE_ALONE, MALE_FAMILY, MALE_FAMILY, MALE_OTHER)
            if male
            else (FEMALE_ALONE, FEMALE_FAMILY, FEMALE_FAMILY, FEMALE_OTHER)
        )
        kind = names[place]
    wanted = {
        "size": min(len(members), 7), "people": len(members), "type": kind,
        "detailed_type": detailed,
        "under_18": 2 if any(m["age"] < 18 and m["relationship"] > 2 for m in members) else 1,
        "over_65": 2 if any(m["age"] >= 65 for m in members) else 1, "hispanic": 1 + holder["hisp"],
        "hhage": age_code(holder["age"]), "race": race_code(holder["race"]), "children": minors,
    }  # fmt: skip
    wrong = [n for n, value in wanted.items() if unit[n] != value]
    wrong += [] if 1 <= unit["tenure"] <= 4 else ["tenure"]
    wrong += [] if (unit["bedrooms"] > 0) == (unit["subsidised"] == 1) else ["bedrooms"]
    wrong += (
        ["tenure of a subsidised household"] if unit["subsidised"] and unit["tenure"] != 3 else []
    )
    wrong += [] if roles[0] == 1 and holder["relationship"] == 0 else ["householder"]
    wrong += [] if roles[1] + roles[2] <= 1 else ["two spouses or partners"]
    wrong += ["group quarters"] if any(m["gq"] for m in members) else []
    wrong += ["members apart"] if any(m["block"] != unit["block"] for m in members) else []
    return wrong + age_faults(holder, others)


def age_faults(holder, others):
    """Return members whose age or sex does not go with the householder's."""
    wrong = [] if 18 <= holder["age"] <= 110 else ["householder's age"]
    for member in others:
        role, age = member["relationship"], member["age"]
        if role == 3 and not holder["age"] - age >= 15:
            wrong.append("a parent under 15")
        if role in (1, 2) and not 18 <= age <= 110:
            wrong.append("age of a spouse or partner")
        if role == 1 and member["sex"] == holder["sex"]:
            wrong.append("sex of a spouse")
    return wrong


def summary_by_hand(rows, classes):
    """Return people, uniques, modal and proportional right guesses by class of block population.

    ``rows`` are (block, sex, age, race, hisp); ``classes`` pairs (first, last population).
    """
    starts = [*range(22), 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85]
    binned = {a: max(i for i, s in enumerate(starts) if s <= a) for a in range(111)}
    size = Counter(r[0] for r in rows)
    unique = Counter((r[0], r[1], binned[r[2]]) for r in rows)
    group = Counter((r[0], r[3], r[4]) for r in rows)
    top = Counter()
    for (block, _, _), n in group.items():
        top[block] = max(top[block], n)
    result = []
    for low, high in classes:
        inside = [r for r in rows if low <= size[r[0]] <= (high or 10**9)]
        result.append(
            (
                len({r[0] for r in inside}),
                len(inside),
                sum(unique[r[0], r[1], binned[r[2]]] == 1 for r in inside),
                sum(n for b, n in top.items() if low <= size[b] <= (high or 10**9)),
                sum(group[r[0], r[3], r[4]] / size[r[0]] for r in inside),
            )
        )
    return result


def renewal_overshoot(sizes, target):
    """Return the exact law of the total beyond a target when sizes are added until it is reached.

    ``sizes[k]`` is the probability of k + 1; the law of the total is followed exactly.
    """
    reach = [1.0] + [0.0] * (target + len(sizes))
    over = [0.0] * len(sizes)
    for now in range(target):
        for k, p in enumerate(sizes, 1):
            if now + k >= target:
                over[now + k - target] += reach[now] * p
            else:
                reach[now + k] += reach[now] * p
    return over
