"""The size and the shape of the package, as a table; ``python benchmarks/house.py`` prints it.

Everything is counted from the source by its syntax tree; nothing of the package runs but the lists
of public names.  A walk follows one parameter from call to call, in the order in which the code is
written: what is made from it is followed, too, every function is entered once, and a *stay* is an
unbroken run of calls within one file.
"""

import argparse
import ast
import importlib
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "bayesrisk"
FACES = (
    "", "accounting", "census", "datasets", "distributions", "exceptions", "experiments",
    "inference", "interfaces", "mechanisms", "plotting", "reconstruction", "release", "risk",
    "tables",
)  # fmt: skip
STUDIES = ("experiments",)
#: Lists of names on pages of reference.
_LISTS = re.compile(r"^```\{eval-rst\}.*?^```", re.MULTILINE | re.DOTALL)
#: Names without a noun or a verb: a preposition, pronoun, adverb or participle that stands alone,
#: or a preposition at an end of the name.
_LOOSE = re.compile(
    "(?:about|again|alike|apart|asked|at|away|back|beside|between|both|by|done|drawn|each|found|fresh|"
    "from|further|given|gone|held|here|how|in|into|it|its|kept|known|made|mend|mended|of|on|onto|"
    "others|over|own|said|same|seen|shown|some|still|such|taken|that|their|them|then|there|these|"
    "they|thing|things|this|those|through|to|together|told|turn|turned|under|upon|what|whatever|"
    "when|where|which|who|whoever|whose|why|with|within|written|yet)"
    "|(?:of|told|found)_.*|.*_(?:of|at|told|found)"
)
#: What a walk follows: module (or the folder that lists it), function, parameter, goal.
WALKS = (
    ("reconstruction", "reconstruct", "tables", 20),
    ("reconstruction", "find_claims", "tables", 20),
    ("reconstruction", "solution_variability", "tables", 25),
    ("inference", "microdata_posterior", "release", 25),
    ("cli.protect.release", "release", "records", 30),
    ("cli.protect.tabulation", "tabulate", "source", 25),
    ("tables.sheets.sheet", "file_sheet", "file", 20),
)
#: One idea built several times: definitions that build it, in a line those that belong together.
#: One that is defined nowhere any more counts nothing; one that is new is added here.
IDEAS = {
    # What holds an ``IntegerModel``, and says what its rows and columns are, is no other container:
    # the programs of blocks, groups of places, classes of claims and households.
    "containers of integer rows": (
        "IntegerModel",
        "RowSource Problem ProgramArrays BlockRows",
        "RowSystem SmallSystem Sums",
    ),
    # One rule (``limits``) on two schedules: an unknown after the other, and the rows of a queue.
    "narrowings of intervals": ("narrow settle",),
    # Both ask for the least of many forms, with equal answers in equal time; but claims are many
    # more forms than ``FormEnds`` can hold at once, and imply each other.
    "ends of a form, proved": ("FormEnds", "Decider"),
    # Three searches on one loop of nodes, and the compiled one, which asks no linear program.
    "searches with certificates": (
        "explore branch_and_bound find_at_least Refuter", "search_components",
    ),
    # From tables: the rows of published cells over the cells that they tell apart, which the last
    # workloads keep.  What is made of rows that were handed down, with counts or laws beside them
    # (problems, classes of a place, laws of records, models), is no other: a test counts.
    "systems built by one attack": ("Queries",),
    "forms between data and number, audit": (
        "read_audit_file", "AuditStudy", "Survey", "Release", "Microdata", "MicrodataPosterior",
        "audit_targets", "audit_measures", "chosen_settings",
    ),
    "forms between data and number, sweep": (
        "Document", "Target", "SweepStudy", "question", "read_results", "SweepPanel", "TableKeys",
    ),
    "forms between data and number, own CSV": (
        "Sheet", "Cell", "Value", "Workload", "PublishedTables", "Problem", "BlockSystem",
    ),
}  # fmt: skip
#: Goals of these ideas, in their order.
_FEWER = (2, 1, 1, 1, 1, 5, 2, 4)
#: A heading within a file: two of them are two files.
_RULER = re.compile(r"^ *# -{20,}$", re.MULTILINE)


