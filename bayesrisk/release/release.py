"""A release: the tables that cross from the custodian to everybody else, and what protects them.

It holds no seed, no record and no unprotected count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.release.spec import MechanismSpec
from bayesrisk.tables import PopulationChange, exchange
from bayesrisk.tables.exchange import ABOVE, MANIFEST, PARTITIONS, Partitions
from bayesrisk.tables.likelihoods import same_keys
from bayesrisk.tables.linked import HouseholdLink
from bayesrisk.tables.published import PublishedTables, by_release, under_laws

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
_KEYS = {"format", "version", "simulation", "spec", "diagnostics"}
_TABLES = {"tables"}
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
    return _files.sealed({**document, "partitions": partitions, "releases": dict(releases)})


def read_document(file: Path, more: set[str] = _TABLES) -> dict[str, Any]:
    """Return the description of a release, its seal, format and keys checked."""
    document: dict[str, Any] = _files.read_document(file)
    if document.get("format", _FORMAT) != _FORMAT:
        raise DataError(
            f"{file}: format must be {_FORMAT}, got {shown(document['format'])}, which another "
            "version of bayesrisk wrote: release the records again"
        )
    same_keys(document, _KEYS | more, str(file))
    return document


def check_bound(file: Path, document: Mapping[str, Any]) -> None:
    """Refuse a description that is not that of the tables beside it, whichever was changed."""
    manifest = file.parent / MANIFEST
    _files.check_digest(manifest, str(document["tables"]), RELEASE_FILE)
    named = _files.read_document(manifest).get("release")
    if named != _files.document_digest({key: document[key] for key in _KEYS}):
        raise DataError(f"{file}: is not the description that {MANIFEST} names")


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
        _files.check_digest(folder / RELEASE_FILE, self.releases[code], RELEASE_FILE)
        return folder

    @staticmethod
    def there(folder: Path) -> bool:
        """Return whether a folder is a release by place."""
        return Partitions.there(folder) and (folder / RELEASE_FILE).exists()

    @classmethod
    def read(cls, folder: Path) -> ReleaseIndex:
        """Return the index of a folder, everything but the parts checked."""
        file = folder / RELEASE_FILE
        document = read_document(file, _MORE)
        _files.check_digest(folder / PARTITIONS, str(document["partitions"]), RELEASE_FILE)
        partitions = Partitions.read(folder, "tables")
        releases = document["releases"]
        names = {*partitions.digests, *([ABOVE] if partitions.above else [])}
        if not isinstance(releases, dict) or set(releases) != names:
            raise DataError(f"{file}: releases must be digests of the parts of {PARTITIONS}")
        return cls(partitions, document, releases, _files.digest(file))


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
        Public facts about the run, such as the realised swap rate where it is published.
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
            raise ArgumentTypeError(f"spec must be a MechanismSpec, got {shown(self.spec)}")
        if not isinstance(self.tables, PublishedTables):
            raise ArgumentTypeError(f"tables must be PublishedTables, got {shown(self.tables)}")
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

    def write(self, folder: str | Path, *, replace: bool = False) -> Path:
        """Write the tables in the exchange form, with ``_release.json`` beside them.

        Each of the two names the other by its digest.  The folder, new or empty, or one with a
        release or tables that ``replace`` permits to replace, appears whole or not at all.
        """
        target, replaced = check.path(folder, "folder"), check.flag(replace, "replace")
        document = release_document(self.spec, self.diagnostics, simulation=self.simulation)

        def check_folder(given: Path) -> None:
            if replaced:
                exchange.check_folder(given, replace=True, also=RELEASE_FILE)
            else:
                _files.new_folder(given)

        with _files.whole_folder(target, check_folder) as made:
            described = _files.document_digest(document)
            exchange.fill(self.tables.content, made, release=described)
            bound = {**document, "tables": _files.digest(made / MANIFEST)}
            _files.write_bytes(made / RELEASE_FILE, _files.sealed(bound))
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
            tables, found = PublishedTables.read(source), document["diagnostics"]
            made = cls(spec, tables, found, simulation=document["simulation"])
        except DataError:
            raise
        except (ArgumentError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{file}: {error}") from error
        if "tables" in document:
            check_bound(file, document)
        return made

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
        given = by_release(releases, Release)
        parts = {name: part.tables for name, part in given.items()}
        tables = PublishedTables.combine(parts, change=change, link=link)
        laws = {
            (level, f"{name}: {table}"): law
            for name, part in given.items()
            for (level, table), law in part.spec.tables.items()
        }
        made = {
            name: {"mechanism": part.spec.mechanism, "parameters": part.spec.parameters}
            for name, part in given.items()
        }
        listed = [part.spec.places for part in given.values()]
        places = next((place for place in ("occupied", "public") if place in listed), None)
        spec = MechanismSpec(
            "composition",
            {"releases": made},
            {key: laws[key] for key in tables.counts},
            places=places,
        )
        diagnostics = {
            f"{name}: {fact}": value
            for name, part in given.items()
            for fact, value in part.diagnostics.items()
        }
        simulation = any(part.simulation for part in given.values())
        return cls(spec, tables, diagnostics, simulation=simulation)
