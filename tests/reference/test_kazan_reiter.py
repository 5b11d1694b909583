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
