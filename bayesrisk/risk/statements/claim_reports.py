"""Verified claims in the layouts of the published tables."""

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.reconstruction import Claims, claim_sentences
from bayesrisk.risk.statements.claims import claim_records
from bayesrisk.tables import Records


def claim_examples(found: Claims, *, n: int = 5, readable: str | None = "here") -> pd.DataFrame:
    """Return for some places the claim about one record that says most, in words (Table 1).

    Parameters
    ----------
    found : Claims
        Verified claims.
    n : int, default 5
        Number of places, those whose claims have most columns.
    readable : str, optional
        Which claims are left out, as for :meth:`Claims.to_frame`.

    Returns
    -------
    pandas.DataFrame
        The place, ``columns``, ``needed`` and ``claim``; ties go to the first place.

    Examples
    --------
    >>> from bayesrisk.reconstruction import find_claims
    >>> from bayesrisk.tables import Schema, Workload, tabulate
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 2, "sex": [0, 1], "age": [7, 31],
    ...                        "race": [1, 2], "hisp": 0})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> found = find_claims(tabulate(records, Workload.named("sf1-block")))
    >>> claim_examples(found, readable=None)["columns"].tolist()
    [4]
    """
    if not isinstance(found, Claims):
        raise ArgumentTypeError(f"found must be Claims, got {type(found).__name__}")
    n = check.integer(n, "n", lower=1)
    single = found.to_frame(readable=readable)
    single = single[single["multiplicity"] == 1]
    order = single.sort_values(["n_columns", "n_needed"], ascending=False, kind="stable")
    best = order.drop_duplicates(found.level).head(n)
    return pd.DataFrame(
        {
            found.level: best[found.level].to_numpy(),
            "columns": best["n_columns"].to_numpy(),
            "needed": best["n_needed"].to_numpy(),
            "claim": np.array(claim_sentences(found, best), dtype=object),
        }
    )


def records_identified(
    found: Claims,
    *,
    truth: Records | None = None,
    singletons: bool = True,
    count: str = "n_columns",
    readable: str | None = "here",
) -> pd.DataFrame:
    """Return how many records verified claims describe, in all and per place (Tables 2 and 3).

    Parameters
    ----------
    found : Claims
        Verified claims.
    truth : Records, optional
        Confidential records; by default those of the data set that was found, which the claims
        describe as well.
    singletons : bool, default True
        Whether only claims about one record count (Table 2), or all (Table 3).
    count : {"n_columns", "n_needed"}
        How columns are counted.
    readable : str, optional
        Which claims are left out, as for :meth:`Claims.to_frame`.

    Returns
    -------
    pandas.DataFrame
        Rows ``total``, ``average`` (per place) and ``share`` (of all records); columns ``n`` (all
        records) and one for each number of columns.

    Raises
    ------
    ArgumentError
        If an option is unknown, or the truth is of another schema.

    Examples
    --------
    >>> from bayesrisk.reconstruction import find_claims
    >>> from bayesrisk.tables import Schema, Workload, tabulate
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 2, "sex": [0, 1], "age": [7, 31],
    ...                        "race": [1, 2], "hisp": 0})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> found = find_claims(tabulate(records, Workload.named("sf1-block")))
    >>> records_identified(found, truth=records, readable=None).loc["total"].tolist()
    [2.0, 2.0, 2.0, 2.0, 2.0]
    """
    if not isinstance(found, Claims):
        raise ArgumentTypeError(f"found must be Claims, got {type(found).__name__}")
    rows = None
    if truth is not None:
        rows = claim_records(found, truth, "truth").rename(columns={"_place": found.level})
    covered = found.covered(rows=rows, singletons=singletons, count=count, readable=readable)
    by_columns = covered.groupby("columns")[["records", "covered"]].sum()
    n = int(by_columns["records"].max()) if len(by_columns) else 0
    total = pd.Series({"n": n, **by_columns["covered"].to_dict()}, dtype=float)
    places = max(len(found.blocks), 1)
    lines = {"total": total, "average": total / places, "share": total / max(n, 1)}
    return pd.DataFrame(lines).T
