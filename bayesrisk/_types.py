"""Arrays by what they hold: one name for each type, in the whole package."""

import numpy as np
from numpy.typing import NDArray

#: Counts, rows, positions.
IntArray = NDArray[np.int64]
#: Probabilities, logarithms, weights.
FloatArray = NDArray[np.float64]
#: Masks.
BoolArray = NDArray[np.bool_]
#: Identifiers of places and records.
TextArray = NDArray[np.str_]
#: Small codes, where there are many of them.
CodeArray = NDArray[np.int16]
#: Sets of up to 64 things, a bit for each.
WordArray = NDArray[np.uint64]
#: Characters of a file.
ByteArray = NDArray[np.uint8]
