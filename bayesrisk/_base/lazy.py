"""Public names that are loaded when they are first used, and the likest one for a wrong name."""

from collections.abc import Callable

import lazy_loader  # type: ignore[import-untyped]

from bayesrisk._base import old_names


def attach(
    package: str, file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package whose stub names all."""
    load, names, every = lazy_loader.attach_stub(package, file)

    def get(name: str) -> object:
        try:
            return load(name)
        except AttributeError as error:
            if name in every or name.startswith("_"):
                raise
            if name in old_names.NAMES.get(package, ()):
                return old_names.moved(package, name)
            from bayesrisk._base import validation as check
            from bayesrisk.exceptions import quote

            like = check.did_you_mean(name, every)
            raise AttributeError(f"{package} has no attribute {quote(name)}{like}") from error

    return get, names, every
