"""The report of a finished sweep: figures as PNG and SVG, and one self-contained HTML page."""

import json
from html import escape
from pathlib import Path

import pandas as pd

from bayesrisk import _files, plotting
from bayesrisk.experiments import html
from bayesrisk.experiments.config import SweepConfig
from bayesrisk.experiments.store import SweepFolder
from bayesrisk.experiments.sweep import read_results
from bayesrisk.risk.scenarios import scenario

__all__ = ["write_report"]

#: Noise law, name and value of the sensitivity, and the results under them.
_Panel = tuple[str, str, float, pd.DataFrame]

_MAX_TABLE_ROWS = 40


def write_report(folder: str | Path) -> Path:
    """Write figures and ``report.html`` for a finished sweep.

    Parameters
    ----------
    folder : path-like
        The folder of the sweep; figures go to its ``figures``.

    Returns
    -------
    pathlib.Path
        The page; it needs no other file and no network.

    Raises
    ------
    OutputError
        If the folder holds no sweep.
    PartFileError
        If a part is missing, truncated or foreign.

    Notes
    -----
    The page holds no date and no path: the same sweep under the same versions gives the same
    bytes.
    """
    config, results = read_results(folder)
    path = SweepFolder(folder).path
    images = path / "figures"
    _files.make_folder(images)
    sections = [_section(config, part, images) for part in _panels(config, results)]
    body = "\n".join(
        [
            f"<h1>{escape(config.title)}</h1>",
            _summary(config),
            _reading_guide(config),
            *sections,
            _simulation_check(results),
            _provenance(config),
        ]
    )
    page = html.page(config.title, body)
    _files.write_bytes(path / "report.html", page.encode())
    return path / "report.html"


