"""Base classes of mechanisms, with one way to make a release and one rule about entropy."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.display import html, several
from bayesrisk._base.randomness import generator
from bayesrisk.accounting.budget import positive
from bayesrisk.exceptions import ArgumentError, PluginError, quote
from bayesrisk.mechanisms.samplers import stated_samplers
from bayesrisk.release import MechanismSpec, Release, TrueCounts
from bayesrisk.release.specification import law_words
from bayesrisk.tables import Microdata, PublishedTables, Records, Schema, Table, Workload, tabulate
from bayesrisk.tables.cells import CellSpace, code_kinds
from bayesrisk.tables.microdata import OCCUPIED, as_microdata
from bayesrisk.tables.published import marked
from bayesrisk.tables.schema import FRAME_PLACES
from bayesrisk.tables.workload import Key

_V = TypeVar("_V")


@dataclass(frozen=True)
class Dial:
    """The parameter that a search varies to make a mechanism protect more.

    A mechanism declares it as the class attribute ``dial``. A search varies it until the protection
    suffices. The author of the mechanism states that more of it protects more, and the search
    checks this.

    Attributes
    ----------
    name : str
        Name of the parameter.
    strongest, weakest : float
        Ends of the default search range, > 0.
    whole : bool, default False
        Whether values are whole numbers.

    Examples
    --------
    >>> from bayesrisk.mechanisms import Rounding
    >>> Rounding.dial
    Dial(name='base', strongest=100.0, weakest=2.0, whole=True)
    """

    name: str
    strongest: float
    weakest: float
    whole: bool = False


@dataclass(frozen=True, eq=False)
class Protected:
    """Protected tables of one run, with public facts about it.

    Attributes
    ----------
    tables : PublishedTables
        The protected counts.
    spec : MechanismSpec, optional
        The spec of this run, if it says more than the mechanism's, which is the default.
    diagnostics : mapping of str to float
        Public facts about the run.
    """

    tables: PublishedTables
    spec: MechanismSpec | None = None
    diagnostics: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check.instance(self.tables, PublishedTables, "Protected: tables")
        if self.spec is not None:
            check.instance(self.spec, MechanismSpec, "Protected: spec")


def check_unlisted(spec: MechanismSpec) -> None:
    """Raise if noise would be released without a public list of places."""
    if all(isinstance(part, TrueCounts) for part in (spec.others, *spec.tables.values())):
        return
    raise ArgumentError(
        "places",
        "must be given where records come without a public list of them",
        shown=f"none: the tables of {spec.mechanism!r} would list a place because somebody lives "
        "there; give the codes of all places, microdata with their blocks, or "
        f"{OCCUPIED!r} to publish which places have a record",
    )


class BaseMechanism(ABC):
    """Base of mechanisms: a subclass writes ``_protect``, and this class does the rest.

    ``_protect(microdata, workload, rng)`` gets the confidential records, a checked workload and a
    generator, the only source of its draws. It returns :class:`Protected`.

    Parameters
    ----------
    spec : MechanismSpec
        Specification of the mechanism.

    Examples
    --------
    >>> from bayesrisk.mechanisms import BaseMechanism, Protected
    >>> from bayesrisk.release import MechanismSpec, TrueCounts
    >>> from bayesrisk.tables import tabulate
    >>> from bayesrisk.tables.microdata import as_microdata
    >>> class AsItIs(BaseMechanism):
    ...     def __init__(self):
    ...         super().__init__(MechanismSpec("as-it-is", others=TrueCounts()))
    ...     def _protect(self, microdata, workload, rng):
    ...         return Protected(tabulate(as_microdata(microdata), workload))
    >>> AsItIs()
    AsItIs()
    """

    #: The parameter that a search may turn, where there is one.
    dial: ClassVar[Dial | None] = None
    #: Position, among the published levels, of the one whose places are each protected by itself:
    #: 0 the coarsest, where every count is looked at alone; -1 the finest, where tables are sums.
    grain: ClassVar[int | None] = None
    #: Diagnostics that add up over places; others are the same in each place, or its own.
    totals: ClassVar[tuple[str, ...]] = ()

    def __init__(self, spec: MechanismSpec) -> None:
        self._spec = spec

    def acts_within(self, workload: Workload) -> str | None:
        """Return the level whose places are protected independently of each other, or None.

        The published counts of a place of this level, and of the places inside it, do not depend on
        anything outside. A published table of a coarser level is the sum over these places. So a
        release may be made place by place (:class:`~bayesrisk.experiments.by_place.ReleaseStudy`).

        Examples
        --------
        >>> from bayesrisk.mechanisms import Rounding
        >>> from bayesrisk.tables import Workload
        >>> tables = Workload.named("sf1-tract", levels=["county", "tract"])
        >>> Rounding(base=3, method="random").acts_within(tables)
        'county'
        """
        levels = check.instance(workload, Workload, "workload").levels
        return None if self.grain is None else levels[self.grain]

    def published(self, workload: Workload) -> Workload:
        """Return the tables that are published when a workload is requested; by default all."""
        return check.instance(workload, Workload, "workload")

    def for_neighbours(self) -> Self:
        """Return the mechanism with caches for data sets that differ in few records.

        Its releases are the same as this mechanism's, but shared work may be done once.
        """
        return self

    @property
    def spec(self) -> MechanismSpec:
        """Specification of the mechanism; that of a release may say more."""
        return self._spec

    def __repr__(self) -> str:
        settings = (f"{name}={quote(value)}" for name, value in self.spec.parameters.items())
        return f"{type(self).__name__}({', '.join(settings)})"

    def _answer(self) -> list[str]:
        spec, named = self.spec, [f"{a} {b}" for a, b in self.spec.tables]
        laws = dict.fromkeys(law_words(law) for law in spec.tables.values())
        words = f"{several(laws)} ({several(named)})" if named else law_words(spec.others)
        return [repr(self), f"Published: {words}."]

    _repr_html_ = html

    def release(
        self,
        microdata: Microdata | Records,
        *,
        workload: Workload,
        rng: np.random.Generator | int | None = None,
        places: ArrayLike | None = None,
    ) -> Release:
        """Return the workload's tables, protected, with the law of each.

        Parameters
        ----------
        microdata : Microdata or Records
            The records.
        workload : Workload
            Tables to publish.
        rng : Generator or int, optional
            By default fresh entropy of the operating system that is kept nowhere. A generator or a
            seed is for simulation, and the release says so (``simulation``): a seed can be guessed.
        places : array_like of str, optional
            The public list of places, codes of one level no coarser than the tables'; by default
            the ``blocks`` of microdata. ``"occupied"`` publishes the places with a record, and the
            spec says so. Any mechanism then reveals where a single person lives.

        Raises
        ------
        DataError
            If the records contradict each other or public facts.
        """
        random = _chance(rng, self.spec)  # a bad seed is refused before the work
        data, listed = self._placed(microdata, workload, places)
        protected = self._protect(data, workload, random)
        spec = replace(self.spec, places=listed)
        return _released(protected, spec, simulation=rng is not None, made_up=data.made_up)

    def _placed(
        self, microdata: Microdata | Records, workload: Workload, places: ArrayLike | None
    ) -> tuple[Microdata, str]:
        """Return the records with the list of published places, and the source of that list."""
        check.instance(workload, Workload, "workload")
        data, listed = as_microdata(microdata), "public"
        if places is not None:
            listed = OCCUPIED if isinstance(places, str) and places == OCCUPIED else listed
        elif data.blocks is not None:
            data.check_places()
            return data, listed
        elif workload.schema.geography.width(workload.levels[-1]) == 0:
            places = [""]  # the one place, whoever lives there
        elif named := workload.schema.geography.codes:
            places = [*named.values()]  # the schema names them all
            if workload.schema.geography.name == FRAME_PLACES:  # because somebody lives there
                listed = OCCUPIED
        else:
            check_unlisted(self.spec)
            return data, OCCUPIED
        return data.with_places(places), listed

    @abstractmethod
    def _protect(
        self, microdata: Microdata | Records, workload: Workload, rng: np.random.Generator
    ) -> Protected:
        """Return the protected tables; all randomness comes from ``rng``."""


class BasePrepared(ABC):
    """Releases of one truth, ready to be drawn many times; confidential."""

    spec: MechanismSpec
    _made_up = False  # whether the truth is

    def draw(self, rng: np.random.Generator | int | None = None) -> Release:
        """Return one release, the same that the mechanism's ``release`` gives for ``rng``."""
        protected = self._draw(_chance(rng, self.spec))
        return _released(protected, self.spec, simulation=rng is not None, made_up=self._made_up)

    @abstractmethod
    def _draw(self, rng: np.random.Generator) -> Protected:
        """Return the protected tables; all randomness comes from ``rng``."""


