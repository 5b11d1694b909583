"""Records told from published tables: rows that count people are no people."""

import pandas as pd

from bayesrisk.exceptions import DataError, quote
from bayesrisk.tables.sheets.texts import key, total_word

_MOST_LABELS = 2**14  # of a variable, among which words for totals are looked for


def check_records(frame: pd.DataFrame, source: object) -> None:
    """Refuse rows that are those of a published table: SDMX, or counts beside labels of totals.

    A label is that of a total where a word says so, labels tell all rows apart, and its counts are
    no less than the sum of the others beside the same labels.
    """
    names = {key(str(name)): name for name in frame.columns}
    reason = f"column {quote(names['obs value'])}" if "obs value" in names else ""
    text = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name].dtype)]
    labels = {name: frame[name].drop_duplicates() for name in text}
    words = {
        name: [label for label in map(str, texts) if total_word(label) == 2]
        for name, texts in labels.items() if len(texts) <= _MOST_LABELS
    }  # fmt: skip
    numbers = frame.apply(pd.to_numeric, errors="coerce") if any(words.values()) else frame[[]]
    counts = [name for name in numbers if numbers[name].notna().mean() > 0.5]
    variables = [name for name in frame if name not in counts]
    for name in variables if not reason and len(frame) > len(variables) + 1 else ():
        totals = frame[name].astype(str).isin(words.get(name, []))
        if not 0 < totals.sum() <= len(frame) / 2 or frame.duplicated(variables).any():
            continue
        groups = [frame[other] for other in variables if other != name] or (lambda _: 0)
        for column in counts:
            values = numbers[column].fillna(0)
            whole = values.where(totals, 0).groupby(groups, dropna=False).sum()
            parts = values.mask(totals, 0).groupby(groups, dropna=False).sum()
            if (whole >= parts).all() and (parts > 0).any() and (values >= 0).all():
                label = quote(str(frame[name][totals].iloc[0]))
                reason = f"counts in column {quote(column)}, and {label} in column {quote(name)}"
    if reason:
        file = source if str(source) != "records" else "FILE"
        raise DataError(
            f"{source}: must be records, one row for each person, got a published table: {reason}",
            advice=f"; `bayesrisk attack {file} -o OUT` says what it gives away",
        )
