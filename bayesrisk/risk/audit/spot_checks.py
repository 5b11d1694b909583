"""Spot checks: beliefs about a few targets, recomputed by plain sums over a place's records."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from scipy.special import gammaln

from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.risk.audit import adversaries, place_beliefs, surroundings
from bayesrisk.risk.audit.measures import empty_frame
from bayesrisk.risk.audit.population import AuditedPopulation
from bayesrisk.risk.audit.reading import Reading
from bayesrisk.risk.statements.statements import OPEN

# -----------------------------------------------------------------------------
# The plain way.  It shares no code with the engines of ``inference``: from the published counts of
# a place, their likelihoods and the prior it sums over all possible numbers x of records of every
# kind, one kind after the other.  A kind is a set of cells that no published count tells apart.


_MOST = 10**6  # sums in all; places with more are not small
_MOST_WEIGHTS = 4 * 10**6  # of records in published counts
_LEAST = 1e-11  # of the largest likelihood of a count: what is less likely is left out


def plain_beliefs(
    place: place_beliefs.PlaceReading, targets: Sequence[place_beliefs.AuditTarget]
) -> list[dict[str, FloatArray]] | None:
    r"""Return a person's three beliefs by plain sums, or None if the place is not small.

    ``targets`` are the person, seen by adversaries who know the same others. With u unknown records
    of the place, the target's included, and m = u - 1 others,

    .. math:: P(r) \propto \theta_r, \quad P(r \mid R) \propto \sum_u P(u) M_r(u), \quad
        P(r \mid R') \propto \sum_m (m + 1) P(m + 1) \frac{A \theta_r Z(m) + M_r(m)}{A + m},

    where R' is a new run of the mechanism on the data without the target's record. Z and M are the
    sums of :func:`_sums` given R or R'. Records that change places are mixed as adversaries mix
    them (:class:`Reading`).
    """
    prior, one = place.prior, targets[0]
    if prior.concentration is None or prior.size is None:
        return None
    # Known records k say what the place is like: A theta + k.
    known_counts = np.bincount(one.known_cells, minlength=prior.schema.size)
    mass = prior.concentration * prior.shares_of_cells + known_counts
    size = np.array([0.0, 1.0]) if one.all_others else prior.size[known_counts.sum() :]
    indicator = np.concatenate([_indicator(target.question) for target in targets], axis=1)
    sums = _sums(place.release, place, mass, indicator, known_counts, size.size - 1)
    rest = sums
    if not one.all_others:  # else nothing is learned without the record
        rest = _sums(
            place.counterfactual(one.row), place, mass, indicator, known_counts, size.size - 1
        )
    if sums is None or rest is None:
        return None
    m = np.arange(size.size - 1)
    weights = size[1:] * (m + 1.0) / (mass.sum() + m)
    beliefs, stop = [], 1
    for target in targets:
        start, stop = stop, stop + target.question.values
        prior_weight = mass @ _indicator(target.question)
        before = prior_weight / prior_weight.sum()
        after, less = size @ sums[:, start:stop], prior_weight
        if not one.all_others and after.any():
            less = weights @ (rest[:-1, :1] * prior_weight + rest[:-1, start:stop])
        if not (after.any() and less.any()):  # no such records: as if nothing were published
            beliefs.append({"prior": before, "without": before, "posterior": before})
            continue
        after, less = after / after.sum(), less / less.sum()
        if moved := place.release.moved:  # whoever is counted elsewhere is one more of the place
            more = prior_weight
            if not one.all_others:
                more = size @ (sums[:, :1] * prior_weight + sums[:, start:stop])
            after = (1.0 - moved) * after + moved * more / more.sum()
        beliefs.append({"prior": before, "without": less, "posterior": after})
    return beliefs


def _indicator(question: adversaries.TargetQuestion) -> FloatArray:
    """Return 1 where a schema cell is possible and has the value (cells, values)."""
    indicator = np.zeros((question.value.size, question.values))
    indicator[question.possible, question.value[question.possible]] = 1.0
    return indicator


def _sums(
    reading: Reading,
    place: place_beliefs.PlaceReading,
    mass: FloatArray,
    indicator: FloatArray,
    known_counts: IntArray,
    most: int,
) -> FloatArray | None:
    r"""Return sums of weights over x for each number n of records, and of weights times x_r.

    .. math:: Z(n) = \sum_{|x| = n} \frac{n! \, \Gamma(A)}{\Gamma(A + n)}
        \prod_c \frac{\Gamma(a_c + x_c)}{\Gamma(a_c) x_c!}
        \prod_j L_j(\textstyle\sum_c w_{jc} (k_c + x_c)), \quad
        M_r(n) = \sum_{|x| = n} \ldots \sum_c s_{cr} x_c,

    with cells c of mass a and k known records. ``indicator``, s, says whether they count as r, and
    j are the published counts. Rows are n = 0 .. ``most``, columns Z, M_1, M_2, ...; None if not
    small.
    """
    counts = _counts(reading, place, most + int(known_counts.sum()))
    if counts is None:
        return None
    weight, likelihood = counts
    alive = mass > 0.0
    kinds, kind = _kinds(weight[:, alive].tobytes(), (len(weight), int(alive.sum())))
    a = np.bincount(kind, mass[alive])
    parts = [np.bincount(kind, m) for m in (mass[:, None] * indicator)[alive].T]
    shares = np.asarray(np.stack(parts).T / a[:, None], np.float64)
    # Gamma(a + x) / (Gamma(a) x!) and its inverse for the whole, times scale**x so that none is
    # huge: the ratio of two terms of the whole, (A + i) / (i + 1), is 1 in the middle.
    i, scale = np.arange(most), (most / 2.0 + 1.0) / (a.sum() + most / 2.0)
    ones = np.ones((a.size + 1, 1))
    ratio = (np.append(a, a.sum())[:, None] + i) * scale / (i + 1.0)
    terms = np.hstack([ones, np.cumprod(ratio, axis=1)])
    start, sums = weight @ known_counts, np.zeros((most + 1, 1 + indicator.shape[1]))
    sums[0, 0] = 1.0
    for members in _orders((kinds > 0).tobytes(), len(kinds)):
        rows = np.flatnonzero(kinds[:, members].any(axis=1))
        chosen = [likelihood[j] for j in rows]
        part = _part(
            kinds[np.ix_(rows, members)], start[rows], chosen, terms[members], shares[members]
        )
        if part is None:
            return None
        # Parts that no count joins are independent given their numbers: n = n_1 + n_2.
        joint = np.zeros_like(sums)
        for n in range(most + 1):
            joint[n:] += sums[n, 0] * part[: most + 1 - n]
            joint[n:, 1:] += sums[n, 1:] * part[: most + 1 - n, :1]
        sums = joint / (joint[:, 0].max() or 1.0)
    for j in np.flatnonzero(~kinds.any(axis=1)):  # counts of known records only
        sums = sums * likelihood[j][start[j] : start[j] + 1].sum()
    return np.asarray(sums / terms[-1][:, None])


def _counts(
    reading: Reading, place: place_beliefs.PlaceReading, most: int
) -> tuple[IntArray, list[FloatArray]] | None:
    """Return each cell's weight in every count, and the sums' likelihoods; None if too many."""
    tables, spec = reading.release.tables, reading.release.spec
    schema, key = tables.workload.schema, place.level
    published = tables.workload.at(key)
    if schema.size * sum(len(table.cells) for table in published.values()) > _MOST_WEIGHTS:
        return None
    weights, likelihood = [np.zeros((0, schema.size), np.int64)], []
    for name, table in published.items():
        law, counts = spec.likelihood(key, name), tables.count(key, name, place.code)
        part = table.incidence(schema, np.arange(schema.size)).toarray()
        row = tables.row(key, place.code)
        hidden = tables.hidden(key, name)[[row], :].toarray()[0]
        least, largest = law.withheld
        # A withheld count of which the rule says nothing is no count.
        visible = np.flatnonzero(~hidden | (law.rule is not None))
        weights.append(part[visible])
        for j in visible:
            sums = np.arange(most * max(int(part[j].max()), 1) + 1)
            if hidden[j]:
                value = np.asarray((least <= sums) & (sums <= largest), float)
            elif law.exact:
                value = np.asarray(sums == counts[j], float)
            else:
                value = np.asarray(law.probability(int(counts[j]), sums), float)
            value = value / (value.max() or 1.0)
            value[value < _LEAST] = 0.0
            likelihood.append(value[: 1 + np.flatnonzero(value).max(initial=0)])
    return np.concatenate(weights), likelihood


@functools.lru_cache(maxsize=8)  # the same where the same counts are published
def _kinds(weight: bytes, shape: tuple[int, int]) -> tuple[IntArray, IntArray]:
    """Return the weights of each kind, and the kind of every cell."""
    weights = np.frombuffer(weight, np.int64).reshape(shape)
    kinds, kind = np.unique(weights, axis=1, return_inverse=True)
    return kinds, kind.ravel()


@functools.lru_cache(maxsize=2)  # the same for all places, and found far more slowly than the sums
def _orders(counted: bytes, rows: int) -> tuple[IntArray, ...]:
    return tuple(_components(np.frombuffer(counted, np.bool_).reshape(rows, -1)))


def _components(counted: BoolArray) -> Iterator[IntArray]:
    """Yield sets of kinds that no count connects, ordered so that counts end soon."""
    left = np.ones(counted.shape[1], np.bool_)
    while left.any():
        members = [int(left.argmax())]
        while True:
            left[members[-1]] = False
            begun = np.asarray(counted[:, members].any(axis=1))
            near = np.flatnonzero(left & counted[begun].any(axis=0))
            if not near.size:
                break
            # Next is the kind that begins the fewest counts, and of these one that ends the most.
            begins = (counted[:, near] & ~begun[:, None]).sum(axis=0)
            last = np.flatnonzero(counted[:, left].sum(axis=1) == 1)
            ends = counted[np.ix_(last, near)].sum(axis=0)
            members.append(int(near[np.lexsort((-ends, begins))[0]]))
        yield np.array(members)


def _part(
    weight: IntArray, start: IntArray, likelihood: list[FloatArray], terms: FloatArray,
    shares: FloatArray,
) -> FloatArray | None:  # fmt: skip
    """Return the sums of :func:`_sums` over kinds, in column order, or None if too many."""
    top = np.array([one.size - 1 for one in likelihood], np.int64)
    last = [int(np.flatnonzero(row)[-1]) for row in weight]  # kind after which a count is complete
    most, work = terms.shape[1] - 1, 0
    totals = np.zeros((most + 1, 1 + shares.shape[1]))
    if (start > top).any():
        return totals
    if np.log2(top + 1.0).sum() + np.log2(most + 1.0) > 62.0:
        return None
    # A state is the sums so far and n, written as one number; equal states are put together.
    span = np.append(top, most) + 1
    radix = np.concatenate([[1], np.cumprod(span[:-1])])
    state, value = np.array([start @ radix[:-1]]), np.zeros((totals.shape[1], 1))
    value[0] = 1.0
    for c, term in enumerate(terms):
        step = np.append(weight[:, c], 1)
        room = np.full(state.size, most + 1)
        for r in np.flatnonzero(step).tolist():
            room = np.minimum(room, (span[r] - 1 - state // radix[r] % span[r]) // step[r] + 1)
        work += int(room.sum())
        if work > _MOST:
            return None
        index = np.repeat(np.arange(room.size), room)
        x = np.arange(index.size) - np.repeat(np.cumsum(room) - room, room)
        state, value = state[index] + x * (step @ radix), value[:, index] * term[x]
        value[1:] += shares[c][:, None] * (x * value[0])  # + s_cr x_c
        for j in [j for j, end in enumerate(last) if end == c]:  # times L_j
            sums = state // radix[j] % span[j]
            value *= likelihood[j][sums]
            state -= sums * radix[j]
        state, value = state[value[0] > 0.0], value[:, value[0] > 0.0]
        if not state.size:
            return totals
        state, group = np.unique(state, return_inverse=True)
        value = np.stack([np.bincount(group, column) for column in value])
        value /= value[0].max()
    np.add.at(totals, state // radix[-1], value.T)
    return totals


#: What public inputs say of a prior, in spot checks beside the three beliefs.
PUBLIC = ("share", "size", "concentration")
MISSING = "gain"  # what the own record would tell about a target who has no answer
_NEAR = (0.01, 1.0 / 1.01, 1.01, 100.0)  # times a concentration: none may be more probable
#: Of populations that are held, what :func:`_likely_concentration` found.
_LIKELY: WeakKeyDictionary[AuditedPopulation, float] = WeakKeyDictionary()
_FLAT, _ULP = 1e-6, 1e-15  # nats, and of logarithms of gamma functions that cancel each other


def _public_priors(
    population: AuditedPopulation, places: Iterable[int]
) -> dict[int, dict[str, tuple[float, float]]]:
    """Return entries of each place's prior beside those of public inputs, where they differ most.

    Shares are those of the records of all other places and of one more in equal parts. Sizes are
    equally probable up to twice the largest. No other concentration makes the places more probable.
    Known facts about a larger population, or from public records, are used instead.
    """
    place, cells, priors = population.place, population.cells, {}
    public, likely = population._public, population.question.concentration
    largest, size = int(np.bincount(place).max()), population.composition.size
    records = np.bincount(cells, minlength=size)
    if (outside := public or population._around) is not None:
        records, likely = outside.composition, likely or outside.concentration
        largest = max(largest, outside.largest)
    elif likely is None and population.codes.size == 1:
        likely = float(size)
    if not likely:
        if population not in _LIKELY:
            _LIKELY[population] = _likely_concentration(population)
        likely = _LIKELY[population]
    for one in places:
        prior, residents = population.prior(one), np.bincount(cells[place == one], minlength=size)
        rest = records + 1.0 / size if public is not None else records - residents + 1.0 / size
        has = np.zeros(1) if prior.size is None else prior.size
        sizes = np.zeros((2, max(has.size, 2 * largest + 1)))
        sizes[0, : has.size], sizes[1, : 2 * largest + 1] = has, 1.0 / (2 * largest + 1)
        pairs = {"share": (prior.shares_of_cells, rest / rest.sum()), "size": (sizes[0], sizes[1])}
        priors[one] = {
            name: max(zip(a.tolist(), b.tolist(), strict=True), key=lambda ab: abs(ab[0] - ab[1]))
            for name, (a, b) in pairs.items()
        }
        priors[one]["concentration"] = float(prior.concentration or math.nan), likely
    return priors


def _likely_concentration(population: AuditedPopulation) -> float:
    """Return the stated concentration, or a nearby one that is more likely."""
    places = surroundings.sampled_places(population.seed, population.codes.size)
    counts = population.tallies(places)
    counts = counts[:, counts.any(axis=0)]
    shares, n = counts.sum(axis=0) / counts.sum(), counts.sum(axis=1)
    values = population.concentration * np.array([1.0, *_NEAR])
    # log of Gamma(a) / Gamma(a + n) prod_c Gamma(a s_c + x_c) / Gamma(a s_c), up to a constant
    fits = [
        (gammaln(a) - gammaln(a + n)).sum()
        + (gammaln(a * shares + counts) - gammaln(a * shares)).sum()
        for a in values
    ]
    tolerance = _FLAT + _ULP * counts.size * float(gammaln(values.max()))
    return float(values[np.argmax(np.add(fits, tolerance * (values == values[0])))])


_DRAWN = 20  # stream of the drawn targets, apart from those of the audit
_TRIES = 4  # times the targets that are asked for, until nobody else lives in a small place
SPOTS = [
    "protection", "attack", "adversary", "release", "target", "statement", "drawn", "belief",
    "stated", "error", "again",
]  # fmt: skip
_NOBODY = np.zeros(0, np.int64)
#: Spot checks of nobody.
NO_SPOTS = empty_frame(
    SPOTS,
    dict.fromkeys([*SPOTS[:6], "belief"], "str") | {"release": "int64", "drawn": "bool"},
)


def spot_comparisons(
    population: AuditedPopulation,
    statements: pd.DataFrame,
    reading: Reading,
    counterfactual: Callable[[int], Reading],
    *,
    targets: int = 20,
) -> pd.DataFrame:
    """Return statements about a few targets beside the same beliefs from plain sums.

    Half of the targets are drawn. The others are those whose own records are said to reveal most,
    where a leak would show. Targets in places that are not small are skipped. As many targets
    without an answer are included, with what their own records would reveal.

    ``statements`` are about the population under one release, in one ``reading``.
    ``counterfactual`` gives the reading of a release without the record of a row: the mechanism
    runs again on the same random numbers. Columns are those of ``SPOTS``. For each statement they
    say whether the target was ``drawn``, and which ``belief`` it is (prior, without or posterior).
    They give its probability as ``stated``, with its ``error``, and as computed ``again``. Other
    beliefs are share, size and concentration: those of the prior of the target's place, and those
    of the public inputs. For targets without an answer ``gain`` is computed again for the true
    statement.
    """
    is_open = statements["status"].isin(OPEN).to_numpy()
    by_asked = statements.groupby(["target", "adversary"], sort=False).indices
    groups = {key: np.asarray(rows, np.int64) for key, rows in by_asked.items()}
    position = {text: i for i, text in enumerate(population.question.values)}
    value, correct = statements["statement"].map(position).to_numpy(), statements["correct"]
    order = [*itertools.islice(_order(statements[~is_open], population.seed), _TRIES * targets)]
    rng = surroundings.audit_rng(population.seed, _DRAWN, 1)
    missing = rng.permutation(statements.loc[is_open, "target"].unique())[:targets].tolist()
    first = {
        name: int(population.place[int(name) - population._row]) for name, _ in order[:targets]
    }
    public = _public_priors(population, set(first.values()))
    names_of_all = statements["adversary"].unique().tolist()
    # Positions of statements, and columns of as many rows.
    comparisons: list[tuple[IntArray, dict[str, Any]]] = []

    def compare(target: str, *, is_random: bool, answered: bool) -> bool:
        """Add a target's comparisons; return whether its place is small enough."""
        row, small = int(target) - population._row, False
        place = int(population.place[row])
        code, prior = str(population.codes[place]), population.prior(place)
        read = place_beliefs.PlaceReading(
            reading, population.level, code, prior, False, counterfactual, ()
        )
        pairs = list(zip(*population._place_targets(place, np.array([row])), strict=True))
        pairs = [
            (name, one) for name, one in pairs if (target, name) in groups
            and is_open[groups[target, name]].any() != answered
        ]  # fmt: skip
        # Adversaries who know the same records of others are asked together.
        for _, group in itertools.groupby(
            pairs, lambda a: (a[1].known_cells.tobytes(), a[1].all_others)
        ):
            names, ones = zip(*group, strict=True)
            for name, beliefs in zip(names, plain_beliefs(read, ones) or [], strict=False):
                rows, small = groups[target, name], True
                if not answered:
                    rows = rows[correct.iloc[rows].to_numpy(np.bool_)]
                    gain = (beliefs["posterior"] - beliefs["without"])[value[rows]]
                    columns = {"stated": np.nan, "error": 0.0, "again": gain}
                    comparisons.append((rows, {"drawn": is_random, "belief": MISSING, **columns}))
                    continue
                for belief, probability in beliefs.items():
                    stated = statements[belief].to_numpy()[rows]
                    error: Any = 0.0
                    if belief != "prior":
                        error = statements[f"{belief}_error"].to_numpy()[rows]
                    columns = {"stated": stated, "error": error, "again": probability[value[rows]]}
                    comparisons.append((rows, {"drawn": is_random, "belief": belief, **columns}))
        return small

    n_checked = 0
    for number, (target, is_random) in enumerate(order):
        for name in names_of_all if number < targets else ():
            rows = groups.get((target, name), _NOBODY)[:1]
            for belief, (stated, expected) in public[first[target]].items():
                columns = {"stated": stated, "error": 0.0, "again": expected}
                comparisons.append((rows, {"drawn": is_random, "belief": belief, **columns}))
        if n_checked < targets:
            n_checked += compare(target, is_random=is_random, answered=True)
    for target in missing:
        compare(target, is_random=True, answered=False)
    if not comparisons:
        return NO_SPOTS.copy()
    frame = statements.iloc[np.concatenate([rows for rows, _ in comparisons])][SPOTS[:6]]
    frame = frame.reset_index(drop=True)
    for name in SPOTS[6:]:
        frame[name] = np.concatenate(
            [np.broadcast_to(columns[name], rows.shape) for rows, columns in comparisons]
        )
    return pd.concat([NO_SPOTS, frame], ignore_index=True)


def _order(statements: pd.DataFrame, seed: int) -> Iterator[tuple[str, bool]]:
    """Yield targets, alternately drawn at random (True) and by largest gain (False)."""
    gain = (statements["posterior"] - statements["without"]).abs()
    largest_gain = gain.groupby(statements["target"], sort=True).max()
    names = largest_gain.index.to_numpy()
    shuffled = surroundings.audit_rng(seed, _DRAWN).permutation(names).tolist()
    most = names[np.argsort(-largest_gain.to_numpy(), kind="stable")].tolist()
    turns = [step for a, b in zip(shuffled, most, strict=True) for step in ((a, True), (b, False))]
    first = dict(reversed(turns))
    yield from ((target, first[target]) for target in dict.fromkeys(name for name, _ in turns))
