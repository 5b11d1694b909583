"""Encodings of text files: found by the letters of their texts."""

import pytest

from bayesrisk.exceptions import ArgumentError
from bayesrisk.tables.reading.reading import TableReading
from bayesrisk.tables.sheets.encodings import decoded

TEXTS = {
    "cp949": ["시도,계,남자,여자\n부산,5,3,2\n", "행정구역별,인구 (명)\n전국,9\n서울특별시,4\n"],
    "cp932": ["市区町村,総数,男,女\n札幌市,9,4,5\n", "年齢,人口\n０～４歳,5\n総数,9\n"],
    "gb18030": ["地区,合计,男,女\n北京市,9,4,5\n", "年龄,人口数\n总计,5\n"],
    "big5": ["區域別,總計,男,女\n臺北市,9,4,5\n", "年齡,人口數\n合計,5\n"],
    "cp1250": [
        "Województwo,Ogółem\nŁódzkie,5\nŚląskie,4\n", "Kraj,Muži\nStředočeský,5\nJihočeský,4\n",
        "Županija,Žene\nPožeško-slavonska,3\n",
    ],
    "iso8859_2": ["Województwo,Ogółem\nŁódzkie,5\nŚląskie,4\n", "Kraj,Ženy\nŽďár,5\nJihočeský,4\n"],
    "cp1251": ["Регион,Всего\nМосква,5\nТверь,4\n", "Област,Общо,Мъже\nСофия,5,3\n"],
    "cp1253": ["Περιφέρεια,Σύνολο\nΑττική,5\n"],
    "cp1257": ["Apskritis,Vyrai\nŠiaulių,4\nKlaipėdos,4\n"],
    "mac_roman": [
        "Région,Année\nÎle-de-France,5\n", "Land,Männer\nThüringen,5\n",
        "Place,n\nYnys Môn,4\nKing’s Lynn,4\n",
    ],
}  # fmt: skip
WESTERN = [
    "Région,Année\nÎle-de-France,5\nCôte d’Azur,4\n", "Land,Männer\nThüringen,5\n",
    "Área,Niños\nCórdoba,3\nNº,4\n", "Kommun,Män\nÅland,4\nÄlvdalen,5\n", "Ärzte,5\nÄmter,4\n",
    "Land,n\nCôte d’Ivoire,4\nÅland,3\nCuraçao,4\nSão Tomé,4\nÖsterreich,2\n",
    "Distrito,n\nÉvora,4\nSão João,4\n", "Age,n\n10–14,5\n15–19,4\n", "Price,£5,€6\n",
    "Land,n\nSjælland,4\nÞórshöfn,5\n", "°C,½,5²\n",
]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in TEXTS.items() for t in texts])
def test_another_encoding_is_found_and_said(name, text):
    assert decoded(text.encode(name)) == (text, name)
    assert decoded(text.encode("utf-8")) == (text, "")
    assert decoded(text.encode("utf-8-sig")) == (text, "")
    assert decoded(text.encode("utf-16")) == (text, "")


@pytest.mark.parametrize("text", WESTERN)
def test_texts_of_western_europe_stay_as_they_are(text):
    assert decoded(text.encode("cp1252")) == (text, "")


def test_bytes_of_no_language_are_those_of_before_and_that_is_said():
    raw = b"Area,n\nA\xd7\xf7B\xa6C,4\n\x80\x81Z,5\n"
    assert decoded(raw) == (raw.decode("cp1252", errors="replace"), "cp1252")


def test_an_encoding_that_is_named_is_taken(tmp_path):
    file = tmp_path / "t.csv"
    file.write_bytes("Área,n\nÉvora,4\nÍlhavo,5\n".encode("mac_roman"))
    assert "mac_roman" in TableReading.read(file).lines[0]
    reading = TableReading.read(file, encoding="cp1252")
    assert {*reading.cells.iloc[:, 3]} == {
        b"\x83vora".decode("cp1252"),
        b"\xealhavo".decode("cp1252"),
    }
    assert "cp1252" not in reading.lines[0]
    with pytest.raises(ArgumentError, match="encoding must be one that Python knows"):
        TableReading.read(file, encoding="latin-17")
    with pytest.raises(ArgumentError, match="encoding must be that of the file"):
        TableReading.read(file, encoding="ascii")
