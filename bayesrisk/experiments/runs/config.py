"""What a run in shards is told: plain settings, and the digest that makes two runs the same run."""

import hashlib
import json
from dataclasses import asdict
from typing import Any, Protocol, Self, get_args, get_type_hints

from bayesrisk._files.parse import shown

__all__ = ["RunConfig", "RunSettings", "checked"]


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


def checked(value: Any, name: str, kind: Any) -> Any:
    """Return a value of a type, refuse others; a truth value is no number."""
    kinds = get_args(kind) or (kind,)
    if float in kinds:
        kinds = (*kinds, int)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = getattr(kind, "__name__", kind)
        raise TypeError(f"{name} must be of type {wanted}, got {shown(value)}")
    return value


class RunSettings:
    """What configurations that are plain dataclasses have in common."""

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """Return the configuration that :meth:`to_dict` wrote; fields are of the types they name.

        Raises
        ------
        TypeError
            If a field is missing, unknown or of another type.
        """
        if not isinstance(document, dict):
            raise TypeError(f"must be an object, got {shown(document)}")
        for name, kind in get_type_hints(cls).items():
            if name in document:
                checked(document[name], name, kind)
        return cls(**document)

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain containers, for JSON."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
