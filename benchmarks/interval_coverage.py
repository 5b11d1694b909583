"""How often 95 % intervals hold a rate that falls with the size of the block, as uniqueness does.

``python benchmarks/interval_coverage.py [ROUNDS]`` writes the table of the documentation.
"""

import csv
import sys
import warnings
from pathlib import Path

import numpy as np

from bayesrisk.exceptions import SampleWarning
from bayesrisk.risk import stratified_rates
from bayesrisk.risk.intervals import block_moments, group_sums, moment_intervals

TABLE = Path(__file__).parents[1] / "docs/explanation/attacks/interval-coverage.csv"
BLOCKS = 450
#: Exponent of the Pareto law of sizes, and people after which the rate has fallen to 1 / e.
LAWS = {"few large blocks": (1.3, 80.0), "more large blocks": (1.0, 60.0)}
LARGEST = (1083, 700, 400, 250, 148)


def frame(law, largest, rng):
    """Return people and hits of the blocks of a frame."""
    power, scale = LAWS[law]
    u = (np.arange(BLOCKS) + 0.5) / BLOCKS
    people = (4.0**-power - u * (4.0**-power - float(largest) ** -power)) ** (-1 / power)
    people = np.append(np.rint(people[:-1]), largest).astype(np.int64)
    rate = np.clip(np.exp(-people / scale), 1e-3, 1 - 1e-3)
    return people, rng.binomial(people, rng.beta(8 * rate, 8 * (1 - rate)))


def at_random(people, rng, blocks=45):
    """Return a simple random sample of blocks."""
    return rng.choice(people.size, blocks, replace=False)


def by_class(people, rng, least=10):
    """Return as many blocks of each doubling of sizes from 8 people on, or all there are."""
    kind = np.maximum(np.floor(np.log2(people)), 2)
    groups = [np.flatnonzero(kind == one) for one in np.unique(kind)]
    return np.concatenate([rng.choice(g, min(g.size, least), replace=False) for g in groups])


def coverage(law, largest, design, rounds, seed=1):
    """Return how often intervals hold the rate of the frame: without, and with, its sizes.

    Then how often those with the sizes lie above it, and below it, and the blocks of a sample.
    """
    rng = np.random.default_rng([seed, largest])
    people, hits = frame(law, largest, rng)
    truth = hits.sum() / people.sum()
    alone, within, above = 0, 0, 0
    for _ in range(rounds):
        chosen = design(people, rng)
        y, n = hits[chosen], people[chosen]
        sums = group_sums(block_moments(y, n), np.zeros(n.size, int), 1)
        low, high = moment_intervals(sums, confidence=0.95)
        alone += bool(low[0] <= truth <= high[0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SampleWarning)
            found = stratified_rates(y, n, n, frame_sizes=people).iloc[-1]
        within += bool(found["lower"] <= truth <= found["upper"])
        above += bool(found["lower"] > truth)
    return alone / rounds, within / rounds, above / rounds, 1 - (within + above) / rounds, n.size


def main():
    """Write the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    heads = ["Sizes", "Largest block", "Sample", "Blocks alone", "With the sizes of the frame"]
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*heads, "of which above", "and below"])
        for design in (at_random, by_class):
            for law in LAWS:
                for largest in LARGEST:
                    *shares, size = coverage(law, largest, design, rounds)
                    words = "at random" if design is at_random else "ten of each class, or all"
                    row = [law, f"{largest:,}", f"{size}, {words}"]
                    table.writerow([*row, *(f"{100 * share:.1f} %" for share in shares)])


if __name__ == "__main__":
    main()
