"""Reading and writing of files: errors name the file, outputs are whole or as before.

A file, or a folder, is made in a hidden folder beside its place, brought to the disk, and then
renamed.  What a killed process leaves carries ``.bayesrisk-`` and a hash of the name it was meant
for; the next start of the same output removes it, unless a living process still holds its lock.
Every failure is an :class:`~bayesrisk.OutputError` with the path and the reason.
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
