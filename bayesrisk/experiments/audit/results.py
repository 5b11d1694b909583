"""Results of a complete audit, read from its folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from bayesrisk._base import validation as check
from bayesrisk._base.disk.delimited import read_own_csv
from bayesrisk._base.disk.text import read_json
from bayesrisk._base.display import displayed
from bayesrisk.exceptions import ArgumentError, DataError, OutputError
from bayesrisk.experiments.audit.populations import (
    OF_RECORDS,
    POPULATION,
    Protection,
    source_digest,
)
from bayesrisk.experiments.audit.screen import audit_brief
from bayesrisk.experiments.runs.folder import Layout, RunFolder
from bayesrisk.mechanisms.registry import shown_name
from bayesrisk.release import MechanismSpec
from bayesrisk.risk import audit
from bayesrisk.risk.audit.constructions import constructions
from bayesrisk.risk.audit.privacy import privacy_losses
from bayesrisk.tables import Records, Schema, Workload

if TYPE_CHECKING:
    from bayesrisk.plotting import Panels, Where

LAYOUT = Layout(
    "run of an audit",
    kinds=("differences", "errors", "proofs", "spots", "statements"),
    merged=("differences", "errors", "proofs", "spots", "statements"),
    confidential=True,  # all of it is computed from confidential records
)
PROTECTIONS = "protections.json"


@displayed
@dataclass(frozen=True, eq=False)
class AuditResults:
    """Tables of an audit; ``statements, measures = results`` gives the first two.

    If populations have names, each frame has them in a column ``population``.

    Attributes
    ----------
    statements : pandas.DataFrame
        Rows as in :class:`Statements`, of all settings and releases that were tried. Further
        columns are ``release``, ``engine``, ``place``, ``place_size``, ``nonmodal`` and ``alike``,
        the number of people of the place who share the target's known attributes. ``without_error``
        and ``posterior_error`` are Monte Carlo standard errors, 0 if calculated.
    measures, costs, comparisons : pandas.DataFrame
        Rows as in ``measures.csv`` (:func:`audit_measures`), ``costs.csv`` and ``comparisons.csv``.
    missing : tuple of str
        Protections that were not reached before the audit ended.
    """

    statements: pd.DataFrame
    measures: pd.DataFrame
    costs: pd.DataFrame
    comparisons: pd.DataFrame
    missing: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[pd.DataFrame]:
        return iter((self.statements, self.measures))

    def __getitem__(self, number: int) -> pd.DataFrame:
        return (self.statements, self.measures)[number]

    def _answer(self) -> list[str]:
        return audit_brief(self.measures, self.comparisons, self.costs, missing=self.missing)

    def plot(self, *, population: str | None = None, ax: Where = None) -> Panels:
        """Draw the information gained from people's own records against the cost of protection."""
        from bayesrisk.plotting import plot_audit  # slow to import

        return plot_audit(self, population=population, ax=ax)


def read_audit(folder: str | Path) -> AuditResults:
    """Return the statements, measures, costs and comparisons in the folder of an audit.

    Of an audit that ended early there are those of the protections that were reached.
    """
    store = audit_folder(check.path(folder, "folder"))
    statements = pq.read_table(store.result("statements.parquet")).to_pandas()
    names = ("measures", "costs", "comparisons")
    measures, costs, comparisons = (result_table(store.result(f"{name}.csv")) for name in names)
    reached = {*measures["protection"]}
    every = dict.fromkeys(one["name"] for one in store.config["protections"])
    left = [] if store.manifest["complete"] else [one for one in every if one not in reached]
    missing = tuple(map(shown_name, left))
    return AuditResults(statements, measures, costs, comparisons, missing)


def audit_folder(folder: str | Path) -> RunFolder:
    """Return the folder of an audit that has begun."""
    return RunFolder.existing(folder, LAYOUT)


def begun_audit(folder: str | Path) -> Mapping[str, Any]:
    """Return the settings of an audit in a folder; none without one."""
    with suppress(OutputError):
        return audit_folder(folder).config
    return {}


