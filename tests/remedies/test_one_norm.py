"""One normalisation behind one layer: of a linear layer, a convolution, tokens; in training and evaluation."""

from __future__ import annotations

import pytest
import torch
from networks_to_treat import blocks, convnet, drawn, mlp, normal
from torch import Tensor, nn
from torch.nn import functional as F

from skiplab.checks import Refused
from skiplab.remedies import normalise_at

EXACT = {"rtol": 0.0, "atol": 1e-12}


@pytest.mark.parametrize("training", [True, False])
def test_batch_normalisation_stands_behind_the_layer_in_both_modes(training: bool) -> None:
    net, x = mlp().train(training), normal(30, 5)
    treated = normalise_at(net, x, layer="2", kind="batch")
    fields = net[:3](x)
    centred = fields - fields.mean(0)
    # Training divides by the variance over n, evaluation by running statistics, which torch keeps over n − 1.
    deviation = (fields.var(0, unbiased=not training) + 1e-5).sqrt()
    torch.testing.assert_close(treated.model(x), net[3:](centred / deviation), **EXACT)
    assert treated.changed == "batch normalisation behind 2"
    assert treated.model.training == training


def test_layer_normalisation_of_features_tokens_and_images() -> None:
    net = mlp()
    for x in (normal(30, 5), normal(4, 3, 5)):
        expected = net[3:](F.layer_norm(net[:3](x), (6,)))
        torch.testing.assert_close(normalise_at(net, x, layer="2", kind="layer").model(x), expected, **EXACT)
    images, x = convnet(), normal(2, 2, 8, 8)
    maps = images[:3](x)
    expected = images[3:](F.layer_norm(maps, maps.shape[1:]))
    torch.testing.assert_close(normalise_at(images, x, layer="2", kind="layer").model(x), expected, **EXACT)


def test_tokens_have_layer_normalisation_by_default_and_images_batch_normalisation() -> None:
    assert normalise_at(mlp(), normal(4, 3, 5), layer="2").changed == "layer normalisation behind 2"
    assert normalise_at(convnet(), normal(2, 2, 8, 8), layer="2").changed == "batch normalisation behind 2"


def test_the_default_is_the_middle_layer() -> None:
    net, x = mlp(depth=5, width=30), normal(30, 5)  # seven layers, of which the last gives the output
    assert normalise_at(net, x).changed.endswith("behind 6")


def test_where_signals_have_vanished_in_the_middle_an_earlier_layer_is_normalised() -> None:
    net, x = mlp(depth=5, width=30), normal(30, 5)
    with torch.no_grad():
        net[4].weight.mul_(1e-4)
    assert normalise_at(net, x).changed.endswith("behind 2")


def test_layers_keep_their_names_and_where_may_name_one() -> None:
    net, x = blocks(), normal(30, 5)
    treated = normalise_at(net, x, where=["2.two"]).model
    assert [name for name in treated.state_dict() if "added_norm" not in name] == list(net.state_dict())
    assert isinstance(treated[2].two, nn.Linear)


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.idle = nn.Linear(5, 5), nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.one(torch.tanh(self.one(x)))


@pytest.mark.parametrize(
    ("net", "batch", "settings", "words"),
    [
        (drawn(Twice()), normal(7, 5), {"layer": "one"}, "layer 'one' is called 2 times"),
        (drawn(Twice()), normal(7, 5), {"layer": "idle"}, "layer 'idle' is not called on this batch"),
        (drawn(Twice()), normal(7, 5), {}, "has no layer up to its middle that is called once"),
        (
            mlp(),
            normal(4, 3, 5),
            {"layer": "2", "kind": "batch"},
            r"'2' gives \(4, 3, 6\), .* use kind=\"layer\"",
        ),
        (mlp(), normal(1, 5), {"layer": "2"}, "a batch of one sample has no variance"),
        (mlp(), normal(7, 5), {"layer": "1"}, "layer '1' is a Tanh without units"),
        (mlp(), normal(7, 5), {"layer": "2", "where": ["2"]}, "both layer and where were given"),
        (mlp(), normal(7, 5), {"kind": "group"}, "kind 'group' is unknown; choose one of auto, batch, layer"),
    ],
)
def test_what_cannot_be_normalised_is_refused(
    net: nn.Module, batch: Tensor, settings: dict, words: str
) -> None:
    with pytest.raises(Refused, match=words):
        normalise_at(net, batch, **settings)


def test_one_sample_has_no_layer_whose_outputs_differ() -> None:
    with pytest.raises(
        Refused, match=r"has no layer up to its middle .* whose outputs differ between samples"
    ):
        normalise_at(mlp(), normal(1, 5))
