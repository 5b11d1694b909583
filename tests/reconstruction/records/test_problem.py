"""The problem that tables pose, posed once and handed down."""

import pandas as pd
import pytest

from bayesrisk.reconstruction import count_bounds, reconstruct, solution_variability
from bayesrisk.reconstruction.records import problem as module
from bayesrisk.tables import Records, Schema, Workload, tabulate


@pytest.fixture
def tables():
    people = pd.DataFrame({"place": list("aabbb"), "sex": list("FFMFF"), "old": list("ynnyn")})
    schema = Schema.from_frame(people, place="place")
    work = Workload.of(schema, [["sex"], ["old"]])
    return tabulate(Records.from_frame(people, schema=schema), work)


def test_every_answer_of_a_problem_is_that_of_its_tables(tables, monkeypatch):
    expected = (
        count_bounds(tables).counts,
        reconstruct(tables, scope="place").to_frame(),
        solution_variability(tables, scope="place").to_frame().drop(columns="seconds"),
    )
    posed = reconstruct(tables, scope="place").problem
    built = []
    monkeypatch.setattr(module, "cell_systems", lambda *given: built.append(given))
    found = reconstruct(posed, scope="place")
    assert found.problem is posed
    answers = (
        count_bounds(posed).counts,
        found.to_frame(),
        solution_variability(tables, scope="place", solution=found)
        .to_frame()
        .drop(columns="seconds"),
    )
    for answer, same in zip(answers, expected, strict=True):
        pd.testing.assert_frame_equal(answer, same)
    assert not built


def test_another_question_poses_another_problem(tables):
    posed = reconstruct(tables, scope="place").problem
    schema = tables.workload.schema
    cross = Workload.of(schema, [["sex", "old"]])
    for options in ({"known_rule": False}, {"queries": cross}):
        other = module.published_problem(posed, scope="place", **options)
        again = module.published_problem(tables, scope="place", **options)
        assert other is not posed
        assert other.tables is tables
        assert other.question == again.question
        assert other.space.size == again.space.size
