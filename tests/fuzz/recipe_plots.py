"""Small frames for every figure; what is drawn is also laid out, as saving it would."""

import functools
from typing import Any

import numpy as np
import pandas as pd

import bayesrisk as br
from bayesrisk import plotting, risk


def calls() -> list[tuple[str, Any, dict[str, Any]]]:
    """Return a call of every public figure: its name, the function, the arguments by name."""
    frames = {
        **_of_blocks(),
        **_of_two_levels(),
        **_of_linkage(),
        **_of_occupancy(),
        **_of_statements(),
    }
    drawn = [(name, _laid_out(getattr(plotting, name)), given) for name, given in frames.items()]
    axes = plotting.plot_risk(_levels(), against="levels")
    return [
        *drawn,
        ("figure_of", plotting.figure_of, {"drawn": axes}),
        ("save_figure", plotting.save_figure, {"figure": axes, "stem": "levels", "private": False}),
    ]


def _laid_out(plot: Any) -> Any:
    @functools.wraps(plot)
    def draw(*args: Any, **kwargs: Any) -> Any:
        found = plot(*args, **kwargs)
        plotting.figure_of(found).draw_without_rendering()
        return found

    return draw


def _levels() -> pd.DataFrame:
    columns = {"levels": [2, 1], "prior": 0.3}
    return pd.DataFrame(columns | {"marginal_posterior": [0.4, 0.35], "marginal_risk": [1.3, 1.2]})


def _of_blocks() -> dict[str, dict[str, Any]]:
    rho = np.geomspace(0.1, 1.0, 3)[:, None]
    by_rho = br.block_risk(1, rho=rho, prior=[0.5, 0.1]).to_frame()
    by_rho = by_rho.assign(rho=np.repeat(rho.ravel(), 2))
    curve = pd.DataFrame({"risk_ratio": [1.0, 2.0, 4.0], "cells": [9, 3, 1]}).assign(
        expected_known=[8.0, 2.0, 0.5], error_known=[2.0, 1.0, 0.5],
        expected_one_more=[9.0, 4.0, 1.0], error_one_more=[3.0, 2.0, 1.0],
    )  # fmt: skip
    budgets = {"here": 0.3}
    return {
        "plot_risk": {"frame": by_rho, "against": "rho", "budgets": budgets, "ax": None},
        "plot_correct_decision": {"frame": by_rho, "budgets": budgets, "ax": None},
        "plot_decision_accuracy": {"frame": by_rho, "budgets": budgets, "ax": None},
        "plot_noisy_measurements": {"curve": curve, "thresholds": [1.5], "ax": None},
    }


def _of_two_levels() -> dict[str, dict[str, Any]]:
    rows = [(b, g, s) for b in (0, 1) for g in (0, 1) for s in (-1, 0, 1)]
    decisions = pd.DataFrame(rows, columns=["block", "group", "siblings"]).assign(
        decision=[1, 0] * 6, decision_without=0, change="none"
    )
    risks = pd.DataFrame(
        {"rho_group": [0.1, 1.0], "group_count": [1, 1], "value": [0.6, 0.7]}
    ).assign(without_hierarchy=0.5)
    processed = risk.compare_postprocessing(
        group_count=[1, 5], n_siblings=1, noise=br.Noise(rho=[[0.1], [1.0]]), prior=0.5
    ).to_frame()
    processed = processed.assign(rho=(0.5 / processed["sigma2"]).round(10))
    return {
        "plot_decision_map": {"maps": {"flat": decisions}, "ax": None},
        "plot_group": {
            "frame": risks,
            "against": "rho_group",
            "budgets": {"here": 0.3},
            "quantity": "found",
            "ax": None,
        },
        "plot_postprocessing": {"by_rho": processed, "by_group_count": processed, "ax": None},
    }


def _of_linkage() -> dict[str, dict[str, Any]]:
    rng = np.random.default_rng(2)
    people = pd.DataFrame(
        {
            "block": rng.choice(["010010201001000", "010010201001001"], 12),
            "sex": rng.integers(0, 2, 12),
            "age": rng.integers(0, 90, 12),
            "race": rng.choice([1, 2], 12),
            "hisp": 0,
            "person": np.arange(12),
        }
    )
    rates = risk.reidentify({"t": people}, {"a": people}, truth=people, baseline_from="t", rng=1)
    truth = pd.DataFrame({"x": [5, 1], "y": [4, 9]}, index=["a", "b"])
    blocks = pd.DataFrame({"block": list("ab"), "population": [5, 9]})
    blocks = blocks.assign(lower=[0.0, 0.1], upper=[0.0, 0.1])
    return {
        "plot_reidentification": {"rates": rates.to_frame(), "ax": None},
        "plot_majority": {
            "curves": risk.majority_inference({"t": truth}, truth=truth).curve(threshold=1),
            "ax": None,
        },
        "plot_variability": {
            "quantiles": risk.variability_quantiles(blocks, rng=1, step=50),
            "ax": None,
        },
    }


def _of_occupancy() -> dict[str, dict[str, Any]]:
    table = pd.DataFrame({"protection": ["none", "das"], "infeasible_as": "apart"})
    for name in ("precision", "recall"):
        table = table.assign(
            **{name: 0.5, f"{name}_lower": 0.4, f"{name}_upper": 0.6, f"{name}_baseline": 0.3}
        )
    curves = pd.DataFrame({"k": [1, 2], "precision": [1.0, 0.5], "recall": [0.5, 1.0]}).assign(
        match_rate=0.5, protection="none", key="hud", unique=True, baseline=0.1
    )
    counts = pd.DataFrame({"protection": "none", "violations": [1, 0], "reconstructed": [1.5, 0.5]})
    shares = pd.DataFrame({"attributes": "full", "share": [0.5, 1.0], "households": [3, 1]})
    return {
        "plot_occupancy_blocks": {"frame": table, "ax": None},
        "plot_occupancy_linkage": {
            "frame": curves, "key": "hud", "unique": True, "against": "recall", "ax": None
        },
        "plot_occupancy_counts": {"frame": counts, "protection": "none", "ax": None},
        "plot_occupancy_variability": {"frame": shares, "ax": None},
    }  # fmt: skip


def _of_statements() -> dict[str, dict[str, Any]]:
    rows = pd.DataFrame({"attack": "claims", "protection": "identity", "target": list("ab")})
    rows = rows.assign(statement="is", status="proved", ratio=[1.0, 2.0])
    coverage = pd.DataFrame({"block": list("aabb"), "columns": [1, 2] * 2, "claims": [3, 0, 1, 0]})
    priors = pd.DataFrame({"n_columns": [1, 1, 2], "prior": [0.1, 0.2, 0.1]})
    mechanisms = pd.DataFrame({"protection": ["none", "swapping"], "target": "a", "prior": 0.1})
    mechanisms = mechanisms.assign(
        marginal_risk=[9.0, 4.0], marginal_risk_lower=[8.0, 3.0], marginal_risk_upper=[9.5, 5.0],
        mean_absolute_error=[0.0, 0.1], mean_absolute_error_error=[0.0, 0.01],
    )  # fmt: skip
    return {
        "plot_statements": {"statements": rows, "comparable": None, "ax": None},
        "plot_claims": {"coverage": coverage, "priors": {"tract": priors}, "ax": None},
        "plot_mechanisms": {"frame": mechanisms, "utility": "mean_absolute_error", "ax": None},
    }
