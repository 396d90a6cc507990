"""How seldom garbage is looked for while judgekit is at work, and that it is as before afterwards."""

import gc
from collections.abc import Iterator

import pytest

import judgekit as jk
from judgekit.client.sync import with_session
from judgekit.garbage import OBJECTS, collected_seldom


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 9, 8)
    yield
    gc.set_threshold(*before)


def test_garbage_is_looked_for_seldom_inside_of_blocks_however_they_overlap() -> None:
    first, second = collected_seldom(), collected_seldom()
    first.__enter__()
    second.__enter__()
    assert gc.get_threshold() == (OBJECTS, 9, 8)
    first.__exit__(None, None, None)
    assert gc.get_threshold() == (OBJECTS, 9, 8), "another is at work"
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (700, 9, 8)


@pytest.mark.parametrize("own", [(0, 0, 0), (OBJECTS, 3, 3), (10**6, 3, 3)])
def test_settings_that_are_as_generous_stay(own: tuple[int, int, int]) -> None:
    gc.set_threshold(*own)
    with collected_seldom():
        assert gc.get_threshold() == own
    assert gc.get_threshold() == own


def test_whoever_works_with_a_session_looks_seldom_also_if_it_fails(tmp_path) -> None:
    async def work(_: object) -> tuple[int, ...]:
        return gc.get_threshold()

    async def fail(_: object) -> None:
        raise ZeroDivisionError

    asking = jk.Asking(cache=tmp_path)
    assert with_session(work, asking) == (OBJECTS, 9, 8)
    with pytest.raises(ZeroDivisionError):
        with_session(fail, asking)
    assert gc.get_threshold() == (700, 9, 8)
