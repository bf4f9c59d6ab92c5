"""What is measured of yu2019's networks while they train, as callbacks of the training loop.

Quantities, by layer where it is not 0 (layers count as the paper does: the stem is 1, the output L):

- ``test_error``, ``test_loss``; ``clean_loss``, ``clean_error`` on the training images without crops and flips;
- weights, see ``weights``;
- ``cushion``: the median of ‖A x‖ / (‖A‖_F ‖x‖) over images, A having the 1 of identity connections in A x and, as in
  the paper, not in ‖A‖_F; ``cushion_kept`` with the 1 in both, ``cushion_bare`` in neither; ``_least``: the minimum;
  ``_quantile``: its distribution over images in the 10th layer, at the shares of ``SHARES``, which count as layers;
- ``noise_…``: the mean over draws of ln ‖y′ − y‖ / ‖y‖ under noise in one layer, and ``lost_…``, the accuracy lost;
- ``flow``, ``flow_median``, ``flow_positions``, ``flow_dead``: shares of dominant gradient flows, means over images;
  of full networks with the batch's statistics as constants, ``flow_eval`` with running ones and ``flow_train``
  with statistics that follow the images;
- ``final_mean``, ``final_std``, ``final_quantile``: gradients of the last activities, all images and channels;
- ``interlayer``, by block: the mean over images of the interlayer cushion, per image and in evaluation mode; of the
  middle block also in training mode, ``interlayer_alone`` of images in batches of one, ``interlayer_joint`` of one
  batch with all its images as one vector;
- ``diagonal_test_error``: the test error with all weights of the blocks' kernels zeroed but those that T′ networks
  have.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.reproduction.arithmetic import full_float32
from skiplab.studies.yu2019.gradients import final_gradients, flows
from skiplab.studies.yu2019.measured import Found, first, parts
from skiplab.studies.yu2019.networks import Networks, samples_of
from skiplab.studies.yu2019.stability import cushions, interlayer, noise
from skiplab.studies.yu2019.weights import weights
from skiplab.subjects.wiring import weight_layers
from skiplab.training.loop import Callback, Rows


def callbacks(settings: Networks, samples: TensorSet, device: str) -> list[Callback]:
    """A callback per kind of measurement that the settings ask for."""
    wanted, common = settings.measures, settings.training
    dose = 0.0 if settings.shuffled else settings.share
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
        "cushions": (
            wanted.cushions,
            partial(cushions, samples=first(samples, wanted.cushion_images), dose=dose),
        ),
        "noise": (
            wanted.noise,
            partial(
                noise,
                samples=first(samples, wanted.noise_images),
                draws=wanted.noise_draws,
                seeds=settings.seeds,
                dose=dose,
            ),
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
    # In tf32 an ID entry of 1 + r loses r's last bits, and what should cancel in a Jacobian does not.
    with full_float32():
        return [
            {"member": member, "epoch": at[step], "quantity": quantity, "layer": layer, "value": value}
            for quantity, layer, values in measure(ensemble)
            for member, value in enumerate(values.tolist())
        ]


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
