"""Activities and their gradients against plain autograd in float64; what a user's module may look like."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab.architectures import ARCHITECTURES, examples
from skiplab.architectures.thin import ThinNet
from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject
from skiplab.subjects.batches import batch_size, batches_of

both = pytest.mark.parametrize("backend", ["batched", "loop"])
modes = pytest.mark.parametrize("train_mode", [False, True])
X = torch.randn(7, 4, generator=torch_generator("x"), dtype=torch.float64)
Y = torch.randint(4, (7,), generator=torch_generator("y"))
criterion = nn.CrossEntropyLoss()


def drawn(make: Callable[[], nn.Module], seed: int = 0) -> Any:
    """Build a module whose constructor draws from the global generator, without touching that."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return make().double()


def by_autograd(
    module: nn.Module,
    loss_of: Callable[[nn.Module], Tensor],
    layers: Sequence[str],
    *,
    train_mode: bool = False,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The oracle: hooks that keep every output and its gradient in an ordinary backward pass."""
    kept: dict[str, Tensor] = {}

    def hook_for(name: str) -> Callable[..., None]:
        def hook(_: nn.Module, __: Any, output: Any) -> None:
            tensor = output[0] if isinstance(output, tuple) else output
            tensor.retain_grad()
            count = sum(key.split("#")[0] == name for key in kept)
            kept[f"{name}#{count + 1}" if count else name] = tensor

        return hook

    module.train(train_mode)
    handles = [module.get_submodule(name).register_forward_hook(hook_for(name)) for name in layers]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        loss_of(module).backward()
    for handle in handles:
        handle.remove()
    gradients = {k: torch.zeros_like(v) if v.grad is None else v.grad for k, v in kept.items()}
    return {k: v.detach() for k, v in kept.items()}, gradients


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor], member: int = 0) -> None:
    assert list(found) == list(expected)
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name][member], tensor, rtol=1e-10, atol=1e-14)


def check(
    module: nn.Module,
    layers: Sequence[str],
    *,
    reference: nn.Module | None = None,
    train_mode: bool = False,
    batch: Any = (X, Y),
) -> dict[str, Tensor]:
    """Compare a lone module's activities and gradients with the oracle; return the gradients."""
    subject = Subject.of(module, criterion=criterion, train_mode=train_mode)
    activities = subject.activities(batch, layers)
    gradients = subject.activity_gradients(batch, layers)
    expected = by_autograd(
        reference or module, lambda net: criterion(net(X), Y), layers, train_mode=train_mode
    )
    assert_same(activities, expected[0])
    assert_same(gradients, expected[1])
    return gradients


# Our networks ----------------------------------------------------------------------------------------------


@both
@modes
@pytest.mark.parametrize("name", ["plain", "residual-bn", "hyper-residual", "linear-residual", "resnet"])
def test_members_of_an_ensemble_have_their_own_activities(name: str, backend: str, train_mode: bool) -> None:
    nets = [examples(torch.float64)[name](torch_generator(seed)) for seed in range(3)]
    x = torch.randn(6, *ARCHITECTURES[name].input_shape, generator=torch_generator(0), dtype=torch.float64)
    y = torch.randint(3, (6,), generator=torch_generator(1))
    subject = Subject.of(Ensemble.of(nets, backend=backend), criterion=criterion, train_mode=train_mode)
    activities, gradients = subject.activities((x, y)), subject.activity_gradients((x, y))
    outputs, losses = subject.outputs((x, y)), subject.losses((x, y))
    assert subject.size == 3
    for index, net in enumerate(nets):
        expected = by_autograd(net, lambda net: criterion(net(x), y), subject.blocks, train_mode=train_mode)
        assert_same(activities, expected[0], index)
        assert_same(gradients, expected[1], index)
        torch.testing.assert_close(outputs[index], net(x), rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(losses[index], criterion(net(x), y), rtol=1e-10, atol=1e-12)
    assert tuple(activities) == subject.blocks == nets[0].block_names


def test_layers_are_the_parts_with_parameters() -> None:
    net = examples()["residual-bn"](torch_generator(0))
    hidden = [f"hidden.{k}.linear" for k in range(5)]
    assert Subject.of(net).layers == (*hidden[:2], "hidden.1.norm", *hidden[2:], "output")


# A user's module -------------------------------------------------------------------------------------------


@modes
def test_batch_normalisation_and_dropout_in_both_modes(train_mode: bool) -> None:
    net = drawn(
        lambda: nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 4))
    )
    net.train(not train_mode)
    check(net, ["0", "1", "3", "4"], train_mode=train_mode)


