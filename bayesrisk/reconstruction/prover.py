"""Refutations of statements about published counts, as certificates hold them."""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.constraints.model import ENDLESS, IntegerModel
from bayesrisk.constraints.solvers import Deadline
from bayesrisk.reconstruction import check_proof
from bayesrisk.reconstruction.claims.search.block_system import place_classes
from bayesrisk.reconstruction.claims.search.space import Rules, claim_space
from bayesrisk.tables import PublishedTables, Schema, Table
from bayesrisk.tables.likelihoods import (
    UNBOUNDED,
    CellKeySpec,
    CountLimits,
    Likelihood,
    PerturbedCounts,
    RangeSpec,
    RoundingSpec,
)
from bayesrisk.tables.sheets.texts import span
from bayesrisk.tables.workload import Key

#: A certificate, or a part of it, as JSON has it.
Json: TypeAlias = dict[str, Any]
Weights: TypeAlias = Mapping[str, IntArray]


class CertifiedCounts:
    """Published counts of some levels, over cells that all tables can distinguish.

    For every attribute, ``first`` has the first code of each group of codes, and ``factors`` the
    weight of each group in each query. Queries of further tables come last.
    """

    def __init__(
        self, tables: PublishedTables, levels: Sequence[str], rules: Rules, cells: IntArray | None,
        extra: Sequence[Table], *, known_rule: bool,
    ) -> None:  # fmt: skip
        work, self.tables, self.known_rule = tables.workload, tables, known_rule
        self.schema, self.finest = work.schema, work.levels[-1]
        self.keys = [key for key in work.tables if key[0] in levels]
        every = [*(work.tables[key] for key in self.keys), *extra]
        self.owner = [
            (key, number) for key in self.keys for number in range(len(work.tables[key].cells))
        ]
        self.space = claim_space(self.schema, tuple(every), rules, cells=cells)
        self.first, self.factors = self.space.cells.first, self.space.queries.factors
        everything = len(self.space.codes) == np.prod(self.space.sizes, dtype=object)
        self.possible = None if everything else set(map(tuple, self.space.codes.tolist()))
        self.rules: list[list[BoolArray]] = []

    def place(self, block: str, query: int) -> str:
        """Return the place, at a published count's level, that contains a finest place."""
        return block[: self.schema.geography.width(self.owner[query][0][0])]

    def ends(self, block: str) -> tuple[IntArray, IntArray]:
        """Return the smallest and largest counts at a finest place and the places around it."""
        ends = []
        for level, table in self.keys:
            row = self.tables.row(level, block[: self.schema.geography.width(level)])
            rows = np.array([row])
            low, high = self.tables.support(level, table, rows, known_rule=self.known_rule)
            law = law_entry(self.tables.laws.get((level, table)))
            if law is None:  # the checker knows no such law
                low, high = np.zeros_like(low), np.full_like(high, UNBOUNDED)
            ends.append((low, high))
        more = self.space.queries.table.size - len(self.owner)
        low = np.concatenate([*(low[0] for low, _ in ends), np.zeros(more, np.int64)])
        high = np.concatenate([*(high[0] for _, high in ends), np.full(more, UNBOUNDED)])
        return low, high

    def entry(self, query: int, place: str) -> Json:
        """Return a published count in the form of certificates."""
        key, cell = self.owner[query]
        return count_entry(self.tables, key, cell, place, known_rule=self.known_rule)

    def sets(self, factors: Weights) -> Json:
        """Return weights by label or range of codes; attributes with all weights 1 are left out."""
        return label_sets(self.schema, factors)

    def rule(self, groups: Sequence[int]) -> Json | None:
        """Return a rule that excludes records with these groups of codes, or None if allowed.

        The rule is the largest product of sets of groups that contains no possible cell.
        """
        if self.possible is None or tuple(groups) in self.possible:
            return None
        for sides in self.rules:
            if all(side[group] for side, group in zip(sides, groups, strict=True)):
                break
        else:
            codes, sizes = self.space.codes, self.space.sizes.tolist()
            sides = [np.arange(size) == group for size, group in zip(sizes, groups, strict=True)]
            for a, size in enumerate(sizes):
                masks = [side[codes[:, b]] for b, side in enumerate(sides) if b != a]
                present = codes[np.logical_and.reduce([np.ones(len(codes), np.bool_), *masks]), a]
                sides[a] = np.bincount(present, minlength=size) == 0
            self.rules.append(sides)
        return {"sets": self.group_sets(sides)}

    def group_sets(self, sides: Sequence[BoolArray]) -> Json:
        """Return masks of code groups of every attribute, in the form of certificates."""
        pairs = zip(self.schema.names, sides, strict=True)
        return self.sets({n: side[self.space.cells.bins[n]].astype(np.int64) for n, side in pairs})


