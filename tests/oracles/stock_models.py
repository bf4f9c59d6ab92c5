"""Models of torchvision, timm and transformers as their libraries build them, by a name such as ``timm:test_vit``.

The language models are small configurations of their families: their structure does not depend on the width.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from torch import nn

_SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 64}
_TEXT = {**_SMALL, "vocab_size": 99}
_PAIR = {
    "d_model": 32,
    "vocab_size": 99,
    "pad_token_id": 0,
    **{
        f"{side}_{key}": value
        for side in ("encoder", "decoder")
        for key, value in (("layers", 2), ("ffn_dim", 64))
    },
    **{f"{side}_attention_heads": 2 for side in ("encoder", "decoder")},
}
_IMAGES = {**_SMALL, "image_size": 32, "patch_size": 8}

# By name: the class of the model, its configuration's class, and the configuration.
_CONFIGURED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "albert": ("AlbertModel", "AlbertConfig", {**_TEXT, "embedding_size": 16}),
    "bart": ("BartForConditionalGeneration", "BartConfig", _PAIR),
    "bert": ("BertForSequenceClassification", "BertConfig", {**_TEXT, "max_position_embeddings": 16}),
    "clip": ("CLIPModel", "CLIPConfig", {"text_config": _TEXT, "vision_config": _IMAGES}),
    "convnext": (
        "ConvNextForImageClassification",
        "ConvNextConfig",
        {"hidden_sizes": [8, 16], "depths": [1, 3], "num_stages": 2},
    ),
    "distilbert": (
        "DistilBertForSequenceClassification",
        "DistilBertConfig",
        {"dim": 32, "n_layers": 3, "n_heads": 2, "hidden_dim": 64, "vocab_size": 99},
    ),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {"n_embd": 32, "n_layer": 3, "n_head": 2, "vocab_size": 99}),
    "llama": ("LlamaForCausalLM", "LlamaConfig", {**_TEXT, "num_key_value_heads": 2}),
    "mamba": (
        "MambaForCausalLM",
        "MambaConfig",
        {"hidden_size": 32, "num_hidden_layers": 3, "vocab_size": 99, "state_size": 4},
    ),
    "opt": (
        "OPTForCausalLM",
        "OPTConfig",
        {
            "hidden_size": 32,
            "num_hidden_layers": 3,
            "num_attention_heads": 2,
            "ffn_dim": 64,
            "vocab_size": 99,
            "word_embed_proj_dim": 32,
        },
    ),
    "resnet": (
        "ResNetForImageClassification",
        "ResNetConfig",
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 2], "layer_type": "basic"},
    ),
    "segformer": (
        "SegformerForImageClassification",
        "SegformerConfig",
        {"depths": [1, 2, 1, 1], "hidden_sizes": [8, 8, 16, 16], "num_attention_heads": [1, 1, 2, 2]},
    ),
    "swin": (
        "SwinForImageClassification",
        "SwinConfig",
        {
            "image_size": 32,
            "patch_size": 4,
            "embed_dim": 16,
            "depths": [1, 2],
            "num_heads": [2, 2],
            "window_size": 4,
        },
    ),
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {
            "d_model": 32,
            "d_kv": 16,
            "d_ff": 64,
            "num_layers": 3,
            "num_heads": 2,
            "decoder_start_token_id": 0,
            "vocab_size": 99,
        },
    ),
    "vit": ("ViTForImageClassification", "ViTConfig", _IMAGES),
    "wav2vec2": (
        "Wav2Vec2Model",
        "Wav2Vec2Config",
        {
            **_SMALL,
            "vocab_size": 32,
            "num_feat_extract_layers": 2,
            "conv_dim": (8, 8),
            "conv_kernel": (10, 3),
            "conv_stride": (5, 2),
        },
    ),
    "whisper": ("WhisperForConditionalGeneration", "WhisperConfig", _PAIR),
}


def stock_model(name: str) -> nn.Module:
    """Build ``library:model`` with random weights; skip the test where the library is not installed."""
    library, _, model = name.partition(":")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, on import and on building: not what is tested
        return _BUILDERS[library](model)


def _torchvision(name: str) -> nn.Module:
    models = pytest.importorskip("torchvision").models
    keywords = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    return models.get_model(name, **keywords)


def _timm(name: str) -> nn.Module:
    return pytest.importorskip("timm").create_model(name)


def _transformers(name: str) -> nn.Module:
    library = pytest.importorskip("transformers")
    model, config, settings = _CONFIGURED[name]
    return getattr(library, model)(getattr(library, config)(**settings))


_BUILDERS: dict[str, Callable[[str], nn.Module]] = {
    "torchvision": _torchvision,
    "timm": _timm,
    "transformers": _transformers,
}
