"""The cases are what they say: two lists that share nothing, and in every planted case the defect is there."""

from __future__ import annotations

import csv
from typing import Any

import pytest
import torch
from cases import development, held_out
from cases.check_healthy import planned
from cases.following import outputs, rms, sites
from cases.lists import TABLE, ChangedCase, Control, PlantedCase, SickCase, planted, sick_network, spoilt
from cases.networks import SMALL, TRAINED, Network, build, is_stock
from cases.planting import ACCEPTED, CannotBePlanted, plant
from cases.spoiling import ACCEPTED as OF_DATA
from torch import Tensor, nn

from skiplab.subjects.residual_blocks import residual_blocks

LISTS = (development, held_out)
Case = PlantedCase | Control | SickCase | ChangedCase


def cases_of(which: object) -> list[Case]:
    return [*which.PLANTED, *which.CONTROLS, *which.SICK, *which.CHANGED]  # type: ignore[attr-defined]


def networks_of(which: object) -> set[str]:
    paired = {name for plain, residual, _ in which.PAIRS for name in (plain, residual)}  # type: ignore[attr-defined]
    return {case.network for case in cases_of(which)} | paired | set(getattr(which, "STOCK", ()))


def seeds_of(which: object) -> list[int]:
    return [case.seed for case in cases_of(which)] + [seed for _, _, seed in which.PAIRS]  # type: ignore[attr-defined]


def marked(cases: list[Case]) -> list[object]:
    """Cases as parameters, those of other libraries' networks slow."""
    slow = pytest.mark.slow
    return [
        pytest.param(case, id=case.name, marks=[slow] if is_stock(case.network) else []) for case in cases
    ]


def test_the_lists_share_no_network_and_no_seed_and_names_are_unique() -> None:
    assert not networks_of(development) & networks_of(held_out)
    seeds = [*seeds_of(development), *seeds_of(held_out), held_out.STOCK_SEED]
    assert len(set(seeds)) == len(seeds)
    names = [case.name for which in LISTS for case in cases_of(which)]
    assert len(set(names)) == len(names)


def test_the_lists_are_as_long_as_the_issue_asks() -> None:
    assert [len(held_out.PLANTED), len(held_out.CONTROLS), len(held_out.SICK)] == [20, 20, 20]
    assert len(development.PLANTED) >= 30
    assert len(development.CONTROLS) >= 30
    assert len(development.SICK) >= 10
    for which, most in ((held_out, 20), (development, 40)):
        assert 12 <= len({case.network for case in which.PLANTED}) <= most
        assert {case.defect for case in which.PLANTED} == set(ACCEPTED)
        assert len({case.network for case in which.CONTROLS}) >= 15


def test_networks_that_are_used_are_there_and_all_that_are_there_are_used() -> None:
    used = networks_of(development) | networks_of(held_out)
    assert {name.removeprefix(TRAINED) for name in used if not is_stock(name)} == set(SMALL)


def gradient(network: Network) -> Tensor:
    network.loss(network.model, network.batch).backward()
    return torch.cat([p.grad.flatten() for p in network.model.parameters() if p.grad is not None])


@pytest.mark.parametrize("name", SMALL)
def test_a_network_is_built_the_same_for_a_seed_and_otherwise_for_another(name: str) -> None:
    first, again, other = build(name, 3), build(name, 3), build(name, 4)
    weights = [
        torch.cat([p.detach().flatten() for p in made.model.parameters()]) for made in (first, again, other)
    ]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert len(first.batches) == 4
    assert torch.equal(first.batch[0], again.batch[0])
    assert not torch.equal(first.batch[0], other.batch[0])
    assert gradient(first).shape == weights[0].shape


STOCK = sorted(filter(is_stock, networks_of(development) | networks_of(held_out)))


@pytest.mark.slow
@pytest.mark.parametrize("name", STOCK)
def test_a_stock_network_is_built_and_has_a_loss(name: str) -> None:
    made = build(name, 3)
    with torch.no_grad():
        assert bool(made.loss(made.model, made.batch).isfinite())


