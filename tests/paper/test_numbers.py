"""Every number and verdict of the prose is that of the stored runs."""

import pytest

from spaql.paper.book import links, numbers


@pytest.mark.parametrize("path", list(numbers.tagged_files()), ids=lambda path: path.name)
def test_tagged_numbers_are_those_of_the_stored_runs(path):
    wrong = numbers.wrong_tags(path.read_text(encoding="utf-8"))
    assert wrong == [], f"{path.name}: spaql numbers --write puts the right ones in"


def test_a_tag_is_checked_rewritten_and_shown():
    numbers_of = numbers.numbers()
    right = numbers_of["pendulum.spaql.reported"]
    text = "It earns 3<!--=pendulum.spaql.reported--> points, which holds<!--=claim:trpo-pendulum-overtakes-spaql-->."
    assert len(numbers.wrong_tags(text)) == 2
    better = numbers.rewritten(text)
    assert f"It earns {right}<!--=" in better
    assert numbers.wrong_tags(better) == []
    shown = numbers.shown(better)
    assert "<!--" not in shown
    assert 'href="../book/claims.html#claim-trpo-pendulum-overtakes-spaql">differs</a>' in shown
    for odd in ("**3**<!--=pendulum.spaql.reported-->", "3<!--=pendulum.nobody-->", "holds<!--=claim:nothing-->"):
        assert len(numbers.wrong_tags(odd)) == 1


@pytest.mark.parametrize(
    "text", ["−1,236 ± 29", "17", "34 [20, 48]", "[134, 216]", "−0.01", "2,766,000", "undecided", "none"]
)
def test_a_whole_number_with_its_interval_belongs_to_a_tag(text):
    assert numbers.TAG.search(f"about {text}<!--=x-->")["text"] == text


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://github.com/someone/companion.git", "https://github.com/someone/companion"),
        ("https://user:secret@codeberg.org/someone/companion", "https://codeberg.org/someone/companion"),
        ("git@github.com:someone/companion.git", ""),
        ("/somewhere/companion", ""),
        ("https://git/companion", ""),
        ("http://10.0.0.5/companion.git", ""),
        ("http://localhost:3000/companion.git", ""),
        ("https://build.internal/companion.git", ""),
        ("", ""),
    ],
)
def test_a_clone_names_the_address_that_it_came_from_if_anybody_can_open_it(remote, address):
    assert links.public_address(remote) == address
