"""What attacks say, on one scale: each statement with its prior, its posterior and the truth.

A statement is a sentence about a target that is true or false.  A row says what is stated of whom,
what the adversary would have believed anyway (prior), what the attack makes of it (posterior), and
whether that is proved or estimated.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.parquet import read_frame
from bayesrisk._show import page
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.reconstruction import Claims, OccupancyDetection, Reconstruction
from bayesrisk.release import MechanismSpec
from bayesrisk.risk.statements._occupancy import statements_of_occupancy
from bayesrisk.risk.statements._reconstruction import statements_of_reconstruction
from bayesrisk.risk.statements.claims import statements_of_claims
from bayesrisk.risk.statements.columns import checked, ratio_of
from bayesrisk.risk.statements.summary import comparable_statements, summarised
from bayesrisk.tables.microdata import OCCUPIED

if TYPE_CHECKING:
    from bayesrisk.plotting import Panels, Where

_SHOWN = 6  # rows of the summary that fit into ten lines
_BRIEF = [
    *("attack", "adversary", "protection", "statements", "proved"),
    *("prior", "posterior", "ratio_90"),
]
#: Who turns a result into statements.
_MAKERS: Mapping[type, Callable[..., pd.DataFrame]] = {
    Reconstruction: statements_of_reconstruction,
    Claims: statements_of_claims,
    OccupancyDetection: statements_of_occupancy,
}


@dataclass(frozen=True, eq=False, repr=False)
class Statements:
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

        Two ratios say how much was learned: :attr:`learned` over the prior, and
        :attr:`learned_from_own_record` over what is believed without the target's record.

    Raises
    ------
    DataError
        If a column is missing, or a value out of range: the row (the first is 1), the column, the
        bound and the value are named.

    Examples
    --------
    >>> rows = pd.DataFrame({"attack": "claims", "adversary": "outsider", "protection": "identity",
    ...     "target": ["1", "1"], "statement": ["a", "b"], "people": [1, 3], "prior": [0.5, 0.05],
    ...     "posterior": 1.0, "status": "proved"})
    >>> print(Statements(rows))
    2 statements about 1 target; posterior over prior at most 20, at least 10 for 50% of them
    attack adversary protection  statements  proved  prior  posterior  ratio_90
    claims  outsider   identity           2       2  0.275          1        20
    """

    frame: pd.DataFrame

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", checked(self.frame))

    @classmethod
    def of(
        cls,
        result: Reconstruction | Claims | OccupancyDetection,
        *,
        spec: MechanismSpec,
        **options: Any,
    ) -> "Statements":
        r"""Return what an attack on a release says, with prior, posterior and their ratio.

        This is the one door for the results of every attack.  It stands here and not on the
        results because the truth may enter: the adversary's code cannot know it.

        Parameters
        ----------
        result : Reconstruction, Claims or OccupancyDetection
            What the attack returned.
        spec : MechanismSpec
            How the tables were protected (``release.spec``).  After swapping or noise nothing is
            proved about people, whatever is proved about the tables.
        **options : object
            ``truth``, optional, for rates of confirmation and for ``correct``: confidential
            records ``block, sex, age, race, hisp``, a frame or :class:`Persons`
            (reconstructions); :class:`Records` (claims); households of ``household-occupancy``, a
            frame (occupancy).  ``confidence``: of the intervals of estimated posteriors, 0.95 by
            default.  Reconstructions need ``prior_weight``, the number of records that the
            composition of the whole area counts for in the prior (>= 0), and ``rng`` with a
            truth, the source of choices among equal records; those of a schema of one's own need
            ``known`` and ``stated``, the attributes that the adversary knows of a target and those
            that are stated, and as truth :class:`Records`.  Claims need ``records``, those of
            the larger places that priors are from, and ``level`` of these places; and may have
            ``readable`` and ``leave_out`` (:func:`claim_priors`).  Occupancy needs ``prior``, the
            share of blocks that the adversary believes to hold a violation, in (0, 1).

        Returns
        -------
        Statements
            With columns of the attack's own: ``block, sex, agebin, race, hisp, baseline``
            (reconstructions; ``baseline`` says that the prior leaves the target's own record
            out); ``n_columns, baseline`` (claims); ``finding`` (occupancy).  Of a release that
            lists places because they have a record also ``places``, ``"occupied"``: beside its
            counts it publishes that somebody is there.

        Raises
        ------
        DataError
            If the truth lacks a column or has a value out of range.

        Notes
        -----
        *Reconstructions.*  The target is a person known to live in a block, with sex and age bin
        (adversary ``linker``); the statement is a race and Hispanic origin that a reconstructed
        record of that block, sex and bin has.  With ``n`` records in the block, ``c`` of them as
        stated, the prior is ``(c - 1 + w s) / (n - 1 + w)``, where ``s`` is the share among all
        other records and ``w`` the ``prior_weight``: what a proportional guesser infers who never
        sees the target's record.  Where the block is proved unique and published counts are true
        ones, the posterior is the share among the records of the block, sex and bin.  Elsewhere it
        is the rate at which such links are confirmed, in blocks without proof: by class of block
        size, and apart for what most records of the block are and for the rest; blocks are the
        units of its interval.  ``correct`` is missing where a statement is true of some of the
        people whom it is about.

        With ``known`` and ``stated`` the same is said about any attributes: the target is a record
        known by place and ``known``, the statement its ``stated`` ones, and the prior as above.
        Where nothing is proved the posterior is the share among the reconstructed records of the
        place with the same ``known``, which one of several solutions may have by chance: status
        ``believed``.

        *Claims.*  The target is a place, the statement a verified claim (adversary ``outsider``).
        The posterior is 1 where published counts are true ones; else the share of claims with as
        many columns that are true.

        *Occupancy.*  The target is a block with subsidised households, the statement that one of
        them violates the occupancy limit (adversary ``outsider``).  A violation found in true
        counts is proved; else the posterior is the share of blocks with the same finding that
        hold one.

        A rate of confirmation is right on average over the statements of its kind.  It is not what
        an adversary should believe of one of them.  Under another protection the statements are
        others, about other people: to compare protections, ask the same of the same people
        (:func:`statements_about_people`).

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
        maker = next((m for kind, m in _MAKERS.items() if isinstance(result, kind)), None)
        if maker is None:
            kinds = ", ".join(kind.__name__ for kind in _MAKERS)
            raise ArgumentTypeError(f"result must be one of {kinds}, got {type(result).__name__}")
        check.instance(spec, MechanismSpec, "spec")
        try:
            signature(maker).bind(result, spec=spec, **options)
        except TypeError as error:
            known = ", ".join(list(signature(maker).parameters)[2:])
            text = f"options must be those of the attack ({known}): {error}"
            raise ArgumentTypeError(text) from error
        rows = maker(result, spec=spec, **options)
        # The places that the release lists because somebody lives there are known to everybody.
        return cls(rows.assign(places=spec.places) if spec.places == OCCUPIED else rows)

    @classmethod
    def concat(cls, statements: "Iterable[Statements]") -> "Statements":
        """Return the statements of several attacks and protections together, in their order.

        Parameters
        ----------
        statements : iterable of Statements
            At least one; columns of their own that others lack are missing there.

        Returns
        -------
        Statements
            All of them.

        Raises
        ------
        ArgumentError
            If there are none.
        """
        parts = check.instances(statements, Statements, "statements")
        if not parts:
            raise ArgumentError("statements must be at least one, got none")
        # A part without rows has no say about the types of columns.
        frames = [part.frame for part in parts if len(part)] or [parts[0].frame]
        return cls(pd.concat(frames, ignore_index=True))

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def comparable(self) -> dict[str, bool]:
        """For each attack whether all of its protections state the same of the same targets."""
        return comparable_statements(self.frame)

    @property
    def learned(self) -> pd.Series:
        """Posterior over prior of every statement: all that was learned, as column ``ratio``.

        Infinite for a prior of 0; missing for 0 over 0 and where there is no posterior.
        """
        return self._over("prior").rename("learned")

    @property
    def learned_from_own_record(self) -> pd.Series:
        """Posterior over ``without`` of every statement: what the target's own record adds.

        Infinite for a ``without`` of 0; missing for 0 over 0 and where one of them is missing.
        """
        return self._over("without").rename("learned_from_own_record")

    def _over(self, baseline: str) -> pd.Series:
        posterior, below = (self.frame[c].to_numpy(np.float64) for c in ("posterior", baseline))
        return pd.Series(ratio_of(posterior, below), index=self.frame.index)

    def summary(self, *, thresholds: Sequence[float] = (2.0, 10.0)) -> pd.DataFrame:
        r"""Return what each attack learns from each protection.

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
              elsewhere.

            Missing where no statement has a posterior, or none is proved.  A prior of 0 makes a
            ratio infinite.

        Notes
        -----
        Rows of different attacks are about different statements.  Estimated posteriors are rates
        of confirmation, pooled over whatever an attack happens to state under one protection.
        Quantiles of their ratios would make a protection look worse than none if it hides the
        people about whom little is learned, so that they are not given where the statements
        differ.
        """
        return summarised(self.frame, thresholds)

    def plot(self, ax: "Where" = None) -> "Panels":
        """Draw the share of statements whose ratio of posterior to prior is at least so large.

        Parameters
        ----------
        ax : sequence of matplotlib.axes.Axes, optional
            Where to draw, one Axes for each attack; by default in a new figure.

        Returns
        -------
        array of matplotlib.axes.Axes
            As :func:`plot_statements` draws it.

        Raises
        ------
        ArgumentError
            If no statement has a ratio that can be drawn, or ``ax`` holds not one Axes for each
            attack.
        """
        from bayesrisk.plotting.statements import plot_statements  # slow to import

        return plot_statements(self.frame, comparable=self.comparable, ax=ax)

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of the rows.

        Returns
        -------
        pandas.DataFrame
            The columns of ``frame``.
        """
        return self.frame.copy()

    def write(self, path: str | Path) -> None:
        """Write a Parquet file, whole or as before.

        Parameters
        ----------
        path : path-like
            The file; its folder must be there.

        Raises
        ------
        DataError
            If an attack's own column holds something that has no place in a file.
        OutputError
            If the file cannot be written.
        """
        try:
            table = pa.Table.from_pandas(self.frame, preserve_index=False)
        except pa.ArrowException as error:
            raise DataError(f"statements: cannot be written: {error}") from error
        with _files.whole_file(path) as stream:
            plain = table.replace_schema_metadata(None)
            pq.write_table(plain, stream, compression="zstd", write_page_checksum=True)

    @classmethod
    def read(cls, path: str | Path) -> "Statements":
        """Read statements that were written, and check them.

        Parameters
        ----------
        path : path-like
            A Parquet file.

        Returns
        -------
        Statements
            What was written.

        Raises
        ------
        DataError
            If the file is damaged, lacks a column or has a value out of range.
        """
        file = check.path(path, "path")
        frame = read_frame(file)
        try:
            return cls(frame)
        except DataError as error:
            raise DataError(f"{file}: {error}") from error

    def _said(self) -> str:
        """Return the answer in one line."""
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
            return self._said()
        table = rows.head(_SHOWN).to_string(index=False, float_format="{:.4g}".format)
        more = len(rows) - _SHOWN
        lines = [self._said(), table]
        return "\n".join([*lines, f"and {more} more: summary()"] if more > 0 else lines)

    def _repr_html_(self) -> str:
        return page(self._said(), self.summary()[_BRIEF], whole="summary()")
