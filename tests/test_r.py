"""The page about R: its programs run, by files and, where R has reticulate, by that."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "use-other-frames.md"
needs_r = pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")


def programs():
    return re.findall("```r\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def run(program, folder):
    (folder / "program.R").write_text(program, encoding="utf-8")
    command = folder / "bayesrisk"
    command.write_text(
        f'#!/bin/sh\nunset LD_LIBRARY_PATH\nexec "{sys.executable}" -m bayesrisk "$@"\n',
        encoding="utf-8",
    )
    command.chmod(0o755)
    return subprocess.run(
        ["Rscript", "program.R"],
        cwd=folder,
        env=os.environ
        | {
            "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "RETICULATE_PYTHON": sys.executable,
        },
        capture_output=True,
        text=True,
        check=False,
    )


@needs_r
@pytest.mark.slow
def test_r_by_files(tmp_path):
    by_files, _ = programs()
    check = (
        '\nstopifnot(nrow(bounds) > 0, all(nchar(bounds$place) == 15))\ncat("rows", nrow(bounds))'
    )
    done = run(by_files + check, tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) > 0


@needs_r
@pytest.mark.slow
def test_r_by_reticulate(tmp_path):
    if run("library(reticulate)", tmp_path).returncode:
        pytest.skip("R has no reticulate")
    _, by_reticulate = programs()
    check = "\nstopifnot(nrow(frame) == 4000, all(frame$target %in% 0:1))"
    done = run(by_reticulate + check, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "target" in done.stdout
