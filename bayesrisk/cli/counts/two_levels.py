"""Noisy counts of a block, its group and its siblings: ``bayesrisk risk --hierarchy``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bayesrisk as br
from bayesrisk._version import __version__
from bayesrisk.cli.command import renamed
from bayesrisk.cli.options import parse_number
from bayesrisk.cli.printing import print_answer, warnings_as_lines
from bayesrisk.exceptions import ArgumentError

if TYPE_CHECKING:
    from bayesrisk.inference.two_levels.posterior import HierarchicalPosterior

_SHOWN = 1e-4  # smallest probability of a group count that is printed
_MAX_GROUP = 2**24
#: Settings that must be given, and those that may be; whole numbers, and texts.
_NEEDED = ("block", "group", "siblings", "n_siblings", "rho_block", "rho_group")
_WHOLE = ("block", "group", "siblings", "n_siblings", "known_total")
_TEXTS = ("group_prior", "conditionals", "sibling_noise")
_KNOWN = (*_NEEDED, "known_total", *_TEXTS)


def answer(
    text: str, priors: Sequence[float], *, known_count: int, sensitivity: float, as_json: bool
) -> None:
    """Print the posterior of a target in a block, by a text of settings or a file of them."""
    if len(priors) != 1:
        raise ArgumentError("prior", "must be one for a hierarchy", shown=f"{len(priors)} of them")
    settings = _settings(text)
    with renamed({name: f"--hierarchy {name}" for name in _KNOWN}), warnings_as_lines():
        result = br.hierarchical_posterior(
            **settings, prior=priors[0], known_count=known_count, sensitivity=sensitivity
        )
        document = _document(result)
    print_answer(document, _lines_of_release(document), as_json=as_json)


def _settings(text: str) -> dict[str, Any]:
    """Return the settings of a hierarchy, each read by its kind."""
    from bayesrisk._base import validation as check
    from bayesrisk._base.disk.text import read_toml
    from bayesrisk.mechanisms.registry import read_recipe

    document: Mapping[str, Any]
    if text.endswith(".toml"):
        document = read_toml(Path(text))
    else:
        document = read_recipe(f"hierarchy:{text}", "--hierarchy")[1]
    for name in document:
        check.choice(name, "--hierarchy: setting", _KNOWN)
    if missing := [name for name in _NEEDED if name not in document]:
        raise ArgumentError(f"--hierarchy must have {', '.join(missing)}, as NAME=NUMBER")
    settings: dict[str, Any] = {}
    for name, value in document.items():
        if name in _WHOLE:
            settings[name] = check.integer(value, f"--hierarchy {name}")
        elif name in _TEXTS:
            settings[name] = str(value)
        else:
            settings[name] = parse_number(str(value), f"--hierarchy {name}")
    if "group_prior" in settings:
        settings["group_prior"] = _group_prior(settings["group_prior"])
    return settings


def _group_prior(text: str) -> "br.distributions.FiniteLaw | None":
    """Return the prior that ``flat`` or ``truncated:MAX`` names."""
    kind, _, digits = text.partition(":")
    if text == "flat":
        return None
    if kind != "truncated" or not digits.isascii() or not digits.isdigit():
        raise ArgumentError("group_prior", "must be flat or truncated:MAX", got=text)
    count = int(digits) if len(digits) < 20 else 10**20
    if count >= _MAX_GROUP:
        raise ArgumentError("group_prior", f"must name a count below {_MAX_GROUP}", got=text)
    return br.distributions.FiniteLaw(0, [1.0 / (count + 1)] * (count + 1))


def _document(result: "HierarchicalPosterior") -> dict[str, Any]:
    """Return a single release as a JSON document."""
    pmf = result.group_pmf
    likely = pmf[pmf > _SHOWN]
    settings = {
        name: result.settings.arrays[name].item()
        for name in ("n_siblings", "known_count", "rho_block", "rho_group", "sensitivity")
    }
    return {
        **{name: getattr(result, name).item() for name in ("block", "group", "siblings")},
        **settings,
        "known_total": result.settings.known_total,
        "conditionals": result.settings.conditionals,
        "sibling_noise": result.settings.sibling_noise,
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
        "version": __version__,
    }


def _lines_of_release(document: dict[str, Any]) -> list[str]:
    """Return a single release for people."""
    names = {
        "prior": "prior",
        "block_probability": "after the block's count alone",
        "target_probability": "after block, group and siblings",
        "risk_ratio": "risk ratio",
    }
    pmf = document["group_pmf"]
    return [
        "Probability that the target has the characteristics:",
        *(f"  {text:<32}{document[name]:>12.6g}" for name, text in names.items()),
        f"Group count, probabilities above {_SHOWN:g}:",
        *(f"  {row['group_count']:>8}{row['probability']:>12.6f}" for row in pmf),
        f"Truncation error: at most {document['truncation_bound']:.3g}",
    ]
