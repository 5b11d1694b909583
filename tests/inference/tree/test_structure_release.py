"""The tree of one published cell of a release, against the same tree written by hand."""

import numpy as np
import pandas as pd
import pytest
from agency_forms import write_pl94

from bayesrisk import ArgumentError, MechanismSpec, Release, Tree, Workload, tree_posterior
from bayesrisk.census import read_pl94
from bayesrisk.release import NoiseSpec, RoundingSpec, TrueCounts
from bayesrisk.tables import PublishedTables, Records, Schema, tabulate

LEVELS = ["county", "tract", "block"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Return redistricting tables of a county, written and read as the file that is published."""
    rng = np.random.default_rng(1)
    schema = Schema.named("pl94")
    codes = {a.name: rng.integers(a.size, size=60) for a in schema.attributes}
    blocks = rng.choice(["500010001001000", "500010001001001", "500010002001000"], size=60)
    people = Records.from_frame(pd.DataFrame(codes | {"block": blocks}), schema=schema)
    work = Workload.named("pl94-tables", levels=LEVELS)
    file = tmp_path_factory.mktemp("pl94") / "vt2020.pl.zip"
    write_pl94(tabulate(people, work), file)
    return read_pl94(file, workload=work)


def noisy(tables, laws):
    """Return the release of the tables with a likelihood for each level."""
    rng, counts = np.random.default_rng(2), {}
    spec = {key: laws[key[0]] for key in tables.counts}
    for key, matrix in tables.counts.items():
        law = spec[key]
        drawn = 0 if law.exact else law.to_law().rvs(matrix.shape, random_state=rng)
        counts[key] = type(matrix)(matrix.toarray() + drawn)
    made = PublishedTables(tables.workload, tables.geoids, counts)
    return Release(MechanismSpec("some", {}, spec), made)


LAWS = {
    "county": TrueCounts(),
    "tract": NoiseSpec("discrete-gaussian", 2),
    "block": NoiseSpec("discrete-gaussian", 5),
}


def test_redistricting_tables_become_a_tree(tables):
    release = noisy(tables, LAWS)
    table = next(name for level, name in tables.workload.tables if level == "block")
    cell = tables.workload.at("block")[table].cells[0]
    tree = Tree.from_release(release, table=table, cell=cell)
    rows = []
    for level, above in zip(LEVELS, [0, 5, 11], strict=True):
        for geoid in release.tables.geoids[level]:
            count = int(release.tables.count(level, table, geoid)[0])
            exact = level == "county"
            rows.append(
                {
                    "node": str(geoid),
                    "parent": str(geoid)[:above],
                    "noisy_count": np.nan if exact else count,
                    "sigma2": {"county": np.nan, "tract": 2.0, "block": 5.0}[level],
                    "exact_count": count if exact else np.nan,
                }
            )
    by_hand = Tree.from_frame(pd.DataFrame(rows))
    found = tree_posterior(tree, leaf_prior="flat")
    expected = tree_posterior(by_hand, leaf_prior="flat")
    assert list(tree.names) == list(by_hand.names)
    np.testing.assert_array_equal(found.mean, expected.mean)
    total = tables.count("county", table, "50001")[0]
    assert found.mean[0] == total
    assert found.mean[tree.leaves].sum() == pytest.approx(total, rel=1e-12)


def test_a_place_in_the_middle_can_be_the_top(tables):
    release = noisy(tables, LAWS)
    tree = Tree.from_release(release, table="P1", cell="P0010003", place="50001000100")
    assert list(tree.names) == ["50001000100", "500010001001000", "500010001001001"]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"table": "P9"}, "table must be one of"),
        ({"cell": "none"}, "cell must be one of"),
        ({"place": "7"}, "place must be of one of the levels county, tract, block"),
        ({"place": "50003"}, "geoid must be a place of level 'county'"),
    ],
)
def test_unknown_names_are_refused(tables, change, match):
    given = {"table": "P1", "cell": "P0010003"} | change
    with pytest.raises(ArgumentError, match=match):
        Tree.from_release(noisy(tables, LAWS), **given)


def test_several_places_at_the_top_and_other_laws_are_refused(tables):
    few = Release(
        MechanismSpec("some", {}, {}, others=TrueCounts()),
        PublishedTables(
            tables.workload.select(levels=["tract", "block"]),
            {level: tables.geoids[level] for level in ("tract", "block")},
            {key: m for key, m in tables.counts.items() if key[0] != "county"},
        ),
    )
    with pytest.raises(ArgumentError, match="place must be given, as the table is of 2 places"):
        Tree.from_release(few, table="P1", cell="P0010003")
    rounded = Release(MechanismSpec("some", {}, {}, others=RoundingSpec(5, "nearest")), tables)
    with pytest.raises(ArgumentError, match="must have Gaussian noise or none, got rounding"):
        Tree.from_release(rounded, table="P1", cell="P0010003")
