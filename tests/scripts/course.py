"""What a training knows of its own course, for a test to hold against what was seen from outside."""

import json
import time


class Course:
    """Moments, as seconds since 1970: when training began, when each step was done, its end."""

    def __init__(self, path):
        self.path = path
        self.wall = time.time() - time.monotonic()
        self.steps = []

    def now(self):
        # One look at the wall clock: somebody may set it meanwhile.
        return self.wall + time.monotonic()

    def begin(self):
        self.began = self.now()

    def step(self):
        self.steps.append(self.now())

    def end(self):
        course = {"began": self.began, "steps": self.steps, "ended": self.now()}
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump(course, file)
            file.write("\n")
