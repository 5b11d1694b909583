"""Posterior and risk ratio for every unit and cell of a noisy measurement file.

A noisy count is a whole number, so for one noise scale the answers are a short table: a cell costs
a look-up, not an exponential, and how often each count occurs is counted on the way.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.inference.count.measurement_tables import MeasurementTables

if TYPE_CHECKING:
    import pandas as pd

    from bayesrisk.readers import MeasurementBatch, NoisyMeasurements

__all__ = ["NoisyMeasurementRisk", "noisy_measurement_risk"]

_CURVE = 120  # thresholds of the curve
Progress = Callable[[int, int], None]


@displayed
@dataclass(frozen=True)
class NoisyMeasurementRisk:
    """What a noisy measurement file tells about everybody in it, in short.

    The tables count cells whose risk ratio exceeds a threshold, beside what the noise alone would
    give if every true count were the known count, or one more.  Columns: ``risk_ratio`` (the
    threshold), ``cells``, ``expected_known``, ``error_known``, ``expected_one_more``,
    ``error_one_more``; an error is the standard deviation of the number over the noise, cells
    being independent.

    Attributes
    ----------
    output : pathlib.Path
        The Parquet file: ``geocode``, ``cell`` (C-order number), ``noisy_count``, ``posterior``,
        ``risk_ratio``.
    level, query : str
        What was read.
    prior : float
        Belief before the release, in every cell.
    known_count : int
        Others known to be in the cell, in every cell.
    units : int
        Units with a noisy answer.
    unmeasured : int or None
        Units of the level without one; None where the folder has no constraints to list them.
    cells : int
        Cells in all: rows of the output.
    exceedance : pandas.DataFrame
        A row for each threshold asked for.
    curve : pandas.DataFrame
        The same for thresholds from 1 to the largest ratio.
    seconds : mapping of str to float
        Time spent in ``read``, ``compute`` and ``write``.
    version : str
        Version of bayesrisk.
    """

    output: Path
    level: str
    query: str
    prior: float
    known_count: int
    units: int
    unmeasured: int | None
    cells: int
    exceedance: "pd.DataFrame"
    curve: "pd.DataFrame"
    seconds: Mapping[str, float]
    version: str = __version__


class _Output:
    """The Parquet file: written under another name, and in place only when it is whole."""

    def __init__(self, stream: BinaryIO, about: Mapping[str, Any]) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self._schema = pa.schema(
            [
                ("geocode", pa.dictionary(pa.int32(), pa.string())),
                ("cell", pa.int32()),
                ("noisy_count", pa.int64()),
                ("posterior", pa.float64()),
                ("risk_ratio", pa.float64()),
            ],
            metadata={"bayesrisk": json.dumps(about, sort_keys=True)},
        )
        repeated = [name for name in self._schema.names if name != "cell"]
        self._writer = parquet.ParquetWriter(
            stream,
            self._schema,
            compression="zstd",
            use_dictionary=repeated,
            column_encoding={"cell": "DELTA_BINARY_PACKED"},
        )

    def write(
        self,
        batch: "MeasurementBatch",
        posterior: NDArray[np.float64],
        ratio: NDArray[np.float64],
    ) -> None:
        """Write one row for each cell of a batch."""
        import pyarrow as pa

        units, cells = batch.values.shape
        place = np.repeat(np.arange(units, dtype=np.int32), cells)
        columns = [
            pa.DictionaryArray.from_arrays(pa.array(place), pa.array(batch.geocodes.tolist())),
            pa.array(np.tile(np.arange(cells, dtype=np.int32), units)),
            pa.array(batch.values.reshape(-1)),
            pa.array(posterior),
            pa.array(ratio),
        ]
        table = pa.Table.from_arrays(columns, schema=self._schema)
        self._writer.write_table(table, row_group_size=len(posterior))

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()


@contextmanager
def _whole_or_absent(path: Path, about: Mapping[str, Any]) -> Iterator[_Output]:
    """Make the output in one step: nothing is left of it when something goes wrong."""
    if path.suffix.lower() != ".parquet":
        raise ArgumentError(f"output must end in .parquet, got {shown(str(path))}")
    with _files.whole_file(path, new=True) as stream:
        output = _Output(stream, about)
        try:
            yield output
        finally:
            output.close()


class _Watch:
    """Seconds by what they were spent on."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(("read", "compute", "write"), 0.0)
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Add the time since the last lap to ``name``."""
        now = time.perf_counter()
        self.seconds[name] += now - self._last
        self._last = now


class _Position:
    """Reports how many rows have been read, of how many in all."""

    def __init__(self, rows: Mapping[Path, int], progress: Progress | None) -> None:
        self._before = {}
        total = 0
        for file, count in rows.items():
            self._before[file] = total
            total += count
        self._total = total
        self._progress = progress

    def at(self, batch: "MeasurementBatch") -> None:
        """Report a batch."""
        if self._progress:
            self._progress(self._before[batch.file] + int(batch.rows[-1]) + 1, self._total)

    def end(self) -> None:
        """Report that all is read."""
        if self._progress:
            self._progress(self._total, self._total)


def _unmeasured(source: "NoisyMeasurements", level: str, units: int) -> int | None:
    """Return how many units of the constraints have no noisy answer."""
    try:
        listed = sum(codes.size for codes in source.iter_units(level))
    except ArgumentError:
        return None
    return listed - units


def _limits(exceeds: Any) -> list[float]:
    """Return the thresholds as numbers."""
    if isinstance(exceeds, (str, bytes)) or not isinstance(exceeds, Iterable):
        raise ArgumentTypeError(f"exceeds must be a sequence of numbers, got {shown(exceeds)}")
    return [
        check.scalar(limit, "exceeds", lower=0.0, bounds="()")
        for limit in check.items(exceeds, "exceeds")
    ]


def noisy_measurement_risk(
    source: "NoisyMeasurements | str | Path",
    output: str | Path,
    *,
    prior: float,
    known_count: int = 0,
    level: str = "Block",
    query: str = "detailed",
    exceeds: Sequence[float] = (1.5,),
    progress: Progress | None = None,
) -> NoisyMeasurementRisk:
    r"""Write posterior and risk ratio of every unit and cell of a noisy measurement file.

    .. math:: \pi(y) = \operatorname{expit}\big(\operatorname{logit} p
        + (2 (y - k) - 1) / (2 \sigma^2)\big), \quad r(y) = \pi(y) / p

    The adversary knows everyone in the unit but the target: ``known_count`` others are in the
    cell, and the target is in it with probability ``prior``.  The same two numbers serve every
    cell.

    Parameters
    ----------
    source : NoisyMeasurements or path-like
        The folder; open it with a budget to have exact noise scales.
    output : path-like
        Parquet file to make; it must not exist.
    prior : float
        Probability p that the target is in the cell, in (0, 1).
    known_count : int, default 0
        Others known to be in the cell, k.
    level : str, default "Block"
        Level of the spine.
    query : str, default "detailed"
        Query, as in ``source.queries(level)``.
    exceeds : sequence of float, default (1.5,)
        Risk ratios for which cells above are counted, > 0.
    progress : callable, optional
        Called with the rows read and the rows in all.

    Returns
    -------
    NoisyMeasurementRisk
        Summary; the numbers of the cells are in the file.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or there is no such level or query.
    DataError
        If a row breaks the format; file, row and column are named.
    OutputError
        If the output exists or cannot be written; nothing is left half-written.

    Notes
    -----
    Memory holds a batch of about 2**20 cells.  The numbers are those of
    :func:`posterior_probability` and :func:`risk_ratio`, bit for bit.

    Examples
    --------
    >>> import tempfile
    >>> from bayesrisk.readers import write_nmf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sample = write_nmf(folder + "/US_Unit_PL_PROD", universe="unit", rng=1)
    ...     result = noisy_measurement_risk(
    ...         sample.folder, folder + "/risk.parquet", prior=0.1, level="Tract"
    ...     )
    >>> result.cells == 2 * result.units
    True
    """
    from bayesrisk.readers import NoisyMeasurements

    p = check.scalar(check.probability(prior, "prior"), "prior")
    k = check.integer(known_count, "known_count", lower=0)
    limits = _limits(exceeds)
    check.function(progress, "progress")
    check.text(query, "query")
    path, nmf = check.path(output, "output"), source
    if not isinstance(nmf, NoisyMeasurements):
        nmf = NoisyMeasurements.open(check.path(nmf, "source"))
    check.choice(level, "level", nmf.levels)
    about = {"level": level, "query": query, "prior": p, "known_count": k, "version": __version__}
    tables = MeasurementTables(p, k)
    watch, units = _Watch(), 0
    with _whole_or_absent(path, about) as out:
        position = _Position(nmf.n_rows(level), progress)
        for batch in nmf.iter_values(level, query):
            watch.lap("read")
            posterior, ratio = tables.look_up(batch.values, batch.sigma2)
            watch.lap("compute")
            out.write(batch, posterior, ratio)
            watch.lap("write")
            units += batch.geocodes.size
            position.at(batch)
        watch.lap("read")
        unmeasured = _unmeasured(nmf, level, units)
        position.end()
    top = max(tables.largest_ratio(), 1.0 + 1e-9)
    return NoisyMeasurementRisk(
        output=path,
        level=level,
        query=query,
        prior=p,
        known_count=k,
        units=units,
        unmeasured=unmeasured,
        cells=tables.cells,
        exceedance=tables.exceedance(limits),
        curve=tables.exceedance(np.geomspace(1.0, top, _CURVE).tolist()),
        seconds=watch.seconds,
    )
