"""What contradicts itself or the data: said by name, and never a belief of its own."""

import numpy as np
import pandas as pd
import pytest
from audits import SCHEMA, WORKLOAD

from bayesrisk.exceptions import DataError
from bayesrisk.inference import RecordPrior
from bayesrisk.inference.microdata.posterior import record_law
from bayesrisk.inference.microdata.system import make_system
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.release import MechanismSpec, Release, TrueCounts
from bayesrisk.risk.audit import Adversary, AuditedPopulation, AuditQuestion
from bayesrisk.risk.audit.adversaries import TargetQuestion
from bayesrisk.risk.audit.place_beliefs import AuditTarget, PlaceReading, infer
from bayesrisk.risk.audit.population import mean_errors
from bayesrisk.risk.audit.reading import Reading
from bayesrisk.tables import PublishedTables, Records

WOMEN = np.array([0, 0, 0, 0.5, 0.3, 0.2])
ANYBODY = np.full(6, 1 / 6)


def released(sexes, races):
    counts = {("block", "S"): np.array([sexes]), ("block", "R"): np.array([races])}
    tables = PublishedTables(WORKLOAD, {"block": ["100"]}, counts)
    return Release(MechanismSpec("by hand", {}, others=TrueCounts()).for_tables(counts), tables)


CASES = [
    (released([2, 1], [1, 1, 1]), WOMEN, "block 100 S m is 2, and other counts make it 0"),
    (released([2, 2], [1, 1, 1]), ANYBODY, "block 100 S f is 2, and other counts make it 1"),
]


@pytest.mark.parametrize(("release", "shares", "words"), CASES, ids=["prior", "tables"])
def test_a_release_that_cannot_be_is_refused_and_leaves_the_prior(release, shares, words):
    """A prior that forbids what was released, and tables that contradict each other."""
    prior = RecordPrior(SCHEMA, shares, 2.0)
    with pytest.raises(DataError, match=f"contradicts itself or the prior: {words}"):
        record_law(make_system(release, level="block", place="100", prior=prior), rng=1)
    place = PlaceReading(Reading("likelihood", release), "block", "100", prior, True, None, (1,))
    asked = TargetQuestion(np.ones(6, bool), np.tile(np.arange(3), 2), 3)
    (told,) = infer(place, [AuditTarget(3, 3, asked, np.array([], np.int64), False)])
    assert (told.status, told.engine) == ("unstated", "none")
    for belief in (told.prior, told.without, told.posterior):
        np.testing.assert_allclose(belief.probability, asked.sums(shares))


def population(blocks=("100", "100", "101"), **options):
    frame = pd.DataFrame({"sex": [0, 1, 0], "race": [0, 1, 2], "block": list(blocks)})
    question = AuditQuestion(WORKLOAD, ("race",), (Adversary.named("outsider"),), **options)
    return AuditedPopulation(Records.from_frame(frame, schema=SCHEMA), question, seed=1)


def test_one_place_alone_is_uniform_on_histograms():
    """Nothing can be fitted to it: one place is the most probable if its people are unlike."""
    assert population(("100",) * 3).concentration == SCHEMA.size
    prior = population(("100",) * 3).prior(0)
    uniform = RecordPrior(SCHEMA, concentration=float(SCHEMA.size))
    assert prior.concentration == uniform.concentration
    np.testing.assert_allclose(prior.shares_of_cells, uniform.shares_of_cells)
    assert population(("100",) * 3, concentration=2.5).concentration == 2.5
    assert population().concentration != SCHEMA.size


def test_withheld_counts_cost_what_a_reader_loses():
    """The best value of a withheld count is the middle of what the rule withholds, 1 to 2 here."""
    of = population()
    release = of.release("p", 0, make_mechanism("suppression", threshold=3))
    errors = mean_errors(of.error_sums(release)).set_index("table")
    assert (errors["withheld"] > 0).all()
    assert not errors["mean_squared_error"].any()  # of what was published
    for name in ("S", "R"):
        withheld = release.tables.hidden("block", name).toarray()
        truth = of.truth.counts["block", name].toarray()
        lost = np.abs(truth[withheld] - 1.5).sum() / truth.size
        assert errors.loc[name, "error"] == pytest.approx(lost)
        assert lost > 0
    noisy = of.release("p", 0, make_mechanism("rounding", base=3, method="nearest"))
    off = np.abs((noisy.tables.counts["block", "R"] - of.truth.counts["block", "R"]).toarray())
    assert mean_errors(of.error_sums(noisy)).set_index("table").loc["R", "error"] == pytest.approx(
        off.mean()
    )
    exact = of.release("p", 0, make_mechanism("identity"))
    assert not mean_errors(of.error_sums(exact))["error"].any()
