"""Networks, batches and losses at which a diagnosis once failed: each gets an answer, or one sentence."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.diagnosis import diagnose as diagnosing
from skiplab.diagnosis.comparison.running import compare
from skiplab.diagnosis.diagnose import diagnose
from skiplab.diagnosis.examinations import Examination
from skiplab.diagnosis.recording import Recorder, SlowRecording
from skiplab.diagnosis.remedy_trials import try_remedies
from skiplab.diagnosis.targets import load_target
from skiplab.measurements.result import Result
from skiplab.randomness import torch_generator

STREAM = torch_generator(7, "test hard inputs")
X = torch.randn(16, 8, generator=STREAM)
Y = torch.randint(3, (16,), generator=STREAM)
SIGNALS = ["layer_signals", "gradient_norms"]


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))


class OfOneSize(nn.Module):
    """Takes batches of one size alone, as networks with an adjacency matrix or a memory do."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self.layers = size, network()

    def forward(self, x: Tensor) -> Tensor:
        assert len(x) == self.size
        return self.layers(x)


@pytest.mark.parametrize("size", [16, 40])
def test_a_network_that_takes_batches_of_one_size_gets_them_whole(size: int) -> None:
    x = torch.randn(size, 8, generator=torch_generator(1, "test one size"))
    y = torch.randint(3, (size,), generator=torch_generator(2, "test one size"))
    report = diagnose(OfOneSize(size), (x, y), budget=20, examinations=SIGNALS)
    assert report.scan.samples == size
    assert [each.name for each in report.measured] == SIGNALS
    assert f"samples: all {size}, since the network fails on fewer" in report.notes


def test_a_network_that_fails_on_all_samples_is_refused_as_before() -> None:
    with pytest.raises(Refused, match=r"fails on torch.float32 of shape \(16, 8\)"):
        diagnose(OfOneSize(5), (X, Y), budget=20)


def test_reading_weights_leaves_the_buffers_of_spectral_norm_alone() -> None:
    model = nn.Sequential(
        nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8)), nn.ReLU(), nn.Linear(8, 3)
    ).train()
    before = copy.deepcopy(model.state_dict())
    diagnose(model, (X, Y), budget=20, examinations=SIGNALS)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_of_a_compiled_network_the_module_inside_is_examined() -> None:
    model = network()
    compiled = torch.compile(model, backend="eager")
    found, wanted = (diagnose(each, (X, Y), budget=20, examinations=SIGNALS) for each in (compiled, model))
    assert found.result("gradient_norms").layers == wanted.result("gradient_norms").layers == ("0", "2")
    assert torch.equal(found.result("gradient_norms").mean, wanted.result("gradient_norms").mean)


@pytest.mark.parametrize(
    "criterion",
    [
        lambda output, target: (output.argmax(1) != target).float().mean(),
        lambda output, target: output.detach().mean(),
        lambda output, target: torch.ones((), requires_grad=True) * 2,
    ],
)
def test_a_loss_without_any_derivative_is_refused_and_no_finding(criterion: Any) -> None:
    with pytest.raises(Refused, match="no derivative in any of the network's parameters"):
        diagnose(network(), (X, Y), criterion=criterion, budget=20)


def test_a_frozen_network_needs_no_derivative() -> None:
    report = diagnose(network().requires_grad_(False), (X, Y), budget=20, examinations=SIGNALS)
    assert [each.name for each in report.measured] == SIGNALS


def test_complex_losses_and_outputs_are_refused() -> None:
    with pytest.raises(Refused, match=r"the loss is torch.complex64; return a real number"):
        diagnose(network(), (X, Y), criterion=lambda output, target: output.mean() + 0j, budget=20)
    with pytest.raises(Refused, match=r"the output is torch.complex64"):
        diagnose(nn.Linear(8, 3, dtype=torch.complex64), X.cfloat(), budget=20)


