"""``bayesrisk risk``: posterior, risk ratio and averages for released counts."""

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bayesrisk._version import __version__
from bayesrisk.cli.base import (
    SEED,
    SWEEPS,
    JsonOption,
    QuietOption,
    RunOptions,
    SensitivityOption,
    called,
    data_path,
    number,
    optional_number,
    print_json,
    print_shards,
    print_table,
    progress,
    sensitivity_of,
)
from bayesrisk.exceptions import ArgumentError

_HEADS = {
    "correct_decision_probability": "found_if_in_cell",
    "decision_baseline": "without_release",
    "decision_accuracy": "with_release",
}
#: Title and columns of each table; the first has a row for each count, the others for each prior.
_TABLES = {
    "": ("noisy_count", "known_count", "prior", "posterior", "risk_ratio", "decision"),
    "On average over all releases that the noise could have produced, if it is true:": (
        "prior",
        "decision_threshold",
        "marginal_posterior",
        "marginal_risk",
        "correct_decision_probability",
    ),
    "How often the best guess is right, whether it is true or not:": (
        "prior",
        "decision_baseline",
        "decision_accuracy",
    ),
}


def risk(
    noisy_count: Annotated[list[str], typer.Argument(help="Released counts (-- before negatives)")],
    prior: Annotated[list[str], typer.Option(help="Prior of the truth, 0.2 or 1/864.")],
    rho: Annotated[str | None, typer.Option(help="zCDP budget of the count.")] = None,
    sigma2: Annotated[str | None, typer.Option(help="Scale of the noise, instead of rho.")] = None,
    sensitivity: SensitivityOption = "1",
    known_count: Annotated[int, typer.Option(help="Others known to be in the cell.")] = 0,
    scenario: Annotated[
        str, typer.Option(help="What the adversary wants to know.")
    ] = "characteristics",
    as_json: JsonOption = False,
) -> None:
    """Posterior, risk ratio and averages for released counts."""
    from bayesrisk.risk import block_risk

    if (rho is None) == (sigma2 is None):
        raise ArgumentError(
            f"give exactly one of --rho and --sigma2, got rho={rho}, sigma2={sigma2}"
        )
    with called("scenario_name", "--scenario"):
        result = block_risk(
            [[number(count, "noisy_count")] for count in noisy_count],
            rho=optional_number(rho, "rho"),
            sigma2=optional_number(sigma2, "sigma2"),
            prior=[number(p, "prior") for p in prior],
            sensitivity=sensitivity_of(sensitivity),
            known_count=known_count,
            scenario_name=scenario,
        )
    rows = result.to_rows()
    if as_json:
        about = dataclasses.asdict(result.scenario)
        print_json({"scenario": about, "version": __version__, "status": "exact", "rows": rows})
        return
    sigma = f"sigma2 = {rows[0]['sigma2']:.6g}"
    first = f"Probability that {result.scenario.statement}, after each release ({sigma}):"
    distinct = list({row["prior"]: row for row in rows}.values())
    for title, columns in _TABLES.items():
        chosen = distinct if title else rows
        table = [{_HEADS.get(name, name): row[name] for name in columns} for row in chosen]
        print_table(table, title or first)


# -----------------------------------------------------------------------------
# ``bayesrisk convert``: one budget in every way of saying it.


class Method(StrEnum):
    """Conversions between zCDP and approximate differential privacy."""

    TIGHT = "tight"
    BUN_STEINKE = "bun-steinke"


@dataclass(frozen=True)
class RiskLimit:
    """A limit on the risk ratio that a budget shall keep."""

    max_risk: Annotated[
        str | None, typer.Option(help="Risk ratio that the average release shall keep.")
    ] = None
    prior: Annotated[str | None, typer.Option(help="With --max-risk: prior of the truth.")] = None
    probability: Annotated[
        str | None,
        typer.Option(help="With --max-risk: not the average but this quantile shall keep it."),
    ] = None

    def budget(self, sensitivity: float) -> float | None:
        """Return the budget that keeps the limit; None if there is no limit."""
        limit, level = (
            optional_number(self.max_risk, "max-risk"),
            optional_number(self.probability, "probability"),
        )
        if limit is None:
            if self.prior is not None or level is not None:
                raise ArgumentError("--prior and --probability belong with --max-risk, got none")
            return None
        if self.prior is None:
            raise ArgumentError("--max-risk needs a --prior, got none")
        from bayesrisk.risk import rho_for_risk  # slow to import

        with called("limit", "--max-risk"):
            return rho_for_risk(
                limit,
                prior=number(self.prior, "prior"),
                measure="average" if level is None else "quantile",
                probability=level,
                sensitivity=sensitivity,
            )


