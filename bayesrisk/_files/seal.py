"""Digests of files, and JSON documents that carry their own."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["digest", "read_json", "sealed", "unsealed"]

_SEAL = "seal"


def digest(file: str | Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with Path(file).open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def read_json(file: str | Path) -> Any:
    """Return the document in a JSON file.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is no JSON in UTF-8, or is nested too deeply.
    """
    try:
        return json.loads(Path(file).read_bytes().decode("utf-8"))
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def sealed(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON with its own digest in it, under ``seal``."""
    plain = json.loads(json.dumps(document, allow_nan=False))
    return (json.dumps({**plain, _SEAL: _digest_of(plain)}, indent=1) + "\n").encode()


def unsealed(document: Any) -> dict[str, Any]:
    """Return a document without its seal.

    A document without one is taken as it is: it may have been written by hand.  So a reader must
    refuse keys that it does not know, or a seal whose own name is damaged would go unnoticed.

    Raises
    ------
    ValueError
        If the document is no object, or not the one that was sealed.
    """
    if not isinstance(document, dict):
        what = type(document).__name__
        raise ValueError(f"must be an object, got {what}")  # noqa: TRY004 - a fault of the file
    plain = dict(document)
    if _SEAL in plain and plain.pop(_SEAL) != _digest_of(plain):
        raise ValueError("was changed after it was written: its seal does not fit")
    return plain


def _digest_of(document: Mapping[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
