"""Memory of every command that works by place does not grow with the number of places."""

import pytest
from command_memory import COMMANDS, peaks

#: MB that a command may hold more on four times as many counties.  Nothing is kept from place to
#: place but a line of an index; what grows is the largest tract met so far, what the allocator
#: holds for use again, and the persons that are looked up at a time, which are at most 260,000: 31
#: were measured.  Who held all known persons and their truth took 0.5 KB for each, 60 MB more here.
ALLOWED = 45


@pytest.mark.slow
def test_four_times_as_many_counties_take_no_more_memory(tmp_path):
    few, many = (dict(peaks(tmp_path / str(n), n)) for n in (9, 36))
    assert few.keys() == many.keys() == COMMANDS.keys()
    grown = {name: many[name] - few[name] for name in COMMANDS}
    assert max(grown.values()) < ALLOWED, grown
