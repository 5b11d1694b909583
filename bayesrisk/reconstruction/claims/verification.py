"""Claims that must be true: generate candidates from the tables, then verify each (Liu et al.).

A claim R(a, m) says that exactly m records of a place agree with the partial assignment a.  It is
verified when it holds in every data set that fits the published tables.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from bayesrisk import _validation as check
from bayesrisk.reconstruction.claims.options import ClaimOptions, about_claims
from bayesrisk.reconstruction.claims.result import Claims as Claims
from bayesrisk.reconstruction.claims.result import collected
from bayesrisk.reconstruction.claims.search.decide_block import study
from bayesrisk.tables.published import PublishedTables


def find_claims(tables: PublishedTables, **options: Any) -> Claims:
    """Return every claim about records that must be true, given tables of true counts.

    Candidates are all partial assignments of the records of one data set that fits the tables:
    what holds in every data set holds in that one.  Each is then decided exactly.

    Parameters
    ----------
    tables : PublishedTables
        Tables of true counts, of any schema and workload.
    **options : object
        Those of :class:`ClaimOptions`, by name.

    Returns
    -------
    Claims
        Claims with status, and a status of every place.

    Raises
    ------
    ArgumentError
        If an argument is out of range, a column is unknown, there are too many cells, or counts
        of a release need not be true and ``taken_as_true`` is not set.

    Notes
    -----
    A claim is verified by a whole-numbered combination of published counts (row space), by bounds
    of the linear relaxation proved in integer arithmetic, or by an integer program without a
    solution, confirmed a second way.  It is refuted by a data set that fits every count.
    Memory grows with the published cells that count each live cell, and with the claims.

    Source: T. Liu, E. Xiao, P. Thaker, A. Smith, Z. S. Wu, "Generate-then-Verify: Reconstructing
    Data from Limited Published Statistics", section 2 (definitions) and 3 (which decides by a
    program over one-hot records; here by one over counts of cells, with the same answers).

    Examples
    --------
    >>> from bayesrisk.tables import Records, Schema, Workload, tabulate
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 2, "sex": [0, 1], "age": [7, 31],
    ...                        "race": 1, "hisp": 0})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> found = find_claims(tabulate(records, Workload.named("sf1-block")), max_columns=2)
    >>> len(found.to_frame()), found.blocks["status"].tolist()
    (17, ['decided'])
    """
    about = about_claims(tables, ClaimOptions.given(options))
    found = [study(about.study, counts, hidden) for counts, hidden in about.blocks(tables)]
    return collected(tables, about, found)


def generate_claims(tables: PublishedTables, **options: Any) -> Claims:
    """Return candidates: claims that hold in every data set that was found.

    Parameters
    ----------
    tables : PublishedTables
        Tables of true counts, of any schema and workload.
    **options : object
        Those of :class:`ClaimOptions`, by name.

    Returns
    -------
    Claims
        Candidates, ``undecided`` all; every claim about at least one record that can be verified
        is among them.

    Examples
    --------
    >>> from bayesrisk.tables import Records, Schema, Workload, tabulate
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 2, "sex": [0, 1], "age": [7, 31],
    ...                        "race": 1, "hisp": 0})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> tables = tabulate(records, Workload.named("sf1-block"))
    >>> candidates = generate_claims(tables, columns=["sex", "age"], n_solutions=3)
    >>> verify_claims(tables, candidates).claims["status"].value_counts().to_dict()
    {'verified': 6}
    """
    about = about_claims(tables, ClaimOptions.given(options))
    how = replace(about.study, verify=False, refuted=False)
    found = [study(how, counts, hidden) for counts, hidden in about.blocks(tables)]
    return collected(tables, about, found)


def verify_claims(
    tables: PublishedTables, candidates: Claims | pd.DataFrame, **options: Any
) -> Claims:
    """Return a decision on each of some claims.

    Parameters
    ----------
    tables : PublishedTables
        Tables of true counts, of any schema and workload.
    candidates : Claims or pandas.DataFrame
        Place, code of each column (missing for any) and ``multiplicity`` of each claim, which may
        be 0.
    **options : object
        Those of :class:`ClaimOptions`, by name; columns default to those of the candidates.

    Returns
    -------
    Claims
        The same claims, place after place, with their status.

    Raises
    ------
    ArgumentError
        If an argument is out of range, a column or place is unknown, or a code is.

    Examples
    --------
    >>> from bayesrisk.tables import Records, Schema, Workload, tabulate
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 2, "sex": [0, 1], "age": [7, 31],
    ...                        "race": 1, "hisp": 0})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> tables = tabulate(records, Workload.named("sf1-block"))
    >>> one = pd.DataFrame({"block": ["500010101001000"] * 2, "age": 7, "multiplicity": [1, 2]})
    >>> verify_claims(tables, one).claims["status"].tolist()
    ['verified', 'refuted']
    """
    frame = candidates.claims if isinstance(candidates, Claims) else candidates
    check.frame(frame, "candidates")
    if isinstance(candidates, Claims):
        options = {"level": candidates.level, "columns": candidates.columns, **options}
    about = about_claims(tables, ClaimOptions.given(options))
    asked = about.patterns(tables, frame)
    how = replace(about.study, verify=True, refuted=True)
    found = [
        study(how, counts, hidden, asked[at])
        for at, (counts, hidden) in enumerate(about.blocks(tables))
    ]
    return collected(tables, about, found)
