"""What is measured on: samples from batches, and statistics that mean something."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from skiplab.checks import Refused
from skiplab.diagnosis import scan as scan_module
from skiplab.diagnosis.courses import course_of
from skiplab.diagnosis.patient import Patient, gathered
from skiplab.diagnosis.scan import OutOfTime, affordable, limited, scanned
from skiplab.randomness import torch_generator
from skiplab.subjects.normalisation import has_fresh_statistics

X = torch.randn(12, 4, generator=torch_generator(0, "test patient"))
LABELS = torch.arange(12) % 3


def normalised() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def test_samples_are_gathered_over_batches() -> None:
    loader = [(X[:5], LABELS[:5]), (X[5:10], LABELS[5:10]), (X[10:], LABELS[10:])]
    inputs, labels = gathered(loader, 8)
    assert torch.equal(inputs, X[:8])
    assert torch.equal(labels, LABELS[:8])


def test_batches_of_other_shapes_leave_the_first() -> None:
    assert gathered([(X[:3], LABELS[:3]), (torch.zeros(4, 7), LABELS[:4])], 6)[0].shape == (3, 4)


def test_dicts_are_gathered_by_name() -> None:
    found = gathered([{"x": X[:3]}, {"x": X[3:6]}], 5)
    assert torch.equal(found["x"], X[:5])


def test_unused_statistics_give_way_to_the_batch() -> None:
    network = normalised()
    patient = Patient.of(network, (X, LABELS))
    assert patient.fresh_statistics
    assert any("batch's statistics" in each for each in patient.assumed)
    with torch.no_grad():
        wanted = network.train()(X)
    torch.testing.assert_close(patient.subject.outputs(X)[0], wanted)


def test_used_statistics_are_kept() -> None:
    network = normalised()
    network.train()(X)
    assert not has_fresh_statistics(network)
    patient = Patient.of(network, (X, LABELS))
    with torch.no_grad():
        wanted = network.eval()(X)
    torch.testing.assert_close(patient.subject.outputs(X)[0], wanted)


def test_a_lone_sample_has_no_statistics_and_that_is_said() -> None:
    patient = Patient.of(normalised(), (X[:1], LABELS[:1]))
    assert not patient.fresh_statistics
    assert any("all the same" in each for each in patient.assumed)


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(Refused, match=r"a function was given; pass a torch\.nn\.Module"):
        Patient.of(lambda x: x, X)  # type: ignore[arg-type]


def test_a_scan_counts() -> None:
    scan = scanned(Patient.of(normalised(), (X, LABELS)))
    assert (scan.parameters, scan.weight_layers, scan.samples) == (4 * 8 + 8 + 16 + 8 * 3 + 3, 2, 12)
    assert scan.seconds > 0
    assert scan.bytes == 4 * 12 * (8 + 8 + 8 + 3 + 3)  # the parts, and the network as a whole


def test_a_scan_leaves_no_gradient_and_no_statistics() -> None:
    network = normalised()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    scanned(Patient.of(network, (X, LABELS)))
    assert all(parameter.grad is None for parameter in network.parameters())
    assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())


def test_little_memory_means_fewer_samples() -> None:
    patient = Patient.of(normalised(), (X, LABELS))
    fewer, words = affordable(patient, 1e9, 4 * 4 * 30 * 6)  # room for four copies of six samples
    assert fewer.samples == 6
    assert words == "samples: 6 of 12, as many as the memory allows"
    same, nothing = affordable(patient, 1e9, 10**9)
    assert (same.samples, nothing) == (12, "")


@pytest.mark.parametrize(
    ("start", "per_sample", "told"),
    [
        (0.9, 0.001, 12),  # a pass takes .9 s however few its samples are, of which four are timed
        (0.5, 0.1, 5),
        (0.0, 0.2, 5),
        (0.0, 2.0, 4),  # too long to try all
    ],
)
def test_a_pass_that_takes_time_by_itself_costs_no_samples(
    monkeypatch: pytest.MonkeyPatch, start: float, per_sample: float, told: int
) -> None:
    def passed(patient: Patient) -> tuple[float, int]:
        return start + per_sample * patient.samples, 1

    monkeypatch.setattr(scan_module, "_passed", passed)
    fewer, words = affordable(Patient.of(normalised(), (X, LABELS)), 60.0, 10**9)  # sixty passes of a second
    assert fewer.samples == told
    assert (words == "") == (told == 12)


def test_time_ends_at_the_next_call() -> None:
    network = normalised().eval()
    with pytest.raises(OutOfTime), limited(network, -1.0):
        network(X)
    network(X)  # nothing is left behind


def test_a_loader_that_shuffles_draws_what_it_would_have_drawn() -> None:
    loader = DataLoader(TensorDataset(torch.arange(32.0)[:, None]), batch_size=4, shuffle=True)
    before = torch.get_rng_state()
    one, other = gathered(loader, 8), gathered(loader, 8)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one[0], other[0])
    course_of(loader, None, 3)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_network_built_for_one_batch_size_keeps_its_samples() -> None:
    class OneSize(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x.reshape(12, 4))

    patient, told = affordable(Patient.of(OneSize(), (X, LABELS)), 60.0, 2**30)
    assert (patient.samples, told) == (12, "samples: all 12, since the network fails on fewer")
