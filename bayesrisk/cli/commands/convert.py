"""``bayesrisk convert``: one budget in every way of saying it."""

from dataclasses import dataclass
from enum import StrEnum
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
