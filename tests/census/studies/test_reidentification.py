"""The report of a re-identification: numbers, files, escaping, refusals."""

import json
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from audits import contents
from persons import persons
from studies import run_reconstruction

from bayesrisk.census.studies.linked_counties import PersonFile, link_counties, proved_blocks
from bayesrisk.census.studies.reidentification import write_reidentification
from bayesrisk.exceptions import ArgumentError, DataError, OutputError, PartFileError
from bayesrisk.experiments.reconstruction import RowsByPlace, read_reconstruction
from bayesrisk.risk import reidentify
from bayesrisk.risk.linkage.agreement import agreement_rates
from bayesrisk.tables import Records, Schema, Workload, tabulate

pytestmark = pytest.mark.usefixtures("quick_figures")

BOTH = Workload.named("sf1-block").union(Workload.named("sf1-tract"))
BLOCKS = [f"0100102010{tract}100{i}" for tract in (0, 1) for i in range(4)]


def truth():
    p = [0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.08, 0.02]
    frame = persons(4, 200, BLOCKS, p=p, shares=[0.7, 0.2, 0.1], hispanic=0.2)
    return frame.assign(person=np.arange(200))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    people = truth()
    records = Records.from_frame(people.drop(columns="person"), schema=Schema.named("sf1-person"))
    tabulate(records, BOTH).write(folder / "tables")
    people.to_parquet(folder / "truth.parquet", index=False)
    people[["block", "sex", "age", "person"]].to_csv(folder / "all.csv", index=False)
    known = people.sample(80, random_state=1).drop(columns=["race", "hisp"])
    known.to_parquet(folder / "some.parquet", index=False)
    run_reconstruction(folder / "tables", folder / "out", scope="tract", variability="tract-bounds")
    return folder


def write(made, target, **changes):
    options = {
        "folder": made / "out",
        "attackers": {"all": made / "all.csv", "some": made / "some.parquet"},
        "truth": made / "truth.parquet",
        "seed": 3,
        "dialect": "schema",
        **changes,
    }
    return write_reidentification(output=target, **options)


