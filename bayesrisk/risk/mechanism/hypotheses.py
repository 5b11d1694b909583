"""Questions about a protection, and the data sets under each hypothesis about a record."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.validation import FloatArray, IntArray, TextArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ShapeError, quote
from bayesrisk.tables import Microdata, Records, Workload, tabulate
from bayesrisk.tables.microdata import OCCUPIED, UNITS, read_microdata

METHODS = ("auto", "closed-form", "simulated")
#: Releases that are drawn in one go: the error of a mean of so many is a thousandth of one's.
MAX_RELEASES = 10**6
Alternative = Mapping[str, int | str] | None


@dataclass(frozen=True, eq=False)
class MechanismQuestion:
    """The adversary's observations and prior, for all targets and protections alike.

    Attributes
    ----------
    workload : Workload
        Published tables.
    observed : sequence of tuple
        What the adversary reads: ``(level, table)``, all cells that differ between hypotheses;
        ``(level, table, cell)`` at the target's place; or ``(level, table, cell, place)``.
    alternatives : sequence of mapping or None
        Hypotheses beside the truth. None: the target is absent. ``{column: value}``: its record has
        this value (a code or its label) instead.
    prior : array_like
        Prior probability of the truth, in (0, 1), if there is one alternative; else that of every
        hypothesis, the truth first.
    known_totals : sequence of tuple, optional
        Counts that the adversary knows exactly (invariants), named as in ``observed``. They hold
        under every hypothesis, so a hypothesis that changes them is refused. An absent target does,
        unless others make up the total; ``{"block": ...}`` says that the target is elsewhere in the
        group.
    """

    workload: Workload
    observed: Sequence[tuple[str, ...]]
    alternatives: Sequence[Alternative]
    prior: ArrayLike
    known_totals: Sequence[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        check.instance(self.workload, Workload, "workload")
        named = isinstance(self.alternatives, (Mapping, str, bytes))
        if named or not isinstance(self.alternatives, Sequence):
            raise ArgumentTypeError("alternatives", "must be a sequence", got=self.alternatives)
        for one in self.alternatives:
            if one is not None and not (isinstance(one, Mapping) and one):
                raise ArgumentTypeError(
                    "alternatives", "must be None (absent) or columns with values", got=one
                )
        if not self.alternatives:
            raise ArgumentError("alternatives", "must have at least one hypothesis", shown="none")
        self.tables()
        self._named_tables(self.known_totals, "known_totals")
        self.prior_pmf()

    def tables(self) -> list[tuple[str, str]]:
        """Return the distinct (level, table) observed or known in total."""
        names = self._named_tables(self.observed, "observed")
        return list(dict.fromkeys(names + self._named_tables(self.known_totals, "known_totals")))

    def _named_tables(self, entries: object, name: str) -> list[tuple[str, str]]:
        workload = self.workload
        if (
            not isinstance(entries, Sequence)
            or isinstance(entries, (str, bytes))
            or (name == "observed" and not entries)
        ):
            raise ArgumentError(name, "must be a sequence of (level, table, ...)", got=entries)
        keys: dict[tuple[str, str], None] = {}
        for entry in entries:
            if (
                not isinstance(entry, tuple)
                or not 2 <= len(entry) <= 4
                or not all(isinstance(part, str) for part in entry)
            ):
                raise ArgumentError(
                    f"{name} must hold (level, table), (level, table, cell) or "
                    f"(level, table, cell, geoid), got {quote(entry)}"
                )
            key = entry[0], entry[1]
            if key not in workload.tables:
                raise ArgumentError(
                    name, f"must name tables of the workload, {quote([*workload.tables])}", got=key
                )
            if len(entry) > 2 and entry[2] not in workload.tables[key].cells:
                raise ArgumentError(name, f"must name cells of {key!r}", got=entry[2])
            keys[key] = None
        return list(keys)

    def prior_pmf(self) -> FloatArray:
        """Return the prior of each hypothesis, the truth first, with sum 1."""
        alternatives = len(self.alternatives)
        beliefs = check.real_array(self.prior, "prior")
        if beliefs.ndim == 0:
            p = float(check.probability(self.prior, "prior"))
            if alternatives != 1:
                raise ShapeError(
                    f"prior must hold {alternatives + 1} beliefs, the truth first, "
                    f"got {quote(self.prior)}"
                )
            return np.array([p, 1.0 - p])
        pmf = check.probability_vector(self.prior, "prior")
        if pmf.shape != (alternatives + 1,):
            raise ShapeError("prior", f"must have shape ({alternatives + 1},)", shown=pmf.shape)
        if not 0.0 < pmf[0] < 1.0:
            raise ArgumentError("prior[0]", "must be in (0, 1)", shown=pmf[0])
        return pmf


@dataclass(frozen=True)
class MechanismOptions:
    """Method and settings for computing a protection's risk.

    Attributes
    ----------
    method : {"auto", "closed-form", "simulated"}, default "auto"
        ``"auto"`` takes the closed form if the spec gives the likelihood of every observed cell.
    utility_draws : int, default 20
        Releases over which the error of the tables is measured, at least 2.
    confidence, smoothing : float, default 0.95 and 1/2
        Confidence of the intervals, in (0, 1), and pseudo-count of the simulated likelihood, > 0
        (:func:`simulated_likelihood`).
    executor, progress : Executor and callable, optional
        ``executor`` runs the draws; results do not depend on it. ``progress(done, draws)`` is
        called, from 0 again for every simulated protection.
    """

    method: str = "auto"
    utility_draws: int = 20
    confidence: float = 0.95
    smoothing: float = 0.5
    executor: Executor | None = None
    progress: Callable[[int, int], None] | None = None

    def __post_init__(self) -> None:
        check.choice(self.method, "method", METHODS)
        check.integer(self.utility_draws, "utility_draws", lower=2, upper=MAX_RELEASES)
        check.scalar(self.confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
        check.scalar(self.smoothing, "smoothing", lower=0.0, bounds="()")
        check.function(self.progress, "progress")


def read_options(options: MechanismOptions | None) -> MechanismOptions:
    """Return the options given, or the defaults."""
    options = MechanismOptions() if options is None else options
    return check.instance(options, MechanismOptions, "options")


#: Level, table, cell, geographic code.
Cell = tuple[str, str, str, str]
Target = int | Mapping[str, ArrayLike]

_KEYS = ("household", "households", "person", "persons")


@dataclass(frozen=True)
class TargetHypotheses:
    """A target's hypotheses, the truth first, and the observed cells of the release."""

    datasets: tuple[Microdata, ...]  # Population under each hypothesis
    prior: FloatArray  # (hypotheses,): Belief in each
    cells: tuple[Cell, ...]  # Observed cells
    counts: IntArray  # (hypotheses, cells): Their true counts


