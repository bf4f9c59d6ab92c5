"""Is the loss of my network degenerate? Count the eigenvalues of its Hessian near zero and below."""

import torch
from torch import nn

import skiplab as sl

stream = torch.Generator().manual_seed(0)
model = nn.Sequential(nn.Linear(20, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 5)).double()
batch = torch.randn(200, 20, generator=stream).double(), torch.randint(5, (200,), generator=stream)

for method in ("exact", "lanczos"):
    print(sl.hessian_spectrum(model, batch, criterion=nn.CrossEntropyLoss(), method=method))
