"""Choice by name: the package's own, registered ones, and plug-ins of other packages.

A plug-in is named in an entry-point group of its package. A plug-in that fails to load is skipped
with a warning. The package's own are listed in its code, and those of a wing in its folder's
``entry_points.txt``: they exist in any installation. Foreign code is isolated, and failures in it
name the plug-in.
"""

import contextlib
import copyreg
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import FunctionType, MappingProxyType
from typing import Any, Generic, TypeVar, cast

from bayesrisk._base import interrupts, validation as check
from bayesrisk._base.calls import caller_level, meant
from bayesrisk._base.wings import wing_points
from bayesrisk.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    BayesRiskError,
    BayesRiskWarning,
    PluginError,
    error_line,
    name_list,
    quote,
)

T = TypeVar("T")

#: Kinds that a command lists, and recipes make.
_LISTED = ("mechanism", "attack")
#: Parameters that say how much is protected: never taken silently, each with an example.
STATED = {
    "rate": "0.05", "base": "5", "threshold": "10", "rho": "0.1", "epsilon": "1",
    "edges": "[0,1,5,10]", "least": "10", "ptable": "FILE.csv",
}  # fmt: skip


class Registry(Generic[T]):
    """Factories of one kind of thing, by name.

    ``kind`` is the name in messages, and the entry-point group is ``bayesrisk.KINDs``. ``builtin``
    has the package's own and its wings' factories as ``module:attribute``, loaded on request;
    nothing replaces them. Objects made follow ``protocol``, which ``needs`` describes in words, and
    their methods return the types in ``results``.
    """

    def __init__(
        self,
        kind: str,
        *,
        builtin: Mapping[str, str],
        protocol: type,
        needs: str,
        results: Mapping[str, type] = MappingProxyType({}),
    ) -> None:
        self.kind, self.group = kind, f"bayesrisk.{kind}s"
        self.builtin = {**builtin, **wing_points().get(self.group, {})}
        self._protocol, self._needs, self._results = protocol, needs, tuple(results.items())
        self._registered: dict[str, Callable[..., T]] = {}

    def register(self, name: str, factory: Callable[..., T]) -> None:
        """Make something available under a name, for this process."""
        if check.text(name, "name") in self.builtin:
            raise ArgumentError(
                "name", f"must not be one of the package's own {self.kind}s", got=name
            )
        if not callable(factory):
            raise ArgumentTypeError("factory", "must be callable", got=factory)
        self._registered[name] = factory

    def available(self) -> list[str]:
        """Return the names that can be chosen, sorted."""
        points = {point.name for point in entry_points(group=self.group)}
        return sorted(points | set(self.builtin) | set(self._registered))

    def make(self, name: str, /, *arguments: object, **parameters: object) -> T:
        """Return the object of a name, made with these arguments and checked."""
        self._check(name)
        factory = self._find(name)
        subject = self.subject(name)
        with Wall(subject):
            try:
                signature = inspect.signature(factory)
            except ValueError:
                pass  # a factory without a signature checks for itself
            else:
                check_names(self.kind, name, signature, arguments, parameters)
                if name not in self.builtin:
                    parameters = _typed(signature, parameters)
            try:
                plugin = factory(*arguments, **parameters)
            except ArgumentError as error:
                recipe = self.kind in _LISTED and name in self.builtin
                if not recipe or error.argument not in parameters:
                    raise
                raise error.renamed(f"{name}:{error.argument}") from error
            follows = isinstance(plugin, self._protocol)
        if not follows:
            rule = f"{subject.removeprefix(self.kind).lstrip()} must have {self._needs}"
            raise ArgumentTypeError(self.kind, rule, got=plugin)
        walled: T = behind_wall(plugin, subject, self._results)
        return walled

    def subject(self, name: str) -> str:
        """Return the name in messages: of a plug-in with its package and version."""
        points = () if name in {*self.builtin, *self._registered} else entry_points(
            group=self.group, name=name
        )  # fmt: skip
        packages = (getattr(point, "dist", None) for point in points)
        named = [f" ({package.name} {package.version})" for package in packages if package]
        return f"{self.kind} {name!r}{''.join(named[:1])}"

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
        self._check(name)
        return self._find(name)

    def _check(self, name: object) -> None:
        # To look for plug-ins is to read the metadata of every installed package: some 10 ms.
        if not isinstance(name, str) or not (name in self.builtin or name in self._registered):
            listing = f"; `bayesrisk list {self.kind}s` has all" if self.kind in _LISTED else ""
            check.choice(name, f"name of the {self.kind}", tuple(self.available()), listing)

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
            raise ArgumentError(self.kind, f"{name!r} cannot be loaded")
        return factory

    def _load(self, point: EntryPoint) -> Callable[..., T] | None:
        """Return the factory that an entry point names, or warn and return None."""
        try:
            with Wall(self.kind):
                factory = point.load()
        except Exception as error:
            cause = error_line(error.__cause__ or error)
            text = f"{self.subject(point.name)} is skipped: {cause}"
            warnings.warn(text, BayesRiskWarning, stacklevel=caller_level())
            return None
        return cast(Callable[..., T], factory) if callable(factory) else None


# -----------------------------------------------------------------------------
# The wall: every function of a foreign class fails by the plug-in's name, in workers too.

