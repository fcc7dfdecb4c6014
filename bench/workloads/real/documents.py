# SPDX-License-Identifier: MIT
"""documents: builds JSON documents, prints and parses them; run with PYTHONMALLOC=malloc.

usage: documents.py ROUNDS
"""
import json
import sys


def document(number):
    return {
        "id": number,
        "name": f"document {number}",
        "tags": [f"tag{number % k}" for k in range(2, 12)],
        "parts": [{"at": i, "value": i / (number + 1), "text": "x" * (i % 17)} for i in range(20)],
    }


def main():
    rounds = int(sys.argv[1])
    total = 0
    for start in range(rounds):
        text = json.dumps([document(start * 200 + i) for i in range(200)], indent=1)
        for parsed in json.loads(text):
            total += sum(len(part["text"]) for part in parsed["parts"])
        total += len(text)
    print(total)


main()
