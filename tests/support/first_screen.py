"""The first screen of an audit's report, read as text, and its numbers computed another way.

Everything is counted by plain pandas from the statements alone: an independent twin of what the
package says, for synthetic audits and for real ones.
"""

import html
import itertools
import math
import re

import numpy as np
import pandas as pd
from scipy.stats import t as student

from bayesrisk.experiments.audit.report import audit_files

KEYS = ["protection", "attack", "adversary"]
BEST = ("likelihood", "swap-aware", "working-error")
BELIEFS = ("prior", "without", "posterior")


# An audit that nobody made: beliefs are drawn, and as wide apart as their protections are.


def statements_of(gains, *, people=30, releases=6, spread=0.02, seed=1, adversaries=("linker",)):
    """Return statements about ``people`` who gain so much on average under each protection.

    A protection of which the name has no "noise" or "swap" in it is released once.
    """
    rng, parts = np.random.default_rng(seed), []
    without = rng.uniform(0.2, 0.5, people)
    own = rng.uniform(0.5, 1.5, people)
    own /= own.mean()
    for name, gain in gains.items():
        drawn = "noise" in name or "swap" in name
        for number, adversary in itertools.product(range(releases if drawn else 1), adversaries):
            less = without * (1.0 if adversary == "linker" else 0.8)
            after = less + gain * own * (1.0 if adversary == "linker" else 0.5)
            after = after + (rng.normal(0.0, spread) if drawn else 0.0)
            if not drawn:
                after[:3] = 1.0  # proved, of the third without the own record, too
                less = np.where(np.arange(people) == 2, 1.0, less)
            read = "swap-aware" if "swap" in name else "likelihood"
            for attack in (read, "as-true") if "swap" in name else (read,):
                for value, sign in (("true", True), ("false", False)):
                    share = lambda p, s=sign: p if s else 1.0 - p  # noqa: E731
                    parts.append(
                        pd.DataFrame(
                            {
                                "protection": name, "attack": attack, "adversary": adversary,
                                "release": number, "randomised": drawn,
                                "target": [str(i) for i in range(people)],
                                "statement": value, "prior": share(np.full(people, 0.3)),
                                "without": share(less), "posterior": share(after),
                                "without_error": 0.0, "posterior_error": 0.0, "correct": sign,
                                "status": "calculated",
                                "place": [str(i % 5) for i in range(people)],
                                "place_size": people // 5, "alike": 1, "nonmodal": False,
                            }
                        )
                    )  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def errors_of(sizes, *, withheld=None, releases=2):
    """Return errors of two tables under each protection."""
    hidden = withheld or {}
    return pd.DataFrame(
        [
            {
                "protection": name, "release": number, "level": "block", "table": table,
                "error": size * factor, "withheld": hidden.get(name, 0.0),
            }
            for name, size in sizes.items()
            for number in range(releases)
            for table, factor in (("one", 0.5), ("two", 1.5))
        ]
    )  # fmt: skip


# Measures from statements, one person at a time.


def people_of(statements):
    """Return a row for each belief: the three probabilities of the truth, and what is certain."""
    keys = [*KEYS, "release", "target"]
    frame = statements[~statements["status"].isin(["undecided", "unknown"])]
    true = frame[frame["correct"].astype(bool)].set_index(keys)
    found = true[["prior", "without", "posterior"]].add_prefix("truth_")
    found["place"] = true["place"]
    found["randomised"] = true["randomised"]
    # A belief is a proof by a prover, or by the law of the records without chance.
    law = (found.index.get_level_values("attack") == "likelihood") & (
        true["status"] == "calculated"
    )
    law &= ~found["randomised"].astype(bool)
    found["proof"] = law | (true["status"] == "proved")
    for name in ("without", "posterior"):
        sure = (true[name] >= 1.0 - 1e-12) & (true[f"{name}_error"] == 0.0)
        found[f"certain_{name}"] = sure
    wrong = frame[~frame["correct"].astype(bool)].set_index(keys)
    false = wrong.index[(wrong["posterior"] >= 1.0 - 1e-12) & (wrong["posterior_error"] == 0.0)]
    found["false"] = found.index.isin(false)
    return found.reset_index()