P = TypeVar("P", bound=BasePrepared)


class PreparingMechanism(BaseMechanism, Generic[P]):
    """Base of mechanisms that prepare many releases of one truth: a subclass has ``_prepare``."""

    def prepare(
        self, microdata: Microdata | Records, *, workload: Workload, places: ArrayLike | None = None
    ) -> P:
        """Return the non-random part of releases, for many draws from one truth.

        The result's ``draw(rng)`` is ``release(microdata, workload=workload, rng=rng,
        places=places)``.
        """
        data, listed = self._placed(microdata, workload, places)
        prepared = self._prepare(data, workload)
        prepared = replace(prepared, spec=replace(prepared.spec, places=listed))  # type: ignore[type-var]
        object.__setattr__(prepared, "_made_up", data.made_up)
        return prepared

    @abstractmethod
    def _prepare(self, microdata: Microdata, workload: Workload) -> P:
        """Return the non-random part of releases of the listed places."""

    def _protect(
        self, microdata: Microdata | Records, workload: Workload, rng: np.random.Generator
    ) -> Protected:
        return self._prepare(as_microdata(microdata), workload)._draw(rng)


def _chance(rng: np.random.Generator | int | None, spec: MechanismSpec) -> np.random.Generator:
    """Return the generator of a release; a seed is refused where a vetted sampler is named."""
    if rng is not None and (named := stated_samplers(spec.parameters)):
        raise ArgumentError(
            "rng",
            f"must be None with the sampler {min(named)!r}, which nobody can repeat",
            got=rng,
            advice=": for a simulation leave the sampler out",
        )
    return generator(rng, optional=True)


