"""Census blocks: their codes put together, and checked against states and block groups."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError
from bayesrisk.readers.text.columns import Piece, characters, texts

_STATES = (
    "AL01 AK02 AZ04 AR05 CA06 CO08 CT09 DE10 DC11 FL12 GA13 HI15 ID16 IL17 IN18 IA19 KS20 KY21 "
    "LA22 ME23 MD24 MA25 MI26 MN27 MS28 MO29 MT30 NE31 NV32 NH33 NJ34 NM35 NY36 NC37 ND38 OH39 "
    "OK40 OR41 PA42 RI44 SC45 SD46 TN47 TX48 UT49 VT50 VA51 WA53 WV54 WI55 WY56 PR72"
)
#: FIPS code of each state and of Puerto Rico by its postal abbreviation.
STATES = MappingProxyType({entry[:2]: entry[2:] for entry in _STATES.split()})
_KNOWN = np.zeros(100, dtype=bool)
_KNOWN[[int(code) for code in STATES.values()]] = True
_WIDTHS = (2, 3, 6, 4)  # state, county, tract, block


def state_code(state: str | None) -> str | None:
    """Return the FIPS code of a state given by code or postal abbreviation."""
    if state is None or (isinstance(state, str) and state in STATES.values()):
        return state
    if isinstance(state, str) and state.upper() in STATES:
        return STATES[state.upper()]
    raise ArgumentError(f"state must be a FIPS code or a postal abbreviation, got {shown(state)}")


def state_of_name(base: str) -> str | None:
    """Return the state that a file is of by its name, as in ``2020_ppmf_person_VT.csv``."""
    last = base.split(".")[0].rsplit("_", 1)[-1].upper()
    return STATES.get(last) if "_" in base else None


def known_states(matrix: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which codes begin with the digits of a state."""
    tens, ones = matrix[:, 0] - np.uint8(48), matrix[:, 1] - np.uint8(48)
    known: NDArray[np.bool_] = _KNOWN[tens.astype(np.int64) * 10 + ones]
    return known


def check_state(
    piece: Piece, column: str, codes: NDArray[np.uint8] | None, state: str | None
) -> None:
    """Refuse codes, a row of digits each, of no state, or of another one than ``state``."""
    if codes is None or not len(codes):
        return
    piece.check(column, known_states(codes), "in a state or Puerto Rico")
    if state is not None:
        wanted = np.frombuffer(state.encode(), dtype=np.uint8)
        piece.check(column, (codes[:, :2] == wanted).all(axis=1), f"in state {state}")


def block_column(piece: Piece, columns: Sequence[str], state: str | None) -> Any:
    """Return the 15-digit codes of state, county, tract, block group and block.

    The block group must be the first digit of the block.
    """
    state_column, county, tract, group, block = columns
    parts = [
        _matrix(piece, column, width)
        for column, width in zip((state_column, county, tract, block), _WIDTHS, strict=True)
    ]
    whole = np.hstack(parts)
    same = _matrix(piece, group, 1)[:, 0] == whole[:, 11]
    piece.check(group, same, f"the first digit of {block!r}")
    check_state(piece, state_column, whole, state)
    return texts(whole)


def _matrix(piece: Piece, column: str, width: int) -> NDArray[np.uint8]:
    matrix = characters(piece.digits(column, width), width)
    if matrix is None:
        raise piece.fail(column, 0, f"{width} digits")
    return matrix
