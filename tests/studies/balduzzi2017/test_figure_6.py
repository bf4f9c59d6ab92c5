"""Figure 6's trials, networks, claims and figure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest
import torch

from skiplab import data
from skiplab.checks import Refused, TimeIsUp
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.randomness import run_seeds, torch_generator
from skiplab.reproduction import NOT_SAID, Bench, Results
from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.results import Part
from skiplab.reproduction.verdict import judge
from skiplab.studies.balduzzi2017.figure_6 import STUDY, evidence, study, trials
from skiplab.studies.balduzzi2017.figure_6.study import Settings
from skiplab.studies.balduzzi2017.figure_6.trials import ThinNetworks, ThinTraining
from skiplab.training import History

TINY = ThinTraining(
    images=30, epochs=3, batch_size=15, padding=1, window=2, patience=1, threshold=10.0, drop=0.5
)
NETWORKS = ThinNetworks("digits", "relu", 6, (0, 1), TINY, test_epochs=(1,))
PICTURES = TensorSet(
    torch.randn(4, 3, 16, 16, generator=torch_generator("pictures")), torch.arange(4), 10, "noise", "noise"
)


def calls_of(settings: Settings) -> list[ThinNetworks]:
    return [call.settings for call in study.deciding(Results(settings))]


def run(settings: ThinNetworks, bench: Bench | None = None) -> pd.DataFrame:
    return trials.train.function(settings, bench or Bench())


# Trials ------------------------------------------------------------------------------------------------------


def test_paper_scale_trains_ten_networks_of_five_models_at_six_depths() -> None:
    linear, *calls = calls_of(STUDY.settings["paper"])
    assert (linear.model, linear.depth) == ("linear", 1)
    assert [call.depth for call in calls] == [depth for depth in (198, 98, 50, 30, 14, 6) for _ in range(5)]
    assert {call.model for call in calls} == {"crelu-ll", "crelu", "resnet", "relu", "prelu-ll"}
    assert {call.seeds for call in calls} == {tuple(range(10))}
    assert {(call.training.images, call.training.padding) for call in calls} == {(None, 4)}


def test_networks_decide_in_the_first_stage_where_there_is_nothing_to_search() -> None:
    results = Results(STUDY.settings["quick"])
    assert {call.stage for call in study.search(results)} == {"train"}
    assert study.search(results) == study.deciding(results)
    assert study.train(results) == []
    searching = Results(STUDY.settings["smoke"])
    assert {call.stage for call in study.search(searching)} == {"search"}
    assert study.train(searching) == study.deciding(searching)


def test_learning_rates_are_searched_on_seeds_of_their_own() -> None:
    settings = dataclasses.replace(
        STUDY.settings["smoke"], models=("crelu-ll", "resnet"), depths=(6,), unnormalised=("crelu-ll",)
    )
    searched = [call.settings for call in study.search(Results(settings))]
    assert [(call.model, call.training.rate) for call in searched] == [
        ("crelu-ll", 1e-3),
        ("crelu-ll", 3e-3),
        ("resnet", 1e-3),
        ("resnet", 3e-3),
    ]
    assert {call.model for call in searched if call.training.batch_norm} == {"resnet"}
    deciding = calls_of(settings)
    seeds = [{seed for call in calls for seed in call.seeds} for calls in (searched, deciding)]
    assert seeds[0].isdisjoint(seeds[1])


def test_the_rate_with_the_best_lower_bound_is_taken() -> None:
    """A rate that is better on average but fails in one network of three loses."""
    settings = dataclasses.replace(STUDY.settings["smoke"], models=("resnet",), depths=(6,))
    accuracies = {1e-3: (0.6, 0.61, 0.62), 3e-3: (0.9, 0.9, 0.1)}
    parts = [
        Part(
            trials.train.name,
            "search",
            pd.DataFrame({"quantity": "accuracy", "epoch": 1, "seed": range(3), "value": values}),
            {"data": "digits", "model": "resnet", "depth": 6, "training": {"rate": rate}},
        )
        for rate, values in accuracies.items()
    ]
    results = Results(settings, parts)
    assert evidence.best_rate(results, "digits", "resnet", 6) == 1e-3
    chosen = {call.settings.model: call.settings.training.rate for call in study.train(results)}
    assert chosen == {"resnet": 1e-3, "linear": settings.rate}
    assert evidence.best_rate(results, "digits", "resnet", 10) == settings.rate


def test_networks_can_be_spread_over_smaller_trials() -> None:
    settings = dataclasses.replace(
        STUDY.settings["smoke"], runs=10, together=4, depths=(6,), models=("relu",), seed=2
    )
    seeds = [call.seeds for call in calls_of(settings) if call.model == "relu"]
    drawn = run_seeds(2, 10)
    assert seeds == [tuple(drawn[:4]), tuple(drawn[4:8]), tuple(drawn[8:])]


def test_quick_scale_has_enough_runs_for_a_verdict() -> None:
    settings = STUDY.settings["quick"]
    assert settings.runs >= 5
    assert max(settings.depths) == 50


def test_all_that_can_be_reduced_reaches_the_trial() -> None:
    changes = {"epochs": 7, "images": 90, "batch_size": 11, "rate": 0.02, "batch_norm": False, "window": 4}
    settings = dataclasses.replace(STUDY.settings["smoke"], **changes, checkpoint_every=3, test_images=5)  # type: ignore[arg-type]
    call = calls_of(settings)[0]
    assert {name: getattr(call.training, name) for name in changes} == changes
    assert (call.checkpoint_every, call.test_images) == (3, 5)


@pytest.mark.parametrize("depth", [2, 7, 8, 200])
def test_depths_that_are_not_4r_plus_2_are_refused(depth: int) -> None:
    with pytest.raises(Refused, match=f"depth is {depth}, but these networks have 4r"):
        trials.blocks_of(depth)
    assert trials.blocks_of(198) == 49


def test_losses_accuracies_and_the_drops_that_they_brought_are_recorded() -> None:
    frame = run(NETWORKS)
    wide = frame.pivot(index="epoch", columns=["quantity", "seed"], values="value")
    # Every measurement is slow, so the rate halves after every epoch from the second on.
    assert wide["rate_factor"].to_numpy().tolist() == [[1, 1], [1, 1], [0.5, 0.5]]
    assert wide["test_accuracy"].notna().to_numpy().tolist() == [[True] * 2, [False] * 2, [True] * 2]
    assert bool(wide["loss"].notna().to_numpy().all())
    assert bool(((wide["accuracy"] * 30).round(3) % 1 == 0).to_numpy().all())  # of 30 images


@pytest.mark.parametrize("model", list(trials.KINDS))
def test_a_network_does_not_depend_on_its_company(model: str) -> None:
    settings = dataclasses.replace(NETWORKS, model=model, training=dataclasses.replace(TINY, epochs=1))
    together = run(settings)
    alone = run(dataclasses.replace(settings, seeds=(1,)))
    kept = together[together["seed"] == 1].reset_index(drop=True)
    assert kept["network_id"].tolist() == alone["network_id"].tolist()
    assert kept["quantity"].tolist() == alone["quantity"].tolist()
    assert kept["value"].tolist() == pytest.approx(alone["value"].tolist(), rel=1e-5)


def test_a_trial_goes_on_from_its_checkpoint_bit_for_bit(tmp_path: Path) -> None:
    settings = dataclasses.replace(NETWORKS, model="crelu-ll")
    expected = run(settings)
    stops = 0
    while True:
        try:
            found = run(settings, Bench(checkpoints=tmp_path, deadline=0.0))
            break
        except TimeIsUp:
            stops += 1
    assert stops == 2
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_a_diverged_network_answers_at_chance_from_then_on() -> None:
    loss = torch.tensor([[1.0, 1.0], [0.5, torch.nan]])
    rows = [
        {"member": member, "epoch": epoch, "quantity": "test_accuracy", "value": 0.7}
        for epoch in (0, 1, 2)
        for member in (0, 1)
    ]
    history = History(torch.where(loss.isnan(), torch.nan, 0.8), loss, torch.tensor([False, True]), rows)
    found = pd.DataFrame(trials.rows_of(history, [[1.0, 1.0]] * 2, 0.1))
    wide = found.pivot(index="epoch", columns=["quantity", "member"], values="value")
    assert wide["test_accuracy"][0].tolist() == [0.7, 0.7, 0.7]
    assert wide["test_accuracy"][1].tolist() == [0.7, 0.7, 0.1]
    assert wide["accuracy"][1].tolist()[1:] == pytest.approx([0.8, 0.1])


# Samples and networks ----------------------------------------------------------------------------------------


def test_test_images_are_standardised_with_the_training_images_and_small_ones_enlarged() -> None:
    settings = dataclasses.replace(NETWORKS, test_images=7)
    found = trials.held_out(settings, "cpu")
    expected = data.tensors("digits", "test", images=30, flat=False)
    assert found.inputs.shape == (7, 1, 16, 16)
    assert torch.equal(found.inputs[:, :, ::2, ::2], expected.inputs[:7])
    assert torch.equal(found.inputs[:, :, 1::2, 1::2], expected.inputs[:7])
    assert torch.equal(found.labels, expected.labels[:7])


def test_accuracy_is_that_of_the_members_in_evaluation_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = trials.held_out(NETWORKS, "cpu")
    modules = [trials.build(NETWORKS, samples, seed) for seed in (0, 1)]
    for module in modules:
        module(samples.inputs)  # running statistics of its own
    ensemble = Ensemble.of(modules).train()
    expected = [
        float((module.eval()(samples.inputs).argmax(1) == samples.labels).double().mean())
        for module in modules
    ]
    assert trials.accuracy(ensemble, samples) == pytest.approx(expected)
    monkeypatch.setattr(trials, "TEST_CHUNK", 7)
    assert trials.accuracy(ensemble, samples) == pytest.approx(expected)


def test_the_linear_baseline_is_one_matrix() -> None:
    settings = dataclasses.replace(NETWORKS, model="linear", depth=1)
    network = trials.build(settings, PICTURES, 0).double()
    x = PICTURES.inputs.double()
    (weight,) = [value for value in network.parameters() if value.ndim == 2]
    assert weight.shape == (10, 3 * 16 * 16)
    torch.testing.assert_close(network(x), x.flatten(1) @ weight.T)
    assert not torch.equal(weight, next(trials.build(settings, PICTURES, 1).double().parameters()))


@pytest.mark.parametrize("model", list(trials.KINDS))
def test_models_differ_as_they_should(model: str) -> None:
    """Only looks-linear networks are linear, only the residual one has shortcuts, and all are as large."""
    settings = dataclasses.replace(NETWORKS, model=model, depth=14)
    network = trials.build(settings, PICTURES, 0).double().eval()
    x = PICTURES.inputs.double()
    with torch.no_grad():
        # Without biases a ReLU network is homogeneous, so only a change of sign tells it from a linear one.
        bend = float((network(x) + network(-x)).norm() / network(x).norm())
    assert (bend < 1e-12) == (model in ("crelu-ll", "prelu-ll"))
    assert any("shortcut" in name for name, _ in network.named_modules()) == (model == "resnet")
    reference = trials.build(dataclasses.replace(settings, model="relu"), PICTURES, 0)
    count, wanted = (sum(p.numel() for p in net.parameters()) for net in (network, reference))
    assert count == pytest.approx(wanted, rel=0.05)


def test_batch_normalisation_can_be_left_out() -> None:
    settings = dataclasses.replace(NETWORKS, training=dataclasses.replace(TINY, batch_norm=False))
    parts = trials.build(settings, PICTURES, 0).modules()
    assert not any(isinstance(part, torch.nn.BatchNorm2d) for part in parts)


@pytest.mark.slow
@pytest.mark.parametrize("model", list(trials.KINDS))
def test_198_layers_train(model: str) -> None:
    training = dataclasses.replace(TINY, images=8, batch_size=4, epochs=2)
    frame = run(ThinNetworks("digits", model, 198, (0,), training))
    assert not frame["diverged"].any()
    assert bool(frame["value"].notna().all())


# Claims and figure -------------------------------------------------------------------------------------------

SETTINGS = dataclasses.replace(
    STUDY.settings["quick"], data=("digits",), runs=6, depths=(6, 14, 50), models=tuple(trials.KINDS)
)
FALLING = {6: 0.6, 14: 0.5, 50: 0.3}
FLAT = {6: 0.6, 14: 0.6, 50: 0.6}


def results_of(
    means: Mapping[str, Mapping[int, float]], settings: Settings = SETTINGS, linear: float = 0.4
) -> Results:
    """A study's results with these test accuracies, which networks scatter by a tenth of a point."""
    rows = [
        {
            "network_id": f"{model}-{depth}-{seed}",
            "data": "digits",
            "model": model,
            "depth": depth,
            "seed": seed,
            "diverged": False,
            "epoch": epoch,
            "quantity": quantity,
            "value": mean * epoch / 6 + seed / 1000,
        }
        for model, by_depth in {**means, "linear": {1: linear}}.items()
        for depth, mean in by_depth.items()
        for seed in range(6)
        for epoch in (3, 6)
        for quantity in ("accuracy", "test_accuracy", "loss")
    ]
    return Results(settings, [Part(trials.train.name, "train", pd.DataFrame(rows))])


