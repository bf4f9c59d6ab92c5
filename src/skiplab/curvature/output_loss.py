"""The criterion as a function of a network's output: its gradient, its second derivative, and what it averages.

The second derivative times a direction comes from autograd, and by hand for the cross-entropy.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skiplab.checks import Refused
from skiplab.curvature.sweeps.streams import kept_for_stream
from skiplab.subjects.batches import Batch, batch_size, target_of
from skiplab.subjects.subject import Criterion

# Losses that are minus the log-likelihood of a family whose natural parameter is the output: for these the Fisher
# information is the Gauss–Newton matrix (Martens 2020, section 9.2).
LIKELIHOODS = (nn.CrossEntropyLoss, nn.BCEWithLogitsLoss, nn.MSELoss, nn.PoissonNLLLoss)


class OutputLoss:
    """The criterion as a function of the output (E, …): losses, gradient, and second derivative by autograd."""

    def __init__(self, criterion: Criterion, output: Tensor, target: Tensor) -> None:
        # Copies: both are read again later, where another stream computes.
        self._criterion, self._output, self._target = criterion, output.detach().clone(), target.clone()
        self._graphs: dict[tuple[None, int], _GradientGraph] = {}
        graph = self._graph()
        self.losses, self.gradient = graph.losses, graph.gradient.detach()

    def product(self, directions: Tensor) -> Tensor | None:
        """The second derivative times directions (L, …); None if there is none."""
        graph = self._graph()
        if not graph.gradient.requires_grad:
            return None
        lanes, members = len(directions), len(self._output)
        blocks = directions.split(members)
        try:
            found = [
                torch.autograd.grad(graph.gradient, graph.output, each, retain_graph=True)[0]
                for each in blocks
            ]
        except RuntimeError as error:
            refuse_missing(error)
            raise
        return torch.cat(found) if lanes > members else found[0]

    def _graph(self) -> _GradientGraph:
        return kept_for_stream(self._graphs, None, self._output.device, self._differentiated)

    def _differentiated(self) -> _GradientGraph:
        with torch.enable_grad():
            # A leaf of its own: autograd also gives a leaf the stream on which it was first used.
            output = self._output.detach().requires_grad_()
            losses = torch.stack([self._criterion(each, self._target) for each in output])
            (gradient,) = torch.autograd.grad(losses.sum(), output, create_graph=True)
        return _GradientGraph(output, losses.detach(), gradient)


@dataclass(frozen=True)
class _GradientGraph:
    """The gradient of the losses as autograd's function of the output."""

    output: Tensor
    losses: Tensor
    gradient: Tensor


class CrossEntropyOfLogits(OutputLoss):
    """Cross-entropy of logits (E, B, classes): the second derivative of a sample is diag p − p pᵀ."""

    def __init__(self, criterion: nn.CrossEntropyLoss, output: Tensor, target: Tensor) -> None:
        super().__init__(criterion, output, target)
        self._probabilities = output.softmax(-1)
        self._scale = 1 / output.shape[1] if criterion.reduction == "mean" else 1.0

    def product(self, directions: Tensor) -> Tensor:
        weighted = self._probabilities * directions
        return (weighted - self._probabilities * weighted.sum(-1, keepdim=True)) * self._scale


def output_loss(criterion: Criterion, output: Tensor, target: Tensor) -> OutputLoss:
    """The loss of outputs (E, B, …) that have one target."""
    by_hand = (
        type(criterion) is nn.CrossEntropyLoss
        and criterion.weight is None
        and output.ndim == 3
        and not target.is_floating_point()
        and not (target == criterion.ignore_index).any()
    )
    if by_hand:
        assert isinstance(criterion, nn.CrossEntropyLoss)
        return CrossEntropyOfLogits(criterion, output, target)
    return OutputLoss(criterion, output, target)


def kept_criterion(criterion: Criterion | None, network: nn.Module) -> Criterion | None:
    """A criterion that stays as it is now: a copy of a module, or of what a ``partial`` was given.

    What it shares with the network stays the network's, as a penalty on weights needs it. A function is returned
    itself, and so is what cannot be copied.
    """
    if not isinstance(criterion, nn.Module | partial):
        return criterion
    shared = (*network.modules(), *network.parameters(), *network.buffers())
    try:
        return copy.deepcopy(criterion, {id(each): each for each in shared})
    except (RuntimeError, TypeError, copy.Error):  # as of results of autograd, locks, generators
        return criterion


def kind_of(criterion: Criterion | None) -> str:
    """The name of a criterion's class, or of the function that it is or was made from."""
    function = criterion.func if isinstance(criterion, partial) else criterion
    named: Any = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def refuse_missing(error: RuntimeError) -> None:
    """Say in one sentence that autograd has no second derivative of something, if that is what it says."""
    line = str(error).splitlines()[0][:160]
    if "is not implemented" in line:
        raise Refused(
            "an operation of the network or the loss has no second derivative; use another "
            f"(autograd: {line})."
        ) from error


def reduction(criterion: Criterion | None) -> str:
    """How a criterion puts samples together: its own word, or that of the function it was made from."""
    return str(_setting(criterion, "reduction", "mean"))


def mass(criterion: Criterion | None, batch: Batch) -> float:
    """What the mean over a batch divides by, so that means of several batches become the mean of all.

    The cross-entropy divides by the weights of the targets that count, element-wise criteria by the number of
    entries, anything else (and a loss function of one's own) is taken to divide by the number of samples.
    """
    if criterion is None:
        return batch_size(batch)
    target: Any = target_of(batch)
    if not isinstance(target, Tensor) or reduction(criterion) == "batchmean":
        return batch_size(batch)
    if _of_classes(criterion) and not target.is_floating_point():
        counts = target != _setting(criterion, "ignore_index", -100)
        weight = _setting(criterion, "weight", None)
        try:
            return float(counts.sum() if weight is None else weight[target[counts]].sum())
        except IndexError as problem:
            raise Refused(
                f"the criterion weights {len(weight)} classes, but a label is {int(target[counts].max())}; give it a "
                "weight for each class, and labels that count from 0."
            ) from problem
    return target.numel()


def _of_classes(criterion: Criterion) -> bool:
    """Whether it is the cross-entropy or its second half, as a module or as a function."""
    function = criterion.func if isinstance(criterion, partial) else criterion
    is_module = isinstance(function, nn.CrossEntropyLoss | nn.NLLLoss)
    return is_module or function in (F.cross_entropy, F.nll_loss)


def _setting(criterion: Criterion | None, name: str, default: Any) -> Any:
    """A criterion's own setting, or one given to the function it was made from."""
    if isinstance(criterion, partial):
        return criterion.keywords.get(name, getattr(criterion.func, name, default))
    return getattr(criterion, name, default)


def require_likelihood(criterion: Criterion | None) -> None:
    """Refuse a criterion whose Fisher information is not its Gauss–Newton matrix."""
    smoothed = getattr(criterion, "label_smoothing", 0) or 0
    weighted = (
        getattr(criterion, "weight", None) is not None or getattr(criterion, "pos_weight", None) is not None
    )
    linear_rate = isinstance(criterion, nn.PoissonNLLLoss) and not criterion.log_input
    if not isinstance(criterion, LIKELIHOODS) or smoothed or weighted or linear_rate:
        names = ", ".join(kind.__name__ for kind in LIKELIHOODS)
        raise Refused(
            f"kind 'fisher' needs a plain likelihood ({names}, without weights or smoothing), "
            f"not {criterion!r}; use kind='gauss_newton'."
        )
