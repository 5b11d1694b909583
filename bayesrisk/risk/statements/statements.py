"""Statements of attacks on one scale, each with its prior, its posterior and the truth.

A statement is a sentence about a target that is true or false. A row gives the sentence and its
target; what the adversary would believe anyway (prior); and the belief after the attack
(posterior). It also says whether the posterior is proved or estimated.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bayesrisk._base import disk, validation as check
from bayesrisk._base.disk.parquet import STORAGE, read_frame
from bayesrisk._base.display import Tabular, page
from bayesrisk._base.randomness import Seed
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.constraints.model import Status
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, quote
from bayesrisk.reconstruction import Reconstruction, record_form
from bayesrisk.reconstruction.persons import RECORDS, Persons, person_frame
from bayesrisk.release import MechanismSpec
from bayesrisk.risk.linkage.agreement import WITHOUT
from bayesrisk.risk.statements.records import (
    ABOUT,
    PLACE,
    agreement,
    claims_of_records,
    confirmed_records,
)
from bayesrisk.tables.microdata import OCCUPIED

if TYPE_CHECKING:
    from bayesrisk.plotting import Panels, Where


TEXTS = ("attack", "adversary", "protection", "target", "statement")
REQUIRED = (*TEXTS, "people", "prior", "posterior", "status")
#: All columns, in their order; what the attack adds of its own comes after them.
COLUMNS = (
    *(*TEXTS, "people", "prior", "without", "posterior"),
    *("lower", "upper", "ratio", "correct", "status"),
)
#: What a posterior is: proved, an estimate, not there; of statements about given people also the
#: belief of who takes records at their word, or the prior because nothing was stated; of the law
#: of the records calculated, or sampled by chains, or undecided because they do not agree.
STATUS = (
    *("proved", "estimated", "unverified", "believed", "unstated"),
    *("calculated", "sampled", "undecided"),
)
#: Statements without a posterior.
OPEN = ("unverified", "undecided")
#: Bounds and ratios that were stored in other forms of the same number.
_ROUNDING = 1e-9


def risk_ratio(posterior: FloatArray, prior: FloatArray) -> FloatArray:
    """Return posterior / prior: infinite for a prior of 0, and missing for 0 / 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(posterior / prior, np.float64)


def checked(statements: pd.DataFrame) -> pd.DataFrame:
    """Return statements with all columns in order, typed and checked."""
    statements = check.frame(statements, "frame of statements", REQUIRED)
    if not statements.columns.is_unique:
        twice = statements.columns[statements.columns.duplicated()][0]
        raise DataError(f"statements: column {quote(twice)}: must be there once")
    frame = statements.reset_index(drop=True)
    columns: dict[str, object] = {name: frame[name].astype("str") for name in TEXTS}
    columns["people"] = _people(frame)
    for name in ("prior", "posterior", "without", "lower", "upper", "ratio"):
        columns[name] = numbers(frame, name)
    prior, posterior = np.asarray(columns["prior"]), np.asarray(columns["posterior"])
    for name in ("lower", "upper"):
        if name not in frame:
            columns[name] = posterior
    if "ratio" not in frame:
        columns["ratio"] = risk_ratio(posterior, prior)
    columns["correct"] = _correct(frame)
    columns["status"] = frame["status"].astype("str")
    whole = pd.DataFrame({name: columns[name] for name in COLUMNS}, index=frame.index)
    _check_ranges(whole)
    return pd.concat([whole, frame.drop(columns=[c for c in COLUMNS if c in frame])], axis=1)


