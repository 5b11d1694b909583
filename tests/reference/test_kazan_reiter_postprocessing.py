"""Supplement S6 of Kazan and Reiter, "Assessing statistical disclosure risk for differentially
private, hierarchical count data, with application to the 2020 U.S. decennial census".

Figure 12 shows curves and the text prints no number of it.  The numbers here were computed by
enumeration of both noisy counts, to the digits given; the statements are those of the text.
"""

from fractions import Fraction

import numpy as np
import pytest

import bayesrisk as br

RHO = Fraction("2.56") * Fraction(165, 4099) * Fraction(3945, 4097)

# Marginal posterior: prior 1/2, k = 0, truth 1; rows are numbers of siblings.
GROUP_COUNTS = (1, 2, 5, 10, 20, 50)
MARGINAL_POSTERIOR = {
    1: (0.53051, 0.53637, 0.53916, 0.53917, 0.53917, 0.53917),
    5: (0.51041, 0.51175, 0.51334, 0.51352, 0.51352, 0.51352),
    27: (0.50225, 0.50239, 0.50270, 0.50288, 0.50292, 0.50292),
}


def table(**change):
    setting = {
        "noise": br.Noise(rho=RHO),
        "prior": 0.5,
        "group_count": GROUP_COUNTS,
        "n_siblings": np.array([*MARGINAL_POSTERIOR])[:, None],
        **change,
    }
    return br.risk.compare_postprocessing(**setting).after.round(5)


@pytest.mark.parametrize("rho", [RHO, 0.0992264])
@pytest.mark.parametrize("mode", ["approximate", "exact"])
def test_marginal_posteriors(rho, mode):
    np.testing.assert_array_equal(
        table(noise=br.Noise(rho=rho), sibling_noise=mode), np.array([*MARGINAL_POSTERIOR.values()])
    )


@pytest.mark.parametrize(
    "slip",
    [{"noise": br.Noise(rho=RHO / 2)}, {"noise": br.DiscreteGaussian(1 / RHO)}, {"prior": 0.49}],
    ids=["half rho", "changed-record noise", "another prior"],
)
def test_marginal_posteriors_are_not_those_of_the_usual_slips(slip):
    assert (table(**slip) != np.array([*MARGINAL_POSTERIOR.values()])).all()


@pytest.mark.parametrize("n_siblings", [1, 5, 27])
def test_text_the_marginal_risk_is_bounded_by_that_without_post_processing(n_siblings):
    rho = np.geomspace(1e-3, 20, 60)[:, None]
    result = br.risk.compare_postprocessing(
        group_count=[1, 2, 5, 10, 20, 50], n_siblings=n_siblings, noise=br.Noise(rho=rho), prior=0.5
    )
    assert (result.margin >= -result.error_bound).all()
    # "Larger values of N give risks closer to the bound".
    assert (np.diff(result.margin, axis=1) <= result.error_bound[:, 1:]).all()


def test_text_the_reduction_is_minor_only_for_few_siblings():
    # "The reduction in disclosure risk due to the post-processing is minor": true of the posterior
    # for one sibling; with the 27 of Section 4.3 most of what was to be learned is gone.
    result = br.risk.compare_postprocessing(
        group_count=50, n_siblings=[1, 27], noise=br.Noise(rho=RHO), prior=0.5
    )
    learned = (result.after - 0.5) / (result.before - 0.5)
    assert learned.round(2).tolist() == [0.86, 0.12]
