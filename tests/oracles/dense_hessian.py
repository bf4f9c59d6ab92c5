"""Dense curvature matrices of tiny networks, entry by entry, by autograd's own Hessian and Jacobian."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel


def flat_loss(
    module: nn.Module, names: Sequence[str], loss: Callable[[Callable[..., Any]], Tensor]
) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """The loss as a function of one row of numbers, and the row at which the module is.

    ``loss`` takes a callable model; buffers are copied, so a pass in training mode changes nothing.
    """
    state = {name: tensor.detach().clone() for name, tensor in module.named_parameters()}
    buffers = {name: tensor.detach() for name, tensor in module.named_buffers()}

    def function(row: Tensor) -> Tensor:
        parts = row.split([state[name].numel() for name in names])
        chosen = {name: part.view(state[name].shape) for name, part in zip(names, parts, strict=True)}
        fixed = {name: tensor.clone() for name, tensor in buffers.items()}

        def model(*args: Any, **kwargs: Any) -> Any:
            with sdpa_kernel(SDPBackend.MATH):  # the only attention kernel with a second derivative
                return functional_call(module, state | chosen | fixed, args, kwargs)

        return loss(model)

    return function, torch.cat([state[name].reshape(-1) for name in names])


def dense_hessian(
    module: nn.Module, names: Sequence[str], loss: Callable[[Callable[..., Any]], Tensor]
) -> Tensor:
    """∂²L/∂θ∂θ, (P, P)."""
    function, row = flat_loss(module, names, loss)
    return torch.autograd.functional.hessian(function, row)


def dense_gauss_newton(
    module: nn.Module, names: Sequence[str], inputs: Tensor, criterion: Callable[[Tensor], Tensor]
) -> Tensor:
    """Jᵀ (∂²L/∂f²) J with f the outputs, flattened, (P, P)."""
    function, row = flat_loss(module, names, lambda model: model(inputs))
    output = function(row).detach()
    jacobian = torch.autograd.functional.jacobian(lambda r: function(r).reshape(-1), row)
    inner = torch.autograd.functional.hessian(lambda f: criterion(f.view(output.shape)), output.reshape(-1))
    return jacobian.T @ inner @ jacobian
