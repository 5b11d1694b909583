"""The question of two levels: what an adversary learns of a block from it and its group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesrisk import _validation as check
from bayesrisk._show import Tabular, displayed
from bayesrisk._validation import FloatArray, IntArray
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError, ShapeError
from bayesrisk.inference.sampling.chains import Samples
from bayesrisk.inference.sampling.tree import sample_two_levels
from bayesrisk.inference.two_levels import model
from bayesrisk.inference.two_levels.posterior import (
    ApproximationCost,
    HierarchicalPosterior,
    TwoLevelSettings,
    approximation_cost,
    posterior_given,
)
from bayesrisk.risk.count.accuracy import EvidenceLaw
from bayesrisk.risk.count.several_levels import RiskDistribution, ratio_of
from bayesrisk.risk.two_levels import averages as grid
from bayesrisk.risk.two_levels.averages import (
    AverageAnswer,
    HierarchicalRisk,
    accuracy_of,
    average_of,
    evaluate,
    read_question,
)

# -----------------------------------------------------------------------------
# The law of the risk ratio over the releases of two levels: enumerated, not averaged.


_SILENCE = (np.zeros(1), np.ones(1))
# Evidence beyond this is certainty in double precision.
_CERTAIN = 745.0


def _result(
    settings: model.Settings, given: str, laws: tuple[tuple[float, EvidenceLaw], ...]
) -> RiskDistribution:
    p = settings.prior.item()
    mean = sum(w * law.average(partial(ratio_of, prior=p)) for w, law in laws)
    return RiskDistribution(p, given, mean, grid.TRUNCATION, laws)


def _over_prior(known: TwoLevelSettings) -> RiskDistribution:
    """Return the law over releases as the adversary expects them: P(x) P(N), N >= x."""
    settings = known.checked
    if settings.published:
        model.warn_if_published(settings, stacklevel=4)
        raise ArgumentError(
            "group_count must be given with conditionals='as-published', which have no joint law"
        )
    if settings.group_prior.flat:
        raise ArgumentError("group_count must be given, or group_prior: the flat one is improper")
    sizes = {name: array.size for name, array in known.arrays.items()}
    if max(sizes.values()) > 1:
        raise ShapeError(f"a distribution belongs to one setting, got sizes {sizes}")
    p, table = settings.prior.item(), settings.group_prior
    first = table.start - settings.known_count.item()
    mass = np.exp(table.log_pmf)
    laws = []
    for target, share in ((1, p), (0, 1.0 - p)):
        counts = np.flatnonzero((mass > 0.0) & (first + np.arange(mass.size) >= target))
        if counts.size:
            truths = [grid.Truth(target, first + int(i)) for i in counts]
            weight = mass[counts]
            law = _law(settings, truths, weight / weight.sum())
            laws.append((share * float(weight.sum()), law))
    total = sum(weight for weight, _ in laws)
    return _result(settings, "prior", tuple((weight / total, law) for weight, law in laws))


def _law(settings: model.Settings, truths: list[grid.Truth], weights: FloatArray) -> EvidenceLaw:
    """Return the law of the evidence, releases of group and siblings mixed over the truths.

    Given the block's count its own release is independent of the others, and its evidence adds
    to theirs; under the published conditionals nothing adds up, and all releases are listed.
    """
    around = grid.around(settings, truths)
    grid.check_size(around)
    joint = np.zeros((around.group.size, around.siblings.size))
    for truth, weight in zip(truths, weights.tolist(), strict=True):
        part = around.part(truth, settings)
        joint[part] += weight * np.outer(around.group_pmf, around.siblings_pmf)
    i, j = np.nonzero(joint)
    n, total, mass = around.group[i].astype(float), around.siblings[j].astype(float), joint[i, j]
    noise, pmf = grid.block_noise(settings)
    d = noise.astype(np.float64) + float(truths[0].target if settings.block else 0)
    if not settings.published:
        others = model.group_evidence(settings, n, total)
        others = np.clip(np.broadcast_to(others, n.shape), -_CERTAIN, _CERTAIN)
        alone = np.broadcast_to(model.block_evidence(settings, d), d.shape)
        return EvidenceLaw((others, mass), (alone, pmf))
    if n.size * d.size > grid.MAX_CELLS:
        raise ArgumentError(
            f"conditionals='as-published' must leave at most {grid.MAX_CELLS} releases to list, "
            f"got {n.size * d.size}"
        )
    posterior = model.target_probability(settings, d, n[:, None], total[:, None])
    p = settings.prior.item()
    with np.errstate(divide="ignore"):
        odds = np.log(posterior) - np.log1p(-posterior) - (np.log(p) - np.log1p(-p))
    values = np.clip(odds, -_CERTAIN, _CERTAIN).ravel()
    return EvidenceLaw((values, np.multiply.outer(mass, pmf).ravel()), _SILENCE)


# -----------------------------------------------------------------------------
# What the hierarchy changes: decisions gained and lost against the adversary without it.


@displayed
@dataclass(frozen=True)
class HierarchicalGain(AverageAnswer, Tabular):
    """Decisions that the group's and the siblings' counts set right, and that they spoil.

    Attributes
    ----------
    question : Question
        Truth and settings, checked.
    gain, loss : ndarray
        Probability of the releases that are read rightly with the hierarchy and wrongly without,
        and of those read wrongly with it and rightly without.
    with_hierarchy, without_hierarchy : ndarray
        Probability of a correct decision; the difference is ``net``.
    """

    gain: FloatArray
    loss: FloatArray
    with_hierarchy: FloatArray
    without_hierarchy: FloatArray

    @property
    def net(self) -> FloatArray:
        """Gain minus loss."""
        return self.gain - self.loss

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each truth and setting."""
        names = ("gain", "loss", "net", "with_hierarchy", "without_hierarchy")
        return self.settings.assign(**{name: np.ravel(getattr(self, name)) for name in names})

    def decision_map(self, block: ArrayLike, group: ArrayLike, siblings: ArrayLike) -> pd.DataFrame:
        """Return the decision for every combination of releases (Figure 4 of Kazan and Reiter).

        One row for each (y, n, S): ``decision`` and ``decision_without`` (the guessed block count;
        k + 1 at a tie), ``change`` ("none", "gain" or "loss"; "tie" where a coin decides for one
        of the two adversaries) and ``probability`` of the release given the truth.
        """
        if self.gain.size != 1:
            raise ArgumentError(
                f"decision_map needs a result for one setting, got {self.gain.size}"
            )
        settings, truths, _ = next(self.question.groups())
        axes = [
            np.unique(check.count_array(values, name).ravel())
            for values, name in ((block, "block"), (group, "group"), (siblings, "siblings"))
        ]
        mesh = np.meshgrid(*axes, indexing="ij")
        d, n, total = model.relative_releases(settings, *mesh)
        low, high = model.thresholds(settings, n[:1], total[:1])
        alone = grid.block_thresholds(settings)
        with_, without = d >= low, d >= alone[0]
        tied = (with_ & (d < high)) | (without & (d < alone[1]))
        if self.question.ties == "as-published":
            tied = np.zeros_like(tied)
        right = bool(truths[0].target)
        change = np.select(
            [tied, (with_ == right) & (without != right), (with_ != right) & (without == right)],
            ["tie", "gain", "loss"],
            "none",
        )
        k = settings.known_count.item()
        columns = {
            "block": mesh[0],
            "group": mesh[1],
            "siblings": mesh[2],
            "decision": k + with_.astype(int),
            "decision_without": k + without.astype(int),
            "change": change,
            "probability": _release_probability(settings, truths[0], axes),
        }
        return pd.DataFrame({name: array.ravel() for name, array in columns.items()})


