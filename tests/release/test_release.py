"""Specs and releases: complete, exact through JSON, and without anything confidential."""

import json
import shutil
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from oracles.mechanisms import AGES, SEX, TOTAL, people_workload, population

from bayesrisk import DiscreteGaussian, DiscreteLaplace
from bayesrisk.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    DataError,
    OutputError,
    ShapeError,
)
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.release import (
    Likelihood,
    MechanismSpec,
    NoiseSpec,
    Release,
    RoundingSpec,
    SimulationOnly,
    SuppressedCounts,
    TrueCounts,
)
from bayesrisk.tables import PublishedTables, exchange

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
scales = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6)
noises = st.builds(NoiseSpec, st.sampled_from(["discrete-gaussian", "discrete-laplace"]), scales)
roundings = st.builds(RoundingSpec, st.integers(1, 2**31), st.sampled_from(["nearest", "random"]))
others = st.sampled_from([TrueCounts(), SuppressedCounts(), SimulationOnly()])
likelihoods = noises | roundings | others
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | names
    | st.floats(allow_nan=False, width=32).filter(np.isfinite),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
specs = st.builds(
    MechanismSpec,
    names,
    st.dictionaries(names, values, max_size=3),
    st.dictionaries(st.tuples(names, names), likelihoods, max_size=3),
    likelihoods,
)


@given(specs)
def test_specs_survive_json(spec):
    text = json.dumps(spec.to_dict(), allow_nan=False)
    assert MechanismSpec.from_dict(json.loads(text)) == spec


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("", {}), "mechanism must be a text"),
        (("m", {"x": float("nan")}), r"parameters\['x'\] must be finite"),
        (("m", {"x": b"1"}), r"parameters\['x'\]"),
        (("m", {1: 2}), "text as keys"),
        (("m", {}, {"block": NoiseSpec("discrete-laplace", 1)}), "tables must name"),
        (("m", {}, {("block", "t"): Likelihood()}), "must be a likelihood"),
        (("m", {}, {("block",): TrueCounts()}), "tables must name"),
        (("m", {}, {}, None), "others must be a likelihood"),
    ],
)
def test_specs_are_checked(arguments, match):
    with pytest.raises(ArgumentTypeError, match=match):
        MechanismSpec(*arguments)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: NoiseSpec("normal", 1), "law must be one of"),
        (lambda: NoiseSpec("discrete-laplace", 0), "scale must be > 0, got 0"),
        (lambda: RoundingSpec(0, "random"), "base must be >= 1"),
        (lambda: RoundingSpec(5, "up"), "method must be one of"),
    ],
)
def test_likelihoods_are_checked(make, match):
    with pytest.raises(ArgumentError, match=match):
        make()


def test_likelihoods_in_closed_form():
    laplace = {("tract", "a"): NoiseSpec("discrete-laplace", "3/2")}
    gauss = MechanismSpec("m", {}, {("block", "a"): NoiseSpec("discrete-gaussian", 2), **laplace})
    assert gauss.law("block", "a").pmf(3) == DiscreteGaussian(2).pmf(3)
    assert gauss.law("tract", "a").pmf(3) == DiscreteLaplace(1.5).pmf(3)
    assert gauss.law("county", "a") is None
    at = {"level": "block", "table": "a"}
    expected = DiscreteGaussian(2).pmf([3, 2])
    assert np.array_equal(gauss.likelihood(**at).probability(7, [4, 5]), expected)
    assert gauss.likelihood("block", "b").probability(7, 4) is None
    plain = MechanismSpec("m", others=TrueCounts())
    assert plain.likelihood(**at).probability([3, 4], 4).tolist() == [0.0, 1.0]
    kept = MechanismSpec("m", tables={("block", "a"): TrueCounts()})
    assert kept.likelihood(**at).probability([3, 4], 4).tolist() == [0.0, 1.0]
    rounded = MechanismSpec("m", others=RoundingSpec(5, "random"))
    assert rounded.likelihood(**at).probability([0, 5], 3).tolist() == pytest.approx([0.4, 0.6])
    with pytest.raises(ShapeError, match="released"):
        gauss.likelihood(**at).probability([1, 2], [1, 2, 3])


@given(noises | roundings | st.just(TrueCounts()), st.integers(0, 40), st.integers(0, 9))
def test_the_releases_that_are_possible_carry_all_the_probability(part, low, width):
    if isinstance(part, NoiseSpec) and part.scale > 100:
        part = NoiseSpec(part.law, 100)
    tail = 2.0**-60
    releases = part.releases(low, low + width, tail=tail)
    assert (np.diff(releases) > 0).all()
    for count in (low, low + width):
        found = part.probability(releases, count)
        assert found.sum() == pytest.approx(1.0, abs=2 * tail + len(releases) * 2.0**-52)


def test_a_base_of_two_thousand_millions_takes_no_memory():
    part = RoundingSpec(2**31, "random")
    assert part.releases(3, 2**31 + 1, tail=0.5).tolist() == [0, 2**31, 2**32]


