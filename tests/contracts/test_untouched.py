"""Every kind of module is as it was after every public instrument, however the instrument ends.

Parameters, buffers, plain attributes (by identity and by value), hooks, modes, gradients; the random states of torch,
numpy and Python; gradient mode, thread count and default dtype; and whether the module can be copied. After success,
a wrong argument, and a crash in the first or second call of the module. An instrument answers or refuses in one
sentence. One fast instrument per kind by default, all of them in the slow suite.
"""

from __future__ import annotations

import copy
import random
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from kinds_of_modules import KINDS, Tally, made
from torch import Tensor, nn

import skiplab
import skiplab.interface as sl
from skiplab.checks import SkiplabError
from skiplab.randomness import torch_generator

CE = nn.CrossEntropyLoss()
Instrument = Callable[..., Any]


def looking_linear(net: nn.Module, batch: Any, *, layers: Any = None) -> Any:
    return sl.looks_linear(
        net, generator=torch_generator(0), **({} if layers is None else {"kind": layers[0]})
    )


def path_depth(net: nn.Module, batch: Any, **settings: Any) -> Any:
    """Few kinds have skips: the first part with parameters of its own counts."""
    owners = (name for name, part in net.named_modules() if any(True for _ in part.parameters(recurse=False)))
    return sl.path_depth(net, batch, criterion=CE, counted=[next(owners)], **settings)


def with_loss(name: str, **settings: Any) -> Instrument:
    def measure(net: nn.Module, batch: Any, **more: Any) -> Any:
        return getattr(sl, name)(net, batch, criterion=CE, **settings, **more)

    return measure


def without_loss(name: str, **settings: Any) -> Instrument:
    def measure(net: nn.Module, batch: Any, **more: Any) -> Any:
        return getattr(sl, name)(net, batch, **settings, **more)

    return measure


def remedy(id: str) -> Instrument:
    return lambda net, batch, layers=None: sl.remedies.REMEDIES[id].apply(net, batch, where=layers)


def diagnosis(net: nn.Module, batch: Any, layers: Any = None) -> Any:
    """A diagnosis by a few examinations, of every room that looks into networks."""
    some = layers or ["layer_signals", "saturation", "gradient_norms", "singularities", "gradient_shattering"]
    return sl.diagnose(net, batch, criterion=nn.CrossEntropyLoss(), budget=20, examinations=some)


# By name: how it is called, and an argument that it must refuse.
NO_LAYER = {"layers": ["no such layer"]}
INSTRUMENTS: dict[str, tuple[Instrument, dict[str, Any]]] = {
    "gradient_norms": (with_loss("gradient_norms"), NO_LAYER),
    "gradient_norms in training": (with_loss("gradient_norms", mode="train"), NO_LAYER),
    "gradient_shattering": (without_loss("gradient_shattering"), NO_LAYER),
    "activation_patterns": (without_loss("activation_patterns"), NO_LAYER),
    "branch_ratios": (without_loss("branch_ratios"), NO_LAYER),
    "dominant_gradient_flow": (with_loss("dominant_gradient_flow"), NO_LAYER),
    "hessian_product": (with_loss("hessian_product"), NO_LAYER),
    "hessian_product in training": (with_loss("hessian_product", mode="train"), NO_LAYER),
    "hessian_extremes": (with_loss("hessian_extremes"), NO_LAYER),
    "hessian_spectrum": (with_loss("hessian_spectrum"), NO_LAYER),
    "hessian_trace": (with_loss("hessian_trace", products=4), NO_LAYER),
    "interlayer_cushions": (without_loss("interlayer_cushions"), NO_LAYER),
    "layer_cushions": (without_loss("layer_cushions"), NO_LAYER),
    "layer_signals": (with_loss("layer_signals"), NO_LAYER),
    "layer_signals in training": (with_loss("layer_signals", mode="train"), NO_LAYER),
    "path_depth": (path_depth, NO_LAYER),
    "permutation_symmetry": (with_loss("permutation_symmetry", draws=1), NO_LAYER),
    "rescaling_symmetry": (with_loss("rescaling_symmetry", draws=1), NO_LAYER),
    "saturation": (without_loss("saturation"), NO_LAYER),
    "singularities": (with_loss("singularities"), NO_LAYER),
    "weight_noise": (with_loss("weight_noise", draws=1), NO_LAYER),
    "diagnose": (diagnosis, {"layers": ["no such examination"]}),
    "looks_linear": (looking_linear, {"layers": ["no such kind"]}),
    **{f"remedies {id}": (remedy(id), NO_LAYER) for id in sl.remedies.REMEDIES},
}


