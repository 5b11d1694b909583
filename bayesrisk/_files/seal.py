"""Digests of files, and JSON documents that carry their own."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bayesrisk._files.parse import Fault, named, read_json
from bayesrisk.exceptions import DataError

_SEAL = "seal"


def digest(file: str | Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with Path(file).open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def check_digest(file: Path, known: str, listing: str, fault: Fault = DataError) -> None:
    """Refuse a file that is not the one that a manifest lists."""
    with named(str(file), fault):
        same = digest(file) == known
    if not same:
        raise fault(f"{file}: is not the file that {listing} lists: damaged, or changed")


def read_document(file: Path, fault: Fault = DataError) -> dict[str, Any]:
    """Return the JSON object in a file without its seal, which must fit where there is one."""
    document = read_json(file, fault)
    try:
        return unsealed(document)
    except ValueError as error:
        raise fault(f"{file}: {error}") from error


def sealed(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON with its own digest in it, under ``seal``."""
    plain = json.loads(json.dumps(document, allow_nan=False))
    return (json.dumps({**plain, _SEAL: document_digest(plain)}, indent=1) + "\n").encode()


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
    if _SEAL in plain and plain.pop(_SEAL) != document_digest(plain):
        raise ValueError("was changed after it was written: its seal does not fit")
    return plain


def document_digest(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what a JSON document says, however it is laid out."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
