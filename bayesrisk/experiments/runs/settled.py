"""An output folder that says of which run it is, and takes no other."""

import json
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.parse import named, read_json
from bayesrisk.exceptions import ConfigError, OutputError, PartFileError
from bayesrisk.experiments.runs.config import RunConfig, RunSettings

S = TypeVar("S", bound=RunSettings)
#: Results below this folder are for whoever holds the confidential records, and nobody else.
CONFIDENTIAL = "confidential"
MANIFEST = "manifest.json"


class SettledFolder:
    """The folder of one run: its configuration, and who may read what is in it.

    Parameters
    ----------
    path : path-like
        The folder.
    """

    #: What the folder holds, for messages.
    what: ClassVar[str]
    #: Names of the files of the configuration and of the list of parts.
    settings: ClassVar[str] = "config.json"
    listing: ClassVar[str] = MANIFEST

    def __init__(self, path: str | Path) -> None:
        self.path = check.path(path, "folder")
        self.state = self.path  # where the configuration, the parts and their list are

    def _settle(self, config: RunConfig) -> None:
        """Write the configuration into a folder that is new or empty; refuse any other."""
        if self.path.exists() and not self.path.is_dir():
            raise OutputError(f"{self.path}: must be a folder, but is a file")
        settings = self.state / self.settings
        if settings.exists():
            if not self.path.exists():
                raise OutputError(
                    f"{self.state}: belongs to {self.path}, which is gone; remove it to begin again"
                )
            return
        within = (folder for folder in {self.path, self.state} if folder.exists())
        found = [path.name for folder in within for path in folder.iterdir()]
        # Leftovers of a run killed before its configuration was in place do not count.
        others = sorted(n for n in found if not _files.is_leftover(n))
        if others:
            raise OutputError(
                f"{self.path}: must be empty or hold a {self.what}, but holds {others[0]!r}; "
                "nothing was changed"
            )
        _files.make_folder(self.path)
        self._make_folder(settings.parent)
        text = json.dumps(config.to_dict(), indent=2, sort_keys=True) + "\n"
        _files.write_bytes(settings, text.encode(), private=self._private(settings))

    def _private(self, file: Path) -> bool:
        """Return whether only the owner may read a file of this folder."""
        return CONFIDENTIAL in file.relative_to(self.path).parts

    def _make_folder(self, folder: Path) -> None:
        """Make a folder in or beside this one; one for confidential files is its owner's alone."""
        within = self.state if folder.is_relative_to(self.state) else self.path
        inside = folder.relative_to(within)
        for below in (*reversed(inside.parents), inside):
            _files.make_folder(within / below, private=self._private(within / below))

    def _check_owner(self, config: RunConfig) -> None:
        file = self.state / self.settings
        theirs = read_json(file, OutputError)
        ours = json.loads(json.dumps(config.to_dict()))
        if theirs != ours:
            other = theirs if isinstance(theirs, dict) else {}
            keys = ", ".join(k for k in ours if k not in other or other[k] != ours[k])
            raise OutputError(
                f"{self.path}: belongs to another configuration (other {keys or 'keys'}); "
                "nothing was changed"
            )

    def load_settings(self, kind: type[S]) -> S:
        """Return the configuration that the folder was made with.

        Parameters
        ----------
        kind : type
            The configuration's class.

        Returns
        -------
        RunSettings
            The configuration.

        Raises
        ------
        OutputError
            If the folder holds no run of this kind, or a damaged one: the message names the file,
            the key, the bound and the value.
        """
        file = self.state / self.settings
        with named(str(file), OutputError):
            if not file.exists():
                raise OutputError(f"{self.path}: holds no {self.what} (no {self.settings})")
        values = read_json(file, OutputError)
        try:
            return kind.from_dict(
                values, source=f"{file}: is not the configuration of a {self.what}"
            )
        except ConfigError as error:
            raise OutputError(str(error)) from error

    def check_settings(self, config: RunConfig) -> dict[str, Any]:
        """Return the manifest, which must be that of the configuration; empty if there is none.

        Else a configuration that was changed would make every part look foreign.

        Raises
        ------
        PartFileError
            If the manifest is damaged, or belongs to another configuration.
        """
        file = self.state / self.listing
        manifest = _files.read_document(file, PartFileError) if file.exists() else {}
        if manifest and manifest.get("config") != config.digest:
            raise PartFileError(f"{file}: belongs to another configuration than {self.settings}")
        return manifest
