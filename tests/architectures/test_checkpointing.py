"""Checkpointing, on the thin networks that use it: less is kept, and nothing else changes."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state
from torch.nn import functional as F

from skiplab.architectures.checkpointing import checkpointed
from skiplab.architectures.initialisers import standard_normal
from skiplab.architectures.rescaled import MeanCentring
from skiplab.architectures.thin import KINDS, ThinNet
from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator

SMALL: dict[str, Any] = {"r": 2, "filters": (4, 6), "outputs": 3, "image_size": 8, "dtype": torch.float64}
every_kind = pytest.mark.parametrize("kind", KINDS)


def build(seed: int = 0, **changes: Any) -> Any:
    return ThinNet(**(SMALL | changes), generator=torch_generator(seed))


def noise(*shape: int) -> Tensor:
    return standard_normal(shape, torch_generator("images"))


def gradients(net: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, list[Tensor]]:
    output = net(x)
    return output.detach(), list(torch.autograd.grad(F.cross_entropy(output, y), list(net.parameters())))


@every_kind
@pytest.mark.parametrize("batch_norm", [True, False])
@pytest.mark.parametrize("checkpoint_every", [1, 3, 100])
def test_checkpointing_changes_no_output_gradient_or_statistic(
    kind: str, batch_norm: bool, checkpoint_every: int
) -> None:
    settings: dict[str, Any] = {"kind": kind, "batch_norm": batch_norm, "r": 3}
    whole, kept = build(**settings), build(**settings, checkpoint_every=checkpoint_every)
    x, y = noise(4, 3, 8, 8), torch.tensor([0, 1, 2, 0])
    for _ in range(2):
        (output, found), (expected, theirs) = gradients(kept, x, y), gradients(whole, x, y)
        assert torch.equal(output, expected)
        for one, other in zip(found, theirs, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)
    for name, buffer in whole.named_buffers():
        assert torch.equal(kept.get_buffer(name), buffer)
        assert not name.endswith("num_batches_tracked") or buffer.item() == 2
    whole.eval()
    assert torch.equal(kept.eval()(x), whole(x))


@every_kind
@pytest.mark.parametrize("backend", ["batched", "loop"])
def test_checkpointed_members_have_their_own_gradients_and_statistics(kind: str, backend: str) -> None:
    x, y = noise(3, 4, 3, 8, 8), torch.randint(3, (3, 4), generator=torch_generator("labels"))
    ensembles = [
        Ensemble.of([build(seed, kind=kind, checkpoint_every=k) for seed in range(3)], backend=backend)
        for k in (None, 2)
    ]
    (losses, outputs, rows), found = (e.train().gradients(x, y, F.cross_entropy) for e in ensembles)
    torch.testing.assert_close(found[0], losses, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found[1], outputs, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found[2], rows, rtol=1e-10, atol=1e-12)
    assert not torch.allclose(rows[0], rows[1])
    for name, tensor in ensembles[0].fixed.items():
        torch.testing.assert_close(ensembles[1].fixed[name], tensor, rtol=1e-12, atol=1e-12)


def test_checkpointing_works_under_mapped_gradients_of_functional_calls() -> None:
    x, y = noise(4, 3, 8, 8), torch.tensor([0, 1, 2, 0])
    results = []
    for k in (None, 2):
        nets = [build(seed, kind="resnet", checkpoint_every=k) for seed in range(3)]
        parameters, buffers = stack_module_state(nets)

        def loss(p: Any, b: Any, net: nn.Module = nets[0]) -> Tensor:
            return F.cross_entropy(functional_call(net, (p, b), (x,)), y)

        buffers = {name: tensor.clone() for name, tensor in buffers.items()}
        results.append((torch.vmap(torch.func.grad(loss))(parameters, buffers), buffers))
    for theirs, ours in zip(*results, strict=True):
        for name, tensor in theirs.items():
            torch.testing.assert_close(ours[name], tensor, rtol=1e-10, atol=1e-12)


def test_second_derivatives_go_through_checkpoints() -> None:
    x, y = noise(4, 3, 8, 8), torch.tensor([0, 1, 2, 0])

    def slopes(net: nn.Module) -> tuple[Tensor, ...]:
        weights = list(net.parameters())
        first = torch.autograd.grad(F.cross_entropy(net(x), y), weights, create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in first), weights)

    for one, other in zip(slopes(build(checkpoint_every=2)), slopes(build()), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_the_gradient_with_respect_to_images_goes_through_checkpoints() -> None:
    images = [noise(4, 3, 8, 8).requires_grad_() for _ in range(2)]
    for x, net in zip(images, (build(), build(checkpoint_every=2)), strict=True):
        net(x).square().sum().backward()
    torch.testing.assert_close(images[1].grad, images[0].grad, rtol=1e-12, atol=1e-12)


def test_what_is_computed_again_is_computed_in_the_same_precision() -> None:
    images = noise(2, 4, 3, 8, 8).float()
    labels = torch.tensor([[0, 1, 2, 0]] * 2)
    found = []
    for every in (None, 2):
        nets = [build(seed, checkpoint_every=every, dtype=torch.float32) for seed in range(2)]
        ensemble = Ensemble.of(nets, backend="loop").train()
        found.append(ensemble.gradients(images, labels, F.cross_entropy, mixed=True))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


def test_any_module_can_be_checkpointed() -> None:
    centring, whole = MeanCentring(4, dtype=torch.float64), MeanCentring(4, dtype=torch.float64)
    inputs = [noise(5, 4).requires_grad_() for _ in range(2)]
    for x, output in zip(inputs, (checkpointed(centring, inputs[0]), whole(inputs[1])), strict=True):
        torch.testing.assert_close(output, noise(5, 4) - noise(5, 4).mean(0), rtol=1e-13, atol=1e-13)
        output.pow(3).sum().backward()
        assert x.grad is not None
    torch.testing.assert_close(inputs[0].grad, inputs[1].grad, rtol=1e-13, atol=1e-13)
    assert torch.equal(centring.running_mean, whole.running_mean)
    assert bool((centring.running_mean != 0).all())


# torch's own forward mode loads rules that torch compiles with its deprecated torch.jit.script.
@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
def test_forward_mode_is_refused_by_torch() -> None:
    net, x = build(checkpoint_every=2), noise(4, 3, 8, 8)
    with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
        torch.func.jvp(net, (x,), (x,))
    torch.func.jvp(net.eval(), (x,), (x,))


def kept_bytes(net: nn.Module, x: Tensor) -> int:
    """Bytes that autograd keeps for the backward pass, each storage counted once."""
    storages: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = net(x)
    assert output.requires_grad
    return sum(storages.values())


@every_kind
def test_checkpoints_are_what_is_kept(kind: str) -> None:
    x = noise(8, 3, 32, 32)
    settings: dict[str, Any] = {"r": 6, "kind": kind, "filters": (4, 4, 4, 4), "image_size": 32}
    whole = kept_bytes(build(**settings), x)
    kept = kept_bytes(build(**settings, checkpoint_every=3 if kind == "resnet" else 6), x)
    assert kept < whole / 4
    assert kept_bytes(build(**settings, checkpoint_every=6).eval(), x) > 4 * kept


def test_copies_keep_their_checkpoints() -> None:
    net = copy.deepcopy(build(checkpoint_every=2))
    assert kept_bytes(net, noise(2, 3, 8, 8)) == kept_bytes(build(checkpoint_every=2), noise(2, 3, 8, 8))


# The peak of this process alone: getrusage's would begin with that of the process which started it.
MEASURE = """
import re, sys, torch
from torch.nn import functional as F
from skiplab.architectures.thin import ThinNet
from skiplab.randomness import torch_generator as drawn
torch.set_num_threads(1)
every = int(sys.argv[2]) or None
x = torch.randn(128, 3, 32, 32, generator=drawn("images"))
y = torch.randint(10, (128,), generator=drawn("labels"))
small = ThinNet(1, generator=drawn(0), kind=sys.argv[1], checkpoint_every=every)
F.cross_entropy(small(x[:2]), y[:2]).backward()  # so that what torch loads at first use is in the base
net = ThinNet(49, generator=drawn(0), kind=sys.argv[1], checkpoint_every=every)
def peak(): return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
base = peak()
F.cross_entropy(net(x), y).backward()
print(peak() - base)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(("kind", "every"), [("relu", 14), ("crelu", 14), ("resnet", 7)])
def test_a_training_step_of_198_layers_fits_in_a_third_of_the_memory(kind: str, every: int) -> None:
    # Large blocks go straight back to the system, so that the peak is what is in use and not fragments.
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "1000000"}
    whole, kept = (
        float(
            subprocess.run(
                [sys.executable, "-c", MEASURE, kind, str(k)],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for k in (0, every)
    )
    assert 500 < whole < 2_000
    assert kept < whole / 3
