"""Files of a complete audit: tables, figures and one self-contained HTML page."""

from __future__ import annotations

import base64
import functools
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import pandas as pd

from bayesrisk import plotting
from bayesrisk._base.disk.delimited import csv_bytes
from bayesrisk.experiments import pages
from bayesrisk.experiments.audit.populations import POPULATION, population_names, population_rows
from bayesrisk.experiments.audit.screen import (
    EVERYBODY,
    NO_QUOTES,
    NOTHING_SAID,
    audit_advice,
    audit_quotes,
    first_screen,
    headline_rows,
    lead,
    not_reached,
    screen_lines,
    screen_table,
)
from bayesrisk.experiments.audit.words import (
    answers_text,
    capital,
    error_text,
    interval_text,
    people_interval,
)
from bayesrisk.experiments.pages import Part, listed, marked
from bayesrisk.mechanisms.registry import shown_name
from bayesrisk.risk.microdata import FirstLook

Row = Mapping[Any, Any]
UNLIKE = "unlike their place"
_AT_RISK = 20  # people of each protection
_AGAINST_COST = (
    "Remaining answers of each adversary against cost: fewer is worse. A point is a protection, "
    "its bar the 95 % interval, its band what 95 of 100 single releases show. A line joins two "
    "whose order was told: high and left is best."
)


# Who asked.


def adversary_words(name: str, attributes: Sequence[str]) -> str:
    """Return an adversary in words, such as "a linker who knows sex and age"."""
    if name == "knows-all-but-one":
        text = "one who knows everybody else's record"
        return text + (f" and the {listed(attributes)} of the person" if attributes else "")
    article = "an" if name[:1].lower() in "aeiou" else "a"
    return f"{article} {name}" + (f" who knows {listed(attributes)}" if attributes else "")


def _knowledge(adversary: Row) -> str:
    share = float(adversary["neighbours"])
    text = "what was published and where the person lives"
    if adversary["known"]:
        text += f", and the person's {listed(adversary['known'])}"
    if share == 1.0:
        text += ", and the whole records of everybody else in the place"
    elif share:
        text += f", and the whole records of {share:.0%} of the others in the place"
    return text


# Checks.


def check_totals(checks: pd.DataFrame) -> str:
    """Return a sentence on how many checks passed, calibration curves apart.

    Every audit misses some calibration. Attacks that take reconstructed records or tables at their
    word miss much.
    """
    decided = checks[checks["verdict"] != "no bound"]
    curves = decided["check"] == "calibration"
    parts = []
    for text, rows in (
        ("calibration curves within their bands", decided[curves]),
        ("other checks as they should be", decided[~curves]),
    ):
        number, passed = len(rows), int((rows["failed"] == 0).sum())
        if number:
            parts.append(f"{'all' if passed == number else f'{passed:,} of'} {number:,} {text}")
    return ", ".join(parts) or "nothing to check"


# Tables: of each column its head, what a cell is made of, and how; the first of it sorts.

Column = tuple[str, str, Callable[..., str]]


def _plain(value: object) -> str:
    if isinstance(value, float):
        value = f"{0.0 if abs(value) < 1e-9 else value:,.4g}".replace("nan", "–")
    return str(value)


def _side_by_side(form: Callable[[Any], str]) -> Callable[..., str]:
    """Return a formatter that joins values by slashes, with a dash for a missing one."""
    return lambda *values: " / ".join("–" if pd.isna(one) else form(one) for one in values)


_percent = _side_by_side(lambda share: f"{100.0 * share:.1f}")
_answers = _side_by_side(answers_text)
_widths = _side_by_side(lambda width: "no limit" if math.isinf(width) else _plain(width))
_plains = _side_by_side(_plain)


def _ends(name: str) -> str:
    return f"{name} {name}_lower {name}_upper"


def _more(value: float, low: float, high: float) -> str:
    return interval_text(value, low, high, "{:+,.0f}".format)


def _three(name: str) -> str:
    return " ".join(f"{name}_{end}" for end in ("prior", "without", "posterior"))


def _points(value: float) -> str:
    return f"{100.0 * value:+.1f}"


def _gain(value: float, low: float, high: float) -> str:
    return interval_text(value, low, high, _points, 1.0)


def _factors(*values: float) -> str:
    thirds = (values[:3], values[3:])
    return " / ".join(interval_text(value, low, high) for value, low, high in thirds)


