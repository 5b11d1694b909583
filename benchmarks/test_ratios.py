"""Ratios of compiled kernels to their slow twins, with margins: `make ratios`, in `make check`.

Never seconds: both are timed in turn, in one run.  What is looked for is a kernel that runs as
interpreted code, which is tens of times slower, not one that has become a little slower.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_gibbs
import test_hierarchy
import test_marginal
import test_matching
import test_microdata
import test_record_law
import test_tree
import two_level_questions as questions
from pairs import in_turn

from bayesrisk import (
    DiscreteGaussian,
    Tree,
    hierarchical_posterior,
    marginal_posterior,
    tree_posterior,
)
from bayesrisk.inference import RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.reconstruction import match_records
from bayesrisk.risk import first_look

#: Time of ours over that of the twin, per unit of work, that is not exceeded: several times what
#: was measured on two processors, busy and idle, and less than interpreted code takes.
LIMITS = {
    "draws": 15.0,  # of the discrete Gaussian, beside NumPy's normal ones
    "average": 0.3,  # over releases, beside NumPy
    "two_levels": 1e-5,  # a posterior, beside ten thousand draws in NumPy
    "gibbs": 0.04,  # beside NumPy
    "tree": 0.5,  # of 500 blocks, beside NumPy
    "points": 0.8,  # weighed, beside plain Python
    "proposals": 0.15,  # of a chain over people, beside NumPy
    "matching": 0.5,  # beside pandas
    "uniques": 0.8,  # beside pandas
}


def draws() -> tuple[Any, ...]:
    law, rng = DiscreteGaussian(5.039), np.random.default_rng(1)
    return lambda: law.rvs(300_000, rng), lambda: rng.standard_normal(300_000), 1, 1


def average() -> tuple[Any, ...]:
    some = test_marginal.PAIRS_OF_TWIN[:200]
    rho, prior = np.transpose(some)

    def twin() -> list[float]:
        return [test_marginal.numpy_marginal_posterior(r, p) for r, p in some]

    return lambda: marginal_posterior(rho=rho, prior=prior), twin, 1, 1


def two_levels() -> tuple[Any, ...]:
    some, rng = slice(0, 5_000), np.random.default_rng(1)
    about = test_hierarchy.BLOCK[some], test_hierarchy.GROUP[some], test_hierarchy.SIBLINGS[some]
    return (
        lambda: hierarchical_posterior(*about, **test_hierarchy.GRANVILLE),
        lambda: test_hierarchy.numpy_gibbs(2, 1, -1, 1_000, rng),
        5_000,
        0.1,
    )


def gibbs() -> tuple[Any, ...]:
    rng = np.random.default_rng(2)
    about = {
        "n_siblings": test_gibbs.M,
        "rho_block": test_gibbs.RHO1,
        "rho_group": test_gibbs.RHO2,
        "prior": test_gibbs.PRIOR,
    }
    run = {"draws": 20_000, "warmup": 0, "chains": 1, "rng": 1}
    return (
        lambda: questions.sample(test_gibbs.Y, test_gibbs.N, test_gibbs.S, **about, **run),
        lambda: test_gibbs.plain_gibbs(2_000, rng),
        20_000,
        2_000,
    )


def tree() -> tuple[Any, ...]:
    of = Tree.from_frame(test_tree.county(500, "sparse", np.random.default_rng(2)))
    prior = test_tree.PRIORS["sparse"]
    return (
        lambda: tree_posterior(of, leaf_prior=prior, use_targets=False),
        lambda: test_tree.numpy_means(of, prior),
        1,
        1,
    )


PEOPLE = 9
ASKED = [RecordQuestion({"sex": [0], "age": [0]}, at_least=1)]


def about_block(engine: str) -> tuple[Any, dict[str, Any]]:
    release, prior = test_record_law.noisy_block(PEOPLE)
    assert isinstance(prior, RecordPrior)
    return release, {"level": "block", "place": "1", "prior": prior, "engine": engine}


def points() -> tuple[Any, ...]:
    release, about = about_block("exact")
    return (
        lambda: microdata_posterior(release, ASKED, **about),
        lambda: test_record_law.plain_enumeration(release, PEOPLE),
        1,
        1,
    )


def proposals() -> tuple[Any, ...]:
    release, chain = test_record_law.block_chain(PEOPLE)
    return (
        lambda: chain.advance(400),
        lambda: test_record_law.plain_chain(release, PEOPLE, 2_000, np.random.default_rng(1)),
        400 * chain.sweep_size,
        2_000,
    )


def matching() -> tuple[Any, ...]:
    two = test_matching.files(20_000)
    return (
        lambda: match_records(*two, keys=test_matching.KEYS, rng=1),
        lambda: test_matching.with_pandas(*two),
        1,
        1,
    )


def uniques() -> tuple[Any, ...]:
    frame = test_microdata.people(20_000)
    return (
        lambda: first_look(frame, keys=test_microdata.KEYS),
        lambda: test_microdata.grouped(frame),
        1,
        1,
    )


CASES: dict[str, Callable[[], tuple[Any, ...]]] = {
    case.__name__: case
    for case in (draws, average, two_levels, gibbs, tree, points, proposals, matching, uniques)
}


@pytest.mark.parametrize("name", LIMITS)
def test_no_kernel_has_become_many_times_slower(name: str) -> None:
    ours, twin, ours_units, twin_units = CASES[name]()
    pairs = in_turn(ours, twin, rounds=5, ours_units=ours_units, theirs_units=twin_units)
    print(f"\n  {name}: {pairs.ratio:.3g}, at most {LIMITS[name]:g}")
    assert pairs.ratio < LIMITS[name]


def test_every_case_has_a_limit() -> None:
    assert CASES.keys() == LIMITS.keys()


def test_interpreted_kernels_are_found() -> None:
    """The same check with the compiler switched off must fail."""
    here = Path(__file__)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:benchmark", "-n", "0", str(here)]
    done = subprocess.run(
        [*command, "-k", "slower and gibbs"],
        cwd=here.parents[1],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed" in done.stdout
