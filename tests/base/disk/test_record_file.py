"""Files of records with what spreadsheets put into them: line breaks in values, and commas."""

import pytest

from bayesrisk._base.disk.record_file import RecordFile, record_frame, typed
from bayesrisk.exceptions import DataError


@pytest.mark.parametrize(
    "text",
    [
        'ward,sex,"diag\nnosis"\nA,m,flu\nB,f,cold\n',
        'ward,sex,ill\nA,m,"flu\nbad"\nB,f,cold\n',
    ],
)
def test_a_line_break_in_a_heading_or_a_label_is_refused_with_what_to_write(tmp_path, text):
    file = tmp_path / "people.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="closed on its line; write a space for a line break"):
        record_frame(RecordFile(file))
    with pytest.raises(DataError, match="closed on its line"):
        list(RecordFile(file).tables(10))


@pytest.mark.parametrize("other", ['"1,350"', "950", "-7", "12.5", ""])
def test_numbers_with_commas_are_refused_with_what_to_write(tmp_path, other):
    file = tmp_path / "people.csv"
    file.write_text(f'sex,pay\nm,"1,200"\nf,{other}\n', encoding="utf-8")
    with pytest.raises(DataError) as raised:
        typed(record_frame(RecordFile(file)))
    assert "'pay'" in str(raised.value)
    assert "'1,200': write 1200" in str(raised.value)


@pytest.mark.parametrize("other", ['"1,250"', "2", "-7.5", ""])
def test_decimal_commas_are_refused_with_what_to_write(tmp_path, other):
    """They became categories, one for each number."""
    file = tmp_path / "people.csv"
    file.write_text(f'sex,height\nm,"1,85"\nf,{other}\nm,"1,7"\n', encoding="utf-8")
    with pytest.raises(DataError) as raised:
        typed(record_frame(RecordFile(file)))
    assert "'height'" in str(raised.value)
    assert str(raised.value).endswith("'1,85': write 1.85")


@pytest.mark.parametrize("other", ["none", '"1,200 or more"', '"1,2,3"', '"01,5"'])
def test_text_that_has_commas_stays_text(tmp_path, other):
    file = tmp_path / "people.csv"
    file.write_text(f'sex,pay\nm,"1,200"\nf,{other}\n', encoding="utf-8")
    frame = typed(record_frame(RecordFile(file)))
    assert frame["pay"].tolist() == ["1,200", other.strip('"')]
