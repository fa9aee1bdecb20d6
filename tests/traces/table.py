"""The benchmark's figures as text."""

from fixed import RULES


def table(boards, total, seeds):
    """A row a family, the whole, and the fixed rules."""
    head = ("family", "traces", "in time", "recall", "median s", "p90 s", "hours", "false", "wrong", "cause", "note")
    rows = [head]
    for family, board in boards.items():
        rows.append((family, *cells(board.ours.figures())))
    rows.append(("all", *cells(total.ours.figures())))
    return f"{len(boards)} families, {seeds} seeds\n\n{columns(rows)}\n\n{summary(total)}"


def cells(f):
    return (f["traces"], of(f["in_time"], f["sick"]), number(f["recall"], 3), number(f["delay_median_s"], 0),
            number(f["delay_p90_s"], 0), number(f["healthy_hours"] or None, 0),
            str(f["false_alarms"] + f["alarms_before_onsets"]), of(f["wrong_names"], f["alarms_when_sick"]),
            of(*f["right_causes"]), of(*f["notes"]))


def summary(total):
    """gpuwatch beside the fixed rules."""
    head = ("", "recall", "median s", "p90 s", "false alarms", "per 1,000 h", "upper 95 %", "wrong")
    figures = total.figures()
    pairs = [("gpuwatch", figures["gpuwatch"], figures["stalls"])]
    pairs += [(f"{rule}: {what}", figures["rules"][rule]["all"], figures["rules"][rule]["stalls"])
              for rule, what in RULES.items()]
    parts = []
    for title, which in (("all findings", 1), ("stalls alone", 2)):
        rows = [(title, *head[1:])]
        for pair in pairs:
            f = pair[which]
            wrong = f"{100 * f['wrong_rate']:.1f} %" if pair[0] == "gpuwatch" else ""
            rows.append((pair[0], number(f["recall"], 3), number(f["delay_median_s"], 0),
                         number(f["delay_p90_s"], 0), f["false_alarms"], number(f["false_per_1000_h"], 2),
                         number(f["false_per_1000_h_upper"], 2), wrong))
        parts.append(columns(rows))
    ours = figures["gpuwatch"]
    words = (f"{ours['healthy_hours']:.0f} healthy hours; {ours['hours_before_onsets']:.0f} more before the onsets, "
             f"with {ours['alarms_before_onsets']} alarms. {ours['sooner_than_sure']} of {ours['in_time']} were said "
             "sooner than a careful human is sure.")
    if ours["right_numbers"][1]:
        words += " Hours to the limit: {} of {} within 25 %.".format(*ours["right_numbers"])
    return "\n\n".join([*parts, words])


def details(boards, most=6):
    """Which traces went wrong."""
    lines = []
    for family, board in boards.items():
        tally = board.ours
        for what, items in (("false alarm", tally.false), ("before the onset", tally.early), ("missed", tally.missed),
                            ("wrong name", tally.wrong), ("note not as it should be", tally.said)):
            for name, *rest in items[:most]:
                lines.append(f"{family} {what}: {name} " + " ".join(map(str, rest)))
            if len(items) > most:
                lines.append(f"{family} {what}: {len(items) - most} more")
    return "\n" + "\n".join(lines) if lines else ""


def columns(rows):
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        rest = (str(cell).rjust(width) for cell, width in zip(row[1:], widths[1:]))
        lines.append("  ".join([str(row[0]).ljust(widths[0]), *rest]).rstrip())
    return "\n".join(lines)


def number(value, digits):
    return "" if value is None else f"{value:.{digits}f}"


def of(part, whole):
    return f"{part}/{whole}" if whole else ""
