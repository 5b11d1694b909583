"""Shards that were set aside: each with its error, in a small file of its own.

One shard that always fails must not keep the others from being done.  So its error is written
down, the rest goes on, and the run ends with an error that names it.
"""

from collections.abc import Sequence
from pathlib import Path

from bayesrisk import _files
from bayesrisk.exceptions import BayesRiskError, OutputError, PartFileError, ShardError

#: Failures after which a run stops of which no shard was ever finished.
_HOPELESS = 10
_NAMED = 5  # shards that a message names


class SetAside:
    """The shards that failed in a folder.

    Parameters
    ----------
    folder : Path
        Where their files are; made for the first one.
    begun : bool, default False
        Whether another shard was ever finished: else what fails is the study, and no shard of it.
    """

    def __init__(self, folder: Path, *, begun: bool = False) -> None:
        self.folder, self.begun = folder, begun
        self._errors: dict[int, Exception] = {}

    def add(self, shard: int, error: Exception) -> None:
        """Write down that a shard failed.

        Raises
        ------
        OutputError
            If it failed because nothing can be written, as on a full disk: then no other can.
        Exception
            The first error, where many shards failed and none was ever finished.
        """
        if isinstance(error, OutputError) and not isinstance(error, PartFileError):
            raise error
        self._errors[shard] = error
        _files.make_folder(self.folder)
        document = {"shard": shard, "error": _told(error)}
        _files.write_bytes(self._file(shard), _files.sealed(document))
        if not self.begun and len(self._errors) >= _HOPELESS:
            raise self._first()

    def forget(self, shards: Sequence[int]) -> None:
        """Remove the files of shards that are to be tried again."""
        if self.folder.is_dir():
            with _files.explained(self.folder):
                for shard in shards:
                    self._file(shard).unlink(missing_ok=True)
                if not any(self.folder.iterdir()):
                    self.folder.rmdir()

    def known(self) -> list[dict[str, object]]:
        """Return shard and error of all that are set aside, also by other machines."""
        files = sorted(self.folder.glob("shard-*.json"))
        return [_files.read_document(file, PartFileError) for file in files]

    def tell(self) -> None:
        """Raise what went wrong, if anything did.

        Raises
        ------
        ShardError
            Names the shards, and says what happened to the first.
        Exception
            The first error, where no shard was ever finished.
        """
        if not self._errors:
            return
        first = self._first()
        if not self.begun:
            raise first
        numbers = sorted(self._errors)
        named = ", ".join(map(str, numbers[:_NAMED])) + (", ..." if len(numbers) > _NAMED else "")
        raise ShardError(
            f"{len(numbers)} of the shards could not be computed and were set aside (in "
            f"{self.folder}): {named}; the others are finished, and --resume tries these again; "
            f"shard {numbers[0]}: {_told(first)}"
        ) from first

    def _first(self) -> Exception:
        return self._errors[min(self._errors)]

    def _file(self, shard: int) -> Path:
        return self.folder / f"shard-{shard:06d}.json"


def _told(error: Exception) -> str:
    """Return an error in one line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, BayesRiskError) else f"{type(error).__name__}: {text}"
