"""Figure 5's trials, networks, claims and figure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F

from skiplab.data import TensorSet
from skiplab.measurements.gradient_shattering import GradientShattering, gradient_shattering
from skiplab.randomness import torch_generator
from skiplab.reproduction import Bench, Results
from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.results import Part, matching
from skiplab.reproduction.verdict import judge
from skiplab.studies.balduzzi2017.figure_5 import STUDY, evidence, plot, trials
from skiplab.studies.balduzzi2017.figure_5.trials import ConvnetGradients
from skiplab.studies.balduzzi2017.images import samples_of

TINY = ConvnetGradients("digits", "plain", 3, (2, 4), ("loss", "sum"), 4, 24, 2, images=60, clusters=3)


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch_generator("noise"), dtype=torch.float64)


# Trials ------------------------------------------------------------------------------------------------------


def test_each_run_has_a_trial_per_model_and_the_first_gives_the_pictures() -> None:
    named = STUDY.stages[0](Results(STUDY.settings["paper"]))
    calls = [call.settings for call in named if call.trial is trials.measure]
    assert len(calls) == 90
    assert {call.depths for call in calls} == {(2, 4, 10, 24, 50)}
    assert {(call.samples, call.minibatches) for call in calls} == {(256, 1)}
    pictured = [(call.seed, call.model, call.clusters) for call in calls if call.clusters]
    assert pictured == [(0, "plain", 10), (0, "resnet-0.1", 10)]
    drawn = [call.settings for call in named if call.trial is trials.structure]
    assert [(call.seed, call.model) for call in drawn] == [(0, "plain"), (0, "resnet-0.1")]
    clustered = [call.settings for call in named if call.trial is trials.blocks]
    assert [(call.seed, call.model) for call in clustered[:3]] == [
        (30, "plain"),
        (30, "resnet-0.1"),
        (30, "white"),
    ]
    assert len(clustered) == 90
    assert {(call.clusters, call.gradients) for call in (*drawn, *clustered)} == {(10, ("loss",))}


def test_structure_is_looked_at_in_networks_that_nothing_else_has_seen() -> None:
    calls = STUDY.stages[0](
        Results(dataclasses.replace(STUDY.settings["paper"], seed=2, runs=3, cluster_runs=4))
    )
    seeds = {
        trial: sorted({call.settings.seed for call in calls if call.trial is trial})
        for trial in (trials.measure, trials.structure, trials.blocks)
    }
    assert list(seeds.values()) == [
        [2_000_000, 2_000_001, 2_000_002],
        [2_000_000],
        list(range(2_000_003, 2_000_007)),
    ]


def test_networks_of_a_run_share_weights_and_those_of_depths_and_seeds_do_not() -> None:
    images = samples_of("digits", "train", 60, None, "cpu")

    def weights(settings: ConvnetGradients, depth: int = 4) -> torch.Tensor:
        state = trials.build(settings, images, depth).state_dict()
        return torch.cat([state["stem.weight"].flatten(), state["blocks.0.conv1.weight"].flatten()])

    plain = weights(TINY)
    assert torch.equal(plain, weights(dataclasses.replace(TINY, model="resnet-0.1")))
    assert not torch.equal(plain, weights(TINY, depth=2))
    assert not torch.equal(plain, weights(dataclasses.replace(TINY, seed=4)))
    residual = trials.build(dataclasses.replace(TINY, model="resnet-0.1"), images, 2)
    assert (residual.skip, residual.beta) == (True, 0.1)


def test_minibatches_are_of_distinct_images_and_a_runs_own() -> None:
    inputs = torch.arange(60.0)
    images = TensorSet(inputs, torch.arange(60), 10, "numbers", "numbers")
    first, second = (labels for _, labels in trials.minibatches(TINY, images))
    other = next(trials.minibatches(dataclasses.replace(TINY, seed=4), images))[1]
    like = next(trials.minibatches(dataclasses.replace(TINY, model="resnet-1"), images))[1]
    assert len(set(first.tolist())) == 24
    assert torch.equal(first, like)
    assert not torch.equal(first, second)
    assert not torch.equal(first, other)


def test_the_gradient_of_the_loss_is_the_chain_rule_over_the_outputs() -> None:
    images = samples_of("digits", "train", 60, None, "cpu")
    network = trials.build(TINY, images, 2).double()
    x, labels = images.inputs[:6].double(), images.labels[:6]
    found = trials.gradients(network, (x, labels), "loss").gradients[0]
    outputs = network.train()(x).detach()
    errors = outputs.softmax(1) - F.one_hot(labels, 10)  # dℓ/df for the cross-entropy
    expected = sum(
        errors[:, k : k + 1] * gradient_shattering(network, x, outputs=k, mode="batch").gradients[0]
        for k in range(10)
    )
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-9)


def test_like_gradients_come_side_by_side() -> None:
    kinds = torch.tensor([2, 0, 1, 1, 0, 2, 2, 0, 1])
    rows = 10 * F.one_hot(kinds, 5).double() + 0.1 * draw(9, 5)
    order = trials.in_order(trials.clustered(rows, 3, seed=0))
    assert sorted(order) == list(range(9))
    assert order == trials.in_order(trials.clustered(rows, 3, seed=0))
    groups = kinds[order].reshape(3, 3)
    assert bool((groups == groups[:, :1]).all())


def test_structure_is_the_log_ratio_of_mean_covariances() -> None:
    matrix = draw(5, 5).abs().numpy()
    labels = [0, 1, 0, 2, 1]
    same = [matrix[i, j] for i in range(5) for j in range(5) if i != j and labels[i] == labels[j]]
    other = [matrix[i, j] for i in range(5) for j in range(5) if labels[i] != labels[j]]
    assert trials.alike(matrix, labels) == pytest.approx(np.log(np.mean(same) / np.mean(other)))


def test_blocks_explain_what_an_analysis_of_variance_says() -> None:
    """One-way, by pairs of clusters, over the entries below the diagonal; blocks of one value explain all."""
    from scipy import stats

    matrix = draw(12, 12).abs().numpy()
    matrix = matrix + matrix.T
    labels = np.array([0, 1, 2, 0, 1, 2, 2, 2, 0, 1, 1, 0])
    groups: dict[frozenset[int], list[float]] = {}
    for i in range(12):
        for j in range(i):
            groups.setdefault(frozenset((int(labels[i]), int(labels[j]))), []).append(matrix[i, j])
    assert len(groups) == 6
    f = stats.f_oneway(*groups.values()).statistic
    share = 5 * f / (5 * f + 66 - 6)
    assert trials.explained(matrix, labels) == pytest.approx(share)
    means, counts = trials.block_means(matrix, labels)
    assert (means[2, 1], counts[2, 1]) == pytest.approx((np.mean(groups[frozenset((1, 2))]), 16))
    assert counts.sum() == 66
    alone = means[np.maximum.outer(labels, labels), np.minimum.outer(labels, labels)]
    assert trials.explained(alone, labels) == pytest.approx(1.0)


def test_blocks_see_clusters_of_opposite_gradients_and_likeness_does_not() -> None:
    """Two clusters along ±u and two along ±v: |correlation| is large in blocks off the diagonal too."""
    labels = np.repeat(np.arange(4), 12)
    directions = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])[labels]
    rows = np.concatenate([3 * directions, draw(48, 40).numpy() * 0.3], axis=1)
    found = GradientShattering(torch.from_numpy(rows)[None]).covariance[0].numpy()
    matrix = found / np.sqrt(np.outer(found.diagonal(), found.diagonal()))
    assert trials.explained(matrix, labels) > 0.9
    # Each cluster has one equal among three others: three times as alike, where by sign it would be far more.
    assert trials.alike(matrix, labels.tolist()) < np.log(3)


def test_deep_networks_are_judged_by_the_blocks_of_shallow_ones() -> None:
    frame = trials.blocks.function(dataclasses.replace(TINY, depths=(2, 4, 6)), Bench())
    images = samples_of("digits", "train", 60, None, "cpu")
    batch = next(trials.minibatches(TINY, images))
    shallow, deep = (trials.gradients(trials.build(TINY, images, depth), batch, "loss") for depth in (2, 6))
    labels = np.array(trials.clustered(shallow.gradients[0], 3, seed=3))
    assert matching(frame, quantity="cluster size")["value"].tolist() == np.bincount(labels).tolist()
    covariance = deep.covariance[0].double().numpy()
    sizes = np.sqrt(covariance.diagonal())
    for words, matrix in (("", covariance / np.outer(sizes, sizes)), ("covariance ", covariance)):
        both = [
            matching(frame, depth=6, quantity=words + name)["value"].item()
            for name in ("structure", "permuted")
        ]
        assert sum(both) == pytest.approx(trials.explained(matrix, labels), rel=1e-4)
    means, counts = trials.block_means(covariance / np.outer(sizes, sizes), labels)
    kept = matching(frame, depth=6, quantity="block")
    assert len(kept) == np.count_nonzero(counts)
    for row, column, value in zip(kept["row"], kept["column"], kept["value"], strict=True):
        assert value == pytest.approx(means[row, column], rel=1e-5)


def test_permuted_blocks_explain_as_much_as_chance_does() -> None:
    """Of white noise's many entries (blocks − 1) in (entries − 1), and beyond it only what its clustering makes."""
    settings = dataclasses.replace(TINY, model="white", samples=40)
    frame = trials.blocks.function(settings, Bench())
    chance = matching(frame, quantity="permuted")["value"].item()
    assert chance == pytest.approx((6 - 1) / (40 * 39 / 2 - 1), rel=0.5)
    assert set(frame["depth"]) == {0}


