"""The oracles against closed forms and against each other: they must not agree by construction."""

import ast
import math
from pathlib import Path

import pytest
from mpmath import mp, mpf
from oracles import laws as oracles


def test_oracles_do_not_import_the_package():
    tree = ast.parse(Path(oracles.__file__).read_text(encoding="utf-8"))
    imports = [n for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom))]
    assert imports
    assert not any("bayesrisk" in ast.dump(node) for node in imports)


@pytest.mark.parametrize("first", [1, 7, 60, 149])
def test_both_ways_to_sum_a_gaussian_tail_agree(first):
    with mp.workdps(70):
        direct = oracles._direct_tail(first, mpf(300))
        corrected = oracles._euler_maclaurin_tail(first, mpf(300))
        assert abs(corrected / direct - 1) < mpf(10) ** -30


@pytest.mark.parametrize("sigma2", [0.05, 1.0, 40.0])
def test_normaliser_is_the_theta_function(sigma2):
    with mp.workdps(60):
        theta = mp.jtheta(3, 0, mp.exp(-1 / (2 * mpf(sigma2))))
        assert abs(oracles.gaussian_normaliser(sigma2) / theta - 1) < mpf(10) ** -55


def test_tails_and_masses_are_consistent():
    for law in ("gaussian", "laplace"):
        pmf, sf = getattr(oracles, f"{law}_pmf"), getattr(oracles, f"{law}_sf")
        with mp.workdps(60):
            for x in range(-5, 6):
                assert abs(sf(x - 1, 3.7, 1) - sf(x, 3.7, 1) - pmf(x, 3.7, 1)) < mpf(10) ** -50


def test_marginal_integral_continues_the_sum():
    with mp.workdps(40):
        # The sum and the integral differ by exp(-pi**2 / rho) at most: nothing at rho = 0.01.
        below, above = (oracles.marginal_risk(r, 0.2) for r in (0.01 - 1e-15, 0.01))
        assert abs(below - above) < mpf(10) ** -14
        nested = oracles.multilevel_marginal_risk([0.3], 0.2)
        assert abs(nested - oracles.marginal_risk(0.3, 0.2)) < mpf(10) ** -19


def test_sums_of_one_and_two():
    one, two = (oracles.gaussian_sum_pmf(0.7, n, 20) for n in (1, 2))
    with mp.workdps(30):
        for x in (0, 1, 5):
            assert abs(one[x] - oracles.gaussian_pmf(x, 0.7)) < mpf(10) ** -28
        centre = one[0] ** 2 + 2 * mp.fsum(p * p for p in one[1:])
        assert abs(two[0] - centre) < mpf(10) ** -28


def test_conversions_invert_each_other():
    epsilon = oracles.tight_epsilon(0.7, 1e-6)
    assert math.isclose(oracles.tight_delta(0.7, epsilon), 1e-6, rel_tol=1e-15)
    assert math.isclose(oracles.tight_rho(epsilon, 1e-6), 0.7, rel_tol=1e-15)
