"""Fifty-one kinds of module as users write them, each small, with an input; all of them return (4, 3).

A kind is one entry of KINDS. Many keep state outside parameters and buffers, or change what they have in a forward
pass: that is what a measurement has to put back.
"""

from __future__ import annotations

import random
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune
from torch.utils.checkpoint import checkpoint

from skiplab.randomness import torch_generator

FLAT = torch.randn(4, 5, generator=torch_generator("kinds", "flat"))
STEPS = torch.randn(4, 3, 5, generator=torch_generator("kinds", "steps"))
IMAGES = torch.randn(4, 2, 6, 6, generator=torch_generator("kinds", "images"))
WORDS = torch.randint(7, (4, 3), generator=torch_generator("kinds", "words"))
LABELS = torch.tensor([0, 1, 2, 1])


class Between(nn.Module):
    """Two layers with something in between, which a subclass says."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.act, self.head = nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 3)
        self.begin()

    def begin(self) -> None:
        """What the network has besides its layers."""

    def middle(self, x: Tensor) -> Tensor:
        """What happens between the layers."""
        return x

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.act(self.middle(self.first(x))))


def between(
    middle: Callable[[Any, Tensor], Tensor], begin: Callable[[Any], None] = lambda net: None
) -> nn.Module:
    """A network of a class of its own, as a user would write it."""
    return type("UsersNet", (Between,), {"middle": middle, "begin": begin})()


def layers(*middle: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(5, 6), *middle, nn.ReLU(), nn.Linear(6, 3))


def after(change: Callable[[nn.Linear], Any]) -> nn.Module:
    """A network whose first layer was changed by a function of torch."""
    net = layers()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old-style functions are said to be old
        change(net[0])
    return net


def of_images(*middle: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), *middle, nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))


class Steps(nn.Module):
    """A recurrent layer read out at its last step."""

    def __init__(self, kind: type[nn.RNNBase], **settings: Any) -> None:
        super().__init__()
        self.cells = kind(5, 4, batch_first=True, **settings)
        self.head = nn.Linear(8 if settings.get("bidirectional") else 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cells(x)[0][:, -1])


class Attention(nn.Module):
    """Self-attention with a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.mixing, self.head = nn.MultiheadAttention(5, 1, batch_first=True), nn.Linear(15, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head((x + self.mixing(x, x, x)[0]).flatten(1))


class Residual(nn.Module):
    """Two residual blocks in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(layers()[:2] for _ in range(2))
        self.scales = nn.ParameterList(torch.ones(6) for _ in range(2))
        self.head = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        for block, scale in zip(self.blocks, self.scales, strict=True):
            x = x + (block(x) * scale)[:, :5]
        return self.head(x)


class Bag(nn.Module):
    """Embeddings of words, of which some have a largest norm and are cut down to it in place when looked up."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.words, self.head = nn.EmbeddingBag(7, 5, **settings), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.words(x))


class Words(nn.Module):
    """Embeddings of words, looked up one by one."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(7, 5, **settings), nn.Linear(15, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.words(x).flatten(1))


class Tally:
    """What a network counts in an object of a class of its own."""

    def __init__(self) -> None:
        self.calls, self.history = 0, [0]


class NeverSwitched(Between):
    """train() and eval() are forbidden, as where they would be expensive."""

    def train(self, mode: bool = True) -> NeverSwitched:
        raise RuntimeError("the mode of this network is not to be changed")


# What happens between two layers ----------------------------------------------------------------------------


def with_own_hooks() -> nn.Module:
    net = layers()
    seen: list[int] = []
    net[0].register_forward_hook(lambda _, __, output: seen.append(len(output)))
    net[2].register_full_backward_hook(lambda _, __, ___: None)
    net.register_forward_pre_hook(lambda _, __: None)
    return net


def tied() -> nn.Module:
    net = nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 3))
    net[2].weight = net[0].weight
    net[4].bias.requires_grad_(False)
    return net


def counted(net: Any, x: Tensor) -> Tensor:
    net.count += 1
    net.last = x.shape
    return x * (1 + net.count * 1e-3)


def listed(net: Any, x: Tensor) -> Tensor:
    net.seen.append(x.mean().item() if not x.requires_grad else 0.0)
    net.recent.appendleft(len(net.seen))
    net.sizes.add(len(net.seen))
    return x


def cached(net: Any, x: Tensor) -> Tensor:
    net.cache["x"] = x.detach()
    net.cache["inner"]["calls"] += 1
    return x


def in_an_object(net: Any, x: Tensor) -> Tensor:
    net.state.calls += 1
    net.state.history.append(net.state.calls)
    return x


def added_to(name: str) -> Callable[[Any, Tensor], Tensor]:
    """Add one in place to what lies under a name: an array, a tensor or a buffer."""

    def middle(net: Any, x: Tensor) -> Tensor:
        held = getattr(net, name)
        held += 1
        return x

    return middle


def averaged(net: Any, x: Tensor) -> Tensor:
    net.mean = 0.9 * net.mean + 0.1 * x.detach().mean(0)
    return x


def decayed(net: Any, x: Tensor) -> Tensor:
    with torch.no_grad():
        net.first.weight.mul_(0.9)
    return x


def decayed_data(net: Any, x: Tensor) -> Tensor:
    net.first.weight.data.mul_(0.9)
    return x


def switched(net: Any, x: Tensor) -> Tensor:
    net.act.train(not net.act.training)
    return x


def hooked(net: Any, x: Tensor) -> Tensor:
    net.act.register_forward_hook(lambda _, __, output: output)
    return x


def built(net: Any, x: Tensor) -> Tensor:
    if not hasattr(net, "scale"):
        net.scale = nn.Parameter(torch.ones(6))
    return x * net.scale


def unhooked_state(net: Any, x: Tensor) -> Tensor:
    torch.set_grad_enabled(torch.is_grad_enabled())
    torch.set_num_threads(torch.get_num_threads() + 1)
    torch.set_default_dtype(torch.float64)
    return x


def drawn(net: Any, x: Tensor) -> Tensor:
    return x + 0.01 * torch.randn(6)


def drawn_by_numpy(net: Any, x: Tensor) -> Tensor:
    return x + 0.01 * float(np.random.rand())  # noqa: NPY002 - as users do


def drawn_by_python(net: Any, x: Tensor) -> Tensor:
    return x + 0.01 * random.random()


def drawn_by_generators(net: Any, x: Tensor) -> Tensor:
    own = 0.01 * torch.rand(6, generator=net.torchs)
    return x + own + 0.01 * net.numpys.random() + 0.01 * net.pythons.random()


def generators(net: Any) -> None:
    net.torchs, net.numpys, net.pythons = torch.Generator(), np.random.default_rng(0), random.Random(0)


def scripted() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is said to be old
        return torch.jit.script(layers(nn.BatchNorm1d(6)))


def traced() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(layers(nn.BatchNorm1d(6)), FLAT)


def compiled() -> nn.Module:
    return torch.compile(layers(), backend="eager")


def begun(**values: Any) -> Callable[[Any], None]:
    """Give a network copies of these as plain attributes."""

    def begin(net: Any) -> None:
        for name, value in values.items():
            setattr(net, name, value())

    return begin


Kind = tuple[Callable[[], nn.Module], Tensor]
KINDS: dict[str, Kind] = {
    # What torch has
    "layers": (layers, FLAT),
    "frozen and tied": (tied, FLAT),
    "batch normalisation": (lambda: layers(nn.BatchNorm1d(6)), FLAT),
    "batch normalisation, cumulative": (lambda: layers(nn.BatchNorm1d(6, momentum=None)), FLAT),
    "batch normalisation without statistics": (
        lambda: layers(nn.BatchNorm1d(6, track_running_stats=False)),
        FLAT,
    ),
    "layer normalisation": (lambda: layers(nn.LayerNorm(6)), FLAT),
    "group normalisation": (lambda: of_images(nn.GroupNorm(2, 4)), IMAGES),
    "instance normalisation": (lambda: of_images(nn.InstanceNorm2d(4, track_running_stats=True)), IMAGES),
    "dropout": (lambda: layers(nn.Dropout(0.3)), FLAT),
    "in-place activation": (lambda: layers(nn.ReLU(inplace=True)), FLAT),
    "convolution": (of_images, IMAGES),
    "convolution, channels last": (lambda: of_images().to(memory_format=torch.channels_last), IMAGES),
    "double precision": (lambda: layers().double(), FLAT.double()),
    "lists of modules and parameters": (Residual, FLAT),
    "LSTM": (lambda: Steps(nn.LSTM), STEPS),
    "GRU, two ways": (lambda: Steps(nn.GRU, bidirectional=True), STEPS),
    "attention": (Attention, STEPS),
    "transformer": (
        lambda: nn.Sequential(
            nn.TransformerEncoderLayer(5, 1, 6, batch_first=True), nn.Flatten(), nn.Linear(15, 3)
        ),
        STEPS,
    ),
    "embedding": (Words, WORDS),
    "embedding with a largest norm": (lambda: Words(max_norm=0.5), WORDS),
    "embedding bag with a largest norm": (lambda: Bag(max_norm=0.5), WORDS),
    # What torch's functions make of a layer
    "weight norm": (lambda: after(parametrizations.weight_norm), FLAT),
    "weight norm, old": (lambda: after(torch.nn.utils.weight_norm), FLAT),
    "spectral norm": (lambda: after(parametrizations.spectral_norm), FLAT),
    "spectral norm, old": (lambda: after(torch.nn.utils.spectral_norm), FLAT),
    "orthogonal": (lambda: after(parametrizations.orthogonal), FLAT),
    "pruned": (lambda: after(lambda layer: prune.l1_unstructured(layer, "weight", 0.3)), FLAT),
    "scripted": (scripted, FLAT),
    "traced": (traced, FLAT),
    "compiled": (compiled, FLAT),
    "checkpointed": (lambda: between(lambda net, x: checkpoint(torch.tanh, x, use_reentrant=False)), FLAT),
    # What users do
    "hooks of one's own": (with_own_hooks, FLAT),
    "no change of mode": (NeverSwitched, FLAT),
    "counts": (lambda: between(counted, begun(count=int, last=tuple)), FLAT),
    "keeps lists": (lambda: between(listed, begun(seen=list, recent=deque, sizes=set)), FLAT),
    "keeps a dict": (lambda: between(cached, begun(cache=lambda: {"inner": {"calls": 0}})), FLAT),
    "keeps an object": (
        lambda: between(in_an_object, begun(state=Tally)),
        FLAT,
    ),
    "keeps an array": (lambda: between(added_to("array"), begun(array=lambda: np.zeros(3))), FLAT),
    "keeps a tensor": (lambda: between(added_to("tensor"), begun(tensor=lambda: torch.zeros(3))), FLAT),
    "changes a buffer": (
        lambda: between(added_to("calls"), lambda net: net.register_buffer("calls", torch.zeros(()))),
        FLAT,
    ),
    "replaces a buffer": (
        lambda: between(averaged, lambda net: net.register_buffer("mean", torch.zeros(6), persistent=False)),
        FLAT,
    ),
    "changes a parameter": (lambda: between(decayed), FLAT),
    "changes a parameter's data": (lambda: between(decayed_data), FLAT),
    "switches a mode": (lambda: between(switched), FLAT),
    "registers a hook": (lambda: between(hooked), FLAT),
    "builds a parameter when called": (lambda: between(built), FLAT),
    "sets torch's globals": (lambda: between(unhooked_state), FLAT),
    "draws from torch": (lambda: between(drawn), FLAT),
    "draws from numpy": (lambda: between(drawn_by_numpy), FLAT),
    "draws from Python": (lambda: between(drawn_by_python), FLAT),
    "draws from generators of its own": (lambda: between(drawn_by_generators, generators), FLAT),
}


def made(name: str) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    """A network of a kind, the same at every call, and a batch for it."""
    build, inputs = KINDS[name]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(3)
        return build(), (inputs, LABELS)