def test_pictures_show_the_clusters_of_shallow_networks() -> None:
    frame = trials.structure.function(dataclasses.replace(TINY, depths=(2, 4, 6)), Bench())
    images = samples_of("digits", "train", 60, None, "cpu")
    batch = next(trials.minibatches(TINY, images))
    shallow, deep = (trials.gradients(trials.build(TINY, images, depth), batch, "loss") for depth in (2, 6))
    labels = trials.clustered(shallow.gradients[0], 3, seed=3)
    sizes = matching(frame, quantity="cluster size")["value"].tolist()
    assert sizes == [labels.count(cluster) for cluster in range(3)]
    found = matching(frame, quantity="structure").set_index("depth")["value"]
    assert found.index.tolist() == [2, 6]
    covariance = deep.covariance[0].double().numpy()
    sizes = np.sqrt(covariance.diagonal())
    assert found[6] == pytest.approx(trials.alike(covariance / np.outer(sizes, sizes), labels), rel=1e-4)
    other = matching(frame, quantity="covariance structure").set_index("depth")["value"]
    assert other[6] == pytest.approx(trials.alike(covariance, labels), rel=1e-4)


def test_white_gradients_have_the_structure_that_clustering_makes() -> None:
    white = [
        matching(
            trials.structure.function(dataclasses.replace(TINY, model="white", seed=seed), Bench()),
            quantity="structure",
        )["value"].item()
        for seed in range(4)
    ]
    assert len(set(white)) == 4
    assert abs(np.mean(white)) < 0.5


