"""A program for tests of ``attnpool check --command``: a mean of the real tokens, or what its first argument names."""

import json
import math
import os
import sys
import time

HELLO = {"name": "a program", "version": "2", "functions": ["mean_pooling"], "dtypes": ["float32"]}
GREETINGS = {
    "a list": [],
    "no dtypes": {"functions": ["mean_pooling"]},
    "an unknown function": HELLO | {"functions": ["mean_poling"]},
    "a function of states": HELLO | {"functions": ["mean_state"]},
    "no functions": HELLO | {"functions": []},
    "parameters that are no list": HELLO | {"functions": {"mean_pooling": "x"}},
    "an unknown dtype": HELLO | {"dtypes": ["f32"]},
    "an unknown encoding": HELLO | {"encodings": ["hex"]},
    "an unknown form of masks": HELLO | {"mask": "prefix"},
    "lengths": HELLO | {"mask": "lengths"},
    "base64": HELLO | {"encodings": ["base64", "data"]},
    "own names": HELLO | {"functions": {"mean_pooling": ["tokens", "is_real"]}},
    "several dtypes": HELLO | {"dtypes": ["float32", "bfloat16", "float16", "float64"]},
}


def mean(arguments):
    """Returns the mean of x [..., L, d] over the real tokens, with the dtype of x."""
    x, mask, lengths = (arguments.get(key) for key in ("x", "mask", "lengths"))
    *lead, length, width = x["shape"]
    numbers, found = [float(number) for number in x["data"]], []
    for row in range(math.prod(lead)):
        real = mask["data"][row * length : (row + 1) * length] if mask else [1] * length
        if lengths:
            real = [place < lengths["data"][row] for place in range(length)]
        tokens = [(row * length + place) * width for place in range(length) if real[place]]
        found += [sum(numbers[at + c] for at in tokens) / max(len(tokens), 1) for c in range(width)]
    data = [
        number if math.isfinite(number) else str(number).replace("nan", "NaN").replace("inf", "Infinity")
        for number in found
    ]
    return {"shape": [*lead, width], "dtype": x["dtype"], "data": data}


def answer(way, call):
    """Returns the line of an answer; some ways write, wait or end in place of it."""
    if way == "dies":
        print("a line of standard error", file=sys.stderr)
        os._exit(3)
    if way == "aborts":
        os.abort()
    if way == "hangs":
        time.sleep(60)
    if way == "floods a line":
        while True:
            sys.stdout.write("x" * 2**16)
    result = mean(call["arguments"])
    more = {
        "answers an error": {"error": "no mask today"},
        "answers another id": {"id": call["id"] + 1},
        "leaves a number out": {"results": [result | {"data": result["data"][:-1]}]},
        "adds an axis": {"results": [result | {"shape": [*result["shape"], 1]}]},
        "answers an unknown dtype": {"results": [result | {"dtype": "f32"}]},
        "answers null": {"results": [result | {"data": [None, *result["data"][1:]]}]},
        "answers a nested list": {"results": [result | {"data": [result["data"]]}]},
        "answers no base64": {"results": [{"shape": result["shape"], "dtype": "float32", "base64": "?"}]},
        "answers few bytes": {"results": [{"shape": result["shape"], "dtype": "float32", "base64": "AAAA"}]},
        "answers a negative size": {"results": [result | {"shape": [-1]}]},
        "answers an array": {"results": result},
        "answers numbers alone": {"results": [result["data"]]},
    }
    if way == "answers no JSON":
        return "the mean is 3"
    return json.dumps({"id": call["id"], "results": [result]} | more.get(way, {}))


def main(way=""):
    """Answers each line of standard input."""
    if way == "hangs at the start":
        time.sleep(60)
    if way == "dies at the start":
        sys.exit("no such model")
    for line in sys.stdin:
        call = json.loads(line)
        if "attnpool" in call:
            said = {"functions": {"mean_pooling": ["x", "mask"]}} if way == "says which arguments" else {}
            print(json.dumps(GREETINGS.get(way, HELLO | said)), flush=True)
            continue
        if way == "own names":
            call["arguments"] = {"x": call["arguments"]["tokens"], "mask": call["arguments"].get("is_real")}
        if way == "base64":
            call["arguments"] = {key: decoded(value) for key, value in call["arguments"].items()}
        print(answer(way, call), flush=True)
        while way == "floods lines":
            print('{"id": 0}')


def decoded(argument):
    """Returns an argument with its numbers in place of bytes."""
    import base64
    import struct

    code = {"float32": "f", "bool": "?"}[argument["dtype"]]
    raw = base64.b64decode(argument["base64"])
    return argument | {"data": struct.unpack(f"<{math.prod(argument['shape'])}{code}", raw)}


if __name__ == "__main__":
    main(*sys.argv[1:])
