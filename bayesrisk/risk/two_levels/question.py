"""The question of two levels: what an adversary learns of a block from it and its group."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk.inference.sampling.chains import Samples
from bayesrisk.inference.sampling.two_levels import sample_two_levels
from bayesrisk.inference.two_levels import model
from bayesrisk.inference.two_levels.posterior import HierarchicalPosterior, posterior_given
from bayesrisk.inference.two_levels.settings import TwoLevelSettings
from bayesrisk.inference.two_levels.sibling_cost import ApproximationCost, approximation_cost
from bayesrisk.risk.count.distribution import RiskDistribution
from bayesrisk.risk.two_levels._arguments import read_question
from bayesrisk.risk.two_levels.accuracy import accuracy_of
from bayesrisk.risk.two_levels.averages import HierarchicalRisk, average_of
from bayesrisk.risk.two_levels.distribution import distribution_of
from bayesrisk.risk.two_levels.gain import HierarchicalGain, gain_of


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoLevels(TwoLevelSettings):
    """The question of two levels: a target's block, the group around it and its other blocks.

    Stated once, it is asked in several ways: what one release says (:meth:`posterior`,
    :meth:`sample`), and, with the truth, what releases say on average (:meth:`average`), how often
    they say how much (:meth:`distribution`) and how often a guess is right
    (:meth:`correct_decision`, :meth:`accuracy`, :meth:`gain`).  The methods
    with a truth are the auditor's: an adversary has no ``group_count`` to give.

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

    Raises
    ------
    ArgumentError
        If a setting is out of range, or the group prior excludes every feasible count or the known
        total.

    References
    ----------
    Kazan and Reiter, sections 3.2 and 4.3, supplement S2 to S4.

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
        """Return the posterior given noisy counts of block, group and siblings.

        As :func:`hierarchical_posterior`, with these settings.

        Parameters
        ----------
        block : array_like of int
            Noisy count y of the block; may be negative.
        group : array_like of int
            Noisy count n of the group that contains it.
        siblings : array_like of int
            Total S of the noisy counts of the other blocks in the group.

        Returns
        -------
        HierarchicalPosterior
            Of the broadcast shape of releases and settings.
        """
        model.warn_if_published(self.checked)
        return posterior_given(self, block, group, siblings)

    def approximation_cost(
        self, block: ArrayLike, group: ArrayLike, siblings: ArrayLike
    ) -> ApproximationCost:
        r"""Return what it costs to replace the siblings' noise by one discrete Gaussian.

        The two laws differ by a factor of period m in the distance d and by nothing else:
        :math:`g_m(d) = e^{-\rho d^2 / m} e^{r(d)}`, :math:`r(d + m) = r(d)`, because adding one to
        each of m terms takes d to d + m and the sum of their squares q to q + 2 d + m.

        Parameters
        ----------
        block : array_like of int
            Noisy count y of the block.
        group : array_like of int
            Noisy count n of the group.
        siblings : array_like of int
            Total S of the noisy counts of the other blocks.

        Returns
        -------
        ApproximationCost
            Differences of the posteriors, and the distance between the laws of the noise.
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

        The exact posterior's independent check.  Settings are single numbers here, and the
        siblings' noise is one discrete Gaussian whatever ``sibling_noise`` says.

        .. math::

            x \mid N &\sim \text{Bernoulli on } \{k, k + 1\}, \quad \text{odds } \frac{p}{1-p}\,
            e^{\rho_1 (2(y - k) - 1) + (\rho_1/m)(2(N - S - k) - 1)}\, 1[N \ge k + 1] \\
            N \mid x &\propto P(N)\, e^{-\tau (N - \mu_x)^2}\, 1[N \ge x], \quad
            \tau = \rho_2 + \frac{\rho_1}{m}, \quad
            \mu_x = \frac{\rho_2 n + (\rho_1 / m)(S + x)}{\tau}

        ``conditionals="as-published"`` drops the indicator from x given N: this replicates printed
        numbers and is the posterior of no model.

        Parameters
        ----------
        block, group : int
            Released counts y of the block and n of the group; may be negative.
        siblings : int
            Sum S of the released counts of the group's other blocks.
        draws, warmup, chains : int
            Sweeps kept and discarded in each chain, and number of chains.  At most 1e8 sweeps, and
            2**28 numbers kept in all (2 GiB).
        rng : Generator or int
            Source of randomness; each chain gets a child of its own.
        threads : int, optional
            Threads to use; the draws do not depend on it.  None: as many as there are processors.

        Returns
        -------
        Samples
            Levels ``block`` and ``group``.

        Raises
        ------
        ArgumentError
            If an argument is out of range, the group prior excludes every feasible count, or the
            posterior is improper (no release, flat prior).

        Notes
        -----
        Counts whose weight is below e**-50 of the largest are left out.  The coherent chain reaches
        every feasible state in one sweep: from any x, N given x covers N >= k + 1, from where both
        x are possible.  Chains start at x = k and x = k + 1 in turn.
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
        self,
        group_count: ArrayLike,
        *,
        block_count: ArrayLike | None = None,
        method: str = "exact",
        releases: int | None = None,
        rng: int | np.random.Generator | None = None,
    ) -> HierarchicalRisk:
        r"""Return the posterior of the true block count, averaged over releases given the truth.

        .. math:: \sum_{y, n, S} f_1(y - X^*)\, f_2(n - N^*)\, f_m(S - N^* + X^*)\,
            P(X = X^* \mid y, n, S)

        Parameters
        ----------
        group_count : array_like of int
            True count N* of the group, at most 2**51: the ``known_total``, or possible under
            ``group_prior`` (which is not asked for with the published conditionals).
        block_count : array_like of int, optional
            True count X* of the block: ``known_count``, or one more, which is the default.
        method : {"exact", "monte-carlo"}, default "exact"
            Enumerate the releases, or draw them.
        releases : int, optional
            Number of releases to draw for each value, at least 2; with ``"monte-carlo"`` only.
        rng : int or Generator, optional
            Seed or generator; with ``"monte-carlo"`` only, and then required.

        Returns
        -------
        HierarchicalRisk
            ``value`` with its Monte Carlo error or truncation bound, and the average
            ``without_hierarchy``, of the broadcast shape.  Divided by the prior of the truth it is
            the marginal risk.

        Raises
        ------
        ArgumentError
            If an argument is out of range, the truth is impossible, or more than 2**24 pairs (n, S)
            would have to be enumerated.
        """
        model.warn_if_published(self.checked)
        question = read_question(self, group_count, block_count, draws=(method, releases, rng))
        return average_of(question, decision=False)

    def distribution(
        self, group_count: ArrayLike | None = None, *, block_count: ArrayLike | None = None
    ) -> RiskDistribution:
        r"""Return the law of the risk ratio over releases: how often it exceeds a limit, quantiles.

        .. math:: P\Big(\frac{P(X = k + 1 \mid y, n, S)}{p} > r \,\Big|\, X^*, N^*\Big)

        The ratio is that of the target's being there, whichever count is true; given X* = k + 1
        its mean is the value of :meth:`average` over p.

        Parameters
        ----------
        group_count : int, optional
            True count N* of the group, at most 2**51: the ``known_total``, or possible under
            ``group_prior``.  Without it releases are those that the adversary expects: the counts
            follow p and one of these two, which must then be given.
        block_count : int, optional
            True count X* of the block: ``known_count``, or one more, which is the default.

        Returns
        -------
        RiskDistribution
            Tail probabilities, quantiles and the mean, exact but for ``left_out``.  Over the prior
            the mean is 1 where ``group_prior`` allows no count below ``known_count + 1`` and the
            siblings' noise is exact.

        Raises
        ------
        ArgumentError
            If an argument is out of range, the truth is impossible, the prior that is averaged
            over is improper, or more than 2**24 releases would have to be enumerated.

        Examples
        --------
        >>> question = TwoLevels(n_siblings=27, rho_block=0.0992264, rho_group=0.2464845, prior=0.1)
        >>> law = question.distribution(group_count=10)
        >>> print(round(law.exceeds(1.5), 4), round(law.quantile(0.95), 3))
        0.2162 2.064
        """
        model.warn_if_published(self.checked)
        return distribution_of(self, group_count, block_count)

    def correct_decision(
        self,
        group_count: ArrayLike,
        *,
        block_count: ArrayLike | None = None,
        ties: str = "shared",
        method: str = "exact",
        releases: int | None = None,
        rng: int | np.random.Generator | None = None,
    ) -> HierarchicalRisk:
        r"""Return the probability that the target is found by the releases, if it is there.

        .. math:: \sum_{n, S} f_2(n - N^*)\, f_m(S - N^* + X^*)\, P(X^* + \eta \ge t(n, S))

        for X* = k + 1; t(n, S) is the smallest noisy block count at which the posterior of k + 1 is
        at least 1/2.  For X* = k it is the probability that the target is rightly taken not to be
        there, that of staying below the threshold.  :meth:`accuracy` has both, weighted by the
        prior, beside what is right without a release.

        Parameters
        ----------
        group_count : array_like of int
            True count N* of the group, at most 2**51: the ``known_total``, or possible under
            ``group_prior`` (which is not asked for with the published conditionals).
        block_count : array_like of int, optional
            True count X* of the block: ``known_count``, or one more, which is the default.
        ties : {"shared", "as-published"}, default "shared"
            A posterior of exactly 1/2 is decided by a fair coin; or always for k + 1, as in (3.5)
            of Kazan and Reiter.
        method : {"exact", "monte-carlo"}, default "exact"
            Enumerate the releases, or draw them.
        releases : int, optional
            Number of releases to draw for each value, at least 2; with ``"monte-carlo"`` only.
        rng : int or Generator, optional
            Seed or generator; with ``"monte-carlo"`` only, and then required.

        Returns
        -------
        HierarchicalRisk
            ``value`` with its Monte Carlo error or truncation bound, and the probability
            ``without_hierarchy``, of the broadcast shape.

        Raises
        ------
        ArgumentError
            If an argument is out of range, the truth is impossible, or more than 2**24 pairs (n, S)
            would have to be enumerated.
        """
        model.warn_if_published(self.checked)
        draws = (method, releases, rng)
        question = read_question(self, group_count, block_count, draws=draws, ties=ties)
        return average_of(question, decision=True)

    def accuracy(
        self,
        group_count: ArrayLike,
        *,
        ties: str = "shared",
        method: str = "exact",
        releases: int | None = None,
        rng: int | np.random.Generator | None = None,
    ) -> HierarchicalRisk:
        r"""Return how often the adversary's best guess is right, the target there or not.

        .. math:: p\, P(\text{found} \mid X^* = k + 1, N^*) + (1 - p)\, P(\text{cleared} \mid
            X^* = k, N^* - 1)

        The people of the other blocks are the same in both cases: without the target the group
        counts one less.  A ``known_total`` counts N* in both, so that the other blocks hold one
        more without the target.  Both probabilities are those of :meth:`correct_decision`.

        Parameters
        ----------
        group_count : array_like of int
            True count N* of the group with the target, at least ``known_count + 1`` and at most
            2**51.  Where a ``group_prior`` is given, it allows N* and N* - 1.
        ties : {"shared", "as-published"}, default "shared"
            A posterior of exactly 1/2 is decided by a fair coin; or always for k + 1, as in (3.5)
            of Kazan and Reiter.
        method : {"exact", "monte-carlo"}, default "exact"
            Enumerate the releases, or draw them.
        releases : int, optional
            Number of releases to draw for each of the two cases, at least 2; with
            ``"monte-carlo"`` only.
        rng : int or Generator, optional
            Seed or generator; with ``"monte-carlo"`` only, and then required.

        Returns
        -------
        HierarchicalRisk
            ``value`` with its Monte Carlo error or truncation bound; the accuracy of the adversary
            who reads the block alone, ``without_hierarchy``; and ``without_release``,
            max(p, 1 - p): always guessing the more probable.  ``value`` may be below both: the
            adversary is right as often as can be on average over its own prior of the group count,
            not at every true one.

        Raises
        ------
        ArgumentError
            If an argument is out of range, the truth is impossible, or more than 2**24 pairs (n, S)
            would have to be enumerated.
        """
        model.warn_if_published(self.checked)
        draws = (method, releases, rng)
        question = read_question(self, group_count, draws=draws, ties=ties)
        return accuracy_of(question, rng)

    def gain(
        self,
        group_count: ArrayLike,
        *,
        block_count: ArrayLike | None = None,
        ties: str = "shared",
        method: str = "exact",
        releases: int | None = None,
        rng: int | np.random.Generator | None = None,
    ) -> HierarchicalGain:
        r"""Return how often the hierarchy sets a decision right, and how often it spoils one.

        Both adversaries decide for the more probable block count; one reads (y, n, S), the other y
        alone.  A release that only a coin reads rightly counts one half.

        Parameters
        ----------
        group_count : array_like of int
            True count N* of the group, at most 2**51: the ``known_total``, or possible under
            ``group_prior`` (which is not asked for with the published conditionals).
        block_count : array_like of int, optional
            True count X* of the block: ``known_count``, or one more, which is the default.
        ties : {"shared", "as-published"}, default "shared"
            A posterior of exactly 1/2 is decided by a fair coin; or always for k + 1, as in (3.5)
            of Kazan and Reiter.
        method : {"exact", "monte-carlo"}, default "exact"
            Enumerate the releases, or draw them.
        releases : int, optional
            Number of releases to draw for each value, at least 2; with ``"monte-carlo"`` only.
        rng : int or Generator, optional
            Seed or generator; with ``"monte-carlo"`` only, and then required.

        Returns
        -------
        HierarchicalGain
            Gain, loss and both probabilities of a correct decision, of the broadcast shape, with
            Monte Carlo errors or a truncation bound.

        Raises
        ------
        ArgumentError
            If an argument is out of range, the truth is impossible, or more than 2**24 pairs (n, S)
            would have to be enumerated.
        """
        model.warn_if_published(self.checked)
        draws = (method, releases, rng)
        question = read_question(self, group_count, block_count, draws=draws, ties=ties)
        return gain_of(question)
