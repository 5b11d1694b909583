"""Configurations: what is accepted, and what is refused with key, bound and value."""

import json
from fractions import Fraction

import numpy as np
import pytest

from bayesrisk.exceptions import BayesRiskError, ConfigError, DataError
from bayesrisk.experiments import load_config
from bayesrisk.experiments.sweep import SweepStudy
from bayesrisk.experiments.sweep_document import parse_config


def test_sample_is_resolved():
    config = load_config("sample:dare-county-sweep")
    named = {budget.name: budget.value for budget in config.rho if budget.name}
    assert named["2020 block"] == float(
        Fraction("2.56") * Fraction(165, 4099) * Fraction(3945, 4097)
    )
    assert [target.known_count for target in config.targets] == [0]
    assert config.targets[0].label == "household, of voting age, not Hispanic, Black"
    assert [prior.name for prior in config.prior] == ["1/2", "1/5", "1/10", "1/50", "1/864"]
    assert config.prior[-1].value == 1 / 864


def test_ranges_names_and_order(document):
    config = parse_config(document)
    values = [budget.value for budget in config.rho]
    assert values == sorted(values)
    assert len(values) == 5
    np.testing.assert_allclose([v.value for v in config.levels], [1.0, 0.5])
    document["grid"]["rho"] = {"linear": [1, 2], "points": 3}
    assert [budget.value for budget in parse_config(document).rho] == [1.0, 1.5, 2.0]


def test_named_value_replaces_the_same_number(document):
    document["grid"]["rho"] = [0.5, {"name": "half", "value": "1/2"}]
    assert [(b.name, b.value) for b in parse_config(document).rho] == [("half", 0.5)]


def test_rows_are_counted(document):
    # 5 settings: 2 priors x (4 releases x 2, 6 scalars, 2 levels x 2, 4 points of the hierarchy
    # x 3, 1 simulated), 4 masses, 1 epsilon
    assert parse_config(document).rows == 5 * (2 * (8 + 6 + 4 + 12 + 1) + 4 + 1)


def test_digest_depends_on_every_field_and_survives_json(document):
    config = parse_config(document)
    again = SweepStudy.from_dict(json.loads(json.dumps(config.to_dict())))
    assert again == config
    assert again.digest == config.digest
    assert parse_config(document, seed=8).digest != config.digest
    document["grid"]["prior"] = ["1/2", "1/863"]
    assert parse_config(document).digest != config.digest


def test_laplace_leaves_out_several_levels(document):
    document["grid"]["noise"] = ["discrete-gaussian", "discrete-laplace"]
    quantities = parse_config(document).quantities
    assert "marginal_risk" in quantities
    assert not any(q.startswith(("multilevel", "hierarchical")) for q in quantities)
    document["quantities"] = ["multilevel_marginal_risk"]
    with pytest.raises(ConfigError, match="multilevel_marginal_risk unless all noise"):
        parse_config(document)


BAD = [
    ("colour", "red", "unknown key colour; known: title, scenario"),
    ("grid", 3, r"\[grid\] must be a table, got 3"),
    ("grid", {"rhoo": [1]}, "unknown key grid.rhoo; known: grid.rho, grid.prior"),
    ("grid", {"rho": [1]}, "grid.prior must be given"),
    ("scenario", "fishing", "scenario must be one of characteristics"),
    ("seed", -1, "seed must be >= 0, got -1"),
    ("quantities", ["gossip"], "quantities must be one of .*got 'gossip'"),
    ("grid.rho", [], r"grid.rho must be a list with at least one entry, got \[\]"),
    ("grid.rho", [-1], r"grid.rho\[0\] must be a number in \[1e-12, 1e\+06\], got -1"),
    ("grid.rho", [0.1, 0], r"grid.rho\[1\]: is 0, at which nothing is learned: leave it out"),
    ("grid.rho", ["0,1"], r"got '0,1': write 0\.1, with a point"),
    ("title", 3, 'title must be of type str, got 3: write "3", in quotes'),
    ("gird", {"rho": [1]}, "unknown key gird; .* Did you mean 'grid'"),
    ("quantities", ["whole_release_risk"], "free of .*: leave it out, or add release"),
    ("quantities", ["marginl_risk"], "Did you mean 'marginal_risk'"),
    ("seed", 1e6, "seed must be .*, got 1000000.0: write 1000000"),
    ("grid.rho", ["x/y"], r"grid.rho\[0\] must be a number .* got 'x/y'"),
    ("grid.rho", [{"log": [2, 1], "points": 3}], r"rho\[0\].log must be two increasing numbers"),
    ("grid.rho", [{"log": [1, 2]}], r"points must be given with a range, such as points = 61"),
    ("grid.rho", [{"log": [1, 2], "points": 2, "step": 1}], r"unknown key grid.rho\[0\].step"),
    ("grid.rho", [{"name": "a"}], "one of value, budget"),
    ("grid.rho", [{"value": 1, "total": 2}], r"grid.rho\[0\].total must be left out"),
    ("grid.rho", ["pl94/US"], "PRODUCT/REGION/UNIVERSE.* pl94/US/person/Block/detailed"),
    ("grid.rho", ["pl94/XX/person/Block/total"], "region must be one of US, PR, got 'XX'"),
    ("grid.rho", ["pl94/US/person/Block/nothing"], "one of LEVEL/QUERY = US/cenrace"),
    (
        "grid.rho",
        [{"name": "a", "value": 1}, {"name": "a", "value": 2}],
        "grid.rho must be without repeated names, got 'a'",
    ),
    ("grid.prior", ["0.99999999999999999999"], "grid.prior must be strictly between"),
    ("grid.sensitivity", ["both"], r"grid.sensitivity\[0\] \(add-remove"),
    ("grid.noise", ["staircase"], "grid.noise must be one of discrete-gaussian"),
    ("grid.released", {"from": 0, "to": -3}, "grid.released.to must be .* got -3"),
    ("levels.names", ["one"], "levels.names must be as many as .*, 2, got"),
    ("hierarchy.group_count", [0], r"hierarchy.group_count\[0\] must be >= 1, got 0"),
    ("accounting.delta", 2, r"accounting.delta must be a number in \(1e-300, 1\)"),
]


