"""How each measure is computed from a `Scene`: vectorised over all labelings, runs and queries at once.

Sums run in rank order, one addition after another (`bincount` does that, `sum` does not), and divisions stand where
trec_eval has them, so that values agree with it to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from judgekit.metrics.measure import Measure
from judgekit.metrics.scene import Ints, Scene

__all__ = ["FORMULAS"]

Floats = npt.NDArray[np.float64]
Formula = Callable[[Scene, Measure], Floats]


def _rel(measure: Measure) -> float | None:
    rel = measure.option("rel")
    return None if rel is None else float(rel)


def _hits(scene: Scene, measure: Measure) -> Ints:
    """Return the number of relevant documents in the top k."""
    found = scene.relevant(_rel(measure))
    cell = found.cell if measure.cutoff is None else found.cell[found.rank <= measure.cutoff]
    return np.bincount(cell, minlength=scene.cells).reshape(scene.shape)


def _depth(scene: Scene, measure: Measure) -> Ints:
    """Return what precision divides by: the cutoff, or without one the number of retrieved documents."""
    if measure.cutoff is None:
        return np.maximum(scene.retrieved, 1)
    return np.full((1, 1), measure.cutoff)


def _ratio(part: npt.NDArray[np.number], whole: npt.NDArray[np.number]) -> Floats:
    """Divide; where there is nothing to count the measure is 0."""
    return np.asarray(part / np.where(part == 0, 1, whole), np.float64)


def _top(scene: Scene, measure: Measure) -> npt.NDArray[np.bool_] | slice:
    return slice(None) if measure.cutoff is None else scene.rank <= measure.cutoff


def _by_scale(scene: Scene, measure: Measure, binary: Floats, graded: Callable[[], Floats]) -> Floats:
    """Take ``binary`` for labelings on which relevance is a yes or no, ``graded`` for the others."""
    undecided = np.isnan(scene.threshold(_rel(measure)))
    return np.where(undecided[:, None, None], graded(), binary) if undecided.any() else binary


def _precision(scene: Scene, measure: Measure) -> Floats:
    depth = _depth(scene, measure)

    def mean() -> Floats:
        top = _top(scene, measure)
        return scene.table(np.bincount(scene.cell[top], scene.label[top], scene.cells)) / depth

    return _by_scale(scene, measure, _hits(scene, measure) / depth, mean)


def _recall(scene: Scene, measure: Measure) -> Floats:
    return _ratio(_hits(scene, measure), scene.total(_rel(measure)))


def _f1(scene: Scene, measure: Measure) -> Floats:
    return 2 * _hits(scene, measure) / (_depth(scene, measure) + scene.total(_rel(measure)))


def _success(scene: Scene, measure: Measure) -> Floats:
    def largest() -> Floats:
        top = _top(scene, measure)
        best = np.full(scene.cells, -np.inf)
        np.maximum.at(best, scene.cell[top], scene.label[top])
        length = scene.retrieved if measure.cutoff is None else np.minimum(scene.retrieved, measure.cutoff)
        judged = np.bincount(scene.cell[top], minlength=scene.cells).reshape(scene.shape)
        # A document without a label counts as 0, and so does an empty list.
        best = scene.table(best)
        return np.where((judged < length) | (judged == 0), np.maximum(best, 0), best)

    return _by_scale(scene, measure, (_hits(scene, measure) > 0).astype(np.float64), largest)


def _reciprocal_rank(scene: Scene, measure: Measure) -> Floats:
    found = scene.relevant(_rel(measure))
    first = found.nth == 1
    if measure.cutoff is not None:
        first &= found.rank <= measure.cutoff
    out = np.zeros(scene.cells)
    out[found.cell[first]] = 1 / found.rank[first]
    return scene.table(out)


def _average_precision(scene: Scene, measure: Measure) -> Floats:
    found = scene.relevant(_rel(measure))
    top = slice(None) if measure.cutoff is None else found.rank <= measure.cutoff
    precision = found.nth[top] / found.rank[top]
    return _ratio(scene.table(np.bincount(found.cell[top], precision, scene.cells)), scene.total(_rel(measure)))


def _ndcg(scene: Scene, measure: Measure) -> Floats:
    dcg = str(measure.option("dcg"))
    gain = scene.gains(dcg, scene.label)
    top = (gain > 0) if measure.cutoff is None else (gain > 0) & (scene.rank <= measure.cutoff)
    discounted = gain[top] / scene.discount(scene.rank[top])
    return _ratio(scene.table(np.bincount(scene.cell[top], discounted, scene.cells)), scene.ideal(dcg, measure.cutoff))


FORMULAS: Final[dict[str, Formula]] = {
    "P": _precision,
    "R": _recall,
    "F1": _f1,
    "Success": _success,
    "RR": _reciprocal_rank,
    "AP": _average_precision,
    "nDCG": _ndcg,
}
"""The formula of every measure in `catalog.DEFINITIONS`."""
