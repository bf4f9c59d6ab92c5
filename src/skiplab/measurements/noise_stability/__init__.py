"""How little a network's output changes when its weights do (yu2019, section 5, after Arora et al. 2018).

Two cushions bound it, that of a layer and that between two layers; ``weight_noise`` looks at it directly.
"""

from skiplab.measurements.noise_stability.interlayer_cushions import InterlayerCushions, interlayer_cushions
from skiplab.measurements.noise_stability.layer_cushions import LayerCushions, layer_cushions
from skiplab.measurements.noise_stability.weight_noise import WeightNoise, weight_noise

__all__ = [
    "InterlayerCushions",
    "LayerCushions",
    "WeightNoise",
    "interlayer_cushions",
    "layer_cushions",
    "weight_noise",
]
