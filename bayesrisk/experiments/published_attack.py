"""Proofs, bounds, records that fit and likely ones from published tables, in one report."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.delimited import csv_bytes
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError
from bayesrisk.experiments.runs import page as html
from bayesrisk.inference import RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.plotting.attacks import plot_bounds
from bayesrisk.reconstruction import (
    Proofs,
    claim_sentences,
    count_bounds,
    find_claims,
    prove,
    reconstruct,
    record_form,
    solution_variability,
)
from bayesrisk.reconstruction.claims.result import Claims, one_record, several
from bayesrisk.reconstruction.records.bounds import CountBounds, narrowed
from bayesrisk.reconstruction.records.reconstruction import Reconstruction
from bayesrisk.reconstruction.registry import Status
from bayesrisk.tables import PublishedTables, Workload
from bayesrisk.tables.layouts import Layouts

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
    written = _Certificates(check.integer(proofs, "proofs", lower=0))
    tables, target = PublishedTables(*layouts.confirmed()), check.path(folder, "folder")
    tell = progress or (lambda done, steps: None)
    with _files.explained(target):
        _files.new_folder(target)
    frames: dict[str, pd.DataFrame] = {}
    proved, sentences = list[str](), list[str]()
    bounds = count_bounds(tables, time_limit=time_limit)
    both = ["table", "cell"]
    columns = [*both, "low_stated", "high_stated", "low", "high", "status"]
    if not bounds.conflict:
        bounds, columns = written.add_bounds(tables, bounds), [*columns, *written.column]
    frames["bounds"] = layouts.cells.merge(bounds.counts[columns], on=both).drop(columns=both)
    if bounds.conflict:
        reason = next(iter(bounds.conflict.values()))
        text = f"No records fit these tables as they were read: {reason}."
        sentences.append(html.Linked(text, *written.add(tables, bounds, 1)))
    elif bounds.counts["published"].fillna(0).max() > _MOST_RECORDS:
        sentences += [*bounds._answer(), f"More than {_MOST_RECORDS:,} records: only bounded."]
    else:
        tell(1, 5)
        frames["claims"], first, proved = _claims(tables, time_limit, written)
        tell(2, 5)
        frames["records"], fit = _records(tables, time_limit, written)
        tell(3, 5)
        frames["likely"], likely = _likely(tables, seed)
        tell(4, 5)
        frames["bounds"] = _with_combinations(frames["bounds"], tables, time_limit, written)
        sentences += [first, *bounds._answer(), fit, likely]
    sentences += written.answer()
    with _files.whole_folder(target, _files.new_folder) as made:
        for name, frame in frames.items():
            _files.write_bytes(made / f"{name}.csv", csv_bytes(frame))
        _files.write_bytes(made / "reading.toml", layouts.to_toml().encode())
        tables.write(made / "tables")
        written.write(made)
        page = html.render(
            "attack.html",
            title="What these tables give away",
            sentences=sentences,
            proved=proved,
            reading=layouts.lines,
            figures=_figures(frames["bounds"], made),
            tables=[
                html.table(_linked(f.head(500)), _CAPTIONS[n]) for n, f in frames.items() if len(f)
            ],
            certificates=bool(written.parts),
            source=f"Made by bayesrisk {__version__}, seed {seed}.",
            settings_title="What was assumed, as a file for --assume",
            settings=layouts.to_toml(),
        )
        _files.write_bytes(made / "report.html", page.encode())
    tell(5, 5)
    found = {name: len(frame) for name, frame in frames.items()}
    sentences[1:1] = proved
    return {"report": str(target / "report.html"), "sentences": sentences, **found, **bounds.facts}


class _Certificates:
    """Certificates of what is proved, so many of each kind, and the files that they will be in."""

    folder = "proofs"

    def __init__(self, most: int) -> None:
        self.most, self.bounds_left, self.parts = most, most, list[Proofs]()
        self.column = ["proof"] if most else []

    def add(
        self, tables: PublishedTables, found: Claims | CountBounds | Reconstruction, size: int,
        **options: Workload,
    ) -> list[str]:  # fmt: skip
        """Return the file of each of some statements, empty for those without."""
        chosen = min(size, self.most)
        if not chosen:
            return [""] * size
        made = prove(tables, found, most=chosen, queries=options.get("queries"))
        first = 1 + sum(len(part.statements) for part in self.parts)
        names = [f"proof-{at:04d}.json" for at in range(first, first + len(made.statements))]
        there = (made.statements["file"] != "").to_numpy()
        files = np.where(there, names, "").tolist()
        self.parts.append(replace(made, statements=made.statements.assign(file=files)))
        paths = [f"{self.folder}/{name}" if name else "" for name in files]
        return [*paths, *[""] * (size - len(paths))]

    def add_bounds(
        self, tables: PublishedTables, found: CountBounds, **options: Workload
    ) -> CountBounds:
        """Return bounds with the file of each that is narrower than stated, and has one."""
        if not self.most:
            return found
        frame = found.counts
        at = np.flatnonzero(narrowed(frame))[: self.bounds_left]
        self.bounds_left -= at.size
        files = np.full(len(frame), "", dtype=object)
        chosen = replace(found, counts=frame.iloc[at])
        files[at] = self.add(tables, chosen, at.size, **options)
        return replace(found, counts=frame.assign(proof=files))

    def answer(self) -> list[str]:
        """Return the sentence of the number of certificates."""
        every = [bool(certificate) for part in self.parts for certificate in part.certificates]
        made, none = sum(every), len(every) - sum(every)
        text = f"{made:,} of these statements and bounds have a proof for others to check, in the "
        text += f"folder {self.folder}."
        left = f" No proof was found for {none:,} more within the limit of the search."
        return [text + left * bool(none)] if every else []

    def write(self, folder: Path) -> None:
        """Write the certificates and their checker, if there are any."""
        if self.parts:
            statements = pd.concat([part.statements for part in self.parts], ignore_index=True)
            made = tuple(c for part in self.parts for c in part.certificates)
            Proofs(statements, made).write(folder / self.folder)


def _linked(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose proofs are links of a page."""
    if "proof" not in frame:
        return frame
    links = [html.Linked(Path(file).name, file) for file in frame["proof"]]
    return frame.assign(proof=pd.Series(links, frame.index, dtype=object))


