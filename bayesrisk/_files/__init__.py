"""Reading and writing of files: errors name the file, outputs are whole or as before.

A file, or a folder, is made in a hidden folder beside its place, brought to the disk, and then
renamed.  What a killed process leaves carries ``.bayesrisk-`` and a hash of the name it was meant
for; the next start of the same output removes it, unless a living process still holds its lock.
Every failure is an :class:`~bayesrisk.OutputError` with the path and the reason.
"""

from bayesrisk._files.writing import check_digest as check_digest
from bayesrisk._files.writing import clear as clear
from bayesrisk._files.writing import digest as digest
from bayesrisk._files.writing import digest_folder as digest_folder
from bayesrisk._files.writing import document_digest as document_digest
from bayesrisk._files.writing import explained as explained
from bayesrisk._files.writing import is_leftover as is_leftover
from bayesrisk._files.writing import make_folder as make_folder
from bayesrisk._files.writing import new_folder as new_folder
from bayesrisk._files.writing import read_document as read_document
from bayesrisk._files.writing import scratch_folder as scratch_folder
from bayesrisk._files.writing import sealed as sealed
from bayesrisk._files.writing import unsealed as unsealed
from bayesrisk._files.writing import whole_file as whole_file
from bayesrisk._files.writing import whole_folder as whole_folder
from bayesrisk._files.writing import write_bytes as write_bytes
