"""Plans of small worlds, against all settings and all data sets."""

import numpy as np
import pytest
from oracles.plans import data_sets, least_coarse
from support.plan_worlds import small_world

from bayesrisk.exceptions import ArgumentError
from bayesrisk.risk.planning.ladders import Ladder
from bayesrisk.risk.planning.release_plan import plan


def compare(seed):
    """Compare the plan of a world with the enumeration; return what became of it."""
    rng = np.random.default_rng(seed)
    records, work, codes, ladders, limits, world, rules = small_world(rng)
    within = int(rng.integers(2)) if rng.random() < 0.3 else 0
    wanted = [limits.get(name) for name in ("recovered", "sentences", "proved")]
    best, verdicts = least_coarse(world, rules, wanted, within=within)
    result = plan(records, work, limits={**limits, "within": within}, ladders=ladders, places=codes)
    by_texts = {
        tuple(ladder.rules[i] for ladder, i in zip(ladders, choice, strict=True)): value
        for choice, value in verdicts.items()
    }
    names = [ladder.name for ladder in ladders]
    for row in result.frontier.to_dict("records"):
        if (texts := tuple(row[n] for n in names)) not in by_texts:
            continue  # a rule of an agency
        leaks, safe, cost = by_texts[texts]
        assert row["cost"] == pytest.approx(cost, abs=1e-9)
        assert row["verdict"] in (("safe",) if safe else ("unsafe",)), (texts, leaks)
        if row["role"] in ("finer", "coarsest", "chosen"):
            for name, number in zip(("recovered", "sentences", "proved"), leaks, strict=True):
                if name in limits:
                    assert row[name] == row[f"{name}_most"] == number, (texts, name)
    if best is None:
        assert result.chosen is None
        assert result.blocking
    else:
        assert result.chosen["cost"] == pytest.approx(best, abs=1e-9)
    return best


@pytest.mark.parametrize(
    "part", [0, 1, *(pytest.param(part, marks=pytest.mark.slow) for part in (2, 3))]
)
def test_forty_worlds(part):
    found = [compare(seed) for seed in range(part * 10, part * 10 + 10)]
    assert any(cost for cost in found)


SUPPRESSION = "suppression:threshold=3,fewest=true"


def test_cells_are_withheld_together_and_no_data_set_tells_them():
    """Of the tables of one ladder, where that costs less than to publish none; by enumeration."""
    chosen = 0
    for seed in range(40):
        records, work, codes, *_, world, _ = small_world(np.random.default_rng(seed))
        ladder = {"rules": ["identity", SUPPRESSION, "unpublished"]}
        result = plan(records, work, limits={"recovered": 0}, ladders=[ladder], places=codes)
        if {text for one in result.rules.values() for text in one.values()} != {SUPPRESSION}:
            continue
        chosen += 1
        tables = result.release(records).tables
        places, kinds = world["truth"].shape
        every = data_sets(places * kinds, 10).reshape(-1, places, kinds)
        same, asked, small = np.ones(len(every), np.bool_), [], []
        for (level, name), (cells, summed) in zip(work.tables, world["tables"], strict=True):
            sums = [np.stack([sets[..., sorted(c)].sum(axis=-1) for c in cells], axis=-1)
                    for sets in (every, world["truth"][None])]  # fmt: skip
            made, true = (one.sum(axis=1, keepdims=True) if summed else one for one in sums)
            hidden = tables.hidden(level, name).toarray()
            published = tables.counts[level, name].toarray()
            # Zeros are published: what is withheld is at least 1.
            same &= np.where(hidden, made >= 1, made == published).all(axis=(1, 2))
            asked.append(made.reshape(len(every), -1))
            small.append(np.isin(true, (1, 2)).ravel())
        counts = np.concatenate(asked, axis=1)[same][:, np.concatenate(small)]
        assert (counts.max(axis=0) > counts.min(axis=0)).all()
    assert chosen > 3


def test_tables_that_are_protected_together_are_in_one_ladder():
    records, work, codes, *_ = small_world(np.random.default_rng(0))
    ladders = [Ladder((key,), (SUPPRESSION,)) for key in work.tables]
    with pytest.raises(ArgumentError, match="one ladder"):
        plan(records, work, limits={"recovered": 0}, ladders=ladders, places=codes)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_five_hundred_worlds(part):
    for seed in range(1000 + part * 50, 1050 + part * 50):
        compare(seed)