@cache
def sources() -> dict[str, str]:
    """Return the source of every module, by its dotted name below the package."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {_dotted(file): file.read_text(encoding="utf-8") for file in files}


def _dotted(file: Path) -> str:
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@cache
def parsed(source: str) -> ast.Module:
    """Return the tree of a source, which is only read."""
    return ast.parse(source)


def tree(module: str) -> ast.Module:
    return parsed(sources()[module])


def _lines(texts) -> int:
    return sum(len(text.splitlines()) for text in texts)


@cache
def public_names() -> dict[str, tuple[str, ...]]:
    """Return the public names of each face of the package."""
    path = {face: f"bayesrisk.{face}".rstrip(".") for face in FACES}
    return {face: tuple(importlib.import_module(name).__all__) for face, name in path.items()}


def unshown_names() -> list[str]:
    """Return public names that no page, notebook or README uses outside of lists of names."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts = [_LISTS.sub("", page.read_text(encoding="utf-8")) for page in pages]
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        texts += ["".join(cell["source"]) for cell in cells]
    for notebook in (ROOT / "notebooks").glob("*.md"):
        texts.append(notebook.read_text(encoding="utf-8"))
    words = set(re.findall(r"\w+", "\n".join(texts)))
    return sorted({name for names in public_names().values() for name in names} - words)


def large_classes() -> list[str]:
    """Return public classes with ten and more fields."""
    public = {name for names in public_names().values() for name in names}
    found = []
    for module in sources():
        for node in tree(module).body:
            if isinstance(node, ast.ClassDef) and node.name in public:
                fields = [
                    part
                    for part in node.body
                    if isinstance(part, ast.AnnAssign) and "ClassVar" not in ast.unparse(part)
                ]
                if len(fields) >= 10:
                    found.append(f"{node.name} ({len(fields)})")
    return sorted(found)


@cache
def arrows() -> dict[str, frozenset[str]]:
    """Return the modules that each module imports."""
    found = {}
    for module in sources():
        others = set()
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayesrisk"):
                own = node.module.removeprefix("bayesrisk").removeprefix(".")
                for alias in node.names:
                    full = f"{own}.{alias.name}".removeprefix(".")
                    others.add(full if full in sources() else own)
        found[module] = frozenset(others & set(sources()) - {module})
    return found


def single_readers() -> list[str]:
    """Return the modules that exactly one other imports; lists of names are no readers."""
    readers = Counter(
        other for module, others in arrows().items() if not _is_list(module) for other in others
    )
    files = [module for module in sources() if not _is_list(module)]
    return sorted(module for module in files if readers[module] == 1)


def _is_list(module: str) -> bool:
    return (PACKAGE / module.replace(".", "/")).is_dir()


def shares() -> tuple[float, float, list[tuple[float, str]]]:
    """Return imports of all lines, and comments of the lines of files with kernels, in per cent."""
    imports = written = comments = kernels = 0
    each = []
    for module, text in sources().items():
        lines = [line for line in text.splitlines() if line.strip()]
        written += len(lines)
        for node in ast.walk(tree(module)):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                imports += node.end_lineno - node.lineno + 1
        if re.search(r"^@(?:_numba\.|numba\.)?\w*(?:kernel|njit|jit|compiled)", text, re.MULTILINE):
            own = sum("#" in line and _is_comment(line) for line in lines)
            comments, kernels = comments + own, kernels + len(lines)
            each.append((100.0 * own / len(lines), module))
    return 100.0 * imports / written, 100.0 * comments / max(kernels, 1), sorted(each)


def _is_comment(line: str) -> bool:
    return re.search(r"(^\s*|\s{2})#(?![: ]*(?:noqa|type|fmt))", line) is not None


