# /// script
# dependencies = ["autojudge-base==1.0.0", "requests"]
# ///
"""Auto-Judge's own tool: answers to TREC's tracks RAG 2025 and 2026 and RAGTIME 2026, as they are submitted.

The package reads a list of words of nltk's when it is imported, which these formats do not use: an empty one will do.
"""

import os
import sys
from pathlib import Path

OUT = Path(sys.argv[1])
WORDS = Path("nltk/corpora/stopwords")
WORDS.mkdir(parents=True)
(WORDS / "english").write_text("the\n")
os.environ["NLTK_DATA"] = str(Path("nltk").resolve())

from autojudge_base.report import Report, ReportMetaData  # noqa: E402
from autojudge_base.report_export import write_submission_output  # noqa: E402
from autojudge_base.report_sentences import NeuclirReportSentence  # noqa: E402
from halls import QUESTIONS, RUNS  # noqa: E402

for run in RUNS:
    reports = []
    for question in QUESTIONS:
        found, answer = question.found(run), question.answer(run)
        cited = [passage.id for passage in found if answer in passage.text]
        said = [NeuclirReportSentence(text=f"It keeps {answer}.", citations=cited)]
        said.append(NeuclirReportSentence(text="So the page says.", citations=[]))
        about = {"team_id": "halls", "run_id": run, "type": "automatic", "run_desc": "A run.", "topic_id": question.id}
        metadata = ReportMetaData(**about, narrative=question.text)
        references = [passage.id for passage in found]
        reports.append(Report(is_ragtime=False, metadata=metadata, responses=said, references=references))
    for track in ("rag25", "rag26", "ragtime26"):
        write_submission_output(reports=reports, path=OUT / f"{track}-{run}.jsonl", spec=track)
