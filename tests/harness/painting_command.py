"""A command model for tests of kills: answers slowly, and writes a file named by its process id.

python painting_command.py PIDS SECONDS
"""

import json
import os
import sys
import time

pids, seconds = sys.argv[1], float(sys.argv[2])
open(os.path.join(pids, str(os.getpid())), "w").close()
for line in sys.stdin:
    request = json.loads(line)
    time.sleep(seconds)
    predictions = [
        {"answer": {"text": question.upper()}, "no_target": len(question) % 2 == 0}
        for question in request["questions"]
    ]
    print(json.dumps({"id": request["id"], "predictions": predictions}), flush=True)
