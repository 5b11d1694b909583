"""Pages point to what exists, and every figure can be read by those who cannot see it."""

import csv
import functools
import importlib
import re
import sys
from pathlib import Path

import nbformat
import pytest

import bayesrisk

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts)
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
#: The last line of a cell that shows a figure.
FIGURE = re.compile(r"^(?:br\.plotting\.plot_|az\.plot_|figure_)\w+\(", re.MULTILINE)


def of(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


@of(PAGES)
def test_links_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith(("http", "#", "mailto")):
            file = (path.parent / target.partition("#")[0]).resolve()
            if file.suffix == ".ipynb":
                file = ROOT / "notebooks" / file.name
            assert file.exists(), target


@of(PAGES)
def test_pages_of_an_index_exist(path):
    text = path.read_text(encoding="utf-8")
    for body in re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL):
        for name in re.findall(r"(?m)^[\w/-]+$", body):
            assert (path.parent / f"{name}.md").exists(), name


@of(sorted((DOCS / "start").glob("*.md")))
def test_names_of_the_start_exist(path):
    for name in re.findall(r"`br\.([\w.]+)`", path.read_text(encoding="utf-8")):
        assert functools.reduce(getattr, name.split("."), bayesrisk) is not None


def command_lines(text):
    """Yield the words of each command of ours that a page shows, up to a comment or a pipe."""
    code = "\n".join(re.findall(r"```[^\n]*\n(.*?)```", text, re.DOTALL))
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    for line in [*code.replace("\\\n", " ").splitlines(), *spans]:
        shown = re.match(r"\s*(?:\$ )?bayesrisk ((?:[a-z-]+\b)?[^#|>;&]*)", line)
        if shown and not line.rstrip().endswith(":"):
            yield shown[1].split()


def unknown_words(words):
    """Return what the command line does not know of a command: its name, or options."""
    from typer.main import get_command

    from bayesrisk.cli.app import app

    command, names = get_command(app), list(words)
    while hasattr(command, "commands") and names and re.match(r"[a-z]", names[0]):
        if names[0] not in command.commands:
            return [names[0]]
        command = command.commands[names.pop(0)]
    known = {"--help"}.union(*([*p.opts, *p.secondary_opts] for p in command.params))
    return [w for w in names if re.fullmatch(r"--?[a-z][a-z-]*", w) and w not in known]


# The migration page names commands that are gone.
@of([*(p for p in PAGES if p.stem != "migration"), ROOT / "README.md"])
def test_commands_and_their_options_exist(path):
    for words in command_lines(path.read_text(encoding="utf-8")):
        assert not unknown_words(words), " ".join(words)


def test_what_is_no_command_is_seen():
    page = "`bayesrisk risk --nmf DIR`\n```console\n$ bayesrisk swep a \\\n  --force # -q\n```"
    assert [unknown_words(words) for words in command_lines(page)] == [["swep"], ["--nmf"]]


@of([p for p in sorted((DOCS / "howto").rglob("*.md")) if p.stem != "index"])
def test_a_howto_says_when_to_use_it_and_its_limits(path):
    text = path.read_text(encoding="utf-8")
    assert "**When to use it.**" in text
    if path.stem != "cite-and-versions":
        assert re.search(r"Limits", text)


@of([*PAGES, *NOTEBOOKS])
def test_names_that_pages_and_notebooks_use_exist(path):
    text = path.read_text(encoding="utf-8")
    for name in set(re.findall(r"\bbr((?:\.[A-Za-z_]\w*)+)\(", text)):
        thing = bayesrisk
        for part in name[1:].split("."):
            assert hasattr(thing, part), f"br{name}"
            thing = getattr(thing, part)


def described(text):
    """Return whether an alternative text describes: a sentence, no name of a file."""
    return len(text) > 40 and text.endswith(".") and ".png" not in text


