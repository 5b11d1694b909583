"""Texts in published tables: counts, ranges, notes and marks; words for totals; age groups."""

import functools
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from bayesrisk.tables.likelihoods import UNBOUNDED

_MOST_SUMS = 40  # to show
# Thousands are separated by a comma, an apostrophe or a blank.
_NUMBER = r"(\d{1,3}(?:[,'’\u00a0\u2009\u202f ]\d{3})+|\d+)(?:\.0+)?"
WHOLE = re.compile(_NUMBER)
_MORE, _LESS = r"(?:more|over|above|older|plus)", r"(?:fewer|less|under|below|younger)"
_COUNTED = r"(?:(?:n|counts?|numbers?|enrol?lments?|totals?) ?)?"
_ENDS: dict[str, Callable[..., tuple[int, int]]] = {
    _NUMBER: lambda a: (a, a),
    rf"{_NUMBER} ?(?:[-–—~〜～_]|to) ?{_NUMBER}": lambda a, b: (a, b),
    rf"{_COUNTED}(?:<|under|below|{_LESS} than) ?{_NUMBER}": lambda a: (0, a - 1),
    rf"{_COUNTED}(?:<=|≤|up to|at most|no more than) ?{_NUMBER}": lambda a: (0, a),
    rf"(?:>|over|{_MORE} than) ?{_NUMBER}": lambda a: (a + 1, UNBOUNDED),
    rf"(?:>=|≥|at least) ?{_NUMBER}": lambda a: (a, UNBOUNDED),
    rf"{_NUMBER} ?(?:\+|plus|(?:and|or|&) {_MORE})": lambda a: (a, UNBOUNDED),
    rf"{_NUMBER} ?(?:and|or|&) {_LESS}": lambda a: (0, a),
}
_RANGES = [(re.compile(pattern, re.IGNORECASE), ends) for pattern, ends in _ENDS.items()]
# A note beside a count: 5(a), 3r, 6ª, 7¹, 12 [note 1], 12[1], 8 1), 8 a,b).
_RAISED = "ªº¹²³⁰⁴⁵⁶⁷⁸⁹"
_NOTED = re.compile(
    rf"{_NUMBER} ?(?:[(\[]((?:note )?[\w*†‡#^~]{{1,8}})[)\]]|\[([a-z][a-z ]{{7,24}})\]|"
    rf"([A-Za-z*†‡#^~{_RAISED}]{{1,3}})|((?<= )\w{{1,2}}(?:, ?\w{{1,2}})*|[a-z])\))",
    re.IGNORECASE,
)
#: After a number: 7 May, 1st.
_NO_NOTE = re.compile("jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|st|nd|rd|th", re.IGNORECASE)
_MARK = re.compile(
    r"[^\w\s]{0,4}[a-z]{0,2}[^\w\s]{0,2}|[(\[]\d{1,2}[)\]]|: [a-z]{1,2}|[a-z]\.[a-z]\.?|n/a|"
    r"\[?low\]?|nan|null|none|"
    r"#(?:n/a|div/0!|ref!|value!|null!|num!|name\?)|"
    r"missing|nil|masked|msk|conf\.?|unreliable|(?:\w+ ){0,2}(?:suppressed|withheld|redacted|"
    r"confidential)|(?:\w+ )?(?:not|un)(?: |-)?(?:available|applicable|shown|published|released|"
    r"reported|disclosed)|[<>≤≥]=? ?\d{1,3}(?:[.,]\d+)? ?%",
    re.IGNORECASE,
)
DECIMAL = re.compile(
    r"[-−]?\d[\d,'’\u00a0 ]*\.\d*[1-9]\d*|[-−]?\d+,(?:\d{1,2}|\d{4,})|[-−]?\d{1,3}(?:\.\d{3})+,\d+"
)
POINTS = re.compile(r"\d{1,3}(?:\.\d{3})+")
NEGATIVE = re.compile(r"[-−]\d+(?:\.\d+)?")
SHARE = re.compile(r"[-−]?\d+(?:[.,]\d+)? ?%")
#: The unit of counts in thousands, as a pattern.
THOUSANDS = (
    r"(?<![\w,.])(?:thousands|1?['’`]000(?:['’`]?s)?|(?:1[ ,]?)?000['’`]?s|tausend|tsd\.?|"
    r"milliers|miles de personas|migliaia|milhares|duizend(?:tallen|en)?|tusen(?:tals?)?|tusinder?|"
    r"ty[sś]\.|tysiącach|tis\.|tisících|тыс\.|тысячах|тис\.|тисячах|tuhansia|千人|천 ?명)(?!\w)"
)
#: *Number* in other languages.
NUMBER = r"anzahl|nombres?|effectifs?|n[uú]meros?|aantal|antall?|počet|liczba"
#: A label's own unit in a table in thousands: *Deaths (number)*.
OWN_UNIT = re.compile(rf"[(\[] ?(numbers?|no\.?|n|units?|{NUMBER}) ?[)\]]", re.IGNORECASE)
#: Marks for counts that do not exist, are unknown or are provisional.
NO_COUNT = re.compile(
    r"[-–—.…:]+|\W*(n/?a|n\.a\.?|nil|none|null|nan|missing|[zrpe]|"
    r"(\w+ )?not (applicable|available))\W*",
    re.IGNORECASE,
)
#: Labels of a selection from a total, which adds up to it only by chance.
SOME = re.compile(
    r"\W*(of (which|whom|these)|including|incl\.|thereof|darunter|dont|di cui|de los cuales|"
    r"dos quais|waarvan|herunder|därav|в том числе|из них|w tym)\b",
    re.IGNORECASE,
)
#: Labels of people of unknown age, sex or other characteristics.
UNKNOWN = re.compile(
    r"unknown|not (stated|known|reported|given)|missing|unbekannt|inconnu|onbekend|okän|desconocid|"
    r"ej uppgift|ohne angabe|non (déclaré|indicato)",
    re.IGNORECASE,
)
#: Labels of parts of a total, perhaps of all its parts.
PART = re.compile(rf"(?:{SOME.pattern}|\W*(davon|z toho|z tego|hiervan|heraf)\b)", re.IGNORECASE)
#: Words alone in a row before rows of parts.
_BEFORE_PARTS = re.compile(rf"{PART.pattern}[\W_]*", re.IGNORECASE)

