"""``bayesrisk risk``: posterior, risk ratio and averages for released counts."""

import dataclasses
from typing import Annotated

import typer

from bayesrisk.cli.options import (
    JsonOption,
    SensitivityOption,
    called,
    number,
    optional_number,
    sensitivity_of,
)
from bayesrisk.cli.output import print_json, print_table
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
        print_json(
            {"scenario": about, "version": result.version, "status": result.status, "rows": rows}
        )
        return
    sigma = f"sigma2 = {rows[0]['sigma2']:.6g}"
    first = f"Probability that {result.scenario.statement}, after each release ({sigma}):"
    distinct = list({row["prior"]: row for row in rows}.values())
    for title, columns in _TABLES.items():
        chosen = distinct if title else rows
        table = [{_HEADS.get(name, name): row[name] for name in columns} for row in chosen]
        print_table(table, title or first)
