"""A child model for tests, with nothing but the standard library: the first question tells it how to behave."""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

Request = dict[str, Any]


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def reply(id: str, *texts: str) -> None:
    say(
        json.dumps(
            {"id": id, "predictions": [{"answer": {"text": text}} for text in texts]}
        )
    )


def answer(request: Request) -> None:
    reply(request["id"], *map(str.upper, request["questions"]))


def describe(request: Request) -> None:
    """What it was sent: the names in the image, and the true answers."""
    answers = [
        None if one is None else one["text"] for one in request.get("answers") or []
    ]
    text = json.dumps([sorted(request["image"]), answers])
    reply(request["id"], *[text for _ in request["questions"]])


def hang(request: Request) -> None:
    # What it starts has to go with it.
    child = subprocess.Popen(["sleep", "600"])
    print(f"started {child.pid}, not in time", file=sys.stderr, flush=True)
    time.sleep(600)


def dawdle(request: Request) -> None:
    print("not in time", file=sys.stderr, flush=True)
    answer(request)


def crash(request: Request) -> None:
    print("Traceback:\n  CUDA out of memory", file=sys.stderr, flush=True)
    os._exit(3)


def die_of_a_signal(request: Request) -> None:
    os.kill(os.getpid(), 9)


def stop(request: Request) -> None:
    """As when its terminal is paused: it neither answers nor ends when it is asked to."""
    print("not in time", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)


def say_garbage_first(request: Request) -> None:
    say("epoch 1/10 loss 0.3")
    answer(request)


def say_half(request: Request) -> None:
    say('{"id": "' + request["id"] + '", "predic')


def say_bytes(request: Request) -> None:
    sys.stdout.buffer.write(b"\xff\xfe\x00garbage\n")
    sys.stdout.flush()


BEFORE: list[str] = []


def answer_the_first_again(request: Request) -> None:
    reply(BEFORE[0], "too late")
    answer(request)


def answer_out_of_order(request: Request) -> None:
    reply("another", "out of order")
    answer(request)


def answer_too_few(request: Request) -> None:
    reply(request["id"], *request["questions"][1:])


def answer_too_many(request: Request) -> None:
    reply(request["id"], *request["questions"], "one more")


def answer_at_length(request: Request) -> None:
    say('{"id": "' + request["id"] + '", "error": "' + "x" * 1_000_000 + '"}')


def flood(request: Request) -> None:
    while True:
        say("la " * 1000)


def flood_deaf(request: Request) -> None:
    os.close(0)
    flood(request)


def report_an_error(request: Request) -> None:
    say(json.dumps({"id": request["id"], "error": "the image is upside down"}))


def spoil_one(request: Request) -> None:
    region = {"visible": {"size": [2, 2], "counts": "!!"}}
    say(
        json.dumps(
            {
                "id": request["id"],
                "predictions": [{"regions": [region]}, {"no_target": True}],
            }
        )
    )


def describe_the_image(request: Request) -> None:
    reply(
        request["id"],
        json.dumps({name: value[:8] for name, value in request["image"].items()}),
    )


def fall_silent(request: Request) -> None:
    os.close(1)
    time.sleep(600)


def shout(request: Request) -> None:
    print("x" * 1_000_000, file=sys.stderr, flush=True)
    answer(request)


def answer_and_leave(request: Request) -> None:
    answer(request)
    sys.exit(0)


WAYS = {
    "hang": hang,
    "describe": describe,
    "slow": dawdle,
    "crash": crash,
    "killed": die_of_a_signal,
    "stop": stop,
    "garbage": say_garbage_first,
    "half": say_half,
    "bytes": say_bytes,
    "late": answer_the_first_again,
    "order": answer_out_of_order,
    "few": answer_too_few,
    "many": answer_too_many,
    "long": answer_at_length,
    "flood": flood,
    "deaf": flood_deaf,
    "error": report_an_error,
    "one bad": spoil_one,
    "image": describe_the_image,
    "silent": fall_silent,
    "noisy": shout,
    "leave": answer_and_leave,
}


def main() -> None:
    if "--die" in sys.argv:
        sys.exit("no such checkpoint")
    if "--hum" in sys.argv:
        print("loading", file=sys.stderr, flush=True)
    if "--announce" in sys.argv:
        say(
            json.dumps(
                {
                    "accepts": ["rgb", "smells"],
                    "teacher_forcing": "--forced" in sys.argv,
                }
            )
        )
    if "--greet" in sys.argv:
        say("Loading the model ...")
    for line in sys.stdin:
        request = json.loads(line)
        BEFORE.append(request["id"])
        WAYS.get(request["questions"][0], answer)(request)


if __name__ == "__main__":
    main()
