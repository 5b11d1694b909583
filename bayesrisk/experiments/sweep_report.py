"""The report of a sweep: its main result, figures against rho, and tables of named budgets."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import numpy as np
import pandas as pd

from bayesrisk import plotting, risk
from bayesrisk._base import disk, validation as check
from bayesrisk._base.validation import SENSITIVITIES
from bayesrisk.experiments import pages
from bayesrisk.experiments.pages import Figure, PageTable, Part, Quotes, marked
from bayesrisk.experiments.sweep import NOISES, Budget, SweepStudy, read_results
from bayesrisk.risk.count.blocks import Scenario

#: Names of the two noises of a rho of the 2020 Census, by the sensitivity that it refers to.
_CONVENTIONS = {"add-remove": "add or remove", "change-one": "change one"}
_ENOUGH = 30.0  # releases that a standard error must rest on to be judged
_MEANINGS = {
    "add-remove": "neighbours add or remove one record",
    "change-one": "neighbours change one record",
}
_MAX_TABLE_ROWS = 40
_LINES = 4  # of a figure
_RELEASED = (("posterior", "risk_ratio"), ("target", "prior", "noisy_count"))
_SIMULATED = "simulated_marginal_posterior"
#: Quantities in the table of a budget, and what the reader calls them.
_COLUMNS = {
    "marginal_posterior": "marginal posterior",
    "marginal_risk": "marginal risk",
    "decision_threshold": "decision threshold",
    "correct_decision_probability": "found, if in the cell",
    "decision_baseline": "right without a release",
    "decision_accuracy": "right with it",
    _SIMULATED: "simulated marginal posterior",
    "whole_release_posterior": "posterior after a whole release",
    "whole_release_risk": "risk of a whole release",
}
#: Figures against rho: quantities, function of :mod:`bayesrisk.plotting`, name, caption.
_AGAINST_RHO = (
    (
        ["marginal_posterior", "marginal_risk"], "plot_risk", "marginal-risk",
        "Posterior of a target who is in the cell, and its ratio to the prior, averaged over all "
        "releases that the noise could have produced, against rho.",
    ),
    (
        ["whole_release_posterior", "whole_release_risk"], "plot_risk", "whole-release",
        "Posterior of somebody who sees every count of a whole release and knows all other "
        "records, and its ratio to the prior, on average, against rho of the whole release.",
    ),
    (
        ["correct_decision_probability"], "plot_correct_decision", "correct-decision",
        "Probability that a target who is in the cell is found, against rho. The jags are real: "
        "between two rises the decision threshold stands still while the noise shrinks.",
    ),
    (
        ["decision_accuracy", "decision_baseline"], "plot_decision_accuracy", "decision-accuracy",
        "How often the adversary's best guess is right, whether or not the target is in the cell "
        "(dotted: always guessing the more probable, without a release), and how much the release "
        "adds to that.",
    ),
)  # fmt: skip
#: Of two levels: the quantity, its twin for the block alone, name, vertical axis, and caption.
_IN_GROUP = (
    (
        "hierarchical_correct_decision_probability", "correct_decision_probability", "found",
        "probability of being found,\nif in the cell",
        "Probability that a target who is in the cell is found",
    ),
    (
        "hierarchical_decision_accuracy", "decision_accuracy", "accuracy", "best guess is right",
        "How often the best guess is right, whether or not the target is in the cell",
    ),
)  # fmt: skip


def write_report(folder: str | Path, *, progress: Callable[[int, int], None] | None = None) -> Path:
    """Write figures and ``report.html`` of a finished sweep; return the path of the report.

    Parameters
    ----------
    folder : path-like
        The folder of the sweep; figures go to its ``figures``.
    progress : callable, optional
        Called with the numbers of finished and all steps. Steps are reading, a section for each
        noise law and sensitivity, and writing.

    Notes
    -----
    The page holds no date and no path: the same sweep with the same versions gives the same bytes.
    """
    check.function(progress, "progress")
    study, results = read_results(folder)
    path = check.path(folder, "folder")
    disk.make_folder(path / "figures")
    panels = _panels(study, results, path / "figures")
    parts: list[Part] = [*_question(study)]
    for number, panel in enumerate(panels, start=1):
        if progress is not None:
            progress(number, len(panels) + 2)
        figures, tables = [*_figures(panel)], [*_tables(panel)]
        tabled = len({rho for one in panel.budgets for rho in one.frame["rho"]})
        parts += [("heading", panel.title), *figures]
        if tabled < (every := panel.frame["rho"].nunique()):
            text = f"The numbers of {tabled} of {every} budgets are shown; all are in results.csv."
            parts += [text]
        parts += [("folded", "The numbers", tables)]
    parts += [*_census_conventions(study), ("prose", "sweep_reading.html", study)]
    if checked := simulation_check(study, results):
        parts += [("heading", "Check by simulation"), checked]
    averages = _averages(panels)
    page = pages.render(
        study.title,
        _answer(averages),
        parts,
        quotes=_quotes(averages, Scenario.named(study.scenario).knowledge),
        source=f"Configuration {study.digest}, seed {study.seed}.",
        settings_title="Resolved configuration",
        settings=_settings(study),
    )
    disk.write_bytes(path / "report.html", page)
    if progress is not None:
        progress(len(panels) + 2, len(panels) + 2)
    return path / "report.html"


class SweepPanel(NamedTuple):
    """Results under one noise law and sensitivity, for all budgets or the one in ``label``."""

    study: SweepStudy
    noise: str
    sensitivity: Budget
    frame: pd.DataFrame
    images: Path
    label: str = ""
    end: str = ""  # of the names of its files

    @property
    def title(self) -> str:
        """Noise law and sensitivity in words."""
        name, value = self.sensitivity.name, self.sensitivity.value
        law = "Discrete Gaussian" if self.noise == NOISES[0] else "Discrete Laplace"
        meaning = _MEANINGS.get(name, f"sensitivity {name}")
        return f"{law} noise; {meaning} (sensitivity {value:.4g})"

    def named(self, budgets: tuple[Budget, ...]) -> dict[str, float]:
        """Return the named budgets; census budgets name the panel's noise convention."""
        spoken = ""
        if self.noise == NOISES[0]:
            conventions = (n for n, v in SENSITIVITIES.items() if v == self.sensitivity.value)
            spoken = _CONVENTIONS.get(next(conventions, ""), "")
        return {
            f"{budget.name} ({spoken})" if budget.census and spoken else budget.name: budget.value
            for budget in budgets
            if budget.name
        }

    @property
    def budgets(self) -> list[Self]:
        """One panel for each named budget, or without names for the least and the largest."""
        rhos = self.study.rho
        ends = (rhos[0].value, rhos[-1].value)
        chosen = self.named(rhos) or {f"rho = {rho:.4g}": rho for rho in ends}
        return [
            self._replace(
                frame=self.frame[self.frame["rho"] == rho], label=label, end=f"-budget-{i}"
            )
            for i, (label, rho) in enumerate(chosen.items(), start=1)
        ]

    def wide(self, quantities: Sequence[str], axes: Sequence[str]) -> pd.DataFrame:
        """Return one row per point with a column per quantity, or no rows if one is missing."""
        chosen = self.frame[self.frame["quantity"].isin(quantities)]
        if chosen["quantity"].nunique() < len(quantities):
            return pd.DataFrame()
        return chosen.pivot(index=[*axes], columns="quantity", values="value").reset_index()

    def figure(self, draw: Callable[[], Any], kind: str, caption: str) -> Figure:
        """Return a figure of this panel, saved in the image folder."""
        stem = f"{kind}-{self.noise}-{self.sensitivity.value:.6g}{self.end}"
        number = self.frame["prior"].nunique()
        if number > _LINES and not kind.startswith("group"):
            caption += f" Of {number} priors {_LINES} are drawn; the tables have all."
        return pages.figure(draw, self.images / stem, caption)

    def few(self, wide: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of at most four priors, spread over all."""
        return wide[wide["prior"].isin(_few(wide["prior"]))]


def _few(values: pd.Series) -> list[Any]:
    """Return at most four values, evenly spread, with the least and the greatest."""
    every = sorted(values.unique().tolist())
    chosen = np.linspace(0, len(every) - 1, min(_LINES, len(every))).round()
    return [every[int(i)] for i in chosen]


def _panels(study: SweepStudy, results: pd.DataFrame, images: Path) -> list[SweepPanel]:
    """Return one panel for each noise law and sensitivity in the results."""
    # Budgets of two names are two settings of the same points.
    numbers = ("rho_name", "value", "standard_error", "effective_releases")
    results = results.drop_duplicates([name for name in results if name not in numbers])
    sensitivities = {one.value: one for one in study.sensitivity}
    return [
        SweepPanel(study, str(noise), sensitivities[cast(float, value)], frame, images)
        for (noise, value), frame in results.groupby(["noise", "sensitivity"], sort=False)
    ]


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g}%"


# Sentences.


class Average(NamedTuple):
    """The largest average gain of an adversary in a panel.

    ``before`` and ``after`` are probabilities of the truth. Without a ratio to the prior, they are
    the rates of right best guesses without and with the release.
    """

    title: str
    label: str
    prior: str
    before: float
    after: float
    ratio: float | None
    more: str = ""  # further sentences
    rho: str = ""  # of a budget that is named
    least: Average | None = None  # at the least budget, where none is named
    sensitivity: float = 1.0

    @property
    def gain(self) -> float:
        """Return the ranking key of averages; those with a ratio rank above all others."""
        return self.after - self.before if self.ratio is None else 1e3 + self.ratio

    @property
    def budget(self) -> str:
        """The budget in words."""
        if self.label.startswith("rho = "):
            return f"{self.label} (smaller is more noise)"
        return f"“{self.label}”"

    @property
    def lead(self) -> str:
        """A sentence on the adversary's belief before and after the release."""
        if self.least is not None:
            most = f"at the largest of this sweep, {self.label}"
            if self.ratio is None:
                return f"{self.least.lead[:-1]}; {most}, in {chance(self.after)}."
            return (
                f"An adversary's belief in the truth goes, on average, from {chance(self.before)} "
                f"to {chance(self.least.after)} at the budget {self.least.budget}, and to "
                f"{chance(self.after)} {most}."
            )
        if self.ratio is None:
            right = f"is right in {chance(self.after)} of all cases with the released count"
            if chance(self.after) == chance(self.before):
                right += ", no more than without it"
            else:
                right += f", and in {chance(self.before)} without it"
            return f"At the budget {self.budget} an adversary's best guess {right}."
        return (
            f"At the budget {self.budget} an adversary's belief in the truth "
            f"{growth(self.ratio)} on average: from {chance(self.before)} to "
            f"{chance(self.after)}."
        )

    @property
    def advice(self) -> Part:
        """The advice, which depends on how much a belief may grow."""
        prior, rho = self.prior.partition(" ")[0], "the rho of Gaussian noise"
        limit = f"--max-risk 1.5 --prior {prior} --sensitivity {self.sensitivity:.6g}"
        return pages.what_to_do(
            undecided=self.ratio is None or self.ratio >= 1.005,
            basis="averages, and on the priors and budgets of this sweep",
            step=f"`bayesrisk convert {limit}` gives {rho} at which a belief grows by half.",
        )

    @property
    def sentence(self) -> str:
        """A sentence with more digits and the noise law."""
        belief = f"a prior of {self.prior}"
        if self.ratio is None:
            text = f"with {belief} the best guess is right in {_percent(self.after)} of all cases "
            text += f"with the released count, and in {_percent(self.before)} without a release."
        else:
            text = f"{belief} ends, on average, at {_percent(self.after)}: {self.ratio:.3g} times "
            text += "as much."
        return f"{self.title}, budget {self.budget}{self.rho}: {text}{self.more}"


def chance(probability: float) -> str:
    """Return a probability in everyday words: 52 %, or 1 in 530."""
    if probability >= 0.995:
        return "100 %" if probability == 1.0 else "more than 99 %"
    if probability >= 0.1:
        return f"{100.0 * probability:.0f} %"
    return f"1 in {1.0 / probability:,.0f}" if probability > 0.0 else "0 %"


def growth(ratio: float) -> str:
    """Return in words how a belief changes when multiplied by ``ratio``."""
    if abs(ratio - 1.0) < 0.005:
        return "stays as it was, to within 1 %,"
    if ratio < 1.0:
        return f"falls by {100.0 * (1.0 - ratio):.0f} %"
    return (
        f"grows by {100.0 * (ratio - 1.0):.0f} %"
        if ratio < 3.0
        else (f"becomes {ratio:.3g} times as large")
    )


_NO_AVERAGES = (
    "This sweep has no averages over releases; what it has is in the figures and tables below."
)
_SINGLE = (
    "Averages are over all releases that the noise could have produced{}: single releases can be "
    "much worse or better."
)


def first_sentence(study: SweepStudy, results: pd.DataFrame) -> str:
    """Return the first sentence of the report of a sweep."""
    part = _answer(_averages(_panels(study, results, Path())))[0]
    return part if isinstance(part, str) else str(part[1])


def _averages(panels: Sequence[SweepPanel]) -> list[Average]:
    return [average for panel in panels if (average := _average(panel))]


def _answer(averages: Sequence[Average]) -> list[Part]:
    if not averages:
        return [_NO_AVERAGES, pages.what_to_do(undecided="it has no averages")]
    best = max(averages, key=lambda one: one.gain)
    last = _SINGLE.format("" if best.ratio is None else ", if the truth is so")
    return [
        ("sentence", best.lead, "lead"),
        best.advice,
        ("points", [*(one.sentence for one in averages), last]),
    ]


def _quotes(averages: Sequence[Average], knowledge: str) -> Quotes:
    """Return sentences about a sweep that may be quoted, and that may not."""
    adversary = f"The adversary of this report knows {knowledge}."
    may_not = {
        "This budget keeps everybody in a whole release safe.": "It is that of one count; a "
        "release has many counts about each person.",
        "The adversary learns nothing else.": "Only one question about one person was asked.",
    }
    if not averages:
        none = {"The noise is enough.": "No average was computed that could say so."}
        return Quotes(
            [_NO_AVERAGES, adversary, "A belief is judged against the prior."], may_not | none
        )
    best = max(averages, key=lambda one: one.gain)
    single = _SINGLE.format("" if best.ratio is None else ", if the truth is so")
    worst = {"No release tells more than this.": "It is an average: single releases tell more."}
    return Quotes([best.lead, adversary, single], worst | may_not)


def _average(panel: SweepPanel) -> Average | None:
    """Return the largest average gain in a panel, or None without averages."""
    rows = pd.concat([one.frame.assign(label=one.label) for one in panel.budgets])
    marked_rows, axes = panel._replace(frame=rows), ["label", "prior"]
    averages = marked_rows.wide(["marginal_posterior", "marginal_risk"], axes).dropna()
    decisions = marked_rows.wide(["decision_accuracy", "decision_baseline"], axes).dropna()
    ratio = len(averages) > 0
    if not ratio and decisions.empty:
        return None
    wide = averages if ratio else decisions
    gain = wide["marginal_risk"] if ratio else wide["decision_accuracy"] - wide["decision_baseline"]
    # Where no budget is named the largest gains most, and the least is told beside it.
    labels, unnamed = [one.label for one in panel.budgets], not panel.named(panel.study.rho)
    mine = (wide["label"] == labels[-1]).to_numpy() | (not unnamed)
    best = wide.iloc[int(np.where(mine, gain, -np.inf).argmax())]
    label, prior = best["label"], best["prior"]
    text = next(one.name for one in panel.study.prior if one.value == prior)
    text = f"{text} ({_percent(prior)})" if "/" in text else text
    mine = (rows["label"] == label) & (rows["prior"] == prior)
    mine &= (rows["conditionals"] == "coherent") & (rows["quantity"] == _IN_GROUP[1][0])
    more = ""
    if mine.any():
        group = rows.loc[mine, "value"]
        more += (
            f" With the counts of the group too, it is right in {_percent(group.min())} to "
            f"{_percent(group.max())}, depending on the true counts and the budget of the group."
        )
    budgets, priors = rows["label"].nunique(), rows["prior"].nunique()
    rivals = [f"{budgets} marked budgets"] * (budgets > 1 and not unnamed) + [
        f"{priors} priors"
    ] * (priors > 1)
    if rivals:
        more += f" No other of the {' and '.join(rivals)} in this sweep gains more."

    def average(row: pd.Series, **more: Any) -> Average:
        if ratio:
            numbers = prior, row["marginal_posterior"], row["marginal_risk"]
        else:
            numbers = row["decision_baseline"], row["decision_accuracy"], None
        moved = panel.sensitivity.value
        return Average(panel.title, row["label"], text, *numbers, sensitivity=moved, **more)

    least = wide[(wide["prior"] == prior) & (wide["label"] == labels[0])]
    smallest = average(least.iloc[0]) if unnamed and len(least) and len(labels) > 1 else None
    rho = f", rho {rows.loc[rows['label'] == label, 'rho'].iloc[0]:.3g} (smaller is more noise)"
    rho = "" if label.startswith("rho = ") else rho
    return average(best, more=more, rho=rho, least=smallest)


def _question(study: SweepStudy) -> Iterator[Part]:
    scenario = Scenario.named(study.scenario)
    yield marked(
        "The question: how sure does a release make an adversary that <em>{}</em>, rather than "
        "that {}? The adversary knows {}.",
        scenario.statement, scenario.alternative, scenario.knowledge,
    )  # fmt: skip
    if study.hierarchy.points:
        yield ("prose", "sweep_levels.html")
    targets = pd.DataFrame(
        [(t.label, t.count, t.known_count) for t in study.targets[:20]],
        columns=["target in the cell", "true count", "known count of others"],
    )
    yield ("folded", "The targets", [pages.table(targets, "Targets")])
    if len(study.targets) > len(targets):
        yield f"... and {len(study.targets) - len(targets)} more targets."


def _census_conventions(study: SweepStudy) -> list[Part]:
    """Return the risk under both noise variances that a 2020 Census rho may denote."""
    budgets = [budget for budget in study.rho if budget.census and budget.name]
    if not budgets or NOISES[0] not in study.noise:
        return []
    table = pd.DataFrame({"prior": [prior.name for prior in study.prior]})
    for budget in budgets:
        for name, sensitivity in SENSITIVITIES.items():
            sigma2 = sensitivity**2 / (2.0 * budget.value)
            table[f"{budget.name}, {_CONVENTIONS[name]}: sigma2 {sigma2:.4g}"] = [
                float(risk.marginal_risk(sigma2=sigma2, prior=prior.value)) for prior in study.prior
            ]
    caption = "Marginal risk (posterior / prior on average, if in the cell)"
    return [
        ("prose", "sweep_noises.html"),
        ("folded", "The risk under each", [pages.table(table, caption)]),
    ]


def simulation_check(study: SweepStudy, results: pd.DataFrame) -> str:
    """Return a comparison of simulated with exact averages, where the error is known.

    Empty without a simulation.
    """
    keys = ["noise", "sensitivity", "rho", "prior"]
    simulated = results[results["quantity"] == _SIMULATED].drop_duplicates(keys)
    exact = results[results["quantity"] == "marginal_posterior"].drop_duplicates(keys)
    joined = simulated.merge(exact, on=keys, suffixes=("", "_exact"))
    if joined.empty:
        return ""
    judged = joined[joined["effective_releases"] >= _ENOUGH]
    constant = int((joined["effective_releases"] == 0.0).sum())
    rare = len(joined) - len(judged) - constant
    text = "No setting can be judged."
    if len(judged):
        scores = (judged["value"] - judged["value_exact"]) / judged["standard_error"]
        text = (
            f"Simulated minus exact averages in {len(judged):,} settings, in standard errors: "
            f"median {scores.median():.2f} (expected about 0); {(scores.abs() < 2).mean():.1%} "
            "within two (expected about 95.4%). The settings share "
            f"{judged.groupby(keys[:3]).ngroups:,} independent sets of simulated releases, one for "
            "all priors at a rho."
        )
    reasons = []
    if rare:
        reasons.append(
            f"{rare:,} because releases so rare decide their standard error that fewer than "
            f"{_ENOUGH:.0f} of the {study.releases:,} carry it"
        )
    if constant:
        reasons.append(
            f"{constant:,} because the posterior is the same for all releases, to rounding"
        )
    if reasons:
        text += f" {rare + constant:,} of {len(joined):,} settings are left out: "
        text += f"{' and '.join(reasons)}."
    return text


def _settings(study: SweepStudy) -> str:
    """Return the configuration as JSON, with long lists of budgets shortened."""
    settings = study.to_dict()
    if len(settings["rho"]) > 40:
        settings["rho"] = [*settings["rho"][:20], "...", *settings["rho"][-20:]]
    return json.dumps(settings, indent=2)


# Figures.


def _figures(panel: SweepPanel) -> Iterator[Figure]:
    """Yield the figures against rho, and those of each named budget."""
    budgets = panel.named(panel.study.rho)
    for quantities, plot, kind, caption in _AGAINST_RHO:
        wide = panel.wide(quantities, ["rho", "prior"])
        wide = wide.rename(columns=lambda name: name.replace("whole_release_", "marginal_"))
        if len(wide) and len(panel.study.rho) > 1:
            rows = panel.few(wide)
            if kind == "correct-decision":
                jumps = panel.wide(["decision_threshold"], ["rho", "prior"])
                rows = rows.merge(jumps, how="left") if len(jumps) else rows
            draw = functools.partial(_against_rho, plot, rows, budgets, whole=kind.startswith("w"))
            marks = " Vertical dashed lines mark the named budgets." if budgets else ""
            yield panel.figure(draw, kind, caption + marks * (kind == "marginal-risk"))
    for one in panel.budgets:
        yield from _budget_figures(one)
        for quantity in _IN_GROUP:
            yield from _group_figures(one, *quantity)


def _against_rho(
    plot: str, rows: pd.DataFrame, budgets: Mapping[str, float], *, whole: bool
) -> object:
    """Return a figure against rho, for one count or a whole release."""
    group = getattr(plotting, plot)(rows, budgets=budgets)
    if whole:
        for axes in group:
            axes.set_xlabel(r"$\rho$ of the whole release")
    return group


def _budget_figures(panel: SweepPanel) -> Iterator[Figure]:
    """Yield figures of the risk at one budget, by released count and by level."""
    wide = panel.wide(*_RELEASED)
    if len(wide):
        target = wide["target"].iloc[0]
        wide = panel.few(wide[wide["target"] == target]).astype({"noisy_count": "int64"})
        draw = functools.partial(plotting.plot_risk, wide, against="noisy_count")
        caption = "Posterior and risk ratio against the released count at "
        yield panel.figure(draw, "released-count", f"{caption}{panel.label}; target: {target}.")
    wide = panel.wide(
        ["multilevel_marginal_posterior", "multilevel_marginal_risk"], ["levels", "prior"]
    )
    if len(wide):
        wide = wide.rename(columns=lambda c: c.removeprefix("multilevel_"))
        wide = panel.few(wide).astype({"levels": "int64"})
        draw = functools.partial(plotting.plot_risk, wide, against="levels")
        caption = (
            "Risk when the target is known to be unique at the first 1, 2, ... levels, the first "
            f"having the rho of {panel.label} and the others in proportion."
        )
        yield panel.figure(draw, "levels", caption)


def _group_figures(
    panel: SweepPanel, name: str, twin: str, kind: str, axis: str, caption: str
) -> Iterator[Figure]:
    """Yield a figure of two-level decisions, at the prior nearest 1/2 and the fewest siblings."""
    quantity = panel.frame["quantity"]
    alone = panel.frame[quantity == twin].set_index("prior")["value"]
    rows = panel.frame[quantity == name]
    if rows.empty or alone.empty:
        return
    prior = min(alone.index, key=lambda p: abs(p - 0.5))
    siblings = int(rows["n_siblings"].min())
    rows = rows[(rows["prior"] == prior) & (rows["n_siblings"] == siblings)]
    rows = rows.astype({"group_count": "int64"}).assign(without_hierarchy=alone[prior])
    if kind == "accuracy":
        rows = rows.assign(baseline=max(prior, 1.0 - prior))
    caption += f", when the block has the rho of {panel.label}, with {siblings} other blocks, "
    caption += f"prior {rows['prior_text'].iloc[0]}, against "
    budgets = panel.study.hierarchy.rho_group
    named = panel.named(budgets)
    if rows["rho_group"].nunique() > 1:
        few = rows[rows["group_count"].isin(_few(rows["group_count"]))]
        draw = functools.partial(
            plotting.plot_group, few, against="rho_group", budgets=named, quantity=axis
        )
        yield panel.figure(draw, f"group-budget-{kind}", f"{caption}the rho of the group's count.")
    if rows["group_count"].nunique() > 1:
        rho = next(iter(named.values()), budgets[len(budgets) // 2].value)
        one = rows[rows["rho_group"] == rho].drop(columns="standard_error")
        draw = functools.partial(plotting.plot_group, one, quantity=axis)
        caption += f"the true count of the group; rho of the group's count {rho:.4g}."
        yield panel.figure(draw, f"group-count-{kind}", caption)


# Tables.


def _tables(panel: SweepPanel) -> Iterator[PageTable]:
    """Yield tables of each named budget: one by prior, and two by released count."""
    for one in panel.budgets:
        rows = one.frame[one.frame["quantity"].isin([*_COLUMNS])]
        if len(rows):
            yield _budget_table(one, rows)
    for one in panel.budgets:
        yield from _released_tables(one)


def _budget_table(panel: SweepPanel, rows: pd.DataFrame) -> PageTable:
    wide = rows.pivot(index="prior", columns="quantity", values="value")
    wide = wide.reindex(columns=[name for name in _COLUMNS if name in wide])
    wide = wide.sort_index(ascending=False).rename(columns=_COLUMNS)
    text = {prior.value: prior.name for prior in panel.study.prior}
    wide.insert(0, "prior", [text[prior] for prior in wide.index])
    if _COLUMNS[_SIMULATED] in wide:
        errors = rows[rows["quantity"] == _SIMULATED].set_index("prior")["standard_error"]
        wide["± standard error"] = errors.loc[wide.index]
    first, parameter = rows.iloc[0], "sigma2" if panel.noise == NOISES[0] else "scale"
    caption = f"{panel.label}: rho = {first['rho']:.7g}, "
    caption += f"{parameter} = {first['noise_parameter']:.5g}"
    for epsilon in panel.frame.loc[panel.frame["quantity"] == "epsilon", "value"]:
        caption += f", epsilon = {epsilon:.5g} at delta = {panel.study.delta:g}"
    for epsilon in panel.frame.loc[panel.frame["quantity"] == "whole_release_epsilon", "value"]:
        caption += f"; a whole release of this rho has epsilon = {epsilon:.5g} by its own law"
    return pages.table(wide, caption)


def _released_tables(panel: SweepPanel) -> Iterator[PageTable]:
    """Yield tables of posteriors and risk ratios by released count (Kazan and Reiter, Table 4)."""
    wide = panel.wide(*_RELEASED)
    if wide.empty:
        return
    wide = wide[wide["target"] == wide["target"].iloc[0]]
    priors = {prior.value: f"prior {prior.name}" for prior in panel.study.prior}
    mine = panel.frame[panel.frame["quantity"] == "release_probability"]
    mass = mine[mine["target"] == wide["target"].iloc[0]].set_index("noisy_count")["value"]
    for quantity, name in (("posterior", "posterior"), ("risk_ratio", "posterior / prior")):
        rows = wide.pivot(index="noisy_count", columns="prior", values=quantity)
        rows = rows[sorted(priors, reverse=True)].head(_MAX_TABLE_ROWS).rename(columns=priors)
        if len(mass):
            rows.insert(0, "probability if the target is in the cell", mass.loc[rows.index])
        rows.insert(0, "released count", [str(count) for count in rows.index])
        yield pages.table(rows, f"{panel.label}: {name} after each release")
