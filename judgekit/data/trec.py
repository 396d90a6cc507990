"""Runs and qrels: TREC files (``query Q0 doc rank score tag``, ``query 0 doc relevance``) and all other forms.

A TREC, CSV or TSV file is read by a fast columnar parser. Other files, and files with errors, go through the reader of
records, which understands every form and knows the line to name. Files beside qrels may list missing labels
(``NAME.missing.tsv``) and what people were asked (``NAME.sample.json``): the drawn pairs with their probabilities. With
the latter, an unlisted pair is known to be *not judged*; without it, it could be *not relevant*.
"""

from __future__ import annotations

import csv
import json
import math
from contextlib import nullcontext
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np

from judgekit.data.columns import Pairs
from judgekit.data.fields import DECLARED
from judgekit.data.forms.delimited import TREC, subtopics
from judgekit.data.labelings import STATUSES, Labeling, Scale, grade_problem
from judgekit.data.records import parquet_columns
from judgekit.data.runs import Run, Ties
from judgekit.data.sources import Located, located, pairs, pairs_by_record, stem
from judgekit.data.streams import Beginning, check_outputs, note_read, open_atomic, read_bytes, write_atomic
from judgekit.data.tables import LABELS, Status, Table, stacked
from judgekit.errors import DataError, UsageError, nearest, not_among

if TYPE_CHECKING:
    import pandas as pd

_KINDS: Final = {".run": "run", ".trec": "run", ".qrels": "qrels", ".qrel": "qrels"}
"""Kinds of files by the ending of the name."""
_TAIL: Final = 1 << 12
"""Bytes at the end of a file in which its last row stands."""
_NO_TREC: Final = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".bz2", ".zst", ".xz")


def read_run(path: str | Path, name: str | None = None, ties: Ties = Ties.DOC_DESC) -> Run:
    """Read a run: a TREC file, or any other form that holds one (``docs/formats.md``).

    The rank column of a TREC file is ignored: scores and the tie rule decide the order.

    Args:
        path: the file, plain or packed (recognised by content), or ``FORM:FILE`` where content does not tell the form.
        name: the run's name; by default the file's name without its endings.
        ties: the order of documents with equal scores.

    Returns:
        The run: for each query its documents with their scores, the best first.

    Raises:
        DataError: the file is missing or empty; a line does not have six columns, its score is not a finite number, or
            its document appears twice for its query (with file and line), or two runs stand one behind the other.
    """
    place = located(path, "run")
    name = name or stem(place.path)
    rows = pairs(place, "run")
    try:
        run = Run.of(name, rows, ties=ties)
    # The fast reader keeps no lines, so errors are located record by record.
    except DataError as error:
        pairs_by_record(place, "run")  # names the line
        raise DataError(error.reason, place.path) from None
    check_tags(place)
    return run


def check_tags(place: Located) -> None:
    """Refuse a TREC file of two runs, one behind the other: read as one, their lists would be mixed by their scores.

    Tags may differ without that: parts of a run over different queries, or documents with the tag of their source.
    """
    path, form = place
    if form.name not in ("auto", "trec") or not path.is_file():
        return
    beginning = Beginning.of(path, DECLARED["run"].expected)
    # Of a packed file the end is not at hand.
    if beginning.packing is not None or not TREC.marks(beginning):
        return
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _TAIL))
        ends = [beginning.start.splitlines()[:1], stream.read().splitlines()[-1:]]
    rows = [line.split() for lines in ends for line in lines]
    if [len(row) for row in rows] != [6, 6] or not rows[0][1] == rows[1][1] == b"Q0" or rows[0][5] == rows[1][5]:
        return
    other = _tag_of_a_second_list(path, rows[0][0], rows[0][5])
    if other:
        first, second = (tag.decode(errors="replace") for tag in (rows[0][5], other))
        raise DataError(
            f"holds the runs {first!r} and {second!r}, by the last column, one behind the other: write each run into a"
            " file of its own",
            path,
        )


