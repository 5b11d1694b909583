"""Compiled kernels where no folder for their cache can be written."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import json, warnings
from numba.core import caching

def refuse(self):
    raise OSError("read-only file system")

caching._CacheLocator.ensure_cache_path = refuse
for name in ("InTreeCacheLocator", "InTreeCacheLocatorFsAgnostic", "UserWideCacheLocator",
             "UserProvidedCacheLocator"):
    if "ensure_cache_path" in vars(getattr(caching, name, object)):
        getattr(caching, name).ensure_cache_path = refuse
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    from bayesrisk import posterior_probability
    from bayesrisk.distributions import DiscreteGaussian
    value = float(posterior_probability(3, rho=0.0992264, prior=0.1))
print(json.dumps([value, [[w.category.__name__, str(w.message)] for w in found]]))
"""


@pytest.mark.slow
def test_kernels_work_without_a_cache_and_say_so_once():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=300
    )
    value, warned = json.loads(done.stdout)
    # Posterior odds are 1/9 exp((2 * 3 - 1) / (2 sigma2)), sigma2 = 1 / (2 rho): README's number.
    assert value == pytest.approx(0.154, abs=5e-4)
    assert [name for name, _ in warned] == ["BayesRiskWarning"]
    assert "set NUMBA_CACHE_DIR" in warned[0][1]


def test_a_full_disk_does_not_end_the_command(tmp_path):
    """A limit on the size of files stands for the disk: writing fails in the same way."""
    code = """
import resource, warnings
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as caught:
    from bayesrisk._numba import elementwise, kernel

    @kernel
    def twice(x):
        return 2 * x

    @elementwise("float64(float64)")
    def half(x):
        return x / 2

    assert twice(3) == 6 and twice(1.5) == 3.0 and half(3.0) == 1.5
print([str(w.message) for w in caught])
"""
    script = tmp_path / "kernels.py"  # Numba caches by file
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("compiled kernels cannot be written to disk") == 1
