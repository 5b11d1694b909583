"""The README is run: its Python blocks print what their comments say; so are the commands."""

import io
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
PAGE = Path(__file__).parents[1] / "docs" / "start" / "first-commands.md"
COMMANDS = [
    command
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for command in re.findall(r"^\$ (bayesrisk .*)$", block, re.MULTILINE)
]


@pytest.mark.parametrize("block", PYTHON, ids=range(len(PYTHON)))
def test_python_blocks_print_what_they_say(block):
    promised = re.findall(r"^print\(.*\)\s+# (\[.*\]|[^\s:,]+)", block, re.MULTILINE)
    assert promised
    output = io.StringIO()
    with redirect_stdout(output):
        exec(compile(block, "README.md", "exec"), {})  # noqa: S102 - our own text
    assert [text.strip() for text in promised] == output.getvalue().splitlines()


def test_the_noise_of_the_census_is_named_by_its_size_and_taken_as_produced():
    home = (Path(__file__).parents[1] / "docs" / "index.md").read_text(encoding="utf-8")
    for text in (README, home):
        said = " ".join(text.replace("#", " ").split())
        assert "size used for census blocks in 2020 (rho 0.1)" in said
        for code in re.findall(r"```(?:python|\{code-cell\} python)\n(.*?)```", text, re.DOTALL):
            assert not re.search(r"rho\b.*0\.\d", code) or "2**0.5" in code
    assert "--rho 0.0992264 --prior 1/10 --prior 1/864 --sensitivity change-one" in README


def test_the_readme_is_short_and_its_command_is_run():
    assert len(README.splitlines()) <= 100
    commands = re.findall(r"^\$ (bayesrisk .*)$", README, re.MULTILINE)
    assert commands
    assert set(commands) <= set(COMMANDS)
    for target in re.findall(r"`((?:docs|notebooks)/[\w./-]*|[A-Z]+\.\w+)`", README):
        assert "_build" in target or (Path(__file__).parents[1] / target).exists(), target


@pytest.mark.slow
def test_commands_run(tmp_path):
    assert len(COMMANDS) == 18
    for command in COMMANDS:
        arguments = shlex.split(command)[1:]
        done = subprocess.run(
            [sys.executable, "-m", "bayesrisk", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout
    assert (tmp_path / "sweep-output" / "report.html").exists()
    assert (tmp_path / "reidentified" / "report.html").exists()


def test_the_two_commands_of_the_readme_are_targets():
    makefile = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^\$ make (\w+)$", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