def any_types() -> tuple[list[str], list[str]]:
    """Return functions that return ``Any``, and that take it bare."""
    returns, takes = [], []
    for module in sources():
        for node in ast.walk(tree(module)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                name = f"{module}.{node.name}"
                if node.returns is not None and ast.unparse(node.returns) == "Any":
                    returns.append(name)
                given = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
                given += [a for a in (node.args.vararg, node.args.kwarg) if a]
                if any(
                    a.annotation is not None and ast.unparse(a.annotation) == "Any" for a in given
                ):
                    takes.append(name)
    return returns, takes


def kernels(*, steps: bool = False) -> list[str]:
    """Return the functions that ``bayesrisk warmup`` compiles; or those compiled within them."""
    declarations = ("step", "lean_step") if steps else ("kernel", "lean_kernel", "elementwise")
    return [
        f"{module}.{node.name}"
        for module in sources()
        for node in ast.walk(tree(module))
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if ast.unparse(decorator).split("(")[0].split(".")[-1] in declarations
    ]


def shared_classes() -> dict[str, list[str]]:
    """Return names that two or more classes have."""
    homes: dict[str, list[str]] = {}
    for module in sources():
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(module)
    return {name: found for name, found in sorted(homes.items()) if len(found) > 1}


def loose_names(source: str) -> list[str]:
    """Return what a source binds to names that are no nouns or verbs: functions, variables."""
    names = set()
    for node in ast.walk(parsed(source)):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                names.add(name)
    return sorted(name for name in names if _LOOSE.fullmatch(name.strip("_")))


def walk(place: str, function: str, parameter: str) -> list[str]:
    """Return the files in which a parameter stays, one after the other."""
    public = getattr(importlib.import_module(f"bayesrisk.{place}"), function)
    home = public.__module__.removeprefix("bayesrisk.")
    path: list[str] = []
    _follow(home, function, frozenset({parameter}), path, set())
    return [file for i, file in enumerate(path) if i == 0 or path[i - 1] != file]


def ruled_files() -> list[str]:
    """Return the files with two and more rulers."""
    return [module for module, text in sources().items() if len(_RULER.findall(text)) > 1]


def ideas() -> dict[str, int]:
    """Return how often each idea of several builders is built."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    defined = {n.name for m in sources() for n in ast.walk(tree(m)) if isinstance(n, kinds)}
    return {
        idea: sum(bool(defined & set(line.split())) for line in builders)
        for idea, builders in IDEAS.items()
    }


def climbs() -> list[str]:
    """Return the modules of the core that take from the wing of censuses: arrows that run up."""
    wing = [module for module in sources() if module.partition(".")[0] == "census"]
    core = {m: others & set(wing) for m, others in arrows().items() if m not in wing}
    return sorted(m for m, others in core.items() if others and m.partition(".")[0] not in _ABOVE)


#: What stands above the wing and may take from it: commands, and lists of public names.
_ABOVE = ("cli", "", "__main__")


@cache
def _functions(module: str) -> dict[str, ast.FunctionDef]:
    """Return functions and methods of a module, by their name and as ``Class.name``."""
    found = {}
    for node in tree(module).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef):
                    found[f"{node.name}.{part.name}"] = part
    return found


@cache
def _names(module: str) -> dict[str, tuple[str, str]]:
    """Return where the names that a module imports are defined: (module, name)."""
    found = {}
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayesrisk"):
            own = node.module.removeprefix("bayesrisk").removeprefix(".")
            for alias in node.names:
                full = f"{own}.{alias.name}".removeprefix(".")
                bound = alias.asname or alias.name
                found[bound] = (full, "") if full in sources() else _origin(own, alias.name)
    return found


def _origin(module: str, name: str) -> tuple[str, str]:
    """Return where a name that a folder lists is defined."""
    if module in sources() and _is_list(module) and name in _names(module):
        return _names(module)[name]
    if module in sources() and _is_list(module):
        for other in sources():
            if other.startswith(f"{module}.") and name in _functions(other):
                return other, name
    return module, name


def _callee(module: str, call: ast.Call, owner: str) -> tuple[str, str] | None:
    """Return the function of the package that a call runs, where its name tells."""
    names = _names(module)
    if isinstance(call.func, ast.Name):
        name = call.func.id
        place = names.get(name, (module, name))
    elif isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        base, name = call.func.value.id, call.func.attr
        if base in ("self", "cls") and owner:
            place = (module, f"{owner}.{name}")
        elif base in names and names[base][1] == "":
            place = (names[base][0], name)
        else:
            home, kind = names.get(base, (module, base))
            place = (home, f"{kind}.{name}")
    else:
        return None
    if place[0] not in sources():
        return None
    for name in (place[1], f"{place[1]}.__init__", f"{place[1]}.__post_init__"):
        if name in _functions(place[0]):
            return place[0], name
    return None


def _follow(
    module: str, name: str, carried: frozenset[str], path: list[str], entered: set[tuple[str, str]]
) -> None:
    node = _functions(module)[name]
    if (module, name) in entered:
        path.append(module)
        return
    entered.add((module, name))
    path.append(module)
    carried_now = set(carried)
    owner = name.partition(".")[0] if "." in name else ""

    def is_carried(part: ast.AST) -> bool:
        return any(isinstance(n, ast.Name) and n.id in carried_now for n in ast.walk(part))

    for statement in _in_order(node):
        calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
        for call in sorted(calls, key=lambda c: (c.end_lineno, c.end_col_offset)):
            given = [*call.args, *(k.value for k in call.keywords)]
            own = isinstance(call.func, ast.Attribute) and is_carried(call.func.value)
            callee = _callee(module, call, owner)
            if callee is None or not (own or any(is_carried(part) for part in given)):
                continue
            _follow(*callee, _parameters(callee, call, is_carried), path, entered)
            path.append(module)
        if isinstance(statement, ast.Assign) and is_carried(statement.value):
            for target in statement.targets:
                carried_now |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}


def _in_order(node: ast.AST):
    """Yield simple statements, and the heads of compound ones, as they are written.

    What is raised ends a walk, and is no part of it.
    """
    for part in ast.iter_child_nodes(node):
        if isinstance(part, (ast.FunctionDef, ast.ClassDef, ast.Raise)):
            continue
        if (isinstance(part, ast.stmt) and not hasattr(part, "body")) or isinstance(part, ast.expr):
            yield part
        else:
            yield from _in_order(part)


def _parameters(callee: tuple[str, str], call: ast.Call, is_carried) -> frozenset[str]:
    """Return the names under which a function knows what it is handed."""
    arguments = _functions(callee[0])[callee[1]].args
    names = [a.arg for a in arguments.posonlyargs + arguments.args]
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
    own = {names[i] for i, part in enumerate(call.args) if i < len(names) and is_carried(part)}
    own |= {k.arg for k in call.keywords if k.arg and is_carried(k.value)}
    if isinstance(call.func, ast.Attribute) and is_carried(call.func.value):
        own.add("self")
    return frozenset(own)


def table() -> pd.DataFrame:
    """Return what is counted, with what is aimed at."""
    names = public_names()
    studies = [t for m, t in sources().items() if m.split(".")[0] in STUDIES]
    wing = {m: t for m, t in sources().items() if m.partition(".")[0] == "census"}
    imports, comments, _ = shares()
    returns, takes = any_types()
    tests = [f.read_text(encoding="utf-8") for f in (ROOT / "tests").rglob("*.py")]
    rows = [
        ("package: files", len(sources()), 240),
        (
            "package: lines of the core",
            _lines(t for m, t in sources().items() if m not in wing),
            59_000,
        ),
        ("package: lines of the census wing", _lines(wing.values()), 13_000),
        ("package: lines", _lines(sources().values()), 72_000),
        ("tests: lines", _lines(tests), 54_000),
        ("public names: front door", len(names[""]), 75),
        ("public names: all faces", len({n for own in names.values() for n in own}), 260),
        ("public names: on no page", len(unshown_names()), 0),
        ("exported classes with ten and more fields", len(large_classes()), 15),
        ("files read by exactly one other", len(single_readers()), 25),
        ("imports, per cent of lines", round(imports, 1), 5.0),
        ("comments in files of kernels, per cent (at least)", round(comments, 1), 5.0),
        *(
            (f"walk of {parameter} through {name}: stays", len(walk(place, name, parameter)), goal)
            for place, name, parameter, goal in WALKS
        ),
        *((idea, n, goal) for (idea, n), goal in zip(ideas().items(), _FEWER, strict=True)),
        ("arrows that run up", len(climbs()), 0),
        ("files with two or more rulers", len(ruled_files()), 0),
        ("studies and runs: files", len(studies), 18),
        ("studies and runs: lines", _lines(studies), 5_200),
        ("functions that return Any", len(returns), 20),
        ("functions that take Any", len(takes), 60),
        ("names that classes share", len(shared_classes()), 0),
        ("kernels", len(kernels()), 90),
        ("steps of kernels, compiled within them", len(kernels(steps=True)), float("nan")),
        (
            "names that are no nouns or verbs",
            sum(len(loose_names(t)) for t in sources().values()),
            0,
        ),
    ]
    return pd.DataFrame(rows, columns=["what", "now", "aim"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", action="store_true", help="list what is counted, too")
    names = parser.parse_args().names
    print(table().to_string(index=False))
    if names:
        print("\non no page:", ", ".join(unshown_names()))
        print("\nlarge classes:", ", ".join(large_classes()))
        print("\nread by one:", ", ".join(single_readers()))
        print("\ntwo rulers:", ", ".join(ruled_files()))
        print("\nup:", ", ".join(climbs()))
        print("\nshared:", "; ".join(f"{n}: {', '.join(h)}" for n, h in shared_classes().items()))
        loose = {
            module: names for module, text in sources().items() if (names := loose_names(text))
        }
        print("\nno nouns:", "; ".join(f"{m}: {', '.join(n)}" for m, n in loose.items()))
        print("\ncomments:", ", ".join(f"{m} {share:.1f}" for share, m in shares()[2]))


if __name__ == "__main__":
    main()
