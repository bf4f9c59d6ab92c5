"""skiplab: why do skip connections make deep networks trainable, and does your network have what they fix?

import skiplab as sl
sl.run("orhan2017/figure-7")          # run a study; returns what it left behind
sl.results("orhan2017/figure-7")      # its table, a DataFrame
sl.diagnose(model, batch)             # what is wrong with a network, where, and what would help
sl.gradient_norms(model, batch, criterion=torch.nn.CrossEntropyLoss())
"""

from typing import Any

from skiplab.version import __version__ as __version__

__all__ = [
    "Ensemble",
    "Exact",
    "HessianProduct",
    "Lanczos",
    "LightningCallback",
    "Moments",
    "Recorder",
    "Subject",
    "TrainerCallback",
    "activation_patterns",
    "autocorrelation",
    "branch_ratios",
    "compare",
    "diagnose",
    "dominant_gradient_flow",
    "gradient_norms",
    "gradient_shattering",
    "hessian_extremes",
    "hessian_product",
    "hessian_spectrum",
    "hessian_trace",
    "interlayer_cushions",
    "layer_cushions",
    "layer_signals",
    "looks_linear",
    "path_depth",
    "permutation_symmetry",
    "remedies",
    "rescaling_symmetry",
    "results",
    "run",
    "saturation",
    "singularities",
    "try_remedies",
    "weight_noise",
]


def __getattr__(name: str) -> Any:
    # Loaded on first use: `skiplab list` must not wait for torch.
    if name in __all__:
        from skiplab import interface

        return getattr(interface, name)
    raise AttributeError(f"module 'skiplab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
