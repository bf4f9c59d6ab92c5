"""Gradient checkpointing that also works inside ``torch.func``: keep a module's input, compute the rest again.

``torch.utils.checkpoint`` recomputes with the parameters that lie in the module during the backward pass; those
of ``functional_call`` are out of it by then, so gradients would silently be wrong in the loop backend, and vmap and
``torch.func.grad`` refuse it. Here parameters and buffers are inputs of the recomputed function, so lone networks,
both backends of an ensemble, ``torch.vmap``, ``torch.func.grad`` and double backward give what they give without
checkpointing. Forward-mode derivatives are refused by torch, and so is batch normalisation in mixed precision under
``torch.vmap``; in a loop mixed precision works.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

Pure = Callable[..., tuple[Tensor, ...]]


class _Recomputed(torch.autograd.Function):
    """Call a pure function without recording it, and call it again for its derivative.

    The first tensor the function returns has a derivative, the others (new running statistics) have none.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(function: Pure, *tensors: Tensor) -> tuple[Tensor, ...]:
        return function(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.function, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.mark_non_differentiable(*output[1:])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        tensors = list(ctx.saved_tensors)
        wanted = [k for k, needed in enumerate(ctx.needs_input_grad[1:]) if needed]

        def first_output(*chosen: Tensor) -> Tensor:
            full = list(tensors)
            for k, tensor in zip(wanted, chosen, strict=True):
                full[k] = tensor
            output: Tensor = ctx.function(*full)[0]
            return output

        pull_back = torch.func.vjp(first_output, *(tensors[k] for k in wanted))[1]
        found = dict(zip(wanted, pull_back(gradients[0]), strict=True))
        return None, *(found.get(k) for k in range(len(tensors)))


def checkpointed(module: nn.Module, x: Tensor) -> Tensor:
    """Return ``module(x)``, keeping x alone for the backward pass instead of everything computed on the way.

    Running statistics move once, in the forward pass. The module must be deterministic (no dropout) and stay
    in the same mode until the backward pass; forward hooks inside it see values without their graph, and see
    them again when they are recomputed.
    """
    parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
    names = (*parameters, *buffers)
    # What is computed again must be computed as it was, in mixed precision too.
    device = "cpu" if x.is_meta else x.device.type  # autocast knows no "meta", where nothing is computed
    mixed, dtype = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)

    def function(x: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        # A module in training mode writes into its buffers: into clones, which are returned.
        named = {n: t.clone() if n in buffers else t for n, t in zip(names, state, strict=True)}
        with torch.autocast(device, dtype, enabled=mixed, cache_enabled=False):
            output = functional_call(module, named, (x,))
        return output, *(named[name] for name in buffers)

    # Clones here too: what autograd keeps must not change before the backward pass.
    kept = (buffer.clone() for buffer in buffers.values())
    output, *moved = _Recomputed.apply(function, x, *parameters.values(), *kept)
    with torch.no_grad():
        for buffer, new in zip(buffers.values(), moved, strict=True):
            buffer.copy_(new)
    return output
