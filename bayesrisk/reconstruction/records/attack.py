"""Reconstruction as an attack on a release: what the registry knows it by."""

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.reconstruction.linkage.age_bins import age_bin
from bayesrisk.reconstruction.records.reconstruction import Reconstruction, reconstruct
from bayesrisk.reconstruction.solvers import make_solver
from bayesrisk.reconstruction.solvers.interfaces import SolverBackend
from bayesrisk.release import Release

_PERSON = ("sex", "age", "race", "hisp")


class ReconstructionAttack:
    """Records that fit the tables of a release.

    Parameters
    ----------
    scope : str
        Level whose tables are solved together, as for :func:`reconstruct`.
    solver : str or SolverBackend, default "highs"
        See :func:`make_solver`.
    time_limit : float, optional
        Seconds that the solver may take for a component; none by default.
    nearest : bool, default False
        Whether blocks that no records fit get those of the least total deviation.
    taken_as_true : bool, default False
        Whether counts that need not be true are read as if they were (:func:`reconstruct`).

    Raises
    ------
    MissingDependencyError
        If the solver is not installed.

    Examples
    --------
    >>> ReconstructionAttack(scope="block").name
    'reconstruction'
    """

    name = "reconstruction"

    def __init__(
        self,
        *,
        scope: str,
        solver: str | SolverBackend = "highs",
        time_limit: float | None = None,
        nearest: bool = False,
        taken_as_true: bool = False,
    ) -> None:
        if not isinstance(scope, str) or not scope:
            raise ArgumentError(f"scope must be a level of the tables, got {shown(scope)}")
        if time_limit is not None:
            time_limit = check.scalar(time_limit, "time_limit", lower=0.0, bounds="(]")
        self.scope, self.time_limit, self.nearest = (
            scope,
            time_limit,
            check.flag(nearest, "nearest"),
        )
        self.solver = make_solver(solver)
        self.taken_as_true = check.flag(taken_as_true, "taken_as_true")

    def run(self, release: Release) -> Reconstruction:
        """Return the reconstruction of a release.

        Parameters
        ----------
        release : Release
            What was published; nothing else is read.

        Returns
        -------
        Reconstruction
            Records, and a status for every block.

        Raises
        ------
        ArgumentError
            If the release has no tables at the scope, or counts that need not be true.
        """
        if not isinstance(release, Release):
            raise ArgumentTypeError(f"release must be a Release, got {type(release).__name__}")
        return reconstruct(
            release.tables,
            scope=self.scope,
            solver=self.solver,
            time_limit=self.time_limit,
            nearest=self.nearest,
            taken_as_true=self.taken_as_true,
        )


def record_form(found: Reconstruction) -> pd.DataFrame:
    """Return reconstructed persons in the form that files of records have.

    Parameters
    ----------
    found : Reconstruction
        Of person tables.

    Returns
    -------
    pandas.DataFrame
        ``block, sex, age, agebin, race, hisp``.  Where the tables tell only groups of codes apart,
        such as bins of age, the first code of the group stands for it; ``agebin`` is one of the 38
        of the block tables.  Other schemas have their own columns.

    Examples
    --------
    >>> from bayesrisk.tables import Records, Schema, Workload, tabulate
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 2, "sex": 0, "age": [7, 31],
    ...                        "race": 1, "hisp": 0})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> tables = tabulate(records, Workload.named("sf1-block"))
    >>> record_form(reconstruct(tables, scope="block"))[["age", "agebin"]].values.tolist()
    [[7, 7], [30, 24]]
    """
    if not isinstance(found, Reconstruction):
        raise ArgumentTypeError(f"found must be a Reconstruction, got {type(found).__name__}")
    frame = found.to_frame()
    space = found.problem.space
    for name in space.schema.names:
        if space.is_whole(name):
            continue
        first = np.unique(space.bins[name], return_index=True)[1]
        youngest = first[frame.pop(f"{name}bin")] + space.schema.attribute(name).first
        # Records of the least deviation have nothing from larger places: there it is -1.
        known = frame[name].to_numpy() if name in frame else np.full(len(frame), -1)
        frame[name] = np.where(known < 0, youngest, known)
    if not set(_PERSON) <= set(space.schema.names):
        return frame
    frame["agebin"] = age_bin(frame["age"]) if len(frame) else frame["age"]
    order = [found.problem.level, "sex", "age", "agebin", "race", "hisp"]
    return frame[[c for c in order if c in frame] + [c for c in frame if c not in order]]
