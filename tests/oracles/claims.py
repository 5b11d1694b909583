"""Slow, obvious twins of the claims: every data set listed, and the published one-hot program."""

import itertools

import numpy as np
import pulp


def multisets(n_cells, n_records):
    """Return every way to put records into cells, (ways, cells)."""
    ways = []
    for chosen in itertools.combinations_with_replacement(range(n_cells), n_records):
        ways.append(np.bincount(np.array(chosen, dtype=int), minlength=n_cells))
    return np.array(ways, dtype=int)


def code_groups(schema, tables):
    """Return for each attribute the group of each code: codes with equal weights in all tables."""
    groups = {}
    for attribute in schema.attributes:
        seen = {}
        labels = []
        for code in range(attribute.size):
            key = tuple(
                int(table.factors[attribute.name][cell, code])
                for table in tables
                if attribute.name in table.factors
                for cell in range(len(table.cells))
            )
            labels.append(seen.setdefault(key, len(seen)))
        groups[attribute.name] = labels
    return groups


def weights_of(schema, tables, cells):
    """Return the weight of each cell in each published cell, by multiplying factors."""
    rows = []
    for table in tables:
        for q in range(len(table.cells)):
            row = []
            for cell in cells:
                index = np.unravel_index(cell, schema.shape)
                weight = 1
                for name, code in zip(schema.names, index, strict=True):
                    if name in table.factors:
                        weight *= int(table.factors[name][q, code])
                row.append(weight)
            rows.append(row)
    return np.array(rows, dtype=int)


def consistent(schema, tables, cells, counts, hidden, most):
    """Return all data sets of at most ``most`` records with the published counts."""
    weights = weights_of(schema, tables, cells)
    found = []
    for n in range(most + 1):
        ways = multisets(len(cells), n)
        fits = (ways @ weights.T == counts)[:, ~hidden].all(axis=1)
        found.extend(ways[fits])
    return np.array(found, dtype=int).reshape(-1, len(cells))


def true_claims(schema, tables, cells, data_sets, columns, most_columns):
    """Return {(group or None for each attribute): m} that hold in every data set, m >= 1."""
    groups = code_groups(schema, tables)
    index = np.array([np.unravel_index(c, schema.shape) for c in cells]).reshape(len(cells), -1)
    coded = np.array(
        [[groups[n][i] for n, i in zip(schema.names, row, strict=True)] for row in index]
    )
    options = []
    for a, name in enumerate(schema.names):
        values = sorted(set(coded[:, a])) if name in columns else []
        options.append([None, *values])
    found = {}
    for pattern in itertools.product(*options):
        used = [a for a, v in enumerate(pattern) if v is not None]
        if not 1 <= len(used) <= most_columns:
            continue
        match = np.all([coded[:, a] == pattern[a] for a in used], axis=0)
        counts = set((data_sets @ match).tolist())
        if len(counts) == 1 and min(counts) >= 1:
            found[pattern] = counts.pop()
    return found


class OneHotProgram:
    """Liu, Xiao, Thaker, Smith and Wu, equations 5 to 16, with PuLP.

    Equation 16 is printed with Y - 1; with 1 - Y it does what its explanation says.
    """

    def __init__(self, factors, sizes, counts, n_records, *, seed=0):
        """``factors``: for each published cell {attribute position: codes}; ``counts`` theirs."""
        self.sizes, self.n = sizes, n_records
        self.start = np.concatenate([[0], np.cumsum(sizes)])
        d = int(self.start[-1])
        self.problem = pulp.LpProblem("onehot", pulp.LpMaximize)
        self.x = [
            [self.problem.add_variable(f"x{i}_{j}", 0, 1, cat="Integer") for j in range(d)]
            for i in range(n_records)
        ]
        for row in self.x:
            for a in range(len(sizes)):
                self.problem += pulp.lpSum(row[self.start[a] : self.start[a + 1]]) == 1
        for q, (predicate, count) in enumerate(zip(factors, counts, strict=True)):
            w = [
                self.problem.add_variable(f"w{q}_{i}", 0, 1, cat="Integer")
                for i in range(n_records)
            ]
            for i, row in enumerate(self.x):
                z = [pulp.lpSum(row[self.start[a] + c] for c in codes) for a, codes in predicate]
                for part in z:
                    self.problem += w[i] <= part
                self.problem += w[i] >= pulp.lpSum(z) - (len(z) - 1)
            self.problem += pulp.lpSum(w) == int(count)
        hashes = np.random.default_rng(seed).integers(1, 1000, d)
        for before, after in itertools.pairwise(self.x):
            steps = zip(hashes.tolist(), before, after, strict=True)
            self.problem += pulp.lpSum(h * (b - a) for h, a, b in steps) >= 0

    def forbid(self, impossible):
        """Forbid codes: [(attribute position, code)]."""
        for row in self.x:
            for a, code in impossible:
                self.problem += row[self.start[a] + code] == 0

    def _records(self):
        parts = [slice(a, b) for a, b in itertools.pairwise(self.start)]
        chosen = [[int(np.argmax([v.varValue for v in row[p]])) for p in parts] for row in self.x]
        return np.array(chosen)

    def solve(self, seconds=60.0, *, confirm=True):
        """Return the records of a solution, or None when there is none."""
        for presolve in ("on", "off") if confirm else ("on",):
            options = {"msg": False, "threads": 1, "timeLimit": seconds, "presolve": presolve}
            self.problem.solve(pulp.HiGHS(**options))
            if self.problem.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
                return self._records()
            if self.problem.status != pulp.LpStatusInfeasible:
                raise TimeoutError("the program was not decided")
        return None

    def without(self, claim, multiplicity):
        """Add the rows that forbid exactly that many matches.

        ``claim``: [(attribute position, codes)].  T of Eq. 9 to 12 is X where the claim has a 1.
        """
        big = self.n + 1
        s = [self.problem.add_variable(f"s{i}", 0, 1, cat="Integer") for i in range(self.n)]
        for i, row in enumerate(self.x):
            t = [pulp.lpSum(row[self.start[a] + c] for c in codes) for a, codes in claim]
            for part in t:
                self.problem += s[i] <= part
            self.problem += s[i] >= pulp.lpSum(t) - (len(t) - 1)
        y = self.problem.add_variable("y", 0, 1, cat="Integer")
        self.problem += pulp.lpSum(s) - multiplicity <= big * y - 1
        self.problem += pulp.lpSum(s) - multiplicity >= 1 - big * (1 - y)


def predicates(schema, tables):
    """Return each published cell of plain counts as [(attribute position, codes)]."""
    found = []
    for table in tables:
        for q in range(len(table.cells)):
            predicate = []
            for a, name in enumerate(schema.names):
                if name in table.factors:
                    codes = np.flatnonzero(table.factors[name][q]).tolist()
                    if len(codes) < schema.shape[a]:
                        predicate.append((a, codes))
            found.append(predicate)
    return found
