"""Attacks on published tables: the occupancy attack as a study, and one report of all they tell.

Both read what was published, the study also a public sample, and nothing else.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from bayesrisk import _files, _validation as check, reconstruction
from bayesrisk._files.delimited import csv_bytes
from bayesrisk._files.parquet import opened, read_frame
from bayesrisk._files.text import named
from bayesrisk._show import arrow_table
from bayesrisk._validation import FloatArray
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.experiments.reconstruction import kept_tables, open_tables
from bayesrisk.experiments.runs import engine
from bayesrisk.experiments.runs.engine import Study
from bayesrisk.experiments.runs.folder import Layout, RunFolder
from bayesrisk.inference import RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.plotting.attacks import plot_bounds
from bayesrisk.reconstruction import Proofs
from bayesrisk.reconstruction.claims.result import Claims, one_record, several
from bayesrisk.reconstruction.occupancy.solutions import OccupancyReconstruction
from bayesrisk.reconstruction.occupancy.statistics import OccupancyStatistics
from bayesrisk.reconstruction.records.bounds import CountBounds, narrowed
from bayesrisk.reconstruction.records.reconstruction import Reconstruction, record_form
from bayesrisk.reconstruction.registry import Status
from bayesrisk.tables import Microdata, PublishedTables, Records, Schema, Workload
from bayesrisk.tables.layouts import Layouts

SCHEMA = "household-occupancy"
_HUD = {"children", "bedrooms", "subsidised"}
_SIMULATED = {"tenure", *_HUD}  # columns of ``household-dhc``, and HUD's
SAMPLED = ["size", "race_ethnicity", "children"]
HOUSEHOLD = ["size", "race_ethnicity", "children", "bedrooms", "subsidised", "violation"]

# -----------------------------------------------------------------------------
# Files of households.


def read_households(path: str | Path) -> Records:
    """Return confidential households of a Parquet file.

    Its columns are those of schema ``household-occupancy``, or of ``household-dhc`` with
    ``children``, ``bedrooms`` and ``subsidised``, such as ``bayesrisk simulate`` writes.
    """
    columns = _columns(path)
    if set(columns) >= _SIMULATED:
        return Records.read(path, schema=Schema.named("household-dhc"))
    if set(columns) >= {"race_ethnicity", *_HUD}:
        return Records.read(path, schema=Schema.named(SCHEMA))
    raise DataError(
        f"{path}: must have columns block, size, race_ethnicity, children, bedrooms, subsidised "
        f"(or those of household-dhc), got {', '.join(columns)}"
    )


def read_sample(path: str | Path) -> pd.DataFrame:
    """Return ``size``, ``race_ethnicity``, ``children`` and perhaps ``weight`` of a public sample.

    The Parquet file has those columns, or households such as ``bayesrisk simulate`` writes.
    """
    columns = _columns(path)
    if "race_ethnicity" not in columns and set(columns) >= _SIMULATED:
        homes = Microdata(None, read_households(path), None).for_schema(Schema.named(SCHEMA))
        return homes.to_frame()[SAMPLED]
    for name in SAMPLED:
        if name not in columns:
            raise DataError(f"{path}: must have a column {name!r}, got {', '.join(columns)}")
    weight = ["weight"] if "weight" in columns else []
    return read_frame(Path(path), dict.fromkeys([*SAMPLED, *weight], ("number",)))


def _columns(path: str | Path) -> list[str]:
    """Return the names of the columns of a Parquet file."""
    if Path(path).is_dir():
        raise DataError(f"{path}: must be a file of households, got a folder without them")
    if not Path(path).is_file():
        raise DataError(f"{path}: no such file")
    with opened(Path(path)) as (_, columns):
        return list(columns.names)


def _digest(path: str | Path) -> str:
    """Return the SHA-256 of a file."""
    with named(str(path)):
        return _files.digest(path)


@functools.lru_cache(maxsize=1)
def _statistics(path: str, digest: str) -> OccupancyStatistics:
    """Return the statistics of a file, once for each process; refuse one that has changed."""
    statistics = OccupancyStatistics.from_frame(read_frame(Path(path)), source=path)
    if _digest(path) != digest:
        raise DataError(f"{path}: must not change while it is read")
    return statistics


@dataclass(frozen=True)
class OccupancyAttackStudy(Study):
    """Which blocks of published statistics must hold a violation, for :func:`~bayesrisk.run`.

    A complete run has ``blocks.parquet`` (status, and with a sample the mean number of violations
    in reconstructions) and, with a sample, ``households.parquet``: kinds of households with their
    mean number in the reconstructions of a block, violations first.  Facts of a run are ``blocks``,
    their number, ``statuses``, how many have each, ``conflicts``, the first blocks that no
    households fit with the tables that contradict each other, and ``taken_as_true``.  Memory: the
    statistics in every worker, and one shard; of statistics by place, the part that the shard is
    in.

    Parameters
    ----------
    blocks : path-like
        Folder of tables of the workload ``household-occupancy`` or of a release, by place too; or a
        Parquet file of :meth:`OccupancyStatistics.to_frame`.
    sample : path-like, optional
        Parquet file of a public sample with ``size``, ``race_ethnicity``, ``children`` and perhaps
        ``weight``: also reconstruct the households of blocks with a violation.
    level, hud, taken_as_true, known_rule : object
        As for :func:`~bayesrisk.reconstruction.occupancy_statistics`, for tables.
    open_end, error, smoothing, time_limit : object
        As for :func:`~bayesrisk.reconstruction.detect_occupancy`,
        :func:`~bayesrisk.reconstruct_occupancy` and :meth:`HouseholdLaw.from_sample`.
    solutions : int, default 100
        Reconstructions of a block: the best one, or those of perturbed objectives.
    seed : int, default 1
        Of the perturbations, and of ties.
    blocks_per_shard : int, default 250
        Blocks of a shard; the perturbations depend on it.  Of tables at a level that is not their
        finest, a shard is of whole places of the level with about so many of the finest.
    """

    blocks: str | Path
    _: KW_ONLY
    sample: str | Path | None = None
    level: str = "block"
    hud: str = "counts"
    open_end: bool = True
    error: str = "none"
    solutions: int = 100
    smoothing: float = 0.5
    seed: int = 1
    time_limit: float | None = None
    blocks_per_shard: int = 250

    inputs: ClassVar = ("blocks",)
    taken_as_true: bool = False
    known_rule: bool = True

    caches: ClassVar = (kept_tables, _statistics)

    @functools.cached_property
    def config(self) -> Mapping[str, Any]:
        """Checked settings, and the digests of statistics and sample."""
        size = check.integer(self.blocks_per_shard, "blocks_per_shard", lower=1)
        check.integer(self.solutions, "solutions", lower=1, upper=10**6)
        check.choice(self.error, "error", ("none", "absolute", "squared"))
        check.flag(self.taken_as_true, "taken_as_true")
        limit = check.time_limit(self.time_limit)
        smoothing = check.scalar(self.smoothing, "smoothing", lower=0.0, upper=1e6, bounds="(]")
        if Path(self.blocks).is_dir():
            source = open_tables(self.blocks)
            check.choice(self.level, "level", source.workload.levels)
            digest, shards = source.digest, len(source.starts(self.level, size))
            if shards:  # whether all tables are there is said before a folder is made
                self._readable(self._read_statistics(source.shard(0, self.level, size)))
        elif self.hud != "counts":
            raise ArgumentError(
                "hud must be 'counts' for a file of statistics, which has intervals, "
                f"got {quote(self.hud)}"
            )
        else:
            digest = _digest(self.blocks)
            statistics = self._readable(_statistics(str(self.blocks), digest))
            shards = -(-len(statistics) // size)
        if not shards:
            raise DataError(f"{self.blocks}: must hold at least one block")
        return self.configuration(
            blocks=digest,
            sample=None if self.sample is None else _digest(self.sample),
            open_end=bool(self.open_end),
            smoothing=smoothing,
            seed=check.integer(self.seed, "seed", lower=0),
            time_limit=limit,
            shards=shards,
        )

    def shard_statistics(self, shard: int) -> OccupancyStatistics:
        """Return the statistics of the blocks of a shard."""
        digest, size = self.config["blocks"], self.blocks_per_shard
        if Path(self.blocks).is_dir():
            return self._read_statistics(
                open_tables(self.blocks, digest).shard(shard, self.level, size)
            )
        statistics = _statistics(str(self.blocks), digest)
        return statistics.take(np.arange(len(statistics))[shard * size : (shard + 1) * size])

    def _readable(self, statistics: OccupancyStatistics) -> OccupancyStatistics:
        """Return statistics; refuse several counts of a cell where households are asked for."""
        return statistics if self.sample is None else statistics.exact("a sample of households")

    def _read_statistics(self, tables: PublishedTables) -> OccupancyStatistics:
        """Return the statistics of tables; one that is missing is a fault of the folder."""
        try:
            return reconstruction.occupancy_statistics(
                tables,
                level=self.level,
                hud=self.hud,
                taken_as_true=self.taken_as_true,
                known_rule=self.known_rule,
            )
        except ArgumentError as error:
            if not str(error).startswith(("table ", "tables must have ")):
                raise
            raise DataError(f"{self.blocks}: {error}") from error  # of the folder, not of the call

    @functools.cached_property
    def _law(self) -> reconstruction.HouseholdLaw | None:
        """The law of households in the public sample, checked."""
        if self.sample is None:
            return None
        return reconstruction.HouseholdLaw.from_sample(
            read_sample(self.sample), smoothing=self.smoothing
        )

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """Parts of a shard: blocks, and with a sample households."""
        kinds = ("blocks",) if self._law is None else ("households", "blocks")
        return Layout("run of the occupancy attack", kinds=kinds, merged=kinds)

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return blocks, and with a sample the households of those with a violation, as means."""
        statistics, limit = self.shard_statistics(shard), self.config["time_limit"]
        detection = reconstruction.detect_occupancy(
            statistics, open_end=bool(self.open_end), time_limit=limit
        )
        blocks = detection.to_frame()
        if self._law is None:
            return {"blocks": arrow_table(blocks)}
        several = self.solutions > 1
        solutions = reconstruction.reconstruct_occupancy(
            statistics.take(detection.violation),
            self._law,
            rng=np.random.default_rng([self.seed, shard]),
            count=self.solutions,
            method="perturbed" if several else "exact",
            scale=0.1 if several else None,  # in nats
            error=self.error,
            time_limit=limit,
        )
        homes = solutions.to_frame().assign(
            households=solutions.households / solutions.solutions[solutions.block]
        )
        homes = homes.groupby(["block", *HOUSEHOLD], sort=True)["households"].sum().reset_index()
        order = ["block", "violation", "households"]
        homes = homes.sort_values(order, ascending=[True, False, False], kind="stable")
        homes = homes.astype(
            dict.fromkeys(HOUSEHOLD, np.int64) | {"block": "str", "violation": bool}
        )
        n = len(statistics)
        columns: dict[str, NDArray[Any]] = {
            "solutions": np.zeros(n, np.int64),
            "reconstruction": np.full(n, Status.NOT_RUN, dtype=object),
            "violations": np.full(n, np.nan),
        }
        results = (solutions.solutions, solutions.status, mean_violations(solutions))
        for column, values in zip(columns.values(), results, strict=True):
            column[detection.violation] = values
        blocks = blocks.assign(**columns)
        return {"households": arrow_table(homes), "blocks": arrow_table(blocks)}

    def facts(self, folder: RunFolder, *, complete: bool) -> Mapping[str, Any]:
        """Return counts of blocks, and the first five conflicts."""
        statuses: Counter[str] = Counter()
        conflicts: list[tuple[str, str]] = []
        for shard in folder.finished():
            blocks = folder.read_part(shard, "blocks").to_pandas()
            statuses.update(blocks["status"].tolist())
            wrong = blocks[blocks["status"] == Status.INFEASIBLE].head(5 - len(conflicts))
            conflicts += list(zip(wrong["block"], wrong["conflict"], strict=True))
        return {
            "blocks": statuses.total(),
            "statuses": dict(sorted(statuses.items())),
            "conflicts": tuple(conflicts),
            "taken_as_true": self.taken_as_true,
        }


