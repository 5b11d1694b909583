"""Documents that carry their own digest: any bit that changes is noticed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesrisk import _files
from bayesrisk._files import text as parse
from bayesrisk.exceptions import DataError

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
documents = st.dictionaries(st.sampled_from(["a", "b", "config", "files"]), values)


@given(documents, st.integers(0, 10**6), st.integers(0, 7))
def test_a_flipped_bit_is_noticed_or_harmless(document, at, bit):
    sealed = _files.sealed(document)
    assert _files.unsealed(json.loads(sealed)) == document
    damaged = bytearray(sealed)
    damaged[at % len(damaged)] ^= 1 << bit
    try:
        found = json.loads(bytes(damaged).decode())
        read = _files.unsealed(found)
    except ValueError:
        return
    assert read == document or not set(read) <= {"a", "b", "config", "files"}


def test_documents_written_by_hand(tmp_path):
    assert _files.unsealed({"a": 1}) == {"a": 1}
    with pytest.raises(ValueError, match="its seal does not fit"):
        _files.unsealed({"a": 1, "seal": "0" * 64})
    with pytest.raises(ValueError, match="must be an object, got list"):
        _files.unsealed([])
    (tmp_path / "deep").write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"deep: cannot be read as JSON: must be at most 64 deep"):
        _files.read_document(tmp_path / "deep")
    (tmp_path / "list").write_text("[]")
    with pytest.raises(DataError, match=r"list: must be an object, got list"):
        _files.read_document(tmp_path / "list")


@pytest.mark.parametrize("form", [lambda keys: [dict.fromkeys(keys, 0)],
                                  lambda keys: [{key: 0} for key in keys]])  # fmt: skip
@pytest.mark.parametrize("colon", [":", " \t:"])
def test_different_keys_are_bounded_before_a_document_is_parsed(form, colon, monkeypatch):
    """As many as fit are read, whoever holds them; one more is refused, whatever its blanks."""
    monkeypatch.setattr(parse, "JSON_KEYS", 50)
    for keys in (50, 51):
        text = json.dumps(form([f"k{i}" for i in range(keys)]), separators=(",", colon))
        if keys == 51:
            with pytest.raises(DataError, match="must hold at most 50 different keys, got more"):
                parse.json_document(text.encode(), "a.json")
        else:
            found = parse.json_document(text.encode(), "a.json")
            assert {key for entry in found for key in entry} == {f"k{i}" for i in range(50)}
    again = json.dumps([{"a": 0}] * 500).encode()
    assert len(parse.json_document(again, "a.json")) == 500
