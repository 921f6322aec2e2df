"""Figures from Linux about the current process. Imports no module of the package, whose memory some tests measure."""

from pathlib import Path


def bytes_written():
    """The number of bytes this process has passed to the system so far, by any call."""
    return _field("/proc/self/io", "wchar:")


def bytes_read():
    """The number of bytes this process has taken from the system so far, by any call."""
    return _field("/proc/self/io", "rchar:")


def peak_len():
    """The peak of resident memory. Not `ru_maxrss`, which starts at the parent process's value."""
    return _field("/proc/self/status", "VmHWM:") * 1024


def rss():
    """The memory currently resident."""
    return _field("/proc/self/status", "VmRSS:") * 1024


def _field(path, name):
    [line] = [line for line in Path(path).read_text().splitlines() if line.startswith(name)]
    return int(line.split()[1])
