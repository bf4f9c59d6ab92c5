"""Samples to look at a network with: image sets by name, or random ones of a kind that the network takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.checks import Refused, one_of, seeded, whole_numbers
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject
from skiplab.subjects.batches import DECODER_KEYS, Batch
from skiplab.subjects.failures import PLAIN, inputs_of
from skiplab.subjects.subject import call_on_input, first_tensor
from skiplab.torch_private import tree_map_only

NAMES = ("digits", "cifar10", "random")
POOL = 5_000  # images of a large set from which a batch is drawn: reading all of CIFAR-10 takes a gigabyte
LENGTH = 16  # tokens, or steps of a recurrent network
# Sides of images: cheap ones first, after them those that networks with a fixed size are built for. Networks that
# begin with a stride (ImageNet's) need 64 for a last map of 2×2, others are mostly made for 32 (CIFAR) and less.
SMALL, LARGE = (32, 28, 8, 16, 64, 96, 128, 224, 256, 299, 384), (64, 96, 128, 224, 256, 299, 384, 32)
CHANNELS = 3  # of images for a network that does not say


def named_batch(name: str, model: nn.Module | None, samples: int = 128, seed: int = 0) -> Batch:
    """So many samples with labels: of "digits" (1×8×8, ten classes), "cifar10" (3×32×32), or "random" ones.

    Images are flat where the network takes them only so. Random samples have the kind and size that the network
    takes, found from what it says of itself and by trying, and labels of as many classes as it has outputs.
    """
    one_of("data", name, NAMES)
    whole_numbers(samples=samples)
    seeded(seed)
    if name == "random":
        if model is None:
            raise Refused("random data are made for a network, but none was given; choose digits or cifar10.")
        return _random(model, samples, seed)
    images, labels = _images(name, dtype_of(model))
    order = torch.randperm(len(labels), generator=torch_generator(int(seed), "samples", name))[:samples]
    chosen = (images[order], labels[order])
    return chosen if model is None else taken_by([model], chosen)


def taken_by(models: Sequence[nn.Module], images: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Images with labels as all networks take them: as they are or flat; else the refusal of one of them."""
    refusal: Exception | None = None
    for form in (images, (images[0].flatten(1), images[1])):
        few = (form[0][:2], form[1][:2])
        try:
            for model in models:
                answer(model, few)
        except (Refused, *PLAIN) as problem:
            refusal = refusal or problem
        else:
            return form
    assert refusal is not None
    if isinstance(refusal, Refused):
        raise refusal
    raise Refused(f"the data are refused by the network ({refusal}); choose others.") from refusal


def dtype_of(model: nn.Module | None) -> torch.dtype:
    """The type of numbers that a network computes in."""
    weights = () if model is None else model.parameters()
    return next((each.dtype for each in weights if each.is_floating_point()), torch.float32)


def _images(name: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    from skiplab.data import tensors

    found = tensors(name, images=None if name == "digits" else POOL, flat=False, dtype=dtype)
    return found.inputs, found.labels


def answer(model: nn.Module, batch: Batch) -> Any:
    """What a network answers in evaluation mode; it is left untouched."""
    subject = Subject.of(model)
    batch = onto(batch, subject.device)
    with subject.borrowed(), torch.no_grad():
        return call_on_input(model, batch)


def usable(device: str | torch.device) -> torch.device:
    """Return a device on which tensors can be made here, and refuse all else."""
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, TypeError) as problem:
        said = str(problem).strip().partition("\n")[0].partition(". ")[0][:160]
        raise Refused(
            f"device {device!r} cannot be used here ({said}); choose another, such as cpu."
        ) from problem


def onto(batch: Batch, device: str | torch.device) -> Batch:
    """A batch with all its tensors on a device."""
    return tree_map_only(Tensor, lambda tensor: tensor.to(device), batch)


# Random samples ---------------------------------------------------------------------------------------------


def _random(model: nn.Module, samples: int, seed: int) -> Batch:
    """Inputs that the network takes, with labels that its answer has room for."""
    for inputs in _kinds_of_inputs(model, seed):
        try:
            output = first_tensor(answer(model, inputs(2)))
        except (Refused, *PLAIN, NotImplementedError):
            continue
        if output is None or output.ndim == 0:
            continue
        return _labelled(inputs(samples), output, samples, seed)
    raise Refused(
        f"no random input was found that {type(model).__name__} takes; pass batches of your own, or other data."
    )


