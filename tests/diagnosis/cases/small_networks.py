"""Small networks as users write them, which no library brings: each a function of its sizes that returns a module.

Weights are drawn by torch's global generator, which ``networks.build`` seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn

Activation = Callable[[], nn.Module]
GAINS: dict[type[nn.Module], float] = {
    nn.Tanh: 5 / 3,
    nn.ReLU: 2**0.5,
    nn.GELU: 1.5,
    nn.SiLU: 1.6,
    nn.ELU: 1.25,
}


def mlp(inputs: int, width: int, depth: int, outputs: int, act: Activation = nn.ReLU) -> nn.Sequential:
    """A plain network whose weights keep the size of signals: orthogonal, with the activation's gain."""
    sizes = [inputs, *[width] * depth]
    parts: list[nn.Module] = []
    for one, other in pairwise(sizes):
        parts += [nn.Linear(one, other), act()]
        nn.init.orthogonal_(parts[-2].weight, GAINS.get(type(parts[-1]), 1.0))
        nn.init.zeros_(parts[-2].bias)
    return nn.Sequential(*parts, nn.Linear(width, outputs))


def normalised_mlp(
    inputs: int, width: int, depth: int, outputs: int, norm: Callable[[int], nn.Module], act: Activation
) -> nn.Sequential:
    """A plain network with a normalisation before every activation, as torch draws weights."""
    parts: list[nn.Module] = []
    for layer in range(depth):
        parts += [nn.Linear(inputs if layer == 0 else width, width), norm(width), act()]
    return nn.Sequential(*parts, nn.Linear(width, outputs))


def lenet(act: Activation, widths: tuple[int, int], hidden: int) -> nn.Sequential:
    """Two convolutions with pooling and two linear layers, for images (1, 16, 16)."""
    one, two = widths
    return nn.Sequential(
        *(nn.Conv2d(1, one, 3, padding=1), act(), nn.MaxPool2d(2)),
        *(nn.Conv2d(one, two, 3, padding=1), act(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(two * 16, hidden), act(), nn.Linear(hidden, 10)),
    )


def normalised_convnet(
    channels: tuple[int, ...], norm: Callable[[int], nn.Module], act: Activation
) -> nn.Sequential:
    """Convolutions with normalisation, one step down for each change of width, for images with one channel."""
    parts: list[nn.Module] = []
    before = 1
    for width in channels:
        step = 1 if before == width or before == 1 else 2
        parts += [nn.Conv2d(before, width, 3, step, 1, bias=False), norm(width), act()]
        before = width
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))


class Residual(nn.Module):
    """What a branch makes of x is added to x."""

    def __init__(self, *branch: nn.Module) -> None:
        super().__init__()
        self.branch = nn.Sequential(*branch)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.branch(x)


def residual_mlp(
    inputs: int, width: int, blocks: int, outputs: int, act: Activation, norm: bool = True
) -> nn.Sequential:
    """Residual blocks of two linear layers, normalised before the first (or nowhere), as torch draws weights."""
    stack = [
        Residual(
            *([nn.LayerNorm(width)] if norm else []),
            nn.Linear(width, 2 * width),
            act(),
            nn.Linear(2 * width, width),
        )
        for _ in range(blocks)
    ]
    return nn.Sequential(nn.Linear(inputs, width), *stack, nn.LayerNorm(width), nn.Linear(width, outputs))


def residual_convnet(
    width: int, blocks: int, norm: Callable[[int], nn.Module] | None, act: Activation = nn.ReLU
) -> nn.Sequential:
    """Residual blocks of two 3×3 convolutions, for images with one channel."""

    def block() -> Residual:
        norms = [norm(width) if norm else nn.Identity() for _ in range(2)]
        first, second = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        return Residual(first, norms[0], act(), second, norms[1])

    stack = [nn.Sequential(block(), act()) if norm else block() for _ in range(blocks)]
    return nn.Sequential(
        *(
            nn.Conv2d(1, width, 3, 2, 1),
            act(),
            *stack,
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(4 * width, 10),
        )
    )