def _with_combinations(
    stated: pd.DataFrame,
    tables: PublishedTables,
    time_limit: float | None,
    written: _Certificates,
) -> pd.DataFrame:
    """Return bounds of published counts, and of the combinations that nobody published."""
    schema = tables.workload.schema
    if not schema.names or schema.size > _MOST_CELLS:
        return stated
    cross = Workload.of(schema, [schema.names])
    found = count_bounds(tables, queries=cross, time_limit=time_limit)
    frame = schema.labelled(pd.DataFrame(schema.codes(np.arange(schema.size))))
    new = ~pd.MultiIndex.from_frame(frame[list(schema.names)]).isin(
        pd.MultiIndex.from_frame(stated[list(schema.names)])
    )
    found = replace(found, counts=found.counts[new])
    found = written.add_bounds(tables, found, queries=cross)
    frame = pd.concat([frame[new], found.counts], axis=1).reindex(columns=stated.columns)
    return pd.concat([stated, frame], ignore_index=True).astype({"row": "Int64"})


def _claims(
    tables: PublishedTables, time_limit: float | None, written: _Certificates
) -> tuple[pd.DataFrame, str, list[str]]:
    """Return proofs that no count states, how many there are, and the most telling in words."""
    found = find_claims(tables, time_limit=time_limit)
    frame = found.to_frame(readable="here")
    frame = frame[frame["multiplicity"] > 0]
    order = np.lexsort((-frame["n_columns"].to_numpy(), several(frame), ~one_record(frame)))
    frame = frame.iloc[order].reset_index(drop=True)
    sentences = claim_sentences(found, frame)
    one = int(one_record(frame).sum())
    text = f"{len(frame):,} statements are proved that no count makes by itself; "
    text += f"{one:,} of them are about exactly one record." if one else "none is about one record."
    text = text if len(frame) else "Nothing is proved of the records beyond what each count says."
    table = pd.DataFrame({"sentence": sentences, "records": frame["multiplicity"]})
    table["at_least"] = several(frame)
    files = written.add(tables, replace(found, claims=frame), len(frame))
    table = table.assign(**dict.fromkeys(written.column, files))
    schema = tables.workload.schema
    words = schema.labelled(frame)[list(schema.names)].fillna("any")
    said = list[str](map(html.Linked, sentences[:_SAID], files))
    return pd.concat([table, words], axis=1), text, said


def _records(
    tables: PublishedTables, time_limit: float | None, written: _Certificates
) -> tuple[pd.DataFrame, str]:
    """Return records that fit, and how many of them could be others."""
    made = reconstruct(tables, scope="all", time_limit=time_limit)
    frame = tables.workload.schema.labelled(record_form(made)).drop(columns="all")
    text = f"Records that fit were not found ({made.status[0]})."
    if len(frame):
        other = solution_variability(
            tables, scope="all", solution=made, time_limit=time_limit, node_limit=1000
        )
        most = float(other.upper[0])
        text = f"{len(frame):,} records were found that fit; "
        text += f"at most {most:.0%} of them could be others." if most else "no others fit: proved."
        if not most:
            unique = replace(made, status=(Status.UNIQUE,))
            text = html.Linked(text, *written.add(tables, unique, 1))
    return frame, text


def _likely(tables: PublishedTables, seed: int) -> tuple[pd.DataFrame, str]:
    """Return the records that are most probably there, or why there is no such law."""
    schema = tables.workload.schema
    prior, asked = RecordPrior.uniform_data_sets(schema), [RecordQuestion({})]
    try:
        found = microdata_posterior(tables, asked, level="all", place="", prior=prior, rng=seed)
        ranked = found.ranked_records(_LIKELY).drop(columns=["place", "known"])
    except ArgumentError as error:
        return pd.DataFrame(), f"Likely records were not found: {error}."
    for about in schema.attributes:
        ends = [str(text).partition("-") for text in ranked[about.name]]
        groups = [about.labels[int(a) : int(b or a) + 1] for a, _, b in ends]
        ranked[about.name] = [" or ".join(group) for group in groups]
    high = int((ranked["probability"] >= 0.9).sum())
    number = f"{high:,}{' or more' * (high == _LIKELY)}"
    text = (
        "records are there with a probability of 90 % or more, if all lists were equally probable"
    )
    return ranked, f"{number} {text} before ({found.engine})."


def _figures(bounds: pd.DataFrame, folder: Path) -> list[html.Figure]:
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
    return [html.figure(plot_bounds(chosen.assign(label=labels)), folder / "bounds", caption)]
