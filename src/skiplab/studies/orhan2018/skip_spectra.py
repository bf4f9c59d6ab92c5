"""The spectra of the skip matrices themselves: Σ = T O T⁻¹ of the earlier version's note 4 (figure 8a)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.experiments.skip_networks import skip_of
from skiplab.reproduction.trial import Bench, trial

if TYPE_CHECKING:
    import pandas as pd

QUANTITIES = ("covariance", "correlation", "modulus")


@dataclass(frozen=True)
class Spectra:
    """Which τ, how many units, and the seeds of the draws."""

    taus: tuple[float, ...]
    seeds: tuple[int, ...]
    width: int = 128


@trial("orhan2018/skip-spectra", version=1)
def skip_spectra(settings: Spectra, bench: Bench) -> pd.DataFrame:
    """Eigenvalues of random skip matrices, one row per τ, seed, quantity and rank (the layer), in falling order.

    ``covariance``: of ΣΣᵀ, the second moments of the skip vectors into units (rows), 1 each if Σ is orthogonal;
    ``correlation``: the same after each vector is divided by its norm; ``modulus``: |eigenvalues of Σ|.
    """
    import pandas as pd
    import torch

    from skiplab.architectures.skip_matrices import Tau
    from skiplab.randomness import torch_generator

    frames: list[pd.DataFrame] = []
    ranks = range(1, settings.width + 1)
    for number, tau in enumerate(settings.taus):
        bench.tell(number / len(settings.taus), f"τ = {tau:g}")
        for seed in settings.seeds:
            matrix = Tau(tau).matrix(settings.width, torch_generator(seed, "skip matrix"))
            unit = matrix / matrix.norm(dim=1, keepdim=True)
            found = {
                "covariance": torch.linalg.svdvals(matrix).square(),
                "correlation": torch.linalg.svdvals(unit).square(),
                "modulus": torch.linalg.eigvals(matrix).abs().sort(descending=True).values,
            }
            frames += [
                pd.DataFrame({"quantity": quantity, "layer": ranks, "value": found[quantity].numpy()}).assign(
                    skip=skip_of(tau), seed=seed, epoch=0
                )
                for quantity in QUANTITIES
            ]
    frame = pd.concat(frames, ignore_index=True).assign(part="matrices")
    words = dict.fromkeys(("skip", "quantity", "part"), "category")
    return frame.astype(words | {"epoch": "int16", "layer": "int16", "value": "float32"})
