"""Do one's own questions look like those of the users: their length, form and words, and the clusters they lie in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from judgekit.analysis.threads import one_thread
from judgekit.answers.text import apart, fold
from judgekit.data.readers import read_queries
from judgekit.data.streams import read_bytes
from judgekit.errors import UsageError

_ASKS: Final = re.compile(
    r"(who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|should|will)\b"
)
_MARKS: Final = ("?", "\u061f")
_CERTAIN: Final = 0.05 / 3
_EFFECT: Final = 0.1
_COMPARED: Final = 5000
_LEAST: Final = 20
_MOST_CLUSTERS: Final = 12
_PER_CLUSTER: Final = 15
"""Questions of the log for each cluster that is tried."""
_EXPECTED: Final = 3.0
"""A cluster is lacking if none of one's questions lie in it where so many would: by chance in 1 of 20 cases."""
_NEAREST: Final = 5
_WORDS: Final = 4


@dataclass(frozen=True)
class Cluster:
    """A cluster of the users' questions.

    Attributes:
        words: those that tell it best.
        users, own: shares of the users' questions and of one's own that lie in it.
        lacking: whether one's own lack it.
        nearest: the users' questions nearest to its centre.
    """

    words: tuple[str, ...]
    users: float
    own: float
    lacking: bool
    nearest: tuple[str, ...]


@dataclass(frozen=True)
class LogCoverage:
    """How questions lie beside those of a query log.

    Attributes:
        warning: in what they differ, "" for nothing.
        clusters: of the users' questions, the largest first; empty where there are none, None without scikit-learn.
        silhouette: of the clusters, from -1 to 1; near 0 they run into each other.
    """

    warning: str = ""
    clusters: tuple[Cluster, ...] | None = None
    silhouette: float = float("nan")

    def lines(self) -> Iterator[str]:
        """Yield what `judgekit plan` prints."""
        if self.warning:
            yield f"Beware    {self.warning}"
        if self.clusters is None:
            yield "Users     Install judgekit with the extra `clusters` (scikit-learn) to see which topics you lack."
        if not self.clusters:
            return
        yield (
            f"Users     Your users' questions form {len(self.clusters)} clusters (silhouette {self.silhouette:.2f};"
            " near 0, they run into each other):"
        )
        for cluster in self.clusters:
            yield f"          {cluster.users:4.0%} of theirs, {cluster.own:4.0%} of yours: {', '.join(cluster.words)}"
        for cluster in self.clusters:
            if cluster.lacking:
                yield f"          You lack questions about {', '.join(cluster.words)}. Users asked, for example:"
                for question in cluster.nearest:
                    yield f"            {question}"


def compared(questions: Sequence[str], query_log: str | Path) -> LogCoverage:
    """Compare questions with a query log: a file of queries, or of one a line (``.txt``).

    Raises:
        DataError: the log cannot be read.
        UsageError: there are fewer than 20 questions on one of the sides.
    """
    log = read_log(query_log)
    warning = unlike(questions, log)
    try:
        clusters, silhouette = clustered(questions, log)
    except ImportError:
        return LogCoverage(warning)
    return LogCoverage(warning, clusters, silhouette)


