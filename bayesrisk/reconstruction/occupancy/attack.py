"""Detection of occupancy violations as an attack on a release: what the registry knows it by."""

from typing import Any

from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.reconstruction.occupancy.detection import OccupancyDetection, detect_occupancy
from bayesrisk.reconstruction.occupancy.statistics import occupancy_statistics
from bayesrisk.release import Release


class OccupancyAttack:
    """Blocks whose tables leave no way but a violation of the occupancy limit.

    Parameters
    ----------
    level : str, default "block"
        Level of the tables.
    hud : {"counts", "percentages"}, default "counts"
        How HUD's tables are read; see :func:`occupancy_statistics`.
    taken_as_true : bool, default False
        Whether counts that need not be true are read as if they were.
    **options : object
        Options of :func:`detect_occupancy`.

    Examples
    --------
    >>> OccupancyAttack(hud="percentages").name
    'occupancy'
    """

    name = "occupancy"

    def __init__(
        self,
        *,
        level: str = "block",
        hud: str = "counts",
        taken_as_true: bool = False,
        **options: Any,
    ) -> None:
        known = tuple(detect_occupancy.__kwdefaults__ or ())
        for option in options:
            if option not in known:
                raise ArgumentTypeError(
                    f"options must be those of detect_occupancy ({', '.join(known)}), "
                    f"got {shown(option)}"
                )
        self.level, self.hud, self.options = level, hud, options
        self.taken_as_true = taken_as_true

    def run(self, release: Release) -> OccupancyDetection:
        """Return what the tables of a release say of every block.

        Parameters
        ----------
        release : Release
            What was published; nothing else is read.

        Returns
        -------
        OccupancyDetection
            A status for each block: proved of the tables, and of the households if published
            counts are true counts.

        Raises
        ------
        ArgumentError
            If an option is out of range, a table is missing, or counts need not be true.
        DataError
            If a count is negative or suppressed.
        """
        if not isinstance(release, Release):
            raise ArgumentTypeError(f"release must be a Release, got {type(release).__name__}")
        blocks = occupancy_statistics(
            release.tables, level=self.level, hud=self.hud, taken_as_true=self.taken_as_true
        )
        return detect_occupancy(blocks, **self.options)