def _check_ranges(frame: pd.DataFrame) -> None:
    _refuse(
        frame, "status", ~frame["status"].isin(STATUS).to_numpy(), f"one of {', '.join(STATUS)}"
    )
    _refuse(frame, "people", frame["people"].to_numpy() < 0, ">= 0")
    decided = ~frame["status"].isin(OPEN).to_numpy()
    everywhere = np.ones(len(frame), np.bool_)
    value = {name: frame[name].to_numpy(np.float64) for name in COLUMNS[6:12]}
    for name, needed in (
        ("prior", everywhere),
        ("without", ~np.isnan(value["without"])),
        ("posterior", decided),
        ("lower", decided),
        ("upper", decided),
    ):
        _refuse(frame, name, needed & ~((value[name] >= 0) & (value[name] <= 1)), "in [0, 1]")
    for name in ("posterior", "ratio"):
        wrong = ~decided & ~np.isnan(value[name])
        _refuse(frame, name, wrong, "missing where the status is unverified or undecided")
    low = decided & (value["lower"] > value["posterior"] + _ROUNDING)
    _refuse(frame, "lower", low, "at most the posterior")
    high = decided & (value["upper"] < value["posterior"] - _ROUNDING)
    _refuse(frame, "upper", high, "at least the posterior")
    # 0/0 is no ratio: what was impossible before and is now.
    nothing = (value["prior"] == 0) & (value["posterior"] == 0)
    _refuse(frame, "ratio", decided & ~nothing & ~(value["ratio"] >= 0), ">= 0")
    expected = risk_ratio(value["posterior"], value["prior"])
    equal = np.isclose(value["ratio"], expected, rtol=_ROUNDING, atol=0.0)
    _refuse(frame, "ratio", decided & ~nothing & ~equal, "the posterior over the prior")


def numbers(frame: pd.DataFrame, name: str, source: str = "statements") -> FloatArray:
    """Return a column as numbers, or all missing if there is no such column."""
    if name not in frame:
        return np.full(len(frame), np.nan)
    try:
        return np.asarray(frame[name].to_numpy(np.float64, na_value=np.nan))
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{source}: column {name!r} must hold numbers: {error}") from error


def _people(frame: pd.DataFrame) -> IntArray:
    values = numbers(frame, "people")
    _refuse(frame, "people", ~((values == np.floor(values)) & (np.abs(values) < 2**53)), "whole")
    return values.astype(np.int64)


def _correct(frame: pd.DataFrame) -> pd.Series:
    if "correct" not in frame:
        return pd.Series(pd.NA, index=frame.index, dtype="boolean")
    try:
        return frame["correct"].astype("boolean")
    except (TypeError, ValueError) as error:
        raise DataError(
            f"statements: column 'correct' must be true, false or missing: {error}"
        ) from error


def _refuse(frame: pd.DataFrame, name: str, bad: BoolArray, rule: str) -> None:
    if bad.any():
        row = int(bad.argmax())
        value = frame[name].iloc[row]
        value = value.item() if isinstance(value, np.generic) else value
        raise DataError(
            f"statements: row {row + 1}, column {name}: must be {rule}, got {quote(value)}"
        )


GROUP = ["attack", "adversary", "protection"]
_SHOWN = 6  # rows of the summary that fit into ten lines
_BRIEF = [*GROUP, "statements", "proved", "prior", "posterior", "ratio_90"]


def _measures(rows: pd.DataFrame, marks: list[float], comparable: bool) -> dict[str, float | bool]:
    """Return a summary's columns; ``comparable`` if all protections make the same statements."""
    decided = rows[~rows["status"].isin(OPEN)]
    judged = decided if comparable else decided[decided["status"] == "proved"]
    ratio = np.sort(judged["ratio"].dropna().to_numpy(np.float64))
    columns: dict[str, float | bool] = {
        "statements": len(rows),
        "targets": int(rows["target"].nunique()),
        "people": int(rows["people"].sum()),
        **{status: int((rows["status"] == status).sum()) for status in STATUS},
    }
    for name in ("prior", "posterior", "lower", "upper"):
        columns[name] = float(decided[name].mean()) if len(decided) else np.nan
    columns["comparable"] = comparable
    for share in (0.5, 0.9):  # of infinite ratios there is no average: take one that occurs
        index = int(np.ceil(share * ratio.size)) - 1
        columns[f"ratio_{round(100 * share)}"] = float(ratio[index]) if ratio.size else np.nan
    columns["ratio_max"] = float(ratio[-1]) if ratio.size else np.nan
    for mark in marks:
        columns[f"at_least_{mark:g}"] = float((ratio >= mark).mean()) if ratio.size else np.nan
    return columns