def beliefs_of(statements):
    """Return gains and who is doubled and proved, of the people who are always decided."""
    rows = people_of(statements)
    best = rows["attack"].isin(BEST)
    asked = rows[best].groupby(["adversary", "target"], as_index=False).size()
    whole = asked.groupby("adversary")["size"].transform("max")
    always = asked[asked["size"] == whole].drop(columns="size")
    rows = pd.concat([rows[best].merge(always), rows[~best]], ignore_index=True)
    rows["gain"] = rows["truth_posterior"] - rows["truth_without"]
    for name in BELIEFS:
        with np.errstate(divide="ignore"):  # of readers who hold the truth impossible
            rows[f"score_{name}"] = np.log(rows[f"truth_{name}"])
    rows["score"] = rows["score_posterior"]
    rows["proved"] = rows["certain_posterior"] & rows["proof"]
    rows["own"] = rows["proved"] & ~rows["certain_without"]
    for name, times in (("doubled", 2.0), ("tenfold", 10.0)):
        large = rows["truth_posterior"] >= times * rows["truth_without"] * (1.0 - 1e-12)
        rows[name] = large & (rows["truth_posterior"] > 0.0)
    return rows


def releases_of(statements, population=None, rows=None):
    """Return each release's mean gain and numbers of people, whose ``rows`` may be at hand."""
    rows = beliefs_of(statements) if rows is None else rows
    found = rows.groupby([*KEYS, "release"], sort=False).agg(
        randomised=("randomised", "first"), targets=("target", "nunique"),
        places=("place", "nunique"), gain=("gain", "mean"), score=("score", "mean"),
        score_prior=("score_prior", "mean"), score_without=("score_without", "mean"),
        doubled=("doubled", "sum"), tenfold=("tenfold", "sum"), proved=("proved", "sum"),
        proved_own=("own", "sum"), false=("false", "sum"), prior=("truth_prior", "mean"),
        without=("truth_without", "mean"), posterior=("truth_posterior", "mean"),
    )  # fmt: skip
    scale = 1.0 if population is None else population / found["targets"]
    for name in ("doubled", "tenfold", "proved", "proved_own", "false"):
        found[name] = found[name] * scale
    return found.reset_index()


def half_width(values):
    """Return the reach of a 95 % interval of a mean; 0 of what is released once."""
    if len(values) < 2:
        return 0.0
    return student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))


def reach_of(rows, name, population):
    """Return the reach of a 95 % interval of the mean of people, of releases, or of both.

    Where n of N people were asked about the variance of their means counts, too, but for n / N.
    """
    table = rows.assign(value=rows[name].astype(float)).pivot(
        index="target", columns="release", values="value"
    )
    (n, m), parts = table.shape, []
    if m > 1:
        parts.append((table.mean(axis=0).var(ddof=1) / m, m - 1))
    if population and n < population:
        parts.append((table.mean(axis=1).var(ddof=1) / n * (1.0 - n / population), n - 1))
    whole = sum(variance for variance, _ in parts)
    if not whole:
        return 0.0
    freedom = whole**2 / sum(variance**2 / k for variance, k in parts)
    return student.ppf(0.975, freedom) * math.sqrt(whole)


