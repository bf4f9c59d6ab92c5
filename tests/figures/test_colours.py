"""One colour a condition: distinct, stable, and readable without colour vision."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from skiplab.figures.colours import colour_of, distinct, label_of

NAMED = [
    "plain", "residual", "hyper-residual", "path-residual", "bias-symm-break", "bias-symm-break-bn",
    "bias-l2-reg", "bias-init", "bias-reg", "dense-orthogonal",
]  # fmt: skip

# Machado, Oliveira & Fernandes (2009), severity 1, on linear RGB.
DEUTERANOPIA = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)
PROTANOPIA = np.array(
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
)


def _linear(colour: str) -> np.ndarray:
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def _lab(linear: np.ndarray) -> np.ndarray:
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(matrix) @ np.clip(linear, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", [np.eye(3), DEUTERANOPIA, PROTANOPIA], ids=["full", "deutan", "protan"])
def test_conditions_stay_apart_for_every_eye(vision: np.ndarray) -> None:
    seen = {name: _lab(vision @ _linear(colour_of(name))) for name in NAMED}
    for one, other in itertools.combinations(NAMED, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 10, (one, other)


def test_identity_skips_look_like_the_residual_network() -> None:
    assert colour_of("identity") == colour_of("residual")
    assert colour_of("Hyper_Residual") == colour_of("hyper-residual")


def test_folding_lightens_step_by_step() -> None:
    greys = [colour_of(f"folded-{2**k}") for k in range(7, -1, -1)]
    levels = [int(grey[1:3], 16) for grey in greys]
    assert colour_of("dense-orthogonal") == greys[0]
    assert levels == sorted(set(levels))
    assert all(re.fullmatch(r"#(..)\1\1", grey) for grey in greys)


def test_correlated_skips_lighten_with_tau() -> None:
    shades = [colour_of(f"tau-{tau:g}") for tau in (0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)]
    assert colour_of("dense-orthogonal") == shades[0]
    # Lightness as a screen in grey would show it, Rec. 601.
    light = [
        sum(w * int(shade[k : k + 2], 16) for k, w in ((1, 0.299), (3, 0.587), (5, 0.114)))
        for shade in shades
    ]
    assert all(right - left > 5 for left, right in itertools.pairwise(light))
    assert all(re.fullmatch(r"#[0-9A-F]{6}", shade) for shade in shades)
    assert colour_of("tau-1e-05") != colour_of("tau-1")


def test_an_unknown_name_has_its_own_lasting_colour() -> None:
    assert colour_of("my block") == colour_of("my block") == colour_of("My-Block")
    assert re.fullmatch(r"#[0-9A-F]{6}", colour_of("my block"))
    assert colour_of("my block") not in {colour_of(name) for name in NAMED}


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("hyper-residual", "Hyper-residual"),
        ("bias_symm_break", "BiasSymmBreak"),
        ("bias-symm-break-bn", "BiasSymmBreak + BN"),
        ("folded-32", "Folded to 32"),
        ("tau-0.05", "τ = 0.05"),
        ("my_block", "My block"),
    ],
)
def test_labels_read_well(name: str, label: str) -> None:
    assert label_of(name) == label


def test_names_of_a_user_get_colours_of_their_own_and_known_ones_keep_theirs() -> None:
    names = ["plain", "mine", "yours", "residual", "residual-bn", "theirs", "another", "mine"]
    found = distinct(names)
    assert len(set(found.values())) == len(set(names))
    for known in ("plain", "residual", "residual-bn"):
        assert found[known] == colour_of(known)
