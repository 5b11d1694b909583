"""``bayesrisk risk --hierarchy`` as a user runs it."""

import json

import numpy as np
import pytest

from bayesrisk import FiniteLaw, hierarchical_posterior

BUDGETS = ("rho_block=0.0992264", "rho_group=0.2464845")
RHO = {"rho_block": 0.0992264, "rho_group": 0.2464845}
ONE = ("block=2", "group=1", "siblings=-1", "n_siblings=27")


@pytest.fixture
def run(run):
    """Run ``risk --hierarchy``: words with an equals sign are settings."""

    def call(*words):
        settings = ",".join(str(word) for word in words if "=" in str(word))
        options = [word for word in words if "=" not in str(word)]
        return run("risk", "--prior", "1/2", "--hierarchy", settings, *options)

    return call


def test_json_holds_the_exact_numbers(run):
    status, out, err = run(*ONE, *BUDGETS, "--json")
    document = json.loads(out)
    result = hierarchical_posterior(2, 1, -1, n_siblings=27, prior=0.5, **RHO)
    assert (status, err) == (0, "")
    assert document["target_probability"] == result.target_probability
    assert document["target_probability"] == pytest.approx(0.503288, abs=5e-7)
    assert document["risk_ratio"] == result.risk_ratio
    assert document["truncation_bound"] == result.truncation_bound
    pmf = {row["group_count"]: row["probability"] for row in document["group_pmf"]}
    assert list(pmf) == list(range(7))  # N = 7 has .004 %
    assert pmf[1] == result.group_pmf[1]
    assert min(pmf.values()) > 1e-4
    assert (document["status"], document["known_count"]) == ("exact", 0)


def test_table_for_people(run):
    status, out, _ = run(*ONE, *BUDGETS)
    assert status == 0
    lines = [line.split() for line in out.splitlines()]
    assert ["risk", "ratio", "1.00658"] in lines
    result = hierarchical_posterior(2, 1, -1, n_siblings=27, prior=0.5, **RHO)
    assert ["1", f"{result.group_pmf[1]:.6f}"] in lines
    assert not any(line[0] == "7" for line in lines)
    assert out.splitlines()[-1].startswith("Truncation error: at most")


def test_the_published_conditionals_come_with_a_warning(run):
    status, out, err = run(*ONE, *BUDGETS, "conditionals=as-published", "--json")
    assert status == 0
    assert json.loads(out)["target_probability"] == pytest.approx(0.577702, abs=5e-7)
    assert err.startswith("bayesrisk: warning: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "settings", "said"),
    [
        (
            (*BUDGETS, "group_prior=truncated:9", "--known-count", 2,
             "sibling_noise=exact", "--sensitivity", "change-one"),
            RHO | {"group_prior": FiniteLaw(0, np.full(10, 0.1)), "known_count": 2,
                   "sensitivity": 2**0.5, "sibling_noise": "exact"},
            {"sibling_noise": "exact", "sensitivity": 2**0.5},
        ),
        (
            (*BUDGETS, "known_total=3"),
            RHO | {"known_total": 3},
            {"known_total": 3, "group_pmf": [{"group_count": 3, "probability": 1.0}]},
        ),
        (("rho_block=0", "rho_group=0.2"), {"rho_block": 0, "rho_group": 0.2}, {}),
    ],
    ids=["group prior", "known total", "level not released"],
)  # fmt: skip
def test_options_are_those_of_the_function(run, options, settings, said):
    document = json.loads(run(*ONE, *options, "--json")[1])
    result = hierarchical_posterior(2, 1, -1, n_siblings=27, prior=0.5, **settings)
    assert document["target_probability"] == result.target_probability
    assert document.items() >= said.items()
