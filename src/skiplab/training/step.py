"""One optimisation step of all members, replayed as a CUDA graph where there is a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from skiplab.checks import require
from skiplab.cuda_graphs import GraphRecorder
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.ensembles.fused import fused_passes
from skiplab.training.augmentation import CropAndFlip
from skiplab.training.memory import parts_of
from skiplab.training.optimisers import Adam, Optimiser, Pace
from skiplab.training.regularisers import Penalty

if TYPE_CHECKING:
    from skiplab.ensembles.fused.passes import Passes


class Step:
    """Gather a batch a member, differentiate, penalise, update; count losses and hits on the device.

    ``tensors`` names everything that changes from step to step: a checkpoint is a copy of it. ``at_once`` members
    are differentiated together (default: all), and these parts of the ensemble one after the other. The attribute
    ``fused`` holds the Triton kernels of fully connected networks, or None where torch's own operations compute;
    ``joined`` makes Adam the end of their weight gradients, where no penalty changes those.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        data: TensorSet,
        optimiser: Optimiser,
        criterion: Callable[[Tensor, Tensor], Tensor],
        penalties: Sequence[Penalty],
        augmentation: CropAndFlip | None,
        mixed: bool = False,
        fused: bool | None = None,
        at_once: int | None = None,
        joined: bool = False,
    ) -> None:
        size, device = ensemble.size, ensemble.device
        self.ensemble, self.data, self.optimiser = ensemble, data, optimiser
        self.criterion, self.penalties, self.augmentation = criterion, penalties, augmentation
        self.mixed = mixed
        self.rate = torch.zeros(size, dtype=torch.float64, device=device)
        self.alive = torch.ones(size, dtype=torch.bool, device=device)
        self.loss_sum = torch.zeros(size, dtype=torch.float64, device=device)
        self.hits = torch.zeros(size, dtype=torch.int64, device=device)
        self.state = optimiser.start(ensemble.rows)
        self.draws = torch.zeros(3, size, len(data.labels), dtype=torch.uint8, device=device)
        able = criterion is F.cross_entropy and augmentation is None
        require(
            able or not fused, "fused passes need cross-entropy without augmentation; leave out fused=True."
        )
        # The kernels take all members at once.
        wanted = fused if able and (at_once or size) >= size else False
        self.fused = fused_passes(ensemble, data.inputs, data.labels, mixed=mixed, wanted=wanted)
        able = self.fused is not None and not self._weights_are_penalised
        self.adam_at_end = optimiser if joined and able and isinstance(optimiser, Adam) else None
        self.graphs: dict[int, tuple[torch.cuda.CUDAGraph, Tensor]] = {}
        self.recorder = GraphRecorder()
        self.parts = parts_of(ensemble, at_once or size)

    def compile(self) -> None:
        """Fuse the passes of every part, as ``Ensemble.compile`` does."""
        for _, part in self.parts:
            part.compile()

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All tensors that a step changes, by name."""
        own = {"rows": self.ensemble.rows, "alive": self.alive, "loss_sum": self.loss_sum, "hits": self.hits}
        optimiser = {f"optimiser.{name}": tensor for name, tensor in self.state.items()}
        fixed = {f"fixed.{name}": tensor for name, tensor in self.ensemble.fixed.items()}
        return own | optimiser | fixed

    def __call__(self, indices: Tensor) -> None:
        """Take one step on the samples (E, B)."""
        if self.ensemble.device.type != "cuda":
            self._step(indices)
            return
        batch = indices.shape[1]
        if batch not in self.graphs:
            self.graphs[batch] = self._capture(indices.clone())
        graph, static = self.graphs[batch]
        static.copy_(indices)
        graph.replay()

    def _step(self, indices: Tensor) -> None:
        if self.fused is not None:
            self._fused_step(self.fused, indices)
            return
        rows = self.ensemble.rows
        labels = self.data.labels[indices]
        each = [self._gradients(members, part, indices, labels) for members, part in self.parts]
        losses, outputs, gradient = each[0] if len(each) == 1 else map(torch.cat, zip(*each, strict=True))
        for penalty in self.penalties:
            penalty.add_gradient_(rows, gradient)
        # The norm is finite only if the gradient is; its overflow (float32: above 1.8e19) counts as divergence
        # too, so that no sensible rate takes a member that is alive to parameters that are not finite.
        self.alive &= losses.isfinite() & torch.linalg.vector_norm(gradient, dim=1).isfinite()
        self.optimiser.step(rows, gradient, self.state, Pace(self.rate, self.alive))
        self.loss_sum += losses.double() * indices.shape[1]
        if not labels.is_floating_point():
            self.hits += (outputs.argmax(-1) == labels).sum(1)

    def _fused_step(self, passes: Passes, indices: Tensor) -> None:
        """The same step by Triton kernels."""
        rows, gradient, pace = self.ensemble.rows, passes.gradient, Pace(self.rate, self.alive)
        update = self.adam_at_end.begun(self.state, pace) if self.adam_at_end else None
        kept = passes.differentiate(indices, update)
        for penalty in self.penalties:
            penalty.add_gradient_(rows, gradient)
        passes.tally(kept, self.alive, self.loss_sum, self.hits, changed=self._weights_are_penalised)
        if update is None:
            self.optimiser.step(rows, gradient, self.state, pace, passes)
        else:
            passes.adam(update, biases=True)

    @property
    def _weights_are_penalised(self) -> bool:
        """Whether a penalty adds to gradients of weights that fused kernels have computed, not of biases alone."""
        assert self.fused is not None
        first = self.fused.first_bias
        return any(part.start < first for penalty in self.penalties for part in penalty.columns)

    def _gather(self, indices: Tensor, draws: Tensor) -> Tensor:
        if self.augmentation is not None:
            return self.augmentation.batch(self.data.inputs, indices, draws)
        samples = self.data.inputs.index_select(0, indices.reshape(-1))
        return samples.view(*indices.shape, *samples.shape[1:])

    def _gradients(
        self, members: slice, part: Ensemble, indices: Tensor, labels: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        inputs = self._gather(indices[members], self.draws[:, members])
        return part.gradients(inputs, labels[members], self.criterion, mixed=self.mixed)

    def _capture(self, static: Tensor) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        """Record the step as a graph; warm-up steps change state, so it is put back afterwards."""
        before = {name: tensor.clone() for name, tensor in self.tensors.items()}
        if self.fused is not None:
            self.fused.compile(lambda: self._step(static))
        graph, _ = self.recorder.recorded(lambda: self._step(static), static.device)
        self.restore(before)
        return graph, static

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Copy saved tensors back in place, so that captured graphs keep their addresses."""
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])
        self.refresh()

    def refresh(self) -> None:
        """Take notice of parameters that something else than a step has changed."""
        if self.fused is not None:
            self.fused.refresh()
