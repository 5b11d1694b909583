"""Errors of calls of public functions: the argument that was meant, and the right form."""

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from itertools import accumulate
from os import PathLike
from typing import Any

from bayesrisk.exceptions import ArgumentTypeError, did_you_mean

#: What is given under a name that a function lacks: the arguments that it may have instead, and
#: how each is made; the name alone where the value is the same.
_MEANT: Mapping[str, Mapping[str, str]] = {
    "epsilon": {
        "rho": "rho=bayesrisk.accounting.epsilon_to_rho({value}, delta=1e-10)",
        "sigma2": "sigma2=bayesrisk.accounting.sigma2_from_rho("
        "bayesrisk.accounting.epsilon_to_rho({value}, delta=1e-10))",
        "scale": "scale=1 / epsilon, where a record changes a count by 1",
        "noise": "noise=bayesrisk.Noise("
        "rho=bayesrisk.accounting.epsilon_to_rho({value}, delta=1e-10))",
    },
    "rho": {
        "sigma2": "sigma2=bayesrisk.accounting.sigma2_from_rho({value})",
        "noise": "noise=bayesrisk.Noise(rho={value})",
    },
    "sigma2": {"noise": "noise=bayesrisk.DiscreteGaussian(sigma2={value})"},
    "noise": {"rho": "rho=0.1, say, the budget of the noise"},
    "sigma": {
        "sigma2": "sigma2=sigma**2, the variance",
        "rho": "rho=1 / (2 * sigma**2), where a record changes a count by 1",
    },
    "variance": {
        "sigma2": "",
        "rho": "rho=1 / (2 * variance), where a record changes a count by 1",
    },
    "protection": {"protections": 'protections=["{value}"]', "mechanism": ""},
    "mechanism": {"protection": "", "protections": 'protections=["{value}"]'},
    "sensitive": {"secret": ""},
    "target": {"secret": "", "limit": ""},
    "risk": {"limit": ""},
    "rng": {"seed": "seed={value}"},
    "percent": {"rate": "rate=0.05 for 5 %"},
}
_ALIKE = {
    **dict.fromkeys(("eps", "privacy_budget", "budget"), "epsilon"),
    **dict.fromkeys(("std", "scale", "sd"), "sigma"),
    **dict.fromkeys(("var", "sigma_squared"), "variance"),
    **dict.fromkeys(("target_risk", "max_risk"), "risk"),
    "random_state": "rng",
    **dict.fromkeys(("percentage", "share"), "percent"),
}
_SHOWN = 12  # names of arguments in a message

_answering: dict[Callable[..., Any], Callable[..., Any]] = {}
_explained: set[type] = set()
_answered: set[type] = set()  # classes of what was returned


def answering(value: Any) -> Any:
    """Return a public object whose calls give advice on errors.

    A function is replaced in its module and the packages around it, so that it is one object. For a
    class, the construction of instances is replaced.
    """
    if inspect.isfunction(value):
        if value not in _answering:
            call = _answering[value] = _wrapped(value)
            _answering[call] = call
            places, name = accumulate(call.__module__.split("."), "{}.{}".format), call.__name__
            for names in (vars(sys.modules[place]) for place in places if place in sys.modules):
                if names.get(name) is value:
                    names[name] = call
        return _answering[value]
    if inspect.isclass(value) and value.__module__.startswith("bayesrisk."):
        _explain(value)
    return value


def caller_level() -> int:
    """Return the stack level, for a warning, of the first caller outside this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "bayesrisk":
        frame, level = frame.f_back, level + 1
    return level


def _explain(owner: type) -> None:
    """Replace the methods and the named constructors of a class and those above it, once."""
    for kind in owner.__mro__:
        if kind in _explained or not kind.__module__.startswith("bayesrisk."):
            continue
        _explained.add(kind)
        if issubclass(kind, BaseException) or getattr(kind, "_is_protocol", False):
            continue
        for name, value in list(vars(kind).items()):
            if name.startswith("_") and name != "__init__":
                continue
            if inspect.isfunction(value):
                setattr(kind, name, _wrapped(value, 1, kind))
            elif isinstance(value, classmethod):
                setattr(kind, name, classmethod(_wrapped(value.__func__, 1)))


def _wrapped(
    function: Callable[..., Any], hidden: int = 0, owner: type | None = None
) -> Callable[..., Any]:
    """Return a function that explains wrong calls; ``hidden`` first arguments nobody gives.

    A method of the objects of a class has it as its ``owner``.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            answer = function(*args, **kwargs)
        except (TypeError, AttributeError):
            if (fault := _fault(function, hidden, owner, args, kwargs)) is None:
                raise
        else:
            if (kind := type(answer)) not in _answered:
                _answered.add(kind)
                answering(kind)
            return answer
        raise fault

    return call


