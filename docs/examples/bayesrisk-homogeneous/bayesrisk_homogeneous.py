"""Find the places where everybody is alike: what is published about the place is true of each."""

import numpy as np
import pandas as pd

from bayesrisk.exceptions import ArgumentError, ArgumentTypeError


class Homogeneous:
    """Places whose people are all in one cell of a table that counts everybody once.

    Whoever is known to live in such a place is known to be in the cell.  Nothing is estimated: a
    published zero rules every other cell out, as long as the published counts are the true ones.

    Parameters
    ----------
    level : str
        Level of geography of the places.
    table : str
        Name of the table; each person must be in exactly one of its cells.
    """

    name = "homogeneous"
    proof = True  # of true counts: everybody of the place is in a row

    def __init__(self, *, level, table):
        for given, what in ((level, "level"), (table, "table")):
            if not isinstance(given, str):
                raise ArgumentTypeError(f"{what} must be text, got {type(given).__name__}")
        self.level, self.table = level, table

    def run(self, release):
        """Return a row for each such place: its code, the table, its cell and how many people."""
        key = (self.level, self.table)
        if key not in release.tables.counts:
            raise ArgumentError(f"release must have table {self.table!r} at level {self.level!r}")
        if not release.spec.likelihood(*key).exact:
            raise ArgumentError(f"release must hold true counts, got {release.spec.mechanism!r}")
        counts = release.tables.counts[key].toarray()
        alike = np.flatnonzero((counts > 0).sum(axis=1) == 1)
        return pd.DataFrame(
            {
                self.level: release.tables.geoids[self.level][alike],
                "table": self.table,
                "cell": counts[alike].argmax(axis=1),
                "people": counts[alike].max(axis=1),
            }
        )
