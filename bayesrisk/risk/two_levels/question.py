"""The two-level question: what an adversary learns about a block from it and its group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base.validation import FloatArray
from bayesrisk.exceptions import ArgumentError, ShapeError
from bayesrisk.inference.sampling.chains import Samples
from bayesrisk.inference.sampling.two_levels import sample_two_levels
from bayesrisk.inference.two_levels import model
from bayesrisk.inference.two_levels.model import Settings
from bayesrisk.inference.two_levels.posterior import (
    HierarchicalPosterior,
    TwoLevelSettings,
    settings_posterior,
)
from bayesrisk.risk.count.distribution import RiskDistribution, evidence_ratio
from bayesrisk.risk.count.evidence import EvidenceLaw
from bayesrisk.risk.two_levels.averages import (
    MAX_CELLS,
    TRUNCATION,
    HierarchicalGain,
    HierarchicalRisk,
    Question,
    Truth,
    average_risk,
    block_noise,
    check_size,
    check_truth,
    evaluate,
    grid_around,
    read_question,
    without_hierarchy,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoLevels(TwoLevelSettings):
    """A person in a block, and noisy counts of the block, its group and the group's other blocks.

    The methods ask different questions. :meth:`posterior` and :meth:`sample` say what one release
    tells the adversary. The others need the truth, so they are the auditor's: an adversary has no
    ``group_count``. :meth:`average` is a mean over releases, and :meth:`distribution` gives all
    ratios. :meth:`correct_decision`, :meth:`accuracy` and :meth:`gain` are rates of decisions.

    The truth is ``group_count``, the group's count N*, at most 2**51, and ``block_count``, the
    block's X*. N* is the ``known_total``, or possible under ``group_prior``, which is not checked
    with the published conditionals. X* is ``known_count``, or one more (the default). At most 2**24
    pairs (n, S) of releases are enumerated. A fair coin decides a posterior of exactly 1/2; with
    ``ties="as-published"`` the decision is always k + 1, as in (3.5) of Kazan and Reiter. Source:
    Kazan and Reiter, sections 3.2 and 4.3, supplement S2 to S4.

    Attributes
    ----------
    n_siblings : array_like of int
        Number m of the other blocks in the group, in [1, 10**9]. Averages need m of at most 10**4
        if ``rho_block / sensitivity**2 > 1/8``; their noise is always the sum of m draws.
    rho_block : array_like
        zCDP budget of every block count, in [0, 1e100]. At 0 neither the block nor its siblings are
        released, and ``block`` and ``siblings`` are ignored.
    rho_group : array_like
        zCDP budget of the group count, in [0, 1e100].  At 0 ``group`` is ignored.  For averages
        both budgets are 0 or at least 1e-30.
    prior : array_like
        Probability p that the target has the characteristics, in (0, 1).
    known_count : array_like of int, default 0
        Number k of others in the block who are known to have them.
    group_prior : CountLaw, optional
        Prior on the group count N, with finite support; by default flat on 0, 1, 2, ...
    known_total : int, optional
        Group count N* that is published without noise, above every ``known_count``. The noisy
        ``group`` then adds nothing.
    sensitivity : array_like, default 1.0
        L2 sensitivity that both budgets refer to: ``sigma2 = sensitivity**2 / (2 rho)``.
    conditionals : {"coherent", "as-published"}, default "coherent"
        ``"as-published"`` gives the stationary law of the two conditionals that explain the printed
        results of Kazan and Reiter. They belong to no joint law; every question then issues an
        ``IncompatibleConditionalsWarning``.
    sibling_noise : {"approximate", "exact"}, default "approximate"
        Law of the noise of S: one discrete Gaussian of m times the scale (S2), or the convolution.

    Examples
    --------
    >>> question = TwoLevels(n_siblings=27, rho_block=0.0992264, rho_group=0.2464845, prior=0.5)
    >>> question.posterior(2, 1, -1).belief
    Belief: 0.5 before the release, 0.5033 after it (1.007 times as probable)
    >>> (100 * question.posterior(2, 1, -1).group_pmf.loc[:3]).round(2).to_list()
    [12.94, 38.66, 29.79, 13.92]
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
        r"""Return the posterior of the target given noisy counts of block, group and siblings.

        .. math:: P(x, N \mid y, n, S) \propto P(x)\, P(N)\, e^{-\rho_1 (y-x)^2
            - \rho_2 (n-N)^2}\, g_m(S - N + x)\, 1[N \ge x], \quad x \in \{k, k+1\}

        Here :math:`g_m(d) = e^{-\rho_1 d^2 / m}`, or the exact law of a sum of m draws of the block
        noise. A known total N* (an invariant) holds with and without the target. The other blocks
        then hold N* - x, and the likelihood ratio of the releases is

        .. math:: \frac{P(R \mid X = k + 1, N = N^*)}{P(R \mid X = k, N = N^*)}
            = e^{\rho_1 (2 (y - k) - 1)}\, \frac{g_m(S - N^* + k + 1)}{g_m(S - N^* + k)} .

        The invariant itself says nothing about x, because P(N) does not depend on x.

        ``block``, ``group`` and ``siblings`` are the noisy counts y and n and the total S of the
        noisy counts of the other blocks; they may be negative. The absolute error of a probability
        is at most ``truncation_bound`` plus rounding, 1e-12 for counts up to 1e4. With the flat
        prior and the approximate noise, a release costs about 0.1 microseconds in a batch.
        Otherwise the sum over N is taken term by term.

        With ``rho_group=0`` and the flat prior, the coherent posterior is that of the block alone.
        S then informs about the other blocks only, whose prior is flat for every x. Under a proper
        prior on N this fails, because N - x has different laws for x = k and x = k + 1.
        """
        model.warn_if_published(self.checked)
        return settings_posterior(self, block, group, siblings)

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
            e^{\rho_1 (2(y - k) - 1) + (\rho_1/m)(2(N - S - k) - 1)}\, 1[N \ge k + 1] \
            N \mid x &\propto P(N)\, e^{-\tau (N - \mu_x)^2}\, 1[N \ge x], \quad
            \tau = \rho_2 + \frac{\rho_1}{m}, \quad
            \mu_x = \frac{\rho_2 n + (\rho_1 / m)(S + x)}{\tau}

        This is an independent check of the exact posterior. Settings are single numbers here. The
        siblings' noise is one discrete Gaussian whatever ``sibling_noise`` says. The published
        conditionals drop the indicator from x given N: a replication, not the posterior of a model.

        ``draws`` and ``warmup`` are sweeps kept and discarded in each of ``chains`` chains, at most
        1e8; at most 2**28 numbers are kept (2 GiB). Each chain gets a child of ``rng``; draws do
        not depend on ``threads``. Counts with weight below e**-50 of the largest are left out.

        From any x, N given x covers all N >= k + 1, where both x are possible. So every feasible
        state is reached in one sweep. Chains start at x = k and x = k + 1 in turn.
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

        The average divided by the prior of the truth is the marginal risk.
        """
        return average_risk(read_question(self, group_count, block_count), decision=False)

    def distribution(
        self, group_count: ArrayLike | None = None, *, block_count: ArrayLike | None = None
    ) -> RiskDistribution:
        r"""Return the distribution of the risk ratio over releases: exceedances and quantiles.

        .. math:: P\Big(\frac{P(X = k + 1 \mid y, n, S)}{p} > r \,\Big|\, X^*, N^*\Big)

        The ratio is that of the target's presence, whichever count is true. Given X* = k + 1, its
        mean is the value of :meth:`average` over p. Without ``group_count``, releases follow the
        adversary's prior: the counts follow p and ``group_prior`` or ``known_total``, one of which
        must be given. The mean is then 1 if ``group_prior`` allows no count below
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
            return law_over_prior(self)
        return law_given_truth(read_question(self, group_count, block_count))

    def correct_decision(
        self, group_count: ArrayLike, *, block_count: ArrayLike | None = None, ties: str = "shared"
    ) -> HierarchicalRisk:
        r"""Return the probability that the target is found by the releases, if it is in the block.

        .. math:: \sum_{n, S} f_2(n - N^*)\, f_m(S - N^* + X^*)\, P(X^* + \eta \ge t(n, S))

        for X* = k + 1. Here t(n, S) is the smallest noisy block count for which the posterior of k
        + 1 is at least 1/2. For X* = k the result is the probability of staying below the
        threshold, so that the target is rightly taken to be absent.
        """
        question = read_question(self, group_count, block_count, ties=ties)
        return average_risk(question, decision=True)

    def accuracy(self, group_count: ArrayLike, *, ties: str = "shared") -> HierarchicalRisk:
        r"""Return the rate at which the adversary's best guess is right, target present or not.

        .. math:: p\, P(\text{found} \mid X^* = k + 1, N^*) + (1 - p)\, P(\text{cleared} \mid
            X^* = k, N^* - 1)

        The people of the other blocks are the same in both cases. Without the target the group
        counts one less, which ``group_prior`` must allow. A ``known_total`` counts N* in both, so
        that the other blocks hold one more without the target. The value may be below both
        baselines: the adversary is optimal on average over its prior of the group count, not at
        every true one.
        """
        question = read_question(self, group_count, ties=ties)
        # The question twice along a new first axis: the target there, and not there.
        arrays = {name: np.stack([array, array]) for name, array in question.arrays.items()}
        arrays["block_count"][1] -= 1
        if question.model.known_total is None:
            arrays["group_count"][1] -= 1
            without = {name: array[1] for name, array in arrays.items()}
            name = "group_count - 1, the truth without the target unless known_total is given,"
            check_truth(question.model, without, name)
        pair = replace(question, arrays=arrays, shape=(2, *question.shape))
        value = evaluate(pair, decision=True)[..., 0]
        alone = without_hierarchy(pair, decision=True)
        p = question.arrays["prior"]
        rate, without = (p * x[0] + (1.0 - p) * x[1] for x in (value, alone))
        return HierarchicalRisk(
            question, "decision accuracy", rate, without, np.maximum(p, 1.0 - p)
        )

    def gain(
        self, group_count: ArrayLike, *, block_count: ArrayLike | None = None, ties: str = "shared"
    ) -> HierarchicalGain:
        """Return the rates at which the other levels correct a decision, and spoil one.

        Both adversaries choose the more probable block count; one reads (y, n, S), the other y
        alone. A release that is read correctly only by a coin counts one half.
        """
        question = read_question(self, group_count, block_count, ties=ties)
        correct, gain, loss = np.moveaxis(evaluate(question, decision=True), -1, 0)
        return HierarchicalGain(question, gain, loss, correct, correct - gain + loss)