@pytest.mark.parametrize(("path", "value", "message"), BAD)
def test_bad_values_are_refused_by_name(document, path, value, message):
    section, _, key = path.rpartition(".")
    (document[section] if section else document)[key] = value
    with pytest.raises(ConfigError, match=message) as caught:
        parse_config(document, source="my.toml")
    assert str(caught.value).startswith("my.toml: ")


def test_quantity_without_what_it_needs(document):
    del document["simulation"]
    document["quantities"] = ["simulated_marginal_posterior"]
    with pytest.raises(ConfigError, match="without simulation"):
        parse_config(document)


def test_too_many_rows(document):
    document["grid"]["released"] = {"from": 0, "to": 10**6 - 1}
    with pytest.raises(ConfigError, match="at most 16777216"):
        parse_config(document)


def test_files_that_are_no_configuration(tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text("rho = [1,", encoding="utf-8")
    for path in (bad, tmp_path / "missing.toml", "sample:nothing"):
        with pytest.raises(ConfigError, match="cannot be read"):
            load_config(path)


class TestTable:
    """The table of targets."""

    @staticmethod
    def parse(document, folder, text, name="table.csv", **options):
        (folder / name).write_text(text, encoding="utf-8")
        document["table"] = {"path": name, **options}
        return parse_config(document, folder=folder)

    def test_unique_and_all(self, document, tmp_path):
        text = "race,n\nA,3\nB,1\nC,0\nD,1\n"
        config = self.parse(document, tmp_path, text, count="n")
        assert [(t.label, t.known_count) for t in config.targets] == [("B", 0), ("D", 0)]
        config = self.parse(document, tmp_path, text, count="n", targets="all")
        assert [(t.label, t.known_count) for t in config.targets] == [("A", 2), ("B", 0), ("D", 0)]

    def test_parquet_and_nameless_rows(self, document, tmp_path):
        import pandas as pd

        pd.DataFrame({"count": [1, 5]}).to_parquet(tmp_path / "t.parquet")
        document["table"] = {"path": "t.parquet"}
        (target,) = parse_config(document, folder=tmp_path).targets
        assert (target.label, target.count) == ("row 1", 1)

    @pytest.mark.parametrize("bad", ["-1", "1.5", "many", "", "1e300"])
    def test_bad_counts_name_row_and_column(self, document, tmp_path, bad):
        with pytest.raises(DataError, match=r"table.csv: row 2, column 'count'"):
            self.parse(document, tmp_path, f"race,count\nA,1\nB,{bad}\n")

    def test_other_faults(self, document, tmp_path):
        with pytest.raises(DataError, match="no column 'n'; columns: race, count"):
            self.parse(document, tmp_path, "race,count\nA,1\n", count="n")
        with pytest.raises(DataError, match="1 to 1000 target cells"):
            self.parse(document, tmp_path, "race,count\nA,2\n")
        with pytest.raises(ConfigError, match="targets must be 'unique' or 'all'"):
            self.parse(document, tmp_path, "race,count\nA,1\n", targets="some")
        document["table"] = {"path": "absent.csv"}
        with pytest.raises(ConfigError, match="cannot be read"):
            parse_config(document, folder=tmp_path)
        (tmp_path / "cut.parquet").write_bytes(b"PAR1 and no more")
        document["table"] = {"path": "cut.parquet"}
        with pytest.raises(BayesRiskError, match="cannot be read"):
            parse_config(document, folder=tmp_path)
