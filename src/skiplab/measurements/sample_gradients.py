"""The gradient of each sample's output in its own input, or in a layer's activity, from one backward pass.

The derivative of Σ_i f(x_i) in x_i is f's gradient at x_i, if a sample's output depends on its own input alone.
Three samples are tried beforehand, and a network that mixes them is refused: its gradients would be sums over
samples.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.checks import Refused, near, one_of, require, whole_numbers
from skiplab.ensembles import Subject
from skiplab.ensembles.subject import LABEL_KEYS, Batch, Criterion, batch_size, call_on_input, target_of

OUTPUTS = ("sum", "loss")
Quantity = Callable[[nn.Module, Batch], Tensor]  # one number a sample, (B,)


def sample_gradients(
    subject: Subject, batch: Batch, quantity: Quantity, *, wrt: str, samples_at_once: int | None = None
) -> Tensor:
    """Differentiate a quantity of every sample in its input or in the activity of layer ``wrt``: (E, B, …)."""
    size = batch_size(batch)
    require(size > 0, "the batch has no samples; pass at least one.")
    length = size if samples_at_once is None else samples_at_once
    whole_numbers(samples_at_once=length)
    known = dict(subject.module.named_modules())
    require(isinstance(wrt, str), f"wrt is {wrt!r}, but must be 'input' or the name of a layer.")
    if wrt != "input" and wrt not in known:
        raise Refused(f"layer {wrt!r} does not exist in the network.{near(wrt, ('input', *known))}")
    members = list(_one_by_one(subject))
    if size > 1:
        _refuse_mixing(_alone(subject, 0), _sliced(batch, size, slice(0, 3)), quantity, wrt)
    groups = [_sliced(batch, size, slice(first, first + length)) for first in range(0, size, length)]

    def total(model: nn.Module, group: Batch) -> Tensor:
        return quantity(model, group).sum()

    return torch.cat(
        [torch.cat([_gradients(own, group, total, wrt) for group in groups], 1) for own in members]
    )


def quantity_of(outputs: str | int, criterion: Criterion | None) -> Quantity:
    """What is differentiated: a sample's summed outputs, one of them by its number, or its own loss."""
    if isinstance(outputs, str):
        one_of("outputs", outputs, OUTPUTS)
        require(outputs != "loss" or criterion is not None, 'outputs="loss" needs a loss; pass criterion=….')
    else:
        choices = "the whole number of an output, " + " or ".join(map(repr, OUTPUTS))
        require(isinstance(outputs, Integral), f"outputs is {outputs!r}, but must be {choices}.")

    def quantity(model: nn.Module, batch: Batch) -> Tensor:
        output, size = _first_tensor(call_on_input(model, batch)), batch_size(batch)
        require(
            output.ndim > 0 and len(output) == size,
            f"the network returns {tuple(output.shape)} for {size} samples; measure one that takes and returns a "
            "sample a row (a recurrent one with batch_first=True, say).",
        )
        if outputs == "loss":
            assert criterion is not None
            labels = target_of(batch)
            # Sample by sample, so that it does not matter whether the criterion sums or averages.
            return torch.stack([criterion(output[i : i + 1], labels[i : i + 1]) for i in range(size)])
        columns = output.reshape(size, -1)
        if outputs == "sum":
            return columns.sum(1)
        count, index = columns.shape[1], int(outputs)
        require(-count <= index < count, f"output {index} does not exist; a sample has {count}.")
        return columns[:, index]

    return quantity


def _gradients(subject: Subject, batch: Batch, scalar: Quantity, wrt: str) -> Tensor:
    return (
        _in_input(subject, batch, scalar) if wrt == "input" else _in_layer(subject, batch, scalar, wrt)
    ).detach()


def _in_input(subject: Subject, batch: Batch, scalar: Quantity) -> Tensor:
    x = _input_of(batch).detach()
    # A copy for every member, since each has a gradient of its own.
    inputs = x.expand(subject.size, *x.shape).clone().requires_grad_()

    def run(model: nn.Module, own: Tensor) -> Tensor:
        value = scalar(model, _with_input(batch, own))
        # Inside the call, where the member's state is in the module: gradient checkpointing runs it again.
        return value if subject.batched else _gradient(value, own)

    with subject.borrowed(), torch.enable_grad():
        found: Tensor = subject.map_models(run, inputs)
        return _gradient(found.sum(), inputs) if subject.batched else found


