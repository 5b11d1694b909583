"""What pages of reports are tested with: names that are none, and a report about them."""

HOSTILE = "<script>alert('1')</script>\x00\x1b[31m\" onload=\"x\u202e&{{ 7 * 7 }}"
OCCUPANCY = {
    "title": HOSTILE,
    "confidence": HOSTILE,
    "parts": 2,
    "rows": [
        {
            "protection": "none",
            "blocks": 10,
            "violating": 3,
            "putative": 2,
            "confirmed": 2,
            "infeasible": 1,
            **{
                f"{n}{end}": 0.5
                for n in ("precision", "recall")
                for end in ("", "_lower", "_upper")
            },
            "precision_baseline": 0.3,
            "recall_baseline": 0.2,
        }
    ],
    "words": {"none": HOSTILE},
    "source": HOSTILE,
    "settings_title": HOSTILE,
    "settings": HOSTILE,
}
