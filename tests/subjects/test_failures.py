"""What goes wrong in a user's network or criterion is one sentence with the value and the remedy, its cause kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas
import pytest
import torch
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.measurements.activation_patterns import activation_patterns
from skiplab.measurements.gradient_norms import gradient_norms
from skiplab.measurements.gradient_shattering import gradient_shattering
from skiplab.measurements.hessian_spectrum import hessian_spectrum
from skiplab.measurements.singularities import singularities
from skiplab.measurements.symmetry import permutation_symmetry, rescaling_symmetry
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject
from skiplab.subjects.batches import batch_size, batches_of
from skiplab.subjects.subject import first_tensor

CE = nn.CrossEntropyLoss()
X = torch.randn(10, 6, generator=torch_generator("x"))
Y = torch.arange(10) % 3
IDS = torch.arange(50).reshape(10, 5) % 20


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))


class Words(nn.Module):
    """An embedding before the network."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.net = nn.Embedding(20, 6), net()

    def forward(self, ids: Tensor) -> Tensor:
        return self.net(self.embedding(ids).mean(1))


class Returns(nn.Module):
    """Wraps the network's output in something else."""

    def __init__(self, wrap: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.net, self.wrap = net(), wrap

    def forward(self, x: Tensor) -> Any:
        return self.wrap(self.net(x))


class Sum(nn.Module):
    """Takes two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.net = net()

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        return self.net(u + v)


def with_loss(measure: Callable[..., Any], **settings: Any) -> Callable[[nn.Module, Any], Any]:
    return lambda model, batch: measure(model, batch, criterion=CE, **settings)


WITH_LOSS = {
    "gradient_norms": with_loss(gradient_norms),
    "hessian_spectrum": with_loss(hessian_spectrum, method="exact"),
    "gradient_shattering": with_loss(gradient_shattering, outputs="loss"),
    "rescaling_symmetry": with_loss(rescaling_symmetry),
}
WITHOUT = {
    "gradient_shattering": gradient_shattering,
    "activation_patterns": activation_patterns,
    "singularities": singularities,
    "permutation_symmetry": permutation_symmetry,
}
losses = pytest.mark.parametrize("measure", WITH_LOSS.values(), ids=WITH_LOSS)
every = pytest.mark.parametrize(
    "measure",
    [*WITH_LOSS.values(), *WITHOUT.values()],
    ids=[*(f"{name} of the loss" for name in WITH_LOSS), *WITHOUT],
)


def refused(call: Callable[[], Any], sentence: str, cause: type[BaseException] | None = None) -> None:
    with pytest.raises(Refused, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
    if cause is not None:
        assert type(caught.value.__cause__) is cause


# The network --------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize(
    ("of_input", "of_net"), [(torch.float64, torch.float32), (torch.float32, torch.float64)]
)
def test_input_and_network_of_other_types(measure: Any, of_input: torch.dtype, of_net: torch.dtype) -> None:
    sentence = (
        rf"^the input is {of_input}, but the network's parameters are {of_net}; convert .*\.to\({of_net}\)"
    )
    refused(lambda: measure(net().to(of_net), (X.to(of_input), Y)), sentence, RuntimeError)


def test_whole_numbers_into_a_linear_layer() -> None:
    sentence = r"the input is torch\.int64, but the network's parameters are torch\.float32; convert"
    refused(lambda: activation_patterns(net(), X.long()), sentence, RuntimeError)
    for outer in (gradient_norms, hessian_spectrum):
        swapped = (
            r"the input is torch\.int64 and the target torch\.float32; pass \(input, target\) in this order"
        )
        refused(lambda measure=outer: measure(net(), (Y, X), criterion=CE), swapped, RuntimeError)


@every
def test_a_network_without_values(measure: Any) -> None:
    refused(
        lambda: measure(net().to("meta"), (X, Y)), "'0.weight' is on the meta device, without values; load"
    )


def test_a_lazy_network_has_no_shape_yet() -> None:
    lazy = nn.Sequential(nn.LazyLinear(3))
    refused(
        lambda: gradient_shattering(lazy, X), "'0.weight' has no shape yet; run the network once on a batch"
    )


def test_numbers_that_an_embedding_does_not_have() -> None:
    far = IDS.clone()
    far[0, 0] = 99
    sentence = "the input holds the numbers 0 to 99, but the network's embeddings have 20 entries"
    refused(lambda: activation_patterns(Words(), far), sentence, IndexError)
    refused(lambda: gradient_norms(Words(), (far, Y), criterion=CE), sentence, IndexError)
    sentence = (
        r"the input is torch\.float32 of shape \(10, 5\), but an embedding takes whole numbers; .*\.long"
    )
    refused(lambda: activation_patterns(Words(), IDS.float()), sentence, RuntimeError)


class Calls(nn.Module):
    """A network that calls a part of its own wrongly, or fails on its own account."""

    def __init__(self, wrongly: Callable[..., Any]) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(20, 3), nn.Embedding(4, 3)
        self.attention, self.linear, self.wrongly = nn.MultiheadAttention(3, 1), nn.Linear(3, 2), wrongly

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Any:
        return self.wrongly(self, x, mask)


WHOLE, REAL = torch.arange(14).reshape(2, 7), torch.ones(2, 3)


@pytest.mark.parametrize(
    ("wrongly", "batch", "said"),
    [
        (
            lambda net, x, mask: net.attention(x),
            REAL,
            "missing 2 required positional arguments: 'key' and 'value'",
        ),
        (
            lambda net, x, mask: net.linear(x, mask=mask),
            {"x": REAL, "mask": REAL},
            "unexpected keyword argument 'mask'",
        ),
        (lambda net, x, mask: [][0] + net.words(x), WHOLE, "IndexError: list index out of range"),
        (
            lambda net, x, mask: net.words(x) + net.places(torch.arange(7)),
            WHOLE,
            "index out of range in self",
        ),
        (
            lambda net, x, mask: net.linear(x[:, :3].float()) * None,
            WHOLE.to(torch.uint8),
            "unsupported operand type",
        ),
    ],
)
def test_faults_inside_a_network_are_not_laid_on_the_batch(wrongly: Any, batch: Any, said: str) -> None:
    with pytest.raises(
        Refused, match=rf"^the network fails on .* \(.*{said}.*\); pass what its forward takes"
    ) as seen:
        activation_patterns(Calls(wrongly), batch, layers=["linear"])
    assert seen.value.__cause__ is not None


def test_of_several_inputs_the_one_of_the_wrong_type_is_named() -> None:
    net = Calls(lambda net, x, mask: net.linear(x) * mask)
    mask = torch.ones(2, 2, dtype=torch.bool)
    with pytest.raises(
        Refused, match=r"the input is torch\.float64, but the network's parameters are torch\.float32"
    ):
        activation_patterns(net, {"mask": mask, "x": REAL.double()}, layers=["linear"])


def test_one_sentence_of_several_is_kept() -> None:
    def fails(net: nn.Module, x: Tensor, mask: Tensor | None) -> None:
        raise RuntimeError("It went wrong. This is because of that. See the manual.")

    with pytest.raises(Refused, match=r"\(RuntimeError: It went wrong\); pass what"):
        activation_patterns(Calls(fails), REAL, layers=["linear"])


def test_anything_else_is_said_with_what_was_passed_and_torchs_first_line() -> None:
    sentence = r"^the network fails on torch\.float32 of shape \(10, 5\) \(RuntimeError: mat1 .*\); pass what"
    refused(lambda: activation_patterns(net(), X[:, :5]), sentence, RuntimeError)
    images = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    sentence = r"the network fails on torch\.float32 of shape \(2, 4, 8, 8\) \(RuntimeError: .* 3 channels"
    refused(lambda: gradient_shattering(images, torch.ones(2, 4, 8, 8)), sentence, RuntimeError)


def test_a_lone_sample_wants_an_axis() -> None:
    sentence = r"for 6 samples; give a lone sample an axis of samples, x\[None\]"
    refused(lambda: gradient_shattering(net(), X[0]), sentence)
    refused(lambda: activation_patterns(net(), X[0]), sentence)
    refused(lambda: activation_patterns(net(), X[0, :4]), r"fails on .*\(4,\).*; give a lone sample an axis")


def test_one_sample_in_a_batch_normalisation_that_trains() -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    sentence = r"batch normalisation in training mode needs more than one value .*\(1, 6\); pass more samples"
    refused(lambda: hessian_spectrum(model, (X[:1], Y[:1]), criterion=CE, mode="train"), sentence, ValueError)


@every
def test_names_that_the_network_does_not_take(measure: Any) -> None:
    batch = {"a": X, "v": X, "labels": Y}
    refused(lambda: measure(Sum(), batch), "the batch names 'a', but the network takes u, v; name", TypeError)


@every
def test_two_inputs_want_a_dict_at_once(measure: Any) -> None:
    refused(
        lambda: measure(Sum(), ((X, X), Y)),
        "; pass (the batch as a dict|batches as dicts) of all inputs by name",
    )


def test_of_an_ensemble_too() -> None:
    ensemble = Ensemble.of([net(), net()], backend="batched")
    refused(
        lambda: gradient_norms(ensemble, (X.double(), Y), criterion=CE), r"the input is torch\.float64, but"
    )

    class Item(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x) * self.net(x).sum().item()

    sentence = r'vmap.*; take out what cannot be batched, or use Ensemble\.of\(…, backend="loop"\)'
    refused(lambda: Subject.of(Ensemble.of([Item(), Item()], backend="batched")).outputs(X), sentence)


# The criterion ------------------------------------------------------------------------------------------------


@losses
@pytest.mark.parametrize("label", [7, -1])
def test_labels_out_of_range(measure: Any, label: int) -> None:
    wrong = Y.clone()
    wrong[4] = label
    sentence = (
        rf"^a label is {label}, but the network has 3 outputs, for labels 0 to 2; count the classes from 0"
    )
    refused(lambda: measure(net(), (X, wrong)), sentence, IndexError)


@losses
def test_fewer_labels_than_samples(measure: Any) -> None:
    sentence = "10 (rows|samples) .*5 (targets|labels); pass a (target|label) for each sample"
    refused(lambda: measure(net(), (X, Y[:5])), sentence)


@losses
def test_targets_of_the_wrong_type(measure: Any) -> None:
    sentence = (
        r"the criterion fails on an output torch\.float32 .* and a target torch\.float32 .*; pass targets of"
    )
    refused(lambda: measure(net(), (X, Y.float())), sentence, RuntimeError)


@losses
@pytest.mark.parametrize(
    ("wrap", "kind"),
    [
        (lambda y: (y, y.sum()), r"a tuple of torch\.float32 of shape"),
        (lambda y: {"loss": y.sum(), "logits": y}, r"a dict of loss: torch\.float32 of shape \(\), logits"),
        (lambda y: [y], "a list of"),
    ],
    ids=["tuple", "dict", "list"],
)
def test_an_output_that_the_criterion_cannot_take(measure: Any, wrap: Any, kind: str) -> None:
    sentence = f"the network returns {kind}.*, which the criterion cannot take .*; pass criterion=lambda"
    refused(lambda: measure(Returns(wrap), (X, Y)), sentence, TypeError)


def test_a_criterion_may_take_any_output() -> None:
    pair, plain = Returns(lambda y: {"loss": y.sum(), "logits": y}), net()
    pair.net.load_state_dict(plain.state_dict())

    def picks(output: Any, target: Tensor) -> Tensor:
        return CE(output["logits"], target)

    shattering = gradient_shattering(pair, (X, Y), criterion=picks, outputs="loss").gradients
    expected = gradient_shattering(plain, (X, Y), criterion=CE, outputs="loss").gradients
    torch.testing.assert_close(shattering, expected)
    norms = gradient_norms(pair, (X, Y), criterion=picks, layers=["net.0"]).mean
    torch.testing.assert_close(norms, gradient_norms(plain, (X, Y), criterion=CE, layers=["0"]).mean)


@every
def test_a_network_that_returns_nothing(measure: Any) -> None:
    if measure in (activation_patterns, singularities):  # they look inside alone
        measure(Returns(lambda y: None), (X, Y))
        return
    refused(lambda: measure(Returns(lambda y: None), (X, Y)), "the network returns None")


@pytest.mark.parametrize("wrong", [nn.CrossEntropyLoss, "mse"])
def test_a_criterion_that_is_no_function(wrong: Any) -> None:
    said = {
        nn.CrossEntropyLoss: "is the class CrossEntropyLoss; pass an instance",
        "mse": "is 'mse', but must be",
    }
    refused(lambda: Subject.of(net(), criterion=wrong), f"criterion {said[wrong]}")
    refused(lambda: Subject.of(net(), loss_fn=wrong), f"loss_fn {said[wrong]}")


# What is not explained ----------------------------------------------------------------------------------------


class Mine(ValueError):
    """A user's own error."""


@pytest.mark.parametrize(
    "error",
    [
        Mine("mine"),
        KeyboardInterrupt(),
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
        Refused("ours"),
    ],
)
@pytest.mark.parametrize("where", ["network", "criterion"])
def test_what_is_left_as_it_is(error: BaseException, where: str) -> None:
    def fails(*_: Any) -> Any:
        raise error

    model = Returns(fails) if where == "network" else net()
    with pytest.raises(type(error)) as caught:
        Subject.of(model, criterion=fails if where == "criterion" else CE).losses((X, Y))
    assert caught.value is error


def test_a_mistake_in_a_hook_of_ours_is_not_blamed_on_the_network() -> None:
    import skiplab.subjects.subject as room

    source = "def broken(*_):\n    raise ValueError('a mistake of ours')\n"
    exec(compile(source, "hook", "exec"), room.__dict__)
    try:
        model = net()
        model[0].register_forward_hook(room.__dict__["broken"])
        with pytest.raises(ValueError, match=r"^a mistake of ours$") as caught:
            Subject.of(model).outputs(X)
        assert type(caught.value) is ValueError
    finally:
        del room.__dict__["broken"]


# Batches ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [gradient_shattering, activation_patterns])
def test_where_samples_are_looked_at_one_by_one(measure: Any) -> None:
    model, data = net(), torch.utils.data.TensorDataset(X, Y)
    expected = measure(model, (X, Y)).frame()
    several: list[Any] = [torch.utils.data.DataLoader(data, batch_size=3), iter([(X, Y)]), [(X, Y)]]
    for given in several:
        pandas.testing.assert_frame_equal(measure(model, given).frame(), expected, rtol=1e-4)
    refused(lambda: measure(model, data), "gives samples one by one; pass a DataLoader over it")
    refused(
        lambda: measure(model, [[(X, Y)]]), r"was given where one batch is measured; pass one, e\.g\. next"
    )
    refused(
        lambda: measure(net(), X.numpy()), r"is a NumPy array; turn it into a tensor with torch\.from_numpy"
    )
    refused(lambda: measure(net(), None), "a batch of type NoneType holds no tensor of samples; pass")


@losses
def test_numpy_inside_a_batch(measure: Any) -> None:
    refused(lambda: measure(net(), (X.numpy(), Y.numpy())), r"NumPy array.*torch\.from_numpy")
    refused(lambda: measure(net(), (X.numpy(), Y)), r"torch\.from_numpy")


def test_what_is_no_batch() -> None:
    refused(lambda: list(batches_of(None)), "a batch of type NoneType holds no tensor of samples")
    refused(
        lambda: list(batches_of(torch.utils.data.TensorDataset(X, Y))),
        "one by one; pass a DataLoader over it",
    )
    refused(lambda: batch_size(torch.tensor(1.0)), "a batch of type Tensor holds no tensor of samples")
    assert batch_size({"scale": torch.tensor(1.0), "x": X}) == 10
    assert batch_size({"views": (X, X)}) == 10


@every
def test_no_sample_is_one_refusal_everywhere(measure: Any) -> None:
    refused(
        lambda: measure(net(), (X[:0], Y[:0])), "^the batches hold no sample; pass a batch with at least one"
    )


def test_empty_batches_among_others_are_left_out() -> None:
    assert [batch_size(batch) for batch in batches_of([(X[:0], Y[:0]), (X, Y)])] == [10]
    refused(lambda: list(batches_of(X[:0])), "hold no sample")


def test_the_output_is_the_first_tensor_that_is_no_number() -> None:
    assert first_tensor({"loss": X.sum(), "logits": X}) is X
    assert first_tensor((None, X)) is X
    assert first_tensor(X[0, 0]) is not None
    assert first_tensor("logits") is None
    found = gradient_shattering(Returns(lambda y: {"loss": y.sum(), "logits": y}), X)
    assert found.gradients.shape == (1, 10, 6)
