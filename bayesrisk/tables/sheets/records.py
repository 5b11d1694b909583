"""Words for records: people, events in their lives, and numbers."""

import re
import unicodedata
from itertools import filterfalse

from bayesrisk.tables.sheets.texts import TABLE


def _without_accents(text: str) -> str:
    """Return a text without accents, as in files of plain letters: *populacao*."""
    plain = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(filterfalse(unicodedata.combining, plain)))


# The beginnings of words for events in the lives of people.
_EVENTS = (
    r"admission|discharge|hospitali|episode|referral|attendance|appointment|"
    r"births?\b|deaths?\b|died|dead\b|death|deceased|suicide|marriage|matrimon|divor[cz]|"
    r"cases?\b|infection|diagnos|vaccinat|booster|doses?\b|recover(ed|ies)|victim|offen[cs]|offender|crime|incident|"
    r"arrest|homicid|femici[dc]|murder|casualt|injur|"
    r"misdrij|misdaad|brott\b|lovbrudd|rikokse|straftat|reat[oi]\b|przest[eę]p|преступл|ingress[io]\b|"
    r"fatalit|collision|accident|claim|tests?\b|rapes?\b|robber|burglar|theft|larcen|assault|arson"
)
# The same for people, and for numbers of them.
_WORDS = (
    rf"\b({_EVENTS}|"
    r"persons?\b|people|population|pop\b|individual|resident|inhabitant|citizen|adult|child|"
    r"m[ae]n\b|wom[ae]n\b|m[äa]nner|frauen|males?\b|females?\b|boys?\b|girls?\b|patient|pupil|"
    r"student|learner|enrol|household|famil|dwelling|suspect|prisoner|inmate|convict|defendant|"
    r"applica|applicant|recipient|beneficiar|migra|immigra|emigra|refugee|asylum|"
    r"worker|employe|unemployed|jobs?\b|teacher|staff|nurse|doctor|veteran|vot(er|es?)\b|member|"
    r"participant|respondent|arrivals?\b|visitor|tourist|passenger|user|graduat|apprentice|counts?\b|cnt\b|"
    r"^n$|^no\.?$|^numbers?\b|number of|homeless|no\. of|headcount|freq|separation|caseload|"
    r"person(en|er|as|nes|e)\b|einwohner|bevölkerung|fälle|todesf|gestorbene|geburten|schüler|"
    r"studierende|haushalte|beschäftigte|arbeitslose|patient|anzahl|gäste|"
    r"habitant|décès|naissance|cas\b|élève|étudiant|ménage|effectif|nombre|emplois|salarié|"
    r"población|defuncion|muertes|fallecid|nacimiento|casos|alumn|estudiante|hogares|número|"
    r"víctimas|delitos|contagem|conteo|recuento|cantidad|quantidade|robos?\b|hurtos?\b|denuncias?\b|"
    r"matr[ií]cula|viajeros|trabajador|"
    r"pessoas|população|roubos?\b|furtos?\b|ocorr[eê]ncias?\b|óbitos|mortes|nascimentos|"
    r"domicílios|pacientes|popolazione|residenti|decessi|decedut|guarit|positivi\b|ricover|morti|nati\b|casi\b|alunni|studenti|"
    r"famiglie|numero|pazienti|bevolking|inwoner|overleden|geboorte|leerling|huishouden|aantal|"
    r"befolkning|folkmängd|folketal|døde|döda|fødte|födda|elev|studerande|hushåll|husholdning|"
    r"antall?\b|mannfjöldi|fjöldi|osob[ay]|osób|ludność|zgon|urodze|uczni|liczba|obyvatel|počet|"
    r"väestö|väkiluku|kuolleet|lukumäärä|oppila|henkilö|népesség|lakos|halál|nüfus|kişi|ölüm|"
    r"doğum|öğrenci|penduduk|jiwa\b|orang\b|siswa|kematian|kelahiran|населени|числ|человек|умерш|"
    r"родивш|осіб|"
    r"kinder|eheschl|straftaten|opfer|ausländer|lebendgeb|empfänger|versicherte|infizierte|genesene|"
    r"bénéficiaire|demandeurs|allocataires|détenus|apprentis|faits constatés|"
    r"afiliad[oa]s|parad[oa]s\b|nacid[oa]s|contratos|"
    r"habitantes|nascid[oa]s|alun[oa]s|trabalhador|utentes|desempregad|persones|població|"
    r"naixement|llars\b|biztanle|pertsona|ikasle|abitanti|iscritt[ie]|lavorator|stranieri|vittime|"
    r"sterfgeval|huwelijken|werklozen|slachtoffer|verdachte|asukkait|asukas|opiskelij|syntyne|"
    r"íbúa|fæddir|látnir|nemend|mieszkańc|bezrobotn|studen[ct]i|przypadk|zakaże|"
    r"obyvateľ|zomrel|zemřel|narozen|narode|žiak|žák|domácnost|nezamestnan|případ|prípad|"
    r"stanovni|prebival|oseb[ae]?\b|umrl|rođen|rojen|kućanstv|domaćinst|gospodinjst|učenc|učenik|"
    r"slučaj|populați|persoan|locuitor|decese|născuţ|născut|șomer|gospodări|cazuri|"
    r"gyventoj|mirusi|gimusi|asmen|mokini|iedzīvotāj|miruš|dzimuš|skolēn|rahvaarv|elanik|isiku|"
    r"surnu|sündin|õpila|leibkon|lakosság|születés|tanuló|háztartás|eset(ek)?\b|"
    r"πληθυσμ|ατομα|κατοικ|θανατ|γεννησ|μαθητ|νοικοκυρι|κρουσμα|"
    r"hanehalk|evlenme|boşanma|vaka|mağdur|pasien|murid|mahasiswa|kasus|rumah tangga|peserta|"
    r"pelajar|dân số|người|học sinh|poblogaeth|disgybl|genedigaeth|marwolaeth|daonra|"
    r"случа|родени|починал|смърт|смерт|учен[иц]|учащ|студент|домакинств|домогосподар|"
    r"население|населення|заболев|захворю|(хо|го)спитали|пациент|тестове|излекув|выздоров|зараж|मृत्यु|जनसंख्या|व्यक्ति|जन्म)|"
    r"人口|人数|人數|世帯|户数|戶數|死亡|出生|件数|件數|[総總总]数|人員|生徒|児童|患者|婚姻|離婚|结婚|結婚|"
    r"[学學]生|病例|者数|인구|세대|사망|출생|학생|환자|혼인|이혼|가구|교원|근로자|^명$|^人$|"
    r"ประชากร|ผู้ป่วย|นักเรียน|เสียชีวิต|سكان|السكان|نسمة|وفيات|مواليد|طلاب|طلبة|مرضى|حالات|"
    r"جمعیت|خانوار|אוכלוסי|תושבים|נפטרים|תלמידים|משקי בית|חולים"
)
_RECORDS = re.compile(_without_accents(_WORDS), re.IGNORECASE)
#: Money, whose units may stand beside counts of people.
_MONEY = re.compile(
    r"[£$€¥]|金[額额]|千[円元]|금액|천 ?원|"
    r"\b(amounts?|money|monetary|incomes?|earnings|wages?|salar(y|ies)|revenues?|turnover|spending|"
    r"expenditures?|costs?|prices?|dollars?|euros?|pounds|usd|eur|gbp|"
    r"(geld)?betr[aä]ge?n?|einkommen|eink[uü]nfte|ums[aä]tze?|l[oö]hne|ausgaben|"
    r"montants?|salaires?|depenses|recettes|importe?s?|montos?|rentas|gastos|pesos|dolares|"
    r"importi|reddit[io]|spese|montantes?|rendimentos?|receitas|despesas|reais|"
    r"bedrag(en)?|inkomens?|omzet|uitgaven|bel[oø]pp?|beløb|in[kd]+omst(er)?|inntekt(er)?|kron(or|er)|"
    r"kwot\w*|dochod\w*|zł|castk\w*|prijm\w*|kc|tulot|osszeg\w*|forint|tutar\w*|lira|"
    r"доход\w*|выручк\w*|рубл\w*|руб|грн|гривень)\b",
    re.IGNORECASE,
)
#: Headings of columns with the unit of a row.
UNITS = re.compile(
    r"units?( of measure(ment)?)?|uom|measure|(maß)?einheit|unité|enhet|enhed|unidades?|"
    r"unidad( de medida)?|unità( di misura)?|eenheid|jednost?ka|birim|satuan|"
    r"единица измерения|[単单單]位|단위"
)
#: Headings of numbers that count nobody.
_NO_COUNT = re.compile(
    r".*(((?<![\d ]) ?|\b(19|20)\d\d([-–/]\d{2,4})? )%|\b(perc(ent\w*)?|pct|[bd]?rates?|"
    r"ratings?|ratio|share|proportion|mean|median|purchasing power|"
    r"average (age|income|price|rent|wage|salary|earnings|score|size|length|cost|months?|days?)|"
    r"index|uptake|coverage|prevalence|percentile|per ?1[0 ,]*00\w*|"
    r"per (day|week|month|year|unit|person|household)|"
    r"lower ?b|upper ?b|(lower|upper)\W+(\d+ ?%\W+)?(ci|cl|confidence)|"
    r"confidence (limit|interval)s?|"
    r"expected (deaths|cases|counts?|numbers?|values?)|excess( deaths)?|"
    r"years? of (potential )?life( \w+)?|y?pyll|life expectancy|person[- ]years|"
    r"per capita|full[- ]time equivalents?|ftes?)\b).*|(.* )?p\d\d?(th)?|expected|"
    r"(.* )?(rank(ing)?|esperad[oa]s?|excesso)( \w+)?|"
    r"(.*\W)?(min|max)imum( (in|of|for|over|since|values?)\b.*)?|"
    r"(months|weeks|days|hours) (from|since|until|per)\b.*|"
    r"(\w+ ){0,2}(spending|expenditures?|revenues?|payroll|turnover)|"
    r".*(\b(per|je|pro|par|por|pr|na)\.? (1 )?|/ ?)(km|qkm|sq\b|square|ha\b|hekt|hect|kvadr|quadr|"
    r"vierk|mile|einw|kopf|habit|hab\b|inwon|invån|indbyg|innbyg|mieszk).*"
)
#: Words for numbers about people that are no counts.
_OTHER = re.compile(
    r"\b(mean|median|average|code|id|rank|index|score|per|(?<!\d )(days|hours))\b|"
    r"^(\w+ )?age$|\bage (of|at)\b"
)
#: Titles of numbers that need not all be counts.
_SEVERAL = re.compile(
    r":|\.$|%|[£$€]|\b(statistics|indicators?|profiles?|facts?|data|measures?|rates?|ratios?|shares?|"
    r"percent\w*|proportions?|costs?|income|spending|expenditures?|wages?|length|age|years)\b"
)
#: Before a title: *Table 3.1: *.
_NUMBER = re.compile(rf"\W*{TABLE}(?:[a-z]?\d[\w.]*|[a-z]\b)\W+", re.IGNORECASE)
#: Between words: DEATH_COUNT, newCases.
_JOINT = re.compile(r"_+|(?<=[a-z])(?=[A-Z])")
#: The word before the variables of a title: births by age of mother.
_BY = re.compile(r"\b(by|nach|par|por|volgens|efter|etter)\b", re.IGNORECASE)


def says_records(text: str) -> bool:
    """Return whether a text names people or events in their lives, by any variables."""
    text = _JOINT.sub(" ", text)
    counted = _BY.split(text, maxsplit=1)[0] or text
    return bool(_RECORDS.search(_without_accents(text))) and not _OTHER.search(counted.casefold())


def says_events(text: str) -> bool:
    """Return whether a text names counted events in the lives of people: *Number of deaths*."""
    return re.search(rf"\b({_EVENTS})", text, re.IGNORECASE) is not None and says_records(text)


def says_money(text: str) -> bool:
    """Return whether a text names money and no records: *Money amounts are in thousands*."""
    return _MONEY.search(_without_accents(text)) is not None and not says_records(text)


def says_no_count(head: str) -> bool:
    """Return whether a heading names shares, rates and other numbers that count nobody."""
    return _NO_COUNT.fullmatch(head) is not None


def titles_records(title: str) -> bool:
    """Return whether a title says that records are counted, by any variables."""
    title = title[number.end() :] if (number := _NUMBER.match(title)) else title
    several = _SEVERAL.search(title.casefold())
    return not several and says_records(_BY.split(title, maxsplit=1)[0])
