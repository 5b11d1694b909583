"""Random laws of change, small populations in two years, and releases of both."""

import math
from dataclasses import replace

import joint_places
import numpy as np
from oracles import years as oracle
from random_places import GEOGRAPHY, _release

from bayesrisk import Release
from bayesrisk.inference import RecordPrior
from bayesrisk.tables import Attribute, PopulationChange, Schema

NAMES = ("sex", "age", "race")
MOST = 3


def random_law(rng):
    """Return a law of change, its sizes, the position of the age, and the oracle's law."""
    sizes, age = [((2, 2), 1), ((3,), None), ((2, 2), None), ((3,), 0), ((4,), 0)][
        int(rng.integers(5))
    ]
    names = [n for n in NAMES if n != "age"][: len(sizes)]
    if age is not None:
        names = ["sex", "age"] if len(sizes) == 2 else ["age"]
    schema = Schema(
        "people", tuple(Attribute(a, s) for a, s in zip(names, sizes, strict=True)), GEOGRAPHY
    )
    groups = 1 if age is None else sizes[age]
    starts = None
    if age is not None:
        starts = [0, *np.cumsum(rng.integers(3, 15, groups - 1)).tolist()]
    years = int(rng.integers(1, 13))
    staying, dying = rng.random(groups), rng.random(groups) * 0.3
    if rng.random() < 0.3:
        staying[int(rng.integers(groups))] = 1.0
        dying[:] = 0.0
    change = {}
    for i, name in enumerate(names):
        if i != age and rng.random() < 0.8:
            if rng.random() < 0.5:
                rate = float(rng.choice([0.02, 0.2, 0.5]))
                matrix = np.full((sizes[i], sizes[i]), rate / (sizes[i] - 1))
                np.fill_diagonal(matrix, 1 - rate)
                change[name] = (rate, matrix)
            else:
                matrix = rng.dirichlet(np.ones(sizes[i]), sizes[i])
                change[name] = (matrix, matrix)
    births = 0.0 if age is None else float(rng.choice([0.0, 0.3]))
    arrivals = float(rng.choice([0.0, 0.4, 1.0]))
    law = PopulationChange(
        schema, years, age=None if age is None else "age", starts=starts,
        staying=staying if age is not None else staying[0],
        dying=dying if age is not None else dying[0],
        changes={n: given for n, (given, _) in change.items()}, arrivals=arrivals, births=births,
    )  # fmt: skip
    told = {
        "starts": starts, "years": years, "staying": staying, "dying": dying,
        "change": {names.index(n): m for n, (_, m) in change.items()}, "arrivals": arrivals,
        "births": births,
    }  # fmt: skip
    return law, sizes, age, told


def two_years(seed, kinds):
    """Return law, prior, joint release, the oracle's paths and terms, and the true trajectories."""
    rng = np.random.default_rng([seed, 28])
    law, sizes, age, told = random_law(rng)
    counts = rng.dirichlet(np.ones(math.prod(sizes))) * 2.0
    by_kind = {k: float(counts[np.ravel_multi_index(k, sizes)]) for k in np.ndindex(*sizes)}
    paths = oracle.trajectories(sizes, age, told, by_kind)
    prior = RecordPrior.trajectories(law, counts)
    size = prior.size[: MOST + 1]
    prior = replace(prior, size=size / size.sum())
    mean = np.array([m for *_, m in paths])
    truth = rng.multinomial(int(rng.choice(MOST + 1, p=prior.size)), mean / mean.sum())
    releases, terms = [], []
    for later, kind in zip((False, True), kinds, strict=True):
        here = np.zeros(math.prod(sizes), np.int64)
        for path, n in zip(paths, truth, strict=True):
            if path[int(later)] is not None:
                here[np.ravel_multi_index(path[int(later)], sizes)] += n
        release, said = _release(rng, kind, law.schema, sizes, [here])
        releases.append(release)
        for _, weights, log_likelihood in said:
            own = {k: weights[np.ravel_multi_index(k, sizes)] for k in np.ndindex(*sizes)}
            terms.append((later, own, log_likelihood))
    joint = Release.combine(dict(zip(("first", "later"), releases, strict=True)), change=law)
    return law, prior, joint, (paths, terms), truth


def sides(attribute):
    """Return the values (first, later) that each code stands for; None of who is away."""
    if not any(", then " in label for label in attribute.labels):
        return [(code, code) for code in range(attribute.size)]
    found = []
    for label in attribute.labels:
        first, later = label.split(", then ")
        found.append((
            None if first == "not yet" else int(first), None if later == "gone" else int(later)
        ))  # fmt: skip
    return found


def ranges_of_two_years(seed):
    """Return releases of one place in two years whose counts allow several lists, and each kind.

    Kinds of trajectories, and what tables of each year count of them, follow from the labels.
    """
    rng = np.random.default_rng([seed, 29])
    law, _, age, _ = random_law(rng)
    prior = RecordPrior.trajectories(law, rng.dirichlet(np.ones(law.schema.size)) * 2.0)
    both = law.schema_of_both
    codes = np.indices(both.shape).reshape(len(both.shape), -1).T.tolist()
    pairs = [sides(a) for a in both.attributes]
    where = {"both": (0, 0), "left": (0, None), "arrived": (None, 0)}
    kinds = []
    for cell in codes:
        values = dict(
            zip(both.names, [p[c] for p, c in zip(pairs, cell, strict=True)], strict=True)
        )
        if age is None:
            values["presence"] = where[both.attribute("presence").labels[cell[-1]]]
        state = values["presence" if age is None else "age"]
        kinds.append([
            [] if state[year] is None else [tuple(values[n][year] for n in law.schema.names)]
            for year in (0, 1)
        ])  # fmt: skip
    truth = rng.multinomial(int(rng.integers(1, 3)), prior.shares)[None, :]
    releases, rows = {}, []
    for year, name in enumerate(("r0", "r1")):
        listed = [joint_places.Household(None, kind[year]) for kind in kinds]
        releases[name], told = joint_places._release(rng, None, law.schema, listed, truth, (0,))
        rows += [(name, *row) for row in told]
    return joint_places.Joint(releases, None, prior, rows, 1, truth, law)