class Crash(Exception):
    """What the user's code raises."""


def with_crash(net: nn.Module, number: int) -> nn.Module:
    """Let the network fail in this call, counted from 1; the count is in no attribute of it, so nobody resets it."""
    if number == 0:
        return net
    calls: list[None] = []

    def fail(*_: Any) -> None:
        calls.append(None)
        if len(calls) == number:
            raise Crash("as it was told to")

    if isinstance(net, torch.jit.ScriptModule):  # which takes no hook
        net = nn.Sequential(net)
    net.register_forward_pre_hook(fail)
    return net


# What is looked at ------------------------------------------------------------------------------------------

PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.Size, torch.dtype, torch.device)


def described(value: Any, seen: dict[int, Any]) -> Any:
    """A value in terms that can be compared later: who it is and, where it can change, what is in it."""
    if isinstance(value, PLAIN):
        return value
    if id(value) in seen:
        return ("again", id(value))
    seen[id(value)] = value
    who = (type(value).__name__, id(value))
    if isinstance(value, Tensor):
        gradient = value.grad if value.is_leaf else None
        inside: Any = (value.detach().clone(), value.requires_grad, described(gradient, seen))
    elif isinstance(value, np.ndarray):
        inside = value.tolist()
    elif isinstance(value, dict):
        inside = [(key, described(each, seen)) for key, each in value.items()]
    elif isinstance(value, list | tuple | deque):
        inside = [described(each, seen) for each in value]
    elif isinstance(value, set | frozenset):
        inside = sorted(map(repr, value))
    elif isinstance(value, torch.Generator):
        inside = value.get_state()
    elif isinstance(value, np.random.Generator):
        inside = repr(value.bit_generator.state)
    elif isinstance(value, random.Random):
        inside = value.getstate()
    elif isinstance(value, nn.Module | Tally):
        inside = described(dict(vars(value)), seen)[1:]
    else:
        inside = None
    return (who, inside)


def attributes(net: nn.Module) -> dict[str, Any]:
    """Every attribute of every part of a network: parameters, buffers, hooks, modes and what users add."""
    seen: dict[int, Any] = {}
    found: dict[str, Any] = {}
    for name, part in net.named_modules():
        found[f"{name}: mode"] = part.training
        if isinstance(part, torch.jit.ScriptModule):  # whose attributes are not Python's
            tensors = (*part.named_parameters(recurse=False), *part.named_buffers(recurse=False))
            found |= {f"{name}.{key}": described(tensor, {})[1] for key, tensor in tensors}
        else:
            found |= {f"{name}.{key}": described(value, seen) for key, value in vars(part).items()}
            found[f"{name} has"] = list(vars(part))
    return found


