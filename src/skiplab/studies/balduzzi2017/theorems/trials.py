"""Monte Carlo for the theorems: gradients under independent gates, in real nets, and paths counted on tiny nets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.reproduction import Bench, trial
from skiplab.studies.balduzzi2017.theorems.models import NAMED, PLAIN, RESIDUAL, Model

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import torch
    from torch import nn

Row = tuple[str, int, int, str, float]  # model, L, run, quantity, value
COLUMNS = ["model", "L", "run", "quantity", "value"]
NETS_AT_ONCE = 25  # bounds memory: 25 × samples × width numbers at a time


@dataclass(frozen=True)
class GatedNets:
    """Settings of one trial: a model at one depth under independent gates; each run is a mean over its nets."""

    model: str
    L: int
    runs: int
    nets: int
    width: int
    samples: int
    seed: int = 0


@trial("balduzzi2017/independent-gates", version=1)
def gated(settings: GatedNets, bench: Bench) -> pd.DataFrame:
    """Draw weights and gates, and note each run's mean of ∇_i², ∇_i ∇_j and ∇_i."""
    import torch

    from skiplab.randomness import torch_generator
    from skiplab.theory.shattering.independent_gates import gated_gradients, second_moments

    model = NAMED[settings.model]
    rows: list[Row] = []
    for run in range(settings.runs):
        bench.tell(run / settings.runs, f"run {run}")
        stream = torch_generator(
            settings.seed + run, "independent gates", model.name, settings.L, device=bench.device
        )
        parts = []
        for first in range(0, settings.nets, NETS_AT_ONCE):
            nets = min(NETS_AT_ONCE, settings.nets - first)
            scales = _scales(model, settings.L)
            found = gated_gradients(scales, settings.width, settings.samples, nets, generator=stream)
            parts.append(torch.stack([*second_moments(found), found.mean((1, 2))]))
        variance, covariance, mean = torch.cat(parts, dim=1).mean(1).tolist()
        rows += _rows(model, settings.L, run, variance, covariance)
        rows.append((model.name, settings.L, run, "mean", mean))
    return _frame(rows).assign(law="gates")


def _scales(model: Model, L: int) -> list[tuple[float, float]]:
    from skiplab.theory.shattering import independent_gates as gates

    modules = model.modules(L)
    if model.family == "plain":
        return list(gates.plain_scales(modules))
    if model.family == "residual":
        return list(gates.residual_scales(modules, model.alpha, model.beta))
    if model.family == "batch norm":
        return list(gates.batch_norm_scales(modules, model.beta))
    return list(gates.highway_scales(modules))


@dataclass(frozen=True)
class RealNets:
    """Settings of one trial: real nets of a model at one depth, each run with new weights and inputs."""

    model: str
    L: int
    runs: int
    nets: int
    width: int
    batch: int
    seed: int = 0


@trial("balduzzi2017/real-networks", version=1)
def real(settings: RealNets, bench: Bench) -> pd.DataFrame:
    """Build nets, and note each run's mean of ∇_i² and ∇_i ∇_j in their first layer."""
    import torch

    from skiplab.measurements.gradient_shattering import gradient_shattering
    from skiplab.randomness import torch_generator

    model = NAMED[settings.model]
    rows: list[Row] = []
    for run in range(settings.runs):
        bench.tell(run / settings.runs, f"run {run}")
        found = []
        for net in range(settings.nets):
            # Without the model's name, so that α-rescaled nets have the weights of the unscaled ones.
            parts = (settings.seed + run, "real nets", settings.L, net)
            module = build(model, model.modules(settings.L), settings.width, torch_generator(*parts))
            # Weights of variance 2/N make x_0 of variance 1 from inputs of variance ½.
            stream = torch_generator(*parts, "inputs")
            x = torch.randn(settings.batch, settings.width, generator=stream) * 0.5**0.5
            shattering = gradient_shattering(
                module.to(bench.device), x.to(bench.device), mode="batch", layers=["first"]
            )
            found.append((float(shattering.mean_square), float(shattering.mean_product)))
        variance, covariance = (sum(each) / len(found) for each in zip(*found, strict=True))
        rows += _rows(model, settings.L, run, variance, covariance)
    return _frame(rows).assign(law="nets")


