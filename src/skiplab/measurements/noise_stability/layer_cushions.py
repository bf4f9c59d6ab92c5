"""Layer cushions: how much of a layer's weights its input meets (yu2019, section 5, figure 3).

For a layer with weights A and a sample whose activity before it is x, the cushion is μ(x) = ‖A x‖ / (‖A‖_F ‖x‖),
without the bias; the cushion of the layer is the least over samples. Random weights have μ = 1/√C for C inputs, or
input channels, and 1/(s√C) where a convolution of images strides by s; so noise of size η‖A‖_F changes A x by about
η‖A‖_F‖x‖/√C, which is little beside ‖A x‖ if the cushion is large. ‖A‖_F is that of the kernel as it is stored: the
norm of the whole operator differs by a factor that is one and the same for all samples.

Of a residual network that was transferred to a plain one (``architectures.transfer``) A has 1 on its ID entries. The
paper keeps them in A x and removes them from ‖A‖_F, since noise is meant to scale with what was learned: that is
``without_identities``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skiplab.checks import Refused, require
from skiplab.ensembles import Ensemble
from skiplab.measurements.batch_statistics import in_mode
from skiplab.measurements.result import Estimate, Mark, Result, number_of
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batch_size, batches_of
from skiplab.subjects.failures import described
from skiplab.subjects.hooks import first_argument, visited
from skiplab.subjects.normalisation import chosen_mode
from skiplab.subjects.subject import LossFunction
from skiplab.subjects.weight_layers import (
    WeightLayer,
    check_weight_layers,
    inputs_of,
    is_transposed,
    left_out,
    units_first,
    weight_layers,
)
from skiplab.torch_private import convolution


@dataclass(frozen=True, repr=False)
class LayerCushions(Result):
    """Per sample ``gains`` ‖A x‖ / ‖x‖, (E, B, layers), and per layer the ``norms`` ‖A‖_F, (E, layers).

    ``bare_norms`` are those of A without the identities, where some were given. A sample whose activity before a
    layer is 0 has no cushion there (NaN).
    """

    title = "Layer cushion"
    on_axes: ClassVar[Mapping[str, str]] = {
        "median": "median over samples of ‖A x‖ / (‖A‖ ‖x‖)",
        "mean": "mean over samples",
        "least": "least of these samples",
    }
    reference = "yu2019, section 5; Arora et al. (2018)"

    layers: tuple[str, ...]
    gains: Tensor
    norms: Tensor
    bare_norms: Tensor | None
    random: tuple[float, ...]  # what random weights would have in each layer
    left_out: str = ""

    @property
    def cushions(self) -> Tensor:
        """μ(x) of each sample, (E, B, layers), with the norm of A as it is."""
        return self.gains / self.norms[:, None]

    @property
    def without_identities(self) -> Tensor:
        """μ(x) of each sample, (E, B, layers), with the norm of A without the identities (figure 3)."""
        require(self.bare_norms is not None, "no identities were given; pass identities=… when you measure.")
        assert self.bare_norms is not None
        return self.gains / self.bare_norms[:, None]

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """Median and mean over samples, and the least of these samples, with the norm of A as it is and without."""
        kinds = {"": self.cushions}
        if self.bare_norms is not None:
            kinds = {", norm without identities": self.without_identities, **kinds}
        found = {}
        for words, cushions in kinds.items():
            found[f"median{words}"] = Estimate.median(cushions, 1)
            found[f"mean{words}"] = Estimate.mean(cushions, 1)
            found[f"least{words}"] = Estimate.exact(cushions.amin(1))
        return found

    @property
    def based_on(self) -> str:
        """How many samples there were."""
        return number_of(self.gains.shape[1], "sample")

    @property
    def marks(self) -> Sequence[Mark]:
        """What random weights have in each layer."""
        return tuple((name, self.random, "random weights") for name in self.estimates)

    @property
    def yardstick(self) -> str:
        """What random weights have, whatever the sample."""
        ends = dict.fromkeys(f"{pick(self.random):.3g}" for pick in (min, max))
        return f"random weights have {' to '.join(ends)}, by their inputs and strides"


def layer_cushions(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    mode: str | None = None,
    identities: Mapping[str, Tensor] | None = None,
) -> LayerCushions:
    """Measure the cushions of linear and convolutional layers (default: all) for every sample.

    ``identities`` gives, by the names of weights, what is no part of the noise's scale, such as ``id_entries(net)``
    of a transferred network. ``loss_fn`` is needed only if batches are such that it alone can call the network with
    them.

    >>> found = layer_cushions(model, x)
    >>> found.cushions.shape, bool((found.cushions <= 1).all())  # (networks, samples, layers)
    (torch.Size([1, 16, 3]), True)
    """
    mode = chosen_mode(target, mode)
    subject = Subject.of(target) if loss_fn is None else Subject.of(target, loss_fn=loss_fn)
    check_weight_layers(subject.module, layers)
    known = weight_layers(subject.module)
    chosen = {name: known[name] for name in (known if layers is None else dict.fromkeys(layers))}
    seen: dict[str, Norms] = {}
    parts: list[dict[str, Norms]] = []
    removed = identities_by_layer(identities, known)

    def hook_of(name: str) -> Callable[..., None]:
        layer = chosen[name]

        def hook(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            count = sum(key.partition("#")[0] == name for key in seen)
            weight, x = layer.weight, first_argument(args, kwargs)
            bare = weight - removed[name].to(weight) if name in removed else weight
            own = Norms(
                _norms(_product(layer, x, weight)), _norms(x), _norms(weight[None]), _norms(bare[None])
            )
            seen[name if count == 0 else f"{name}#{count + 1}"] = own

        return hook

    for batch in batches_of(batches):
        size = batch_size(batch)

        def run(model: nn.Module, batch: Batch = batch) -> dict[str, Norms]:
            seen.clear()
            subject.call(model, batch)
            return dict(seen)

        own = in_mode(subject, batch, mode)
        hooks = [(layer, hook_of(name)) for name, layer in chosen.items()]
        with own.borrowed(), visited(after=hooks), torch.no_grad():
            found = own.map_models(run)
        for name in chosen:
            if name not in found and (layers is not None or not found):
                raise Refused(f"layer {name!r} is not called on this batch; choose one that is.")
        for name, (image, x, _, _) in found.items():
            shape = tuple(x.shape[1:])
            require(
                shape == (size,),
                f"layer {name!r} has {shape} for {size} samples; choose one with a sample per row.",
            )
            subject.refuse_unless_finite(f"activity before layer {name!r}", x)
            subject.refuse_unless_finite(f"product of layer {name!r}", image)
        parts.append(found)
    names = tuple(parts[0])
    require(
        all(tuple(part) == names for part in parts),
        "the batches run different layers; name common ones in layers.",
    )
    gains = [torch.cat([part[name].image / part[name].x for part in parts], 1) for name in names]
    norms = torch.cat([parts[0][name].weight for name in names], 1)
    bare = torch.cat([parts[0][name].bare for name in names], 1)
    without = left_out(subject.module) if layers is None else ""
    random = tuple(_random(known[name.partition("#")[0]]) for name in names)
    return LayerCushions(
        names, torch.stack(gains, 2), norms, None if identities is None else bare, random, without
    )


def _product(layer: Any, x: Tensor, weight: Tensor) -> Tensor:
    """A x: what the layer makes of its input without the bias."""
    if isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        return convolution(layer, x, weight)
    if isinstance(layer, nn.ConvTranspose1d | nn.ConvTranspose2d | nn.ConvTranspose3d):
        function: Any = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[len(layer.stride) - 1]
        settings = (layer.stride, layer.padding, layer.output_padding, layer.groups, layer.dilation)
        return function(x, weight, None, *settings)
    return F.linear(x, units_first(layer, weight))


def _random(layer: WeightLayer) -> float:
    """The cushion of random weights, at positions that padding does not reach."""
    # A transposed convolution has more outputs by the factor by which fewer inputs make each of them.
    strides = 1 if is_transposed(layer) else math.prod(getattr(layer, "stride", ()))
    return (inputs_of(layer) * strides) ** -0.5


class Norms(NamedTuple):
    """Of one layer: ‖A x‖ and ‖x‖ of each sample, ‖A‖_F and that of A without its identities."""

    image: Tensor
    x: Tensor
    weight: Tensor
    bare: Tensor


def _norms(rows: Tensor) -> Tensor:
    """The norm of each row's numbers, in float64, since squares of small activities vanish in float32."""
    return torch.linalg.vector_norm(rows.reshape(len(rows), -1), dim=1, dtype=torch.float64)


def identities_by_layer(
    identities: Mapping[str, Tensor] | None, known: Mapping[str, WeightLayer]
) -> dict[str, Tensor]:
    """Identities by the names of layers; refuse one that is no layer's, or of another shape than its weights."""
    found = {}
    wanted = "identities must be a dict of tensors by the names of weights"
    require(identities is None or isinstance(identities, Mapping), f"{wanted}, not {described(identities)}.")
    for name, tensor in (identities or {}).items():
        is_sound = isinstance(name, str) and isinstance(tensor, Tensor)
        require(is_sound, f"{wanted}, but has {described(tensor)} under {name!r}.")
        layer = name.removesuffix(".weight")
        shape = tuple(known[layer].weight.shape) if layer in known else None
        require(
            shape == tuple(tensor.shape),
            f"identities has {name!r} of shape {tuple(tensor.shape)}, but no layer has such weights; "
            "name them as the network's parameters are.",
        )
        found[layer] = tensor
    return found