class Page(HTMLParser):
    """Collects what a page loads, and the text of its cells and heads."""

    def __init__(self, text):
        super().__init__()
        self.sources, self.cells, self.heads, self._tag = [], [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.sources += [v for k, v in attributes if k in ("src", "href")]
        self._tag = tag

    def handle_data(self, data):
        if self._tag == "td":
            self.cells.append(data)
        if self._tag == "th":
            self.heads.append(data)


def test_rates_are_those_of_the_library(made, tmp_path):
    done = write(made, tmp_path / "r")
    frame = done.rates
    assert frame["source"].tolist() == ["reconstruction", "MDG", "PRG"] * 2
    run = read_reconstruction(made / "out")
    people = truth()
    direct = reidentify(
        {"reconstruction": run.records},
        {"all": people},
        truth=people,
        baseline_from="reconstruction",
        rng=3,
    ).to_frame(by_size=False)
    # Putative counts are forced; the modal guesser's confirmations too.
    mine = frame[frame["attacker"] == "all"].reset_index(drop=True)
    assert mine["putative"].tolist() == direct["putative"].tolist()
    assert mine["confirmed"][1] == direct["confirmed"][1]
    assert (frame["baseline_precision"] > 0).all()
    rates = pd.read_csv(tmp_path / "r" / "rates.csv")
    assert set(rates["panel"]) == {"all", "in-truth", "modal", "nonmodal", "nonmodal-unique"}
    unique = rates.query(
        "panel == 'nonmodal-unique' and blocks == 'proved' and block_size == 'All'"
        " and source == 'reconstruction' and attacker == 'all'"
    ).iloc[0]
    assert unique["putative"] == unique["confirmed"] > 0


def test_all_tables_have_one_baseline(tmp_path):
    """Nobody shares block, sex and age: links and agreement then count the same right guesses."""
    people = truth().assign(block=BLOCKS[0], age=np.arange(200) % 100, sex=np.arange(200) // 100)
    people.to_parquet(tmp_path / "truth.parquet", index=False)
    frames = {
        "records": people.drop(columns="person"),
        "blocks": pd.DataFrame({"block": [BLOCKS[0]], "status": "feasible", "population": 200}),
    }
    files = {kind: tmp_path / f"{kind}.parquet" for kind in frames}
    for kind, frame in frames.items():
        frame.to_parquet(files[kind], index=False)
    run = SimpleNamespace(files=files, rows=lambda kind, digits: RowsByPlace(files[kind], digits))
    columns = ("block", "sex", "age", "race", "hisp", "person")
    known = PersonFile(tmp_path / "truth.parquet", columns, "schema", once=True)
    for seed in range(5):
        (tmp_path / str(seed)).mkdir()
        found = link_counties(
            run, {"all": known}, known, tmp_path / str(seed),
            seed=seed, confidence=0.95, progress=None,
        )  # fmt: skip
        links = found.links.to_frame(by_size=False).set_index("source")
        agreed = agreement_rates(found.agreement, confidence=0.95)
        agreed = agreed.query("block_size == 'All'").set_index("source")
        assert links["confirmed"].to_dict() == agreed["exact"].to_dict()
        assert 0 < agreed.loc["PRG", "exact"] < 200


def test_files_and_page(made, tmp_path):
    done = write(made, tmp_path / "r")
    names = sorted(p.stem for p in (tmp_path / "r" / "tables").iterdir())
    assert names == [
        "agreement", "agreement-baselines", "baselines", "leave-one-out", "linked-all",
        "linked-modal", "linked-nonmodal",
        "linked-nonmodal-proved", "linked-panels", "majority", "uniques", "variability",
    ]  # fmt: skip
    page = Page((tmp_path / "r" / "report.html").read_text(encoding="utf-8"))
    assert page.sources
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    assert {"MDG", "PRG", "reconstruction"} <= set(page.cells)
    assert "nan" not in page.cells
    agreed = pd.read_csv(tmp_path / "r" / "tables" / "agreement.csv")
    assert agreed["population"].iloc[0] == 200
    assert len(agreed) == 3 * 8
    assert list(agreed)[-2:] == ["Agreement: exact age (%)", "Agreement: binned age (%)"]
    linked = pd.read_csv(tmp_path / "r" / "tables" / "linked-all.csv")
    heads = ["all: putative", "all: confirmed", "all: precision (%)"]
    assert list(linked)[:5] == ["block_size", "source", *heads]
    assert set(heads) <= set(page.heads)
    assert done.report == tmp_path / "r" / "report.html"
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert manifest["seed"] == 3
    assert sorted(manifest["inputs"]) == ["attackers", "reconstruction", "truth"]
    assert not list(tmp_path.glob(".*"))


def test_the_answer_comes_first_and_is_that_of_the_rates(made, tmp_path):
    done = write(made, tmp_path / "r")
    text = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    start = text.index('class="answer"')
    said = " ".join(re.sub("<[^>]*>", "", text[start : text.index("</div>", start)]).split())
    rates = pd.read_csv(tmp_path / "r" / "rates.csv")
    rates = rates[(rates["block_size"] == "All") & (rates["blocks"] == "all")]
    for panel, whom in (("all", "known persons"), ("nonmodal", "them")):
        for row in rates[rates["panel"] == panel].to_dict("records"):
            words = f"Of {row['putative']} links to {whom}, {row['confirmed']} are confirmed"
            assert (words in said) or row["source"] != "reconstruction"
    own = done.rates[done.rates["source"] == "reconstruction"]
    for row in own.to_dict("records"):
        ratio, low, high = (row[f"left_out_ratio{end}"] for end in ("", "_lower", "_upper"))
        assert f"right {ratio:.2f} times as often (interval {low:.2f} to {high:.2f})" in said
        assert f"{row['confirmed']} confirmed of {row['putative']} links" in repr(done)
    assert len(repr(done).splitlines()) <= 10
    assert json.loads(json.dumps(done.to_dict()))["rates"][0]["putative"] == own["putative"].iloc[0]


def test_the_same_seed_gives_the_same_bytes(made, tmp_path):
    for name in ("one", "two"):
        write(made, tmp_path / name)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_without_variability_the_statuses_say_what_is_proved(made, tmp_path):
    run_reconstruction(made / "tables", tmp_path / "out", scope="tract")
    run = read_reconstruction(tmp_path / "out")
    unique = run.blocks.loc[run.blocks["status"] == "unique", "block"].tolist()
    assert proved_blocks(run.blocks, run.variability) == sorted(unique)
    with_bounds = read_reconstruction(made / "out")
    assert set(unique) <= set(proved_blocks(with_bounds.blocks, with_bounds.variability))
    joint = tmp_path / "joint"
    run_reconstruction(made / "tables", joint, scope="tract", variability="tract-joint")
    together = read_reconstruction(joint)
    assert set(proved_blocks(together.blocks, together.variability)) >= set(unique)
    for name, folder in (("r", tmp_path / "out"), ("j", joint)):
        write(made, tmp_path / name, folder=folder)
        assert not (tmp_path / name / "tables" / "variability.csv").exists()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"attackers": {}}, ArgumentError, "attackers must map at least one name"),
        ({"seed": -1}, ArgumentError, "seed must be >= 0"),
        ({"confidence": 1.0}, ArgumentError, "confidence must be < 1"),
        ({"truth": "none.parquet"}, DataError, "none.parquet: is not a file"),
    ],
)
def test_refusals_make_nothing(made, tmp_path, change, error, words):
    with pytest.raises(error, match=words):
        write(made, tmp_path / "r", **change)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.drop(columns="hisp"), r"bad.parquet: .* lacks \['hisp'\]"),
        (lambda t: t.assign(age=t["age"].where(t.index != 4, 111)), "row 5, column 'age'"),
        (lambda t: t.assign(block="1"), "row 1, column 'block'"),
        (lambda t: t.assign(person=1), "row 2, column 'person'"),
    ],
)
def test_faults_of_the_truth_are_named(made, tmp_path, change, words):
    bad = tmp_path / "bad.parquet"
    change(truth()).to_parquet(bad, index=False)
    with pytest.raises(DataError, match=words):
        write(made, tmp_path / "r", truth=bad)
    bad.write_bytes(b"no parquet")
    with pytest.raises(DataError, match=r"bad.parquet: cannot be read"):
        write(made, tmp_path / "r", truth=bad)
    assert not (tmp_path / "r").exists()


