"""The list of cases: what is asked, how it is looked at, and what is the right answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from world import PIPE, TERMINAL, World

BOTH = (PIPE, TERMINAL)

# The right answer where nothing else is said: what the command does without a wrapper.
AS_DIRECT = "as direct"

Observe = Callable[[World], object]


@dataclass(frozen=True)
class Case:
    """One question. `observe` tries it and returns what was seen, to be compared."""

    id: str
    asks: str
    group: str
    modes: tuple[str, ...]
    observe: Observe
    wanted: object = AS_DIRECT
    not_claimed: dict[str, str] = field(default_factory=dict)


CASES: list[Case] = []


def cases_of(group: str) -> Callable[..., Callable[[Observe], Observe]]:
    """A decorator that adds a case to a group."""

    def case(
        id: str,
        asks: str,
        modes: tuple[str, ...] = (PIPE,),
        wanted: object = AS_DIRECT,
        not_claimed: dict[str, str] | None = None,
    ) -> Callable[[Observe], Observe]:
        def add(observe: Observe) -> Observe:
            CASES.append(Case(id, asks, group, modes, observe, wanted, not_claimed or {}))
            return observe

        return add

    return case
