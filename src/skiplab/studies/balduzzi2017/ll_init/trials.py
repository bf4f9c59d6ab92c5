"""Networks of three families with four starts each, and how linear they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.reproduction import Bench, trial

if TYPE_CHECKING:
    import pandas as pd
    import torch
    from torch import nn

FAMILIES = FULL, CONV, THIN = "fully connected", "convolutional", "thin"
LOOKS_LINEAR = MIRRORED, SLOPED = "CReLU, mirrored", "PReLU, a = 1"
AFTER_HE = ("ReLU, He", "CReLU, He")
STARTS = (*AFTER_HE, *LOOKS_LINEAR)
RATE = 0.01  # of the one step of gradient descent


@dataclass(frozen=True)
class LinearStarts:
    """Settings of one trial: networks of one family and depth, with all four starts.

    ``random_norms`` says whether batch normalisation has random statistics, or means 0 and variances 1 as torch has
    them before the first batch, which leave its input as it is.
    """

    family: str
    depth: int
    seeds: tuple[int, ...]
    width: int
    side: int
    points: int
    random_norms: bool = False


@trial("balduzzi2017/looks-linear-starts", version=1)
def starts(settings: LinearStarts, bench: Bench) -> pd.DataFrame:
    """Build each network with every start, in float64, and measure how linear it is.

    ``departure`` is from superposition, ``gradient`` the largest change of ∇f between inputs, relative to ∇f, f
    being a random direction of the output; ``stretch`` the largest |‖net(x)‖/‖x‖ − 1|, ``stepped`` the departure
    after one step of gradient descent. The first seed also has ``output`` and ``slope``, f and df/dt at t = x on the
    line p + tu with standard normal p and u.
    """
    import pandas as pd
    import torch

    from skiplab.architectures.initialisers import standard_normal
    from skiplab.randomness import torch_generator
    from skiplab.remedies.linearity import departure_from_linear

    t = torch.linspace(-2, 2, settings.points, dtype=torch.float64)
    rows: list[tuple[int, str, str, float, float]] = []
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"network {seed}")
        for start in STARTS:
            net, shape = build(settings, start, seed)
            net = net.to(bench.device).eval()

            def normal(*sizes: int, seed: int = seed) -> torch.Tensor:
                drawn = standard_normal(sizes, torch_generator(seed, "ll-init inputs", str(sizes)))
                return drawn.to(bench.device)

            base, along, *others = normal(10, *shape)
            places = t.view(-1, *(1 for _ in shape)).to(bench.device)
            line = [base + places * along] if done == 0 else []
            x = torch.cat([*line, torch.stack(others)]).requires_grad_()
            output = net(x).flatten(1)
            f = output @ torch.nn.functional.normalize(normal(output.shape[1]), dim=0)
            (gradient,) = torch.autograd.grad(f.sum(), x)
            change = (gradient - gradient[:1]).abs().max() / gradient[0].abs().max()
            norms = (output.norm(dim=1) / x.flatten(1).norm(dim=1)).detach()
            check = torch_generator(seed, "ll-init check")
            found: dict[str, float] = {
                "departure": departure_from_linear(net, x[-4:].detach(), check, draws=2),
                "gradient": float(change),
                "stretch": float((norms - 1).abs().max()),
            }
            if start in LOOKS_LINEAR:
                step(net, x[-8:].detach(), normal(8, output.shape[1]))
                found["stepped"] = departure_from_linear(net, x[-4:].detach(), check, draws=2)
            rows += [(seed, start, name, 0.0, value) for name, value in found.items()]
            if done == 0:
                slope = (gradient[: len(t)] * along).flatten(1).sum(1)
                for name, values in (("output", f), ("slope", slope)):
                    rows += [
                        (seed, start, name, float(place), float(value))
                        for place, value in zip(t, values.detach().cpu(), strict=False)
                    ]
    frame = pd.DataFrame(rows, columns=["draw", "network", "quantity", "x", "value"])
    return frame.assign(family=settings.family, depth=settings.depth)


def build(settings: LinearStarts, start: str, seed: int) -> tuple[nn.Module, tuple[int, ...]]:
    """Return a network of the trial's family with this start, and the shape of one of its inputs."""
    import torch
    from torch import nn

    from skiplab.architectures.convolutional import conv3x3
    from skiplab.architectures.initialisers import He
    from skiplab.architectures.rescaled import RescaledNet
    from skiplab.architectures.thin import ThinNet
    from skiplab.randomness import torch_generator
    from skiplab.remedies.looks_linear import looks_linear

    double, width, side = torch.float64, settings.width, settings.side
    generator = torch_generator(seed, "ll-init", settings.family, settings.depth)
    net: nn.Module
    if settings.family == FULL:
        net = RescaledNet(width, width, settings.depth, width, generator=generator, skip=False, dtype=double)
    elif settings.family == CONV:
        layers: list[nn.Module] = [conv3x3(3, width, 1, bias=True, dtype=double)]
        for _ in range(settings.depth):
            layers += [nn.ReLU(), conv3x3(width, width, 1, bias=True, dtype=double)]
        net = He().apply(nn.Sequential(*layers), generator)
    else:
        kind = "crelu" if start.startswith("CReLU") else "relu"
        r = (settings.depth - 2) // 4
        net = ThinNet(r, generator=generator, kind=kind, image_size=side, dtype=double)
        if settings.random_norms:
            draw_norms(net, torch_generator(seed, "ll-init norms", settings.depth))
    shape = (width,) if settings.family == FULL else (3, side, side)
    if start == "CReLU, He":
        # The same architecture as the mirrored one, but both halves drawn apart.
        net = He().apply(looks_linear(net, generator=generator), generator)
    elif start in LOOKS_LINEAR:
        kind = "crelu" if start.startswith("CReLU") else "prelu"
        net = looks_linear(net, generator=generator, kind=kind)
    return net, shape


def draw_norms(net: nn.Module, generator: torch.Generator) -> None:
    """Draw statistics, scales and shifts of batch normalisation, all different, as training leaves them.

    Variances v are uniform on [½, 2] and scales γ on [½, 3/2], so that E[γ²/v] = 1.001 and two hundred layers keep
    the signal's size; means and shifts are uniform on ±0.1, or their sum would drown it.
    """
    from torch import nn

    for part in net.modules():
        if isinstance(part, nn.BatchNorm2d):
            mean, variance = part.running_mean, part.running_var
            assert mean is not None
            assert variance is not None
            for value in (mean, part.bias):
                nn.init.uniform_(value, -0.1, 0.1, generator=generator)
            nn.init.uniform_(variance, 0.5, 2.0, generator=generator)
            nn.init.uniform_(part.weight, 0.5, 1.5, generator=generator)


def step(net: nn.Module, x: torch.Tensor, target: torch.Tensor) -> None:
    """Take one step of gradient descent on half the mean squared error."""
    import torch

    parameters = list(net.parameters())
    loss = 0.5 * (net(x).flatten(1) - target).square().mean()
    with torch.no_grad():
        for value, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            value.sub_(RATE * gradient)
