"""Do gradients keep their size on their way through a network? 32 layers with and without skip connections."""

import torch
from torch import nn

import skiplab as sl
from skiplab.architectures.resnet import ResNet

stream = torch.Generator().manual_seed(0)
images, labels = torch.randn(32, 3, 16, 16, generator=stream), torch.randint(10, (32,), generator=stream)

for name, skips in (("with skips", True), ("without", False)):
    network = ResNet(5, skips=skips, generator=torch.Generator().manual_seed(0))  # or any nn.Module of yours
    norms = sl.gradient_norms(network, (images, labels), criterion=nn.CrossEntropyLoss(), mode="train")
    print(f"ResNet-32 {name}:", norms, "", sep="\n")
figure = norms.plot()  # of the last; norms.frame() is its table
