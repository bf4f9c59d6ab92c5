"""Ctrl-C at random moments of a measurement leaves module, gradient mode and random stream as they were."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator

import pytest
import torch
from torch import nn

import skiplab as sl
from skiplab.interruption import HOOKS, unchanged_by_ctrl_c
from skiplab.subjects.untouched import PlainTensors, PutBack

BATCH = (torch.zeros(4, 6), torch.zeros(4, dtype=torch.long))


@pytest.fixture
def net() -> nn.Module:
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 3))
    model[0].register_forward_hook(lambda *_: None)
    return model.train()


@pytest.fixture
def alarm() -> Iterator[None]:
    """An alarm clock that rings as Ctrl-C does."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def state(model: nn.Module) -> object:
    hooks = [(part.training, [dict(getattr(part, name, {})) for name in HOOKS]) for part in model.modules()]
    # Coverage's probes leave a gap at the end of a with: there Ctrl-C left subclasses of Tensor unheard.
    flags = torch.is_grad_enabled(), torch._C._is_torch_function_enabled()
    return flags, torch.get_rng_state().tolist(), hooks


@pytest.mark.parametrize(
    "times", [pytest.param(60, id="few"), pytest.param(1000, marks=pytest.mark.slow, id="many")]
)
# An interrupt may fall into a callback of the garbage collector, such as hypothesis's, where Python cannot raise it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("measure", [sl.gradient_norms, sl.activation_patterns])
def test_ctrl_c_at_random_moments_changes_nothing(
    net: nn.Module, alarm: None, measure: object, times: int
) -> None:
    def call() -> None:
        if measure is sl.gradient_norms:
            sl.gradient_norms(net, BATCH, criterion=nn.CrossEntropyLoss())
        else:
            sl.activation_patterns(net, BATCH)

    durations = []
    for _ in range(6):  # the shortest counts: on a busy machine some take several times as long
        started = time.perf_counter()
        call()
        durations.append(time.perf_counter() - started)
    duration = min(durations)
    before, chance, interrupted = state(net), random.Random(0), 0
    for _ in range(times):
        try:
            signal.setitimer(signal.ITIMER_REAL, max(1e-6, chance.uniform(0, duration)))
            call()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            interrupted += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert state(net) == before
    assert interrupted > times // 10


def test_subclasses_of_tensor_are_heard_again_where_no_exit_was_run(net: nn.Module) -> None:
    for enter in (True, False):
        with pytest.raises(KeyboardInterrupt), unchanged_by_ctrl_c((net,)):  # noqa: PT012
            plain = PlainTensors()
            PutBack.__enter__(plain)
            if enter:
                plain._off.__enter__()
                assert not torch._C._is_torch_function_enabled()
            raise KeyboardInterrupt
        assert torch._C._is_torch_function_enabled()


def test_what_was_half_undone_is_put_back(net: nn.Module) -> None:
    before = state(net)
    with pytest.raises(KeyboardInterrupt), unchanged_by_ctrl_c((net, 3)):  # noqa: PT012
        torch.set_grad_enabled(False)
        torch.rand(3)
        net.eval()
        net[4].register_forward_hook(lambda *_: None)
        raise KeyboardInterrupt
    assert state(net) == before
    # What a measurement does on purpose, or an error leaves, is not its business.
    with pytest.raises(ValueError, match="other"), unchanged_by_ctrl_c((net,)):
        raise ValueError("other")
