"""Every remedy of the catalogue, on networks of many kinds: a changed copy or one sentence."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from networks_to_treat import Functional, blocks, convnet, drawn, mlp, normal
from torch import Tensor, nn

import skiplab as sl
from oracles.stock_models import stock_model
from skiplab.checks import Refused
from skiplab.remedies import REMEDIES, Treated
from skiplab.studies import CATALOGUE

IDS = (
    *("skips-identity", "skips-orthogonal", "rescale-branches", "hardt-ma", "looks-linear"),
    *("orthogonal-weights", "gain", "normalise-one-layer", "bias-regularisation"),
)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells, self.head = nn.LSTM(5, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cells(x)[0][:, -1])


NETWORKS: dict[str, Callable[[], tuple[nn.Module, Any]]] = {
    "tanh": lambda: (mlp(depth=30, width=8), normal(9, 5)),
    "functional": lambda: (drawn(Functional()), normal(9, 5)),
    "convolutions": lambda: (convnet(depth=50), normal(2, 2, 8, 8)),
    "residual": lambda: (blocks(), normal(9, 5)),
    "recurrent": lambda: (drawn(Recurrent()), normal(3, 6, 5)),
    "float": lambda: (mlp(act=nn.ReLU).float().eval(), (normal(9, 5).float(), torch.arange(9) % 3)),
}
# Which refuse, by words of the refusal; all others are applied.
NO_BRANCH = "has no residual addition"
NO_RELU = "has no ReLU"
REFUSALS = {
    **{(name, remedy): NO_BRANCH for name in NETWORKS for remedy in ("rescale-branches", "hardt-ma")},
    **{(name, "looks-linear"): NO_RELU for name in ("tanh", "residual", "recurrent")},
    **{("recurrent", f"skips-{kind}"): "cells .LSTM., whose units" for kind in ("identity", "orthogonal")},
    **{("residual", f"skips-{kind}"): "have skips already" for kind in ("identity", "orthogonal")},
    ("recurrent", "normalise-one-layer"): "name the layer to normalise",
    ("recurrent", "bias-regularisation"): "no weight layer with biases before its last",
}
del REFUSALS["residual", "rescale-branches"], REFUSALS["residual", "hardt-ma"]


def test_the_catalogue_has_the_remedies_of_the_papers() -> None:
    assert tuple(REMEDIES) == IDS
    for id, remedy in REMEDIES.items():
        assert remedy.id == id
        assert remedy.study.startswith(f"{remedy.paper}/")
        assert CATALOGUE[remedy.study].id == remedy.study  # which refuses what there is not
    assert sl.remedies.REMEDIES is REMEDIES


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("remedy", IDS)
def test_a_remedy_returns_a_changed_copy_or_refuses(remedy: str, network: str) -> None:
    net, batch = NETWORKS[network]()
    before = copy.deepcopy(net.state_dict())
    modes = [part.training for part in net.modules()]
    classes = [type(part) for part in net.modules()]
    random_state = torch.get_rng_state()
    if (network, remedy) in REFUSALS:
        with pytest.raises(Refused, match=REFUSALS[network, remedy]):
            REMEDIES[remedy].apply(net, batch)
    else:
        treated = REMEDIES[remedy].apply(net, batch, seed=1)
        _check(net, treated, batch)
        again = REMEDIES[remedy].apply(net, batch, seed=1)
        for one, other in zip(treated.model.parameters(), again.model.parameters(), strict=True):
            assert torch.equal(one, other)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert [part.training for part in net.modules()] == modes
    assert [type(part) for part in net.modules()] == classes
    assert torch.equal(torch.get_rng_state(), random_state)


def _check(net: nn.Module, treated: Treated, batch: Any) -> None:
    x = batch[0] if isinstance(batch, tuple) else batch
    own = {id(value) for value in (*net.parameters(), *net.buffers())}
    mine = [*treated.model.parameters(), *treated.model.buffers()]
    assert not own & {id(value) for value in mine}
    dtype = next(net.parameters()).dtype
    assert {value.dtype for value in mine if value.is_floating_point()} == {dtype}
    assert treated.model.training == net.training
    with torch.random.fork_rng():
        output = treated.model(x)
        loss = output.square().mean()
        if treated.penalty is not None:
            loss = loss + treated.penalty(treated.model)
        loss.backward()
    assert output.dtype == dtype
    assert output.shape == (len(x), 3)
    trained = [value for value in treated.model.parameters() if value.grad is not None]
    assert len(trained) == len(list(treated.model.parameters()))
    assert all(bool(value.grad.isfinite().all()) for value in trained)  # type: ignore[union-attr]
    assert treated.changed
    assert repr(treated) == f"{type(treated.model).__name__} treated: {treated.changed}"


STOCK = {
    **dict.fromkeys(
        ("torchvision:resnet18", "torchvision:squeezenet1_1", "timm:convnext_atto"), (2, 3, 64, 64)
    ),
    **dict.fromkeys(("timm:test_resnet", "timm:test_vit"), (2, 3, 160, 160)),
    **dict.fromkeys(("transformers:bert", "transformers:gpt2", "transformers:llama", "transformers:t5"), ()),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STOCK)
@pytest.mark.parametrize("remedy", IDS)
def test_stock_models_are_treated_or_refused_in_a_sentence(remedy: str, name: str) -> None:
    net = stock_model(name).eval()
    shape = STOCK[name]
    words = {"input_ids": torch.arange(14).reshape(2, 7)}
    batch: Any = normal(*shape).float() if shape else words
    if name == "transformers:t5":
        batch["labels"] = words["input_ids"]
    try:
        treated = REMEDIES[remedy].apply(net, batch)
    except Refused as problem:
        sentence = str(problem)
    else:
        sentence = ""
    if sentence:
        assert re.fullmatch(r"[^\n]+[.?]", sentence)
        return
    with torch.no_grad():
        output = treated.model(batch) if shape else treated.model(**batch)
    logits = output if isinstance(output, Tensor) else output.logits
    assert bool(logits.isfinite().all())


@pytest.mark.slow
@pytest.mark.parametrize("name", STOCK)
def test_branches_of_stock_models_are_all_scaled_or_there_are_none(name: str) -> None:
    net = stock_model(name).eval()
    shape = STOCK[name]
    batch: Any = normal(*shape).float() if shape else {"input_ids": torch.arange(14).reshape(2, 7)}
    if name == "transformers:t5":
        batch["labels"] = batch["input_ids"]
    if name == "torchvision:squeezenet1_1":
        with pytest.raises(Refused, match="has no residual addition"):
            REMEDIES["rescale-branches"].apply(net, batch)
        return
    assert "branches of all" in REMEDIES["rescale-branches"].apply(net, batch).changed
