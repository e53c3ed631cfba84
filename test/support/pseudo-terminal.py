"""Runs a command in a pseudo-terminal: stdin is its keyboard, stdout its screen, and its exit code is ours.

COLUMNS_OF_TERMINAL says how wide it is.
"""
import fcntl
import os
import pty
import select
import struct
import sys
import termios

pid, terminal = pty.fork()
if pid == 0:
    columns = int(os.environ.get("COLUMNS_OF_TERMINAL", "100"))
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    os.execvp(sys.argv[1], sys.argv[1:])

sources = [terminal, 0]
while terminal in sources:
    for source in select.select(sources, [], [])[0]:
        try:
            data = os.read(source, 65536)
        except OSError:  # the last process has left the terminal
            data = b""
        if not data:
            sources.remove(source)
        elif source == terminal:
            os.write(1, data)
        else:
            os.write(terminal, data)

sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
