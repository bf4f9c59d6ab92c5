"""What the networks of the cases learn: small batches whose targets can be learned, the same for equal seeds.

Every kind of data is a function of a seed and returns a ``Data``: four batches of sixteen samples, and either a
criterion for (input, target) or a loss of (model, batch). Images are the digits of scikit-learn, resized.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab.data.digits import read_digits
from skiplab.randomness import torch_generator

SAMPLES, BATCHES = 16, 4
WORDS, LENGTH, TOPICS = 99, 16, 4


@dataclass(frozen=True)
class Data:
    """Batches to measure and to train on, with the loss that goes with them."""

    batches: tuple[Any, ...]
    criterion: Callable[..., Tensor] | None = None
    loss_fn: Callable[..., Tensor] | None = None


@lru_cache(maxsize=1)
def _digits() -> tuple[Tensor, Tensor]:
    images, labels = read_digits("train")
    pixels = torch.from_numpy(images).float().squeeze(-1)
    return (pixels - pixels.mean()) / pixels.std(), torch.from_numpy(labels).long()


def _drawn(seed: int) -> tuple[Tensor, Tensor]:
    """Sixty-four digits (64, 8, 8) and their labels."""
    images, labels = _digits()
    chosen = torch.randperm(len(labels), generator=torch_generator(seed, "cases", "samples"))
    chosen = chosen[: SAMPLES * BATCHES]
    return images[chosen], labels[chosen]


def _cut(*tensors: Tensor) -> tuple[tuple[Tensor, ...], ...]:
    return tuple(zip(*(tensor.split(SAMPLES) for tensor in tensors), strict=True))


def _resized(images: Tensor, channels: int, size: int) -> Tensor:
    grown = F.interpolate(images[:, None], (size, size), mode="bilinear", align_corners=False)
    return grown.expand(-1, channels, -1, -1).contiguous()


def images(channels: int, size: int) -> Callable[[int], Data]:
    """Digits as images (channels, size, size), to be classified."""

    def data(seed: int) -> Data:
        pictures, labels = _drawn(seed)
        return Data(_cut(_resized(pictures, channels, size), labels), nn.CrossEntropyLoss())

    return data


def flat_digits(seed: int) -> Data:
    """Digits as 64 numbers, to be classified."""
    pictures, labels = _drawn(seed)
    return Data(_cut(pictures.flatten(1), labels), nn.CrossEntropyLoss())


def rows_of_digits(seed: int) -> Data:
    """Digits as eight steps of eight numbers, to be classified."""
    return Data(_cut(*_drawn(seed)), nn.CrossEntropyLoss())


def restored(size: int, noise: float) -> Callable[[int], Data]:
    """Digits as images (1, size, size) with noise added, to be told without it; noise 0 is an autoencoder's task."""

    def data(seed: int) -> Data:
        clean = _resized(_drawn(seed)[0], 1, size)
        added = noise * torch.randn(clean.shape, generator=torch_generator(seed, "cases", "noise"))
        return Data(_cut(clean + added, clean), nn.MSELoss())

    return data


def regression(inputs: int, outputs: int = 1) -> Callable[[int], Data]:
    """Normal inputs, and what a random network with one hidden layer of tanh units makes of them."""

    def data(seed: int) -> Data:
        stream = torch_generator(seed, "cases", "teacher")
        x = torch.randn(SAMPLES * BATCHES, inputs, generator=stream)
        hidden = torch.tanh(x @ torch.randn(inputs, 8, generator=stream) / inputs**0.5)
        y = hidden @ torch.randn(8, outputs, generator=stream)
        return Data(_cut(x, (y - y.mean()) / y.std()), nn.MSELoss())

    return data


def own_loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """The loss that a model of transformers computes itself."""
    loss: Tensor = model(**batch).loss
    return loss


def _named(x: Tensor, labels: Tensor) -> Data:
    pairs = zip(x.split(SAMPLES), labels.split(SAMPLES), strict=True)
    return Data(tuple({"input_ids": a, "labels": b} for a, b in pairs), loss_fn=own_loss)


def topics(seed: int) -> Data:
    """Texts of sixteen words, of which three in four are typical of one topic in four, which is the label."""
    words, labels = _texts(seed)
    return _named(words, labels)


def plain_topics(seed: int) -> Data:
    """The same texts as (words, label)."""
    return Data(_cut(*_texts(seed)), nn.CrossEntropyLoss())


def _texts(seed: int) -> tuple[Tensor, Tensor]:
    stream = torch_generator(seed, "cases", "texts")
    samples = SAMPLES * BATCHES
    labels = torch.randint(TOPICS, (samples,), generator=stream)
    typical = 3 + labels[:, None] + TOPICS * torch.randint(20, (samples, LENGTH), generator=stream)
    any_word = torch.randint(3, WORDS, (samples, LENGTH), generator=stream)
    return typical.where(torch.rand(samples, LENGTH, generator=stream) < 0.75, any_word), labels


def next_words(seed: int) -> Data:
    """Texts in which every word follows from the one before: 5 w + 7 modulo 96, from a random beginning."""
    words = [3 + torch.randint(96, (SAMPLES * BATCHES,), generator=torch_generator(seed, "cases", "first"))]
    while len(words) < LENGTH:
        words.append(3 + (5 * (words[-1] - 3) + 7) % 96)
    text = torch.stack(words, 1)
    return _named(text, text)


def answers(seed: int) -> Data:
    """Texts with a topic, to be answered by four words that belong to the topic."""
    words, labels = _texts(seed)
    return _named(words, 3 + labels[:, None] + TOPICS * torch.arange(4))


def pictures(size: int) -> Callable[[int], Data]:
    """Digits for a vision model of transformers, which computes its loss itself."""

    def data(seed: int) -> Data:
        x, labels = _drawn(seed)
        pairs = _cut(_resized(x, 3, size), labels)
        return Data(tuple({"pixel_values": a, "labels": b} for a, b in pairs), loss_fn=own_loss)

    return data