def _error(value: float, low: float, high: float) -> str:
    one = error_text(value)  # of a single release
    return one if math.isnan(low) else interval_text(value, low, high, error_text, math.inf)


def _share(part: float, whole: float) -> str:
    return "–" if math.isnan(part) else f"{part:,.0f} of {whole:,.0f}"


def _named(*names: str) -> list[Column]:
    return [(name, name, _plain) for name in names]


_WHO = (POPULATION, "protection", "attack", "adversary", "group")
_WHOSE: list[Column] = [("read" if n == "attack" else n, n, _plain) for n in _WHO]
_TABLES: dict[str, tuple[str, list[Column]]] = {
    "Remaining answers: every adversary, every group of people": ("measures", [
        ("asked about", "targets", _plain),
        ("left out", "left_out", _plain),
        ("before / without / after", _three("answers"), _answers),
        ("after", _ends("answers_posterior"), interval_text),
        ("in populations like it", "answers_posterior answers_posterior_like_lower "
         "answers_posterior_like_upper", interval_text),
        ("factor by others' records / by the own one",
         f"{_ends('others_factor')} {_ends('own_factor')}", _factors),
    ]),
    "People affected: every adversary, every group of people": ("measures", [
        ("doubled", f"{_ends('doubled')} people", people_interval),
        ("ten times", f"{_ends('tenfold')} people", people_interval),
        ("proved", f"{_ends('proved')} people", people_interval),
        ("of them by own record", f"{_ends('proved_own')} people", people_interval),
        ("after over without: half / 1 in 10 / 1 in 100", "ratio_50 ratio_90 ratio_99", _plains),
    ]),
    "Every two protections compared": ("comparisons", [
        *_named("against"),
        ("times the remaining answers", "factor lower upper", interval_text),
        ("more people doubled", _ends("doubled"), _more),
        ("more people proved", _ends("proved"), _more),
        ("interval and verdict of", "scope", _plain),
        *_named("p", "verdict"),
        ("releases that would tell", "needed", _plain),
        ("people asked that would tell", "needed_people", _plain),
    ]),
    "Beliefs, hits and misses, and where the error of remaining answers comes from": ("measures", [
        ("belief: before / without / after (%)", _three("believed"), _percent),
        ("after less without (points)", _ends("gain"), _gain),
        ("right: before / without / after (%)", _three("right"), _percent),
        ("Brier score", "brier", _plain),
        ("false and certain", f"{_ends('false')} people", people_interval),
        *_named("places", "releases"),
        ("error: people / releases / chains (%)",
         "error_people error_releases error_chains", _percent),
    ]),
    "Cost of each protection": ("costs", [
        ("a count is off by", "error error_lower error_upper", _error),
        ("withheld (%)", "withheld", _percent),
    ]),
    "What the counts of one release prove, whatever was believed before": ("proofs", [
        ("in places", "places", _plain),
        ("not stated exactly", "coarsened counts", _share),
        ("of these recovered", "recovered coarsened", _share),
        ("and 0", "empty", _plain),
        ("counts of 1 and 2 recovered", "small_recovered small", _share),
        ("not 0, which it does not say itself", "at_least_one", _plain),
        ("mean width by itself / together", "width_stated width", _widths),
        ("records proved", "records people", _share),
        ("ends proved and reached", "decided counts", _share),
    ]),
    "Every check": ("checks", [
        *_named("check", "against"),
        ("failed / compared", "failed compared", _plains),
        *_named("value", "bound", "power", "verdict"),
    ]),
    "Who is most at risk, for the custodian's eyes": ("at-risk", [
        ("person (row)", "target", _plain),
        *_named("place"),
        ("after over without", "ratio", _plain),
        ("its standard error", "error", _plain),
        ("without / after (%)", "without posterior", _percent),
    ]),
}  # fmt: skip


_PLAIN = {
    "calibration": "Are statements true as often as their probability says?",
    "errors": "Error of each table",
    "privacy": "Epsilon of a whole release at delta 1e-10, for one record that comes or goes "
    "(add-remove) or changes, by its own law and by its rho",
    "settings": "Every setting that was tried",
    "rare": "Rare records: by how many people share what is known of them, before any release",
}