def label_sets(schema: Schema, factors: Weights) -> Json:
    """Return weights by label or range of codes; attributes with all weights 1 are left out."""
    sets: Json = {}
    for attribute in schema.attributes:
        weight = factors.get(attribute.name, np.ones(1))
        if (weight == 1).all():
            continue
        if attribute.labels:
            pairs = zip(attribute.labels, weight.tolist(), strict=True)
            sets[attribute.name] = {label: value for label, value in pairs if value}
            continue
        starts = np.flatnonzero(np.diff(weight, prepend=-1)).tolist()
        sets[attribute.name] = [
            [start + attribute.first, after - 1 + attribute.first, int(weight[start])]
            for start, after in itertools.pairwise([*starts, weight.size])
            if weight[start]
        ]
    return sets


def count_entry(
    tables: PublishedTables, key: Key, cell: int, place: str, *, known_rule: bool = True
) -> Json:
    """Return a published count in the form of certificates."""
    level, table = key
    rows = np.array([tables.row(level, place)])
    ends = tables.support(level, table, rows, known_rule=known_rule)
    low, high = (int(end[0, cell]) for end in ends)
    hidden = tables.hidden(level, table)[rows[0], cell]
    stated = None if hidden else int(tables.counts[level, table][rows[0], cell])
    law, limit = law_entry(tables.laws.get(key)), isinstance(tables.laws.get(key), CountLimits)
    most = None if high >= UNBOUNDED else high
    # What stands as a range or a limit, or as a mark of one, is no number.
    if stated is None or limit or f" ({span(low, high)})" in table:
        stated, law = None, {"law": "withheld", "least": low, "most": most}
    elif law == {"law": "exact"}:  # also below 0, where counts are taken as true
        low = most = stated
    factors = tables.workload.tables[level, table].factors
    return {
        "level": level, "place": place, "table": table,
        "published": stated, "law": law, "low": low, "high": most,
        "sets": label_sets(tables.workload.schema, {n: w[cell] for n, w in factors.items()}),
    }  # fmt: skip


def law_entry(law: Likelihood | None) -> Json | None:
    """Return a law of published counts in the form of certificates, or None if there is none."""
    if law is None or law.exact or isinstance(law, CountLimits):
        return {"law": "exact"}
    if isinstance(law, RoundingSpec):
        return {"law": law.method, "base": law.base}
    if isinstance(law, RangeSpec):
        ranges = {"edges": list(law.edges), "values": list(law.values), "step": law.step}
        return {"law": "ranges", **ranges}
    if isinstance(law, PerturbedCounts):
        return {"law": "perturbed", "largest": law.largest}
    if isinstance(law, CellKeySpec):
        changes = [[change for change, _ in row] for row in law.shares]
        return {"law": "cell-key", "changes": changes, "repeat": law.repeat}
    return None


# -----------------------------------------------------------------------------
# Refutations: branch and bound over a relaxation, every sum judged by the checker.


class ProofPart(NamedTuple):
    """A statement that the records of some kinds at a place number between two ends."""

    level: str
    place: str
    factors: Weights
    least: int | None
    most: int | None


class ProofQuestion(NamedTuple):
    """A sentence to be proved: its kind, its parts, and the finest places involved."""

    kind: str
    parts: tuple[ProofPart, ...]
    places: tuple[str, ...]


