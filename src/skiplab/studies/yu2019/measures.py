"""What is measured of yu2019's networks while they train, as callbacks of the training loop.

Quantities, by layer where it is not 0 (layers count as the paper does: the stem is 1, the output L):

- ``test_error``, ``test_loss``; ``clean_loss``, ``clean_error`` on the training images without crops and flips;
- weights, see ``weights``;
- ``cushion``: the median of ‖A x‖ / (‖A‖_F ‖x‖) over images, A having the 1 of identity connections in A x and, as in
  the paper, not in ‖A‖_F; ``cushion_kept`` with the 1 in both, ``cushion_bare`` in neither; ``_least``: the minimum;
  ``_quantile``: its distribution over images in the 10th layer, at the shares of ``SHARES``, which count as layers;
- ``noise_…``: the mean over draws of ln ‖y′ − y‖ / ‖y‖ under noise in one layer, and ``lost_…``, the accuracy lost;
- ``flow``, ``flow_median``, ``flow_positions``, ``flow_dead``: shares of dominant gradient flows, means over images;
- ``final_mean``, ``final_std``, ``final_quantile``: gradients of the last activities, all images and channels;
- ``interlayer``, by block: the mean over images of the interlayer cushion, per image and in evaluation mode;
- ``diagonal_test_error``: the test error with all weights of the blocks' kernels zeroed but those that T′ networks
  have.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab.architectures.convolutional import GroupedNet
from skiplab.architectures.simplified import SimplifiedResNet
from skiplab.architectures.transfer import id_entries, to_plain
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.measurements.dominant_gradient_flow import dominant_gradient_flow
from skiplab.measurements.noise_stability.interlayer_cushions import interlayer_cushions
from skiplab.measurements.noise_stability.layer_cushions import layer_cushions
from skiplab.measurements.noise_stability.weight_noise import weight_noise
from skiplab.studies.yu2019.networks import Networks, samples_of
from skiplab.studies.yu2019.weights import weights
from skiplab.subjects import Subject
from skiplab.subjects.wiring import weight_layers
from skiplab.training.loop import Callback, Rows

Found = tuple[str, int, Tensor]  # a quantity, a layer, and its values, one per network
TENTH = 10  # the layer of figure 3; the last where there are fewer
CHUNK = 500  # images at once: bounds memory, changes nothing
SHARES = tuple(percent / 100 for percent in range(0, 101, 2))
NOISE = {"relative": (0.05, 0.1, 0.2), "absolute": (0.005, 0.01, 0.02)}
INTERLAYER_PROBES = 256


def callbacks(settings: Networks, samples: TensorSet, device: str) -> list[Callback]:
    """A callback per kind of measurement that the settings ask for."""
    wanted, common = settings.measures, settings.training
    steps = -(-len(samples) // common.batch_size)

    def held_out() -> TensorSet:
        # Mean and scale are those of as many training images as are named here, so it must be the same number.
        return samples_of(settings.data, "test", common.images, common.side, device)

    def tested(ensemble: Ensemble) -> Iterator[Found]:
        return answers(ensemble, first(held_out(), wanted.test_images), "test", mixed=common.mixed)

    def zeroed(ensemble: Ensemble) -> Iterator[Found]:
        images = first(held_out(), wanted.test_images)
        return answers(ensemble.mapped(diagonal_only), images, "diagonal_test", mixed=common.mixed)

    kinds: dict[str, tuple[Iterable[int], Callable[[Ensemble], Iterable[Found]]]] = {
        "test": (range(0, common.epochs + 1, wanted.test_every) if wanted.test_every else (), tested),
        "clean": (wanted.clean, partial(answers, samples=samples, name="clean", mixed=common.mixed)),
        "weights": (wanted.weights, partial(weights, settings=settings, samples=samples)),
        "cushions": (wanted.cushions, partial(cushions, samples=first(samples, wanted.cushion_images))),
        "noise": (
            wanted.noise,
            partial(noise, samples=first(samples, wanted.noise_images), draws=wanted.noise_draws),
        ),
        "flows": (wanted.flows, partial(flows, samples=first(samples, wanted.flow_images))),
        "final_gradients": (wanted.final_gradients, partial(final_gradients, samples=first(samples, 1280))),
        "interlayer": (
            wanted.interlayer,
            partial(interlayer, samples=first(samples, wanted.interlayer_images)),
        ),
        "diagonals": (wanted.diagonals, zeroed),
    }
    made = []
    for kind, (epochs, measure) in kinds.items():
        at = {epoch * steps: epoch for epoch in epochs if epoch <= common.epochs}
        if kind == "flows" and 0 in at:
            at = {1 if step == 0 else step: epoch for step, epoch in at.items()}
        if at:
            made.append(Callback(frozenset(at), partial(_rows, at=at, measure=measure)))
    return made


def _rows(
    ensemble: Ensemble, step: int, *, at: Mapping[int, int], measure: Callable[[Ensemble], Iterable[Found]]
) -> Rows:
    ensemble.train(False)
    return [
        {"member": member, "epoch": at[step], "quantity": quantity, "layer": layer, "value": value}
        for quantity, layer, values in measure(ensemble)
        for member, value in enumerate(values.tolist())
    ]


def first(samples: TensorSet, count: int | None) -> TensorSet:
    """The first images of a set, all if no number is given."""
    return dataclasses.replace(samples, inputs=samples.inputs[:count], labels=samples.labels[:count])


def parts(samples: TensorSet, size: int = CHUNK) -> list[tuple[Tensor, Tensor]]:
    """Images and labels in batches."""
    return list(zip(samples.inputs.split(size), samples.labels.split(size), strict=True))


def answers(ensemble: Ensemble, samples: TensorSet, name: str, *, mixed: bool) -> Iterator[Found]:
    """Loss and error on images as they are; in bfloat16 where training is, which costs a third."""
    loss = torch.zeros(ensemble.size, dtype=torch.float64, device=ensemble.device)
    wrong = torch.zeros_like(loss)
    for inputs, labels in parts(samples):
        with torch.no_grad(), torch.autocast(ensemble.device.type, torch.bfloat16, enabled=mixed):
            outputs = ensemble(inputs).float()
        every = labels.expand(ensemble.size, -1)
        each = F.cross_entropy(outputs.flatten(0, 1), every.flatten(), reduction="none")
        loss += each.view_as(every).double().sum(1)
        wrong += (outputs.argmax(-1) != labels).sum(1)
    yield f"{name}_loss", 0, loss / len(samples)
    yield f"{name}_error", 0, wrong / len(samples)


# Noise stability -----------------------------------------------------------------------------------------------


def as_plain(ensemble: Ensemble) -> tuple[Ensemble, dict[str, Tensor] | None]:
    """The plain networks of the same functions, and the identities in their weights where there are any."""
    if type(ensemble.skeleton) is not SimplifiedResNet:
        return ensemble, None
    return ensemble.mapped(to_plain), id_entries(ensemble.skeleton)


def cushions(ensemble: Ensemble, samples: TensorSet) -> Iterator[Found]:
    """Cushions of all layers with weights, in the paper's norm and in two others."""
    plain, identities = as_plain(ensemble)
    images = list(samples.inputs.split(CHUNK))
    found = layer_cushions(plain, images, identities=identities)
    kept = found.cushions
    kinds = {
        "cushion": kept if identities is None else found.without_identities,
        "cushion_kept": kept,
        "cushion_bare": kept if identities is None else layer_cushions(ensemble, images).cushions,
    }
    middle = min(TENTH, kept.shape[2])
    for quantity, values in kinds.items():
        for layer, each in enumerate(values.double().unbind(2), 1):
            yield quantity, layer, each.nanmedian(1).values
            yield f"{quantity}_least", layer, each.nan_to_num(nan=torch.inf).amin(1)
            if layer == middle:
                yield from distribution(f"{quantity}_quantile", each)


