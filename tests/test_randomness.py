"""Streams named by their parts: equal names, equal draws; the global generators are left alone."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
import torch

from skiplab.checks import Refused
from skiplab.randomness import (
    SEEDS_PER_STREAM,
    Role,
    derive,
    member_seeds,
    numpy_generator,
    run_seeds,
    torch_generator,
)


def test_a_name_gives_the_same_seed_on_every_machine() -> None:
    # The first 63 bits of SHA-256 of "int:0␟str:shuffle␟int:3"; a change would orphan all stored results.
    assert derive(0, "shuffle", 3) == 3_807_547_561_264_943_567


def test_seeds_fit_in_63_bits() -> None:
    assert all(0 <= derive(seed) < 2**63 for seed in range(200))


def test_other_parts_orders_types_and_groupings_name_other_streams() -> None:
    names = [(1, 2), (2, 1), (12,), ("12",), (1, "2"), ("1", "2"), (), ("",), ("", ""), (-1, 2)]
    assert len({derive(*name) for name in names}) == len(names)


def test_equal_names_give_equal_draws_and_other_names_others() -> None:
    one, same, other = (torch.rand(8, generator=torch_generator(7, what)) for what in ("a", "a", "b"))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    first, again, third = (numpy_generator(7, what).random(8) for what in ("a", "a", "b"))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, third)


def test_generators_live_where_they_are_asked_to() -> None:
    assert torch_generator(0).device == torch.device("cpu")
    assert torch_generator(0, device=torch.device("cpu")).initial_seed() == derive(0)


def test_no_draw_touches_global_state() -> None:
    before = (torch.random.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist())  # noqa: NPY002
    torch.rand(3, generator=torch_generator("x"))
    numpy_generator("x").random(3)
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert before[1:] == (random.getstate(), np.random.get_state()[1].tolist())  # noqa: NPY002


def test_seed_0_has_the_runs_that_are_published() -> None:
    assert run_seeds(0, 20) == range(20)
    assert run_seeds(0, 500, role="decide") == range(500)
    assert run_seeds(0, 500, role="search") == range(500, 1000)


def test_two_seeds_share_no_run_however_many_there_are() -> None:
    streams = [run_seeds(seed, SEEDS_PER_STREAM) for seed in (0, 1, 2, 7, 8, 2**33)]
    for one, next_one in pairwise(streams):
        assert one[-1] < next_one[0]


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_searches_and_deciding_runs_share_none_within_a_stream(seed: int) -> None:
    decide, search = run_seeds(seed, 500, role="decide"), run_seeds(seed, 500, role="search")
    assert set(decide).isdisjoint(search)
    assert set(decide) | set(search) <= set(run_seeds(seed, SEEDS_PER_STREAM))


def test_more_runs_begin_with_those_of_fewer() -> None:
    assert run_seeds(3, 10)[:4] == run_seeds(3, 4)


@pytest.mark.parametrize(
    ("seed", "runs", "role", "sentence"),
    [
        (-1, 5, "all", "seed is -1, but must be at least 0."),
        (2**53, 5, "all", f"seed is {2**53}, but must be at most 9007199253."),
        (0, 1_000_001, "all", "runs is 1000001, but a seed has room for 1000000 runs; ask for fewer"),
        (1, 501, "decide", "runs is 501, but a seed has room for 500 runs that decide; ask for fewer"),
        (1, 501, "search", "runs is 501, but a seed has room for 500 runs that search; ask for fewer"),
    ],
)
def test_what_no_stream_has_is_refused(seed: int, runs: int, role: Role, sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        run_seeds(seed, runs, role=role)
    assert str(refused.value).startswith(sentence)


def test_members_share_a_seed_or_have_one_each() -> None:
    assert member_seeds(3, 2) == [3, 3]
    assert member_seeds(range(2), 2) == [0, 1]
    with pytest.raises(Refused, match="3 seeds were given for 2 networks; give one for all, or one for each"):
        member_seeds([0, 1, 2], 2)
    for wrong in ("ab", 1.5, None, [0, 0.5], [], object()):
        with pytest.raises(Refused, match=r"seed is .*, but must be a whole number such as 0"):
            member_seeds(wrong, 2)  # type: ignore[arg-type]