def test_sparse_gradients_are_refused_with_a_remedy() -> None:
    model = nn.EmbeddingBag(10, 3, sparse=True)
    tokens = torch.randint(10, (16, 4), generator=torch_generator(3, "test sparse"))
    with pytest.raises(Refused, match=r"cannot differentiate the network .*sparse=False"):
        diagnose(model, (tokens, Y), budget=20)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"memory": "8GB"}, "memory in bytes is '8GB', but must be a positive number"),
        ({"name": 5}, "name is 5, but must be text"),
    ],
)
def test_wrong_settings_are_refused_in_one_sentence(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        diagnose(network(), (X, Y), **settings)


def test_cross_entropy_is_inferred_of_whole_numbers_of_any_width() -> None:
    reports = [diagnose(network_of(1), (X, Y.to(kind)), budget=20, examinations=SIGNALS) for kind in WIDTHS]
    norms = [report.result("gradient_norms").mean for report in reports]
    assert all(torch.allclose(each, norms[0]) for each in norms)


WIDTHS = (torch.int64, torch.int32, torch.int16, torch.uint8)


def network_of(seed: int) -> nn.Sequential:
    model, stream = network(), torch_generator(seed, "test parameters")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=stream))
    return model


def test_a_lone_sample_without_an_axis_of_samples_has_no_inferred_loss() -> None:
    report = diagnose(network(), (X[0], Y[0]), budget=20, examinations=["layer_signals"])
    assert any(note.startswith("no loss: outputs (3,)") for note in report.notes)


def test_no_remedy_is_proposed_for_numbers_that_came_with_the_input() -> None:
    report = diagnose(network(), (X / 0, Y), budget=20, examinations=["layer_signals"])
    (found,) = [each for each in report.findings if each.id == "not-finite"]
    assert (found.severity, found.where, found.remedy) == ("severe", ("the input",), ())


def test_a_report_of_nothing_does_not_call_the_network_healthy() -> None:
    report = diagnose(network(), (X, Y), budget=1e-9)
    assert not report.measured
    assert report.verdict == "nothing could be measured"


def test_an_examination_that_fails_in_any_way_does_not_lose_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> Result:
        raise KeyError("gone")

    failing = Examination("failing", "whether failures are told", lambda scan: 0, fail)
    monkeypatch.setattr(diagnosing, "EXAMINATIONS", (failing, *diagnosing.EXAMINATIONS[:1]))
    report = diagnose(network(), (X, Y), budget=20)
    assert [each.name for each in report.measured] == ["layer_signals"]
    assert report.unmeasured[0].why == "it failed (KeyError: 'gone')"


