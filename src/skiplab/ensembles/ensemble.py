"""E networks of one architecture as one computation.

Only this room adds or removes the seed axis. Member i computes what the i-th module would compute alone; the
two backends give one result: ``batched`` maps the module over stacked states with ``torch.vmap``, ``loop``
visits the members in turn (faster for convolutions on a CPU).
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from skiplab.architectures.rectified import fused_by
from skiplab.checks import at_least, one_of, require
from skiplab.ensembles.layout import Layout
from skiplab.ensembles.normalised import fused_normalised
from skiplab.ensembles.rectified import fused_rectified
from skiplab.ensembles.stacking import Stack, drawn, stacked
from skiplab.ensembles.wide import wide_images
from skiplab.torch_private import tree_map

BACKENDS = ("auto", "batched", "loop")
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
UNMAPPED = (nn.RNNBase, nn.MultiheadAttention)  # torch.vmap cannot map, or not differentiate, these


class Ensemble:
    """Stacked networks: ``rows`` (E, row) holds the parameters, ``fixed`` buffers and frozen parameters."""

    def __init__(self, skeleton: nn.Module, rows: Tensor, fixed: dict[str, Tensor], backend: str) -> None:
        self.skeleton = skeleton
        self.layout = Layout.of(skeleton)
        self.rows = rows
        self.fixed = fixed
        self.backend = backend
        self._forward = self._losses

    def __repr__(self) -> str:
        name, count = type(self.skeleton).__name__, self.layout.count
        return f"Ensemble({self.size} × {name}, {count:,} parameters each, {self.backend})"

    @staticmethod
    def of(modules: Sequence[nn.Module], *, backend: str = "auto", device: Any = None) -> Ensemble:
        """Stack modules of the same architecture; their tensors are copied, the modules left alone."""
        require(len(modules) > 0, "an ensemble needs at least one network; pass a list of modules.")
        one_of("backend", backend, BACKENDS)
        first = modules[0]
        device = torch.device(device or next((p.device for p in first.parameters()), "cpu"))
        return Ensemble._stacked(copy.deepcopy(first), stacked(modules, device), backend, device)

    @staticmethod
    def drawn(
        draw: Callable[[int], nn.Module], size: int, *, backend: str = "auto", device: Any = "cpu"
    ) -> Ensemble:
        """Stack so many networks that ``draw(index)`` makes, as ``of`` would; side by side where a GPU waits.

        ``draw`` is called from several threads then, so it takes its numbers from generators of its own.
        """
        at_least("size", size, 1)
        one_of("backend", backend, BACKENDS)
        device = torch.device(device)
        first, stack = drawn(draw, size, device)
        return Ensemble._stacked(first, stack, backend, device)

    @staticmethod
    def _stacked(skeleton: nn.Module, stack: Stack, backend: str, device: torch.device) -> Ensemble:
        skeleton = skeleton.to(device)
        return Ensemble(skeleton, stack.rows, stack.fixed, _choose(backend, skeleton, device))

    @property
    def size(self) -> int:
        """Number of members E."""
        return self.rows.shape[0]

    @property
    def device(self) -> torch.device:
        """Where the members live."""
        return self.rows.device

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Named views of the trainable parameters, seed axis first."""
        return self.layout.unpack(self.rows)

    def train(self, mode: bool = True) -> Ensemble:
        """Set training mode (batch statistics, dropout) as ``nn.Module.train`` does."""
        self.skeleton.train(mode)
        return self

    def __call__(self, inputs: Tensor, *, shared: bool = True) -> Tensor:
        """Outputs (E, B, …) on one shared batch, or on a batch a member when not shared."""
        in_dims = (0, 0, None if shared else 0)
        # Fused kernels have first derivatives alone, and outputs may be differentiated any number of times.
        with self._wide(fused=not torch.is_grad_enabled()):
            return self.map(self.call_member, in_dims, self.parameters, self.fixed, inputs)

    def call_member(self, parameters: dict[str, Tensor], fixed: dict[str, Tensor], *inputs: Any) -> Any:
        """The pure function of one network: what the module computes from these states."""
        if self.backend == "loop":
            inputs = tuple(_channels_last(value) for value in inputs)
        return functional_call(self.skeleton, (parameters, fixed), inputs)

    def map(self, function: Callable[..., Any], in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """Map a function over members: arguments with in_dim 0 carry the seed axis, None are shared."""
        return map_members(function, in_dims, args, self.size, batched=self.backend == "batched")

    def gradients(
        self,
        inputs: Tensor,
        labels: Tensor,
        criterion: Callable[[Tensor, Tensor], Tensor],
        *,
        mixed: bool = False,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Losses (E,), outputs (E, B, …) and gradients (E, row) of each member on its own batch.

        Members share no parameter, so the gradient of the summed loss is every member's own gradient. ``mixed``
        computes products and convolutions in bfloat16, all else (parameters, losses, gradients) as it is.
        """
        if self.backend == "loop":
            each = [
                self._gradient_of(slice(i, i + 1), inputs, labels, criterion, mixed) for i in range(self.size)
            ]
            losses, outputs, rows = zip(*each, strict=True)
            return torch.cat(losses), torch.cat(outputs), torch.cat(rows)
        return self._gradient_of(slice(None), inputs, labels, criterion, mixed)

    def _gradient_of(
        self,
        members: slice,
        inputs: Tensor,
        labels: Tensor,
        criterion: Callable[[Tensor, Tensor], Tensor],
        mixed: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        rows = self.rows[members].detach().requires_grad_()
        fixed = {name: tensor[members] for name, tensor in self.fixed.items()}
        losses, outputs = self._forward(rows, fixed, inputs[members], labels[members], criterion, mixed)
        (gradient,) = torch.autograd.grad(losses.sum(), rows)
        return losses.detach(), outputs.detach(), gradient

    def _losses(
        self,
        rows: Tensor,
        fixed: dict[str, Tensor],
        inputs: Tensor,
        labels: Tensor,
        criterion: Callable[[Tensor, Tensor], Tensor],
        mixed: bool = False,
    ) -> tuple[Tensor, Tensor]:
        def loss_of(parameters: dict[str, Tensor], fixed: dict[str, Tensor], x: Tensor, y: Tensor) -> Any:
            if not mixed:
                output = self.call_member(parameters, fixed, x)
                return criterion(output, y), output
            # Without the cache of cast weights, which a CUDA graph would hold from its capture on.
            with torch.autocast(rows.device.type, torch.bfloat16, cache_enabled=False):
                output = self.call_member(parameters, fixed, x)
            output = output.to(rows.dtype)
            return criterion(output, y), output

        args = (self.layout.unpack(rows), fixed, inputs, labels)
        with self._wide(fused=True):
            return map_members(loss_of, (0, 0, 0, 0), args, len(rows), batched=self.backend == "batched")

    def compile(self) -> None:
        """Fuse the members' forward and backward passes into few GPU kernels from now on.

        It takes about 12 s for 30 layers and makes a step 1.4 times faster on an H200, so it pays for long
        training only. Wide convolutional networks stay as they are: as fast, and torch cannot compile them.
        """
        if not _convolutional(self.skeleton):
            self._forward = torch.compile(self._losses, dynamic=False)

    def _wide(self, *, fused: bool) -> contextlib.AbstractContextManager[Any]:
        stack = contextlib.ExitStack()
        if self.backend == "batched" and self.size > 1 and _convolutional(self.skeleton):
            stack.enter_context(wide_images())
            if fused:
                stack.enter_context(fused_by(fused_rectified, fused_normalised))
        return stack

    def member(self, index: int) -> nn.Module:
        """Member i as an ordinary module with its own tensors."""
        require(-self.size <= index < self.size, f"member {index} does not exist; there are {self.size}.")
        module = copy.deepcopy(self.skeleton)
        state = {name: tensor[index] for name, tensor in (self.parameters | self.fixed).items()}
        with torch.no_grad():
            for name, tensor in (*module.named_parameters(), *module.named_buffers()):
                tensor.copy_(state[name])
        return module

    def members(self) -> list[nn.Module]:
        """All members as ordinary modules."""
        return [self.member(index) for index in range(self.size)]

    def mapped(self, change: Callable[[nn.Module], nn.Module]) -> Ensemble:
        """The ensemble of what a function of one network, such as ``transfer.to_plain``, makes of each member."""
        changed = [change(member) for member in self.members()]
        return Ensemble.of(changed, backend=self.backend, device=self.device)

    def selected(
        self, members: Sequence[int], *, rows: Tensor | None = None, dtype: torch.dtype | None = None
    ) -> Ensemble:
        """Some members as an ensemble of their own, with their tensors copied.

        ``rows`` (E, row) gives them other parameters, such as those of an earlier epoch; ``dtype`` converts.
        """
        index = torch.as_tensor(list(members), device=self.device)
        dtype = dtype or self.rows.dtype
        chosen = (self.rows if rows is None else rows.to(self.device))[index].to(dtype)
        fixed = {
            name: tensor[index].to(dtype) if tensor.is_floating_point() else tensor[index]
            for name, tensor in self.fixed.items()
        }
        return Ensemble(copy.deepcopy(self.skeleton).to(dtype), chosen, fixed, self.backend)

    def save(self, path: Path) -> None:
        """Write all members to one safetensors file."""
        from safetensors.torch import save_file

        tensors = self.parameters | self.fixed
        save_file({name: tensor.contiguous().cpu() for name, tensor in tensors.items()}, path)

    @staticmethod
    def load(path: Path, like: nn.Module, *, backend: str = "auto", device: Any = "cpu") -> Ensemble:
        """Read members written by ``save``; ``like`` is any module of their architecture."""
        from safetensors.torch import load_file

        tensors = load_file(path)
        expected = {name: tensor.shape for name, tensor in (*like.named_parameters(), *like.named_buffers())}
        require(
            expected == {name: tensor.shape[1:] for name, tensor in tensors.items()},
            f"{path} holds another architecture than the {type(like).__name__} given; pass one built alike.",
        )
        layout = Layout.of(like)
        size = len(next(iter(tensors.values())))
        rows = [layout.pack({name: tensors[name][i] for name in layout.names}) for i in range(size)]
        fixed = {name: tensors[name].to(device) for name in tensors if name not in layout.names}
        skeleton = copy.deepcopy(like).to(device)
        backend = _choose(one_of("backend", backend, BACKENDS), skeleton, torch.device(device))
        return Ensemble(skeleton, torch.stack(rows).to(device), fixed, backend)


def map_members(
    function: Callable[..., Any],
    in_dims: tuple[int | None, ...],
    args: Sequence[Any],
    size: int,
    *,
    batched: bool,
) -> Any:
    """Map a function of one member over the seed axis, by vmap or one by one, and stack what it returns."""
    if batched and size > 1:
        return torch.vmap(function, in_dims=in_dims, randomness="different")(*args)

    def pick(arg: Any, dim: int | None, index: int) -> Any:
        return arg if dim is None else tree_map(lambda tensor: tensor[index], arg)

    results = [
        function(*[pick(arg, dim, index) for arg, dim in zip(args, in_dims, strict=True)])
        for index in range(size)
    ]
    if size == 1:  # unsqueeze is a view: a lone network pays nothing for the seed axis
        return tree_map(lambda tensor: tensor.unsqueeze(0), results[0])
    return tree_map(lambda *tensors: torch.stack(tensors), *results)


def _choose(backend: str, skeleton: nn.Module, device: torch.device) -> str:
    if backend != "auto":
        return backend
    in_turn = any(isinstance(module, UNMAPPED) for module in skeleton.modules())
    in_turn |= _convolutional(skeleton) and device.type == "cpu"
    return "loop" if in_turn else "batched"


def _convolutional(skeleton: nn.Module) -> bool:
    return any(isinstance(module, CONVOLUTIONS) for module in skeleton.modules())


def _channels_last(value: Any) -> Any:
    # The fast layout for convolutions on a CPU; on other inputs it has no meaning.
    if isinstance(value, Tensor) and value.ndim == 4 and value.device.type == "cpu":
        return value.contiguous(memory_format=torch.channels_last)
    return value
