"""The report of the demonstration that ships: what its check by simulation says, as printed."""

import dataclasses
import re

import numpy as np
import pytest
from studies import run_sweep

from bayesrisk import DiscreteGaussian, posterior_probability
from bayesrisk.experiments import load_config, read_results, write_report
from bayesrisk.experiments.sweep_report import simulation_check
from bayesrisk.risk.count.question import gaussian_risk

SENTENCE = re.compile(
    r"Simulated minus exact averages in ([\d,]+) settings, in standard errors: median (-?[\d.]+) "
    r".*?; ([\d.]+)% within two .*? share ([\d,]+) independent sets .*? "
    r"([\d,]+) of ([\d,]+) settings are left out: ([\d,]+) because .*? and ([\d,]+) because"
)


def said(html):
    """Return the numbers of the sentence."""
    found = SENTENCE.search(html)
    assert found, "the report has no such sentence"
    return [float(text.replace(",", "")) for text in found.groups()]


def checked(config, results):
    """Return the numbers of the sentence about other results."""
    return said(simulation_check(config, results))


def plausible(median, within, sets):
    """Return whether scores of this median and share may be standard normal, at four errors.

    Priors at one rho share their draws, so that as many scores as there are sets are independent.
    """
    share = 0.9545
    return (
        abs(median) < 4.0 * 1.2533 / sets**0.5
        and abs(within / 100.0 - share) < 4.0 * (share * (1.0 - share) / sets) ** 0.5
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The sweep of ``make demo``, every setting of it, without the quantities not checked here."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    config = dataclasses.replace(
        load_config("sample:dare-county-sweep"),
        quantities=("marginal_posterior", "simulated_marginal_posterior"),
    )
    run_sweep(config, folder)
    return folder


def test_the_check_by_simulation_is_one(demo):
    html = write_report(demo).read_text(encoding="utf-8")
    judged, median, within, sets, left_out, settings, rare, same = said(html)
    assert settings == 2 * 203 * 5
    assert judged + left_out == settings
    assert rare + same == left_out
    assert judged > 0.75 * settings
    assert sets > 300
    assert plausible(median, within, sets)
    # Controls: another average, and errors half as large, are told apart.
    config, results = read_results(demo)
    simulated = results["quantity"] == "simulated_marginal_posterior"
    shifted, narrow = results.copy(), results.copy()
    shifted.loc[simulated, "value"] += 0.5 * results["standard_error"][simulated]
    _, high, *_ = checked(config, shifted)
    assert high == pytest.approx(median + 0.5, abs=0.011)  # simulated minus exact, not the reverse
    assert not plausible(high, within, sets)
    narrow.loc[simulated, "standard_error"] /= 2.0
    _, wide, few, *_ = checked(config, narrow)
    assert not plausible(wide, few, sets)


@pytest.mark.parametrize("rho", [0.001, 0.3, 4.0, 12.0, 90.0])
@pytest.mark.parametrize("prior", [0.5, 1 / 864])
def test_releases_that_carry_the_error(rho, prior):
    # n E[d^2]^2 / E[d^4] by a plain sum, with weights from the definition of the law.
    n, reach = 20_000, int(10.0 / np.sqrt(2.0 * rho)) + 3
    x = np.arange(-reach, reach + 1)
    weight = np.exp(-rho * x.astype(float) ** 2)
    weight /= weight.sum()
    posterior = prior / (prior + (1.0 - prior) * np.exp(-rho * (2.0 * (x + 1) - 1.0)))
    d = posterior - weight @ posterior
    expected = n * (weight @ d**2) ** 2 / (weight @ d**4) if rho < 50 else 0.0
    got = gaussian_risk(rho, 1.0, np.array([prior])).effective_releases(n)
    assert got == pytest.approx([expected], rel=1e-6)


def test_what_is_left_out_could_not_have_been_judged():
    # At rho = 9 one release in 8,000 is below the truth: of 20,000 two or three.  Over many runs
    # the scores are far from normal, and those of a setting that is judged are not.
    rng, runs, n, prior = np.random.default_rng(5), 2000, 20_000, 0.5
    wide = []
    for rho in (9.0, 1.0):
        law = DiscreteGaussian.from_rho(rho, loc=1)
        y = np.arange(-8, 11)
        counts = rng.multinomial(n, law.pmf(y) / law.pmf(y).sum(), runs)
        posterior = posterior_probability(y, rho=rho, prior=prior)
        mean = counts @ posterior / n
        square = counts @ posterior**2 / n - mean**2
        error = np.sqrt(np.maximum(square, 0.0) / n)
        effective = gaussian_risk(rho, 1.0, np.array([prior])).effective_releases(n)[0]
        assert (effective >= 30.0) == (rho == 1.0)
        exact = law.pmf(y) @ posterior
        wide.append(np.mean(np.abs(mean - exact) > 2.0 * error))
    reach = 4.0 * (0.0455 * 0.9545 / runs) ** 0.5
    assert wide[0] - 0.0455 > reach
    assert abs(wide[1] - 0.0455) < reach
