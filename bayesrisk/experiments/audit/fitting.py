"""How many people, releases and protections of an audit fit a time."""

from collections.abc import Callable, Mapping, Sequence

Cost = Callable[[int, int], float]  # seconds of a processor, by people and releases
_FEWEST = 10  # people say little


def fit(
    costs: Mapping[str, Sequence[Cost]],
    ends: Callable[[Sequence[float], int], float],
    seconds: float,
    *,
    people: int,
    releases: int,
) -> tuple[list[str], int, int, int]:
    """Names of protections, slowest last, how many fit a time of the clock, people and releases.

    ``costs`` are those of each protection in each population; ``ends`` says when all that take
    these seconds of a processor, for so many people, are over.  Releases are halved first, to no
    fewer than two if that can be, and then people are left out.  If fewer than 10 would be left,
    the slowest protections do not count, until there are so many or one is left.
    """
    few = min(_FEWEST, people)
    names = sorted(costs, key=lambda name: sum(cost(few, 1) for cost in costs[name]))
    counted = len(names)

    def needed(people: int, releases: int) -> float:
        chosen = names[:counted]
        return ends([cost(people, releases) for one in chosen for cost in costs[one]], people)

    while True:
        number, fitting = releases, 0
        while True:
            fitting = people
            while fitting and needed(fitting, number) > seconds:
                fitting -= max(1, fitting // 16)
            if fitting == people or (fitting and number <= 2) or number == 1:
                break
            number = max(number // 2, 1)
        if fitting >= few or counted == 1:
            return names, counted, fitting, number
        counted -= 1