def searched(results: Results) -> Results:
    """The same, as if each model's rate had been searched at every depth."""
    parts = [
        Part(
            trials.train.name,
            "search",
            pd.DataFrame(),
            {"data": "digits", "model": model, "depth": depth, "training": {"rate": 1e-3}},
        )
        for model in SETTINGS.models
        for depth in SETTINGS.depths
    ]
    return Results(results.settings, [*parts, *results.parts])


def with_further(results: Results, accuracies: Mapping[str, float], rate: float = 1e-4) -> Results:
    """The same with six networks of 50 layers of some models, in two trials, at a further learning rate."""
    parts = [
        Part(
            trials.train.name,
            "further",
            pd.DataFrame(
                [
                    {"seed": seed, "epoch": 6, "quantity": "test_accuracy", "value": mean + seed / 1000}
                    for seed in seeds
                ]
            ),
            {"data": "digits", "model": model, "depth": 50, "training": {"rate": rate}},
        )
        for model, mean in accuracies.items()
        for seeds in (range(3), range(3, 6))
    ]
    return Results(results.settings, [*results.parts, *parts])


AS_THE_PAPER = {"crelu-ll": FLAT, "crelu": FALLING, "resnet": FLAT, "relu": FALLING, "prelu-ll": FALLING}


def test_the_papers_curves_make_every_claim_hold() -> None:
    found = judge(STUDY, searched(results_of(AS_THE_PAPER)), "quick")
    headlines = [(row.claim, row.condition) for row in found if row.headline and not row.ours]
    assert {row.verdict for row in found if row.headline} == {"holds"}
    assert headlines == [
        ("looks-linear-trains-deeper", "digits, against relu, 50 layers"),
        ("looks-linear-trains-deeper", "digits, against crelu, 50 layers"),
        *(
            ("rectifiers-fall-with-depth", f"digits, {model}, {step} layers")
            for model in ("relu", "crelu")
            for step in ("6 against 50", "from 6 to 14", "from 14 to 50")
        ),
        ("relu-below-linear", "digits, 50 layers"),
        ("crelu-above-prelu", "digits, 50 layers"),
        ("looks-linear-as-residual", "digits, 50 layers, best rates"),
    ]
    below = next(row for row in found if row.claim == "relu-below-linear")
    assert below.statistic == pytest.approx(0.4 - 0.3 - 0.0025, abs=1e-6)
    assert {row.claim for row in found if row.ours} == {"linear-baseline"}
    assert {row.paired for row in found if len(row.means) > 1} == {True}


