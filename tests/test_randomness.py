"""Streams named by their parts: equal names, equal draws; the global generators are left alone."""

from __future__ import annotations

import random

import numpy as np
import torch

from skiplab.randomness import derive, numpy_generator, torch_generator


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
