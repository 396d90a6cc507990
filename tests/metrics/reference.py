"""A second implementation of every measure, one query at a time, as the textbooks write them: slow and obvious."""

from math import exp, inf, log2, nan

from judgekit.data.labelings import Scale
from judgekit.metrics import Measure


def score(measure: Measure, ranked: list[str], labels: dict[str, float], scale: Scale, scores: list[float]) -> float:
    """Return the value of a measure for one list.

    Args:
        measure: the measure.
        ranked: the documents, best first.
        labels: the obtained labels of the query.
        scale: what the labels mean.
        scores: the scores of the documents, as the run compares them.
    """
    options = dict(measure.spec.params)
    if options.get("judged_only"):
        ranked, scores = condensed(ranked, labels, scale, scores)
    k = measure.cutoff or len(ranked)
    top = ranked[:k]
    rel = options.get("rel", scale.min_rel)

    def relevant(doc: str) -> bool:
        return rel is not None and doc in labels and labels[doc] >= rel

    hits = sum(map(relevant, top))
    total = sum(map(relevant, labels))
    gains = [labels.get(d, 0.0) for d in top]
    ranks = [i for i, d in enumerate(top, 1) if relevant(d)]

    match measure.name:
        case "P":
            divisor = min(k, len(ranked)) if options.get("by") == "retrieved" or measure.cutoff is None else k
            return (hits if rel is not None else sum(gains)) / (divisor or 1)
        case "R" | "SetR":
            divisor = min(total, measure.cutoff or total) if options.get("by") == "possible" else total
            return hits / divisor if divisor else 0
        case "F1":
            precision, recall = hits / (k or 1), hits / total if total else 0
            return 2 * precision * recall / (precision + recall) if hits else 0
        case "Success":
            return (1 if hits else 0) if rel is not None else max(gains, default=0)
        case "RR":
            if options.get("best"):
                best = max(labels.values(), default=0)
                ranks = [i for i, d in enumerate(top, 1) if best > 0 and labels.get(d, -inf) == best]
            return 1 / ranks[0] if ranks else 0
        case "MeanRank":
            return ranks[0] if ranks else nan
        case "AP":
            summed = sum(n / rank for n, rank in enumerate(ranks, 1))
            divisor = {"hits": hits, "possible": min(total, measure.cutoff or total)}.get(options.get("by"), total)
            return summed / divisor if divisor else 0
        case "DCG":
            return dcg(gains, options)
        case "nDCG":
            from_top = options.get("ideal") == "retrieved"
            best_gains = sorted(gains if from_top else labels.values(), key=lambda v: gain(v, options), reverse=True)
            looked_at = None if options.get("ideal") == "uncut" else measure.cutoff
            ideal = dcg(best_gains[:looked_at], options)
            return dcg(gains, options) / ideal if ideal else 0
        case "AUC":
            good = [s for s, d in zip(scores, ranked, strict=True) if relevant(d)]
            bad = [s for s, d in zip(scores, ranked, strict=True) if not relevant(d)]
            won = sum((g > b) + (g == b) / 2 for g in good for b in bad)
            return won / (len(good) * len(bad)) if good and bad else nan
        case "ERR":
            as_label = options.get("prob", "label" if scale.kind == "unit" else "grade") == "label"
            left, out = 1.0, 0.0
            for rank, value in enumerate(gains, 1):
                chance = max(value, 0.0) if as_label else (2 ** max(value, 0.0) - 1) / 2**scale.high
                out += left * chance / rank
                left *= 1 - chance
            return out
        case "RBP":
            p = options.get("p", 0.8)
            amounts = [float(relevant(d)) if "rel" in options else max(labels.get(d, 0.0), 0.0) for d in top]
            return sum((1 - p) * p**i * amount for i, amount in enumerate(amounts))
        case "UDCG":
            up, down = options.get("gain", 1), options.get("harm", 1)
            # A document without a label is neither right nor misleading, but it is one of those shown to the reader.
            worth = [label * (down if label < 0 else up) for label in gains]
            return 1 / (1 + exp(-sum(worth) / len(top))) if top else 0
        case "Rprec":
            return sum(map(relevant, ranked[:total])) / total if total else 0
        case "Bpref":
            others = sum(1 for v in labels.values() if 0 <= v < rel)
            out = 0.0
            for i, doc in enumerate(ranked):
                if relevant(doc):
                    above = sum(1 for d in ranked[:i] if d in labels and 0 <= labels[d] < rel)
                    out += 1 - (min(above, total) / min(total, others) if above else 0)
            return out / total if total else 0
        case "Judged":
            return sum(d in labels for d in top) / (len(top) or 1)
        case "SetP":
            divisor = min(len(ranked), total) if options.get("relative") else len(ranked)
            return hits / divisor if hits else 0
        case "SetF":
            beta = options.get("beta", 1)
            precision, recall = hits / (len(ranked) or 1), hits / (total or 1)
            return (beta + 1) * precision * recall / (recall + beta * precision) if hits else 0
        case "NumRel":
            return total
        case "NumRelRet":
            return hits
        case "NumRet":
            return hits if "rel" in options else len(ranked)
    raise NotImplementedError(measure.name)


def condensed(
    ranked: list[str], labels: dict[str, float], scale: Scale, scores: list[float]
) -> tuple[list[str], list[float]]:
    """Leave out what has no label, or a negative grade, which says the same."""
    least = -inf if scale.kind == "signed" else 0
    kept = [i for i, d in enumerate(ranked) if labels.get(d, -inf) >= least and d in labels]
    return [ranked[i] for i in kept], [scores[i] for i in kept]


def gain(label: float, options: dict[str, object]) -> float:
    return max(0.0, 2**label - 1 if options.get("dcg") == "exp-log2" else label)


def dcg(labels: list[float], options: dict[str, object]) -> float:
    return sum(gain(v, options) / log2(i + 1) for i, v in enumerate(labels, 1))