@pytest.mark.parametrize("part", [SuppressedCounts(), SimulationOnly()])
def test_where_there_is_only_simulation_there_is_no_probability(part):
    assert part.probability([1, 2], 3) is None
    assert part.releases(2, 4, tail=0.1).tolist() == [2, 3, 4]
    with pytest.raises(ShapeError, match="released"):
        part.probability([1, 2], [1, 2, 3])


@pytest.mark.parametrize(
    ("others", "tables", "expected"),
    [
        (TrueCounts(), {}, True),
        (SuppressedCounts(), {("block", "a"): TrueCounts()}, True),
        (SimulationOnly(), {("block", "a"): TrueCounts()}, False),
        (TrueCounts(), {("block", "a"): RoundingSpec(1, "nearest")}, True),
        (TrueCounts(), {("block", "a"): RoundingSpec(2, "nearest")}, False),
        (NoiseSpec("discrete-laplace", 1), {}, False),
    ],
)
def test_counts_are_true_only_if_those_of_every_table_are(others, tables, expected):
    assert MechanismSpec("m", {}, tables, others).true_counts is expected


def test_the_spec_of_a_release_names_every_published_table(released, tmp_path):
    spec = MechanismSpec("m", {}, {("block", "sex"): TrueCounts()}, RoundingSpec(3, "random"))
    made = Release(spec, released.tables)
    assert set(made.spec.tables) == set(released.tables.counts)
    assert made.spec.likelihood("block", "ages") == RoundingSpec(3, "random")
    assert made.spec.invariants == (("block", "sex"),)
    made.write(tmp_path / "out")
    assert Release.read(tmp_path / "out") == made
    document = json.loads((tmp_path / "out" / "_release.json").read_text())
    rows = {(row["level"], row["table"]): row for row in document["spec"]["tables"]}
    assert rows["county", "sex"]["likelihood"] == "rounding"
    assert rows["county", "sex"]["base"] == 3


@given(st.integers(1, 12), st.integers(0, 60), st.sampled_from(["nearest", "random"]))
def test_rounding_probabilities(base, count, method):
    released = np.arange(-base, 60 + 2 * base)
    pmf = RoundingSpec(base, method).probability(released, count)
    assert pmf.sum() == pytest.approx(1.0, abs=1e-15)
    assert set(released[pmf > 0] % base) == {0}
    assert np.abs(released[pmf > 0] - count).max() < max(base, 2)
    if method == "random":
        assert pmf @ released == pytest.approx(count, abs=1e-12)
    else:
        best = np.abs(released - count)[released % base == 0].min()
        assert abs(released[pmf > 0][0] - count) == best


@pytest.fixture(scope="module")
def released():
    mechanism = make_mechanism(
        "discrete-gaussian", rho="1", level_shares={"county": "1/2", "block": "1/2"},
        table_shares={"sex": "2/3", "ages": "1/3"}, sensitivity="add-remove", overlap={"sex": 2},
    )  # fmt: skip
    workload = people_workload(SEX, AGES, levels=("county", "block"))
    return mechanism.release(population(0), workload=workload, rng=5)


def test_a_release_survives_the_disk(released, tmp_path):
    folder = tmp_path / "out"
    assert released.write(folder) == folder
    assert Release.read(folder) == released
    assert not [p for p in tmp_path.iterdir() if p != folder]


def test_the_folder_holds_no_seed_and_no_truth(released, tmp_path):
    released.write(tmp_path / "out")
    document = json.loads((tmp_path / "out" / "_release.json").read_text())
    assert set(document) == {
        *("format", "version", "simulation", "spec", "diagnostics", "tables", "files", "seal")
    }
    assert "seed" not in json.dumps(document)
    rebuilt = make_mechanism(document["spec"]["mechanism"], **document["spec"]["parameters"])
    assert rebuilt.spec.noise == released.spec.noise


def test_nothing_is_written_over(released, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(OutputError, match="must be new or an empty folder"):
        released.write(tmp_path)
    with pytest.raises(OutputError, match="nothing was changed"):
        released.write(tmp_path / "mine.txt")
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_a_failed_write_leaves_nothing(released, tmp_path, monkeypatch):
    def fail(tables, folder, **how):
        raise OSError("disk full")

    monkeypatch.setattr(exchange, "fill", fail)
    with pytest.raises(OutputError, match="disk full"):
        released.write(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda d: d.pop("spec"), "'spec' is missing"),
        (lambda d: d.update(simulation="no"), "simulation must be True or False"),
        (lambda d: d.update(seed=1), "'seed' is unknown"),
        (lambda d: d.update(format=99), "format must be 4"),
        (lambda d: d["spec"]["tables"][0].update(scale="0"), "scale must be > 0"),
        (lambda d: d["spec"]["tables"].append(d["spec"]["tables"][0]), "there twice"),
        (lambda d: d["spec"]["tables"][0].update(table="none"), "is not released"),
        (lambda d: d["spec"]["others"].update(likelihood="normal"), "must be one of true-counts"),
        (lambda d: d["spec"]["others"].update(base=5), "'base' is unknown"),
        (lambda d: d["spec"]["tables"][0].pop("level"), "must name"),
        (lambda d: d["spec"]["tables"].append(7), "spec"),
        (lambda d: d.update(diagnostics={"rate": "many"}), "many"),
    ],
)
def test_bad_documents_are_refused(released, tmp_path, change, match):
    released.write(tmp_path / "out")
    file = tmp_path / "out" / "_release.json"
    document = json.loads(file.read_text())
    del document["seal"]  # as if written by hand
    change(document)
    file.write_text(json.dumps(document))
    with pytest.raises(DataError, match=match):
        Release.read(tmp_path / "out")


