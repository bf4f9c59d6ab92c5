"""The Subject: what every instrument measures, be it a user's module or an ensemble of ours.

``Subject.of(module | ensemble, criterion= | loss_fn=)`` gives the pure function, parameters, buffers, named
layers and blocks, and activities with their gradients, seed axis first. A user's module is borrowed, not
changed: its parameters, buffers, mode, hooks, gradients and the random state are as before when a call
returns or raises.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils import _pytree as pytree

from skiplab.checks import Refused, listed, near, require
from skiplab.ensembles.ensemble import Ensemble, map_members
from skiplab.ensembles.tracing import block_names, layer_names

Batch = Any
Criterion = Callable[[Tensor, Tensor], Tensor]
LossFunction = Callable[[nn.Module, Batch], Tensor]
LABEL_KEYS = ("labels", "label", "target", "targets", "y")


@dataclass(frozen=True)
class Subject:
    """One network or many, with a loss; see ``Subject.of``."""

    module: nn.Module
    parameters: dict[str, Tensor]
    fixed: dict[str, Tensor]
    size: int
    batched: bool
    criterion: Criterion | None
    loss_fn: LossFunction | None
    train_mode: bool

    @staticmethod
    def of(
        target: nn.Module | Ensemble | Subject,
        *,
        criterion: Criterion | None = None,
        loss_fn: LossFunction | None = None,
        train_mode: bool = False,
    ) -> Subject:
        """Make a subject of a module or an ensemble.

        ``criterion(output, target)`` goes with batches (input, target) or dicts with labels;
        ``loss_fn(model, batch) -> scalar`` with anything else. ``train_mode`` chooses what BatchNorm and
        dropout do, whatever mode the module is in; the default is evaluation.
        """
        if isinstance(target, Subject):
            require(
                criterion is None and loss_fn is None and (target.train_mode or not train_mode),
                "a Subject has its loss and mode already; give them to Subject.of when you make it.",
            )
            return target
        require(
            criterion is None or loss_fn is None,
            "both criterion and loss_fn were given; pass the one that fits your batches.",
        )
        if isinstance(target, Ensemble):
            parameters = {name: tensor.detach() for name, tensor in target.parameters.items()}
            batched = target.backend == "batched"
            state = (target.skeleton, parameters, target.fixed, target.size, batched)
        elif isinstance(target, nn.Module):
            trained = {n: p.detach()[None] for n, p in target.named_parameters() if p.requires_grad}
            frozen = {n: p.detach()[None] for n, p in target.named_parameters() if not p.requires_grad}
            buffers = {n: b.detach()[None] for n, b in target.named_buffers()}
            state = (target, trained, frozen | buffers, 1, False)
        else:
            raise Refused(f"a {type(target).__name__} was given; pass a torch.nn.Module or an Ensemble.")
        return Subject(*state, criterion=criterion, loss_fn=loss_fn, train_mode=train_mode)

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the modules that own parameters."""
        return layer_names(self.module)

    @property
    def blocks(self) -> tuple[str, ...]:
        """Names of the repeated blocks, input to output."""
        return block_names(self.module)

    def members(self, part: slice) -> Subject:
        """The same subject with only some of its members."""
        parameters = {name: tensor[part] for name, tensor in self.parameters.items()}
        fixed = {name: tensor[part] for name, tensor in self.fixed.items()}
        return replace(self, parameters=parameters, fixed=fixed, size=len(range(self.size)[part]))

    def outputs(self, batch: Batch) -> Tensor:
        """What the networks compute from the batch's input, seed axis first."""
        with self.borrowed(), torch.no_grad():
            return self.map_models(lambda model: call_on_input(model, batch))

    def losses(self, batch: Batch) -> Tensor:
        """The loss of every member on the batch, (E,)."""
        with self.borrowed(), torch.no_grad():
            return self.map_models(lambda model: self.loss_of(model, batch))

    def activities(self, batch: Batch, layers: Sequence[str] | None = None) -> dict[str, Tensor]:
        """Outputs of the named layers (default: the blocks), each (E, B, …).

        A layer that is called n times in one pass appears as ``name``, ``name#2``, … ``name#n``. A block that
        the pass does not call is left out; a layer that was asked for by name and is not called is refused.
        """
        names = self._named(layers)
        seen: dict[str, Tensor] = {}

        def note(name: str, output: Tensor) -> Tensor:
            seen[name] = output.clone()  # a later in-place operation must not reach the noted values
            return output

        def run(model: nn.Module) -> dict[str, Tensor]:
            seen.clear()
            restart()
            if self.loss_fn is not None:
                self.loss_fn(model, batch)
            else:
                call_on_input(model, batch)
            return dict(seen)

        with self.borrowed(names, note) as restart, torch.no_grad():
            found: dict[str, Tensor] = self.map_models(run)
        missing = [name for name in names if name not in found]
        if missing and (layers is not None or not found):
            raise Refused(f"layer {missing[0]!r} is not called on this batch; choose one that is.")
        return found

    def activity_gradients(self, batch: Batch, layers: Sequence[str] | None = None) -> dict[str, Tensor]:
        """Gradients ∂loss/∂x of the loss in the named layers' outputs, each (E, B, …).

        A zero is added to every output and the loss differentiated in it, which works for any module, under
        vmap and in a loop.
        """
        with torch.inference_mode(False):  # in a caller's inference mode all gradients would be 0
            return self._activity_gradients(_usable(batch), layers)

    def _activity_gradients(self, batch: Batch, layers: Sequence[str] | None) -> dict[str, Tensor]:
        shapes = self.activities(batch, layers)
        probes = {name: torch.zeros_like(x).requires_grad_() for name, x in shapes.items()}
        current: dict[str, Tensor] = {}

        def run(model: nn.Module, members_probes: dict[str, Tensor]) -> Tensor:
            current.update(members_probes)
            restart()
            return self.loss_of(model, batch)

        def add_probe(name: str, output: Tensor) -> Tensor:
            # A checkpoint records nothing or, if it is not reentrant, has hooks on what autograd saves; what it
            # computes again in the backward pass has neither our probes nor a member's state.
            if not torch.is_grad_enabled() or torch._C._autograd._top_saved_tensors_default_hooks(False):
                raise Refused(
                    f"layer {name!r} runs inside gradient checkpointing, which hides activities from gradients; "
                    "switch it off to measure them."
                )
            return output + current[name]

        # Gradients are asked for even where the caller has switched them off.
        with self.borrowed(self._named(layers), add_probe) as restart, torch.enable_grad():
            total = self.map_models(run, probes).sum()
            found: Sequence[Tensor | None] = [None] * len(probes)
            if total.requires_grad:  # else the loss depends on none of these layers
                found = torch.autograd.grad(total, list(probes.values()), allow_unused=True)
        zero = torch.zeros_like
        return {
            name: zero(probe) if gradient is None else gradient
            for (name, probe), gradient in zip(probes.items(), found, strict=True)
        }

    # How a network is called ------------------------------------------------------------------------------

    def map_models(self, function: Callable[..., Any], *per_member: Any) -> Any:
        """Map ``function(model, …)`` over the members; model is the module with a member's state in it."""

        def one(parameters: dict[str, Tensor], fixed: dict[str, Tensor], *rest: Any) -> Any:
            host = _Host(self.module, lambda model: function(model, *rest))
            state = {f"module.{name}": tensor for name, tensor in (parameters | fixed).items()}
            return functional_call(host, state, ())

        # Clones: a module in training mode writes its running statistics into what it is given.
        fixed = {name: tensor.clone() for name, tensor in self.fixed.items()}
        args = (self.parameters, fixed, *per_member)
        return map_members(one, (0,) * len(args), args, self.size, batched=self.batched)

    def loss_of(self, model: nn.Module, batch: Batch) -> Tensor:
        """The scalar loss of one model on a batch."""
        if self.loss_fn is not None:
            loss = self.loss_fn(model, batch)
        elif self.criterion is not None:
            loss = self.criterion(call_on_input(model, batch), target_of(batch))
        else:
            raise Refused("this measurement needs a loss; pass criterion=… or loss_fn=….")
        if not isinstance(loss, Tensor) or loss.ndim != 0:
            shape = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
            raise Refused(f"the loss is {shape}, not a scalar; reduce it, say with .mean().")
        return loss

    def _named(self, layers: Sequence[str] | None) -> tuple[str, ...]:
        listed("layers", layers)
        names = self.blocks if layers is None else tuple(dict.fromkeys(layers))
        require(len(names) > 0, "there is no layer to look at; name one of the network's modules in layers.")
        known = dict(self.module.named_modules())
        for name in names:
            if name not in known:
                raise Refused(f"layer {name!r} does not exist in the network.{near(name, known)}")
        return names

    @contextlib.contextmanager
    def borrowed(
        self, names: Sequence[str] = (), visit: Callable[[str, Tensor], Tensor] | None = None
    ) -> Iterator[Callable[[], None]]:
        """Set the mode, hook the named layers, fix the random stream; undo all of it whatever happens.

        Yields a function that starts the count of each layer's calls anew, for the next member.
        """
        modes = {part: part.training for part in self.module.modules()}
        calls: dict[str, int] = {}
        handles = []

        def hook_for(name: str) -> Callable[[nn.Module, Any, Any], Any]:
            def hook(_: nn.Module, __: Any, output: Any) -> Any:
                calls[name] = calls.get(name, 0) + 1
                key = name if calls[name] == 1 else f"{name}#{calls[name]}"
                assert visit is not None
                return _on_first_tensor(name, output, lambda tensor: visit(key, tensor))

            return hook

        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            # Dropout in training mode: fixed, and the caller's stream untouched. torch.manual_seed would also
            # seed other devices, whose state is not put back.
            torch.default_generator.manual_seed(0)
            for device in devices:
                with torch.cuda.device(device):
                    torch.cuda.manual_seed(0)
            try:
                parts = dict(self.module.named_modules())
                handles = [parts[name].register_forward_hook(hook_for(name)) for name in names]
                for part in modes:
                    part.training = self.train_mode
                yield calls.clear
            finally:
                for part, mode in modes.items():
                    part.training = mode
                for handle in handles:
                    handle.remove()

    @property
    def device(self) -> torch.device:
        """Where the networks live."""
        tensors = (*self.parameters.values(), *self.fixed.values())
        return tensors[0].device if tensors else torch.device("cpu")


