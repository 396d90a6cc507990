"""Is a judge fit to label?

It labels what runs retrieved for questions that people judged, and its labels are compared with theirs.

Random questions are drawn with all of their pairs, so that shares, agreement and the order of the runs are about the
same questions. A judge whose first labels are all the same is stopped, since more labels would tell nothing new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from judgekit.analysis.agreement import agreement
from judgekit.client.asking import UNLIMITED, Asking
from judgekit.client.stages import StageUnit
from judgekit.collection import Collection
from judgekit.context import context_of
from judgekit.data.documents import Unit
from judgekit.data.frames import AsDocs, AsLabelings, AsQueries, AsRuns, as_labelings
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.result_files import ResultFiles
from judgekit.data.runs import Run
from judgekit.data.tables import Status, stacked
from judgekit.errors import DataError, UsageError
from judgekit.job import Job, job
from judgekit.labelers.base import Labeler, build
from judgekit.labelers.fitness import Fitness, RunOrder, Share
from judgekit.labelling import label_pool
from judgekit.metrics import evaluate
from judgekit.wire.types import Endpoint

if TYPE_CHECKING:
    from judgekit.client.session import Session

FIRST: Final = 20
"""The number of equal first labels after which a judge is stopped."""
_PEOPLE: Final = "people"
_RESAMPLES: Final = 1000
_MEASURE: Final = "nDCG@5"


@dataclass(frozen=True)
class _Test:
    """A judge, and the pairs to test it on.

    Attributes:
        labeler: the judge.
        collection: the drawn questions, their documents and the runs.
        people: their labels.
        units: the requests: the first ones alternate between relevant and other pairs.
    """

    labeler: Labeler
    collection: Collection
    people: Labeling
    units: Sequence[Unit]

    async def run(self, session: Session, measure: str) -> Fitness:
        """Ask, and compare."""
        name = str(self.labeler.spec)
        first = await label_pool(self.labeler, self.collection, session, name, self.units[:FIRST])
        said = first.table.loc[first.table["status"] == Status.OK.value, "relevance"]
        stopped = ""
        if len(self.units) > FIRST and len(first.table) == FIRST and said.nunique() <= 1:
            stopped = f"the first {FIRST} labels are all {said.iloc[0]:g}" if len(said) else "no reply could be used"
            return self._fitness(first, measure, stopped)
        rest = await label_pool(self.labeler, self.collection, session, name, self.units[FIRST:])
        whole = Labeling(name, first.scale, stacked([first.table, rest.table]))
        # It is one stage, so the second part's costs are those of both parts.
        whole.made = rest.made
        return self._fitness(whole, measure, stopped)

    def _fitness(self, labeling: Labeling, measure: str, stopped: str) -> Fitness:
        labels = labeling.table[["query_id", "doc_id", "relevance", "status"]]
        asked = list(zip(labels["query_id"], labels["doc_id"], strict=True))
        people = self.people.at(asked)
        there = (labels["status"] == Status.OK.value).to_numpy()
        called = labels["relevance"].to_numpy(np.float64) >= labeling.scale.threshold
        judged = there & ~np.isnan(people)
        truly = people >= self.people.scale.threshold

        def share(which: np.ndarray[Any, np.dtype[np.bool_]]) -> Share:
            return Share(int(which.sum()), int((which & called).sum()))

        needs, costs = self.labeler.needs, labeling.made.get("costs", {})
        per_1000 = {}
        for cost in ("requests", "prompt_tokens", "completion_tokens", "money"):
            if costs.get(cost) is not None:
                per_1000[cost] = 1000 * float(costs[cost]) / max(len(labels), 1)
        relevant, other = share(judged & truly), share(judged & ~truly)
        return Fitness(
            labeler=labeling.name,
            models=tuple(dict.fromkeys(endpoint.model for endpoint in needs.asked)),
            prompt=needs.prompt,
            scale=str(labeling.scale),
            questions=labels["query_id"].nunique(),
            pairs=len(labels),
            missing=int((~there).sum()),
            relevant=relevant,
            other=other,
            yes=share(there),
            agreement=self._agreement(labeling) if relevant.of and other.of else {},
            order=None if stopped else self._order(labeling, measure),
            per_1000=per_1000,
            stopped=stopped,
        )

    def _agreement(self, labeling: Labeling) -> dict[str, tuple[float, float, float]]:
        judge = Labeling(labeling.name, labeling.scale, labeling.table)
        people = Labeling(_PEOPLE, self.people.scale, self.people.table)
        table = agreement([judge, people], people=[_PEOPLE]).table
        found = {}
        for row in table[table["on"] == "relevance"].to_dict("records"):
            if row["coefficient"] in ("kappa", "alpha"):
                found[row["coefficient"]] = (row["value"], row["ci_low"], row["ci_high"])
        return found

    def _order(self, labeling: Labeling, measure: str) -> RunOrder | None:
        """Return the agreement on the order of the runs; None with fewer than two runs."""
        from scipy.stats import kendalltau

        runs = self.collection.runs
        if len(runs) < 2:
            return None
        people = Labeling(_PEOPLE, self.people.scale, self.people.table)
        judge = Labeling("judge", labeling.scale, labeling.table)
        scores = evaluate(runs, [people, judge], [measure], query_ids=list(self.collection.queries)).values[0]
        # A question whose score is undefined under either side is left out of both.
        both = np.isfinite(scores).all(axis=(0, 1))
        theirs, own = scores[0][:, both], scores[1][:, both]
        if not both.any():
            return None
        drawn = np.random.default_rng(1).multinomial(both.sum(), np.full(both.sum(), 1 / both.sum()), _RESAMPLES)
        taus = [
            kendalltau(first, second).statistic
            for first, second in zip((theirs @ drawn.T).T, (own @ drawn.T).T, strict=True)
        ]
        low, high = (np.nan, np.nan) if np.isnan(taus).all() else np.nanquantile(taus, [0.025, 0.975])
        tau = float(kendalltau(theirs.mean(axis=1), own.mean(axis=1)).statistic)
        return RunOrder(tau, float(low), float(high), len(runs), measure)


@job
def judge_test(
    spec: str | Labeler,
    *,
    qrels: AsLabelings,
    queries: AsQueries,
    docs: AsDocs,
    runs: AsRuns | None = None,
    depth: int = 10,
    pairs: int = 500,
    measure: str = _MEASURE,
    seed: int = 1,
    scales: Mapping[str, str | Scale] | None = None,
    endpoints: Endpoint | Sequence[Endpoint] | None = None,
    asking: Asking = UNLIMITED,
) -> Job[Fitness]:
    """Test by people's labels whether a judge is fit to label.

    Args:
        spec: the labeler, as for `jk.label`; it must label each pair alone.
        qrels: people's labels.
        queries: as for `jk.label`.
        docs: likewise.
        runs: likewise; with two or more, their order under both labels is compared, and pairs that no run retrieved are
            left out. Without runs, all pairs that people judged are used.
        depth: number of documents to label per run and query.
        pairs: approximate number of pairs to label: whole questions are drawn until it is reached.
        measure: measure that orders the runs.
        seed: of the draw.
        scales: the scale of people's labels by their name, e.g. ``{"people": "grades:3:2"}`` if 2 and 3 are relevant;
            undeclared whole numbers are grades, relevant from 1.
        endpoints: the LLM, or several that the spelling names.
        asking: the budget, and where replies are kept.

    Returns:
        The agreement of the labeler with people, on labels and on the order of the runs, with intervals, and whether it
        is fit.

    Raises:
        ConfigError, DataError, UsageError: nothing was sent.
        StoppedError: the endpoint failed or the budget ran out; paid replies are in the store.
    """
    (people, *others) = as_labelings(qrels, scales)
    if others:
        raise UsageError("give one labeling by people, not several")
    judged = people.table["query_id"].value_counts()
    # Without runs the pairs are all those that people judged.
    if runs is None:
        depth = int(judged.max())
    own = Run.from_frame(people.table[["query_id", "doc_id"]].assign(score=0.0), _PEOPLE)
    collection = Collection.make(queries, docs, {_PEOPLE: own} if runs is None else runs, depth, cache=asking.cache)
    labeler = build(spec, context_of(endpoints, collection.fields, collection.docs))
    if not labeler.by_pair:
        raise UsageError(
            f"{labeler.spec} looks at all documents of a question: name a labeler that looks at one at a time"
        )
    drawn = _drawn(collection, set(judged.index), pairs, seed)
    if not drawn:
        raise DataError("people judged none of these questions: do both belong to the same collection?")
    collection = collection.only(drawn)
    if runs is None:
        collection = Collection(collection.queries, collection.docs, (), depth, collection.fields)
    units = _in_turn(labeler, collection, drawn, people, np.random.default_rng(seed))
    test = _Test(labeler, collection, people, units)

    async def do(session: Session, _: ResultFiles) -> Fitness:
        return await test.run(session, measure)

    asked: list[StageUnit] = [(labeler, unit) for unit in units]
    return Job({f"label {labeler.spec}": partial(iter, asked)}, do, asking, notes=collection.notes)


def _drawn(collection: Collection, judged: Set[str], pairs: int, seed: int) -> dict[str, list[str]]:
    """Return random questions that people judged, with the pairs of their pools, until there are enough."""
    pool = {query_id: docs for query_id, docs in collection.pooled() if query_id in judged and docs}
    names = sorted(pool)
    drawn: dict[str, list[str]] = {}
    count = 0
    for place in np.random.default_rng(seed).permutation(len(names)):
        doc_ids = pool[names[place]]
        if drawn and count + len(doc_ids) > pairs:
            break
        drawn[names[place]] = doc_ids
        count += len(doc_ids)
    return drawn


def _in_turn(
    labeler: Labeler,
    collection: Collection,
    drawn: Mapping[str, list[str]],
    people: Labeling,
    rng: np.random.Generator,
) -> list[Unit]:
    """Return a unit for each pair, alternating between relevant and other ones first, so that few labels show both."""
    units: list[Unit] = []
    for query_id, doc_ids in drawn.items():
        query = collection.queries[query_id]
        for doc in collection.docs.get(doc_ids):
            units.extend(labeler.units(query, [doc]))
    pairs = [(unit.query.query_id, unit.docs[0].doc_id) for unit in units]
    relevant = people.at(pairs) >= people.scale.threshold
    order = rng.permutation(len(units))
    parts = [[int(place) for place in order if relevant[place] == kind] for kind in (True, False)]
    half = FIRST // 2
    first = [*parts[0][:half], *parts[1][: FIRST - len(parts[0][:half])]]
    chosen = set(first)
    return [units[place] for place in [*first, *(int(place) for place in order if int(place) not in chosen)]]