def _panels(
    config: SweepConfig, results: pd.DataFrame
) -> list[tuple[str, str, float, pd.DataFrame]]:
    """Split the results by noise law and sensitivity: one section of the report for each."""
    return [
        (noise, sensitivity.name, sensitivity.value, results[chosen])
        for noise in config.noise
        for sensitivity in config.sensitivity
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


def _focus(config: SweepConfig) -> list[tuple[str, float]]:
    """Return the budgets that tables and single-budget figures show: the named ones."""
    named = [(budget.name, budget.value) for budget in config.rho if budget.name]
    if named:
        return named
    middle = config.rho[len(config.rho) // 2]
    return [(f"rho = {middle.value:.4g}", middle.value)]


def _section(config: SweepConfig, panel: _Panel, images: Path) -> str:
    noise, name, value, frame = panel
    stem = f"{noise}-{value:.6g}"
    parts = [f"<h2>{escape(_noise_title(noise, name, value))}</h2>"]
    parts += _tables(config, frame)
    budgets = {budget.name: budget.value for budget in config.rho if budget.name}
    wide = _wide(frame, ["marginal_posterior", "marginal_risk"], ["rho", "prior"])
    if len(wide) and len(config.rho) > 1:
        parts.append(
            html.figure(
                plotting.plot_marginal_risk(wide, budgets=budgets),
                images / f"marginal-risk-{stem}",
                "Posterior of the truth, and its ratio to the prior, averaged over releases, "
                "against rho. Dotted lines mark the named budgets.",
            )
        )
    wide = _wide(frame, ["correct_decision_probability"], ["rho", "prior"])
    if len(wide) and len(config.rho) > 1:
        parts.append(
            html.figure(
                plotting.plot_correct_decision(wide, budgets=budgets),
                images / f"correct-decision-{stem}",
                "How often the adversary's best guess is right, against rho. The jags are real: "
                "between two rises the decision threshold stands still while the noise shrinks.",
            )
        )
    for i, (label, rho) in enumerate(_focus(config), start=1):
        parts += _figures_at(
            config, frame[frame["rho"] == rho], label, images, f"{stem}-budget-{i}"
        )
    return "\n".join(parts)


def _figures_at(
    config: SweepConfig, frame: pd.DataFrame, label: str, images: Path, stem: str
) -> list[str]:
    """Draw what belongs to one budget: risk by released count and by levels."""
    parts = []
    axes = ["target", "prior", "noisy_count"]
    wide = _wide(frame, ["posterior", "risk_ratio"], axes)
    if len(wide):
        target = wide["target"].iloc[0]
        wide = wide[wide["target"] == target].astype({"noisy_count": "int64"})
        parts += _released_tables(config, frame[frame["target"] == target], label)
        parts.append(
            html.figure(
                plotting.plot_released_count(wide),
                images / f"released-count-{stem}",
                f"Posterior and risk ratio against the released count at {label}; "
                f"target: {target}.",
            )
        )
    names = ["multilevel_marginal_posterior", "multilevel_marginal_risk"]
    wide = _wide(frame, names, ["levels", "prior"])
    if len(wide):
        wide = wide.rename(columns=lambda c: c.removeprefix("multilevel_"))
        parts.append(
            html.figure(
                plotting.plot_levels(wide.astype({"levels": "int64"})),
                images / f"levels-{stem}",
                "Risk when the target is known to be unique at the first 1, 2, ... levels, "
                f"the first having the rho of {label} and the others in proportion.",
            )
        )
    return parts + _hierarchy_figures(config, frame, label, images, stem)


def _hierarchy_figures(
    config: SweepConfig, frame: pd.DataFrame, label: str, images: Path, stem: str
) -> list[str]:
    """Draw correct decisions with two levels, at the prior nearest 1/2 and the first m."""
    quantity = frame["quantity"]
    alone = frame[quantity == "correct_decision_probability"].set_index("prior")["value"]
    rows = frame[quantity == "hierarchical_correct_decision_probability"]
    if rows.empty or alone.empty:
        return []
    prior = min(alone.index, key=lambda p: abs(p - 0.5))
    siblings = int(rows["n_siblings"].min())
    rows = rows[(rows["prior"] == prior) & (rows["n_siblings"] == siblings)]
    rows = rows.astype({"group_count": "int64"}).assign(without_hierarchy=alone[prior])
    about = (
        f"How often the best guess is right when the block has the rho of {label}, with "
        f"{siblings} other blocks, prior {rows['prior_text'].iloc[0]}"
    )
    parts = []
    if rows["rho_group"].nunique() > 1:
        figure = plotting.plot_group_budget(rows)
        caption = f"{about}, against the rho of the group's count."
        parts.append(html.figure(figure, images / f"group-budget-{stem}", caption))
    if rows["group_count"].nunique() > 1:
        budgets = config.hierarchy.rho_group
        named = [budget for budget in budgets if budget.name] or [budgets[len(budgets) // 2]]
        one = rows[rows["rho_group"] == named[0].value]
        caption = f"{about}, against the true count of the group; rho of the group's count "
        caption += f"{one['rho_group'].iloc[0]:.4g}."
        figure = plotting.plot_group_count(one.drop(columns="standard_error"))
        parts.append(html.figure(figure, images / f"group-count-{stem}", caption))
    return parts


def _released_tables(config: SweepConfig, frame: pd.DataFrame, label: str) -> list[str]:
    """Return posteriors, and ratios, by released count: Kazan and Reiter's Table 4 in two."""
    priors = sorted(config.prior, key=lambda budget: -budget.value)
    by_count = frame.set_index("noisy_count")
    mass = by_count.loc[by_count["quantity"] == "release_probability", "value"]
    tables = []
    for quantity, name in (("posterior", "posterior"), ("risk_ratio", "posterior / prior")):
        rows = frame[frame["quantity"] == quantity]
        wide = rows.pivot(index="noisy_count", columns="prior", values="value")
        wide = wide[[prior.value for prior in priors]].head(_MAX_TABLE_ROWS)
        wide.columns = pd.Index([f"prior {prior.name}" for prior in priors])
        if len(mass):
            wide.insert(0, "probability if the target counts", mass.loc[wide.index])
        wide.insert(0, "released count", [str(count) for count in wide.index])
        tables.append(html.table(wide, f"{label}: {name} after each release"))
    return tables


def _noise_title(noise: str, name: str, value: float) -> str:
    law = "Discrete Gaussian" if noise == "discrete-gaussian" else "Discrete Laplace"
    meaning = {
        "add-remove": "neighbours add or remove one record",
        "change-one": "neighbours change one record",
    }.get(name, f"sensitivity {name}")
    return f"{law} noise; {meaning} (sensitivity {value:.4g})"


def _tables(config: SweepConfig, frame: pd.DataFrame) -> list[str]:
    """Return a table for each marked budget: one row for each prior."""
    columns = [
        "marginal_posterior",
        "marginal_risk",
        "decision_threshold",
        "correct_decision_probability",
        "simulated_marginal_posterior",
    ]
    tables = []
    text = {budget.value: budget.name for budget in config.prior}
    for label, rho in _focus(config):
        here = frame[(frame["rho"] == rho) & frame["quantity"].isin(columns)]
        if here.empty:
            continue
        wide = here.pivot(index="prior", columns="quantity", values="value")
        order = [column for column in columns if column in wide.columns]
        wide = wide[order].sort_index(ascending=False)
        wide.insert(0, "prior", [text[p] for p in wide.index])
        if "simulated_marginal_posterior" in order:
            errors = here.set_index(["quantity", "prior"])["standard_error"]
            wide["± standard error"] = errors["simulated_marginal_posterior"].loc[wide.index]
        parameter = "sigma2" if here["noise"].iloc[0] == "discrete-gaussian" else "scale"
        caption = f"{label}: rho = {rho:.7g}, {parameter} = {here['noise_parameter'].iloc[0]:.5g}"
        epsilon = frame[(frame["rho"] == rho) & (frame["quantity"] == "epsilon")]
        if len(epsilon):
            caption += f", epsilon = {epsilon['value'].iloc[0]:.5g} at delta = {config.delta:g}"
        tables.append(html.table(wide, caption))
    return tables


def _summary(config: SweepConfig) -> str:
    about = scenario(config.scenario)
    targets = pd.DataFrame(
        [(t.label, t.count, t.known_count) for t in config.targets[:20]],
        columns=["target in the cell", "true count", "known count of others"],
    )
    more = len(config.targets) - len(targets)
    note = f"<p>... and {more} more.</p>" if more > 0 else ""
    return (
        f"<p>The question: how sure does a release make an adversary that "
        f"<em>{escape(about.statement)}</em>, rather than that {escape(about.alternative)}? "
        f"The adversary knows {escape(about.knowledge)}.</p>"
        + html.table(targets, "Targets")
        + note
    )


def _reading_guide(config: SweepConfig) -> str:
    checks = (
        "<li>The <b>simulated marginal posterior</b> is an independent check by "
        f"{config.releases:,} simulated releases; it carries a standard error. Everything else "
        "is exact to about twelve digits.</li>"
        if config.releases
        else ""
    )
    two_levels = (
        "<li>With <b>two levels</b> the adversary also reads the noisy count of the group and the "
        "total of the noisy counts of its other blocks. The conditionals <em>as published</em> "
        "belong to no joint law; they are here to reproduce printed numbers only.</li>"
        if config.hierarchy.points
        else ""
    )
    return (
        "<h2>How to read the numbers</h2><ul>"
        "<li>The <b>prior</b> is the adversary's belief in the truth before the release: the "
        "baseline that every other number is to be compared with.</li>"
        "<li>The <b>posterior</b> is the belief after one released count; posterior over prior "
        "is the <b>risk ratio</b>. 1 means that nothing was learned about this person.</li>"
        "<li>The <b>marginal</b> posterior and risk are averages over the releases that could "
        "have been, given that the target counts. Single releases can be much worse or better."
        "</li>"
        "<li>The <b>decision threshold</b> is the smallest release, minus the known count, at "
        "which the adversary guesses that the target counts; the <b>correct decision "
        "probability</b> is how often the guess is right when the target does.</li>"
        "<li><b>rho</b> is the zCDP budget of this one count, not of the whole release.</li>"
        f"{two_levels}{checks}</ul>"
    )


def _simulation_check(results: pd.DataFrame) -> str:
    """Compare the simulated averages with the exact ones, in standard errors."""
    simulated = results[results["quantity"] == "simulated_marginal_posterior"]
    exact = results[results["quantity"] == "marginal_posterior"]
    keys = ["noise", "sensitivity", "rho", "prior"]
    both = simulated.drop_duplicates(keys).merge(
        exact.drop_duplicates(keys), on=keys, suffixes=("", "_exact")
    )
    both = both[both["standard_error"] > 0.0]
    if both.empty:
        return ""
    scores = (both["value"] - both["value_exact"]) / both["standard_error"]
    return (
        "<h2>Check by simulation</h2>"
        f"<p>Exact minus simulated averages over {len(both):,} settings: mean "
        f"{scores.mean():.2f} and standard deviation {scores.std():.2f} standard errors "
        f"(expected 0 and about 1; the priors at one rho share their draws); "
        f"{(scores.abs() < 2).mean():.1%} within two. Where rho is large and a rare release "
        "carries most of the average, the estimated standard error itself is unreliable.</p>"
    )


def _provenance(config: SweepConfig) -> str:
    settings = config.to_dict()
    if len(settings["rho"]) > 40:
        settings["rho"] = [*settings["rho"][:20], "...", *settings["rho"][-20:]]
    text = json.dumps(settings, indent=2)
    return (
        "<h2>Where this comes from</h2>"
        f"<p>Configuration {escape(config.digest)}, seed {config.seed}. "
        + html.versions()
        + ".</p><details><summary>Resolved configuration</summary>"
        f"<pre>{escape(text)}</pre></details>"
    )
