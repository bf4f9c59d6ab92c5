from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from skiplab.architectures.initialisers import HMWI, standard_normal
from skiplab.architectures.rescaled import MeanCentring, RescaledNet
from skiplab.checks import Refused
from skiplab.randomness import torch_generator

SIZES: dict[str, Any] = {"inputs": 4, "width": 8, "depth": 5, "outputs": 3, "dtype": torch.float64}
NORMALISATIONS = ["none", "centre", "batch"]


def build(seed: int = 0, **changes: Any) -> Any:
    return RescaledNet(**(SIZES | changes), generator=torch_generator(seed))


def batch(size: int = 7, features: int = 4) -> Tensor:
    return standard_normal((size, features), torch_generator("batch"))


def seen_in(net: nn.Module, names: list[str], x: Tensor) -> list[np.ndarray]:
    """What forward hooks on these parts see, and at the end the network's output."""
    seen: dict[str, np.ndarray] = {}

    def hook_for(name: str) -> Any:
        return lambda module, args, output: seen.update({name: output.detach().numpy()})

    for name in names:
        net.get_submodule(name).register_forward_hook(hook_for(name))
    output = net(x).detach().numpy()
    return [*(seen[name] for name in names), output]


def by_hand(net: Any, x: Tensor, *, training: bool) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Equation 2 sample by sample: activities x_l, rectified ρ(N(x_{l−1})), and the output."""

    def linear(layer: nn.Linear, rows: np.ndarray) -> np.ndarray:
        w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
        return np.array([[sum(w[i] * row) + b[i] for i in range(len(w))] for row in rows])

    def normed(norm: Any, rows: np.ndarray) -> np.ndarray:
        if net.normalisation == "none":
            return rows
        columns = []
        for unit in range(rows.shape[1]):
            values = rows[:, unit]
            mean = values.mean() if training else norm.running_mean[unit].item()
            if net.normalisation == "centre":
                columns.append(values - mean)
                continue
            variance = ((values - values.mean()) ** 2).mean() if training else norm.running_var[unit].item()
            scale, shift = norm.weight[unit].item(), norm.bias[unit].item()
            columns.append(scale * (values - mean) / math.sqrt(variance + 1e-5) + shift)
        return np.stack(columns, axis=1)

    activities, rectified = [linear(net.first, x.numpy())], []
    for block in net.blocks:
        rectified.append(np.maximum(normed(block.norm, activities[-1]), 0))
        field = linear(block.linear, rectified[-1])
        residual = net.alpha * (activities[-1] + net.beta * field)
        activities.append(residual if net.skip else field)
    return activities[1:], rectified, linear(net.output, activities[-1])


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("settings", [{"skip": False}, {"alpha": 0.7, "beta": 0.3}, {}], ids=str)
def test_modules_follow_equation_2(settings: dict[str, Any], normalisation: str, training: bool) -> None:
    net = build(**settings, normalisation=normalisation, bias_std=0.8).train(training)
    generator = torch_generator("statistics")
    with torch.no_grad():
        for name, tensor in (*net.named_buffers(), *net.named_parameters()):
            if "norm" in name and tensor.is_floating_point():
                tensor.copy_(0.5 + standard_normal(tensor.shape, generator).abs())
    x = batch()
    activities, rectified, output = by_hand(net, x, training=training)
    names = [*net.block_names, *(f"{name}.activation" for name in net.block_names)]
    for ours, theirs in zip(seen_in(net, names, x), [*activities, *rectified, output], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)


def test_plain_and_residual_networks_of_one_seed_have_equal_weights_and_biases() -> None:
    plain, residual = (build(skip=skip, bias_std=0.5) for skip in (False, True))
    theirs = residual.state_dict()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in plain.state_dict().items())
    assert not torch.allclose(plain(batch()), residual(batch()))
    assert (plain.skip, residual.skip) == (False, True)


def test_biases_are_drawn_after_the_weights_and_the_output_has_none() -> None:
    without, with_biases = build(), build(bias_std=0.5)
    generator = torch_generator(0)
    for layer in (without.first, *(block.linear for block in without.blocks), without.output):
        drawn = math.sqrt(2 / layer.in_features) * standard_normal(layer.weight.shape, generator)
        torch.testing.assert_close(layer.weight, drawn, rtol=0, atol=0)
        assert bool((layer.bias == 0).all())
    layers = [with_biases.first, *(block.linear for block in with_biases.blocks)]
    for layer in layers:
        torch.testing.assert_close(layer.bias, 0.5 * standard_normal((8,), generator), rtol=0, atol=0)
    assert bool((with_biases.output.bias == 0).all())
    assert torch.equal(with_biases.output.weight, without.output.weight)


def test_another_initialiser_is_used() -> None:
    ours, he = build(init=HMWI(counts="input")), build()
    torch.testing.assert_close(ours.output.weight * 8, he.output.weight / math.sqrt(2 / 8))


def test_alpha_of_one_over_root_two_keeps_the_size_of_activities() -> None:
    # E‖x_l‖² = α²(1 + β²) E‖x_{l−1}‖² under He's weights, over many wide networks.
    x = standard_normal((64, 4), torch_generator("batch"))
    ratios = []
    for seed in range(20):
        net = build(seed=seed, width=256, alpha=1 / math.sqrt(2))
        start = net.first(x)
        ratios.append((net.blocks[0](start).square().mean() / start.square().mean()).item())
    error = np.std(ratios, ddof=1) / math.sqrt(len(ratios))
    assert error < 0.02
    assert abs(np.mean(ratios) - 1) < 4 * error


def test_centring_keeps_running_means_as_batch_normalisation_does() -> None:
    ours, theirs = MeanCentring(8, dtype=torch.float64), nn.BatchNorm1d(8, dtype=torch.float64)
    generator = torch_generator("stream")
    for size in (5, 9, 2):
        x = 1 + standard_normal((size, 8), generator)
        centred = ours(x)
        theirs(x)
        torch.testing.assert_close(centred, x - x.mean(0), rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(ours.running_mean, theirs.running_mean, rtol=1e-13, atol=1e-13)
    before = ours.running_mean.clone()
    x = standard_normal((3, 8), generator)
    torch.testing.assert_close(ours.eval()(x), x - before, rtol=0, atol=0)
    assert torch.equal(ours.running_mean, before)


def test_the_gradient_through_centring_loses_its_mean_in_training_only() -> None:
    centring = MeanCentring(4, dtype=torch.float64)
    weight = standard_normal((7, 4), torch_generator("weight"))
    for training, expected in ((True, weight - weight.mean(0)), (False, weight)):
        x = batch().requires_grad_()
        (centring.train(training)(x) * weight).sum().backward()
        torch.testing.assert_close(x.grad, expected, rtol=1e-13, atol=1e-13)
    assert not centring.running_mean.requires_grad


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("skip", [False, True])
def test_centred_members_keep_their_own_means(skip: bool, training: bool) -> None:
    settings = {"skip": skip, "normalisation": "centre", "bias_std": 1.0}
    nets = [build(seed=seed, **settings).train(training) for seed in range(3)]
    for seed, net in enumerate(nets):
        for block in net.blocks:
            block.norm.running_mean.copy_(standard_normal((8,), torch_generator(seed)))
    parameters, buffers = stack_module_state(nets)
    buffers = {key: value.clone() for key, value in buffers.items()}
    untouched = {key: value.clone() for key, value in nets[0].named_buffers()}
    x = batch()
    mapped = torch.vmap(lambda p, b: functional_call(nets[0], (p, b), (x,)))(parameters, buffers)
    assert all(torch.equal(value, untouched[key]) for key, value in nets[0].named_buffers())
    alone = torch.stack([net(x) for net in nets])
    torch.testing.assert_close(mapped, alone, rtol=1e-11, atol=1e-11)
    for key, value in buffers.items():
        after = torch.stack([net.get_buffer(key) for net in nets])
        torch.testing.assert_close(value, after, rtol=1e-12, atol=1e-12)
        assert torch.equal(value[0], untouched[key]) is not training


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"depth": 0}, "depth is 0, but must be a whole number of at least 1"),
        ({"normalisation": "batc"}, r"normalisation 'batc' is unknown; .* Did you mean batch\?"),
        ({"bias_std": -1.0}, r"bias_std is -1\.0, but must be a finite number of at least 0"),
        ({"alpha": math.nan}, "alpha is nan, but must be a finite number"),
        ({"beta": math.inf}, "beta is inf, but must be a finite number"),
        (
            {"skip": False, "beta": 0.1},
            r"alpha is 1\.0 and beta is 0\.1, .*; leave both at 1 where skip is False",
        ),
    ],
    ids=str,
)
def test_wrong_settings_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        build(**changes)


def test_wrong_batches_are_refused() -> None:
    with pytest.raises(Refused, match=r"shape \(7, 5\), but this network takes 4 features in the last axis"):
        build()(batch(features=5))
    with pytest.raises(Refused, match=r"normalisation needs \(batch, 4\); flatten the leading axes"):
        build(normalisation="centre")(torch.zeros(2, 3, 4, dtype=torch.float64))
    with pytest.raises(Refused, match="A batch of one sample is its own mean; pass at least 2 samples or"):
        build(normalisation="centre")(batch(1))
    assert build(normalisation="centre").eval()(batch(1)).shape == (1, 3)
    assert build()(torch.zeros(2, 3, 4, dtype=torch.float64)).shape == (2, 3, 3)