def _gradient(value: Tensor, leaf: Tensor) -> Tensor:
    """The gradient, zero where the value does not depend on the leaf."""
    found = torch.autograd.grad(value, leaf, allow_unused=True)[0] if value.requires_grad else None
    return torch.zeros_like(leaf) if found is None else found


def _in_layer(subject: Subject, batch: Batch, scalar: Quantity, name: str) -> Tensor:
    measured = dataclasses.replace(subject, criterion=None, loss_fn=scalar)
    found = measured.activity_gradients(batch, [name])[name]
    size = batch_size(batch)
    require(
        found.ndim > 1 and found.shape[1] == size,
        f"layer {name!r} returns {tuple(found.shape[1:])} for {size} samples; choose one with a sample a row.",
    )
    return found


def _refuse_mixing(subject: Subject, few: Batch, quantity: Quantity, wrt: str) -> None:
    """Refuse a network in which the first sample's output depends on the other samples.

    Of three samples, not two: a batch norm of two samples gives ±1 whatever they are.
    """
    found = _gradients(subject, few, lambda model, batch: quantity(model, batch)[0], wrt)
    require(
        not bool((found[:, 1:].abs() > 0).any()),
        "a sample's output depends on the other samples, so that its gradient is not its own; take out what mixes "
        "them (a BatchNorm without running statistics, say) or pass the samples one by one.",
    )


def _one_by_one(subject: Subject) -> Iterator[Subject]:
    """The members of a loop one at a time, so that one member's graph is in memory; batched ones together."""
    if subject.batched and subject.size > 1:
        yield subject
    else:
        yield from (_alone(subject, index) for index in range(subject.size))


def _alone(subject: Subject, index: int) -> Subject:
    return dataclasses.replace(subject.members(slice(index, index + 1)), batched=False)


def _sliced(batch: Batch, size: int, part: slice) -> Batch:
    """Some samples of a batch; what is not a tensor with a row a sample stays whole."""
    if isinstance(batch, Tensor):
        return batch[part] if batch.ndim and len(batch) == size else batch
    if isinstance(batch, Mapping):
        return {name: _sliced(value, size, part) for name, value in batch.items()}
    if isinstance(batch, tuple | list):
        return tuple(_sliced(value, size, part) for value in batch)
    return batch


def _input_of(batch: Batch) -> Tensor:
    """The tensor that is differentiated in: the batch, its first part, or the first of a dict that has a gradient."""
    x = batch[_input_name(batch)] if isinstance(batch, Mapping | tuple | list) else batch
    kind = str(x.dtype) if isinstance(x, Tensor) else type(x).__name__
    require(
        isinstance(x, Tensor) and x.is_floating_point(),
        f"the input is {kind}, which has no gradient; name in wrt the layer that turns it into numbers.",
    )
    return x


def _input_name(batch: Batch) -> Any:
    if not isinstance(batch, Mapping):
        return 0
    inputs = [name for name in batch if name not in LABEL_KEYS]
    floats = [n for n in inputs if isinstance(batch[n], Tensor) and batch[n].is_floating_point()]
    require(len(inputs) > 0, f"the batch has labels only ({', '.join(batch)}); pass the network's input too.")
    return (floats or inputs)[0]


def _with_input(batch: Batch, x: Tensor) -> Batch:
    if isinstance(batch, Mapping):
        return {**batch, _input_name(batch): x}
    return (x, *batch[1:]) if isinstance(batch, tuple | list) else x


def _first_tensor(output: Any) -> Tensor:
    """The network's output, or the first tensor of a tuple or dict (the logits of a Hugging Face model)."""
    several = output.values() if isinstance(output, Mapping) else output
    for part in several if isinstance(output, Mapping | tuple | list) else [output]:
        if isinstance(part, Tensor):
            return part
    raise Refused(f"the network returns a {type(output).__name__} without a tensor; wrap it to return one.")
