"""Priors of verified claims, and the share of verified claims that are false.

A verified claim has posterior 1 if the published counts are true. Its prior is the probability that
it holds in a block of that size with records drawn from the tract or the state (Eq. 17 of Liu et
al.). After swapping or noise, the tables may verify a claim that is false. Then the share of true
claims is the worth of verification.
"""

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.validation import CodeArray, IntArray
from bayesrisk.constraints.model import Status
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction import Claims
from bayesrisk.reconstruction.claims.result import one_record, several
from bayesrisk.risk.intervals import binomial_interval, clustered_interval
from bayesrisk.risk.linkage.agreement import COUNTED, WITHOUT
from bayesrisk.tables import Records


def claim_records(result: Claims, records: Records, name: str) -> pd.DataFrame:
    """Return the records that claims may describe, with their places."""
    check.instance(result, Claims, "result")
    check.instance(records, Records, name)
    if records.schema.name != result.schema.name:
        raise ArgumentError(
            name, f"must be of schema {result.schema.name!r}", got=records.schema.name
        )
    keep = np.ones(len(records), np.bool_)
    for column, codes in result.among.items():
        keep &= np.isin(records.codes(column), codes)
    frame = pd.DataFrame({c: records.codes(c)[keep] for c in result.columns})
    place = records.geoids[keep]
    return frame.assign(_place=records.schema.geography.ancestors(place, result.level))


def _counts(patterns: CodeArray, rows: CodeArray) -> IntArray:
    from bayesrisk.reconstruction.claims.search import lattice  # compiled on first use

    distinct, weight = np.unique(rows, axis=0, return_counts=True)
    kinds, inverse = np.unique(patterns, axis=0, return_inverse=True)
    out = np.zeros(len(kinds), np.int64)
    lattice.pattern_counts(np.ascontiguousarray(kinds), np.ascontiguousarray(distinct), weight, out)
    return out[inverse.ravel()]


def count_claims(result: Claims, claims: pd.DataFrame, truth: Records) -> IntArray:
    """Return the number of true records that each claim describes.

    These are the records of the claim's place that agree with it. The claim is true if there are
    ``multiplicity`` of them, or at least so many if it is ``at_least``.

    Parameters
    ----------
    result, claims, truth : Claims, pandas.DataFrame, Records
        The source of the claims, some of its claims, and confidential records.

    Examples
    --------
    >>> from bayesrisk.reconstruction import find_claims
    >>> from bayesrisk.tables import Schema, Workload, tabulate
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 2, "sex": [0, 1], "age": [7, 31],
    ...                        "race": 1, "hisp": 0})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> found = find_claims(tabulate(records, Workload.named("sf1-block")), columns=["age"])
    >>> count_claims(found, found.claims, records).tolist()
    [1, 1]
    """
    people = claim_records(result, truth, "truth")
    claims = check.frame(claims, "claims", (result.level, *result.columns))
    counts = np.zeros(len(claims), np.int64)
    rows = result.coded(people)
    patterns = result.coded(claims)
    place_rows = people.groupby("_place").indices
    for place, index in claims.groupby(result.level).indices.items():
        members = place_rows.get(place)
        if members is not None:
            counts[index] = _counts(patterns[index], rows[members])
    return counts


def claim_priors(
    result: Claims,
    records: Records,
    *,
    level: str,
    status: str = Status.VERIFIED,
    readable: str | None = "here",
    leave_out: bool = False,
) -> pd.DataFrame:
    """Return claims with the probability that each holds in a block drawn from a larger place.

    Let the block have N records, and let a share p of the larger place's records agree with the
    claim. The probability of exactly m is ``C(N, m) p**m (1 - p)**(N - m)`` (Eq. 17); that of at
    least m is the sum from m on. The risk ratio of a verified claim is the inverse.

    Parameters
    ----------
    result : Claims
        Claims and places.
    records : Records
        Records of the larger places: the adversary's knowledge of tract or state.
    level : str
        Level of those places, such as ``"tract"`` or ``"state"``.
    status : str, default "verified"
        Status of the claims to keep.
    readable : str, optional
        Claims to leave out, as for :meth:`Claims.to_frame`; by default those that a table states
        once ruled-out cells are dropped.
    leave_out : bool, default False
        Whether to leave out of the larger place the record of the claim's target, one of those in
        the block that agree. Then p is a share of the others, ``(k - 1) / (n - 1)`` if k of n
        records agree. By default it counts, as in the paper.

    Returns
    -------
    pandas.DataFrame
        The claims with ``share`` (p), ``prior``, ``ratio`` and ``baseline``, which says whether the
        own record counts. A prior of 0 and an infinite ratio mean that no (other) record of the
        larger place agrees.

    Notes
    -----
    Two corrections to the printed paper: its uniform law is the product of ``1 / |x(j)|``, not of
    ``|x(j)|``; and Eq. 16 needs ``1 - Y`` for its own explanation to hold. A claim with which no
    record of its block agrees has no record to leave out.

    Examples
    --------
    >>> from bayesrisk.reconstruction import find_claims
    >>> from bayesrisk.tables import Schema, Workload, tabulate
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 2, "sex": [0, 1], "age": [7, 31],
    ...                        "race": 1, "hisp": 0})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> found = find_claims(tabulate(records, Workload.named("sf1-block")), columns=["age"])
    >>> claim_priors(found, records, level="tract", readable=None)["prior"].round(12).tolist()
    [0.5, 0.5]
    >>> claim_priors(found, records, level="tract", readable=None,
    ...              leave_out=True)["prior"].tolist()
    [0.0, 0.0]
    """
    from scipy.stats import binom  # slow to import

    people = claim_records(result, records, "records")
    geography = records.schema.geography
    geography.rank(level)
    check.flag(leave_out, "leave_out")
    chosen = result.to_frame(status=status, readable=readable)
    rows, patterns = result.coded(people), result.coded(chosen)
    larger = geography.ancestors(people["_place"].to_numpy(dtype=np.str_), level)
    wanted = geography.ancestors(chosen[result.level].to_numpy(dtype=np.str_), level)
    agreeing, total = np.zeros((2, len(chosen)))
    for place in np.unique(wanted):
        members, index = rows[larger == place], np.flatnonzero(wanted == place)
        if not len(members):
            raise ArgumentError(f"records must be there for {level} {str(place)!r}, got none")
        agreeing[index], total[index] = _counts(patterns[index], members), len(members)
    if leave_out:
        target = np.minimum(count_claims(result, chosen, records), 1)
        agreeing, total = agreeing - target, total - target
    share = agreeing / np.maximum(total, 1)  # a place of one record has no others: share 0
    size = result.blocks.set_index(result.level)["records"]
    n = size.reindex(chosen[result.level]).to_numpy()
    m = chosen["multiplicity"].to_numpy()
    if len(chosen):
        # P(m of n), or P(m or more of n) where the claim is about at least so many.
        prior = np.where(several(chosen), binom.sf(m - 1, n, share), binom.pmf(m, n, share))
    else:
        prior = share
    with np.errstate(divide="ignore"):
        return chosen.assign(
            share=share, prior=prior, ratio=1.0 / prior, baseline=WITHOUT if leave_out else COUNTED
        )


