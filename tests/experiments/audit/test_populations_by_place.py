"""Audits of a population by place: as of the whole where it should be, one part in memory."""

import shutil

import numpy as np
import pandas as pd
import pytest
from audits import contents
from nations import four_counties, write_counties
from peak_memory import run_and_measure

from bayesrisk._base.randomness import named_stream
from bayesrisk.census import population_spec
from bayesrisk.census.population.nation import Nation
from bayesrisk.census.studies.nation_attack import NationStudy
from bayesrisk.exceptions import ArgumentError, BayesRiskError, DataError
from bayesrisk.experiments import run
from bayesrisk.experiments.audit import AuditStudy, Protection, read_audit
from bayesrisk.experiments.audit.populations import PopulationInParts
from bayesrisk.risk.audit import Adversary, AuditedPopulation
from bayesrisk.risk.audit.surroundings import MECHANISM, audit_rng
from bayesrisk.tables import Microdata, Workload

pytestmark = pytest.mark.usefixtures("quick_figures")

TABLES = Workload.named("sf1-block").select(tables=["P8", "P9"])
WHO = [Adversary.named("outsider"), Adversary.named("insider", known=["sex"])]
CHANCE = ("rounding:base=3", 'swapping:rate=0.2,unit=person,swap_key=["sex"]')
KEYS = ["target", "adversary", "attack", "protection", "statement"]


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """Return a nation of four counties, by place and in one folder."""
    at = tmp_path_factory.mktemp("audited")
    write_counties(at / "parts")
    Microdata.read(at / "parts").write(at / "whole")
    return at


def study(folder, *protections, targets=6, **options):
    return AuditStudy(
        folder, options.pop("workload", TABLES), targets=targets, targets_per_shard=3, releases=2,
        adversaries=options.pop("adversaries", WHO), stated=["hisp"],
        protections=[Protection(text) for text in protections], **options,
    )  # fmt: skip


def test_what_is_known_of_all_places_is_that_of_the_whole(people):
    one = study(people / "parts", "identity", targets=40)
    known, question = one._populations[""].survey, one._question
    whole = AuditedPopulation(Microdata.read(people / "whole"), question, seed=1)
    assert known.rows[-1] == len(whole.records)
    assert known.places[-1] == whole.codes.size
    for around in known.around:
        size = around.composition.size
        assert around.composition.tolist() == np.bincount(whole.cells, minlength=size).tolist()
        assert (around.largest, around.concentration) == (whole.largest, whole.concentration)
    assert known.targets.tolist() == whole.targets(40).tolist()
    assert known.target_places.tolist() == whole.place[known.targets].tolist()
    everybody = PopulationInParts(
        people / "parts", question, TABLES.schema, seed=1, targets=None
    ).survey
    assert everybody.targets.size == known.rows[-1]
    assert everybody.target_places.tolist() == whole.place.tolist()


@pytest.mark.parametrize(("protection", "method"), [
    ("identity", "majority"), ("suppression:threshold=3", "majority"),
    pytest.param("identity", "posterior", marks=pytest.mark.slow),
])  # fmt: skip
def test_without_chance_statements_are_those_of_the_whole(people, tmp_path, protection, method):
    found = []
    for name in ("parts", "whole"):
        run(study(people / name, protection, methods=[method]), tmp_path / name)
        statements, _ = read_audit(tmp_path / name)
        found.append(statements.sort_values(KEYS).reset_index(drop=True))
    assert found[0]["target"].nunique() == 6
    assert found[0]["place"].str[:5].nunique() > 1
    pd.testing.assert_frame_equal(*found, rtol=1e-12)


