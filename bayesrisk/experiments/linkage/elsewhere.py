"""Persons whose true record is in another county than where a file of known persons has them.

What the truth says of every person is put down by a number that the name gives, and so are the
questions; each number is then answered by itself.  Memory: the persons of one number.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk._files.spill import spill, spilled
from bayesrisk._types import IntArray
from bayesrisk.exceptions import DataError

_PERSONS = 2**18  # of one number
_FACTS = ["modal", "unique", "zero_variability"]


class Elsewhere:
    """Questions about persons by county, and their answers.

    Parameters
    ----------
    folder : Path
        An empty folder for what is put down.
    persons : int
        True records in all.
    truth : str
        How messages call them.
    """

    def __init__(self, folder: Path, persons: int, truth: str) -> None:
        self._folder, self._truth = folder, truth
        self._numbers = -(-max(persons, 1) // _PERSONS)

    def tell(self, county: str, known: pd.DataFrame) -> None:
        """Put down what the truth of a county says of its persons."""
        facts = sum(known[name].to_numpy(np.int64) << bit for bit, name in enumerate(_FACTS))
        rows = pa.table(
            {
                "person": pa.array(known["person"], pa.string()),
                "county": pa.array([county] * len(known), pa.string()),
                "facts": pa.array(facts, pa.int64()),
            }
        )
        self._put("told", rows)

    def ask(self, county: str, attacker: int, persons: pd.Series) -> None:
        """Put down the persons of a file that the truth of the same county does not have."""
        names = pa.array(persons.unique(), pa.string())
        where = pa.array([f"{county}-{attacker}"] * len(names), pa.string())
        self._put("asked", pa.table({"person": names, "where": where}))

    def _put(self, kind: str, rows: pa.Table) -> None:
        number = self._number(rows.column("person"))
        for own in np.unique(number):
            spill(self._folder / f"{kind}-{own}", rows.filter(pa.array(number == own)))

    def _number(self, persons: pa.ChunkedArray) -> IntArray:
        # The same for the same name on every machine.
        hashed = pd.util.hash_array(persons.to_numpy().astype(object), categorize=False)
        return np.asarray(hashed % self._numbers, dtype=np.int64)

    def answer(self) -> None:
        """Answer all questions.

        Raises
        ------
        DataError
            If a person has two true records.
        """
        for number in range(self._numbers):
            table = spilled(self._folder / f"told-{number}")
            if table is None:
                continue
            told = table.to_pandas()
            again = told["person"].duplicated()
            if again.any():
                person = told["person"][again].iloc[0]
                places = told.loc[told["person"] == person, "county"].tolist()
                raise DataError(
                    f"{self._truth}: column 'person': must be different for each record, "
                    f"got {person} in {places[0]} and {places[1]}"
                )
            asked = spilled(self._folder / f"asked-{number}")
            if asked is None:
                continue
            found = asked.to_pandas().merge(told[["person", "facts"]], on="person")
            for where, rows in found.groupby("where", sort=True):
                own = pa.Table.from_pandas(rows[["person", "facts"]], preserve_index=False)
                spill(self._folder / f"answer-{where}", own.replace_schema_metadata(None))

    def answers(self, county: str, attacker: int) -> pd.DataFrame:
        """Return ``person`` and what the truth of other counties says of them."""
        table = spilled(self._folder / f"answer-{county}-{attacker}")
        frame = pd.DataFrame({"person": pd.Series([], dtype="str"), "facts": np.zeros(0, np.int64)})
        if table is not None:
            frame = table.to_pandas()
        facts = frame["facts"].to_numpy(np.int64)
        found = {name: facts >> bit & 1 for bit, name in enumerate(_FACTS)}
        return frame[["person"]].assign(**found)
