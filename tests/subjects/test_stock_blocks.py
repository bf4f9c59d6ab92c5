"""The blocks of 64 models of torchvision, timm and transformers are those that a person would name.

The names were written by hand from the models' printed structure. ``WRITTEN_WITH`` was looked at while the search for
blocks was written; the names of ``HELD_OUT`` were committed before the search was run on any of its models.
"""

from __future__ import annotations

import re

import pytest

from oracles.stock_models import stock_model
from skiplab.subjects.blocks import block_names

pytestmark = pytest.mark.slow

# "layer1.0..2" stands for layer1.0, layer1.1 and layer1.2.
WRITTEN_WITH = {
    "torchvision:resnet18": "layer1.0..1 layer2.0..1 layer3.0..1 layer4.0..1",
    "torchvision:resnet50": "layer1.0..2 layer2.0..3 layer3.0..5 layer4.0..2",
    "torchvision:densenet121": (
        "features.denseblock1.denselayer1..6 features.denseblock2.denselayer1..12 "
        "features.denseblock3.denselayer1..24 features.denseblock4.denselayer1..16"
    ),
    "torchvision:mobilenet_v3_small": "features.1..11",
    "torchvision:vit_b_16": "encoder.layers.encoder_layer_0..11",
    "torchvision:vgg11": (
        "features.0 features.3 features.6 features.8 features.11 features.13 features.16 features.18 "
        "classifier.0 classifier.3 classifier.6"
    ),
    "torchvision:googlenet": (
        "inception3a inception3b inception4a inception4b inception4c inception4d inception4e inception5a "
        "inception5b"
    ),
    "torchvision:squeezenet1_1": "features.3 features.4 features.6 features.7 features.9..12",
    "timm:resnetv2_50": "stages.0.blocks.0..2 stages.1.blocks.0..3 stages.2.blocks.0..5 stages.3.blocks.0..2",
    "timm:convnext_atto": "stages.0.blocks.0..1 stages.1.blocks.0..1 stages.2.blocks.0..5 stages.3.blocks.0..1",
    "timm:efficientnet_b0": (
        "blocks.0.0 blocks.1.0..1 blocks.2.0..1 blocks.3.0..2 blocks.4.0..2 blocks.5.0..3 blocks.6.0"
    ),
    "timm:vit_tiny_patch16_224": "blocks.0..11",
    "timm:mixer_s32_224": "blocks.0..7",
    "timm:swin_tiny_patch4_window7_224": (
        "layers.0.blocks.0..1 layers.1.blocks.0..1 layers.2.blocks.0..5 layers.3.blocks.0..1"
    ),
    "timm:test_vit": "blocks.0..5",
    "timm:test_resnet": "layer1.0 layer2.0 layer3.0 layer4.0",
    "timm:regnety_002": "s1.b1 s2.b1 s3.b1..4 s4.b1..7",
    "transformers:bert": "bert.encoder.layer.0..2",
    "transformers:gpt2": "transformer.h.0..2",
    "transformers:llama": "model.layers.0..2",
    "transformers:t5": "encoder.block.0..2 decoder.block.0..2",
    "transformers:convnext": "convnext.encoder.stages.0.layers.0 convnext.encoder.stages.1.layers.0..2",
}