@pytest.mark.parametrize("case", marked([*development.SICK, *held_out.SICK]))
def test_a_sick_network_is_built_and_has_a_loss(case: SickCase) -> None:
    made = sick_network(case)
    assert bool(made.loss(made.model, made.batch).isfinite())


def spread(answer: Tensor) -> float:
    """How much an answer differs between samples."""
    return float((answer - answer[:1]).abs().max())


def check_dead(case: PlantedCase, made: Network, layer: str, places: frozenset[str]) -> None:
    before = build(case.network, case.seed)
    act = next(name for name in places if is_activation(before, name))
    for mode in (True, False):
        passed = outputs(made.model, made.batch, {act}, train=mode)[act]
        assert float(passed.abs().max()) < 1e-6
    assert spread(outputs(before.model, before.batch, {act})[act]) > 0


def is_activation(made: Network, name: str) -> bool:
    """Whether a place is the activation: a module without parameters."""
    part = dict(made.model.named_modules()).get(name)
    return part is not None and not any(True for _ in part.parameters())


def check_duplicated(made: Network, layer: str, tolerance: float) -> None:
    part = made.model.get_submodule(layer)
    transposed = isinstance(part, nn.ConvTranspose2d) or hasattr(part, "nf")
    weight = (part.weight.transpose(0, 1) if transposed else part.weight).detach().flatten(1)
    apart = torch.cdist(weight.double(), weight.double(), compute_mode="donot_use_mm_for_euclid_dist")
    apart = apart / weight.double().square().sum(1).sqrt()
    apart.fill_diagonal_(torch.inf)
    one, other = divmod(int(apart.argmin()), len(weight))
    assert float(apart.min()) <= tolerance
    assert (float(apart.min()) == 0) == (tolerance == 0)
    assert part.bias is None or part.bias[one] == part.bias[other]
    apart[one, other] = apart[other, one] = torch.inf
    assert float(apart.min()) > 0.05  # no other pair


def check_branch(case: PlantedCase, made: Network, layer: str, places: frozenset[str]) -> None:
    before = build(case.network, case.seed)
    blocks = [block for block in residual_blocks(made.model, made.batch).blocks if block.name in places]
    assert blocks
    assert layer in blocks[0].layers
    name = blocks[0].name.partition("#")[0]
    sizes = [rms(outputs(each.model, each.batch, {name})[name]) for each in (before, made)]
    assert sizes[1] > 5 * sizes[0]


def check_saturated(made: Network, layer: str, places: frozenset[str]) -> None:
    act = next(name for name in places if kind(made, name) in ("tanh", "sigmoid", "hardsigmoid"))
    answer = outputs(made.model, made.batch, {act})[act]
    low, high = (-1, 1) if kind(made, act) == "tanh" else (0, 1)
    near = torch.minimum(answer - low, high - answer) < 0.02 * (high - low)
    assert float(near.float().mean()) > 0.9


def kind(made: Network, name: str) -> str:
    return type(dict(made.model.named_modules()).get(name)).__name__.lower()


def check_gain(case: PlantedCase, made: Network, layer: str) -> None:
    before = build(case.network, case.seed)
    ratio = made.model.get_submodule(layer).weight / before.model.get_submodule(layer).weight
    torch.testing.assert_close(ratio[ratio.isfinite()], torch.full_like(ratio[ratio.isfinite()], 100))
    gains = {site.layer: site.product / max(site.given, 1e-30) for site in sites(made.model, made.batch)}
    assert max(gains, key=gains.__getitem__) == layer
    assert gains.pop(layer) > 5 * max(gains.values())


@pytest.mark.parametrize("case", marked([*development.PLANTED, *held_out.PLANTED]))
def test_a_planted_defect_is_there(case: PlantedCase) -> None:
    made, found = planted(case)
    assert found.layer in found.places
    assert found.places <= set(dict(made.model.named_modules())) | set(
        residual_blocks(made.model, made.batch).names
    )
    match case.defect:
        case "dead-layer":
            check_dead(case, made, found.layer, found.places)
        case "duplicated-unit":
            check_duplicated(made, found.layer, 0)
        case "nearly-duplicated-unit":
            check_duplicated(made, found.layer, 1e-4)
        case "exploding-branch":
            check_branch(case, made, found.layer, found.places)
        case "saturated":
            check_saturated(made, found.layer, found.places)
        case "outlying-gain":
            check_gain(case, made, found.layer)
        case "zero-head":
            assert found.layer == sites(made.model, made.batch)[-1].layer
            assert not any(p.any() for p in made.model.get_submodule(found.layer).parameters())