def noise(ensemble: Ensemble, samples: TensorSet, draws: int) -> Iterator[Found]:
    """Change of outputs and accuracy lost under noise in one layer's weights, relative to them or absolute."""
    plain, identities = as_plain(ensemble)
    batches = parts(samples)
    kinds = [("relative", True, identities), ("absolute", False, None)]
    if identities is not None:
        kinds.insert(1, ("relative_kept", True, None))
    for kind, relative, removed in kinds:
        for size in NOISE[kind.partition("_")[0]]:
            found = weight_noise(
                plain, batches, size=size, relative=relative, draws=draws, identities=removed
            )
            for layer in range(len(found.layers)):
                yield f"noise_{kind}_{size:g}", layer + 1, found.change[:, layer].log().mean(1)
                yield f"lost_{kind}_{size:g}", layer + 1, found.accuracy_lost[:, layer].mean(1)


def interlayer(ensemble: Ensemble, samples: TensorSet) -> Iterator[Found]:
    """Interlayer cushions of the blocks, image by image with running statistics."""
    found = interlayer_cushions(ensemble, samples.inputs, probes=INTERLAYER_PROBES)
    for block in range(len(found.layers)):
        yield "interlayer", block + 1, found.cushions[..., block].mean(1)


def blocks_of(ensemble: Ensemble) -> tuple[str, ...]:
    """The names of the networks' blocks, in order of depth."""
    assert isinstance(ensemble.skeleton, GroupedNet)
    return ensemble.skeleton.block_names


