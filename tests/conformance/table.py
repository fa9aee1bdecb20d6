"""The results as a table for people and as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass

from judge import FAILS, HOLDS, NOT_APPLICABLE, Verdict
from registry import Case

LEGEND = f"""{HOLDS}: the right answer, in a pipe and on a terminal where both are asked; {FAILS}: it isn't, or not in the \
mode named; {NOT_APPLICABLE}: not claimed."""


@dataclass(frozen=True)
class Row:
    """A case with its verdicts: wrapper, then mode."""

    case: Case
    verdicts: dict[str, dict[str, Verdict]]

    def cell(self, wrapper: str) -> str:
        answers = {mode: verdict.answer for mode, verdict in self.verdicts[wrapper].items()}
        failed = [mode for mode, answer in answers.items() if answer == FAILS]
        if failed and len(failed) < len(answers):
            return f"{FAILS} ({', '.join(failed)})"
        if failed:
            return FAILS
        return HOLDS if HOLDS in answers.values() else NOT_APPLICABLE

    def fails(self, wrapper: str) -> bool:
        return self.cell(wrapper).startswith(FAILS)


def counts(rows: list[Row], wrapper: str) -> dict[str, int]:
    cells = [row.cell(wrapper).split(" ")[0] for row in rows]
    return {answer: cells.count(answer) for answer in (HOLDS, FAILS, NOT_APPLICABLE)}


def markdown(rows: list[Row], wrappers: list[str]) -> str:
    """A table that reads as plain text too."""
    cells = [["case", "the right answer", *wrappers]]
    group = ""
    for row in rows:
        if row.case.group != group:
            group = row.case.group
            cells.append(["", f"**{group}**", *("" for _ in wrappers)])
        cells.append([row.case.id, row.case.asks, *(row.cell(wrapper) for wrapper in wrappers)])
    totals = [counts(rows, wrapper) for wrapper in wrappers]
    for answer in (HOLDS, FAILS, NOT_APPLICABLE):
        cells.append(["", f"**{answer}**", *(str(total[answer]) for total in totals)])
    return aligned(cells)


def summary(rows: list[Row], wrappers: list[str]) -> str:
    """How many cases of each group hold, of those that are claimed."""
    cells = [["", *wrappers]]
    for group in dict.fromkeys(row.case.group for row in rows):
        totals = [counts([row for row in rows if row.case.group == group], wrapper) for wrapper in wrappers]
        cells.append([group, *(f"{total[HOLDS]} of {total[HOLDS] + total[FAILS]}" for total in totals)])
    return aligned(cells)


def aligned(cells: list[list[str]]) -> str:
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def reasons(rows: list[Row], all_of_them: bool) -> str:
    """Expected and seen; of all, or of what doesn't hold."""
    return "\n".join(
        f"{row.case.id} {mode}, {wrapper}: {verdict.answer}: {verdict.why}"
        for row in rows
        for wrapper, verdicts in row.verdicts.items()
        for mode, verdict in verdicts.items()
        if all_of_them or verdict.answer != HOLDS
    )


def as_json(rows: list[Row], wrappers: list[str]) -> str:
    cases = [
        {
            "id": row.case.id,
            "group": row.case.group,
            "asks": row.case.asks,
            "wrappers": {
                wrapper: {mode: {"answer": v.answer, "why": v.why} for mode, v in verdicts.items()}
                for wrapper, verdicts in row.verdicts.items()
            },
        }
        for row in rows
    ]
    totals = {wrapper: counts(rows, wrapper) for wrapper in wrappers}
    return json.dumps({"schema": 1, "cases": cases, "counts": totals}, indent=1)
