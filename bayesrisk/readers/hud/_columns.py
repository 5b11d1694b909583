"""Columns of HUD's Picture of Subsidized Households, by vintage, and what each of them holds.

Names and codes of the county files of 2006 to 2023 and of the tract, project and other files of the
2010s; those of 2024 and 2025 from the list of another reader.  Case and order change by year.
"""

import re
from collections.abc import Iterable
from types import MappingProxyType

_TEXTS = (
    "quarter states entities program_label program sub_program name code cbsa msa place place2kx "
    "placefips state ha_size std_addr std_city std_zip5 stctytrt fedhse gsl sumlevel"
)
# Each column stands beside the one that it took the place of.
_COLUMNS = (
    "quarter gsl states entities sumlevel program_label program sub_program name code total_units "
    "total_occupied "
    "pct_occupied number_reported pct_reported months_since_report pct_movein people_per_unit "
    "people_total rent_per_month spending_per_month hh_income person_income pct_noincome pct_lt5k "
    "pct_5k_lt10k "
    "pct_10k_lt15k pct_15k_lt20k pct_20k_lt25k pct_ge20k pct_wage_major pct_wage_maj "
    "pct_welfare_major pct_welf_maj pct_other_major pct_other_maj "
    "pct_median pct_lt80_median pct_lt50_median pct_lt30_median pct_2adults pct_1adult "
    "pct_female_head "
    "pct_female_head_child pct_disabled_lt62 pct_disabled_ge62 pct_disabled_all pct_lt24_head "
    "pct_lt62_head "
    "pct_age25_50 pct_age51_61 pct_age62plus pct_age85plus pct_minority pct_black pct_black_nonhsp "
    "pct_native_american pct_native_american_nonhsp pct_asian pct_asian_pacific "
    "pct_asian_pacific_nonhsp pct_white_nothsp pct_black_hsp "
    "pct_wht_hsp pct_oth_hsp pct_hispanic pct_multi months_waiting months_from_movein "
    "pct_utility_allow ave_util_allow pct_bed1 pct_bed2 pct_bed3 pct_overhoused tpoverty tminority "
    "tpct_ownsfd pct_ownsfd fedhse cbsa msa place place2kx placefips latitude longitude state "
    "pha_total_units ha_size std_addr "
    "std_city std_zip5 stctytrt"
)
_TEXT_NAMES = frozenset(_TEXTS.split())
#: In the order of the published files.
COLUMNS = tuple(_COLUMNS.split())
_KNOWN = frozenset(COLUMNS)
_CHILDREN = re.compile(r"pct_chldrn[a-z0-9_]*(?<!_reason)(?<!_low)(?<!_high)")  # of 2024 on, by age
_ALIASES = {"pct_white_nonhsp": "pct_white_nothsp", "pct_wht_nonhsp": "pct_white_nothsp"}
#: What a rounded percentage is a share of, where it is known.  It was measured on the county files
#: of 2014 to 2023: among up to 60 reported households each of these shares is that of a whole
#: number.  That of ``pct_occupied`` and of the income bands is not, and the share of the disabled
#: is one of people.
_OF_HOUSEHOLDS = (
    "pct_wage_major pct_welfare_major pct_other_major pct_lt50_median pct_lt30_median pct_2adults "
    "pct_1adult pct_female_head pct_female_head_child pct_lt24_head pct_age25_50 pct_age51_61 "
    "pct_age62plus pct_age85plus pct_minority pct_black_nonhsp pct_native_american_nonhsp "
    "pct_asian_pacific_nonhsp pct_white_nothsp pct_black_hsp pct_wht_hsp pct_oth_hsp pct_hispanic "
    "pct_multi pct_bed1 pct_bed2 pct_bed3 pct_overhoused"
)
BASES = MappingProxyType(dict.fromkeys(_OF_HOUSEHOLDS.split(), "number_reported"))
# Only files of before 2014 have one of these, and each of them has one.
_OLD = (
    "msa placefips pct_asian pct_asian_pacific pct_black pct_native_american pct_other_maj "
    "pct_wage_maj pct_welf_maj"
)
_BEFORE_2014 = frozenset(_OLD.split())
_YEAR = re.compile(r"(?<!\d)20\d\d(?!\d)")
_SHARES_SINCE = "2014"
#: Amounts that are below 0 in some rows, and may be: rents where an allowance for utilities exceeds
#: what households pay; of spending HUD does not say why.
SIGNED = frozenset({"rent_per_month", "spending_per_month"})
#: Why a value is missing, by its code.
REASONS = MappingProxyType(
    {
        -1: "not available",
        -2: "missing, code -2",
        -4: "suppressed, fewer than 11",
        -5: "reporting too low",
    }
)
#: Digits of the code at a summary level.
CODE_WIDTHS = MappingProxyType({"tract": 11, "county": 5, "state": 2})


def usual_name(name: str) -> str:
    """Return the name that a column has here: its own, if it is not known."""
    lower = name.strip().lower().removeprefix("\ufeff")
    usual = _ALIASES.get(lower, lower)
    return usual if is_known(usual) else name.strip()


def is_known(name: str) -> bool:
    """Return whether a column is one that HUD is known to publish."""
    return name in _KNOWN or _CHILDREN.fullmatch(name) is not None


def is_derived(name: str) -> bool:
    """Return whether a name is one that the reader gives to what it adds to a known column."""
    lower = name.strip().lower()
    return any(
        lower.endswith(end) and is_known(lower.removesuffix(end)) and not is_known(lower)
        for end in ("_reason", "_low", "_high")
    )


def is_text(name: str) -> bool:
    """Return whether a column holds text: names, and codes whose zeros count, or is not known."""
    return name in _TEXT_NAMES or not is_known(name)


def bases(names: Iterable[str], file: str) -> dict[str, str]:
    """Return what the shares of a file are of, where it is known: nothing before 2014.

    The vintage is that of the columns, or of a year in the file's name.
    """
    here = set(names)
    year = _YEAR.search(file)
    if here & _BEFORE_2014 or (year is not None and year[0] < _SHARES_SINCE):
        return {}
    return {name: base for name, base in BASES.items() if name in here and base in here}
