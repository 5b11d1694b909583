"""Statuses: texts that behave as texts, wherever frames, arrays and files take them."""

import copy
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from bayesrisk.census.occupancy.detection import OCCUPANCY_STATUS
from bayesrisk.reconstruction import Status, reconstruct
from bayesrisk.tables import Records, Schema, Workload, tabulate


@pytest.mark.parametrize("status", Status)
def test_a_status_is_its_text(status):
    text = status.value
    assert status == text
    assert f"{status}" == text
    assert repr(status) == repr(text)
    assert json.dumps([status]) == json.dumps([text])
    assert np.array([status]).tolist() == [text]
    assert pa.array(pd.Series([status], dtype=object)).to_pylist() == [text]
    assert copy.deepcopy(status) is status
    assert hash(status) == hash(text)


def test_attacks_answer_in_these_words():
    people = pd.DataFrame(
        {"block": ["500010101001000"] * 2, "sex": [0, 1], "age": [7, 31], "race": 1, "hisp": 0}
    )
    records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    found = reconstruct(tabulate(records, Workload.named("sf1-block")), scope="block")
    assert all(isinstance(status, Status) for status in found.status)
    assert all(isinstance(status, Status) for status in OCCUPANCY_STATUS)