@of(NOTEBOOKS)
def test_figures_of_notebooks_have_alternative_texts(path):
    cells = nbformat.read(path, as_version=4).cells
    shown = [c for c in cells if c.cell_type == "code" and FIGURE.search(c.source)]
    for cell in shown:
        assert described(cell.metadata["mystnb"]["image"]["alt"]), cell.source
        assert "%matplotlib" not in cell.source


@of(PAGES)
def test_figures_of_pages_have_alternative_texts(path):
    text = path.read_text(encoding="utf-8")
    for cell in re.findall(r"```\{code-cell\} python\n(.*?)```", text, re.DOTALL):
        if FIGURE.search(cell):
            alt = re.search(r"^---\nmystnb:\n  image:\n    alt: (.*)\n---$", cell, re.MULTILINE)
            assert alt, cell
            assert described(alt[1])
    for options in re.findall(r"```\{(?:image|figure)\}[^\n]*\n(.*?)```", text, re.DOTALL):
        alt = re.search(r":alt: ([^\n]*)", options)
        assert alt
        assert described(alt[1])
    assert not re.search(r"!\[\]\(", text)


def test_the_texts_are_looked_at():
    assert not described("../_images/8478ff.png")
    assert FIGURE.search("x = 1\nbr.plotting.plot_levels(levels)")


def command_sections():
    """Return the sections of the page of the command line that are made from the help."""
    sys.path.insert(0, str(DOCS))
    try:
        import command_reference
    finally:
        sys.path.remove(str(DOCS))
    source = ["# Command line"]
    command_reference.source_read(None, command_reference.DOCNAME, source)
    found = re.split(r"(?m)^## (bayesrisk .*)$", source[0])[1:]
    return dict(zip(found[::2], found[1::2], strict=True))


def test_the_page_of_the_command_line_has_every_command_and_option():
    from typer.main import get_command

    from bayesrisk.cli.app import app

    sections, group = command_sections(), get_command(app)
    assert len(sections) > 8
    for words, text in sections.items():
        command = group
        for word in words.split()[1:]:
            command = command.commands[word]
        assert f"$ {words}" in text
        for option in (o for p in command.params for o in p.opts if o.startswith("--")):
            assert f"{option}" in text, (words, option)
    for name, command in group.commands.items():
        assert command.hidden or any(words.split()[1] == name for words in sections), name


#: Words of each half of the site, explanations and all other pages, code and tables included.
MOST_WORDS = 25_000
AMERICAN = re.compile(
    r"\b(?:colou?rize|behavior|colors?|neighbors?|centers?|favor|labor|honor|catalog|gray"
    r"|(?:general|random|normal|optim|summar|standard|recogn|organ|minim|maxim|character)iz(?:e[sd]?|ing))\b",
    re.IGNORECASE,
)


def prose(text):
    """Return the running text of a page, paragraph by paragraph: no code, tables or headings."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    text = re.sub(
        r"^(\s*)(`{3,}|:{3,})[^\n]*\{?.*?^\1\2\s*$", "\n\n", text, flags=re.DOTALL | re.MULTILINE
    )
    text = re.sub(r"^\$\$.*?\$\$\s*$", "\n\n", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(?:\s*\||#+ |:::).*$", "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*(?:[-*]|\d+\.|:|>) ", "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`]+`", "Code", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", lambda found: found[1] or "Page", text)
    text = re.sub(r"\$[^$]+\$", "x", text)
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]


def sentences(text):
    """Return the sentences of a page: they end in a full stop, question or exclamation mark."""
    for part in prose(text):
        yield from re.split(r"(?<=[.!?])[*_)\"”]*\s+(?=[*_(\"“]*[A-Z0-9])", part)


@of([*PAGES, ROOT / "README.md"])
def test_lines_of_pages_are_short(path):
    """Tables, links and code have lines of their own length."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for line in text.splitlines():
        assert len(line) <= 100 or re.match(r"\s*(\||#|\[|!\[|:alt:|alt:)", line), line


