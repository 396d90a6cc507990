"""Compares your questions with those of users: their lengths, their words and their clusters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from judgekit.analysis.threads import one_thread
from judgekit.answers.text import apart, fold
from judgekit.data.readers import read_queries
from judgekit.data.streams import read_bytes
from judgekit.errors import UsageError

_CERTAIN: Final = 0.05 / 2
_EFFECT: Final = 0.1
_COMPARED: Final = 5000
_LEAST: Final = 20
"""The smallest number of questions on each side."""
_MOST_CLUSTERS: Final = 12
_PER_CLUSTER: Final = 15
"""The number of log questions needed per cluster."""
_EXPECTED: Final = 3.0
"""A cluster is lacking if it has none of your questions but this many are expected: 1 in 20 by chance."""
_NEAREST: Final = 5
_WORDS: Final = 4


@dataclass(frozen=True)
class Cluster:
    """A cluster of the users' questions.

    Attributes:
        words: its most characteristic words.
        users, own: the shares of the users' questions and of your own in it.
        lacking: whether your questions lack it.
        nearest: the users' questions nearest to its centre.
    """

    words: tuple[str, ...]
    users: float
    own: float
    lacking: bool
    nearest: tuple[str, ...]


@dataclass(frozen=True)
class LogCoverage:
    """How questions compare with a query log.

    Attributes:
        warning: how they differ; "" if they do not.
        clusters: of the users' questions, largest first; empty if there are none, None without scikit-learn.
        silhouette: of the clusters, from -1 to 1; near 0 they overlap.
    """

    warning: str = ""
    clusters: tuple[Cluster, ...] | None = None
    silhouette: float = float("nan")

    def lines(self) -> Iterator[str]:
        """Yield the lines on clusters that `judgekit plan` prints."""
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
    """Compare questions with a query log: a file of queries, or a text file with one per line (``.txt``).

    Raises:
        DataError: the log cannot be read.
        UsageError: either side has fewer than 20 questions.
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
    """Return the clusters of a log, with the share of the questions in each, and their silhouette.

    Runs k-means on TF-IDF of words; takes the number of clusters, from 2 to 12, with the largest silhouette.

    Raises:
        ImportError: scikit-learn is not installed.
    """
    from sklearn.cluster import KMeans
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
    from sklearn.metrics import silhouette_score

    # A log may have millions of lines; a few thousand show the same topics.
    users = _sample(log, seed)

    def topical(text: str) -> list[str]:
        """Return the words that show the topic: "what" and "was" only show the form of a question."""
        return [word for word in words_of(text) if word not in ENGLISH_STOP_WORDS]

    vectorizer = TfidfVectorizer(analyzer=topical, min_df=2, max_df=0.5)
    try:
        theirs = vectorizer.fit_transform(users)
    except ValueError:  # every word is in only one question or in most
        return (), float("nan")
    # The number of topics is unknown: take the one that separates best, and report its silhouette.
    best, silhouette = None, -1.0
    # There cannot be more clusters than different questions.
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
        by_distance = dict.fromkeys(users[place] for place in np.argsort(distances[:, number]))
        words = tuple(str(names[place]) for place in np.argsort(-centre)[:_WORDS] if centre[place] > 0)
        cluster = Cluster(
            words,
            users=share,
            own=count / len(questions),
            lacking=count == 0 and share * len(questions) >= _EXPECTED,
            nearest=tuple(by_distance)[:_NEAREST],
        )
        clusters.append(cluster)
    return tuple(sorted(clusters, key=lambda cluster: -cluster.users)), silhouette


def words_of(text: str) -> list[str]:
    """Return the words of a text, in any script."""
    return re.findall(r"\w+", apart(fold(text.casefold())))


def read_log(path: str | Path) -> list[str]:
    """Return the queries of a log: a file of queries, or a text file with one per line (``.txt``)."""
    if Path(path).suffix == ".txt":
        text = read_bytes(Path(path), "a query log").decode(errors="replace")
        return [line for line in text.splitlines() if line.strip()]
    return [query.text for query in read_queries(path).values()]


def _sample(texts: Sequence[str], seed: int) -> list[str]:
    """Return a random sample of the texts to compare, or all if they are few."""
    return [texts[place] for place in np.random.default_rng(seed).permutation(len(texts))[:_COMPARED]]


class _Looks:
    """The words and lengths of questions."""

    def __init__(self, questions: Sequence[str]) -> None:
        texts = [fold(text) for text in _sample(questions, 1)]
        self.words = [re.findall(r"\w+", apart(text)) for text in texts]
        self.lengths = np.array([len(words) for words in self.words])

    def known(self, vocabulary: set[str], start: int = 0) -> npt.NDArray[np.float64]:
        """Return the share of each question's words that a vocabulary holds, from the question ``start`` on."""
        shares = []
        for words in self.words[start:]:
            shares.append(sum(word in vocabulary for word in words) / max(len(words), 1))
        return np.array(shares)


def unlike(questions: Sequence[str], log: Sequence[str]) -> str:
    """Return a warning if questions differ from those of a query log in length or words; else ""."""
    from scipy.stats import mannwhitneyu

    # Fewer questions differ from any log by chance, and nobody reads a warning that cries wolf.
    if min(len(questions), len(log)) < _LEAST:
        raise UsageError(f"comparing a query log with the questions takes at least {_LEAST} of each")
    own, users = _Looks(questions), _Looks(log)

    def shifted(mine: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> bool:
        test = mannwhitneyu(mine, theirs)
        return bool(test.pvalue < _CERTAIN and abs(test.statistic / (len(mine) * len(theirs)) - 0.5) > _EFFECT)

    differences = []
    if shifted(own.lengths, users.lengths):
        medians = np.median(own.lengths), np.median(users.lengths)
        differences.append("their median is {:.0f} words, the log's {:.0f}".format(*medians))
    # Compare with the log's other half, which has new words, too: a small share alone shows nothing.
    half = len(users.words) // 2
    vocabulary = set(chain.from_iterable(users.words[:half]))
    mine, theirs = own.known(vocabulary), users.known(vocabulary, half)
    if shifted(mine, theirs):
        shares = f"{mine.mean():.0%} of their words and {theirs.mean():.0%} of the other half's"
        differences.append(f"one half of the log holds {shares}")
    if not differences:
        return ""
    return f"The questions do not look like the log's: {'; '.join(differences)}. Results may not hold for your users."
