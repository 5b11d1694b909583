"""What hostile calls did before: each cause once, by the argument that the error names now."""

import numpy as np
import pandas as pd
import pytest
from fuzz.corpus import P1, people

import bayesrisk as br
from bayesrisk import experiments, mechanisms, readers, risk
from bayesrisk.accounting.budget import exact_number
from bayesrisk.experiments.reidentification import write_reidentification
from bayesrisk.readers.text.tables import state_code

FRAME = pd.DataFrame({"levels": [2, 1], "prior": 0.3, "marginal_posterior": 0.4}).assign(
    marginal_risk=1.2
)
TREE = br.Tree.from_frame(
    pd.DataFrame({"node": ["g"], "parent": [""], "noisy_count": [3], "rho": [0.1]})
)
LONG = "9" * 100_000
ARRAY = np.ma.masked_array([1, 2, 3], mask=[0, 1, 0])


def sample(**changes):
    return br.sample_tree(
        TREE, **{"leaf_prior": "flat", "rng": 1, "draws": 4, "warmup": 1, "chains": 1} | changes
    )


def linked(**changes):
    given = {"attackers": {"a": "known.csv"}, "truth": "truth.csv", "seed": 1} | changes
    return write_reidentification("records", given.pop("output", "out"), **given)


def measured(**changes):
    given = {"measurements": "nmf", "prior": 0.5} | changes
    how = {name: given.pop(name) for name in ("folder", "progress") if name in given}
    return experiments.run(experiments.MeasurementsStudy(**given), **({"folder": "risk"} | how))


def write_records(records):
    return readers.write_record_form(records, "a.csv", dialect="schema")


#: What the message must name, and the call.
CALLS = {
    # Readers and writers.
    "path of a reader": ("path", lambda: readers.read_ppmf([None])),
    "path too long": (f"{LONG}: cannot", lambda: list(readers.iter_record_form(LONG))),
    "ddi": ("ddi", lambda: list(readers.iter_ipums_1940("a.dat", ddi=range(3)))),
    "codebook": ("codebook", lambda: readers.read_nhgis("a.csv", workload=P1, codebook=1)),
    "state": ("state", lambda: state_code(ARRAY)),
    "path with a zero": ("path", lambda: readers.write_ppmf(people(), "a\0b", vintage="2020")),
    "records of a writer": ("records", lambda: write_records(np.array(1))),
    "widths without a level": (
        "widths", lambda: readers.spine_ancestor(["0"], "County", widths={})),
    # Studies.
    "folder": ("folder", lambda: measured(folder=1j)),
    "level": ("level", lambda: measured(level=np.ones(2))),
    "query": ("query", lambda: measured(query=pd.NaT)),
    "output of a report": ("output", lambda: linked(output=[])),
    # Microdata.
    "blocks that are no codes": ("zero_variability_blocks", lambda: br.reidentify(
        {"a": FRAME}, {"a": FRAME}, truth=FRAME, baseline_from="a", rng=1,
        zero_variability_blocks=[[[]]])),
    # Audits.
    # Numbers, and what they are made of.
    "noise of many": ("noise", lambda: br.inference.count_posterior(
        1, noise=br.DiscreteGaussian(np.array([1.0, 2.0])), prior_pmf=[0.2, 0.3, 0.5])),
    "a name that is no text": (
        "name", lambda: mechanisms.register_mechanism("\ud800", br.Identity)),
    "sensitivity of a tree": (
        "sensitivity",
        lambda: br.Tree.from_frame(pd.DataFrame({"node": ["g"], "parent": "", "rho": 0.1}).assign(
            noisy_count=1), sensitivity=1e308),
    ),
    "name of a number": ("name", lambda: exact_number("x", name=["a"])),
    "source of records": ("source", lambda: br.Records.from_frame(
        people().to_frame(), schema=people().schema, source=[[]])),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_what_is_refused_is_named(name):
    argument, call = CALLS[name]
    with pytest.raises(br.BayesRiskError) as caught:
        call()
    assert argument in str(caught.value)


def test_what_stands_for_zero_and_true_is_used_as_such(tmp_path):
    """A cell given as a float, and a flag of NumPy."""
    folder = readers.write_nmf(tmp_path / "US_Person_PL_PROD", rng=1).folder
    first, same = (
        experiments.measurement_posterior(folder, unit="057", cell=cell) for cell in (0, -0.0)
    )
    np.testing.assert_array_equal(first.mean, same.mean)
    grown = pd.DataFrame({"block": ["010010201001000"], "age": 30, "race": 1, "hisp": 0})
    expected = risk.race_ethnicity_counts(grown, adults=True)
    pd.testing.assert_frame_equal(
        risk.race_ethnicity_counts(grown, adults=np.bool_(True)), expected
    )
