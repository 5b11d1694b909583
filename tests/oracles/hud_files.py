"""County files of HUD's Picture of Subsidized Households of each vintage, made up.

Columns as they were published; counts are drawn, and shares are rounded from them, so that what an
interval must hold is known.
"""

_ALL = """
    sumlevel program_label program sub_program name code total_units pct_occupied number_reported
    pct_reported months_since_report pct_movein people_per_unit people_total rent_per_month
    spending_per_month hh_income person_income pct_lt5k pct_5k_lt10k pct_10k_lt15k pct_15k_lt20k
    pct_ge20k pct_median pct_lt50_median pct_lt30_median pct_2adults pct_1adult pct_female_head
    pct_female_head_child pct_disabled_lt62 pct_disabled_ge62 pct_disabled_all pct_lt24_head
    pct_age25_50 pct_age51_61 pct_age62plus pct_age85plus pct_minority pct_hispanic
    months_waiting months_from_movein pct_utility_allow ave_util_allow pct_bed1 pct_bed2 pct_bed3
    pct_overhoused tpoverty tminority fedhse latitude longitude state
"""
_MAJ = "pct_other_maj pct_wage_maj pct_welf_maj"
_MAJOR = "pct_other_major pct_wage_major pct_welfare_major"
_RACE = """
    pct_asian_pacific_nonhsp pct_black_hsp pct_black_nonhsp pct_multi pct_native_american_nonhsp
    pct_oth_hsp pct_wht_hsp pct_white_nothsp
"""
_PLACE = "place entities gsl states cbsa tpct_ownsfd"
#: Columns beside those of all years, by a year of the vintage.
VINTAGES = {
    "2006": f"msa placefips pct_asian pct_black pct_native_american tpct_ownsfd {_MAJ}",
    "2008": f"cbsa placefips pct_asian pct_black pct_native_american pct_ownsfd {_MAJ}",
    "2011": f"{_PLACE} pct_asian_pacific pct_black pct_native_american {_MAJOR}",
    "2014": f"{_PLACE} {_MAJOR} {_RACE}",
    "2019": f"quarter {_PLACE} {_MAJOR} {_RACE}",
    "2024": f"quarter {_PLACE} {_MAJOR} {_RACE} total_occupied pct_lt80_median pct_noincome "
    "pct_20k_lt25k pct_chldrn_lt6 pct_chldrn_6_17 pct_lt62_head",
}
#: Shares of the reported households, from 2014 on.
_SHARES = f"""
    {_MAJOR} {_RACE} pct_lt50_median pct_lt30_median pct_2adults pct_1adult pct_female_head
    pct_female_head_child pct_lt24_head pct_age25_50 pct_age51_61 pct_age62plus pct_age85plus
    pct_minority pct_hispanic pct_bed1 pct_bed2 pct_bed3 pct_overhoused
"""
OF_HOUSEHOLDS = frozenset(_SHARES.split())
_TEXT = {
    "program_label": "Summary of All HUD Programs", "name": "Some County, AL",
    "states": "AL Alabama", "entities": "Some County", "state": "AL", "gsl": "50",
    "quarter": "2019-Q4", "cbsa": "33860", "msa": "5240", "place": "-4", "placefips": "-2",
    "fedhse": "-1", "program": "1", "sub_program": "NA",
}  # fmt: skip


def columns(vintage, rng=None):
    """Return the columns of a vintage, in any order, some in capitals."""
    names = f"{_ALL} {VINTAGES[vintage]}".split()
    if rng is None:
        return names
    return [n.upper() if rng.random() < 0.3 else n for n in rng.permutation(names)]


def county_file(file, vintage, rng, rows=30):
    """Write a file; return its header, its cells, and the count behind each share of it."""
    header = columns(vintage, rng)
    lines, truth = [], []
    for row in range(rows):
        n = int(rng.integers(11, 60))
        cells, counts = {}, {}
        for name in (h.lower() for h in header):
            if name in _TEXT:
                cells[name] = _TEXT[name]
            elif name == "code":
                cells[name] = "01XXX" if row == 3 and vintage >= "2014" else str(1001 + 2 * row)
            elif name == "sumlevel":
                cells[name] = "5"
            elif name == "number_reported":
                cells[name] = str(n)
            elif name in ("latitude", "longitude"):
                cells[name] = f"{rng.normal(-30, 20):.5f}"
            elif rng.random() < 0.1:
                cells[name] = str(rng.choice([-1, -2 if vintage < "2009" else -4, -4, -5]))
            elif name == "pct_occupied":
                cells[name] = str(rng.integers(80, 120))
            elif name == "rent_per_month" and vintage == "2011" and row % 7 == 0:
                cells[name] = "-13"
            elif name.startswith("pct_"):
                counts[name] = int(rng.integers(0, n + 1))
                share = 100 * counts[name] / n
                cells[name] = str(int(share + 0.5) if rng.random() < 0.5 else round(share))
            else:
                cells[name] = str(rng.integers(0, 900))
        lines.append([cells[h.lower()] for h in header])
        truth.append(counts)
    text = [",".join(f'"{c}"' if "," in c else c for c in line) for line in [header, *lines]]
    file.write_text("\n".join(text) + "\n", encoding="utf-8")
    return header, lines, truth


