"""Average risk of a target that is alone in its category at several levels (S1.3).

The posterior depends on the releases only through the total evidence E = sum_l rho_l (2 eta_l + 1),
so only its law is needed. That law has irrational atoms, too many to list. But it is integrated
against one function, 1 / (p + (1 - p) exp(-E)), which is analytic in the strip |Im E| < pi. So each
atom may be replaced by the weights of polynomial interpolation on a grid of spacing 1/10, with no
error above rounding. The levels then combine by plain convolution, at a cost linear in their
number.
"""

from __future__ import annotations

import numpy as np

from bayesrisk._base import validation as check
from bayesrisk._base.validation import FloatArray, IntArray, Number
from bayesrisk.answers import Belief
from bayesrisk.distributions import DiscreteGaussian, Noise
from bayesrisk.distributions.discrete_laplace import noise_precision
from bayesrisk.distributions.kernels import REACH
from bayesrisk.exceptions import ShapeError
from bayesrisk.risk.count.averages import SMOOTH, STEP, marginal_excess
from bayesrisk.risk.count.blocks import DecisionAccuracy, combine
from bayesrisk.risk.count.evidence import EvidenceLaw, levels_law

_Grid = tuple[int, FloatArray]
_Term = tuple[FloatArray, FloatArray]

# Interpolation error, relative: 2 / pi**17 * 0.1**16 * (15!! / 2**8)**2 = 5e-17 (two poles at a
# distance of pi from the real line, sixteen points around each atom).
_SPACING = 0.1
_POINTS = 16
_NODES = np.arange(_POINTS) - (_POINTS // 2 - 1)
_BARYCENTRIC = np.array([1.0 / np.prod([float(a - b) for b in _NODES if a != b]) for a in _NODES])
# Evidence of one level beyond which the adversary is certain: exp(-900) is below 1e-300**1.3.
_CERTAIN = 900.0
_LEFT_OUT = 1e-15
_CHUNK = 2**16


def _on_grid(atoms: FloatArray, weights: FloatArray) -> _Grid:
    """Return weights on the grid that replace a discrete measure, and the first index."""
    position = atoms / _SPACING
    base = np.floor(position)
    distance = (position - base)[:, None] - _NODES
    exact = distance == 0.0
    factors = _BARYCENTRIC / np.where(exact, 1.0, distance)
    on_node = exact.any(axis=1, keepdims=True)
    factors = np.where(on_node, exact, factors)
    spread = factors * (weights / factors.sum(axis=1))[:, None]
    index = base.astype(np.int64)[:, None] + _NODES
    first = int(index.min())
    size = int(index.max()) - first + 1
    gridded = np.bincount((index - first).ravel(), weights=spread.ravel(), minlength=size)
    return first, np.asarray(gridded, dtype=np.float64)


def _level(rho: float) -> _Term:
    """Return values and probabilities of rho (2 eta + 1), eta ~ N_Z(0, 1 / (2 rho))."""
    last = np.floor(1.0 + np.sqrt(REACH / rho))
    eta = np.arange(-last, last + 1.0)
    weight = np.exp(-rho * eta**2)
    return rho * (2.0 * eta + 1.0), weight / weight.sum()


def _smooth_levels(total: float) -> _Term:
    """Return a quadrature of N(total, 2 total), the law of all levels of small rho together.

    Each differs from its continuous counterpart by less than 1e-17 under an analytic integrand
    (Poisson summation, as in ``marginal_ratio``). So does the trapezoidal rule used here. Its
    exponent 2 pi**2 / (step deviation) - (pi / deviation)**2 / 2 is at least REACH. If the poles
    are farther off than half a period, it is the Gaussian's own, 2 pi**2 / step**2.
    """
    deviation = float(np.sqrt(2.0 * total))
    step = STEP
    if step < 2.0 * deviation:
        poles = 2.0 * np.pi**2 / (deviation * (REACH + 0.5 * (np.pi / deviation) ** 2))
        step = min(step, poles)
    last = np.floor((np.sqrt(2.0 * REACH) + deviation) / step)
    z = step * np.arange(-last, last + 1.0)
    weight = np.exp(-0.5 * z**2)
    return total + deviation * z, weight / weight.sum()


def _evidence(precision: FloatArray) -> _Term:
    """Return values and weights that represent the evidence if the target is there.

    The windows also suffice without the target: there the evidence has the law of minus these
    values.
    """
    smooth = precision < SMOOTH
    terms = [_level(float(rho)) for rho in precision[~smooth]]
    if smooth.any():
        terms.append(_smooth_levels(float(precision[smooth].sum())))
    return terms[0] if len(terms) == 1 else _sum([_on_grid(*term) for term in terms])


def _sum(grids: list[_Grid]) -> _Term:
    """Return values and weights of a sum of independent terms on the grid."""
    first, weights = grids[0]
    for start, other in grids[1:]:
        first, weights = first + start, np.convolve(weights, other)
    return _SPACING * np.arange(first, first + weights.size, dtype=np.float64), weights


def _averaged(term: _Term, prior: FloatArray) -> FloatArray:
    """Return the average risk ratio over a law of the evidence, for each prior."""
    evidence, weights = term
    with np.errstate(over="ignore", under="ignore"):
        decay = np.exp(-evidence)
        ratios = [(weights / (p + (1.0 - p) * decay)).sum() for p in prior]
    return np.minimum(ratios, 1.0 / prior)


def ratio_of_others(levels: FloatArray, prior: float) -> float:
    """Return the average risk ratio if the target is not there."""
    if levels.max() >= _CERTAIN:
        return 0.0
    values, weights = _evidence(levels)
    return float(_averaged((-values, weights), np.array([prior]))[0])


def excess_ratio(rho: float, prior: float, levels: int) -> float:
    """Return the marginal risk ratio of ``levels`` levels of one rho, minus 1."""
    if levels == 1 or levels * rho < SMOOTH:
        return float(marginal_excess(levels * rho, prior))
    values, weights = _evidence(np.full(levels, rho))
    decay, rest = np.exp(-np.abs(values)), np.expm1(-np.abs(values))
    with np.errstate(divide="ignore"):
        without = np.sign(weights) * np.exp(np.log(np.abs(weights)) - np.minimum(values, 0.0))
    below = rest**2 / (prior * decay + (1.0 - prior))
    above = rest**2 / (prior + (1.0 - prior) * decay)
    return float((1.0 - prior) ** 2 * (without @ np.where(values < 0.0, below, above)))


def average_ratio(law: EvidenceLaw, prior: float) -> float:
    """Return the average risk ratio over a law of the evidence, at linear cost."""
    grids = []
    for values, weights in ((law.first, law.weights), (law.second, law.masses)):
        low = int(np.floor(values[0] / _SPACING)) + int(_NODES[0])
        high = int(np.floor(values[-1] / _SPACING)) + int(_NODES[-1])
        whole = np.zeros(high - low + 1)
        for index in range(0, values.size, _CHUNK):
            start, part = _on_grid(values[index : index + _CHUNK], weights[index : index + _CHUNK])
            whole[start - low : start - low + part.size] += part
        grids.append((low, whole))
    return float(_averaged(_sum(grids), np.array([prior]))[0])


def multilevel_marginal_posterior(*, noise: Noise | DiscreteGaussian, prior: Number) -> Belief:
    r"""Return the posterior from several levels, averaged over releases given the truth.

    .. math:: E\big[\operatorname{expit}(\operatorname{logit} p
        + \sum_l \rho_l (2\eta_l + 1))\big], \quad \eta_l \sim N_\mathbb{Z}(0, 1 / 2\rho_l)

    The target is known to be the only person in question at every level, or the same count is
    released several times. Source: Kazan and Reiter (arXiv:2204.04253), supplement S1.3 and Figure
    7.

    Parameters
    ----------
    noise : Noise or DiscreteGaussian, shape (..., levels)
        Noise of each level: a zCDP budget, ``Noise(rho=[...])``, or a law.
    prior : array_like, shape (...)
        Probability of the truth, in (0, 1).

    Returns
    -------
    Belief
        Prior and average posterior, in [p, 1], of shape (...). The relative error of the ratio, the
        average risk, is about (5 + 3 sum(rho)) 2**-52 if sum(rho) < 900. Above that the ratio is 1
        / p without error.

    Examples
    --------
    >>> from bayesrisk import Noise
    >>> levels = Noise(rho=[0.0992264, 0.2464845])
    >>> belief = multilevel_marginal_posterior(noise=levels, prior=0.1)
    >>> round(belief.posterior, 6), round(belief.ratio, 6)
    (0.162837, 1.628373)
    """
    p, shape, groups = _by_levels(noise, prior)
    out = np.empty(int(np.prod(shape)))
    for levels, members, priors in groups:
        certain = levels.max() >= _CERTAIN
        out[members] = 1.0 / priors if certain else _averaged(_evidence(levels), priors)
    return Belief(p, np.minimum(out.reshape(shape) * p, 1.0))


def _by_levels(
    noise: Noise | DiscreteGaussian, prior: Number
) -> tuple[FloatArray, tuple[int, ...], list[tuple[FloatArray, IntArray, FloatArray]]]:
    """Return priors, the broadcast shape, and each distinct row of levels with its positions."""
    precision = noise_precision(noise)
    p = check.probability(prior, "prior")
    if precision.ndim == 0:
        raise ShapeError("noise must have an axis of levels, got one number")
    shape = check.broadcast(noise=precision[..., 0], prior=p)
    count = precision.shape[-1]
    rows = np.broadcast_to(precision, (*shape, count)).reshape(-1, count)
    distinct, index = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(index.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(index.ravel(), minlength=len(distinct)))
    priors = np.broadcast_to(p, shape).ravel()
    members = np.split(order, ends[:-1])
    return p, shape, [(r, m, priors[m]) for r, m in zip(distinct, members, strict=True)]


def multilevel_decision_accuracy(
    *, noise: Noise | DiscreteGaussian, prior: Number
) -> DecisionAccuracy:
    r"""Return the rates at which the best guess from several levels is right, and finds targets.

    The adversary guesses "present" if the posterior from all levels is at least 1/2. That holds if
    the evidence E reaches log((1 - p) / p):

    .. math:: p\, P(E_+ \ge \log\tfrac{1-p}{p}) + (1 - p)\, P(E_- < \log\tfrac{1-p}{p}),
        \quad E_\pm = \sum_l \rho_l (2 \eta_l \pm 1)

    A posterior of exactly 1/2 (at p = 1/2, with levels of equal noise) is decided by a fair coin.
    Source: Kazan and Reiter (arXiv:2204.04253), equations (3.5) and (3.6) and supplement S1.3.

    Parameters
    ----------
    noise, prior
        As for :func:`multilevel_marginal_posterior`; p is the probability that the target is
        present.

    Returns
    -------
    DecisionAccuracy
        Rates of shape (...), with absolute error at most 1e-12. The evidence of each half of the
        levels is listed, at most 2**22 values.

    Examples
    --------
    >>> from bayesrisk import Noise
    >>> levels = Noise(rho=[0.0992264, 0.2464845])
    >>> result = multilevel_decision_accuracy(noise=levels, prior=[1 / 2, 1 / 5])
    >>> result.found.round(5).tolist(), result.accuracy.round(5).tolist()
    ([0.66132, 0.10598], [0.66132, 0.8062])
    """
    p, shape, groups = _by_levels(noise, prior)
    halves = np.empty((2, int(np.prod(shape))))
    for levels, members, priors in groups:
        limits = (np.log1p(-priors) - np.log(priors)).tolist()
        for half, present in zip(halves, (True, False), strict=True):
            law = levels_law(levels, present=present, left_out=_LEFT_OUT)
            half[members] = [law.reached(limit, present=present) for limit in limits]
    detected, cleared = np.minimum(halves, 1.0).reshape(2, *shape)
    return combine(p, detected, cleared)
