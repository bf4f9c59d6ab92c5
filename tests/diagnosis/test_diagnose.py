"""A diagnosis keeps to its budget, says what it left out, and leaves the network as it was."""

from __future__ import annotations

import copy
import json
import warnings

import pytest
import torch
from torch import Tensor, nn

import skiplab as sl
from skiplab.checks import Refused
from skiplab.diagnosis import diagnose as diagnosing
from skiplab.diagnosis.chart import Chart
from skiplab.diagnosis.diagnose import diagnose
from skiplab.diagnosis.examinations import EXAMINATIONS, Examination
from skiplab.diagnosis.report import Report
from skiplab.diagnosis.scan import OutOfTime, limited
from skiplab.measurements.result import Result
from skiplab.randomness import torch_generator

STREAM = torch_generator(5, "test diagnose")
X = torch.randn(16, 8, generator=STREAM)
Y = torch.randint(3, (16,), generator=STREAM)
NAMES = [each.name for each in EXAMINATIONS]


def network() -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(8, 8),
        nn.BatchNorm1d(8),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(8, 8),
        nn.ReLU(),
        nn.Linear(8, 3),
    )


def test_everything_is_measured_or_told_why_not() -> None:
    report = diagnose(network(), (X, Y), budget=30)
    measured, left = [each.name for each in report.measured], [each.name for each in report.unmeasured]
    assert sorted(measured + left) == sorted(NAMES)
    assert left == ["branch_ratios", "path_depth"]
    assert all("no residual branch" in each.why for each in report.unmeasured)
    json.dumps(report.to_dict(), allow_nan=False)
    assert len(repr(report).splitlines()) <= 25


def test_without_a_loss_what_needs_one_is_left_out_with_the_reason() -> None:
    report = diagnose(network(), X, budget=20, examinations=["layer_signals", "gradient_norms"])
    assert [each.name for each in report.measured] == ["layer_signals"]
    assert "needs a loss (no loss: the batch holds no target" in report.unmeasured[0].why


def test_the_network_is_left_as_it_was() -> None:
    subject = network().train()
    subject[0].weight.grad = torch.ones_like(subject[0].weight)
    before, state = copy.deepcopy(subject.state_dict()), torch.get_rng_state()
    diagnose(subject, (X, Y), budget=20)
    assert all(torch.equal(before[name], tensor) for name, tensor in subject.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert subject.training
    assert bool((subject[0].weight.grad == 1).all())
    assert all(parameter.grad is None for name, parameter in subject.named_parameters() if name != "0.weight")
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in subject.modules())


def test_what_does_not_fit_into_the_budget_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> Result:
        raise AssertionError("begun")

    dear = Examination("dear", "what it costs", lambda scan: 1e12, never)
    monkeypatch.setattr(diagnosing, "EXAMINATIONS", (dear,))
    report = diagnose(network(), (X, Y), budget=5)
    assert "it would take about" in report.unmeasured[0].why


def test_what_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(patient: object, scan: object, seconds: float) -> Result:
        while True:
            subject(X)

    subject = network().eval()
    monkeypatch.setattr(
        diagnosing, "EXAMINATIONS", (Examination("endless", "nothing", lambda scan: 0, endless),)
    )
    report = diagnose(subject, (X, Y), budget=0.5)
    assert "it was ended after" in report.unmeasured[0].why


