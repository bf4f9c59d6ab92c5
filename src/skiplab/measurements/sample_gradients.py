"""The gradient of each sample's output in its own input, or in a layer's activity, from one backward pass.

The derivative of Σ_i f_i in x_i is f_i's own gradient if f_i depends on x_i alone; else it is a sum over samples, and
the network is refused. A second backward pass tells, of Σ_i w_i f_i with a weight a sample in random order. Samples
of weight 0 must have gradients of exactly 0, which shows the slightest part that they have in others' outputs; the
rest must have w_i times their own, but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skiplab.checks import Refused, no_such, one_of, require, whole_numbers
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject
from skiplab.subjects.batches import (
    LABEL_KEYS,
    Batch,
    batch_size,
    is_lone_sample,
    sliced,
    target_of,
)
from skiplab.subjects.failures import LONE_SAMPLE, described, inputs_of
from skiplab.subjects.subject import Criterion, call_on_input, criterion_of, first_tensor
from skiplab.torch_private import tree_flatten, tree_unflatten

OUTPUTS = ("sum", "loss")
MIXED = 0.02  # of a gradient, the least that others' share in it must be to be told from rounding
Quantity = Callable[[nn.Module, Batch], Tensor]  # one number a sample, (B,)


def sample_gradients(
    subject: Subject,
    batch: Batch,
    quantity: Quantity,
    *,
    layer: str | None,
    samples_at_once: int | None = None,
    what: str = "output",
) -> Tensor:
    """Differentiate a quantity of every sample in its input or in the activity of a layer: (E, B, …).

    Where the quantity, ``what`` in a refusal, is not finite, a member of an ensemble has NaN for its gradient, and a
    lone network is refused: rectifiers let no NaN pass on the way back, so that the gradient itself may look sound.
    """
    size = batch_size(batch)
    length = size if samples_at_once is None else samples_at_once
    whole_numbers(samples_at_once=length)
    known = dict(subject.module.named_modules())
    if layer is not None and layer not in known:
        raise no_such("layer", layer, known)
    groups = [sliced(batch, size, slice(first, first + length)) for first in range(0, size, length)]
    found = []
    for own in _one_by_one(subject):
        parts, tried = [], {1}  # a lone sample has no other to depend on
        for group in groups:
            # Groups of one size mix alike, so one of each is tried; members may not, a gate may be shut in one.
            weights = [] if batch_size(group) in tried else [_weights(batch_size(group))]
            tried.add(batch_size(group))
            values, each = _gradients(own, group, quantity, layer, weights)
            if what == "loss":
                _refuse_ignored(subject, values, group)
            subject.refuse_unless_finite(what, values)
            subject.refuse_unless_finite("gradient", each[0])
            if weights:
                _refuse_mixing(*each, *weights)
            hole = ~values.isfinite().view(*values.shape, *[1] * (each[0].ndim - 2))
            parts.append(each[0].masked_fill(hole, torch.nan))
        found.append(torch.cat(parts, 1))
    return torch.cat(found)


def quantity_of(outputs: str | int, criterion: Criterion | None) -> Quantity:
    """What is differentiated: a sample's summed outputs, one of them by its number, or its own loss."""
    if isinstance(outputs, str):
        one_of("outputs", outputs, OUTPUTS)
        require(outputs != "loss" or criterion is not None, 'outputs="loss" needs a loss; pass criterion=….')
    else:
        choices = "the whole number of an output, " + " or ".join(map(repr, OUTPUTS))
        is_number = isinstance(outputs, Integral) and not isinstance(outputs, bool)
        require(is_number, f"outputs is {outputs!r}, but must be {choices}.")

    def quantity(model: nn.Module, batch: Batch) -> Tensor:
        whole, size = call_on_input(model, batch), batch_size(batch)
        output = first_tensor(whole)
        if output is None:
            raise Refused(f"the network returns {described(whole)}, without a tensor; wrap it to return one.")
        if output.ndim == 0 or len(output) != size:
            remedy = (
                LONE_SAMPLE
                if is_lone_sample(batch)
                else "measure one that takes and returns a sample a row (a recurrent one with batch_first=True, say)"
            )
            raise Refused(f"the network returns {tuple(output.shape)} for {size} samples; {remedy}.")
        if outputs == "loss":
            assert criterion is not None
            return _losses(criterion, whole, target_of(batch), size)
        columns = output.reshape(size, -1)
        if outputs == "sum":
            return columns.sum(1)
        count, index = columns.shape[1], int(outputs)
        require(-count <= index < count, f"output {index} does not exist; a sample has {count}.")
        return columns[:, index]

    return quantity


def _losses(criterion: Criterion, whole: Any, labels: Any, size: int) -> Tensor:
    """Every sample's loss, each by itself, so that it does not matter whether the criterion sums or averages."""
    if isinstance(labels, Tensor):
        count = len(labels) if labels.ndim else 0
        require(
            count == size, f"the batch has {size} samples and {count} labels; pass a label for each sample."
        )
    parts, tree = tree_flatten((whole, labels))
    columns = [
        # Split, since on the way back each slice would make zeros for the whole batch.
        part.split(1) if isinstance(part, Tensor) and part.ndim and len(part) == size else [part] * size
        for part in parts
    ]
    rows = zip(*columns, strict=True)
    each = [criterion_of(criterion, *tree_unflatten(list(row), tree)) for row in rows]
    for loss in each[:1]:
        kind = described(loss)
        require(
            isinstance(loss, Tensor) and loss.numel() == 1,
            f"the loss of a sample is {kind}, not one number; reduce it, say with .mean().",
        )
    return torch.stack([loss.reshape(()) for loss in each])


