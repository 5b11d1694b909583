"""Plans of small worlds, against all settings and all data sets."""

import numpy as np
import pytest
from oracles.plans import least_coarse
from support.plan_worlds import small_world

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


@pytest.mark.parametrize("part", range(4))
def test_forty_worlds(part):
    found = [compare(seed) for seed in range(part * 10, part * 10 + 10)]
    assert any(cost for cost in found)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_five_hundred_worlds(part):
    for seed in range(1000 + part * 50, 1050 + part * 50):
        compare(seed)
