"""Vetted samplers: the law that they draw, what a release says of them, and no seed."""

import json
import math
from fractions import Fraction
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bayesrisk import Records, Release, Workload, make_mechanism
from bayesrisk._base import plugins
from bayesrisk.exceptions import ArgumentError, PluginError
from bayesrisk.mechanisms import samplers
from bayesrisk.mechanisms.samplers import REGISTRY, OpenDPSampler
from bayesrisk.release import NoiseSpec

pytest.importorskip("opendp")
OPENDP = f"opendp {version('opendp')}"
#: Draws come from entropy that nobody can repeat: one run of a million may fail by chance.
RARE = 1e-6
LAWS = [
    NoiseSpec("discrete-gaussian", Fraction(5039, 1000)),
    NoiseSpec("discrete-gaussian", Fraction(1, 3)),
    NoiseSpec("discrete-laplace", Fraction(7, 4)),
    NoiseSpec("discrete-laplace", Fraction(1, 2)),
]


def p_value(draws, law):
    """Return the chi-square p-value of draws against a law, cells of 5 expected draws or more."""
    pmf = law.to_law().pmf(np.arange(-200, 201)) * draws.size
    inside = np.flatnonzero(pmf >= 5.0)
    low, high = inside[0] - 200, inside[-1] - 200
    seen = np.bincount(np.clip(draws, low, high) - low, minlength=inside.size)
    expected = pmf[inside].copy()
    expected[0] += pmf[: inside[0]].sum()
    expected[-1] += pmf[inside[-1] + 1 :].sum()
    return stats.chisquare(seen, expected * draws.size / expected.sum()).pvalue


@pytest.mark.parametrize("law", LAWS)
def test_draws_have_the_stated_law(law):
    sampler = OpenDPSampler()
    stated = sampler.law(law)
    draws = sampler.draw(stated, 40_000)
    assert draws.dtype == np.int64
    assert draws.shape == (40_000,)
    assert p_value(draws, stated) > RARE
    wider = NoiseSpec(law.law, law.scale * Fraction(11, 10))
    assert p_value(draws, wider) < RARE  # the test can fail: a tenth more is seen
    # Tails beyond what the cells of the chi-square tell apart, and both signs alike.
    k = int(law.to_law().isf(1e-3))
    for beyond in (draws >= k, draws <= -k):
        p = stats.binomtest(int(beyond.sum()), draws.size, float(law.to_law().sf(k - 1)))
        assert p.pvalue > RARE
    signs = draws[draws != 0] > 0
    assert stats.binomtest(int(signs.sum()), signs.size, 0.5).pvalue > RARE


@pytest.mark.parametrize("law", [*LAWS, NoiseSpec("discrete-laplace", 3)])
def test_the_law_is_no_narrower_than_asked_and_by_one_double_at_most(law):
    stated = OpenDPSampler().law(law)
    assert stated.law == law.law
    assert law.scale <= stated.scale <= law.scale * (1 + Fraction(1, 2**50))
    assert OpenDPSampler().law(stated) == stated


def test_equal_laws_of_both_samplers():
    """Two samples of one law, drawn by either library, cannot be told apart."""
    law = OpenDPSampler().law(LAWS[0])
    theirs = OpenDPSampler().draw(law, 20_000)
    ours = law.to_law().rvs(20_000, random_state=np.random.default_rng())
    table = [np.bincount(np.clip(d, -8, 8) + 8, minlength=17) for d in (theirs, ours)]
    assert stats.chi2_contingency(table).pvalue > RARE
    shifted = [table[0], np.roll(table[1], 1)]
    assert stats.chi2_contingency(shifted).pvalue < RARE


def people():
    records = Records.from_frame(pd.DataFrame({"sex": list("FMF") * 40}))
    return records, Workload.of(records.schema, ["sex"])


BUDGETS = {"all": {"sex": "1/3"}}


@pytest.mark.parametrize("name", ["discrete-gaussian", "discrete-laplace"])
def test_a_release_says_who_drew(name, tmp_path):
    records, work = people()
    protection = make_mechanism(name, budgets=BUDGETS, sensitivity="add-remove", sampler="opendp")
    release = protection.release(records, workload=work)
    release.write(tmp_path / "out")
    said = json.loads((tmp_path / "out" / "_release.json").read_text(encoding="utf-8"))
    assert said["simulation"] is False
    assert said["spec"]["parameters"]["sampler"] == OPENDP
    read = Release.read(tmp_path / "out")
    assert read.spec.likelihood("all", "sex") == protection.spec.likelihood("all", "sex")
    again = make_mechanism(read.spec.mechanism, **read.spec.parameters)
    assert again.spec == protection.spec
    usual = make_mechanism(name, budgets=BUDGETS, sensitivity="add-remove")
    assert "sampler" not in usual.release(records, workload=work).spec.parameters


