"""The posterior of every count of a noisy measurement file, consistent along the spine.

For each cell of one query, the counts of all units form a tree: the count of a place is the sum of
those of the places in it. Noisy answers, invariant totals and bounds of every level are used
together.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from bayesrisk._base import disk, validation as check
from bayesrisk._base.validation import MAX_COUNT, FloatArray, IntArray, TextArray
from bayesrisk.accounting import census_2020_budget
from bayesrisk.census.readers.geocodes import SPINE_WIDTHS
from bayesrisk.census.readers.nmf import reader as nmf_reader
from bayesrisk.census.readers.nmf.reader import NoisyMeasurements
from bayesrisk.census.readers.nmf.rows import cell_labels
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.experiments.pages import Part, Quotes, drawing, findings, origin, table, what_to_do
from bayesrisk.experiments.runs.engine import Study
from bayesrisk.experiments.runs.folder import Layout, RunFolder
from bayesrisk.inference import Tree, tree_posterior
from bayesrisk.inference.tree.plan import LeafPriors
from bayesrisk.inference.tree.posterior import TreePosterior
from bayesrisk.plotting.attacks import draw_numbers
from bayesrisk.tables.cells import positions

_NODES = 2**19  # nodes times cells of a shard, about
_LEVELS = (0.05, 0.95)  # of the interval in the output
#: Production budgets that a run may name.
_BUDGETS = ("pl94-us", "pl94-pr")


@dataclass(frozen=True, eq=False)
class MeasurementSource:
    """A folder of noisy measurements, for one query's cells in one level's units.

    ``target`` is for every cell of the histogram the cell of the query, of which there are
    ``n_cells``; None where axes are not known.  ``atoms`` are the constraints that are understood.
    """

    nmf: NoisyMeasurements
    level: str
    query: str
    n_cells: int
    target: IntArray | None
    atoms: nmf_reader.Atoms

    @property
    def digest(self) -> str:
        """SHA-256 of the names and contents of the folder's files."""
        folder, total = self.nmf.folder, hashlib.sha256()
        try:
            for file in sorted(p for p in folder.rglob("*.parquet") if p.is_file()):
                name = file.relative_to(folder).as_posix()
                total.update(f"{name} {disk.digest(file)}\n".encode())
        except OSError as error:
            raise DataError(f"{folder}: cannot be read: {error}") from error
        return total.hexdigest()

    @property
    def above(self) -> tuple[str, ...]:
        """Levels above that of the units, coarse to fine."""
        return self.nmf.levels[: self.nmf.levels.index(self.level)]

    def known_cells(self) -> tuple[IntArray, IntArray]:
        """Return the query's cell and the atom of every histogram cell; raise if unknown."""
        if self.target is None or self.atoms.cell_atoms is None:
            raise DataError(f"{self.nmf.folder}: axes of the histogram must be known, but are not")
        return self.target, self.atoms.cell_atoms

    def state(self, code: str) -> str:
        """Return a unit's state, the beginning of its geocode; empty for the nation."""
        wide = self.nmf.widths.get("State", SPINE_WIDTHS["State"])
        return "" if self.level == "US" else code[:wide]

    def width(self, level: str) -> int:
        """Return the number of characters of a level's geocodes; 0 for the nation."""
        return self.nmf.widths.get(level, 0)

    def answers(self, level: str, units: TextArray) -> nmf_reader.QueryRows | None:
        """Return the noisy answers to the query in a range of sorted units, or None."""
        width = self.width(level)
        low, high = str(units[0])[:width], str(units[-1])[:width]
        return nmf_reader.rows_between(self.nmf, level, "DPQuery", low, high, (self.query,)).get(
            self.query
        )

    def check_listed(self, level: str, answered: TextArray, listed: TextArray) -> None:
        """Raise if a unit has noisy answers but is missing from the constraints."""
        missing = np.setdiff1d(answered, listed)
        if missing.size:
            raise DataError(
                f"{self.nmf.folder}: {level} {missing[0]} has a noisy answer, but the constraints "
                "do not list it: copy the whole Constraint folder, or none"
            )

    def bounds(
        self, units: TextArray, level: str, target: IntArray | None, *, around: bool = True
    ) -> nmf_reader.CellBounds:
        """Return the bounds that constraints set on the cells of sorted units.

        With ``around`` the constraints of the units around them count too.
        """
        if target is None or not units.size:  # cells of which nothing is known
            return nmf_reader.CellBounds(
                np.zeros(units.size, dtype=np.int64),
                np.zeros((1, self.n_cells), dtype=np.int64),
                np.full((1, self.n_cells), MAX_COUNT),
                np.full((1, self.n_cells), -1, dtype=np.int16),
                (),
                np.ones((1, self.atoms.size), dtype=np.bool_),
            )
        rows = []
        # Its own constraints first: of two that say the same, they are named.
        for other in reversed(self.nmf.levels[: self.nmf.levels.index(level) + 1]):
            width = self.width(other)
            if (other != level and not around) or (other != "US" and not width):
                continue
            low, high = str(units[0])[:width], str(units[-1])[:width]
            constraints = nmf_reader.rows_between(self.nmf, other, "Constraint", low, high)
            rows.append(("" if other == level else f"{other} ", width, constraints))
        return nmf_reader.cell_bounds(
            self.atoms, target, units, rows, f"{self.nmf.folder}: {level}"
        )


