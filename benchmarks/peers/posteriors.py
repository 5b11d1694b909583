"""Posteriors: of one block in its group, and of the records of a block."""

import numpy as np
import test_hierarchy
import test_record_law
from peers.comparison import Case, Comparison
from scipy import special

from bayesrisk import hierarchical_posterior
from bayesrisk.inference import RecordQuestion, microdata_posterior

Y, N, S, GRID = 2, 1, -1, np.arange(60)
SETTINGS = test_hierarchy.GRANVILLE
RNG = np.random.default_rng(1)
MANY = tuple(RNG.integers(-3, 8, 100_000) for _ in range(3))


def exact() -> float:
    return float(hierarchical_posterior(Y, N, S, **SETTINGS).target_probability)


def log_weight(y, n, siblings, x, grid):
    """Return the log weight of block count x beside group counts: arrays or symbols."""
    rho, rho_group, m = (SETTINGS[k] for k in ("rho_block", "rho_group", "n_siblings"))
    rest = siblings - (grid - x)
    return -rho * (y - x) ** 2 - rho_group * (n - grid) ** 2 - rho / m * rest**2


def written_out(y, n, siblings) -> np.ndarray:
    """Return posteriors with NumPy, from the sums over group counts of both block counts."""
    about = (np.asarray(v)[..., None] for v in (y, n, siblings))
    y, n, siblings = about
    zero = special.logsumexp(log_weight(y, n, siblings, 0, GRID), axis=-1)
    one = special.logsumexp(log_weight(y, n, siblings, 1, GRID[1:]), axis=-1)
    return special.expit(one - zero + special.logit(SETTINGS["prior"]))


def sums_numpy() -> Case:
    ours = hierarchical_posterior(*MANY, **SETTINGS).target_probability
    # The sum ends at 59: beyond, less than exp(-rho_group 50**2) of it is left.
    np.testing.assert_allclose(ours[:1000], written_out(*(v[:1000] for v in MANY)), rtol=1e-11)
    few = tuple(v[:10_000] for v in MANY)
    return Case(
        lambda: hierarchical_posterior(*MANY, **SETTINGS),
        lambda: written_out(*few),
        MANY[0].size,
        few[0].size,
    )


def gibbs_numpy() -> Case:
    from arviz import ess

    rng, draws = np.random.default_rng(2), 20_000
    value = exact()
    hits = test_hierarchy.numpy_gibbs(Y, N, S, draws, rng, keep=True)
    independent = float(ess(hits[None].astype(float)))
    assert abs(hits.mean() - value) < 5.0 * (value * (1 - value) / independent) ** 0.5
    return Case(
        lambda: hierarchical_posterior(*MANY, **SETTINGS),
        lambda: test_hierarchy.numpy_gibbs(Y, N, S, draws, rng),
        MANY[0].size,
        independent / 1e4,  # of ten thousand independent draws
    )


def sampled_pymc() -> Case:
    import logging

    import arviz
    import pymc

    logging.getLogger("pymc").setLevel(logging.ERROR)
    with pymc.Model() as model:
        x = pymc.Bernoulli("x", SETTINGS["prior"])
        group = pymc.DiscreteUniform("N", 0, 59)
        pymc.Potential("release", log_weight(Y, N, S, x, group))
        pymc.Potential("whole", pymc.math.switch(group >= x, 0.0, -np.inf))

    def theirs():
        options = {"progressbar": False, "compute_convergence_checks": False, "cores": 1}
        with model:
            return pymc.sample(2000, tune=500, chains=2, random_seed=1, **options)

    draws, value = theirs().posterior["x"].astype(float), exact()
    independent = float(arviz.ess(draws)["x"])
    assert abs(float(draws.mean()) - value) < 5.0 * (value * (1 - value) / independent) ** 0.5
    return Case(
        lambda: hierarchical_posterior(*MANY, **SETTINGS),
        theirs,
        MANY[0].size,
        independent / 1e4,
        rounds=3,
    )


def sums_pymc() -> Case:
    import pytensor
    from pytensor import tensor

    y, n, siblings = (tensor.dcol() for _ in range(3))
    zero = tensor.logsumexp(log_weight(y, n, siblings, 0, GRID), axis=1)
    one = tensor.logsumexp(log_weight(y, n, siblings, 1, GRID[1:]), axis=1)
    odds = one - zero + special.logit(SETTINGS["prior"])
    theirs = pytensor.function([y, n, siblings], tensor.sigmoid(odds))
    few = [v[:10_000, None].astype(float) for v in MANY]
    ours = hierarchical_posterior(*MANY, **SETTINGS).target_probability
    np.testing.assert_allclose(ours[:10_000], theirs(*few), rtol=1e-11)
    return Case(
        lambda: hierarchical_posterior(*MANY, **SETTINGS),
        lambda: theirs(*few),
        MANY[0].size,
        len(few[0]),
    )


FEW, MORE = 12, 60


