"""What a reconstruction says about records of any schema, known by some of their attributes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction import Reconstruction, record_form
from bayesrisk.reconstruction.status import Status
from bayesrisk.release import MechanismSpec
from bayesrisk.risk.linkage.baselines import WITHOUT
from bayesrisk.risk.statements.columns import COLUMNS
from bayesrisk.tables import Records


def leave_one_out(
    same: ArrayLike, population: ArrayLike, everywhere: ArrayLike, total: int, weight: float
) -> NDArray[np.float64]:
    """Return ``(c - 1 + w s) / (n - 1 + w)``: what a guesser infers without the target's record.

    ``c`` of ``n`` records of a place are as stated, and a share ``s`` of all other records.
    """
    others = np.asarray(population, np.float64) - 1.0
    share: NDArray[np.float64] = (np.asarray(everywhere, np.float64) - 1.0) / max(total - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        prior = (np.asarray(same, np.float64) - 1.0 + weight * share) / (others + weight)
    return np.where(others + weight > 0, prior, share)


def statements_of_own_records(
    found: Reconstruction,
    *,
    spec: MechanismSpec,
    weight: float,
    known: Sequence[str] | None,
    stated: Sequence[str] | None,
    truth: Any = None,
) -> pd.DataFrame:
    """Return the statements; see :meth:`Statements.of`."""
    about_target, about_it = _attributes(found, known, stated)
    level = found.problem.level
    place = [level, *about_target]
    columns = [*place, *about_it]
    records = record_form(found)[columns]
    rows = records.groupby(columns, sort=True).size().rename("people").reset_index()
    rows["posterior"] = rows["people"] / rows.groupby(place)["people"].transform("sum")
    rows["prior"] = leave_one_out(
        rows.groupby([level, *about_it])["people"].transform("sum"),
        rows.groupby(level)["people"].transform("sum"),
        rows.groupby(about_it)["people"].transform("sum"),
        len(records),
        weight,
    )
    unique = found.geoids[np.array(found.status) == Status.UNIQUE] if spec.true_counts else []
    rows["status"] = np.where(rows[level].isin(unique), "proved", "believed")
    rows["lower"] = rows["upper"] = rows["posterior"]
    if truth is not None:
        people = _as_told_apart(found, check.instance(truth, Records, "truth"))
        rows["correct"] = agreement(rows, people, place, columns)
    labelled = found.problem.space.schema.labelled(rows[columns])
    rows["target"], rows["statement"] = _words(labelled, place), _words(labelled, about_it)
    by = {"attack": "reconstruction", "adversary": "linker", "protection": spec.mechanism}
    order = [*(name for name in COLUMNS if name in rows or name in by), *columns, "baseline"]
    return rows.assign(**by, baseline=WITHOUT)[order]


def _attributes(
    found: Reconstruction, known: Sequence[str] | None, stated: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """Return what is known and what is stated, attributes of the schema and each once."""
    schema = found.problem.space.schema
    lists = []
    for name, given in (("known", known), ("stated", stated)):
        chosen = list(check.texts(() if given is None else given, name))
        for attribute in chosen:
            check.choice(attribute, name, schema.names)
        lists.append(chosen)
    if not lists[1]:
        raise ArgumentError(f"stated must name an attribute of {schema.name!r}, got none")
    both = lists[0] + lists[1]
    if len(set(both)) < len(both):
        raise ArgumentError(f"known and stated must name an attribute once, got {both}")
    return lists[0], lists[1]


def _as_told_apart(found: Reconstruction, truth: Records) -> pd.DataFrame:
    """Return the true records with one code for all that the tables do not tell apart."""
    space = found.problem.space
    if truth.schema != space.schema:
        raise ArgumentError(
            f"truth must be of schema {space.schema.name!r}, got {shown(truth.schema.name)}"
        )
    columns: dict[str, NDArray[Any]] = {space.schema.geography.finest: truth.geoids}
    for name in space.schema.names:
        first = space.schema.attribute(name).first
        least = np.unique(space.bins[name], return_index=True)[1]
        columns[name] = least[space.bins[name][truth.codes(name) - first]] + first
    return pd.DataFrame(columns)


def agreement(
    rows: pd.DataFrame, people: pd.DataFrame, place: list[str], about: list[str]
) -> pd.Series:
    """Return whether a statement is true of everybody, or of nobody, whom it is about.

    Missing where it is true of some of them, and where nobody of the kind lives there.
    """
    there = people.groupby(place).size().rename("there").reset_index()
    right = people.groupby(about).size().rename("right").reset_index()
    known = rows[about].merge(there, on=place, how="left").merge(right, on=about, how="left")
    everybody = known["there"].to_numpy(np.float64)
    as_stated = known["right"].fillna(0.0).to_numpy(np.float64)
    said = pd.Series(as_stated > 0, index=rows.index, dtype="boolean")
    return said.where((as_stated == 0) & (everybody > 0) | (as_stated == everybody))


def _words(labelled: pd.DataFrame, names: list[str]) -> list[str]:
    """Return in words what each row says of some columns; the one place has no name."""
    columns = [labelled[name].astype("str") for name in names]
    said = (zip(names, row, strict=True) for row in zip(*columns, strict=True))
    return [" ".join(f"{n} {t}" for n, t in pairs if t) or "anybody" for pairs in said]
