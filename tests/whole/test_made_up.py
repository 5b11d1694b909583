"""Made-up people are called so: by every command and report, all along, and in the folders."""

import json
import re

import pytest
from persons import persons
from typer.testing import CliRunner

import bayesrisk as br
from bayesrisk.cli.app import app
from bayesrisk.datasets import is_made_up
from bayesrisk.exceptions import DataError
from bayesrisk.tables import Records

pytestmark = pytest.mark.usefixtures("quick_figures")

SAID = re.compile(r"made-up data:?(</b>|:)? none of these people exists", re.IGNORECASE)
#: What each command of a chain that begins with records makes, in order.
CHAIN = {
    "tables": "release --protection none {records} --tables sf1-block -o {out}/tables",
    "release": "release {records} --tables sf1-block --only P8 --protection rounding:base=3"
    " --places occupied -o {out}/release",
    "noise": "release {records} --tables sf1-block --only P8 --protection"
    " discrete-gaussian:rho=1 --places occupied -o {out}/noise --simulation-seed 1",
    "verify": "verify {out}/release",
    "reconstruct": "attack --only records {out}/tables --scope block -o {out}/reconstruct",
    "bounds": "attack --only bounds {out}/release -o {out}/bounds",
    "claims": "attack --only claims {out}/tables -o {out}/claims --max-columns 2",
    "reidentify": "attack --only links {out}/reconstruct --adversary {records} --truth {records}"
    " --dialect schema -o {out}/reidentify",
    "look": "audit {records} --known sex,age",
}
#: Commands that write a page, and where.
PAGES = {
    "release": "release-report.html",
    "noise": "noise-report.html",
    "reconstruct": "reconstruct/report.html",
    "claims": "claims/report.html",
    "reidentify": "reidentify/report.html",
}


def run(text, **names):
    done = CliRunner().invoke(app, text.format(**names).split())
    assert done.exit_code == 0, (text, done.output, done.exception)
    return done.stdout


def chain(records, out):
    """Return what each command printed, and each page."""
    said = {name: run(text, records=records, out=out) for name, text in CHAIN.items()}
    return said, {name: (out / file).read_text("utf-8") for name, file in PAGES.items()}


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Return a file of records of somebody's own, and what was made of it."""
    folder = tmp_path_factory.mktemp("own")
    people = persons(2, 30, [10010201001000, 10010201001001], shares=[0.8, 0.1, 0.1], hispanic=0.1)
    people = people.assign(person=[f"p{i}" for i in range(30)])
    file = folder / "own.parquet"
    Records.from_frame(people, schema=br.Schema.named("sf1-person")).write(file)
    return folder, chain(file, folder)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulated")
    text = run("census simulate --preset tract --blocks 4 --seed 1 -o {out}/people -q", out=folder)
    return folder, text, chain(folder / "people" / "persons.parquet", folder)


def test_all_that_is_made_of_a_simulation_says_so_first(simulated):
    folder, text, (said, pages) = simulated
    assert SAID.match(text)
    for name, lines in said.items():
        assert SAID.match(lines), name
    for name, page in pages.items():
        banner, answer = SAID.search(page), page.index('<div class="answer">')
        assert banner is not None, name
        assert banner.start() < answer, name
    assert "Confidential:" not in pages["reidentify"]
    for name in ("people", "tables", "release", "noise", "reconstruct", "people/persons.parquet"):
        assert is_made_up(folder / name) or name == "reconstruct", name
    assert json.loads((folder / "reconstruct" / "config.json").read_text())["made_up"] is True


def test_own_records_are_not_called_made_up(own):
    folder, (said, pages) = own
    for name, text in [*said.items(), *pages.items()]:
        assert not SAID.search(text), name
        assert "made-up data" not in text.lower(), name
    assert "Confidential:" in pages["reidentify"]
    assert not any(map(is_made_up, folder.iterdir()))
    assert not any("made_up" in file.read_text() for file in folder.rglob("*.json"))


@pytest.mark.parametrize("by_place", [False, True])
def test_folders_of_microdata_carry_the_mark(simulated, tmp_path, by_place):
    people = simulated[0] / "people"
    words = " --by tract" if by_place else ""
    source = people / "persons.parquet" if by_place else people
    for text in (
        "release --protection none {source} --tables sf1-block -o {out}/tables -q" + words,
        "release {source} --tables sf1-block --only P8 --protection rounding:base=3"
        " --places occupied -o {out}/release -q" + words,
        "attack --only claims {out}/release -o {out}/claims -q",
    ):
        assert SAID.match(run(text, source=source, out=tmp_path)), text
    for name in ("tables", "release"):
        assert is_made_up(tmp_path / name)
        assert br.PublishedTables.read(tmp_path / name).made_up
    assert br.Release.read(tmp_path / "release").tables.made_up
    assert SAID.search((tmp_path / "release-report.html").read_text())