class _Host(nn.Module):
    """Carries a module so that ``functional_call`` can hand it, with other states, to any function."""

    def __init__(self, module: nn.Module, function: Callable[[nn.Module], Any]) -> None:
        super().__init__()
        self.module = module
        self.function = function

    def forward(self) -> Any:
        return self.function(self.module)


def batches_of(batches: Batch | Iterable[Batch]) -> Iterator[Batch]:
    """Iterate over batches; a lone batch (tuple, dict, tensor or list of tensors) counts as one."""
    is_list_of_tensors = isinstance(batches, list) and all(isinstance(part, Tensor) for part in batches)
    if isinstance(batches, tuple | Mapping | Tensor) or (is_list_of_tensors and batches):
        yield batches
        return
    empty = True
    for batch in batches:
        empty = False
        yield batch
    require(not empty, "there was no batch to measure on; pass a batch or a loader with at least one.")


def batch_size(batch: Batch) -> int:
    """Number of samples in a batch: the length of its first tensor."""
    several = batch.values() if isinstance(batch, Mapping) else batch
    for part in several if isinstance(batch, Mapping | tuple | list) else [batch]:
        if isinstance(part, Tensor):
            return len(part)
    raise Refused(f"a batch of type {type(batch).__name__} holds no tensor; pass (input, target) or a dict.")


