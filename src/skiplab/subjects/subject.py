"""The Subject: what every instrument measures, be it a user's module or an ensemble of ours.

``Subject.of(module | ensemble, criterion= | loss_fn=)`` gives the pure function, parameters, buffers, named
layers and blocks, and activities with their gradients, seed axis first. A user's module is borrowed, not
changed: its parameters, buffers, mode, hooks, gradients and the random state are as before when a call
returns or raises.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.parameter import is_lazy

from skiplab.checks import Refused, listed, no_such, one_of, require
from skiplab.ensembles.ensemble import Ensemble, map_members
from skiplab.subjects.batches import Batch, named_inputs, outside_inference_mode, target_of
from skiplab.subjects.blocks import Blocks, find_blocks, layer_names
from skiplab.subjects.failures import (
    PLAIN,
    inputs_of,
    refuse_criterion,
    refuse_forward,
    refuse_loss_call,
    refuse_overwriting,
)
from skiplab.subjects.hooks import After, Before, first_argument, visited, with_first_tensor
from skiplab.subjects.untouched import untouched
from skiplab.torch_private import saved_tensors_are_hooked, tree_map_only

Criterion = Callable[[Tensor, Tensor], Tensor]
LossFunction = Callable[[nn.Module, Batch], Tensor]


@dataclass(frozen=True)
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
        return Subject(*state, **losses, train_mode=train_mode, ensemble=isinstance(target, Ensemble))

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
        return self._activities(batch, layers, self.call)

    def _activities(
        self, batch: Batch, layers: Sequence[str] | None, call: Callable[[nn.Module, Batch], Any]
    ) -> dict[str, Tensor]:
        names = self._named(layers)
        seen: dict[str, Tensor] = {}

        def note(name: str, output: Tensor) -> Tensor:
            seen[name] = output.clone()  # a later in-place operation must not reach the noted values
            return output

        def run(model: nn.Module) -> dict[str, Tensor]:
            seen.clear()
            restart()
            call(model, batch)
            return dict(seen)

        with self.borrowed(names, note) as restart, torch.no_grad():
            found: dict[str, Tensor] = self.map_models(run)
        missing = [name for name in names if name not in found]
        if missing and (layers is not None or not found):
            raise Refused(f"layer {missing[0]!r} is not called on this batch; choose one that is.")
        return found

    def activity_gradients(self, batch: Batch, layers: Sequence[str] | None = None) -> dict[str, Tensor]:
        """Gradients ∂loss/∂x of the loss in the named layers' outputs, each (E, B, …)."""
        return self.differentiated(batch, layers, self.loss_of)[1][0]

    def differentiated(
        self,
        batch: Batch,
        layers: Sequence[str] | None,
        quantity: Callable[[nn.Module, Batch], Tensor],
        weights: Sequence[Tensor | None] = (None,),
    ) -> tuple[Tensor, list[dict[str, Tensor]]]:
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
            seen = self._activities(batch, layers, quantity)
            probes = {name: torch.zeros_like(x) for name, x in seen.items()}
            with self.borrowed(self._named(layers), add_probe) as restart:
                return self.map_gradients(run, probes, weights)

    def map_gradients(
        self,
        function: Callable[[nn.Module, dict[str, Tensor]], Tensor],
        leaves: dict[str, Tensor],
        weights: Sequence[Tensor | None] = (None,),
    ) -> tuple[Tensor, list[dict[str, Tensor]]]:
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

        def alone(model: nn.Module, own: dict[str, Tensor]) -> tuple[Tensor, list[dict[str, Tensor]]]:
            own = {name: tensor.detach().requires_grad_() for name, tensor in own.items()}
            values = function(model, own)
            # Inside the call, where the member's state is in the module: gradient checkpointing runs it again.
            return values.detach(), pulled_back(values, own)

        with torch.enable_grad():
            if not self.batched or self.size == 1:
                return self.map_models(alone, leaves)
            leaves = {name: tensor.detach().requires_grad_() for name, tensor in leaves.items()}
            values: Tensor = self.map_models(function, leaves)
            return values.detach(), pulled_back(values, leaves)

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

    def _named(self, layers: Sequence[str] | None) -> tuple[str, ...]:
        listed("layers", layers)
        names = self.blocks if layers is None else tuple(dict.fromkeys(layers))
        require(len(names) > 0, "there is no layer to look at; name one of the network's modules in layers.")
        known = dict(self.module.named_modules())
        for name in names:
            if name not in known:
                raise no_such("layer", name, known)
        return names

    def refuse_unless_finite(self, what: str, values: Tensor) -> None:
        """Refuse a lone network whose values are not finite; an ensemble's diverged members keep their NaN."""
        if not self.ensemble:
            require_finite(what, values)

    @contextlib.contextmanager
    def borrowed(
        self,
        names: Sequence[str] = (),
        visit: Callable[[str, Tensor], Tensor] | None = None,
        inputs_of: Collection[str] = (),
    ) -> Iterator[Callable[[], None]]:
        """Set the mode, hook the named layers, fix the random stream; undo all of it whatever happens.

        ``visit`` may change what a layer returns; of the layers in ``inputs_of`` it sees what they take instead.
        Yields a function that starts the count of each layer's calls anew, for the next member.
        """
        modes = {part: part.training for part in self.module.modules()}
        calls: dict[str, int] = {}

        def seen(name: str, tensor: Tensor) -> Tensor:
            calls[name] = calls.get(name, 0) + 1
            assert visit is not None
            return visit(name if calls[name] == 1 else f"{name}#{calls[name]}", tensor)

        def input_of(name: str) -> Before:
            def before(_: nn.Module, args: Any, kwargs: Any) -> None:
                seen(name, first_argument(args, kwargs))

            return before

        def output_of(name: str) -> After:
            return lambda _, __, ___, output: with_first_tensor(
                name, output, lambda tensor: seen(name, tensor)
            )

        parts = dict(self.module.named_modules())
        before = [(parts[name], input_of(name)) for name in names if name in inputs_of]
        after = [(parts[name], output_of(name)) for name in names if name not in inputs_of]
        devices = [self.device] if self.device.type == "cuda" else []
        with untouched(self.module), torch.random.fork_rng(devices=devices):
            # Dropout in training mode: fixed, and the caller's stream untouched. torch.manual_seed would also
            # seed other devices, whose state is not put back.
            torch.default_generator.manual_seed(0)
            for device in devices:
                with torch.cuda.device(device):
                    torch.cuda.manual_seed(0)
            try:
                for part in modes:
                    part.training = self.train_mode
                with visited(before=before, after=after):
                    yield calls.clear
            except RuntimeError as problem:
                if type(problem) is RuntimeError and "modified by an inplace operation" in str(problem):
                    refuse_overwriting(problem)
                raise
            finally:
                for part, mode in modes.items():
                    part.training = mode

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
    return one_of("mode", mode, ("eval", "train")) == "train"


