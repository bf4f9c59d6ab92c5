"""Calls of instruments that nobody would write on purpose: a sound call with one or two of its parts made odd.

A part is the network, the input, the target, the batch around them, the loss, or a keyword. Sizes stay small: a
million draws are asked for by nobody and would only take long.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from skiplab.curvature.spectrum_methods import Exact, Lanczos, Moments
from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator

X = torch.randn(6, 5, generator=torch_generator("odd", "x"))
Y = torch.tensor([0, 1, 2, 1, 0, 2])
IMAGES = torch.randn(6, 2, 4, 4, generator=torch_generator("odd", "images"))
WORDS = torch.randint(7, (6, 3), generator=torch_generator("odd", "words"))

# Networks ---------------------------------------------------------------------------------------------------


class Skips(nn.Module):
    """Two residual blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(5, 5), nn.ReLU()) for _ in range(2))
        self.head = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


class Answering(nn.Module):
    """A network that returns what it is told to."""

    def __init__(self, answer: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.layer, self.act, self.head, self.answer = nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3), answer

    def forward(self, x: Tensor) -> Any:
        return self.answer(self.head(self.act(self.layer(x))))


def plain() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3))


def filled(value: float) -> nn.Module:
    net = plain()
    with torch.no_grad():
        net[2].weight.fill_(value)
    return net


SOUND: dict[str, tuple[Callable[[], nn.Module], Tensor]] = {
    "plain": (plain, X),
    "skips": (Skips, X),
    "normalised": (lambda: nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3)), X),
    "images": (
        lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 3)),
        IMAGES,
    ),
    "words": (
        lambda: nn.Sequential(nn.Embedding(7, 4), nn.Flatten(), nn.Linear(12, 4), nn.ReLU(), nn.Linear(4, 3)),
        WORDS,
    ),
}
ODD_NETWORKS: dict[str, Callable[[], Any]] = {
    "half": lambda: plain().half(),
    "bfloat16": lambda: plain().bfloat16(),
    "double": lambda: plain().double(),
    "complex": lambda: plain().to(torch.complex64),
    "meta": lambda: plain().to("meta"),
    "lazy": lambda: nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.Linear(4, 3)),
    "nan": lambda: filled(float("nan")),
    "infinite": lambda: filled(float("inf")),
    "huge numbers": lambda: filled(1e38),
    "zeros": lambda: filled(0.0),
    "frozen": lambda: plain().requires_grad_(False),
    "without parameters": nn.ReLU,
    "nothing inside": nn.Sequential,
    "one layer": lambda: nn.Linear(5, 3),
    "one unit": lambda: nn.Sequential(nn.Linear(5, 1), nn.ReLU(), nn.Linear(1, 3)),
    "no rectifier": lambda: nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)),
    "constant": lambda: Answering(lambda x: torch.zeros(6, 3)),
    "detached": lambda: Answering(lambda x: x.detach()),
    "a tuple": lambda: Answering(lambda x: (x, x)),
    "a dict": lambda: Answering(lambda x: {"logits": x}),
    "a number": lambda: Answering(lambda x: x.sum()),
    "a float": lambda: Answering(lambda x: x.sum().item()),
    "None": lambda: Answering(lambda x: None),
    "an array": lambda: Answering(lambda x: x.detach().numpy()),
    "integers": lambda: Answering(lambda x: x.argmax(1)),
    "fewer rows": lambda: Answering(lambda x: x[:2]),
    "no rows": lambda: Answering(lambda x: x[:0]),
    "no columns": lambda: Answering(lambda x: x[:, :0]),
    "five axes": lambda: Answering(lambda x: x[:, :, None, None, None]),
    "ensemble": lambda: Ensemble.of([plain(), plain()]),
    "looped ensemble": lambda: Ensemble.of([plain(), filled(float("nan"))], backend="loop"),
    "no network": lambda: None,
    "a name": lambda: "plain",
    "a class": lambda: nn.Linear,
    "a function": lambda: torch.relu,
    "a list": lambda: [plain()],
    "a state": lambda: plain().state_dict(),
}

# Tensors ----------------------------------------------------------------------------------------------------

