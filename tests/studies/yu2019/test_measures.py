"""What is measured of networks while they train: against loops, changes by hand and one backward pass per channel."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab.architectures.initialisers import KWI
from skiplab.architectures.resnet import ResNet
from skiplab.architectures.simplified import SimplifiedPlnNet, SimplifiedResNet
from skiplab.architectures.transfer import id_entries, to_plain, with_identities
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.measurements.dominant_gradient_flow import dominant_gradient_flow
from skiplab.measurements.noise_stability import interlayer_cushions
from skiplab.randomness import torch_generator
from skiplab.reproduction import Bench
from skiplab.studies.yu2019 import measures, stability
from skiplab.studies.yu2019.gradients import final_gradients, flows
from skiplab.studies.yu2019.measured import NOISE, SHARES, Found, distribution, first, parts
from skiplab.studies.yu2019.networks import Measures, Networks, Training, samples_of, train
from skiplab.studies.yu2019.stability import cushions, interlayer, noise

DOUBLE = torch.float64
SIZES: dict[str, Any] = {"filters": (3, 4, 6), "outputs": 5, "dtype": DOUBLE}
IMAGES = TensorSet(
    torch.randn(7, 3, 16, 16, generator=torch_generator("images"), dtype=DOUBLE),
    torch.arange(7) % 5,
    5,
    "",
    "",
)
SEEDS = (3, 8)
Values = dict[tuple[str, int], Tensor]


def network(kind: str, seed: int) -> nn.Module:
    stream = torch_generator(seed)
    if kind == "full":
        net: nn.Module = ResNet(1, generator=stream, **SIZES)
        for name, buffer in net.named_buffers():  # running statistics unlike the first, 0 and 1
            if name.endswith(("mean", "var")):
                buffer.copy_(torch.rand(buffer.shape, generator=stream, dtype=DOUBLE) / 2 + buffer / 2)
        return net.eval()
    if kind == "residual":
        return SimplifiedResNet(1, generator=stream, init=KWI(), **SIZES)
    return SimplifiedPlnNet(1, generator=stream, **SIZES)


def ensemble_of(kind: str) -> Ensemble:
    return Ensemble.of([network(kind, seed) for seed in SEEDS])


def collected(found: Iterable[Found]) -> Values:
    values: Values = {}
    for quantity, layer, each in found:
        assert (quantity, layer) not in values, "a quantity is yielded once per layer"
        assert each.shape == (len(SEEDS),)
        values[quantity, layer] = each.double()
    return values


def same(found: Tensor, expected: Iterable[float], rtol: float = 1e-9) -> None:
    torch.testing.assert_close(
        found.double(), torch.tensor(list(expected), dtype=DOUBLE), rtol=rtol, atol=1e-12
    )


def weighted(net: nn.Module) -> list[nn.Module]:
    """The layers with weights in the order in which images pass them: stem, blocks, output."""
    return [layer for layer in net.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]


def inputs_to(net: nn.Module, images: Tensor) -> list[Tensor]:
    """What each layer with weights takes, of plain networks of one block per group, by hand."""
    stem, *convolutions, _ = weighted(net)
    seen = [images, F.relu(stem(images))]
    for conv in convolutions:
        seen.append(F.relu(conv(seen[-1])))
    seen[-1] = seen[-1].mean((2, 3))
    return seen


def product(layer: nn.Module, x: Tensor) -> Tensor:
    if isinstance(layer, nn.Linear):
        return x @ layer.weight.T
    assert isinstance(layer, nn.Conv2d)
    return F.conv2d(x, layer.weight, stride=layer.stride, padding=layer.padding)


# Cushions ------------------------------------------------------------------------------------------------------


@torch.no_grad()
def cushions_by_hand(plain: nn.Module, bare: nn.Module, above: nn.Module) -> Iterator[list[float]]:
    """‖A x‖ / ‖A‖ / ‖x‖ of each layer and image: x from ``plain``, A in A x from ``above``, in ‖A‖ from ``bare``."""
    rows = zip(weighted(above), weighted(bare), inputs_to(plain, IMAGES.inputs), strict=True)
    for layer, without, x in rows:
        weight = without.weight
        assert isinstance(weight, Tensor)
        yield [(product(layer, each[None]).norm() / weight.norm() / each.norm()).item() for each in x]


@pytest.mark.parametrize("chunk", [500, 3])
@pytest.mark.parametrize("kind", ["plain", "residual"])
def test_cushions_are_those_of_a_loop_over_layers_and_images(
    kind: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stability, "parts", lambda samples: parts(samples, chunk))
    found = collected(cushions(ensemble_of(kind), IMAGES))
    nets = [network(kind, seed) for seed in SEEDS]
    plains = [to_plain(net) if kind == "residual" else net for net in nets]
    ways = {"cushion": (nets, plains), "cushion_kept": (plains, plains), "cushion_bare": (nets, nets)}
    for quantity, (bare, above) in ways.items():
        loops = [list(cushions_by_hand(*each)) for each in zip(plains, bare, above, strict=True)]
        for layer in range(1, 6):
            own = [sorted(each[layer - 1]) for each in loops]
            same(found[quantity, layer], [each[3] for each in own])  # the median of seven
            same(found[f"{quantity}_least", layer], [each[0] for each in own])
        for place, share in enumerate(SHARES):  # there are five layers, so the last stands for the tenth
            same(found[f"{quantity}_quantile", place], [sorted(each[4])[round(share * 6)] for each in loops])
    assert {layer for quantity, layer in found if quantity == "cushion"} == set(range(1, 6))


def test_a_dose_of_identity_is_no_part_of_the_papers_norm() -> None:
    nets = [with_identities(network("plain", seed), 0.75) for seed in SEEDS]
    found = collected(cushions(Ensemble.of(nets), IMAGES, dose=0.75))
    before = [network("plain", seed) for seed in SEEDS]
    loops = [list(cushions_by_hand(net, bare, net)) for net, bare in zip(nets, before, strict=True)]
    kept = [list(cushions_by_hand(net, net, net)) for net in nets]
    for layer in range(1, 6):
        same(found["cushion", layer], [sorted(each[layer - 1])[3] for each in loops])
        same(found["cushion_kept", layer], [sorted(each[layer - 1])[3] for each in kept])


def test_images_without_activity_have_no_cushion() -> None:
    net = network("plain", 0)
    weighted(net)[0].bias.data.fill_(-1e6)  # type: ignore[union-attr, operator]
    found = collected(cushions(Ensemble.of([net, network("plain", 1)]), IMAGES))
    assert found["cushion", 2].isnan().tolist() == [True, False]
    assert found["cushion_least", 2][0] == math.inf


# Noise ---------------------------------------------------------------------------------------------------------


@torch.no_grad()
def perturbed(plain: nn.Module, bare: nn.Module, seed: int, size: float, relative: bool) -> Tensor:
    """ln of the relative change of all outputs, and the accuracy lost, (layers, 2): means over two draws."""
    before = plain(IMAGES.inputs)
    rows = []
    for place, (layer, without) in enumerate(zip(weighted(plain), weighted(bare), strict=True)):
        both = []
        for draw in range(2):
            stream = torch_generator(seed, "weight noise", place, draw)
            normal = torch.randn(layer.weight.shape, generator=stream, dtype=DOUBLE)  # type: ignore[arg-type]
            norm = without.weight.norm() / layer.weight.numel() ** 0.5 if relative else 1.0  # type: ignore[operator, union-attr]
            changed = copy.deepcopy(plain)
            weighted(changed)[place].weight.data += size * norm * normal  # type: ignore[union-attr, operator]
            after = changed(IMAGES.inputs)
            hits = [(each.argmax(1) == IMAGES.labels).double().mean() for each in (before, after)]
            both.append([((after - before).norm() / before.norm()).log(), hits[0] - hits[1]])
        rows.append(torch.tensor(both).mean(0))
    return torch.stack(rows)


@pytest.mark.parametrize("kind", ["plain", "residual"])
def test_noise_is_that_of_weights_changed_by_hand(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stability, "parts", lambda samples: parts(samples, 4))
    monkeypatch.setitem(NOISE, "relative", (0.1,))
    monkeypatch.setitem(NOISE, "absolute", (0.02,))
    found = collected(noise(ensemble_of(kind), IMAGES, draws=2, seeds=SEEDS))
    nets = [network(kind, seed) for seed in SEEDS]
    plains = [to_plain(net) if kind == "residual" else net for net in nets]
    ways = {"relative_0.1": (nets, 0.1, True), "absolute_0.02": (plains, 0.02, False)}
    if kind == "residual":
        ways["relative_kept_0.1"] = (plains, 0.1, True)
    assert {quantity for quantity, _ in found} == {
        f"{what}_{way}" for way in ways for what in ("noise", "lost")
    }
    for way, (bare, size, relative) in ways.items():
        each = [
            perturbed(plain, own, seed, size, relative)
            for plain, own, seed in zip(plains, bare, SEEDS, strict=True)
        ]
        for layer in range(1, 6):
            # torch.tensor made float32 of the loop's numbers.
            same(found[f"noise_{way}", layer], [one[layer - 1, 0].item() for one in each], rtol=1e-6)
            same(found[f"lost_{way}", layer], [one[layer - 1, 1].item() for one in each], rtol=1e-6)


def test_pairs_share_the_noise_of_their_seed() -> None:
    """The same functions under the same absolute noise change alike, and another seed's noise is another."""
    residual = ensemble_of("residual")
    there, here = (
        collected(noise(each, IMAGES, draws=1, seeds=SEEDS)) for each in (residual.mapped(to_plain), residual)
    )
    other = collected(noise(residual, IMAGES, draws=1, seeds=(4, 8)))
    for layer in range(1, 6):
        key = ("noise_absolute_0.01", layer)
        torch.testing.assert_close(there[key], here[key], rtol=1e-9, atol=0)
        assert other[key][0] != here[key][0]
        assert other[key][1] == here[key][1]


