"""What skiplab uses of torch that torch does not promise to keep: each private name in one place, with a test.

Names are looked up when they are used, so that a torch without one breaks what needs it and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

# Nested tuples, lists and dicts ---------------------------------------------------------------------------


def tree_leaves(tree: Any) -> list[Any]:
    """What nested tuples, lists and dicts hold, in order."""
    return torch.utils._pytree.tree_leaves(tree)


def tree_map(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """The same nesting with a function of each leaf, or of the leaves in the same place of several trees."""
    return torch.utils._pytree.tree_map(function, tree, *others)


def tree_map_only(kind: type, function: Callable[[Any], Any], tree: Any) -> Any:
    """The same nesting with a function of each leaf of a kind; other leaves stay."""
    return torch.utils._pytree.tree_map_only(kind, function, tree)


def tree_flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves, and the nesting, with which ``tree_unflatten`` puts them together again."""
    return torch.utils._pytree.tree_flatten(tree)


def tree_unflatten(leaves: list[Any], nesting: Any) -> Any:
    """Leaves in the nesting that ``tree_flatten`` found."""
    return torch.utils._pytree.tree_unflatten(leaves, nesting)


# What torch is doing right now ----------------------------------------------------------------------------


def is_batched(tensor: Tensor) -> bool:
    """Whether ``torch.vmap`` maps over the tensor, which hides its values."""
    return torch._C._functorch.is_batchedtensor(tensor)


def is_transformed(tensor: Tensor) -> bool:
    """Whether ``torch.vmap`` maps over the tensor or ``torch.func`` differentiates by it."""
    return torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def saved_tensors_are_hooked() -> bool:
    """Whether someone, such as a checkpoint, has hooks on what autograd saves for the backward pass."""
    return bool(torch._C._autograd._top_saved_tensors_default_hooks(False))


def without_subclasses() -> Any:
    """A context in which functions called with a subclass of Tensor do what they do with a Tensor."""
    return torch._C.DisableTorchFunctionSubclass()


# Functions and modules ------------------------------------------------------------------------------------


def is_weight_norm(function: Callable[..., Any]) -> bool:
    """Whether a function is that of torch's weight normalisation, (v, g, dim) → g v / ‖v‖."""
    return function is torch._weight_norm


def is_batch_norm(part: nn.Module) -> bool:
    """Whether a module is one of torch's batch normalisations, of any dimension, synchronised or lazy."""
    return isinstance(part, nn.modules.batchnorm._BatchNorm)


def is_instance_norm(part: nn.Module) -> bool:
    """Whether a module is one of torch's instance normalisations."""
    return isinstance(part, nn.modules.instancenorm._InstanceNorm)


def is_compiled(part: nn.Module) -> bool:
    """Whether a module is what torch.compile returns, or was compiled in place by ``module.compile()``."""
    return (
        getattr(part, "_orig_mod", None) is not None or getattr(part, "_compiled_call_impl", None) is not None
    )


def own_parameters(part: nn.Module) -> dict[str, nn.Parameter | None]:
    """A module's own parameters as it keeps them: a tied one under each of its names, None where there is none."""
    return part._parameters


def own_modules(part: nn.Module) -> dict[str, nn.Module | None]:
    """A module's own submodules as it keeps them, under each of their names; a change here changes the module."""
    return part._modules


def has_hooks(part: nn.Module) -> bool:
    """Whether someone is called before or after a module's forward pass, or after its backward pass."""
    kinds = (part._forward_hooks, part._forward_pre_hooks, part._backward_hooks, part._backward_pre_hooks)
    return any(kinds)


def uncompiled(module: nn.Module) -> nn.Module:
    """The module that ``torch.compile`` was given, where the module is what it returned."""
    inner = getattr(module, "_orig_mod", None)
    return inner if isinstance(inner, nn.Module) else module


def convolution(layer: nn.Conv1d | nn.Conv2d | nn.Conv3d, x: Tensor, weight: Tensor) -> Tensor:
    """What a convolution makes of x with another kernel and without bias; padded, strided and grouped as it is."""
    return layer._conv_forward(x, weight, None)


def native(name: str, *values: Any) -> Any:
    """Call a function of torch's core that has no public name, or raise AttributeError in versions without it."""
    return getattr(torch._C, name)(*values)


# Memory ---------------------------------------------------------------------------------------------------


def storage_id(tensor: Tensor) -> int:
    """A number that tensors share if and only if they share memory; a tensor on "meta" has no address to go by."""
    return tensor.untyped_storage()._cdata


def times_written(tensor: Tensor) -> int:
    """How often a tensor's memory was written in place, by itself, its views and what was detached from it."""
    return tensor._version


def private_pools(device: torch.device) -> dict[tuple[int, int], int]:
    """By the private pools of a GPU's memory, such as CUDA graphs have: bytes in them that no tensor takes."""
    if torch.cuda.get_allocator_backend() != "native":  # others know no pools, and refuse the question
        return {}
    index = torch.cuda.current_device() if device.index is None else device.index
    found: dict[tuple[int, int], int] = {}
    for segment in torch.cuda.memory_snapshot():
        pool = segment["segment_pool_id"]
        if segment["device"] == index and pool != (0, 0):
            found[pool] = found.get(pool, 0) + segment["total_size"] - segment["allocated_size"]
    return found