#: The word before the number of a table in its title.
TABLE = r"(?:table|tabelle|tab\.|tableau|tabla|tabella|tabela|tabel|tabell) ?"
#: The label of rows without one.
BLANK = "(blank)"
#: The separator between levels of a tree of labels or headings.
PATH = "!!"
# Words for a total, in the languages of the statistical offices of Europe and the Commonwealth.
_WHOM = (
    r"(?:ages?|age ?groups?|age ?bands?|sex(?:es)?|genders?|persons?|people|population|pupils?|"
    r"students?|patients?|cases?|deaths?|births?|households?|residents?|categor(?:y|ies)|groups?|"
    r"areas?|regions?|count(?:y|ies)|districts?|states?|races?|ethnic(?:ities| groups?)|origins?|"
    r"types?|values?|places?|schools?|individuals|respondents|causes?|diagnos[ei]s)"
)
_TOTALS = re.compile(
    rf"(?:grand |sub)?totals?(?: of)?(?:[^\w ].*| ?[-–—:(\[,].*| (?:all )?{_WHOM})?|"
    r"_t|tot(?:al)?e?|overall|all|both(?: sexes| genders)?|\w{3,}wide|"
    r"insgesamt|gesamt|zusammen|sum(?:m[ae]|a)?|somma|součet|súčet|ensemble|totaal|totalt|"
    r"in totale|i alt|yhteensä|samtals|celkem|spolu|og[oó]łem|razem|összesen|toplam|ukupno|"
    r"skupaj|iš viso|kopā|kokku|общо|всичко|всего|всього|итого|σ[υύ]νολο|cyfanswm|"
    r"iomlán|guztira|jumlah|tổng(?: số)?|รวม|المجموع|סך הכל|所有|合计|合計|总计|總計|"
    r"総計|総数|總數|总数|計|[総总總]人口|人口[总總]数|男女計|합계|총계|계|전체|총인구수?|"
    r"ambos(?: os)? (?:sexos|géneros)|(?:les )?deux sexes|"
    r"entrambi i sessi|beide (?:geschlechter|geslachten)|båda könen|begge køn|begge kjønn|"
    r"molemmat sukupuolet",
    re.IGNORECASE,
)
_ALL = re.compile(rf"(?:all|both|total of all)(?: the)? {_WHOM}", re.IGNORECASE)
_PERHAPS = re.compile(
    r"(?:all|both)(?! other)(?: [\w-]+){1,2}|.* totals?|totals? .*|persons|people|everybody|"
    r"everyone|population|t|9+|tou(?:s|tes)|tod[oa]s(?: .+)?|tutt[ie]|"
    r"(?:all[ae]|samtliga)(?: \w+)?|hel[ae] (?:riket|landet)|riket|koko maa|cały kraj|"
    r"全国|全國|전국",
    re.IGNORECASE,
)
_SEXES = {
    "male": "m males men boys männlich maennlich männer maenner hommes masculin garçons hombres "
            "varones homens maschi uomini mannen män mænd menn miehet pojat mężczyźni muži "
            "muškarci moški férfi férfiak bărbați vyrai vīrieši erkek άνδρες мужчины чоловіки мъже "
            "laki-laki pria 男 男性 男子 남 남자 남성",
    "female": "f females women girls weiblich frauen femmes féminin filles mujeres mulheres "
              "femmine donne vrouwen kvinnor kvinder kvinner naiset tytöt kobiety ženy žene ženske "
              "nő nők femei moterys sievietes kadın γυναίκες женщины жінки жени perempuan wanita "
              "女 女性 女子 여 여자 여성",
}  # fmt: skip
_SYNONYMS = {word: sex for sex, words in _SEXES.items() for word in words.split()}
_SEX = {"m": "male", "males": "male", "f": "female", "females": "female"}
_AGE = re.compile(
    r"\b(years?|yrs?)( old| of age)?\b|\b(ages?|aged)\b|\by ?(?=\d|lt|ge)|"
    r"\b(jahr(en?)?|ans?|años?|ann[io]|anos?|jaar|år|tahun)\b|(?<=\d) ?[歳才岁세]"
)


