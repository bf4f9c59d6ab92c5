"""What every measurement must satisfy: it leaves a user's module as it found it.

Parameters, gradients, buffers, modes, hooks, random states: after success, after a wrong argument, and after a
crash in the forward or backward pass or in the loss. A new measurement is one line in MEASUREMENTS.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.measurements.activation_patterns import activation_patterns
from skiplab.measurements.branch_ratios import branch_ratios
from skiplab.measurements.dominant_gradient_flow import dominant_gradient_flow
from skiplab.measurements.gradient_norms import gradient_norms
from skiplab.measurements.gradient_shattering import gradient_shattering
from skiplab.measurements.hessian_extremes import hessian_extremes
from skiplab.measurements.hessian_product import hessian_product
from skiplab.measurements.hessian_spectrum import hessian_spectrum
from skiplab.measurements.hessian_trace import hessian_trace
from skiplab.measurements.layer_signals import layer_signals
from skiplab.measurements.noise_stability import interlayer_cushions, layer_cushions, weight_noise
from skiplab.measurements.path_depth import path_depth
from skiplab.measurements.saturation import saturation
from skiplab.measurements.singularities import singularities
from skiplab.measurements.symmetry import permutation_symmetry, rescaling_symmetry
from skiplab.randomness import torch_generator


def shattering(target: Any, batches: Any, *, criterion: Any = None, **settings: Any) -> Any:
    """Call gradient_shattering as the others are called: of losses where there is a criterion."""
    outputs = "sum" if criterion is None else "loss"
    return gradient_shattering(
        target, one_batch(batches), outputs=outputs, criterion=criterion, **by_sample(settings)
    )


def patterns(target: Any, batches: Any, *, criterion: Any = None, **settings: Any) -> Any:
    """Call activation_patterns as the others are called; it takes no loss."""
    return activation_patterns(target, one_batch(batches), **by_sample(settings))


def cushions(target: Any, batches: Any, *, criterion: Any = None, **settings: Any) -> Any:
    """Call layer_cushions as the others are called; it takes no criterion."""
    return layer_cushions(target, batches, **settings)


def between(target: Any, batches: Any, *, criterion: Any = None, **settings: Any) -> Any:
    """Call interlayer_cushions as the others are called; it takes no criterion."""
    return interlayer_cushions(target, batches, **settings)


def saturated(target: Any, batches: Any, *, criterion: Any = None, **settings: Any) -> Any:
    """Call saturation as the others are called; it takes no criterion."""
    return saturation(target, batches, **settings)


def branches(target: Any, batches: Any, *, criterion: Any = None, **settings: Any) -> Any:
    """Call branch_ratios as the others are called; it takes no criterion."""
    return branch_ratios(target, batches, **settings)


def noise(target: Any, batches: Any, **settings: Any) -> Any:
    """Call weight_noise with few draws."""
    return weight_noise(target, batches, draws=2, **settings)


def paths(target: Any, batches: Any, *, mode: str = "eval", **settings: Any) -> Any:
    """Call path_depth as the others are called; a layer counts beside the skip."""
    frozen = "batch" if mode == "train" else mode
    return path_depth(target, batches, mode=frozen, counted=["body.first"], **settings)


def one_batch(batches: Any) -> Any:
    return batches if isinstance(batches, tuple) else (batches[0]["image"], batches[0]["class"])


def by_sample(settings: dict[str, Any]) -> dict[str, Any]:
    """What looks at samples one by one has the batch's statistics as constants for the mode of training."""
    given = {name: value for name, value in settings.items() if name != "loss_fn"}
    return given | {"mode": "batch" if settings.get("mode") == "train" else "eval"}


