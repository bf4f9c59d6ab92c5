"""What BiasReg's accuracy follows, checks of ours: the mean of its bias targets, or their spread."""

from __future__ import annotations

from collections.abc import Iterator

from skiplab.experiments import networks
from skiplab.experiments.gains import ONE_POINT, WIDE, accuracies, shared_seeds
from skiplab.experiments.networks import Member
from skiplab.reproduction import Call, Claim, Evidence, Found, Greater, Results
from skiplab.studies.orhan2018.bias_reg import BIAS_REG, WIDE_TRIPLES
from skiplab.studies.orhan2018.effects import CORRELATION

CONTROL = "control"  # the stage of the networks with constant targets


def constant_targets(results: Results, data: str) -> Call:
    """Name BiasReg's deciding runs at its own gain once more, with every target at the mean μ of the best triple."""
    settings = results.settings
    gain = WIDE.best_gain(results, data, BIAS_REG)
    triple = WIDE_TRIPLES.best(results, data, gain) | {"sigma": 0.0}
    seeds = networks.final_seeds(settings.seed, settings.control_runs)
    members = [Member(seed, gain, **triple) for seed in seeds]
    return networks.call(settings.training, data, BIAS_REG.name, members, what="σ = 0", stage=CONTROL)


def spread_matters(results: Results) -> Iterator[Evidence]:
    """Accuracies with random targets and with constant ones, on the same seeds and at the same gain."""
    for data in results.settings.data if results.settings.control_runs else ():
        constant = results.rows(stage=CONTROL, data=data)
        gain = WIDE.best_gain(results, data, BIAS_REG)
        both = shared_seeds([WIDE.at(results, data, BIAS_REG, gain), constant])
        samples = [accuracies(rows) for rows in both]
        yield Evidence(f"{data}, gain {gain:.3g}", samples, paired=True)


def follows(name: str) -> Found:
    """Evidence of the rank correlation between a property of the targets' law and accuracy over searched triples.

    At BiasReg's own gain, as pseudo-values of Fisher's z; each other gain is a further row.
    """

    def found(results: Results) -> Iterator[Evidence]:
        from skiplab.studies.orhan2018.regression import rank_z, spearman

        for data in results.settings.data:
            own = WIDE.best_gain(results, data, BIAS_REG)
            for gain in results.settings.gains:
                rows = results.rows(stage=WIDE.search, data=data, model=BIAS_REG.name, gain=gain)
                last = networks.last_accuracy(rows)
                tried = last.groupby(["mean", "sigma", "strength"], as_index=False)["value"].mean()
                x, y = (tried[column].to_numpy(dtype=float) for column in (name, "value"))
                best = tried.loc[tried["value"].idxmax()]
                detail = f"ρ = {spearman(x, y):+.2f}; best μ = {best['mean']:.2g}, σ = {best['sigma']:.2g}"
                words = f"{data}, {len(tried)} triples, gain {gain:.3g}"
                yield Evidence(words, [rank_z(x, y)], headline=gain == own, detail=detail)

    return found


CLAIMS = (
    Claim(
        "accuracy-follows-mean",
        "Over the triples searched, BiasReg's accuracy rises with the mean μ of its targets.",
        follows("mean"),
        kind=Greater(worth=CORRELATION),
        unit="Fisher's z",
        source="ours",
    ),
    Claim(
        "accuracy-follows-spread",
        "Over the triples searched, BiasReg's accuracy rises with the spread σ of its targets.",
        follows("sigma"),
        kind=Greater(worth=CORRELATION),
        unit="Fisher's z",
        source="ours",
    ),
    Claim(
        "spread-matters",
        "BiasReg trains better with its random targets than with constant ones (σ = 0, the same μ and λ).",
        spread_matters,
        kind=Greater(worth=ONE_POINT),
        unit="accuracy",
        source="ours",
    ),
)
