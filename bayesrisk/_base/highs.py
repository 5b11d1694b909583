"""HiGHS without its banner."""

from typing import Any

import highspy as highspy

_Highs: Any = highspy.Highs  # has no types


class _Silent(_Highs):  # type: ignore[misc]
    """HiGHS without its banner, which it prints with the first call unless it is told before."""

    def enableCallbacks(self) -> None:  # noqa: N802
        """Turn the log off before the constructor makes the first call."""
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()


def new_highs(**options: object) -> Any:
    """Return HiGHS with options, which prints nothing by default."""
    make: Any = _Silent
    highs = make()
    for option, value in options.items():
        highs.setOptionValue(option, value)
    return highs