def test_half_of_a_covariance_gives_all_of_it_back() -> None:
    found = GradientShattering(draw(1, 5, 7))
    order = [3, 1, 4, 0, 2]
    kept = pd.DataFrame(trials.lower_triangle(found, order), columns=["row", "column", "value"])
    assert len(kept) == 15
    expected = found.covariance[0].numpy()[np.ix_(order, order)]
    np.testing.assert_allclose(plot.whole(kept), expected, rtol=0, atol=0.0051)  # two decimals are kept


def test_a_trials_rows_are_what_the_measurement_says() -> None:
    frame = trials.measure.function(TINY, Bench())
    images = samples_of("digits", "train", 60, None, "cpu")
    network = trials.build(TINY, images, 4)
    batch = list(trials.minibatches(TINY, images))[1]
    found = gradient_shattering(network, batch[0], mode="batch")
    rows = matching(frame, depth=4, minibatch=1, gradient="sum")
    values = rows.set_index("quantity")["value"]
    assert values["mean_norm"] == pytest.approx(float(found.mean_norm[0]), rel=1e-5)
    white = found.relative_effective_rank(torch_generator("white")).value
    assert values["relative_rank"] == pytest.approx(float(white[0]), rel=1e-5)
    # 24·25/2 entries of the first minibatch's loss alone; two minibatches of two kinds of gradient.
    for quantity, count in (("covariance", 300), ("mean_norm", 4), ("relative_rank", 4)):
        depths = matching(frame, quantity=quantity)["depth"]
        assert depths.value_counts().to_dict() == {2: count, 4: count}


# Claims and figure -------------------------------------------------------------------------------------------

SETTINGS = dataclasses.replace(STUDY.settings["quick"], data=("digits",), runs=8, samples=4)
Curve = Callable[[np.ndarray], np.ndarray]


STRUCTURE = {
    ("plain", 2): 0.3,
    ("resnet-0.1", 2): 0.5,
    ("white", 0): 0.05,
    ("plain", 50): 0.0,
    ("resnet-0.1", 50): 0.4,
}


