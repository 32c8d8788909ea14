"""Colours that readers can tell apart, numbers as text, and tables."""

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from spaql.paper.engine import store, style, tables

# How a colour looks to readers without one of the three cones (Machado, Oliveira and Fernandes, 2009), in linear RGB.
EYES = {
    "all three": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour):
    """A colour in linear RGB."""
    given = np.array(to_rgb(colour))
    return np.where(given <= 0.04045, given / 12.92, ((given + 0.055) / 1.055) ** 2.4)


def lab(colour, eyes):
    """A colour as such eyes see it, in CIE Lab, where distances are differences that one sees."""
    seen = np.clip(np.array(eyes) @ linear(colour), 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen
    x, y, z = np.cbrt(xyz / (0.9505, 1, 1.089))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_every_line_stands_out_from_white_paper():
    for name, look in style.STYLES.items():
        assert 1.05 / (linear(look.colour) @ (0.2126, 0.7152, 0.0722) + 0.05) >= 3, name  # WCAG 1.4.11


@pytest.mark.parametrize("eyes", EYES)
def test_colours_stay_apart_for_colour_blind_readers(eyes):
    seen = {name: lab(look.colour, EYES[eyes]) for name, look in style.STYLES.items()}
    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 20, (one, other)


def test_lines_stay_apart_without_colour():
    looks = style.STYLES.values()
    assert len({look.line for look in looks}) == len({look.marker for look in looks}) == len(looks)


def test_the_results_table_has_ours_beside_the_papers_and_marks_the_best():
    ends = store.read("long", lists=False)
    ends = ends[ends.system == "CartPole-v0"]
    frame = tables.results_table(ends, "caption", "name").frame.set_index("algorithm")
    assert frame.loc["SPAQL", "reward"] == style.spread(ends[ends.algorithm == "SPAQL"].rewards, 1)
    assert frame.loc["SPAQL", "paper"] == "192.6 ± 0.9"
    assert frame.loc["Random", "arms"] == ""
    assert frame.loc["SPAQL-TS", "reward"].startswith("**")
    few = tables.results_table(ends[ends.agent < 5], "caption", "name").frame
    assert not few.reward.str.contains("*", regex=False).any()  # so few agents tell hardly any two groups apart
    groups = {"a": [1.0, 1.1] * 5, "b": [5.0, 5.2] * 5, "c": [4.9, 5.3] * 5}
    assert tables.best_of(groups) == {"b", "c"}