def call_on_input(model: nn.Module, batch: Batch) -> Any:
    """What the model computes from the input part of a batch, of which it gets a copy that it may change in place."""
    if isinstance(batch, Mapping):
        inputs = _copies(named_inputs(batch, inputs_of(model)))
    else:
        inputs = _copies(batch[0] if isinstance(batch, tuple | list) else batch)
    try:
        return model(**inputs) if isinstance(batch, Mapping) else model(inputs)
    except PLAIN as problem:
        second = batch[1] if isinstance(batch, tuple | list) and len(batch) > 1 else None
        refuse_forward(problem, model, inputs, second)
        raise


def criterion_of(criterion: Criterion, output: Any, target: Any) -> Tensor:
    """What the criterion says of an output, be it a tensor or whatever else the network returns."""
    try:
        return criterion(output, target)
    except PLAIN as problem:
        refuse_criterion(problem, output, target)
        raise


def first_tensor(output: Any) -> Tensor | None:
    """The tensor in what a model returns, such as a dict's logits; a loss beside it, a number, does not count."""
    if isinstance(output, Tensor):
        return output
    parts = output.values() if isinstance(output, Mapping) else output
    several = parts if isinstance(output, Mapping | tuple | list) else ()
    return next((part for part in several if isinstance(part, Tensor) and part.ndim > 0), None)


def require_finite(what: str, values: Tensor) -> None:
    """Refuse values that are not all finite numbers."""
    if not bool(values.isfinite().all()):
        raise Refused(
            f"the {what} holds {values[~values.isfinite()][0].item()}, not a finite number; "
            "look for diverged parameters or inputs that are not finite."
        )


def _copies(inputs: Any) -> Any:
    return tree_map_only(Tensor, torch.clone, inputs)


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