HELD_OUT = {
    "torchvision:alexnet": (
        "features.0 features.3 features.6 features.8 features.10 classifier.1 classifier.4 classifier.6"
    ),
    "torchvision:inception_v3": (
        "Mixed_5b Mixed_5c Mixed_5d Mixed_6a Mixed_6b Mixed_6c Mixed_6d Mixed_6e Mixed_7a Mixed_7b Mixed_7c"
    ),
    "torchvision:mnasnet0_5": (
        "layers.8.0..2 layers.9.0..2 layers.10.0..2 layers.11.0..1 layers.12.0..3 layers.13.0"
    ),
    "torchvision:shufflenet_v2_x0_5": "stage2.0..3 stage3.0..7 stage4.0..3",
    "torchvision:regnet_y_400mf": (
        "trunk_output.block1.block1-0 trunk_output.block2.block2-0..2 trunk_output.block3.block3-0..5 "
        "trunk_output.block4.block4-0..5"
    ),
    "torchvision:swin_t": "features.1.0..1 features.3.0..1 features.5.0..5 features.7.0..1",
    "torchvision:convnext_tiny": "features.1.0..2 features.3.0..2 features.5.0..8 features.7.0..2",
    "torchvision:maxvit_t": (
        "blocks.0.layers.0..1 blocks.1.layers.0..1 blocks.2.layers.0..4 blocks.3.layers.0..1"
    ),
    "torchvision:mobilenet_v2": "features.1..17",
    "torchvision:efficientnet_v2_s": (
        "features.1.0..1 features.2.0..3 features.3.0..3 features.4.0..5 features.5.0..8 features.6.0..14"
    ),
    "timm:xception41": "blocks.0..12",
    "timm:inception_v4": "features.6..21",
    "timm:inception_resnet_v2": (
        "mixed_5b repeat.0..9 mixed_6a repeat_1.0..19 mixed_7a repeat_2.0..8 block8"
    ),
    "timm:mobilenetv3_large_100": (
        "blocks.0.0 blocks.1.0..1 blocks.2.0..2 blocks.3.0..3 blocks.4.0..1 blocks.5.0..2 blocks.6.0"
    ),
    "timm:tf_efficientnetv2_b0": (
        "blocks.0.0 blocks.1.0..1 blocks.2.0..1 blocks.3.0..2 blocks.4.0..4 blocks.5.0..7"
    ),
    "timm:mobilevit_xxs": "stages.0.0 stages.1.0..2 stages.2.0..1 stages.3.0..1 stages.4.0..1",
    "timm:convmixer_768_32": "blocks.0..31",
    "timm:levit_128s": "stages.0.blocks.0..1 stages.1.blocks.0..2 stages.2.blocks.0..3",
    "timm:cait_xxs24_224": "blocks.0..23 blocks_token_only.0..1",
    "timm:dm_nfnet_f0": "stages.0.0 stages.1.0..1 stages.2.0..5 stages.3.0..2",
    "timm:ese_vovnet19b_dw": "stages.0.blocks.0 stages.1.blocks.0 stages.2.blocks.0 stages.3.blocks.0",
    "timm:cspresnet50": "stages.0.blocks.0..2 stages.1.blocks.0..2 stages.2.blocks.0..4 stages.3.blocks.0..1",
    "timm:pvt_v2_b0": "stages.0.blocks.0..1 stages.1.blocks.0..1 stages.2.blocks.0..1 stages.3.blocks.0..1",
    "timm:ghostnet_100": (
        "blocks.0.0 blocks.1.0 blocks.2.0 blocks.3.0 blocks.4.0 blocks.5.0 blocks.6.0..4 blocks.7.0 "
        "blocks.8.0..3 blocks.9.0"
    ),
    "timm:poolformer_s12": "stages.0.blocks.0..1 stages.1.blocks.0..1 stages.2.blocks.0..5 stages.3.blocks.0..1",
    "timm:rexnet_100": "features.0..15",
    "timm:resmlp_12_224": "blocks.0..11",
    "timm:coatnet_0_rw_224": (
        "stages.0.blocks.0..1 stages.1.blocks.0..2 stages.2.blocks.0..6 stages.3.blocks.0..1"
    ),
    "timm:test_convnext": "stages.0.blocks.0 stages.1.blocks.0..1 stages.2.blocks.0..3 stages.3.blocks.0..1",
    "timm:vgg11_bn": (
        "features.0 features.4 features.8 features.11 features.15 features.18 features.22 features.25 "
        "pre_logits.fc1 pre_logits.fc2 head.fc"
    ),
    "transformers:distilbert": "distilbert.transformer.layer.0..2",
    "transformers:albert": "encoder.albert_layer_groups.0.albert_layers.0",
    "transformers:bart": "model.encoder.layers.0..1 model.decoder.layers.0..1",
    "transformers:opt": "model.decoder.layers.0..2",
    "transformers:vit": "vit.layers.0..2",
    "transformers:swin": "swin.encoder.layers.0.blocks.0 swin.encoder.layers.1.blocks.0..1",
    "transformers:resnet": "resnet.encoder.stages.0.layers.0 resnet.encoder.stages.1.layers.0..1",
    "transformers:whisper": "model.encoder.layers.0..1 model.decoder.layers.0..1",
    "transformers:clip": "text_model.encoder.layers.0..2 vision_model.encoder.layers.0..2",
    "transformers:mamba": "backbone.layers.0..2",
    "transformers:wav2vec2": "encoder.layers.0..2",
    "transformers:segformer": (
        "segformer.stages.0.blocks.0 segformer.stages.1.blocks.0..1 segformer.stages.2.blocks.0 "
        "segformer.stages.3.blocks.0"
    ),
}


def _spread(words: str) -> tuple[str, ...]:
    names = []
    for word in words.split():
        found = re.fullmatch(r"(.*?)(\d+)\.\.(\d+)", word)
        numbers = range(int(found[2]), int(found[3]) + 1) if found else ()
        names += [f"{found[1]}{number}" for number in numbers] if found else [word]
    return tuple(names)


@pytest.mark.parametrize("name", WRITTEN_WITH | HELD_OUT)
def test_blocks_are_those_that_a_person_would_name(name: str) -> None:
    assert block_names(stock_model(name)) == _spread((WRITTEN_WITH | HELD_OUT)[name])