def target_rows(data: Microdata, target: Target) -> dict[str, IntArray]:
    """Return the target's rows among persons, households or both."""
    if not isinstance(target, Mapping):
        present = [unit for unit in UNITS if getattr(data, unit) is not None]
        if len(present) > 1:
            raise ArgumentError(
                "target must say whose: {'persons': row}, {'households': row}, {'person': id} or "
                f"{{'household': id}}, got {quote(target)}"
            )
        target = {present[0]: target}
    if len(target) != 1 or next(iter(target)) not in _KEYS:
        raise ArgumentError("target", f"must have one key of {', '.join(_KEYS)}", got=target)
    key, value = next(iter(target.items()))
    if key in UNITS:
        records = unit_records(data, key)
        rows = check.count_array(value, f"target[{key!r}]", lower=0, upper=len(records) - 1)
        return {key: np.unique(rows.reshape(-1))}
    identity = check.integer(value, f"target[{key!r}]")
    units = UNITS if key == "household" else ("persons",)
    unit_rows = {}
    for unit in units:
        records = getattr(data, unit)
        if records is not None and key in records.columns:
            ids = records.table.column(key).to_numpy(zero_copy_only=False)
            unit_rows[unit] = np.flatnonzero(ids == identity)
    if not any(rows.size for rows in unit_rows.values()):
        raise ArgumentError(f"target[{key!r}]", "must be in the population", shown=identity)
    return {unit: rows for unit, rows in unit_rows.items() if rows.size}


