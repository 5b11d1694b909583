"""Attacks on whole releases as methods of an audit; the records they find are taken as real."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from bayesrisk._base.plugins import Wall
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, DataError, PluginError, quote
from bayesrisk.inference import RecordPrior
from bayesrisk.interfaces import Attack
from bayesrisk.mechanisms.registry import read_recipe
from bayesrisk.reconstruction import make_attack
from bayesrisk.reconstruction.registry import REGISTRY
from bayesrisk.release import Release, TrueCounts
from bayesrisk.risk.audit.adversaries import TargetQuestion
from bayesrisk.tables import Attribute

_PEOPLE, _CELL = "people", ("table", "cell")


def make_named(recipe: str) -> tuple[Attack, str]:
    """Return the attack of a recipe, and its name in messages."""
    name, parameters = read_recipe(recipe, "method")
    return make_attack(name, **parameters), REGISTRY.subject(name)


class NamedAttack:
    """An attack on the release of one place, with known records subtracted.

    Its frame has a row for some people of the place, as many as ``people`` says, or one. Columns
    named as attributes have their codes or labels. ``table`` and ``cell`` name the cell of a
    published table that contains them. If a row leaves the record open, the prior decides.
    """

    partial = True

    def __init__(self, attack: Attack, subject: str, release: Release) -> None:
        self._subject, self._release = subject, release
        self.engine, self.proof = str(attack.name), bool(getattr(attack, "proof", False))
        try:
            answer = attack.run(release)
        except (ArgumentError, DataError):
            # What refuses counts that need not be true is asked as if they were, as all others are.
            if release.spec.true_counts:
                raise
            true = {k: law if law.exact else TrueCounts() for k, law in release.spec.tables.items()}
            answer = attack.run(replace(release, spec=replace(release.spec, tables=true)))
        with Wall(subject):
            frame = answer.to_frame() if hasattr(answer, "to_frame") else answer
        if not isinstance(frame, pd.DataFrame):
            self._refuse(f"must return a data frame or what has to_frame(), not {quote(answer)}")
        self._kinds = [(row, self._cells(row)) for row in self._rows(frame)]

    def weights(self, question: TargetQuestion, prior: RecordPrior) -> FloatArray | None:
        """Return the number of people like the target that have each value."""
        people = np.zeros(prior.schema.size)
        for row, cells in self._kinds:
            # Of n people in the cells C of a row, n share(c) / share(C) are in a cell c.
            shares = prior.shares_of_cells[cells]
            if (mass := shares.sum()) > 0:
                people[cells] += row[_PEOPLE] * shares / mass
        sums = question.sums(people)
        return sums if sums.sum() > 0 else None

    def _rows(self, frame: pd.DataFrame) -> list[dict[Any, Any]]:
        """Return the distinct rows about the place, each with its number of people."""
        workload = self._release.tables.workload
        level, names = workload.levels[-1], workload.schema.names
        columns = [name for name in (*names, *_CELL) if name in frame]
        whole = len({*columns} & {*_CELL}) in (0, 2)
        if level not in frame or not columns or not whole or not frame.columns.is_unique:
            self._refuse(
                f"must return columns {level}, and some of {', '.join(names)}, or table and cell, "
                f"got {quote(list(frame))}"
            )
        frame = frame[frame[level].astype("str") == self._release.tables.geoids[level][0]]
        number = frame[_PEOPLE] if _PEOPLE in frame else pd.Series(1, frame.index)
        people = pd.to_numeric(number, errors="coerce").to_numpy(np.float64, na_value=np.nan)
        if not (np.isfinite(people) & (people >= 0)).all():
            self._refuse(
                f"must return numbers >= 0 of {_PEOPLE}, got {quote(list(number))}; protected "
                "counts less those of known records may be below 0: take max(count, 0)"
            )
        kinds = frame[columns].astype(object).assign(**{_PEOPLE: people})
        sums = kinds.groupby(columns, dropna=False, sort=False)[_PEOPLE].sum().reset_index()
        return sums.to_dict("records")

    def _cells(self, row: Mapping[Any, Any]) -> IntArray:
        """Return the schema cells that a row's people may be in."""
        schema = self._release.tables.workload.schema
        fit = np.ones(schema.size, np.bool_)
        for name, index in schema.indices(np.arange(schema.size)).items():
            if name in row and not pd.isna(row[name]):
                fit &= index == self._code(schema.attribute(name), row[name])
        if "cell" in row and not pd.isna(row["cell"]):
            fit &= self._counted(row)
        return np.flatnonzero(fit)

    def _code(self, attribute: Attribute, value: Any) -> int:
        """Return an attribute's code or label as a code counted from 0."""
        labels = [*(attribute.labels or ())]
        if value in labels:
            return labels.index(value)
        if value not in range(attribute.first, attribute.last + 1):
            self._refuse(f"must return codes or labels of {attribute.name}, got {quote(value)}")
        return int(value) - attribute.first

    def _counted(self, row: Mapping[Any, Any]) -> BoolArray:
        """Return a mask of the schema cells that a row's published cell counts."""
        workload = self._release.tables.workload
        table = workload.at(workload.levels[-1]).get(row["table"])
        if table is None or row["cell"] not in range(len(table.cells)):
            self._refuse(
                f"must return cells of published tables, got {quote((row['table'], row['cell']))}"
            )
        every = np.arange(workload.schema.size)
        counted = table.incidence(workload.schema, every)[[int(row["cell"])]]
        return np.asarray(counted.toarray()[0] > 0)

    def _refuse(self, rule: str) -> NoReturn:
        raise PluginError(f"{self._subject} failed: run() {rule}")
