"""Runs a command in a pseudo-terminal: stdin is its keyboard, stdout its screen, and its exit code is ours."""
import os
import pty
import select
import sys

pid, terminal = pty.fork()
if pid == 0:
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
