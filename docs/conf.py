"""Sphinx configuration: a reference made from docstrings, pages and notebooks that are run."""

import os
import re
import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
NOTEBOOKS = ROOT / "notebooks"
TUTORIALS = DOCS / "tutorials"

# The site describes this checkout, whatever is installed; the kernels that run pages inherit it.
sys.path.insert(0, str(ROOT))
sys.path.append(str(DOCS))
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
)

import command_reference  # noqa: E402
import kernels  # noqa: E402
import navigation  # noqa: E402
import published_numbers  # noqa: E402
from docutils import nodes  # noqa: E402
from numpydoc import docscrape_sphinx  # noqa: E402
from sphinx.util.nodes import make_refnode  # noqa: E402

from bayesrisk._version import __version__  # noqa: E402

project = "bayesrisk"
author = "The bayesrisk developers"
project_copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx-mathjax-offline",  # formulas without a network
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "**.ipynb_checkpoints"]

# Reference: docstrings carry the types, so signatures do not repeat them.
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
nitpicky = True

# Pages and notebooks are run at every build: a number that rots fails the build.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_execution_show_tb = True
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"bayesrisk {version}"
html_static_path = ["_static"]
html_css_files = ["tables.css", "home.css"]
html_copy_source = False
html_show_sourcelink = False
# The versions whose pages stand in folders beside this one, for the switch between them.
html_context = {"versions": os.environ.get("DOCS_VERSIONS", "").split()}
_SIDEBAR = ("brand", "search", "versions", "scroll-start", "navigation", "scroll-end")
html_sidebars = {"**": [f"sidebar/{part}.html" for part in _SIDEBAR]}


def copy_notebooks(app: object) -> None:
    """Make ``docs/tutorials`` hold a copy of every notebook, and of no other."""
    sources = {path.name: path for path in sorted(NOTEBOOKS.glob("*.ipynb"))}
    for stale in TUTORIALS.glob("*.ipynb"):
        if stale.name not in sources:
            stale.unlink()
    for name, path in sources.items():
        copy = TUTORIALS / name
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            shutil.copyfile(path, copy)


def by_last_name(app, env, node, content):
    """Resolve a role that gives a public name without the module in which it is documented."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].removeprefix("bayesrisk.")
    domain = env.get_domain("py")
    found = [name for name in domain.objects if name.endswith(f".{target}")]
    # A class is there by its public name and by its module's: the shorter one is meant.
    found.sort(key=lambda name: name.count("."))
    if not found or [name.count(".") for name in found].count(found[0].count(".")) != 1:
        return None
    entry = domain.objects[found[0]]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content)


#: A paper as pages and docstrings cite it, and where it is.
PAPER = re.compile(r"(arXiv|doi):(\d[\w./()-]*\w)")
PAPERS = {"arXiv": "https://arxiv.org/abs/", "doi": "https://doi.org/"}


def link_papers(app: object, doctree: nodes.document) -> None:
    """Link every arXiv:... and doi:... of a page, wherever it stands in running text."""
    for text in list(doctree.findall(nodes.Text)):
        parents, node = [], text.parent
        while node is not None:
            parents.append(node)
            node = node.parent
        if any(
            isinstance(p, nodes.reference | nodes.literal | nodes.literal_block) for p in parents
        ):
            continue
        parts, done = [], 0
        for found in PAPER.finditer(text):
            parts += [nodes.Text(text[done : found.start()])]
            where = PAPERS[found[1]] + found[2]
            parts += [nodes.reference("", found[0], refuri=where, internal=False)]
            done = found.end()
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(text[done:])])


NUMBER = re.compile(r"[-+−]?[\d.,]+(?:e[-+]?\d+)?%?|NaN|nan|-?inf|<NA>|None|")


def text_to_the_left(
    app: object, pagename: str, templatename: str, context: dict[str, object], doctree: object
) -> None:
    """Mark columns of data frames that hold text, which the style aligns at the left."""

    def table(found: re.Match[str]) -> str:
        rows = [re.findall(r"<td>(.*?)</td>", r, re.DOTALL) for r in found[0].split("<tr")]
        texts = {
            i for row in rows for i, cell in enumerate(row) if not NUMBER.fullmatch(cell.strip())
        }

        def row(part: str) -> str:
            cells = len(re.findall(r"<td>", part))
            if cells:
                number = iter(range(cells))
                return re.sub("<td>", lambda _: mark("td", next(number)), part)
            heads, width = len(re.findall(r"<th>", part)), max(map(len, rows))
            number = iter(range(width - heads, width))
            return re.sub("<th>", lambda _: mark("th", next(number)), part)

        def mark(tag: str, column: int) -> str:
            return f'<{tag} class="text">' if column in texts else f"<{tag}>"

        parts = found[0].split("<tr")
        return "<tr".join(
            row(part) if part.count("<th") != 1 or "<td" in part else part for part in parts
        )

    if "dataframe" in str(context.get("body", "")):
        whole = r'<table border="1" class="dataframe">.*?</table>'
        context["body"] = re.sub(whole, table, str(context["body"]), flags=re.DOTALL)


def notebook_button(
    app: object, pagename: str, templatename: str, context: dict[str, object], doctree: object
) -> None:
    """Put a button above each tutorial that opens it as a notebook."""
    folder, _, name = pagename.rpartition("/")
    if folder == "tutorials" and (NOTEBOOKS / f"{name}.ipynb").exists():
        link = (
            f'<a class="notebook" href="../notebooks/{name}.ipynb" download>Open as a notebook</a>'
        )
        context["body"] = str(context["body"]).replace("</h1>", f"</h1><p>{link}</p>", 1)


def publish_notebooks(app: object, exception: Exception | None) -> None:
    """Put every notebook beside the pages, where the buttons look for it."""
    if exception is None and app.builder.name == "html":  # type: ignore[attr-defined]
        folder = Path(app.outdir) / "notebooks"  # type: ignore[attr-defined]
        folder.mkdir(exist_ok=True)
        for path in NOTEBOOKS.glob("*.ipynb"):
            shutil.copyfile(path, folder / path.name)


def compile_template_once() -> None:
    """Let numpydoc compile its template once, and not anew for every docstring."""
    make, made = docscrape_sphinx.SandboxedEnvironment, []

    def environment(**settings: object) -> object:
        if not made:
            made.append(make(**settings))
        return made[0]

    docscrape_sphinx.SandboxedEnvironment = environment


def setup(app: object) -> None:
    """Copy the notebooks before Sphinx looks for sources."""
    compile_template_once()
    navigation.install()
    kernels.install()
    app.connect("missing-reference", by_last_name)  # type: ignore[attr-defined]
    app.connect("html-page-context", text_to_the_left)  # type: ignore[attr-defined]
    app.connect("html-page-context", notebook_button)  # type: ignore[attr-defined]
    app.connect("build-finished", kernels.SERVER.close)  # type: ignore[attr-defined]
    app.connect("build-finished", publish_notebooks)  # type: ignore[attr-defined]
    app.connect("doctree-read", link_papers)  # type: ignore[attr-defined]
    app.connect("builder-inited", copy_notebooks)  # type: ignore[attr-defined]
    app.connect("source-read", published_numbers.source_read)  # type: ignore[attr-defined]
    app.connect("source-read", command_reference.source_read)  # type: ignore[attr-defined]
