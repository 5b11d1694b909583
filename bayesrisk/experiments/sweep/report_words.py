"""What the report of a sweep says in words: question, conventions, how to read, checks, source."""

import json

import pandas as pd

from bayesrisk.accounting.budget import SENSITIVITIES
from bayesrisk.experiments.runs import html
from bayesrisk.experiments.sweep.config import SweepConfig
from bayesrisk.risk import marginal_risk
from bayesrisk.risk.count.scenarios import Scenario

__all__ = [
    "census_conventions",
    "convention",
    "provenance",
    "reading_guide",
    "simulation_check",
    "summary",
]

#: How often the same rho of the census is read: by the sensitivity that it refers to.
_CONVENTIONS = {"add-remove": "as in the paper", "change-one": "as produced"}
_ENOUGH = 30.0  # releases that a standard error must rest on to be judged


def convention(noise: str, sensitivity: float) -> str:
    """Return whose noise a rho of the 2020 Census is under a sensitivity; empty if nobody's."""
    if noise != "discrete-gaussian":
        return ""
    return next((_CONVENTIONS[n] for n, v in SENSITIVITIES.items() if v == sensitivity), "")


def summary(config: SweepConfig) -> str:
    """Return the question, the adversary and the targets."""
    about = Scenario.named(config.scenario)
    targets = pd.DataFrame(
        [(t.label, t.count, t.known_count) for t in config.targets[:20]],
        columns=["target in the cell", "true count", "known count of others"],
    )
    more = len(config.targets) - len(targets)
    note = f"<p>... and {more} more.</p>" if more > 0 else ""
    two_levels = (
        "<p>With two levels the area is the target's block, one of the blocks of a group, and two "
        "adversaries are compared. Nobody in the other blocks is known to them, and before the "
        "release every count of the group is equally likely to them. One reads the noisy count of "
        "the block alone. The other also reads the noisy count of the group, and the total of the "
        "noisy counts of its other blocks.</p>"
        if config.hierarchy.points
        else ""
    )
    return (
        f"<p>The question: how sure does a release make an adversary that "
        f"<em>{html.text(about.statement)}</em>, rather than that {html.text(about.alternative)}? "
        f"The adversary knows {html.text(about.knowledge)}.</p>"
        + two_levels
        + html.table(targets, "Targets")
        + note
    )


def census_conventions(config: SweepConfig) -> str:
    """Return the two noises that a rho of the 2020 Census stands for, and the risk under each."""
    budgets = [budget for budget in config.rho if budget.census and budget.name]
    if not budgets or "discrete-gaussian" not in config.noise:
        return ""
    table = pd.DataFrame({"prior": [prior.name for prior in config.prior]})
    for budget in budgets:
        for name, sensitivity in SENSITIVITIES.items():
            sigma2 = sensitivity**2 / (2.0 * budget.value)
            table[f"{budget.name}, {_CONVENTIONS[name]} (sigma2 {sigma2:.4g})"] = [
                float(marginal_risk(sigma2=sigma2, prior=prior.value)) for prior in config.prior
            ]
    return (
        "<h2>Two noises for one rho</h2>"
        "<p>A rho of the 2020 Census is found with two noises. <b>As in the paper</b> (Kazan and "
        "Reiter): a person is added or removed, and sigma2 = 1 / (2 rho). <b>As produced</b>: the "
        "Census Bureau counted a person who is changed, which moves two cells, and "
        "sigma2 = 1 / rho; the noisy counts that it published have this noise. An adversary who "
        "reads the target's cell alone learns less from the second.</p>"
        + html.table(table, "Marginal risk (posterior / prior on average, if in the cell)")
    )


