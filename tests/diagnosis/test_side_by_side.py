"""Training of any networks: together or one by one, on the same batches."""

from __future__ import annotations

import copy
from collections import UserDict

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.diagnosis.courses import InBatches, Shuffled, course_of
from skiplab.diagnosis.factory import Factory
from skiplab.diagnosis.losses import Loss
from skiplab.diagnosis.side_by_side import Entrant, last_tenth, stacked, trained
from skiplab.randomness import torch_generator

CROSS_ENTROPY = Loss("given", criterion=F.cross_entropy)
AS_FUNCTION = Loss("given", loss_fn=lambda model, batch: F.cross_entropy(model(batch[0]), batch[1]))


def samples(count: int = 30, inputs: int = 5, classes: int = 3) -> tuple[Tensor, Tensor]:
    drawn = torch_generator(0, "samples")
    x = torch.randn(count, inputs, generator=drawn, dtype=torch.float64)
    return x, (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long() % classes


def network(seed: int, *more: nn.Module) -> nn.Module:
    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Tanh(), *more, nn.Linear(8, 3)).double()

    return Factory("net", make)(seed)


def entrants(count: int = 3, **more: object) -> list[Entrant]:
    rates = [0.003, 0.01, 0.03]
    return [Entrant("net", network(seed), seed, rates[seed], **more) for seed in range(count)]  # type: ignore[arg-type]


def test_an_ensemble_trains_as_a_loop_does_in_float64() -> None:
    course = Shuffled(samples(), 8)
    together = trained(entrants(), course, CROSS_ENTROPY, steps=11)
    alone = trained(entrants(), course, AS_FUNCTION, steps=11)
    assert all(run.together for run in together)
    assert not any(run.together for run in alone)
    for one, other in zip(together, alone, strict=True):
        assert torch.allclose(one.loss, other.loss, rtol=1e-9)
        for name, tensor in one.model.state_dict().items():
            assert torch.allclose(tensor, other.model.state_dict()[name], rtol=1e-8, atol=1e-10), name


def test_accuracy_is_the_same_both_ways() -> None:
    course = Shuffled(samples(), 8)
    no_penalty = trained(entrants(), course, CROSS_ENTROPY, steps=6)
    nothing = entrants(penalty=lambda model: torch.zeros(()))
    for one, other in zip(no_penalty, trained(nothing, course, CROSS_ENTROPY, steps=6), strict=True):
        assert one.together
        assert not other.together
        assert torch.equal(one.accuracy, other.accuracy)


def test_a_penalty_is_added_to_the_gradient_and_not_to_the_loss_that_is_shown() -> None:
    course = Shuffled(samples(), 8)
    first = Entrant("net", network(0), 0, 0.01)
    pulled = Entrant("net", network(0), 0, 0.01, penalty=lambda model: 1e3 * model[0].bias.square().sum())
    free, held = trained([first, pulled], course, CROSS_ENTROPY, steps=60)
    assert free.loss[0] == pytest.approx(held.loss[0])
    assert held.model[0].bias.abs().max() < 0.5 * free.model[0].bias.abs().max()


def test_the_networks_that_enter_stay_as_they_are() -> None:
    given = entrants()
    before = [copy.deepcopy(each.model.state_dict()) for each in given]
    for loss in (CROSS_ENTROPY, AS_FUNCTION):
        trained(given, Shuffled(samples(), 8), loss, steps=3)
    for each, state in zip(given, before, strict=True):
        assert all(torch.equal(state[name], tensor) for name, tensor in each.model.state_dict().items())
        assert each.model.training
        assert all(weight.grad is None for weight in each.model.parameters())


def test_networks_of_one_seed_meet_the_same_batches_whatever_their_structure() -> None:
    seen: dict[str, list[Tensor]] = {"one": [], "other": []}

    def noting(name: str) -> Loss:
        def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
            seen[name].append(batch[0])
            return F.cross_entropy(model(batch[0]), batch[1])

        return Loss("given", loss_fn=loss)

    course = Shuffled(samples(), 8)
    trained([Entrant("one", network(0), 4, 0.01)], course, noting("one"), steps=9)
    trained(
        [Entrant("other", network(1, nn.Linear(8, 8).double()), 4, 0.1)], course, noting("other"), steps=9
    )
    assert len(seen["one"]) == 9
    assert all(torch.equal(a, b) for a, b in zip(seen["one"], seen["other"], strict=True))
    assert course.batch(5, 0)[0].tolist() != seen["one"][0].tolist()