_CERTAIN = 745.0  # evidence beyond is certainty in double precision


def _result(
    settings: Settings, truth: str, laws: tuple[tuple[float, EvidenceLaw], ...]
) -> RiskDistribution:
    p = settings.prior.item()
    mean = sum(w * law.average(partial(evidence_ratio, prior=p)) for w, law in laws)
    return RiskDistribution(p, truth, mean, TRUNCATION, laws)


def law_given_truth(question: Question) -> RiskDistribution:
    """Return the distribution of the risk ratio over the releases of one truth."""
    if question.shape != ():
        raise ShapeError(f"a distribution belongs to one setting, got shape {question.shape}")
    settings, truths, _ = next(question.groups())
    law = _law(settings, truths, np.ones(1))
    block, group = (int(question.arrays[name]) for name in ("block_count", "group_count"))
    return _result(settings, f"block {block}, group {group}", ((1.0, law),))


def law_over_prior(raw: TwoLevelSettings) -> RiskDistribution:
    """Return the distribution over releases that the adversary expects: P(x) P(N), N >= x."""
    settings = raw.checked
    if settings.published:
        model.warn_if_published(settings)
        raise ArgumentError(
            "group_count must be given with conditionals='as-published', which have no joint law"
        )
    if settings.group_prior.flat:
        raise ArgumentError("group_count must be given, or group_prior: the flat one is improper")
    sizes = {name: array.size for name, array in raw.arrays.items()}
    if max(sizes.values()) > 1:
        raise ShapeError(f"a distribution belongs to one setting, got sizes {sizes}")
    p, table = settings.prior.item(), settings.group_prior
    first = table.start - settings.known_count.item()
    mass = np.exp(table.log_pmf)
    laws = []
    for target, share in ((1, p), (0, 1.0 - p)):
        counts = np.flatnonzero((mass > 0.0) & (first + np.arange(mass.size) >= target))
        if counts.size:
            truths = [Truth(target, first + int(i)) for i in counts]
            weight = mass[counts]
            law = _law(settings, truths, weight / weight.sum())
            laws.append((share * float(weight.sum()), law))
    total = sum(weight for weight, _ in laws)
    return _result(settings, "prior", tuple((weight / total, law) for weight, law in laws))


