import pytest
from hypothesis import given, strategies as st

from judgekit.errors import UsageError
from judgekit.spec import Spec, parse, parse_many, slug, split_named

keys = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
values = st.one_of(
    st.booleans(), st.integers(-(10**6), 10**6), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=12)
)
specs = st.builds(
    lambda name, params, cutoff: Spec(name, tuple(params.items()), cutoff),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_+-]{0,10}", fullmatch=True),
    st.dictionaries(keys, values, max_size=4),
    st.one_of(st.none(), st.integers(1, 10**6)),
)


@given(specs)
def test_every_spelling_parses_back(spec: Spec) -> None:
    again = parse(str(spec))
    assert again == spec
    assert [type(v) for _, v in again.params] == [type(v) for _, v in spec.params]


@given(st.lists(specs, max_size=4))
def test_a_list_of_spellings_parses_back(many: list[Spec]) -> None:
    assert parse_many(" ".join(map(str, many))) == many


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("nDCG(dcg='exp-log2')@10", Spec("nDCG", (("dcg", "exp-log2"),), 10)),
        ('judge(model="org/name", prompt=graded)', Spec("judge", (("model", "org/name"), ("prompt", "graded")))),
        ("nDCG(gains={0:0,1:2})@5", Spec("nDCG", (("gains", "{0:0,1:2}"),), 5)),
    ],
)
def test_spellings_of_ir_measures_and_labelers(text: str, spec: Spec) -> None:
    assert parse(text) == spec


@pytest.mark.parametrize(
    "text", ["", "@5", "P@0", "P@x", "P(rel)", "P(rel=", "P(rel=1", "P(rel=1 x=2)", "P x", "P(a='b)", "P(a=1, a=2)"]
)
def test_what_is_no_spelling_is_refused_with_the_place(text: str) -> None:
    with pytest.raises(UsageError, match=r"character|'a' is given twice"):
        parse(text)


@given(st.text(max_size=60), st.text(max_size=60))
def test_slugs_are_file_names_and_distinct(one: str, other: str) -> None:
    assert not set(slug(one)) & set("/=\\\0 ")
    assert slug(one) not in ("", ".", "..")
    assert (slug(one) == slug(other)) == (one == other)


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("bm25=runs/bm25.trec", ("bm25", "runs/bm25.trec")),
        ("runs/bm25.trec", (None, "runs/bm25.trec")),
        ("runs/k1=0.9.trec", (None, "runs/k1=0.9.trec")),
        ("judge(prompt=graded)=x.qrels", ("judge(prompt=graded)", "x.qrels")),
        ("cascade(first='judge(prompt=graded)')=x.qrels", ("cascade(first='judge(prompt=graded)')", "x.qrels")),
        ("csv(query=q):x.csv", (None, "csv(query=q):x.csv")),
        ("=x", (None, "=x")),
        ("a=b=c", ("a", "b=c")),
    ],
)
def test_names_split_from_files(text: str, split: tuple[str | None, str]) -> None:
    assert split_named(text) == split
