"""Choosing by name: the package's own, registered ones, and plug-ins of other packages.

A plug-in is named in an entry-point group of its package.  One that fails to load is skipped with
a warning.  The package's own are listed in its code and nowhere else, so that they are there
whatever the installation says.
"""

import inspect
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar, cast

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, BayesRiskWarning, quote

T = TypeVar("T")


class Registry(Generic[T]):
    """Factories of one kind of thing, by name.

    ``kind`` is the name in messages, and the entry-point group is ``bayesrisk.KINDs``; ``builtin``
    has the package's own as ``module:attribute``, loaded when they are asked for, and nothing
    replaces them; whatever is made follows ``protocol``, which ``needs`` says in words.
    """

    def __init__(
        self, kind: str, *, builtin: Mapping[str, str], protocol: type, needs: str
    ) -> None:
        self.kind, self.builtin, self.group = kind, dict(builtin), f"bayesrisk.{kind}s"
        self._protocol, self._needs = protocol, needs
        self._registered: dict[str, Callable[..., T]] = {}

    def register(self, name: str, factory: Callable[..., T]) -> None:
        """Make something available under a name, for this process."""
        if check.text(name, "name") in self.builtin:
            raise ArgumentError(
                f"name must not be one of the package's own {self.kind}s, got {quote(name)}"
            )
        if not callable(factory):
            raise ArgumentTypeError(f"factory must be callable, got {quote(factory)}")
        self._registered[name] = factory

    def available(self) -> list[str]:
        """Return the names that can be chosen, sorted."""
        points = {point.name for point in entry_points(group=self.group)}
        return sorted(points | set(self.builtin) | set(self._registered))

    def make(self, name: str, /, *arguments: object, **parameters: Any) -> T:
        """Return the object of a name, made with these arguments and checked."""
        # To look for plug-ins is to read the metadata of every installed package: some 10 ms.
        if not isinstance(name, str) or not (name in self.builtin or name in self._registered):
            check.choice(name, f"name of the {self.kind}", tuple(self.available()))
        factory = self._find(name)
        try:
            signature = inspect.signature(factory)
        except ValueError:
            pass  # a factory without a signature checks for itself
        else:
            check_names(f"{self.kind} {name!r}", signature, arguments, parameters)
        plugin = factory(*arguments, **parameters)
        if not isinstance(plugin, self._protocol):
            raise ArgumentTypeError(
                f"{self.kind} {name!r} must have {self._needs}, got {quote(plugin)}"
            )
        return plugin

    def parameters(self, name: str) -> dict[str, bool]:
        """Return the parameters that a name takes, and whether each must be given."""
        factory = self.factory(name)
        try:
            signature = inspect.signature(factory)
        except ValueError:
            return {}
        several = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        return {
            n: p.default is p.empty
            for n, p in signature.parameters.items()
            if p.kind not in several
        }

    def factory(self, name: str) -> Callable[..., T]:
        """Return the factory of a name."""
        check.choice(name, f"name of the {self.kind}", tuple(self.available()))
        return self._find(name)

    def _find(self, name: str) -> Callable[..., T]:
        """Return the factory: the package's own first, then registered ones, then plug-ins."""
        factory: Callable[..., T] | None
        if name in self.builtin:
            factory = self._load(EntryPoint(name, self.builtin[name], self.group))
        elif name in self._registered:
            factory = self._registered[name]
        else:
            loaded = (self._load(point) for point in entry_points(group=self.group, name=name))
            factory = next((loadable for loadable in loaded if loadable is not None), None)
        if factory is None:
            raise ArgumentError(f"{self.kind} {name!r} cannot be loaded")
        return factory

    def _load(self, point: EntryPoint) -> Callable[..., T] | None:
        """Return the factory that an entry point names, or warn and return None."""
        try:
            factory = point.load()
        except Exception as error:
            text = f"{self.kind} {point.name!r} is skipped: {error}"
            warnings.warn(text, BayesRiskWarning, stacklevel=5)
            return None
        return cast(Callable[..., T], factory) if callable(factory) else None


def check_names(
    subject: str,
    signature: inspect.Signature,
    arguments: tuple[Any, ...],
    parameters: Mapping[str, Any],
) -> None:
    """Refuse parameters that a factory lacks or still needs, all of them at once."""
    try:
        signature.bind(*arguments, **parameters)
    except TypeError as error:
        named = {n: p for n, p in signature.parameters.items() if p.kind is not p.VAR_KEYWORD}
        needed = [
            n for n, p in named.items() if p.default is p.empty and p.kind is not p.VAR_POSITIONAL
        ]
        unknown = [n for n in parameters if n not in named]
        like = [f"; not {quote(n)}{check.did_you_mean(n, named)}" for n in unknown[:1]]
        raise ArgumentError(
            f"{subject}: {error}; needed: {', '.join(needed) or 'nothing'}; "
            f"possible: {', '.join(named) or 'nothing'}{''.join(like)}"
        ) from error
