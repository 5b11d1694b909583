"""Claims that must be true: generate candidates from the tables, then verify each (Liu et al.).

A claim R(a, m) says that exactly m records of a place agree with the partial assignment a.  It is
verified when it holds in every data set that fits the published tables.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk.reconstruction.claims.options import ClaimOptions, claim_problem
from bayesrisk.reconstruction.claims.result import Claims, collected, encoded, several
from bayesrisk.reconstruction.records.problem import Problem
from bayesrisk.release import Release
from bayesrisk.tables.published import SeveralTables


def find_claims(tables: SeveralTables | Problem, **options: object) -> Claims:
    """Return every claim about records that must be true, given published tables.

    Candidates are all partial assignments of the records of one data set that fits the tables:
    what holds in every data set holds in that one.  Each is then decided exactly.  Where counts
    are rounded, published in ranges or withheld by a rule, it is the strongest claim of its
    columns: exactly so many records where that is proved, else at least so many.

    Parameters
    ----------
    tables : PublishedTables, or sequence of them, or mapping by name
        Tables of any schema and workload, of true counts or of such that limit the true ones; of
        one release, or of several of the same people; or their problem, as a reconstruction has it.
    **options : object
        Those of :class:`ClaimOptions`, by name.

    Notes
    -----
    A claim is verified by a whole-numbered combination of published counts (row space), or by
    bounds of the linear relaxation proved in integers. Else by an integer program without a
    solution, confirmed a second way. It is refuted by a data set that fits every count. A count
    that may be one of several makes a row of two sides, which the bounds and programs take as it
    is; only rows with one count are combined. Memory grows with the published cells that count each
    live cell, and with the claims.

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
    problem = claim_problem(tables, ClaimOptions.from_options(options))
    return collected(problem, [problem.study(block) for block in problem.blocks()])


def generate_claims(tables: SeveralTables | Problem, **options: object) -> Claims:
    """Return candidates: claims that hold in every data set that was found.

    Tables and options are as for :func:`find_claims`; :func:`verify_claims` decides on each.
    """
    problem = claim_problem(tables, ClaimOptions.from_options(options))
    problem = replace(problem, verify=False, refuted=False)
    return collected(problem, [problem.study(block) for block in problem.blocks()])


def verify_claims(
    tables: SeveralTables | Problem, candidates: Claims | pd.DataFrame, **options: object
) -> Claims:
    """Return whether given claims must be true of all records that fit the tables.

    Parameters
    ----------
    tables : PublishedTables
        Tables as for :func:`find_claims`.
    candidates : Claims or pandas.DataFrame
        Place, code of each column (missing for any) and ``multiplicity`` of each claim, which may
        be 0; perhaps ``at_least``, whether it is about so many records or more.
    **options : object
        Those of :class:`ClaimOptions`, by name; columns default to those of the candidates.

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
    >>> candidates = generate_claims(tables, columns=["sex", "age"], n_solutions=3)
    >>> verify_claims(tables, candidates).claims["status"].value_counts().to_dict()
    {'verified': 6}
    """
    frame = candidates.claims if isinstance(candidates, Claims) else candidates
    frame = check.frame(frame, "candidates")
    if isinstance(candidates, Claims):
        options = {"level": candidates.level, "columns": candidates.columns, **options}
    problem = replace(claim_problem(tables, ClaimOptions.from_options(options)), refuted=True)
    problem = replace(problem, bounds=problem.bounds or bool(several(frame).any()))
    pairs = zip(problem.blocks(), encoded(problem, frame), strict=True)
    return collected(problem, [problem.study(block, claims) for block, claims in pairs])


# -----------------------------------------------------------------------------
# Verified claims as an attack on a release: what the registry knows it by.


class ClaimsAttack:
    """Claims that hold in whatever has the published counts of a release.

    The options are those of :class:`ClaimOptions`, by name.

    Examples
    --------
    >>> ClaimsAttack(max_columns=3).name
    'claims'
    """

    name = "claims"

    def __init__(self, **options: object) -> None:
        self.options = ClaimOptions.from_options(options)

    def run(self, release: Release) -> Claims:
        """Return the claims that the tables of a release prove; nothing else is read."""
        check.instance(release, Release, "release")
        return find_claims(release.tables, **vars(self.options))
