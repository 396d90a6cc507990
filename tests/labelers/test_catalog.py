"""What the lists of labelers and answer metrics say is what the code does."""

from __future__ import annotations

import pytest

from judgekit.answers import quality
from judgekit.errors import UsageError
from judgekit.kinds import About, about
from judgekit.labelers import base
from tests.labelers.scripted import Here

ENTRIES = {**base.catalog(), **quality.catalog()}


def test_every_labeler_and_every_metric_is_listed() -> None:
    labelers = ["cascade", "containment", "human", "judge", "provenance", "utility"]
    metrics = ["accuracy", "contains", "correct", "em", "f1", "grounded", "rouge-1", "rouge-2", "rouge-l"]
    assert sorted(base.catalog()) == sorted(base.kinds()) == labelers
    assert list(quality.catalog()) == metrics


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_each_says_what_it_does_needs_and_costs(name: str) -> None:
    entry = ENTRIES[name]
    for text in (entry.does, entry.scale, entry.needs, entry.cost, *entry.options.values()):
        assert text.strip()
        assert len(text) < 120
        assert not text.endswith(".")


@pytest.mark.parametrize("kind", sorted(base.catalog()))
def test_the_listed_options_are_the_options_that_there_are(kind: str) -> None:
    with pytest.raises(UsageError) as caught:
        base.build(f"{kind}(nonsense=1)", Here())
    for option in base.catalog()[kind].options:
        assert option in str(caught.value)


@pytest.mark.parametrize("name", sorted(quality.catalog()))
def test_the_listed_scale_is_the_declared_one(name: str) -> None:
    assert quality.catalog()[name].scale.startswith(str(quality.metric(name, Here()).scale))


def test_what_says_nothing_of_itself_is_listed_by_its_docstring() -> None:
    class Mute:
        """It says this.

        And more.
        """

    assert about(Mute) == About("It says this")
