"""What the writer writes: true counts recounted, exact noise, budgets handed up, same bytes."""

import functools
import hashlib
import json
import zipfile
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from oracles.noisy_measurements import frame_of, pmf, recount, values_of, variance
from scipy import stats

import bayesrisk as br
from bayesrisk import ArgumentError, datasets as samples
from bayesrisk.census.readers.geocodes import SPINE_WIDTHS
from bayesrisk.exceptions import OutputError

BUDGET = br.accounting.census_2020_budget("pl94")
LEVELS = ("US", "State", "County", "Tract", "Block_Group", "Block")
WIDTH = dict(SPINE_WIDTHS)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return br.census.write_nmf(tmp_path_factory.mktemp("nmf") / "US_Person_PL_PROD", rng=21)


def rho_of(level, query):
    row = BUDGET[(BUDGET["level"] == level) & (BUDGET["query"] == query)]
    return row.rho.item() if len(row) else Fraction(0)


def handed(sample, level, code, query):
    """Return the budget of a unit by going down from it: the rule, unit by unit."""
    codes = [str(c) for c in sample.geocodes[level]]
    place = LEVELS.index(level)
    if place and sum(c[: WIDTH[LEVELS[place - 1]]] == code[: WIDTH[LEVELS[place - 1]]]
                     for c in codes) == 1:  # fmt: skip
        return Fraction(0)
    return received(sample, level, code, query)


def received(sample, level, code, query):
    total = rho_of(level, query)
    if level == "Block":
        return total
    below = LEVELS[LEVELS.index(level) + 1]
    children = [str(c) for c in sample.geocodes[below] if str(c)[: WIDTH[level]] == code]
    if level == "US":
        children = sample.geocodes[below].tolist()
    return total + (received(sample, below, children[0], query) if len(children) == 1 else 0)


@pytest.mark.parametrize("level", LEVELS)
def test_budgets_go_up_from_only_children(sample, level):
    for query in ("total", "detailed", "hispanic * cenrace"):
        codes = sample.geocodes[level].tolist()
        expected = [handed(sample, level, code, query) for code in codes]
        assert sample.rho[level, query].tolist() == expected
        rows = values_of(sample.folder, level, query)
        assert sorted(rows) == [c for c, rho in zip(codes, expected, strict=True) if rho]
        for code, rho in zip(codes, expected, strict=True):
            if rho:
                assert rows[code][1] == np.float32(variance(float(1 / rho)))
    if level == "Block":
        # Nothing is spent twice and nothing is lost, from any block up to the nation.
        known = functools.cache(lambda unit, code: handed(sample, unit, code, "detailed"))
        for block in codes:
            path = [block[: WIDTH[x]] if x != "US" else "0" for x in LEVELS]
            spent = sum(map(known, LEVELS, path))
            assert spent == sum(rho_of(x, "detailed") for x in LEVELS)


def test_counts_add_up_and_answers_are_the_counts_of_the_cells(sample):
    for upper, lower in pairwise(LEVELS):
        for code, counts in zip(sample.geocodes[upper], sample.counts[upper], strict=True):
            width = WIDTH[upper]
            mine = [str(c)[:width] == str(code)[:width] for c in sample.geocodes[lower]]
            np.testing.assert_array_equal(counts, sample.counts[lower][mine].sum(axis=0))
    from bayesrisk.census.readers.nmf.rows import UNIVERSES
    from bayesrisk.census.readers.nmf.writer import answer_query

    for query in BUDGET["query"].unique():
        ours, shape = answer_query(sample.counts["Tract"], UNIVERSES["pl94-person"], query)
        assert ours.shape[1] == np.prod(shape)
        for row, counts in zip(ours[:3], sample.counts["Tract"][:3], strict=True):
            assert row.tolist() == recount(counts, query)


def chi_square(noise, sigma2):
    """Return the p-value of noise against the exact law, tails pooled at 50 expected."""
    reach = 1
    while noise.size * pmf(reach + 1, sigma2) > 50:
        reach += 1
    edge = np.clip(noise, -reach, reach)
    observed = np.bincount(edge + reach, minlength=2 * reach + 1)
    inner = pmf(np.arange(-reach + 1, reach), sigma2)
    tail = (1.0 - inner.sum()) / 2.0
    return stats.chisquare(observed, noise.size * np.array([tail, *inner, tail])).pvalue


@pytest.mark.parametrize(("level", "query"), [("Block", "detailed"), ("Tract", "detailed"),
                                              ("Block_Group", "detailed")])  # fmt: skip
