"""``bayesrisk census measurements`` as a user runs it."""

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import bayesrisk as br

pytestmark = pytest.mark.usefixtures("quick_figures")


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return br.census.write_nmf(
        tmp_path_factory.mktemp("nmf") / "US_Person_PL_PROD", rng=41, states=("057", "157")
    )


COMMAND = (
    "census",
    "measurements",
)


def test_the_whole_way(run, sample, tmp_path):
    out = tmp_path / "out"
    status, text, err = run(
        sample.folder, "-o", out, "--prior", "1/10", "--known-count", "0",
        "--exceeds", "1.5", "--exceeds", "2", "--budget", "pl94-us",
    )  # fmt: skip
    assert status == 0
    files = {"config.json", "manifest.json", "parts", "risk.parquet", "risk.png", "risk.svg"}
    assert {p.name for p in out.iterdir()} == files | {"report.html", "summary.json"}
    table = pd.read_parquet(out / "risk.parquet")
    measured = table[table["noisy_count"].notna()]
    lines = text.splitlines()
    units, left = measured["geocode"].nunique(), len(sample.geocodes["Block"])
    more = json.loads((out / "summary.json").read_text())["more_than_known"]
    first = lines.pop(0)
    assert first.startswith(f"At least {more:,} of {len(measured):,} cells hold") or more == 0
    for line, limit in zip(lines, (1.5, 2), strict=False):
        above = table["risk_ratio"] > limit
        empty = above & table["settled_by"].notna()
        joint = table["risk_ratio_with_constraints"] > limit
        found = [n.replace(",", "") for n in re.findall(r"[0-9][0-9,.]*", line)]
        assert found[:2] == [str(above.sum()), f"{limit:g}"]
        assert found[-2:] == [str(empty.sum()), str(joint.sum())]
        assert empty.sum() > 0.7 * above.sum()
    settled = table["settled_by"].astype(object).value_counts().to_dict()
    for name, cells in settled.items():
        assert f"{cells:,} by {name}" in lines[2]
    assert f"{(table['values'] > 1).sum():,} cells" in lines[3]
    assert lines[4].startswith(f"These are {units} units (Block)")
    assert f"{left - units} more" in lines[4]
    assert lines[5:7] == [f"files: {out}", f"figure: {out / 'risk.png'}"]
    assert "shards" in err
    sigma2 = float(1 / sample.rho["Block", "detailed"].max())
    np.testing.assert_array_equal(
        measured["posterior"],
        br.posterior_probability(measured["noisy_count"], sigma2=sigma2, prior=0.1),
    )


def test_json_and_one_query_alone(run, sample, tmp_path):
    status, text, err = run(
        sample.folder, "-o", tmp_path / "out", "--prior", "0.5", "--known-count", "2",
        "--level", "Tract", "--query", "votingage", "--json",
    )  # fmt: skip
    document = json.loads(text)
    assert (status, err) == (0, "")
    assert document["figures"] == [str(tmp_path / "out" / f"risk.{x}") for x in ("png", "svg")]
    assert (document["level"], document["query"]) == ("Tract", "votingage")
    table = pd.read_parquet(tmp_path / "out" / "risk.parquet")
    assert document["cells"] == 2 * document["units"] == len(table)
    assert document["known_count"] == 2
    assert document["combine"] is False
    assert (table["values"] == 1).all()
    assert [row["risk_ratio"] for row in document["exceedance"]] == [1.5]


def test_counts(run, sample, tmp_path):
    status, text, _ = run(sample.folder, "-o", tmp_path / "out", "--posterior", "counts", "-q")
    assert status == 0
    lines = text.splitlines()
    assert "Block counts" in lines[0]  # the finest first
    assert "Of 2 State counts 2 are exact." in lines
    assert any("Block Group counts" in line for line in lines)
    table = pd.read_parquet(tmp_path / "out" / "counts.parquet")
    states = table[table["level"] == "State"]
    np.testing.assert_array_equal(states["mean"], sample.counts["State"].sum(axis=1))
    status, text, err = run(
        sample.folder, "-o", tmp_path / "part", "--posterior", "counts", "--top", "County",
        "--level", "Tract", "--shard", "1/2", "--json",
    )  # fmt: skip
    document = json.loads(text)
    assert (status, err, document["complete"]) == (0, "", False)
    assert not (tmp_path / "part" / "counts.parquet").exists()
    status, text, _ = run(
        sample.folder, "-o", tmp_path / "part", "--posterior", "counts", "--top", "County",
        "--level", "Tract", "--resume", "--json",
    )  # fmt: skip
    assert json.loads(text)["complete"] is True


