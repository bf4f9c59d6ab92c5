from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch import Tensor, nn

import skiplab as sl
from skiplab.architectures.fully_connected import HyperResidualNet, PathResidualNet, PlainNet, ResidualNet
from skiplab.architectures.toy import ToyPlainNet
from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.measurements.noise_stability import weight_noise
from skiplab.measurements.symmetric_changes import companions, permuted
from skiplab.measurements.symmetry import Symmetry, permutation_symmetry, rescaling_symmetry
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject
from skiplab.subjects.wiring import wiring

X = torch.randn(40, 5, generator=torch_generator("symmetry x"), dtype=torch.float64)
Y = torch.randint(3, (40,), generator=torch_generator("symmetry y"))
IMAGES = torch.randn(6, 3, 8, 8, generator=torch_generator("symmetry images"), dtype=torch.float64)
BOTH = pytest.mark.parametrize("measure", [rescaling_symmetry, permutation_symmetry])
Measure = Any


def net(kind: type[PlainNet] = PlainNet, seed: int = 0, **options: Any) -> Any:
    found = kind(5, 8, 4, 3, generator=torch_generator(seed), dtype=torch.float64, **options)
    return with_vectors(found, seed)


def with_vectors(module: nn.Module, seed: int = 0) -> Any:
    """Biases, norms and statistics of all different values, so that forgetting one shows."""
    stream = torch_generator(seed, "vectors")
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.ndim == 1:
            tensor.data.copy_(0.5 + torch.rand(tensor.shape, generator=stream, dtype=torch.float64))
    return module


def same(one: Symmetry, other: Symmetry, member: int) -> None:
    assert one.layers == other.layers
    for name in ("changed", "accuracy_before", "accuracy", "loss_before", "loss", "agreement", "change"):
        left, right = getattr(one, name)[member], getattr(other, name)[0]
        torch.testing.assert_close(left, right, equal_nan=True, rtol=1e-9, atol=1e-12)


# What holds and what breaks ------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("backend", ["batched", "loop"])
def test_a_plain_relu_network_is_symmetric_to_rounding(measure: Measure, backend: str) -> None:
    ensemble = Ensemble.of([net(seed=seed) for seed in range(3)], backend=backend)
    found = measure(ensemble, (X, Y), criterion=nn.CrossEntropyLoss(), draws=20)
    assert found.score.tolist() == [1.0] * 3
    assert found.stderr.tolist() == [0.0] * 3
    assert float(found.agreement.min()) == 1
    assert float(found.change.max()) < 1e-14
    torch.testing.assert_close(found.loss, found.loss_before[:, None].expand_as(found.loss))


@pytest.mark.parametrize(
    ("module", "rescaling", "permutation"),
    [
        (net(activation="linear"), True, True),
        (net(activation="tanh"), False, True),
        (net(batch_norm_at=2), False, True),
        (net(ResidualNet), False, False),
        (net(HyperResidualNet), False, False),
        (net(PathResidualNet), False, True),
    ],
    ids=["linear", "tanh", "batch norm", "residual", "hyper-residual", "path-residual"],
)
def test_what_breaks_which_symmetry(module: nn.Module, rescaling: bool, permutation: bool) -> None:
    # Across the normalisation, and without the ends: the output could undo what all layers share.
    inner = ["hidden.1.linear", "hidden.3.linear"]
    for found, holds in (
        (rescaling_symmetry(module, X, layers=inner), rescaling),
        (permutation_symmetry(module, X), permutation),
    ):
        if holds:
            assert float(found.change.max()) < 1e-14
        else:
            assert float(found.change.min()) > 1e-3


def test_fixed_numbers_do_not_follow_the_units_and_are_not_scaled() -> None:
    biases = torch.randn(5, 2, generator=torch_generator("toy"), dtype=torch.float64)
    x = torch.rand(9, 2, generator=torch_generator("toy x"), dtype=torch.float64)
    without, fixed = ToyPlainNet(), ToyPlainNet(biases=biases)
    fixed.set_signs(1 - 2 * (torch.arange(22) % 3 == 0).long())
    for measure in (rescaling_symmetry, permutation_symmetry):
        assert float(measure(without, x).change.max()) < 1e-14
        assert float(measure(fixed, x).change.max()) > 1e-3


