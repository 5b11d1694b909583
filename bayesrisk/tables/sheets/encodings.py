"""The encoding of a text file that is not UTF-8, guessed from the letters of languages."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from bayesrisk.exceptions import ArgumentError, quote

_LINES = 2**12  # to look at
_LIKELY, _UNLIKELY = 0.95, 0.9  # shares of letters that belong to a language
_FEW = 2  # different characters of tables
_WEST = (
    "àâæçéèêëîïôœùûüÿ", "äöüßé", "áéíñóúüç", "àèéíïòóúüç", "áâãàçéêíóôõúü", "àèéìòùî",
    "åäöæøéü", "áðéíóúýþæö", "éëïóöüèçê", "âêîôûáëïöó",
)  # fmt: skip
_EAST = ("ąćęłńóśźż", "áäčďéěíĺľňóôŕřšťúůýž", "áéíóöőúüű", "čćđšž", "ăâîşţ")
#: Letters of languages by encoding; of two that fit equally, the first is used.
_LETTERS = {
    "cp1252": _WEST, "mac_roman": _WEST, "cp1250": _EAST, "iso8859_2": _EAST,
    "cp1257": ("ąčęėįšųūž", "āčēģīķļņšūž", "äöõüšž"), "cp1254": ("çğıiöşüâîûİ",),
    "cp1251": ("абвгдежзийклмнопрстуфхцчшщъыьэюяё", "абвгґдежзийклмнопрстуфхцчшщьюяєії",
               "абвгдђежзијклљмнњопрстћуфхцчџшѓќѕ"),
    "cp1253": ("αβγδεζηθικλμνξοπρστυφχψωςάέήίόύώϊϋΐΰ",),
}  # fmt: skip


class _Script(NamedTuple):
    """The first bytes of an encoding's common characters, and characters common in tables."""

    first: range
    common: str


_SCRIPTS = {
    "cp949": _Script(range(0xB0, 0xC9), "계남여자합시도인구연령전국명세군동수"),
    "cp932": _Script(range(0x82, 0x98), "総数合計男女年人口歳齢県市区町村世帯の"),
    "gb18030": _Script(range(0xB0, 0xD8), "合计总男女年人口地区岁龄省市县户数性别"),
    "big5": _Script(range(0xA4, 0xC7), "總合計男女年人口地區歲齡縣市鄉鎮戶數性別"),
}
_AROUND = re.compile(r"[’–—·-]")  # signs between letters
_SIGN = re.compile(r"[‘’“”„‚–—…·•°ºª¹²³¼½¾€£§«»‹›©®™×±µ†‡№¿¡\xa0]")
_OPENING = re.compile(r"[‘“„‚…•°€£§«‹©±†‡№¿¡\xa0]")
_WORD = re.compile(r"(?:[^\W\d_]|[^\x00-\x7f])+")


def decoded(raw: bytes, encoding: str = "") -> tuple[str, str]:
    """Return the text of a file, and its encoding if that is a guess.

    It is UTF-16 with a byte-order mark, else UTF-8, else Windows-1252. Another encoding is used if
    its letters fit one language and those of Windows-1252 do not.
    """
    if encoding:
        try:
            return raw.decode(encoding), ""
        except LookupError:
            rule = "must be one that Python knows, such as cp1252 or cp949"
            raise ArgumentError("encoding", rule, got=encoding) from None
        except UnicodeError as fault:
            raise ArgumentError(
                f"encoding must be that of the file, got {quote(encoding)}: {fault}"[:200]
            ) from None
    coding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return raw.decode(coding), ""
    except UnicodeError:
        pass
    lines = b"\n".join([line for line in raw.splitlines() if not line.isascii()][:_LINES])
    usual = _share(lines, "cp1252")
    if usual < _UNLIKELY:
        names = [*_SCRIPTS, *_LETTERS]
        for name in sorted(names, key=lambda name: -_share(lines, name)):
            try:
                if _share(lines, name) >= _LIKELY:
                    return raw.decode(name), name
            except UnicodeError:
                continue
    western = _letter_share(lines.decode("cp1252", errors="replace"), ["".join(_WEST)])
    return raw.decode("cp1252", errors="replace"), "cp1252" * (western < _UNLIKELY)


def _share(raw: bytes, name: str) -> float:
    """Return the share of non-ASCII characters that are usual in texts of an encoding."""
    try:
        text = raw.decode(name, errors="replace" if name == "cp1252" else "strict")
    except UnicodeError:
        return 0.0
    return _script_share(text, name) if name in _SCRIPTS else _letter_share(text, _LETTERS[name])


def _script_share(text: str, name: str) -> float:
    first, characters = _SCRIPTS[name]
    counts = Counter(char for char in text if not char.isascii())
    if sum(char in characters for char in counts) < _FEW:
        return 0.0
    usual = (
        number
        for char, number in counts.items()
        if char.encode(name)[0] in first
        or "\u3000" <= char < "\u3040"
        or "\uff00" <= char < "\uff60"
    )
    return sum(usual) / counts.total()


def _letter_share(text: str, languages: Iterable[str]) -> float:
    words = Counter(word for word in _WORD.findall(text) if not word.isascii())
    good, total = Counter[str](), 0
    for word, times in words.items():
        foreign = sum(not char.isascii() for char in word)
        latin = sum(map(str.isascii, word))
        total += times * foreign
        for before, char, after in zip(f" {word[:-1]}", word, f"{word[1:]} ", strict=True):
            if char.isascii() or (char.isupper() and before.islower()):
                continue
            alone = not after.isalpha() or (not before.isalpha() and _OPENING.fullmatch(char))
            if _AROUND.fullmatch(char) or (_SIGN.fullmatch(char) and alone):
                good.update(dict.fromkeys(languages, times))
            for letters in languages:
                mixed = latin > 0 if letters[0] in "аα" else foreign > 2 * latin + 1
                good[letters] += times * (
                    not mixed and (char in letters or char.lower() in letters)
                )
    return max(good.values(), default=0) / max(total, 1)