def _law(settings: Settings, truths: list[Truth], weights: FloatArray) -> EvidenceLaw:
    """Return the law of the evidence, with releases of group and siblings mixed over truths.

    Given the block's count its own release is independent of the others, and its evidence adds
    to theirs; under the published conditionals nothing adds up, and all releases are listed.
    """
    around = grid_around(settings, truths)
    check_size(around)
    joint = np.zeros((around.group.size, around.siblings.size))
    for truth, weight in zip(truths, weights.tolist(), strict=True):
        part = around.part(truth, settings)
        joint[part] += weight * np.outer(around.group_pmf, around.siblings_pmf)
    i, j = np.nonzero(joint)
    n, total, mass = around.group[i].astype(float), around.siblings[j].astype(float), joint[i, j]
    noise, pmf = block_noise(settings)
    d = noise.astype(np.float64) + float(truths[0].target if settings.block else 0)
    if not settings.published:
        group_evidence = model.group_evidence(settings, n, total)
        group_evidence = np.clip(np.broadcast_to(group_evidence, n.shape), -_CERTAIN, _CERTAIN)
        alone = np.broadcast_to(model.block_evidence(settings, d), d.shape)
        return EvidenceLaw((group_evidence, mass), (alone, pmf))
    if n.size * d.size > MAX_CELLS:
        raise ArgumentError(
            f"conditionals='as-published' must leave at most {MAX_CELLS} releases to list, "
            f"got {n.size * d.size}"
        )
    posterior = model.target_probability(settings, d, n[:, None], total[:, None])
    p = settings.prior.item()
    with np.errstate(divide="ignore"):
        odds = np.log(posterior) - np.log1p(-posterior) - (np.log(p) - np.log1p(-p))
    values = np.clip(odds, -_CERTAIN, _CERTAIN).ravel()
    return EvidenceLaw((values, np.multiply.outer(mass, pmf).ravel()), (np.zeros(1), np.ones(1)))
