"""The ledger of promises fits pages, code and tests; `make promises` tries its mutants."""

import re
from pathlib import Path

import pytest

from tests.promises import ROOT, Promise, ledger

PROMISES = ledger()


def plain(text: str) -> str:
    """Text without line breaks, table marks and markup."""
    return " ".join(re.sub(r"[*`]", "", text).split())


@pytest.mark.parametrize("promise", PROMISES, ids=[f"{p.page}: {p.says[:40]}" for p in PROMISES])
def test_a_promise_stands_on_its_page_and_has_a_test_and_a_mutant(promise: Promise) -> None:
    assert plain(promise.says) in plain((ROOT / promise.page).read_text(encoding="utf-8"))
    code = (ROOT / promise.file).read_text(encoding="utf-8")
    assert code.count(promise.old) == 1, f"{promise.file} holds it {code.count(promise.old)} times: {promise.old}"
    assert promise.new != promise.old
    file, _, name = promise.test.partition("::")
    assert re.search(rf"def {re.escape(name.partition('[')[0])}\(", Path(ROOT, file).read_text(encoding="utf-8"))


def test_no_promise_stands_twice() -> None:
    mutants = [(promise.file, promise.old, promise.new) for promise in PROMISES]
    assert len(set(mutants)) == len(mutants)
