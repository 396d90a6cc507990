# /// script
# dependencies = [
#     "mteb==2.26.24", "pytrec-eval-terrier==0.5.11", "pandas==3.1.1", "scikit-learn==1.9.1", "packaging==26.4",
# ]
#
# [tool]
# bare = ["mteb"]
# ///
"""MTEB: what its module of retrieval metrics returns.

The package imports torch, which these metrics do not use: the module is loaded alone, with stand-ins for two names that
it takes from the package, the type of what it returns and a type that only annotates.
"""

import importlib.util
import sys
import types
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from worlds import CUTOFFS, World, attempted, record

stand_in = types.ModuleType("mteb.types")
stand_in.RetrievalEvaluationResult = SimpleNamespace
stand_in.RelevantDocumentsType = dict
sys.modules |= {"mteb": types.ModuleType("mteb"), "mteb.types": stand_in}
(place,) = (Path(folder) / "mteb" for folder in sys.path if (Path(folder) / "mteb" / "_evaluators").is_dir())
spec = importlib.util.spec_from_file_location("retrieval_metrics", place / "_evaluators" / "retrieval_metrics.py")
metrics = importlib.util.module_from_spec(spec)
spec.loader.exec_module(metrics)


def values(world: World) -> dict[str, Any]:
    """Return the means by measure."""
    found: dict[str, Any] = {}
    run = world.judged()
    said = attempted(lambda: metrics.calculate_retrieval_scores(run, world.qrels, list(CUTOFFS)))
    for name in ("ndcg", "map", "recall", "precision", "mrr", "hit_rate"):
        for cutoff in CUTOFFS:
            means = None if said is None else getattr(said, name)
            key = next((key for key in means or () if key.endswith(f"@{cutoff}")), None)
            found[f"{name}_at_{cutoff}"] = None if key is None else float(means[key])
    return found


record(Path(sys.argv[1]), values)
