"""Every score of the golden fixture, worked out by hand; see README.md.

A cell is one labeling, run and query. Its comment has the documents in rank order with their labels (``?`` unjudged,
``|`` the cutoff); R is the number of relevant documents, D = 1 / log2(3) the discount at rank 2. No code of judgekit
went into this.
"""

from math import log2, nan

MEASURES = ("P@2", "R@2", "F1@2", "Success@2", "RR", "AP", "nDCG@2")

D = 1 / log2(3)

ZERO = (0, 0, 0, 0, 0, 0, 0)
"""An empty list, or no relevant document: every measure is 0."""
LOST = (nan,) * 7
"""A label of the query is missing: no measure is defined."""

# P@2, R@2, F1@2 = 2 hits / (2 + R), Success@2, RR, AP, nDCG@2
EXPECTED: dict[tuple[str, str, str], tuple[float, ...]] = {
    # human: binary. R: q1 1 (d1), q2 2 (d4, d5), q3 0, q4 1 (d8). Ideal DCG@2: 1, 1 + D, 0, 1.
    ("human", "a", "q1"): (1 / 2, 1 / 1, 2 / 3, 1, 1, 1, 1),  # d1=1 d2=0 | d3=0
    # d5 and d6 tie for rank 2; d6 comes first (doc id descending), so the cutoff falls between them.
    ("human", "a", "q2"): (1 / 2, 1 / 2, 2 / 4, 1, 1, (1 / 1 + 2 / 3) / 2, 1 / (1 + D)),  # d4=1 d6=0 | d5=1
    ("human", "a", "q3"): ZERO,  # an empty list
    ("human", "a", "q4"): (1 / 2, 1 / 1, 2 / 3, 1, 1, 1, 1),  # d8=1 d9=? |
    ("human", "b", "q1"): (1 / 2, 1 / 1, 2 / 3, 1, 1 / 2, 1 / 2, D / 1),  # d2=0 d1=1 | d3=0
    ("human", "b", "q2"): (2 / 2, 2 / 2, 4 / 4, 1, 1, (1 / 1 + 2 / 2) / 2, 1),  # d5=1 d4=1 |
    ("human", "b", "q3"): ZERO,  # d7=0 d1=0 |
    ("human", "b", "q4"): (1 / 2, 1 / 1, 2 / 3, 1, 1 / 2, 1 / 2, D / 1),  # d9=? d8=1 | d3=?
    ("human", "c", "q1"): (1 / 2, 1 / 1, 2 / 3, 1, 1 / 2, 1 / 2, D / 1),  # d3=0 d1=1 |
    ("human", "c", "q2"): (1 / 2, 1 / 2, 2 / 4, 1, 1 / 2, (1 / 2) / 2, D / (1 + D)),  # d6=0 d4=1 |
    ("human", "c", "q3"): ZERO,  # d7=0 |
    ("human", "c", "q4"): (1 / 2, 1 / 1, 2 / 3, 1, 1, 1, 1),  # d8=1 |
    # judge: grades 0 to 3, relevant from 2 on; gains are the grades.
    # R: q1 2 (d1, d3), q2 2 (d5, d6), q3 1 (d7). Ideal DCG@2: 3 + 2D, 3 + 2D, 2. The label of (q4, d3) is missing.
    ("judge", "a", "q1"): (1 / 2, 1 / 2, 2 / 4, 1, 1, (1 / 1 + 2 / 3) / 2, (3 + 1 * D) / (3 + 2 * D)),  # 3 1 | 2
    ("judge", "a", "q2"): (1 / 2, 1 / 2, 2 / 4, 1, 1 / 2, (1 / 2 + 2 / 3) / 2, 3 * D / (3 + 2 * D)),  # 0 3 | 2
    ("judge", "a", "q3"): ZERO,
    ("judge", "a", "q4"): LOST,
    ("judge", "b", "q1"): (1 / 2, 1 / 2, 2 / 4, 1, 1 / 2, (1 / 2 + 2 / 3) / 2, (1 + 3 * D) / (3 + 2 * D)),  # 1 3 | 2
    ("judge", "b", "q2"): (1 / 2, 1 / 2, 2 / 4, 1, 1, (1 / 1) / 2, 2 / (3 + 2 * D)),  # d5=2 d4=0 |
    ("judge", "b", "q3"): (1 / 2, 1 / 1, 2 / 3, 1, 1, 1, 2 / 2),  # d7=2 d1=0 |
    ("judge", "b", "q4"): LOST,
    ("judge", "c", "q1"): (2 / 2, 2 / 2, 4 / 4, 1, 1, (1 / 1 + 2 / 2) / 2, (2 + 3 * D) / (3 + 2 * D)),  # d3=2 d1=3 |
    ("judge", "c", "q2"): (1 / 2, 1 / 2, 2 / 4, 1, 1, (1 / 1) / 2, 3 / (3 + 2 * D)),  # d6=3 d4=0 |
    ("judge", "c", "q3"): (1 / 2, 1 / 1, 2 / 3, 1, 1, 1, 2 / 2),  # d7=2 |
    ("judge", "c", "q4"): LOST,
    # utility: unit. P@2 is the mean of the top two (an absent document counts 0), Success@2 their maximum; which
    # documents are relevant is not said, so R, F1, RR and AP are undefined.
    # Ideal DCG@2: .75 + .25D, 1 + .5D, 1, 1 + .25D.
    ("utility", "a", "q1"): (0.75 / 2, nan, nan, 0.75, nan, nan, 0.75 / (0.75 + 0.25 * D)),  # d1=.75 d2=0 | d3=.25
    ("utility", "a", "q2"): (1 / 2, nan, nan, 0.5, nan, nan, (0.5 + 0.5 * D) / (1 + 0.5 * D)),  # d4=.5 d6=.5 | d5=1
    ("utility", "a", "q3"): (0, nan, nan, 0, nan, nan, 0),
    ("utility", "a", "q4"): (1.25 / 2, nan, nan, 1, nan, nan, 1),  # d8=1 d9=.25 |
    ("utility", "b", "q1"): (0.75 / 2, nan, nan, 0.75, nan, nan, 0.75 * D / (0.75 + 0.25 * D)),  # d2=0 d1=.75 | d3=.25
    ("utility", "b", "q2"): (1.5 / 2, nan, nan, 1, nan, nan, 1),  # d5=1 d4=.5 |
    ("utility", "b", "q3"): (1 / 2, nan, nan, 1, nan, nan, 1),  # d7=1 d1=0 |
    ("utility", "b", "q4"): (1.25 / 2, nan, nan, 1, nan, nan, (0.25 + D) / (1 + 0.25 * D)),  # d9=.25 d8=1 | d3=0
    # A constant series: P@2 of run c is 1/2 on all four queries.
    ("utility", "c", "q1"): (1 / 2, nan, nan, 0.75, nan, nan, (0.25 + 0.75 * D) / (0.75 + 0.25 * D)),  # d3=.25 d1=.75 |
    ("utility", "c", "q2"): (1 / 2, nan, nan, 0.5, nan, nan, (0.5 + 0.5 * D) / (1 + 0.5 * D)),  # d6=.5 d4=.5 |
    ("utility", "c", "q3"): (1 / 2, nan, nan, 1, nan, nan, 1),  # d7=1 |
    ("utility", "c", "q4"): (1 / 2, nan, nan, 1, nan, nan, 1 / (1 + 0.25 * D)),  # d8=1 |
}

# Means over the queries on which the measure is defined: for judge over q1, q2, q3; q4 is undefined.
MEANS: dict[tuple[str, str, str], float] = {
    ("human", "a", "P@2"): (1 / 2 + 1 / 2 + 0 + 1 / 2) / 4,
    ("human", "a", "AP"): (1 + 5 / 6 + 0 + 1) / 4,
    ("human", "b", "RR"): (1 / 2 + 1 + 0 + 1 / 2) / 4,
    ("judge", "a", "RR"): (1 + 1 / 2 + 0) / 3,
    ("judge", "c", "F1@2"): (1 + 1 / 2 + 2 / 3) / 3,
    ("utility", "a", "P@2"): (3 / 8 + 1 / 2 + 0 + 5 / 8) / 4,
    ("utility", "c", "P@2"): 1 / 2,
    ("utility", "c", "R@2"): nan,
}
