"""The tree of all pages that stands beside each page: made once, and marked for each.

Furo makes it anew for each of some 500 pages, which takes longer than all else that is written.
"""

import posixpath
import re
from typing import Any
from urllib.parse import urljoin

_LINK = re.compile(r'(?<=<a class="reference internal" href=")[^"]*')
#: Marks of the current page and of the branch that it is on.
_MARKS = re.compile(
    r'(?<=<li class="toctree-l\d) current| current-page(?=">)|(?<=<a class=")current '
    r'| checked=""|(?<=<ul) class="current"'
)


class Tree:
    """The tree without marks, a line for each entry, and what is above each."""

    def __init__(self, html: str, page: str) -> None:
        self.lines = _MARKS.sub("", html).split("\n")
        #: Of each line its page, and the lines above it: entries and the list at the top.
        self.pages: dict[str, list[int]] = {}
        self.above: dict[int, list[int]] = {}
        self._folders: dict[str, list[str]] = {}
        branch: list[int] = []
        for number, line in enumerate(self.lines):
            found = _LINK.search(line)
            if found:
                target = page if found[0] == "#" else urljoin(page, found[0])
                self.lines[number] = _LINK.sub(target, line)
                self.pages.setdefault(target, []).append(number)
                self.above[number] = list(branch)
            if line.endswith("<ul>"):
                branch.append(number)
            elif line.startswith("</ul>"):
                branch.pop()

    def _beside(self, folder: str) -> list[str]:
        """Return the lines as they stand beside the pages of a folder."""
        if folder not in self._folders:
            self._folders[folder] = [
                _LINK.sub(lambda link: posixpath.relpath(link[0], folder or "."), line)
                for line in self.lines
            ]
        return self._folders[folder]

    def marked(self, page: str) -> str:
        """Return the tree beside a page: its branch open, its last entry marked as the page."""
        lines = list(self._beside(page[: page.rfind("/") + 1]))
        own = self.pages.get(page, [])
        for number in {n for entry in own for n in [entry, *self.above[entry]]}:
            line = re.sub(r'(?<=^<li class="toctree-l)\d', r"\g<0> current", lines[number])
            line = re.sub(r'(<input aria-label="[^"]*")', r'\1 checked=""', line)
            branch = any(number in self.above[entry] for entry in own)
            lines[number] = re.sub("<ul>$", '<ul class="current">', line) if branch else line
        for number in own:
            line = _LINK.sub("#", lines[number])
            lines[number] = line.replace('"reference', '"current reference')
        if own:
            lines[own[-1]] = re.sub('(?<=^<li class=")[^"]*', r"\g<0> current-page", lines[own[-1]])
        return "\n".join(lines)


def install() -> None:
    """Let Furo take the tree of all pages but the first from here."""
    import furo

    whole, made = furo._compute_navigation_tree, []

    def beside(context: dict[str, Any]) -> str:
        page = context["pagename"] + ".html"
        if not made:
            made.append(Tree(whole(context), page))
        return made[0].marked(page)

    furo._compute_navigation_tree = beside