@dataclass(frozen=True)
class WideNets:
    """Settings of one trial: nets too wide for their weights to be stored, one per run, with new inputs."""

    model: str
    L: int
    runs: int
    width: int
    samples: int
    seed: int = 0


@trial("balduzzi2017/wide-networks", version=1)
def weightless(settings: WideNets, bench: Bench) -> pd.DataFrame:
    """Draw gradients of real nets without batch normalisation, and note each run's mean of ∇_i² and ∇_i ∇_j."""
    from skiplab.randomness import torch_generator
    from skiplab.theory.shattering.independent_gates import second_moments
    from skiplab.theory.shattering.weightless import weightless_gradients

    model = NAMED[settings.model]
    rows: list[Row] = []
    for run in range(settings.runs):
        bench.tell(run / settings.runs, f"run {run}")
        parts = (settings.seed + run, "wide nets", model.name, settings.L)
        stream = torch_generator(*parts, device=bench.device)
        scales = _scales(model, settings.L)
        found = weightless_gradients(scales, settings.width, settings.samples, generator=stream)
        variance, covariance = (float(each) for each in second_moments(found[None]))
        rows += _rows(model, settings.L, run, variance, covariance)
    return _frame(rows).assign(law="wide nets")


@dataclass(frozen=True)
class OutputNets:
    """Settings of one trial: the outputs of real nets' layers, each run with new weights and inputs."""

    model: str
    layers: int
    runs: int
    width: int
    batch: int
    seed: int = 0


@trial("balduzzi2017/output-variances", version=1)
def outputs(settings: OutputNets, bench: Bench) -> pd.DataFrame:
    """Note the outputs' variance over inputs, a mean over units, before the first module (L = 0) and after each."""
    import torch

    from skiplab.randomness import torch_generator

    model = NAMED[settings.model]
    rows: list[Row] = []
    for run in range(settings.runs):
        bench.tell(run / settings.runs, f"run {run}")
        parts = (settings.seed + run, "output variances")
        module = build(model, settings.layers, settings.width, torch_generator(*parts)).to(bench.device)
        stream = torch_generator(*parts, "inputs")
        x = torch.randn(settings.batch, settings.width, generator=stream) * 0.5**0.5
        with torch.no_grad():
            at = module.get_submodule("first")(x.to(bench.device))
            found = [at.var(0).mean()]
            for block in module.get_submodule("blocks").children():
                at = block(at)
                found.append(at.var(0).mean())
        rows += [(model.name, L, run, "output variance", float(value)) for L, value in enumerate(found)]
    return _frame(rows).assign(law="outputs")


def build(model: Model, modules: int, width: int, generator: torch.Generator) -> nn.Module:
    """One net whose output is the sum of its last layer."""
    import torch

    from skiplab.architectures.highway import ScalarHighwayNet
    from skiplab.architectures.rescaled import EqualWidthNet, RescaledNet

    net: EqualWidthNet
    if model.family == "highway":
        net = ScalarHighwayNet(width, width, modules, 1, generator=generator)
    else:
        net = RescaledNet(
            width,
            width,
            modules,
            1,
            generator=generator,
            alpha=model.alpha,
            beta=model.beta,
            skip=not model.family.startswith("plain"),
            normalisation="batch" if model.normalised else "none",
        )
    with torch.no_grad():
        net.output.weight.fill_(1.0)
    return net


@dataclass(frozen=True)
class PathLemmas:
    """Settings of one trial: random gates on nets of two units per layer, small enough to list."""

    layers: int
    cases: int
    seed: int = 0
    width: int = 2