class Chains:
    """Our chain over the people of a block, found equal to another one, per effective draw."""

    def __init__(self, people: int) -> None:
        self.people = people
        self.release, self.prior = test_record_law.noisy_block(people)
        # Of few people whether one is there; of more, where that is nearly sure, whether six are.
        self.least = 1 if people == FEW else 6
        self.asked = [RecordQuestion({"sex": [0], "age": [0]}, at_least=self.least)]

    def ours(self):
        about = {"level": "block", "place": "1", "prior": self.prior, "engine": "people"}
        options = {"rng": 1, "draws": 1000, "chains": 2, "doublings": 0}
        return microdata_posterior(self.release, self.asked, **about, **options).answers

    def case(self, theirs, number) -> Case:
        """``number(theirs())`` is the number of people of the kind, draw by draw."""
        from arviz import ess

        mine = self.ours().iloc[0]
        assert mine["status"] == "sampled"
        hits = (number(theirs()) >= self.least).astype(float)
        share, independent = hits.mean(), float(ess(hits[None]))
        spread = (share * (1.0 - share) / independent) ** 0.5
        assert independent > 100
        assert abs(share - mine["posterior"]) < 5.0 * np.hypot(spread, mine["error"])
        if self.people == FEW:
            value = test_record_law.plain_enumeration(self.release, FEW)
            assert abs(mine["posterior"] - value) < 5.0 * mine["error"]
            assert abs(share - value) < 5.0 * spread
        return Case(self.ours, theirs, mine["ess"], independent, rounds=3)


def numpy_chain(people: int) -> Case:
    chains = Chains(people)

    def theirs():
        rng = np.random.default_rng(1)
        return test_record_law.plain_chain(chains.release, people, 40_000, rng)

    return chains.case(theirs, lambda draws: draws)


def chain_numpy() -> Case:
    return numpy_chain(FEW)


def longer_chain_numpy() -> Case:
    return numpy_chain(MORE)


def chain_numpyro() -> Case:
    import jax
    import numpyro
    from jax import numpy as jnp
    from numpyro.infer import MCMC, NUTS, DiscreteHMCGibbs

    chains = Chains(FEW)
    tables = chains.release.tables.counts
    count = {key[1]: m.toarray()[0].astype(float) for key, m in tables.items()}

    def model():
        numpyro.sample("unused", numpyro.distributions.Normal())  # the sampler wants one such
        with numpyro.plate("people", FEW):
            kind = numpyro.sample("kind", numpyro.distributions.Categorical(jnp.full(8, 0.125)))
        x = jax.nn.one_hot(kind, 8).sum(axis=0)
        table = x.reshape(2, 4)
        squares = ((count["both"] - x) ** 2).sum()
        squares += ((count["sex"] - table.sum(axis=1)) ** 2).sum()
        squares += ((count["age"] - table.sum(axis=0)) ** 2).sum()
        numpyro.factor("release", -squares / 4)

    sampler = DiscreteHMCGibbs(NUTS(model), modified=True)
    chain = MCMC(sampler, num_warmup=500, num_samples=4000, progress_bar=False)

    def theirs():
        chain.run(jax.random.PRNGKey(1))
        return np.asarray(chain.get_samples()["kind"])

    return chains.case(theirs, lambda kinds: (kinds == 0).sum(axis=1))


def enumeration() -> Case:
    release, prior = test_record_law.noisy_block(FEW)
    asked = [RecordQuestion({"sex": [0], "age": [0]}, at_least=1)]
    about = {"level": "block", "place": "1", "prior": prior, "engine": "exact"}

    def ours():
        return microdata_posterior(release, asked, **about).answers["posterior"][0]

    def theirs():
        return test_record_law.plain_enumeration(release, FEW)

    # Fifty thousand weights, each of some forty roundings.
    assert abs(ours() - theirs()) < 1e-12
    return Case(ours, theirs)


TWO = "P(x = 1) of a block in its group, two noisy levels"
ONE = "Is somebody of one kind among 12 people? Three noisy tables"
SIX = "The same of 60 people, for six of the kind"
PER = "a sampled answer is given for ten thousand effective draws, which leave an error of 0.005"
EACH = "per effective draw; ours also checks its chains, and answers for every kind of person"
COMPILED = "the first call, which compiles, is not counted"
ENUMERATED = "both within five standard errors of complete enumeration"
ALIKE = "within five standard errors of each other"
ALL = [
    Comparison(
        TWO,
        "hierarchical_posterior",
        "the two sums written out with NumPy",
        ("numpy",),
        "to 1e-11, relative",
        "a window of 60 group counts was enough for these releases; ours finds its own",
        sums_numpy,
    ),
    Comparison(
        TWO,
        "hierarchical_posterior",
        "the same sums compiled by PyTensor, as in PyMC",
        ("pymc", "pytensor"),
        "to 1e-11, relative",
        f"the same window; {COMPILED}",
        sums_pymc,
    ),
    Comparison(
        TWO,
        "hierarchical_posterior",
        "Gibbs sampler in NumPy",
        ("numpy",),
        "within five standard errors of the draws",
        PER,
        gibbs_numpy,
    ),
    Comparison(
        TWO,
        "hierarchical_posterior",
        "PyMC, x and N sampled",
        ("pymc",),
        "within five standard errors of the draws",
        f"PyMC fits models that have no closed form; {PER}",
        sampled_pymc,
    ),
]
PEOPLE = "inference.microdata_posterior, people"
NUMPY, NUMPYRO = "one person after another in NumPy", "NumPyro, DiscreteHMCGibbs"
ANY = f"{EACH}; {COMPILED}; NumPyro takes any model, ours only this family"
ALL += [
    Comparison(ONE, PEOPLE, NUMPY, ("numpy",), ENUMERATED, EACH, chain_numpy),
    Comparison(SIX, PEOPLE, NUMPY, ("numpy",), ALIKE, EACH, longer_chain_numpy),
    Comparison(ONE, PEOPLE, NUMPYRO, ("numpyro", "jax"), ENUMERATED, ANY, chain_numpyro),
    Comparison(
        ONE,
        "inference.microdata_posterior, exact",
        "complete enumeration in plain Python",
        (),
        "to 1e-12",
        "ours also answers for every kind of person",
        enumeration,
    ),
]
