"""Time the curvature instruments on a GPU, and the ways there are to eigenvalues: one table at the end.

    PYTHONPATH=src python3 tools/gpu_curvature.py            # on a GPU, up to 100 s
    PYTHONPATH=src python3 tools/gpu_curvature.py --small    # any device, seconds: does it run?

A part that fails shows its traceback and the others go on; parts are left out when the time is over.
"""

from __future__ import annotations

import argparse
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from skiplab import linear_algebra as la
from skiplab.architectures.fully_connected import PlainNet, ResidualNet
from skiplab.architectures.initialisers import Glorot
from skiplab.curvature.products import HessianProduct
from skiplab.ensembles import Ensemble
from skiplab.measurements.hessian_spectrum import hessian_spectrum
from skiplab.randomness import torch_generator

CRITERION = nn.CrossEntropyLoss()
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ROWS: list[tuple[str, str, str]] = []
STARTED = time.perf_counter()
LIMIT = 85.0  # seconds after which no part starts


def row(part: str, what: str, value: str) -> None:
    """Keep a line of the table, and show it at once."""
    ROWS.append((part, what, value))
    print(f"[{time.perf_counter() - STARTED:6.1f} s] {part}: {what}: {value}", flush=True)


def timed(function: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """The least seconds of some runs, the device waited for, and the last answer; one warm-up before.

    What is long and asked for once needs no warm-up.
    """
    wait()
    started = time.perf_counter()
    answer = function()
    wait()
    best = time.perf_counter() - started
    if best > 0.5 and repeats == 1:
        return best, answer
    best = float("inf")
    for _ in range(repeats):
        wait()
        started = time.perf_counter()
        answer = function()
        wait()
        best = min(best, time.perf_counter() - started)
    return best, answer


def wait() -> None:
    """Wait for the device."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def batch(samples: int, inputs: int, classes: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Inputs and labels with something to learn: the label is the largest of some random projections."""
    draw = torch_generator("gpu curvature", samples, inputs)
    x = torch.randn(samples, inputs, generator=draw, dtype=torch.float64)
    y = (x @ torch.randn(inputs, classes, generator=draw, dtype=torch.float64)).argmax(1)
    return x.to(DEVICE, dtype), y.to(DEVICE)


def net(
    kind: type[PlainNet] | type[ResidualNet],
    inputs: int,
    width: int,
    depth: int,
    classes: int,
    dtype: torch.dtype,
    seed: int = 0,
) -> nn.Module:
    """A network of the studies' kind."""
    gain = 2**0.5 if kind is PlainNet else 0.3
    draw = torch_generator("gpu curvature", seed)
    return kind(inputs, width, depth, classes, generator=draw, init=Glorot(gain), dtype=dtype).to(DEVICE)


# The parts ------------------------------------------------------------------------------------------------


def exact_spectrum(small: bool) -> None:
    """Setup, matrix, eigenvalues and all of ``exact``, for one network and for some."""
    depth, samples, inputs = (4, 100, 20) if small else (30, 2000, 128)
    data = batch(samples, inputs, 20, torch.float64)
    torch.linalg.eigvalsh(torch.eye(200, dtype=torch.float64, device=DEVICE))  # the library's own start
    for kind in (PlainNet, ResidualNet):
        model = net(kind, inputs, 16, depth, 20, torch.float64)
        part = f"exact, {kind.__name__} {depth}×16"
        seconds, product = timed(lambda model=model: HessianProduct(model, data, criterion=CRITERION))
        row(part, f"setup, {product.dimension:,} parameters ({product.route})", f"{seconds:.4f} s")
        if DEVICE == "cuda":
            torch.cuda.reset_peak_memory_stats()
        seconds, matrix = timed(lambda product=product: product.matrix()[0])
        row(part, "matrix", f"{seconds:.4f} s")
        if DEVICE == "cuda":
            row(part, "peak memory of the matrix", f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
        seconds, _ = timed(lambda matrix=matrix: la.matrix_eigenvalues(matrix), 1)
        row(part, "eigenvalues", f"{seconds:.3f} s")
        seconds, found = timed(
            lambda model=model: hessian_spectrum(model, data, criterion=CRITERION, method="exact"), 1
        )
        fractions = ", ".join(f"{float(getattr(found, n)):.4f}" for n in ("degenerate", "negative"))
        row(part, f"hessian_spectrum (degenerate, negative {fractions})", f"{seconds:.3f} s")
    ensemble = Ensemble.of([net(PlainNet, inputs, 16, depth, 20, torch.float64, seed) for seed in range(3)])
    seconds, _ = timed(lambda: hessian_spectrum(ensemble, data, criterion=CRITERION, method="exact"), 1)
    row("exact, ensemble of 3", "hessian_spectrum per network", f"{seconds / 3:.3f} s")


def columns(small: bool) -> None:
    """The slower way to the matrix, a product a column, for networks without linear layers only."""
    depth, samples, inputs = (4, 100, 20) if small else (30, 2000, 128)
    model = net(PlainNet, inputs, 16, depth, 20, torch.float64)
    data = batch(samples, inputs, 20, torch.float64)
    product = HessianProduct(model, data, criterion=CRITERION)
    options: dict[str, Any] = {"lead": (1,), "device": DEVICE}
    wait()
    started = time.perf_counter()
    slow = la.dense_matrix(product, product.dimension, **options)
    wait()
    row("exact", "matrix by columns, cold", f"{time.perf_counter() - started:.3f} s")
    fast = product.matrix()
    row("exact", "largest difference of the two, of the largest entry", f"{_apart(fast, slow):.1e}")
    seconds, _ = timed(lambda: la.exact._symmetrise(slow), 1)
    row("exact", "symmetrise", f"{seconds:.4f} s")


def solvers(small: bool) -> None:
    """Eigenvalues of Hessians of several orders by each solver, and their fractions at ±1e-3."""
    shapes = ((30, 16, 128), (10, 16, 128), (10, 16, 190), (30, 16, 378))
    if small:
        shapes = ((2, 16, 20), (3, 16, 20), (3, 16, 24), (4, 16, 20))
    for depth, width, inputs in shapes:
        model = net(PlainNet, inputs, width, depth, 20, torch.float64)
        data = batch(100 if small else 2000, inputs, 20, torch.float64)
        matrix = HessianProduct(model, data, criterion=CRITERION).matrix()[0]
        _guarded(f"solvers, n = {len(matrix):,}", _solvers, matrix)


def _solvers(matrix: Tensor) -> None:
    part = f"eigenvalues, n = {len(matrix):,}"
    reference = _one_solver(part, "float64, default", matrix, None)
    if DEVICE == "cuda":
        for library in ("cusolver", "magma"):
            before = torch.backends.cuda.preferred_linalg_library()
            try:
                torch.backends.cuda.preferred_linalg_library(library)
                _guarded(part, _one_solver, part, f"float64, {library}", matrix, reference)
            finally:
                torch.backends.cuda.preferred_linalg_library(before)
    _guarded(part, _one_solver, part, "float32", matrix.float(), reference)
    if len(matrix) < 11_000:
        _guarded(part, _threads, part, matrix)
        _guarded(part, _inertia, part, matrix, reference)


def _one_solver(part: str, name: str, matrix: Tensor, reference: Tensor | None) -> Tensor:
    seconds, values = timed(lambda: torch.linalg.eigvalsh(matrix), 1)
    note = ""
    if reference is not None:
        error = float((values - reference).abs().max() / reference.abs().max())
        degenerate, negative = (abs(_fractions(values)[i] - _fractions(reference)[i]) for i in (0, 1))
        note = f"; error {error:.0e}·|λ|max, fractions off by {degenerate:.1e}, {negative:.1e}"
    row(part, name, f"{seconds:.3f} s{note}")
    return values


def _threads(part: str, matrix: Tensor) -> None:
    """Two or three at once, each in a thread with a stream of its own."""
    for count in (2, 3):
        copies = [matrix.clone() for _ in range(count)]

        def work(copy: Tensor) -> None:
            if DEVICE == "cuda":
                with torch.cuda.stream(torch.cuda.Stream()):
                    torch.linalg.eigvalsh(copy)
            else:
                torch.linalg.eigvalsh(copy)

        def together(copies: list[Tensor] = copies, work: Callable[[Tensor], None] = work) -> None:
            threads = [threading.Thread(target=work, args=(copy,)) for copy in copies]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        seconds, _ = timed(together, 1)
        row(part, f"float64, {count} threads, per matrix", f"{seconds / count:.3f} s")


def _inertia(part: str, matrix: Tensor, reference: Tensor) -> None:
    """Eigenvalues left of ±t from the signs of LDLᵀ's pivots (Sylvester), if the device has the factorisation."""
    counts = []

    def count() -> None:
        counts.clear()
        for t in (-1e-3, 1e-3):
            shifted = matrix - t * torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
            factor, pivots, _ = torch.linalg.ldl_factor_ex(shifted)
            counts.append(_negative_pivots(factor, pivots))

    seconds, _ = timed(count, 1)
    true = [int((reference < t).sum()) for t in (-1e-3, 1e-3)]
    row(part, f"LDLᵀ inertia at both ±1e-3 (found {counts}, eigvalsh {true})", f"{seconds:.3f} s")


def _negative_pivots(factor: Tensor, pivots: Tensor) -> int:
    diagonal, below = factor.diagonal().cpu(), factor.diagonal(-1).cpu()
    signs, place, negative = pivots.cpu() < 0, 0, 0
    while place < len(diagonal):
        if bool(signs[place]):  # a block of two rows
            pair = torch.stack([diagonal[place], below[place], below[place], diagonal[place + 1]]).view(2, 2)
            negative += int((torch.linalg.eigvalsh(pair) < 0).sum())
            place += 2
        else:
            negative += int(diagonal[place] < 0)
            place += 1
    return negative


def products(small: bool) -> None:
    """A Hessian product per network: 50 nets of 30 × 128 units, 5,000 samples, one vector each."""
    count, depth, inputs, samples = (3, 4, 20, 100) if small else (50, 30, 3072, 5000)
    data = batch(samples, inputs, 10, torch.float32)
    nets = [net(PlainNet, inputs, 128, depth, 10, torch.float32, seed) for seed in range(count)]
    ensemble = Ensemble.of(nets)
    part = f"product, {count} nets {depth}×128"
    if DEVICE == "cuda":
        row(part, "free memory", f"{la.available_bytes(DEVICE) / 2**30:.1f} GiB")
    wait()
    started = time.perf_counter()
    product = HessianProduct(ensemble, data, criterion=CRITERION)
    wait()
    seconds = time.perf_counter() - started
    groups = [members.stop - members.start for members, _, _ in product._parts]
    row(
        part,
        f"setup, {product.dimension:,} parameters ({product.route}), groups of {groups}",
        f"{seconds:.2f} s",
    )
    if DEVICE == "cuda":
        row(part, "memory kept", f"{torch.cuda.memory_allocated() / 2**30:.1f} GiB")
    draw = torch_generator("vectors")
    vectors = la.probes((count,), 1, product.dimension, draw, dtype=torch.float32).to(DEVICE)
    results = {}
    for name in ("fp32", "tf32"):
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        try:
            seconds, results[name] = timed(lambda: product(vectors), 5)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before
        row(part, f"{name}, per network", f"{1000 * seconds / count:.3f} ms")
    error = (results["tf32"] - results["fp32"]).norm() / results["fp32"].norm()
    row(part, "relative difference of tf32", f"{float(error):.1e}")
    if DEVICE == "cuda":
        row(part, "peak memory", f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
    _guarded(part, _profile, part, product, vectors)
    lone = HessianProduct(nets[0], data, criterion=CRITERION)
    for probes in (1, 10):
        more = vectors[:1].expand(1, probes, product.dimension).contiguous()
        seconds, _ = timed(lambda more=more: lone(more), 3)
        row("product, one net", f"{probes} vectors, per vector", f"{1000 * seconds / probes:.3f} ms")


def _profile(part: str, product: HessianProduct, vectors: Tensor) -> None:
    """Where the time of a product goes."""
    if DEVICE != "cuda":
        return
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        product(vectors)
        wait()
    events = sorted(seen.key_averages(), key=lambda event: -event.self_device_time_total)[:12]
    for event in events:
        row(part, f"  {event.key[:60]} × {event.count}", f"{event.self_device_time_total / 1000:.2f} ms")


# Running them ---------------------------------------------------------------------------------------------


def _guarded(name: str, function: Callable[..., Any], *args: Any) -> Any:
    if time.perf_counter() - STARTED > LIMIT:
        row(name, f"{function.__name__.strip('_')} left out", "no time")
        return None
    try:
        return function(*args)
    except Exception as error:
        traceback.print_exc()
        row(
            name,
            "FAILED",
            f"{type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}",
        )
        return None
    finally:
        if DEVICE == "cuda":
            torch.cuda.empty_cache()


def _fractions(values: Tensor) -> tuple[float, float]:
    return float((values.abs() < 1e-3).double().mean()), float((values < -1e-3).double().mean())


def _apart(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max() / other.abs().max())


def main() -> None:
    """Run all parts, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="tiny sizes, on any device")
    given = parser.parse_args()
    row("machine", torch.__version__, torch.cuda.get_device_name() if DEVICE == "cuda" else "CPU")
    for part in (exact_spectrum, products, columns, solvers):
        _guarded(part.__name__, part, given.small)
    width = max(len(f"{part}: {what}") for part, what, _ in ROWS)
    print("\n" + "\n".join(f"{f'{part}: {what}':<{width}}  {value}" for part, what, value in ROWS))


if __name__ == "__main__":
    main()
