"""Hostile calls of the public API: a result or an error of our own, in bounded time.

``--fuzz-calls`` says how many; ``python tests/fuzz/calls.py --seed 1 --begin NUMBER --count 1``
makes one of them again.
"""

import pytest
from fuzz.calls import run
from fuzz.recipes import Recipe, public, recipes

SEED = 1
SHARES = ("--fuzz-calls", 5000, 1)  # each child first runs all examples


@pytest.mark.slow
def test_hostile_calls(share):
    found = list(run(share.stop - share.start, SEED, begin=share.start))
    assert found == [], "\n".join(map(str, found[:20]))


@pytest.mark.slow
def test_most_of_the_callables_have_a_call():
    made = recipes()
    assert all(isinstance(recipe, Recipe) for recipe in made)
    assert len(made) >= 150
    assert {"Schema", "tabulate", "sample_tree"} <= {recipe.name for recipe in made}
    assert {recipe.name.partition(".")[0] for recipe in made} <= {name for name, _ in public()}