def _released(
    protected: Protected, usual: MechanismSpec, *, simulation: bool, made_up: bool
) -> Release:
    """Return the release, with a spec that names exactly the published tables."""
    if not isinstance(protected, Protected):
        raise PluginError(
            f"mechanism {usual.mechanism!r} failed: what protects must return Protected(tables), "
            f"got {quote(protected)}"
        )
    spec = (usual if protected.spec is None else protected.spec).for_tables(protected.tables.counts)
    spec = replace(spec, places=usual.places)
    tables = marked(protected.tables) if made_up else protected.tables
    return Release(spec, tables, protected.diagnostics, simulation=simulation)


# What mechanisms share: the true tables of a workload, and how often a record counts in one.


_MAX_CLASSES = 2**22


class TableMechanism(PreparingMechanism["PreparedTables"]):
    """Base of mechanisms that use the true tables only, tabulated once for many releases."""

    def _prepare(self, microdata: Microdata, workload: Workload) -> "PreparedTables":
        self._check(workload)
        return PreparedTables(self.spec, self, tabulate(microdata, workload))

    def _check(self, workload: Workload) -> None:
        """Raise if the parameters do not fit the workload; by default any workload is allowed."""

    @abstractmethod
    def _protect_tables(self, tables: PublishedTables, rng: np.random.Generator) -> Protected:
        """Return the protected tables; all randomness comes from ``rng``."""


@dataclass(frozen=True, eq=False)
class PreparedTables(BasePrepared):
    """Releases of one truth by a mechanism that uses its tables only."""

    spec: MechanismSpec  # of the releases
    mechanism: TableMechanism
    truth: PublishedTables  # the true counts

    def _draw(self, rng: np.random.Generator) -> Protected:
        return self.mechanism._protect_tables(self.truth, rng)


def census_level(level: str) -> str:
    """Return the geography's name for a level of the 2020 allocations."""
    return "nation" if level == "US" else level.lower()


def filled_mapping(value: object, name: str) -> Mapping[Any, Any]:
    """Return a mapping after checking that it is not empty."""
    mapping = check.mapping(value, name)
    if not mapping:
        raise ArgumentError(name, "must not be empty")
    return mapping


def positive_parts(value: object, name: str) -> dict[str, Fraction]:
    """Return checked exact numbers > 0 by name, at least one."""
    parts = filled_mapping(value, name).items()
    return {str(key): positive(part, f"{name}[{key!r}]") for key, part in parts}


def by_level(values: Mapping[Key, _V]) -> dict[str, dict[str, _V]]:
    """Return the values of tables by level and name."""
    nested: dict[str, dict[str, _V]] = {}
    for (level, table), value in values.items():
        nested.setdefault(level, {})[table] = value
    return nested


def different_cells(schema: Schema, tables: list[Table]) -> NDArray[np.int64]:
    """Return one schema cell for each kind of record that the tables distinguish."""
    space = CellSpace(
        schema, {a.name: code_kinds(tables, a.name, a.size) for a in schema.attributes}
    )
    if space.size > _MAX_CLASSES:
        raise ArgumentError(
            "tables",
            f"of the workload must tell at most {_MAX_CLASSES} kinds of records apart",
            shown=space.size,
        )
    return space.representatives()


def most_cells(schema: Schema, table: Table, *, norm: int) -> int:
    """Return the largest sum, over a table's cells, of one record's weights to the power ``norm``.

    With weights 0 and 1 it is the number of cells that one record counts in.
    """
    weights = table.incidence(schema, different_cells(schema, [table]))
    return int((weights.power(norm)).sum(axis=0).max())