@pytest.mark.parametrize("problem", [RuntimeError, ZeroDivisionError, KeyError])
def test_a_failing_examination_costs_only_itself(
    problem: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> Result:
        raise problem("no kernel for this\nand more")

    own = (Examination("fails", "nothing", lambda scan: 0, fails), EXAMINATIONS[0])
    monkeypatch.setattr(diagnosing, "EXAMINATIONS", own)
    report = diagnose(network(), (X, Y), budget=10)
    (left,) = report.unmeasured
    assert left.why.startswith(f"it failed ({problem.__name__}: ")
    assert "no kernel for this" in left.why
    assert "\n" not in left.why
    assert [each.name for each in report.measured] == ["layer_signals"]


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(Refused, match=r"examination 'gradient_norm' is unknown.*Did you mean gradient_norms"):
        diagnose(network(), (X, Y), examinations=["gradient_norm"])
    with pytest.raises(Refused, match="budget is -1, but must be a positive number"):
        diagnose(network(), (X, Y), budget=-1)
    with pytest.raises(Refused, match="samples is 0, but must be a whole number"):
        diagnose(network(), (X, Y), samples=0)
    with pytest.raises(Refused, match=r"the network fails on"):
        diagnose(network(), (X[:, :3], Y))


class Tagger(nn.Module):
    """A recurrent network over tokens, with a score per class and token."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.cells, self.head = (
            nn.Embedding(20, 8),
            nn.LSTM(8, 8, batch_first=True),
            nn.Linear(8, 5),
        )

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.cells(self.embedding(tokens))[0])


def test_recurrent_networks_over_tokens_are_diagnosed() -> None:
    tokens, tags = torch.randint(20, (8, 6), generator=STREAM), torch.randint(5, (8, 6), generator=STREAM)
    report = diagnose(Tagger(), {"tokens": tokens, "labels": tags}, budget=20)
    assert any("inferred" in note for note in report.notes)
    names = [each.name for each in report.measured]
    assert {"layer_signals", "gradient_norms", "hessian_extremes", "weight_noise"} <= set(names)


def test_remedies_are_proposed_worst_finding_first() -> None:
    deep = nn.Sequential(*(part for _ in range(24) for part in (nn.Linear(8, 8), nn.Tanh())), nn.Linear(8, 3))
    report = diagnose(deep, (X, Y), budget=20, examinations=["layer_signals", "gradient_norms"])
    assert not report.is_healthy
    assert report.proposed[0] == "skips-identity"
    assert report.result("gradient_norms").slope.shape == (1,)
    with pytest.raises(Refused, match="examination 'norms' is unknown"):
        report.result("norms")


def test_a_chart_gives_results_by_kind() -> None:
    from skiplab.measurements.gradient_norms import GradientNorms

    assert Chart(None, None).get(GradientNorms) is None  # type: ignore[arg-type]


def test_few_samples_and_nothing_measured_are_said() -> None:
    lone = diagnose(network().eval(), (X[:1], Y[:1]), examinations=["layer_signals"], budget=10)
    assert any(note.startswith("samples: 1, too few to tell how samples differ") for note in lone.notes)
    assert lone.verdict == "nothing wrong found by 1 examination"
    nothing = diagnose(network(), (X, Y), examinations=["branch_ratios"], budget=10)
    assert nothing.verdict == "nothing could be measured"


def test_a_layer_of_no_units_ends_in_a_report() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says of an empty matrix that there is nothing to draw
        empty = nn.Sequential(nn.Linear(8, 0), nn.ReLU(), nn.Linear(0, 3))
    assert diagnose(empty, (X, Y), budget=5).measured


def test_the_text_says_what_to_do_next_where_remedies_are_proposed() -> None:
    sick = nn.Sequential(*(part for _ in range(30) for part in (nn.Linear(8, 8), nn.Tanh())), nn.Linear(8, 3))
    report = diagnose(sick, (X, Y), examinations=["gradient_norms"], budget=10)
    assert "next: sl.try_remedies(model, batches, remedies=report.proposed)" in repr(report)
    well = diagnose(network(), (X, Y), examinations=["gradient_norms"], budget=10)
    assert "next:" not in repr(well)


class Steps(nn.Module):
    """As Lightning's modules: the loss function calls a part, and nobody the module."""

    def __init__(self, depth: int = 3) -> None:
        super().__init__()
        self.body = nn.Sequential(*(Branch() for _ in range(depth)), nn.Linear(8, 3))

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        return nn.functional.cross_entropy(self.body(batch[0]), batch[1])


class Branch(nn.Module):
    """x + W₂ ρ(W₁ x)."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.act, self.last = nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.last(self.act(self.first(x)))


def test_a_network_whose_parts_alone_are_called_is_seen_inside() -> None:
    names = ["saturation", "branch_ratios"]
    report = diagnose(
        Steps(), (X, Y), loss_fn=lambda m, b: m.training_step(b, 0), examinations=names, budget=10
    )
    assert report.result("saturation").behind == tuple(f"body.{n}.first" for n in range(3))
    assert report.result("branch_ratios").layers == ("body.0", "body.1", "body.2")


def test_time_ends_where_parts_alone_are_called() -> None:
    model = Steps()
    with pytest.raises(OutOfTime), limited(model, -1.0):
        model.training_step((X, Y), 0)


def test_a_compiled_network_is_examined_as_it_was_written() -> None:
    compiled: list[object] = []

    def compiler(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> object:
        compiled.append(graph)
        return graph.forward

    model = torch.compile(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)), backend=compiler)
    report = diagnose(model, (X, Y), examinations=["gradient_norms", "layer_signals"], budget=30)
    assert len(report.measured) == 2
    assert not compiled


@pytest.mark.parametrize(
    ("name", "least", "vectors"),
    [
        ("hessian_extremes", 8, (8 + 4) / 2),
        ("hessian_trace", 6, 6 * 2.25),
        ("hessian_spectrum", 8, 8 / 2 + 6.5),
    ],
)
def test_the_memory_that_is_given_limits_the_hessian_products(name: str, least: int, vectors: float) -> None:
    # Of 105,004 float64 numbers each: what is counted is what each method keeps, in the type that it keeps.
    network = nn.Sequential(nn.Linear(100, 1000), nn.ReLU(), nn.Linear(1000, 4))
    stream = torch_generator(0, "test memory")
    batch = torch.randn(8, 100, generator=stream), torch.randint(4, (8,), generator=stream)

    def examined(memory: float) -> Report:
        return diagnose(network, batch, examinations=[name], budget=60, memory=int(memory))

    needed = 2 * vectors * 8 * 105_004  # half of it may be used
    found = examined(1.001 * needed).result(name)
    steps = found.products if name == "hessian_trace" else found.steps
    assert steps <= least if name == "hessian_extremes" else steps == least  # extremes may settle before
    (left,) = examined(0.97 * needed).unmeasured
    assert left.why.startswith(f"{least} Hessian products of 105,004 parameters do not fit into ")


def normalised() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 12),
        nn.BatchNorm1d(12),
        nn.ReLU(),
        nn.Linear(12, 12),
        nn.BatchNorm1d(12),
        nn.ReLU(),
        nn.Linear(12, 3),
    )


CURVED = ["hessian_extremes", "permutation_symmetry", "rescaling_symmetry"]


def test_curvature_and_symmetries_of_an_untrained_network_are_those_of_training() -> None:
    """With the batch's statistics held constant they are others, by factors of ten and more in deep networks."""
    model = normalised()
    report = diagnose(model, (X, Y), examinations=CURVED, budget=60)
    curvature = sl.hessian_extremes(
        model, (X, Y), criterion=nn.CrossEntropyLoss(), mode="train", tolerance=0.05, max_steps=60
    )
    torch.testing.assert_close(report.result("hessian_extremes").values, curvature.values, rtol=0.05, atol=0)
    for name in CURVED[1:]:
        own = getattr(sl, name)(model, (X, Y), mode="train")
        assert repr(report.result(name)) == repr(own)
    (sharp,) = (each for each in report.findings if each.id == "sharp-curvature")
    rate = 2 / float(curvature.values[0, 0])
    assert f"gradient descent diverges along it from a learning rate of {rate:.1g} on" in sharp.words


def test_no_learning_rate_is_told_where_statistics_are_held_constant() -> None:
    model = normalised()
    model.train()(X)
    report = diagnose(model.eval(), (X, Y), examinations=["hessian_extremes"], budget=60)
    (sharp,) = (each for each in report.findings if each.id == "sharp-curvature")
    assert "with the statistics of batch normalisation held constant" in sharp.words
    assert "diverges" not in sharp.words


def test_three_directions_of_few_samples_are_no_finding() -> None:
    model = network()
    for samples, told in ((4, False), (len(X), True)):
        report = diagnose(model, (X[:samples], Y[:samples]), examinations=["singularities"], budget=60)
        assert ("dependent-units" in {each.id for each in report.findings}) == told


def test_the_text_says_why_something_was_not_measured_where_one_reason_holds_for_all() -> None:
    one = diagnose(
        network(), (X, Y), examinations=["layer_signals", "branch_ratios", "path_depth"], budget=60
    )
    assert "not measured (the network has no residual branch): branch_ratios, path_depth" in repr(one)
    two = diagnose(network(), X, examinations=["layer_signals", "branch_ratios", "hessian_trace"], budget=60)
    assert len({each.why for each in two.unmeasured}) == 2
    assert "not measured (why: .unmeasured, --html): branch_ratios, hessian_trace" in repr(two)
