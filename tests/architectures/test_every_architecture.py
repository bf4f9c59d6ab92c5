"""What every architecture must do, run over the small example of each."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from skiplab.architectures import ARCHITECTURES, examples
from skiplab.architectures.initialisers import standard_normal
from skiplab.architectures.path_toys import ScalarBatchNorm
from skiplab.checks import Refused
from skiplab.randomness import torch_generator

every = pytest.mark.parametrize("name", ARCHITECTURES)


def build(name: str, seed: int = 0, dtype: torch.dtype = torch.float64) -> Any:
    return examples(dtype)[name](torch_generator(seed))


def batch(name: str, size: int = 5) -> Tensor:
    return standard_normal((size, *ARCHITECTURES[name].input_shape), torch_generator("batch"))


@every
def test_building_leaves_the_global_generator_alone(name: str) -> None:
    before = torch.random.get_rng_state()
    build(name)
    assert torch.equal(before, torch.random.get_rng_state())


@every
def test_the_seed_decides_the_network(name: str) -> None:
    one, same, other = (build(name, seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert any(not torch.equal(one[key], other[key]) for key in one)


@every
def test_the_precision_is_as_asked_and_does_not_change_the_network(name: str) -> None:
    double, single = build(name), build(name, dtype=torch.float32)
    floats = [t for t in single.state_dict().values() if t.is_floating_point()]
    assert {t.dtype for t in floats} == {torch.float32}
    x = batch(name)
    torch.testing.assert_close(single(x.float()).double(), double(x), rtol=1e-3, atol=1e-4)


@every
@pytest.mark.parametrize("training", [True, False])
def test_many_networks_mapped_equal_each_alone(name: str, training: bool) -> None:
    nets = [build(name, seed).train(training) for seed in range(3)]
    for seed, net in enumerate(nets):
        for layer in net.modules():
            if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
                # Different statistics in each member, so that mixing them up would show.
                torch.nn.init.normal_(layer.running_mean, generator=torch_generator(seed))
    parameters, buffers = stack_module_state(nets)
    buffers = {key: value.clone() for key, value in buffers.items()}
    x = batch(name)

    def member(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
        return functional_call(nets[0], (parameters, buffers), (x,))

    alone = copy.deepcopy(nets)
    mapped = torch.vmap(member)(parameters, buffers)
    expected = torch.stack([net(x) for net in alone])
    torch.testing.assert_close(mapped, expected, rtol=1e-10, atol=1e-10)
    # Running statistics and the count of batches are updated in the stacked buffers, in place.
    for key, value in buffers.items():
        after = torch.stack([net.state_dict()[key] for net in alone])
        torch.testing.assert_close(value, after, rtol=1e-12, atol=1e-12)
        if key.endswith("num_batches_tracked"):
            assert value.tolist() == [int(training)] * 3

    def loss(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
        return member(parameters, buffers).square().sum()

    _, fresh = stack_module_state(nets)
    gradients = torch.vmap(torch.func.grad(loss))(parameters, fresh)
    expected.square().sum().backward()
    for key, value in gradients.items():
        theirs = torch.stack([net.get_parameter(key).grad for net in alone])
        torch.testing.assert_close(value, theirs, rtol=1e-8, atol=1e-8)


@every
def test_blocks_are_named_in_order_and_return_one_tensor(name: str) -> None:
    net, order = build(name), []
    assert len(net.block_names) == len(set(net.block_names)) >= 2
    for block in net.block_names:

        def hook(module: nn.Module, args: Any, output: Any, block: str = block) -> None:
            assert isinstance(output, Tensor)
            assert output.shape[0] == 5
            order.append(block)

        net.get_submodule(block).register_forward_hook(hook)
    net(batch(name))
    assert tuple(order) == net.block_names


@every
def test_saved_weights_restore_the_network(name: str) -> None:
    net, other = build(name, 1).eval(), build(name, 2).eval()
    x = batch(name)
    other.load_state_dict(net.state_dict())
    assert torch.equal(other(x), net(x))


@every
def test_skip_matrices_are_never_trained(name: str) -> None:
    net = build(name)
    trained = {type(net.get_submodule(key.rpartition(".")[0])) for key, _ in net.named_parameters()}
    assert trained <= {nn.Linear, nn.Conv2d, nn.BatchNorm1d, nn.BatchNorm2d, ScalarBatchNorm}


@every
def test_inputs_of_the_wrong_shape_are_refused(name: str) -> None:
    shape = list(ARCHITECTURES[name].input_shape)
    shape[0] += 1
    sentence = (
        r"The input has shape \(5, .*\), but this network takes .*; reshape the input or build the network"
    )
    with pytest.raises(Refused, match=sentence):
        build(name)(torch.zeros(5, *shape, dtype=torch.float64))


def test_the_example_with_batch_normalisation_really_moves_its_statistics() -> None:
    net = build("resnet")
    before = copy.deepcopy(net.state_dict())
    net(batch("resnet"))
    moved = [key for key, value in net.state_dict().items() if not torch.equal(value, before[key])]
    assert len(moved) == 3 * (1 + 2 * 4)
