"""The tests that are nearest to what has changed, each with the reason why it is run.

``python benchmarks/near.py [--base REVISION] [--list] [FILE ...]`` looks at the files that are
named, or at all that differ from a revision (HEAD unless another is given), new and deleted ones
too.  A file of the package is tested by the test files that mirror it by path and name, then by the
few that use most of it.  A test file is run itself, a helper by those that import it, and any other
file by the tests that name it.  Tests with a mark of ``LEFT_OUT`` are not run, but for those marks
that the change is about, and no test begins in a worker that has used its ``SECONDS``: what is near
most comes first, and what was not reached is named.  ``make test`` runs them all.  The status is 0
unless a test fails.
"""

import argparse
import ast
import functools
import gc
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = "bayesrisk"
#: Marks of tests that are not run, and folders whose change is about them.
LEFT_OUT = {
    "slow": (),
    "command": (f"{PACKAGE}/cli", f"{PACKAGE}/census/cli", "tests/cli", "tests/census/cli"),
    "fuzz": ("tests/fuzz",),
    "whole": (f"{PACKAGE}/experiments", f"{PACKAGE}/census/studies", "tests/whole", "tests/real"),
}
#: Tests of no folder of the package: none is near to a module that it does not mirror.
FAR = ("tests/fuzz/", "tests/real/", "tests/reference/", "tests/test_", "tests/whole/")
#: A name of the package in quotes.
DOOR = re.compile(rf"{PACKAGE}((\.\w+)+(:\w+)?)")
#: The most test files that are run of those that use a module, or mirror one that uses it.
FEW = 4
#: Of a processor, after which no further test begins in a worker: on a machine that does nothing
#: else the last ones then end within the minute.
SECONDS = 36.0


