"""The references: the file is what the tool writes, numbers are those of published tables, damage is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import nn

from oracles.tools_by_path import tool
from skiplab.diagnosis.references import PLACE, Quantity, Support, read_references, references
from skiplab.files import Damaged
from skiplab.measurements.gradient_norms import GradientNorms, gradient_norms
from skiplab.randomness import torch_generator
from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.store import published

FINDINGS = {
    "dead-layer", "dead-units", "zero-weights", "duplicated-units", "saturated-activations", "outlying-gain",
    "exploding-branch", "vanishing-gradients", "exploding-gradients", "vanishing-signals", "exploding-signals",
    "shattered-gradients", "degenerate-curvature", "negative-curvature", "sharp-curvature", "dependent-units",
    "overlapping-weights", "noise-sensitive", "gradient-leaks", "shallow-paths", "deep-paths", "symmetric-units",
    "not-finite", "off-centre-inputs", "unequal-inputs", "off-centre-targets",
    "wide-targets",
}  # fmt: skip


@pytest.fixture(scope="module")
def made() -> ModuleType:
    return tool("references")


# The file ------------------------------------------------------------------------------------------------------


def test_the_file_is_what_the_tool_writes_today(made: ModuleType) -> None:
    assert PLACE.read_bytes() == made.written(), "run `python tools/references.py`"


def test_the_check_says_when_the_file_is_another(
    made: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(made, "PLACE", tmp_path / "references.json")
    monkeypatch.setattr(made, "written", PLACE.read_bytes)
    assert made.main(["--check"]) == 1
    assert made.main([]) == 0
    assert made.main(["--check"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert "is NOT what" in told[0]
    assert "is what" in told[-1]


def test_the_file_is_small_enough_to_ship() -> None:
    assert len(PLACE.read_bytes()) < 64_000


# Numbers -------------------------------------------------------------------------------------------------------


def test_the_decay_of_a_published_network_is_what_the_instrument_says(made: ModuleType) -> None:
    rows = made.rows_of("orhan2017/figure-8", "decide")
    one = rows[(rows["quantity"] == "gradient_norm") & (rows["epoch"] == 0)]
    one = one[one["network_id"] == one["network_id"].iloc[0]].sort_values("layer")
    norms = torch.tensor(one["value"].to_numpy(dtype=float))[None]
    names = tuple(map(str, one["layer"]))
    oracle = GradientNorms(names, norms, norms, samples=500).slope.item() * (len(names) - 1)
    assert made.VALUES["total slope"](one.assign(network=0)).item() == pytest.approx(oracle)
    assert made.VALUES["minus total slope"](one.assign(network=0)).item() == pytest.approx(-oracle)


def test_gradients_of_plain_rectifiers_decay_by_gain_over_root_two_per_layer(made: ModuleType) -> None:
    declared = {
        "id": "some",
        "told_by": "accuracy",
        "studies": {"orhan2017/figure-8": "decide"},
        "where": {"quantity": "gradient_norm", "epoch": 0, "model": "plain"},
        "value": "total slope",
    }
    found = made.networks(declared).groupby("gain")["value"].median()
    assert len(found) == 4
    for gain, decay in found.items():  # a rectifier passes half of the squared gradient on
        assert decay == pytest.approx(-math.log(gain / math.sqrt(2)) * 29, abs=0.5)


def test_the_initial_gain_is_the_gain_of_a_layer_and_root_two_of_it_the_branch_ratio(
    made: ModuleType,
) -> None:
    import pandas as pd

    inputs, units, gain = 50, 200_000, 0.3
    stream = np.random.default_rng(0)
    x = stream.exponential(size=inputs)  # any input will do, of any mean
    pushed = stream.normal(0, gain / math.sqrt(inputs), (units, inputs)) @ x
    of_layer, of_branch = (np.sqrt(np.mean(y**2) / np.mean(x**2)) for y in (pushed, pushed.clip(0)))
    row = pd.DataFrame({"network": [0], "gain": [gain]})
    assert made.VALUES["gain"](row).item() == pytest.approx(of_layer, rel=0.01)
    assert made.VALUES["gain over root two"](row).item() == pytest.approx(of_branch, rel=0.01)


@pytest.mark.parametrize(("gain", "skip", "decay", "growth"), [
    (2**0.5, 0, "healthy", "healthy"), (0.3, 0, "sick", "healthy"),
    (0.2, 1, "healthy", "healthy"), (2**0.5, 1, "healthy", "sick"),
])  # fmt: skip
def test_networks_drawn_anew_are_placed_where_published_ones_lie(
    gain: float, skip: int, decay: str, growth: str
) -> None:
    stream = torch_generator(0, "drawn anew")
    network = nn.Sequential(*(Block(48, gain, skip, stream) for _ in range(30)), nn.Linear(48, 10))
    batch = torch.randn(64, 48, generator=stream), torch.randint(10, (64,), generator=stream)
    norms = gradient_norms(network, batch, criterion=nn.CrossEntropyLoss(), mode="train")
    assert len(norms.layers) == 30
    total = norms.slope.item() * 29
    assert placed(references().quantities["gradient-decay"], total) == decay
    assert placed(references().quantities["gradient-growth"], -total) == growth


def placed(quantity: Quantity, value: float) -> str:
    """Where a value lies, of a quantity of which sick networks have more."""
    assert quantity.healthy is not None
    assert quantity.sick is not None
    return (
        "healthy" if value <= quantity.healthy.high else "sick" if value >= quantity.sick.low else "between"
    )


class Block(nn.Module):
    """ReLU(W x) + skip · x."""

    def __init__(self, width: int, gain: float, skip: int, stream: torch.Generator) -> None:
        super().__init__()
        self.linear, self.skip = nn.Linear(width, width, bias=False), skip
        nn.init.normal_(self.linear.weight, 0, gain / math.sqrt(width), generator=stream)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).relu() + self.skip * x


def test_a_layer_without_gradient_has_vanished_altogether(made: ModuleType) -> None:
    import pandas as pd

    rows = pd.DataFrame({"network": 0, "layer": [1, 2, 3], "value": [0.0, 1.0, 2.0]})
    assert made.VALUES["total slope"](rows).item() == math.inf


def test_healthy_and_sick_are_told_by_the_share_of_the_best_accuracy(made: ModuleType) -> None:
    import pandas as pd

    share = [1.0, 0.7, 0.69, 0.51, 0.5, 0.2, 0.1]
    accuracy = [0.7 * each for each in share]
    table = pd.DataFrame({"data": "cifar10", "share": share, "accuracy": accuracy, "value": np.arange(7.0)})
    healthy, sick, never = made.sides({"id": "some", "told_by": "accuracy"}, table)
    assert healthy.tolist() == [0, 1]
    assert sick.tolist() == [4, 5, 6]
    assert never.tolist() == [5, 6]  # 1.5 times the chance of ten classes is .15


def test_a_share_is_one_of_the_best_network_of_the_study_on_the_same_data(made: ModuleType) -> None:
    declared = {
        "id": "some",
        "told_by": "accuracy",
        "studies": {"orhan2018/figure-S7": "wide-units"},
        "where": {"quantity": "overlap", "epoch": 100},
    }
    found = made.networks(declared)
    assert len(found) == 200
    for _, part in found.groupby("data"):
        assert part["share"].max() == 1
        assert part["accuracy"].to_numpy() == pytest.approx(part["share"] * part["accuracy"].max())


def test_the_area_under_the_curve_is_the_share_of_pairs_in_order(made: ModuleType) -> None:
    stream = np.random.default_rng(0)
    healthy, sick = stream.integers(0, 6, 40).astype(float), stream.integers(2, 9, 30).astype(float)
    pairs = [(a > b) + (a == b) / 2 for a in sick for b in healthy]
    assert made.area(healthy, sick) == pytest.approx(sum(pairs) / len(pairs))


def test_quantiles_are_values_that_some_network_has(made: ModuleType) -> None:
    assert made.summed_up(np.array([math.inf, 1.0, 2.0])) == {
        "low": 1.0,
        "median": 2.0,
        "high": 1e308,
        "n": 3,
    }
    assert made.summed_up(np.array([])) is None


def test_a_network_that_two_studies_trained_counts_once(made: ModuleType) -> None:
    declared = {
        "id": "some",
        "told_by": "accuracy",
        "studies": {"orhan2018/figure-3": "decide", "orhan2017/figure-9": "decide"},
        "where": {"quantity": "accuracy", "epoch": 100, "model": "plain"},
    }
    found = made.networks(declared)
    assert found["study"].unique().tolist() == ["orhan2018/figure-3"]
    assert len(found) == 80  # 20 seeds at four gains


# What a reader gets --------------------------------------------------------------------------------------------


def test_every_finding_has_its_support_and_only_known_findings_have_quantities() -> None:
    known = references()
    assert set(known.support) == FINDINGS
    for each in known.quantities.values():
        assert set(each.findings) <= FINDINGS
        assert set(each.applies) <= set(known.applies)
        assert each.told_by in known.rules
        assert set(each.studies) <= set(known.runs)


def test_verdicts_are_those_of_the_published_runs() -> None:
    signs = {"holds": "✓", "contradicted": "✗", "undecided": "?"}
    for support in references().support.values():
        for claim in support.claims:
            run = published().runs(claim.study)[0]
            judged = {each.claim: each for each in judgements(run.verdicts)}[claim.claim]
            assert (claim.verdict, claim.text) == (signs[judged.verdict], judged.text)


def test_what_hardly_tells_healthy_from_sick_never_decides() -> None:
    known = references()
    for each in known.quantities.values():
        apart = each.auc is not None and abs(each.auc - 0.5) > 0.2
        assert apart or each.says_little
        assert each.tells is not bool(each.says_little)


def test_a_reference_names_ranges_and_studies() -> None:
    decay = references().quantities["gradient-growth"].reference
    assert decay.startswith("healthy networks have -10.3 to 2.")
    assert "sick ones 9.32 to 14.6 (orhan2017/figure-8" in decay
    assert (
        references().quantities["path-depth"].reference.startswith("networks with batch normalisation have")
    )


def test_our_own_checks_count_neither_for_nor_against_a_paper() -> None:
    assert references().support["not-finite"].count == "no claim of a paper"
    noise = references().support["noise-sensitive"]
    own = [each for each in noise.claims if each.place == "ours"]
    assert own
    assert noise.count == Support("", tuple(each for each in noise.claims if each not in own)).count
    assert noise.count == "4 claims: 1 hold, 1 contradicted, 2 undecided"


def test_infinity_survives_the_file() -> None:
    never = references().quantities["gradient-decay-early"].never
    assert never is not None
    assert never.high == math.inf


# Damage --------------------------------------------------------------------------------------------------------


def resealed(made: ModuleType, path: Path, **changed: object) -> Path:
    content = json.loads(PLACE.read_bytes())
    content.pop("sha256")
    path.write_bytes(made.sealed_json(content | changed, ensure_ascii=False))
    return path


def test_a_changed_number_is_damage(tmp_path: Path) -> None:
    copy = tmp_path / "references.json"
    copy.write_bytes(PLACE.read_bytes().replace(b'"n": 30', b'"n": 31', 1))
    with pytest.raises(Damaged, match=r"references\.json fails its checksum"):
        read_references(copy)


def test_a_file_without_checksum_or_cut_short_is_damage(tmp_path: Path) -> None:
    copy = tmp_path / "references.json"
    copy.write_text('{"form": 1}')
    with pytest.raises(Damaged, match="has lost its checksum"):
        read_references(copy)
    copy.write_bytes(PLACE.read_bytes()[:5000])
    with pytest.raises(Damaged, match="fails its checksum"):
        read_references(copy)
    with pytest.raises(Damaged, match="is missing"):
        read_references(tmp_path / "nowhere.json")


def test_another_form_and_lacking_parts_are_damage(made: ModuleType, tmp_path: Path) -> None:
    copy = tmp_path / "references.json"
    with pytest.raises(Damaged, match="has form 2, but this skiplab reads 1"):
        read_references(resealed(made, copy, form=2))
    with pytest.raises(Damaged, match=r"lacks something \(KeyError\)"):
        read_references(resealed(made, copy, claims={}))
    with pytest.raises(Damaged, match=r"lacks something \(TypeError\)"):
        read_references(resealed(made, copy, quantities={"some": {"unit": "m"}}))
