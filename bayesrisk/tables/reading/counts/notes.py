"""Notes of published tables: sentences on the making of counts and the meanings of marks."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from bayesrisk.exceptions import quote
from bayesrisk.tables.sheets.records import says_events, says_records
from bayesrisk.tables.sheets.sheet import Sheet
from bayesrisk.tables.sheets.texts import PATH, WHOLE, cut, key, number_range, span

_WORDS = {
    word: number
    for number, words in {
        0: "zero", 1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven",
        8: "eight", 9: "nine", 10: "ten", 11: "eleven", 12: "twelve", 15: "fifteen",
        16: "sixteen", 20: "twenty", 25: "twenty-five", 30: "thirty", 50: "fifty",
        100: "hundred", 1000: "thousand",
    }.items()
    for word in words.split()
}  # fmt: skip
_N = rf"(?:a )?(\d{{1,4}}|{'|'.join(_WORDS)})\b(?! ?%)"
_LIMITS: dict[str, Callable[..., tuple[int, int]]] = {
    rf"(?:greater|more|higher|larger) than (?:zero|0),? (?:but|and) "
    rf"(?:fewer|less|lower|smaller) than {_N}": lambda a: (1, a - 1),
    rf"{_N}, (?:\d, )*\d,? (?:or|and) {_N}": lambda a, b: (a, b),
    rf"(?:between |from )?{_N} ?(?:-|–|—|to|and|through|or) ?{_N}(?! ?(?:or|and) (?:more|over))":
        lambda a, b: (a, b),
    rf"(?:fewer|less|lower|smaller) than(?: or equal to {_N})": lambda a: (0, a),
    rf"(?:<=|≤|up to|at most|no more than) ?{_N}": lambda a: (0, a),
    rf"{_N} (?:or|and) (?:fewer|less|under|below)": lambda a: (0, a),
    rf"(?:(?:fewer|less|lower|smaller) than|below|under|<) ?{_N}": lambda a: (0, a - 1),
}  # fmt: skip
_YEARS = re.compile(r"\b(?:(?:19|20)(?=\d\d[-/]))?([1-9]\d)[-–/](?:(?:19|20)(?=\d\d\b))?(\d\d)\b")
#: The replacement of small counts that a sentence names before.
_REPLACED = re.compile(
    r"(?:replaced|shown|displayed|represented|published|reported|recoded|coded|set|changed|rounded|"
    rf"given) (?:up |down )?(?:as|by|with|to|at) (?:the )?(?:values? |numbers? )?['\"“‘]?{_N}"
)
_SMALL = re.compile(r"\b(small|low)\b")
_MOST = 200  # the largest small count that is withheld
_NUMBERS = [(re.compile(pattern), ends) for pattern, ends in _LIMITS.items()]
#: Words for counts withheld to protect people, and for missing counts.
_HIDDEN = re.compile(
    r"suppress|withh[eo]ld|not (be )?(shown|published|displayed|released|disclosed|reported)|"
    r"mask|redact|hidden|confidential|asterisk|disclos|privacy|small (cells?|numbers?|counts?)|"
    r"not available for (publi|release|dissem)|includ\w* in (the )?totals?"
)
_MISSING = re.compile(
    r"not (yet )?(available|applicable|stated|known|recorded|published)|missing|no data|n/?a\b"
)
_SHOWN = re.compile(
    r"\b(shown|displayed|denoted|indicated|marked|represented|replaced|flagged|appear|printed|"
    r"identified|given)\b"
)
_BLANK_WORDS = r"\b(?:blanks?|empty)\b"
#: Words before the meaning of a cell without a text.
_BLANK = re.compile(
    rf"^(?:an? )?{_BLANK_WORDS}(?: (?:cells?|fields?|entr(?:y|ies)))? ?"
    r"(?:=|:|-|represents?|indicates?|denotes?|means?|refers? to|stands? for|is|are)\s*"
)
#: Signs, with patterns for the signs and their names.
_SIGNS = {"*": r"\*|asterisks?", "-–—−": "[-–—−]|dash(?:es)?|hyphens?"}
_NONE = re.compile(
    r"(is |a |true |exact(ly)? |that |the |counts? |quantity |values? )*"
    r"(nil|zero|none|0|no (reported |known |recorded )?(cases|deaths|people|persons))"
)
#: Secondary suppression: other counts are withheld too, to protect small ones.
_SECOND = re.compile(
    r"secondary|complementary|consequential|(other|additional|further|next|second|larger)\b.{0,60}"
    r"(suppress|withh|mask|redact)|(calculat|deriv|deduc|subtract|work(ed|ing)? (it )?out)"
)
_RATES = re.compile(
    r"\b(rates?|percent(age)?s?|proportions?|ratios?|means?|medians?|averages?|cents?|dollars?|income)"
    r"\b|[£$€]"
)
_OTHER = re.compile(rf"{_RATES.pattern}|\b(estimates?|standard errors?|years? of age|aged)\b")
_ROUNDED = re.compile(
    rf"(?:rounded|rounding)\b[^.;]{{0,60}}?(?:nearest|multiples? of|base(?: of)?) (?:multiple of )?"
    rf"{_N}(?:(?: or|,) {_N})?"
)
_NEAREST = re.compile(r"^(?!.*(random|round(ed|ing) (up|down)\b)).*(nearest|closest)")
#: A range that begins at 0: alone, it says nothing of a 0 that stands in the table.
_FROM_0 = re.compile(r"\b(between|from) 0 (and|to)\b|\b0 ?([-–]|to|bis|à|tot) ?\d")
_MARGIN = re.compile(r"(.*[\W_])?(margins?[ _]of[ _]error|moe)([\W_].*)?", re.IGNORECASE)
_ESTIMATE = re.compile(
    r"(weighted )?estimates?|estimated (numbers?|counts?|totals?|frequency)\b.*|"
    r"(?!.*\bnot weighted)(.* )?\(?weighted\)?|"
    r"weighted (n|numbers?|counts?|totals?|frequency|cases|base)\b.*"
)
#: A number and its error, of one name: tenured_number, tenured_se.
_NUMBER = re.compile(r"(.+) (numbers?|counts?|estimates?|totals?)")
_ERROR = re.compile(r"(.+) (se|standard errors?)")
#: The confidence interval below the same heading as a number.
_INTERVAL = re.compile(
    r".*(±|\b(confidence|confiance|confianza|confiança|confidenza|vertrauensin|konfiden[sz]|"
    r"betrouwbaarheid)).*|(\d\d ?% ?)?(ci|ic)\b.*",
    re.IGNORECASE,
)
#: The lower or the upper end of an interval.
_END = re.compile(
    r".*\b(lower|upper|low|high)\W*(\d\d ?%)?\W*(bound|limit|ci|cl|end|estimate|conf)\w*\b.*|"
    r"[lu](ci|cl|b)|.*\bc[il]\W*(lower|upper|low|high)\b.*|.*\b(borne|l[íi]mite) (inf|sup)\w*\b.*|"
    r".*\b(unter|ober|onder|boven|nedre|øvre|övre)(e\w?|ste)?[- ]?gr[äæe]n[sz]e?n?\b.*"
)
_UNRELIABLE = re.compile(r"too unreliable to (be )?publish", re.IGNORECASE)
_SAMPLE = re.compile(
    r"\b(from|on|using) (a|the|an?) ((\d[\d.]* ?(%|per ?cent)|random|probability|stratified|"
    r"weighted|representative|small|large|survey) )*sample\b|"
    r"\bsampl(e|ing) (error|variab|fluctuat)|\bgrossed\b|(?<!un)(?<!un-)\bweighted\b|"
    r"\b(are|is|were|was|be|been) ((survey|sample|weighted|based|on|only|all) )*estimate[sd]\b|"
    r"\bestimated (numbers?|counts?|totals?)\b|"
    r"(?<!postcensal )\b(population|census) estimates\b|"
    r"\b(projections?|projected|estimaci[oó]n(es)?|proyecci[oó]n(es)?|hochgerechnet|hochrechnung|"
    r"stichprobe\w*|échantillon|sondage|stima|steekproef|amostra(l|gem)?|muestr(a|al|eo)|"
    r"campion(e|aria)|urvalsundersökning|utvalgsundersøkelse|otantatutkimus)\b"
)
_RATED = re.compile(r"\b(population|census) estimates\b")  # rates may refer to them, events do not
_NO_SAMPLE = re.compile(r"\b(not|no|never|without|free (of|from))( \w+){0,4} ?$")
#: A sentence on all counts, and words that limit it to some.
_EVERY = re.compile(
    r"(note\W+)?((all|the|these) )*(data|figures|numbers|counts|estimates|statistics|results|"
    r"values|totals)( (shown|presented|given|published|here|below|above|"
    r"in this (table|file|release)))* (are|have been|were)\b"
)
_SOME_COUNTS = re.compile(
    r"\b(where|which|marked|some|may|might|except|if|unless|until|before|prior|since|not)\b|\d{4}|[*†]"
)
#: Headings of columns that name the measure of a row.
_MEASURES = re.compile(
    r"(measure|indicator|statistic|metric|data series|kennzahl|merkmal|indicador|indicateur)s?"
    r"( (name|label|description))?"
)
_UNIT = re.compile(r"(.+), magnitude = \w+", re.IGNORECASE)
_SURVEY = re.compile(r"([A-Z]\d{5}[A-Z]?_\d{3})([EM])")
_MOST_TEXTS = 64  # of a column of notes
#: Reasons beside rounding for which shown numbers miss a total.
_REASONS = (
    r"unknown|missing|exclu|includ|omit|not stated|multiple|several|non-?response|other reason"
)
#: Guesses on totals, with words that deny that the shown numbers add up to them.
_UNADDED = {
    "separate": re.compile(
        r"\bmore than (one|once)\b|\bmultiple (responses?|answers?|choices?|reasons|categories|"
        r"selections)|\bcounted (once (for|in|under) each|in (each|every|several|multiple)|twice|"
        r"several times)|\bnot mutually exclusive|mehrfach(nenn|zähl|antw|ang)|réponses multiples|"
        r"plusieurs (fois|réponses|catégories|motifs)|(respuesta|resposta)s? m[uú]ltipl|"
        r"m[áa](s|is) de uma?\b|risposte multiple|più di un|meerdere antwoorden|meer dan één|"
        r"fl(era|ere) svar|複数回答|복수 ?응답|wielokrotn|więcej niż jed|birden fazla|több válasz|"
        r"\btotals?\b.{0,40}\b(exclud\w+|not include|without|omit)\b.{0,40}"
        r"(suppress|withheld|small|hidden|confidential|masked|redacted|below|less|fewer)|"
        r"\bnot (counted|included|contained) in (the |any )?(\w+ )?totals?\b|"
        rf"^(?!(?!.*({_REASONS})).*round).*\b(not|n't) (necessarily |always )?(add|sum)\b"
    ),
    "partial": re.compile(
        r"\btotals?( \w+)? includ\w* (?!.*(suppress|withheld|hidden|small|all))|"
        r"^(?!.*(suppress|withheld|hidden|small|mask|confiden)).*(includ|count)\w* in (the )?"
        r"(\w+ )?totals?\b|includ\w*\b.{0,60}(unknown|not (stated|known|specified|recorded|"
        r"reported|available|disclosed)|unspecified|undetermined|missing|non-?residents?)|"
        r"(einschl|inkl)\w*\.? .{0,60}(ohne angabe|unbekannt|divers)|inclusief.{0,60}onbekend|"
        r"y compris.{0,60}(non (déclar|précis|conn|renseign|répon)|inconnu|indétermin)|"
        r"inclu[iy]\w*.{0,60}(n[ãa]?o (informad|declarad|especificad|identificad)|ignorad|"
        r"desconocid|sin (informaci|dato))|compres\w+.{0,60}non (indicat|specificat|not)|"
        r"inkl\w*\.? .{0,60}(okän|uoplys|ukjen|uspes)|включая.{0,60}(неизвест|не указ)|"
        r"łącznie z.{0,60}nieustalon|(不詳|不明).{0,8}含|미상.{0,8}포함|bilinmeyen.{0,20}dahil"
    ),
}


#: A total that says it counts more than the labels beside it: *All (incl. not stated)*.
_MORE = re.compile(
    r"\b(incl(ud\w*|\b)|einschl|inkl|y compris|compres[oi]|inclu[iy]\w+|inclusief|łącznie)|"
    r"\+ ?(unknown|not )|включая|含|포함",
    re.IGNORECASE,
)


class Note(NamedTuple):
    """A sentence around a table, its row, and its sheet if that is another one."""

    row: int
    text: str
    tab: str = ""

    @property
    def quoted(self) -> str:
        """The sentence, quoted as evidence."""
        place = f" of sheet {self.tab!r}" * bool(self.tab)
        return f"row {self.row}{place} says {cut(self.text, 90)!r}"


def titles(sheet: Sheet) -> Iterator[str]:
    """Yield titles of a sheet, its headings, and the constant texts of its columns.

    Texts of a column with a heading for measures are also titles if all of them name records.
    """
    yield from (*sheet.captions, sheet.tab, *sheet.heads)
    columns = zip(*(row for _, row in sheet.rows), strict=True)
    for head, column in zip(sheet.heads, columns, strict=False):  # there may be no rows
        measures = _MEASURES.fullmatch(key(head))
        if len(texts := {*column}) == 1 or (measures and all(map(says_records, texts))):
            yield from texts


def stated_unit(sheet: Sheet) -> str:
    """Return the unit stated in a line below a table: $ for "$, Magnitude = Millions"."""
    matches = (_UNIT.fullmatch(text) for _, text, _ in sheet.left)
    return next((match[1] for match in matches if match), "")


def no_counts(unit: str) -> bool:
    """Return whether a unit is money or a rate, which count nobody."""
    return _RATES.search(unit.casefold()) is not None


def sheet_notes(sheet: Sheet) -> list[Note]:
    """Return the sentences above and below a table, in its note columns, and in its legend."""
    texts = [(row, text) for row, text, _ in sheet.left]
    for j, head in enumerate(sheet.heads):
        if "note" in key(head):
            first: dict[str, int] = {}
            for row, cells in sheet.rows:
                first.setdefault(cells[j], row)
            texts += [(row, text) for text, row in [*first.items()][:_MOST_TEXTS]]
    results = [Note(row, part) for row, text in texts for part in _sentences(text)]
    legend = [(row, part, tab) for tab, row, text in sheet.legend for part in _sentences(text)]
    return [*results, *(Note(*one) for one in legend)]


def _sentences(text: str) -> Iterator[str]:
    parts = re.split(r"(?<=[a-z0-9)*][.;])\s+|, (?=[^\w\s]{1,3} ?= )", text)
    yield from filter(None, map(str.strip, parts))


def without_years(text: str) -> str:
    """Return a text without school years, such as *18-19* in *Opened in 18-19*."""
    return _YEARS.sub(lambda m: "" if int(m[1]) + 1 == int(m[2]) else m[0], text)


def small_counts(text: str) -> tuple[int, int] | None:
    """Return the smallest and largest of the small counts that a sentence names."""
    text = without_years(text)
    for pattern, ends in _NUMBERS:
        for match in pattern.finditer(text):
            numbers = [_number(n) for n in match.groups() if n]
            low, high = ends(*numbers)
            if low < high <= _MOST or (low == high and 0 < high <= _MOST):
                return low, high
    return None


def rounding(notes: Sequence[Note]) -> tuple[str, int, Note] | None:
    """Return the way and the base of rounding in a sentence, and the sentence."""
    for note in notes:
        plain = note.text.casefold()
        if (match := _ROUNDED.search(plain)) and not _OTHER.search(plain):
            way = "nearest" if _NEAREST.search(plain) else "random"  # up, down or any way
            base, *larger = [_number(n) for n in match.groups() if n]
            return ("perturbed", max(larger) - 1, note) if larger else (way, base, note)
    return None


def bases(notes: Iterable[Note]) -> set[int]:
    """Return all bases of rounding in sentences: *nearest ten, and nearest hundred for all*."""
    every = [plain for note in notes if not _OTHER.search(plain := note.text.casefold())]
    return {_number(n) for plain in every for n in re.findall(rf"(?:nearest|closest) {_N}", plain)}


def _number(text: str) -> int:
    return _WORDS[text] if text in _WORDS else int(text)


def replaced(notes: Iterable[Note]) -> Iterator[tuple[str, str, Note]]:
    """Yield numbers that sentences give as replacing small counts, with settings and sentences."""
    for note in notes:
        plain = note.text.casefold()
        if match := _REPLACED.search(plain):
            number, before = _number(match[1]), plain[: match.start()]
            if ends := small_counts(before):
                yield str(number), span(min(ends[0], number), max(ends[1], number)), note
            elif _SMALL.search(before):
                yield str(number), "withheld", note
        elif (
            re.search(r"\b0\b", _FROM_0.sub("", plain))
            and (finding := _explained("0", note))
            and number_range(finding[0]) not in (None, (0, 0))
        ):
            yield "0", *finding


def marked(mark: str, notes: Sequence[Note], *, alone: bool) -> tuple[str, Note] | None:
    """Return the meaning of a mark as a setting, and the sentence that states it.

    With ``alone`` no other mark may stand for the small counts of a sentence.
    """
    finding = next((pair for note in notes if (pair := _explained(mark, note))), None)
    if finding and finding[0] != "withheld":
        return finding
    small = [
        (limits, note) for note in notes
        if _HIDDEN.search(plain := note.text.casefold()) and not _OTHER.search(plain)
        and (limits := small_counts(plain))
    ]  # fmt: skip
    second = any(_SECOND.search(note.text.casefold()) for note in notes)
    if len({limits for limits, _ in small}) == 1 and not second and (finding or alone):
        return span(*small[0][0]), small[0][1]
    return finding


def _explained(mark: str, note: Note) -> tuple[str, Note] | None:
    """Return the setting of a mark that a sentence explains, and the sentence."""
    plain, core = note.text.casefold(), mark.strip("[]() ").casefold()
    if not mark:
        meaning = _BLANK.sub("", plain) if re.search(_BLANK_WORDS, plain) else ""
        return _meaning(meaning, note)
    if not core:
        return None
    quotes = r"[\s'\"‘’“”\[\]()]*"
    name = next((words for signs, words in _SIGNS.items() if core in signs), re.escape(core))
    first = re.match(
        rf"{quotes}(?:(?:symbols?|legend|key|notes?|the|an?)\b[: ]+)*{quotes}"
        rf"(?:{name})(?![\w*]|{re.escape(core[-1])})(?:{quotes}(?:{name})(?!\w))?{quotes}"
        r"(?:=|:|-|–|—|,|represents?|indicates?|denotes?|means?|refers? to|stands? for|is|are)?"
        r"\s*(.+)",
        plain,
    )
    display = _SHOWN.search(plain) and re.search(rf"(?<![\w*])(?:{name})(?![\w*])", plain)
    return _meaning(first[1] if first else plain if display else "", note)


def _meaning(meaning: str, note: Note) -> tuple[str, Note] | None:
    """Return the setting of a mark that words explain, and their sentence."""
    if not meaning or _OTHER.search(meaning):
        return None
    if limits := None if _SECOND.search(meaning) else small_counts(meaning):
        return span(*limits), note
    if _NONE.fullmatch(meaning.strip(" .;")):
        return "0", note
    if _HIDDEN.search(meaning):
        return "withheld", note
    return ("missing", note) if _MISSING.search(meaning) else None


def sampled(sheet: Sheet, counted: Iterable[str], *, every: bool = False) -> Note | None:
    """Return the first sentence that calls counts estimated, weighted or a sample.

    With ``every`` it must refer to all counts. Population estimates do not make counts of events
    estimates, unless a heading of those ``counted`` names the population.
    """
    events = any(map(says_events, titles(sheet)))
    events = events and not any("population" in head.casefold() for head in counted)
    for note in sheet_notes(sheet):
        plain = _RATED.sub("" if events else r"\g<0>", note.text.casefold())
        match = _SAMPLE.search(plain)
        if not match or _NO_SAMPLE.search(plain[: match.start()]) or _RATES.search(plain):
            continue
        if not every or (_EVERY.match(plain) and not _SOME_COUNTS.search(plain)):
            return note
    return None


def unadded(notes: Iterable[Note], names: Collection[str]) -> dict[str, tuple[str, Note]]:
    """Return guesses by variable on totals, where a sentence denies that labels add up to them.

    A sentence that names no variable may refer to each.
    """
    results = dict[str, tuple[str, Note]]()
    for note in notes:
        plain = note.text.casefold()
        if guess := next((g for g, words in _UNADDED.items() if words.search(plain)), None):
            named = [n for n in names if re.search(rf"\b{re.escape(key(n))}s?\b", plain)]
            results = dict.fromkeys(named or names, (guess, note)) | results
    return results


def counts_more(label: str) -> bool:
    """Return whether the label of a total says that it includes others."""
    return _MORE.search(label) is not None


def has_estimates(sheet: Sheet) -> bool:
    """Return whether headings or notes reveal survey estimates."""
    return bool(estimates(sheet))


def estimates(sheet: Sheet) -> str:
    """Return the words that reveal estimates: margins, a sentence or a heading; else empty."""
    codes = [m for h in sheet.heads if (m := _SURVEY.fullmatch(h))]
    pairs = {m[1] for m in codes if m[2] == "E"} & {m[1] for m in codes if m[2] == "M"}
    stems = {m[1] for h in map(key, sheet.heads) if (m := _ERROR.fullmatch(h))}
    pairs |= {m[1] for h in map(key, sheet.heads) if (m := _NUMBER.fullmatch(h))} & stems
    unreliable = any(_UNRELIABLE.search(text) for _, text, _ in sheet.left)
    pairs |= _beside_intervals(sheet)
    if pairs or unreliable or any(map(_MARGIN.fullmatch, sheet.heads)):
        return "with margins of error"
    if sheet.estimates:
        return sheet.estimates
    if note := sampled(sheet, sheet.heads, every=True):
        return f"({note.quoted})"
    parts = {head: re.split(rf"{PATH}|; |: ", key(head)) for head in sheet.heads}
    if any(texts[1:] and _ESTIMATE.fullmatch(texts[0]) for texts in parts.values()):
        return ""  # a whole tree may have that name
    estimate_heads = [h for h, t in parts.items() if any(map(_ESTIMATE.fullmatch, t[1:] or t))]
    return f"(heading {quote(estimate_heads[0])})" if estimate_heads else ""


def _beside_intervals(sheet: Sheet) -> set[str]:
    """Return headings of whole numbers that have confidence intervals at their right.

    If a rate stands between them, the interval may belong to the rate, unless both ends are whole
    numbers that enclose the count.
    """
    results, paths = set[str](), [head.split(PATH) for head in sheet.heads]
    for i, (*stem, last) in enumerate(paths):
        if stem and _INTERVAL.fullmatch(last):
            inside = [j for j in range(i) if paths[j][: len(stem)] == stem]
            plain = [j for j in inside if not _INTERVAL.fullmatch(paths[j][-1])]
            texts = [row[plain[-1]] for _, row in sheet.rows if row[plain[-1]]] if plain else []
            whole = sum(WHOLE.fullmatch(t) is not None for t in texts)
            if 0 < len(texts) <= 2 * whole and not _RATES.search(key(sheet.heads[plain[-1]])):
                results.add(PATH.join(stem))
    ends = [_END.fullmatch(key(path[-1])) is not None for path in paths]
    for i in [i for i in range(1, len(ends) - 1) if ends[i] and ends[i + 1]]:
        j = next((j for j in range(i, -1, -1) if not ends[j]), i)
        if _RATES.search(key(sheet.heads[j])):
            continue
        rows = [(row[i], row[j], row[i + 1]) for _, row in sheet.rows]
        every = [tuple(int(re.sub(r"\D", "", t)) for t in row) for row in rows
                 if all(map(WHOLE.fullmatch, row))]  # fmt: skip
        if len({*every}) > 1 and all(low <= n <= high for low, n, high in every):
            results.add(sheet.heads[j])
    return results
