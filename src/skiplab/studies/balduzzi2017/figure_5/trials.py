"""Input gradients of figure 5's convolutional networks at initialisation (section 4).

A trial measures one model's networks of all depths, drawn from one seed, on minibatches of their own. Its table is
long: one row per depth, minibatch and quantity, and half of every covariance that the figure shows.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Bench, trial

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from torch import nn

    from skiplab.data import TensorSet
    from skiplab.measurements.gradient_shattering import GradientShattering

PLAIN = "plain"
WHITE = "white"  # gradients that are independent numbers, to see what clustering alone makes of them
PERMUTATIONS = 100  # of cluster labels, to see what blocks explain by chance


@dataclass(frozen=True)
class ConvnetGradients:
    """Settings of one trial: one model's networks of all depths, drawn from a seed, on their minibatches.

    ``clusters`` > 0 asks for the pictures too: covariances of the shallowest and the deepest network's gradients.
    """

    data: str
    model: str
    seed: int
    depths: tuple[int, ...]
    gradients: tuple[str, ...]
    filters: int
    samples: int
    minibatches: int
    images: int | None = None
    side: int | None = None
    clusters: int = 0


@trial("balduzzi2017/convnet-gradients", version=1)
def measure(settings: ConvnetGradients, bench: Bench) -> pd.DataFrame:
    """Effective rank and normalised mean norm of input gradients at initialisation, by depth and minibatch."""
    import pandas as pd

    from skiplab.studies.balduzzi2017.images import samples_of

    images = samples_of(settings.data, "train", settings.images, settings.side, bench.device)
    white = rank_of_noise(settings.samples, images.inputs[0].numel())
    # The shallowest first: the order of the pictures is by its gradients.
    depths = sorted(set(settings.depths))
    networks = {depth: build(settings, images, depth).to(bench.device) for depth in depths}
    rows: list[dict[str, Any]] = []
    order: Sequence[int] = ()
    for number, (depth, network) in enumerate(networks.items()):
        for minibatch, batch in enumerate(minibatches(settings, images)):
            for kind in settings.gradients:
                found = gradients(network, batch, kind)
                place = {"depth": depth, "minibatch": minibatch, "gradient": kind, "row": 0, "column": 0}
                rank = float(found.effective_rank[0]) / white
                rows.append({**place, "quantity": "relative_rank", "value": rank})
                rows.append({**place, "quantity": "mean_norm", "value": float(found.mean_norm[0])})
                if minibatch or kind != settings.gradients[0] or not settings.clusters:
                    continue
                if number == 0:
                    order = in_order(clustered(found.gradients[0], settings.clusters, settings.seed))
                if depth in (depths[0], depths[-1]):
                    rows.extend(
                        {**place, "quantity": "covariance", "row": row, "column": column, "value": value}
                        for row, column, value in lower_triangle(found, order)
                    )
        bench.tell((number + 1) / len(networks), f"{depth} layers")
    return _table(settings, pd.DataFrame(rows))


@trial("balduzzi2017/gradient-clusters", version=1)
def structure(settings: ConvnetGradients, bench: Bench) -> pd.DataFrame:
    """How much more alike gradients of one cluster are than others, in the shallowest and the deepest network.

    An earlier measure of structure, which hardly saw any in feedforward networks (``blocks`` is today's); its
    clusters are drawn. They are those of the shallowest network's gradients, as in panels a and b; "structure" is the
    logarithm of the mean |correlation| of two images of one cluster over that of two of different ones, "covariance
    structure" the same of |covariance|, and "cluster size" has a row per cluster. The model "white" has noise for
    gradients, at depth 0.
    """
    import numpy as np
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for place, covariance, labels in _clustered_covariances(settings, bench):
        if not rows:
            rows += _cluster_sizes(settings, place, labels)
        sizes = np.sqrt(covariance.diagonal())
        for quantity, matrix in (
            ("structure", covariance / np.outer(sizes, sizes)),
            ("covariance structure", covariance),
        ):
            rows.append({**place, "quantity": quantity, "value": alike(matrix, labels)})
    return _table(settings, pd.DataFrame(rows))


def alike(matrix: np.ndarray, labels: np.ndarray) -> float:
    """The logarithm of the mean entry within clusters over the mean between them, the diagonal left out."""
    import numpy as np

    same = np.equal.outer(labels, labels)
    other = ~same
    np.fill_diagonal(same, False)
    return float(np.log(matrix[same].mean() / matrix[other].mean()))


@trial("balduzzi2017/gradient-blocks", version=1)
def blocks(settings: ConvnetGradients, bench: Bench) -> pd.DataFrame:
    """How much of the matrices of panels a and b their blocks explain, in the shallowest and the deepest network.

    Blocks are pairs of clusters of the shallowest network's gradients. "structure" is the share of the variance
    between entries of |correlation| that lies between blocks, beyond the share where labels are permuted, which is
    "permuted"; "covariance structure" and "covariance permuted" are the same of |covariance|. "block" has the mean
    |correlation| of two clusters (row, column), "cluster size" a row per cluster. The model "white" has noise for
    gradients, at depth 0.
    """
    import numpy as np
    import pandas as pd

    from skiplab.randomness import numpy_generator

    rows: list[dict[str, Any]] = []
    for place, covariance, labels in _clustered_covariances(settings, bench):
        if not rows:
            rows += _cluster_sizes(settings, place, labels)
        sizes = np.sqrt(covariance.diagonal())
        correlation = covariance / np.outer(sizes, sizes)
        for words, matrix in (("", correlation), ("covariance ", covariance)):
            stream = numpy_generator(settings.seed, "permuted clusters", place["depth"])
            shuffled = (stream.permutation(labels) for _ in range(PERMUTATIONS))
            chance = sum(explained(matrix, each) for each in shuffled) / PERMUTATIONS
            rows.append({**place, "quantity": f"{words}permuted", "value": chance})
            rows.append(
                {**place, "quantity": f"{words}structure", "value": explained(matrix, labels) - chance}
            )
        means, counts = block_means(correlation, labels)
        rows += [
            {**place, "row": row, "column": column, "quantity": "block", "value": means[row, column]}
            for row, column in zip(*counts.nonzero(), strict=True)
        ]
    return _table(settings, pd.DataFrame(rows))


def _clustered_covariances(
    settings: ConvnetGradients, bench: Bench
) -> Iterator[tuple[dict[str, Any], np.ndarray, np.ndarray]]:
    """Where a row is from, the matrix of |covariance| of two images' gradients, and the images' clusters.

    Of the shallowest and of the deepest network; clusters are those of the shallowest one's gradients. The model
    "white" has noise for gradients, at depth 0.
    """
    import numpy as np
    import torch

    from skiplab.measurements.gradient_shattering import GradientShattering
    from skiplab.randomness import torch_generator
    from skiplab.studies.balduzzi2017.images import samples_of

    images = samples_of(settings.data, "train", settings.images, settings.side, bench.device)
    batch = next(minibatches(settings, images))
    kind, labels = settings.gradients[0], np.zeros(0, dtype=int)
    depths = [0] if settings.model == WHITE else sorted({min(settings.depths), max(settings.depths)})
    for number, depth in enumerate(depths):
        bench.tell(number / len(depths), f"{depth} layers")
        if settings.model == WHITE:
            drawn = torch_generator(settings.seed, "white gradients")
            found = GradientShattering(torch.randn(1, *batch[0].flatten(1).shape, generator=drawn))
        else:
            found = gradients(build(settings, images, depth).to(bench.device), batch, kind)
        if number == 0:
            labels = np.array(clustered(found.gradients[0], settings.clusters, settings.seed))
        place = {"depth": depth, "minibatch": 0, "gradient": kind, "row": 0, "column": 0}
        yield place, found.covariance[0].double().cpu().numpy(), labels


def _cluster_sizes(
    settings: ConvnetGradients, place: Mapping[str, Any], labels: np.ndarray
) -> list[dict[str, Any]]:
    """A row per cluster: how many images it has."""
    import numpy as np

    return [
        {**place, "row": cluster, "quantity": "cluster size", "value": size}
        for cluster, size in enumerate(np.bincount(labels, minlength=settings.clusters).tolist())
    ]


def explained(matrix: np.ndarray, labels: np.ndarray) -> float:
    """The share of the variance between a symmetric matrix's entries, off the diagonal, that lies between blocks."""
    import numpy as np

    entries = matrix[np.tril_indices(len(matrix), -1)]
    means, counts = block_means(matrix, labels)
    between = (counts * (means - entries.mean()) ** 2).sum()
    return float(between / ((entries - entries.mean()) ** 2).sum())


def block_means(matrix: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and number of a symmetric matrix's entries off the diagonal, by the larger and the smaller cluster.

    A pair of clusters without entries has mean 0.
    """
    import numpy as np

    clusters = int(labels.max()) + 1
    row, column = np.tril_indices(len(matrix), -1)
    larger, smaller = np.maximum(labels[row], labels[column]), np.minimum(labels[row], labels[column])
    place, shape = larger * clusters + smaller, (clusters, clusters)
    counts = np.bincount(place, minlength=clusters**2).reshape(shape)
    sums = np.bincount(place, matrix[row, column], minlength=clusters**2).reshape(shape)
    return sums / np.maximum(counts, 1), counts


def _table(settings: ConvnetGradients, rows: pd.DataFrame) -> pd.DataFrame:
    """A trial's long table; repeated words are categories, so that Parquet keeps it small."""
    frame = rows.assign(data=settings.data, model=settings.model, seed=settings.seed)
    whole = dict.fromkeys(("depth", "minibatch", "row", "column"), "int16")
    frame = frame.astype(whole | {"value": "float32"})
    return frame.astype(dict.fromkeys(("data", "model", "gradient", "quantity"), "category"))


@functools.cache
def rank_of_noise(samples: int, columns: int) -> float:
    """The mean effective rank of white matrices, the same yardstick for all networks."""
    from skiplab.measurements.gradient_shattering import white_effective_rank
    from skiplab.randomness import torch_generator

    return white_effective_rank(samples, columns, torch_generator("white"), draws=20)[0]


def build(settings: ConvnetGradients, images: TensorSet, depth: int) -> nn.Module:
    """Draw a network from its seed and depth alone: with and without skips the weights are the same."""
    from skiplab.architectures.shattering_convnets import ShatteringConvNet
    from skiplab.randomness import torch_generator

    skip = settings.model != PLAIN
    return ShatteringConvNet(
        depth,
        generator=torch_generator(settings.seed, "network", depth),
        skip=skip,
        beta=float(settings.model.removeprefix("resnet-")) if skip else 1.0,
        filters=settings.filters,
        channels=images.inputs.shape[1],
        outputs=images.classes,
    )


def minibatches(settings: ConvnetGradients, images: TensorSet) -> Iterator[tuple[Any, Any]]:
    """The run's own minibatches of distinct images, the same for all its networks."""
    import torch

    from skiplab.randomness import torch_generator

    for number in range(settings.minibatches):
        draw = torch_generator(settings.seed, "minibatch", number)
        chosen = torch.randperm(len(images), generator=draw)[: settings.samples].to(images.labels.device)
        yield images.inputs[chosen], images.labels[chosen]


def gradients(network: nn.Module, batch: tuple[Any, Any], kind: str) -> GradientShattering:
    """Gradients in each image of its own loss, or of its summed outputs; BN holds this batch's statistics."""
    import torch.nn.functional as F

    from skiplab.measurements.gradient_shattering import gradient_shattering

    criterion = F.cross_entropy if kind == "loss" else None
    return gradient_shattering(network, batch, outputs=kind, mode="batch", criterion=criterion)


def clustered(rows: Any, clusters: int, seed: int) -> list[int]:
    """The cluster of every sample, by k-means of their gradients."""
    from sklearn.cluster import KMeans

    from skiplab.randomness import derive

    state = derive(seed, "k-means") % 2**32
    found = KMeans(clusters, n_init=10, random_state=state).fit_predict(rows.double().cpu().numpy())
    labels: list[int] = found.tolist()
    return labels


def in_order(labels: Sequence[int]) -> list[int]:
    """Samples of one cluster side by side: by cluster, and by number within one."""
    return sorted(range(len(labels)), key=lambda index: (labels[index], index))


def lower_triangle(found: GradientShattering, order: Sequence[int]) -> Iterator[tuple[int, int, float]]:
    """Entries of the covariance in the new order, to be drawn: half of a symmetric matrix, and two decimals."""
    matrix = found.covariance[0].cpu().numpy()[order][:, order].round(2)
    return (
        (row, column, float(matrix[row, column])) for row in range(len(matrix)) for column in range(row + 1)
    )