@functools.lru_cache(maxsize=2**16)
def key(text: str) -> str:
    """Return the normalised spelling for comparing labels and headings."""
    plain = re.sub("[–—]", "-", text).replace("_", " ")
    plain = " ".join(plain.split()).rstrip(":").rstrip().casefold()
    return _SEX.get(plain, plain)


def sex(label: str) -> str | None:
    """Return ``male`` or ``female`` for a label of that sex, else None."""
    parts = [part.strip(" +") for part in key(label).split("/")]  # of several languages
    words = {_SYNONYMS.get(part, part) for part in parts}
    return words.pop() if len(words) == 1 and words < {"male", "female"} else None


@functools.lru_cache(maxsize=2**14)
def total_word(label: str, variable: str = "") -> int:
    """Return 2 for a word that means a total, 1 for one that may, and 0 for others.

    "All" with the variable's name, or its last word, is a total: "All schools" among schools. So is
    an age group from 0 on, which may include people of unknown age.
    """
    if label.isdecimal():
        return int(not label.strip("9"))
    plain = " ".join(label.replace("_", " ").split()).rstrip(":").casefold()
    plain = re.sub(r"(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff])", "", plain)  # set wide
    if label.strip().casefold() == "_t" or _TOTALS.fullmatch(plain) or _ALL.fullmatch(plain):
        return 2
    if interval(label) == (0, UNBOUNDED):
        return 2
    if "/" in plain and all(total_word(part.strip()) == 2 for part in plain.split("/")):
        return 2
    noun = plain.partition("all ")[2] if plain.startswith("all ") else ""
    names = {name := key(variable), name.rpartition(" ")[2]}  # health board, or board
    if noun and any(len(name) > 2 and noun.startswith(name[:-1]) for name in names):
        return 2
    return int(_PERHAPS.fullmatch(plain) is not None)


_BELOW = "weniger als|unter|moins de|menos de|menores de|meno di|minder dan|jonger dan|under"
_ABOVE = "mehr|älter|darüber|plus|más|mais|oltre|più|ouder|äldre|meer|over"
_UNDER = "bis unter|to under|à moins de|a menos de"
#: Words for ranges in other languages, with their replacements.
_WORDS: dict[str, Callable[[re.Match[str]], str]] = {
    rf"(\d) (?:{_UNDER}) (\d{{1,9}})\b.*": lambda m: f"{m[1]}-{int(m[2]) - 1}",
    rf"(?:{_BELOW}) (?=\d)": lambda _: "<",
    r"(?:mehr als|über|plus de|más de|mais de|più di|meer dan) (?=\d)": lambda _: ">",
    rf" ?(?:und|u\.|et|y|e|ou|en|och|og) (?:{_ABOVE})|(?<=\d) ?(?:以上|이상)": lambda _: "+",
    r"(\d{1,9}) ?(?:未満|未满|미만)": lambda m: f"<{m[1]}",
    r"(\d) (?:bis|à|a|tot|til|till) (?=\d)": lambda m: f"{m[1]}-",
}
_RANGE_WORDS = [(re.compile(pattern), words) for pattern, words in _WORDS.items()]


