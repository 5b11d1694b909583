"""What an adversary recovers of suppressed counts: integer programs over all whole histograms.

Written from the definition of a table alone: the weight of a record in a cell is the product of
factors.  Nothing of the package is used but the data that it holds.
"""

import itertools

import numpy as np
from scipy import optimize, sparse


def weights(table, schema, cells):
    """Return the weights (cells of the table, records) of records given by their codes from 0."""
    found = np.ones((len(table.cells), len(cells)), dtype=np.int64)
    for name, factor in table.factors.items():
        found *= factor[:, cells[:, schema.names.index(name)]]
    return found


def kinds(tables):
    """Return codes of one record of each kind that tables tell apart, (kinds, attributes)."""
    options = []
    for attribute in tables.workload.schema.attributes:
        used = [
            t.factors[attribute.name]
            for t in tables.workload.tables.values()
            if attribute.name in t.factors
        ]
        first = np.unique(np.vstack(used), axis=1, return_index=True)[1] if used else [0]
        options.append(sorted(first))
    return np.array(list(itertools.product(*options)))


class Program:
    """All whole histograms of the finest places below one coarsest place that fit what is shown.

    ``least`` and ``most`` bound every suppressed count.
    """

    def __init__(self, tables, root, *, least=0, most=np.inf):
        workload, every = tables.workload, kinds(tables)
        levels = workload.levels
        finest = [g for g in tables.geoids[levels[-1]].tolist() if g.startswith(root)]
        blocks, names, low, high = [], [], [], []
        dead = np.zeros(len(finest) * len(every), dtype=bool)
        for (level, name), table in workload.tables.items():
            own = weights(table, workload.schema, every)
            for row, geoid in enumerate(tables.geoids[level].tolist()):
                if not geoid.startswith(root):
                    continue
                inside = np.array([float(f.startswith(geoid)) for f in finest])
                counts = tables.counts[level, name][[row]].toarray()[0]
                hidden = tables.hidden(level, name)[[row]].toarray()[0]
                zero = (counts == 0) & ~hidden
                dead |= np.kron(inside, own[zero].sum(axis=0)) > 0
                blocks.append(sparse.kron(inside[None], sparse.csr_array(own[~zero]), "csr"))
                for at in np.flatnonzero(~zero).tolist():
                    names.append((level, geoid, name, table.cells[at]) if hidden[at] else None)
                    low.append(least if hidden[at] else counts[at])
                    high.append(most if hidden[at] else counts[at])
        matrix = sparse.vstack(blocks, "csr")[:, ~dead].tocsr()
        self.names = [n for n in names if n is not None]
        own = np.flatnonzero([n is not None for n in names])
        self.hidden = matrix[own]
        # Equal rows and columns change nothing but the time.
        dense = matrix.toarray()
        dense, column = np.unique(dense, axis=1, return_index=True)
        self.hidden = self.hidden[:, column]
        packed = np.column_stack([dense, low, high])
        packed = np.unique(packed, axis=0)
        self.size = dense.shape[1]
        self.rows = optimize.LinearConstraint(packed[:, :-2], packed[:, -2], packed[:, -1])

    def optimum(self, cost):
        """Return a best whole histogram, or None where there is no end."""
        if not self.size:
            return np.zeros(0, dtype=np.int64)
        found = optimize.milp(cost, constraints=self.rows, integrality=np.ones(self.size))
        if found.x is None:
            assert found.status in (3, 4), found.message  # endless
            return None
        return np.rint(found.x).astype(np.int64)

    def ranges(self):
        """Return {name: (smallest, largest)} of every suppressed count."""
        found = {}
        for name, form in zip(self.names, self.hidden.toarray(), strict=True):
            ends = [self.optimum(form), self.optimum(-form)]
            found[name] = tuple(np.inf if x is None else float(form @ x) for x in ends)
        return found

    def recovered(self):
        """Return the names of suppressed cells with one possible count."""
        forms = self.hidden.toarray()
        first = self.optimum(np.zeros(self.size))
        seen = forms @ first
        open_ = np.ones(len(forms), dtype=bool)
        lost = []
        for at, form in enumerate(forms):
            for sign in (-1, 1):
                if open_[at]:
                    other = self.optimum(sign * form)
                    if other is None:
                        open_[at] = False
                    else:
                        open_ &= forms @ other == seen
            if open_[at]:
                lost.append(self.names[at])
        return lost


def recovered(tables, *, least=0, roots=None):
    """Return the suppressed cells that have one possible count, place by coarsest place."""
    coarsest = tables.workload.levels[0]
    lost = []
    for root in tables.geoids[coarsest].tolist() if roots is None else roots:
        program = Program(tables, root, least=least)
        if program.names:
            lost += program.recovered()
    return lost
