"""Results print their answer, short whatever their size, and as escaped HTML."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import bayesrisk as br
from bayesrisk._base.display import displayed, number, span


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
