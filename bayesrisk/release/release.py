"""A release: the tables that cross from the custodian to everybody else, and what protects them.

It holds no seed, no record and no unprotected count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from bayesrisk._base import disk, validation as check
from bayesrisk._base.display import displayed, several, short
from bayesrisk._version import __version__
from bayesrisk.distributions.base import NoiseLaw
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, quote
from bayesrisk.release.words import PLACES, law_words
from bayesrisk.tables import PopulationChange, exchange
from bayesrisk.tables.exchange import ABOVE, MANIFEST, PARTITIONS, Partitions
from bayesrisk.tables.likelihoods import (
    KINDS,
    Likelihood,
    NoiseSpec,
    SimulationOnly,
    TrueCounts,
    plain,
    read_likelihood,
    same_keys,
)
from bayesrisk.tables.linked import HouseholdLink
from bayesrisk.tables.published import PublishedTables, by_release, under_laws

# -----------------------------------------------------------------------------
# Specifications of mechanisms: enough for anyone to write the likelihood of a release.
#
# A specification holds the likelihood of every published table as data, so that nobody has to know
# a mechanism by name to read what it made.

_SPEC_KEYS = {"mechanism", "parameters", "tables", "others", "places"}
_PLACES = ("public", "occupied")

#: A table at a level of the geography: ``(level, table)``.
Key = tuple[str, str]


@displayed
@dataclass(frozen=True)
class MechanismSpec:
    """The specification of a mechanism, as public as the tables it made.

    Attributes
    ----------
    mechanism : str
        Name in the registry.
    parameters : mapping
        Keyword arguments that build the mechanism again, in the types of JSON; exact fractions
        are strings such as ``"165/4099"``.
    tables : mapping of (level, table) to Likelihood
        What a count of the table says about the true one: :class:`TrueCounts`,
        :class:`NoiseSpec`, :class:`RoundingSpec`, :class:`RangeSpec`, :class:`SuppressedCounts`
        or :class:`SimulationOnly`.  The spec of a release names every published table.
    others : Likelihood, default SimulationOnly()
        The same, for every table that is not named.
    places : {"public", "occupied"}, optional
        Where the list of the published places comes from, of the spec of a release: a public list,
        or who lives where.  The second is a fact about the records that is published exactly.

    Examples
    --------
    >>> from bayesrisk.release import NoiseSpec, RoundingSpec
    >>> spec = MechanismSpec(
    ...     "mine", {"base": 5}, {("block", "total"): NoiseSpec("discrete-gaussian", 5)},
    ...     others=RoundingSpec(5, "nearest"),
    ... )
    >>> spec.likelihood("block", "total")
    NoiseSpec(law='discrete-gaussian', scale=Fraction(5, 1))
    >>> spec.likelihood("block", "sex")
    RoundingSpec(base=5, method='nearest')
    >>> MechanismSpec.from_dict(spec.to_dict()) == spec
    True
    """

    mechanism: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[Key, Likelihood] = field(default_factory=dict)
    others: Likelihood = field(default_factory=SimulationOnly)
    places: str | None = None

    def __post_init__(self) -> None:
        check.text(self.mechanism, "mechanism")
        if self.places is not None:
            check.choice(self.places, "places", _PLACES)
        check.mapping(self.parameters, "parameters")
        for key, entry in check.mapping(self.tables, "tables").items():
            texts = isinstance(key, tuple) and all(isinstance(part, str) for part in key)
            if not texts or len(key) != 2:
                raise ArgumentTypeError("tables", "must name (level, table)", got=key)
            _check_likelihood(entry, f"tables[{key!r}]")
        _check_likelihood(self.others, "others")
        object.__setattr__(self, "parameters", plain(self.parameters, "parameters"))
        object.__setattr__(self, "tables", dict(self.tables))

    @property
    def noise(self) -> dict[Key, NoiseSpec]:
        """Law of the noise of each named table that has independent noise in every cell."""
        return {key: part for key, part in self.tables.items() if isinstance(part, NoiseSpec)}

    @property
    def invariants(self) -> tuple[Key, ...]:
        """Named tables that are published as they are, with nothing withheld."""
        return tuple(key for key, part in self.tables.items() if isinstance(part, TrueCounts))

    @property
    def true_counts(self) -> bool:
        """Whether every count that is published, of whatever table, is the true one."""
        return self.others.exact and all(part.exact for part in self.tables.values())

    def likelihood(self, level: str, table: str) -> Likelihood:
        """Return the likelihood of a published count of a table: its own, or ``others``."""
        key = check.text(level, "level"), check.text(table, "table")
        return self.tables.get(key, self.others)

    def law(self, level: str, table: str) -> NoiseLaw | None:
        """Return the law of released minus true count in the cells of a table.

        None where the noise is not independent of the count or of other cells, or there is none.
        """
        likelihood = self.likelihood(level, table)
        return likelihood.to_law() if isinstance(likelihood, NoiseSpec) else None

    def for_tables(self, keys: Iterable[Key]) -> Self:
        """Return the spec with the likelihood of these published tables, every one named."""
        wanted = list(keys)
        if set(wanted) == set(self.tables):
            return self
        return replace(self, tables={key: self.likelihood(*key) for key in wanted})

    def to_dict(self) -> dict[str, Any]:
        """Return the spec in the types of JSON, as :meth:`from_dict` reads it."""
        return {
            "mechanism": self.mechanism,
            "parameters": plain(self.parameters, "parameters"),
            "tables": [
                {"level": level, "table": table, **part.to_dict()}
                for (level, table), part in self.tables.items()
            ],
            "others": self.others.to_dict(),
            "places": self.places,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, source: str = "spec document") -> Self:
        """Return the spec that :meth:`to_dict` wrote; messages call it ``source``."""
        check.text(source, "source")
        same_keys(document, _SPEC_KEYS, source)
        try:
            tables: dict[Key, Likelihood] = {}
            for row in document["tables"]:
                part = dict(row)
                key = part.pop("level", None), part.pop("table", None)
                if key in tables:
                    raise DataError(f"{source}.tables: {key!r} is there twice")
                tables[key] = read_likelihood(part, f"{source}.tables")
            default = read_likelihood(document["others"], f"{source}.others")
            mechanism, parameters = document["mechanism"], document["parameters"]
            return cls(mechanism, parameters, tables, default, document["places"])
        except (ArgumentError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{source}: {error}") from error


def _check_likelihood(value: object, name: str) -> None:
    """Refuse what files cannot hold: what is written must be readable by anybody."""
    if type(value) not in KINDS.values():
        raise ArgumentTypeError(
            name, "must be a likelihood, such as TrueCounts() or a NoiseSpec", got=value
        )


# -----------------------------------------------------------------------------
# What ``_release.json`` says: of a release in one folder, and of one by place.
#
# In one folder, it names the manifest of the tables by its digest, and the manifest names what it
# says: neither is read beside another.  By place, each part is an ordinary folder of a release.
# ``_release.json`` beside them says the same of all, and names the index of the parts and the
# ``_release.json`` of each by their digests: so a reader of one part can tell that it is whole, and
# what protects it.


#: Readers of Parquet folders pass over names that start with an underscore.
RELEASE_FILE = "_release.json"
_FORMAT = 4
README = "README.txt"
_KEYS = {"format", "version", "simulation", "spec", "diagnostics"}
_TABLES, _FILES = {"tables"}, "files"
_MORE = {"partitions", "releases"}


def release_document(
    spec: MechanismSpec, diagnostics: Mapping[str, float], *, simulation: bool
) -> dict[str, Any]:
    """Return the description of a release."""
    return {
        "format": _FORMAT,
        "version": __version__,
        "simulation": simulation,
        "spec": spec.to_dict(),
        "diagnostics": dict(diagnostics),
    }


def place_document(
    document: Mapping[str, Any], partitions: str, releases: Mapping[str, str]
) -> bytes:
    """Return the description of a release by place: of all, with digests of index and parts."""
    return disk.sealed({**document, "partitions": partitions, "releases": dict(releases)})


def read_document(file: Path, more: set[str] = _TABLES) -> dict[str, Any]:
    """Return the description of a release, its seal, format and keys checked."""
    document: dict[str, Any] = disk.read_document(file)
    if document.get("format", _FORMAT) != _FORMAT:
        raise DataError(
            f"{file}: format must be {_FORMAT}, got {quote(document['format'])}, which another "
            "version of bayesrisk wrote; the page Migration says how it is read, nothing drawn anew"
        )
    keys = _KEYS | more | ({_FILES} & set(document) if more == _TABLES else set())
    same_keys(document, keys, str(file))
    return document


def check_bound(file: Path, document: Mapping[str, Any]) -> None:
    """Refuse a description that is not that of the tables beside it, whichever was changed."""
    manifest = file.parent / MANIFEST
    disk.check_digest(manifest, str(document["tables"]), RELEASE_FILE)
    named = disk.read_document(manifest).get("release")
    if named != disk.document_digest({key: document[key] for key in _KEYS}):
        raise DataError(f"{file}: is not the description that {MANIFEST} names")
    listing = check.mapping(document.get(_FILES, {}), f"{file}: {_FILES}")
    for name, digest in listing.items():
        if name != README and not re.fullmatch(rf"{exchange.CSV_FOLDER}/[\w-]+\.csv", str(name)):
            raise DataError(f"{file}: {_FILES} must be {README} and tables, got {quote(name)}")
        disk.check_digest(file.parent / name, str(digest), RELEASE_FILE)


@dataclass(frozen=True, eq=False)
class ReleaseIndex:
    """A release by place, of which parts are read."""

    partitions: Partitions  # the index of its tables
    document: Mapping[str, Any]  # the description of all parts
    #: By code of a part, and ``above``, the SHA-256 of its own ``_release.json``.
    releases: Mapping[str, str]
    digest: str  # SHA-256 of ``_release.json``, which all other digests follow from

    def checked(self, code: str) -> Path:
        """Return the folder of a part whose tables and description are those that are listed."""
        folder = self.partitions.checked(code)
        disk.check_digest(folder / RELEASE_FILE, self.releases[code], RELEASE_FILE)
        return folder

    @staticmethod
    def exists(folder: Path) -> bool:
        """Return whether a folder is a release by place."""
        return Partitions.there(folder) and (folder / RELEASE_FILE).exists()

    @classmethod
    def read(cls, folder: Path) -> ReleaseIndex:
        """Return the index of a folder, everything but the parts checked."""
        file = folder / RELEASE_FILE
        document = read_document(file, _MORE)
        disk.check_digest(folder / PARTITIONS, str(document["partitions"]), RELEASE_FILE)
        partitions = Partitions.read(folder, "tables")
        releases = document["releases"]
        names = {*partitions.digests, *([ABOVE] if partitions.above else [])}
        if not isinstance(releases, dict) or set(releases) != names:
            raise DataError(f"{file}: releases must be digests of the parts of {PARTITIONS}")
        return cls(partitions, document, releases, disk.digest(file))


@displayed
@dataclass(frozen=True)
class Release:
    """Published tables with the spec of what protects them.

    Attributes
    ----------
    spec : MechanismSpec
        What was done, with the likelihood of every published table: a table that the given spec
        does not name has that of its ``others``.
    tables : PublishedTables
        The counts, with the laws that the spec gives them.
    diagnostics : mapping of str to float
        Public facts about the run, such as the budget that its noise spends.
    simulation : bool, default True
        True unless the draws came from fresh entropy of the operating system, which only the
        mechanism can say. Noise from a seed that somebody may guess protects nothing: a release
        that does not say otherwise makes no claim of protection.
    """

    spec: MechanismSpec
    tables: PublishedTables
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    simulation: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.spec, MechanismSpec):
            raise ArgumentTypeError("spec", "must be a MechanismSpec", got=self.spec)
        if not isinstance(self.tables, PublishedTables):
            raise ArgumentTypeError("tables", "must be PublishedTables", got=self.tables)
        for key in self.spec.tables:
            if key not in self.tables.counts:
                raise ArgumentError(f"spec.tables names {key!r}, which is not released")
        object.__setattr__(self, "spec", self.spec.for_tables(self.tables.counts))
        laws = {key: law for key, law in self.spec.tables.items() if not law.plain}
        object.__setattr__(self, "tables", under_laws(self.tables, laws))
        object.__setattr__(self, "simulation", check.flag(self.simulation, "simulation"))
        values = {
            check.text(name, "diagnostics"): check.scalar(value, f"diagnostics[{name!r}]")
            for name, value in check.mapping(self.diagnostics, "diagnostics").items()
        }
        object.__setattr__(self, "diagnostics", values)

    def _answer(self) -> list[str]:
        parameters = ", ".join(f"{k} {short(v)}" for k, v in self.spec.parameters.items())
        laws: dict[str, list[str]] = {}
        for key, law in self.spec.tables.items():
            text = law_words(law, self.tables.hidden(*key).nnz)
            laws.setdefault(text, []).append(f"{key[0]} {key[1]}")
        seed = ["A simulation: whoever guesses the seed takes the protection off."]
        return [
            *seed * self.simulation,
            f"{self.spec.mechanism}: {parameters or 'no parameters'}.",
            *self.tables._answer(),
            *(f"{several(names, 4)}: {text}." for text, names in list(laws.items())[:4]),
        ]

    def _shown_frame(self) -> Any:
        return self.tables._shown_frame()

    def write(self, folder: str | Path, *, replace: bool = False, readable: bool = True) -> Path:
        """Write the tables in the exchange form, with ``_release.json`` beside them.

        Each of the two names the other by its digest.  ``readable`` adds what is handed over to
        people: every table as ``tables/NAME.csv``, with labels and names of places, and
        ``README.txt``, which says what is exact, what is random and how to check it.

        The folder, new or empty, or one with a release or tables that ``replace`` permits to
        replace, appears whole or not at all.
        """
        target, replaced = check.path(folder, "folder"), check.flag(replace, "replace")
        document = release_document(self.spec, self.diagnostics, simulation=self.simulation)

        def check_folder(folder: Path) -> None:
            if replaced:
                also = (RELEASE_FILE, README, exchange.CSV_FOLDER)
                exchange.check_folder(folder, replace=True, also=also)
            else:
                disk.new_folder(folder)

        with disk.whole_folder(target, check_folder) as scratch:
            described = disk.document_digest(document)
            exchange.fill(self.tables.content, scratch, release=described)
            bound = {**document, "tables": disk.digest(scratch / MANIFEST)}
            if readable:
                files = exchange.write_csv(self.tables.content, scratch)
                disk.write_bytes(scratch / README, _readme(self, files).encode())
                bound[_FILES] = {name: disk.digest(scratch / name) for name in (README, *files)}
            disk.write_bytes(scratch / RELEASE_FILE, disk.sealed(bound))
        return target

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """Return the release that :meth:`write` wrote, of all parts if by place."""
        source = check.path(folder, "folder")
        file = source / RELEASE_FILE
        if Partitions.there(source):
            index = ReleaseIndex.read(source)
            for name in index.releases:
                index.checked(name)
            document = index.document
        else:
            document = read_document(file)
        spec = MechanismSpec.from_dict(document["spec"], source=f"{file}: spec")
        try:
            tables, diagnostics = PublishedTables.read(source), document["diagnostics"]
            release = cls(spec, tables, diagnostics, simulation=document["simulation"])
        except DataError:
            raise
        except (ArgumentError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{file}: {error}") from error
        if "tables" in document:
            check_bound(file, document)
        return release

    @classmethod
    def combine(
        cls,
        releases: Mapping[str, Release] | Sequence[Release],
        *,
        change: PopulationChange | None = None,
        link: HouseholdLink | None = None,
    ) -> Self:
        """Return several releases of the same people as one.

        Chance of each has no part in another, so that the likelihood of all is the product of those
        of each.  Tables and places are those of :meth:`PublishedTables.combine`.

        Its mechanism is ``composition``; ``parameters["releases"]`` has the mechanism of each.

        Parameters
        ----------
        releases : mapping of str to Release, or sequence of them
            Releases of one schema by name; those of a sequence are called by their numbers.
        change : PopulationChange, optional
            Law of change between two years, of which each release is of one.
        link : HouseholdLink, optional
            Where some are of persons and some of their households.
        """
        parts = by_release(releases, Release)
        tables = PublishedTables.combine(
            {name: part.tables for name, part in parts.items()}, change=change, link=link
        )
        laws = {
            (level, f"{name}: {table}"): law
            for name, part in parts.items()
            for (level, table), law in part.spec.tables.items()
        }
        mechanisms = {
            name: {"mechanism": part.spec.mechanism, "parameters": part.spec.parameters}
            for name, part in parts.items()
        }
        listed = [part.spec.places for part in parts.values()]
        places = next((place for place in ("occupied", "public") if place in listed), None)
        spec = MechanismSpec(
            "composition",
            {"releases": mechanisms},
            {key: laws[key] for key in tables.counts},
            places=places,
        )
        diagnostics = {
            f"{name}: {fact}": value
            for name, part in parts.items()
            for fact, value in part.diagnostics.items()
        }
        simulation = any(part.simulation for part in parts.values())
        return cls(spec, tables, diagnostics, simulation=simulation)


def _chance_words(release: Release) -> str:
    """Return who drew the random numbers of a release."""
    if not any(law.random for law in release.spec.tables.values()):
        return "Nothing is random: the same records would give the same release."
    sampler = release.spec.parameters.get("sampler") or "NumPy"
    if release.simulation:
        return f"{sampler}, from a seed. A simulation: whoever guesses the seed takes it off."
    return f"{sampler}, from entropy of the operating system that is kept nowhere."


def _readme(release: Release, files: Mapping[str, str]) -> str:
    """Return the text that lies beside a release; ``files`` has its tables by their files."""
    tables, spec = release.tables, release.spec
    laws: dict[tuple[bool, str], list[str]] = {}
    for key, law in spec.tables.items():
        words = law_words(law, tables.hidden(*key).nnz)
        laws.setdefault((law.exact, words), []).append(" ".join(key))
    exact, other = (
        [f"  {several(names, 20)}: {law}" for (one, law), names in laws.items() if one is wanted]
        for wanted in (True, False)
    )
    places = ", ".join(f"{len(codes):,} at {level}" for level, codes in tables.geoids.items())
    settings = ", ".join(f"{name} {value}" for name, value in spec.parameters.items())
    parts = {
        "A release of protected tables": [
            *["Made up: none of these people exists."] * tables.made_up
        ],
        "The tables": [
            *(f"  {file}: {table}" for file, table in files.items()),
            "A row is a count of a cell at a place. A count of 0 is written as 0, an empty one is",
            "withheld. Tables of more than 131,072 counts at a level leave out counts of 0.",
            "The same counts, for programs: part-*.parquet.",
        ],
        "How they are protected": [f"  {spec.mechanism}: {settings or 'no parameters'}"],
        "What is exact": [f"  the list of places ({places}): {PLACES[spec.places]}", *exact],
        "What is not exact, and its law": other or ["  nothing"],
        "Who drew": [f"  {_chance_words(release)}"],
        "How to check it": [
            "  pip install bayesrisk-disclosure, then bayesrisk verify FOLDER: every file must be",
            "  the one that _release.json names, this one too.",
        ],
    }
    blocks = ["\n".join([title, "-" * len(title), *lines]) for title, lines in parts.items()]
    return "\n\n".join(blocks) + "\n"
