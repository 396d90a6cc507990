"""BLAS on one thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

from threadpoolctl import threadpool_limits

Function = TypeVar("Function", bound=Callable[..., object])


def one_thread(function: Function) -> Function:
    """Decorate a function so that BLAS uses one thread within it, since a product's last digits depend on how many do.

    It is also faster here, for its matrices are small.
    """

    @wraps(function)
    def limited(*args: object, **named: object) -> object:
        # Looked up at each call: SciPy brings a BLAS of its own, which may be loaded after NumPy's.
        with threadpool_limits(limits=1, user_api="blas"):
            return function(*args, **named)

    return cast(Function, limited)