def _finest(nmf: NoisyMeasurements, queries: dict[str, tuple[str, ...]], level: str) -> str:
    """Return the query with most cells, the detailed one if there is one."""
    if "detailed" in queries:
        return "detailed"
    sizes = {}
    for name, answers in queries.items():
        labels = cell_labels(nmf.universe, answers)
        sizes[name] = 0 if labels is None else int(labels.max()) + 1
    if not sizes:
        raise DataError(f"{nmf.folder}: level {level} must have noisy answers, got none")
    return max(sizes, key=lambda name: sizes[name])


def read_source(
    folder: str, level: str, query: str | None, budget: str | None
) -> MeasurementSource:
    """Return the opened folder for one query, by default the one with most cells."""
    nmf = NoisyMeasurements.open(folder)
    if budget is not None:
        product, region = check.choice(budget, "budget", _BUDGETS).split("-")
        universe = nmf.universe.name
        if not universe.startswith(product):
            raise ArgumentError(
                "budget", f"must be that of the folder's product, {universe}", shown=budget
            )
        kind = universe.removeprefix(f"{product}-")
        rho = census_2020_budget(product, region=region.upper(), universe=kind)
        nmf = NoisyMeasurements.open(folder, budget=rho)
    check.choice(level, "level", nmf.levels)
    queries = nmf_reader.definitions(nmf, level, "DPQuery")
    name = _finest(nmf, queries, level) if query is None else query
    if name not in queries:
        raise ArgumentError(
            "query",
            f"must be one of {'; '.join(queries) or 'none'} at level {level}",
            got=name,
            advice=check.did_you_mean(name, queries),
        )
    target = cell_labels(nmf.universe, queries[name])
    stated: dict[str, tuple[str, ...]] = {}
    for other in nmf.levels[: nmf.levels.index(level) + 1]:
        for constraint, answers in nmf_reader.definitions(nmf, other, "Constraint").items():
            if stated.setdefault(constraint, answers) != answers:
                names = ", ".join(stated[constraint])
                raise DataError(
                    f"{nmf.folder}: constraint {constraint} must ask {names} at every level, "
                    f"got {', '.join(answers)} at {other}"
                )
    if target is None:
        cells = next(nmf.iter_values(level, name)).values.shape[1]
    else:
        cells = int(target.max()) + 1
    return MeasurementSource(
        nmf, level, name, cells, target, nmf_reader.Atoms(nmf.universe, stated)
    )


_cached_source = functools.lru_cache(maxsize=1)(
    read_source
)  # the shards of a run all read one folder


@dataclass(frozen=True)
class NoisyStudy(Study):
    """Base of studies of one folder of noisy measurements, for units of one level."""

    measurements: str | Path
    _: KW_ONLY
    query: str | None = None
    level: str = "Block"
    budget: str | None = None
    made_up: bool = False

    caches: ClassVar[Sequence[Any]] = (_cached_source,)
    inputs: ClassVar = ("measurements",)
    summary: ClassVar = True

    def _source(self) -> MeasurementSource:
        folder = check.path(self.measurements, "measurements")
        check.text(self.level, "level")
        if self.query is not None:
            check.text(self.query, "query")
        if self.budget is not None:
            check.choice(self.budget, "budget", _BUDGETS)
        return _cached_source(str(folder), self.level, self.query, self.budget)


# -----------------------------------------------------------------------------
# Trees of counts, one for each cell of a query.


