"""Small pictures of the first page, taken from figures of the built gallery.

Run ``python docs/thumbnails.py`` after ``make docs`` where a figure has changed.
"""

import html
import re
import sys
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).resolve().parent
PICTURES = DOCS / "_static" / "thumbnails"
#: The name of each picture, and how the alternative text of its figure begins.
FIGURES = {
    "one-count": "Marginal posterior and marginal risk against rho",
    "protections": "Prior, belief without the own record, and posterior",
    "levels": "Probability of being found against the true count of the group",
    "links": "Precision of re-identification by size of block",
    "variability": "Largest share of records that another solution may change",
    "measurements": "Number of cells of a noisy measurement file",
}
WIDTH = 400


def make(built: Path) -> None:
    """Write every picture from the pages in a folder."""
    page = (built / "reference" / "gallery.html").read_text(encoding="utf-8")
    images = dict(re.findall(r'<img alt="([^"]*)"[^>]*src="\.\./([^"]*)"', page))
    for name, begins in FIGURES.items():
        (source,) = (s for alt, s in images.items() if html.unescape(alt).startswith(begins))
        with Image.open(built / source) as figure:
            small = figure.convert("RGB").resize(
                (WIDTH, round(WIDTH * figure.height / figure.width))
            )
            small.quantize(64).save(PICTURES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "_build" / "html")
