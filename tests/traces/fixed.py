"""The fixed rules that people use today, on the same seconds that the traces are made of.

A: use below 20 % for 10 min. B: no output for 30 min. C: A or B. D: no progress for five times
the longest gap so far. They see every second and every reading: no mask, no dropped sample.
"""

RULES = {
    "A": "use < 20 % for 10 min",
    "B": "no output for 30 min",
    "C": "A or B",
    "D": "5 x longest gap of progress",
}


class Fixed:
    """The rules over one run."""

    def __init__(self):
        self.low_since = self.printed = self.moved = None
        self.bytes = self.place = None
        self.longest = 0
        self.gaps = 0
        self.held = {"A": False, "B": False, "D": False}
        self.raised = {"A": [], "B": [], "D": []}

    def look(self, t, use, out_bytes, place):
        if use >= 20:
            self.low_since = None
        elif self.low_since is None:
            self.low_since = t
        self.say("A", t, self.low_since is not None and t - self.low_since >= 600)
        if self.bytes != out_bytes or self.printed is None:
            self.bytes, self.printed = out_bytes, t
        self.say("B", t, t - self.printed >= 1800)
        if place != self.place:
            if self.moved is not None:
                self.gaps += 1
                self.longest = max(self.longest, t - self.moved)
            self.place, self.moved = place, t
        # Three gaps: of one or two the longest says nothing yet.
        self.say("D", t, self.gaps >= 3 and t - self.moved > 5 * self.longest)

    def say(self, rule, t, holds):
        if holds and not self.held[rule]:
            self.raised[rule].append(t)
        self.held[rule] = holds

    def alarms(self):
        return {**self.raised, "C": sorted(self.raised["A"] + self.raised["B"])}