DTYPES = (
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64),
    *(torch.int64, torch.int32, torch.uint8, torch.bool),
)
SPECIAL = (float("nan"), float("inf"), -float("inf"), 0.0, 1e38, 1e-45, -1.0, 2.0, 99.0)


@st.composite
def tensors(draw: st.DrawFn, like: Tensor) -> Any:
    """A tensor of another shape, type, place or content than a sound one, or no tensor."""
    change = draw(st.sampled_from(("shape", "dtype", "value", "size", "place", "kind")))
    if change == "shape":
        shape = draw(st.lists(st.integers(0, 6), max_size=5))
        return torch.ones(shape, dtype=draw(st.sampled_from((like.dtype, torch.float32))))
    if change == "dtype":
        return like.to(draw(st.sampled_from(DTYPES)))
    if change == "value":
        value = draw(st.sampled_from(SPECIAL))
        if not like.is_floating_point():
            value = draw(st.sampled_from((-100, -1, 3, 7, 2**40)))
        changed = like.clone()
        changed[draw(st.sampled_from((slice(None), slice(0, 1))))] = value
        return changed
    if change == "size":
        return like[:1].expand(draw(st.sampled_from((0, 1, 2, 7, 300))), *like.shape[1:])
    if change == "place":
        makes: tuple[Callable[[], Any], ...] = (
            lambda: like.to("meta"), lambda: like.to_sparse(), lambda: like.mT if like.ndim > 1 else like[::2],
            lambda: like.clone().requires_grad_() if like.is_floating_point() else like, lambda: nn.Parameter(
                like, requires_grad=False),
        )  # fmt: skip
        return draw(st.sampled_from(makes))()
    others: tuple[Callable[[], Any], ...] = (
        lambda: None, lambda: like.numpy(), lambda: like.tolist(), lambda: "input", lambda: 3, lambda: float("nan"),
        lambda: (like, like), lambda: {"x": like}, lambda: [like, None], lambda: b"", object,
    )  # fmt: skip
    return draw(st.sampled_from(others))()


def arranged(draw: st.DrawFn, x: Any, y: Any) -> Any:
    """A batch that is arranged in another way than (input, target)."""
    ways: tuple[Callable[[], Any], ...] = (
        lambda: x, lambda: (x,), lambda: (x, y, y), lambda: (y, x), lambda: [x, y], lambda: [(x, y), (x, y)],
        lambda: {"input": x, "labels": y}, lambda: {"input": x}, lambda: {"labels": y}, dict, lambda: (),
        list, lambda: [()], lambda: [None], lambda: iter([(x, y)]), lambda: iter([]), lambda: None,
        lambda: {1: x, "labels": y}, lambda: ((x, y), y), lambda: "batch", lambda: 5, lambda: [(x, y), (x, None)],
        lambda: {"": x, "y": y}, lambda: torch.utils.data.TensorDataset(torch.ones(3, 5), torch.ones(3)),
        lambda: np.ones((6, 5)), lambda: range(3), lambda: (None, None),
    )  # fmt: skip
    return draw(st.sampled_from(ways))()


# Losses and keywords ----------------------------------------------------------------------------------------

