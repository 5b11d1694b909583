"""Certificates of what published counts prove, checkable without this package.

``check_proof.py``, a file without dependencies, accepts a certificate. It has published counts, a
sentence, and a refutation of its opposite. It is made from the counts alone, however the answer was
found. The opposite of the sentence is one more row of the linear relaxation over the kinds of
records that zeros leave. If this has no solution, its dual values, as whole numbers, are a
contradiction; otherwise a number of records is branched on. Kinds that zeros or rules exclude are
added one by one, as the checker finds them: it judges every sum here, too.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd

from bayesrisk._base import disk, validation as check
from bayesrisk._base.disk.delimited import csv_bytes, read_own_csv
from bayesrisk._base.display import Tabular, displayed
from bayesrisk.constraints.model import Status
from bayesrisk.constraints.solvers import Deadline
from bayesrisk.exceptions import DataError
from bayesrisk.reconstruction import check_proof
from bayesrisk.reconstruction.claims.result import Claims, several
from bayesrisk.reconstruction.claims.search.space import Rules
from bayesrisk.reconstruction.claims.verification import ClaimOptions
from bayesrisk.reconstruction.prover import (
    CertifiedCounts,
    Json,
    ProofPart,
    ProofQuestion,
    Prover,
    count_entry,
    json_bytes,
)
from bayesrisk.reconstruction.records.bounds import CountBounds, narrowed
from bayesrisk.reconstruction.records.reconstruction import Reconstruction
from bayesrisk.tables import Table, Workload
from bayesrisk.tables.likelihoods import UNBOUNDED
from bayesrisk.tables.published import PublishedTables, SeveralTables, one_release, under_laws


def _claim_questions(result: Claims) -> Iterator[ProofQuestion]:
    wrong = result.blocks["status"] == Status.INFEASIBLE
    for place in result.blocks.loc[wrong, result.level].tolist():
        yield ProofQuestion("impossible", (), (place,))
    frame = result.to_frame()
    for row, more in zip(frame.to_dict("records"), several(frame), strict=True):
        factors = {}
        for attribute in result.schema.attributes:
            codes = np.arange(attribute.size) + attribute.first
            weight = np.isin(codes, result.among.get(attribute.name, codes))
            if attribute.name in result.columns and not pd.isna(row[attribute.name]):
                code = int(row[attribute.name])
                groups = result.grouped.get(attribute.name, ())
                weight &= np.isin(codes, next((g for g in groups if code in g), (code,)))
            factors[attribute.name] = weight.astype(np.int64)
        times, place = int(row["multiplicity"]), row[result.level]
        part = ProofPart(result.level, place, factors, times or None, None if more else times)
        yield ProofQuestion("count", (part,), (place,))


def _bound_questions(
    result: CountBounds, tables: Mapping[tuple[str, str], Table], places: Sequence[str]
) -> Iterator[ProofQuestion]:
    """Yield questions about counts with proved bounds, and about infeasible places."""
    for place in result.conflict:
        yield ProofQuestion("impossible", (), (place,))
    frame = result.counts[result.counts["status"] != Status.INFEASIBLE]
    frame = frame[narrowed(frame)]
    ends = frame[["low", "high"]].astype("Int64").fillna(UNBOUNDED).to_numpy(np.int64)
    for row, (low, high) in zip(frame.to_dict("records"), ends, strict=True):
        table, place = tables[row["level"], row["table"]], row["geoid"]
        number = table.cells.index(row["cell"])
        factors = {name: np.asarray(w)[number] for name, w in table.factors.items()}
        most = None if high >= UNBOUNDED else int(high)
        part = ProofPart(row["level"], place, factors, int(low) or None, most)
        yield ProofQuestion("count", (part,), tuple(p for p in places if p.startswith(place)))


def _record_questions(result: Reconstruction) -> Iterator[ProofQuestion]:
    """Yield questions about places with unique records, and about infeasible places."""
    space, level = result.problem.space, result.problem.level
    for b, (place, status) in enumerate(zip(result.geoids.tolist(), result.status, strict=True)):
        if status == Status.INFEASIBLE:
            yield ProofQuestion("impossible", (), (place,))
        if status != Status.UNIQUE:
            continue
        # At least so many of each kind, and no more in all: then these are the records.
        members, parts = result.block == b, []
        for cell, count in zip(result.cell[members], result.count[members].tolist(), strict=True):
            pairs = zip(space.schema.names, np.unravel_index(cell, space.shape), strict=True)
            factors = {name: (space.bins[name] == g).astype(np.int64) for name, g in pairs}
            parts.append(ProofPart(level, place, factors, count, None))
        total = ProofPart(level, place, {}, None, int(result.count[members].sum()))
        yield ProofQuestion("records", (*parts, total), (place,))


@displayed
@dataclass(frozen=True)
class Proofs(Tabular):
    """Statements that published counts prove, with their certificates.

    Attributes
    ----------
    statements : pandas.DataFrame
        A row for each statement: ``place``, ``sentence``, ``status``, ``counts`` (the number of
        published counts in the proof), and ``file`` (its name once written). The status is
        ``proved``, or ``undecided`` if there is no certificate within the limit of nodes.
    certificates : tuple of dict
        Input of ``check_proof.py`` for each row; empty if there is none.
    """

    statements: pd.DataFrame
    certificates: tuple[Json, ...]

    def _answer(self) -> list[str]:
        proved = int((self.statements["status"] == Status.PROVED).sum())
        return [f"{proved:,} of {len(self.statements):,} statements have a certificate."]

    def _shown_frame(self) -> pd.DataFrame:
        return self.statements

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each statement."""
        return self.statements.copy()

    def write(self, folder: str | Path, *, replace: bool = False) -> None:
        """Write certificates, two checkers and ``proofs.csv`` into a folder.

        The folder must be new, unless ``replace`` allows replacing another one.
        """
        target = check.path(folder, "folder")
        allowed = (lambda path: None) if replace else disk.new_folder
        with disk.explained(target), disk.whole_folder(target, allowed) as root:
            for name, proof in zip(self.statements["file"], self.certificates, strict=True):
                if proof:
                    disk.write_bytes(root / name, json_bytes(proof))
            for name in ("check_proof.py", "check_proof.html"):
                checker = resources.files("bayesrisk.reconstruction").joinpath(name)
                disk.write_bytes(root / name, checker.read_bytes())
            disk.write_bytes(root / "proofs.csv", csv_bytes(self.statements))


