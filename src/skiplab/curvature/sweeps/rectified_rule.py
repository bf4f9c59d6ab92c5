"""A linear layer and the ReLU behind it as one step of the sweeps, for Triton's kernels on a GPU.

The recorded steps stay as they are; only the sweeps of products take the two steps for one. It is done where float32
products may be rounded to tf32, since the kernels' products are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from skiplab.curvature.sweeps import forward_rules as rules
from skiplab.curvature.sweeps.bilinear_rules import Affine
from skiplab.curvature.sweeps.forward_rules import Elementwise, Gradients, Maybe, Values, Wanted, present
from skiplab.curvature.sweeps.recording import RecordedStep
from skiplab.curvature.sweeps.workspace import Workspace
from skiplab.ensembles import rectified

UNITS = (16, 32, 64, 128)  # widths that the kernels take


@dataclass(frozen=True)
class RectifiedStep(RecordedStep):
    """Two steps as one: ``field`` is the number of the value between them, whose gradient bends."""

    field: int

    @property
    def bent(self) -> int:
        return self.field


def rectified_steps(steps: Sequence[RecordedStep], output: int) -> list[RecordedStep]:
    """The steps with every linear layer whose value only a ReLU reads joined to that ReLU."""
    uses = Counter(slot for step in steps for slot in step.inputs)
    uses[output] += 1
    layers = {step.output: step for step in steps if type(step.rule) is Affine and uses[step.output] == 1}
    joined: list[RecordedStep] = []
    for step in steps:
        is_relu = isinstance(step.rule, Elementwise) and step.rule.function is rules.relu
        layer = layers.get(step.inputs[0]) if is_relu and step.inputs[0] is not None else None
        if layer is None:
            joined.append(step)
            continue
        joined.remove(layer)
        joined.append(RectifiedStep(RectifiedAffine(in_front=True), layer.inputs, step.output, layer.output))
    return joined


def worth_it(like: Tensor) -> bool:
    """Whether the kernels serve a network with such parameters."""
    if like.dtype != torch.float32 or not rectified.available(like.device):
        return False
    try:
        return not like.is_cuda or torch.get_float32_matmul_precision() != "highest"
    except RuntimeError:  # torch's two interfaces for it disagree
        return False


class RectifiedAffine(Affine):
    """ReLU(x Wᵀ + b); ``aux`` is the ReLU's.

    ``in_front`` says that the gradients g come from in front of the ReLU, where they are masked already.
    """

    def __init__(self, *, in_front: bool = False) -> None:
        self.in_front = in_front

    def primal(self, x: Values) -> tuple[Tensor, Any]:
        value, first, _ = rules.relu(super().primal(x)[0])
        return value, (first.bool(), None)

    def cotangent(self, x: Values, aux: Any, g: Tensor, wanted: Wanted, space: Workspace) -> Gradients:
        return super().cotangent(x, None, g * aux[0], wanted, space)

    def tangent(self, x: Values, aux: Any, dx: Values, space: Workspace) -> Tensor:
        mask: Tensor = aux[0]
        (a, weight), (da, dweight, dbias) = present(x[:2]), dx
        if da is None or dweight is None or dbias is None or not _fits(a, weight):
            field = space.hold(super().tangent(x, mask.shape[1:], dx, space))
            moved = space.mul(field, mask)
            space.drop(field)
            return moved
        given = [_lined(tensor) for tensor in (a, da, weight, dweight, dbias)]
        lanes = max(tensor.shape[0] for tensor in given)
        out = space.empty((lanes, a.shape[1], weight.shape[1]), a)
        return _kernels().tangent(*given, mask.view(torch.uint8), out, _precision(a))

    def turned(
        self, x: Values, aux: Any, dx: Values, g: Maybe, r: Maybe, wanted: Wanted, space: Workspace
    ) -> Gradients:
        mask: Tensor = aux[0]
        (a, weight), (da, dweight, _) = present(x[:2]), dx
        if g is not None and not self.in_front:
            g = g * mask
        if r is None:
            return super().turned(x, None, dx, g, None, wanted, space)
        if g is None or da is None or dweight is None or not all(wanted) or not _fits(a, weight):
            masked = space.hold(space.mul(r, mask))
            found = super().turned(x, None, dx, g, masked, wanted, space)
            space.drop(masked)
            return found
        masked = space.hold(space.empty(tuple(r.shape), r))
        to_a = space.empty((r.shape[0], *a.shape[1:]), a)
        turned = (weight.mT.contiguous(), dweight.mT.contiguous())
        to_c = _kernels().turned(
            _lined(r), _lined(g), mask.view(torch.uint8), *turned, masked, to_a, _precision(a)
        )
        to_b = self.to_b(a, weight, masked, space, self.to_b(da, weight, g, space))
        space.drop(masked)
        return [to_a, to_b, to_c]


def _kernels() -> Any:
    from skiplab.curvature.sweeps import rectified_kernels

    return rectified_kernels


def _lined(tensor: Tensor) -> Tensor:
    """The tensor with every lane in one piece; lanes may lie apart."""
    return tensor if tensor[0].is_contiguous() else tensor.contiguous()


def _fits(a: Tensor, weight: Tensor) -> bool:
    return a.ndim == 3 and a.dtype == torch.float32 and all(length in UNITS for length in weight.shape[1:])


def _precision(like: Tensor) -> str:
    return "tf32" if like.is_cuda else "ieee"