def reading_guide(config: SweepConfig) -> str:
    """Return what the numbers mean."""
    checks = (
        "<li>The <b>simulated marginal posterior</b> is an independent check by "
        f"{config.releases:,} simulated releases; it carries a standard error. All priors at one "
        "rho share their releases, so a run of them may be above or below together. Everything "
        "else is exact to about twelve digits.</li>"
        if config.releases
        else ""
    )
    published = (
        " The conditionals <em>as published</em> do not follow from any one model of the counts; "
        "they are here to reproduce printed numbers only."
        if "as-published" in config.hierarchy.conditionals
        else ""
    )
    two_levels = (
        "<li>With <b>two levels</b> the adversary also reads the noisy count of the group and the "
        "total of the noisy counts of its other blocks. <em>Coherent</em> is the posterior by "
        f"Bayes' rule.{published} How often the guess is right is given for the true counts shown, "
        "not on average over what the adversary believes of them: it may be less than without the "
        "group's counts, or than without a release.</li>"
        if config.hierarchy.points
        else ""
    )
    return (
        "<h2>How to read the numbers</h2><ul>"
        "<li>The <b>prior</b> is the adversary's belief in the truth before the release: the "
        "baseline that every posterior is to be compared with.</li>"
        "<li>The <b>posterior</b> is the belief after one released count; posterior over prior "
        "is the <b>risk ratio</b>. 1 means that nothing was learned about this person.</li>"
        "<li>The <b>marginal</b> posterior and risk are averages over all releases that the noise "
        "could have produced, if the target is in the cell. Single releases can be much worse or "
        "better.</li>"
        "<li>The <b>decision threshold</b> is the smallest release, minus the known count, at "
        "which the adversary guesses that the target is in the cell. <b>Found, if in the cell</b> "
        "is the chance that the adversary correctly concludes so (the quantity "
        "<code>correct_decision_probability</code>). It says nothing of how often the adversary is "
        "right: with a prior of 1/5 always guessing &quot;not in the cell&quot; finds nobody and "
        "is right in 80 %. How often the best guess is right, whoever is there, is <b>right with "
        "it</b>, to be compared with <b>right without a release</b>: always guessing the more "
        "probable.</li>"
        "<li><b>rho</b> is the zCDP budget of this one count, not of the whole release.</li>"
        f"{two_levels}{checks}</ul>"
    )


def simulation_check(config: SweepConfig, results: pd.DataFrame) -> str:
    """Compare the simulated averages with the exact ones, where their error can be judged."""
    keys = ["noise", "sensitivity", "rho", "prior"]
    simulated = results[results["quantity"] == "simulated_marginal_posterior"].drop_duplicates(keys)
    exact = results[results["quantity"] == "marginal_posterior"].drop_duplicates(keys)
    both = simulated.merge(exact, on=keys, suffixes=("", "_exact"))
    if both.empty:
        return ""
    judged = both[both["effective_releases"] >= _ENOUGH]
    same = int((both["effective_releases"] == 0.0).sum())
    rare = len(both) - len(judged) - same
    reasons = [
        f"{rare:,} because releases so rare decide their standard error that fewer than "
        f"{_ENOUGH:.0f} of the {config.releases:,} carry it"
        if rare
        else "",
        f"{same:,} because the posterior is the same for all releases, to rounding" if same else "",
    ]
    left_out = " and ".join(reason for reason in reasons if reason)
    text = (
        f" {rare + same:,} of {len(both):,} settings are left out: {left_out}." if left_out else ""
    )
    if judged.empty:
        return f"<h2>Check by simulation</h2><p>No setting can be judged.{text}</p>"
    scores = (judged["value"] - judged["value_exact"]) / judged["standard_error"]
    groups = judged.groupby(keys[:3]).ngroups
    return (
        "<h2>Check by simulation</h2>"
        f"<p>Simulated minus exact averages in {len(judged):,} settings, in standard errors: "
        f"median {scores.median():.2f} (expected about 0); {(scores.abs() < 2).mean():.1%} within "
        f"two (expected about 95.4%). The settings share {groups:,} independent sets of simulated "
        f"releases, one for all priors at a rho.{text}</p>"
    )


def provenance(config: SweepConfig) -> str:
    """Return the configuration and the versions."""
    settings = config.to_dict()
    if len(settings["rho"]) > 40:
        settings["rho"] = [*settings["rho"][:20], "...", *settings["rho"][-20:]]
    text = json.dumps(settings, indent=2)
    return (
        "<h2>Where this comes from</h2>"
        f"<p>Configuration {html.text(config.digest)}, seed {config.seed}. "
        + html.versions()
        + ".</p><details><summary>Resolved configuration</summary>"
        f"<pre>{html.text(text)}</pre></details>"
    )
