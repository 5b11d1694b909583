"""``bayesrisk convert RELEASE``: the law of a whole release, as Python gives it."""

import json

import pytest

import bayesrisk as br


def test_convert_a_release(run, tmp_path):
    status, out, _ = run("convert", "pl94", "--delta", "1e-10", "--json")
    document = json.loads(out)
    assert status == 0
    assert 16.465 < document["epsilon_lower"] <= document["epsilon_upper"] < 16.466
    assert document["epsilon_of_rho"] == pytest.approx(17.1436, abs=1e-4)
    assert [row["prior"] for row in document["rows"]] == [1 / 2, 1 / 10, 1 / 2016]
    budgets = {"block": {"P8": "1/8"}}
    mechanism = br.make_mechanism("discrete-gaussian", budgets=budgets, sensitivity="change-one")
    tables = br.Workload.named("sf1-block").select(tables=["P8"])
    people = br.datasets.load_microdata("synthetic-county")
    mechanism.release(people, workload=tables, rng=1).write(tmp_path / "noisy")
    wanted = br.accounting.PrivacyLoss.of(mechanism)
    status, out, _ = run(
        "convert", tmp_path / "noisy", "--epsilon", "1", "--prior", "0.2", "--json"
    )
    document = json.loads(out)
    assert document["delta_upper"] == pytest.approx(float(wanted.delta(1.0)), rel=1e-9)
    assert document["rows"][0]["risk_ratio"] == float(wanted.posterior(0.2).ratio)
    status, out, _ = run("verify", tmp_path / "noisy", "--json")
    assert json.loads(out)["epsilon"] == pytest.approx(float(wanted.epsilon(1e-10)), rel=1e-9)
    br.make_mechanism("identity").release(people, workload=tables, rng=1).write(tmp_path / "true")
    assert run("convert", tmp_path / "true")[0] == 2
    assert json.loads(run("verify", tmp_path / "true", "--json")[1])["epsilon"] is None
    assert run("convert", "pl94", "--rho", "1")[0] == 2
    out = run(
        "risk", "--release", tmp_path / "noisy", "--prior", "0.2", "--prior", "1/3", "--json"
    )[1]
    ratios = [row["risk_ratio"] for row in json.loads(out)["rows"]]
    assert ratios == wanted.posterior([0.2, 1 / 3]).ratio.value.tolist()
    assert run("risk", "--prior", "0.2")[0] == 2
    assert run("risk", "3", "--release", "pl94", "--prior", "0.2")[0] == 2
    assert run("risk", "--release", "pl94", "--prior", "0.2", "--rho", "1")[0] == 2
    assert run("convert", "pl94", "--epsilon", "1", "--delta", "1e-6")[0] == 2
