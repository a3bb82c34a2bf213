"""A child model that is busy for ever, as is the process it starts; both write their ids to the file given first."""

import os
import subprocess
import sys
import time
from pathlib import Path

grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
sys.stdin.readline()
partial = Path(sys.argv[1] + ".partial")
partial.write_text(f"{os.getpid()} {grandchild.pid}")
partial.rename(sys.argv[1])
time.sleep(3600)
