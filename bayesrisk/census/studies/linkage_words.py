"""Sentences on linkage and occupancy: rate, baseline, verdict, and quotations."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from bayesrisk.experiments.pages import Part, Quotes, listed, what_to_do

Row = Mapping[Any, Any]


def percent(share: float) -> str:
    """Return a share as a whole percentage."""
    return f"{share:.0%}"


def _rate(row: Row, name: str, confidence: str) -> str:
    low, high = (percent(row[f"{name}_{end}"]) for end in ("lower", "upper"))
    return f"{percent(row[name])} ({confidence} interval {low} to {high})"


# Re-identification.


def link_verdict(row: Row, whom: str, confidence: str) -> str:
    """Return a sentence on the number of right links, the guesser's rate, and the verdict.

    ``confidence`` is that of the interval, as text: ``95%``.
    """
    links, right = row["putative"], row["confirmed"]
    if not links:
        return f"No record could be linked to {whom}."
    text = f"Of {links:,} {'links' if links > 1 else 'link'} to {whom}, {right:,} "
    text += f"{'is' if right == 1 else 'are'} confirmed: {_rate(row, 'precision', confidence)}."
    if not math.isnan(row["left_out"]):
        text += (
            " A guesser who knows the others of the block, but not the target's own record, is "
            f"right in {percent(row['left_out'])}."
        )
    ratio, low, high = (row[f"left_out_ratio{end}"] for end in ("", "_lower", "_upper"))
    if not ratio < 1e9:  # missing, or a guesser who is never right
        return text
    text += f" The links are right {ratio:.2f} times as often"
    if not high < 1e9:
        return f"{text}."
    verdict = "no difference from guessing is shown"
    if low > 1.0:
        verdict = "more than guessing explains"
    elif high < 1.0:
        verdict = "less often than guessing"
    return f"{text} (interval {low:.2f} to {high:.2f}): {verdict}."


def link_advice(attackers: Sequence[Row]) -> Part:
    """Return the advice after a re-identification, by the links beside the guesser."""
    kinds = {"all": "known people", "nonmodal": "people unlike their block"}
    surely = {k for one in attackers for k in kinds if one[k]["left_out_ratio_lower"] > 1.0}
    more = [words for kind, words in kinds.items() if kind in surely]
    step = (
        "`bayesrisk audit RECORDS -o NEW --tables TABLES --protection none --protection "
        "swapping:rate=0.05 --method reconstruction` compares protections."
    )
    linked = any(one["all"]["putative"] for one in attackers)
    return what_to_do(
        f"links to {listed(more)} are right more often than a guess" if more else "",
        undecided="no links are shown to be right more often than a guess" * linked,
        basis="what these attackers know, and on these records",
        step=step if more else "",
    )


def link_quotes(attackers: Sequence[Row], confidence: str) -> Quotes:
    """Return sentences about a re-identification that may be quoted, and that may not.

    ``confidence`` is that of the intervals, as text: ``95%``.
    """
    first = attackers[0]
    row, whom = first["all"], f"people of the file “{first['name']}”"
    wrong = row["putative"] - row["confirmed"]
    if wrong:
        links = f"All {row['putative']:,} linked people were re-identified."
        fault = f"{wrong:,} of the links are wrong, and nobody tells the attacker which."
    else:
        links = "The attacker knows that the links are right."
        fault = "Only whoever holds the confidential records can confirm them."
    unlike = f"those of “{first['name']}” who are not what most of their block are"
    return Quotes(
        [
            link_verdict(row, whom, confidence),
            link_verdict(first["nonmodal"], unlike, confidence),
            "A link is judged beside a guesser who never had the person's own record.",
        ],
        {
            links: fault,
            "The tables name people.": "Names come from the file of known persons alone.",
            "These rates are those of any attack.": "They are of this attacker, who knows what the "
            "file of known persons says.",
        },
    )


# Occupancy.


def occupancy_lead(rows: Sequence[Row], words: Mapping[str, str]) -> str:
    """Return the first sentence: blocks found under each protection, beside a blind guess.

    ``rows`` are those of :class:`OccupancyResults` that count blocks nothing fits apart.
    """
    violating, blocks = rows[0]["violating"], rows[0]["blocks"]
    if not violating:
        return (
            f"None of {blocks:,} blocks holds a subsidised household above the occupancy limit, "
            "so that none can be found."
        )
    finds = listed([f"{row['confirmed']:,} {_case(words[row['protection']])}" for row in rows])
    blind = sorted(row["recall_baseline"] * violating for row in rows)
    guess = " to ".join(dict.fromkeys(f"{number:.0f}" for number in (blind[0], blind[-1])))
    hold = "holds" if violating == 1 else "hold"
    return (
        f"{violating:,} of {blocks:,} blocks {hold} a subsidised household above the occupancy "
        f"limit. From published tables alone an adversary finds {finds}; flagging as many blocks "
        f"blindly finds {guess}. {_differences(rows, words)}"
    )


def _case(word: str) -> str:
    return f"with {word}" if word == "no protection" else f"under {word}"


def _differences(rows: Sequence[Row], words: Mapping[str, str]) -> str:
    """Return a sentence on protections that differ for certain (disjoint intervals)."""
    surely_more = [
        f"{_case(words[more['protection']])} than {_case(words[less['protection']])}"
        for more, less in itertools.permutations(rows, 2)
        if more["recall_lower"] > less["recall_upper"]
    ]
    if surely_more:
        return f"Surely more are found {listed(surely_more)}."
    if len(rows) > 1:
        return "So few blocks do not tell the protections apart."
    return ""


def occupancy_sentence(row: Row, words: Mapping[str, str], confidence: str) -> str:
    """Return the sentence on one protection's flagged blocks, beside a blind guess.

    ``confidence`` is that of the interval, as text: ``95%``.
    """
    word = words[row["protection"]]
    text = f"{word[:1].upper()}{word[1:]}: "
    flagged, right = row["putative"], row["confirmed"]
    if flagged:
        are = "is" if flagged == 1 else "are"
        text += (
            f"{flagged:,} block{'s' * (flagged > 1)} {are} flagged, and {right:,} of them "
            f"{'holds' if right == 1 and flagged == 1 else 'hold'} one: precision "
            f"{_rate(row, 'precision', confidence)}, where flagging blindly has "
            f"{percent(row['precision_baseline'])}. {percent(row['recall'])} of the blocks with "
            f"one are found, where flagging as many blindly finds "
            f"{percent(row['recall_baseline'])}."
        )
    else:
        text += "no block is flagged."
    if row["infeasible"]:
        text += (
            f" For {row['infeasible']:,} blocks no households fit the tables, so that nothing is "
            "said of them."
        )
    return text


def occupancy_advice(rows: Sequence[Row], words: Mapping[str, str]) -> Part:
    """Return the advice after a study of occupancy, by the flags beside a blind guess."""
    surely = [r for r in rows if r["putative"] and r["precision_lower"] > r["precision_baseline"]]
    cases = [_case(words[row["protection"]]) for row in surely]
    violating = bool(rows[0]["violating"])
    return what_to_do(
        f"{listed(cases)} flags are right more often than a blind guess" if cases else "",
        undecided="the flags are not told from a blind guess" * violating,
        basis="blocks that keep the limit: others need not",
        step="More `--blocks` or `--seeds`, or another `--protection`, may tell more." * violating,
    )


def occupancy_quotes(rows: Sequence[Row], words: Mapping[str, str], confidence: str) -> Quotes:
    """Return sentences about an occupancy study that may be quoted, and that may not.

    ``confidence`` is that of the intervals, as text: ``95%``.
    """
    wrong: dict[str, str] = {}
    for row in rows:
        false, missed = row["putative"] - row["confirmed"], row["violating"] - row["confirmed"]
        case = _case(words[row["protection"]])
        if false:
            wrong["Every flagged block holds such a household."] = (
                f"{false:,} of {row['putative']:,} that are flagged {case} hold none."
            )
        if missed:
            wrong["A block that is not flagged holds no such household."] = (
                f"{missed:,} that hold one are not flagged {case}."
            )
    wrong |= {
        "Confidential records were read to flag blocks.": "Published tables alone were; records "
        "only judge the flags.",
        "These rates are those of other places, too.": "They are of the blocks of this study.",
        "The households were named.": "Tables have no names: blocks are flagged.",
    }
    return Quotes(
        [
            occupancy_lead(rows, words),
            occupancy_sentence(rows[0], words, confidence),
            "A flag is a proof where tables are exact; where they are swapped or noisy it may be "
            "wrong.",
        ],
        dict(itertools.islice(wrong.items(), 3)),
    )
