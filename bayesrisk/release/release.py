"""A release: the tables that cross from the custodian to everybody else, and what protects them.

It holds no seed, no record and no unprotected count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._show import displayed
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.release._folder import RELEASE_FILE, write_release
from bayesrisk.release.by_place import (
    ReleaseIndex,
    check_bound,
    read_document,
    release_document,
)
from bayesrisk.release.spec import MechanismSpec
from bayesrisk.tables.exchange.partitions import Partitions
from bayesrisk.tables.published import PublishedTables, under_laws


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
        laws = {key: law.kind for key, law in self.spec.tables.items() if not law.exact}
        object.__setattr__(self, "tables", under_laws(self.tables, laws))
        if not isinstance(self.simulation, bool):
            raise ArgumentTypeError(
                f"simulation must be True or False, got {shown(self.simulation)}"
            )
        values = {
            check.text(name, "diagnostics"): check.scalar(value, f"diagnostics[{name!r}]")
            for name, value in check.mapping(self.diagnostics, "diagnostics").items()
        }
        object.__setattr__(self, "diagnostics", values)

    def write(self, folder: str | Path, *, replace: bool = False) -> Path:
        """Write the tables in the exchange form, with ``_release.json`` beside them.

        Parameters
        ----------
        folder : path-like
            New or empty folder; it appears whole or not at all.
        replace : bool, default False
            Whether it may also be one that holds a release, or tables, which are replaced.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        OutputError
            If the folder holds something, or cannot be written.
        """
        target, replaced = check.path(folder, "folder"), check.flag(replace, "replace")
        document = release_document(self.spec, self.diagnostics, simulation=self.simulation)
        return write_release(target, self.tables, document, replace=replaced)

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """Read a release that :meth:`write` wrote.

        Parameters
        ----------
        folder : path-like
            Folder of the release; of one by place, all parts are put together.

        Returns
        -------
        Release
            Spec, tables and diagnostics.

        Raises
        ------
        DataError
            If a file is missing, truncated or breaks its format, or the description is of other
            tables.
        """
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
        except (ArgumentError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{file}: {error}") from error
        if "tables" in document:
            check_bound(file, document)
        return made
