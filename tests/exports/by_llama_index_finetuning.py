# /// script
# dependencies = ["llama-index-finetuning==0.4.2", "llama-index-core==0.14.25"]
# [tool]
# bare = ["llama-index-finetuning"]
# ///
"""LlamaIndex' dataset for retrievers: ``EmbeddingQAFinetuneDataset.save_json``.

Its package imports engines that need torch, so its module is loaded alone.
"""

import importlib.util
import sys
from pathlib import Path

OUT = Path(sys.argv[1])

from halls import QUESTIONS  # noqa: E402

(packages,) = importlib.util.find_spec("llama_index").submodule_search_locations
place = Path(packages) / "finetuning" / "embeddings" / "common.py"
spec = importlib.util.spec_from_file_location("common", place)
common = importlib.util.module_from_spec(spec)
spec.loader.exec_module(common)

dataset = common.EmbeddingQAFinetuneDataset(
    queries={question.id: question.text for question in QUESTIONS},
    corpus={passage.id: passage.text for question in QUESTIONS for passage in question.passages},
    relevant_docs={question.id: [question.gold.id] for question in QUESTIONS},
)
dataset.save_json(str(OUT / "dataset.json"))
