"""A small bundle of the Open Knowledge Format."""

from __future__ import annotations

OLD = (
    "---\ntype: Metric\ntitle: Churn (old)\nstatus: deprecated\n---\n# Definition\n\nUse [churn](churn.md).\n"
)
NEW = """---
type: Metric
title: Churn
description: Share of customers that leave.
tags: [Growth, people]
verified: {by: human:ann, at: 2026-05-01T09:00:00Z}
sources:
  - {id: rules, resource: policies/rules.md, title: The rules, author: human:ann}
  - resource: https://Example.org/wiki/churn
  - resource: all queries of the project X
  - resource: gone.md
executor: {resource: /policies/rules.md}
attester: {resource: check.py}
---
# Definition

Counted each [month](/policies/rules.md).
"""
RULES = "---\ntype: Policy\ntitle: Rules\n---\n# Rules of counting\n\nText.\n"
BUNDLE = {
    "index.md": "# Content\n\n* [Metrics](metrics/)\n",
    "metrics/index.md": "# Metrics\n\n* [Churn](churn.md)\n",
    "metrics/churn.md": NEW,
    "metrics/churn-old.md": OLD,
    "policies/index.md": "# Policies\n\n* [Rules](rules.md)\n",
    "policies/rules.md": RULES,
    "log.md": "# Log\n\n## 2026-05-01\n\n* Began.\n",
}


def write(root, pages):
    for name, text in pages.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
