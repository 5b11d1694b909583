"""What an audit asks: of which tables, by whom, and which statements about a target."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._show import displayed
from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.risk.audit.adversaries import Adversary
from bayesrisk.risk.audit.belief import Asked
from bayesrisk.risk.audit.methods import METHODS, POSTERIOR
from bayesrisk.tables import Workload

_MAX_VALUES = 2**12


@displayed
@dataclass(frozen=True, eq=False)
class AuditQuestion:
    """What is published, what is asked of the targets, and by whom.

    Attributes
    ----------
    workload : Workload
        Published tables; targets live in places of its finest level.
    stated : tuple of str
        Attributes that a statement gives: "the target has race 2 and is not Hispanic".
    adversaries : tuple of Adversary
        Who asks, each of another name.
    concentration : float, optional
        How alike people of one place are (:class:`RecordPrior`), in records; by default it is
        fitted to the places of the population, as from an earlier census, and of a single place
        one for each cell of the schema (:meth:`RecordPrior.uniform_histograms`).
    more : float, default 1
        Records that are added in equal parts to all cells of the composition, so that nobody is
        impossible.
    methods : tuple of str, default ("posterior",)
        How adversaries conclude: ``posterior``, by the law of the records, ``reconstruction``,
        ``majority`` or ``claims``, which take published counts as true.
    """

    workload: Workload
    stated: tuple[str, ...]
    adversaries: tuple[Adversary, ...]
    concentration: float | None = None
    more: float = 1.0
    methods: tuple[str, ...] = (POSTERIOR,)

    def __post_init__(self) -> None:
        schema = check.instance(self.workload, Workload, "workload").schema
        stated = check.texts(self.stated, "stated")
        people = tuple(check.instances(self.adversaries, Adversary, "adversaries"))
        if not stated or not people:
            raise ArgumentError("stated and adversaries must hold at least one, got none")
        names = [one.name for one in people]
        if len(set(names)) < len(names):
            raise ArgumentError(f"adversaries must have different names, got {shown(names)}")
        for name in (*stated, *(a for one in people for a in one.known)):
            schema.attribute(name)
        for one in people:
            both = sorted({*one.known} & {*stated})
            if both:
                raise ArgumentError(
                    f"stated must be none of what {one.name!r} knows, got {shown(both[0])}"
                )
        if self.concentration is not None:
            check.scalar(self.concentration, "concentration", lower=0.0, bounds="(]")
        check.scalar(self.more, "more", lower=0.0, bounds="(]")
        methods = check.texts(self.methods, "methods")
        for method in methods:
            check.choice(method, "methods", METHODS)
        if not methods or len(set(methods)) < len(methods):
            raise ArgumentError(
                f"methods must be at least one, each of them once, got {shown(list(methods))}"
            )
        object.__setattr__(self, "methods", tuple(methods))
        object.__setattr__(self, "stated", tuple(stated))
        object.__setattr__(self, "adversaries", people)
        if len(self.values) > _MAX_VALUES:
            raise ArgumentError(
                f"stated must have at most {_MAX_VALUES} combinations of values, "
                f"got {len(self.values)}"
            )

    @functools.cached_property
    def values(self) -> list[str]:
        """The statements, in words."""
        schema = self.workload.schema
        texts = [""]
        for name in self.stated:
            attribute = schema.attribute(name)
            labels = attribute.labels or [
                f"{name} {code}" for code in range(attribute.first, attribute.last + 1)
            ]
            texts = [
                f"{text}, {label}" if text else str(label) for text in texts for label in labels
            ]
        return texts

    @functools.cached_property
    def value_of_cell(self) -> IntArray:
        """Which statement is true of a record of every cell of the schema."""
        schema = self.workload.schema
        found = np.zeros(schema.size, np.int64)
        for name in self.stated:
            found = found * schema.attribute(name).size + self._index[name]
        return found

    @functools.cached_property
    def _index(self) -> dict[str, IntArray]:
        """Code of every attribute in every cell of the schema, counted from 0."""
        schema = self.workload.schema
        return schema.indices(np.arange(schema.size, dtype=np.int64))

    def asked(self, adversary: Adversary, cell: int) -> Asked:
        """Return what is asked of a target with a record of a cell."""
        possible = np.ones(self.workload.schema.size, np.bool_)
        for name in adversary.known:
            possible &= self._index[name] == self._index[name][cell]
        return Asked(possible, self.value_of_cell, len(self.values))