def test_a_step_that_rises_leaves_steadily_to_the_papers_depths() -> None:
    """Where ours rise between two depths the figure's may not; a network that is no worse at the end contradicts."""
    for curve, verdict in (
        ({6: 0.5, 14: 0.6, 50: 0.3}, "undecided"),
        ({6: 0.5, 14: 0.3, 50: 0.6}, "contradicted"),
    ):
        means = AS_THE_PAPER | {"relu": curve}
        found = judge(STUDY, searched(results_of(means)), "quick")
        (judged,) = [each for each in judgements(found) if each.claim == "rectifiers-fall-with-depth"]
        assert judged.verdict == verdict
        (silent,) = [row for row in judged.rows if row.missing]
        assert (silent.condition, silent.missing) == ("digits, relu, the figure's depths", NOT_SAID)
        assert ("from 6 to 14" in silent.detail) == (verdict == "undecided")
        assert [row.condition for row in judged.further] == [
            "digits, relu, from 6 to 14 layers",
            "digits, relu, from 14 to 50 layers",
        ]


def test_what_was_not_trained_waits_for_its_run() -> None:
    settings = dataclasses.replace(SETTINGS, models=SETTINGS.models[:4])
    results = results_of({model: AS_THE_PAPER[model] for model in settings.models}, settings)
    waiting = {each.claim for each in judgements(judge(STUDY, results, "quick")) if each.waits}
    assert waiting == {"crelu-above-prelu", "looks-linear-as-residual"}


