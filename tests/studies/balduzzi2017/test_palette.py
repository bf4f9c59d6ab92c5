from __future__ import annotations

from skiplab.figures.colours import colour_of
from skiplab.studies.balduzzi2017.palette import NOISE, beta_words, network_colour, network_name


def test_networks_keep_the_houses_colours_and_have_one_name() -> None:
    assert network_colour(None) == colour_of("plain")
    assert network_colour(1.0) == colour_of("residual")
    assert [network_name(beta) for beta in (None, 1.0, 0.1)] == [
        "Feedforward",
        "Resnet, β = 1",
        "Resnet, β = .1",
    ]
    assert beta_words(0.25) == "β = .25"


def test_every_network_and_noise_of_the_paper_has_a_colour_of_its_own() -> None:
    colours = [network_colour(beta) for beta in (None, 1.0, 0.1)] + list(NOISE.values())
    assert len(set(colours)) == len(colours)
    assert network_colour(0.5) == network_colour(0.5)
    assert network_colour(0.5) not in colours