def test_folders_are_refused(made, tmp_path):
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").write_text("mine")
    with pytest.raises(OutputError, match="nothing was changed"):
        write(made, tmp_path / "used")
    with pytest.raises(OutputError, match="holds no reconstruction"):
        write(made, tmp_path / "r", folder=tmp_path)
    race = Workload.named("census-1940", levels=["enumdist"])
    rng = np.random.default_rng(1)
    codes = {a.name: rng.integers(0, a.size, 9) + a.first for a in race.schema.attributes}
    people = pd.DataFrame({"enumdist": ["0100100010001"] * 9, **codes})
    records = Records.from_frame(people, schema=race.schema)
    tabulate(records, race).write(tmp_path / "t")
    run_reconstruction(tmp_path / "t", tmp_path / "out", scope="enumdist")
    with pytest.raises(DataError, match="must hold records of persons"):
        write(made, tmp_path / "r", folder=tmp_path / "out")
    with pytest.raises((OutputError, PartFileError)):
        write(made, tmp_path / "r", folder=made / "tables")


def coded(folder, people):
    """Write the persons as the archive does: 1 for male, flags of races, its names of columns."""
    flags = {
        name: people["race"] // 2**place % 2
        for place, name in enumerate(("white", "black", "aian", "asian", "nhopi", "sor"))
    }
    archive = people.assign(sex=1 - people["sex"], **flags).drop(columns="race")
    archive = archive.rename(columns={"block": "geoid_block", "person": "pik"})
    archive.to_csv(folder / "archive.csv", index=False)
    words = archive.assign(sex=people["sex"].map({0: "male", 1: "female"}))
    for name in (*flags, "hisp"):
        words[name] = words[name].map({0: "N", 1: "Y"})
    words.to_parquet(folder / "labels.parquet", index=False)
    return folder / "archive.csv", folder / "labels.parquet"


@pytest.mark.slow
def test_the_same_persons_in_any_coding(made, tmp_path):
    """The rates do not depend on the coding, once it is said; in the wrong one they do."""
    archive, labels = coded(tmp_path, truth())
    attackers = {"all": made / "all.csv"}
    right = write(made, tmp_path / "r", attackers=attackers).rates
    coding = {"dialect": "archive", "truth_dialect": "labels"}
    same = write(made, tmp_path / "s", attackers={"all": archive}, truth=labels, **coding)
    pd.testing.assert_frame_equal(same.rates, right)
    wrong = write(made, tmp_path / "w", attackers={"all": archive}, truth_dialect="schema")
    assert wrong.rates["confirmed"][0] < right["confirmed"][0]