class Spine:
    """The units below one top unit, with noisy answers and bounds of one query."""

    def __init__(self, source: MeasurementSource, top: str, unit: str) -> None:
        self.source = source
        below = "" if top == "US" else unit
        levels = source.nmf.levels
        self.units: dict[str, TextArray] = {}
        for level in levels[levels.index(top) : levels.index(source.level) + 1]:
            units, _ = nmf_reader.units_between(source.nmf, level, below, below)
            if units.size:
                self.units[level] = units

    @property
    def size(self) -> int:
        """Number of nodes."""
        return sum(units.size for units in self.units.values())

    def trees(self, first: int, last: int) -> Iterator[tuple[Tree, pd.DataFrame]]:
        """Yield each cell's tree, and its table with the level of each node."""
        levels, nmf = list(self.units), self.source.nmf
        parts = [
            (level, self._parents(above, level), self._evidence(level))
            for above, level in zip((None, *levels), levels, strict=False)
        ]
        for cell in range(first, last):
            tables = []
            for level, parents, (noisy, sigma2, bounds) in parts:
                lower, upper = (x[bounds.pattern, cell] for x in (bounds.lower, bounds.upper))
                counts = pd.Series(noisy[:, cell], dtype="Int64").where(np.isfinite(sigma2))
                columns = {
                    "node": self.units[level],
                    "parent": parents,
                    "noisy_count": counts,
                    "sigma2": sigma2,
                    "lower": lower,
                    "upper": pd.Series(upper, dtype="Int64").where(upper < MAX_COUNT),
                    "level": level,
                }
                tables.append(pd.DataFrame(columns))
            frame = pd.concat(tables, ignore_index=True)
            try:
                tree = Tree.from_frame(frame)
            except DataError as error:
                stated = (nmf_reader.definitions(nmf, level, "Constraint") for level in nmf.levels)
                names = ", ".join(sorted(set().union(*stated)))
                raise DataError(
                    f"{nmf.folder}: query {self.source.query}, cell {cell}, constraints "
                    f"{names or 'none'}: {error}"
                ) from error
            yield tree, frame

    def _parents(self, above: str | None, level: str) -> NDArray[np.object_]:
        """Return each unit's parent in the level above, or None at the top."""
        units = self.units[level]
        if above is None:
            return np.full(units.size, None, dtype=object)
        above_units = self.units[above]
        if above == "US":
            return np.full(units.size, above_units[0], dtype=object)
        codes = units.astype(f"U{self.source.width(above)}")
        lost = np.flatnonzero(positions(codes, above_units) < 0)
        if lost.size:
            raise DataError(
                f"{self.source.nmf.folder}: unit {units[lost[0]]} of level {level} must lie in a "
                f"{above} of the folder, got none {quote(str(codes[lost[0]]))}"
            )
        return codes.astype(object)

    def _evidence(self, level: str) -> tuple[IntArray, FloatArray, nmf_reader.CellBounds]:
        """Return a level's noisy counts, scales (NaN without an answer) and bounds."""
        source, units = self.source, self.units[level]
        noisy = np.zeros((units.size, source.n_cells), dtype=np.int64)
        sigma2 = np.full(units.size, np.nan)
        rows = source.answers(level, units)
        if rows is not None:
            source.check_listed(level, rows.geocodes, units)
            if rows.values.shape[1] != source.n_cells:
                raise DataError(
                    f"{source.nmf.folder}: {source.query} must have {source.n_cells} cells at "
                    f"level {level} as at {source.level}, got {rows.values.shape[1]}"
                )
            place = positions(units, rows.geocodes)
            noisy[place >= 0] = rows.values[place[place >= 0]]
            sigma2[place >= 0] = rows.sigma2[place[place >= 0]]
        return noisy, sigma2, source.bounds(units, level, source.target, around=False)


def _check_levels(source: MeasurementSource, top: str) -> MeasurementSource:
    """Return the source; raise unless its query counts the same cells up to level ``top``."""
    levels, level, query = source.nmf.levels, source.level, source.query
    check.choice(top, "top", levels)
    if levels.index(top) > levels.index(level):
        raise ArgumentError("top", f"must be level {level} or a coarser one", shown=top)
    for other in levels[levels.index(top) : levels.index(level)]:
        answers = nmf_reader.definitions(source.nmf, other, "DPQuery").get(query)
        labels = None if answers is None else cell_labels(source.nmf.universe, answers)
        if labels is not None and not np.array_equal(labels, source.known_cells()[0]):
            raise DataError(
                f"{source.nmf.folder}: query {query} must count the same cells at level {other} "
                f"as at {level}, got {', '.join(answers or ())}"
            )
    return source


