"""Which networks the fused kernels compute, and what they need to know of one."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from skiplab.architectures.fully_connected import (
    FullyConnectedNet,
    HyperResidualNet,
    PathResidualNet,
    PathSkip,
    PlainLayer,
    PlainNet,
    ResidualNet,
    SkipLayer,
)
from skiplab.architectures.skip_matrices import FixedSkip
from skiplab.ensembles.layout import Layout

NETWORKS = (PlainNet, ResidualNet, HyperResidualNet, PathResidualNet)
WIDEST = 128  # a square matrix of float32 and the next one fit into a multiprocessor's shared memory
KINDS: dict[type[nn.Module], str] = {nn.Identity: "identity", FixedSkip: "matrix", PathSkip: "path"}


@dataclass(frozen=True)
class Shape:
    """A fully connected network of ReLUs: its sizes, and how inputs of layers are added to their outputs.

    ``skip`` (adjacent layers) and ``far`` (orhan2017 eq 26's bracket) are "none", "identity", "matrix" or "path".
    """

    inputs: int
    width: int
    depth: int
    outputs: int
    skip: str
    far: str
    scale: float

    @property
    def wide(self) -> int:
        """The width that kernels compute with, a power of two."""
        return padded(self.width)

    @property
    def soft(self) -> int:
        """The number of outputs that kernels compute with, a power of two."""
        return padded(self.outputs)

    @property
    def biases(self) -> int:
        """Count of biases in one network."""
        return self.depth * self.width + self.outputs

    @property
    def matrices(self) -> int:
        """Matrices that a hidden layer multiplies by."""
        return 1 + (self.skip == "matrix") + (self.far == "matrix")


def padded(count: int) -> int:
    """The power of two, 16 at least, that holds so many: what tensor cores multiply."""
    return max(16, 1 << (count - 1).bit_length())


def shape_of(network: nn.Module) -> Shape | None:
    """The shape of a network that the kernels compute, None for all others."""
    # Exact classes: a subclass or a parametrised module may compute something else.
    if type(network) not in NETWORKS:
        return None
    assert isinstance(network, FullyConnectedNet)
    first, *others = network.hidden
    kinds = {PlainLayer} if isinstance(network, PlainNet) else {SkipLayer}
    usual = type(first) is PlainLayer and {type(layer) for layer in others} <= kinds
    usual &= all(_linear_then_relu(layer) for layer in network.hidden) and type(network.output) is nn.Linear
    skips = [layer.skip for layer in others if isinstance(layer, SkipLayer)]
    skip, far = _kind(skips), _kind(network.far if isinstance(network, HyperResidualNet) else ())
    fits = network.width <= WIDEST and network.outputs <= WIDEST
    if not (usual and fits and skip and far) or not _laid_out_as_usual(network):
        return None
    scale = skips[0].scale if skips and isinstance(skips[0], PathSkip) else 1.0
    return Shape(network.inputs, network.width, network.depth, network.outputs, skip, far, scale)


def skip_matrices(shape: Shape, fixed: dict[str, Tensor], names: list[str]) -> Tensor:
    """The fixed matrices of all members, (E, depth − 1, wide, wide), zero where there is none."""
    first = fixed[names[0]]
    found = first.new_zeros(len(first), shape.depth - 1, shape.wide, shape.wide)
    for layer, name in enumerate(names):
        found[:, layer, : shape.width, : shape.width] = fixed[name]
    return found


def _linear_then_relu(layer: nn.Module) -> bool:
    return (type(layer.linear), type(layer.norm), type(layer.activation)) == (nn.Linear, nn.Identity, nn.ReLU)


def _kind(skips: nn.ModuleList | list[nn.Module] | tuple[()]) -> str | None:
    """The kind of all skips, "none" without any, None where they differ or are of no known kind."""
    kinds = {KINDS.get(type(skip)) for skip in skips}
    scales = {skip.scale for skip in skips if isinstance(skip, PathSkip)}
    if not kinds:
        return "none"
    return kinds.pop() if len(kinds) == 1 and len(scales) <= 1 else None


def _laid_out_as_usual(network: FullyConnectedNet) -> bool:
    """Whether rows hold all weights from the first layer to the last, then all biases: nothing frozen or tied."""
    layers = [*(f"hidden.{k}.linear" for k in range(network.depth)), "output"]
    expected = tuple(f"{layer}.{kind}" for kind in ("weight", "bias") for layer in layers)
    return Layout.of(network).names == expected
