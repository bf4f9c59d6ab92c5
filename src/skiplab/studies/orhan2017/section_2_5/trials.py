"""Recurrent networks whose weights are changed, and permutations that classes of neurons leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.reproduction import Bench, trial

if TYPE_CHECKING:
    import pandas as pd

ACTIVATIONS = ("tanh", "ReLU", "linear")
MATRICES = ("any W", "symmetric W")
CHANGES = {
    "units permuted": "W → PWPᵀ, U → PU, V → VPᵀ",
    "rows permuted": "W → PW, U → PU, V → VPᵀ",
    "ends rescaled": "U → 10U, V → V/10",
    "units rescaled": "W → DWD⁻¹, U → DU, V → VD⁻¹",
    "recurrence rescaled": "W → 10W, V → V/10",
    "permuted at each step": "untied: Wₜ = Pₜ W Pₜ₋₁ᵀ",
}
SCALE = 10.0  # as in the paper's figure 2c


@dataclass(frozen=True)
class RecurrentNetworks:
    """Settings of one trial: some random recurrent networks."""

    seeds: tuple[int, ...]
    units: int = 12
    ends: int = 3
    steps: int = 12


@dataclass(frozen=True)
class NeuronClasses:
    """Up to how many neurons K!(d!)^K is compared with n!, and up to how many it is counted."""

    neurons: int = 60
    counted: int = 8


@trial("orhan2017/recurrent-symmetries", version=1)
def recurrent(settings: RecurrentNetworks, bench: Bench) -> pd.DataFrame:
    """Change each network in every way and compare outputs: ``change`` is the largest difference, relative.

    For the first network the first output over time (x) is kept as ``trace``.
    """
    import pandas as pd
    import torch

    from skiplab.randomness import torch_generator
    from skiplab.theory.symmetries import recurrent as theory

    rows: list[tuple[int, str, str, str, str, float, float]] = []
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"network {seed}")
        for activation in ACTIVATIONS:
            for name in MATRICES:
                stream = torch_generator(seed, "section 2.5", activation, name)
                symmetric = name == MATRICES[1]
                net = theory.random_net(
                    activation, settings.units, settings.ends, stream, symmetric=symmetric
                )
                inputs = torch.randn(settings.steps, settings.ends, generator=stream, dtype=torch.float64)
                P = theory.permutation(settings.units, stream)
                # Units of measure between 1/10 and 10.
                exponents = 2 * torch.rand(settings.units, generator=stream, dtype=torch.float64) - 1
                D = torch.diag(SCALE**exponents)
                changed = {
                    "units permuted": theory.changed_basis(net, P),
                    "rows permuted": theory.permuted_rows(net, P),
                    "ends rescaled": theory.rescaled_ends(net, SCALE),
                    "units rescaled": theory.changed_basis(net, D),
                    "recurrence rescaled": theory.rescaled_recurrence(net, SCALE),
                    "permuted at each step": theory.untied_permutations(net, settings.steps, stream),
                }
                key = (seed, activation, name)
                for way, other in changed.items():
                    rows.append((*key, way, "change", 0.0, theory.relative_change(net, other, inputs)))
                if done == 0:
                    for way, other in {"as it is": net, **changed}.items():
                        trace = other.outputs(inputs)[:, 0]
                        rows += [
                            (*key, way, "trace", float(t), float(y)) for t, y in enumerate(trace, start=1)
                        ]
    return pd.DataFrame(
        rows, columns=["draw", "activation", "matrix", "way", "quantity", "x", "value"]
    ).assign(part="networks")


@trial("orhan2017/recurrent-classes", version=1)
def classes(settings: NeuronClasses, bench: Bench) -> pd.DataFrame:
    """Compare K!(d!)^K with n! = (Kd)! in whole numbers for every n (draw) and K (x) with 1 < K < n.

    ``violation``: 1 where it is not smaller; ``log10 share``: of their ratio. For small n all permutations are tried:
    ``miscount`` is K!(d!)^K less those that map classes onto classes, ``miscount, each onto itself`` (d!)^K less
    those that map each class onto itself.
    """
    import math

    import pandas as pd

    from skiplab.theory.symmetries.recurrent import class_permutations, counted_permutations

    rows: list[tuple[int, str, float, float]] = []
    for n in range(4, settings.neurons + 1):
        bench.tell((n - 4) / max(settings.neurons - 3, 1), f"{n} neurons")
        for K in (K for K in range(2, n) if n % K == 0):
            d, all_ = n // K, math.factorial(n)
            count = class_permutations(K, d)
            rows.append((n, "violation", K, float(count >= all_)))
            rows.append((n, "log10 share", K, math.log10(count) - math.log10(all_)))
            if n <= settings.counted:
                onto, itself = counted_permutations(K, d)
                rows.append((n, "miscount", K, float(count - onto)))
                rows.append((n, "miscount, each onto itself", K, float(math.factorial(d) ** K - itself)))
    frame = pd.DataFrame(rows, columns=["draw", "quantity", "x", "value"])
    return frame.assign(part="classes", activation="", matrix="", way="")
