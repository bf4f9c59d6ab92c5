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