def test_networks_that_learn_at_another_rate_contradict() -> None:
    """ReLU and CReLU networks at 10⁻⁴ count as those at the common rate do: dead, or better than looks-linear."""
    dead = searched(results_of(AS_THE_PAPER))
    claims = ["looks-linear-trains-deeper", "relu-below-linear"]
    for mean, verdict in ((0.1, "holds"), (0.7, "contradicted")):
        found = judge(STUDY, with_further(dead, {"relu": mean, "crelu": 0.1}), "quick")
        said = {each.claim: each.verdict for each in judgements(found)}
        assert [said[claim] for claim in claims] == [verdict] * 2
        rows = {row.condition: row for row in found if row.headline}
        row = rows["digits, against relu at rate 0.0001, 50 layers"]
        assert (row.paired, row.runs) == (True, 6)
        assert row.statistic == pytest.approx(0.6 - mean)
        assert rows["digits, 50 layers, relu at rate 0.0001"].statistic == pytest.approx(0.4 - mean - 0.0025)
        died = "6 of 6 relu networks of 50 layers never learn" if mean == 0.1 else ""
        assert row.detail == died


def test_further_rates_are_tried_in_the_deepest_networks_without_skips() -> None:
    settings = dataclasses.replace(
        STUDY.settings["smoke"], runs=3, together=2, depths=(6, 10), further_rates=(1e-4,), seed=1
    )
    calls = study.further(Results(settings))
    assert [(call.settings.model, call.settings.depth, len(call.settings.seeds)) for call in calls] == [
        (model, 10, seeds) for model in ("relu", "crelu") for seeds in (2, 1)
    ]
    assert {call.settings.training.rate for call in calls} == {1e-4}
    assert {call.stage for call in calls} == {"further"}
    assert study.further(Results(STUDY.settings["paper"])) == []