def measures_of(statements, population=None, rows=None):
    """Return measures of everybody, with the columns that a report reads."""
    people = beliefs_of(statements) if rows is None else rows
    lines, beliefs = [], dict(iter(people.groupby(KEYS, sort=False)))
    for key, rows in releases_of(statements, population, people).groupby(KEYS, sort=False):
        line = dict(zip(KEYS, key, strict=True)) | {
            "group": "everybody", "targets": rows["targets"].iloc[0],
            "people": population or rows["targets"].iloc[0], "left_out": 0, "unstated": 0.0,
            "places": rows["places"].iloc[0], "releases": len(rows),
            "randomised": rows["randomised"].iloc[0], "error_people": 0.01,
            "error_releases": half_width(rows["score"])
            / (student.ppf(0.975, len(rows) - 1) if len(rows) > 1 else 1.0),
            "error_chains": 0.0, "brier": 0.5, "gain": rows["gain"].mean(),
            "gain_lower": rows["gain"].mean() - 0.05, "gain_upper": rows["gain"].mean() + 0.05,
        }  # fmt: skip
        scores = {name: rows[f"score_{name}"].mean() for name in ("prior", "without")}
        scores["posterior"] = rows["score"].mean()
        for name, score in scores.items():
            reach = reach_of(beliefs[key], f"score_{name}", population)
            limits = [-score, -score - reach, -score + reach, -score - 0.1, -score + 0.1]
            ends_ = ("", "_lower", "_upper", "_like_lower", "_like_upper")
            limits = np.exp(np.maximum(limits, 0.0))
            line |= {f"answers_{name}{e}": v for e, v in zip(ends_, limits, strict=True)}
        for name, less in (
            ("others", scores["prior"] - scores["without"]),
            ("own", scores["without"] - scores["posterior"]),
        ):
            line |= {f"{name}_factor{e}": np.exp(less) for e in ("", "_lower", "_upper")}
        for name in ("doubled", "proved", "tenfold", "proved_own", "false"):
            mean = rows[name].mean()
            mine = beliefs[key].assign(proved_own=beliefs[key]["own"])
            reach = reach_of(mine, name, population) * line["people"]
            line |= {name: mean, f"{name}_lower": max(mean - reach, 0.0)}
            line[f"{name}_upper"] = mean + reach
        for name in BELIEFS:
            line |= {f"believed_{name}": rows[name].mean(), f"right_{name}": 0.5}
        lines.append(line | {"ratio_50": 1.1, "ratio_90": 1.5, "ratio_99": 3.0})
    return pd.DataFrame(lines)


def comparisons_of(statements, rows=None):
    """Return every two protections compared by their common releases, by Holm's rule."""
    found = releases_of(statements, rows=rows)
    found = found[found["attack"].isin(BEST)]
    lines = []
    for adversary, rows in found.groupby("adversary", sort=False):
        releases = {n: r.set_index("release") for n, r in rows.groupby("protection", sort=False)}
        pairs = []
        for one, other in itertools.combinations(releases, 2):
            pair = {"attack": "likelihood", "adversary": adversary, "protection": one,
                    "against": other, "explained": True, "needed_people": math.nan}  # fmt: skip
            for name in ("score", "doubled", "proved"):
                a, b = releases[one][name], releases[other][name]
                drawn = len(a) > 1 or len(b) > 1
                a = pd.Series(a.iloc[0], b.index) if len(a) == 1 else a
                b = pd.Series(b.iloc[0], a.index) if len(b) == 1 else b
                less = (a - b).dropna()
                mean, reach = less.mean(), half_width(less)
                error = np.std(less, ddof=1) / math.sqrt(len(less)) if len(less) > 1 else 0.0
                if drawn and name != "score" and len(less) > 1:  # one person in one release
                    error = max(error, 1.0 / len(less))
                    reach = student.ppf(0.975, len(less) - 1) * error
                # What does not vary says nothing of others.
                ends_ = [mean - reach, mean + reach] if error > 1e-12 else [math.nan] * 2
                p = 2.0 * student.sf(abs(mean) / error, len(less) - 1) if error > 1e-12 else 1.0
                values = [mean, *ends_]
                if name == "score":
                    values = [math.exp(-mean), math.exp(-ends_[1]), math.exp(-ends_[0])]
                    pair |= {"p": p, "score": mean, "releases": len(less)}
                    pair["scope"] = "this population" if drawn else "populations like it"
                names = ["factor", "lower", "upper"] if name == "score" else [
                    name, f"{name}_lower", f"{name}_upper"]  # fmt: skip
                pair |= dict(zip(names, values, strict=True))
            pair["targets"] = pair["people"] = rows["targets"].iloc[0]
            pairs.append(pair)
        worst = 0.0
        for rank, pair in enumerate(sorted(pairs, key=lambda pair: pair["p"])):
            worst = max(worst, min(1.0, (len(pairs) - rank) * pair["p"]))
            pair["p"] = worst
            told = "less" if pair["score"] < 0.0 else "more"
            pair["verdict"] = told if worst <= 0.05 else "cannot tell"
            drawn = pair["scope"] == "this population"
            pair["needed"] = 90.0 if drawn and worst > 0.05 and pair["score"] else math.nan
        lines += pairs
    names = ["attack", "adversary", "protection", "against", "factor", "lower", "upper", "p",
             "releases", "targets", "people", "scope", "verdict", "needed", "needed_people",
             "explained", *(f"{name}{end}" for name in ("doubled", "proved")
                            for end in ("", "_lower", "_upper"))]  # fmt: skip
    return pd.DataFrame(lines, columns=names)


