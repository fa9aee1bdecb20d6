"""What comes out of a pipe or a terminal: collected on a thread, looked at by the case."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import termios
import threading


class Seen:
    """Bytes as they arrive."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.ended = False
        self.looked = 0
        self._stop = threading.Event()
        self._go = threading.Event()
        self._thread: threading.Thread | None = None

    @classmethod
    def follow(cls, descriptor: int, paused: bool = False) -> Seen:
        """Reads a stream to its end on a thread of its own."""
        seen = cls()
        if not paused:
            seen.resume()
        # A copy: the stream may be closed while the thread still waits for it.
        copy = os.dup(descriptor)
        seen._thread = threading.Thread(target=seen._read, args=(copy,), daemon=True)
        seen._thread.start()
        return seen

    def resume(self) -> None:
        self._go.set()

    def stop(self) -> None:
        """Reads no further, and lets go of the stream."""
        self._stop.set()
        self._go.set()
        if self._thread:
            self._thread.join()

    def find(self, text: bytes) -> bool:
        """Whether the text is there, after what was found before."""
        at = self.data.find(text, self.looked)
        if at >= 0:
            self.looked = at + len(text)
        return at >= 0

    def _read(self, descriptor: int) -> None:
        self._go.wait()
        while not self._stop.is_set():
            if not select.select([descriptor], [], [], 0.1)[0]:
                continue
            chunk = b""
            # A terminal that nobody holds open any more says its end by EIO. The kernel may look
            # for its last bytes just before they come, so the second counts.
            for _ in range(2):
                try:
                    chunk = os.read(descriptor, 65536)
                    break
                except OSError:
                    continue
            if not chunk:
                break
            self.data += chunk
        self.ended = True
        os.close(descriptor)


class Terminal:
    """A pseudo-terminal: the case is the person and the screen."""

    def __init__(self, rows: int = 24, columns: int = 80, paused: bool = False) -> None:
        self._person, self.slave = os.openpty()
        self.name = os.ttyname(self.slave)
        self.resize(rows, columns)
        self.seen = Seen.follow(self._person, paused)
        self._open = True

    def given(self) -> None:
        """A command has it now, and with that alone the end of output."""
        os.close(self.slave)

    def send(self, text: str) -> None:
        os.write(self._person, text.encode())

    def resize(self, rows: int, columns: int) -> None:
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._person, termios.TIOCSWINSZ, size)

    def settings(self) -> list[object]:
        """As `stty -g` would print them."""
        return termios.tcgetattr(self._person)

    def echoes(self) -> bool:
        return bool(termios.tcgetattr(self._person)[3] & termios.ECHO)

    def foreground(self) -> int:
        """The process group in front."""
        return os.tcgetpgrp(self._person)

    def close(self) -> None:
        """The window is closed."""
        if self._open:
            self._open = False
            self.seen.stop()
            os.close(self._person)
