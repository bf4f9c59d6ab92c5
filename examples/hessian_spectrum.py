"""Is the loss of my network degenerate? Count the eigenvalues of its Hessian near zero and below."""

import torch
from torch import nn

import skiplab as sl

stream = torch.Generator().manual_seed(0)
model = nn.Sequential(nn.Linear(20, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 5)).double()
batch = torch.randn(200, 20, generator=stream).double(), torch.randint(5, (200,), generator=stream)

for method in ("exact", "lanczos"):
    spectrum = sl.hessian_spectrum(model, batch, criterion=nn.CrossEntropyLoss(), method=method)
    limits = f"[{float(spectrum.degenerate_low):.3f}, {float(spectrum.degenerate_high):.3f}]"
    word = "resolved" if spectrum.resolved else "unresolved"
    print(f"{method}: |λ| < 1e-3 for {float(spectrum.degenerate):.3f} {limits}, {word}")
    print(f"  λ from {float(spectrum.smallest):.3g} to {float(spectrum.largest):.3g}")