# Interlayer cushions -------------------------------------------------------------------------------------------


def jacobian_cushion(block: nn.Module, x: Tensor) -> float:
    """√n ‖J x‖ / ‖J‖ / ‖x‖ from the whole Jacobian of a block at some images."""
    jacobian = torch.autograd.functional.jacobian(block, x).reshape(-1, x.numel())
    return (x.numel() ** 0.5 * (jacobian @ x.flatten()).norm() / jacobian.norm() / x.norm()).item()


def before_block(net: nn.Module, place: int, images: Tensor) -> Tensor:
    assert isinstance(net, ResNet)
    x = net.stem(images)
    for block in net.blocks[:place]:
        x = block(x)
    return x


def test_interlayer_cushions_are_those_of_whole_jacobians(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stability, "INTERLAYER_PROBES", 0)  # exact
    images = first(IMAGES, 3)
    found = collected(interlayer(ensemble_of("full"), images))
    nets = [network("full", seed) for seed in SEEDS]
    assert {layer for quantity, layer in found if quantity == "interlayer"} == {1, 2, 3}
    for place in range(3):
        expected = []
        for net in nets:
            x = before_block(net, place, images.inputs).detach()
            expected.append(sum(jacobian_cushion(net.blocks[place], each[None]) for each in x) / 3)  # type: ignore[index, union-attr]
        same(found["interlayer", place + 1], expected)
    alone, joint = [], []
    for net in nets:
        net.train()
        x = [before_block(net, 1, each[None]).detach() for each in images.inputs]
        alone.append(sum(jacobian_cushion(net.blocks[1], each) for each in x) / 3)  # type: ignore[index, union-attr]
        whole = before_block(net, 1, images.inputs).detach()
        joint.append(jacobian_cushion(net.blocks[1], whole))  # type: ignore[index]
    same(found["interlayer_alone", 2], alone, rtol=1e-6)
    same(found["interlayer_joint", 2], joint, rtol=1e-6)


