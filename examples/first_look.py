"""Why does a network of thirty tanh layers not train on digits, and what would help?"""

import torch
from sklearn.datasets import load_digits
from torch import nn

import skiplab as sl

images, labels = (torch.tensor(part) for part in load_digits(return_X_y=True))
batch = (images.float() / 16, labels)
torch.manual_seed(0)
layers = [part for _ in range(29) for part in (nn.Linear(64, 64), nn.Tanh())]
network = nn.Sequential(*layers, nn.Linear(64, 10))  # or any nn.Module of yours

report = sl.diagnose(network, batch, examinations=["layer_signals", "gradient_norms"], budget=600)
trials = sl.try_remedies(network, batch, remedies=report.proposed[:2], steps=40, seeds=5, rate=0.001)
print(report, trials, sep="\n\n")
figure = trials.plot()  # trials.treated("skips-identity").model is the changed copy