def unit_records(data: Microdata, unit: str) -> Records:
    """Return a population's persons or households; raise if there are none."""
    records: Records | None = getattr(data, unit)
    if records is None:
        raise ArgumentError("population", f"must have {unit}", shown="none")
    return records


def hypothesis(
    data: Microdata, rows: Mapping[str, IntArray], alternative: Alternative
) -> Microdata:
    """Return the population with the target absent (None) or with other values."""
    units = {unit: unit_records(data, unit) for unit in rows}
    if alternative is None:
        for unit, records in units.items():
            units[unit] = records.take(np.delete(np.arange(len(records)), rows[unit]))
    for name, value in (alternative or {}).items():
        holders = [unit for unit, records in units.items() if name in records.columns]
        if not holders:
            raise ArgumentError("alternatives", "must name a column of the target", got=name)
        for unit in holders:
            schema = units[unit].schema
            code = value
            if isinstance(value, str) and name in schema.names:
                code = schema.attribute(name).code(value)
            column = units[unit].table.column(name).to_pylist()
            for row in rows[unit].tolist():
                column[row] = code
            units[unit] = units[unit].replace(**{name: column})
    persons, households = (units.get(unit, getattr(data, unit)) for unit in UNITS)
    return Microdata(persons, households, data.blocks)


def ask(
    population: Microdata | Records, target: Target, question: MechanismQuestion
) -> TargetHypotheses:
    """Return the checked question about one target, with a data set for each hypothesis."""
    check.instance(question, MechanismQuestion, "question")
    workload = question.workload
    data = read_microdata(population, "population")
    rows = target_rows(data, target)
    datasets = (data, *(hypothesis(data, rows, other) for other in question.alternatives))
    part = Workload(workload.schema, {key: workload.tables[key] for key in question.tables()})
    records = [dataset.for_schema(workload.schema) for dataset in datasets]
    places = _places(data, records)
    target_places = _changed_places(records, workload)
    near = _near(question, target_places, places)
    dense = _tabulated(records, part, near)
    totals = _cells(dense, part, question.known_totals, near, target_places[0])
    for (level, table, cell, place), (truth, *alternatives) in totals.items():
        for i, count in enumerate(alternatives):
            if count != truth:
                raise ArgumentError(
                    f"alternatives[{i}] must keep the known total of {table!r}, {cell!r}, at "
                    f"{level} {place}, {truth}, got {count}: let others make it up, such as the "
                    "target's record in another place of the group"
                )
    observed = _cells(dense, part, question.observed, near, target_places[0])
    if not observed:
        raise ArgumentError(
            "observed", "must have a cell that a hypothesis changes", got=question.observed
        )
    _public_places(tuple(observed), workload, places)
    if data.blocks is None:  # the places of all hypotheses are taken as the public list
        listed = [dataset.with_places(OCCUPIED).geoids() for dataset in datasets]
        public = np.concatenate([codes for codes in listed if codes is not None])
        datasets = tuple(dataset.with_places(public) for dataset in datasets)
    counts = np.array(list(observed.values()), dtype=np.int64).T
    return TargetHypotheses(datasets, question.prior_pmf(), tuple(observed), counts)


def _near(
    question: MechanismQuestion, target_places: list[TextArray], places: list[TextArray]
) -> dict[str, TextArray]:
    """Return, by level, the observed places: the target's and those named in the question."""
    geography = question.workload.schema.geography
    moved, listed = np.unique(np.concatenate(target_places)), np.unique(np.concatenate(places))
    near: dict[str, TextArray] = {}
    for entry in (*question.observed, *question.known_totals):
        level = entry[0]
        codes = near.get(level, np.unique(geography.ancestors(moved, level)))
        if len(entry) == 4:
            if entry[3] not in geography.ancestors(listed, level):
                name = "observed" if entry in question.observed else "known_totals"
                raise ArgumentError(
                    f"{name} must name places of the population, "
                    f"got {quote(entry[3])} at {quote(level)}"
                )
            codes = np.union1d(codes, [entry[3]])
        near[level] = codes
    return near


