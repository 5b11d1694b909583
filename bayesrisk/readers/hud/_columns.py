"""Columns of HUD's Picture of Subsidized Households, and what kind of value each holds.

Names of the 2010s; case, order and some names change by year.  The codes of missing values are
those of its data dictionary.
"""

from types import MappingProxyType

__all__ = ["BASES", "COLUMNS", "REASONS", "TEXTS", "usual_name"]

_TEXTS = (
    "quarter states entities program_label program sub_program name code cbsa place2kx state "
    "ha_size std_addr std_city std_zip5 stctytrt fedhse gsl sumlevel"
)
_COLUMNS = (
    "quarter gsl states entities sumlevel program_label program sub_program name code total_units "
    "pct_occupied number_reported pct_reported months_since_report pct_movein people_per_unit "
    "people_total rent_per_month spending_per_month hh_income person_income pct_lt5k pct_5k_lt10k "
    "pct_10k_lt15k pct_15k_lt20k pct_ge20k pct_wage_major pct_welfare_major pct_other_major "
    "pct_median pct_lt50_median pct_lt30_median pct_2adults pct_1adult pct_female_head "
    "pct_female_head_child pct_disabled_lt62 pct_disabled_ge62 pct_disabled_all pct_lt24_head "
    "pct_age25_50 pct_age51_61 pct_age62plus pct_age85plus pct_minority pct_black_nonhsp "
    "pct_native_american_nonhsp pct_asian_pacific_nonhsp pct_white_nothsp pct_black_hsp "
    "pct_wht_hsp pct_oth_hsp pct_hispanic pct_multi months_waiting months_from_movein "
    "pct_utility_allow ave_util_allow pct_bed1 pct_bed2 pct_bed3 pct_overhoused tpoverty tminority "
    "tpct_ownsfd fedhse cbsa place2kx latitude longitude state pha_total_units ha_size std_addr "
    "std_city std_zip5 stctytrt"
)
#: Columns of text: names, and codes whose zeros count.
TEXTS = frozenset(_TEXTS.split())
#: In the order of the published files.
COLUMNS = tuple(_COLUMNS.split())
_ALIASES = {"pct_white_nonhsp": "pct_white_nothsp", "pct_wht_nonhsp": "pct_white_nothsp"}
_OF_UNITS = ("pct_occupied",)
# Shares of the reported households; the two of the disabled by age are shares of that age group.
_OF_HOUSEHOLDS = tuple(
    name
    for name in COLUMNS[COLUMNS.index("pct_lt5k") : COLUMNS.index("pct_overhoused") + 1]
    if name.startswith("pct_")
    and name not in ("pct_median", "pct_disabled_lt62", "pct_disabled_ge62", "pct_utility_allow")
)
#: What each rounded percentage is a share of.
BASES = MappingProxyType(
    dict.fromkeys(_OF_UNITS, "total_units") | dict.fromkeys(_OF_HOUSEHOLDS, "number_reported")
)
#: Why a value is missing, by its code.
REASONS = MappingProxyType(
    {-1: "not available", -4: "suppressed, fewer than 11", -5: "reporting too low"}
)
#: Digits of the code at a summary level.
CODE_WIDTHS = MappingProxyType({"tract": 11, "county": 5, "state": 2})


def usual_name(name: str) -> str:
    """Return the name that a column has here."""
    lower = name.strip().lower().removeprefix("\ufeff")
    return _ALIASES.get(lower, lower)
