"""Several protections side by side, their utility, and what post-processing takes away."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from mechanism_cases import ByHand, county, leaks, tables, uniform_noise

import bayesrisk as br
from bayesrisk.mechanisms.registry import make_mechanism
from bayesrisk.risk.mechanism.hypotheses import MechanismOptions, MechanismQuestion
from bayesrisk.risk.mechanism.many import compare_mechanisms, postprocessing_effect
from bayesrisk.risk.mechanism.posterior import mechanism_risk
from bayesrisk.risk.mechanism.simulation import utility_and_spec

BLOCK = tables("block")
ASK = {"observed": [("block", "colour", "2")], "alternatives": [None], "prior": 0.2}
BUDGET = {"block": {"total": "1/10", "colour": "1/5", "detail": "1/4"}}


def noise(law="discrete-gaussian"):
    return make_mechanism(law, budgets=BUDGET, sensitivity="add-remove")


def test_utility_is_the_mean_over_cells_and_releases():
    mechanism = ByHand(uniform_noise)
    frame = utility_and_spec(county(), mechanism, workload=BLOCK, draws=60, rng=4)[0]
    assert frame["table"].tolist() == ["total", "colour", "detail", "all"]
    assert frame["cells"].tolist() == [4, 12, 24, 40]
    # |noise| is 0 or 1 with mean 2/3, and so is its square; six standard errors.
    for _, row in frame.iterrows():
        error = np.sqrt(2 / 9 / (60 * row["cells"]))
        assert abs(row["mean_absolute_error"] - 2 / 3) < 6 * error
        assert row["root_mean_square_error"] == pytest.approx(np.sqrt(row["mean_absolute_error"]))
        assert 0.5 * error < row["mean_absolute_error_error"] < 2.0 * error
        slope = 0.5 / row["root_mean_square_error"]
        assert row["root_mean_square_error_error"] == pytest.approx(
            slope * row["mean_absolute_error_error"]
        )


def test_utility_of_noise_is_that_of_its_law():
    frame = utility_and_spec(county(), noise(), workload=BLOCK, draws=80, rng=4)[0]
    frame = frame.set_index("table")
    for table in ("total", "colour", "detail"):
        law = noise().spec.law("block", table)
        row = frame.loc[table]
        root = float(np.sqrt(law.var()))
        assert abs(row["root_mean_square_error"] - root) < 6 * row["root_mean_square_error_error"]


def test_suppressed_cells_count_as_zero():
    suppression = make_mechanism("suppression", threshold=3)
    frame = utility_and_spec(county(), suppression, workload=BLOCK, draws=2, rng=4)[0]
    release = suppression.release(county(), workload=BLOCK, rng=0)
    hidden = {k: int(v.nnz) for k, v in release.tables.suppressed.items()}
    assert frame["suppressed_share"].iloc[-1] == pytest.approx(sum(hidden.values()) / 40)
    truth = make_mechanism("identity").release(county(), workload=BLOCK, rng=0).tables
    lost = sum(abs(truth.counts[k] - release.tables.counts[k]).sum() for k in truth.counts)
    assert frame["mean_absolute_error"].iloc[-1] == pytest.approx(lost / 40)
    assert frame["mean_absolute_error_error"].tolist() == [0.0] * 4


def test_frame_is_the_single_answers():
    mechanisms = {"none": make_mechanism("identity"), "hand": ByHand(uniform_noise), "dg": noise()}
    targets = {"a": {"person": 104}, "b": {"person": 105}}
    options = MechanismOptions(utility_draws=3)
    settings = {"question": MechanismQuestion(BLOCK, **ASK), "draws": 40, "options": options}
    frame = compare_mechanisms(county(), mechanisms, targets, rng=5, **settings)
    assert frame[["protection", "target"]].to_numpy().tolist() == [
        [p, t] for p in mechanisms for t in targets
    ]
    seed = int(np.random.default_rng(5).integers(2**63))
    for name, mechanism in mechanisms.items():
        alone = mechanism_risk(county(), mechanism, targets["a"], rng=seed, **settings)
        row = frame[(frame["protection"] == name) & (frame["target"] == "a")].iloc[0]
        assert row["marginal_risk"] == alone.marginal_risk
        assert row["mean_absolute_error"] == alone.to_frame()["mean_absolute_error"].iloc[0]
    # Both targets have the same count with and without them, and the truth's releases in common.
    hand = frame[frame["protection"] == "hand"]["marginal_risk"].tolist()
    assert hand[0] == hand[1]
    fewer = compare_mechanisms(county(), {"dg": noise()}, targets, rng=5, **settings)
    pd.testing.assert_frame_equal(fewer, frame.iloc[4:].reset_index(drop=True))


@pytest.mark.parametrize(
    ("mechanisms", "targets", "message"),
    [
        ({}, {"a": 0}, "mechanisms must have at least one"),
        ([3], {"a": 0}, "mechanisms must be"),
        ({"x": ByHand(leaks)}, {}, "targets must have at least one"),
        ({"x": ByHand(leaks)}, [0], "targets must be"),
    ],
)
def test_bad_comparisons(mechanisms, targets, message):
    question = MechanismQuestion(BLOCK, **ASK)
    with pytest.raises(br.ArgumentError, match=message):
        compare_mechanisms(county(), mechanisms, targets, question, draws=40, rng=1)


TREE = tables("county", "block")


def topdown(rho):
    levels = ("county", "block")
    return make_mechanism(
        "topdown", budget={level: {"colour": rho, "detail": rho} for level in levels}
    )


@pytest.mark.slow
@pytest.mark.parametrize("rho", ["1/20", "1/2"])
@pytest.mark.parametrize("alternative", [None, {"colour": 0}])
def test_postprocessing_never_tells_more(rho, alternative):
    question = MechanismQuestion(
        TREE, [("block", "colour"), ("block", "detail")], alternatives=[alternative], prior=0.3
    )
    effect = postprocessing_effect(
        county(), topdown(rho), {"person": 104}, question, draws=250, rng=2
    )
    moved = 1 if alternative is None else 2
    assert effect.measured_cells == 4 * moved
    # sigma2 = Delta**2 / (2 rho) with Delta**2 = 2, so 1 / (2 sigma2) = rho / 2 in every cell.
    each = float(Fraction(rho)) / 2.0
    exact = br.risk.multilevel_marginal_posterior(
        noise=br.Noise(rho=[each] * effect.measured_cells), prior=0.3
    ).posterior
    assert abs(effect.before - exact) < 5 * effect.before.error + 1e-12
    assert effect.before.lower <= effect.before <= effect.before.upper
    # The data-processing inequality, within the error: the interval of what is left begins below.
    assert effect.after.lower <= effect.before.upper
    assert effect.margin > -4 * effect.margin.error
    assert effect.margin == pytest.approx(effect.before - effect.after)
    assert effect.prior <= effect.after.lower
    assert effect.margin.lower == effect.before.lower - effect.after.upper
    assert effect.margin.upper == effect.before.upper - effect.after.lower
    assert effect.to_frame().shape == (1, 15)


def test_postprocessing_needs_measurements():
    settings = {"draws": 40, "rng": 1}
    with pytest.raises(
        br.exceptions.ArgumentTypeError, match="mechanism must have measurement_noise"
    ):
        postprocessing_effect(
            county(), ByHand(leaks), 0, MechanismQuestion(BLOCK, **ASK), **settings
        )
    part = MechanismQuestion(TREE.select(tables=["colour"]), **ASK)
    with pytest.raises(br.ArgumentError, match=r"(?i)measurements|budget"):
        postprocessing_effect(county(), topdown("1/2"), 4, part, **settings)
