"""Linked synthetic people of the package pseudopeople, who are nobody's: ten years apart.

The sample that it ships has everybody of one small place in the censuses of 2020 and 2030.  It is
no part of the test extra, as it asks for an older SciPy: ``pip install pseudopeople``.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bayesrisk import Release, Workload, make_mechanism
from bayesrisk.inference import RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.tables import Attribute, Geography, PopulationChange, Records, Schema, link_years

psp = pytest.importorskip("pseudopeople", reason="pseudopeople is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")  # of its own code

STARTS = [0, 20, 50]
BLOCKS = 300  # places that are drawn for people by their household of the first year
SCHEMA = Schema(
    "people",
    (Attribute("sex", 2), Attribute("age", 3)),
    Geography("place", ("block",), (3,)),
)


@pytest.fixture(scope="module")
def censuses():
    """Return the people of both censuses with the same codes."""
    found = []
    for year in (2020, 2030):
        frame = psp.generate_decennial_census(year=year, config=psp.NO_NOISE, verbose=False)
        found.append(pd.DataFrame({
            "who": frame["simulant_id"].astype(str), "home": frame["household_id"].astype(str),
            "sex": (frame["sex"].astype(str) == "Male").astype(int),
            "years": frame["age"].astype(float).astype(int),
        }))  # fmt: skip
    return found


def test_linked_people_are_nine_or_ten_years_older(censuses):
    both = censuses[0].merge(censuses[1], on="who", suffixes=("", "_later"))
    assert len(both) > 5000
    older = both["years_later"] - both["years"]
    assert set(older) == {9, 10}
    assert 0.01 < (older == 9).mean() < 0.08
    assert (both["sex"] == both["sex_later"]).all()


@pytest.fixture(scope="module")
def years(censuses):
    """Return records of both years in small places, their linked trajectories, and the law.

    Whoever is in another home in 2030 has left, and the people of a place in 2030 who were not in
    their home in 2020 have arrived.  A sex is recorded as the other one with probability 0.1 in
    2030, by a drawing of this test: the people do not change it.
    """
    first, later = (frame.copy() for frame in censuses)
    rng = np.random.default_rng(5)
    later["sex"] ^= (rng.random(len(later)) < 0.1).astype(int)
    homes = pd.unique(pd.concat([first["home"], later["home"]]))
    chosen = pd.Series(rng.permutation(homes.size), index=homes)
    chosen = chosen[chosen < BLOCKS]
    ids = {who: n for n, who in enumerate(pd.unique(pd.concat([first["who"], later["who"]])))}
    made = []
    for frame in (first, later):
        here = frame[frame["home"].isin(chosen.index)]
        made.append(pd.DataFrame({
            "block": chosen[here["home"]].map("{:03d}".format).to_numpy(),
            "sex": here["sex"].to_numpy(), "person": here["who"].map(ids).to_numpy(),
            "age": np.searchsorted(STARTS, here["years"], side="right") - 1,
        }))  # fmt: skip
    both = censuses[0].merge(censuses[1], on=["who", "home"])
    group = np.searchsorted(STARTS, censuses[0]["years"], side="right") - 1
    stays = censuses[0]["who"].isin(both["who"])
    staying = [float(stays[group == g].mean()) for g in range(3)]
    came = ~censuses[1]["who"].isin(both["who"])
    after = np.searchsorted(STARTS, censuses[1]["years"], side="right") - 1
    new = np.bincount(censuses[1]["sex"][came] * 3 + after[came], minlength=6) / len(censuses[0])
    law = PopulationChange(
        SCHEMA, 10, age="age", starts=STARTS, staying=staying, changes={"sex": 0.1}, arrivals=new
    )
    records = [Records.from_frame(frame, schema=SCHEMA) for frame in made]
    return records, link_years(*records, change=law), law


def test_the_stated_law_gives_the_true_trajectories_a_probability(years):
    records, linked, law = years
    counts = np.bincount(records[0].cells(), minlength=SCHEMA.size)
    expected = law.trajectories(counts)
    seen = np.bincount(linked.cells(), minlength=expected.size)
    assert (expected[seen > 0] > 0).all()
    assert seen.sum() == pytest.approx(expected.sum(), rel=0.15)


def statements(years, law):
    """Return beliefs that a person is still there, or its sex is recorded otherwise, and truth."""
    records, linked, own = years
    work = Workload.of(SCHEMA, [["sex", "age"]])
    places = [f"{n:03d}" for n in range(BLOCKS)]
    rounding = make_mechanism("rounding:base=3,method=random")
    releases = [
        rounding.release(r, workload=work, rng=n, places=places) for n, r in enumerate(records)
    ]
    joint = Release.combine(releases, change=law)
    mean = np.bincount(records[0].cells(), minlength=SCHEMA.size) / BLOCKS
    prior = RecordPrior.trajectories(law, mean)
    prior = replace(prior, size=prior.size[:13] / prior.size[:13].sum())
    wanted = []
    for group in range(3):
        known = law.condition({"age": [group]})
        there = law.condition({"age": [group]}, present="both")
        wanted += [(law.condition(present="both"), known), (law.condition(changed=["sex"]), there)]
    index = own.schema_of_both.indices(linked.cells())

    def counted(condition):
        return np.all([np.isin(index[n], v) for n, v in condition.items()], axis=0)

    masks = [(counted(w), counted(a)) for w, a in wanted]
    asked = [RecordQuestion(w, among=a) for w, a in wanted]
    at, rows = linked.geoids, []
    for place in np.unique(at)[:120]:
        if (at == place).sum() > 12:
            continue
        found = microdata_posterior(
            joint, asked, level="block", place=str(place), prior=prior, engine="exact"
        )
        for q, (true, group) in zip(found.answers["posterior"], masks, strict=True):
            people = int((group & (at == place)).sum())
            if people:
                rows.append((q, people, int((true & group & (at == place)).sum())))
    return np.array(rows).T


@pytest.mark.slow
def test_beliefs_about_linked_people_are_calibrated(years):
    """Summed over places; people of a household move together, so that errors are of places."""
    law = years[2]
    q, people, hit = statements(years, law)
    off = hit - q * people
    assert people.sum() > 300
    assert abs(off.sum()) < 4.0 * np.sqrt((off**2).sum())
    # A law by which nearly everybody stays fails.
    q, people, hit = statements(years, replace(law, staying=[0.97] * 3))
    off = hit - q * people
    assert abs(off.sum()) > 4.0 * np.sqrt((off**2).sum())
