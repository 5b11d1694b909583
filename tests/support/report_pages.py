"""What pages of reports are tested with: names that are none, and a report about them."""

from bayesrisk.experiments import pages
from bayesrisk.experiments.pages import marked

HOSTILE = "<script>alert('1')</script>\x00\x1b[31m\" onload=\"x\u202e&{{ 7 * 7 }}"
QUOTES = pages.Quotes([HOSTILE], {HOSTILE: HOSTILE})
FROM = {
    "quotes": QUOTES,
    "source": HOSTILE,
    "settings": HOSTILE,
    "settings_title": HOSTILE,
    "warning": HOSTILE,
}


def hostile_report(figures=(), tables=(), parts=()):
    """Return a report in which every place that takes a text has that of somebody else."""
    said = marked("<b>{}</b> and {name}", HOSTILE, name=HOSTILE)
    answer = [("sentence", HOSTILE, "lead"), HOSTILE, said, ("points", [HOSTILE, said])]
    below = [
        ("heading", HOSTILE),
        ("words", {HOSTILE: HOSTILE}),
        ("listing", HOSTILE),
        *figures,
    ]
    parts = [*below, ("folded", HOSTILE, tables), *parts]
    return pages.render(HOSTILE, answer, parts, **FROM).decode()