def test_convolutions_normalisation_slopes_and_flattened_maps_are_permuted_together() -> None:
    parts = [
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.PReLU(4),
        nn.Conv2d(4, 6, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(6 * 4, 5),
        nn.LayerNorm(5),
        nn.ReLU(),
        nn.Linear(5, 2),
    ]
    module = with_vectors(nn.Sequential(*parts).double())
    found = permutation_symmetry(module, IMAGES, draws=30)
    assert found.layers == ("0", "3", "7")
    assert set(found.changed.flatten().tolist()) == {0, 1, 2}
    assert float(found.change.max()) < 1e-14
    assert set(companions(Subject.of(module), IMAGES)["0"]) == {
        "1.weight",
        "1.bias",
        "1.running_mean",
        "1.running_var",
        "2.weight",
    }
    # In training mode too, where the batch gives the statistics.
    assert float(permutation_symmetry(module, IMAGES, draws=30, mode="train").change.max()) < 1e-14
    plain = nn.Sequential(*(part for part in parts if not isinstance(part, nn.BatchNorm2d | nn.LayerNorm)))
    assert float(rescaling_symmetry(plain, IMAGES, draws=None).change.max()) < 1e-14


# Against changes made by hand ------------------------------------------------------------------------------


def test_every_pair_is_what_scaling_by_hand_gives() -> None:
    module = net(ResidualNet)
    found = rescaling_symmetry(module, (X, Y), criterion=nn.CrossEntropyLoss(), draws=None, factor=3.0)
    names = [f"hidden.{k}.linear" for k in range(4)] + ["output"]
    assert found.layers == tuple(names)
    assert found.changed[0].tolist() == [[k, later] for k in range(5) for later in range(k + 1, 5)]
    before = module(X).detach()
    right = (before.argmax(1) == Y).double().mean()
    for draw, (k, later) in enumerate(found.changed[0].tolist()):
        other = copy.deepcopy(module)
        layers = [other.get_submodule(name) for name in names]
        with torch.no_grad():
            layers[k].weight *= 3
            for layer in layers[k:later]:
                layer.bias *= 3
            layers[later].weight /= 3
        after = other(X).detach()
        assert float(found.accuracy[0, draw]) == pytest.approx(float((after.argmax(1) == Y).double().mean()))
        assert float(found.agreement[0, draw]) == pytest.approx(
            float((after.argmax(1) == before.argmax(1)).double().mean())
        )
        assert float(found.loss[0, draw]) == pytest.approx(float(F.cross_entropy(after, Y)))
        assert float(found.change[0, draw]) == pytest.approx(
            float((after - before).norm() / before.norm()), abs=1e-14
        )
    assert float(found.accuracy_before) == pytest.approx(float(right))
    torch.testing.assert_close(found.ratio, found.accuracy / right)
    torch.testing.assert_close(found.score, found.ratio.mean(1))
    # All pairs were tried, so there is no error of sampling.
    assert float(found.stderr) == 0
    # The first against the last: everything between is homogeneous, skips too.
    assert float(found.change[0, 3]) < 1e-14
    assert float(found.change[0, 2]) > 1e-3


def test_units_move_as_they_do_by_hand() -> None:
    module, order = net(ResidualNet), torch.tensor([3, 1, 0, 2, 4, 5, 7, 6])
    subject = Subject.of(module)
    found = permuted(subject, wiring(subject, X), {}, [("hidden.1.linear", order)]).outputs(X)[0]
    other = copy.deepcopy(module)
    with torch.no_grad():
        other.hidden[1].linear.weight.copy_(module.hidden[1].linear.weight[order])
        other.hidden[1].linear.bias.copy_(module.hidden[1].linear.bias[order])
        other.hidden[2].linear.weight.copy_(module.hidden[2].linear.weight[:, order])
    torch.testing.assert_close(found, other(X).detach())


class Tied(nn.Module):
    """Two layers with one matrix, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.head = nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(5, 3)
        self.two.weight = self.one.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.relu(self.two(torch.relu(self.one(x)))))


def test_shared_weights_are_changed_in_all_their_places() -> None:
    module = Tied().double()
    found = rescaling_symmetry(module, X, draws=None)
    # One matrix cannot be rescaled against itself.
    pairs = [[found.layers[i] for i in pair] for pair in found.changed[0].tolist()]
    assert pairs == [["one", "head"], ["two", "head"]]
    other = copy.deepcopy(module)
    with torch.no_grad():
        other.one.weight *= 10
        other.two.bias *= 10
        other.head.weight /= 10
    before, after = module(X).detach(), other(X).detach()
    assert float(found.change[0, 1]) == pytest.approx(float((after - before).norm() / before.norm()))


# Members, batches and draws ---------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("backend", ["batched", "loop"])
@pytest.mark.parametrize("seeds", [7, (4, 5, 6)])
def test_members_equal_lone_networks(measure: Measure, backend: str, seeds: Any) -> None:
    nets = [net(ResidualNet, seed=seed) for seed in range(3)]
    options: dict[str, Any] = {"criterion": nn.CrossEntropyLoss(), "draws": 5}
    many = measure(Ensemble.of(nets, backend=backend), (X, Y), seed=seeds, **options)
    for member, lone in enumerate(nets):
        own = seeds if isinstance(seeds, int) else seeds[member]
        same(many, measure(lone, (X, Y), seed=own, **options), member)
    alike = torch.equal(many.changed[0], many.changed[1])
    assert alike == isinstance(seeds, int)


@BOTH
def test_batches_add_up_whatever_their_sizes(measure: Measure) -> None:
    module = net(ResidualNet)
    whole = measure(module, (X, Y), criterion=nn.CrossEntropyLoss())
    parts = ((X[i:j], Y[i:j]) for i, j in ((0, 7), (7, 30), (30, 40)))
    same(whole, measure(module, parts, criterion=nn.CrossEntropyLoss()), 0)
    assert whole.samples == 40


@BOTH
def test_draws_follow_the_seed_and_their_spread_is_told(measure: Measure) -> None:
    module = net(ResidualNet)
    one, again, other = (measure(module, (X, Y), seed=seed, draws=12) for seed in (0, 0, 1))
    same(one, again, 0)
    assert not torch.equal(one.changed, other.changed)
    torch.testing.assert_close(one.stderr, one.ratio.std(1) / 12**0.5)
    torch.testing.assert_close(one.change_stderr, one.change.std(1) / 12**0.5)
    torch.testing.assert_close(one.mean_change, one.change.mean(1))
    assert bool(measure(module, (X, Y), draws=1).stderr.isnan())


def test_only_named_layers_are_drawn() -> None:
    module = net(ResidualNet)
    names = ["hidden.1.linear", "hidden.3.linear"]
    assert rescaling_symmetry(module, X, layers=names).layers == tuple(names)
    assert permutation_symmetry(module, X, layers=names[:1]).layers == ("hidden.1.linear",)


# What is compared ------------------------------------------------------------------------------------------


def test_without_labels_answers_are_compared_with_those_before() -> None:
    found = rescaling_symmetry(net(ResidualNet), X)
    assert found.scored_by == "agreement"
    assert bool(found.accuracy_before.isnan())
    assert bool(found.loss.isnan().all())
    torch.testing.assert_close(found.score, found.agreement.mean(1))
    assert rescaling_symmetry(net(ResidualNet), (X, Y)).scored_by == "accuracy"


def test_a_regression_has_a_change_and_a_loss_but_no_answers() -> None:
    module = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    found = rescaling_symmetry(module, (X, X[:, :1]), criterion=nn.MSELoss())
    assert found.scored_by == "outputs"
    torch.testing.assert_close(found.score, (1 - found.change).clamp_min(0).mean(1))
    assert float(found.mean_change) > 0.01
    assert float((found.loss - found.loss_before).abs().min()) > 1e-4


class Answering(nn.Module):
    """Gives a dict with the loss before the logits, for sequences of tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.body = net(ResidualNet)

    def forward(self, inputs: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        logits = self.body(inputs)
        loss = torch.zeros(()) if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return {"loss": loss, "logits": logits}


def test_a_loss_of_ones_own_and_outputs_in_a_dict() -> None:
    sequences, labels = X.view(8, 5, 5), Y.view(8, 5)
    batch = {"inputs": sequences, "labels": labels}
    found = rescaling_symmetry(Answering(), batch, loss_fn=lambda model, batch: model(**batch)["loss"])
    flat = rescaling_symmetry(net(ResidualNet), (X, Y), criterion=nn.CrossEntropyLoss())
    for name in ("accuracy_before", "accuracy", "agreement", "loss_before", "loss", "change"):
        torch.testing.assert_close(getattr(found, name), getattr(flat, name))


def test_the_classes_of_a_map_are_its_channels() -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Conv2d(4, 5, 1)).double()
    labels = module(IMAGES).argmax(1)
    found = rescaling_symmetry(module, (IMAGES, labels), criterion=nn.CrossEntropyLoss())
    assert float(found.accuracy_before) == 1
    torch.testing.assert_close(found.accuracy, found.agreement)
    torch.testing.assert_close(rescaling_symmetry(module, IMAGES).agreement, found.agreement)


def test_a_network_without_right_answers_has_no_ratio_and_one_without_outputs_no_change() -> None:
    module = net(ResidualNet)
    wrong = (module(X).argmax(1) + 1) % 3
    found = rescaling_symmetry(module, (X, wrong))
    assert bool(found.ratio.isnan().all())
    assert found.scored_by == "agreement"
    torch.testing.assert_close(found.score, rescaling_symmetry(module, X).score)
    # In an ensemble all networks are scored by the same, so that they can be compared.
    both = rescaling_symmetry(Ensemble.of([module, net(ResidualNet, seed=1)]), (X, wrong))
    assert both.scored_by == "agreement"
    assert not bool(both.score.isnan().any())
    silent = net()
    for tensor in silent.parameters():
        tensor.data.zero_()
    assert float(rescaling_symmetry(silent, X).change.max()) == 0


# Refusals --------------------------------------------------------------------------------------------------


class Branches(nn.Module):
    """Two layers read the first, a product joins them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.gate, self.up = nn.Linear(5, 6), nn.Linear(6, 4), nn.Linear(6, 4)
        self.down = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.first(x))
        return self.down(torch.relu(self.gate(x)) * self.up(x))


def test_branches_end_chains_and_joined_units_are_left_out() -> None:
    module = Branches().double()
    with pytest.raises(Refused, match="none of the 4 weight layers called is read by just one other layer"):
        rescaling_symmetry(module, X)
    # The first layer's units are read twice, which a permutation can follow.
    found = permutation_symmetry(module, X)
    assert found.layers == ("first",)
    assert float(found.change.max()) < 1e-14
    with pytest.raises(Refused, match="the units of layer 'gate' cannot be permuted by themselves"):
        permutation_symmetry(module, X, layers=["gate"])


def test_grouped_convolutions_are_left_out() -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3, groups=4)).double()
    with pytest.raises(Refused, match="none of the 2 weight layers called has units that other layers read"):
        permutation_symmetry(module, IMAGES)
    # Rescaling does not mind: every channel grows alike.
    assert float(rescaling_symmetry(module, IMAGES).change.max()) < 1e-14


@BOTH
def test_wrong_arguments_are_refused(measure: Measure) -> None:
    module = net()
    with pytest.raises(Refused, match="draws is 0, but must be a whole number of at least 1"):
        measure(module, X, draws=0)
    with pytest.raises(Refused, match="3 seeds were given for 1 networks; give one for all"):
        measure(module, X, seed=(1, 2, 3))
    with pytest.raises(
        Refused, match=r"layer 'hidden\.0' is a PlainLayer without units; name 'hidden\.0\.linear'"
    ):
        measure(module, X, layers=["hidden.0", "output"])
    with pytest.raises(
        Refused, match=r"layer 'hiden\.0\.linear' does not exist.*Did you mean hidden\.0\.linear"
    ):
        measure(module, X, layers=["hiden.0.linear"])
    with pytest.raises(Refused, match="no Linear or convolution, so there are no units to look at"):
        measure(nn.Sequential(nn.BatchNorm1d(5)).double(), X)
    with pytest.raises(Refused, match="there was no batch"):
        measure(module, [])


def test_pairs_that_are_no_pairs_and_layers_not_called() -> None:
    module = net()
    with pytest.raises(Refused, match="factor is 0, but must be a positive number"):
        rescaling_symmetry(module, X, factor=0)
    with pytest.raises(Refused, match="no two layers among 'output' follow each other in a chain"):
        rescaling_symmetry(module, X, layers=["output"])
    with pytest.raises(Refused, match="the units of layer 'output' cannot be permuted by themselves"):
        permutation_symmetry(module, X, layers=["output"])
    module.unused = nn.Linear(2, 2)
    with pytest.raises(Refused, match="layer 'unused' is not called on this batch"):
        permutation_symmetry(module, X, layers=["unused"])


@BOTH
@pytest.mark.parametrize("backend", ["batched", "loop"])
def test_a_diverged_network_is_refused_and_a_diverged_member_has_nan(measure: Measure, backend: str) -> None:
    nets = [net(seed=seed) for seed in range(2)]
    alone = measure(nets[0], (X, Y))
    nets[1].hidden[1].linear.weight.data[0, 0] = torch.nan
    sentence = (
        "the output holds nan, not a finite number; look for diverged parameters or inputs that are not"
    )
    with pytest.raises(Refused, match=sentence):
        measure(nets[1], (X, Y))
    with pytest.raises(Refused, match=sentence):
        measure(nets[0], (X * torch.nan, Y))
    found = measure(Ensemble.of(nets, backend=backend), (X, Y))
    same(found, alone, 0)
    for name in ("accuracy_before", "accuracy", "agreement", "change", "score"):
        assert getattr(found, name)[1].isnan().all()


@BOTH
def test_an_output_of_no_probability_is_no_divergence(measure: Measure) -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def forward(self, x: Tensor) -> Tensor:
            return torch.cat([self.net(x), torch.full_like(x[:, :1], -torch.inf)], 1)

    found = measure(Masked(), (X, Y))
    assert found.score.item() == 1
    # The other outputs change as they do without it.
    torch.testing.assert_close(found.change, measure(net(), X).change)


class Fragile(nn.Module):
    """A network whose output is NaN once any of its hidden units is larger than 30."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(5, 6).double(), nn.Linear(6, 3).double()

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.first(x))
        return torch.where(x.amax(1, keepdim=True) < 30, self.last(x), torch.nan)


