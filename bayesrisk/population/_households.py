"""Households, composition first: size, type and householder's age, then everybody else."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrisk._types import IntArray
from bayesrisk.population import _national as national
from bayesrisk.population._groups import pick
from bayesrisk.population._laws import extra_mean, household_law, overshoot_law

ADULT = 18
_OLDEST = 110
_YOUNGEST_PARENT, _OLDEST_PARENT = 15, 45
_OLDEST_KIN = 90


@dataclass(frozen=True)
class Compositions:
    """One entry for each household: block, people, type (0..11) and class of householder's age."""

    block: IntArray
    people: IntArray
    kind: IntArray
    age_class: IntArray


@dataclass(frozen=True)
class Members:
    """One entry for each person in a household, householder first."""

    household: IntArray
    relationship: IntArray
    sex: IntArray
    age: IntArray


def _draw(count: int, rng: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
    """Draw people, type and age class of independent households from the national law."""
    law = household_law()
    flat = pick(law.reshape(1, -1), np.zeros(count, dtype=np.int64), rng)
    size, kind, age_class = np.unravel_index(flat, law.shape)
    people = size.astype(np.int64) + 1
    large = np.flatnonzero(people == 7)
    # the geometric law of numpy starts at 1
    people[large] += rng.geometric(1.0 / (1.0 + extra_mean()), large.size) - 1
    return people, kind, age_class


def fill_blocks(target: IntArray, rng: np.random.Generator) -> Compositions:
    """Draw households into each block until its target population is reached.

    A stopping rule that looks only at what is already drawn leaves the law of the households as it
    is (Wald's identity); the target is first lowered by what the last household is expected to add
    beyond it.  Every block with a positive target gets at least one household.
    """
    late = pick(overshoot_law()[None, :], np.zeros(target.size, dtype=np.int64), rng)
    missing = np.where(target > 0, np.maximum(target - late, 1), 0)
    rounds: list[tuple[IntArray, ...]] = []
    mean = national.HOUSEHOLD_PEOPLE / national.HOUSEHOLDS
    while missing.any():  # ends: each round gives every open block somebody at least
        open_ = np.flatnonzero(missing)
        wanted = np.ceil(missing[open_] / mean + 2.0 * np.sqrt(missing[open_])).astype(np.int64)
        block = np.repeat(open_, wanted)
        people, kind, age_class = _draw(block.size, rng)
        before = np.cumsum(people) - people
        first = np.cumsum(wanted) - wanted
        kept = before - np.repeat(before[first], wanted) < missing[block]
        rounds.append((block[kept], people[kept], kind[kept], age_class[kept]))
        missing -= np.bincount(block[kept], people[kept], missing.size).astype(np.int64)
        missing = np.maximum(missing, 0)
    empty = np.empty(0, dtype=np.int64)
    columns = [np.concatenate(c) for c in zip(*rounds, strict=True)] if rounds else [empty] * 4
    order = np.argsort(columns[0], kind="stable")
    return Compositions(*(c[order] for c in columns))


def _holders(homes: Compositions, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return sex and age of householders."""
    starts = np.append(national.HOLDER_STARTS, 85)
    starts[0] = ADULT
    low = starts[homes.age_class]
    width = np.where(homes.age_class < 8, starts[np.minimum(homes.age_class + 1, 8)] - low, 1)
    share = rng.random(low.size)
    # householders under 25: the older, the more of them; 85 and over: 18% fewer every year
    share = np.where(homes.age_class == 0, np.sqrt(share), share)
    oldest = (rng.geometric(0.18, low.size) - 1) % (_OLDEST - 84)  # no heap at the oldest age
    age = low + np.where(homes.age_class == 8, oldest, (share * width).astype(np.int64))
    coin = rng.integers(0, 2, low.size)
    sex = np.where(homes.kind < 4, coin, (homes.kind < 8).astype(np.int64))
    return sex, age


def _between(low: IntArray, high: IntArray, share: NDArray[np.float64]) -> IntArray:
    """Return the whole numbers at ``share`` of the way from low to high, both included."""
    return low + (share * (high - low + 1)).astype(np.int64)


def _roles(
    homes: Compositions,
    household: IntArray,
    place: IntArray,
    age: IntArray,
    rng: np.random.Generator,
) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return relationship to a householder of the age given, and whether a minor, by place."""
    kind = homes.kind[household]
    couple = kind < 4
    first = place == couple + 1
    laws = np.array([*national.FIRST_ROLES, *national.FURTHER_ROLES])
    roles = np.array(national.ROLES)
    role = pick(laws, kind + 12 * ~first, rng)
    relationship, minor = roles[role, 0], roles[role, 1].astype(bool)
    # too young for a child of age: a brother or sister instead
    young = (relationship == national.CHILD) & ~minor & (age < ADULT + _YOUNGEST_PARENT)
    relationship = np.where(young, national.RELATIVE, relationship)
    second = np.where(kind < 2, national.SPOUSE, national.PARTNER)
    beside = couple & (place == 1)
    relationship = np.where(beside, second, relationship)
    relationship = np.where(place == 0, national.HOLDER, relationship)
    return relationship, minor & ~beside & (place > 0)


def _ages(
    relationship: IntArray,
    minor: NDArray[np.bool_],
    holder: IntArray,
    man: IntArray,
    rng: np.random.Generator,
) -> IntArray:
    """Return ages that fit the householder's: see the explanation of the generator."""
    share = rng.random(holder.size)
    parent = rng.random(holder.size) < national.PARENTS
    normal = rng.standard_normal(holder.size)
    low = np.clip(holder - _OLDEST_PARENT, 0, ADULT - 1)
    high = np.clip(holder - _YOUNGEST_PARENT, 0, ADULT - 1)
    own = relationship == national.CHILD
    child = _between(np.where(own, low, 0), np.where(own, high, ADULT - 1), share)
    top = np.maximum(holder - _YOUNGEST_PARENT, ADULT)
    grown = _between(np.clip(holder - _OLDEST_PARENT, ADULT, top), top, share**2)
    gap, spread = national.COUPLE_GAP
    mate = holder + np.rint(np.where(man == 0, -gap, gap) + spread * normal).astype(np.int64)
    peer = holder + np.rint(national.PEER_SPREAD * normal).astype(np.int64)
    elder = holder + _between(np.full_like(holder, 18), np.full_like(holder, 40), share)
    kin = np.where(parent & (elder < _OLDEST_KIN), elder, peer - national.YOUNGER)
    adult = np.select(
        [
            own,
            np.isin(relationship, (national.SPOUSE, national.PARTNER)),
            relationship == national.RELATIVE,
        ],
        [grown, mate, kin],
        default=peer,
    )
    folded = np.where(adult < ADULT, 2 * ADULT - adult, adult)  # no heap at 18
    return np.where(minor, child, np.clip(folded, ADULT, _OLDEST))


def _sexes(
    relationship: IntArray, holder: IntArray, minor: NDArray[np.bool_], rng: np.random.Generator
) -> IntArray:
    """Return sexes: spouses of the other sex, some partners of the same, boys as at birth."""
    share = rng.random(holder.size)
    child_like = np.isin(relationship, (national.CHILD, national.NONRELATIVE))
    men = np.where(minor, national.BOYS, np.where(child_like, national.GROWN_MEN, 0.5))
    sex = (share >= men).astype(np.int64)
    same = (relationship == national.PARTNER) & (share < national.SAME_SEX)
    mate = np.isin(relationship, (national.SPOUSE, national.PARTNER))
    return np.where(mate, np.where(same, holder, 1 - holder), sex)


def make_members(homes: Compositions, rng: np.random.Generator) -> Members:
    """Draw relationship, sex and age of everybody who lives in the households."""
    holder_sex, holder_age = _holders(homes, rng)
    household = np.repeat(np.arange(homes.people.size), homes.people)
    first = np.cumsum(homes.people) - homes.people
    place = np.arange(household.size) - first[household]
    around, man = holder_age[household], holder_sex[household]
    relationship, minor = _roles(homes, household, place, around, rng)
    age = np.where(place == 0, around, _ages(relationship, minor, around, man, rng))
    sex = np.where(place == 0, man, _sexes(relationship, man, minor, rng))
    return Members(household, relationship, sex, age)
