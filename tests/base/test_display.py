"""Results print their answer, short whatever their size, and as escaped HTML."""

import html
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayesrisk as br
from bayesrisk._base.display import displayed, number, span, spoken


@displayed
@dataclass(frozen=True)
class Fields:
    values: Any
    name: str = "<b>&"
    version: str = "1"


@displayed
@dataclass(frozen=True)
class Answer:
    said: str

    def _answer(self):
        return [self.said, "And what it means."]

    def _shown_frame(self):
        return pd.DataFrame({"<i>": [f"<script>{i}" for i in range(20)]})


def test_numbers_and_ranges():
    assert [number(x) for x in (1234567, 0.123456, np.int64(3), 1e-9)] == [
        "1,234,567",
        "0.1235",
        "3",
        "1e-09",
    ]
    assert span([0.5, 0.5]) == "0.5"
    assert span([1, 3]) == "1 to 3"
    assert span([np.nan, 2.0]) == "2"
    assert span([np.nan]) == "unknown"
    assert span([]) == "none"


def test_fields_without_an_answer():
    assert repr(Fields(np.zeros(10**6))) == "Fields(values=0 (array of 1,000,000), name='<b>&')"
    page = Fields(1)._repr_html_()
    assert "<b>" not in page
    assert "&lt;b&gt;&amp;" in page


def test_the_answer_comes_first_and_is_escaped():
    result = Answer("Belief <b> " + "very " * 20 + "long")
    assert repr(result).startswith("Answer:\n  Belief <b> very")
    page = result._repr_html_()
    assert "<script>" not in page
    assert "<b>" not in page
    assert "and 12 more rows" in page


def test_ten_lines_are_the_most():
    many = Answer("word " * 60)
    object.__setattr__(many, "_answer", lambda: ["word " * 60] * 30)
    assert len(repr(many).splitlines()) == 10
    # Of thirty sentences of as many lines each, nine lines are shown.
    each = len(repr(Answer("word " * 60)).splitlines()) - 2
    assert repr(many).splitlines()[-1] == f"  and {30 * each + 1 - 9} more lines"


def test_reconstruction_says_how_many_are_proved():
    population = br.simulate_population(br.census.population_spec("tract", n_blocks=30), rng=1)
    tables = br.tabulate(population, br.Workload.named("sf1-block"))
    found = br.reconstruct(tables, scope="block")
    unique = found.status.count("unique")
    assert f"{int(found.count.sum()):,} records in {len(found.status):,} places" in repr(found)
    assert f"{unique:,} unique" in repr(found)
    assert "<table" in found._repr_html_()


def test_a_posterior_says_what_it_was_before():
    one = br.block_risk(3, rho=0.1, prior=0.1)
    assert "from 0.1 to 0.1548" in repr(one)
    many = br.block_risk([1, 3, 5], rho=0.1, prior=[[0.1], [0.5]])
    assert "6 releases" in repr(many)
    assert "the largest is that of 5 with prior 0.1" in " ".join(repr(many).split())
    two = br.hierarchical_posterior(
        2, 1, -1, n_siblings=27, rho_block=0.1, rho_group=0.25, prior=0.5
    )
    assert "goes from 0.5 to" in repr(two)
    assert "<p>" in two._repr_html_()


WARDS = pd.DataFrame(
    {"ward": ["<b>North", "South"] * 6, "sex": list("FFM") * 4, "ill": ["no"] * 11 + ["yes"]}
)


def cells_of(page):
    """Return the texts of the cells of the table of a page, a list for each row."""
    rows = re.findall(r"<tr.*?</tr>", page, re.DOTALL)
    return [[html.unescape(t) for t in re.findall(r"<t[dh]>(.*?)</t[dh]>", row)] for row in rows]


def objects():
    """Return what a notebook shows of one set of records, by its name."""
    schema = br.Schema.from_frame(WARDS, place="ward")
    records, workload = br.Records.from_frame(WARDS, schema=schema), br.Workload.of(schema)
    tables = br.tabulate(records, workload)
    release = br.release(WARDS, place="ward", protection="suppression:threshold=4")
    things = [schema, records, workload, tables, release, br.Noise(rho=0.1)]
    things += [br.Rounding(base=3, method="random"), br.make_mechanism("swapping:rate=0.1")]
    return {type(thing).__name__: thing for thing in things}


OBJECTS = objects()


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_show_themselves_in_a_few_lines_and_escaped(name):
    thing = OBJECTS[name]
    assert len(repr(thing).splitlines()) <= 10
    page = thing._repr_html_()
    assert f"<strong>{name}</strong>" in page
    assert "<b>" not in page
    assert "=Schema(" not in repr(thing)


def test_tables_and_releases_show_a_corner_of_a_table():
    shown = pd.crosstab(WARDS["ward"], WARDS["sex"]).to_numpy().astype(str)
    corner = cells_of(OBJECTS["PublishedTables"]._repr_html_())
    assert corner[0] == ["ward | sex", "F", "M"]
    assert [row[0] for row in corner[1:]] == ["<b>North", "South"]
    assert [row[1:] for row in corner[1:]] == shown.tolist()
    assert "18 counts in 4 tables of records" in repr(OBJECTS["PublishedTables"])
    # One person is ill: that count is withheld, and others with it.
    release = OBJECTS["Release"]
    withheld = sum(part.nnz for part in release.tables.suppressed.values())
    assert withheld >= 4
    assert f"{withheld} of them withheld" in repr(release)
    assert "suppression: threshold 4" in repr(release)


def test_records_show_their_first_rows_and_noise_its_scale():
    rows = cells_of(OBJECTS["Records"]._repr_html_())
    assert rows[1:] == WARDS[["ward", "sex", "ill"]].head(8).to_numpy().tolist()
    assert "12 records" in repr(OBJECTS["Records"])
    assert "sigma^2 5," in br.Noise(rho="1/10")._repr_html_()
    assert repr(br.Noise(rho=0.1)) == "Noise(rho=0.1, sensitivity=1.0)"


def test_lines_of_an_answer_stay_apart():
    page = Answer("First.")._repr_html_()
    assert "First.<br>And what it means." in page


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "less than a second"), (1.0, "a few seconds"), (6.9, "a few seconds"),
        (7.0, "about 10 seconds"), (16.0, "about 20 seconds"), (54.0, "about 50 seconds"),
        (56.0, "about a minute"), (91.0, "about 2 minutes"), (3000.0, "about 50 minutes"),
        (3500.0, "about an hour"), (7300.0, "about 2 hours"),
    ],
)  # fmt: skip
def test_a_time_is_one_of_few_that_people_say(seconds, text):
    assert spoken(seconds) == text


def test_a_time_in_words_is_near_to_what_it_is():
    units = {"second": 1.0, "minute": 60.0, "hour": 3600.0}
    for seconds in np.geomspace(10.0, 350_000.0, 2000):
        _, number_said, unit = spoken(float(seconds)).split()
        said = units[unit.rstrip("s")] * (1 if number_said in {"a", "an"} else int(number_said))
        assert 2 / 3 <= said / seconds <= 3 / 2