def test_noise_follows_the_exact_law(sample, level, query):
    by_scale, rows = {}, values_of(sample.folder, level, query)
    for code, counts, rho in zip(
        sample.geocodes[level].tolist(), sample.counts[level], sample.rho[level, query], strict=True
    ):
        if rho:
            values = np.array(rows[code][0])
            by_scale.setdefault(float(1 / rho), []).append(values - recount(counts, query))
    for sigma2, noise in by_scale.items():
        noise = np.concatenate(noise)
        assert chi_square(noise, sigma2) > 1e-3
        if noise.size > 20_000:  # the test can fail: a tenth more noise, or one too many
            assert chi_square(noise, 1.1 * sigma2) < 1e-6
            assert chi_square(noise + 1, sigma2) < 1e-6


def digests(folder):
    files = sorted(f for f in folder.rglob("*") if f.is_file())
    return {str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).digest() for f in files}


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    small = {"states": ["057", "157"], "counties": 1, "tracts": (1, 2)}
    folders = [br.census.write_nmf(tmp_path / f"{i}", rng=seed, **small).folder for i, seed in
               enumerate([4, np.random.default_rng(4), 5])]  # fmt: skip
    first, same, other = map(digests, folders)
    assert first == same
    assert first != other


def test_noise_of_large_budgets_has_its_variance_in_the_file(tmp_path):
    budget = br.accounting.census_2020_budget("pl94", universe="unit", total_rho=200)
    sample = br.census.write_nmf(tmp_path / "unit", universe="unit", rng=3, budget=budget)
    sigma2 = float(1 / budget[budget["level"] == "Block_Group"].rho.item())
    assert sigma2 < 0.05
    frame = frame_of(sample.folder, "Block_Group")
    assert frame["variance"].max() == np.float32(variance(sigma2))
    for source in (
        br.census.NoisyMeasurements.open(sample.folder),
        br.census.NoisyMeasurements.open(sample.folder, budget=budget),
    ):
        found = [s for b in source.iter_values("Block_Group", "detailed") for s in b.sigma2]
        # Rounding of the variance shrinks: d log sigma2 = 2 sigma2 d log variance, about.
        assert max(found) == pytest.approx(sigma2, rel=2.0**-24)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"universe": "people"}, "universe must be one of person, unit"),
        ({"states": []}, "states must be different, at least one"),
        ({"states": ["57"]}, "states must be a tribal flag and two digits, got '57'"),
        ({"blocks": (1,)}, "blocks must be the least and the most"),
        ({"block_groups": (1, 10)}, "block_groups must be <= 9, got 10"),
        ({"budget": BUDGET[BUDGET["level"] != "Tract"]}, "budget must have the level 'Tract'"),
    ],
)
def test_bad_arguments(tmp_path, settings, text):
    with pytest.raises(ArgumentError) as caught:
        br.census.write_nmf(tmp_path / "new", **{"rng": 1, **settings})
    assert text in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="must be new or an empty folder"):
        br.census.write_nmf(tmp_path, rng=1)
    with pytest.raises(OutputError, match="cannot be written"):
        br.census.write_nmf(tmp_path / "file" / "nmf", rng=1)


def test_the_sample_that_ships(tmp_path):
    """It opens, fits its budget, and is what its recipe gives."""
    recipe = json.loads((samples.folder() / "catalogue.json").read_text(encoding="utf-8"))
    with zipfile.ZipFile(samples.path("noisy-measurements")) as archive:
        archive.extractall(tmp_path / "shipped")
    made = br.census.write_nmf(tmp_path / "made", **recipe["noisy-measurements"]["recipe"])
    shipped = tmp_path / "shipped" / "US_Person_PL_PROD"
    files = {f.relative_to(shipped) for f in shipped.rglob("part-*")}
    assert files == {f.relative_to(made.folder) for f in made.folder.rglob("part-*")}
    for level in LEVELS:
        for kind in ("DPQuery", "Constraint"):
            ours, theirs = (frame_of(f, level, kind) for f in (made.folder, shipped))
            assert list(ours) == list(theirs)
            for column in ours:
                plain = [[np.asarray(v).tolist() for v in f[column]] for f in (ours, theirs)]
                assert plain[0] == plain[1]
    source = br.census.NoisyMeasurements.open(shipped, budget=BUDGET)
    assert sum(b.values.size for b in source.iter_values("Block", "detailed")) > 80_000
