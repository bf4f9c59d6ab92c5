"""Stock models of torchvision, timm and transformers: residual additions are found, parts add up to the output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from skiplab.measurements.path_depth import path_depth
from skiplab.measurements.path_depth.formal import Polynomial
from skiplab.measurements.path_depth.parts import PathFollower, split_output
from skiplab.randomness import torch_generator
from skiplab.subjects.residual_blocks import ResidualBlocks, residual_blocks

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def torchvision_models() -> Any:
    """torchvision.models, or no test."""
    return pytest.importorskip("torchvision.models")


def seeded(build: Callable[[], nn.Module]) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = build().double().eval()
        for part in net.modules():
            if isinstance(part, nn.BatchNorm2d):  # statistics that no batch has
                nn.init.normal_(part.running_mean, std=0.1)
                nn.init.uniform_(part.running_var, 0.5, 1.5)
                if not bool(part.weight.any()):  # branches that start at 0 have no paths to split
                    nn.init.ones_(part.weight)
            if isinstance(part, nn.Linear) and not bool(part.weight.any()):
                nn.init.normal_(part.weight, std=0.1)  # heads that start at 0 have no output to split
    return net


def adds_up(net: nn.Module, inputs: Any, rounding: float = 1e-12) -> ResidualBlocks:
    """Whether parts sum to the output to rounding; returns the blocks."""
    found = residual_blocks(net, inputs)
    branches = {block.call: block.branch for block in found.blocks}
    follower = PathFollower(Polynomial(len(found.blocks)), branches, (), live_means=False)

    def call(model: nn.Module) -> Any:
        return model(**inputs) if isinstance(inputs, dict) else model(inputs)

    with torch.no_grad():
        value, parts = split_output(follower, net, call)
    assert (parts.sum(0) - value).abs().max() <= rounding * parts.abs().sum(0).max()
    assert bool((parts.flatten(1).abs().amax(1) > 0).all())
    return found


def images(side: int, count: int = 2) -> Tensor:
    return torch.randn(count, 3, side, side, generator=torch_generator("images"), dtype=torch.float64)


@pytest.mark.parametrize(
    ("name", "side", "identity", "projection"),
    [
        ("resnet18", 64, 5, 3),
        ("mobilenet_v2", 64, 10, 0),
        ("efficientnet_b0", 64, 9, 0),
        ("regnet_y_400mf", 64, 12, 4),
        ("convnext_tiny", 64, 18, 0),
    ],
)
def test_torchvision(torchvision_models: Any, name: str, side: int, identity: int, projection: int) -> None:
    net = seeded(lambda: getattr(torchvision_models, name)(weights=None))
    found = adds_up(net, images(side))
    kinds = [block.shortcut for block in found.blocks]
    assert (kinds.count("identity"), kinds.count("projection"), len(kinds)) == (
        identity,
        projection,
        identity + projection,
    )


def test_resnet18_as_a_user_measures_it(torchvision_models: Any) -> None:
    net = seeded(lambda: torchvision_models.resnet18(weights=None, num_classes=10))
    found = path_depth(net, (images(48, 3), torch.tensor([0, 1, 2])), criterion=nn.CrossEntropyLoss())
    assert found.layers == tuple(str(r) for r in range(9))
    assert found.blocks.names == tuple(f"layer{k}.{j}" for k in range(1, 5) for j in range(2))
    assert found.shares.value.sum().item() == pytest.approx(1)
    assert 0 < found.depth.value.item() < 8
    assert found.gradient is not None


def test_a_torchvision_transformer_with_its_own_attention(torchvision_models: Any) -> None:
    kind = torchvision_models.vision_transformer.VisionTransformer
    net = seeded(
        lambda: kind(image_size=16, patch_size=8, num_layers=2, num_heads=2, hidden_dim=8, mlp_dim=16)
    )
    assert len(adds_up(net, images(16)).blocks) == 4


def test_densenet_has_no_residual_addition(torchvision_models: Any) -> None:
    assert residual_blocks(torchvision_models.densenet121(weights=None), images(32).float()).blocks == ()


@pytest.mark.parametrize(
    ("name", "options", "blocks"),
    [
        ("resnet26d", {}, 8),
        ("vit_tiny_patch16_224", {"img_size": 32, "depth": 3}, 6),
        ("resnetv2_50", {}, 16),
        ("convnext_atto", {}, 12),
        ("mixer_s16_224", {"img_size": 32}, 16),
    ],
)
def test_timm(name: str, options: dict[str, Any], blocks: int) -> None:
    timm = pytest.importorskip("timm")
    net = seeded(lambda: timm.create_model(name, **options))
    assert len(adds_up(net, images(32)).blocks) == blocks


@pytest.mark.parametrize("kind", ["GPT2", "Bert", "Llama"])
def test_transformers(kind: str) -> None:
    transformers = pytest.importorskip("transformers")
    sizes: dict[str, Any] = {"vocab_size": 40}
    if kind == "GPT2":
        sizes |= {"n_layer": 2, "n_embd": 8, "n_head": 2, "n_positions": 16}
    else:
        sizes |= {"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16}
    head = {"GPT2": "GPT2LMHeadModel", "Bert": "BertForMaskedLM", "Llama": "LlamaForCausalLM"}[kind]
    settings = getattr(transformers, f"{kind}Config")(**sizes)
    settings.use_cache = False
    net = seeded(lambda: getattr(transformers, head)(settings))
    tokens = torch.randint(40, (2, 6), generator=torch_generator("tokens"))
    rounding = 1e-6 if kind == "Llama" else 1e-12  # its RMSNorm computes in float32, whatever it is given
    assert len(adds_up(net, {"input_ids": tokens}, rounding).blocks) == 4
