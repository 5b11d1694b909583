"""A process with OR-Tools in it: problems on the first line, then numbers of those to solve."""

import json
import sys

from ortools.sat.python import cp_model


def solve(n: int, rows: list) -> list[int]:
    """Return n binaries for which every row (positions, weights, count) holds."""
    model = cp_model.CpModel()
    x = [model.new_bool_var(f"x{i}") for i in range(n)]
    for at, weights, count in rows:
        model.add(cp_model.LinearExpr.weighted_sum([x[i] for i in at], weights) == count)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return [int(solver.value(variable)) for variable in x]


if __name__ == "__main__":
    problems = json.loads(sys.stdin.readline())
    for line in sys.stdin:
        print(json.dumps(solve(*problems[int(line)])), flush=True)
