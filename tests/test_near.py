"""Which tests are near to a change: on a small tree, and that every file of ours has an answer."""

import subprocess
import sys

import near
import pytest
from marks import leave_out_late, of_function, starts_command

TREE = {
    "bayesrisk/__init__.py": "",
    "bayesrisk/__init__.pyi": "from .room import area as area\n",
    "bayesrisk/room/__init__.py": "from bayesrisk.room.size import area\n",
    "bayesrisk/room/size.py": "from bayesrisk.room import _parts\n\ndef area(): ...\n",
    "bayesrisk/room/_parts.py": "def wall(): ...\n",
    "bayesrisk/room/door.py": "def close(): ...\n",
    "bayesrisk/room/lift.py": "class Lift: ...\n",
    "bayesrisk/room/registry.py": "LIFTS = {'new': 'bayesrisk.room.lift:Lift'}\n",
    "bayesrisk/cli/__init__.py": "",
    "bayesrisk/cli/tools.py": "def paint(): ...\n",
    "tests/room/test_size.py": "import bayesrisk as br\nbr.area()\n",
    "tests/room/test_size_of_doors.py": "from bayesrisk.room.size import area\narea()\n",
    "tests/room/test_room.py": "",
    "tests/cli/test_paint.py": "",
    "tests/room/test_registry.py": "",
    "tests/whole/test_all.py": "import bayesrisk as br\nbr.area(), br.area()\n",
    "tests/house/test_many.py": "from bayesrisk.room import area, door\narea(), area(), door.x\n",
    "tests/house/test_few.py": "from bayesrisk.room import area, door\narea(), door.x, door.y\n",
    "tests/house/test_lost.py": "from bayesrisk.room.gone import attic\nattic()\n",
    "tests/support/ladder.py": "",
    "tests/house/test_high.py": "import ladder\n",
    "tests/house/test_page.py": "PAGE = 'plan.md'\n",
    "tests/reference/numbers.csv": "",
    "tests/reference/test_numbers.py": "",
    "benchmarks/saw.py": "",
    "tests/test_saw.py": "import saw\n",
    "docs/plan.md": "",
    "pyproject.toml": "",
}
ARCHITECTURE = "tests/test_architecture.py"
CONFTEST = """
from hypothesis import settings
settings.register_profile("quick")
def pytest_addoption(parser): parser.addoption("--seconds", type=float)
"""


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Return a small tree that the script is about."""
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(near, "ROOT", tmp_path)
    forget()
    yield tmp_path
    forget()


def forget():
    for function in vars(near).values():
        if hasattr(function, "cache_clear") and function.__module__ == near.__name__:
            function.cache_clear()


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        # Mirrors first, then who uses most of it; a test of several modules is near to none.
        (
            "bayesrisk/room/size.py",
            [
                "room/test_room.py", "room/test_size.py", "room/test_size_of_doors.py",
                "house/test_many.py", "house/test_few.py",
            ],
        ),
        ("bayesrisk/room/_parts.py", ["room/test_room.py"]),
        (
            "bayesrisk/room/door.py",
            ["room/test_room.py", "house/test_few.py", "house/test_many.py"],
        ),
        ("bayesrisk/room/gone.py", ["house/test_lost.py"]),
        ("bayesrisk/cli/tools.py", ["cli/test_paint.py"]),
        ("bayesrisk/__init__.pyi", ["test_public_api.py"]),
        ("tests/room/test_size.py", ["room/test_size.py"]),
        ("tests/room/test_gone.py", []),
        ("tests/support/ladder.py", ["house/test_high.py"]),
        ("tests/house/conftest.py", ["house/test_few.py", "house/test_high.py",
                                     "house/test_lost.py", "house/test_many.py"]),
        ("tests/reference/numbers.csv", ["reference/test_numbers.py"]),
        ("benchmarks/saw.py", ["test_saw.py"]),
        ("docs/plan.md", ["house/test_page.py", "test_docs.py"]),
        ("pyproject.toml", []),
        ("unknown.txt", []),
    ],
)  # fmt: skip
def test_near_to_each_kind_of_file(tree, file, tests):
    found = near.near(file)
    assert [test.removeprefix("tests/") for test in found if test != ARCHITECTURE] == tests
    assert all(found.values())
    code = file.endswith(".py") and not file.startswith("benchmarks")
    assert (ARCHITECTURE in found) == code


def test_files_without_a_test_of_their_name_are_tested_by_who_imports_them(tree):
    (tree / "tests/room/test_room.py").unlink()
    found = near.near("bayesrisk/room/_parts.py")
    assert [test for test in found if test != ARCHITECTURE] == [
        "tests/room/test_size.py", "tests/room/test_size_of_doors.py"
    ]  # fmt: skip


def test_who_registers_a_module_by_its_name_in_quotes_imports_it(tree):
    (tree / "tests/room/test_room.py").unlink()
    found = near.near("bayesrisk/room/lift.py")
    assert [test for test in found if test != ARCHITECTURE] == ["tests/room/test_registry.py"]


def test_changes_are_those_that_git_knows_and_new_files(tree):
    def git(*words):
        subprocess.run(
            ["git", "-C", tree, "-c", "user.name=n", "-c", "user.email=e", *words], check=True
        )

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    assert near.changed("HEAD") == []
    (tree / "bayesrisk/room/door.py").unlink()
    (tree / "bayesrisk/room/size.py").write_text("")
    (tree / "tests/room/test_new.py").write_text("")
    three = ["bayesrisk/room/door.py", "bayesrisk/room/size.py", "tests/room/test_new.py"]
    assert near.changed("HEAD") == three
    git("add", ".")
    git("commit", "-q", "-m", "second")
    assert (near.changed("HEAD"), near.changed("HEAD~1")) == ([], three)


def test_every_file_of_the_package_has_tests_beside_those_of_all_files():
    alone = [n for n in near.modules() if not near.is_folder(n) and not near.mirrors(n)]
    of_all = {ARCHITECTURE, "tests/test_public_api.py"}
    without = {n for n in alone if set(near.near(near.modules()[n])) <= of_all}
    assert without == {"__main__"}


def test_a_mark_is_taken_back_where_the_change_is_about_it():
    assert near.marks_left_out(["bayesrisk/risk/intervals.py"]) == [*near.LEFT_OUT]
    assert near.marks_left_out(["docs/a.md", "tests/cli/test_app.py"]) == ["slow", "fuzz", "whole"]
    assert near.marks_left_out(["bayesrisk/experiments/sweep.py"]) == ["slow", "command", "fuzz"]


def test_a_failing_test_is_a_failure(tree, monkeypatch, capsys):
    test = tree / "tests/room/test_size.py"
    test.write_text("def test_it(): assert not 1\n")
    (tree / ARCHITECTURE).write_text("def test_it(): ...\n")
    (tree / "tests/conftest.py").write_text(CONFTEST)
    monkeypatch.setattr(sys, "argv", ["near.py", "--list", str(test)])
    assert near.main() == 0
    monkeypatch.setattr(sys, "argv", ["near.py", str(test)])
    assert near.main() > 0
    assert "tests/room/test_size.py: changed itself" in capsys.readouterr().out


@pytest.mark.parametrize(("pytest_says", "status"), [(0, 0), (1, 1), (2, 2), (4, 4), (5, 0)])
def test_the_status_is_zero_where_no_test_fails_or_is_left(monkeypatch, pytest_says, status):
    def done(command, **_):
        return subprocess.CompletedProcess(command, pytest_says)

    monkeypatch.setattr(near.subprocess, "run", done)
    assert near.run_tests(["tests/test_answers.py"], ["slow"]) == status


def test_a_test_that_is_not_reached_in_time_does_not_begin_and_is_named(request):
    leave_out_late(request.node, None)
    leave_out_late(request.node, 1e9)
    with pytest.raises(pytest.skip.Exception, match=r"^test_near\.py: not reached in time"):
        leave_out_late(request.node, 0.0)


def starts_by_helper():
    starts_process()


def starts_process():
    subprocess.run(["true"], check=True)


def names_a_command():
    from bayesrisk.cli.app import main

    return main


def calls_nothing():
    return near.PACKAGE


def test_marks_follow_what_a_test_calls():
    from studies import run_sweep

    assert of_function(starts_by_helper) == of_function(names_a_command) == {"command"}
    assert of_function(run_sweep) == {"whole"}
    assert of_function(calls_nothing) == set()
    assert starts_command(names_a_command())
    assert not starts_command(near)
