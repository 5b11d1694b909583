"""What every bad argument must meet: an error of our own tree that names it and its value."""

import math

import numpy as np
import pytest

from bayesrisk import ArgumentError

#: Wrong for every real-valued argument of every function.
NOT_REAL = [math.nan, math.inf, -math.inf, "x", True, 1j, object(), {}, [], [[1], [1, 2]]]
#: Wrong for every count.
NOT_COUNTS = [*NOT_REAL, None, 0.5, 2**53, 10**30]
#: Wrong for every prior.
NOT_PRIORS = [*NOT_REAL, None, 0, 1, -0.1, 1.1]
#: Wrong for rho, sigma2 and sensitivity.
NOT_POSITIVE = [*NOT_REAL, 0, -1]


def refuses(call, name, bad):
    """Assert that ``call(bad)`` raises an error that names the argument and the value."""
    with pytest.raises(ArgumentError) as caught:
        call(bad)
    message = str(caught.value)
    assert name in message, message
    if isinstance(bad, (int, float)) and not isinstance(bad, bool):
        assert str(bad) in message or str(float(bad)) in message, message
    elif isinstance(bad, (str, bool)) or bad is None:
        assert repr(bad) in message, message
    return True


def finite_or_refused(call):
    """Return whether ``call()`` gives finite numbers or is refused; a warning is an error."""
    try:
        return bool(np.isfinite(call()).all())
    except ArgumentError:
        return True
