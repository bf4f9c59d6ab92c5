"""Train five residual networks with different initial gains as one computation."""

import skiplab as sl
from skiplab import data
from skiplab.architectures.fully_connected import ResidualNet
from skiplab.architectures.initialisers import Glorot
from skiplab.randomness import torch_generator
from skiplab.training import Plan, train

digits = data.tensors("digits")
gains = (0.1, 0.3, 0.6, 1.0, 1.4)
networks = [
    ResidualNet(
        digits.inputs.shape[1], 32, 20, digits.classes, generator=torch_generator(0), init=Glorot(gain)
    )
    for gain in gains
]
ensemble = sl.Ensemble.of(networks)
history = train(ensemble, digits, Plan(epochs=5, batch_size=100, seeds=(0,) * len(gains)))
for gain, accuracy in zip(gains, history.accuracy[-1], strict=True):
    print(f"gain {gain}: training accuracy {accuracy:.3f}")
member = ensemble.member(0)  # an ordinary nn.Module
