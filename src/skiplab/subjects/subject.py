"""The Subject: what every instrument measures, be it a user's module or an ensemble of ours.

``Subject.of(module | ensemble, criterion= | loss_fn=)`` gives the pure function, parameters, buffers, named
layers and blocks, and activities with their gradients, seed axis first. A user's module is borrowed, not
changed: its parameters, buffers, mode, hooks, gradients and the random state are as before when a call
returns or raises.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.parameter import is_lazy

from skiplab.checks import Refused, one_of, require
from skiplab.ensembles.ensemble import Ensemble, map_members
from skiplab.subjects.activities import Gradients, activities, differentiated, map_gradients
from skiplab.subjects.batches import Batch, target_of
from skiplab.subjects.blocks import Blocks, find_blocks, layer_names
from skiplab.subjects.borrowing import borrowed
from skiplab.subjects.calls import (
    Criterion,
    LossFunction,
    call_on_input,
    criterion_of,
    first_tensor,
    require_finite,
)
from skiplab.subjects.failures import refuse_loss_call

__all__ = [
    "Criterion",
    "LossFunction",
    "Subject",
    "call_on_input",
    "criterion_of",
    "first_tensor",
    "require_finite",
    "trains",
]


@dataclass(frozen=True, repr=False)
class Subject:
    """One network or many, with a loss; see ``Subject.of``.

    ``ensemble``: the networks are members of one, where some may have diverged; those have NaN in their results
    (spectra and singularities refuse the ensemble: select the others). A network given by itself is refused.
    """

    module: nn.Module
    parameters: dict[str, Tensor]
    fixed: dict[str, Tensor]
    size: int
    batched: bool
    criterion: Criterion | None
    loss_fn: LossFunction | None
    train_mode: bool
    ensemble: bool = False

    def __repr__(self) -> str:
        count = sum(tensor[0].numel() for tensor in self.parameters.values())
        many = f"{self.size} × " if self.ensemble else ""
        loss = "no loss" if not self.has_loss else f"loss by {self.criterion or 'loss_fn'}"
        mode = "train" if self.train_mode else "eval"
        return f"Subject({many}{type(self.module).__name__}, {count:,} parameters, {loss}, {mode} mode)"

    @staticmethod
    def of(
        target: nn.Module | Ensemble | Subject,
        *,
        criterion: Criterion | None = None,
        loss_fn: LossFunction | None = None,
        train_mode: bool | None = None,
    ) -> Subject:
        """Make a subject of a module or an ensemble, or one in another mode of a subject.

        ``criterion(output, target)`` goes with batches (input, target) or dicts with labels;
        ``loss_fn(model, batch) -> scalar`` with anything else. ``train_mode`` chooses what BatchNorm and
        dropout do, whatever mode the module is in; the default is a subject's own, else evaluation.
        """
        if isinstance(target, Subject):
            require(
                criterion is None and loss_fn is None,
                "a Subject has its loss already; give it to Subject.of when you make it.",
            )
            return target if train_mode is None else replace(target, train_mode=train_mode)
        require(
            criterion is None or loss_fn is None,
            "both criterion and loss_fn were given; pass the one that fits your batches.",
        )
        for name, given in (("criterion", criterion), ("loss_fn", loss_fn)):
            require(
                not isinstance(given, type),
                f"{name} is the class {getattr(given, '__name__', given)}; pass an instance of it, with brackets.",
            )
            require(
                given is None or callable(given), f"{name} is {given!r}, but must be a function or a module."
            )
        if isinstance(target, Ensemble):
            parameters = {name: tensor.detach() for name, tensor in target.parameters.items()}
            batched = target.backend == "batched"
            state = (target.skeleton, parameters, target.fixed, target.size, batched)
        elif isinstance(target, nn.Module):
            _refuse_without_values(target)
            trained = {n: p.detach()[None] for n, p in target.named_parameters() if p.requires_grad}
            frozen = {n: p.detach()[None] for n, p in target.named_parameters() if not p.requires_grad}
            buffers = {n: b.detach()[None] for n, b in target.named_buffers()}
            state = (target, trained, frozen | buffers, 1, False)
        else:
            raise Refused(f"a {type(target).__name__} was given; pass a torch.nn.Module or an Ensemble.")
        losses: dict[str, Any] = {"criterion": criterion, "loss_fn": loss_fn}
        return Subject(*state, **losses, train_mode=bool(train_mode), ensemble=isinstance(target, Ensemble))

    @property
    def has_loss(self) -> bool:
        """Whether a criterion or a loss function was given."""
        return self.criterion is not None or self.loss_fn is not None

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the modules that own parameters."""
        return layer_names(self.module)

    @property
    def blocks(self) -> tuple[str, ...]:
        """Names of the repeated blocks, input to output."""
        return self.structure.names

    @property
    def structure(self) -> Blocks:
        """The repeated blocks with stem, head and what lies between them: what is measured and what is left out."""
        return find_blocks(self.module)

    def members(self, part: slice) -> Subject:
        """The same subject with only some of its members."""
        parameters = {name: tensor[part] for name, tensor in self.parameters.items()}
        fixed = {name: tensor[part] for name, tensor in self.fixed.items()}
        return replace(self, parameters=parameters, fixed=fixed, size=len(range(self.size)[part]))

    def alone(self, index: int) -> Subject:
        """One member by itself, in a call of which autograd may differentiate."""
        return replace(self.members(slice(index, index + 1)), batched=False)

    def with_tensors(self, new: Mapping[str, Tensor]) -> Subject:
        """The subject with other tensors (E, …) in place of some of its own."""
        parameters, fixed = (
            {name: new.get(name, tensor) for name, tensor in part.items()}
            for part in (self.parameters, self.fixed)
        )
        return replace(self, parameters=parameters, fixed=fixed)

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
        return activities(self, batch, layers, self.call)

    def activity_gradients(self, batch: Batch, layers: Sequence[str] | None = None) -> dict[str, Tensor]:
        """Gradients ∂loss/∂x of the loss in the named layers' outputs, each (E, B, …)."""
        return self.differentiated(batch, layers, self.loss_of)[1][0]

    def differentiated(
        self,
        batch: Batch,
        layers: Sequence[str] | None,
        quantity: Callable[[nn.Module, Batch], Tensor],
        weights: Sequence[Tensor | None] = (None,),
    ) -> Gradients:
        """The values (E, …) of a quantity, and the gradients of its weighted sums in the named layers' outputs."""
        return differentiated(self, batch, layers, quantity, weights)

    def map_gradients(
        self,
        function: Callable[[nn.Module, dict[str, Tensor]], Tensor],
        leaves: dict[str, Tensor],
        weights: Sequence[Tensor | None] = (None,),
    ) -> Gradients:
        """The values (E, …) of a function of a model and of leaves (E, …), and its gradients in the leaves."""
        return map_gradients(self, function, leaves, weights)

    # How a network is called ------------------------------------------------------------------------------

    def map_models(self, function: Callable[..., Any], *per_member: Any) -> Any:
        """Map ``function(model, …)`` over the members; model is the module with a member's state in it."""

        def one(parameters: dict[str, Tensor], fixed: dict[str, Tensor], *rest: Any) -> Any:
            host = _Host(self.module, lambda model: function(model, *rest))
            state = {f"module.{name}": tensor for name, tensor in (parameters | fixed).items()}
            return functional_call(host, state, ())

        # Clones: a module in training mode writes its running statistics into what it is given, and a user's may
        # write parameters, as an embedding with max_norm does.
        fixed = {name: tensor.clone() for name, tensor in self.fixed.items()}
        parameters = self.parameters
        if not self.ensemble:
            parameters = {name: tensor.clone() for name, tensor in parameters.items()}
        args = (parameters, fixed, *per_member)
        return map_members(one, (0,) * len(args), args, self.size, batched=self.batched)

    def call(self, model: nn.Module, batch: Batch) -> Any:
        """Let the network compute on a batch: by the user's own loss function if there is one, else on the input."""
        if self.loss_fn is None:
            return call_on_input(model, batch)
        try:
            return self.loss_fn(model, batch)
        except TypeError as problem:
            refuse_loss_call(problem)
            raise

    def loss_of(self, model: nn.Module, batch: Batch) -> Tensor:
        """The scalar loss of one model on a batch."""
        if self.loss_fn is not None:
            loss = self.call(model, batch)
        elif self.criterion is not None:
            loss = criterion_of(self.criterion, call_on_input(model, batch), target_of(batch))
        else:
            raise Refused("this measurement needs a loss; pass criterion=… or loss_fn=….")
        if not isinstance(loss, Tensor) or loss.ndim != 0:
            shape = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
            raise Refused(f"the loss is {shape}, not a scalar; reduce it, say with .mean().")
        return loss

    def refuse_unless_finite(self, what: str, values: Tensor) -> None:
        """Refuse a lone network whose values are not finite; an ensemble's diverged members keep their NaN."""
        if not self.ensemble:
            require_finite(what, values)

    def borrowed(
        self,
        names: Sequence[str] = (),
        visit: Callable[[str, Tensor], Tensor] | None = None,
        inputs_of: Collection[str] = (),
    ) -> contextlib.AbstractContextManager[Callable[[], None]]:
        """The module in the subject's mode, its named layers seen by ``visit``; see ``borrowing.borrowed``."""
        return borrowed(self.module, names, visit, inputs_of, train_mode=self.train_mode, device=self.device)

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


def trains(mode: str) -> bool:
    """Whether a measurement's mode is "train" and not "eval"; refuse others."""
    require(
        mode != "batch",
        "mode is 'batch', for measurements that look at samples one by one; choose 'train', which takes the batch's "
        "own statistics too, or 'eval'.",
    )
    return one_of("mode", mode, ("eval", "train")) == "train"


def _refuse_without_values(module: nn.Module) -> None:
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        require(
            not is_lazy(tensor),
            f"{name!r} has no shape yet; run the network once on a batch, then measure it.",
        )
        require(
            not tensor.is_meta,
            f"{name!r} is on the meta device, without values; load some first, say with to_empty.",
        )
