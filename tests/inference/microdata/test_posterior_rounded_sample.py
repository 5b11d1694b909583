"""The patients of the sample from tables rounded to the nearest 3: every question is answered."""

import itertools

import numpy as np
import pytest

import bayesrisk as br
from bayesrisk.inference import RecordPrior, RecordQuestion, microdata_posterior


@pytest.mark.slow
def test_ninety_questions_about_rounded_patients_are_decided_alike_by_two_seeds():
    folder = br.datasets.path("hospital")
    schema = br.Workload.read(folder / "tables.toml").schema
    names = tuple(attribute.name for attribute in schema.attributes)
    sets = [c for n in range(3) for c in itertools.combinations(names, n)]
    work = br.Workload.of(schema, sets)
    records = br.Records.read(folder / "records.csv", schema=schema)
    rounding = br.make_mechanism("rounding", base=3, method="nearest")
    release = rounding.release(records, workload=work, rng=1)
    cells = list(itertools.product(*(range(a.size) for a in schema.attributes)))
    assert (len(work.tables), len(cells)) == (7, 90)
    asked = [RecordQuestion({n: [c] for n, c in zip(names, cell, strict=True)}) for cell in cells]
    prior, level = RecordPrior.uniform_data_sets(schema), work.levels[-1]
    place = str(release.tables.geoids[level][0])
    one, two = (
        microdata_posterior(release, asked, level=level, place=place, prior=prior, rng=seed).answers
        for seed in (1, 2)
    )
    assert not (one["status"] == "undecided").any()
    assert not (two["status"] == "undecided").any()
    error = np.hypot(one["error"], two["error"]).to_numpy()
    far = np.abs(one["posterior"] - two["posterior"]).to_numpy()
    assert (far <= 5 * error + 1e-12).all()
    # Each draw keeps the published total to within what its rounding allows.
    assert 59 - 1e-9 <= one["posterior"].sum() <= 61 + 1e-9
