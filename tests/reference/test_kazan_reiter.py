"""Numbers printed by Kazan and Reiter, "Assessing statistical disclosure risk for differentially
private, hierarchical count data, with application to the 2020 U.S. decennial census".

Table 3 is enumeration district 28-21 of Dare County, North Carolina, in the 1940 census.  The
noise of Table 4 has the rho of the detailed block query (Table 2) out of a total of 2.56, which
is 0.0992264 to the digits printed; seven digits of a risk need the fraction itself.
"""

from fractions import Fraction

import numpy as np
import pytest
from oracles import laws as oracles

import bayesrisk as br

RHO = Fraction("2.56") * Fraction(165, 4099) * Fraction(3945, 4097)
PRIORS = (1 / 2, 1 / 5, 1 / 10, 1 / 50, 1 / 864)

RELEASES = range(1, 6)  # of Table 4, which test_reproduced.py holds whole
TABLE_4_AT_3 = (0.622, 0.291, 0.154, 0.032)  # posteriors at the first four priors
# Section 3.1: average over releases given the truth, computed to seven digits.
MARGINAL_POSTERIOR = (0.5236664, 0.2254231, 0.1167606, 0.0241594, 0.00141068)
MARGINAL_RISK = (1.0473328, 1.1271154, 1.1676061, 1.2079713, 1.2188278)


def as_printed(value, printed, digits):
    """Return whether ``value`` rounds to ``printed``."""
    return abs(value - printed) <= 0.5 * 10**-digits * (1 + 1e-9)


@pytest.mark.parametrize(
    "slip",
    [{"rho": RHO / 2}, {"rho": 2 * RHO}, {"sigma2": 1 / RHO}, {"rho": RHO, "known_count": 1}],
    ids=["half rho", "double rho", "changed-record noise", "truth off by one"],
)
def test_table_4_is_not_reproduced_by_the_usual_slips(slip):
    values = br.posterior_probability(3, prior=PRIORS[:4], **slip)
    assert not any(as_printed(v, t, 3) for v, t in zip(values, TABLE_4_AT_3, strict=True))


def test_table_4_is_the_same_wherever_the_others_are():
    y = list(RELEASES)
    shifted = br.posterior_probability([34 + v for v in y], rho=RHO, prior=0.1, known_count=34)
    assert shifted.tolist() == br.posterior_probability(y, rho=RHO, prior=0.1).tolist()


@pytest.mark.parametrize(
    ("truth", "mass"),
    [
        (0, (0.161, 0.119, 0.073, 0.036, 0.015)),  # the column that Table 4 prints
        (1, (0.178, 0.161, 0.119, 0.073, 0.036)),  # the truth that the text puts at 1
    ],
)
def test_both_mass_columns(truth, mass):
    law = br.DiscreteGaussian.from_rho(RHO, loc=truth)
    values = law.pmf(list(RELEASES))
    assert [as_printed(v, t, 3) for v, t in zip(values, mass, strict=True)] == [True] * 5


def test_marginal_posterior_and_risk():
    posterior = br.marginal_posterior(rho=RHO, prior=PRIORS)
    risk = br.marginal_risk(rho=RHO, prior=PRIORS)
    assert posterior[:4] == pytest.approx(MARGINAL_POSTERIOR[:4], abs=0.5e-7)
    assert posterior[4] == pytest.approx(MARGINAL_POSTERIOR[4], abs=0.5e-8)
    assert risk == pytest.approx(MARGINAL_RISK, abs=0.5e-7)


def test_marginal_needs_the_truth_in_the_right_place():
    # The same average taken around k instead of k + 1 is another number altogether.
    right, wrong = (oracles.marginal_risk(RHO, 1 / 5, truth=t) for t in (1, 0))
    assert float(right) == pytest.approx(MARGINAL_RISK[1], abs=0.5e-7)
    assert abs(float(wrong) - MARGINAL_RISK[1]) > 0.1


def test_table_2_adds_up():
    assert sum(br.accounting.census_2020_budget("pl94", total_rho="2.56")["rho"]) == Fraction(
        64, 25
    )


def test_sums_of_block_noise_are_close_to_discrete_gaussian():
    # Supplement S2: excellent for the block query of a block group with 27 other blocks.
    result = br.distributions.sum_approximation(br.DiscreteGaussian.from_rho(0.0992), 27)
    assert result.total_variation <= 1e-14 + result.error_bound
    # The same statement does not hold for precise releases.
    assert br.distributions.sum_approximation(br.DiscreteGaussian(0.1), 27).total_variation > 1e-2


def test_figure_8():
    """The variance is the scale where the scale is large, below it elsewhere, and 0 in the end."""
    scale = np.geomspace(0.02, 20, 60)
    ratio = br.DiscreteGaussian(sigma2=scale).var() / scale
    expected = [float(oracles.gaussian_moments(s2)[0] / s2) for s2 in scale]
    assert ratio == pytest.approx(expected, rel=1e-12)
    assert (ratio <= 1 + 1e-12).all()
    assert (np.diff(ratio) >= -1e-12).all()
    assert ratio[0] < 1e-8
    # From sigma2 = 1/2 (rho = 1) on within 0.5 %, from 1 on within one in a million.
    assert (1 - ratio[scale >= 0.5] < 5e-3).all()
    assert (1 - ratio[scale >= 1] < 1e-6).all()
    assert float(1 - br.DiscreteGaussian.from_rho(RHO).var() * 2 * RHO) == pytest.approx(
        0, abs=1e-14
    )


def test_noise_of_the_published_counts_is_wider():
    # A changed record moves two cells: the production noise has sigma2 = 1 / rho, not 1 / 2 rho,
    # so that every risk above 1 is lower than Table 4 says.
    y = list(RELEASES)
    published = br.risk_ratio(y, rho=RHO, sensitivity=2**0.5, prior=0.1)
    assert (published < br.risk_ratio(y, rho=RHO, prior=0.1)).all()
    assert published == pytest.approx(br.risk_ratio(y, sigma2=1 / RHO, prior=0.1), rel=1e-14, abs=0)
