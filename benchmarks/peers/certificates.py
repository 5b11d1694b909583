"""What 100 small blocks prove, sentence by sentence, by a solver of satisfiability."""

import numpy as np
from oracles.proofs import goals_of, weights_of
from peers.comparison import Case, Comparison
from proof_cases import BLOCK_KINDS, answered

from bayesrisk.reconstruction import count_bounds

EACH = 10


class Sentences:
    """Counts of a certificate or of a block over kinds of records, for the solver."""

    def __init__(self, rows, ends) -> None:
        from z3 import Int, Solver

        self.solver = Solver()
        self.unknown = [Int(f"x{at}") for at in range(rows.shape[1])]
        self.solver.add([x >= 0 for x in self.unknown])
        for row, (low, high) in zip(rows, ends, strict=True):
            self.solver.add(self.within(row, low, high))

    def within(self, row, low, high) -> list:
        """Return what says that a count is between two ends, None where there is none."""
        from z3 import IntVal, Sum

        terms = [int(w) * x for w, x in zip(row, self.unknown, strict=True) if w]
        count = Sum([IntVal(0), *terms])
        least = [] if low is None else [count >= low]
        return least + ([] if high is None else [count <= high])

    def possible(self, row, low, high) -> bool:
        """Return whether some records have such a count, which the solver must decide."""
        from z3 import sat, unsat

        answer = self.solver.check(*self.within(row, low, high))
        assert answer in (sat, unsat)
        return answer == sat


def opposites(certificate) -> list[bool]:
    """Return for each opposite of a sentence whether records fit it and the counts."""
    assumed = ({**part, "low": 0, "high": 0} for part in certificate["assumed"])
    counts = [*certificate["counts"], *assumed]
    rows = weights_of(counts, certificate)
    system = Sentences(rows, [(count["low"], count["high"]) for count in counts])
    # Where nothing is possible, the opposite is that some records fit.
    goals = [goal or (np.zeros(rows.shape[1], int), None, None)
             for goal in goals_of(certificate).values()]  # fmt: skip
    return [system.possible(*goal) for goal in goals]


def block_rows(tables, known_rule):
    """Return the weights of all published counts of a block of one level, and their ends."""
    rows, ends = [], []
    for (level, name), table in tables.workload.tables.items():
        low, high = tables.support(level, name, np.array([0]), known_rule=known_rule)
        for at in range(len(table.cells)):
            row = np.ones(1, dtype=int)
            for about in tables.workload.schema.attributes:
                weights = table.factors.get(about.name)
                one = np.ones(about.size, dtype=int) if weights is None else weights[at]
                row = np.outer(row, one).ravel()
            rows.append(row)
            most = int(high[0, at])
            ends.append((int(low[0, at]), None if most >= 2**52 else most))
    return np.array(rows), ends


def both_ways(kind, seed, tables) -> int:
    """Return how many counts are not certain; both of their ends must be possible."""
    rule = not (kind == "withheld" and seed % 2)
    rows, ends = block_rows(tables, rule)
    bounds, open_counts = count_bounds(tables, known_rule=rule).counts, 0
    if (bounds["status"] == "infeasible").any():
        return 0
    system = Sentences(rows, ends)
    ends = bounds[["low", "high"]].astype("Int64").fillna(2**52).to_numpy(np.int64).tolist()
    for row, (least, most) in zip(rows, ends, strict=True):
        if least < most:
            open_counts += 1
            assert system.possible(row, None, least)
            assert system.possible(row, least + 1, None)
    return open_counts


def proofs_z3() -> Case:
    import z3

    z3.set_param("smt.random_seed", 1)
    places = [(kind, seed) for kind in BLOCK_KINDS for seed in range(EACH)]
    found, open_counts = [], 0
    for kind, seed in places:
        tables, answers = answered(kind, seed)
        made = [c for proofs in answers for c in proofs.certificates]
        assert all(made)
        found += made
        if kind not in ("two levels", "as if true"):
            open_counts += both_ways(kind, seed, tables)
    for certificate in found:
        assert not any(opposites(certificate))
    assert open_counts >= EACH
    print(f"  {len(found)} sentences; {open_counts} counts are possible both ways")
    return Case(
        lambda: [answered(kind, seed) for kind, seed in places],
        lambda: [opposites(certificate) for certificate in found],
        len(found), len(found), rounds=3,
    )  # fmt: skip


ALL = [
    Comparison(
        "What the counts of 100 small blocks prove, time for each sentence",
        "reconstruction.prove",
        "Z3, `Solver.check`",
        ("z3-solver",),
        "the opposite of every sentence contradicts its counts; of every count that is not certain"
        " both a smaller and a larger value are possible",
        "ours finds the sentences and makes a certificate of each; Z3 is told each sentence and"
        " answers yes or no. Ten blocks of each of ten kinds, exact, coarsened, combined or noisy",
        proofs_z3,
    )
]