def test_at_one_learning_rate_looks_linear_and_residual_networks_are_not_judged() -> None:
    worse = AS_THE_PAPER | {"crelu-ll": FALLING}
    rows = [
        row for row in judge(STUDY, results_of(worse), "quick") if row.claim == "looks-linear-as-residual"
    ]
    (headline,) = [row for row in rows if row.headline]
    assert (headline.verdict, headline.runs) == ("undecided", 0)
    assert "--set rates=" in headline.detail
    further = next(row for row in rows if row.condition == "digits, 50 layers, one rate")
    assert further.statistic == pytest.approx(-0.3)
    assert further.verdict == "contradicted"


def test_rows_say_at_what_rate_networks_were_trained_and_how_many_never_learn() -> None:
    dead = AS_THE_PAPER | {"relu": FALLING | {50: 0.1}}
    alone = "one learning rate for all models, 0.001"
    for results, words in (
        (results_of(dead), alone),
        (searched(results_of(dead)), "rates chosen for each model"),
    ):
        found = judge(STUDY, results, "quick")
        details = {(row.claim, row.condition): row.detail for row in found if row.headline}
        expected = f"6 epochs at {words}; 6 of 6 relu networks of 50 layers never learn"
        assert details["relu-below-linear", "digits, 50 layers"] == expected
        assert details["rectifiers-fall-with-depth", "digits, relu, 6 against 50 layers"] == expected
        assert details["looks-linear-trains-deeper", "digits, against relu, 50 layers"] == expected
        assert (
            details["looks-linear-trains-deeper", "digits, against crelu, 50 layers"]
            == f"6 epochs at {words}"
        )


