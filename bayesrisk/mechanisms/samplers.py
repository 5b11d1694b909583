"""Noise for real releases, drawn by a vetted library such as OpenDP.

Without a sampler, mechanisms draw with NumPy, which is for simulation. A plug-in is a class without
parameters in the entry-point group ``bayesrisk.samplers``, which follows
:class:`bayesrisk.interfaces.Sampler`.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, cast

import numpy as np
from scipy.special import rel_entr

from bayesrisk._base.plugins import Registry
from bayesrisk._base.validation import IntArray
from bayesrisk.exceptions import ArgumentError, PluginError, quote
from bayesrisk.interfaces import Sampler
from bayesrisk.release import NoiseSpec

REGISTRY: Registry[Sampler] = Registry(
    "sampler",
    builtin={"opendp": "bayesrisk.mechanisms.samplers:OpenDPSampler"},
    protocol=Sampler,
    needs="version, law() and draw()",
)
_CHUNK = 2**16  # draws of one call: OpenDP hands over lists
#: Probability at which draws are no longer taken for those of their law: 1e-12 for nine questions,
#: whether each of four counts is too low or too high, and whether one draw lies too far out.
_LEAST = 1e-12 / 9


class OpenDPSampler:
    """Sampler of discrete Gaussian and Laplace noise by OpenDP (the extra ``opendp``).

    OpenDP draws integers by exact arithmetic, from the cryptographic source of the operating system
    (Canonne, Kamath and Steinke 2020, arXiv:2004.00010). Its scale is a double. The law drawn and
    stated has the smallest double at or above the requested scale, so a budget is never exceeded.

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
                "sampler 'opendp' must be installed: pip install 'bayesrisk-disclosure[opendp]'"
            )
        self.version = version("opendp")

    def law(self, spec: NoiseSpec) -> NoiseSpec:
        """Return the law that OpenDP draws: the same, with a scale rounded up to a double."""
        scale = self._scale(spec)
        return NoiseSpec(spec.law, scale**2 if spec.law == "discrete-gaussian" else scale)

    def draw(self, law: NoiseSpec, size: int) -> IntArray:
        """Return ``size`` independent draws from a law of :meth:`law`."""
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
        """Return the smallest double s with s >= b (Laplace) or s**2 >= sigma2 (Gaussian)."""
        power = 2 if law.law == "discrete-gaussian" else 1
        near = float(law.scale) ** (1 / power)
        while Fraction(near) ** power >= law.scale:
            near = math.nextafter(near, 0.0)
        while Fraction(near) ** power < law.scale:
            near = math.nextafter(near, math.inf)
        return Fraction(near)


class CheckedSampler:
    """A sampler whose laws and draws are checked; violations raise a PluginError.

    Draws of a release are refused if they are too improbable: below 1e-12 at each check. Checks are
    the numbers of draws that are 0, above, below or between the quartiles of their laws, and the
    most extreme draw.
    """

    def __init__(self, name: str) -> None:
        self._sampler = REGISTRY.make(name)
        self._subject = REGISTRY.subject(name)
        self.stated = f"{name} {self._sampler.version}"

    def law(self, wanted: NoiseSpec) -> NoiseSpec:
        """Return the law that is drawn; raise if it is of another kind or narrower than wanted."""
        law = self._sampler.law(wanted)
        follows = type(law) is NoiseSpec and law.law == wanted.law and law.scale >= wanted.scale
        if not follows:
            raise self._refusal(f"law() must be {wanted.law} of scale >= {wanted.scale}", law)
        return law

    def draws(self) -> "SeenDraws":
        """Return a source of draws for one release."""
        return SeenDraws(self)

    def draw(self, law: NoiseSpec, size: int) -> IntArray:
        """Return ``size`` draws; raise unless they are an array of 64-bit integers."""
        draws = self._sampler.draw(law, size)
        if type(draws) is not np.ndarray or draws.shape != (size,):
            shape = draws.shape if type(draws) is np.ndarray else draws
            raise self._refusal(f"draw() must return an array of shape ({size},)", shape)
        if draws.dtype.kind not in "iu" or not np.can_cast(draws.dtype, np.int64):
            raise self._refusal("draw() must return whole numbers of int64", draws.dtype)
        return cast(IntArray, draws.astype(np.int64))

    def _refusal(self, rule: str, value: object) -> PluginError:
        return PluginError(f"{self._subject} failed: {rule}, got {quote(value)}")


class SeenDraws:
    """Draws of one release, with the tallies by which implausible ones are detected."""

    def __init__(self, sampler: CheckedSampler) -> None:
        self._sampler, self._number = sampler, 0
        self._expected, self._counts = np.zeros(4), np.zeros(4, np.int64)

    def draw(self, law: NoiseSpec, size: int) -> IntArray:
        """Return ``size`` draws from a law; raise if the draws so far are implausible."""
        draws, noise = self._sampler.draw(law, size), law.to_law()
        if not size:
            return draws
        far = max(int(draws.max()), -int(draws.min()))  # abs() of the least int64 is negative
        if 2 * size * float(noise.sf(far - 1)) < _LEAST:
            raise self._sampler._refusal(f"draws must be of {law}", far)
        middle = int(noise.isf(0.25))
        beyond = float(noise.sf(middle))
        self._number += size
        self._expected += size * np.array([noise.pmf(0), beyond, beyond, 1.0 - 2.0 * beyond])
        zero, above, below = (
            np.count_nonzero(kind) for kind in (draws == 0, draws > middle, draws < -middle)
        )
        self._counts += [zero, above, below, size - above - below]
        # Chernoff: S of n independent events of mean probability p has S / n at least, or at most,
        # s with probability exp(-n KL(s || p)) or less.
        share, mean = self._counts / self._number, np.minimum(self._expected / self._number, 1.0)
        divergence = rel_entr(share, mean) + rel_entr(1.0 - share, 1.0 - mean)
        if self._number * divergence.max() > -math.log(_LEAST):
            rule = (
                f"draws must be of {law}: zeros, those above {middle}, below {-middle}, between, of"
            )
            wanted = f"{rule} {self._number} must be about {np.rint(self._expected).tolist()}"
            raise self._sampler._refusal(wanted, self._counts.tolist())
        return draws


def vetted_sampler(recipe: str) -> tuple[str, CheckedSampler]:
    """Return the sampler named ``NAME`` or ``NAME VERSION``, after its stated name and version.

    The version is the installed one, whichever was stated.
    """
    sampler = CheckedSampler(recipe.split(" ")[0] if isinstance(recipe, str) else recipe)
    return sampler.stated, sampler


def stated_samplers(parameters: Mapping[str, Any]) -> set[str]:
    """Return the names of samplers in a mechanism's parameters and their nested parts."""
    name = parameters.get("sampler")
    names = {name} if isinstance(name, str) else set[str]()
    for part in parameters.values():
        if isinstance(part, Mapping):
            names |= stated_samplers(part)
    return names