#: Headings of the query page by a year, and the names that the file of the year has in that order.
WORDS = {
    "2013": """
    Summary level; Program label; Program; Sub-program; Name; Code; Subsidized units available;
    % Occupied; # Reported; % Reported; Average months since report; % moved in past year;
    Number of people per unit; Number of people: total; Rent per month ($$); Spending per month
    ($$); Household income per year; Household income per year per person; % $1 - $4,999; %
    $5,000 - $9,999; % $10,000 - $14,999; % $15,000 - $19,999; % $20,000 or more; % Households
    where wages are major source of income; % Households where welfare is major source of
    income; % Households with other major sources of income; % of local median (Household
    income); % very low income; % extremely low income; % 2+ adults with children; % 1 adult
    with children; % female head; % female head with children; % with disability, among Head,
    Spouse, Co-head, aged 61 years or less; % with disability, among Head, Spouse, Co-head,
    aged 62 years or older; % with disability, among all persons in households; % 24 years or
    less (Head or spouse); % 25 to 49 years (Head or spouse); % 51 to 60 (Head or spouse); % 62
    or more (Head or spouse); % 85 or more (Head or spouse); % Minority; % Black; % Native
    American; % Asian or Pacific Islander; % Hispanic; Average months on waiting list; Average
    months since moved in; % with utility allowance; Average utility allowance $$; % 0 - 1
    bedrooms:; % 2 bedrooms; % 3+ bedrooms; % Overhoused; % in poverty (Census tract); %
    minority (Census tract); % single family owners (Census tract); Congressional District;
    CBSA; PLACE; Latitude; Longitude; State; PHA Total Units; HA category
    """,
    "2015": """
    Summary level; Program label; Program; Sub-program; Name; Code; Subsidized units available;
    % Occupied; # Reported; % Reported; Average months since report; % moved in past year;
    Number of people per unit; Number of people: total; Average Family Expenditure per month
    ($$); Average HUD Expenditure per month ($$); Household income per year; Household income
    per year per person; % $1 - $4,999; % $5,000 - $9,999; % $10,000 - $14,999; % $15,000 -
    $19,999; % $20,000 or more; % Households where wages are major source of income; %
    Households where welfare is major source of income; % Households with other major sources
    of income; % of local median (Household income); % very low income; % extremely low income;
    % 2+ adults with children; % 1 adult with children; % female head; % female head with
    children; % with disability, among Head, Spouse, Co-head, aged 61 years or less; % with
    disability, among Head, Spouse, Co-head, aged 62 years or older; % with disability, among
    all persons in households; % 24 years or less (Head or spouse); % 25 to 49 years (Head or
    spouse); % 51 to 60 (Head or spouse); % 62 or more (Head or spouse); % 85 or more (Head or
    spouse); % Minority; %Black Non-Hispanic; %Native American Non-Hispanic; %Asian or Pacific
    Islander Non-Hispanic; %White Non-Hispanic;  %Black Hispanic; %White Hispanic; %Other
    Hispanic; % Hispanic; % Multiple Race; Average months on waiting list; Average months since
    moved in; % with utility allowance; Average utility allowance $$; % 0 - 1 bedrooms:; % 2
    bedrooms; % 3+ bedrooms; % Overhoused; % in poverty (Census tract); % minority (Census
    tract); % single family owners (Census tract); Congressional District; CBSA; PLACE;
    Latitude; Longitude; State; PHA Total Units; HA category
    """,
}
_NAMES = {
    "2013": """
    sumlevel program_label program sub_program name code total_units pct_occupied number_reported
    pct_reported months_since_report pct_movein people_per_unit people_total rent_per_month
    spending_per_month hh_income person_income pct_lt5k pct_5k_lt10k pct_10k_lt15k pct_15k_lt20k
    pct_ge20k pct_wage_major pct_welfare_major pct_other_major pct_median pct_lt50_median
    pct_lt30_median pct_2adults pct_1adult pct_female_head pct_female_head_child pct_disabled_lt62
    pct_disabled_ge62 pct_disabled_all pct_lt24_head pct_age25_50 pct_age51_61 pct_age62plus
    pct_age85plus pct_minority pct_black pct_native_american pct_asian_pacific pct_hispanic
    months_waiting months_from_movein pct_utility_allow ave_util_allow pct_bed1 pct_bed2 pct_bed3
    pct_overhoused tpoverty tminority tpct_ownsfd fedhse cbsa place latitude longitude state
    pha_total_units ha_size
    """,
}
_NAMES["2015"] = _NAMES["2013"].replace(
    "pct_black pct_native_american pct_asian_pacific pct_hispanic",
    "pct_black_nonhsp pct_native_american_nonhsp pct_asian_pacific_nonhsp pct_white_nothsp "
    "pct_black_hsp pct_wht_hsp pct_oth_hsp pct_hispanic pct_multi",
)


def query_columns(year):
    """Return the headings of the query page in turn, each with the name of the file of the year."""
    heads = [" ".join(head.split()) for head in WORDS[year].split(";")]
    return list(zip(heads, _NAMES[year].split(), strict=True))