@one_thread
def clustered(questions: Sequence[str], log: Sequence[str], seed: int = 1) -> tuple[tuple[Cluster, ...], float]:
    """Return the clusters of a log, with the share of the questions that lie in each, and their silhouette.

    TF-IDF of words and k-means; the number of clusters, from 2 to 12, is the one with the largest silhouette.

    Raises:
        ImportError: scikit-learn is not installed.
    """
    from sklearn.cluster import KMeans
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
    from sklearn.metrics import silhouette_score

    random = np.random.default_rng(seed)
    users = [log[i] for i in random.permutation(len(log))[:_COMPARED]]

    def topical(text: str) -> list[str]:
        """Return the words that tell topics: "what" and "was" tell the form of a question."""
        return [word for word in words_of(text) if word not in ENGLISH_STOP_WORDS]

    vectorizer = TfidfVectorizer(analyzer=topical, min_df=2, max_df=0.5)
    try:
        theirs = vectorizer.fit_transform(users)
    except ValueError:  # no word stands in two questions and not in most of them
        return (), float("nan")
    best, silhouette = None, -1.0
    different = len({tuple(sorted(topical(text))) for text in users})
    for count in range(2, min(_MOST_CLUSTERS, len(users) // _PER_CLUSTER, different - 1) + 1):
        model = KMeans(count, n_init=3, random_state=seed).fit(theirs)
        value = float(silhouette_score(theirs, model.labels_, sample_size=min(1000, len(users)), random_state=seed))
        if value > silhouette:
            best, silhouette = model, value
    if best is None:
        return (), float("nan")
    own = best.predict(vectorizer.transform(questions))
    names = vectorizer.get_feature_names_out()
    distances = best.transform(theirs)
    clusters = []
    for number, centre in enumerate(best.cluster_centers_):
        share = float(np.mean(best.labels_ == number))
        count = int(np.sum(own == number))
        nearest = list(dict.fromkeys(users[i] for i in np.argsort(distances[:, number])))[:_NEAREST]
        words = tuple(str(names[i]) for i in np.argsort(-centre)[:_WORDS] if centre[i] > 0)
        lacking = count == 0 and share * len(questions) >= _EXPECTED
        clusters.append(Cluster(words, share, count / len(questions), lacking, tuple(nearest)))
    return tuple(sorted(clusters, key=lambda cluster: -cluster.users)), silhouette


def words_of(text: str) -> list[str]:
    """Return the words of a text, in any script."""
    return re.findall(r"\w+", apart(fold(text.casefold())))


def read_log(path: str | Path) -> list[str]:
    """Return the queries of a log: a file of queries, or of one a line (``.txt``)."""
    if Path(path).suffix == ".txt":
        text = read_bytes(Path(path), "a query log").decode(errors="replace")
        return [line for line in text.splitlines() if line.strip()]
    return [query.text for query in read_queries(path).values()]


def unlike(questions: Sequence[str], log: Sequence[str]) -> str:
    """Return a warning if questions do not look like those of a query log: their length, form or words; else ""."""
    from scipy.stats import fisher_exact, mannwhitneyu

    random = np.random.default_rng(1)
    texts = [
        [fold(some[i]) for i in random.permutation(len(some))[:_COMPARED]] for some in (list(questions), list(log))
    ]
    if min(map(len, texts)) < 20:
        raise UsageError("a query log and the questions are compared with at least 20 of each")
    words = [[re.findall(r"\w+", apart(text)) for text in some] for some in texts]

    def shifted(one: Sequence[float], other: Sequence[float]) -> bool:
        test = mannwhitneyu(one, other)
        return bool(test.pvalue < _CERTAIN and abs(test.statistic / (len(one) * len(other)) - 0.5) > _EFFECT)

    found = []
    lengths = [[len(each) for each in some] for some in words]
    if shifted(*lengths):
        found.append(f"a median of {np.median(lengths[0]):.0f} words, in the log {np.median(lengths[1]):.0f}")
    asks = [sum(bool(_ASKS.match(text)) or text.rstrip().endswith(_MARKS) for text in some) for some in texts]
    shares = [asks[i] / len(texts[i]) for i in (0, 1)]
    table = np.array([[asks[i], len(texts[i]) - asks[i]] for i in (0, 1)])
    if abs(shares[0] - shares[1]) > _EFFECT and fisher_exact(table).pvalue < _CERTAIN:
        found.append(f"{shares[0]:.0%} in the form of a question, in the log {shares[1]:.0%}")
    half = len(words[1]) // 2
    known = {word for each in words[1][:half] for word in each}
    overlap = [
        [sum(word in known for word in each) / max(len(each), 1) for each in some]
        for some in (words[0], words[1][half:])
    ]
    if shifted(*overlap):
        shared = [f"{np.mean(each):.0%}" for each in overlap]
        found.append(f"half of the log holds {shared[0]} of their words, and {shared[1]} of those of its other half")
    if not found:
        return ""
    return f"The questions do not look like the log's: {'; '.join(found)}. Results may not hold for your users."
