"""What the layers of a subject return, and the gradients of its loss, or of any quantity, in that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from skiplab.checks import Refused, listed, no_such, require
from skiplab.subjects.batches import Batch, outside_inference_mode
from skiplab.torch_private import saved_tensors_are_hooked

if TYPE_CHECKING:
    from skiplab.subjects.subject import Subject

Gradients = tuple[Tensor, list[dict[str, Tensor]]]  # values (E, …), and per weighting the gradients by name


def activities(
    subject: Subject, batch: Batch, layers: Sequence[str] | None, call: Callable[[nn.Module, Batch], Any]
) -> dict[str, Tensor]:
    """What the named layers (default: the blocks) return while the models are called on a batch, each (E, B, …)."""
    names = named_layers(subject, layers)
    seen: dict[str, Tensor] = {}

    def note(name: str, output: Tensor) -> Tensor:
        seen[name] = output.clone()  # a later in-place operation must not reach the noted values
        return output

    def run(model: nn.Module) -> dict[str, Tensor]:
        seen.clear()
        restart()
        call(model, batch)
        return dict(seen)

    with subject.borrowed(names, note) as restart, torch.no_grad():
        found: dict[str, Tensor] = subject.map_models(run)
    missing = [name for name in names if name not in found]
    if missing and (layers is not None or not found):
        raise Refused(f"layer {missing[0]!r} is not called on this batch; choose one that is.")
    return found


def differentiated(
    subject: Subject,
    batch: Batch,
    layers: Sequence[str] | None,
    quantity: Callable[[nn.Module, Batch], Tensor],
    weights: Sequence[Tensor | None] = (None,),
) -> Gradients:
    """The values (E, …) of a quantity, and the gradients of its weighted sums in the named layers' outputs.

    ``weights`` has the quantity's shape for one member, or None for ones; each makes a dict of (E, B, …). A zero
    is added to every output and the quantity differentiated in it, which works for any module, under vmap and in
    a loop.
    """
    current: dict[str, Tensor] = {}

    def run(model: nn.Module, members_probes: dict[str, Tensor]) -> Tensor:
        current.update(members_probes)
        restart()
        return quantity(model, batch)

    def add_probe(name: str, output: Tensor) -> Tensor:
        # A checkpoint records nothing or, if it is not reentrant, has hooks on what autograd saves; what it
        # computes again in the backward pass has neither our probes nor a member's state.
        if not torch.is_grad_enabled() or saved_tensors_are_hooked():
            raise Refused(
                f"layer {name!r} runs inside gradient checkpointing, which hides activities from gradients; "
                "switch it off to measure them."
            )
        return output + current[name]

    with outside_inference_mode(batch) as batch:
        seen = activities(subject, batch, layers, quantity)
        probes = {name: torch.zeros_like(x) for name, x in seen.items()}
        with subject.borrowed(named_layers(subject, layers), add_probe) as restart:
            return map_gradients(subject, run, probes, weights)


def map_gradients(
    subject: Subject,
    function: Callable[[nn.Module, dict[str, Tensor]], Tensor],
    leaves: dict[str, Tensor],
    weights: Sequence[Tensor | None] = (None,),
) -> Gradients:
    """Map a function of a model and of leaves (E, …), and differentiate its weighted sums in the leaves.

    Gradients are taken even where the caller has switched them off; they are 0 where nothing depends on a leaf.
    """

    def pulled_back(values: Tensor, leaves: dict[str, Tensor]) -> list[dict[str, Tensor]]:
        several: list[dict[str, Tensor]] = []
        for weight in weights:
            found: Sequence[Tensor | None] = [None] * len(leaves)
            if values.requires_grad:
                along = torch.ones_like(values) if weight is None else weight.to(values).expand_as(values)
                again = len(several) < len(weights) - 1
                found = torch.autograd.grad(
                    values, list(leaves.values()), along, retain_graph=again, allow_unused=True
                )
            pairs = zip(leaves.items(), found, strict=True)
            several.append({name: torch.zeros_like(x) if g is None else g for (name, x), g in pairs})
        return several

    def alone(model: nn.Module, own: dict[str, Tensor]) -> Gradients:
        own = {name: tensor.detach().requires_grad_() for name, tensor in own.items()}
        values = function(model, own)
        # Inside the call, where the member's state is in the module: gradient checkpointing runs it again.
        return values.detach(), pulled_back(values, own)

    with torch.enable_grad():
        if not subject.batched or subject.size == 1:
            return subject.map_models(alone, leaves)
        leaves = {name: tensor.detach().requires_grad_() for name, tensor in leaves.items()}
        values: Tensor = subject.map_models(function, leaves)
        return values.detach(), pulled_back(values, leaves)


def named_layers(subject: Subject, layers: Sequence[str] | None) -> tuple[str, ...]:
    """Names of the layers to look at, which must be there; the blocks where none are named."""
    listed("layers", layers)
    names = subject.blocks if layers is None else tuple(dict.fromkeys(layers))
    require(len(names) > 0, "there is no layer to look at; name one of the network's modules in layers.")
    known = dict(subject.module.named_modules())
    for name in names:
        if name not in known:
            raise no_such("layer", name, known)
    return names
