# /// script
# dependencies = ["rank-llm==0.25.7", "dacite==1.9.2"]
# [tool]
# bare = ["rank-llm"]
# ///
"""RankLLM: its requests and results, as Castorini's tools pass them on, and the run that it writes of them.

The package imports models that these do not use: the module of its data is loaded alone.
"""

import importlib.util
import sys
from pathlib import Path

OUT = Path(sys.argv[1])

from halls import QUESTIONS, RUNS  # noqa: E402

package = importlib.util.find_spec("rank_llm").submodule_search_locations[0]
spec = importlib.util.spec_from_file_location("rank_llm_data", Path(package) / "data.py")
data = importlib.util.module_from_spec(spec)
sys.modules["rank_llm_data"] = data
spec.loader.exec_module(data)

for run in RUNS:
    results = []
    for question in QUESTIONS:
        found = [
            data.Candidate(docid=passage.id, score=1 / rank, doc={"contents": passage.text})
            for rank, passage in enumerate(question.found(run), 1)
        ]
        results.append(
            data.Result(query=data.Query(question.text, question.id), candidates=found, invocations_history=[])
        )
    writer = data.DataWriter(results)
    writer.write_in_jsonl_format(str(OUT / f"{run}.jsonl"))
    writer.write_in_json_format(str(OUT / f"{run}.json"))
    writer.write_in_trec_eval_format(str(OUT / f"{run}.trec"))