@dataclass(frozen=True, eq=False, repr=False)
class Statements(Tabular):
    """Statements of attacks about people, each with prior, posterior and truth.

    Attributes
    ----------
    frame : pandas.DataFrame
        A row for each statement; do not change it (:meth:`to_frame` gives a copy).

        - ``attack``; ``adversary``, a ``linker`` who knows place, sex and age of people or an
          ``outsider`` with public knowledge; ``protection``; ``target``; ``statement`` in words;
          and ``people``, the number of people it is about;
        - ``prior``: the probability that it is true before any release; ``without``: after a
          release of the data without the target's record, missing if not computed (the column is
          optional); ``posterior``: after the release. All are in [0, 1];
        - ``lower``, ``upper``: bounds of an estimated posterior, else the posterior; ``ratio``:
          posterior over prior, infinite for a prior of 0. They are optional;
        - ``correct``: whether the statement is true, missing if not judged; it is optional;
        - ``status``: the kind of posterior: ``proved``, ``estimated`` (a rate of confirmation),
          ``unverified`` (none), ``believed`` (by a reader who takes records at their word) or
          ``unstated`` (the prior, because nothing was stated). In an audit it is ``calculated``,
          ``sampled`` (by chains) or ``undecided`` (chains do not agree);
        - further columns belong to the attack.
    """

    frame: pd.DataFrame

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", checked(self.frame))

    @classmethod
    def of(
        cls,
        result: Reconstruction,
        *,
        spec: MechanismSpec,
        prior_weight: float,
        truth: pd.DataFrame | Persons | None = None,
        rng: Seed | None = None,
        confidence: float = 0.95,
    ) -> "Statements":
        r"""Return the statements about reconstructed persons, with rates of confirmation.

        The method ``statements`` of a result
        (:meth:`~bayesrisk.interfaces.AttackResult.statements`) gives an adversary's beliefs with
        and without the target's record, for this and any other attack.

        Parameters
        ----------
        result : Reconstruction
            A reconstruction of persons.
        spec : MechanismSpec
            How the tables were protected (``release.spec``).  After swapping or noise nothing is
            proved about people, whatever is proved about the tables.
        prior_weight : float
            Number of records for which the whole area's composition counts in the prior, >= 0.
        truth : DataFrame or Persons, optional
            Confidential records ``block, sex, age, race, hisp``, for rates of confirmation and for
            ``correct``.
        rng : Generator, int or other seed, optional
            With a truth, the source of choices among equal records.
        confidence : float, default 0.95
            Confidence of the intervals of estimated posteriors.

        Returns
        -------
        Statements
            With ``block, sex, agebin, race, hisp, baseline``; also ``places``, ``"occupied"``, if
            the release lists places because they have a record.

        Notes
        -----
        The target is a person known by block, sex and age bin (adversary ``linker``). The statement
        is a race and Hispanic origin of a reconstructed record of that kind. The block has ``n``
        records, ``c`` of them as stated. The prior is ``(c - 1 + w s) / (n - 1 + w)``, with ``s``
        the share among all other records and ``w`` the ``prior_weight``. If the block is proved
        unique and published counts are true, the posterior is the share among the records of the
        block, sex and bin. Elsewhere it is the rate of confirmation of such links in blocks without
        proof, by class of block size and separately for the block's mode. That rate is right on
        average over the statements of its kind, but is no belief about one. ``correct`` is missing
        if a statement is true of some of its people only.

        Examples
        --------
        >>> from bayesrisk.mechanisms import Identity
        >>> from bayesrisk.reconstruction import make_attack
        >>> from bayesrisk.tables import Records, Schema, Workload
        >>> people = pd.DataFrame({"block": ["500010101001000"] * 3, "sex": 0, "age": [7, 31, 52],
        ...                        "race": [1, 1, 2], "hisp": 0})
        >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
        >>> release = Identity().release(records, workload=Workload.named("sf1-block"), rng=1)
        >>> found = make_attack("reconstruction", scope="block").run(release)
        >>> said = Statements.of(found, spec=release.spec, prior_weight=1.0)
        >>> said.frame[["race", "prior", "posterior", "status"]].values.tolist()[-1]
        [2, 0.0, 1.0, 'proved']
        """
        check.instance(result, Reconstruction, "result")
        check.instance(spec, MechanismSpec, "spec")
        weight = check.scalar(prior_weight, "prior_weight", lower=0.0)
        if not set(RECORDS[1:]) <= set(result.problem.space.schema.names):
            raise ArgumentError(
                f"result must be of persons, got schema {quote(result.problem.space.schema.name)}: "
                "its statements(...) take what is known and what is stated"
            )
        if truth is not None and rng is None:
            raise ArgumentTypeError("rng", "must be given with truth", shown="None")
        records = person_frame(record_form(result), columns=RECORDS, source="records")
        rows = claims_of_records(records, weight)
        exact = spec.true_counts
        unique = (
            result.geoids[np.array(result.status) == Status.UNIQUE] if exact else np.array([], str)
        )
        rows["status"] = np.where(rows["block"].isin(unique), "proved", "unverified")
        proved = rows["status"] == "proved"
        rows["posterior"] = (rows["people"] / rows.pop("alike")).where(proved)
        rows["lower"] = rows["upper"] = rows["posterior"]
        if truth is not None and rng is not None:
            people = person_frame(truth, columns=RECORDS, source="truth")
            rows["correct"] = agreement(rows, people, PLACE, ABOUT)
            if not proved.all():
                rates = confirmed_records(records, people, unique, rng, confidence)
                for name in ("posterior", "lower", "upper"):
                    rows[name] = rows[name].where(proved, rates[name][rows["stratum"]])
                # Nothing of the kind was linked anywhere: there is no rate.
                rows.loc[~proved & rows["posterior"].notna(), "status"] = "estimated"
        labels = {"attack": "reconstruction", "adversary": "linker", "protection": spec.mechanism}
        rows = rows.drop(columns="stratum").assign(**labels, baseline=WITHOUT)[
            [*(name for name in COLUMNS if name in rows or name in labels), *ABOUT, "baseline"]
        ]
        return cls(rows.assign(places=spec.places) if spec.places == OCCUPIED else rows)

    @classmethod
    def concat(cls, statements: "Iterable[Statements]") -> "Statements":
        """Return the statements of several attacks and protections, concatenated."""
        parts = check.instances(statements, Statements, "statements")
        if not parts:
            raise ArgumentError("statements", "must be at least one", shown="none")
        # A part without rows has no say about the types of columns.
        frames = [part.frame for part in parts if len(part)] or [parts[0].frame]
        return cls(pd.concat(frames, ignore_index=True))

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def comparable(self) -> dict[str, bool]:
        """For each attack, whether all protections give the same statements about the same targets.

        An attack with a single protection and adversary does.
        """
        comparable = {}
        for attack, rows in self.frame.groupby("attack", sort=False):
            numbers = rows.groupby(["target", "statement"], sort=False).ngroup().to_numpy()
            parts = rows.groupby(["adversary", "protection"]).indices.values()
            first, *rest = (np.sort(numbers[index]) for index in parts)
            comparable[str(attack)] = all(np.array_equal(first, other) for other in rest)
        return comparable

    @property
    def learned(self) -> pd.Series:
        """Posterior over prior of every statement, as column ``ratio``: all that was learned.

        It is infinite for a prior of 0, and missing for 0 over 0 or without a posterior.
        """
        return (self.frame["posterior"] / self.frame["prior"]).rename("learned")

    @property
    def learned_from_own_record(self) -> pd.Series:
        """Posterior over ``without`` of every statement: the effect of the target's own record.

        It is infinite for a ``without`` of 0, and missing for 0 over 0 or if one of them is
        missing.
        """
        return (self.frame["posterior"] / self.frame["without"]).rename("learned_from_own_record")

    def summary(self, *, thresholds: Sequence[float] = (2.0, 10.0)) -> pd.DataFrame:
        r"""Return each attack's gain under each protection.

        Parameters
        ----------
        thresholds : sequence of float, default (2, 10)
            Ratios of posterior to prior, > 0; shares of statements that reach them are reported.

        Returns
        -------
        pandas.DataFrame
            A row for each ``attack``, ``adversary`` and ``protection``, in their order of
            appearance:

            - ``statements``, ``targets`` (distinct), ``people`` (summed over statements), and the
              numbers of ``proved``, ``estimated``, ``unverified``, ``believed`` and ``unstated``
              statements;
            - means over statements with a posterior: ``prior``, ``posterior`` (for proved and
              estimated ones the expected share that is true), and its bounds ``lower`` and
              ``upper``;
            - ``comparable``: whether all protections of the attack have the same statements about
              the same targets, as :func:`statements_about_people` gives;
            - ``ratio_50`` and ``ratio_90``, quantiles of the ratio (one of the ratios that occur);
              the largest ratio ``ratio_max``; and ``at_least_T`` for each threshold ``T``. If
              comparable, they are over all statements with a posterior, else over the proved ones.
              A protection that hides the people about whom little is learned would otherwise look
              worse than none.

            These are missing if no statement has a posterior, or none is proved. A prior of 0 makes
            a ratio infinite.

        """
        marks = [
            check.scalar(value, "thresholds", lower=0.0, bounds="(]")
            for value in check.items(thresholds, "thresholds")
        ]
        check.each_once(marks, "thresholds")
        comparable = self.comparable
        lines = [
            dict(zip(GROUP, key, strict=True)) | _measures(rows, marks, comparable[str(key[0])])
            for key, rows in self.frame.groupby(GROUP, sort=False)
        ]
        columns = None if lines else [*GROUP, *_measures(self.frame, marks, True)]
        return pd.DataFrame(lines, columns=columns)

    def plot(self, ax: "Where" = None) -> "Panels":
        """Plot the share of statements whose posterior / prior is at least a value."""
        from bayesrisk.plotting.audit import plot_statements  # slow to import

        return plot_statements(self.frame, comparable=self.comparable, ax=ax)

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of the rows."""
        return self.frame.copy()

    def write(self, path: str | Path) -> None:
        """Write the rows to a Parquet file; an interrupted write leaves the old file intact."""
        try:
            table = pa.Table.from_pandas(self.frame, preserve_index=False)
        except pa.ArrowException as error:
            raise DataError(f"statements: cannot be written: {error}") from error
        plain = table.replace_schema_metadata(None)
        with disk.whole_file(path) as stream:
            pq.write_table(plain, stream, **STORAGE)

    @classmethod
    def read(cls, path: str | Path) -> "Statements":
        """Return checked statements from a file."""
        file = check.path(path, "path")
        frame = read_frame(file)
        try:
            return cls(frame)
        except DataError as error:
            raise DataError(f"{file}: {error}") from error

    def _sentence(self) -> str:
        targets = self.frame["target"].nunique()
        text = (
            f"{len(self):,} statement{'' if len(self) == 1 else 's'} about {targets:,} "
            f"target{'' if targets == 1 else 's'}"
        )
        ratio = self.frame["ratio"].dropna()
        if len(ratio):
            text += (
                f"; posterior over prior at most {ratio.max():.4g}, at least 10 for "
                f"{100 * (ratio >= 10).mean():.3g}% of them"
            )
        return text

    def __repr__(self) -> str:
        rows = self.summary()[_BRIEF]
        if not len(rows):
            return self._sentence()
        table = rows.head(_SHOWN).to_string(index=False, float_format="{:.4g}".format)
        rest = [f"and {len(rows) - _SHOWN} more: summary()"] if len(rows) > _SHOWN else []
        return "\n".join([self._sentence(), table, *rest])

    def _repr_html_(self) -> str:
        return page([self._sentence()], self.summary()[_BRIEF], whole="summary()")
