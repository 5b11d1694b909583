"""A sweep of a whole release: the law of its privacy loss at every budget."""

import pytest

from bayesrisk.accounting import PrivacyLoss, census_2020_budget
from bayesrisk.exceptions import ConfigError
from bayesrisk.experiments.sweep import SweepStudy, sweep
from bayesrisk.experiments.sweep_document import parse_config

QUANTITIES = ["whole_release_posterior", "whole_release_risk", "whole_release_epsilon"]


def document(**grid):
    grid = {"rho": [0.5, 2.5], "prior": ["1/10", "1/2"], "sensitivity": ["change-one"]} | grid
    return {"quantities": QUANTITIES, "release": {"budget": "pl94"}, "grid": grid}


def test_every_row_is_that_of_the_law():
    study = parse_config(document())
    rows = sweep(study)
    for rho in (0.5, 2.5):
        law = PrivacyLoss.of(census_2020_budget("pl94", total_rho=rho))
        assert law.rho == pytest.approx(rho)
        mine = rows[rows["rho"] == rho].set_index(["quantity", "prior"])["value"]
        for prior in (0.1, 0.5):
            belief = law.posterior(prior)
            assert mine["whole_release_posterior", prior] == belief.mean.value
            assert mine["whole_release_risk", prior] == belief.ratio.value
    epsilon = rows.loc[rows["quantity"] == "whole_release_epsilon", "value"].tolist()
    assert epsilon == pytest.approx([6.55, 16.2], abs=0.1)


def test_one_more_record_moves_half_as_many_counts():
    one, two = (
        sweep(parse_config(document(sensitivity=[name]))).set_index("quantity")["value"]
        for name in ("add-remove", "change-one")
    )
    assert (one["whole_release_risk"].to_numpy() < two["whole_release_risk"].to_numpy()).all()


def test_a_sweep_without_a_release_is_what_it_was():
    without = parse_config({"grid": {"rho": [0.1], "prior": [0.5]}})
    assert "release" not in without.to_dict()
    assert not set(QUANTITIES) & set(without.quantities)
    whole = parse_config(document())
    assert SweepStudy.from_dict(whole.to_dict()) == whole


@pytest.mark.parametrize(
    "grid", [{"noise": ["discrete-gaussian", "discrete-laplace"]}, {"sensitivity": [2]}]
)
def test_what_has_no_such_law_is_refused(grid):
    with pytest.raises(ConfigError, match="quantities must be free of whole_release"):
        parse_config(document(**grid))
    with pytest.raises(ConfigError, match=r"release\.budget"):
        parse_config(document() | {"release": {"budget": "acs"}})