def test_dropout_masks_are_the_same_at_every_call() -> None:
    subject = Subject.of(drawn(lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 4))), train_mode=True)
    first = subject.activities(X, ["0"])["0"]
    assert bool((first == 0).any())
    torch.rand(3, generator=torch.default_generator)
    assert torch.equal(first, subject.activities(X, ["0"])["0"])


def test_an_in_place_activation_does_not_reach_the_noted_values() -> None:
    def make(inplace: bool) -> nn.Module:
        return drawn(lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=inplace), nn.Linear(8, 4)))

    check(make(True), ["0", "1"], reference=make(False))
    assert bool((Subject.of(make(True)).activities(X, ["0"])["0"] < 0).any())


def test_a_layer_called_twice_is_counted() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.head = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(torch.tanh(self.linear(torch.tanh(self.linear(x)))))

    gradients = check(drawn(Twice), ["linear", "head"])
    assert list(gradients) == ["linear", "linear#2", "head"]
    nets = [drawn(Twice, seed) for seed in range(3)]
    for backend in ("batched", "loop"):  # the count starts anew with every member
        subject = Subject.of(Ensemble.of(nets, backend=backend), criterion=criterion)
        found = subject.activity_gradients((X, Y), ["linear", "head"])
        for index, net in enumerate(nets):
            expected = by_autograd(net, lambda net: criterion(net(X), Y), ["linear", "head"])
            assert_same(found, expected[1], index)


def test_a_layer_named_twice_is_looked_at_once() -> None:
    net = drawn(lambda: nn.Sequential(nn.Linear(4, 4)))
    assert list(Subject.of(net).activities(X, ["0", "0"])) == ["0"]


def test_tied_and_frozen_parameters() -> None:
    net = drawn(lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Linear(4, 4)))
    net[2].weight = net[0].weight
    net[0].requires_grad_(False)
    # The oracle needs gradients to flow, so there the frozen parameters are not.
    reference = drawn(lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Linear(4, 4)))
    reference.load_state_dict(net.state_dict())
    check(net, ["0", "2", "3"], reference=reference)


def test_a_module_that_is_frozen_altogether_is_measured_like_any() -> None:
    net = drawn(lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)))
    expected = by_autograd(net, lambda net: criterion(net(X), Y), ["0"])[1]
    net.requires_grad_(False)
    assert_same(Subject.of(net, criterion=criterion).activity_gradients((X, Y), ["0"]), expected)


def test_gradients_are_found_where_the_caller_has_switched_them_off() -> None:
    net = drawn(lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)))
    subject = Subject.of(net, criterion=criterion)
    with torch.no_grad():
        found = subject.activity_gradients((X, Y), ["0"])
        assert not torch.is_grad_enabled()
    assert_same(found, by_autograd(net, lambda net: criterion(net(X), Y), ["0"])[1])


def test_gradients_are_found_in_a_callers_inference_mode() -> None:
    net = drawn(lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)))
    subject = Subject.of(net, criterion=criterion)
    with torch.inference_mode():
        found = subject.activity_gradients((X.clone(), Y.clone()), ["0"])  # clones made in this mode
    assert_same(found, by_autograd(net, lambda net: criterion(net(X), Y), ["0"])[1])


class Checkpointed(nn.Module):
    """Its first two layers run inside gradient checkpointing."""

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.hidden, self.output = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), nn.Linear(4, 4)
        self.reentrant = reentrant

    def forward(self, x: Tensor) -> Tensor:
        from torch.utils.checkpoint import checkpoint

        # Reentrant checkpointing only differentiates if its input asks for it.
        x = x.requires_grad_() if self.reentrant else x
        return self.output(checkpoint(self.hidden, x, use_reentrant=self.reentrant))


@pytest.mark.parametrize("reentrant", [True, False])
def test_layers_hidden_by_checkpointing_are_refused_not_zero(reentrant: bool) -> None:
    subject = Subject.of(drawn(lambda: Checkpointed(reentrant)), criterion=criterion, train_mode=True)
    with pytest.raises(Refused, match="inside gradient checkpointing"):
        subject.activity_gradients((X, Y), ["hidden.0", "output"])


def test_our_own_checkpointing_is_refused_too() -> None:
    net = ThinNet(1, generator=torch_generator(0), image_size=16, checkpoint_every=2)
    batch = torch.ones(2, 3, 16, 16), torch.tensor([0, 1])
    with pytest.raises(Refused, match=r"layer 'blocks.0' runs inside gradient checkpointing"):
        Subject.of(net, criterion=criterion, train_mode=True).activity_gradients(batch)
    assert len(Subject.of(net, criterion=criterion).activity_gradients(batch)) == 5  # none in evaluation mode


