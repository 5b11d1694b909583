"""Published budgets of the 2020 Census and numbers of the conversions between definitions.

Sources: the Census Bureau's announcement of the production settings (rho = 2.56, epsilon = 17.14
and the DHC totals); the configuration files of the public code of the 2020 Disclosure Avoidance
System (strategy ``ProductionCandidate20210527US_mult8_add02_dsepJune3`` and the DHC strategies of
2022-09-22); Abowd et al. (2022), section 8.2; Kazan and Reiter, Theorem 1; Canonne, Kamath and
Steinke (2020), Theorem 7 and Corollary 13.
"""

from fractions import Fraction

import pytest

import bayesrisk as br

PL94_RHO = Fraction(293764, 114921)
QUERIES = (
    "total", "cenrace", "hispanic", "votingage", "hhinstlevels", "hhgq", "hispanic * cenrace",
    "votingage * cenrace", "votingage * hispanic", "votingage * hispanic * cenrace", "detailed",
)  # fmt: skip
# sigma2 of the published noise, to the digits printed; the nation has no total query.
PL94_PERSON_SIGMA2 = {
    "US": "- 1215 2430 2430 2430 2430 485.9 485.9 2430 142.9 19.66",
    "State": "1.209 760.4 760.4 760.4 760.4 760.4 380.2 380.2 760.4 134.2 19.84",
    "County": "4.702 1470 1470 1470 1470 1470 524.9 524.9 1470 145.5 19.49",
    "Tract": "6.110 1197 1915 1915 1915 1915 4.953 478.7 1915 142.9 19.86",
    "Block_Group": "3.069 1744 1744 1744 1744 1744 4.960 581.5 1744 218.0 4.063",
    "Block": "7963 4424 7963 7963 7963 7963 1896 1896 7963 560.8 10.09",
}
PL94_UNIT_SIGMA2 = {
    "US": (2735, 2735, 156.3, 37.57, 31.10, 110.5),
    "PR": (2317.5, 155.99, 37.15, 31.12, 110.5),
}
DHC_PERSON_DETAILED_SIGMA2 = {
    "US": 137.0, "State": 10.01, "County": 32.26, "Prim": 20.92, "Tract_Subset_Group": 20.92,
    "Tract_Subset": 11.52, "Block_Group": 23.26, "Block": 909.1,
}  # fmt: skip


def matches(value, printed):
    """Return whether ``value`` rounds to the digits of ``printed``."""
    decimals = len(str(printed).partition(".")[2])
    return abs(value - float(printed)) <= 0.5 * 10**-decimals * (1 + 1e-9)


def test_conversions_of_the_announced_budget():
    assert br.rho_to_epsilon(2.56, 1e-10, "bun-steinke") == pytest.approx(17.9153, abs=0.5e-4)
    assert br.rho_to_epsilon(2.56, 1e-10) == pytest.approx(17.1583, abs=0.5e-4)


def test_published_epsilon_of_the_redistricting_data():
    assert matches(br.rho_to_epsilon(PL94_RHO, 1e-10), "17.14")
    assert matches(br.rho_to_epsilon(PL94_RHO, 1e-10, "bun-steinke"), "17.90")


def test_deltas_of_the_block_query():
    assert br.accounting.rho_to_delta(0.0992, 1.0) == pytest.approx(0.0086916, abs=0.5e-7)
    exact = br.accounting.discrete_gaussian_delta(1.0, sigma2=5.04)
    assert exact == pytest.approx(0.00328048, abs=0.5e-8)


@pytest.mark.parametrize(
    ("product", "universe", "rho"),
    [
        ("pl94", "person", PL94_RHO),
        ("pl94", "unit", Fraction(11417641, 152349649)),
        ("dhc", "person", Fraction(24811, 5000)),
    ],
)
def test_total_budgets_are_exact(product, universe, rho):
    assert sum(br.accounting.census_2020_budget(product, universe=universe)["rho"]) == rho


def test_dhc_households_and_units_share_a_budget():
    parts = [
        br.accounting.census_2020_budget("dhc", universe=u)["rho"] for u in ("household", "unit")
    ]
    assert sum(map(sum, parts)) == Fraction(15401, 2000)


@pytest.mark.parametrize(
    ("rho", "simple", "tight"),
    [(Fraction(24811, 5000), "26.34", "25.42"), (Fraction(15401, 2000), "34.33", "33.29")],
    ids=["persons", "households and units"],
)
def test_published_epsilons_of_dhc(rho, simple, tight):
    assert matches(br.rho_to_epsilon(rho, 1e-10, "bun-steinke"), simple)
    assert matches(br.rho_to_epsilon(rho, 1e-10), tight)


def test_published_epsilon_of_the_unit_data():
    assert matches(br.rho_to_epsilon(Fraction(11417641, 152349649), 1e-10), "2.47")


@pytest.mark.parametrize("level", PL94_PERSON_SIGMA2)
def test_sigma2_of_the_person_queries(level):
    budget = br.accounting.census_2020_budget("pl94").set_index(["level", "query"])["sigma2"]
    printed = PL94_PERSON_SIGMA2[level].split()
    for query, text in zip(QUERIES, printed, strict=True):
        if text == "-":
            assert (level, query) not in budget.index
        else:
            assert matches(budget[level, query], text), (level, query)


@pytest.mark.parametrize("region", PL94_UNIT_SIGMA2)
def test_sigma2_of_the_unit_queries(region):
    budget = br.accounting.census_2020_budget("pl94", universe="unit", region=region)
    printed = PL94_UNIT_SIGMA2[region]
    assert set(budget["query"]) == {"detailed"}
    assert [matches(v, t) for v, t in zip(budget["sigma2"], printed, strict=True)] == [True] * len(
        printed
    )


@pytest.mark.parametrize("level", DHC_PERSON_DETAILED_SIGMA2)
def test_sigma2_of_the_dhc_person_detail(level):
    budget = br.accounting.census_2020_budget("dhc").set_index(["level", "query"])["sigma2"]
    assert matches(budget[level, "detailed"], DHC_PERSON_DETAILED_SIGMA2[level])


def test_the_two_neighbour_conventions_differ_by_two():
    rho = br.accounting.census_2020_budget("pl94").set_index(["level", "query"])["rho"][
        "Block", "detailed"
    ]
    assert float(br.accounting.sigma2_from_rho(rho, 2**0.5)) == pytest.approx(10.09, abs=0.005)
    assert float(br.accounting.sigma2_from_rho(rho, 1)) == pytest.approx(5.05, abs=0.005)