def prove(
    tables: "SeveralTables",
    result: Claims | CountBounds | Reconstruction,
    *,
    most: int | None = None,
    node_limit: int = 1000,
    known_rule: bool = True,
    queries: Workload | None = None,
    **options: object,
) -> Proofs:
    """Return certificates of proved statements, which others can check without this package.

    Each is made anew from the published counts, and the checker accepts it before it is returned.

    Parameters
    ----------
    tables : PublishedTables, or sequence of them, or mapping by name
        The tables of the result.
    result : Claims, CountBounds or Reconstruction
        Verified claims; counts whose ends are narrower than stated; places whose records are
        unique; and for each of these, places without a solution.
    most : int, optional
        Largest number of statements, from the first on; by default all.
    node_limit : int, default 1000
        Nodes of the refutation of each part of a statement; beyond that it has no certificate.
    known_rule, queries : bool and Workload
        As for the function that gave the result.
    **options : object
        Options of :func:`find_claims` on which records can exist: ``structural_rules``, ``tenure``,
        ``cells``. And ``time_limit``, seconds after which the remaining statements get no
        certificate.

    Returns
    -------
    Proofs
        A certificate and a status of each statement.

    Notes
    -----
    Take rows ``l <= A x <= u`` of counts over kinds of records ``x >= 0``, and one row for the
    opposite of the statement. Whole multiples ``y`` with ``y A <= 0`` and
    ``sum_{y > 0} y l + sum_{y < 0} y u > 0`` are a contradiction (Farkas). Unique records are
    proved by "at least so many" of each of their kinds, and "at most so many" in all. Absent kinds
    need no statement of their own.

    Examples
    --------
    >>> from bayesrisk.reconstruction import find_claims
    >>> from bayesrisk.tables import Records, Schema, tabulate
    >>> people = pd.DataFrame({"sex": ["F", "F", "M"], "old": ["no", "yes", "no"]})
    >>> schema = Schema.from_frame(people)
    >>> work = Workload.of(schema, [["sex"], ["old"]])
    >>> tables = tabulate(Records.from_frame(people, schema=schema), work)
    >>> proofs = prove(tables, find_claims(tables))
    >>> bool((proofs.statements["status"] == "proved").all())
    True
    """
    tables = one_release(tables)
    if most is not None:
        most = check.integer(most, "most", lower=0, upper=check.MAX_COUNT)
    if queries is not None:
        check.instance(queries, Workload, "queries")
    check.integer(node_limit, "node_limit", lower=1)
    deadline = Deadline(check.time_limit(options.get("time_limit")))
    work, finest = tables.workload, tables.workload.levels[-1]
    rules, cells, extra, assumed = Rules(False, "merged", ()), None, list[Table](), False
    if isinstance(result, Claims):
        settings = ClaimOptions.from_options(options)
        rules, finest = Rules(settings.structural_rules, settings.tenure, ()), result.level
        cells = None if settings.cells is None else np.unique(np.asarray(settings.cells, np.int64))
        stream, assumed, scope = _claim_questions(result), result.taken_as_true, result.level
        for name, codes in result.among.items():
            attribute = work.schema.attribute(name)
            mask = np.isin(np.arange(attribute.size) + attribute.first, codes).astype(np.int64)
            extra.append(Table("among", (name,), {name: mask[None]}))
    elif isinstance(result, CountBounds):
        scope, counted = result.scope, work if queries is None else queries
        extra += [] if queries is None else queries.tables.values()
        stream = _bound_questions(result, counted.tables, tables.geoids[finest].tolist())
    else:
        check.instance(result, Reconstruction, "result")
        stream, scope, assumed = (
            _record_questions(result),
            result.scope,
            result.problem.taken_as_true,
        )
    if assumed:
        tables = under_laws(tables, {key: law for key, law in tables.laws.items() if law.exact})
    questions = list(itertools.islice(stream, most))
    certificates: list[Json] = [{} for _ in questions]
    levels, places = work.levels, tables.geoids[finest].tolist()
    levels = levels[levels.index(scope) : levels.index(finest) + 1]
    # What a place's own counts prove needs no others; then all places around it are taken.
    for used in dict.fromkeys((levels[-1:], levels)):
        more = [t for (level, _), t in work.tables.items() if level in set(levels) - set(used)]
        counts = CertifiedCounts(tables, used, rules, cells, [*extra, *more], known_rule=known_rule)
        width = work.schema.geography.width(used[0])
        groups: dict[str, list[int]] = {}
        for number, question in enumerate(questions):
            around = {place[:width] for place in question.places}
            if not certificates[number] and len(around) == 1:
                groups.setdefault(around.pop(), []).append(number)
        for place, chosen in groups.items():
            blocks = [block for block in places if block.startswith(place)]
            for first in range(0, len(chosen), _TOGETHER):
                ats = chosen[first : first + _TOGETHER]
                asking = [questions[number] for number in ats]
                for number, certificate in zip(
                    ats,
                    _certificates(counts, blocks, asking, node_limit, deadline),
                    strict=True,
                ):
                    certificates[number] = certificate
    rows = [
        {
            "place": (*(p.place for p in question.parts), *question.places)[0],
            "sentence": certificate.get("sentence", ""),
            "status": Status.PROVED if certificate else Status.UNDECIDED,
            "counts": len(certificate.get("counts", ())),
            "file": f"proof-{number:04d}.json" if certificate else "",
        }
        for number, (question, certificate) in enumerate(
            zip(questions, certificates, strict=True), 1
        )
    ]
    columns = ["place", "sentence", "status", "counts", "file"]
    return Proofs(pd.DataFrame(rows, columns=columns), tuple(certificates))


