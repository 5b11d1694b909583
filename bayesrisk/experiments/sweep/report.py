"""The report of a finished sweep: figures as PNG and SVG, and one self-contained HTML page."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bayesrisk import _files, _validation as check, plotting
from bayesrisk.accounting.budget import SENSITIVITIES
from bayesrisk.experiments.runs import page as html
from bayesrisk.experiments.sweep.study import Budget, SweepStudy, read_results
from bayesrisk.risk import marginal_risk
from bayesrisk.risk.count.blocks import Scenario

#: Names of the two noises of a rho of the 2020 Census, by the sensitivity that it refers to.
_CONVENTIONS = {"add-remove": "as in the paper", "change-one": "as produced"}
_ENOUGH = 30.0  # releases that a standard error must rest on to be judged
_GAUSSIAN = "discrete-gaussian"
_MEANINGS = {
    "add-remove": "neighbours add or remove one record",
    "change-one": "neighbours change one record",
}


class SweepPanel(NamedTuple):
    """The results under one noise law and sensitivity, of all budgets or of the one ``label``."""

    study: SweepStudy
    noise: str
    sensitivity: Budget
    frame: pd.DataFrame
    images: Path
    label: str = ""
    end: str = ""  # of the names of its files

    @property
    def title(self) -> str:
        """Noise law and sensitivity."""
        name, value = self.sensitivity.name, self.sensitivity.value
        law = "Discrete Gaussian" if self.noise == _GAUSSIAN else "Discrete Laplace"
        meaning = _MEANINGS.get(name, f"sensitivity {name}")
        return f"{law} noise; {meaning} (sensitivity {value:.4g})"

    def named(self, budgets: tuple[Budget, ...]) -> dict[str, float]:
        """Return the named budgets; those of the census with the convention of the panel."""
        spoken = ""
        if self.noise == _GAUSSIAN:
            own = (n for n, v in SENSITIVITIES.items() if v == self.sensitivity.value)
            spoken = _CONVENTIONS.get(next(own, ""), "")
        return {
            f"{budget.name}, {spoken}" if budget.census and spoken else budget.name: budget.value
            for budget in budgets
            if budget.name
        }

    @property
    def focus(self) -> list[tuple[str, float]]:
        """Budgets of tables and single-budget figures: the named ones, or else the middle one."""
        rhos = self.study.rho
        middle = rhos[len(rhos) // 2].value
        return list(self.named(rhos).items()) or [(f"rho = {middle:.4g}", middle)]

    def figure(self, drawn: Any, kind: str, **about: object) -> html.Figure:
        """Write a figure; the template makes its caption of the kind and what it is about."""
        stem = f"{kind}-{self.noise}-{self.sensitivity.value:.6g}{self.end}"
        return html.figure(drawn, self.images / stem, {"kind": kind, "label": self.label, **about})


def _answer(panel: SweepPanel) -> dict[str, Any] | None:
    """Return the marked budget and the prior at which the release says most, if there are averages.

    With either the posterior on average and its ratio to the prior, or how often the best guess is
    right with the release and without; ``group`` is its range with the counts of a group too.
    """
    focus = pd.DataFrame(panel.focus, columns=["label", "rho"])
    marked, axes = panel.frame.merge(focus, on="rho"), ["label", "prior"]
    averages = _wide(marked, ["marginal_posterior", "marginal_risk"], axes).dropna()
    decisions = _wide(marked, ["decision_accuracy", "decision_baseline"], axes).dropna()
    if len(averages):
        row = averages.iloc[int(averages["marginal_risk"].to_numpy().argmax())]
        said = {
            "posterior": _percent(row["marginal_posterior"]),
            "ratio": f"{row['marginal_risk']:.3g}",
        }
    elif len(decisions):
        gain = decisions["decision_accuracy"] - decisions["decision_baseline"]
        row = decisions.iloc[int(gain.to_numpy().argmax())]
        said = {
            "ratio": "",
            "right": _percent(row["decision_accuracy"]),
            "baseline": _percent(row["decision_baseline"]),
        }
    else:
        return None
    here = (marked["label"] == row["label"]) & (marked["prior"] == row["prior"])
    coherent = here & (marked["conditionals"] == "coherent")
    group = marked.loc[coherent & (marked["quantity"] == "hierarchical_decision_accuracy"), "value"]
    text = next(prior.name for prior in panel.study.prior if prior.value == row["prior"])
    return {
        "title": panel.title,
        "label": str(row["label"]),
        "prior": f"{text} ({_percent(row['prior'])})" if "/" in text else text,
        "budgets": marked["label"].nunique(),
        "priors": marked["prior"].nunique(),
        **said,
        "group": (_percent(group.min()), _percent(group.max())) if len(group) else (),
    }


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g}%"


def question(study: SweepStudy) -> dict[str, Any]:
    """Return the question, the adversary and the targets."""
    about = Scenario.named(study.scenario)
    targets = pd.DataFrame(
        [(t.label, t.count, t.known_count) for t in study.targets[:20]],
        columns=["target in the cell", "true count", "known count of others"],
    )
    return {
        "about": about,
        "targets": html.table(targets, "Targets"),
        "more_targets": len(study.targets) - len(targets),
        "two_levels": study.hierarchy.points > 0,
    }


def _census_conventions(study: SweepStudy) -> html.PageTable | None:
    """Return the risk under each of the two noises that a rho of the 2020 Census stands for."""
    budgets = [budget for budget in study.rho if budget.census and budget.name]
    if not budgets or _GAUSSIAN not in study.noise:
        return None
    table = pd.DataFrame({"prior": [prior.name for prior in study.prior]})
    for budget in budgets:
        for name, sensitivity in SENSITIVITIES.items():
            sigma2 = sensitivity**2 / (2.0 * budget.value)
            table[f"{budget.name}, {_CONVENTIONS[name]} (sigma2 {sigma2:.4g})"] = [
                float(marginal_risk(sigma2=sigma2, prior=prior.value)) for prior in study.prior
            ]
    return html.table(table, "Marginal risk (posterior / prior on average, if in the cell)")


def simulation_check(study: SweepStudy, results: pd.DataFrame) -> dict[str, Any] | None:
    """Compare the simulated averages with the exact ones, where their error can be judged."""
    keys = ["noise", "sensitivity", "rho", "prior"]
    simulated = results[results["quantity"] == "simulated_marginal_posterior"].drop_duplicates(keys)
    exact = results[results["quantity"] == "marginal_posterior"].drop_duplicates(keys)
    both = simulated.merge(exact, on=keys, suffixes=("", "_exact"))
    if both.empty:
        return None
    judged = both[both["effective_releases"] >= _ENOUGH]
    same = int((both["effective_releases"] == 0.0).sum())
    scores = (judged["value"] - judged["value_exact"]) / judged["standard_error"]
    return {
        "settings": len(both),
        "judged": len(judged),
        "rare": len(both) - len(judged) - same,
        "same": same,
        "enough": int(_ENOUGH),
        "releases": study.releases,
        "median": float(scores.median()),
        "within": float((scores.abs() < 2).mean()),
        "groups": judged.groupby(keys[:3]).ngroups,
    }


_MAX_TABLE_ROWS = 40
#: Quantities in the table of a budget, and what the reader calls them.
_COLUMNS = {
    "marginal_posterior": "marginal posterior",
    "marginal_risk": "marginal risk",
    "decision_threshold": "decision threshold",
    "correct_decision_probability": "found, if in the cell",
    "decision_baseline": "right without a release",
    "decision_accuracy": "right with it",
}
#: Figures against rho: quantities, function of :mod:`bayesrisk.plotting`, kind of figure.
_AGAINST_RHO = (
    (["marginal_posterior", "marginal_risk"], "plot_risk", "marginal-risk"),
    (["correct_decision_probability"], "plot_correct_decision", "correct-decision"),
    (["decision_accuracy", "decision_baseline"], "plot_decision_accuracy", "decision-accuracy"),
)
#: Of two levels: the quantity, its twin for the block alone, the kind, the vertical axis.
_TWO_LEVELS = (
    (
        "hierarchical_correct_decision_probability",
        "correct_decision_probability",
        "found",
        "probability of being found,\nif in the cell",
    ),
    (
        "hierarchical_decision_accuracy",
        "decision_accuracy",
        "accuracy",
        "best guess is right",
    ),
)


def write_report(folder: str | Path, *, progress: Callable[[int, int], None] | None = None) -> Path:
    """Return ``report.html`` of a finished sweep, written with its figures; it needs no other file.

    Parameters
    ----------
    folder : path-like
        The folder of the sweep; figures go to its ``figures``.
    progress : callable, optional
        Called with the steps done and all steps: reading, a section for each noise law and
        sensitivity, and writing.

    Notes
    -----
    The page holds no date and no path: the same sweep under the same versions gives the same
    bytes.
    """
    check.function(progress, "progress")
    study, results = read_results(folder)
    path = check.path(folder, "folder")
    images = path / "figures"
    _files.make_folder(images)
    panels = _panels(study, results, images)
    sections = []
    for done, panel in enumerate(panels, start=1):
        if progress is not None:
            progress(done, len(panels) + 2)
        sections.append(_section(panel))
    page = html.render(
        "sweep.html",
        title=study.title,
        answers=[reply for panel in panels if (reply := _answer(panel)) is not None],
        sections=sections,
        question=question(study),
        conventions=_census_conventions(study),
        reading={
            "releases": study.releases,
            "two_levels": study.hierarchy.points > 0,
            "as_published": "as-published" in study.hierarchy.conditionals,
        },
        check=simulation_check(study, results),
        source=f"Configuration {study.digest}, seed {study.seed}.",
        settings_title="Resolved configuration",
        settings=_settings(study),
    )
    _files.write_bytes(path / "report.html", page.encode())
    if progress is not None:
        progress(len(panels) + 2, len(panels) + 2)
    return path / "report.html"


def _settings(study: SweepStudy) -> str:
    """Return the configuration as JSON, long lists of budgets cut."""
    settings = study.to_dict()
    if len(settings["rho"]) > 40:
        settings["rho"] = [*settings["rho"][:20], "...", *settings["rho"][-20:]]
    return json.dumps(settings, indent=2)


def _panels(study: SweepStudy, results: pd.DataFrame, images: Path) -> list[SweepPanel]:
    """Split the results by noise law and sensitivity."""
    return [
        SweepPanel(study, noise, sensitivity, results[chosen], images)
        for noise in study.noise
        for sensitivity in study.sensitivity
        if (
            chosen := (results["noise"] == noise) & (results["sensitivity"] == sensitivity.value)
        ).any()
    ]


def _wide(frame: pd.DataFrame, quantities: list[str], axes: list[str]) -> pd.DataFrame:
    """Return one row for each point, a column for each quantity."""
    chosen = frame[frame["quantity"].isin(quantities)]
    if chosen["quantity"].nunique() < len(quantities):
        return pd.DataFrame()
    wide = chosen.pivot(index=axes, columns="quantity", values="value").reset_index()
    wide.columns.name = None
    return wide


def _section(panel: SweepPanel) -> dict[str, Any]:
    """Draw the figures against rho, and those of each marked budget."""
    figures: list[html.Figure] = []
    tables = _tables(panel)
    budgets = panel.named(panel.study.rho)
    for quantities, plot, kind in _AGAINST_RHO:
        wide = _wide(panel.frame, quantities, ["rho", "prior"])
        if len(wide) and len(panel.study.rho) > 1:
            figures.append(panel.figure(getattr(plotting, plot)(wide, budgets=budgets), kind))
    for i, (label, rho) in enumerate(panel.focus, start=1):
        frame = panel.frame[panel.frame["rho"] == rho]
        here = panel._replace(frame=frame, label=label, end=f"-budget-{i}")
        drawn, listed = _at_budget(here)
        figures += drawn
        tables += listed
    return {"title": panel.title, "figures": figures, "tables": tables}


def _at_budget(panel: SweepPanel) -> tuple[list[html.Figure], list[html.PageTable]]:
    """Draw and list one budget: risk by released count and by levels."""
    figures: list[html.Figure] = []
    tables: list[html.PageTable] = []
    axes = ["target", "prior", "noisy_count"]
    wide = _wide(panel.frame, ["posterior", "risk_ratio"], axes)
    if len(wide):
        target = wide["target"].iloc[0]
        wide = wide[wide["target"] == target].astype({"noisy_count": "int64"})
        tables = _released_tables(panel, target)
        drawn = plotting.plot_risk(wide, against="noisy_count")
        figures.append(panel.figure(drawn, "released-count", target=target))
    names = ["multilevel_marginal_posterior", "multilevel_marginal_risk"]
    wide = _wide(panel.frame, names, ["levels", "prior"])
    if len(wide):
        wide = wide.rename(columns=lambda c: c.removeprefix("multilevel_"))
        drawn = plotting.plot_risk(wide.astype({"levels": "int64"}), against="levels")
        figures.append(panel.figure(drawn, "levels"))
    for quantity in _TWO_LEVELS:
        figures += _hierarchy_figures(panel, *quantity)
    return figures, tables


def _hierarchy_figures(
    panel: SweepPanel, name: str, twin: str, kind: str, axis: str
) -> list[html.Figure]:
    """Draw an average of decisions with two levels, at the prior nearest 1/2 and the first m."""
    quantity = panel.frame["quantity"]
    alone = panel.frame[quantity == twin].set_index("prior")["value"]
    rows = panel.frame[quantity == name]
    if rows.empty or alone.empty:
        return []
    prior = min(alone.index, key=lambda p: abs(p - 0.5))
    siblings = int(rows["n_siblings"].min())
    rows = rows[(rows["prior"] == prior) & (rows["n_siblings"] == siblings)]
    rows = rows.astype({"group_count": "int64"}).assign(without_hierarchy=alone[prior])
    if kind == "accuracy":
        rows = rows.assign(baseline=max(prior, 1.0 - prior))
    about = {"siblings": siblings, "prior": rows["prior_text"].iloc[0]}
    budgets = panel.study.hierarchy.rho_group
    named = panel.named(budgets)
    figures = []
    if rows["rho_group"].nunique() > 1:
        drawn = plotting.plot_group(rows, against="rho_group", budgets=named, quantity=axis)
        figures.append(panel.figure(drawn, f"group-budget-{kind}", **about))
    if rows["group_count"].nunique() > 1:
        rho = next(iter(named.values()), budgets[len(budgets) // 2].value)
        one = rows[rows["rho_group"] == rho].drop(columns="standard_error")
        drawn = plotting.plot_group(one, quantity=axis)
        figures.append(panel.figure(drawn, f"group-count-{kind}", rho=f"{rho:.4g}", **about))
    return figures


def _released_tables(panel: SweepPanel, target: str) -> list[html.PageTable]:
    """Return posteriors, and ratios, by released count: Kazan and Reiter's Table 4 in two."""
    frame = panel.frame[panel.frame["target"] == target]
    priors = sorted(panel.study.prior, key=lambda budget: -budget.value)
    by_count = frame.set_index("noisy_count")
    mass = by_count.loc[by_count["quantity"] == "release_probability", "value"]
    tables = []
    for quantity, name in (("posterior", "posterior"), ("risk_ratio", "posterior / prior")):
        rows = frame[frame["quantity"] == quantity]
        wide = rows.pivot(index="noisy_count", columns="prior", values="value")
        wide = wide[[prior.value for prior in priors]].head(_MAX_TABLE_ROWS)
        wide.columns = pd.Index([f"prior {prior.name}" for prior in priors])
        if len(mass):
            wide.insert(0, "probability if the target is in the cell", mass.loc[wide.index])
        wide.insert(0, "released count", [str(count) for count in wide.index])
        tables.append(html.table(wide, f"{panel.label}: {name} after each release"))
    return tables