@pytest.mark.parametrize("size", [1, 2])
def test_a_network_that_changes_its_input_gets_a_copy(size: int) -> None:
    net = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 4, dtype=torch.float64))
    ensemble = Ensemble.of([net] * size, backend="loop")
    before = X.clone()
    outputs = Subject.of(ensemble).outputs((X, Y))
    assert torch.equal(X, before)
    for member in outputs:
        torch.testing.assert_close(member, net(X.clone()))


def test_a_network_of_several_inputs_wants_them_by_name() -> None:
    class Two(nn.Bilinear):
        """Two inputs, by position."""

    net = drawn(lambda: Two(4, 4, 4))
    with pytest.raises(
        Refused, match="the network takes 'input2' beside its first input; pass batches as dicts"
    ):
        Subject.of(net).outputs((X, X))
    assert Subject.of(net).outputs({"input1": X, "input2": X}).shape == (1, 7, 4)


@pytest.mark.filterwarnings(
    "ignore:There is a performance drop"
)  # torch has no rule for weight norm under vmap
def test_parametrised_layers_are_layers_like_others() -> None:
    from torch.nn.utils.parametrizations import weight_norm

    def build() -> nn.Module:
        return nn.Sequential(weight_norm(nn.Linear(4, 4)), nn.Tanh(), weight_norm(nn.Linear(4, 4)))

    nets = [drawn(build, seed) for seed in range(2)]
    assert Subject.of(nets[0]).layers == Subject.of(nets[0]).blocks == ("0", "2")
    for backend in ("batched", "loop"):
        found = Subject.of(Ensemble.of(nets, backend=backend), criterion=criterion).activity_gradients((X, Y))
        for member, net in enumerate(nets):
            expected = by_autograd(net, lambda net: criterion(net(X), Y), ["0", "2"])[1]
            assert_same({name: tensor[member : member + 1] for name, tensor in found.items()}, expected)


class Pair(NamedTuple):
    """What a layer of TupleNet returns."""

    value: Tensor
    note: str


class TupleNet(nn.Module):
    """Layers that return a tuple, a named tuple and a list, of which the first entry is the value."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 4, batch_first=True)
        self.named, self.listed = self.Named(), self.Listed()

    class Named(nn.Linear):
        def __init__(self) -> None:
            super().__init__(4, 4)

        def forward(self, x: Tensor) -> Pair:  # type: ignore[override]
            return Pair(super().forward(x), "kept")

    class Listed(nn.Module):
        def forward(self, x: Tensor) -> list[Tensor]:
            return [x]

    def forward(self, x: Tensor) -> Tensor:
        pair = self.named(self.lstm(x[:, None])[0][:, 0])
        assert pair.note == "kept"
        return self.listed(torch.tanh(pair.value))[0]


def test_of_a_layer_that_returns_a_tuple_the_first_entry_counts() -> None:
    check(drawn(TupleNet), ["lstm", "named"])


def test_a_layer_that_returns_neither_tensor_nor_tuple_is_refused() -> None:
    with pytest.raises(Refused, match="layer 'listed' returns a list, not a tensor; choose another layer"):
        Subject.of(drawn(TupleNet)).activities(X, ["listed"])


class TwoHeads(nn.Module):
    """One head is used, one is computed and thrown away, one is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4)
        self.side, self.idle = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.body(x))
        self.side(x)
        return self.head(x)


@pytest.mark.parametrize("layers", [["body", "side"], ["side"]])
def test_a_layer_that_the_loss_does_not_depend_on_has_gradient_zero(layers: list[str]) -> None:
    gradients = check(drawn(TwoHeads), layers)
    assert torch.equal(gradients["side"], torch.zeros(1, 7, 2, dtype=torch.float64))


def test_a_layer_that_is_not_called_is_left_out_unless_asked_for() -> None:
    subject = Subject.of(drawn(TwoHeads), criterion=criterion)
    assert subject.blocks == ("body", "head", "side", "idle")
    assert list(subject.activity_gradients((X, Y))) == ["body", "side", "head"]
    with pytest.raises(Refused, match="layer 'idle' is not called on this batch; choose one that is"):
        subject.activity_gradients((X, Y), ["body", "idle"])