def check_proofs(folder: Path, tables: PublishedTables | None = None) -> list[str]:
    """Check each certificate of a folder again, and return the sentences in their order.

    Each must prove the sentence that ``proofs.csv`` says of it. With tables, each count that it
    rests on is one of them, and no place and no label is missing; the first fault raises.
    """
    rows = read_own_csv(folder / "proofs.csv", ("place", "sentence", "file"))
    if not {"sentence", "file"} <= {*rows}:
        rule = "must have the columns sentence and file, such as an attack writes, and no audit"
        raise DataError(f"{folder / 'proofs.csv'}: {rule}; verify checks releases and attacks")
    rows = rows[rows["file"].notna()]
    listed = dict(zip(rows["file"], rows["sentence"], strict=True))
    if (reading := folder.parent / "reading.toml").is_file():
        for digest in {*rows.get("reading", ())}:
            disk.check_digest(reading, digest, "proofs.csv")
    for name in sorted({*listed, *(file.name for file in folder.glob("proof-*.json"))}):
        try:
            proof = check_proof.read(check_proof.read_bytes(str(folder / Path(name).name)))
            sentence, *lines = check_proof.report(proof)
            check_proof.need(
                sentence == listed.get(name),
                f"proofs.csv says otherwise of it; it says: {sentence}",
            )
            if tables is not None:
                _compare(proof, tables, lines)
        except check_proof.RefusedError as error:
            raise DataError(f"{folder / name}: refused: {error}") from error
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"{folder / name}: cannot be read: {error}") from error
    return list(listed.values())