# The function, an argument that it must refuse, and the sentence with which it does.
MEASUREMENTS: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (
        gradient_norms,
        {"layers": ["body.frist"]},
        r"layer 'body.frist' does not exist.*Did you mean body\.first",
    ),
    (
        hessian_product,
        {"layers": ["head.wieght"]},
        r"layer 'head.wieght' does not exist.*head\.weight",
    ),
    *(
        (
            measure,
            {"layers": ["head.wieght"]},
            r"layer 'head.wieght' does not exist.*head\.weight",
        )
        for measure in (hessian_extremes, hessian_spectrum, hessian_trace)
    ),
    (
        singularities,
        {"layers": ["body.frist"]},
        r"layer 'body.frist' does not exist.*Did you mean body\.first",
    ),
    (
        rescaling_symmetry,
        {"layers": ["body.frist", "head"]},
        r"layer 'body.frist' does not exist.*Did you mean body\.first",
    ),
    (
        permutation_symmetry,
        {"layers": ["body.frist"]},
        r"layer 'body.frist' does not exist.*Did you mean body\.first",
    ),
    (shattering, {"layers": ["body.frist"]}, r"layer 'body.frist' does not exist.*Did you mean body\.first"),
    (patterns, {"layers": ["body.act1"]}, r"layer 'body.act1' does not exist.*Did you mean body\.act"),
]
MEASUREMENTS += [
    (each, {"layers": ["body.frist"]}, r"layer 'body.frist' does not exist.*Did you mean body\.first")
    for each in (dominant_gradient_flow, cushions, between, noise, paths, layer_signals, saturated, branches)
]
# These take no gradient, so nothing can crash on the way back.
# (path_depth goes back through a copy of the pass, in which the network's own tensors take no part.)
FORWARD_ONLY = (
    rescaling_symmetry,
    permutation_symmetry,
    patterns,
    cushions,
    noise,
    paths,
    saturated,
    branches,
)
WITHOUT_LOSS = (patterns, cushions, between, saturated, branches)
every = pytest.mark.parametrize(
    ("measure", "wrong", "sentence"), MEASUREMENTS, ids=[case[0].__name__ for case in MEASUREMENTS]
)
modes = pytest.mark.parametrize("mode", ["eval", "train"])

X = torch.randn(6, 5, generator=torch_generator("contract"), dtype=torch.float64)
Y = torch.randint(3, (6,), generator=torch_generator("contract labels"))


class Crash(RuntimeError):
    """What the user's code raises."""


class Body(nn.Module):
    """Batch normalisation, dropout, an in-place activation, a skip, a tied and a frozen parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 5)
        self.norm = nn.BatchNorm1d(5)
        self.drop = nn.Dropout(0.3)
        self.act = nn.ReLU(inplace=True)
        self.second = nn.Linear(5, 5)
        self.second.weight = self.first.weight
        self.second.bias.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(x + self.act(self.drop(self.norm(self.first(x)))))


class Net(nn.Module):
    """A user's network that can be told to crash, once its statistics have moved."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = Body(), nn.Linear(5, 3)
        self.register_buffer("calls", torch.zeros(()))
        self.crash = ""

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        x = self.body(x)
        if self.crash == "forward":
            raise Crash("midway")
        if self.crash == "backward" and x.requires_grad:
            x.register_hook(self.fail)
        return self.head(x)

    @staticmethod
    def fail(gradient: Tensor) -> Tensor:
        raise Crash("on the way back")


