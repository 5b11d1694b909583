"""Reports of attacks on published tables: opening sentences and quotations."""

import functools
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk.experiments import pages
from bayesrisk.experiments.pages import Part, Quotes, drawing, findings, origin, table, what_to_do
from bayesrisk.experiments.runs.folder import RunFolder
from bayesrisk.plotting.attacks import draw_numbers, plot_bounds
from bayesrisk.reconstruction.records.bounds import CountBounds, narrowed, positive_sentences

Facts = Mapping[str, Any]
ROWS = 50  # of a table in a report
IF_TRUE = "If the published counts were true: "
NO_NAMES = "Tables have no names: whose record it is, only other data can say."
NAIVE = (
    "The counts are taken as true here, although their protection may have changed them: what "
    "is proved would only be so if they were true."
)
_MEANINGS = {
    "unique": "no other records fit, which is proved",
    "feasible": "these records fit, and others do, or might",
    "nearest": "no records fit, and these deviate least from the tables",
    "infeasible": "no records fit, because the counts contradict each other",
    "contradictory": "no records fit, because the counts contradict each other",
    "unknown": "nothing is decided, because the solver stopped at its limit",
    "none": "nothing was looked for",
    "undecided": "at least one claim is open, because the solver stopped at its limit",
    "decided": "every claim is decided",
    "empty": "nobody is there",
}


def _by_status(statuses: Mapping[str, int], level: str) -> list[str]:
    every = sum(statuses.values())
    return [
        f"In {number:,} of {every:,} places ({level}) {_MEANINGS.get(status, status)}."
        for status, number in sorted(statuses.items(), key=lambda pair: -pair[1])
    ]


_COARSER = (
    "Round or withhold more, as by `bayesrisk release RECORDS -o NEW --tables TABLES --protection "
    "rounding:base=3`, and attack that again."
)
_OPEN = ("unknown", "undecided", "contradictory", "infeasible", "nearest")


def proof_advice(facts: Facts, finding: str, judged: str | bool = "", basis: str = "") -> Part:
    """Return the advice after a search for proofs, with a ``finding``.

    ``judged`` is what only the publisher can judge; ``basis`` what nothing found rests on.
    """
    undecided = sum(facts["statuses"].get(name, 0) for name in _OPEN)
    if undecided and not finding:
        judged = f"places not decided, or contradictory: {undecided:,}"
    if facts["taken_as_true"]:
        finding, judged = "", "the counts were taken as true, and need not be"
    basis = f"{basis}these tables alone"
    return what_to_do(finding, undecided=judged, basis=basis, step=_COARSER if finding else "")


def _are(number: int, noun: str, rest: str) -> str:
    """Return that so many are so: "2 records are proved"; empty of none."""
    return f"{number:,} {noun}{'s are' if number > 1 else ' is'} {rest}" if number else ""


# Reconstructions.


def reconstruction_lead(every: int, proved: int, usual: int) -> str:
    """Return a sentence on the number of proved records, and of those that a guess gets right.

    ``usual`` is the number of proved records that are the commonest one of their place.
    """
    if not every:
        return "No records were reconstructed: nothing is said of anybody."
    if not proved:
        return f"None of {every:,} reconstructed records is proved: others may fit, too."
    records = "records" if every > 1 else "record"
    return (
        f"Of {every:,} reconstructed {records} {proved:,} {'are' if proved > 1 else 'is'} proved: "
        "no others fit the published tables. Always naming the commonest record of the place "
        f"would be right for {usual:,} of these."
    )


def _reconstruction_quotes(every: int, proved: int, lead: str, places: list[str]) -> Quotes:
    rest = every - proved
    named = "A reconstructed record has no name: the tables alone do not say whose it is."
    if rest:
        wrong = {
            f"All {every:,} records are true.": f"Only {proved:,} are proved; others may fit "
            "instead of the rest.",
            f"The {rest:,} records that are not proved are safe.": "Other tables, or what somebody "
            "knows, may settle them.",
        }
    else:
        wrong = {
            "The records were stolen.": "Nothing but published tables was read.",
            "Only these tables give so much away.": "No others were looked at.",
        }
    identified = "The people behind these tables were identified."
    return Quotes([lead, *places[:1], named], {identified: NO_NAMES, **wrong})


