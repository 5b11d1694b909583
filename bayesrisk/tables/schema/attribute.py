"""Attributes: what is said of a record, and with which codes."""

from dataclasses import dataclass

from bayesrisk import _validation as check
from bayesrisk.exceptions import ShapeError


@dataclass(frozen=True)
class Attribute:
    """A coded attribute of a record.

    Attributes
    ----------
    name : str
        Its name, which is that of its column.
    size : int
        Number of codes, at least 1.
    first : int
        The smallest code; the codes are ``first`` to ``first + size - 1``.
    labels : tuple of str
        What each code means, in order; or empty.
    """

    name: str
    size: int
    first: int = 0
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        name = check.text(self.name, "name")
        size = check.integer(self.size, f"size of {name!r}", lower=1, upper=2**31 - 1)
        first = check.integer(self.first, f"first of {name!r}", lower=-(2**31), upper=2**31 - 1)
        labels = check.texts(self.labels, f"labels of {name!r}")
        if labels and len(labels) != size:
            raise ShapeError(
                f"labels of {name!r} must be one for each of {size} codes, got {len(labels)}"
            )
        for key, value in (("size", size), ("first", first), ("labels", labels)):
            object.__setattr__(self, key, value)

    @property
    def last(self) -> int:
        """The largest code."""
        return self.first + self.size - 1

    def code(self, label: str) -> int:
        """Return the code of a label; refuse what is none, naming those that are."""
        return self.first + self.labels.index(check.choice(label, self.name, self.labels))
