"""Public names that are loaded on first use, and the places of names that moved."""

import ast
import functools
import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import lazy_loader  # type: ignore[import-untyped]

from bayesrisk._base import old_names
from bayesrisk._base.calls import answering


def attach(
    package: str, file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package whose stub names all."""
    load, names, every = lazy_loader.attach_stub(package, file)

    def get(name: str) -> object:
        try:
            if name in every and Path(file).with_name(name).is_dir():
                return importlib.import_module(f"{package}.{name}")  # a room, perhaps called
            value = load(name)
        except AttributeError as error:
            if name in every or name.startswith("_"):
                raise
            if old_names.moves(package, name):
                return old_names.moved(package, name)
            from bayesrisk._base import validation as check
            from bayesrisk.exceptions import quote

            places = [f"{place}.{name}" for place in public_places().get(name, ())]
            like = f": it is {' or '.join(places)}" if places else check.did_you_mean(name, every)
            raise AttributeError(f"{package} has no attribute {quote(name)}{like}") from error
        value = vars(sys.modules[package])[name] = answering(value)  # for whoever asks again
        return value

    return get, names, every


@functools.cache
def public_places() -> Mapping[str, list[str]]:
    """Return the modules that list each public name, found without loading any of them."""
    root, places = Path(__file__).parents[1], dict[str, list[str]]()
    for file in sorted([*root.glob("*.py*"), *root.glob("*/__init__.py*")]):
        module = ".".join(file.relative_to(root.parent).with_suffix("").parts)
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            names: list[str] = []
            if isinstance(node, ast.ImportFrom) and file.suffix == ".pyi":
                names = [alias.asname or alias.name for alias in node.names]
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names = ast.literal_eval(node.value) if isinstance(node.value, ast.List) else []
            for name in names:
                places.setdefault(name, []).append(module.removesuffix(".__init__"))
    return places


def callable_room(verb: str) -> type[ModuleType]:
    """Return the class of a module that is also the function ``module:name`` of a later room.

    It is for a verb of the front door that has the name of a room: both are found by that name.
    """
    module, _, name = verb.partition(":")

    class Room(ModuleType):
        def __call__(self, *args: object, **kwargs: object) -> object:
            return self.__wrapped__(*args, **kwargs)

        @property
        def __wrapped__(self) -> Callable[..., object]:
            function: Callable[..., object] = getattr(importlib.import_module(module), name)
            answer: Callable[..., object] = answering(function)
            return answer

    return Room