def test_one_depth_has_no_order_but_is_judged_all_the_same() -> None:
    alone = dataclasses.replace(SETTINGS, depths=(50,))
    found = judge(STUDY, searched(results_of(AS_THE_PAPER, alone)), "quick")
    verdicts = {row.claim: row.verdict for row in found}
    assert verdicts == {
        "looks-linear-trains-deeper": "holds",
        "rectifiers-fall-with-depth": "undecided",
        "relu-below-linear": "holds",
        "linear-baseline": "holds",
        "crelu-above-prelu": "holds",
        "looks-linear-as-residual": "holds",
    }


def test_other_curves_contradict_them() -> None:
    rising = {6: 0.45, 14: 0.5, 50: 0.55}
    means = {"crelu-ll": FALLING, "crelu": rising, "resnet": FLAT, "relu": rising, "prelu-ll": FLAT}
    found = judge(STUDY, searched(results_of(means, linear=0.5)), "quick")
    assert {each.claim: each.verdict for each in judgements(found)} == dict.fromkeys(
        [claim.id for claim in STUDY.claims], "contradicted"
    )
    # At six layers both have the same accuracy.
    assert found[-1].condition == "digits, 6 layers, best rates"
    assert found[-1].verdict == "holds"


def test_the_figure_has_a_line_per_model_and_a_tick_per_depth() -> None:
    figure = STUDY.figure(results_of(AS_THE_PAPER))
    test, training = figure.axes
    assert test.get_title("left") == "Digits, test (6 epochs, 6 networks)"
    assert training.get_title("left") == "Digits, training (6 epochs, 6 networks)"
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [
        "linear classifier (paper)",
        "CReLU, looks linear",
        "CReLU",
        "ResNet",
        "ReLU",
        "PReLU, looks linear",
    ]
    assert [text.get_text() for text in test.get_xticklabels()] == ["6", "14", "50"]
    heights = test.containers[3].lines[0].get_ydata()  # the ReLU networks' means
    assert heights.tolist() == pytest.approx([0.6025, 0.5025, 0.3025])


def test_memory_is_counted_for_images_as_the_networks_see_them() -> None:
    assert trials.train.memory is not None
    deeper = dataclasses.replace(NETWORKS, depth=10)
    assert trials.train.memory(deeper, "cpu") > trials.train.memory(NETWORKS, "cpu") > 0
    kept = dataclasses.replace(deeper, depth=50)
    # Activities that are computed again are not kept.
    spared = dataclasses.replace(kept, checkpoint_every=4)
    assert trials.train.memory(spared, "cpu") < trials.train.memory(kept, "cpu")