def test_a_budget_that_is_not_that_of_the_file(run, sample, tmp_path):
    words = ("--prior", "0.1", "--budget", "pl94-pr", "--level", "Block_Group")
    status, out, err = run(sample.folder, "-o", tmp_path / "o", *words)
    assert (status, out) == (3, "")
    assert "variance" in err.splitlines()[-1]
    assert not (tmp_path / "o" / "risk.parquet").exists()


def demographic_folder(folder):
    """Write persons of the DHC: counties of eight characters, with a folder for each."""
    axes = {"relgq": 42, "sex": 2, "age": 116, "hispanic": 2, "cenrace": 63}
    queries = [("total_dpq", ()), ("hispanic * sex_dpq", ("sex", "hispanic"))]
    counties = {"05010001": "001", "05010003": "003"}
    units = {"State": {"050": ["050"]}, "County": {c: [c] for c in counties}}
    units["Block"] = {
        c: [f"{c}150{number}0001001{1000 + i}" for i in range(3)] for c, number in counties.items()
    }
    rng = np.random.default_rng(2)
    for level, parts in units.items():
        for part, codes in parts.items():
            place = folder / f"{level}.parquet" / "DPQuery" / "State=050"
            place = place if level == "State" else place / f"County={part}"
            place.mkdir(parents=True)
            rows = [(code, *query) for code in codes for query in queries]
            answers = {a: [a if a in asked else "*" for _, _, asked in rows] for a in axes}
            shapes = [[axes[a] if a in asked else 1 for a in axes] for _, _, asked in rows]
            table = pa.table(
                {
                    "geocode": [code for code, _, _ in rows],
                    "query_name": [name for _, name, _ in rows],
                    **answers,
                    "query_shape": shapes,
                    "value": [rng.integers(0, 6, np.prod(shape)).tolist() for shape in shapes],
                    "variance": pa.array([4.0] * len(rows), pa.float32()),
                }
            )
            parquet.write_table(table, place / "part-0.parquet")
    return folder


def test_persons_of_the_demographic_file(run, tmp_path):
    """Both posteriors, level by level down to blocks whose counties have eight characters."""
    folder = demographic_folder(tmp_path / "US_DHCP_PROD")
    asked = ("--prior", "0.2", "--query", "hispanic * sex")
    status, _, err = run(folder, "-o", tmp_path / "risk", *asked)
    assert status == 0, err
    cells = pd.read_parquet(tmp_path / "risk" / "risk.parquet")
    assert len(cells) == 6 * 4
    # A count of 1 against 0, with the variance in the place of the parameter of so wide a noise.
    odds = np.log(0.2 / 0.8) + (2 * cells["noisy_count"] - 1) / (2 * 4.0)
    np.testing.assert_allclose(cells["posterior"], 1 / (1 + np.exp(-odds)), rtol=1e-6)
    status, _, err = run(folder, "-o", tmp_path / "counts", "--posterior", "counts")
    assert status == 0, err
    counts = pd.read_parquet(tmp_path / "counts" / "counts.parquet")
    assert set(counts["geocode"].str.len()) == {3, 8, 25}


def test_one_block_of_the_sample_names_it_and_ends_its_rows_with_words(run):
    geoid = "570010001002000"
    options = ("sample:noisy-measurements", "--unit", geoid, "--prior", "1/10")
    status, text, _ = run(*options)
    assert status == 0
    lines = text.splitlines()
    assert lines[0].startswith("Made-up data")
    assert f"of {geoid} constraints fix" in text
    assert "Of many cells some lie outside by noise alone" in text
    head = next(n for n, line in enumerate(lines) if line.startswith("Cells that say most"))
    assert lines[head] == "Cells that say most, 25 of 252:"
    assert lines[head + 1].split()[-3:] == ["risk", "ratio", "label"]
    places = {line.index(word) for line, word in ((lines[head + 1], "label"),)}
    for line in lines[head + 2 :]:
        start = next(n for n, c in enumerate(line) if c.isalpha() or line[n:].startswith("18 or"))
        places.add(start)
    assert len(places) == 1  # labels begin below each other
    document = json.loads(run(*options, "--json")[1])
    assert document["made_up"] is True
    assert len(document["cells"]) == 252
    status, text, _ = run(*options, "--query", "total")
    assert f"Of 1 cell of {geoid}" in text