def users_net() -> Net:
    """A network in use: hooks, gradients, and parts in different modes."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(3)
        net = Net().double()
        nn.functional.cross_entropy(net(X), Y).backward()
    net.body.norm.eval()
    net.head.register_forward_hook(lambda _, __, output: output)
    net.body.register_forward_pre_hook(lambda _, __: None)
    net.head.register_full_backward_hook(lambda _, __, ___: None)
    net.register_state_dict_post_hook(lambda *_: None)
    return net


def snapshot(net: nn.Module) -> dict[str, Any]:
    """Everything about a module and the random states that a measurement might disturb."""
    tensors = dict((*net.named_parameters(remove_duplicate=False), *net.named_buffers()))
    found: dict[str, Any] = {}
    for name, tensor in tensors.items():
        gradient = tensor.grad
        found[name] = (id(tensor), tensor.detach().clone(), tensor.requires_grad, tensor._version)
        found[f"{name}.grad"] = None if gradient is None else (id(gradient), gradient.clone())
    for name, part in net.named_modules():
        found[f"{name}: mode"] = part.training
        found[f"{name}: attributes"] = list(part.__dict__)
        for key, value in part.__dict__.items():
            if "hook" in key:
                found[f"{name}: {key}"] = list(value.items()) if isinstance(value, dict) else value
    numpy_state = np.random.get_state()  # noqa: NPY002 - the global state is what must not move
    found["numpy"] = [part.tolist() if isinstance(part, np.ndarray) else part for part in numpy_state]
    found["python"] = random.getstate()
    found["torch"] = torch.random.get_rng_state()
    found["grad mode"] = torch.is_grad_enabled()
    return found


def equal(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, Tensor):
        return torch.equal(one, other)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [key for key in before | after if not equal(before.get(key), after.get(key))]


@pytest.mark.parametrize("change", ["mode", "hook", "grad", "buffer", "parameter", "rng"])
def test_the_snapshot_would_notice(change: str) -> None:
    net = users_net()
    before = snapshot(net)
    assert changes(before, snapshot(net)) == []
    if change == "mode":
        net.body.drop.eval()
    elif change == "hook":
        net.body.act.register_forward_hook(lambda _, __, output: output)
    elif change == "grad":
        net.head.weight.grad = net.head.weight.grad.clone()
    elif change == "buffer":
        net.calls += 0
    elif change == "parameter":
        net.head.bias = nn.Parameter(net.head.bias.detach())
    else:
        torch.rand(1)
    assert len(changes(before, snapshot(net))) >= 1


@every
@modes
def test_after_success(measure: Callable[..., Any], wrong: Any, sentence: str, mode: str) -> None:
    net = users_net()
    before = snapshot(net)
    measure(net, (X, Y), criterion=nn.CrossEntropyLoss(), mode=mode)
    assert changes(before, snapshot(net)) == []


@every
def test_after_success_on_many_batches_with_a_loss_of_ones_own(
    measure: Callable[..., Any], wrong: Any, sentence: str
) -> None:
    net = users_net()
    before = snapshot(net)
    batches = [{"image": X, "class": Y}, {"image": X.flip(0), "class": Y}]

    def loss_fn(model: nn.Module, batch: Any) -> Tensor:
        return nn.functional.cross_entropy(model(batch["image"]), batch["class"])

    measure(net, batches, loss_fn=loss_fn, mode="train")
    assert changes(before, snapshot(net)) == []


@every
def test_after_a_wrong_argument(measure: Callable[..., Any], wrong: dict[str, Any], sentence: str) -> None:
    net = users_net()
    before = snapshot(net)
    with pytest.raises(Refused, match=sentence):
        measure(net, (X, Y), criterion=nn.CrossEntropyLoss(), **wrong)
    assert changes(before, snapshot(net)) == []


@every
@modes
@pytest.mark.parametrize(("where", "says"), [("forward", "midway"), ("backward", "on the way back")])
def test_after_a_crash_in_the_network(
    measure: Callable[..., Any], wrong: Any, sentence: str, where: str, says: str, mode: str
) -> None:
    net = users_net()
    net.crash = where
    before = snapshot(net)
    crashes = where == "forward" or measure not in FORWARD_ONLY
    with pytest.raises(Crash, match=says) if crashes else contextlib.nullcontext():
        measure(net, (X, Y), criterion=nn.CrossEntropyLoss(), mode=mode)
    assert changes(before, snapshot(net)) == []


@every
def test_after_a_crash_in_the_loss(measure: Callable[..., Any], wrong: Any, sentence: str) -> None:
    def criterion(output: Tensor, target: Tensor) -> Tensor:
        raise Crash("in the loss")

    net = users_net()
    before = snapshot(net)
    crashes = measure not in WITHOUT_LOSS
    with pytest.raises(Crash, match="in the loss") if crashes else contextlib.nullcontext():
        measure(net, (X, Y), criterion=criterion)
    assert changes(before, snapshot(net)) == []


@every
@modes
@pytest.mark.parametrize("backend", ["batched", "loop"])
def test_an_ensemble_is_left_alone_too(
    measure: Callable[..., Any], wrong: dict[str, Any], sentence: str, backend: str, mode: str
) -> None:
    ensemble = Ensemble.of([users_net(), users_net()], backend=backend).train()
    before = snapshot(ensemble.skeleton)
    tensors = {"rows": ensemble.rows, **ensemble.fixed}
    values = {name: (tensor.clone(), tensor._version) for name, tensor in tensors.items()}
    measure(ensemble, (X, Y), criterion=nn.CrossEntropyLoss(), mode=mode)
    with pytest.raises(Refused, match=sentence):
        measure(ensemble, (X, Y), criterion=nn.CrossEntropyLoss(), **wrong)
    ensemble.skeleton.crash = "forward"
    with pytest.raises(Crash, match="midway"):
        measure(ensemble, (X, Y), criterion=nn.CrossEntropyLoss(), mode=mode)
    assert changes(before, snapshot(ensemble.skeleton)) == []
    for name, tensor in tensors.items():
        assert torch.equal(tensor, values[name][0])
        assert tensor._version == values[name][1]