def test_a_transformers_inner_layers_are_seen() -> None:
    net = drawn(lambda: nn.Sequential(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), nn.Linear(4, 4)))
    x = X[:, None, :]
    subject = Subject.of(net, criterion=lambda output, y: criterion(output[:, 0], y))
    layers = ["0.linear1", "0"]
    expected = by_autograd(net, lambda net: criterion(net(x)[:, 0], Y), layers)
    assert_same(subject.activities((x, Y), layers), expected[0])
    assert_same(subject.activity_gradients((x, Y), layers), expected[1])


def test_the_whole_network_may_be_the_layer() -> None:
    check(drawn(lambda: nn.Linear(4, 4)), [""])


# Losses and batches ----------------------------------------------------------------------------------------


class Keywords(nn.Module):
    """A network that takes its input by name."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, *, features: Tensor, scale: float = 1.0) -> Tensor:
        return scale * self.linear(features)


@pytest.mark.parametrize("kind", [dict, UserDict])
@pytest.mark.parametrize("key", ["labels", "target"])
def test_batches_with_names(kind: Callable[[dict[str, Any]], Any], key: str) -> None:
    net = drawn(Keywords)
    batch = kind({"features": X, "scale": 2.0, key: Y})
    subject = Subject.of(net, criterion=criterion)
    expected = by_autograd(net, lambda net: criterion(net(features=X, scale=2.0), Y), ["linear"])
    assert_same(subject.activities(batch, ["linear"]), expected[0])
    assert_same(subject.activity_gradients(batch, ["linear"]), expected[1])
    torch.testing.assert_close(subject.outputs(batch)[0], net(features=X, scale=2.0))


class Decoder(nn.Module):
    """A network that makes the input of its decoder from its labels unless it is given, as T5 does."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.decoder = nn.Embedding(5, 4), nn.Linear(4, 5)

    def forward(
        self, input_ids: Tensor, decoder_input_ids: Tensor | None = None, labels: Tensor | None = None
    ) -> Tensor:
        if decoder_input_ids is None:
            if labels is None:
                raise ValueError("specify decoder_input_ids")
            decoder_input_ids = labels.roll(1, 1)
        return self.decoder(self.words(input_ids).mean(1, keepdim=True) + self.words(decoder_input_ids))


