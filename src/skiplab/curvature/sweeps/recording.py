"""Writing down what a network computes, operation by operation, as it computes it.

The recording is of one pass on one batch, so loops and branches need no understanding: what happened is what
is written. Each operation becomes a rule of ``forward_rules``; an operation without one ends the recording with
``Unsupported``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from skiplab.curvature.sweeps import bilinear_rules as bilinear
from skiplab.curvature.sweeps import forward_rules as rules
from skiplab.curvature.sweeps.forward_rules import Rule
from skiplab.subjects import Subject, operations
from skiplab.subjects.batches import Batch
from skiplab.subjects.subject import call_on_input
from skiplab.torch_private import tree_flatten, tree_leaves, tree_unflatten


class Unsupported(Exception):
    """The network does something for which there is no rule here."""


@dataclass(frozen=True)
class RecordedStep:
    """One recorded operation: values ``inputs`` (None: no such argument) give value ``output``."""

    rule: Rule
    inputs: tuple[int | None, ...]
    output: int

    @property
    def bent(self) -> int:
        """The value whose gradient the rule's cross term multiplies."""
        return self.output


class Recording(TorchFunctionMode):
    """Writes down what is computed from the tensors it was told of, while it is computed.

    Values are numbered. ``leaves`` are the network's tensors by name, ``constants`` all others that it uses.
    """

    def __init__(self, leaves: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.steps: list[RecordedStep] = []
        self.leaves: dict[str, int] = {}
        self.constants: dict[int, Tensor] = {}
        self._numbers: dict[int, int] = {}
        self._kept: list[Tensor] = []  # so that no id is used twice
        for name, tensor in leaves.items():
            self.leaves[name] = self._number(tensor)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        followed = [t for t in tree_leaves((args, kwargs)) if self._is_followed(t)]
        # A step is written before it is taken: an in-place operation changes what its input's name stands for.
        record = RECORDERS.get(getattr(func, "__name__", ""))
        step = None
        if followed and record is not None:
            try:
                step = record(self, func, *args, **kwargs)
            except TypeError as error:  # called with arguments for which there is no rule
                raise Unsupported(func.__name__) from error
        result = func(*args, **kwargs)
        if followed and any(isinstance(part, Tensor) for part in tree_leaves(result)):
            if step is None or not isinstance(result, Tensor):
                raise Unsupported(getattr(func, "__name__", str(func)))
            self._numbers[id(result)] = step
            self._kept.append(result)
        return result

    def add(self, rule: Rule, *inputs: Any) -> int:
        """Write down a step with these inputs (tensors, numbers of values, or None); return its value's number."""
        numbers = tuple(None if x is None else self.number(x) for x in inputs)
        output = self._next()
        self.steps.append(RecordedStep(rule, numbers, output))
        return output

    def number(self, x: Tensor | int) -> int:
        """The number of a value; a tensor not met before is a constant."""
        if isinstance(x, int):
            return x
        if id(x) not in self._numbers:
            self.constants[self._number(x)] = x.detach()[None]
        return self._numbers[id(x)]

    def _is_followed(self, x: Any) -> bool:
        return isinstance(x, Tensor) and id(x) in self._numbers

    def _number(self, tensor: Tensor) -> int:
        self._numbers[id(tensor)] = number = self._next()
        self._kept.append(tensor)
        return number

    def _next(self) -> int:
        return len(self.leaves) + len(self.constants) + len(self.steps)


@dataclass(frozen=True)
class Tape:
    """A recorded pass: steps, where the leaves and constants are, and where the output is."""

    steps: tuple[RecordedStep, ...]
    leaves: dict[str, int]
    constants: dict[int, Tensor]
    output: int

    @staticmethod
    def of(subject: Subject, batch: Batch) -> Tape:
        """Record the pass of the subject's first member."""

        def run(model: nn.Module) -> Tensor:
            recording = Recording(dict((*model.named_parameters(), *model.named_buffers())))
            for tensor in tree_leaves(batch):
                if isinstance(tensor, Tensor):
                    recording.number(tensor)
            with recording:
                output = call_on_input(model, batch)
            if not isinstance(output, Tensor):
                raise Unsupported(type(output).__name__)
            number = recording.number(output)
            tapes.append(Tape(tuple(recording.steps), recording.leaves, recording.constants, number))
            return output

        tapes: list[Tape] = []
        first = {name: tensor[:1] for name, tensor in subject.parameters.items()}
        fixed = {name: tensor[:1] for name, tensor in subject.fixed.items()}
        lone = replace(subject, parameters=first, fixed=fixed, size=1)
        with lone.borrowed(), torch.no_grad():
            lone.map_models(run)
        return tapes[0]


# What is written for each function, by its name in torch ---------------------------------------------------

Number = int | float


def _same(recording: Recording, func: Any, x: Tensor, *args: Any, **kwargs: Any) -> int:
    return recording.number(x)


def _dropout(
    recording: Recording, func: Any, x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> int:
    if training and p > 0:
        raise Unsupported("dropout in training mode")
    return recording.number(x)


def _linear(recording: Recording, func: Any, input: Tensor, weight: Tensor, bias: Any = None) -> int:
    return recording.add(bilinear.Affine(), input, weight, bias)


def _conv2d(
    recording: Recording,
    func: Any,
    input: Tensor,
    weight: Tensor,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> int:
    if input.ndim != 4 or isinstance(padding, str):
        raise Unsupported("this form of conv2d")
    return recording.add(bilinear.Convolution(stride, padding, dilation, groups), input, weight, bias)


def _elementwise(function: Any, curved: bool) -> Any:
    def record(recording: Recording, func: Any, input: Tensor, inplace: bool = False) -> int:
        return recording.add(rules.Elementwise(function, curved=curved), input)

    return record


def _leaky_relu(
    recording: Recording, func: Any, x: Tensor, negative_slope: float = 0.01, inplace: bool = False
) -> int:
    return recording.add(rules.Elementwise(partial(rules.leaky_relu, slope=negative_slope), curved=False), x)


def _sum(sign: int) -> Any:
    def record(recording: Recording, func: Any, a: Any, b: Any) -> int:
        return recording.add(rules.Sum(sign), _tensor(a, b), _tensor(b, a))

    return record


def _from_right(recording: Recording, func: Any, a: Tensor, b: Any) -> int:
    return recording.add(rules.Sum(-1), _tensor(b, a), a)


def _mul(recording: Recording, func: Any, a: Any, b: Any) -> int:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return recording.add(bilinear.Product(), a, b, None)
    tensor, number = (a, b) if isinstance(a, Tensor) else (b, a)
    return recording.add(rules.Scale(float(number)), tensor)


def _div(recording: Recording, func: Any, a: Tensor, b: Any) -> int:
    if not isinstance(b, Number):
        raise Unsupported("division by a tensor")
    return recording.add(rules.Scale(1 / b), a)


def _neg(recording: Recording, func: Any, a: Tensor) -> int:
    return recording.add(rules.Scale(-1.0), a)


def _linear_map(recording: Recording, func: Any, *args: Any, **kwargs: Any) -> int:
    parts, tree = tree_flatten((args, kwargs))
    places = [place for place, part in enumerate(parts) if isinstance(part, Tensor)]

    def function(*tensors: Tensor) -> Tensor:
        filled = list(parts)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        again, named = tree_unflatten(filled, tree)
        return func(*again, **named)

    tensors = [parts[place] for place in places]
    if function(*map(torch.zeros_like, tensors)).any():  # such as padding with a number
        raise Unsupported(f"{func.__name__} that is not linear")
    return recording.add(rules.LinearMap(function), *tensors)


def _reshape(recording: Recording, func: Any, x: Tensor, *shape: Any) -> int:
    if any(not isinstance(part, int) for part in tree_leaves(shape)):
        raise Unsupported("a view of another type")
    return _linear_map(recording, Tensor.reshape, x, *shape)


def _expand_as(recording: Recording, func: Any, x: Tensor, other: Tensor) -> int:
    return _linear_map(recording, Tensor.expand, x, other.shape)


def _getitem(recording: Recording, func: Any, x: Tensor, index: Any) -> int:
    if any(isinstance(part, Tensor) for part in tree_leaves(index)):
        raise Unsupported("indexing by a tensor")
    return _linear_map(recording, func, x, index)


def _batch_norm(
    recording: Recording,
    func: Any,
    input: Tensor,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> int:
    if training or running_mean is None or running_var is None:
        raise Unsupported("batch normalisation with the batch's statistics")
    shape = (-1, *[1] * (input.ndim - 2))

    def along_channels(x: Any) -> Any:
        return recording.add(rules.LinearMap(lambda t: t.reshape(shape)), x) if input.ndim > 2 else x

    mean = along_channels(running_mean)
    inverse = along_channels(recording.add(rules.FixedValue(lambda t: (t + eps).rsqrt()), running_var))
    value: Any = recording.add(rules.Sum(-1), input, mean)
    value = recording.add(bilinear.Product(), value, inverse, None)
    if weight is not None:
        value = recording.add(bilinear.Product(), value, along_channels(weight), None)
    return value if bias is None else recording.add(rules.Sum(), value, along_channels(bias))


def _tensor(x: Any, like: Any) -> Any:
    return x if isinstance(x, Tensor) else torch.tensor(x, dtype=like.dtype, device=like.device)


RECORDERS: dict[str, Callable[..., int]] = {
    "linear": _linear,
    "conv2d": _conv2d,
    "batch_norm": _batch_norm,
    **dict.fromkeys(operations.DROPOUTS.names, _dropout),
    "leaky_relu": _leaky_relu,
    **dict.fromkeys(operations.RELU.names, _elementwise(rules.relu, False)),
    **dict.fromkeys(("tanh", "tanh_"), _elementwise(rules.tanh, True)),
    **dict.fromkeys(("sigmoid", "sigmoid_"), _elementwise(rules.sigmoid, True)),
    **dict.fromkeys(("add", "add_", "__radd__"), _sum(1)),
    **dict.fromkeys(("sub", "sub_"), _sum(-1)),
    "__rsub__": _from_right,
    **dict.fromkeys(("mul", "mul_", "__rmul__"), _mul),
    **dict.fromkeys(("div", "div_", "true_divide"), _div),
    "neg": _neg,
    **dict.fromkeys(("clone", "contiguous"), _same),
    **dict.fromkeys(operations.VIEWS.names, _reshape),
    "expand_as": _expand_as,
    "__getitem__": _getitem,
    **dict.fromkeys(
        (
            *(
                "sum",
                "mean",
                "stack",
                "cat",
                "pad",
                "flatten",
                "unflatten",
                "transpose",
                "permute",
                "squeeze",
            ),
            *("unsqueeze", "expand", "avg_pool2d", "adaptive_avg_pool2d"),
        ),
        _linear_map,
    ),
}