def test_a_defect_changes_a_copy_and_leaves_the_network_as_it_is() -> None:
    made = build("residual-mlp-6x48", 5)
    kept = {name: tensor.clone() for name, tensor in made.model.state_dict().items()}
    for defect in ACCEPTED:
        if defect != "saturated":
            changed = plant(defect, made, 6).model.state_dict()
            assert any(not torch.equal(changed[name], tensor) for name, tensor in kept.items())
    assert all(torch.equal(made.model.state_dict()[name], tensor) for name, tensor in kept.items())


def test_the_seed_chooses_the_layer() -> None:
    made = build("mlp-relu-8x80", 5)
    chosen = {plant("outlying-gain", made, seed).layer for seed in range(12)}
    assert len(chosen) > 3


def test_a_network_without_a_tanh_or_sigmoid_cannot_be_saturated() -> None:
    with pytest.raises(CannotBePlanted, match="saturated in Sequential"):
        plant("saturated", build("mlp-relu-8x80", 5), 6)


@pytest.mark.parametrize("case", marked([*development.CONTROLS, *held_out.CONTROLS]))
def test_a_control_has_no_layer_of_zeros_and_no_unit_twice(case: Control) -> None:
    made = build(case.network, case.seed)
    for site in sites(made.model, made.batch):
        part = made.model.get_submodule(site.layer)
        weight = part.weight.detach().flatten(1)
        assert weight.any(), site.layer
        if getattr(part, "groups", 1) == 1:
            assert len(weight.unique(dim=0)) == len(weight), site.layer


def test_the_table_says_that_every_control_trains_and_no_sick_network_does() -> None:
    with TABLE.open() as file:
        verdicts = {(row["list"], row["kind"], row["case"]): row["verdict"] for row in csv.DictReader(file)}
    for name in ("development", "held_out"):
        known = {key: verdict for key, verdict in verdicts.items() if key[0] == name}
        assert set(known) == {(name, kind, case.name) for kind, case in planned(name)}
        for (_, kind, case), verdict in known.items():
            if kind != "changed":
                assert verdict == ("does not train" if kind == "sick" else "trains"), case


@pytest.mark.parametrize("which", LISTS, ids=("development", "held out"))
def test_every_rule_about_data_has_cases_that_train_and_cases_that_do_not(which: Any) -> None:
    for rule in OF_DATA:
        kinds = [case.kind for case in which.CHANGED if case.rule == rule]
        assert min(kinds.count("spoilt"), kinds.count("harmless")) >= 4, rule


def test_changes_of_data_are_of_the_size_that_the_case_s_name_tells() -> None:
    for case in development.CHANGED:
        before, after = build(case.network, case.seed), spoilt(case)
        part = 1 if case.change.endswith("targets") else 0
        pair = [torch.cat([batch[part] for batch in made.batches]).double() for made in (before, after)]
        size = float(case.name.split(" × ")[1].split(" of ")[0])
        match case.change.partition("-")[0]:
            case "off":
                assert float((pair[1] - pair[0]).mean() / pair[0].std()) == pytest.approx(size, rel=1e-4)
            case "scaled":
                torch.testing.assert_close(pair[1], size * pair[0], rtol=1e-5, atol=1e-5)
            case "unequal":
                ratio = pair[1].flatten(0, -2).std(0) / pair[0].flatten(0, -2).std(0)
                ratio = ratio[ratio.isfinite()].sort().values
                assert float(ratio[-1]) == pytest.approx(size, rel=1e-4)
                torch.testing.assert_close(ratio[:-1], torch.ones_like(ratio[:-1]))
