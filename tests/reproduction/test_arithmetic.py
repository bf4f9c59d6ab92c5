"""What a caller has set in torch, numpy and Python reaches no table, and is as before once a trial is over."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from counted_studies import Draw, draw

import skiplab as sl
from skiplab import data
from skiplab.experiments.building import samples_of
from skiplab.reproduction.arithmetic import full_float32, steady_arithmetic
from skiplab.reproduction.executor import Job, run_job
from skiplab.reproduction.results import Results
from skiplab.reproduction.settings import choose
from skiplab.reproduction.tables import write_table
from skiplab.studies import CATALOGUE

# Fully connected networks in training, eigenvalues of matrices, convolutional networks in training.
STUDIES = ("orhan2017/figure-7", "orhan2018/figure-8", "balduzzi2017/figure-5")


def silent(done: float, text: str) -> None:
    """Hear nothing."""


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """Set a flag; the state is put back by ``everything``."""
    setattr(owner, name, value)


# Each is a function that sets something, or gives a context in which it is set.
AMBIENT: dict[str, Callable[[], Any]] = {
    "matmul precision medium": partial(torch.set_float32_matmul_precision, "medium"),
    "matmul precision high": partial(torch.set_float32_matmul_precision, "high"),
    "newer precision, generic": partial(set_attribute, torch.backends, "fp32_precision", "tf32"),
    "newer precision, products": partial(
        set_attribute, torch.backends.mkldnn.matmul, "fp32_precision", "bf16"
    ),
    "newer precision, convolutions": partial(
        set_attribute, torch.backends.mkldnn.conv, "fp32_precision", "bf16"
    ),
    "newer precision on GPUs": partial(set_attribute, torch.backends.cudnn.conv, "fp32_precision", "ieee"),
    "autocast": partial(torch.autocast, "cpu", torch.bfloat16),
    "default dtype bfloat16": partial(torch.set_default_dtype, torch.bfloat16),
    "default dtype float64": partial(torch.set_default_dtype, torch.float64),
    "no gradients": torch.no_grad,
    "inference mode": torch.inference_mode,
    "deterministic algorithms": partial(torch.use_deterministic_algorithms, True),
    "without oneDNN": partial(set_attribute, torch.backends.mkldnn, "enabled", False),
    "without NNPACK": partial(torch._C._set_nnpack_enabled, False),
    "cuDNN tries kernels": partial(set_attribute, torch.backends.cudnn, "benchmark", True),
    "cuDNN deterministic": partial(set_attribute, torch.backends.cudnn, "deterministic", True),
    "cuDNN without tf32": partial(set_attribute, torch.backends.cudnn, "allow_tf32", False),
    "sums in half precision": partial(
        set_attribute, torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction", False
    ),
    "without flash attention": partial(torch.backends.cuda.enable_flash_sdp, False),
    "denormals flushed": partial(torch.set_flush_denormal, True),
    "default device": partial(torch.set_default_device, "meta"),
    "device as a context": partial(torch.device, "meta"),
    "two threads": partial(torch.set_num_threads, 2),
    "numpy raises": partial(np.errstate, all="raise"),
    "numpy's buffer": partial(np.setbufsize, 1024),
    "other random streams": lambda: (torch.manual_seed(5), np.random.seed(5), random.seed(5)),  # noqa: NPY002
}
TOGETHER = [name for name in AMBIENT if name not in ("matmul precision high", "default dtype float64")]
CASES = {name: [name] for name in AMBIENT} | {"all together": TOGETHER}
every_setting = pytest.mark.parametrize("names", CASES.values(), ids=CASES)


def state() -> dict[str, Any]:
    """All that a trial might change for its caller."""
    native = torch._C
    precisions = {
        (backend, op): native._get_fp32_precision_getter(backend, op)
        for backend, ops in {"generic": ["all"], "cuda": OPERATIONS, "mkldnn": OPERATIONS}.items()
        for op in ops
    }
    flags = [name for name in dir(native) if name.startswith("_get_") and name.endswith(KINDS)]
    return {
        "precisions": precisions,
        "flags": {name: attempt(getattr(native, name)) for name in flags},
        "autocast": [
            (torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in ("cpu", "cuda")
        ],
        "cache": torch.is_autocast_cache_enabled(),
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "deterministic": torch.get_deterministic_debug_mode(),
        "denormals": sys.float_info.min * 0.5,
        "threads": torch.get_num_threads(),
        "numpy": (np.geterr(), np.getbufsize()),
        "streams": (
            torch.default_generator.get_state().tolist(),
            [np.asarray(part).tolist() for part in np.random.get_state()],  # noqa: NPY002
            random.getstate(),
        ),
    }


OPERATIONS = ["all", "matmul", "conv", "rnn"]
KINDS = ("_enabled", "_benchmark", "_deterministic", "_tf32", "_reduction", "_accumulation", "_precision")


def attempt(read: Callable[[], Any]) -> Any:
    """Read a flag; some raise while torch's older and newer settings disagree."""
    try:
        return read()
    except RuntimeError:
        return "disagree"


