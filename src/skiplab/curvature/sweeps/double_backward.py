"""Hessian products of any network: the gradient's graph is kept, and differentiated once a vector.

Since H is symmetric, Hv = ∇(gᵀv) is one backward pass through the graph of the gradient g, whose forward and
backward pass are done once. Measured on one core (2-D ResNets, an attention encoder, fully connected nets;
ten vectors a block) this was as fast as or faster than forward mode over reverse mode, which computes the
passes again for each block, and it needs fewer derivatives to exist.

The Gauss–Newton matrix is Jᵀ H_L J with J the Jacobian of the outputs and H_L the criterion's second derivative;
J v is the derivative in w of (Jᵀ w)ᵀ v.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from skiplab.checks import Refused, require
from skiplab.curvature.output_loss import output_loss, refuse_missing
from skiplab.curvature.sweeps.recording import Unsupported
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, target_of
from skiplab.subjects.failures import refuse_overwriting
from skiplab.subjects.subject import call_on_input
from skiplab.torch_private import is_weight_norm, times_written


class DoubleBackward:
    """Products with the curvature of one batch's loss, for members that are computed together."""

    name = "double backward"

    def __init__(self, subject: Subject, batch: Batch, names: tuple[str, ...], *, gauss_newton: bool) -> None:
        self._subject, self._batch, self._names = subject, batch, names
        self._gauss_newton = gauss_newton
        self._keep, self._in_blocks = True, True
        self._graph: _Gradient | _Outputs | None = None
        self._nbytes = 0

    def nbytes(self) -> int:
        """Memory that the kept graph takes."""
        self._current()
        return self._nbytes

    def first_derivatives(self) -> tuple[Tensor, Tensor, bool]:
        """As the function of this name, from the graph that products keep, where it is the gradient's."""
        if self._gauss_newton:
            return first_derivatives(self._subject, self._batch, self._names)
        graph = self._current()
        assert isinstance(graph, _Gradient)
        return graph.losses.detach(), graph.packed(graph.gradient, (self._subject.size,)), graph.depends

    def forget(self) -> None:
        """Keep no graph from now on; each product computes it again."""
        self._graph, self._keep = None, False

    def matrix(self, room: int) -> Tensor:
        """There is no faster way than products here."""
        raise Unsupported("a network that was not recorded")

    def product(self, vectors: Tensor) -> Tensor:
        """Multiply vectors (L, P): one for each member, or any number for a single network."""
        with explained(self._subject):
            graph = self._current()
            if len(vectors) == self._subject.size:
                return graph.product(vectors)
            if self._in_blocks:
                try:
                    with batched_unheard():
                        return graph.products(vectors)
                except (RuntimeError, NotImplementedError):
                    self._in_blocks = False  # some operation cannot take a block of vectors
            return torch.cat([graph.product(vector[None]) for vector in vectors])

    def _current(self) -> _Gradient | _Outputs:
        if self._graph is not None:
            return self._graph
        sizes: dict[int, int] = {}

        def note(tensor: Tensor) -> tuple[Tensor, int]:
            storage = tensor.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
            # The tensor itself would hold the node that saves it, a ring in which no graph is ever freed.
            return tensor.detach(), times_written(tensor)

        kind = _Outputs if self._gauss_newton else _Gradient
        with explained(self._subject), torch.autograd.graph.saved_tensors_hooks(note, _unchanged):
            graph = kind(self._subject, self._batch, self._names)
        self._nbytes = sum(sizes.values())
        if self._keep:
            self._graph = graph
        return graph


def _unchanged(saved: tuple[Tensor, int]) -> Tensor:
    """What was saved, if nobody wrote into it since: autograd itself does not look where saving has hooks."""
    tensor, written = saved
    if times_written(tensor) != written:
        raise RuntimeError("what a derivative needs was modified by an inplace operation")
    return tensor


class _Leaves:
    """Leaves for the parameters, and derivatives with respect to them."""

    def __init__(self, subject: Subject, names: tuple[str, ...]) -> None:
        self.leaves = [subject.parameters[name].detach().clone().requires_grad_() for name in names]
        named = dict(zip(names, self.leaves, strict=True))
        self.subject = replace(subject, parameters=subject.parameters | named)

    def unpacked(self, vectors: Tensor) -> list[Tensor]:
        """Cut vectors (…, P) into pieces of the parameters' shapes."""
        parts = vectors.split([leaf[0].numel() for leaf in self.leaves], dim=-1)
        pairs = zip(parts, self.leaves, strict=True)
        return [part.reshape(*vectors.shape[:-1], *leaf.shape[1:]) for part, leaf in pairs]

    def packed(self, found: Sequence[Tensor | None], lead: tuple[int, ...]) -> Tensor:
        """Put pieces together; what the loss does not depend on is zero."""
        parts = []
        for gradient, leaf in zip(found, self.leaves, strict=True):
            zero = leaf.new_zeros(*lead, leaf[0].numel()) if gradient is None else None
            parts.append(gradient.reshape(*lead, -1) if gradient is not None else zero)
        return torch.cat([part for part in parts if part is not None], dim=-1).detach()

    def product(self, vectors: Tensor) -> Tensor:
        """(E, P) → (E, P)."""
        raise NotImplementedError

    def products(self, vectors: Tensor) -> Tensor:
        """(k, P) → (k, P), a block of vectors for a single network."""
        raise NotImplementedError