def test_an_epoch_sees_every_sample_once() -> None:
    course = Shuffled(samples(30), 8)
    assert course.per_epoch == 4
    seen = torch.cat([course.places(3, step) for step in range(4)])
    assert sorted(seen.tolist()) == list(range(30))
    assert not torch.equal(course.places(3, 0), course.places(3, 4))


def test_equal_batches_are_stacked_and_unequal_ones_are_not() -> None:
    x, y = samples()
    equal = InBatches([(x[:10], y[:10]), (x[10:20], y[10:20]), (x[20:], y[20:])])
    unequal = InBatches([(x[:10], y[:10]), (x[10:], y[10:])])
    assert unequal.samples is None
    together = trained(entrants(), equal, CROSS_ENTROPY, steps=7)
    alone = trained(entrants(), equal, AS_FUNCTION, steps=7)
    assert all(run.together for run in together)
    assert all(torch.allclose(a.loss, b.loss, rtol=1e-9) for a, b in zip(together, alone, strict=True))
    assert not any(run.together for run in trained(entrants(), unequal, CROSS_ENTROPY, steps=2))


def test_batches_with_names_train_one_by_one() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network(0)

        def forward(self, features: Tensor) -> Tensor:
            return self.inner(features)

    x, y = samples()
    batch = {"features": x, "labels": y}
    (run,) = trained([Entrant("net", Named(), 0, 0.03)], Shuffled(batch, 8), CROSS_ENTROPY, steps=40)
    assert run.final_loss < 0.8 * float(run.loss[0])
    assert float(last_tenth(run.accuracy).mean()) > float(run.accuracy[0])


class Hidden(nn.Module):
    """Two of these have equal parts, but Python keeps a number that sets them apart."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.inner, self.factor = network(0), factor

    def forward(self, x: Tensor) -> Tensor:
        return self.factor * self.inner(x)


def test_networks_that_only_look_alike_are_not_stacked() -> None:
    from skiplab.data import TensorSet

    data = TensorSet(*samples(), 3, "", "")
    assert stacked([Hidden(1.0), Hidden(1.0)], data, CROSS_ENTROPY, "cpu") is not None
    assert stacked([Hidden(1.0), Hidden(2.0)], data, CROSS_ENTROPY, "cpu") is None


def test_a_network_that_looks_at_its_numbers_still_trains() -> None:
    class Looks(Hidden):
        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x) if float(x.sum()) < 1e9 else x

    runs = trained(
        [Entrant("net", Looks(1.0), s, 0.01) for s in (0, 1)], Shuffled(samples(), 8), CROSS_ENTROPY, steps=3
    )
    plain = trained(
        [Entrant("net", Hidden(1.0), s, 0.01) for s in (0, 1)], Shuffled(samples(), 8), CROSS_ENTROPY, steps=3
    )
    assert all(torch.allclose(a.loss, b.loss) for a, b in zip(runs, plain, strict=True))


@pytest.mark.parametrize("loss", [CROSS_ENTROPY, AS_FUNCTION])
def test_divergence_is_marked_and_ends_the_curve(loss: Loss) -> None:
    class Explodes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(5, 3).double()

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x).exp().exp()

    wild = [Entrant("net", Explodes(), 0, 100.0), Entrant("net", Explodes(), 1, 1e-6)]
    first, second = trained(wild, Shuffled(samples(), 8), loss, steps=5)
    assert first.diverged
    assert first.loss.isnan()[-1]
    assert not second.diverged
    assert second.loss.isfinite().all()


def test_the_global_random_stream_stays() -> None:
    dropping = [Entrant("net", network(s, nn.Dropout(0.5)), s, 0.01) for s in (0, 1)]
    before = torch.get_rng_state()
    trained(dropping, Shuffled(samples(), 8), CROSS_ENTROPY, steps=3)
    assert torch.equal(before, torch.get_rng_state())


def test_a_course_is_refused_where_it_says_two_things() -> None:
    x, y = samples()
    with pytest.raises(Refused, match="batch_size is 4, but 2 batches were given as they are"):
        course_of([(x, y), (x, y)], 4, 100)
    assert course_of((x, y), None, 100).words == "30 samples in batches of 8"
    assert course_of([(x, y), (x[:9], y[:9])], None, 100).words == "2 batches of 9 to 30 samples"


def test_a_batch_of_another_kind_of_mapping_is_cut_like_a_dict() -> None:
    batch = UserDict({"features": torch.arange(12.0)[:, None], "labels": torch.arange(12)})
    course = course_of(batch, 4, None)
    assert course.per_epoch == 3
    parts = [course.batch(0, step) for step in range(3)]
    assert [len(part["features"]) for part in parts] == [4, 4, 4]
    assert torch.cat([part["labels"] for part in parts]).sort().values.tolist() == [*range(12)]
