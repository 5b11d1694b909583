"""Verified claims in the layouts of the published tables."""

import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk.reconstruction import Claims
from bayesrisk.risk.statements.claims import claim_records
from bayesrisk.tables import Records


def records_identified(
    result: Claims,
    *,
    truth: Records | None = None,
    singletons: bool = True,
    count: str = "n_columns",
    readable: str | None = "here",
) -> pd.DataFrame:
    """Return numbers of records that verified claims describe, in all and per place (Tables 2, 3).

    Rows are ``total``, ``average`` (per place) and ``share`` (of all records); columns are ``n``
    (all records) and one for each number of columns.

    Parameters
    ----------
    result : Claims
        Verified claims.
    truth : Records, optional
        Confidential records; by default those of the data set that was found.
    singletons : bool, default True
        Whether only claims about one record count (Table 2), or all (Table 3).
    count : {"n_columns", "n_needed"}
        How columns are counted.
    readable : str, optional
        Which claims are left out, as for :meth:`Claims.to_frame`.

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
    check.instance(result, Claims, "result")
    rows = None
    if truth is not None:
        rows = claim_records(result, truth, "truth").rename(columns={"_place": result.level})
    covered = result.covered(rows=rows, singletons=singletons, count=count, readable=readable)
    by_columns = covered.groupby("columns")[["records", "covered"]].sum()
    n = int(by_columns["records"].max()) if len(by_columns) else 0
    total = pd.Series({"n": n, **by_columns["covered"].to_dict()}, dtype=float)
    places = max(len(result.blocks), 1)
    lines = {"total": total, "average": total / places, "share": total / max(n, 1)}
    return pd.DataFrame(lines).T