def test_probes_come_near_the_exact_cushion(monkeypatch: pytest.MonkeyPatch) -> None:
    nets = ensemble_of("full")
    exact = interlayer_cushions(nets, IMAGES.inputs, probes=0).cushions.mean(1)
    found = collected(interlayer(nets, IMAGES))
    for block in range(3):
        torch.testing.assert_close(found["interlayer", block + 1], exact[:, block], rtol=0.02, atol=0)


# Gradients -----------------------------------------------------------------------------------------------------


def theta_of(net: nn.Module, modules: list[nn.Module]) -> list[Tensor]:
    """Θ (B, i, j, p) in the outputs of modules, by one backward pass per final channel."""
    seen: list[Tensor] = []
    hooks = [module.register_forward_hook(lambda _, __, output: seen.append(output)) for module in modules]
    last: list[Tensor] = []
    output = net.get_submodule("output")
    hooks.append(output.register_forward_pre_hook(lambda _, args: last.append(args[0])))
    loss = F.cross_entropy(net(IMAGES.inputs), IMAGES.labels)
    for hook in hooks:
        hook.remove()
    (slope,) = torch.autograd.grad(loss, last[0], retain_graph=True)
    by_channel = []
    for j in range(last[0].shape[1]):
        own = (last[0][:, j] * slope[:, j]).sum()
        by_channel.append(torch.autograd.grad(own, seen, retain_graph=True))
    return [torch.stack([each[k] for each in by_channel], 2).flatten(3) for k in range(len(seen))]