def call_on_input(model: nn.Module, batch: Batch) -> Any:
    """What the model computes from the input part of a batch, of which it gets a copy that it may change in place."""
    if isinstance(batch, Mapping):
        return model(**_copies({name: value for name, value in batch.items() if name not in LABEL_KEYS}))
    inputs = _copies(batch[0] if isinstance(batch, tuple | list) else batch)
    try:
        return model(inputs)
    except TypeError as problem:
        missing = re.search(r"forward\(\) missing .* required positional arguments?: (.*)", str(problem))
        if missing is None:
            raise
        raise Refused(
            f"the network takes {missing[1]} beside its first input; pass batches as dicts of all inputs by name."
        ) from problem


def _usable(batch: Batch) -> Batch:
    """The batch with copies of tensors made in inference mode, which take no part in derivatives."""
    return pytree.tree_map_only(Tensor, lambda x: x.clone() if x.is_inference() else x, batch)


def _copies(inputs: Any) -> Any:
    return pytree.tree_map_only(Tensor, torch.clone, inputs)


def target_of(batch: Batch) -> Tensor:
    """The target part of a batch."""
    if isinstance(batch, Mapping):
        for name in LABEL_KEYS:
            if name in batch:
                return batch[name]
        raise Refused(
            f"the batch has no labels among {', '.join(batch)}; name them 'labels' or pass loss_fn."
        )
    if isinstance(batch, tuple | list) and len(batch) == 2:
        return batch[1]
    raise Refused("criterion needs batches (input, target) or dicts with labels; pass loss_fn for others.")


def _on_first_tensor(name: str, output: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(output, Tensor):
        return change(output)
    if isinstance(output, tuple) and output and isinstance(output[0], Tensor):
        parts = (change(output[0]), *output[1:])
        return type(output)(*parts) if hasattr(output, "_fields") else parts
    raise Refused(f"layer {name!r} returns a {type(output).__name__}, not a tensor; choose another layer.")
