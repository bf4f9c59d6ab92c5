"""The gates of torch's recurrent layers and cells: their passes are unrolled again, step by step, by their weights.

A recurrent layer is one call to torch, in which its sigmoids and tanhs are not called by themselves. With the layer's
input x and state h, the same pass is (biases left out, the order of torch's weights)

- LSTM: i, f, o = σ(W x + V h), g = tanh(W x + V h), c ← f c + i g, h ← o tanh(c), or a projection of that;
- GRU: r, z = σ(W x + V h), n = tanh(W x + r V h), h ← (1 − z) n + z h;
- RNN: h ← tanh(W x + V h) or ReLU(W x + V h).

Layers above the first take what dropout left, which is drawn inside the call: in training mode they are unseen then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skiplab.subjects.following import Call

KINDS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
RECURRENT = frozenset({*KINDS, *(f"{kind}_cell" for kind in KINDS)})
# By kind, the gates in the order in which a step has them, and the function of each.
GATES = {
    "lstm": (
        "input gate, sigmoid",
        "forget gate, sigmoid",
        "output gate, sigmoid",
        "candidate, tanh",
        "cell, tanh",
    ),
    "gru": ("reset gate, sigmoid", "update gate, sigmoid", "candidate, tanh"),
    "rnn_tanh": ("hidden, tanh",),
    "rnn_relu": ("hidden, relu",),
}
Step = tuple[tuple[Tensor, ...], tuple[Tensor, ...]]  # what gates are given, and the new state


def gates(call: Call) -> Iterator[tuple[str, str, Tensor]]:
    """The name and the function of each gate, and what it is given at all steps, (numbers of samples, units)."""
    kind, args = call.name.removesuffix("_cell"), call.values[0]
    if kind != call.name:
        x, state, *weights = args
        yield from _named(kind, _passed(kind, [x], _several(state), weights)[0], "")
        return
    if isinstance(args[3], list | tuple):  # a packed sequence, whose steps have ever fewer samples
        steps = list(args[0].split(args[1].tolist()))
        state, flat, _, layers, dropout, trains, both = args[2:]
    else:
        state, flat, _, layers, dropout, trains, both, batch_first = args[1:]
        steps = list(args[0].transpose(0, 1) if batch_first else args[0])
    ways = 2 if both else 1
    each = len(flat) // (layers * ways)
    for layer in range(layers):
        outputs = []
        for way in range(ways):
            place = layer * ways + way
            turn = slice(None, None, -1 if way else 1)
            own, start = flat[place * each : (place + 1) * each], [part[place] for part in _several(state)]
            given, out = _passed(kind, steps[turn], start, own)
            outputs.append(out[turn])
            where = f" l{layer}{' reverse' if way else ''}" if layers * ways > 1 else ""
            yield from _named(kind, given, where)
        steps = [torch.cat(parts, -1) for parts in zip(*outputs, strict=True)]
        if dropout and trains:
            return


def behind_dropout(part: nn.RNNBase, trains: bool) -> bool:
    """Whether a recurrent layer has layers of its own whose input dropout changes by chance."""
    return trains and part.dropout > 0 and part.num_layers > 1


def _passed(
    kind: str, steps: Sequence[Tensor], state: Sequence[Tensor], weights: Sequence[Tensor | None]
) -> tuple[list[tuple[Tensor, ...]], list[Tensor]]:
    """What the gates are given at each step, and what each step returns."""
    given, outputs = [], []
    for x in steps:
        count = len(x)
        inside, new = _step(kind, x, [part[:count] for part in state], weights)
        state = [torch.cat([fresh, part[count:]]) for fresh, part in zip(new, state, strict=True)]
        given.append(inside)
        outputs.append(new[0])
    return given, outputs


def _step(kind: str, x: Tensor, state: Sequence[Tensor], weights: Sequence[Tensor | None]) -> Step:
    own, back, *more = weights
    assert own is not None
    assert back is not None
    biases = more[:2] if len(more) > 1 else (None, None)
    left, right = F.linear(x, own, biases[0]), F.linear(state[0], back, biases[1])
    if kind == "lstm":
        i, f, g, o = (left + right).chunk(4, -1)
        cell = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        hidden = o.sigmoid() * cell.tanh()
        projection = more[-1] if len(more) % 2 else None
        hidden = hidden if projection is None else F.linear(hidden, projection)
        return (i, f, o, g, cell), (hidden, cell)
    if kind == "gru":
        (r, z, n), (r_back, z_back, n_back) = left.chunk(3, -1), right.chunk(3, -1)
        r, z = r + r_back, z + z_back
        n = n + r.sigmoid() * n_back
        return (r, z, n), (torch.lerp(n.tanh(), state[0], z.sigmoid()),)
    return (left + right,), ((left + right).relu() if kind == "rnn_relu" else (left + right).tanh(),)


def _named(kind: str, given: list[tuple[Tensor, ...]], where: str) -> Iterator[tuple[str, str, Tensor]]:
    for gate, parts in zip(GATES[kind], zip(*given, strict=True), strict=True):
        name, function = gate.split(", ")
        yield f"{name}{where}, {function}", function, torch.cat(parts)


def _several(state: Tensor | Sequence[Tensor]) -> Sequence[Tensor]:
    return (state,) if isinstance(state, Tensor) else state