def _release_probability(
    settings: model.Settings, truth: grid.Truth, axes: list[IntArray]
) -> FloatArray:
    """Return the probability of each (y, n, S) given the truth; what is silent has factor 1."""
    k = settings.known_count.item()
    laws = ((settings.block, k + truth.target), (settings.group, k + truth.group))
    factors = [
        np.asarray(DiscreteGaussian(0.5 / precision, int(centre)).pmf(axis))
        if precision > 0.0
        else np.ones(axis.size)
        for (precision, centre), axis in zip(laws, axes[:2], strict=True)
    ]
    noise, pmf = grid.siblings_noise(settings)
    distance = axes[2] - (truth.group - truth.target)
    inside = (distance >= noise[0]) & (distance <= noise[-1])
    position = np.where(inside, distance - noise[0], 0)
    silent = bool(settings.block == 0.0)
    factors.append(np.ones(axes[2].size) if silent else np.where(inside, pmf[position], 0.0))
    return np.asarray(factors[0][:, None, None] * factors[1][:, None] * factors[2])


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoLevels(TwoLevelSettings):
    """The question of two levels: a target's block, the group around it and its other blocks.

    Stated once, it is asked in several ways: what one release says (:meth:`posterior`,
    :meth:`sample`), and, with the truth, what releases say on average (:meth:`average`), how often
    they say how much (:meth:`distribution`) and how often a guess is right
    (:meth:`correct_decision`, :meth:`accuracy`, :meth:`gain`).  The methods with a truth are the
    auditor's: an adversary has no ``group_count`` to give.

    The truth is ``group_count``, the group's count N*, at most 2**51 (the ``known_total``, or
    possible under ``group_prior``, which is not asked for with the published conditionals), and
    possible under ``group_prior``, which is not asked for with the published conditionals), and
    ``block_count``, the block's X*: ``known_count``, or one more, which is the default.  Releases
    are enumerated, at most 2**24 pairs (n, S).  A posterior of exactly 1/2 is decided by a fair
    coin, or with ``ties="as-published"`` always for k + 1, as in (3.5) of Kazan and Reiter.
    Released counts may be negative.  Source: Kazan and Reiter, sections 3.2 and 4.3, supplement S2
    to S4.

    Attributes
    ----------
    n_siblings : array_like of int
        Number m of other blocks in the group, in [1, 10**9]; for averages at most 10**4 where
        ``rho_block / sensitivity**2 > 1/8``.
    rho_block : array_like
        zCDP budget of every block count, in [0, 1e100]; at 0 neither the block nor its siblings
        are released.  For averages 0 or at least 1e-30.
    rho_group : array_like
        zCDP budget of the group count, with the same bounds.
    prior : array_like
        Probability p that the target has the characteristics, in (0, 1).
    known_count : array_like of int, default 0
        Others in the block known to have them, k: the true block count is k or k + 1.
    group_prior : CountLaw, optional
        The adversary's prior on the group count: any law with finite support.  By default flat on
        0, 1, 2, ...
    known_total : int, optional
        Group count that is published without noise (an invariant), above every ``known_count``.
        It holds with and without the target: see :func:`hierarchical_posterior`.
    sensitivity : array_like, default 1.0
        L2 sensitivity that both budgets refer to: ``sigma2 = sensitivity**2 / (2 rho)``.
    conditionals : {"coherent", "as-published"}, default "coherent"
        As for :func:`hierarchical_posterior`; ``"as-published"`` warns with
        ``IncompatibleConditionalsWarning`` at every question.
    sibling_noise : {"approximate", "exact"}, default "approximate"
        The law that the adversary takes for the siblings' noise.  In averages the noise itself is
        always the sum of m draws.

    Examples
    --------
    >>> question = TwoLevels(n_siblings=27, rho_block=0.0992264, rho_group=0.2464845, prior=0.5)
    >>> question.posterior(2, 1, -1).belief
    Belief: 0.5 before the release, 0.5033 after it (1.007 times as probable)
    >>> risk = question.average(group_count=10)
    >>> round(float(risk.value), 6), round(float(risk.without_hierarchy), 6)
    (0.52449, 0.523666)
    >>> question.correct_decision(group_count=[1, 10]).value.round(6).tolist()
    [0.318191, 0.589726]
    >>> question.accuracy(group_count=[1, 10]).value.round(4).tolist()
    [0.6037, 0.5897]
    >>> result = question.gain(group_count=10)
    >>> round(float(result.gain), 5), round(float(result.loss), 5)
    (0.02019, 0.01932)
    """

    def posterior(
        self, block: ArrayLike, group: ArrayLike, siblings: ArrayLike
    ) -> HierarchicalPosterior:
        """Return the posterior of releases, as :func:`hierarchical_posterior` does."""
        model.warn_if_published(self.checked)
        return posterior_given(self, block, group, siblings)

    def approximation_cost(
        self, block: ArrayLike, group: ArrayLike, siblings: ArrayLike
    ) -> ApproximationCost:
        r"""Return the cost of replacing the siblings' noise by one discrete Gaussian.

        The two laws differ by a factor of period m in the distance d and by nothing else:
        :math:`g_m(d) = e^{-\rho d^2 / m} e^{r(d)}`, :math:`r(d + m) = r(d)`, because adding one to
        each of m terms takes d to d + m and the sum of their squares q to q + 2 d + m.
        """
        model.warn_if_published(self.checked)
        return approximation_cost(self, block, group, siblings)

    def sample(
        self,
        block: int,
        group: int,
        siblings: int,
        *,
        draws: int,
        warmup: int,
        chains: int,
        rng: np.random.Generator | int,
        threads: int | None = None,
    ) -> Samples:
        r"""Sample the posterior of the block's and the group's count by Gibbs sampling.

        .. math::

            x \mid N &\sim \text{Bernoulli on } \{k, k + 1\}, \quad \text{odds } \frac{p}{1-p}\,
            e^{\rho_1 (2(y - k) - 1) + (\rho_1/m)(2(N - S - k) - 1)}\, 1[N \ge k + 1] \\
            N \mid x &\propto P(N)\, e^{-\tau (N - \mu_x)^2}\, 1[N \ge x], \quad
            \tau = \rho_2 + \frac{\rho_1}{m}, \quad
            \mu_x = \frac{\rho_2 n + (\rho_1 / m)(S + x)}{\tau}

        The exact posterior's independent check: settings are single numbers here, and the siblings'
        noise is one discrete Gaussian whatever ``sibling_noise`` says.  The published conditionals
        drop the indicator from x given N: a replication, the posterior of no model.

        ``draws`` and ``warmup`` are sweeps kept and discarded in each of ``chains`` chains, at most
        1e8; 2**28 numbers are kept in all (2 GiB).  Each chain gets a child of ``rng``; draws do
        not depend on ``threads``.  Counts whose weight is below e**-50 of the largest are left out.

        From any x, N given x covers N >= k + 1, from where both x are possible: every feasible
        state is reached in one sweep.  Chains start at x = k and x = k + 1 in turn.
        """
        model.warn_if_published(self.checked)
        return sample_two_levels(
            self,
            (block, group, siblings),
            draws=draws,
            warmup=warmup,
            chains=chains,
            rng=rng,
            threads=threads,
        )

    def average(
        self, group_count: ArrayLike, *, block_count: ArrayLike | None = None
    ) -> HierarchicalRisk:
        r"""Return the posterior of the true block count, averaged over releases given the truth.

        .. math:: \sum_{y, n, S} f_1(y - X^*)\, f_2(n - N^*)\, f_m(S - N^* + X^*)\,
            P(X = X^* \mid y, n, S)

        Divided by the prior of the truth it is the marginal risk.
        """
        return average_of(read_question(self, group_count, block_count), decision=False)

    def distribution(
        self, group_count: ArrayLike | None = None, *, block_count: ArrayLike | None = None
    ) -> RiskDistribution:
        r"""Return the law of the risk ratio over releases: how often it exceeds a limit, quantiles.

        .. math:: P\Big(\frac{P(X = k + 1 \mid y, n, S)}{p} > r \,\Big|\, X^*, N^*\Big)

        The ratio is that of the target's being there, whichever count is true; given X* = k + 1
        its mean is the value of :meth:`average` over p.  Without ``group_count`` releases are those
        that the adversary expects: the counts follow p and ``group_prior`` or ``known_total``, one
        of which must be given; the mean is then 1 where ``group_prior`` allows no count below
        ``known_count + 1`` and the siblings' noise is exact.

        Examples
        --------
        >>> question = TwoLevels(n_siblings=27, rho_block=0.0992264, rho_group=0.2464845, prior=0.1)
        >>> law = question.distribution(group_count=10)
        >>> print(round(law.exceeds(1.5), 4), round(law.quantile(0.95), 3))
        0.2162 2.064
        """
        if group_count is None:
            if block_count is not None:
                raise ArgumentError("block_count needs a group_count, got none")
            return _over_prior(self)
        question = read_question(self, group_count, block_count)
        if question.shape != ():
            raise ShapeError(f"a distribution belongs to one setting, got shape {question.shape}")
        settings, truths, _ = next(question.groups())
        law = _law(settings, [truths[0]], np.ones(1))
        block, group = (int(question.arrays[name]) for name in ("block_count", "group_count"))
        return _result(settings, f"block {block}, group {group}", ((1.0, law),))

    def correct_decision(
        self, group_count: ArrayLike, *, block_count: ArrayLike | None = None, ties: str = "shared"
    ) -> HierarchicalRisk:
        r"""Return the probability that the target is found by the releases, if it is there.

        .. math:: \sum_{n, S} f_2(n - N^*)\, f_m(S - N^* + X^*)\, P(X^* + \eta \ge t(n, S))

        for X* = k + 1; t(n, S) is the smallest noisy block count at which the posterior of k + 1 is
        at least 1/2.  For X* = k it is the probability that the target is rightly taken not to be
        there, that of staying below the threshold.
        """
        question = read_question(self, group_count, block_count, ties=ties)
        return average_of(question, decision=True)

    def accuracy(self, group_count: ArrayLike, *, ties: str = "shared") -> HierarchicalRisk:
        r"""Return the rate at which the adversary's best guess is right, the target there or not.

        .. math:: p\, P(\text{found} \mid X^* = k + 1, N^*) + (1 - p)\, P(\text{cleared} \mid
            X^* = k, N^* - 1)

        The people of the other blocks are the same in both cases: without the target the group
        counts one less, which ``group_prior`` must allow.  A ``known_total`` counts N* in both, so
        counts one less, which ``group_prior`` must allow.  A ``known_total`` counts N* in both, so
        that the other blocks hold one more without the target.  The value may be below both
        baselines: the adversary is right as often as can be on average over its own prior of the
        group count, not at every true one.
        """
        return accuracy_of(read_question(self, group_count, ties=ties))

    def gain(
        self, group_count: ArrayLike, *, block_count: ArrayLike | None = None, ties: str = "shared"
    ) -> HierarchicalGain:
        """Return the rates of decisions that the hierarchy sets right, and of those it spoils.

        Both adversaries decide for the more probable block count; one reads (y, n, S), the other y
        alone.  A release that only a coin reads rightly counts one half.
        """
        question = read_question(self, group_count, block_count, ties=ties)
        correct, gain, loss = np.moveaxis(evaluate(question, decision=True), -1, 0)
        return HierarchicalGain(question, gain, loss, correct, correct - gain + loss)