def convert(
    limit: RiskLimit,
    rho: Annotated[str | None, typer.Option(help="zCDP budget.")] = None,
    sigma2: Annotated[str | None, typer.Option(help="Scale of discrete Gaussian noise.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Budget of approximate DP.")] = None,
    delta: Annotated[str | None, typer.Option(help="Probability of failure.")] = None,
    sensitivity: SensitivityOption = "1",
    method: Annotated[Method, typer.Option(help="Conversion between zCDP and DP.")] = Method.TIGHT,
    as_json: JsonOption = False,
) -> None:
    """Convert between rho, sigma2, epsilon and delta: give one, or a limit on the risk."""
    from bayesrisk import _validation as check
    from bayesrisk import accounting
    from bayesrisk.accounting.budget import SENSITIVITIES

    change = sensitivity_of(sensitivity)
    budget, scale = optional_number(rho, "rho"), optional_number(sigma2, "sigma2")
    target, failure = optional_number(epsilon, "epsilon"), optional_number(delta, "delta")
    allowed = limit.max_risk is not None
    if sum([budget is not None, scale is not None, None not in (target, failure), allowed]) != 1:
        raise ArgumentError(
            "give exactly one of --rho, --sigma2, --max-risk, or both --epsilon and --delta, got "
            f"rho={rho}, sigma2={sigma2}, max_risk={limit.max_risk}, epsilon={epsilon}, "
            f"delta={delta}"
        )
    largest = limit.budget(change)
    if scale is not None:
        budget = float(accounting.rho_from_sigma2(scale, change))
    elif target is not None and failure is not None:
        budget = float(accounting.epsilon_to_rho(target, failure, method.value))
    elif largest is not None:
        budget = largest
    spent = check.scalar(budget, "rho", lower=0.0, bounds="()")
    scale = float(accounting.sigma2_from_rho(spent, change))
    if target is None and failure is not None:
        target = float(accounting.rho_to_epsilon(spent, failure, method.value))
    elif failure is None and target is not None:
        failure = float(accounting.rho_to_delta(spent, target, method.value))
    row = {"rho": spent, "sensitivity": change, "sigma2": scale}
    if largest is not None:  # one noise, and what it costs by what a neighbour is
        by_neighbour = {name: 0.5 * delta**2 / scale for name, delta in SENSITIVITIES.items()}
        row |= {f"rho_{name.replace('-', '_')}": cost for name, cost in by_neighbour.items()}
    if target is not None and failure is not None:
        row |= {"epsilon": target, "delta": failure}
    if as_json:
        print_json({**row, "method": method.value})
    else:
        print_table([row], f"Conversion ({method.value})")


# -----------------------------------------------------------------------------
# ``bayesrisk sweep`` and ``bayesrisk report``: risk over a grid of settings, and its report.


def sweep(
    config: Annotated[str, typer.Argument(help="TOML file, or sample:NAME.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    how: RunOptions,
    seed: Annotated[int | None, SEED] = None,
) -> None:
    """Run a sweep of disclosure risk over rho, then write its report."""
    from bayesrisk.experiments import load_config, write_report

    data_path(Path(config), SWEEPS)
    study = load_config(config, seed=seed)
    summary = how.run(study, output, study.title)
    page = str(write_report(output)) if summary.complete else None
    if how.as_json:
        print_json({**summary.to_dict(), "report": page})
        return
    print_shards(summary)
    if page is not None:
        typer.echo(f"{summary.rows} rows in {output / 'results.csv'}")
        typer.echo(f"report: {page}")


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a finished sweep.")],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write figures and report.html of a finished sweep again."""
    from bayesrisk.experiments import write_report

    with progress(quiet=quiet or as_json, title="report", unit="steps", patient=True) as advance:
        page = write_report(folder, progress=advance)
    if as_json:
        print_json({"report": str(page)})
    else:
        typer.echo(f"report: {page}")
