"""Networks by name, each with data it can learn: ``build("mlp-tanh-6x48", seed=3)``.

``library:model`` is a model of torchvision, timm or transformers with random weights as the library draws them; all
other names are in ``SMALL``, and ``trained-NAME`` is one of these after a training on its data. A name stands for
one architecture of one size. Inputs are small, so that a forward and a backward pass take well below a second on one
core.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from cases import data
from cases.data import Data
from cases.sick_networks import (
    as_torch_does,
    conv_pair,
    crelu_mlp,
    of_size,
    plain_convnet,
    plain_mlp,
    residual_without_norm,
    scaled,
    tanh_pair,
)
from cases.small_networks import (
    Mixer,
    Recurrent,
    Transformer,
    UNet,
    autoencoder,
    gated_convnet,
    lenet,
    mlp,
    normalised_convnet,
    normalised_mlp,
    residual_convnet,
    residual_mlp,
    sequence_convnet,
)
from torch import Tensor, nn

from skiplab.architectures.highway import HighwayNet
from skiplab.architectures.rescaled import RescaledNet
from skiplab.architectures.resnet import ResNet
from skiplab.randomness import derive, torch_generator


@dataclass(frozen=True)
class Network:
    """A network, batches of sixteen samples that it can learn, and the loss: a criterion or a function."""

    model: nn.Module
    batches: tuple[Any, ...]
    criterion: Callable[..., Tensor] | None
    loss_fn: Callable[..., Tensor] | None

    @property
    def batch(self) -> Any:
        """The first batch."""
        return self.batches[0]

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """The loss of a model on a batch, in whatever mode it is in."""
        if self.loss_fn is not None:
            return self.loss_fn(model, batch)
        assert self.criterion is not None
        return self.criterion(model(batch[0]), batch[1])


Making = tuple[Callable[[torch.Generator], nn.Module], Callable[[int], Data]]
IMAGES = data.images(1, 16)


def _groups(width: int) -> nn.Module:
    return nn.GroupNorm(4, width)


def _relu(depth: int, width: int, draw: Any = as_torch_does, act: Any = nn.ReLU) -> Making:
    return lambda _: plain_mlp(64, width, depth, 10, act, draw), data.flat_digits


def _teacher(depth: int, width: int, draw: Any, act: Any) -> Making:
    return lambda _: plain_mlp(12, width, depth, 1, act, draw), data.regression(12)


def _conv(depth: int, width: int, draw: Any, act: Any = nn.ReLU) -> Making:
    return lambda _: plain_convnet(width, depth, act, draw), IMAGES


def _ours(kind: type[nn.Module], **settings: Any) -> Making:
    given: dict[str, Any] = {"inputs": 64, "outputs": 10, **settings}
    return lambda stream: kind(generator=stream, **given), data.flat_digits


# Healthy -----------------------------------------------------------------------------------------------------
SMALL: dict[str, Making] = {
    "mlp-relu-3x64": (lambda _: mlp(64, 64, 3, 10), data.flat_digits),
    "mlp-relu-8x80": (lambda _: mlp(64, 80, 8, 10), data.flat_digits),
    "mlp-relu-5x96": (lambda _: mlp(64, 96, 5, 10), data.flat_digits),
    "mlp-tanh-6x48": (lambda _: mlp(64, 48, 6, 10, nn.Tanh), data.flat_digits),
    "mlp-tanh-4x72": (lambda _: mlp(64, 72, 4, 10, nn.Tanh), data.flat_digits),
    "mlp-sigmoid-1x64": (lambda _: mlp(64, 64, 1, 10, nn.Sigmoid), data.flat_digits),
    "mlp-sigmoid-1x112": (lambda _: mlp(64, 112, 1, 10, nn.Sigmoid), data.flat_digits),
    "mlp-gelu-5x56": (lambda _: mlp(64, 56, 5, 10, nn.GELU), data.flat_digits),
    "mlp-silu-4x40": (lambda _: mlp(64, 40, 4, 10, nn.SiLU), data.flat_digits),
    "mlp-bn-10x64": (
        lambda _: normalised_mlp(64, 64, 10, 10, nn.BatchNorm1d, nn.ReLU),
        data.flat_digits,
    ),
    "mlp-ln-9x48-tanh": (
        lambda _: normalised_mlp(64, 48, 9, 10, nn.LayerNorm, nn.Tanh),
        data.flat_digits,
    ),
    "regression-tanh-3x32": (lambda _: mlp(12, 32, 3, 1, nn.Tanh), data.regression(12)),
    "regression-silu-2x40": (lambda _: mlp(16, 40, 2, 1, nn.SiLU), data.regression(16)),
    "regression-gelu-3x64": (lambda _: mlp(24, 64, 3, 1, nn.GELU), data.regression(24)),
    "regression-relu-4x48": (lambda _: mlp(20, 48, 4, 2), data.regression(20, 2)),
    "lenet-relu-8-16": (lambda _: lenet(nn.ReLU, (8, 16), 64), IMAGES),
    "lenet-tanh-6-12": (lambda _: lenet(nn.Tanh, (6, 12), 48), IMAGES),
    "lenet-elu-12-20": (lambda _: lenet(nn.ELU, (12, 20), 40), IMAGES),
    "convnet-bn-6": (
        lambda _: normalised_convnet((16, 16, 16, 32, 32, 32), nn.BatchNorm2d, nn.ReLU),
        IMAGES,
    ),
    "convnet-gn-8": (
        lambda _: normalised_convnet((12, 12, 12, 24, 24, 24, 48, 48), _groups, nn.SiLU),
        IMAGES,
    ),
    "convnet-bn-tanh-5": (
        lambda _: normalised_convnet((12, 12, 24, 24, 24), nn.BatchNorm2d, nn.Tanh),
        IMAGES,
    ),
    "residual-mlp-6x48": (lambda _: residual_mlp(64, 48, 6, 10, nn.GELU), data.flat_digits),
    "residual-mlp-12x32": (lambda _: residual_mlp(64, 32, 12, 10, nn.ReLU), data.flat_digits),
    "residual-convnet-bn-5x16": (lambda _: residual_convnet(16, 5, nn.BatchNorm2d), IMAGES),
    "residual-convnet-gn-8x12": (lambda _: residual_convnet(12, 8, _groups), IMAGES),
    "residual-convnet-plain-6x12": (lambda _: residual_convnet(12, 6, None), IMAGES),
    "gated-convnet-4x16": (lambda _: gated_convnet(16, 4), IMAGES),
    "gated-convnet-6x24": (lambda _: gated_convnet(24, 6), IMAGES),
    "lstm-1x48": (lambda _: Recurrent(nn.LSTM, 48), data.rows_of_digits),
    "lstm-2x40-words": (lambda _: Recurrent(nn.LSTM, 40, layers=2, words=99, outputs=4), data.plain_topics),
    "gru-2x32": (lambda _: Recurrent(nn.GRU, 32, layers=2), data.rows_of_digits),
    "rnn-1x64": (lambda _: Recurrent(nn.RNN, 64), data.rows_of_digits),
    "rnn-1x40": (lambda _: Recurrent(nn.RNN, 40), data.rows_of_digits),
    "transformer-pre-3x32": (lambda _: Transformer(32, 3, first=True), data.plain_topics),
    "transformer-post-2x48": (lambda _: Transformer(48, 2, first=False, act="relu"), data.plain_topics),
    "mixer-4x32": (lambda _: Mixer(32, 4), IMAGES),
    "mixer-7x48": (lambda _: Mixer(48, 7), IMAGES),
    "autoencoder-relu": (lambda _: autoencoder(256, (64, 32), nn.ReLU), data.restored(16, 0.0)),
    "autoencoder-elu-deep": (lambda _: autoencoder(144, (96, 64, 24), nn.ELU), data.restored(12, 0.0)),
    "unet-bn-8": (lambda _: UNet(8, nn.BatchNorm2d), data.restored(16, 0.5)),
    "unet-gn-12": (lambda _: UNet(12, _groups, nn.SiLU), data.restored(16, 0.5)),
    "sequence-convnet-4x32": (lambda _: sequence_convnet(32, 4), data.rows_of_digits),
    "highway-8x40": _ours(HighwayNet, width=40, depth=8),
    "highway-5x56": _ours(HighwayNet, width=56, depth=5),
    "balduzzi-residual-bn-10x48": _ours(RescaledNet, width=48, depth=10, beta=0.3, normalisation="batch"),
    "yu-resnet-2x8-16": (
        lambda stream: ResNet(blocks=2, filters=(8, 16), outputs=10, generator=stream),
        data.images(3, 16),
    ),
    "yu-resnet-3x12-24": (
        lambda stream: ResNet(blocks=3, filters=(12, 24), outputs=10, generator=stream),
        data.images(3, 16),
    ),
    "residual-tanh-30x64": (lambda _: tanh_pair(30, 64, skip=True), data.flat_digits),
    "residual-conv-50x16": (lambda _: conv_pair(50, 16, skip=True), IMAGES),
    "residual-tanh-26x48": (lambda _: tanh_pair(26, 48, skip=True), data.flat_digits),
    "residual-conv-32x12": (lambda _: conv_pair(32, 12, skip=True), IMAGES),
}
# Deep networks with neither skips nor normalisation that train all the same, though their gradients are white.
SMALL |= {
    "mlp-relu-20x96-he": _relu(20, 96, scaled(2**0.5)),
    "mlp-relu-24x128-he": _relu(24, 128, scaled(2**0.5)),
    "mlp-relu-31x128-he": _relu(31, 128, scaled(2**0.5)),
    "convnet-20x24-he": _conv(20, 24, scaled(2**0.5)),
}
HEALTHY_HERE = frozenset(SMALL)

# Sick: depth × width, then how weights are drawn --------------------------------------------------------------
SMALL |= {
    "plain-tanh-30x64": (lambda _: tanh_pair(30, 64, skip=False), data.flat_digits),
    "plain-conv-50x16": (lambda _: conv_pair(50, 16, skip=False), IMAGES),
    "plain-tanh-26x48": (lambda _: tanh_pair(26, 48, skip=False), data.flat_digits),
    "plain-conv-32x12": (lambda _: conv_pair(32, 12, skip=False), IMAGES),
    # Of development
    "sick-relu-24x48-torch": _relu(24, 48),
    "sick-relu-16x64-tiny": _relu(16, 64, of_size(0.02)),
    "sick-relu-18x48-huge": _relu(18, 48, scaled(3.5)),
    "sick-relu-50x40-he": _relu(50, 40, scaled(2**0.5)),
    "sick-tanh-12x64-chaotic": _relu(12, 64, scaled(5.0), nn.Tanh),
    "sick-sigmoid-6x48-torch": _relu(6, 48, as_torch_does, nn.Sigmoid),
    "sick-conv-20x12-torch": _conv(20, 12, as_torch_does),
    "sick-conv-60x12-he": _conv(60, 12, scaled(2**0.5)),
    "sick-residual-16x48-large": (
        lambda _: residual_without_norm(48, 16, nn.ReLU, scaled(2.5)),
        data.flat_digits,
    ),
    "sick-crelu-30x32": (lambda _: crelu_mlp(32, 30, scaled(1.0)), data.flat_digits),
    "sick-gelu-20x48-torch": _relu(20, 48, as_torch_does, nn.GELU),
    "sick-teacher-tanh-45x32": _teacher(45, 32, as_torch_does, nn.Tanh),
    # Held out
    "sick-tanh-40x56-torch": _relu(40, 56, as_torch_does, nn.Tanh),
    "sick-relu-36x72-torch": _relu(36, 72),
    "sick-sigmoid-9x64-torch": _relu(9, 64, as_torch_does, nn.Sigmoid),
    "sick-relu-22x100-tiny": _relu(22, 100, of_size(0.01)),
    "sick-tanh-17x80-chaotic": _relu(17, 80, scaled(4.0), nn.Tanh),
    "sick-relu-26x64-huge": _relu(26, 64, scaled(3.0)),
    "sick-relu-70x32-he": _relu(70, 32, scaled(2**0.5)),
    "sick-tanh-14x64-tiny": _relu(14, 64, of_size(0.005), nn.Tanh),
    "sick-silu-28x64-torch": _relu(28, 64, as_torch_does, nn.SiLU),
    "sick-leaky-44x40-torch": _relu(44, 40, as_torch_does, nn.LeakyReLU),
    "sick-teacher-relu-32x40": _teacher(32, 40, as_torch_does, nn.ReLU),
    "sick-conv-26x10-torch": _conv(26, 10, as_torch_does),
    "sick-conv-42x10-he": _conv(42, 10, scaled(2**0.5)),
    "sick-conv-34x14-tanh-torch": _conv(34, 14, as_torch_does, nn.Tanh),
    "sick-conv-18x12-huge": _conv(18, 12, scaled(4.0)),
    "sick-residual-24x40-he": (
        lambda _: residual_without_norm(40, 24, nn.ReLU, scaled(2**0.5)),
        data.flat_digits,
    ),
    "sick-residual-conv-22x10-large": (
        lambda _: residual_without_norm(10, 22, nn.ReLU, scaled(2.5), images=True),
        IMAGES,
    ),
    "sick-crelu-45x24": (lambda _: crelu_mlp(24, 45, scaled(2**0.5)), data.flat_digits),
}


# Libraries ---------------------------------------------------------------------------------------------------
_TEXT: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 99,
    "num_labels": 4,
    "pad_token_id": 0,
}
_PIXELS = {**_TEXT, "image_size": 32, "patch_size": 8, "num_labels": 10}
_DISTIL = {"dim": 32, "n_layers": 3, "n_heads": 2, "hidden_dim": 64, "vocab_size": 99, "num_labels": 4}
_GPT2 = {"n_embd": 32, "n_layer": 3, "n_head": 2, "vocab_size": 99, "bos_token_id": 1, "eos_token_id": 1}
_T5 = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2, "vocab_size": 99}
_MPNET = {**_TEXT, "max_position_embeddings": 24}

# By name: the model's class without "Config", what it is for, its configuration, and its data.
TRANSFORMERS: dict[str, tuple[str, str, dict[str, Any], Callable[[int], Data]]] = {
    "distilbert": ("DistilBert", "ForSequenceClassification", _DISTIL, data.topics),
    "llama": ("Llama", "ForSequenceClassification", {**_TEXT, "num_key_value_heads": 2}, data.topics),
    "vit": (
        "ViT",
        "ForImageClassification",
        {**_PIXELS, "hidden_size": 96, "intermediate_size": 192},
        data.pictures(32),
    ),
    "bert": ("Bert", "ForSequenceClassification", {**_TEXT, "max_position_embeddings": 16}, data.topics),
    "gpt2": ("GPT2", "LMHeadModel", _GPT2, data.next_words),
    "t5": ("T5", "ForConditionalGeneration", {**_T5, "decoder_start_token_id": 0}, data.answers),
    "mpnet": ("MPNet", "ForSequenceClassification", _MPNET, data.topics),
    "electra": ("Electra", "ForSequenceClassification", {**_TEXT, "embedding_size": 24}, data.topics),
    "deit": ("DeiT", "ForImageClassification", {**_PIXELS, "hidden_size": 48}, data.pictures(32)),
}
TRAINED, TRAINED_STEPS, TRAINED_RATE = "trained-", 300, 3e-3
SIZES = {"timm:swin_tiny_patch4_window7_224": 64}  # pixels, 64 where nothing else is said


def is_stock(name: str) -> bool:
    """Whether a name is of a model of another library."""
    return ":" in name


def build(name: str, seed: int) -> Network:
    """The network of a name with a seed's weights and data; a test is skipped where the library is missing."""
    if name.startswith(TRAINED):
        return trained(build(name.removeprefix(TRAINED), seed), seed)
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        torch.default_generator.manual_seed(derive(seed, "cases", name))
        if is_stock(name):
            warnings.simplefilter("ignore")  # theirs, on import and on building
            library, _, model = name.partition(":")
            made, make_data = LIBRARIES[library](model)
        else:
            make, make_data = SMALL[name]
            made = make(torch_generator(seed, "cases", name))
    given = make_data(seed)
    return Network(made.train(), given.batches, given.criterion, given.loss_fn)


