"""What HiGHS prints, of which nothing belongs among results."""

import subprocess
import sys


def test_highs_prints_nothing():
    """Its banner would stand among the JSON of a command."""
    code = (
        "from bayesrisk.constraints.solvers import make_solver; make_solver('highs');"
        "from bayesrisk.constraints.highs import new_highs; new_highs(threads=1); print('{}')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "{}\n"
    assert done.stderr == ""
