"""Samples by name, and random ones of the kind that a network takes."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from skiplab.checks import DataMissing, Refused
from skiplab.diagnosis.data import named_batch
from skiplab.measurements.gradient_norms import gradient_norms


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.body = nn.LSTM(6, 5, batch_first=True)
        self.head = nn.Linear(5, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.body(self.embed(tokens))[0])


class FixedSize(nn.Module):
    """Takes 28×28 alone, since what follows the convolution has a fixed length."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(2 * 26 * 26, 9))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


def test_digits_are_images_of_eight_by_eight_with_ten_classes() -> None:
    x, y = named_batch("digits", None, 500, 0)
    assert x.shape == (500, 1, 8, 8)
    assert set(y.tolist()) == set(range(10))


def test_another_seed_draws_other_samples_and_the_same_one_the_same() -> None:
    one, again, other = (named_batch("digits", None, 50, seed)[0] for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_a_network_that_takes_flat_images_gets_them_so() -> None:
    flat = nn.Sequential(nn.Linear(64, 10))
    kept = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    assert named_batch("digits", flat, 5, 0)[0].shape == (5, 64)
    assert named_batch("digits", kept, 5, 0)[0].shape == (5, 1, 8, 8)


def test_data_that_a_network_does_not_take_are_refused() -> None:
    with pytest.raises(Refused):
        named_batch("digits", nn.Linear(7, 10), 5, 0)


def test_a_set_that_is_not_here_says_how_to_get_it(fresh_machine: None) -> None:
    with pytest.raises(DataMissing, match="cifar10"):
        named_batch("cifar10", None, 5, 0)


def test_a_wrong_name_is_refused_with_the_right_ones() -> None:
    with pytest.raises(Refused, match=r"'digit' is unknown; choose one of digits, .* Did you mean digits"):
        named_batch("digit", None, 5, 0)
    with pytest.raises(Refused, match="random data are made for a network"):
        named_batch("random", None, 5, 0)


@pytest.mark.parametrize(
    ("model", "shape", "labels", "classes"),
    [
        (nn.Sequential(nn.Linear(7, 3), nn.Tanh(), nn.Linear(3, 4)), (6, 7), (6,), 4),
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten()), (6, 3, 32, 32), (6,), 4),
        (
            nn.Sequential(nn.Conv2d(3, 4, 7, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
            (6, 3, 64, 64),
            (6,),
            4,
        ),
        (FixedSize(), (6, 1, 28, 28), (6,), 9),
        (Tagger(), (6, 16), (6, 16), 4),
        (nn.LSTM(3, 5, batch_first=True), (6, 16, 3), (6, 16), 5),
        (nn.Sequential(nn.Flatten(), nn.Linear(64, 5)), (6, 64), (6,), 5),
        (nn.Sequential(nn.Conv2d(1, 5, 3, padding=1)), (6, 1, 32, 32), (6, 32, 32), 5),
    ],
)
def test_random_samples_fit_the_network(
    model: nn.Module, shape: tuple[int, ...], labels: tuple[int, ...], classes: int
) -> None:
    before = copy.deepcopy(model.state_dict())
    x, y = named_batch("random", model, 6, 0)
    assert x.shape == shape
    assert y.shape == labels
    assert 0 <= int(y.min()) <= int(y.max()) < classes
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_one_output_gets_numbers_as_targets() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    x, y = named_batch("random", model, 6, 0)
    assert y.shape == (6, 1)
    assert gradient_norms(model, (x, y), criterion=nn.MSELoss(), layers=["0", "2"]).mean.isfinite().all()


def test_a_network_that_takes_nothing_known_is_refused() -> None:
    class Odd(nn.Module):
        def forward(self, one: Tensor, other: Tensor) -> Tensor:
            return one + other

    with pytest.raises(Refused, match="no random input was found that Odd takes"):
        named_batch("random", Odd(), 5, 0)


def test_a_network_of_timm_gets_the_size_it_says() -> None:
    timm = pytest.importorskip("timm")
    fixed = timm.create_model("vit_tiny_patch16_224", pretrained=False, depth=1)
    x, y = named_batch("random", fixed, 2, 0)
    assert x.shape == (2, 3, 224, 224)
    free = timm.create_model("resnet10t", pretrained=False, in_chans=1)
    assert named_batch("random", free, 2, 0)[0].shape == (2, 1, 64, 64)
    assert y.shape == (2,)


def test_language_models_get_named_tokens() -> None:
    transformers = pytest.importorskip("transformers")
    small = transformers.GPT2Config(vocab_size=50, n_positions=32, n_embd=8, n_layer=1, n_head=1)
    batch = named_batch("random", transformers.GPT2LMHeadModel(small), 3, 0)
    assert batch["input_ids"].shape == batch["labels"].shape == (3, 16)
    assert int(batch["input_ids"].max()) < 50
