"""BLAS on one thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

from threadpoolctl import threadpool_limits

Function = TypeVar("Function", bound=Callable[..., object])


def one_thread(function: Function) -> Function:
    """Decorate a function so that BLAS uses one thread in it.

    The last digits of a product depend on the number of threads. It is also faster for small matrices.
    """

    @wraps(function)
    def limited(*args: object, **named: object) -> object:
        # Looked up at each call: SciPy brings a BLAS of its own, which may be loaded after NumPy's.
        with threadpool_limits(limits=1, user_api="blas"):
            return function(*args, **named)

    return cast(Function, limited)
