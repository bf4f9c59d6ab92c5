"""Cases on which the diagnosis is judged. They were written and committed before any threshold of it existed.

No threshold may be set, and no rule changed, by what comes out here; ``development`` is there for that. Seeds 1001 to
1299. No network is in ``development``. A case that turns out not to be what it says (a control that does not train)
may be replaced before the diagnosis has first been run on this list, never after. Changed data (seeds 1401 to 1799)
came later, before any of them had been tried; they stand in for 29 others (seeds 1301 to 1399), which had been.
"""

from __future__ import annotations

from cases.lists import Control, PlantedCase, SickCase, changed_cases

PLANTED = (
    PlantedCase("mlp-relu-8x80", 1001, "dead-layer"),
    PlantedCase("torchvision:resnet18", 1002, "dead-layer"),
    PlantedCase("timm:pvt_v2_b0", 1003, "dead-layer"),
    PlantedCase("convnet-gn-8", 1004, "dead-layer"),
    PlantedCase("timm:regnetx_002", 1005, "duplicated-unit"),
    PlantedCase("unet-gn-12", 1006, "duplicated-unit"),
    PlantedCase("transformers:bert", 1007, "nearly-duplicated-unit"),
    PlantedCase("torchvision:densenet121", 1008, "nearly-duplicated-unit"),
    PlantedCase("timm:vit_tiny_patch16_224", 1009, "exploding-branch"),
    PlantedCase("residual-convnet-gn-8x12", 1010, "exploding-branch"),
    PlantedCase("transformers:gpt2", 1011, "exploding-branch"),
    PlantedCase("gru-2x32", 1012, "zero-head"),
    PlantedCase("timm:starnet_s1", 1013, "zero-head"),
    PlantedCase("regression-relu-4x48", 1014, "zero-head"),
    PlantedCase("mlp-tanh-4x72", 1015, "saturated"),
    PlantedCase("torchvision:efficientnet_b0", 1016, "saturated"),
    PlantedCase("mlp-ln-9x48-tanh", 1017, "saturated"),
    PlantedCase("mixer-7x48", 1018, "outlying-gain"),
    PlantedCase("timm:dla46_c", 1019, "outlying-gain"),
    PlantedCase("lenet-elu-12-20", 1020, "outlying-gain"),
)

CONTROLS = (
    *(Control("mlp-relu-8x80", 1101), Control("mlp-gelu-5x56", 1102), Control("regression-relu-4x48", 1103)),
    *(
        Control("convnet-gn-8", 1104),
        Control("residual-mlp-12x32", 1105),
        Control("gated-convnet-6x24", 1106),
    ),
    *(Control("lstm-2x40-words", 1107), Control("gru-2x32", 1108), Control("transformer-pre-3x32", 1109)),
    *(Control("autoencoder-elu-deep", 1110), Control("unet-gn-12", 1111)),
    *(Control("yu-resnet-3x12-24", 1112), Control("torchvision:resnet18", 1113)),
    *(Control("torchvision:densenet121", 1114), Control("torchvision:mobilenet_v3_small", 1115)),
    *(Control("timm:vit_tiny_patch16_224", 1116), Control("timm:regnetx_002", 1117)),
    *(Control("timm:resnet14t", 1118), Control("transformers:bert", 1119), Control("transformers:t5", 1120)),
)

SICK = (
    SickCase("sick-tanh-40x56-torch", 1201, "signals and gradients vanish with depth"),
    SickCase("sick-relu-36x72-torch", 1202, "signals and gradients vanish with depth"),
    SickCase("sick-sigmoid-9x64-torch", 1203, "gradients vanish with depth"),
    SickCase("sick-relu-22x100-tiny", 1204, "weights are too small"),
    SickCase("sick-tanh-17x80-chaotic", 1205, "activations saturate and gradients explode"),
    SickCase("sick-relu-26x64-huge", 1206, "weights are too large"),
    SickCase("sick-relu-70x32-he", 1207, "gradients are shattered"),
    SickCase("sick-tanh-14x64-tiny", 1208, "weights are too small"),
    SickCase("sick-silu-28x64-torch", 1209, "signals and gradients vanish with depth"),
    SickCase("sick-leaky-44x40-torch", 1210, "signals and gradients vanish with depth"),
    SickCase("sick-teacher-relu-32x40", 1211, "signals and gradients vanish with depth"),
    SickCase("sick-conv-26x10-torch", 1212, "signals and gradients vanish with depth"),
    SickCase("sick-conv-42x10-he", 1213, "gradients are shattered"),
    SickCase("sick-conv-34x14-tanh-torch", 1214, "signals and gradients vanish with depth"),
    SickCase("sick-conv-18x12-huge", 1215, "weights are too large"),
    SickCase("sick-residual-24x40-he", 1216, "residual branches explode"),
    SickCase("sick-residual-conv-22x10-large", 1217, "residual branches explode"),
    SickCase("sick-crelu-45x24", 1218, "gradients are shattered"),
    SickCase("mlp-relu-8x80", 1219, "a layer is dead", "dead-layer"),
    SickCase("mlp-tanh-4x72", 1220, "a layer is saturated", "saturated"),
)

# The two networks that issue 19 names: sick, and healthy with skips.
PAIRS = (("plain-tanh-30x64", "residual-tanh-30x64", 1281), ("plain-conv-50x16", "residual-conv-50x16", 1282))

# The stock architectures that issue 19 names, to be run through with random weights.
STOCK = (
    *("torchvision:resnet18", "torchvision:resnet50", "torchvision:vgg16_bn", "torchvision:densenet121"),
    *("torchvision:convnext_tiny", "timm:vit_tiny_patch16_224", "timm:mixer_s32_224"),
    *("torchvision:mobilenet_v3_small", "torchvision:efficientnet_b0", "timm:swin_tiny_patch4_window7_224"),
    *("transformers:bert", "transformers:gpt2", "transformers:t5", "lstm-2x40-words"),
)
STOCK_SEED = 1291

# Data that nobody prepared. Which of them a network gets over is in healthy.csv.
_FLAT = (
    *("mlp-relu-8x80", "mlp-gelu-5x56", "mlp-tanh-4x72", "mlp-sigmoid-1x112", "mlp-ln-9x48-tanh"),
    *(
        "regression-relu-4x48",
        "residual-mlp-12x32",
        "residual-tanh-30x64",
        "highway-5x56",
        "gru-2x32",
        "rnn-1x64",
    ),
)
_IMAGES = (
    *("lenet-elu-12-20", "convnet-gn-8", "residual-convnet-gn-8x12", "gated-convnet-6x24", "mixer-7x48"),
    *("yu-resnet-3x12-24", "residual-conv-50x16", "torchvision:resnet18", "timm:regnetx_002"),
    "torchvision:mobilenet_v3_small",
)
_NUMBERS = ("regression-relu-4x48", "regression-gelu-3x64", "autoencoder-elu-deep", "unet-gn-12")
CHANGED = (
    *changed_cases({"off-centre-inputs": 2, "unequal-inputs": 4}, _FLAT, 1401),
    *changed_cases({"off-centre-inputs": 2}, _IMAGES, 1501),
    *changed_cases({"off-centre-inputs": 1, "off-centre-targets": 5, "scaled-targets": 1}, _NUMBERS, 1601),
    *changed_cases(
        {"scaled-inputs": 1}, ("mlp-tanh-4x72", "lenet-elu-12-20", "gru-2x32", "convnet-gn-8"), 1701
    ),
)