def costs_of(errors):
    """Return the cost of each protection."""
    found = errors.groupby("protection", sort=False)[["error", "withheld"]].mean().reset_index()
    ends_ = {"error_lower": found["error"], "error_upper": found["error"]}
    return found.assign(**ends_, meaning="")


CONFIG = {
    "population": "0" * 64, "stated": ["race"], "methods": ["posterior"], "seed": 1,
    "adversaries": [
        {"name": "outsider", "known": [], "neighbours": 0.0},
        {"name": "linker", "known": ["sex", "age"], "neighbours": 0.0},
    ],
    "protections": [], "target_ratio": None, "quantile": None, "against": None, "version": "0",
    "releases": 6, "made_up": True,
}  # fmt: skip
CHECKS = pd.DataFrame(
    {
        "check": ["calibration", "ordering"], "protection": "none", "attack": "likelihood",
        "adversary": "linker", "against": ["truth", "without"], "compared": 9, "failed": [0, 2],
        "value": [0.01, -0.5], "lower": -1.0, "upper": 1.0, "bound": 0.0, "power": [0.97, math.nan],
        "verdict": ["inside", "reversed"],
    }
)  # fmt: skip


def frames_of(statements, errors, population=None):
    """Return the frames that a report is made of, computed here."""
    rows = beliefs_of(statements)
    return {
        "measures": measures_of(statements, population, rows),
        "comparisons": comparisons_of(statements, rows),
        "costs": costs_of(errors),
        "calibration": pd.DataFrame({"protection": ["none"], "posterior": [0.5]}),
        "targets": people_of(statements),
        "proofs": proofs_of(errors),
    }


def proofs_of(errors):
    """Return proofs of counts: the first protection's follow, nothing limits the others'."""
    names = errors["protection"].unique()
    first = np.arange(len(names)) == 0
    found = {"protection": names, "places": 3, "counts": 40, "limited": 40 * first,
             "coarsened": 40, "recovered": 7 * first, "empty": 2 * first, "small": 12,
             "small_recovered": first * 1, "at_least_one": 5 * first, "decided": 40, "people": 300,
             "width_stated": np.where(first, 2.5, np.inf), "width": np.where(first, 1.5, np.inf),
             "records": 11.0 * first}  # fmt: skip
    return pd.DataFrame(found)


def files_of(statements, errors, population=None, *, config=None, **frames):
    """Return the files of an audit that has these statements."""
    if not {"measures", "comparisons", "costs", "calibration", "targets"} <= frames.keys():
        frames = frames_of(statements, errors, population) | frames
    return audit_files(statements, errors, CONFIG | (config or {}), CHECKS, **frames)


# The first screen as a reader finds it.


