"""Checks of comparisons in pairs: verdicts that follow the order, and runs that met different opponents."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple


class Encounter(NamedTuple):
    """The result of comparing two answers.

    Attributes:
        query_id: the question of both answers.
        run_a: the run whose answer was shown first.
        run_b: the other run.
        share: the first answer's share of the win: 1, 0.5 or 0.
        about: other properties of the comparison: the metric first, then for example who compared.
    """

    query_id: Hashable
    run_a: str
    run_b: str
    share: float
    about: tuple[Hashable, ...]


def told_of(encounters: Iterable[Encounter]) -> Iterator[str]:
    """Yield sentences about the comparisons that readers of shares of wins should know."""
    by_order: defaultdict[Hashable, list[float]] = defaultdict(list)
    met: defaultdict[Hashable, Counter[frozenset[str]]] = defaultdict(Counter)
    for each in encounters:
        first, second = sorted((each.run_a, each.run_b))
        of_first = each.share if first == each.run_a else 1 - each.share
        by_order[each.query_id, first, second, each.about].append(of_first)
        met[each.query_id, each.about[0]][frozenset((first, second))] += 1
    in_both_orders = [shares for shares in by_order.values() if len(shares) > 1]
    if in_both_orders:
        changed = sum(len(set(shares)) > 1 for shares in in_both_orders)
        yield (
            f"Compared in both orders: {len(in_both_orders):,} pairs of answers. In {changed:,} of them the winner"
            " changed with the order; each order counts half."
        )
    uneven = sum(not _even(times) for times in met.values())
    if uneven:
        yield (
            f"On {uneven:,} of {len(met):,} questions, some pairs of runs met more often than others: there a run's"
            " share of wins depends on its opponents."
        )


def _even(times: Mapping[frozenset[str], int]) -> bool:
    """Whether all pairs of runs met, equally often."""
    runs = len(frozenset().union(*times))
    return len(times) == runs * (runs - 1) // 2 and len(set(times.values())) == 1
