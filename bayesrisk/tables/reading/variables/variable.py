"""Variables of tables: labels that exclude each other, and groups of them by age ranges."""

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise

from bayesrisk.tables.likelihoods import UNBOUNDED
from bayesrisk.tables.reading.rows import exclusive
from bayesrisk.tables.reading.variables.ages import Ends
from bayesrisk.tables.reading.variables.judgements import NearSum, SumInGroups
from bayesrisk.tables.reading.variables.nested import REST
from bayesrisk.tables.sheets.texts import BLANK, UNKNOWN, interval, key, sex, span

_YEARS = 1800, 2200
_MOST_PARTS = 2**14  # the number of trees times that of all parts


class TableVariable:
    """Exclusive labels, and groups of them by published labels, with names.

    Attributes
    ----------
    labels : list of str
        Labels that exclude each other; each code is the position of one.
    totals : set of str
        Spellings of labels that count all.
    groups : dict
        The codes counted by every other published label, by its spelling.
    names : dict
        A published label for groups of codes.
    separate : bool
        Whether labels are separate, since they may overlap or have no total.
    sums : list of SumInGroups
        The sum of each total and subtotal, by group.
    wholes : dict
        The first label of the tree of each separate label in a tree.
    left_out : list of int
        Counts of the few groups in which the sum of a total does not hold.
    doubtful : bool
        Whether a total may leave out some labels, or no records fit.
    near : dict
        Sums that hold in most groups, and are not used.
    """

    def __init__(
        self, published: Iterable[str], rules: Mapping[str, str], children: Mapping[str, list[str]],
        totals: Iterable[str], disjoint: Iterable[str] = (),
    ) -> None:  # fmt: skip
        first: dict[str, str] = {}
        for label in published:
            first.setdefault(key(label), label)
        self.first, self.separate = first, False
        self.sums: list[SumInGroups] = []
        self.wholes: dict[str, str] = {}
        self.left_out: list[int] = []
        self.doubtful = False
        self.near: Mapping[str, NearSum] = {}
        self.totals = {k for k in first if rules.get(k, "all" if k in totals else "") == "all"}
        choices = {k: [key(p) for p in rules[k].split(" | ")] for k in first if k in rules}
        parts = {k: choices.get(k) or leaves(k, children) for k in first if k not in self.totals}
        base = {p: first.get(p, p) for part in parts.values() for p in part}
        alone = {*disjoint, *(k for k, part in choices.items() if part == [k])}
        alone |= unknown_ages(base)
        single = [k for k in base if k in alone]  # in no range, whatever their names
        ends = intervals({k: x for k, x in base.items() if k not in single})
        bounds = {end for end in ends.values() if end is not None}
        self.intervals = None not in ends.values() and any(low < high for low, high in bounds)
        self.labels, inside = list(base.values()), {k: {i} for i, k in enumerate(base)}
        if self.intervals:  # pieces between the ends of groups; some may be counted by none
            points = sorted({p for low, high in bounds for p in (low, high + 1)})
            pieces = [(a, b - 1) for a, b in pairwise(points)]
            titles = {end: base[k] for k, end in reversed([*ends.items()])}
            self.labels = [titles.get(piece, span(*piece)) for piece in pieces]
            self.labels += [base[k] for k in single]
            inside = {
                k: {i for i, (a, b) in enumerate(pieces) if end and end[0] <= a and b <= end[1]}
                for k, end in ends.items()
            } | {k: {i} for i, k in enumerate(single, len(pieces))}
        self.groups = {
            k: tuple(sorted(set().union(*(inside[p] for p in part)))) for k, part in parts.items()
        }
        self.names = {g: first[k] for k, g in reversed(self.groups.items())}
        self.names |= {(i,): label for i, label in enumerate(self.labels)}

    @property
    def exclusive(self) -> bool:
        """Whether labels exclude each other by their meaning: sexes, or age groups."""
        return self.intervals or all(map(sex, self.labels)) or exclusive(self.labels)

    @property
    def exhaustive(self) -> bool:
        """Whether each record has a label by their meaning: both sexes, or ages without an end."""
        if self.intervals:
            ends = [end for end in map(interval, self.labels) if end is not None]
            return min(ends)[0] == 0 and max(b for _, b in ends) >= UNBOUNDED - 1
        return {sex(label) for label in self.labels} == {"male", "female"}

    def take_by_itself(self, *, summed: bool) -> None:
        """Draw no conclusions between labels, except within the trees of shown sums."""
        self.separate, whole_by_code = True, dict[int, str]()
        for k, codes in sorted(self.groups.items(), key=lambda one: -len(one[1])):
            inside = {whole_by_code.get(i, "") for i in codes}
            tree = len(inside) == 1 and (len(codes) > 1 or "" not in inside)
            if summed and tree and k != key(BLANK):
                whole = inside.pop() or k
                self.wholes[k] = whole
                whole_by_code |= dict.fromkeys(codes, whole)
        if len({*self.wholes.values()}) * len(whole_by_code) > _MOST_PARTS:
            self.wholes = {}

    def add_rest(self) -> None:
        """Add the label of those counted only in totals."""
        self.names[(len(self.labels),)] = REST
        self.labels.append(REST)


def unknown_ages(labels: Mapping[str, str]) -> set[str]:
    """Return the labels of people of unknown age, beside others."""
    unknown = {k for k, x in labels.items() if UNKNOWN.search(x) and not interval(x)}
    return unknown if len(unknown) < len(labels) else set()


def intervals(labels: Mapping[str, str]) -> dict[str, Ends | None]:
    """Return the first and last age of each group; None for other labels, and if all are years."""
    ends = {k: interval(x) for k, x in labels.items()}
    if all(end and _names_years(end) for end in ends.values()):
        return dict.fromkeys(ends)  # years: their periods need not add up
    return _without_gaps(_without_next(ends), labels)


def _names_years(end: Ends) -> bool:
    """Return whether a range is of years, such as 1975-1980 and before 1975."""
    low, high = end[0] or _YEARS[0], min(end[1], _YEARS[1])
    return end[1] - end[0] < UNBOUNDED - 1 and _YEARS[0] <= low <= high


def _without_next(ends: Mapping[str, Ends | None]) -> dict[str, Ends | None]:
    """Return groups without their last age if the next group begins with it: 3-6, 6-10."""
    starts = {end[0] for end in ends.values() if end and end[0] < end[1]}
    groups = [end for end in ends.values() if end and end[0] < end[1]]
    shared = sum(high in starts for _, high in groups)
    if 2 * shared < len(groups) - 1:
        return dict(ends)
    return {
        k: (end[0], end[1] - 1) if end and end[0] < end[1] and end[1] in starts else end
        for k, end in ends.items()
    }


def _without_gaps(
    ends: Mapping[str, Ends | None], labels: Mapping[str, str]
) -> dict[str, Ends | None]:
    """Return groups with the year in "> 75" or "< 5", if only it is in no group: 65-74."""
    groups, closed = {k: end for k, end in ends.items() if end}, dict(ends)
    sides = {side for group in groups.values() for side in group}
    for k, (low, high) in groups.items():
        numbers = {int(text) for text in re.findall(r"\d{1,9}", labels[k])}
        for year in {low - 1, high + 1} & numbers:
            inside = any(a <= year <= b for a, b in groups.values())
            if {year - 1, year + 1} <= sides and not inside:
                closed[k] = min(low, year), max(high, year)
    return closed


def leaves(label: str, children: Mapping[str, list[str]]) -> list[str]:
    """Return the leaves of the tree below a label."""
    below = children.get(label)
    return [leaf for child in below for leaf in leaves(child, children)] if below else [label]
