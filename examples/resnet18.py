"""How deep is torchvision's resnet18 effectively? Its output is a sum over paths through its residual blocks."""

import torch
import torchvision

import skiplab as sl

torch.manual_seed(0)
model = torchvision.models.resnet18()  # or any residual nn.Module of yours
images = torch.randn(32, 3, 64, 64)

paths = sl.path_depth(model, images, mode="batch")
print(paths)
figure = paths.plot()  # a matplotlib figure: figure.savefig("paths.png")
