"""Epsilon of whole releases, of protections that have a law of the privacy loss alone."""

import math

import pytest

from bayesrisk import Workload, make_mechanism, rho_to_epsilon
from bayesrisk.accounting import PrivacyLoss
from bayesrisk.risk.audit.privacy import privacy_losses

TABLES = Workload.named("sf1-block").select(tables=["P8", "P12"])
BUDGETS = {"block": {"P8": "1/8", "P12": "1/16", "P14": "1"}}


def test_rows_are_the_laws_of_the_published_tables():
    gaussian, laplace = (
        make_mechanism(name, budgets=BUDGETS, sensitivity="change-one")
        for name in ("discrete-gaussian", "discrete-laplace")
    )
    specs = {"a": gaussian.spec, "b": laplace.spec, "c": make_mechanism("identity").spec}
    frame = privacy_losses(specs, TABLES).set_index("protection")
    assert frame.index.tolist() == ["a", "b"]  # true counts have no such law
    assert frame["counts"].tolist() == [4, 4]
    assert frame["neighbour"].tolist() == ["change-one"] * 2
    other = make_mechanism("discrete-gaussian", budgets=BUDGETS, sensitivity="add-remove").spec
    assert privacy_losses({"d": other}, TABLES)["neighbour"].tolist() == ["add-remove"]
    # The table that is not published costs nothing.
    assert frame.loc["a", "rho"] == pytest.approx(3 / 16)
    noise = [gaussian.spec.noise["block", name].to_law() for name in ("P8", "P12")]
    wanted = PrivacyLoss.of([*noise, *noise]).epsilon(1e-10)
    assert frame.loc["a", "epsilon"] == pytest.approx(float(wanted), rel=1e-9)
    assert frame.loc["a", "epsilon"] < frame.loc["a", "epsilon_of_rho"]
    assert frame.loc["a", "epsilon_of_rho"] == pytest.approx(float(rho_to_epsilon(3 / 16, 1e-10)))
    assert math.isnan(frame.loc["b", "rho"])
    assert frame.loc["b", "epsilon"] == pytest.approx(3 / 16, abs=1e-6)  # of pure privacy


def test_no_law_gives_no_row():
    assert privacy_losses({"c": make_mechanism("identity").spec}, TABLES).empty