def plain(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the parts of a dotted name without underscores in front, as tests are named."""
    return tuple(part.lstrip("_") for part in parts)


def module_name(file: str) -> str:
    """Return the dotted name of a file of the package, without the package itself."""
    parts = PurePosixPath(file).with_suffix("").parts[1:]
    return ".".join(part for part in parts if part != "__init__")


@functools.cache
def modules() -> dict[str, str]:
    """Return the file of each module by its dotted name below the package."""
    files = (file.relative_to(ROOT).as_posix() for file in (ROOT / PACKAGE).rglob("*.py"))
    return {module_name(file): file for file in sorted(files)}


@functools.cache
def test_files() -> tuple[str, ...]:
    """Return all test files."""
    return tuple(
        sorted(f.relative_to(ROOT).as_posix() for f in (ROOT / "tests").rglob("test_*.py"))
    )


class Facts(NamedTuple):
    """What the choice needs of a file; its tree, which is much larger, is not kept."""

    functions: set[str]  # names of the functions at its left edge
    defined: set[str]  # of them, of classes and of what is assigned there
    imports: list[ast.Import | ast.ImportFrom]  # anywhere in it
    doors: set[str]  # names of the package in quotes, by which a registry finds something later
    chains: Counter[tuple[str, ...]]  # how often a name stands with the attributes taken of it


@functools.cache
def facts(file: str) -> Facts:
    """Return the facts of a file, with one parse and one walk."""
    found = Facts(set(), set(), [], set(), Counter())
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.functions.add(node.name)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.defined.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            found.defined.update(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.imports.append(node)
        elif isinstance(node, ast.Constant) and DOOR.fullmatch(str(node.value)):
            found.doors.add(node.value)
        elif chain := chain_of(node):
            found.chains[chain] += 1
        todo += parts_of(node)
    found.imports.sort(key=lambda node: node.lineno)
    return found


def parts_of(node: ast.AST) -> list[ast.AST]:
    """Return the nodes directly in one, but for what says whether a name is read or written."""
    parts: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            parts += [part for part in value if isinstance(part, ast.AST)]
        elif isinstance(value, ast.AST) and name != "ctx":
            parts.append(value)
    return parts


def chain_of(node: ast.AST) -> tuple[str, ...]:
    """Return a name with the attributes that are taken of it, ``()`` of anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else ()


def is_folder(module: str) -> bool:
    """Return whether a module is a folder of modules."""
    return modules().get(module, "").endswith("__init__.py")


@functools.cache
def mirrored(test: str, more: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the modules that a test file mirrors by path and name, and none if it does not.

    ``a/test_b.py`` and ``a/test_b_topic.py`` mirror ``a/b.py``, or the folder ``a/b``; so does any
    test in ``a/b`` where ``b`` is a file, and ``a/test_a.py`` mirrors all files of its folder.  A
    test of the command line may be named after a command.  ``more`` modules are those that went.
    """
    named = named_plainly(more)
    folder = PurePosixPath(test).parts[1:-1]
    words = PurePosixPath(test).stem.split("_")[1:]
    for end in range(len(words), 0, -1):
        if found := named.get((*folder, "_".join(words[:end]))):
            return inside(found) if is_folder(found) else (found,)
    found = named.get(folder, "")
    if found and not is_folder(found):
        return (found,)
    if found and "_".join(words) == folder[-1]:
        return inside(found)
    commands = inside(".".join(folder)) if folder[-1:] == ("cli",) else ()
    return tuple(name for name in commands if "_".join(words) in functions(modules()[name]))


@functools.cache
def named_plainly(more: tuple[str, ...]) -> dict[tuple[str, ...], str]:
    """Return the modules by the parts of their names as tests have them."""
    return {plain(tuple(name.split("."))): name for name in (*more, *modules()) if name}


@functools.cache
def inside(folder: str) -> tuple[str, ...]:
    """Return a folder of the package and the files directly in it."""
    return tuple(n for n in modules() if n and folder in (n, n.rpartition(".")[0]))


def functions(file: str) -> set[str]:
    """Return the names of the functions of a file, without underscores at an end."""
    return {name.strip("_") for name in facts(file).functions}


@functools.cache
def offered(package: str) -> dict[str, str]:
    """Return where the names come from that a folder offers: dotted names below the package."""
    file = Path(modules().get(package, "")).with_suffix(".pyi")
    file = file if (ROOT / file).is_file() else file.with_suffix(".py")
    names = {}
    for node in facts(file.as_posix()).imports:
        if isinstance(node, ast.ImportFrom):
            home = (package if node.level else "", (node.module or "").removeprefix(PACKAGE))
            for alias in node.names:
                parts = (*home, alias.name)
                names[alias.asname or alias.name] = ".".join(p.strip(".") for p in parts if p)
    return names


@functools.cache
def home(name: str) -> str:
    """Return the module that a dotted name below the package comes from, ``""`` for none."""
    parts = name.split(".")
    for end in range(len(parts), -1, -1):
        module = ".".join(parts[:end])
        if module in modules():
            rest = parts[end:]
            origin = offered(module).get(rest[0], "") if rest and is_folder(module) else ""
            return home(".".join([origin, *rest[1:]])) if origin not in ("", name) else module
    return ""


@functools.cache
def imports(file: str) -> dict[str, str]:
    """Return the dotted names of the package that a file imports, by its names for them.

    A name in quotes stands for itself.
    """
    names = {
        door: door.removeprefix(f"{PACKAGE}.").replace(":", ".")
        for door in sorted(facts(file).doors)
    }
    for node in facts(file).imports:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
            above = (node.module or "").removeprefix(PACKAGE).removeprefix(".")
            names |= {a.asname or a.name: f"{above}.{a.name}".strip(".") for a in node.names}
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == PACKAGE:
                    names[alias.asname or PACKAGE] = (
                        alias.name.removeprefix(PACKAGE).removeprefix(".") if alias.asname else ""
                    )
    return names


@functools.cache
def uses(file: str) -> Counter[str]:
    """Return how often a file names something of each module, by whatever folder offers it."""
    known = imports(file)
    counts: Counter[str] = Counter()
    for (name, *parts), number in facts(file).chains.items():
        if name in known:
            counts[home(".".join([*filter(None, [known[name]]), *parts]))] += number
    return counts


def may_use(test: str, module: str) -> bool:
    """Return whether a test has a word that is the name of a module, or of a thing in it."""
    return not words_of(test).isdisjoint(defined(module))


@functools.cache
def words_of(file: str) -> frozenset[str]:
    """Return the words in the text of a file."""
    return frozenset(re.findall(r"\w+", (ROOT / file).read_text(encoding="utf-8")))


@functools.cache
def defined(module: str) -> set[str]:
    """Return the last part of a module's name, and the public names of what it defines."""
    return {module.rpartition(".")[2]} | facts(modules()[module]).defined


def near_module(file: str) -> dict[str, str]:
    """Return the tests of a module, which may have gone, with a reason each."""
    name = module_name(file)
    found = mirrors(name)
    if name not in modules():
        said = {test for test in test_files() if name in parents(imports(test).values())}
        return found | dict.fromkeys(sorted(said - set(found)), "imports it, though it is gone")
    shares = {
        test: uses(test)[name] / uses(test).total()
        for test in test_files()
        if test not in found and not test.startswith(FAR) and may_use(test, name)
        if uses(test)[name]
    }
    for test in sorted(shares, key=lambda test: (-shares[test], test))[:FEW]:
        found[test] = f"uses it: {uses(test)[name]} of its {uses(test).total()} names of {PACKAGE}"
    if is_folder(name) or not found:
        found["tests/test_public_api.py"] = "holds what folders offer"
    return found


def mirrors(name: str) -> dict[str, str]:
    """Return the tests that mirror a module, which may have gone, with a reason each.

    Where there are none, these are a few that mirror who imports it, or who imports that one, and
    so on.
    """
    gone = () if name in modules() else (name,)
    found = {test: "mirrors it" for test in test_files() if name in mirrored(test, gone)}
    reached, ring = {name}, [] if gone or is_folder(name) else [name]
    while ring and not found:
        ring = [m for m in modules() if m not in reached and not homes(m).isdisjoint(ring)]
        ring.sort(key=lambda m: (m.rpartition(".")[0] != name.rpartition(".")[0], m))
        reached |= {*ring}
        for user in ring:
            about = set(inside(user)) if is_folder(user) else {user}
            for test in test_files():
                if about & set(mirrored(test)) and len(found) < FEW:
                    found.setdefault(test, f"mirrors {user}, which imports it")
    return found


@functools.cache
def homes(module: str) -> set[str]:
    """Return the modules that a module imports, by whatever folder offers them."""
    return {home(name) for name in imports(modules()[module]).values()}


def parents(names: Iterable[str]) -> set[str]:
    """Return dotted names and all that they begin with."""
    parts = [name.split(".") for name in names]
    return {".".join(part[:end]) for part in parts for end in range(1, len(part) + 1)}


def near_helper(file: str) -> dict[str, str]:
    """Return the tests that import a helper, up to a few, or those beside a ``conftest.py``."""
    path = PurePosixPath(file)
    if path.name == "conftest.py":
        beside = [test for test in test_files() if PurePosixPath(test).is_relative_to(path.parent)]
        return dict.fromkeys(beside[:FEW], "stands below it")
    users = [test for test in test_files() if path.stem in imported_names(test)]
    return dict.fromkeys(users[:FEW], "imports it")


@functools.cache
def imported_names(file: str) -> set[str]:
    """Return the last parts of all names that a file imports, and of where from."""
    names = set()
    for node in facts(file).imports:
        names |= {alias.name for alias in node.names} | {getattr(node, "module", None) or ""}
    return {name.rpartition(".")[2] for name in names}


def near_other(file: str) -> dict[str, str]:
    """Return the tests that name a file: data, a page, settings."""
    name = PurePosixPath(file).name
    named = [t for t in test_files() if name in (ROOT / t).read_text(encoding="utf-8")]
    found = dict.fromkeys(named[:FEW], "names it")
    if file.startswith("docs/"):
        found["tests/test_docs.py"] = "reads every page"
    if not found:
        folder = PurePosixPath(file).parent
        beside = [test for test in test_files() if PurePosixPath(test).parent == folder]
        found = dict.fromkeys(beside[:FEW], "stands beside it")
    return found


def near(file: str) -> dict[str, str]:
    """Return the test files to run for a file that changed, each with its reason."""
    path = PurePosixPath(file)
    if path.parts[0] == "tests" and path.suffix == ".py":
        if path.name.startswith("test_"):
            found = {file: "changed itself"} if (ROOT / file).is_file() else {}
        else:
            found = near_helper(file)
        return found | {"tests/test_architecture.py": "holds where each test stands"}
    if path.parts[0] == PACKAGE and path.suffix == ".py":
        return near_module(file) | {"tests/test_architecture.py": "holds the order of all modules"}
    if path.parts[0] == PACKAGE and path.suffix == ".pyi":
        return {"tests/test_public_api.py": "holds what folders offer"}
    if path.parts[0] == "benchmarks" and path.suffix == ".py":
        twin = f"tests/test_{path.stem}.py"
        return {twin: "mirrors it"} if twin in test_files() else near_helper(file)
    return near_other(file)


def changed(base: str) -> list[str]:
    """Return the files that differ from a revision, deleted and unknown ones too."""
    ask = ("git", "-C", str(ROOT))
    differ = [*ask, "diff", "--name-only", "--no-renames", "-z", base, "--"]
    unknown = [*ask, "ls-files", "--others", "--exclude-standard", "-z"]
    texts = [
        subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
        for command in (differ, unknown)
    ]
    return sorted({file for text in texts for file in text.split("\0") if file})


def marks_left_out(files: list[str]) -> list[str]:
    """Return the marks whose tests are not run: those that no change is about."""
    return [
        mark
        for mark, folders in LEFT_OUT.items()
        if not any(PurePosixPath(file).is_relative_to(f) for file in files for f in folders)
    ]


def run_tests(tests: list[str], marks: list[str]) -> int:
    """Run test files up to the first failure; return a status, 0 where none fails or is left."""
    expression = " and ".join(f"not {mark}" for mark in marks)
    command = [
        sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "-p", "no:benchmark",
        "--hypothesis-profile", "quick", "--seconds", f"{SECONDS}", "-m", expression, *tests,
    ]  # fmt: skip
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    return 0 if status == 5 else status


def main() -> int:
    """Choose the tests, say why, and run them."""
    gc.disable()  # trees of syntax are many objects, and none of them lives for long
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="files, instead of all that differ"
    )
    parser.add_argument("--base", default="HEAD", metavar="REVISION", help="what files differ from")
    parser.add_argument("--list", action="store_true", help="choose, and run nothing")
    options = parser.parse_args()
    given = [Path(file).resolve() for file in options.files]
    if outside := [file for file in given if not file.is_relative_to(ROOT)]:
        parser.error(f"{outside[0]} is not in {ROOT}")
    files = [f.relative_to(ROOT).as_posix() for f in given] or changed(options.base)
    tests: dict[str, str] = {}
    for file in files:
        found = near(file)
        print(f"{file}{'' if found else ': no test is near to it'}")
        for test, reason in found.items():
            print(f"  {test}: {reason}{', as above' if test in tests else ''}")
        tests |= found
    if not files:
        print(f"Nothing differs from {options.base}.")
    if not tests or options.list:
        return 0
    marks = marks_left_out(files)
    print(f"Not run: tests marked {', '.join(marks)}, and all other files; make test.", flush=True)
    return run_tests(list(tests), marks)


if __name__ == "__main__":
    sys.exit(main())