class Prover:
    """The system of published counts of some places, with further rows for parts of sentences.

    Columns are the kinds that zeros leave and that no row separates. The rows are those of
    published counts, ``keys`` (query and place), and then those of ``parts``.
    """

    def __init__(
        self, counts: CertifiedCounts, blocks: Sequence[str], parts: Sequence[ProofPart]
    ) -> None:
        from bayesrisk.constraints.refutation import Refuter  # loads a compiled solver

        self.counts, self.blocks, self.parts = counts, blocks, parts
        schema, space, weights = counts.schema, counts.space, self._weights()
        geography, width = schema.geography, len(blocks[0])
        levels = dict(zip(geography.levels, geography.widths, strict=True))
        near = {block[:w] for block in blocks for w in geography.widths if w <= width}
        self.frame: Json = {
            "levels": {level: w for level, w in levels.items() if w <= width},
            "places": list(blocks),
            "names": {code: name for code, name in geography.names if name and code in near},
            "attributes": {a.name: list(a.labels) or [a.first, a.last] for a in schema.attributes},
        }
        self.read = check_proof.read_frame(self.frame)
        self.around = {block: counts.ends(block) for block in blocks}
        self.members: list[tuple[str, IntArray]] = []
        self.named: dict[str, tuple[Json, check_proof.Box]] = {}
        self._names: dict[str, str] = {}
        number: dict[tuple[int, str], int] = {}
        ends, columns, weight_parts = list[tuple[int, int]](), [], []
        for block, (low, high) in self.around.items():
            inside = np.array([block.startswith(part.place) for part in parts], np.bool_)
            marks = weights * inside[:, None]
            place = place_classes(space, low, high, marks)
            self.members += [(block, cells) for cells in place.members]
            weight_parts.append(marks[:, [cells[0] for cells in place.members]])
            rows = []
            for query in place.query.tolist():
                key = query, counts.place(block, query)
                if number.setdefault(key, len(number)) == len(ends):
                    ends.append((int(low[query]), int(high[query])))
                rows.append(number[key])
            columns.append((rows, place.columns))
        self.keys = list(number)
        spread = [
            sp.csr_array((np.ones(len(r), np.int64), (r, np.arange(len(r)))), (len(ends), len(r)))
            for r, _ in columns
        ]
        published = sp.hstack([s @ c for s, (_, c) in zip(spread, columns, strict=True)])
        questions = sp.csr_array(np.concatenate(weight_parts, axis=1))
        matrix = sp.csr_array(sp.vstack([published, questions], format="csr"), dtype=np.int64)
        nothing = [(-ENDLESS, ENDLESS)] * len(parts)
        row_low, row_high = np.array([*ends, *nothing], np.int64).reshape(-1, 2).T
        nobody = np.zeros(matrix.shape[1], np.int64)
        self.model = IntegerModel(nobody, nobody + ENDLESS, matrix, row_low, row_high)
        self.refuter = Refuter(self.model, self._sum, self._boxes)

    def _weights(self) -> IntArray:
        """Return the weight of each cell in each part (parts, cells)."""
        codes, schema = self.counts.space.codes, self.counts.schema
        product = np.ones((len(self.parts), len(codes)), np.int64)
        for weights, part in zip(product, self.parts, strict=True):
            for name, weight in part.factors.items():
                weights *= weight[self.counts.first[name]][codes[:, schema.names.index(name)]]
        return product

    def refute(
        self, goal: tuple[int | None, int | None, int | None], nodes: int, deadline: Deadline
    ) -> Json:
        """Return a refutation of a part's number, or of the counts alone; empty if not found."""
        part, least, most = goal
        low, high = self.model.row_low.copy(), self.model.row_high.copy()
        impossible = np.flatnonzero(low > high)
        if impossible.size:
            name = self._name(int(impossible[0]))
            below = self.named[name][0]["high"] == self.named[name][0]["low"]
            return {"sum": {name: -1}} if below else {"none": name}
        if part is not None:
            index = len(self.keys) + part
            low[index] = -ENDLESS if least is None else least
            high[index] = ENDLESS if most is None else most
        return self.refuter.tree(low, high, nodes, deadline)

    def _sum(self, multiples: Sequence[tuple[int, int]], path: Sequence[tuple[int, str]]) -> Json:
        """Return a sum of multiples of rows or kinds, with counts that exclude other kinds."""
        sums, terms = dict[str, int](), list[tuple[int, check_proof.Box]]()
        m = self.model.row_low.size
        for index, multiple in multiples:
            # The last branch on this side of it says most.
            step = index, "above" if multiple > 0 else "below"
            depth = max((d for d, branch in enumerate(path, 1) if branch == step), default=0)
            unit = int(self.refuter.units[index]) if depth and index < m else 1
            sums[f"branch {depth}" if depth else self._name(index)] = multiple * unit
            boxes = self._boxes(index) if depth else [self._entry(index)]
            terms += [(multiple * unit, self._box(box)) for box in boxes]
        while True:
            kind = check_proof.excess(terms, self.read._replace(left=[check_proof.STEPS]))
            if kind is None:
                return {"sum": sums}
            name = self._exclusion(kind)
            if not name:
                return {}
            sums[name] = -sum(m * _heaviest(box) for m, box in terms if m > 0)
            terms.append((sums[name], self.named[name][1]))

    # Names and boxes: what a row, a kind or a count of 0 is called, and which records it counts.

    def _box(self, entry: Json) -> check_proof.Box:
        return check_proof.read_box(entry.get("place", ""), entry["sets"], self.read, "")

    def _note(self, entry: Json) -> str:
        """Return the name of a count or of an assumption, which is registered with its box."""
        kind, text = "count" if "table" in entry else "assumed", json.dumps(entry)
        name = self._names.setdefault(text, f"{kind} {len(self._names) + 1}")
        if name not in self.named:
            self.named[name] = entry, self._box(entry)
        return name

    def _name(self, row: int) -> str:
        return "not" if row >= len(self.keys) else self._note(self._entry(row))

    def _entry(self, row: int) -> Json:
        if row < len(self.keys):
            return self.counts.entry(*self.keys[row])
        part = self.parts[row - len(self.keys)]
        return {**part._asdict(), "sets": self.counts.sets(part.factors)}

    def _boxes(self, place: int) -> list[Json]:
        """Return the boxes of a branch: a row with weights 1, or a kind as a product of sets."""
        m = self.model.row_low.size
        if place < m:
            entry = self._entry(place)
            ones = {
                n: dict.fromkeys(s, 1) if isinstance(s, dict) else [[*ends, 1] for *ends, _ in s]
                for n, s in entry["sets"].items()
            }
            return [{"place": entry["place"], "sets": ones}]
        block, cells = self.members[place - m]
        codes, sizes = self.counts.space.codes, self.counts.space.sizes.tolist()
        left, boxes = set(map(tuple, codes[cells].tolist())), []
        while left:
            sides = [[group] for group in min(left)]
            for a, size in enumerate(sizes):
                products = [
                    itertools.product(*sides[:a], [g], *sides[a + 1 :]) for g in range(size)
                ]
                sides[a] = [g for g, kinds in enumerate(products) if left.issuperset(kinds)]
            left -= set(itertools.product(*sides))
            masks = [np.isin(np.arange(n), s) for n, s in zip(sizes, sides, strict=True)]
            boxes.append({"place": block, "sets": self.counts.group_sets(masks)})
        return boxes

    def _exclusion(self, kind: Mapping[Any, Any]) -> str:
        """Return the name of the widest zero count, or of a rule, that excludes a kind."""
        counts, axes = self.counts, check_proof.label_axes(self.read)
        block, *labels = (kind.get(name, next(iter(labels))) for name, labels in axes)
        groups = [
            int(counts.space.cells.bins[a.name][a.labels.index(x) if a.labels else x - a.first])
            for a, x in zip(counts.schema.attributes, labels, strict=True)
        ]
        low, high = self.around[block]
        weights = list(counts.factors.values())
        presence = np.prod([w[:, g] for w, g in zip(weights, groups, strict=True)], axis=0)
        zero = np.flatnonzero((high == 0) & (low <= 0) & (presence > 0))
        if zero.size:
            wide = np.prod([np.count_nonzero(w[zero], axis=1) for w in weights], axis=0)
            query = int(zero[wide.argmax()])
            return self._note(counts.entry(query, counts.place(block, query)))
        rule = counts.rule(groups)
        return self._note(rule) if rule else ""

    def certificate(self, question: ProofQuestion, trees: Json) -> Json:
        """Return a question's certificate, after the checker accepted it."""
        used, branches = dict[str, None](), list[Json]()
        waiting = list(trees.values())
        while waiting:
            tree = waiting.pop()
            used |= dict.fromkeys([*tree.get("sum", ()), *[tree[n] for n in tree if n == "none"]])
            branches += tree.get("branch", ())
            waiting += [tree[side] for side in ("below", "above") if side in tree]
        says = [{**p._asdict(), "sets": self.counts.sets(p.factors)} for p in question.parts]
        for part in says:
            del part["factors"]
        entries: dict[str, list[Json]] = {"count": [], "assumed": []}
        names: dict[str, str] = {}
        for name in used:
            if name in self.named:
                kind = name.split()[0]
                entries[kind].append(self.named[name][0])
                names[name] = f"{kind} {len(entries[kind])}"
        boxes = [*says, *entries["count"], *entries["assumed"], *branches]
        attributes = {name for box in boxes for name in box["sets"]}
        document: Json = {
            "format": check_proof.FORMAT, "kind": question.kind, "sentence": "", **self.frame,
            "says": says, "counts": entries["count"], "assumed": entries["assumed"],
            "refutations": {goal: _renamed(tree, names) for goal, tree in trees.items()},
        }  # fmt: skip
        document["attributes"] = {
            n: g for n, g in self.frame["attributes"].items() if n in attributes
        }
        document["sentence"] = check_proof.sentence(document)
        check_proof.check(check_proof.read(json_bytes(document)))
        return document


def _heaviest(box: check_proof.Box) -> int:
    return math.prod(
        max(s.values() if isinstance(s, dict) else [w for *_, w in s]) for s in box.sets.values()
    )


def _renamed(tree: Json, names: Mapping[str, str]) -> Json:
    if "sum" in tree:
        return {"sum": {names.get(name, name): m for name, m in tree["sum"].items()}}
    if "none" in tree:
        return {"none": names.get(tree["none"], tree["none"])}
    return {**tree, **{side: _renamed(tree[side], names) for side in ("below", "above")}}


def json_bytes(document: Json) -> bytes:
    """Return a certificate as the bytes of its file."""
    return (json.dumps(document, indent=1) + "\n").encode()
