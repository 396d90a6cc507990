# /// script
# dependencies = ["ragchecker==0.1.9", "dataclasses-json==0.6.7"]
# [tool]
# bare = ["ragchecker"]
# ///
"""RAGChecker: the results that it saves, of its own classes.

The package imports models that these do not use: the module of its results is loaded alone. The metrics are made up.
"""

import importlib.util
import sys
import types
from pathlib import Path

from halls import FAILS, QUESTIONS, RUNS

OUT = Path(sys.argv[1])
(place,) = (Path(folder) / "ragchecker" for folder in sys.path if (Path(folder) / "ragchecker").is_dir())
package = types.ModuleType("ragchecker")
package.__path__ = [str(place)]
sys.modules["ragchecker"] = package
spec = importlib.util.spec_from_file_location("ragchecker.container", place / "container.py")
container = importlib.util.module_from_spec(spec)
sys.modules["ragchecker.container"] = container
spec.loader.exec_module(container)

for run in RUNS:
    results = container.RAGResults()
    for question in QUESTIONS:
        found = [container.RetrievedDoc(passage.id, passage.text) for passage in question.found(run)]
        answer = question.answer(run)
        result = container.RAGResult(question.id, question.text, question.reference, answer, found)
        if question.id != FAILS:
            right = float(answer == question.reference)
            result.metrics = {"precision": right, "recall": right, "noise_sensitivity_in_irrelevant": 1 - right}
        results.results.append(result)
    (OUT / f"{run}.json").write_text(results.to_json(indent=2))