def results_of(
    ranks: dict[str, Curve],
    norms: dict[str, Curve],
    settings: Any = SETTINGS,
    structure: dict[tuple[str, int], float] = STRUCTURE,
) -> Results:
    """Results with these curves over log depth and structures, which runs scatter a little."""
    rows = []
    logs = np.log(SETTINGS.depths)
    for quantity, curves in (("relative_rank", ranks), ("mean_norm", norms)):
        for model, curve in curves.items():
            for seed in range(8):
                noise = 0.01 * np.cos(seed * logs + len(model))
                for depth, value in zip(SETTINGS.depths, curve(logs) + noise, strict=True):
                    rows.append((quantity, model, seed, depth, 0, 0, value))
    for model, depth in (("plain", 2), ("plain", 50), ("resnet-0.1", 2), ("resnet-0.1", 50)):
        for row in range(4):
            rows.extend(("covariance", model, 0, depth, row, column, 1.0) for column in range(row + 1))
    names = ["quantity", "model", "seed", "depth", "row", "column", "value"]
    table = pd.DataFrame(rows, columns=names).assign(data="digits", gradient="loss", minibatch=0)
    return Results(settings, [Part(trials.measure.name, "stage", table), *clusters_of(structure)])


def clusters_of(structure: dict[tuple[str, int], float]) -> list[Part]:
    """Structures that runs scatter a little, and two clusters of two images."""
    names = ["quantity", "model", "seed", "depth", "row", "value"]
    rows = [
        (quantity, model, seed, depth, 0, mean + 0.01 * np.cos(seed))
        for quantity in evidence.STRUCTURES
        for (model, depth), mean in structure.items()
        for seed in range(8)
    ]
    sizes = [("cluster size", model, 0, 2, row, 2) for model in ("plain", "resnet-0.1") for row in range(2)]
    return [
        Part(trial.name, "stage", pd.DataFrame(each, columns=names).assign(data="digits"))
        for trial, each in ((trials.blocks, rows), (trials.structure, sizes))
    ]


def line(start: float, slope: float) -> Curve:
    return lambda logs: start + slope * (logs - logs[0])


def power(slope: float) -> Curve:
    return lambda logs: np.exp(slope * (logs - logs[0]))


RANKS = {"plain": line(0.1, 0.2), "resnet-1": line(0.1, 0.07), "resnet-0.1": line(0.1, 0.0)}
NORMS = {"plain": power(-0.5), "resnet-1": power(-0.2), "resnet-0.1": power(0.0)}


def test_the_papers_curves_make_every_claim_hold() -> None:
    found = judge(STUDY, results_of(RANKS, NORMS), "quick")
    assert {row.verdict for row in found} == {"holds"}
    assert {each.verdict for each in judgements(found)} == {"holds"}
    assert sum(row.headline for row in found) == 5 + 7
    slopes = {(row.claim, row.condition): row.statistic for row in found if "slope" in row.condition}
    # Slopes without skips, and β = 1's, less the others': rank .2 less .07 and 0, .07 less 0; norm −.5, −.2 and 0.
    assert list(slopes.values()) == pytest.approx([0.13, 0.2, 0.07, 0.3, 0.5], abs=0.02)
    logs = np.log(SETTINGS.depths)
    grown = next(row for row in found if row.claim == "smaller-beta-slows-growth")
    assert grown.statistic == pytest.approx(0.07 * (logs[1:] - logs[0]).mean(), abs=0.02)


@pytest.mark.parametrize(("slope", "verdict"), [(0.1, "holds"), (0.2, "contradicted"), (0.3, "contradicted")])
def test_faster_is_judged_and_how_much_is_told(slope: float, verdict: str) -> None:
    """A rank that rises by .2 without skips; pairs of runs, and how many times as fast beside them."""
    results = results_of(RANKS | {"resnet-1": line(0.1, slope)}, NORMS)
    found = judge(STUDY, results, "quick")
    rows = [row for row in found if row.claim == "rank-grows-faster-without-skips"]
    row = rows[0]
    assert (row.verdict, row.paired) == (verdict, True)
    without, skips = (
        evidence.speeds(results, "relative_rank", "digits", "loss", model, "mean change since the shallowest")
        for model in ("plain", "resnet-1")
    )
    assert row.statistic == pytest.approx((without - skips).mean())
    assert row.detail.startswith(f"{without.mean():.3g} against {skips.mean():.3g}")
    assert ("2 times as much" in row.detail) == (slope == 0.1)
    (judged,) = [each for each in judgements(found) if each.claim == row.claim]
    assert judged.verdict == verdict


def test_curves_the_other_way_round_contradict_every_claim() -> None:
    ranks = {"plain": line(0.1, 0.02), "resnet-1": line(0.1, 0.07), "resnet-0.1": line(0.1, 0.2)}
    norms = {"plain": power(-0.05), "resnet-1": power(-0.2), "resnet-0.1": power(-0.5)}
    shattered = {
        ("plain", 2): 0.05,
        ("resnet-0.1", 2): 0.0,
        ("white", 0): 0.05,
        ("plain", 50): 0.4,
        ("resnet-0.1", 50): 0.0,
    }
    found = judge(STUDY, results_of(ranks, norms, structure=shattered), "quick")
    assert {row.verdict for row in found if not row.missing} == {"contradicted"}
    assert {each.verdict for each in judgements(found)} == {"contradicted"}


