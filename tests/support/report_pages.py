"""What pages of reports are tested with: names that are none, and a report about them."""

from bayesrisk.experiments import pages
from bayesrisk.experiments.pages import Folded, Heading, Listing, Points, Sentence, Words, marked

HOSTILE = "<script>alert('1')</script>\x00\x1b[31m\" onload=\"x\u202e&{{ 7 * 7 }}"
FROM = {"source": HOSTILE, "settings": HOSTILE, "settings_title": HOSTILE, "warning": HOSTILE}


def hostile_report(figures=(), tables=(), parts=()):
    """Return a report in which every place that takes a text has that of somebody else."""
    said = marked("<b>{}</b> and {name}", HOSTILE, name=HOSTILE)
    answer = [Sentence(HOSTILE, "lead"), HOSTILE, said, Points([HOSTILE, said])]
    below = [Heading(HOSTILE), Words({HOSTILE: HOSTILE}), Listing(HOSTILE), *figures]
    parts = [*below, Folded(HOSTILE, tables), *parts]
    return pages.render(HOSTILE, answer, parts, **FROM).decode()
