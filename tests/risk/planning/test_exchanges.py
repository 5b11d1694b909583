"""Moves of records are witnesses: each data set that they make keeps all published ends."""

import numpy as np
import pytest

from bayesrisk.risk.planning.fits import LeakQuestion, PlaceFits, Variant
from bayesrisk.tables import Attribute, Geography, Schema, Workload

SCHEMA = Schema(
    "small", (Attribute("a", 3), Attribute("b", 2)), Geography("g", ("town", "block"), (1, 2))
)
WORK = Workload.of(SCHEMA, [(), ("a",), ("b",), ("a", "b")], levels=["town", "block"])


def town(seed, blocks=6):
    """Return the data sets of a town, the ends of its counts, and the weights of the unknowns."""
    rng = np.random.default_rng(seed)
    base = rng.poisson(1.0, size=(blocks, SCHEMA.size))
    variants = [
        Variant.make(k[0], t, SCHEMA, np.arange(SCHEMA.size)) for k, t in WORK.tables.items()
    ]
    parents = {"town": np.zeros(blocks, np.int64), "block": np.arange(blocks)}
    fits = PlaceFits(variants, parents, base)
    above = {"town": np.ones((1, blocks), np.int64), "block": np.eye(blocks, dtype=np.int64)}
    matrix = np.vstack([np.kron(above[v.level], v.weights.toarray()) for v in variants])
    counts = matrix @ base.ravel()
    number = np.repeat(np.arange(len(variants)), np.diff(fits.start))
    # Each table is true, rounded to a base, or not published.
    widths = rng.choice([1, 3, 5, 10**6], size=len(variants))[number]
    low = np.where(widths > 5, 0, (counts + widths // 2) // widths * widths - widths // 2)
    high = np.where(widths > 5, 2**52, low + widths - 1)
    return fits, np.maximum(low, 0), high, matrix, counts


@pytest.mark.parametrize("seed", range(30))
def test_every_data_set_that_is_kept_fits_and_shows_what_is_said(seed):
    fits, low, high, matrix, counts = town(seed)
    small = np.flatnonzero(np.isin(counts, (1, 2)))
    question = LeakQuestion(small, 0, 0, 0, 0, in_full=True)
    recovered, sentences, proved = fits.leaks(low, high, question)
    least, most, fewest = counts.copy(), counts.copy(), fits.base.copy()
    for change in fits.changes:
        records = fits.base.copy()
        np.add.at(records, (change[:, 0], change[:, 1]), change[:, 2])
        assert (records >= 0).all()
        made = matrix @ records.ravel()
        assert ((low <= made) & (made <= high)).all()
        least, most = np.minimum(least, made), np.maximum(most, made)
        fewest = np.minimum(fewest, records)
    # What is not shown by them is at most what is called proved, or left open.
    assert recovered.most == (least == most)[small].sum()
    assert sentences.most == (least > 0)[small].sum()
    assert proved.most == fewest.sum()
    # The same data sets answer again.
    assert fits.leaks(low, high, question) == (recovered, sentences, proved)


def test_a_quick_look_proves_no_more_than_a_full_one():
    fewer = 0
    for seed in range(20):
        fits, low, high, _, counts = town(seed)
        small = np.flatnonzero(np.isin(counts, (1, 2)))
        question = LeakQuestion(small, 0, 0, None, None)
        if fits.leaks(low, high, question)[0].least == 0:
            continue
        quick = fits.leaks(low, high, question._replace(quick=True))[0].least
        full = fits.leaks(low, high, question._replace(in_full=True))[0].least
        assert 0 < quick <= full
        fewer += quick < full
    assert fewer
