"""Section 5: rectifier networks that look linear when they start, by mirrored CReLUs or by PReLUs with a = 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction.claim import Claim, Evidence, Exact
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Bench, Call, trial

if TYPE_CHECKING:
    import pandas as pd
    import torch
    from torch import nn

FULL, CONV, THIN = "fully connected", "convolutional", "thin"
LOOKS_LINEAR = ("CReLU, mirrored", "PReLU, a = 1")
AFTER_HE = ("ReLU, He", "CReLU, He")
ROUNDING = 1e-12  # relative; float64 keeps 2e-16, and errors of some 200 layers of 64 terms add up
RATE = 0.01  # of the one step of gradient descent


@dataclass(frozen=True)
class Settings:
    """How many networks, their sizes and depths; a thin network of r has 4r + 2 layers."""

    runs: int
    seed: int = 0
    depths: tuple[int, ...] = (2, 10, 50)
    rs: tuple[int, ...] = (1, 12, 49)
    width: int = 64
    filters: int = 16
    side: int = 8
    thin_side: int = 32
    points: int = 129


@dataclass(frozen=True)
class Networks:
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
def starts(settings: Networks, bench: Bench) -> pd.DataFrame:
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
        for start in (*AFTER_HE, *LOOKS_LINEAR):
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


def build(settings: Networks, start: str, seed: int) -> tuple[nn.Module, tuple[int, ...]]:
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


def networks(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """Name a trial for every family and depth."""
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    sizes = {
        FULL: (settings.depths, settings.width, 1),
        CONV: (settings.depths, settings.filters, settings.side),
        THIN: (tuple(4 * r + 2 for r in settings.rs), 0, settings.thin_side),
    }
    return [
        starts.of(
            Networks(family, depth, seeds, width, side, settings.points, random_norms=family == THIN),
            label=f"{family}, {depth}",
        )
        for family, (depths, width, side) in sizes.items()
        for depth in depths
    ]


def table(settings: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the trials' rows as they are."""
    return tables[0]


def _zeros(
    frame: pd.DataFrame, quantity: str, families: Sequence[str] = (FULL, CONV, THIN)
) -> Iterator[Evidence]:
    """One row a family and start, over all depths and draws; the detail has each depth's largest number."""
    chosen = frame[frame["quantity"] == quantity]
    for family in families:
        for start in LOOKS_LINEAR:
            part = chosen[(chosen["family"] == family) & (chosen["network"] == start)]
            worst = part.groupby("depth")["value"].max()
            detail = ", ".join(f"{value:.1g} at depth {depth}" for depth, value in worst.items())
            yield Evidence(f"{family}, {start}", [part["value"].tolist()], detail=detail)


def _bent(frame: pd.DataFrame, quantity: str, networks: Sequence[str]) -> Iterator[Evidence]:
    """Count networks that are linear, where none should be; a departure that is no number counts as linear."""
    chosen = frame[frame["quantity"] == quantity]
    for family in (FULL, CONV, THIN):
        for start in networks:
            values = chosen.loc[(chosen["family"] == family) & (chosen["network"] == start), "value"]
            linear = int((~(values > ROUNDING)).sum())
            detail = (
                f"{linear} of {len(values)} networks are linear; the smallest departure is {values.min():.2g}"
            )
            yield Evidence(f"{family}, {start}", [[float(linear)]], detail=detail)


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Draw output and derivative along a line, one column a start, one line a depth."""
    from skiplab.studies.balduzzi2017.ll_init.plot import looks_linear_panels

    shown = {"output\n(fully connected)": (FULL, "output")}
    shown |= {f"derivative\n({family})": (family, "slope") for family in (FULL, CONV, THIN)}
    rows: dict[str, dict[str, dict[int, tuple[Any, Any]]]] = {}
    departures: dict[str, dict[str, float]] = {}
    for row, (family, quantity) in shown.items():
        part = frame[(frame["family"] == family)]
        for network in (*AFTER_HE, *LOOKS_LINEAR):
            mine = part[part["network"] == network]
            lines = mine[mine["quantity"] == quantity].groupby("depth")
            curves = {
                int(line["depth"].iloc[0]): (line["x"].to_numpy(), line["value"].to_numpy())
                for _, line in lines
            }
            rows.setdefault(row, {})[network] = curves
            measure = "departure" if quantity == "output" else "gradient"
            departures.setdefault(row, {})[network] = float(
                mine.loc[mine["quantity"] == measure, "value"].max()
            )
    slopes = {row for row, (_, name) in shown.items() if name == "slope"}
    depths = {row: "layers" if family == THIN else "modules" for row, (family, _) in shown.items()}
    return looks_linear_panels(rows, slopes, departures, depths)


STUDY = Study(
    id="balduzzi2017/ll-init",
    words=__file__,
    item="LL-init",
    settings={
        "smoke": Settings(
            runs=1, depths=(2, 5), rs=(1,), width=16, filters=4, side=6, thin_side=16, points=17
        ),
        "quick": Settings(runs=5, rs=(1, 6, 12), thin_side=16, points=97),
        "paper": Settings(runs=10, depths=(2, 10, 50, 200), width=200, points=257),
    },
    stages=(networks,),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "linear",
            "With mirrored CReLUs or PReLUs with a = 1 the network is exactly linear at initialisation.",
            lambda frame, settings: _zeros(frame, "departure"),
            Exact(rounding=ROUNDING),
            "largest relative departure from superposition",
        ),
        Claim(
            "gradient-constant",
            "Its gradient df/dx is then the same at every input.",
            lambda frame, settings: _zeros(frame, "gradient"),
            Exact(rounding=ROUNDING),
            "largest relative change of the gradient",
        ),
        Claim(
            "isometry",
            "Ours: with orthogonal weights, kernels of one centre tap included, norms are kept exactly.",
            lambda frame, settings: _zeros(frame, "stretch", (FULL, CONV)),
            Exact(rounding=ROUNDING),
            "largest |‖net(x)‖/‖x‖ − 1|",
        ),
        Claim(
            "he-not-linear",
            "Ours: initialised after He et al., no ReLU or CReLU network of the same architecture is linear.",
            lambda frame, settings: _bent(frame, "departure", AFTER_HE),
            Exact(),
            "networks that are linear",
        ),
        Claim(
            "one-step",
            "The output ceases to be linear as soon as a weight update makes a CReLU's two blocks W and −W diverge.",
            lambda frame, settings: _bent(frame, "stepped", LOOKS_LINEAR[:1]),
            Exact(),
            "networks still linear after one step",
        ),
        Claim(
            "one-step-prelu",
            "Ours: so it does with PReLUs, as soon as an update moves their slopes off a = 1.",
            lambda frame, settings: _bent(frame, "stepped", LOOKS_LINEAR[1:]),
            Exact(),
            "networks still linear after one step",
        ),
    ),
    cost={"smoke": 0.7, "quick": 20.0, "paper": 600.0},
)
