"""Re-identification by place: what comes of one file, and nobody is lost between counties."""

import shutil

import numpy as np
import pandas as pd
import pytest
from nations import write_counties
from studies import contents, run_reconstruction

from bayesrisk import run
from bayesrisk.census.studies import linked_counties
from bayesrisk.census.studies.reidentification import write_reidentification
from bayesrisk.exceptions import DataError, PartFileError
from bayesrisk.experiments.by_place import TabulationStudy, split_by_place
from bayesrisk.experiments.reconstruction import RowsByPlace, read_reconstruction
from bayesrisk.risk import reidentify
from bayesrisk.tables import Microdata, Records, Workload

pytestmark = pytest.mark.usefixtures("quick_figures")

BOTH = Workload.named("sf1-block").union(Workload.named("sf1-tract"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return folders of a nation of four counties, of known persons some of whom moved."""
    at = tmp_path_factory.mktemp("by-place")
    write_counties(at / "people")
    run(TabulationStudy(at / "people", BOTH), at / "tables")
    run_reconstruction(at / "tables", at / "out", scope="tract", variability="tract-bounds")
    people = Microdata.read(at / "people").persons
    Microdata(persons=people, made_up=True).write(at / "whole")
    moved = people.table.to_pandas()
    rng = np.random.default_rng(1)
    away = rng.random(len(moved)) < 0.2
    moved.loc[away, "block"] = rng.permutation(moved.loc[away, "block"].to_numpy())
    moved = moved[rng.random(len(moved)) < 0.7].sort_values("block", kind="stable")
    known = Records.from_frame(moved, schema=people.schema)
    split_by_place(known, at / "known", made_up=True)
    split_by_place(known, at / "known-tracts", level="tract", made_up=True)
    split_by_place(people, at / "people-states", level="state", made_up=True)
    Microdata(persons=Microdata.read(at / "known").persons, made_up=True).write(at / "known-whole")
    return at


def write(made, target, known, truth):
    return write_reidentification(
        made / "out", target, attackers={"all": truth, "some": known}, truth=truth, seed=5
    )


@pytest.fixture(scope="module")
def whole(made, tmp_path_factory):
    target = tmp_path_factory.mktemp("whole") / "r"
    truth, known = (made / name / "persons.parquet" for name in ("whole", "known-whole"))
    return write(made, target, known, truth), contents(target, but=("manifest.json",))


@pytest.mark.parametrize(
    ("known", "truth"), [("known", "people"), ("known-tracts", "people-states")]
)
def test_parts_come_to_the_same_bytes_as_files_of(made, whole, tmp_path, known, truth):
    write(made, tmp_path / "r", made / known, made / truth)
    found = contents(tmp_path / "r", but=("manifest.json",))
    assert found.keys() == whole[1].keys()
    assert [name for name in found if found[name] != whole[1][name]] == []
    assert not list((tmp_path / "r").glob("_*"))


def test_persons_of_many_numbers_are_found_too(made, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(linked_counties, "_PERSONS", 100)
    write(made, tmp_path / "r", made / "known", made / "people")
    assert contents(tmp_path / "r", but=("manifest.json",)) == whole[1]


def test_counts_are_those_of_the_library_for_all_counties_at_once(made, whole):
    """Who is a target of which kind, and how many links there are, do not depend on chance."""
    people, known = (
        Microdata.read(made / name).persons.table.to_pandas() for name in ("people", "known")
    )
    own = known.merge(people[["person", "block"]], on="person", suffixes=("", "_true"))
    assert (own["block"].str[:5] != own["block_true"].str[:5]).mean() > 0.1
    out = read_reconstruction(made / "out")
    proved = set(out.variability.loc[out.variability["upper"] == 0, "block"])
    proved |= set(out.blocks.loc[out.blocks["status"] == "unique", "block"])
    direct = reidentify(
        {"reconstruction": out.records},
        {"all": people, "some": known},
        truth=people,
        baseline_from="reconstruction",
        rng=3,
        zero_variability_blocks=sorted(proved),
    )
    rates = pd.read_csv(whole[0].report.parent / "rates.csv")
    for panel in ("all", "in-truth", "modal", "nonmodal", "nonmodal-unique"):
        for blocks in ("all", "proved"):
            expected = direct.to_frame(panel=panel, zero_variability=blocks == "proved")
            mine = rates.query("panel == @panel and blocks == @blocks").reset_index(drop=True)
            assert mine["attacker_records"].tolist() == expected["attacker_records"].tolist()
            if panel == blocks == "all":
                assert mine["putative"].tolist() == expected["putative"].tolist()


def test_a_person_of_two_counties_is_refused(made, tmp_path):
    people = Microdata.read(made / "people").persons.table.to_pandas()
    last = len(people) - 1
    assert people.loc[0, "block"][:5] != people.loc[last, "block"][:5]
    people.loc[last, "person"] = people.loc[0, "person"]
    schema = Microdata.read(made / "people").persons.schema
    split_by_place(Records.from_frame(people, schema=schema), tmp_path / "twice")
    with pytest.raises(DataError, match=r"twice: column 'person': must be .* in 80001 and 80007"):
        write(made, tmp_path / "r", made / "known", tmp_path / "twice")
    assert not (tmp_path / "r").exists()


def test_a_damaged_part_is_refused_by_name(made, tmp_path):
    for name in ("persons.parquet", "_microdata.json"):
        folder = tmp_path / name
        shutil.copytree(made / "people", folder)
        file = folder / "part-80003" / name
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        with pytest.raises(DataError, match=rf"part-80003.*{name}"):
            write(made, tmp_path / "r", made / "known", folder)
    assert not (tmp_path / "r").exists()


def test_rows_are_read_place_after_place(tmp_path):
    rng = np.random.default_rng(2)
    place = np.sort(rng.choice(["01", "02", "04", "05"], 50))
    frame = pd.DataFrame({"block": place, "n": np.arange(50)})
    frame.to_parquet(tmp_path / "rows.parquet", index=False)
    rows = RowsByPlace(tmp_path / "rows.parquet", 2)
    for code in ("00", "01", "03", "05", "06"):
        expected = frame[frame["block"] == code].reset_index(drop=True)
        pd.testing.assert_frame_equal(rows.rows(code), expected, check_dtype=False)
    both = dict(RowsByPlace(tmp_path / "rows.parquet", 2).places())
    assert sorted(both) == ["01", "02", "04", "05"]
    assert sum(map(len, both.values())) == 50
    frame[::-1].to_parquet(tmp_path / "rows.parquet", index=False)
    with pytest.raises(PartFileError, match="in the order of the places"):
        RowsByPlace(tmp_path / "rows.parquet", 2).rows("02")
