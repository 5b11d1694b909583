"""Documents that carry their own digest: any bit that changes is noticed."""

import json

import pytest
from hypothesis import given, strategies as st

from bayesrisk._base import disk
from bayesrisk.exceptions import DataError

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
documents = st.dictionaries(st.sampled_from(["a", "b", "config", "files"]), values)


@given(documents, st.integers(0, 10**6), st.integers(0, 7))
def test_a_flipped_bit_is_noticed_or_harmless(document, at, bit):
    sealed = disk.sealed(document)
    assert disk.unsealed(json.loads(sealed)) == document
    damaged = bytearray(sealed)
    damaged[at % len(damaged)] ^= 1 << bit
    try:
        found = json.loads(bytes(damaged).decode())
        read = disk.unsealed(found)
    except ValueError:
        return
    assert read == document or not set(read) <= {"a", "b", "config", "files"}


def test_documents_written_by_hand(tmp_path):
    assert disk.unsealed({"a": 1}) == {"a": 1}
    with pytest.raises(ValueError, match="its seal does not fit"):
        disk.unsealed({"a": 1, "seal": "0" * 64})
    with pytest.raises(ValueError, match="must be an object, got list"):
        disk.unsealed([])
    (tmp_path / "deep").write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"deep: cannot be read as JSON: must be at most 64 deep"):
        disk.read_document(tmp_path / "deep")
    (tmp_path / "list").write_text("[]")
    with pytest.raises(DataError, match=r"list: must be an object, got list"):
        disk.read_document(tmp_path / "list")
