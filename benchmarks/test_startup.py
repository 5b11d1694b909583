"""Time to import, and time to compile the kernels against loading them from the cache."""

import os
import statistics
import subprocess
import sys
import time

_FIRST_USE = """
import time
start = time.perf_counter()
import bayesrisk
bayesrisk.marginal_posterior(rho=0.1, prior=0.5)
bayesrisk.DiscreteGaussian(5.0).rvs(10, 1)
bayesrisk.accounting.discrete_gaussian_delta(1.0, sigma2=5.0)
print(time.perf_counter() - start)
"""


def _python(code, **environment):
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, **environment}
    ).stdout


def test_import(benchmark):
    benchmark.pedantic(lambda: _python("import bayesrisk"), rounds=7, warmup_rounds=1)
    if benchmark.disabled:
        return
    timed = "import time; s = time.perf_counter(); import bayesrisk; print(time.perf_counter() - s)"
    seconds = statistics.median(float(_python(timed)) for _ in range(7))
    print(f"\n  import bayesrisk: {seconds:.3f} s (aim: at most 0.5 s)")


def test_first_use(benchmark, tmp_path):
    """Everything up to first results: from the kernel cache, and compiling anew."""
    start = time.perf_counter()
    compiled = float(_python(_FIRST_USE, NUMBA_CACHE_DIR=str(tmp_path)))
    cached = benchmark.pedantic(
        lambda: float(_python(_FIRST_USE, NUMBA_CACHE_DIR=str(tmp_path))), rounds=5
    )
    assert time.perf_counter() - start > compiled > 0.0
    print(f"\n  first results: {cached:.2f} s with the kernel cache, {compiled:.2f} s compiling")
