"""Statements of attacks on one scale: each with its prior, its posterior and the truth.

A statement is a sentence about a target that is true or false.  A row says what is stated of whom,
what the adversary would have believed anyway (prior), what the attack makes of it (posterior), and
whether that is proved or estimated.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from bayesrisk._base import disk, validation as check
from bayesrisk._base.disk.parquet import read_frame
from bayesrisk._base.display import Tabular, page
from bayesrisk._base.randomness import Seed
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.constraints.model import Status
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, quote
from bayesrisk.reconstruction import Reconstruction, match_records, record_form
from bayesrisk.reconstruction.linkage import (
    CELLS,
    Persons,
    modal_cells,
    person_frame,
    race_ethnicity,
)
from bayesrisk.release import MechanismSpec
from bayesrisk.risk.intervals import (
    binomial_interval,
    block_moments,
    clustered_interval,
    group_sums,
    moment_intervals,
)
from bayesrisk.risk.linkage.agreement import SIZE_CLASSES, WITHOUT, size_class
from bayesrisk.risk.statements.claims import COLUMNS, OPEN, STATUS, checked, risk_ratio
from bayesrisk.tables import Schema
from bayesrisk.tables.cells import CellSpace
from bayesrisk.tables.microdata import OCCUPIED

if TYPE_CHECKING:
    from bayesrisk.plotting import Panels, Where

# -----------------------------------------------------------------------------
# What a reconstruction says about records of any schema, known by some of their attributes.


def leave_one_out(
    agreeing: ArrayLike, population: ArrayLike, everywhere: ArrayLike, total: int, weight: float
) -> FloatArray:
    """Return ``(c - 1 + w s) / (n - 1 + w)``: what a guesser infers without the target's record.

    ``c`` of ``n`` records of a place are as stated, and a share ``s`` of all other records.
    """
    rest = np.asarray(population, np.float64) - 1.0
    share: FloatArray = (np.asarray(everywhere, np.float64) - 1.0) / max(total - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        prior = (np.asarray(agreeing, np.float64) - 1.0 + weight * share) / (rest + weight)
    return np.where(rest + weight > 0, prior, share)


def attributes_asked(
    schema: Schema, knowledge: Sequence[str] | None, stated: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """Return the attributes known and those stated, checked: of the schema and each once."""
    about_target, about_it = (
        [check.choice(attribute, name, schema.names) for attribute in check.texts(attributes, name)]
        for name, attributes in (("known", knowledge or ()), ("stated", stated or ()))
    )
    if not about_it:
        raise ArgumentError("stated", f"must name an attribute of {schema.name!r}", shown="none")
    names = about_target + about_it
    if len(set(names)) < len(names):
        raise ArgumentError("known", "and stated must name an attribute once", shown=names)
    return about_target, about_it


def coarsened(space: CellSpace, index: Mapping[str, IntArray]) -> dict[str, IntArray]:
    """Return codes, given counted from 0, with one for all that the tables do not tell apart."""
    return {
        name: space.first[name][space.bins[name][codes]] + space.schema.attribute(name).first
        for name, codes in index.items()
    }


def agreement(
    rows: pd.DataFrame, people: pd.DataFrame, place: list[str], claim: list[str]
) -> pd.Series:
    """Return the truth of statements that hold for everybody, or for nobody, they are about.

    Missing where it is true of some of them, and where nobody of the kind lives there.
    """
    inhabitants = people.groupby(place).size().rename("there").reset_index()
    right = people.groupby(claim).size().rename("right").reset_index()
    counts = rows[claim].merge(inhabitants, on=place, how="left").merge(right, on=claim, how="left")
    everybody = counts["there"].to_numpy(np.float64)
    truth = unanimous(everybody, counts["right"].fillna(0.0).to_numpy(np.float64))
    return truth.set_axis(rows.index)


def unanimous(everybody: FloatArray, right: FloatArray) -> pd.Series:
    """Return whether statements hold for all of those they are about, or for none; else missing."""
    truth = pd.Series(right > 0, dtype="boolean")
    return truth.where((everybody > 0) & ((right == 0) | (right == everybody)))


def in_words(labelled: pd.DataFrame, names: list[str]) -> list[str]:
    """Return each row in words, by columns; the one place has no name."""
    columns = [labelled[name].astype("str") for name in names]
    rows = (zip(names, row, strict=True) for row in zip(*columns, strict=True))
    return [" ".join(f"{n} {t}" for n, t in pairs if t) or "anybody" for pairs in rows]


# -----------------------------------------------------------------------------
# What a reconstruction says about people known by block, sex and age.


#: What is known of a target, and what is stated.
PLACE = ["block", "sex", "agebin"]
ABOUT = [*PLACE, "race", "hisp"]
RECORDS = ("block", "sex", "age", "race", "hisp")


def claims_of_records(records: pd.DataFrame, weight: float) -> pd.DataFrame:
    """Return the different claims, how many records make each, and their priors."""
    records = records.assign(cell=race_ethnicity(records), stratum=_strata(records))
    keys = [*PLACE, "cell", "stratum"]  # records of one cell in one block share their stratum
    rows = records.groupby(keys, sort=True).size().rename("people").reset_index()
    rows["alike"] = rows.groupby(PLACE)["people"].transform("sum")
    population = rows.groupby("block")["people"].transform("sum").to_numpy(float)
    agreeing = rows.groupby(["block", "cell"])["people"].transform("sum").to_numpy(float)
    everywhere = np.bincount(records["cell"], minlength=CELLS)[rows["cell"]]
    rows["prior"] = leave_one_out(agreeing, population, everywhere, len(records), weight)
    rows["race"], rows["hisp"] = rows["cell"] // 2 + 1, rows.pop("cell") % 2
    text = rows[ABOUT].astype("str")
    rows["target"] = text["block"] + " sex " + text["sex"] + " agebin " + text["agebin"]
    rows["statement"] = "race " + text["race"] + " hisp " + text["hisp"]
    return rows


def _strata(records: pd.DataFrame) -> NDArray[np.int64]:
    """Return for each record the class of its block's size, and whether it is the block's mode."""
    population = records.groupby("block", sort=False)["sex"].transform("size")
    modal = race_ethnicity(records) == modal_cells(records)
    stratum: NDArray[np.int64] = 2 * size_class(population) + modal.astype(np.int64)
    return stratum


def _confirmed(
    records: pd.DataFrame,
    people: pd.DataFrame,
    proved: NDArray[np.str_],
    rng: Seed,
    confidence: float,
) -> Mapping[str, FloatArray]:
    """Return the share of links that are right in blocks without proof, by stratum.

    A stratum without links has the rate of all modal, or nonmodal, ones.
    """
    keys = [("block", "sex", "age"), ("block", "sex", "agebin")]
    links = match_records(records, people, keys=keys, rng=rng)
    right = race_ethnicity(records)[links.left] == race_ethnicity(people)[links.right]
    unproved = ~records["block"].isin(proved).to_numpy()[links.left]
    stratum = _strata(records)[links.left][unproved]
    # Links of one block stand and fall together: blocks are the units, each in one class of size.
    block, geoids = pd.factorize(records["block"].to_numpy()[links.left][unproved])
    strata = 2 * len(SIZE_CLASSES)
    pairs, pair = np.unique(stratum * max(len(geoids), 1) + block, return_inverse=True)
    moments = block_moments(np.bincount(pair, right[unproved]), np.bincount(pair))
    sums = group_sums(moments, pairs // max(len(geoids), 1), strata)
    every = np.tile(sums.reshape(len(sums), -1, 2).sum(axis=1), len(SIZE_CLASSES))
    sums = np.where(sums[0] > 0, sums, every)
    lower, upper = moment_intervals(sums, confidence=confidence)
    with np.errstate(invalid="ignore"):
        return {"posterior": sums[6] / sums[1], "lower": lower, "upper": upper}


# -----------------------------------------------------------------------------
# What several attacks say of several protections, on the one scale that statements have.


GROUP = ["attack", "adversary", "protection"]
_SHOWN = 6  # rows of the summary that fit into ten lines
_BRIEF = [*GROUP, "statements", "proved", "prior", "posterior", "ratio_90"]


def _measures(rows: pd.DataFrame, marks: list[float], comparable: bool) -> dict[str, float | bool]:
    """Return the columns of a summary; ``comparable`` if all protections state the same."""
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
    """Statements of any attacks, checked once.

    Attributes
    ----------
    frame : pandas.DataFrame
        A row for each statement; do not change it (:meth:`to_frame` gives a copy).

        - ``attack``, ``adversary`` (who states it: ``linker`` who knows place, sex and age of
          people, ``outsider`` who knows what is public), ``protection``, ``target`` (whom it is
          about), ``statement`` (in words) and ``people`` (how many it is about);
        - ``prior``: the probability that it is true before any release; ``without``: after a
          release of the data without the target's record, missing where nobody has computed it
          (the column may be left out); ``posterior``: after the release.  All in [0, 1];
        - ``lower``, ``upper``: bounds of an estimated posterior, else the posterior; ``ratio``:
          posterior over prior, infinite for a prior of 0.  They may be left out;
        - ``correct``: whether the statement is true, missing where nobody has looked; it may be
          left out;
        - ``status``: what the posterior is: ``proved``, ``estimated`` (a rate of confirmation),
          ``unverified`` (there is none), ``believed`` (of who takes records at their word),
          ``unstated`` (the prior, because nothing was stated); of an audit ``calculated``,
          ``sampled`` (by chains) or ``undecided`` (chains do not agree: there is none);
        - further columns are the attack's own.
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
        r"""Return the statements of reconstructed persons, with rates of confirmation.

        What an adversary believes of these, or of the result of any other attack, with and without
        the target's record, is said by its method ``statements``
        (:meth:`~bayesrisk.interfaces.AttackResult.statements`).

        Parameters
        ----------
        result : Reconstruction
            Of persons.
        spec : MechanismSpec
            How the tables were protected (``release.spec``).  After swapping or noise nothing is
            proved about people, whatever is proved about the tables.
        prior_weight : float
            Number of records that the composition of the whole area counts for in the prior, >= 0.
        truth : DataFrame or Persons, optional
            Confidential records ``block, sex, age, race, hisp``, for rates of confirmation and for
            ``correct``.
        rng : Generator, int or other seed, optional
            With a truth, the source of choices among equal records.
        confidence : float, default 0.95
            Of the intervals of estimated posteriors.

        Returns
        -------
        Statements
            With ``block, sex, agebin, race, hisp, baseline``; of a release that lists places
            because they have a record also ``places``, ``"occupied"``.

        Notes
        -----
        The target is a person known by block, sex and age bin (adversary ``linker``), the statement
        a race and Hispanic origin that a reconstructed record of that kind has.  With ``n`` records
        in the block, ``c`` of them as stated, the prior is ``(c - 1 + w s) / (n - 1 + w)``, ``s``
        the share among all other records and ``w`` the ``prior_weight``.  Where the block is proved
        unique and published counts are true ones, the posterior is the share among the records of
        the block, sex and bin; elsewhere the rate at which such links are confirmed in blocks
        without proof, by class of block size and apart for the block's mode, which is right on
        average over the statements of its kind and no belief about one of them.  ``correct`` is
        missing where a statement is true of some of the people whom it is about.

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
                rates = _confirmed(records, people, unique, rng, confidence)
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
        """Return the statements of several attacks and protections together, in their order."""
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
        """For each attack whether all of its protections state the same of the same targets.

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
        """Posterior over prior of every statement: all that was learned, as column ``ratio``.

        Infinite for a prior of 0; missing for 0 over 0 and where there is no posterior.
        """
        return (self.frame["posterior"] / self.frame["prior"]).rename("learned")

    @property
    def learned_from_own_record(self) -> pd.Series:
        """Posterior over ``without`` of every statement: what the target's own record adds.

        Infinite for a ``without`` of 0; missing for 0 over 0 and where one of them is missing.
        """
        return (self.frame["posterior"] / self.frame["without"]).rename("learned_from_own_record")

    def summary(self, *, thresholds: Sequence[float] = (2.0, 10.0)) -> pd.DataFrame:
        r"""Return the gain of each attack from each protection.

        Parameters
        ----------
        thresholds : sequence of float, default (2, 10)
            Ratios of posterior to prior, > 0: shares of statements that reach them are reported.

        Returns
        -------
        pandas.DataFrame
            A row for each ``attack``, ``adversary`` and ``protection``, in the order in which they
            come:

            - ``statements``, ``targets`` (different ones), ``people`` (sum over statements), and
              how many statements are ``proved``, ``estimated``, ``unverified``, ``believed`` and
              ``unstated``;
            - over those with a posterior: mean ``prior`` and ``posterior`` (of proved and
              estimated ones the expected share that is true), with the means of its bounds,
              ``lower`` and ``upper``;
            - ``comparable``: whether all protections of the attack have the same statements about
              the same targets, as :func:`statements_about_people` gives;
            - ``ratio_50`` and ``ratio_90``, quantiles of the ratio (one of the ratios that occur),
              its largest value ``ratio_max``, and ``at_least_T`` for each threshold ``T``: over
              all statements with a posterior where they are comparable, over the proved ones
              elsewhere: quantiles over whatever an attack happens to state would make a protection
              look worse than none if it hides the people about whom little is learned.

            Missing where no statement has a posterior, or none is proved.  A prior of 0 makes a
            ratio infinite.

        """
        marks = [
            check.scalar(value, "thresholds", lower=0.0, bounds="(]")
            for value in check.items(thresholds, "thresholds")
        ]
        if len(set(marks)) < len(marks):
            raise ArgumentError("thresholds", "must differ", shown=marks)
        comparable = self.comparable
        lines = [
            dict(zip(GROUP, key, strict=True)) | _measures(rows, marks, comparable[str(key[0])])
            for key, rows in self.frame.groupby(GROUP, sort=False)
        ]
        columns = None if lines else [*GROUP, *_measures(self.frame, marks, True)]
        return pd.DataFrame(lines, columns=columns)

    def plot(self, ax: "Where" = None) -> "Panels":
        """Draw the share of statements whose posterior over prior is at least a value."""
        from bayesrisk.plotting.audit import plot_statements  # slow to import

        return plot_statements(self.frame, comparable=self.comparable, ax=ax)

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of the rows."""
        return self.frame.copy()

    def write(self, path: str | Path) -> None:
        """Write a Parquet file; if it is interrupted, the old file stays as it was."""
        try:
            table = pa.Table.from_pandas(self.frame, preserve_index=False)
        except pa.ArrowException as error:
            raise DataError(f"statements: cannot be written: {error}") from error
        plain = table.replace_schema_metadata(None)
        with disk.whole_file(path) as stream:
            pq.write_table(plain, stream, compression="zstd", write_page_checksum=True)

    @classmethod
    def read(cls, path: str | Path) -> "Statements":
        """Read statements that were written, and check them."""
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


# -----------------------------------------------------------------------------
# The same statements about the same people under every protection: an attack states other things
# of other people under each, so the questions are fixed by the truth.


def statements_about_people(
    statements: Statements, truth: pd.DataFrame | Persons, *, prior_weight: float
) -> Statements:
    """Return a reader's belief in the truth about every person, under each protection.

    The target is a person of the truth, the statement the person's own race and Hispanic origin.
    The reader takes the reconstructed records at their word:

    - The prior is that of :meth:`Statements.of`, from the true records without the
      person's own; it is the same under every protection.
    - The posterior is the share of the reconstructed records of the person's block, sex and age bin
      that state the truth: 0 where they all say something else.  Status ``proved`` where the block
      is proved, else ``believed``.
    - Where there is no such record the posterior is the prior: status ``unstated``, ratio 1.

    There are ``block, sex, agebin, race, hisp`` and ``baseline``, and for each attack and
    protection a row for each record of the truth, in its order, ``target`` its number from 1,
    ``people`` 1.

    Parameters
    ----------
    statements : Statements
        Of reconstructions (:meth:`Statements.of`), under one protection or several.
    truth : pandas.DataFrame or Persons
        Confidential records ``block, sex, age, race, hisp``.
    prior_weight : float
        Number of records that the composition of the whole area counts for in the prior, >= 0.

    Examples
    --------
    >>> from bayesrisk.mechanisms import Identity
    >>> from bayesrisk.reconstruction import make_attack
    >>> from bayesrisk.tables import Records, Schema, Workload
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 3, "sex": 0, "age": [7, 31, 52],
    ...                        "race": [1, 1, 2], "hisp": 0})
    >>> release = Identity().release(Records.from_frame(people, schema=Schema.named("sf1-person")),
    ...                              workload=Workload.named("sf1-block"), rng=1)
    >>> found = make_attack("reconstruction", scope="block").run(release)
    >>> said = Statements.of(found, spec=release.spec, prior_weight=1.0)
    >>> rows = statements_about_people(said, people, prior_weight=1.0)
    >>> rows.frame[["prior", "posterior", "ratio", "status"]].values.tolist()
    [[0.5, 1.0, 2.0, 'proved'], [0.5, 1.0, 2.0, 'proved'], [0.0, 1.0, inf, 'proved']]
    """
    frame = check.instance(statements, Statements, "statements").frame
    frame = check.frame(frame, "statements", ABOUT)
    weight = check.scalar(prior_weight, "prior_weight", lower=0.0)
    people = person_frame(truth, columns=RECORDS, source="truth")
    priors = claims_of_records(people, weight)[[*ABOUT, "statement", "prior"]]
    targets = people[ABOUT].merge(priors, on=ABOUT, how="left", validate="many_to_one")
    targets["target"] = [f"person {number}" for number in range(1, len(targets) + 1)]
    targets["people"] = 1
    parts = []
    for (attack, adversary, protection), rows in frame.groupby(GROUP, sort=False):
        twice = rows.duplicated(ABOUT)
        if twice.any():
            raise DataError(
                f"statements: {attack}, {protection}: {rows.loc[twice, 'target'].iloc[0]}, "
                f"{rows.loc[twice, 'statement'].iloc[0]}: is there twice; give each release a "
                "protection of its own name"
            )
        # Records of each place, sex and age bin, and whether they are proved
        places = rows.assign(proved=rows["status"] == "proved").groupby(PLACE, sort=False)
        believed = places.agg(records=("people", "sum"), proved=("proved", "min")).astype("float64")
        part = targets.merge(believed.reset_index(), on=PLACE, how="left")
        stated = rows[[*ABOUT, "people"]].rename(columns={"people": "stated"})
        part = part.merge(stated, on=ABOUT, how="left")
        silent = part["records"].isna()
        belief = (part["stated"].fillna(0.0) / part["records"]).where(~silent, part["prior"])
        status = np.where(silent, "unstated", np.where(part["proved"] == 1, "proved", "believed"))
        ratio = np.where(silent, 1.0, risk_ratio(belief.to_numpy(), part["prior"].to_numpy()))
        labels = {"attack": str(attack), "adversary": str(adversary), "protection": str(protection)}
        part["posterior"] = part["lower"] = part["upper"] = belief
        part["ratio"], part["status"] = ratio, status
        parts.append(part.assign(**labels, baseline=WITHOUT, correct=True))
    columns = [*(name for name in COLUMNS if name != "without"), *ABOUT, "baseline"]
    whole = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    return Statements(whole[columns])


# -----------------------------------------------------------------------------
# Residual risk: what an attack finds about people in the data beyond what it finds of others.


def residual_risk(
    statements: Statements,
    control: Statements,
    *,
    measure: str = "correct",
    units: str | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    r"""Return the success of an attack beyond its success on people who are not in the data.

    .. math:: R = \frac{s - c}{1 - c}

    where s is the success on people in the data and c that on a control group: people like them
    whose records the release was made without.  Source: Giomi, Boenisch, Wehmeyer and Tasnádi
    (2023, PoPETs 2023(2), 312-328, arXiv:2211.10459), with Wilson intervals; Francis and Wagner
    (2024) measure the gain over a baseline in the same form.

    Parameters
    ----------
    statements : Statements
        About people in the data.
    control : Statements
        Of the same attacks and protections, about people who are not in the data.
    measure : {"correct", "posterior"}, default "correct"
        What success is: the share of statements that are true, those of unknown truth left out; or
        the mean posterior, the success of who draws at random what to say, where statements are
        the truth about given people (:func:`statements_about_people`).
    units : str, optional
        Column of both whose values stand and fall together, such as ``"block"``; by default every
        statement stands for itself.
    confidence : float in (0, 1), default 0.95

    Returns
    -------
    pandas.DataFrame
        A row for each ``attack``, ``adversary`` and ``protection`` of ``statements``:
        ``statements`` and ``controls`` (how many are judged), ``success`` and ``control`` with
        ``_lower`` and ``_upper``; ``residual`` with ``lower`` and ``upper``.  A residual risk of
        1 is an attack that always succeeds on people in the data and not always on others; 0 or
        less says that being in the data did not help it.  Missing where nothing is judged on one
        side, or the control always succeeds.

    Notes
    -----
    Intervals of success are Clopper and Pearson's, for the effective number of statements where
    there are units.  The residual risk rises with s and falls with c, so that ends taken from
    intervals of both at ``(1 + confidence) / 2`` hold it with at least the confidence, whatever the
    dependence of the two groups.  The control must be drawn like the people in the data.

    Examples
    --------
    >>> rows = pd.DataFrame({"attack": "guess", "adversary": "outsider", "protection": "none",
    ...     "target": ["1", "2", "3", "4"], "statement": "a", "people": 1, "prior": 0.5,
    ...     "posterior": 1.0, "status": "believed", "correct": [True, True, True, False]})
    >>> others = rows.assign(correct=[True, False, True, False])
    >>> residual_risk(Statements(rows), Statements(others))["residual"].tolist()
    [0.5]
    """
    in_data = check.instance(statements, Statements, "statements").frame
    controls = check.instance(control, Statements, "control").frame
    check.choice(measure, "measure", ("correct", "posterior"))
    sure = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    if units is not None:
        check.text(units, "units")
        for label, frame in (("statements", in_data), ("control", controls)):
            frame = check.frame(frame, f"units of {label}", [units])
    groups = dict(iter(controls.groupby(GROUP, sort=False)))
    lines = []
    for key, rows in in_data.groupby(GROUP, sort=False):
        if key not in groups:
            raise DataError(f"control: must have statements of {', '.join(map(str, key))}")
        line: dict[str, object] = dict(zip(GROUP, key, strict=True))
        ends, rates = [], []
        for name, number, part in (
            ("success", "statements", rows),
            ("control", "controls", groups[key]),
        ):
            judged = part[part[measure].notna()]
            hits = judged[measure].to_numpy(np.float64)
            labels = None if units is None else judged[units].astype("str").to_numpy()
            line[number] = len(hits)
            rates.append(float(hits.mean()) if len(hits) else np.nan)
            line[name] = rates[-1]
            line[f"{name}_lower"], line[f"{name}_upper"] = _interval(hits, labels, sure)
            ends.append(_interval(hits, labels, (1.0 + sure) / 2.0))
        (s_low, s_high), (c_low, c_high) = ends
        line["residual"] = _residual(*rates)
        line["lower"], line["upper"] = _residual(s_low, c_high), _residual(s_high, c_low)
        lines.append(line)
    if not lines:
        raise ArgumentError("statements", "must be at least one", shown="none")
    return pd.DataFrame(lines)


def _interval(
    hits: FloatArray, labels: NDArray[np.object_] | None, confidence: float
) -> tuple[float, float]:
    if labels is None:
        low, high = binomial_interval(hits.sum(), len(hits), confidence=confidence)
        return float(low), float(high)
    return clustered_interval(hits, labels, confidence=confidence)


def _residual(success: float, control: float) -> float:
    """Return (s - c) / (1 - c): minus infinity, or missing, where the control always succeeds."""
    if control == 1.0:
        return np.nan if np.isnan(success) or success == 1.0 else -np.inf
    return (success - control) / (1.0 - control)
