"""Headings of a workbook with merged cells: each spans the columns of its cell."""

import itertools
from collections.abc import Collection, Sequence
from typing import NamedTuple

from bayesrisk.tables.sheets.joined_headings import wrapped
from bayesrisk.tables.sheets.lines import filled_texts
from bayesrisk.tables.sheets.texts import PATH, is_mark, is_year, plain_year, says_number

_MOST_ROWS = 8  # of headings
_FEW_ROWS = 60  # to look at below headings
_PAIR = 2  # columns


class Merged(NamedTuple):
    """A merged cell, from its top left to its bottom right, inclusive."""

    top: int
    left: int
    bottom: int
    right: int


def join_merged_headings(rows: list[list[str]], cells: Sequence[Merged]) -> None:
    """Write headings with merged cells into one row, as *Men!!0-17*, and empty the rows above.

    They are headings if a cell spans several count columns and the rows down to the one below have
    no count. Joined, they must distinguish all columns. A cell over all counts is their title.
    """
    cells = [cell for cell in cells if cell.bottom < len(rows) and _text(rows, cell)]
    wide = [cell for cell in cells if cell.right > cell.left]
    end = -1
    for top in sorted({cell.top for cell in wide}):
        if top <= end:
            continue
        block = _Headings.first(rows, cells, top)
        if block is not None:
            end = block.end
            block.write()


def _text(rows: Sequence[Sequence[str]], cell: Merged) -> str:
    row = rows[cell.top]
    return row[cell.left].strip() if cell.left < len(row) else ""


class _Headings(NamedTuple):
    """Heading rows from ``begin`` to ``end``, and the merged cells that begin in them."""

    rows: list[list[str]]
    cells: Sequence[Merged]
    begin: int
    end: int
    counts: Collection[int]

    @classmethod
    def first(cls, rows: list[list[str]], cells: Sequence[Merged], top: int) -> "_Headings | None":
        """Return the headings whose first wide cells are in row ``top``; None if there are none."""
        top_cells = [cell for cell in cells if cell.top <= top <= cell.bottom]
        begin = min((cell.top for cell in top_cells), default=top)
        near = [cell for cell in cells if begin <= cell.top < begin + _MOST_ROWS]
        wide = [cell for cell in near if cell.right > cell.left]
        last = top  # row that has wide cells
        for below in sorted({cell.top for cell in wide if cell.top > top}):
            if not any(map(says_number, map(str.strip, rows[below]))):
                last = max(last, below) if below - last < _PAIR + 1 else last
        for end in range(last + 1, min(len(rows), begin + _MOST_ROWS)):
            counts = _counts(rows[end + 1 :][:_FEW_ROWS], wide)
            filled = {j for j, text in enumerate(rows[end]) if text.strip()}
            spanned = {j for c in wide if c.bottom < end for j in range(c.left, c.right + 1)}
            if len(filled & counts) >= _PAIR or (filled and filled <= spanned & counts):
                tall = [c.bottom for c in near if c.top <= end]
                end = max(end, *tall)
                counts = _counts(rows[end + 1 :][:_FEW_ROWS], wide)
                block = cls(rows, [c for c in near if c.top <= end], begin, end, counts)
                return block if block._are_headings(top) else None
        return None

    def _are_headings(self, top: int) -> bool:
        """Return whether texts above counts are no counts, and joined they distinguish columns."""
        if self.begin + _MOST_ROWS <= self.end or len(self.counts) < _PAIR:
            return False
        tall = any(c.top == self.begin and c.bottom == self.end for c in self.cells
                   if c.left not in self.counts)  # fmt: skip
        texts = [
            self.rows[i][j].strip() for i in range(self.begin, self.end + 1)
            for j in self.counts if j < len(self.rows[i]) and self.rows[i][j].strip()
        ]  # fmt: skip
        numbers = [t for t in texts if says_number(t) and not is_year(plain_year(t))]
        if any(is_mark(t) and not t.isalnum() for t in texts) or (numbers and not tall):
            return False
        wide = [c for c in self.cells if len(self._columns(c)) >= _PAIR]
        titles = any(c.left not in self.counts for c in wide)
        heads = [head for j, head in enumerate(self._joined()) if j in self.counts]
        return bool(
            wide and not titles and any(c.top == top for c in wide)
            and all(heads) and len({*heads}) == len(heads)
        )  # fmt: skip

    def _columns(self, cell: Merged) -> set[int]:
        return {*range(cell.left, cell.right + 1)} & {*self.counts}

    def _paths(self, j: int) -> list[tuple[str, Merged | None]]:
        """Return the texts above a column from the first row on, with their wide cells."""
        results = list[tuple[str, Merged | None]]()
        for i in range(self.begin, self.end + 1):
            row = self.rows[i]
            text, cell = (row[j].strip() if j < len(row) else ""), None
            for one in self.cells:
                inside = one.top <= i <= one.bottom and one.left <= j <= one.right
                if inside and (j in self.counts or j == one.left):
                    text = _text(self.rows, one)
                    cell = one if len(self._columns(one)) >= _PAIR else None
            if text and (not results or results[-1][0] != text):
                results.append((text, cell))
        return results

    def _titles(self) -> list[str]:
        """Return the texts above all counts, which are titles."""
        upper = [[text for text, _ in self._paths(j)[:-1]] for j in sorted(self.counts)]
        return [text for text in upper[0] if all(text in texts for texts in upper)]

    def _joined(self) -> list[str]:
        """Return the headings as one row, without those above all counts."""
        titles, heads = self._titles(), list[str]()
        for j in range(max(len(row) for row in self.rows[self.begin : self.end + 1])):
            *upper, lowest = self._paths(j) or [("", None)]
            head, wide = "", False
            for text, cell in [*(part for part in upper if part[0] not in titles), lowest]:
                head = f"{head}{PATH}{text}" if head and wide else wrapped(head, text)
                wide = cell is not None
            heads.append(head)
        return heads

    def write(self) -> None:
        """Write the joined headings into the last row, and the titles of all counts above it."""
        heads, titles = self._joined(), [*self._titles(), *[""] * _MOST_ROWS]
        for i, title in zip(range(self.begin, self.end), titles, strict=False):
            self.rows[i][:] = [title, *[""] * (len(self.rows[i]) - 1)]
        self.rows[self.end][:] = heads


def _counts(rows: Sequence[Sequence[str]], wide: Sequence[Merged]) -> set[int]:
    """Return the columns in which at least half of the texts are counts or marks.

    Columns of marks alone also count below the merged heading of one.
    """
    full = [[text.strip() for text in row] for row in rows]
    full = [row for row in full if filled_texts(row) > 1]
    texts = [[*filter(None, c)] for c in itertools.zip_longest(*full, fillvalue="")]
    counts = {
        j for j, column in enumerate(texts)
        if j and any(map(says_number, column))
        and 2 * sum(says_number(t) or is_mark(t) for t in column) >= len(column)
    }  # fmt: skip
    spanned = {j for c in wide if c.left in counts for j in range(c.left, c.right + 1)}
    return counts | {j for j in spanned if texts[j:] and texts[j] and all(map(is_mark, texts[j]))}
