"""Products with the Hessian of a loss, or with its Gauss–Newton or Fisher matrix, without forming the matrix.

H = ∂²L/∂θ∂θ for the parameters θ of the chosen layers of each member, where L is

- with a criterion whose ``reduction`` is "mean" (or that names none): the mean over all samples of all batches;
  a batch counts by what its own mean divides by, so unequal batches, class weights and ignored targets are right;
- with ``reduction="sum"``: the sum over all samples of all batches;
- with ``loss_fn``: the mean of the batches' losses, each weighted by its number of samples.

The Gauss–Newton matrix is Σ Jᵀ (∂²L/∂f²) J with J the Jacobian of the outputs f, the Fisher matrix that of the
distribution whose negative log-likelihood the criterion is; for the losses where it is offered the two agree
(Martens 2020). Everything is exact: Pearlmutter's (1994) sweeps by hand where ``forward_mode`` has rules for all
of the network, a second backward pass otherwise; no finite differences.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor, nn

from skiplab import linear_algebra as la
from skiplab.checks import Refused, one_of, require, whole_numbers
from skiplab.curvature.agreement import close
from skiplab.curvature.chosen_parameters import chosen_parameters
from skiplab.curvature.merging import can_be_merged, joined, merged
from skiplab.curvature.output_loss import kept_criterion, kind_of, mass, reduction, require_likelihood
from skiplab.curvature.sweeps.double_backward import DoubleBackward, first_derivatives
from skiplab.curvature.sweeps.forward_mode import ForwardMode
from skiplab.curvature.sweeps.recording import Unsupported
from skiplab.curvature.sweeps.replayed import ProductGraphs, Replayed
from skiplab.curvature.sweeps.unit_sweeps import ON_CPU, ON_GPU
from skiplab.curvature.sweeps.workspace import Workspace
from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batch_size, batches_of
from skiplab.subjects.normalisation import chosen_mode
from skiplab.subjects.subject import Criterion, LossFunction, require_finite, trains

KINDS = ("hessian", "gauss_newton", "fisher")
# On a CPU: what is kept of the networks' passes in all, and what one pass of vectors may take besides (more than
# some caches full made it slower). On a GPU both are a part of the memory that is free.
KEPT_BYTES, PASS_BYTES = 2 << 30, 64 << 20
# Up to which size small batches are put together on a CPU: 5,000 samples of 30 × 128 units, on which a product is a
# tenth faster than on 1,000 at a time, and much faster than on 500.
MERGED_BYTES = 256 << 20

# What says that products cannot go by hand; the latter two where an operation has no batched form for torch.vmap.
NOT_BY_HAND = (Unsupported, RuntimeError, Refused)


class Route(Protocol):
    """One way to the products of some members on one batch."""

    name: str

    def product(self, vectors: Tensor) -> Tensor:
        """Multiply (L, P), one vector a member or any number for a single network."""

    def nbytes(self) -> int:
        """Memory of what is kept between products."""

    def matrix(self, room: int) -> Tensor:
        """The whole matrix (P, P) of a single network faster than by products, or Unsupported.

        ``room`` is about how many bytes may be used on the way.
        """

    def forget(self) -> None:
        """Keep nothing between products from now on."""


class HessianProduct:
    """The curvature of a loss as a symmetric operator on vectors (E, k, P).

    A vector holds the trainable parameters of the named ``layers`` and their parts (default: of the whole network; a
    name may be that of a parameter), tied ones once, in the order of ``names``: as listed; by default a module's own
    order, and for an ensemble its rows' order, matrices before vectors. The network, the batches and the dropout
    are fixed when the operator is made: training on changes nothing, ``mode``, "eval" or "train", decides what
    BatchNorm and dropout do, and a loader is read once. Parameters, buffers and a criterion that is a module are
    copied. Batches, which may be large, are kept without a copy, and so is whatever a loss function reads: leave
    their tensors as they are while the operator is in use, or products may mix old and new numbers.

    ``chunk`` is how many products (vectors, or members of an ensemble) are computed at once; by default as many
    as memory allows. Vectors are cast to the network's precision, answers back to the vectors'.

    >>> product = HessianProduct(model, (x, y), criterion=torch.nn.CrossEntropyLoss())
    >>> product(torch.randn(1, 10, product.dimension)).shape  # ten vectors at once
    torch.Size([1, 10, 139])
    """

    def __init__(
        self,
        target: nn.Module | Ensemble | Subject,
        batches: Batch | Iterable[Batch],
        *,
        criterion: Criterion | None = None,
        loss_fn: LossFunction | None = None,
        kind: str = "hessian",
        layers: Sequence[str] | None = None,
        mode: str | None = None,
        chunk: int | None = None,
    ) -> None:
        require(
            not torch.is_inference_mode_enabled(),
            "torch.inference_mode is on, where no derivative exists; leave it, or use torch.no_grad.",
        )
        mode = chosen_mode(target, mode, "train")
        subject = Subject.of(target, criterion=criterion, loss_fn=loss_fn, train_mode=trains(mode))
        self.kind = one_of("kind", kind, KINDS)
        if chunk is not None:
            whole_numbers(chunk=chunk)
        self.names = chosen_parameters(subject, layers)
        self.shapes = tuple(subject.parameters[name].shape[1:] for name in self.names)
        self.dimension = sum(shape.numel() for shape in self.shapes)
        self.size = subject.size
        first = subject.parameters[self.names[0]]
        self.dtype, self.device = first.dtype, first.device
        if kind != "hessian":
            require(
                subject.criterion is not None,
                f"kind {kind!r} needs the network's outputs; pass criterion=… and not loss_fn=….",
            )
        if kind == "fisher":
            require_likelihood(subject.criterion)
        # Copies, since the parameters are shared with the user's module, which may be trained on.
        subject = replace(
            subject,
            parameters=_cloned(subject.parameters),
            fixed=_cloned(subject.fixed),
            criterion=kept_criterion(subject.criterion, subject.module),
        )
        given = list(batches_of(batches))
        self.samples = sum(batch_size(batch) for batch in given)
        # A batch whose targets are all ignored adds nothing, but its own mean is 0/0.
        weighted = zip(given, _weights(subject.criterion, given), strict=True)
        given = [batch for batch, weight in weighted if weight != 0]
        self._losses = torch.zeros(self.size, dtype=self.dtype, device=self.device)
        self._gradient = torch.zeros(self.size, self.dimension, dtype=self.dtype, device=self.device)
        self._space = Workspace()
        self._graphs = ProductGraphs(f"{kind} in {ForwardMode.name}, {kind_of(subject.criterion)}")
        given = self._merged(subject, given)
        weights = _weights(subject.criterion, given)
        self._parts: list[tuple[slice, float, Route]] = []
        together = 1
        if subject.batched and self.size > 1:
            alone = self._route(subject.members(slice(0, 1)), given[0])[0]
            together = chunk or self._fitting(alone.nbytes())
        largest = self._prepare(subject, given, weights, min(together, self.size))
        self._chunk = chunk or self._fitting(largest)

    def __repr__(self) -> str:
        many = f"{self.size} networks, " if self.size > 1 else ""
        samples = f"{self.samples:,} samples"
        return f"HessianProduct({self.kind} of {many}{self.dimension:,} parameters, {samples}, {self.route})"

    @property
    def route(self) -> str:
        """How products are computed: "forward mode", "double backward", or both where batches differ.

        Where a GPU starts forward mode's kernels one by one, although products could be replayed from CUDA graphs, it
        also says why.
        """
        reasons = {route.why_not for _, _, route in self._parts if isinstance(route, Replayed)} - {""}
        names = " and ".join(sorted({route.name for _, _, route in self._parts}))
        return f"{names}, kernel by kernel: {'; '.join(sorted(reasons))}" if reasons else names

    @property
    def by_hand(self) -> bool:
        """Whether all products are those of forward mode, whose rules are symmetric."""
        return all(route.name == ForwardMode.name for _, _, route in self._parts)

    def loss(self) -> Tensor:
        """The loss L of every member, (E,)."""
        return self._losses.clone()

    def gradient(self) -> Tensor:
        """The gradient ∂L/∂θ of every member, (E, P)."""
        return self._gradient.clone()

    def __call__(self, vectors: Tensor) -> Tensor:
        """Multiply k vectors for each member, (E, k, P) → (E, k, P)."""
        require(
            isinstance(vectors, Tensor) and vectors.is_floating_point(),
            f"vectors are {vectors.dtype if isinstance(vectors, Tensor) else type(vectors).__name__}; "
            "give a tensor of real numbers, say torch.float64.",
        )
        require(
            vectors.ndim == 3 and vectors.shape[0] == self.size and vectors.shape[2] == self.dimension,
            f"vectors have shape {tuple(vectors.shape)}, but must have ({self.size}, k, {self.dimension}).",
        )
        cast = vectors.detach().to(device=self.device, dtype=self.dtype)
        if len(self._parts) == 1 and cast.shape[1] <= (self._chunk if self.size == 1 else 1):
            # One pass is the answer: adding it to zeros would write a large network's vector twice more.
            ((_, weight, route),) = self._parts
            found = route.product(cast.flatten(0, 1)).view_as(cast)
            found = found if weight == 1 else weight * found
            return found.to(device=vectors.device, dtype=vectors.dtype)
        answer = torch.zeros_like(cast)
        for members, weight, route in self._parts:
            # A pass takes many vectors of one network, or one vector of each of many networks.
            lone = members.stop - members.start == 1
            step = self._chunk if lone else 1
            for start in range(0, cast.shape[1], step):
                block = cast[members, start : start + step]
                found = route.product(block.flatten(0, 1)).view_as(block)
                answer[members, start : start + step] += weight * found
        return answer.to(device=vectors.device, dtype=vectors.dtype)

    def matrix(self) -> Tensor:
        """The matrices themselves, (E, P, P) in float64.

        A single network of linear layers takes a sweep a unit (``unit_sweeps``), if the result multiplies a random
        vector as the operator does; anything else a product a column.
        """
        la.require_room(self.dimension, self.size, self.device)
        if self.size == 1:
            try:
                return self._matrix_by_units()[None]
            except Unsupported:
                pass
        return la.dense_matrix(self, self.dimension, lead=(self.size,), dtype=self.dtype, device=self.device)

    def _matrix_by_units(self) -> Tensor:
        room = ON_CPU
        if self.device.type == "cuda":  # a fixed number where there is enough, for the same sums on every run
            room = min(ON_GPU, la.available_bytes(self.device) // 8)
        (_, weight, first), *rest = self._parts
        matrix = first.matrix(room)
        if weight != 1:
            matrix *= weight
        for _, weight, route in rest:
            matrix.add_(route.matrix(room), alpha=weight)
        vector = la.probes((), 1, self.dimension, torch_generator("matrix check")).to(self.device)
        if not close((vector @ matrix).to(self.dtype), self(vector[None].to(self.dtype))[0]):
            raise Unsupported("samples that mix")
        return matrix

    def _merged(self, subject: Subject, batches: list[Batch]) -> list[Batch]:
        """The same samples in as few batches as a pass takes, if these give the same gradient."""
        if not can_be_merged(subject, batches):
            return batches
        one, pair = subject.members(slice(0, 1)), batches[:2]
        shares = _weights(subject.criterion, pair)
        apart, other = (first_derivatives(one, batch, self.names)[1] for batch in pair)
        try:
            both = first_derivatives(one, joined(pair), self.names)[1]
        except (RuntimeError, Refused):
            return batches  # something has the length of a batch, such as the weights of a criterion
        if not close(shares[0] * apart + shares[1] * other, both):
            return batches
        alone, *_ = self._route(one, batches[0])
        times = max(1, self._budget(MERGED_BYTES, 8) // max(alone.nbytes(), 1))
        return merged(batches, times * batch_size(batches[0]))

    def _prepare(self, subject: Subject, batches: list[Batch], weights: list[float], together: int) -> int:
        """Find a route for each group of members and each batch; return the memory that the largest keeps.

        Losses and gradients are summed up on the way.
        """
        room, largest = self._budget(KEPT_BYTES, 2), 0
        for start in range(0, self.size, together):
            members = slice(start, min(start + together, self.size))
            group = subject.members(members)
            for batch, weight in zip(batches, weights, strict=True):
                route, losses, gradient = self._route(group, batch)
                self._losses[members] += weight * losses
                self._gradient[members] += weight * gradient
                size = route.nbytes()
                largest = max(largest, size)
                if size <= room:
                    room -= size
                else:
                    route.forget()
                self._parts.append((members, weight, route))
        return largest

    def _route(self, subject: Subject, batch: Batch) -> tuple[Route, Tensor, Tensor]:
        """The faster route that there is, with the losses (E,) and gradients (E, P) on the batch.

        The route by hand is taken only if it gives autograd's loss and gradient: a network may do what a recording
        does not see (a function with a derivative of its own, a hook), or branch differently for each member.
        """
        gauss_newton = self.kind != "hessian"
        by_hand, backward = None, DoubleBackward(subject, batch, self.names, gauss_newton=gauss_newton)
        with contextlib.suppress(*NOT_BY_HAND):
            by_hand = ForwardMode(subject, batch, self.names, gauss_newton=gauss_newton, space=self._space)
        # Where nothing else is left, the graph that its products keep has them.
        losses, gradient, depends = (
            backward.first_derivatives() if by_hand is None else first_derivatives(subject, batch, self.names)
        )
        require_finite("loss", losses)
        require_finite("gradient", gradient)
        require(
            depends or set(self.names) != set(subject.parameters),
            "the loss depends on none of the parameters; look for torch.no_grad, detach or item in the network.",
        )
        if by_hand is not None:
            with contextlib.suppress(*NOT_BY_HAND):
                if close(by_hand.losses(), losses) and close(by_hand.gradient(), gradient):
                    lone = self.size == 1 and self.device.type == "cuda"
                    return Replayed(by_hand, self._graphs) if lone else by_hand, losses, gradient
        return backward, losses, gradient

    def _fitting(self, size: int) -> int:
        return max(1, self._budget(PASS_BYTES, 8) // max(size, 1))

    def _budget(self, on_cpu: int, part: int) -> int:
        if self.device.type != "cuda":
            return on_cpu
        return la.available_bytes(self.device) // part


def _cloned(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in tensors.items()}


def _weights(criterion: Criterion | None, batches: list[Batch]) -> list[float]:
    if reduction(criterion) == "sum":
        return [1.0] * len(batches)
    masses = [mass(criterion, batch) for batch in batches]
    require(
        sum(masses) > 0, "the batches hold no sample whose target counts; pass a batch with at least one."
    )
    return [each / sum(masses) for each in masses]