def test_samples_are_called_made_up(tmp_path):
    for text in (
        "census measurements sample:noisy-measurements --prior 1/10 -o {out}/risk -q",
        "release sample:small-town --protection rounding:base=3 -o {out}/town -q",
        "release --protection none sample:synthetic-county --tables sf1-tract -o {out}/county -q",
        "attack --only records {out}/county --scope tract -o {out}/found -q",
    )[:3]:
        assert SAID.match(run(text, out=tmp_path)), text
    assert json.loads((tmp_path / "risk" / "config.json").read_text())["made_up"] is True
    for name in ("risk/report.html", "town-report.html"):
        assert SAID.search((tmp_path / name).read_text("utf-8")), name
    document = run("audit sample:small-town --json")
    assert json.loads(document)["made_up"] is True
    assert br.datasets.load_microdata("synthetic-county").made_up


def test_studies_of_households(tmp_path):
    options = "--solutions 2 --noisy-solutions 2 --protection none -q -o {out}"
    for words in ("--seeds 1 --blocks 3 ", "sample:synthetic-county "):
        out = tmp_path / str(len(words))
        text = run("census occupancy study " + words + options, out=out)
        assert SAID.match(text)
        assert SAID.search((out / "report.html").read_text("utf-8"))


def test_objects_carry_the_mark():
    people = br.simulate_population(br.census.population_spec("tract", n_blocks=3), rng=1)
    work = br.Workload.named("sf1-block").select(tables=["P8"])
    rounding = br.make_mechanism("rounding:base=3")
    tables = br.tabulate(people, work)
    release = rounding.release(people, workload=work, rng=1)
    noise = br.mechanisms.TopDown(budget={"block": {"P8": 1}})
    drawn = noise.prepare(people, workload=work).draw(1)
    assert people.made_up
    assert tables.made_up
    assert release.tables.made_up
    assert drawn.tables.made_up
    assert br.Release.combine([release, release]).tables.made_up
    theirs = br.tables.Microdata(people.persons, people.households, people.blocks)
    assert not br.tabulate(theirs, work).made_up
    assert not rounding.release(theirs, workload=work, rng=1).tables.made_up


def test_a_mark_that_is_not_true_is_refused(tmp_path, simulated):
    from bayesrisk._base import disk

    for name, file, read in (
        ("tables", "_manifest.json", br.PublishedTables.read),
        ("people", "_microdata.json", br.tables.Microdata.read),
    ):
        document = disk.read_document(simulated[0] / name / file)
        folder = tmp_path / name
        folder.mkdir()
        for one in (simulated[0] / name).iterdir():
            (folder / one.name).write_bytes(one.read_bytes())
        read(folder)
        (folder / file).write_bytes(disk.sealed(document | {"made_up": "no"}))
        with pytest.raises(DataError, match="must have format"):
            read(folder)


def test_an_attack_on_tables_of_made_up_people_says_so(simulated, tmp_path):
    """A text file is as the folder around it; real counts that ship are not called made up."""
    table = "sex,count\nF,*\nM,6\nTotal,7\n"
    marked, own = tmp_path / "marked", tmp_path / "own"
    for folder in (marked, own):
        folder.mkdir()
        (folder / "table.csv").write_text(table)
    for file in (simulated[0] / "people").iterdir():
        (marked / file.name).write_bytes(file.read_bytes())
    for folder in (marked, own):
        said = run("attack {f}/table.csv -o {f}-attack --accept -q", f=folder)
        page = (tmp_path / f"{folder.name}-attack" / "report.html").read_text("utf-8")
        made_up = folder == marked
        assert bool(SAID.match(said)) == made_up
        assert said.count(br.datasets.MADE_UP) == made_up
        assert bool(SAID.search(page)) == made_up
        assert (page.count("(Made-up data.)") == 3) == made_up
        assert is_made_up(tmp_path / f"{folder.name}-attack" / "tables") == made_up
    assert not is_made_up(br.datasets.path("dare-county-28-21"))
    assert is_made_up(br.datasets.path("small-town"))
