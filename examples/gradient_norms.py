"""Do the gradients of my network vanish? Measure them in every block of any PyTorch model."""

import torch
from torch import nn

import skiplab as sl

stream = torch.Generator().manual_seed(0)
model = nn.Sequential(
    nn.Linear(20, 64), nn.ReLU(), *[nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(20)]
)
model.append(nn.Linear(64, 10))
batch = torch.randn(256, 20, generator=stream), torch.randint(10, (256,), generator=stream)

norms = sl.gradient_norms(model, batch, criterion=nn.CrossEntropyLoss())
for layer, mean, stderr in zip(norms.layers, norms.mean[0], norms.stderr[0], strict=True):
    print(f"{layer:8} {mean:.2e} ± {stderr:.0e}")
print(f"log norm changes by {norms.slope[0]:.2f} a layer (above 0: gradients vanish towards the input)")