def shares_of(theta: Tensor) -> dict[str, float]:
    """Equation 13 and its kin, entry by entry."""
    samples, channels, finals, positions = theta.shape
    mean = median = dead = 0
    larger, known = 0.0, []
    for b in range(samples):
        own_larger = own_known = 0
        for i in range(channels):
            ratios = []
            for p in range(positions):
                own = abs(theta[b, i, i, p].item())
                rest = abs(sum(theta[b, i, j, p].item() for j in range(finals) if j != i))
                if own or rest:
                    ratios.append(own / rest if rest else math.inf)
            dead += not ratios
            mean += bool(ratios) and sum(ratios) / len(ratios) > 1
            median += 2 * sum(ratio > 1 for ratio in ratios) > len(ratios)
            own_larger += sum(ratio > 1 for ratio in ratios)
            own_known += len(ratios)
        larger += own_larger / max(own_known, 1)
        known.append(own_known)
    count = samples * channels
    return {
        "flow": mean / count,
        "flow_median": median / count,
        "flow_positions": larger / samples,
        "flow_dead": dead / count,
    }


@pytest.mark.parametrize("kind", ["plain", "residual"])
def test_flows_are_those_of_one_backward_pass_per_channel(kind: str) -> None:
    found = collected(flows(ensemble_of(kind), IMAGES))
    assert {layer for _, layer in found} == {1, 2, 3}  # stem and blocks, without the last one
    expected = []
    for seed in SEEDS:
        net = network(kind, seed)
        modules = [net.get_submodule(name) for name in ("stem", "blocks.0", "blocks.1")]
        expected.append([shares_of(theta) for theta in theta_of(net, modules)])
    for (quantity, layer), values in found.items():
        same(values, [each[layer - 1][quantity] for each in expected])


def test_full_networks_hold_the_batchs_statistics_and_show_the_other_modes() -> None:
    nets = ensemble_of("full")
    found = collected(flows(nets, IMAGES))
    batch, names = (IMAGES.inputs, IMAGES.labels), ["stem", "blocks.0", "blocks.1"]
    for quantity, mode in {"flow": "batch", "flow_eval": "eval", "flow_train": "train"}.items():
        shares = dominant_gradient_flow(
            nets, batch, criterion=F.cross_entropy, layers=names, mode=mode
        ).by_mean
        for layer in range(3):
            same(found[quantity, layer + 1], shares[..., layer].mean(1).tolist())
    assert not any(quantity == "flow_eval" for quantity, _ in collected(flows(ensemble_of("plain"), IMAGES)))


def test_final_gradients_are_those_in_the_pooled_activities() -> None:
    found = collected(final_gradients(ensemble_of("residual"), IMAGES))
    expected = []
    for seed in SEEDS:
        net, last = network("residual", seed), []
        net.get_submodule("output").register_forward_pre_hook(lambda _, args, last=last: last.append(args[0]))
        loss = F.cross_entropy(net(IMAGES.inputs), IMAGES.labels)
        expected.append(torch.autograd.grad(loss, last[0])[0].flatten())
    same(found["final_mean", 0], [each.mean().item() for each in expected])
    same(found["final_std", 0], [each.std().item() for each in expected])
    same(found["final_quantile", 25], [each.sort().values[round(0.5 * 41)].item() for each in expected])


# Quantiles, chunks and controls --------------------------------------------------------------------------------


def test_distributions_go_from_the_least_to_the_largest_number() -> None:
    values = torch.tensor([[5.0, 1.0, math.nan, 3.0, 2.0], [1.0, 2.0, 3.0, 4.0, 5.0]])
    found = collected(distribution("x", values))
    assert len(found) == len(SHARES) == 51
    assert found["x", 0].tolist() == [1.0, 1.0]
    assert found["x", 25].tolist() == [3.0, 3.0]
    assert found["x", 50].tolist() == [math.inf, 5.0]  # what is no number counts as the largest


def test_answers_are_those_of_the_networks_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "parts", lambda samples: parts(samples, 3))
    found = collected(measures.answers(ensemble_of("plain"), IMAGES, "test", mixed=False))
    outputs = [network("plain", seed)(IMAGES.inputs).detach() for seed in SEEDS]
    # Outputs are taken in float32, as training's are.
    same(found["test_loss", 0], [F.cross_entropy(each, IMAGES.labels).item() for each in outputs], rtol=1e-6)
    same(
        found["test_error", 0], [(each.argmax(1) != IMAGES.labels).double().mean().item() for each in outputs]
    )


