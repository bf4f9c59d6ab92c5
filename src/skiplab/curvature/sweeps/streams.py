"""Autograd's graphs, one per stream: autograd differentiates an operation on the stream on which it was computed.

A CUDA graph records the work of one stream. A derivative kept from another stream would be computed there, which
CUDA refuses while it records; one from the recording stream, made before the recording began, can be recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

Key = TypeVar("Key")
Made = TypeVar("Made")


def kept_for_stream(
    kept: dict[tuple[Key, int], Made], key: Key, device: torch.device, make: Callable[[], Made]
) -> Made:
    """What was made for this key on the stream that computes now; it is made where there is none.

    What is made while a stream is recorded is not kept: it holds numbers only once the recording is replayed.
    """
    place = (key, stream_number(device))
    if place in kept:
        return kept[place]
    made = make()
    if not is_recorded(device):
        kept[place] = made
    return made


def stream_number(device: torch.device) -> int:
    """Which stream computes now; on a CPU there is one."""
    return torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0


def is_recorded(device: torch.device) -> bool:
    """Whether the stream that computes now is being recorded as a CUDA graph."""
    if device.type != "cuda":
        return False
    with torch.cuda.device(device):
        return torch.cuda.is_current_stream_capturing()