def protections_document(
    protections: Mapping[str, Sequence[Protection]], workload: Workload, schema: Schema
) -> bytes:
    """Return the protections of each population, with all parameters, tables and schema as JSON."""
    entries = [
        one.to_dict() | {"population": name} for name in protections for one in protections[name]
    ]
    document = {"workload": workload.to_dict(), "schema": schema.to_dict(), "protections": entries}
    return json.dumps(document, indent=1, default=str).encode()


def audited_protection(
    folder: str | Path, name: str, *, records: str | Path
) -> tuple[Protection, Workload, Schema, bool]:
    """Return a protection of a complete audit with its parameters, tables and schema.

    The last value says whether the file or folder of ``records`` has the audited records. With
    several populations, the protection is that of these records.
    """
    store = audit_folder(check.path(folder, "folder"))
    audited = read_json(store.result(PROTECTIONS))
    names = dict.fromkeys(entry["name"] for entry in audited["protections"])
    try:
        check.choice(name, "protection", tuple(names))
    except ArgumentError as error:
        raise error.advised(f"{error.advice}; these are in {folder}") from error
    digests = store.config["population"]
    digests = digests if isinstance(digests, dict) else {"": digests}
    mine = [entry for entry in audited["protections"] if entry["name"] == name]
    digests_given, schema = {source_digest(records)}, Schema.from_dict(audited["schema"])
    if Path(records).is_file() and any(d.startswith(OF_RECORDS) for d in digests.values()):
        with suppress(DataError):  # other columns or values: not what was audited
            digests_given.add(source_digest(Records.read(records, schema=schema)))
    matches = [entry for entry in mine if digests[entry["population"]] in digests_given]
    chosen = (matches or mine)[0]
    if not matches and any(entry["parameters"] != chosen["parameters"] for entry in mine):
        raise ArgumentError(
            f"records must be one of the audited populations {', '.join(digests)}, for which "
            f"{name!r} has other parameters each"
        )
    protection = Protection(name, chosen["mechanism"], chosen["parameters"])
    return protection, Workload.from_dict(audited["workload"]), schema, bool(matches)


def result_frames(
    statements: pd.DataFrame,
    differences: pd.DataFrame,
    spots: pd.DataFrame,
    specs: Mapping[str, MechanismSpec],
    question: audit.AuditQuestion,
    *,
    people: int,
) -> dict[str, pd.DataFrame]:
    """Return the result tables of one population; ``specs`` are those of its protections."""
    targets, workload = audit.audit_targets(statements), question.workload
    pairs = constructions(specs, workload)
    return {
        "privacy": privacy_losses(specs, workload),
        "targets": targets,
        "measures": audit.audit_measures(targets, people=people),
        "comparisons": audit.compare(targets, people=people, constructions=pairs),
        "calibration": audit.audit_calibration(statements),
        "checks": audit.audit_checks(
            statements, question=question, specs=specs, differences=differences, spots=spots
        ),
    }


def result_table(file: Path) -> pd.DataFrame:
    """Return a CSV table with names of protections as text, even "None" or "1"."""
    return read_own_csv(file, (POPULATION, "protection", "against", "setting"))


def named_rows(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return rows about a population with its name, if it has one, also before targets."""
    if name:
        if "target" in frame:
            frame["target"] = f"{name}:" + frame["target"].astype(str)
        frame.insert(0, POPULATION, name)
    return frame


def since(frame: pd.DataFrame, first: Mapping[str, int]) -> pd.DataFrame:
    """Return rows of the protections in ``first``, from the release it gives for each."""
    names, numbers = frame["protection"].astype(object), frame["release"]
    later = [n >= first.get(name, np.inf) for name, n in zip(names, numbers, strict=True)]
    return frame[np.array(later, np.bool_)]


def needing_chains(
    statements: pd.DataFrame, adversaries: set[str]
) -> dict[tuple[str, str], set[int]]:
    """Return readings and places that needed Markov chains under earlier releases."""
    chains = statements["engine"].isin(["lattice", "people"])
    rows = statements[chains & statements["adversary"].isin(adversaries)]
    keys = zip(rows["attack"].astype(str), rows["place"].astype(str), strict=True)
    return {key: {0} for key in keys}
