"""Random crops and flips on the device, drawn for each member and epoch from the member's own seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from skiplab.checks import at_least
from skiplab.randomness import torch_generator


@dataclass(frozen=True)
class CropAndFlip:
    """Pad by ``padding`` zeros, crop at a random place, flip left–right with probability ½."""

    padding: int = 4

    def __post_init__(self) -> None:
        at_least("padding", self.padding, 0)

    def draw(self, seeds: Sequence[int], epoch: int, samples: int, device: torch.device) -> Tensor:
        """Draw (3, E, N): down, right and flip for every member and sample of an epoch."""
        draws = []
        for seed in seeds:
            generator = torch_generator(seed, "augmentation", epoch, device=device)
            top = 2 * self.padding + 1
            shifts = torch.randint(top, (2, samples), generator=generator, device=device, dtype=torch.uint8)
            flips = torch.randint(2, (1, samples), generator=generator, device=device, dtype=torch.uint8)
            draws.append(torch.cat([shifts, flips]))
        return torch.stack(draws, dim=1)

    def batch(self, images: Tensor, indices: Tensor, draws: Tensor) -> Tensor:
        """Images (E, B, C, H, W) of the indexed samples (E, B), each cropped and flipped as drawn."""
        height, width = images.shape[-2:]
        padded = F.pad(images, (self.padding,) * 4)
        down, right, flip = (draw.gather(1, indices).long()[..., None] for draw in draws)
        rows = down + torch.arange(height, device=images.device)
        columns = torch.arange(width, device=images.device)
        columns = right + torch.where(flip.bool(), columns.flip(0), columns)
        channels = torch.arange(images.shape[1], device=images.device)[:, None, None]
        where = indices[..., None, None, None]
        return padded[where, channels, rows[..., None, :, None], columns[..., None, None, :]]
