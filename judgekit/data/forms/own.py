"""judgekit's own forms, in the order in which they are tried; loaded with the first file."""

from __future__ import annotations

from typing import Final

from judgekit.data.forms.autorag import AUTORAG
from judgekit.data.forms.azure import AZURE
from judgekit.data.forms.chroma import CHROMA
from judgekit.data.forms.dataset import DATASET
from judgekit.data.forms.deepeval import DEEPEVAL
from judgekit.data.forms.dspy import DSPY
from judgekit.data.forms.expected import EXPECTED
from judgekit.data.forms.flat import FLAT
from judgekit.data.forms.haystack import HAYSTACK
from judgekit.data.forms.inspect_ai import INSPECT
from judgekit.data.forms.kilt import KILT
from judgekit.data.forms.langsmith import LANGSMITH
from judgekit.data.forms.lists import DICT, DPR
from judgekit.data.forms.llamaindex import LLAMAINDEX
from judgekit.data.forms.lm_eval import LM_EVAL
from judgekit.data.forms.mlflow import MLFLOW
from judgekit.data.forms.openrageval import OPENRAGEVAL, OPENRAGEVAL_ANSWERS
from judgekit.data.forms.opik import OPIK
from judgekit.data.forms.predictions import MTEB, PREDICTIONS
from judgekit.data.forms.promptfoo import PROMPTFOO
from judgekit.data.forms.pydantic_evals import PYDANTIC_EVALS
from judgekit.data.forms.rag import RAG, RETRIEVED
from judgekit.data.forms.ragas import RAGAS
from judgekit.data.forms.ragchecker import RAGCHECKER
from judgekit.data.forms.ragelo import EXPERIMENT, RAGELO
from judgekit.data.forms.rank_llm import RANK_LLM
from judgekit.data.forms.stores import ELASTICSEARCH, QDRANT, RANK_EVAL, SEARCH
from judgekit.data.forms.tool import Tool
from judgekit.data.forms.trec_rag import NUGGETIZER, TREC_RAG
from judgekit.data.forms.trulens import TRULENS
from judgekit.data.forms.umbrela import UMBRELA

TOOLS: Final[tuple[Tool, ...]] = (
    *(RAGAS, DEEPEVAL, LANGSMITH, MLFLOW, HAYSTACK, PROMPTFOO, CHROMA, QDRANT, LLAMAINDEX),
    *(TRULENS, RAGCHECKER, AZURE, PYDANTIC_EVALS, NUGGETIZER, EXPERIMENT, INSPECT, RANK_LLM),
    *(DSPY, OPIK),
    *(AUTORAG, LM_EVAL, TREC_RAG, OPENRAGEVAL),
)
"""The tools whose exports are forms of their own, as `judgekit.data.forms.tool` declares them."""
FORMS: Final = {
    form.name: form
    for form in (
        *FLAT,
        *(tool.form() for tool in (*TOOLS, RANK_EVAL)),
        *(ELASTICSEARCH, OPENRAGEVAL_ANSWERS, DATASET, RAGELO, UMBRELA, PREDICTIONS, MTEB),
        *(RETRIEVED, DPR, KILT, EXPECTED, SEARCH, RAG, DICT),
    )
}
"""judgekit's own forms by name, in the order in which they are tried."""
