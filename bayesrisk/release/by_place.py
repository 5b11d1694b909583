"""What ``_release.json`` says: of a release in one folder, and of one by place.

In one folder, it names the manifest of the tables by its digest, and the manifest names what it
says: neither is read beside another.  By place, each part is an ordinary folder of a release.
``_release.json`` beside them says the same of all, and names the index of the parts and the
``_release.json`` of each by their digests: so a reader of one part can tell that it is whole, and
what protects it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayesrisk import _files
from bayesrisk._files.parse import shown
from bayesrisk._version import __version__
from bayesrisk.exceptions import DataError
from bayesrisk.release._folder import RELEASE_FILE, same_keys
from bayesrisk.release.spec import MechanismSpec
from bayesrisk.tables.exchange.layout import MANIFEST
from bayesrisk.tables.exchange.partitions import ABOVE, PARTITIONS, Partitions

_FORMAT = 4
_KEYS = {"format", "version", "simulation", "spec", "diagnostics"}
_TABLES = {"tables"}
_MORE = {"partitions", "releases"}


def release_document(
    spec: MechanismSpec, diagnostics: Mapping[str, float], *, simulation: bool
) -> dict[str, Any]:
    """Return what the description of a release says."""
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
    """Return the description of a release by place.

    Parameters
    ----------
    document : mapping
        That of :func:`release_document`.
    partitions : str
        SHA-256 of the index of the parts.
    releases : mapping of str to str
        That of the description of each part.
    """
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
    """Refuse a description that is not that of the tables beside it, whichever was changed.

    Raises
    ------
    DataError
        If one does not name the other.
    """
    manifest = file.parent / MANIFEST
    _files.check_digest(manifest, str(document["tables"]), RELEASE_FILE)
    named = _files.read_document(manifest).get("release")
    if named != _files.document_digest({key: document[key] for key in _KEYS}):
        raise DataError(f"{file}: is not the description that {MANIFEST} names")


@dataclass(frozen=True, eq=False)
class ReleaseIndex:
    """A release by place, of which parts are read.

    Attributes
    ----------
    partitions : Partitions
        The index of its tables.
    document : mapping
        What ``_release.json`` says of all parts.
    releases : mapping of str to str
        By code of a part, and ``above``, the SHA-256 of its own ``_release.json``.
    digest : str
        SHA-256 of ``_release.json``, which all other digests follow from.
    """

    partitions: Partitions
    document: Mapping[str, Any]
    releases: Mapping[str, str]
    digest: str

    def checked(self, code: str) -> Path:
        """Return the folder of a part whose tables and description are those that are listed.

        Raises
        ------
        DataError
            If they are others, or there are none.
        """
        folder = self.partitions.checked(code)
        _files.check_digest(folder / RELEASE_FILE, self.releases[code], RELEASE_FILE)
        return folder

    @staticmethod
    def there(folder: Path) -> bool:
        """Return whether a folder is a release by place."""
        return Partitions.there(folder) and (folder / RELEASE_FILE).exists()

    @classmethod
    def read(cls, folder: Path) -> "ReleaseIndex":
        """Return the index of a folder, everything but the parts checked.

        Raises
        ------
        DataError
            If it is damaged.
        """
        file = folder / RELEASE_FILE
        document = read_document(file, _MORE)
        _files.check_digest(folder / PARTITIONS, str(document["partitions"]), RELEASE_FILE)
        partitions = Partitions.read(folder, "tables")
        releases = document["releases"]
        names = {*partitions.digests, *([ABOVE] if partitions.above else [])}
        if not isinstance(releases, dict) or set(releases) != names:
            raise DataError(f"{file}: releases must be digests of the parts of {PARTITIONS}")
        return cls(partitions, document, releases, _files.digest(file))
