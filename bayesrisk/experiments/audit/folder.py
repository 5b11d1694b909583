"""The folder of an audit, what a run of it found in words, and its way back to statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import pandas as pd
import pyarrow.parquet as pq

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.delimited import own_text
from bayesrisk._files.parse import named
from bayesrisk._show import displayed
from bayesrisk.exceptions import PartFileError
from bayesrisk.experiments.audit.config import AuditConfig
from bayesrisk.experiments.audit.populations import POPULATION, by_population
from bayesrisk.experiments.audit.report_checks import checks_said
from bayesrisk.experiments.runs.folder import PartFolder
from bayesrisk.experiments.runs.settled import MANIFEST
from bayesrisk.experiments.runs.study import Outcome
from bayesrisk.risk.audit import audit_summary, audit_targets

_SHOWN = 5  # lines


@displayed
@dataclass(frozen=True)
class AuditSummary:
    """What a run did, and what it found.

    Attributes
    ----------
    folder : str
        The output folder.
    shards, computed, resumed : int
        Shards in all, those computed by this run, and those found finished.
    complete : bool
        Whether every shard is there.
    statements, targets : int
        Of a complete run; else 0.
    answers : tuple of str
        What a complete run found: a sentence for each protection that was to be chosen, and of
        everybody one for each population, protection, reading and adversary.
    brief : tuple of str
        The same in five lines at most: what was to be chosen, or all of it, or who learns most
        from people's own records under each protection.
    checks : str
        What the checks of a complete run (:func:`audit_checks`) came to.
    """

    folder: str
    shards: int
    computed: int
    resumed: int
    complete: bool
    statements: int
    targets: int
    answers: tuple[str, ...]
    brief: tuple[str, ...]
    checks: str

    @classmethod
    def of(cls, folder: PartFolder, outcome: Outcome) -> Self:
        """Return the summary of a run; of one that is not complete, nothing was found."""
        if not outcome.complete:
            return cls(str(folder.path), *outcome, 0, 0, (), (), "")
        statements, found = read_audit(folder.path)
        files = _checked(folder.path, "choice.csv", "checks.csv")
        everybody = found[found["group"] == "everybody"]
        told = [_sentence(row) for row in everybody.to_dict(orient="records")]
        chosen: list[str] = []
        if "choice.csv" in files:
            chosen = _csv(files["choice.csv"])["answer"].tolist()
        checks = _csv(files["checks.csv"])
        return cls(
            str(folder.path), *outcome, len(statements), int(statements["target"].nunique()),
            (*chosen, *told), tuple(_brief(chosen, told, everybody)),
            checks_said(checks),
        )  # fmt: skip

    def _answer(self) -> list[str]:
        return [*self.brief, f"{self.statements} statements in {self.folder}"]


class AuditFolder(PartFolder):
    """The folder of an audit: all of it is computed from confidential records."""

    what: ClassVar[str] = "run of an audit"
    kinds = ("errors", "statements")

    def _settle(self, config: Any) -> None:
        super()._settle(config)
        _files.make_folder(self.path, private=True)

    def _private(self, file: Path) -> bool:
        return True


def read_audit(folder: str | Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the statements of a complete audit, and their summary.

    Parameters
    ----------
    folder : path-like
        Output folder of an :class:`AuditStudy`.

    Returns
    -------
    (statements, summary) : (pandas.DataFrame, pandas.DataFrame)
        Rows as in :class:`Statements`, which takes them as they are, of all settings that were
        tried, with ``without_error`` and ``posterior_error`` (Monte Carlo standard errors, 0 where
        calculated), ``engine``, ``place``, ``place_size``, ``alike`` (people of the place with what
        is known of the target) and ``nonmodal``; and rows as in ``summary.csv``.  Where
        populations have names, both have them in a column ``population``.

    Raises
    ------
    OutputError
        If the folder holds no audit.
    PartFileError
        If it is not complete, or was altered.
    """
    files = _checked(check.path(folder, "folder"), "statements.parquet", "choice.csv")
    statements = pq.read_table(files["statements.parquet"]).to_pandas()
    shown_ = statements
    if "choice.csv" in files:
        chosen = _csv(files["choice.csv"])["setting"]
        shown_ = statements[statements["protection"].isin(chosen)]
    return statements, by_population(shown_, lambda rows, _: audit_summary(audit_targets(rows)))


def _checked(path: Path, *names: str) -> dict[str, Path]:
    """Return files of a complete audit that are as it wrote them; a choice if one was made."""
    store = AuditFolder(path)
    config = store.load_settings(AuditConfig)
    manifest = store.check_settings(config)
    if not manifest.get("complete"):
        raise PartFileError(f"{path / MANIFEST}: the audit is not complete; run it with --resume")
    files = {n: path / n for n in names if n != "choice.csv" or config.target_ratio is not None}
    for name, file in files.items():
        with named(str(path / MANIFEST), PartFileError, also=(KeyError, TypeError)):
            known = manifest["files"][name]["sha256"]
        _files.check_digest(file, known, MANIFEST, PartFileError)
    return files


def _csv(file: Path) -> pd.DataFrame:
    """Return a table in which a protection may be called "None" or "1"."""
    return pd.read_csv(file, keep_default_na=False, dtype={"setting": str}).map(own_text)


def _brief(chosen: list[str], told: list[str], everybody: pd.DataFrame) -> Iterator[str]:
    """Yield the answers where they are few; else those of who learns most."""
    lines = chosen or told
    if not chosen and len(told) > _SHOWN:
        # Answers are in the order of the rows, of which populations and protections are one each.
        rows = everybody.reset_index(drop=True)
        keys = [name for name in (POPULATION, "protection") if name in rows]
        most = rows["own"].groupby([rows[name] for name in keys], sort=False).idxmax()
        first = f"Who learns most from people's own records ({len(told)} answers in the report):"
        lines = [first, *(told[number] for number in most)]
    if len(lines) > _SHOWN:
        lines = [*lines[: _SHOWN - 1], f"and {len(lines) - _SHOWN + 1} more in the report"]
    yield from lines


def _sentence(row: Mapping[Any, Any]) -> str:
    of = f"{row[POPULATION]}, " if POPULATION in row else ""
    return (
        f"{of}{row['protection']}, {row['attack']}, {row['adversary']}: right about "
        f"{row['right_posterior']:.1%}; {row['right_without']:.1%} without their own records; "
        f"{row['right_prior']:.1%} before; own records {100.0 * row['own']:+.1f} points "
        f"({100.0 * row['own_lower']:+.1f} to {100.0 * row['own_upper']:+.1f})"
    )
