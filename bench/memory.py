"""What a process held at the most."""

from pathlib import Path


def peak_megabytes() -> float:
    """Of this process. Not ru_maxrss, which a child inherits from the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
