"""Forms of offices, each with a known truth: whatever is accepted, nothing false is stated."""

import numpy as np
import pytest
from random_layouts import Layout
from true_statements import Statements

from bayesrisk.tables.reading.reading import read
from bayesrisk.tables.reading.sheet import file_sheet

REGIONS, SEXES, AGES = (
    ("Nordia", "Sudland", "Ostmark"),
    ("Male", "Female"),
    ("0-17", "18-64", "65+"),
)
TRUTH = np.array([[[2, 6, 9], [4, 3, 8]], [[7, 5, 1], [6, 0, 11]], [[1, 12, 5], [9, 4, 3]]])
ALL = slice(None)
MARKS = (
    "/", ".", "–", "·", "#", "(D)", "S", ":c", "z", "~", "[z]", "…", "≤4", "k.A.", "n.d.",
    "Fewer than 5", "less than 5", "**", "^", "nd", "weniger als 5", "moins de 5", "menos de 5",
    "meno di 5", "minder dan 5", "1 bis 4", "1 à 4", "< 5", "-", "(s)", "conf", "SUPP", "<=4",
    "0-4", "1 - 4", "b", "M", "$", "•", "not shown", "Below 5", "5 or fewer",
)  # fmt: skip
#: How offices write thousands, with a total and headings of both sexes.
FORMATS = {
    "de": (".", "Insgesamt", "männlich", "weiblich"), "ch": ("'", "Totale", "Maschi", "Femmine"),
    "fr": ("\u202f", "Ensemble", "Hommes", "Femmes"), "es": (" ", "Total", "Hombres", "Mujeres"),
    "pt": ("\u00a0", "Total geral", "Homens", "Mulheres"),
    "nl": (",", "Totaal", "Mannen", "Vrouwen"),
}  # fmt: skip
GROUPS = {
    "nested": {"0-17": [0], "0-64": [0, 1], "18-64": [1], "18+": [1, 2], "65+": [2],
               "All ages": ALL},
    "german": {"unter 18": [0], "18 bis unter 65": [1], "65 und mehr": [2], "Insgesamt": ALL},
    "french": {"moins de 18 ans": [0], "18 à 64 ans": [1], "65 ans et plus": [2],
               "moins de 65 ans": [0, 1], "Ensemble": ALL},
    "spanish": {"Menores de 18": [0], "18 a 64 años": [1], "65 y más años": [2], "Total": ALL},
    "cumulative": {"At least one": [0, 1], "Fully": [1], "None": [2]},
    "of which": {"Persons": ALL, "of which children": [0], "of which pensioners": [2]},
    "subtotal": {"Children": [0], "Adults": [1], "Sub-total": [0, 1], "Pensioners": [2],
                 "All": ALL},
    "others": {"Children": [0], "Adults": [1], "Total": ALL},
    "nonsense": {"0-17": [0], "18-64": [1], "65+": [2], "Zzz": ALL},
}  # fmt: skip


def check(tmp_path, text, truth, who):
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8")
    names = ["region", "sex", "age"][: truth.ndim]
    sizes = truth.shape
    sets = [{x: frozenset(np.arange(n)[c].ravel().tolist()) for x, c in labels.items()}
            for labels, n in zip(who, sizes, strict=True)]  # fmt: skip
    layout = Layout(truth, names, sets, {}, "exact", {"t.csv": text})
    Statements(layout, read([file_sheet(file)], {})).check_all()


def labels(names, **more):
    return {name: [i] for i, name in enumerate(names)} | more


@pytest.mark.parametrize("mark", MARKS)
def test_marks_of_offices(mark, tmp_path):
    def shown(count):
        return mark if 1 <= count <= 4 else count

    rows = ["Region,Age,Male,Female,Total"]
    for r, region in enumerate(REGIONS):
        for age, a in [*zip(AGES, range(3), strict=True), ("Total", ALL)]:
            men, women = (int(TRUTH[r, s, a].sum()) for s in (0, 1))
            rows.append(f"{region},{age},{shown(men)},{shown(women)},{men + women}")
    who = (labels(REGIONS), labels(SEXES, Total=ALL), labels(AGES, Total=ALL))
    check(tmp_path, "\n".join(rows) + "\n", TRUTH, who)


@pytest.mark.parametrize("office", FORMATS)
@pytest.mark.parametrize("hidden", [False, True])
def test_thousands_of_offices(office, hidden, tmp_path):
    mark, total, male, female = FORMATS[office]
    truth = TRUTH.sum(axis=2) * 397

    def shown(count):
        return f"{count:,}".replace(",", mark)

    rows = [f"Land;{male};{female};{total};Anteil %"]
    for r, region in enumerate(REGIONS):
        both = ["x", "x"] if hidden and not r else [shown(n) for n in truth[r]]
        rows.append(";".join([region, *both, shown(truth[r].sum()), f"{50 + r},{r + 1}"]))
    ends = [*truth.sum(axis=0), truth.sum()]
    rows.append(";".join([total, *map(shown, ends), "100,0"]))
    who = (labels(REGIONS) | {total: ALL}, {male: [0], female: [1], total: ALL})
    check(tmp_path, "\n".join(rows) + "\n", truth, who)


@pytest.mark.parametrize("kind", GROUPS)
def test_groups_of_offices(kind, tmp_path):
    rows = ["Region;Group;Male;Female"]
    for r, region in enumerate(REGIONS):
        for group, codes in GROUPS[kind].items():
            counts = [int(TRUTH[r, s][codes].sum()) for s in (0, 1)]
            texts = [":c" if 1 <= n <= 4 else str(n) for n in counts]
            rows.append(";".join([region, group, *texts]))
    check(tmp_path, "\n".join(rows) + "\n", TRUTH, (labels(REGIONS), labels(SEXES), GROUPS[kind]))