def test_a_network_that_answers_nan_after_a_change_has_lost_all_and_no_number_is_nan() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = Fragile()
    labels = module(X).argmax(1)
    found = rescaling_symmetry(module, (X, labels), factor=1e4, draws=None)
    assert found.score.item() == found.agreement.item() == found.accuracy.item() == 0
    assert found.change.item() == torch.inf
    for batch in (X, (X, labels), (X, (labels + 1) % 3)):
        for factor in (2.0, 1e4):
            some = rescaling_symmetry(module, batch, factor=factor, draws=None)
            assert not any(bool(each.value.isnan().any()) for each in some.estimates.values())
            assert not bool(some.score.isnan().any())


def test_a_loss_that_is_not_finite_is_refused() -> None:
    with pytest.raises(Refused, match="the loss holds inf, not a finite number"):
        rescaling_symmetry(net(), (X, Y), criterion=lambda output, target: output.sum() * torch.inf)


@pytest.mark.gpu
@BOTH
def test_a_gpu_says_the_same(measure: Measure) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    nets = [net(ResidualNet, seed=seed) for seed in range(3)]
    here = measure(Ensemble.of(nets), (X, Y), criterion=nn.CrossEntropyLoss())
    there = measure(Ensemble.of(nets, device="cuda"), (X.cuda(), Y.cuda()), criterion=nn.CrossEntropyLoss())
    torch.testing.assert_close(there.change.cpu(), here.change)
    torch.testing.assert_close(there.accuracy.cpu(), here.accuracy)


