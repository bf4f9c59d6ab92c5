"""Models compared on the same batches: who wins, who ties, what is written and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.diagnosis.comparison import compare
from skiplab.diagnosis.comparison.judging import differences, mean_interval
from skiplab.diagnosis.comparison.measuring import ModelMeasure
from skiplab.diagnosis.comparison.result import Comparison
from skiplab.diagnosis.rates import ChosenRate, best_of, cautious, checked_rates, choose_rates
from skiplab.randomness import numpy_generator, torch_generator


class Block(nn.Module):
    def __init__(self, width: int, skip: float) -> None:
        super().__init__()
        self.layer, self.skip = nn.Linear(width, width), skip

    def forward(self, x: Tensor) -> Tensor:
        return self.skip * x + torch.tanh(self.layer(x))


def deep(skip: float, depth: int = 24, width: int = 12) -> nn.Module:
    blocks = [Block(width, skip) for _ in range(depth)]
    return nn.Sequential(nn.Linear(6, width), *blocks, nn.Linear(width, 3))


def samples(count: int = 96) -> tuple[Tensor, Tensor]:
    x = torch.randn(count, 6, generator=torch_generator(0, "samples"))
    return x, x[:, :3].argmax(1)


@pytest.fixture(scope="module")
def found() -> Comparison:
    """A deep tanh network without and with skips."""
    x, y = samples(192)
    return compare(
        {"plain": lambda: deep(0.0), "residual": lambda: deep(1.0)},
        (x[:128], y[:128]),
        test=(x[128:], y[128:]),
        seeds=4,
        steps=60,
        batch_size=32,
        rate=3e-3,
        measure=["gradient_norms", "activation_patterns"],
    )


def test_deep_residual_networks_beat_plain_ones(found: Comparison) -> None:
    (pair,) = found.differences
    assert found.decided_by == "test accuracy"
    assert pair.better == "residual"
    assert pair.value == pytest.approx(
        np.mean(found.sample("plain", "test accuracy") - found.sample("residual", "test accuracy"))
    )
    assert pair.high < 0
    assert found.sample("residual", "final loss").max() < found.sample("plain", "final loss").min()


def test_the_test_of_a_pair_is_students_paired_one(found: Comparison) -> None:
    one, two = (found.sample(name, "test accuracy") for name in found.names)
    assert found.differences[0].p == pytest.approx(stats.ttest_rel(one, two).pvalue)


def test_gradients_of_plain_networks_vanish_in_what_was_measured(found: Comparison) -> None:
    before = {
        each.model: each
        for each in found.measures
        if (each.instrument, each.when) == ("gradient_norms", "before")
    }
    assert before["plain"].values.shape == (4, 24)
    assert before["plain"].in_short.max() < 0.1 * before["residual"].in_short.min()
    assert {each.when for each in found.measures} == {"before", "after"}


def test_what_cannot_be_measured_is_listed_with_its_reason(found: Comparison) -> None:
    assert {(each.model, each.when) for each in found.unmeasured} == {
        (model, when) for model in ("plain", "residual") for when in ("before", "after")
    }
    assert "no rectifier" in found.unmeasured[0].why
    assert len(found.refusals) == 1


def test_the_text_names_models_verdicts_and_measures(found: Comparison) -> None:
    text = repr(found)
    assert text.startswith("2 models, 4 seeds, 60 steps of Adam on 128 samples in batches of 32")
    for words in (
        "residual is better",
        "gradient_norms (norm, mean over layers)",
        "inferred",
        "not measured",
    ):
        assert words in text
    assert max(map(len, text.splitlines())) <= 130


def test_the_table_has_one_row_per_model_seed_and_quantity(found: Comparison) -> None:
    table = found.frame()
    finals = table[table.quantity == "final loss"]
    assert len(finals) == 8
    assert not table.duplicated(["model", "seed", "quantity", "when", "place"]).any()
    ours = finals[finals.model == "plain"].value.to_numpy()
    assert np.array_equal(ours, found.sample("plain", "final loss"))


def test_json_has_no_number_that_json_has_not(found: Comparison) -> None:
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [model["name"] for model in content["models"]] == ["plain", "residual"]
    assert content["differences"][0]["better"] == "residual"
    low, mean, high = (content["models"][0]["final_loss"][end] for end in ("low", "mean", "high"))
    assert low < mean < high


def test_the_page_is_one_file_that_asks_nothing_of_the_network(found: Comparison, tmp_path: Path) -> None:
    page = found.save(tmp_path / "comparison.html").read_text()
    assert "residual is better" in page
    assert "data:image/svg+xml;base64," in page
    asked = re.findall(r"(?:src|href)\s*=\s*[\"']([^\"']*)", page)
    assert all(each.startswith(("#", "data:")) for each in asked)
    assert "url(http" not in page
    assert "<script" not in page
    found.save(tmp_path / "comparison.html")  # over an earlier one


def test_a_page_replaces_nothing_that_is_not_ours(found: Comparison, tmp_path: Path) -> None:
    mine = tmp_path / "mine.html"
    mine.write_text("<html>my own</html>")
    with pytest.raises(Refused, match=r"mine.html exists and is no page of skiplab's; name another"):
        found.save(mine)
    assert mine.read_text() == "<html>my own</html>"
    (tmp_path / "link.html").symlink_to(mine)
    with pytest.raises(Refused, match=r"link.html is a link"):
        found.save(tmp_path / "link.html")
    with pytest.raises(Refused, match=r"page.txt is no name of a page; let it end in .html"):
        found.save(tmp_path / "page.txt")


def test_names_in_a_page_are_text(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    shown = compare(
        {evil: lambda: nn.Linear(6, 3), "b": lambda: nn.Linear(6, 3)}, samples(), seeds=2, steps=2, rate=0.1
    )
    page = shown.save(tmp_path / "page.html").read_text()
    assert "<script>" not in page


def test_the_figure_has_one_colour_per_model(found: Comparison) -> None:
    lines = [line for line in found.plot().axes[0].get_lines() if not line.get_label().startswith("_")]
    assert len({line.get_color() for line in lines}) == len(lines) == 2


def test_equal_models_tie_exactly_since_they_share_seeds_and_batches() -> None:
    tied = compare(
        {"one": lambda: nn.Linear(6, 3), "same": lambda: nn.Linear(6, 3)},
        samples(),
        seeds=4,
        steps=20,
        rate=0.01,
        measure=[],
    )
    (pair,) = tied.differences
    assert pair.value == pair.low == pair.high == 0
    assert pair.better == ""
    assert pair.p == 1


def test_twenty_null_comparisons_give_few_false_verdicts() -> None:
    # At 5 % each, more than 4 of 20 come by chance once in 400 times.
    x, y = samples(64)
    wrong = 0
    for number in range(20):
        models = {
            name: lambda generator, name=name: _drawn(torch_generator(generator.initial_seed(), name))
            for name in (f"a{number}", f"b{number}")
        }
        null = compare(models, (x, y), seeds=6, steps=8, rate=0.01, measure=[])
        wrong += bool(null.differences[0].better)
    assert wrong <= 4


def _drawn(generator: torch.Generator) -> nn.Module:
    layer = nn.Linear(6, 3)
    nn.init.normal_(layer.weight, std=0.5, generator=generator)
    return layer


def test_holm_keeps_false_verdicts_rare_over_all_pairs() -> None:
    drawn = numpy_generator("null families")
    families, wrong = 400, 0
    for _ in range(families):
        shared = drawn.normal(size=8)
        given = {name: shared + 0.3 * drawn.normal(size=8) for name in "abcd"}
        wrong += any(each.better for each in differences("loss", given, lower_is_better=True))
    assert wrong <= stats.binom.ppf(0.999, families, 0.05)


def test_pairing_finds_what_seeds_would_hide() -> None:
    drawn = numpy_generator("paired")
    shared = 100 * drawn.normal(size=8)
    given = {"a": shared, "b": shared + 1 + 0.1 * drawn.normal(size=8)}
    (lower,) = differences("loss", given, lower_is_better=True)
    (higher,) = differences("accuracy", given, lower_is_better=False)
    assert (lower.better, higher.better) == ("a", "b")
    assert stats.ttest_ind(given["a"], given["b"]).pvalue > 0.5


def test_a_model_that_diverges_loses_by_the_sign_test() -> None:
    sound, sick = np.linspace(1, 2, 10), np.full(10, np.nan)
    (pair,) = differences("loss", {"sound": sound, "sick": sick}, lower_is_better=True)
    assert pair.better == "sound"
    assert pair.p == pytest.approx(2 * 0.5**10)
    assert np.isnan(pair.value)
    (pair,) = differences("accuracy", {"sound": sound, "sick": sick}, lower_is_better=False)
    assert pair.better == "sound"


def test_one_seed_and_seeds_without_spread_are_not_judged() -> None:
    (alone,) = differences("loss", {"a": np.array([1.0]), "b": np.array([2.0])}, lower_is_better=True)
    assert "one seed has no spread" in str(alone)
    same = {"a": np.ones(5), "b": np.full(5, 2.0)}
    (flat,) = differences("loss", same, lower_is_better=True)
    assert flat.better == ""
    assert "all seeds gave the same run" in str(flat)


def test_intervals_are_students_and_geometric_where_asked() -> None:
    values = np.array([1.0, 10.0, 100.0])
    low, high = stats.t.interval(0.95, 2, values.mean(), stats.sem(values))
    assert mean_interval(values) == pytest.approx((37.0, low, high))
    assert mean_interval(values, geometric=True)[0] == pytest.approx(10.0)
    assert mean_interval(np.array([0.9, 1.0]), (0.0, 1.0))[2] == 1.0


def test_what_is_measured_by_layer_is_averaged_over_the_layers_that_are_known() -> None:
    values = np.array([[1.0, 100.0, 7.0], [4.0, 4.0, np.nan], [np.nan, np.nan, np.nan]])
    by_layer = ModelMeasure("a", "gradient_norms", "norm", "after", ("0", "1", "2"), values, "layer", True)
    assert by_layer.in_short == pytest.approx([10.0, 4.0, np.nan], nan_ok=True)
    assert by_layer.place == "mean over layers"
    plain = ModelMeasure("a", "saturation", "share", "after", ("0", "1", "2"), values, "activation", False)
    assert plain.in_short == pytest.approx([50.5, 4.0, np.nan], nan_ok=True)
    whole = ModelMeasure("a", "hessian_trace", "trace", "after", ("", "1", "2"), values, "part", False)
    assert whole.in_short == pytest.approx([1.0, 4.0, np.nan], nan_ok=True)


def test_language_models_are_compared_and_treated_by_their_own_loss() -> None:
    transformers = pytest.importorskip("transformers")
    from skiplab.diagnosis.data import named_batch
    from skiplab.diagnosis.remedy_trials import try_remedies

    def make() -> nn.Module:
        sizes = {"vocab_size": 50, "n_positions": 32, "n_embd": 8, "n_layer": 1, "n_head": 1}
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes))

    network = make()
    batches = [named_batch("random", network, 4, seed) for seed in range(3)]
    shown = compare({"one": make, "same": make}, batches, seeds=2, steps=4, rate=0.01)
    assert shown.loss == "loss: the network's own, which its output holds beside the labels"
    assert np.array_equal(shown.sample("one", "final loss"), shown.sample("same", "final loss"))
    assert (shown.runs[0].loss[:, -1] < shown.runs[0].loss[:, 0]).all()
    treated = try_remedies(
        network, batches, remedies=["rescale-branches", "looks-linear"], steps=3, seeds=2, rate=0.01
    )
    assert "looks-linear" in treated.refused
    assert treated.candidates


def test_networks_that_never_learn_and_diverge_are_counted() -> None:
    class Bad(nn.Module):
        def __init__(self, kind: str) -> None:
            super().__init__()
            self.layer, self.kind = nn.Linear(6, 3), kind

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x) * (0 if self.kind == "dead" else torch.inf)

    bad = compare(
        {"dead": lambda: Bad("dead"), "wild": lambda: Bad("wild"), "fine": lambda: nn.Linear(6, 3)},
        samples(), seeds=8, steps=40, rate=0.05, measure=["gradient_norms"],
    )  # fmt: skip
    dead, wild, fine = bad.runs
    assert wild.diverged.all()
    assert dead.never_learn(bad.chance).all()
    assert not dead.diverged.any()
    assert not fine.never_learn(bad.chance).any()
    assert "8 of 8 (68% to 100%) diverged" in repr(bad)
    verdicts = {(each.first, each.second): each.better for each in bad.differences}
    assert verdicts["wild", "fine"] == "fine"
    bad.plot()


# Rates ------------------------------------------------------------------------------------------------------


def test_each_model_gets_its_best_rate_and_an_edge_is_said() -> None:
    def scaled(size: float) -> nn.Module:
        class Scaled(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = nn.Linear(6, 3)

            def forward(self, x: Tensor) -> Tensor:
                return size * self.layer(x)

        return Scaled()

    x, _ = samples()
    noise = torch.randint(3, (96,), generator=torch_generator(0, "labels"))  # large weights fit these badly
    tuned = compare(
        {"small": lambda: scaled(0.1), "large": lambda: scaled(10.0)},
        (x, noise), seeds=2, steps=40, rates=[1e-4, 1e-2, 1.0], measure=[],
    )  # fmt: skip
    small, large = tuned.runs
    assert small.rate.rate > large.rate.rate
    assert small.rate.at_edge
    assert "at the edge: a better one may lie beyond" in " ".join(repr(tuned).split())


def test_a_search_without_given_rates_goes_on_until_the_best_is_inside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class FakeRun:
        def __init__(self, name: str, seed: int, rate: float) -> None:
            self.name, self.seed, self.rate = name, seed, rate
            self.final_loss = abs(np.log10(rate) + 1.6) + 0.001 * seed  # the best of 1, 3, 10, … is 0.03

    def fake(entrants: list[tuple[str, int, float]], *_: object, **__: object) -> list[FakeRun]:
        return [FakeRun(*each) for each in entrants]

    monkeypatch.setattr("skiplab.diagnosis.rates.trained", fake)
    entering = lambda name, seed, rate: (name, seed, rate)  # noqa: E731
    chosen = choose_rates(["a"], entering, None, None, None, seeds=(0, 1), steps=1)["a"]  # type: ignore[arg-type]
    assert chosen.rate == pytest.approx(0.03)
    assert not chosen.at_edge
    assert sorted(chosen.tried) == pytest.approx([3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1])


def test_the_cautious_loss_is_an_upper_end_and_divergence_is_the_worst() -> None:
    values = [1.0, 2.0, 4.0]
    high = stats.t.interval(0.6, 2, np.mean(values), stats.sem(values))[1]
    assert cautious(values) == pytest.approx(high)
    assert cautious([1.0, np.nan]) == np.inf
    assert best_of({1.0: np.inf, 0.1: np.inf}) == 0.1
    assert str(ChosenRate(0.1, {0.1: 1.0, 0.3: 2.0})).endswith("at the edge: a better one may lie beyond)")


# Refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"models": {}}, "models is .* must map names to functions"),
        ({"models": {"a": 3}}, "a is a int; give a function that makes a network"),
        ({"models": {"a": lambda: nn.Linear(5, 3)}}, "6"),
        ({"measure": ["gradient_norm"]}, "'gradient_norm' is unknown; .* Did you mean gradient_norms"),
        ({"measure": "gradient_norms"}, "must be a list of names"),
        ({"steps": 3, "epochs": 2}, "both steps and epochs were given"),
        ({"rate": 0.1, "rates": [0.1]}, "both rate and rates were given"),
        ({"rates": []}, "rates is .* must be a list of numbers"),
        ({"rate": -1.0}, "rate is -1.0, but must be a positive number"),
        ({"seeds": 0}, "seeds is 0, but must be a whole number"),
        ({"data": "digit"}, "data 'digit' is unknown; .* Did you mean digits"),
        ({"data": (torch.zeros(4, 6), torch.zeros(4, 3))}, "a cannot be trained: no loss: .* pass criterion"),
    ],
)
def test_bad_input_gets_one_sentence(change: dict[str, object], sentence: str) -> None:
    given: dict[str, object] = {"models": {"a": lambda: nn.Linear(6, 3)}, "data": samples()} | change
    with pytest.raises(Refused, match=sentence):
        compare(given.pop("models"), given.pop("data"), **given)  # type: ignore[arg-type]


def test_one_rate_needs_no_search() -> None:
    assert checked_rates(0.1, None) == (0.1,)
    assert checked_rates(None, [0.3, 0.1, 0.1]) == (0.1, 0.3)
    assert checked_rates(None, None) is None


# Data -------------------------------------------------------------------------------------------------------


def test_digits_by_name_are_flat_where_a_network_takes_them_so() -> None:
    flat = compare({"a": lambda: nn.Linear(64, 10)}, "digits", seeds=2, epochs=1, rate=0.01, measure=[])
    assert flat.steps == 23
    assert flat.decided_by == "test accuracy"
    assert flat.sample("a", "test accuracy").mean() > 0.5


def test_regressions_are_judged_by_the_loss_on_the_samples_to_test_on() -> None:
    x, _ = samples()
    y, criterion = x.sum(1, keepdim=True), nn.MSELoss()
    models = {"one": lambda: nn.Linear(6, 1), "deep": lambda: nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 1))}
    found = compare(
        models, (x[:64], y[:64]), test=(x[64:], y[64:]), criterion=criterion, seeds=3, steps=5, rate=0.01, measure=[]
    )  # fmt: skip
    assert found.decided_by == "test loss"
    assert "one: final loss" in repr(found)
    assert repr(found).count("test loss") == 3  # of both models, and of the pair
    better = min(models, key=lambda name: found.sample(name, "test loss").mean())
    assert found.differences[0].better in ("", better)


def test_sets_by_name_have_the_networks_type_of_numbers() -> None:
    double = compare(
        {"a": lambda: nn.Linear(64, 10).double()}, "digits", seeds=2, steps=2, rate=0.01, measure=[]
    )
    assert np.isfinite(double.sample("a", "test loss")).all()


def test_epochs_of_a_list_see_every_batch() -> None:
    x, y = samples()
    batches = [(x[i : i + 1], y[i : i + 1]) for i in range(96)] * 6  # more than the steps of no choice
    whole = compare({"a": lambda: nn.Linear(6, 3)}, batches, seeds=2, epochs=1, rate=0.01, measure=[])
    assert whole.steps == 576


def test_a_network_that_a_factory_gives_out_again_and_again_stays_as_it_is() -> None:
    network = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3))
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    compare({"a": lambda: network, "b": network}, samples(), seeds=2, steps=3, rate=0.01)
    assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())
    assert network.training


def test_lists_of_batches_and_losses_of_ones_own() -> None:
    x, y = samples()
    batches = [{"x": x[i : i + 20], "y": y[i : i + 20]} for i in range(0, 96, 20)]
    own = compare(
        {"a": lambda: nn.Linear(6, 3), "b": lambda: deep(1.0, depth=1)},
        batches,
        loss_fn=lambda model, batch: nn.functional.cross_entropy(model(batch["x"]), batch["y"]),
        seeds=2, steps=10, rate=0.01,
    )  # fmt: skip
    assert own.trained_on == "5 batches of 16 to 20 samples"
    assert own.decided_by == "final loss"
    assert own.runs[0].loss.shape == (2, 10)
    assert not own.runs[0].together


def test_ctrl_c_keeps_the_models_that_are_finished() -> None:
    def never(stop: type[KeyboardInterrupt] = KeyboardInterrupt) -> nn.Module:
        if seen:
            raise stop
        seen.append(1)  # the first is built to see whether it takes the data
        return nn.Linear(6, 3)

    seen: list[int] = []
    part = compare(
        {"a": lambda: nn.Linear(6, 3), "b": never}, samples(), seeds=2, steps=5, rate=0.01, measure=[]
    )
    assert part.names == ("a",)
    assert part.stopped
    assert "stopped by Ctrl-C: b not finished" in repr(part)
    seen.clear()
    with pytest.raises(KeyboardInterrupt):
        compare({"b": never}, samples(), seeds=2, steps=5, rate=0.01, measure=[])

    class Ended(KeyboardInterrupt):
        """As TERM raises."""

    seen.clear()
    models = {"a": lambda: nn.Linear(6, 3), "b": lambda: never(Ended)}
    with pytest.raises(Ended):  # whoever asks for an end waits for no report
        compare(models, samples(), seeds=2, steps=5, rate=0.01, measure=[])


def test_an_instrument_that_fails_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("no units\nat all")

    monkeypatch.setattr("skiplab.measurements.layer_signals.layer_signals", fails)
    networks = {"a": lambda: nn.Linear(6, 3), "b": lambda: nn.Linear(6, 3)}
    found = compare(networks, samples(), seeds=2, steps=2, rate=0.1, measure=["layer_signals"])
    assert {each.why for each in found.unmeasured} == {"it failed (ZeroDivisionError: no units)"}
    assert found.names == ("a", "b")