def _kinds_of_inputs(model: nn.Module, seed: int) -> Iterator[Any]:
    """Functions of the number of samples, the likeliest first."""
    generator = lambda: torch_generator(int(seed), "random inputs")  # noqa: E731
    dtype = dtype_of(model)

    def normal(*shape: int) -> Any:
        return lambda count: torch.randn(count, *shape, generator=generator()).to(dtype)

    def tokens(words: int, named: bool) -> Any:
        def make(count: int) -> Any:
            drawn = torch.randint(words, (count, LENGTH), generator=generator())
            return {"input_ids": drawn, "labels": drawn.clone()} if named else drawn

        return make

    said = _configured(model)
    if said is not None:
        yield normal(*said)
    first = _first_layer(model)
    names = {each.name for each in inputs_of(model)}
    if isinstance(first, nn.Embedding):
        words = first.num_embeddings
        if "input_ids" in names:
            yield tokens(words, named=True)
            if DECODER_KEYS[0] not in names:
                yield lambda count: {"input_ids": tokens(words, named=False)(count)}
        yield tokens(words, named=False)
        yield lambda count: tokens(words, named=False)(count)[:, 0]
    elif isinstance(first, nn.RNNBase):
        yield normal(LENGTH, first.input_size)
    elif isinstance(first, nn.Conv1d):
        yield from (normal(first.in_channels, side) for side in (64, 128, 1024))
    elif isinstance(first, nn.Conv3d):
        yield from (normal(first.in_channels, side, side, side) for side in (16, 32, 64))
    elif isinstance(first, nn.Linear):
        yield normal(first.in_features)
        yield normal(LENGTH, first.in_features)
        # A network that flattens images, or cuts them into patches, by itself.
        for channels in (1, CHANNELS):
            side = round((first.in_features / channels) ** 0.5)
            if side * side * channels == first.in_features:
                yield normal(channels, side, side)
    channels = first.in_channels if isinstance(first, nn.Conv2d) else CHANNELS
    strides = isinstance(first, nn.Conv2d) and max(first.stride) > 1
    yield from (normal(channels, side, side) for side in (LARGE if strides else SMALL))


def _configured(model: nn.Module) -> tuple[int, ...] | None:
    """The size that a network of timm says it is built for, smaller where it takes others too."""
    for name in ("pretrained_cfg", "default_cfg"):
        said = getattr(model, name, None)
        get = said.get if isinstance(said, dict) else lambda key, said=said: getattr(said, key, None)
        size = get("input_size") if said is not None else None
        if size is None or len(size) != 3:
            continue
        channels = getattr(_first_layer(model), "in_channels", size[0])
        if get("fixed_input_size"):
            return (channels, *size[1:])
        least = get("min_input_size") or (channels, LARGE[0], LARGE[0])
        return channels, *(max(side, LARGE[0]) for side in least[1:])
    return None


def _first_layer(model: nn.Module) -> nn.Module | None:
    """The first module, in the order of declaration, that takes what the network is given."""
    kinds = (nn.Embedding, nn.RNNBase, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)
    return next((part for part in model.modules() if isinstance(part, kinds)), None)


def _labelled(inputs: Any, output: Tensor, samples: int, seed: int) -> Batch:
    """Inputs with labels: classes where the answer has several numbers, numbers where it has one."""
    if isinstance(inputs, dict):  # a language model's labels are its tokens; of another kind of head, classes
        if output.ndim != 3:
            inputs = {"input_ids": inputs["input_ids"]}
            return inputs | {"labels": _classes((samples,), output.shape[-1], seed)}
        return inputs
    is_text = not inputs.is_floating_point()
    if output.ndim == 1 or output.shape[1] == 1:
        shape = (samples, *output.shape[1:])
        return inputs, torch.randn(shape, generator=torch_generator(int(seed), "random labels")).to(
            output.dtype
        )
    axis = output.ndim - 1 if is_text or output.ndim == 3 else 1
    places = [side for place, side in enumerate(output.shape) if place not in (0, axis)]
    return inputs, _classes((samples, *places), output.shape[axis], seed)


def _classes(shape: tuple[int, ...], count: int, seed: int) -> Tensor:
    return torch.randint(count, shape, generator=torch_generator(int(seed), "random labels"))
