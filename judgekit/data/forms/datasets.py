"""``ir_datasets``: data sets of the library of that name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from judgekit.data.fields import DOC, QUERY, Declaration
from judgekit.data.records import DataRecord
from judgekit.errors import DataError, UsageError, install


def ir_dataset(name: str) -> Any:
    """Return a data set of the library ir_datasets."""
    try:
        library = import_module("ir_datasets")
    except ImportError:
        reason = f"needs the library ir_datasets: {install('ir-datasets')}"
        raise UsageError(f"ir_datasets:{name} {reason}") from None
    try:
        return library.load(name)
    except KeyError:
        raise DataError(f"unknown data set of ir_datasets: {name!r}") from None


def dataset_records(name: str, declared: Declaration) -> Iterator[DataRecord]:
    """Yield what a data set of ir_datasets holds; a query or doc of several fields as its library renders it."""
    items = getattr(ir_dataset(name), declared.dataset, None)
    if items is None:
        raise DataError(f"the data set ir_datasets:{name} holds no {declared.many}")
    with fetched(name):
        for number, item in enumerate(items(), 1):
            yield DataRecord(number, item_fields(item))


@contextmanager
def fetched(name: str) -> Iterator[None]:
    """Say in a sentence why ir_datasets has no data: it fetches a data set when it is first read."""
    try:
        yield
    except (OSError, RuntimeError) as problem:
        raise DataError(
            f"ir_datasets could not fetch the data set {name!r}: {' '.join(str(problem).split())[:300]}. See"
            " https://ir-datasets.com for its source, and for files that you may have to download yourself"
        ) from None


def item_fields(item: Any) -> dict[str, Any]:
    """Return the fields of a query, doc or row of ir_datasets; ``text`` is what its library says it is."""
    fields, render = dict(item._asdict()), getattr(item, "default_text", None)
    if render is not None:
        fields = {name: value for name, value in fields.items() if name not in _OTHERS}
    return fields if render is None or "text" in fields else {**fields, "text": render()}


_OTHERS: Final = {name for names in (*QUERY.values(), *DOC.values()) for name in names[1:]}
"""Names that fields of other files have; ir_datasets calls ids and texts as judgekit does."""