def test_a_seed_is_refused():
    records, work = people()
    recipe = {"budgets": BUDGETS, "sensitivity": "add-remove", "sampler": "opendp"}
    protection = make_mechanism("discrete-gaussian", **recipe)
    parts = {"mechanism": "discrete-gaussian", "parameters": recipe}
    both = make_mechanism("composition", releases={"a": parts, "b": "identity"})
    for made in (protection, both):
        with pytest.raises(ArgumentError, match=f"rng must be None with the sampler '{OPENDP}'"):
            made.release(records, workload=work, rng=1)
    with pytest.raises(ArgumentError, match="rng"):
        protection.prepare(records, workload=work).draw(np.random.default_rng(1))
    made = both.release(records, workload=work)
    assert made.simulation is False
    assert made.tables.counts["all", "b: sex"].toarray().tolist() == [[80, 40]]
    prepared = protection.prepare(records, workload=work)
    drawn = {str(prepared.draw().tables.count("all", "sex", "")) for _ in range(30)}
    assert len(drawn) > 5


class Coins:
    """A sampler of another package: the law of half the variance more, from the system's bits."""

    version = "2.1"

    def law(self, asked):
        return NoiseSpec(asked.law, asked.scale * Fraction(3, 2))

    def draw(self, law, size):
        return law.to_law().rvs(size, random_state=np.random.default_rng())


class Point:
    name = "coins"

    def load(self):
        return Coins


def test_another_package_may_bring_its_sampler(monkeypatch):
    monkeypatch.setattr(plugins, "entry_points", lambda **_: [Point()])
    records, work = people()
    recipe = {"budgets": BUDGETS, "sensitivity": "add-remove"}
    plain = make_mechanism("discrete-gaussian", **recipe)
    for stated in ("coins", "coins 1.0"):  # what is stated is the version that is installed
        protection = make_mechanism("discrete-gaussian", **recipe, sampler=stated)
        release = protection.release(records, workload=work)
        assert release.spec.parameters["sampler"] == "coins 2.1"
        assert release.simulation is False
        own, wider = (m.spec.noise["all", "sex"].scale for m in (plain, protection))
        assert wider == own * Fraction(3, 2)
        with pytest.raises(ArgumentError, match=r"rng must be None with the sampler 'coins 2\.1'"):
            protection.release(records, workload=work, rng=1)


@pytest.mark.parametrize(
    ("name", "recipe"),
    [
        ("topdown", {"rho": "1"}),
        ("bottom-up", {"rho": "1"}),
    ],
)
def test_other_mechanisms_refuse_a_sampler(name, recipe):
    with pytest.raises(ArgumentError, match="sampler"):
        make_mechanism(name, **recipe, sampler="opendp")


# Samplers that do not draw what they are asked for.

PEOPLE = Records.from_frame(pd.DataFrame({"age": [f"a{i % 150:03}" for i in range(450)]}))
ROOMY = Workload.of(PEOPLE.schema, ["age"])  # 150 cells, with three people each
WIDE = {"budgets": {"all": {"age": "1/50"}}, "sensitivity": "add-remove"}  # sigma2 = 25, b = 50


def drawn_by(law, draw, name="discrete-gaussian"):
    """Return the release of three people of each age, by such a sampler."""
    plug = type("Plug", (), {"version": "2.1", "law": law, "draw": draw, "__module__": __name__})
    REGISTRY._registered["plug"] = plug
    try:
        protection = make_mechanism(name, **WIDE, sampler="plug")
        return protection.release(PEOPLE, workload=ROOMY)
    finally:
        del REGISTRY._registered["plug"]


def as_asked(_, wanted):
    return wanted


def from_numpy(_, law, size):
    return law.to_law().rvs(size, random_state=np.random.default_rng(5))


def other_kind(_, wanted):
    names = {"discrete-gaussian": "discrete-laplace", "discrete-laplace": "discrete-gaussian"}
    return NoiseSpec(names[wanted.law], wanted.scale * 10)