def claim_precision(
    result: Claims,
    truth: Records,
    *,
    readable: str | None = None,
    count: str = "n_columns",
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Return the share of verified claims that are true, by number of columns.

    With true counts all claims are true. A consistent swapped or noisy release gives claims that
    hold of its tables but may be false of the people.

    Parameters
    ----------
    result, truth : Claims, Records
        Claims verified from a release, and confidential records.
    readable : str, optional
        Claims to leave out, as for :meth:`Claims.to_frame`; by default none.
    count : {"n_columns", "n_needed"}
        How columns are counted.
    confidence : float in (0, 1), default 0.95

    Returns
    -------
    pandas.DataFrame
        A row for each ``kind`` (``singleton`` or ``any``) and number of ``columns`` (0 for all
        together). ``claims``, ``true`` and ``precision`` have the interval ``lower``, ``upper``. It
        is Korn and Graubard's: claims of one block are dependent, blocks are independent.
        ``blocks`` have such claims; ``all_true`` of them have no false one. ``block_share`` is
        their share, with the binomial interval ``block_lower``, ``block_upper``.

    Examples
    --------
    >>> from bayesrisk.reconstruction import find_claims
    >>> from bayesrisk.tables import Schema, Workload, tabulate
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 2, "sex": [0, 1], "age": [7, 31],
    ...                        "race": 1, "hisp": 0})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> found = find_claims(tabulate(records, Workload.named("sf1-block")))
    >>> claim_precision(found, records)["precision"].unique().tolist()
    [1.0]
    """
    check.choice(count, "count", ("n_columns", "n_needed"))
    confidence = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    check.instance(result, Claims, "result")
    chosen = result.to_frame(readable=readable)
    number, m = count_claims(result, chosen, truth), chosen["multiplicity"].to_numpy()
    right = np.where(several(chosen), number >= m, number == m)
    frame = pd.DataFrame(
        {
            "columns": chosen[count].to_numpy(),
            "right": right,
            "place": chosen[result.level].to_numpy(),
            "single": one_record(chosen),
        }
    )
    lines = []
    for kind, part in (("singleton", frame[frame["single"]]), ("any", frame)):
        for columns, group in [(0, part), *part.groupby("columns")]:
            if len(group):
                hits, block = group["right"], group.groupby("place")["right"].all()
                ends = clustered_interval(hits, group["place"], confidence=confidence)
                counts = (len(group), int(hits.sum()), hits.mean(), *ends)
                lines.append((kind, int(columns), *counts, len(block), int(block.sum())))
    names = ["kind", "columns", "claims", "true", "precision", "lower", "upper"]
    table = pd.DataFrame(lines, columns=[*names, "blocks", "all_true"])
    table["block_share"] = table["all_true"] / table["blocks"]
    lower, upper = binomial_interval(table["all_true"], table["blocks"], confidence=confidence)
    return table.assign(block_lower=lower, block_upper=upper)


def records_identified(
    result: Claims,
    *,
    truth: Records | None = None,
    singletons: bool = True,
    count: str = "n_columns",
    readable: str | None = "here",
) -> pd.DataFrame:
    """Return numbers of records that verified claims describe, in all and by place (Tables 2, 3).

    Rows are ``total``, ``average`` (per place) and ``share`` (of all records); columns are ``n``
    (all records) and one for each number of columns.

    Parameters
    ----------
    result : Claims
        Verified claims.
    truth : Records, optional
        Confidential records; by default those of the data set that was found.
    singletons : bool, default True
        Whether to count claims about one record only (Table 2), or all (Table 3).
    count : {"n_columns", "n_needed"}
        How columns are counted.
    readable : str, optional
        Claims to leave out, as for :meth:`Claims.to_frame`.

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
