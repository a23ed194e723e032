#!/usr/bin/env python3
"""A producer and a worker with Python's standard library alone.

usage: client.py URL QUEUE [PAYLOAD...]   (payloads are JSON; PIECEWORK_TOKEN is sent when it is set)
"""

import json
import os
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

URL, QUEUE = sys.argv[1], urllib.parse.quote(sys.argv[2], safe="")
WORKER = f"python-{os.getpid()}"
LEASE_MS = 30_000


def call(path, body):
    """One call under one name: sent again while nobody answers, it is still done once."""
    headers = {"content-type": "application/json", "idempotency-key": str(uuid.uuid4())}
    if token := os.environ.get("PIECEWORK_TOKEN"):
        headers["authorization"] = f"Bearer {token}"
    data = json.dumps(body).encode()
    for pause in (0.1, 0.5, 1, 2, 4, None):
        try:
            request = urllib.request.Request(URL + path, data, headers)
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            if refusal.code not in (429, 503) or pause is None:
                raise SystemExit(refusal.read().decode())
        except OSError:
            if pause is None:
                raise
        time.sleep(pause)


def keep(receipt, ended, lost):
    """Nothing extends the lease of an HTTP client but the client: at a third of it."""
    while not ended.wait(LEASE_MS / 3000):
        asks = [{"receipt": receipt, "leaseMs": LEASE_MS}]
        if call("/v1/extend", {"extends": asks})["results"][0]["outcome"] != "held":
            lost.set()
            return


def work(payload, lost):
    """The work itself; it stops early when `lost` is set."""
    print("worked on", json.dumps(payload), flush=True)


for text in sys.argv[3:]:
    call(f"/v1/queues/{QUEUE}/tasks", {"payload": json.loads(text)})

while True:
    claim = {"worker": WORKER, "leaseMs": LEASE_MS, "claimId": str(uuid.uuid4())}
    deliveries = call(f"/v1/queues/{QUEUE}/claims", claim)["deliveries"]
    if not deliveries:
        break
    ended, lost = threading.Event(), threading.Event()
    settle = {"receipt": deliveries[0]["receipt"]}
    keeper = threading.Thread(target=keep, args=(settle["receipt"], ended, lost))
    keeper.start()
    try:
        work(deliveries[0]["payload"], lost)
        settle["outcome"] = "ack"
    except Exception as error:
        settle.update(outcome="retry", error=repr(error))
    ended.set()
    keeper.join()
    print("settled:", call("/v1/settle", {"settles": [settle]})["results"][0]["outcome"], flush=True)
