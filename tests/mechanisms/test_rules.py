"""A rule of its own for each table, against what each rule publishes alone."""

import numpy as np
import pytest
from support.plan_worlds import RULES, small_world

from bayesrisk.exceptions import ArgumentError
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.mechanisms.rules import Rule, RulesByTable
from bayesrisk.tables import Workload, tabulate

EXAMPLE = {
    "rules-by-table": {
        "rules": {
            "county": {"total": "identity", "ages": "identity"},
            "tract": {"total": "identity", "ages": "identity"},
            "block": {"total": "nearest-5", "ages": "identity"},
        }
    }
}


@pytest.mark.parametrize("seed", range(20))
def test_each_table_is_as_its_rule_alone_makes_it(seed):
    records, work, codes, ladders, *_ = small_world(np.random.default_rng(seed))
    chosen = {key: ladder.rules[0] for ladder in ladders for key in ladder.tables}
    if set(chosen.values()) == {"unpublished"}:
        return
    rules = {}
    for (level, name), text in chosen.items():
        rules.setdefault(level, {})[name] = text
    release = RulesByTable(rules=rules).release(records, workload=work, places=codes)
    published = {}
    for key, text in chosen.items():
        if text == "unpublished":
            continue
        one = Workload(work.schema, {key: work.tables[key]})
        recoding, _, recipe = text.rpartition(" + ")
        tables = tabulate(records, one, geoids=codes)
        if recoding:
            tables = make_mechanism(recoding).release(records, workload=one, places=codes).tables
        mechanism = make_mechanism(recipe)
        ((new_key, counts),) = tables.counts.items()
        law = mechanism.spec.others
        expected = counts.toarray()
        if not law.exact:
            low, high = law.support(release.tables.counts[new_key].toarray())
            assert ((low <= expected) & (expected <= high)).all()
            expected = release.tables.counts[new_key].toarray()
        published[new_key] = expected
        assert release.spec.tables[new_key] == law
    assert set(release.tables.counts) == set(published)
    for key, expected in published.items():
        assert np.array_equal(release.tables.counts[key].toarray(), expected)


@pytest.mark.parametrize(
    "text",
    ["rounding:base=3,method=random", "swapping:rate=0.05", "nearest-5 + nearest-5",
     "nearest-5 + recode:level=town"],
)  # fmt: skip
def test_a_rule_with_chance_or_of_two_recipes_is_refused(text):
    with pytest.raises(ArgumentError, match="rule"):
        Rule(text)


def test_all_rules_of_the_worlds_are_rules():
    assert all(Rule(text).text == text for text in RULES)


def test_a_table_that_is_not_there_is_named():
    _, work, *_ = small_world(np.random.default_rng(0))
    with pytest.raises(ArgumentError, match="'P99'"):
        RulesByTable(rules={"block": {"P99": "identity"}}).published(work)


def test_a_table_without_a_rule_is_refused_not_published():
    records, work, codes, *_ = small_world(np.random.default_rng(0))
    (level, first), *others = work.tables
    assert others
    mechanism = RulesByTable(rules={level: {first: "unpublished"}})
    for act in (
        mechanism.published,
        lambda w: mechanism.release(records, workload=w, places=codes),
    ):
        with pytest.raises(ArgumentError, match=others[0][1]) as refused:
            act(work)
        assert refused.value.argument == "rules"


def test_tables_with_one_suppression_are_protected_together():
    suppressed = 0
    for seed in range(20):
        records, work, codes, *_ = small_world(np.random.default_rng(seed))
        first, *rest = work.tables
        rules = {first[0]: {first[1]: "nearest-5"}}
        for level, name in rest:
            rules.setdefault(level, {})[name] = "suppression:threshold=3"
        made = RulesByTable(rules=rules).release(records, workload=work, places=codes).tables
        part = Workload(work.schema, {key: work.tables[key] for key in rest})
        alone = make_mechanism("suppression", threshold=3)
        expected = alone.release(records, workload=part, places=codes).tables
        for key in rest:
            assert (made.counts[key] != expected.counts[key]).nnz == 0
            assert (made.hidden(*key) != expected.hidden(*key)).nnz == 0
            suppressed += made.hidden(*key).nnz
    assert suppressed > 20
