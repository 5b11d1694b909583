"""Protocols of the plug-ins: what a noise law and an executor must offer, and nothing more."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar, runtime_checkable

from numpy.typing import ArrayLike

_T = TypeVar("_T")
_R = TypeVar("_R")

__all__ = ["Executor", "NoiseLaw"]


@runtime_checkable
class NoiseLaw(Protocol):
    """A law of integer noise, as an adversary must know it to read a release.

    ``logpmf`` is all that a posterior given one release needs; averages over releases also need
    the quantiles ``ppf`` and ``isf``, which bound the releases that are summed.
    """

    def logpmf(self, x: ArrayLike) -> Any:
        """Return the natural logarithm of the probability of noise ``x``."""

    def ppf(self, q: ArrayLike) -> Any:
        """Return the smallest ``x`` whose cumulative probability is at least ``q``."""

    def isf(self, q: ArrayLike) -> Any:
        """Return the smallest ``x`` whose upper-tail probability is at most ``q``."""


class Executor(Protocol):
    """Runs independent pieces of work; results may arrive in any order."""

    def run(self, task: Callable[[_T], _R], items: Iterable[_T]) -> Iterator[_R]:
        """Yield ``task(item)`` for every item, each as soon as it is finished."""
