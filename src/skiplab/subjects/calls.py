"""How a network and a criterion are called, and what is said where they cannot be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.subjects.batches import Batch, named_inputs
from skiplab.subjects.failures import PLAIN, inputs_of, refuse_criterion, refuse_forward
from skiplab.torch_private import tree_map_only

Criterion = Callable[[Tensor, Tensor], Tensor]
LossFunction = Callable[[nn.Module, Batch], Tensor]


def call_on_input(model: nn.Module, batch: Batch) -> Any:
    """What the model computes from the input part of a batch, of which it gets a copy that it may change in place."""
    if isinstance(batch, Mapping):
        inputs = _copies(named_inputs(batch, inputs_of(model)))
    else:
        inputs = _copies(batch[0] if isinstance(batch, tuple | list) else batch)
    try:
        return model(**inputs) if isinstance(batch, Mapping) else model(inputs)
    except PLAIN as problem:
        second = batch[1] if isinstance(batch, tuple | list) and len(batch) > 1 else None
        refuse_forward(problem, model, inputs, second)
        raise


def criterion_of(criterion: Criterion, output: Any, target: Any) -> Tensor:
    """What the criterion says of an output, be it a tensor or whatever else the network returns."""
    try:
        return criterion(output, target)
    except PLAIN as problem:
        refuse_criterion(problem, output, target)
        raise


def first_tensor(output: Any) -> Tensor | None:
    """The tensor in what a model returns, such as a dict's logits; a loss beside it, a number, does not count."""
    if isinstance(output, Tensor):
        return output
    parts = output.values() if isinstance(output, Mapping) else output
    several = parts if isinstance(output, Mapping | tuple | list) else ()
    return next((part for part in several if isinstance(part, Tensor) and part.ndim > 0), None)


def require_finite(what: str, values: Tensor) -> None:
    """Refuse values that are not all finite numbers."""
    if not bool(values.isfinite().all()):
        raise Refused(
            f"the {what} holds {values[~values.isfinite()][0].item()}, not a finite number; "
            "look for diverged parameters or inputs that are not finite."
        )


def _copies(inputs: Any) -> Any:
    return tree_map_only(Tensor, torch.clone, inputs)