def measurement_posterior(
    measurements: str | Path,
    *,
    query: str = "total",
    cell: int = 0,
    unit: str | None = None,
    level: str = "Block",
    top: str = "State",
    budget: str | None = None,
    leaf_prior: LeafPriors = "flat",
) -> TreePosterior:
    """Return the posterior of one count in every place below a unit, given the whole folder.

    Parameters
    ----------
    measurements : path-like
        Folder of a product of noisy measurement files.
    query : str, default "total"
        Query whose noisy answers are used, at every level that has them.
    cell : int, default 0
        Number of the count, in C order of the query's shape.
    unit : str, optional
        Geocode of the top unit; by default the only one.
    level, top : str, default "Block" and "State"
        Finest and coarsest level.
    budget : {"pl94-us", "pl94-pr"}, optional
        Production budget: exact scales of the noise.
    leaf_prior : LeafPrior, CountLaw, sequence of CountLaw, or "flat"
        Prior on each count of the finest level, as for :func:`tree_posterior`.

    Notes
    -----
    Memory: about 2 KiB for each unit of the finest level.

    Examples
    --------
    >>> import tempfile
    >>> from bayesrisk.census import write_nmf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sample = write_nmf(folder + "/US_Person_PL_PROD", rng=1)
    ...     belief = measurement_posterior(sample.folder, unit="057")
    >>> bool(belief.mean[0] == sample.counts["State"][0].sum())  # an exact total
    True
    """
    check.text(query, "query")
    folder = str(check.path(measurements, "measurements"))
    source = _check_levels(read_source(folder, level, query, budget), top)
    cell = check.integer(cell, "cell", lower=0, upper=source.n_cells - 1)
    units, _ = nmf_reader.units_between(source.nmf, top)
    if unit is None and units.size != 1:
        raise ArgumentError(f"unit must be given: level {top} has {units.size} units")
    chosen = str(units[0]) if unit is None else check.text(unit, "unit")
    if chosen not in units:
        raise ArgumentError(
            f"unit must be a geocode of level {top}, got {quote(chosen)}"
            f"{check.did_you_mean(chosen, units.tolist())}"
        )
    tree, _ = next(Spine(source, top, chosen).trees(cell, cell + 1))
    return tree_posterior(tree, leaf_prior=leaf_prior)