@contextlib.contextmanager
def everything(names: list[str]) -> Iterator[None]:
    """Set what is named, and set all of torch back afterwards."""
    with steady_arithmetic(), contextlib.ExitStack() as stack:
        stack.callback(torch.set_default_device, None)
        for name in names:
            found = AMBIENT[name]()
            if hasattr(found, "__enter__"):
                stack.enter_context(found)
        yield


@cache
def jobs() -> tuple[Job, ...]:
    found = []
    for name in STUDIES:
        study = CATALOGUE[name]
        call = next(iter(study.stages[0](Results(choose(study, "smoke", {}).settings))))
        found.append(Job(call.key(data.fingerprint), call, "cpu", None, None))
    return tuple(found)


def table_bytes(table: pd.DataFrame | None, folder: Path) -> bytes:
    assert table is not None
    write_table(table, folder / "table.parquet")
    return (folder / "table.parquet").read_bytes()


@cache
def expected() -> list[pd.DataFrame | None]:
    """The tables of a process in which nothing was set."""
    return [run_job(job, silent).table for job in jobs()]


@every_setting
def test_no_setting_reaches_a_table(names: list[str], tmp_path: Path) -> None:
    plain = [table_bytes(table, tmp_path) for table in expected()]
    with everything(names):
        before = state()
        samples_of.cache_clear()  # or a trial would use what an earlier one has read
        done = [run_job(job, silent) for job in jobs()]
        assert state() == before
    assert [each.problem for each in done] == [""] * len(STUDIES)
    assert [table_bytes(each.table, tmp_path) for each in done] == plain


@every_setting
def test_settings_are_given_back_after_a_failure(
    names: list[str], tmp_path: Path, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTED_FAILING", "0")
    with everything(names):
        before = state()
        assert "was told to fail" in run_job(Job("key", draw.of(Draw(0)), "cpu", None, None), silent).problem
        assert state() == before


def test_run_gives_the_same_table_whatever_is_set(tmp_path: Path) -> None:
    plain = sl.run(STUDIES[0], scale="smoke", store=tmp_path / "plain")
    with everything(TOGETHER):
        before = state()
        other = sl.run(STUDIES[0], scale="smoke", store=tmp_path / "other")
        assert state() == before
    assert other.settings == plain.settings
    assert other.verdicts == plain.verdicts
    one, two = (sorted(run.folder.parents[3].rglob("*.parquet")) for run in (plain, other))
    assert len(one) > 1
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_inside_are_the_defaults() -> None:
    plain = state()
    with everything(TOGETHER), steady_arithmetic():
        inside = state()
    alike = plain.keys() - {"threads", "streams", "precisions"}
    assert {name: inside[name] for name in alike} == {name: plain[name] for name in alike}
    assert inside["threads"] == 1
    changed = {names for names, value in inside["precisions"].items() if value != plain["precisions"][names]}
    # "ieee" is what the older setter writes for the default, "none".
    assert {inside["precisions"][names] for names in changed} <= {"ieee"}


def test_draws_from_global_streams_are_the_same_each_time_and_leave_no_trace() -> None:
    def drawn() -> tuple[float, float, float]:
        with steady_arithmetic():
            return torch.rand(()).item(), np.random.rand(), random.random()  # noqa: NPY002

    before = state()
    first = drawn()
    assert state() == before
    torch.rand(()), np.random.rand(), random.random()  # noqa: NPY002
    assert drawn() == first


@pytest.mark.parametrize("products", ["high", "highest"])
def test_a_trial_about_rounding_has_float32_proper_and_settings_come_back(products: str) -> None:
    with steady_arithmetic():
        if products == "high":  # as on a GPU
            torch.set_float32_matmul_precision(products)
        before = state()
        assert torch.backends.cudnn.allow_tf32
        with full_float32():
            assert not torch.backends.cudnn.allow_tf32
            assert torch.backends.cudnn.enabled
            assert torch.get_float32_matmul_precision() == "highest"
        assert state() == before


@pytest.mark.gpu
def test_products_on_a_gpu_are_in_tf32_and_settings_come_back() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    drawn = set()
    for names in CASES.values():
        with everything(names):
            before, stream = state(), torch.cuda.get_rng_state()
            with steady_arithmetic("cuda"):
                assert torch.get_float32_matmul_precision() == "high"
                assert torch.backends.cuda.matmul.fp32_precision == "tf32"
                drawn.add(torch.rand(1, device="cuda").item())
            assert state() == before
            assert torch.equal(torch.cuda.get_rng_state(), stream)
    assert len(drawn) == 1