def _tables(frames: Mapping[str, pd.DataFrame]) -> dict[str, pages.PageTable]:
    """Return report tables by caption, without columns that their frame lacks."""
    tables, named = {}, {kind: _with_shown_names(frame) for kind, frame in frames.items()}
    for caption, (kind, columns) in _TABLES.items():
        rows, names_present = named[kind].to_dict(orient="records"), {*frames[kind].columns}
        columns_present = [
            (h, n.split(), text)
            for h, n, text in [*_WHOSE, *columns]
            if {*n.split()} <= names_present
        ]
        cells: list[list[str]] = [
            [
                pages.PageCell(text(*(row[n] for n in names)), sort=row[names[0]])
                for _, names, text in columns_present
            ]
            for row in rows
        ]
        tables[caption] = pages.PageTable(caption, [head for head, *_ in columns_present], cells)
    for name, caption in _PLAIN.items():
        if name in frames:
            tables[caption] = pages.table(named[name].round(3), caption)
    return tables


def _with_shown_names(frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the display names of protections."""
    names = [name for name in ("protection", "against", "setting") if name in frame]
    return frame.assign(**{name: frame[name].map(shown_name) for name in names})


def proofs_text(proofs: pd.DataFrame) -> str:
    """Return a sentence on the counts that one release proves under each protection."""
    rows = _with_shown_names(proofs).to_dict(orient="records")
    open_, sentences = [row for row in rows if row["limited"] and row["coarsened"]], []
    recovered = [
        f"{_share(row['recovered'], row['coarsened'])} under {row['protection']}"
        for row in sorted(open_, key=lambda row: -row["recovered"]) if row["recovered"]
    ]  # fmt: skip
    for names, before, after in (
        (recovered, "counts that one release does not state exactly follow from all of them: ", ""),
        ([r["protection"] for r in open_ if not r["recovered"]], "none follows under ", ""),
        ([r["protection"] for r in rows if not r["coarsened"]], "", ": all stated exactly"),
        ([r["protection"] for r in rows if not r["limited"]], "none can be proved under ", ""),
    ):
        if names:
            sentences.append(before + listed(names) + after)
    return capital("; ".join(sentences))


def people_at_risk(targets: pd.DataFrame, measures: pd.DataFrame) -> pd.DataFrame:
    """Return the people with the highest risk ratio under each protection.

    ``ratio`` is a mean over releases, for the adversary of the first screen: the probability of the
    truth after the release over that without the person's record. ``error`` is its standard error.
    """
    first = headline_rows(measures)
    first = first[first["adversary"] == first["adversary"].iloc[:1].sum()]
    mine = targets.merge(first[["protection", "attack", "adversary"]])
    mine = mine.dropna(subset=["truth_without", "truth_posterior"])
    mine["ratio"] = mine["truth_posterior"] / mine["truth_without"]
    keys = ["protection", "target", "place"]
    affected = mine.dropna(subset="ratio").groupby(keys, sort=False).agg(
        ratio=("ratio", "mean"), error=("ratio", "sem"), releases=("ratio", "size"),
        without=("truth_without", "mean"), posterior=("truth_posterior", "mean"),
    ).reset_index()  # fmt: skip
    affected = affected.sort_values("ratio", ascending=False, kind="stable")
    affected = affected.groupby("protection", sort=False).head(_AT_RISK)
    order = {name: rank for rank, name in enumerate(first["protection"])}
    return affected.sort_values("protection", key=lambda names: names.map(order), kind="stable")


# The files.

_DOWNLOADS = ("measures", "comparisons", "costs", "proofs", "calibration", "checks", "at-risk")


def audit_files(
    statements: pd.DataFrame,
    errors: pd.DataFrame,
    config: Row,
    checks: pd.DataFrame,
    *,
    measures: pd.DataFrame,
    comparisons: pd.DataFrame,
    costs: pd.DataFrame,
    calibration: pd.DataFrame,
    targets: pd.DataFrame,
    proofs: pd.DataFrame,
    choice: pd.DataFrame | None = None,
    settings: pd.DataFrame | None = None,
    privacy: pd.DataFrame | None = None,
    rare: Mapping[str, FirstLook] = MappingProxyType({}),
) -> dict[str, bytes]:
    """Return the further files of a complete audit, by name.

    Statements, errors and ``checks`` are those of all shards, and ``config`` is that of the audit.
    ``choice`` has the chosen settings of protections, ``settings`` all tried ones, and ``rare`` the
    rarity of the populations' records.
    """
    frames = {
        "measures": measures, "comparisons": comparisons, "costs": costs,
        "calibration": calibration, "checks": checks, "proofs": proofs,
    }  # fmt: skip
    if privacy is not None and len(privacy):
        frames["privacy"] = privacy
    if choice is not None and settings is not None:
        frames |= {"choice": choice, "settings": settings}
    files = {f"{name}.csv": csv_bytes(frame) for name, frame in frames.items()}
    stream = io.BytesIO()
    targets.to_parquet(stream, index=False, compression="zstd")
    files["targets.parquet"] = stream.getvalue()
    answer = [] if choice is None else _chosen(choice, config)
    risks, more, quotes = [], list[Part](), list[pages.Quotes]()
    with TemporaryDirectory() as folder:
        for number, name in enumerate(population_names(errors), start=1):
            mine, pairs, cost, people, proved = (
                population_rows(f, name) for f in (measures, comparisons, costs, targets, proofs)
            )
            # A name may be no name of a file.
            end, title = (f"-{number}", f"{name}: ") if name else ("", "")
            risks.append(people_at_risk(people, mine).assign(**{POPULATION: name} if name else {}))
            answer += [("heading", name)] if name else []
            first, quotation = _screen(mine, pairs, cost, config, choice)
            answer += first
            quotes.append(quotation)
            answer += _answer_figures(mine, pairs, cost, Path(folder), end, title)
            sentence = marked("<b>Proved by counts.</b> {}", _full(proofs_text(proved)))
            answer.append(("sentence", sentence, "proved"))
            if name in rare:
                lines = [*rare[name]._answer(), "A release tells of them what its counts tell."]
                sentence = marked("<b>Rare records.</b> {}", " ".join(lines))
                answer.append(("sentence", sentence, "rare"))
            figures = _belief_figures(mine, Path(folder), end, title)
            more.append(("folded", f"{title}beliefs before, without and after", figures))
        for file in sorted(Path(folder).iterdir()):
            files[f"figures/{file.name}"] = file.read_bytes()
    frames["at-risk"] = pd.concat(risks, ignore_index=True)
    error_keys = [key for key in (POPULATION, "protection", "level", "table") if key in errors]
    frames["errors"] = (
        errors.groupby(error_keys, sort=False)[["error", "withheld"]].mean().reset_index()
    )
    if rare:
        looks = [
            look.summary().assign(**{POPULATION: name} if name else {})
            for name, look in rare.items()
        ]
        frames["rare"] = pd.concat(looks, ignore_index=True)
    made_up = bool(config.get("made_up", False))
    downloads = {n: base64.b64encode(csv_bytes(frames[n])).decode() for n in _DOWNLOADS}
    page = pages.render(
        "Audit of protections: how much is learned about people",
        answer,
        [
            _question(config, statements[statements["status"] == "undecided"]),
            ("prose", "audit_words.html"),
            ("heading", "Tables"),
            *more,
            *(("folded", caption, [rows]) for caption, rows in _tables(frames).items()),
            ("prose", "audit_checks.html", check_totals(checks)),
            ("downloads", downloads),
        ],
        quotes=quotes[0],  # of several populations the first
        made_up=made_up,
        warning="" if made_up else marked(pages.CONFIDENTIAL),
        source=f"Made by bayesrisk {config['version']} from {_origin(config['population'])}, "
        f"seed {config['seed']}.",
        settings_title="Settings of the audit",
        settings=json.dumps(config, indent=2, sort_keys=True),
    )
    return files | {"report.html": page}


def _full(text: str) -> str:
    """Return a sentence with one full stop."""
    return f"{text.rstrip('.')}."


def _chosen(choice: pd.DataFrame, config: Row) -> list[Part]:
    """Return the cheapest protection that meets the goal, and a sentence about each."""
    goal = (
        f"for {100.0 * (config['quantile'] or 0.0):.4g} % of people, the ratio of posterior and "
        f"belief without their own record shall be at most {config['target_ratio']}, for "
        f"{config['against'] or 'the worst of all adversaries'}."
    )
    best = " and ".join(choice.loc[choice["cheapest"], "setting"])
    text = (
        "<b>{}</b> costs least error of the tables among the protections that meet the target: {}"
        if best
        else "<b>No protection meets the target</b>{} in the range that was searched: {}"
    )
    return [marked(text, best, goal), ("points", [*map(_full, choice["answer"])])]


_FEW = (
    "So few people speak for all, since each takes draws anew under each release; --targets and "
    "--releases ask for more."
)


def _screen(
    measures: pd.DataFrame,
    comparisons: pd.DataFrame,
    costs: pd.DataFrame,
    config: Row,
    choice: pd.DataFrame | None,
) -> tuple[list[Part], pages.Quotes]:
    """Return the top section of one population's report, and quotable sentences."""
    missing = config.get("missing", ())
    if headline_rows(measures).empty:
        step = "Ask again with fewer columns or wider groups (`--columns`, `--cut`)."
        advice = pages.what_to_do(undecided="nobody can be judged", step=step)
        rest = [_full(not_reached(missing))] if missing else []
        return [NOTHING_SAID, advice, *rest], NO_QUOTES
    met = None if choice is None else "".join(choice.loc[choice["cheapest"], "setting"].head(1))
    screen = first_screen(measures, comparisons, costs)
    name = str(next(iter(screen.rows.values()))["adversary"])
    attributes = {one["name"]: one["known"] for one in config["adversaries"]}
    reader, secret = adversary_words(name, attributes[name]), listed(config["stated"])
    aside = (
        f"Remaining answers: to {reader}, {secret} is one of so many equally likely. "
        "Doubled: by their record."
    )
    lines = {topic: _full(line) for topic, line in screen_lines(screen).items()}
    if config.get("few"):
        lines["How sure"] += f" {_FEW}"
    parts: list[Part] = [
        ("sentence", _full(lead(screen, missing)), "lead"),
        audit_advice(screen, f"what {reader} learns of {secret}, and these people", missing, met),
        ("words", lines, "lines"),
        ("sentence", aside, "aside"),
        ("cards", screen_table(screen, missing)),
    ]
    return parts, audit_quotes(screen, reader, secret)


def _question(config: Row, undecided: pd.DataFrame) -> Part:
    """Return the section on the adversaries' questions, with the number of missing answers."""
    keys = [POPULATION, "protection", "attack", "adversary", "release", "target"]
    facts = {
        "asked": listed(config["stated"]),
        "adversaries": {one["name"]: _knowledge(one).rstrip(".") for one in config["adversaries"]},
        "lost": len(undecided.drop_duplicates([key for key in keys if key in undecided])),
    }
    return ("prose", "audit_question.html", facts)


def _origin(population: str | Mapping[str, str]) -> str:
    if isinstance(population, str):
        return f"records whose digest is {population[:16]}…"
    digests = [f"{name} {digest[:16]}…" for name, digest in population.items()]
    return f"populations whose digests are {', '.join(digests)}"


def _answer_figures(
    measures: pd.DataFrame,
    comparisons: pd.DataFrame,
    costs: pd.DataFrame,
    folder: Path,
    end: str,
    title: str,
) -> list[Part]:
    """Return the main figure with a panel for each adversary, or [] without answers."""
    rows, panels = headline_rows(measures), []
    if rows.empty:
        return []
    # All panels have the ends of their common figure.
    ends = plotting.plot_audit(rows.sort_index(), costs, comparisons)[0].get_ylim()
    for number, (name, mine) in enumerate(rows.groupby("adversary", sort=False)):
        caption = f"{title}remaining answers of {adversary_words(str(name), [])} against cost"
        file = folder / f"answers-against-cost{end}{f'-adversary-{number + 1}' if number else ''}"
        draw = functools.partial(_answer_panel, mine.sort_index(), costs, comparisons, ends)
        panels.append(pages.figure(draw, file, caption))
    return [("panels", _AGAINST_COST, panels)]


def _answer_panel(
    rows: pd.DataFrame, costs: pd.DataFrame, comparisons: pd.DataFrame, ends: tuple[float, float]
) -> Any:
    """Draw the panel of one adversary in the main figure."""
    panels = plotting.plot_audit(rows, costs, comparisons)
    panels[0].set_ylim(*ends)
    return panels


def _belief_figures(
    measures: pd.DataFrame, folder: Path, end: str, title: str
) -> list[pages.Figure]:
    """Return figures of prior beliefs, of those without the record, and after."""
    figures = []
    beliefs = {
        EVERYBODY: "Probability of the truth: before any release, after one without the person's "
        "record, and after the release",
        UNLIKE: "The same of people who are not what most people of their place are",
    }
    for number, (group, caption) in enumerate(beliefs.items()):
        mine = measures[measures["group"] == group]
        if len(mine):
            file = folder / f"beliefs{'-unlike' if number else ''}{end}"
            draw = functools.partial(plotting.plot_beliefs, mine)
            figures.append(pages.figure(draw, file, f"{title}{caption}"))
    return figures
