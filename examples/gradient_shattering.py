"""Do the gradients of my network shatter? Compare those at different inputs, then make the network look linear."""

import torch
from torch import nn

import skiplab as sl

stream = torch.Generator().manual_seed(0)


def deep_network(depth: int) -> nn.Module:
    """A plain convolutional network; its weights are torch's own, drawn from the global generator."""
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Conv2d(3, 8, 3, padding=1)]
    for _ in range(depth - 1):
        layers += [nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))


images = torch.randn(64, 3, 8, 8, generator=stream)
for depth in (2, 10, 40):
    network = deep_network(depth)
    remedied = sl.looks_linear(network)
    for name, model in (("as it is", network), ("looks linear", remedied)):
        gradients = sl.gradient_shattering(model, images, mode="batch")
        rank = gradients.relative_effective_rank(stream)
        print(
            f"{depth:3} layers, {name:12}: effective rank {float(rank.value):.2f} of white noise's, "
            f"mean gradient {float(gradients.mean_norm):.2g} deviations long"
        )
