"""Words of labels: those that say a total, in many languages, and those that may."""

import pytest

from bayesrisk.tables.sheets.texts import sex, total_word

SAID = (
    "Ambos sexos", "Ambos os sexos", "Les deux sexes", "Båda könen", "Begge kjønn", "합계", "總計",
    "Sum", "Suma", "Summa", "Súčet", "Всичко", "รวม", "Tổng số", "المجموع",
)  # fmt: skip
MAY = ("Hela riket", "Hele landet", "Koko maa", "全国", "Todas las edades", "Tutti", "Alle Alter")
OTHERS = (
    "Rike", "Sums", "Landet", "Halle", "Allenstein", "Tutor", "Toulouse", "全国大会", "Sexos",
)  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "strength"), [(SAID, 2), (MAY, 1), (OTHERS, 0)], ids=["said", "may", "others"]
)
def test_a_word_says_a_total_or_may_or_does_not(labels, strength):
    assert {label: total_word(label) for label in labels} == dict.fromkeys(labels, strength)


@pytest.mark.parametrize(
    ("label", "variable", "strength"),
    [("All boards", "Health board", 2), ("All health boards", "Health board", 2),
     ("All other boards", "Health board", 0), ("All causes", "Cause of death", 2),
     ("All deaths", "Cause of death", 2), ("All injuries", "Cause of death", 1)],
)  # fmt: skip
def test_all_with_the_name_of_a_variable_is_its_total(label, variable, strength):
    assert total_word(label, variable) == strength


@pytest.mark.parametrize(
    ("label", "meaning"),
    [("Män/Men", "male"), ("Frauen / Women", "female"), ("Men/Women", None), ("Men/Others", None)],
)
def test_a_sex_in_two_languages_is_one(label, meaning):
    assert sex(label) == meaning
    assert (total_word("Gesamt / Total"), total_word("Gesamt / Rest")) == (2, 0)
