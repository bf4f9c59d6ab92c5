"""Landscapes of binary networks: our prefix-sharing losses against a plain tensor program."""

from __future__ import annotations

from skiplab.benchmarks.harness import Case

DEPTH, POINTS = 4, 64  # 18 weights: 2^18 configurations, so that the plain program ends within seconds


def landscape_cases(device: str) -> list[Case]:
    """All losses of residual toy networks with 18 weights; the plain program evaluates every configuration."""
    import numpy as np
    import torch

    from skiplab.randomness import numpy_generator
    from skiplab.theory.landscapes import binary_weights

    draw = numpy_generator("benchmark", "landscape")
    inputs, targets = draw.standard_normal((POINTS, 2)), draw.standard_normal(POINTS)
    x = torch.from_numpy(inputs)
    y = torch.from_numpy(targets)
    weights = 4 * DEPTH + 2

    def plain() -> torch.Tensor:
        numbers = torch.arange(2**weights)
        signs = 1.0 - 2.0 * ((numbers[:, None] >> torch.arange(weights)) & 1).double()
        parts = []
        for chunk in signs.split(2**14):
            activity = x.expand(len(chunk), -1, -1)
            for layer in range(DEPTH):
                matrix = chunk[:, 4 * layer : 4 * layer + 4].view(-1, 2, 2)
                activity = 2 / 3 * (torch.relu(activity @ matrix.mT) + activity)
            output = (activity * chunk[:, None, -2:]).sum(-1)
            parts.append((output - y).square().mean(1))
        return torch.cat(parts)

    def ours() -> np.ndarray:
        return binary_weights.losses("residual", inputs, targets, depth=DEPTH)

    note = f"2^{weights} configurations, {POINTS} points"
    return [
        Case("skiplab, shared prefixes", ours, note),
        Case("plain tensor program", plain, "torch, chunked"),
    ]
