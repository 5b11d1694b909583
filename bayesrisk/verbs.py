"""Functions for holders of records: audit protections, plan tables, release them."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.calls import meant
from bayesrisk._base.disk.record_file import RecordFile, record_frame, typed
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, name_list
from bayesrisk.experiments import AuditStudy, Protection, read_audit, run
from bayesrisk.interfaces import Mechanism
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.release import Release
from bayesrisk.risk.audit import Adversary
from bayesrisk.risk.audit.adversaries import ADVERSARIES as NAMES
from bayesrisk.risk.planning import release_plan
from bayesrisk.risk.planning.ladders import PlanLimits
from bayesrisk.tables import Microdata, PublishedTables, Records, Schema, Workload
from bayesrisk.tables.microdata import as_microdata
from bayesrisk.tables.reading.counts.testimony import check_records

if TYPE_CHECKING:
    from bayesrisk.experiments.audit.results import AuditResults

__all__ = ["audit", "plan", "release"]

#: Columns that are taken for the place where nobody names another one.
PLACES = ("place", "block")
#: Who asks where nobody says it.
ADVERSARIES = ("outsider", "linker", "knows-all-but-one")
#: What is published: a workload, or the columns that each table crosses.
Tables = Workload | Sequence[str | Sequence[str]]
#: Settings of a study that an audit has by other names.
_SAID = ("population", "workload", "stated")


def audit(
    records: pd.DataFrame | Records | str | Path,
    *,
    key: str | Sequence[str],
    secret: str | Sequence[str],
    protections: str | Sequence[str | Protection] | Mapping[str, str],
    place: str | Sequence[str] | None = None,
    cuts: Mapping[str, Sequence[float]] | None = None,
    tables: Tables | None = None,
    folder: str | Path | None = None,
    **options: Any,
) -> AuditResults:
    r"""Return the cost of each protection, and the gain of adversaries under it.

    .. math:: \text{gain} = \pi(\text{truth} \mid \text{release})
        - \pi(\text{truth} \mid \text{release of everybody else})

    A person's gain is the adversary's belief in the person's true secret value, less the belief
    after a release without the person's record. It measures what the record itself gives away.
    Measures are shares of people, or averages over people and releases, in [0, 1] or [-1, 1].
    Intervals are 95 %.

    Parameters
    ----------
    records : DataFrame, Records or path-like
        One row for each person: a data frame (pandas, Polars, Arrow), records, a file of them
        (CSV or Parquet), or a folder of microdata.
    key : str or sequence of str
        Columns that a linker knows of the target.
    secret : str or sequence of str
        Columns that adversaries try to learn.
    protections : str, sequence of str or Protection, or mapping of str to str
        Recipes such as ``"swapping:rate=0.05"``; the keys of a mapping are their names in results.
    place, cuts : optional
        For frames and files. ``place`` names the columns of the places, from coarse to fine; by
        default ``place`` or ``block``, if there is one. ``cuts`` gives where groups of numbers
        begin, such as ``{"age": [18, 65]}`` (:meth:`Schema.from_frame`).
    tables : Workload or sequence of sequences of str, optional
        What is published, such as ``[["age", "sex"], ["ill"]]``: the columns, of key and secret,
        that each table crosses. By default all tables of one or two columns (:meth:`Workload.of`).
    folder : path-like, optional
        New folder for all results and ``report.html``, which are confidential. By default results
        are kept in a temporary folder, which is deleted after the run.
    **options : object
        Arguments of :class:`AuditStudy`, such as ``targets``, ``releases`` and ``seed``; names of
        ``adversaries`` (by default all but ``insider``); ``workers`` and ``progress`` of
        :func:`run`.

    Returns
    -------
    AuditResults
        The frames ``statements``, ``measures``, ``costs`` and ``comparisons``, and ``plot()``.

    Raises
    ------
    ArgumentError
        If a column is missing, is both key and secret, or a protection lacks a setting.

    Examples
    --------
    >>> frame = pd.DataFrame({"sex": ["F", "M"] * 10, "ill": ["no"] * 17 + ["yes"] * 3})
    >>> found = audit(frame, key="sex", secret="ill", protections=["identity"], targets=3)
    >>> bool(found.measures["gain"].between(-1.0, 1.0).all())
    True
    """
    keys, secrets = _names(key, "key"), _names(secret, "secret")
    if common := sorted({*keys} & {*secrets}):
        advice = ": leave it out of one of them"
        raise ArgumentError("secret", "must be no key", got=common[0], advice=advice)
    named = ("key", "secret", "protections", "place", "cuts", "tables", "folder", "adversaries")
    fields = (one.name for one in dataclasses.fields(AuditStudy) if one.name not in _SAID)
    possible = tuple(dict.fromkeys((*named, *fields, "workers", "progress")))
    for name, value in options.items():
        if name == "columns":
            rule = "is no argument of audit: key and secret name the columns that are counted"
            raise ArgumentTypeError("columns", rule, got=value)
        if name not in possible:
            advice = check.did_you_mean(name, possible) or meant(name, value, [*possible])
            rule = f"must be one of {name_list(possible, advice)}"
            raise ArgumentError("options", rule, got=name, advice=advice)
    try:
        people, workload = _read(records, [*keys, *secrets], place, cuts, tables)
    except DataError as error:
        instead = "name other columns as key and secret"
        words = error.sentence.replace("name the other columns as columns", instead)
        words = words.replace("leave it out with columns=, or ", "")
        raise DataError(words, advice=error.advice) from error
    if "methods" in options:
        options["methods"] = _names(options["methods"], "methods")
    adversary_names = _names(options.pop("adversaries", ADVERSARIES), "adversaries")
    for name in adversary_names:
        check.choice(name, "adversaries", tuple(NAMES))
    if isinstance(protections, str) or not isinstance(protections, Iterable):
        protections = [protections]
    named_ones = protections if isinstance(protections, Mapping) else {}
    listed = list(named_ones.items()) or enumerate(check.items(protections, "protections"))
    chosen = []
    for number, one in listed:
        if not isinstance(one, str | Protection):
            rule = "must be a recipe such as 'swapping:rate=0.05'"
            raise ArgumentTypeError(f"protections[{number!r}]", rule, got=one)
        try:
            recipe = (number, one) if named_ones else (one,)
            chosen.append(one if isinstance(one, Protection) else Protection(*recipe))
        except ArgumentError as error:
            raise error.renamed(f"protections[{number!r}]") if error.argument else error from error
    settings = {name: options.pop(name) for name in ("workers", "progress") if name in options}
    adversaries = [
        Adversary.named(name, known=keys if name == "linker" else ()) for name in adversary_names
    ]
    source: Any = people if isinstance(people, Records) else records
    study = AuditStudy(
        source, workload, protections=chosen, adversaries=adversaries, stated=secrets, **options
    )
    if folder is not None:
        run(study, folder, **settings)
        return read_audit(folder)
    with tempfile.TemporaryDirectory() as scratch:
        run(study, Path(scratch, "audit"), **settings)
        return read_audit(Path(scratch, "audit"))


def release(
    records: pd.DataFrame | Records | Microdata | str | Path,
    *,
    protection: str | Mechanism,
    columns: str | Sequence[str] | None = None,
    place: str | Sequence[str] | None = None,
    cuts: Mapping[str, Sequence[float]] | None = None,
    tables: Tables | None = None,
    places: ArrayLike | None = None,
    seed: int | None = None,
    folder: str | Path | None = None,
) -> Release:
    """Return the tables of records, protected for publication.

    Parameters
    ----------
    records : DataFrame, Records, Microdata or path-like
        One row for each person, as for :func:`audit`.
    protection : str or Mechanism
        Recipe, such as ``"discrete-gaussian:rho=1"``, or a mechanism (:func:`make_mechanism`).
    columns : sequence of str, optional
        For frames and files: the columns to count. By default all but those of places and
        identifiers (:meth:`Schema.from_frame`).
    place, cuts, tables : optional
        As for :func:`audit`.
    places : array_like of str, optional
        The public list of places, or ``"occupied"``, as for the mechanism's ``release``.
    seed : int, optional
        Makes a simulation; anyone who guesses the seed can undo the protection. By default draws
        come from entropy of the operating system that is kept nowhere.
    folder : path-like, optional
        New folder for the release, ready to hand over.

    Returns
    -------
    Release
        Counts with the law of each; ``write(folder)`` writes them.

    Raises
    ------
    ArgumentError
        If the protection lacks a setting, such as a rate, a base or a budget.

    Examples
    --------
    >>> frame = pd.DataFrame({"sex": ["F", "M"] * 10, "ill": ["no"] * 17 + ["yes"] * 3})
    >>> made = release(frame, protection="rounding:base=5,method=nearest")
    >>> made.tables.counts["all", "sex"].toarray().tolist()
    [[10, 10]]
    """
    data, workload = _read(records, columns, place, cuts, tables)
    mechanism = make_mechanism(protection) if isinstance(protection, str) else protection
    if isinstance(mechanism, type) or not isinstance(mechanism, Mechanism):
        rule = "must be a recipe, such as 'rounding:base=5', or a mechanism"
        raise ArgumentTypeError("protection", rule, got=protection)
    listing: dict[str, Any] = {} if places is None else {"places": places}
    try:
        answer = mechanism.release(data, workload=workload, rng=seed, **listing)
    except ArgumentError as error:
        raise error.renamed("seed") if error.argument == "rng" else error from error
    if folder is not None:
        answer.write(folder)
    return answer


def plan(
    records: pd.DataFrame | Records | Microdata | str | Path,
    tables: Tables | None = None,
    *,
    limits: PlanLimits | Mapping[str, float] | str | Iterable[str],
    columns: str | Sequence[str] | None = None,
    place: str | Sequence[str] | None = None,
    cuts: Mapping[str, Sequence[float]] | None = None,
    **options: Any,
) -> release_plan.ReleasePlan:
    """Return the least costly publication rules under which the tables keep all limits.

    Parameters
    ----------
    records : DataFrame, Records, Microdata or path-like
        One row for each person, as for :func:`audit`.
    tables : Workload or sequence of sequences of str, optional
        As for :func:`audit`, at the finest categories that are wanted.
    limits : PlanLimits, mapping or texts
        ``{"recovered": 0, "proved": 0, "gain": 3.5}`` or ``["recovered=0", "gain=3.5"]``.
    columns, place, cuts : optional
        Of frames and files, as for ``release``.
    **options : object
        Of :func:`bayesrisk.risk.plan`, such as ``ladders``, ``adversaries``, ``places``,
        ``workers`` and ``folder``.

    Returns
    -------
    ReleasePlan
        With rules, or with the smallest limits that the coarsest rules would keep.

    Raises
    ------
    ArgumentError
        If a limit, a rule or a column does not exist.

    Examples
    --------
    >>> frame = pd.DataFrame({"sex": ["F", "M"] * 10, "ill": ["no"] * 17 + ["yes"] * 3})
    >>> plan(frame, limits={"recovered": 0}, columns=["ill"]).rules["all"]
    {'total': 'identity', 'ill': 'identity'}
    """
    data, workload = _read(records, columns, place, cuts, tables)
    limits = [limits] if isinstance(limits, str) else limits
    return release_plan.plan(data, workload, limits=limits, **options)


def _names(value: str | Sequence[str], name: str) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else check.texts(value, name)
    check.each_once(names, name)
    return names


def _workload(schema: Schema, tables: Tables | None) -> Workload:
    """Return a workload, or that of the columns that each table crosses."""
    if isinstance(tables, Workload):
        return tables
    if isinstance(tables, str | bytes) or not isinstance(tables, Sequence | None):
        rule = "must be lists of columns, such as [['age', 'sex'], ['ill']], or a Workload"
        raise ArgumentTypeError("tables", rule, got=tables)
    try:
        return Workload.of(schema, tables)
    except ArgumentError as error:
        name = error.argument.replace("margins", "tables")
        raise error.renamed(name) if name else error from error


def _read(
    records: Any,
    columns: str | Sequence[str] | None,
    place: str | Sequence[str] | None,
    cuts: Mapping[str, Sequence[float]] | None,
    tables: Tables | None,
) -> tuple[Records | Microdata, Workload]:
    """Return the records and the tables to be published from them."""
    columns = None if columns is None else _names(columns, "columns")
    if isinstance(records, PublishedTables | Release):
        rule = f"must be records, a row for each person, got {type(records).__name__}"
        raise ArgumentTypeError("records", f"{rule}: bayesrisk.attack(tables) takes tables")
    source: object = "records"
    if check.is_path(records):
        source = path = check.path(records, "records")
        records = Microdata.read(path) if path.is_dir() else typed(record_frame(RecordFile(path)))
    if isinstance(records, Records | Microdata):
        if place is not None or cuts is not None:
            raise ArgumentError("place", "and cuts go with frames and files", got=place or cuts)
        data = as_microdata(records)
        schema = next(one.schema for one in (data.persons, data.households) if one is not None)
        if tables is None and schema.name in Schema.available():
            raise ArgumentError("tables", "must be given for records of the census", got=None)
        return records, _workload(schema, tables)
    frame = check.frame(records, "records", columns or ())
    if not isinstance(tables, Workload):
        if not len(frame):
            raise DataError(f"{source}: must have at least one row, got none")
        check_records(frame, source)
        usual = (name for name in PLACES if name in frame and name not in (columns or ()))
        place = next(usual, None) if place is None else place
        schema = Schema.from_frame(frame, columns=columns, place=place, cuts=cuts)
        if not schema.names:
            left = ", ".join(map(str, frame.columns))
            raise DataError(
                f"{source}: must have a column that is counted; taken for identifiers: {left}",
                advice="; name columns with columns=",
            )
        tables = _workload(schema, tables)
    return Records.from_frame(frame, schema=tables.schema), tables