def _tag_of_a_second_list(path: Path, query: bytes, tag: bytes) -> bytes:
    """Return the tag under which a query comes again behind others, if it is another than that of its first row."""
    others = False
    with path.open("rb") as stream:
        for row in map(bytes.split, stream):
            if row and row[0] != query:
                others = True
            elif row and others and row[-1] != tag:
                return row[-1]
    return b""


def read_qrels(
    path: str | Path, name: str | None = None, scale: Scale | None = None, *, negative: bool = True
) -> Labeling:
    """Read qrels: a TREC file, or any other form that holds them (``docs/formats.md``).

    A file ``NAME.missing.tsv`` beside it, where `write_qrels` lists missing labels, is read too.

    A Parquet table of labels by judgekit is read with all its columns, such as statuses and spans.

    Args:
        path: the file, plain or packed (recognised by content), or ``FORM:FILE`` where content does not tell the form.
        name: the labeling's name; by default the file's name without its endings.
        scale: what the numbers mean. Without it, whole numbers are grades up to the largest (`Labeling.declared` is
            then False), and fractions are an error, because their meaning is never guessed.
        negative: accept negative grades under a declared scale of grades from 0 (`Labeling.below` counts them);
            otherwise they are an error.

    Returns:
        The labels with their scale, a row for each pair.

    Raises:
        DataError: the file is missing or empty; a line does not have four columns, its relevance is not a number or not
            on the scale, or its pair appears twice (with file and line); or there are fractions without a declared
            scale.
    """
    source = located(path, "qrels")
    place = source.path
    name = name or stem(place)
    if source.format.name == "auto" and set(LABELS.columns) <= set(parquet_columns(place)):
        from judgekit.data.files import read_table

        table = read_table(LABELS, place)
        try:
            return Labeling(name, scale, table, negative=negative)
        except DataError as error:
            raise DataError(error.reason, place) from None
    side = missing_path(place)
    misnamed = place.with_name(f"{place.name}.missing.tsv")
    # Ignoring a list of missing labels would turn them into labels of 0.
    if misnamed.exists() and misnamed != side:
        raise DataError(f"is not read: judgekit looks for the missing labels of {place.name} in {side.name}", misnamed)
    labels = pairs(source, "qrels", may_be_empty=side.exists())
    rows: Pairs | pd.DataFrame = labels
    wrong = place
    if side.exists():
        obtained = labels.frame("relevance").assign(status=Status.OK.value)
        rows = stacked([obtained, _read_missing(side).assign(relevance=np.nan)])
        # A pair in both files is an error of the list: the qrels alone were read without it.
        wrong = side
    parts = _subtopics(source)
    try:
        labeling = Labeling(name, scale, rows, negative=negative)
    except DataError as error:
        if parts:
            reason = f"column 2 has up to {parts} values for a query, as in judgments of subtopics"
            raise DataError(f"{reason}: keep one line for each query and document ({error.reason})", place) from None
        if scale is not None and negative:
            scale = scale.lowered(labels.values)
        pairs_by_record(source, "qrels", grade_problem if scale is None else scale.problem)
        raise DataError(error.reason, wrong) from None
    labeling.subtopics = parts
    return labeling


def _subtopics(source: Located) -> int:
    """Return the largest number of subtopics of a query in a TREC file; 0 for other forms."""
    if source.format.name not in ("auto", "trec"):
        return 0
    beginning = Beginning.of(source.path, "qrels")
    return subtopics(beginning) if TREC.marks(beginning) else 0


def missing_path(qrels: str | Path) -> Path:
    """Return the path of a qrels file's missing labels: ``judge.missing.tsv`` beside ``judge.qrels``."""
    return Path(qrels).with_name(stem(qrels) + ".missing.tsv")


_MISSING: Final = Table("missing labels", {"query_id": "id", "doc_id": "id", "status": "str"}, {})


