"""Posteriors and chains along a path of nested groups, by the general functions of trees."""

from dataclasses import dataclass

import numpy as np

from bayesrisk import Tree, posterior_probability, sample_tree, tree_posterior

RUN = ("draws", "warmup", "chains", "rng", "threads")


@dataclass
class Path:
    tree: Tree
    posterior: object

    def pmf(self, level):
        return self.posterior.pmf(f"level_{level}")

    def __getattr__(self, name):
        return getattr(self.posterior, name)

    @property
    def levels(self):
        return [name for name in self.tree.names if name.startswith("level")][::-1]

    @property
    def known_count(self):
        return int(self.tree.known_count.max())

    @property
    def target_probability(self):
        return float(self.pmf(0).get(self.known_count + 1, 0.0))

    @property
    def mean(self):
        return self.posterior.mean[[self.tree.index(name) for name in self.levels]]

    @property
    def block_probability(self):
        block = self.tree.index("level_0")
        p, precision = self.tree.prior[block], self.tree.precision[block]
        return float(
            posterior_probability(
                int(self.tree.noisy[block]), rho=precision, prior=p, known_count=self.known_count
            )
        )


def path_posterior(*releases, tail=1e-15, **settings):
    tree = Tree.path(*releases, **settings)
    return Path(tree, tree_posterior(tree, leaf_prior="flat", tail=tail))


def sample_path(*releases, **settings):
    run = {name: settings.pop(name) for name in RUN if name in settings}
    tree = Tree.path(*releases, **settings)
    nodes = np.array([name for name in tree.names if name.startswith("level")])[::-1]
    return sample_tree(tree, leaf_prior="flat", nodes=nodes.tolist(), **run)
