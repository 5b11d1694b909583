"""What the report of a sweep tells its template: answer, question, conventions, checks, source."""

import json
from typing import Any, NamedTuple

import pandas as pd

from bayesrisk.accounting.budget import SENSITIVITIES
from bayesrisk.experiments.runs import html
from bayesrisk.experiments.sweep.config import SweepConfig
from bayesrisk.risk import marginal_risk
from bayesrisk.risk.count.scenarios import Scenario

#: How often the same rho of the census is read: by the sensitivity that it refers to.
_CONVENTIONS = {"add-remove": "as in the paper", "change-one": "as produced"}
_ENOUGH = 30.0  # releases that a standard error must rest on to be judged


def convention(noise: str, sensitivity: float) -> str:
    """Return whose noise a rho of the 2020 Census is under a sensitivity; empty if nobody's."""
    if noise != "discrete-gaussian":
        return ""
    return next((_CONVENTIONS[n] for n, v in SENSITIVITIES.items() if v == sensitivity), "")


class Answer(NamedTuple):
    """What a section comes to: the marked budget and the prior at which the release says most.

    Either the posterior on average and its ratio to the prior, or how often the best guess is right
    with the release and without; ``group`` is the range of that with the counts of a group too.
    """

    title: str
    label: str
    prior: str
    budgets: int
    priors: int
    posterior: str = ""
    ratio: str = ""
    right: str = ""
    baseline: str = ""
    group: tuple[str, ...] = ()


def answer(config: SweepConfig, title: str, marked: pd.DataFrame) -> Answer | None:
    """Return what the results at the marked budgets come to; None where they have no average."""
    averages = _beside(marked, "marginal_posterior", "marginal_risk")
    decisions = _beside(marked, "decision_accuracy", "decision_baseline")
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
            "right": _percent(row["decision_accuracy"]),
            "baseline": _percent(row["decision_baseline"]),
        }
    else:
        return None
    here = (marked["label"] == row["label"]) & (marked["prior"] == row["prior"])
    coherent = here & (marked["conditionals"] == "coherent")
    group = marked.loc[coherent & (marked["quantity"] == "hierarchical_decision_accuracy"), "value"]
    text = next(prior.name for prior in config.prior if prior.value == row["prior"])
    return Answer(
        title,
        str(row["label"]),
        f"{text} ({_percent(row['prior'])})" if "/" in text else text,
        marked["label"].nunique(),
        marked["prior"].nunique(),
        **said,
        group=(_percent(group.min()), _percent(group.max())) if len(group) else (),
    )


def _beside(marked: pd.DataFrame, *quantities: str) -> pd.DataFrame:
    """Return two quantities beside each other, a row for each marked budget and prior."""
    rows = marked[marked["quantity"].isin(quantities)]
    wide = rows.pivot(index=["label", "prior"], columns="quantity", values="value").reset_index()
    return wide.dropna() if set(quantities) <= set(wide) else wide[:0]


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g}%"


def question(config: SweepConfig) -> dict[str, Any]:
    """Return the question, the adversary and the targets."""
    about = Scenario.named(config.scenario)
    targets = pd.DataFrame(
        [(t.label, t.count, t.known_count) for t in config.targets[:20]],
        columns=["target in the cell", "true count", "known count of others"],
    )
    return {
        "about": about,
        "targets": html.table(targets, "Targets"),
        "more_targets": len(config.targets) - len(targets),
        "two_levels": config.hierarchy.points > 0,
    }


def census_conventions(config: SweepConfig) -> html.Table | None:
    """Return the risk under each of the two noises that a rho of the 2020 Census stands for."""
    budgets = [budget for budget in config.rho if budget.census and budget.name]
    if not budgets or "discrete-gaussian" not in config.noise:
        return None
    table = pd.DataFrame({"prior": [prior.name for prior in config.prior]})
    for budget in budgets:
        for name, sensitivity in SENSITIVITIES.items():
            sigma2 = sensitivity**2 / (2.0 * budget.value)
            table[f"{budget.name}, {_CONVENTIONS[name]} (sigma2 {sigma2:.4g})"] = [
                float(marginal_risk(sigma2=sigma2, prior=prior.value)) for prior in config.prior
            ]
    return html.table(table, "Marginal risk (posterior / prior on average, if in the cell)")


def reading(config: SweepConfig) -> dict[str, Any]:
    """Return what decides how the numbers are to be read."""
    return {
        "releases": config.releases,
        "two_levels": config.hierarchy.points > 0,
        "as_published": "as-published" in config.hierarchy.conditionals,
    }


def simulation_check(config: SweepConfig, results: pd.DataFrame) -> dict[str, Any] | None:
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
        "releases": config.releases,
        "median": float(scores.median()),
        "within": float((scores.abs() < 2).mean()),
        "groups": judged.groupby(keys[:3]).ngroups,
    }


def provenance(config: SweepConfig) -> dict[str, str]:
    """Return the configuration, and what it is called."""
    settings = config.to_dict()
    if len(settings["rho"]) > 40:
        settings["rho"] = [*settings["rho"][:20], "...", *settings["rho"][-20:]]
    return {
        "source": f"Configuration {config.digest}, seed {config.seed}.",
        "settings_title": "Resolved configuration",
        "settings": json.dumps(settings, indent=2),
    }
