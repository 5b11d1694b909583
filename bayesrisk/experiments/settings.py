"""What a run in shards is told: plain settings, and the digest that makes two runs the same run."""

import hashlib
import json
from dataclasses import asdict
from typing import Any, Protocol

__all__ = ["RunConfig", "RunSettings"]


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
    """What configurations that are plain dataclasses have in common."""

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain containers, for JSON."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