# Gradients -----------------------------------------------------------------------------------------------------


def flows(ensemble: Ensemble, samples: TensorSet) -> Iterator[Found]:
    """Shares of dominant flows in the activities after the stem and every block but the last."""
    names = ["stem", *blocks_of(ensemble)[:-1]]
    batch = (samples.inputs, samples.labels)
    found = dominant_gradient_flow(ensemble, batch, criterion=F.cross_entropy, layers=names)
    kinds = {
        "flow": found.by_mean,
        "flow_median": found.by_median,
        "flow_positions": found.by_position,
        "flow_dead": found.dead,
    }
    for quantity, values in kinds.items():
        for layer in range(len(found.layers)):
            yield quantity, layer + 1, values[..., layer].mean(1)


def final_gradients(ensemble: Ensemble, samples: TensorSet) -> Iterator[Found]:
    """Gradients of a batch's mean loss in the last activities, one number per image and channel."""
    subject = Subject.of(ensemble, criterion=F.cross_entropy)
    last = blocks_of(ensemble)[-1]
    # Pooling is a mean over positions: its input has the gradient of its output divided by their number.
    found = [
        subject.activity_gradients(batch, [last])[last].flatten(3).sum(3).flatten(1)
        for batch in parts(samples, 128)
    ]
    values = torch.cat(found, 1).double()
    yield "final_mean", 0, values.mean(1)
    yield "final_std", 0, values.std(1)
    yield from distribution("final_quantile", values)


def distribution(quantity: str, values: Tensor) -> Iterator[Found]:
    """The values (E, numbers) at the shares of ``SHARES``, whose place takes that of a layer."""
    for number, share in enumerate(SHARES):
        # torch's quantile refuses more than 16 million numbers.
        sorted_place = 1 + round(share * (values.shape[1] - 1))
        yield quantity, number, values.nan_to_num(nan=torch.inf).kthvalue(sorted_place, dim=1).values


# Controls ------------------------------------------------------------------------------------------------------


def diagonal_only(net: nn.Module) -> nn.Module:
    """A copy whose blocks' kernels read channel c in channel c alone and, where they widen, in its second copy."""
    changed = copy.deepcopy(net)
    for name, layer in weight_layers(changed).items():
        if name.startswith("blocks."):
            filters, channels = layer.weight.shape[:2]
            kept = torch.eye(channels).repeat(-(-filters // channels), 1)[:filters]
            layer.weight.data.mul_(kept.to(layer.weight)[..., None, None])
    return changed
