"""Eighteen models of torchvision, timm and transformers through every measurement: answered or refused in a sentence.

What is asked for is small (two samples, few layers, three Lanczos steps on the last parameters): whether each
measurement copes with each model is what is tested here, not what it finds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import skiplab as sl
from oracles.stock_models import stock_model
from skiplab.checks import Refused
from skiplab.linear_algebra import memory
from skiplab.measurements.result import Result
from skiplab.subjects.blocks import block_names
from skiplab.subjects.weight_layers import weight_layers

pytestmark = pytest.mark.slow

PIXELS = {
    **dict.fromkeys(("resnet18", "resnet50", "densenet121", "mobilenet_v3_small", "vgg11"), 64),
    **dict.fromkeys(("resnetv2_50", "convnext_atto", "efficientnet_b0"), 64),
    **dict.fromkeys(("vit_b_16", "vit_tiny_patch16_224", "mixer_s32_224"), 224),
    "swin_tiny_patch4_window7_224": 224,
    "test_vit": 160,
    "test_resnet": 160,
}
MODELS = {
    "torchvision": ("resnet18", "resnet50", "densenet121", "mobilenet_v3_small", "vit_b_16", "vgg11"),
    "timm": (
        *("resnetv2_50", "convnext_atto", "efficientnet_b0", "vit_tiny_patch16_224", "mixer_s32_224"),
        *("swin_tiny_patch4_window7_224", "test_vit", "test_resnet"),
    ),
    "transformers": ("bert", "gpt2", "llama", "t5"),
}
NAMES = [f"{library}:{model}" for library, models in MODELS.items() for model in models]
# Which cannot be answered, by the words of the refusal; all others must be.
WORDS_HAVE_NO_GRADIENT = "the input is torch.int64, which has no gradient"
ONE_NUMBER_PER_CHANNEL = "flows end in one number per sample and channel"
REFUSALS = {
    **{
        (f"transformers:{model}", "gradient_shattering"): WORDS_HAVE_NO_GRADIENT
        for model in MODELS["transformers"]
    },
    **{
        (f"transformers:{m}", "dominant_gradient_flow"): ONE_NUMBER_PER_CHANNEL
        for m in ("gpt2", "llama", "t5")
    },
    ("timm:resnetv2_50", "dominant_gradient_flow"): "the network has no linear layer; name in final",
    (
        "timm:swin_tiny_patch4_window7_224",
        "layer_cushions",
    ): "for 2 samples; choose one with a sample per row",
    **{
        (f"torchvision:{model}", "branch_ratios"): "no residual addition was found"
        for model in ("densenet121", "vgg11")
    },
    ("torchvision:densenet121", "interlayer_cushions"): "a layer is called with list, not with a tensor",
    ("torchvision:mobilenet_v3_small", "interlayer_cushions"): "has no second derivative",
}


def own_loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    loss: Tensor = model(**batch).loss
    return loss


def calls(model: nn.Module, name: str) -> dict[str, Callable[[], Result]]:
    """Every measurement of the model on two samples."""
    stream = torch.Generator().manual_seed(0)
    library, _, kind = name.partition(":")
    batch: Any
    if library == "transformers":
        words = torch.randint(5, 90, (2, 8), generator=stream)
        batch = {"input_ids": words, "labels": torch.arange(2) if kind == "bert" else words.clone()}
        loss: dict[str, Any] = {"loss_fn": own_loss}
    else:
        size = PIXELS[kind]
        batch = (torch.randn(2, 3, size, size, generator=stream), torch.arange(2))
        loss = {"criterion": nn.CrossEntropyLoss()}
    called = {key: value for key, value in loss.items() if key == "loss_fn"}
    blocks, weights = list(block_names(model)), list(weight_layers(model))
    last = [key for key, tensor in model.named_parameters() if tensor.numel() < 200_000][-2:]
    few = sl.Lanczos(probes=1, steps=3, max_steps=3)
    return {
        "activation_patterns": lambda: sl.activation_patterns(model, batch),
        "branch_ratios": lambda: sl.branch_ratios(model, batch, **called),
        "dominant_gradient_flow": lambda: sl.dominant_gradient_flow(
            model, batch, layers=blocks[-2:-1], **loss
        ),
        "gradient_norms": lambda: sl.gradient_norms(model, batch, **loss),
        "gradient_shattering": lambda: sl.gradient_shattering(model, batch),
        "hessian_spectrum": lambda: sl.hessian_spectrum(model, batch, method=few, layers=last, **loss),
        "interlayer_cushions": lambda: sl.interlayer_cushions(
            model, batch, probes=1, layers=blocks[:1], **called
        ),
        "layer_cushions": lambda: sl.layer_cushions(model, batch, **called),
        "layer_signals": lambda: sl.layer_signals(model, batch, **loss),
        "permutation_symmetry": lambda: sl.permutation_symmetry(model, batch, draws=2, **loss),
        "rescaling_symmetry": lambda: sl.rescaling_symmetry(model, batch, draws=2, **loss),
        "saturation": lambda: sl.saturation(model, batch, **called),
        "singularities": lambda: sl.singularities(model, batch, layers=[weights[0], weights[-1]], **loss),
        "weight_noise": lambda: sl.weight_noise(
            model, batch, draws=1, layers=[weights[0], weights[-1]], **loss
        ),
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_stock_model_is_measured_or_refused_in_a_sentence(name: str) -> None:
    model = stock_model(name).eval()
    for measurement, call in calls(model, name).items():
        if (name, measurement) in REFUSALS:
            with pytest.raises(Refused, match=REFUSALS[name, measurement]) as refusal:
                call()
            assert "\n" not in str(refusal.value)
            continue
        found = call()
        assert len(repr(found).splitlines()) <= 25
        assert bool(next(iter(found.estimates.values())).value.isfinite().any()), measurement


# What takes the place of the ReLUs, or the words of the refusal.
NO_RELU = "has no ReLU"
LOOKS_LINEAR = {
    **dict.fromkeys(("resnet18", "resnet50", "densenet121", "mobilenet_v3_small"), "PReLU"),
    **dict.fromkeys(("resnetv2_50", "test_resnet"), "PReLU"),
    "vgg11": "CReLU",
    "t5": "cannot be traced",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_stock_model_looks_linear_or_is_told_why_not(name: str) -> None:
    expected = LOOKS_LINEAR.get(name.partition(":")[2], NO_RELU)
    model = stock_model(name).eval()
    if not expected.endswith("ReLU") or expected == NO_RELU:
        with pytest.raises(Refused, match=expected) as refusal:
            sl.looks_linear(model, orthogonal=False)
        assert "\n" not in str(refusal.value)
        return
    found = {type(part).__name__ for part in sl.looks_linear(model, orthogonal=False).modules()}
    assert found & {"CReLU", "PReLU"} == {expected}


def test_a_large_networks_hessian_gets_the_steps_that_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda device: 2_400_000_000)  # of which half is used
    batch = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0)), torch.arange(2)
    found = sl.hessian_spectrum(stock_model("torchvision:resnet18"), batch, criterion=nn.CrossEntropyLoss())
    assert (found.dimension, found.steps, found.nodes.shape[1]) == (11_689_512, 12, 1)
    assert "at most 12 steps instead of 320, since more do not fit into 1.2 GB of memory" in repr(found)