def _gradients(
    subject: Subject, batch: Batch, quantity: Quantity, layer: str | None, weights: list[Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """Values (E, B) and their gradients (E, B, …), once as they are and once for each of the weights."""
    if layer is not None:
        values, found = subject.differentiated(batch, [layer], quantity, [None, *weights])
        size, shape = batch_size(batch), tuple(found[0][layer].shape[1:])
        require(
            len(shape) > 0 and shape[0] == size,
            f"layer {layer!r} returns {shape} for {size} samples; choose one with a sample a row.",
        )
        return values, [each[layer] for each in found]
    x = _input_of(subject.module, batch).detach()
    # A copy for every member, since each has a gradient of its own.
    leaves = {"input": x.expand(subject.size, *x.shape).clone()}

    def run(model: nn.Module, own: dict[str, Tensor]) -> Tensor:
        return quantity(model, _with_input(batch, own["input"]))

    with subject.borrowed():
        values, found = subject.map_gradients(run, leaves, [None, *weights])
    return values, [each["input"] for each in found]


def _weights(size: int) -> Tensor:
    """A weight a sample, drawn from 0, ±1, ±2, ±4 … ±128; powers of two scale half-precision numbers exactly.

    Some are 0, and their mean is far from 0 and from each of them: a sample that enters all outputs alike has the
    sum of all weights instead of its own.
    """
    choices = torch.tensor([0.0] + [sign * 2.0**power for power in range(8) for sign in (1, -1)])
    stream = torch_generator("mixing", size)
    while True:
        weights = choices[torch.randint(len(choices), (size,), generator=stream)]
        apart = (weights.mean() - weights).abs() > 0.1 * weights.abs()
        if bool(apart.all() & (weights == 0).any()):
            return weights


def _refuse_mixing(gradients: Tensor, weighted: Tensor, weights: Tensor) -> None:
    """Refuse a network in which the gradients of a weighted sum are not each sample's own times its weight."""
    weights = weights.to(gradients)
    expected = weights.view(-1, *[1] * (gradients.ndim - 2)) * gradients
    away, scale = ((x.flatten(2) if x.ndim > 2 else x[..., None]) for x in (weighted - expected, expected))
    away, scale = away.abs().amax(2), scale.abs().amax(2)
    kind = torch.finfo(gradients.dtype)
    # A network may compute in half precision inside, whose small numbers lose most of their digits.
    clear = torch.maximum(away, scale) > kind.tiny**0.5
    mixed = torch.where(weights == 0, away > 0, clear & (away > MIXED * scale))
    require(
        not bool((mixed & away.isfinite()).any()),
        "a sample's output depends on the other samples, so that its gradient is not its own; take out what mixes "
        "them (a BatchNorm without running statistics, a recurrent layer without batch_first=True) or pass the "
        "samples one by one.",
    )


def _refuse_ignored(subject: Subject, losses: Tensor, batch: Batch) -> None:
    """Say it of a lone network's sample whose label the criterion passes over: its mean loss is 0/0."""
    labels = target_of(batch)
    if subject.ensemble or not isinstance(labels, Tensor) or labels.is_floating_point():
        return
    passed_over = getattr(subject.criterion, "ignore_index", -100)
    rows = (labels == passed_over).flatten(1).all(1) if labels.ndim > 1 else labels == passed_over
    require(
        not bool((losses.isnan() & rows.to(losses.device)).any()),
        f"a sample's label is {passed_over}, which the criterion ignores, so it has no loss; leave such samples out.",
    )


def _one_by_one(subject: Subject) -> Iterator[Subject]:
    """The members of a loop one at a time, so that one member's graph is in memory; batched ones together."""
    if subject.batched and subject.size > 1:
        yield subject
    else:
        yield from (subject.alone(index) for index in range(subject.size))


def _input_of(module: nn.Module, batch: Batch) -> Tensor:
    """The tensor that is differentiated in: the batch, its first part, or the first of a dict that has a gradient."""
    x = batch[_input_name(batch)] if isinstance(batch, Mapping | tuple | list) else batch
    if isinstance(x, Tensor) and x.is_floating_point():
        return x
    kind = str(x.dtype) if isinstance(x, Tensor) else described(x)
    remedy = "name in layers the one that turns it into numbers"
    if isinstance(x, tuple | list):
        kind = f"a {type(x).__name__} of {len(x)} parts"
        if _takes_several(module):
            remedy = "pass the batch as a dict of all inputs by name"
    elif isinstance(x, Tensor):
        remedy = "convert numbers with .float(); for words, name in layers the one that makes them numbers"
    elif isinstance(x, np.ndarray):
        remedy = "turn it into a tensor with torch.from_numpy"
    raise Refused(f"the input is {kind}, which has no gradient; {remedy}.")


def _takes_several(module: nn.Module) -> bool:
    """Whether the network needs more than one input."""
    needed = [
        each
        for each in inputs_of(module)
        if each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    return len(needed) > 1


def _input_name(batch: Batch) -> Any:
    if not isinstance(batch, Mapping):
        return 0
    inputs = [name for name in batch if name not in LABEL_KEYS]
    # Of rows: a number beside them, such as a temperature, is not what samples are made of.
    rows = [name for name in inputs if isinstance(batch[name], Tensor) and batch[name].ndim > 0]
    floats = [name for name in rows if batch[name].is_floating_point()]
    named = ", ".join(map(str, batch))
    require(len(inputs) > 0, f"the batch has labels only ({named}); pass the network's input too.")
    return (floats or inputs)[0]


def _with_input(batch: Batch, x: Tensor) -> Batch:
    if isinstance(batch, Mapping):
        return {**batch, _input_name(batch): x}
    return (x, *batch[1:]) if isinstance(batch, tuple | list) else x
