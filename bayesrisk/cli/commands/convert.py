"""``bayesrisk convert``: one budget in every way of saying it."""

from enum import StrEnum
from typing import Annotated

import typer

from bayesrisk.cli.options import JsonOption, SensitivityOption, optional_number, sensitivity_of
from bayesrisk.cli.output import print_json, print_table
from bayesrisk.exceptions import ArgumentError

__all__ = ["convert"]


class Method(StrEnum):
    """Conversions between zCDP and approximate differential privacy."""

    TIGHT = "tight"
    BUN_STEINKE = "bun-steinke"


def convert(
    rho: Annotated[str | None, typer.Option(help="zCDP budget.")] = None,
    sigma2: Annotated[str | None, typer.Option(help="Scale of discrete Gaussian noise.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Budget of approximate DP.")] = None,
    delta: Annotated[str | None, typer.Option(help="Probability of failure.")] = None,
    sensitivity: SensitivityOption = "1",
    method: Annotated[Method, typer.Option(help="Conversion between zCDP and DP.")] = Method.TIGHT,
    as_json: JsonOption = False,
) -> None:
    """Convert between rho, sigma2, epsilon and delta: give rho or sigma2, or epsilon and delta."""
    from bayesrisk import _validation as check
    from bayesrisk import accounting

    change = sensitivity_of(sensitivity)
    budget, scale = optional_number(rho, "rho"), optional_number(sigma2, "sigma2")
    target, failure = optional_number(epsilon, "epsilon"), optional_number(delta, "delta")
    if sum([budget is not None, scale is not None, None not in (target, failure)]) != 1:
        raise ArgumentError(
            "give exactly one of --rho, --sigma2, or both --epsilon and --delta, got "
            f"rho={rho}, sigma2={sigma2}, epsilon={epsilon}, delta={delta}"
        )
    if scale is not None:
        budget = float(accounting.rho_from_sigma2(scale, change))
    elif target is not None and failure is not None:
        budget = float(accounting.epsilon_to_rho(target, failure, method.value))
    spent = check.scalar(budget, "rho", lower=0.0, bounds="()")
    scale = float(accounting.sigma2_from_rho(spent, change))
    if target is None and failure is not None:
        target = float(accounting.rho_to_epsilon(spent, failure, method.value))
    elif failure is None and target is not None:
        failure = float(accounting.rho_to_delta(spent, target, method.value))
    row = {"rho": spent, "sensitivity": change, "sigma2": scale}
    if target is not None and failure is not None:
        row |= {"epsilon": target, "delta": failure}
    if as_json:
        print_json({**row, "method": method.value})
    else:
        print_table([row], f"Conversion ({method.value})")