def test_a_function_that_ends_python_is_told_in_one_sentence(tmp_path: Any) -> None:
    file = tmp_path / "ends.py"
    file.write_text("def build():\n    raise SystemExit(0)\n")
    with pytest.raises(Refused, match="fails when called: SystemExit, 0; mend it first"):
        load_target(f"{file}:build")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"device": "banana"}, "device 'banana'"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"criterion": lambda output, target: output.detach().mean()}, "no derivative"),
    ],
)
def test_remedies_are_tried_only_where_training_is_possible(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        try_remedies(network(), (X, Y), steps=2, seeds=1, rate=0.01, remedies=["gain"], **settings)


def test_a_recorder_gives_whole_batches_to_a_network_of_one_size() -> None:
    x = torch.randn(40, 8, generator=torch_generator(1, "test one size"))
    y = torch.randint(3, (40,), generator=torch_generator(2, "test one size"))
    model, recorder = OfOneSize(40), Recorder(every=1, share=1.0, samples=32)
    records = [recorder.step(model, (x, y)) for _ in range(2)]
    assert all("gradient_norms/middle" in each for each in records)


def test_an_instrument_of_the_users_that_fails_does_not_end_training() -> None:
    def instrument(*_: object) -> Result:
        raise ZeroDivisionError("division by zero")

    recorder = Recorder(every=1, share=1.0, instruments=[instrument])
    with pytest.warns(SlowRecording, match="instrument is not recorded any more: division by zero"):
        assert recorder.step(network(), (X, Y)) == {"step": 1}


def test_numbers_that_an_embedding_lacks_are_told_where_the_network_has_a_loss_of_its_own() -> None:
    class WithLoss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(5, 3)

        def forward(self, ids: Tensor, labels: Tensor | None = None) -> Any:
            return self.embedding(ids)

    with pytest.raises(Refused, match="embeddings have 5 entries"):
        diagnose(WithLoss(), {"ids": torch.full((16,), 7), "labels": Y}, budget=20)


def test_reports_are_compared_with_reports_and_saved_under_names() -> None:
    report = diagnose(network(), (X, Y), budget=20, examinations=SIGNALS)
    other: Any = "report"
    with pytest.raises(Refused, match="a str was given; pass a report"):
        report.compare(other)
    nothing: Any = None
    with pytest.raises(Refused, match="path is None, but must be a text"):
        report.save(nothing)
    assert report == report
    assert report != diagnose(network(), (X, Y), budget=20, examinations=SIGNALS)


def test_a_folder_that_is_called_like_a_file_is_told_so(tmp_path: Any) -> None:
    (tmp_path / "model.py").mkdir()
    with pytest.raises(Refused, match=r"model\.py is a folder; name a Python file in it"):
        load_target(f"{tmp_path / 'model.py'}:build")


def test_the_compiler_is_not_loaded_for_networks_that_are_not_compiled() -> None:
    program = (
        "import sys, torch, skiplab as sl\n"
        "sl.diagnose(torch.nn.Linear(3, 2), torch.ones(4, 3), budget=9, examinations=['layer_signals'])\n"
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def normalised() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def test_batch_normalisation_never_meets_the_one_sample_that_is_over() -> None:
    found = compare({"mine": normalised}, (X, Y), seeds=2, steps=7, rate=0.01, batch_size=5, measure=[])
    assert "7 steps" in repr(found)
    with pytest.raises(Refused, match="more than one sample per batch; give a larger batch_size"):
        compare({"mine": normalised}, (X, Y), seeds=2, steps=7, rate=0.01, batch_size=1, measure=[])


@pytest.mark.parametrize(
    ("test", "words"),
    [
        (X, "test is a Tensor; pass"),
        ((X, Y[:3]), "test has 16 inputs for 3 targets"),
        ((X, X), "the criterion fails"),
    ],
)
def test_samples_to_test_on_are_checked(test: Any, words: str) -> None:
    with pytest.raises(Refused, match=words):
        compare({"mine": network}, (X, Y), seeds=1, steps=2, rate=0.01, measure=[], test=test)


def test_a_function_to_compare_that_fails_is_named() -> None:
    def mine() -> nn.Module:
        raise OSError("no weights here")

    with pytest.raises(Refused, match="mine fails when called: OSError, no weights here; mend it first"):
        compare({"mine": mine}, (X, Y), seeds=1, steps=2, rate=0.01, measure=[])


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["diagnose", "{}:build", "--only", "layer_signals"],
        ["compare", "{}:build", "{}:other", "--seeds", "1", "--steps", "1", "--rate", "0.1", "--measure", ""],
    ],
)
def test_json_stands_alone_whatever_a_file_prints_by_whatever_means(
    tmp_path: Any, command: list[str]
) -> None:
    file = tmp_path / "prints.py"
    file.write_text(
        "import os\nfrom torch import nn\nprint('at once')\n"
        "def build():\n    print('by Python')\n    os.write(1, b'by the system')\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))\n"
        "other = build\n"
    )
    program = [sys.executable, "-m", "skiplab", *(part.format(file) for part in command), "--json"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert isinstance(json.loads(done.stdout), dict)
    assert "by Python" in done.stderr
    assert "by the system" in done.stderr
