"""The study of occupancy on households by place: parts by themselves, judged together."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from nations import write_counties
from typer.testing import CliRunner

from bayesrisk import run
from bayesrisk.census.studies.occupancy import OccupancyStudy
from bayesrisk.cli.app import app
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.experiments.by_place import split_by_place
from bayesrisk.tables import Microdata

STUDY = OccupancyStudy(
    seeds=(7,), protections=("none", "swapping", "das"), solutions=2, noisy_solutions=1,
    sample_blocks=100,
)  # fmt: skip
FRAMES = ("table", "seeds", "blocks", "curves", "ends", "variability")


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """Return households of four counties by place."""
    folder = tmp_path_factory.mktemp("study") / "people"
    write_counties(folder, "subsidised")
    return folder


@pytest.fixture(scope="module")
def parted(people):
    return replace(STUDY, households=people).in_memory()


@pytest.fixture(scope="module")
def whole(people):
    return replace(STUDY, households=Microdata.read(people).households).in_memory()


def subsidised(homes):
    return homes.table.column("subsidised").to_numpy()


def of(results, frame, protection):
    found = getattr(results, frame)
    return found[found["protection"] == protection].reset_index(drop=True)


def test_what_tables_without_protection_say_is_the_same_as_of_the_whole(parted, whole):
    assert of(whole, "table", "none")["putative"].to_list()[0] > 0
    for frame in ("table", "seeds"):
        pd.testing.assert_frame_equal(of(parted, frame, "none"), of(whole, frame, "none"))
    # The mean over reconstructions is of other draws, and which way a program is decided depends on
    # the programs beside it.
    other = ["reconstructed", "way"]
    said = [of(made, "blocks", "none").drop(columns=other) for made in (parted, whole)]
    pd.testing.assert_frame_equal(*said)


def test_the_baseline_knows_the_same_sample(parted, whole):
    for frame in ("curves", "ends"):
        pd.testing.assert_frame_equal(of(parted, frame, "sampling"), of(whole, frame, "sampling"))


def test_every_block_is_attacked_once_under_every_protection(parted, whole):
    for name in STUDY.protections:
        blocks = of(parted, "blocks", name)
        assert blocks["block"].is_unique
        assert blocks["block"].to_list() == of(whole, "blocks", name)["block"].to_list()
        assert blocks["violations"].to_list() == of(whole, "blocks", name)["violations"].to_list()


def test_the_rate_of_swaps_is_that_of_all_households(people, parted):
    swapped = of(parted, "seeds", "swapping")["realised_rate"]
    homes = Microdata.read(people).households
    counties = len({geoid[:5] for geoid in homes.geoids})
    # Each part swaps its own share but for a pair.
    assert np.abs(swapped - 0.1).max() <= 2 * counties / len(homes)


def test_a_part_is_the_same_without_the_others(people, parted, tmp_path):
    homes = Microdata.read(people).households
    first = homes.geoids[0][:5]
    own = Microdata(None, homes.take(np.strings.startswith(homes.geoids, first)), None)
    split_by_place(own, tmp_path / "one")
    alone = replace(STUDY, households=tmp_path / "one").in_memory()
    together = parted.blocks[parted.blocks["block"].str.startswith(first)].reset_index(drop=True)
    assert len(together)
    pd.testing.assert_frame_equal(alone.blocks, together)


@pytest.mark.slow
def test_a_folder_is_the_same_for_any_number_of_workers(people, parted, tmp_path):
    done = run(replace(STUDY, households=people), tmp_path / "out", workers=2)
    assert done.shards == 3 * 4
    for frame in FRAMES:
        pd.testing.assert_frame_equal(getattr(done.results, frame), getattr(parted, frame))


def test_places_without_subsidised_households_are_gone_past(people, tmp_path):
    data = Microdata.read(people)
    homes = data.households
    first = np.strings.startswith(homes.geoids, homes.geoids[0][:5])
    fewer = homes.replace(subsidised=np.where(first, 0, subsidised(homes)))
    split_by_place(Microdata(None, fewer, None), tmp_path / "fewer")
    found = replace(STUDY, households=tmp_path / "fewer").in_memory()
    rest = np.unique(homes.geoids[subsidised(fewer) == 1])
    assert of(found, "blocks", "none")["block"].to_list() == rest.tolist()
    nobody = homes.replace(subsidised=np.zeros(len(homes), dtype=int))
    split_by_place(Microdata(None, nobody, None), tmp_path / "none")
    with pytest.raises(DataError, match="must hold subsidised households, got none"):
        replace(STUDY, households=tmp_path / "none").in_memory()


def test_what_cannot_be_done_by_place_is_refused(people, tmp_path):
    homes = Microdata.read(people).households
    split_by_place(Microdata(None, homes, None), tmp_path / "tracts", level="tract")
    study = replace(STUDY, households=tmp_path / "tracts")
    with pytest.raises(ArgumentError, match=r"protects each county .* or give all households in"):
        study.in_memory()
    with pytest.raises(DataError, match=r"must be microdata by place"):
        replace(STUDY, households=tmp_path).in_memory()
    with pytest.raises(ArgumentTypeError, match="households must be Records or a folder"):
        replace(STUDY, households=3)


@pytest.mark.slow
def test_the_page_says_that_places_are_protected_by_themselves(parted, whole, tmp_path):
    """And shows all that it shows of one file; no place, block or household by its code."""
    pages = {}
    for name, results in (("parted", parted), ("whole", whole)):
        pages[name] = results.write_report(tmp_path / name).read_text()
    drawn = [
        sorted(str(f.relative_to(tmp_path / name)) for f in (tmp_path / name).rglob("*.*"))
        for name in pages
    ]
    assert drawn[0] == drawn[1]
    said = "The households of 4 places are protected and attacked place by place"
    assert [said in page for page in pages.values()] == [True, False]
    assert "Flagged blocks, all 4 places together" in pages["parted"]
    assert "Flagged blocks, one population" in pages["whole"]
    assert not any(block in pages["parted"] for block in parted.blocks["block"])


def test_a_part_by_itself_is_a_folder_of_households(people, tmp_path):
    """As its file is; a folder without households is no file that does not exist."""
    part = next(people.glob("part-*"))
    words = [
        "census", "occupancy", "study", "--protection", "none", "--solutions", "1", "--no-figures",
        "-q",
    ]  # fmt: skip
    for name, given in (("folder", part), ("file", part / "households.parquet")):
        done = CliRunner().invoke(app, [*words, str(given), "-o", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
    tables = [(tmp_path / name / "table.csv").read_bytes() for name in ("folder", "file")]
    assert tables[0] == tables[1]
    done = CliRunner().invoke(
        app, [*words, str(people), "--sample", str(people), "-o", str(tmp_path / "no")]
    )
    assert "must be a file of households, got a folder without them" in str(done.exception)
    assert not (tmp_path / "no").exists()