def reconstruction_page(
    config: Facts, folder: RunFolder, facts: Facts, variability: str | None
) -> bytes:
    """Return the report of a reconstruction, read one shard at a time."""
    people: Counter[str] = Counter()
    sums, most, usual = np.zeros(3), pd.DataFrame(), 0
    level = ""
    for shard in range(folder.shards):
        blocks = folder.read_part(shard, "blocks").to_pandas()
        level = str(blocks.columns[0])
        counted = blocks.groupby("status")["population"].sum()
        people.update({str(name): int(n) for name, n in counted.items()})
        usual += _usual(folder.read_part(shard, "records").to_pandas(), blocks)
        if variability is not None:
            part = folder.read_part(shard, "variability").to_pandas()
            sizes = part["population"].to_numpy(dtype=float)
            sums += [sizes.sum(), *(sizes @ part[end].to_numpy() for end in ("lower", "upper"))]
            most = pd.concat([most, part[part["upper"] > 0]]).nlargest(ROWS, "upper")
    every, proved = people.total(), people["unique"]
    lead = IF_TRUE * bool(facts["taken_as_true"]) + reconstruction_lead(every, proved, usual)
    places = _by_status(facts["statuses"], level)
    tables = [table(pd.DataFrame({"cells": facts["conflicts"]}), "Cells that contradict")]
    differ = []
    if variability is not None:
        ends = dict.fromkeys(f"{share:.1%}" for share in sums[1:] / max(sums[0], 1.0))
        differ.append(
            f"The records that fit and are least like these differ in {' to '.join(ends)} of "
            f"the people, on average over people ({variability})."
        )
        caption = f"Places with other records that fit, at most {ROWS}"
        tables.append(table(most.drop(columns="seconds", errors="ignore"), caption))
    draw = functools.partial(draw_numbers, facts["statuses"], f"places ({level})")
    return findings(
        "Reconstruction: which records published tables give away",
        [lead, *places, *differ],
        advice=proof_advice(facts, _are(proved, "record", "proved")),
        quotes=_reconstruction_quotes(every, proved, lead, [*differ, *places]),
        source=origin(config, "records"),
        settings=config,
        figures=[drawing(draw, "Places by what is known of their records.")],
        tables=tables,
        words={
            **{name: f"{_MEANINGS.get(name, name)}." for name in facts["statuses"]},
            "other records": "those that differ in what the tables tell apart: two ages that "
            "are one group in every table are the same here.",
        },
        warning=NAIVE if facts["taken_as_true"] else "",
    )


def _usual(records: pd.DataFrame, blocks: pd.DataFrame) -> int:
    """Return the number of proved records that equal the commonest one of their place."""
    level = str(blocks.columns[0])
    proved = blocks.loc[blocks["status"] == "unique", level]
    mine = records[records[level].isin(proved)]
    return int(mine.value_counts().groupby(level=level).max().sum())


# Claims.


def claims_lead(facts: Facts, most: int | None) -> str:
    """Return a sentence on the statements that must be true and that no table states.

    ``most`` is the largest number of columns in the search.
    """
    claims, singletons = facts["claims"], facts["singletons"]
    # Rounded or withheld counts do not say how many records there are.
    records = "the records" if facts["coarsened"] else f"these {facts['people']:,} records"
    if not claims:
        limit = "" if most is None else f" of at most {most} columns"
        if {"undecided", "unknown", "contradictory"} & set(facts["statuses"]):
            limit += " that was decided"
        return (
            f"No statement{limit} must be true of {records} beyond what each table "
            "states by itself."
        )
    text = f"{claims:,} statements that no table makes must be true of {records}; "
    if claims == 1:
        text = f"One statement that no table makes must be true of {records}; "
        return text + ("it is about one record alone." if singletons else "it is about several.")
    verb = "is" if singletons == 1 else "are"
    return f"{text}{f'{singletons:,} of them {verb}' if singletons else 'none is'} about one " + (
        "record alone."
    )


