"""First weights of the papers, drawn anew in a copy of a network: in all of its layers or in those that are named."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import nn

from skiplab.checks import one_of, require, seeded
from skiplab.randomness import torch_generator
from skiplab.remedies.branch_ends import HOMOGENEOUS
from skiplab.remedies.branches import end_of, required_blocks
from skiplab.remedies.looks_linear import looks_linear
from skiplab.remedies.pointwise import gain_of, in_evaluation, is_nonlinearity
from skiplab.remedies.recorded_pass import RecordedPass, recorded
from skiplab.remedies.tracing import copied
from skiplab.remedies.treated import Treated, chosen, counted
from skiplab.remedies.weight_starts import gaussian, hardt_ma_deviation, layer_fans, orthogonal_weights, start
from skiplab.subjects.batches import Batch
from skiplab.subjects.residual_blocks import WEIGHTS
from skiplab.subjects.weight_layers import check_weight_layers, left_out, weight_layers

REMEDY = "initialising"
KINDS = ("orthogonal", "gain", "hardt-ma", "looks-linear")


def initialise(
    model: nn.Module,
    batch: Batch,
    *,
    kind: str = "gain",
    seed: int = 0,
    where: Sequence[str] | None = None,
) -> Treated:
    """Return a copy whose weights are drawn anew by the seed, and whose biases are 0, in all weight layers.

    - ``orthogonal``: g times an orthonormal matrix (Saxe et al., 2014), in a kernel at its centre alone (as the LL
      start of balduzzi2017, section 5);
    - ``gain``: Gaussian with the variance g²/fan-in, that keeps the variance of signals over any depth (He et al.,
      2015); orhan2017 and orhan2018 choose such gains by search;
    - ``hardt-ma``: the last layer of every residual branch with the deviation 1/S of yu2019 eq 4, so that branches
      start near 0. A normalisation behind that layer would undo it: its scales become √fan-in/S, the size that the
      branch would have without, and its shifts 0. Other layers stay as they are;
    - ``looks-linear``: ``sl.looks_linear``, which also changes ReLUs; the whole network or nothing.

    The gain g is that of the nonlinearity φ whose output the layer reads, 1/√E φ(z)² for z ~ N(0, 1), by what the
    function does (``pointwise.gain_of``): √2 behind a ReLU, 1.59 behind tanh, 1 behind a normalisation or nothing.
    With inputs of variance 1 all fields W φ(z) then have variance 1. Other variances stay what they are behind
    ReLUs, come back to 1 behind tanh, and drift away from it behind GELU and SiLU: give inputs of variance 1.

    ``where`` names the layers to draw anew, or what holds them; with ``hardt-ma`` residual additions. Recurrent
    layers and attention, which hold several matrices, are left alone but for projections that are layers, and so are
    frozen layers and those that share their weights with an embedding.

    >>> initialise(model, x, kind="gain")
    Sequential treated: all 3 layers (0, 2, 4) drawn anew with variance g²/fan-in, g = 1.41 in 2, 1 in 1
    """
    one_of("kind", kind, KINDS)
    seeded(seed)
    if kind == "looks-linear":
        require(where is None, "looks-linear changes the whole network; leave where out.")
        changed = looks_linear(model, seed=seed)
        return Treated(changed, "ReLUs and weights such that the network is linear until it is trained")
    if kind == "hardt-ma":
        return _hardt_ma(model, batch, seed, where)
    check_weight_layers(model, None)
    record = recorded(model, batch, gains=True)
    known = {name: layer for name, layer in weight_layers(model).items() if not _is_embedding(model, layer)}
    # By its parameters: a weight that is computed from others, such as spectral_norm's, changes buffers when read.
    layers = {
        name: layer for name, layer in known.items() if any(p.requires_grad for p in layer.parameters())
    }
    require(
        bool(layers), "all weight layers are frozen (requires_grad=False); let those train that may change."
    )
    names = chosen("weight layer", layers, where, dict(model.named_modules()))
    gains = layer_gains(model, record, names)
    changed = copied(model, REMEDY)
    for name in names:
        layer = weight_layers(changed)[name]
        stream = torch_generator(seed, REMEDY, kind, name)
        if kind == "orthogonal":
            start(layer, name, orthogonal_weights(layer, gains[name], stream))
        else:
            start(layer, name, gaussian(layer, gains[name] / math.sqrt(layer_fans(layer)[0]), stream))
    how = "g times orthonormal" if kind == "orthogonal" else "with variance g²/fan-in"
    words = f"{counted(names, len(layers), 'layer')} drawn anew {how}, g = {_tally(gains.values())}"
    alone = [f"{len(known) - len(layers)} that are frozen"] if len(known) > len(layers) else []
    alone += [left_out(model)] if left_out(model) else []
    return Treated(changed, words + (f"; left alone: {'; '.join(alone)}" if alone else ""))


def _is_embedding(model: nn.Module, layer: nn.Module) -> bool:
    """Whether a layer shares its weights with an embedding, as the output of a language model may."""
    return any(isinstance(part, nn.Embedding) and part.weight is layer.weight for part in model.modules())


def layer_gains(model: nn.Module, record: RecordedPass, names: Sequence[str]) -> dict[str, float]:
    """The gain of each layer by the nonlinearity whose output it reads, 1 where it reads none."""
    parts = dict(model.named_modules())
    found = dict.fromkeys(names, 1.0)
    for step in record.steps:
        if step.scope in found and step.name in WEIGHTS and len(step.parents) == 1:
            found[step.scope] = _gain_before(record, parts, step.parents[0])
    return found


def _gain_before(record: RecordedPass, parts: Mapping[str, nn.Module], place: int) -> float:
    step = record.steps[place]
    for module, _ in record.modules_returning(place):  # which may be several calls to torch
        if module and is_nonlinearity(parts[module]):
            return gain_of(in_evaluation(parts[module]))
    if step.gain is not None:
        return step.gain
    # Dropout, pooling and views come between; a normalisation or a sum starts anew.
    passes = step.name in HOMOGENEOUS and len(step.parents) == 1
    return _gain_before(record, parts, step.parents[0]) if passes else 1.0


def _hardt_ma(model: nn.Module, batch: Batch, seed: int, where: Sequence[str] | None) -> Treated:
    blocks = required_blocks(model, batch)
    names = chosen("residual addition", blocks, where, dict(model.named_modules()))
    record = recorded(model, batch)
    changed = copied(model, REMEDY)
    layers = weight_layers(changed)
    norms = 0
    for name in names:
        known = [layer for layer in blocks[name].layers if layer in layers]
        require(
            bool(known),
            f"the branch of {name!r} has no linear layer or convolution of its own that could be drawn near 0; "
            "rescale its branch instead.",
        )
        layer = layers[known[-1]]
        deviation = hardt_ma_deviation(layer)
        start(
            layer, known[-1], gaussian(layer, deviation, torch_generator(seed, REMEDY, "hardt-ma", known[-1]))
        )
        end = end_of(record, blocks[name])
        if end.kind == "norm":
            norms += 1
            with torch.no_grad():
                for parameter in end.parameters:
                    # F.batch_norm and its kin take scales before shifts, and torch calls them weight and bias.
                    size = 0.0 if parameter.endswith("bias") else deviation * math.sqrt(layer_fans(layer)[0])
                    changed.get_parameter(parameter).fill_(size)
    behind = f", and the scales of the {norms} normalisations behind them" if norms else ""
    words = f"the last layers of the branches of {counted(names, len(blocks), 'residual addition')} near 0{behind}"
    return Treated(changed, words)


def _tally(gains: Iterable[float]) -> str:
    return ", ".join(f"{gain:.3g} in {count}" for gain, count in Counter(gains).most_common())