def _changed_places(records: list[Records], workload: Workload) -> list[TextArray]:
    """Return, under each hypothesis, the places whose records differ from another's."""
    counts = [_counted(r) for r in records]
    changed = []
    for tally in counts:
        moved = [key for key in tally if any(tally[key] != other.get(key, 0) for other in counts)]
        changed.append(np.array(sorted({place for place, _ in moved}), dtype=np.str_))
    if not any(part.size for part in changed):
        raise ArgumentError(
            "alternatives",
            "must change what the workload counts, but every hypothesis gives the same records",
        )
    width = workload.schema.geography.widths[-1]
    return [part.astype(f"<U{max(width, 1)}") for part in changed]


def _counted(records: Records) -> dict[tuple[str, int], int]:
    names, place = records.places()
    pairs, times = np.unique(np.column_stack([place, records.cells()]), axis=0, return_counts=True)
    keys = zip(names[pairs[:, 0]].tolist(), pairs[:, 1].tolist(), strict=True)
    return dict(zip(keys, times.tolist(), strict=True))


def _places(data: Microdata, records: list[Records]) -> list[TextArray]:
    """Return the finest places in a release, under each hypothesis."""
    listed = [r.places()[0] for r in records]
    if data.blocks is None:
        return listed
    blocks = data.blocks["block"].to_numpy(dtype=np.str_)
    return [np.union1d(blocks, part) for part in listed]


def _public_places(cells: Sequence[Cell], workload: Workload, places: list[TextArray]) -> None:
    """Raise if an observed place is missing from the release under some hypothesis."""
    for level in {cell[0] for cell in cells}:
        listed = [set(workload.schema.geography.ancestors(p, level).tolist()) for p in places]
        for cell in cells:
            if cell[0] == level and not all(cell[3] in codes for codes in listed):
                raise ArgumentError(
                    f"observed place {cell[3]!r} has no record under some hypothesis: population "
                    "must list its blocks, so that a place without records is published too"
                )


def _cells(
    dense: Mapping[tuple[str, str], IntArray],
    workload: Workload,
    entries: Sequence[tuple[str, ...]],
    near: Mapping[str, TextArray],
    target_places: TextArray,
) -> dict[Cell, list[int]]:
    """Return the cells that the entries name, with their counts under each hypothesis."""
    cells: dict[Cell, list[int]] = {}
    for entry in entries:
        key = entry[0], entry[1]
        names, counts, codes = workload.tables[key].cells, dense[key], near[entry[0]]
        if len(entry) == 2:
            positions = np.argwhere((counts != counts[0]).any(axis=0))
        else:
            code = np.array(entry[3:])
            if not code.size:
                code = np.unique(workload.schema.geography.ancestors(target_places, entry[0]))
                if code.size != 1:
                    raise ArgumentError(
                        f"{entry!r}",
                        f"must name a geoid: the target is in {code.size} places of that level",
                    )
            positions = np.array([[int(np.searchsorted(codes, code[0])), names.index(entry[2])]])
        for row, column in positions.tolist():
            cells[*key, names[column], str(codes[row])] = counts[:, row, column].tolist()
    return cells


def _tabulated(
    records: list[Records], workload: Workload, near: Mapping[str, TextArray]
) -> dict[tuple[str, str], IntArray]:
    """Return counts by table (hypotheses, places, cells) for the observed places only."""
    geography = workload.schema.geography
    places = np.unique(np.concatenate([r.places()[0] for r in records]))
    inside = np.zeros(places.shape, dtype=bool)
    for level, codes in near.items():
        inside |= np.isin(geography.ancestors(places, level), codes)
    nearby = places[inside]
    dense: dict[tuple[str, str], list[IntArray]] = {key: [] for key in workload.tables}
    for part in records:
        nearby_records = part.take(np.isin(part.geoids, nearby))
        published = tabulate(nearby_records, workload, geoids=nearby)
        for key, layers in dense.items():
            codes, published_codes = near[key[0]], published.geoids[key[0]]
            counts = np.zeros((codes.size, len(workload.tables[key].cells)), dtype=np.int64)
            shared = np.isin(codes, published_codes)
            rows = np.searchsorted(published_codes, codes[shared])
            counts[shared] = published.counts[key][rows].toarray()
            layers.append(counts)
    return {key: np.stack(layers) for key, layers in dense.items()}
