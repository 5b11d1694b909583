"""Composition: several releases of the same records, with independent randomness."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bayesrisk._base import validation as check
from bayesrisk.exceptions import ArgumentError
from bayesrisk.interfaces import Mechanism
from bayesrisk.mechanisms.base import BaseMechanism, Protected, filled_mapping
from bayesrisk.mechanisms.registry import make_mechanism
from bayesrisk.mechanisms.samplers import stated_samplers
from bayesrisk.release import MechanismSpec, Release, SimulationOnly
from bayesrisk.tables import Microdata, Records, Workload

_KEYS = {"mechanism", "parameters", "tables"}


class _Share(NamedTuple):
    """A mechanism, and the names of the tables it publishes (None: all)."""

    mechanism: Mechanism
    tables: tuple[str, ...] | None

    def share(self, workload: Workload) -> Workload:
        return workload if self.tables is None else workload.select(tables=list(self.tables))


class ReleaseComposition(BaseMechanism):
    """Publish several independent releases of the same records, as agencies do over the years.

    The result is :meth:`Release.combine` of all releases. Their draws are independent, so their
    likelihoods multiply. Budgets rho add up if all releases satisfy zero-concentrated differential
    privacy (Bun and Steinke 2016, Lemma 1.7). Table ``t`` of release ``r`` is called ``"r: t"``.

    Parameters
    ----------
    releases : mapping of str to str or mapping
        For each release the recipe of a mechanism (:func:`make_mechanism`), or a mapping. It has
        ``mechanism``, a name or recipe, and optionally ``parameters``, its keyword arguments, and
        ``tables``, the names of those it publishes; by default all.

    Examples
    --------
    >>> from bayesrisk.mechanisms import make_mechanism
    >>> both = make_mechanism("composition", releases={
    ...     "spring": {"mechanism": "rounding", "parameters": {"base": 3, "method": "nearest"}},
    ...     "autumn": "none",
    ... })
    >>> both.spec.parameters["releases"]["autumn"]
    {'mechanism': 'none', 'parameters': {}}
    """

    def __init__(self, *, releases: Mapping[str, str | Mapping[str, Any]]) -> None:
        self._parts: dict[str, _Share] = {}
        stated: dict[str, dict[str, Any]] = {}
        for name, entry in filled_mapping(releases, "releases").items():
            label = f"releases[{check.text(name, 'releases')!r}]"
            recipe = {"mechanism": entry} if isinstance(entry, str) else entry
            settings = dict(check.mapping(recipe, label))
            if "mechanism" not in settings or not set(settings) <= _KEYS:
                raise ArgumentError(
                    label,
                    "must have mechanism, and perhaps parameters and tables",
                    got=list(settings),
                )
            parameters = check.mapping(settings.get("parameters", {}), f"{label}['parameters']")
            mechanism = make_mechanism(check.text(settings["mechanism"], label), **parameters)
            names = settings.get("tables")
            tables = None if names is None else check.texts(names, f"{label}['tables']")
            self._parts[name] = _Share(mechanism, tables)
            spec = mechanism.spec
            stated[name] = settings | {"mechanism": spec.mechanism, "parameters": spec.parameters}
        specs = [part.mechanism.spec for part in self._parts.values()]
        random = any(law.random for s in specs for law in (s.others, *s.tables.values()))
        law = SimulationOnly(random)
        super().__init__(MechanismSpec("composition", {"releases": stated}, others=law))

    def acts_within(self, workload: Workload) -> str | None:
        """Return the coarsest of the releases' levels, or None if one release has none."""
        reaches = [
            part.mechanism.acts_within(part.share(workload))
            if isinstance(part.mechanism, BaseMechanism) else None
            for part in self._parts.values()
        ]  # fmt: skip
        levels = workload.schema.geography.levels
        return None if None in reaches else min(reaches, key=levels.index)

    def _protect(
        self, microdata: Microdata | Records, workload: Workload, rng: np.random.Generator
    ) -> Protected:
        releases = {}
        for name, stream in zip(self._parts, rng.spawn(len(self._parts)), strict=True):
            part = self._parts[name]
            vetted = stated_samplers(part.mechanism.spec.parameters)
            releases[name] = part.mechanism.release(
                microdata, workload=part.share(workload), rng=None if vetted else stream
            )
        joint = Release.combine(releases)
        spec = MechanismSpec("composition", self.spec.parameters, joint.spec.tables)
        return Protected(joint.tables, spec, joint.diagnostics)