class Gate(nn.Module):
    """Squeeze and excitation: channels are multiplied by a number between 0 and 1."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.pool, self.squeeze, self.act = nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, inner, 1), nn.ReLU()
        self.excite, self.gate = nn.Conv2d(inner, width, 1), nn.Sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(self.excite(self.act(self.squeeze(self.pool(x)))))


def gated_convnet(width: int, blocks: int) -> nn.Sequential:
    """Residual blocks of a normalised convolution and a gate, for images with one channel."""
    stack = [
        Residual(
            nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.SiLU(), Gate(width, width // 2)
        )
        for _ in range(blocks)
    ]
    return nn.Sequential(
        *(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.SiLU(), *stack),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10)),
    )


class Recurrent(nn.Module):
    """A recurrent network read out at its last step, or its words looked up first."""

    def __init__(
        self, kind: type[nn.RNNBase], hidden: int, *, layers: int = 1, words: int = 0, outputs: int = 10
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(words, 8) if words else nn.Identity()
        self.cells = kind(8, hidden, num_layers=layers, batch_first=True)
        self.head = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cells(self.words(x))[0][:, -1])


class Transformer(nn.Module):
    """Words, positions, torch's own encoder layers and a linear layer on the mean."""

    def __init__(self, width: int, depth: int, *, first: bool, act: str = "gelu") -> None:
        super().__init__()
        self.words = nn.Embedding(99, width)
        self.positions = nn.Parameter(0.1 * torch.randn(16, width))
        kind = nn.TransformerEncoderLayer  # one by one: nn.TransformerEncoder makes copies of equal weights
        settings = {"dropout": 0.0, "activation": act, "batch_first": True, "norm_first": first}
        self.encoder = nn.Sequential(*(kind(width, 4, 2 * width, **settings) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.encoder(self.words(x) + self.positions)).mean(1))


class Mixing(nn.Module):
    """A block of MLP-Mixer: an MLP over patches, then one over channels."""

    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.Sequential(
            nn.Linear(patches, 2 * patches), nn.GELU(), nn.Linear(2 * patches, patches)
        )
        self.channels = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    """MLP-Mixer for images (1, 16, 16) in patches of 4×4; every layer as torch draws it, the head too."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 4, 4)
        self.blocks = nn.Sequential(*(Mixing(16, width) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.patches(x).flatten(2).transpose(1, 2))).mean(1))


def autoencoder(inputs: int, widths: tuple[int, ...], act: Activation) -> nn.Sequential:
    """Images as rows of pixels through a bottleneck and back."""
    sizes = [inputs, *widths, *widths[-2::-1]]
    parts: list[nn.Module] = [nn.Flatten()]
    for one, other in pairwise(sizes):
        parts += [nn.Linear(one, other), act()]
    side = round(inputs**0.5)
    return nn.Sequential(*parts, nn.Linear(sizes[-1], inputs), nn.Unflatten(1, (1, side, side)))


class UNet(nn.Module):
    """Two steps down and two up, with what was there before concatenated on the way up, for images of one channel."""

    def __init__(self, width: int, norm: Callable[[int], nn.Module], act: Activation = nn.ReLU) -> None:
        super().__init__()

        def stage(before: int, after: int) -> nn.Sequential:
            return nn.Sequential(
                *(nn.Conv2d(before, after, 3, padding=1), norm(after), act()),
                *(nn.Conv2d(after, after, 3, padding=1), norm(after), act()),
            )

        self.down1, self.down2, self.bottom = (
            stage(1, width),
            stage(width, 2 * width),
            stage(2 * width, 4 * width),
        )
        self.pool = nn.MaxPool2d(2)
        self.wide2, self.wide1 = (
            nn.ConvTranspose2d(4 * width, 2 * width, 2, 2),
            nn.ConvTranspose2d(2 * width, width, 2, 2),
        )
        self.up2, self.up1 = stage(4 * width, 2 * width), stage(2 * width, width)
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        one = self.down1(x)
        two = self.down2(self.pool(one))
        x = self.wide2(self.bottom(self.pool(two)))
        x = self.wide1(self.up2(torch.cat([x, two], 1)))
        return self.head(self.up1(torch.cat([x, one], 1)))


def sequence_convnet(width: int, depth: int) -> nn.Sequential:
    """Convolutions over eight steps of eight numbers, with layers normalised in groups."""
    parts: list[nn.Module] = []
    for layer in range(depth):
        parts += [
            nn.Conv1d(8 if layer == 0 else width, width, 3, padding=1),
            nn.GroupNorm(4, width),
            nn.ReLU(),
        ]
    return nn.Sequential(*parts, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(width, 10))