@dataclass(frozen=True)
class MeasurementCountsStudy(NoisyStudy):
    """Posterior of one query's counts in every place, as a study for :func:`run`.

    Every cell of the query has its own tree, from the top level to the finest.
    :func:`tree_posterior` solves it exactly under a flat prior, from noisy answers of all levels
    and from the totals and bounds of constraints. Counts are non-negative and add up.

    A complete run has ``counts.parquet`` with a row for each unit and cell: ``geocode``, ``level``,
    ``cell``, ``noisy_count`` and ``sigma2`` of its own answer, ``lower`` and ``upper``. Of the
    posterior it has ``mean``, ``sd``, ``mode``, ``at_least_one``, the quantiles ``q05`` and
    ``q95``, and ``truncation_bound``. The facts of the run are in ``summary.json``: ``query``,
    ``level``, ``top``, and for each level further numbers. They are the number of ``counts``, and
    of ``exact`` ones with one possible value. ``sd`` is the root of the mean variance in persons,
    ``noise_sd`` that of the mean scale sigma2 of the level's own noise (None without answers).
    ``truncation_bound`` is the largest bound on the mass cut off a posterior.

    Parameters
    ----------
    measurements : path-like
        Folder of a product of noisy measurement files.
    query : str, default "total"
        Query whose counts are estimated; only its noisy answers are used.
    level : str, default "Block"
        Finest level.
    top : str, default "State"
        Coarsest level: each of its units is a tree, and levels above are not used. This loses
        nothing if the top has an exact count, such as the population of a state.
    budget : {"pl94-us", "pl94-pr"}, optional
        Production budget with the exact scales of the noise, in place of those found from
        variances.
    made_up : bool, default False
        Whether the people do not exist, as in a sample; the report then says so.

    Notes
    -----
    Memory holds a tree, with about 2 KiB for each unit of the finest level below one of the top
    level. A shard has at most about 2**19 rows (or one cell of one tree). A finer ``top`` needs
    less.

    Examples
    --------
    >>> import tempfile
    >>> from bayesrisk.experiments import run
    >>> from bayesrisk.census import write_nmf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sample = write_nmf(folder + "/US_Person_PL_PROD", rng=1)
    ...     summary = run(MeasurementCountsStudy(sample.folder), folder + "/counts")
    >>> summary.exact["State"], summary.sd["Block"] < summary.noise_sd["Block"]
    (3, True)
    """

    _: KW_ONLY
    query: str = "total"
    top: str = "State"

    layout = Layout(
        "run on the counts of noisy measurements", kinds=("tally", "counts"), merged=("counts",)
    )

    @functools.cached_property
    def config(self) -> Mapping[str, Any]:
        """Checked settings, the folder's digest, and each shard's unit and range of cells."""
        check.text(self.query, "query")
        source = _check_levels(self._source(), self.top)
        parts = []
        for state in nmf_reader.state_prefixes(source.nmf, self.top):
            for unit in nmf_reader.units_between(source.nmf, self.top, state, state)[0].tolist():
                cells = max(1, _NODES // Spine(source, self.top, unit).size)
                for first in range(0, source.n_cells, cells):
                    parts.append((unit, first, min(first + cells, source.n_cells)))
        if not parts:
            raise DataError(f"{source.nmf.folder}: level {self.top} must have units, got none")
        return self.configuration(measurements=source.digest, parts=tuple(parts), shards=len(parts))

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return a shard's posteriors, and their tally by level."""
        return self._posteriors(*self.config["parts"][shard])

    def work(self, shard: int) -> float:
        """Return the number of trees: one for each cell."""
        _, first, last = self.config["parts"][shard]
        return float(last - first)

    def pilot(self, shard: int, amount: float) -> float:
        """Compute the first trees of a shard."""
        unit, first, last = self.config["parts"][shard]
        last = min(last, first + int(amount))
        self._posteriors(unit, first, last)
        return float(last - first)

    def _posteriors(self, unit: str, first: int, last: int) -> dict[str, pa.Table]:
        spine = Spine(self._source(), self.top, unit)
        cells = [
            _rows(tree_posterior(tree, leaf_prior="flat"), cell, frame)
            for cell, (tree, frame) in enumerate(spine.trees(first, last), start=first)
        ]
        counts = pd.concat(cells, ignore_index=True)
        schema = pa.schema([(name, _TYPES.get(name, pa.float64())) for name in counts.columns])
        return {
            "tally": pa.Table.from_pandas(_tally(counts), preserve_index=False),
            "counts": pa.Table.from_pandas(counts, schema=schema, preserve_index=False),
        }

    def report(self, folder: RunFolder, facts: Mapping[str, Any]) -> bytes:
        """Return the report."""
        rows = _levels(facts)
        sizes = {level: round(sd, 1) for level, sd in facts["sd"].items()}
        draw = functools.partial(draw_numbers, sizes, "people")
        return findings(
            "Noisy measurements: what all levels together say about each count",
            facts["brief"],
            advice=advice(facts),
            quotes=_quotes(rows, facts["query"]),
            source=origin(self.config, "posteriors"),
            settings=self.config,
            figures=[
                drawing(draw, "How uncertain a count remains (standard deviation), by level.")
            ],
            tables=[table(pd.DataFrame(rows), "Counts of each level")],
        )

    def facts(self, folder: RunFolder, *, complete: bool) -> Mapping[str, Any]:
        """Return the numbers of counts and their standard deviations, by level."""
        finished, bound = folder.finished(), 0.0
        rows: dict[Any, dict[Any, Any]] = {}
        if finished:
            tally = folder.frame("tally", finished)
            bound = float(tally.pop("truncation_bound").max())
            sums: dict[Any, dict[Any, Any]] = tally.groupby("level").sum().to_dict(orient="index")
            rows = {level: sums[level] for level in self._source().nmf.levels if level in sums}
        facts = {
            **{name: self.config[name] for name in ("query", "level", "top")},
            "counts": {level: int(row["n"]) for level, row in rows.items()},
            "exact": {level: int(row["exact"]) for level, row in rows.items()},
            "sd": {
                level: float(np.sqrt(row["variance"] / row["n"])) for level, row in rows.items()
            },
            "noise_sd": {
                level: float(np.sqrt(row["noise"] / row["measured"])) if row["measured"] else None
                for level, row in rows.items()
            },
            "truncation_bound": bound,
        }
        brief = [_level_sentence(row) for row in reversed(_levels(facts))]
        return {"brief": brief or ["No count has a posterior: nothing was read."], **facts}


def _levels(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each level, as the report shows them."""
    return [
        {
            "level": level,
            "counts": size,
            "known exactly": facts["exact"][level],
            "standard deviation": facts["sd"][level],
            "of its own noise": facts["noise_sd"][level] or np.nan,
        }
        for level, size in facts["counts"].items()
    ]


def _level_sentence(row: Mapping[str, Any]) -> str:
    """Return a sentence on the uncertainty of a level's counts, jointly and by own noise."""
    size, exact, noise = row["counts"], row["known exactly"], row["of its own noise"]
    level = row["level"].replace("_", " ")
    text = f"None of {size:,} {level} counts is exact"
    if exact:
        are = "is" if exact == 1 else "are"
        text = f"Of {size:,} {level} counts {exact:,} {are} exact"
    if exact < size:
        text += f"; all levels together leave a count uncertain by {_people(row)}"
        text += "" if np.isnan(noise) else f", its own noise alone by {_people(row, noise)}"
    return f"{text}."


def advice(facts: Mapping[str, Any]) -> Part:
    """Return the advice by how many counts follow exactly."""
    return what_to_do(
        undecided=any(facts["exact"].values()) if facts["counts"] else "nothing was read",
        basis=f"the query {facts['query']} alone",
        step="`bayesrisk census measurements FOLDER --prior 0.1 --unit GEOID` shows a place.",
    )


def _people(row: Mapping[str, Any], sd: float | None = None) -> str:
    value = row["standard deviation"] if sd is None else sd
    if value < 0.95:
        return "less than one person"
    return f"about {value:,.0f} {'people' if value >= 1.5 else 'person'}"


def _quotes(rows: Sequence[Mapping[str, Any]], query: str) -> Quotes:
    """Return sentences about the counts that may be quoted, and that may not."""
    every, exact = (sum(row[name] for row in rows) for name in ("counts", "known exactly"))
    return Quotes(
        may=[
            *(_level_sentence(row) for row in rows[-1:]),
            f"Of {every:,} counts of {query} {exact:,} follow exactly from what was published.",
            "Each count has an interval that holds the truth with a probability of 90 %, if all "
            "counts were equally likely before.",
        ],
        may_not={
            "The published noisy count is the number of people.": "It is that number plus noise; "
            "it may even be negative.",
            "The mean of a posterior is the true count.": "It is the middle of what is possible; "
            "the interval in the file says how far the truth may be.",
            "Noise makes the counts useless.": "The more places are added up, the less noise "
            "matters.",
        },
    )


_TYPES = {
    "geocode": pa.string(),
    "level": pa.string(),
    "cell": pa.int32(),
    **dict.fromkeys(("noisy_count", "lower", "upper", "mode", "q05", "q95"), pa.int64()),
}


def _rows(result: TreePosterior, cell: int, frame: pd.DataFrame) -> pd.DataFrame:
    order = result.tree.names.get_indexer(pd.Index(frame["node"]))
    low, high = result.quantile(_LEVELS)
    posterior = {
        "mean": result.mean,
        "sd": result.sd,
        "mode": result.mode,
        "at_least_one": result.at_least_one,
        "q05": low,
        "q95": high,
    }
    rows = frame[["node", "level"]].rename(columns={"node": "geocode"}).assign(cell=cell)
    evidence = frame[["noisy_count", "sigma2", "lower", "upper"]]
    rows = rows.join(evidence).assign(**{name: x[order] for name, x in posterior.items()})
    return rows.assign(truncation_bound=result.truncation_bound)


def _tally(counts: pd.DataFrame) -> pd.DataFrame:
    """Return sums by level, which add up over shards."""
    measured_counts = counts.assign(
        exact=counts["sd"] == 0.0,
        variance=counts["sd"] ** 2,
        noise=counts["sigma2"].fillna(0.0),
        measured=counts["sigma2"].notna(),
        n=1,
    )
    sums = measured_counts.groupby("level", sort=True)[
        ["n", "exact", "variance", "noise", "measured"]
    ].sum()
    bound = measured_counts.groupby("level", sort=True)["truncation_bound"].max()
    return sums.astype({"exact": "int64"}).assign(truncation_bound=bound).reset_index()
