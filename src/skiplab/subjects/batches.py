"""Batches: what counts as one, how many samples it holds, where its target is."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset

from skiplab.checks import Refused, require
from skiplab.torch_private import tree_leaves, tree_map_only

Batch = Any
DECODER_KEYS = ("decoder_input_ids", "decoder_inputs_embeds")  # transformers' names
LABEL_KEYS = ("labels", "label", "target", "targets", "y")
NO_SAMPLE = "the batches hold no sample; pass a batch with at least one."


def batches_of(batches: Batch | Iterable[Batch]) -> Iterator[Batch]:
    """The batches that hold samples; a lone batch (tuple, dict, tensor or list of tensors) counts as one."""
    is_list_of_tensors = isinstance(batches, list) and all(isinstance(part, Tensor) for part in batches)
    several = batches
    if isinstance(batches, tuple | Mapping | Tensor | np.ndarray) or (is_list_of_tensors and batches):
        several = [batches]
    if isinstance(several, Dataset) and not isinstance(several, IterableDataset):
        raise Refused(f"a {type(several).__name__} gives samples one by one; pass a DataLoader over it.")
    require(isinstance(several, Iterable), _no_batch(batches))
    none, empty = True, True
    for batch in several:
        none = False
        if batch_size(batch):
            empty = False
            yield batch
    require(not none, "there was no batch to measure on; pass a batch or a loader with at least one.")
    require(not empty, NO_SAMPLE)


def batch_size(batch: Batch) -> int:
    """Number of samples in a batch: the length of its first tensor, nested ones last."""
    several = batch.values() if isinstance(batch, Mapping) else batch
    parts = list(several) if isinstance(batch, Mapping | tuple | list) else [batch]
    refuse_without_numbers(batch)
    nested = [] if isinstance(batch, list) else tree_leaves(parts)  # a list of tuples is no batch
    for part in (*parts, *nested):
        if isinstance(part, Tensor) and part.ndim:
            return len(part)
    raise Refused(_no_batch(batch))


def refuse_without_numbers(batch: Batch) -> None:
    """Refuse tensors that have no values, or none in rows that could be cut into samples."""
    for part in tree_leaves(batch):
        if isinstance(part, Tensor) and part.layout != torch.strided:
            raise Refused(f"a tensor of layout {part.layout} was given; pass it as tensor.to_dense().")
        if isinstance(part, Tensor) and part.is_meta:
            raise Refused("a tensor on the meta device was given, without values; pass one that has some.")


def is_lone_sample(batch: Batch) -> bool:
    """Whether the input has no axis but one, so that it may be a single sample without the axis of samples."""
    several = batch.values() if isinstance(batch, Mapping) else batch
    first = next(iter(several), None) if isinstance(batch, Mapping | tuple | list) else batch
    return isinstance(first, Tensor) and first.ndim < 2


def sliced(batch: Batch, size: int, part: slice) -> Batch:
    """Some samples of a batch; what is not a tensor with a row a sample stays whole."""
    if isinstance(batch, Tensor):
        return batch[part] if batch.ndim and len(batch) == size else batch
    if isinstance(batch, Mapping):
        return {name: sliced(value, size, part) for name, value in batch.items()}
    if isinstance(batch, tuple | list):
        return tuple(sliced(value, size, part) for value in batch)
    return batch


def _no_batch(given: Any) -> str:
    """What to pass instead of something that is no batch."""
    kind = f"a {type(given).__name__}"
    if isinstance(given, np.ndarray):
        return "the batch is a NumPy array; turn it into a tensor with torch.from_numpy."
    if any(isinstance(part, np.ndarray) for part in tree_leaves(given)):
        return f"the batch is {kind} with a NumPy array; turn that into a tensor with torch.from_numpy."
    if isinstance(given, Iterable | Dataset) and not isinstance(
        given, str | bytes | Mapping | tuple | Tensor
    ):
        return f"{kind} was given where one batch is measured; pass one, e.g. next(iter(loader))."
    return (
        f"a batch of type {type(given).__name__} holds no tensor of samples; pass (input, target) or a dict."
    )


def named_inputs(batch: Mapping[str, Any], takes: Sequence[inspect.Parameter]) -> dict[str, Any]:
    """The inputs of a batch with names, for a network whose forward takes these parameters.

    Labels are no inputs, but for two kinds of networks: one whose forward cannot be called without them, and one that
    makes the input of its decoder from them, as T5 does where the batch has no ``decoder_input_ids``.
    """
    known = {each.name for each in takes}
    decodes = DECODER_KEYS[0] in known and not set(DECODER_KEYS) & set(batch)
    needed = {each.name for each in takes if each.default is each.empty or decodes}
    return {name: value for name, value in batch.items() if name not in LABEL_KEYS or name in needed}


def target_of(batch: Batch) -> Tensor:
    """The target part of a batch."""
    if isinstance(batch, Mapping):
        for name in LABEL_KEYS:
            if name in batch:
                return batch[name]
        raise Refused(
            f"the batch has no labels among {', '.join(map(str, batch))}; name them 'labels' or pass loss_fn."
        )
    if isinstance(batch, tuple | list) and len(batch) == 2:
        return batch[1]
    raise Refused("criterion needs batches (input, target) or dicts with labels; pass loss_fn for others.")


@contextlib.contextmanager
def outside_inference_mode(batch: Batch) -> Iterator[Batch]:
    """Leave a caller's inference mode, where all gradients would be 0; the batch takes part in derivatives again."""
    with torch.inference_mode(False):
        yield tree_map_only(Tensor, lambda x: x.clone() if x.is_inference() else x, batch)