def _fault(
    function: Callable[..., Any],
    hidden: int,
    owner: type | None,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> ArgumentTypeError | None:
    """Return the error of a call that does not fit its signature, or None."""
    self = args[0] if args else None
    if owner is not None and not isinstance(self, owner):
        name = function.__name__
        owner_name = "NAME" if owner.__name__.startswith("Base") else owner.__name__
        rule = f"must be called on an object, not on its class: write {owner_name}(...).{name}(...)"
        return ArgumentTypeError(name, rule)
    signature = inspect.signature(function)
    if "rng" in signature.parameters and kwargs.keys() & {"seed", "random_state"}:
        return None  # :func:`~bayesrisk._base.randomness.seeded` says what to write
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        pass
    else:
        return None
    every, args = list(signature.parameters.values())[hidden:], args[hidden:]
    title = function.__qualname__.removesuffix(".__init__")
    if owner is not None and function.__name__ != "__init__":
        title = f"{type(self).__name__}.{function.__name__}"
    named = [one for one in every if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    names = [one.name for one in named]
    placed = [one.name for one in named if one.kind is not one.KEYWORD_ONLY]
    listed = ", ".join(names[:_SHOWN]) + ", ..." * (len(names) > _SHOWN) if names else "none"
    options = any(one.kind is one.VAR_KEYWORD for one in every)
    for name, value in kwargs.items():
        if name not in names and not options:
            return ArgumentTypeError(
                name, f"is no argument of {title}, which takes {listed}", got=value,
                advice=meant(name, value, names) or did_you_mean(name, names),
            )  # fmt: skip
    if len(args) > len(placed) and not any(one.kind is one.VAR_POSITIONAL for one in every):
        first = [*placed, *(n for n in names if n not in placed and n not in kwargs)][: len(args)]
        return ArgumentTypeError(
            f"{title} takes {len(placed) or 'no'} argument{'s' * (len(placed) != 1)} without a "
            f"name, got {len(args)}: write {title}({', '.join(f'{n}=...' for n in first)})"
        )
    present = {*placed[: len(args)], *kwargs}
    missing = [one.name for one in named if one.default is one.empty and one.name not in present]
    for name in missing:
        extra = [other for other in kwargs if other not in names]
        near = next((o for o in extra if meant(o, None, [name]) or did_you_mean(o, [name])), None)
        if near is not None:
            return ArgumentTypeError(f"{title} needs {name}: write it for {near}")
    if not missing:  # an argument twice, say
        return None
    source, kind = args[0] if args else None, getattr(owner, "__name__", "")
    way = "from_frame" if hasattr(source, "columns") else ""
    way = "read" if isinstance(source, str | PathLike) else way
    if title == kind and way and hasattr(owner, way):
        source_kind = "frame" if way == "from_frame" else "file"
        return ArgumentTypeError(
            f"{title} is not made of a {source_kind}: write {title}.{way}({source_kind})"
        )
    call = ", ".join(["..."] * bool(present) + [f"{name}=..." for name in missing])
    return ArgumentTypeError(f"{title} needs {' and '.join(missing)}: write {title}({call})")


def meant(name: str, value: object, names: list[str]) -> str:
    """Return advice about an argument that other functions call so, empty where there is none."""
    ways = _MEANT.get(_ALIKE.get(name, name), {})
    way = next((text or f"{other}=..." for other, text in ways.items() if other in names), "")
    word = repr(value) if isinstance(value, (int, float)) else str(value or name.upper())
    word = repr(value) if "(" in way and "%" in word else word
    return way and f": write {way.replace('{value}', word)}"
