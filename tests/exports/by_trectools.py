# /// script
# dependencies = ["trectools==0.0.50", "pandas==2.3.3", "setuptools==80.9.0"]
# ///
"""trectools: the values of its measures by query, of the run and the qrels as files.

pandas is older than 3, under which its R-precision exceeds 1 (`findings/trectools-rprec-above-one.sh`).
"""

import sys
import warnings
from pathlib import Path
from typing import Any

from trectools import TrecEval, TrecQrel, TrecRun
from worlds import CUTOFFS, World, record

warnings.filterwarnings("ignore")
OUT = Path(sys.argv[1])


def values(world: World) -> dict[str, Any]:
    """Return the values by measure and query; a query without anything relevant found has none."""
    run, qrels = world.judged(), world.qrels
    Path("qrels").write_text("".join(f"{q} 0 {d} {g}\n" for q, docs in qrels.items() for d, g in docs.items()))
    ranked = [(query, sorted(docs, key=lambda doc: -docs[doc])) for query, docs in run.items()]
    lines = [f"{q} Q0 {d} {place} {run[q][d]!r} t\n" for q, docs in ranked for place, d in enumerate(docs, 1)]
    Path("run").write_text("".join(lines))
    tool = TrecEval(TrecRun("run"), TrecQrel("qrels"))
    tables = {
        "get_map": tool.get_map(per_query=True),
        "get_reciprocal_rank": tool.get_reciprocal_rank(per_query=True),
        "get_rprec": tool.get_rprec(per_query=True),
        "get_bpref": tool.get_bpref(per_query=True),
        "get_rbp(0.8), average_ties=False": tool.get_rbp(p=0.8, per_query=True, average_ties=False)[0],
    }
    for cutoff in CUTOFFS:
        tables[f"get_precision, depth={cutoff}"] = tool.get_precision(depth=cutoff, per_query=True)
        tables[f"get_recall, depth={cutoff}"] = tool.get_recall(depth=cutoff, per_query=True)
        tables[f"get_ndcg, depth={cutoff}"] = tool.get_ndcg(depth=cutoff, per_query=True)
        tables[f"get_ndcg, trec_eval=False, depth={cutoff}"] = tool.get_ndcg(cutoff, per_query=True, trec_eval=False)
    found: dict[str, Any] = {}
    for name, table in tables.items():
        (column,) = [label for label in table.columns if label != "query"]
        by_query = table.set_index("query")[column] if "query" in table.columns else table[column]
        found[name] = {str(query): float(value) for query, value in by_query.items() if value == value}
    return found


record(OUT, values)