def surroundings() -> dict[str, Any]:
    """What a whole process shares."""
    numpys = np.random.get_state()  # noqa: NPY002 - the global state is what must not move
    return {
        "numpy": [part.tolist() if isinstance(part, np.ndarray) else part for part in numpys],
        "Python": random.getstate(),
        "torch": torch.random.get_rng_state(),
        "gradient mode": torch.is_grad_enabled(),
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "dtype": torch.get_default_dtype(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "precision": torch.get_float32_matmul_precision(),
    }


def can_be_copied(net: nn.Module) -> bool:
    try:
        copy.deepcopy(net)
    except Exception:
        return False
    return True


def snapshot(net: nn.Module) -> dict[str, Any]:
    return attributes(net) | surroundings() | {"can be copied": can_be_copied(net)}


def equal(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [key for key in before | after if not equal(before.get(key), after.get(key))]


# The contract -----------------------------------------------------------------------------------------------


def in_use(kind: str) -> tuple[nn.Module, Any]:
    """A network of a kind that has been called before and has gradients, and its batch."""
    net, batch = made(kind)
    state = torch.get_num_threads(), torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]):
        CE(net(batch[0]).to(torch.float32), batch[1]).backward()
    torch.set_num_threads(state[0])
    torch.set_default_dtype(state[1])
    return net, batch


def hold(kind: str, name: str) -> None:
    """Measure networks, new and used, let some of it go wrong, and look for changes after each."""
    measure, wrong = INSTRUMENTS[name]
    for make, crash, settings in (
        *((made, 0, {}), (in_use, 0, {}), (in_use, 0, wrong)),
        *((made, 1, {}), (made, 2, {}), (in_use, 2, {})),
    ):
        net, batch = make(kind)
        net = with_crash(net, crash)
        before = snapshot(net)
        end = "success"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                measure(net, batch, **settings)
        except (SkiplabError, Crash) as problem:
            end = f"{type(problem).__name__}: {problem}"
        assert "\n" not in end, end
        assert end.endswith((".", "?")) or not end.startswith("Refused"), end
        assert not settings or "Refused" in end, (kind, name, end)
        found = changes(before, snapshot(net))
        assert found == [], (found, kind, name, make.__name__, crash, settings, end)


# Kinds that a forward pass in training mode leaves as they are: what is done to them is done by us.
STILL = (
    *("layers", "frozen and tied", "batch normalisation without statistics", "layer normalisation"),
    *(
        "group normalisation",
        "in-place activation",
        "convolution",
        "convolution, channels last",
        "double precision",
    ),
    *("lists of modules and parameters", "LSTM", "GRU, two ways", "attention", "embedding", "weight norm"),
    *("orthogonal", "checkpointed", "hooks of one's own", "no change of mode"),
)
DYNAMO = ("compiled",)  # which takes seconds
quick = [pytest.param(kind, marks=pytest.mark.slow if kind in DYNAMO else ()) for kind in KINDS]


@pytest.mark.parametrize("kind", quick)
def test_gradient_norms_leave_every_kind_of_module_alone(kind: str) -> None:
    hold(kind, "gradient_norms in training")


@pytest.mark.slow
@pytest.mark.parametrize("name", INSTRUMENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_instrument_leaves_every_kind_of_module_alone(kind: str, name: str) -> None:
    hold(kind, name)


@pytest.mark.parametrize("kind", [name for name in KINDS if name not in DYNAMO])
def test_the_snapshot_notices_what_a_forward_pass_changes(kind: str) -> None:
    """Kinds that are said to change something do, so that the contract above can fail."""
    net, batch = made(kind)
    before = snapshot(net)
    assert changes(before, snapshot(net)) == []
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    for part in net.modules():
        part.training = True
    net(batch[0])
    found = changes(before, snapshot(net))
    torch.set_num_threads(threads)
    torch.set_default_dtype(dtype)
    assert bool(found) == (kind not in STILL), (kind, found)


def test_the_table_covers_every_public_instrument() -> None:
    others = {"Ensemble", "Exact", "HessianProduct", "Lanczos", "Moments", "Subject", "run", "results"}
    # tests/diagnosis has theirs
    others |= {"compare", "try_remedies", "Recorder", "LightningCallback", "TrainerCallback"}
    assert {name.split()[0] for name in INSTRUMENTS} == set(skiplab.__all__) - others - {"autocorrelation"}
    assert len(KINDS) >= 47