def texts(page):
    """Return what a page says, without its marks."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", page))).strip()


def screens(page):
    """Return for each population its sentence, its lines and the rows of its table, as texts."""
    found = []
    for part in page.split('<p class="lead">')[1:]:
        head, _, rest = part.partition('<table class="cards">')
        lines = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", head))
        table = rest.partition("</table>")[0]
        heads = [texts(head) for head in re.findall(r"<th[^>]*>(.*?)</th>", table)]
        rows = [
            dict(zip(heads, map(texts, re.findall(r"<td[^>]*>(.*?)</td>", row)), strict=True))
            for row in re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2], re.DOTALL)
        ]
        prose = texts(head.partition('<div class="wide">')[0])
        lines = {texts(name): texts(text) for name, text in lines.items()}
        found.append({"lead": texts(head.partition("</p>")[0]), "lines": lines, "rows": rows,
                      "prose": prose})  # fmt: skip
    return found


def numbers(text):
    """Return the numbers of a text."""
    found = re.findall(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?", text)
    return [float(number.replace(",", "")) for number in found]


def check_screen(screen, statements, errors, population=None, *, wide=0.05, words=None):
    """Hold every number of a first screen against the statements and errors of one population.

    ``wide`` is the share of its length by which an interval may differ: chains have errors of
    their own.  ``words`` has what protections mean, where that is said.
    """
    every, beliefs = releases_of(statements, population), beliefs_of(statements)
    every = every[every["attack"].isin(BEST)]
    own = (every["score_without"] - every["score"]).groupby(
        [every["adversary"], every["protection"]]
    )
    adversary = own.mean().groupby("adversary").mean().idxmin()
    assert re.search(rf"to an? {re.escape(adversary)}\b", screen["prose"].lower())
    mine = every[every["adversary"] == adversary]
    cost = costs_of(errors).set_index("protection")
    names = [row["protection"].partition(" (")[0] for row in screen["rows"]]
    assert set(names) == set(mine["protection"])
    shown = [cost.loc[name, "error"] for name in names]
    assert shown == sorted(shown)
    for name, row in zip(names, screen["rows"], strict=True):
        rows = mine[mine["protection"] == name]
        cells = list(row.values())
        same = beliefs["protection"].eq(name) & beliefs["attack"].isin(BEST)
        some = beliefs[same & beliefs["adversary"].eq(adversary)]
        before = math.exp(-some["score_prior"].mean())
        assert abs(numbers(cells[1])[0] - before) <= 0.00501
        mean, reach = rows["score"].mean(), reach_of(some, "score", population)
        value, *pair = numbers(cells[2])
        assert abs(value - math.exp(-mean)) <= 0.00501
        if "exact" in cells[2]:
            assert reach == 0.0
        elif "too few" not in cells[2]:
            limits = [max(math.exp(-mean - reach), 1.0), math.exp(-mean + reach)]
            slack = 0.00501 + wide * (limits[1] - limits[0])
            np.testing.assert_allclose(pair, limits, atol=slack)
        for cell, measure in zip(cells[3:5], ("doubled", "proved"), strict=True):
            mean = rows[measure].mean()
            reach = reach_of(some, measure, population) * (population or some["target"].nunique())
            value, *pair = numbers(cell)
            assert close(value, mean)
            if "exact" in cell:
                assert reach == 0.0
            elif "in no release" in cell:
                assert mean == 0.0
            elif pair:
                limits = [max(mean - reach, 0.0), mean + reach]
                np.testing.assert_allclose(pair, limits, atol=0.501 + 2.0 * wide * reach)
        assert_cost(cells[5], cost.loc[name, "error"])
    releases, asked = mine.groupby("protection").size().max(), mine["targets"].iloc[0]
    wanted = [95, *([releases] if releases > 1 else [])]
    people = population or asked
    wanted += [*([asked] if asked < people else []), people]
    assert numbers(screen["lines"]["How sure"]) == wanted
    means = mine.groupby("protection")[["doubled", "proved", "score"]].mean()
    check_lead(screen["lead"], means, cost, people, words or {})
    another = numbers(re.sub(r" under .*", "", screen["lines"]["Another release"]))
    if another and "unknown" not in screen["lines"]["Another release"]:
        drawn = mine[mine["randomised"].astype(bool)]["protection"].unique()
        name = max(drawn, key=lambda n: cost.loc[n, "error"])
        rows = mine[mine["protection"] == name]["score"]
        reach = half_width(rows) * math.sqrt(len(rows) + 1.0)
        limits = [max(math.exp(-rows.mean() - reach), 1.0), math.exp(-rows.mean() + reach)]
        slack = 0.0051 + wide * (limits[1] - limits[0])
        np.testing.assert_allclose(another, limits, atol=slack)


_INTERVAL = r"(?: \((?:[\d,]+|fewer than 1) to [\d,]+\)| \(too few\)| \(in no release\))?"
_PEOPLE = (
    rf"(?:about )?(?P<people>nobody|none of the [\d,]+ asked|fewer than 1|[\d,]+){_INTERVAL}"
    r"(?:,? of (?P<all>[\d,]+) people(?:, of whom [\d,]+ were asked)?)?"
)
_CLAUSES = [
    (rf"<(?P<who>\d+)> doubles (?:the chance of being guessed right|it) for {_PEOPLE}", "doubled"),
    (rf"is doubled for {_PEOPLE}", "doubled"),
    (rf"<(?P<who>\d+)> lets (?:a true statement|it) be proved of {_PEOPLE}", "proved"),
    (rf"almost as many as <(?P<who>\d+)> \((?:about )?(?P<people>[\d,]+){_INTERVAL}\)", "again"),
    (r"(?P<cost>less than 0.01|[\d.,]+) under <(?P<who>\d+)>", "cost"),
]  # fmt: skip


def check_lead(lead, means, cost, people, words):
    """Hold each number of the sentence in front against that of the protection it is about."""
    names = sorted(means.index, key=lambda n: -len(words.get(n) or n))
    text = lead
    called = [words.get(name) or (f"“{name}”" if "," in name else name) for name in names]
    short = [re.sub(r" of [\d.]+ a count", "", words) for words in called]  # behind its price
    for number, form in [*enumerate(called), *enumerate(short)]:
        for start in (form[:1], form[:1].upper()):
            text = text.replace(start + form[1:], f"<{number}>")
    measure = "doubled" if "doubled" in text or "doubles" in text else "proved"
    for pattern, kind in _CLAUSES:
        for found in re.finditer(pattern, text):
            part = found.groupdict()
            name = names[int(part["who"])] if part.get("who") else means.index[0]
            if kind == "cost":
                assert_cost(part["cost"], cost.loc[name, "error"])
                continue
            mean = means.loc[name, measure if kind == "again" else kind]
            shown = {"nobody": 0.0, "none": 0.0, "fewer": 1.0}.get(part["people"].split()[0])
            shown = float(part["people"].replace(",", "")) if shown is None else shown
            assert mean < 0.5 if part["people"] == "nobody" else close(shown, mean)
            assert part.get("all") is None or int(part["all"].replace(",", "")) == people
        text = re.sub(pattern, "", text)
    answers = np.exp(-means["score"])
    for shown in re.findall(r"(?<![<\d.])\d+\.\d\d(?!\d)", text):
        assert np.abs(answers - float(shown)).min() <= 0.00501
    rest = re.sub(r"<\d+>|(?<![<\d.])\d+\.\d\d(?!\d)", "", text)
    assert not re.search(r"\d", rest), rest
    assert "would tell" not in lead


def assert_cost(shown, error):
    """Hold the error of a count against what is shown of it: two digits that count."""
    if error < 0.005:
        assert shown == ("less than 0.01" if error else "0")
    else:
        assert abs(numbers(shown)[0] - error) <= max(0.0501 * error, 1e-9)


def close(shown, value):
    """Return whether a number of people is as it is written: whole, and never 0 for some."""
    return shown == 1.0 if 0.0 < value < 0.5 else abs(shown - value) <= 0.501