def _tables(panel: SweepPanel) -> list[html.PageTable]:
    """Return a table for each marked budget: one row for each prior."""
    study, frame = panel.study, panel.frame
    columns = [*_COLUMNS, "simulated_marginal_posterior"]
    tables = []
    text = {budget.value: budget.name for budget in study.prior}
    for label, rho in panel.focus:
        here = frame[(frame["rho"] == rho) & frame["quantity"].isin(columns)]
        if here.empty:
            continue
        wide = here.pivot(index="prior", columns="quantity", values="value")
        order = [column for column in columns if column in wide.columns]
        wide = wide[order].sort_index(ascending=False)
        wide = wide.rename(columns=_COLUMNS)
        wide.insert(0, "prior", [text[p] for p in wide.index])
        if "simulated_marginal_posterior" in order:
            errors = here.set_index(["quantity", "prior"])["standard_error"]
            wide["± standard error"] = errors["simulated_marginal_posterior"].loc[wide.index]
        parameter = "sigma2" if panel.noise == _GAUSSIAN else "scale"
        caption = f"{label}: rho = {rho:.7g}, {parameter} = {here['noise_parameter'].iloc[0]:.5g}"
        epsilon = frame[(frame["rho"] == rho) & (frame["quantity"] == "epsilon")]
        if len(epsilon):
            caption += f", epsilon = {epsilon['value'].iloc[0]:.5g} at delta = {study.delta:g}"
        tables.append(html.table(wide, caption))
    return tables
