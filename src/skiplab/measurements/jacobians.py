"""The Jacobian of a part of a network at its activity: its product with that activity, and its Frobenius norm.

The part goes from what one layer takes to what another, or the same one, returns. The norm is exact, one backward
pass per number that comes out, many at a time, or estimated: ‖J‖_F² is the mean of ‖Jᵀv‖² over vectors v of random
signs (Hutchinson), whose variance is below that of normal ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from skiplab.checks import Refused
from skiplab.curvature.output_loss import refuse_missing
from skiplab.curvature.sweeps.double_backward import batched_unheard
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, outside_inference_mode
from skiplab.subjects.hooks import first_argument, visited, with_first_tensor

AT_ONCE = 2**22  # numbers in the cotangents that go back together; 16 MiB in float32


@dataclass(frozen=True)
class Part:
    """Of one network, the activity x (B, …) that a layer takes and y (B, …) that a later one makes of it."""

    x: Tensor
    y: Tensor


def on_part(
    subject: Subject, batch: Batch, first: str, last: str, use: Callable[[Part], dict[str, Tensor]]
) -> dict[str, Tensor]:
    """Call a lone network and have a function look at the part between two layers, first calls counting; (1, …)."""
    found: dict[str, Tensor] = {}
    parts = dict(subject.module.named_modules())

    def take(_: nn.Module, args: Any, kwargs: Any) -> Any:
        if "x" in found:
            return None
        x = first_argument(args, kwargs)
        if not x.is_floating_point():
            raise Refused(
                f"layer {first!r} takes {x.dtype}, which has no derivative; begin at a later layer."
            )
        found["x"] = x.detach().clone().requires_grad_()
        # A clone goes on, which the network may change in place.
        return _with_first(args, kwargs, x, found["x"].clone())

    def note(_: nn.Module, __: Any, ___: Any, output: Any) -> Any:
        def keep(y: Tensor) -> Tensor:
            if "x" in found:
                found.setdefault("y", y.clone())
            return y

        return with_first_tensor(last, output, keep)

    def run(model: nn.Module) -> dict[str, Tensor]:
        found.clear()
        with torch.enable_grad(), visited(before=[(parts[first], take)], after=[(parts[last], note)]):
            subject.call(model, batch)
            for name, seen in ((first, "x"), (last, "y")):
                if seen not in found:
                    raise Refused(f"layer {name!r} is not called on this batch; choose one that is.")
            if not found["y"].requires_grad:
                raise Refused(
                    f"what {last!r} returns does not depend on what {first!r} takes; choose a later layer."
                )
            return use(Part(found["x"], found["y"]))

    # The other attention kernels have no second derivative.
    with outside_inference_mode(batch) as batch, subject.borrowed(), sdpa_kernel(SDPBackend.MATH):
        return dict(subject.map_models(run))


def product(part: Part, tangent: Tensor) -> Tensor:
    """J t for a tangent t like x, (B, …): the derivative of Jᵀu, which is linear in u, taken along t."""
    u = torch.zeros_like(part.y, requires_grad=True)
    (back,) = torch.autograd.grad(part.y, part.x, u, create_graph=True)
    try:
        (found,) = torch.autograd.grad(back, u, tangent, retain_graph=True)
    except RuntimeError as problem:
        refuse_missing(problem)
        raise
    return found.detach()


def pulled_back(outputs: Tensor, inputs: Sequence[Tensor], cotangents: Tensor) -> tuple[Tensor, ...]:
    """Several cotangents (k, …) of one tensor as those of others, (k, …) each, in one batched backward pass.

    Where torch cannot map over a backward pass there is one for each. Autograd's own ``is_grads_batched`` would be
    one for each in all convolutions (torch 2.13).
    """

    def back(cotangent: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(
            outputs, tuple(inputs), cotangent, retain_graph=True, materialize_grads=True
        )

    try:
        with batched_unheard():
            return tuple(torch.vmap(back)(cotangents))
    except RuntimeError:
        return tuple(map(torch.stack, zip(*map(back, cotangents), strict=True)))


def squared_norms(
    part: Part, *, rows: slice, joint: bool, probes: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """‖J‖_F² of the Jacobian of some samples' y in the same samples' x, and its standard error.

    Each sample's own, (samples,), or with ``joint`` that of all of them as one, (1,). ``probes`` of 0 is exact.
    Without ``joint`` samples go back together and must not depend on each other, unless there is one.
    """
    y = part.y[rows]
    numbers = y.numel() if joint else y[0].numel()
    chunk = max(1, AT_ONCE // part.y.numel())
    total, square = torch.zeros(2, 1 if joint else len(y), dtype=torch.float64, device=y.device)
    for own in _cotangents(y, numbers, 1 if joint else len(y), probes, chunk, generator):
        whole = torch.zeros(len(own), *part.y.shape, dtype=y.dtype, device=y.device)
        whole[:, rows] = own.reshape(len(own), *y.shape)
        (back,) = pulled_back(part.y, [part.x], whole)
        found = back[:, rows].reshape(len(own), len(total), -1).double().square().sum(2)
        total = total + found.sum(0)
        square = square + found.square().sum(0)
    if not probes:
        return total, torch.zeros_like(total)
    mean = total / probes
    variance = (square / probes - mean.square()).clamp_min(0) / max(probes - 1, 1)
    return mean, variance.sqrt()


def refuse_mixing(part: Part) -> None:
    """Refuse a part in which a sample's output depends on another sample."""
    even = torch.zeros_like(part.y)
    even[::2] = 1.0
    (back,) = torch.autograd.grad(part.y, part.x, even, retain_graph=True, materialize_grads=True)
    if bool(back[1::2].any()):
        raise Refused(
            "a sample's output depends on the other samples, so that it has no Jacobian of its own; take out what "
            "mixes them, or choose mode='train'."
        )


def _cotangents(
    like: Tensor, numbers: int, count: int, probes: int, chunk: int, generator: torch.Generator
) -> Iterator[Tensor]:
    """Cotangents (k, count, numbers): unit vectors, the same for each of ``count``, or random signs, each its own."""
    for start in range(0, probes or numbers, chunk):
        stop = min(start + chunk, probes or numbers)
        if probes:
            yield signs((stop - start) * count * numbers, generator, like).view(-1, count, numbers)
        else:
            units = like.new_zeros(stop - start, count, numbers)
            units[torch.arange(stop - start), :, torch.arange(start, stop)] = 1.0
            yield units


def signs(count: int, generator: torch.Generator, like: Tensor) -> Tensor:
    """Random numbers ±1 with the type and on the device of another tensor.

    Their bits are drawn on the CPU whatever the device, the same everywhere, and take little time to travel.
    """
    packed = torch.randint(256, (-(-count // 8),), generator=generator, dtype=torch.uint8).to(like.device)
    bits = (packed[:, None] >> torch.arange(8, device=like.device, dtype=torch.uint8)) & 1
    return bits.flatten()[:count].to(like.dtype).mul_(2).sub_(1)


def _with_first(args: Any, kwargs: Any, old: Tensor, new: Tensor) -> tuple[Any, Any]:
    """Arguments with the first tensor replaced."""
    return (
        tuple(new if value is old else value for value in args),
        {name: new if value is old else value for name, value in kwargs.items()},
    )