@trial("balduzzi2017/path-lemmas", version=1)
def lemmas(settings: PathLemmas, bench: Bench) -> pd.DataFrame:
    """Compare both sides of lemmas A1–A3, relative to the right side; a run is a random configuration."""
    from skiplab.randomness import numpy_generator

    rows = []
    for case in range(settings.cases):
        bench.tell(case / settings.cases, f"configuration {case}")
        stream = numpy_generator(settings.seed, "lemmas", settings.layers, settings.width, case)
        for name, value in (*_covariances(settings, stream), *_derivatives(settings, stream)):
            rows.append((name, settings.layers, case, "deviation", value))
    return _frame(rows).assign(law="paths")


def _covariances(settings: PathLemmas, stream: np.random.Generator) -> Iterator[tuple[str, float]]:
    from skiplab.theory.shattering import path_sums as paths

    layers, width = settings.layers, settings.width
    A, B = (stream.random((layers, width)) < 0.7 for _ in range(2))
    A[:, 0] = B[:, 0] = True  # one path at least is active in both, so that deviations can be relative
    sigma = float(stream.uniform(0.3, 1.5))
    layered = paths.layered_paths(layers, width)
    residual = paths.paths_from(0, layers, width, skips=True)
    as_printed = paths.printed_residual_paths(layers, width)
    for name, chosen, claimed in (
        ("A1", layered, paths.lemma_a1(A, B, sigma)),
        ("A3", residual, paths.lemma_a3(A, B, sigma)),
        ("A3 printed", as_printed, paths.printed_lemma_a3(A, B, sigma)),
    ):
        counted = layers - 1 if name == "A1" else layers
        nets = paths.sign_weights(counted, width, sigma)
        average, listed = paths.listed_moments(chosen, A, B, nets)
        orthogonal = paths.second_moment(chosen, A, B, sigma)
        yield f"{name}, listed", abs(listed / claimed - 1)
        yield f"{name}, orthogonal", abs(orthogonal / claimed - 1)
        yield f"{name}, mean", abs(average - paths.mean(chosen, A))


def _derivatives(settings: PathLemmas, stream: np.random.Generator) -> Iterator[tuple[str, float]]:
    """Lemma A2: path sums against automatic differentiation, in nets of random weights and inputs."""
    import torch

    from skiplab.randomness import torch_generator
    from skiplab.theory.shattering.path_sums import path_sum, paths_from

    layers, width = settings.layers, settings.width
    seed = int(stream.integers(2**31))
    x = torch.tensor(stream.normal(size=width)).requires_grad_()
    W = torch.tensor(stream.normal(size=(layers, width, width)))  # before, after
    activities = [x]
    for each in W:
        activities.append(torch.relu(activities[-1] @ each))
    (gradient,) = torch.autograd.grad(activities[-1].sum(), x)
    gates = torch.stack(activities[1:]).detach().numpy() > 0
    sums = [path_sum(paths_from(i, layers, width), W.numpy(), gates) for i in range(width)]
    yield "A2", float(abs(gradient.numpy() - sums).max())
    for model in (PLAIN, RESIDUAL):
        net = build(model, layers, width, torch_generator(seed, model.name)).double()
        noted: list[torch.Tensor] = [x]
        for block in net.get_submodule("blocks").children():
            noted.append(block(noted[-1][None])[0])
        (gradient,) = torch.autograd.grad(noted[-1].sum(), x)
        weights = torch.stack([net.get_parameter(f"blocks.{k}.linear.weight").T for k in range(layers)])
        gates = torch.stack(noted[:-1]).detach().numpy() > 0
        skips = model is RESIDUAL
        sums = [
            path_sum(
                paths_from(i, layers, width, skips=skips, gate_first=True), weights.detach().numpy(), gates
            )
            for i in range(width)
        ]
        yield f"A2, {model.name} of eq 2", float(abs(gradient.numpy() - sums).max())


def _rows(model: Model, L: int, run: int, variance: float, covariance: float) -> list[Row]:
    numbers = (("variance", variance), ("covariance", covariance))
    return [(model.name, L, run, quantity, value) for quantity, value in numbers]


def _frame(rows: list[Row]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=COLUMNS)