def _read_missing(path: Path) -> pd.DataFrame:
    """Read a table of missing labels."""
    from judgekit.data.files import read_table

    missing = read_table(_MISSING, f"tsv(quote=none):{path}", numbered=True)
    known = [status.value for status in STATUSES if status is not Status.OK]
    for line, status in zip(missing.index.tolist(), missing["status"], strict=True):
        if status not in known:
            reason = f"{status!r} is not a status of a missing label ({', '.join(known)}).{nearest(status, known)}"
            raise DataError(reason, path, line)
    if missing.empty:
        raise DataError("holds no missing labels", path)
    return missing


ASKED_COLUMNS: Final = ("query_id", "doc_id", "probability", "content", "status", "judgments")


def asked_path(qrels: Path) -> Path:
    """Return the path of the file that tells what people were asked."""
    return qrels.with_name(f"{qrels.name}.sample.json")


@dataclass(frozen=True)
class Asked:
    """What people were asked.

    Attributes:
        sample: the hash of the sample.
        design: the design of the draw.
        scale: the scale of their labels.
        queries: number of queries it was drawn from.
        pairs: number of pairs it was drawn from.
        rows: per pair ``query_id, doc_id, probability, content, status, judgments``; status is ok, tie, skipped or
            open, content a hash of the shown texts.
        seconds: the median time of a judgment; 0 if not recorded.
    """

    sample: str
    design: str
    scale: str
    queries: int
    pairs: int
    rows: tuple[tuple[Any, ...], ...]
    seconds: float = 0.0

    def write(self, qrels: Path) -> Path:
        """Write this beside the qrels."""
        path = asked_path(qrels)
        content = {"judgekit": "people", **self.__dict__, "rows": [list(ASKED_COLUMNS), *map(list, self.rows)]}
        write_atomic(path, json.dumps(content, ensure_ascii=True) + "\n")
        return path

    @classmethod
    def beside(cls, qrels: Path) -> Asked | None:
        """Return what people were asked, or None without the file."""
        path = asked_path(qrels)
        if not path.is_file():
            return None
        note_read(path)
        try:
            content = json.loads(read_bytes(path))
            if content.pop("judgekit") != "people":
                raise ValueError("not written by judgekit annotate read")
            header, *rows = map(tuple, content.pop("rows"))
            if header != ASKED_COLUMNS or any(len(row) != len(header) or not 0 < row[2] <= 1 for row in rows):
                raise ValueError("the rows are not those of a sample")
            Scale.parse(content["scale"])
            return cls(**content, rows=tuple(rows))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, UsageError) as error:
            raise DataError(
                f"does not list the questions that people were asked ({error}): read the judgments again", path
            ) from None


def write_run(run: Run, path: str | Path) -> None:
    """Write a run as a TREC file: queries in ascending order, best document first, all digits of the scores.

    Args:
        run: the run.
        path: the file to write.

    Raises:
        DataError: an id holds white space, or the file cannot be written.
    """
    rows = run.frame()
    rank = rows.groupby("query_id", sort=False).cumcount() + 1
    rows = rows.assign(q0="Q0", rank=rank, tag="_".join(run.name.split()))
    with open_atomic(path) as stream:
        _write_rows(rows[["query_id", "q0", "doc_id", "rank", "score", "tag"]], stream, " ")


def _write_rows(rows: pd.DataFrame, stream: BinaryIO, delimiter: str) -> None:
    """Write rows of cells without white space, one per line."""
    rows.to_csv(
        stream, mode="wb", sep=delimiter, header=False, index=False, lineterminator="\n", quoting=csv.QUOTE_NONE
    )


