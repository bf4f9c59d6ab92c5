"""The loss of every configuration of a small network whose weights are all +1 or −1.

The networks are those of orhan2017, section 2.2: two inputs x₁, ``depth`` hidden layers of two units and
one linear output w·x_{depth+1}, so 4·depth + 2 weights. With f the ReLU, layer l = 1, 2, … computes

    plain           x_{l+1} = f(W_l x_l + b_l)                                  (eq 1)
    residual        x_{l+1} = 2/3 [f(W_l x_l + b_l) + x_l]                      (eq 2)
    hyper-residual  x_{l+1} = 2/(l+2) [f(W_l x_l + b_l) + x_l + … + x_1]        (eq 3)
    path-residual   x_{l+1} = 2/4 [f(W_l x_l + b_l) + 1 x_l], 1 all ones        (eq 4)

and the loss is the mean squared error over the points. The biases b are 0 in Figure 4 and fixed normal
draws in Figure S1.

**Order of the configurations.** Weight 0 is the most significant bit of a configuration's index, so that
``losses.reshape((2,) * n)`` has one axis a weight. The weights come layer by layer; within a layer row by
row, W[0,0], W[0,1], W[1,0], W[1,1], where W[i,j] leads from unit j to unit i; then the two output weights;
last, if there are any, the sign that multiplies the output and the output's bias. Bit 0 means +1, bit 1 −1.

Nothing is computed twice: layers are shared by all configurations that begin with the same weights, and a
unit with weights ±1 has only the four input sums ±(x₁ + x₂), ±(x₁ − x₂), so the last hidden layer has
eight different activities a prefix, from which all 64 completions follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skiplab.checks import at_least, one_of, require

Floats = NDArray[np.float64]

ARCHITECTURES = ("plain", "residual", "hyper-residual", "path-residual")

_PREFIXES_AT_ONCE = 256  # 256 × 32 sums × 64 points × 8 bytes = 4 MiB of scratch, near the cache's size


@dataclass(frozen=True)
class _State:
    """Activities x_l of many prefixes, and the sum x_1 + … + x_l; both (prefixes, 2, points)."""

    x: Floats
    total: Floats


@dataclass(frozen=True)
class _ToyNet:
    """One of the four architectures with its biases (depth, 2)."""

    architecture: str
    biases: Floats

    def skip(self, state: _State) -> Floats | float:
        """Return what the skip connections add to f(W_l x_l + b_l)."""
        match self.architecture:
            case "residual":
                return state.x
            case "hyper-residual":
                return state.total
            case "path-residual":
                return state.x.sum(axis=1, keepdims=True)
            case _:
                return 0.0

    def scale(self, layer: int) -> float:
        """Return two over the number of connections that enter a unit of x_{layer+1}."""
        incoming = {"plain": 2, "residual": 3, "hyper-residual": layer + 2, "path-residual": 4}
        return 2 / incoming[self.architecture]

    def units(self, state: _State, layer: int) -> Floats:
        """Return the activities of both units of the next layer for their four pairs of weights.

        The result is (prefixes, 2 units, 4 pairs, points); the pairs are ++, +−, −+, −−.
        """
        first, second = state.x[:, 0], state.x[:, 1]
        plus, minus = first + second, first - second
        sums = np.stack([plus, minus, -minus, -plus], axis=1)
        active = np.maximum(sums[:, None] + self.biases[layer - 1][:, None, None], 0.0)
        skip = self.skip(state)
        if isinstance(skip, np.ndarray):
            active += skip[:, :, None]
        active *= self.scale(layer)
        return active

    def extended(self, state: _State, layer: int) -> _State:
        """Return the state after one more layer, sixteen times as many prefixes."""
        units = self.units(state, layer)
        prefixes, _, _, points = units.shape
        x = np.empty((prefixes, 4, 4, 2, points))
        x[:, :, :, 0] = units[:, 0, :, None]
        x[:, :, :, 1] = units[:, 1, None, :]
        total = x + state.total[:, None, None]
        return _State(x.reshape(-1, 2, points), total.reshape(-1, 2, points))


def losses(
    architecture: str,
    inputs: Floats,
    targets: Floats,
    biases: Floats | None = None,
    depth: int = 5,
    output_sign: bool = False,
    *,
    output_bias: bool = False,
) -> Floats:
    """Return the mean squared error of every ±1 configuration, in the order the module describes.

    ``inputs`` is (points, 2), ``targets`` (points,), ``biases`` (depth, 2) or None for zeros. With
    ``output_sign`` a further ±1 multiplies the output, with ``output_bias`` a further ±1 is added to it: the
    paper counts 23 weights where its network of depth 5 has 22, and these are two readings of the 23rd.

    The result has 2**(4·depth + 2) entries (times 2 with either), each exact to a few units of float64 rounding
    relative to max(1, loss).

    >>> x, y = np.array([[1.0, 0.0]]), np.array([1.0])
    >>> losses("plain", x, y, depth=1)[:4]  # both units show 1: the output is 2, 0, 0 or −2
    array([1., 1., 1., 9.])
    """
    one_of("architecture", architecture, ARCHITECTURES)
    at_least("depth", depth, 1)
    inputs, targets = np.asarray(inputs, dtype=np.float64), np.asarray(targets, dtype=np.float64)
    points = len(targets)
    require(
        targets.ndim == 1 and points > 0 and inputs.shape == (points, 2),
        f"inputs of shape {inputs.shape} and targets of shape {targets.shape} do not fit together; "
        "pass (points, 2) and (points,).",
    )
    biases = np.zeros((depth, 2)) if biases is None else np.asarray(biases, dtype=np.float64)
    require(
        biases.shape == (depth, 2),
        f"biases have shape {biases.shape}; pass one number a hidden unit, ({depth}, 2).",
    )

    if output_bias:
        # A bias of the output is a shift of the targets.
        shifted = [
            losses(architecture, inputs, targets - bias, biases, depth, output_sign) for bias in (1, -1)
        ]
        return np.stack(shifted, axis=-1).reshape(-1)
    net = _ToyNet(architecture, biases)
    start = inputs.T[None].copy()
    result = np.empty((16 ** (depth - 1), 64))
    done = 0
    for state in _prefixes(net, _State(start, start), 1, depth):
        block = _completions(net.units(state, depth), targets)
        result[done : done + len(block)] = block
        done += len(block)
    if not output_sign:
        return result.reshape(-1)
    # Turning the output's sign is turning both output weights, which reverses each group of four.
    groups = result.reshape(-1, 4)
    return np.stack([groups, groups[:, ::-1]], axis=-1).reshape(-1)


def _prefixes(net: _ToyNet, state: _State, layer: int, depth: int) -> Iterator[_State]:
    """Walk the tree of weights depth first and yield, in order, the states just below the last layer."""
    if layer == depth:
        yield state
        return
    parents = max(1, _PREFIXES_AT_ONCE // 16)
    for begin in range(0, len(state.x), parents):
        part = _State(state.x[begin : begin + parents], state.total[begin : begin + parents])
        yield from _prefixes(net, net.extended(part, layer), layer + 1, depth)


def _completions(units: Floats, targets: Floats) -> Floats:
    """Return the loss of the 64 completions of every prefix, from the last layer's eight activities.

    With outputs ±s, ±d, s = a + b, d = a − b, the loss is E[t²] ∓ 2E[st] + E[s²], and so for d. Squares
    are taken of s and d and not of a and b, since E[a²] + E[b²] − 2E[ab] would lose the digits that
    decide ties whenever large activities cancel.
    """
    prefixes, _, _, points = units.shape
    a, b = units[:, 0, :, None], units[:, 1, None, :]
    outputs = np.empty((prefixes, 2, 4, 4, points))
    np.add(a, b, out=outputs[:, 0])
    np.subtract(a, b, out=outputs[:, 1])
    with_target = outputs @ targets
    with_target *= 2 / points
    square = np.einsum("...p,...p->...", outputs, outputs)
    square /= points
    square += targets @ targets / points
    block = np.empty((prefixes, 4, 4, 4))
    np.subtract(square[:, 0], with_target[:, 0], out=block[..., 0])  # output weights + +
    np.subtract(square[:, 1], with_target[:, 1], out=block[..., 1])  # + −
    np.add(square[:, 1], with_target[:, 1], out=block[..., 2])  # − +
    np.add(square[:, 0], with_target[:, 0], out=block[..., 3])  # − −
    return block.reshape(prefixes, 64)
