"""Residual additions in networks of ours and of anyone: what is found, what is not, and why."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab.architectures import ARCHITECTURES, examples
from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject
from skiplab.subjects.residual_blocks import residual_blocks

X = torch.randn(4, 6, generator=torch_generator("inputs"))


def ours(name: str) -> nn.Module:
    return examples()[name](torch_generator(0))


@pytest.mark.parametrize(
    ("name", "shortcuts"),
    [
        ("plain", {}),
        ("residual", {f"hidden.{k}": "identity" for k in range(1, 5)}),
        ("residual-orthogonal", {f"hidden.{k}": "resized" for k in range(1, 5)}),
        ("block-toy-bn", {f"blocks.{k}": "identity" for k in range(1, 5)}),
        (
            "resnet",
            {"blocks.0": "identity", "blocks.1": "identity", "blocks.2": "resized", "blocks.3": "identity"},
        ),
        ("resnet-plain", {}),
        ("rescaled-residual-bn", {f"blocks.{k}": "identity" for k in range(5)}),
        ("highway", {f"blocks.{k}": "gated" for k in range(5)}),
    ],
)
def test_our_networks(name: str, shortcuts: dict[str, str]) -> None:
    x = torch.randn(4, *ARCHITECTURES[name].input_shape, generator=torch_generator("x"))
    found = residual_blocks(ours(name), x)
    # A skip that is scaled by a constant is the identity in all but its size.
    seen = {block.name: block.shortcut for block in found.blocks}
    expected = {n: ("resized" if name.startswith("rescaled") else kind) for n, kind in shortcuts.items()}
    assert seen == expected


class Block(nn.Module):
    """A bottleneck with a projection where asked for, added in place, and an unused second head."""

    def __init__(self, project: bool) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)
        self.down = nn.Linear(6, 6) if project else None

    def forward(self, x: Tensor) -> Tensor:
        out = self.second(F.relu(self.first(x)))
        out += x if self.down is None else self.down(x)
        return F.relu(out)


class Users(nn.Module):
    """A user's network: a position added, two blocks, a sum of two branches, a long skip, a dense concatenation."""

    def __init__(self) -> None:
        super().__init__()
        self.position = nn.Parameter(torch.zeros(6))
        self.blocks = nn.ModuleList([Block(True), Block(False)])
        self.left, self.right, self.mix = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(12, 6)

    def forward(self, x: Tensor) -> Tensor:
        x = start = x + self.position
        for block in self.blocks:
            x = block(x)
        x = self.left(x) + self.right(x)
        x = x + start
        x = x + x.new_zeros(6)
        return self.mix(torch.cat([x, start], 1))


def test_a_users_network() -> None:
    found = residual_blocks(Users(), X)
    assert [(block.name, block.shortcut) for block in found.blocks] == [
        ("blocks.0", "projection"),
        ("blocks.1", "identity"),
        ("right", "identity"),  # the long skip, named after its branch's last module
    ]
    assert found.blocks[0].layers == ("blocks.0.first", "blocks.0.second")
    assert [(other.name, other.reason) for other in found.others] == [
        ("left", "both sides have 1 weight layers"),
    ]
    text = repr(found)
    assert text.startswith("3 residual additions in Users")
    assert "1 projection: blocks.0" in text
    assert "not counted, 1: both sides have 1 weight layers: left" in text


class Repeated(nn.Module):
    """Attention-like and MLP-like additions in one module, called three times."""

    def __init__(self) -> None:
        super().__init__()
        self.mixer, self.mlp = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mixer(x)
        return x + torch.tanh(self.mlp(x))


def test_several_additions_of_one_module_are_numbered() -> None:
    one = Repeated()
    found = residual_blocks(nn.Sequential(one, one), X)
    assert found.names == ("0", "0#2", "0#3", "0#4")
    assert {block.branch for block in found.blocks} == {1}


def test_long_lists_are_cut_short() -> None:
    found = residual_blocks(nn.Sequential(*[Repeated() for _ in range(4)]), X)
    assert repr(found) == "8 residual additions in Sequential\n  8 identity: 0, 0#2, 1, 1#2, … 3#2"


def test_tokens_begin_at_their_embedding() -> None:
    net = nn.Sequential(nn.Embedding(5, 6), Repeated())
    assert residual_blocks(net, torch.tensor([[1, 2], [0, 4]])).names == ("1", "1#2")


def test_ensembles_subjects_with_losses_and_batches_with_labels() -> None:
    nets = [ours("residual") for _ in range(2)]
    labels = torch.zeros(4, dtype=torch.long)
    assert len(residual_blocks(Ensemble.of(nets), (X, labels)).blocks) == 4

    def loss_fn(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return F.cross_entropy(model(batch["image"]), batch["class"])

    subject = Subject.of(nets[0], loss_fn=loss_fn)
    assert len(residual_blocks(subject, {"image": X, "class": labels}).blocks) == 4


def test_the_network_is_left_as_it_was() -> None:
    net = ours("block-toy-bn").train()
    state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    residual_blocks(net, X)
    assert all(torch.equal(tensor, state[name]) for name, tensor in net.state_dict().items())
    assert all(part.training for part in net.modules())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in net.modules())
