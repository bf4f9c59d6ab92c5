"""Checkpoints from which a training run goes on bit for bit.

All random draws are named by (seed, purpose, epoch), so tensors and the epoch number are the whole state. Every
file carries its hash, so that a damaged one is never gone on from.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from torch import Tensor

from skiplab.files import Damaged, read_sealed, set_aside, write_sealed

# Bytes per second of the first save, as expected: the state of 600 networks of 30 × 128 units has 6 GB, and would
# else be saved after 20 s whatever it takes. One busy core of a CPU machine was seen to save 0.3 GB/s.
EXPECTED_RATE = 5e8
SHARE = 20  # times what a save takes has to pass before the next
State = tuple[dict[str, Tensor], dict[str, Any]]  # tensors by name, and JSON-ready notes


class Checkpoints:
    """A folder with one checkpoint, replaced whole; saving never takes more than 5 % of the time.

    The state after epoch ``keep`` stays in a file of its own, from which another training can branch off: it is given
    that state as ``start``, to go on from where it has saved nothing itself.
    """

    def __init__(
        self,
        folder: Path,
        least_seconds: float = 20.0,
        *,
        keep: int | None = None,
        start: State | None = None,
    ) -> None:
        self.folder, self.path = folder, folder / "training.safetensors"
        self.least_seconds, self.keep, self.start = least_seconds, keep, start
        self.started = time.monotonic()
        self.next_save: float | None = None

    def due(self, epoch: int | None = None, size: int = 0) -> bool:
        """Whether enough time has passed to save so many bytes, or the state after this epoch is to be kept."""
        following = self.next_save
        if following is None:  # how long a save takes is not known yet
            following = self.started + max(self.least_seconds, SHARE * size / EXPECTED_RATE)
        return time.monotonic() >= following or (epoch is not None and epoch == self.keep)

    def save(self, tensors: dict[str, Tensor], notes: dict[str, Any]) -> None:
        """Replace the checkpoint by these tensors and JSON-ready notes."""
        started = time.monotonic()
        packed = _packed(tensors, notes)
        if self.keep is not None and notes["epoch"] == self.keep:
            write_sealed(self._kept, packed)
        write_sealed(self.path, packed)
        finished = time.monotonic()
        self.next_save = finished + max(self.least_seconds, SHARE * (finished - started))

    @property
    def _kept(self) -> Path:
        return self.folder / f"epoch-{self.keep}.safetensors"

    def kept(self) -> State:
        """The state after epoch ``keep``; raises Damaged if it is."""
        return _unpacked(read_sealed(self._kept))

    def load(self) -> State | None:
        """Read the checkpoint, or ``start`` where there is none; a damaged one is set aside and said."""
        if not self.path.exists():
            return self.start
        try:
            return _unpacked(read_sealed(self.path))
        except Damaged as problem:
            set_aside(self.path, problem, "training starts afresh")
            return self.start


class Snapshots:
    """The parameters of all members at some epochs, kept until it is known which of them are to be measured.

    With a folder they survive an interruption of the training they belong to.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.kept: dict[int, Tensor] = {}

    def keep(self, epoch: int, rows: Tensor) -> None:
        """Copy the rows (E, row) of an epoch."""
        self.kept[epoch] = rows.detach().cpu().clone()
        if self.folder is not None:
            write_sealed(self._path(epoch), _packed({"rows": self.kept[epoch]}, {}))

    def rows(self, epoch: int) -> Tensor:
        """Give back the rows of an epoch, from before an interruption if need be; raise Damaged if they are lost."""
        if epoch not in self.kept and self.folder is not None:
            self.kept[epoch] = _unpacked(read_sealed(self._path(epoch)))[0]["rows"]
        return self.kept[epoch]

    def _path(self, epoch: int) -> Path:
        assert self.folder is not None
        return self.folder / f"epoch-{epoch}.safetensors"


def _packed(tensors: dict[str, Tensor], notes: dict[str, Any]) -> bytes:
    from safetensors.torch import save

    return bytes(
        save({name: each.contiguous() for name, each in tensors.items()}, {"notes": json.dumps(notes)})
    )


def _unpacked(content: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    from safetensors.torch import load

    # The format begins with the length of its header in eight bytes; `load` gives no access to the notes in it.
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return load(content), json.loads(header["__metadata__"]["notes"])
