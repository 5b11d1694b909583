"""The output folder of a sweep."""

from typing import ClassVar

import pyarrow as pa

from bayesrisk.exceptions import PartFileError
from bayesrisk.experiments.runs.folder import PartFolder
from bayesrisk.experiments.sweep.config import SweepConfig
from bayesrisk.experiments.sweep.shard import SCHEMA


class SweepFolder(PartFolder):
    """The folder of one sweep.

    Parameters
    ----------
    path : path-like
        The folder; :meth:`prepare` makes it.
    """

    what: ClassVar[str] = "sweep"

    def read(self, config: SweepConfig) -> pa.Table:
        """Return the rows of all parts, in the order of the shards.

        Parameters
        ----------
        config : SweepConfig
            The sweep.

        Returns
        -------
        pyarrow.Table
            All rows.

        Raises
        ------
        PartFileError
            If a part is missing, truncated or foreign.
        """
        missing = self.missing(config)
        if missing:
            raise PartFileError(
                f"{self.path}: {len(missing)} of {config.shards} shards are missing, "
                f"the first is {missing[0]}; run the sweep with --resume"
            )
        try:
            return pa.concat_tables(self.read_part(s).cast(SCHEMA) for s in range(config.shards))
        except (ValueError, pa.ArrowException) as error:
            raise PartFileError(f"{self.path}: a part has other columns: {error}") from error

    def load_config(self) -> SweepConfig:
        """Return the configuration that the folder was made with.

        Returns
        -------
        SweepConfig
            The resolved configuration.

        Raises
        ------
        OutputError
            If the folder holds no sweep, or one that this version cannot read.
        PartFileError
            If its manifest is damaged, or belongs to another configuration.
        """
        config = self.load_settings(SweepConfig)
        self.check_settings(config)
        return config
