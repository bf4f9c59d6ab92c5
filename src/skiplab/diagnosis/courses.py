"""What networks are trained on, and in which order: all networks of a seed meet the same batches."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import torch
from torch import Tensor

from skiplab.checks import Refused, require, whole_numbers
from skiplab.data import TensorSet
from skiplab.diagnosis.factory import seeded_globally
from skiplab.subjects.batches import Batch, batch_size, batches_of
from skiplab.torch_private import tree_map_only
from skiplab.training.loop import shuffles

CPU = torch.device("cpu")
FEWEST = 8  # samples in a batch where nobody asks for fewer and there are as many
LARGEST_BATCH = 64  # samples per step where nobody says, and at least four steps per epoch; ours


class Course(ABC):
    """The batches of training: ``batch(seed, step)``; ``per_epoch`` steps see everything once.

    ``samples`` are all inputs and labels as tensors, of which ``places(seed, step)`` makes a batch; without them
    networks are trained one by one.
    """

    per_epoch: int
    words: str
    samples: TensorSet | None = None

    def batch(self, seed: int, step: int) -> Batch:
        """What the networks of a seed are given in a step."""
        return self._batch(*self._drawn(seed, step))

    @abstractmethod
    def places(self, seed: int, step: int) -> Tensor:
        """The numbers of the samples in that batch."""

    @abstractmethod
    def _batch(self, order: Tensor, place: int) -> Batch: ...

    @abstractmethod
    def _drawn(self, seed: int, step: int) -> tuple[Tensor, int]: ...

    @abstractmethod
    def first(self, samples: int) -> Batch:
        """Some samples to measure on, the same for every network."""


class Shuffled(Course):
    """Samples of one set, in a new order every epoch."""

    def __init__(self, whole: Batch, size: int) -> None:
        whole_numbers(batch_size=size)
        self._whole, self._count, self._size = whole, batch_size(whole), min(size, batch_size(whole))
        whole_batches, rest = divmod(self._count, self._size)
        # One sample over is left out of its epoch: batch normalisation cannot be trained on it.
        self.per_epoch = whole_batches + (rest > 1)
        self.words = f"{self._count} samples in batches of {self._size}"
        self.samples = _tensor_set(whole)

    def places(self, seed: int, step: int) -> Tensor:
        """The numbers of the samples in a batch."""
        order, place = self._drawn(seed, step)
        return order[place * self._size : (place + 1) * self._size]

    def _drawn(self, seed: int, step: int) -> tuple[Tensor, int]:
        epoch, place = divmod(step, self.per_epoch)
        return _order(int(seed), epoch, self._count), place

    def _batch(self, order: Tensor, place: int) -> Batch:
        return self._picked(order[place * self._size : (place + 1) * self._size])

    def _picked(self, places: Tensor) -> Batch:
        def rows(tensor: Tensor) -> Tensor:
            is_whole = tensor.ndim > 0 and len(tensor) == self._count
            return tensor[places.to(tensor.device)] if is_whole else tensor

        return tree_map_only(Tensor, rows, self._whole)

    def first(self, samples: int) -> Batch:
        """The first samples of an order that no seed trains by."""
        return self._picked(_order(-1, 0, self._count)[:samples])


class InBatches(Course):
    """Batches as they were given, in a new order every epoch."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches, self.per_epoch = tuple(batches), len(batches)
        sizes = {batch_size(batch) for batch in batches}
        self.words = (
            f"{len(batches)} batches of {' to '.join(map(str, sorted({min(sizes), max(sizes)})))} samples"
        )
        self._size = min(sizes)
        # Of unlike sizes, the networks of two seeds would meet unlike batches in one step.
        parts = [_tensor_set(batch) for batch in batches]
        tensors = [part for part in parts if part is not None]
        if len(sizes) == 1 and len(tensors) == len(parts):
            self.samples = _joined(tensors)

    def places(self, seed: int, step: int) -> Tensor:
        """The numbers of the samples in a batch."""
        order, place = self._drawn(seed, step)
        start = int(order[place]) * self._size
        return torch.arange(start, start + self._size)

    def _drawn(self, seed: int, step: int) -> tuple[Tensor, int]:
        epoch, place = divmod(step, self.per_epoch)
        return _order(int(seed), epoch, self.per_epoch), place

    def _batch(self, order: Tensor, place: int) -> Batch:
        return self._batches[int(order[place])]

    def first(self, samples: int) -> Batch:
        """The first batch, or as much of it as asked for."""
        batch = self._batches[0]
        count = batch_size(batch)

        def rows(tensor: Tensor) -> Tensor:
            return tensor[:samples] if tensor.ndim and len(tensor) == count else tensor

        return tree_map_only(Tensor, rows, batch)


def course_of(data: Batch | TensorSet | Iterable[Batch], size: int | None, most: int | None) -> Course:
    """The course of a batch, which is cut into smaller ones, or of several: the first ``most`` (None: all)."""
    if size is not None:
        whole_numbers(batch_size=size)
    if isinstance(data, TensorSet):
        data = (data.inputs, data.labels)
    with seeded_globally(0):  # a loader that shuffles draws from the global streams
        found = [_plain(batch) for batch in itertools.islice(batches_of(data), most)]
    require(len(found) > 0, "there was no batch to train on; pass one or several.")
    if len(found) == 1:
        count = batch_size(found[0])
        return Shuffled(found[0], size or min(LARGEST_BATCH, max(min(FEWEST, count), count // 4)))
    if size is not None:
        raise Refused(
            f"batch_size is {size}, but {len(found)} batches were given as they are; leave it out, or pass (inputs, "
            "targets)."
        )
    return InBatches(found)


def _plain(batch: Batch) -> Batch:
    """A batch with names as a plain dict: what tokenizers of Hugging Face return is none, and would not be cut."""
    return dict(batch) if isinstance(batch, Mapping) else batch


@lru_cache(maxsize=256)
def _order(seed: int, epoch: int, count: int) -> Tensor:
    return shuffles([seed], epoch, count, CPU)[0]


def _tensor_set(batch: Batch) -> TensorSet | None:
    """A batch of inputs and targets as a set, if it is nothing else."""
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        return None
    inputs, labels = batch
    if not isinstance(inputs, Tensor) or not isinstance(labels, Tensor) or not inputs.ndim * labels.ndim:
        return None
    return TensorSet(inputs, labels, 0, "", "") if len(inputs) == len(labels) else None


def _joined(parts: Sequence[TensorSet]) -> TensorSet | None:
    first = parts[0]
    alike = {(part.inputs.shape, part.labels.shape, part.inputs.dtype, part.labels.dtype) for part in parts}
    if len(alike) > 1:
        return None
    inputs, labels = torch.cat([part.inputs for part in parts]), torch.cat([part.labels for part in parts])
    return TensorSet(inputs, labels, first.classes, "", "")