def write_qrels(labeling: Labeling, path: str | Path, min_grade: float | None = None) -> None:
    """Write a labeling as a TREC qrels file, sorted by query, then doc; missing labels go to a file beside it.

    Binary and graded labels are written as integers, which trec_eval and ir_measures read; others with all their
    digits. A qrels file cannot hold missing labels, so ``NAME.missing.tsv`` lists them with their status, and
    `read_qrels` reads it. If none are missing, an older such file is removed.

    Args:
        labeling: what to write.
        path: the file to write; compressed if its name ends in ``.gz``.
        min_grade: write 1 for labels of at least this value and 0 for the others.

    Raises:
        DataError: the file cannot be written.
        UsageError: ``min_grade`` is not a number.
    """
    if min_grade is not None and math.isnan(min_grade):
        raise UsageError("the lowest grade that counts as relevant must be a number")
    whole = labeling.scale.integral or min_grade is not None
    side = missing_path(path)
    check_outputs(Path(path), side)
    # The list of missing labels is written before the qrels: a crash in between leaves labels known to be missing,
    # never qrels that seem complete.
    some_lost = bool((labeling.row_status != STATUSES.index(Status.OK)).any())
    missing = open_atomic(side) if some_lost else nullcontext(BytesIO())
    with open_atomic(path) as stream, missing as beside:  # the one inside is whole first
        beside.write(b"query_id\tdoc_id\tstatus\n")
        for block in labeling.blocks("query_id", "doc_id", "relevance", "status"):
            obtained = block["status"] == Status.OK.value
            kept = block[obtained].assign(iteration=0)
            if min_grade is not None:
                kept["relevance"] = kept["relevance"] >= min_grade
            if whole:
                kept["relevance"] = kept["relevance"].astype(int)
            _write_rows(kept[["query_id", "iteration", "doc_id", "relevance"]], stream, " ")
            _write_rows(block[~obtained][["query_id", "doc_id", "status"]], beside, "\t")
    # An old list would take existing labels away.
    if not some_lost:
        side.unlink(missing_ok=True)


def kind_of(out: str | Path, kind: str | None = None) -> str:
    """Return the kind of an output file: as ``kind`` says, else run or qrels by its name."""
    ending = Path(Path(out).name.removesuffix(".gz")).suffix
    kind = kind or _KINDS.get(ending)
    if kind is None:
        raise UsageError(f"{out}: name OUT .run or .qrels, or choose --kind run or qrels")
    if kind not in ("run", "qrels"):
        raise UsageError(not_among("kind of data", kind, ("qrels", "run")))
    if str(out) == "-":
        raise UsageError("OUT must be a file: convert does not write to standard output")
    if ending in _NO_TREC:
        raise UsageError(f"{out}: convert writes TREC files: name OUT .run or .qrels")
    return kind


def convert(
    source: str | Path,
    out: str | Path,
    kind: str | None = None,
    *,
    min_grade: float | None = None,
    scale: str | None = None,
) -> str:
    """Write a run or qrels of any form as a TREC file.

    Args:
        source: the file, or ``FORM:FILE`` if its content does not show the form.
        out: the file to write; compressed if its name ends in ``.gz``.
        kind: ``run`` or ``qrels``; by default what the name of ``out`` says (``.run`` and ``.trec``, or ``.qrels``).
        min_grade: qrels: write 1 for labels of at least this value, 0 for the others.
        scale: qrels: what decimal labels mean.

    Returns:
        What was written, in words.

    Raises:
        DataError, UsageError: the file cannot be read or written.
    """
    if kind_of(out, kind) == "run":
        if min_grade is not None or scale is not None:
            raise UsageError("--min-grade and --scale are for qrels, but OUT is a run")
        run = read_run(source)
        write_run(run, out)
        return f"a run of {len(run):,} rows"
    labeling = read_qrels(source, scale=None if scale is None else Scale.parse(scale))
    write_qrels(labeling, out, min_grade)
    obtained = labeling.counts()[Status.OK]
    written = f"{obtained:,} labels"
    if obtained < len(labeling):
        written += f", {len(labeling) - obtained:,} missing ones listed in {missing_path(out).name}"
    return written