class Required(nn.Module):
    """A network that cannot be called without its labels."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        return self.linear(x) + labels[:, None]


def test_labels_are_given_to_a_network_that_needs_them_and_to_no_other() -> None:
    words, labels = torch.arange(6).view(2, 3) % 5, torch.tensor([[1, 2, 3], [4, 0, 1]])
    net = drawn(Decoder)
    with torch.no_grad():
        from_labels = net(words, labels=labels)
        given = net(words, decoder_input_ids=words)
    batch = {"input_ids": words, "labels": labels}
    torch.testing.assert_close(Subject.of(net).outputs(batch)[0], from_labels)
    # Where the decoder has its input, labels are what answers are compared with, and nothing else.
    torch.testing.assert_close(Subject.of(net).outputs({**batch, "decoder_input_ids": words})[0], given)
    # A loss of the outputs is that of the same call.
    flat = lambda output, target: F.cross_entropy(output.flatten(0, 1), target.flatten())  # noqa: E731
    torch.testing.assert_close(Subject.of(net, criterion=flat).losses(batch)[0], flat(from_labels, labels))
    required = drawn(Required)
    found = Subject.of(required).outputs({"x": X, "labels": Y})[0]
    torch.testing.assert_close(found, required(X, Y).detach())


@both
def test_a_loss_of_ones_own_may_call_the_model_as_it_likes(backend: str) -> None:
    def loss_fn(model: nn.Module, batch: Any) -> Tensor:
        first, second = batch["views"]
        return F.mse_loss(model(first), model(second)) + sum(p.square().sum() for p in model.parameters())

    batch = {"views": (X, X.flip(0))}
    nets = [drawn(lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)), s) for s in range(2)]
    subject = Subject.of(Ensemble.of(nets, backend=backend), loss_fn=loss_fn)
    activities, gradients = subject.activities(batch, ["0"]), subject.activity_gradients(batch, ["0"])
    losses = subject.losses(batch)
    for index, net in enumerate(nets):
        expected = by_autograd(net, lambda net: loss_fn(net, batch), ["0"])
        assert list(expected[0]) == ["0", "0#2"]
        assert_same(activities, expected[0], index)
        assert_same(gradients, expected[1], index)
        torch.testing.assert_close(losses[index], loss_fn(net, batch))


def test_measuring_follows_an_ensemble_while_it_learns() -> None:
    ensemble = Ensemble.of([drawn(lambda: nn.Linear(4, 4))])
    subject = Subject.of(ensemble, criterion=criterion)
    before = subject.losses((X, Y))
    ensemble.rows.zero_()
    assert not torch.equal(subject.losses((X, Y)), before)
    torch.testing.assert_close(subject.losses((X, Y)), torch.full((1,), 4.0, dtype=torch.float64).log())


def test_no_other_device_is_seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    seeded = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    Subject.of(drawn(lambda: nn.Linear(4, 4))).outputs(X)
    assert seeded == []


def test_wrong_losses_are_refused() -> None:
    net = nn.Sequential(nn.Linear(4, 4)).double()
    with pytest.raises(Refused, match="both criterion and loss_fn were given; pass the one that fits"):
        Subject.of(net, criterion=criterion, loss_fn=lambda model, batch: model(batch).sum())
    with pytest.raises(Refused, match="this measurement needs a loss; pass criterion"):
        Subject.of(net).activity_gradients((X, Y))
    with pytest.raises(Refused, match=r"the loss is \(7,\), not a scalar; reduce it"):
        Subject.of(net, criterion=nn.CrossEntropyLoss(reduction="none")).losses((X, Y))
    with pytest.raises(Refused, match="the loss is float, not a scalar; reduce it"):
        Subject.of(net, loss_fn=lambda model, batch: 1.0).losses((X, Y))  # type: ignore[arg-type,return-value]


def test_wrong_batches_are_refused() -> None:
    subject = Subject.of(drawn(Keywords), criterion=criterion)
    with pytest.raises(Refused, match="the batch has no labels among features, scale; name them 'labels'"):
        subject.losses({"features": X, "scale": 1.0})
    with pytest.raises(Refused, match=r"criterion needs batches \(input, target\) or dicts with labels"):
        Subject.of(nn.Linear(4, 4).double(), criterion=criterion).losses((X, Y, Y))
    with pytest.raises(Refused, match="a batch of type str holds no tensor of samples; pass"):
        batch_size("images")


def test_wrong_targets_and_layers_are_refused() -> None:
    net = nn.Sequential(nn.Linear(4, 4)).double()
    with pytest.raises(Refused, match=r"a function was given; pass a torch\.nn\.Module or an Ensemble"):
        Subject.of(lambda x: x)  # type: ignore[arg-type]
    with pytest.raises(
        Refused, match=r"layer 'hidden.00' does not exist in the network\. Did you mean hidden"
    ):
        Subject.of(examples()["plain"](torch_generator(0))).activities(X, ["hidden.00"])
    with pytest.raises(Refused, match="there is no layer to look at; name one of the network's modules"):
        Subject.of(net).activities(X, [])
    with pytest.raises(Refused, match="there is no layer to look at"):
        Subject.of(nn.ReLU()).activities(X)


def test_one_name_is_not_taken_for_a_list_of_letters() -> None:
    net = nn.Sequential(nn.Linear(4, 4, dtype=torch.float64))
    with pytest.raises(Refused, match=r"layers is '0', but must be a list of names: \['0'\]"):
        Subject.of(net).activities(X, "0")


def test_a_subject_stays_what_it_is_but_for_its_mode() -> None:
    subject = Subject.of(nn.Linear(4, 4), criterion=criterion)
    assert Subject.of(subject) is subject
    training = Subject.of(subject, train_mode=True)
    assert (training.train_mode, subject.train_mode) == (True, False)
    assert Subject.of(training) is training
    assert not Subject.of(training, train_mode=False).train_mode
    for change in ({"criterion": criterion}, {"loss_fn": lambda m, b: m(b)}):
        with pytest.raises(Refused, match=r"a Subject has its loss already; give it to Subject\.of"):
            Subject.of(subject, **change)


def test_a_lone_batch_counts_as_one_and_a_loader_as_many() -> None:
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, Y), batch_size=4)
    assert [batch_size(batch) for batch in batches_of(loader)] == [4, 3]
    lone: list[Any] = [X, (X, Y), [X, Y], {"x": X, "labels": Y}, UserDict({"x": X})]
    for batch in lone:
        assert [batch_size(found) for found in batches_of(batch)] == [7]
        assert next(iter(batches_of(batch))) is batch
    assert len(list(batches_of([(X, Y), (X, Y)]))) == 2


@pytest.mark.parametrize("empty", [[], iter(())])
def test_no_batch_at_all_is_refused(empty: Any) -> None:
    with pytest.raises(Refused, match="there was no batch to measure on; pass a batch or a loader"):
        list(batches_of(empty))
