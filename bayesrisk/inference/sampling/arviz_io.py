"""Draws handed to ArviZ, and its diagnostics read with a verdict: the only module that imports it.

ArviZ 0.x keeps draws as InferenceData, ArviZ 1.x as an xarray DataTree, and the two differ in how
data are passed.  ``_arviz`` is the one place that knows.  ArviZ is loaded when
it is first needed, because it takes seconds.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._show import displayed
from bayesrisk._types import FloatArray
from bayesrisk.exceptions import ArgumentTypeError, ShapeError
from bayesrisk.inference.sampling.chains import Samples

_TAILS = (0.05, 0.95)
_FEWEST_DRAWS = 4  # split chains need two draws in each half
_SURPRISE = 1e-3  # a chain that never moves is suspect if the others make that so unlikely


class _ArviZ(Protocol):
    """What this package asks of ArviZ, whatever its version."""

    version: str

    def pack(self, groups: Mapping[str, Any], attrs: Mapping[str, Any], **labels: Any) -> Any:
        """Return the draws in ArviZ's own container."""

    def statistic(self, name: str, draws: NDArray[Any], **options: Any) -> float:
        """Return one diagnostic of draws (chains, draws)."""


class _Common:
    def __init__(self, module: Any) -> None:
        self._module = module
        self.version = str(module.__version__)

    def statistic(self, name: str, draws: NDArray[Any], **options: Any) -> float:
        # Few draws may have no variance within chains: the number is none then, and says so.
        with np.errstate(divide="ignore", invalid="ignore"):
            value = getattr(self._module, name)(draws, **options)
        return float(np.asarray(value).reshape(-1)[0])


class _Legacy(_Common):
    """ArviZ 0.x: InferenceData."""

    def pack(self, groups: Mapping[str, Any], attrs: Mapping[str, Any], **labels: Any) -> Any:
        data = self._module.from_dict(**groups, **labels)
        data.posterior.attrs.update(attrs)
        return data


class _Modern(_Common):
    """ArviZ 1.x: DataTree."""

    def pack(self, groups: Mapping[str, Any], attrs: Mapping[str, Any], **labels: Any) -> Any:
        data = self._module.from_dict(dict(groups), **labels)
        data["posterior"].attrs.update(attrs)
        return data


def _arviz() -> _ArviZ:
    """Load ArviZ and return it behind one face; versions are told apart here and nowhere else."""
    with warnings.catch_warnings():
        # ArviZ 0.22 and 0.23 announce 1.0, once a day.
        warnings.filterwarnings("ignore", message="\\s*ArviZ is undergoing a major refactor")
        import arviz
    modern = int(str(arviz.__version__).partition(".")[0]) >= 1
    return _Modern(arviz) if modern else _Legacy(arviz)


def _checked(samples: Any) -> Samples:
    if not isinstance(samples, Samples):
        raise ArgumentTypeError(f"samples must be Samples, got {type(samples).__name__}")
    return samples


def _groups(samples: Samples) -> dict[str, dict[str, Any]]:
    """Return the groups of ArviZ's container that there are, each its variables by name."""
    posterior: dict[str, Any] = {"count": samples.counts}
    if samples.target is not None:
        posterior = {"target": samples.target, **posterior}
    data = {"observed_data": samples.observed, "constant_data": samples.constants}
    return {"posterior": posterior} | {
        group: {name: np.asarray(value) for name, value in variables.items()}
        for group, variables in data.items()
        if variables
    }


def to_arviz(samples: Samples) -> Any:
    """Return draws as ArviZ keeps them, for its own functions and for files.

    Parameters
    ----------
    samples : Samples
        Draws of one of the samplers.

    Returns
    -------
    arviz.InferenceData or xarray.DataTree
        The former on ArviZ 0.x, the latter on 1.x.  Group ``posterior``: ``target`` with
        dimensions chain, draw, and ``count`` with chain, draw, level (or node); origin, seed and
        versions in its attributes.  Group ``observed_data``: what was released, ``noisy_count``
        with level (or node), and ``noisy_siblings``.  Group ``constant_data``: what was known
        without the release, such as ``precision`` (rho over the squared sensitivity), ``prior`` and
        ``known_count``.  There is no ``sample_stats``: a Gibbs sampler accepts every move.

    Examples
    --------
    >>> from bayesrisk import TwoLevels
    >>> question = TwoLevels(n_siblings=27, rho_block=0.1, rho_group=0.25, prior=0.5)
    >>> samples = question.sample(2, 1, -1, draws=50, warmup=10, chains=2, rng=1)
    >>> to_arviz(samples)["posterior"]["count"].dims
    ('chain', 'draw', 'level')
    """
    draws = _checked(samples)
    attrs = {
        "inference_library": "bayesrisk",
        "inference_library_version": draws.versions["bayesrisk"],
        "sampler": draws.sampler,
        "tuning_steps": draws.warmup,
        "spec": json.dumps(dict(draws.spec), default=str),
        "seed": json.dumps(dict(draws.seed), default=str),
    }
    groups = _groups(draws)
    dims = {
        name: [draws.dimension]
        for group, variables in groups.items()
        for name, value in variables.items()
        if name == "count" or (group != "posterior" and value.ndim)
    }
    coords = {draws.dimension: list(draws.labels)}
    return _arviz().pack(groups, attrs, coords=coords, dims=dims)