@pytest.mark.parametrize("name", ["discrete-gaussian", "discrete-laplace"])
@pytest.mark.parametrize(
    "law",
    [
        lambda _, wanted: NoiseSpec(wanted.law, wanted.scale / 100),
        lambda _, wanted: NoiseSpec(wanted.law, wanted.scale * (1 - Fraction(1, 2**60))),
        other_kind,
        lambda _, wanted: wanted.to_law(),
        lambda *_: None,
    ],
)
def test_a_law_that_is_narrower_or_of_another_kind_is_refused(name, law):
    with pytest.raises(PluginError, match=r"sampler 'plug' failed: law\(\) must be discrete-"):
        drawn_by(law, from_numpy, name)
    wider = drawn_by(lambda _, wanted: NoiseSpec(wanted.law, wanted.scale * 2), from_numpy, name)
    assert wider.spec.likelihood("all", "age").scale == {"discrete-gaussian": 50}.get(name, 100)


def constant(value, dtype=np.int64):
    return lambda _, law, size: np.full(size, value, dtype)


@pytest.mark.parametrize(
    "draw",
    [
        constant(0), constant(1), constant(-7), constant(2**62), constant(-(2**63)),
        constant(0.5, float), constant(np.nan, float), constant(3, np.uint64), constant(1, bool),
        constant(1, object), constant("1", str),
        lambda *_: None, lambda _, law, size: [0] * size, lambda *_: iter(()),
        lambda _, law, size: np.zeros(size + 1, np.int64),
        lambda _, law, size: np.zeros((size, 1), np.int64),
        lambda _, law, size: np.int64(3),
        lambda *draw: np.ma.masked_array(from_numpy(*draw), mask=True),
        lambda _, law, size: (np.arange(size) - size // 2) * 20,  # wider, and no noise at all
        lambda *draw: np.abs(from_numpy(*draw)),
        lambda *draw: from_numpy(*draw) // 10,
        lambda *draw: from_numpy(*draw) * 20,
        lambda _, law, size: (np.arange(size) == 3) * 10**4,
        lambda *draw: draw[3],
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["discrete-gaussian", "discrete-laplace"])
def test_draws_that_are_none_of_the_law_are_refused(draw, name):
    with pytest.raises(PluginError, match="sampler 'plug' failed: "):
        drawn_by(as_asked, draw, name)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, ">i4"])
def test_whole_numbers_of_any_width_are_taken(dtype):
    made = drawn_by(as_asked, lambda *draw: from_numpy(*draw).astype(dtype))
    noise = made.tables.counts["all", "age"].toarray()[0] - 3
    assert noise.tolist() == from_numpy(None, NoiseSpec("discrete-gaussian", 25), 150).tolist()


@pytest.mark.parametrize("scale", ["1/1000", "1/3", 2, 10**3, 10**9, 10**15])
@pytest.mark.parametrize("law", ["discrete-gaussian", "discrete-laplace"])
def test_true_draws_are_taken(law, scale):
    """Of 2,000 releases of as many as 500 draws none is refused: each is at 1e-12 or less."""
    REGISTRY._registered["plug"] = type(
        "Plug",
        (),
        {
            "version": "1",
            "law": as_asked,
            "draw": lambda _, law, size: law.to_law().rvs(size, random_state=rng),
        },
    )
    rng, wanted = np.random.default_rng(8), NoiseSpec(law, Fraction(scale))
    checked = samplers.CheckedSampler("plug")
    del REGISTRY._registered["plug"]
    for size in (1, 2, 10, 500) * 50:
        draws = checked.draws()
        for part in (size, size, 0):
            assert draws.draw(wanted, part).size == part


def test_few_zeros_may_be_chance_and_many_may_not():
    """The most zeros that are taken: their probability by hand, p0 ** n, is not below 1e-12 / 9."""
    law = NoiseSpec("discrete-laplace", 2)
    share = math.tanh(0.25)  # P(0) = (1 - e) / (1 + e) with e = exp(-1 / b)
    REGISTRY._registered["plug"] = type(
        "Plug", (), {"version": "1", "law": as_asked, "draw": constant(0)}
    )
    checked = samplers.CheckedSampler("plug")
    del REGISTRY._registered["plug"]
    most = int(math.log(1e-12 / 9) / math.log(share))
    assert checked.draws().draw(law, most).size == most
    with pytest.raises(PluginError):
        checked.draws().draw(law, most + 1)
    several = checked.draws()  # a table after the other
    for _ in range(most):
        several.draw(law, 1)
    with pytest.raises(PluginError):
        several.draw(law, 1)
