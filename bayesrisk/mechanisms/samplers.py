"""Noise for releases that protect somebody: integers drawn by a vetted library, such as OpenDP.

Without a sampler, mechanisms draw with NumPy, which is for simulation.  A plug-in is a class
without parameters in the entry-point group ``bayesrisk.samplers``, which follows
:class:`bayesrisk.interfaces.Sampler`.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

from bayesrisk._plugins import Registry
from bayesrisk._validation import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.interfaces import Sampler
from bayesrisk.release import NoiseSpec

REGISTRY: Registry[Sampler] = Registry(
    "sampler",
    builtin={"opendp": "bayesrisk.mechanisms.samplers:OpenDPSampler"},
    protocol=Sampler,
    needs="version, law() and draw()",
)
_CHUNK = 2**16  # draws of one call: OpenDP hands over lists


class OpenDPSampler:
    """Discrete Gaussian and Laplace noise of OpenDP, the extra ``opendp``.

    OpenDP draws integers by exact arithmetic, from the cryptographic source of the operating
    system (Canonne, Kamath and Steinke 2020, arXiv:2004.00010).  Its scale is a double: the law
    that is drawn, and stated, has the smallest double that is no smaller than the scale asked for,
    so that a budget is never exceeded.

    Examples
    --------
    >>> OpenDPSampler().law(NoiseSpec("discrete-laplace", 2)).scale
    Fraction(2, 1)
    >>> float(OpenDPSampler().law(NoiseSpec("discrete-gaussian", 2)).scale - 2) < 1e-15
    True
    """

    def __init__(self) -> None:
        if find_spec("opendp") is None:
            raise ArgumentError(
                "sampler 'opendp' must be installed: pip install 'bayesrisk[opendp]'"
            )
        self.version = version("opendp")

    def law(self, spec: NoiseSpec) -> NoiseSpec:
        """Return the law that is drawn: that of a scale which is a double."""
        scale = self._scale(spec)
        return NoiseSpec(spec.law, scale**2 if spec.law == "discrete-gaussian" else scale)

    def draw(self, law: NoiseSpec, size: int) -> IntArray:
        """Return so many independent draws of a law of :meth:`law`."""
        import opendp.prelude as dp

        dp.enable_features("contrib")
        domain, scale = dp.vector_domain(dp.atom_domain(T="i64")), float(self._scale(law))
        if law.law == "discrete-gaussian":
            noise = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)
        else:
            noise = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
        parts = [noise([0] * min(_CHUNK, size - start)) for start in range(0, size, _CHUNK)]
        return np.concatenate([np.zeros(0, np.int64), *(np.array(p, np.int64) for p in parts)])

    @staticmethod
    def _scale(law: NoiseSpec) -> Fraction:
        """Return the smallest double s with s >= b, or s**2 >= sigma2."""
        power = 2 if law.law == "discrete-gaussian" else 1
        near = float(law.scale) ** (1 / power)
        while Fraction(near) ** power >= law.scale:
            near = math.nextafter(near, 0.0)
        while Fraction(near) ** power < law.scale:
            near = math.nextafter(near, math.inf)
        return Fraction(near)


def vetted_sampler(recipe: str) -> tuple[str, Sampler]:
    """Return a sampler by ``NAME``, or ``NAME VERSION`` as a spec states it, and what is stated.

    Its version is the one that is installed, whichever was stated.
    """
    name = recipe.split(" ")[0] if isinstance(recipe, str) else recipe
    sampler = REGISTRY.make(name)
    return f"{name} {sampler.version}", sampler


def stated_samplers(parameters: Mapping[str, Any]) -> set[str]:
    """Return the samplers that the parameters of a mechanism state, of its parts, too."""
    name = parameters.get("sampler")
    names = {name} if isinstance(name, str) else set[str]()
    for part in parameters.values():
        if isinstance(part, Mapping):
            names |= stated_samplers(part)
    return names