def _claims_quotes(facts: Facts, lead: str, places: list[str]) -> Quotes:
    kind = "A statement is proved when every list of records that has the published counts has it."
    if facts["claims"]:
        wrong = {"These statements are probably true.": "They are certain, if the tables are."}
    else:
        wrong = {
            "The tables give nothing away.": "Only certain statements were looked for; what is "
            "merely likely was not."
        }
    wrong["What is not stated here is safe."] = "Other tables, or what is known, may prove more."
    identified = "The people behind these tables were identified."
    return Quotes([lead, *places[:1], kind], {identified: NO_NAMES, **wrong})


def claims_advice(facts: Facts, most: int | None) -> Part:
    """Return the advice after a search for statements of at most ``most`` columns."""
    finding = _are(facts["singletons"], "statement", "about one record alone")
    limit = f"statements of at most {most} columns, and on " if most else ""
    return proof_advice(facts, finding, bool(facts["claims"]), limit)


def claims_page(config: Facts, facts: Facts) -> bytes:
    """Return the report of claims."""
    coverage = pd.DataFrame(facts["coverage"])
    figures = []
    if facts["singletons"]:
        rows = coverage[coverage["singleton_claims"] > 0].set_index("columns")
        bars = {f"{n} columns": int(size) for n, size in rows["singleton_claims"].items()}
        caption = "The statements about one record alone, by how many columns each tells of it."
        figures = [drawing(functools.partial(draw_numbers, bars, "statements"), caption)]
    lead = IF_TRUE * bool(facts["taken_as_true"])
    lead += claims_lead(facts, config["max_columns"])
    places = _by_status(facts["statuses"], "finest level")
    return findings(
        "Claims: what must be true of the records behind published tables",
        [
            lead,
            *(f"For example, {example}" for example in facts["examples"]),
            *places,
            *(f"No records fit: {conflict}" for conflict in facts["conflicts"]),
        ],
        advice=claims_advice(facts, config["max_columns"]),
        quotes=_claims_quotes(facts, lead, places),
        source=origin(config, "claims"),
        settings=config,
        figures=figures,
        tables=[table(coverage, "Records and claims by columns")],
        words={
            "claim": "a statement that some records have certain values in some columns.",
            "must be true": "all records that have the published counts have it, not most of them.",
            "about one record": "exactly one record of the place has these values.",
        },
        warning=NAIVE if facts["taken_as_true"] else "",
    )


_DRAWN = 30  # counts of the figure


def hidden_sentences(bounds: CountBounds, coarse: str) -> list[str]:
    """Return sentences on hidden counts that can be worked out, and on their people.

    ``coarse`` is what such counts are, such as ``hidden``.
    """
    frame = bounds.counts
    facts = bounds.facts
    ends = frame[["low_stated", "high_stated", "low", "high"]].astype("Float64").fillna(np.inf)
    recovered = (ends["low"] == ends["high"]) & (ends["low_stated"] < ends["high_stated"])
    ones = frame.loc[recovered & (ends["low"] == 1), ["level", "geoid", "cell"]]
    single = len(ones.drop_duplicates())  # two files may state one count
    wide, exact = facts["coarsened"], facts["recovered"]
    narrower = int(narrowed(frame).sum()) - exact
    singles = (
        ""
        if not single
        else (
            "; one is a single record"
            if single == 1
            else f"; {single:,} of them are single records"
        )
    )
    if not wide:
        return ["No count is hidden: all are stated exactly."]
    if exact == wide:
        word = "The one" if wide == 1 else f"All {wide:,}"
        singles = singles.replace("; one", "; it") if wide == 1 else singles
        text = f"{word} {coarse} count{'s' * (wide > 1)} can be worked out{singles}."
    elif exact:
        text = f"{exact:,} of {wide:,} {coarse} counts can be worked out{singles}."
    else:
        text = f"None of {wide:,} {coarse} counts can be worked out."
        if wide == 1:
            text = f"The one {coarse} count cannot be worked out."
    rest = "others" if exact else "of them"
    more = f"{narrower:,} {rest} become narrower than they are stated."
    if narrower == wide > 1:
        more = "All of them become narrower than they are stated."
    if narrower == 1:
        one = "It" if wide == 1 else f"One {rest.removesuffix('s')}"
        more = f"{one} becomes narrower than it is stated."
    more = more if narrower > 0 else ""
    sentences = [text, *([more] if more else [])]
    return sentences + positive_sentences(facts["at_least_one"])


