"""Remedies tried side by side: ranked by what they reach in the same steps; the network stays as it is."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch import Tensor, nn

import skiplab.diagnosis.remedy_trials as home
from skiplab.checks import Refused
from skiplab.diagnosis.factory import Factory
from skiplab.diagnosis.remedy_trials import try_remedies
from skiplab.diagnosis.trial_results import RemedyTrials
from skiplab.randomness import torch_generator
from skiplab.remedies.catalogue import Remedy
from skiplab.remedies.treated import Treated


def samples(count: int = 80) -> tuple[Tensor, Tensor]:
    x = torch.randn(count, 6, generator=torch_generator(0, "samples"))
    return x, x[:, :3].argmax(1)


def sick() -> nn.Module:
    """A network whose weights are far too small to train."""

    def make() -> nn.Module:
        net = nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 10), nn.Tanh(), nn.Linear(10, 3))
        for part in net:
            if isinstance(part, nn.Linear):
                nn.init.normal_(part.weight, std=1e-4)
        return net

    return Factory("sick", make)(0)


def remedy(name: str, change: Callable[[nn.Module, int], Any], penalty: Any = None) -> Remedy:
    def apply(model: nn.Module, batch: Any, *, seed: int = 0, where: Any = None) -> Treated:
        changed = copy.deepcopy(model)
        other = change(changed, seed)
        return Treated(other if isinstance(other, nn.Module) else changed, f"{name} was done", penalty)

    return Remedy(name, name, "ours", "ours", apply)


def redraw(model: nn.Module, seed: int) -> None:
    for number, part in enumerate(model):  # type: ignore[arg-type]
        if isinstance(part, nn.Linear):
            nn.init.xavier_normal_(part.weight, generator=torch_generator(seed, "weights", number))


def refuse(model: nn.Module, seed: int) -> None:
    raise Refused("there is no branch to scale; add skips first.")


def fail(model: nn.Module, seed: int) -> None:
    raise RuntimeError("cannot be followed\nat all")


def explode(model: nn.Module, seed: int) -> nn.Module:
    class Bad(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x) * torch.inf

    return Bad()


CATALOGUE = {
    each.id: each
    for each in (
        remedy("redraw", redraw),
        remedy("nothing", lambda model, seed: None),
        remedy("deeper", lambda model, seed: nn.Sequential(*model, nn.Linear(3, 3))),
        remedy("pull", lambda model, seed: None, penalty=lambda model: 10 * model[4].bias.square().sum()),
        remedy("refuses", refuse),
        remedy("fails", fail),
        remedy("explodes", explode),
    )
}


def tried(**more: Any) -> RemedyTrials:
    given: dict[str, Any] = {"steps": 40, "seeds": 4, "rate": 0.01, "catalogue": CATALOGUE, "batch_size": 20}
    return try_remedies(sick(), samples(), **(given | more))


@pytest.fixture(scope="module")
def found() -> RemedyTrials:
    return tried()


def test_what_helps_is_ranked_first_and_is_the_best(found: RemedyTrials) -> None:
    assert found.candidates[0].id == "redraw"
    assert found.best == "redraw"
    difference = found.differences["redraw"]
    assert difference.high < 0
    expected = found["redraw"].finals - found["untreated"].finals
    half = stats.t.ppf(0.975, 3) * stats.sem(expected)
    assert (difference.value, difference.high) == pytest.approx((expected.mean(), expected.mean() + half))


def test_a_remedy_that_does_nothing_ties_exactly(found: RemedyTrials) -> None:
    assert np.array_equal(found["nothing"].loss, found["untreated"].loss)
    assert found.differences["nothing"].value == 0
    assert "nothing" not in found.improving


def test_refusals_and_failures_are_listed_with_their_reason(found: RemedyTrials) -> None:
    assert found.refused == {
        "refuses": "there is no branch to scale; add skips first.",
        "fails": "it could not be applied (RuntimeError: cannot be followed).",
    }
    assert "refused: refuses: there is no branch" in repr(found)


def test_a_candidate_that_diverges_is_said_and_ranked_last(found: RemedyTrials) -> None:
    assert found.candidates[-1].id == "explodes"
    assert "–, 4 of 4 diverged" in repr(found)
    assert found["explodes"].diverged.all()


def test_a_penalty_takes_part_in_training(found: RemedyTrials) -> None:
    assert not np.allclose(found["pull"].loss[:, -1], found["untreated"].loss[:, -1])
    assert np.allclose(found["pull"].loss[:, 0], found["untreated"].loss[:, 0])


def test_together_and_one_by_one_come_to_the_same(found: RemedyTrials) -> None:
    alone = tried(
        remedies=["redraw"], loss_fn=lambda model, batch: F.cross_entropy(model(batch[0]), batch[1])
    )
    for name in ("redraw", "untreated"):
        assert np.allclose(alone[name].loss, found[name].loss, rtol=1e-3, atol=1e-5)
    assert np.isnan(alone["redraw"].accuracy).all()


def test_large_networks_are_trained_apart_with_the_same_outcome(
    found: RemedyTrials, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home, "APART", 1)
    assert np.allclose(tried(remedies=["redraw"])["redraw"].loss, found["redraw"].loss, rtol=1e-4, atol=1e-6)


def test_the_users_module_stays_as_it_is() -> None:
    model = sick().eval()
    model[0].weight.requires_grad_(False)
    before, stream = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    try_remedies(model, samples(), steps=3, seeds=2, rate=0.01, batch_size=20, catalogue=CATALOGUE)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert not model.training
    assert all(weight.grad is None for weight in model.parameters())
    assert [weight.requires_grad for weight in model.parameters()] == [False] + [True] * 5
    assert torch.equal(stream, torch.get_rng_state())


def test_the_treated_copy_is_untrained_and_ones_own(found: RemedyTrials) -> None:
    treated = found.treated("redraw")
    expected = sick()
    redraw(expected, found.seeds[0])
    assert torch.equal(treated.model[0].weight, expected[0].weight)  # type: ignore[index]
    assert found.treated("redraw").model is not treated.model
    assert found.treated("pull").penalty is not None
    with pytest.raises(Refused, match=r"remedy 'redrow' is unknown; .* Did you mean redraw"):
        found.treated("redrow")


def test_text_table_json_notebook_and_figure(found: RemedyTrials) -> None:
    text = repr(found)
    assert text.startswith(
        "Remedies tried on Sequential: 4 seeds, 40 steps of Adam on 80 samples in batches of 20"
    )
    assert "best: redraw" in text
    assert "redraw: redraw was done" in text
    assert "cost: 24 networks trained, 0 of them to choose rates" in text
    assert len(found.frame()) == 24
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["candidates"][0]["minus_untreated"]["high"] < 0
    assert "<td>redraw</td>" in found._repr_html_()
    lines = [line for line in found.plot().axes[0].get_lines() if not line.get_label().startswith("_")]
    assert len({line.get_color() for line in lines}) == len(lines) == 6


def test_rates_are_chosen_for_each_candidate_on_seeds_apart() -> None:
    searched = tried(rate=None, rates=[1e-4, 1e-2, 1e-1], remedies=["redraw"], steps=20)
    assert searched.searched == 2 * 3 * 2
    for each in searched.candidates:
        assert sorted(each.rate.tried) == [1e-4, 1e-2, 1e-1]
        assert each.rate.rate != 1e-4
    assert "12 of them to choose rates" in repr(searched)


def test_no_remedy_is_best_where_none_helps() -> None:
    none = tried(remedies=["nothing"], steps=5)
    assert none.best is None
    assert "no remedy is shown to be better" in repr(none)


def test_ctrl_c_keeps_what_is_finished() -> None:
    def stop(model: nn.Module, seed: int) -> nn.Module:
        if seen:
            raise KeyboardInterrupt
        seen.append(1)
        return nn.Sequential(*model, nn.Linear(3, 3))

    seen: list[int] = []
    stopping = {"redraw": CATALOGUE["redraw"], "stops": remedy("stops", stop)}
    part = tried(catalogue=stopping, steps=5)
    assert {each.id for each in part.candidates} == {"redraw", "untreated"}
    assert part.stopped
    assert "stopped by Ctrl-C: stops not finished" in repr(part)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"remedies": ["redrew"]}, "remedy 'redrew' is unknown; .* Did you mean redraw"),
        ({"remedies": "redraw"}, "must be a list of names"),
        ({"steps": 0}, "steps is 0, but must be a whole number"),
        ({"rate": 0.1, "rates": [0.1]}, "both rate and rates were given"),
        ({"criterion": F.cross_entropy, "loss_fn": F.cross_entropy}, "both criterion and loss_fn were given"),
    ],
)
def test_bad_input_gets_one_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        tried(**change)


def test_what_is_no_network_or_has_no_loss_is_refused() -> None:
    with pytest.raises(Refused, match=r"a int was given; pass a torch.nn.Module"):
        try_remedies(3, samples())  # type: ignore[arg-type]
    with pytest.raises(Refused, match=r"Sequential cannot be trained: no loss: .*; pass criterion"):
        try_remedies(sick(), (torch.zeros(4, 6), torch.zeros(4, 3)), catalogue=CATALOGUE)


def test_skips_of_the_catalogue_help_a_deep_tanh_network() -> None:
    def make() -> nn.Module:
        layers = [nn.Sequential(nn.Linear(12, 12), nn.Tanh()) for _ in range(20)]
        return nn.Sequential(nn.Linear(6, 12), *layers, nn.Linear(12, 3))

    helped = try_remedies(
        Factory("deep", make)(0),
        samples(),
        remedies=["skips-identity", "hardt-ma"],
        steps=40,
        seeds=3,
        rate=3e-3,
    )
    assert helped.best == "skips-identity"
    assert set(helped.refused) == {"hardt-ma"}