ODD_LOSSES: tuple[Any, ...] = (
    nn.MSELoss(), nn.BCEWithLogitsLoss(), nn.NLLLoss(), nn.CrossEntropyLoss(reduction="none"),
    nn.CrossEntropyLoss(reduction="sum"), nn.CrossEntropyLoss(ignore_index=1),
    nn.CrossEntropyLoss(weight=torch.ones(2)), nn.CrossEntropyLoss(weight=torch.zeros(3)),
    nn.CrossEntropyLoss(label_smoothing=0.1), nn.CrossEntropyLoss,
    nn.functional.cross_entropy, None, "cross entropy", 3, lambda output, target: None,
    lambda output, target: 1.0, lambda output, target: output, lambda output, target: output.sum() * 0,
    lambda output, target: output.sum() / 0, lambda output, target: torch.tensor(1.0), lambda output: output,
    lambda output, target: output.sum().item(), lambda output, target: output.abs().sum().sqrt(),
)  # fmt: skip
HUGE = 2**70
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, -3, -1, 0, 1, 2, 3, 7, 1.5, -0.5, 1e-30, float("nan"), float("inf"), -float("inf"), HUGE,
    "", " ", "3", "eval", "nan", "\x1b[31m", "ü" * 50, b"x", (), [], {}, [None], [""], ["0", "0"], [0], [1.5], {"0"},
    object(), torch.tensor(1), torch.tensor(0.5), np.int64(2), np.float32(0.5), 1j, [[]], "0", ["0"], ["2"],
    ["0", "2"],
)  # fmt: skip
# What takes long where it is large, and large numbers are sound.
COUNTS = ("draws", "products", "k", "probes", "max_steps", "angles", "top", "samples_at_once", "chunk")
WORDS_OF: dict[str, tuple[Any, ...]] = {
    "mode": ("eval", "train", "batch", "Eval"),
    "kind": ("hessian", "gauss_newton", "fisher", "crelu", "prelu", "hesian"),
    "which": ("both", "largest", "smallest", "low", "high"),
    "method": (
        *("auto", "exact", "lanczos", "moments", "best", Exact),
        *(Exact(), Lanczos(probes=2, steps=5), Moments(probes=2)),
    ),
    "outputs": ("sum", "loss", "each", 0, 2, 3, -1),
    "over": ("sample", "batch", "layer"),
    "layers": (["0"], ["0", "0"], ["0.weight"], ["0.bias", "2.weight"], "0", ["1.running_mean"], ["x"], [], 0),
    "identities": (
        *({"0": torch.eye(4, 5)}, {"2": torch.eye(4)}, {"0": None}, {"x": torch.eye(3)}, {"0": torch.ones(2)}),
    ),
    "final": ("0", "2", "4", "head", "x"),
    "counted": (["0"], ["head"], ["x"]),
    "seed": ([0], [0, 1], [0.5], range(3), "seed"),
    "vectors": (torch.ones(1, 2, 3), torch.ones(1, 1, 55), torch.zeros(0), torch.ones(1, 1, 55).long()),
    "generator": (torch.Generator(),),
    "criterion": ODD_LOSSES,
    "loss_fn": (lambda model, batch: model(batch[0]).sum(), lambda model, batch: None, lambda model: 0, "loss", 3),
    "tell": (print, None),
}  # fmt: skip


@dataclass
class OddCall:
    """What an instrument is called with; names say which parts are odd, for whoever reads a failure."""

    target: Any
    batch: Any
    keywords: dict[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()


@st.composite
def odd_calls(draw: st.DrawFn, instrument: Callable[..., Any]) -> OddCall:
    """A call of an instrument with one to three odd parts."""
    takes = list(inspect.signature(instrument).parameters)[1:]
    settings = [name for name in takes if name not in ("batch", "batches", "tell")]
    sound = draw(st.sampled_from(sorted(SOUND)))
    build, x = SOUND[sound]
    y: Any = Y
    choices = st.sampled_from(("network", "input", "target", "batch", *settings))
    parts = draw(st.lists(choices, min_size=1, max_size=3))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        if "network" in parts:
            which = draw(st.sampled_from(sorted(ODD_NETWORKS)))
            target, sound = ODD_NETWORKS[which](), f"odd: {which}"
            x = X.double() if which == "double" else X
        else:
            target = build()
    if "input" in parts:
        x = draw(tensors(x))
    if "target" in parts:
        y = draw(tensors(Y))
    batch = arranged(draw, x, y) if "batch" in parts else (x, y)
    keywords: dict[str, Any] = {"criterion": nn.CrossEntropyLoss()} if "criterion" in takes else {}
    if instrument.__name__ == "gradient_shattering" and draw(st.booleans()):
        keywords = {}
    if "generator" in takes:
        keywords["generator"] = torch_generator(0)
    for name in settings:
        if name in parts:
            odd = [value for value in ODD_VALUES if name not in COUNTS or value is not HUGE]
            keywords[name] = draw(st.sampled_from((*WORDS_OF.get(name, ()), *WORDS_OF.get(name, ()), *odd)))
    return OddCall(target, batch, keywords, (sound, *parts))
