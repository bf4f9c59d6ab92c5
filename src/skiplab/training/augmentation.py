"""Random crops and flips on the device, drawn for each member and epoch from the member's own seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from skiplab.checks import at_least, require
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
        require(
            images.ndim == 4,
            f"images of shape {tuple(images.shape)} cannot be cropped; pass them as N×C×H×W (flat=False).",
        )
        height, width = images.shape[-2:]
        down, right, flip = (draw.gather(1, indices).long()[..., None] for draw in draws)
        rows = down - self.padding + torch.arange(height, device=images.device)
        columns = torch.arange(width, device=images.device)
        columns = right - self.padding + torch.where(flip.bool(), columns.flip(0), columns)
        rows, columns = rows[..., None, :, None], columns[..., None, None, :]
        # Pixels of the padding are masked, which spares a padded copy of all images in every step.
        inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        channels = torch.arange(images.shape[1], device=images.device)[:, None, None]
        where = indices[..., None, None, None]
        pixels = images[where, channels, rows.clamp(0, height - 1), columns.clamp(0, width - 1)]
        return torch.where(inside, pixels, 0)
