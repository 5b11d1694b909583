"""The one place that writes files: whole or as before, whatever happens in between.

A file, or a folder, is made beside its place under a hidden name that nobody can foresee, brought
to the disk, and then takes its place in one step.  What a killed process leaves carries
``.bayesrisk-`` and the digest of the name it was meant for; the next start of the same output
removes it, unless a living process still holds its lock.  Every failure is an
:class:`~bayesrisk.OutputError` with the path and the reason.
"""

from bayesrisk._files.writing import (
    check_digest,
    clear,
    digest,
    digest_folder,
    document_digest,
    explained,
    is_leftover,
    make_folder,
    new_folder,
    read_document,
    scratch_folder,
    sealed,
    unsealed,
    whole_file,
    whole_folder,
    write_bytes,
)

__all__ = [
    "check_digest",
    "clear",
    "digest",
    "digest_folder",
    "document_digest",
    "explained",
    "is_leftover",
    "make_folder",
    "new_folder",
    "read_document",
    "scratch_folder",
    "sealed",
    "unsealed",
    "whole_file",
    "whole_folder",
    "write_bytes",
]