def test_numbers_to_be_met_have_no_answers_and_probabilities_have() -> None:
    net = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 6))
    x = torch.randn(20, 6, generator=torch_generator("x"))
    for target, asked in ((x, False), (x.softmax(1), True)):
        for measure in (rescaling_symmetry, permutation_symmetry, weight_noise):
            found = measure(net, (x, target), draws=3)
            assert bool(found.agreement.isnan().all()) != asked, measure
            assert ("same answers" in repr(found)) == (asked and measure is not weight_noise)
    regression = rescaling_symmetry(net, (x, x), draws=3)
    assert regression.scored_by == "outputs"
    assert 0 <= regression.score.item() < 1


# Even draws ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("depth", "times"), [(1, 10), (3, 4), (5, 3), (12, 3)])
def test_every_layer_is_permuted_equally_often(depth: int, times: int) -> None:
    module = PlainNet(5, 8, depth, 3, generator=torch_generator(0), dtype=torch.float64)
    found = permutation_symmetry(module, X)
    assert torch.bincount(found.changed.flatten()).tolist() == [times] * depth
    assert found.parts == depth
    assert times * depth >= 10


def test_few_pairs_are_all_rescaled_and_many_are_drawn_from_all_over_the_network() -> None:
    few = rescaling_symmetry(net(ResidualNet), X)
    assert few.exhaustive
    same(few, rescaling_symmetry(net(ResidualNet), X, draws=None), 0)
    deep = ResidualNet(5, 8, 12, 3, generator=torch_generator(0), dtype=torch.float64)
    found, every = rescaling_symmetry(deep, X), rescaling_symmetry(deep, X, draws=None)
    assert (found.change.shape, found.exhaustive) == ((1, 20), False)
    places = [every.changed[0].tolist().index(pair) for pair in found.changed[0].tolist()]
    part = every.change.shape[1] / 20
    # A pair that straddles two parts belongs to both.
    assert all(draw * part - 1 < place < (draw + 1) * part for draw, place in enumerate(places))