def test_sentences_of_pages_are_short():
    """They have at most 25 words: no more than one in two hundred is longer."""
    found = [s for p in PAGES for s in sentences(p.read_text(encoding="utf-8"))]
    longer = [sentence for sentence in found if len(sentence.split()) > 25]
    assert len(found) > 900
    assert len(longer) <= 0.005 * len(found), longer


def test_sentences_are_split_where_they_end():
    page = "# Title\n\nOne `a b c` is here. Two\nhave [a link](x.md).\n\n| a | b |\n\n"
    page += "- Three, e.g. this?\n- 4 it is.\n"
    assert [len(s.split()) for s in sentences(page)] == [4, 4, 3, 3]


@of([*PAGES, ROOT / "README.md"])
def test_the_spelling_is_british(path):
    assert AMERICAN.findall(" ".join(prose(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize("explaining", [True, False])
def test_pages_are_few_words(explaining):
    pages = [p for p in PAGES if ("explanation" in p.parts) == explaining]
    assert sum(len(p.read_text(encoding="utf-8").split()) for p in pages) <= MOST_WORDS


def named_objects(text):
    """Return the dotted names that the lists of a page stand for, each with its module."""
    for body in re.findall(r"```\{eval-rst\}\n(.*?)```", text, re.DOTALL):
        module = ""
        for line in body.splitlines():
            if line.startswith(".. currentmodule::"):
                module = line.partition("::")[2].strip()
            elif re.fullmatch(r"   [A-Za-z_][\w.]*", line):
                yield f"{module}.{line.strip()}"


def exists(name):
    """Return whether a dotted name is a module, or an attribute of one."""
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:size]))
        except ImportError:
            continue
        return functools.reduce(lambda o, n: getattr(o, n, None), parts[size:], found) is not None
    return False


def test_the_tree_beside_a_page_is_that_of_another_page_marked_anew(monkeypatch):
    """Furo's own for both pages, made by hand: hrefs, the open branch, and the page."""
    monkeypatch.syspath_prepend(DOCS)
    navigation = importlib.import_module("navigation")
    box = '<input aria-label="Toggle navigation of B"{} class="toctree-checkbox"/><ul{}>'
    one = '<li class="toctree-l1{}"><a class="{}reference internal" href="{}">{}</a>'.format
    two = '<li class="toctree-l2{}"><a class="{}reference internal" href="{}">{}</a></li>'.format
    on, page = " current", " current current-page"
    beside_a = f"""<ul class="current">
{one(page, "current ", "#", "A, the current")}</li>
{one(" has-children", "", "b/index.html", "B")}{box.format("", "")}
{two("", "", "b/c.html", "C")}
</ul>
</li>
</ul>"""
    beside_c = f"""<ul class="current">
{one("", "", "../a.html", "A, the current")}</li>
{one(on + " has-children", "", "index.html", "B")}{box.format(' checked=""', ' class="current"')}
{two(page, "current ", "#", "C")}
</ul>
</li>
</ul>"""
    for html, known in ((beside_a, "a.html"), (beside_c, "b/c.html")):
        tree = navigation.Tree(html, known)
        assert tree.marked("a.html") == beside_a
        assert tree.marked("b/c.html") == beside_c
        assert "current" not in tree.marked("elsewhere.html").replace("the current", "")


def test_objects_of_reference_pages_exist():
    names = {name for path in PAGES for name in named_objects(path.read_text(encoding="utf-8"))}
    assert len(names) > 200
    assert {name for name in names if not exists(name)} == set()
    assert not exists("bayesrisk.reconstruction.claims.result.ClaimsAttack")  # it moved


def test_no_cell_of_a_table_is_read_as_a_list():
    """A dash alone in a cell is the first point of an empty list."""
    files = [p for p in DOCS.rglob("*.csv") if "_build" not in p.parts]
    assert files
    texts = [p.read_text(encoding="utf-8").splitlines() for p in files]
    cells = {x for lines in texts for row in csv.reader(lines) for x in row}
    assert cells.isdisjoint({"-", "*", "+"})