def test_a_release_of_format_3_is_read_as_the_migration_page_says(released, tmp_path):
    released.write(tmp_path / "out")
    file, manifest = tmp_path / "out" / "_release.json", tmp_path / "out" / "_manifest.json"
    said, listed = json.loads(file.read_text()), json.loads(manifest.read_text())
    for document, later in ((said, ("seal", "tables")), (listed, ("seal", "release"))):
        for key in later:
            del document[key]
    del said["spec"]["places"]
    file.write_text(json.dumps(said | {"format": 3}))
    manifest.write_text(json.dumps(listed))
    with pytest.raises(DataError, match="format must be 4, got 3"):
        Release.read(tmp_path / "out")
    spec = MechanismSpec.from_dict({**said["spec"], "places": released.spec.places})
    tables = PublishedTables.read(tmp_path / "out")
    again = Release(spec, tables, said["diagnostics"], simulation=said["simulation"])
    assert again == released
    again.write(tmp_path / "again")
    assert Release.read(tmp_path / "again") == released


def rounded(seed, base):
    workload = people_workload(TOTAL, levels=("county", "block"))
    mechanism = make_mechanism("rounding", base=base, method="random")
    return mechanism.release(population(seed), workload=workload, rng=seed)


@pytest.mark.parametrize(
    "copied",
    [
        ("_release.json",),
        ("_manifest.json",),
        ("part-00000.parquet",),
        ("part-00000.parquet", "_manifest.json"),
        ("part-00000.parquet", "_manifest.json", "_geographies.parquet"),
        ("_release.json", "_manifest.json"),
    ],
)
def test_files_of_two_releases_are_no_release(tmp_path, copied):
    """Of a weaker protection, or the same one of other records."""
    rounded(0, 2).write(tmp_path / "out")
    for other in (rounded(0, 50), rounded(1, 2)):
        other.write(tmp_path / "other", replace=True)
        rounded(0, 2).write(tmp_path / "out", replace=True)
        for name in copied:
            shutil.copy(tmp_path / "other" / name, tmp_path / "out" / name)
        with pytest.raises(DataError, match=r"_release\.json|part-00000\.parquet"):
            Release.read(tmp_path / "out")


def test_a_description_written_for_these_tables_is_not_theirs(tmp_path):
    """Its digest of the tables is put right; the tables name another description."""
    rounded(0, 2).write(tmp_path / "out")
    rounded(0, 50).write(tmp_path / "other")
    mine, theirs = (
        json.loads((tmp_path / name / "_release.json").read_text()) for name in ("out", "other")
    )
    theirs["tables"] = mine["tables"]
    del theirs["seal"]
    (tmp_path / "out" / "_release.json").write_text(json.dumps(theirs))
    with pytest.raises(DataError, match=r"is not the description that _manifest\.json names"):
        Release.read(tmp_path / "out")


def test_a_release_is_checked(released):
    with pytest.raises(ArgumentTypeError, match="spec"):
        Release("identity", released.tables)
    with pytest.raises(ArgumentTypeError, match="tables"):
        Release(released.spec, {})
    with pytest.raises(ArgumentError, match="must be finite"):
        Release(released.spec, released.tables, {"rate": float("inf")})


@pytest.mark.parametrize(
    ("recipe", "below"),
    [("discrete-gaussian:rho=0.01,overlap=2", True), ("swapping:rate=0.1", False)],
)
def test_who_receives_a_release_reads_that_counts_may_be_below_0(recipe, below, tmp_path):
    workload = people_workload(SEX, AGES, levels=("county", "block"))
    if recipe.startswith("swapping"):
        recipe += ',swap_key=["sex"],unique_by=["sex"],within=county,unique_within=county'
    release = make_mechanism(recipe).release(population(0), workload=workload, rng=5)
    assert below == any(counts.min() < 0 for counts in release.tables.counts.values())
    text = (release.write(tmp_path / "out") / "README.txt").read_text()
    assert ("below 0" in text) == below
    # Swapped records are counted as they are: blocks add up to counties.
    sums = {key: counts.sum(axis=0) for key, counts in release.tables.counts.items()}
    whole = [(total == sums["county", name]).all() for (_, name), total in sums.items()]
    assert all(whole) == ("need not add up" not in text)
    assert "{" not in text
