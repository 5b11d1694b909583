"""``bayesrisk hierarchy`` and ``hierarchy-table``: releases of two levels."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesrisk._files.parse import shown
from bayesrisk.cli.data import data_path
from bayesrisk.cli.options import (
    JsonOption,
    QuietOption,
    SensitivityOption,
    number,
    optional_number,
    sensitivity_of,
)
from bayesrisk.cli.output import print_json, progress, rows_done, warnings_as_lines
from bayesrisk.exceptions import ArgumentError

if TYPE_CHECKING:
    from bayesrisk.distributions import FiniteLaw
    from bayesrisk.inference import HierarchicalPosterior

_SHOWN = 1e-4  # smallest probability of a group count that is printed
_MAX_GROUP = 2**24


class Conditionals(StrEnum):
    """Which conditionals the posterior belongs to."""

    COHERENT = "coherent"
    AS_PUBLISHED = "as-published"


class SiblingNoise(StrEnum):
    """Law of the noise in the siblings' total."""

    APPROXIMATE = "approximate"
    EXACT = "exact"


def _group_prior(text: str) -> "FiniteLaw | None":
    """Return the prior that ``flat`` or ``truncated:MAX`` names."""
    from bayesrisk.distributions import FiniteLaw

    kind, _, digits = text.partition(":")
    if text == "flat":
        return None
    if kind != "truncated" or not digits.isascii() or not digits.isdigit():
        raise ArgumentError(f"group_prior must be flat or truncated:MAX, got {shown(text)}")
    count = int(digits) if len(digits) < 20 else 10**20
    if count >= _MAX_GROUP:
        raise ArgumentError(f"group_prior must name a count below {_MAX_GROUP}, got {shown(text)}")
    return FiniteLaw(0, [1.0 / (count + 1)] * (count + 1))


def _document(result: "HierarchicalPosterior") -> dict[str, Any]:
    """Return a single release as a JSON document."""
    pmf = result.group_pmf
    likely = pmf[pmf > _SHOWN]
    settings = {
        name: getattr(result, name).item()
        for name in ("n_siblings", "known_count", "rho_block", "rho_group", "sensitivity")
    }
    return {
        **{name: getattr(result, name).item() for name in ("block", "group", "siblings")},
        **settings,
        "known_total": result.known_total,
        "conditionals": result.conditionals,
        "sibling_noise": result.sibling_noise,
        "prior": result.prior.item(),
        "block_probability": result.block_probability.item(),
        "target_probability": result.target_probability.item(),
        "risk_ratio": float(result.risk_ratio),
        "group_pmf": [
            {"group_count": int(count), "probability": float(value)}
            for count, value in zip(likely.index.to_numpy(), likely.to_numpy(), strict=True)
        ],
        "truncation_bound": float(result.truncation_bound),
        "status": result.status,
        "version": result.version,
    }


def _print_document(document: dict[str, Any]) -> None:
    """Print a single release for people."""
    names = {
        "prior": "prior",
        "block_probability": "after the block's count alone",
        "target_probability": "after block, group and siblings",
        "risk_ratio": "risk ratio",
    }
    typer.echo("Probability that the target has the characteristics:")
    for name, text in names.items():
        typer.echo(f"  {text:<32}{document[name]:>12.6g}")
    typer.echo(f"Group count, probabilities above {_SHOWN:g}:")
    for row in document["group_pmf"]:
        typer.echo(f"  {row['group_count']:>8}{row['probability']:>12.6f}")
    typer.echo(f"Truncation error: at most {document['truncation_bound']:.3g}")


@dataclass(frozen=True)
class ModelOptions:
    """Two levels: budgets, the prior of the group, and which posterior."""

    rho_block: Annotated[str, typer.Option(help="zCDP budget of every block's count.")]
    rho_group: Annotated[str, typer.Option(help="zCDP budget of the group's count.")]
    group_prior: Annotated[
        str, typer.Option(help="Prior of the group's count: flat or truncated:MAX.")
    ] = "flat"
    known_total: Annotated[
        int | None, typer.Option(help="Count of the group that is published without noise.")
    ] = None
    sensitivity: SensitivityOption = "1"
    conditionals: Annotated[
        Conditionals, typer.Option(help="as-published only to reproduce printed numbers.")
    ] = Conditionals.COHERENT
    sibling_noise: Annotated[
        SiblingNoise, typer.Option(help="Law of the noise in the siblings' total.")
    ] = SiblingNoise.APPROXIMATE

    def compute(self, *counts: Any, **settings: Any) -> Any:
        """Return the posterior of releases."""
        from bayesrisk.inference import hierarchical_posterior

        return hierarchical_posterior(
            *counts,
            rho_block=number(self.rho_block, "rho_block"),
            rho_group=number(self.rho_group, "rho_group"),
            group_prior=_group_prior(self.group_prior),
            known_total=self.known_total,
            sensitivity=sensitivity_of(self.sensitivity),
            conditionals=self.conditionals.value,
            sibling_noise=self.sibling_noise.value,
            **settings,
        )


def hierarchy(
    block: Annotated[int, typer.Option(help="Noisy count of the block.")],
    group: Annotated[int, typer.Option(help="Noisy count of the group.")],
    siblings: Annotated[int, typer.Option(help="Total of the noisy counts of the other blocks.")],
    n_siblings: Annotated[int, typer.Option(help="Number of the other blocks.")],
    prior: Annotated[str, typer.Option(help="Prior of the target, 0.2 or 1/864.")],
    model: ModelOptions,
    known_count: Annotated[int, typer.Option(help="Others in the block known to count.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Posterior of a target given noisy counts of its block, its group and the other blocks."""
    with warnings_as_lines():
        result = model.compute(
            block,
            group,
            siblings,
            n_siblings=n_siblings,
            prior=number(prior, "prior"),
            known_count=known_count,
        )
        document = _document(result)
    if as_json:
        print_json(document)
    else:
        _print_document(document)


def hierarchy_table(
    releases: Annotated[
        Path, typer.Argument(help="CSV or Parquet table with columns block, group, siblings.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="CSV or Parquet file for the table.")
    ],
    model: ModelOptions,
    n_siblings: Annotated[int | None, typer.Option(help="Number of the other blocks.")] = None,
    prior: Annotated[str | None, typer.Option(help="Prior of the target, 0.2 or 1/864.")] = None,
    known_count: Annotated[
        int | None, typer.Option(help="Others in the block known to count; 0 if not given.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Add the posterior of every release to a table of them."""
    from bayesrisk.experiments.hierarchy import add_columns

    settings = {
        "n_siblings": n_siblings,
        "prior": optional_number(prior, "prior"),
        "known_count": known_count,
    }
    source, silent = data_path(releases, "hierarchies"), quiet or as_json
    with (
        progress(quiet=silent, title="hierarchy-table", unit="rows", patient=True) as bar,
        warnings_as_lines(),
    ):
        rows, bound = add_columns(source, output, model.compute, settings, rows_done(bar))
    if as_json:
        print_json({"output": str(output), "rows": rows, "truncation_bound": bound})
    else:
        typer.echo(f"{rows} releases in {output}; truncation error at most {bound:.3g}")