@functools.lru_cache(maxsize=2**16)
def number_range(text: str) -> tuple[int, int] | None:
    """Return the smallest and largest number that a text such as ``1-4`` or ``<5`` allows."""
    if len(text) > 80 or not any(map(str.isdigit, text)):
        return None
    if any(map(str.isalpha, text)):
        text = text.casefold()
        for pattern, words in _RANGE_WORDS:
            text = pattern.sub(words, text)
    for pattern, ends in _RANGES:
        if len(text) <= 80 and (match := pattern.fullmatch(text)):
            low, high = ends(*(int(re.sub(r"\D", "", part)) for part in match.groups()))
            return (low, high) if low <= high <= UNBOUNDED else None
    return None


@functools.lru_cache(maxsize=2**17)
def interval(label: str) -> tuple[int, int] | None:
    """Return the ages or amounts of a group such as ``Under 5 years``, ``Y_GE65``, ``AGE15T19``."""
    label = re.sub(r"(?<=\d)\.(?=\d{3}(?!\d))", "", label)  # thousands: 20.000 to 100.000
    label = SOME.sub("", label).strip(" :,")
    if match := re.fullmatch(r"(?:age)?(\d\d?)(?:t|_)(\d\d)", label.strip(), re.IGNORECASE):
        return (int(match[1]), int(match[2])) if int(match[1]) <= int(match[2]) else None
    text = " ".join(_AGE.sub("", key(label)).split())
    if re.fullmatch(r"((19|20)\d\d|0\d|1[0-2]) ?[-–/] ?(19|20)\d\d", text):  # years or months
        return None
    return number_range(re.sub(r"^ge ?(?=\d)", ">=", re.sub(r"^lt ?(?=\d)", "<", text)))


class Noted(NamedTuple):
    """A count and the note beside it."""

    number: str
    note: str


@functools.lru_cache(maxsize=2**16)
def noted(text: str) -> Noted | None:
    """Return a count and the note beside it, for a text such as ``5(a)`` or ``12 [note 1]``."""
    match = _NOTED.fullmatch(text)
    if not match or _NO_NOTE.fullmatch(match[4] or ""):
        return None
    return Noted(match[1], match[2] or match[3] or match[4] or match[5])


def is_year(text: str) -> bool:
    """Return whether a text is a year from 1800 to 2099."""
    return re.fullmatch(r"(18|19|20)\d\d", text) is not None


def two_scripts(text: str, other: str) -> bool:
    """Return whether two texts have letters, and exactly one of them has Latin letters."""
    latin = [re.search("[A-Za-z]", one) is not None for one in (text, other)]
    return latin[0] != latin[1] and all(any(map(str.isalpha, one)) for one in (text, other))


def plain_year(text: str) -> str:
    """Return the year of a text such as *2019.0*, and other texts unchanged."""
    return text[:4] if re.fullmatch(r"(18|19|20)\d\d\.0", text) else text


def is_date(text: str) -> bool:
    """Return whether a text is a day, a month or a year."""
    return (
        re.fullmatch(r"(19|20)\d\d([-/.]?\d\d?){0,2}|\d\d?[-/.]\d\d?[-/.]\d{4}", text) is not None
    )


@functools.lru_cache(maxsize=2**16)
def is_mark(text: str) -> bool:
    """Return whether a text is a mark that agencies write in place of a count."""
    return _MARK.fullmatch(text) is not None


def span(low: int, high: int) -> str:
    """Return the text of a group of ages or amounts."""
    return f"{low}+" if high >= UNBOUNDED - 1 else str(low) if low == high else f"{low}-{high}"


def begins_parts(text: str) -> bool:
    """Return whether a text only announces that rows of parts follow."""
    return _BEFORE_PARTS.fullmatch(text) is not None


def first_sums(texts: Iterable[str]) -> str:
    """Return the texts of the first sums joined together, and the number of further ones."""
    every = [*texts]
    more = len(every) - _MOST_SUMS
    return "".join(every[:_MOST_SUMS]) + f"; and {more} sums more" * (more > 0)


def cut(text: str, width: int = 40) -> str:
    """Return a text, shortened to ``width``."""
    return text if len(text) <= width else f"{text[:width]}…"


def listing(texts: Iterable[str], width: int = 40) -> str:
    """Return up to eight texts as a list, and the number of further ones."""
    parts = [cut(text, width) for text in texts]
    return ", ".join(parts[:8]) + (f" and {len(parts) - 8} more" if len(parts) > 8 else "")


@functools.lru_cache(maxsize=2**16)
def says_number(text: str) -> bool:
    """Return whether a text is a number, with or without a note, or a range."""
    text = text.strip()
    return bool(WHOLE.fullmatch(text) or POINTS.fullmatch(text) or DECIMAL.fullmatch(text)) or (
        any(map(str.isdigit, text)) and (noted(text) is not None or number_range(text) is not None)
    )
