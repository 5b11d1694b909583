"""``bayesrisk hierarchy``: one release of two levels, or a table of them."""

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesrisk._files.parse import shown
from bayesrisk.accounting import exact_number
from bayesrisk.accounting.budget import SENSITIVITIES
from bayesrisk.cli._data import data_path
from bayesrisk.exceptions import ArgumentError, BayesRiskWarning

if TYPE_CHECKING:
    from bayesrisk.distributions import FiniteLaw
    from bayesrisk.inference import HierarchicalPosterior

__all__ = ["hierarchy"]

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


def number(text: str, name: str) -> float:
    """Return a number that may be written as a fraction."""
    return float(exact_number(text, name))


def sensitivity_of(text: str) -> float:
    """Return a sensitivity given as a number or by what a neighbour does."""
    return SENSITIVITIES[text] if text in SENSITIVITIES else number(text, "sensitivity")


def _group_prior(text: str) -> "FiniteLaw | None":
    """Return the prior that ``flat``, ``truncated:MAX`` or ``point:N`` names."""
    from bayesrisk.distributions import FiniteLaw

    kind, _, digits = text.partition(":")
    if text == "flat":
        return None
    if kind not in ("truncated", "point") or not digits.isascii() or not digits.isdigit():
        raise ArgumentError(
            f"group_prior must be flat, truncated:MAX or point:N, got {shown(text)}"
        )
    count = int(digits) if len(digits) < 20 else 10**20
    limit = _MAX_GROUP if kind == "truncated" else 2**52
    if count >= limit:
        raise ArgumentError(f"group_prior must name a count below {limit}, got {shown(text)}")
    if kind == "point":
        return FiniteLaw(count, [1.0])
    return FiniteLaw(0, [1.0 / (count + 1)] * (count + 1))


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Say each of our warnings once, in one line on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BayesRiskWarning)
        yield
    ours = (w for w in caught if issubclass(w.category, BayesRiskWarning))
    for text in dict.fromkeys(str(w.message) for w in ours):
        typer.echo(f"bayesrisk: warning: {text}", err=True)


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


def hierarchy(
    rho_block: Annotated[str, typer.Option(help="zCDP budget of every block's count.")],
    rho_group: Annotated[str, typer.Option(help="zCDP budget of the group's count.")],
    block: Annotated[int | None, typer.Option(help="Noisy count of the block.")] = None,
    group: Annotated[int | None, typer.Option(help="Noisy count of the group.")] = None,
    siblings: Annotated[
        int | None, typer.Option(help="Total of the noisy counts of the other blocks.")
    ] = None,
    n_siblings: Annotated[int | None, typer.Option(help="Number of the other blocks.")] = None,
    prior: Annotated[str | None, typer.Option(help="Prior of the target, 0.2 or 1/864.")] = None,
    known_count: Annotated[
        int | None, typer.Option(help="Others in the block known to count; 0 if not given.")
    ] = None,
    group_prior: Annotated[
        str, typer.Option(help="Prior of the group's count: flat, truncated:MAX or point:N.")
    ] = "flat",
    sensitivity: Annotated[
        str, typer.Option(help="L2 sensitivity of the budgets: a number, add-remove, change-one.")
    ] = "1",
    conditionals: Annotated[
        Conditionals, typer.Option(help="as-published only to reproduce printed numbers.")
    ] = Conditionals.COHERENT,
    sibling_noise: Annotated[
        SiblingNoise, typer.Option(help="Law of the noise in the siblings' total.")
    ] = SiblingNoise.APPROXIMATE,
    releases: Annotated[
        Path | None, typer.Option(help="CSV or Parquet table of releases, instead of one.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV or Parquet file for the table.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Posterior of a target given noisy counts of its block, its group and the other blocks."""
    from bayesrisk.inference import hierarchical_posterior

    compute: Any = partial(
        hierarchical_posterior,
        rho_block=number(rho_block, "rho_block"),
        rho_group=number(rho_group, "rho_group"),
        group_prior=_group_prior(group_prior),
        sensitivity=sensitivity_of(sensitivity),
        conditionals=conditionals.value,
        sibling_noise=sibling_noise.value,
    )
    settings = {
        "n_siblings": n_siblings,
        "prior": None if prior is None else number(prior, "prior"),
        "known_count": known_count,
    }
    counts = {"block": block, "group": group, "siblings": siblings}
    if releases is None:
        if output is not None:
            raise ArgumentError("output belongs with --releases, got it without")
        needed = {**counts, "n_siblings": n_siblings, "prior": prior}
        missing = [f"--{name.replace('_', '-')}" for name, value in needed.items() if value is None]
        if missing:
            raise ArgumentError(f"one release needs {', '.join(missing)}; a table --releases")
        with _warnings_as_lines():
            result = compute(*counts.values(), **{**settings, "known_count": known_count or 0})
            document = _document(result)
        if as_json:
            typer.echo(json.dumps(document, indent=2, allow_nan=False))
        else:
            _print_document(document)
        return
    if output is None:
        raise ArgumentError("releases needs --output, the file to be made")
    given = [f"--{name}" for name, value in counts.items() if value is not None]
    if given:
        raise ArgumentError(f"releases is a table of counts, so leave out {', '.join(given)}")
    from bayesrisk.experiments.hierarchy import add_columns

    with _warnings_as_lines():
        rows, bound = add_columns(data_path(releases, "hierarchies"), output, compute, settings)
    summary = {"output": str(output), "rows": rows, "truncation_bound": bound}
    if as_json:
        typer.echo(json.dumps(summary, indent=2, allow_nan=False))
    else:
        typer.echo(f"{rows} releases in {output}; truncation error at most {bound:.3g}")