def attack_quotes(first: str, proved: Sequence[str], facts: Mapping[str, int]) -> Quotes:
    """Return sentences about an attack that may be quoted, and that may not.

    ``first`` is the first sentence, ``proved`` are statements that must be true.
    """
    must = "What is called proved holds for every list of records with these counts."
    may = [first, f"This must be true: {proved[0]}" if proved else must]
    may_not = {
        "The people in these tables were identified.": "Tables have no names: whose record it is, "
        "only other data can say.",
        "The records that were found are the true ones.": "They fit; other records may, unless the "
        "report says that none do.",
    }
    if (hidden := facts["coarsened"] - facts["recovered"]) > 0:
        safe, fault = f"{hidden:,} hidden counts are safe.", "Other tables may tell them."
    else:
        safe, fault = "All tables give as much away.", "Only these tables were looked at."
    used = "Nothing but the published counts was used."
    return Quotes([*may, used], {**may_not, safe: fault})


def attack_advice(
    recovered: int, single: int, weaker: int, files: Sequence[str], *, conflict: bool, ended: bool
) -> Part:
    """Return the advice after an attack on published tables.

    Given are the numbers of hidden counts that were recovered, of proved statements about exactly
    one record, and of other statements and narrower bounds.
    """
    names = " ".join(map(shlex.quote, files)) or "TABLES"
    command = f"bayesrisk attack {names} --assume THIS-FOLDER/reading.toml -o NEW --accept"
    if conflict:
        step = f"Correct the counts, or the settings in `reading.toml`: `{command}` tries them."
        return what_to_do(undecided="no records fit the tables as they were read", step=step)
    hidden = _are(recovered, "hidden count", "known")
    finding = [*filter(None, (hidden, _are(single, "statement", "about exactly one record")))]
    limit = "recovered" if hidden else "proved"
    step = (
        f"`bayesrisk plan RECORDS -o NEW --limit {limit}=0` looks for rules that withhold enough."
    )
    if not finding:
        step = "" if ended else f"`{command} --time-limit none` goes to the end."
    undecided = weaker > 0 if ended else "the search did not end"
    basis = "the reading below, and on these tables alone"
    return what_to_do(" and ".join(finding), undecided=undecided, basis=basis, step=step)


def placed(sentence: str, place: Mapping[Any, str]) -> str:
    """Return a sentence about records with the labels of their place added."""
    words = ", ".join(f"{name} {label}" for name, label in place.items())
    records, joint, rest = sentence.removesuffix(".").partition(" with ")
    return f"{records} with {words}{', ' * bool(joint)}{rest}." if words else sentence


def linked(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with its proofs as links to files."""
    if "proof" not in frame:
        return frame
    links = [pages.PageCell(Path(file).name, href=file) for file in frame["proof"]]
    return frame.assign(proof=pd.Series(links, frame.index, dtype=object))


def bounds_figures(bounds: pd.DataFrame, folder: Path) -> list[pages.Figure]:
    """Return a figure of the counts with the narrowest bounds, or [] if none is narrowed."""
    ends = bounds[["low_stated", "high_stated", "low", "high"]].astype("Float64").fillna(np.inf)
    width, stated = ends["high"] - ends["low"], ends["high_stated"] - ends["low_stated"]
    chosen = bounds.loc[width[(width < stated)].sort_values(kind="stable").index].head(_DRAWN)
    if chosen.empty:
        return []
    names = chosen.columns[: chosen.columns.get_loc("stated")]
    rows = chosen[names].to_numpy()
    labels = [", ".join(label for label in row if label != "all") or "total" for row in rows]
    chosen = chosen.assign(label=labels)
    for name, words in (("file", " (%s)"), ("row", ", row %s")):  # of labels that stand twice
        twice = chosen["label"].duplicated(keep=False) & chosen[name].notna()
        chosen.loc[twice, "label"] += chosen.loc[twice, name].astype(str).map(words.__mod__)
    caption = (
        f"The {'count' if len(chosen) == 1 else f'{len(chosen)} counts'} of which the tables "
        "together say most. Grey: what a count says "
        "by itself, up to the edge where nobody published it; blue: what must be true"
    )
    draw = functools.partial(plot_bounds, chosen)
    return [pages.figure(draw, folder / "bounds", caption)]
