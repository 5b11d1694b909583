"""Files about the project: what is run for each change, and the list of changes."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Kinds of changes, in the order of Keep a Changelog.
HEADINGS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def jobs(workflow):
    return yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values()


def lines_run(job):
    """Return what a job runs, once for each setting of its matrix."""
    matrix = job.get("strategy", {}).get("matrix", {})
    for step in job["steps"]:
        for target in matrix.get("target", [""]):
            if "run" in step:
                yield step["run"].replace("${{ matrix.target }}", target)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_targets_of_the_makefile(workflow):
    lines = [line for job in jobs(workflow) for line in lines_run(job)]
    assert lines
    for line in lines:
        command, target, *rest = line.split()
        assert command == "make"
        assert target in TARGETS
        assert "${{" not in " ".join(rest)  # texts of others come by the environment alone


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_have_a_major_version_and_no_right_to_write(workflow):
    actions = [step["uses"] for job in jobs(workflow) for step in job["steps"] if "uses" in step]
    assert [action for action in actions if not re.fullmatch(r"actions/[\w-]+@v\d+", action)] == []
    document = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    assert document["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_use_the_oldest_and_the_newest_python_that_is_declared(workflow):
    declared = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert oldest == declared[0]
    matrices = [job.get("strategy", {}).get("matrix", {}) for job in jobs(workflow)]
    assert [m["python"] for m in matrices if m] == [[oldest, declared[-1]]]


def test_what_runs_before_a_commit_is_the_lint_of_the_makefile():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    tools = [hook["entry"].removesuffix(" --force-exclude") for hook in hooks[0]["hooks"]]
    assert tools == [".venv/bin/ruff check", ".venv/bin/ruff format", ".venv/bin/mypy"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(tool.replace(".venv/bin", "$(BIN)") in makefile for tool in tools)


def test_changes_stand_under_the_heading_of_their_kind():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased = changes.partition("## [Unreleased]\n")[2].partition("\n## [")[0]
    before, *parts = re.split(r"^### ", unreleased, flags=re.M)
    assert before.strip() == "", "a change goes under one of the headings"
    headings = [part.partition("\n")[0] for part in parts]
    assert headings == [name for name in HEADINGS if name in headings]
    for part in parts:
        lines = [line for line in part.splitlines()[1:] if line]
        assert lines
        assert all(line.startswith("- ") for line in lines)


def test_the_distribution_has_a_name_of_its_own():
    """On PyPI ``bayesrisk`` is a library about credit risk, with the same import name."""
    assert PROJECT["name"] == "bayesrisk-disclosure"
    assert PROJECT["scripts"].keys() == {"bayesrisk"}
    extras = PROJECT["optional-dependencies"]
    texts = [ROOT / "pyproject.toml", *ROOT.glob("bayesrisk/**/*.py"), *ROOT.glob("docs/**/*.md")]
    found = set()
    for file in texts:
        for name, listed in re.findall(
            r"\b(bayesrisk[\w-]*)\[([a-z,]+)\]", file.read_text("utf-8")
        ):
            assert name == PROJECT["name"], file
            found |= set(listed.split(","))
    assert {"cloud", "dask", "excel", "opendp"} <= found <= set(extras)
    for example in ROOT.glob("docs/examples/*/pyproject.toml"):
        needed = tomllib.loads(example.read_text("utf-8"))["project"]["dependencies"]
        assert needed == [PROJECT["name"]]
    page = (ROOT / "docs/start/install.md").read_text("utf-8")
    assert PROJECT["name"] in page
    assert "cannot" in page


@pytest.mark.skipif(
    not (ROOT / ".git").exists() or shutil.which("git") is None, reason="no history to list"
)
def test_nothing_but_what_is_named_stands_at_the_top():
    """Results of trials, written into the checkout and added with everything else."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    top = {line.partition("/")[0] for line in listed.stdout.splitlines()}
    folders = {"benchmarks", "bayesrisk", "data", "docs", "notebooks", "tests"}
    files = {"CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile"}
    files |= {"README.md", "SECURITY.md", "pyproject.toml"}
    assert {name for name in top if not name.startswith(".")} == folders | files
