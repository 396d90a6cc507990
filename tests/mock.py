"""A stand-in for an LLM, as a transport and as a server at `URL`: whole runs can be tested without a model.

It judges by the words that question and passage share, and answers with words of the passage, in the form that the
prompt asks for. The same body always gets the same reply.
"""

import asyncio
import contextlib
import json
import math
import re
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from judgekit.wire.jsontext import parse_json
from judgekit.wire.types import SHOWN, Endpoint

__all__ = ["URL", "Handler", "MockTransport", "serve"]

_BLOCK: Final = re.compile(r"<(question|passage|references|answer)>(.*?)</\1>", re.DOTALL)
_OBJECT: Final = re.compile(r"\{[^{}]*:[^{}]*\}")
_GRADING: Final = re.compile(r"\b(?:grade|score|scale|rate|rating)s?\b", re.IGNORECASE)
_GRADE: Final = re.compile(r"^\d+(?= =)|\b\d+(?=,? (?:or |to )?\d)|(?<=or |to )\d+", re.MULTILINE)
_YES_NO: Final = re.compile(r"\byes\b\W+(?:or\W+)?\bno\b", re.IGNORECASE)
_CLASSES: Final = re.compile(r"\b((?:[A-Z]{2}[A-Z ]*, )*[A-Z]{2}[A-Z ]*) or ([A-Z]{2}[A-Z ]*)\b")
_LABEL: Final = re.compile(r"(?:^|[\"“])([A-Z][\w ]*: )(?=(?:N|X|yes|no)\b)", re.IGNORECASE | re.MULTILINE)
_LIST: Final = re.compile(r"\bJSON list of \d+ words\b")
_ABSTAIN: Final = re.compile(r"\bsay\s+[\"“]([^\"”]+)[\"”]")
_PIECE: Final = re.compile(r"\s*(?:\w+|[^\w\s])")