def _compare(proof: Json, tables: PublishedTables, lines: Sequence[str]) -> None:
    """Refuse a certificate whose counts, labels or places are not those of the tables.

    ``lines`` are those printed by the checker.
    """
    work = tables.workload
    places = tables.geoids[work.levels[-1]].tolist()
    for name, labels in proof["attributes"].items():
        named = [a for a in work.schema.attributes if a.name == name]
        lists = [[*a.labels] if a.labels else [a.first, a.last] for a in named]
        check_proof.need([labels] == lists, f"labels of {name!r} are not those of the tables")
    for number, count in enumerate(proof["counts"], 1):
        key, place = (count["level"], count["table"]), count["place"]
        listed = key in work.tables and place in tables.geoids[key[0]]
        cells = range(len(work.tables[key].cells) if listed else 0)
        entries = [count_entry(tables, key, cell, place) for cell in cells]
        twins = [one for one in entries if one["sets"] == count["sets"]]
        ends = [check_proof.range_words(one["low"], one["high"]) for one in twins]
        line = next(text for text in lines if text.startswith(f"count {number}"))
        text = f"{line}; but in the tables it is {', '.join(ends) or 'not'}"
        check_proof.need(count in entries, text)
    for part in [*proof["says"], *proof["counts"]]:
        missing = [p for p in places if p.startswith(part["place"]) and p not in proof["places"]]
        check_proof.need(not missing, f"place {missing[:1]} of the tables is missing")


#: Statements about the same places whose parts are rows of one relaxation.
_TOGETHER = 40


def _certificates(
    counts: CertifiedCounts, blocks: Sequence[str], questions: Sequence[ProofQuestion], nodes: int,
    deadline: Deadline,
) -> Iterator[Json]:  # fmt: skip
    """Yield each question's certificate, empty if none was found.

    Statements larger than the checker reads have no certificate.
    """
    parts = [part for question in questions for part in question.parts]
    try:
        system = None if deadline.late else Prover(counts, blocks, parts)
    except check_proof.RefusedError:
        system = None
    if system is None:
        yield from [{}] * len(questions)
        return
    first = 0
    for question in questions:
        goals: dict[str, tuple[int | None, int | None, int | None]] = {}
        for i, part in enumerate(question.parts, 1):
            if part.least is not None:
                goals[f"fewer {i}"] = first + i - 1, None, part.least - 1
            if part.most is not None:
                goals[f"more {i}"] = first + i - 1, part.most + 1, None
        first += len(question.parts)
        trees: Json = {}
        try:
            for name, goal in (goals or {"all": (None, None, None)}).items():
                trees[name] = system.refute(goal, nodes, deadline)
                if not trees[name]:
                    break
            certificate = system.certificate(question, trees) if all(trees.values()) else {}
        except check_proof.RefusedError:
            certificate = {}
        yield certificate
