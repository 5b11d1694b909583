"""How many people, releases and protections of an audit fit a time."""

from collections.abc import Callable, Mapping, Sequence

from bayesrisk.experiments.audit.populations import FEW_TARGETS

Cost = Callable[[int, int], float]  # seconds of a processor, by people and releases


def fit(
    costs: Mapping[str, Sequence[Cost]],
    ends: Callable[[Sequence[float], int], float],
    seconds: float,
    *,
    people: int,
    releases: int,
) -> tuple[list[str], int, int]:
    """Names of the protections, people and releases that take at most some seconds of the clock.

    ``costs`` are those of each protection in each population; ``ends`` says when all that take
    these seconds of a processor, for so many people, are over.  Releases are halved first, to no
    fewer than two if that can be, and then people are left out.  Fewer than 20 people say little:
    then the slowest protections are left out, until there are so many or one is left.
    """
    chosen, few = dict(costs), min(FEW_TARGETS, people)

    def needed(people: int, releases: int) -> float:
        return ends([cost(people, releases) for one in chosen.values() for cost in one], people)

    while True:
        number, fitting = releases, 0
        while True:
            fitting = people
            while fitting and needed(fitting, number) > seconds:
                fitting -= max(1, fitting // 16)
            if fitting == people or (fitting and number <= 2) or number == 1:
                break
            number = max(number // 2, 1)
        if fitting >= few or len(chosen) == 1:
            return [*chosen], fitting, number
        del chosen[max(chosen, key=lambda name: sum(cost(few, 1) for cost in chosen[name]))]
