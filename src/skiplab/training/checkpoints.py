"""Checkpoints from which a training run goes on bit for bit.

All random draws are named by (seed, purpose, epoch), so tensors and the epoch number are the whole state.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from torch import Tensor


class Checkpoints:
    """A folder with one checkpoint, replaced whole; saving never takes more than 5 % of the time."""

    def __init__(self, folder: Path, least_seconds: float = 20.0) -> None:
        self.path = folder / "training.safetensors"
        self.least_seconds = least_seconds
        self.next_save = time.monotonic() + least_seconds

    def due(self) -> bool:
        """Whether enough time has passed since the last save."""
        return time.monotonic() >= self.next_save

    def save(self, tensors: dict[str, Tensor], notes: dict[str, Any]) -> None:
        """Write tensors and JSON-ready notes aside, then rename."""
        from safetensors.torch import save_file

        started = time.monotonic()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        aside = self.path.with_suffix(".aside")
        save_file({k: v.contiguous() for k, v in tensors.items()}, aside, {"notes": json.dumps(notes)})
        os.replace(aside, self.path)
        finished = time.monotonic()
        self.next_save = finished + max(self.least_seconds, 20 * (finished - started))

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Read the checkpoint, or None where there is none."""
        from safetensors import safe_open

        if not self.path.exists():
            return None
        with safe_open(self.path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            return tensors, json.loads(file.metadata()["notes"])


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
            from safetensors.torch import save_file

            self.folder.mkdir(parents=True, exist_ok=True)
            aside = self._path(epoch).with_suffix(".aside")
            save_file({"rows": self.kept[epoch]}, aside)
            os.replace(aside, self._path(epoch))

    def rows(self, epoch: int) -> Tensor:
        """Give back the rows of an epoch, from before an interruption if need be."""
        if epoch not in self.kept and self.folder is not None and self._path(epoch).exists():
            from safetensors import safe_open

            with safe_open(self._path(epoch), framework="pt") as file:
                self.kept[epoch] = file.get_tensor("rows")
        return self.kept[epoch]

    def _path(self, epoch: int) -> Path:
        assert self.folder is not None
        return self.folder / f"epoch-{epoch}.safetensors"
