"""``bayesrisk hierarchy`` as a user runs it: one release, tables, and tables that are wrong."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv

from bayesrisk import FiniteLaw, hierarchical_posterior
from bayesrisk.cli.app import DATA
from bayesrisk.experiments import hierarchy as release_table

BUDGETS = ("--rho-block", "0.0992264", "--rho-group", "0.2464845")
RHO = {"rho_block": 0.0992264, "rho_group": 0.2464845}
ONE = ("--block", "2", "--group", "1", "--siblings", "-1", "--n-siblings", "27", "--prior", "1/2")


@pytest.fixture
def run(run):
    """Run ``hierarchy``, or ``hierarchy-table`` where the first word is ``table``."""
    return lambda *words: run(
        *(("hierarchy-table", *words[1:]) if words[0] == "table" else ("hierarchy", *words))
    )


@pytest.fixture
def table():
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "geoid": [f"0{i:03d}" for i in range(50)],
            "block": rng.integers(-6, 9, 50),
            "group": rng.integers(-3, 30, 50),
            "siblings": rng.integers(-20, 40, 50),
        }
    )


def posteriors(frame, **settings):
    return hierarchical_posterior(frame["block"], frame["group"], frame["siblings"], **settings)


# --- one release ------------------------------------------------------------------------------


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


def test_group_priors_and_the_other_options(run):
    options = ("--group-prior", "truncated:9", "--known-count", 2, "--sensitivity", "change-one")
    _, out, _ = run(*ONE, *BUDGETS, *options, "--sibling-noise", "exact", "--json")
    settings = {"group_prior": FiniteLaw(0, np.full(10, 0.1)), "known_count": 2, "prior": 0.5}
    settings |= {"n_siblings": 27, "sensitivity": 2**0.5, "sibling_noise": "exact"}
    result = hierarchical_posterior(2, 1, -1, **settings, **RHO)
    document = json.loads(out)
    assert document["target_probability"] == result.target_probability
    assert document["sibling_noise"] == "exact"
    assert document["sensitivity"] == 2**0.5


def test_a_total_that_is_known(run, table, tmp_path):
    settings = {"n_siblings": 27, "prior": 0.5, "known_total": 3, **RHO}
    document = json.loads(run(*ONE, *BUDGETS, "--known-total", 3, "--json")[1])
    expected = hierarchical_posterior(2, 1, -1, **settings).target_probability
    assert document["target_probability"] == expected
    assert document["known_total"] == 3
    assert document["group_pmf"] == [{"group_count": 3, "probability": 1.0}]
    table.to_csv(tmp_path / "in.csv", index=False)
    options = ("--n-siblings", 27, "--prior", "1/2", "--known-total", 3, "-o", tmp_path / "out.csv")
    assert run("table", tmp_path / "in.csv", *BUDGETS, *options)[0] == 0
    added = pd.read_csv(tmp_path / "out.csv")["target_probability"]
    expected = posteriors(table, **settings).target_probability
    np.testing.assert_allclose(added, expected, rtol=1e-14)


def test_the_published_conditionals_come_with_a_warning(run):
    status, out, err = run(*ONE, *BUDGETS, "--conditionals", "as-published", "--json")
    assert status == 0
    assert json.loads(out)["target_probability"] == pytest.approx(0.577702, abs=5e-7)
    assert err.startswith("bayesrisk: warning: ")
    assert err.count("\n") == 1


# --- tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "wanted", "chunk"),
    [(".csv", ".csv", 7), (".csv", ".parquet", 2**18), (".parquet", ".csv", 7)],
)
def test_a_table_gains_columns(run, tmp_path, table, monkeypatch, given, wanted, chunk):
    monkeypatch.setattr(release_table, "CHUNK", chunk)
    source, output = tmp_path / f"in{given}", tmp_path / f"out{wanted}"
    table.to_csv(source, index=False) if given == ".csv" else table.to_parquet(source)
    status, out, err = run(
        "table", source, "-o", output, *BUDGETS, "--n-siblings", 27, "--prior", "1/10"
    )
    assert (status, err) == (0, "")
    assert out.startswith("50 releases in ")
    if wanted == ".csv":
        text = csv.ConvertOptions(column_types={"geoid": pa.string()})
        frame = csv.read_csv(output, convert_options=text).to_pandas()  # every digit, as written
    else:
        frame = pd.read_parquet(output)
    pd.testing.assert_frame_equal(frame[table.columns], table, check_dtype=False)
    assert frame[["block", "group", "siblings"]].dtypes.eq("int64").all()
    result = posteriors(table, n_siblings=27, prior=0.1, **RHO)
    np.testing.assert_allclose(frame["target_probability"], result.target_probability, rtol=1e-15)
    np.testing.assert_allclose(frame["risk_ratio"], result.risk_ratio, rtol=1e-15)
    assert (frame["truncation_bound"] == result.truncation_bound).all()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([source.name, output.name])


def test_settings_may_be_columns(run, tmp_path, table):
    table = table.assign(
        n_siblings=np.arange(50) % 9 + 1,
        prior=["1/2", "0.1", "1/864", ".3", "0.05"] * 10,
        known_count=np.arange(50) % 3,
    )
    source, output = tmp_path / "in.csv", tmp_path / "out.parquet"
    table.to_csv(source, index=False)
    status, out, _ = run("table", source, "-o", output, *BUDGETS, "--json")
    assert status == 0
    summary = json.loads(out)
    assert summary["rows"] == 50
    assert summary["truncation_bound"] < 1e-12
    result = posteriors(
        table,
        n_siblings=table["n_siblings"],
        prior=np.array([1 / 2, 0.1, 1 / 864, 0.3, 0.05] * 10),
        known_count=table["known_count"],
        **RHO,
    )
    frame = pd.read_parquet(output)
    np.testing.assert_allclose(frame["target_probability"], result.target_probability, rtol=1e-15)


def test_other_columns_pass_through_with_their_gaps(run, tmp_path, table, monkeypatch):
    monkeypatch.setattr(release_table, "CHUNK", 7)
    note = pd.array([None] * 40 + [3] * 10, dtype="Int64")
    source, output = tmp_path / "in.parquet", tmp_path / "out.parquet"
    table.assign(note=note, name=[None] * 45 + ["x"] * 5).to_parquet(source)
    status, _, err = run("table", source, "-o", output, *BUDGETS, "--n-siblings", 2, "--prior", 0.2)
    assert (status, err) == (0, "")
    frame = pd.read_parquet(output)
    assert frame["note"].isna().sum() == 40
    assert frame["name"].isna().tolist() == [True] * 45 + [False] * 5


def test_an_output_is_never_overwritten(run, tmp_path, table):
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    table.to_csv(source, index=False)
    output.write_text("mine", encoding="utf-8")
    arguments = (*BUDGETS, "--n-siblings", 3, "--prior", 0.5)
    status, _, err = run("table", source, "-o", output, *arguments)
    assert status == 2
    assert "out.csv: exists already" in err
    assert output.read_text(encoding="utf-8") == "mine"
    status, _, err = run("table", source, "-o", tmp_path / "no" / "out.csv", *arguments)
    assert status == 2
    assert "does not exist" in err


def with_cell(row, column, value):
    def change(frame):
        frame = frame.astype({column: object})
        frame.loc[row, column] = value
        return frame

    return change


BAD_TABLES = {
    "no column": (lambda f: f.drop(columns="siblings"), "has no column 'siblings'"),
    "no prior": (lambda f: f.drop(columns="prior"), "'prior', and --prior is not given"),
    "empty": (lambda f: f.iloc[:0], "must have at least one row"),
    "fraction": (with_cell(2, "group", 1.5), "row 3, column 'group': must be a whole number"),
    "text": (
        lambda f: with_cell(0, "block", "x")(f).astype({"block": str}),
        "row 1, column 'block': must be a whole number",
    ),
    "blank": (with_cell(11, "siblings", None), "row 12, column 'siblings': must be a whole"),
    "huge": (with_cell(4, "block", 2**53), "row 5, column 'block': must be a whole number"),
    "no siblings": (with_cell(3, "n_siblings", 0), "row 4, column 'n_siblings': must be a whole"),
    "negative": (with_cell(3, "known_count", -1), "column 'known_count': must be a whole number"),
    "certain": (with_cell(6, "prior", 1.0), "row 7, column 'prior': must be a probability"),
    "taken": (lambda f: f.assign(risk_ratio=1.0), "must not have a column 'risk_ratio'"),
}


@pytest.mark.parametrize(("ending", "chunk"), [(".csv", 3), (".parquet", 2**18)])
@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables(run, tmp_path, table, monkeypatch, case, ending, chunk):
    monkeypatch.setattr(release_table, "CHUNK", chunk)
    change, message = BAD_TABLES[case]
    frame = change(table.assign(n_siblings=3, prior=0.5, known_count=0))
    source, output = tmp_path / f"in{ending}", tmp_path / f"out{ending}"
    if ending == ".csv":
        frame.to_csv(source, index=False)
    else:
        frame.convert_dtypes().to_parquet(source)
    status, out, err = run("table", source, "-o", output, *BUDGETS)
    assert (status, out) == (DATA, "")
    assert err.count("\n") == 1
    assert f"in{ending}: " in err
    assert message in err
    assert [p.name for p in tmp_path.iterdir()] == [source.name]  # nothing half-written


def test_files_that_are_no_tables(run, tmp_path):
    common = ("-o", tmp_path / "out.csv", *BUDGETS, "--n-siblings", 3, "--prior", 0.5)
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "ragged.csv").write_text("block,group\n1,2\n1,2,3,4\n", encoding="utf-8")
    (tmp_path / "binary.csv").write_bytes(bytes(range(128, 256)))
    (tmp_path / "wrong.parquet").write_bytes(b"PAR0" * 9)
    for name in ("empty.csv", "ragged.csv", "binary.csv", "wrong.parquet"):
        status, _, err = run("table", tmp_path / name, *common)
        assert status == DATA, name
        assert f"{name}: " in err
        assert err.count("\n") == 1
    assert run("table", tmp_path / "missing.csv", *common)[0] == 2
    (tmp_path / "x.txt").touch()
    status, _, err = run("table", tmp_path / "x.txt", *common)
    assert status == 2
    assert "must end in .csv or .parquet" in err
    assert not (tmp_path / "out.csv").exists()


def test_budgets_of_zero_are_levels_not_released(run):
    _, out, _ = run(*ONE, "--rho-block", "0", "--rho-group", "0.2", "--json")
    document = json.loads(out)
    result = hierarchical_posterior(2, 1, -1, n_siblings=27, prior=0.5, rho_block=0, rho_group=0.2)
    assert document["target_probability"] == result.target_probability
