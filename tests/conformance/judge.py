"""Tries cases and judges what was seen."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from registry import AS_DIRECT, Case
from world import InVain, Unavailable, World
from wrappers import Wrapper

HOLDS, FAILS, NOT_APPLICABLE = "holds", "fails", "n/a"


@dataclass(frozen=True)
class Trial:
    """What one wrapper did with one case in one mode."""

    seen: object = None
    trouble: str | None = None
    unavailable: str | None = None


@dataclass(frozen=True)
class Verdict:
    """The answer, and why."""

    answer: str
    why: str


Key = tuple[str, str, str]  # case, mode, wrapper


def attempt(case: Case, mode: str, wrapper: Wrapper) -> Trial:
    if wrapper.name in case.not_claimed:
        return Trial(unavailable=case.not_claimed[wrapper.name])
    world = World(wrapper, mode)
    try:
        return Trial(seen=case.observe(world))
    except InVain as vain:
        return Trial(trouble=str(vain))
    except Unavailable as why:
        return Trial(unavailable=str(why))
    except Exception as error:
        # A wrapper that went early can't be signalled any more, has written no number, ...:
        # whatever the case stumbles over is what it saw, and no right answer.
        return Trial(trouble=f"{type(error).__name__}: {error}")
    finally:
        world.close()


def attempt_all(cases: list[Case], wrappers: list[Wrapper], at_once: int) -> dict[Key, Trial]:
    work = [(case, mode, wrapper) for case in cases for mode in case.modes for wrapper in wrappers]
    with ThreadPoolExecutor(at_once) as pool:
        trials = pool.map(lambda what: attempt(*what), work)
        return {(case.id, mode, wrapper.name): trial for (case, mode, wrapper), trial in zip(work, trials)}


def verdict(case: Case, trial: Trial, direct: Trial) -> Verdict:
    if trial.unavailable:
        return Verdict(NOT_APPLICABLE, trial.unavailable)
    if case.wanted != AS_DIRECT:
        wanted = case.wanted
    elif direct.trouble or direct.unavailable:
        return Verdict(FAILS, f"the command alone: {direct.trouble or direct.unavailable}")
    else:
        wanted = direct.seen
    if trial.trouble:
        return Verdict(FAILS, f"expected {wanted!r}, {trial.trouble}")
    answer = HOLDS if trial.seen == wanted else FAILS
    return Verdict(answer, f"expected {wanted!r}, seen {trial.seen!r}")