@pytest.mark.parametrize("kind", ["plain", "residual"])
def test_diagonal_kernels_keep_a_channel_to_itself(kind: str) -> None:
    net = network(kind, 0)
    changed = measures.diagonal_only(net)
    for (name, before), after in zip(net.named_parameters(), changed.parameters(), strict=True):
        if not name.startswith("blocks.") or before.ndim != 4:
            assert torch.equal(before, after)
            continue
        filters, channels = before.shape[:2]
        for d, c in itertools.product(range(filters), range(channels)):
            # Where a block widens, T_r has two diagonal matrices, one below the other.
            kept = before[d, c] if d in (c, c + channels) else torch.zeros_like(before[d, c])
            assert torch.equal(after[d, c], kept)
    assert torch.equal(net.get_parameter("output.weight"), network(kind, 0).get_parameter("output.weight"))


# In a trial ----------------------------------------------------------------------------------------------------

TRIAL = Networks(
    data="digits",
    model="residual",
    depth=5,
    seeds=(0, 1),
    training=Training(images=20, epochs=2, drops=(), batch_size=10, padding=1),
    filters=(2, 3, 4),
    measures=Measures(
        test_every=2,
        clean=(2,),
        cushions=(0, 2),
        noise=(2,),
        flows=(0, 1),
        final_gradients=(0,),
        diagonals=(2,),
        test_images=15,
        cushion_images=6,
        noise_images=6,
        noise_draws=1,
        flow_images=5,
    ),
)


def test_a_trial_measures_what_it_is_asked_for_at_the_epochs_named() -> None:
    table = train.function(TRIAL, Bench())
    kinds = table["quantity"].astype(str)
    epochs = {kind: set(table["epoch"][kinds == kind]) for kind in kinds.unique()}
    assert epochs["test_error"] == {0, 2}
    assert epochs["clean_loss"] == epochs["noise_absolute_0.01"] == epochs["diagonal_test_error"] == {2}
    assert epochs["cushion"] == {0, 2}
    assert epochs["flow"] == {0, 1}
    assert epochs["final_mean"] == {0}
    assert set(table["layer"][kinds == "cushion"]) == {1, 2, 3, 4, 5}
    assert set(table["seed"]) == {0, 1}
    assert "interlayer" not in epochs


def test_flows_of_epoch_0_are_taken_after_the_first_iteration() -> None:
    samples = samples_of("digits", "train", 20, None, "cpu")
    (flow,) = measures.callbacks(
        dataclasses.replace(TRIAL, measures=Measures(test_every=9, flows=(0, 2))), samples, "cpu"
    )[1:]
    assert flow.steps == {1, 4}
    (cushion,) = measures.callbacks(
        dataclasses.replace(TRIAL, measures=Measures(test_every=9, cushions=(0, 2, 5))), samples, "cpu"
    )[1:]
    assert cushion.steps == {0, 4}  # and not after the end


def test_full_networks_are_measured_too() -> None:
    full = dataclasses.replace(
        TRIAL,
        model="full-residual",
        depth=8,
        measures=Measures(test_every=2, flows=(0,), interlayer=(2,), flow_images=4, interlayer_images=2),
    )
    table = train.function(full, Bench())
    kinds = table["quantity"].astype(str)
    assert {"flow", "flow_eval", "flow_train", "interlayer", "interlayer_alone", "interlayer_joint"} <= set(
        kinds
    )
    assert set(table["layer"][kinds == "interlayer"]) == {1, 2, 3}
    assert set(table["layer"][kinds == "interlayer_alone"]) == {2}


def test_only_plain_doses_know_which_entries_are_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shuffled entries are not the identity's, so that no norm is taken without them."""
    doses = []

    def spy(ensemble: Ensemble, samples: TensorSet, dose: float) -> list[Found]:
        doses.append(dose)
        return []

    monkeypatch.setattr(measures, "cushions", spy)
    for shuffled in (False, True):
        only = Measures(test_every=9, cushions=(0,), cushion_images=3)
        dosed = dataclasses.replace(TRIAL, model="dosed", share=0.5, shuffled=shuffled, measures=only)
        train.function(dosed, Bench())
    assert doses == [0.5, 0.0]
    entries = id_entries(SimplifiedPlnNet(1, generator=torch_generator(0), filters=(2, 3, 4), channels=1))
    assert len(entries) == 3
