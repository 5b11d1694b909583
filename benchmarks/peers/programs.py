"""Records of blocks, and claims about them, by the integer programs that others have used."""

import json
import sys
from pathlib import Path

import numpy as np
from peers.comparison import Case, Comparison
from peers.worker import Worker
from test_claims import one_hot_case

from bayesrisk.reconstruction import reconstruct
from bayesrisk.reconstruction.records.problem import published_problem

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
from oracles.reconstruction import people, person_tables


class Blocks:
    """Blocks with one solution, each with a binary for every potential record of its tables."""

    def __init__(self, solved: int = 6) -> None:
        rng = np.random.default_rng(1)
        sizes = np.clip(rng.lognormal(1.6, 1.0, 400).astype(int), 1, 300)
        self.tables = person_tables(people(rng, sizes.tolist(), spread=0.15), tract=False)
        problem = published_problem(self.tables, scope="block")
        matrix = problem.system.queries.matrix.toarray()
        by_age = [
            at for at, (table, _) in enumerate(problem.system.queries.names) if table == "P12"
        ]
        self.result = reconstruct(self.tables, scope="block")
        unique = [b for b, status in enumerate(self.result.status) if status == "unique"]
        self.truth = self.result.histogram()
        self.cells = matrix.shape[1]
        self.programs = {}
        for b in unique[:solved]:
            counts = problem.published[[b]].toarray().ravel().astype(int)
            limits, bound = matrix[by_age], counts[by_age]
            live = np.flatnonzero(~limits[bound == 0].any(axis=0))
            most = [int(bound[limits[:, c] > 0].min()) for c in live]
            cell = np.repeat(live, most)
            rows = [
                (np.flatnonzero(row[cell]), row[cell], n)
                for row, n in zip(matrix, counts, strict=True)
            ]
            self.programs[b] = cell, rows

    def case(self, solve) -> Case:
        """``solve(number of binaries, rows)`` returns the values of the binaries."""

        def theirs():
            return {b: (cell, solve(cell.size, rows)) for b, (cell, rows) in self.programs.items()}

        for b, (cell, chosen) in theirs().items():
            found = np.bincount(cell[np.array(chosen) > 0.5], minlength=self.cells)
            assert np.array_equal(found, self.truth[[b]].toarray().ravel())
        return Case(
            lambda: reconstruct(self.tables, scope="block"),
            theirs,
            len(self.result.geoids),
            len(self.programs),
            rounds=3,
        )


def by_pulp(make):
    """Return a solver of such rows, with PuLP."""
    import pulp

    def solve(n, rows):
        program = pulp.LpProblem("records", pulp.LpMinimize)
        x = [program.add_variable(f"x{i}", 0, 1, cat="Integer") for i in range(n)]
        for at, weights, count in rows:
            terms = [(x[i], int(weights[i])) for i in at]
            program += pulp.LpAffineExpression(terms) == count
        program.solve(make())
        assert program.status == pulp.LpStatusOptimal
        return [variable.varValue for variable in x]

    return solve


def records_highs() -> Case:
    import pulp

    return Blocks().case(by_pulp(lambda: pulp.HiGHS(msg=False, threads=1)))


def records_cbc() -> Case:
    import pulp

    return Blocks().case(by_pulp(lambda: pulp.PULP_CBC_CMD(msg=False, threads=1)))


def records_cp_sat() -> Case:
    """OR-Tools and highspy bring libraries of one name: each has a process of its own."""
    blocks = Blocks()
    asked = [
        [cell.size, [[at.tolist(), weights[at].tolist(), int(n)] for at, weights, n in rows]]
        for cell, rows in blocks.programs.values()
    ]
    order = {id(rows): i for i, (_, rows) in enumerate(blocks.programs.values())}
    worker = Worker([sys.executable, "-m", "peers.cp_sat"], json.dumps(asked))
    return blocks.case(lambda n, rows: json.loads(worker.ask(str(order[id(rows)]))))


def claims_highs() -> Case:
    ours, theirs, found, decided = one_hot_case()
    return Case(ours, theirs, found, decided, rounds=1)


RECORDS = "Records of blocks from their 2010 tables of persons"
PROGRAM = (
    "a binary for each potential record; the program stops at one solution, ours also says whether"
    " there is another. The six blocks are the first with one solution; ours does all 400"
)
ALL = [
    Comparison(
        RECORDS,
        "reconstruct",
        f"per-record binaries, {solver}",
        needs,
        "the same records in each block",
        PROGRAM,
        make,
    )
    for solver, needs, make in (
        ("PuLP with HiGHS", ("pulp", "highspy"), records_highs),
        ("PuLP with CBC", ("pulp",), records_cbc),
        ("OR-Tools CP-SAT", ("ortools",), records_cp_sat),
    )
]
ALL.append(
    Comparison(
        "Claims about households of a block, verified",
        "reconstruction.find_claims",
        "one-hot integer program, PuLP with HiGHS",
        ("pulp", "highspy"),
        "each claim that was asked is verified by both",
        "per claim; the program decides one claim that it is given, ours looks for all of them",
        claims_highs,
    )
)
