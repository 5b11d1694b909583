"""Simulated likelihoods: what common streams are worth, and counting against a loop."""

from collections import Counter

import numpy as np
import pytest
from targets import Aim, faster

import bayesrisk as br
from bayesrisk.datasets import load_microdata
from bayesrisk.mechanisms.noise import DiscreteGaussianMechanism
from bayesrisk.tables import Workload

PEOPLE = Workload.named("sf1-block")
RHO, PRIOR = 0.0992264, [0.5, 0.5]
LAW = br.DiscreteGaussian.from_rho(RHO)
DRAWS, SOME = 20_000, 400


def noisy(hypothesis, rng, size):
    return hypothesis + LAW.rvs(size, random_state=rng)


def likelihood(draws, rng, streams="common"):
    return br.inference.simulated_likelihood(
        noisy, hypotheses=2, draws=draws, batch=draws, rng=rng, streams=streams
    )


def averages(streams, runs=200):
    return np.array(
        [
            br.risk.simulated_marginal_posterior(
                likelihood(1000, seed, streams), prior_pmf=PRIOR, truth=1
            ).marginal_posterior
            for seed in range(runs)
        ]
    )


def test_common_streams(measured):
    """Ratio of variances at equal cost; the F test of 200 runs knows it to about 22 %."""
    common, independent = (averages(streams).var() for streams in ("common", "independent"))
    less = Aim(4, "times less variance", at_most=False)
    measured(
        "averages from common random numbers, beside independent ones", less, independent / common
    )
    assert independent / common > 4.0


def leave_one_out(drawn):
    """Judge every draw by all the others, counting them again each time."""
    total = 0.0
    for i in range(len(drawn[0])):
        counts = [Counter(np.delete(row, i).tolist()) for row in drawn]

        def posterior(value, counts=counts):
            joint = [p * (c[value] + 0.5) for p, c in zip(PRIOR, counts, strict=True)]
            return joint[1] / sum(joint)

        squares = sum(p * posterior(row[i]) ** 2 for p, row in zip(PRIOR, drawn, strict=True))
        total += 2.0 * posterior(drawn[1][i]) - squares / PRIOR[1]
    return total / len(drawn[0])


def test_average(compare):
    from bayesrisk.risk.mechanism.posterior import _estimates

    few, many = likelihood(SOME, 1), likelihood(DRAWS, 1)
    drawn = few.values[few.codes][:, :, 0]
    ours = _estimates(few.codes, np.array(PRIOR), 1, 0.5, len(few.values))[0]
    assert ours == pytest.approx(leave_one_out(drawn), rel=1e-11)
    compare(
        lambda: br.risk.simulated_marginal_posterior(many, prior_pmf=PRIOR, truth=1),
        lambda: leave_one_out(drawn),
        aims={"average over simulated releases, beside counting anew for each": faster(10)},
        ours_units=DRAWS,
        twin_units=SOME,
    )


def test_drawing_in_batches(compare):
    single = br.inference.simulated_likelihood(noisy, hypotheses=2, draws=SOME, rng=1)
    assert single.counts.sum() == 2 * SOME
    compare(
        lambda: likelihood(DRAWS, 1),
        lambda: br.inference.simulated_likelihood(noisy, hypotheses=2, draws=SOME, rng=1),
        aims={"simulated releases in batches, beside one at a time": faster(20)},
        ours_units=DRAWS,
        twin_units=SOME,
    )


@pytest.mark.parametrize(
    "mechanism",
    [
        br.Rounding(base=3, method="random"),
        DiscreteGaussianMechanism(
            budgets={"block": dict.fromkeys(PEOPLE.at("block"), 1)},
            sensitivity="add-remove",
            overlap=20,
        ),
    ],
    ids=["rounding", "noise"],
)
def test_tables_are_made_once(compare, mechanism, request):
    """Draws of one truth against releases of it: the 18 person tables of 18,417 people."""
    data = load_microdata("synthetic-county")
    prepared = mechanism.prepare(data, workload=PEOPLE)
    release = lambda: mechanism.release(data, workload=PEOPLE, rng=1)  # noqa: E731
    assert prepared.draw(1).tables == release().tables
    name = f"a further release ({request.node.callspec.id}) of the same people, beside a new one"
    compare(lambda: prepared.draw(1), release, aims={name: faster(1)}, rounds=3)