def test_a_part_is_released_as_if_it_were_alone(people, tmp_path):
    """Rounding at random by place: what people of one county learn is of its own stream."""
    run(study(people / "parts", *CHANCE, methods=["majority"]), tmp_path / "one")
    shutil.copytree(people / "parts", tmp_path / "people")
    run(study(tmp_path / "people", *CHANCE, methods=["majority"]), tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    population = study(people / "parts", *CHANCE)._populations[""]
    for protection in study(people / "parts", *CHANCE).protections:
        part = population.target_parts(population.survey.targets[:1])[0]
        mechanism, made = population.release(protection, 1, part)
        code = ("80001", "80003", "80005", "80007")[part]
        data = Microdata.read(people / "parts" / f"part-{code}")
        stream = protection.mechanism.encode()
        seed = int(audit_rng(1, MECHANISM, 1, *stream).integers(2**63))
        alone = mechanism.release(data, workload=TABLES, rng=named_stream(seed, code))
        assert made.tables == alone.tables
        other = mechanism.release(data, workload=TABLES, rng=named_stream(seed, "80009"))
        assert made.tables != other.tables
    errors = pd.read_parquet(tmp_path / "one" / "errors.parquet")
    assert errors["error"].between(0, 2).all()
    assert errors["protection"].value_counts().tolist() == [4, 4]  # two tables, two releases


def test_a_shard_reads_the_parts_of_its_targets_and_no_others(people, tmp_path):
    shutil.copytree(people / "parts", tmp_path / "people")
    one = study(tmp_path / "people", "identity")
    population = one._populations[""]
    shards = population.shards(3)
    read = [set(population.target_parts(rows)) for rows in shards]
    assert any(len(parts) < 4 for parts in read)
    number = min(range(len(shards)), key=lambda i: len(read[i]))
    codes = ("80001", "80003", "80005", "80007")
    for part in set(range(4)) - read[number]:
        shutil.rmtree(tmp_path / "people" / f"part-{codes[part]}")
    frame = population.statements(one.protections[0], [0], shards[number])
    assert set(frame["place"].str[:5]) == {codes[part] for part in read[number]}
    others = next(rows for rows, parts in zip(shards, read, strict=True) if parts - read[number])
    with pytest.raises(DataError, match="part-8000"):
        population.statements(one.protections[0], [0], others)


@pytest.mark.parametrize(("protection", "options", "words"), [
    ("swapping:within=state,rate=0.1", {}, "'swapping' protects each state as a whole"),
    ("rounding:base=3", {"workload": TABLES.union(Workload.named("sf1-block", levels=["state"]))},
     "workload must have no level coarser than a county, which the parts are, got state"),
])  # fmt: skip
def test_what_needs_more_than_a_part_is_refused(people, tmp_path, protection, options, words):
    with pytest.raises(ArgumentError, match=words) as told:
        run(study(people / "parts", protection, **options), tmp_path / "out")
    assert "--whole" not in str(told.value)  # an audit has no such option
    several = {"whole": people / "whole", "parts": people / "parts"}
    if "workload" not in options:
        assert str(told.value).endswith("audit them as one folder of microdata, not by place")
    with pytest.raises(ArgumentError, match=f"^population 'parts': .*{words}"):
        run(study(several, protection, **options), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_population_that_changes_is_refused(people, tmp_path):
    shutil.copytree(people / "parts", tmp_path / "people")
    one = study(tmp_path / "people", "identity")
    known, question = one._populations[""].survey, one._question
    run(NationStudy(four_counties(), 4), tmp_path / "others")
    moved = PopulationInParts(
        tmp_path / "people", question, TABLES.schema, seed=1, targets=40, survey=known
    )
    shutil.rmtree(tmp_path / "people")
    shutil.move(tmp_path / "others", tmp_path / "people")
    one.close()
    with pytest.raises(BayesRiskError, match="must not change while it is read"):
        moved.part(0)


#: Surveys a population, and reads and protects part after part, as a worker does.
_AUDIT = """
import tracemalloc
import pyarrow as pa
from bayesrisk.experiments.audit import AuditStudy, Protection
from bayesrisk.risk.audit import Adversary
from bayesrisk.tables import Workload
tables = Workload.named("sf1-block").select(tables=["P8"])
study = AuditStudy(sys.argv[1], tables, targets=4, targets_per_shard=2, stated=["hisp"],
    adversaries=[Adversary.named("linker", known=["sex", "age"])], concentration=5.0,
    protections=[Protection("identity")])
tracemalloc.start()
population = study._populations[""]
for part in range(len(population.survey.rows) - 1):
    population.release(study.protections[0], 0, part)
answer = tracemalloc.get_traced_memory()[1] + pa.default_memory_pool().max_memory()
"""


@pytest.mark.slow
def test_a_worker_holds_no_more_of_four_times_as_many_places(tmp_path):
    spec = population_spec("county", blocks_per_group=5)  # 345 blocks in a county
    held = {}
    for counties in (3, 12):
        run(NationStudy(Nation(345 * counties, spec), 1), tmp_path / str(counties))
        held[counties] = run_and_measure(_AUDIT, tmp_path / str(counties))[0]
    Microdata.read(tmp_path / "12").write(tmp_path / "whole")
    whole = run_and_measure(_AUDIT, tmp_path / "whole")[0]
    assert held[12] - held[3] < (whole - held[3]) / 4