Results = tuple[tuple[str, type], ...]


class Wall:
    """Turn exceptions of foreign code into a PluginError, and end its forked processes.

    Requests to end pass through. So do errors of bayesrisk: they are about a parameter, or come
    from a method, where the plug-in is named.
    """

    # Not a generator: contextlib lets a StopIteration out as it came.

    def __init__(self, subject: str, *, method: bool = False) -> None:
        self._subject, self._method, self._process = subject, method, os.getpid()
        self._folder = _current_folder()

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        if os.getpid() != self._process:
            os._exit(1)
        if self._folder is not None and _current_folder() != self._folder:
            os.chdir(self._folder)  # where relative names of the command line are
        if error is None:
            return
        interrupts.check()
        if isinstance(error, BayesRiskError):
            if self._method and self._subject not in str(error):
                raise type(error)(f"{self._subject}: {error}") from error
        elif type(error) is not KeyboardInterrupt:
            raise PluginError(f"{self._subject} failed: {error_line(error)}") from error


def _current_folder() -> str | None:
    """Return the current folder; None if it is gone."""
    try:
        return str(Path.cwd())
    except OSError:
        return None


def is_own(subject: object) -> bool:
    """Return whether a class or a function is the package's."""
    return f"{getattr(subject, '__module__', '')}.".startswith("bayesrisk.")


def behind_wall(plugin: object, subject: str, results: Results) -> Any:
    """Return a plug-in, now of a class like its own whose functions are walled in."""
    kind: Any = type(plugin)
    if is_own(kind) or hasattr(kind, "_behind_wall"):
        return plugin
    try:
        object.__setattr__(plugin, "__class__", _walled_class(kind, subject, results))
    except TypeError as error:  # a module, say, or an object of a class in C
        raise PluginError(
            f"{subject} must be an object of a class in Python, got {quote(plugin)}"
        ) from error
    return plugin


@functools.cache
def _walled_class(kind: Any, subject: str, results: Results) -> type:
    body: dict[str, Any] = {n: getattr(kind, n) for n in ("__module__", "__qualname__", "__doc__")}
    body["__slots__"] = ()
    body["_behind_wall"] = kind, subject, results
    for name in dir(kind):
        value = inspect.getattr_static(kind, name)
        if isinstance(value, property) and value.fget and not is_own(value.fget):
            body[name] = property(_walled(value.fget, name, subject, {}), value.fset, value.fdel)
        elif isinstance(value, FunctionType) and not (name.startswith("__") or is_own(value)):
            body[name] = _walled(value, name, subject, dict(results))
    meta: Any = type(kind)
    walled: type = _walled_meta(meta)(kind.__name__, (kind,), body)
    return walled


@functools.cache
def _walled_meta(meta: type) -> Callable[..., type]:
    """Return the class of isolated classes; workers make them from the same arguments."""
    walled: Any = type(meta.__name__, (meta,), {})
    copyreg.pickle(walled, lambda kind: (_walled_class, kind._behind_wall))
    maker: Callable[..., type] = walled
    return maker


def _walled(
    function: Callable[..., Any], name: str, subject: str, results: Mapping[str, type]
) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        with Wall(subject, method=True):
            value = function(*args, **kwargs)
        if name in ("prepare", "_prepare") and "release" in results:  # what draws releases later
            return behind_wall(value, subject, (("draw", results["release"]),))
        wanted = results.get(name, object)
        if not isinstance(value, wanted):
            rule = f"must return a {wanted.__name__}, not one of {type(value).__name__}"
            raise PluginError(f"{subject} failed: {name}() {rule}")
        return value

    return call


def _typed(signature: inspect.Signature, parameters: Mapping[str, object]) -> dict[str, object]:
    """Return parameters, with decimals of a recipe as numbers where a factory asks for a float."""
    typed = dict(parameters)
    for name, value in parameters.items():
        parameter = signature.parameters.get(name)
        if (
            isinstance(value, str)
            and parameter is not None
            and parameter.annotation in (float, "float")
        ):
            with contextlib.suppress(ValueError):
                typed[name] = float(value)
    return typed


def check_names(
    kind: str,
    name: str,
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
            n for n, p in named.items()
            if p.default is p.empty and p.kind is not p.VAR_POSITIONAL and n not in parameters
        ][len(arguments):]  # fmt: skip
        unknown = next((n for n in parameters if n not in named), None)
        rule, advice = f"{name!r}: {error}", ""
        if needed:
            values = ",".join(f"{n}={STATED.get(n, 'VALUE')}" for n in needed)
            rule = f"{name} needs {' and '.join(needed)}: write {name}:{values}"
            advice = ", or a value of yours"
        if unknown is not None:
            rule = f"{rule}; it" if needed else name
            rule = f"{rule} has no {quote(unknown)}"
            advice = meant(unknown, parameters[unknown], [*named])
            advice = advice or check.did_you_mean(unknown, named)
            advice = advice or f"; possible: {name_list(named) if named else 'none'}"
            if kind == "mechanism" and "epsilon_to_rho" in advice:
                advice = f"; `bayesrisk convert --epsilon {parameters[unknown]} --delta 1e-10` "
                advice += f"gives the rho of an epsilon: write {name}:rho=RHO"
        raise ArgumentError(kind, rule, advice=advice) from error