def trained(network: Network, seed: int) -> Network:
    """A network after a training by Adam on its batches in turn, long enough to learn them by heart."""
    model, optimiser = network.model, torch.optim.Adam(network.model.parameters(), TRAINED_RATE)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(derive(seed, "cases", "trained"))
        for step in range(TRAINED_STEPS):
            optimiser.zero_grad()
            network.loss(model, network.batches[step % len(network.batches)]).backward()
            optimiser.step()
    model.zero_grad()
    return network


def _torchvision(name: str) -> tuple[nn.Module, Callable[[int], Data]]:
    models = pytest.importorskip("torchvision").models
    return models.get_model(name, num_classes=10), data.images(3, SIZES.get(f"torchvision:{name}", 64))


def _timm(name: str) -> tuple[nn.Module, Callable[[int], Data]]:
    timm, size = pytest.importorskip("timm"), SIZES.get(f"timm:{name}", 64)
    try:
        made = timm.create_model(name, num_classes=10, img_size=size)
    except TypeError:  # only models with a fixed number of patches take a size
        made = timm.create_model(name, num_classes=10)
    return made, data.images(3, size)


def _transformers(name: str) -> tuple[nn.Module, Callable[[int], Data]]:
    library = pytest.importorskip("transformers")
    kind, use, settings, make_data = TRANSFORMERS[name]
    config = getattr(library, f"{kind}Config")(**settings)
    return getattr(library, f"{kind}{use}")(config), make_data


LIBRARIES: dict[str, Callable[[str], tuple[nn.Module, Callable[[int], Data]]]] = {
    "torchvision": _torchvision,
    "timm": _timm,
    "transformers": _transformers,
}