@displayed
@dataclass(frozen=True)
class Diagnosis:
    """Whether chains agree and have moved enough, for each variable and in a verdict.

    Attributes
    ----------
    variables : tuple of str
        ``target``, if there is one, and the levels or nodes.
    mean, mcse : ndarray
        Mean of the draws and its Monte Carlo standard error.
    r_hat : ndarray
        Rank-normalised split R-hat; NaN where it has no meaning.
    ess_bulk, ess_tail : ndarray
        Effective number of draws for the centre and for the 5 % and 95 % quantiles; NaN for a
        constant.
    constant : ndarray of bool
        All draws of all chains are equal: nothing can be said about convergence.
    verdict : str
        ``"converged"`` or ``"not converged"``.
    reasons : tuple of str
        Why not; empty if converged.
    notes : tuple of str
        What the verdict does not cover, such as constant variables.
    chains, draws : int
        What was diagnosed.
    arviz_version : str
        Version of ArviZ that computed the numbers.
    """

    variables: tuple[str, ...]
    mean: FloatArray
    mcse: FloatArray
    r_hat: FloatArray
    ess_bulk: FloatArray
    ess_tail: FloatArray
    constant: NDArray[np.bool_]
    verdict: str
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    chains: int
    draws: int
    arviz_version: str

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each variable.

        Returns
        -------
        pandas.DataFrame
            A column for each number, indexed by ``variable``.
        """
        columns = ("mean", "mcse", "r_hat", "ess_bulk", "ess_tail", "constant")
        return pd.DataFrame(
            {name: getattr(self, name) for name in columns},
            index=pd.Index(self.variables, name="variable"),
        )


def _numbers(arviz: _ArviZ, draws: NDArray[Any]) -> tuple[float, ...]:
    """Return mean, MCSE, R-hat, bulk and tail ESS of one variable that is not constant."""
    nan = float("nan")
    mean = float(draws.mean())
    if draws.shape[1] < _FEWEST_DRAWS or np.all(draws == draws.flat[0]):
        return mean, nan, nan, nan, nan
    moving = bool(np.any(draws != draws[:, :1]))
    r_hat = nan if draws.shape[0] < 2 else np.inf
    if moving and draws.shape[0] > 1:
        r_hat = arviz.statistic("rhat", draws)
    if not moving:  # every chain sits at a place of its own
        return mean, nan, r_hat, float(draws.shape[0]), float(draws.shape[0])
    return (
        mean,
        arviz.statistic("mcse", draws),
        r_hat,
        arviz.statistic("ess", draws, method="bulk"),
        arviz.statistic("ess", draws, method="tail", prob=_TAILS),
    )


class ChainNumbers(NamedTuple):
    """Diagnostics of one variable."""

    mean: float
    mcse: float
    r_hat: float
    bulk: float
    tail: float


def chain_numbers(draws: NDArray[Any]) -> ChainNumbers:
    """Return mean, MCSE, R-hat, bulk and tail ESS of one variable, draws (chains, draws)."""
    return ChainNumbers(*_numbers(_arviz(), draws))


def mean_r_hat(draws: NDArray[Any]) -> float:
    """Return split R-hat of the mean, draws (chains, draws) of at least two chains.

    It has no ranks: what is asked is whether chains agree in the mean of their draws, not in
    differences that are too small to matter for it.
    """
    if np.all(draws == draws[:, :1]):
        return float("nan") if np.all(draws == draws.flat[0]) else float("inf")
    return _arviz().statistic("rhat", draws, method="split")


def _stuck_chains(arviz: _ArviZ, draws: NDArray[Any]) -> list[int]:
    """Return the chains that never moved although the others say that they should have."""
    still = np.all(draws == draws[:, :1], axis=1)
    if still.all() or not still.any():
        return list(range(len(draws))) if still.all() else []
    moving = draws[~still]
    per_chain = arviz.statistic("ess", moving, method="bulk") / len(moving)
    suspects = []
    for chain in np.flatnonzero(still):
        share = float((moving == draws[chain, 0]).mean())
        if share ** max(per_chain, 1.0) < _SURPRISE:
            suspects.append(int(chain))
    return suspects


def _reasons(
    name: str,
    numbers: tuple[float, ...],
    stuck: list[int],
    chains: int,
    max_rhat: float,
    min_ess: float,
) -> list[str]:
    """Return what speaks against convergence of one variable."""
    _, _, r_hat, bulk, tail = numbers
    found = []
    if len(stuck) == chains:
        found.append(f"{name}: no chain ever moved, and they stand at different counts")
    elif stuck:
        shown = ", ".join(map(str, stuck))
        found.append(f"{name}: chain {shown} never moved, and the others did")
    if r_hat > max_rhat:
        found.append(f"{name}: R-hat {r_hat:.3g} > {max_rhat:g}, the chains disagree")
    for kind, size in (("bulk", bulk), ("tail", tail)):
        if not size >= min_ess:
            found.append(f"{name}: {kind} ESS {size:.0f} < {min_ess:.0f}")
    return found


def diagnose(
    samples: Samples, *, max_rhat: float = 1.01, min_ess_per_chain: float = 100.0
) -> Diagnosis:
    r"""Return the diagnostics of draws, and a verdict with its reasons.

    The chains have converged, as far as draws can tell, if for each variable the rank-normalised
    split :math:`\hat R \le 1.01`, bulk and tail ESS are at least 100 for each chain, and no
    chain stands still where the others move.

    Parameters
    ----------
    samples : Samples
        Draws of one of the samplers.
    max_rhat : float, default 1.01
        Largest R-hat accepted, > 1.  The default is that of the reference.
    min_ess_per_chain : float, default 100.0
        Smallest bulk and tail ESS accepted, times the number of chains, > 0; as in the reference.

    Returns
    -------
    Diagnosis
        Numbers for each variable and the verdict.

    Notes
    -----
    A variable whose draws are all equal has no R-hat: its law may be a point, or nothing ever
    moved.  It is noted and left out of the verdict, unless every variable is so.  One chain alone
    is never called converged.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), Bayesian Analysis 16(2), 667-718.

    Examples
    --------
    >>> from bayesrisk import TwoLevels
    >>> question = TwoLevels(n_siblings=27, rho_block=0.1, rho_group=0.25, prior=0.5)
    >>> samples = question.sample(2, 1, -1, draws=1000, warmup=100, chains=4, rng=1)
    >>> diagnose(samples).verdict
    'converged'
    """
    _checked(samples)
    largest = check.scalar(max_rhat, "max_rhat", lower=1.0, bounds="()")
    smallest = check.scalar(min_ess_per_chain, "min_ess_per_chain", lower=0.0, bounds="()")
    if samples.draws < _FEWEST_DRAWS:
        raise ShapeError(f"samples must have at least {_FEWEST_DRAWS} draws, got {samples.draws}")
    arviz = _arviz()
    variables = {} if samples.target is None else {"target": samples.target}
    variables |= {label: samples.counts[:, :, i] for i, label in enumerate(samples.labels)}
    rows, reasons, notes, constant = [], [], [], []
    for name, draws in variables.items():
        numbers = _numbers(arviz, draws)
        rows.append(numbers)
        constant.append(bool(np.all(draws == draws.flat[0])))
        if constant[-1]:
            notes.append(f"{name}: every draw is {draws.flat[0]}; R-hat has no meaning")
            continue
        stuck = _stuck_chains(arviz, draws)
        reasons += _reasons(
            name, numbers, stuck, samples.chains, largest, smallest * samples.chains
        )
    if all(constant):
        reasons.append("every variable is constant: nothing ever moved")
    if samples.chains == 1:
        reasons.append("one chain cannot be compared with another: run at least two")
    mean, mcse, r_hat, bulk, tail = np.array(rows, dtype=float).T
    return Diagnosis(
        variables=tuple(variables),
        mean=mean,
        mcse=mcse,
        r_hat=r_hat,
        ess_bulk=bulk,
        ess_tail=tail,
        constant=np.array(constant),
        verdict="not converged" if reasons else "converged",
        reasons=tuple(reasons),
        notes=tuple(notes),
        chains=samples.chains,
        draws=samples.draws,
        arviz_version=arviz.version,
    )
