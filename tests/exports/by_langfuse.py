# /// script
# dependencies = ["langfuse==5.0.4"]
# ///
"""Langfuse: observations and scores as the SDK's own response models write them; no server runs."""

import json
import sys
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

OUT = Path(sys.argv[1])
warnings.filterwarnings("ignore")

from halls import FAILS, QUESTIONS, RUNS  # noqa: E402
from langfuse.api.commons.types.observation_v2 import ObservationV2  # noqa: E402
from langfuse.api.core.pydantic_utilities import parse_obj_as  # noqa: E402
from langfuse.api.scores.types.boolean_score_v3 import BooleanScoreV3  # noqa: E402
from langfuse.api.scores.types.categorical_score_v3 import CategoricalScoreV3  # noqa: E402
from langfuse.api.scores.types.numeric_score_v3 import NumericScoreV3  # noqa: E402

observations, scores = [], []
for late, run in enumerate(RUNS):
    for question in QUESTIONS:
        trace = f"{run}{question.id}"
        moment = (datetime(2026, 1, 2, tzinfo=UTC) + timedelta(minutes=60 * late + int(question.id))).isoformat()
        own = {"traceId": trace, "projectId": "halls", "startTime": moment, "endTime": moment}
        documents = [{"id": passage.id, "content": passage.text} for passage in question.found(run)]
        answer = question.answer(run)
        for step in (
            {"id": f"{trace}-a", "type": "CHAIN", "name": "answer", "isRootObservation": True,
             "input": {"question": question.text}, "output": {"answer": answer}},
            {"id": f"{trace}-r", "type": "RETRIEVER", "name": run, "parentObservationId": f"{trace}-a",
             "input": question.text, "output": documents},
            {"id": f"{trace}-g", "type": "GENERATION", "name": "llm", "model": "gpt-x",
             "parentObservationId": f"{trace}-a", "input": question.text, "output": answer},
        ):  # fmt: skip
            observations.append(parse_obj_as(ObservationV2, {**own, **step}))
        if question.id == FAILS:
            continue
        good = answer == question.reference
        about = {"projectId": "halls", "source": "API", "timestamp": moment, "environment": "default",
                 "createdAt": moment, "updatedAt": moment, "subject": {"kind": "trace", "id": trace}}  # fmt: skip
        for kind, name, value, typed in (
            (BooleanScoreV3, "thumb", good, "BOOLEAN"),
            (CategoricalScoreV3, "verdict", "good" if good else "bad", "CATEGORICAL"),
            (NumericScoreV3, "hallucination", 0.1 if good else 0.7, "NUMERIC"),
        ):
            fields = {**about, "id": f"{trace}-{name}", "name": name, "value": value, "dataType": typed}
            scores.append(parse_obj_as(kind, fields))
for name, models in (("observations", observations), ("scores", scores)):
    (OUT / f"{name}.json").write_text(json.dumps([json.loads(model.json()) for model in models], indent=0))
