"""The report of an occupancy attack: its numbers are those of its files, and what may be quoted."""

import re

import numpy as np
import pandas as pd
import pytest
from audits import homes
from studies import run_occupancy_attack

from bayesrisk.census.occupancy.statistics import occupancy_statistics
from bayesrisk.census.studies.occupancy_results import attack_lead
from bayesrisk.tables import Workload, tabulate

pytestmark = pytest.mark.usefixtures("quick_figures")


def page(folder):
    return (folder / "report.html").read_text("utf-8")


def lead(text):
    return re.search(r'<p class="lead">(.*?)</p>', text)[1]


@pytest.fixture(scope="module")
def people():
    return homes(3, 30, 6)


@pytest.fixture(scope="module")
def done(people, tmp_path_factory):
    folder = tmp_path_factory.mktemp("occupancy")
    tabulate(people, Workload.named("household-occupancy")).write(folder / "tables")
    run_occupancy_attack(folder / "tables", folder / "out")
    return folder


def test_the_numbers_are_those_of_the_files_and_true_of_the_households(done, people):
    blocks, text = pd.read_parquet(done / "out" / "blocks.parquet"), page(done / "out")
    frame = people.to_frame()
    subsidised = frame[frame["subsidised"] == 1]
    proved = blocks.loc[blocks["status"] == "violation", "block"]
    number = subsidised["block"].nunique()
    assert 0 < len(proved) < number
    assert lead(text).startswith(f"{len(proved)} of {number} places (block) ")
    assert f"In {number - len(proved)} of them households within the limit fit" in text
    # Each block that the page names has a household above the limit.
    rooms = subsidised["bedrooms"].map({1: 2, 2: 4, 3: np.inf})
    above = set(subsidised.loc[subsidised["size"] > rooms, "block"])
    named = re.findall(r">(\d{15})<", text)
    assert sorted(named) == sorted(proved)
    assert set(named) <= above
    assert "would only be so if they were true" not in text


def test_three_sentences_may_be_quoted_and_three_may_not(done):
    text = page(done / "out")
    may, may_not = (
        re.findall("<li>(.*?)</li>", part, re.S)
        for part in text.split("What may be quoted")[1].split("What may not")[:2]
    )
    assert len(may) == 3
    assert len(may_not[:3]) == 3
    assert lead(text) in may[0]


def test_counts_taken_as_true_prove_nothing_unless_they_are(done, tmp_path):
    run_occupancy_attack(done / "tables", tmp_path / "out", taken_as_true=True)
    text = page(tmp_path / "out")
    assert lead(text).startswith("If the published counts were true: ")
    assert "would only be so if they were true" in text


def test_a_public_sample_says_how_many_are_likely(done, people, tmp_path):
    sample = people.to_frame()[["size", "race_ethnicity", "children"]]
    sample.to_parquet(tmp_path / "sample.parquet")
    options = {"sample": tmp_path / "sample.parquet", "solutions": 3}
    run_occupancy_attack(done / "tables", tmp_path / "out", **options)
    mean = pd.read_parquet(tmp_path / "out" / "blocks.parquet")["violations"].mean()
    assert mean >= 1.0
    assert f"about {mean:.0f} of the likely households" in page(tmp_path / "out")


def test_places_that_contradict_themselves_are_named(done, people, tmp_path):
    frame = occupancy_statistics(tabulate(people, Workload.named("household-occupancy"))).to_frame()
    frame.loc[0, "population"] += 50
    frame.to_parquet(tmp_path / "blocks.parquet")
    run_occupancy_attack(tmp_path / "blocks.parquet", tmp_path / "out")
    blocks = pd.read_parquet(tmp_path / "out" / "blocks.parquet")
    assert blocks.loc[0, "status"] == "infeasible"
    wrong = f"No households fit {blocks.loc[0, 'block']}: {blocks.loc[0, 'conflict']}."
    assert wrong in page(tmp_path / "out")


@pytest.mark.parametrize(
    ("statuses", "places", "text"),
    [
        ({"possible": 4}, 3, "None of 3 places (block) with subsidised households is proved "),
        ({"possible": 4}, 0, "No place (block) has subsidised households, which the limit is for."),
        ({"violation": 1}, 1, "1 of 1 place (block) with subsidised households must hold "),
    ],
)
def test_the_sentence_in_front(statuses, places, text):
    facts = {"statuses": statuses, "subsidised": places, "taken_as_true": False}
    assert attack_lead(facts, "block").startswith(text)


def test_a_page_about_nobody_has_no_figure(tmp_path):
    people = homes(3, 30, 6)
    frame = people.to_frame().assign(subsidised=0, bedrooms=0)
    none = type(people).from_frame(frame, schema=people.schema)
    tabulate(none, Workload.named("household-occupancy")).write(tmp_path / "tables")
    run_occupancy_attack(tmp_path / "tables", tmp_path / "out")
    text = page(tmp_path / "out")
    assert lead(text) == "No place (block) has subsidised households, which the limit is for."
    assert "<figure" not in text