class _Gradient(_Leaves):
    """The graph of the gradient."""

    def __init__(self, subject: Subject, batch: Batch, names: tuple[str, ...]) -> None:
        super().__init__(subject, names)
        self.losses = self.subject.map_models(lambda model: self.subject.loss_of(model, batch))
        self.depends = self.losses.requires_grad
        self.gradient = _gradients(self.losses.sum(), self.leaves, create_graph=True)

    def product(self, vectors: Tensor) -> Tensor:
        return self._product(vectors, in_blocks=False)

    def products(self, vectors: Tensor) -> Tensor:
        return self._product(vectors[:, None], in_blocks=True)[:, 0]

    def _product(self, vectors: Tensor, in_blocks: bool) -> Tensor:
        found = _gradients(self.gradient, self.leaves, self.unpacked(vectors), in_blocks=in_blocks)
        return self.packed(found, tuple(vectors.shape[:-1]))


class _Outputs(_Leaves):
    """The graph of the outputs, for the Gauss–Newton matrix."""

    def __init__(self, subject: Subject, batch: Batch, names: tuple[str, ...]) -> None:
        super().__init__(subject, names)
        self.outputs = self.subject.map_models(lambda model: _only_tensor(call_on_input(model, batch)))
        assert subject.criterion is not None
        self.head = output_loss(subject.criterion, self.outputs.detach(), target_of(batch))
        self.weights = torch.zeros_like(self.outputs, requires_grad=True)
        self.pulled = _gradients(self.outputs, self.leaves, self.weights, create_graph=True)

    def product(self, vectors: Tensor) -> Tensor:
        return self._product(vectors, in_blocks=False)

    def products(self, vectors: Tensor) -> Tensor:
        return self._product(vectors[:, None], in_blocks=True)[:, 0]

    def _product(self, vectors: Tensor, in_blocks: bool) -> Tensor:
        lead = tuple(vectors.shape[:-1])
        (moved,) = _gradients(self.pulled, [self.weights], self.unpacked(vectors), in_blocks=in_blocks)
        flat = None if moved is None else moved.reshape(-1, *self.outputs.shape[1:])
        curved = None if flat is None else self.head.product(flat)
        if curved is None:
            return torch.zeros_like(vectors)
        cotangent = curved.reshape(*lead, *self.outputs.shape[1:])
        return self.packed(_gradients(self.outputs, self.leaves, cotangent, in_blocks=in_blocks), lead)


def first_derivatives(subject: Subject, batch: Batch, names: tuple[str, ...]) -> tuple[Tensor, Tensor, bool]:
    """Losses (E,) and gradients (E, P) by autograd, and whether the loss depends on the parameters at all."""
    with explained(subject):
        graph = _Leaves(subject, names)
        losses = graph.subject.map_models(lambda model: graph.subject.loss_of(model, batch))
        found = _gradients(losses.sum(), graph.leaves)
        return losses.detach(), graph.packed(found, (subject.size,)), losses.requires_grad


@contextlib.contextmanager
def explained(subject: Subject) -> Iterator[None]:
    """Borrow the network with everything set for second derivatives; say in one sentence what prevents them."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(subject.borrowed())
        stack.enter_context(torch.enable_grad())
        stack.enter_context(torch.autocast(subject.device.type, enabled=False))
        # The other attention kernels have no second derivative.
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        stack.enter_context(_WrittenOut())
        try:
            yield
        except (RuntimeError, Refused) as error:
            cause = error.__cause__ if isinstance(error, Refused) else error  # what the network failed with
            if not isinstance(cause, RuntimeError):
                raise
            refuse_missing(cause)
            refuse_overwriting(cause)
            raise


class _WrittenOut(TorchFunctionMode):
    """Weight normalisation in single operations: torch 2.13's own second derivative takes the norm as constant."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if is_weight_norm(func):
            return _weight_norm(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    return v * (g / torch.norm_except_dim(v, 2, dim))


def _gradients(
    outputs: Tensor | Sequence[Tensor | None],
    inputs: Sequence[Tensor],
    weights: Any = None,
    *,
    create_graph: bool = False,
    in_blocks: bool = False,
) -> Sequence[Tensor | None]:
    """Derivatives of the outputs that depend on anything; None for inputs on which they do not depend."""
    outputs = [outputs] if isinstance(outputs, Tensor) else outputs
    weights = [weights] * len(outputs) if weights is None or isinstance(weights, Tensor) else weights
    live = [(y, w) for y, w in zip(outputs, weights, strict=True) if y is not None and y.requires_grad]
    if not live:
        return [None] * len(inputs)
    return torch.autograd.grad(
        [y for y, _ in live],
        inputs,
        [w for _, w in live],
        create_graph=create_graph,
        retain_graph=True,
        allow_unused=True,
        is_grads_batched=in_blocks,
    )


def _only_tensor(output: Any) -> Tensor:
    require(
        isinstance(output, Tensor),
        f"the network returns a {type(output).__name__}, not a tensor; Gauss–Newton products need one tensor.",
    )
    return output


@contextlib.contextmanager
def batched_unheard() -> Iterator[None]:
    """Without torch's remark that it takes the vectors of a block one by one, as would be done without a block."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="There is a performance drop")
        yield