class MockTransport:
    """Answers from the request body alone."""

    async def send(self, endpoint: Endpoint, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Return 200 with a reply in the form that the body asks for, of the API that it is in."""
        asked: dict[str, Any] = parse_json(body)
        if "query" in asked:
            return 200, {}, json.dumps(_ranked(asked)).encode()
        api = next(api for api, shown in SHOWN.items() if shown in asked)
        prompt = _shown(api, asked)
        text, chances = _say(asked, prompt)
        pieces = _PIECE.findall(text)
        logprobs = {"content": _tokens(pieces, chances, asked.get("top_logprobs"))} if asked.get("logprobs") else None
        said = {"model": asked["model"]}
        used = len(_PIECE.findall(prompt)), len(pieces)
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop", "logprobs": logprobs}
        if api == "completions":
            choice = {
                "text": text,
                "finish_reason": "stop",
                "logprobs": logprobs and _side_by_side(logprobs["content"]),
            }
        reply = {
            **said,
            "choices": [{"index": i, **choice} for i in range(asked.get("n") or 1)],
            "usage": dict(zip(("prompt_tokens", "completion_tokens"), used, strict=True)),
        }
        return 200, {}, json.dumps(reply).encode()

    @staticmethod
    def count(asked: dict[str, Any]) -> int:
        """Return how many tokens the prompt of a request has."""
        api = next(api for api, shown in SHOWN.items() if shown in asked)
        return len(_PIECE.findall(_shown(api, asked)))

    async def aclose(self) -> None:
        """Nothing is open."""


def _ranked(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what a reranker replies: the share of the question's words that each document has."""
    words = set(_PIECE.findall(asked["query"].casefold()))
    results = []
    for index, text in enumerate(asked["documents"]):
        shared = words & set(_PIECE.findall(text.casefold()))
        results.append({"index": index, "relevance_score": len(shared) / len(words)})
    used = len(_PIECE.findall(" ".join([asked["query"], *asked["documents"]])))
    usage = {"prompt_tokens": used, "total_tokens": used}
    return {"model": asked["model"], "object": "list", "usage": usage, "results": results}


def _shown(api: str, asked: dict[str, Any]) -> str:
    """Return what a request shows, and name its fields as a chat completion does."""
    if api == "completions":
        asked["top_logprobs"] = asked.get("logprobs")
    shown = asked[SHOWN[api]]
    texts = [shown] if isinstance(shown, str) else [str(m["content"]) for m in shown if m["role"] != "assistant"]
    return "\n".join(texts)


def _side_by_side(tokens: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return log-probabilities as a completion has them."""
    return {
        "tokens": [token["token"] for token in tokens],
        "token_logprobs": [token["logprob"] for token in tokens],
        "top_logprobs": [{one["token"]: one["logprob"] for one in token["top_logprobs"]} for token in tokens],
    }


def _say(asked: Mapping[str, Any], prompt: str) -> tuple[str, dict[str, float]]:
    """Return the reply, and how probable each verdict was; there are none where an answer is asked for."""
    blocks: dict[str, list[str]] = {"question": [], "passage": [], "references": [], "answer": []}
    for name, block in _BLOCK.findall(prompt):
        blocks[name].append(block.strip())
    orders = _BLOCK.sub("", prompt)
    if _LIST.search(orders):
        return _listed(blocks), {}
    questions = blocks["references"] or blocks["question"] or [line for line in orders.splitlines() if "?" in line]
    wanted = _words(" ".join(questions))
    share = len(wanted & _words(" ".join(blocks["passage"] or blocks["answer"]))) / max(len(wanted), 1)
    example, levels = _form(asked, orders)
    p, top = min(max(share, 0.01), 0.99), len(levels) - 1
    chances = {level: math.comb(top, i) * p**i * (1 - p) ** (top - i) for i, level in enumerate(levels)}
    if not levels:
        return _answer(orders, wanted, blocks), chances
    verdict = max(reversed(levels), key=chances.__getitem__)
    if example:
        values = {bool: verdict == levels[-1], int: int(verdict) if verdict.isdigit() else 0}
        text = {key: values.get(type(value), verdict if value in levels else "…") for key, value in example.items()}
        return json.dumps(text, ensure_ascii=False), chances
    return "".join(_LABEL.findall(orders)[-1:]) + verdict, chances


def _listed(blocks: Mapping[str, list[str]]) -> str:
    """Return a word for each fact that a text may state, or for each passage that may support a sentence."""
    text = _words(" ".join(blocks["answer"]))
    facts = [line for block in blocks["references"] for line in re.sub(r"(?m)^\d+\. ", "", block).splitlines()]
    pairs = [(_words(fact), text) for fact in facts] or [(text, _words(passage)) for passage in blocks["passage"]]
    shares = [len(claimed & stated) / max(len(claimed), 1) for claimed, stated in pairs]
    return json.dumps(["support" if share >= 0.75 else "partial" if share >= 0.25 else "none" for share in shares])


def _form(asked: Mapping[str, Any], orders: str) -> tuple[dict[str, Any], list[str]]:
    """Return an example of the JSON object that is asked for, if one is, and the verdicts, the lowest first."""
    constraint, form = asked.get("structured_outputs") or {}, asked.get("response_format") or {}
    schema = constraint.get("json") or form.get("json_schema", {}).get("schema") or {}
    types = {"boolean": True, "integer": 0, "number": 0}
    fields = schema.get("properties", {})
    example = {key: (field.get("enum") or [types.get(field.get("type"), "…")])[0] for key, field in fields.items()}
    for shown in _OBJECT.findall(orders):
        with contextlib.suppress(ValueError):
            example = example or json.loads(shown)
    enums = [field["enum"] for field in fields.values() if "enum" in field]
    levels = [str(level) for level in constraint.get("choice") or next(iter(enums), ())]
    grades = [int(grade) for grade in _GRADE.findall(orders)] if _GRADING.search(orders) else []
    if not levels and grades and bool not in map(type, example.values()):
        levels = [str(grade) for grade in range(min(grades), max(grades) + 1)]
    elif not levels and (_YES_NO.search(orders) or bool in map(type, example.values())):
        levels = ["Yes", "No"]
    elif not levels and (classes := _CLASSES.search(orders)):
        levels = [*classes[1].split(", "), classes[2]]
    if all(level.isdigit() for level in levels):
        return example, sorted(levels, key=int)
    return example, levels if levels[0].casefold() in ("no", "false") else levels[::-1]


def _answer(orders: str, wanted: set[str], blocks: Mapping[str, list[str]]) -> str:
    """Return a few words, or a sentence, of what shares most words with the question; else what says that none does."""
    abstain = next(iter(_ABSTAIN.findall(orders)), "unknown")
    if not blocks["passage"]:  # one is to be chosen of several answers
        return next((answer for answer in blocks["answer"] if answer != abstain), abstain)
    sentences = [s for passage in blocks["passage"] for s in re.split(r"(?<=[.!?])\s+|\n", passage)]
    best = max(sentences, key=lambda sentence: len(wanted & _words(sentence)))
    if 2 * len(wanted & _words(best)) < len(wanted):
        return abstain
    if "sentences" in orders:
        return best
    new = [word.strip(".,;:!?\"'()") for word in best.split()[1:] if not wanted & _words(word)]
    return next((word for word in new if word[:1].isdigit()), next(filter(str.istitle, new), new[-1] if new else best))


def _words(text: str) -> set[str]:
    found = set(re.findall(r"\w+", text.casefold()))
    return {word for word in found if len(word) > 3 or word.isdigit()} or found


def _tokens(pieces: Sequence[str], chances: Mapping[str, float], most: int | None) -> list[dict[str, Any]]:
    """Return OpenAI's ``logprobs.content``; the last token that is a verdict has the other verdicts beside it."""
    first = {_PIECE.findall(verdict)[0]: round(math.log(chance), 6) for verdict, chance in chances.items()}
    deciding = max((i for i, piece in enumerate(pieces) if piece.strip() in first), default=-1)
    tokens = []
    for i, piece in enumerate(pieces):
        blank = piece[: len(piece) - len(piece.lstrip())]
        options = {blank + word: logprob for word, logprob in first.items()} if i == deciding else {piece: 0.0}
        ranked = sorted(options, key=options.__getitem__, reverse=True)
        top = [{"token": token, "logprob": options[token]} for token in ranked[: most or 0]]
        tokens.append({"token": piece, "logprob": options[piece], "top_logprobs": top})
    return tokens


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self.reply({"data": [{"id": "mock"}]})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.reply(json.loads(asyncio.run(MockTransport().send(_ANY, body))[2]))

    def reply(self, said: Mapping[str, Any]) -> None:
        data = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 128


def serve(handler: type[Handler] = Handler) -> str:
    """Start a server that lasts as long as this process; return its address."""
    server = _Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"


_ANY: Final = Endpoint("mock", "http://mock/v1", "mock")
URL: Final = serve()
"""The address of the server, one for each process that runs tests."""
