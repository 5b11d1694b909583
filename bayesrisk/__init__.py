"""Bayesian disclosure risk of published statistics.

Given what was published, and what an adversary already believed: what does the adversary now
believe about a person, and how much of that is due to that person's own record?

The public names are those of ``__init__.pyi``.  They are loaded when they are first used, so that
importing the package is cheap.
"""

from collections.abc import Callable

import lazy_loader as _lazy


def _attach(
    package: str, file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package whose stub names all."""
    load, names, every = _lazy.attach_stub(package, file)

    def get(name: str) -> object:
        try:
            return load(name)
        except AttributeError as error:
            if name in every or name.startswith("_"):
                raise
            from bayesrisk import _validation as check

            like = check.did_you_mean(name, every)
            raise AttributeError(f"{package} has no attribute {check.shown(name)}{like}") from error

    return get, names, every


__getattr__, __dir__, __all__ = _attach(__name__, __file__)
