"""A release: the tables that the custodian hands out, and how they were protected.

It holds no seed, no record and no unprotected count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pandas as pd

from bayesrisk._base import disk, validation as check
from bayesrisk._base.display import displayed, several, short
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, quote
from bayesrisk.release.specification import PLACES, MechanismSpec, law_words
from bayesrisk.tables import PopulationChange, exchange
from bayesrisk.tables.exchange import ABOVE, MANIFEST, PARTITIONS, Partitions
from bayesrisk.tables.likelihoods import SimulationOnly, same_keys
from bayesrisk.tables.linked import HouseholdLink
from bayesrisk.tables.published import PublishedTables, by_release, under_laws

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
    """Return a release's description, as its file holds it."""
    return {
        "format": _FORMAT,
        "version": __version__,
        "simulation": simulation,
        "spec": spec.to_dict(),
        "diagnostics": dict(diagnostics),
    }


def read_document(file: Path, more: set[str] = _TABLES) -> dict[str, Any]:
    """Return a release's description from a file, with seal, format and keys checked."""
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
    """Raise unless a description and the tables beside it belong together, unchanged."""
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
    """Index of a release by place, from which parts are read."""

    partitions: Partitions  # the index of its tables
    document: Mapping[str, Any]  # the description of all parts
    #: By code of a part, and ``above``, the SHA-256 of its own ``_release.json``.
    releases: Mapping[str, str]
    digest: str  # SHA-256 of ``_release.json``, which all other digests follow from

    def checked(self, code: str) -> Path:
        """Return a part's folder, after checking its tables and description by their digests."""
        folder = self.partitions.checked(code)
        disk.check_digest(folder / RELEASE_FILE, self.releases[code], RELEASE_FILE)
        return folder

    @staticmethod
    def exists(folder: Path) -> bool:
        """Return whether a folder is a release by place."""
        return Partitions.there(folder) and (folder / RELEASE_FILE).exists()

    @classmethod
    def read(cls, folder: Path) -> ReleaseIndex:
        """Return a folder's index; the parts themselves are checked later."""
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
    """Published tables, and the public description of how they were made.

    Attributes
    ----------
    spec : MechanismSpec
        How the tables were protected, with the likelihood of every published table. Tables that the
        given spec does not name have the likelihood ``others``.
    tables : PublishedTables
        The counts, with the laws that the spec gives them.
    diagnostics : mapping of str to float
        Public facts about the run, such as the budget that its noise spends.
    simulation : bool, default True
        False only if the draws came from fresh entropy of the operating system, which only the
        mechanism can say. Noise from a seed that can be guessed protects nothing, so such a release
        claims no protection.
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

    def _shown_frame(self) -> pd.DataFrame:
        return self.tables._shown_frame()

    def write(self, folder: str | Path, *, replace: bool = False, readable: bool = True) -> Path:
        """Write the tables in the exchange form, with ``_release.json`` beside them.

        Tables and description name each other by digest. ``readable`` adds files for people. They
        are ``tables/NAME.csv`` for every table, with labels and names of places, and
        ``README.txt``. That file says what is exact, what is random, and how to check it.

        The folder must be new or empty, or hold a release or tables if ``replace`` is true. It
        appears whole or not at all.
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
        """Return the release that :meth:`write` wrote; its parts by place are joined."""
        source = check.path(folder, "folder")
        file = source / RELEASE_FILE
        if not disk.is_object(source) and not file.exists():
            advice = disk.nearby(source, RELEASE_FILE) or (
                ": give the folder that Release.write or `bayesrisk release -o` wrote"
            )
            raise DataError(
                f"{source}: holds no release ({RELEASE_FILE} is not there)", advice=advice
            )
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

        The random draws of the releases are independent, so their likelihoods multiply. Tables and
        places are those of :meth:`PublishedTables.combine`.

        Its mechanism is ``composition``; ``parameters["releases"]`` has the mechanism of each.

        Parameters
        ----------
        releases : mapping of str to Release, or sequence of them
            Releases of one schema by name; releases in a sequence are named by their numbers.
        change : PopulationChange, optional
            Law of change between two years, if the releases are of different years.
        link : HouseholdLink, optional
            Link of persons to households, if releases of both are combined.
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
    """Return a sentence on where a release's random numbers came from."""
    if not any(law.random for law in release.spec.tables.values()):
        return "Nothing is random: the same records would give the same release."
    sampler = release.spec.parameters.get("sampler") or "NumPy"
    if release.simulation:
        return f"{sampler}, from a seed. A simulation: whoever guesses the seed takes it off."
    return f"{sampler}, from entropy of the operating system that is kept nowhere."


def setting_words(value: object) -> str:
    """Return a parameter in words; shares of levels and tables, and lists, are in brackets."""
    if isinstance(value, Mapping):
        return f"({', '.join(f'{name} {setting_words(part)}' for name, part in value.items())})"
    if isinstance(value, list | tuple):
        return f"({', '.join(map(setting_words, value))})"
    return str(value)


def _readme(release: Release, files: Mapping[str, str]) -> str:
    """Return the text of the README beside a release; ``files`` maps tables to files."""
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
    settings = ", ".join(f"{n} {setting_words(v)}" for n, v in spec.parameters.items())
    below = any(counts.min() < 0 for counts in tables.counts.values() if counts.nnz)
    if any(law.random and not isinstance(law, SimulationOnly) for law in spec.tables.values()):
        other.append(f"  Tables need not add up{', and counts may be below 0' if below else ''}.")
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
