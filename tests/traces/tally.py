"""What findings on traces of known truth are worth: recall, delay, false alarms, wrong names.

Owns no file and starts nothing.
"""

import math
import statistics
from collections import namedtuple

from fixed import RULES

ALARMS = ("warning", "critical")
# `name` is None for a fixed rule's alarm, which says only that something is wrong.
Raised = namedtuple("Raised", "at name cause evidence", defaults=(None, None, None))


class Tally:
    """Counts over traces, which may be joined."""

    def __init__(self):
        self.traces = 0
        self.healthy_s = 0.0
        self.false = []  # (trace, time, name) on healthy traces
        self.before_s = 0.0  # the healthy part of sick traces,
        self.early = []  # and alarms in it
        self.sick = 0
        self.delays = []  # of those in time
        self.missed = []  # (trace, delay or None)
        self.sooner = 0  # than a careful human is sure
        self.right = 0  # alarms on sick traces,
        self.wrong = []  # of which these have a wrong name: (trace, time, name)
        self.causes = [0, 0]  # right ones, and all that were to be named
        self.numbers = [0, 0]  # likewise for numbers in the evidence
        self.notes = [0, 0]  # said as they should be, and all
        self.said = []  # (trace, times of the note) where they were not

    def add(self, other):
        for name, value in vars(other).items():
            mine = getattr(self, name)
            if name in ("causes", "numbers", "notes"):
                setattr(self, name, [a + b for a, b in zip(mine, value)])
            else:
                setattr(self, name, mine + value)

    def trace(self, name, truth, alarms, notes=None):
        """One trace's alarms; `notes` (all that was said) only where notes are asked for."""
        self.traces += 1
        if truth["expect"] is None:
            self.healthy_s += truth["seconds"]
            self.false += [(name, r.at, r.name) for r in alarms]
        else:
            self.sick_trace(name, truth, alarms)
        if notes is not None and truth.get("note"):
            self.note(name, truth, [r.at for r in notes if r.name == truth["note"]])

    def sick_trace(self, name, truth, alarms):
        onset, expected = truth["onset"], [*truth["expect"], None]
        self.sick += 1
        self.before_s += onset
        hits = [r for r in alarms if r.at >= onset and r.name in expected]
        if hits and hits[0].at - onset <= truth["deadline"]:
            self.delays.append(hits[0].at - onset)
            self.sooner += hits[0].at - onset < truth["sure"]
            self.evidence(truth, hits[0])
        else:
            self.missed.append((name, hits[0].at - onset if hits else None))
        for r in alarms:
            if r.at < onset:
                self.early.append((name, r.at, r.name))
            elif r.name in expected or r.name in truth["also"]:
                self.right += 1
            else:
                self.wrong.append((name, r.at, r.name))

    def evidence(self, truth, hit):
        if hit.name is None:
            return
        if truth["cause"]:
            self.causes[0] += hit.cause == truth["cause"]
            self.causes[1] += 1
        if "hours_to_limit" in truth:
            full, part = truth["hours_to_limit"]
            true = (full - hit.at) / 3600
            said = (hit.evidence or {}).get("hours_to_limit")
            self.numbers[0] += isinstance(said, (int, float)) and abs(said - true) <= part * true
            self.numbers[1] += 1

    def note(self, name, truth, times):
        since, within, most = truth["since"], truth["within"], truth["most"]
        good = bool(times)
        if within is not None:
            good = any(0 <= t - since <= within for t in times)
        if most is not None and len(times) > most:
            good = False
        self.notes[0] += good
        self.notes[1] += 1
        if not good:
            self.said.append((name, times[:4]))

    def figures(self):
        """The numbers as JSON."""
        delays, hours = sorted(self.delays), self.healthy_s / 3600
        alarms = self.right + len(self.wrong)
        return {
            "traces": self.traces,
            "sick": self.sick,
            "in_time": len(delays),
            "recall": len(delays) / self.sick if self.sick else None,
            "delay_median_s": statistics.median(delays) if delays else None,
            # By nearest rank.
            "delay_p90_s": delays[math.ceil(0.9 * len(delays)) - 1] if delays else None,
            "sooner_than_sure": self.sooner,
            "healthy_hours": hours,
            "false_alarms": len(self.false),
            "false_per_1000_h": per_1000(len(self.false), hours),
            "false_per_1000_h_upper": per_1000(poisson_upper(len(self.false)), hours),
            "hours_before_onsets": self.before_s / 3600,
            "alarms_before_onsets": len(self.early),
            "alarms_when_sick": alarms,
            "wrong_names": len(self.wrong),
            "wrong_rate": len(self.wrong) / alarms if alarms else 0.0,
            "right_causes": self.causes, "right_numbers": self.numbers, "notes": self.notes,
        }


def per_1000(n, hours):
    return 1000 * n / hours if hours else None


def poisson_upper(n, level=0.95):
    """The rate beyond which n or fewer events would be rarer than 1 - level."""
    low, high = 0.0, n + 20 * math.sqrt(n + 1) + 20
    for _ in range(100):
        middle = (low + high) / 2
        terms = (k * math.log(middle) - middle - math.lgamma(k + 1) for k in range(n + 1))
        total = sum(math.exp(term) for term in terms)
        low, high = (middle, high) if total > 1 - level else (low, middle)
    return high


def raised(findings):
    """What was raised: alarms that no other finding explains, and everything."""
    everything, alarms = [], []
    for f in findings:
        if f["state"] == "raised":
            one = Raised(f["elapsed_s"], f["name"], f["cause"], f["evidence"])
            everything.append(one)
            if f["severity"] in ALARMS and f["because"] is None:
                alarms.append(one)
    return alarms, everything


STALLS = ("stalled", "idle-holding")


class Board:
    """One family, or all of them: gpuwatch, and the fixed rules on the same traces."""

    def __init__(self):
        self.ours, self.stalls = Tally(), Tally()
        self.rules = {rule: (Tally(), Tally()) for rule in RULES}

    def add(self, other):
        self.ours.add(other.ours)
        self.stalls.add(other.stalls)
        for rule, pair in self.rules.items():
            for mine, theirs in zip(pair, other.rules[rule]):
                mine.add(theirs)

    def trace(self, name, truth, findings):
        alarms, everything = raised(findings)
        self.ours.trace(name, truth, alarms, everything)
        healthy = truth["expect"] is None
        stalls = healthy or any(n in STALLS for n in truth["expect"])
        if stalls:
            only = [r for r in alarms if r.name in STALLS] if healthy else alarms
            self.stalls.trace(name, truth, only)
        for rule, (every, stall) in self.rules.items():
            said = [Raised(at) for at in truth["fixed"][rule]]
            every.trace(name, truth, said)
            if stalls:
                stall.trace(name, truth, said)

    def figures(self):
        return {
            "gpuwatch": self.ours.figures(),
            "stalls": self.stalls.figures(),
            "rules": {rule: {"all": every.figures(), "stalls": stall.figures()}
                      for rule, (every, stall) in self.rules.items()},
        }