def test_structure_that_was_never_there_has_not_disappeared() -> None:
    """Two layers as unstructured as 50, and as white noise: nothing is left, and nothing was lost."""
    found = judge(STUDY, results_of(RANKS, NORMS, structure=STRUCTURE | {("plain", 2): 0.05}), "quick")
    rows = {row.claim: row for row in found if row.headline}
    assert rows["structure-gone-without-skips"].verdict == "contradicted"
    assert rows["structure-gone-without-skips"].statistic == pytest.approx(0.0, abs=0.01)
    left = rows["no-structure-in-deep-feedforward-networks"]
    assert (left.verdict, left.source) == ("holds", "ours")


def test_a_quantity_that_has_reached_its_end_grew_faster_than_one_on_its_way() -> None:
    wide = pd.DataFrame([[0.1, 0.6, 0.6, 0.6, 0.6], [0.1, 0.2, 0.3, 0.4, 0.6]], columns=list(SETTINGS.depths))
    assert evidence.growth(wide).tolist() == pytest.approx([0.5, 0.275])
    fast, slow = evidence.slope(wide)
    assert fast < slow  # which is why slopes do not decide
    expected = np.polyfit(np.log(SETTINGS.depths), wide.to_numpy().T, 1)[0]
    np.testing.assert_allclose([fast, slow], expected)


def test_growth_beyond_ten_layers_is_a_claim_of_ours() -> None:
    ranks = RANKS | {"plain": lambda logs: 0.5 - 0.1 * np.abs(logs - np.log(10))}
    found = judge(STUDY, results_of(ranks, NORMS), "quick")
    (row,) = [row for row in found if row.claim == "rank-grows-beyond-ten-layers"]
    assert row.condition == "digits, feedforward, gradient of the loss, 10 to 50 layers"
    assert (row.source, row.verdict) == ("ours", "contradicted")
    assert row.statistic == pytest.approx(-0.1 * np.log(5), abs=0.02)
    shallow = dataclasses.replace(SETTINGS, depths=(4, 2))
    (row,) = evidence.beyond(results_of(RANKS, NORMS, shallow))
    assert row.condition.endswith("2 to 4 layers")


def test_depths_may_come_in_any_order() -> None:
    """The order of the pictures is the shallowest network's, and curves keep their depths."""
    frames = [
        trials.measure.function(dataclasses.replace(TINY, depths=depths), Bench())
        for depths in ((2, 4), (4, 2))
    ]
    pd.testing.assert_frame_equal(*frames)
    turned = dataclasses.replace(SETTINGS, depths=SETTINGS.depths[::-1])
    figures = [STUDY.figure(results_of(RANKS, NORMS, settings)) for settings in (SETTINGS, turned)]
    curves = [[line.get_xydata() for line in figure.axes[-2].get_lines()] for figure in figures]
    for one, other in zip(*curves, strict=True):
        np.testing.assert_allclose(one, other)


def test_the_figure_shows_four_covariances_and_two_curves() -> None:
    figure = STUDY.figure(results_of(RANKS, NORMS))
    pictures = [ax for ax in figure.axes if ax.get_title("left")]
    titles = [ax.get_title("left").replace("\n", " ") for ax in pictures]
    assert titles == [
        "Feedforward, 2 layers",
        "Feedforward, 50 layers",
        "Resnet, β = .1, 2 layers",
        "Resnet, β = .1, 50 layers",
    ]
    for ax in pictures:
        (image,) = ax.get_images()
        assert image.get_clim() == pictures[0].get_images()[0].get_clim()
        assert [line.get_xdata()[0] for line in ax.get_lines()[1::2]] == [1.5]  # two clusters of two images
        assert ax.get_xlabel() == "image, by cluster"
    (bar,) = [ax for ax in figure.axes if ax.get_ylabel() == "|covariance| / σ²"]
    assert bar.get_ylim()[0] == 0
    ranks, norms = figure.axes[-2:]
    assert [text.get_text() for text in ranks.get_xticklabels()] == ["2", "4", "10", "24", "50"]
    assert norms.get_yscale() == "log"
    low, high = norms.get_ylim()
    assert sum(low <= tick <= high for tick in norms.get_yticks()) >= 4
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["Feedforward", "Resnet, β = 1", "Resnet, β = .1", "White noise"]
