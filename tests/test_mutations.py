"""The list of mutations does not rot, and the script that runs them tells how each ends."""

import ast
import sys
from pathlib import Path

import mutations
import pytest
from mutations import MUTATIONS, Mutation, run_mutation, run_tests

ROOT = Path(__file__).parents[1]


def test_there_are_forty_and_each_has_a_name_of_its_own():
    assert len(MUTATIONS) == 40
    assert len({one.name for one in MUTATIONS}) == 40


@pytest.mark.parametrize("one", MUTATIONS, ids=lambda one: one.name)
def test_each_mutation_is_of_text_that_is_there_once(one):
    source = (ROOT / "bayesrisk" / one.file).read_text(encoding="utf-8")
    assert source.count(one.old) == 1
    before, after = (ast.dump(ast.parse(s)) for s in (source, source.replace(one.old, one.new)))
    assert before != after


@pytest.mark.parametrize("one", MUTATIONS, ids=lambda one: one.name)
def test_the_tests_of_each_mutation_are_there(one):
    assert one.tests
    for test in one.tests:
        file, _, name = test.partition("::")
        tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
        names = {part.name for part in tree.body if isinstance(part, ast.FunctionDef)}
        assert not name or name in names


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    """Let the small trees be tested without plugins, which take longer to load than their tests."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


WAITS = "import time\n\ndef test_it():\n    time.sleep(60)\n"


@pytest.mark.parametrize(
    ("test", "finding", "by"),
    [
        ("def test_it():\n    pass\n", "survived", ""),
        ("def test_it():\n    assert not 1\n", "killed", "test_some.py::test_it"),
        ("import nowhere\n\ndef test_it():\n    pass\n", "error", None),
        (WAITS, "ended by time", ""),
    ],
)
def test_each_way_to_end_is_told_from_the_others(tmp_path, test, finding, by):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_some.py").write_text(test)
    limit = 2.0 if test == WAITS else 60.0
    outcome = run_tests(tmp_path, tmp_path / "numba", ["test_some.py"], limit)
    assert outcome.finding == finding
    assert by is None or outcome.by == by
    assert outcome.seconds < 59.0


def write_tree(folder):
    """Write a package of one line, and two tests: one sees a mutation of it."""
    for name, text in {
        "bayesrisk/__init__.py": "",
        "bayesrisk/one.py": "ONE = 1\n",
        "tests/test_blind.py": "def test_it():\n    import bayesrisk.one\n",
        "tests/test_one.py": "import bayesrisk.one as b\n\ndef test_it():\n    assert b.ONE == 1\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize(("test", "finding"), [("one", "killed"), ("blind", "survived")])
def test_a_mutation_is_made_in_the_copy_and_taken_back(tmp_path, test, finding):
    tree, cache = tmp_path / "tree", tmp_path / "numba"
    write_tree(tree)
    tests = (f"test_{test}.py",)
    assert run_tests(tree, cache, list(tests), 60.0).finding == "survived"
    change = Mutation("one", "one.py", "= 1", "= 2", "one is two", tests)
    assert run_mutation(tree, cache, change).finding == finding
    assert (tree / "bayesrisk/one.py").read_text() == "ONE = 1\n"
    assert not (tmp_path / "numba-mutated").exists()
    with pytest.raises(SystemExit, match=r"one: one\.py must have the old text once"):
        run_mutation(tree, cache, change._replace(old="= 3"))


def write_list(tmp_path, monkeypatch, arguments, tests):
    """Let the script be about a small tree."""
    write_tree(tmp_path / "root")
    listed = tuple(
        Mutation(f"{n} {t}", "one.py", "= 1", f"= {n}", "one is more", (f"test_{t}.py",))
        for n, t in tests
    )
    monkeypatch.setattr(mutations, "ROOT", tmp_path / "root")
    monkeypatch.setattr(mutations, "COPIED", ("bayesrisk", "tests"))
    monkeypatch.setattr(mutations, "MUTATIONS", listed)
    monkeypatch.setattr(sys, "argv", ["mutations.py", *arguments])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "status"), [(["--only", "2 one"], 0), (["--workers", "2"], 1)]
)
def test_the_status_says_whether_all_are_killed(tmp_path, monkeypatch, capsys, arguments, status):
    write_list(tmp_path, monkeypatch, arguments, [(2, "one"), (3, "one"), (2, "blind")])
    assert mutations.main() == status
    printed = capsys.readouterr().out
    assert f"{1 if not status else 2} of {1 if not status else 3} mutations" in printed
    assert ("survived" in printed.partition("\n\n")[2]) == bool(status)


def test_tests_that_fail_without_a_mutation_say_nothing(tmp_path, monkeypatch):
    write_list(tmp_path, monkeypatch, [], [(2, "one")])
    (tmp_path / "root/bayesrisk/one.py").write_text("ONE = 1 + 1\n")
    with pytest.raises(SystemExit, match=r"fail without a mutation: test_one\.py::test_it"):
        mutations.main()