def test_the_error_of_even_draws_is_that_within_layers() -> None:
    found = permutation_symmetry(net(ResidualNet), (X, Y))  # 4 layers, 3 permutations of each
    by_layer = [found.change[0, 3 * layer : 3 * layer + 3] for layer in range(4)]
    variances = [float(each.var()) / 3 for each in by_layer]
    stderr = sum(variances) ** 0.5 / 4
    assert float(found.change_stderr) == pytest.approx(stderr)
    freedom = sum(variances) ** 2 / sum(each**2 / 4 for each in variances) - 2
    estimate = found.estimates["relative change of the outputs"]
    assert float(estimate.high) == pytest.approx(
        float(found.mean_change) + float(stats.t.ppf(0.975, freedom)) * stderr
    )
    at_random = permutation_symmetry(net(ResidualNet), (X, Y), draws=12)
    assert at_random.parts == 1
    assert float(at_random.change_stderr) == pytest.approx(float(at_random.change.std()) / 12**0.5)


@BOTH
def test_intervals_hold_the_mean_over_all_layers_and_pairs(measure: Measure) -> None:
    # Weights whose layers differ widely, as after training: few layers at random say little of the others.
    module = ResidualNet(5, 8, 9, 3, generator=torch_generator(3), dtype=torch.float64)
    for layer, part in enumerate(module.hidden):
        part.linear.weight.data *= 3.0 ** (layer % 3 - 1)
    if measure is rescaling_symmetry:
        true = float(measure(module, X, draws=None).mean_change)
    else:
        many = [measure(module, X, layers=[f"hidden.{k}.linear"], draws=200) for k in range(9)]
        true = sum(float(each.mean_change) for each in many) / 9
    widths, held = [], 0
    for seed in range(40):
        estimate = measure(module, X, seed=seed).estimates["relative change of the outputs"]
        held += bool(estimate.low <= true <= estimate.high)
        widths.append(float(estimate.high - estimate.low))
    assert held >= 34  # 95 % of 40 are 38
    draws = 27 if measure is permutation_symmetry else 20
    at_random = [measure(module, X, seed=seed, draws=draws).estimates for seed in range(10)]
    wide = [float(each["relative change of the outputs"].stderr) for each in at_random]
    assert sum(widths) / 40 < 1.1 * 2 * 1.96 * sum(wide) / 10


def test_a_diagnosis_and_the_instrument_say_the_same() -> None:
    module = net(ResidualNet)
    report = sl.diagnose(
        module, (X, Y), examinations=["permutation_symmetry", "rescaling_symmetry"], samples=40, budget=60
    )
    for examined in report.measured:
        by_itself = getattr(sl, examined.name)(module, (X, Y), criterion=nn.CrossEntropyLoss())
        same(examined.result, by_itself, 0)


def test_another_word_for_draws_is_refused() -> None:
    with pytest.raises(Refused, match=r"draws 'evn' is unknown.*Did you mean even"):
        permutation_symmetry(net(), X, draws="evn")
