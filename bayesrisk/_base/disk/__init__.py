"""Reading and writing of files: errors name the file, and outputs are whole or unchanged.

A file or folder is made in a hidden folder beside its place, brought to the disk, and then renamed.
Remains of a killed process carry ``.bayesrisk-`` and a hash of the intended name. The next start of
the same output removes them, unless a living process still holds the lock. Every failure is an
:class:`~bayesrisk.OutputError` with the path and the reason.
"""

from bayesrisk._base.disk.objects import (
    is_object as is_object,
    listing as listing,
    local_copy as local_copy,
)
from bayesrisk._base.disk.text import (
    MAX_FILE as MAX_FILE,
    MAX_HELD as MAX_HELD,
    check_own as check_own,
    nearby as nearby,
    open_regular as open_regular,
    read_bytes as read_bytes,
)
from bayesrisk._base.disk.writing import (
    check_digest as check_digest,
    clear as clear,
    digest as digest,
    digest_folder as digest_folder,
    document_digest as document_digest,
    explained as explained,
    is_leftover as is_leftover,
    make_folder as make_folder,
    new_folder as new_folder,
    read_document as read_document,
    scratch_folder as scratch_folder,
    sealed as sealed,
    unsealed as unsealed,
    whole_file as whole_file,
    whole_folder as whole_folder,
    write_bytes as write_bytes,
)
