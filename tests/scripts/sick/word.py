"""Words that a test says to a job: files in its working directory."""

import os
import time

_folder = os.getcwd()


def said(word):
    """Whether it was said. A failed test takes the folder away: then everything was."""
    return os.path.exists(word) or not os.path.isdir(_folder)


def wait(word):
    """Sleeps until it was said."""
    while not said(word):
        time.sleep(0.1)


def answer(word, text=""):
    """Says a word to the test, which never sees half of it."""
    with open(word + ".new", "w") as file:
        file.write(f"{text}\n")
    os.rename(word + ".new", word)