def mean_violations(solutions: OccupancyReconstruction) -> FloatArray:
    """Return the violations of each block, as the mean of its solutions; NaN where it has none."""
    total = np.bincount(
        solutions.block, solutions.households * solutions.violation, minlength=solutions.geoids.size
    )
    mean: FloatArray = np.full(total.shape, np.nan)
    np.divide(total, solutions.solutions, out=mean, where=solutions.solutions > 0)
    return mean


# -----------------------------------------------------------------------------
# Proofs, bounds, records that fit and likely ones from published tables, in one report.


#: Combinations of all variables that are bounded, and records that are looked for, at most.
_MOST_CELLS, _MOST_RECORDS = 2**11, 20_000
_DRAWN, _SAID, _LIKELY = 30, 10, 200
_CAPTIONS = {
    "bounds": "Bounds of every published count, and of every combination of all variables",
    "claims": "What must be true, and no count states by itself",
    "records": "Records that fit; others may fit, too",
    "likely": "Likely records, if all lists of records were equally probable before",
}


def write_attack(
    layouts: Layouts,
    folder: str | Path,
    *,
    seed: int = 0,
    time_limit: float | None = 60.0,
    proofs: int = 10,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Write what published tables give away into a folder, which appears whole or not at all.

    Parameters
    ----------
    layouts : Layouts
        Tables as they were read, with no question left.
    folder : path-like
        New or empty: ``report.html``, ``bounds.csv``, ``claims.csv``, ``records.csv``,
        ``likely.csv``, ``reading.toml`` (what was assumed), ``tables`` (for other commands), and
        ``proofs``, with certificates and their checker, which the report links.
    seed : int
        Of the draws of likely records, where there is no exact law.
    time_limit : float, optional
        Seconds for each component, or for all claims; what it leaves open says so.
    proofs : int, default 10
        Certificates of so many claims, in the order of the report, and of so many bounds, those of
        published counts first; and of unique records, or of a contradiction.  0 for none.
    progress : callable, optional
        Called with the steps done, and all of them.
    """
    certificates = _Certificates(check.integer(proofs, "proofs", lower=0))
    tables, target = PublishedTables(*layouts.confirmed()), check.path(folder, "folder")
    tell = progress or (lambda number, steps: None)
    with _files.explained(target):
        _files.new_folder(target)
    frames: dict[str, pd.DataFrame] = {}
    proved, sentences = list[str](), list[str]()
    bounds = reconstruction.count_bounds(tables, time_limit=time_limit)
    keys = ["table", "cell"]
    columns = [*keys, "low_stated", "high_stated", "low", "high", "status"]
    if not bounds.conflict:
        bounds, columns = certificates.add_bounds(tables, bounds), [*columns, *certificates.column]
    frames["bounds"] = layouts.cells.merge(bounds.counts[columns], on=keys).drop(columns=keys)
    if bounds.conflict:
        reason = next(iter(bounds.conflict.values()))
        text = f"No records fit these tables as they were read: {reason}."
        sentences.append(engine.PageCell(text, href=certificates.add(tables, bounds, 1)[0]))
    elif bounds.counts["published"].fillna(0).max() > _MOST_RECORDS:
        sentences += [*bounds._answer(), f"More than {_MOST_RECORDS:,} records: only bounded."]
    else:
        tell(1, 5)
        frames["claims"], first, proved = _claims(tables, time_limit, certificates)
        tell(2, 5)
        frames["records"], fit = _records(tables, time_limit, certificates)
        tell(3, 5)
        frames["likely"], likely = _likely(tables, seed)
        tell(4, 5)
        frames["bounds"] = _with_combinations(frames["bounds"], tables, time_limit, certificates)
        sentences += [first, *bounds._answer(), fit, likely]
    sentences += certificates.answer()
    with _files.whole_folder(target, _files.new_folder) as new_folder:
        for name, frame in frames.items():
            _files.write_bytes(new_folder / f"{name}.csv", csv_bytes(frame))
        _files.write_bytes(new_folder / "reading.toml", layouts.to_toml().encode())
        tables.write(new_folder / "tables")
        certificates.write(new_folder)
        page = engine.render(
            "attack.html",
            title="What these tables give away",
            sentences=sentences,
            proved=proved,
            reading=layouts.lines,
            figures=_figures(frames["bounds"], new_folder),
            tables=[
                engine.table(_linked(f.head(500)), _CAPTIONS[n])
                for n, f in frames.items()
                if len(f)
            ],
            certificates=bool(certificates.parts),
            source=f"Made by bayesrisk {__version__}, seed {seed}.",
            settings_title="What was assumed, as a file for --assume",
            settings=layouts.to_toml(),
        )
        _files.write_bytes(new_folder / "report.html", page.encode())
    tell(5, 5)
    rows = {name: len(frame) for name, frame in frames.items()}
    sentences[1:1] = proved
    return {"report": str(target / "report.html"), "sentences": sentences, **rows, **bounds.facts}


class _Certificates:
    """Certificates of what is proved, so many of each kind, and the files that they will be in."""

    folder = "proofs"

    def __init__(self, most: int) -> None:
        self.most, self.bounds_left, self.parts = most, most, list[Proofs]()
        self.column = ["proof"] if most else []

    def add(
        self, tables: PublishedTables, answer: Claims | CountBounds | Reconstruction, size: int,
        **options: Workload,
    ) -> list[str]:  # fmt: skip
        """Return the file of each of some statements, empty for those without."""
        chosen = min(size, self.most)
        if not chosen:
            return [""] * size
        proofs = reconstruction.prove(tables, answer, most=chosen, queries=options.get("queries"))
        first = 1 + sum(len(part.statements) for part in self.parts)
        names = [
            f"proof-{number:04d}.json" for number in range(first, first + len(proofs.statements))
        ]
        present = (proofs.statements["file"] != "").to_numpy()
        files = np.where(present, names, "").tolist()
        self.parts.append(replace(proofs, statements=proofs.statements.assign(file=files)))
        paths = [f"{self.folder}/{name}" if name else "" for name in files]
        return [*paths, *[""] * (size - len(paths))]

    def add_bounds(
        self, tables: PublishedTables, bounds: CountBounds, **options: Workload
    ) -> CountBounds:
        """Return bounds with the file of each that is narrower than stated, and has one."""
        if not self.most:
            return bounds
        frame = bounds.counts
        rows = np.flatnonzero(narrowed(frame))[: self.bounds_left]
        self.bounds_left -= rows.size
        files = np.full(len(frame), "", dtype=object)
        chosen = replace(bounds, counts=frame.iloc[rows])
        files[rows] = self.add(tables, chosen, rows.size, **options)
        return replace(bounds, counts=frame.assign(proof=files))

    def answer(self) -> list[str]:
        """Return the sentence of the number of certificates."""
        every = [bool(certificate) for part in self.parts for certificate in part.certificates]
        proved, unproved = sum(every), len(every) - sum(every)
        text = (
            f"{proved:,} of these statements and bounds have a proof for others to check, in the "
        )
        text += f"folder {self.folder}."
        left = f" No proof was found for {unproved:,} more within the limit of the search."
        return [text + left * bool(unproved)] if every else []

    def write(self, folder: Path) -> None:
        """Write the certificates and their checker, if there are any."""
        if self.parts:
            statements = pd.concat([part.statements for part in self.parts], ignore_index=True)
            certificates = tuple(c for part in self.parts for c in part.certificates)
            Proofs(statements, certificates).write(folder / self.folder)


def _linked(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose proofs are links of a page."""
    if "proof" not in frame:
        return frame
    links = [engine.PageCell(Path(file).name, href=file) for file in frame["proof"]]
    return frame.assign(proof=pd.Series(links, frame.index, dtype=object))


def _with_combinations(
    stated: pd.DataFrame,
    tables: PublishedTables,
    time_limit: float | None,
    certificates: _Certificates,
) -> pd.DataFrame:
    """Return bounds of published counts, and of the combinations that nobody published."""
    schema = tables.workload.schema
    if not schema.names or schema.size > _MOST_CELLS:
        return stated
    cross = Workload.of(schema, [schema.names])
    bounds = reconstruction.count_bounds(tables, queries=cross, time_limit=time_limit)
    frame = schema.labelled(pd.DataFrame(schema.codes(np.arange(schema.size))))
    new = ~pd.MultiIndex.from_frame(frame[list(schema.names)]).isin(
        pd.MultiIndex.from_frame(stated[list(schema.names)])
    )
    bounds = replace(bounds, counts=bounds.counts[new])
    bounds = certificates.add_bounds(tables, bounds, queries=cross)
    frame = pd.concat([frame[new], bounds.counts], axis=1).reindex(columns=stated.columns)
    return pd.concat([stated, frame], ignore_index=True).astype({"row": "Int64"})


def _claims(
    tables: PublishedTables, time_limit: float | None, certificates: _Certificates
) -> tuple[pd.DataFrame, str, list[str]]:
    """Return proofs that no count states, how many there are, and the most telling in words."""
    claims = reconstruction.find_claims(tables, time_limit=time_limit)
    frame = claims.to_frame(readable="here")
    frame = frame[frame["multiplicity"] > 0]
    order = np.lexsort((-frame["n_columns"].to_numpy(), several(frame), ~one_record(frame)))
    frame = frame.iloc[order].reset_index(drop=True)
    sentences = reconstruction.claim_sentences(claims, frame)
    one = int(one_record(frame).sum())
    text = f"{len(frame):,} statements are proved that no count makes by itself; "
    text += f"{one:,} of them are about exactly one record." if one else "none is about one record."
    text = text if len(frame) else "Nothing is proved of the records beyond what each count says."
    table = pd.DataFrame({"sentence": sentences, "records": frame["multiplicity"]})
    table["at_least"] = several(frame)
    files = certificates.add(tables, replace(claims, claims=frame), len(frame))
    table = table.assign(**dict.fromkeys(certificates.column, files))
    schema = tables.workload.schema
    words = schema.labelled(frame)[list(schema.names)].fillna("any")
    pairs = zip(sentences[:_SAID], files, strict=False)
    sentences_linked = list[str](engine.PageCell(text, href=file) for text, file in pairs)
    return pd.concat([table, words], axis=1), text, sentences_linked


def _records(
    tables: PublishedTables, time_limit: float | None, certificates: _Certificates
) -> tuple[pd.DataFrame, str]:
    """Return records that fit, and how many of them could be others."""
    solution = reconstruction.reconstruct(tables, scope="all", time_limit=time_limit)
    frame = tables.workload.schema.labelled(record_form(solution)).drop(columns="all")
    text = f"Records that fit were not found ({solution.status[0]})."
    if len(frame):
        other = reconstruction.solution_variability(
            tables, scope="all", solution=solution, time_limit=time_limit, node_limit=1000
        )
        most = float(other.upper[0])
        text = f"{len(frame):,} records were found that fit; "
        text += f"at most {most:.0%} of them could be others." if most else "no others fit: proved."
        if not most:
            unique = replace(solution, status=(Status.UNIQUE,))
            text = engine.PageCell(text, href=certificates.add(tables, unique, 1)[0])
    return frame, text


def _likely(tables: PublishedTables, seed: int) -> tuple[pd.DataFrame, str]:
    """Return the records that are most probably there, or why there is no such law."""
    schema = tables.workload.schema
    prior, questions = RecordPrior.uniform_data_sets(schema), [RecordQuestion({})]
    try:
        posterior = microdata_posterior(
            tables, questions, level="all", place="", prior=prior, rng=seed
        )
        ranked = posterior.ranked_records(_LIKELY).drop(columns=["place", "known"])
    except ArgumentError as error:
        return pd.DataFrame(), f"Likely records were not found: {error}."
    for attribute in schema.attributes:
        ends = [str(text).partition("-") for text in ranked[attribute.name]]
        groups = [attribute.labels[int(a) : int(b or a) + 1] for a, _, b in ends]
        ranked[attribute.name] = [" or ".join(group) for group in groups]
    high = int((ranked["probability"] >= 0.9).sum())
    number = f"{high:,}{' or more' * (high == _LIKELY)}"
    text = (
        "records are there with a probability of 90 % or more, if all lists were equally probable"
    )
    return ranked, f"{number} {text} before ({posterior.engine})."


def _figures(bounds: pd.DataFrame, folder: Path) -> list[engine.Figure]:
    """Return the figure of the counts of which most is learned."""
    ends = bounds[["low_stated", "high_stated", "low", "high"]].astype("Float64").fillna(np.inf)
    width, stated = ends["high"] - ends["low"], ends["high_stated"] - ends["low_stated"]
    chosen = bounds.loc[width[(width < stated)].sort_values(kind="stable").index].head(_DRAWN)
    if chosen.empty:
        return []
    names = chosen.columns[: chosen.columns.get_loc("stated")]
    rows = chosen[names].to_numpy()
    labels = [", ".join(label for label in row if label != "all") or "total" for row in rows]
    caption = (
        f"The {len(chosen)} counts of which the tables together say most. Grey: what a count says "
        "by itself, up to the edge where nobody published it; blue: what must be true"
    )
    return [engine.figure(plot_bounds(chosen.assign(label=labels)), folder / "bounds", caption)]
