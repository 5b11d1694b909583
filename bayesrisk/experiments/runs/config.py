"""What a run in shards is told: plain settings, and the digest that makes two runs the same run."""

import hashlib
import json
from dataclasses import asdict
from typing import Any, ClassVar, Protocol, Self


class RunConfig(Protocol):
    """What a run in shards is told, complete enough to do it again."""

    @property
    def digest(self) -> str:
        """What makes two runs the same run."""

    @property
    def shards(self) -> int:
        """Number of shards."""

    @property
    def version(self) -> str:
        """Version of bayesrisk."""

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain containers, for JSON."""


class RunSettings:
    """What configurations of studies have in common: dataclasses that pydantic reads back.

    Whoever makes one has checked its values by the names of the arguments; what is read from a file
    is checked here, by the bounds that the fields name.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    @classmethod
    def from_dict(cls, values: Any, *, source: str = "config") -> Self:
        """Return the configuration that :meth:`to_dict` wrote.

        Parameters
        ----------
        values : mapping
            Field names and values.
        source : str, default "config"
            How messages call it.

        Returns
        -------
        object
            The configuration.

        Raises
        ------
        ConfigError
            If a field is missing, unknown, of another type or out of range; the message names the
            source, the key, the bound and the value.
        """
        from pydantic import TypeAdapter, ValidationError  # slow to import

        from bayesrisk._files.bounds import as_config_error

        try:
            return TypeAdapter(cls).validate_json(json.dumps(values), strict=True)
        except ValidationError as error:
            raise as_config_error(error, source) from error

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain containers, for JSON."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
